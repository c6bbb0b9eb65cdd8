/* place_vars.c - assign_layout's first part: which values are rematerialisable, which share a variable, where edges run. */
#include "place.h"
#include "stride.h"
#include "packed.h"
#include "wgmma.h"

/* ---- rematerialisable values ---- */

bool
op_is_shape(const Op *op)
{
  return op->code == OP_BROADCAST || op->code == OP_EXPAND_DIMS || op->code == OP_RESHAPE || op->code == OP_PERMUTE;
}

static bool
is_elementwise(const Op *op)
{
  return op_has(op, T_ELEM | T_PURE);
}

/* Its operands and results are better in one layout: a network of exchanges moves as a whole, or not at all. */
static bool
keeps_layout(const Op *op)
{
  return is_elementwise(op) || op->code == OP_MAP || op_has(op, T_EXCHANGE);
}

static bool
op_is_remat(const Place *p, const Op *op)
{
  if (op->code != OP_CONST && op->code != OP_ARANGE && op->code != OP_SPLAT && !is_elementwise(op) && !op_is_shape(op))
    return false;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    if (v && type_is_tile(v->type) && !p->remat[v->id])
      return false;
  }
  return !op_result(op)->type->layout;
}

static void
mark_remat(Op *op, void *user)
{
  Place *p = user;
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type))
      p->remat[op->results[i]->id] = op_is_remat(p, op);
}

/* ---- variables, by union-find ---- */

static u32
find(const Place *p, u32 v)
{
  while (p->parent[v] != v)
    v = p->parent[v] = p->parent[p->parent[v]];
  return v;
}

u32
place_var(const Place *p, const Value *v)
{
  return p->var_of[v->id] == NO_VAR ? NO_VAR : find(p, p->var_of[v->id]);
}

u32
place_op_var(const Place *p, const Op *op)
{
  return op->mark == NO_VAR ? NO_VAR : find(p, op->mark);
}

static u32
var_new(Place *p, const Type *shape, const Block *b)
{
  Var *v = NEW(p->c->scratch, Var);
  v->type = shape;
  v->team = block_team(b);
  u32 id = p->vars.len;
  vec_push(p->c->scratch, &p->vars, v);
  p->parent[id] = id;
  return id;
}

static void
unite(Place *p, u32 a, u32 b)
{
  a = find(p, a);
  b = find(p, b);
  if (a < b)
    p->parent[b] = a;
  else
    p->parent[a] = b;
}

static bool
wants_var(const Place *p, const Value *v)
{
  return v && type_is_tile(v->type) && (v->id >= p->nvalues || !p->remat[v->id]);
}

static void
set_var(Place *p, const Value *v, u32 var, bool member)
{
  p->var_of[v->id] = var;
  p->member[v->id] = member;
}

static const Type *
first_tile(const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && type_is_tile(op_operand(op, i)->type))
      return op_operand(op, i)->type;
  return NULL;
}

/* Loop-carried values and if results: one variable per position. */
static void
region_vars(Place *p, Op *op)
{
  for (u32 k = 0; k < op->nresults; k++) {
    Value *r = op->results[k];
    if (!type_is_tile(r->type))
      continue;
    u32 var = var_new(p, r->type, op->block);
    set_var(p, r, var, true);
    for (u32 i = 0; op_is_loop(op) && i < op->nregions; i++)
      set_var(p, loop_arg(op, i, k), var, true);
  }
}

/* Accumulators that become values, each for itself. */
static void
wait_vars(Place *p, Op *op)
{
  for (u32 k = 0; k < op->nresults; k++)
    set_var(p, op->results[k], var_new(p, op->results[k]->type, op->block), true);
}

/* The result is the accumulator operand where it is. */
static bool
adds_in_place(const Op *op)
{
  return op->code == OP_PENDING || op->code == OP_WGMMA;
}

static void
make_vars(Op *op, void *user)
{
  Place *p = user;
  op->mark = NO_VAR;
  if (op_is_loop(op) || op->code == OP_IF) {
    region_vars(p, op);
    return;
  }
  if (op->code == OP_WGMMA_WAIT) {
    wait_vars(p, op);
    return;
  }
  const Value *r = op->nresults ? op_result(op) : NULL;
  bool by_operand = op->code == OP_REDUCE || op->code == OP_UNPACK || !r;
  const Type *shape = by_operand ? first_tile(op) : r->type;
  if (op_has(op, T_TERM) || !shape || !type_is_tile(shape) || (!by_operand && !wants_var(p, r)))
    return;
  op->mark = var_new(p, shape, op->block);
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type))
      set_var(p, op->results[i], op->mark, keeps_layout(op) || adds_in_place(op));
}

static void
unite_member(Place *p, u32 var, const Value *v)
{
  if (v && type_is_tile(v->type) && p->member[v->id])
    unite(p, var, p->var_of[v->id]);
}

