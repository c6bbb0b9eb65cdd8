/* ring_remark.c - see ring_remark.h. Cycles are those of a part that does nothing else: an iteration takes at least the most of them. */
#include "ring_remark.h"
#include "wgmma.h"

typedef struct Rate { const char *target; u32 mma, wgmma, shared, l2; } Rate;

static const Rate rates[] = {
#define RATE(target, mma, wgmma, shared, l2) {#target, mma, wgmma, shared, l2},
#include "targets.def"
#undef RATE
};

/* What an iteration takes: of tensor cores in products of 16-bit numbers, of shared memory and of the L2 cache in bytes. */
typedef struct Work { u64 products, shared, l2; bool warpgroups, others; } Work;

static u64
tile_bytes(const Type *t)
{
  return (u64)type_numel(t) * type_elem_bits(t) / 8;
}

/* How often warpgroups read a: for each piece of columns. */
static u64
reads_of_a(const Op *dot)
{
  int axis;
  u32 n = wgmma_piece(dot, !dot_meta(dot), &axis);
  return axis && n ? op_result(dot)->type->shape[1] / n : 1;
}

/* How many parts of the program read each of its factors from shared memory: warps, or warpgroups, which read all of b. */
static void
add_dot(Work *w, const Op *dot)
{
  const Type *a = dot_a(dot)->type, *b = dot_b(dot)->type, *sum = op_result(dot)->type;
  const Attr *warps = op_attr(dot, AT_WARPS);
  u32 bits = type_elem_bits(a) > type_elem_bits(b) ? type_elem_bits(a) : type_elem_bits(b), n = warps ? warps->ints.n : 0;
  bool warpgroup = op_int(dot, AT_WARPGROUP, 0);
  u64 rows = sum->shape[sum->rank - 2] / WGMMA_ROWS;
  u64 by_a = n ? (u64)warps->ints.v[n - 1] : 1, by_b = n > 1 ? (u64)warps->ints.v[n - 2] : 1;
  w->warpgroups |= warpgroup;
  w->others |= !warpgroup;
  w->products += (u64)type_numel(sum) * a->shape[a->rank - 1] * bits / 16;
  w->shared += tile_bytes(a) * (warpgroup ? reads_of_a(dot) * by_a : by_a) + tile_bytes(b) * (warpgroup ? rows : by_b);
}

static const Rate *
rate_of(const Ring *r)
{
  for (u32 i = 0; i < COUNT(rates); i++)
    if (!strcmp(rates[i].target, r->c->target->name))
      return &rates[i];
  return NULL;
}

static const char *
bound_of(const Ring *r)
{
  const Rate *rate = rate_of(r);
  Work w = {0};
  for (const Op *op = r->loop->regions[0]->first; op; op = op->next)
    if (op_is_dot(op))
      add_dot(&w, op);
  w.l2 = ring_bytes(r) / r->slots;
  w.shared += w.l2;
  u32 products = !rate || (w.warpgroups && w.others) ? 0 : w.warpgroups ? rate->wgmma : rate->mma;
  if (!w.products || !products)
    return "";
  const struct { const char *what; u64 cycles; } part[] = {
    {"tensor cores", w.products / products}, {"shared memory", w.shared / rate->shared}, {"the L2 cache", w.l2 / rate->l2},
  };
  u32 most = 0;
  for (u32 i = 1; i < COUNT(part); i++)
    most = part[i].cycles > part[most].cycles ? i : most;
  return arena_printf(r->c->scratch, "; an iteration takes %llu cycles of tensor cores, %llu of shared memory, %llu of the L2 cache: "
                      "%s bound%s it", (unsigned long long)part[0].cycles, (unsigned long long)part[1].cycles,
                      (unsigned long long)part[2].cycles, part[most].what, most ? "s" : "");
}

RingNote
ring_note(const Ring *r)
{
  return (RingNote){r->slots, ring_bytes(r), bound_of(r)};
}

/* Who copies, and what registers that leaves. */
static const char *
teams_text(Ctx *c, const Func *f)
{
  const Op *teams = func_teams(f);
  if (!teams)
    return "the warps that read them make them";
  Team reads = block_team(teams->regions[0]), copies = block_team(teams->regions[1]);
  bool turns = block_team(teams->regions[teams->nregions - 1]).warps == reads.warps;
  const char *who = turns ? "twice, by turns, " : "";
  return arena_printf(c->scratch, "%u warps make them, with %u registers a thread, and %s%u warps with %u read them", copies.warps,
                      copies.registers, who, reads.warps, reads.registers);
}

void
ring_remark(Ctx *c, const Func *f, const RingNote *n, Span at, u32 ahead)
{
  if (c->remarks)
    diag(c, at, R_RING, ahead, n->slots, (unsigned long long)(n->bytes / n->slots), (unsigned long long)n->bytes, c->target->shared_max,
         teams_text(c, f), n->bound);
}
