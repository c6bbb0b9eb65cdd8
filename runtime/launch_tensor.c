/* launch_tensor.c - tensor arguments: checked as a whole, then packed into the parts that the kernel takes.
 *
 * What holds for every tensor is checked first, whatever its parts are; then what the code relies on about each part; and where a part is a
 * map, what the hardware's copies of boxes need (CUDA driver API, cuTensorMapEncodeTiled), in terms of the argument. Strides of dimensions
 * that have no second index do not matter, and become such as a map can have.
 *
 * Views are maps, too, of what a pointer leads to, with extents and strides that are products of integers given. */
#include "device.h"
#include "dtype.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes; the driver's numbers of promotion to 128 bytes of L2, and of f32 that is rounded to tf32. */
enum { PIECE = 16, PROMOTE_128 = 2, TYPE_TF32 = 11 };
#define STRIDE_MOST (INT64_C(1) << 40)           /* bytes */
#define REACH_MOST (INT64_C(1) << 46)            /* bytes: more memory no device reaches */

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
  return d->ops->check_pointer && d->ops->check_pointer(d, t->address, c->err) ? launch_blame(c, TILERT_E_ARGUMENT) : TILERT_OK;
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

/* Whether pixels are seen through the map's window, of the tensor as it is. */
static int
check_window(const Tensor *t, const TilertParam *p)
{
  for (uint32_t i = 0; p->pixels && i + 2 < t->rank; i++) {
    const int64_t last = t->extent[i + 1] - 1 + p->upper[i];
    if (last < p->lower[i])
      return WRONG(t->check, "extent %" PRIu32 " is %" PRId64 ", and the window along it goes from %" PRId32 " to %" PRId64
                   ": it has no pixel", i + 1, t->extent[i + 1], p->lower[i], last);
  }
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
    steps[i] = p->pixels && i && i + 1 < t->rank ? p->steps[d - 1] : 1;
    if (i)
      strides[i - 1] = (uint64_t)t->stride[d] * t->bytes;
  }
  TilertDevice *dev = t->check->kernel->device;
  const int32_t type = p->tf32 ? TYPE_TF32 : map_type(rt_dtype_find(p->dtype));
  TilertTensor map = {.type = type, .swizzle = map_swizzle(p->swizzle), .promotion = PROMOTE_128, .rank = t->rank,
                      .address = t->address, .extents = extents, .strides = strides, .box = box, .steps = steps};
  int32_t lower[TILERT_MAX_RANK], upper[TILERT_MAX_RANK];
  for (uint32_t i = 0; i + 2 < t->rank; i++) {
    lower[i] = p->lower[t->rank - 3 - i];
    upper[i] = p->upper[t->rank - 3 - i];
  }
  const TilertPixels pixels = {.lower = lower, .upper = upper, .channels = box[0], .pixels = p->pixels};
  int status = dev->ops->tensor_map(dev, &map, p->pixels ? &pixels : NULL, at, t->check->err);
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
  if (!status)
    status = check_window(t, p);
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

/* ---- views: maps of what pointers lead to ---- */

/* What a launch is given, by parameter: addresses and integers. */
typedef struct Given { const TilertKernel *kernel; int64_t value[TILERT_MAX_PARAMS]; } Given;

static int64_t
product(const Given *g, const TilertProduct *x)
{
  int64_t v = x->times;
  for (uint32_t i = 0; i < x->n; i++)
    if (__builtin_mul_overflow(v, g->value[x->param[i]], &v))
      return -1;
  return v;
}

/* "M", "64 * S", "64": in names of arguments. */
static const char *
product_text(const Given *g, const TilertProduct *x, char *out, size_t n)
{
  size_t at = 0;
  *out = 0;
  if (x->times != 1 || !x->n)
    at += (size_t)snprintf(out, n, "%" PRId64, x->times);
  for (uint32_t i = 0; i < x->n && at < n; i++)
    at += (size_t)snprintf(out + at, n - at, "%s%s", at ? " * " : "", g->kernel->manifest.params[x->param[i]].name);
  return out;
}

static int
wrong_product(const ArgCheck *c, const Given *g, const TilertProduct *x, const char *what, uint32_t dim, int64_t value, const char *rule)
{
  char text[160];
  product_text(g, x, text, sizeof text);
  return WRONG(c, "it is copied in boxes, and %s %" PRIu32 " of that, %s, is %" PRId64 ": %s", what, dim, text, value, rule);
}

static int
view_extents(Tensor *t, const Given *g, const TilertParam *p)
{
  for (uint32_t d = 0; d < p->rank; d++) {
    t->extent[d] = product(g, &p->extents[d]);
    if (t->extent[d] < 1 || t->extent[d] > INT32_MAX)
      return wrong_product(t->check, g, &p->extents[d], "extent", d, t->extent[d], "1 to 2^31 - 1 are possible");
  }
  return TILERT_OK;
}

