/* edit.c - changing the IR in place: attributes, operands and use lists, moving, cloning, walking. */
#include "ir.h"

static Ctx *
op_ctx(const Op *op)
{
  return op->block->func->module->ctx;
}

/* ---- attributes: an array by rising id ---- */

/* The attribute, NULL if absent. */
Attr *
op_attr(const Op *op, AttrId id)
{
  for (u32 i = 0; i < op->nattrs; i++)
    if (op->attrs[i].id == id)
      return &op->attrs[i];
  return NULL;
}

/* An INT attribute's value. */
i64
op_int(const Op *op, AttrId id, i64 absent)
{
  Attr *a = op_attr(op, id);
  return a ? a->i : absent;
}

/* A STR attribute's value. */
const char *
op_str(const Op *op, AttrId id, const char *absent)
{
  Attr *a = op_attr(op, id);
  return a ? a->s : absent;
}

/* Sets an attribute of any kind; what it points to is not copied. The op stands in a block. */
void
op_set_attr(Op *op, Attr a)
{
  Attr *have = op_attr(op, a.id);
  if (have) {
    *have = a;
    return;
  }
  Attr *more = NEW_ARRAY(op_ctx(op)->perm, Attr, op->nattrs + 1);
  u32 at = 0;
  while (at < op->nattrs && op->attrs[at].id < a.id) {
    more[at] = op->attrs[at];
    at++;
  }
  more[at] = a;
  for (u32 i = at; i < op->nattrs; i++)
    more[i + 1] = op->attrs[i];
  op->attrs = more;
  op->nattrs++;
}

/* Sets an INT attribute. */
void
op_set_int(Op *op, AttrId id, i64 v)
{
  op_set_attr(op, (Attr){.id = id, .i = v});
}

/* Sets a STR attribute; s is interned. */
void
op_set_str(Op *op, AttrId id, const char *s)
{
  op_set_attr(op, (Attr){.id = id, .s = intern(op_ctx(op), s)});
}

u32
op_u32s(const Op *op, AttrId id, u32 *out)
{
  const Attr *a = op_attr(op, id);
  for (u32 i = 0; a && i < a->ints.n && i < MAX_RANK; i++)
    out[i] = (u32)a->ints.v[i];
  return a ? min_u32(a->ints.n, MAX_RANK) : 0;
}

/* Sets an INTS attribute; v is copied. */
void
op_set_ints(Op *op, AttrId id, const i64 *v, u32 n)
{
  Attr a = {.id = id};
  i64 *copy = NEW_ARRAY(op_ctx(op)->perm, i64, n);
  if (n)
    memcpy(copy, v, n * sizeof *v);
  a.ints.v = copy;
  a.ints.n = n;
  op_set_attr(op, a);
}

/* Removes an attribute if present. */
void
op_remove_attr(Op *op, AttrId id)
{
  Attr *a = op_attr(op, id);
  if (!a)
    return;
  Attr *end = op->attrs + op->nattrs--;
  memmove(a, a + 1, (size_t)(end - (a + 1)) * sizeof *a);
}

void
op_copy_attr(Op *op, const Op *from, AttrId id)
{
  const Attr *a = op_attr(from, id);
  if (a)
    op_set_attr(op, *a);
}

void
op_copy_attrs(Op *op, const Op *from)
{
  for (u32 i = 0; i < from->nattrs; i++)
    op_set_attr(op, from->attrs[i]);
}

/* ---- operands and uses: a Use is in its value's list exactly while its value is set ---- */

void
use_link(Use *u, Value *v)
{
  u->value = v;
  if (!v)
    return;
  u->next = v->uses;
  u->prev = &v->uses;
  if (u->next)
    u->next->prev = &u->next;
  v->uses = u;
}

static void
use_unlink(Use *u)
{
  if (!u->value)
    return;
  *u->prev = u->next;
  if (u->next)
    u->next->prev = u->prev;
  u->value = NULL;
  u->next = NULL;
  u->prev = NULL;
}

/* A Use moved in memory: the list follows. */
static void
use_move(Use *to, Use *from)
{
  *to = *from;
  if (!to->value)
    return;
  *to->prev = to;
  if (to->next)
    to->next->prev = &to->next;
}

/* Replaces operand i; v may be NULL (absent). */
void
op_set_operand(Op *op, u32 i, Value *v)
{
  use_unlink(&op->operands[i]);
  use_link(&op->operands[i], v);
}

/* One more operand at the end; v may be NULL. The op stands in a block. */
void
op_add_operand(Op *op, Value *v)
{
  u32 n = op->noperands;
  if (!n || is_pow2(n)) {
    Use *more = NEW_ARRAY(op_ctx(op)->perm, Use, n ? n * 2 : 1);
    for (u32 i = 0; i < n; i++)
      use_move(&more[i], &op->operands[i]);
    op->operands = more;
  }
  Use *u = &op->operands[op->noperands++];
  *u = (Use){.user = op};
  use_link(u, v);
}

