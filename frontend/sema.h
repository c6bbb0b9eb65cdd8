/* sema.h - from syntax tree to tile IR, private to the frontend. Read this before lower_*.c.
 *
 * A kernel is instantiated in one walk: names are resolved, types found, compile-time values computed and IR built at
 * once. Functions are templates, lowered anew into each call (which is why there is no separate checking phase: a body
 * has no types until its arguments have). An expression gives a Val: a run-time Value, a compile-time constant, a type,
 * a function, a tuple... An error is reported once and gives V_POISON, at which everything else stays silent.
 *
 * Files, each of which calls those above it, and in the walk each other (tests/style keeps it):
 *   module.c (files, imports, declarations), consteval.c (constants), value.c (what a Val is), scope.c
 *   origin.c (errors, and where things in messages came from), limits.c, truncation.c (integer quotients), broadcast.c, convert.c
 *   (promotion, casts), variables.c
 *   buffer_life.c, if_convert.c, builtin_args.c, layouts.c, builtin_*.c (the functions of builtins.def)
 *   the walk: lower_stmt.c, lower_if.c, lower_loop.c, lower_expr.c, lower_operator.c, lower_index.c, lower_choose.c, lower_call.c,
 *   lower_struct.c, lower_names.c, lower_team.c, builtin_map.c, builtin_reduce.c and builtin_derivative.c (which call functions)
 *   head.c (a kernel's compile-time parameters and clauses), arguments.c, grid.c, options.c, lower.c (kernels), warps.c, optional.c,
 *   tune.c, describe.c
 */
#ifndef TILEC_SEMA_H
#define TILEC_SEMA_H
#include "ast.h"
#include "clauses.h"
#include "frontend.h"
#include "fp.h"
#include "packed.h"

/* ---- values ---- */
typedef enum ConstForm { CF_INT, CF_FLOAT, CF_TYPED } ConstForm;  /* literals have no type yet: they adopt one */
typedef struct Const {
  ConstForm form;
  DType dt;               /* CF_TYPED */
  i64 i;                  /* integers and i1: the value (bits for u64) */
  double f;               /* floats: the value, representable in dt */
  Span truncated;         /* integers: the division on the way to it that dropped a remainder; {0, 0}: none */
} Const;

typedef enum ValKind {
  V_POISON, V_VOID, V_IR, V_CONST, V_TYPE, V_FN, V_BUILTIN, V_TUPLE, V_LIST, V_STR,
  V_BUFFER,               /* a shared buffer or a row of them: `ir` */
  V_TENSOR,               /* a tensor that the launch gives: `ir` */
  V_LAYOUT,               /* not applied to a shape yet */
  V_FORMAT,               /* of packed elements: i4, f4e2m1 */
  V_NONE,                 /* None: equal to itself alone; to a function of the language, an argument left out */
  V_STRUCT, V_RECORD      /* a struct declaration: `fn`; a value of one: `list` of its fields, `of` */
} ValKind;
typedef struct Val Val;
typedef struct Scope Scope;
typedef struct Unit Unit;
typedef struct Builtin Builtin;
typedef struct Call Call;
typedef struct LayoutSpec LayoutSpec;
struct Val {
  ValKind kind;
  Span span;              /* the expression */
  Span from;              /* the declaration, for a name */
  union {
    Value *ir;
    Const k;
    const Type *type;
    struct { Node *decl; Unit *unit; Scope *env; } fn;  /* env: what an anonymous function captured; NULL: nothing */
    const Builtin *builtin;
    struct { Val *v; u32 n; const Node *of; } list;
    const LayoutSpec *layout;
    const PackedFormat *format;
    const char *str;
  };
};

typedef enum SpecKind { LS_BLOCKED, LS_MMA, LS_OPERAND, LS_SLICE, LS_LINEAR, LS_SWIZZLED, LS_PADDED, LS_PANELS, LS_OFFSETS } SpecKind;

