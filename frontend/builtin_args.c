/* builtin_args.c - arguments of builtin functions by kind: integers, words, shapes, axes, types, tiles. */
#include "sema.h"

/* Reports `name: why` at a place. */
Val
call_error(Lower *L, const Call *c, Span at, const char *why)
{
  ERR(L, at, E_ARGUMENTS, c->name, why);
  return val_poison(c->span);
}

static bool
bad(Lower *L, const Call *c, u32 i, const char *want)
{
  if (c->args[i].kind != V_POISON)
    ERR(L, c->args[i].span, E_ARGUMENT, c->name, want, val_str(L, c->args[i]));
  return false;
}

/* Argument i as a compile-time integer. */
bool
call_int(Lower *L, Call *c, u32 i, const char *what, i64 *out)
{
  Val v = c->args[i];
  if (v.kind == V_IR) {
    ERR(L, v.span, E_NOT_CONST, what);
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
      ERR(L, e.span, E_NOT_CONST, "an extent");
      return false;
    }
    if (e.kind != V_CONST || const_is_float(e.k) || const_is_bool(e.k))
      return e.kind != V_POISON && bad(L, c, i, "extents like [64, 32]");
    shape[k] = e.k.i < 0 ? 0 : e.k.i > TILE_NUMEL_MAX ? TILE_NUMEL_MAX + 1 : (u32)e.k.i;
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
  ERR(L, c->args[i].span, E_AXIS, (long long)a, type_str(L->c, t));
  return false;
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
  return bad(L, c, i, arena_printf(L->a, "one of the strings: %s", words));
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
