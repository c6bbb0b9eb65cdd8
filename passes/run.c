/* run.c - runs passes: phase checks, verification, dumps, times. The order is in order.c. */
#define _POSIX_C_SOURCE 199309L
#include "internal.h"
#include <time.h>

enum { ANY = PHASE_SCHED + 1 };
typedef struct PassInfo { const char *name; PassFn *fn; int in, out; const char *doc; } PassInfo;

#define TILE PHASE_TILE
#define PLACED PHASE_PLACED
#define SCHED PHASE_SCHED
static const PassInfo pass_table[] = {
#define PASS(name, in, out, doc) {#name, pass_##name, in, out, doc},
#include "passes.def"
#undef PASS
};
#undef TILE
#undef PLACED
#undef SCHED

static const char *const phase_names[] = {"tile", "placed", "sched", "any"};

static const PassInfo *
pass_find(const char *name, size_t len)
{
  for (size_t i = 0; i < COUNT(pass_table); i++)
    if (strlen(pass_table[i].name) == len && !memcmp(pass_table[i].name, name, len))
      return &pass_table[i];
  return NULL;
}

static void
report_unknown(Ctx *c, const char *name)
{
  const char *names[COUNT(pass_table)];
  for (size_t i = 0; i < COUNT(pass_table); i++)
    names[i] = pass_table[i].name;
  const char *near = diag_suggest(name, names, COUNT(names));
  Diag *d = diag(c, (Span){0, 0}, E_MISUSE, arena_printf(c->perm, "unknown pass '%s'", name));
  if (near)
    diag_hint(c, d, "did you mean '%s'?", near);
}

static bool
phase_fits(Ctx *c, const Module *m, const PassInfo *p)
{
  if (p->in == ANY || p->in == (int)m->phase)
    return true;
  diag(c, (Span){0, 0}, E_MISUSE, arena_printf(c->perm, "pass '%s' needs IR in phase '%s'; this is in phase '%s'",
       p->name, phase_names[p->in], phase_names[m->phase]));
  return false;
}

static double
now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool
dumps(const PassOptions *o, const char *pass)
{
  return o->dump && o->dump_after && (!strcmp(o->dump_after, "all") || !strcmp(o->dump_after, pass));
}

static void
dump(const Module *m, const PassOptions *o, const char *pass, const char *notes)
{
  if (!dumps(o, pass))
    return;
  buf_printf(o->dump, "// after %s\n%s", pass, notes);
  ir_print(o->dump, m, o->locs);
}

static bool
verify(Ctx *c, Module *m, const PassOptions *o, const char *pass)
{
  if (!o->verify || ir_verify(m))
    return true;
  diag(c, (Span){0, 0}, E_INTERNAL, arena_printf(c->perm, "pass '%s' left broken IR", pass));
  return false;
}

static bool
run_one(Ctx *c, Module *m, const PassInfo *p, const PassOptions *o)
{
  if (!phase_fits(c, m, p))
    return false;
  u32 errors = diag_errors(c);
  double start = now_ms();
  Buf notes = {.arena = c->perm};
  c->pass = p->name;
  c->notes = dumps(o, p->name) ? &notes : NULL;
  p->fn(c, m);
  c->pass = NULL;
  c->notes = NULL;
  arena_reset(c->scratch);
  if (o->timing)
    buf_printf(o->timing, "%8.3f ms  %s\n", now_ms() - start, p->name);
  if (diag_errors(c) > errors || !verify(c, m, o, p->name))
    return false;
  dump(m, o, p->name, buf_str(&notes));
  if (o->after)
    o->after(o->user, p->name, m);
  return true;
}

static bool
run_list(Ctx *c, Module *m, const PassOptions *o)
{
  for (const char *s = o->list; *s;) {
    size_t n = strcspn(s, ",");
    const PassInfo *p = pass_find(s, n);
    if (!p && n) {
      report_unknown(c, arena_strndup(c->perm, s, n));
      return false;
    }
    if (p && !run_one(c, m, p, o))
      return false;
    s += n + (s[n] == ',');
  }
  return true;
}

static bool
run_order(Ctx *c, Module *m, const PassOptions *o)
{
  if (o->stop == PHASE_TILE && o->stop_before_placement)
    return true;
  for (const char *const *name = passes_order; *name; name++) {
    const PassInfo *p = pass_find(*name, strlen(*name));
    if (p->out != ANY && p->out > (int)o->stop)
      return true;
    if (p->in != ANY && p->in < (int)m->phase)   /* text read back in a later phase: this pass has been run */
      continue;
    if (!run_one(c, m, p, o))
      return false;
  }
  return true;
}

/* Runs the list, or all in order; see passes.h. */
bool
passes_run(Ctx *c, Module *m, const PassOptions *o)
{
  if (o->dump_after && strcmp(o->dump_after, "all") && !pass_find(o->dump_after, strlen(o->dump_after))) {
    report_unknown(c, o->dump_after);
    return false;
  }
  if (o->verify && !ir_verify(m))
    return false;
  return o->list ? run_list(c, m, o) : run_order(c, m, o);
}

/* Markdown table of the passes. */
void
passes_print(Buf *out)
{
  buf_puts(out, "| pass | needs | leaves | what it does |\n|---|---|---|---|\n");
  for (size_t i = 0; i < COUNT(pass_table); i++) {
    const PassInfo *p = &pass_table[i];
    buf_printf(out, "| %s | %s | %s | %s |\n", p->name, phase_names[p->in], phase_names[p->out], p->doc);
  }
}
