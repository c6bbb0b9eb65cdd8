/* diag_text.c - diagnostics for people: the headline, the lines it is about with marks and words under them, then notes.
 *
 *   k.tile:9:13: error[E0211]: shapes do not agree in +: f32[64] and i32[32]
 *    4 |   let a = load(p + arange(0, 64));
 *      |                    ------------- i32[64] is made here
 *    ...
 *    9 |   let c = a + b;
 *      |           - ^ - this is i32[32]
 *      |           |
 *      |           this is f32[64]
 *      = hint: ...
 *   k.tile:20:9: note: in f<64>, called here
 *
 * Columns here are cells of the terminal, counted from 0, in which a tab goes to the next multiple of TAB. Lines longer
 * than WIDTH are cut around the first mark.
 */
#include "diag_table.h"
#include <stdlib.h>

enum { TAB = 4, WIDTH = 160, LEAD = 40, CALLS_MAX = 8, CALLS_FIRST = 4, CALLS_LAST = 3 };

/* One marked place. */
typedef struct Mark {
  SourceLoc at;
  u32 from, to;           /* cells; to > from */
  u32 order;
  bool primary, foreign;  /* foreign: the text of the line is not here */
  const char *words;      /* "" if none */
} Mark;
typedef struct Page {
  Ctx *c;
  Buf *out;
  bool color;
  const char *shade;      /* of the diagnostic */
  u32 gutter;             /* digits of a line number */
  u32 left, right;        /* the cells shown of the current line */
} Page;

#define BOLD "\033[1m"
#define BLUE "\033[1;34m"
#define CYAN "\033[1;36m"
#define PLAIN "\033[0m"

static const char *
shade_of(Severity s)
{
  return s == SEV_ERROR ? "\033[1;31m" : s == SEV_WARNING ? "\033[1;35m" : s == SEV_NOTE ? CYAN : BLUE;
}

