/* verify.c - is this module what ops.def and the phase promise?
 *
 * Three layers, each relying on the one before: the structure (links, terminators, operand and result counts,
 * visibility of values), the op's attributes (verify_attrs.c), the op's types (verify_ops.c). An op that fails one
 * layer is not asked by the next. Layouts are compared as pointers: layouts are interned, so that is equality of maps,
 * register copies included; shape ops must carry exactly what layout.h's forward functions give.
 */
#include "verify.h"
#include "grid.h"

/* Where the operands of a broken op come from. */
static void
note_operands(Verifier *v, const Op *op, Diag *d)
{
  enum { MOST = 4 };
  for (u32 i = 0; i < op->noperands && i < MOST; i++) {
    const Value *x = op_operand(op, i);
    bool again = false;
    for (u32 k = 0; k < i; k++)
      again |= op_operand(op, k) == x;
    if (x && !again && x->def && x->def->span.hi && x->def != op)
      diag_note(v->ctx, d, x->def->span, "operand %u: %s", i, type_str(v->ctx, x->type));
  }
}

/* Reports "op 'name': ..." at the op; always false. */
bool
verify_fail(Verifier *v, const Op *op, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(v->ctx->scratch, fmt, ap);
  va_end(ap);
  Diag *d = diag(v->ctx, op->span, E_VERIFY, arena_printf(v->ctx->scratch, "op '%s'", op_info(op->code)->name), text);
  note_operands(v, op, d);
  v->ok = false;
  return false;
}

static bool PRINTF_LIKE(2, 3)
fail_func(Verifier *v, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(v->ctx->scratch, fmt, ap);
  va_end(ap);
  diag(v->ctx, v->func->span, E_VERIFY, arena_printf(v->ctx->scratch, "kernel '%s'", v->func->name), text);
  v->ok = false;
  return false;
}

/* ---- types ---- */

/* The type's spelling, with the layout's text behind it when asked for. */
const char *
verify_type_str(Verifier *v, const Type *t, bool with_layout)
{
  if (!with_layout || !t->layout)
    return type_str(v->ctx, t);
  Buf b = {.arena = v->ctx->scratch};
  type_print(&b, t, -1);
  buf_puts(&b, " in ");
  layout_print(&b, t->layout);
  return buf_str(&b);
}

/* a and b are one type, else an error about `what`. */
bool
verify_same(Verifier *v, const Op *op, const char *what, const Type *a, const Type *b)
{
  if (a == b)
    return true;
  if (type_with_layout(v->ctx, a, NULL) != type_with_layout(v->ctx, b, NULL))
    return verify_fail(v, op, "%s have types %s and %s", what, type_str(v->ctx, a), type_str(v->ctx, b));
  return verify_fail(v, op, "%s have different layouts: %s and %s", what, verify_type_str(v, a, true),
                     verify_type_str(v, b, true));
}

/* The layout, if any, is one for this shape. */
bool
verify_layout_fits(const Type *t)
{
  const Layout *l = t->layout;
  if (!l)
    return true;
  if (l->rank != t->rank)
    return false;
  for (int i = 0; i < t->rank; i++)
    if (l->out_bits[i] != log2_u32(next_pow2(t->shape[i])))
      return false;
  return true;
}

static const char *
shared_problem(Verifier *v, const Type *t)
{
  const Layout *l = t->layout;
  if (!l)
    return t->cut ? "what its elements take is not known without a layout" :
           v->phase == PHASE_TILE ? NULL : "its layout is not known after placement";
  if (!l->in_bits[IN_OFFSET] && type_numel(t) > 1)
    return "its layout is not one of shared memory";
  for (int i = 0; i < t->rank; i++)
    if (l->rank != t->rank || l->out_bits[i] != log2_u32(next_pow2(t->alloc_shape[i])))
      return "its layout covers another shape";
  if (t->cut && t->cut < layout_reach(l, t->alloc_shape))
    return "it is cut to less than its elements take";
  return NULL;
}

/* NULL if a value of this block may have the type now, else why not. */
static const char *
type_problem(Verifier *v, const Block *b, const Type *t)
{
  const Layout *l = t->layout;
  u32 warps = type_is_tile(t) ? block_team(b).warps : 0;
  if (type_is_shared(t))
    return shared_problem(v, t);
  if (!type_is_tile(t))
    return NULL;
  if (!is_pow2(warps))
    return arena_printf(v->ctx->scratch, "%u warps hold no tiles: only a power of two of them does", warps);
  const char *shape = type_shape_error(v->ctx, t->rank, t->shape);
  if (shape)
    return shape;
  if (v->phase == PHASE_TILE)
    return l ? "it has a layout before placement" : NULL;
  if (!l)
    return "it has no layout after placement";
  if (!verify_layout_fits(t))
    return "its layout covers another shape";
  if (l->in_bits[IN_OFFSET])
    return "its layout is one of shared memory";
  if (l->in_bits[IN_LANE] != 5)
    return "its layout does not have 32 lanes";
  if (1u << l->in_bits[IN_WARP] != warps)
    return arena_printf(v->ctx->scratch, "its layout has another number of warps than the %s", block_team(b).op ? "region" : "kernel");
  return layout_covers(l) ? NULL : "its layout leaves elements out";
}

