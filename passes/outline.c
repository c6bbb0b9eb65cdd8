/* outline.c - where inlined calls make very much code, they become maps, which code generation makes calls of shared functions.
 * Needs phase tile, after canon, cse, licm and dce; keeps it. Kernels below FUNC_WORK are left as they are.
 *
 * Functions are inlined where they are called, and code generation repeats their ops for every element that a thread holds. A thousand
 * such calls are megabytes of PTX, which take seconds to compile and more to assemble, and which no instruction cache holds.
 *
 * Every op knows through which calls it came (Span.site). A run is a row of elementwise ops of one shape in a block that came through one
 * call, with nothing between them but constants: what is left of the body behind folding and contraction, so that the shared code rounds
 * as the inlined code would. An unrolled loop calls from the same place again and again; a run ends where the op that began it comes
 * again. Any such row of pure ops may be taken out: where the cuts fall decides only how much is alike.
 *
 * Runs with the same ops are a class (constants belong to the ops). A class that saves enough becomes maps of one region; what does not is
 * looked at again one call further in: exp in a softmax of the program's own.
 *
 * Left alone is what others look into: address arithmetic and masks, whose facts are found by analysis; what flows into dots, whose
 * operands have passes of their own; products that a reduction sums, which fold with fma. */
#include "internal.h"
#include <stdlib.h>

enum {
  FUNC_WORK = 1 << 15,       /* ops of tiles times registers of a thread, in a kernel that is worth looking at */
  CLASS_WORK = 1 << 13,      /* the same, in a class that is worth a function */
  LEAST_OPS = 12,            /* of a run: a call costs about as much */
  FLOW_ROUNDS = 8
};

typedef struct Run {
  Op *first, *last;
  u32 nops;
  const Type *type;          /* of all its tiles, with some element */
  Buf key;
  u64 hash;
  u32 number;                /* the mark of its ops */
  bool pays;
} Run;
typedef struct Outline {
  Ctx *c;
  Func *f;
  bool *watched;             /* by value id: others look into how it is made */
  u32 *numbers;              /* by value id, while a key is made: value + 1 in its run */
  u32 level;                 /* call sites around what is looked at */
  u32 *depth;                /* by site */
  u32 nruns;                 /* numbers given so far */
  VEC(Run) runs;             /* of this level */
} Outline;

/* ---- how much code there is ---- */

/* Of a thread, for a tile that op's team holds. */
static u32
registers(const Op *op, const Type *t)
{
  u32 threads = team_threads(block_team(op->block));
  return (type_padded_numel(t) + threads - 1) / threads;
}

/* An op that does the same to each element, on its own. */
static bool
is_candidate(const Op *op)
{
  return op_has(op, T_ELEM | T_PURE) && op->code != OP_HINT && op->code != OP_BOUNDED && type_is_tile(op_result(op)->type);
}

typedef struct Count { Outline *o; u64 work; u32 site; } Count;

static void
count_op(Op *op, void *user)
{
  Count *n = user;
  n->site = max_u32(n->site, op->span.site);
  if (is_candidate(op))
    n->work += registers(op, op_result(op)->type);
}

/* ---- what others look into ---- */

typedef struct Watch { Outline *o; bool changed; } Watch;

static void
watch(Watch *w, const Value *v)
{
  if (!v || w->o->watched[v->id])
    return;
  w->o->watched[v->id] = true;
  w->changed = true;
}

/* Whether op hands on what a watched result is made of. */
static bool
passes_on(const Op *op)
{
  return op_has(op, T_PURE) && op->code != OP_REDUCE && op->code != OP_SCAN && !op_is_dot(op);
}

static void
watch_flow(Watch *w, const Op *op)
{
  for (u32 k = 0; k < op->nresults; k++) {
    bool inside = false;
    for (u32 r = 0; op_is_loop(op) && r < op->nregions; r++)
      inside |= w->o->watched[loop_arg(op, r, k)->id];
    if (!inside && !w->o->watched[op->results[k]->id])
      continue;
    if (op_is_loop(op))
      watch(w, loop_init(op, k));
    for (u32 r = 0; r < op->nregions; r++)
      watch(w, region_yields(op, r, k));
  }
}

