/* ir.h - the tile IR: modules, functions, structured blocks, ops, values, types. Read this first.
 *
 * A Func is a kernel: one Block whose arguments are the parameters. Ops are in a doubly linked list; `for`, `while`,
 * `if`, `reduce` and `map` hold blocks (regions of exactly one block). A Value is an op's result or a block's argument.
 * Use lists are kept up to date by op_set_operand and value_replace_uses. What ops exist is in ops.def.
 *
 * A module goes through three phases: `tile` (tile types without layouts), `placed` (every tile type has a layout),
 * `sched` (conversions planned, scratch memory assigned, barriers explicit). The verifier knows the phase.
 */
#ifndef TILEC_IR_H
#define TILEC_IR_H
#include "base.h"
#include "layout.h"
#include "target.h"

/* ---- types ---- */
typedef enum DType {
#define DTYPE(id, name, bits, cls, e, m, doc) DT_##id,
#include "dtypes.def"
#undef DTYPE
  DT_COUNT,             /* types of values */
  DT_OPAQUE = DT_COUNT - 1,
#define OPAQUE(id, name, bits, doc) DT_##id,
#include "dtypes.def"
#undef OPAQUE
  DT_ALL
} DType;
typedef enum DClass { DC_B, DC_I, DC_U, DC_F, DC_X } DClass;   /* X: opaque */
typedef struct DTypeInfo { const char *name; u8 bits; u8 cls; u8 exp, man; const char *doc; } DTypeInfo;
extern const DTypeInfo dtype_info[DT_ALL];
bool dtype_find(const char *name, DType *out);                      /* of values */
bool dtype_find_opaque(const char *name, DType *out);
static inline u32 dtype_bits(DType d) { return dtype_info[d].bits; }
static inline u32 dtype_bytes(DType d) { return d == DT_I1 ? 1 : dtype_info[d].bits / 8u; }
static inline bool dtype_is_float(DType d) { return dtype_info[d].cls == DC_F; }
static inline bool dtype_is_int(DType d) { return dtype_info[d].cls == DC_I || dtype_info[d].cls == DC_U; }
static inline bool dtype_is_opaque(DType d) { return dtype_info[d].cls == DC_X; }
static inline bool dtype_is_signed(DType d) { return dtype_info[d].cls == DC_I; }

/* SHARED: what shared_alloc makes, and views of it. TENSOR: a parameter of a kernel, of elements that lie in strides, or what tensor_of
 * makes of a pointer */
typedef enum TypeKind { TY_SCALAR, TY_PTR, TY_TILE, TY_SHARED, TY_TENSOR } TypeKind;
typedef struct Type Type;
struct Type {
  TypeKind kind;
  DType dt;                 /* SCALAR: itself; PTR: the pointee; TILE: the element's dtype or pointee */
  bool ptr;                 /* TILE of pointers */
  bool pending;             /* TILE: an accumulator to which products under way add: no value before its wgmma_wait */
  u8 rank;                  /* TILE, TENSOR: 1..MAX_RANK */
  u32 shape[MAX_RANK];      /* logical extents, any positive number */
  /* TILE: NULL before placement. SHARED: where an element lies; covers alloc_shape; may be NULL before placement. */
  const Layout *layout;
  /* SHARED: a buffer in shared memory, a row of them, or a part of either. */
  u32 count;                /* buffers in a row, of which shared_index picks one; 0: one buffer, not a row */
  u32 alloc_shape[MAX_RANK];/* extents of the whole buffer that this views; slices are smaller */
  u32 pad_every, pad;       /* after every pad_every elements of offset, pad elements are left out; 0, 0: none. A power of two */
  u32 cut;                  /* memory holds this many elements of offset, layout_reach or more: accesses past it do not happen; 0: all */
};
/* Interned: equal types are equal pointers. */
const Type *type_scalar(Ctx *c, DType d);
const Type *type_ptr(Ctx *c, DType pointee);
const Type *type_tile(Ctx *c, const Type *elem, int rank, const u32 *shape, const Layout *l);
/* A shared buffer (count 0) or a row of count of them; alloc_shape NULL: the same as shape. */
const Type *type_shared(Ctx *c, DType d, u32 count, int rank, const u32 *shape, const u32 *alloc_shape, const Layout *l,
                        u32 pad_every, u32 pad);
/* The type of a view of a buffer or row of type t: these extents, that layout; dtype, padding and what is cut are t's. */
const Type *type_shared_view(Ctx *c, const Type *t, u32 count, int rank, const u32 *shape, const u32 *alloc_shape, const Layout *l);
const Type *type_shared_cut(Ctx *c, const Type *t, u32 cut);
const Type *type_tensor(Ctx *c, DType d, int rank);
u32 type_shared_elements(const Type *t);                            /* of offset that memory holds, pad not counted; cut: whole 16 bytes */
enum { SHARED_ALIGN = 128 };                                        /* where buffers begin */
/* Bytes from one buffer of a row to the next, padding included: a multiple of SHARED_ALIGN; mbarriers stand side by side. */
u32 type_shared_stride(const Type *t);
u64 type_shared_bytes(const Type *t);                               /* of the buffer, or of the whole row: a multiple of SHARED_ALIGN */
const Type *type_elem(Ctx *c, const Type *t);                       /* scalar or pointer; t itself if not a tile */
const Type *type_with_elem(Ctx *c, const Type *t, const Type *elem);/* same shape and layout, other element; a scalar t gives elem */
const Type *type_with_layout(Ctx *c, const Type *t, const Layout *l);
const Type *type_pending(Ctx *c, const Type *t, bool pending);      /* tile t as an accumulator under way, or as a value */
const Type *type_i1_like(Ctx *c, const Type *t);
static inline bool type_is_tile(const Type *t) { return t->kind == TY_TILE; }
static inline bool type_is_shared(const Type *t) { return t->kind == TY_SHARED; }
static inline bool type_is_tensor(const Type *t) { return t->kind == TY_TENSOR; }
static inline bool type_is_ptr(const Type *t) { return t->kind == TY_PTR || (t->kind == TY_TILE && t->ptr); }  /* or tile of */
static inline bool type_is_number(const Type *t) { return !type_is_ptr(t) && t->kind <= TY_TILE; }   /* or tile of them */
static inline bool type_is_float(const Type *t) { return type_is_number(t) && dtype_is_float(t->dt); }
static inline bool type_is_int(const Type *t) { return type_is_number(t) && dtype_is_int(t->dt); }
static inline bool type_is_bool(const Type *t) { return type_is_number(t) && t->dt == DT_I1; }
bool type_same_shape(const Type *a, const Type *b);                 /* both scalars, or tiles of equal extents */
u32 type_numel(const Type *t);                                      /* logical elements; 1 for scalars */
u32 type_padded_numel(const Type *t);                               /* with extents padded to powers of two */
/* Row-major order is the same in the padded index space of both tiles, so a layout carries over: of dimensions that hold the same elements
 * on both sides only the outermost may be padded. */
