/* lower_scan.c - scans along an axis: what each element folds to together with all before it.
 *
 * The axis is taken bit by bit, lowest first. When bits below k are done, the elements form aligned runs of 2^k; of each a
 * thread knows the fold `total` of the whole run, and of each of its chunks what comes before it in its run, `before`.
 * Bit k joins runs in pairs: the upper one's `before` gets the lower one's total in front, and the totals are folded.
 * The lower one's total is in another register, in another lane (a shuffle) or in other warps (scratch memory; bits of
 * warps that follow each other take one round). An operation whose neutral value is not known would pay for every
 * exchange with selections; where lanes lie in the order of the axis, each takes the totals of those 1, 2, 4, ...
 * before it instead. The first bits, as far as they are registers, are done in the thread one element after the other;
 * what they span is a chunk, and `before` meets its elements only at the end.
 *
 * A reverse scan is the same with every bit of the axis complemented. Padding then comes first, and takes no part: where
 * the operation has a neutral value it becomes that, otherwise partials say whether they hold anything.
 *
 * An exclusive scan differs in the chunks alone: the part of an element is the fold of those before it, the first has none.
 */
#include "fold.h"

#define B g->b

typedef struct Scan {
  Fold f;
  ScanPlan plan;
  bool reverse, exclusive;
  u32 chunk;                  /* register bits inside a chunk */
  u32 done;                   /* register bits above it that are done */
  Part *parts;                /* by register: fold of its chunk up to it */
  Part *total, *before;       /* by chunk: its lowest register; total is kept at that of the run */
  bool *any;                  /* before holds something */
  bool *none;                 /* by register: no part, the first of its chunk of an exclusive scan */
} Scan;

static bool
is_real(const Scan *s, u32 r)
{
  return s->f.h->rep[r] == r;
}

static bool
is_chunk(const Scan *s, u32 r)
{
  return is_real(s, r) && !(r & s->chunk);
}

/* The chunk that keeps the total of c's run. */
static u32
head(const Scan *s, u32 c)
{
  return c & ~s->done;
}

static Part
leaf(Gen *g, const Scan *s, u32 r)
{
  const Fold *f = &s->f;
  const Type *t = op_operand(f->op, 0)->type;
  Val in = s->reverse && f->padded ? dist_inside_dim(g, f->h, t, r, (int)f->axis) : NULL;
  Part p = {.valid = f->known ? NULL : in};
  for (u32 k = 0; k < f->n; k++)
    p.v[k] = gen_regs(g, op_operand(f->op, k))[r];
  if (in && f->known)
    p.v[0] = LLVMBuildSelect(B, in, p.v[0], fold_identity(g, f, t->dt), "");
  return p;
}

/* p where cond holds, else nothing. */
static Part
only_if(Gen *g, const Scan *s, Part p, Val cond)
{
  if (s->f.known)
    p.v[0] = LLVMBuildSelect(B, cond, p.v[0], fold_identity(g, &s->f, op_operand(s->f.op, 0)->type->dt), "");
  else
    p.valid = gen_and(g, cond, p.valid);
  return p;
}

static Part
choose(Gen *g, const Scan *s, Val cond, const Part *a, const Part *b)
{
  Part p = {.valid = NULL};
  for (u32 k = 0; k < s->f.n; k++)
    p.v[k] = LLVMBuildSelect(B, cond, a->v[k], b->v[k], "");
  if (a->valid)
    p.valid = LLVMBuildSelect(B, cond, a->valid, b->valid, "");
  return p;
}

static void
put_before(Gen *g, Scan *s, u32 c, Part p)
{
  if (s->any[c])
    fold_combine(g, &s->f, &p, &s->before[c]);
  s->before[c] = p;
  s->any[c] = true;
}

/* ---- in the thread ---- */

/* The register bits of a position inside a chunk, counted in the order of the scan. */
static u32
chunk_reg(const Scan *s, u32 bits, u32 position)
{
  u32 r = 0;
  for (u32 k = 0; k < bits; k++)
    if ((position >> k & 1) != s->reverse)
      r |= 1u << s->plan.index[k];
  return r;
}

