/* cache.h - a directory of results that are dear to compute, shared by processes. Internal to libtilec.
 *
 * An entry is one file, named after a 128-bit key that its user makes from everything the result depends on. Entries are
 * written beside their place and renamed into it, so that readers see a whole one or none; a reader believes an entry only if
 * its length, key and checksum fit, and otherwise removes it. What others could have written is not believed: a directory or
 * entry of another user, a directory that everybody may write to, an entry that anybody else may write to, a symbolic link in
 * the place of either. Nothing here reports errors: without a directory, or with one that cannot be used, nothing is found and
 * nothing kept; cache_trouble says why. All functions may be called from any thread. */
#ifndef TILEC_CACHE_H
#define TILEC_CACHE_H
#include <stddef.h>
#include <stdint.h>

typedef struct Cache Cache;
typedef struct CacheKey { uint64_t word[2]; } CacheKey;

/* dir NULL: $TILEC_CACHE_DIR, else $XDG_CACHE_HOME/tilec, else ~/.cache/tilec; made when something is first kept. The entries
 * take at most limit bytes (0: $TILEC_CACHE_SIZE, else 1 GiB), one of them at most 256 MiB. NULL if dir is "", $TILEC_CACHE is 0
 * or there is no such place. */
Cache *cache_open(const char *dir, uint64_t limit);
void cache_close(Cache *c);
const char *cache_directory(const Cache *c);
/* What last kept the cache from being used, as a sentence cut to size; "" if nothing has. Returns its length. c may be NULL. */
size_t cache_trouble(Cache *c, char *out, size_t size);

/* The entry's bytes, malloc'ed, or NULL. */
void *cache_get(Cache *c, CacheKey key, size_t *len);
/* Keep a copy; the least recently used entries go when there are too many. */
void cache_put(Cache *c, CacheKey key, const void *bytes, size_t len);

/* Keys: pieces in order, each with its length, so that no two lists of pieces run together. */
typedef struct CacheHash CacheHash;
CacheHash *cache_hash_new(void);                 /* NULL: out of memory */
void cache_hash_add(CacheHash *h, const void *bytes, size_t len);
void cache_hash_text(CacheHash *h, const char *text);
CacheKey cache_hash_end(CacheHash *h);           /* frees h */
/* Which build of the compiler this is: the linker's build id of the object that holds this function, added to h. 0 if the
 * object has none: then nothing may be kept, as another build could find it. */
int cache_hash_build(CacheHash *h);
#endif
