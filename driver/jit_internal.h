/* jit_internal.h - what the files of the JIT share. */
#ifndef TILEC_JIT_INTERNAL_H
#define TILEC_JIT_INTERNAL_H
#include "cache.h"
#include "jit.h"
#include <pthread.h>
#include <stdatomic.h>

enum { BUCKETS = 64 };

enum { DIVISORS = 4 };                           /* 2, 4, 8, 16 */

/* What of a launch's arguments its code may depend on: bit sets over them, and which are one address. */
typedef struct Pattern {
  uint64_t equal_1;
  uint64_t divisible[DIVISORS];                  /* by 2 << k, an integer in one of them at most; addresses in the last only */
  uint64_t null;                                 /* of those that the kernel asks about */
  int boxless;                                   /* copies of boxes do not take these arguments: none are to be chosen */
  const uint8_t *same;                           /* for each of TILERT_MAX_PARAMS the first of its address; NULL: all are different */
} Pattern;

enum { FORM_PAIRS = 12 };

/* What each launch reads comes first: between two of them the driver has used the caches for itself. */
typedef struct Form {
  struct Form *next;
  TilertKernel *kernel;
  Pattern pattern;
  const TilertManifest *apart;                   /* the kernel's, if it relies on pointers being different; else NULL */
  uint8_t npairs, pair[FORM_PAIRS][2];           /* of which arguments; more than FORM_PAIRS: these are not all */
  uint8_t arg[TILERT_MAX_PARAMS];                /* which argument each of the kernel's parameters is of */
  uint8_t same[TILERT_MAX_PARAMS];               /* what pattern.same points to, if it is not NULL */
  char *ptx;
  TilertModule *module;
  double compile_ms, load_ms;
  int from_cache;
} Form;

typedef enum SourceForm { FORM_TILE, FORM_TIR, FORM_PTX } SourceForm;

struct TilejitKernel {
  TilejitKernel *next;
  TilejitProgram *program;
  char name[TILERT_NAME_MAX];
  TilecDefine *defines;                          /* their text is ours */
  size_t ndefines;
  TilejitParam *params;
  size_t nparams;
  const TilejitParam *args[TILERT_MAX_PARAMS];   /* the params that launches pass */
  size_t nargs;
  uint64_t integers, pointers;                   /* which args are of these types; tensors are among the pointers, by their address */
  uint64_t unread;                               /* integers that nothing compiled depends on, which are not among these */
  uint64_t ones;                                 /* of which of them it matters that they are 1 */
  uint64_t nullable;                             /* of which pointers it matters that they are null */
  uint64_t sources[2];                           /* of the texts it was described from (TilecResult) */
  int shaped;                                    /* of another compiler: launches give the shape of its blocks */
  uint32_t block[3];                             /* the shape that it asks for; zeros: none */
  _Atomic(Form *) forms[BUCKETS];
  atomic_size_t nforms;
  pthread_mutex_t lock;                          /* held while compiling */
};

/* A remembered choice of tuning. */
typedef struct Choice { struct Choice *next; CacheKey key; char *config; } Choice;

struct TilejitProgram {
  TilertDevice *device;
  char *name, *text, *target, *description, *diagnostics;
  char **import_path;
  size_t len, nimport_path;
  SourceForm form;
  int specialise, line_info, tensors;
  Cache *cache;                                  /* NULL: none */
  TilejitKernel *kernels;
  Choice *choices;
  pthread_mutex_t lock;                          /* of kernels; held while describing one */
  pthread_mutex_t words;                         /* of diagnostics; taken last */
};

struct TilejitCall {
  TilejitKernel *kernel;
  const Form *form;
  TilertLaunch *launch;
};

/* ---- jit.c ---- */
int jit_fail(TilertError *err, int status, const char *message);
/* Of options that the caller gives, NULL goes, what is known, into *all, which has the defaults. */
int jit_take_options(void *all, size_t known, const void *o, const char *name, TilertError *err);
int jit_fail_about(TilertError *err, const TilejitKernel *k, const char *message, const char *name);
int jit_fail_named(TilertError *err, const char *message, const char *name);
int jit_no_memory(TilertError *err);
/* In a function with err: this must be given. The rest of a condition says when not ("args || !nargs"). */
#define NEED(pointer)                             \
  do {                                            \
    if (!(pointer))                               \
      return jit_null(err, __func__, #pointer);   \
  } while (0)
int jit_null(TilertError *err, const char *function, const char *pointer);
double jit_now_ms(void);
char *jit_copy_text(const char *text, size_t len);
TilecOptions jit_compile_options(const TilejitProgram *p);
/* The status of a compilation; keeps what it says for tilejit_program_diagnostics. r NULL: out of memory. */
int jit_check_result(TilejitProgram *p, const TilecResult *r, TilertError *err);
void jit_keep_diagnostics(TilejitProgram *p, const char *text);   /* "": what was said before stays */
void jit_forget_diagnostics(TilejitProgram *p);
/* What tilec_describe says about the program, or about one kernel with its defines; malloc'ed. tuning: TilecTuning.
 * sources (may be NULL): the digest of the texts that were read. */
int jit_describe(TilejitProgram *p, const TilejitKernel *k, int tuning, char **out, uint64_t sources[2], TilertError *err);

/* ---- jit_source.c ---- */
SourceForm jit_source_form(const char *name);
/* The manifests of PTX, at least one: its //@tilec lines or, if it has none (then *own is 0), of its headers. *all is the caller's, for
 * free(). */
int jit_ptx_manifests(const char *ptx, size_t len, TilertManifest **all, size_t *n, int *own, TilertError *err);
/* What tilec_describe would say about PTX text, by its manifests; kernel NULL: all. */
int jit_describe_ptx(const TilejitProgram *p, const char *kernel, char **out, TilertError *err);

/* ---- jit_form.c ---- */
/* The compiled, loaded form for these arguments, in the kernel's order. */
int jit_form_for(TilejitKernel *k, const TilertArg *args, size_t nargs, Form **out, TilertError *err);
void jit_form_destroy(Form *f);
uint64_t jit_address_of(const TilertArg *a);      /* on the device; 0: it is no pointer and no tensor */
TilertBuffer *jit_buffer_of(const TilertArg *a);  /* that it is, or that the tensor lies in; NULL: none */
int jit_wrong_count(const TilejitKernel *k, size_t n, TilertError *err);
/* Without `same`. */
Pattern jit_pattern_of(const TilejitKernel *k, const TilertArg *args, size_t n);
/* Pieces of a key that forms and choices share: build, sources, imports' folders, kernel, target, device, defines. 0: nothing may
 * be kept. */
int jit_key_start(const TilejitKernel *k, const char *what, CacheHash **out);
#endif
