/* source.c - the global source space: every byte of every file has one offset.
 *
 * Files follow each other from offset 1; the byte after a file's last belongs to it, so that the end of the text can
 * be pointed at. Offsets from FOREIGN up name lines of files whose text is not here: one offset per place.
 */
#include "base.h"

#define FOREIGN 0x80000000u

typedef struct SourceFile {
  SourceKind kind;
  const char *name, *text;
  u32 base, len;
  u32 *lines, nlines;      /* offsets of line starts in the text; made when first asked for */
} SourceFile;
typedef struct ForeignPlace { const char *file; u32 line, col; } ForeignPlace;
typedef struct SourceTable {
  VEC(SourceFile) files;   /* by rising base */
  VEC(ForeignPlace) places;
  u32 *slots, nslots;      /* numbers of places, from 1, by hash; 0: free */
  u32 end;
} SourceTable;

static SourceTable *
table(Ctx *c)
{
  if (!c->sources) {
    c->sources = NEW(c->perm, SourceTable);
    c->sources->end = 1;
  }
  return c->sources;
}

/* Copies text into the source space; its first byte's offset, never 0. */
u32
source_add(Ctx *c, SourceKind kind, const char *name, const char *text, size_t len)
{
  SourceTable *t = table(c);
  if (len >= FOREIGN - t->end)
    ctx_panic(c, "%s: the sources are larger than 2 GiB", name);
  SourceFile f = {kind, intern(c, name), arena_strndup(c->perm, text, len), t->end, (u32)len, NULL, 0};
  vec_push(c->perm, &t->files, f);
  t->end += (u32)len + 1;
  return f.base;
}

bool
source_file(Ctx *c, u32 i, SourceText *out)
{
  SourceTable *t = table(c);
  if (i >= t->files.len)
    return false;
  const SourceFile *f = &t->files.data[i];
  *out = (SourceText){f->kind, f->name, f->text, f->len};
  return true;
}

/* The byte order mark that the text begins with, and what it says; 0 bytes if there is none. */
static size_t
byte_order_mark(const char *text, size_t len, const char **what)
{
  static const struct { const char *bytes; size_t n; const char *what; } marks[] = {
    {"\xef\xbb\xbf", 3, "a byte order mark: save the text as UTF-8 without one"},
    {"\xff\xfe", 2, "the mark of UTF-16: save the text as UTF-8"}, {"\xfe\xff", 2, "the mark of UTF-16: save the text as UTF-8"},
  };
  for (size_t i = 0; i < COUNT(marks); i++)
    if (len >= marks[i].n && !memcmp(text, marks[i].bytes, marks[i].n)) {
      *what = marks[i].what;
      return marks[i].n;
    }
  return 0;
}

bool
source_check(Ctx *c, u32 base)
{
  const char *text = source_text(c, base), *what = NULL;
  u32 len = source_length(c, base), mark = (u32)byte_order_mark(text, len, &what), at = (u32)strlen(text);
  if (mark)
    diag(c, (Span){base, base + mark}, E_TEXT, arena_printf(c->perm, "the file begins with %s", what));
  else if (at < len)
    diag(c, (Span){base + at, base + at + 1}, E_TEXT, "a NUL byte cannot stand in a program");
  return !mark && at >= len;
}

static SourceFile *
file_at(Ctx *c, u32 offset)
{
  SourceTable *t = table(c);
  u32 lo = 0, hi = t->files.len;
  while (lo < hi) {
    u32 mid = (lo + hi) / 2;
    SourceFile *f = &t->files.data[mid];
    if (offset < f->base)
      hi = mid;
    else if (offset > f->base + f->len)
      lo = mid + 1;
    else
      return f;
  }
  return NULL;
}

/* Text of the file that holds the offset base, NULL if none does. */
const char *
source_text(Ctx *c, u32 base)
{
  SourceFile *f = file_at(c, base);
  return f ? f->text + (base - f->base) : NULL;
}

/* Bytes from the offset base to the end of its file. */
u32
source_length(Ctx *c, u32 base)
{
  SourceFile *f = file_at(c, base);
  return f ? f->base + f->len - base : 0;
}

