/* interp.h - what the reference interpreter shares: the meaning of every elementwise op on one element, and a run
 * with options. Constant folding uses the same functions, so folding cannot disagree with running.
 *
 * An element is its bits, zero-extended to 64; a truth value is 0 or 1. What ops.def leaves open:
 *   - integer division by zero has no value: running it is a fault, folding it is refused. Least / -1 wraps to least;
 *   - f32 and f64 are computed by the host with no contraction; the narrower formats are computed exactly (or rounded
 *     to odd in double) and rounded once; a nan result is the format's canonical one (fp.h);
 *   - min and max hold -0 below +0 and drop a nan against a number; float `rem` is fmod;
 *   - exp2, log2, rsqrt, rcp_approx are the correctly rounded value nearly always: the hardware's approximations are
 *     compared with tolerances, never bit by bit;
 *   - cast of a float to an integer rounds (toward zero unless it says otherwise) and clamps to the range, nan gives 0; to i1 it is x != 0
 *     (a nan is true); integer to integer wraps, or clamps with `sat`.
 */
#ifndef TILEC_INTERP_H
#define TILEC_INTERP_H
#include "fp.h"

/* add sub mul div rem min max and or xor shl shr mulhi umulhi fast_div copysign. False: division by zero. */
bool scalar_binary(OpCode op, DType d, u64 a, u64 b, u64 *out);
/* neg not abs floor ceil rint trunc round sqrt exp2 log2 rsqrt rcp_approx popc clz brev */
u64 scalar_unary(OpCode op, DType d, u64 x);
u64 scalar_fma(DType d, u64 a, u64 b, u64 c);
typedef enum Pred { PRED_EQ, PRED_NE, PRED_LT, PRED_LE, PRED_GT, PRED_GE, PRED_BAD } Pred;
Pred pred_find(const char *name);
bool scalar_cmp(Pred p, DType d, u64 a, u64 b);
u64 scalar_cast(DType from, DType to, u64 x, FloatRound r, bool sat);
/* The bits as a number: sign-extended for signed types, zero-extended otherwise (pointers: DT_U64). */
i64 scalar_int(DType d, u64 bits);
/* v wrapped to the width of d. */
u64 scalar_wrap(DType d, u64 v);
/* dtype that arithmetic on an element of t uses: u64 for pointers. */
static inline DType type_arith(const Type *t) { return type_is_ptr(t) ? DT_U64 : t->dt; }

typedef struct InterpOptions {
  u64 max_steps;      /* element operations before the run is stopped as endless; 0: 2^36 */
  u64 max_bytes;      /* memory for the values of one program; 0: 4 GiB */
  bool barriers;      /* the IR has offsets and all its barriers (it comes from insert_barriers): a missing one is a fault */
  u32 residents;      /* programs that are started of a persistent kernel, as far as the grid has so many; 0: 2 */
  u64 seed;           /* how teams take turns: 0: each goes on until it waits; else at random, as this number says */
  /* Called with every value as it gets its elements (row-major bits), results and block arguments alike. */
  void (*observe)(void *user, const Value *v, const u64 *bits, u32 n);
  void *user;
} InterpOptions;
/* interp_run with options. */
bool interp_run_with(Func *f, const u32 grid[3], const u64 *params, const InterpBuffer *buffers, u32 nbuffers,
                     const InterpOptions *opt, InterpError *err);
#endif