bool type_reshape_is_linear(const Type *a, const Type *r);
u32 type_elem_bits(const Type *t);                                  /* 64 for pointers, 1 for i1 */
u32 type_elem_bytes(const Type *t);                                 /* in memory: 8 for pointers, 1 for i1 */
bool type_padded(const Type *t);                                    /* some extent is not a power of two */
enum { TILE_MAX_NUMEL = 1 << 20 };                                  /* most elements of a tile, extents padded to powers of two */
/* NULL if a tile may have these extents, else what is wrong (in scratch). */
const char *type_shape_error(Ctx *c, int rank, const u32 *shape);
void type_print(Buf *b, const Type *t, int alias);                  /* type_str's spelling; alias >= 0: the layout's name, "f32[64, #2]" */
const char *type_str(Ctx *c, const Type *t);                        /* "f32", "*f32", "f32[128, 64]": the language's spelling, no layout */

/* ---- tensor-core instructions: rows of mma.def ---- */
typedef struct Mma { const char *name; Feature feature; DType factor[2], acc; u32 m, n, k, words[3];
  const char *intrinsic; bool sparse; } Mma;
const Mma *mma_at(u32 i);                                           /* NULL past the end */
const Mma *mma_find(const char *name, DType acc);                   /* NULL if there is none */
/* The first with these types that the target has; NULL if it has none. */
const Mma *mma_for(const Target *t, bool sparse, DType a, DType b, DType acc);
/* What a dot multiplies: one type, or either kind of 8-bit float by the other, either signedness of 8-bit integer likewise. */
bool dot_factors_fit(DType a, DType b);
bool dot_sum_fits(DType factor, DType sum);                         /* and what it may add up in */

/* ---- ops ---- */
typedef enum OpCode {
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) OP_##id,
#include "ops.def"
#undef OP
  OP_COUNT
} OpCode;
typedef enum OpRule { RULE_SAME, RULE_CMP, RULE_SELECT, RULE_CUSTOM } OpRule;
enum OpTrait {
  T_PURE = 1, T_COMM = 2, T_ELEM = 4, T_READS = 8, T_WRITES = 16, T_SIDE = 32, T_TERM = 64, T_SURFACE = 128,
  T_INT = 256, T_FLT = 512, T_BOOL = 1024, T_SYNC = 2048, T_EXCHANGE = 4096,
  T_NUM = T_INT | T_FLT, T_BITS = T_INT | T_BOOL
};
/* What an op does to memory through an operand: a sum of these. */
enum OpEffect {
  FX_READ = 1, FX_WRITE = 2,
  FX_ASYNC = 4,         /* not done when the op is: it goes on until the wait that covers it */
  FX_VIEW = 8,          /* nothing: the result is the same memory, or a part of it */
  FX_FREE = 16,         /* the buffer ends */
  FX_ORDER = 32,        /* it arrives or waits at the mbarrier there */
  FX_PROXY = 64,        /* through the async proxy: the buffer lies in panels (layout_panels) */
  FX_ABOUT = 128        /* nothing: what is known of it is asked */
};
enum { MANY = 255, OPERANDS_NAMED = 6 };   /* MANY: any number of operands, results or regions; most operands with names */
/* Operands by their names in ops.def: SLOT(LOAD, mask) is a constant, OPERAND(op, LOAD, mask) the value there, NULL if it is
 * absent. The slot of a name for any number of operands is that of the first. */
#define ARG(name, effect, presence) char name;
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) struct id##_slots { operands char end; };
#include "ops.def"
#undef OP
#undef ARG
enum { NO_SLOT = INT32_MAX };
#define SLOT(id, name) ((u32)offsetof(struct id##_slots, name))
#define OPERAND(op, id, name) op_operand(op, SLOT(id, name))
/* For who expands ops.def: the operands as text, "p mask? other?". Define ARG as ARG_TEXT there. */
#define ARG_TEXT(name, effect, presence) " " #name ARG_MARK_##presence
#define ARG_MARK_ONE ""
#define ARG_MARK_MAYBE "?"
#define ARG_MARK_MANY "*"
#define OPERANDS_TEXT(operands) (&("" operands)[sizeof("" operands) > 1])
typedef enum AttrKind { AK_INT, AK_FLOAT, AK_STR, AK_TYPE, AK_INTS, AK_LAYOUT } AttrKind;
typedef enum AttrId {
#define ATTR(id, name, kind, doc) AT_##id,
#include "attrs.def"
#undef ATTR
  AT_COUNT
} AttrId;
typedef struct AttrInfo { const char *name; u8 kind; const char *doc; } AttrInfo;
extern const AttrInfo attr_info[AT_COUNT];
typedef struct Attr {
  AttrId id;
  union { i64 i; double f; const char *s; const Type *type; struct { const i64 *v; u32 n; } ints; const Layout *layout; };
} Attr;

