/* internal.h - what the files of the simulator share. Read in this order: types below, then
 * scan.c -> module.c -> decode*.c -> cfg.c (text to instructions, once per module), then
 * launch.c -> exec.c -> alu.c mem.c check.c atom.c async.c warp.c mma.c (instructions to results).
 *
 * Registers. A kernel's registers, constants and special registers live in one byte array per warp.
 * A register of n bytes is an array of 32 lanes (32 n bytes, 64-byte aligned), so an instruction is
 * a loop over 32 neighbours. A predicate is one 32-bit mask. Every operand of a decoded instruction
 * is a byte offset into that array: immediates became constants, device functions were inlined.
 */
#ifndef TILERT_SIM_INTERNAL_H
#define TILERT_SIM_INTERNAL_H
#include "sim.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 32, MAX_WARPS = 32, MAX_BARRIERS = 16 };
#define FULL 0xffffffffu

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

typedef enum Space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_CONST, SP_PARAM } Space;

/* Generic addresses of the windows: not canonical on any 64-bit host, so no host pointer is inside. */
#define SHARED_WINDOW 0x4000000000000000ull
#define LOCAL_WINDOW  0x5000000000000000ull
#define PARAM_WINDOW  0x6000000000000000ull
#define WINDOW_SIZE   0x0000000100000000ull

/* ---- instructions ---- */
typedef struct Insn Insn;
typedef struct Warp Warp;
typedef struct Worker Worker;
typedef void AluFn(void *d, const void *a, const void *b, const void *c, uint64_t imm);
/* 0, or -1 with the worker's error filled. m: lanes that execute (guard applied). */
typedef int WarpFn(Worker *k, Warp *w, const Insn *in, uint32_t m);

typedef enum Kind { K_ALU, K_SETP, K_WARP, K_CONV, K_BRA, K_BRX, K_EXIT, K_BAR, K_TRAP, K_NOP } Kind;
enum { POST_FTZ32 = 1, POST_FTZ16 = 2, POST_SAT = 4, POST_RELU = 8 };

struct Insn {
  union { AluFn *alu; WarpFn *warp; } fn;
  uint32_t d, a, b, c;       /* register-file offsets; which are used depends on the kind */
  uint64_t imm;
  uint32_t guard;            /* predicate offset + 1; 0: none */
  uint32_t ext;              /* first of next extra operands in Kernel.ext */
  uint32_t target;           /* K_BRA: destination; K_BRX: first entry of Kernel.brx */
  uint32_t rank, fall_rank;  /* K_BRA: rank of the taken and of the fall-through edge; see cfg.c */
  uint16_t next, count;      /* extra operands; K_BRX: entries */
  uint8_t kind, dw, post, rnd;
  uint8_t type, type2, space, vec;
  uint8_t esize, sub, flags, src_width;
  bool guard_not, leader;
  bool strong;               /* volatile, relaxed, acquire or release: see check.c */
};
/* Insn.flags; on a conversion IF_ALIGNED means satfinite. */
enum { IF_ADDR64 = 1, IF_ALIGNED = 2, IF_TRANS = 4, IF_HAS_D = 8, IF_STORE = 16, IF_COUNT = 32 };

typedef struct Loc { uint32_t ptx_line, line; uint16_t file, column; } Loc;

typedef struct ConstSlot { uint32_t offset; uint8_t width; bool dynamic; uint64_t value; } ConstSlot;
typedef enum SpecialId {
  S_TID, S_NTID = 3, S_CTAID = 6, S_NCTAID = 9, S_LANEID = 12, S_WARPID, S_NWARPID, S_SMID, S_NSMID, S_GRIDID,
  S_LT, S_LE, S_EQ, S_GE, S_GT, S_DYNSMEM, S_TOTSMEM, S_ZERO, S_ONE, S_CLOCK, S_CLOCK64, S_TIMER
} SpecialId;
typedef struct SpecialSlot { uint32_t offset; uint8_t id, width; } SpecialSlot;

typedef struct Param { uint32_t size, align, offset; } Param;

