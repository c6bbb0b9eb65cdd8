/* builtin_args.c - arguments of builtin functions by kind: integers, words, shapes, axes, types, tiles. */
#include "hints.h"
#include "sema.h"

/* Reports `name: why` at a place, with what the arguments are. */
Val
call_error(Lower *L, const Call *c, Span at, const char *why)
{
  Diag *d = ERR(L, at, E_ARGUMENTS, c->name, why);
  for (u32 i = 0; i < c->nargs; i++)
    if (c->given[i] && c->args[i].kind == V_IR)
      note_value(L, d, c->args[i]);
  note_constants(L, d, at);
  return val_poison(c->span);
}

static Diag *
bad_argument(Lower *L, const Call *c, u32 i, const char *want)
{
  Diag *d = ERR(L, c->args[i].span, E_ARGUMENT, c->name, want, val_str(L, c->args[i]));
  note_source(L, d, c->args[i]);
  if (c->args[i].kind == V_NONE && c->args[i].from.hi)
    hint_none(L, d, c->args[i]);
  return d;
}

static bool
bad(Lower *L, const Call *c, u32 i, const char *want)
{
  if (c->args[i].kind != V_POISON)
    bad_argument(L, c, i, want);
  return false;
}

/* Argument i as a compile-time integer. */
bool
call_int(Lower *L, Call *c, u32 i, const char *what, i64 *out)
{
  Val v = c->args[i];
  if (v.kind == V_IR) {
    not_constant(L, v, what);
    return false;
  }
  if (v.kind != V_CONST || const_is_float(v.k) || const_is_bool(v.k))
    return bad(L, c, i, arena_printf(L->a, "an integer for %s", what));
  *out = v.k.i;
  return true;
}

/* Argument i as compile-time true or false; `absent` if not given. */
bool
call_bool(Lower *L, Call *c, u32 i, bool absent, bool *out)
{
  *out = absent;
  if (!c->given[i])
    return true;
  if (c->args[i].kind != V_CONST || !const_is_bool(c->args[i].k))
    return bad(L, c, i, "true or false here");
  *out = c->args[i].k.i != 0;
  return true;
}

/* Argument i as extents: [64, 32], or one number for one dimension. */
bool
call_shape(Lower *L, Call *c, u32 i, u32 *rank, u32 *shape)
{
  Val v = c->args[i], one[1] = {v};
  bool is_list = v.kind == V_LIST || v.kind == V_TUPLE;
  const Val *items = is_list ? v.list.v : one;
  *rank = is_list ? v.list.n : 1;
  for (u32 k = 0; k < *rank && k < MAX_RANK; k++) {
    Val e = items[k];
    if (e.kind == V_IR) {
      not_constant(L, e, "an extent");
      return false;
    }
    if (e.kind != V_CONST || const_is_float(e.k) || const_is_bool(e.k))
      return e.kind != V_POISON && bad(L, c, i, "extents like [64, 32]");
    shape[k] = e.k.i < 0 ? 0 : e.k.i > TILE_MAX_NUMEL ? TILE_MAX_NUMEL + 1 : (u32)e.k.i;
  }
  return shape_check(L, v.span, *rank, shape);
}

/* Argument i as an axis of t, counted from the end when negative. */
bool
call_axis(Lower *L, Call *c, u32 i, const Type *t, int *axis)
{
  i64 a;
  if (!call_int(L, c, i, "the axis", &a))
    return false;
  if (a >= -(i64)t->rank && a < (i64)t->rank) {
    *axis = (int)(a < 0 ? a + t->rank : a);
    return true;
  }
  note_value(L, ERR(L, c->args[i].span, E_AXIS, (long long)a, type_str(L->c, t)), c->args[0]);
  return false;
}

/* The one of the space-separated words that is closest to s, NULL if none is close. */
static const char *
close_word(Lower *L, const char *s, const char *words)
{
  const char *list[16];
  u32 n = 0;
  for (; *words && n < COUNT(list); words += strspn(words, " ")) {
    size_t len = strcspn(words, " ");
    list[n++] = arena_strndup(L->a, words, len);
    words += len;
  }
  return diag_suggest(s, list, n);
}

