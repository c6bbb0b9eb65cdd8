/* ring.c - see ring.h. */
#include "ring.h"
#include "boxes.h"
#include "loop_slice.h"
#include "pipeline.h"

const Layout *
ring_readers_layout(const Op *load)
{
  for (const Use *u = op_result(load)->uses; u; u = u->next) {
    const Op *op = u->user;
    if (op->code == OP_CAST && op_result(op)->uses)
      op = op_result(op)->uses->user;
    if (op->code == OP_CONVERT_LAYOUT)
      return op_result(op)->type->layout;
  }
  return NULL;
}

/* ---- buffers and mbarriers ---- */

const Type *
ring_buffers_type(const Ring *r, u32 row)
{
  const Type *t = op_result(r->row[row].load)->type;
  if (r->row[row].box)
    return box_buffers(r->c, t, r->slots);
  return type_shared(r->c, t->dt, r->slots, t->rank, t->shape, NULL, r->row[row].smem, 0, 0);
}

bool
ring_row_is_slim(const Ring *r, u32 row)
{
  enum { LESS = 2 };
  u64 most = 0;
  for (u32 k = 0; k < r->n; k++)
    most = max_u64(most, type_shared_bytes(ring_buffers_type(r, k)));
  const Op *load = r->row[row].load;
  return op_result(load)->type->rank == 1 ||
         (type_shared_bytes(ring_buffers_type(r, row)) * LESS <= most && !warpgroup_reads(r->loop, load));
}

u64
ring_bytes(const Ring *r)
{
  u64 bytes = 0;
  for (u32 k = 0; k < r->n; k++)
    bytes += type_shared_bytes(ring_buffers_type(r, k));
  return bytes;
}

void
ring_make_buffers(Ring *r, Builder *b)
{
  for (u32 k = 0; k < r->n; k++) {
    b->span = r->row[k].load->span;
    r->row[k].buffers = ir_shared_alloc(b, ring_buffers_type(r, k));
    r->row[k].buffers->name = op_result(r->row[k].load)->name;
  }
  b->span = r->loop->span;
}

void
ring_make_mbarriers(Ring *r, bool two_teams)
{
  r->full = box_mbarriers(r->c, r->f, r->loop->span, r->slots);
  r->empty = two_teams ? box_mbarriers(r->c, r->f, r->loop->span, r->slots) : NULL;
}

void
ring_share(Ring *r, const Ring *with)
{
  r->full = with->full;
  r->empty = with->empty;
  for (u32 k = 0; k < r->n; k++)
    r->row[k].buffers = with->row[k].buffers;
}

void
ring_free(Ring *r, Builder *b)
{
  for (u32 k = 0; k < r->n; k++)
    op_create(b, OP_SHARED_FREE, 1, &r->row[k].buffers, 0, NULL, 0);
}

/* ---- slots ---- */

static const char *const carried_names[] = {"get", "phase"};

void
ring_begin(Carried *s, u32 n, Ring *const *rings)
{
  Op *loops[CARRIED_OPS] = {0};
  for (u32 i = 0; i < n; i++)
    loops[i] = rings[i]->loop;
  carried_begin(s, n, loops, 2, (i64[]){0, 0}, carried_names);
  for (u32 i = 0; i < n; i++) {
    memcpy(rings[i]->from, s->in[i], sizeof rings[i]->from);
    rings[i]->moves = s->moves;
  }
}

void
ring_end(Carried *s, u32 n, Ring *const *rings)
{
  Value *out[2 * CARRIED_OPS];
  for (u32 i = 0; i < n; i++) {
    out[2 * i] = loop_result_of(rings[i]->loop, rings[i]->get);
    out[2 * i + 1] = loop_result_of(rings[i]->loop, rings[i]->phase);
  }
  carried_end(s, out);
}

Value *
ring_next(const Ring *r, Builder *b, Value *slot, Value **phase)
{
  Value *more = ir_binary(b, OP_ADD, slot, i32_const(b, 1));
  Value *wrap = ir_cmp(b, "eq", more, i32_const(b, r->slots));
  if (phase)
    *phase = ir_select(b, wrap, ir_binary(b, OP_XOR, *phase, i32_const(b, 1)), *phase);
  return ir_select(b, wrap, i32_const(b, 0), more);
}

Value *
ring_first(const Ring *r, Builder *b, u32 s)
{
  if (!r->boxes || !r->moves)
    return i32_const(b, s);
  Value *sum = ir_binary(b, OP_ADD, r->from[0], i32_const(b, s));
  Value *around = ir_binary(b, OP_SUB, sum, i32_const(b, r->slots));
  return ir_select(b, ir_cmp(b, "lt", sum, i32_const(b, r->slots)), sum, around);
}

/* ---- filling ---- */

Value *
ring_announce(const Ring *r, Builder *b, Value *slot)
{
  i64 bytes = 0;
  for (u32 k = 0; k < r->n; k++)
    bytes += r->row[k].box ? box_tile_bytes(op_result(r->row[k].load)->type) : 0;
  Value *full = ir_shared_index(b, r->full, slot);
  op_set_int(op_create(b, OP_MBARRIER_ARRIVE, 1, &full, 0, NULL, 0), AT_BYTES, bytes);
  return full;
}

static void
copy_tile(const Ring *r, Builder *b, const Op *load, Value *buffer, Value *const *map)
{
  Op *copy = ir_async_copy(b, buffer, value_mapped(map, OPERAND(load, LOAD, p)), value_mapped(map, OPERAND(load, LOAD, mask)));
  op_set_int(copy, AT_VEC, op_int(load, AT_VEC, 1));
  op_set_int(copy, AT_AHEAD, loop_number_ahead(r->loop));
  op_copy_attr(copy, load, AT_EVICT);
}