typedef struct OpInfo {
  const char *name, *operands, *attrs;   /* operands: "p mask? other?" */
  u8 nresults, regions, rule;            /* MANY: any number */
  u32 traits;
  const char *doc;
  u8 min_operands, max_operands;         /* MANY: any number. Absent optional operands are NULL in their slot */
  const u8 *effect;                      /* by slot, up to max_operands: OpEffect */
} OpInfo;
const OpInfo *op_info(OpCode op);
bool op_find(const char *name, OpCode *out);

/* Ops that are alike name operands alike, and one may speak of all: OPERAND(op, BINARY, a). Of one operand; of two; through a
 * pointer; on a buffer. (tests/unit/tables_test.c holds the rows to it.) */
struct UNARY_slots { char x; };
struct BINARY_slots { char a, b; };
struct POINTER_slots { char p; };
struct BUFFER_slots { char b; };

typedef struct Value Value;
typedef struct Op Op;
typedef struct Block Block;
typedef struct Func Func;
typedef struct Module Module;

typedef struct Use { Value *value; Op *user; struct Use *next, **prev; } Use;  /* one operand slot */
struct Value {
  const Type *type;
  Op *def;              /* NULL for block arguments */
  Block *block;         /* block arguments: whose */
  u32 index;            /* which result, which argument */
  u32 id;               /* dense in the Func: index side tables by it (func->nvalues) */
  Use *uses;
  const char *name;     /* hint for printing, or NULL */
};
struct Op {
  OpCode code;
  Span span;
  u32 noperands, nresults, nattrs, nregions;
  Use *operands;        /* operands[i].value; NULL value: absent */
  Value **results;
  Attr *attrs;          /* by rising id */
  Block **regions;
  Block *block;         /* where it stands; NULL when removed */
  Op *prev, *next;
  u32 mark;             /* scratch for passes */
};
struct Block {
  Value **args; u32 nargs;
  Op *first, *last;
  Op *parent;           /* op whose region this is; NULL: the function body */
  Func *func;
};
/* What the code relies on about a pointer parameter: nothing, that it is not null, that it is (then nothing uses it). */
typedef enum ParamNull { PARAM_ANY, PARAM_NONNULL, PARAM_NULL } ParamNull;
/* What is known, and relied upon, of a parameter. Two pointers reach different memory unless their `same` agrees; `apart` has a bit
 * for each earlier parameter of which that was relied upon: barriers between accesses were left out. */
typedef struct ParamInfo {
  u32 divisible;        /* value (address for pointers) is a multiple; 1: any */
  u32 same;             /* the first parameter that is the same pointer: its own index if there is none before it */
  ParamNull null;
  bool nonneg;          /* an integer that is not negative */
  u32 pitch;            /* a tensor's strides, but the last, are multiples of so many elements; 0: of any number */
  u64 apart;
} ParamInfo;
/* What a kernel may choose itself; AUTO: as the compiler finds best. */
typedef enum KernelChoice { CHOICE_AUTO, CHOICE_ON, CHOICE_OFF } KernelChoice;
enum { APART_MAX = 64 };   /* parameters from here on are taken to reach what any other does */
struct Func {
  const char *name;
  Module *module;
  Span span;
  Block *body;          /* arguments are the parameters */
  /* Of a program, all together, up to 32: a power of two unless there is a warp_specialize. Who wants those of a block asks block_team. */
  u32 warps;
  bool warps_told;      /* the program was told how many, and may depend on it */
  u32 max_registers;    /* of a thread; 0: no limit */
  u32 cluster[3];       /* programs of a cluster along each axis of the grid: 1, 1, 1 where the kernel has none */
  const char *grid;     /* how many programs a launch has (runtime/grid.h); NULL: the launch says it */
  u32 persistent;       /* as many programs a multiprocessor as this at most are started, and do what those of the grid do; 0: all are */
  bool leaves;          /* programs do not stay: passes leave `persistent` 0 */
  KernelChoice roles;         /* a team that copies for the others (passes/roles.c) */
  KernelChoice pingpong;      /* two teams multiply by turns, each has tiles of its own (passes/pingpong.c) */
  KernelChoice box_stores;    /* stores through pointers go as boxes of tensors where they are such (passes/find_tensors.c) */
  u32 min_blocks;       /* programs that must fit on a multiprocessor at a time: a limit to registers; 0: no limit */
  ParamInfo *params;    /* beside the body's arguments */
  u32 shared_bytes;     /* set by alloc_shared */
  u32 nvalues;
};
/* The warps that run a block together: they hold its tiles, meet at its barriers and agree on its scalars. All warps of the program run
 * its body; a region of a warp_specialize, and what is in it, belongs to a part of them. */
typedef struct Team {
  u32 first, warps;     /* of the program's, by number */
  u32 registers;        /* of a thread at most; 0: what the target gives one */
  const Op *op;         /* the warp_specialize; NULL: the program's team */
  u32 part;             /* which of its regions */
} Team;
enum { PENDING_MOST = 64 };  /* groups of copies, and products, that a wait may leave under way */
enum { TEAMS_MAX = 15 };   /* regions of a warp_specialize: a block has 16 barriers, one of which is everybody's */
typedef enum Phase { PHASE_TILE, PHASE_PLACED, PHASE_SCHED } Phase;
struct Module {
  Ctx *ctx;
  Phase phase;
  const char *after;    /* the pass that ran last ("dce.2"), or (by_hand) passes without what follows; NULL: none of this phase */
  bool by_hand;
  Span after_span;      /* where the text says so */
  VEC(Func *) funcs;
};

