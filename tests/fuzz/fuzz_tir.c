/* fuzz_tir.c - any bytes as .tir: reading, verifying and printing end in a module or in diagnostics; what verifies
 * prints to a text that reads back and prints the same. */
#include "ir.h"
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 64 * 1024 };

static void
fault(const char *what, const char *text)
{
  fprintf(stderr, "%s\n%s\n", what, text);
  abort();
}

static void
round_trip(Ctx *c, const Module *m, bool locs)
{
  Buf once = {.arena = c->perm}, twice = {.arena = c->perm};
  ir_print(&once, m, locs);
  Module *again = ir_parse(c, source_add(c, "again.tir", buf_str(&once), once.len));
  if (!again || !ir_verify(again))
    fault("printed text does not read back", buf_str(&once));
  ir_print(&twice, again, locs);
  if (strcmp(buf_str(&once), buf_str(&twice)))
    fault("printed text changes", buf_str(&once));
}

static void
render(Ctx *c)
{
  Buf out = {.arena = c->scratch};
  diag_render(c, &out, false, true);
  diag_render(c, &out, true, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  Ctx *c = size <= LONGEST ? ctx_new() : NULL;
  if (!c)
    return 0;
  if (setjmp(c->panic))
    fault("panic", c->panic_message);
  c->panic_set = true;
  Module *m = ir_parse(c, source_add(c, "fuzz.tir", (const char *)data, size));
  if (!m && !diag_errors(c))
    fault("no module and no error", "");
  if (m && ir_verify(m)) {
    round_trip(c, m, false);
    round_trip(c, m, true);
  }
  render(c);
  ctx_free(c);
  return 0;
}
