/* pieces.c - a tile from one layout to another through scratch memory, in one piece or in several: layout/layout_pieces.c says which
 * register of which thread is in which.
 *
 * What pieces a thread's part of the number leaves is a comparison in the prologue; a class of registers moves where it holds. Loads
 * under such a condition leave the registers as they were elsewhere, and every register is loaded in one piece.
 */
#include "gen.h"

#define B g->b

typedef struct Move {
  const PiecesPlan *plan;
  Buffer buf;
  Ty elem;
  Val leader;                /* who stores; NULL: all */
  const Late *late;          /* what is stored is loaded on the way */
} Move;

/* Whether the thread's part is `number`; NULL: in all threads. */
static Val
has_number(Gen *g, const PieceSide *s, u32 number)
{
  u32 bits = (u32)s->l->in_bits[IN_LANE] + s->l->in_bits[IN_WARP], any = 0;
  for (u32 i = 0; i < bits; i++)
    any |= s->thread_piece[i];
  if (!any)
    return NULL;
  return LLVMBuildICmp(g->team->pro, LLVMIntEQ, team_linear(g, s->thread_piece, bits), gen_u32(g, number), "");
}

/* Both hold; NULL stands for true. Both are known in the prologue. */
static Val
both(Gen *g, Val a, Val b)
{
  return a && b ? LLVMBuildAnd(g->team->pro, a, b, "") : a ? a : b;
}

static void
access(Gen *g, const Move *m, const Buffer *buf, const Dist *h, bool store, Val *values)
{
  const SharedPlan *p = &m->plan->shared;
  if (store ? p->stmatrix : p->ldmatrix)
    buffer_matrices(g, buf, h, store ? p->stmatrix_trans : p->ldmatrix_trans, store, values);
  else
    buffer_vectors(g, buf, h, store ? p->store_vec : p->load_vec, store, values);
}

/* What was loaded on the way from `then`; elsewhere what there was. */
static Val
joined(Gen *g, Val loaded, LLVMBasicBlockRef then, Val before, LLVMBasicBlockRef from)
{
  Val phi = LLVMBuildPhi(B, LLVMTypeOf(loaded), "");
  LLVMAddIncoming(phi, &loaded, &then, 1);
  LLVMAddIncoming(phi, &before, &from, 1);
  return phi;
}

/* The registers of a class, from `first` on, in the threads where cond holds. */
static void
move_class(Gen *g, const Move *m, const PieceSide *s, u32 first, u32 place, Val cond, bool store, Val *regs)
{
  const Dist *h = dist_get(g, s->l);
  Buffer buf = m->buf;
  Val *values = NEW_ARRAY(g->arena, Val, h->regs);
  buf.off = place ? layout_shared_offset(buf.smem, place) : 0;
  u32 *map = NEW_ARRAY(g->arena, u32, h->regs);
  for (u32 r = 0; r < h->regs && store; r++) {
    map[r] = first ^ layout_piece_reg(s, r);
    values[r] = regs[map[r]];
  }
  Late late = m->late && store ? *m->late : (Late){0};
  late.map = map;
  buf.late = m->late && store ? &late : NULL;
  LLVMBasicBlockRef from = LLVMGetInsertBlock(B), after = gen_if(g, cond);
  access(g, m, &buf, h, store, values);
  LLVMBasicBlockRef then = LLVMGetInsertBlock(B);
  gen_end_if(g, after);
  for (u32 r = 0; r < h->regs && !store; r++) {
    Val *v = &regs[first ^ layout_piece_reg(s, r)];
    if (h->rep[r] == r)
      *v = cond ? joined(g, values[r], then, *v ? *v : LLVMGetPoison(m->elem), from) : values[r];
  }
}

static void
move_side(Gen *g, const Move *m, u32 piece, bool store, Val *regs)
{
  const PieceSide *s = store ? &m->plan->src : &m->plan->dst;
  for (u32 k = 0; k < 1u << s->class_bits; k++) {
    u32 first, place, number = piece ^ layout_piece_of_class(s, k, &first, &place);
    if (!layout_piece_threads(s, number))
      continue;
    move_class(g, m, s, first, place, both(g, has_number(g, s, number), store ? m->leader : NULL), store, regs);
  }
}

/* Threads that hold copies do not store; stmatrix is the whole warp's, so there only whole warps stay out. */
void
pieces_move(Gen *g, const Op *op, const PiecesPlan *p, const Dist *from, const Val *in, const Late *late, Val *out)
{
  const Type *t = op_result(op)->type;
  u32 copies = from->free_threads;
  Move m = {.plan = p, .late = late, .elem = gen_elem_type(g, t->dt, type_is_ptr(t)),
            .leader = team_bits_zero(g, p->shared.stmatrix ? copies & ~(LANES - 1u) : copies)};
  m.buf = (Buffer){.smem = p->shared.smem, .d = t->dt, .ptr = type_is_ptr(t), .bytes = type_elem_bytes(t),
                   .at = (u64)op_int(op, AT_SCRATCH, 0)};
  for (u32 piece = 0; piece < 1u << p->bits; piece++) {
    if (piece)
      team_barrier(g);
    move_side(g, &m, piece, true, (Val *)in);
    team_barrier(g);
    move_side(g, &m, piece, false, out);
  }
}