Module *module_new(Ctx *c);
Func *func_new(Module *m, const char *name, Span at);               /* no parameters, 4 warps, empty body */
Value *func_add_param(Func *f, const Type *t, const char *name, u32 divisible);
const char *func_param_name(const Func *f, u32 i, Arena *a);         /* as manifests have it */
void func_same_params(Func *f, u32 i, u32 k);
Block *block_new(Func *f, Op *parent);
Value *block_add_arg(Block *b, const Type *t, const char *name);

/* ---- building: a Builder is an insertion point ---- */
typedef struct Builder { Func *func; Block *block; Op *before; Span span; } Builder;  /* before NULL: at the end */
Builder builder_at_end(Func *f, Block *b);
Builder builder_before(Op *op);
Builder builder_after(Op *op);
/* General form: makes and inserts. operands may hold NULL for absent. result_types has nresults entries.
 * The regions are made too: empty blocks without arguments. */
Op *op_create(Builder *b, OpCode code, u32 noperands, Value *const *operands, u32 nresults, const Type *const *result_types, u32 nregions);
/* Typed forms; result types derived. Elementwise: type of the first operand. */
Value *ir_unary(Builder *b, OpCode code, Value *x);
Value *ir_binary(Builder *b, OpCode code, Value *x, Value *y);
Value *ir_fma(Builder *b, Value *x, Value *y, Value *z);
Value *ir_cmp(Builder *b, const char *pred, Value *x, Value *y);
Value *ir_select(Builder *b, Value *cond, Value *x, Value *y);
Value *ir_const_bits(Builder *b, const Type *t, u64 bits);           /* t scalar or tile: bits of one element */
Value *ir_const_int(Builder *b, const Type *t, i64 v);               /* integer or i1 types */
Value *ir_const_float(Builder *b, const Type *t, double v);          /* rounded to the element type, to nearest even */
Value *ir_arange(Builder *b, i64 start, i64 end);
Value *ir_program_id(Builder *b, int axis);
Value *ir_num_programs(Builder *b, int axis);
Value *ir_splat(Builder *b, Value *x, const Type *tile);             /* tile type gives shape (and layout); element from x */
Value *ir_broadcast(Builder *b, Value *x, const u32 *shape);
Value *ir_expand_dims(Builder *b, Value *x, int axis);
Value *ir_reshape(Builder *b, Value *x, int rank, const u32 *shape);
Value *ir_permute(Builder *b, Value *x, const int *perm);
Value *ir_cast(Builder *b, Value *x, DType to);                      /* x itself if already so */
Value *ir_bitcast(Builder *b, Value *x, const Type *elem);
/* Is there an index of a loop up to hi that lies `ahead` steps (1 or more, each above 0) behind i, which is one? */
Value *ir_goes_on(Builder *b, Value *i, Value *hi, Value *step, u32 ahead);
Value *ir_bounded(Builder *b, Value *x, Value *mask, i64 extent);    /* mask may be NULL */
Value *ir_addptr(Builder *b, Value *p, Value *off);
Value *ir_load(Builder *b, Value *p, Value *mask, Value *other);     /* mask, other may be NULL */
Op *ir_store(Builder *b, Value *p, Value *v, Value *mask);
Value *ir_dot(Builder *b, Value *x, Value *y, Value *acc);
Value *ir_dot_sparse(Builder *b, Value *x, Value *meta, Value *y, Value *acc);
Value *ir_convert_layout(Builder *b, Value *x, const Layout *l);
Op *ir_yield(Builder *b, u32 n, Value *const *xs);
/* Loops and ifs: regions come with their arguments made, empty otherwise (add the terminator). */
Op *ir_for(Builder *b, Value *lo, Value *hi, Value *step, u32 n, Value *const *inits);  /* region 0 args: i, carried */
Op *ir_while(Builder *b, u32 n, Value *const *inits);
Op *ir_if(Builder *b, Value *cond, u32 n, const Type *const *result_types);
Op *ir_warp_specialize(Builder *b, u32 n, const i64 *warps);         /* n regions of so many warps each */
/* Empty combine region with 2n scalar args (a..., b...); add the combine ops and a yield of n. */
Op *ir_reduce(Builder *b, u32 n, Value *const *xs, int axis);
Op *ir_scan(Builder *b, u32 n, Value *const *xs, int axis, bool reverse, bool exclusive);   /* results have the operands' types */
Value *ir_combine(Builder *b, Op *fold, OpCode code);                /* fill the region of a fold of one tile: code of both; its result */
/* Empty region with an element of each tile; add the ops, a yield, and a result for each of its values (map_add_result). */
Op *ir_map(Builder *b, u32 n, Value *const *xs);
Value *map_add_result(Op *map, const Type *elem);                    /* the tile of these elements */

/* Shared memory. A buffer type without a layout gets one in assign_layout. */
Value *ir_shared_alloc(Builder *b, const Type *buffer);
Value *ir_shared_index(Builder *b, Value *buffers, Value *i);        /* i32; out of range is an error */
Value *ir_shared_slice(Builder *b, Value *buffer, const i64 *start, const u32 *shape);
Value *ir_shared_permute(Builder *b, Value *buffer, const int *perm);
Value *ir_shared_load(Builder *b, Value *buffer, const Type *tile);  /* tile gives the layout; its shape and dtype are the buffer's */
Op *ir_shared_store(Builder *b, Value *buffer, Value *tile);
Op *ir_async_copy(Builder *b, Value *buffer, Value *p, Value *mask); /* mask may be NULL */
Op *ir_async_commit(Builder *b);
Op *ir_async_wait(Builder *b, u32 pending);
/* Products of warpgroups. The accumulator is under way, as the result is. */
Value *ir_pending(Builder *b, Value *x);
Value *ir_wgmma(Builder *b, Value *x, Value *meta, Value *y, Value *acc);   /* meta: of a sparse one, else NULL */
Op *ir_wgmma_wait(Builder *b, u32 n, Value *const *xs, u32 pending); /* results: xs as values */

