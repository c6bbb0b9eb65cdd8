/* layouts.c - layouts as values of the language.
 *
 * A layout is written without extents: blocked(size=[1, 4], threads=[8, 4], warps=[4, 1]) says how elements are dealt out,
 * and fits any two-dimensional tile. So the value is a recipe (LayoutSpec), which is cooked where a tile or a buffer gives
 * it extents. Inside slice() the extent along the axis that is gone is not known; what a layout holds along the other
 * dimensions does not depend on it, so 1 will do, or for linear() what its own elements reach. */
#include "sema.h"

enum { PANEL_UNIT = 16 };    /* bytes of a row of panels without a swizzle */

static bool
is_shared_kind(SpecKind k)
{
  return k == LS_SWIZZLED || k == LS_PADDED || k == LS_PANELS || k == LS_OFFSETS;
}

/* ---- text ---- */

static void
text_list(Buf *b, const char *name, u32 n, const u32 *v)
{
  buf_printf(b, "%s=[", name);
  for (u32 i = 0; i < n; i++)
    buf_printf(b, "%s%u", i ? ", " : "", v[i]);
  buf_putc(b, ']');
}

static void
text_order(Buf *b, const LayoutSpec *s)
{
  for (u32 i = 0; s->has_order && i < s->rank; i++)
    buf_printf(b, "%s%d", i ? ", " : ", order=[", s->order[i]);
  buf_puts(b, s->has_order ? "])" : ")");
}

static void
text_bases(Buf *b, const LayoutSpec *s, LayoutIn in, const char *name)
{
  buf_printf(b, "%s=[", name);
  for (u32 i = 0; i < s->bases[in]; i++)
    for (u32 d = 0; d < s->rank; d++)
      buf_printf(b, "%s%u%s", d ? ", " : i ? ", [" : "[", s->base[in][i][d], d + 1 == s->rank ? "]" : "");
  buf_putc(b, ']');
}

static const char *
spec_text(Lower *L, const LayoutSpec *s)
{
  Buf b = {.arena = L->a};
  switch (s->kind) {
  case LS_BLOCKED:
    text_list(&b, "blocked(size", s->rank, s->size);
    text_list(&b, ", threads", s->rank, s->threads);
    text_list(&b, ", warps", s->rank, s->warps);
    text_order(&b, s);
    break;
  case LS_MMA:
    text_list(&b, "mma(warps", s->rank, s->warps);
    buf_putc(&b, ')');
    break;
  case LS_OPERAND:
    buf_printf(&b, "operand(%d, %s", (int)s->which, s->of->text);
    buf_puts(&b, s->bits == 8 ? ", i8)" : s->bits == 16 ? ", i16)" : s->bits == 32 ? ", i32)" : ")");
    break;
  case LS_SLICE: buf_printf(&b, "slice(%s, %d)", s->of->text, (int)s->which); break;
  case LS_SWIZZLED:
    buf_printf(&b, "swizzled(vec=%u, per_phase=%u, max_phase=%u", s->vec, s->per_phase, s->max_phase);
    text_order(&b, s);
    break;
  case LS_PADDED:
    buf_printf(&b, "padded(every=%u, pad=%u", s->every, s->pad);
    text_order(&b, s);
    break;
  case LS_PANELS:
    buf_puts(&b, "panels(");
    if (s->width)
      buf_printf(&b, "swizzle=%u", s->width > PANEL_UNIT ? s->width : 0);
    text_order(&b, s);
    break;
  case LS_LINEAR:
    text_bases(&b, s, IN_REG, "linear(reg");
    text_bases(&b, s, IN_LANE, ", lane");
    text_bases(&b, s, IN_WARP, ", warp");
    buf_putc(&b, ')');
    break;
  case LS_OFFSETS:
    text_bases(&b, s, IN_OFFSET, "linear(offset");
    buf_putc(&b, ')');
    break;
  }
  return intern(L->c, buf_str(&b));
}

/* ---- constructors ---- */

static Val
spec_made(Lower *L, Call *c, LayoutSpec *s)
{
  LayoutSpec *made = NEW(L->a, LayoutSpec);
  *made = *s;
  made->text = spec_text(L, s);
  return (Val){.kind = V_LAYOUT, .span = c->span, .layout = made};
}

