/* place.h - the data of assign_layout: one variable per layout to choose, one edge per place where two may
 * disagree. The essay is in assign_layout.c. */
#ifndef TILEC_PLACE_H
#define TILEC_PLACE_H
#include "internal.h"

enum { MAX_CANDIDATES = 8 };
#define NO_VAR UINT32_MAX

/* A load, store, atomic or asynchronous copy, with what is known of its addresses before values are rebuilt. */
typedef struct MemOp {
  Op *op;
  const Value *at;                    /* the addresses */
  const AxisInfo *ptr, *mask;
  u32 dim, vec;                       /* fastest dimension in memory; most elements per access along it */
  u32 beside;                         /* the most that another access to a tile of this shape moves at a time */
  u32 elem_bytes;
  bool computed;                      /* each access has an address of its own to compute: others are constants from one */
  u32 apart;                          /* of what writes: elements between most neighbours along dim; 0: far, or not known */
  u32 rows[MAX_RANK];                 /* the same along the other dimensions */
} MemOp;

typedef struct Var {
  const Type *type;                   /* a tile type of the shape that is laid out */
  Team team;                          /* that holds it */
  const Layout *cand[MAX_CANDIDATES];
  u32 ncand, chosen;
  bool fixed;                         /* the first candidate stays alone */
  u64 work;                           /* elementwise ops, weighted: slots per register */
  VEC(Op *) along;                    /* reductions, scans, exchanges: what they cost depends on who holds their axis */
  VEC(MemOp *) mems;
  VEC(u32) edges;                     /* touching it, either side */
  i64 own[MAX_CANDIDATES];            /* cost of the candidate by itself */
} Var;

/* Operand `i` of `op` (variable `user`) is v (variable `def`); they may want different layouts. */
typedef struct Edge {
  u32 user, def;
  Op *op;
  u32 i;
  Value *v;
  i64 weight;
  i64 cost[MAX_CANDIDATES][MAX_CANDIDATES];   /* [user's][def's candidate] */
} Edge;

typedef struct Place {
  Ctx *c;
  Func *f;
  AxisInfo *axes;
  bool *remat;           /* by value id: rebuilt wherever it is wanted */
  u32 *var_of;           /* by value id, NO_VAR: none */
  bool *member;          /* by value id: result of an elementwise op, or carried: shares its variable with its users */
  u32 nvalues;           /* size of these tables */
  u32 *parent;           /* union-find while building */
  VEC(Var *) vars;
  VEC(Edge *) edges;
  VEC(MemOp *) mems;
  bool scans;            /* there are scans, for which warps best have parts of a row for themselves */
  struct PlanMemo *plans;
  struct Rebuilt *rebuilt;
} Place;

/* place_reshape.c: reshapes that no layout carries over become stores to shared memory and reads by index. */
void place_reshapes(Ctx *c, Func *f);

/* place_vars.c: rematerialisable values, variables, edges. */
void place_build(Place *p);
u32 place_var(const Place *p, const Value *v);        /* variable of a value */
u32 place_op_var(const Place *p, const Op *op);       /* variable of an op: its result's, or what its operands share */
bool op_is_shape(const Op *op);
/* Layout that operand i of op must have when the op's variable has layout l. */
const Layout *place_operand_layout(const Place *p, const Op *op, u32 i, const Layout *l);
/* Layout of v when its variable has layout l (a reduction's variable is its operand's layout, of unpack and pack the words'). */
const Layout *place_value_layout(const Place *p, const Value *v, const Layout *l);

enum { COPY_LEAST = 4 };                              /* bytes that an asynchronous copy moves at least */

/* place_cost.c */
i64 place_loop_weight(const Block *b);
i64 place_own_cost(Place *p, const Var *v, const Layout *l);
i64 place_convert_cost(Place *p, const Layout *from, const Layout *to, const Type *t);
u32 place_mem_vec(const MemOp *m, const Layout *l);   /* elements per access with that layout */

/* place_solve.c: candidates and choice. */
void place_candidates(Place *p);
void place_solve(Place *p);

/* place_rewrite.c: types, rebuilt values, conversions, vec. */
void place_rewrite(Place *p);
#endif
