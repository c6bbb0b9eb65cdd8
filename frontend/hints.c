/* hints.c - hints.def: what people write who know other languages, and what it is called here. */
#include "hints.h"

static const struct { HintWhere where; const char *text, *advice; } hints[] = {
#define HINT(where, text, advice) {HINT_##where, text, advice},
#include "hints.def"
#undef HINT
};

/* The advice of the row, NULL if there is none. */
const char *
hint_find(HintWhere where, const char *text)
{
  for (size_t i = 0; i < COUNT(hints); i++)
    if (hints[i].where == where && !strcmp(hints[i].text, text))
      return hints[i].advice;
  return NULL;
}
