/* settle.c - a module in the state that reading its text would give: see ir_settle. */
#include "ir.h"

static void
settle_value(Func *f, Value *v)
{
  v->id = f->nvalues++;
  v->uses = NULL;
}

/* Definitions come before uses, so a value's list is emptied before anything is linked into it. */
static void
settle_block(Func *f, Block *b)
{
  for (u32 i = 0; i < b->nargs; i++)
    settle_value(f, b->args[i]);
  for (Op *op = b->first; op; op = op->next) {
    op->mark = 0;
    while (op->noperands && !op->operands[op->noperands - 1].value)   /* what is absent at the end is not written */
      op->noperands--;
    for (u32 i = 0; i < op->noperands; i++)
      use_link(&op->operands[i], op->operands[i].value);
    for (u32 i = 0; i < op->nresults; i++)
      settle_value(f, op->results[i]);
    for (u32 r = 0; r < op->nregions; r++)
      settle_block(f, op->regions[r]);
  }
}

void
ir_settle(Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    m->funcs.data[i]->nvalues = 0;
    settle_block(m->funcs.data[i], m->funcs.data[i]->body);
  }
}