/* A layout as a value of the language: without extents. */
struct LayoutSpec {
  SpecKind kind;
  const char *text;                    /* as the language spells it; equal texts are equal pointers */
  u32 rank;                            /* 0: any */
  u32 size[MAX_RANK], threads[MAX_RANK], warps[MAX_RANK];
  bool has_order;
  int order[MAX_RANK];
  const LayoutSpec *of;                /* operand, slice */
  i64 which;                           /* operand: which; slice: axis */
  u32 bits;                            /* operand: of an element, 0: the tile's */
  u32 vec, per_phase, max_phase, every, pad;
  u32 width;                           /* panels: of a row of one, in bytes; 0: the widest */
  u32 bases[IN_COUNT], (*base[IN_COUNT])[MAX_RANK];
};

typedef VEC(Value *) Values;

/* ---- names ---- */
typedef struct Binding Binding;
struct Binding {
  const char *name;
  Span span;
  bool var;               /* its val changes; the types of its run-time parts stay */
  Val val;
  u32 place;              /* in its scope, from 1 */
  Binding *next;          /* the one before it */
};
/* index: the bindings by name, in cap slots, once there are many. */
struct Scope { Binding *last; Scope *up; Binding **index; u32 cap; };

/* A source file. */
struct Unit {
  const char *path;
  u32 base;
  Node *root;
  bool library;           /* declarations that nothing named yet are NULL */
  VEC(Unit *) imports;
  Val *values;            /* of its const declarations, by position; kind V_VOID: not computed yet */
  bool *computing;
  u32 *index;             /* of the main file and imports: positions + 1 of declarations by name, in cap slots */
  u32 cap;
};
/* A kernel that is there to be compiled. */
typedef struct KernelDecl { Unit *unit; Node *node; } KernelDecl;
typedef struct Program {
  Ctx *c;
  Arena *a;
  const FrontendOptions *o;
  VEC(Unit *) units;
  Unit **library;         /* by place in stdlib_files; NULL: nothing of it is named yet */
  Unit *main;
  VEC(KernelDecl) kernels;     /* of the main file; where it has none, of the files that it imports */
  VEC(const char *) prefixes;  /* of other languages, met and reported */
} Program;

/* How the current iteration of the innermost loop was left so far (flow.h): truth values, known at compile time or not. */
typedef struct Exits {
  Val skip;               /* the rest of the iteration does not run */
  Val stop;               /* nor does another iteration: implies skip */
  Val returned;           /* nor anything of the function: implies stop */
  Val result;             /* what it returned; V_VOID: nothing so far */
} Exits;

/* A kernel or an inlined function being lowered. */
typedef struct Frame Frame;
struct Frame {
  const Node *decl;
  Unit *unit;
  Span call;
  Frame *up;
  Scope *scope;
  Scope *env;             /* of an anonymous function: what it captured */
  Val *bound;             /* of a function: the values of its parameters, V_VOID before they are known */
  u32 level;              /* frames below */
  u32 loops;              /* loops around the current statement */
  Exits exits;
  bool returns[2];        /* a return in a loop gave nothing, something */
  bool failed;            /* its result is not to be complained about */
};
typedef struct Freed { const Value *buffer; Block *block; Span at; } Freed;
typedef struct Truncated { const Value *value; Span at; } Truncated;  /* an integer constant that lost a remainder there */
/* A value of its own beside `of`, while a derivative is made: a parameter that is derived by (rule V_VOID), or the result of a function of
 * these arguments whose derivative the function `rule` gives. */