static int
view_strides(Tensor *t, const Given *g, const TilertParam *p)
{
  t->stride[p->rank - 1] = 1;
  for (uint32_t d = 0; d + 1 < p->rank; d++) {
    const int64_t s = product(g, &p->strides[d]);
    t->stride[d] = t->extent[d] > 1 ? s : PIECE / t->bytes;
    if (t->stride[d] < 1 || t->stride[d] >= STRIDE_MOST / t->bytes)
      return wrong_product(t->check, g, &p->strides[d], "stride", d, s, "1 element to 2^40 bytes are possible");
    if (t->stride[d] * t->bytes % PIECE)
      return wrong_product(t->check, g, &p->strides[d], "stride", d, s, "multiples of 16 bytes are possible");
    if (t->extent[d] == INT32_MAX && t->extent[d] > REACH_MOST / (t->stride[d] * t->bytes))   /* no end is known */
      t->extent[d] = REACH_MOST / (t->stride[d] * t->bytes);
  }
  return TILERT_OK;
}

/* The tensor that view p is a map of, as far as one is possible. */
static int
take_view(Tensor *t, const Given *g, const TilertParam *p)
{
  t->rank = p->rank;
  t->bytes = dtype_size(rt_dtype_find(p->dtype));
  t->address = (uint64_t)g->value[p->of];
  if (!t->address)
    return WRONG(t->check, "it is copied in boxes, and null");
  if (t->address % PIECE)
    return WRONG(t->check, "it is copied in boxes, and address 0x%" PRIx64 " is no multiple of 16 bytes", t->address);
  int status = view_extents(t, g, p);
  if (!status)
    status = view_strides(t, g, p);
  if (!status && p->stored)
    status = check_stored(t);
  return status ? status : check_window(t, p);
}

static ArgCheck
check_of(const TilertKernel *k, uint32_t param, TilertError *err)
{
  size_t index = 0;
  while (k->first[index + 1] <= param)
    index++;
  return (ArgCheck){k, &k->manifest.params[param], index, err};
}

/* A parameter's value in the launch's blob. */
static int64_t
packed_value(const TilertLaunch *l, uint32_t param)
{
  const TilertKernel *k = l->kernel;
  const TilertParam *p = &k->manifest.params[param];
  uint64_t v = 0;
  if (p->kind != TILERT_PARAM_POINTER && p->kind != TILERT_PARAM_SCALAR)
    return 0;
  memcpy(&v, l->blob + k->offset[param], p->size);
  const uint32_t unused = 64 - 8 * p->size;
  const int is_signed = p->kind == TILERT_PARAM_SCALAR && rt_dtype_info((Dtype)k->dtype[param])->kind == KIND_SIGNED;
  return is_signed ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

int
launch_pack_views(TilertLaunch *l, TilertError *err)
{
  const TilertKernel *k = l->kernel;
  const uint32_t first = k->first[k->nargs], n = k->manifest.nparams;
  if (!k->plan.views)
    return TILERT_OK;
  Given g = {.kernel = k};
  for (uint32_t i = 0; i < first; i++)
    g.value[i] = packed_value(l, i);
  for (uint32_t i = first; i < n; i++) {
    const TilertParam *p = &k->manifest.params[i];
    if (p->kind != TILERT_PARAM_VIEW)
      continue;
    const ArgCheck c = check_of(k, p->of, err);
    Tensor t = {.check = &c};
    int status = take_view(&t, &g, p);
    if (!status)
      status = encode(&t, p, l->blob + k->offset[i]);
    if (status)
      return status;
  }
  return TILERT_OK;
}

/* ---- does it all fit? ---- */

static int
tensor_fits(const TilertKernel *k, uint32_t index, const TilertArg *arg)
{
  const ArgCheck c = {k, &k->manifest.params[k->first[index]], index, NULL};
  Tensor t = {.check = &c};
  int fits = 1, taken = 0;
  for (uint32_t i = k->first[index]; fits && i < k->first[index + 1]; i++) {
    const TilertParam *p = &k->manifest.params[i];
    if (p->part != TILERT_TENSOR_MAP)
      continue;
    if (!taken && (arg->kind != TILERT_ARG_TENSOR || take_tensor(&t, arg->u.tensor)))
      return 1;                                  /* wrong whatever the code is: the launch says so */
    taken = 1;
    fits = !t.empty && !check_mappable(&t) && !(p->stored && check_stored(&t)) && !check_window(&t, p);
  }
  return fits;
}

static int64_t
given_value(const TilertArg *a)
{
  return a->kind == TILERT_ARG_BUFFER    ? (int64_t)tilert_buffer_address(a->u.buffer)
         : a->kind == TILERT_ARG_POINTER ? (int64_t)a->u.pointer
         : a->kind == TILERT_ARG_INT     ? a->u.i
                                         : 0;
}

int
tilert_kernel_fits(const TilertKernel *k, const TilertArg *args, size_t nargs)
{
  int fits = 1;
  if (!k || !args || nargs != k->nargs || k->plan.fits_all)
    return 1;
  Given g = {.kernel = k};
  for (uint32_t i = 0; fits && i < k->nargs; i++) {
    const TilertParam *p = &k->manifest.params[k->first[i]];
    g.value[k->first[i]] = given_value(&args[i]);
    fits = p->kind == TILERT_PARAM_TENSOR ? tensor_fits(k, i, &args[i]) : !p->nonneg || g.value[k->first[i]] >= 0;
  }
  for (uint32_t i = k->first[k->nargs]; fits && i < k->manifest.nparams; i++) {
    if (k->manifest.params[i].kind != TILERT_PARAM_VIEW)
      continue;
    const ArgCheck c = check_of(k, k->manifest.params[i].of, NULL);
    Tensor t = {.check = &c};
    fits = !take_view(&t, &g, &k->manifest.params[i]);
  }
  return fits;
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
