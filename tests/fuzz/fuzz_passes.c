/* fuzz_passes.c - .tir that verifies goes through the passes its phase still needs, and through code generation: each leaves IR
 * that verifies, the end is PTX or diagnostics. What it computes is another matter (campaign.py): this is what no frontend
 * would write. Large tiles are left out, as their only interest would be the time they take. */
#include "codegen.h"
#include "passes.h"
#include "target.h"

enum { LONGEST = 16 * 1024, MOST_REGISTERS = 1 << 13 };

/* Registers of a thread, counted for every value of the block as if all lived at once. */
static u64
registers_of(const Func *f, const Block *b)
{
  u64 n = 0;
  for (const Op *op = b->first; op; op = op->next) {
    for (u32 i = 0; i < op->nresults; i++)
      n += type_is_tile(op->results[i]->type) ? type_numel(op->results[i]->type) / (32 * f->warps) + 1 : 1;
    for (u32 i = 0; i < op->nregions; i++)
      n += registers_of(f, op->regions[i]);
  }
  return n;
}

static bool
small(const Module *m)
{
  u64 n = 0;
  for (u32 i = 0; i < m->funcs.len; i++)
    n += registers_of(m->funcs.data[i], m->funcs.data[i]->body);
  return n <= MOST_REGISTERS;
}

static void
run(Ctx *c, const char *text, size_t len)
{
  static const char *const targets[] = {"sm_90a", "sm_80", "sm_89", "sm_100a", "sm_120a"};
  PassOptions o = {.stop = PHASE_SCHED, .verify = true};
  CodegenOptions g = {.line_info = true};
  Buf ptx = {.arena = c->perm};
  c->target = target_find(targets[len % COUNT(targets)]);
  c->remarks = true;
  Module *m = ir_parse(c, source_add(c, SOURCE_PROGRAM, "fuzz.tir", text, len));
  if (!m || !ir_verify(m) || !small(m))
    return;
  bool ok = passes_run(c, m, &o) && codegen_module(c, m, &g, &ptx, NULL);
  if (!ok && !diag_errors(c))
    fault("no PTX and no error", "");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return size <= LONGEST ? with_ctx(data, size, run) : 0;
}