typedef struct Marked { Value *value, *of; Val rule; u32 nargs; const Val *args; } Marked;
typedef struct Widened { Value *cast; Span at; } Widened;            /* a conversion to a float nobody asked for */
typedef struct Lower {
  Ctx *c;
  Arena *a;
  Program *prog;
  Builder b;
  Frame *frame;
  VEC(Freed) freed;
  VEC(Value *) allocs;    /* buffers whose scope is open */
  VEC(Truncated) truncated;  /* by rising id */
  VEC(Widened) widened;   /* of what open loops carry: asked for again when these end */
  VEC(Marked) marked;     /* by rising id */
  u32 deriving;           /* derivatives under way: functions with rules are marked */
  u32 depth;              /* of the walk */
  u32 work;               /* nodes lowered so far */
  bool stopped;           /* a limit was hit: everything gives poison */
  bool exact_maths;       /* the kernel asks for functions of real numbers that are exact */
  Value *multiprocessors; /* of the device, in a grid clause; NULL: elsewhere */
  const Node *teams;      /* the kernel's specialize statement; NULL: it has none that can be */
  const Node *team_of[TEAMS_MAX];      /* those that have warps */
  i64 team_warps[TEAMS_MAX], team_registers[TEAMS_MAX];   /* registers 0: none are stated */
  u32 nteams;
  const Scope *team;      /* of the team that is being lowered; NULL: all warps do this */
} Lower;
enum { LOWER_DEPTH_MAX = 1000, LOWER_WORK_MAX = 2000000, LOWER_VALUES_MAX = 200000, CALL_DEPTH_MAX = 64,
       REGION_DEPTH_MAX = 100, LIST_ITEMS_MAX = 65536 };

/* ---- origin.c ---- */
/* Report at a place and say through which calls it was reached. */
#define ERR(L, at, ...) lower_trace((L), diag((L)->c, (at), __VA_ARGS__))
Diag *lower_trace(Lower *L, Diag *d);
Span user_place(Lower *L, Span at);                                   /* at, or the call of the library that led there */
void note_value(Lower *L, Diag *d, Val v);                           /* what v is, and where it came from */
void note_source(Lower *L, Diag *d, Val v);                          /* the same without its extents */
void note_values(Lower *L, Diag *d, u32 n, const Val *v);            /* each of them */
void hint_none(Lower *L, Diag *d, Val v);                            /* v, a name, is None and may not be */
Diag *not_constant(Lower *L, Val v, const char *what);               /* report that it should be known at compile time */
void note_constants(Lower *L, Diag *d, Span at);                     /* what set the constants named in the text there */

/* ---- head.c ---- */
/* Lowering for names of unit u; what is built goes to a function that is thrown away. */
Lower lower_new(Program *p, Unit *u, Frame *frame, Module *m);
bool param_is_setting(const Node *param);
/* Const and type parameters enter the scope. unset_ok: those without a value do not, silently. */
void lower_settings(Lower *L, const Node *kernel, bool unset_ok);
const Node *kernel_param(const Node *kernel, const char *name);
const Node *clause_value(const Node *kernel, const char *name);      /* of NAME(value); NULL if there is none */
bool clause_is(const Node *attr, const char *name);
void clause_error(Lower *L, const Node *attr, const char *may);
const Node *clause_find(const Node *kernel, const char *name);       /* the whole clause */
void clauses_check(Lower *L, const Node *kernel);
u32 lower_warps(Lower *L, const Node *kernel);
void lower_cluster(Lower *L, const Node *kernel, Func *f);   /* what the clause `cluster` says */
/* Text of the main file on one line, without tabs. */
const char *source_on_line(const Program *p, u32 lo, u32 hi);
const Node *clause_or_define(Lower *L, const Node *kernel, const char *name);   /* the define's value, else the clause's; NULL: neither */
bool states_warps(const Program *p, const Node *kernel);             /* by a clause, a define, or as an axis to tune */
u32 warps_by_tiles(Func *f);                                         /* warps.c */
u32 lower_limit(Lower *L, const Node *kernel, const char *name, i64 lo, i64 hi);     /* 0 without the clause */
bool lower_exact_maths(Lower *L, const Node *kernel);
void lower_choices(Lower *L, const Node *kernel, Func *f);                           /* choices.c */

