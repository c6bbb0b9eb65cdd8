/* check.h - who accessed what, and what that is ordered by. The rules are in check.c. */
#ifndef TILERT_SIM_CHECK_H
#define TILERT_SIM_CHECK_H
#include "insn.h"
#include <stddef.h>

typedef struct Launch Launch;
typedef struct Worker Worker;
typedef struct Cluster Cluster;

/* ---- clocks ----
 * An agent is what has a clock: a warp of the block, or something that copies by itself (an mbarrier, whose copies end with its
 * phases). Agents are numbered, warps first. What an agent or a barrier knows of the others is a view for each proxy: accesses in
 * clocks before of[PROXY_GENERIC][a] happened before; writes in clocks before of[PROXY_ASYNC][a] are seen by the async proxy, too. Of the
 * third kind, PROXY_INITS, are initialisations of mbarriers that a fence has shown to all of the cluster and to the async proxy. */
enum { MAX_AGENTS = 64 };
typedef enum Proxy { PROXY_GENERIC, PROXY_ASYNC, PROXY_INITS, PROXIES } Proxy;
typedef struct Clocks { uint32_t of[PROXIES][MAX_AGENTS]; } Clocks;

/* ---- segments ----
 * A segment is what an agent does between two ticks of its clock. Records name it by a number that grows over all launches of
 * a machine, so records of earlier launches, and in shared memory of earlier blocks, are told apart by size. */
typedef struct Segment { uint64_t block; uint32_t clock, agent; } Segment;
enum { SEGMENT_CHUNK = 1 << 14, SEGMENT_CHUNKS = 1 << 17, SEGMENT_TAKE = 64 };
typedef struct Segments {
  uint32_t first, start, next;         /* of this launch; of its present run; the first that no worker has taken */
  Segment **chunk;                     /* from first on */
} Segments;

/* ---- cells ----
 * A record of an access: segment 32 | flags 5 | lane 5 | pc 22, from the top. 0: none. */
enum { PC_BITS = 22, LANE_BITS = 5, PC_MASK = (1 << PC_BITS) - 1 };
#define REC_MANY    (1ull << 27)       /* read: other lanes of the warp, too, in this segment */
#define REC_LIST    (1ull << 28)       /* read: the low 27 bits are the first ReadNode */
#define REC_BLOCKS  (1ull << 29)       /* read: other blocks, too */
#define REC_PENDING (0x7fffffffull << 32)        /* write, as the segment: an asynchronous copy that has not been waited for */
#define REC_INDEX   ((1ull << 27) - 1)

/* One of several reads of a unit that nothing orders. Nodes are the launch's, in chunks that do not move; index 0 is none. */
typedef struct ReadNode { uint64_t record; uint32_t next; } ReadNode;
enum { READER_CHUNK = 1 << 14, READER_CHUNKS = 1 << 13 };
typedef struct Readers { ReadNode **chunk; uint32_t nchunks; } Readers;

enum { PAGE_SHIFT = 12, PAGE_BYTES = 1 << PAGE_SHIFT, UNIT_MOST = 4, PAGE_WORDS = PAGE_BYTES / 64 };

/* The cells of PAGE_BYTES bytes: one write and one read record for each unit of 1 << unit bytes. The unit is the largest that all
 * accesses since `epoch` keep to. */
typedef struct Page {
  uint32_t lock, epoch;
  uint32_t newest_write, newest_read;  /* segments: no record in the page is newer */
  uint32_t pending;                    /* units that are targets of asynchronous copies */
  uint8_t unit, room;                  /* room: the smallest unit there are cells for */
  bool saved;                          /* its bytes as they were before this launch are kept; undo.c */
  uint32_t lister;                     /* the block, + 1, that last noted the page as one with lists */
  uint64_t *write, *read;
} Page;

typedef enum InitState { INIT_NONE, INIT_SOME, INIT_ALL } InitState;

/* What is known of a stretch of memory: an allocation, or the shared memory of a block. */
typedef struct Shadow {
  uint8_t *memory;                     /* the bytes themselves */
  size_t bytes, npages;
  Page **page;                         /* NULL: never accessed */
  uint8_t *state;                      /* InitState of each page */
  uint64_t *init;                      /* where INIT_SOME: a bit for each byte that was written, PAGE_WORDS a page */
  uint32_t base, epoch;                /* records of segments below base are of the past */
  Block *owner;                        /* whose shared memory it is; NULL: an allocation */
  bool visited;                        /* other blocks of the cluster have used it */
} Shadow;

/* Lanes lane ... lane + count - 1 of an instruction access size bytes each, one behind the other from off on, or all the same. */
typedef struct Access {
  Block *b; Warp *w; const Insn *in;
  Shadow *s;
  uint64_t off;
  uint32_t lane, count, size;
  bool same, write, strong;
  bool update;                         /* a write that reads, too */
  bool pending;                        /* a write that comes later: the target of an asynchronous copy */
  uint32_t agent, segment;             /* of what the warp starts, which goes by the async proxy; 0: the warp itself */
  const uint8_t *data;                 /* the bytes to be written; NULL: not known */
} Access;

/* A page that may have lists of reads. */
typedef struct Listed { Page *page; const Shadow *shadow; } Listed;

