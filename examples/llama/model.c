#include "model.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { NAME_LONGEST = 96, USUAL_CONTEXT = 2048 };
static const double TURN = 6.283185307179586;
typedef struct Source { Gpu *gpu; const Tensors *tensors; bool gguf; Fail *fail; } Source;
typedef struct Want { Role role; uint64_t rows; } Want;

/* A tensor of this shape; rows 0: any number. */
static const Tensor *
find(const Source *s, Want want, uint64_t layer, uint64_t cols)
{
  char name[NAME_LONGEST];
  const Tensor *t = role_find(s->tensors, s->gguf, want.role, layer, name, sizeof name);
  if (!t)
    fail_with(s->fail, "tensor %s: the file has none", name);
  else if ((want.rows && t->rows != want.rows) || t->cols != cols) {
    fail_with(s->fail, "tensor %s: it is %" PRIu64 " x %" PRIu64 ", the model takes %" PRIu64 " x %" PRIu64, name, t->rows, t->cols, want.rows, cols);
    t = NULL;
  }
  return t;
}

static int
load_linear(const Source *s, const Want *wants, int count, uint64_t layer, uint64_t cols, Linear *out)
{
  const Tensor *tensors[LINEAR_MOST];
  for (int i = 0; i < count; i++)
    if (!(tensors[i] = find(s, wants[i], layer, cols)))
      return -1;
  return linear_load(s->gpu, tensors, count, out, s->fail);
}

static TilertBuffer *
load_norm(const Source *s, Role role, uint64_t layer, uint64_t dim)
{
  const Tensor *t = find(s, (Want){role, 1}, layer, dim);
  return t ? vector_load(s->gpu, t, s->fail) : NULL;
}

static int
load_layer(const Source *s, const Config *c, uint64_t i, Layer *l)
{
  const Want qkv[] = {{ROLE_Q, c->heads * c->head_dim}, {ROLE_K, c->kv_heads * c->head_dim}, {ROLE_V, c->kv_heads * c->head_dim}};
  const Want gate_up[] = {{ROLE_GATE, c->hidden}, {ROLE_UP, c->hidden}}, o = {ROLE_O, c->dim}, down = {ROLE_DOWN, c->dim};
  l->attention_norm = load_norm(s, ROLE_ATTENTION_NORM, i, c->dim);
  l->hidden_norm = l->attention_norm ? load_norm(s, ROLE_HIDDEN_NORM, i, c->dim) : NULL;
  if (!l->hidden_norm || load_linear(s, qkv, 3, i, c->dim, &l->qkv) || load_linear(s, gate_up, 2, i, c->dim, &l->gate_up))
    return -1;
  return load_linear(s, &o, 1, i, c->heads * c->head_dim, &l->o) || load_linear(s, &down, 1, i, c->hidden, &l->down) ? -1 : 0;
}

/* Radians a place for pair i. Llama 3 stretches waves that are longer than what it was first trained on. */
static double
frequency(const Config *c, uint64_t i)
{
  double f = pow(c->theta, -2.0 * (double)i / (double)c->head_dim);
  if (!(c->stretch.factor > 0))
    return f;
  double waves = c->stretch.original * f / TURN;          /* in the first context */
  double smooth = (waves - c->stretch.low) / (c->stretch.high - c->stretch.low);
  smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
  return f * (smooth + (1 - smooth) / c->stretch.factor);
}

static int
fill_angles(const Source *s, Model *m, float *cos_, float *sin_)
{
  char name[NAME_LONGEST];
  uint64_t half = m->config.head_dim / 2;
  const Tensor *slower = role_find(s->tensors, s->gguf, ROLE_FREQUENCIES, 0, name, sizeof name);
  float by[128] = {0};
  if (slower && (slower->rows != 1 || slower->cols != half || half > 128))
    return fail_with(s->fail, "tensor %s: %" PRIu64 " numbers are expected", name, half);
  if (slower)
    tensor_row(slower, 0, by);
  for (uint64_t at = 0; at < m->context; at++)
    for (uint64_t i = 0; i < half; i++) {
      double angle = (double)at * frequency(&m->config, i) / (slower ? (double)by[i] : 1.0);
      cos_[at * half + i] = (float)cos(angle);
      sin_[at * half + i] = (float)sin(angle);
    }
  return 0;
}

static int
load_angles(const Source *s, Model *m)
{
  size_t count = (size_t)(m->context * (m->config.head_dim / 2));
  float *both = calloc(2 * count, sizeof *both);
  if (!both)
    return fail_with(s->fail, "no memory for the angles of %" PRIu64 " places", m->context);
  int status = fill_angles(s, m, both, both + count);
  m->cos = status ? NULL : gpu_put(s->gpu, both, count * sizeof *both, "angles", s->fail);
  m->sin = m->cos ? gpu_put(s->gpu, both + count, count * sizeof *both, "angles", s->fail) : NULL;
  free(both);
  return m->sin ? 0 : -1;
}

int
model_load(Gpu *g, Memory *memory, const Config *config, const Tensors *tensors, bool gguf, uint64_t context, Model *out, Fail *fail)
{
  Source s = {g, tensors, gguf, fail};
  char name[NAME_LONGEST];
  uint64_t places = context ? context : USUAL_CONTEXT;
  *out = (Model){.config = *config, .context = places < config->context ? places : config->context};
  const Want embedding = {ROLE_EMBEDDING, 0};
  if (load_linear(&s, &embedding, 1, 0, config->dim, &out->embedding))
    return -1;
  out->vocabulary = (uint64_t)out->embedding.rows;
  const Want head = {ROLE_HEAD, out->vocabulary};
  if (!role_find(tensors, gguf, ROLE_HEAD, 0, name, sizeof name))
    out->head = out->embedding;
  else if (load_linear(&s, &head, 1, 0, config->dim, &out->head))
    return -1;
  out->out_norm = load_norm(&s, ROLE_OUT_NORM, 0, config->dim);
  out->layers = memory_take(memory, config->layers, sizeof *out->layers, fail);
  if (!out->out_norm || !out->layers || load_angles(&s, out))
    return -1;
  size_t widened = 0;
  for (uint64_t i = 0; i < config->layers; i++) {
    Layer *l = &out->layers[i];
    if (load_layer(&s, config, i, l))
      return -1;
    const Linear *all[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
      widened = linear_widened(all[k]) > widened ? linear_widened(all[k]) : widened;
  }
  if (g->wide && widened && !(g->widened = gpu_take(g, widened, "a matrix in f16", fail)))
    return -1;
  return 0;
}
