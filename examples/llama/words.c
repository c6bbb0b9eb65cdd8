/* words.c - text into words, as the regular expressions of tokenizers say, each alternative a function that gives the length of its match:
 *
 *   GPT-2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   Llama 3   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 */
#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

static size_t
run(const char *at, const char *end, CharKind kind, size_t most)
{
  const char *start = at;
  for (Char c; most && (c = char_at(at, end)).kind == kind; most--)
    at += c.bytes;
  return (size_t)(at - start);
}

static size_t
newlines(const char *at, const char *end)
{
  size_t n = 0;
  while (at + n < end && (at[n] == '\n' || at[n] == '\r'))
    n++;
  return n;
}

static size_t
contraction(const char *at, const char *end, bool any_case)
{
  static const char *const all[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n = strlen(all[i]), same = 0;
    while (same < n && at + same < end && (at[same] == all[i][same] || (any_case && at[same] == (all[i][same] ^ 32) && same)))
      same++;
    if (same == n)
      return n;
  }
  return 0;
}

/* White space: all of it at the end of the text, else all but its last character, which belongs to the next word, unless it is alone. */
static size_t
spaces(const char *at, const char *end)
{
  size_t n = 0, before = 0;
  for (Char c; (c = char_at(at + n, end)).kind == CHAR_SPACE; n += c.bytes)
    before = n;
  return at + n == end || !before ? n : before;
}

static size_t
spaced(const char *at, const char *end, CharKind kind)
{
  size_t space = at < end && *at == ' ', n = run(at + space, end, kind, SIZE_MAX);
  return n ? space + n : 0;
}

static size_t
gpt2(const char *at, const char *end)
{
  static const CharKind kinds[] = {CHAR_LETTER, CHAR_NUMBER, CHAR_OTHER};
  size_t n = contraction(at, end, false);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !n; i++)
    n = spaced(at, end, kinds[i]);
  return n ? n : spaces(at, end);
}

/* Up to the last line break of the white space. */
static size_t
lines(const char *at, const char *end)
{
  size_t last = 0, n = 0;
  for (Char c; (c = char_at(at + n, end)).kind == CHAR_SPACE;) {
    n += c.bytes;
    if (c.code == '\n' || c.code == '\r')
      last = n;
  }
  return last;
}

static size_t
llama3(const char *at, const char *end)
{
  Char c = char_at(at, end);
  size_t n = contraction(at, end, true);
  size_t skip = c.kind == CHAR_SPACE || c.kind == CHAR_OTHER ? c.bytes : 0;
  if (c.code == '\n' || c.code == '\r')
    skip = 0;
  if (n)
    return n;
  if ((n = run(at + skip, end, CHAR_LETTER, SIZE_MAX)) != 0)
    return skip + n;
  if ((n = run(at, end, CHAR_NUMBER, 3)) != 0)
    return n;
  if ((n = spaced(at, end, CHAR_OTHER)) != 0)
    return n + newlines(at + n, end);
  n = lines(at, end);
  return n ? n : spaces(at, end);
}

/* Numbers are cut out first, one by one; what lies between is text of its own. */
static size_t
digits(const char *at, const char *end)
{
  Char c = char_at(at, end);
  if (c.kind == CHAR_NUMBER)
    return c.bytes;
  const char *stop = at;
  while (c.kind != CHAR_NUMBER && c.kind != CHAR_END) {
    stop += c.bytes;
    c = char_at(stop, end);
  }
  return gpt2(at, stop);
}

size_t
word_length(Words words, const char *at, const char *end)
{
  return words == WORDS_GPT2 ? gpt2(at, end) : words == WORDS_DIGITS ? digits(at, end) : llama3(at, end);
}
