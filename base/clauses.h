/* clauses.h - the clauses of a kernel's head that a define may stand for: what every part that takes defines asks, the runtime too. */
#ifndef TILEC_CLAUSES_H
#define TILEC_CLAUSES_H
#include <stdbool.h>
#include <string.h>

static inline bool
is_clause(const char *name)
{
#define CLAUSE(clause) || !strcmp(name, #clause)
  return false
#include "clauses.def"
    ;
#undef CLAUSE
}
#endif
