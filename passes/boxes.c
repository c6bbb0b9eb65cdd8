/* boxes.c - see boxes.h.
 *
 * Copies go by a proxy of their own, which does not see what the threads of the same program have written to global memory, nor they
 * what it has, without fences and waits that nobody puts there. So a box is copied only if nothing else in the kernel
 * reaches that memory, unless all do nothing but read; boxes that are stored one after the other are, by one thread. */
#include "boxes.h"
#include "alias.h"
#include "pingpong.h"
#include "roles.h"

const Type *
box_buffers(Ctx *c, const Type *tile, u32 count)
{
  const Layout *l = layout_panels_default(c, tile->rank, tile->shape, dtype_bytes(tile->dt), tile->rank - 1);
  const Type *t = type_shared(c, tile->dt, count, tile->rank, tile->shape, NULL, l, 0, 0);
  return l && type_padded(tile) ? type_shared_cut(c, t, layout_reach(l, tile->shape)) : t;
}

const Type *
box_buffer(Ctx *c, const Type *tile)
{
  return box_buffers(c, tile, 0);
}

static const Type *
tile_of(const Op *op)
{
  return op->code == OP_TENSOR_LOAD ? op_result(op)->type : OPERAND(op, TENSOR_STORE, x)->type;
}

/* axes: of op's kernel; NULL: to be analysed, if need be. */
static bool
divides(const AxisInfo *axes, const Op *op, const Value *v, u32 by)
{
  i64 k;
  if (value_const_int(v, &k))
    return k % by == 0;
  return (axes ? axes : analyse_axes(op->block->func))[v->id].divisibility[0] % by == 0;
}

/* A copy whose rows begin at no multiple of 16 bytes is an illegal instruction (the extents and the address are multiples). */
static const char *
start_obstacle(Ctx *c, const AxisInfo *axes, const Op *op)
{
  const Type *t = op_tensor(op)->type;
  u32 at = op->code == OP_TENSOR_LOAD ? SLOT(TENSOR_LOAD, at) : SLOT(TENSOR_STORE, at), piece = 16 / dtype_bytes(t->dt);
  const Value *first = op_operand(op, at + t->rank - 1u);
  return piece <= 1 || divides(axes, op, first, piece) ? NULL
       : arena_printf(c->scratch, "its index along the last dimension is not known to be a multiple of %u, 16 bytes", piece);
}

/* Tiles that are padded take registers for their padding where threads hold them: those of teams that multiply by turns go from copies to
 * products, and leave in pieces. */
static const char *
form_obstacle(Ctx *c, const Op *op, bool pieces)
{
  TmaForm form;
  const Type *t = pieces ? box_store_piece(c, op->block->func, tile_of(op)) : tile_of(op);
  const Type *bare = type_shared(c, t->dt, 0, t->rank, t->shape, NULL, NULL, 0, 0);
  TmaWindow w = tma_window(op);
  const char *why = tma_form_error(c, bare, op_tensor(op)->type->rank, &w, &form);
  if (why || (type_padded(t) && !(t->rank == 2 && pingpong_wanted(op->block->func))))
    return why ? why : "its extents are no powers of two";
  const char *rmw = op_str(op, AT_RMW, NULL);
  if (rmw && !tma_reduces(rmw, t->dt))
    return arena_printf(c->scratch, "copies of boxes have no '%s' of %s", rmw, dtype_info[t->dt].name);
  u64 bytes = type_shared_bytes(box_buffer(c, t));
  return bytes <= c->target->shared_max ? NULL
       : arena_printf(c->scratch, "its buffer takes %llu bytes, and the target has %u", (unsigned long long)bytes, c->target->shared_max);
}

/* ---- tensors that the kernel makes ---- */

/* A map knows one box, and asks of a tensor what no launch has checked. */
static const char *
made_obstacle(Ctx *c, const AxisInfo *axes, const Op *op)
{
  const Value *t = op_tensor(op);
  u32 size = dtype_bytes(t->type->dt), piece = 16 / size, last = t->type->rank - 1u;
  if (!tensor_map_memory(t))
    return "there is no memory for a map of its tensor";
  if (op_attr(op, AT_LOWER))
    return "a tensor that the kernel makes has no map for pixels";
  for (const Use *u = t->uses; u; u = u->next)
    if (memcmp(tile_of(u->user)->shape, tile_of(op)->shape, sizeof tile_of(op)->shape) || op_attr(u->user, AT_LOWER))
      return "the kernel makes one map of its tensor, and has boxes of several forms";
  if (!divides(axes, op, tensor_pointer(t), 16))
    return "the address of its tensor is not known to be a multiple of 16";
  for (u32 d = 0; d < last; d++)
    if (!divides(axes, op, tensor_number(t, OP_TENSOR_STRIDE, d), piece))
      return "a stride of its tensor is not known to be a multiple of 16 bytes";
  if (op->code == OP_TENSOR_STORE && !divides(axes, op, tensor_number(t, OP_TENSOR_EXTENT, last), piece))
    return "rows of its tensor are not known to be multiples of 16 bytes";
  return NULL;
}