static void
watch_op(Op *op, void *user)
{
  Watch *w = user;
  watch(w, op_pointer(op));
  watch(w, op_mask(op));
  for (u32 i = 0; op_is_dot(op) && i + 1 < op->noperands; i++)
    watch(w, op_operand(op, i));
  if (op->code == OP_SHARED_GATHER)
    watch(w, OPERAND(op, SHARED_GATHER, i));
  if (op_is_loop(op) || op->code == OP_IF)
    watch_flow(w, op);
  bool watched = false;
  for (u32 i = 0; i < op->nresults; i++)
    watched |= w->o->watched[op->results[i]->id];
  for (u32 i = 0; watched && passes_on(op) && i < op->noperands; i++)
    watch(w, op_operand(op, i));
}

/* Backwards over the ops; again while what loops carry brings something new. False if that does not end soon. */
static bool
watch_all(Outline *o, const OpVec *ops)
{
  Watch w = {.o = o, .changed = true};
  for (u32 round = 0; w.changed && round < FLOW_ROUNDS; round++) {
    w.changed = false;
    for (u32 i = ops->len; i-- > 0;)
      watch_op(ops->data[i], &w);
  }
  return !w.changed;
}

/* ---- runs ---- */

/* The call site at the level through which op came; 0: it is not so deep. */
static u32
site_at(const Outline *o, const Op *op)
{
  u32 site = op->span.site;
  if (o->depth[site] < o->level)
    return 0;
  while (o->depth[site] > o->level)
    site = site_get(o->c, site).call.site;
  return site;
}

/* The first op of a run that begins at op or behind it; NULL: there is none. */
static Op *
run_begin(const Outline *o, Op *op)
{
  while (op && !(is_candidate(op) && site_at(o, op)))
    op = op->next;
  return op;
}

static bool
begins_again(const Op *first, const Op *op)
{
  return op->code == first->code && op->span.lo == first->span.lo && op->span.hi == first->span.hi && op->span.site == first->span.site;
}

static bool
run_takes(const Outline *o, const Op *first, const Op *op)
{
  return is_candidate(op) && site_at(o, op) == site_at(o, first) && type_same_shape(op_result(op)->type, op_result(first)->type) &&
         !begins_again(first, op);
}

static Run
run_from(const Outline *o, Op *first)
{
  Run r = {.first = first, .last = first, .nops = 1, .type = op_result(first)->type, .key = {.arena = o->c->scratch}};
  for (Op *op = first->next; op && (op->code == OP_CONST || run_takes(o, first, op)); op = op->next)
    if (op->code != OP_CONST) {
      r.last = op;
      r.nops++;
    }
  return r;
}

/* The ops of a run; constants between them do not count. */
static Op *
run_next(const Run *r, const Op *op)
{
  if (op == r->last)
    return NULL;
  do
    op = op->next;
  while (op->code == OP_CONST);
  return (Op *)op;
}

/* ---- what a run computes ---- */

/* Something outside of op's run uses it. */
static bool
is_result(const Op *op)
{
  for (const Use *u = op_result(op)->uses; u; u = u->next)
    if (u->user->mark != op->mark)
      return true;
  return false;
}

static bool
is_summed(const Op *op)
{
  bool summed = false;
  for (const Use *u = op_result(op)->uses; op->code == OP_MUL && u; u = u->next)
    summed |= u->user->code == OP_REDUCE;
  return summed;
}

static void
mark_run(const Run *r, u32 mark)
{
  for (Op *op = r->first; op; op = run_next(r, op))
    op->mark = mark;
}

