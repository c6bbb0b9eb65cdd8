#include "npy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct { const char *descr; Dtype dtype; } descrs[] = {
  {"|b1", DTYPE_I1}, {"|i1", DTYPE_I8}, {"<i2", DTYPE_I16}, {"<i4", DTYPE_I32}, {"<i8", DTYPE_I64},
  {"|u1", DTYPE_U8}, {"<u2", DTYPE_U16}, {"<u4", DTYPE_U32}, {"<u8", DTYPE_U64},
  {"<f2", DTYPE_F16}, {"<f4", DTYPE_F32}, {"<f8", DTYPE_F64},
  {"<u2", DTYPE_BF16}, {"|u1", DTYPE_E4M3}, {"|u1", DTYPE_E5M2}, /* only written */
};
enum { NDESCRS = sizeof descrs / sizeof *descrs };
static const size_t ARRAY_BYTES_MAX = (size_t)1 << 40, HEADER_MAX = 65536;

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

/* How many of the first n characters a terminal may see. */
static size_t
printable(const char *s, size_t n)
{
  size_t i = 0;
  while (i < n && s[i] >= ' ' && s[i] <= '~')
    i++;
  return i;
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
    snprintf(message, size, "the .npy file's type %.*s is not one of b1, i1 to i8, u1 to u8, f2 to f8, little endian",
             (int)printable(descr, 8), descr);
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

/* Where the header starts, and its length, by the first 10 or, from version 2, 12 bytes. */
static void
header_extent(const unsigned char *bytes, size_t *start, size_t *n)
{
  *start = bytes[6] == 1 ? 10 : 12;
  *n = bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] > 1)
    *n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
}

int
npy_parse(const unsigned char *bytes, size_t len, Dtype as, Array *out, char *message, size_t size)
{
  memset(out, 0, sizeof *out);
  if (len < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
    return fail(message, size, "not a .npy file of version 1, 2 or 3");
  size_t start, n;
  header_extent(bytes, &start, &n);
  if (n > len - start || n > HEADER_MAX)
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

/* Behind the header, at most the elements. have: how many bytes there are, as far as that is known. */
static int
read_array(FILE *f, size_t have, Dtype as, Array *out, char *message, size_t size)
{
  unsigned char head[12];
  char *header = NULL;
  size_t start, n;
  int status = fread(head, 1, 10, f) == 10 && !memcmp(head, "\x93NUMPY", 6) && head[6] >= 1 && head[6] <= 3 ? 0 : -1;
  if (!status && head[6] > 1)
    status = fread(head + 10, 1, 2, f) == 2 ? 0 : -1;
  if (status)
    return fail(message, size, "not a .npy file of version 1, 2 or 3");
  header_extent(head, &start, &n);
  if (n > HEADER_MAX || start > have || n > have - start)
    return fail(message, size, "the .npy header is cut off");
  header = malloc(n + 1);
  if (!header)
    return fail(message, size, "out of memory");
  status = fread(header, 1, n, f) == n ? 0 : fail(message, size, "the .npy header is cut off");
  header[n] = 0;
  if (!status)
    status = parse_header(header, have - start - n, as, out, message, size);
  free(header);
  size_t bytes = status ? 0 : out->count * dtype_size(out->dtype);
  if (bytes && fread(out->data, 1, bytes, f) != bytes) {
    array_destroy(out);
    status = fail(message, size, "the .npy file is cut off");
  }
  return status;
}

int
npy_read(const char *path, Dtype as, Array *out, char *message, size_t size)
{
  struct stat st;
  FILE *f = fopen(path, "rb");
  memset(out, 0, sizeof *out);
  if (!f || fstat(fileno(f), &st) || S_ISDIR(st.st_mode)) {
    snprintf(message, size, "cannot read %s: %s", path, strerror(f && S_ISDIR(st.st_mode) ? EISDIR : errno));
    if (f)
      fclose(f);
    return -1;
  }
  int status = read_array(f, S_ISREG(st.st_mode) ? (size_t)st.st_size : SIZE_MAX, as, out, message, size);
  fclose(f);
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
  struct stat st;
  int ordinary = f && !fstat(fileno(f), &st) && S_ISREG(st.st_mode);
  int ok = f && fwrite(header, 1, n, f) == n && fwrite(a->data, 1, bytes, f) == bytes;
  if (f && fclose(f))
    ok = 0;
  if (ok)
    return 0;
  snprintf(message, size, "cannot write %s: %s", path, strerror(errno));
  if (ordinary)
    unlink(path);                      /* half an array is worse than none */
  return -1;
}
