/* fuzz_tile.c - any bytes as .tile: compiling, describing and printing end in a module that verifies or in diagnostics. */
#include "frontend.h"
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 16 * 1024 };

static void
fault(const char *what, const char *text)
{
  fprintf(stderr, "%s\n%s\n", what, text);
  abort();
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
  FrontendOptions o = {0};
  Buf out = {.arena = c->scratch};
  u32 base = source_add(c, "fuzz.tile", (const char *)data, size);
  frontend_print_ast(c, base, &out);
  u32 before = diag_errors(c);
  Module *m = frontend_compile(c, base, &o);
  if (!m && diag_errors(c) == before)
    fault("no module and no error", "");
  if (m && !ir_verify(m)) {
    Buf text = {.arena = c->scratch};
    diag_render(c, &text, false, false);
    ir_print(&text, m, false);
    fault("the module does not verify", buf_str(&text));
  }
  frontend_describe(c, base, &o, &out);
  render(c);
  ctx_free(c);
  return 0;
}
