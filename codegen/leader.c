/* leader.c - what the leader of those that hold copies of an element found out in memory, for all of them.
 *
 * Memory may change between two threads' looks at it. Where that matters (the old values of atomics, volatile loads) only the
 * leader looks, leaves what it saw in scratch memory, and after a barrier everyone reads it: so scalars stay the same in all
 * threads, and copies of a tile's elements alike.
 *
 * And what it alone does: scalars are stored by one thread. One or two such stores are predicated; a row of them takes a branch around
 * all, for ptxas takes a time that grows with the square of the predicated stores of a block.
 */
#include "gen.h"

#define B g->b

/* Where register r's element lies in the op's scratch memory; h is NULL for a scalar. */
static Val
place(Gen *g, const Op *op, const Dist *h, u32 r, u32 bytes)
{
  u32 at = (u32)op_int(op, AT_SCRATCH, 0), cols[LAYOUT_MAX_BITS];
  if (!h)
    return addr_shared(g, NULL, at);
  for (u32 i = 0; i < h->thread_bits; i++)
    cols[i] = h->thread[i] * bytes;
  Val off = team_linear(g, cols, h->thread_bits);
  return addr_shared(g, gen_xor_const(g, off, h->thread_mask * bytes, h->flat[r] * bytes), at);
}

void
leader_broadcast(Gen *g, const Op *op, const Dist *h, Val leader, Val *v)
{
  const Type *t = op_result(op)->type;
  u32 bytes = type_elem_bytes(t), n = gen_nregs(t);
  if (h && scratch_pieces(op)) {
    PiecesPlan plan;
    scratch_pieces_plan(g->c, op, &plan);
    Val *out = NEW_ARRAY(g->arena, Val, n);
    pieces_move(g, op, &plan, h, v, NULL, out);
    memcpy(v, out, sizeof *v * n);
    return;
  }
  Words w = words_for(g, t->dt, type_is_ptr(t), 1);
  LLVMBasicBlockRef after = gen_if(g, leader);
  for (u32 r = 0; r < n; r++) {
    Val word;
    if (h && h->rep[r] != r)
      continue;
    words_pack(g, &w, &v[r], &word);
    words_store(g, &w, place(g, op, h, r, bytes), bytes, &word);
  }
  gen_end_if(g, after);
  team_barrier(g);
  for (u32 r = 0; r < n; r++) {
    Val word;
    if (h && h->rep[r] != r)
      continue;
    words_load(g, &w, place(g, op, h, r, bytes), bytes, &word);
    words_unpack(g, &w, &word, &v[r]);
  }
}

/* ---- rows of stores ---- */

enum { ROW_LEAST = 3, ROW_MOST = 64 };   /* stores under one branch; the values of all are there before it */

static bool
is_scalar_store(const Op *op)
{
  return op->code == OP_STORE && !type_is_tile(op_operand(op, 0)->type) && !op_mask(op);
}

/* Nothing meets other threads there: a barrier behind a store orders it. */
static bool
may_go_first(Gen *g, const Op *op)
{
  return op_has(op, T_PURE) && !op->nregions && !op_is_dot(op) && op->code != OP_CONVERT_LAYOUT && !scratch_bytes(g->c, op);
}

const Op *
leader_last_store(Gen *g, const Op *first)
{
  const Op *last = first;
  u32 n = is_scalar_store(first);
  for (const Op *op = first->next; n && n < ROW_MOST && op; op = op->next)
    if (is_scalar_store(op)) {
      last = op;
      n++;
    } else if (!may_go_first(g, op)) {
      break;
    }
  return n < ROW_LEAST ? NULL : last;
}
