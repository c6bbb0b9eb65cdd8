/* textfile.c - see textfile.h */
#include "textfile.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *
read_all(FILE *f, size_t *len)
{
  size_t cap = 1 << 16, n = 0, got;
  char *p = malloc(cap), *grown;
  while (p && (got = fread(p + n, 1, cap - n - 1, f)) > 0) {
    n += got;
    if (cap - n > 1) continue;
    grown = realloc(p, cap *= 2);
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
textfile_read(const char *path, size_t *len)
{
  struct stat st;
  FILE *f;
  char *p;
  if (!strcmp(path, "-")) return read_all(stdin, len);
  if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    return NULL;
  }
  f = fopen(path, "rb");
  if (!f) return NULL;
  p = read_all(f, len);
  fclose(f);
  return p;
}
