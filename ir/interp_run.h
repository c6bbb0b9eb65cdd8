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
/* Who runs a program, or a part of it. */
typedef struct Actor { VEC(Frame) frames; } Actor;

typedef struct Interp {
  Func *func;
  const InterpOptions *opt;
  const InterpBuffer *buffers;
  u32 nbuffers, last_buffer;     /* last_buffer: where the previous access fell */
  InterpError *err;
  Arena *arena;
  Actor *actor;                  /* that runs */
  u64 **elems, **spare;          /* by value id: its elements; a second copy for parallel assignment */
  double *real[3];               /* dot's operands as numbers */
  u32 real_len[3];
  u32 program[3], grid[3];
  u64 steps, bytes;              /* left */
  struct InterpShared *shared;   /* interp_shared.c; NULL until a buffer is made */
  struct InterpGlobal *global;   /* interp_global.c; NULL unless barriers are checked */
} Interp;

typedef enum Flow { FLOW_NEXT, FLOW_RETURN, FLOW_FAULT } Flow;

/* Records a fault at op; always gives FLOW_FAULT. */
Flow interp_fault(Interp *in, const Op *op, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Text of the coordinates of element i of t: " at element [1, 2]", "" for scalars. */
const char *interp_where(const Type *t, u32 i, char text[96]);
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
/* Where element i of a tile of addresses points to in the buffers; NULL after a fault. */
const void *interp_element(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
/* interp_shared.c */
void interp_shared_reset(Interp *in);       /* a new program begins */
Flow interp_shared_alloc(Interp *in, const Op *op);
Flow interp_shared_free(Interp *in, const Op *op);
Flow interp_shared_view(Interp *in, const Op *op);
Flow interp_shared_load(Interp *in, const Op *op);
Flow interp_shared_store(Interp *in, const Op *op);
Flow interp_shared_gather(Interp *in, const Op *op);
Flow interp_shared_add(Interp *in, const Op *op);
Flow interp_async_copy(Interp *in, const Op *op);
Flow interp_async_commit(Interp *in);
Flow interp_async_wait(Interp *in, const Op *op);
Flow interp_barrier(Interp *in);
Flow interp_scratch(Interp *in, const Op *op);   /* what an op with scratch does to shared memory; only where barriers are checked */
/* interp_global.c; nothing unless barriers are checked */
void interp_meet(Interp *in);               /* all threads meet */
void interp_access(Interp *in, const Op *op);   /* op is about to run; it may reach global memory */
/* Element i of op, the bytes at addr in the buffer last_buffer; false after a fault: a barrier is missing. */
bool interp_touch(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i);
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
