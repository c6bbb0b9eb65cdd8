/* asm.h - inline PTX: which registers a text has, and how elements travel in them.
 *
 * Constraints are a list like "=r,=f,r,l": one entry a register, those of results first and marked by '='. The letter is the
 * register's width: h 16 bits, r 32, l 64, f a 32-bit and d a 64-bit float. One execution of the text works on `pack`
 * elements of every operand and result: their bits, the first element's lowest, are cut into as many registers as it takes. */
#ifndef TILEC_ASM_H
#define TILEC_ASM_H
#include "ir.h"

enum { ASM_REGS_MAX = 32, ASM_VALUES_MAX = 16 };
typedef struct AsmRegs { u32 nouts, nins; char letter[ASM_REGS_MAX]; } AsmRegs;
/* False if the list is malformed; then *why says how. */
bool asm_parse(const char *constraints, AsmRegs *out, const char **why);
u32 asm_letter_bits(char letter);
/* Registers for `pack` elements of that type. */
u32 asm_regs_for(char letter, DType d, u32 pack);
/* What is wrong with these, in the arena; NULL: nothing. Types of the elements, results first. */
const char *asm_error(Arena *a, const char *text, const char *constraints, u32 pack, u32 nresults, u32 n, const DType *types);
#endif
