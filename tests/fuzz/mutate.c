/* mutate.c - how libFuzzer changes an input: half of the time by words and lines instead of bytes, as text that is nearly right
 * gets further. A word becomes another word of its kind from the same text (a name, a value, a number), a number a near
 * one; a line goes, comes twice, or moves. */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { TRIES = 16, LONGEST_WORD = 64 };
typedef struct Text { char *s; size_t n, room; uint64_t random; } Text;
typedef struct Part { size_t at, len; } Part;

static size_t
below(Text *t, size_t n)
{
  t->random = t->random * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(t->random >> 33) % n : 0;
}

static int
in_word(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static int
starts_word(char c)
{
  return in_word(c) || c == '%' || c == '#' || c == '@';
}

/* The word at or behind a random place; len 0 if there is none. */
static Part
any_word(Text *t)
{
  size_t i = below(t, t->n), end;
  while (i < t->n && !starts_word(t->s[i]))
    i++;
  while (i > 0 && in_word(t->s[i]) && starts_word(t->s[i - 1]))
    i--;
  for (end = i; end < t->n && (end == i || in_word(t->s[end])); end++) {}
  return (Part){i, end - i};
}

static int
kind(char c)
{
  return isdigit((unsigned char)c) ? '0' : isalpha((unsigned char)c) || c == '_' ? 'a' : c;
}

static void
splice(Text *t, Part p, const char *with, size_t len)
{
  if (t->n - p.len + len > t->room)
    return;
  memmove(t->s + p.at + len, t->s + p.at + p.len, t->n - p.at - p.len);
  memcpy(t->s + p.at, with, len);
  t->n += len - p.len;
}

static void
exchange_word(Text *t)
{
  char word[LONGEST_WORD];
  Part to = any_word(t);
  for (int i = 0; i < TRIES && to.len; i++) {
    Part from = any_word(t);
    if (!from.len || from.len > sizeof word || kind(t->s[from.at]) != kind(t->s[to.at]))
      continue;
    memcpy(word, t->s + from.at, from.len);
    splice(t, to, word, from.len);
    return;
  }
}

static void
change_number(Text *t)
{
  static const long long edges[] = {0, 1, -1, 2, 3, 7, 8, 16, 31, 32, 33, 64, 128, 255, 256, 1024, 65536, 1048576, 2147483647, -2147483648LL, 4294967296};
  char word[LONGEST_WORD];
  for (int i = 0; i < TRIES; i++) {
    Part p = any_word(t);
    if (!p.len || p.len > 18 || !isdigit((unsigned char)t->s[p.at]))
      continue;
    long long v = 0;
    for (size_t k = 0; k < p.len && isdigit((unsigned char)t->s[p.at + k]); k++)
      v = v * 10 + (t->s[p.at + k] - '0');
    const long long near[] = {v + 1, v - 1, v * 2, v / 2, edges[below(t, sizeof edges / sizeof *edges)]};
    int n = snprintf(word, sizeof word, "%lld", near[below(t, 5)]);
    splice(t, p, word, (size_t)n);
    return;
  }
}

static Part
any_line(Text *t)
{
  size_t i = below(t, t->n), end;
  while (i > 0 && t->s[i - 1] != '\n')
    i--;
  for (end = i; end < t->n && t->s[end] != '\n'; end++) {}
  return (Part){i, end - i + (end < t->n)};
}

static void
move_line(Text *t)
{
  char line[512];
  Part from = any_line(t);
  size_t pick = below(t, 3), len = from.len;
  if (len > sizeof line)
    return;
  memcpy(line, t->s + from.at, len);
  if (pick)
    splice(t, from, "", 0);
  if (pick < 2 && t->n) {
    Part to = any_line(t);
    splice(t, (Part){to.at, 0}, line, len);
  }
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
  Text t = {(char *)data, size, max_size, seed};
  if (!size || below(&t, 2))
    return LLVMFuzzerMutate(data, size, max_size);
  for (size_t edits = 1 + below(&t, 4); edits && t.n; edits--)
    switch (below(&t, 4)) {
    case 0: case 1: exchange_word(&t); break;
    case 2: change_number(&t); break;
    case 3: move_line(&t); break;
    }
  return t.n;
}