/* ---- arguments.c ---- */
void arguments_bind(Lower *L, const Node *kernel, Func *f, bool unset_ok);
/* t: its type, as far as it is known; dtype: of its elements, or the type parameter that is still to be set. */
typedef void ArgumentVisit(void *user, const char *path, const Type *t, const char *dtype);
void arguments_list(Lower *L, const Node *param, ArgumentVisit *visit, void *user);

/* ---- grid.c ---- */
void lower_grid(Lower *L, const Node *kernel, Func *f);               /* what the clause `grid` says */

/* ---- options.c ---- */
bool program_has_param(const Program *p, const char *name, bool settings);
bool options_want(const Program *p, const Node *d);
void options_check(Program *p);
void options_check_parts(Program *p, const Module *m);

/* ---- optional.c ---- */
bool kernel_asks_none(Program *p, Unit *u, const Node *kernel, const char *path);

/* ---- tune.c ---- */
/* The configurations of a kernel's tune clauses, a line each ("tune BM=64<tab>warps=4"; "skip ..." where the condition is false),
 * then "key NAME" lines. */
void tune_describe(Program *p, Unit *u, const Node *kernel, Buf *out);

/* ---- module.c ---- */
Program *program_load(Ctx *c, u32 base, const FrontendOptions *o);   /* NULL after errors */
const FrontendDefine *program_define(const Program *p, const char *name);
Node *program_parse_define(Program *p, const FrontendDefine *d, bool word);   /* the value's expression; NULL after errors */
/* Find a declaration visible from u: its unit and position; false if there is none. */
bool program_find(Program *p, Unit *u, const char *name, Unit **unit, u32 *index);
bool program_find_library(Program *p, const char *name, Unit **unit, u32 *index);    /* the same in the library alone */

/* ---- scope.c ---- */
void scope_push(Lower *L, Scope *s);
void scope_pop(Lower *L);
Binding *scope_put(Arena *a, Scope *s, const char *name, Span at, Val v);
void scope_cut(Arena *a, Scope *s, Binding *last);                   /* as it was when `last` was its last binding */
Binding *scope_find_here(const Scope *s, const char *name);
Binding *scope_find(const Lower *L, const char *name);

/* ---- limits.c ---- */
bool lower_over_limit(Lower *L, const Node *n);                      /* too deep or too large: reports once, stops everything */
bool lower_spend(Lower *L, Span at, u32 work);                       /* likewise, for work other than walking nodes */
bool lower_may_nest(Lower *L, Span at);                              /* another loop or if may be opened */

/* ---- lower_names.c ---- */
Binding *scope_add(Lower *L, const char *name, Span at, Val v);      /* an error if the scope has it already */
Val lower_const_decl(Lower *L, Unit *u, u32 index);
Val lower_name(Lower *L, const Node *n);
bool lower_is_known(Lower *L, const Node *n);                        /* something declares the name of NAME node n */
void lower_unknown_name(Lower *L, const Node *n);
const char *lower_unknown_prefix(Lower *L, const Node *n);           /* of n = prefix.name; gives what is meant, or NULL */

