/* launch_tensor.c - tensor arguments: checked as a whole, then packed into the parts that the kernel takes.
 *
 * What holds for every tensor is checked first, whatever its parts are; then what the code relies on about each part; and where a part is a
 * map, what the hardware's copies of boxes need (CUDA driver API, cuTensorMapEncodeTiled), in terms of the argument. Strides of dimensions
 * that have no second index do not matter, and become such as a map can have. */
#include "device.h"
#include "dtype.h"
#include <inttypes.h>
#include <string.h>

enum { PIECE = 16, PROMOTE_128 = 2 };            /* bytes; the driver's number of promotion to 128 bytes of L2 */
#define STRIDE_MOST (INT64_C(1) << 40)           /* bytes */

typedef struct Tensor {
  const ArgCheck *check;
  uint64_t address;
  uint32_t rank, bytes;                          /* bytes: of an element */
  int64_t extent[TILERT_MAX_RANK], stride[TILERT_MAX_RANK];
  int empty;
} Tensor;

#define WRONG(c, ...) (rt_error_set((c)->err, TILERT_E_ARGUMENT, __VA_ARGS__), launch_blame(c, TILERT_E_ARGUMENT))

/* ---- the tensor ---- */

static int
check_shape(const ArgCheck *c, const TilertTensorArg *a)
{
  if (a->rank != c->param->rank)
    return WRONG(c, "a tensor of rank %" PRIu32 " is given; the kernel takes rank %" PRIu32, a->rank, c->param->rank);
  if (!a->extents)
    return WRONG(c, "its extents are NULL");
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->extents[i] < 0 || a->extents[i] > INT32_MAX)
      return WRONG(c, "extent %" PRIu32 " is %" PRId64 ": 0 to 2^31 - 1 are possible", i, a->extents[i]);
  return TILERT_OK;
}

/* n times as much; at some point all that matters is that it is too much. */
static int64_t
times(int64_t a, int64_t n)
{
  int64_t product;
  return __builtin_mul_overflow(a, n, &product) ? INT64_MAX : product;
}

/* The stride of a dimension with one index, which nobody uses: dense, up to a multiple that maps can have. */
static int64_t
idle_stride(const Tensor *t, int64_t dense)
{
  const int64_t piece = PIECE / t->bytes;
  return dense < STRIDE_MOST / t->bytes - piece ? (dense + piece - 1) / piece * piece : piece;
}

static int
take_strides(Tensor *t, const int64_t *given)
{
  int64_t dense = 1;                             /* the stride where nothing stands in between */
  for (uint32_t i = t->rank; i-- > 0; dense = times(dense, t->extent[i] ? t->extent[i] : 1)) {
    const int last = i + 1 == t->rank;
    t->stride[i] = t->extent[i] > 1 ? (given ? given[i] : dense) : last ? 1 : idle_stride(t, dense);
    if (last && t->stride[i] != 1)
      return WRONG(t->check, "stride %" PRIu32 ", the last, is %" PRId64 " elements; it has to be 1", i, t->stride[i]);
    if (t->stride[i] < 1)
      return WRONG(t->check, "stride %" PRIu32 " is %" PRId64 " elements; it has to be positive", i, t->stride[i]);
    if (t->stride[i] >= STRIDE_MOST / t->bytes)
      return WRONG(t->check, "stride %" PRIu32 " is %" PRId64 " elements; it has to be less than 2^40 bytes", i, t->stride[i]);
  }
  return TILERT_OK;
}

/* Bytes from the first element to the end of the last one, of a tensor none of whose dimensions leads beyond its buffer. */
static uint64_t
reach_of(const Tensor *t)
{
  uint64_t last = 0;
  for (uint32_t i = 0; i < t->rank; i++)
    last += (uint64_t)(t->extent[i] - 1) * (uint64_t)t->stride[i];
  return (last + 1) * t->bytes;
}