/* Argument i as powers of two, one for each dimension. */
static bool
call_powers(Lower *L, Call *c, u32 i, const char *what, u32 *rank, u32 *out)
{
  i64 v[MAX_RANK];
  u32 n;
  if (!call_ints(L, c, i, what, MAX_RANK, &n, v))
    return false;
  if (!n || (*rank && n != *rank)) {
    call_error(L, c, c->args[i].span, arena_printf(L->a, "%s is a number for each of the %u dimensions", what, *rank ? *rank : 1));
    return false;
  }
  *rank = n;
  for (u32 k = 0; k < n; k++) {
    if (v[k] < 1 || v[k] > 1 << 20 || !is_pow2((u64)v[k])) {
      call_error(L, c, c->args[i].span, arena_printf(L->a, "%s are powers of two, not %lld", what, (long long)v[k]));
      return false;
    }
    out[k] = (u32)v[k];
  }
  return true;
}

static bool
call_order(Lower *L, Call *c, u32 i, LayoutSpec *s)
{
  for (u32 k = 0; k < s->rank; k++)
    s->order[k] = (int)(s->rank - 1 - k);
  if (!c->given[i])
    return true;
  Val v = c->args[i];
  if (!s->rank && (v.kind == V_LIST || v.kind == V_TUPLE) && v.list.n <= MAX_RANK)
    s->rank = v.list.n;
  s->has_order = true;
  return call_perm(L, c, i, s->rank, s->order);
}

static u64
product(u32 n, const u32 *v)
{
  u64 p = 1;
  for (u32 i = 0; i < n; i++)
    p *= v[i];
  return p;
}

Val
builtin_blocked(Lower *L, Call *c)
{
  LayoutSpec s = {.kind = LS_BLOCKED};
  if (!call_powers(L, c, 0, "sizes", &s.rank, s.size) || !call_powers(L, c, 1, "threads", &s.rank, s.threads) ||
      !call_powers(L, c, 2, "warps", &s.rank, s.warps) || !call_order(L, c, 3, &s))
    return val_poison(c->span);
  if (product(s.rank, s.threads) != 32)
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "a warp has 32 threads, these are %llu",
                                                          (unsigned long long)product(s.rank, s.threads)));
  return spec_made(L, c, &s);
}

Val
builtin_mma(Lower *L, Call *c)
{
  LayoutSpec s = {.kind = LS_MMA};
  if (!call_powers(L, c, 0, "warps", &s.rank, s.warps))
    return val_poison(c->span);
  if (s.rank < 2)
    return call_error(L, c, c->args[0].span, "warps is a number for each dimension of a product: two, and one for each of batches");
  return spec_made(L, c, &s);
}

static const LayoutSpec *
call_layout(Lower *L, Call *c, u32 i)
{
  if (c->args[i].kind == V_LAYOUT)
    return c->args[i].layout;
  if (c->args[i].kind != V_POISON)
    ERR(L, c->args[i].span, E_ARGUMENT, c->name, "a layout", val_str(L, c->args[i]));
  return NULL;
}

Val
builtin_operand(Lower *L, Call *c)
{
  DType dt = DT_I8;
  LayoutSpec s = {.kind = LS_OPERAND};
  if (!call_int(L, c, 0, "which operand", &s.which) || !(s.of = call_layout(L, c, 1)) || (c->given[2] && !call_dtype(L, c, 2, &dt)))
    return val_poison(c->span);
  if (s.which != 0 && s.which != 1)
    return call_error(L, c, c->args[0].span, "a dot has operands 0 and 1");
  if (s.of->kind != LS_MMA)
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "the layout of the result is mma(warps), not %s", s.of->text));
  s.rank = s.of->rank;
  if (c->given[2])
    s.bits = dtype_bits(dt);
  if (c->given[2] && s.bits != 8 && s.bits != 16 && s.bits != 32)
    return call_error(L, c, c->args[2].span, "elements of an operand have 8, 16 or 32 bits");
  return spec_made(L, c, &s);
}

