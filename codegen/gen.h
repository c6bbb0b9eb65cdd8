/* gen.h - private to codegen/: the state of one code generation and what its files give each other, lower layers first
 * (tests/style/layers.py has the table and keeps it: a file calls those below it, and exports names of one prefix).
 *
 * A tile value is an array of LLVM values, one per register of its layout; registers that hold the same element share
 * one LLVM value. A scalar is an array of one. LLVM types: i1 is i1, the 8-bit floats are i8, pointers are global
 * pointers, everything else is what its name says. Everything is made in one LLVM context that gen_close disposes of.
 */
#ifndef TILEC_GEN_H
#define TILEC_GEN_H
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>
#include "codegen.h"
#include "fp.h"
#include "scratch.h"

typedef LLVMValueRef Val;
typedef LLVMTypeRef Ty;

enum { AS_GLOBAL = 1, AS_SHARED = 3, AS_CLUSTER = 7, KERNEL_CALL_CONV = 71, LANES = 32, LANE_BITS = 5 };

/* dist.c: how a layout distributes a tile, seen from a thread: what it holds. Threads are counted lane first, then warp: bit i of
 * tid has column thread[i]. */
typedef struct Dist {
  const Layout *l;
  u32 regs, reg_bits, thread_bits;
  u32 *rep;                        /* register -> lowest register that holds the same element */
  u32 *flat;                       /* register -> its part of the flat index */
  u32 thread[LAYOUT_MAX_BITS];
  u32 thread_mask;                 /* all bits that threads can change */
  u32 free_threads;                /* bits of tid that only make copies */
  u32 shift[MAX_RANK];             /* lowest flat bit of each dimension */
  u32 pivot[LAYOUT_MAX_BITS], pivot_reg[LAYOUT_MAX_BITS];  /* solver: reduced flat vector by its top bit, registers that make it */
  Val part[MAX_RANK];              /* the thread's part of each coordinate; NULL until asked for */
} Dist;

/* team.c: the threads that run what is being generated. */
typedef struct GenTeam {
  struct GenTeam *outer;
  Team range;                      /* its warps */
  u32 barrier;                     /* id of its barrier */
  Val tid;                         /* a thread's number within the team; its low bits are the lane */
  LLVMBuilderRef pro;              /* end of its prologue block: values of tid alone go there */
  struct ZeroBits *zero_bits;      /* what team_bits_zero has made */
  Val warpgroup;                   /* what team_warpgroup has made; NULL: nothing */
  bool turns;                      /* its warpgroups take turns */
  Dist **dists;                    /* by layout id */
  u32 ndists;
} GenTeam;

/* params.c: a parameter of a kernel's PTX: all of a program's parameter, or what is needed of a tensor, or an extent of the grid. */
typedef enum KernelPart { PARAM_WHOLE, PARAM_MAP, PARAM_BASE, PARAM_EXTENT, PARAM_STRIDE, PARAM_GRID } KernelPart;
typedef struct KernelParam {
  u32 arg;                         /* the program's parameter; NO_ARG: the launch's own */
  const Op *view;                  /* a map of what the tensor_of makes of that; NULL: of the parameter itself */
  KernelPart part;
  u32 axis, found;                 /* of an extent, a stride or the grid; in which order it was found to be needed */
  TmaForm form;                    /* of a map */
  bool stored;                     /* boxes are stored by it */
  bool tf32;                       /* it rounds f32 to tf32 */
} KernelParam;
typedef VEC(KernelParam) KernelParams;
#define NO_ARG UINT32_MAX

