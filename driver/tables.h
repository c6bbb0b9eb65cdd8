/* tables.h - the compiler's tables as text for people. */
#ifndef TILEC_TABLES_H
#define TILEC_TABLES_H
#include "base.h"
/* what: "passes" | "ops" | "targets" | "diags" | "dtypes". False if unknown. */
bool table_print(Buf *out, const char *what);
#endif
