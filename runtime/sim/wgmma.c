/* wgmma.c - wgmma.mma_async: products of a warpgroup, four warps, of operands in shared memory (PTX ISA, "wgmma").
 *
 * Each warp computes its 16 rows when it issues the instruction. That its operands are read at an unknown time until the wait is
 * seen from the records: the reads are those of an agent, one for each warpgroup, whose clocks are the groups, and only a wait tells of
 * them. A warp that waits for a group goes on when all four have committed it, as hardware runs them together.
 *
 * Registers. From its issue to the wait for its group a product's accumulators may be used by other products only, and registers that
 * hold its A may not be written; a plain move hands both on, since compilers put such moves between products that chain. What
 * else writes accumulators or A needs a wgmma.fence behind it.
 *
 * Matrices in shared memory. A descriptor has the address, two strides and the swizzle. Addresses are taken apart by their absolute bits,
 * so a tile that is not where its swizzle expects it gives wrong numbers here, too. How sums are rounded: wgmma_sum.c.
 *
 * Sparse products. A is of half of K, which goes on for twice as far in B: each row meets the rows of B that its metadata names, which is
 * as in mma.sync of the warp's 16 rows (mma.c). Its register is held like those of A. */
#include "fp.h"
#include "wgmma.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = WG_ROWS, MAX_N = WG_N, MAX_K = WG_K, PIECE = 16, TRACES = 16 };

/* Of a register: the number + 1 of the newest group in flight that has it as accumulator, or holds it as A, and who issued that; and
 * the fence behind which it was written. */
typedef struct WgReg { uint32_t busy, held, pc, written; } WgReg;

struct Wgmma {
  uint32_t committed, done, fences, open;          /* groups; open: products in the group that is not committed */
  uint32_t segment, segment_group;                 /* of the reads of a group */
  uint64_t trace[TRACES];                          /* of what the newest groups executed */
  WgReg reg[];                                     /* by slot / 64 */
};

typedef union Sums { float f[ROWS][MAX_N]; int32_t i[ROWS][MAX_N]; } Sums;
typedef union Left { float f[ROWS][MAX_K]; int32_t i[ROWS][MAX_K]; } Left;
typedef union Right { float f[MAX_K][MAX_N]; int32_t i[MAX_K][MAX_N]; } Right;

/* ---- matrices in shared memory ---- */

typedef struct Matrix { uint32_t at, leading, stride, span; bool mn_major; } Matrix;     /* span: bytes of the swizzle, or 0 */

static Matrix
matrix_of(uint64_t desc, bool mn_major)
{
  static const uint8_t spans[] = {0, 128, 64, 32};
  return (Matrix){(uint32_t)(desc & 0x3fff) << 4, (uint32_t)(desc >> 16 & 0x3fff) << 4, (uint32_t)(desc >> 32 & 0x3fff) << 4,
                  spans[desc >> 62], mn_major};
}

/* Where the byte of element (row, k) is, of elements of `size` bytes; row is along M or N. */
static uint32_t
place(const Matrix *m, uint32_t row, uint32_t k, uint32_t size)
{
  uint32_t along = (m->mn_major ? row : k) * size, across = m->mn_major ? k : row, at = m->at;
  if (!m->span)
    at += across % 8 * PIECE + along % PIECE +
          (m->mn_major ? along / PIECE * m->stride + across / 8 * m->leading : across / 8 * m->stride + along / PIECE * m->leading);
  else
    at += across / 8 * m->stride + across % 8 * m->span + (m->mn_major ? along / m->span * m->leading + along % m->span : along);
  at &= 0x3ffff;
  return swizzled(at, m->span);
}

/* The pieces of 16 bytes that an operand is made of, a bit each. */
typedef struct Pieces { uint64_t bit[1 << 8]; } Pieces;

static void
add_pieces(Pieces *p, const Matrix *m, uint32_t first, uint32_t rows, uint32_t kk, uint32_t size)
{
  uint32_t row_step = m->mn_major ? PIECE / size : 1, k_step = m->mn_major ? 1 : PIECE / size;
  for (uint32_t i = first; i < first + rows; i += row_step)
    for (uint32_t k = 0; k < kk; k += k_step) {
      uint32_t at = place(m, i, k, size) / PIECE;
      p->bit[at / 64] |= 1ull << at % 64;
    }
}

