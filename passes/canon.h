/* canon.h - what the rule files of canon share. A rule looks at one op; when it applies it makes new ops in
 * front of it (k->b), usually replaces it, and returns true.
 *
 * Rules for editors: a rule must keep types; must make progress towards fewer, smaller or further-right ops
 * (constants right, splats and broadcasts towards their users), so that no two rules undo each other; must be
 * exact: same bits, except for fma fusion, which the IR then shows. */
#ifndef TILEC_CANON_H
#define TILEC_CANON_H
#include "internal.h"

typedef struct Canon {
  Ctx *c;
  Func *f;
  Builder b;            /* in front of the op under inspection, with its span */
  VEC(Op *) work;
  u32 head;
} Canon;
typedef bool CanonRule(Canon *k, Op *op);

/* Replace op's only result; op goes. Always true. */
bool canon_replace(Canon *k, Op *op, Value *with);
/* Replace every use of v; its users are looked at again. */
void canon_forward(Canon *k, Value *v, Value *with);
/* op was changed in place: it and its users are looked at again. Always true. */
bool canon_changed(Canon *k, Op *op);
void canon_push(Canon *k, Op *op);
/* Drop op (results unused), with everything inside. */
void canon_erase(Canon *k, Op *op);

/* ---- questions and small makers ---- */
bool value_is_splat(const Value *v);                    /* tile with all elements equal: const or splat */
Value *value_splat_scalar(Canon *k, Value *v);          /* its scalar; v itself when v is a scalar */
Value *splat_like(Canon *k, Value *scalar, const Type *shape);  /* scalar as a tile of that shape; itself for a scalar */
Op *clone_with(Canon *k, const Op *op, u32 n, Value *const *operands, const Type *result);  /* same op and attributes */

/* canon_elem.c: constants, splats, broadcasts, identities, fma */
CanonRule canon_elementwise;
/* canon_shape.c: splat, broadcast, expand_dims, reshape, permute */
CanonRule canon_shape;
/* canon_addr.c: addptr, masks of memory ops */
CanonRule canon_address;
CanonRule canon_memory;
/* canon_flow.c: if, for, while */
CanonRule canon_flow;
#endif