static bool
check_result_types(Verifier *v, const Op *op)
{
  for (u32 i = 0; i < op->nresults; i++) {
    const char *problem = type_problem(v, op->block, op->results[i]->type);
    if (problem)
      return verify_fail(v, op, "result %u of type %s: %s", i, type_str(v->ctx, op->results[i]->type), problem);
  }
  return true;
}

/* ---- structure ---- */

/* Those that may be absent follow those that may not. */
static bool
operand_optional(const OpInfo *info, u32 i)
{
  return i >= info->min_operands && info->max_operands != MANY;
}

static bool
check_operand(Verifier *v, const Op *op, u32 i)
{
  const Use *u = &op->operands[i];
  if (!u->value)
    return operand_optional(op_info(op->code), i) || verify_fail(v, op, "operand %u is missing", i);
  if (u->user != op || *u->prev != u)
    return verify_fail(v, op, "the use list of operand %u is broken", i);
  if (u->value->id >= v->func->nvalues || !v->visible[u->value->id])
    return verify_fail(v, op, "operand %u is not defined where it is used", i);
  return true;
}

static bool
check_counts(Verifier *v, const Op *op)
{
  const OpInfo *info = op_info(op->code);
  if (op->noperands < info->min_operands || (info->max_operands != MANY && op->noperands > info->max_operands))
    return verify_fail(v, op, "operands are (%s), here are %u", info->operands, op->noperands);
  if (info->nresults != MANY && op->nresults != info->nresults)
    return verify_fail(v, op, "it has %u results instead of %u", op->nresults, info->nresults);
  if (info->regions != MANY && op->nregions != info->regions)
    return verify_fail(v, op, "it has %u regions instead of %u", op->nregions, info->regions);
  for (u32 i = 0; i < op->noperands; i++)
    if (!check_operand(v, op, i))
      return false;
  return true;
}

static bool
check_links(Verifier *v, const Block *b, const Op *op)
{
  if (op->block != b || (op->prev ? op->prev->next != op : b->first != op) ||
      (op->next ? op->next->prev != op : b->last != op))
    return verify_fail(v, op, "it is linked wrongly into its block");
  if (op_has(op, T_TERM) != (op == b->last))
    return verify_fail(v, op, op->next ? "it ends its block, but ops follow" : "the block ends without a terminator");
  return true;
}

static void
show(Verifier *v, Value *const *vs, u32 n, bool visible)
{
  for (u32 i = 0; i < n; i++)
    v->visible[vs[i]->id] = visible;
}

static void check_block(Verifier *v, const Block *b);

static bool
check_regions(Verifier *v, const Op *op)
{
  if (op->code == OP_WARP_SPECIALIZE && !verify_teams(v, op))
    return false;
  for (u32 r = 0; r < op->nregions; r++) {
    const Block *b = op->regions[r];
    if (!b->last)
      return verify_fail(v, op, "region %u is empty", r);
    for (u32 i = 0; i < b->nargs; i++) {
      const Type *t = b->args[i]->type;
      const char *problem = type_is_shared(t) ? "only shared_alloc and views give buffers" :
                            type_is_tensor(t) ? "only parameters of kernels are tensors" : type_problem(v, b, t);
      if (problem)
        return verify_fail(v, op, "argument %u of region %u: %s", i, r, problem);
    }
    check_block(v, b);
  }
  return true;
}

/* Regions are read before the op's own rule, which looks into them. */
static bool
check_op(Verifier *v, const Block *b, const Op *op)
{
  return check_links(v, b, op) && check_counts(v, op) && check_result_types(v, op) && check_regions(v, op) &&
         verify_attrs(v, op) && verify_no_buffers(v, op) && verify_pending(v, op) && verify_remote(v, op) &&
         verify_op_rule(v, op);
}

static void
check_block(Verifier *v, const Block *b)
{
  show(v, b->args, b->nargs, true);
  for (const Op *op = b->first; op; op = op->next) {
    check_op(v, b, op);
    show(v, op->results, op->nresults, true);
  }
  for (const Op *op = b->first; op; op = op->next)
    show(v, op->results, op->nresults, false);
  show(v, b->args, b->nargs, false);
}

/* ---- kernels ---- */

static bool
name_taken(const Verifier *v)
{
  for (u32 i = 0; i < v->module->funcs.len; i++) {
    const Func *other = v->module->funcs.data[i];
    if (other == v->func)
      return false;
    if (other->name == v->func->name)
      return true;
  }
  return false;
}

