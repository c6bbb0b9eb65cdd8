/* builtin_packed.c - unpack and pack: tiles of words as strings of bits, and the numbers in them. */
#include "sema.h"

static const Type *
with_last(Lower *L, const Type *t, DType elem, u32 extent)
{
  u32 shape[MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank - 1] = extent;
  return type_tile(L->c, type_scalar(L->c, elem), t->rank, shape, NULL);
}

static Value *
packed_op(Lower *L, OpCode code, Value *x, const PackedFormat *f, const Type *t)
{
  Op *op = op_create(&L->b, code, 1, &x, 1, &t, 0);
  op_set_str(op, AT_FORMAT, f->name);
  return op_result(op);
}

static bool
is_truth_type(Val v)
{
  return v.kind == V_TYPE && v.type->dt == DT_I1;
}

/* What a format's elements are when nothing is said: all numbers of it fit. */
static DType
natural_dtype(const PackedFormat *f)
{
  if (!packed_is_float(f))
    return f->cls == DC_U ? DT_U8 : DT_I8;
  return f->exp < 5 ? DT_F16 : DT_F32;
}

/* What an unpack op gives directly, on the way to dt. */
static DType
unpacked_dtype(const PackedFormat *f, DType dt)
{
  if (dtype_is_int(dt) && !packed_is_float(f))
    return dt;
  return dt == DT_F16 || dt == DT_BF16 ? dt : dtype_is_float(dt) || packed_is_float(f) ? DT_F32 : natural_dtype(f);
}

static Val
uneven(Lower *L, Call *c, const Type *t, const PackedFormat *f)
{
  Diag *d = ERR(L, c->args[0].span, E_ARGUMENTS, c->name,
                arena_printf(L->a, "a row of %s holds no whole number of %s", type_str(L->c, t), f->name));
  diag_note(L->c, d, c->args[1].span, "the last dimension is a string of bits; %u bits an element", f->bits);
  return val_poison(c->span);
}

Val
builtin_unpack(Lower *L, Call *c)
{
  Value *x = call_tile(L, c, 0);
  const PackedFormat *f = x ? call_format(L, c, 1) : NULL;
  Packing p;
  if (!f)
    return val_poison(c->span);
  DType dt = is_truth_type(c->args[1]) ? DT_I1 : natural_dtype(f);
  if (c->given[2] && !call_dtype(L, c, 2, &dt))
    return val_poison(c->span);
  const Type *t = x->type;
  if (!type_is_int(t)) {
    ERR(L, c->args[0].span, E_ARGUMENT, c->name, "words: a tile of integers", val_str(L, c->args[0]));
    return val_poison(c->span);
  }
  u32 last = t->shape[t->rank - 1];
  if (!packing_find(last, dtype_bits(t->dt), f, &p))
    return uneven(L, c, t, f);
  const Type *r = with_last(L, t, unpacked_dtype(f, dt), last / p.words * p.values);
  if (!shape_check(L, c->span, r->rank, r->shape))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(value_cast(L, packed_op(L, OP_UNPACK, x, f, r), dt), c->span);
}

/* x within the range of an integer format. */
static Value *
clamped(Lower *L, Value *x, const PackedFormat *f)
{
  u64 ones = (1ull << (f->bits - (f->cls == DC_I))) - 1;
  DType dt = x->type->dt;
  bool is_signed = dtype_is_signed(dt);
  Value *most = ir_const_int(&L->b, x->type, (i64)ones), *least = ir_const_int(&L->b, x->type, f->cls == DC_I ? -(i64)ones - 1 : 0);
  if (is_signed)
    x = ir_binary(&L->b, OP_MAX, x, least);
  return ones < (~0ull >> (64 - dtype_bits(dt) + is_signed)) ? ir_binary(&L->b, OP_MIN, x, most) : x;
}

/* x as numbers that a pack op takes; NULL after reporting. */
static Value *
packable(Lower *L, Call *c, Value *x, const PackedFormat *f, bool sat)
{
  DType dt = x->type->dt;
  if (type_is_ptr(x->type) || dtype_is_float(dt) != packed_is_float(f)) {
    Diag *d = ERR(L, c->args[0].span, E_ARGUMENT, c->name, packed_is_float(f) ? "floats" : "integers", val_str(L, c->args[0]));
    if (!type_is_ptr(x->type))
      diag_note(L->c, d, c->args[0].span, "conversions are written: %s(...)", packed_is_float(f) ? "f32" : "i32");
    return NULL;
  }
  L->b.span = c->span;
  if (dt == DT_I1)
    return value_cast(L, x, DT_U8);
  if (dtype_is_float(dt) && dt != DT_F16 && dt != DT_BF16)
    return value_cast(L, x, DT_F32);
  return sat && !packed_is_float(f) ? clamped(L, x, f) : x;
}

Val
builtin_pack(Lower *L, Call *c)
{
  DType word = DT_U8;
  bool sat;
  Packing p;
  Value *x = call_tile(L, c, 0);
  const PackedFormat *f = x ? call_format(L, c, 1) : NULL;
  if (!f || (c->given[2] && !call_dtype(L, c, 2, &word)) || !call_bool(L, c, 3, false, &sat))
    return val_poison(c->span);
  if (!dtype_is_int(word)) {
    ERR(L, c->args[2].span, E_ARGUMENT, c->name, "an integer type for the words", val_str(L, c->args[2]));
    return val_poison(c->span);
  }
  const Type *t = x->type;
  u32 n = t->shape[t->rank - 1], bits = n * f->bits, words = bits / dtype_bits(word);
  if (bits % dtype_bits(word) || !packing_find(words, dtype_bits(word), f, &p))
    return call_error(L, c, c->args[0].span,
                      arena_printf(L->a, "a row of %u elements of %s is no whole number of %s", n, f->name, dtype_info[word].name));
  x = packable(L, c, x, f, sat);
  return x ? val_ir(packed_op(L, OP_PACK, x, f, with_last(L, t, word, words)), c->span) : val_poison(c->span);
}