typedef struct Gen {
  Ctx *c;
  Module *m;
  const CodegenOptions *opt;
  const Target *target;
  u32 ptx;                         /* version of PTX, as x10: the target's, or what an op needs */
  Arena *arena;
  LLVMContextRef lc;
  LLVMModuleRef mod;
  LLVMBuilderRef b;                /* where code goes */
  LLVMTargetMachineRef tm;
  bool names;                      /* LLVM's values keep their names: text is read or printed */
  LLVMDIBuilderRef di;
  const char *llvm_error;          /* first error LLVM reported, or NULL; it lies in error_text */
  char error_text[400];
  Ty i1, i8, i16, i32, i64, f16, bf16, f32, f64, none;
  Func *func;
  KernelParams params;             /* its LLVM function's, in order */
  GenTeam *team;
  Val fn, smem;
  void (*walk)(struct Gen *g, const Block *b);   /* lowers the ops of a block: lower.c's, for ops with regions */
  struct Locs *locs;               /* NULL without line info */
  struct Inlined *inlined;
  Val **vals;                      /* registers of each value, by value id */
  Val **phis;                      /* by value id: what phis_new made of a carried value */
  Val **left;                      /* by value id of a product: the words of A that it reads from registers until it is waited for */
  struct AddrRows *rows;           /* address.c: pointers that move from row to row */
  const struct Late **late;        /* by value id: a load that its store to shared memory carries out; NULL: registers are in vals */
  struct Fragments **fragments;    /* by value id: a shared_load that its dot carries out; NULL: registers are in vals */
  struct Maps *maps;               /* lower_map.c: of the kernel that is being lowered; NULL: it has not met one */
  u32 shared_functions;            /* in the module so far */
  AxisInfo *axes;
  LLVMBasicBlockRef before_loop;   /* from where the innermost loop is entered; NULL: there is none */
  bool unrolls;                    /* some loop asks to be unrolled */
  bool failed;                     /* a diagnostic was reported */
} Gen;

typedef void LowerFn(Gen *g, const Op *op);

/* ---- llvm.c: the wrapper ---- */
bool gen_open(Gen *g);
void gen_close(Gen *g);
typedef enum GuardEnd { GUARD_RETURNED, GUARD_FATAL, GUARD_NO_MEMORY } GuardEnd;
/* llvm_locks.c: this thread is in LLVM from begin to end; end gives back what LLVM still holds, and is false if
 * it cannot. */
typedef struct LlvmLocks { u32 n; bool noting; } LlvmLocks;
LlvmLocks gen_locks_begin(void);
bool gen_locks_end(LlvmLocks begun);
/* Made ready by the first call; false if memory ran out where LLVM cannot be entered again. */
bool gen_ready(void);
/* Run `body` where LLVM's fatal errors and its want of memory come back as an answer, and a message cut to size. */
GuardEnd gen_guard(void (*body)(void *user), void *user, char *message, size_t size);
/* LLVM IR text becomes the module; false with llvm_error set and the place in the text that is wrong. */
bool gen_parse(Gen *g, const char *text, size_t len, u32 *line, u32 *col);
/* Brings the uses of values into the order in which they stand. LLVM's back end looks at that order, and text does not have it. */
void gen_settle(Gen *g);
bool gen_verify(Gen *g);                                     /* false with llvm_error set */
bool gen_run_passes(Gen *g);
bool gen_emit_ptx(Gen *g, Buf *out);
/* depth_first.c: order the instructions of each basic block for few registers. */
void order_depth_first(Gen *g);
/* The load may move towards what needs it, past what it stands in front of. */
void order_lets_move(Gen *g, Val load);
void gen_call_attr(Gen *g, Val call, const char *attr, u64 value);
void gen_func_attr(Gen *g, Val f, const char *attr);         /* with the value 0: `memory` is none then */
/* Call an intrinsic by its full name; `over` are the overloaded types. */
Val gen_call(Gen *g, const char *name, u32 nover, Ty *over, u32 nargs, Val *args);
/* The same for one that all threads of a warp or block must reach together. */
Val gen_call_convergent(Gen *g, const char *name, u32 nover, Ty *over, u32 nargs, Val *args);
static inline Val gen_u32(Gen *g, u32 v) { return LLVMConstInt(g->i32, v, 0); }
Ty gen_elem_type(Gen *g, DType d, bool ptr);
Ty gen_type(Gen *g, const Type *t);                          /* of one element */
/* Report that op cannot be compiled for this target; lowering goes on with poison. */
void gen_unsupported(Gen *g, const Op *op, const char *what);
Val gen_bitcast(Gen *g, Val v, Ty to);                       /* also integer <-> pointer; the same width */
LLVMBasicBlockRef gen_block(Gen *g, const char *name);
void gen_at(Gen *g, LLVMBasicBlockRef block);

/* ---- locs.c ---- */
void locs_open(Gen *g);                                      /* what is built from here on has places in the source */
void locs_func(Gen *g, const Func *f);                       /* g->fn gets a subprogram; locations of its ops follow */
void locs_at(Gen *g, Span at);                               /* code built from here on belongs to this place */
/* The same as locs_func for a function that calls share: what came through call site `site` stands in it, and was inlined from there on. */
void locs_shared(Gen *g, const char *name, Span at, u32 site);
typedef struct Locs Locs;

