/* interp_run.h - private to interp*.c: the state of a run. */
#ifndef TILEC_INTERP_RUN_H
#define TILEC_INTERP_RUN_H
#include "interp.h"

/* A block that runs, of a loop or an if (whose region it is) or on its own; at: the op that comes next, NULL at its end. Of a for,
 * its index and where it goes. */
typedef struct Frame {
  const Op *of;
  const Block *block;
  const Op *at;
  u64 i, hi, step;
} Frame;
typedef struct Copy { u64 at, value; u32 bytes; u64 group; const Op *op; } Copy;   /* asynchronous, of an element, that has not landed */
/* What a tma_store has read, element i of its box; to: where it goes, 0: nowhere. released: its buffer may be written again. */
typedef struct Stored { Copy copy; u64 to; u32 i; bool released; } Stored;
/* What is known of each team and mbarrier (interp_teams.c): what they did up to then has happened before (known), is seen by the
 * asynchronous proxy (seen), or is over at least, as relaxed barriers tell (over, which is never behind known). They tell of what is
 * seen, too: copies may overwrite what is over and was fenced. */
typedef struct Clocks { u64 *known, *seen, *over; } Clocks;
/* at: its byte in the program's shared memory; left, ended: what those who arrived left, and that of the phases that are over.
 * bytes: announced and not come; landing: those that have come in this phase. index: its clock. team: whose; made, shown: when it
 * was initialised, and when a fence showed that to the cluster, 0: none has. */
typedef struct Mbar {
  u64 at, made, shown;
  const Op *init, *last;
  u32 index, count, arrived, team;
  i64 bytes;
  VEC(Copy) landing;
  u64 phase;
  Clocks left, ended;
} Mbar;
/* A product of a warpgroup that is under way: its number, and the runs of bytes that it reads. */
typedef struct Run { u64 from, to; } Run;
typedef VEC(Run) Runs;
typedef struct Product { const Op *op; u32 team; u64 number; Runs reads; } Product;
typedef struct BufferRead { const Value *of; u64 *elems; } BufferRead;   /* a buffer's elements, as a product took them */
struct Program;
/* Who runs a program, or a region of its warp_specialize: a team. */
typedef struct Actor {
  VEC(Frame) frames;
  struct Program *program;
  u32 team, region;              /* its number among all of the cluster; 0: all warps of the program, from 1 on: those of a region */
  Clocks clocks;
  const Op *waits;               /* the op at which it cannot go on; NULL: none */
  bool stuck, ended;             /* it has waited since any has gone on; it is done */
  u64 meeting;                   /* of the cluster, that it is at; 0: none */
  VEC(Copy) copies;
  u64 group;                     /* the open group of copies */
  VEC(Stored) stores;
  u64 store_group;               /* the open group of stores */
  u64 fenced;                    /* the time of the team's last fence for the asynchronous proxy */
  u64 products;                  /* of warpgroups, that it has started */
} Actor;

/* A program of the cluster that runs. */
typedef struct Program {
  u32 at[3], rank;
  Actor *all, *regions;          /* regions: of its warp_specialize while that runs, else NULL */
  u64 **elems, **spare;          /* by value id: its elements; a second copy for parallel assignment */
  struct InterpShared *shared;   /* interp_shared.c */
  u8 *made;                      /* by value id: the buffer has been made in this run */
  struct Visit *visits;          /* by team: its last use of this shared memory from another program (interp_cluster.c) */
} Program;
typedef struct BufferPlace { const Op *op; u64 at, bytes; } BufferPlace;   /* of a shared_alloc, in each program */
/* A barrier of the cluster: how many programs have arrived, which meetings are over, and what those who arrived left. */
typedef struct Meeting { u32 arrived; u64 over; Clocks left, ended; } Meeting;

