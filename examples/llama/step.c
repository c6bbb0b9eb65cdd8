#include "layers.h"
#include "kernels_kernels.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { BEST_BLOCK = 4096, CHOOSE_MOST = 2048, SPLITS_GPU = 16 };   /* as kernels.tile has them */
enum { BRING_MOST = 32 << 20 };         /* bytes that the L2 cache keeps beside what attention reads */

typedef int Attend(TilertStream *, const tile_f16 *, const tile_f16 *, const tile_f16 *, const int32_t *, const int32_t *, float *, float *, int32_t *,
                   tile_f16 *, int32_t, int32_t, int32_t, int32_t, int32_t, float, TilertError *);
static Attend *const attend_of[] = {attend_HEAD64, attend_HEAD128, attend_HEAD256};
typedef int AttendOne(TilertStream *, float *, float *, float *, tile_f16 *, tile_f16 *, int32_t *, int32_t *, float *, float *, int32_t *, tile_f16 *,
                      int32_t, int32_t, int32_t, float, int32_t, int32_t, int32_t, uint8_t *, int64_t, TilertError *);
static AttendOne *const attend_one_of[] = {attend_one_HEAD64, attend_one_HEAD128, attend_one_HEAD256};
typedef int AttendPiece(TilertStream *, const tile_f16 *, const tile_f16 *, const tile_f16 *, const int32_t *, const int32_t *, tile_f16 *, int32_t,
                        int32_t, int32_t, int32_t, float, TilertError *);
/* [products of warpgroups] */
static AttendPiece *const attend_piece_of[2][3] = {{attend_piece_HEAD64_BN64, attend_piece_HEAD128_BN32, attend_piece_HEAD256_BN16},
                                                   {attend_piece_HEAD64_BN128, attend_piece_HEAD128_BN128, attend_piece_HEAD256_BN32}};

static uint64_t
blocks(uint64_t n, uint64_t size)
{
  return (n + size - 1) / size;
}

/* ---- launches of a step, in order ---- */

static int
launch_norm(Session *s, size_t first, const TilertBuffer *gain, int32_t M, TilertError *err)
{
  int32_t dim = (int32_t)s->model->config.dim;
  return (s->gpu->wide ? norm_BLOCK4096 : norm_BLOCK1024)(s->gpu->stream, (const float *)gpu_at(s->x) + first * (size_t)dim, gpu_at(gain),
                                                          gpu_at(s->h), M, dim, (float)s->model->config.eps, err);
}

/* y = norm(x) w^T of M rows of x from `first` on; gated: silu(gate) * up of what that gives goes to s->a, over y. */
static int
launch_after_norm(Session *s, const Linear *l, const TilertBuffer *gain, TilertBuffer *y, bool gates, size_t first, int32_t M, TilertError *err)
{
  int32_t half = l->rows / 2;
  bool at_once = M == 1 && (!gates || linear_takes_gates(l)), norms = at_once && !first && linear_takes_norm(s->gpu, l);
  int status = norms ? 0 : launch_norm(s, first, gain, M, err);
  if (!status && at_once)
    return token_launch(s->gpu, l, &(TokenProduct){.h = s->h, .x = s->x, .gain = norms ? gain : NULL, .eps = (float)s->model->config.eps, .y = y,
                                                   .gated = gates ? s->a : NULL}, err);
  if (!status && gates && s->gpu->wide && M >= MANY_TOKENS && linear_takes_gates(l))
    return gates_launch(s->gpu, l, s->h, s->a, M, err);
  if (!status)
    status = linear_launch(s->gpu, l, s->h, y, M, l->rows, false, err);
  return status || !gates ? status : gated(s->gpu->stream, gpu_at(y), gpu_at(s->a), M, half, err);
}

static size_t
head_kind(const Config *c)
{
  return c->head_dim <= 64 ? 0 : c->head_dim <= 128 ? 1 : 2;
}