/* The runs of pieces are read by the agent. */
static int
check_pieces(Block *b, Warp *w, const Insn *in, const Pieces *p, uint32_t agent, uint32_t segment)
{
  uint32_t n = sizeof p->bit / sizeof *p->bit * 64, end;
  for (uint32_t i = 0; i < n; i = end) {
    if (i % 64 == 0 && !p->bit[i / 64]) {
      end = i + 64;
      continue;
    }
    end = i + 1;
    if (!(p->bit[i / 64] >> i % 64 & 1))
      continue;
    while (end < n && p->bit[end / 64] >> end % 64 & 1)
      end++;
    LaneAccess run = {.space = SP_SHARED, .addr = i * PIECE, .size = (end - i) * PIECE, .agent = agent, .segment = segment};
    if (!mem_bytes(b, w, in, 0, SP_SHARED, run.addr, run.size, false) || mem_check(b, w, in, &run))
      return -1;
  }
  return 0;
}

/* ---- numbers ---- */

static inline void
put_number(Type t, const uint8_t *p, bool negate, float *f, int32_t *i)
{
  uint32_t v = 0;
  memcpy(&v, p, ptx_type_bytes[t]);
  if (t == T_S8 || t == T_U8)
    *i = mma_whole(t, v, 0);
  else if (t == T_F16 || t == T_BF16)      /* the most frequent, and here without a call */
    *f = (t == T_F16 ? f16_to_f32((uint16_t)v) : bf16_to_f32((uint16_t)v)) * (negate ? -1 : 1);
  else
    *f = negate ? -mma_number(t, v, 0) : mma_number(t, v, 0);
}

/* Elements of a row of A. */
static uint32_t
left_depth(const WgmmaOps *o)
{
  return (uint32_t)o->k >> o->sparse;
}

static void
load_left(const Block *b, const Warp *w, const Insn *in, const Matrix *m, Left *a)
{
  const WgmmaOps *o = &in->wgmma;
  uint32_t size = ptx_type_bytes[o->a_type], kk = left_depth(o), first = w->index % GROUP * ROWS;
  for (uint32_t i = 0; !o->a_regs && i < ROWS; i++)
    for (uint32_t k = 0; k < kk; k++)
      put_number((Type)o->a_type, b->shared + place(m, first + i, k, size), o->neg_a, &a->f[i][k], &a->i[i][k]);
  const uint32_t *slot = b->kernel->lists + in->list + o->nd;
  uint32_t per = 4 / size;
  for (uint32_t r = 0; o->a_regs && r < 4; r++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      for (uint32_t e = 0; e < per; e++) {
        uint32_t i = lane / 4 + 8 * (r & 1), k = lane % 4 * per + e + 4 * per * (r >> 1);
        put_number((Type)o->a_type, w->regs + slot[r] + 4 * lane + size * e, o->neg_a, &a->f[i][k], &a->i[i][k]);
      }
}

static void
load_right(const Block *b, const Insn *in, const Matrix *m, Right *r)
{
  const WgmmaOps *o = &in->wgmma;
  for (uint32_t j = 0; j < o->n; j++)
    for (uint32_t k = 0; k < o->k; k++)
      put_number((Type)o->b_type, b->shared + place(m, j, k, ptx_type_bytes[o->b_type]), o->neg_b, &r->f[k][j], &r->i[k][j]);
}

/* Accumulator i of a lane: its row, and its column. */
static uint32_t
sum_row(uint32_t lane, uint32_t i)
{
  return lane / 4 + 8 * (i >> 1 & 1);
}

static uint32_t
sum_column(uint32_t lane, uint32_t i)
{
  return i / 4 * 8 + lane % 4 * 2 + (i & 1);
}

static void
load_sums(const Block *b, const Warp *w, const Insn *in, bool keep, Sums *c)
{
  const uint32_t *slot = b->kernel->lists + in->list;
  for (uint32_t i = 0; i < in->wgmma.n / 2u; i++)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint32_t row = sum_row(lane, i), column = sum_column(lane, i);
      if (!keep)
        c->i[row][column] = 0;
      else if (in->type == T_F16)
        c->f[row][column] = f16_to_f32((uint16_t)(LANES_OF(uint32_t, w, slot[i / 2])[lane] >> 16 * (i & 1)));
      else
        c->i[row][column] = LANES_OF(int32_t, w, slot[i])[lane];
    }
}

