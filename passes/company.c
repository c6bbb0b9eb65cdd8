/* company.c - see company.h. Behind roles.c, which has parted the kernel.
 *
 * A residual is as large as the result, and a team that multiplies would wait for each piece of it (store_pieces.c) with nothing to do. So
 * a team of its own, of one thread, has these on their way while the tile is still multiplied. They come to the very buffers through which
 * the result leaves: a piece is read, computed with, and put back where it was.
 *
 *   for tile {                                 for tile {                               for tile {                       the third team
 *     loop of products                           loop of products                         copy pieces 0 .. S - 1 to b[0 .. S - 1]
 *     for each piece j, unrolled {               for each piece j {                       for each piece j {
 *       r = tensor_load t, j            ==>        wait full[j % S]; r = b[j % S]           wait written[j % S]
 *       tensor_store u, f(sums, r), j              b[j % S] = f(sums, r)                    store b[j % S]; wait until that is read
 *     }                                            arrive written[j % S]                    copy piece j + S to b[j % S]
 *   }                                            }                                        }
 *                                              }                                        }
 *
 * The team that fills the ring could not do that: it would wait for a piece to be written while products wait for the next tile's
 * factors. Nor need a team that multiplies wait for a copy to have read a buffer. Pieces for which there is no buffer yet are brought as
 * far as the L2 cache.
 *
 * The pieces of a tile are a multiple of S, so which buffer one has is known here, and so is the parity that is waited for, but for that
 * of the tile's number where the turns that a tile makes round the buffers are odd. Teams that multiply by turns (pingpong.c) share the
 * buffers, since a tile's first pieces are copied when those of the tile before have been stored, but have mbarriers of their own: one that
 * passes over the other's turns without seeing them could take an old phase for a new one.
 *
 * When. All pieces that the kernel stores have such a box, of the same form, in front of their own store and behind the one before; they
 * stand in one block, that of the kernel or of the loop over its programs; and the team knows where they are. Others are waited for where
 * they are loaded, and leave through buffers of the team that multiplies. */
#include "company.h"
#include "boxes.h"

/* ---- which ---- */

typedef struct Home { Block *block; bool several; } Home;

static void
find_block(Op *op, void *user)
{
  Home *h = user;
  if (!box_is_kept(op))
    return;
  h->several |= h->block && h->block != op->block;
  h->block = op->block;
}

static bool
alike(Ctx *c, const Op *load, const Op *store)
{
  return box_buffer(c, op_result(load)->type) == box_buffer(c, OPERAND(store, TENSOR_STORE, x)->type);
}

/* The next store in pieces, from op on. */
static Op *
next_kept(Op *op)
{
  while (op && !box_is_kept(op))
    op = op->next;
  return op;
}

/* A load and a store in turn; other boxes may be loaded among these. What is loaded in front of a loop is that loop's: attention's
 * queries are as large as what it stores. */
static bool
pair(Ctx *c, Company *x)
{
  const Op *first = next_kept(x->block->first);
  Op *load = NULL;
  for (Op *op = x->block->first; op; op = op->next) {
    if (load && op_is_loop(op))
      return false;
    if (op->code == OP_TENSOR_LOAD && alike(c, op, first)) {
      if (load)
        return false;
      load = op;
    } else if (box_is_kept(op)) {
      if (!load || !alike(c, load, op) || x->n == COMPANY_MOST)
        return false;
      x->load[x->n] = load;
      x->store[x->n++] = op;
      load = NULL;
    }
  }
  return !load;
}

Company
company_find(Ctx *c, Block *home)
{
  Home h = {0};
  block_walk(home, find_block, &h);
  Company x = {.block = h.block};
  const Op *loop = x.block && x.block != home ? x.block->parent : NULL;
  bool fits = x.block && !h.several && (!loop || (loop->code == OP_FOR && loop->block == home));
  return fits && pair(c, &x) ? x : (Company){0};
}

void
company_keep_places(Ctx *c, Block *own)
{
  Company x = company_find(c, own);
  for (u32 j = 0; j < x.n; j++)
    op_set_operand(x.store[j], SLOT(TENSOR_STORE, x), op_result(x.load[j]));
  block_drop_unused(x.block);
}

/* ---- room ---- */

u32
company_least(const Company *x)
{
  return x->n < 2 ? x->n : 2 - x->n % 2;
}

u64
company_bytes(Ctx *c, const Company *x, u32 slots)
{
  return slots ? slots * type_shared_bytes(box_buffer(c, op_result(x->load[0])->type)) : 0;
}

u32
company_slots(Ctx *c, const Company *x, u64 beside)
{
  u32 slots = x->n;
  while (slots > 1 && (x->n % slots || beside + company_bytes(c, x, slots) > c->target->shared_max))
    slots--;
  return slots;
}

/* ---- turns ---- */

typedef struct Exchange {
  Ctx *c;
  u32 slots, teams;          /* buffers; teams that multiply, which have their tiles by turns */
  Value **buffer;            /* one each */
  Value *full, *written;     /* rows of mbarriers: those of the first team, then those of the second */
} Exchange;

static Value *
mbarrier_of(const Exchange *e, Builder *b, Value *row, Value *first, u32 j)
{
  Value *slot = i32_const(b, j % e->slots);
  return ir_shared_index(b, row, first ? ir_binary(b, OP_ADD, first, slot) : slot);
}

/* Piece j has its buffer for the j / slots-th time in this tile, whose first time is of parity `base` (NULL: 0). */
static void
wait_for(const Exchange *e, Builder *b, Value *row, Value *first, Value *base, u32 j)
{
  Value *turn = i32_const(b, j / e->slots % 2), *parity = base ? ir_binary(b, OP_XOR, base, turn) : turn;
  op_create(b, OP_MBARRIER_WAIT, 2, (Value *[]){mbarrier_of(e, b, row, first, j), parity}, 0, NULL, 0);
}

