/* frontend.h - .tile text to tile IR. */
#ifndef TILEC_FRONTEND_H
#define TILEC_FRONTEND_H
#include "ir.h"

typedef struct FrontendDefine { const char *name, *value; } FrontendDefine;           /* -D name=value */
typedef enum FactKind { FACT_EQUAL, FACT_DIVISIBLE, FACT_NULL, FACT_SAME } FactKind;
/* argument == value; divisible by value; a pointer is null (value 1) or is not (0); two pointers are one address. */
typedef struct FrontendFact { const char *name; FactKind kind; i64 value; const char *other; } FrontendFact;
typedef struct FrontendOptions {
  const char *kernel;                          /* only this kernel; NULL: all */
  const FrontendDefine *defines; u32 ndefines;
  const FrontendFact *facts; u32 nfacts;
  const char *const *import_path; u32 nimport_path;
  bool tuning;                                 /* describe: list the configurations of tune clauses too */
  bool unrehearsed;                            /* no word of what ir/rehearse.h finds: the interpreter is to find it */
} FrontendOptions;

/* Parse, instantiate and check the file at source offset base (source_add). Reports every error; NULL if there were any. */
Module *frontend_compile(Ctx *c, u32 base, const FrontendOptions *o);
/* The syntax tree as text; false after reporting errors. */
bool frontend_print_ast(Ctx *c, u32 base, Buf *out);
/* One line per kernel, parameter, type and const parameter (tilec_describe); false after reporting errors. */
bool frontend_describe(Ctx *c, u32 base, const FrontendOptions *o, Buf *out);

/* The library every file sees, as text with an index (generated from every .tile file of stdlib at build time), so that a
 * declaration is parsed when something names it. */
typedef struct StdlibFile { const char *name, *text; size_t len; u32 ndecls; } StdlibFile;
extern const StdlibFile stdlib_files[];        /* ends with a NULL name */
/* Declaration `index` of file `file`: len bytes of its text from offset `at`. Sorted by name (strcmp); names are unique. */
typedef struct StdlibDecl { const char *name; u32 file, index, at, len; } StdlibDecl;
extern const StdlibDecl stdlib_decls[];
extern const u32 stdlib_ndecls;
#endif