static void
store_sums(const Block *b, Warp *w, const Insn *in, const Sums *c)
{
  const uint32_t *slot = b->kernel->lists + in->list;
  for (uint32_t i = 0; i < in->wgmma.n / 2u; i++)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint32_t row = sum_row(lane, i), column = sum_column(lane, i);
      if (in->type == T_F32)
        LANES_OF(float, w, slot[i])[lane] = f32_canon(c->f[row][column]);
      else if (in->type == T_S32)
        LANES_OF(int32_t, w, slot[i])[lane] = c->i[row][column];
      else if (i & 1)
        LANES_OF(uint32_t, w, slot[i / 2])[lane] = f32_to_f16(c->f[row][column - 1]) | (uint32_t)f32_to_f16(c->f[row][column]) << 16;
    }
}

/* at: for each element of A the row of B that it meets, or NULL: that of its number. */
static void
multiply_whole(const Insn *in, const Left *a, const Right *r, const uint8_t *at, Sums *c)
{
  uint32_t kk = left_depth(&in->wgmma);
  for (uint32_t i = 0; i < ROWS; i++)
    for (uint32_t k = 0; k < kk; k++)
      for (uint32_t j = 0; j < in->wgmma.n; j++)
        c->i[i][j] = (int32_t)((uint32_t)c->i[i][j] + (uint32_t)(a->i[i][k] * r->i[at ? at[i * kk + k] : k][j]));
}

/* A row of A with the rows of B, and their exponents, that it meets. */
static void
add_sparse_row(const Exponents *e, uint32_t i, const Left *a, const Right *r, const uint8_t *at, Sums *c)
{
  Right met;
  Exponents of = {.k = e->k / 2, .n = e->n, .bits = e->bits, .wild = e->wild};
  for (uint32_t k = 0; k < of.k; k++) {
    memcpy(met.f[k], r->f[at[k]], e->n * sizeof(float));
    memcpy(of.b[k], e->b[at[k]], e->n * sizeof *of.b[k]);
    of.a[i][k] = e->a[i][k];
  }
  wgmma_add_row(&of, i, a->f[i], met.f, c->f[i]);
}

static void
multiply(const Insn *in, const Left *a, const Right *r, const uint8_t *at, Sums *c)
{
  Exponents e = {.k = in->wgmma.k, .n = in->wgmma.n};
  if (in->type == T_S32) {
    multiply_whole(in, a, r, at, c);
    return;
  }
  wgmma_exponents((Type)in->wgmma.a_type, left_depth(&in->wgmma), a->f, r->f, &e);
  for (uint32_t i = 0; i < ROWS; i++)
    if (at)
      add_sparse_row(&e, i, a, r, at + i * e.k / 2, c);
    else
      wgmma_add_row(&e, i, a->f[i], r->f, c->f[i]);
}

/* ---- groups ---- */

static struct Wgmma *
state_of(Block *b, Warp *w, const Insn *in)
{
  if (!w->wgmma && !(w->wgmma = calloc(1, sizeof *w->wgmma + (b->kernel->file_bytes / 64 + 1) * sizeof *w->wgmma->reg)))
    sim_fault(b, w, in, 0, SIM_E_MEMORY, 0, "out of memory");
  return w->wgmma;
}

void
wgmma_clear(const Block *b, Warp *w)
{
  if (w->wgmma)
    memset(w->wgmma, 0, sizeof *w->wgmma + (b->kernel->file_bytes / 64 + 1) * sizeof *w->wgmma->reg);
}

static uint32_t
agent_of(Block *b, const Warp *w)
{
  uint32_t *agent = &b->wgmma_agent[w->index / GROUP];
  if (!*agent)
    *agent = agent_new(b);
  return *agent;
}

