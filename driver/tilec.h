/* tilec.h - compile .tile or .tir text to PTX, in process. The public compiler API of libtilec.
 *
 * Thread-safe: calls share nothing but LLVM's one-time initialisation. Nothing here prints, exits or aborts.
 * Every result, including a failed one, owns its text until tilec_result_free.
 * When memory runs out, the status is TILEC_NO_MEMORY, in LLVM too: what LLVM held for that compilation is lost then, and if it
 * happens while LLVM is made ready, in the first compilation of the process, every later one has that status at once.
 */
#ifndef TILEC_H
#define TILEC_H
#include <stddef.h>
#include <stdint.h>
#include "manifest.h"
#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TILEC_API
#else
#define TILEC_API __attribute__((visibility("default")))
#endif

typedef enum TilecEmit {
  TILEC_EMIT_AST, TILEC_EMIT_TILE, TILEC_EMIT_PLACED, TILEC_EMIT_SCHED, TILEC_EMIT_LLVM, TILEC_EMIT_PTX
} TilecEmit;

typedef enum TilecSeverity { TILEC_ERROR, TILEC_WARNING, TILEC_REMARK, TILEC_NOTE } TilecSeverity;

/* One name=value: a const or type parameter (-D), or a fact about an argument. */
typedef struct TilecDefine { const char *name, *value; } TilecDefine;

typedef enum TilecFactKind { TILEC_FACT_EQUAL, TILEC_FACT_DIVISIBLE, TILEC_FACT_NULL, TILEC_FACT_SAME } TilecFactKind;
/* "argument `name` equals value" (becomes a constant; it stays in the signature, unused), "is divisible by value", or of a pointer "is
 * null" (value 1; it is None, and stays in the signature, unused), "is not null" (value 0) and "is the same address as `other`". */
typedef struct TilecFact { const char *name; TilecFactKind kind; int64_t value; const char *other; } TilecFact;

/* Which configurations tilec_describe lists: those of tune clauses; or, of one kernel that has none, those that a search would measure. */
typedef enum TilecTuning { TILEC_TUNING_NONE, TILEC_TUNING_CLAUSES, TILEC_TUNING_SEARCH } TilecTuning;

/* Which tiles are copied as boxes of tensors, on targets with such copies: those of tensor_load and tensor_store and, in loops with stages,
 * those of loads through pointers that are known to be boxes; the former alone; or none. */
typedef enum TilecTensors { TILEC_TENSORS_FOUND, TILEC_TENSORS_STATED, TILEC_TENSORS_NONE } TilecTensors;

typedef struct TilecOptions {       /* tilec_options_default fills them */
  size_t size;                    /* sizeof(TilecOptions) as the caller knows it */
  const char *target;             /* "sm_80" | "sm_89" | "sm_90a" | ...; NULL: "sm_90a" */
  TilecEmit emit;
  const char *kernel;             /* compile only this kernel; NULL: all kernels of the file */
  const TilecDefine *defines; size_t ndefines;
  const TilecFact *facts; size_t nfacts;
  const char *passes;             /* comma-separated pass list instead of the pipeline; NULL: the pipeline */
  const char *dump_after;         /* pass name ("dce", the second "dce.2") or "all"; dumps are in TilecResult.dump; NULL: none */
  int verify;                     /* verify after every pass */
  int time_passes;                /* fill TilecResult.timing */
  int locs;                       /* print source locations in IR text */
  int line_info;                  /* .loc in PTX; tilec_options_default sets 1 */
  int remarks;                    /* passes say why they did not do something */
  int json;                       /* diagnostics as one JSON object per line */
  int color;                      /* diagnostics with terminal colours */
  int opt_level;                  /* 0: no LLVM passes; 1 (default) */
  const char *const *import_path; size_t nimport_path;
  int tuning;                     /* tilec_describe: TilecTuning */
  int tensors;                    /* TilecTensors */
} TilecOptions;

typedef enum TilecStatus {
  TILEC_OK,
  TILEC_FAILED,                   /* errors in the input, or a fault of the compiler */
  TILEC_MISUSE,                   /* unknown target, pass, kernel or option; a pointer that is NULL where something is needed */
  TILEC_NO_MEMORY                 /* the host is out of memory */
} TilecStatus;

