/* cache.c - the entries of a cache directory.
 *
 * File: magic and format version, key, length, checksum of the bytes (XXH3-128), the bytes. Everything is in the machine's
 * byte order: a directory carried elsewhere is not believed, because the magic differs.
 *
 * Which entries were used last is told by their modification time, renewed at most once an hour. A process looks whether the
 * directory is too full when it first keeps something, and again whenever it has kept a sixteenth of the limit: then the
 * oldest go until nine tenths are left. Two processes may both remove; that an entry is gone already is no error. */
#include "cache.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC UINT64_C(0x31304b4c49543a01)   /* format 1 */
enum { NAME = 32, HOUR = 3600, STALE = 2 * HOUR };
static const uint64_t DEFAULT_LIMIT = UINT64_C(1) << 30;

typedef struct Header { uint64_t magic; CacheKey key; uint64_t len, sum[2]; } Header;

struct Cache {
  char *dir;
  uint64_t limit;
  atomic_uint_fast64_t unchecked;   /* bytes kept since the directory was last measured; starts full */
  atomic_uint serial;               /* of temporary files */
};

/* ---- keys ---- */

struct CacheHash { XXH3_state_t state; };

CacheHash *
cache_hash_new(void)
{
  CacheHash *h = aligned_alloc(64, (sizeof *h + 63) / 64 * 64);
  if (h)
    XXH3_128bits_reset(&h->state);
  return h;
}

void
cache_hash_add(CacheHash *h, const void *bytes, size_t len)
{
  uint64_t n = len;
  XXH3_128bits_update(&h->state, &n, sizeof n);
  XXH3_128bits_update(&h->state, bytes, len);
}

void
cache_hash_text(CacheHash *h, const char *text)
{
  cache_hash_add(h, text ? text : "", text ? strlen(text) : 0);
}

CacheKey
cache_hash_end(CacheHash *h)
{
  XXH128_hash_t x = XXH3_128bits_digest(&h->state);
  free(h);
  return (CacheKey){{x.low64, x.high64}};
}

/* The note NT_GNU_BUILD_ID among the notes of len bytes at p. */
static int
add_build_note(CacheHash *h, const char *p, size_t len)
{
  const char *end = p + len;
  while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) n;
    memcpy(&n, p, sizeof n);
    const char *name = p + sizeof n, *desc = name + ((n.n_namesz + 3) & ~3u);
    if (desc > end || n.n_descsz > (size_t)(end - desc))
      return 0;
    if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(name, "GNU", 4)) {
      cache_hash_add(h, desc, n.n_descsz);
      return 1;
    }
    p = desc + ((n.n_descsz + 3) & ~3u);
  }
  return 0;
}

typedef struct Seek { CacheHash *hash; uintptr_t inside; int found; } Seek;

static int
object_visit(struct dl_phdr_info *info, size_t size, void *user)
{
  Seek *s = user;
  int mine = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    mine |= info->dlpi_phdr[i].p_type == PT_LOAD && s->inside >= from && s->inside - from < info->dlpi_phdr[i].p_memsz;
  }
  for (int i = 0; mine && !s->found && i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_NOTE)
      s->found = add_build_note(s->hash, (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                info->dlpi_phdr[i].p_memsz);
  return mine;
}

int
cache_hash_build(CacheHash *h)
{
  Seek s = {h, (uintptr_t)&cache_hash_build, 0};
  dl_iterate_phdr(object_visit, &s);
  return s.found;
}

/* ---- the directory ---- */

static char *
join_path(const char *a, const char *b)
{
  size_t n = strlen(a) + strlen(b) + 2;
  char *s = malloc(n);
  if (s)
    snprintf(s, n, "%s%s%s", a, *b ? "/" : "", b);
  return s;
}

static char *
default_directory(void)
{
  const char *dir = getenv("TILEC_CACHE_DIR");
  if (dir && *dir)
    return join_path(dir, "");
  dir = getenv("XDG_CACHE_HOME");
  if (dir && *dir == '/')
    return join_path(dir, "tilec");
  dir = getenv("HOME");
  return dir && *dir ? join_path(dir, ".cache/tilec") : NULL;
}

static uint64_t
default_limit(void)
{
  const char *text = getenv("TILEC_CACHE_SIZE");
  char *end = NULL;
  unsigned long long n = text ? strtoull(text, &end, 10) : 0;
  static const char units[] = "KMG";
  const char *unit = end && *end ? strchr(units, *end) : NULL;
  if (unit && !end[1])
    n <<= 10 * (unit - units + 1);
  return n && (unit || !*end) ? n : DEFAULT_LIMIT;
}

Cache *
cache_open(const char *dir, uint64_t limit)
{
  const char *off = getenv("TILEC_CACHE");
  if (!dir && off && !strcmp(off, "0"))
    return NULL;
  Cache *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->dir = dir ? join_path(dir, "") : default_directory();
  c->limit = limit ? limit : default_limit();
  atomic_init(&c->unchecked, UINT64_MAX / 2);
  if (c->dir)
    return c;
  free(c);
  return NULL;
}

void
cache_close(Cache *c)
{
  if (!c)
    return;
  free(c->dir);
  free(c);
}

const char *
cache_directory(const Cache *c)
{
  return c->dir;
}

/* Every missing part of the path; only its owner may look inside. */
static int
make_directory(const char *path)
{
  char *copy = join_path(path, "");
  if (!copy)
    return -1;
  for (char *s = copy + 1; *s; s++)
    if (*s == '/') {
      *s = 0;
      mkdir(copy, 0700);
      *s = '/';
    }
  int status = mkdir(copy, 0700) && errno != EEXIST ? -1 : 0;
  free(copy);
  return status;
}

