/* insn.h - a decoded instruction: one head for all kinds, and one struct of operands for each kind.
 *
 * Operands are slots: byte offsets into a warp's register file (internal.h). The slots of an instruction come first in its
 * struct, `nslot` of them, so that the linker can move them without knowing the kind; a slot of 0 is none. Lists of
 * registers (vectors, fragments) are in the unit's array of lists, from `list` on. */
#ifndef TILERT_SIM_INSN_H
#define TILERT_SIM_INSN_H
#include <stdbool.h>
#include <stdint.h>

typedef enum Type {
  T_NONE,
#define TYPE(id, text, bytes, cls) T_##id,
#include "types.def"
  T_COUNT
} Type;

typedef enum TypeClass { TC_NONE, TC_PRED, TC_BITS, TC_UINT, TC_SINT, TC_FLOAT, TC_PACK } TypeClass;
extern const uint8_t ptx_type_bytes[T_COUNT];
extern const uint8_t ptx_type_class[T_COUNT];
extern const char *const ptx_type_text[T_COUNT];

typedef enum ModId {
  M_NONE,
#define MOD(id, text) M_##id,
#define HINT(id, text) M_##id,
#include "mods.def"
  M_COUNT
} ModId;

/* SP_CLUSTER: of instructions only, shared memory of any block of the cluster; SP_SHARED there is the block's own. */
typedef enum Space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_CONST, SP_PARAM, SP_CLUSTER, SP_COUNT } Space;

/* What an access orders, and among whom (PTX ISA, memory consistency model). Volatile is relaxed at system scope. */
typedef enum Order { ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL } Order;
typedef enum Scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS } Scope;

typedef struct Block Block;
typedef struct Warp Warp;
typedef struct Insn Insn;
typedef void AluFn(void *d, const void *a, const void *b, const void *c, uint64_t imm);
/* 0, -1 with the error filled, or PARK. m: lanes that execute (guard applied). */
enum { PARK = 1 };
typedef int WarpFn(Block *b, Warp *w, const Insn *in, uint32_t m);

/* K_ALU, K_SETP: lanes of their own, by fn.alu; results of lanes or one predicate. K_WARP: anything else that does not move control.
 * K_CONV: needs the lanes that its member mask names. K_NOTE: a check by fn.warp that is no instruction. K_WAIT:
 * like K_WARP, but fn.warp may say PARK: nothing is done yet, the lanes wait for what Split.on says. */
typedef enum Kind { K_ALU, K_SETP, K_WARP, K_CONV, K_BRA, K_BRX, K_CALL, K_RET, K_EXIT, K_BAR, K_TRAP, K_NOP, K_NOTE, K_WAIT } Kind;
enum { POST_FTZ32 = 1, POST_FTZ16 = 2, POST_SAT = 4, POST_RELU = 8 };

typedef struct AluOps { uint32_t d, a, b, c; uint64_t imm; uint8_t width, post, rounding; } AluOps;   /* width: of d, in bytes */
typedef struct CvtOps {
  uint32_t d, a, b;
  uint8_t width, src_width;            /* bytes of the registers */
  uint8_t from, rounding, post;        /* to is the head's type */
  bool pair, satfinite;                /* pair: two sources become one packed register */
} CvtOps;
typedef struct SpaceOps { uint32_t d, a; uint8_t space; bool wide; } SpaceOps;   /* isspacep, getctarank */
typedef struct MapOps { uint32_t d, a, rank; bool wide, generic; } MapOps;       /* mapa */
typedef struct ClockOps { uint32_t d; uint8_t width, id; } ClockOps;             /* id: SpecialId */

/* [base + offset]; base is a register of 8 bytes where wide, else of 4. */
typedef struct Address { uint64_t offset; uint32_t var; bool wide; uint8_t space; } Address;
/* Address.var: the variable that all of it lies in, or 0: a kind, and an index + 1 of Unit.locals, SimModule.shared, the
 * entry's parameters, SimModule.global. */
enum { VAR_LOCAL, VAR_SHARED, VAR_PARAM, VAR_GLOBAL, VAR_BITS = 30 };
#define VAR_INDEX(var) (((var) & ((1u << VAR_BITS) - 1)) - 1)
/* ld, st, atom, red. The list: count registers of data; for an atomic with a result, count more. */
typedef struct MemOps {
  uint32_t base, compare;
  Address at;
  uint8_t size, count, width;          /* bytes of an element; elements; bytes of a register */
  uint8_t order, scope, op;            /* op: ModId of an atomic */
  bool result;
  bool copies;                         /* a load whose value is only stored again; hollow.c */
} MemOps;
typedef enum CopyLimit { COPY_ALL, COPY_BYTES, COPY_IGNORE } CopyLimit;          /* what the limit's register holds */
/* cp.async from [from + from_offset] to shared memory at [to + at]. */
typedef struct CopyOps { uint32_t to, from, limit; Address at; int32_t from_offset; uint8_t size, limited; } CopyOps;
typedef struct WaitOps { uint32_t pending; bool all; } WaitOps;                  /* groups that may stay in flight */
typedef struct IndexOps { uint32_t index; uint64_t extent; uint8_t width; } IndexOps;   /* width: of the register, in bytes */
/* proxy: between generic and async; inits: of mbarriers */
typedef struct FenceOps { uint8_t scope; bool orders, proxy, inits; } FenceOps;

/* What the lanes of a warp do together. members is the slot of the mask, in every kind; pred that of a second result, or 0. */
typedef struct WarpOps { uint32_t d, value, lane, members, clamp, pred; uint8_t mode, size; bool abs, nan; } WarpOps;
/* ldmatrix, stmatrix: the list has count registers. mma: those of d, a, b, c, and where sparse of e. */
typedef struct MatrixOps { uint32_t base; Address at; uint8_t count; bool trans, store; } MatrixOps;
typedef struct MmaOps { uint8_t m, k, a_type, b_type; bool sparse, ordered; uint8_t selector; } MmaOps;

