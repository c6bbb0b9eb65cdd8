/* buffer.c - registers of a layout against a buffer in shared memory.
 *
 * Addresses are linear: an element's offset is the thread's part, computed once in the prologue, exclusive-or a constant
 * per access. Constants that share no bit with what threads can change become immediates; the others cost one
 * exclusive-or each, and equal ones are merged by LLVM. Where the buffer starts is added last: buffers start at multiples of
 * 128 bytes, and a start that changes from iteration to iteration costs one addition per distinct thread part. Padding
 * is linear only over addition: sums without carries are as good as exclusive-or, so here too only constants that share a
 * bit with what threads can change cost anything.
 *
 * A cut buffer has no memory behind its last element (passes/cut_buffers.c). What an access can reach in all threads is a coset, so whether
 * that is within the memory, outside of it, or either depends on the thread, is known when compiling. What is outside is padding: it is not
 * stored and not copied, and a load takes 0 for it. Where it depends, stores and copies are predicated, and a load takes the first elements
 * of its view instead. Memory ends with whole 16 bytes, so an access that starts within it ends there.
 */
#include "gen.h"

#define B g->b

/* ---- views ---- */

/* The views between slices move nothing. */
u32
buffer_part_offset(const Value *v)
{
  u32 off = 0;
  for (const Op *op = v->def; op->code != OP_SHARED_ALLOC; op = op_operand(op, 0)->def) {
    const Type *t = op_result(op)->type;
    const Attr *a = op_attr(op, AT_OFFSETS);
    u32 coord[MAX_RANK] = {0};
    for (u32 i = 0; a && i < a->ints.n; i++)
      coord[i] = (u32)a->ints.v[i];
    off ^= layout_shared_offset(t->layout, layout_flat(t->layout, coord)) * dtype_bytes(t->dt);
  }
  return off;
}

Buffer
buffer_of(Gen *g, const Value *v)
{
  const Type *t = v->type;
  Buffer b = {.smem = t->layout, .d = t->dt, .bytes = dtype_bytes(t->dt), .base = gen_regs(g, v)[0],
    .off = buffer_part_offset(v) / dtype_bytes(t->dt),
              .pad_every = t->pad_every, .pad = t->pad, .cut = t->cut ? type_shared_elements(t) : 0};
  b.remote = func_cluster(g->func) > 1 && buffer_remote(v);
  if (LLVMIsAConstantInt(b.base)) {
    b.at = LLVMConstIntGetZExtValue(b.base);
    b.base = NULL;
  }
  return b;
}

Dist *
buffer_dist(Gen *g, const Type *tile, const Buffer *b)
{
  return dist_get(g, layout_widen(g->c, tile->layout, b->smem));
}

/* ---- addresses ---- */

/* One side: registers of h against the buffer. */
typedef struct Side {
  const Buffer *buf;
  const Dist *h;
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS];   /* to offsets, in elements */
  u32 thread[LAYOUT_MAX_BITS], mask;     /* thread columns and their bits, in bytes */
  Val mine;                              /* thread's part, in bytes, without padding */
  Val start;                             /* with it */
} Side;

static u32
padded_const(const Buffer *b, u32 off)
{
  return b->pad_every ? off + off / (b->pad_every * b->bytes) * (b->pad * b->bytes) : off;
}

static Val
padded(Gen *g, LLVMBuilderRef at, const Buffer *b, Val off)
{
  if (!b->pad_every)
    return off;
  Val steps = LLVMBuildLShr(at, off, gen_u32(g, log2_u32(b->pad_every * b->bytes)), "");
  return LLVMBuildAdd(at, off, LLVMBuildMul(at, steps, gen_u32(g, b->pad * b->bytes), ""), "");
}