/* All chunks, one element after the other; gives how many bits of the axis that did. */
static u32
scan_chunks(Gen *g, Scan *s)
{
  u32 bits = 0;
  for (; bits < s->plan.bits && s->plan.owner[bits] == IN_REG; bits++)
    s->chunk |= 1u << s->plan.index[bits];
  for (u32 c = 0; c < s->f.h->regs; c++) {
    if (!is_chunk(s, c))
      continue;
    u32 first = c | chunk_reg(s, bits, 0);
    Part sum = leaf(g, s, first);
    s->parts[first] = sum;
    s->none[first] = s->exclusive;
    for (u32 i = 1; i < 1u << bits; i++) {
      u32 r = c | chunk_reg(s, bits, i);
      Part next = leaf(g, s, r);
      if (s->exclusive)
        s->parts[r] = sum;
      fold_combine(g, &s->f, &sum, &next);
      if (!s->exclusive)
        s->parts[r] = sum;
    }
    s->total[c] = sum;
  }
  return bits;
}

/* ---- one bit more ---- */

static void
join_registers(Gen *g, Scan *s, u32 bit)
{
  for (u32 c = 0; c < s->f.h->regs; c++)
    if (is_chunk(s, c) && (c >> bit & 1) != s->reverse)
      put_before(g, s, c, s->total[head(s, c) ^ 1u << bit]);
  for (u32 c = 0; c < s->f.h->regs; c++)
    if (is_chunk(s, c) && head(s, c) == c && !(c >> bit & 1)) {
      u32 low = s->reverse ? c | 1u << bit : c;
      Part sum = s->total[low];
      fold_combine(g, &s->f, &sum, &s->total[low ^ 1u << bit]);
      s->total[c] = sum;
    }
  s->done |= 1u << bit;
}

static Part
shuffled(Gen *g, const Scan *s, const Part *p, u32 lanes)
{
  Part other = {.valid = NULL};
  for (u32 k = 0; k < s->f.n; k++)
    other.v[k] = shuffle_xor(g, p->v[k], lanes);
  if (p->valid)
    other.valid = shuffle_xor(g, p->valid, lanes);
  return other;
}

static void
join_lanes(Gen *g, Scan *s, u32 bit, bool last)
{
  Val first = team_bits_zero(g, 1u << bit), upper = s->reverse ? first : LLVMBuildNot(B, first, "");
  for (u32 l = 0; l < s->f.h->regs; l++) {
    if (!is_chunk(s, l) || head(s, l) != l)
      continue;
    Part mine = s->total[l], other = shuffled(g, s, &mine, 1u << bit), lower = only_if(g, s, other, upper);
    for (u32 c = l; c < s->f.h->regs; c++)
      if (is_chunk(s, c) && head(s, c) == l)
        put_before(g, s, c, lower);
    if (last)
      continue;
    Part a = s->f.known ? mine : choose(g, s, upper, &other, &mine), b = s->f.known ? other : choose(g, s, upper, &mine, &other);
    fold_combine(g, &s->f, &a, &b);
    s->total[l] = a;
  }
}

/* How many bits from k on are lanes that follow each other. */
static u32
lanes_in_order(const Scan *s, u32 k)
{
  u32 n = 0;
  while (k + n < s->plan.bits && s->plan.owner[k + n] == IN_LANE && s->plan.index[k + n] == s->plan.index[k] + n)
    n++;
  return n;
}

/* What another lane has. */
static Part
from_lane(Gen *g, const Scan *s, const Part *p, Val lane)
{
  Part other = {.valid = p->valid ? shuffle_from(g, p->valid, lane) : NULL};
  for (u32 k = 0; k < s->f.n; k++)
    other.v[k] = shuffle_from(g, p->v[k], lane);
  return other;
}

/* What the lane `steps` places before has. */
static Part
lane_before(Gen *g, const Scan *s, const Part *p, u32 steps)
{
  Val step = gen_u32(g, steps), lane = s->reverse ? LLVMBuildAdd(B, g->team->tid, step, "") : LLVMBuildSub(B, g->team->tid, step, "");
  return from_lane(g, s, p, LLVMBuildAnd(B, lane, gen_u32(g, LANES - 1), ""));
}

/* Whether this thread's place along the axis, of `bits` lanes from `lane` on, is 2^j or more. */
static Val
place_reaches(Gen *g, const Scan *s, u32 lane, u32 bits, u32 j)
{
  u32 high = ((1u << bits) - (1u << j)) << lane;
  Val some = LLVMBuildAnd(B, g->team->tid, gen_u32(g, high), "");
  return LLVMBuildICmp(B, LLVMIntNE, some, gen_u32(g, s->reverse ? high : 0), "");
}

/* What each of 2^bits lanes, from bit `lane` on, folds to together with those before it. */
static Part
fold_lanes(Gen *g, const Scan *s, Part sum, u32 lane, u32 bits)
{
  for (u32 j = 0; j < bits; j++) {
    Part more = lane_before(g, s, &sum, 1u << (lane + j));
    fold_combine(g, &s->f, &more, &sum);
    sum = choose(g, s, place_reaches(g, s, lane, bits, j), &more, &sum);
  }
  return sum;
}