static char *
entry_path(const Cache *c, CacheKey key)
{
  char name[NAME + 1];
  snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)key.word[1], (unsigned long long)key.word[0]);
  return join_path(c->dir, name);
}

static int
is_entry(const char *name)
{
  return strlen(name) == NAME && strspn(name, "0123456789abcdef") == NAME;
}

/* ---- reading ---- */

static int
read_all(int fd, void *to, size_t len)
{
  char *at = to;
  while (len) {
    ssize_t n = read(fd, at, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    at += n;
    len -= (size_t)n;
  }
  return 0;
}

static int
sum_fits(const Header *h, const void *bytes)
{
  XXH128_hash_t x = XXH3_128bits(bytes, h->len);
  return x.low64 == h->sum[0] && x.high64 == h->sum[1];
}

/* The bytes of an open entry; NULL if it is not what it should be. */
static void *
read_entry(int fd, const struct stat *st, CacheKey key, size_t *len)
{
  Header h;
  if (read_all(fd, &h, sizeof h) || h.magic != MAGIC || memcmp(&h.key, &key, sizeof key) != 0 ||
      h.len != (uint64_t)st->st_size - sizeof h)
    return NULL;
  char *bytes = malloc(h.len + 1);
  if (!bytes)
    return NULL;
  if (read_all(fd, bytes, h.len) || !sum_fits(&h, bytes)) {
    free(bytes);
    return NULL;
  }
  bytes[h.len] = 0;
  *len = h.len;
  return bytes;
}

void *
cache_get(Cache *c, CacheKey key, size_t *len)
{
  char *path = c ? entry_path(c, key) : NULL;
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  struct stat st;
  void *bytes = NULL;
  if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
    bytes = (size_t)st.st_size >= sizeof(Header) ? read_entry(fd, &st, key, len) : NULL;
    if (!bytes)
      unlink(path);
    else if (time(NULL) - st.st_mtime > HOUR)
      futimens(fd, NULL);
  }
  if (fd >= 0)
    close(fd);
  free(path);
  return bytes;
}

/* ---- making room ---- */

typedef struct Seen { char name[NAME + 1]; uint64_t bytes; struct timespec used; } Seen;
typedef struct Listing { Seen *all; size_t n, room; uint64_t bytes; } Listing;

static int
list_add(Listing *l, const char *name, const struct stat *st)
{
  if (l->n == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    Seen *grown = realloc(l->all, room * sizeof *grown);
    if (!grown)
      return -1;
    l->all = grown;
    l->room = room;
  }
  Seen *s = &l->all[l->n++];
  memcpy(s->name, name, NAME + 1);
  s->bytes = (uint64_t)st->st_size;
  s->used = st->st_mtim;
  l->bytes += s->bytes;
  return 0;
}

/* All entries; what writers that died left behind goes. */
static void
list(DIR *d, Listing *l)
{
  struct dirent *e;
  struct stat st;
  while ((e = readdir(d)) != NULL) {
    int temporary = !strncmp(e->d_name, ".new-", 5);
    if ((!temporary && !is_entry(e->d_name)) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
      continue;
    if (temporary && time(NULL) - st.st_mtime > STALE)
      unlinkat(dirfd(d), e->d_name, 0);
    else if (!temporary && list_add(l, e->d_name, &st))
      return;
  }
}

static int
older_first(const void *a, const void *b)
{
  const struct timespec *x = &((const Seen *)a)->used, *y = &((const Seen *)b)->used;
  if (x->tv_sec != y->tv_sec)
    return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void
make_room(Cache *c)
{
  Listing l = {0};
  DIR *d = opendir(c->dir);
  if (!d)
    return;
  list(d, &l);
  if (l.bytes > c->limit) {
    qsort(l.all, l.n, sizeof *l.all, older_first);
    for (size_t i = 0; i < l.n && l.bytes > c->limit / 10 * 9; i++) {
      unlinkat(dirfd(d), l.all[i].name, 0);
      l.bytes -= l.all[i].bytes;
    }
  }
  free(l.all);
  closedir(d);
}

/* ---- writing ---- */

static int
write_all(int fd, const void *from, size_t len)
{
  const char *at = from;
  while (len) {
    ssize_t n = write(fd, at, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    at += n;
    len -= (size_t)n;
  }
  return 0;
}

static int
write_entry(const char *path, CacheKey key, const void *bytes, size_t len)
{
  XXH128_hash_t x = XXH3_128bits(bytes, len);
  Header h = {MAGIC, key, len, {x.low64, x.high64}};
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return -1;
  int status = write_all(fd, &h, sizeof h) || write_all(fd, bytes, len) ? -1 : 0;
  return close(fd) ? -1 : status;
}

void
cache_put(Cache *c, CacheKey key, const void *bytes, size_t len)
{
  if (!c || sizeof(Header) + len > c->limit)
    return;
  char name[64];
  snprintf(name, sizeof name, ".new-%ld-%u-%lx", (long)getpid(), atomic_fetch_add(&c->serial, 1), (unsigned long)(uintptr_t)c);
  char *temporary = join_path(c->dir, name), *path = entry_path(c, key);
  if (temporary && path && !make_directory(c->dir)) {
    if (write_entry(temporary, key, bytes, len) || rename(temporary, path))
      unlink(temporary);
    if (atomic_fetch_add(&c->unchecked, len) + len > c->limit / 16) {
      atomic_store(&c->unchecked, 0);
      make_room(c);
    }
  }
  free(temporary);
  free(path);
}
