/* insert_barriers.c - add the barriers that uses of shared and of global memory need.
 * Needs phase sched, after alloc_shared; keeps it. Notes of parameters which of them it took to reach different memory.
 *
 * Between two ops the state is a set of facts about memory since the last barrier:
 *   READS   a tile is still being read from it by some threads
 *   WROTE   some threads have stored to it, and others may not see that yet
 *   FLIES   asynchronous copies into it are on their way
 *   LANDED  this thread's copies have landed (async_wait); those of others are seen after a barrier
 *   OPEN    threads have read it, and have executed no fence for the asynchronous proxy since: they may still be reading
 *   LENT    copies by the asynchronous proxy read it; which thread waits for them (tma_wait) has then READ it
 *   TAKEN   products of warpgroups that are under way read it
 *   UNFENCED  threads have written it, or their copies have landed there, and they have executed no fence for the asynchronous proxy since
 * The memory is that of a shared_alloc, or the scratch of an op. A barrier forgets READS, WROTE and LANDED. An op with scratch writes
 * it, meets all threads (its own barrier, made by code generation) and reads it: after it only its own READS and UNFENCED remain.
 *
 *   what reads a buffer (ops.def)    needs a barrier against WROTE and LANDED of memory that overlaps
 *   what writes one                  against READS, WROTE and LANDED; not against WROTE where stores give each of its bytes to one thread,
 *                                    the same one, also slices of one size (stores_keep_threads)
 *   what arrives or waits at one     as if it read it: behind its initialisation, which is one thread's, and nobody else writes there
 *   scratch                          against everything
 * A copy that is marked `apart` fills another buffer of the row than those read since the last barrier: READS do not count.
 *   what reaches one by the proxy    against UNFENCED, too: a fence by all threads, then a barrier. What is read is LENT or TAKEN, what is
 *                                    written is nothing to threads before they have waited at its mbarrier, which orders it for all of them
 * What a wait for products leaves of TAKEN is READS where the team has several warpgroups, of which one may be behind. The four warps of
 * one multiply together: when one of them has waited, all have done with the operands.
 * FLIES, LENT and TAKEN are no reason for a barrier: a reader of one buffer of a row does not touch the one being filled, and one that
 * does is a mistake that no barrier mends; interpreter and simulator report it.
 *
 * Global memory: what a program does to it happens in program order (language.md), and a thread keeps its own accesses in order.
 * The state holds every access since the last barrier. One that may meet another thread's, a write among the two (ir/alias.h), gets a
 * barrier in front of it. What an asynchronous copy reads must not change until it is waited for (language.md): while it flies it is no
 * reason for a barrier; behind the wait it is one, for other threads' copies may not have landed. An atomic op that releases meets all
 * threads before it acts, and one that acquires behind it (codegen/lower_atomic.c): these barriers count.
 * Accesses of a sort within which nothing needs an order (alias.h) are not compared. Of the others each is compared with all since the
 * last barrier, so after MOST_COMPARED there is one in any case: in unrolled code the time would grow with the square, and such a barrier
 * costs nothing.
 *
 * Teams: what the program did before its warps part, they have seen: a barrier stands in front of a warp_specialize unless nothing was
 * touched. Its regions start with nothing known but copies under way, each on its own, and barriers in a region are its team's; behind it
 * all have met. What one region writes and the proxy reaches in another is fenced in front of each arrival, and what was written before
 * the warps part in front of that. What two regions both touch is ordered by mbarriers. That is taken on trust here; the verifier refuses
 * what no mbarrier can order (ir/team_order.c), and the interpreter checks all of it as it happens.
 *
 * Clusters: a buffer of another program is taken as this program's own, as it may be. A cluster_barrier is a barrier, a relaxed one is
 * none; in front of it, and of an arrival at another program's mbarrier, stands a fence for what the proxy may reach over there. Barriers
 * that a kernel begins and ends with are put first (cluster_ends.c). What orders programs is otherwise the program's business.
 *
 * Loops: the state at the head is what comes in and what the body leaves, joined until nothing is new; then one more
 * walk inserts. While looking for that state a barrier that would be inserted counts as there. What was found for a loop is
 * kept, and looked for again only if something new comes in: otherwise loops in loops in loops would take ever more walks.
 * Barriers stand in uniform control flow because scalars are uniform. */
