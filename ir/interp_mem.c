/* interp_mem.c - memory ops. Addresses are the host's own: every access must fall whole and aligned into one of the
 * buffers of the run. Elements are visited in row-major order, which is the order of atomics. */
#include "interp_run.h"

typedef struct Access { u64 addr; u32 size; } Access;

static bool
buffer_holds(const InterpBuffer *b, Access a)
{
  u64 base = (u64)(uintptr_t)b->data;
  return a.addr >= base && a.addr - base <= b->bytes && b->bytes - (a.addr - base) >= a.size;
}

static u64
buffer_distance(const InterpBuffer *b, u64 addr)
{
  u64 base = (u64)(uintptr_t)b->data;
  if (addr < base)
    return base - addr;
  return addr - base < b->bytes ? 0 : addr - base - b->bytes;
}

/* A type with the extents of what op reaches. */
static const Type *
reached(const Op *op)
{
  if (op->code == OP_TENSOR_LOAD)
    return op_result(op)->type;
  if (op->code == OP_TENSOR_STORE)
    return OPERAND(op, TENSOR_STORE, x)->type;
  return op_pointer(op) ? op_pointer(op)->type : op_buffer(op)->type;
}

static Flow
fault_outside(Interp *in, const Op *op, Access a, u32 i)
{
  char where[96];
  const Type *t = reached(op);
  const InterpBuffer *near = NULL;
  for (u32 k = 0; k < in->nbuffers; k++)
    if (!near || buffer_distance(&in->buffers[k], a.addr) < buffer_distance(near, a.addr))
      near = &in->buffers[k];
  interp_where(t, i, where);
  if (!near)
    return interp_fault(in, op, "%s of %u bytes%s, but there is no buffer", op_info(op->code)->name, a.size, where);
  long long offset = (long long)(a.addr - (u64)(uintptr_t)near->data);
  return interp_fault(in, op, "%s of %u bytes%s is outside every buffer: "
                      "offset %lld of the nearest, '%s', which has %zu bytes",
                      op_info(op->code)->name, a.size, where, offset, near->name ? near->name : "?", near->bytes);
}

/* The buffer that a falls into becomes last_buffer; false if there is none. */
static bool
find_buffer(Interp *in, Access a)
{
  if (in->last_buffer < in->nbuffers && buffer_holds(&in->buffers[in->last_buffer], a))
    return true;
  for (u32 k = 0; k < in->nbuffers; k++)
    if (buffer_holds(&in->buffers[k], a)) {
      in->last_buffer = k;
      return true;
    }
  return false;
}

/* The host address of element i; NULL after a fault. */
static void *
access_at(Interp *in, const Op *op, Access a, u32 i)
{
  char where[96];
  if (a.addr % a.size) {
    interp_fault(in, op, "%s%s is misaligned: address 0x%llx, %u bytes", op_info(op->code)->name,
                 interp_where(reached(op), i, where), (unsigned long long)a.addr, a.size);
    return NULL;
  }
  if (!find_buffer(in, a)) {
    fault_outside(in, op, a, i);
    return NULL;
  }
  return interp_touch(in, op, a.addr, a.size, i) ? (void *)(uintptr_t)a.addr : NULL;
}

const void *
interp_element(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i)
{
  return access_at(in, op, (Access){addr, bytes}, i);
}

static u64
memory_read(const void *p, DType d)
{
  u64 v = 0;
  memcpy(&v, p, dtype_bytes(d));
  return d == DT_I1 ? v != 0 : v;
}

static void
memory_write(void *p, DType d, u64 v)
{
  memcpy(p, &v, dtype_bytes(d));
}

static bool
masked_off(const u64 *mask, const Value *m, u32 i)
{
  return mask && !interp_pick(mask, m, i);
}

/* load p mask? other? */
Flow
interp_load(Interp *in, const Op *op)
{
  Value *p = OPERAND(op, LOAD, p), *m = OPERAND(op, LOAD, mask), *other = OPERAND(op, LOAD, other), *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  const u64 *addr = interp_get(in, p), *mask = interp_get(in, m), *rest = interp_get(in, other);
  DType d = p->type->dt;
  u32 n = type_numel(r->type), size = dtype_bytes(d);
  for (u32 i = 0; i < n; i++) {
    if (masked_off(mask, m, i)) {
      out[i] = rest ? interp_pick(rest, other, i) : 0;
      continue;
    }
    void *at = access_at(in, op, (Access){interp_pick(addr, p, i), size}, i);
    if (!at)
      return FLOW_FAULT;
    out[i] = memory_read(at, d);
  }
  return FLOW_NEXT;
}