/* mbarrier.* on the barrier at [base + at]: amount is a count or bytes, d a state or predicate, from a state or parity. */
typedef enum MbarAct { MB_INIT, MB_INVAL, MB_EXPECT, MB_COMPLETE, MB_ARRIVE, MB_COPIES, MB_TEST, MB_TRY } MbarAct;
typedef struct MbarOps {
  uint32_t base, amount, d, from;
  Address at;
  uint8_t act;
  bool bytes, drop, partial, parity, relaxed;      /* bytes: .expect_tx; partial: .noComplete */
  bool noinc;
} MbarOps;
typedef struct PendingOps { uint32_t d, state; } PendingOps;                     /* mbarrier.pending_count */

/* cp.async.bulk and cp.reduce.async.bulk, with tensors: the map is where global memory would be, and the list has rank coordinates. Of
 * bases, one that is wide has its bit. */
typedef enum BulkWhat { BULK_LOAD, BULK_STORE, BULK_SHARED, BULK_PREFETCH } BulkWhat;
enum { WIDE_TO = 1, WIDE_FROM = 2, WIDE_MBAR = 4 };
typedef struct BulkOps {
  uint32_t to, from, bytes, mbar, mask;
  int32_t to_offset, from_offset, mbar_offset;
  uint8_t what, wide, rank, op;        /* rank 0: no tensor; op: ModId of a reduction, or 0 */
  bool im2col;                         /* a load's list goes on with rank - 2 offsets */
} BulkOps;
/* st.async and red.async: to [base + at] of a block, ending at the mbarrier [mbar + mbar_offset] there. The list has count registers. */
typedef struct StoreOps {
  uint32_t base, mbar;
  Address at;
  int32_t mbar_offset;
  uint8_t size, count, width, op;      /* as in MemOps; op: ModId of a reduction, or 0 */
  bool mbar_wide;
} StoreOps;
/* Of a tensor map at [base + at]: tensormap.replace of a field, whose word is its ModId, by value; and fences and prefetches of it.
 * tensormap.cp_fenceproxy copies one from there to [to + to_offset]. */
typedef struct TensorMapOps {
  uint32_t base, value;
  Address at;
  int32_t to_offset;
  uint16_t field;
  uint8_t ord, scope;
  bool wide;                           /* the value */
} TensorMapOps;
typedef struct BulkWaitOps { uint32_t pending; bool reads; } BulkWaitOps;        /* reads: only of shared memory */

/* wgmma.mma_async: the list has the nd registers of d, then, where a_regs, four of a, and where sparse one of metadata. */
typedef struct WgmmaOps {
  uint32_t a, b, scale;
  uint16_t n;
  uint8_t k, a_type, b_type, nd, selector;
  bool a_regs, sparse, neg_a, neg_b, trans_a, trans_b;
} WgmmaOps;

typedef struct PreviousOps { bool waits; } PreviousOps;                        /* griddepcontrol */
typedef struct ClusterOps { bool relaxed; } ClusterOps;                          /* barrier.cluster */
typedef struct RegisterOps { uint16_t count; bool more; } RegisterOps;             /* setmaxnreg */

typedef enum BarAction { BAR_SYNC, BAR_ARRIVE, BAR_RED } BarAction;
typedef enum BarReduce { RED_NONE, RED_POPC, RED_AND, RED_OR } BarReduce;
typedef struct BarOps { uint32_t id, count, d, pred; uint8_t action, reduce; } BarOps;

typedef struct BranchOps { uint32_t target, rank; } BranchOps;                   /* rank: of the edge; cfg.c */
typedef struct TableOps { uint32_t index, first, count; } TableOps;              /* of Unit.brx */
typedef struct CallOps { uint32_t pointer, site; } CallOps;                      /* site: of Unit.calls; pointer: slot, 0 direct */
typedef enum TrapReason { TRAP_TRAP, TRAP_BREAK, TRAP_ASSERT } TrapReason;
/* vprintf and __assertfail: where the first two parameters lie in local memory, from the frame's start, and the result + 1; 0: none */
typedef struct TextOps { uint32_t frame; uint32_t text, args, result; uint8_t reason; } TextOps;

struct Insn {
  union { AluFn *alu; WarpFn *warp; } fn;
  uint32_t guard;                      /* slot of its predicate + 1; 0: none */
  uint32_t fall_rank;                  /* where it ends a block: rank of the edge to the next instruction */
  uint32_t list;
  uint8_t kind, type, nslot;
  bool guard_not : 1, leader : 1;      /* leader: begins a block */
  bool whole : 1, living : 1;          /* .aligned: all lanes of the warp execute it together; those that have ended need not */
  union {
    uint32_t slot[6];
    AluOps alu; CvtOps cvt; SpaceOps isspace; MapOps map; ClockOps clock;
    MemOps mem; CopyOps copy; WaitOps wait; FenceOps fence; IndexOps index;
    WarpOps warp; MatrixOps matrix; MmaOps mma; MbarOps mbar; PendingOps pending;
    BulkOps bulk; BulkWaitOps bulk_wait; StoreOps store; TensorMapOps tensor_map; WgmmaOps wgmma; RegisterOps registers; ClusterOps cluster;
    PreviousOps previous;
    BarOps bar; BranchOps bra; TableOps brx; CallOps call; TextOps text;
  };
};
_Static_assert(sizeof(Insn) <= 72, "instructions stay small");
#endif
