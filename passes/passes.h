/* passes.h - everything between the frontend's tile IR and code generation. */
#ifndef TILEC_PASSES_H
#define TILEC_PASSES_H
#include "ir.h"

typedef struct PassOptions {
  const char *list;            /* "a,b,c" instead of all in order; NULL: these */
  Phase stop;                  /* stop once the module has reached this phase (PHASE_SCHED: run everything) */
  bool stop_before_placement;  /* with stop == PHASE_TILE: run nothing (the frontend's output as it is) */
  const char *dump_after;      /* pass name, one of several of a name ("dce.2"), "all" or NULL */
  bool verify;                 /* after every pass */
  bool locs;                   /* in dumps */
  Buf *dump;                   /* dumps go here; NULL: none */
  Buf *timing;                 /* table of milliseconds per pass; NULL: none */
  void (*after)(void *user, const char *pass, Module *m);  /* called after every pass, for differential tests; may be NULL */
  void *user;
} PassOptions;

/* Run the passes that follow the one m names (m->after), or else those from the first of m's phase on, on every function.
 * False after reporting errors (unknown pass, broken IR, resources exceeded). */
bool passes_run(Ctx *c, Module *m, const PassOptions *o);
/* Markdown table of the passes, in the order of passes.def. */
void passes_print(Buf *out);

/* One pass. Changes m in place; reports user errors through diag. */
typedef void PassFn(Ctx *c, Module *m);
#define PASS(name, in, out, doc) PassFn pass_##name;
#include "passes.def"
#undef PASS
#endif
