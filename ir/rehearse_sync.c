/* rehearse_sync.c - mbarriers of a rehearsal, and when teams read and write buffers.
 *
 * Each actor knows up to when what others did has happened before. Who arrives at an mbarrier leaves there what it knows, who waits for the
 * phase takes it (as in interp_teams.c). A buffer that is written while another team's read of all of it is not among that is filled too
 * early, whatever the order in which they take turns. */
#include "rehearse.h"

/* ---- slots ---- */

static void
number_slots(Op *op, void *user)
{
  Rehearsed *r = user;
  if (op->code != OP_SHARED_ALLOC)
    return;
  r->first[op_result(op)->id] = r->nslots;
  r->nslots += max_u32(1, op_result(op)->type->count);
}

void
rehearse_slots(Rehearsed *r)
{
  u32 n = rehearsed_actors(r);
  r->first = NEW_ARRAY(r->arena, u32, r->f->nvalues);
  r->nslots = 0;
  block_walk(r->f->body, number_slots, r);
  r->slots = NEW_ARRAY(r->arena, Slot, r->nslots * r->nranks);
  for (u32 i = 0; i < r->nslots * r->nranks; i++) {
    u64 *clocks = NEW_ARRAY(r->arena, u64, 4 * n);
    r->slots[i].left = clocks;
    r->slots[i].ended = clocks + n;
    r->slots[i].seen = clocks + 2 * n;
    r->slots[i].read = clocks + 3 * n;
    r->slots[i].reader = NEW_ARRAY(r->arena, const Op *, n);
  }
}

/* NULL: nobody knows which. */
static Slot *
slot_of(const Rehearsed *r, const Value *b, u32 rank)
{
  Known k = rehearsed_value(r, b);
  return k.sure ? &r->slots[rank * r->nslots + k.bits] : NULL;
}

static Slot *
mbarrier(const Rehearsed *r, const Value *b, u32 rank)
{
  Slot *s = slot_of(r, b, rank);
  return s && s->init ? s : NULL;
}

/* ---- clocks ---- */

static void
learn(const Rehearsed *r, u64 *to, const u64 *from)
{
  for (u32 i = 0; i < rehearsed_actors(r); i++)
    to[i] = max_u64(to[i], from[i]);
}

static void
leave(const Rehearsed *r, Slot *m)
{
  learn(r, m->left, r->actor->known);
  m->left[r->actor->number] = r->now;
}

static void
end_phase(const Rehearsed *r, Slot *m)
{
  if (m->arrived < m->count || m->bytes)
    return;
  m->arrived = 0;
  m->phase++;
  learn(r, m->ended, m->left);
}

static Went
initialise(Rehearsed *r, const Op *op)
{
  Slot *m = slot_of(r, OPERAND(op, MBARRIER_INIT, b), r->actor->rank);
  if (!m)
    return rehearsal_lost(r);
  m->init = op;
  m->count = (u32)op_int(op, AT_ARRIVALS, 1);
  return WENT_ON;
}

static Went
arrive(Rehearsed *r, const Op *op)
{
  const Value *b = OPERAND(op, MBARRIER_ARRIVE, b);
  Slot *m = mbarrier(r, b, rehearsed_value(r, b).rank);
  if (!m)
    return rehearsal_lost(r);
  leave(r, m);
  m->arrived++;
  m->bytes += op_int(op, AT_BYTES, 0);
  end_phase(r, m);
  return WENT_ON;
}

/* The parity means the next phase that the actor has not seen end, or the last that it has. */
static Went
wait_for(Rehearsed *r, const Op *op)
{
  Slot *m = mbarrier(r, OPERAND(op, MBARRIER_WAIT, b), r->actor->rank);
  Known parity = rehearsed_value(r, OPERAND(op, MBARRIER_WAIT, parity));
  if (!m || !parity.sure || parity.bits > 1)
    return rehearsal_lost(r);
  u64 *seen = &m->seen[r->actor->number], next = (*seen & 1) == parity.bits;
  if (next && m->phase >= *seen + 2)
    return rehearsal_lost(r);
  if ((m->phase & 1) == parity.bits)
    return WAITS;
  *seen += next;
  learn(r, r->actor->known, m->ended);
  return WENT_ON;
}

