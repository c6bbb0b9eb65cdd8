/* mma.c - ldmatrix, stmatrix and mma.sync.
 *
 * Fragments. With g = lane / 4, t = lane % 4 and p elements to a 32-bit register (one where elements have 32
 * or 64 bits), every shape of the PTX ISA that this machine has follows one rule:
 *   A (m x k): register r, element e: row g + 8 (r & 1), column t p + e + 4 p (r >> 1); for m = 8, row g
 *   B (k x n): register r, element e: row t p + e + 4 p r, column g
 *   C (m x n): element i: row g + 8 (i >> 1), column 2 t + (i & 1)
 *
 * Sparse products. A has two of every four columns, half of k: A's fragment is that of m x k / 2. What the columns were says a register e
 * of some lanes of each four, t from selector * lanes on: of every 16 columns of a row 16 bits, four for each four, the first
 * one's place among them in the lower two, the other one's, which is higher, in the upper. With j the number of the 16 columns:
 *   16-bit types: lane selector k / 16 + j of row g in the lower half, of row g + 8 in the upper
 *    8-bit types: lane selector k / 16 + 2 (j >> 1) of row g, the lane behind it of row g + 8; j & 1 is the half
 *
 * Arithmetic. Products of f16, bf16, tf32 and fp8 are exact; they are added to the accumulator in f32, in
 * the order of k, rounded to nearest at every step. Tensor cores add several products at once and truncate,
 * so their last bits differ. An f16 accumulator is rounded once, at the end. f64 is a chain of fma in the
 * order of k; s32 wraps. tf32 operands lose their low 13 bits, as in hardware. */
#include "fp.h"
#include "internal.h"
#include <string.h>

enum { MAX_M = 16, MAX_N = 8, MAX_K = 32 };

typedef union Acc { float f[MAX_M][MAX_N]; int32_t i[MAX_M][MAX_N]; double d[MAX_M][MAX_N]; } Acc;
typedef union Side { float f[MAX_M * MAX_K]; int32_t i[MAX_M * MAX_K]; double d[MAX_M * MAX_K]; } Side;

/* ---- ldmatrix, stmatrix ---- */

/* The rows' addresses: lane 8 i + j has row j of matrix i. */
static int
matrix_rows(Block *b, Warp *w, const Insn *in, uint8_t *row[LANES], uint32_t off[LANES])
{
  uint64_t addr[LANES];
  bool write = in->matrix.store;
  mem_address(w, in->matrix.base, &in->matrix.at, addr);
  for (uint32_t i = 0; i < in->matrix.count * 8u; i++) {
    if ((addr[i] & ~(WINDOW_SIZE - 1)) == SHARED_WINDOW)
      addr[i] -= SHARED_WINDOW;
    row[i] = mem_host(b, w, in, i, SP_SHARED, addr[i], 16, write);
    if (!row[i])
      return -1;
    off[i] = (uint32_t)addr[i];
  }
  for (uint32_t i = 0; b->want_stats && i < in->matrix.count; i++)
    mem_stats_shared(b, 255u << 8 * i, addr, 16);
  return 0;
}

int
ldmatrix_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint8_t *row[LANES];
  uint32_t off[LANES];
  const uint32_t *ext = b->kernel->lists + in->list;
  if (matrix_rows(b, w, in, row, off))
    return -1;
  for (uint32_t i = 0; i < in->matrix.count * 8u; i++)
    if (mem_check(b, w, in, &(LaneAccess){.space = SP_SHARED, .addr = off[i], .lane = i, .size = 16}))
      return -1;
  for (uint32_t i = 0; i < in->matrix.count; i++) {
    uint32_t v[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint32_t g = lane / 4, t = lane % 4;
      uint16_t h[2];
      for (uint32_t e = 0; e < 2; e++) {
        uint32_t r = in->matrix.trans ? 2 * t + e : g, c = in->matrix.trans ? g : 2 * t + e;
        memcpy(&h[e], row[8 * i + r] + 2 * c, 2);
      }
      v[lane] = h[0] | (uint32_t)h[1] << 16;
    }
    memcpy(LANES_OF(uint32_t, w, ext[i]), v, sizeof v);
  }
  return 0;
}

