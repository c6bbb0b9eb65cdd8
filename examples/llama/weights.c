#include "weights.h"
#include "half.h"
#include "kernels_kernels.h"
#include "warpgroups_kernels.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACKERS_MAX = 16, PACKED_ALONE = 1 << 20 };        /* threads that pack a matrix; numbers that are not worth another */
enum { TALL = 8, LONG = BLOCK_EXTENT };                   /* rows and numbers that share a scale, as kernels.tile has them */
enum { STEP = 128, ROWS_EVEN = 8, TILE_ROWS = 128 };       /* what product_pairs counts K by, two at a time, and rows; rows of a tile */
enum { GATES_UNPACKED_MOST = 2048 };    /* tokens: with more, an H200 widens weights of gates in less time than it unpacks them for each 128 */

/* Where a row goes: words (or f16 numbers, or bytes), a scale for each group, mins; of 8-bit floats one scale. */
typedef struct Row { uint32_t *words; uint16_t *scales, *mins; float *scale; } Row;
typedef struct FormInfo { uint32_t group, bits; bool mins; } FormInfo;
static const FormInfo form_infos[FORM_COUNT] = {
  [FORM_DENSE] = {0, 16, false}, [FORM_F8] = {0, 8, false}, [FORM_F8_BLOCKS] = {0, 8, false},
  [FORM_U4] = {32, 4, true}, [FORM_I8] = {32, 8, false}, [FORM_I8_16] = {16, 8, false}};

size_t
matrix_bytes(const Matrix *m)
{
  return (size_t)m->rows * (size_t)m->cols * form_infos[m->form].bits / 8;
}

/* ---- one block of a format: its integers, a scale for each group, a least number ---- */

typedef struct Block { int16_t q[256]; float scale[16], min[16]; } Block;

static void
low_and_high(const uint8_t *from, int n, int16_t *low, int16_t *high)
{
  for (int i = 0; i < n; i++) {
    low[i] = from[i] & 15;
    high[i] = from[i] >> 4;
  }
}

static void
take_q4_0(const uint8_t *p, Block *b)
{
  b->scale[0] = f16_value(bits16(p));
  b->min[0] = -8 * b->scale[0];
  low_and_high(p + 2, 16, b->q, b->q + 16);
}

static void
take_q4_1(const uint8_t *p, Block *b)
{
  b->scale[0] = f16_value(bits16(p));
  b->min[0] = f16_value(bits16(p + 2));
  low_and_high(p + 4, 16, b->q, b->q + 16);
}

static void
take_q8_0(const uint8_t *p, Block *b)
{
  b->scale[0] = f16_value(bits16(p));
  for (int i = 0; i < 32; i++)
    b->q[i] = (int8_t)p[2 + i];
}

/* Eight groups of 32; their scales and mins are 6 bits each, in 12 bytes: of the last four groups the upper two bits lie above those of the first. */
static void
take_q4_k(const uint8_t *p, Block *b)
{
  float d = f16_value(bits16(p)), least = f16_value(bits16(p + 2));
  const uint8_t *s = p + 4, *q = p + 16;
  for (int g = 0; g < 8; g++) {
    int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    int min = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
    b->scale[g] = d * (float)scale;
    b->min[g] = -least * (float)min;
  }
  for (int pair = 0; pair < 4; pair++)
    low_and_high(q + 32 * pair, 32, b->q + 64 * pair, b->q + 64 * pair + 32);
}

/* Sixteen groups of 16; four low bits and two high ones lie apart, each byte of which serves numbers 32 apart. */
static void
take_q6_k(const uint8_t *p, Block *b)
{
  float d = f16_value(bits16(p + 208));
  for (int g = 0; g < 16; g++)
    b->scale[g] = d * (float)(int8_t)p[192 + g];
  for (int i = 0; i < 256; i++) {
    int half = i / 128, quarter = i % 128 / 32, k = i % 32;
    int low = p[64 * half + 32 * (quarter & 1) + k] >> (quarter < 2 ? 0 : 4) & 15;
    b->q[i] = (int16_t)((low | (p[128 + 32 * half + k] >> 2 * quarter & 3) << 4) - 32);
  }
}