/* store p value mask? */
Flow
interp_store(Interp *in, const Op *op)
{
  Value *p = OPERAND(op, STORE, p), *v = OPERAND(op, STORE, value), *m = OPERAND(op, STORE, mask);
  const u64 *addr = interp_get(in, p), *value = interp_get(in, v), *mask = interp_get(in, m);
  DType d = p->type->dt;
  u32 n = type_numel(p->type), size = dtype_bytes(d);
  for (u32 i = 0; i < n; i++) {
    if (masked_off(mask, m, i))
      continue;
    void *at = access_at(in, op, (Access){addr[i], size}, i);
    if (!at)
      return FLOW_FAULT;
    memory_write(at, d, interp_pick(value, v, i));
  }
  return FLOW_NEXT;
}

/* Each element's place takes `value` combined with what is there by `rmw` (OP_COUNT: takes it as it is), only where that is
 * `expected` unless that is NULL. The result is what was there. */
static Flow
run_atomic(Interp *in, const Op *op, OpCode rmw, const Value *expected, const Value *value)
{
  const Value *p = op_pointer(op), *m = op_mask(op), *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  const u64 *addr = interp_get(in, p), *mask = interp_get(in, m), *wanted = interp_get(in, expected), *with = interp_get(in, value);
  DType d = p->type->dt;
  u32 n = type_numel(r->type), size = dtype_bytes(d);
  for (u32 i = 0; i < n; i++) {
    out[i] = 0;
    if (masked_off(mask, m, i))
      continue;
    void *at = access_at(in, op, (Access){interp_pick(addr, p, i), size}, i);
    if (!at)
      return FLOW_FAULT;
    u64 fresh = interp_pick(with, value, i);
    out[i] = memory_read(at, d);
    if (rmw != OP_COUNT)
      scalar_binary(rmw, d, out[i], fresh, &fresh);
    if (!expected || out[i] == interp_pick(wanted, expected, i))
      memory_write(at, d, fresh);
  }
  if (op_acquires(op))
    interp_meet(in);
  return FLOW_NEXT;
}

/* atomic_rmw p value mask? */
Flow
interp_atomic_rmw(Interp *in, const Op *op)
{
  OpCode rmw;
  if (!rmw_find(op_str(op, AT_RMW, ""), &rmw))
    return interp_fault(in, op, "unknown atomic operation '%s'", op_str(op, AT_RMW, ""));
  return run_atomic(in, op, rmw, NULL, OPERAND(op, ATOMIC_RMW, value));
}

/* atomic_cas p expected value mask? */
Flow
interp_atomic_cas(Interp *in, const Op *op)
{
  return run_atomic(in, op, OP_COUNT, OPERAND(op, ATOMIC_CAS, expected), OPERAND(op, ATOMIC_CAS, value));
}

/* addr + off * size without wrapping around the 64-bit address space. */
static bool
pointer_add(u64 addr, DType off_type, u64 off, u32 size, u64 *out)
{
  bool negative = dtype_is_signed(off_type) && scalar_int(off_type, off) < 0;
  u64 count = negative ? 0 - (u64)scalar_int(off_type, off) : off;
  if (count > UINT64_MAX / size)
    return false;
  *out = negative ? addr - count * size : addr + count * size;
  return negative ? *out <= addr : *out >= addr;
}

/* addptr p off */
Flow
interp_addptr(Interp *in, const Op *op)
{
  Value *p = OPERAND(op, ADDPTR, p), *off = OPERAND(op, ADDPTR, off), *r = op_result(op);
  char where[96];
  u64 *out = interp_make(in, op, r);
  if (!out)
    return FLOW_FAULT;
  const u64 *addr = interp_get(in, p), *offs = interp_get(in, off);
  u32 n = type_numel(r->type), size = dtype_bytes(p->type->dt);
  for (u32 i = 0; i < n; i++)
    if (!pointer_add(interp_pick(addr, p, i), off->type->dt, interp_pick(offs, off, i), size, &out[i]))
      return interp_fault(in, op, "the address overflows%s", interp_where(r->type, i, where));
  return FLOW_NEXT;
}