/* ---- attributes ---- */
Attr *op_attr(const Op *op, AttrId id);                              /* NULL if absent */
i64 op_int(const Op *op, AttrId id, i64 absent);
const char *op_str(const Op *op, AttrId id, const char *absent);
void op_set_int(Op *op, AttrId id, i64 v);
void op_set_str(Op *op, AttrId id, const char *s);                   /* interned */
u32 op_u32s(const Op *op, AttrId id, u32 *out);                       /* an INTS attribute's first MAX_RANK numbers; how many there are */
void op_set_ints(Op *op, AttrId id, const i64 *v, u32 n);            /* copied */
void op_set_attr(Op *op, Attr a);                                    /* any kind; not copied */
void op_remove_attr(Op *op, AttrId id);
void op_copy_attr(Op *op, const Op *from, AttrId id);                 /* if it has that */
void op_copy_attrs(Op *op, const Op *from);                          /* all of them, over those of the same id */
/* May an INT attribute have this value? *least and *most: the range (where a message says so, powers of two in it). */
bool attr_allows(AttrId id, i64 value, i64 *least, i64 *most);
const char *attr_rmw_words(void);                                    /* "add max min and or xor xchg" */
bool rmw_find(const char *name, OpCode *op);                         /* the binary op of one of these; OP_COUNT: exchange */
/* The bits of the element that changes nothing: code(x, it) is x. False if code has none. A nan where a number wins against it. */
bool op_identity(OpCode code, DType d, u64 *bits);
/* Whether the region of a reduce or scan is one op that has such an element, and which. */
bool op_folds_by(const Op *fold, OpCode *code);

/* ---- editing ---- */
static inline Value *op_operand(const Op *op, u32 i) { return i < op->noperands ? op->operands[i].value : NULL; }
static inline Value *op_result(const Op *op) { return op->results[0]; }
void use_link(Use *u, Value *v);                                     /* u is in no list; v may be NULL */
void op_set_operand(Op *op, u32 i, Value *v);
void op_add_operand(Op *op, Value *v);                               /* at the end (variadic) */
void op_remove_operand(Op *op, u32 i);
Value *op_add_result(Op *op, const Type *t);
Block *op_add_region(Op *op);                                        /* an empty block, behind the others */
void op_remove_result(Op *op, u32 i);                                /* must be unused */
void block_remove_arg(Block *b, u32 i);                              /* must be unused */
void op_remove(Op *op);                                              /* results must be unused; regions go with it */
void op_move_before(Op *op, Op *where);
void op_move_to_end(Op *op, Block *b);
void value_replace_uses(Value *old, Value *with);
static inline bool value_unused(const Value *v) { return !v->uses; }
u32 value_use_count(const Value *v);
/* Deep copy at the insertion point; map[value id] gives replacements (NULL: itself) and receives the new results.
 * map must have room for func->nvalues at the time of the call; new ids are not entered. */
Op *op_clone(Builder *b, const Op *op, Value **map);
/* The same op, which has no regions, with its attributes on other operands; as many results as it has, of these types. */
Op *op_like(Builder *b, const Op *op, u32 noperands, Value *const *operands, const Type *const *result_types);
bool op_is(const Value *v, OpCode code);                             /* v is a result of such an op */
bool value_const_bits(const Value *v, u64 *bits);                    /* v is a CONST, or SPLAT of one */
bool value_const_int(const Value *v, i64 *out);                      /* sign- or zero-extended by its dtype */
static inline bool value_is_one(const Value *v) { i64 n; return value_const_int(v, &n) && n == 1; }
bool op_has(const Op *op, u32 traits);                               /* all of them */
static inline bool op_is_dot(const Op *op) { return op->code == OP_DOT || op->code == OP_DOT_SPARSE; }
static inline Value *dot_a(const Op *dot) { return op_operand(dot, 0); }                                 /* operands of either kind */
static inline Value *dot_meta(const Op *dot) { return dot->code == OP_DOT_SPARSE ? op_operand(dot, 1) : NULL; }
static inline Value *dot_b(const Op *dot) { return op_operand(dot, dot->noperands - 2u); }
static inline Value *dot_acc(const Op *dot) { return op_operand(dot, dot->noperands - 1u); }
static inline bool op_is_fold(const Op *op) { return op->code == OP_REDUCE || op->code == OP_SCAN; }  /* has a combine region */
static inline bool op_on_elements(const Op *op) { return op_is_fold(op) || op->code == OP_MAP; }  /* its region works on single elements */
static inline bool op_is_loop(const Op *op) { return op->code == OP_FOR || op->code == OP_WHILE; }
bool op_inside(const Op *op, const Op *ancestor);                    /* in a region of ancestor, at any depth */
u32 block_loop_depth(const Block *b);                                /* number of for and while ops around */
bool loop_is_staged(const Op *op);                                   /* a `for` whose loads are to be started ahead; NULL is none */
const Op *op_loop_around(const Op *op);                              /* the innermost; NULL: none */
/* What a tile of i32 is divided by, if that is a number that is the same in all iterations of the loop around, which has none in it, and is
 * no constant; else NULL. */
const Value *op_divides_by_same(const Op *op);
const Block *value_block(const Value *v);                            /* where it is made */
bool value_inside(const Value *v, const Block *b);                   /* made in b, or in a region in it */
bool value_within(const Value *v, const Op *op);                     /* made in a region of op, at any depth */
Op *block_terminator(const Block *b);
static inline Op *region_end(const Op *op, u32 r) { return block_terminator(op->regions[r]); }
/* Carried value k of a `for` or `while` has five places: an initial value, an argument of each region, an operand of each region's
 * terminator, a result. The first of them is at: */