typedef struct Meeting { const Op *op, *instead_of; GlobalAccess box; bool meets; } Meeting;

/* The program promises that what is reached by a tensor that it makes with a map is not reached otherwise. */
static bool
promises(const Value *tensor)
{
  return tensor && tensor_map_memory(tensor);
}

static bool
promised_apart(const Op *a, const Op *b)
{
  return op_tensor(a) != op_tensor(b) && (promises(op_tensor(a)) || promises(op_tensor(b)));
}

/* Does x reach the box otherwise than by a copy of its kind? */
static void
meet(Op *x, void *user)
{
  Meeting *m = user;
  GlobalAccess a;
  bool writes = m->op->code == OP_TENSOR_STORE;
  if (promised_apart(m->op, x))
    return;
  if (m->meets || x == m->op || x == m->instead_of || !global_access(x, &a) ||
      (writes ? x->code == OP_TENSOR_STORE : !(a.effect & FX_WRITE)))
    return;
  m->meets = global_overlap(&m->box, &a);
}

const char *
box_obstacle(Ctx *c, const AxisInfo *axes, const Op *op, const Op *instead_of)
{
  Meeting m = {.op = op, .instead_of = instead_of};
  if (!target_has(c->target, F_TMA))
    return "the target has no copies of boxes";
  if (c->boxes == BOXES_NONE)
    return "this form is for arguments that copies of boxes do not take";
  bool pieces = instead_of && op->code == OP_TENSOR_STORE && pingpong_wanted(op->block->func);
  const char *why = form_obstacle(c, op, pieces);
  if (!why)
    why = start_obstacle(c, axes, op);
  if (!why && tensor_is_made(op_tensor(op)))
    why = made_obstacle(c, axes, op);
  if (why)
    return why;
  global_access(op, &m.box);
  func_walk(op->block->func, meet, &m);
  return m.meets ? "the kernel also reaches that memory without copies of boxes, which are not ordered with that" : NULL;
}

Value *
box_mbarriers(Ctx *c, Func *f, Span at, u32 count)
{
  static const u32 one[] = {1};
  Builder b = builder_before(f->body->first);
  b.span = at;
  const Layout *l = layout_swizzled(c, 1, one, 1, 1, 1, (int[]){0});
  Value *m = ir_shared_alloc(&b, type_shared(c, DT_MBAR, count, 1, one, NULL, l, 0, 0));
  for (u32 i = 0; i < (count ? count : 1); i++) {
    Value *one_of = count ? ir_shared_index(&b, m, i32_const(&b, i)) : m;
    op_set_int(op_create(&b, OP_MBARRIER_INIT, 1, &one_of, 0, NULL, 0), AT_ARRIVALS, 1);
  }
  return m;
}

u64
box_ring_bytes(const Op *loop, u32 slots, bool team)
{
  u64 bytes = 0;
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    if ((op->code == OP_LOAD || op->code == OP_TENSOR_LOAD) && type_is_tile(op_result(op)->type) &&
        !(team && roles_leaves_load(op)))
      bytes += (u64)box_tile_bytes(op_result(op)->type) * slots;
  return bytes;
}

i64
box_tile_bytes(const Type *tile)
{
  return (i64)type_numel(tile) * dtype_bytes(tile->dt);
}

void
box_copy(Builder *b, const Op *op, Value *const *map, Value *buffer, Value *m)
{
  Value *t = op_tensor(op), *x[MAX_RANK + WINDOW_DIMS + 3] = {buffer, map ? value_mapped(map, t) : t, m};
  u32 n = m ? 3 : 2;
  for (u32 i = m ? SLOT(TENSOR_LOAD, at) : SLOT(TENSOR_STORE, at); i < op->noperands; i++)
    x[n++] = map ? value_mapped(map, op_operand(op, i)) : op_operand(op, i);
  Op *copy = op_create(b, m ? OP_TMA_LOAD : OP_TMA_STORE, n, x, 0, NULL, 0);
  op_copy_attr(copy, op, AT_EVICT);
  tma_copy_window(copy, op);
  op_copy_attr(copy, op, AT_TF32);
  op_copy_attr(copy, op, AT_RMW);
}

