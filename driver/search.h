/* search.h - configurations worth measuring of a kernel that lists none. */
#ifndef TILEC_SEARCH_H
#define TILEC_SEARCH_H
#include "ir.h"
#include "tilec.h"

/* Appends to out a line "tune warps=8<tab>BLOCK=2048" for each, those of the source first; at most SEARCH_MAX. `described` is what
 * tilec_describe says of the one kernel that o names or the text has. Configurations that do not compile are left out. */
enum { SEARCH_MAX = 12 };
void search_list(Ctx *c, const char *name, const char *text, size_t len, const TilecOptions *o, const char *described, Buf *out);
#endif
