/* verify_cluster.c - check_<ID> of what programs of a cluster do together. */
#include "verify.h"

bool
check_CLUSTER_RANK(Verifier *v, const Op *op)
{
  if (op_int(op, AT_AXIS, 0) > 2)
    return verify_fail(v, op, "a grid has axes 0, 1 and 2, not %lld", (long long)op_int(op, AT_AXIS, 0));
  return out_type(op) == type_scalar(v->ctx, DT_I32) || verify_fail(v, op, "the result is an i32, not %s", spell(v, out_type(op)));
}

/* It waits for every thread of every program. */
bool
check_CLUSTER_BARRIER(Verifier *v, const Op *op)
{
  return !block_team(op->block).op || verify_fail(v, op, "all warps of all programs meet there: it stands outside of warp_specialize");
}

bool
check_SHARED_REMOTE(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, SHARED_REMOTE, b), *rank = IN_TYPE(op, SHARED_REMOTE, rank);
  u32 programs = func_cluster(v->func);
  i64 n;
  if (!type_is_shared(t) || buffer_remote(OPERAND(op, SHARED_REMOTE, b)))
    return verify_fail(v, op, "operand 0 is a buffer of this program, not %s", type_is_shared(t) ? "another's" : spell(v, t));
  if (rank->kind != TY_SCALAR || rank->dt != DT_I32)
    return verify_fail(v, op, "the rank is an i32, not %s", spell(v, rank));
  if (value_const_int(OPERAND(op, SHARED_REMOTE, rank), &n) && (n < 0 || n >= (i64)programs))
    return verify_fail(v, op, "program %lld of a cluster of %u", (long long)n, programs);
  return verify_same(v, op, "the buffer and its view", t, out_type(op));
}

bool
verify_remote(Verifier *v, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++) {
    const char *wrong = op_operand(op, i) && type_is_shared(in_type(op, i)) ? cluster_remote_error(op, i) : NULL;
    if (wrong)
      return verify_fail(v, op, "operand %u is a buffer of another program: %s", i, wrong);
  }
  return true;
}