/* ---- lower_expr.c, lower_choose.c, lower_stmt.c, lower_call.c ---- */
Val lower_expr(Lower *L, const Node *n);
Val lower_operator(Lower *L, const Node *n);                         /* lower_operator.c */
Val lower_unary(Lower *L, const Node *n);
Val lower_index(Lower *L, const Node *n);                            /* lower_index.c */
/* tensor<f16, 2>; elem: of what, NULL: as it says. NULL after reporting. */
const Type *lower_tensor_type(Lower *L, const Node *n, const Type *elem);
const Type *lower_type(Lower *L, const Node *n);                     /* NULL after reporting */
bool lower_const_int(Lower *L, const Node *n, const char *what, i64 *out);
Val lower_binary(Lower *L, Oper op, Span span, Span at, Val a, Val b);
/* The statements of a function or kernel body; its result. returned: a return statement ended it. */
Val lower_body(Lower *L, Node *body, bool *returned);
Val lower_call(Lower *L, const Node *n);
Val lower_lambda(Lower *L, Node *n);                                 /* an anonymous function, with what it captures */
Val lower_call_fn(Lower *L, Span call, Val fn, u32 nargs, const Val *args);  /* positional arguments only */
/* The arguments of call n by parameter of `name`, V_VOID where none is given; NULL after reporting. */
Val *lower_args(Lower *L, const Node *n, const char *name, const Node *params);
bool lower_bind_args(Lower *L, const Node *call, u32 skip, const char *name, const char *params, Call *out);
Val lower_cond(Lower *L, const Node *n);
Val lower_logic(Lower *L, const Node *n);
Val lower_condition(Lower *L, const Node *n);                        /* scalar or tile i1 data, or poison */
/* End the two open arms of `if` op with yields of va and vb under their common type; gives the result. */
Val lower_join(Lower *L, Span at, Op *op, Val va, Val vb);
/* The same with the arms left open: what they are to yield is appended to parts[0] and parts[1]; in the value, the parts
 * known only at run time stand for results, in order. */
Val lower_join_parts(Lower *L, Span at, Op *op, Val va, Val vb, Values parts[2]);
/* a && c, where a is known only at run time. */
Val lower_guarded_condition(Lower *L, const Node *n, Val a, const Node *c);

/* ---- builtin_derivative.c ---- */
Val derivative_rule(Lower *L, Val fn);                               /* what gives fn's derivatives, if one is under way; V_VOID: none */
Val derivative_mark(Lower *L, Val rule, u32 nargs, const Val *args, Val result);   /* the result of a function that has one */

/* ---- lower_struct.c ---- */
static inline bool val_is_list(Val v) { return v.kind == V_TUPLE || v.kind == V_LIST; }
static inline bool val_is_many(Val v) { return v.kind == V_RECORD || val_is_list(v); }
/* The elements of a list or tuple, else v alone. */
static inline const Val *val_items(const Val *v, u32 *n) { return *n = val_is_list(*v) ? v->list.n : 1, val_is_list(*v) ? v->list.v : v; }
Val lower_struct(Lower *L, const Node *n, Val decl);                 /* Name(field, name=field) */
Val lower_field(Lower *L, const Node *n);                            /* x.name */
const Val *struct_field(Lower *L, Val x, const Node *n);              /* of x, for n = x.name; NULL after reporting */
Val struct_with(Lower *L, Val x, const Node *n, Val field);          /* x with another value there */
/* v where the source says `: type` (a struct's name too); node NULL: v itself. */
Val lower_annotated(Lower *L, Span at, Val v, const Node *type, const char *what, Span declared);

/* ---- lower_team.c ---- */
const Node *kernel_teams(const Node *kernel);                        /* its specialize statement; NULL */
u32 teams_declare(Lower *L, const Node *kernel);                     /* warps of the teams of the kernel's specialize; 0: it has none */
void lower_specialize(Lower *L, const Node *n);
bool team_may_assign(Lower *L, const Binding *b, Span at);           /* reports a variable of all warps that a team assigns */
void teams_check(Lower *L, Func *f);                                 /* at the end of a kernel: whose tiles are used where */
void arrivals_check(Lower *L, const Func *f);                        /* and whose phases cannot end */
void rehearsal_check(Lower *L, const Func *f);                       /* who waits for ever, or fills what others read: ir/rehearse.c */

/* ---- variables.c ---- */
Val var_value(Lower *L, Val v, const char *what);                    /* what a var holds: constants become values */
Val var_assign(Lower *L, Span at, Val v, Val old, const char *what, Span declared);   /* v in place of old */
bool val_is_fixed(Lower *L, Val v);                                  /* nothing in it is known only at run time */

