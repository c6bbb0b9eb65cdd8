/* keep_in_shared.c - operands of a loop's dots wait in shared memory where registers are short.
 * Needs phase placed, after prefetch_slices; keeps it.
 *
 * The fragments of a loop-invariant operand (the queries of attention, say) are best loaded once and held in registers, as
 * long as there are registers (255 of a thread). Where what the loop carries, the dot's result and the operand leave
 * too few for everything else, the operand is stored to a buffer before the loop and read in front of each dot instead;
 * a dot on tensor cores then loads it fragment by fragment as it goes, which overlaps with its work.
 *
 * An operand that each iteration converts to the dot's layout goes through shared memory anyway. Where registers are short the
 * conversion becomes a buffer, stored to in front of the iteration's first dot, and fragments are read from it in the same way.
 *
 * The count is a guess of what the register allocator will see: tiles that the loop carries, the results of its dots that are
 * not carried (the largest counts: they live one after the other), and the operand. Addresses and temporaries are not in it: for them
 * OTHERS are set aside. */
#include "buffers.h"

enum { OTHERS = 63 };        /* registers of a thread for what is not counted */

typedef struct Keep {
  Ctx *c;
  VEC(Op *) dots;            /* that read an invariant operand in a loop */
  VEC(Op *) converts;        /* in a loop's body, of the operands of its dots */
} Keep;

/* 32-bit registers of a thread that tiles may take. */
static u32
registers_for_tiles(Ctx *c, const Op *op)
{
  u32 limit = block_team(op->block).registers;
  limit = limit ? limit : c->target->regs_thread;
  return limit > OTHERS ? limit - OTHERS : 0;
}

static Op *
loop_around(const Op *op)
{
  Op *up = op->block->parent;
  while (up && up->code != OP_FOR)
    up = up->block->parent;
  return up;
}

static u32
carried_words(const Op *loop)
{
  u32 n = 0;
  for (u32 i = 0; i < loop->nresults; i++)
    n += type_registers(loop->results[i]->type);
  return n;
}

/* The largest result of a dot in the loop's body that does not go around. */
static u32
passing_words(const Op *loop)
{
  u32 most = 0;
  for (const Op *op = loop->regions[0]->first; op; op = op->next) {
    if (op->code != OP_DOT || OPERAND(op, DOT, acc)->block == loop->regions[0])
      continue;
    bool scaled = !op_is(OPERAND(op, DOT, acc), OP_CONST);   /* what was carried, rescaled: already counted */
    most = scaled || type_registers(op_result(op)->type) < most ? most : type_registers(op_result(op)->type);
  }
  return most;
}

static const char *
words_text(Ctx *c, const Op *dot, u32 which)
{
  const Op *loop = loop_around(dot);
  return arena_printf(c->scratch, "it takes %u registers of a thread, what the loop carries %u, and %u are held at most",
                      type_registers(op_operand(dot, which)->type), carried_words(loop) + passing_words(loop), registers_for_tiles(c, dot));
}

static bool
worth_it(Ctx *c, const Op *dot, u32 which)
{
  Value *v = op_operand(dot, which);
  Op *loop = loop_around(dot);
  if (!loop || !op_attr(dot, AT_MMA) || !v->def || op_inside(v->def, loop) || op_is(v, OP_CONST))
    return false;
  return type_registers(v->type) + carried_words(loop) + passing_words(loop) > registers_for_tiles(c, dot);
}

static void
find_dot(Op *op, void *user)
{
  Keep *k = user;
  if (op->code == OP_DOT && (worth_it(k->c, op, 0) || worth_it(k->c, op, 1)))
    vec_push(k->c->scratch, &k->dots, op);
}

/* The buffer that keeps v, filled where v is made. */
static Value *
buffer_for(Ctx *c, Value *v)
{
  Value *from = op_is(v, OP_CONVERT_LAYOUT) ? OPERAND(v->def, CONVERT_LAYOUT, x) : v;
  Builder b = builder_after(v->def);
  b.span = v->def->span;
  const Type *t = v->type;
  Value *buffer = ir_shared_alloc(&b, type_shared(c, t->dt, 0, t->rank, t->shape, NULL, NULL, 0, 0));
  buffer->name = v->name;
  ir_shared_store(&b, buffer, from);
  return buffer;
}