/* The values that a region's terminator hands to carried values or results. */
static void
unite_yields(Place *p, Op *op)
{
  for (u32 r = 0; r < op->nregions; r++) {
    for (u32 k = 0; k < op->nresults; k++)
      if (type_is_tile(op->results[k]->type))
        unite_member(p, p->var_of[op->results[k]->id], region_yields(op, r, k));
  }
  for (u32 k = 0; op_is_loop(op) && k < op->nresults; k++)
    if (op->results[k]->type->pending)      /* nothing is converted while it is under way */
      unite_member(p, p->var_of[op->results[k]->id], loop_init(op, k));
}

static void
unite_members(Op *op, void *user)
{
  Place *p = user;
  if (op_is_loop(op) || op->code == OP_IF) {
    unite_yields(p, op);
    return;
  }
  for (u32 k = 0; op->code == OP_WGMMA_WAIT && k < op->nresults; k++)
    unite_member(p, p->var_of[op->results[k]->id], op_operand(op, k));
  if (op->code == OP_WGMMA)
    unite_member(p, op->mark, OPERAND(op, WGMMA, acc));
  if (op->mark == NO_VAR || !keeps_layout(op))
    return;
  for (u32 i = 0; i < op->noperands; i++)
    unite_member(p, op->mark, op_operand(op, i));
}

/* ---- how an op relates layouts ---- */

static const Layout *
factor_layout(const Place *p, const Op *dot, u32 i, const Layout *l)
{
  const Type *t = op_operand(dot, i)->type;
  if (i + 1 == dot->noperands)
    return l;
  if (!op_attr(dot, AT_MMA) || !op_attr(dot, AT_WARPS))
    return layout_fma_operand(p->c, (int)i, t->shape, l);
  return dot_operand_layout(p->c, dot, i, t->shape);
}

static const Layout *
product_operand_layout(const Place *p, const Op *op, u32 i, const Layout *l)
{
  const Type *t = op_operand(op, i)->type;
  if (i == SLOT(WGMMA, meta))
    return wgmma_meta_layout(p->c, block_team(op->block), OPERAND(op, WGMMA, a)->type, t);
  return i == SLOT(WGMMA, a) ? wgmma_left_layout(p->c, block_team(op->block), t) : l;
}

static const Layout *
unpermuted(const Place *p, const Op *op, const Layout *l)
{
  Attr *perm = op_attr(op, AT_PERM);
  int inverse[MAX_RANK] = {0};
  for (u32 i = 0; i < perm->ints.n; i++)
    inverse[perm->ints.v[i]] = (int)i;
  return layout_permute(p->c, l, inverse);
}

/* Of the words or the elements of an unpack or pack, whose variable is a layout for the words. */
static const Layout *
packed_layout(const Place *p, const Op *op, bool words, const Layout *l)
{
  const Type *t = op->code == OP_UNPACK ? OPERAND(op, UNPACK, x)->type : op_result(op)->type;
  Packing k = packing_of(op);
  return words ? packing_words(p->c, &k, t, l) : packing_values(p->c, &k, t, l);
}

const Layout *
place_operand_layout(const Place *p, const Op *op, u32 i, const Layout *l)
{
  const Type *t = op_operand(op, i)->type;
  switch (op->code) {
  case OP_BROADCAST: return layout_unbroadcast(p->c, l, t->shape);
  case OP_EXPAND_DIMS: return layout_squeeze(p->c, l, (int)op_int(op, AT_AXIS, 0));
  case OP_RESHAPE: return layout_reshape(p->c, l, t->rank, t->shape);
  case OP_PERMUTE: return unpermuted(p, op, l);
  case OP_DOT: case OP_DOT_SPARSE: return factor_layout(p, op, i, l);
  case OP_WGMMA: return product_operand_layout(p, op, i, l);
  case OP_UNPACK: case OP_PACK: return packed_layout(p, op, op->code == OP_UNPACK, l);
  default: return l;
  }
}

const Layout *
place_value_layout(const Place *p, const Value *v, const Layout *l)
{
  if (op_is(v, OP_UNPACK) || op_is(v, OP_PACK))
    return packed_layout(p, v->def, v->def->code == OP_PACK, l);
  if (!op_is(v, OP_REDUCE))
    return l;
  return layout_slice(p->c, l, (int)op_int(v->def, AT_AXIS, 0));
}

/* ---- edges ---- */

static void
edge(Place *p, Op *op, u32 i, u32 user)
{
  Value *v = op_operand(op, i);
  if (!wants_var(p, v) || user == NO_VAR)
    return;
  u32 def = place_var(p, v);
  user = find(p, user);
  if (user == def)
    return;
  Edge *e = NEW(p->c->scratch, Edge);
  *e = (Edge){.user = user, .def = def, .op = op, .i = i, .v = v, .weight = place_loop_weight(value_block(v))};
  u32 id = p->edges.len;
  vec_push(p->c->scratch, &p->edges, e);
  vec_push(p->c->scratch, &p->vars.data[user]->edges, id);
  vec_push(p->c->scratch, &p->vars.data[def]->edges, id);
}

