/* step.h - a text and the steps that make it longer: a cache in pages, launches of a step, a graph of one token's. */
#ifndef LLAMA_STEP_H
#define LLAMA_STEP_H
#include "model.h"

enum { PAGE = 16, PIECE = 64, PIECE_WIDE = 2048, CHOICES = 64 };   /* places of a page; tokens of a step, at most, on a GPU; what sampling looks at */

typedef struct Sampling {
  float temperature, top_p;     /* a temperature of 0 takes the most probable token */
  int32_t top_k;                /* 1 to CHOICES */
  int64_t seed;
} Sampling;

typedef struct LayersKernel LayersKernel;       /* layers.c */

typedef struct Session {
  Gpu *gpu;
  const Model *model;
  Sampling sampling;
  uint64_t length;              /* places that are filled */
  uint64_t piece;               /* tokens of a step, at most */
  int32_t splits;               /* of the keys, in attention */
  TilertBuffer **keys, **values;                        /* of each layer: [pages, PAGE, kv_heads, head_dim] */
  TilertBuffer *table, *position, *tokens, *text;
  TilertBuffer *x, *h, *qkv, *q, *a, *ended, *part, *lse, *g, *logits, *best, *token;
  const LayersKernel *layers;   /* of one token, in one launch; NULL: in launches of each */
  TilertBuffer *addresses, *met;                        /* where the layers' matrices are; 0, which it counts meetings in */
  int32_t *page_of, *free_pages;                        /* the table, and pages that nothing is in; the last one is taken first */
  uint64_t free_count;
  TilertGraph *graph;
  TilertGraphExec *step;        /* one token's */
} Session;

/* piece: so many tokens of a prompt at a time; 0: as many as suit the device. */
int session_open(Session *s, Gpu *g, const Model *m, const Sampling *sampling, uint64_t piece, Memory *memory, Fail *fail);
void session_close(Session *s);
/* As if nothing had been said: all pages are free. */
void session_empty(Session *s);
/* Tokens behind those that are there; *next is the one that follows them. */
int session_prefill(Session *s, const int32_t *tokens, size_t count, int32_t *next, Fail *fail);
/* The token that came last, and the one that follows it. */
int session_decode(Session *s, int32_t *next, Fail *fail);
/* What the last step gave: model->vocabulary numbers. */
int session_logits(Session *s, float *out, Fail *fail);
#endif
