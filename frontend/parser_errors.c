/* parser_errors.c - words for text that makes no sense: what was expected, and what those mean who write so (hints.def). */
#include "hints.h"
#include "parser.h"
#include "ir.h"
#include <stdio.h>

/* Of "#define N 4": "#define". */
static const char *
hash_word(Parser *p, const char *s)
{
  size_t n = 1;
  while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z'))
    n++;
  return arena_strndup(p->a, s, n);
}

/* A character that no token begins with, at the beginning of s. */
void
parser_bad_char(Parser *p, Span at, const char *s)
{
  u8 ch = (u8)s[0];
  char text[16];
  snprintf(text, sizeof text, ch >= 32 && ch < 127 ? "'%c'" : "byte 0x%02x", ch);
  p->skipped = at.hi;
  Diag *d = diag(p->c, at, E_CHAR, text);
  const char *advice = hint_find(HINT_CHAR, s[0] == '#' ? hash_word(p, s) : s);
  if (!advice && s[0] == '#')
    advice = hint_find(HINT_CHAR, "#");
  if (advice)
    diag_hint(p->c, d, "%s", advice);
}

static const char *
span_text(Parser *p, Span s)
{
  return s.hi > s.lo ? arena_strndup(p->a, source_text(p->c, p->base) + (s.lo - p->base), s.hi - s.lo) : "";
}

static bool
listed(const char *name, const char *list)
{
  size_t n = strlen(name);
  for (const char *s = list; (s = strstr(s, name)); s += n)
    if ((s == list || s[-1] == ' ') && (s[n] == ' ' || !s[n]))
      return true;
  return false;
}

static bool
among(const char *name, u32 n, const char *const *names)
{
  for (u32 i = 0; i < n; i++)
    if (!strcmp(names[i], name))
      return true;
  return false;
}

/* Sets of tokens that read better under one name; a set counts as present when its last column's token is expected. */
static const struct { const char *members, *name, *sign; } token_sets[] = {
  {"let var if for while return break continue { ; name number string true false None ( [ - ~ ! *", "a statement", "let"},
  {"+ - * / % & | ^ << >> == != < <= > >= && || ? [ ( . ->", "an operator", "'/'"},
  {"+= -= *= /= %= &= |= ^= <<= >>=", "an assignment", "+="},
  {"name number string true false None ( [ - ~ ! *", "an expression", "a number"},
  {"kernel fn const struct import", "a declaration", "kernel"},
};

static const char *
bare(Parser *p, const char *name)
{
  size_t n = strlen(name);
  if (!strncmp(name, "a ", 2))
    return name + 2;
  return n > 2 && (*name == '\'' || *name == '"') ? arena_strndup(p->a, name + 1, n - 2) : name;
}

/* "an expression or ';'": what could stand here, in few words; "" when that would be long. */
static const char *
expectation(Parser *p, u32 n, const char *const *names)
{
  const char *parts[6];
  u32 count = 0;
  bool in_set[COUNT(token_sets)] = {0};
  for (size_t k = 0; k < COUNT(token_sets); k++)
    if (among(token_sets[k].sign, n, names) && !(k == 3 && in_set[0])) {
      in_set[k] = true;
      if (count < COUNT(parts) && k != 2)
        parts[count++] = token_sets[k].name;
    }
  for (u32 i = 0; i < n; i++) {
    bool covered = false;
    for (size_t k = 0; k < COUNT(token_sets); k++)
      covered |= in_set[k] && listed(bare(p, names[i]), token_sets[k].members);
    if (!covered && count == COUNT(parts))
      return "";
    if (!covered)
      parts[count++] = names[i];
  }
  Buf b = {.arena = p->a};
  for (u32 i = 0; i < count; i++) {
    const char *s = bare(p, parts[i]);
    bool quote = s != parts[i] && strncmp(parts[i], "a ", 2) != 0;
    buf_printf(&b, quote || s[1] == 0 ? "%s'%s'" : "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ",
               quote ? s : parts[i]);
  }
  return buf_str(&b);
}

static bool
new_line_between(Parser *p, u32 lo, u32 hi)
{
  const char *text = source_text(p->c, p->base);
  return hi > lo && memchr(text + (lo - p->base), '\n', hi - lo) != NULL;
}

static bool
ends_statement(const char *token)
{
  return !strcmp(token, ";") || !strcmp(token, "{") || !strcmp(token, "}");
}

/* A type here or in another language. */
static bool
names_type(const char *word)
{
  DType dt;
  const char *is = hint_find(HINT_IS, word);
  return dtype_find(word, &dt) || (is && dtype_find(is, &dt));
}

