/* store.c - st.async and red.async: stores and reductions that end at an mbarrier of the block that they go to (PTX ISA, "st.async",
 * "red.async").
 *
 * The mbarrier's agent writes, as with copies. They go by no other proxy here: neither they nor who comes after them needs a fence. */
#include "internal.h"
#include <string.h>

bool
is_async_store(const Insn *in)
{
  return in->kind == K_WARP && in->fn.warp == async_store;
}

bool
async_reduces(const Insn *in)
{
  return (is_async_store(in) && in->store.op) || (in->kind == K_WARP && in->fn.warp == bulk_exec && in->bulk.op);
}

static int
not_beside(Block *b, Warp *w, const Insn *in, uint32_t lane)
{
  char thread[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "thread %s stores to one block, and names an mbarrier of another",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread));
}

static void
take_values(const Block *b, const Warp *w, const Insn *in, uint32_t lane, Flight *f)
{
  const StoreOps *o = &in->store;
  uint8_t *out = (uint8_t *)f->value;
  for (uint32_t v = 0; v < o->count; v++)
    memcpy(out + v * o->size, w->regs + b->kernel->lists[in->list + v] + lane * o->width, o->size);
}

static int
store_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t to, uint64_t mbar)
{
  const StoreOps *o = &in->store;
  Flight f = {.kind = FLIGHT_STORE, .lane = lane, .bytes = (uint32_t)o->size * o->count};
  const Mbar *m = mbar_for_copy(b, w, in, lane, SP_CLUSTER, mbar, &f.mbar);
  if (!m)
    return -1;
  if (to >= WINDOW_SIZE && mem_space_of(&to) != SP_SHARED)
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, to, "an asynchronous store to the address 0x%llx, which is not in shared memory",
                     (unsigned long long)to);
  LaneAccess one = {.space = SP_SHARED, .addr = to, .lane = lane, .size = f.bytes, .write = true, .strong = o->op != 0,
                    .update = o->op != 0, .agent = m->agent, .segment = b->check ? agent_segment(m->block, m->agent) : 0};
  f.to = to;
  if (!mem_host(b, w, in, lane, SP_SHARED, to, f.bytes, true))
    return -1;
  if (cluster_block(b, &f.to) != m->block)
    return not_beside(b, w, in, lane);
  take_values(b, w, in, lane, &f);
  return mem_check(b, w, in, &one) ? -1 : flight_add(b, w, in, m->block, &f);
}

int
async_store(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const StoreOps *o = &in->store;
  const Address mbar = {.offset = (uint64_t)(int64_t)o->mbar_offset, .wide = o->mbar_wide};
  uint64_t to[LANES], at[LANES];
  mem_address(w, o->base, &o->at, to);
  mem_address(w, o->mbar, &mbar, at);
  FOR_LANES(i, m)
    if (store_lane(b, w, in, i, to[i], at[i]))
      return -1;
  return 0;
}

void
store_move(Block *b, const Flight *f)
{
  const Insn *in = &b->kernel->code[f->pc];
  if (in->store.op)
    atom_combine((ModId)in->store.op, (Type)in->type, b->shared + f->to, f->value[0]);
  else
    memcpy(b->shared + f->to, f->value, f->bytes);
}
