/* base.h - what every phase stands on: arenas, strings, spans, vectors, the compilation context.
 *
 * A Ctx is one compilation and owns everything made in it. There is no other state: two Ctx may be used from
 * two threads at once. Memory comes from two arenas, `perm` (the compilation) and `scratch` (reset after every
 * pass); nothing is freed one by one. When the host is out of memory, or the compiler finds a fault of its own,
 * control returns to the setjmp at the API boundary (ctx_panic), so callers need not check allocations.
 */
#ifndef TILEC_BASE_H
#define TILEC_BASE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#else
#define PRINTF_LIKE(f, a)
#define NORETURN
#endif

/* ---- spans: byte offsets into one global source space; lines exist only when printing (source.c) ---- */
/* [lo, hi); {0,0} is "nowhere". site: the call through which the text got here by inlining (site.c); 0: through none. */
typedef struct Span { u32 lo, hi, site; } Span;

/* ---- arena.c ---- */
typedef struct Arena Arena;
typedef struct Ctx Ctx;
Arena *arena_new(Ctx *c);
void arena_free(Arena *a);
void arena_reset(Arena *a);                                  /* keeps the first block */
void *arena_alloc(Arena *a, size_t bytes, size_t align);     /* zeroed; never NULL */
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_strndup(Arena *a, const char *s, size_t n);
size_t arena_used(const Arena *a);
#define NEW(a, T) ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define NEW_ARRAY(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n), _Alignof(T)))

/* A growable array in an arena: VEC(int) v = {0}; vec_push(arena, &v, 3); v.data[v.len - 1] */
#define VEC(T) struct { T *data; u32 len, cap; }
#define vec_push(a, v, x) \
  (vec_grow((a), (void **)&(v)->data, &(v)->cap, (v)->len, sizeof *(v)->data), (void)((v)->data[(v)->len++] = (x)))
void vec_grow(Arena *a, void **data, u32 *cap, u32 len, size_t elem);

/* A growable text: Buf b = {arena}; buf_printf(&b, ...); b.data is always NUL-terminated after a write. */
typedef struct Buf { Arena *arena; char *data; size_t len, cap; } Buf;
void buf_putc(Buf *b, char ch);
void buf_puts(Buf *b, const char *s);
void buf_write(Buf *b, const char *s, size_t n);
void buf_printf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *buf_str(Buf *b);                                 /* "" when empty */

/* ---- intern.c: equal texts get equal pointers; NUL-terminated ---- */
const char *intern(Ctx *c, const char *s);
const char *intern_n(Ctx *c, const char *s, size_t n);

/* ---- source.c: files of the global source space ---- */
/* What a text is. Whoever adds it says so; its name is for messages and means nothing. */
typedef enum SourceKind {
  SOURCE_PROGRAM,    /* the caller's text, or a file that it imports */
  SOURCE_LIBRARY,    /* of the library, which is part of the build */
  SOURCE_DEFINE,     /* the value of a define, as text */
  SOURCE_FOREIGN     /* not here: known by the name that locations in .tir give */
} SourceKind;
typedef struct SourceText { SourceKind kind; const char *name, *text; u32 len; } SourceText;
typedef struct SourceLoc { const char *file; u32 line, col; const char *line_text; u32 line_len; u32 byte; SourceKind kind; } SourceLoc;
/* Copies text (NUL added). Returns the offset of its first byte; never 0. */
u32 source_add(Ctx *c, SourceKind kind, const char *name, const char *text, size_t len);
/* File number i, from 0 in the order they were added; false if there are not as many. */
bool source_file(Ctx *c, u32 i, SourceText *out);
/* Is the file starting at base text that can be a program? Reports a byte order mark or a NUL byte. */
bool source_check(Ctx *c, u32 base);
const char *source_text(Ctx *c, u32 base);                   /* text of the file starting at base */
u32 source_length(Ctx *c, u32 base);                         /* bytes from base to the end of its file */
/* line, col (bytes) are 1-based; byte is the offset in the file; file NULL for nowhere, line_text NULL for foreign places. */
SourceLoc source_locate(Ctx *c, u32 offset);
/* A span for a line:col of a file known only by name (locations read back from .tir); equal places have equal spans. */
Span source_foreign(Ctx *c, const char *file, u32 line, u32 col);

