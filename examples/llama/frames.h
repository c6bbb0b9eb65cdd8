/* frames.h - how the messages of a chat are framed. A file's template is a program; it is not run, but known ones are told by what stands in them. */
#ifndef LLAMA_FRAMES_H
#define LLAMA_FRAMES_H
#include "tokenizer.h"

/* Tokens of a chat up to where the answer begins. chat: the file's template; without characters: there is none, and what control tokens there are says
 * which frames, or that there are none. system: NULL for what the template says itself, if it does. */
int frames_encode(const Tokenizer *t, Text chat, const char *system, const char *prompt, Tokens *out, Memory *memory, Fail *fail);
#endif
