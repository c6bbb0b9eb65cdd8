/* gen.h - private to codegen/: the state of one code generation and what its files give each other.
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

enum { AS_GLOBAL = 1, AS_SHARED = 3, KERNEL_CALL_CONV = 71, LANES = 32, LANE_BITS = 5 };

/* held.c: what a thread holds of a layout. Threads are counted lane first, then warp: bit i of tid has column thread[i]. */
typedef struct Held {
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
} Held;

typedef struct Gen {
  Ctx *c;
  Module *m;
  const CodegenOptions *opt;
  const Target *target;
  Arena *arena;
  LLVMContextRef lc;
  LLVMModuleRef mod;
  LLVMBuilderRef b;                /* where code goes */
  LLVMBuilderRef pro;              /* end of the prologue block: values of tid alone go there */
  LLVMTargetMachineRef tm;
  LLVMDIBuilderRef di;
  const char *llvm_error;          /* first error LLVM reported, or NULL */
  Ty i1, i8, i16, i32, i64, f16, bf16, f32, f64, none;
  Func *func;
  Val fn, tid, smem;
  LLVMMetadataRef scope;           /* of the function; NULL without line info */
  VEC(struct GenFile) files;
  Val **vals;                      /* registers of each value, by value id */
  Val **phis;                      /* by value id: what phis_new made of a carried value */
  struct Fragments **fragments;    /* by value id: a shared_load that its dot carries out; NULL: registers are in vals */
  Held **held;                     /* by layout id */
  u32 nheld;
  AxisInfo *axes;
  bool unrolls;                    /* some loop asks to be unrolled */
  bool failed;                     /* a diagnostic was reported */
} Gen;
typedef struct GenFile { const char *name; LLVMMetadataRef file, scope; } GenFile;

typedef void LowerFn(Gen *g, const Op *op);

/* ---- llvm.c: the wrapper ---- */
bool gen_open(Gen *g);
void gen_close(Gen *g);
/* Run `body` where LLVM's fatal errors come back as false (and *message). */
bool llvm_guard(void (*body)(void *user), void *user, const char **message, Arena *a);
bool gen_run_passes(Gen *g);
bool gen_emit_ptx(Gen *g, Buf *out);
void gen_debug_func(Gen *g, const Func *f);
void gen_debug_at(Gen *g, Span at);
void gen_call_attr(Gen *g, Val call, const char *attr, u64 value);
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

/* ---- lower.c: values and control flow ---- */
bool gen_func(Gen *g, Func *f);
void gen_ops(Gen *g, const Block *b);                        /* all but the terminator */
Val *gen_regs(Gen *g, const Value *v);
Val *gen_new(Gen *g, const Value *v);                        /* array for v's registers, bound to it */
void gen_bind(Gen *g, const Value *v, Val *regs);
void gen_share(Gen *g, const Value *v);                      /* copy registers get the value of the register they copy */
void gen_poison(Gen *g, const Value *v);                     /* after an error: v is anything */
u32 gen_nregs(const Type *t);
/* What follows is done where cond holds, up to gen_end_if with the returned block; cond NULL: always. */
LLVMBasicBlockRef gen_if(Gen *g, Val cond);
void gen_end_if(Gen *g, LLVMBasicBlockRef after);
/* Apply a 32-bit shuffle to v of any type, word by word. */
Val gen_shuffle_xor(Gen *g, Val v, u32 lane_xor);            /* v of the lane whose number differs by these bits */
Val gen_shuffle_from(Gen *g, Val v, Val lane);               /* v of that lane */
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) LowerFn lower_##id;
#include "ops.def"
#undef OP

/* ---- phis.c ---- */
/* Carried values vs, at the start of the builder's block: all phis of the block in one call. */
void phis_new(Gen *g, u32 n, Value *const *vs);
/* What v is along the edge from a block. */
void phis_add(Gen *g, const Value *v, const Val *incoming, LLVMBasicBlockRef from);
/* Operands first, first + 1, ... of op flow into vs along that edge. */
void phis_add_operands(Gen *g, u32 n, Value *const *vs, const Op *op, u32 first, LLVMBasicBlockRef from);

