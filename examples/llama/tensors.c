#include "tensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const FormatInfo format_infos[FORMAT_COUNT] = {
#define FORMAT(id, name, gguf, safetensors, elements, bytes) {name, gguf, safetensors, elements, bytes},
#include "formats.def"
#undef FORMAT
};
/* Longer rows, and more of them, are taken for a lie; an index of an element then fits 31 bits in each dimension. */
static const uint64_t EXTENT_MOST = (uint64_t)1 << 31;

int
tensor_place(Tensor *t, const uint8_t *base, size_t available, uint64_t offset, size_t declared, Fail *fail)
{
  const FormatInfo *f = &format_infos[t->format];
  size_t blocks, size;
  if (!t->rows || !t->cols || t->rows > EXTENT_MOST || t->cols > EXTENT_MOST)
    return fail_with(fail, "tensor %.*s: %llu x %llu is no shape that can be used", TEXT_ARGS(t->name), (unsigned long long)t->rows,
                     (unsigned long long)t->cols);
  if (t->cols % f->elements)
    return fail_with(fail, "tensor %.*s: rows of %llu elements are no whole blocks of %u (%s)", TEXT_ARGS(t->name), (unsigned long long)t->cols,
                     f->elements, f->name);
  if (__builtin_mul_overflow(t->rows, t->cols / f->elements, &blocks) || __builtin_mul_overflow(blocks, f->bytes, &size))
    return fail_with(fail, "tensor %.*s: its size overflows", TEXT_ARGS(t->name));
  if (declared != SIZE_MAX && declared != size)
    return fail_with(fail, "tensor %.*s: %zu bytes are declared, its shape takes %zu", TEXT_ARGS(t->name), declared, size);
  if (offset > available || size > available - offset)
    return fail_with(fail, "tensor %.*s: %zu bytes at %llu lie outside of the file's %zu bytes of data", TEXT_ARGS(t->name), size,
                     (unsigned long long)offset, available);
  t->data = base + offset;
  t->size = size;
  return 0;
}

static int
compare_texts(Text a, Text b)
{
  size_t n = a.len < b.len ? a.len : b.len;
  int order = n ? memcmp(a.at, b.at, n) : 0;
  return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int
compare_names(const void *a, const void *b)
{
  return compare_texts(((const Tensor *)a)->name, ((const Tensor *)b)->name);
}

static bool
is_number(const Tensor *t)
{
  return format_infos[t->format].elements == 1 && t->format != FORMAT_F8;
}

/* The scale of `w` is called `w_scale`, or, with one for each block of 128 x 128, `w_scale_inv`. */
static int
find_scale(const Tensors *all, Tensor *t, Fail *fail)
{
  char name[NAME_SHOWN + sizeof "_scale_inv"];
  int n = snprintf(name, sizeof name, "%.*s_scale_inv", TEXT_ARGS(t->name));
  if (t->name.len > NAME_SHOWN)
    return 0;                   /* no tensor that is asked for has such a name */
  uint64_t rows = (t->rows + BLOCK_EXTENT - 1) / BLOCK_EXTENT, cols = (t->cols + BLOCK_EXTENT - 1) / BLOCK_EXTENT;
  t->scale = tensors_find(all, name);
  t->blocks = t->scale != NULL;
  if (t->blocks && (!is_number(t->scale) || t->scale->rows != rows || t->scale->cols != cols))
    return fail_with(fail, "tensor %s: %llu x %llu numbers, one for each block of %d x %d, are expected", name, (unsigned long long)rows,
                     (unsigned long long)cols, BLOCK_EXTENT, BLOCK_EXTENT);
  if (t->blocks)
    return 0;
  name[(size_t)n - strlen("_inv")] = 0;
  t->scale = tensors_find(all, name);
  if (t->scale && (!is_number(t->scale) || (t->scale->rows * t->scale->cols != 1 && t->scale->rows * t->scale->cols != t->rows)))
    return fail_with(fail, "tensor %s: one number, or one for each of %llu rows, is expected", name, (unsigned long long)t->rows);
  return 0;
}

int
tensors_index(Tensors *all, Fail *fail)
{
  if (all->count)
    qsort(all->at, all->count, sizeof *all->at, compare_names);
  for (size_t i = 1; i < all->count; i++)
    if (!compare_names(&all->at[i - 1], &all->at[i]))
      return fail_with(fail, "tensor %.*s: there are two of that name", TEXT_ARGS(all->at[i].name));
  for (size_t i = 0; i < all->count; i++)
    if (all->at[i].format == FORMAT_F8 && find_scale(all, &all->at[i], fail))
      return -1;
  return 0;
}

const Tensor *
tensors_find(const Tensors *all, const char *name)
{
  Tensor key = {.name = {name, strlen(name)}};
  return all->count ? bsearch(&key, all->at, all->count, sizeof key, compare_names) : NULL;
}