typedef struct Taker { Form form; void (*take)(const uint8_t *p, Block *b); } Taker;
static const Taker takers[FORMAT_COUNT] = {
  [FORMAT_F32] = {FORM_DENSE, NULL}, [FORMAT_F16] = {FORM_DENSE, NULL}, [FORMAT_BF16] = {FORM_DENSE, NULL}, [FORMAT_F8] = {FORM_F8, NULL},
  [FORMAT_Q4_0] = {FORM_U4, take_q4_0}, [FORMAT_Q4_1] = {FORM_U4, take_q4_1}, [FORMAT_Q8_0] = {FORM_I8, take_q8_0},
  [FORMAT_Q4_K] = {FORM_U4, take_q4_k}, [FORMAT_Q6_K] = {FORM_I8_16, take_q6_k}};

static float
dense_value(const Tensor *t, const uint8_t *p)
{
  if (t->format == FORMAT_F8)
    return f8_value(*p);
  uint32_t bits = (uint32_t)bits16(p);
  if (t->format == FORMAT_F16)
    return f16_value((uint16_t)bits);
  return t->format == FORMAT_BF16 ? bf16_value(p) : float_of_bits(bits | (uint32_t)bits16(p + 2) << 16);
}

static const uint8_t *
row_of(const Tensor *t, uint64_t row)
{
  return t->data + row * (t->size / t->rows);
}

static Form
form_of(const Tensor *t)
{
  return t->blocks ? FORM_F8_BLOCKS : takers[t->format].form;
}

/* Of an 8-bit float. */
static float
scale_of(const Tensor *t, uint64_t row, uint64_t col)
{
  const Tensor *s = t->scale;
  uint64_t at = 0;
  if (t->blocks)
    at = row / BLOCK_EXTENT * s->cols + col / BLOCK_EXTENT;
  else if (s)
    at = s->rows * s->cols == 1 ? 0 : row;
  return s ? dense_value(s, s->data + at * format_infos[s->format].bytes) : 1;
}

void
tensor_row(const Tensor *t, uint64_t row, float *out)
{
  const FormatInfo *f = &format_infos[t->format];
  const uint8_t *p = row_of(t, row);
  uint32_t group = form_infos[form_of(t)].group;
  Block b = {.q = {0}};
  for (uint64_t at = 0; at < t->cols; at += f->elements, p += f->bytes) {
    if (!takers[t->format].take) {
      out[at] = dense_value(t, p) * scale_of(t, row, at);
      continue;
    }
    takers[t->format].take(p, &b);
    for (uint32_t i = 0; i < f->elements; i++)
      out[at + i] = (float)b.q[i] * b.scale[i / group] + b.min[i / group];
  }
}

/* ---- rows in the form of kernels ---- */

static int
pack_dense(const Tensor *t, uint64_t row, uint16_t *to, Fail *fail)
{
  const FormatInfo *f = &format_infos[t->format];
  const uint8_t *p = row_of(t, row);
  for (uint64_t i = 0; i < t->cols; i++) {
    float v = dense_value(t, p + i * f->bytes);
    to[i] = f16_bits(v);
    if ((to[i] & 0x7fff) >= 0x7c00)
      return fail_with(fail, "tensor %.*s: row %llu has %g, which f16 does not", TEXT_ARGS(t->name), (unsigned long long)row, (double)v);
  }
  return 0;
}

/* Scales are written with the first of the rows that share them. */
static int
pack_f8(const Tensor *t, uint64_t row, const Row *to, Fail *fail)
{
  const uint8_t *p = row_of(t, row);
  for (uint64_t at = 0, i = 0; to->scale && at < t->cols; at += t->blocks ? LONG : t->cols)
    to->scale[i++] = scale_of(t, row, at);
  for (uint64_t i = 0; i < t->cols; i++)
    if ((p[i] & 0x7f) == 0x7f)
      return fail_with(fail, "tensor %.*s: row %llu has no number at %llu", TEXT_ARGS(t->name), (unsigned long long)row, (unsigned long long)i);
  memcpy(to->words, p, (size_t)t->cols);
  return 0;
}