/* ---- if_convert.c ---- */
bool region_is_speculatable(const Block *b);
void region_hoist(Op *op, u32 arm);
void region_if_convert(Block *region);

/* ---- builtin_cluster.c ---- */
void clusters_check(Lower *L, Func *f);                      /* uses of buffers of other programs */

/* ---- buffer_life.c ---- */
static inline bool val_is_memory(Val v) { return v.kind == V_BUFFER || v.kind == V_TENSOR; }   /* named, never copied */
static inline bool val_is_mbarrier(Val v) { return v.kind == V_BUFFER && dtype_is_opaque(v.ir->type->dt); }
static inline Val val_buffer(Value *v, Span at) { return (Val){.kind = V_BUFFER, .span = at, .ir = v}; }
static inline Val val_tensor(Value *v, Span at) { return (Val){.kind = V_TENSOR, .span = at, .ir = v}; }
Value *buffer_root(Value *v);                                        /* the shared_alloc that v views; NULL if unknown */
bool buffer_alive(Lower *L, Span at, Value *v);                      /* reports a use after free */
bool buffer_free(Lower *L, Span at, Value *v);
u32 buffers_open(const Lower *L);                                    /* a scope begins */
void buffers_close(Lower *L, u32 mark, const Val *result);           /* it ends: free what it made and result does not hold */
void buffers_check(Lower *L, Func *f);                               /* at the end of a kernel: waits and copies */
/* Why a part of a buffer of these extents cannot begin there, or NULL. */
const char *view_error(Lower *L, const Type *t, const i64 *start, const u32 *shape);

/* ---- builtin_wgmma.c ---- */
void wgmmas_check(Lower *L, Func *f);                                /* accumulators under way, and what products read, over the kernel */

/* ---- layouts.c ---- */
typedef struct LayoutUse { const Layout *layout; u32 pad_every, pad; } LayoutUse;
/* The layout for registers (shared: for a buffer) of these extents; false after reporting. warps 0: as many as it has. */
bool layout_use(Lower *L, Span at, const LayoutSpec *s, const Type *t, u32 warps, bool shared, LayoutUse *out);
Value *layout_apply(Lower *L, Call *c, u32 i, Value *x);              /* x as argument i (may be absent) wants it; NULL after reporting */

/* ---- value.c ---- */
enum { NUM_INT = DT_ALL, NUM_FLOAT };                              /* "dtype" of untyped literals */
static inline Val val_poison(Span at) { return (Val){.kind = V_POISON, .span = at}; }
static inline Val val_void(Span at) { return (Val){.kind = V_VOID, .span = at}; }
static inline Val val_ir(Value *v, Span at) { return (Val){.kind = V_IR, .span = at, .ir = v}; }
static inline Val val_const(Const k, Span at) { return (Val){.kind = V_CONST, .span = at, .k = k}; }
static inline Val val_type(const Type *t, Span at) { return (Val){.kind = V_TYPE, .span = at, .type = t}; }
static inline bool val_is_data(Val v) { return v.kind == V_IR || v.kind == V_CONST; }
static inline bool val_is_tile(Val v) { return v.kind == V_IR && type_is_tile(v.ir->type); }
static inline const Type *val_tile_type(Val v) { return val_is_tile(v) ? v.ir->type : NULL; }
static inline bool val_is_ptr(Val v) { return v.kind == V_IR && type_is_ptr(v.ir->type); }
int val_num(Val v);                                                  /* DType, NUM_INT or NUM_FLOAT; data only, no pointers */
const Type *val_type_of(Lower *L, Val v);                            /* the type v has when nothing else decides */
const char *val_str(Lower *L, Val v);                                /* its type, or what it is, for messages */
Value *val_const_value(Lower *L, Const k, const Type *t);             /* of k, already of its dtype */
Value *val_value(Lower *L, Val v);                                   /* run-time value of v under its own type */
DType num_dtype(Lower *L, int num, const Const *k);                  /* i32, i64 or f32 for literals */
bool val_same(Val a, Val b);                                         /* known to be one and the same thing */
Val val_list(Lower *L, ValKind kind, u32 n, Span span);               /* a tuple or list of n items, to be filled in */
Val val_copied(Lower *L, Val v);                                     /* v with parts of its own: values may share theirs */
void val_parts(Lower *L, Val v, Values *out);                        /* the run-time values in v, in order */
Val val_with_parts(Lower *L, Val v, Value *const **next);            /* v with these in their place, taken one by one */

