/* lower_stores.c - boxes that are stored piece by piece go through buffers that stay: a piece is stored to one while the copy of the one
 * before reads another. Part of lower_tensors.
 *
 *   tensor_store t, x, i, j  ==>  tma_wait pending = N - 1, read; shared_store b[k], x; tma_store b[k], t, i, j; tma_commit
 *
 * A team's stores by one type of buffer share a row of N: k goes round it from each of them to the next, as the program is written. N is 2
 * where each block has an even number of them (a tile that is two panels wide gives two) and shared memory has room for that in each team
 * that stores so, else 1. So each block
 * ends with the k that it began with, and whatever way the program takes, buffer k was copied from N stores ago: that copy must have read
 * it, those behind that one may be under way. The last ones are waited for at the end of what the team does: until then the row lives. */
#include "boxes.h"

/* Stores of one buffer type in one team's blocks. */
typedef struct Kept {
  Ctx *c;
  Func *f;
  Block *home;               /* the kernel's body, or a region of its warp_specialize */
  const Type *buffer;
  OpVec stores;
  u32 teams, all;            /* that have such stores and no row yet; that there are */
  u32 n;                     /* buffers */
  Value *row;
} Kept;

static Block *
home_of(const Op *op)
{
  Block *b = op->block;
  while (b->parent && b->parent->code != OP_WARP_SPECIALIZE)
    b = b->parent->block;
  return b;
}

static const Type *
buffer_of_store(Ctx *c, const Op *op)
{
  return box_buffer(c, OPERAND(op, TENSOR_STORE, x)->type);
}

typedef struct Sum {
  Ctx *c;
  const Op *loop;
  u32 teams, nwithout;
  const Op *const *without;
  u64 bytes, largest;
  VEC(const Type *) rows;
} Sum;

static void
add_alloc(Op *op, void *user)
{
  Sum *s = user;
  if (op->code == OP_SHARED_ALLOC)
    s->bytes += buffer_bytes(op);
  if (op->code == OP_TENSOR_LOAD)      /* its buffer lives while it is waited for and read */
    s->largest = max_u64(s->largest, type_shared_bytes(box_buffer(s->c, op_result(op)->type)));
}

/* Once for each type that stays. */
static void
add_row(Sum *s, const Type *buffer)
{
  for (u32 i = 0; i < s->rows.len; i++)
    if (s->rows.data[i] == buffer)
      return;
  vec_push(s->c->scratch, &s->rows, buffer);
  s->bytes += s->teams * type_shared_bytes(buffer);
}

static bool
is_left_out(const Sum *s, const Op *op)
{
  for (u32 i = 0; i < s->nwithout; i++)
    if (s->without[i] == op)
      return true;
  return false;
}

static void
add_box(Op *op, void *user)
{
  Sum *s = user;
  const Op *around = op->block->parent;
  bool stores = op->code == OP_TENSOR_STORE;
  bool loads = op->code == OP_TENSOR_LOAD && !(around && loop_is_staged(around));
  if (is_left_out(s, op))
    return;
  if (box_is_kept(op)) {
    add_row(s, buffer_of_store(s->c, op));
  } else if ((stores || loads) && (!s->loop || op_inside(op, s->loop))) {
    u64 bytes = type_shared_bytes(box_buffer(s->c, stores ? OPERAND(op, TENSOR_STORE, x)->type : op_result(op)->type));
    s->largest = bytes > s->largest ? bytes : s->largest;
  }
}

u64
box_bytes_beside(Ctx *c, Func *f, const Op *loop, u32 teams, u32 n, const Op *const *without)
{
  Sum s = {.c = c, .loop = loop, .teams = teams, .nwithout = n, .without = without};
  func_walk(f, add_box, &s);
  return s.bytes + s.teams * s.largest;
}