static void
pack_grouped(const Tensor *t, uint64_t row, const Row *to)
{
  const FormatInfo *f = &format_infos[t->format];
  const FormInfo *form = &form_infos[form_of(t)];
  const uint8_t *p = row_of(t, row);
  Block b = {.q = {0}};
  uint32_t per = 32 / form->bits, mask = (1u << form->bits) - 1;
  for (uint64_t at = 0; at < t->cols; at += f->elements, p += f->bytes) {
    takers[t->format].take(p, &b);
    uint32_t *words = to->words + at / per;
    for (uint32_t i = 0; i < f->elements; words++)
      for (uint32_t bit = 0; bit < 32; bit += form->bits)
        *words |= ((uint32_t)b.q[i++] & mask) << bit;
    for (uint32_t g = 0; g < f->elements / form->group; g++) {
      to->scales[at / form->group + g] = f16_bits(b.scale[g]);
      if (form->mins)
        to->mins[at / form->group + g] = f16_bits(b.min[g]);
    }
  }
}

/* The parts of a matrix on the host, on their way. */
typedef struct Packed { uint32_t *w; uint16_t *scales, *mins; float *row_scales; size_t w_bytes, group_bytes, row_bytes; } Packed;

/* Rows from `from` to before `to` of the tensors below each other, by one thread. */
typedef struct Share { const Tensor *const *tensors; const Matrix *m; const Packed *p; uint64_t from, to; int status; Fail fail; } Share;

static bool
is_f8(Form f)
{
  return f == FORM_F8 || f == FORM_F8_BLOCKS;
}

static size_t
row_scales_count(const Matrix *m)
{
  size_t rows = (size_t)m->rows;
  if (m->form == FORM_F8_BLOCKS)
    return (rows + TALL - 1) / TALL * (((size_t)m->cols + LONG - 1) / LONG);
  return m->form == FORM_F8 ? rows : 0;
}

/* NULL where the row has none of its own. */
static float *
scales_of_row(const Matrix *m, float *all, uint64_t row)
{
  if (m->form == FORM_F8_BLOCKS)
    return row % TALL ? NULL : all + row / TALL * (((size_t)m->cols + LONG - 1) / LONG);
  return m->form == FORM_F8 ? all + row : NULL;
}

static void *
pack_share(void *user)
{
  Share *s = user;
  const FormInfo *form = &form_infos[s->m->form];
  size_t row_words = (size_t)s->m->cols * form->bits / 32, row_groups = form->group ? (size_t)s->m->cols / form->group : 0;
  const Tensor *const *t = s->tensors;
  uint64_t first = 0;                                    /* row of *t */
  for (uint64_t row = s->from; row < s->to && !s->status; row++) {
    for (; row - first >= (*t)->rows; t++)
      first += (*t)->rows;
    uint32_t *words = s->p->w + row * row_words;
    Row to = {words, s->p->scales + row * row_groups, s->p->mins + row * row_groups, scales_of_row(s->m, s->p->row_scales, row)};
    if (s->m->form == FORM_DENSE)
      s->status = pack_dense(*t, row - first, (uint16_t *)words, &s->fail);
    else if (is_f8(s->m->form))
      s->status = pack_f8(*t, row - first, &to, &s->fail);
    else
      pack_grouped(*t, row - first, &to);
  }
  return NULL;
}

/* Shared among the cores, as an 8B model has 2^33 numbers; a share whose thread cannot be had is packed here. */
static int
pack_rows(const Tensor *const *tensors, const Matrix *m, const Packed *p, Fail *fail)
{
  Share shares[PACKERS_MAX];
  pthread_t threads[PACKERS_MAX];
  bool runs[PACKERS_MAX] = {false};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t rows = (uint64_t)m->rows, n = rows * (uint64_t)m->cols / PACKED_ALONE + 1;
  n = cores < 1 ? 1 : n > (uint64_t)cores ? (uint64_t)cores : n;
  n = n > PACKERS_MAX ? PACKERS_MAX : n;
  for (uint64_t i = 0; i < n; i++) {
    shares[i] = (Share){.tensors = tensors, .m = m, .p = p, .from = rows * i / n, .to = rows * (i + 1) / n};
    runs[i] = i + 1 < n && !pthread_create(&threads[i], NULL, pack_share, &shares[i]);
    if (!runs[i])
      pack_share(&shares[i]);
  }
  int status = 0;
  for (uint64_t i = 0; i < n; i++) {
    if (runs[i])
      pthread_join(threads[i], NULL);
    if (shares[i].status && !status)
      *fail = shares[i].fail;
    status = status ? status : shares[i].status;
  }
  return status;
}

