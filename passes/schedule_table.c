/* schedule_table.c - the schedule of a pipelined loop, for --dump-after=pipeline_loops. */
#include "schedule_table.h"

static void
print_row(Buf *out, u32 stage, u32 order, const char *what, const Op *op)
{
  Buf line = {.arena = out->arena};
  ir_print_op(&line, op);
  const char *s = buf_str(&line);
  size_t n = strcspn(s, "\n");
  buf_printf(out, "//   %5u  %5u  %s%.*s%s\n", stage, order, what, (int)(n > 90 ? 90 : n), s, n > 90 ? "..." : "");
}

static bool
in_stage_0(const ScheduleTable *t, const Op *op)
{
  return op->nresults && t->early[op_result(op)->id];
}

static void
print_stage_0(const ScheduleTable *t, u32 *order)
{
  for (const Op *op = t->body->first; op; op = op->next)
    if (in_stage_0(t, op))
      print_row(t->out, 0, (*order)++, "", op);
  for (u32 i = 0; i < t->nloads; i++)
    print_row(t->out, 0, (*order)++, "async_copy, for ", t->load[i]);
  buf_printf(t->out, "//   %5u  %5u  async_commit\n", 0, (*order)++);
}

static void
print_last_stage(const ScheduleTable *t, const Op *op, u32 *order)
{
  bool copied = false;
  for (u32 i = 0; i < t->nloads; i++)
    copied |= t->load[i] == op;
  if (copied || !in_stage_0(t, op))
    print_row(t->out, t->stages - 1, (*order)++, copied ? "shared_load, for " : "", op);
}

void
schedule_table(const ScheduleTable *t)
{
  u32 order = 2;
  SourceLoc at = source_locate(t->c, t->loop->span.lo);
  buf_printf(t->out, "// the loop at %s:%u:%u: %u stages; what is in stage 0 runs %u iterations ahead\n//   stage  order\n",
             at.file, at.line, at.col, t->stages, t->stages - 1);
  buf_printf(t->out, "//   %5u      0  async_wait pending = %u\n//   %5u      1  barrier\n", t->stages - 1, t->stages - 2, t->stages - 1);
  if (!t->behind)
    print_stage_0(t, &order);
  for (const Op *op = t->body->first; op; op = op->next) {
    print_last_stage(t, op, &order);
    if (op == t->behind)
      print_stage_0(t, &order);
  }
  for (u32 i = 0; i < t->nloads; i++) {
    const Type *row = t->buffers[i];
    buf_printf(t->out, "// buffer %s: %u x %u bytes, ", op_result(t->load[i])->name ? op_result(t->load[i])->name : "(unnamed)", row->count,
               type_shared_stride(row));
    layout_print(t->out, row->layout);
    buf_putc(t->out, '\n');
  }
}

void
schedule_stages(Buf *out, const LoopStages *s)
{
  SourceLoc at = source_locate(s->c, s->loop->span.lo);
  buf_printf(out, "// products of the loop at %s:%u:%u overlap; stage 0 is of the iteration behind that of stage 1\n", at.file, at.line,
             at.col);
  buf_printf(out, "//   stage  order\n");
  for (u32 i = 0; i < s->n; i++)
    print_row(out, s->stage[s->order[i]->mark], i, "", s->order[i]);
}
