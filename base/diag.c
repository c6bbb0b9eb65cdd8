/* diag.c - diagnostics are collected while compiling and rendered once: sorted by place, without repetitions, cut
 * after MAX_ERRORS errors. Text and JSON are two views of the same structs. */
#include "diag_table.h"
#include <stdlib.h>
#include <strings.h>

enum { MAX_ERRORS = 20, MAX_KEPT = 2000, NAME_MAX_LEN = 63 };

const DiagRow diag_rows[DIAG_COUNT] = {
#define DIAG(id, code, severity, fmt, doc) {code, fmt, SEV_##severity},
#include "diags.def"
#undef DIAG
};

const char *
severity_name(Severity s)
{
  static const char *const names[] = {[SEV_ERROR] = "error", [SEV_WARNING] = "warning", [SEV_REMARK] = "remark", [SEV_NOTE] = "note"};
  return names[s];
}

static DiagTable *
table(Ctx *c)
{
  if (!c->diags)
    c->diags = NEW(c->perm, DiagTable);
  return c->diags;
}

/* The text, with ? for control characters, which a terminal would obey: texts and names come from anyone's files. */
const char *
diag_plain(Ctx *c, const char *text)
{
  char *copy = NULL;
  for (size_t i = 0; text[i]; i++) {
    bool control = ((u8)text[i] < 32 && text[i] != '\n' && text[i] != '\t') || text[i] == 127;
    if (control && !copy)
      copy = arena_strndup(c->perm, text, strlen(text));
    if (control)
      copy[i] = '?';
  }
  return copy ? copy : text;
}

/* Reports; the arguments fit the row's format. Never NULL. */
Diag *
diag(Ctx *c, Span at, DiagId id, ...)
{
  DiagTable *t = table(c);
  Severity sev = diag_rows[id].severity;
  t->errors += sev == SEV_ERROR;
  t->warnings += sev == SEV_WARNING;
  Diag *d = NEW(c->perm, Diag);
  va_list ap;
  va_start(ap, id);
  *d = (Diag){.at = at, .id = id, .seq = t->list.len, .message = diag_plain(c, arena_vprintf(c->perm, diag_rows[id].fmt, ap))};
  va_end(ap);
  if (t->list.len < MAX_KEPT)
    vec_push(c->perm, &t->list, d);
  return d;
}

static void
add_note(Ctx *c, Diag *d, NoteKind kind, Span at, const char *fmt, va_list ap)
{
  Note n = {kind, at, diag_plain(c, arena_vprintf(c->perm, fmt, ap))};
  for (u32 i = 0; i < d->notes.len; i++) {
    const Note *o = &d->notes.data[i];
    if (o->kind == kind && o->at.lo == at.lo && o->at.hi == at.hi && !strcmp(o->message, n.message))
      return;
  }
  vec_push(c->perm, &d->notes, n);
}

/* Words beside another place, or, on the diagnostic's own place or nowhere, below it. Repetitions are dropped. */
void
diag_note(Ctx *c, Diag *d, Span at, const char *fmt, ...)
{
  bool own = !at.hi || (at.lo == d->at.lo && at.hi == d->at.hi);
  va_list ap;
  va_start(ap, fmt);
  add_note(c, d, own ? NOTE_TEXT : NOTE_LABEL, at, fmt, ap);
  va_end(ap);
}

/* What to write instead. */
void
diag_hint(Ctx *c, Diag *d, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  add_note(c, d, NOTE_HINT, d->at, fmt, ap);
  va_end(ap);
}

/* A call through which the place was reached; the innermost first. */
void
diag_call(Ctx *c, Diag *d, Span at, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  add_note(c, d, NOTE_CALL, at, fmt, ap);
  va_end(ap);
}

/* The place it was reported at. */
Span
diag_place(const Diag *d)
{
  return d->at;
}

/* Reports it at another place; words stand beside the old one. */
void
diag_move(Ctx *c, Diag *d, Span at, const char *words)
{
  Span old = d->at;
  d->at = at;
  d->moved = true;
  diag_note(c, d, old, "%s", words);
}

