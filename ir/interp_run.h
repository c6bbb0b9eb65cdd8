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
/* at: its byte; left, ended: clocks that those who arrived left, and those of the phases that are over; seen, by the asynchronous proxy,
 * in the same way. bytes: announced and not come; landing: those that have come in this phase. index: its clock. */
typedef struct Mbar {
  u64 at;
  const Op *init, *last;
  u32 index, count, arrived;
  i64 bytes;
  VEC(Copy) landing;
  u64 phase, *left, *ended, *left_seen, *ended_seen;
} Mbar;
/* A product of a warpgroup that is under way: its number, and the runs of bytes that it reads. */
typedef struct Run { u64 from, to; } Run;
typedef VEC(Run) Runs;
typedef struct Product { const Op *op; u32 team; u64 number; Runs reads; } Product;
typedef struct BufferRead { const Value *of; u64 *elems; } BufferRead;   /* a buffer's elements, as a product took them */
/* Who runs a program, or a region of its warp_specialize: a team. */
typedef struct Actor {
  VEC(Frame) frames;
  u32 team;                      /* 0: all warps; from 1 on: those of a region */
  u64 *known;                    /* clocks of what it knows (interp_teams.c) */
  const Op *waits;               /* the op at which it cannot go on; NULL: none */
  VEC(Copy) copies;
  u64 group;                     /* the open group of copies */
  VEC(Stored) stores;
  u64 store_group;               /* the open group of stores */
  u64 *seen, fenced;             /* clocks of what the asynchronous proxy sees of each team; the time of the team's last fence */
  u64 products;                  /* of warpgroups, that it has started */
} Actor;

typedef struct Interp {
  Func *func;
  const InterpOptions *opt;
  const InterpBuffer *buffers;
  u32 nbuffers, last_buffer;     /* last_buffer: where the previous access fell */
  InterpError *err;
  Arena *arena;
  Actor *actor;                  /* that runs */
  u32 nteams;                    /* the program's, and one for each region of its warp_specialize */
  u32 nclocks;                   /* that each knows: a team's, and an mbarrier's */
  VEC(Mbar *) mbars;            /* initialised by this program */
  VEC(Product) flying;           /* products under way */
  VEC(Runs) spare_runs;          /* of those that are done, for the next */
  VEC(BufferRead) reads;         /* room for those of products, by buffer */
  u64 now;                       /* ops that have run, of all programs */
  bool by_team;                  /* who reached which byte is kept: barriers are checked, or there are several teams */
  u64 **elems, **spare;          /* by value id: its elements; a second copy for parallel assignment */
  double *real[3];               /* dot's operands as numbers */
  u32 real_len[3];
  u32 program[3], grid[3];
  u64 steps, bytes;              /* left */
  struct InterpShared *shared;   /* interp_shared.c; NULL until a buffer is made */
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
/* acc + a x b in op's result; a may be, and b is, a buffer. */
Flow interp_product(Interp *in, const Op *op, const Value *a, const Value *b, const Value *acc);
/* interp_wgmma.c */
Flow interp_pending(Interp *in, const Op *op);
Flow interp_wgmma(Interp *in, const Op *op);
Flow interp_wgmma_wait(Interp *in, const Op *op);
/* Where element i of a tile of addresses points to in the buffers; NULL after a fault. */
const void *interp_element(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
/* interp_shared.c */
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
Flow interp_async_copy(Interp *in, const Op *op);
Flow interp_async_commit(Interp *in);
Flow interp_async_wait(Interp *in, const Op *op);
Flow interp_barrier(Interp *in);
Flow interp_scratch(Interp *in, const Op *op);   /* what an op with scratch does to shared memory; only where barriers are checked */
/* interp_global.c; nothing unless who reached which byte is kept */
void interp_access(Interp *in, const Op *op);   /* op is about to run; it may reach global memory */
/* Element i of op, the bytes at addr in the buffer last_buffer; false after a fault: a barrier is missing. */
bool interp_touch(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
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
/* The byte of the mbarrier b, which op names. False after a fault. */
bool interp_shared_mbar_of(Interp *in, const Op *op, const Value *b, bool init, u64 *at);
/* Does the asynchronous proxy see what the team did in op number `when`? */
bool interp_seen(const Interp *in, u32 team, u64 when);
/* interp_tma.c */
Flow interp_tma_load(Interp *in, const Op *op);
Flow interp_tma_store(Interp *in, const Op *op);
Flow interp_tma_wait(Interp *in, const Op *op);
Flow interp_tma_end(Interp *in);            /* the actor's team ends */
Flow interp_tensor(Interp *in, const Op *op);
Flow interp_tensor_load(Interp *in, const Op *op);
Flow interp_tensor_store(Interp *in, const Op *op);
Flow interp_tensor_given(Interp *in, const Value *v, u64 bits);   /* a parameter: bits is the address of an InterpTensor */
/* interp_teams.c */
Mbar *interp_mbar(Interp *in, const Op *op, const Value *b);      /* NULL after a fault */
void interp_mbar_bytes(Interp *in, Mbar *m, const Op *op, i64 n); /* so many are announced; negative: have come */
Flow interp_fence(Interp *in, const Op *op);
void interp_count_clocks(Interp *in);       /* of the function: before the first actor */
Actor *interp_actor(Interp *in, u32 team);  /* a new one, which knows all that has been done so far */
void interp_program_begins(Interp *in);
void interp_meet(Interp *in);               /* the threads of the actor's team meet */
/* Has the actor's team to see what a team did in op number `when`: did it come before, by barriers and mbarriers? */
bool interp_ordered(const Interp *in, u32 team, u64 when);
/* What an access clashes with: "read of shared memory that other threads wrote with no barrier between"; team: whose `other` is. False. */
bool interp_clash(Interp *in, const Op *op, const Op *other, u32 team, const char *access, const char *memory, const char *did);
Flow interp_mbarrier_init(Interp *in, const Op *op);
Flow interp_mbarrier_arrive(Interp *in, const Op *op);
Flow interp_mbarrier_wait(Interp *in, const Op *op);
Flow interp_warp_specialize(Interp *in, const Op *op);
Flow interp_stuck(Interp *in, Actor *actors, u32 n);   /* none of them can go on: a fault */
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