static void
join_lane_run(Gen *g, Scan *s, u32 lane, u32 bits, bool last)
{
  Val end = gen_u32(g, ((1u << bits) - 1) << lane), not_first = place_reaches(g, s, lane, bits, 0);
  Val end_lane = s->reverse ? LLVMBuildAnd(B, g->team->tid, LLVMBuildNot(B, end, ""), "") : LLVMBuildOr(B, g->team->tid, end, "");
  end_lane = LLVMBuildAnd(B, end_lane, gen_u32(g, LANES - 1), "");
  for (u32 l = 0; l < s->f.h->regs; l++) {
    if (!is_chunk(s, l) || head(s, l) != l)
      continue;
    Part sum = fold_lanes(g, s, s->total[l], lane, bits);
    Part lower = only_if(g, s, lane_before(g, s, &sum, 1u << lane), not_first);
    for (u32 c = l; c < s->f.h->regs; c++)
      if (is_chunk(s, c) && head(s, c) == l)
        put_before(g, s, c, lower);
    s->total[l] = last ? sum : from_lane(g, s, &sum, end_lane);
  }
}

/* ---- across warps ---- */

typedef struct Round { ScanRound plan; u32 at, piece; } Round;

/* The element of the round's end, or its place in its piece, times the round's warps: see ScanPlan. */
static u32
element_of(const Scan *s, const Round *r, u32 flat)
{
  u32 element = scratch_scan_element(s->f.op, &r->plan, flat);
  return (r->plan.pieces ? layout_piece_place(&r->plan.map, element) : element) << r->plan.warps;
}

/* Is l a chunk that keeps its run's total, in this piece? */
static bool
in_round(const Scan *s, const Round *r, u32 l)
{
  if (!is_chunk(s, l) || head(s, l) != l)
    return false;
  return !r->plan.pieces || layout_piece_number(&r->plan.map, scratch_scan_element(s->f.op, &r->plan, s->f.h->flat[l])) == r->piece;
}

static Val
total_offset(Gen *g, const Scan *s, const Round *r, u32 chunk, u32 bytes, bool write)
{
  u32 cols[LAYOUT_MAX_BITS], mask = 0, shift = s->f.h->shift[s->f.axis];
  for (u32 i = 0; i < s->f.h->thread_bits; i++) {
    u32 flat = s->f.h->thread[i], position = flat >> (shift + r->plan.k) & ((1u << r->plan.warps) - 1);
    bool along = flat & s->f.axis_mask;
    cols[i] = (element_of(s, r, flat) | (write && along ? position : 0)) * bytes;
    mask |= cols[i];
  }
  return gen_xor_const(g, team_linear(g, cols, s->f.h->thread_bits), mask, element_of(s, r, s->f.h->flat[chunk]) * bytes);
}

static DType
plane_dtype(const Scan *s, u32 k)
{
  return k < s->f.n ? op_operand(s->f.op, k)->type->dt : DT_I1;
}

static void
write_totals(Gen *g, const Scan *s, const Round *r)
{
  u32 silent = s->f.h->free_threads;
  for (u32 k = 0; k < r->plan.k; k++)
    if (s->plan.owner[k] != IN_REG)
      silent |= 1u << (s->plan.index[k] + (s->plan.owner[k] == IN_WARP ? LANE_BITS : 0));
  LLVMBasicBlockRef after = gen_if(g, team_bits_zero(g, silent));
  for (u32 l = 0; l < s->f.h->regs; l++) {
    if (!in_round(s, r, l))
      continue;
    for (u32 k = 0; k < s->f.n + (s->total[l].valid != NULL); k++) {
      Words w = words_for(g, plane_dtype(s, k), false, 1);
      u32 bytes = dtype_bytes(plane_dtype(s, k));
      Val word;
      words_pack(g, &w, k < s->f.n ? &s->total[l].v[k] : &s->total[l].valid, &word);
      words_store(g, &w, addr_shared(g, total_offset(g, s, r, l, bytes, true), r->at + r->plan.base[k]), bytes, &word);
    }
  }
  gen_end_if(g, after);
}

