/* internal.h - what the files of the simulator share. Read in this order: insn.h, unit.h, types below, then
 * scan.c -> reader.c -> module.c -> decode*.c -> cfg.c -> link.c (text to instructions, once per module and kernel), then
 * launch.c -> worker.c -> block.c -> exec.c -> alu.c mem.c check.c atom.c async.c mbarrier.c flight.c bulk.c store.c tensor_map.c
 * tensor.c warp.c mma.c wgmma.c registers.c cluster.c (instructions to results).
 *
 * A Worker is a host thread; a Block is the state of one running block, a Cluster of blocks that run together, which a worker may
 * suspend. Most clusters are of one block. */
#ifndef TILERT_SIM_INTERNAL_H
#define TILERT_SIM_INTERNAL_H
#include "check.h"
#include "sim.h"
#include "unit.h"
#include <pthread.h>

enum { LANES = 32, GROUP = 4, MAX_WARPS = 32, MAX_BARRIERS = 16, MAX_RANK = 5, MAX_CLUSTER = 16 };
#define FULL 0xffffffffu

/* Generic addresses of the windows: not canonical on any 64-bit host, so no host pointer is inside. */
#define SHARED_WINDOW   0x4000000000000000ull
#define LOCAL_WINDOW    0x5000000000000000ull
#define PARAM_WINDOW    0x6000000000000000ull
#define FUNCTION_WINDOW 0x7000000000000000ull     /* + 16 x unit */
#define WINDOW_SIZE     0x0000000100000000ull
/* In the window of shared memory a block finds its own below 1 << RANK_SHIFT, and that of the block of rank r from r + 1 times that on. */
enum { RANK_SHIFT = 24, MOST_RANKS = 255 };

/* A .shared variable of a module, of a function of it too. */
typedef struct SharedVar { Name name; uint32_t size, align; bool dynamic; } SharedVar;

/* A .global or .const variable. */
typedef struct GlobalVar { Name name; uint64_t base; uint32_t size; } GlobalVar;

struct SimModule {
  SimMachine *machine;
  char *text; size_t len;              /* a copy of the PTX */
  char *strings; size_t nstrings;      /* .debug_str */
  Unit **units; uint32_t nunits;       /* by function; NULL: only declared */
  bool *taken;                         /* beside units: a pointer to the function exists */
  Kernel **kernels; uint32_t nkernels; /* linked so far */
  SharedVar *shared; size_t nshared, shared_cap;
  char **files; uint32_t nfiles;       /* by .file number */
  GlobalVar *global; size_t nglobal, global_cap;
  void *globals;                       /* the block with these */
};

/* ---- the machine ---- */
/* block: what free() takes; several parts may share one, and the first of them has it. */
typedef struct Alloc { uintptr_t base, end; void *block; uint32_t parts; Shadow *shadow; } Alloc;   /* shadow: NULL unchecked */
typedef struct AllocPart { size_t bytes, align; uintptr_t base; } AllocPart;
/* Launches that may still run when the next one starts, the oldest first (overlap.c): the first of its segments; whether it waited for the
 * one in front. Records of all of them, and the stream that they are in. */