static Went
meet(Rehearsed *r)
{
  Actor *a = r->actor;
  if (!a->meeting) {
    a->meeting = r->meetings + 1;
    r->met++;
  }
  if (r->met == r->nranks) {
    r->met = 0;
    r->meetings++;
  }
  if (r->meetings < a->meeting)
    return WAITS;
  a->meeting = 0;
  for (u32 i = 0; i < rehearsed_actors(r); i++)
    a->known[i] = r->now;
  return WENT_ON;
}

/* ---- buffers ---- */

static bool
is_part(const Value *b)
{
  for (; b && b->def && op_is_view(b->def); b = op_buffer(b->def))
    if (b->def->code == OP_SHARED_SLICE)
      return true;
  return false;
}

static const Op *
under_way(const Actor *a, const Slot *s)
{
  for (u32 i = 0; i < a->reads.len; i++)
    if (a->reads.data[i].slot == s)
      return a->reads.data[i].op;
  return NULL;
}

/* How many there are in the row that b is picked from, 0: in none; and which of them it is. */
static u32
row_of(const Value *b)
{
  const Op *alloc = buffer_alloc(b);
  return alloc && alloc->code == OP_SHARED_ALLOC ? op_result(alloc)->type->count : 0;
}

static u32
place_in_row(const Rehearsed *r, const Value *b)
{
  return row_of(b) ? (u32)rehearsed_value(r, b).bits - r->first[op_result(buffer_alloc(b))->id] : 0;
}

static Went
overtakes(Rehearsed *r, const Op *write, const Op *read, const Actor *reader)
{
  const Value *b = op_buffer(write);
  *r->out = (Rehearsal){.found = REHEARSED_OVERTAKES, .write = write, .read = read, .teams = {r->actor->part - 1, reader->part - 1},
                        .slot = place_in_row(r, b), .slots = row_of(b)};
  return STOPS;
}

/* By the actor, which is a team, to the buffer of that program. */
static Went
write_to(Rehearsed *r, const Op *op, u32 rank)
{
  const Slot *s = slot_of(r, op_buffer(op), rank);
  for (u32 p = 1; s && r->actor->part && p < r->nparts; p++) {
    const Actor *a = &r->actors[rank * r->nparts + p];
    const Op *read = a == r->actor ? NULL : under_way(a, s);
    if (!read && a != r->actor && s->read[a->number] > r->actor->known[a->number])
      read = s->reader[a->number];
    if (read)
      return overtakes(r, op, read, a);
  }
  return WENT_ON;
}

static void
read_of(Rehearsed *r, const Op *op, const Value *b)
{
  Slot *s = is_part(b) || buffer_remote(b) ? NULL : slot_of(r, b, r->actor->rank);
  if (s && op->code == OP_WGMMA) {
    vec_push(r->arena, &r->actor->reads, ((Reading){s, r->actor->products, op}));
  } else if (s) {
    s->read[r->actor->number] = r->now;
    s->reader[r->actor->number] = op;
  }
}

static Went
load_to(Rehearsed *r, const Op *op, u32 rank)
{
  const Type *t = op_buffer(op)->type;
  Slot *m = mbarrier(r, OPERAND(op, TMA_LOAD, m), rank);
  Went w = write_to(r, op, rank);
  leave(r, m);
  m->bytes -= (i64)type_numel(t) * dtype_bytes(t->dt);
  end_phase(r, m);
  return w;
}

