/* fuzz_tir.c - any bytes as .tir: reading, verifying and printing end in a module or in diagnostics; what verifies
 * prints to a text that reads back and prints the same. */
#include "target.h"

enum { LONGEST = 64 * 1024 };

static void
round_trip(Ctx *c, const Module *m, bool locs)
{
  Buf once = {.arena = c->perm}, twice = {.arena = c->perm};
  ir_print(&once, m, locs);
  Module *again = ir_parse(c, source_add(c, SOURCE_PROGRAM, "again.tir", buf_str(&once), once.len));
  if (!again || !ir_verify(again))
    fault("printed text does not read back", buf_str(&once));
  ir_print(&twice, again, locs);
  if (strcmp(buf_str(&once), buf_str(&twice)))
    fault("printed text changes", buf_str(&once));
}

static void
run(Ctx *c, const char *text, size_t len)
{
  Module *m = ir_parse(c, source_add(c, SOURCE_PROGRAM, "fuzz.tir", text, len));
  if (!m && !diag_errors(c))
    fault("no module and no error", "");
  if (m && ir_verify(m)) {
    round_trip(c, m, false);
    round_trip(c, m, true);
  }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return size <= LONGEST ? with_ctx(data, size, run) : 0;
}
