#include "npy.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *descr; Dtype dtype; } descrs[] = {
  {"|b1", DTYPE_I1}, {"|i1", DTYPE_I8}, {"<i2", DTYPE_I16}, {"<i4", DTYPE_I32}, {"<i8", DTYPE_I64},
  {"|u1", DTYPE_U8}, {"<u2", DTYPE_U16}, {"<u4", DTYPE_U32}, {"<u8", DTYPE_U64},
  {"<f2", DTYPE_F16}, {"<f4", DTYPE_F32}, {"<f8", DTYPE_F64},
  {"<u2", DTYPE_BF16}, {"|u1", DTYPE_E4M3}, {"|u1", DTYPE_E5M2}, /* only written */
};
enum { NDESCRS = sizeof descrs / sizeof *descrs };
static const size_t ARRAY_BYTES_MAX = (size_t)1 << 40;

/* Bytes of the elements; SIZE_MAX if there are too many. */
static size_t
shape_bytes(Dtype dtype, int ndim, const size_t *shape)
{
  size_t bytes = dtype_size(dtype);
  for (int i = 0; i < ndim; i++)
    if (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > ARRAY_BYTES_MAX)
      return SIZE_MAX;
  return bytes;
}

int
array_create(Array *a, Dtype dtype, int ndim, const size_t *shape, char *message, size_t size)
{
  size_t bytes = shape_bytes(dtype, ndim, shape);
  memset(a, 0, sizeof *a);
  a->dtype = dtype;
  a->ndim = ndim;
  a->count = 1;
  for (int i = 0; i < ndim; i++) {
    a->shape[i] = shape[i];
    a->count *= shape[i];
  }
  if (bytes == SIZE_MAX) {
    snprintf(message, size, "the array is too large");
    return -1;
  }
  a->data = calloc(bytes + 1, 1);
  if (!a->data)
    snprintf(message, size, "no memory for an array of %zu bytes", bytes);
  return a->data ? 0 : -1;
}

void
array_destroy(Array *a)
{
  free(a->data);
  memset(a, 0, sizeof *a);
}

uint64_t
array_bits(const Array *a, size_t i)
{
  uint64_t bits = 0;
  size_t n = dtype_size(a->dtype);
  memcpy(&bits, (const char *)a->data + i * n, n);
  return bits;
}

void
array_set_bits(Array *a, size_t i, uint64_t bits)
{
  size_t n = dtype_size(a->dtype);
  memcpy((char *)a->data + i * n, &bits, n);
}

double
array_get(const Array *a, size_t i)
{
  return dtype_decode(a->dtype, array_bits(a, i));
}

static int
fail(char *message, size_t size, const char *what)
{
  snprintf(message, size, "%s", what);
  return -1;
}

