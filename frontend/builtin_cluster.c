/* builtin_cluster.c - programs of a cluster: their ranks, their barrier, and the shared memory of others. */
#include "sema.h"

enum { AXES = 3, EVERY = -1 };

/* Argument 0 as an axis of the grid; EVERY: not given. */
static bool
call_cluster_axis(Lower *L, Call *c, i64 *axis)
{
  *axis = EVERY;
  if (!c->given[0])
    return true;
  if (!call_int(L, c, 0, "the axis", axis))
    return false;
  if (*axis >= 0 && *axis < AXES)
    return true;
  call_error(L, c, c->args[0].span, "a grid has axes 0, 1 and 2");
  return false;
}

static u32
programs_along(const Func *f, i64 axis)
{
  return axis == EVERY ? func_cluster(f) : f->cluster[axis];
}

Val
builtin_cluster_size(Lower *L, Call *c)
{
  i64 axis;
  return call_cluster_axis(L, c, &axis) ? val_const(const_int(programs_along(L->b.func, axis)), c->span) : val_poison(c->span);
}

Val
builtin_cluster_rank(Lower *L, Call *c)
{
  i64 axis;
  const Type *t = type_scalar(L->c, DT_I32);
  if (!call_cluster_axis(L, c, &axis))
    return val_poison(c->span);
  L->b.span = c->span;
  if (programs_along(L->b.func, axis) == 1)
    return val_ir(ir_const_int(&L->b, t, 0), c->span);
  Op *op = op_create(&L->b, OP_CLUSTER_RANK, 0, NULL, 1, &t, 0);
  if (axis != EVERY)
    op_set_int(op, AT_AXIS, axis);
  return val_ir(op_result(op), c->span);
}

Val
builtin_cluster_barrier(Lower *L, Call *c)
{
  if (block_team(L->b.block).op)
    return call_error(L, c, c->span, "all warps of all programs of the cluster meet there: a team alone cannot");
  L->b.span = c->span;
  op_create(&L->b, OP_CLUSTER_BARRIER, 0, NULL, 0, NULL, 0);
  return val_void(c->span);
}

/* Argument i as the rank of a program of the cluster; NULL after reporting. */
static Value *
call_rank(Lower *L, Call *c, u32 i)
{
  Val v = c->args[i];
  u32 n = func_cluster(L->b.func);
  bool fits = val_is_data(v) && !val_is_ptr(v) && !val_is_tile(v) &&
              (val_num(v) == NUM_INT || (val_num(v) < NUM_INT && dtype_is_int((DType)val_num(v))));
  if (!fits) {
    if (v.kind != V_POISON)
      ERR(L, v.span, E_ARGUMENT, c->name, "the rank of a program", val_str(L, v));
    return NULL;
  }
  if (v.kind == V_CONST && (v.k.i < 0 || v.k.i >= n)) {
    call_error(L, c, v.span, arena_printf(L->a, "the cluster has programs 0 to %u, and none of rank %lld", n - 1, (long long)v.k.i));
    return NULL;
  }
  L->b.span = v.span;
  return v.kind == V_CONST ? val_as(L, v, DT_I32, NULL) : value_index(L, v.ir, NULL, n);
}

Val
builtin_remote(Lower *L, Call *c)
{
  Value *s = val_is_mbarrier(c->args[0]) ? call_mbarrier(L, c, 0, true) : call_buffer(L, c, 0, true);
  Value *rank = s ? call_rank(L, c, 1) : NULL;
  if (!rank)
    return val_poison(c->span);
  if (buffer_remote(s))
    return call_error(L, c, c->args[0].span, "it is a program's view of another's buffer already");
  L->b.span = c->span;
  return val_buffer(op_result(op_create(&L->b, OP_SHARED_REMOTE, 2, (Value *[]){s, rank}, 1, &s->type, 0)), c->span);
}

/* ---- a whole kernel ---- */

static void
check_remote(Op *op, void *user)
{
  Lower *L = user;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *b = op_operand(op, i);
    const char *wrong = b && type_is_shared(b->type) ? cluster_remote_error(op, i) : NULL;
    if (wrong)
      diag_note(L->c, diag(L->c, op->span, E_CLUSTER, wrong), buffer_remote(b)->span, "it is another program's");
  }
}

void
clusters_check(Lower *L, Func *f)
{
  func_walk(f, check_remote, L);
}