Val
builtin_slice(Lower *L, Call *c)
{
  LayoutSpec s = {.kind = LS_SLICE};
  if (!(s.of = call_layout(L, c, 0)) || !call_int(L, c, 1, "the axis", &s.which))
    return val_poison(c->span);
  if (is_shared_kind(s.of->kind))
    return call_error(L, c, c->args[0].span, "a layout of shared memory is not sliced; a part of a buffer is view(s, start, extents)");
  u32 rank = s.of->rank;
  if (s.which < 0)
    s.which += rank;
  if (rank < 2 || s.which < 0 || s.which >= rank)
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "%s has %u dimension%s", s.of->text, rank, rank == 1 ? "" : "s"));
  s.rank = rank - 1;
  return spec_made(L, c, &s);
}

static bool
call_pow2(Lower *L, Call *c, u32 i, const char *what, u32 absent, u32 *out)
{
  i64 v = absent;
  if (c->given[i] && !call_int(L, c, i, what, &v))
    return false;
  *out = (u32)v;
  if (v >= 1 && v <= 1 << 20 && is_pow2((u64)v))
    return true;
  call_error(L, c, c->args[i].span, arena_printf(L->a, "%s is a power of two, not %lld", what, (long long)v));
  return false;
}

Val
builtin_swizzled(Lower *L, Call *c)
{
  LayoutSpec s = {.kind = LS_SWIZZLED};
  bool ok = call_pow2(L, c, 0, "vec", 1, &s.vec) && call_pow2(L, c, 1, "per_phase", 1, &s.per_phase) &&
            call_pow2(L, c, 2, "max_phase", 1, &s.max_phase) && call_order(L, c, 3, &s);
  return ok ? spec_made(L, c, &s) : val_poison(c->span);
}

Val
builtin_padded(Lower *L, Call *c)
{
  i64 pad;
  LayoutSpec s = {.kind = LS_PADDED, .vec = 1, .per_phase = 1, .max_phase = 1};
  if (!call_pow2(L, c, 0, "every", 1, &s.every) || !call_int(L, c, 1, "pad", &pad) || !call_order(L, c, 2, &s))
    return val_poison(c->span);
  if (pad < 1 || pad > (i64)s.every)
    return call_error(L, c, c->args[1].span, "pad is from 1 to `every` elements");
  s.pad = (u32)pad;
  return spec_made(L, c, &s);
}

Val
builtin_panels(Lower *L, Call *c)
{
  i64 swizzle = 0;
  LayoutSpec s = {.kind = LS_PANELS};
  if ((c->given[0] && !call_int(L, c, 0, "the swizzle", &swizzle)) || !call_order(L, c, 1, &s))
    return val_poison(c->span);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return call_error(L, c, c->args[0].span, arena_printf(L->a, "a swizzle is of 128, 64, 32 or 0 bytes, not %lld", (long long)swizzle));
  if (s.rank && s.order[0] + 2 < (int)s.rank)
    return call_error(L, c, c->args[1].span, "panels are along one of the last two dimensions");
  s.width = !c->given[0] ? 0 : swizzle ? (u32)swizzle : PANEL_UNIT;
  return spec_made(L, c, &s);
}

/* Argument i as elements: [[0, 1], [0, 2]], of one dimension also [1, 2]. */
static bool
call_bases(Lower *L, Call *c, u32 i, LayoutIn in, LayoutSpec *s)
{
  Val list = c->args[i];
  u32 n = list.kind == V_LIST || list.kind == V_TUPLE ? list.list.n : 0;
  s->base[in] = (u32 (*)[MAX_RANK])arena_alloc(L->a, (n + 1) * sizeof *s->base[in], _Alignof(u32));
  s->bases[in] = n;
  if (!c->given[i])
    return true;
  if ((list.kind != V_LIST && list.kind != V_TUPLE) || n > LAYOUT_MAX_BITS) {
    ERR(L, list.span, E_ARGUMENT, c->name, "a list of at most 24 elements such as [[0, 1], [0, 2]]", val_str(L, list));
    return false;
  }
  for (u32 k = 0; k < n; k++) {
    Call one = {.node = c->node, .span = c->span, .name = c->name, .args = {list.list.v[k]}, .given = {true}, .nargs = 1};
    i64 v[MAX_RANK];
    u32 rank;
    if (!call_ints(L, &one, 0, "an element's place", MAX_RANK, &rank, v))
      return false;
    if (!rank || (s->rank && rank != s->rank)) {
      call_error(L, c, list.list.v[k].span, "all elements have the same number of coordinates");
      return false;
    }
    s->rank = rank;
    for (u32 d = 0; d < rank; d++) {
      if (v[d] < 0 || v[d] >= TILE_MAX_NUMEL) {
        call_error(L, c, list.list.v[k].span, arena_printf(L->a, "%lld is not a coordinate", (long long)v[d]));
        return false;
      }
      s->base[in][k][d] = (u32)v[d];
    }
  }
  return true;
}