/* In all blocks, an even number? */
static bool
come_in_pairs(const Kept *k)
{
  for (u32 i = 0; i < k->stores.len; i++) {
    u32 same = 0;
    for (u32 j = 0; j < k->stores.len; j++)
      same += k->stores.data[j]->block == k->stores.data[i]->block;
    if (same % 2)
      return false;
  }
  return true;
}

/* Where the row is made: in front of all that the stores stand in, at the beginning if that is a loop, whose copies may be under way when
 * it comes round. */
static Op *
place_of(const Kept *k)
{
  Op *first = op_ancestor_in(k->stores.data[0], k->home);
  for (u32 i = 0; i < k->stores.len; i++)
    for (const Op *up = k->stores.data[i]; up->block != k->home; up = up->block->parent)
      if (op_is_loop(up->block->parent))
        return k->home->first;
  return first;
}

static void
make_row(Kept *k)
{
  enum { ALIGNED = 1024 };   /* what small buffers in front of panels take besides */
  Sum s = {.c = k->c, .bytes = ALIGNED};
  const Type *t = k->buffer;
  func_walk(k->f, add_alloc, &s);
  k->n = come_in_pairs(k) && s.bytes + k->all * s.largest + 2 * k->teams * type_shared_bytes(t) <= k->c->target->shared_max ? 2 : 1;
  Builder b = builder_before(place_of(k));
  b.span = k->stores.data[0]->span;
  k->row = ir_shared_alloc(&b, type_shared(k->c, t->dt, k->n, t->rank, t->shape, NULL, t->layout, 0, 0));
}

static void
wait_for(Builder *b, u32 pending)
{
  Op *wait = op_create(b, OP_TMA_WAIT, 0, NULL, 0, NULL, 0);
  op_set_int(wait, AT_PENDING, pending);
  op_set_int(wait, AT_READ, 1);
}

static void
lower(Kept *k, Op *op, u32 turn)
{
  Builder b = builder_before(op);
  b.span = op->span;
  wait_for(&b, k->n - 1);
  Value *buffer = ir_shared_index(&b, k->row, i32_const(&b, turn));
  ir_shared_store(&b, buffer, OPERAND(op, TENSOR_STORE, x));
  box_copy(&b, op, NULL, buffer, NULL);
  op_create(&b, OP_TMA_COMMIT, 0, NULL, 0, NULL, 0);
  op_remove(op);
}

static void
lower_all(Kept *k)
{
  make_row(k);
  Op *end = block_terminator(k->home);
  Builder b = builder_before(end);
  b.span = k->stores.data[0]->span;
  wait_for(&b, 0);
  for (u32 i = 0; i < k->stores.len; i++)
    lower(k, k->stores.data[i], i % k->n);
}

/* Of these, those of k's team; and how many teams have such. */
static void
find_stores(Kept *k, u32 n, Op *const *all)
{
  const Block *last = NULL;
  for (u32 i = 0; i < n; i++) {
    if (!all[i]->block || !box_is_kept(all[i]) || buffer_of_store(k->c, all[i]) != k->buffer)
      continue;
    const Block *home = home_of(all[i]);
    k->teams += home != last;
    last = home;
    if (home == k->home)
      vec_push(k->c->scratch, &k->stores, all[i]);
  }
}

static u32
teams_that_store(const OpVec *stores)
{
  const Block *last = NULL;
  u32 n = 0;
  for (u32 i = 0; i < stores->len; last = home_of(stores->data[i++]))
    n += home_of(stores->data[i]) != last;
  return n;
}

void
box_lower_kept(Ctx *c, Func *f)
{
  OpVec all = func_ops(c, f, OP_TENSOR_STORE);
  u32 teams = teams_that_store(&all);
  for (u32 i = 0; i < all.len; i++) {
    if (!all.data[i]->block || !box_is_kept(all.data[i]))
      continue;
    Kept k = {.c = c, .f = f, .all = teams, .home = home_of(all.data[i]), .buffer = buffer_of_store(c, all.data[i])};
    find_stores(&k, all.len - i, all.data + i);
    lower_all(&k);
  }
}
