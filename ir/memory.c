/* memory.c - how ops reach memory, as the operand words of ops.def say it: questions that hold for every row. */
#include "ir.h"

/* What op does through operand i: a sum of OpEffect. */
u32
op_effect(const Op *op, u32 i)
{
  return i < OPERANDS_NAMED ? op_info(op->code)->effect[i] : 0;
}

/* The first operand of the kind through which op reaches memory; NULL: none. */
static Value *
reached(const Op *op, bool (*kind)(const Type *t))
{
  for (u32 i = 0; i < op->noperands; i++) {
    Value *v = op_operand(op, i);
    if (v && op_effect(op, i) && kind(v->type))
      return v;
  }
  return NULL;
}

Value *
op_pointer(const Op *op)
{
  return reached(op, type_is_ptr);
}

Value *
op_buffer(const Op *op)
{
  return reached(op, type_is_shared);
}

Value *
op_tensor(const Op *op)
{
  return reached(op, type_is_tensor);
}

u32
op_slot(OpCode code, const char *name)
{
  const char *s = op_info(code)->operands;
  for (u32 i = 0; *s; i++) {
    size_t n = strcspn(s, " "), bare = strcspn(s, " ?*");
    if (bare == strlen(name) && !memcmp(s, name, bare))
      return i;
    s += n + strspn(s + n, " ");
  }
  return NO_SLOT;
}

Value *
op_mask(const Op *op)
{
  return op_operand(op, op_slot(op->code, "mask"));
}

u32
op_shared_effects(const Op *op)
{
  u32 all = 0;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && type_is_shared(op_operand(op, i)->type))
      all |= op_effect(op, i);
  return all;
}

u32
op_global_effects(const Op *op)
{
  const Value *p = op_pointer(op);
  for (u32 i = 0; p && i < op->noperands; i++)
    if (op_operand(op, i) == p && op_effect(op, i))
      return op_effect(op, i);
  return 0;
}

static bool
has_order(const Op *op, const char *which)
{
  const char *sem = op_str(op, AT_SEM, "relaxed");
  return !strcmp(sem, which) || !strcmp(sem, "acq_rel");
}

bool
op_releases(const Op *op)
{
  return has_order(op, "release");
}

bool
op_acquires(const Op *op)
{
  return has_order(op, "acquire");
}

bool
op_orders_teams(const Op *op)
{
  return op->code == OP_WARP_SPECIALIZE || op->code == OP_CLUSTER_BARRIER || (op_info(op->code)->effect[0] & FX_ORDER);
}

bool
op_is_view(const Op *op)
{
  return op_info(op->code)->effect[0] & FX_VIEW;
}

bool
op_uses_shared(const Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_shared(op->results[i]->type))
      return true;
  return op_has(op, T_SYNC) || op_buffer(op);
}

bool
op_lets_reads_pass(const Op *op)
{
  return !op_has(op, T_WRITES) && !op_has(op, T_SIDE) && !op_attr(op, AT_SCRATCH) && (!op->nregions || op_on_elements(op));
}

const Op *
buffer_whole(const Value *buffer)
{
  const Op *op = buffer->def;
  while (op->code == OP_SHARED_INDEX || op->code == OP_SHARED_REMOTE)
    op = op_buffer(op)->def;
  return op;
}

const Op *
buffer_alloc(const Value *buffer)
{
  while (buffer && buffer->def && op_is_view(buffer->def))
    buffer = op_buffer(buffer->def);
  return buffer ? buffer->def : NULL;
}

/* The shared_alloc of whose memory, or of one of whose row, this is all, seen in whatever way; or NULL. Not of another program's:
 * stmatrix, by which other threads store than by vectors, does not reach that. */
static const Op *
all_of(const Value *buffer)
{
  while (op_is(buffer, OP_SHARED_INDEX) || op_is(buffer, OP_SHARED_CAST) || op_is(buffer, OP_SHARED_PERMUTE) ||
         op_is(buffer, OP_SHARED_RESHAPE))
    buffer = op_buffer(buffer->def);
  return op_is(buffer, OP_SHARED_ALLOC) ? buffer->def : NULL;
}

/* Slices of one type begin at multiples of their extents: two of a buffer are the same places or have none in common. */
static const Value *
uncut(const Value *buffer)
{
  return op_is(buffer, OP_SHARED_SLICE) ? op_buffer(buffer->def) : buffer;
}

bool
stores_keep_threads(const Op *a, const Op *b)
{
  if (a->code != OP_SHARED_STORE || b->code != OP_SHARED_STORE)
    return false;
  const Value *x = OPERAND(a, SHARED_STORE, b), *y = OPERAND(b, SHARED_STORE, b);
  const Type *tile = OPERAND(a, SHARED_STORE, x)->type;
  if (!tile->layout || tile != OPERAND(b, SHARED_STORE, x)->type || x->type != y->type || uncut(x)->type != uncut(y)->type)
    return false;
  const Op *memory = all_of(uncut(x));                 /* a buffer's type says where in it an element lies */
  return memory && memory == all_of(uncut(y));
}

bool
buffer_in_panels(const Value *buffer)
{
  for (const Use *u = buffer->uses; u; u = u->next)
    for (u32 i = 0; i < u->user->noperands; i++) {
      if (op_operand(u->user, i) != buffer)
        continue;
      if (op_effect(u->user, i) & (FX_PROXY | FX_ABOUT) || (op_is_view(u->user) && buffer_in_panels(op_result(u->user))))
        return true;
    }
  return false;
}

u32
buffer_align(const Op *alloc)
{
  const Value *b = op_result(alloc);
  PanelForm form;
  if (!buffer_in_panels(b) || !b->type->layout || !layout_panel_form(b->type->layout, dtype_bytes(b->type->dt), &form))
    return SHARED_ALIGN;
  return max_u32(SHARED_ALIGN, layout_panel_align(&form));
}

u32
buffer_bytes(const Op *alloc)
{
  return align_up((u32)type_shared_bytes(op_result(alloc)->type), buffer_align(alloc));
}

/* red, not atom, and sums of floats only: PTX ISA, `red`, .vec_32_bit and .f16x2. */
static u32
atomic_bytes(const Op *op, const Target *t)
{
  DType d = op_pointer(op)->type->dt;
  bool small = d == DT_F16 || (d == DT_BF16 && target_has(t, F_ATOM_BF16));
  if (op->code != OP_ATOMIC_RMW || strcmp(op_str(op, AT_RMW, ""), "add") != 0 || !value_unused(op_result(op)) || op_acquires(op) ||
      !(small || d == DT_F32))
    return dtype_bytes(d);
  return target_has(t, F_ATOM_VEC) ? 16 : 4;
}

u32
op_access_bytes(const Op *op, const Target *t)
{
  switch (op->code) {
  case OP_LOAD: case OP_STORE: case OP_ASYNC_COPY: return 16;
  case OP_ATOMIC_RMW: case OP_ATOMIC_CAS: return atomic_bytes(op, t);
  default: return dtype_bytes(op_pointer(op)->type->dt);
  }
}
