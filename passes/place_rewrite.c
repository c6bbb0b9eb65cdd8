/* place_rewrite.c - assign_layout's last part: put the chosen layouts into the types, rebuild rematerialisable values in
 * every layout in which they are wanted, insert convert_layout for the others, note vector widths on memory
 * operations. */
#include "place.h"
#include "remarks.h"

/* ---- values in layouts, remembered: a value is rebuilt or converted once per layout, next to its definition ---- */

typedef struct Made { const Value *v; const Layout *l; Value *as; struct Made *next; } Made;
struct Rebuilt { Made **slot; u32 mask; };

static Made **
made_slot(const Place *p, const Value *v, const Layout *l)
{
  return &p->rebuilt->slot[(v->id * 0x9e3779b1u ^ l->id * 0x85ebca6bu) >> 7 & p->rebuilt->mask];
}

static Value *
made_find(const Place *p, const Value *v, const Layout *l)
{
  for (Made *m = *made_slot(p, v, l); m; m = m->next)
    if (m->v == v && m->l == l)
      return m->as;
  return NULL;
}

static Value *
made_add(Place *p, const Value *v, const Layout *l, Value *as)
{
  Made *m = NEW(p->c->scratch, Made), **slot = made_slot(p, v, l);
  *m = (Made){v, l, as, *slot};
  *slot = m;
  return as;
}

typedef struct Want { Value *v; const Layout *l; } Want;
typedef struct Wants { VEC(Want) list; } Wants;

/* Ask for the tile operands that are not there yet; true if there were any. */
static bool
want_operands(Place *p, Wants *w, Want want)
{
  const Op *op = want.v->def;
  u32 before = w->list.len;
  for (u32 i = 0; i < op->noperands; i++) {
    Value *x = op_operand(op, i);
    if (!x || !type_is_tile(x->type))
      continue;
    const Layout *l = place_operand_layout(p, op, i, want.l);
    if (!made_find(p, x, l))
      vec_push(p->c->scratch, &w->list, ((Want){x, l}));
  }
  return w->list.len > before;
}

static void
clone_in(Place *p, Value *v, const Layout *l)
{
  Op *op = v->def;
  Value *xs[4] = {0};
  for (u32 i = 0; i < op->noperands; i++) {
    Value *x = op_operand(op, i);
    xs[i] = x && type_is_tile(x->type) ? made_find(p, x, place_operand_layout(p, op, i, l)) : x;
  }
  const Type *t = type_with_layout(p->c, v->type, l);
  Builder b = builder_before(op);
  b.span = op->span;
  Op *copy = op_like(&b, op, op->noperands, xs, &t);
  op_result(copy)->name = v->name;
  made_add(p, v, l, op_result(copy));
}

/* Operands first, by a list instead of recursion: chains may be long. */
static Value *
rebuild(Place *p, Value *v, const Layout *l)
{
  Wants w = {0};
  if (!made_find(p, v, l))
    vec_push(p->c->scratch, &w.list, ((Want){v, l}));
  while (w.list.len) {
    Want top = w.list.data[w.list.len - 1];
    if (made_find(p, top.v, top.l))
      w.list.len--;
    else if (!want_operands(p, &w, top))
      clone_in(p, top.v, top.l);
  }
  return made_find(p, v, l);
}

/* v in layout l for `user`; a conversion stands in the block of v's definition, in front of the first user there. */
static Value *
in_layout(Place *p, Value *v, const Layout *l, Op *user)
{
  if (v->id < p->nvalues && p->remat[v->id])
    return rebuild(p, v, l);
  if (v->type->layout == l)
    return v;
  Value *have = made_find(p, v, l);
  if (have)
    return have;
  Builder b = builder_before(op_ancestor_in(user, value_block(v)));
  b.span = user->span;
  Value *x = ir_convert_layout(&b, v, l);
  x->name = v->name;
  return made_add(p, v, l, x);
}

/* ---- ops ---- */

static const Layout *
var_layout(const Place *p, u32 var)
{
  const Var *v = p->vars.data[var];
  return v->cand[v->chosen];
}

static void
set_layout(Place *p, Value *v, const Layout *l)
{
  v->type = type_with_layout(p->c, v->type, l);
}

