/* warp.c - what the lanes of a warp do together: shuffles, votes, matches, reductions, the clock.
 * exec.c has made sure that every live lane of the member mask executes (m is those lanes). */
#include "fp.h"
#include "internal.h"
#include <string.h>
#include <time.h>

static void
set_pred(Warp *w, uint32_t slot, uint32_t m, uint32_t bits)
{
  PRED_OF(w, slot) = (PRED_OF(w, slot) & ~m) | (bits & m);
}

static void
set_words(Warp *w, uint32_t slot, uint32_t m, const uint32_t *v)
{
  uint32_t *d = LANES_OF(uint32_t, w, slot);
  FOR_LANES(i, m) d[i] = v[i];
}

/* The source lane of a shuffle, or the lane itself with *ok false when it is out of range. */
static uint32_t
shuffle_source(uint32_t mode, uint32_t lane, uint32_t b, uint32_t c, bool *ok)
{
  uint32_t clamp = c & 31, seg = c >> 8 & 31, top = (lane & seg) | (clamp & ~seg), bottom = lane & seg;
  int32_t j;
  b &= 31;
  switch (mode) {
  case 0: j = (int32_t)lane - (int32_t)b, *ok = j >= (int32_t)top; break;
  case 1: j = (int32_t)(lane + b), *ok = j <= (int32_t)top; break;
  case 2: j = (int32_t)(lane ^ b), *ok = j <= (int32_t)top; break;
  default: j = (int32_t)(bottom | (b & ~seg)), *ok = j <= (int32_t)top; break;
  }
  return *ok ? (uint32_t)j & 31 : lane;
}

int
shfl_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const uint32_t *a = LANES_OF(uint32_t, w, in->warp.value), *by = LANES_OF(uint32_t, w, in->warp.lane);
  const uint32_t *c = LANES_OF(uint32_t, w, in->warp.clamp);
  uint32_t r[LANES], valid = 0;
  FOR_LANES(i, m) {
    bool ok;
    uint32_t j = shuffle_source(in->warp.mode, i, by[i], c[i], &ok);
    if (!(m >> j & 1)) {
      char t[48];
      return sim_fault(b, w, in, (int)i, SIM_E_TRAP, 0,
                          "shfl.sync in thread %s reads lane %u, which does not take part (lanes 0x%08x do)",
                          sim_thread_text(b, w->index * LANES + i, t, sizeof t), j, m);
    }
    r[i] = a[j];
    valid |= (uint32_t)ok << i;
  }
  set_words(w, in->warp.d, m, r);
  if (in->warp.pred)
    set_pred(w, in->warp.pred, m, valid);
  return 0;
}

int
vote_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t p = PRED_OF(w, in->warp.value) & m, r[LANES];
  if (in->warp.mode == 3) {
    for (int i = 0; i < LANES; i++)
      r[i] = p;
    set_words(w, in->warp.d, m, r);
    return 0;
  }
  bool yes = in->warp.mode == 0 ? p == m : in->warp.mode == 1 ? p != 0 : p == m || p == 0;
  set_pred(w, in->warp.d, m, yes ? FULL : 0);
  return 0;
}

static uint64_t
match_value(const Warp *w, const Insn *in, uint32_t lane)
{
  uint64_t v = 0;
  memcpy(&v, w->regs + in->warp.value + lane * in->warp.size, in->warp.size);
  return v;
}

int
match_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t r[LANES] = {0}, all = FULL;
  FOR_LANES(i, m) {
    FOR_LANES(j, m) r[i] |= (uint32_t)(match_value(w, in, i) == match_value(w, in, j)) << j;
    all &= r[i] == m ? FULL : 0;
  }
  if (in->warp.mode) {
    for (int i = 0; i < LANES; i++)
      r[i] = all & m;
    if (in->warp.pred)
      set_pred(w, in->warp.pred, m, all);
  }
  set_words(w, in->warp.d, m, r);
  return 0;
}

static uint32_t
redux_float(const Insn *in, uint32_t x, uint32_t y)
{
  float a = bits_f32(x), b = bits_f32(y);
  if (in->warp.nan && (a != a || b != b))
    return 0x7fffffffu;
  return f32_bits(f32_canon(in->warp.mode == M_MIN ? fminf(a, b) : fmaxf(a, b)));
}

static uint32_t
redux_step(const Insn *in, uint32_t x, uint32_t y)
{
  if (in->type == T_F32)
    return redux_float(in, x, y);
  bool less = in->type == T_S32 ? (int32_t)x < (int32_t)y : x < y;
  switch (in->warp.mode) {
  case M_ADD: return x + y;
  case M_MIN: return less ? x : y;
  case M_MAX: return less ? y : x;
  case M_AND: return x & y;
  case M_OR: return x | y;
  default: return x ^ y;
  }
}

int
redux_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const uint32_t *a = LANES_OF(uint32_t, w, in->warp.value), sign = in->warp.abs ? 0x7fffffffu : FULL;
  uint32_t r[LANES], acc = a[__builtin_ctz(m)] & sign;
  FOR_LANES(i, m & (m - 1)) acc = redux_step(in, acc, a[i] & sign);
  for (int i = 0; i < LANES; i++)
    r[i] = acc;
  set_words(w, in->warp.d, m, r);
  return 0;
}

int
elect_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t r[LANES], leader = (uint32_t)__builtin_ctz(m);
  for (int i = 0; i < LANES; i++)
    r[i] = leader;
  set_words(w, in->warp.d, m, r);
  set_pred(w, in->warp.pred, m, 1u << leader);
  return 0;
}

int
warpsync_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  return 0;
}

/* What the text says of an index; decode_note.c. */
int
index_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t width = in->index.width, shift = 64 - 8 * width;
  FOR_LANES(i, m) {
    uint64_t v = 0;
    memcpy(&v, w->regs + in->index.index + i * width, width);
    if (v >= in->index.extent)
      return fault_index(b, w, in, i, (int64_t)(v << shift) >> shift);
  }
  return 0;
}

int
activemask_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t r[LANES];
  for (int i = 0; i < LANES; i++)
    r[i] = m;
  set_words(w, in->warp.d, m, r);
  return 0;
}

/* The clock counts this block's warp instructions; the timer is the host's. */
int
clock_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t v = b->executed;
  if (in->clock.id == S_TIMER) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    v = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
  }
  FOR_LANES(i, m) memcpy(w->regs + in->clock.d + i * in->clock.width, &v, in->clock.width);
  return 0;
}
