/* cse.c - merge equal pure ops.
 * Needs any phase; keeps it. An op goes when an equal one stands before it in its block or in a block around.
 *
 * One hash table for the function. What a block adds is undone when the block ends, so that what is found
 * always dominates. Reductions and maps take part: their regions are compared op by op with arguments matched by
 * position. A map's region sees nothing from outside, and one of warp_specialize no tiles, so a table of its own is used within. */
#include "internal.h"

typedef struct Entry { u64 hash; Op *op; struct Entry *next; } Entry;
typedef struct Cse {
  Entry **slots;
  u32 mask;
  VEC(Entry *) added;      /* in order, for undoing */
  Arena *arena;
  u32 nvalues;
} Cse;

static u64
mix(u64 h, u64 x)
{
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static bool
candidate(const Op *op)
{
  return op_has(op, T_PURE) && op->nresults && (!op->nregions || op_on_elements(op));
}

static u64
operand_hash(const Op *op)
{
  u64 ids[2] = {0, 0};
  if (op_has(op, T_COMM) && op->noperands == 2) {
    for (u32 i = 0; i < 2; i++)
      ids[i] = op_operand(op, i)->id;
    return mix(ids[0] + ids[1], ids[0] * ids[1]);
  }
  u64 h = 0;
  for (u32 i = 0; i < op->noperands; i++)
    h = mix(h, op_operand(op, i) ? op_operand(op, i)->id + 1 : 0);
  return h;
}

static u64
attr_hash(const Attr *a)
{
  switch ((AttrKind)attr_info[a->id].kind) {
  case AK_INTS: return a->ints.n ? (u64)a->ints.v[0] : 0;
  default: return (u64)a->i;
  }
}

static u64
op_hash(const Op *op)
{
  u64 h = mix(op->code, (uintptr_t)op->results[0]->type);
  for (u32 i = 0; i < op->nattrs; i++)
    h = mix(h, attr_hash(&op->attrs[i]) + op->attrs[i].id);
  return mix(h, operand_hash(op));
}

static bool
attr_equal(const Attr *a, const Attr *b)
{
  if (a->id != b->id)
    return false;
  if (attr_info[a->id].kind == AK_INTS)
    return a->ints.n == b->ints.n && !memcmp(a->ints.v, b->ints.v, a->ints.n * sizeof *a->ints.v);
  if (attr_info[a->id].kind == AK_FLOAT)
    return !memcmp(&a->f, &b->f, sizeof a->f);
  return a->i == b->i;
}

bool
op_heads_equal(const Op *a, const Op *b)
{
  if (a->code != b->code || a->noperands != b->noperands || a->nresults != b->nresults || a->nattrs != b->nattrs ||
      a->nregions != b->nregions)
    return false;
  for (u32 i = 0; i < a->nresults; i++)
    if (a->results[i]->type != b->results[i]->type)
      return false;
  for (u32 i = 0; i < a->nattrs; i++)
    if (!attr_equal(&a->attrs[i], &b->attrs[i]))
      return false;
  return true;
}

static bool
operands_equal(const Op *a, const Op *b)
{
  bool same = true;
  for (u32 i = 0; i < a->noperands; i++)
    same = same && op_operand(a, i) == op_operand(b, i);
  if (same || !op_has(a, T_COMM) || a->noperands != 2)
    return same;
  return OPERAND(a, BINARY, a) == OPERAND(b, BINARY, b) && OPERAND(a, BINARY, b) == OPERAND(b, BINARY, a);
}

/* Position of an op in its block, small regions only. */
static u32
op_position(const Op *op)
{
  u32 n = 0;
  for (; op->prev; op = op->prev)
    n++;
  return n;
}

/* x of region a plays the part of y in region b: the same outer value, or the same place inside. */
static bool
counterparts(const Block *a, const Value *x, const Block *b, const Value *y)
{
  if (x == y)
    return true;
  if (!x || !y || value_block(x) != a || value_block(y) != b || x->index != y->index || !x->def != !y->def)
    return false;
  return !x->def || op_position(x->def) == op_position(y->def);
}

static bool
regions_equal(const Block *a, const Block *b)
{
  const Op *x = a->first, *y = b->first;
  for (; x && y; x = x->next, y = y->next) {
    if (!op_heads_equal(x, y) || x->nregions)
      return false;
    for (u32 i = 0; i < x->noperands; i++)
      if (!counterparts(a, op_operand(x, i), b, op_operand(y, i)))
        return false;
  }
  return !x && !y;
}

static bool
maps_equal(const Cse *s, const Op *a, const Op *b)
{
  Buf x = {.arena = s->arena}, y = {.arena = s->arena};
  u32 *numbers = NEW_ARRAY(s->arena, u32, s->nvalues);
  region_key(&x, a->regions[0], numbers);
  region_key(&y, b->regions[0], numbers);
  return x.len == y.len && !memcmp(x.data, y.data, x.len);
}

static bool
ops_equal(const Cse *s, const Op *a, const Op *b)
{
  if (!op_heads_equal(a, b) || !operands_equal(a, b))
    return false;
  if (a->code == OP_MAP)
    return maps_equal(s, a, b);
  for (u32 r = 0; r < a->nregions; r++)
    if (!regions_equal(a->regions[r], b->regions[r]))
      return false;
  return true;
}

static Op *
find(const Cse *s, const Op *op, u64 h)
{
  for (Entry *e = s->slots[h & s->mask]; e; e = e->next)
    if (e->hash == h && ops_equal(s, e->op, op))
      return e->op;
  return NULL;
}

static void
add(Cse *s, Op *op, u64 h)
{
  Entry *e = NEW(s->arena, Entry);
  *e = (Entry){h, op, s->slots[h & s->mask]};
  s->slots[h & s->mask] = e;
  vec_push(s->arena, &s->added, e);
}

static void
merge(Op *op, Op *with)
{
  for (u32 i = 0; i < op->nresults; i++) {
    if (!with->results[i]->name)
      with->results[i]->name = op->results[i]->name;
    value_replace_uses(op->results[i], with->results[i]);
  }
  op_remove(op);
}

static void cse_block(Cse *s, Block *b);

static void
count_op(Op *op, void *user)
{
  ++*(u32 *)user;
}

/* A table for so many ops. */
static Cse
cse_new(Arena *arena, u32 ops, u32 nvalues)
{
  u32 slots = next_pow2(ops + 16);
  return (Cse){.slots = NEW_ARRAY(arena, Entry *, slots), .mask = slots - 1, .arena = arena, .nvalues = nvalues};
}

static void
cse_alone(const Cse *s, Block *b)
{
  u32 ops = 0;
  block_walk(b, count_op, &ops);
  Cse inner = cse_new(s->arena, ops, s->nvalues);
  cse_block(&inner, b);
}

static void
cse_op(Cse *s, Op *op)
{
  bool alone = op->code == OP_MAP || op->code == OP_WARP_SPECIALIZE;
  for (u32 r = 0; !op_is_fold(op) && r < op->nregions; r++)
    if (alone)
      cse_alone(s, op->regions[r]);
    else
      cse_block(s, op->regions[r]);
  if (!candidate(op))
    return;
  u64 h = op_hash(op);
  Op *same = find(s, op, h);
  if (same)
    merge(op, same);
  else
    add(s, op, h);
}

static void
cse_block(Cse *s, Block *b)
{
  u32 mark = s->added.len;
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    cse_op(s, op);
  }
  while (s->added.len > mark) {
    Entry *e = s->added.data[--s->added.len];
    s->slots[e->hash & s->mask] = e->next;
  }
}

void
pass_cse(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    Cse s = cse_new(c->scratch, f->nvalues, f->nvalues);
    cse_block(&s, f->body);
  }
}
