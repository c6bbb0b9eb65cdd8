#include "json.h"
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, NUMBER_LONGEST = 64 };

typedef struct Reader { Memory *memory; const char *begin, *at, *end; Fail *fail; int depth; } Reader;

static int
wrong(const Reader *r, const char *what)
{
  return fail_with(r->fail, "JSON, byte %zu: %s", (size_t)(r->at - r->begin), what);
}

static void
skip_space(Reader *r)
{
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
    r->at++;
}

/* The next character that is no space; 0 at the end. */
static char
peek(Reader *r)
{
  skip_space(r);
  return r->at < r->end ? *r->at : 0;
}

static int
read_hex(Reader *r, uint32_t *out)
{
  *out = 0;
  for (int i = 0; i < 4; i++) {
    char c = r->at < r->end ? *r->at : 0;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0)
      return wrong(r, "four hexadecimal digits are expected");
    *out = *out * 16 + (uint32_t)digit;
    r->at++;
  }
  return 0;
}

static char *
put_utf8(char *out, uint32_t c)
{
  static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  *out++ = (char)(lead[more] | c >> 6 * more);
  while (more--)
    *out++ = (char)(0x80 | (c >> 6 * more & 0x3f));
  return out;
}

/* Behind \u: a character, or the two halves of one beyond 16 bits. A half alone becomes U+FFFD, as no UTF-8 says it. */
static int
read_code(Reader *r, char **out)
{
  uint32_t c, low;
  if (read_hex(r, &c))
    return -1;
  if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
    const char *before = r->at;
    r->at += 2;
    if (read_hex(r, &low))
      return -1;
    if (low >= 0xdc00 && low < 0xe000)
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    else
      r->at = before;
  }
  *out = put_utf8(*out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
  return 0;
}

static int
read_escape(Reader *r, char **out)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = r->at < r->end ? *r->at++ : 0;
  const char *found = c ? strchr(from, c) : NULL;
  if (c == 'u')
    return read_code(r, out);
  if (!found)
    return wrong(r, "an unknown escape");
  *(*out)++ = to[found - from];
  return 0;
}

/* At the quote. What is escaped is never longer than its escape. */
static int
read_string(Reader *r, Text *out)
{
  const char *start = ++r->at;
  bool escaped = false;
  for (; r->at < r->end && *r->at != '"'; r->at++) {
    if ((uint8_t)*r->at < 0x20)
      return wrong(r, "a control character within a string");
    if (*r->at == '\\') {
      escaped = true;
      if (++r->at == r->end)
        break;
    }
  }
  if (r->at >= r->end)
    return wrong(r, "the text ends within a string");
  const char *stop = r->at;
  *out = (Text){start, (size_t)(stop - start)};
  if (escaped) {
    char *copy = memory_take(r->memory, out->len, 1, r->fail), *to = copy;
    if (!copy)
      return -1;
    for (r->at = start; r->at < stop;)
      if (*r->at != '\\')
        *to++ = *r->at++;
      else if (r->at++, read_escape(r, &to))
        return -1;
    *out = (Text){copy, (size_t)(to - copy)};
  }
  r->at = stop + 1;
  return 0;
}

static size_t
skip_digits(Reader *r)
{
  const char *start = r->at;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
    r->at++;
  return (size_t)(r->at - start);
}

static int
read_number(Reader *r, Json *j)
{
  const char *start = r->at;
  if (*r->at == '-')
    r->at++;
  const char *whole = r->at;
  size_t digits = skip_digits(r);
  bool good = digits == 1 || (digits > 1 && *whole != '0');
  if (r->at < r->end && *r->at == '.') {
    r->at++;
    good = skip_digits(r) > 0 && good;
  }
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
      r->at++;
    good = skip_digits(r) > 0 && good;
  }
  j->kind = JSON_NUMBER;
  j->text = (Text){start, (size_t)(r->at - start)};
  return good && j->text.len < NUMBER_LONGEST ? 0 : wrong(r, "no number of JSON");
}

static int
read_word(Reader *r, Json *j)
{
  static const struct { const char *word; JsonKind kind; } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i].word);
    if ((size_t)(r->end - r->at) >= n && !memcmp(r->at, words[i].word, n)) {
      j->kind = words[i].kind;
      r->at += n;
      return 0;
    }
  }
  return wrong(r, "a value is expected");
}

static int read_value(Reader *r, Json *j);

static int
read_key(Reader *r, Json *j)
{
  if (peek(r) != '"')
    return wrong(r, "a member's name is expected");
  if (read_string(r, &j->key))
    return -1;
  if (peek(r) != ':')
    return wrong(r, "a colon is expected");
  r->at++;
  return 0;
}

/* At the bracket. */
static int
read_list(Reader *r, Json *j)
{
  char close = *r->at == '{' ? '}' : ']';
  Json **last = &j->first;
  j->kind = *r->at++ == '{' ? JSON_OBJECT : JSON_ARRAY;
  if (++r->depth > DEEPEST)
    return wrong(r, "too deep");
  if (peek(r) == close)
    r->at++;
  else
    for (;;) {
      Json *e = *last = memory_take(r->memory, 1, sizeof *e, r->fail);
      if (!e || (j->kind == JSON_OBJECT && read_key(r, e)) || read_value(r, e))
        return -1;
      last = &e->next;
      j->count++;
      char c = peek(r);
      if (c != ',' && c != close)
        return wrong(r, c ? "a comma or the end of the list is expected" : "the text ends within a list");
      r->at++;
      if (c == close)
        break;
    }
  r->depth--;
  return 0;
}

static int
read_value(Reader *r, Json *j)
{
  char c = peek(r);
  if (c == '{' || c == '[')
    return read_list(r, j);
  if (c == '"') {
    j->kind = JSON_STRING;
    return read_string(r, &j->text);
  }
  return c == '-' || (c >= '0' && c <= '9') ? read_number(r, j) : read_word(r, j);
}

int
json_read(Memory *memory, const char *text, size_t size, Json **out, Fail *fail)
{
  Reader r = {memory, text, text, text + size, fail, 0};
  Json *j = memory_take(memory, 1, sizeof *j, fail);
  if (!j || read_value(&r, j))
    return -1;
  skip_space(&r);
  if (r.at < r.end)
    return wrong(&r, "something follows the value");
  *out = j;
  return 0;
}

const Json *
json_member(const Json *j, const char *key)
{
  if (j && j->kind == JSON_OBJECT)
    for (const Json *m = j->first; m; m = m->next)
      if (text_is(m->key, key))
        return m;
  return NULL;
}

bool
json_integer(const Json *j, uint64_t *out)
{
  if (!j || j->kind != JSON_NUMBER)
    return false;
  *out = 0;
  for (size_t i = 0; i < j->text.len; i++) {
    char c = j->text.at[i];
    if (c < '0' || c > '9' || __builtin_mul_overflow(*out, 10u, out) || __builtin_add_overflow(*out, (uint64_t)(c - '0'), out))
      return false;
  }
  return true;
}

bool
json_real(const Json *j, double *out)
{
  char copy[NUMBER_LONGEST];
  if (!j || j->kind != JSON_NUMBER)
    return false;
  memcpy(copy, j->text.at, j->text.len);
  copy[j->text.len] = 0;
  *out = strtod(copy, NULL);
  return true;
}