/* ---- held.c ---- */
Held *held_get(Gen *g, const Layout *l);
/* Register holding `flat` in thread 0; false if none does. */
bool held_find(const Held *h, u32 flat, u32 *reg);
u32 held_coord(const Held *h, u32 flat, int dim);
/* Coordinate along dim of the element in register reg: an i32. */
Val held_index(Gen *g, Held *h, u32 reg, int dim);
/* Is that element inside the tile's extents? NULL: always. */
Val held_inside(Gen *g, Held *h, const Type *t, u32 reg);
Val held_inside_dim(Gen *g, Held *h, const Type *t, u32 reg, int dim);
/* True in the one thread of all that hold the same element that speaks for them; NULL: every thread. h NULL: of a scalar. */
Val held_owner(Gen *g, const Held *h);
/* The values v that op's owners have, in the registers of everyone, through op's scratch memory; h NULL: a scalar. */
void gen_from_owner(Gen *g, const Op *op, const Held *h, Val owner, Val *v);
/* Exclusive-or over the set bits of tid of cols[bit], computed in the prologue; an i32. */
Val gen_thread_linear(Gen *g, const u32 *cols, u32 nbits);
/* (tid & mask) == 0, NULL if mask is 0. */
Val gen_thread_zero(Gen *g, u32 mask);
Val gen_and(Gen *g, Val a, Val b);                           /* NULL stands for true */
/* x exclusive-or k, where x has bits only in mask. */
Val gen_xor_const(Gen *g, Val x, u32 mask, u32 k);

/* ---- lower_elem.c, lower_cast.c ---- */
void lower_elementwise(Gen *g, const Op *op);
/* One element: args are the operands' elements. */
Val elem_apply(Gen *g, const Op *op, Val *args);
Val elem_cast(Gen *g, const Op *op, DType from, DType to, Val x);
/* Is this cast better done on two elements at once, and doing it. */
bool elem_casts_pairs(Gen *g, const Op *op);
void elem_cast_pair(Gen *g, DType from, DType to, const Val *x, Val *out);
/* From 8-bit integers to f16, bf16 or f32, or to them: as many of x[0 .. most - 1] as make up a word, or one; returns how many. */
bool elem_casts_bytes(const Op *op);
u32 elem_cast_bytes(Gen *g, const Op *op, const Val *x, u32 most, Val *out);
/* lower_packed.c: the n lowest bytes of an i32 as numbers. */
void bytes_to_floats(Gen *g, Val word, bool is_signed, DType to, u32 n, Val *out);
/* x (f32) in a format of at most 8 bits without infinities, clamped to `most`: its bits, in an i32. */
typedef struct SmallFloat { int exp, man; u32 most, nan; } SmallFloat;
Val gen_encode_small(Gen *g, SmallFloat f, Val x, FloatRound round);
Val elem_convert(Gen *g, DType from, DType to, Val x);       /* a cast that rounds to nearest */
Val elem_binary(Gen *g, OpCode code, DType d, Val a, Val b);
Val gen_fma(Gen *g, DType d, Val a, Val b, Val c);
Val gen_const_bits(Gen *g, DType d, bool ptr, u64 bits);

/* ---- lower_mem.c ---- */
/* How `count` elements travel as machine words: word type and number, PTX type suffix. */
typedef struct Words { Ty type, elem; u32 n, per, ebits; const char *suffix; bool is_i1; } Words;
Words words_for(Gen *g, DType d, bool ptr, u32 count);
void words_unpack(Gen *g, const Words *w, const Val *words, Val *elems);
void words_pack(Gen *g, const Words *w, const Val *elems, Val *words);
/* Plain vector access of all words at p. */
void words_load(Gen *g, const Words *w, Val p, u32 align, Val *words);
void words_store(Gen *g, const Words *w, Val p, u32 align, const Val *words);
/* An address as a base and a constant. */
typedef struct Addr { Val base; u64 off; } Addr;
Addr gen_address(Gen *g, const Value *p, u32 reg);
Val gen_offset(Gen *g, Val p, u64 bytes);
Val gen_shared(Gen *g, Val bytes, u64 off);                  /* pointer into dynamic shared memory; bytes NULL: 0 */
void gen_barrier(Gen *g);
/* Does the function have the scratch memory that op was given? Reports it if not. */
bool gen_scratch(Gen *g, const Op *op, u32 bytes);

