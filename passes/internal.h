/* internal.h - what the files of passes/ share and nobody else sees. */
#ifndef TILEC_PASSES_INTERNAL_H
#define TILEC_PASSES_INTERNAL_H
#include "interp.h"
#include "passes.h"

extern const char *const passes_order[];   /* order.c: names, NULL-terminated */

/* ---- fold.c ---- */
/* The element bits of a pure elementwise op whose operands are constants with the bits x[i]; false where the result is
 * not certain to be the hardware's bit for bit (approximations, nans) or undefined (division by zero). */
bool fold_elem(const Op *op, const u64 *x, u64 *out);

void func_dce(Ctx *c, Func *f);                /* dce.c: the pass, on one function */
/* flatten_loops.c: a `for` and the one in it become one loop, which leaves unused copies; NULL, or why not (nothing is changed then). */
const char *flatten_loop(Ctx *c, Func *f, Op *outer);
void block_drop_unused(Block *b);              /* dce.c: ops of this one block whose results are unused, and that may go */

/* walk_grid.c, of a kernel whose boxes are found: will a team of its own copy for its loops (roles.c), as far as can be seen; and are
 * programs to stay though the kernel does not say so? */
bool team_expected(Ctx *c, Func *f);
bool walks_by_itself(Ctx *c, Func *f);
bool stays_but_for(Ctx *c, Func *f, const Op *load);   /* would they, if this load of a tile took no registers? */

/* ---- loops.c ---- */
/* The op in block b that is `op` or contains it; NULL if none. */
Op *op_ancestor_in(Op *op, const Block *b);
bool op_heads_equal(const Op *a, const Op *b);       /* cse.c: all but operands and regions, of which there are as many */
/* One more carried value of a for: starts as init; the body's argument for it. The yield's operand is the caller's to add. */
Value *loop_carry(Op *loop, Value *init, const char *name);
/* What a carried value, given as the body's argument, is behind the loop. */
Value *loop_result_of(const Op *loop, const Value *arg);
/* Is there an iteration of a for `ahead` steps behind that of index i, which is one of its indices? */
Value *loop_goes_on(Builder *b, const Op *loop, Value *i, u32 ahead);
/* How many iterations a for has (i64) that has one at least. */
Value *loop_trips(Builder *b, const Op *loop);
/* The number by which loads and copies that are done ahead for this loop name it (`ahead`); it gets one if it has none. */
i64 loop_number_ahead(Op *loop);
/* What a map of op_clone gives for v; v itself where it has nothing. v may be NULL. */
Value *value_mapped(Value *const *map, Value *v);
/* 32-bit registers of a thread that hold a value of this type. */
u32 type_registers(const Type *t);
typedef VEC(Op *) OpVec;
/* All ops of one kind in f, parents before children, in scratch. */
OpVec func_ops(Ctx *c, Func *f, OpCode code);
/* Is one of the operands from number `from` to before `to`, as far as there are so many, among these values (by id)? */
bool op_asks(const Op *op, const bool *which, u32 from, u32 to);
/* A new op without operands in front of this one, at its place in the source. */
Op *op_put_before(Op *op, OpCode code);
static inline Value *i32_const(Builder *b, i64 v) { return ir_const_int(b, type_scalar(b->func->module->ctx, DT_I32), v); }
/* May go when its results are unused. */
bool op_removable(const Op *op);
/* Pure and cheap: may be computed again elsewhere. (A dot is too dear, a region has its own rules.) */
static inline bool op_is_arithmetic(const Op *op) { return op_has(op, T_PURE) && !op->nregions && !op_is_dot(op); }
#endif