/* Programs take turns op by op, so all have initialised their mbarriers when one of them is reached. */
static Went
load_box(Rehearsed *r, const Op *op)
{
  u32 step[3], all = cluster_recipients(op, step), first = r->actor->rank;
  Went w = WENT_ON;
  for (u32 a = 0; a < 3; a++)
    first -= step[a] ? first / step[a] % r->f->cluster[a] * step[a] : 0;
  for (u32 k = 0; k < r->nranks; k++)
    if (all >> k & 1 && !mbarrier(r, OPERAND(op, TMA_LOAD, m), first + k))
      return rehearsal_lost(r);
  for (u32 k = 0; k < r->nranks && w == WENT_ON; k++)
    if (all >> k & 1)
      w = load_to(r, op, first + k);
  return w;
}

static Went
multiply(Rehearsed *r, const Op *op)
{
  r->actor->products++;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && type_is_shared(op_operand(op, i)->type))
      read_of(r, op, op_operand(op, i));
  return WENT_ON;
}

/* All products but the newest are done, and so is what they read. */
static Went
wait_for_products(Rehearsed *r, const Op *op)
{
  Actor *a = r->actor;
  u64 newest = (u64)op_int(op, AT_PENDING, 0);
  u32 left = 0;
  for (u32 i = 0; i < a->reads.len; i++) {
    Reading x = a->reads.data[i];
    if (x.product + newest > a->products) {
      a->reads.data[left++] = x;
    } else {
      x.slot->read[a->number] = r->now;
      x.slot->reader[a->number] = x.op;
    }
  }
  a->reads.len = left;
  return WENT_ON;
}

/* ---- everything ---- */

bool
rehearse_orders(const Op *op)
{
  switch ((u32)op->code) {
  case OP_MBARRIER_INIT: case OP_MBARRIER_ARRIVE: case OP_MBARRIER_WAIT: case OP_TMA_LOAD: case OP_CLUSTER_BARRIER:
  case OP_WGMMA: case OP_WGMMA_WAIT: case OP_WARP_SPECIALIZE: return true;
  default: return false;
  }
}

Went
rehearse_sync(Rehearsed *r, const Op *op)
{
  switch ((u32)op->code) {
  case OP_MBARRIER_INIT: return initialise(r, op);
  case OP_MBARRIER_ARRIVE: return arrive(r, op);
  case OP_MBARRIER_WAIT: return wait_for(r, op);
  case OP_CLUSTER_BARRIER: return meet(r);
  case OP_TMA_LOAD: return load_box(r, op);
  case OP_WGMMA: return multiply(r, op);
  case OP_WGMMA_WAIT: return wait_for_products(r, op);
  case OP_ASYNC_COPY: case OP_SHARED_STORE: return buffer_remote(op_buffer(op)) ? WENT_ON : write_to(r, op, r->actor->rank);
  case OP_SHARED_LOAD: read_of(r, op, op_buffer(op)); return WENT_ON;
  default: return WENT_ON;
  }
}

static void
put_wait(Rehearsed *r, const Actor *a)
{
  const Value *b = OPERAND(a->waits, MBARRIER_WAIT, b);
  r->env = r->envs[a->rank];
  const Slot *m = mbarrier(r, b, a->rank);
  r->out->waits[r->out->nwaits++] = (TeamWait){.op = a->waits, .team = a->part - 1, .slot = place_in_row(r, b), .slots = row_of(b),
                                               .wanted = m->count, .arrived = m->arrived, .phase = m->phase, .bytes = m->bytes};
}

/* Of a cluster those of its first program in which somebody waits. What waits for regions, or for others at a barrier, is no cause. */
void
rehearse_put_waits(Rehearsed *r)
{
  for (u32 k = 0; k < r->nranks && !r->out->nwaits; k++)
    for (u32 p = 0; p < r->nparts; p++) {
      const Actor *a = &r->actors[k * r->nparts + p];
      if (a->begun && !a->ended && a->waits && a->waits->code == OP_MBARRIER_WAIT)
        put_wait(r, a);
    }
}
