/* spot.c - where a fault is: the line of the source, the calls that led there, and the text of the line.
 *
 * An instruction has a place, which may have been inlined at another place, and so on outward (decode_place.c); calls that have not
 * returned go on with the place of the call. The user's line is the innermost that is not in a library, whose files have names like
 * <nn.tile>. */
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SPOTS = 16, MOST_SOURCE = 1 << 24 };

typedef struct Spot { const char *file; Name function; uint32_t line, column; } Spot;
typedef struct Spots { Spot at[MOST_SPOTS]; uint32_t n, ptx_line; bool more; } Spots;

/* ---- chains of places ---- */

static void
add_places(Spots *s, const Kernel *k, uint32_t pc)
{
  const Part *p = sim_kernel_part(k, pc);
  const Unit *u = p->unit;
  const Loc *l = &u->loc[pc - p->pc];
  const SimModule *m = k->module;
  s->ptx_line = s->ptx_line ? s->ptx_line : l->ptx_line;
  for (uint32_t i = l->place; i; i = u->places[i - 1].at) {
    const Place *at = &u->places[i - 1];
    if (at->file >= m->nfiles || !m->files[at->file])
      continue;
    if (s->n == MOST_SPOTS) {
      s->more = true;
      return;
    }
    Name f = at->function.s ? at->function : at->at ? (Name){NULL, 0} : u->name;
    s->at[s->n++] = (Spot){m->files[at->file], f, at->line, at->column};
  }
}

static const Frame *
frame_of_lane(const Warp *w, int lane)
{
  for (uint32_t i = 0; w && lane >= 0 && i < w->nsplit; i++)
    if (w->split[i].mask >> lane & 1)
      return w->split[i].frame;
  return NULL;
}

/* From the innermost outward. */
static Spots
find_spots(const Kernel *k, uint32_t pc, const Frame *f)
{
  Spots s = {.n = 0};
  add_places(&s, k, pc);
  if (f && sim_kernel_part(k, pc) != &k->part[f->part])
    f = NULL;
  for (; f; f = f->parent)
    add_places(&s, k, f->pc);
  return s;
}

static bool
is_library(const Spot *s)
{
  return s->file[0] == '<';
}

static uint32_t
users_spot(const Spots *s)
{
  for (uint32_t i = 0; i < s->n; i++)
    if (!is_library(&s->at[i]))
      return i;
  return 0;
}

const char *
sim_loc_text_in(const Kernel *k, uint32_t pc, char *buf, size_t n)
{
  Spots s = find_spots(k, pc, NULL);
  const Spot *at = &s.at[users_spot(&s)];
  if (s.n)
    snprintf(buf, n, "%s:%u", at->file, at->line);
  else
    snprintf(buf, n, "PTX line %u", s.ptx_line);
  return buf;
}

const char *
sim_loc_text(const Block *b, uint32_t pc, char *buf, size_t n)
{
  return sim_loc_text_in(b->kernel, pc, buf, n);
}

const char *
sim_thread_text(const Block *b, uint32_t linear, char *buf, size_t n)
{
  const uint32_t *d = b->launch->block;
  snprintf(buf, n, "(%u,%u,%u)", linear % d[0], linear / d[0] % d[1], linear / d[0] / d[1]);
  return buf;
}

const char *
sim_program_text(const Launch *l, uint64_t index, char *buf, size_t n)
{
  const uint32_t *g = l->grid;
  snprintf(buf, n, "(%u,%u,%u)", (uint32_t)(index % g[0]), (uint32_t)(index / g[0] % g[1]), (uint32_t)(index / g[0] / g[1]));
  return buf;
}

/* ---- the text of a line ---- */

/* Line `number` of a text, without its end. */
static Name
line_of(const char *text, size_t n, uint32_t number)
{
  const char *end = text + n;
  while (text < end && --number) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    text = next ? next + 1 : end;
  }
  const char *stop = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
  return (Name){text, (uint32_t)((stop ? stop : end) - text)};
}

/* A text names what it likes: pipes and devices are not read. */
static char *
read_source(const char *file, size_t *n)
{
  struct stat s;
  FILE *f = stat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size < MOST_SOURCE ? fopen(file, "rb") : NULL;
  char *text = f ? malloc((size_t)s.st_size + 1) : NULL;
  *n = text ? fread(text, 1, (size_t)s.st_size, f) : 0;
  if (f)
    fclose(f);
  return text;
}