static void
lines_find(Ctx *c, SourceFile *f)
{
  u32 n = 1;
  for (u32 i = 0; i < f->len; i++)
    n += f->text[i] == '\n';
  f->lines = NEW_ARRAY(c->perm, u32, n);
  f->nlines = 1;
  for (u32 i = 0; i < f->len; i++)
    if (f->text[i] == '\n')
      f->lines[f->nlines++] = i + 1;
}

static u32
line_length(const SourceFile *f, u32 line)
{
  u32 end = line + 1 < f->nlines ? f->lines[line + 1] - 1 : f->len;
  if (end > f->lines[line] && f->text[end - 1] == '\r')
    end--;
  return end - f->lines[line];
}

static SourceLoc
file_locate(Ctx *c, SourceFile *f, u32 at)
{
  if (!f->lines)
    lines_find(c, f);
  u32 lo = 0, hi = f->nlines;
  while (hi - lo > 1) {
    u32 mid = (lo + hi) / 2;
    if (f->lines[mid] <= at)
      lo = mid;
    else
      hi = mid;
  }
  return (SourceLoc){f->name, lo + 1, at - f->lines[lo] + 1, f->text + f->lines[lo], line_length(f, lo), at, f->kind};
}

/* Where an offset is; columns count bytes from 1. The file is NULL for nowhere, line_text NULL for foreign places. */
SourceLoc
source_locate(Ctx *c, u32 offset)
{
  SourceTable *t = table(c);
  if (offset >= FOREIGN) {
    if (offset - FOREIGN >= t->places.len)
      return (SourceLoc){0};
    ForeignPlace p = t->places.data[offset - FOREIGN];
    return (SourceLoc){p.file, p.line, p.col, NULL, 0, 0, SOURCE_FOREIGN};
  }
  SourceFile *f = file_at(c, offset);
  return f ? file_locate(c, f, offset - f->base) : (SourceLoc){0};
}

/* The place in a file of that name whose text is here, or nowhere. */
static Span
known_place(Ctx *c, const char *name, u32 line, u32 col)
{
  SourceTable *t = table(c);
  for (u32 i = 0; i < t->files.len; i++) {
    SourceFile *f = &t->files.data[i];
    if (f->name != name)
      continue;
    if (!f->lines)
      lines_find(c, f);
    if (line < 1 || line > f->nlines || col < 1 || col > line_length(f, line - 1) + 1)
      continue;
    u32 at = f->base + f->lines[line - 1] + col - 1;
    return (Span){at, at + 1};
  }
  return (Span){0, 0};
}

/* Where the number of a place is, or would go. */
static u32 *
foreign_slot(const SourceTable *t, ForeignPlace p)
{
  u64 h = ((u64)p.line << 32 | p.col) * 0x9e3779b97f4a7c15ull ^ (uintptr_t)p.file;
  for (u32 i = (u32)(h * 0x9e3779b97f4a7c15ull >> 32);; i++) {
    u32 *slot = &t->slots[i & (t->nslots - 1)];
    const ForeignPlace *q = *slot ? &t->places.data[*slot - 1] : NULL;
    if (!q || (q->file == p.file && q->line == p.line && q->col == p.col))
      return slot;
  }
}

static void
foreign_grow(Ctx *c, SourceTable *t)
{
  t->nslots = t->nslots ? 2 * t->nslots : 64;
  t->slots = NEW_ARRAY(c->perm, u32, t->nslots);
  for (u32 i = 0; i < t->places.len; i++)
    *foreign_slot(t, t->places.data[i]) = i + 1;
}

/* A span for a place known by name only; the true one if the file's text is here. */
Span
source_foreign(Ctx *c, const char *file, u32 line, u32 col)
{
  SourceTable *t = table(c);
  file = intern(c, file);
  Span s = known_place(c, file, line, col);
  if (s.lo)
    return s;
  if (4 * t->places.len >= 3 * t->nslots)
    foreign_grow(c, t);
  ForeignPlace p = {file, line, col};
  u32 *slot = foreign_slot(t, p);
  if (!*slot) {
    if (t->places.len >= FOREIGN - 2)
      ctx_panic(c, "too many source locations");
    vec_push(c->perm, &t->places, p);
    *slot = t->places.len;
  }
  u32 at = FOREIGN + *slot - 1;
  return (Span){at, at + 1};
}
