#include "facts.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *
fact_parse(char *text, TilecFact *out)
{
  char *at = text + strcspn(text, "=%!"), *end = NULL;
  const bool not = *at == '!', none = !strcmp(at, "=None") || !strcmp(at, "!=None");
  const bool same = *at == '=' && !none && (isalpha((unsigned char)at[1]) || at[1] == '_');
  const TilecFactKind kind = none ? TILEC_FACT_NULL : same ? TILEC_FACT_SAME : *at == '%' ? TILEC_FACT_DIVISIBLE : TILEC_FACT_EQUAL;
  TilecFact f = {.name = text, .kind = kind, .value = !not && !same, .other = same ? at + 1 : NULL};
  errno = 0;
  if (*at && !none && !not && !same) f.value = strtoll(at + 1, &end, 0);
  if (at == text || (!none && !same && (!end || end == at + 1 || *end)))
    return "wants NAME=INTEGER, NAME%%INTEGER, NAME=None, NAME!=None or NAME=OTHER, not '%s'";
  if (errno) return "the number is too large: '%s'";
  *at = 0;
  *out = f;
  return NULL;
}