static Op *
arrive(const Exchange *e, Builder *b, Value *row, Value *first, u32 j)
{
  Value *m = mbarrier_of(e, b, row, first, j);
  return op_create(b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
}

/* Does a tile make an odd number of turns round the buffers? */
static bool
turns_are_odd(const Exchange *e, const Company *x)
{
  return x->n / e->slots % 2;
}

/* The loop over tiles carries a number that starts as 0 and changes between 0 and 1 where `when` (NULL: always) is 1; NULL: there is no
 * loop. */
static Value *
alternate(const Company *x, const Block *home, Value *when, const char *name)
{
  Op *loop = x->block == home ? NULL : x->block->parent;
  if (!loop)
    return NULL;
  Builder before = builder_before(loop), last = builder_before(block_terminator(x->block));
  last.span = before.span = loop->span;
  Value *v = loop_carry(loop, i32_const(&before, 0), name);
  op_add_operand(last.before, ir_binary(&last, OP_XOR, v, when ? when : i32_const(&last, 1)));
  return v;
}

/* ---- the teams that multiply ---- */

/* Number p of them. */
static void
give_and_take(const Exchange *e, Block *home, u32 p)
{
  Company x = company_find(e->c, home);
  Value *base = turns_are_odd(e, &x) ? alternate(&x, home, NULL, "parity") : NULL;
  for (u32 j = 0; j < x.n; j++) {
    Op *load = x.load[j], *store = x.store[j];
    Builder b = builder_before(load);
    b.span = load->span;
    Value *buffer = e->buffer[j % e->slots], *first = p ? i32_const(&b, p * e->slots) : NULL;
    wait_for(e, &b, e->full, first, base, j);
    Value *v = ir_shared_load(&b, buffer, op_result(load)->type);
    v->name = op_result(load)->name;
    value_replace_uses(op_result(load), v);
    op_remove(load);
    b = builder_before(store);
    b.span = store->span;
    ir_shared_store(&b, buffer, OPERAND(store, TENSOR_STORE, x));
    arrive(e, &b, e->written, first, j);
    op_remove(store);
  }
}

/* ---- the team that brings and stores ---- */

static void
bring(const Exchange *e, Builder *b, const Op *load, Value *first, u32 j)
{
  Op *announced = arrive(e, b, e->full, first, j);
  op_set_int(announced, AT_BYTES, box_tile_bytes(op_result(load)->type));
  box_copy(b, load, NULL, e->buffer[j % e->slots], OPERAND(announced, MBARRIER_ARRIVE, b));
}

/* Into the L2 cache. */
static void
bring_near(const Exchange *e, Builder *b, const Op *load)
{
  Value *x[MAX_RANK + WINDOW_DIMS + 2] = {e->buffer[0]};
  for (u32 i = 0; i < load->noperands; i++)
    x[1 + i] = op_operand(load, i);
  op_copy_attr(op_create(b, OP_TMA_PREFETCH, 1 + load->noperands, x, 0, NULL, 0), load, AT_EVICT);
}

static void
store_piece(const Exchange *e, Builder *b, const Op *store, u32 j)
{
  box_copy(b, store, NULL, e->buffer[j % e->slots], NULL);
  op_create(b, OP_TMA_COMMIT, 0, NULL, 0, NULL, 0);
  Op *wait = op_create(b, OP_TMA_WAIT, 0, NULL, 0, NULL, 0);
  op_set_int(wait, AT_PENDING, 0);
  op_set_int(wait, AT_READ, 1);
}

/* All stands where the last piece is stored, behind what all coordinates are computed from. */
static void
bring_and_store(const Exchange *e, Block *home)
{
  Company x = company_find(e->c, home);
  Value *turn = e->teams > 1 ? alternate(&x, home, NULL, "turn") : NULL;
  Value *base = turns_are_odd(e, &x) ? alternate(&x, home, turn, "parity") : NULL;
  Builder b = builder_before(x.store[x.n - 1]);
  b.span = b.before->span;
  Value *first = turn ? ir_binary(&b, OP_MUL, turn, i32_const(&b, e->slots)) : NULL;
  for (u32 j = 0; j < e->slots; j++)
    bring(e, &b, x.load[j], first, j);
  for (u32 j = e->slots; j < x.n; j++)
    bring_near(e, &b, x.load[j]);
  for (u32 j = 0; j < x.n; j++) {
    wait_for(e, &b, e->written, first, base, j);
    store_piece(e, &b, x.store[j], j);
    if (j + e->slots < x.n)
      bring(e, &b, x.load[j + e->slots], first, j + e->slots);
  }
  for (u32 j = 0; j < x.n; j++)
    op_remove(x.store[j]);
}

/* ---- all of them ---- */

void
company_hand_over(Ctx *c, Op *teams, Block *own, u32 n, Block *const *multiply, u32 slots)
{
  Func *f = own->func;
  Exchange e = {.c = c, .slots = slots, .teams = n, .buffer = NEW_ARRAY(c->scratch, Value *, slots)};
  Company x = company_find(c, own);
  Span at = x.store[0]->span;
  e.full = box_mbarriers(c, f, at, n * slots);
  e.written = box_mbarriers(c, f, at, n * slots);
  Builder b = builder_before(teams);
  b.span = at;
  for (u32 s = 0; s < slots; s++) {
    e.buffer[s] = ir_shared_alloc(&b, box_buffer(c, op_result(x.load[0])->type));
    e.buffer[s]->name = op_result(x.load[0])->name;
  }
  bring_and_store(&e, own);
  for (u32 p = 0; p < n; p++)
    give_and_take(&e, multiply[p], p);
}