void
ring_fill(const Ring *r, Builder *b, Value *slot, Value *const *map)
{
  Value *full = r->boxes ? ring_announce(r, b, slot) : NULL;
  Span at = b->span;
  for (u32 k = 0; k < r->n; k++) {
    const Op *load = r->row[k].load;
    b->span = load->span;
    Value *buffer = ir_shared_index(b, r->row[k].buffers, slot);
    if (r->row[k].box)
      box_copy(b, load, map, buffer, full);
    else
      copy_tile(r, b, load, buffer, map);
  }
  b->span = at;
}

/* ---- reading ---- */

void
ring_await(const Ring *r, Builder *b)
{
  op_create(b, OP_MBARRIER_WAIT, 2, (Value *[]){ir_shared_index(b, r->full, r->get), r->phase}, 0, NULL, 0);
}

/* This iteration's tile in layout l, from its buffer. */
static Value *
read_row(const Ring *r, Builder *b, const RingRow *row, const Layout *l)
{
  const Type *t = op_result(row->load)->type;
  Value *buffer = ir_shared_index(b, row->buffers, r->get);
  Value *v = ir_shared_load(b, buffer, type_with_layout(r->c, t, l)), *other = OPERAND(row->load, LOAD, other);
  if (r->slots_stay)
    op_set_int(v->def, AT_SLOT, 1);
  return row->fills ? ir_select(b, OPERAND(row->load, LOAD, mask), v, other) : v;
}

/* What op makes of it, its dimensions reordered, from the buffer seen so: a dot may load its fragments itself then. */
static Value *
read_turned(const Ring *r, Builder *b, const RingRow *row, const Op *op)
{
  const Attr *perm = op_attr(op, AT_PERM);
  int p[MAX_RANK];
  for (u32 i = 0; i < perm->ints.n; i++)
    p[i] = (int)perm->ints.v[i];
  Value *v = ir_shared_load(b, ir_shared_permute(b, ir_shared_index(b, row->buffers, r->get), p), op_result(op)->type);
  if (r->slots_stay)
    op_set_int(v->def, AT_SLOT, 1);
  return v;
}

/* The one conversion of the load's tile to layout l, in its block; NULL: there are none, or several. */
static Op *
only_conversion(const Op *load, const Layout *l)
{
  Op *found = NULL;
  for (const Use *u = op_result(load)->uses; u; u = u->next) {
    if (u->user->code != OP_CONVERT_LAYOUT || op_result(u->user)->type->layout != l)
      continue;
    if (found || u->user->block != load->block)
      return NULL;
    found = u->user;
  }
  return found;
}

/* The dot in the block that alone takes v, or `other`. */
static Op *
only_dot(const Value *v, const Block *block, Op *other)
{
  Op *user = value_use_count(v) == 1 ? v->uses->user : NULL;
  return user && op_is_dot(user) && user->block == block ? user : other;
}

/* A tile that goes to several dots, each with its own layout, is read by each where that stands: rather than held beside the others, or
 * brought from one to the other. */
static void
read_for_each(const Ring *r, const RingRow *row)
{
  const Layout *first = row->want;
  bool several = false;
  for (const Use *u = op_result(row->load)->uses; u; u = u->next)
    several |= u->user->code == OP_CONVERT_LAYOUT && op_result(u->user)->type->layout != first;
  if (!several || row->fills || warpgroup_reads(r->loop, row->load))
    return;
  for (const Use *u = op_result(row->load)->uses, *next; u; u = next) {
    next = u->next;
    Op *convert = u->user;
    if (convert->code != OP_CONVERT_LAYOUT || only_conversion(row->load, op_result(convert)->type->layout) != convert)
      continue;
    Op *turned = value_use_count(op_result(convert)) == 1 ? op_result(convert)->uses->user : NULL;
    Value *old = op_result(turned && turned->code == OP_PERMUTE ? turned : convert);
    Builder at = builder_before(only_dot(old, row->load->block, convert));
    value_replace_uses(old, old == op_result(convert) ? read_row(r, &at, row, old->type->layout) : read_turned(r, &at, row, turned));
    if (old != op_result(convert))
      op_remove(turned);
    op_remove(convert);
  }
}

/* Uses of the loaded tile become loads from shared memory, in the layout that they want. */
static void
replace_load(const Ring *r, const RingRow *row)
{
  Op *load = row->load;
  Builder b = builder_before(load);
  Value *own = NULL, *wanted = NULL, *old = op_result(load);
  read_for_each(r, row);
  while (old->uses) {
    Op *user = old->uses->user;
    Op *convert = user->code == OP_CAST && value_use_count(op_result(user)) == 1 ? op_result(user)->uses->user : user;
    if (convert->code == OP_CONVERT_LAYOUT && op_result(convert)->type->layout == row->want) {
      if (!wanted)
        wanted = read_row(r, &b, row, row->want);
      Value *with = wanted;
      if (convert != user) {
        Builder at = builder_before(convert);
        with = ir_cast(&at, wanted, op_result(user)->type->dt);
      }
      value_replace_uses(op_result(convert), with);
      op_remove(convert);
      if (convert != user)
        op_remove(user);
      continue;
    }
    if (!own)
      own = read_row(r, &b, row, old->type->layout);
    op_set_operand(user, (u32)(old->uses - user->operands), own);
  }
  own = own ? own : wanted;
  if (own)
    own->name = old->name;
  op_remove(load);
}

void
ring_read(Ring *r)
{
  for (u32 k = 0; k < r->n; k++)
    replace_load(r, &r->row[k]);
}