/* The segment of the reads of the group that a warp is putting together: group g has clock g + 1. */
static uint32_t
reads_segment(Block *b, Warp *w, uint32_t agent)
{
  struct Wgmma *s = w->wgmma;
  if (!s->segment || s->segment_group != s->committed)
    s->segment = segment_new(b, s->committed + 1, agent);
  s->segment_group = s->committed;
  b->agent[agent].clock = b->agent[agent].clock > s->committed + 2 ? b->agent[agent].clock : s->committed + 2;
  return s->segment;
}

static int
check_reads(Block *b, Warp *w, const Insn *in, const Matrix *a, const Matrix *r)
{
  Pieces p = {{0}};
  const WgmmaOps *o = &in->wgmma;
  uint32_t agent = b->check ? agent_of(b, w) : 0, segment = b->check ? reads_segment(b, w, agent) : 0;
  if (!o->a_regs)
    add_pieces(&p, a, w->index % GROUP * ROWS, ROWS, left_depth(o), ptx_type_bytes[o->a_type]);
  add_pieces(&p, r, 0, o->n, o->k, ptx_type_bytes[o->b_type]);
  return check_pieces(b, w, in, &p, agent, segment);
}

static int
wgmma_fault(Block *b, Warp *w, const Insn *in, SimErrorKind kind, uint32_t pc, const char *what)
{
  char where[200];
  sim_fault(b, w, in, 0, kind, 0, "warp %u %s %s", w->index, what, sim_loc_text(b, pc, where, sizeof where));
  sim_fault_also(b, pc);
  return -1;
}

/* The registers of a product: free to be used by it; then they are in flight. */
static int
take_registers(Block *b, Warp *w, const Insn *in)
{
  struct Wgmma *s = w->wgmma;
  const uint32_t *slot = b->kernel->lists + in->list;
  uint32_t nd = in->wgmma.nd, n = nd + (in->wgmma.a_regs ? 4 : 0) + in->wgmma.sparse, group = s->committed + 1;
  uint32_t pc = (uint32_t)(in - b->kernel->code);
  for (uint32_t i = 0; i < n; i++) {
    WgReg *r = &s->reg[slot[i] / 64];
    if (r->written == s->fences + 1)
      return sim_fault(b, w, in, 0, SIM_E_ASYNC, 0, "warp %u wrote register %u of this product, and has executed no wgmma.fence since",
                       w->index, i);
    if (i < nd ? r->held > s->done : r->busy > s->done)
      return wgmma_fault(b, w, in, SIM_E_ASYNC, r->pc, i < nd ? "accumulates in a register that holds A of the product in flight issued at"
                                                              : "takes for A an accumulator of the product in flight issued at");
  }
  for (uint32_t i = 0; i < n; i++) {
    WgReg *r = &s->reg[slot[i] / 64];
    *(i < nd ? &r->busy : &r->held) = group;
    r->pc = pc;
  }
  return 0;
}

static bool
uniform(const Warp *w, uint32_t slot)
{
  const uint64_t *v = LANES_OF(uint64_t, w, slot);
  for (uint32_t i = 1; i < LANES; i++)
    if (v[i] != v[0])
      return false;
  return true;
}

static int
check_form(Block *b, Warp *w, const Insn *in)
{
  const WgmmaOps *o = &in->wgmma;
  uint32_t scale = PRED_OF(w, o->scale);
  if (!warpgroup_of(b, w, in))
    return -1;
  if ((scale && ~scale) || !uniform(w, o->b) || (!o->a_regs && !uniform(w, o->a)))
    return sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "the lanes of warp %u disagree on a descriptor or on scale-d", w->index);
  uint64_t both = LANES_OF(uint64_t, w, o->b)[0] | (o->a_regs ? 0 : LANES_OF(uint64_t, w, o->a)[0]);
  if (both >> 49 & 7)
    return sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "a descriptor has a base offset, which this machine does not know");
  if (w->wgmma && w->wgmma->fences)
    return 0;
  return sim_fault(b, w, in, 0, SIM_E_ASYNC, 0, "warp %u has executed no wgmma.fence before its first product", w->index);
}