static void
side_addresses(Gen *g, Side *s, const u32 *lane, const u32 *warp)
{
  s->mask = 0;
  for (u32 i = 0; i < s->h->thread_bits; i++) {
    s->thread[i] = (i < LANE_BITS ? lane[i] : warp[i - LANE_BITS]) * s->buf->bytes;
    s->mask |= s->thread[i];
  }
  s->mine = team_linear(g, s->thread, s->h->thread_bits);
  s->start = padded(g, g->team->pro, s->buf, s->mine);
}

static Side
side_new(Gen *g, const Buffer *buf, const Dist *h)
{
  Side s = {.buf = buf, .h = h};
  if (!layout_to_offset(g->c, h->l, buf->smem, s.cols))
    ctx_panic(g->c, "the shared layout does not hold the tile");
  side_addresses(g, &s, s.cols[IN_LANE], s.cols[IN_WARP]);
  return s;
}

/* The start of the buffer and a byte offset into it. */
static Val
started(Gen *g, const Buffer *buf, Val off, u64 more)
{
  Val start = buf->base ? LLVMBuildAdd(B, buf->base, off, "") : off;
  Val p = addr_shared(g, start, more + buf->at);
  return buf->remote ? addr_cluster(g, p) : p;
}

/* The byte in the buffer of the element that lies a constant of `elems` from the thread's part: a value and a constant. */
static Addr
side_offset(Gen *g, const Side *s, u32 elems)
{
  u32 bytes = (elems ^ s->buf->off) * s->buf->bytes, crossing = bytes & s->mask;
  Val off = crossing ? padded(g, B, s->buf, LLVMBuildXor(B, s->mine, gen_u32(g, crossing), "")) : s->start;
  return (Addr){off, padded_const(s->buf, bytes & ~s->mask)};
}

/* Address of that element. */
static Val
side_address(Gen *g, const Side *s, u32 elems)
{
  Addr a = side_offset(g, s, elems);
  return started(g, s->buf, a.base, a.off);
}

/* ---- the end of a cut buffer ---- */

typedef enum Within { INSIDE, PARTLY, OUTSIDE } Within;

/* Where that element lies in the threads. */
static Within
side_within(const Side *s, u32 elems)
{
  u32 bytes = (elems ^ s->buf->off) * s->buf->bytes, end = s->buf->cut * s->buf->bytes;
  if (!end || layout_highest(bytes, s->thread, s->h->thread_bits) < end)
    return INSIDE;
  u32 least = ~layout_highest(~bytes, s->thread, s->h->thread_bits);
  return least >= end ? OUTSIDE : PARTLY;
}

static Val
side_sum(Gen *g, const Side *s, u32 elems)
{
  Addr a = side_offset(g, s, elems);
  return LLVMBuildAdd(B, a.base, gen_u32(g, (u32)a.off), "");
}

static Val
before_end(Gen *g, const Buffer *buf, Val off)
{
  return LLVMBuildICmp(B, LLVMIntULT, off, gen_u32(g, padded_const(buf, buf->cut * buf->bytes)), "");
}

/* Is the element that is PARTLY inside so? */
static Val
side_inside(Gen *g, const Side *s, u32 elems)
{
  return before_end(g, s->buf, side_sum(g, s, elems));
}

/* Where to load that element from; NULL: it is padding in all threads. */
static Val
side_source(Gen *g, const Side *s, u32 elems)
{
  Within w = side_within(s, elems);
  if (w != PARTLY)
    return w == INSIDE ? side_address(g, s, elems) : NULL;
  Val off = side_sum(g, s, elems), first = gen_u32(g, padded_const(s->buf, s->buf->off * s->buf->bytes));
  return started(g, s->buf, LLVMBuildSelect(B, before_end(g, s->buf, off), off, first, ""), 0);
}

static u32
register_offset(const Side *s, u32 reg)
{
  u32 off = 0;
  for (u32 i = 0; i < s->h->reg_bits; i++)
    if (reg >> i & 1)
      off ^= s->cols[IN_REG][i];
  return off;
}

/* Padding keeps vectors of at most its own alignment whole. */
static u32
padded_vec(const Buffer *b, u32 vec)
{
  while (b->pad_every && vec > 1 && (b->pad % vec || b->pad_every % vec))
    vec /= 2;
  return vec;
}

