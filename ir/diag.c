/* diag.c - diagnostics are collected while compiling and rendered once: sorted by place, without repetitions, cut
 * after MAX_ERRORS errors. Text and JSON are two views of the same structs. */
#include "base.h"
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ERRORS = 20, MAX_KEPT = 2000, NAME_MAX_LEN = 63 };
typedef enum Severity { SEV_ERROR, SEV_WARNING, SEV_REMARK, SEV_NOTE } Severity;

static const struct { const char *code, *fmt; Severity severity; } diag_rows[DIAG_COUNT] = {
#define DIAG(id, code, severity, fmt, doc) {code, fmt, SEV_##severity},
#include "diags.def"
#undef DIAG
};
static const struct { const char *name, *color; } severities[] = {
  [SEV_ERROR] = {"error", "\033[1;31m"}, [SEV_WARNING] = {"warning", "\033[1;35m"},
  [SEV_REMARK] = {"remark", "\033[1;34m"}, [SEV_NOTE] = {"note", "\033[1;36m"},
};

typedef struct Note { Span at; const char *message; } Note;
struct Diag {
  Span at;
  DiagId id;
  u32 seq;                /* order of reporting */
  const char *message;
  VEC(Note) notes;
};
typedef struct DiagTable {
  VEC(Diag *) list;
  u32 errors, warnings;
} DiagTable;

static DiagTable *
table(Ctx *c)
{
  if (!c->diags)
    c->diags = NEW(c->perm, DiagTable);
  return c->diags;
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
  *d = (Diag){.at = at, .id = id, .seq = t->list.len, .message = arena_vprintf(c->perm, diag_rows[id].fmt, ap)};
  va_end(ap);
  if (t->list.len < MAX_KEPT)
    vec_push(c->perm, &t->list, d);
  return d;
}