/* An operand: of the run, a constant, or the run's n-th argument. */
static void
key_operand(Outline *o, Run *r, Value *v, u32 *nargs, u32 *args)
{
  u64 bits;
  u32 mark = r->first->mark;
  if (v->def && v->def->mark == mark) {
    key_put(&r->key, o->numbers[v->id]);
  } else if (value_const_bits(v, &bits)) {
    key_put(&r->key, ~0ull);
    key_put(&r->key, bits);
    key_put(&r->key, (uintptr_t)type_elem(o->c, v->type));
  } else {
    u32 at = 0;
    while (at < *nargs && args[at] != v->id)
      at++;
    if (at == *nargs)
      args[(*nargs)++] = v->id;
    key_put(&r->key, 1ull << 32 | at);
    key_put(&r->key, (uintptr_t)type_elem(o->c, v->type));
  }
}

enum { ARGS_MAX = 16, RESULTS_MAX = 16 };

/* The run's key; false if it is none for a function. */
static bool
run_key(Outline *o, Run *r)
{
  u32 nargs = 0, nresults = 0, number = 0, args[ARGS_MAX + 3];
  for (const Op *op = r->first; op; op = run_next(r, op)) {
    bool result = is_result(op);
    key_put(&r->key, (u64)op->code << 1 | result);
    key_put(&r->key, (uintptr_t)type_elem(o->c, op_result(op)->type));
    for (u32 i = 0; i < op->nattrs; i++)
      key_put_attr(&r->key, &op->attrs[i]);
    for (u32 i = 0; i < op->noperands; i++)
      key_operand(o, r, op_operand(op, i), &nargs, args);
    o->numbers[op_result(op)->id] = number++;
    nresults += result;
    if (nargs > ARGS_MAX || nresults > RESULTS_MAX || is_summed(op) || (result && o->watched[op_result(op)->id]))
      return false;
  }
  r->hash = key_hash(&r->key);
  return nargs > 0;
}

/* The runs of a block at this level that could be functions. */
static void
find_runs(Outline *o, Block *b)
{
  for (Op *op = run_begin(o, b->first); op;) {
    Run r = run_from(o, op);
    r.number = ++o->nruns;
    mark_run(&r, r.number);
    if (r.nops >= LEAST_OPS && run_key(o, &r))
      vec_push(o->c->scratch, &o->runs, r);
    else
      mark_run(&r, 0);
    op = run_begin(o, r.last->next);
  }
  for (Op *op = b->first; op; op = op->next)
    for (u32 k = 0; op->code != OP_MAP && k < op->nregions; k++)
      find_runs(o, op->regions[k]);
}

/* ---- classes ---- */

static int
by_hash(const void *a, const void *b)
{
  const Run *x = *(const Run *const *)a, *y = *(const Run *const *)b;
  return x->hash < y->hash ? -1 : x->hash > y->hash ? 1 : x->number < y->number ? -1 : x->number > y->number;
}

static bool
alike(const Run *x, const Run *y)
{
  return x->hash == y->hash && x->key.len == y->key.len && !memcmp(x->key.data, y->key.data, x->key.len);
}

/* Decide which of the runs pay: neighbours in the order of hashes are alike. Which pay does not depend on that order. */
static void
find_classes(Outline *o)
{
  u32 n = o->runs.len;
  Run **sorted = NEW_ARRAY(o->c->scratch, Run *, n + 1);
  for (u32 i = 0; i < n; i++)
    sorted[i] = &o->runs.data[i];
  qsort(sorted, n, sizeof *sorted, by_hash);
  for (u32 i = 0, end; i < n; i = end) {
    u64 work = 0;
    for (end = i; end < n && alike(sorted[i], sorted[end]); end++)
      work += (u64)sorted[end]->nops * registers(sorted[end]->first, sorted[end]->type);
    for (u32 k = i; k < end; k++)
      sorted[k]->pays = work >= CLASS_WORK;
  }
}

/* ---- the map ---- */

/* as: by value id, the element that stands for it in the region; outer: values that are not the run's. */
typedef struct Making { Outline *o; Op *map; Builder b; Value **as; VEC(Value *) outer; } Making;

static Value *
element(Making *m, Value *v)
{
  u64 bits;
  if (m->as[v->id])
    return m->as[v->id];
  const Type *elem = type_elem(m->o->c, v->type);
  vec_push(m->o->c->scratch, &m->outer, v);
  if (value_const_bits(v, &bits))
    return m->as[v->id] = ir_const_bits(&m->b, elem, bits);
  op_add_operand(m->map, v);
  return m->as[v->id] = block_add_arg(m->map->regions[0], elem, v->name);
}