typedef struct Earlier { uint32_t start; const Kernel *kernel; bool waited; } Earlier;
typedef struct Past { Earlier *launch; size_t n, cap; Segments segments; Readers readers; const void *stream; } Past;
struct SimMachine {
  SimOptions opt;
  pthread_mutex_t lock;
  pthread_cond_t idle;
  Alloc *allocs; size_t nallocs, cap;   /* sorted by base */
  int running;
  pthread_mutex_t turn;                /* one launch at a time */
  uint32_t next_segment, launches;     /* see check.h */
  int cancel;                          /* the launch that runs is to stop */
  Past past;
  int settled;                         /* the host has waited for all launches */
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

/* frame: NULL in the kernel itself. late: put behind all others; see exec.c. on: what a SPLIT_WAIT waits for, an mbarrier's offset or
 * ON_ANY: to be tried again whenever something ends. */
typedef struct Split { Frame *frame; uint32_t pc, mask, rank, late, on; uint8_t state; } Split;
enum { SPLIT_RUN, SPLIT_CONV, SPLIT_WAIT };
#define ON_ANY UINT32_MAX
#define ON_WARPGROUP 0x80000000u       /* | its number: for others of it */
#define ON_REGISTERS 0x40000000u       /* for some to be free */
#define ON_CLUSTER 0x20000000u         /* for the cluster's barrier */
#define ON_OTHERS (ON_WARPGROUP | ON_REGISTERS | ON_CLUSTER)  /* waits that do not time out */

typedef struct Pending {               /* one lane's cp.async not yet waited for */
  uint32_t group, dst, pc, serial;     /* serial: of the copies of the warp */
  uint8_t lane, size, bytes;           /* bytes: so many are read from src, the rest is zero */
  uint64_t src, seen;                  /* seen: of the records of writes there, when it was issued */
  uint8_t data[16];
} Pending;

/* A tensor map that a fence has shown to the warp's copies, by the records of its writes then. */
typedef struct MapFence { uint64_t at, sum; } MapFence;
enum { MAP_FENCES = 8 };

/* The last look at memory that other blocks may change, by an instruction. */
typedef struct Poll { uint32_t pc; uint64_t seen, registers; } Poll;   /* registers: a sum of them there, at the last look */
enum { POLLS = 4, IDLE_LOOKS = 3 };

/* W_WAIT: none of its splits can go on, and some wait for an mbarrier */
typedef enum WarpState { W_RUN, W_BARRIER, W_WAIT, W_DONE } WarpState;
struct Warp {
  uint8_t *regs;
  uint32_t index, live;                /* live: lanes not exited */
  Split split[LANES]; uint32_t nsplit;
  Frame *frames;                       /* of calls from the kernel */
  uint32_t spin, turn, demotions;      /* backward branches since a demotion, in this turn; see exec.c */
  Poll poll[POLLS];
  uint32_t idle, idle_splits;          /* looks in a row that saw what the one before saw; splits put behind for it */
  bool stuck;                          /* nor have registers changed since the last look there */
  WarpState state;
  const Insn *wait;                    /* the barrier instruction a W_BARRIER warp is at */
  uint32_t wait_id;
  uint32_t clock, segment;             /* see check.c; segment 0: none begun */
  uint32_t floor;                      /* what the block did in segments below happened before: all its agents have met since */
  bool touched;                        /* memory accessed in this clock */
  Clocks clocks;
  Know *know;
  Published fence, seen;               /* known at the last fence; read by relaxed accesses since */
  Pending *pending; size_t npending, pending_cap; uint32_t serial;
  MapFence map_fence[MAP_FENCES]; uint32_t map_fences, maps_released;  /* the latest; the clock behind the last release of maps */
  struct Wgmma *wgmma;                 /* NULL: none yet */
  uint32_t cluster_lanes, cluster_now; /* that have arrived at the cluster's barrier and not waited; for whose phase others are missing */
  uint32_t registers_held, changes, change_pc;     /* of a thread; how often that was changed, and where last */
  uint32_t park_on, expired;           /* what the wait that just said PARK is for; lanes whose next try_wait times out */
  uint32_t *hollow;                    /* by slot / 64: lanes that a load which copies found unwritten; NULL: none yet */
  uint32_t group[LANES];               /* groups committed, per lane */
  uint32_t bulk_group[LANES];          /* of bulk copies */
  uint32_t bulk_reads, bulk_writes;    /* the agents of those; 0: none yet */
};

typedef struct Barrier {
  uint32_t arrived, expected;          /* warps; expected 0: all that live */
  uint32_t waiting;                    /* mask of warps inside a sync */
  uint32_t pops, votes_and, votes_or;
  Clocks clocks;
  Know *know;
} Barrier;

/* An mbarrier, by its offset in shared memory (PTX ISA, "mbarrier"). The bytes that it takes are nobody's. */
typedef struct Mbar {
  uint32_t at; bool live;              /* not live: invalidated; its agent is used again */
  uint32_t expected, pending, phase;
  int32_t tx;
  Block *block;                        /* whose it is */
  uint32_t agent, first;               /* the agent's clock in phase 0: it moves on with the phases */
  uint32_t seen[MAX_WARPS];            /* phases that a warp has seen the end of */
  uint64_t init;                       /* the record of who initialised it */
  uint32_t last;                       /* pc of the latest arrival + 1 */
  Clocks now, done;                    /* of who has arrived in this phase; in all phases before */
  Know *know_now, *know_done;
} Mbar;

/* A part of a tensor, in steps: row r of it are box[0] elements in shared memory, one behind the other (tensor.c). */
typedef struct Box {
  uint64_t base, stride[MAX_RANK];     /* bytes, of stride[0] one element */
  uint32_t extent[MAX_RANK], size[MAX_RANK], step[MAX_RANK], rank, bytes, type, swizzle;      /* bytes: of an element; extent: - 1 */
  int32_t at[MAX_RANK];
  bool nan, im2col;
  int32_t lower[MAX_RANK], upper[MAX_RANK];    /* of im2col: where pixels may begin along a dimension */
  uint32_t shift[MAX_RANK], pixels;    /* what is added to where they begin, and how many there are */
} Box;

/* What does an access in place of the warp that starts it: an agent of a block, and its segment, 0 where nothing is checked. */
typedef struct Doer { uint32_t agent, segment; } Doer;

/* Something in flight: it ends at an mbarrier, or with a bulk group of its thread. */
typedef enum FlightKind { FLIGHT_COPIES, FLIGHT_BULK, FLIGHT_BOX, FLIGHT_STORE } FlightKind;
typedef struct Flight {
  FlightKind kind;
  Block *by;                           /* whose warp started it; the flight is its mbarrier's block's */
  uint32_t pc, warp, lane, mbar;       /* mbar: index; NO_MBAR: a group */
  uint32_t serial;                     /* FLIGHT_COPIES: the thread's cp.async before this one; of a group, its number */
  uint64_t to, from;                   /* FLIGHT_BULK; of a box the one that is shared memory */
  uint32_t bytes;
  union { Box box; uint64_t value[4]; };
} Flight;
#define NO_MBAR UINT32_MAX

struct Launch {
  SimMachine *machine; SimModule *module; const Kernel *kernel;
  uint32_t grid[3], block[3], dynamic_shared, shared_bytes, nthreads, nwarps;
  uint32_t cluster[3], ncluster;       /* blocks of a cluster, and all of them */
  bool explicit_cluster;               /* the launch or the kernel says how many */
  uint8_t *params;
  const TilertManifest *manifest;      /* names of the parameters; NULL: the PTX's own, if any */
  const Alloc *allocs; size_t nallocs;
  uint64_t nblocks, next_block, done_blocks, fail_block;
  bool check, want_stats;
  uint32_t registers;                  /* of a thread at the start; 0: not known */
  uint32_t nclocks;                    /* of a block, as other blocks know them */
  bool turns;                          /* blocks may wait for each other: one worker runs them in turn */
  bool parallel;                       /* several workers */
  bool again;                          /* what is wrong lies between blocks: to be found again on one worker */
  bool quiet;                          /* it was all said before: no prints, no reports */
  uint32_t nworkers;
  uint64_t changes;                    /* of memory, as far as other blocks may wait for it; where turns */
  uint64_t executed; int64_t told_ns;  /* warp instructions so far; when that was reported last */
  Segments segments; Readers readers; SyncVars syncs; uint32_t know_levels;
  const void *stream; bool dependent;  /* it may overlap with those of the past */
  Past past; uint32_t ended_from;      /* without records, which are in those above; and from which segment on the wait is for them */
  bool waited, waited_first;           /* some block for the launch in front; before it let the next one start, or ended */
  pthread_mutex_t lock;
  SimError err; SimStats stats;
};

/* A host thread that runs blocks. */
typedef struct Undo Undo;
struct Worker {
  Launch *launch;
  const Alloc *hot;                    /* the allocation touched last */
  uint32_t segment_next, segment_end;  /* taken and not used */
  uint32_t reader_free, reader_next, reader_end;
  Undo *undo; size_t nundo, undo_cap;
  bool no_memory;                      /* for what is known of other blocks */
  SimStats stats;
  SimError err;
};

/* The last use that a warp of another block has made of a block's shared memory. early: before it arrived in the present phase of the
 * cluster's barrier. */
typedef struct Visit { uint32_t clock, pc, lane; bool any, early; } Visit;

/* A block that runs. */
struct Block {
  Worker *worker; Launch *launch; const Kernel *kernel;
  Cluster *cluster; uint32_t rank;     /* in the cluster */
  uint64_t index; uint32_t id[3], place[3];    /* place: in the cluster */
  bool over;                           /* all its threads have ended */
  uint8_t *shared; uint32_t shared_bytes;
  uint8_t *local;                      /* per thread, local_bytes each */
  uint8_t *local_init;                 /* beside local, a bit for each byte that was written; NULL: unchecked */
  Shadow *shadow;                      /* of shared memory; NULL: unchecked */
  SyncVars syncs;                      /* in shared memory */
  Listed *listed; size_t nlisted, listed_cap;
  Warp warp[MAX_WARPS]; uint32_t nwarps, nlive;
  uint8_t *regs;
  Barrier barrier[MAX_BARRIERS];
  Mbar **mbar; size_t nmbar, mbar_cap;
  Flight *flight; size_t nflight, flight_cap;
  Clocks cluster_clocks, cluster_done; /* of those who have; and of the phases that are over */
  Know *cluster_know, *cluster_know_done;
  Visit *visit;                        /* by rank and warp; NULL in a cluster of one */
  Know *ended;                         /* what its warps that have ended knew */
  uint32_t registers_free;             /* by a warp's threads */
  uint32_t previous;                   /* the agent that knows of the launch in front; 0: none */
  bool waited, started_next;           /* for that; the next launch may start as far as this block goes */
  uint32_t wgmma_agent[MAX_WARPS / GROUP];   /* by warpgroup; 0: none yet */
  Agent agent[MAX_AGENTS]; uint32_t nagents, nproxies;     /* by agent, those of warps unused; views of clocks in use */
  uint64_t budget, executed, reported; /* reported: so many are in the launch's count */
  bool want_stats, check;
};

/* Blocks that run together. */
enum { SUMS = 8, FIRST_SUMS = 16 };
struct Cluster {
  Block *block[MAX_CLUSTER]; uint32_t n;
  uint64_t events, events_then, events_looked;             /* arrivals of any kind; when waits timed out last; and all warps looked */
  uint32_t timeouts, looks;                                /* so often in vain */
  bool round;                          /* the same state came twice: it goes round as long as the launch's count is `changes` */
  uint32_t waited; uint64_t changes;   /* turns in which nobody changed memory; that count when the last one ended */
  uint64_t sum[SUMS];                  /* of its state when some of them ended */
  bool met;                            /* somebody has arrived at its barrier */
  uint32_t failed;                     /* rank of the block that has the fault */
};

#define LANES_OF(T, w, off) ((T *)(void *)((w)->regs + (off)))
#define PRED_OF(w, off) (*(uint32_t *)(void *)((w)->regs + (off)))
#define FOR_LANES(i, m) \
  for (uint32_t i##_m = (m), i = 0; i##_m && (i = (uint32_t)__builtin_ctz(i##_m), 1); i##_m &= i##_m - 1)

/* error.c */
int sim_error_set(SimError *e, SimErrorKind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));   /* -1 */
/* A text that grows as far as there is room. */
typedef struct Text { char *at; size_t n, room; } Text;
void text_add(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* spot.c: the fault of an instruction in a lane; w NULL, lane -1: of none. -1. */
int sim_fault(Block *b, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address, const char *fmt, ...)
  __attribute__((format(printf, 7, 8)));
/* "file:line" or "PTX line n" of an instruction, into buf. */
const char *sim_loc_text(const Block *b, uint32_t pc, char *buf, size_t n);
const char *sim_loc_text_in(const Kernel *k, uint32_t pc, char *buf, size_t n);
/* "(x,y,z)" of a thread of the block, and of a block. */
const char *sim_thread_text(const Block *b, uint32_t linear, char *buf, size_t n);
const char *sim_program_text(const Launch *l, uint64_t index, char *buf, size_t n);
/* Another instruction has to do with the fault that was just made. */
void sim_fault_also(Block *b, uint32_t pc);
void sim_fault_also_in(Block *b, const Kernel *k, uint32_t pc);
/* Of n allocations in order of their addresses the last that does not begin above addr; NULL: there is none. */
const Alloc *sim_alloc_below(const Alloc *allocs, size_t n, uint64_t addr);
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
/* launch.c: clusters that fit the device at a time. */
uint64_t sim_resident(const Launch *l);
/* worker.c: so many warp instructions of a block count now; now and then, who wants to know is told. */
void sim_report(Block *b, bool ended);
/* block.c */
Cluster *sim_cluster_new(Worker *k);
void sim_cluster_free(Cluster *c);
/* The cluster that comes after so many blocks. */
void sim_cluster_start(Cluster *c, uint64_t before);
/* Host memory that a cluster's state takes, at most about. */
uint64_t sim_cluster_bytes(const Launch *l);
/* overlap.c: the launch takes over the records of those that it may overlap with: true, or false, leaving it none; it begins, its segments
 * being known; it has ended, and its records go or are kept. */
bool past_take(Launch *l);
void past_begin(Launch *l);
void past_end(Launch *l);
void past_drop(Past *p);
/* Whether a record is of a launch in front of this one; whose kernel that is, or this one; whether the
 * warp knows of a wait; and that the launch of a record has ended. */
bool is_earlier(const Launch *l, uint64_t record);
const Kernel *record_kernel(const Launch *l, uint64_t record);
bool has_waited(const Block *b, const Warp *w);
bool previous_ended(const Block *b, const Warp *w, uint64_t record);
void previous_start(Block *b);
void previous_block_ended(Block *b);
/* exec.c: run a cluster until it ends or has had its turn. Given up counts as ended. */
typedef enum TurnEnd { TURN_ENDED, TURN_FAILED, TURN_SUSPENDED, TURN_STOPPED } TurnEnd;
TurnEnd sim_cluster_run(Cluster *c);
/* A strong access or atomic of a warp saw these values; changed: it wrote others. */
void poll_note(Block *b, Warp *w, const Insn *in, uint64_t what, bool changed);
/* fault.c: -1, with the fault in words. */
typedef struct VarRange { Name name; uint64_t from, to; } VarRange;
int fault_misaligned(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write);
int fault_window(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, uint64_t size, bool write);
int fault_variable(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, const VarRange *v, bool write);
int fault_local(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n);   /* never written */
int fault_hollow(Block *b, Warp *w, const Insn *in, uint32_t lane);   /* a copy of such, stored where others see it */
int fault_outside(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write);
/* Shared memory of another block of the cluster that cannot be used: why. */
int fault_remote(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write, const char *why);
/* Blocks that have not ended: the first of them, and how many there are. All wait for each other; are stopped; one has had all its
 * instructions. */
enum { TOLD_BLOCKS = 4 };
typedef struct Going { Block *block[TOLD_BLOCKS]; uint32_t n; } Going;
int fault_all_wait(const Going *g);
int fault_stopped(const Going *g);
int fault_index(Block *b, Warp *w, const Insn *in, uint32_t lane, int64_t index);
int fault_budget(Block *b, Warp *w, const Insn *in);
/* The address of an instruction that accesses memory, in shared memory of a copy; NULL: none. */
const Address *insn_address(const Insn *in);
int fault_deadlock(Cluster *c);        /* no warp of it can go on */
/* exec.c: what waits for the mbarrier tries again. */
void wake_waiters(Block *b, uint32_t on);
/* mbarrier.c: "mbarrier shared+0x10": what a split that waits is told of; and what ends there. */
void mbar_wait_text(const Block *b, const Warp *w, const Split *s, Text *t);
void mbars_clear(Block *b);
void mbars_free(Block *b);
/* An arrival that no thread makes; -1 with the fault. */
int mbar_arrived(Block *b, const Flight *f);
int mbar_released(Block *b, const Flight *f);                /* the same, by a thread that hands over what it has done so far */
int mbar_completed(Block *b, const Flight *f, uint32_t bytes);
/* The mbarrier that a lane names, of its block or of another, initialised so that the async proxy may use it; NULL with the fault. */
Mbar *mbar_for_copy(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t *index);
/* flight.c: something starts that is to land in home; what ends at an mbarrier lands; all that parked waits wait for, which says whether
 * there was any. -1 with the fault. */
int flight_add(Block *b, Warp *w, const Insn *in, Block *home, const Flight *f);
int flights_land(Block *b, uint32_t mbar);
int flights_land_waited(Block *b);
int flights_of_landed(Block *b, const Warp *w, uint32_t m);  /* arrivals of lanes m whose copies have all landed */
/* The bulk groups of a lane below a number. */
int flights_land_groups(Block *b, const Warp *w, uint32_t lane, uint32_t below);
/* The block whose shared memory an address of the window names, which becomes an offset in it; NULL: there is none. */
Block *cluster_other(Block *b, uint64_t *addr);
static inline Block *cluster_block(Block *b, uint64_t *addr) { return *addr >> RANK_SHIFT ? cluster_other(b, addr) : b; }
/* The same where a lane uses it: NULL with the fault where there is none, it has ended, or the instruction only takes the block's own. */
Block *cluster_reach(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t *addr, uint32_t n, bool write);
/* The offset in a block's shared memory as block b names it. */
uint64_t cluster_address(const Block *b, const Block *of, uint64_t off);
/* Whether a block of the launch is in b's cluster. */
bool cluster_has(const Block *b, uint64_t index);
/* tensor.c: the box that a lane's map and coordinates name, with the checks of the hardware; false with the fault. Its bytes in shared
 * memory; records of what an agent reads or writes in global memory; and to move it. */
bool box_named(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t map, Box *out);
uint32_t box_bytes(const Box *x);                           /* moved */
uint32_t box_reach(const Box *x);                           /* of shared memory, from the first on */
bool box_reduces(const Box *x, ModId op);                   /* there is such a reduction of its elements */
int box_check(Block *b, Warp *w, const Insn *in, uint32_t lane, const Box *x, bool write, Doer by);
void box_load(Block *b, const Box *x, uint32_t shared);
void box_store(Block *b, const Box *x, uint32_t shared, ModId op);
/* bulk.c: what is in flight moves to the block. */
void bulk_move(Block *b, const Flight *f);
/* store.c: the same of a store; whether an instruction is one; and whether it is a reduction, or one in bulk. */
void store_move(Block *b, const Flight *f);
bool is_async_store(const Insn *in);
bool async_reduces(const Insn *in);
/* atom.c: *p becomes what the operation makes of it and val. */
void atom_combine(ModId op, Type t, uint8_t *p, uint64_t val);
/* The block ends: 0, or -1 if something is in flight that writes to its shared memory. */
int flights_ended(Block *b);
/* async.c: a thread's cp.async that are older than serial land for an mbarrier's agent. */
int async_land(Block *b, Warp *w, uint32_t lane, uint32_t serial, uint32_t segment);
bool async_pending(const Warp *w, uint32_t lane, uint32_t serial);   /* some before that one have not landed */
/* registers.c: the first of a warp's warpgroup, of GROUP warps; NULL with the fault: it is in none. */
const Warp *warpgroup_of(Block *b, Warp *w, const Insn *in);
/* Where a tile with a swizzle of 32, 64 or 128 bytes has what lies at an address of shared memory without one (span 0): pieces of 16 bytes
 * are exchanged by address bits 7 and up. */
static inline uint32_t swizzled(uint32_t at, uint32_t span) { return span ? at ^ (at >> 3 & (span - 1) & ~15u) : at; }
/* mma.c: element e of a register or word, of a type that tensor cores multiply. */
float mma_number(Type t, uint32_t reg, uint32_t e);
int32_t mma_whole(Type t, uint32_t reg, uint32_t e);
/* For each element of A the row of B that it meets, by metadata e of the lanes; -1 with a fault where a group's places are none. */
int mma_sparse_places(Block *b, Warp *w, const Insn *in, const MmaOps *o, const uint32_t *e, uint8_t *at);
/* wgmma.c: an instruction that is no product uses its registers: -1 with the fault where they are in flight. The block begins. */
int wgmma_touch(Block *b, Warp *w, const Insn *in);
void wgmma_clear(const Block *b, Warp *w);
void wgmma_wait_text(const Block *b, const Warp *w, const Insn *in, Text *t);
/* cluster.c: a phase that nobody misses is over; the block begins. */
void cluster_settle(Cluster *c);
void cluster_clear(Block *b);
void cluster_wait_text(const Block *b, const Split *s, Text *t);
/* A warp of the block has ended; all have: -1 with the fault where others may still use its shared memory. */
void cluster_warp_ended(Block *b, const Warp *w);
int cluster_ended(Block *b);
/* registers.c */
uint32_t registers_at_start(const Unit *u, uint32_t threads);
void registers_wait_text(const Block *b, const Warp *w, const Insn *in, Text *t);
int registers_ended(Block *b);
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
/* undo.c: memory as it was before the launch; and the end of what was kept. */
void undo_all(Worker *k);
void undo_free(Worker *k);
/* mem.c */
WarpFn mem_load, mem_store;
void mem_address(const Warp *w, uint32_t base, const Address *at, uint64_t addr[LANES]);
/* Space of a generic address, which becomes an offset where the space is a window. */
Space mem_space_of(uint64_t *addr);
/* The memory that an instruction's space is of. */
static inline Space mem_space(Space s) { return s == SP_CLUSTER ? SP_SHARED : s; }
/* Host pointer of n bytes at addr in a space, bounds and alignment checked; NULL with the fault. */
uint8_t *mem_host(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write);
/* An access by one lane whose bytes mem_host has found, checked against others. data: what is written, if it is known. */
typedef struct LaneAccess {
  Space space; uint64_t addr; uint32_t lane, size;
  bool write, strong, update, pending;
  const uint8_t *data;
  uint32_t agent, segment;             /* as in Access; segment 0: the agent's own */
} LaneAccess;
/* The same of any number of bytes at any place in global or shared memory, which may be another block's. */
uint8_t *mem_bytes(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write);
int mem_check(Block *b, Warp *w, const Insn *in, const LaneAccess *l);
/* A sum of the records of writes to global memory that mem_host has found, and the newest of them; zeros where nothing is checked. */
typedef struct MemWrites { uint64_t sum, newest; } MemWrites;
MemWrites mem_writes(const Block *b, uint64_t addr, uint32_t n);
/* The access went on while the write of a record came: the fault. */
int mem_overtaken(Block *b, Warp *w, const Insn *in, const LaneAccess *l, uint64_t record);
/* Bytes of a lane's local memory, inside its bounds, are written, or are not any more; and to write them. */
void local_mark(Block *b, const Warp *w, uint32_t lane, uint64_t addr, uint32_t n, bool written);
void local_store(Block *b, const Warp *w, uint32_t lane, uint64_t addr, const void *data, uint32_t n);
void mem_stats_shared(Block *b, uint32_t m, const uint64_t *addr, uint32_t n);
void mem_stats_global(Block *b, uint32_t m, const uint64_t *addr, uint32_t n, bool write);
void mem_stats_run(Block *b, uint64_t addr, uint64_t n, bool write);   /* of n bytes that follow each other, if statistics are wanted */
/* print.c: the text that the pointer in local memory at param leads to, at most n bytes with the end; and vprintf. */
int sim_text(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t param, char *out, size_t n);
WarpFn sim_print;
/* atom.c, async.c, cvt.c, warp.c, mma.c */
WarpFn previous_exec;
WarpFn atom_exec, async_copy, async_commit, async_wait, cvt_exec, isspacep_exec, fence_exec, clock_exec;
WarpFn shfl_exec, vote_exec, match_exec, redux_exec, elect_exec, warpsync_exec, activemask_exec, index_exec;
WarpFn ldmatrix_exec, stmatrix_exec, mma_exec;
WarpFn mbar_exec, mbar_wait, mbar_pending, async_store, bulk_exec, bulk_commit, bulk_wait;
WarpFn mapa_exec, ctarank_exec;
WarpFn tensormap_replace, tensormap_copy, tensormap_acquire, tensormap_release, tensormap_prefetch;
WarpFn cluster_arrive, cluster_wait, setmaxnreg_exec, wgmma_exec, wgmma_fence, wgmma_commit, wgmma_wait;

/* alu.c: rows of alu.def for this host; NULL where there is no such row. */
typedef enum AluOp {
#define ALU_NAME(id) A_##id,
#include "alu_names.def"
  A_COUNT
} AluOp;
typedef struct AluRow { uint16_t op; uint8_t var, type, kind; AluFn *fn; } AluRow;
enum { V_NONE, V_LO, V_HI, V_WIDE, V_APPROX, V_NAN, V_XORSIGN, V_XORSIGN_NAN };
enum { APPROX_FTZ = 1, APPROX_FULL = 2 };          /* V_APPROX: the instruction's imm */
const AluRow *alu_find(AluOp op, int var, Type type);

#endif