/* ---- inlined.c ---- */
typedef struct Inlined Inlined;
void inlined_encode(Gen *g);                                 /* of the module, before PTX is made of it */
void inlined_write(Gen *g, const char *text, Buf *out);      /* that PTX, with the places of inlined functions in it */

/* ---- ptx.c ---- */
typedef enum PtxId {
#define PTX(id, flags, text, doc) PTX_##id,
#include "ptx.def"
#undef PTX
  PTX_COUNT
} PtxId;
typedef struct PtxArgs {
  const char *subst[9];            /* what %0 .. %8 in the template stand for */
  u32 nout, nin, ntied;            /* the last ntied inputs start out in outputs 0, 1, ... */
  Ty out[32];
  Val in[32];
  bool early;                      /* outputs are written while inputs are still to be read */
  const Ty *outs;                  /* more of them, instead of out and in; NULL: none */
  const Val *ins;
} PtxArgs;
/* Emit a row of ptx.def; the results go to out (may be NULL if there are none). */
void ptx_emit(Gen *g, PtxId id, const PtxArgs *a, Val *out);
/* The text alone, of a row with its substitutes, as a line of another's. */
const char *ptx_line(Gen *g, PtxId id, const PtxArgs *a);
/* Text of the program's own, as it is. */
void ptx_text(Gen *g, const char *text, bool pure, const PtxArgs *a, Val *out);
/* A row with one result. */
Val ptx_value(Gen *g, PtxId id, Ty result, u32 nin, const Val *in, const char *subst0, const char *subst1);

/* ---- values.c ---- */
u32 gen_nregs(const Type *t);
Val *gen_regs(Gen *g, const Value *v);
Val *gen_new(Gen *g, const Value *v);                        /* array for v's registers, bound to it */
void gen_bind(Gen *g, const Value *v, Val *regs);
void gen_poison(Gen *g, const Value *v);                     /* after an error: v is anything */
Val gen_const_bits(Gen *g, DType d, bool ptr, u64 bits);
/* x exclusive-or y, where x has bits only in xmask and y only in ymask, built by b. */
Val gen_xor_parts(LLVMBuilderRef b, Val x, u32 xmask, Val y, u32 ymask);
/* x exclusive-or k, where x has bits only in mask. */
Val gen_xor_const(Gen *g, Val x, u32 mask, u32 k);
Val gen_and(Gen *g, Val a, Val b);                           /* NULL stands for true */
/* What follows is done where cond holds, up to gen_end_if with the returned block; cond NULL: always. */
LLVMBasicBlockRef gen_if(Gen *g, Val cond);
void gen_end_if(Gen *g, LLVMBasicBlockRef after);

/* ---- team.c ---- */
/* A team of these warps runs what comes until team_close; its prologue is the end of that block. */
void team_open(Gen *g, Team range, LLVMBasicBlockRef prologue);
void team_close(Gen *g);
/* All of its threads meet; what they wrote to shared memory is visible to all of them. */
void team_barrier(Gen *g);
void team_warp_barrier(Gen *g);                              /* the same for those of a warp */
/* Whether x is true in all threads, or in any: of the warp, or (meet) of the team, which meets for it. */
Val team_vote(Gen *g, bool all, bool meet, Val x);
/* Exclusive-or over the set bits of tid of cols[bit], computed in the prologue; an i32. */
Val team_linear(Gen *g, const u32 *cols, u32 nbits);
/* (tid & mask) == 0, NULL if mask is 0. */
Val team_warpgroup(Gen *g);                                  /* number of the thread's four warps in its team, the same in a warp */
/* Warpgroups of a team of a warp_specialize do something one after the other, over and over: each waits for its turn and passes it on. */
bool team_takes_turns(Gen *g);
void team_take_turn(Gen *g);
void team_pass_turn(Gen *g);
Val team_bits_zero(Gen *g, u32 mask);

/* ---- loops.c ---- */
/* One more thing that LLVM is told of the loop that this branch closes; value may be NULL. */
void loop_add(Gen *g, Val branch, const char *name, Val value);
void loop_spare_wide_steps(Gen *g);                          /* of the module, before PTX is made of it */