/* The header is a Python dict literal; the value of 'key' begins after its colon. */
static const char *
header_value(const char *header, const char *key)
{
  const char *at = strstr(header, key);
  if (!at)
    return NULL;
  at += strlen(key);
  at += strspn(at, " ");
  return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static Dtype
find_descr(const char *value)
{
  size_t n = strlen("'<f4'");
  for (int i = 0; i < NDESCRS; i++)
    if ((value[0] == '\'' || value[0] == '"') && value[n - 1] == value[0] && !strncmp(value + 1, descrs[i].descr, 3))
      return descrs[i].dtype;
  return DTYPE_NONE;
}

static int
parse_shape(const char *at, size_t *shape, int *ndim)
{
  *ndim = 0;
  if (*at++ != '(')
    return -1;
  for (;;) {
    at += strspn(at, " ,");
    if (*at == ')')
      return 0;
    if (*at < '0' || *at > '9' || *ndim == ARRAY_DIMS)
      return -1;
    char *end;
    shape[(*ndim)++] = strtoull(at, &end, 10);
    at = end;
  }
}

/* have: the bytes that follow the header. */
static int
parse_header(const char *header, size_t have, Dtype as, Array *out, char *message, size_t size)
{
  const char *descr = header_value(header, "'descr'"), *order = header_value(header, "'fortran_order'");
  const char *shape = header_value(header, "'shape'");
  size_t dims[ARRAY_DIMS];
  int ndim;
  if (!descr || !order || !shape || parse_shape(shape, dims, &ndim))
    return fail(message, size, "the .npy header is malformed");
  Dtype t = strlen(descr) >= 5 ? find_descr(descr) : DTYPE_NONE;
  if (t == DTYPE_NONE) {
    snprintf(message, size, "the .npy file's type %.8s is not one of b1, i1 to i8, u1 to u8, f2 to f8, little endian",
             descr);
    return -1;
  }
  if (as != DTYPE_NONE && as != t) {
    if (dtype_size(as) != dtype_size(t) || rt_dtype_info(t)->kind != KIND_UNSIGNED) {
      snprintf(message, size, "the .npy file holds %s and cannot be read as %s", rt_dtype_info(t)->name,
               rt_dtype_info(as)->name);
      return -1;
    }
    t = as;
  }
  if (strncmp(order, "False", 5) != 0 && ndim > 1)
    return fail(message, size, "the .npy file is in Fortran order");
  if (shape_bytes(t, ndim, dims) > have)
    return fail(message, size, "the .npy file is cut off");
  return array_create(out, t, ndim, dims, message, size);
}

int
npy_parse(const unsigned char *bytes, size_t len, Dtype as, Array *out, char *message, size_t size)
{
  memset(out, 0, sizeof *out);
  if (len < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
    return fail(message, size, "not a .npy file of version 1, 2 or 3");
  size_t start = bytes[6] == 1 ? 10 : 12, n = bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] > 1)
    n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  if (n > len - start || n > 65536)
    return fail(message, size, "the .npy header is cut off");
  char *header = malloc(n + 1);
  if (!header)
    return fail(message, size, "out of memory");
  memcpy(header, bytes + start, n);
  header[n] = 0;
  int status = parse_header(header, len - start - n, as, out, message, size);
  free(header);
  if (!status)
    memcpy(out->data, bytes + start + n, out->count * dtype_size(out->dtype));
  return status;
}

static int
read_bytes(FILE *f, unsigned char **bytes, size_t *len)
{
  long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
  if (n < 0 || n == LONG_MAX) /* what a directory says */
    return -1;
  rewind(f);
  *bytes = malloc((size_t)n + 1);
  *len = *bytes ? fread(*bytes, 1, (size_t)n, f) : 0;
  return *bytes && *len == (size_t)n ? 0 : -1;
}

int
npy_read(const char *path, Dtype as, Array *out, char *message, size_t size)
{
  unsigned char *bytes = NULL;
  size_t len = 0;
  FILE *f = fopen(path, "rb");
  memset(out, 0, sizeof *out);
  int status = f ? read_bytes(f, &bytes, &len) : -1;
  if (f)
    fclose(f);
  if (status)
    snprintf(message, size, "cannot read %s", path);
  else
    status = npy_parse(bytes, len, as, out, message, size);
  free(bytes);
  return status;
}

/* The data starts at a multiple of 64 bytes, as numpy has it. */
static size_t
write_header(unsigned char out[256], const Array *a)
{
  char *text = (char *)out + 10;
  int i = NDESCRS - 1, n;
  while (i > 0 && descrs[i].dtype != a->dtype)
    i--;
  n = sprintf(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descrs[i].descr);
  for (int d = 0; d < a->ndim; d++)
    n += sprintf(text + n, "%zu%s", a->shape[d], d + 1 < a->ndim ? ", " : a->ndim == 1 ? "," : "");
  n += sprintf(text + n, "), }");
  while ((10 + n + 1) % 64)
    text[n++] = ' ';
  text[n++] = '\n';
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (unsigned char)n;
  out[9] = (unsigned char)(n >> 8);
  return 10 + (size_t)n;
}

int
npy_write(const char *path, const Array *a, char *message, size_t size)
{
  unsigned char header[384];
  size_t n = write_header(header, a), bytes = a->count * dtype_size(a->dtype);
  FILE *f = fopen(path, "wb");
  int ok = f && fwrite(header, 1, n, f) == n && fwrite(a->data, 1, bytes, f) == bytes;
  if (f && fclose(f))
    ok = 0;
  if (!ok)
    snprintf(message, size, "cannot write %s", path);
  return ok ? 0 : -1;
}