#include "alias.h"
#include "cluster_ends.h"
#include "wgmma.h"

typedef enum Fact { READS = 1, WROTE = 2, FLIES = 4, LANDED = 8, LENT = 16, UNFENCED = 32, TAKEN = 64, OPEN = 128 } Fact;
enum { LASTING = FLIES | LENT | TAKEN | UNFENCED | OPEN };                  /* behind a barrier */
/* memory: a shared_alloc, or an op with scratch. by: of WROTE, one of the stores that wrote, if each may come behind any other
 * (stores_keep_threads); or NULL. */
typedef struct Known { const Op *memory; u32 facts; const Op *by; } Known;
/* An access to global memory; loop: the outermost whose iteration ended since, or NULL. FLIES, LANDED: of an asynchronous copy. */
typedef struct Touched { const Op *op, *loop; u32 facts; } Touched;
/* touched: by sort, each in the order of marks. */
typedef VEC(Touched) Touches;
typedef struct State { VEC(Known) known; Touches touched[GLOBAL_SORTS]; } State;
typedef struct Loop { State head, end; bool known; } Loop;     /* the states at its head, and behind it */
/* loops: by mark of their op; accesses: by mark of theirs, filled when asked for. */
/* Memory that op reaches by the asynchronous proxy; in: in which region, NULL: outside of any. */
typedef struct Proxied { const Op *op, *memory; const Block *in; bool writes; } Proxied;
typedef struct Barriers {
  Arena *arena;
  bool insert;
  Loop *loops;
  GlobalAccess *accesses;
  u32 nloops, naccesses;
  VEC(Proxied) proxied;
} Barriers;

enum { MOST_COMPARED = 512 };

/* ---- states ---- */

static Known *
known_of(const State *s, const Op *memory)
{
  for (u32 i = 0; i < s->known.len; i++)
    if (s->known.data[i].memory == memory)
      return &s->known.data[i];
  return NULL;
}

/* by: as in Known. True if that is new. */
static bool
note(Barriers *x, State *s, const Op *memory, u32 facts, const Op *by)
{
  Known *k = known_of(s, memory);
  if (!k) {
    vec_push(x->arena, &s->known, ((Known){memory, facts, by}));
    return facts != 0;
  }
  bool grew = (facts & ~k->facts) != 0;
  if (facts & WROTE) {
    bool wrote = k->facts & WROTE, alike = by && (!wrote || (k->by && stores_keep_threads(k->by, by)));
    grew |= wrote && k->by && !alike;
    k->by = alike ? by : NULL;
  }
  k->facts |= facts;
  return grew;
}

