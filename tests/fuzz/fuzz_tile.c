/* fuzz_tile.c - any bytes as .tile: compiling, describing and printing end in a module that verifies or in diagnostics. */
#include "frontend.h"
#include "target.h"

enum { LONGEST = 16 * 1024 };

static void
run(Ctx *c, const char *text, size_t len)
{
  FrontendOptions o = {.tuning = true};
  Buf out = {.arena = c->perm};
  u32 base = source_add(c, SOURCE_PROGRAM, "fuzz.tile", text, len);
  frontend_print_ast(c, base, &out);
  u32 before = diag_errors(c);
  Module *m = frontend_compile(c, base, &o);
  if (!m && diag_errors(c) == before)
    fault("no module and no error", "");
  if (m && !ir_verify(m)) {
    Buf words = {.arena = c->perm};
    diag_render(c, &words, false, false);
    ir_print(&words, m, false);
    fault("the module does not verify", buf_str(&words));
  }
  frontend_describe(c, base, &o, &out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return size <= LONGEST ? with_ctx(data, size, run) : 0;
}
