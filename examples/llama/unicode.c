#include "unicode.h"

typedef struct Range { uint32_t first, last; } Range;
static const Range letters[] = {
#define LETTERS(first, last) {first, last},
#include "unicode.def"
#undef LETTERS
};
static const Range numbers[] = {
#define NUMBERS(first, last) {first, last},
#include "unicode.def"
#undef NUMBERS
};
/* White_Space */
static const Range spaces[] = {{9, 13}, {32, 32}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                               {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

static bool
within(const Range *all, size_t count, uint32_t code)
{
  size_t low = 0;
  while (count > low) {
    size_t middle = low + (count - low) / 2;
    if (code > all[middle].last)
      low = middle + 1;
    else
      count = middle;
  }
  return all[low].first <= code && code <= all[low].last;
}
#define WITHIN(table, code) ((code) <= table[sizeof table / sizeof *table - 1].last && within(table, sizeof table / sizeof *table, code))

static CharKind
kind_of(uint32_t code)
{
  if (WITHIN(letters, code))
    return CHAR_LETTER;
  if (WITHIN(numbers, code))
    return CHAR_NUMBER;
  return WITHIN(spaces, code) ? CHAR_SPACE : CHAR_OTHER;
}

Char
char_at(const char *at, const char *end)
{
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  if (at >= end)
    return (Char){0, CHAR_END, 0};
  uint8_t lead = (uint8_t)*at;
  int more = lead < 0x80 ? 0 : lead >= 0xc0 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf8 ? 3 : -1;
  if (more < 0 || end - at <= more)
    return (Char){0xfffd, CHAR_OTHER, 1};
  uint32_t code = more ? lead & (0x3fu >> more) : lead;
  for (int i = 1; i <= more; i++) {
    if (((uint8_t)at[i] & 0xc0) != 0x80)
      return (Char){0xfffd, CHAR_OTHER, 1};
    code = code << 6 | ((uint8_t)at[i] & 0x3f);
  }
  if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return (Char){0xfffd, CHAR_OTHER, 1};
  return (Char){code, kind_of(code), (uint8_t)(more + 1)};
}