typedef struct TilecResult {
  int status;                     /* TilecStatus; diagnostics says why, whenever it is not 0 */
  char *output; size_t output_len;/* text of the wanted stage, NUL-terminated; NULL unless status is 0 */
  char *diagnostics;              /* rendered diagnostics, "" if none; never NULL */
  size_t nerrors, nwarnings;
  char *dump;                     /* --dump-after text, "" if none */
  char *timing;                   /* --time-passes table, "" if none */
  TilertManifest *manifests; size_t nmanifests;  /* filled for TILEC_EMIT_PTX */
  uint64_t sources[2];            /* XXH3-128 of all source texts read but the library's, with their names; 0, 0: not to be had */
  char *imports;                  /* the files that were read beside the text, the library's not among them: a path each line, "" if none */
} TilecResult;

TILEC_API void tilec_options_default(TilecOptions *o);

/* Compile `text` (len bytes; name is used in messages and line info; a name ending in .tir is read as IR text, one in .ll as LLVM IR that
 * TILEC_EMIT_LLVM gave for the same target). Options that are NULL are the defaults, a name that is NULL or "" is none.
 * NULL only if there is no memory even for a result. */
TILEC_API TilecResult *tilec_compile(const char *name, const char *text, size_t len, const TilecOptions *o);
TILEC_API void tilec_result_free(TilecResult *r);

/* What kernels a source holds and what they take, without compiling: for launchers. One line per kernel and parameter:
 *   kernel NAME warps=W            ("-" where W depends on a parameter without a value, or on the tiles)
 *   param NAME pointer|scalar TYPE passed at launch; TYPE is the pointee's or the scalar's, or a type parameter without a value
 *   param NAME tensor tensor<TYPE, RANK>
 *   null NAME                      a pointer, named before: the kernel asks whether it is None, and is compiled for the answer
 *   unread NAME                    an integer, named before, that only clauses ask for: what is compiled is the same whatever it is
 *   const NAME TYPE VALUE          set by a define; VALUE is the define or the default, "-" if neither
 *   type NAME VALUE                likewise
 *   grid TEXT                      what the kernel's grid clause says, as the source writes it
 * and, if `tuning` is set, one line per configuration of its tune clauses, and its key:
 *   tune NAME=VALUE<tab>NAME=VALUE... values as the source writes them
 *   skip NAME=VALUE ...            the clause's condition is false
 *   key NAME                       an argument by whose value the choice is remembered
 *   block NAME AXIS                a const parameter that is the extent of blocks which programs along this axis of the grid count
 * TILEC_TUNING_SEARCH derives configurations from what a kernel without tune clauses is, the source's own first: other numbers of warps, of
 * stages where a const parameter is that, and extents of blocks where a const parameter is one and nothing but the grid depends
 * on it; defines are where it begins. Out are those that do not compile for the target. */
TILEC_API TilecResult *tilec_describe(const char *name, const char *text, size_t len, const TilecOptions *o);

/* Tables the compiler was built from, as text: what = "passes" | "ops" | "targets" | "diags" | "dtypes".
 * NULL if unknown. The caller frees it with tilec_free. */
TILEC_API char *tilec_print_table(const char *what);
TILEC_API void tilec_free(void *p);
/* The page of a diagnostic ("E0211") or runtime status ("fault"), as Markdown: what it means, a wrong program, the corrected one.
 * NULL if unknown. The caller frees it with tilec_free. */
TILEC_API char *tilec_explain(const char *id);
/* "did you mean": the closest of n words, NULL if none is close. Words that are NULL are passed over. */
TILEC_API const char *tilec_suggest(const char *word, const char *const *words, size_t n);
/* Draw a layout given as text (canonical, or a constructor such as "mma<128x64; 4x2>"): who holds what, or for a shared
 * layout the offset and bank of each element of elem_bits, 1 to 128. Result as for tilec_compile. */
TILEC_API TilecResult *tilec_print_layout(const char *text, unsigned elem_bits);
TILEC_API const char *tilec_version(void);
#ifdef __cplusplus
}
#endif
#endif