static void
paint(const Page *p, const char *code)
{
  if (p->color)
    buf_puts(p->out, code);
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

/* ---- cells ---- */

static bool
starts_character(char ch)
{
  return ((u8)ch & 0xc0) != 0x80;
}

/* The cell behind the first n bytes of the line. */
static u32
cell_at(SourceLoc l, u32 n)
{
  u32 x = 0;
  for (u32 i = 0; i < n && i < l.line_len; i++)
    x = l.line_text[i] == '\t' ? (x / TAB + 1) * TAB : x + starts_character(l.line_text[i]);
  return x;
}

static Mark
mark_new(Ctx *c, Span at, const char *words, bool primary, u32 order)
{
  SourceLoc l = source_locate(c, at.lo);
  Mark m = {.at = l, .primary = primary, .order = order, .words = words, .foreign = !l.line_text};
  if (m.foreign)
    return m;
  u32 col = l.col - 1 < l.line_len ? l.col - 1 : l.line_len, len = at.hi > at.lo ? at.hi - at.lo : 1;
  m.from = cell_at(l, col);
  m.to = cell_at(l, col + len);
  if (m.to <= m.from)
    m.to = m.from + 1;
  return m;
}

/* ---- one line of source ---- */

static void
gutter(const Page *p, u32 line)
{
  paint(p, BLUE);
  if (line)
    buf_printf(p->out, " %*u | ", (int)p->gutter, line);
  else
    buf_printf(p->out, " %*s | ", (int)p->gutter, "");
  paint(p, PLAIN);
}

static void
source_line(const Page *p, SourceLoc l)
{
  gutter(p, l.line);
  if (p->left)
    buf_puts(p->out, "...");
  u32 x = 0;
  for (u32 i = 0; i < l.line_len; i++) {
    u32 next = cell_at((SourceLoc){.line_text = l.line_text + i, .line_len = 1}, 1);
    next = l.line_text[i] == '\t' ? (x / TAB + 1) * TAB : x + next;
    bool control = (u8)l.line_text[i] < 32 || l.line_text[i] == 127;
    bool shown = starts_character(l.line_text[i]) ? x >= p->left && next <= p->right : x > p->left && x <= p->right;
    for (u32 k = x; control && k < next; k++)
      if (k >= p->left && k < p->right)
        buf_putc(p->out, ' ');
    if (shown && !control)
      buf_putc(p->out, l.line_text[i]);
    x = next;
  }
  buf_puts(p->out, x > p->right ? "...\n" : "\n");
}

/* The cell of the screen, behind the gutter, at which a cell of the line stands. */
static u32
screen(const Page *p, u32 cell)
{
  u32 x = cell < p->left ? p->left : cell > p->right ? p->right : cell;
  return x - p->left + (p->left ? 3 : 0);
}

static void
draw(char *row, const Page *p, const Mark *m)
{
  u32 from = screen(p, m->from), to = screen(p, m->to);
  row[from] = m->primary ? '^' : '-';
  for (u32 i = from + 1; i < to; i++)
    row[i] = m->primary ? '~' : '-';
}

static void
painted(const Page *p, const char *row)
{
  char last = ' ';
  for (; *row; row++) {
    bool primary = *row == '^' || *row == '~', was = last == '^' || last == '~';
    if (*row != ' ' && (primary != was || last == ' '))
      paint(p, primary ? p->shade : BLUE);
    buf_putc(p->out, *row);
    last = *row;
  }
}

/* A row of `|` under the marks [0, n) that still wait for their words. */
static char *
stems(const Page *p, const Mark *m, u32 n)
{
  char *row = NEW_ARRAY(p->c->scratch, char, WIDTH + 16);
  u32 end = 0;
  memset(row, ' ', WIDTH + 8);
  for (u32 i = 0; i < n; i++)
    if (*m[i].words) {
      row[screen(p, m[i].from)] = '|';
      end = screen(p, m[i].from) + 1;
    }
  row[end] = 0;
  return row;
}

static void
words(const Page *p, const Mark *m)
{
  paint(p, m->primary ? p->shade : BLUE);
  buf_puts(p->out, m->words);
  paint(p, PLAIN);
  buf_putc(p->out, '\n');
}

/* Words of marks[0, n), from the rightmost on, each on a line of its own with stems of those still to come. */
static void
hang_words(const Page *p, const Mark *m, u32 n)
{
  for (bool first = true; n > 0; n--) {
    if (!*m[n - 1].words)
      continue;
    if (first) {
      first = false;
      gutter(p, 0);
      painted(p, stems(p, m, n));
      paint(p, PLAIN);
      buf_putc(p->out, '\n');
    }
    u32 left = n - 1, at = screen(p, m[n - 1].from);
    while (left && screen(p, m[left - 1].from) == at)
      left--;
    gutter(p, 0);
    char *row = stems(p, m, left);
    painted(p, row);
    buf_printf(p->out, "%*s", (int)(at - strlen(row)), "");
    words(p, &m[n - 1]);
  }
}

static int
by_length(const void *a, const void *b)
{
  const Mark *const *ma = a, *const *mb = b;
  u32 la = (*ma)->to - (*ma)->from, lb = (*mb)->to - (*mb)->from;
  return la == lb ? (*ma)->primary - (*mb)->primary : la > lb ? -1 : 1;
}

/* A line with its marks, which are sorted by their first cell. */
static void
marked_line(Page *p, const Mark *m, u32 n)
{
  SourceLoc l = m[0].at;
  const Mark **longest = NEW_ARRAY(p->c->scratch, const Mark *, n);
  char *row = NEW_ARRAY(p->c->scratch, char, WIDTH + 16);
  u32 cells = cell_at(l, l.line_len), end = 0;
  p->left = cells > WIDTH && m[0].from > LEAD ? m[0].from - LEAD : 0;
  p->right = cells > p->left + WIDTH ? p->left + WIDTH : cells + 1;
  source_line(p, l);
  memset(row, ' ', WIDTH + 8);
  for (u32 i = 0; i < n; i++) {
    longest[i] = &m[i];
    if (screen(p, m[i].to) > end)
      end = screen(p, m[i].to);
  }
  qsort(longest, n, sizeof *longest, by_length);
  for (u32 i = 0; i < n; i++)
    draw(row, p, longest[i]);
  for (u32 i = 0; i < n; i++)
    if (m[i].primary)
      row[screen(p, m[i].from)] = '^';
  if (screen(p, m[n - 1].from) + 1 > end)
    end = screen(p, m[n - 1].from) + 1;
  row[end] = 0;
  gutter(p, 0);
  painted(p, row);
  bool beside = *m[n - 1].words && screen(p, m[n - 1].to) == end && !(n > 1 && m[n - 2].from == m[n - 1].from && *m[n - 2].words);
  if (beside) {
    buf_putc(p->out, ' ');
    words(p, &m[n - 1]);
  } else {
    paint(p, PLAIN);
    buf_putc(p->out, '\n');
  }
  hang_words(p, m, n - beside);
}

/* ---- all marked lines ---- */

static int
by_place(const void *a, const void *b)
{
  const Mark *ma = a, *mb = b;
  if (ma->order != mb->order)
    return ma->order < mb->order ? -1 : 1;
  if (ma->at.line != mb->at.line)
    return ma->at.line < mb->at.line ? -1 : 1;
  if (ma->from != mb->from)
    return ma->from < mb->from ? -1 : 1;
  return ma->to == mb->to ? mb->primary - ma->primary : ma->to < mb->to ? 1 : -1;
}

/* Files in the order in which the marks name them: the diagnostic's own first. */
static void
number_files(Mark *m, u32 n)
{
  for (u32 i = 0; i < n; i++) {
    m[i].order = i;
    for (u32 k = 0; k < i; k++)
      if (m[k].at.file == m[i].at.file) {
        m[i].order = m[k].order;
        break;
      }
  }
}

static void
foreign_place(const Page *p, const Mark *m)
{
  if (*m->words && m->at.file)
    buf_printf(p->out, " %*s = %s:%u:%u: %s\n", (int)p->gutter, "", diag_plain(p->c, m->at.file), m->at.line, m->at.col, m->words);
}

static void
marked_lines(Page *p, Mark *m, u32 n)
{
  number_files(m, n);
  qsort(m, n, sizeof *m, by_place);
  for (u32 i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && m[end].order == m[i].order && m[end].at.line == m[i].at.line && !m[i].foreign;)
      end++;
    if (m[i].foreign) {
      foreign_place(p, &m[i]);
      continue;
    }
    if (i && m[i - 1].order != m[i].order)
      buf_printf(p->out, " %*s ::: %s:%u:%u\n", (int)p->gutter, "", diag_plain(p->c, m[i].at.file), m[i].at.line, m[i].at.col);
    else if (i && m[i].at.line > m[i - 1].at.line + 1)
      buf_puts(p->out, " ...\n");
    marked_line(p, m + i, end - i);
  }
}

