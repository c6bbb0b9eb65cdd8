/* ctx.c - one compilation: owns its arenas, catches its own faults. */
#include "base.h"
#include <stdio.h>
#include <stdlib.h>

static bool
ctx_init(Ctx *c)
{
  if (setjmp(c->panic))
    return false;
  c->panic_set = true;
  c->perm = arena_new(c);
  c->scratch = arena_new(c);
  c->panic_set = false;
  return true;
}

/* A new compilation without a target, or NULL if the host is out of memory. */
Ctx *
ctx_new(void)
{
  Ctx *c = calloc(1, sizeof *c);
  if (c && !ctx_init(c)) {
    ctx_free(c);
    return NULL;
  }
  return c;
}

/* Frees everything made in c; NULL is allowed. */
void
ctx_free(Ctx *c)
{
  if (!c)
    return;
  arena_free(c->perm);
  arena_free(c->scratch);
  free(c);
}

void
ctx_no_memory(Ctx *c)
{
  c->no_memory = true;
  ctx_panic(c, "the host is out of memory");
}

/* Leaves to the setjmp of the API boundary with a message; without one there is nobody to tell, so it aborts. */
void
ctx_panic(Ctx *c, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  int n = c->pass ? snprintf(c->panic_message, sizeof c->panic_message, "in pass %s: ", c->pass) : 0;
  vsnprintf(c->panic_message + n, sizeof c->panic_message - (size_t)n, fmt, ap);
  va_end(ap);
  if (c->panic_set)
    longjmp(c->panic, 1);
  fprintf(stderr, "%s\n", c->panic_message);
  abort();
}
