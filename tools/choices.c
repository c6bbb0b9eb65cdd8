/* choices.c - see choices.h. */
#include "choices.h"
#include "textfile.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a choice is for: all in front of the configuration. */
static size_t
subject(const char *line)
{
  const size_t n = strcspn(line, "\n");
  const char *end = memchr(line, ':', n);
  return end ? (size_t)(end - line) + 1 : n;
}

static int
complain(const char *what, const char *path)
{
  fprintf(stderr, "tilerun: cannot %s %s: %s\n", what, path, strerror(errno));
  return 1;
}

int
choices_keep(const char *path, const char *line)
{
  size_t len;
  if (!line) {
    fprintf(stderr, "tilerun: --choices: the choice depends on an argument whose value no line tells\n");
    return 1;
  }
  errno = 0;
  char *old = textfile_read(path, TEXTFILE_MOST, &len);
  if (!old && errno != ENOENT)
    return complain("read", path);
  FILE *to = fopen(path, "wb");
  if (!to) {
    free(old);
    return complain("write", path);
  }
  for (const char *s = old; s && *s; s += strcspn(s, "\n"), s += *s == '\n') {
    const size_t n = subject(s);
    if (n != subject(line) || strncmp(s, line, n) != 0)
      fprintf(to, "%.*s\n", (int)strcspn(s, "\n"), s);
  }
  fprintf(to, "%s\n", line);
  free(old);
  const int failed = ferror(to);
  return fclose(to) || failed ? complain("write", path) : 0;
}