/* Of one token, which the launch brings into the cache, too. */
static int
launch_attention_one(Session *s, uint64_t layer, TilertError *err)
{
  const Config *c = &s->model->config;
  const Matrix *next = &s->model->layers[layer].o.part[0];
  size_t brought = s->gpu->wide ? matrix_bytes(next) : 0;
  brought = brought < BRING_MOST ? brought : BRING_MOST;
  int32_t heads = (int32_t)c->heads, kv_heads = (int32_t)c->kv_heads, d = (int32_t)c->head_dim;
  return attend_one_of[head_kind(c)](s->gpu->stream, gpu_at(s->qkv), gpu_at(s->model->cos), gpu_at(s->model->sin), gpu_at(s->keys[layer]),
                                     gpu_at(s->values[layer]), gpu_at(s->position), gpu_at(s->table), gpu_at(s->part), gpu_at(s->lse), gpu_at(s->ended),
                                     gpu_at(s->a), heads, kv_heads, d, (float)(1 / sqrt((double)d)), c->neighbours ? 2 : 1, c->neighbours ? 1 : d / 2,
                                     s->splits, gpu_at(next->w), (int64_t)brought, err);
}

static int
launch_attention(Session *s, uint64_t layer, int32_t M, TilertError *err)
{
  const Config *c = &s->model->config;
  int32_t heads = (int32_t)c->heads, kv_heads = (int32_t)c->kv_heads, d = (int32_t)c->head_dim;
  if (M == 1)
    return launch_attention_one(s, layer, err);
  int status = turn(s->gpu->stream, gpu_at(s->qkv), gpu_at(s->model->cos), gpu_at(s->model->sin), gpu_at(s->position), gpu_at(s->table),
                    gpu_at(s->q), gpu_at(s->keys[layer]), gpu_at(s->values[layer]), M, heads, kv_heads, d, c->neighbours ? 2 : 1,
                    c->neighbours ? 1 : d / 2, err);
  if (!status && s->gpu->wide && M >= MANY_TOKENS)
    return attend_piece_of[s->gpu->warpgroups][head_kind(c)](s->gpu->stream, gpu_at(s->q), gpu_at(s->keys[layer]), gpu_at(s->values[layer]),
                                                             gpu_at(s->position), gpu_at(s->table), gpu_at(s->a), M, heads, kv_heads, d,
                                                             (float)(1 / sqrt((double)d)), err);
  return status ? status : attend_of[head_kind(c)](s->gpu->stream, gpu_at(s->q), gpu_at(s->keys[layer]), gpu_at(s->values[layer]),
                                                   gpu_at(s->position), gpu_at(s->table), gpu_at(s->part), gpu_at(s->lse), gpu_at(s->ended), gpu_at(s->a),
                                                   1, M, heads, kv_heads, d, (float)(1 / sqrt((double)d)), err);
}

static int
launch_layer(Session *s, uint64_t i, int32_t M, TilertError *err)
{
  const Layer *l = &s->model->layers[i];
  int32_t dim = (int32_t)s->model->config.dim;
  int status = launch_after_norm(s, &l->qkv, l->attention_norm, s->qkv, false, 0, M, err);
  if (!status)
    status = launch_attention(s, i, M, err);
  if (!status)
    status = linear_launch(s->gpu, &l->o, s->a, s->x, M, dim, true, err);
  if (!status)
    status = launch_after_norm(s, &l->gate_up, l->hidden_norm, s->g, true, 0, M, err);
  return status ? status : linear_launch(s->gpu, &l->down, s->a, s->x, M, dim, true, err);
}

/* Of the last of M tokens. */
static int
launch_choice(Session *s, int32_t M, TilertError *err)
{
  bool cold = s->sampling.temperature == 0;
  int32_t V = (int32_t)s->model->vocabulary, n = (int32_t)blocks((uint64_t)V, BEST_BLOCK);
  int status = launch_after_norm(s, &s->model->head, s->model->out_norm, s->logits, false, (size_t)M - 1, 1, err);
  if (!status)
    status = (cold ? best_of_K1 : best_of_K64)(s->gpu->stream, gpu_at(s->logits), gpu_at(s->best), gpu_at(s->token), V, err);
  if (!status)
    status = choose(s->gpu->stream, gpu_at(s->best), gpu_at(s->token), cold ? n : n * CHOICES, s->sampling.temperature, s->sampling.top_p,
                    s->sampling.top_k, s->sampling.seed, gpu_at(s->tokens), gpu_at(s->text), gpu_at(s->position), M, err);
  return status;
}

