/* model.h - a Llama on the device: its weights, and what a text needs, a paged cache among it. */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H
#include "config.h"
#include "weights.h"

typedef struct Layer {
  TilertBuffer *attention_norm, *hidden_norm;
  Linear qkv, o, gate_up, down;
} Layer;

typedef struct Model {
  Config config;
  Linear embedding, head;       /* of one part; the same memory where the head is tied */
  TilertBuffer *out_norm;
  TilertBuffer *cos, *sin;      /* [context, head_dim / 2] */
  Layer *layers;
  uint64_t vocabulary, context; /* context: how many places there are, of what the model allows */
} Model;

/* context: at most so many places; 0: 2048. gguf: whose names the tensors have. */
int model_load(Gpu *g, Memory *memory, const Config *config, const Tensors *tensors, bool gguf, uint64_t context, Model *out, Fail *fail);
#endif
