/* internal.h - what the files of the simulator share. Read in this order: insn.h, unit.h, types below, then
 * scan.c -> module.c -> decode*.c -> cfg.c -> link.c (text to instructions, once per module and kernel), then
 * launch.c -> worker.c -> block.c -> exec.c -> alu.c mem.c check.c atom.c async.c warp.c mma.c (instructions to results).
 *
 * A Worker is a host thread; a Block is the state of one running block, which a worker may suspend. */
#ifndef TILERT_SIM_INTERNAL_H
#define TILERT_SIM_INTERNAL_H
#include "sim.h"
#include "unit.h"
#include <pthread.h>

enum { LANES = 32, MAX_WARPS = 32, MAX_BARRIERS = 16 };
#define FULL 0xffffffffu

/* Generic addresses of the windows: not canonical on any 64-bit host, so no host pointer is inside. */
#define SHARED_WINDOW   0x4000000000000000ull
#define LOCAL_WINDOW    0x5000000000000000ull
#define PARAM_WINDOW    0x6000000000000000ull
#define FUNCTION_WINDOW 0x7000000000000000ull     /* + 16 x unit */
#define WINDOW_SIZE     0x0000000100000000ull

/* A .shared variable of a module, of a function of it too. */
typedef struct SharedVar { Name name; uint32_t size, align; bool dynamic; } SharedVar;

struct SimModule {
  SimMachine *machine;
  char *text; size_t len;              /* a copy of the PTX */
  char *strings; size_t nstrings;      /* .debug_str */
  Unit **units; uint32_t nunits;       /* by function; NULL: only declared */
  bool *taken;                         /* beside units: a pointer to the function exists */
  Kernel **kernels; uint32_t nkernels; /* linked so far */
  SharedVar *shared; size_t nshared, shared_cap;
  char **files; uint32_t nfiles;       /* by .file number */
  void *globals;                       /* the block with its variables */
};

/* ---- the machine ---- */
/* block: what free() takes; several parts may share one, and the first of them has it. */
typedef struct Alloc { uintptr_t base, end; void *block; uint32_t parts; } Alloc;
typedef struct AllocPart { size_t bytes, align; uintptr_t base; } AllocPart;
struct SimMachine {
  SimOptions opt;
  pthread_mutex_t lock;
  pthread_cond_t idle;
  Alloc *allocs; size_t nallocs, cap;   /* sorted by base */
  int running;
};

/* ---- running ---- */

/* A call that has not returned. Splits of a warp that came the same way share it, so frames form a tree. */
typedef struct Frame Frame;
struct Frame {
  Frame *parent, *child, *sibling;     /* parent NULL: called from the kernel */
  Frame **root;                        /* of the warp */
  uint32_t part, pc, rank;             /* of the kernel's parts; the call, and the rank of its block */
  uint32_t base, depth, refs;          /* where its local memory begins */
  uint8_t *saved;                      /* the part's registers as they were, where the function was running already */
};

/* frame: NULL in the kernel itself. late: put behind all others; see exec.c */
typedef struct Split { Frame *frame; uint32_t pc, mask, rank, late; uint8_t state; } Split;
enum { SPLIT_RUN, SPLIT_CONV };

typedef struct Pending {               /* one lane's cp.async not yet waited for */
  uint32_t group, dst, pc;
  uint8_t lane, size;
  uint8_t data[16];
} Pending;

typedef enum WarpState { W_RUN, W_BARRIER, W_DONE } WarpState;
struct Warp {
  uint8_t *regs;
  uint32_t index, live;                /* live: lanes not exited */
  Split split[LANES]; uint32_t nsplit;
  Frame *frames;                       /* of calls from the kernel */
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
  SimMachine *machine; SimModule *module; const Kernel *kernel;
  uint32_t grid[3], block[3], dynamic_shared, shared_bytes, nthreads, nwarps;
  uint8_t *params;
  const Alloc *allocs; size_t nallocs;
  uint64_t nblocks, next_block, done_blocks, fail_block;
  bool check, want_stats;
  pthread_mutex_t lock;
  SimError err; SimStats stats;
} Launch;

/* A host thread that runs blocks. */
typedef struct Worker {
  Launch *launch;
  const Alloc *hot;                    /* the allocation touched last */
  SimStats stats;
  SimError err;
} Worker;