static void
trace(Warp *w, const Insn *in, uint64_t what)
{
  uint64_t *t = &w->wgmma->trace[w->wgmma->committed % TRACES];
  *t = w->wgmma->open++ ? (*t ^ what) * 0x9e3779b97f4a7c15ull : what * 0x9e3779b97f4a7c15ull;
}

static int
meta_places(Block *b, Warp *w, const Insn *in, uint8_t *at)
{
  const WgmmaOps *o = &in->wgmma;
  uint32_t slot = b->kernel->lists[in->list + o->nd + (o->a_regs ? 4 : 0)];
  MmaOps as = {.m = ROWS, .k = o->k, .a_type = o->a_type, .sparse = true, .ordered = true, .selector = o->selector};
  return mma_sparse_places(b, w, in, &as, LANES_OF(uint32_t, w, slot), at);
}

int
wgmma_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  Left a;
  Right r;
  Sums c;
  uint8_t places[ROWS * MAX_K / 2];
  const WgmmaOps *o = &in->wgmma;
  if (check_form(b, w, in) || take_registers(b, w, in))
    return -1;
  uint64_t left = o->a_regs ? 0 : LANES_OF(uint64_t, w, o->a)[0], right = LANES_OF(uint64_t, w, o->b)[0];
  Matrix ma = matrix_of(left, o->trans_a), mb = matrix_of(right, o->trans_b);
  bool keep = PRED_OF(w, o->scale) != 0;
  trace(w, in, left ^ right << 17 ^ right >> 47 ^ (uint64_t)(in - b->kernel->code) << 20 ^ keep);
  if (check_reads(b, w, in, &ma, &mb))
    return -1;
  load_left(b, w, in, &ma, &a);
  load_right(b, in, &mb, &r);
  load_sums(b, w, in, keep, &c);
  if (o->sparse && meta_places(b, w, in, places))
    return -1;
  multiply(in, &a, &r, o->sparse ? places : NULL, &c);
  store_sums(b, w, in, &c);
  b->worker->stats.mma++;
  return 0;
}

int
wgmma_fence(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (!state_of(b, w, in))
    return -1;
  w->wgmma->fences++;
  return 0;
}

int
wgmma_commit(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (!state_of(b, w, in))
    return -1;
  if (!w->wgmma->open)
    w->wgmma->trace[w->wgmma->committed % TRACES] = 0;
  w->wgmma->committed++;
  w->wgmma->open = 0;
  wake_waiters(b, ON_WARPGROUP | w->index / GROUP);
  return 0;
}

/* Another warp of the group that has not committed so many groups; NULL: all have. */
static const Warp *
behind(const Block *b, const Warp *w, uint32_t groups)
{
  const Warp *first = &b->warp[w->index / GROUP * GROUP];
  for (uint32_t i = 0; i < GROUP && groups; i++)
    if (!first[i].wgmma || first[i].wgmma->committed < groups)
      return &first[i];
  return NULL;
}

static int
check_traces(Block *b, Warp *w, const Insn *in, uint32_t groups)
{
  const Warp *first = &b->warp[w->index / GROUP * GROUP];
  uint32_t at = (groups - 1) % TRACES;
  for (uint32_t i = 0; groups && i < GROUP; i++)
    if (first[i].wgmma->committed < groups + TRACES && w->wgmma->committed < groups + TRACES &&
        first[i].wgmma->trace[at] != w->wgmma->trace[at])
      return sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "warps %u and %u are of one warpgroup, and have not issued the same products",
                       first[i].index, w->index);
  return 0;
}

int
wgmma_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  struct Wgmma *s = state_of(b, w, in);
  if (!s)
    return -1;
  uint32_t n = in->wait.pending, groups = s->committed > n ? s->committed - n : 0;
  if (behind(b, w, groups)) {
    w->park_on = ON_WARPGROUP | w->index / GROUP;
    return PARK;
  }
  if (check_traces(b, w, in, groups))
    return -1;
  s->done = groups > s->done ? groups : s->done;
  uint32_t agent = b->wgmma_agent[w->index / GROUP], *known = &w->clocks.of[PROXY_GENERIC][agent];
  if (b->check && agent && groups + 1 > *known)
    *known = groups + 1;
  b->cluster->events++;
  return 0;
}