/* Removes operand i; later ones move down. */
void
op_remove_operand(Op *op, u32 i)
{
  use_unlink(&op->operands[i]);
  for (u32 j = i + 1; j < op->noperands; j++)
    use_move(&op->operands[j - 1], &op->operands[j]);
  op->operands[--op->noperands] = (Use){0};
}

static void
values_remove(Value **vs, u32 *n, u32 i)
{
  for (u32 j = i + 1; j < *n; j++) {
    vs[j - 1] = vs[j];
    vs[j - 1]->index = j - 1;
  }
  --*n;
}

/* Removes an unused result; later ones move down. */
void
op_remove_result(Op *op, u32 i)
{
  if (op->results[i]->uses)
    ctx_panic(op_ctx(op), "result %u of '%s' is removed while in use", i, op_info(op->code)->name);
  values_remove(op->results, &op->nresults, i);
}

/* Removes an unused block argument; later ones move down. */
void
block_remove_arg(Block *b, u32 i)
{
  if (b->args[i]->uses)
    ctx_panic(b->func->module->ctx, "block argument %u is removed while in use", i);
  values_remove(b->args, &b->nargs, i);
}

static void
op_unlink(Op *op)
{
  Block *b = op->block;
  *(op->prev ? &op->prev->next : &b->first) = op->next;
  *(op->next ? &op->next->prev : &b->last) = op->prev;
  op->prev = op->next = NULL;
  op->block = NULL;
}

static void
op_drop_uses(Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    use_unlink(&op->operands[i]);
  for (u32 r = 0; r < op->nregions; r++)
    for (Op *inner = op->regions[r]->first; inner; inner = inner->next)
      op_drop_uses(inner);
}

/* Takes op out with its regions; its results must be unused. op->prev and op->next are lost. */
void
op_remove(Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    if (op->results[i]->uses)
      ctx_panic(op_ctx(op), "'%s' is removed while its result %u is in use", op_info(op->code)->name, i);
  op_drop_uses(op);
  op_unlink(op);
}

/* Moves op in front of `where`, in any block of the function. */
void
op_move_before(Op *op, Op *where)
{
  if (op == where)
    return;
  op_unlink(op);
  op->block = where->block;
  op->next = where;
  op->prev = where->prev;
  *(op->prev ? &op->prev->next : &op->block->first) = op;
  where->prev = op;
}

/* Moves op to the end of b. */
void
op_move_to_end(Op *op, Block *b)
{
  op_unlink(op);
  op->block = b;
  op->prev = b->last;
  *(op->prev ? &op->prev->next : &b->first) = op;
  b->last = op;
}

/* Every use of old becomes one of with. */
void
value_replace_uses(Value *old, Value *with)
{
  if (old == with)
    return;
  while (old->uses) {
    Use *u = old->uses;
    use_unlink(u);
    use_link(u, with);
  }
}

/* How many operand slots hold v. */
u32
value_use_count(const Value *v)
{
  u32 n = 0;
  for (const Use *u = v->uses; u; u = u->next)
    n++;
  return n;
}

/* ---- cloning ---- */

typedef struct Cloning { Value **map; u32 known; } Cloning;   /* map has entries for ids below known */

static Value *
mapped(const Cloning *cl, Value *v)
{
  return v && v->id < cl->known && cl->map[v->id] ? cl->map[v->id] : v;
}

static void
map_value(const Cloning *cl, const Value *from, Value *to)
{
  to->name = from->name;
  if (from->id < cl->known)
    cl->map[from->id] = to;
}

static Op *clone_into(Builder *b, const Op *op, const Cloning *cl);

static void
clone_region(Block *to, const Block *from, const Cloning *cl)
{
  for (u32 i = 0; i < from->nargs; i++)
    map_value(cl, from->args[i], block_add_arg(to, from->args[i]->type, NULL));
  Builder b = builder_at_end(to->func, to);
  for (const Op *op = from->first; op; op = op->next) {
    b.span = op->span;
    clone_into(&b, op, cl);
  }
}

static Op *
clone_into(Builder *b, const Op *op, const Cloning *cl)
{
  Op *copy = op_create(b, op->code, 0, NULL, 0, NULL, op->nregions);
  copy->span = op->span;
  copy->mark = op->mark;
  for (u32 i = 0; i < op->noperands; i++)
    op_add_operand(copy, mapped(cl, op->operands[i].value));
  op_copy_attrs(copy, op);
  for (u32 i = 0; i < op->nresults; i++)
    map_value(cl, op->results[i], op_add_result(copy, op->results[i]->type));
  for (u32 r = 0; r < op->nregions; r++)
    clone_region(copy->regions[r], op->regions[r], cl);
  return copy;
}

/* Deep copy at the insertion point; keeps the original's spans. See ir.h for map. */
Op *
op_clone(Builder *b, const Op *op, Value **map)
{
  Cloning cl = {map, b->func->nvalues};
  return clone_into(b, op, &cl);
}

