/* kept_boxes.c - boxes that products have from outside of their loops come by the team that copies, too.
 * Part of pipeline_loops, behind roles.c, which has parted the kernel.
 *
 *   for tile {                                    for tile {                          for tile {
 *     q = tensor_load t, i                          wait until qs[get] is full          wait until qs[put] is empty
 *     b = shared_alloc; shared_store b, q    ==>                                        copy t, i to qs[put]
 *     loops of products that read b                 loops that read qs[get]             copies of the loops
 *     shared_free b                                 hand qs[get] back
 *     the tile is stored                            the tile is stored
 *   }                                             }                                   }
 *
 * A box that the team that multiplies copies itself it waits for where it asks, with nothing to do. In a loop around (programs that stay)
 * the other team has the next one on its way while this tile is still multiplied, where a second slot has room, or stored. That is done for
 * boxes that nothing but products reads, and whose coordinates that team knows.
 *
 * Such buffers live as long as the teams, so scratch memory no longer lies where they were: that of the kernel's largest conversion has
 * room beside them, in both teams' parts of what is left, or the box stays what it was. (On an H200 attention whose tiles leave by threads
 * has 566 TFLOP/s, where conversions went in pieces 501.) */
#include "boxes.h"
#include "roles.h"

enum { BESIDE = 1024 };    /* what alignment takes */

typedef struct Box { Op *load, *alloc, *store, *end; } Box;

/* The one op of this kind that uses the buffer, of the block that it is made in; NULL: none, or several. */
static Op *
only_user(const Value *buffer, OpCode code)
{
  Op *found = NULL;
  for (const Use *u = buffer->uses; u; u = u->next) {
    if (u->user->code == code && (found || u->user->block != buffer->def->block))
      return NULL;
    found = u->user->code == code ? u->user : found;
  }
  return found;
}

/* The buffer that products keep the box in, if nothing else takes it: products alone read such a buffer. */
static bool
find_box(Ctx *c, Op *load, Box *x)
{
  const Use *u = op_result(load)->uses;
  *x = (Box){.load = load, .store = u && !u->next ? u->user : NULL};
  if (!x->store || x->store->code != OP_SHARED_STORE || x->store->block != load->block)
    return false;
  const Value *buffer = OPERAND(x->store, SHARED_STORE, b);
  x->alloc = op_is(buffer, OP_SHARED_ALLOC) && buffer->type == box_buffer(c, op_result(load)->type) ? buffer->def : NULL;
  x->end = x->alloc && x->alloc->block == load->block ? only_user(buffer, OP_SHARED_FREE) : NULL;
  return x->end;
}

/* ---- room ---- */

typedef struct Room { u64 buffers, scratch; } Room;

static void
look(Op *op, void *user)
{
  Room *r = user;
  if (op->code == OP_SHARED_ALLOC)
    r->buffers += buffer_bytes(op);
  u64 converts = op->code == OP_CONVERT_LAYOUT ? (u64)box_tile_bytes(op_result(op)->type) : 0;
  r->scratch = converts > r->scratch ? converts : r->scratch;
}

/* How many slots the box may have: 2, 1, or 0 if it is to stay what it is. copy: the load, in the other team. */
static u32
slots_for(Ctx *c, Func *f, const Box *x, const Op *copy)
{
  u64 one = type_shared_bytes(op_result(x->alloc)->type);
  Room room = {0};
  func_walk(f, look, &room);
  u64 bytes = BESIDE + room.buffers + 2 * room.scratch;
  bytes += box_bytes_beside(c, f, NULL, 1, 2, (const Op *const[]){x->load, copy});
  return bytes + one <= c->target->shared_max ? 2 : bytes <= c->target->shared_max ? 1 : 0;
}

/* ---- the teams ---- */

/* Slot and parity, and what they are for the op of the same team that is reached next. */
typedef struct Turn { Carried around; Value *slot, *phase; } Turn;

static void
begin_turn(Turn *t, Op *op, i64 parity)
{
  static const char *const names[] = {"slot", "phase"};
  carried_begin(&t->around, 1, &op, 2, (i64[]){0, parity}, names);
  t->slot = t->around.in[0][0];
  t->phase = t->around.in[0][1];
}

static void
end_turn(Turn *t, const Ring *r, Builder *b)
{
  Value *phase = t->phase, *next = ring_next(r, b, t->slot, &phase);
  carried_end(&t->around, (Value *[]){next, phase});
}

static void
fill(Ring *r, Op *load, Value *const *map)
{
  Turn t;
  begin_turn(&t, load, 1);
  Builder b = builder_before(load);
  b.span = load->span;
  op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){ir_shared_index(&b, r->empty, t.slot), t.phase}, 0, NULL, 0);
  ring_fill(r, &b, t.slot, map);
  end_turn(&t, r, &b);
  value_replace_uses(op_result(load), ir_const_bits(&b, op_result(load)->type, 0));
  op_remove(load);
}

static void
empty(Ring *r, const Box *x)
{
  Turn t;
  begin_turn(&t, x->load, 0);
  Builder b = builder_before(x->load);
  b.span = x->load->span;
  r->get = t.slot;
  r->phase = t.phase;
  ring_await(r, &b);
  value_replace_uses(op_result(x->alloc), ir_shared_index(&b, r->row[0].buffers, t.slot));
  b = builder_before(x->end);
  b.span = x->load->span;
  Value *m = ir_shared_index(&b, r->empty, t.slot);
  op_create(&b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
  end_turn(&t, r, &b);
  op_remove(x->end);
  op_remove(x->store);
  op_remove(x->alloc);
  op_remove(x->load);
}

static void
hand_over(Ctx *c, Func *f, Box *x, Op *copy, u32 slots, Value *const *map)
{
  Op *teams = op_ancestor_in(copy, f->body);
  Ring r = {.c = c, .f = f, .loop = teams, .slots = slots, .n = 1, .boxes = 1};
  r.row[0] = (RingRow){.load = x->load, .box = true, .smem = op_result(x->alloc)->type->layout};
  ring_make_mbarriers(&r, true);
  Builder b = builder_before(teams);
  ring_make_buffers(&r, &b);
  fill(&r, copy, map);
  empty(&r, x);
}

void
roles_keep_boxes(Ctx *c, Func *f, const OpVec *loads, Value *const *map)
{
  for (u32 i = 0; i < loads->len; i++) {
    Box x;
    Op *copy = map[op_result(loads->data[i])->id]->def;
    u32 slots = find_box(c, loads->data[i], &x) ? slots_for(c, f, &x, copy) : 0;
    if (slots)
      hand_over(c, f, &x, copy, slots, map);
  }
}