static int
launch_step(Session *s, int32_t M, bool choice, TilertError *err)
{
  int status = embed_launch(s->gpu->stream, &s->model->embedding.part[0], s->tokens, s->x, M, err);
  const bool at_once = M == 1 && s->layers;
  if (!status && at_once)
    status = layers_launch(s, err);
  for (uint64_t i = 0; i < s->model->config.layers && !status && !at_once; i++)
    status = launch_layer(s, i, M, err);
  return status || !choice ? status : launch_choice(s, M, err);
}

/* ---- pages ---- */

/* Places up to `length` have pages, and the device knows. */
static int
take_pages(Session *s, uint64_t length, Fail *fail)
{
  TilertError err = {0};
  uint64_t have = blocks(s->length, PAGE), want = blocks(length, PAGE);
  if (length > s->model->context)
    return fail_with(fail, "the text is full: %" PRIu64 " places", s->model->context);
  if (want <= have)
    return 0;
  for (uint64_t i = have; i < want; i++)
    s->page_of[i] = s->free_pages[--s->free_count];
  return gpu_status(tilert_buffer_write(s->table, have * sizeof *s->page_of, s->page_of + have, (want - have) * sizeof *s->page_of, NULL, &err), &err,
                    fail);
}

static int
open_pages(Session *s, Memory *memory, Fail *fail)
{
  const Config *c = &s->model->config;
  uint64_t pages = blocks(s->model->context, PAGE);
  size_t bytes = (size_t)(pages * PAGE * c->kv_heads * c->head_dim) * sizeof(tile_f16);
  s->free_count = pages;
  s->page_of = memory_take(memory, pages, sizeof *s->page_of, fail);
  s->free_pages = s->page_of ? memory_take(memory, pages, sizeof *s->free_pages, fail) : NULL;
  s->keys = s->free_pages ? memory_take(memory, c->layers, sizeof *s->keys, fail) : NULL;
  s->values = s->keys ? memory_take(memory, c->layers, sizeof *s->values, fail) : NULL;
  if (!s->values)
    return -1;
  for (uint64_t i = 0; i < pages; i++)
    s->free_pages[i] = (int32_t)i;
  for (uint64_t i = 0; i < c->layers; i++) {
    s->keys[i] = gpu_take(s->gpu, bytes, "the cache", fail);
    s->values[i] = s->keys[i] ? gpu_take(s->gpu, bytes, "the cache", fail) : NULL;
    if (!s->values[i])
      return -1;
  }
  s->table = gpu_take(s->gpu, pages * sizeof *s->page_of, "the table of pages", fail);
  return s->table ? 0 : -1;
}

/* ---- what a step works on ---- */

/* Tokens of a step whose gates are not part of a product. */
static uint64_t
gate_rows(const Session *s)
{
  uint64_t few = s->piece < MANY_TOKENS ? s->piece : MANY_TOKENS - 1;
  for (uint64_t i = 0; i < s->model->config.layers; i++)
    if (!s->gpu->wide || !linear_takes_gates(&s->model->layers[i].gate_up))
      return s->piece;
  return few;
}

static int
open_buffers(Session *s, Fail *fail)
{
  const Config *c = &s->model->config;
  uint64_t q = c->heads * c->head_dim, a = c->hidden > q ? c->hidden : q, choices = blocks(s->model->vocabulary, BEST_BLOCK) * CHOICES;
  /* What a piece of few tokens takes, or the splits of one token: a row of each. */
  uint64_t n = s->piece, ended = 4 * c->kv_heads * PIECE, parts = c->heads * PIECE;
  static_assert((int)PIECE >= (int)SPLITS_GPU, "a decoded token's splits take the rows of a piece");
  const struct { TilertBuffer **to; uint64_t bytes; } all[] = {
    {&s->position, 4}, {&s->tokens, 4 * n}, {&s->text, 4 * (s->model->context + 1)}, {&s->x, 4 * n * c->dim}, {&s->h, 2 * n * c->dim},
    {&s->qkv, 4 * n * (q + 2 * c->kv_heads * c->head_dim)}, {&s->q, 2 * n * q}, {&s->a, 2 * n * a}, {&s->ended, ended},
    {&s->part, 4 * parts * c->head_dim}, {&s->lse, 4 * parts},
    {&s->g, 8 * gate_rows(s) * c->hidden}, {&s->logits, 4 * s->model->vocabulary}, {&s->best, 4 * choices}, {&s->token, 4 * choices}};
  if (choices > CHOOSE_MOST)
    return fail_with(fail, "a vocabulary of %" PRIu64 "; at most %d can be sampled from", s->model->vocabulary, CHOOSE_MOST / CHOICES * BEST_BLOCK);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!(*all[i].to = gpu_take(s->gpu, (size_t)all[i].bytes, "what a step works on", fail)))
      return -1;
  TilertError err = {0};
  return gpu_status(tilert_buffer_fill(s->ended, 0, (size_t)ended, 0, 1, NULL, &err), &err, fail);
}