Val
builtin_linear(Lower *L, Call *c)
{
  LayoutSpec s = {.kind = c->given[3] ? LS_OFFSETS : LS_LINEAR};
  if (c->given[3] && (c->given[0] || c->given[1] || c->given[2]))
    return call_error(L, c, c->span, "a layout is either of registers (reg, lane, warp) or of a buffer (offset)");
  if (!call_bases(L, c, 0, IN_REG, &s) || !call_bases(L, c, 1, IN_LANE, &s) || !call_bases(L, c, 2, IN_WARP, &s) ||
      !call_bases(L, c, 3, IN_OFFSET, &s))
    return val_poison(c->span);
  if (s.kind == LS_LINEAR && s.bases[IN_LANE] != 5)
    return call_error(L, c, c->span, arena_printf(L->a, "`lane` lists 5 elements, one for each bit of a lane, not %u", s.bases[IN_LANE]));
  return spec_made(L, c, &s);
}

/* ---- use ---- */

typedef struct Fit {
  Lower *L;
  const LayoutSpec *spec;
  u32 warps, bits;                     /* of the program (0: any), of an element */
  u32 shape[MAX_RANK];                 /* 0: not known */
} Fit;

static const char *spec_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *shape, const Layout **out);

static const char *
wrong_warps(const Fit *u, u64 have)
{
  if (!u->warps || have == u->warps)
    return NULL;
  return arena_printf(u->L->a, "it is for %llu warp%s, the kernel has %u", (unsigned long long)have, have == 1 ? "" : "s", u->warps);
}

static void
known_shape(const LayoutSpec *s, u32 rank, const u32 *shape, u32 *out)
{
  for (u32 d = 0; d < rank; d++) {
    out[d] = shape[d] ? shape[d] : 1;
    for (u32 in = 0; s->kind == LS_LINEAR && !shape[d] && in < IN_COUNT; in++)
      for (u32 i = 0; i < s->bases[in]; i++)
        out[d] = s->base[in][i][d] >= out[d] ? next_pow2(s->base[in][i][d] + 1) : out[d];
  }
}

static const char *
slice_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *shape, const Layout **out)
{
  u32 whole[MAX_RANK] = {0};
  if (rank == MAX_RANK)
    return "it has too many dimensions";
  for (u32 d = 0; d <= rank; d++)
    whole[d] = d < (u32)s->which ? shape[d] : d == (u32)s->which ? 0 : shape[d - 1];
  const char *why = spec_layout(u, s->of, rank + 1, whole, out);
  if (!why)
    *out = layout_slice(u->L->c, *out, (int)s->which);
  return why;
}

static const char *
linear_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *shape, const Layout **out)
{
  Layout l = {.rank = (u8)rank};
  u64 warps = 1u << s->bases[IN_WARP];
  u32 bits = 0;
  for (u32 d = 0; d < rank; d++) {
    l.out_bits[d] = (u8)log2_u32(next_pow2(shape[d]));
    bits += l.out_bits[d];
  }
  if (bits > LAYOUT_MAX_BITS)
    return "it has too many elements";
  if (s->kind == LS_OFFSETS && s->bases[IN_OFFSET] != bits)
    return arena_printf(u->L->a, "its buffers have 2^%u elements", s->bases[IN_OFFSET]);
  for (u32 in = 0; in < IN_COUNT; in++) {
    l.in_bits[in] = (u8)s->bases[in];
    for (u32 i = 0; i < s->bases[in]; i++) {
      for (u32 d = 0; d < rank; d++)
        if (s->base[in][i][d] >> l.out_bits[d])
          return arena_printf(u->L->a, "%u is past the end of dimension %u", s->base[in][i][d], d);
      l.col[in][i] = layout_flat(&l, s->base[in][i]);
    }
  }
  *out = layout_intern(u->L->c, &l);
  return s->kind == LS_LINEAR ? wrong_warps(u, warps) : NULL;
}

