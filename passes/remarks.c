/* remarks.c - why an optimisation was not done, in words; only with --remarks. Nothing here changes the program. */
#include "internal.h"
#include "place.h"
#include "remarks.h"
#include "scratch.h"

enum { STEPS_MAX = 64, ACCESS_BYTES = 16 };

/* ---- where layouts come from ---- */

/* Ops that ask for a layout of their own, and what to call them. */
static const char *
anchor_name(const Op *op)
{
  switch (op->code) {
  case OP_LOAD: return "this load";
  case OP_STORE: return "this store";
  case OP_DOT: case OP_DOT_SPARSE: return "this dot";
  case OP_REDUCE: return "this reduction";
  case OP_SCAN: return "this scan";
  case OP_SHARED_LOAD: return "this read of a shared buffer";
  case OP_SHARED_STORE: return "this write of a shared buffer";
  case OP_ASYNC_COPY: return "this copy";
  case OP_CONVERT_LAYOUT: return "this conversion";
  case OP_ATOMIC_RMW: case OP_ATOMIC_CAS: return "this atomic";
  default: return op_is_loop(op) ? "a variable of this loop" : NULL;
  }
}

/* "1 x 4": how many neighbours along each dimension lie in a thread's registers. */
static const char *
together(Ctx *c, const Layout *l)
{
  Buf b = {.arena = c->scratch};
  for (u32 d = 0; d < l->rank; d++)
    buf_printf(&b, "%s%u", d ? " x " : "", layout_contiguous_regs(l, (int)d));
  return buf_str(&b);
}

static bool
same_layout(const Value *x, const Value *v)
{
  return x && type_is_tile(x->type) && x->type->layout == v->type->layout;
}

/* The op that gave v its layout, through arithmetic. */
static const Op *
layout_maker(const Value *v)
{
  for (u32 step = 0; step < STEPS_MAX && v->def && !anchor_name(v->def); step++) {
    const Value *from = op_is_shape(v->def) ? OPERAND(v->def, UNARY, x) : NULL;
    for (u32 i = 0; i < v->def->noperands && !from; i++)
      if (same_layout(op_operand(v->def, i), v) && !op_is(op_operand(v->def, i), OP_CONST))
        from = op_operand(v->def, i);
    if (!from)
      break;
    v = from;
  }
  return v->def ? v->def : v->block->parent;
}

/* The op that wants v in its layout, through arithmetic. */
static const Op *
layout_taker(const Value *v)
{
  for (u32 step = 0; step < STEPS_MAX && v->uses; step++) {
    const Op *user = v->uses->user;
    for (const Use *u = v->uses; u; u = u->next)
      if (anchor_name(u->user))
        user = u->user;
    if (anchor_name(user) || !user->nresults || !type_is_tile(op_result(user)->type))
      return anchor_name(user) ? user : user->block->parent ? user->block->parent : user;
    v = op_result(user);
  }
  return NULL;
}

/* ---- conversions ---- */

static const char *
cost_text(Ctx *c, const Op *convert)
{
  const char *kind = op_str(convert, AT_KIND, "none");
  ConvertPlan plan;
  if (!strcmp(kind, "shared")) {
    i64 conflicts = op_int(convert, AT_CONFLICTS, 0), bytes = op_int(convert, AT_SCRATCH_BYTES, 0);
    return arena_printf(c->scratch, "%lld bytes through shared memory, %s", (long long)bytes,
                        conflicts ? arena_printf(c->scratch, "with %lld bank conflicts", (long long)conflicts) : "without bank conflicts");
  }
  scratch_convert_plan(c, convert, &plan);
  return arena_printf(c->scratch, "by shuffles, about %u issue slots of a warp", plan.cost);
}