static void
vector_store(Gen *g, const Side *s, const Words *w, u32 at, u32 vec, const Val *elems)
{
  Val words[16];
  Within in = side_within(s, at);
  if (in == OUTSIDE)
    return;
  Val p = side_address(g, s, at);
  words_pack(g, w, elems, words);
  LLVMBasicBlockRef after = gen_if(g, in == PARTLY ? side_inside(g, s, at) : NULL);
  words_store(g, w, p, vec * s->buf->bytes, words);
  gen_end_if(g, after);
}

static void
vector_load(Gen *g, const Side *s, const Words *w, u32 at, u32 vec, Val *words)
{
  Val p = side_source(g, s, at);
  if (p)
    words_load(g, w, p, vec * s->buf->bytes, words);
  if (p && s->buf->moves)
    order_lets_move(g, w->n > 1 ? LLVMGetOperand(words[0], 0) : words[0]);
  for (u32 i = 0; !p && i < w->n; i++)
    words[i] = LLVMConstNull(w->type);
}

enum { WINDOW = 32 };      /* registers that are loaded ahead of those that are stored */

/* Group i of n registers from `regs` on is stored next: those that are loaded on the way are asked for. */
static void
fetch_ahead(Gen *g, const Buffer *buf, const u32 *regs, u32 vec, u32 i, u32 n, Val *values)
{
  u32 ahead = WINDOW / vec ? WINDOW / vec : 1, last = min_u32(n, i + ahead);
  for (u32 k = i ? last - 1 : 0; buf->late && k < last; k++)
    for (u32 e = 0; e < vec; e++)
      late_fetch(g, buf->late, regs[k * vec + e], values);
}

void
buffer_vectors(Gen *g, const Buffer *buf, const Dist *h, u32 vec, bool store, Val *values)
{
  Side s = side_new(g, buf, h);
  vec = padded_vec(buf, vec);
  u32 *regs = NEW_ARRAY(g->arena, u32, h->regs), n = layout_access_groups(h->l, buf->smem, vec, regs);
  const u32 *all = regs;
  Words w = words_for(g, buf->d, buf->ptr, vec);
  for (u32 i = 0; i < n; i++, regs += vec) {
    Val elems[16], words[16];
    u32 at = register_offset(&s, regs[0]);
    if (store)
      fetch_ahead(g, buf, all, vec, i, n, values);
    for (u32 e = 0; store && e < vec; e++)
      elems[e] = values[regs[e]];
    if (store) {
      vector_store(g, &s, &w, at, vec, elems);
      continue;
    }
    vector_load(g, &s, &w, at, vec, words);
    words_unpack(g, &w, words, elems);
    for (u32 e = 0; e < vec; e++)
      values[h->rep[regs[e]]] = elems[e];
  }
}

/* ---- ldmatrix and stmatrix ---- */
static void
matrix_call(Gen *g, const MatrixAccess *m, bool store, Val p, Val *words)
{
  for (u32 i = 0; !p && i < m->count; i++)
    words[i] = gen_u32(g, 0);
  if (!p)
    return;
  const char *name = arena_printf(g->arena, "llvm.nvvm.%s.sync.aligned.m8n8.x%u%s.b16", store ? "stmatrix" : "ldmatrix",
                                  m->count, m->trans ? ".trans" : "");
  Ty over = LLVMPointerTypeInContext(g->lc, AS_SHARED);
  Val args[5] = {p};
  for (u32 i = 0; store && i < m->count; i++)
    args[1 + i] = words[i];
  Val got = gen_call_convergent(g, name, 1, &over, store ? 1 + m->count : 1, args);
  for (u32 i = 0; !store && i < m->count; i++)
    words[i] = m->count == 1 ? got : LLVMBuildExtractValue(B, got, i, "");
}

struct Fragments {
  Buffer buf;
  MatrixAccess m;
  Side s;
};

