/* lower_team.c - specialize: teams of warps that do different things at the same time.
 *
 * How many warps a kernel has is asked for from its head on, so what its teams say of themselves is computed there, of what is known
 * there: compile-time parameters and constants. A team's block becomes a region, which sees scalars, pointers and buffers of the kernel.
 * Whether it uses a tile of other warps is found when all is lowered, as any value may hold one. */
#include "flow.h"

/* ---- the head's part ---- */

static bool
team_number(Lower *L, const Node *team, const char *name, i64 *out)
{
  const Node *attrs = kid(team, 0);
  bool found = false;
  for (u32 i = 0; i < attrs->nkids; i++) {
    const Node *attr = attrs->kids[i];
    bool known = !strcmp(attr->name, "warps") || !strcmp(attr->name, "registers");
    if (!known || attr->nkids != 1) {
      ERR(L, attr->span, E_ATTRIBUTE, attr->name, "a team has warps(n), and may have registers(n)");
      return false;
    }
    if (strcmp(attr->name, name) != 0)
      continue;
    found = true;
    if (!lower_const_int(L, kid(attr, 0), name, out))
      return false;
  }
  if (!found && !strcmp(name, "warps"))
    ERR(L, team->span, E_TEAMS, "a team says how many warps it has: warps(4) { ... }");
  return found || strcmp(name, "warps") != 0;
}

/* Numbers of all teams; false after reporting. A team of no warps is none. */
static bool
team_numbers(Lower *L, const Node *n)
{
  u32 stated = 0, teams = 0;
  if (n->nkids > TEAMS_MAX) {
    ERR(L, n->span, E_TEAMS, team_numbers_error(L->a, n->nkids, NULL, NULL));
    return false;
  }
  for (u32 r = 0; r < n->nkids; r++) {
    i64 warps = 0, registers = 0;
    if (!team_number(L, n->kids[r], "warps", &warps) || !team_number(L, n->kids[r], "registers", &registers))
      return false;
    if (!warps)
      continue;
    L->team_of[teams] = n->kids[r];
    L->team_warps[teams] = warps;
    L->team_registers[teams++] = registers;
    stated += registers != 0;
  }
  L->nteams = teams;
  const char *wrong = team_numbers_error(L->a, teams, L->team_warps, stated ? L->team_registers : NULL);
  if (stated && stated < teams)
    wrong = "where one team says how many registers its threads have, all do";
  if (wrong)
    ERR(L, n->span, E_TEAMS, wrong);
  return !wrong;
}

const Node *
kernel_teams(const Node *kernel)
{
  const Node *body = kid(kernel, 2);
  for (u32 i = 0; i < body->nkids; i++)
    if (body->kids[i]->kind == N_SPECIALIZE)
      return body->kids[i];
  return NULL;
}

u32
teams_declare(Lower *L, const Node *kernel)
{
  u32 all = 0;
  L->teams = kernel_teams(kernel);
  if (!L->teams)
    return 0;
  if (!team_numbers(L, L->teams)) {
    L->nteams = 0;                  /* what is wrong was said: nothing of it is lowered */
    return 0;
  }
  for (u32 r = 0; r < L->nteams; r++)
    all += (u32)L->team_warps[r];
  return all;
}

/* ---- the statement ---- */

static const Node *
find_return(const Node *n)
{
  const Node *found = n->kind == N_RETURN ? n : NULL;
  for (u32 i = 0; i < n->nkids && !found && n->kind != N_EVAL; i++)
    found = n->kids[i] ? find_return(n->kids[i]) : NULL;
  return found;
}

static void
lower_team(Lower *L, Node *body, Block *region)
{
  Scope s;
  const Node *leaves = ast_may_return(body) ? find_return(body) : NULL;
  L->b = builder_at_end(L->b.func, region);
  scope_push(L, &s);
  L->team = &s;
  if (leaves)
    ERR(L, leaves->span, E_TEAMS, "a team ends where its block does: a return cannot end it");
  else
    lower_block(L, body);
  L->team = NULL;
  scope_pop(L);
  L->b.span = (Span){body->span.hi - 1, body->span.hi};
  ir_yield(&L->b, 0, NULL);
}

