/* jit.h - compile .tile source (or .tir, or load .ptx) at run time and launch its kernels: tilec and tilert joined. Part of libtilec.
 *
 * A TilejitProgram is a source text on a device; a TilejitKernel is one of its kernels with its const and type
 * parameters fixed; launching one compiles it on first use, once for each pattern of arguments that matters:
 * integers equal to 1 become constants, integers and addresses divisible by 16 are known to be, integers also by 8, 4 and 2. The compiled
 * forms are kept with the kernel, and on disk for the next process. Finding one again takes neither a lock nor an
 * allocation.
 * Statuses, errors and rules about threads and lifetimes are those of tilert.h. Kernels belong to their program.
 */
#ifndef TILEJIT_H
#define TILEJIT_H
#include "tilec.h"
#include "tilert.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct TilejitProgram TilejitProgram;
typedef struct TilejitKernel TilejitKernel;
typedef struct TilejitCall TilejitCall;

typedef struct TilejitOptions {      /* NULL or zeros: the defaults */
  size_t size;                       /* sizeof(TilejitOptions) as the caller knows it */
  const char *target;                /* NULL: what the device reports */
  int no_specialisation;             /* 1: one compiled form for all arguments, but for what decides what the kernel does:
                                      * which pointers are null of those it asks about, and which are one address */
  int no_line_info;
  const char *const *import_path; size_t nimport_path;
  int no_cache;                      /* 1: compiled kernels are neither looked for on disk nor kept there */
  const char *cache_dir;             /* NULL: $TILEC_CACHE_DIR, $XDG_CACHE_HOME/tilec or ~/.cache/tilec; "", or NULL if $TILEC_CACHE
                                        is 0: none */
  uint64_t cache_limit;              /* bytes; 0: $TILEC_CACHE_SIZE (a number, with K, M or G), or 1 GiB */
  int tensors;                       /* TilecTensors (0: what $TILEC_TENSORS says, found, stated or none); a launch whose arguments such
                                      * copies do not take gets a form without them */
} TilejitOptions;

typedef enum TilejitParamKind { TILEJIT_ARGUMENT, TILEJIT_CONST, TILEJIT_TYPE } TilejitParamKind;

typedef struct TilejitParam {
  char name[64], type[64];           /* "*f32", "i32", "tensor<f16, 2>"; "*T" where T has no value yet; "type" of a type parameter; of
                                      * other compilers' PTX "*", or its own word for what may be anything of that size: ".u64",
                                      * ".b8[12]" */
  char value[128];                   /* const and type parameters: the define or the default; "" if neither */
  int32_t kind;                      /* TilejitParamKind; only TILEJIT_ARGUMENTs are passed to launches */
} TilejitParam;

typedef struct TilejitInfo {
  double compile_ms, load_ms;        /* source to PTX; PTX to a loaded module */
  uint32_t registers, local_bytes, static_shared, dynamic_shared, threads;
  uint32_t occupancy;                /* blocks per multiprocessor */
  uint64_t equal_1, divisible_16;    /* bit i: known of argument i */
  uint32_t from_cache;               /* 1: found on disk; compile_ms is then the time to find it */
  uint64_t divisible_8, divisible_4, divisible_2;   /* by no more than that */
} TilejitInfo;

/* name (NULL: none) is used in messages and line info. The text is copied. A name that ends in .tir is IR text, compiled from there (of
 * what is known of the arguments only divisibility is used, and that only in phase tile; there is nothing to define); one that ends
 * in .ptx is PTX, loaded as it is; without //@tilec lines, from another compiler, its headers say what its kernels take
 * (tilert_manifest_derive), and where they do not ask for a shape of blocks (tilejit_kernel_shape) tilert_launch_set_shape on
 * tilejit_call_packed gives it. */
TILEC_API int tilejit_program_create(TilertDevice *dev, const char *name, const char *text, size_t len,
                                     const TilejitOptions *o, TilejitProgram **out, TilertError *err);
TILEC_API int tilejit_program_open(TilertDevice *dev, const char *path, const TilejitOptions *o,
                                   TilejitProgram **out, TilertError *err);
TILEC_API void tilejit_program_destroy(TilejitProgram *p);
/* What the last compile that had anything to say said, cut to size; returns its whole length. */
TILEC_API size_t tilejit_program_diagnostics(TilejitProgram *p, char *out, size_t size);
/* What last kept the cache of compiled kernels from being used (a directory of another user, a full disk), as a sentence, cut to
 * size; "" if nothing has. Returns its whole length. Nothing fails for that. */
TILEC_API size_t tilejit_program_cache_trouble(TilejitProgram *p, char *out, size_t size);

/* The kernel with these const and type parameters; the same one again for the same defines. name may be NULL if
 * the source holds one kernel. Nothing is compiled yet. */
TILEC_API int tilejit_kernel(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t ndefines,
                             TilejitKernel **out, TilertError *err);
TILEC_API const char *tilejit_kernel_name(const TilejitKernel *k);
TILEC_API size_t tilejit_kernel_param_count(const TilejitKernel *k);
/* NULL if there is no parameter i. */
TILEC_API const TilejitParam *tilejit_kernel_param(const TilejitKernel *k, size_t i);
/* 1: the kernel is another compiler's, and its blocks have the shape that the launch gives; *block is the shape that its PTX asks for
 * (.reqntid), zeros if it asks for none. 0: tilec made it, and *block is zeros. */
