/* atom.c - atomic read-modify-write. Global memory is shared by the host threads that run blocks, so every
 * one is a compare-and-swap of the host, which also gives it every order and scope. */
#include "fp.h"
#include "internal.h"
#include <string.h>

/* The number, where one of the two is none; of a signaling nan, too, which the host's fmin passes on. (Seen on an H200.) */
static float
extreme(float a, float b, bool least)
{
  if (a != a || b != b)
    return a != a ? b : a;
  if (a == b)
    return (signbit(a) != 0) == least ? a : b;
  return (a < b) == least ? a : b;
}

static uint16_t
half_op(ModId op, uint16_t x, uint16_t y, bool bf16)
{
  float a = bf16 ? bf16_to_f32(x) : f16_to_f32(x), b = bf16 ? bf16_to_f32(y) : f16_to_f32(y), r;
  r = op == M_ADD ? a + b : extreme(a, b, op == M_MIN);
  return bf16 ? f32_to_bf16(r) : f32_to_f16(r);
}

static uint64_t
float_op(ModId op, Type t, uint64_t x, uint64_t y)
{
  switch (t) {
  case T_F16: case T_BF16: return half_op(op, (uint16_t)x, (uint16_t)y, t == T_BF16);
  case T_F16X2: case T_BF16X2:
    return half_op(op, (uint16_t)x, (uint16_t)y, t == T_BF16X2) |
           (uint32_t)half_op(op, (uint16_t)(x >> 16), (uint16_t)(y >> 16), t == T_BF16X2) << 16;
  case T_F32: {
    float a = bits_f32((uint32_t)x), b = bits_f32((uint32_t)y);
    return f32_bits(f32_canon(op == M_ADD ? a + b : op == M_MIN ? fminf(a, b) : fmaxf(a, b)));
  }
  default: {
    double a = bits_f64(x), b = bits_f64(y);
    return f64_bits(op == M_ADD ? a + b : op == M_MIN ? fmin(a, b) : fmax(a, b));
  }
  }
}

static bool
less(Type t, uint64_t x, uint64_t y)
{
  switch (t) {
  case T_S32: return (int32_t)x < (int32_t)y;
  case T_S64: return (int64_t)x < (int64_t)y;
  default: return x < y;
  }
}

static uint64_t
combine(ModId op, Type t, uint64_t x, uint64_t y)
{
  bool real = ptx_type_class[t] == TC_FLOAT || ptx_type_class[t] == TC_PACK;
  if (real && (op == M_ADD || op == M_MIN || op == M_MAX))
    return float_op(op, t, x, y);
  switch (op) {
  case M_ADD: return x + y;
  case M_AND: return x & y;
  case M_OR: return x | y;
  case M_XOR: return x ^ y;
  case M_MIN: return less(t, x, y) ? x : y;
  case M_MAX: return less(t, x, y) ? y : x;
  case M_INC: return x >= y ? 0 : x + 1;
  case M_DEC: return x == 0 || x > y ? y : x - 1;
  default: return y;
  }
}

#define SWAP(T) \
  { \
    T old = __atomic_load_n((T *)(void *)p, __ATOMIC_RELAXED), want; \
    do \
      want = op == M_CAS ? (old == (T)cmp ? (T)val : old) : (T)combine(op, t, old, (T)val); \
    while (!__atomic_compare_exchange_n((T *)(void *)p, &old, want, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
    return old; \
  }

static uint64_t
swap(ModId op, Type t, uint8_t *p, uint64_t cmp, uint64_t val)
{
  switch (ptx_type_bytes[t]) {
  case 2: SWAP(uint16_t)
  case 4: SWAP(uint32_t)
  default: SWAP(uint64_t)
  }
}

void
atom_combine(ModId op, Type t, uint8_t *p, uint64_t val)
{
  swap(op, t, p, 0, val);
}

static uint64_t
lane_value(const Warp *w, uint32_t slot, uint32_t lane, uint32_t n)
{
  uint64_t v = 0;
  memcpy(&v, w->regs + slot + lane * n, n);
  return v;
}

/* What a lane's operation did. wrote: a compare that fails only reads; changed: memory is not what it was. */
typedef struct Swapped { bool wrote, changed; uint64_t seen; } Swapped;

static Swapped
swap_all(const Block *b, Warp *w, const Insn *in, uint32_t lane, uint8_t *p)
{
  const MemOps *o = &in->mem;
  const uint32_t *list = b->kernel->lists + in->list;
  uint32_t n = o->size;
  Swapped r = {false, false, 0};
  for (uint32_t v = 0; v < o->count; v++) {
    uint64_t cmp = o->op == M_CAS ? lane_value(w, o->compare, lane, n) : 0, now = 0;
    uint64_t old = swap((ModId)o->op, (Type)in->type, p + v * n, cmp, lane_value(w, list[v], lane, n));
    if (o->result)
      memcpy(w->regs + list[o->count + v] + lane * n, &old, n);
    memcpy(&now, p + v * n, n);
    r.wrote |= o->op != M_CAS || old == cmp;
    r.changed |= now != old;
    r.seen = (r.seen ^ old) * 0x9e3779b97f4a7c15ull;
  }
  return r;
}

static int
atom_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, Swapped *all)
{
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  uint8_t *p = mem_host(b, w, in, lane, sp, addr, n, true);
  bool shared = sp == SP_SHARED, order = b->check && (shared || b->launch->turns);
  LaneAccess l = {.space = sp, .addr = addr, .lane = lane, .size = n, .write = true, .strong = true, .update = true};
  if (!p || mem_check(b, w, in, &l))
    return -1;
  if (order)
    sync_read(b, w, &in->mem, shared, addr);
  Swapped one = swap_all(b, w, in, lane, p);
  if (one.wrote && order)
    sync_write(b, w, &in->mem, shared, addr, true);
  all->changed |= one.changed;
  all->seen = (all->seen ^ one.seen ^ addr) * 0x9e3779b97f4a7c15ull;
  return 0;
}

int
atom_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  uint32_t global = 0, n = (uint32_t)in->mem.size * in->mem.count;
  Swapped all = {false, false, m};
  mem_address(w, in->mem.base, &in->mem.at, addr);
  FOR_LANES(i, m) {
    Space sp = in->mem.at.space == SP_GENERIC ? mem_space_of(&addr[i]) : mem_space((Space)in->mem.at.space);
    global |= (uint32_t)(sp == SP_GLOBAL) << i;
    if (atom_lane(b, w, in, i, sp, addr[i], &all))
      return -1;
  }
  if (global && b->launch->turns)
    poll_note(b, w, in, all.seen, all.changed);
  b->worker->stats.atomics++;
  if (!b->want_stats)
    return 0;
  if (global)
    mem_stats_global(b, global, addr, n, true);
  if (m & ~global)
    mem_stats_shared(b, m & ~global, addr, n);
  return 0;
}
