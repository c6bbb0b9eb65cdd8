/* hints.h - advice for habits from other languages. */
#ifndef TILEC_HINTS_H
#define TILEC_HINTS_H
#include "base.h"

typedef enum HintWhere {
  HINT_GOT, HINT_OPEN, HINT_PREV, HINT_TOP, HINT_STMT, HINT_SHAPE, HINT_PAIR, HINT_INDEX, HINT_CHAR, HINT_IS,
  HINT_NAME, HINT_TEXT, HINT_PREFIX, HINT_FIELD, HINT_ARG, HINT_WORD, HINT_ATTR
} HintWhere;
/* The advice of the row of hints.def, NULL if there is none. */
const char *hint_find(HintWhere where, const char *text);
#endif