static int
pack(const Tensor *const *tensors, const Matrix *m, Packed *p, Fail *fail)
{
  const FormInfo *form = &form_infos[m->form];
  p->w_bytes = matrix_bytes(m);
  p->group_bytes = form->group ? (size_t)m->rows * ((size_t)m->cols / form->group) * 2 : 0;
  p->w = calloc(p->w_bytes, 1);
  p->scales = calloc(p->group_bytes + 1, 1);
  p->mins = calloc(p->group_bytes + 1, 1);
  p->row_bytes = row_scales_count(m) * sizeof *p->row_scales;
  p->row_scales = calloc(p->row_bytes + 1, 1);
  if (!p->w || !p->scales || !p->mins || !p->row_scales)
    return fail_with(fail, "tensor %.*s: no memory for %zu bytes", TEXT_ARGS(tensors[0]->name), p->w_bytes);
  return pack_rows(tensors, m, p, fail);
}

static int
send(Gpu *g, const Packed *p, const char *name, Matrix *m, Fail *fail)
{
  m->w = gpu_put(g, p->w, p->w_bytes, name, fail);
  if (!m->w || m->form == FORM_DENSE)
    return m->w ? 0 : -1;
  if (is_f8(m->form)) {
    m->scales = gpu_put(g, p->row_scales, p->row_bytes, name, fail);
    return m->scales ? 0 : -1;
  }
  m->scales = gpu_put(g, p->scales, p->group_bytes, name, fail);
  m->mins = m->scales;                                  /* a form without mins does not look at them */
  if (m->scales && form_infos[m->form].mins)
    m->mins = gpu_put(g, p->mins, p->group_bytes, name, fail);
  return m->mins ? 0 : -1;
}

static int
matrix_load(Gpu *g, const Tensor *const *tensors, int count, Matrix *out, Fail *fail)
{
  uint64_t rows = 0;
  char name[NAME_SHOWN + 1];
  Packed p = {0};
  snprintf(name, sizeof name, "%.*s", TEXT_ARGS(tensors[0]->name));
  for (int i = 0; i < count; i++) {
    if (tensors[i]->blocks && rows % TALL)
      return fail_with(fail, "tensor %s: its %llu rows are no multiple of %d", name, (unsigned long long)rows, TALL);
    rows += tensors[i]->rows;
  }
  if (rows > INT32_MAX || tensors[0]->cols % 32)
    return fail_with(fail, "tensor %s: %llu rows of %llu; rows have to be multiples of 32", name, (unsigned long long)rows,
                     (unsigned long long)tensors[0]->cols);
  *out = (Matrix){.form = form_of(tensors[0]), .rows = (int32_t)rows, .cols = (int32_t)tensors[0]->cols};
  int status = pack(tensors, out, &p, fail);
  if (!status)
    status = send(g, &p, name, out, fail);
  free(p.w);
  free(p.scales);
  free(p.mins);
  free(p.row_scales);
  return status;
}

int
linear_load(Gpu *g, const Tensor *const *tensors, int count, Linear *out, Fail *fail)
{
  *out = (Linear){.cols = (int32_t)tensors[0]->cols};
  for (int from = 0, to; from < count; from = to) {
    for (to = from + 1; to < count && form_of(tensors[to]) == form_of(tensors[from]);)
      to++;
    if (matrix_load(g, tensors + from, to - from, &out->part[out->count], fail))
      return -1;
    out->rows += out->part[out->count++].rows;
  }
  return 0;
}

TilertBuffer *
vector_load(Gpu *g, const Tensor *t, Fail *fail)
{
  char name[NAME_SHOWN + 1];
  TilertBuffer *b = NULL;
  float *values = malloc(t->cols * sizeof *values);
  snprintf(name, sizeof name, "%.*s", TEXT_ARGS(t->name));
  if (!values) {
    fail_with(fail, "tensor %s: no memory", name);
    return NULL;
  }
  tensor_row(t, 0, values);
  b = gpu_put(g, values, t->cols * sizeof *values, name, fail);
  free(values);
  return b;
}

/* ---- launches ---- */

typedef int MatvecGrouped(TilertStream *, const tile_f16 *, const uint32_t *, const tile_f16 *, const tile_f16 *, float *, const tile_f16 *, int32_t,
                          int32_t, int32_t, TilertError *);
typedef int MatvecGated(TilertStream *, const tile_f16 *, const uint32_t *, const tile_f16 *, const tile_f16 *, const float *, tile_f16 *, int32_t,
                        int32_t, int32_t, TilertError *);
