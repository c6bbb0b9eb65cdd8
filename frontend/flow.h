/* flow.h - statements that choose and repeat, private to lower_stmt.c, lower_if.c and lower_loop.c.
 *
 * The IR is structured: an arm or a body runs to its end. A `break`, `continue` or `return` inside a loop therefore only
 * notes what happened, in the Exits of the frame: truth values that are known at compile time wherever they can be. What
 * follows a statement that may have noted something runs under `if !skip`, or in the arm that goes on. A loop that may be
 * left carries whether it goes on, and what a `return` in it gives. Outside loops nothing is noted: see lower_stmt.c. */
#ifndef TILEC_FLOW_H
#define TILEC_FLOW_H
#include "sema.h"

typedef VEC(Binding *) Vars;
/* What may differ where ways meet. */
typedef struct State { Values vars; Exits exits; } State;

/* ---- lower_stmt.c ---- */
void lower_block(Lower *L, Node *block);                             /* its statements, in a scope of their own */
void lower_list(Lower *L, Node *const *stmts, u32 n);                /* statements in the current scope */

/* ---- lower_if.c ---- */
void vars_assigned(Lower *L, Vars *vars, Node *body);                /* add the variables around body that it assigns */
Values vars_values(Lower *L, const Vars *vars);                      /* their run-time values, part by part */
void vars_set(Lower *L, const Vars *vars, Value *const *values);
/* An `if`, and `rest` (NULL: nothing), the statements after it: they go where the `if` does not leave the iteration. */
void lower_if(Lower *L, Node *n, Node *rest);
/* The statements of rest (a block without a scope of its own, or NULL), unless the iteration was left. */
void lower_after(Lower *L, Node *rest);
Val val_zeros(Lower *L, Val like);                                   /* like, with zeros for its run-time parts */
Exits exits_none(void);
static inline bool val_is_true(Val v) { return v.kind == V_CONST && v.k.i; }
static inline bool val_is_false(Val v) { return v.kind == V_CONST && !v.k.i; }
/* What stands between open and close runs unless cond. */
typedef struct Guard { Op *op; Vars vars; State passed; Builder outside; Span at; } Guard;
bool guard_open(Lower *L, Span at, Value *cond, Node *body, Guard *g);
void guard_close(Lower *L, Guard *g);

/* ---- lower_loop.c ---- */
void lower_for(Lower *L, Node *n);
void lower_while(Lower *L, Node *n);
void lower_exit(Lower *L, const Node *n);                            /* break, continue, or a return inside a loop */
#endif
