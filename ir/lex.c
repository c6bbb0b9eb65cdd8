/* lex.c - tokens of .tir text. */
#include "lex.h"

static char
peek(const Lexer *l, u32 ahead)
{
  return l->pos + ahead < l->len ? l->text[l->pos + ahead] : 0;
}

static bool
is_digit(char ch)
{
  return ch >= '0' && ch <= '9';
}

static bool
is_word(char ch)
{
  return is_digit(ch) || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* Skips blanks and comments; true if a line ended (or the text begins). */
static bool
skip_blanks(Lexer *l)
{
  bool first = l->pos == 0;
  for (; l->pos < l->len; l->pos++) {
    char ch = l->text[l->pos];
    if (ch == '\n')
      first = true;
    else if (ch == '/' && peek(l, 1) == '/')
      while (l->pos + 1 < l->len && l->text[l->pos + 1] != '\n')
        l->pos++;
    else if (ch != ' ' && ch != '\t' && ch != '\r')
      break;
  }
  return first;
}

static void
skip_word(Lexer *l)
{
  while (is_word(peek(l, 0)))
    l->pos++;
}

/* Digits, letters and dots, and a sign behind a decimal exponent's e. */
static void
skip_number(Lexer *l)
{
  u32 start = l->pos;
  bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');
  for (;; l->pos++) {
    char ch = peek(l, 0), before = l->pos > start ? l->text[l->pos - 1] : 0;
    bool sign = (ch == '+' || ch == '-') && !hex && (before == 'e' || before == 'E');
    if (!is_word(ch) && ch != '.' && !sign)
      return;
  }
}

/* From behind the opening quote to behind the closing one; BAD if the line ends first. */
static TokenKind
skip_string(Lexer *l)
{
  for (; l->pos < l->len && l->text[l->pos] != '\n'; l->pos++) {
    if (l->text[l->pos] == '"') {
      l->pos++;
      return TOK_STRING;
    }
    if (l->text[l->pos] == '\\' && peek(l, 1) != '\n' && l->pos + 1 < l->len)
      l->pos++;
  }
  return TOK_BAD;
}

static TokenKind
scan(Lexer *l)
{
  char ch = peek(l, 0), next = peek(l, 1);
  if (is_digit(ch) || (ch == '-' && is_digit(next))) {
    l->pos += ch == '-';
    skip_number(l);
    return TOK_NUMBER;
  }
  if (is_word(ch)) {
    skip_word(l);
    return TOK_NAME;
  }
  l->pos++;
  if (ch == '"')
    return skip_string(l);
  if ((ch == '%' || ch == '#') && is_word(next)) {
    skip_word(l);
    for (; ch == '%' && peek(l, 0) == '.' && is_word(peek(l, 1)); skip_word(l))   /* a part of an argument: %2_shape.0 */
      l->pos++;
    return ch == '%' ? TOK_VALUE : TOK_ALIAS;
  }
  return ch && strchr("(){}[],:=*@^<>+.", ch) ? TOK_PUNCT : TOK_BAD;
}

/* The next token; after the text only TOK_END. */
Token
lex_next(Lexer *l)
{
  Token t = {.first = skip_blanks(l)};
  u32 start = l->pos;
  t.kind = start < l->len ? scan(l) : TOK_END;
  t.at = (Span){l->base + start, l->base + l->pos};
  t.punct = t.kind == TOK_PUNCT ? l->text[start] : 0;
  t.first |= t.kind == TOK_END;
  return t;
}

/* The token's text, in place. */
const char *
lex_text(const Lexer *l, Token t, u32 *len)
{
  *len = t.at.hi - t.at.lo;
  return l->text + (t.at.lo - l->base);
}

static int
hex_digit(char ch)
{
  if (is_digit(ch))
    return ch - '0';
  ch |= 32;
  return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* One escape at s (behind the backslash); advances over it. 0 if it is not one. */
static char
unescape(const char **s)
{
  static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
  const char *known = strchr(from, **s);
  if (**s && known) {
    ++*s;
    return to[known - from];
  }
  int hi = **s == 'x' ? hex_digit((*s)[1]) : -1, lo = hi >= 0 ? hex_digit((*s)[2]) : -1;
  if (lo < 0)
    return 0;
  *s += 3;
  return (char)(hi * 16 + lo);
}

/* The decoded text; NULL for an unknown escape or a NUL. */
const char *
lex_string(Arena *a, const Lexer *l, Token t)
{
  u32 len;
  const char *s = lex_text(l, t, &len), *end = s + len - 1;
  Buf b = {.arena = a};
  for (s++; s < end;) {
    char ch = *s++;
    if (ch == '\\')
      ch = unescape(&s);
    if (!ch || s > end)
      return NULL;
    buf_putc(&b, ch);
  }
  return buf_str(&b);
}

/* An integer's magnitude and sign. */
bool
lex_integer(const Lexer *l, Token t, u64 *magnitude, bool *negative)
{
  u32 len, i = 0;
  const char *s = lex_text(l, t, &len);
  *negative = s[0] == '-';
  i += *negative;
  u64 radix = len - i > 2 && s[i] == '0' && (s[i + 1] | 32) == 'x' ? 16 : 10;
  i += radix == 16 ? 2 : 0;
  for (*magnitude = 0; i < len; i++) {
    int d = hex_digit(s[i]);
    if (d < 0 || (u64)d >= radix || *magnitude > (UINT64_MAX - (u64)d) / radix)
      return false;
    *magnitude = *magnitude * radix + (u64)d;
  }
  return true;
}