static int
capture_step(Session *s, TilertError *err)
{
  int status = tilert_stream_capture_begin(s->gpu->stream, err);
  if (!status)
    status = launch_step(s, 1, true, err);
  if (!status)
    status = tilert_stream_capture_end(s->gpu->stream, &s->graph, err);
  return status ? status : tilert_graph_instantiate(s->graph, &s->step, err);
}

int
session_open(Session *s, Gpu *g, const Model *m, const Sampling *sampling, uint64_t piece, Memory *memory, Fail *fail)
{
  TilertError err = {0};
  *s = (Session){.gpu = g, .model = m, .sampling = *sampling, .splits = g->wide ? SPLITS_GPU : 1,
                 .piece = piece ? piece : g->wide ? PIECE_WIDE : PIECE};
  s->piece = s->piece < m->context ? s->piece : m->context;
  if (open_pages(s, memory, fail) || open_buffers(s, fail) || layers_open(s, fail))
    return -1;
  return gpu_status(capture_step(s, &err), &err, fail);
}

void
session_close(Session *s)
{
  tilert_graph_exec_destroy(s->step);
  tilert_graph_destroy(s->graph);
}

void
session_empty(Session *s)
{
  for (uint64_t i = blocks(s->length, PAGE); i; i--)
    s->free_pages[s->free_count++] = s->page_of[i - 1];
  s->length = 0;
}

static int
read_next(Session *s, int32_t *next, TilertError *err)
{
  int status = tilert_stream_synchronize(s->gpu->stream, err);
  return status ? status : tilert_buffer_read(s->tokens, 0, next, sizeof *next, NULL, err);
}

int
session_prefill(Session *s, const int32_t *tokens, size_t count, int32_t *next, Fail *fail)
{
  TilertError err = {0};
  int status = 0;
  if (!count)
    return fail_with(fail, "an empty prompt");
  if (take_pages(s, s->length + count, fail))
    return -1;
  for (size_t at = 0; at < count && !status; at += s->piece) {
    size_t M = count - at < s->piece ? count - at : (size_t)s->piece;
    int32_t position = (int32_t)s->length;
    status = tilert_buffer_write(s->tokens, 0, tokens + at, M * sizeof *tokens, s->gpu->stream, &err);
    if (!status)
      status = tilert_buffer_write(s->position, 0, &position, sizeof position, s->gpu->stream, &err);
    if (!status)
      status = launch_step(s, (int32_t)M, at + M == count, &err);
    if (!status)
      status = tilert_stream_synchronize(s->gpu->stream, &err);
    s->length += M;
  }
  if (!status)
    status = read_next(s, next, &err);
  return gpu_status(status, &err, fail);
}

int
session_decode(Session *s, int32_t *next, Fail *fail)
{
  TilertError err = {0};
  if (take_pages(s, s->length + 1, fail))
    return -1;
  int status = tilert_graph_launch(s->step, s->gpu->stream, &err);
  if (!status)
    status = read_next(s, next, &err);
  s->length++;
  return gpu_status(status, &err, fail);
}

int
session_logits(Session *s, float *out, Fail *fail)
{
  TilertError err = {0};
  return gpu_status(tilert_buffer_read(s->logits, 0, out, s->model->vocabulary * sizeof *out, NULL, &err), &err, fail);
}