static int
check_reach(const Tensor *t, const TilertTensorArg *a)
{
  const uint64_t size = a->buffer->bytes;
  uint64_t left = a->address <= size ? size - a->address : 0;
  for (uint32_t i = 0; i < t->rank; i++)         /* so that the sum is one of numbers below the buffer's size */
    if ((uint64_t)t->extent[i] - 1 > left / ((uint64_t)t->stride[i] * t->bytes))
      return WRONG(t->check, "it begins %" PRIu64 " bytes into a buffer of %" PRIu64 ", and %" PRId64 " times stride %" PRIu32
                   " (%" PRId64 " elements) leads beyond that", a->address, size, t->extent[i] - 1, i, t->stride[i]);
  if (a->address <= size && reach_of(t) <= left)
    return TILERT_OK;
  return WRONG(t->check, "it begins %" PRIu64 " bytes into a buffer of %" PRIu64 ", and takes %" PRIu64, a->address, size, reach_of(t));
}

static int
take_address(Tensor *t, const TilertTensorArg *a)
{
  const ArgCheck *c = t->check;
  TilertDevice *d = c->kernel->device;
  t->address = a->address;
  if (a->buffer) {
    if (launch_check_buffer(c, a->buffer))
      return TILERT_E_ARGUMENT;
    t->address += a->buffer->address;
    return t->empty ? TILERT_OK : check_reach(t, a);
  }
  if (t->empty)
    return TILERT_OK;
  if (!t->address)
    return WRONG(c, "it has elements, and its address is null");
  return d->ops->check_pointer(d, t->address, c->err) ? launch_blame(c, TILERT_E_ARGUMENT) : TILERT_OK;
}

static int
take_tensor(Tensor *t, const TilertTensorArg *a)
{
  const ArgCheck *c = t->check;
  if (!a)
    return WRONG(c, "the tensor is NULL");
  int status = check_shape(c, a);
  if (status)
    return status;
  t->rank = a->rank;
  t->bytes = dtype_size(rt_dtype_find(c->param->dtype));
  for (uint32_t i = 0; i < t->rank; i++) {
    t->extent[i] = a->extents[i];
    t->empty |= !a->extents[i];
  }
  status = take_strides(t, a->strides);
  return status ? status : take_address(t, a);
}

/* ---- its parts ---- */

/* The driver's number of an element type. Bits that no number of the driver's means travel as integers. */
static int32_t
map_type(Dtype t)
{
  static const uint8_t numbers[DTYPE_COUNT] = {
    [DTYPE_I1] = 0,   [DTYPE_I8] = 0,  [DTYPE_U8] = 0,  [DTYPE_E4M3] = 0, [DTYPE_E5M2] = 0, [DTYPE_I16] = 1, [DTYPE_U16] = 1,
    [DTYPE_U32] = 2,  [DTYPE_I32] = 3, [DTYPE_U64] = 4, [DTYPE_I64] = 5,  [DTYPE_F16] = 6,  [DTYPE_F32] = 7, [DTYPE_F64] = 8,
    [DTYPE_BF16] = 9,
  };
  return numbers[t];
}

static int32_t
map_swizzle(uint32_t bytes)
{
  return bytes ? __builtin_ctz(bytes) - 4 : 0;   /* 32, 64, 128 are 1, 2, 3 */
}

/* The last piece of a row is stored as a whole. */
static int
check_stored(const Tensor *t)
{
  const uint32_t last = t->rank - 1;
  const int64_t row = t->extent[last] * (int64_t)t->bytes;
  if (row % PIECE)
    return WRONG(t->check, "extent %" PRIu32 ", the last, is %" PRId64 " elements, %" PRId64 " bytes; stores of boxes need a multiple of "
                 "16 bytes", last, t->extent[last], row);
  return TILERT_OK;
}