u64 value_divisor(const Value *v, u32 depth);                        /* what a scalar is known to be a multiple of; 0: it is 0. depth: 0 */

/* ---- truncation.c ---- */
Span const_truncation(Lower *L, Oper op, Span span, Const a, Const b);
bool const_keeps_remainder(Lower *L, Val v, DType to);
bool value_keeps_remainder(Lower *L, Span at, Value *cast);
void truncation_recheck(Lower *L, u32 mark);

/* ---- broadcast.c ---- */
bool shape_check(Lower *L, Span at, u32 rank, const u32 *shape);
bool shape_broadcasts_to(const Type *from, const Type *to);
Value *value_broadcast(Lower *L, Value *x, const Type *shape);       /* to shape's extents; must be possible */
/* Common shape of n values in vals (NULL: absent): broadcast all to it. False after reporting. */
bool values_broadcast(Lower *L, Span at, const char *what, u32 n, Value **vals, const Val *origin);

/* ---- convert.c ---- */
bool val_need_data(Lower *L, Val v, const char *what);               /* reports unless v is a number, bool or pointer */
Val val_need_type(Lower *L, Val v);                                  /* v, or poison after reporting that it is no type */
bool const_promote(Lower *L, Val v, int num, Const *out);            /* a constant brought to num; reports if it does not fit */
Value *val_as(Lower *L, Val v, DType dt, const Type *like);          /* converted; literals must fit: NULL after reporting */
Val val_cast(Lower *L, Span at, Val v, DType to, const char *round, bool sat);       /* explicit cast */
int num_promote(int a, int b);
Value *value_cast(Lower *L, Value *x, DType to);
/* v as an initialiser of something of type t: literals adapt (and stay constants), scalars fill tiles. */
Val val_assign(Lower *L, Span at, Val v, const Type *t, const char *what, Span declared);
Value *value_index(Lower *L, Value *x, Value *mask, u32 n);           /* x as i32, from 0 to n - 1 where mask */

/* ---- consteval.c ---- */
Const const_int(i64 v);
Const const_bool(bool v);
Const const_typed(DType dt, i64 i, double f);
bool const_is_float(Const k);
bool const_is_bool(Const k);
double const_double(Const k);
Const const_limit(DType dt, bool largest);                           /* least or largest finite value */
Const const_from_bits(DType dt, u64 bits);
bool const_equal(Const a, Const b);
bool const_fits(Const k, DType dt);                                  /* an integer literal in an integer type */
bool const_cast(Const k, DType dt, FloatRound r, bool sat, Const *out);   /* explicit conversion; false: value not representable at all */
/* False on overflow or division by zero: *why in words. */
bool const_binary(Arena *arena, Oper op, Const a, Const b, Const *out, const char **why);
bool const_unary(Arena *arena, Oper op, Const x, Const *out, const char **why);
bool const_math(OpCode op, u32 n, const Const *x, Const *out);       /* a SURFACE op of constants; false: not folded */
const char *const_str(Lower *L, Const k);
Value *const_value(Lower *L, Const k, const Type *t);                /* t scalar or tile, k already of its dtype */
u64 const_bits(Const k, DType dt);