/* Types where other languages have them: (float)x, float *x and float x among parameters. */
static const char *
misplaced_type(Parser *p, u32 n, const char *const *expected)
{
  const char *prev = span_text(p, p->last[1]), *before = span_text(p, p->last[2]);
  bool in_params = among("':'", n, expected) && among("','", n, expected) && among("')'", n, expected);
  if (!strcmp(prev, ")") && names_type(before) && !strcmp(span_text(p, p->last[3]), "("))
    return hint_find(HINT_SHAPE, "(type)x");
  bool star = !strcmp(span_text(p, p->last[0]), "*");
  if ((names_type(prev) && (in_params || star)) || (n == 1 && among("'('", n, expected) && names_type(before)))
    return hint_find(HINT_SHAPE, "type x");
  if (p->first.lo == p->last[1].lo && names_type(prev) && !hint_find(HINT_PREV, prev))
    return hint_find(HINT_SHAPE, "type x = 3");
  bool declares = !strcmp(span_text(p, p->first), "var") || !strcmp(span_text(p, p->first), "let");
  return declares && among("'='", n, expected) && among("':'", n, expected) && !strcmp(span_text(p, p->last[0]), ";")
         ? hint_find(HINT_SHAPE, "var x;") : NULL;
}

/* What the tokens around the place advise; NULL if nothing. */
static const char *
find_advice(Parser *p, Span at, u32 n, const char *const *expected)
{
  Span before = p->last[1];
  const char *got = span_text(p, at), *prev = span_text(p, before), *advice = NULL;
  bool same_line = before.hi && (!new_line_between(p, before.hi, at.lo) || ends_statement(prev));
  const char *next = at.hi > at.lo ? source_text(p->c, at.hi) : NULL;
  if (before.hi == at.lo)
    advice = hint_find(HINT_PAIR, arena_printf(p->a, "%s%s", prev, got));
  if (!advice && before.hi == at.lo && *got)
    advice = hint_find(HINT_PAIR, arena_printf(p->a, "%s%c", prev, *got));
  if (!advice && next && *next)
    advice = hint_find(HINT_PAIR, arena_printf(p->a, "%s%c", got, *next));
  if (!advice && among("']'", n, expected) && !among("';'", n, expected))
    advice = hint_find(HINT_INDEX, got);
  if (!advice)
    advice = misplaced_type(p, n, expected);
  if (!advice && among("a number", n, expected))
    advice = hint_find(HINT_OPEN, got);
  if (!advice && same_line && !hint_find(HINT_PREV, prev))
    advice = hint_find(HINT_GOT, got);
  if (!advice && among("kernel", n, expected) && !(advice = hint_find(HINT_TOP, got)))
    advice = hint_find(HINT_PREV, got);
  if (!advice)
    advice = hint_find(HINT_PREV, prev);
  return advice ? advice : hint_find(HINT_STMT, span_text(p, p->first));
}

/* A comment behind the last token that looks like a division: it holds the end of the statement. */
static bool
comment_divides(Parser *p, u32 lo, u32 hi)
{
  const char *between = span_text(p, (Span){lo, hi});
  const char *slashes = strstr(between, "//");
  if (!slashes || memchr(between, '\n', (size_t)(slashes - between)))
    return false;
  size_t stop = strcspn(slashes, ";{)"), end = strcspn(slashes, "\n");
  return stop < end;
}

static void
add_hints(Parser *p, Diag *d, Span at, u32 n, const char *const *expected)
{
  const char *advice = find_advice(p, at, n, expected);
  if (p->last[1].hi && p->last[1].hi < at.lo && comment_divides(p, p->last[1].hi, at.lo))
    advice = "// begins a comment; / divides integers";
  if (advice)
    diag_hint(p->c, d, "%s", advice);
}

/* got "": nothing known; expected: the names of the tokens that could stand here. */
void
parser_syntax_error(Parser *p, Span at, const char *got, u32 n, const char *const *expected)
{
  const char *want = expectation(p, n, expected);
  const char *text = span_text(p, at);
  const char *join = *want ? ", expected " : "";
  Diag *d;
  bool follows = p->torn || (p->skipped && !new_line_between(p, p->skipped, at.lo));
  p->torn = false;
  if (follows)
    return;
  Span prev = p->last[1];
  if (among("';'", n, expected) && new_line_between(p, prev.hi, at.lo) && !ends_statement(span_text(p, prev)))
    d = diag(p->c, (Span){prev.hi - 1, prev.hi}, E_SYNTAX, "expected ';' after this");
  else if (at.lo >= at.hi || !strcmp(got, "the end of the file"))
    d = diag(p->c, at, E_SYNTAX, arena_printf(p->a, "unexpected end of the file%s%s", join, want));
  else
    d = diag(p->c, at, E_SYNTAX, arena_printf(p->a, "unexpected '%s'%s%s", text, join, want));
  add_hints(p, d, at, n, expected);
  if (!strcmp(span_text(p, prev), "for") && !strcmp(text, "("))
    p->skipped = at.hi;                        /* for (int i = 0; i < n; i++) is one mistake */
}
