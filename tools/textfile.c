/* textfile.c - see textfile.h */
#include "textfile.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *
read_all(FILE *f, size_t most, size_t *len)
{
  size_t room = 1 << 16, n = 0, got = 1;
  char *p = malloc(room);
  while (p && got && n < most) {
    size_t want = room - n - 1 < most - n ? room - n - 1 : most - n;
    n += got = fread(p + n, 1, want, f);
    if (n + 1 < room) continue;
    char *grown = realloc(p, room *= 2);
    if (!grown) free(p);
    p = grown;
  }
  if (!p) {
    errno = ENOMEM;
    return NULL;
  }
  if (ferror(f)) {
    free(p);
    return NULL;
  }
  p[n] = 0;
  *len = n;
  return p;
}

char *
textfile_read(const char *path, size_t most, size_t *len)
{
  if (!strcmp(path, "-")) return read_all(stdin, most, len);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *p = read_all(f, most, len);
  int error = errno;
  fclose(f);
  errno = error;
  return p;
}
