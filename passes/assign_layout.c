/* assign_layout.c - give every tile value a layout; insert convert_layout where layouts disagree.
 * Needs phase tile, after choose_mma; leaves phase placed.
 *
 * The problem. Memory operations want neighbouring threads to touch neighbouring bytes, tensor-core
 * instructions want their fragments, reductions want their axis inside a warp, and moving a tile from one
 * layout to another costs shuffles or a trip through shared memory. Choose layouts so that the sum is small.
 *
 * Rematerialisable values stand outside. Constants, ranges, splats, and elementwise and shape ops of only such values
 * have no layout of their own: they are computed again in each layout in which somebody asks for them. So index and
 * mask arithmetic never needs a conversion, and it does not tie together the operations that share it.
 *
 * Variables. Everything else is grouped into variables, one layout each: elementwise ops and exchanges
 * that feed each other, together with the loop-carried values and if results between them, are one
 * variable, since a conversion in the middle of arithmetic is never better than one at its ends
 * (fold_convert later moves it past casts). Loads, stores, atomics, reductions and shape ops are
 * variables of their own; a dot is one whose layout its instruction fixes. A reduction's variable is the
 * layout of its operand, that of unpack and pack the layout of the words; everybody else's is the layout
 * of the result.
 *
 * Edges. Where an operand's variable differs from the op's, an edge says: from the layout of the one follows,
 * through the shape op, slice or fragment between them, what the operand has and what it should have;
 * converting costs what layout_convert_plan says, ten times as much per loop around the place where the
 * conversion will stand. It stands in the block of the operand's definition, so a value from before a loop is
 * converted before the loop.
 *
 * Candidates. Anchors propose: memory operations by the contiguity of their addresses (wide vectors, then
 * lanes, then warps along the fastest dimension; also with the warps along the slowest, for reductions),
 * dots their fragments, exchanges and scans as many neighbours in a thread as it has registers. A
 * proposal is propagated along the edges in both directions, through shape ops, until every variable has a few.
 *
 * Choice. Costs are in issue slots per warp: accesses and 32-byte sectors for memory, shuffles and scratch
 * for reductions, registers times ops for arithmetic, conversions on the edges. First each variable in
 * program order takes its best given those before it; then, while some neighbour changed, a variable is asked
 * again, for a bounded number of rounds. Every step lowers the sum, but may end where only two variables
 * together could lower it further; so this is done from several starts (memory operations first, reductions
 * first, nobody first, backwards; everybody with the layout that one of the memory operations likes best) and the least sum is kept.
 *
 * Invariants for editors: place_operand_layout is the only place that knows how an op relates its operands'
 * layouts to its own, and the rewriter and the verifier must agree with it; later passes only remove or move
 * conversions. */
#include "buffers.h"
#include "place.h"
#include "wgmma.h"

/* Buffers that a product takes may be such as it cannot: views of others' memory, or elements that lie across K. */
static void
check_product(Op *op, void *user)
{
  Ctx *c = user;
  const char *why = op->code == OP_WGMMA ? wgmma_placed_error(c, op) : NULL;
  if (why)
    diag(c, op->span, E_WGMMA, "wgmma", why);
}

void
pass_assign_layout(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    place_reshapes(c, m->funcs.data[i]);
    Place p = {.c = c, .f = m->funcs.data[i]};
    place_build(&p);
    place_candidates(&p);
    place_solve(&p);
    place_rewrite(&p);
    buffers_place(c, p.f);
    func_walk(p.f, check_product, c);
  }
  m->phase = PHASE_PLACED;
}