static const char *
swizzled_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *shape, const Layout **out)
{
  int order[MAX_RANK];
  u32 total = 1;
  for (u32 d = 0; d < rank; d++) {
    order[d] = s->has_order ? s->order[d] : (int)(rank - 1 - d);
    total *= next_pow2(shape[d]);
  }
  u32 row = next_pow2(shape[order[0]]);
  if (s->vec > row)
    return arena_printf(u->L->a, "its rows have %u elements, fewer than vec (%u)", row, s->vec);
  if (s->every > total)
    return arena_printf(u->L->a, "it has %u elements, fewer than every (%u)", total, s->every);
  *out = layout_swizzled(u->L->c, (int)rank, shape, s->vec, s->per_phase, s->max_phase, order);
  return NULL;
}

static const char *
panels_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *shape, const Layout **out)
{
  int order[MAX_RANK];
  for (u32 d = 0; d < rank; d++)
    order[d] = s->has_order ? s->order[d] : (int)(rank - 1 - d);
  u32 bytes = shape[order[0]] * u->bits / 8, unit = s->width ? s->width : PANEL_UNIT;
  *out = s->width ? layout_panels(u->L->c, (int)rank, shape, u->bits / 8, s->width, order)
                  : layout_panels_default(u->L->c, (int)rank, shape, u->bits / 8, order[0]);
  return *out ? NULL : arena_printf(u->L->a, "its rows have %u bytes, no multiple of %u", bytes, unit);
}

static const char *
operand_layout(const Fit *u, const LayoutSpec *s, const u32 *shape, const Layout **out)
{
  u32 bits = s->bits ? s->bits : u->bits;
  if (bits != 8 && bits != 16 && bits != 32)
    return arena_printf(u->L->a, "elements of an operand have 8, 16 or 32 bits, not %u", bits);
  *out = layout_mma_operand(u->L->c, (int)s->which, (int)s->rank, shape, s->of->warps, bits);
  return wrong_warps(u, product(s->rank, s->of->warps));
}

/* The layout of spec s over these extents; else why there is none. */
static const char *
spec_layout(const Fit *u, const LayoutSpec *s, u32 rank, const u32 *unknown, const Layout **out)
{
  u32 shape[MAX_RANK] = {0};
  if (s->rank && s->rank != rank)
    return arena_printf(u->L->a, "the layout has %u dimension%s", s->rank, s->rank == 1 ? "" : "s");
  if (s->kind == LS_SLICE)
    return slice_layout(u, s, rank, unknown, out);
  known_shape(s, rank, unknown, shape);
  switch (s->kind) {
  case LS_BLOCKED:
    *out = layout_blocked(u->L->c, (int)rank, shape, s->size, s->threads, s->warps, s->order);
    return wrong_warps(u, product(rank, s->warps));
  case LS_MMA:
    *out = layout_mma(u->L->c, (int)rank, shape, s->warps);
    return wrong_warps(u, product(rank, s->warps));
  case LS_OPERAND: return operand_layout(u, s, shape, out);
  case LS_PANELS: return panels_layout(u, s, rank, shape, out);
  case LS_SWIZZLED: case LS_PADDED: return swizzled_layout(u, s, rank, shape, out);
  default: return linear_layout(u, s, rank, shape, out);
  }
}

/* The layout for a tile (shared: a buffer) of type t; false after reporting. warps 0: as many as it has. */
bool
layout_use(Lower *L, Span at, const LayoutSpec *s, const Type *t, u32 warps, bool shared, LayoutUse *out)
{
  u32 bits = type_elem_bits(t);
  Fit u = {.L = L, .spec = s, .warps = warps, .bits = bits < 8 ? 8 : bits};
  const char *why = is_shared_kind(s->kind) == shared ? NULL
                  : shared ? "it is a layout of registers" : "it is a layout of shared memory";
  *out = (LayoutUse){.pad_every = s->every, .pad = s->pad};
  if (!why)
    why = spec_layout(&u, s, t->rank, t->shape, &out->layout);
  if (!why && !layout_covers(out->layout))
    why = "some elements are left out";
  if (!why)
    return true;
  ERR(L, at, E_LAYOUT, s->text, type_str(L->c, t), why);
  return false;
}

