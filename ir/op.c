/* op.c - the rows of ops.def and attrs.def.
 *
 * Operand and result counts are counted from the row's texts by the compiler: SIG_* index the (NUL-extended) string
 * literal at constant positions, which gcc and clang fold in static initialisers. A word starts at a non-blank after
 * a blank; '?' marks it optional, '*' variadic. Texts are at most SIG_MAX long (asserted).
 */
#include "ir.h"

#define SIG_MAX 24
#define SIG_PAD "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define SIG_CH(s, i) ((s SIG_PAD)[i])
#define SIG_SUM(M, s) \
  (M(s, 0) + M(s, 1) + M(s, 2) + M(s, 3) + M(s, 4) + M(s, 5) + M(s, 6) + M(s, 7) + M(s, 8) + M(s, 9) + M(s, 10) + \
   M(s, 11) + M(s, 12) + M(s, 13) + M(s, 14) + M(s, 15) + M(s, 16) + M(s, 17) + M(s, 18) + M(s, 19) + M(s, 20) + \
   M(s, 21) + M(s, 22) + M(s, 23))
#define SIG_BLANK(s, i) (SIG_CH(s, i) == ' ')
#define SIG_OPT(s, i) (SIG_CH(s, i) == '?')
#define SIG_STAR(s, i) (SIG_CH(s, i) == '*')
#define SIG_WORDS(s) (sizeof(s) > 1 ? 1 + SIG_SUM(SIG_BLANK, s) : 0)
#define SIG_VARIADIC(s) (SIG_SUM(SIG_STAR, s) > 0)
#define SIG_MIN(s) (SIG_WORDS(s) - SIG_SUM(SIG_OPT, s) - SIG_SUM(SIG_STAR, s))
#define SIG_ANY(s) (SIG_VARIADIC(s) ? 255 : SIG_WORDS(s))

#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) \
  _Static_assert(sizeof(operands) <= SIG_MAX && sizeof(results) <= SIG_MAX, name ": signature too long for SIG_MAX");
#include "ops.def"
#undef OP

#define PURE T_PURE
#define COMM T_COMM
#define ELEM T_ELEM
#define READS T_READS
#define WRITES T_WRITES
#define SIDE T_SIDE
#define TERM T_TERM
#define SURFACE T_SURFACE
#define INT T_INT
#define FLT T_FLT
#define BOOL T_BOOL
#define NUM T_NUM
#define BITS T_BITS
static const OpInfo op_table[OP_COUNT] = {
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) \
  {name, operands, results, attrs, regions, RULE_##rule, traits, doc, \
   SIG_MIN(operands), SIG_ANY(operands), SIG_ANY(results)},
#include "ops.def"
#undef OP
};
#undef PURE
#undef COMM
#undef ELEM
#undef READS
#undef WRITES
#undef SIDE
#undef TERM
#undef SURFACE
#undef INT
#undef FLT
#undef BOOL
#undef NUM
#undef BITS

const AttrInfo attr_info[AT_COUNT] = {
#define ATTR(id, name, kind, doc) {name, AK_##kind, doc},
#include "attrs.def"
#undef ATTR
};

/* The row of an op. */
const OpInfo *
op_info(OpCode op)
{
  return &op_table[op];
}

/* The op of that name; false if there is none. */
bool
op_find(const char *name, OpCode *out)
{
  for (int i = 0; i < OP_COUNT; i++)
    if (!strcmp(op_table[i].name, name)) {
      *out = (OpCode)i;
      return true;
    }
  return false;
}

/* The atomic operations, blank-separated. */
const char *
rmw_names(void)
{
  return "add max min and or xor xchg";
}