/* ---- long_blocks.c ---- */
void ease_long_blocks(Gen *g);                               /* of the module, before PTX is made of it */

/* ---- dist.c ---- */
Dist *dist_get(Gen *g, const Layout *l);
/* Register holding `flat` in thread 0; false if none does. */
bool dist_find(const Dist *h, u32 flat, u32 *reg);
/* The register with which reg's run of so many elements along dimension d begins, where no thread's number is a part of the way; *in: how
 * many elements reg is behind it. reg itself and 0 if there is no such run. */
u32 dist_run_start(const Dist *h, int d, u32 run, u32 reg, u32 *in);
u32 dist_coord(const Dist *h, u32 flat, int dim);
/* Coordinate along dim of the element in register reg: an i32. */
Val dist_index(Gen *g, Dist *h, u32 reg, int dim);
/* Is that element inside the tile's extents? NULL: always. */
Val dist_inside(Gen *g, Dist *h, const Type *t, u32 reg);
Val dist_inside_dim(Gen *g, Dist *h, const Type *t, u32 reg, int dim);
/* True in the leader, one thread of all that hold the same element; NULL: every thread leads. h NULL: of a scalar, which all hold. */
Val dist_leader(Gen *g, const Dist *h);
/* Bits of the register index that move only inside runs of equal elements: masks of vector accesses, quotients, what is read by them. */
u32 dist_equal_bits(Gen *g, const Value *v, const Dist *h);  /* h may be NULL: none */
void dist_share(Gen *g, const Value *v);                     /* copy registers get the value of the register they copy */

/* ---- words.c ---- */
/* How `count` elements travel as machine words: word type and number, PTX type suffix. */
typedef struct Words { Ty type, elem; u32 n, per, ebits; const char *suffix; bool is_i1; } Words;
Words words_for(Gen *g, DType d, bool ptr, u32 count);
void words_unpack(Gen *g, const Words *w, const Val *words, Val *elems);
void words_pack(Gen *g, const Words *w, const Val *elems, Val *words);
/* The vector that x was taken out of, and which of its elements x is; NULL: x comes from elsewhere. */
Val words_vector(Val x, u32 *at);
Val words_join(Gen *g, const Val *pair);                     /* two elements as a vector */
void words_split(Gen *g, Val vector, Val *pair);
/* Plain vector access of all words at p. */
void words_load(Gen *g, const Words *w, Val p, u32 align, Val *words);
void words_store(Gen *g, const Words *w, Val p, u32 align, const Val *words);

/* ---- divide.c ---- */
Val divide_by_same(Gen *g, const Op *op, Val a);             /* of op_divides_by_same */

/* ---- shuffle.c: v of any type, word by word ---- */
Val shuffle_xor(Gen *g, Val v, u32 lane_xor);                /* v of the lane whose number differs by these bits */
Val shuffle_from(Gen *g, Val v, Val lane);                   /* v of that lane */

/* ---- address.c ---- */
/* An address as a base and a constant. */
typedef struct Addr { Val base; u64 off; } Addr;
Val addr_offset(Gen *g, Val p, u64 bytes);
Val addr_shared(Gen *g, Val bytes, u64 off);                 /* pointer into dynamic shared memory; bytes NULL: 0 */
Val addr_cluster(Gen *g, Val p);                             /* the same as one into that of any program of the cluster */
/* Pointer of the element in register reg of the pointers p: another register's and a constant where that is known. */
Addr addr_element(Gen *g, const Value *p, u32 reg);
/* Elements that an instruction of op moves from or to neighbouring registers: its attribute vec, as far as the layout, what is known of
 * pointers and mask, and the instruction bear it out. h: where its pointers are; NULL: a scalar. */
u32 addr_vector(Gen *g, const Op *op, const Dist *h);
/* Does the function have the scratch memory that op was given? Reports it if not. */
bool addr_scratch(Gen *g, const Op *op, u32 bytes);

/* ---- pieces.c ---- */
/* A tile from the registers `in` of a layout to `out` of another, both the plan's, through op's scratch memory; copies in registers of
 * `out` are not filled. late: `in` is loaded on the way, or NULL. */
void pieces_move(Gen *g, const Op *op, const PiecesPlan *p, const Dist *from, const Val *in, const struct Late *late, Val *out);

