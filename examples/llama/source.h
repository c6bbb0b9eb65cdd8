/* source.h - what a model comes from: a GGUF file, or a folder as it is published with safetensors. */
#ifndef LLAMA_SOURCE_H
#define LLAMA_SOURCE_H
#include "config.h"
#include "tokenizer.h"

enum { FILES_MOST = 256 };
typedef struct Source {
  Mapping weights[FILES_MOST], index_text, config_text, tokenizer_text, chat_text;     /* GGUF: one file, or its parts */
  size_t files;
  bool gguf;
  Tensors tensors;
  Config config;
  Tokenizer tokenizer;
  Text chat;                    /* the template of a chat; without characters: there is none */
} Source;

/* tokenizer: whether there has to be one. */
int source_open(Source *s, const char *path, bool tokenizer, Memory *memory, Fail *fail);
void source_close(Source *s);
#endif
