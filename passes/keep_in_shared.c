/* keep_in_shared.c - operands of a loop's dots that stay the same wait in shared memory where registers are short.
 * Needs phase placed, after prefetch_slices; keeps it.
 *
 * The fragments of a loop-invariant operand (the queries of attention, say) are best loaded once and held in registers, as
 * long as there are registers (255 of a thread). Where what the loop carries, the dot's result and the operand leave
 * too few for everything else, the operand is stored to a buffer before the loop and read in front of each dot instead;
 * a dot on tensor cores then loads it fragment by fragment as it goes, which overlaps with its work.
 *
 * The count is a guess of what the register allocator will see: tiles that the loop carries, the results of its dots that are
 * not carried (the largest counts: they live one after the other), and the operand. Addresses and temporaries are not in it: for them
 * OTHERS are set aside. */
#include "buffers.h"

enum { OTHERS = 63 };        /* registers of a thread for what is not counted */

typedef struct Keep {
  Ctx *c;
  VEC(Op *) dots;            /* that read an invariant operand in a loop */
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
  }
}
