/* arena.c - arenas, growable arrays and texts. */
#include "base.h"
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_FIRST = 16 * 1024, BLOCK_MOST = 1024 * 1024 };

typedef struct ArenaBlock ArenaBlock;
struct ArenaBlock {
  ArenaBlock *next;
  size_t cap, len;
  _Alignas(max_align_t) unsigned char bytes[];
};
struct Arena {
  Ctx *ctx;
  ArenaBlock *first, *last;
  size_t used;
};

static ArenaBlock *
block_alloc(Ctx *c, size_t cap)
{
  ArenaBlock *b = cap > SIZE_MAX - sizeof *b ? NULL : malloc(sizeof *b + cap);
  if (!b)
    ctx_no_memory(c);
  b->next = NULL;
  b->cap = cap;
  b->len = 0;
  return b;
}

/* A new empty arena; panics on c when the host is out of memory. */
Arena *
arena_new(Ctx *c)
{
  Arena *a = malloc(sizeof *a);
  if (!a)
    ctx_no_memory(c);
  *a = (Arena){c, NULL, NULL, 0};
  return a;
}

static void
blocks_free(ArenaBlock *b)
{
  while (b) {
    ArenaBlock *next = b->next;
    free(b);
    b = next;
  }
}

/* Frees everything; NULL is allowed. */
void
arena_free(Arena *a)
{
  if (!a)
    return;
  blocks_free(a->first);
  free(a);
}

/* Forgets all contents, keeps the first block for reuse. */
void
arena_reset(Arena *a)
{
  if (!a->first)
    return;
  blocks_free(a->first->next);
  a->first->next = NULL;
  a->first->len = 0;
  a->last = a->first;
  a->used = 0;
}

static size_t
padding(const ArenaBlock *b, size_t align)
{
  return (size_t)(-(uintptr_t)(b->bytes + b->len) & (align - 1));
}

static void
block_append(Arena *a, size_t bytes)
{
  size_t cap = a->last ? a->last->cap * 2 : BLOCK_FIRST;
  if (cap > BLOCK_MOST)
    cap = BLOCK_MOST;
  ArenaBlock *b = block_alloc(a->ctx, bytes > cap ? bytes : cap);
  if (a->last)
    a->last->next = b;
  else
    a->first = b;
  a->last = b;
}

/* Zeroed memory, never NULL; align is a power of two. */
void *
arena_alloc(Arena *a, size_t bytes, size_t align)
{
  if (bytes > SIZE_MAX / 2)
    ctx_panic(a->ctx, "allocation of %zu bytes", bytes);
  size_t pad = a->last ? padding(a->last, align) : 0;
  if (!a->last || a->last->cap - a->last->len < bytes + pad) {
    block_append(a, bytes + align);
    pad = padding(a->last, align);
  }
  unsigned char *p = a->last->bytes + a->last->len + pad;
  a->last->len += bytes + pad;
  a->used += bytes + pad;
  memset(p, 0, bytes);
  return p;
}

/* Bytes handed out since the arena was made or reset. */
size_t
arena_used(const Arena *a)
{
  return a->used;
}

/* A copy of n bytes with a NUL after them. */
char *
arena_strndup(Arena *a, const char *s, size_t n)
{
  char *p = arena_alloc(a, n + 1, 1);
  if (n)
    memcpy(p, s, n);
  return p;
}

/* printf into the arena. */
char *
arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *p = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1, 1);
  if (n >= 0)
    vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

/* printf into the arena. */
char *
arena_printf(Arena *a, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  char *p = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return p;
}

/* Makes room for one more element behind len; the old storage stays in the arena. */
void
vec_grow(Arena *a, void **data, u32 *cap, u32 len, size_t elem)
{
  if (len < *cap)
    return;
  if (*cap > UINT32_MAX / 2)
    ctx_panic(a->ctx, "array too long");
  u32 more = *cap ? *cap * 2 : 8;
  void *p = arena_alloc(a, more * elem, _Alignof(max_align_t));
  if (len)
    memcpy(p, *data, len * elem);
  *data = p;
  *cap = more;
}

static void
buf_reserve(Buf *b, size_t n)
{
  if (b->cap - b->len > n)
    return;
  size_t cap = b->cap ? b->cap * 2 : 64;
  while (cap - b->len <= n)
    cap *= 2;
  char *p = arena_alloc(b->arena, cap, 1);
  if (b->len)
    memcpy(p, b->data, b->len);
  b->data = p;
  b->cap = cap;
}

/* Appends n bytes. */
void
buf_write(Buf *b, const char *s, size_t n)
{
  buf_reserve(b, n);
  if (n)
    memcpy(b->data + b->len, s, n);
  b->len += n;
  b->data[b->len] = 0;
}

/* Appends one character. */
void
buf_putc(Buf *b, char ch)
{
  buf_write(b, &ch, 1);
}

/* Appends a NUL-terminated text. */
void
buf_puts(Buf *b, const char *s)
{
  buf_write(b, s, strlen(s));
}

/* Appends formatted text. */
void
buf_printf(Buf *b, const char *fmt, ...)
{
  char small[128];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  va_end(ap);
  if (n < 0)
    return;
  if ((size_t)n < sizeof small) {
    buf_write(b, small, (size_t)n);
    return;
  }
  buf_reserve(b, (size_t)n);
  va_start(ap, fmt);
  vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
  va_end(ap);
  b->len += (size_t)n;
}

/* The text so far, "" when nothing was written. */
const char *
buf_str(Buf *b)
{
  return b->data ? b->data : "";
}
