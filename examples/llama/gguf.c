#include "gguf.h"
#include <string.h>

enum { MAGIC = 0x46554747, RANK_MOST = 4, KEY_LONGEST = 65535 };

/* What is left to be read. Nothing is read past the end; the first thing that is missing sets `short_`, and zeros come from there on. */
typedef struct Cursor { const uint8_t *begin, *at, *end; bool short_; } Cursor;

static const uint8_t *
take(Cursor *c, uint64_t n)
{
  if (c->short_ || n > (uint64_t)(c->end - c->at)) {
    c->short_ = true;
    return NULL;
  }
  c->at += n;
  return c->at - n;
}

static uint64_t
take_number(Cursor *c, size_t bytes)
{
  uint64_t v = 0;
  const uint8_t *p = take(c, bytes);
  for (size_t i = 0; p && i < bytes; i++)
    v |= (uint64_t)p[i] << 8 * i;
  return v;
}

static Text
take_text(Cursor *c)
{
  uint64_t len = take_number(c, 8);
  const uint8_t *p = take(c, len);
  return (Text){(const char *)p, p ? (size_t)len : 0};
}

/* Bytes of a value; 0: not of a fixed size. */
static size_t
type_size(GgufType t)
{
  static const uint8_t sizes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[t];
}

static int
take_type(Cursor *c, Text key, GgufType *out, Fail *fail)
{
  uint64_t type = take_number(c, 4);
  if (type >= GGUF_TYPES)
    return fail_with(fail, "metadata %.*s: %llu is no type of a value", TEXT_ARGS(key), (unsigned long long)type);
  *out = (GgufType)type;
  return 0;
}

static int
take_strings(Memory *memory, Cursor *c, GgufValue *v, Fail *fail)
{
  if (v->count > (uint64_t)(c->end - c->at) / 8)          /* each has at least its length: no memory for what cannot be there */
    return fail_with(fail, "metadata %.*s: %llu strings are more than the file holds", TEXT_ARGS(v->key), (unsigned long long)v->count);
  Text *all = memory_take(memory, (size_t)v->count, sizeof *all, fail);
  if (!all)
    return -1;
  for (uint64_t i = 0; i < v->count; i++)
    all[i] = take_text(c);
  v->strings = all;
  return 0;
}

static int
take_value(Memory *memory, Cursor *c, GgufValue *v, Fail *fail)
{
  v->key = take_text(c);
  if (v->key.len > KEY_LONGEST)
    return fail_with(fail, "metadata: a key of %zu bytes", v->key.len);
  if (take_type(c, v->key, &v->type, fail))
    return -1;
  v->count = 1;
  if (v->type == GGUF_ARRAY) {
    v->is_array = true;
    if (take_type(c, v->key, &v->type, fail))
      return -1;
    v->count = take_number(c, 8);
    if (v->type == GGUF_ARRAY)
      return fail_with(fail, "metadata %.*s: arrays of arrays are not read", TEXT_ARGS(v->key));
  }
  if (v->type == GGUF_STRING)
    return take_strings(memory, c, v, fail);
  uint64_t bytes;
  if (__builtin_mul_overflow(v->count, type_size(v->type), &bytes))
    return fail_with(fail, "metadata %.*s: its size overflows", TEXT_ARGS(v->key));
  v->at = take(c, bytes);
  return 0;
}

static int
take_values(Memory *memory, Cursor *c, Gguf *g, Fail *fail)
{
  g->values = memory_take(memory, g->nvalues, sizeof *g->values, fail);
  for (size_t i = 0; g->values && i < g->nvalues; i++) {
    if (take_value(memory, c, &g->values[i], fail))
      return -1;
    if (c->short_)
      return fail_with(fail, "metadata %.*s: the file ends within value %zu of %zu", TEXT_ARGS(g->values[i].key), i + 1, g->nvalues);
  }
  return g->values ? 0 : -1;
}

/* offset is kept in size until the data's beginning is known. */
static int
take_tensor(Cursor *c, Tensor *t, uint64_t *offset, Fail *fail)
{
  uint64_t extents[RANK_MOST] = {1, 1, 1, 1};
  t->name = take_text(c);
  uint64_t rank = take_number(c, 4);
  if (rank > RANK_MOST)
    return fail_with(fail, "tensor %.*s: %llu dimensions", TEXT_ARGS(t->name), (unsigned long long)rank);
  for (uint64_t i = 0; i < rank; i++)
    extents[i] = take_number(c, 8);
  t->cols = extents[0];
  if (__builtin_mul_overflow(extents[1], extents[2], &t->rows) || __builtin_mul_overflow(t->rows, extents[3], &t->rows))
    return fail_with(fail, "tensor %.*s: its size overflows", TEXT_ARGS(t->name));
  uint64_t type = take_number(c, 4);
  *offset = take_number(c, 8);
  for (Format f = 0; f < FORMAT_COUNT; f++)
    if (format_infos[f].gguf == (int64_t)type) {
      t->format = f;
      return 0;
    }
  return fail_with(fail, "tensor %.*s: type %llu is unknown", TEXT_ARGS(t->name), (unsigned long long)type);
}

