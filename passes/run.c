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
dumps(const PassOptions *o, const char *pass, const char *after)
{
  return o->dump && o->dump_after && (!strcmp(o->dump_after, "all") || !strcmp(o->dump_after, pass) || !strcmp(o->dump_after, after));
}

static void
dump(const Module *m, const PassOptions *o, const char *pass, const char *notes)
{
  if (!dumps(o, pass, m->after))
    return;
  buf_printf(o->dump, "// after %s\n%s", m->by_hand ? pass : m->after, notes);
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

/* ---- where in the order of passes a module stands ---- */

/* Pass number i of the order by the name that says which of several of one name it is: "dce.2". */
static const char *
step_name(Ctx *c, u32 i)
{
  u32 nth = 0, all = 0;
  for (u32 k = 0; passes_order[k]; k++) {
    bool same = !strcmp(passes_order[k], passes_order[i]);
    all += same;
    nth += same && k <= i;
  }
  return all == 1 ? passes_order[i] : arena_printf(c->perm, "%s.%u", passes_order[i], nth);
}

/* The phase of a module in front of pass i. */
static Phase
phase_before(u32 i)
{
  Phase phase = PHASE_TILE;
  for (u32 k = 0; k < i; k++) {
    const PassInfo *p = pass_find(passes_order[k], strlen(passes_order[k]));
    if (p->out != ANY)
      phase = (Phase)p->out;
  }
  return phase;
}

static bool
unknown_step(Ctx *c, const Module *m)
{
  const char *names[64];
  u32 n = 0;
  for (; passes_order[n] && n < COUNT(names); n++)
    names[n] = step_name(c, n);
  const char *near = diag_suggest(m->after, names, n);
  Diag *d = diag(c, m->after_span, E_TIR_NAME, "pass", m->after);
  if (near)
    diag_hint(c, d, "did you mean '%s'?", near);
  return false;
}

/* The pass that comes next: behind the one that the module names, or the first of its phase. False after reporting that there is none. */
static bool
next_step(Ctx *c, const Module *m, u32 *next)
{
  u32 i = 0;
  if (!m->after || m->by_hand) {
    while (phase_before(i) != m->phase)
      i++;
    *next = i;
    return true;
  }
  while (passes_order[i] && strcmp(step_name(c, i), m->after))
    i++;
  if (!passes_order[i])
    return unknown_step(c, m);
  *next = i + 1;
  if (phase_before(i + 1) == m->phase)
    return true;
  const char *what = arena_printf(c->scratch, "behind %s a module is in phase %s, not %s", m->after, phase_names[phase_before(i + 1)],
                                  phase_names[m->phase]);
  diag(c, m->after_span, E_TIR_SYNTAX, what);
  return false;
}

/* ---- running ---- */

static bool
run_one(Ctx *c, Module *m, const PassInfo *p, const char *after, bool by_hand, const PassOptions *o)
{
  if (!phase_fits(c, m, p))
    return false;
  u32 errors = diag_errors(c);
  double start = now_ms();
  Buf notes = {.arena = c->perm};
  c->pass = p->name;
  c->notes = dumps(o, p->name, after) ? &notes : NULL;
  p->fn(c, m);
  c->pass = NULL;
  c->notes = NULL;
  arena_reset(c->scratch);
  if (o->timing)
    buf_printf(o->timing, "%8.3f ms  %s\n", now_ms() - start, p->name);
  if (diag_errors(c) > errors || !verify(c, m, o, p->name))
    return false;
  ir_settle(m);
  m->after = after;
  m->by_hand = by_hand;
  dump(m, o, p->name, buf_str(&notes));
  if (o->after)
    o->after(o->user, p->name, m);
  return true;
}

/* The passes of a list. As long as they are those that come next in order, the module says so; else it says what was run. */
static bool
run_list(Ctx *c, Module *m, const PassOptions *o, u32 next)
{
  bool follows = !m->by_hand;
  for (const char *s = o->list; *s;) {
    size_t n = strcspn(s, ",");
    const PassInfo *p = pass_find(s, n);
    if (!p && n) {
      report_unknown(c, arena_strndup(c->perm, s, n));
      return false;
    }
    s += n + (s[n] == ',');
    if (!p)
      continue;
    follows = follows && passes_order[next] && !strcmp(passes_order[next], p->name);
    const char *after = follows ? step_name(c, next++) : m->after ? arena_printf(c->perm, "%s,%s", m->after, p->name) : p->name;
    if (!run_one(c, m, p, after, !follows, o))
      return false;
  }
  return true;
}

static bool
run_order(Ctx *c, Module *m, const PassOptions *o, u32 next)
{
  if (o->stop == PHASE_TILE && o->stop_before_placement)
    return true;
  for (; passes_order[next]; next++) {
    const PassInfo *p = pass_find(passes_order[next], strlen(passes_order[next]));
    if (p->out != ANY && p->out > (int)o->stop)
      return true;
    if (!run_one(c, m, p, step_name(c, next), false, o))
      return false;
  }
  return true;
}

/* What --dump-after names: a pass, or one of several of a name. */
static bool
known_dump(Ctx *c, const char *name)
{
  bool known = !name || !strcmp(name, "all") || pass_find(name, strlen(name));
  for (u32 i = 0; !known && passes_order[i]; i++)
    known = !strcmp(step_name(c, i), name);
  if (!known)
    report_unknown(c, name);
  return known;
}

/* Runs the list, or what is left in order; see passes.h. */
bool
passes_run(Ctx *c, Module *m, const PassOptions *o)
{
  u32 next = 0;
  if (!known_dump(c, o->dump_after) || (o->verify && !ir_verify(m)) || !next_step(c, m, &next))
    return false;
  ir_settle(m);
  return o->list ? run_list(c, m, o, next) : run_order(c, m, o, next);
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