/* Argument i as one of the space-separated words; `absent` (may be NULL) if not given. */
bool
call_word(Lower *L, Call *c, u32 i, const char *words, const char *absent, const char **out)
{
  *out = absent;
  if (!c->given[i])
    return true;
  if (c->args[i].kind == V_STR)
    for (const char *s = words; *s; s += strspn(s, " ")) {
      size_t n = strcspn(s, " ");
      if (strlen(c->args[i].str) == n && !strncmp(s, c->args[i].str, n)) {
        *out = c->args[i].str;
        return true;
      }
      s += n;
    }
  if (c->args[i].kind != V_STR)
    return bad(L, c, i, arena_printf(L->a, "one of the strings: %s", words));
  Diag *d = ERR(L, c->args[i].span, E_ARGUMENT, c->name, arena_printf(L->a, "one of the strings: %s", words),
                arena_printf(L->a, "\"%s\"", c->args[i].str));
  const char *advice = hint_find(HINT_WORD, c->args[i].str), *close = advice ? NULL : close_word(L, c->args[i].str, words);
  if (advice)
    diag_hint(L->c, d, "%s", advice);
  else if (close)
    diag_hint(L->c, d, "did you mean \"%s\"?", close);
  return false;
}

/* Argument i as a list of n integers, or one integer. */
bool
call_ints(Lower *L, Call *c, u32 i, const char *what, u32 most, u32 *n, i64 *out)
{
  Val v = c->args[i], one[1] = {v};
  bool is_list = v.kind == V_LIST || v.kind == V_TUPLE;
  const Val *items = is_list ? v.list.v : one;
  *n = is_list ? v.list.n : 1;
  if (*n > most)
    return bad(L, c, i, arena_printf(L->a, "at most %u integers for %s", most, what));
  for (u32 k = 0; k < *n; k++) {
    if (items[k].kind == V_IR) {
      not_constant(L, items[k], what);
      return false;
    }
    if (items[k].kind != V_CONST || const_is_float(items[k].k) || const_is_bool(items[k].k))
      return items[k].kind != V_POISON && bad(L, c, i, arena_printf(L->a, "integers for %s", what));
    out[k] = items[k].k.i;
  }
  return true;
}

/* Argument i as an order of all `rank` dimensions. */
bool
call_perm(Lower *L, Call *c, u32 i, u32 rank, int *perm)
{
  u32 seen = 0;
  Val list = c->args[i];
  bool ok = (list.kind == V_LIST || list.kind == V_TUPLE) && list.list.n == rank;
  for (u32 k = 0; ok && k < rank; k++) {
    Val v = list.list.v[k];
    ok = v.kind == V_CONST && !const_is_float(v.k) && !const_is_bool(v.k) && v.k.i >= 0 && v.k.i < rank && !(seen >> v.k.i & 1);
    if (ok) {
      perm[k] = (int)v.k.i;
      seen |= 1u << v.k.i;
    }
  }
  if (!ok)
    note_value(L, ERR(L, list.span, E_ARGUMENTS, c->name, "the order lists every dimension once, like [1, 0]"), c->args[0]);
  return ok;
}

/* Argument i as i1 data; NULL in *out if it is not given, or true everywhere. */
bool
call_mask(Lower *L, Call *c, u32 i, Value **out)
{
  *out = NULL;
  if (!c->given[i])
    return true;
  Val v = c->args[i];
  if (!val_is_data(v) || val_is_ptr(v) || val_num(v) != DT_I1) {
    if (v.kind != V_POISON)
      diag_hint(L->c, bad_argument(L, c, i, "an i1 mask"), "a mask is a comparison: mask=i < n");
    return false;
  }
  if (v.kind == V_CONST && v.k.i)
    return true;
  *out = val_value(L, v);
  return true;
}

/* Argument i as a shared buffer of numbers (opaque: of mbarriers) that is alive; row: a row of them will do. */
static Value *
call_shared(Lower *L, Call *c, u32 i, bool row, bool opaque)
{
  Val v = c->args[i];
  if (v.kind != V_BUFFER || val_is_mbarrier(v) != opaque) {
    bad(L, c, i, opaque ? "an mbarrier" : "a shared buffer");
    return NULL;
  }
  if (!buffer_alive(L, v.span, v.ir))
    return NULL;
  if (!v.ir->type->count || row)
    return v.ir;
  ERR(L, v.span, E_ROW, arena_printf(L->a, "%s needs one buffer; pick one of this row of %u with [i]", c->name, v.ir->type->count));
  return NULL;
}