/* A planned conversion that moves data between threads. */
void
remark_convert(Ctx *c, const Op *convert)
{
  const char *kind = op_str(convert, AT_KIND, "none");
  if (!c->remarks || (strcmp(kind, "shared") != 0 && strcmp(kind, "shuffle") != 0))
    return;
  const Op *maker = layout_maker(OPERAND(convert, CONVERT_LAYOUT, x)), *taker = layout_taker(op_result(convert));
  Diag *d = diag(c, convert->span, R_CONVERTED, cost_text(c, convert));
  if (maker && anchor_name(maker))
    diag_note(c, d, maker->span, "%s gives it with %s neighbours in a thread", anchor_name(maker),
              together(c, OPERAND(convert, CONVERT_LAYOUT, x)->type->layout));
  if (taker && anchor_name(taker))
    diag_note(c, d, taker->span, "%s wants %s", anchor_name(taker), together(c, op_result(convert)->type->layout));
}

/* ---- narrow accesses ---- */

/* The kernel's argument that addresses are computed from; NULL if it is not one. */
static const Value *
base_pointer(const Value *p)
{
  for (u32 step = 0; step < STEPS_MAX && p->def; step++) {
    OpCode k = p->def->code;
    if (k != OP_ADDPTR && k != OP_SPLAT && k != OP_HINT && k != OP_CONVERT_LAYOUT && !op_is_shape(p->def))
      return NULL;
    p = OPERAND(p->def, UNARY, x);
  }
  return !p->def && !p->block->parent ? p : NULL;
}

static const char *
alignment_text(Ctx *c, const Func *f, const MemOp *m, u32 known)
{
  const Value *base = base_pointer(m->at);
  const char *name = base && base->name ? base->name : NULL;
  u32 want = ACCESS_BYTES;
  if (name && f->params[base->index].divisible < want)
    return arena_printf(c->scratch, "the alignment of '%s' is not known: say `%s: *%s multiple_of(%u)`, or pass it aligned to the JIT",
                        name, name, dtype_info[base->type->dt].name, want);
  return arena_printf(c->scratch,
                      "its addresses are known to be multiples of %u bytes only: say multiple_of(x, %u) of what is added to %s", known,
                      want / m->elem_bytes, name ? arena_printf(c->scratch, "'%s'", name) : "the pointer");
}

/* The k of a mask that compares multiples, i * k < n or at + i * k < n; 0 if v is none. */
static u64
compares_multiples(const Value *v, u32 depth)
{
  const Op *op = v->def;
  u64 k = 0;
  if (!op || depth == STEPS_MAX || !type_is_tile(v->type))
    return 0;
  if (op->code == OP_MUL && value_const_bits(OPERAND(op, MUL, b), &k))
    return k > 1 ? k : 0;
  if (op->code == OP_SHL && value_const_bits(OPERAND(op, SHL, b), &k))
    return k && k < 32 ? 1ull << k : 0;
  bool through = op->code == OP_AND || op->code == OP_CMP || op->code == OP_ADD || op->code == OP_CAST || op->code == OP_BROADCAST ||
                 op->code == OP_EXPAND_DIMS || op->code == OP_CONVERT_LAYOUT;
  for (u32 i = 0; through && !k && i < op->noperands; i++)
    k = compares_multiples(op_operand(op, i), depth + 1);
  return k;
}

static const char *
mask_text(Ctx *c, const MemOp *m, u32 want, u32 masked)
{
  u64 k = compares_multiples(op_mask(m->op), 0);
  unsigned long long by = k;
  if (k && !is_pow2(k))
    return arena_printf(c->scratch, "its mask compares multiples of %llu, which is no power of two: "
                        "compare what is multiplied, i < n / %llu", by, by);
  if (k)
    return arena_printf(c->scratch, "its mask compares multiples of %llu with what is not known to be one of %llu: "
                        "say multiple_of(n, %llu) of the bound, or compare what is multiplied, i < n / %llu",
                        by, by * want, by * want, by);
  return arena_printf(c->scratch, "its mask is known to be the same for %u neighbour%s at a time only: say multiple_of(n, %u) of the bound",
                      masked, masked == 1 ? "" : "s", want);
}