/* The buffer's live range ends behind the last loop of v's block that reads it. */
static void
free_behind(const Value *v, Value *buffer)
{
  Op *last = v->def;
  for (Op *op = v->def; op; op = op->next)
    for (const Use *u = buffer->uses; u; u = u->next)
      if (u->user == op || op_inside(u->user, op))
        last = op;
  Builder b = builder_after(last);
  b.span = last->span;
  op_create(&b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
}

static void
keep(Keep *k, Value *v)
{
  Value *buffer = buffer_for(k->c, v);
  for (u32 i = 0; i < k->dots.len; i++)
    for (u32 which = 0; which < 2; which++) {
      Op *dot = k->dots.data[i];
      if (op_operand(dot, which) != v || !worth_it(k->c, dot, which))
        continue;
      if (k->c->remarks)
        diag(k->c, dot->span, R_RELOADED, words_text(k->c, dot, which));
      Builder b = builder_before(dot);
      b.span = dot->span;
      op_set_operand(dot, which, ir_shared_load(&b, buffer, v->type));
    }
  free_behind(v, buffer);
}

/* ---- operands that each iteration converts ---- */

/* Registers of the fragments that a dot takes, if it held them all. */
static u32
fragment_words(const Op *dot)
{
  return type_registers(OPERAND(dot, DOT, a)->type) + type_registers(OPERAND(dot, DOT, b)->type);
}

static bool
short_of_registers(Ctx *c, const Op *dot)
{
  const Op *loop = dot->block->parent;
  return fragment_words(dot) + carried_words(loop) + passing_words(loop) > registers_for_tiles(c, dot);
}

/* Every user is a dot on tensor cores beside the conversion, as a factor. */
static bool
only_for_dots(const Op *convert)
{
  const Value *v = op_result(convert);
  for (const Use *u = v->uses; u; u = u->next)
    if (u->user->code != OP_DOT || u->user->block != convert->block || !op_attr(u->user, AT_MMA) || OPERAND(u->user, DOT, acc) == v)
      return false;
  return v->uses != NULL;
}

static void
find_convert(Op *op, void *user)
{
  Keep *k = user;
  const Op *loop = op->block->parent;
  if (op->code != OP_CONVERT_LAYOUT || !loop || loop->code != OP_FOR || !only_for_dots(op))
    return;
  for (const Use *u = op_result(op)->uses; u; u = u->next)
    if (short_of_registers(k->c, u->user)) {
      vec_push(k->c->scratch, &k->converts, op);
      return;
    }
}

/* The memory in which the tile is cheapest to store and whose fragments ldmatrix reads; NULL: there is none. */
static const Layout *
layout_for_fragments(Ctx *c, const Type *from, const Type *to)
{
  u32 least = UINT32_MAX, bits = type_elem_bits(to);
  const Layout *best = NULL;
  SharedPad none = {0};
  for (u32 vec = bits <= 16 ? 128 / bits : 0; vec; vec /= 2) {
    const Layout *smem = buffer_swizzle(c, from, from->layout, to->layout, vec);
    if (!smem)
      continue;
    SharedAccess store = layout_shared_access(from->layout, smem, none, bits, target_has(c->target, F_STMATRIX));
    SharedAccess load = layout_shared_access(to->layout, smem, none, bits, true);
    if (load.matrix && store.cost + load.cost < least) {
      least = store.cost + load.cost;
      best = smem;
    }
  }
  return best;
}

/* Where the iteration's tiles are stored: in front of its first dot, so that one meeting of warps serves all, unless the tile is made
 * behind it. */
static Op *
place_of_store(Op *convert)
{
  const Value *x = OPERAND(convert, CONVERT_LAYOUT, x);
  Op *dot = NULL;
  for (Op *op = convert->block->first; op != convert; op = op->next) {
    if (op->code == OP_DOT && !dot)
      dot = op;
    if (dot && op == x->def)
      return convert;
  }
  return dot ? dot : convert;
}

static void
add_bytes(Op *op, void *user)
{
  u32 *bytes = user;
  const Type *t = op->code == OP_SHARED_ALLOC ? op_result(op)->type : NULL;
  if (t && t->layout)
    *bytes += (u32)type_shared_bytes(t);
}

/* Half of the memory is left to what needs scratch, and to another program on the same multiprocessor. */
static bool
has_room(Ctx *c, Func *f, const Type *buffer)
{
  u32 bytes = type_shared_stride(buffer);
  func_walk(f, add_bytes, &bytes);
  return bytes <= c->target->shared_max / 2;
}

static void
through_buffer(Ctx *c, Op *convert)
{
  Value *x = OPERAND(convert, CONVERT_LAYOUT, x), *v = op_result(convert);
  Op *loop = convert->block->parent;
  const Layout *smem = layout_for_fragments(c, x->type, v->type);
  const Type *t = smem ? type_shared(c, v->type->dt, 0, v->type->rank, v->type->shape, NULL, smem, 0, 0) : NULL;
  if (!t || !has_room(c, loop->block->func, t))
    return;
  Builder around = builder_before(loop), at = builder_before(place_of_store(convert)), behind = builder_after(loop);
  around.span = at.span = behind.span = convert->span;
  Value *buffer = ir_shared_alloc(&around, t);
  buffer->name = v->name;
  ir_shared_store(&at, buffer, x);
  while (v->uses) {
    Op *dot = v->uses->user;
    Builder b = builder_before(dot);
    b.span = dot->span;
    op_set_operand(dot, (u32)(v->uses - dot->operands), ir_shared_load(&b, buffer, v->type));
  }
  op_create(&behind, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  op_remove(convert);
}

void
pass_keep_in_shared(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Keep k = {.c = c};
    func_walk(m->funcs.data[i], find_dot, &k);
    for (u32 d = 0; d < k.dots.len; d++)
      for (u32 which = 0; which < 2; which++)
        if (worth_it(c, k.dots.data[d], which))
          keep(&k, op_operand(k.dots.data[d], which));
    if (k.dots.len)
      buffers_place(c, m->funcs.data[i]);
    if (target_has(c->target, F_LDMATRIX))
      func_walk(m->funcs.data[i], find_convert, &k);
    for (u32 d = 0; d < k.converts.len; d++)
      through_buffer(c, k.converts.data[d]);
  }
}
