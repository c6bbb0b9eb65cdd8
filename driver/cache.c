/* cache.c - the entries of a cache directory.
 *
 * File: magic and format version, key, length, checksum of the bytes (XXH3-128), the bytes. Everything is in the machine's
 * byte order: a directory carried elsewhere is not believed, because the magic differs.
 *
 * An entry is code that will run, so what others could have put there is not believed. The directory is opened once for each
 * operation, without following a link in its own place, and what was opened is asked: it must belong to this user and not be
 * writable for everybody. Entries are opened below that descriptor, without following links and without waiting (a pipe in an
 * entry's place), and must be ordinary files of this user that nobody else may write to. Parents need no check: whoever can put
 * another directory in the place of ours still needs one that is ours. No more is read than the directory may hold.
 *
 * Which entries were used last is told by their modification time, renewed at most once an hour. A process looks whether the
 * directory is too full when it first keeps something, and again whenever it has kept a sixteenth of the limit: then the
 * oldest go until nine tenths are left. Two processes may both remove; that an entry is gone already is no error. */
#include "cache.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
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
static const uint64_t DEFAULT_LIMIT = UINT64_C(1) << 30, ENTRY_MAX = UINT64_C(256) << 20;

typedef struct Header { uint64_t magic; CacheKey key; uint64_t len, sum[2]; } Header;