static bool
has_address(const Type *t)
{
  return type_is_ptr(t) || type_is_tensor(t);
}

/* Whom `same` and `apart` of parameter i name: pointers and tensors before it, and each class of equal ones by its first. */
static bool
check_param_alias(Verifier *v, u32 i)
{
  const Block *b = v->func->body;
  const ParamInfo *params = v->func->params, *p = &params[i];
  if (p->same > i || (p->same != i && (!has_address(b->args[i]->type) || !has_address(b->args[p->same]->type))))
    return fail_func(v, "parameter %u is the same as %u, which is no address before it", i, p->same);
  if (params[p->same].same != p->same)
    return fail_func(v, "parameter %u is the same as %u, which is not the first of them", i, p->same);
  if (i < APART_MAX ? p->apart >> i : p->apart != 0)
    return fail_func(v, "parameter %u is apart from itself or a later one", i);
  for (u64 left = p->apart; left; left &= left - 1) {
    u32 k = (u32)__builtin_ctzll(left);
    if (!has_address(b->args[i]->type) || !has_address(b->args[k]->type) || params[k].same == p->same)
      return fail_func(v, "parameters %u and %u cannot be apart", k, i);
  }
  return true;
}

static bool
check_params(Verifier *v)
{
  const Block *b = v->func->body;
  for (u32 i = 0; i < b->nargs; i++) {
    if (type_is_tensor(b->args[i]->type) && dtype_bits(b->args[i]->type->dt) < 8)
      return fail_func(v, "parameter %u is a tensor of %s", i, dtype_info[b->args[i]->type->dt].name);
    if (type_is_tile(b->args[i]->type) || type_is_shared(b->args[i]->type))
      return fail_func(v, "parameter %u is a %s", i, type_is_tile(b->args[i]->type) ? "tile" : "buffer");
    const ParamInfo *p = &v->func->params[i];
    if (!p->divisible)
      return fail_func(v, "parameter %u is a multiple of 0", i);
    if (p->null != PARAM_ANY && !type_is_ptr(b->args[i]->type))
      return fail_func(v, "parameter %u is no pointer, null or not", i);
    if (p->nonneg && !(b->args[i]->type->kind == TY_SCALAR && type_is_int(b->args[i]->type)))
      return fail_func(v, "parameter %u is no integer, negative or not", i);
    if (p->null == PARAM_NULL && b->args[i]->uses)
      return fail_func(v, "parameter %u is null, and used", i);
    if (!check_param_alias(v, i))
      return false;
  }
  return true;
}

/* Does the term ask for what a launch gives? */
static bool
grid_asks(const Func *f, const GridTerm *t)
{
  if (t->op != GRID_ARG && t->op != GRID_EXTENT)        /* others' values are no arguments, if they are set at all */
    return true;
  if (t->value < 0 || t->value >= f->body->nargs)
    return false;
  const Type *type = f->body->args[t->value]->type;
  return t->op == GRID_EXTENT ? type_is_tensor(type) && t->dim < type->rank : type->kind == TY_SCALAR && type_is_int(type);
}

/* What is wrong with the kernel's grid; NULL: nothing. */
static const char *
grid_error(const Func *f)
{
  GridExpr e;
  const char *wrong = f->grid ? grid_parse(f->grid, &e) : NULL;
  for (u32 i = 0; f->grid && !wrong && i < e.end[e.axes - 1]; i++)
    if (!grid_asks(f, &e.term[i]))
      wrong = "an argument that is no integer, or an extent that no tensor has";
  return wrong;
}

static void
check_func(Verifier *v)
{
  Func *f = v->func;
  if (name_taken(v))
    fail_func(v, "another kernel has this name");
  bool parts = func_teams(f) != NULL;
  const char *cluster = cluster_error(v->ctx->scratch, 3, (i64[]){f->cluster[0], f->cluster[1], f->cluster[2]});
  const char *grid = grid_error(f);
  if (cluster)
    fail_func(v, "%s", cluster);
  if (grid)
    fail_func(v, "the grid: %s", grid);
  if (!f->warps || f->warps > 32 || (!parts && !is_pow2(f->warps)))
    fail_func(v, "the number of warps is %s up to 32, not %u", parts ? "a number" : "a power of two", f->warps);
  else if (!f->body->last)
    fail_func(v, "the body is empty");
  else if (check_params(v))
    check_block(v, f->body);
}

/* Reports every broken rule; true if none. */
bool
ir_verify(Module *m)
{
  Verifier v = {.ctx = m->ctx, .module = m, .phase = m->phase, .ok = true};
  for (u32 i = 0; i < m->funcs.len; i++) {
    v.func = m->funcs.data[i];
    v.visible = NEW_ARRAY(m->ctx->scratch, u8, v.func->nvalues + 1);
    check_func(&v);
  }
  return v.ok;
}