typedef int ProductGrouped(TilertStream *, const tile_f16 *, const uint32_t *, const tile_f16 *, const tile_f16 *, float *, int32_t, int32_t, int32_t,
                           int32_t, int32_t, TilertError *);
typedef int WidenGrouped(TilertStream *, const uint32_t *, const tile_f16 *, const tile_f16 *, tile_f16 *, int32_t, int32_t, TilertError *);
typedef int EmbedGrouped(TilertStream *, const int32_t *, const uint32_t *, const tile_f16 *, const tile_f16 *, float *, int32_t, int32_t,
                         TilertError *);
#define GROUPED(form) {matvec_grouped_##form##_GATEDfalse, matvec_grouped_##form##_GATEDtrue, product_grouped_##form, widen_grouped_##form, embed_grouped_##form}
static const struct { MatvecGrouped *matvec; MatvecGated *gated; ProductGrouped *product; WidenGrouped *widen; EmbedGrouped *embed; } grouped[FORM_COUNT] = {
  [FORM_U4] = GROUPED(Wu4_GROUP32_MINtrue), [FORM_I8] = GROUPED(Wi8_GROUP32_MINfalse), [FORM_I8_16] = GROUPED(Wi8_GROUP16_MINfalse)};
#undef GROUPED

/* Whether it is for matvec_runs: on a GPU integers are, if there is room for what the matrix is multiplied by. */
static bool
by_runs(const Gpu *g, const Matrix *m)
{
  enum { ROOM = 32768 };                                /* as kernels.tile has it */
  return g->wide && form_infos[m->form].group && m->cols <= ROOM;
}

/* One matrix of p's, whose rows of y these are. */
static int
matvec_launch(const Gpu *g, const Matrix *m, const TokenProduct *p, float *y, TilertError *err)
{
  TilertStream *s = g->stream;
  void *w = gpu_at(m->w), *scales = gpu_at(m->scales), *mins = gpu_at(m->mins), *h = gpu_at(p->h);
  void *x = gpu_at(p->x), *gain = gpu_at(p->gain), *a = gpu_at(p->gated);
  bool gated = p->gated != NULL;
  int32_t rows = gated ? m->rows / 2 : m->rows, cols = m->cols;
#define DENSE(kernel) kernel(s, h, x, gain, w, scales, y, a, rows, cols, p->add, p->eps, err)
#define WIDE(kernel) (g->wide ? DENSE(kernel##_WIDEtrue) : DENSE(kernel##_WIDEfalse))
#define RUNS(kernel) kernel(s, h, x, gain, w, scales, mins, y, a, rows, cols, p->add, p->eps, err)
#define BY(call, kernel) (gated ? call(kernel##_NORMtrue_GATEDtrue) : gain ? call(kernel##_NORMtrue_GATEDfalse) : call(kernel##_NORMfalse_GATEDfalse))
  if (m->form == FORM_DENSE)
    return BY(WIDE, matvec_dense_Wf16_BLOCKSfalse);
  if (m->form == FORM_F8)
    return BY(WIDE, matvec_dense_Wf8e4m3_BLOCKSfalse);
  if (m->form == FORM_F8_BLOCKS)
    return BY(WIDE, matvec_dense_Wf8e4m3_BLOCKStrue);
  const bool runs = by_runs(g, m);
  if (runs && m->form == FORM_U4)
    return BY(RUNS, matvec_runs_Wu32_Sf16_Qu4_GROUP32_MINtrue);
  if (runs && m->form == FORM_I8)
    return BY(RUNS, matvec_runs_Wu32_Sf16_Qi8_GROUP32_MINfalse);
  if (runs)
    return BY(RUNS, matvec_runs_Wu32_Sf16_Qi8_GROUP16_MINfalse);
#undef BY
#undef RUNS
#undef WIDE
#undef DENSE
  if (gated)
    return grouped[m->form].gated(s, h, w, scales, mins, y, a, rows, cols, p->add, err);
  return grouped[m->form].matvec(s, h, w, scales, mins, y, a, rows, cols, p->add, err);
}

bool
linear_takes_norm(const Gpu *g, const Linear *l)
{
  for (int i = 0; i < l->count; i++)
    if (form_infos[l->part[i].form].group && !by_runs(g, &l->part[i]))
      return false;
  return true;
}

bool
linear_takes_gates(const Linear *l)
{
  return l->count == 1;
}