/* ---- buffer.c ---- */
/* A buffer in shared memory, or a view of one: it starts at byte base + at; off (elements) is exclusive-ored into offsets. */
typedef struct Buffer {
  const Layout *smem;
  DType d;
  bool ptr;
  u32 bytes;                       /* of an element */
  Val base;                        /* an i32, a multiple of 128; NULL: 0 */
  u64 at;
  u32 off, pad_every, pad;
} Buffer;
/* Store or load all registers of h, vec elements an access (a plan's, or layout_access_vec's). */
void buffer_vectors(Gen *g, const Buffer *buf, const Held *h, u32 vec, bool store, Val *values);
/* The same by stmatrix or ldmatrix. */
void buffer_matrices(Gen *g, const Buffer *buf, const Held *h, bool trans, bool store, Val *values);
/* How many elements, at most vec, lie in the buffer in the order of the lowest registers, aligned. */
u32 buffer_copy_vec(Gen *g, const Buffer *buf, const Held *h, u32 vec);
/* lower_shared.c: the buffer that a value views; the register layout of a tile of it, over the whole buffer's extents. */
Buffer gen_buffer(Gen *g, const Value *v);
Held *held_against(Gen *g, const Type *tile, const Buffer *b);
/* Loads by ldmatrix one instruction at a time, for a dot that takes them as it goes: group g fills the 32-bit words (of the
 * tile's registers, two 16-bit or four 8-bit elements each) that fragments_words lists, up to 4. */
typedef struct Fragments Fragments;
Fragments *fragments_new(Gen *g, const Buffer *buf, const Held *h, bool trans);
u32 fragments_count(const Fragments *f);
u32 fragments_words(const Fragments *f, u32 group, u32 words[4]);
void fragments_load(Gen *g, const Fragments *f, u32 group, Val *words);
/* Where the element of register reg lies. */
Val buffer_address(Gen *g, const Buffer *buf, const Held *h, u32 reg);

/* ---- dot_parts.c ---- */
/* How a dot of f32 goes to tensor cores: instruction, tf32 steps along K that one of its steps joins, parts of a factor, and the
 * products of parts that are summed, in this order. */
typedef struct DotSplit {
  const char *prec, *mma;
  u32 join, nparts, nproducts, product[6][2];
} DotSplit;
typedef struct DotParts { Val *words[4]; } DotParts;           /* by part: words of the split's instruction */
const DotSplit *dot_split(const Op *op);                       /* NULL: not of f32, or exact */
/* Parts of operand `which`, whose words are those of m16n8k8.tf32 with registers for `held` steps along K. */
DotParts dot_parts(Gen *g, const DotSplit *s, u32 which, const Val *words, u32 nwords, u32 held);
Val gen_round_tf32(Gen *g, Val x);                             /* the bits of x rounded to tf32 */

/* ---- ptx.c ---- */
typedef enum PtxId {
#define PTX(id, flags, text, doc) PTX_##id,
#include "ptx.def"
#undef PTX
  PTX_COUNT
} PtxId;
typedef struct PtxArgs {
  const char *subst[6];            /* what %0 .. %5 in the template stand for */
  u32 nout, nin, ntied;            /* the last ntied inputs start out in outputs 0, 1, ... */
  Ty out[32];
  Val in[32];
} PtxArgs;
/* Emit a row of ptx.def; the results go to out (may be NULL if there are none). */
void ptx_emit(Gen *g, PtxId id, const PtxArgs *a, Val *out);
/* Text of the program's own, as it is. */
void ptx_text(Gen *g, const char *text, bool pure, const PtxArgs *a, Val *out);
/* A row with one result. */
Val ptx_value(Gen *g, PtxId id, Ty result, u32 nin, const Val *in, const char *subst0, const char *subst1);

/* ---- emit.c ---- */
void emit_manifest(Ctx *c, const Func *f, TilertManifest *out);
void emit_manifest_line(Buf *b, const TilertManifest *m);
#endif