/* A block that runs. */
struct Block {
  Worker *worker; Launch *launch; const Kernel *kernel;
  uint64_t index; uint32_t id[3];
  uint8_t *shared; uint32_t shared_bytes;
  uint8_t *local;                      /* per thread, local_bytes each */
  Shadow *shadow;
  Warp warp[MAX_WARPS]; uint32_t nwarps, nlive;
  uint8_t *regs;
  Barrier barrier[MAX_BARRIERS];
  uint64_t budget, executed;
  bool want_stats, check;
};

#define LANES_OF(T, w, off) ((T *)(void *)((w)->regs + (off)))
#define PRED_OF(w, off) (*(uint32_t *)(void *)((w)->regs + (off)))
#define FOR_LANES(i, m) \
  for (uint32_t i##_m = (m), i = 0; i##_m && (i = (uint32_t)__builtin_ctz(i##_m), 1); i##_m &= i##_m - 1)

/* error.c: both return -1 */
int sim_error_set(SimError *e, SimErrorKind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int sim_fault(Block *b, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address, const char *fmt, ...)
  __attribute__((format(printf, 7, 8)));
/* "file:line" or "PTX line n" of an instruction, into buf. */
const char *sim_loc_text(const Block *b, uint32_t pc, char *buf, size_t n);
/* "(x,y,z)" of a thread of the block. */
const char *sim_thread_text(const Block *b, uint32_t linear, char *buf, size_t n);
/* Grow a vector to hold need elements; false when out of memory, leaving it as it was. */
bool sim_vec_grow(void *vec_ptr, size_t *cap, size_t need, size_t elem);

/* machine.c */
int sim_machine_alloc(SimMachine *m, size_t bytes, void **out, SimError *err);
/* n variables in one block, which sim_machine_release takes: fills their bases. */
int sim_machine_alloc_parts(SimMachine *m, AllocPart *part, size_t n, void **block, SimError *err);
int sim_machine_release(SimMachine *m, void *ptr, SimError *err);
/* module.c: every function of mod->text; -1 with err. */
int ptx_module_read(SimModule *mod, SimError *err);
/* worker.c */
void workers_run(Launch *l);
/* block.c */
Block *sim_block_new(Worker *k);
void sim_block_free(Block *b);
void sim_block_start(Block *b, uint64_t index);
/* exec.c */
int sim_block_run(Block *b);
/* call.c: all lanes of s call a part; -1 with the error. */
int call_enter(Block *b, Warp *w, Split *s, const Insn *in, uint32_t part);
/* Lanes m, all of s, return; false where s is in the kernel itself. */
bool call_leave(Block *b, Warp *w, Split *s, uint32_t m);
/* The part that a lane calls. */
int call_target(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t *part);
Frame *frame_share(Frame *f);
void frame_drop(Frame *f);
/* Where the local memory of a split's function begins. */
uint32_t frame_base(const Split *s);
/* check.c: shadow of shared memory */
Shadow *shadow_new(uint32_t bytes, uint32_t nwarps);
void shadow_free(Shadow *s);
void shadow_start(Shadow *s, Block *b);                /* a fresh block */
void clock_tick(Block *b, Warp *w);                    /* lanes of w synchronised */
void clock_arrive(Block *b, Warp *w, Barrier *bar);
void clock_join(Block *b, Warp *w, const Barrier *bar);
int shadow_read(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n);
int shadow_write(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, const uint8_t *data, bool atomic);
void shadow_pend(Block *b, uint32_t off, uint32_t n, bool on);
void shadow_landed(Block *b, Warp *w, uint32_t pc, uint32_t lane, uint32_t off, uint32_t n);
/* mem.c */
WarpFn mem_load, mem_store;
void mem_address(const Warp *w, uint32_t base, const Address *at, uint64_t addr[LANES]);
/* Space of a generic address, which becomes an offset where the space is a window. */
Space mem_space_of(uint64_t *addr);
/* Host pointer of n bytes at addr in a space, bounds and alignment checked; NULL with the error set. */
uint8_t *mem_host(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write);
void mem_stats_shared(Block *b, uint32_t m, const uint64_t *addr, uint32_t n);
void mem_stats_global(Block *b, uint32_t m, const uint64_t *addr, uint32_t n, bool write);
/* print.c: the text that the pointer in local memory at param leads to, at most n bytes with the end; and vprintf. */
int sim_text(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t param, char *out, size_t n);
WarpFn sim_print;
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