static void
place_operands(Place *p, Op *op, u32 from, u32 to, const Layout *l)
{
  for (u32 i = from; i < to; i++) {
    Value *v = op_operand(op, i);
    if (v && type_is_tile(v->type))
      op_set_operand(op, i, in_layout(p, v, place_operand_layout(p, op, i, l), op));
  }
}

static const Layout *
carried_layout(const Place *p, const Op *op, u32 k)
{
  const Value *r = op->results[k];
  return type_is_tile(r->type) ? var_layout(p, place_var(p, r)) : NULL;
}

static void
place_region_op(Place *p, Op *op)
{
  for (u32 k = 0; k < op->nresults; k++) {
    const Layout *l = carried_layout(p, op, k);
    if (!l)
      continue;
    if (op_is_loop(op))
      place_operands(p, op, loop_first_init(op) + k, loop_first_init(op) + k + 1, l);
    set_layout(p, op->results[k], l);
    for (u32 r = 0; op_is_loop(op) && r < op->nregions; r++)
      set_layout(p, loop_arg(op, r, k), l);
  }
}

/* Accumulators and the values that they become: each its own. */
static void
place_wait(Place *p, Op *op)
{
  for (u32 k = 0; k < op->nresults; k++) {
    const Layout *l = carried_layout(p, op, k);
    place_operands(p, op, k, k + 1, l);
    set_layout(p, op->results[k], l);
  }
}

static void
place_terminator(Place *p, Op *end)
{
  const Op *owner = end->block->parent;
  if (!owner || op_on_elements(owner))
    return;
  for (u32 k = 0; k < owner->nresults; k++) {
    const Layout *l = carried_layout(p, owner, k);
    u32 i = yield_first(end) + k;
    if (l)
      place_operands(p, end, i, i + 1, l);
  }
}

static void
place_op(Op *op, void *user)
{
  Place *p = user;
  if (op_is_loop(op) || op->code == OP_IF)
    place_region_op(p, op);
  else if (op_has(op, T_TERM))
    place_terminator(p, op);
  else if (op->code == OP_WGMMA_WAIT)
    place_wait(p, op);
  u32 var = place_op_var(p, op);
  if (var == NO_VAR)
    return;
  const Layout *l = var_layout(p, var);
  place_operands(p, op, 0, op->noperands, l);
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type))
      set_layout(p, op->results[i], place_value_layout(p, op->results[i], l));
}

static void
set_vec(const Place *p, const MemOp *m)
{
  u32 vec = place_mem_vec(m, op_pointer(m->op)->type->layout);
  if (vec > 1)
    op_set_int(m->op, AT_VEC, vec);
  if (op_access_bytes(m->op, p->c->target) == 16)
    remark_narrow(p->c, p->f, m, vec);
}

/* What rematerialisable values were before they were rebuilt. */
static void
drop_originals(Block *b)
{
  for (Op *op = b->last, *prev; op; op = prev) {
    prev = op->prev;
    for (u32 r = op->nregions; r-- > 0;)
      drop_originals(op->regions[r]);
    bool tile = op->nresults == 1 && type_is_tile(op_result(op)->type);
    if (tile && op_has(op, T_PURE) && value_unused(op_result(op)))
      op_remove(op);
  }
}

typedef struct OpList { VEC(Op *) ops; Arena *arena; } OpList;

static void
collect(Op *op, void *user)
{
  OpList *list = user;
  vec_push(list->arena, &list->ops, op);
}

void
place_rewrite(Place *p)
{
  OpList list = {.arena = p->c->scratch};   /* taken before anything is inserted */
  p->rebuilt = NEW(p->c->scratch, struct Rebuilt);
  p->rebuilt->mask = next_pow2(p->nvalues + 16) - 1;
  p->rebuilt->slot = NEW_ARRAY(p->c->scratch, Made *, p->rebuilt->mask + 1);
  func_walk(p->f, collect, &list);
  for (u32 i = 0; i < list.ops.len; i++)
    place_op(list.ops.data[i], p);
  for (u32 i = 0; i < p->mems.len; i++)
    set_vec(p, p->mems.data[i]);
  drop_originals(p->f->body);
}
