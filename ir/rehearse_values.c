/* rehearse_values.c - scalars and views of a rehearsal: those that follow from constants, or from numbers put for arguments. */
#include "rehearse.h"

/* Several, as one may be a number of its own to the kernel. For small loops as well as for those over tiles. */
static const struct { i64 argument; u32 programs; } GUESSES[REHEARSALS] = {{640, 4}, {1000, 3}, {1536, 2}};

static Known
guess(const Rehearsed *r, const Type *t, u32 divisible)
{
  i64 n = GUESSES[r->guess].argument, d = divisible ? divisible : 1;
  bool fits = t->kind == TY_SCALAR && dtype_is_int(t->dt) && dtype_bits(t->dt) >= 16;
  return fits ? (Known){scalar_wrap(t->dt, (u64)(n < d ? d : n / d * d)), 0, GUESSED} : (Known){0};
}

i64
rehearsal_argument(u32 i)
{
  return GUESSES[i].argument;
}

void
rehearse_params(Rehearsed *r, u32 rank)
{
  for (u32 i = 0; i < r->f->body->nargs; i++)
    r->envs[rank][r->f->body->args[i]->id] = guess(r, r->f->body->args[i]->type, r->f->params[i].divisible);
}

/* ---- programs ---- */

static u32
place(const Rehearsed *r, u32 axis)
{
  const u32 *c = r->f->cluster, at[3] = {r->actor->rank % c[0], r->actor->rank / c[0] % c[1], r->actor->rank / c[0] / c[1]};
  return at[axis];
}

static u32
programs(const Rehearsed *r, u32 axis)
{
  return GUESSES[r->guess].programs * r->f->cluster[axis];
}

static Known
program_index(const Rehearsed *r, const Op *op, u32 axis)
{
  if (!op->noperands)
    return (Known){place(r, axis), 0, GUESSED};
  Known k = rehearsed_value(r, op_operand(op, 0));
  u64 g[3] = {programs(r, 0), programs(r, 1), programs(r, 2)}, n = k.bits;
  return (Known){axis == 2 ? n / g[0] / g[1] : axis ? n / g[0] % g[1] : n % g[0], 0, k.sure ? GUESSED : UNKNOWN};
}

static Known
cluster_rank(const Rehearsed *r, const Op *op)
{
  const Attr *axis = op_attr(op, AT_AXIS);
  return (Known){axis ? place(r, (u32)axis->i % 3) : r->actor->rank, 0, SURE};
}

/* ---- arithmetic ---- */

static Sure
less_sure(Known a, Known b)
{
  return a.sure < b.sure ? a.sure : b.sure;
}

static bool
is_int(const Value *v)
{
  return v->type->kind == TY_SCALAR && !dtype_is_float(v->type->dt);
}

static Known
binary(const Rehearsed *r, const Op *op)
{
  Known a = rehearsed_value(r, OPERAND(op, BINARY, a)), b = rehearsed_value(r, OPERAND(op, BINARY, b)), out = {.sure = less_sure(a, b)};
  if (out.sure && !scalar_binary(op->code, op_result(op)->type->dt, a.bits, b.bits, &out.bits))
    out.sure = UNKNOWN;
  return out;
}

/* Whether an argument is one certain number is not for guesses to say: it may be what chooses one of several ways. */
static Known
compare(const Rehearsed *r, const Op *op)
{
  const Value *x = OPERAND(op, CMP, a);
  Known a = rehearsed_value(r, x), b = rehearsed_value(r, OPERAND(op, CMP, b));
  Pred p = pred_find(op_str(op, AT_PRED, ""));
  bool chooses = (p == PRED_EQ || p == PRED_NE) && a.sure != b.sure;
  Sure sure = chooses || p == PRED_BAD ? UNKNOWN : less_sure(a, b);
  return (Known){sure ? scalar_cmp(p, x->type->dt, a.bits, b.bits) : 0, 0, sure};
}

static Known
choose(const Rehearsed *r, const Op *op)
{
  Known c = rehearsed_value(r, OPERAND(op, SELECT, c));
  Known x = rehearsed_value(r, c.bits ? OPERAND(op, SELECT, a) : OPERAND(op, SELECT, b));
  x.sure = less_sure(c, x);
  return x;
}

static Known
cast(const Rehearsed *r, const Op *op)
{
  const Value *x = OPERAND(op, CAST, x);
  Known k = rehearsed_value(r, x);
  if (!is_int(x) || op_attr(op, AT_SAT))
    return (Known){0};
  k.bits = scalar_cast(x->type->dt, op_result(op)->type->dt, k.bits, ROUND_ZERO, false);
  return k;
}

static Known
number(const Rehearsed *r, const Op *op)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0) % 3;
  switch ((u32)op->code) {
  case OP_CONST: return (Known){(u64)op_int(op, AT_VALUE, 0), 0, SURE};
  case OP_PROGRAM_ID: return program_index(r, op, axis);
  case OP_NUM_PROGRAMS: return (Known){programs(r, axis), 0, GUESSED};
  case OP_RESIDENT_ID: return (Known){r->actor->rank, 0, GUESSED};
  case OP_NUM_RESIDENTS: return (Known){programs(r, 0), 0, GUESSED};
  case OP_CLUSTER_RANK: return cluster_rank(r, op);
  case OP_TENSOR_EXTENT: case OP_TENSOR_STRIDE: return guess(r, op_result(op)->type, 0);
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_REM: case OP_MIN: case OP_MAX: case OP_AND: case OP_OR: case OP_XOR:
  case OP_SHL: case OP_SHR: case OP_MULHI: case OP_UMULHI: return binary(r, op);
  case OP_CMP: return is_int(OPERAND(op, CMP, a)) ? compare(r, op) : (Known){0};
  case OP_SELECT: return choose(r, op);
  case OP_CAST: return cast(r, op);
  case OP_HINT: case OP_BOUNDED: return rehearsed_value(r, op_operand(op, 0));
  default: return (Known){0};
  }
}

/* ---- buffers ---- */

static Known
view(const Rehearsed *r, const Op *op)
{
  Known b = rehearsed_value(r, op_buffer(op)), k = {.sure = SURE};
  if (op->code == OP_SHARED_INDEX) {
    k = rehearsed_value(r, OPERAND(op, SHARED_INDEX, i));
    b.bits += k.bits;
    k.sure = k.bits < op_buffer(op)->type->count ? k.sure : UNKNOWN;
  } else if (op->code == OP_SHARED_REMOTE) {
    k = rehearsed_value(r, OPERAND(op, SHARED_REMOTE, rank));
    b.rank = (u32)k.bits;
    k.sure = k.bits < r->nranks ? k.sure : UNKNOWN;
  }
  b.sure = less_sure(b, k);
  return b;
}

void
rehearse_value(Rehearsed *r, const Op *op)
{
  Known k = {0};
  if (op->nresults != 1)
    return;
  if (op->code == OP_SHARED_ALLOC)
    k = (Known){r->first[op_result(op)->id], r->actor->rank, SURE};
  else if (op_is_view(op))
    k = view(r, op);
  else if (is_int(op_result(op)))
    k = number(r, op);
  r->env[op_result(op)->id] = k;
}
