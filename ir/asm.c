/* asm.c - inline PTX: reading its constraints; see asm.h. */
#include "asm.h"

u32
asm_letter_bits(char letter)
{
  switch (letter) {
  case 'h': return 16;
  case 'r': case 'f': return 32;
  case 'l': case 'd': return 64;
  default: return 0;
  }
}

u32
asm_regs_for(char letter, DType d, u32 pack)
{
  u32 w = asm_letter_bits(letter);
  return (pack * dtype_bits(d) + w - 1) / w;
}

bool
asm_parse(const char *constraints, AsmRegs *out, const char **why)
{
  *out = (AsmRegs){0};
  for (const char *s = constraints;; s++) {
    s += strspn(s, " ");
    bool result = *s == '=';
    s += result;
    *why = !asm_letter_bits(*s) ? "constraints are a list of h, r, l, f and d, '=' before those of results"
         : result && out->nins  ? "results come before operands"
         : out->nouts + out->nins == ASM_REGS_MAX ? "there are more than 32 registers" : NULL;
    if (*why)
      return false;
    out->letter[out->nouts + out->nins] = *s++;
    *(result ? &out->nouts : &out->nins) += 1;
    s += strspn(s, " ");
    if (!*s)
      return true;
    *why = "constraints are separated by commas";
    if (*s != ',')
      return false;
  }
}

/* $$ and $0, $1, ... of registers that there are. */
static const char *
text_error(Arena *a, const char *text, u32 regs)
{
  for (const char *s = text; *s; s++) {
    if (*s != '$' || *++s == '$')
      continue;
    if (*s < '0' || *s > '9')
      return "'$' stands before a register's number, or is written $$";
    u32 n = 0;
    for (; *s >= '0' && *s <= '9'; s++)
      n = n * 10 + (u32)(*s - '0') % 1000;
    if (n >= regs)
      return arena_printf(a, "there is no $%u: the constraints name %u register%s", n, regs, regs == 1 ? "" : "s");
    s--;
  }
  return NULL;
}

/* Registers of value i, from `first` on: all of one letter that fits the type; NULL if so. */
static const char *
value_error(Arena *a, const AsmRegs *regs, u32 first, u32 end, DType d, u32 pack)
{
  if (first >= end)
    return "there are fewer constraints than operands and results need";
  char letter = regs->letter[first];
  u32 n = asm_regs_for(letter, d, pack), w = asm_letter_bits(letter);
  if (d == DT_I1)
    return "truth values have no registers: convert to u8";
  if (dtype_bits(d) > w || ((letter == 'f' || letter == 'd') && (!dtype_is_float(d) || dtype_bits(d) != w)))
    return arena_printf(a, "elements of %s do not go into a register '%c'", dtype_info[d].name, letter);
  for (u32 i = 0; i < n; i++)
    if (first + i >= end || regs->letter[first + i] != letter)
      return arena_printf(a, "%u element%s of %s take%s %u registers '%c'", pack, pack == 1 ? "" : "s", dtype_info[d].name,
                          pack == 1 ? "s" : "", n, letter);
  return NULL;
}

const char *
asm_error(Arena *a, const char *text, const char *constraints, u32 pack, u32 nresults, u32 n, const DType *types)
{
  AsmRegs regs;
  const char *why;
  if (!asm_parse(constraints, &regs, &why))
    return why;
  u32 at = 0, all = regs.nouts + regs.nins;
  for (u32 i = 0; i < n; i++) {
    u32 end = i < nresults ? regs.nouts : all;
    if (i == nresults && at != regs.nouts)
      return "there are more '=' constraints than results need";
    if ((why = value_error(a, &regs, at, end, types[i], pack)))
      return why;
    at += asm_regs_for(regs.letter[at], types[i], pack);
  }
  if (at != all)
    return "there are more constraints than operands and results need";
  return text_error(a, text, all);
}