struct Cache {
  char *dir;
  uint64_t limit;
  atomic_uint_fast64_t unchecked;   /* bytes kept since the directory was last measured; starts full */
  atomic_uint serial;               /* of temporary files */
  pthread_mutex_t lock;             /* of trouble */
  char trouble[320];
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

/* A number of bytes, or of K, M or G; 0 if the text is none. */
static uint64_t
parse_size(const char *text)
{
  static const char units[] = "KMG";
  char *end = NULL;
  errno = 0;
  unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  const char *unit = end && *end ? strchr(units, *end) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
  if (errno || !end || end[unit != NULL] || n > UINT64_MAX >> shift)
    return 0;
  return n << shift;
}

static uint64_t
default_limit(void)
{
  const char *text = getenv("TILEC_CACHE_SIZE");
  uint64_t n = text ? parse_size(text) : 0;
  return n ? n : DEFAULT_LIMIT;
}

/* "a/b/./" -> "a/b", so that a link in the last place is seen as one. */
static void
trim_path(char *path)
{
  size_t n = strlen(path);
  while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
    path[--n] = 0;
}

Cache *
cache_open(const char *dir, uint64_t limit)
{
  const char *off = getenv("TILEC_CACHE");
  if (dir ? !*dir : off && !strcmp(off, "0"))
    return NULL;
  Cache *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->dir = dir ? join_path(dir, "") : default_directory();
  c->limit = limit ? limit : default_limit();
  atomic_init(&c->unchecked, UINT64_MAX / 2);
  pthread_mutex_init(&c->lock, NULL);
  if (c->dir) {
    trim_path(c->dir);
    return c;
  }
  cache_close(c);
  return NULL;
}

void
cache_close(Cache *c)
{
  if (!c)
    return;
  pthread_mutex_destroy(&c->lock);
  free(c->dir);
  free(c);
}

const char *
cache_directory(const Cache *c)
{
  return c->dir;
}

static void __attribute__((format(printf, 2, 3)))
set_trouble(Cache *c, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  pthread_mutex_lock(&c->lock);
  vsnprintf(c->trouble, sizeof c->trouble, format, ap);
  pthread_mutex_unlock(&c->lock);
  va_end(ap);
}

size_t
cache_trouble(Cache *c, char *out, size_t size)
{
  size_t n = 0;
  if (size)
    out[0] = 0;
  if (!c)
    return 0;
  pthread_mutex_lock(&c->lock);
  n = strlen(c->trouble);
  if (size)
    snprintf(out, size, "%s", c->trouble);
  pthread_mutex_unlock(&c->lock);
  return n;
}

/* Every missing part of the path; only its owner may look inside. */
static void
make_directory(char *path)
{
  for (char *s = path + 1; *s; s++)
    if (*s == '/') {
      *s = 0;
      mkdir(path, 0700);
      *s = '/';
    }
  mkdir(path, 0700);
}

/* Why what is open here is not ours alone; NULL if it is. others: the mode bits that nobody else may have. */
static const char *
distrust(const struct stat *st, mode_t others)
{
  if (st->st_uid != geteuid())
    return "it belongs to another user";
  return st->st_mode & others ? "others may write to it" : NULL;
}

/* The directory, made if wanted; -1 with the reason kept, but for one that is not there. */
static int
open_directory(Cache *c, int make)
{
  struct stat st;
  int fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT && make) {
    char *path = join_path(c->dir, "");
    if (path)
      make_directory(path);
    free(path);
    fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  int error = errno;
  const char *why = fd < 0 ? strerror(error) : fstat(fd, &st) ? strerror(errno) : distrust(&st, S_IWOTH);
  if (fd < 0 && !lstat(c->dir, &st) && S_ISLNK(st.st_mode))
    why = "it is a symbolic link";
  if (why && (fd >= 0 || make || error != ENOENT))
    set_trouble(c, "the cache directory %.200s is not used: %s", c->dir, why);
  if (!why)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

static void
entry_name(CacheKey key, char name[NAME + 1])
{
  snprintf(name, NAME + 1, "%016llx%016llx", (unsigned long long)key.word[1], (unsigned long long)key.word[0]);
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

static uint64_t
entry_most(const Cache *c)
{
  return c->limit < ENTRY_MAX ? c->limit : ENTRY_MAX;
}

/* What the open entry holds; NULL if it is not to be believed. */
static void *
take_entry(Cache *c, int dir, int fd, const char *name, CacheKey key, size_t *len)
{
  struct stat st;
  const char *why = fstat(fd, &st) ? strerror(errno) : !S_ISREG(st.st_mode) ? "it is no ordinary file" : distrust(&st, S_IWGRP | S_IWOTH);
  if (why) {
    set_trouble(c, "the entry %s in %.200s is not used: %s", name, c->dir, why);
    return NULL;
  }
  uint64_t size = (uint64_t)st.st_size;
  void *bytes = size >= sizeof(Header) && size <= entry_most(c) ? read_entry(fd, &st, key, len) : NULL;
  if (!bytes)
    unlinkat(dir, name, 0);
  else if (time(NULL) - st.st_mtime > HOUR)
    futimens(fd, NULL);
  return bytes;
}

void *
cache_get(Cache *c, CacheKey key, size_t *len)
{
  char name[NAME + 1];
  int dir = c ? open_directory(c, 0) : -1;
  if (dir < 0)
    return NULL;
  entry_name(key, name);
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  void *bytes = fd >= 0 ? take_entry(c, dir, fd, name, key, len) : NULL;
  if (fd >= 0)
    close(fd);
  close(dir);
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
make_room(const Cache *c, int dir)
{
  Listing l = {0};
  int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = again >= 0 ? fdopendir(again) : NULL;
  if (!d) {
    if (again >= 0)
      close(again);
    return;
  }
  list(d, &l);
  if (l.bytes > c->limit) {
    qsort(l.all, l.n, sizeof *l.all, older_first);
    for (size_t i = 0; i < l.n && l.bytes > c->limit / 10 * 9; i++) {
      unlinkat(dir, l.all[i].name, 0);
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

/* A write beyond the limit of a file's size (ulimit -f) ends the process by SIGXFSZ, which the kernel sends to the writing thread.
 * So the signal is blocked in this thread while it writes, the write fails with EFBIG, and the signal that then waits is taken
 * away; one that waited before stays. */
typedef struct SizeSignal { sigset_t only, before; int held; } SizeSignal;

static void
hold_size_signal(SizeSignal *s)
{
  sigset_t waiting;
  sigemptyset(&s->only);
  sigaddset(&s->only, SIGXFSZ);
  s->held = !sigpending(&waiting) && sigismember(&waiting, SIGXFSZ) != 1 && !pthread_sigmask(SIG_BLOCK, &s->only, &s->before);
}

static void
release_size_signal(const SizeSignal *s)
{
  const struct timespec now = {0, 0};
  if (!s->held)
    return;
  while (sigtimedwait(&s->only, NULL, &now) < 0 && errno == EINTR)
    ;
  pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

/* 0, or why it was not written. */
static int
write_entry(int dir, const char *name, CacheKey key, const void *bytes, size_t len)
{
  XXH128_hash_t x = XXH3_128bits(bytes, len);
  Header h = {MAGIC, key, len, {x.low64, x.high64}};
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return errno;
  SizeSignal s;
  hold_size_signal(&s);
  int error = write_all(fd, &h, sizeof h) || write_all(fd, bytes, len) ? errno : 0;
  release_size_signal(&s);
  if (close(fd) && !error)
    error = errno;
  return error;
}

void
cache_put(Cache *c, CacheKey key, const void *bytes, size_t len)
{
  char name[NAME + 1], temporary[64];
  int dir = c && len <= entry_most(c) && sizeof(Header) + len <= entry_most(c) ? open_directory(c, 1) : -1;
  if (dir < 0)
    return;
  entry_name(key, name);
  snprintf(temporary, sizeof temporary, ".new-%ld-%u-%lx", (long)getpid(), atomic_fetch_add(&c->serial, 1), (unsigned long)(uintptr_t)c);
  int error = write_entry(dir, temporary, key, bytes, len);
  if (!error && renameat(dir, temporary, dir, name))
    error = errno;
  if (error) {
    unlinkat(dir, temporary, 0);
    set_trouble(c, "nothing was kept in the cache directory %.200s: %s", c->dir, strerror(error));
  }
  if (atomic_fetch_add(&c->unchecked, len) + len > c->limit / 16) {
    atomic_store(&c->unchecked, 0);
    make_room(c, dir);
  }
  close(dir);
}