/* Errors reported so far. */
u32
diag_errors(const Ctx *c)
{
  return c->diags ? c->diags->errors : 0;
}

/* Was this one reported? */
bool
diag_reported(const Ctx *c, DiagId id)
{
  for (u32 i = 0; c->diags && i < c->diags->list.len; i++)
    if (c->diags->list.data[i]->id == id)
      return true;
  return false;
}

/* Warnings reported so far. */
u32
diag_warnings(const Ctx *c)
{
  return c->diags ? c->diags->warnings : 0;
}

static int
diag_order(const void *pa, const void *pb)
{
  const Diag *a = *(Diag *const *)pa, *b = *(Diag *const *)pb;
  if (a->at.lo != b->at.lo)
    return a->at.lo < b->at.lo ? -1 : 1;
  return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Same place, kind and words, or moved to the same place, as one of those just before it (sorted: they share at.lo). */
static bool
repeated(Diag *const *list, u32 i)
{
  const Diag *d = list[i];
  while (i-- > 0 && list[i]->at.lo == d->at.lo)
    if ((list[i]->id == d->id && !strcmp(list[i]->message, d->message)) ||
        (d->moved && list[i]->moved && list[i]->at.hi == d->at.hi && diag_rows[list[i]->id].severity == diag_rows[d->id].severity))
      return true;
  return false;
}

static void
render_one(Ctx *c, Buf *out, const Diag *d, bool json, bool color)
{
  if (json)
    diag_json(c, out, d);
  else
    diag_text(c, out, d, color);
}

/* Everything reported so far, as text for people or as one JSON object a line. */
void
diag_render(Ctx *c, Buf *out, bool json, bool color)
{
  DiagTable *t = table(c);
  u32 errors = 0;
  if (t->list.len)
    qsort(t->list.data, t->list.len, sizeof *t->list.data, diag_order);
  for (u32 i = 0; i < t->list.len; i++) {
    if (repeated(t->list.data, i))
      continue;
    const Diag *d = t->list.data[i];
    if (diag_rows[d->id].severity == SEV_ERROR && errors++ == MAX_ERRORS) {
      Diag cut = {.id = E_TOO_MANY, .message = diag_rows[E_TOO_MANY].fmt};
      render_one(c, out, &cut, json, color);
      return;
    }
    render_one(c, out, d, json, color);
  }
}

/* ---- did you mean ---- */

static u32
least(u32 a, u32 b)
{
  return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b; more than NAME_MAX_LEN for long names. */
static u32
edit_distance(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b);
  u32 rows[3][NAME_MAX_LEN + 1], *before = rows[0], *prev = rows[1], *cur = rows[2];
  if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
    return NAME_MAX_LEN + 1;
  for (u32 j = 0; j <= m; j++)
    prev[j] = before[j] = j;
  for (u32 i = 1; i <= n; i++) {
    cur[0] = i;
    for (u32 j = 1; j <= m; j++) {
      cur[j] = least(least(prev[j], cur[j - 1]) + 1, prev[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cur[j] = least(cur[j], before[j - 2] + 1);
    }
    u32 *spare = before;
    before = prev;
    prev = cur;
    cur = spare;
  }
  return prev[m];
}

/* The closest of n names (NULL: passed over) to s if at most a third of its letters (at least one) or only their case differ, else NULL. */
const char *
diag_suggest(const char *s, const char *const *names, size_t n)
{
  u32 limit = (u32)(strlen(s) / 3), best = limit ? limit + 1 : 2;
  const char *found = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!names[i])
      continue;
    u32 d = strcasecmp(s, names[i]) ? edit_distance(s, names[i]) : strcmp(s, names[i]) != 0;
    if (d && d < best && (d < strlen(s) || !strcasecmp(s, names[i]))) {
      best = d;
      found = names[i];
    }
  }
  return found;
}