TILEC_API int tilejit_kernel_shape(const TilejitKernel *k, uint32_t block[3]);
/* How many forms are compiled by now. */
TILEC_API size_t tilejit_kernel_forms(const TilejitKernel *k);

/* args in the order of the kernel's arguments, or in any order with their names. grid NULL, also of a call: what the kernel's grid clause
 * says. */
TILEC_API int tilejit_launch(TilejitKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args,
                             size_t nargs, TilertError *err);
TILEC_API int tilejit_launch_named(TilejitKernel *k, TilertStream *s, const uint32_t grid[3],
                                   const char *const *names, const TilertArg *args, size_t nargs, TilertError *err);

/* A kernel bound to its arguments, for hot launches. names may be NULL. */
TILEC_API int tilejit_call_create(TilejitKernel *k, const uint32_t grid[3], const char *const *names,
                                  const TilertArg *args, size_t nargs, TilejitCall **out, TilertError *err);
TILEC_API void tilejit_call_destroy(TilejitCall *c);
TILEC_API int tilejit_call_set_grid(TilejitCall *c, const uint32_t grid[3], TilertError *err);
TILEC_API int tilejit_call_launch(const TilejitCall *c, TilertStream *s, TilertError *err);
/* The launch inside, for tilert_bench_launch and tilert_launch_packed; it belongs to the call. */
TILEC_API TilertLaunch *tilejit_call_packed(const TilejitCall *c);
TILEC_API int tilejit_call_info(const TilejitCall *c, TilejitInfo *out, TilertError *err);
/* The PTX that runs; it lives as long as the program. */
TILEC_API const char *tilejit_call_ptx(const TilejitCall *c);

/* ---- tuning: which of the configurations in the kernel's tune(...) clauses is fastest ---- */

typedef struct TilejitTuning TilejitTuning;
typedef struct TilejitTrial {
  const char *config;                /* "BM=64 BN=128 warps=4", as the source writes it */
  const char *why;                   /* why it was not measured; NULL if it was */
  double compile_ms, load_ms, ms;    /* ms: median of a launch; on sim: millions of warp instructions */
  uint32_t registers, local_bytes, shared;
} TilejitTrial;

typedef struct TilejitTuneOptions {  /* NULL or zeros: the defaults */
  size_t size;                       /* sizeof(TilejitTuneOptions) as the caller knows it */
  int force;                         /* 1: measure even if the choice is known */
  int threads;                       /* that compile; 0: one per core */
  double rep_ms;                     /* to spend on a configuration in the first round; 0: 3 */
  uint64_t restore;                  /* bit i: the buffer that argument i is, or that the tensor lies in, has its contents back before every
                                      * launch, and in the end */
  void (*progress)(void *user, const char *what, size_t done, size_t total);   /* on the caller's thread */
  void *progress_user;
  TilertRun before;                  /* put into the stream before every launch, not measured; NULL: nothing */
  void *before_user;
  int search;                        /* 1: of a kernel without tune(...), measure what is near to its defines and defaults */
} TilejitTuneOptions;

/* The grid for a kernel with its parameters fixed (tilejit_kernel_param says how); not 0: it cannot be launched. NULL: what the kernel's
 * grid clause says. */
typedef int (*TilejitGrid)(void *user, TilejitKernel *k, uint32_t grid[3]);

/* Compile the configurations in parallel, launch each with args (in the kernel's order) in stream s, choose the fastest. Launches
 * write what the kernel writes, many times over: name in `restore` what must survive, or be found as it is. The choice is kept in the
 * program, and on disk, for the same source, device, defines, argument pattern and key(...) arguments; then nothing is launched. If no
 * configuration fits, the error says why not for each; a kernel without tune(...) has one configuration, its defaults, or with `search`
 * a dozen at most (tilec_describe, TILEC_TUNING_SEARCH): of these the extents of blocks count only where `grid` answers with as many
 * times fewer programs as the extent is larger, and so with what covers the same elements.
 * The tuning belongs to the caller, its kernel to the program. */
TILEC_API int tilejit_tune(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t ndefines, TilertStream *s,
                           TilejitGrid grid, void *user, const TilertArg *args, size_t nargs, const TilejitTuneOptions *o,
                           TilejitTuning **out, TilertError *err);
TILEC_API void tilejit_tuning_free(TilejitTuning *t);
TILEC_API TilejitKernel *tilejit_tuning_kernel(const TilejitTuning *t);
TILEC_API size_t tilejit_tuning_count(const TilejitTuning *t);
TILEC_API const TilejitTrial *tilejit_tuning_trial(const TilejitTuning *t, size_t i);   /* NULL if there is none */
TILEC_API size_t tilejit_tuning_chosen(const TilejitTuning *t);
TILEC_API int tilejit_tuning_remembered(const TilejitTuning *t);                        /* 1: nothing was measured */
/* The choice as a line that `tilec --emit=c --choices` takes, "sm_90a M=4096,N=4096 matmul:BM=128,BN=256,warps=8", with the values of the
 * key(...) arguments; NULL if one of these has a value that no line tells (a tensor, a number that is no integer). It lives as long as the
 * tuning. */
TILEC_API const char *tilejit_tuning_choice(const TilejitTuning *t);
#ifdef __cplusplus
}
#endif
#endif
