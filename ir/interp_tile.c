/* interp_tile.c - ops on tiles that touch no memory: constants, shapes, elementwise, promises, dot. */
#include "interp_run.h"
#include "packed.h"
#include "sparse.h"
#include <math.h>

/* const: every element the attribute's bits */
Flow
interp_const(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r), bits = scalar_wrap(type_arith(r->type), (u64)op_int(op, AT_VALUE, 0));
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = bits;
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* arange: start, start+1, ... */
Flow
interp_arange(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r), start = (u64)op_int(op, AT_START, 0);
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = scalar_wrap(r->type->dt, start + i);
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* The same elements in the same order: expand_dims, reshape, bitcast, convert_layout. */
Flow
interp_copy(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  memcpy(out, interp_get(in, OPERAND(op, UNARY, x)), sizeof *out * type_numel(r->type));
  return FLOW_NEXT;
}

/* splat: every element x */
Flow
interp_splat(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = interp_get(in, OPERAND(op, SPLAT, x))[0];
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* out is a row-major walk over t's extents; stride[d] is how far the source moves along t's dimension d. */
static void
gather(u64 *out, const u64 *src, const Type *t, const u32 *stride)
{
  u32 at[MAX_RANK] = {0}, from = 0, n = type_numel(t);
  for (u32 i = 0; i < n; i++) {
    out[i] = src[from];
    for (int d = t->rank - 1; d >= 0; d--) {
      from += stride[d];
      if (++at[d] < t->shape[d])
        break;
      from -= stride[d] * t->shape[d];
      at[d] = 0;
    }
  }
}

static void
strides_of(const Type *t, u32 *stride)
{
  u32 s = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    stride[d] = s;
    s *= t->shape[d];
  }
}

/* broadcast: dimensions of extent 1 repeat */
Flow
interp_broadcast(Interp *in, const Op *op)
{
  const Value *x = OPERAND(op, BROADCAST, x), *r = op_result(op);
  u32 stride[MAX_RANK];
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  strides_of(x->type, stride);
  for (u32 d = 0; d < x->type->rank; d++)
    if (x->type->shape[d] == 1)
      stride[d] = 0;
  gather(out, interp_get(in, x), r->type, stride);
  return FLOW_NEXT;
}

/* permute: result dimension d is operand dimension perm[d] */
Flow
interp_permute(Interp *in, const Op *op)
{
  const Value *x = OPERAND(op, PERMUTE, x), *r = op_result(op);
  const Attr *perm = op_attr(op, AT_PERM);
  u32 from[MAX_RANK], stride[MAX_RANK];
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  strides_of(x->type, from);
  for (u32 d = 0; d < r->type->rank; d++)
    stride[d] = from[perm->ints.v[d]];
  gather(out, interp_get(in, x), r->type, stride);
  return FLOW_NEXT;
}