int
token_launch(const Gpu *g, const Linear *l, const TokenProduct *p, TilertError *err)
{
  float *y = gpu_at(p->y);
  int status = 0;
  for (int i = 0; i < l->count && !status; i++) {
    status = matvec_launch(g, &l->part[i], p, y, err);
    y = y ? y + l->part[i].rows : NULL;
  }
  return status;
}

size_t
linear_widened(const Linear *l)
{
  size_t most = 0;
  for (int i = 0; i < l->count; i++) {
    size_t bytes = (size_t)l->part[i].rows * (size_t)l->part[i].cols * sizeof(tile_f16);
    most = l->part[i].form != FORM_DENSE && bytes > most ? bytes : most;
  }
  return most;
}

/* The matrix as f16: itself, or g->widened, which it is brought to. */
static int
widen(const Gpu *g, const Matrix *m, const tile_f16 **w, TilertError *err)
{
  TilertStream *s = g->stream;
  tile_f16 *to = gpu_at(g->widened);
  *w = to;
  if (m->form == FORM_F8_BLOCKS)
    return widen_blocks(s, gpu_at(m->w), gpu_at(m->scales), to, m->rows, m->cols, err);
  if (m->form == FORM_F8)
    return widen_dense(s, gpu_at(m->w), to, m->rows, m->cols, err);
  if (m->form != FORM_DENSE)
    return grouped[m->form].widen(s, gpu_at(m->w), gpu_at(m->scales), gpu_at(m->mins), to, m->rows, m->cols, err);
  *w = gpu_at(m->w);
  return 0;
}

static const float *
row_scales(const Matrix *m)
{
  return m->form == FORM_F8 ? gpu_at(m->scales) : NULL;
}

/* Whether it is for product_pairs: integers on their way to products of warpgroups. */
static bool
by_pairs(const Gpu *g, const Matrix *m, bool gates, int32_t M)
{
  int32_t N = gates ? m->rows / 2 : m->rows;
  return g->pairs && form_infos[m->form].group && m->cols % (2 * STEP) == 0 && N % ROWS_EVEN == 0 && (!gates || M <= GATES_UNPACKED_MOST);
}

/* How many tokens a tile best has, of those there are kernels for. time: what tiles take, beside each other, on an H200; all multiprocessors make theirs
 * at a time. */
static int
tile_tokens(const Gpu *g, int32_t N, int32_t M, bool gates)
{
  static const struct { int tokens, time; } tiles[] = {{64, 15}, {128, 20}, {256, 33}};
  int64_t least = INT64_MAX, all = g->multiprocessors;
  int best = 0;
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles - gates; i++) {
    int64_t count = (N + TILE_ROWS - 1) / TILE_ROWS * (int64_t)((M + tiles[i].tokens - 1) / tiles[i].tokens), time = (count + all - 1) / all * tiles[i].time;
    if (time < least) {
      least = time;
      best = tiles[i].tokens;
    }
  }
  return best;
}

/* y (+)= h w^T or, where gated is not NULL, silu(gate) * up there. */
static int
pairs_launch(const Gpu *g, const Matrix *m, const tile_f16 *h, float *y, tile_f16 *gated, int32_t M, int32_t stride, bool add, TilertError *err)
{
  const FormInfo *form = &form_infos[m->form];
  int32_t N = gated ? m->rows / 2 : m->rows, steps = m->cols / STEP;
  size_t row_words = (size_t)m->cols / form->group * sizeof(tile_f16) / sizeof(uint64_t);
  uint64_t *scales = gpu_at(m->scales), *mins = gpu_at(m->mins), *up_scales = gated ? scales + (size_t)N * row_words : NULL;
  uint64_t *up_mins = gated ? mins + (size_t)N * row_words : NULL;
  void *w = gpu_at(m->w), *up = gated ? (char *)w + matrix_bytes(m) / 2 : NULL;
  int tile = tile_tokens(g, N, M, gated != NULL);
#define CALL(kernel) product_pairs_##kernel(g->stream, h, w, up, scales, up_scales, mins, up_mins, y, gated, M, N, steps, stride, err)
#define NARROW(form) (tile == 64 ? CALL(form##_BM64) : CALL(form##_BM128))
#define TILES(form) (tile == 256 ? CALL(form##_BM256) : NARROW(form))
#define PAIRS(form) (gated ? NARROW(form##_ADDfalse_GATEDtrue) : add ? TILES(form##_ADDtrue_GATEDfalse) : TILES(form##_ADDfalse_GATEDfalse))
  if (m->form == FORM_U4)
    return PAIRS(Wu4_Pu8_GROUP32_MINtrue);
  return m->form == FORM_I8 ? PAIRS(Wi8_Pu16_GROUP32_MINfalse) : PAIRS(Wi8_Pu16_GROUP16_MINfalse);
#undef PAIRS
#undef TILES
#undef NARROW
#undef CALL
}

