/* frontend.h - .tile text to tile IR. */
#ifndef TILEC_FRONTEND_H
#define TILEC_FRONTEND_H
#include "ir.h"

typedef struct FrontendDefine { const char *name, *value; } FrontendDefine;           /* -D name=value */
/* equal: argument == value; else: divisible by value. */
typedef struct FrontendFact { const char *name; bool equal; i64 value; } FrontendFact;
typedef struct FrontendOptions {
  const char *kernel;                          /* only this kernel; NULL: all */
  const FrontendDefine *defines; u32 ndefines;
  const FrontendFact *facts; u32 nfacts;
  const char *const *import_path; u32 nimport_path;
  bool tuning;                                 /* describe: list the configurations of tune clauses too */
} FrontendOptions;

/* Parse, instantiate and check the file at source offset base (source_add). Reports every error; NULL if there were any. */
Module *frontend_compile(Ctx *c, u32 base, const FrontendOptions *o);
/* The syntax tree as text; false after reporting errors. */
bool frontend_print_ast(Ctx *c, u32 base, Buf *out);
/* One line per kernel, parameter, type and const parameter (tilec_describe); false after reporting errors. */
bool frontend_describe(Ctx *c, u32 base, const FrontendOptions *o, Buf *out);

/* The library every file sees, as text (generated from every .tile file of stdlib at build time). */
typedef struct StdlibFile { const char *name, *text; size_t len; } StdlibFile;
extern const StdlibFile stdlib_files[];        /* ends with {NULL, NULL, 0} */
#endif