/* ---- site.c: calls that were inlined. A place in an inlined function is a chain: its span, the call of its site, the call of that
 * call's site, and so on ---- */
typedef struct Site { Span call; const char *function; } Site;   /* call.site: the call through which the caller got here */
/* The number of the site; equal sites have equal numbers. A call's own site has a smaller number than the site made of it. */
u32 site_add(Ctx *c, Span call, const char *function);
Site site_get(Ctx *c, u32 site);                             /* of a number that site_add gave */
Span site_in_program(Ctx *c, Span at);                       /* the innermost of at's chain that is not in the library; if none is, at */

/* ---- diag.c: collected, sorted by span, capped, rendered as text or JSON ---- */
typedef enum DiagId {
#define DIAG(id, code, severity, fmt, doc) id,
#include "diags.def"
#undef DIAG
  DIAG_COUNT
} DiagId;
typedef struct Diag Diag;
/* Report; fmt comes from diags.def, the arguments must match it. Returns the diagnostic so that notes can follow. */
Diag *diag(Ctx *c, Span at, DiagId id, ...);
/* Words beside another place, or below if it is the diagnostic's own or nowhere; what to write instead; a call through which
 * the place was reached (innermost first). */
void diag_note(Ctx *c, Diag *d, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void diag_hint(Ctx *c, Diag *d, const char *fmt, ...) PRINTF_LIKE(3, 4);
void diag_call(Ctx *c, Diag *d, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
Span diag_place(const Diag *d);
/* It is reported at another place; words stand beside the old one. */
void diag_move(Ctx *c, Diag *d, Span at, const char *words);
u32 diag_errors(const Ctx *c);
u32 diag_warnings(const Ctx *c);
bool diag_reported(const Ctx *c, DiagId id);
void diag_render(Ctx *c, Buf *out, bool json, bool color);
/* "did you mean": the closest of n names to s, NULL if none is close. */
const char *diag_suggest(const char *s, const char *const *names, size_t n);

/* ---- ctx.c ---- */
typedef struct Target Target;
/* Which tiles are copied as boxes of tensors, where the target can: those that the program calls so, besides those of loads that are
 * such boxes, or none (copies of buffers, which a program writes itself, are as they are). */
typedef enum Boxes { BOXES_FOUND, BOXES_STATED, BOXES_NONE } Boxes;
struct Ctx {
  Arena *perm, *scratch;
  const Target *target;
  struct InternTable *interned;
  struct SourceTable *sources;
  struct SiteTable *sites;
  struct DiagTable *diags;
  struct TypeTable *types;
  struct LayoutTable *layouts;
  jmp_buf panic;                 /* set by the API boundary before anything else runs */
  bool panic_set;
  char panic_message[512];
  u32 site;                      /* the inlined call that ops are being made in, for those whose span names none; 0: none */
  bool no_memory;                /* the panic was that the host is out of memory */
  bool remarks;                  /* passes say why they did not do something */
  Boxes boxes;
  const char *pass;              /* name of the running pass, for fault messages */
  Buf *notes;                    /* what the running pass wants to tell readers of its dump, as comment lines; NULL: no dump */
};
Ctx *ctx_new(void);              /* NULL if the host is out of memory */
void ctx_free(Ctx *c);
/* The host is out of memory: leaves as ctx_panic does. */
NORETURN void ctx_no_memory(Ctx *c);
/* A fault of the compiler itself: never the user's error. */
NORETURN void ctx_panic(Ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline u32 next_pow2(u32 x) { u32 p = 1; while (p < x) p <<= 1; return p; }
static inline u32 log2_u32(u32 x) { u32 n = 0; while (x > 1) { x >>= 1; n++; } return n; }   /* floor */
static inline bool is_pow2(u64 x) { return x && !(x & (x - 1)); }
static inline u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
static inline u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
static inline u64 max_u64(u64 a, u64 b) { return a > b ? a : b; }
static inline u32 align_up(u32 n, u32 to) { return (n + to - 1) & ~(to - 1); }   /* to a multiple of a power of two */
#endif