typedef struct Interp {
  Func *func;
  const InterpOptions *opt;
  const InterpBuffer *buffers;
  u32 nbuffers, last_buffer;     /* last_buffer: where the previous access fell */
  InterpError *err;
  Arena *arena;
  Actor *actor;                  /* that runs */
  Program *program;              /* the actor's */
  Program *programs;             /* of the cluster, by rank */
  u32 nprograms, nparts;         /* of a cluster; teams of each: its own, and one for each region of its warp_specialize */
  u32 nteams;                    /* of all programs of the cluster */
  u32 nclocks;                   /* that each knows: a team's, and an mbarrier's */
  VEC(Mbar *) mbars;             /* initialised by programs of the cluster */
  VEC(BufferPlace) places;
  u64 placed;                    /* bytes of those that have no offsets */
  VEC(Product) flying;           /* products under way */
  VEC(Runs) spare_runs;          /* of those that are done, for the next */
  VEC(BufferRead) reads;         /* room for those of products, by buffer */
  u64 now, began;                /* ops that have run, of all programs; before the cluster began */
  bool by_team;                  /* who reached which byte is kept: barriers are checked, or there are several teams */
  u64 **elems, **spare;          /* the program's */
  double *real[3];               /* dot's operands as numbers */
  u32 real_len[3];
  u32 *sparse_row, sparse_len;   /* rows of b that a sparse dot's a meets */
  u32 grid[3], started[3];       /* of the launch; what runs: less where programs do what several do */
  u64 steps, bytes;              /* left */
  struct InterpShared *shared;   /* the program's, or that of the one whose buffer is reached */
  const Layout *mapped;          /* of buffers, the layout asked last; where it puts elements 1, 2, 4 and so on */
  u32 map[LAYOUT_MAX_BITS];
  VEC(Actor *) turns;            /* who takes turns: of each program all warps, or its regions */
  u32 next;                      /* of them, whose turn is next */
  u64 random;                    /* 0: they take turns in order */
  Meeting meeting;
  struct InterpGlobal *global;   /* interp_global.c; NULL unless by_team */
} Interp;

/* WAIT: the op is not done, and has done nothing. */
typedef enum Flow { FLOW_NEXT, FLOW_RETURN, FLOW_FAULT, FLOW_WAIT } Flow;