static inline u32 loop_first_init(const Op *loop) { return loop->code == OP_FOR ? SLOT(FOR, inits) : SLOT(WHILE, inits); }
static inline u32 loop_first_arg(const Op *loop) { return loop->code == OP_FOR ? 1 : 0; }   /* behind the counter */
static inline u32 yield_first(const Op *end) { return end->code == OP_CONDITION ? SLOT(CONDITION, xs) : SLOT(YIELD, xs); }
static inline Value *loop_counter(const Op *loop) { return loop->regions[0]->args[0]; }      /* of a `for` */
static inline Value *loop_init(const Op *loop, u32 k) { return op_operand(loop, loop_first_init(loop) + k); }
bool loop_carries(const Op *loop, const Value *v, u32 *k);            /* v is region 0's argument for carried value *k */
static inline Value *loop_arg(const Op *loop, u32 r, u32 k) { return loop->regions[r]->args[loop_first_arg(loop) + k]; }
/* Value k that region r hands on: a carried value (from the last region to the next iteration), or a result of an `if`. */
static inline Value *
region_yields(const Op *op, u32 r, u32 k)
{
  const Op *end = region_end(op, r);
  return op_operand(end, yield_first(end) + k);
}
static inline Value *loop_next(const Op *loop, u32 k) { return region_yields(loop, loop->nregions - 1, k); }
/* Visit every op of f, parents before children, in program order; the callback may remove the op it is given. */
void func_walk(Func *f, void (*fn)(Op *op, void *user), void *user);
void block_walk(Block *b, void (*fn)(Op *op, void *user), void *user);
bool func_has(const Func *f, OpCode code);                            /* an op of this kind */

/* ---- team.c ---- */
Team block_team(const Block *b);
const Op *func_teams(const Func *f);                                 /* its warp_specialize; NULL: it has none */
/* Two ops of different regions that reach the same elements of a buffer, one of them writing, where no mbarrier can order the two. */
typedef struct TeamClash { const Op *op[2]; u32 region[2]; bool writes[2]; } TeamClash;
bool team_clash(Arena *a, const Op *teams, TeamClash *out);          /* team_order.c; false: there are none for sure */
/* An mbarrier somebody waits for, whose phases end with more arrivals than the kernel makes in all. Arrivals in loops, and those of other
 * programs of a cluster, are any number. */
typedef struct ArrivalsShort { const Op *init, *wait; u32 wanted, made; } ArrivalsShort;
bool arrivals_short(const Func *f, ArrivalsShort *out);             /* team_order.c; false: there is none for sure */
/* What a run when compiling finds (rehearse.c). STUCK: teams that wait for ever, for the end of a phase in which `arrived` of `wanted`
 * arrivals come, and `bytes` announced do not (negative: more than that do), at mbarrier `slot` of a row of `slots` (0: no row).
 * OVERTAKES: a team writes a buffer that another has read and may still be reading. team: NONE_TEAM where the kernel has none. */
enum { REHEARSALS = 3, NONE_TEAM = UINT32_MAX };
typedef struct TeamWait { const Op *op; u32 team, slot, slots, wanted, arrived; u64 phase; i64 bytes; } TeamWait;
typedef struct Rehearsal {
  enum { REHEARSED_WELL, REHEARSED_STUCK, REHEARSED_OVERTAKES } found;
  bool guessed;                       /* it is so for all of the numbers that were put for arguments */
  TeamWait waits[TEAMS_MAX + 1];
  u32 nwaits, teams[2], slot, slots;
  const Op *write, *read;
} Rehearsal;
Rehearsal func_rehearse(const Func *f);
i64 rehearsal_argument(u32 i);                                       /* what rehearsal i puts for integers: rehearse_values.c */
/* What a warp_specialize may say: of so many numbers of warps, and of registers (NULL: none), for each region. NULL, or what is wrong. */
const char *team_numbers_error(Arena *a, u32 n, const i64 *warps, const i64 *registers);
static inline u32 team_threads(Team t) { return t.warps * 32; }

/* ---- walk.c: persistent kernels ---- */
enum { PERSISTENT_MOST = 32 };                                       /* programs that a multiprocessor has room for */
/* A program of f does what several of the grid's do (passes/walk_grid.c): it asks which of those that were started it is. */
bool func_walks(const Func *f);
/* NULL, or why one program cannot do what several of the grid's do, one after the other; *at: where that is, NULL: in the kernel's head. */
const char *func_walk_obstacle(Func *f, const Op **at);

/* ---- cluster.c: programs that run at the same time and reach each other's shared memory ---- */
enum { CLUSTER_PORTABLE = 8 };                                       /* programs of one that every device with clusters has room for */
u32 func_cluster(const Func *f);                                     /* programs of a cluster; 1: there are none */
/* What a kernel may say of its cluster, from 1 to 3 numbers. NULL, or (in a) what is wrong. */
const char *cluster_error(Arena *a, u32 n, const i64 *dims);
/* The shared_remote by which a buffer, or what it is a view of, is another program's; NULL: it is this one's own. */
const Op *buffer_remote(const Value *buffer);
/* NULL, or why op cannot take as operand i a buffer that is another program's. */
const char *cluster_remote_error(const Op *op, u32 i);
/* Programs that a tma_load copies to, by their ranks: a bit for each of those that differ from the one of rank 0 along its axes only. 1:
 * its own alone. step[a]: how far apart in rank neighbours along axis a are, 0 where it does not go. */
u32 cluster_recipients(const Op *load, u32 step[3]);
bool cluster_reaches(const Value *buffer);                           /* other programs have views of it, or of a part of it */
const char *cluster_text(Arena *a, const u32 dims[3]);               /* "2 x 1 x 1" */

