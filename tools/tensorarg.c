#include "tensorarg.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "argspec.h"

unsigned
tensorarg_rank(const char *type, char element[64])
{
  static const char head[] = "tensor<";
  const char *comma = strchr(type, ',');
  if (strncmp(type, head, sizeof head - 1) != 0 || !comma)
    return 0;
  snprintf(element, 64, "%.*s", (int)(comma - type - (long)(sizeof head - 1)), type + sizeof head - 1);
  return (unsigned)strtoul(comma + 1, NULL, 10);
}

/* The part's extents in place of the array's. */
static int
take_part(const Array *a, const char *part, TensorView *out, char *message, size_t size)
{
  size_t shape[ARRAY_DIMS];
  int n = argspec_shape(part, shape);
  if (n != a->ndim) {
    snprintf(message, size, "%s is no shape of %d dimensions", part, a->ndim);
    return -1;
  }
  for (int i = 0; i < n; i++) {
    if (shape[i] > a->shape[i]) {
      snprintf(message, size, "%s is larger than the array, whose dimension %d has %zu", part, i, a->shape[i]);
      return -1;
    }
    out->extents[i] = (int64_t)shape[i];
  }
  return 0;
}

int
tensorarg_view(const Array *a, unsigned rank, const char *part, TensorView *out, char *message, size_t size)
{
  int64_t stride = 1;
  if (rank > TILERT_MAX_RANK || (unsigned)a->ndim != rank) {
    snprintf(message, size, "the kernel takes a tensor of rank %u, the array has %d dimensions", rank, a->ndim);
    return -1;
  }
  for (unsigned i = rank; i-- > 0; stride *= (int64_t)a->shape[i]) {
    out->extents[i] = (int64_t)a->shape[i];
    out->strides[i] = stride;
  }
  out->arg = (TilertTensorArg){.rank = rank, .extents = out->extents, .strides = out->strides};
  return part ? take_part(a, part, out, message, size) : 0;
}