/* Records a fault at op; always gives FLOW_FAULT. */
Flow interp_fault(Interp *in, const Op *op, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Text of the coordinates of element i of t: " at element [1, 2]", "" for scalars. */
const char *interp_where(const Type *t, u32 i, char text[96]);
/* Words of a tile or scalar: its elements, behind those of an accumulator under way the number of its product. */
static inline u32 interp_words(const Type *t) { return type_numel(t) + t->pending; }
/* Room for the elements of v; NULL after a fault. */
u64 *interp_make(Interp *in, const Op *op, const Value *v);
static inline const u64 *interp_get(const Interp *in, const Value *v) { return v ? in->elems[v->id] : NULL; }
/* Element i of something that may be one scalar for all elements. */
static inline u64 interp_pick(const u64 *elems, const Value *v, u32 i) { return elems[type_is_tile(v->type) ? i : 0]; }

Flow interp_load(Interp *in, const Op *op);
Flow interp_store(Interp *in, const Op *op);
Flow interp_atomic_rmw(Interp *in, const Op *op);
Flow interp_atomic_cas(Interp *in, const Op *op);
Flow interp_addptr(Interp *in, const Op *op);
Flow interp_dot(Interp *in, const Op *op);
Flow interp_dot_sparse(Interp *in, const Op *op);
/* acc + a x b in op's result; a may be, and b is, a buffer. */
Flow interp_product(Interp *in, const Op *op, const Value *a, const Value *meta, const Value *b, const Value *acc);
/* interp_wgmma.c */
Flow interp_pending(Interp *in, const Op *op);
Flow interp_wgmma(Interp *in, const Op *op);
Flow interp_wgmma_wait(Interp *in, const Op *op);
/* Where element i of a tile of addresses points to in the buffers; NULL after a fault. */
const void *interp_element(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
/* interp_shared.c */
struct InterpShared *interp_shared_new(Interp *in);
void interp_shared_reset(Interp *in);       /* a new program begins */
Flow interp_shared_alloc(Interp *in, const Op *op);
Flow interp_shared_free(Interp *in, const Op *op);
Flow interp_shared_view(Interp *in, const Op *op);
Flow interp_shared_load(Interp *in, const Op *op);
/* All elements of a buffer that op reads, row-major; NULL after a fault. */
u64 *interp_shared_read(Interp *in, const Op *op, const Value *buffer);
/* The bytes of the buffer are p's to read from here on; and are not any more: they were read until here.
 * False after a fault. */
bool interp_hold(Interp *in, const Value *buffer, Product *p);
void interp_release(Interp *in, Product *p);
Flow interp_shared_store(Interp *in, const Op *op);
Flow interp_shared_gather(Interp *in, const Op *op);
Flow interp_shared_add(Interp *in, const Op *op);
Flow interp_shared_scatter(Interp *in, const Op *op);
Flow interp_shared_count(Interp *in, const Op *op);
Flow interp_async_copy(Interp *in, const Op *op);
Flow interp_async_commit(Interp *in);
Flow interp_async_wait(Interp *in, const Op *op);
Flow interp_barrier(Interp *in);
Flow interp_scratch(Interp *in, const Op *op);   /* what an op with scratch does to shared memory; only where barriers are checked */
/* interp_global.c; nothing unless who reached which byte is kept */
void interp_access(Interp *in, const Op *op);   /* op is about to run; it may reach global memory */
/* Element i of op, the bytes at addr in the buffer last_buffer; false after a fault: a barrier is missing. */
bool interp_touch(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
/* interp_cluster.c: programs that run at the same time */
void interp_cluster_make(Interp *in);                             /* room for the programs of a cluster */
void interp_cluster_begins(Interp *in, const u32 first[3]);       /* programs from that one on */
void interp_switch(Interp *in, Actor *a);                         /* a runs from here on */
Flow interp_cluster_rank(Interp *in, const Op *op);
Flow interp_cluster_barrier(Interp *in, const Op *op);
Flow interp_shared_remote(Interp *in, const Op *op);
const Program *interp_program_of(const Interp *in, const Value *b);   /* whose buffer that is */
/* Shared memory is that of the program of the rank, up to interp_reached. False after a fault. */
bool interp_reach(Interp *in, const Op *op, u32 rank);
void interp_reached(Interp *in);
Flow interp_program_ended(Interp *in);                            /* the actor's */
/* interp_turns.c */
void interp_drop_turn(Interp *in, const Actor *a);                /* it takes none any more */
Flow interp_take_turns(Interp *in);                               /* until all actors have ended */
/* interp.c */
void interp_enter(Interp *in, const Block *b);   /* the actor's next frame */
Flow interp_advance(Interp *in);            /* of the actor that runs: its next op, or the end of a block */
/* For copies by the asynchronous proxy. Element i of op's buffer is to be overwritten: *at is its byte, pending from here on. */
bool interp_shared_begin(Interp *in, const Op *op, u32 i, u64 *at);
/* It is read: c gets its byte and value; it must not be written until it is returned. */
bool interp_shared_lend(Interp *in, const Op *op, u32 i, Copy *c);
void interp_shared_return(Interp *in, const Copy *c);
void interp_shared_lent(Interp *in, const Copy *c);      /* another has returned it, this copy has not */
void interp_shared_land(Interp *in, const Copy *c, u64 when, u32 team);
/* Room for as many bytes as that program's has; false after a fault. */
bool interp_shared_cover(Interp *in, const Op *op, const Program *as);
u64 interp_shared_at(Interp *in, const Value *b);        /* where it begins, in whichever program's memory */
/* The byte of the mbarrier b, which op names. False after a fault. */
bool interp_shared_mbar_of(Interp *in, const Op *op, const Value *b, bool init, u64 *at);
/* Does the asynchronous proxy see what the team did in op number `when`? */
bool interp_seen(const Interp *in, u32 team, u64 when);
/* interp_tma.c */
Flow interp_tma_load(Interp *in, const Op *op);
Flow interp_tma_store(Interp *in, const Op *op);
Flow interp_tma_prefetch(Interp *in, const Op *op);
Flow interp_tma_wait(Interp *in, const Op *op);
Flow interp_tma_end(Interp *in);            /* the actor's team ends */
Flow interp_tensor(Interp *in, const Op *op);
Flow interp_tensor_of(Interp *in, const Op *op);
Flow interp_tensor_load(Interp *in, const Op *op);
Flow interp_tensor_store(Interp *in, const Op *op);
Flow interp_tensor_given(Interp *in, const Value *v, u64 bits);   /* a parameter: bits is the address of an InterpTensor */
/* interp_teams.c */
/* The mbarrier b of the program of that rank; NULL after a fault. */
Mbar *interp_mbar(Interp *in, const Op *op, const Value *b, u32 rank);
/* Has that program, another one, yet to initialise it, and nobody asks whether this one may know? Then op waits for that. */
bool interp_mbar_expected(Interp *in, const Value *b, u32 rank);
void interp_mbar_bytes(Interp *in, Mbar *m, const Op *op, i64 n); /* so many are announced; negative: have come */
Flow interp_fence(Interp *in, const Op *op);
void interp_count_clocks(Interp *in);       /* of the function: before the first actor */
Clocks interp_clocks(Interp *in);           /* that know nothing */
void interp_learn(const Interp *in, Clocks *c, const Clocks *from);
void interp_know_program(const Interp *in, Actor *a);   /* all that the actor's program has done so far has happened before */
static inline u32 interp_rank_of(const Interp *in, u32 team) { return team / in->nparts; }
/* What the actor's team did, and knows, is left for others: of the time it is now. */
void interp_leave(const Interp *in, Clocks *left);
void interp_leave_over(const Interp *in, Clocks *left);   /* the same of what is over alone */
Flow interp_region_ended(Interp *in);       /* the actor's */
void interp_meet(Interp *in);               /* the threads of the actor's team meet */
/* Has the actor's team to see what a team did in op number `when`: did it come before, by barriers and mbarriers? */
bool interp_ordered(const Interp *in, u32 team, u64 when);
bool interp_over(const Interp *in, u32 team, u64 when);   /* is it over at least, a read or a copy? */
/* What an access clashes with: "read of shared memory that other threads wrote with no barrier between"; team: whose `other` is. False. */
bool interp_clash(Interp *in, const Op *op, const Op *other, u32 team, const char *access, const char *memory, const char *did);
Flow interp_mbarrier_init(Interp *in, const Op *op);
Flow interp_mbarrier_arrive(Interp *in, const Op *op);
Flow interp_mbarrier_wait(Interp *in, const Op *op);
Flow interp_warp_specialize(Interp *in, const Op *op);
void interp_put_wait(Buf *b, Interp *in, const Op *wait);   /* what a wait of the actor is for, in words */
Flow interp_hint(Interp *in, const Op *op);
Flow interp_bounded(Interp *in, const Op *op);
Flow interp_const(Interp *in, const Op *op);
Flow interp_arange(Interp *in, const Op *op);
Flow interp_copy(Interp *in, const Op *op);
Flow interp_splat(Interp *in, const Op *op);
Flow interp_broadcast(Interp *in, const Op *op);
Flow interp_permute(Interp *in, const Op *op);
Flow interp_unpack(Interp *in, const Op *op);
Flow interp_pack(Interp *in, const Op *op);
Flow interp_butterfly(Interp *in, const Op *op);
Flow interp_unary(Interp *in, const Op *op);
Flow interp_binary(Interp *in, const Op *op);
Flow interp_fma(Interp *in, const Op *op);
Flow interp_cmp(Interp *in, const Op *op);
Flow interp_select(Interp *in, const Op *op);
Flow interp_cast(Interp *in, const Op *op);
#endif