typedef struct Kernel {
  char *name;
  Insn *code; uint32_t ncode;
  Loc *loc;                  /* beside code */
  uint32_t *rank;            /* beside code: rank of the block an instruction is in */
  uint32_t *ext; uint32_t next;
  uint32_t *brx, *brx_rank; uint32_t nbrx;
  ConstSlot *consts; uint32_t nconsts;
  SpecialSlot *specials; uint32_t nspecials;
  uint32_t reg_bytes;        /* registers proper: the start of the file */
  uint32_t file_bytes;       /* registers, then constants and specials */
  Param *params; uint32_t nparams, param_bytes;
  uint32_t *param_size, *param_align;
  uint32_t static_shared, shared_align, local_bytes;
  uint32_t reqntid[3], maxntid[3];
} Kernel;

struct SimModule {
  SimMachine *machine;
  Kernel **kernels; uint32_t nkernels;
  char **files; uint32_t nfiles;   /* by .file number */
  void **globals; uint32_t nglobals;
};

/* ---- the machine ---- */
typedef struct Alloc { uintptr_t base, end; void *block; size_t block_bytes; } Alloc;
struct SimMachine {
  SimOptions opt;
  pthread_mutex_t lock;
  pthread_cond_t idle;
  Alloc *allocs; size_t nallocs, cap;   /* sorted by base */
  int running;
};

/* ---- running ---- */
typedef struct Split { uint32_t pc, mask, rank; uint8_t state; } Split;
enum { SPLIT_RUN, SPLIT_CONV };

typedef struct Pending {               /* one lane's cp.async not yet waited for */
  uint32_t group, dst, pc;
  uint8_t lane, size;
  uint8_t data[16];
} Pending;

typedef enum WarpState { W_RUN, W_BARRIER, W_DONE } WarpState;
struct Warp {
  uint8_t *regs;
  uint32_t index, live, pc;            /* live: lanes not exited */
  Split split[LANES]; uint32_t nsplit;
  uint32_t spin, turn, demotions;      /* backward branches since a demotion, in this turn; see exec.c */
  WarpState state;
  const Insn *wait;                    /* the barrier instruction a W_BARRIER warp is at */
  uint32_t wait_id;
  uint32_t clock;                      /* see check.c */
  bool touched;                        /* shared memory accessed in this clock */
  uint32_t vc[MAX_WARPS];
  Pending *pending; size_t npending, pending_cap;
  uint32_t group[LANES];               /* groups committed, per lane */
};

typedef struct Barrier {
  uint32_t arrived, expected;          /* warps; expected 0: all that live */
  uint32_t waiting;                    /* mask of warps inside a sync */
  uint32_t pops, votes_and, votes_or;
  uint32_t vc[MAX_WARPS];
} Barrier;

typedef struct Shadow Shadow;

typedef struct Launch {
  SimMachine *machine; SimModule *module; Kernel *kernel;
  uint32_t grid[3], block[3], dynamic_shared, shared_bytes, nthreads, nwarps;
  uint8_t *params;
  const Alloc *allocs; size_t nallocs;
  uint64_t nblocks, next_block, done_blocks, fail_block;
  bool check, want_stats;
  pthread_mutex_t lock;
  SimError err; SimStats stats;
  uint64_t start_ns;
} Launch;

struct Worker {
  Launch *launch; Kernel *kernel;
  uint64_t block_index; uint32_t block[3];
  uint8_t *shared; uint32_t shared_bytes;
  uint8_t *local;                      /* per thread, local_bytes each */
  Shadow *shadow;
  Warp warp[MAX_WARPS]; uint32_t nwarps, nlive;
  uint8_t *regs;
  Barrier barrier[MAX_BARRIERS];
  uint64_t budget, executed;
  const Alloc *hot;                    /* the allocation touched last */
  SimStats stats;
  SimError err;
  bool want_stats, check;
};