/* ---- leader.c ---- */
/* The values v that op's leaders have, in the registers of everyone, through op's scratch memory; h NULL: a scalar. */
void leader_broadcast(Gen *g, const Op *op, const Dist *h, Val leader, Val *v);
/* The last of a row of scalar stores from `first` on that take one branch, with nothing but arithmetic between them; NULL: it is no row. */
const Op *leader_last_store(Gen *g, const Op *first);

/* ---- phis.c ---- */
/* Carried values vs, at the start of the builder's block: all phis of the block in one call. */
void phis_new(Gen *g, u32 n, Value *const *vs);
/* What v is along the edge from a block. */
void phis_add(Gen *g, const Value *v, const Val *incoming, LLVMBasicBlockRef from);
/* Operands first, first + 1, ... of op flow into vs along that edge. */
void phis_add_operands(Gen *g, u32 n, Value *const *vs, const Op *op, u32 first, LLVMBasicBlockRef from);

/* ---- late.c ---- */
/* A load that is carried out where its tile is stored to shared memory: few of its registers are held at a time. */
typedef struct Late Late;
struct Late {
  const Op *op;
  Val *regs;                       /* of the tile; NULL where they are not loaded */
  void (*load)(Gen *g, const Late *late, u32 reg);   /* fills reg, and those that one access loads with it */
  const u32 *map;                  /* from the registers of who stores to the tile's; NULL: the same */
};
bool late_fits(Gen *g, const Op *load, u32 registers);       /* registers: that its accesses fill */
void late_add(Gen *g, const Late *late);
const Late *late_of(Gen *g, const Value *v);                 /* NULL: v's registers are there */
void late_fetch(Gen *g, const Late *late, u32 reg, Val *values);   /* values[reg], of who stores */

/* ---- buffer.c ---- */
/* A buffer in shared memory, or a view of one: it starts at byte base + at; off (elements) is exclusive-ored into offsets. */
typedef struct Buffer {
  const Layout *smem;
  DType d;
  bool ptr, remote;                /* remote: it is another program's */
  bool moves;                      /* what is loaded from it is loaded where it is used */
  u32 bytes;                       /* of an element */
  Val base;                        /* an i32, a multiple of 128; NULL: 0 */
  u64 at;
  u32 off, pad_every, pad;
  u32 cut;                         /* elements of offset that memory holds, whole 16 bytes of them; 0: all */
  const Late *late;                /* what is stored is loaded on the way; NULL: it is there */
} Buffer;
Buffer buffer_of(Gen *g, const Value *v);                    /* the buffer that a value views */
u32 buffer_part_offset(const Value *v);                      /* bytes by which slices, on the way to v, are behind its start */
/* Where a tile of the buffer is in registers; flat indices are the whole buffer's, of which the tile may be a slice. */
Dist *buffer_dist(Gen *g, const Type *tile, const Buffer *b);
/* Store or load all registers of h, vec elements an access (a plan's, or layout_access_vec's). Of what a cut buffer has no memory for
 * nothing is stored, and what is loaded is anything. */
void buffer_vectors(Gen *g, const Buffer *buf, const Dist *h, u32 vec, bool store, Val *values);
/* The same by stmatrix (not into a cut buffer: it is the whole warp's) or ldmatrix. */
void buffer_matrices(Gen *g, const Buffer *buf, const Dist *h, bool trans, bool store, Val *values);
/* How many elements, at most vec, lie in the buffer in the order of the lowest registers, aligned. */
u32 buffer_copy_vec(Gen *g, const Buffer *buf, const Dist *h, u32 vec);
/* Where the element of register reg lies; NULL: in no thread within a cut buffer. *inside: where it is within it; NULL: everywhere. */
Val buffer_address(Gen *g, const Buffer *buf, const Dist *h, u32 reg, Val *inside);
/* Loads by ldmatrix one instruction at a time, for a dot that takes them as it goes: group g fills the 32-bit words (of the
 * tile's registers, two 16-bit or four 8-bit elements each) that buffer_fragments_words lists, up to 4. */
typedef struct Fragments Fragments;
Fragments *buffer_fragments(Gen *g, const Buffer *buf, const Dist *h, bool trans);
u32 buffer_fragments_count(const Fragments *f);
u32 buffer_fragments_words(const Fragments *f, u32 group, u32 words[4]);
void buffer_fragments_load(Gen *g, const Fragments *f, u32 group, Val *words);