static int
check_mappable(const Tensor *t)
{
  if (t->address % PIECE)
    return WRONG(t->check, "address 0x%" PRIx64 " is not a multiple of 16 bytes, which copies of boxes need", t->address);
  for (uint32_t i = 0; i + 1 < t->rank; i++)
    if (t->stride[i] * t->bytes % PIECE)
      return WRONG(t->check, "stride %" PRIu32 " is %" PRId64 " elements, %" PRId64 " bytes; copies of boxes need a multiple of 16 bytes",
                   i, t->stride[i], t->stride[i] * (int64_t)t->bytes);
  return TILERT_OK;
}

/* The map counts dimensions from the innermost. */
static int
encode(const Tensor *t, const TilertParam *p, unsigned char *at)
{
  uint64_t extents[TILERT_MAX_RANK], strides[TILERT_MAX_RANK];
  uint32_t box[TILERT_MAX_RANK], steps[TILERT_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++) {
    const uint32_t d = t->rank - 1 - i;
    extents[i] = (uint64_t)t->extent[d];
    box[i] = p->box[d];
    steps[i] = 1;
    if (i)
      strides[i - 1] = (uint64_t)t->stride[d] * t->bytes;
  }
  TilertDevice *dev = t->check->kernel->device;
  TilertTensor map = {.type = map_type(rt_dtype_find(p->dtype)), .swizzle = map_swizzle(p->swizzle), .promotion = PROMOTE_128,
                      .rank = t->rank, .address = t->address, .extents = extents, .strides = strides, .box = box, .steps = steps};
  int status = dev->ops->tensor_map(dev, &map, NULL, at, t->check->err);
  return status ? launch_blame(t->check, status) : TILERT_OK;
}

static int
pack_map(TilertLaunch *l, const Tensor *t, uint32_t param, unsigned char *at)
{
  if (t->empty) {
    l->mapless |= UINT64_C(1) << t->check->index;
    memset(at, 0, l->kernel->manifest.params[param].size);
    return TILERT_OK;
  }
  const TilertParam *p = &l->kernel->manifest.params[param];
  int status = check_mappable(t);
  if (!status && p->stored)
    status = check_stored(t);
  return status ? status : encode(t, p, at);
}

static int
not_divisible(const Tensor *t, const TilertParam *p, uint64_t value)
{
  static const char why[] = "which the kernel was compiled for";
  if (p->part == TILERT_TENSOR_BASE)
    return WRONG(t->check, "address 0x%" PRIx64 " is not a multiple of %" PRIu32 ", %s", value, p->divisible, why);
  return WRONG(t->check, "%s %" PRIu32 " is %" PRIu64 ", which is not a multiple of %" PRIu32 ", %s",
               p->part == TILERT_TENSOR_EXTENT ? "extent" : "stride", p->dim, value, p->divisible, why);
}

static int
pack_part(TilertLaunch *l, const Tensor *t, uint32_t param)
{
  const TilertParam *p = &l->kernel->manifest.params[param];
  unsigned char *at = l->blob + l->kernel->offset[param];
  l->address[param] = t->empty ? 0 : t->address;
  if (p->part == TILERT_TENSOR_MAP)
    return pack_map(l, t, param, at);
  uint64_t value = p->part == TILERT_TENSOR_BASE     ? t->address
                   : p->part == TILERT_TENSOR_EXTENT ? (uint64_t)t->extent[p->dim]
                                                     : (uint64_t)t->stride[p->dim];
  if (value % p->divisible)
    return not_divisible(t, p, value);
  memcpy(at, &value, p->size);                   /* little endian */
  return TILERT_OK;
}

int
launch_pack_tensor(TilertLaunch *l, const ArgCheck *c, const TilertArg *arg)
{
  Tensor t = {.check = c};
  if (arg->kind != TILERT_ARG_TENSOR)
    return launch_wrong_kind(c, arg);
  int status = take_tensor(&t, arg->u.tensor);
  l->mapless &= ~(UINT64_C(1) << c->index);
  for (uint32_t i = l->kernel->first[c->index]; !status && i < l->kernel->first[c->index + 1]; i++)
    status = pack_part(l, &t, i);
  return status;
}
