/* packed.c - formats of less than a byte; see packed.h. */
#include "packed.h"
#include "fp.h"
#include <math.h>

static const PackedFormat formats[] = {
#define PACKED(name, bits, cls, exp, man) {name, bits, DC_##cls, exp, man},
#include "packed.def"
#undef PACKED
};

const PackedFormat *
packed_at(u32 i)
{
  return i < COUNT(formats) ? &formats[i] : NULL;
}

const PackedFormat *
packed_find(const char *name)
{
  for (u32 i = 0; i < COUNT(formats); i++)
    if (!strcmp(formats[i].name, name))
      return &formats[i];
  return NULL;
}

u32
packed_apart(const PackedFormat *f, u32 values)
{
  bool bytes = f->bits == 8 && !packed_is_float(f);
  return bytes || 16 % f->bits || values <= 16u / f->bits ? 1 : 16 / f->bits;
}

const PackedFormat *
packed_of(const Op *op)
{
  return packed_find(op_str(op, AT_FORMAT, ""));
}

/* ---- words ---- */

static u32
log2_up(u32 n)
{
  return log2_u32(next_pow2(n));
}

bool
packing_find(u32 n, u32 word_bits, const PackedFormat *f, Packing *out)
{
  *out = (Packing){1, word_bits / f->bits, 0, 0, word_bits % f->bits != 0};
  if (out->rows) {
    out->words = n;
    out->values = n * word_bits / f->bits;
  }
  out->word_log2 = log2_up(out->words);
  out->value_log2 = log2_up(out->values);
  return !out->rows || (n <= PACKED_ROW_MAX && n * word_bits % f->bits == 0);
}

Packing
packing_of(const Op *op)
{
  const Type *t = op->code == OP_UNPACK ? OPERAND(op, UNPACK, x)->type : op_result(op)->type;
  Packing p;
  packing_find(t->shape[t->rank - 1], dtype_bits(t->dt), packed_of(op), &p);
  return p;
}

/* The last dimension 2^bits times as long; new neighbours lie in one thread, as its lowest registers. */
static const Layout *
lengthen(Ctx *c, const Layout *l, u32 bits)
{
  Layout to = *l;
  to.out_bits[l->rank - 1] = (u8)(l->out_bits[l->rank - 1] + bits);
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++)
      to.col[in][i] = l->col[in][i] << bits;
  if (to.in_bits[IN_REG] + bits > LAYOUT_MAX_BITS)
    ctx_panic(c, "a layout of over 2^%d registers", LAYOUT_MAX_BITS);
  memmove(to.col[IN_REG] + bits, to.col[IN_REG], l->in_bits[IN_REG] * sizeof to.col[IN_REG][0]);
  for (u32 i = 0; i < bits; i++)
    to.col[IN_REG][i] = 1u << i;
  to.in_bits[IN_REG] = (u8)(to.in_bits[IN_REG] + bits);
  return layout_intern(c, &to);
}

/* l without the last dimension's coordinates. */
static const Layout *
rows_of(Ctx *c, const Type *t, const Layout *l)
{
  u32 shape[MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank - 1] = 1;
  return layout_unbroadcast(c, l, shape);
}

const Layout *
packing_words(Ctx *c, const Packing *p, const Type *words, const Layout *l)
{
  return p->rows ? lengthen(c, rows_of(c, words, l), p->word_log2) : l;
}

const Layout *
packing_values(Ctx *c, const Packing *p, const Type *words, const Layout *l)
{
  return lengthen(c, p->rows ? rows_of(c, words, l) : l, p->value_log2);
}

const Layout *
packing_back(Ctx *c, const Packing *p, const Layout *l)
{
  Layout to = *l;
  u32 bits = p->value_log2, low = (1u << bits) - 1, found = 0, n = 0;
  if (p->rows || l->out_bits[l->rank - 1] < bits)
    return NULL;
  memset(to.col, 0, sizeof to.col);
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u32 col = l->col[in][i];
      if (!(col & low))
        to.col[in][in == IN_REG ? n++ : i] = col >> bits;
      else if (in != IN_REG || !is_pow2(col) || found & col)
        return NULL;
      else
        found |= col;
    }
  if (found != low)
    return NULL;
  to.in_bits[IN_REG] = (u8)n;
  to.out_bits[l->rank - 1] = (u8)(l->out_bits[l->rank - 1] - bits);
  return layout_intern(c, &to);
}

/* ---- numbers ---- */

double
packed_decode(const PackedFormat *f, u64 bits)
{
  u64 sign = bits >> (f->bits - 1) & 1, mag = bits & ((1ull << (f->bits - 1)) - 1);
  if (!packed_is_float(f)) {
    u64 v = bits & ((1ull << f->bits) - 1);
    return f->cls == DC_I && sign ? (double)v - (double)(1u << f->bits) : (double)v;
  }
  int bias = (1 << (f->exp - 1)) - 1, e = (int)(mag >> f->man);
  u64 m = (mag & ((1u << f->man) - 1)) | (u64)(e != 0) << f->man;
  double v = ldexp((double)m, (e ? e : 1) - bias - f->man);
  return sign ? -v : v;
}

u64
packed_encode(const PackedFormat *f, double v)
{
  u64 most = (1ull << (f->bits - 1)) - 1, sign = signbit(v) && v == v ? most + 1 : 0;
  if (v != v || fabs(v) >= packed_decode(f, most))
    return most | sign;
  int bias = (1 << (f->exp - 1)) - 1, x = v == 0 ? -1000 : ilogb(v), least = 1 - bias;
  int last = (x > least ? x : least) - f->man;           /* exponent of the result's last bit */
  u64 n = (u64)nearbyint(ldexp(fabs(v), -last));
  return sign | (n + (x > least ? (u64)(x - least) << f->man : 0));
}
