/* cluster.c - programs of a cluster: how many there are, and what one may do to the shared memory of others. */
#include "ir.h"

u32
func_cluster(const Func *f)
{
  return f->cluster[0] * f->cluster[1] * f->cluster[2];
}

const char *
cluster_text(Arena *a, const u32 dims[3])
{
  return arena_printf(a, "%u x %u x %u", dims[0], dims[1], dims[2]);
}

const char *
cluster_error(Arena *a, u32 n, const i64 *dims)
{
  i64 all = 1;
  if (n < 1 || n > 3)
    return arena_printf(a, "a cluster has from 1 to 3 extents, along the axes of the grid, not %u", n);
  for (u32 i = 0; i < n; all *= dims[i++])
    if (dims[i] < 1 || dims[i] > 1 << 16)
      return arena_printf(a, "a cluster has at least 1 program along axis %u, not %lld", i, (long long)dims[i]);
  if (all > CLUSTER_PORTABLE)
    return arena_printf(a, "a cluster of %lld programs: at most %d run on every device that has clusters", (long long)all,
                        CLUSTER_PORTABLE);
  return NULL;
}

/* ---- shared memory of others ---- */

const Op *
buffer_remote(const Value *buffer)
{
  while (buffer && buffer->def && op_is_view(buffer->def) && buffer->def->code != OP_SHARED_REMOTE)
    buffer = op_buffer(buffer->def);
  return buffer && op_is(buffer, OP_SHARED_REMOTE) ? buffer->def : NULL;
}

const char *
cluster_remote_error(const Op *op, u32 i)
{
  if (op_is_view(op) || op->code == OP_SHARED_LOAD || op->code == OP_SHARED_STORE || !buffer_remote(op_operand(op, i)))
    return NULL;
  if (op->code != OP_MBARRIER_ARRIVE)
    return "it is loaded and stored, and one arrives at its mbarriers; nothing else reaches it";
  return op_attr(op, AT_COPIES) ? "a program's asynchronous copies count at its own mbarriers" : NULL;
}

bool
cluster_reaches(const Value *buffer)
{
  for (const Use *u = buffer->uses; u; u = u->next)
    if (u->user->code == OP_SHARED_REMOTE || op_attr(u->user, AT_MULTICAST) ||
        (op_is_view(u->user) && cluster_reaches(op_result(u->user))))
      return true;
  return false;
}

u32
cluster_recipients(const Op *load, u32 step[3])
{
  const Attr *axes = op_attr(load, AT_MULTICAST);
  const u32 *n = load->block->func->cluster, stride[3] = {1, n[0], n[0] * n[1]};
  u32 all = 1;
  step[0] = step[1] = step[2] = 0;
  for (u32 i = 0; axes && i < axes->ints.n; i++)
    step[axes->ints.v[i]] = stride[axes->ints.v[i]];
  for (u32 a = 0; a < 3; a++)
    for (u32 k = 1, line = all; step[a] && k < n[a]; k++)
      all |= line << k * step[a];
  return all;
}