/* ---- cast.c ---- */
/* One element of dtype `from` as dtype `to`; rounding and saturation from op's attributes. */
Val cast_elem(Gen *g, const Op *op, DType from, DType to, Val x);
Val cast_nearest(Gen *g, DType from, DType to, Val x);       /* rounded to nearest */
/* Is this cast better done on two elements at once, and doing it. */
bool cast_has_pairs(Gen *g, const Op *op);
void cast_pair(Gen *g, DType from, DType to, const Val *x, Val *out);
/* From 8-bit integers to f16, bf16 or f32, or to them: as many of x[0 .. most - 1] as make up a word, or one; returns how many. */
bool cast_has_bytes(const Op *op);
u32 cast_bytes(Gen *g, const Op *op, const Val *x, u32 most, Val *out);

/* ---- cast_small.c: floats of at most 8 bits, without an instruction for them ---- */
typedef struct SmallFloat { int exp, man; u32 most; } SmallFloat;      /* most: the bits of the largest number */
SmallFloat small_of(DType d);                                /* of an 8-bit float */
/* x (f32) as such a float, clamped to the largest: its bits, in an i32; a nan becomes all bits but the sign. */
Val small_encode(Gen *g, SmallFloat f, Val x, FloatRound round);
/* 8-bit floats as they are in registers, as f16; and back, rounded to nearest and clamped. */
Val small_to_f16(Gen *g, DType from, Val x);
void small_to_halves(Gen *g, DType from, const Val *x, Val *out);       /* two */
void small_from_halves(Gen *g, DType to, const Val *x, Val *out);       /* two */

/* ---- lower_elem.c ---- */
void lower_elementwise(Gen *g, const Op *op);
void lower_store_alone(Gen *g, const Op *op);                /* of a scalar, by whoever gets there */
/* One element: args are the operands' elements. */
Val elem_apply(Gen *g, const Op *op, Val *args);
Val elem_binary(Gen *g, OpCode code, DType d, Val a, Val b);
Val elem_fma(Gen *g, DType d, Val a, Val b, Val c);

/* ---- dot_parts.c ---- */
/* How a dot of f32 goes to tensor cores: instruction, tf32 steps along K that one of its steps joins, parts of a factor, and the
 * products of parts that are summed, in this order. */
typedef struct DotSplit {
  const char *prec, *mma;
  u32 join, nparts, nproducts, product[6][2];
  bool cut;                                                    /* words as they are: tensor cores drop what tf32 has not */
} DotSplit;
typedef struct DotParts { Val *words[4]; } DotParts;           /* by part: words of the split's instruction */
const DotSplit *dot_split(const Op *op);                       /* NULL: not of f32, or exact */
/* meta.c: metadata (layout_mma_meta) as words, of which each group of zero bits is places 0 and 1, as it is beyond the extents. */
Val *meta_words(Gen *g, const Value *meta);
/* Parts of operand `which`, whose words are those of m16n8k8.tf32 with registers for `held` steps along K. */
DotParts dot_parts(Gen *g, const DotSplit *s, u32 which, const Val *words, u32 nwords, u32 held);
Val dot_round_tf32(Gen *g, Val x);                             /* the bits of x rounded to tf32 */
Val dot_cut_tf32(Gen *g, Val x);                               /* those that tf32 has */

/* ---- params.c ---- */
KernelParams params_of(const Func *f, Arena *a);         /* of its PTX, in order */
KernelParam params_asked(const Op *op);                      /* what an op on a tensor needs of it */
u32 params_index(const KernelParams *p, const KernelParam *which);
const Type *params_arg(const Func *f, const KernelParam *p); /* of the program's parameter; NULL: it is none of these */

/* ---- lower_team.c ---- */
/* Registers with which f's threads start, as its regions share them out; 0: nothing is shared out. */
u32 lower_entry_registers(Gen *g, const Func *f);

/* ---- lower_tma.c ---- */
void lower_tensor_maps(Gen *g);                              /* at the start: maps of tensors are brought near */

/* ---- lower_map.c ---- */
void lower_shared_functions(Gen *g);                         /* those that the kernel's maps call; the kernel is done */

/* ---- lower.c ---- */
/* Lower f into a new LLVM function; false if something in it cannot be compiled. */
bool lower_func(Gen *g, Func *f);
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) LowerFn lower_##id;
#include "ops.def"
#undef OP
#endif