/* ---- notes ---- */

static void
headline(const Page *p, SourceLoc l, const char *shade, const char *kind, const char *code, const char *message)
{
  paint(p, BOLD);
  if (l.file)
    buf_printf(p->out, "%s:%u:%u: ", diag_plain(p->c, l.file), l.line, l.col);
  paint(p, shade);
  buf_puts(p->out, kind);
  if (code)
    buf_printf(p->out, "[%s]", code);
  paint(p, PLAIN);
  paint(p, BOLD);
  buf_printf(p->out, ": %s", message);
  paint(p, PLAIN);
  buf_putc(p->out, '\n');
}

static void
text_notes(const Page *p, const Diag *d)
{
  for (u32 i = 0; i < d->notes.len; i++) {
    const Note *n = &d->notes.data[i];
    if (n->kind != NOTE_TEXT && n->kind != NOTE_HINT)
      continue;
    buf_printf(p->out, " %*s ", (int)p->gutter, "");
    paint(p, CYAN);
    buf_puts(p->out, n->kind == NOTE_HINT ? "= hint" : "= note");
    paint(p, PLAIN);
    buf_printf(p->out, ": %s\n", n->message);
  }
}

/* One line for each call; the last, which is the kernel's own, with its text. Long chains lose their middle. */
static void
calls(Page *p, const Diag *d)
{
  u32 total = 0, k = 0;
  for (u32 i = 0; i < d->notes.len; i++)
    total += d->notes.data[i].kind == NOTE_CALL;
  for (u32 i = 0; i < d->notes.len; i++) {
    const Note *n = &d->notes.data[i];
    if (n->kind != NOTE_CALL)
      continue;
    bool cut = total > CALLS_MAX && k >= CALLS_FIRST && k < total - CALLS_LAST;
    if (cut && k == CALLS_FIRST)
      buf_printf(p->out, " %*s = ... %u calls more ...\n", (int)p->gutter, "", total - CALLS_FIRST - CALLS_LAST);
    if (!cut)
      headline(p, source_locate(p->c, n->at.lo), CYAN, "note", NULL, n->message);
    if (++k == total) {
      Mark m = mark_new(p->c, n->at, "", false, 0);
      marked_lines(p, &m, 1);
    }
  }
}

/* The diagnostic with everything that belongs to it. */
void
diag_text(Ctx *c, Buf *out, const Diag *d, bool color)
{
  const DiagRow *row = &diag_rows[d->id];
  Page p = {.c = c, .out = out, .color = color, .shade = shade_of(row->severity), .gutter = 1};
  Mark *m = NEW_ARRAY(c->scratch, Mark, d->notes.len + 1);
  u32 n = 1;
  m[0] = mark_new(c, d->at, "", true, 0);
  for (u32 i = 0; i < d->notes.len; i++)
    if (d->notes.data[i].kind == NOTE_LABEL)
      m[n++] = mark_new(c, d->notes.data[i].at, d->notes.data[i].message, false, 0);
  for (u32 i = 0; i < n; i++)
    if (!m[i].foreign && digits(m[i].at.line) > p.gutter)
      p.gutter = digits(m[i].at.line);
  headline(&p, m[0].at, p.shade, severity_name(row->severity), row->code, d->message);
  marked_lines(&p, m, n);
  text_notes(&p, d);
  calls(&p, d);
}