#define LANES_OF(T, w, off) ((T *)(void *)((w)->regs + (off)))
#define PRED_OF(w, off) (*(uint32_t *)(void *)((w)->regs + (off)))
#define FOR_LANES(i, m) \
  for (uint32_t i##_m = (m), i = 0; i##_m && (i = (uint32_t)__builtin_ctz(i##_m), 1); i##_m &= i##_m - 1)

/* error.c: both return -1 */
int sim_error_set(SimError *e, SimErrorKind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int worker_error(Worker *k, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address,
                 const char *fmt, ...) __attribute__((format(printf, 7, 8)));
/* print.c: the text that the pointer in local memory at param leads to, at most n bytes with the end; and vprintf. */
int sim_text(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint64_t param, char *out, size_t n);
WarpFn sim_print;
/* "file:line" or "PTX line n" of an instruction, into buf. */
const char *sim_loc_text(const Worker *k, uint32_t pc, char *buf, size_t n);
/* "(x,y,z)" of a thread of the block. */
const char *sim_thread_text(const Worker *k, uint32_t linear, char *buf, size_t n);
/* Grow a vector to hold need elements; false when out of memory, leaving it as it was. */
bool sim_vec_grow(void *vec_ptr, size_t *cap, size_t need, size_t elem);

/* machine.c */
int sim_machine_alloc(SimMachine *m, size_t bytes, void **out, SimError *err);
int sim_machine_release(SimMachine *m, void *ptr, SimError *err);
/* decode.c: every kernel of a PTX text into mod; -1 with err. */
int ptx_module_read(SimModule *mod, const char *ptx, size_t len, SimError *err);
void ptx_kernel_free(Kernel *kn);
/* cfg.c: fill leader, ranks of blocks and edges; false when out of memory. */
bool cfg_rank(Kernel *kn);
/* exec.c */
int sim_block_run(Worker *k);
/* check.c: shadow of shared memory */
Shadow *shadow_new(uint32_t bytes, uint32_t nwarps);
void shadow_free(Shadow *s);
void shadow_start(Shadow *s, Worker *k);               /* a fresh block */
void clock_tick(Worker *k, Warp *w);                   /* lanes of w synchronised */
void clock_arrive(Worker *k, Warp *w, Barrier *b);
void clock_join(Worker *k, Warp *w, const Barrier *b);
int shadow_read(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n);
int shadow_write(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n,
                 const uint8_t *data, bool atomic);
void shadow_pend(Worker *k, uint32_t off, uint32_t n, bool on);
void shadow_landed(Worker *k, Warp *w, uint32_t pc, uint32_t lane, uint32_t off, uint32_t n);
/* mem.c */
WarpFn mem_load, mem_store;
void mem_address(const Warp *w, const Insn *in, uint32_t reg, uint64_t off, uint64_t addr[LANES]);
/* Space of a generic address, which becomes an offset where the space is a window. */
Space mem_space_of(uint64_t *addr);
/* Host pointer of n bytes at addr in a space, bounds and alignment checked; NULL with the error set. */
uint8_t *mem_host(Worker *k, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n,
                  bool write);
void mem_stats_shared(Worker *k, uint32_t m, const uint64_t *addr, uint32_t n);
void mem_stats_global(Worker *k, uint32_t m, const uint64_t *addr, uint32_t n, bool write);
/* atom.c, async.c, cvt.c, warp.c, mma.c */
WarpFn atom_exec, async_copy, async_commit, async_wait, cvt_exec, isspacep_exec, fence_exec, clock_exec;
WarpFn shfl_exec, vote_exec, match_exec, redux_exec, elect_exec, warpsync_exec, activemask_exec;
WarpFn ldmatrix_exec, stmatrix_exec, mma_exec;

/* alu.c: rows of alu.def for this host; NULL where there is no such row. */
typedef enum AluOp {
#define ALU_NAME(id) A_##id,
#include "alu_names.def"
  A_COUNT
} AluOp;
typedef struct AluRow { uint16_t op; uint8_t var, type, kind; AluFn *fn; } AluRow;
enum { V_NONE, V_LO, V_HI, V_WIDE, V_APPROX, V_FULL, V_NAN };
const AluRow *alu_find(AluOp op, int var, Type type);

#endif