/* Of a kernel's body, and no other block. */
static bool
stands_right(Lower *L, const Node *n)
{
  if (L->teams && L->teams != n && !L->b.block->parent && !L->frame->up) {
    diag_note(L->c, ERR(L, n->span, E_TEAMS, "a kernel has one"), L->teams->span, "this one");
    return false;
  }
  if (L->teams == n && !L->b.block->parent)
    return true;
  ERR(L, n->span, E_TEAMS, "it stands directly in a kernel's body, with no return in front of it");
  return false;
}

void
lower_specialize(Lower *L, const Node *n)
{
  if (!stands_right(L, n) || !L->nteams)
    return;
  L->b.span = n->span;
  Op *op = ir_warp_specialize(&L->b, L->nteams, L->team_warps);
  if (L->team_registers[0])
    op_set_ints(op, AT_REGISTERS, L->team_registers, L->nteams);
  Builder saved = L->b;
  for (u32 r = 0; r < L->nteams; r++)
    lower_team(L, kid(L->team_of[r], 1), op->regions[r]);
  L->b = saved;
}

bool
team_may_assign(Lower *L, const Binding *b, Span at)
{
  const Scope *s = L->frame->scope;
  for (; s && s != L->team; s = s->up)
    if (scope_find_here(s, b->name) == b)
      return true;
  if (!s || !L->team || scope_find_here(s, b->name) == b)
    return true;
  Diag *d = ERR(L, at, E_TEAMS, arena_printf(L->a, "'%s' is a variable of all warps, which one team cannot assign", b->name));
  diag_note(L->c, d, b->span, "declared here");
  diag_hint(L->c, d, "declare a variable of its own in the team, and hand results over in memory");
  return false;
}

/* ---- a whole kernel ---- */

typedef struct Tiles { Lower *L; const Block *region; VEC(const Value *) reported; } Tiles;

static void
check_captures(Op *op, void *user)
{
  Tiles *t = user;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *x = op_operand(op, i);
    bool again = !x || !type_is_tile(x->type) || value_inside(x, t->region);
    for (u32 k = 0; k < t->reported.len && !again; k++)
      again = t->reported.data[k] == x;
    if (again)
      continue;
    vec_push(t->L->a, &t->reported, x);
    Diag *d = diag(t->L->c, op->span, E_TEAMS, "this takes a tile that is in the registers of other warps");
    if (d && x->def)
      diag_note(t->L->c, d, x->def->span, "made here");
    if (d)
      diag_hint(t->L->c, d, "make it in the team, or hand it over in a shared buffer");
  }
}

/* The first tile of a block whose warps hold none. */
static const Op *
first_tile(const Block *b)
{
  const Op *found = NULL;
  for (const Op *op = b->first; op && !found; op = op->next) {
    for (u32 i = 0; i < op->nresults; i++)
      found = type_is_tile(op->results[i]->type) ? op : found;
    for (u32 r = 0; r < op->nregions && op->code != OP_WARP_SPECIALIZE && !found; r++)
      found = first_tile(op->regions[r]);
  }
  return found;
}

static void
check_order(Lower *L, const Op *teams)
{
  TeamClash x;
  if (!team_clash(L->a, teams, &x))
    return;
  Diag *d = diag(L->c, x.op[1]->span, E_TEAMS, arena_printf(L->a, "team %u %s this buffer, team %u %s it, and no mbarrier orders the two",
    x.region[0], x.writes[0] ? "writes" : "reads", x.region[1], x.writes[1] ? "writes" : "reads"));
  if (d)
    diag_note(L->c, d, x.op[0]->span, "team %u does so here", x.region[0]);
}

