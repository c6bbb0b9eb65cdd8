#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct MemoryBlock { MemoryBlock *before; size_t used, size; max_align_t bytes[]; };
static const size_t BLOCK_LEAST = (size_t)1 << 16;

int
fail_with(Fail *fail, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(fail->message, sizeof fail->message, format, args);
  va_end(args);
  return -1;
}

static MemoryBlock *
block_for(Memory *a, size_t bytes)
{
  if (a->last && a->last->size - a->last->used >= bytes)
    return a->last;
  size_t size = bytes > BLOCK_LEAST ? bytes : BLOCK_LEAST;
  MemoryBlock *b = calloc(1, sizeof *b + size);
  if (!b)
    return NULL;
  b->size = size;
  b->before = a->last;
  a->last = b;
  return b;
}

void *
memory_take(Memory *a, size_t n, size_t size, Fail *fail)
{
  size_t bytes;
  MemoryBlock *b = NULL;
  if (!__builtin_mul_overflow(n, size, &bytes) && bytes < SIZE_MAX / 2) {
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    b = block_for(a, bytes);
  }
  if (!b) {
    fail_with(fail, "no memory for %zu objects of %zu bytes", n, size);
    return NULL;
  }
  void *p = (char *)b->bytes + b->used;
  b->used += bytes;
  return p;
}

void *
memory_grow(Memory *a, void *at, size_t count, size_t more, size_t *room, size_t size, Fail *fail)
{
  if (at && count + more <= *room)
    return at;
  size_t n = 2 * (count + more) + 64;
  void *p = memory_take(a, n, size, fail);
  if (p && count)
    memcpy(p, at, count * size);
  *room = p ? n : *room;
  return p;
}

void
memory_free(Memory *a)
{
  while (a->last) {
    MemoryBlock *b = a->last;
    a->last = b->before;
    free(b);
  }
}

bool
texts_same(Text a, Text b)
{
  return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

bool
text_is(Text t, const char *s)
{
  return texts_same(t, (Text){s, strlen(s)});
}

static int
map_file(Mapping *m, int fd, const char *path, Fail *fail)
{
  struct stat st;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode))
    return fail_with(fail, "%s: not a file", path);
  if (!st.st_size)
    return fail_with(fail, "%s: an empty file", path);
  void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED)
    return fail_with(fail, "%s: %s", path, strerror(errno));
  *m = (Mapping){p, (size_t)st.st_size};
  return 0;
}

int
mapping_open(Mapping *m, const char *path, Fail *fail)
{
  *m = (Mapping){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail_with(fail, "%s: %s", path, strerror(errno));
  int status = map_file(m, fd, path, fail);
  close(fd);
  return status;
}

void
mapping_close(Mapping *m)
{
  if (m->bytes)
    munmap((void *)(uintptr_t)m->bytes, m->size);
  *m = (Mapping){0};
}