/* Of the warps at place `position + at`; `at` may be NULL. */
static Part
read_total(Gen *g, const Scan *s, const Round *r, u32 l, u32 position, Val at)
{
  Part p = {.valid = NULL};
  for (u32 k = 0; k < s->f.n + (s->total[l].valid != NULL); k++) {
    Words w = words_for(g, plane_dtype(s, k), false, 1);
    u32 bytes = dtype_bytes(plane_dtype(s, k));
    Val word, offset = total_offset(g, s, r, l, bytes, false);
    if (at)
      offset = LLVMBuildAdd(B, offset, LLVMBuildMul(B, at, gen_u32(g, bytes), ""), "");
    words_load(g, &w, addr_shared(g, offset, r->at + r->plan.base[k] + position * bytes), bytes, &word);
    words_unpack(g, &w, &word, k < s->f.n ? &p.v[k] : &p.valid);
  }
  return p;
}

/* This thread's warps' position in the round, in the order of the scan. */
static Val
my_position(Gen *g, const Scan *s, const Round *r)
{
  u32 cols[LAYOUT_MAX_BITS] = {0}, all = (1u << r->plan.warps) - 1;
  for (u32 i = 0; i < r->plan.warps; i++)
    cols[s->plan.index[r->plan.k + i] + LANE_BITS] = 1u << i;
  return gen_xor_const(g, team_linear(g, cols, s->f.h->thread_bits), all, s->reverse ? all : 0);
}

/* Every thread reads the totals of all warps, one after the other. */
static Part
fold_warps(Gen *g, const Scan *s, const Round *r, u32 l, Val mine, bool last, Part *lower)
{
  u32 n = 1u << r->plan.warps;
  Part sum = read_total(g, s, r, l, s->reverse ? n - 1 : 0, NULL);
  *lower = sum;
  for (u32 i = 1; i + last < n; i++) {
    Part next = read_total(g, s, r, l, s->reverse ? n - 1 - i : i, NULL);
    fold_combine(g, &s->f, &sum, &next);
    *lower = choose(g, s, LLVMBuildICmp(B, LLVMIntUGT, mine, gen_u32(g, i), ""), &sum, lower);
  }
  return sum;
}

/* Where all lanes of a warp want the same totals, each lane reads one and the warp scans them. */
static Part
fold_warps_by_lanes(Gen *g, const Scan *s, const Round *r, u32 l, Val mine, bool last, Part *lower)
{
  u32 n = 1u << r->plan.warps;
  Val first = gen_u32(g, s->reverse ? n - 1 : 0), one = gen_u32(g, 1), here = LLVMBuildXor(B, mine, first, "");
  Part total = read_total(g, s, r, l, 0, LLVMBuildAnd(B, g->team->tid, gen_u32(g, n - 1), ""));
  Part sum = fold_lanes(g, s, total, 0, r->plan.warps);
  *lower = from_lane(g, s, &sum, s->reverse ? LLVMBuildAdd(B, here, one, "") : LLVMBuildSub(B, here, one, ""));
  return last ? sum : from_lane(g, s, &sum, gen_u32(g, s->reverse ? 0 : n - 1));
}

/* From 8 warps on that is less work than reading all. */
static bool
lanes_fold(const Scan *s, const Round *r)
{
  u32 differ = 0;
  for (u32 i = 0; i < LANE_BITS; i++)
    differ |= element_of(s, r, s->f.h->thread[i]);
  return r->plan.warps >= 3 && !differ;
}

static void
join_warps(Gen *g, Scan *s, const Round *r, bool last)
{
  bool by_lanes = lanes_fold(s, r);
  write_totals(g, s, r);
  team_barrier(g);
  Val mine = my_position(g, s, r);
  for (u32 l = 0; l < s->f.h->regs; l++) {
    if (!in_round(s, r, l))
      continue;
    Part lower, sum = (by_lanes ? fold_warps_by_lanes : fold_warps)(g, s, r, l, mine, last, &lower);
    lower = only_if(g, s, lower, LLVMBuildICmp(B, LLVMIntNE, mine, gen_u32(g, 0), ""));
    for (u32 c = l; c < s->f.h->regs; c++)
      if (is_chunk(s, c) && head(s, c) == l)
        put_before(g, s, c, lower);
    s->total[l] = sum;
  }
}

/* ---- the op ---- */

