/* ptx_line.c - where in the source a line of PTX comes from, by its .loc directives: for PTX that a device rejects. */
#include "device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
next_line(const char *s)
{
  const char *end = strchr(s, '\n');
  return end ? end + 1 : s + strlen(s);
}

static const char *
directive(const char *line, const char *name)
{
  line += strspn(line, " \t");
  size_t n = strlen(name);
  return !strncmp(line, name, n) && (line[n] == ' ' || line[n] == '\t') ? line + n : NULL;
}

/* .file NUMBER "NAME" */
static int
file_name(const char *ptx, unsigned long number, char *out, size_t size)
{
  for (const char *s = ptx; *s; s = next_line(s)) {
    const char *at = directive(s, ".file");
    char *end;
    if (!at || strtoul(at, &end, 10) != number || !(at = strchr(end, '"')))
      continue;
    size_t n = strcspn(++at, "\"\n");
    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), at);
    return 1;
  }
  return 0;
}

/* err is about a line of this text, "... line N ...": say in front which line of the source that was. */
void
rt_error_locate(TilertError *err, const char *ptx)
{
  const char *at = err ? strstr(err->message, "line ") : NULL;
  unsigned long wanted = at ? strtoul(at + 5, NULL, 10) : 0, number = 1, file = 0, line = 0, column = 0;
  char name[sizeof err->file];
  if (!wanted || err->line)
    return;
  for (const char *s = ptx; *s && number <= wanted; s = next_line(s), number++) {
    const char *loc = directive(s, ".loc");
    if (loc)
      sscanf(loc, "%lu %lu %lu", &file, &line, &column);
    else if (directive(s, ".entry") || directive(s, ".visible"))
      line = 0;
  }
  if (!line || !file_name(ptx, file, name, sizeof name))
    return;
  error_prefix(err, err->status, "%.200s:%lu", name, line);
  memcpy(err->file, name, sizeof name);
  err->line = (uint32_t)line;
  err->column = (uint32_t)column;
}