int
stmatrix_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint8_t *row[LANES], data[LANES][16];
  uint32_t off[LANES];
  const uint32_t *ext = b->kernel->lists + in->list;
  if (matrix_rows(b, w, in, row, off))
    return -1;
  for (uint32_t i = 0; i < in->matrix.count; i++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      for (uint32_t e = 0; e < 2; e++) {
        uint32_t g = lane / 4, t = lane % 4, trans = in->matrix.trans;
        uint32_t r = trans ? 2 * t + e : g, c = trans ? g : 2 * t + e;
        uint16_t h = (uint16_t)(LANES_OF(uint32_t, w, ext[i])[lane] >> 16 * e);
        memcpy(data[8 * i + r] + 2 * c, &h, 2);
      }
  for (uint32_t i = 0; i < in->matrix.count * 8u; i++) {
    if (mem_check(b, w, in, &(LaneAccess){.space = SP_SHARED, .addr = off[i], .lane = i, .size = 16, .write = true, .data = data[i]}))
      return -1;
    memcpy(row[i], data[i], 16);
  }
  return 0;
}

/* ---- mma ---- */

float
mma_number(Type t, uint32_t reg, uint32_t e)
{
  switch (t) {
  case T_F16: return f16_to_f32((uint16_t)(reg >> 16 * e));
  case T_BF16: return bf16_to_f32((uint16_t)(reg >> 16 * e));
  case T_TF32: return bits_f32(reg & ~0x1fffu);
  case T_E4M3: return (float)simfp_decode(reg >> 8 * e & 255, &simfp_e4m3);
  default: return (float)simfp_decode(reg >> 8 * e & 255, &simfp_e5m2);
  }
}

int32_t
mma_whole(Type t, uint32_t reg, uint32_t e)
{
  return t == T_S8 ? (int8_t)(reg >> 8 * e) : (int32_t)(reg >> 8 * e & 255);
}

/* One element of a register in a lane into place i of a side. */
static void
put_element(Side *s, uint32_t i, Type t, const uint8_t *lanes, uint32_t lane, uint32_t e)
{
  uint32_t reg;
  if (t == T_F64) {
    memcpy(&s->d[i], lanes + 8 * lane, 8);
    return;
  }
  memcpy(&reg, lanes + 4 * lane, 4);
  if (t == T_S8 || t == T_U8)
    s->i[i] = mma_whole(t, reg, e);
  else
    s->f[i] = mma_number(t, reg, e);
}

static uint32_t
per_register(Type t)
{
  return ptx_type_bytes[t] >= 4 ? 1 : 4u / ptx_type_bytes[t];
}

/* A as rows of k, B as rows of n. Returns the registers read. */
static uint32_t
gather_a(const Warp *w, const uint32_t *slot, Type t, uint32_t m, uint32_t kk, Side *s)
{
  uint32_t p = per_register(t), regs = m * kk / LANES / p, step = m == 16 ? 1 : 0;
  for (uint32_t r = 0; r < regs; r++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      for (uint32_t e = 0; e < p; e++) {
        uint32_t row = lane / 4 + 8 * (r & step), col = lane % 4 * p + e + 4 * p * (r >> step);
        put_element(s, row * kk + col, t, w->regs + slot[r], lane, e);
      }
  return regs;
}

static uint32_t
gather_b(const Warp *w, const uint32_t *slot, Type t, uint32_t kk, Side *s)
{
  uint32_t p = per_register(t), regs = kk * MAX_N / LANES / p;
  for (uint32_t r = 0; r < regs; r++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      for (uint32_t e = 0; e < p; e++)
        put_element(s, (lane % 4 * p + e + 4 * p * r) * MAX_N + lane / 4, t, w->regs + slot[r], lane, e);
  return regs;
}

static void
load_acc(const Warp *w, const uint32_t *slot, Type t, uint32_t m, Acc *c)
{
  for (uint32_t lane = 0; lane < LANES; lane++)
    for (uint32_t i = 0; i < m / 4; i++) {
      uint32_t row = lane / 4 + 8 * (i >> 1), col = lane % 4 * 2 + (i & 1);
      if (t == T_F64)
        c->d[row][col] = LANES_OF(double, w, slot[i])[lane];
      else if (t == T_F16)
        c->f[row][col] = f16_to_f32((uint16_t)(LANES_OF(uint32_t, w, slot[i / 2])[lane] >> 16 * (i & 1)));
      else
        c->i[row][col] = LANES_OF(int32_t, w, slot[i])[lane];
    }
}

static void
store_acc(Warp *w, const uint32_t *slot, Type t, uint32_t m, const Acc *c)
{
  for (uint32_t lane = 0; lane < LANES; lane++)
    for (uint32_t i = 0; i < m / 4; i++) {
      uint32_t row = lane / 4 + 8 * (i >> 1), col = lane % 4 * 2 + (i & 1);
      if (t == T_F64)
        LANES_OF(double, w, slot[i])[lane] = c->d[row][col];
      else if (t == T_S32)
        LANES_OF(int32_t, w, slot[i])[lane] = c->i[row][col];
      else if (t == T_F32)
        LANES_OF(float, w, slot[i])[lane] = f32_canon(c->f[row][col]);
      else if (i & 1)
        LANES_OF(uint32_t, w, slot[i / 2])[lane] =
          f32_to_f16(c->f[row][col - 1]) | (uint32_t)f32_to_f16(c->f[row][col]) << 16;
    }
}

/* The row of B that A's element meets: at, or its column where at is NULL. */
static inline uint32_t
met(const uint8_t *at, uint32_t i, uint32_t x)
{
  return at ? at[i] : x;
}

static void
multiply_f32(const Side *a, const Side *b, Acc *c, uint32_t m, uint32_t kk, const uint8_t *at)
{
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t x = 0; x < kk; x++)
      for (uint32_t j = 0; j < MAX_N; j++)
        c->f[i][j] += a->f[i * kk + x] * b->f[met(at, i * kk + x, x) * MAX_N + j];
}

static void
multiply_s32(const Side *a, const Side *b, Acc *c, uint32_t m, uint32_t kk, const uint8_t *at)
{
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t x = 0; x < kk; x++)
      for (uint32_t j = 0; j < MAX_N; j++)
        c->i[i][j] = (int32_t)((uint32_t)c->i[i][j] + (uint32_t)(a->i[i * kk + x] * b->i[met(at, i * kk + x, x) * MAX_N + j]));
}