Fragments *
buffer_fragments(Gen *g, const Buffer *buf, const Dist *h, bool trans)
{
  Fragments *f = NEW(g->arena, Fragments);
  f->buf = *buf;
  f->s = (Side){.buf = &f->buf, .h = h};
  if (!layout_matrix_access(h->l, buf->smem, buf->bytes * 8, trans, &f->m))
    ctx_panic(g->c, "fragments: the layouts do not fit ldmatrix");
  side_addresses(g, &f->s, f->m.addr_lane, f->m.addr_warp);
  return f;
}

u32
buffer_fragments_count(const Fragments *f)
{
  return f->m.groups;
}

u32
buffer_fragments_words(const Fragments *f, u32 group, u32 words[4])
{
  u32 regs[16];
  layout_matrix_group(&f->m, group, regs);
  for (u32 q = 0; q < f->m.count; q++)
    words[q] = regs[q * f->m.elems] / f->m.elems;
  return f->m.count;
}

void
buffer_fragments_load(Gen *g, const Fragments *f, u32 group, Val *words)
{
  u32 regs[16];
  Val got[4];
  matrix_call(g, &f->m, false, side_source(g, &f->s, layout_matrix_group(&f->m, group, regs)), got);
  for (u32 q = 0; q < f->m.count; q++)
    words[regs[q * f->m.elems] / f->m.elems] = got[q];
}

void
buffer_matrices(Gen *g, const Buffer *buf, const Dist *h, bool trans, bool store, Val *values)
{
  MatrixAccess m;
  Side s = {.buf = buf, .h = h};
  if (!layout_matrix_access(h->l, buf->smem, buf->bytes * 8, trans, &m))
    ctx_panic(g->c, "the plan says ldmatrix, the layouts do not");
  side_addresses(g, &s, m.addr_lane, m.addr_warp);
  Words w = words_for(g, buf->d, buf->ptr, m.elems);
  for (u32 i = 0; i < m.groups; i++) {
    u32 regs[16];
    Val words[4], elems[4];
    u32 at = layout_matrix_group(&m, i, regs);
    if (store)
      fetch_ahead(g, buf, regs, m.count * m.elems, 0, 1, values);
    Val p = store ? side_address(g, &s, at) : side_source(g, &s, at);
    for (u32 q = 0; store && q < m.count; q++) {
      for (u32 e = 0; e < m.elems; e++)
        elems[e] = values[regs[q * m.elems + e]];
      words_pack(g, &w, elems, &words[q]);
      words[q] = gen_bitcast(g, words[q], g->i32);
    }
    matrix_call(g, &m, store, p, words);
    for (u32 q = 0; !store && q < m.count; q++) {
      words[q] = gen_bitcast(g, words[q], w.type);
      words_unpack(g, &w, &words[q], elems);
      for (u32 e = 0; e < m.elems; e++)
        values[h->rep[regs[q * m.elems + e]]] = elems[e];
    }
  }
}

/* ---- single addresses, for asynchronous copies ---- */
u32
buffer_copy_vec(Gen *g, const Buffer *buf, const Dist *h, u32 vec)
{
  Side s = side_new(g, buf, h);
  u32 n = 0, others = 0;
  while (1u << n < vec && n < h->reg_bits && s.cols[IN_REG][n] == 1u << n)
    n++;
  for (u32 i = n; i < h->reg_bits; i++)
    others |= s.cols[IN_REG][i];
  others |= s.mask / buf->bytes | buf->off;
  while (n && others & ((1u << n) - 1))
    n--;
  return padded_vec(buf, 1u << n);
}

Val
buffer_address(Gen *g, const Buffer *buf, const Dist *h, u32 reg, Val *inside)
{
  Side s = side_new(g, buf, h);
  u32 at = register_offset(&s, reg);
  Within in = side_within(&s, at);
  *inside = in == PARTLY ? side_inside(g, &s, at) : NULL;
  return in == OUTSIDE ? NULL : side_address(g, &s, at);
}
