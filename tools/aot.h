/* aot.h - `tilec --emit=c`: a C source and its header with kernels that were compiled ahead. */
#ifndef TILEC_TOOLS_AOT_H
#define TILEC_TOOLS_AOT_H
#include <stdbool.h>
#include "tilec.h"

enum { AOT_LIST = 256, AOT_TARGETS = 16, AOT_NAME = 256 };

typedef struct AotOptions {
  const TilecOptions *compile;              /* its defines and facts hold for all */
  const char *name, *text;
  size_t len;
  const char *targets;                      /* "sm_80,sm_90a"; NULL: the default */
  const char *configs[AOT_LIST];            /* [KERNEL:]NAME=VALUE,NAME=VALUE */
  const char *forms[AOT_LIST];              /* facts, ',' between them */
  size_t nconfigs, nforms;
  char *choices;                            /* lines of tilejit_tuning_choice, '#' in front of others; NULL: none. Cut into words */
  bool tune;                                /* a function for each configuration of the kernels' tune clauses */
  bool cubin;                               /* beside PTX, what ptxas makes of it */
  bool standalone;                          /* the source needs nothing but libcuda.so.1 */
  size_t jobs;                              /* so many functions are compiled at a time; 0: as many as there are processors */
  const char *prefix;                       /* of the functions' names, and the namespace's; NULL: none */
  const char *output;                       /* NAME.c; the header is NAME.h beside it */
} AotOptions;

/* Write both files; the exit status, after saying on standard error what is wrong. */
int aot_emit(const AotOptions *o);

/* ---- between aot.c, which compiles, and aot_write.c ---- */

typedef struct AotForm {
  const char *target;
  TilecFact *facts;
  size_t nfacts;
  TilecResult *r;
  char *cubin;                              /* NULL: none */
  size_t cubin_len;
} AotForm;

typedef struct AotFunction {
  char *name, *kernel, *config;             /* config: "BM=64, BN=128", "" if the kernel has nothing set */
  AotForm *forms;                           /* by target, and of each the special ones first */
  size_t nforms;
  const TilertManifest *m;                  /* of the last form: what the arguments are */
  uint32_t nargs, first[TILERT_MAX_PARAMS];
  char **names;                             /* of the arguments in C, each another */
  uint64_t nullable, reads;                 /* bit i: argument i may be null: asked about, or ignored; nothing is written where it leads */
} AotFunction;

typedef struct AotFile {
  const AotOptions *o;
  AotFunction *functions;
  size_t n;
} AotFile;

int aot_write(const AotFile *f);

/* ---- aot_names.c ---- */

/* What else has the name, so that no function can: "a word of C or C++"; NULL: nothing. */
const char *aot_function_reason(const char *name);
/* The name of argument a in C, behind those in front of it, which fn->names has. */
void aot_arg_name(const AotFunction *fn, uint32_t a, char name[AOT_NAME]);
/* What the names of the file's own functions begin with, from that of the source, and the namespace in C++, which is no function's name.
 * -1: they are too long. */
int aot_module_names(const AotFile *f, char module[AOT_NAME], char space[AOT_NAME]);

/* Of scripts/amalgamate.py: the runtime as one text, and runtime/status.h. */
extern const char aot_standalone[], aot_status[];
#endif