/* Where accesses with this mark begin, or would. */
static u32
place_of(const Touches *l, u32 mark)
{
  u32 lo = 0, hi = l->len;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (l->data[mid].op->mark < mark)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* True if that is new. */
static bool
note_touched(Barriers *x, State *s, Touched t)
{
  Touches *l = &s->touched[global_sort(&x->accesses[t.op->mark])];
  u32 at = place_of(l, t.op->mark);
  for (; at < l->len && l->data[at].op == t.op; at++)
    if (l->data[at].loop == t.loop) {
      bool grew = (t.facts & ~l->data[at].facts) != 0;
      l->data[at].facts |= t.facts;
      return grew;
    }
  vec_push(x->arena, l, t);
  memmove(l->data + at + 1, l->data + at, sizeof t * (l->len - 1 - at));
  l->data[at] = t;
  return true;
}

static State
copy_of(Barriers *x, const State *s)
{
  State t = {0};
  for (u32 i = 0; i < s->known.len; i++)
    vec_push(x->arena, &t.known, s->known.data[i]);
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    for (u32 i = 0; i < s->touched[k].len; i++)
      vec_push(x->arena, &t.touched[k], s->touched[k].data[i]);
  return t;
}

/* Joins `with` into s; true if that told something new. */
static bool
join(Barriers *x, State *s, const State *with)
{
  bool grew = false;
  for (u32 i = 0; i < with->known.len; i++) {
    const Known *w = &with->known.data[i];
    grew |= note(x, s, w->memory, w->facts, w->by);
  }
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    for (u32 i = 0; i < with->touched[k].len; i++)
      grew |= note_touched(x, s, with->touched[k].data[i]);
  return grew;
}

static void
forget_touches(Touches *l)
{
  u32 kept = 0;
  for (u32 i = 0; i < l->len; i++)
    if (l->data[i].facts & FLIES)
      l->data[kept++] = (Touched){l->data[i].op, l->data[i].loop, FLIES};
  l->len = kept;
}

static void
forget_touched(State *s)
{
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    forget_touches(&s->touched[k]);
}

static void
forget(State *s)
{
  for (u32 i = 0; i < s->known.len; i++)
    s->known.data[i].facts &= LASTING;
  forget_touched(s);
}

/* ---- memory ---- */

static void
range(const Op *memory, i64 *from, i64 *to)
{
  if (memory->code != OP_SHARED_ALLOC) {
    *from = op_int(memory, AT_SCRATCH, 0);
    *to = *from + op_int(memory, AT_SCRATCH_BYTES, 0);
    return;
  }
  const Type *t = op_result(memory)->type;
  *from = op_int(memory, AT_OFFSET, 0);
  *to = *from + (i64)type_shared_bytes(t);
}

static bool
overlap(const Op *a, const Op *b)
{
  i64 a0, a1, b0, b1;
  range(a, &a0, &a1);
  range(b, &b0, &b1);
  return a0 < b1 && b0 < a1;
}

/* Op reaches the buffer that is operand i by the asynchronous proxy: its bytes, or the mbarrier that counts them. */
static bool
by_proxy(const Op *op, u32 i)
{
  const Value *v = op_operand(op, i);
  return v && type_is_shared(v->type) && (op_effect(op, i) & FX_PROXY || (op->code == OP_TMA_LOAD && i == SLOT(TMA_LOAD, m)));
}

/* The region of a warp_specialize that b is, or is in; NULL: none. */
static const Block *
team_region(const Block *b)
{
  Team t = block_team(b);
  return t.op ? t.op->regions[t.part] : NULL;
}

/* ---- global memory ---- */

static bool
reaches_global(const Op *op)
{
  return op_pointer(op) != NULL;
}

/* Is there one among l that b must not overtake, or are there so many that nobody looks? *apart gets those that it overtakes because
 * parameters are apart. */
typedef VEC(const GlobalAccess *) Accesses;

static bool
overtakes_one(Barriers *x, const Touches *l, const GlobalAccess *b, Accesses *apart)
{
  u32 landed = 0;
  for (u32 i = 0; i < l->len; i++) {
    const Touched *t = &l->data[i];
    const GlobalAccess *a = &x->accesses[t->op->mark];
    bool relies = false;
    if (t->facts != FLIES && (++landed > MOST_COMPARED || global_conflict(a, b, t->loop, &relies)))
      return true;
    if (relies)
      vec_push(x->arena, apart, a);
  }
  return false;
}

/* Is there an access since the last barrier that op must not overtake? If there is none because parameters are apart, that is noted. */
static bool
overtakes(Barriers *x, const State *s, const Op *op)
{
  const GlobalAccess *b = &x->accesses[op->mark];
  GlobalSort own = global_sort(b);
  Accesses apart = {0};
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    if ((k != own || k == GLOBAL_OTHER) && overtakes_one(x, &s->touched[k], b, &apart))
      return true;
  for (u32 i = 0; x->insert && i < apart.len; i++)
    global_rely_on_apart(apart.data[i], b);
  return false;
}

/* An iteration of the loop is over. */
static void
count_iteration(State *s, const Op *loop)
{
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    for (u32 i = 0; i < s->touched[k].len; i++) {
      Touched *t = &s->touched[k].data[i];
      if (op_inside(t->op, loop) && (!t->loop || op_inside(t->loop, loop)))
        t->loop = loop;
    }
}

/* ---- the walk ---- */

static void
add_barrier(Barriers *x, State *s, Op *op)
{
  forget(s);
  if (x->insert)
    op_put_before(op, OP_BARRIER);
}

/* What is known of memory that meets it. op: what is about to reach it, for which what its own threads wrote does not count, as they write
 * over that in order; NULL: all counts. */
static u32
facts_of(const State *s, const Op *memory, const Op *op)
{
  u32 facts = 0;
  for (u32 i = 0; i < s->known.len; i++) {
    const Known *k = &s->known.data[i];
    bool in_order = op && k->memory == memory && k->by && stores_keep_threads(k->by, op);
    facts |= overlap(k->memory, memory) ? k->facts & (in_order ? ~(u32)WROTE : UINT32_MAX) : 0;
  }
  return facts;
}

/* ---- the asynchronous proxy ---- */

static bool
reached_by_proxy(const Barriers *x, const Op *memory)
{
  for (u32 i = 0; i < x->proxied.len; i++)
    if (overlap(x->proxied.data[i].memory, memory))
      return true;
  return false;
}

/* Each thread's accesses are fenced; those of others are behind the next barrier. Memory that the proxy does not reach needs neither. */
static void
fenced(const Barriers *x, State *s)
{
  for (u32 i = 0; i < s->known.len; i++) {
    Known *k = &s->known.data[i];
    if (reached_by_proxy(x, k->memory)) {
      k->facts |= (k->facts & UNFENCED ? WROTE : 0) | (k->facts & OPEN ? READS : 0);
      k->by = NULL;
    }
    k->facts &= ~(u32)(UNFENCED | OPEN);
  }
}

static void
add_fence(Barriers *x, State *s, Op *op)
{
  fenced(x, s);
  if (x->insert)
    op_set_str(op_put_before(op, OP_FENCE), AT_KIND, "async");
}

/* Does the proxy reach unfenced memory, by ops for which `asks` holds (NULL: any)? */
static bool
reaches_unfenced(const Barriers *x, const State *s, bool (*asks)(const Proxied *p, const void *of), const void *of)
{
  for (u32 i = 0; i < x->proxied.len; i++) {
    const Proxied *p = &x->proxied.data[i];
    if ((!asks || asks(p, of)) && facts_of(s, p->memory, NULL) & (p->writes ? UNFENCED | OPEN : UNFENCED))
      return true;
  }
  return false;
}

/* Where all meet, what the proxy reaches is fenced, too: later that would take another meeting. */
static void
require(Barriers *x, State *s, Op *op, const Op *memory, u32 against)
{
  u32 facts = facts_of(s, memory, op) & against;
  if (facts && reaches_unfenced(x, s, NULL, NULL))
    add_fence(x, s, op);
  if (facts)
    add_barrier(x, s, op);
}

/* What one program copies to all, others get from elsewhere wherever the copy stands. */
static bool
is_elsewhere(const Proxied *p, const void *region)
{
  return p->in != region || op_attr(p->op, AT_MULTICAST);
}

/* Is there unfenced memory that the proxy reaches from elsewhere than the block's region? */
static bool
owes_fence(const Barriers *x, const State *s, const Block *b)
{
  return reaches_unfenced(x, s, is_elsewhere, team_region(b));
}

/* Does op tell others, of this program or of the cluster, of what threads wrote and the proxy reaches there? */
static bool
hands_over_unfenced(const Barriers *x, const State *s, const Op *op)
{
  bool arrives = op->code == OP_MBARRIER_ARRIVE;
  bool meets = op->code == OP_BARRIER || (op->code == OP_CLUSTER_BARRIER && !op_int(op, AT_RELAXED, 0));
  if (meets || (arrives && buffer_remote(OPERAND(op, MBARRIER_ARRIVE, b))))
    return reaches_unfenced(x, s, NULL, NULL);
  return arrives && owes_fence(x, s, op->block);
}

static bool
is_in_loop(const Proxied *p, const void *loop)
{
  return op_inside(p->op, loop);
}

/* Is there unfenced memory that the proxy reaches in a loop? In front of it a fence is needed once. */
static bool
loop_wants_fence(const Barriers *x, const State *s, const Op *loop)
{
  return reaches_unfenced(x, s, is_in_loop, loop);
}

static void
find_proxied(Op *op, void *user)
{
  Barriers *x = user;
  for (u32 i = 0; i < op->noperands; i++) {
    Proxied p = {op, by_proxy(op, i) ? buffer_alloc(op_operand(op, i)) : NULL, team_region(op->block), op_effect(op, i) & FX_WRITE};
    if (p.memory)
      vec_push(x->arena, &x->proxied, p);
  }
}

/* A wait for the proxy's copies that read: this thread has, others do not know. */
static void
give_back(State *s, bool all)
{
  for (u32 i = 0; i < s->known.len; i++) {
    u32 *facts = &s->known.data[i].facts;
    *facts |= *facts & LENT ? READS : 0;
    *facts &= all ? ~(u32)LENT : UINT32_MAX;
  }
}

/* A wait for products; all: none is under way behind it; together: the team is one warpgroup. */
static void
end_products(State *s, bool all, bool together)
{
  for (u32 i = 0; i < s->known.len; i++) {
    u32 *facts = &s->known.data[i].facts;
    *facts |= *facts & TAKEN && !together ? READS : 0;
    *facts &= all ? ~(u32)TAKEN : UINT32_MAX;
  }
}

/* A wait; all: nothing is in flight behind it. */
static void
land(State *s, bool all)
{
  for (u32 i = 0; i < s->known.len; i++) {
    u32 *facts = &s->known.data[i].facts;
    if (*facts & FLIES)
      *facts |= LANDED | UNFENCED;
    if (all)
      *facts &= ~(u32)FLIES;
  }
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    for (u32 i = 0; i < s->touched[k].len; i++) {
      u32 *facts = &s->touched[k].data[i].facts;
      if (*facts & FLIES)
        *facts = all ? LANDED : FLIES | LANDED;
    }
}

static void walk(Barriers *x, State *s, Block *b);

/* What comes out of one round of a loop that is entered with s: of a while, behind its condition in *out. */
static void
loop_round(Barriers *x, State *s, Op *op, State *out)
{
  walk(x, s, op->regions[0]);
  if (op->code != OP_WHILE)
    return;
  *out = copy_of(x, s);
  walk(x, s, op->regions[1]);
}

static void
walk_loop(Barriers *x, State *s, Op *op)
{
  if (loop_wants_fence(x, s, op)) {
    add_fence(x, s, op);
    add_barrier(x, s, op);
  }
  Loop *l = &x->loops[op->mark];
  bool insert = x->insert, grew = join(x, &l->head, s) || !l->known;
  State out = {0};
  x->insert = false;
  while (grew) {
    State around = copy_of(x, &l->head);
    loop_round(x, &around, op, &out);
    count_iteration(&around, op);
    grew = join(x, &l->head, &around);
    l->end = op->code == OP_WHILE ? out : l->head;   /* a for may run no round: its head covers that, and what rounds leave */
  }
  l->known = true;
  x->insert = insert;
  if (insert) {
    State last = copy_of(x, &l->head);
    loop_round(x, &last, op, &out);
  }
  *s = copy_of(x, &l->end);
}

static void
walk_if(Barriers *x, State *s, Op *op)
{
  State other = copy_of(x, s);
  walk(x, s, op->regions[0]);
  walk(x, &other, op->regions[1]);
  join(x, s, &other);
}

static bool
knows_something(const State *s)
{
  bool some = false;
  for (u32 i = 0; i < s->known.len; i++)
    some |= (s->known.data[i].facts & ~(u32)LASTING) != 0;
  for (u32 k = 0; k < GLOBAL_SORTS; k++)
    for (u32 i = 0; i < s->touched[k].len; i++)
      some |= s->touched[k].data[i].facts != FLIES;
  return some;
}

/* Teams that part and meet again. */
static void
walk_teams(Barriers *x, State *s, Op *op)
{
  if (owes_fence(x, s, op->block))
    add_fence(x, s, op);
  if (knows_something(s))
    add_barrier(x, s, op);
  State before = copy_of(x, s);
  for (u32 r = 0; r < op->nregions; r++) {
    State region = copy_of(x, &before);
    walk(x, &region, op->regions[r]);
    join(x, s, &region);
  }
  forget(s);
}

/* What op does to the buffer that is operand i, as its row says: facts it needs a barrier against, and those it leaves. */
typedef struct Access { const Op *memory; u32 against, leaves; } Access;

static bool
access_through(const Op *op, u32 i, Access *a)
{
  const Value *v = op_operand(op, i);
  u32 fx = v && type_is_shared(v->type) ? op_effect(op, i) : 0, reads = op_int(op, AT_APART, 0) ? 0 : READS;
  if (!(fx & (FX_READ | FX_WRITE | FX_ORDER)))
    return false;
  bool init = op->code == OP_MBARRIER_INIT, proxy = by_proxy(op, i);
  *a = (Access){buffer_alloc(v), init ? 0 : WROTE | LANDED, fx & FX_READ ? READS | OPEN : fx & FX_ORDER ? READS : 0};
  if (fx & FX_WRITE) {
    a->against |= reads;
    a->leaves |= fx & FX_ASYNC ? FLIES : WROTE | UNFENCED;
  }
  if (proxy) {
    a->against |= fx & FX_WRITE ? UNFENCED | OPEN : UNFENCED;
    a->leaves = fx & FX_ORDER ? READS : !(fx & FX_READ) ? 0 : op->code == OP_WGMMA ? TAKEN : LENT;
  }
  return true;
}

/* An op with scratch writes it, meets all threads and reads it. */
static void
use_scratch(Barriers *x, State *s, Op *op)
{
  require(x, s, op, op, READS | WROTE | LANDED | FLIES);
  forget(s);
  note(x, s, op, READS | UNFENCED, NULL);
}

/* An op that orders accesses. */
static void
synchronise(Barriers *x, State *s, const Op *op)
{
  switch (op->code) {
  case OP_BARRIER: forget(s); break;
  case OP_CLUSTER_BARRIER:
    if (!op_int(op, AT_RELAXED, 0))
      forget(s);
    break;
  case OP_ASYNC_WAIT: land(s, op_int(op, AT_PENDING, 0) == 0); break;
  case OP_WGMMA_WAIT: end_products(s, op_int(op, AT_PENDING, 0) == 0, block_team(op->block).warps == WGMMA_GROUP); break;
  case OP_TMA_WAIT: give_back(s, op_int(op, AT_PENDING, 0) == 0); break;
  case OP_FENCE:
    if (!strcmp(op_str(op, AT_KIND, ""), "async"))
      fenced(x, s);
    break;
  case OP_ASYNC_COMMIT: case OP_MBARRIER_ARRIVE: case OP_MBARRIER_WAIT: case OP_TMA_COMMIT: break;
  default: ctx_panic(op->block->func->module->ctx, "insert_barriers does not know what '%s' orders", op_info(op->code)->name);
  }
}

static void
visit(Barriers *x, State *s, Op *op)
{
  Access a;
  bool global = reaches_global(op);
  for (u32 i = 0; i < op->noperands; i++)
    if (access_through(op, i, &a))
      require(x, s, op, a.memory, a.against);
  if (hands_over_unfenced(x, s, op))
    add_fence(x, s, op);
  if (op_releases(op))
    forget_touched(s);
  if (global && overtakes(x, s, op))
    add_barrier(x, s, op);
  if (op_attr(op, AT_SCRATCH))
    use_scratch(x, s, op);
  for (u32 i = 0; i < op->noperands; i++)
    if (access_through(op, i, &a))
      note(x, s, a.memory, a.leaves, op);
  if (global)
    note_touched(x, s, (Touched){op, NULL, op->code == OP_ASYNC_COPY ? FLIES : 0});
  if (op_acquires(op))
    forget_touched(s);
  if (op_has(op, T_SYNC))
    synchronise(x, s, op);
}

static void
walk(Barriers *x, State *s, Block *b)
{
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    if (op_is_loop(op))
      walk_loop(x, s, op);
    else if (op->code == OP_IF)
      walk_if(x, s, op);
    else if (op->code == OP_WARP_SPECIALIZE)
      walk_teams(x, s, op);
    else if (op->nregions && !op_on_elements(op))
      ctx_panic(b->func->module->ctx, "insert_barriers does not know the regions of '%s'", op_info(op->code)->name);
    else
      visit(x, s, op);
  }
}

static void
number_op(Op *op, void *user)
{
  Barriers *x = user;
  if (op_is_loop(op))
    op->mark = x->nloops++;
  else if (reaches_global(op))
    op->mark = x->naccesses++;
}

static void
take_access(Op *op, void *user)
{
  if (!op_is_loop(op) && reaches_global(op))
    global_access(op, &((Barriers *)user)->accesses[op->mark]);
}

void
pass_insert_barriers(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Barriers x = {.arena = c->scratch, .insert = true};
    Func *f = m->funcs.data[i];
    cluster_ends(f);
    func_walk(f, number_op, &x);
    func_walk(f, find_proxied, &x);
    x.loops = NEW_ARRAY(c->scratch, Loop, x.nloops + 1);
    x.accesses = NEW_ARRAY(c->scratch, GlobalAccess, x.naccesses + 1);
    func_walk(f, take_access, &x);
    State s = {0};
    walk(&x, &s, f->body);
  }
}
