/* names.h - symbols by name: a hash table whose scopes are opened and closed like a stack. */
#ifndef TILERT_SIM_NAMES_H
#define TILERT_SIM_NAMES_H
#include "chains.h"
#include "unit.h"

typedef enum SymKind { SYM_VAR, SYM_REG, SYM_RANGE, SYM_FUNC, SYM_TARGETS, SYM_PROTOTYPE, SYM_LABEL } SymKind;
typedef struct Func Func;
typedef struct Sym {
  const char *s; uint32_t n;
  uint8_t kind, type, space;
  uint32_t size, align, count;
  uint32_t shared, var;                /* SYM_VAR: of SimModule.shared + 1; as Address.var has it */
  uint64_t addr;                       /* SYM_VAR: address or offset; SYM_REG: slot; SYM_TARGETS: token; SYM_LABEL: pc */
  uint32_t *slots;                     /* SYM_RANGE: by number, 0: not used yet */
  Func *func;                          /* SYM_FUNC, SYM_PROTOTYPE */
} Sym;

typedef struct Names { Sym *sym; size_t n, cap; Chains chains; } Names;

/* The newest symbol of a name; NULL if there is none. Valid until the next names_add. */
Sym *names_find(const Names *t, const char *s, uint32_t n);
/* A new symbol, which hides older ones of its name; NULL when out of memory. */
Sym *names_add(Names *t, const char *s, uint32_t n, SymKind kind);
/* Forget all but the first n. */
void names_cut(Names *t, size_t n);
void names_free(Names *t);
#endif