static void
region_edges(Place *p, Op *op)
{
  for (u32 k = 0; k < op->nresults; k++) {
    u32 var = p->var_of[op->results[k]->id];
    if (var == NO_VAR)
      continue;
    if (op_is_loop(op))
      edge(p, op, loop_first_init(op) + k, var);
    for (u32 r = 0; r < op->nregions; r++) {
      Op *end = region_end(op, r);
      edge(p, end, yield_first(end) + k, var);
    }
  }
}

static void
make_edges(Op *op, void *user)
{
  Place *p = user;
  if (op_is_loop(op) || op->code == OP_IF)
    region_edges(p, op);
  for (u32 k = 0; op->code == OP_WGMMA_WAIT && k < op->nresults; k++)
    edge(p, op, k, p->var_of[op->results[k]->id]);
  for (u32 i = 0; op->mark != NO_VAR && i < op->noperands; i++)
    edge(p, op, i, op->mark);
}

/* ---- memory ops and work ---- */

/* Elements between most neighbours; see place.h. What a load does not want of a sector is near when the next one asks for it; a store's
 * way is to the second level, each time. */
static u32
apart(const Op *op, Stride s)
{
  return op->code == OP_LOAD || !s.known || s.by ? 0 : (u32)(s.times < 0 ? -s.times : s.times);
}

/* What is moved at a time where most is, of tiles of each shape: as few shapes as there are, whatever the number of accesses. */
static void
look_beside(Place *p)
{
  VEC(MemOp *) widest = {0};
  for (u32 round = 0; round < 2; round++)
    for (u32 i = 0, k; i < p->mems.len; i++) {
      MemOp *m = p->mems.data[i];
      for (k = 0; k < widest.len && !type_same_shape(m->at->type, widest.data[k]->at->type);)
        k++;
      if (k == widest.len)
        vec_push(p->c->scratch, &widest, m);
      else if (m->vec > widest.data[k]->vec)
        widest.data[k] = m;
      m->beside = widest.data[k]->vec;
    }
}

static void
add_mem(Place *p, Op *op, Var *v)
{
  MemOp *m = NEW(p->c->scratch, MemOp);
  const Value *ptr = op_pointer(op), *mask = op_mask(op);
  m->op = op;
  m->at = ptr;
  m->ptr = &p->axes[ptr->id];
  m->mask = mask ? &p->axes[mask->id] : NULL;
  m->elem_bytes = dtype_bytes(ptr->type->dt);
  m->dim = axis_fastest(m->ptr, ptr->type->rank);
  Stride s = value_stride_nearly(ptr, (int)m->dim);
  m->apart = apart(op, s);
  for (u32 d = 0; d < ptr->type->rank; d++)
    m->rows[d] = d == m->dim ? 0 : apart(op, value_stride_nearly(ptr, (int)d));
  m->computed = ptr->type->rank == 1 && (!s.known || s.by);
  m->vec = axis_vector(m->ptr, m->mask, m->dim, ptr->type->shape[m->dim], m->elem_bytes, op_access_bytes(op, p->c->target));
  vec_push(p->c->scratch, &v->mems, m);
  vec_push(p->c->scratch, &p->mems, m);
}

/* An op of a map's region is done once for each register. */
static void
add_map_work(Op *op, void *user)
{
  ((Var *)user)->work += (u64)place_loop_weight(op->block);
}

static void
add_costs(Op *op, void *user)
{
  Place *p = user;
  u32 var = place_op_var(p, op);
  if (var == NO_VAR)
    return;
  Var *v = p->vars.data[var];
  if (op_is_fold(op) || op_has(op, T_EXCHANGE))
    vec_push(p->c->scratch, &v->along, op);
  else if (op_pointer(op))
    add_mem(p, op, v);
  else if (op->code == OP_UNPACK || op->code == OP_PACK)
    v->work += (u64)place_loop_weight(op->block) << packing_of(op).value_log2;
  else if (op->code == OP_MAP)
    block_walk(op->regions[0], add_map_work, v);
  else if (is_elementwise(op))
    v->work += (u64)place_loop_weight(op->block);
}

static void
count_op(Op *op, void *user)
{
  *(u32 *)user += 1 + op->nresults;
}

void
place_build(Place *p)
{
  Func *f = p->f;
  Arena *a = p->c->scratch;
  u32 n = 0;
  p->nvalues = f->nvalues;
  p->axes = analyse_axes(f);
  p->remat = NEW_ARRAY(a, bool, f->nvalues);
  p->member = NEW_ARRAY(a, bool, f->nvalues);
  p->var_of = NEW_ARRAY(a, u32, f->nvalues);
  for (u32 i = 0; i < f->nvalues; i++)
    p->var_of[i] = NO_VAR;
  func_walk(f, count_op, &n);
  p->parent = NEW_ARRAY(a, u32, n + 1);
  func_walk(f, mark_remat, p);
  func_walk(f, make_vars, p);
  func_walk(f, unite_members, p);
  func_walk(f, make_edges, p);
  func_walk(f, add_costs, p);
  look_beside(p);
}
