/* options.h - private: structs of options begin with their size, as the caller knows it. A shorter one is an older header's, and what it
 * lacks has its default; of a longer one, what this library does not know has to be 0. */
#ifndef TILERT_OPTIONS_H
#define TILERT_OPTIONS_H
#include <stddef.h>
#include <string.h>

enum { OPTIONS_MOST = 1 << 12 };               /* bytes: what is larger is no size */
/* of the struct's name, its size, tilert_version() and what is known */
#define OPTIONS_NEWER                                                                                                              \
  "%s has %zu bytes, and says something in those that this library (%s) does not know, behind %zu: it is older than the header"

static inline int
options_newer(const void *o, size_t size, size_t known)
{
  const unsigned char *bytes = o;
  for (size_t i = known; i < size && size <= OPTIONS_MOST; i++)
    if (bytes[i])
      return 1;
  return size > OPTIONS_MOST;
}

/* What both know, over the defaults in *all. */
static inline void
options_take(void *all, size_t known, const void *o, size_t size)
{
  memcpy(all, o, size < known ? size : known);
  memcpy(all, &known, sizeof known);
}
#endif