static void
add_line(Text *t, uint32_t number, Name line, uint32_t column)
{
  if (!line.n || line.n > 400)
    return;
  text_add(t, "\n%5u | %.*s", number, (int)line.n, line.s);
  if (!column || column > line.n)
    return;
  text_add(t, "\n      | ");
  for (uint32_t i = 0; i + 1 < column; i++)
    text_add(t, line.s[i] == '\t' ? "\t" : " ");
  text_add(t, "^");
}

static void
add_source(Text *t, const SimMachine *m, const Spot *s)
{
  size_t n = 0;
  const char *known = m->opt.source ? m->opt.source(m->opt.source_user, s->file, &n) : NULL;
  char *own = known || is_library(s) ? NULL : read_source(s->file, &n);
  const char *text = known ? known : own;
  if (text)
    add_line(t, s->line, line_of(text, n, s->line), s->column);
  free(own);
}

/* Of PTX that names no source, its own line. */
static void
add_ptx(Text *t, const SimModule *m, uint32_t line)
{
  Name text = line_of(m->text, m->len, line);
  while (text.n && (*text.s == ' ' || *text.s == '\t'))
    text.s++, text.n--;
  add_line(t, line, text, 0);
}

/* ---- faults ---- */

static void
add_chain(Text *t, const Spots *s)
{
  uint32_t user = users_spot(s);
  for (uint32_t i = 0; i < s->n; i++) {
    const Spot *at = &s->at[i];
    if (i == user)
      continue;
    text_add(t, "\n  %s %s:%u", i < user ? "in" : "called from", at->file, at->line);
    if (at->function.s)
      text_add(t, " (%.*s)", (int)(at->function.n > 80 ? 80 : at->function.n), at->function.s);
  }
  if (s->more)
    text_add(t, "\n  called from more places");
}

static void
error_place(SimError *e, const Block *b, const Spots *s)
{
  Text t = {e->trace, 0, sizeof e->trace};
  e->ptx_line = s->ptx_line;
  if (!s->n) {
    add_ptx(&t, b->kernel->module, s->ptx_line);
    return;
  }
  const Spot *at = &s->at[users_spot(s)];
  e->line = at->line;
  e->column = at->column;
  snprintf(e->file, sizeof e->file, "%s", at->file);
  add_source(&t, b->launch->machine, at);
  add_chain(&t, s);
}

void
sim_fault_also_in(Block *b, const Kernel *k, uint32_t pc)
{
  SimError *e = &b->worker->err;
  Spots s = find_spots(k, pc, NULL);
  const Spot *at = &s.at[users_spot(&s)];
  Text t = {e->trace, strlen(e->trace), sizeof e->trace};
  if (s.n && at->line == e->line && strcmp(at->file, e->file) == 0)
    return;
  text_add(&t, "\n  and ");
  if (s.n)
    text_add(&t, "%s:%u", at->file, at->line);
  else
    text_add(&t, "PTX line %u", s.ptx_line);
  if (s.n)
    add_source(&t, b->launch->machine, at);
  else
    add_ptx(&t, k->module, s.ptx_line);
}

void
sim_fault_also(Block *b, uint32_t pc)
{
  sim_fault_also_in(b, b->kernel, pc);
}

int
sim_fault(Block *b, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address, const char *fmt, ...)
{
  SimError *e = &b->worker->err;
  const Kernel *k = b->kernel;
  va_list ap;
  *e = (SimError){.kind = kind, .address = address};
  va_start(ap, fmt);
  vsnprintf(e->message, sizeof e->message, fmt, ap);
  va_end(ap);
  snprintf(e->kernel, sizeof e->kernel, "%.*s", (int)(k->unit->name.n > 127 ? 127 : k->unit->name.n), k->unit->name.s);
  memcpy(e->block, b->id, sizeof e->block);
  if (w && lane >= 0) {
    uint32_t t = w->index * LANES + (uint32_t)lane;
    const uint32_t *n = b->launch->block;
    e->thread[0] = t % n[0];
    e->thread[1] = t / n[0] % n[1];
    e->thread[2] = t / n[0] / n[1];
  }
  if (!in)
    return -1;
  Spots s = find_spots(k, (uint32_t)(in - k->code), frame_of_lane(w, lane));
  error_place(e, b, &s);
  return -1;
}