static int
take_tensors(Cursor *c, Tensors *all, uint64_t *offsets, Fail *fail)
{
  for (size_t i = 0; i < all->count; i++) {
    if (take_tensor(c, &all->at[i], &offsets[i], fail))
      return -1;
    if (c->short_)
      return fail_with(fail, "tensor %.*s: the file ends within entry %zu of %zu of the table", TEXT_ARGS(all->at[i].name), i + 1, all->count);
  }
  return 0;
}

/* The data begins behind the table, aligned, and so does each tensor in it. */
static int
place_tensors(const Cursor *c, Gguf *g, const uint64_t *offsets, Fail *fail)
{
  uint64_t align;
  if (gguf_integer(g, "general.alignment", 32, &align, fail))
    return -1;
  if (!align || align > 1 << 20 || (align & (align - 1)))
    return fail_with(fail, "metadata general.alignment: %llu is no alignment", (unsigned long long)align);
  size_t size = (size_t)(c->end - c->begin), start = (size_t)(c->at - c->begin);
  start = (start + align - 1) & ~(size_t)(align - 1);
  for (size_t i = 0; i < g->tensors.count; i++) {
    Tensor *t = &g->tensors.at[i];
    if (offsets[i] % align)
      return fail_with(fail, "tensor %.*s: its offset %llu is no multiple of %llu", TEXT_ARGS(t->name), (unsigned long long)offsets[i],
                       (unsigned long long)align);
    if (tensor_place(t, c->begin + (start < size ? start : size), start < size ? size - start : 0, offsets[i], SIZE_MAX, fail))
      return -1;
  }
  return tensors_index(&g->tensors, fail);
}

bool
gguf_looks_so(const uint8_t *bytes, size_t size)
{
  return size >= 4 && !memcmp(bytes, "GGUF", 4);
}

int
gguf_read(Memory *memory, const uint8_t *bytes, size_t size, Gguf *out, Fail *fail)
{
  Cursor c = {bytes, bytes, bytes + size, false};
  *out = (Gguf){0};
  if (take_number(&c, 4) != MAGIC)
    return fail_with(fail, "no GGUF file: it does not begin with GGUF");
  uint64_t version = take_number(&c, 4), ntensors = take_number(&c, 8), nvalues = take_number(&c, 8);
  if (c.short_)
    return fail_with(fail, "the file ends within its head");
  if (version < 2 || version > 3)
    return fail_with(fail, "GGUF version %llu is not read, versions 2 and 3 are", (unsigned long long)version);
  if (ntensors > size / 24 || nvalues > size / 13)          /* what an entry takes at least */
    return fail_with(fail, "%llu tensors and %llu values are more than %zu bytes hold", (unsigned long long)ntensors,
                     (unsigned long long)nvalues, size);
  out->nvalues = (size_t)nvalues;
  out->tensors.count = (size_t)ntensors;
  out->tensors.at = memory_take(memory, out->tensors.count, sizeof *out->tensors.at, fail);
  uint64_t *offsets = memory_take(memory, out->tensors.count, sizeof *offsets, fail);
  if (!out->tensors.at || !offsets || take_values(memory, &c, out, fail) || take_tensors(&c, &out->tensors, offsets, fail))
    return -1;
  return place_tensors(&c, out, offsets, fail);
}

const GgufValue *
gguf_find(const Gguf *g, const char *key)
{
  for (size_t i = 0; i < g->nvalues; i++)
    if (text_is(g->values[i].key, key))
      return &g->values[i];
  return NULL;
}

static uint64_t
bits_at(const uint8_t *at, size_t bytes)
{
  Cursor c = {at, at, at + bytes, false};
  return take_number(&c, bytes);
}

int64_t
gguf_element(const GgufValue *v, uint64_t i)
{
  size_t n = type_size(v->type);
  uint64_t bits = bits_at(v->at + i * n, n);
  if ((v->type == GGUF_I8 || v->type == GGUF_I16 || v->type == GGUF_I32) && bits >> (8 * n - 1))
    bits |= ~(uint64_t)0 << 8 * n;
  return (int64_t)bits;
}

static bool
is_integer(const GgufValue *v)
{
  return !v->is_array && v->type != GGUF_STRING && v->type != GGUF_F32 && v->type != GGUF_F64;
}

int
gguf_integer(const Gguf *g, const char *key, uint64_t otherwise, uint64_t *out, Fail *fail)
{
  const GgufValue *v = gguf_find(g, key);
  *out = otherwise;
  if (!v)
    return 0;
  if (!is_integer(v) || gguf_element(v, 0) < 0)
    return fail_with(fail, "metadata %s: a whole number is expected", key);
  *out = (uint64_t)gguf_element(v, 0);
  return 0;
}

int
gguf_real(const Gguf *g, const char *key, double otherwise, double *out, Fail *fail)
{
  const GgufValue *v = gguf_find(g, key);
  *out = otherwise;
  if (!v)
    return 0;
  if (v->is_array || (v->type != GGUF_F32 && v->type != GGUF_F64))
    return fail_with(fail, "metadata %s: a real number is expected", key);
  uint64_t bits = bits_at(v->at, type_size(v->type));
  float single;
  uint32_t low = (uint32_t)bits;
  memcpy(&single, &low, sizeof single);
  if (v->type == GGUF_F32)
    *out = (double)single;
  else
    memcpy(out, &bits, sizeof *out);
  return 0;
}
