/* scan.c - PTX text to tokens. An opcode with its modifiers is one word, as are %tid.x and L1::evict_last. */
#include "decode.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Scan {
  const char *p, *end;
  uint32_t line;
  Tokens out;
  SimError *err;
} Scan;

static bool
word_start(char c)
{
  return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static bool
word_char(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static int
scan_error(Scan *s, const char *what)
{
  s->err->ptx_line = s->line;
  return sim_error_set(s->err, SIM_E_PARSE, "%s", what);
}

static Tok *
scan_push(Scan *s, TokKind kind, const char *text, size_t n)
{
  Tokens *o = &s->out;
  if (!sim_vec_grow(&o->tok, &o->cap, o->n + 1, sizeof *o->tok)) {
    sim_error_set(s->err, SIM_E_MEMORY, "out of memory reading PTX");
    return NULL;
  }
  Tok *t = &o->tok[o->n++];
  *t = (Tok){.kind = (uint8_t)kind, .line = s->line, .n = (uint32_t)n, .s = text};
  return t;
}

static int
skip_block_comment(Scan *s)
{
  for (s->p += 2; s->p + 1 < s->end; s->p++) {
    if (s->p[0] == '*' && s->p[1] == '/') {
      s->p += 2;
      return 0;
    }
    s->line += *s->p == '\n';
  }
  return scan_error(s, "a comment has no end");
}

/* A comment to the end of its line, which may be a note. */
static int
skip_line_comment(Scan *s)
{
  static const char word[] = "//@tilec.index ";
  const char *b = s->p, *e = memchr(b, '\n', (size_t)(s->end - b));
  Tokens *o = &s->out;
  size_t n = sizeof word - 1;
  s->p = e ? e : s->end;
  if ((size_t)(s->p - b) <= n || memcmp(b, word, n) != 0)
    return 0;
  if (!sim_vec_grow(&o->note, &o->note_cap, o->nnotes + 1, sizeof *o->note))
    return sim_error_set(s->err, SIM_E_MEMORY, "out of memory reading PTX");
  o->note[o->nnotes++] = (Note){o->n, b + n, (uint32_t)((size_t)(s->p - b) - n), s->line};
  return 0;
}

static int
skip_space(Scan *s)
{
  while (s->p < s->end) {
    if (*s->p == '\n')
      s->line++;
    else if (s->p + 1 < s->end && s->p[0] == '/' && s->p[1] == '/') {
      if (skip_line_comment(s))
        return -1;
      continue;
    } else if (s->p + 1 < s->end && s->p[0] == '/' && s->p[1] == '*') {
      if (skip_block_comment(s))
        return -1;
      continue;
    } else if (!isspace((unsigned char)*s->p))
      return 0;
    s->p++;
  }
  return 0;
}

static bool
double_colon(const Scan *s)
{
  return s->p + 2 < s->end && s->p[0] == ':' && s->p[1] == ':';
}

/* A directive's word ends at the next dot: .reg.b16 are two. */
static int
scan_word(Scan *s)
{
  const char *b = s->p;
  bool directive = *b == '.';
  while (s->p < s->end && !(directive && s->p > b && *s->p == '.') && (word_char(*s->p) || double_colon(s)))
    s->p += *s->p == ':' ? 2 : 1;
  return scan_push(s, TK_IDENT, b, (size_t)(s->p - b)) ? 0 : -1;
}

static int
scan_hex_float(Scan *s, const char *b, int digits)
{
  uint64_t v = 0;
  s->p += 2;
  for (int i = 0; i < digits; i++, s->p++) {
    if (s->p == s->end || !isxdigit((unsigned char)*s->p))
      return scan_error(s, "a hexadecimal float has too few digits");
    v = v << 4 | (uint64_t)(isdigit((unsigned char)*s->p) ? *s->p - '0' : (*s->p | 32) - 'a' + 10);
  }
  Tok *t = scan_push(s, TK_FLOAT, b, (size_t)(s->p - b));
  if (!t)
    return -1;
  t->v = v;
  t->fbits = (uint8_t)(digits * 4);
  return 0;
}

static int
scan_decimal_float(Scan *s, const char *b)
{
  char buf[64];
  size_t n = (size_t)(s->p - b);
  if (n >= sizeof buf)
    return scan_error(s, "a number is too long");
  memcpy(buf, b, n);
  buf[n] = 0;
  double v = strtod(buf, NULL);
  Tok *t = scan_push(s, TK_FLOAT, b, n);
  if (!t)
    return -1;
  memcpy(&t->v, &v, 8);
  return 0;
}

static int
digit_of(char c)
{
  return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 : 99;
}

static int
scan_integer(Scan *s, const char *b, int base)
{
  uint64_t v = 0;
  bool fits = true;
  while (s->p < s->end && digit_of(*s->p) < base) {
    fits &= v <= (UINT64_MAX - (uint64_t)digit_of(*s->p)) / (uint64_t)base;
    v = v * (uint64_t)base + (uint64_t)digit_of(*s->p++);
  }
  if (!fits)
    return scan_error(s, "a number has more than 64 bits");
  if (s->p < s->end && *s->p == 'U')
    s->p++;
  Tok *t = scan_push(s, TK_INT, b, (size_t)(s->p - b));
  if (!t)
    return -1;
  t->v = v;
  return 0;
}

static int
scan_number(Scan *s)
{
  const char *b = s->p, *e = s->p;
  char next = b + 1 < s->end ? (char)(b[1] | 32) : 0;
  if (*b == '0' && (next == 'f' || next == 'd'))
    return scan_hex_float(s, b, next == 'f' ? 8 : 16);
  if (*b == '0' && (next == 'x' || next == 'b')) {
    s->p += 2;
    return scan_integer(s, b, next == 'x' ? 16 : 2);
  }
  while (e < s->end && isdigit((unsigned char)*e))
    e++;
  if (e < s->end && (*e == '.' || *e == 'e' || *e == 'E')) {
    while (e < s->end && (isdigit((unsigned char)*e) || *e == '.' || (*e | 32) == 'e' ||
                          ((*e == '+' || *e == '-') && (e[-1] | 32) == 'e')))
      e++;
    s->p = e;
    return scan_decimal_float(s, b);
  }
  return scan_integer(s, b, *b == '0' && e > b + 1 ? 8 : 10);
}

static int
scan_string(Scan *s)
{
  const char *b = ++s->p;
  while (s->p < s->end && *s->p != '"' && *s->p != '\n')
    s->p += *s->p == '\\' && s->p + 1 < s->end && s->p[1] != '\n' ? 2 : 1;
  if (s->p >= s->end || *s->p != '"')
    return scan_error(s, "a string has no end");
  return scan_push(s, TK_STRING, b, (size_t)(s->p++ - b)) ? 0 : -1;
}

static int
scan_punct(Scan *s)
{
  if (!memchr("{}[]()<>,;:+-*=@!|&~^?/", *s->p, 23))
    return scan_error(s, "a character that PTX does not have");
  Tok *t = scan_push(s, TK_PUNCT, s->p, 1);
  if (!t)
    return -1;
  t->punct = *s->p++;
  return 0;
}

static int
scan_one(Scan *s)
{
  if (word_start(*s->p))
    return scan_word(s);
  if (isdigit((unsigned char)*s->p))
    return scan_number(s);
  return *s->p == '"' ? scan_string(s) : scan_punct(s);
}

int
ptx_scan(const char *text, size_t len, Tokens *out, SimError *err)
{
  Scan s = {.p = text, .end = text + len, .line = 1, .err = err};
  int rc = skip_space(&s);
  while (!rc && s.p < s.end && *s.p) {
    rc = scan_one(&s);
    if (!rc)
      rc = skip_space(&s);
  }
  if (!rc && !scan_push(&s, TK_END, s.p, 0))
    rc = -1;
  if (rc) {
    free(s.out.tok);
    free(s.out.note);
    return -1;
  }
  *out = s.out;
  return 0;
}

bool
ptx_tok_is(const Tok *t, const char *text)
{
  size_t n = strlen(text);
  return t->kind == TK_IDENT && t->n == n && memcmp(t->s, text, n) == 0;
}

Type
ptx_type_named(const Tok *t)
{
  for (int i = 1; t->kind == TK_IDENT && i < T_COUNT; i++)
    if (t->n == strlen(ptx_type_text[i]) + 1 && memcmp(t->s + 1, ptx_type_text[i], t->n - 1) == 0)
      return (Type)i;
  return T_NONE;
}