/* ---- memory.c: how ops reach memory, from their operands' words in ops.def ---- */
u32 op_slot(OpCode code, const char *name);                          /* of the operand of that name; NO_SLOT: there is none */
u32 op_effect(const Op *op, u32 i);                                  /* through operand i: a sum of OpEffect */
Value *op_pointer(const Op *op);                                     /* through which op reads or writes global memory; NULL: not at all */
Value *op_buffer(const Op *op);                                      /* that op reads, writes, views or frees; NULL: none */
Value *op_tensor(const Op *op);                                      /* that op reads, writes or asks about; NULL: none */
Value *op_mask(const Op *op);                                        /* the operand called so; NULL: everywhere */
u32 op_shared_effects(const Op *op);                                 /* on all its buffers together */
u32 op_global_effects(const Op *op);                                 /* through its pointer */
/* Atomic ops that order other accesses: all threads meet before one that releases acts, and behind one that acquires. */
bool op_releases(const Op *op);
bool op_acquires(const Op *op);
/* The most bytes that one instruction of a thread moves to or from neighbouring addresses of op's tile; an element's: one at a time. */
u32 op_access_bytes(const Op *op, const Target *t);
bool op_orders_teams(const Op *op);                                  /* what other teams do is seen, or seen by them, from there on */
bool op_is_view(const Op *op);                                       /* its result is its buffer's memory, or a part of it */
bool op_uses_shared(const Op *op);                                   /* takes or makes a buffer or orders accesses; regions apart */
/* What is read from memory in front of op may as well be read behind it: op writes nothing, waits for nobody, has no scratch and
 * no control flow. */
bool op_lets_reads_pass(const Op *op);
/* Two stores to one buffer or to buffers of one row, whole or to slices of one size, whose tiles have one layout: what both write, one
 * thread writes, in order. */
bool stores_keep_threads(const Op *a, const Op *b);
bool buffer_in_panels(const Value *buffer);                          /* an op reaches it, or a view of it, through the async proxy */
/* Where the buffer, or row, that a shared_alloc makes may begin: SHARED_ALIGN, or more if its panels' swizzle needs that. */
u32 buffer_align(const Op *alloc);
u32 buffer_bytes(const Op *alloc);                                   /* up to where the next may begin, of the same alignment */
const Op *buffer_alloc(const Value *buffer);                         /* the shared_alloc under all views; in broken IR another op or NULL */
const Op *buffer_whole(const Value *buffer);                         /* what makes it, or the row that it is picked from */

/* ---- tma.c: how boxes of tensors lie in buffers ---- */
/* A buffer is copied piece by piece, an instruction each: panels along the tensor's last dimension, cut into chunks along dimension
 * `along`. All pieces are boxes of the same extents, by the tensor's dimensions. Chunk k of panel i begins i * panel_bytes +
 * k * chunk_bytes behind the buffer, and its first element i * box[rank - 1] along the last dimension, and k * box[along] along that one,
 * behind the box's. */
enum { WINDOW_DIMS = MAX_RANK - 2, WINDOW_MOST = 32767, WINDOW_BITS = 16 };
/* A window over a tensor: along each dimension but the first and the last, pixels go from lower to extent - 1 + upper, by steps. n 0: none.
 * What is loaded through one are rows of channels, one for each pixel. They begin at that of the coordinates, go on along the last of these
 * dimensions, then along those in front of it, then to the next index of the tensor's first; each is shifted by offsets, of
 * WINDOW_BITS / n bits. */
typedef struct TmaWindow { u32 n; i32 lower[WINDOW_DIMS], upper[WINDOW_DIMS], step[WINDOW_DIMS]; } TmaWindow;
/* pixels: of a box that is loaded through the window, 0 of others. */
typedef struct TmaForm {
  u32 rank, box[MAX_RANK], swizzle, panels, panel_bytes, chunks, chunk_bytes, along, pixels;
  TmaWindow window;
} TmaForm;
/* NULL, or (in scratch) why no copies move between a tensor of that rank and a buffer of this type, seen through w. Without a layout: in
 * the one that placement gives such buffers. */
const char *tma_form_error(Ctx *c, const Type *buffer, u32 rank, const TmaWindow *w, TmaForm *out);
/* NULL, or (in a) why no copy begins at that coordinate of the last dimension; of boxes that are seen through no window. */
const char *tma_at_error(Arena *a, DType d, i64 at);
TmaWindow tma_window(const Op *op);                                  /* of an op that loads or prefetches a box */
bool tma_same_window(const TmaWindow *a, const TmaWindow *b);
/* NULL, or (in scratch) why w is no window over a tensor of that rank. */
const char *tma_window_error(Arena *a, const TmaWindow *w, u32 rank);
void tma_copy_window(Op *to, const Op *from);                        /* its attributes */
/* NULL, or what is wrong with a view that is to be a box: where it lies would not be the copy's to choose. */
const char *tma_view_error(const Value *buffer);
/* Of a tensor that tensor_of or tensor_at makes: the pointer, and its extent or (asked: OP_TENSOR_STRIDE) stride along dimension d, of the
 * last none. */
Value *tensor_pointer(const Value *tensor);
Value *tensor_number(const Value *tensor, OpCode asked, u32 d);
bool tensor_is_made(const Value *tensor);                            /* by tensor_at: its map is the kernel's to make */
Value *tensor_map_memory(const Value *tensor);                       /* of a made one: where its map goes; NULL: nowhere */
/* The first op that copies boxes of a made tensor that has a map; NULL: none does. */
const Op *tensor_first_copy(const Value *tensor);
enum { MAP_BYTES = 128 };
bool tma_reduces(const char *rmw, DType d);                          /* tma_store can combine such elements so */
bool atomic_rmw_allowed(const char *rmw, DType d);                   /* op.c: there is such an atomic operation */
/* What interpreters are given of a tensor: its parameter's bits are the address of one. Strides in elements. */
typedef struct InterpTensor { u64 base, extent[MAX_RANK], stride[MAX_RANK]; } InterpTensor;