static void
multiply_f64(const Side *a, const Side *b, Acc *c, uint32_t m, uint32_t kk)
{
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t x = 0; x < kk; x++)
      for (uint32_t j = 0; j < MAX_N; j++)
        c->d[i][j] = fma(a->d[i * kk + x], b->d[x * MAX_N + j], c->d[i][j]);
}

int
mma_sparse_places(Block *b, Warp *w, const Insn *in, const MmaOps *o, const uint32_t *e, uint8_t *at)
{
  uint32_t k = o->k, held = k / 2, bytes = ptx_type_bytes[o->a_type];
  for (uint32_t i = 0; i < o->m * held; i++) {
    uint32_t row = i / held, x = i % held, j = x / 8, lane = row % 8 * 4 + o->selector * k / 16, high = row >> 3;
    lane += bytes == 1 ? 2 * (j >> 1) + high : j;
    uint32_t word = e[lane], bits = word >> (bytes == 1 ? j & 1 : high) * 16 >> x % 8 / 2 * 4 & 15, lo = bits & 3, hi = bits >> 2;
    if (lo == hi || (o->ordered && lo > hi))
      return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0,
                       "metadata 0x%08x of a sparse product: columns %u to %u of row %u keep those at %u and %u, which are not in order",
                       word, x / 2 * 4, x / 2 * 4 + 3, row, lo, hi);
    at[i] = (uint8_t)(x / 2 * 4 + (x & 1 ? hi : lo));
  }
  return 0;
}

int
mma_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  Side left, right;
  Acc c;
  uint8_t places[MAX_M * MAX_K];
  Type t = (Type)in->type, ta = (Type)in->mma.a_type, tb = (Type)in->mma.b_type;
  uint32_t rows = in->mma.m, kk = in->mma.k, nc = t == T_F16 ? rows / 8u : rows / 4u, held = kk >> in->mma.sparse;
  const uint32_t *slot = b->kernel->lists + in->list, *next = slot + nc;
  const uint8_t *at = in->mma.sparse ? places : NULL;
  next += gather_a(w, next, ta, rows, held, &left);
  next += gather_b(w, next, tb, kk, &right);
  load_acc(w, next, t, rows, &c);
  if (at && mma_sparse_places(b, w, in, &in->mma, LANES_OF(uint32_t, w, next[nc]), places))
    return -1;
  if (t == T_F64)
    multiply_f64(&left, &right, &c, rows, kk);
  else if (t == T_S32)
    multiply_s32(&left, &right, &c, rows, held, at);
  else
    multiply_f32(&left, &right, &c, rows, held, at);
  store_acc(w, slot, t, rows, &c);
  b->worker->stats.mma++;
  return 0;
}