/* What keeps an access from being `want` elements wide; NULL if it is the tile itself. */
static const char *
narrow_reason(Ctx *c, const Func *f, const MemOp *m, u32 want, u32 vec)
{
  u32 run = m->ptr->contiguity[m->dim], bytes = m->ptr->divisibility[m->dim];
  u32 masked = m->mask ? m->mask->constancy[m->dim] : want;
  if (run <= vec && run < want)
    return run == 1 ? "its addresses do not follow each other"
                    : arena_printf(c->scratch, "its addresses follow each other %u at a time only", run);
  if (bytes < want * m->elem_bytes && bytes / m->elem_bytes <= vec)
    return alignment_text(c, f, m, bytes);
  if (masked < want && masked <= vec)
    return mask_text(c, m, want, masked);
  return NULL;
}

/* Few programs come by. */
static bool
on_edge(const Op *op)
{
  for (const Block *b = op->block; b->parent; b = b->parent->block)
    if (b->parent->code == OP_IF && op_int(b->parent, AT_EDGE, 0) && b == b->parent->regions[1])
      return true;
  return false;
}

/* An access whose width is settled. */
void
remark_narrow(Ctx *c, const Func *f, const MemOp *m, u32 vec)
{
  const Type *t = m->at->type;
  u32 each = type_numel(t) / team_threads(block_team(m->op->block)), want = ACCESS_BYTES / m->elem_bytes;
  if (!c->remarks || m->elem_bytes >= ACCESS_BYTES || on_edge(m->op))
    return;
  while (want > 1 && want > each)
    want /= 2;
  const char *why = vec < want ? narrow_reason(c, f, m, want, vec) : NULL;
  const char *what = m->op->code == OP_LOAD ? "load" : m->op->code == OP_STORE ? "store" : m->op->code == OP_ATOMIC_RMW ? "atomic" : "copy";
  if (why)
    diag(c, m->op->span, R_NARROW, what, vec * m->elem_bytes, vec * m->elem_bytes == 1 ? "" : "s", want * m->elem_bytes, why);
}

/* ---- loops ---- */

static void
find_write(Op *op, void *user)
{
  *(bool *)user |= op_has(op, T_WRITES) && op->code != OP_SHARED_STORE;
}

/* An op that is invariant in the loop, and stays. (Some divisions leave it later: codegen/divide.c.) */
void
remark_stays(Ctx *c, const Op *op, Op *loop)
{
  bool writes = false;
  bool divides = (op->code == OP_DIV || op->code == OP_REM) && !op_divides_by_same(op);
  if (!c->remarks || (op->code != OP_LOAD && !divides) || op->block->parent != loop)
    return;
  for (u32 r = 0; r < loop->nregions; r++)
    block_walk(loop->regions[r], find_write, &writes);
  if (op->code != OP_LOAD)
    diag(c, op->span, R_NOT_HOISTED, "division", "the loop may not run at all, and the divisor may be 0 then");
  else if (writes)
    diag(c, op->span, R_NOT_HOISTED, "load", "the loop writes to memory, perhaps to what it reads");
  else
    diag(c, op->span, R_NOT_HOISTED, "load",
         "the loop may not run at all, and the address may be invalid then; load in front of the loop if it is not");
}

/* ---- atomics ---- */

void
remark_aggregated(Ctx *c, Span at, u32 run)
{
  if (c->remarks)
    diag(c, at, R_AGGREGATED, run);
}

void
remark_collides(Ctx *c, Span at, u32 run, const char *why)
{
  if (c->remarks)
    diag(c, at, R_COLLIDES, run, why);
}

void
remark_private(Ctx *c, Span at, u64 bins)
{
  if (c->remarks)
    diag(c, at, R_PRIVATISED, (unsigned long long)bins);
}

void
remark_not_private(Ctx *c, Span at, u64 bins, const char *why)
{
  if (c->remarks)
    diag(c, at, R_NOT_PRIVATE, (unsigned long long)bins, why);
}
