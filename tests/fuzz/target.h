/* target.h - what the fuzz targets share. A target is LLVMFuzzerTestOneInput: it takes any bytes and stops the process where the
 * compiler breaks a promise. libFuzzer calls it where TILEC_FUZZ is on; elsewhere replay.c does, with the kept corpus. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H
#include "ir.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline NORETURN void
fault(const char *what, const char *text)
{
  fprintf(stderr, "fault: %s\n%s\nend of the fault\n", what, text);
  abort();
}

/* One compilation; whatever happens, diagnostics must render and everything must be freed. */
static inline int
with_ctx(const uint8_t *data, size_t size, void (*run)(Ctx *, const char *, size_t))
{
  Ctx *c = ctx_new();
  if (!c)
    return 0;
  if (setjmp(c->panic))
    fault("panic", c->panic_message);
  c->panic_set = true;
  run(c, (const char *)data, size);
  Buf out = {.arena = c->scratch};
  diag_render(c, &out, false, true);
  diag_render(c, &out, true, false);
  if (diag_reported(c, E_INTERNAL))
    fault("a fault of the compiler", buf_str(&out));
  ctx_free(c);
  return 0;
}
#endif
