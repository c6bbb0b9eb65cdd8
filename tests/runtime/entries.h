/* entries.h - what tests of the cache share: keys, whether an entry is found, files. */
#ifndef ENTRIES_H
#define ENTRIES_H
#include "cache.h"
#include "check.h"

static inline char *
path_in(const char *dir, const char *name)
{
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static inline void
remove_all(const char *dir)
{
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  CHECK(!system(command));
}

static inline CacheKey
key_of(uint64_t n)
{
  CacheHash *h = cache_hash_new();
  cache_hash_add(h, &n, sizeof n);
  return cache_hash_end(h);
}

static inline int
holds(Cache *c, CacheKey k, const char *text)
{
  size_t len = 0;
  char *got = cache_get(c, k, &len);
  int same = got && len == strlen(text) && !memcmp(got, text, len);
  free(got);
  return same;
}

static inline int
empty(Cache *c, CacheKey k)
{
  size_t len;
  char *got = cache_get(c, k, &len);
  free(got);
  return !got;
}

static inline size_t
slurp(const char *path, char *to, size_t room)
{
  FILE *f = fopen(path, "rb");
  CHECK(f);
  size_t n = fread(to, 1, room, f);
  fclose(f);
  return n;
}

static inline void
spit(const char *path, const char *bytes, size_t n)
{
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
}

#endif