/* ---- elementwise ---- */
/* one operand */
Flow
interp_unary(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  const u64 *x = interp_get(in, OPERAND(op, UNARY, x));
  DType d = type_arith(r->type);
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = scalar_unary(op->code, d, x[i]);
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* two operands */
Flow
interp_binary(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  char where[96];
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  const u64 *a = interp_get(in, OPERAND(op, BINARY, a)), *b = interp_get(in, OPERAND(op, BINARY, b));
  DType d = type_arith(r->type);
  u32 n = type_numel(r->type);
  for (u32 i = 0; i < n; i++)
    if (!scalar_binary(op->code, d, a[i], b[i], &out[i]))
      return interp_fault(in, op, "integer division by zero%s", interp_where(r->type, i, where));
  return FLOW_NEXT;
}

/* fma a b c */
Flow
interp_fma(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  const u64 *a = interp_get(in, OPERAND(op, FMA, a)), *b = interp_get(in, OPERAND(op, FMA, b));
  const u64 *c = interp_get(in, OPERAND(op, FMA, c));
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = scalar_fma(r->type->dt, a[i], b[i], c[i]);
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* cmp a b */
Flow
interp_cmp(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  const u64 *a = interp_get(in, OPERAND(op, CMP, a)), *b = interp_get(in, OPERAND(op, CMP, b));
  DType d = type_arith(OPERAND(op, CMP, a)->type);
  Pred p = pred_find(op_str(op, AT_PRED, NULL));
  u32 n = type_numel(r->type);
  if (p == PRED_BAD)
    return interp_fault(in, op, "unknown predicate '%s'", op_str(op, AT_PRED, ""));
  for (u32 i = 0; out && i < n; i++)
    out[i] = scalar_cmp(p, d, a[i], b[i]);
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* select c a b */
Flow
interp_select(Interp *in, const Op *op)
{
  const Value *c = OPERAND(op, SELECT, c), *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  const u64 *cond = interp_get(in, c), *a = interp_get(in, OPERAND(op, SELECT, a)), *b = interp_get(in, OPERAND(op, SELECT, b));
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = interp_pick(cond, c, i) ? a[i] : b[i];
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* cast x */
Flow
interp_cast(Interp *in, const Op *op)
{
  const Value *x = OPERAND(op, CAST, x), *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  const u64 *from = interp_get(in, x);
  FloatRound round = cast_rounding(op);
  bool sat = op_int(op, AT_SAT, 0) != 0;
  u32 n = type_numel(r->type);
  for (u32 i = 0; out && i < n; i++)
    out[i] = scalar_cast(x->type->dt, r->type->dt, from[i], round, sat);
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* ---- strings of bits: element k of rows of n words of w bits ---- */
static u64
bits_at(const u64 *words, u32 w, u32 at, u32 n)
{
  u64 v = 0;
  for (u32 i = 0; i < n; i++)
    v |= (words[(at + i) / w] >> (at + i) % w & 1) << i;
  return v;
}

/* unpack x */
Flow
interp_unpack(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, UNPACK, x)->type, *r = op_result(op)->type;
  const PackedFormat *f = packed_of(op);
  u64 *out = interp_make(in, op, op_result(op));
  const u64 *x = interp_get(in, OPERAND(op, UNPACK, x));
  u32 words = t->shape[t->rank - 1], values = r->shape[r->rank - 1], n = type_numel(r);
  for (u32 i = 0; out && i < n; i++) {
    u64 bits = bits_at(x + i / values * words, dtype_bits(t->dt), i % values * f->bits, f->bits);
    double v = packed_decode(f, bits);
    out[i] = dtype_is_float(r->dt) ? float_encode(r->dt, v, ROUND_NEAREST, false) : scalar_wrap(r->dt, (u64)(i64)v);
  }
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* pack x */
Flow
interp_pack(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, PACK, x)->type, *r = op_result(op)->type;
  const PackedFormat *f = packed_of(op);
  u64 *out = interp_make(in, op, op_result(op));
  const u64 *x = interp_get(in, OPERAND(op, PACK, x));
  u32 values = t->shape[t->rank - 1], words = r->shape[r->rank - 1], n = type_numel(t), w = dtype_bits(r->dt);
  for (u32 i = 0; out && i < type_numel(r); i++)
    out[i] = 0;
  for (u32 i = 0; out && i < n; i++) {
    u64 bits = packed_is_float(f) ? packed_encode(f, float_decode(t->dt, x[i])) : x[i];
    for (u32 k = 0; k < f->bits; k++) {
      u32 at = i % values * f->bits + k;
      out[i / values * words + at / w] |= (bits >> k & 1) << at % w;
    }
  }
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* butterfly x */
Flow
interp_butterfly(Interp *in, const Op *op)
{
  const Type *t = op_result(op)->type;
  u64 *out = interp_make(in, op, op_result(op));
  const u64 *x = interp_get(in, OPERAND(op, BUTTERFLY, x));
  u32 axis = (u32)op_int(op, AT_AXIS, 0), mask = (u32)op_int(op, AT_MASK, 0), n = type_numel(t), stride = 1;
  for (u32 d = axis + 1; d < t->rank; d++)
    stride *= t->shape[d];
  for (u32 i = 0; out && i < n; i++) {
    u32 k = i / stride % t->shape[axis];
    out[i] = x[i + ((k ^ mask) - k) * stride];
  }
  return out ? FLOW_NEXT : FLOW_FAULT;
}

/* ---- promises ---- */
static bool
is_multiple(DType d, u64 bits, u64 of)
{
  i64 v = scalar_int(d, bits);
  u64 magnitude = v < 0 && dtype_is_signed(d) ? 0 - (u64)v : (u64)v;
  return magnitude % of == 0;
}

/* hint x: elements as they are; `divisible` is promised of the first element of each run of `contiguous` (1: of all) */
Flow
interp_hint(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  const Type *t = r->type;
  char where[96];
  if (interp_copy(in, op) == FLOW_FAULT)
    return FLOW_FAULT;
  const u64 *x = interp_get(in, r);
  i64 divisible = op_int(op, AT_DIVISIBLE, 1), run = op_int(op, AT_CONTIGUOUS, 1), equal = op_int(op, AT_CONSTANT, 1);
  u64 step = type_is_ptr(t) ? dtype_bytes(t->dt) : 1;
  u32 n = type_numel(t), last = type_is_tile(t) ? t->shape[t->rank - 1] : 1;
  if (type_is_float(t) || divisible < 1 || run < 1 || equal < 1)
    return FLOW_NEXT;
  for (u32 i = 0; i < n; i++) {
    bool first = (i % last) % (u64)run == 0;
    if (first && !is_multiple(type_arith(t), x[i], (u64)divisible))
      return interp_fault(in, op, "false promise: the value%s is not a multiple of %lld", interp_where(t, i, where),
                          (long long)divisible);
    if (!first && x[i] != scalar_wrap(type_arith(t), x[i - 1] + step))
      return interp_fault(in, op, "false promise: the value%s does not continue its run of %lld",
                          interp_where(t, i, where), (long long)run);
    if ((i % last) % (u64)equal && x[i] != x[i - 1])
      return interp_fault(in, op, "false promise: the value%s differs in its run of %lld equal ones",
                          interp_where(t, i, where), (long long)equal);
  }
  return FLOW_NEXT;
}

Flow
interp_bounded(Interp *in, const Op *op)
{
  const Type *t = op_result(op)->type;
  char where[96];
  if (interp_copy(in, op) == FLOW_FAULT)
    return FLOW_FAULT;
  const u64 *x = interp_get(in, OPERAND(op, BOUNDED, x)), *mask = op_mask(op) ? interp_get(in, op_mask(op)) : NULL;
  i64 extent = op_int(op, AT_EXTENT, 1);
  for (u32 i = 0; i < type_numel(t); i++) {
    i64 at = scalar_int(t->dt, x[i]);
    bool inside = dtype_is_signed(t->dt) ? at >= 0 && at < extent : (u64)at < (u64)extent;
    if ((!mask || mask[i]) && !inside)
      return interp_fault(in, op, "index %lld of %lld%s", (long long)at, (long long)extent, interp_where(t, i, where));
  }
  return FLOW_NEXT;
}

/* ---- dot ----
 * Every product of two inputs of at most 26 bits is exact in double, so the sum over K is taken in double and rounded once
 * to the accumulator's format: the number that hardware approximates, whatever order it adds in, and into however many parts
 * it splits f32. f64 uses fma. Integers are summed modulo 2^64 and wrapped. */
typedef struct DotShape { u32 m, n, k, rows, batches; } DotShape;   /* a has k columns, b so many rows */

/* How f32 factors become tf32: not at all, rounded, ties to even or not, or without their low bits. */
typedef enum Tf32 { TF32_NOT, TF32_AWAY, TF32_EVEN, TF32_CUT } Tf32;

static double
to_tf32(double x, Tf32 how)
{
  u64 cut = float_to_bits(DT_F32, x) & ~(u64)0x1fff;
  return how == TF32_NOT ? x : how == TF32_CUT ? float_decode(DT_F32, cut) : float_round_tf32((float)x, how == TF32_EVEN);
}

static double *
dot_reals(Interp *in, u32 which, const Type *t, const u64 *bits, Tf32 tf32)
{
  u32 n = type_numel(t);
  if (in->real_len[which] < n) {
    in->real[which] = NEW_ARRAY(in->arena, double, n);
    in->real_len[which] = n;
  }
  double *out = in->real[which];
  for (u32 i = 0; i < n; i++)
    out[i] = to_tf32(float_decode(t->dt, bits[i]), tf32);
  return out;
}

/* at: rows of b that a's columns meet; NULL: the same. */
static void
dot_real_row(const double *a, const u32 *at, const double *b, double *acc, DotShape s, bool exact)
{
  for (u32 k = 0; k < s.k; k++) {
    const double *row = b + (size_t)(at ? at[k] : k) * s.n;
    for (u32 j = 0; j < s.n; j++)
      acc[j] = exact ? acc[j] + a[k] * row[j] : fma(a[k], row[j], acc[j]);
  }
}

/* A product's operands: their types, and their elements' bits; at: for each of a, the row of b that it meets, NULL: that of its column. */
typedef struct Factors { const Type *t[3]; const u64 *bits[3]; const u32 *at; } Factors;

static void
dot_real(Interp *in, const Factors *f, u64 *out, DotShape s, Tf32 tf32)
{
  const double *a = dot_reals(in, 0, f->t[0], f->bits[0], tf32), *b = dot_reals(in, 1, f->t[1], f->bits[1], tf32);
  double *acc = dot_reals(in, 2, f->t[2], f->bits[2], TF32_NOT);
  for (u32 i = 0; i < s.m * s.batches; i++) {
    dot_real_row(a + (size_t)i * s.k, f->at ? f->at + (size_t)i * s.k : NULL, b + (size_t)(i / s.m) * s.rows * s.n, acc + (size_t)i * s.n,
                 s, f->t[0]->dt != DT_F64);
    for (u32 j = 0; j < s.n; j++)
      out[i * s.n + j] = float_encode(f->t[2]->dt, acc[(size_t)i * s.n + j], ROUND_NEAREST, false);
  }
}

static void
dot_int(const Factors *f, u64 *out, DotShape s)
{
  for (u32 i = 0; i < s.m * s.batches; i++)
    for (u32 j = 0; j < s.n; j++) {
      const u64 *column = f->bits[1] + (size_t)(i / s.m) * s.rows * s.n + j;
      u64 sum = f->bits[2][i * s.n + j];
      for (u32 k = 0; k < s.k; k++) {
        u32 row = f->at ? f->at[i * s.k + k] : k;
        sum += (u64)scalar_int(f->t[0]->dt, f->bits[0][i * s.k + k]) * (u64)scalar_int(f->t[1]->dt, column[row * s.n]);
      }
      out[i * s.n + j] = scalar_wrap(f->t[2]->dt, sum);
    }
}

static Flow
product(Interp *in, const Op *op, const Factors *f, Tf32 tf32)
{
  const Type *t = f->t[2];
  u64 *out = interp_make(in, op, op_result(op));
  if (!out)
    return FLOW_FAULT;
  DotShape s = {t->shape[t->rank - 2], t->shape[t->rank - 1], f->t[0]->shape[t->rank - 1], f->t[1]->shape[t->rank - 2], 1};
  for (int d = 0; d < t->rank - 2; d++)
    s.batches *= t->shape[d];
  u64 work = (u64)s.batches * s.m * s.n * s.k / 8;
  if (in->steps < work)
    return interp_fault(in, op, "the step limit is used up: endless loop?");
  in->steps -= work;
  if (dtype_is_float(f->t[0]->dt) && dtype_is_float(f->t[1]->dt) && dtype_is_float(t->dt))
    dot_real(in, f, out, s, tf32);
  else
    dot_int(f, out, s);
  return FLOW_NEXT;
}

static Tf32
dot_tf32(const Op *op)
{
  const Target *target = op->block->func->module->ctx->target;
  const char *prec = op_str(op, AT_PREC, "tf32");
  if (!strcmp(prec, "tf32_cut"))
    return TF32_CUT;
  if (strcmp(prec, "tf32"))
    return TF32_NOT;
  return target && target_has(target, F_CVT_TF32) ? TF32_EVEN : TF32_AWAY;
}

/* dot a b acc */
Flow
interp_dot(Interp *in, const Op *op)
{
  const Value *a = OPERAND(op, DOT, a), *b = OPERAND(op, DOT, b), *acc = OPERAND(op, DOT, acc);
  Factors f = {{a->type, b->type, acc->type}, {interp_get(in, a), interp_get(in, b), interp_get(in, acc)}};
  return product(in, op, &f, a->type->dt == DT_F32 ? dot_tf32(op) : TF32_NOT);
}

/* The rows of b that the elements of a meet; NULL with a fault if metadata is not in order. */
static const u32 *
sparse_rows(Interp *in, const Op *op, const Type *a, const Value *metadata)
{
  const Type *meta = metadata->type;
  const u64 *words = interp_get(in, metadata);
  u32 n = type_numel(a), columns = a->shape[a->rank - 1];
  char where[96];
  if (in->sparse_len < n) {
    in->sparse_row = NEW_ARRAY(in->arena, u32, n);
    in->sparse_len = n;
  }
  for (u32 i = 0; i < n; i++) {
    u32 w = i / SPARSE_HELD, column;
    if (!sparse_column((u32)words[w], i % SPARSE_HELD, &column)) {
      interp_fault(in, op, "metadata 0x%04x%s: the places of a group are not in order", (unsigned)words[w], interp_where(meta, w, where));
      return NULL;
    }
    in->sparse_row[i] = i % columns / SPARSE_HELD * SPARSE_WORD + column;
  }
  return in->sparse_row;
}

/* dot_sparse a meta b acc */
Flow
interp_dot_sparse(Interp *in, const Op *op)
{
  const Value *a = OPERAND(op, DOT_SPARSE, a), *b = OPERAND(op, DOT_SPARSE, b), *acc = OPERAND(op, DOT_SPARSE, acc);
  Factors f = {{a->type, b->type, acc->type}, {interp_get(in, a), interp_get(in, b), interp_get(in, acc)},
               sparse_rows(in, op, a->type, OPERAND(op, DOT_SPARSE, meta))};
  return f.at ? product(in, op, &f, TF32_NOT) : FLOW_FAULT;
}

Flow
interp_product(Interp *in, const Op *op, const Value *a, const Value *meta, const Value *b, const Value *acc)
{
  Factors f = {.t = {a->type, b->type, acc->type}, .bits[2] = interp_get(in, acc)};
  if (meta && !(f.at = sparse_rows(in, op, a->type, meta)))
    return FLOW_FAULT;
  f.bits[0] = type_is_shared(a->type) ? interp_shared_read(in, op, a) : interp_get(in, a);
  f.bits[1] = f.bits[0] ? interp_shared_read(in, op, b) : NULL;
  return f.bits[1] ? product(in, op, &f, a->type->dt == DT_F32 ? TF32_CUT : TF32_NOT) : FLOW_FAULT;
}