Value *
call_buffer(Lower *L, Call *c, u32 i, bool row)
{
  return call_shared(L, c, i, row, false);
}

Value *
call_tensor(Lower *L, Call *c, u32 i)
{
  if (c->args[i].kind == V_TENSOR)
    return c->args[i].ir;
  bad(L, c, i, "a tensor");
  return NULL;
}

/* v as an i32, or NULL. */
static Value *
coordinate(Lower *L, Val v)
{
  Const k;
  if (v.kind == V_CONST && !const_is_float(v.k) && const_cast(v.k, DT_I32, ROUND_NEAREST, false, &k))
    return val_value(L, val_const(k, v.span));
  return v.kind == V_IR && v.ir->type == type_scalar(L->c, DT_I32) ? v.ir : NULL;
}

bool
call_indices(Lower *L, Call *c, u32 i, u32 want, const char *one, const char *of, Values *out)
{
  Val v = c->args[i];
  const Val *items = val_is_list(v) ? v.list.v : &v;
  u32 n = val_is_list(v) ? v.list.n : 1;
  if (v.kind == V_POISON)
    return false;
  if (n != want) {
    const char *many = n == 1 ? "" : "s", *dims = want == 1 ? "" : "s";
    call_error(L, c, v.span, arena_printf(L->a, "%u %s%s in %s of %u dimension%s", n, one, many, of, want, dims));
    return false;
  }
  for (u32 k = 0; k < n; k++) {
    L->b.span = c->span;
    Value *x = coordinate(L, items[k]);
    if (!x) {
      if (items[k].kind != V_POISON)
        ERR(L, items[k].span, E_ARGUMENT, c->name, arena_printf(L->a, "i32 %ss", one), val_str(L, items[k]));
      return false;
    }
    vec_push(L->a, out, x);
  }
  return true;
}

bool
call_coordinates(Lower *L, Call *c, u32 i, const Type *t, Values *out)
{
  return call_indices(L, c, i, t->rank, "coordinate", "a tensor", out);
}

Value *
call_mbarrier(Lower *L, Call *c, u32 i, bool row)
{
  return call_shared(L, c, i, row, true);
}

/* Argument i as a scalar type. */
bool
call_dtype(Lower *L, Call *c, u32 i, DType *out)
{
  if (c->args[i].kind != V_TYPE || c->args[i].type->kind != TY_SCALAR)
    return bad(L, c, i, "a scalar type such as f32");
  *out = c->args[i].type->dt;
  return true;
}

/* Argument i as a format of packed elements. */
const PackedFormat *
call_format(Lower *L, Call *c, u32 i)
{
  Val v = c->args[i];
  const PackedFormat *f = NULL;
  if (v.kind == V_FORMAT)
    return v.format;
  if (v.kind == V_TYPE && v.type->kind == TY_SCALAR)
    f = packed_find(v.type->dt == DT_I1 ? "u1" : dtype_info[v.type->dt].name);
  if (!f)
    bad(L, c, i, "a format such as i4, u3 or f4e2m1");
  return f;
}

/* Argument i as a run-time tile. */
Value *
call_tile(Lower *L, Call *c, u32 i)
{
  if (val_is_tile(c->args[i]))
    return c->args[i].ir;
  bad(L, c, i, "a tile");
  return NULL;
}

/* Argument i as a pointer or tile of pointers. */
Value *
call_pointer(Lower *L, Call *c, u32 i)
{
  if (val_is_ptr(c->args[i]))
    return c->args[i].ir;
  bad(L, c, i, "a pointer or a tile of pointers");
  return NULL;
}

/* Argument 0 as one truth value; reports. */
bool
call_truth(Lower *L, Call *c)
{
  Val v = c->args[0];
  if (val_is_data(v) && !val_is_ptr(v) && !val_is_tile(v) && val_num(v) == DT_I1)
    return true;
  if (v.kind != V_POISON)
    ERR(L, v.span, E_CONDITION, val_str(L, v));
  return false;
}