static int
many_launch(const Gpu *g, const Matrix *m, const tile_f16 *h, float *y, int32_t M, int32_t stride, bool add, TilertError *err)
{
  const tile_f16 *w;
  if (by_pairs(g, m, false, M))
    return pairs_launch(g, m, h, y, NULL, M, stride, add, err);
  int status = widen(g, m, &w, err);
  if (status)
    return status;
  return (add ? product_many_ADDtrue_GATEDfalse : product_many_ADDfalse_GATEDfalse)(g->stream, h, w, NULL, row_scales(m), y, NULL, M, m->rows, m->cols,
                                                                                    stride, err);
}

int
gates_launch(const Gpu *g, const Linear *l, TilertBuffer *h, TilertBuffer *gated, int32_t M, TilertError *err)
{
  const Matrix *m = &l->part[0];
  const tile_f16 *w;
  int32_t half = m->rows / 2;
  if (by_pairs(g, m, true, M))
    return pairs_launch(g, m, gpu_at(h), NULL, gpu_at(gated), M, half, false, err);
  int status = widen(g, m, &w, err);
  return status ? status : product_many_ADDfalse_GATEDtrue(g->stream, gpu_at(h), w, w + (size_t)half * (size_t)m->cols, row_scales(m), NULL,
                                                           gpu_at(gated), M, half, m->cols, half, err);
}

static int
product_launch(const Gpu *g, const Matrix *m, const tile_f16 *h, float *y, int32_t M, int32_t stride, bool add, TilertError *err)
{
  TilertStream *s = g->stream;
  void *w = gpu_at(m->w), *scales = gpu_at(m->scales), *mins = gpu_at(m->mins);
  if (g->wide && M >= MANY_TOKENS)
    return many_launch(g, m, h, y, M, stride, add, err);
  if (m->form == FORM_DENSE)
    return product_dense_Wf16_BLOCKSfalse(s, h, w, scales, y, M, m->rows, m->cols, stride, add, err);
  if (is_f8(m->form))
    return (m->form == FORM_F8 ? product_dense_Wf8e4m3_BLOCKSfalse : product_dense_Wf8e4m3_BLOCKStrue)(s, h, w, scales, y, M, m->rows, m->cols, stride,
                                                                                                       add, err);
  return grouped[m->form].product(s, h, w, scales, mins, y, M, m->rows, m->cols, stride, add, err);
}

int
linear_launch(const Gpu *g, const Linear *l, TilertBuffer *h, TilertBuffer *y, int32_t M, int32_t stride, bool add, TilertError *err)
{
  float *to = gpu_at(y);
  int status = 0;
  if (M == 1)
    return token_launch(g, l, &(TokenProduct){.h = h, .y = y, .add = add}, err);
  for (int i = 0; i < l->count && !status; to += l->part[i++].rows)
    status = product_launch(g, &l->part[i], gpu_at(h), to, M, stride, add, err);
  return status;
}

int
embed_launch(TilertStream *s, const Matrix *m, TilertBuffer *tokens, TilertBuffer *x, int32_t M, TilertError *err)
{
  if (m->form == FORM_DENSE)
    return embed_dense_Wf16_BLOCKSfalse(s, gpu_at(tokens), gpu_at(m->w), gpu_at(m->scales), gpu_at(x), M, m->cols, err);
  if (is_f8(m->form))
    return (m->form == FORM_F8 ? embed_dense_Wf8e4m3_BLOCKSfalse : embed_dense_Wf8e4m3_BLOCKStrue)(s, gpu_at(tokens), gpu_at(m->w), gpu_at(m->scales),
                                                                                                    gpu_at(x), M, m->cols, err);
  return grouped[m->form].embed(s, gpu_at(tokens), gpu_at(m->w), gpu_at(m->scales), gpu_at(m->mins), gpu_at(x), M, m->cols, err);
}