/* cells.c: 0, or -1 with the fault. Afterwards the records say that it happened. */
int cells_access(const Access *a);
/* An asynchronous copy, issued at pc, has written n bytes of shared memory, in a segment. */
void cells_land(Block *b, uint32_t segment, uint32_t pc, uint32_t lane, uint64_t off, uint32_t n);
/* A sum of the records of writes to n bytes, and the newest. */
uint64_t cells_writes(const Launch *l, const Shadow *s, uint64_t off, uint32_t n, uint64_t *newest);
Shadow *shadow_new(uint8_t *memory, size_t bytes, Block *owner);
void shadow_free(Shadow *s);
/* n bytes that the host wrote, or that nobody has. */
void shadow_mark(Shadow *s, size_t off, size_t n, bool written);
/* No record is left. */
void shadow_forget(Shadow *s);
/* A block that ends: its lists of reads in shared memory go, those elsewhere become single records unless they are to be kept. */
void cells_settle(Block *b, bool keep);
/* undo.c: keep a page's bytes as they are before the launch writes to it; false when out of memory. */
bool undo_save(Worker *k, Shadow *s, Page *p, size_t page);
/* fault.c: what is wrong with a lane's access at off; -1. record: the other access, which was a write or a read. */
int fault_race(const Access *a, uint32_t lane, uint64_t off, uint64_t record, bool wrote);
int fault_pending(const Access *a, uint32_t lane, uint64_t off, uint64_t record);
int fault_unwritten(const Access *a, uint32_t lane, uint64_t off);
int fault_proxy(const Access *a, uint64_t record, bool written);     /* or read: by the generic proxy, without a fence */
/* An asynchronous copy read what the write of a record changed before the copy was waited for. */
int fault_overtaken(const Access *a, uint64_t record);

/* ---- order: check.c ---- */
const Segment *record_segment(const Launch *l, uint64_t record);
/* Agents that are no warps: a new one (the last that there may be is shared), its segment, and its clock moves on. */
typedef struct Agent { uint32_t clock, segment; } Agent;
uint32_t agent_new(Block *b);
uint32_t segment_new(Block *b, uint32_t clock, uint32_t agent);        /* 0 when out of memory */
uint32_t agent_segment(Block *b, uint32_t agent);
void agent_tick(Agent *a);
/* The segment that a warp is in, begun when it is asked for first; 0 when out of memory. */
uint32_t segment_current(Block *b, Warp *w);
/* Whether what a record stands for happened before what a lane of w does now. */
bool happened_before(const Block *b, const Warp *w, uint32_t lane, uint64_t record, const Segment *s);
/* A warp's view of the clock of a segment's agent, in its own block or one that clocks of are known; 0: nothing is known. */
uint32_t clock_known(const Block *b, const Warp *w, Proxy view, const Segment *s);
bool insn_is_strong(const Insn *in);

/* ---- what a warp knows of other blocks: know.c ----
 * A tree of clocks by block, whose nodes are shared and never change. NULL knows nothing. */
typedef struct Know Know;
Know *know_share(Know *k);
void know_drop(Know *k);
/* What both know; takes neither's reference. NULL for nothing, or when out of memory, which *failed tells. */
Know *know_join(const Launch *l, Know *a, Know *b, bool *failed);
/* a and n clocks of a block. */
Know *know_with(const Launch *l, Know *a, uint64_t block, const uint32_t *clock, bool *failed);
/* The clocks of a block; NULL: nothing is known of it. */
const uint32_t *know_clocks(const Launch *l, const Know *k, uint64_t block);
uint32_t know_levels(uint64_t nblocks);

/* ---- release and acquire: check.c ---- */

/* What a release left: clocks of the block, and what it knew of others; NULL: for its own block only. */
typedef struct Published { uint64_t block; Clocks clocks; Know *know; bool valid; } Published;
typedef struct SyncVar SyncVar;
typedef struct SyncVars { SyncVar *at; size_t n, cap; } SyncVars;
void syncs_clear(SyncVars *s);
void syncs_free(SyncVars *s);
/* A strong access of the warp to a variable: an offset of shared memory, or an address. update: read-modify-write. */
void sync_write(Block *b, Warp *w, const MemOps *o, bool shared, uint64_t key, bool update);
void sync_read(Block *b, Warp *w, const MemOps *o, bool shared, uint64_t key);
void sync_fence(Block *b, Warp *w, Scope scope);

/* ---- clocks: check.c ---- */
void clock_start(Block *b);
void clock_tick(Warp *w);                              /* lanes of w synchronised */
/* What a barrier carries: a warp adds all it knows, or takes over what is there; and one barrier's into another's. */
void clock_arrive(Block *b, Warp *w, Clocks *clocks, Know **know);
/* An arrival that is no release tells what a fence before it has released. */
void clock_arrive_relaxed(Block *b, Warp *w, Clocks *clocks, Know **know);
/* An arrival at what is another block's: clocks are of its agents. */
void clock_arrive_at(Block *b, Warp *w, Block *to, bool relaxed, Clocks *clocks, Know **know);
void clock_join(Block *b, Warp *w, const Clocks *clocks, Know *know);
void clock_merge(Block *b, Clocks *clocks, Know **know, const Clocks *from, Know *what);
/* All that has arrived at the cluster's barrier goes to all that wait there. */
void clock_meet(Cluster *c);
/* *to learns what k knows. */
void clock_learn(Block *b, Know **to, Know *k);
/* A fence between the generic and the async proxy, by the warp. */
void clock_proxy(Block *b, Warp *w);
/* A fence of the mbarriers that the warp has initialised. */
void clock_inits(Block *b, Warp *w);
/* What the warp knows of others is let go. */
void clock_forget(Warp *w);
#endif
