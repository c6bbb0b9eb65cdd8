#include "layers.h"
#include "layers_kernels.h"
#include <math.h>
#include <stdlib.h>

enum { DIM_MOST = 4096, HIDDEN_MOST = 16384, EVEN = 256 };      /* as layers.tile has them: WIDE, LONGEST, and what K is a multiple of */
enum { ADDRESSES = 16 };                                        /* of a layer, in the order of layers.tile */

struct LayersKernel {
  int (*launch)(TilertStream *, float *, float *, tile_f16 *, tile_f16 *, int64_t *, float *, float *, int32_t *, int32_t *, float *, float *, int32_t *,
                int32_t *, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, float, int32_t, int32_t, int32_t, float, TilertError *);
};
/* By form, and heads of at most 64 or 128 numbers. */
static const LayersKernel kernels[FORM_COUNT][2] = {
  [FORM_DENSE] = {{layers_one_Wf16_HEAD64}, {layers_one_Wf16_HEAD128}},
  [FORM_F8] = {{layers_one_Wf8e4m3_HEAD64}, {layers_one_Wf8e4m3_HEAD128}},
  [FORM_U4] = {{layers_one_Wu32_Sf16_Qu4_GROUP32_MINtrue_HEAD64}, {layers_one_Wu32_Sf16_Qu4_GROUP32_MINtrue_HEAD128}},
  [FORM_I8] = {{layers_one_Wu32_Sf16_Qi8_GROUP32_MINfalse_HEAD64}, {layers_one_Wu32_Sf16_Qi8_GROUP32_MINfalse_HEAD128}}};

/* The form that all matrices of all layers have, each in one piece; FORM_COUNT if there is no such form. */
static Form
form_of_all(const Model *m)
{
  Form form = m->layers[0].qkv.part[0].form;
  for (uint64_t i = 0; i < m->config.layers; i++) {
    const Linear *all[] = {&m->layers[i].qkv, &m->layers[i].o, &m->layers[i].gate_up, &m->layers[i].down};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
      if (all[k]->count != 1 || all[k]->part[0].form != form)
        return FORM_COUNT;
  }
  return form;
}

static const LayersKernel *
kernel_for(const Session *s)
{
  const Config *c = &s->model->config;
  uint64_t q = c->heads * c->head_dim;
  bool fits = c->dim % EVEN == 0 && q % EVEN == 0 && c->hidden % EVEN == 0 && c->dim <= DIM_MOST && q <= DIM_MOST && c->hidden <= HIDDEN_MOST &&
              c->head_dim <= 128 && c->head_dim % 32 == 0 && c->heads / c->kv_heads <= 16;
  Form form = c->layers ? form_of_all(s->model) : FORM_COUNT;
  const LayersKernel *k = form != FORM_COUNT ? &kernels[form][c->head_dim > 64] : NULL;
  return s->gpu->wide && s->gpu->pairs && fits && k && k->launch ? k : NULL;
}

int
layers_open(Session *s, Fail *fail)
{
  uint64_t layers = s->model->config.layers;
  TilertError err = {0};
  if (!(s->layers = kernel_for(s)))
    return 0;
  uint64_t *at = calloc((size_t)layers * ADDRESSES, sizeof *at);
  if (!at)
    return fail_with(fail, "no memory for the addresses of %llu layers", (unsigned long long)layers);
  for (uint64_t i = 0; i < layers; i++) {
    const Layer *l = &s->model->layers[i];
    const Matrix *m[] = {&l->qkv.part[0], &l->o.part[0], &l->gate_up.part[0], &l->down.part[0]};
    const TilertBuffer *all[ADDRESSES] = {m[0]->w, m[0]->scales, m[0]->mins, m[1]->w, m[1]->scales, m[1]->mins, m[2]->w, m[2]->scales, m[2]->mins,
                                          m[3]->w, m[3]->scales, m[3]->mins, l->attention_norm, l->hidden_norm, s->keys[i], s->values[i]};
    for (size_t k = 0; k < ADDRESSES; k++)
      at[i * ADDRESSES + k] = all[k] ? tilert_buffer_address(all[k]) : 0;
  }
  s->addresses = gpu_put(s->gpu, at, (size_t)layers * ADDRESSES * sizeof *at, "the addresses of layers", fail);
  s->met = s->addresses ? gpu_take(s->gpu, sizeof(int32_t), "what a step works on", fail) : NULL;
  free(at);
  return s->met ? gpu_status(tilert_buffer_fill(s->met, 0, sizeof(int32_t), 0, 1, NULL, &err), &err, fail) : -1;
}

int
layers_launch(const Session *s, TilertError *err)
{
  const Config *c = &s->model->config;
  const Model *m = s->model;
  int32_t d = (int32_t)c->head_dim, step = c->neighbours ? 2 : 1, apart = c->neighbours ? 1 : d / 2;
  return s->layers->launch(s->gpu->stream, gpu_at(s->x), gpu_at(s->qkv), gpu_at(s->q), gpu_at(s->a), gpu_at(s->addresses), gpu_at(m->cos), gpu_at(m->sin),
                           gpu_at(s->position), gpu_at(s->table), gpu_at(s->part), gpu_at(s->lse), gpu_at(s->ended), gpu_at(s->met), (int32_t)c->layers,
                           (int32_t)c->dim, (int32_t)c->hidden, (int32_t)c->heads, (int32_t)c->kv_heads, d, (float)(1 / sqrt((double)d)), step, apart,
                           s->splits, (float)c->eps, err);
}