Op *
op_like(Builder *b, const Op *op, u32 noperands, Value *const *operands, const Type *const *result_types)
{
  Op *like = op_create(b, op->code, noperands, operands, op->nresults, result_types, 0);
  op_copy_attrs(like, op);
  return like;
}

/* ---- questions ---- */

/* v is a result of such an op. */
bool
op_is(const Value *v, OpCode code)
{
  return v && v->def && v->def->code == code;
}

/* v is a constant, or a splat of one: the bits of an element. */
bool
value_const_bits(const Value *v, u64 *bits)
{
  while (op_is(v, OP_SPLAT))
    v = OPERAND(v->def, SPLAT, x);
  if (!op_is(v, OP_CONST))
    return false;
  *bits = (u64)op_int(v->def, AT_VALUE, 0);
  return true;
}

/* v is a constant of an integer or i1 type: its value, extended by its signedness. */
bool
value_const_int(const Value *v, i64 *out)
{
  u64 bits;
  if (!v || type_is_ptr(v->type) || type_is_float(v->type) || !value_const_bits(v, &bits))
    return false;
  u32 unused = 64 - dtype_bits(v->type->dt);
  *out = dtype_is_signed(v->type->dt) ? (i64)(bits << unused) >> unused : (i64)bits;
  return true;
}

/* The op's row has all of these traits. */
bool
op_has(const Op *op, u32 traits)
{
  return (op_info(op->code)->traits & traits) == traits;
}

/* op stands in a region of ancestor, at any depth. */
bool
op_inside(const Op *op, const Op *ancestor)
{
  for (op = op->block ? op->block->parent : NULL; op; op = op->block ? op->block->parent : NULL)
    if (op == ancestor)
      return true;
  return false;
}

u32
block_loop_depth(const Block *b)
{
  u32 n = 0;
  for (const Op *p = b->parent; p; p = p->block->parent)
    n += op_is_loop(p);
  return n;
}

bool
loop_is_staged(const Op *op)
{
  return op && op->code == OP_FOR && op_int(op, AT_STAGES, 1) >= 2;
}

static void
find_loop(Op *op, void *user)
{
  *(bool *)user |= op_is_loop(op);
}

const Op *
op_loop_around(const Op *op)
{
  const Op *loop = op->block->parent;
  while (loop && !op_is_loop(loop))
    loop = loop->block->parent;
  return loop;
}

const Value *
op_divides_by_same(const Op *op)
{
  const Op *loop = op_loop_around(op);
  if (!loop || (op->code != OP_DIV && op->code != OP_REM) || !type_is_tile(op_result(op)->type))
    return NULL;
  const Value *b = OPERAND(op, BINARY, b);
  bool inner = false;
  while (op_is(b, OP_SPLAT) || op_is(b, OP_BROADCAST) || op_is(b, OP_CONVERT_LAYOUT))
    b = op_operand(b->def, 0);
  if (type_is_tile(b->type) || b->type->dt != DT_I32 || op_is(b, OP_CONST) || value_within(b, loop))
    return NULL;
  for (u32 r = 0; r < loop->nregions; r++)
    block_walk(loop->regions[r], find_loop, &inner);
  return inner ? NULL : b;
}

const Block *
value_block(const Value *v)
{
  return v->def ? v->def->block : v->block;
}

bool
value_inside(const Value *v, const Block *b)
{
  const Block *at = value_block(v);
  while (at && at != b)
    at = at->parent ? at->parent->block : NULL;
  return at == b;
}

bool
value_within(const Value *v, const Op *op)
{
  const Op *around = value_block(v)->parent;
  return around && (around == op || op_inside(around, op));
}

/* v is region 0's argument for carried value *k. */
bool
loop_carries(const Op *loop, const Value *v, u32 *k)
{
  if (v->block != loop->regions[0] || v->index < loop_first_arg(loop))
    return false;
  *k = v->index - loop_first_arg(loop);
  return true;
}

/* The op that ends b, NULL while it has none. */
Op *
block_terminator(const Block *b)
{
  return b->last && op_has(b->last, T_TERM) ? b->last : NULL;
}

/* Visits the ops of b, parents before children; fn may remove the op it is given. */
void
block_walk(Block *b, void (*fn)(Op *op, void *user), void *user)
{
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    fn(op, user);
    for (u32 r = 0; op->block && r < op->nregions; r++)
      block_walk(op->regions[r], fn, user);
  }
}

/* Visits the ops of f in program order. */
void
func_walk(Func *f, void (*fn)(Op *op, void *user), void *user)
{
  block_walk(f->body, fn, user);
}

typedef struct Sought { OpCode code; bool found; } Sought;

static void
seek(Op *op, void *user)
{
  Sought *s = user;
  s->found |= op->code == s->code;
}

bool
func_has(const Func *f, OpCode code)
{
  Sought s = {.code = code};
  block_walk(f->body, seek, &s);
  return s.found;
}