/* ---- launch_value.c ---- */
/* times * the product of these parameters of the kernel, which are integers, by rising index; from LAUNCH_ASKED on what is asked of a
 * tensor (launch_asked). */
enum { LAUNCH_FACTORS = 3, LAUNCH_ASKED = 1 << 16 };
#define LAUNCH_DIVISIBLE_MOST (UINT64_C(1) << 32)
typedef struct LaunchValue { i64 times; u32 n, param[LAUNCH_FACTORS]; } LaunchValue;
/* False: a launch does not know scalar v before it begins, as far as can be seen. (Its arithmetic is taken not to overflow.) */
bool launch_value(const Value *v, LaunchValue *out);
bool launch_value_times(LaunchValue *v, const LaunchValue *by);      /* false, and v is as it was: too many factors, or too large */
bool launch_value_alike(const LaunchValue *a, const LaunchValue *b); /* products of the same parameters */
bool launch_value_given(const LaunchValue *v);                       /* nothing in it is asked of a tensor */
u64 launch_value_divisible(const Func *f, const LaunchValue *v);     /* a power of two that divides it; LAUNCH_DIVISIBLE_MOST at most */
Value *launch_value_build(Builder *b, const LaunchValue *v);         /* as an i64; it is given */
/* The number for tensor parameter t's extent (OP_TENSOR_EXTENT) or stride along a dimension, beside those of parameters. */
static inline u32
launch_asked(const Value *t, OpCode code, u32 axis)
{
  return (u32)LAUNCH_ASKED + (t->index * 2 + (code == OP_TENSOR_STRIDE)) * MAX_RANK + axis;
}

/* ---- key.c ---- */
/* Appends what a closed region (one that sees its own arguments only) computes, in words of 64 bits: regions of equal keys are the same.
 * numbers: scratch, func->nvalues of them. Keys hold addresses: no order and no output may depend on them. */
void region_key(Buf *out, const Block *b, u32 *numbers);
void key_put(Buf *key, u64 word);
void key_put_attr(Buf *key, const Attr *a);
u64 key_hash(const Buf *key);

/* As if m had been printed and read: values are numbered as they stand, their uses are in that order, marks are 0. What a pass makes of
 * a module then depends on nothing that its text does not say. */
void ir_settle(Module *m);

/* ---- text: print.c, parse.c ---- */
void ir_print(Buf *out, const Module *m, bool locs);
void ir_print_op(Buf *out, const Op *op);                            /* one line, for messages */
/* Reads .tir text starting at source offset base (source_add). NULL after reporting diagnostics. */
Module *ir_parse(Ctx *c, u32 base);

/* ---- number.c: decimal text of floats, whatever the process's locale ---- */
/* The n bytes at s are one decimal number; the text around s is NUL-terminated somewhere. */
bool number_parse(const char *s, size_t n, double *out);
/* Shortest decimal that reads back as the same bits of float type d; bits in hex for nan, infinities and -0. */
void number_print(Buf *b, DType d, u64 bits);

/* ---- verify.c ---- */
/* Reports every broken rule; true if none. */
bool ir_verify(Module *m);

/* ---- consts ---- */
u64 float_to_bits(DType d, double v);                                /* round to nearest even; 8-bit floats saturate (fp.h) */
double float_from_bits(DType d, u64 bits);

/* ---- analysis.c: what is known of integer and pointer values, element by element ---- */
/* Along each dimension, whatever the other coordinates: `contiguity`: runs of this many elements, aligned at multiples of
 * it and cut by the extent, grow by 1 (pointers: by one pointee); `divisibility`: the first element of each such run is a
 * multiple of this (bytes for pointers); `constancy`: aligned runs of this many elements are equal. All powers of two, at
 * least 1; runs may reach beyond an extent that is none. `steps`, `stride`: for every power of two g up to steps, aligned runs of
 * g elements stay between two neighbouring multiples of g * stride (integers). Of arange(0, 16) * 8 elements 4 to 7, for example, are 32,
 * 40, 48, 56: they stay between multiples of 32 = 4 * 8, so `stride` is 8 and `steps` 16.
 * Scalars: rank 0, [0] used. `value` holds when is_const: every element is it. `nonneg`: the sign bit of every element is
 * clear, if the index arithmetic did not overflow. */
typedef struct AxisInfo {
  u32 contiguity[MAX_RANK], divisibility[MAX_RANK], constancy[MAX_RANK], steps[MAX_RANK], stride[MAX_RANK];
  bool is_const, nonneg;
  i64 value;
} AxisInfo;
/* Table by value id, in scratch. What it assumes of the program is listed on top of analysis.c. */
AxisInfo *analyse_axes(Func *f);
/* The dimension along which the elements of a pointer of this rank (1 or more) follow each other longest; of several the last. */
u32 axis_fastest(const AxisInfo *p, u32 rank);
/* Elements per access that a load/store through p with mask (or NULL) may use along dimension `dim` of the given extent, by
 * alignment, contiguity and mask constancy; at most max_bytes' worth (0: 16). It divides the extent, so that no access
 * reaches from the tile into its padding. */
u32 axis_vector(const AxisInfo *p, const AxisInfo *mask, u32 dim, u32 extent, u32 elem_bytes, u32 max_bytes);

/* ---- interp.c: the reference semantics ---- */
typedef struct InterpBuffer { void *data; size_t bytes; const char *name; } InterpBuffer;
typedef struct InterpError { char message[512]; Span span, other; u32 program[3]; } InterpError;   /* other: of a missing barrier */
/* Run all programs of the grid in order. params[i]: the argument's bits (address for pointers, value zero-extended).
 * Every access must fall into one of the buffers. False with *err on a fault (out of bounds, misaligned, index overflow in
 * addptr, bad step, false assumption). */
bool interp_run(Func *f, const u32 grid[3], const u64 *params, const InterpBuffer *buffers, u32 nbuffers, InterpError *err);
#endif