/* x as argument i wants it (x itself if there is none); NULL after reporting. */
Value *
layout_apply(Lower *L, Call *c, u32 i, Value *x)
{
  LayoutUse use;
  if (!c->given[i])
    return x;
  const LayoutSpec *s = call_layout(L, c, i);
  if (!s || !layout_use(L, c->args[i].span, s, x->type, block_team(L->b.block).warps, false, &use))
    return NULL;
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_CONVERT_LAYOUT, 1, &x, 1, &x->type, 0);
  op_set_attr(op, (Attr){.id = AT_LAYOUT, .layout = use.layout});
  return op_result(op);
}

Val
builtin_convert_layout(Lower *L, Call *c)
{
  Value *x = call_tile(L, c, 0);
  x = x ? layout_apply(L, c, 1, x) : NULL;
  return x ? val_ir(x, c->span) : val_poison(c->span);
}

static u32
padded_place(const LayoutUse *u, u32 offset)
{
  return offset + offset / u->pad_every * u->pad;
}

/* Turns beyond one that n lanes take to reach `words` words each, from word[lane] on: the most different words in a bank. */
static u32
extra_wavefronts(const u32 *word, u32 n, u32 words)
{
  u32 most = 1;
  for (u32 bank = 0; bank < 32; bank++) {
    u32 count = 0, seen[32];
    for (u32 i = 0; i < n * words; i++) {
      u32 w = word[i / words] + i % words;
      bool is_new = w % 32 == bank;
      for (u32 k = 0; is_new && k < count; k++)
        is_new = seen[k] != w;
      if (is_new)
        seen[count++] = w;
    }
    most = count > most ? count : most;
  }
  return most - 1;
}

/* layout_bank_conflicts for a buffer with padding, by trying: padding is not linear. */
static u32
padded_conflicts(Lower *L, const LayoutUse *regs, const LayoutUse *smem, u32 vec, u32 bytes)
{
  u32 most = 0, words = vec * bytes > 4 ? vec * bytes / 4 : 1, lanes = 32 / words;
  u32 *reg = NEW_ARRAY(L->a, u32, layout_regs(regs->layout)), groups = layout_access_groups(regs->layout, smem->layout, vec, reg);
  for (u32 g = 0; g < groups; g++) {
    u32 extra = 0, r = reg[g * vec];
    for (u32 lane = 0; lane < 32; lane += lanes) {
      u32 word[32];
      for (u32 i = 0; i < lanes; i++)
        word[i] = padded_place(smem, layout_shared_offset(smem->layout, layout_eval(regs->layout, r, lane + i, 0, 0))) * bytes / 4;
      extra += extra_wavefronts(word, lanes, words);
    }
    most = extra > most ? extra : most;
  }
  return most;
}

/* Extra wavefronts of a warp's widest access, from the registers of one layout to a buffer of another. */
Val
builtin_bank_conflicts(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK];
  DType dt;
  LayoutUse regs, smem;
  const LayoutSpec *s[2] = {call_layout(L, c, 0), call_layout(L, c, 1)};
  if (!s[0] || !s[1] || !call_dtype(L, c, 2, &dt) || !call_shape(L, c, 3, &rank, shape))
    return val_poison(c->span);
  const Type *t = type_tile(L->c, type_scalar(L->c, dt), (int)rank, shape, NULL);
  if (!layout_use(L, c->args[0].span, s[0], t, 0, false, &regs) || !layout_use(L, c->args[1].span, s[1], t, 0, true, &smem))
    return val_poison(c->span);
  u32 bits = dtype_bytes(dt) * 8, vec = layout_access_vec(regs.layout, smem.layout, bits);
  while (smem.pad_every && vec > 1 && (smem.pad % vec || smem.pad_every % vec))
    vec /= 2;
  if (smem.pad_every)
    return val_const(const_int(padded_conflicts(L, &regs, &smem, vec, bits / 8)), c->span);
  return val_const(const_int(layout_bank_conflicts(regs.layout, smem.layout, vec, bits)), c->span);
}