void
teams_check(Lower *L, Func *f)
{
  const Op *teams = func_teams(f), *tile = teams && !is_pow2(f->warps) ? first_tile(f->body) : NULL;
  if (tile)
    diag(L->c, tile->span, E_TEAMS, arena_printf(L->a, "%u warps hold no tiles together: this one belongs into a team", f->warps));
  for (u32 r = 0; teams && r < teams->nregions; r++) {
    Tiles t = {.L = L, .region = teams->regions[r]};
    block_walk(teams->regions[r], check_captures, &t);
  }
  if (teams)
    check_order(L, teams);
}

void
arrivals_check(Lower *L, const Func *f)
{
  ArrivalsShort x;
  if (!arrivals_short(f, &x))
    return;
  const char *made = arena_printf(L->a, x.made ? "the kernel arrives %u time%s" : "nobody arrives", x.made, x.made == 1 ? "" : "s");
  Diag *d = diag(L->c, x.init->span, E_ARRIVALS, x.wanted, made);
  if (d)
    diag_note(L->c, d, x.wait->span, "it is waited for here");
}

/* ---- a rehearsal ---- */

static const char *
who(Lower *L, u32 team)
{
  return team == NONE_TEAM ? "the program" : arena_printf(L->a, "team %u", team);
}

static const char *
picked(Lower *L, const char *what, u32 slot, u32 slots)
{
  return slots ? arena_printf(L->a, "%s %u of a row of %u", what, slot, slots) : arena_printf(L->a, "this %s", what);
}

static const char *
missing(Lower *L, const TeamWait *w)
{
  Buf b = {.arena = L->a};
  buf_printf(&b, "phase %llu of %s gets %u of its %u arrival%s", (unsigned long long)w->phase, picked(L, "mbarrier", w->slot, w->slots),
             w->arrived, w->wanted, w->wanted == 1 ? "" : "s");
  if (w->bytes)
    buf_printf(&b, ", and %lld bytes %s", (long long)(w->bytes < 0 ? -w->bytes : w->bytes),
               w->bytes < 0 ? "more than were announced" : "that were announced do not come");
  return buf_str(&b);
}

static void
note_guesses(Lower *L, Diag *d)
{
  Buf b = {.arena = L->a};
  for (u32 i = 0; i < REHEARSALS; i++)
    buf_printf(&b, "%s%lld", i ? ", " : "", (long long)rehearsal_argument(i));
  diag_hint(L->c, d, "so it is with integers and extents of %s as arguments alike", buf_str(&b));
}

static Diag *
report_stuck(Lower *L, const Rehearsal *x)
{
  const TeamWait *w = x->waits;
  Diag *d = diag(L->c, site_in_program(L->c, w->op->span), E_STUCK, who(L, w->team), missing(L, w));
  for (u32 i = 1; d && i < x->nwaits; i++)
    diag_note(L->c, d, site_in_program(L->c, w[i].op->span), "%s waits here: %s", who(L, w[i].team), missing(L, &w[i]));
  return d;
}

static Diag *
report_overtaken(Lower *L, const Rehearsal *x)
{
  u32 writer = x->teams[0], reader = x->teams[1];
  Diag *d = diag(L->c, site_in_program(L->c, x->write->span), E_OVERTAKEN, writer, picked(L, "buffer", x->slot, x->slots), reader);
  if (d)
    diag_note(L->c, d, site_in_program(L->c, x->read->span), "team %u reads it here, and team %u does not wait until that is done", reader,
              writer);
  return d;
}

void
rehearsal_check(Lower *L, const Func *f)
{
  if (L->prog->o->unrehearsed)
    return;
  Rehearsal x = func_rehearse(f);
  Diag *d = x.found == REHEARSED_STUCK ? report_stuck(L, &x) : x.found == REHEARSED_OVERTAKES ? report_overtaken(L, &x) : NULL;
  if (d && x.guessed)
    note_guesses(L, d);
}