/* Adds a note with a place of its own to d. */
void
diag_note(Ctx *c, Diag *d, Span at, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  Note n = {at, arena_vprintf(c->perm, fmt, ap)};
  va_end(ap);
  vec_push(c->perm, &d->notes, n);
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

/* Same place, kind and words as one of those just before it (sorted: they share at.lo). */
static bool
repeated(Diag *const *list, u32 i)
{
  const Diag *d = list[i];
  while (i-- > 0 && list[i]->at.lo == d->at.lo)
    if (list[i]->id == d->id && !strcmp(list[i]->message, d->message))
      return true;
  return false;
}

/* ---- text ---- */

static const char *
paint(bool color, const char *code)
{
  return color ? code : "";
}

static u32
digits(u32 n)
{
  u32 d = 1;
  while (n >= 10) {
    n /= 10;
    d++;
  }
  return d;
}

static bool
starts_character(char ch)
{
  return ((u8)ch & 0xc0) != 0x80;
}

/* The marks under the line: blanks up to the column (tabs kept so that they line up), a caret, tildes to the end. */
static void
render_marks(Buf *out, SourceLoc l, u32 len)
{
  u32 from = l.col - 1 < l.line_len ? l.col - 1 : l.line_len;
  u32 end = len < l.line_len - from ? from + len : l.line_len;
  for (u32 i = 0; i < from; i++)
    if (l.line_text[i] == '\t')
      buf_putc(out, '\t');
    else if (starts_character(l.line_text[i]))
      buf_putc(out, ' ');
  buf_putc(out, '^');
  for (u32 i = from + 1; i < end; i++)
    if (starts_character(l.line_text[i]))
      buf_putc(out, '~');
}

static void
render_line(Buf *out, SourceLoc l, Span at, bool color, const char *shade)
{
  u32 len = at.hi > at.lo ? at.hi - at.lo : 1;
  buf_printf(out, " %u | ", l.line);
  for (u32 i = 0; i < l.line_len; i++) {
    u8 ch = (u8)l.line_text[i];
    buf_putc(out, ch < 32 && ch != '\t' ? ' ' : (char)ch);
  }
  buf_printf(out, "\n %*s | %s", (int)digits(l.line), "", paint(color, shade));
  render_marks(out, l, len);
  buf_printf(out, "%s\n", paint(color, "\033[0m"));
}

static void
render_text(Ctx *c, Buf *out, Span at, Severity sev, const char *code, const char *message, bool line, bool color)
{
  SourceLoc l = source_locate(c, at.lo);
  const char *bold = paint(color, "\033[1m"), *plain = paint(color, "\033[0m");
  if (l.file)
    buf_printf(out, "%s%s:%u:%u:%s ", bold, l.file, l.line, l.col, plain);
  buf_printf(out, "%s%s", paint(color, severities[sev].color), severities[sev].name);
  if (code)
    buf_printf(out, "[%s]", code);
  buf_printf(out, ":%s %s\n", plain, message);
  if (l.line_text && line)
    render_line(out, l, at, color, severities[sev].color);
}

/* A note on the diagnostic's own place does not repeat the line. */
static void
diag_text(Ctx *c, Buf *out, const Diag *d, bool color)
{
  render_text(c, out, d->at, diag_rows[d->id].severity, diag_rows[d->id].code, d->message, true, color);
  for (u32 i = 0; i < d->notes.len; i++) {
    const Note *n = &d->notes.data[i];
    bool elsewhere = n->at.lo != d->at.lo || n->at.hi != d->at.hi;
    render_text(c, out, n->at, SEV_NOTE, NULL, n->message, elsewhere, color);
  }
}

/* ---- JSON ---- */

/* Length of the well-formed UTF-8 character at s, 0 if there is none. */
static u32
utf8_length(const u8 *s)
{
  u32 n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  for (u32 i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
  bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return n > 2 && (overlong || beyond) ? 0 : n;
}

static void
json_string(Buf *out, const char *text)
{
  buf_putc(out, '"');
  for (const u8 *s = (const u8 *)text; *s;) {
    u32 n = utf8_length(s);
    if (*s == '"' || *s == '\\')
      buf_printf(out, "\\%c", *s);
    else if (*s < 32 || *s == 127)
      buf_printf(out, "\\u%04x", *s);
    else if (n)
      buf_write(out, (const char *)s, n);
    else
      buf_puts(out, "\\ufffd");
    s += n ? n : 1;
  }
  buf_putc(out, '"');
}

static void
json_place(Ctx *c, Buf *out, const char *key, u32 offset)
{
  SourceLoc l = source_locate(c, offset);
  if (l.file)
    buf_printf(out, ",\"%s\":{\"line\":%u,\"col\":%u,\"byte\":%u}", key, l.line, l.col, l.byte);
  else
    buf_printf(out, ",\"%s\":null", key);
}

static void
json_where(Ctx *c, Buf *out, const char *message, Span at)
{
  SourceLoc l = source_locate(c, at.lo), end = source_locate(c, at.hi);
  buf_puts(out, "\"message\":");
  json_string(out, message);
  buf_puts(out, ",\"file\":");
  if (l.file)
    json_string(out, l.file);
  else
    buf_puts(out, "null");
  json_place(c, out, "start", at.lo);
  json_place(c, out, "end", l.line_text && end.file == l.file ? at.hi : at.lo);
}

static void
diag_json(Ctx *c, Buf *out, const Diag *d)
{
  buf_printf(out, "{\"code\":\"%s\",\"severity\":\"%s\",", diag_rows[d->id].code,
             severities[diag_rows[d->id].severity].name);
  json_where(c, out, d->message, d->at);
  buf_puts(out, ",\"notes\":[");
  for (u32 i = 0; i < d->notes.len; i++) {
    buf_puts(out, i ? ",{" : "{");
    json_where(c, out, d->notes.data[i].message, d->notes.data[i].at);
    buf_putc(out, '}');
  }
  buf_puts(out, "]}\n");
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

/* The closest of n names to s if at most a third of its letters (at least one) differ, else NULL. */
const char *
diag_suggest(const char *s, const char *const *names, size_t n)
{
  u32 limit = (u32)(strlen(s) / 3), best = limit ? limit + 1 : 2;
  const char *found = NULL;
  for (size_t i = 0; i < n; i++) {
    u32 d = edit_distance(s, names[i]);
    if (d && d < best && d < strlen(s)) {
      best = d;
      found = names[i];
    }
  }
  return found;
}