/* ---- builtins: lower_call.c binds the arguments, builtin_*.c do the work ---- */
enum { BUILTIN_ARGS_MAX = 10 };
struct Call {
  const Node *node;
  Span span;
  const char *name;
  OpCode op;              /* a SURFACE op called by its own name */
  Val args[BUILTIN_ARGS_MAX];
  bool given[BUILTIN_ARGS_MAX];
  u32 nargs;
};
struct Builtin {
  const char *name;
  const char *params;     /* names in order; `x?` is optional */
  Val (*lower)(Lower *L, Call *c);
  OpCode op;
};
#define BUILTIN(name, params, doc) Val builtin_##name(Lower *L, Call *c);
#include "builtins.def"
#undef BUILTIN
const Builtin *builtin_find(const char *name);
const char *const *builtin_names(Arena *a, u32 *n);
Val builtin_elementwise(Lower *L, Call *c);                          /* any SURFACE op */
bool tiers_wanted(const Lower *L, const Value *exact);
Value *value_tiers(Lower *L, Value *exact, Value *close, Value *rough);
Val tile_part(Lower *L, Call *c);                                    /* view() of a tile */
Val tensor_question(Lower *L, const Call *c, OpCode code, DType answer, u32 axis);   /* of argument 0, a tensor */
Val buffer_permuted(Lower *L, Call *c, const int *perm);             /* perm NULL: argument 1 */
Val buffer_reshaped(Lower *L, Call *c);
/* The part of a tile that begins at start. */
Value *tile_slice(Lower *L, Value *x, const i64 *start, const u32 *shape);
Value *tile_pick(Lower *L, Value *x, int axis, Value *which);

/* Argument i as ... ; false or NULL after reporting (poison stays silent). */
bool call_int(Lower *L, Call *c, u32 i, const char *what, i64 *out);
bool call_bool(Lower *L, Call *c, u32 i, bool absent, bool *out);
bool call_shape(Lower *L, Call *c, u32 i, u32 *rank, u32 *shape);
bool call_axis(Lower *L, Call *c, u32 i, const Type *t, int *axis);
/* A list of n integers (or one integer) of at most `most`; a value of `what`. */
bool call_ints(Lower *L, Call *c, u32 i, const char *what, u32 most, u32 *n, i64 *out);
bool call_perm(Lower *L, Call *c, u32 i, u32 rank, int *perm);
Value *call_buffer(Lower *L, Call *c, u32 i, bool row);              /* one buffer; row: one or a row */
Value *call_tensor(Lower *L, Call *c, u32 i);
/* Argument i as the coordinates of a box of tensor t, an i32 each: a list, or one number. Appended to *out; false after reporting. */
bool call_coordinates(Lower *L, Call *c, u32 i, const Type *t, Values *out);
/* The same of n numbers that are one each of what is named, in what has n dimensions. */
bool call_indices(Lower *L, Call *c, u32 i, u32 n, const char *one, const char *of, Values *out);
Value *call_mbarrier(Lower *L, Call *c, u32 i, bool row);            /* the same of mbarriers */
bool call_mask(Lower *L, Call *c, u32 i, Value **out);               /* i1 data; NULL if not given or all true */
bool call_word(Lower *L, Call *c, u32 i, const char *words, const char *absent, const char **out);
bool call_dtype(Lower *L, Call *c, u32 i, DType *out);
const PackedFormat *call_format(Lower *L, Call *c, u32 i);           /* or a type that packs: i8, u8; i1 stands for u1 */
Value *call_tile(Lower *L, Call *c, u32 i);                          /* a run-time tile */
Value *call_pointer(Lower *L, Call *c, u32 i);
/* A number as an element of memory, which argument 0 leads to: literals adapt, floats become any float, integers any number. NULL after
 * reporting. like: see val_as. */
Value *call_element(Lower *L, Call *c, Val v, DType to, const Type *like);
bool call_truth(Lower *L, Call *c);                                   /* argument 0 is one truth value */
Val call_error(Lower *L, const Call *c, Span at, const char *why);   /* reports `name: why`; poison */
const Type *tile_type_of(Lower *L, const Node *n, const Type *elem);
#endif
