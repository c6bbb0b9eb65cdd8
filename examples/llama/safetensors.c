#include "safetensors.h"
#include "json.h"

static int
read_format(const Json *entry, Tensor *t, Fail *fail)
{
  const Json *dtype = json_member(entry, "dtype");
  if (!dtype || dtype->kind != JSON_STRING)
    return fail_with(fail, "tensor %.*s: it has no dtype", TEXT_ARGS(t->name));
  for (Format f = 0; f < FORMAT_COUNT; f++)
    if (*format_infos[f].safetensors && text_is(dtype->text, format_infos[f].safetensors)) {
      t->format = f;
      return 0;
    }
  return fail_with(fail, "tensor %.*s: type %.*s is unknown", TEXT_ARGS(t->name), TEXT_ARGS(dtype->text));
}

/* The last extent is a row's, what is in front of it are rows. */
static int
read_shape(const Json *entry, Tensor *t, Fail *fail)
{
  const Json *shape = json_member(entry, "shape");
  if (!shape || shape->kind != JSON_ARRAY)
    return fail_with(fail, "tensor %.*s: it has no shape", TEXT_ARGS(t->name));
  t->rows = t->cols = 1;
  for (const Json *e = shape->first; e; e = e->next) {
    uint64_t extent;
    if (!json_integer(e, &extent))
      return fail_with(fail, "tensor %.*s: an extent is no whole number", TEXT_ARGS(t->name));
    if (__builtin_mul_overflow(t->rows, t->cols, &t->rows))
      return fail_with(fail, "tensor %.*s: its size overflows", TEXT_ARGS(t->name));
    t->cols = extent;
  }
  return 0;
}

static int
read_tensor(const Json *entry, const uint8_t *data, size_t size, Tensor *t, Fail *fail)
{
  const Json *offsets = json_member(entry, "data_offsets");
  uint64_t from, to;
  t->name = entry->key;
  if (entry->kind != JSON_OBJECT)
    return fail_with(fail, "tensor %.*s: an object is expected", TEXT_ARGS(t->name));
  if (read_format(entry, t, fail) || read_shape(entry, t, fail))
    return -1;
  if (!offsets || offsets->kind != JSON_ARRAY || offsets->count != 2 || !json_integer(offsets->first, &from) ||
      !json_integer(offsets->first->next, &to) || from > to)
    return fail_with(fail, "tensor %.*s: data_offsets are no two offsets", TEXT_ARGS(t->name));
  return tensor_place(t, data, size, from, (size_t)(to - from), fail);
}

int
safetensors_read(Memory *memory, const uint8_t *bytes, size_t size, Tensors *out, Fail *fail)
{
  uint64_t head = 0;
  Json *root;
  *out = (Tensors){0};
  if (size < 8)
    return fail_with(fail, "no safetensors file: it has %zu bytes", size);
  for (int i = 0; i < 8; i++)
    head |= (uint64_t)bytes[i] << 8 * i;
  if (head > size - 8)
    return fail_with(fail, "no safetensors file, or one that is cut: a head of %llu bytes in %zu", (unsigned long long)head, size);
  if (json_read(memory, (const char *)bytes + 8, (size_t)head, &root, fail))
    return -1;
  if (root->kind != JSON_OBJECT)
    return fail_with(fail, "the head of the file is no object");
  out->at = memory_take(memory, root->count, sizeof *out->at, fail);
  if (!out->at)
    return -1;
  for (const Json *e = root->first; e; e = e->next)
    if (!text_is(e->key, "__metadata__") && read_tensor(e, bytes + 8 + head, size - 8 - (size_t)head, &out->at[out->count++], fail))
      return -1;
  return tensors_index(out, fail);
}