void
wgmma_wait_text(const Block *b, const Warp *w, const Insn *in, Text *t)
{
  char at[200];
  uint32_t n = in->wait.pending, groups = w->wgmma->committed > n ? w->wgmma->committed - n : 0;
  const Warp *other = behind(b, w, groups);
  text_add(t, "at wgmma.wait_group (%s)", sim_loc_text(b, (uint32_t)(in - b->kernel->code), at, sizeof at));
  if (other)
    text_add(t, " for warp %u of its warpgroup, which has committed %u of %u groups", other->index,
             other->wgmma ? other->wgmma->committed : 0, groups);
}

/* ---- registers in flight ---- */

/* Registers of an instruction's list that are results, and those that are not. */
static void
list_counts(const Insn *in, uint32_t *results, uint32_t *sources)
{
  WarpFn *fn = in->fn.warp;
  uint32_t nc = in->type == T_F16 ? in->mma.m / 8u : in->mma.m / 4u;
  *results = *sources = 0;
  if (fn == mem_load)
    *results = in->mem.count;
  else if (fn == mem_store || fn == atom_exec)
    *sources = in->mem.count;
  else if (fn == ldmatrix_exec)
    *results = in->matrix.count;
  else if (fn == stmatrix_exec)
    *sources = in->matrix.count;
  else if (fn == mma_exec)
    *results = nc;
}

/* Whether the first slot of an instruction is a result. */
static bool
first_is_result(const Insn *in)
{
  static WarpFn *const others[] = {mem_load, mem_store, atom_exec, async_copy, ldmatrix_exec, stmatrix_exec, mma_exec, mbar_exec,
                                   mbar_wait, bulk_exec, index_exec, warpsync_exec, sim_print};
  if (in->kind == K_ALU || in->kind == K_SETP)
    return true;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (in->fn.warp == others[i])
      return false;
  return in->kind == K_WARP || in->kind == K_CONV;
}

static int
touch(Block *b, Warp *w, const Insn *in, uint32_t slot, bool result)
{
  struct Wgmma *s = w->wgmma;
  WgReg *r = &s->reg[slot / 64];
  if (slot && r->busy > s->done)
    return wgmma_fault(b, w, in, SIM_E_ASYNC, r->pc, result ? "writes an accumulator of a product that has not been waited for, issued at"
                                                            : "reads an accumulator of a product that has not been waited for, issued at");
  if (slot && result && r->held > s->done)
    return wgmma_fault(b, w, in, SIM_E_ASYNC, r->pc, "writes a register that holds A of a product that has not been waited for, issued at");
  if (result)
    r->written = s->fences + 1;
  return 0;
}

/* A move hands on what the register is in flight for. */
static bool
hand_on(Warp *w, const Insn *in)
{
  struct Wgmma *s = w->wgmma;
  if (in->kind != K_ALU || in->alu.a != in->alu.b || in->alu.a != in->alu.c || in->alu.post || in->alu.rounding)
    return false;
  const AluRow *mov = alu_find(A_mov, V_NONE, (Type)in->type);
  if (!mov || in->fn.alu != mov->fn)
    return false;
  const WgReg *from = &s->reg[in->alu.a / 64];
  WgReg *to = &s->reg[in->alu.d / 64];
  if ((to->busy > s->done && to->busy != from->busy) || to->held > s->done)
    return false;
  *to = *from;
  to->held = 0;
  return true;
}

int
wgmma_touch(Block *b, Warp *w, const Insn *in)
{
  uint32_t results, sources;
  if (in->kind >= K_BRA && in->kind != K_WAIT)
    return 0;
  if (in->fn.warp == wgmma_exec || hand_on(w, in))
    return 0;
  for (uint32_t i = 0; i < in->nslot; i++)
    if (touch(b, w, in, in->slot[i], i == 0 && first_is_result(in)))
      return -1;
  if (in->kind == K_ALU || in->kind == K_SETP)
    return 0;
  list_counts(in, &results, &sources);
  for (uint32_t i = 0; i < results + sources; i++)
    if (touch(b, w, in, b->kernel->lists[in->list + i], i < results))
      return -1;
  return 0;
}
