/* explain.c - the entry of docs/diagnostics.md, which is built in, for one id. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tilec.h"

extern const char diag_pages[];   /* docs/diagnostics.md: one "## ID" heading for each entry */

static bool
same_word(const char *a, const char *b, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!b[i] || tolower((unsigned char)a[i]) != tolower((unsigned char)b[i])) return false;
  return !b[n];
}

static char *
copy(const char *s, size_t n)
{
  char *p = malloc(n + 1);
  if (!p) return NULL;
  memcpy(p, s, n);
  p[n] = 0;
  return p;
}

char *
tilec_explain(const char *id)
{
  const char *s = diag_pages, *next;
  if (!id || !*id) return NULL;
  while ((s = strstr(s, "\n## "))) {
    const char *word = s + 4;
    size_t n = strcspn(word, " \n");
    next = strstr(word, "\n## ");
    if (same_word(word, id, n)) return copy(word, next ? (size_t)(next - word) : strlen(word));
    s = word;
  }
  return NULL;
}