static Scan
scan_new(Gen *g, const Op *op)
{
  const Type *t = op_operand(op, 0)->type;
  Scan s = {.f = {.op = op, .n = op->noperands, .axis = (u32)op_int(op, AT_AXIS, 0)},
            .reverse = op_int(op, AT_REVERSE, 0) != 0, .exclusive = op_int(op, AT_EXCLUSIVE, 0) != 0};
  Fold *f = &s.f;
  f->h = dist_get(g, t->layout);
  f->axis_mask = ((1u << t->layout->out_bits[f->axis]) - 1) << f->h->shift[f->axis];
  f->padded = !is_pow2(t->shape[f->axis]);
  fold_find_operation(f);
  s.parts = NEW_ARRAY(g->arena, Part, f->h->regs);
  s.total = NEW_ARRAY(g->arena, Part, f->h->regs);
  s.before = NEW_ARRAY(g->arena, Part, f->h->regs);
  s.any = NEW_ARRAY(g->arena, bool, f->h->regs);
  s.none = NEW_ARRAY(g->arena, bool, f->h->regs);
  return s;
}

/* The bits of the axis from k on, those together that one round joins. */
static void
join_all(Gen *g, Scan *s, u32 k)
{
  bool written = false;
  for (u32 bits; k < s->plan.bits; k += bits) {
    u32 owner = s->plan.owner[k], at = s->plan.index[k];
    bits = owner == IN_LANE && !s->f.known ? lanes_in_order(s, k) : 1;
    if (owner == IN_REG) {
      join_registers(g, s, at);
    } else if (owner == IN_LANE && bits > 1) {
      join_lane_run(g, s, at, bits, k + bits == s->plan.bits);
    } else if (owner == IN_LANE) {
      join_lanes(g, s, at, k + 1 == s->plan.bits);
    } else {
      Round r = {.plan = scratch_scan_round(s->f.op, &s->plan, k), .at = (u32)op_int(s->f.op, AT_SCRATCH, 0)};
      bits = r.plan.warps;
      for (; r.piece < 1u << r.plan.pieces; r.piece++) {
        if (written)
          team_barrier(g);
        join_warps(g, s, &r, k + bits == s->plan.bits);
        written = true;
      }
    }
  }
}

/* Whether register r's element is the axis's first in the order of the scan. */
static Val
is_first(Gen *g, const Scan *s, u32 r)
{
  const Fold *f = &s->f;
  u32 cols[LAYOUT_MAX_BITS], mask = 0, shift = f->h->shift[f->axis];
  u32 first = s->reverse ? op_operand(f->op, 0)->type->shape[f->axis] - 1 : 0;
  for (u32 i = 0; i < f->h->thread_bits; i++) {
    cols[i] = (f->h->thread[i] & f->axis_mask) >> shift;
    mask |= cols[i];
  }
  Val at = gen_xor_const(g, team_linear(g, cols, f->h->thread_bits), mask, (f->h->flat[r] & f->axis_mask) >> shift);
  return LLVMBuildICmp(B, LLVMIntEQ, at, gen_u32(g, first), "");
}

/* What register r's element becomes. */
static Part
scanned(Gen *g, const Scan *s, u32 r)
{
  u32 c = r & ~s->chunk;
  Part p = s->parts[r];
  if (s->any[c]) {
    p = s->before[c];
    if (!s->none[r])
      fold_combine(g, &s->f, &p, &s->parts[r]);
  }
  if (s->exclusive) {
    Val first = is_first(g, s, r);
    for (u32 k = 0; k < s->f.n; k++)
      p.v[k] = LLVMBuildSelect(B, first, LLVMConstNull(LLVMTypeOf(p.v[k])), p.v[k], "");
  }
  return p;
}

static void
finish(Gen *g, const Scan *s)
{
  for (u32 r = 0; r < s->f.h->regs; r++)
    if (is_real(s, r))
      s->parts[r] = scanned(g, s, r);
  for (u32 k = 0; k < s->f.n; k++) {
    const Value *v = s->f.op->results[k];
    Val *out = gen_new(g, v);
    for (u32 r = 0; r < s->f.h->regs; r++)
      out[r] = is_real(s, r) ? s->parts[r].v[k] : LLVMGetPoison(gen_type(g, v->type));
    dist_share(g, v);
  }
}

void
lower_SCAN(Gen *g, const Op *op)
{
  Scan s = scan_new(g, op);
  bool simple = scratch_scan(op, &s.plan);
  if (s.f.n > FOLD_OPERANDS || !simple) {
    gen_unsupported(g, op, s.f.n > FOLD_OPERANDS ? "a scan of more than 16 tiles at once" :
                    "a scan over a layout that mixes the axis with another dimension or with itself");
  } else if (!s.plan.bytes || addr_scratch(g, op, s.plan.bytes)) {
    join_all(g, &s, scan_chunks(g, &s));
    finish(g, &s);
    return;
  }
  for (u32 k = 0; k < op->nresults; k++)
    gen_poison(g, op->results[k]);
}
