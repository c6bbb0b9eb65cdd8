/* origin.c - which variable a register points into, so that a step out of it is seen where it lands in its neighbour.
 *
 * While a function is decoded, every result is noted with what it is made of; afterwards each register gets the join of its
 * definitions, without regard to their order. Nothing known yet < a number, or a place in one variable < anything. A variable plus a
 * number stays in it; numbers are what all else gives, loads among them. A register that is sometimes one and sometimes the other,
 * and the difference of two addresses, may point anywhere: there only memory as a whole is checked. */
#include "decode.h"
#include <stdlib.h>

enum { NOTHING, NUMBER, ANYTHING, PLACE };       /* PLACE + i: in variable i, as Address.var names it */
enum { MOST_PASSES = 12 };

static uint32_t
join(uint32_t x, uint32_t y)
{
  return x == NOTHING ? y : y == NOTHING || x == y ? x : ANYTHING;
}

static uint32_t
sum(uint32_t x, uint32_t y, bool minus)
{
  if (x == NOTHING || y == NOTHING)
    return NOTHING;
  if (y == NUMBER)
    return x;
  return x == NUMBER && !minus ? y : ANYTHING;
}

void
flow_define(Decoder *d, uint32_t slot)
{
  if (d->failed || !sim_vec_grow(&d->flow, &d->flow_cap, d->nflow + 1, sizeof *d->flow))
    return;
  d->flow[d->nflow++] = (Flow){.to = slot, .kind = FLOW_NUMBER};
}

void
flow_is(Decoder *d, uint32_t slot, FlowKind kind, uint32_t a, uint32_t b)
{
  if (d->nflow && d->flow[d->nflow - 1].to == slot && !d->failed)
    d->flow[d->nflow - 1] = (Flow){slot, a, b, kind};
}

void
flow_var(Decoder *d, uint32_t slot, uint32_t var)
{
  flow_define(d, slot);
  flow_is(d, slot, FLOW_VAR, var, 0);
}

/* Constants are behind the registers. */
static uint32_t *
origin_of(const Decoder *d, uint32_t *origin, uint32_t slot)
{
  return &origin[slot & CONST_BIT ? (d->u->reg_bytes + (slot & ~CONST_BIT)) / 64 : slot / 64];
}

/* Constants that stand for no address have no definition. */
static uint32_t
value_of(const Decoder *d, uint32_t *origin, uint32_t slot)
{
  uint32_t v = *origin_of(d, origin, slot);
  return v == NOTHING && slot & CONST_BIT ? NUMBER : v;
}

static uint32_t
value(const Decoder *d, uint32_t *origin, const Flow *f)
{
  switch (f->kind) {
  case FLOW_NUMBER: break;
  case FLOW_VAR: return PLACE + f->a;
  case FLOW_COPY: return value_of(d, origin, f->a);
  case FLOW_CHOICE: return join(value_of(d, origin, f->a), value_of(d, origin, f->b));
  case FLOW_SUM: return sum(value_of(d, origin, f->a), value_of(d, origin, f->b), false);
  case FLOW_DIFFERENCE: return sum(value_of(d, origin, f->a), value_of(d, origin, f->b), true);
  }
  return NUMBER;
}

static bool
solve(const Decoder *d, uint32_t *origin)
{
  bool changed = true;
  for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
    changed = false;
    for (size_t i = 0; i < d->nflow; i++) {
      uint32_t *at = origin_of(d, origin, d->flow[i].to), v = join(*at, value(d, origin, &d->flow[i]));
      changed |= v != *at;
      *at = v;
    }
  }
  return !changed;
}

static Address *
address_of(Insn *in, uint32_t *base)
{
  WarpFn *fn = in->kind == K_WARP || in->kind == K_CONV ? in->fn.warp : NULL;
  if (fn == mem_load || fn == mem_store || fn == atom_exec) {
    *base = in->mem.base;
    return &in->mem.at;
  }
  if (fn == async_copy) {
    *base = in->copy.to;
    return &in->copy.at;
  }
  if (fn != ldmatrix_exec && fn != stmatrix_exec)
    return NULL;
  *base = in->matrix.base;
  return &in->matrix.at;
}

void
flow_solve(Decoder *d)
{
  Unit *u = d->u;
  uint32_t *origin = calloc((u->reg_bytes + d->const_bytes) / 64 + 1, sizeof *origin), base;
  bool solved = origin && solve(d, origin);
  for (uint32_t i = 0; solved && i < u->ncode; i++) {
    Address *at = address_of(&u->code[i], &base);
    if (!at || at->var)
      continue;
    uint32_t v = value_of(d, origin, base);
    at->var = v >= PLACE ? v - PLACE : 0;
  }
  free(origin);
}