static void
make_op(Making *m, const Op *op)
{
  Value *xs[3];
  const Type *t = type_elem(m->o->c, op_result(op)->type);
  m->b.span = op->span;
  for (u32 i = 0; i < op->noperands; i++)
    xs[i] = element(m, op_operand(op, i));
  Op *copy = op_like(&m->b, op, op->noperands, xs, &t);
  op_result(copy)->name = op_result(op)->name;
  m->as[op_result(op)->id] = op_result(copy);
}

static void
drop_run(const Run *r)
{
  for (Op *op = r->last, *prev; op; op = prev) {
    prev = op == r->first ? NULL : op->prev;
    if (op->code != OP_CONST)
      op_remove(op);
  }
}

/* A map takes the run's place. */
static void
make_map(Outline *o, Value **as, const Run *r)
{
  Builder at = builder_after(r->last);
  at.span = site_get(o->c, site_at(o, r->first)).call;
  Making m = {.o = o, .map = op_create(&at, OP_MAP, 0, NULL, 0, NULL, 1), .as = as};
  VEC(Value *) old = {0}, new = {0};
  m.b = builder_at_end(o->f, m.map->regions[0]);
  for (Op *op = r->first; op; op = run_next(r, op))
    make_op(&m, op);
  for (Op *op = r->first; op; op = run_next(r, op))
    if (is_result(op)) {
      vec_push(o->c->scratch, &old, op_result(op));
      vec_push(o->c->scratch, &new, as[op_result(op)->id]);
    }
  m.b.span = at.span;
  ir_yield(&m.b, new.len, new.data);
  for (u32 i = 0; i < old.len; i++) {
    Value *result = map_add_result(m.map, new.data[i]->type);
    result->name = old.data[i]->name;
    value_replace_uses(old.data[i], result);
  }
  for (u32 i = 0; i < m.outer.len; i++)
    as[m.outer.data[i]->id] = NULL;
  drop_run(r);
}

/* ---- the pass ---- */

static void
list_op(Op *op, void *user)
{
  OpVec *ops = user;
  vec_push(op->block->func->module->ctx->scratch, ops, op);
}

/* Calls around each site; the most. */
static u32
count_depths(Outline *o, u32 sites)
{
  u32 most = 0;
  o->depth = NEW_ARRAY(o->c->scratch, u32, sites + 1);
  for (u32 s = 1; s <= sites; s++) {
    o->depth[s] = o->depth[site_get(o->c, s).call.site] + 1;
    most = max_u32(most, o->depth[s]);
  }
  return most;
}

static void
outline_level(Outline *o, Value **as)
{
  o->runs.len = 0;
  find_runs(o, o->f->body);
  find_classes(o);
  for (u32 i = 0; i < o->runs.len; i++)
    if (o->runs.data[i].pays)
      make_map(o, as, &o->runs.data[i]);
}

static void
outline_func(Ctx *c, Func *f)
{
  enum { MADE_OF_ONE = 6 };       /* values made for each that there was: itself, its operands, arguments and results */
  Outline o = {.c = c, .f = f};
  Count n = {.o = &o};
  OpVec ops = {0};
  func_walk(f, count_op, &n);
  if (n.work < FUNC_WORK || !n.site)
    return;
  u32 levels = count_depths(&o, n.site);
  func_walk(f, list_op, &ops);
  o.watched = NEW_ARRAY(c->scratch, bool, f->nvalues);
  o.numbers = NEW_ARRAY(c->scratch, u32, f->nvalues);
  Value **as = NEW_ARRAY(c->scratch, Value *, MADE_OF_ONE * f->nvalues);
  if (!watch_all(&o, &ops))
    return;
  for (o.level = 1; o.level <= levels; o.level++)
    outline_level(&o, as);
}

void
pass_outline(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    outline_func(c, m->funcs.data[i]);
}
