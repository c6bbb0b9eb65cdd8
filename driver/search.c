/* search.c - derive from a kernel the configurations that are worth measuring.
 *
 * What may vary is what cannot change what a launch does: `warps`, const parameters that are numbers of stages or of iterations that a loop
 * is unrolled by, and const parameters that are extents of the blocks into which programs cut an index. Which are which is seen in the tile
 * IR: the kernel is lowered with a parameter as it is and changed, and the two are walked in step. They must agree but for
 *   - the `stages` of loops: the parameter is a number of stages; or their `unroll`;
 *   - extents of tiles, the ends of ranges, and constants, which are twice as large: the parameter is a block's extent, if
 *     in addition each such range is used only in `program_id(a) * B + arange(0, B)`, this constant and this program id nowhere else,
 *     and nothing looks across the block: no fold, scan or dot along it (but a fold that an atomic takes), no reshape, no shared memory.
 *     Then each element does the same whatever B is, and programs together do the same if the grid shrinks as B grows; that is
 *     for who launches to see, who knows the grid (jit_tune.c).
 *
 * Besides, whether a team copies (`roles`), and whether programs stay (`persistent`), where the source leaves it to the compiler and
 * the kernel has both forms on this target.
 *
 * Candidates are what the source says, then one thing changed at a time, nearest first: warps, stages, unrolling, those choices, extents of
 * blocks, these with as many warps and with as many elements for a thread as before. Each is taken through the passes: out are those
 * that do not compile or need more shared memory than the target has, those with threads that have no element, and those whose tiles
 * take more registers than a thread has. */
#include "search.h"
#include "alias.h"
#include <stdio.h>
#include <string.h>

enum { WARPS_MAX = 16, STAGES_MAX = 8, UNROLL_MAX = 16, EXTENT_MAX = 1 << 15, REGISTERS_MAX = 224, PARAMS_MAX = 32 };

typedef struct Search {
  Ctx *c;
  const char *name, *text;
  size_t len;
  const TilecOptions *o;
  const char *kernel;
  Buf *out;
  u32 n;                    /* lines so far */
  u32 warps;                /* the source's */
  const char *lines[SEARCH_MAX];
} Search;

/* word: the value, where it is no number. */
typedef struct Setting { const char *name; i64 value; const char *word; } Setting;

/* ---- lowering ---- */

static const char *
value_text(Search *s, Setting is)
{
  return is.word ? is.word : arena_printf(s->c->scratch, "%lld", (long long)is.value);
}

/* The caller's defines, with these values instead of theirs. */
static TilecOptions
options_with(Search *s, const Setting *more, u32 n, TilecEmit emit)
{
  TilecOptions o = *s->o;
  TilecDefine *d = NEW_ARRAY(s->c->scratch, TilecDefine, o.ndefines + n);
  size_t at = 0;
  for (size_t i = 0; i < s->o->ndefines; i++) {
    bool replaced = false;
    for (u32 k = 0; k < n; k++)
      replaced |= !strcmp(s->o->defines[i].name, more[k].name);
    if (!replaced)
      d[at++] = s->o->defines[i];
  }
  for (u32 k = 0; k < n; k++)
    d[at++] = (TilecDefine){more[k].name, value_text(s, more[k])};
  o.defines = d;
  o.ndefines = at;
  o.kernel = s->kernel;
  o.emit = emit;
  o.passes = o.dump_after = NULL;
  o.time_passes = o.remarks = o.locs = o.tuning = 0;
  return o;
}

/* The kernel with these settings, at this stage; NULL if it does not compile. It is compiled by itself, so that nothing that is wrong
 * with it is reported. */
static Func *
lowered(Search *s, const Setting *more, u32 n, TilecEmit emit)
{
  TilecOptions o = options_with(s, more, n, emit);
  TilecResult *r = tilec_compile(s->name, s->text, s->len, &o);
  if (!r || r->status == TILEC_NO_MEMORY) {
    tilec_result_free(r);
    ctx_no_memory(s->c);
  }
  size_t len = r->output_len;
  const char *text = r->status ? NULL : arena_strndup(s->c->scratch, r->output, len);
  tilec_result_free(r);
  Module *m = text ? ir_parse(s->c, source_add(s->c, SOURCE_LIBRARY, "<search>", text, len)) : NULL;
  return m && m->funcs.len == 1 ? m->funcs.data[0] : NULL;
}

/* ---- two lowerings in step ---- */

/* What is known of the values of the first: by which dimensions they vary with the parameter; what part of an index they are. */
typedef enum Part { PART_NONE, PART_SCALE, PART_PROGRAM, PART_ORIGIN, PART_LOCAL } Part;
typedef struct Pair {
  Search *s;
  i64 value;                /* of the parameter, in the first */
  u8 *part, *dims;          /* by value id: Part; bit d: extent d is twice as large */
  int axis;                 /* of the program id that counts blocks; -1: none yet */
  bool stages, unrolls;     /* loops differ in stages; in how far they are unrolled */
  bool ranges;              /* ranges differ */
} Pair;

static bool
same_attr(const Attr *a, const Attr *b)
{
  if (a->id != b->id)
    return false;
  switch (attr_info[a->id].kind) {
  case AK_INT: return a->i == b->i;
  case AK_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
  case AK_STR: return !strcmp(a->s, b->s);
  case AK_TYPE: return a->type == b->type;
  case AK_INTS: return a->ints.n == b->ints.n && !memcmp(a->ints.v, b->ints.v, a->ints.n * sizeof *a->ints.v);
  default: return a->layout == b->layout;
  }
}

/* The attributes agree, or differ as the parameter may make them. */
static bool
attrs_match(Pair *p, const Op *a, const Op *b)
{
  if (a->nattrs != b->nattrs)
    return false;
  for (u32 i = 0; i < a->nattrs; i++) {
    const Attr *x = &a->attrs[i], *y = &b->attrs[i];
    if (same_attr(x, y))
      continue;
    bool twice = x->id == y->id && attr_info[x->id].kind == AK_INT && x->i == p->value && y->i == 2 * x->i;
    if (x->id == y->id && x->id == AT_STAGES && a->code == OP_FOR)
      p->stages = true;
    else if (x->id == y->id && x->id == AT_UNROLL && a->code == OP_FOR)
      p->unrolls = true;
    else if (twice && a->code == OP_ARANGE && x->id == AT_END && op_int(a, AT_START, 0) == 0) {
      p->part[op_result(a)->id] = PART_LOCAL;
      p->ranges = true;
    } else if (twice && a->code == OP_CONST && type_is_int(op_result(a)->type) && !type_is_tile(op_result(a)->type))
      p->part[op_result(a)->id] = PART_SCALE;
    else
      return false;
  }
  return true;
}

static bool
types_match(Pair *p, const Value *a, const Value *b)
{
  const Type *x = a->type, *y = b->type;
  if (x == y)
    return a->id == b->id;
  bool tiles = type_is_tile(x) && type_is_tile(y) && x->rank == y->rank;
  if (a->id != b->id || !tiles || type_elem(p->s->c, x) != type_elem(p->s->c, y))
    return false;
  for (u32 d = 0; d < x->rank; d++) {
    if (x->shape[d] == y->shape[d])
      continue;
    if (y->shape[d] != 2 * x->shape[d])
      return false;
    p->dims[a->id] |= (u8)(1u << d);
  }
  return is_pow2(p->dims[a->id]);   /* in one dimension: pairs of a block's elements are others in another block */
}

static bool blocks_match(Pair *p, const Block *a, const Block *b);

static bool
ops_match(Pair *p, const Op *a, const Op *b)
{
  if (a->code != b->code || a->noperands != b->noperands || a->nresults != b->nresults || a->nregions != b->nregions)
    return false;
  if (!attrs_match(p, a, b))
    return false;
  for (u32 i = 0; i < a->noperands; i++) {
    const Value *x = op_operand(a, i), *y = op_operand(b, i);
    if (!x != !y || (x && x->id != y->id))
      return false;
  }
  for (u32 i = 0; i < a->nresults; i++)
    if (!types_match(p, a->results[i], b->results[i]))
      return false;
  for (u32 i = 0; i < a->nregions; i++)
    if (!blocks_match(p, a->regions[i], b->regions[i]))
      return false;
  return true;
}

static bool
blocks_match(Pair *p, const Block *a, const Block *b)
{
  if (a->nargs != b->nargs)
    return false;
  for (u32 i = 0; i < a->nargs; i++)
    if (!types_match(p, a->args[i], b->args[i]))
      return false;
  const Op *x = a->first, *y = b->first;
  for (; x && y; x = x->next, y = y->next)
    if (!ops_match(p, x, y))
      return false;
  return !x && !y;
}

/* Do they agree, but for what the parameter may change? */
static bool
in_step(Search *s, const Func *a, const Func *b, i64 value, Pair *p)
{
  *p = (Pair){.s = s, .value = value, .axis = -1};
  p->part = NEW_ARRAY(s->c->scratch, u8, a->nvalues + 1);
  p->dims = NEW_ARRAY(s->c->scratch, u8, a->nvalues + 1);
  return a->nvalues == b->nvalues && a->warps == b->warps && !memcmp(a->cluster, b->cluster, sizeof a->cluster) &&
         blocks_match(p, a->body, b->body);
}

/* ---- is it a block's extent? ---- */

static Part
part_of(const Pair *p, const Value *v)
{
  return v ? (Part)p->part[v->id] : PART_NONE;
}

/* What a sum of two is; false: no part of `program_id * B + arange(0, B) + anything`. */
static bool
sum_part(Part a, Part b, Part *out)
{
  if (a == PART_SCALE || a == PART_PROGRAM || b == PART_SCALE || b == PART_PROGRAM)
    return false;
  *out = a == PART_NONE ? b : b == PART_NONE ? a : PART_NONE;
  return a == PART_NONE || b == PART_NONE || a != b;
}

static bool
product_part(Pair *p, const Op *op, Part *out)
{
  Part a = part_of(p, op_operand(op, 0)), b = part_of(p, op_operand(op, 1));
  bool block = (a == PART_PROGRAM && b == PART_SCALE) || (a == PART_SCALE && b == PART_PROGRAM);
  *out = block ? PART_ORIGIN : PART_NONE;
  return block || (a == PART_NONE && b == PART_NONE);
}

/* Programs along this axis count blocks if some product with a changed constant takes their id; then nothing else may. */
static bool
counts_blocks(const Pair *p, const Value *id)
{
  for (const Use *u = id->uses; u; u = u->next)
    if (u->user->code == OP_CAST ? counts_blocks(p, op_result(u->user))
                                 : u->user->code == OP_MUL && (part_of(p, op_operand(u->user, 0)) == PART_SCALE ||
                                                               part_of(p, op_operand(u->user, 1)) == PART_SCALE))
      return true;
  return false;
}

static void
find_axis(Op *op, void *user)
{
  Pair *p = user;
  if (op->code != OP_PROGRAM_ID || !counts_blocks(p, op_result(op)))
    return;
  int axis = (int)op_int(op, AT_AXIS, 0);
  p->axis = p->axis == -1 || p->axis == axis ? axis : -2;
}

/* Is the fold along the block's dimension only added to memory, by an atomic whose sums come to the same? */
static bool
feeds_atomics(const Op *fold)
{
  const Op *first = fold->regions[0]->first;
  if (fold->nresults > 1 || first->next != block_terminator(fold->regions[0]))
    return false;
  for (const Use *u = op_result(fold)->uses; u; u = u->next) {
    const Op *user = u->user;
    OpCode code;
    if (user->code != OP_ATOMIC_RMW || !value_unused(op_result(user)) || op_result(fold) != OPERAND(user, ATOMIC_RMW, value) ||
        !rmw_find(op_str(user, AT_RMW, ""), &code) || code != first->code)
      return false;
  }
  return true;
}

/* Of which dimensions of its first operand op mixes the elements. */
static u32
mixed_dims(const Op *op)
{
  const Value *x = op->noperands ? op_operand(op, 0) : NULL;
  u32 rank = x && type_is_tile(x->type) ? x->type->rank : 0, all = (1u << MAX_RANK) - 1;
  switch (op->code) {
  case OP_REDUCE: return feeds_atomics(op) ? 0 : 1u << op_int(op, AT_AXIS, 0);
  case OP_SCAN: case OP_BUTTERFLY: return 1u << op_int(op, AT_AXIS, 0);
  case OP_DOT: case OP_DOT_SPARSE: return 1u << (rank - 1);
  case OP_RESHAPE: case OP_UNPACK: case OP_PACK: return all;
  default: return op_has(op, T_EXCHANGE) || op_uses_shared(op) ? all : 0;
  }
}

/* Does a program do this once, however many elements it has? Atomics may take what was folded along the block. */
static bool
once_a_program(const Pair *p, const Op *op)
{
  if (op->code == OP_PRINT || op->code == OP_PTX_EFFECT || op->code == OP_ATOMIC_CAS)
    return true;
  if (op->code != OP_STORE && op->code != OP_ATOMIC_RMW)
    return false;
  const Value *v = op_operand(op, 1);
  bool folded = op->code == OP_ATOMIC_RMW && op_is(v, OP_REDUCE) && p->dims[op_operand(v->def, 0)->id] && feeds_atomics(v->def);
  return !folded && !p->dims[op_pointer(op)->id];
}

/* The op's operands take part in an index, or in nothing that is the block's. Gives its result its part. */
static bool
op_fits(Pair *p, const Op *op)
{
  Part part = PART_NONE;
  bool fits = true;
  switch (op->code) {
  case OP_CONST: case OP_ARANGE: return true;
  case OP_PROGRAM_ID:
    part = op_int(op, AT_AXIS, 0) == p->axis ? PART_PROGRAM : PART_NONE;
    break;
  case OP_NUM_PROGRAMS: return op_int(op, AT_AXIS, 0) != p->axis;
  case OP_CAST: case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_PERMUTE: case OP_HINT:
    part = part_of(p, op_operand(op, 0));
    fits = (part != PART_PROGRAM && part != PART_SCALE) || op->code == OP_CAST;
    break;
  case OP_MUL: fits = product_part(p, op, &part); break;
  case OP_ADD: case OP_ADDPTR: fits = sum_part(part_of(p, op_operand(op, 0)), part_of(p, op_operand(op, 1)), &part); break;
  default:
    for (u32 i = 0; i < op->noperands; i++)
      fits = fits && part_of(p, op_operand(op, i)) == PART_NONE;
  }
  const Value *x = op->noperands ? op_operand(op, 0) : NULL;
  u32 dims = x ? p->dims[x->id] : 0;
  if (op->code == OP_RESHAPE && op->nresults)
    dims |= p->dims[op_result(op)->id];
  if (op->nresults)
    p->part[op_result(op)->id] = (u8)part;
  return fits && !(dims & mixed_dims(op)) && !once_a_program(p, op);
}

static bool
block_fits(Pair *p, const Block *b)
{
  for (const Op *op = b->first; op; op = op->next) {
    if (!op_fits(p, op))
      return false;
    for (u32 i = 0; i < op->nregions; i++)
      if (!block_fits(p, op->regions[i]))
        return false;
  }
  return true;
}

/* Accesses of the kernel, in order. */
typedef struct Reach { Arena *arena; VEC(GlobalAccess) all; } Reach;

static void
collect_access(Op *op, void *user)
{
  Reach *r = user;
  GlobalAccess a;
  if (global_access(op, &a))
    vec_push(r->arena, &r->all, a);
}

/* Is memory read elsewhere than where it is written? What is found there depends on whose block it is in. */
static bool
reads_what_it_writes(Search *s, Func *f)
{
  Reach r = {.arena = s->c->scratch};
  func_walk(f, collect_access, &r);
  for (u32 i = 0; i < r.all.len; i++)
    for (u32 k = 0; k < r.all.len; k++) {
      const GlobalAccess *a = &r.all.data[i], *b = &r.all.data[k];
      bool apart = (a->root && b->root && a->root != b->root) || a->pointer == b->pointer || ops_commute(a->op, b->op);
      if (i != k && a->effect & FX_WRITE && !apart)
        return true;
    }
  return false;
}

static bool
is_block_extent(Pair *p, Func *f)
{
  if (p->stages || p->unrolls || !p->ranges)
    return false;
  func_walk(f, find_axis, p);
  return p->axis >= 0 && block_fits(p, f->body) && !reads_what_it_writes(p->s, f);
}

/* ---- candidates ---- */

typedef struct Peak { u32 elements, registers; u32 threads; } Peak;

static u32
registers_of(const Type *t, u32 threads)
{
  return type_is_tile(t) ? (u32)(((u64)type_padded_numel(t) * type_elem_bytes(t) / 4 + threads - 1) / threads) : 1;
}

/* The most elements of an access or dot, the most registers of what a loop carries or one op reads and writes. */
static void
find_peak(Op *op, void *user)
{
  Peak *k = user;
  u32 n = 0;
  const Value *tile = op_is_dot(op) ? op_result(op) : op_pointer(op);
  if (tile && type_numel(tile->type) > k->elements)
    k->elements = type_numel(tile->type);
  for (u32 i = 0; i < op->nresults; i++)
    n += registers_of(op->results[i]->type, k->threads);
  if (op->code != OP_LOAD && n > k->registers && !op_has(op, T_PURE))
    k->registers = n;
}

/* The kernel with these settings is worth measuring. */
static bool
is_worth(Search *s, const Setting *set, u32 n, u32 warps)
{
  Peak k = {.threads = warps * 32};
  Func *f = lowered(s, set, n, TILEC_EMIT_TILE);
  if (!f || f->warps != warps)
    return false;
  func_walk(f, find_peak, &k);
  if (k.elements < k.threads || k.registers > REGISTERS_MAX)
    return false;
  return lowered(s, set, n, TILEC_EMIT_SCHED) != NULL;
}

/* One more line, if it is a new one and worth it. changed: name NULL for nothing but warps. */
static void
propose(Search *s, u32 warps, Setting changed)
{
  Setting set[2] = {{"warps", warps}, changed};
  u32 n = changed.name ? 2 : 1;
  if (s->n == SEARCH_MAX || warps < 1 || warps > WARPS_MAX)
    return;
  const char *line = changed.name ? arena_printf(s->c->scratch, "warps=%u\t%s=%s", warps, changed.name, value_text(s, changed))
                                  : arena_printf(s->c->scratch, "warps=%u", warps);
  for (u32 i = 0; i < s->n; i++)
    if (!strcmp(s->lines[i], line))
      return;
  bool first = !s->n;       /* what the source says is measured in any case */
  if (!first && !is_worth(s, set, n, warps))
    return;
  s->lines[s->n++] = line;
  buf_printf(s->out, "tune %s\n", line);
}

/* Around what it is; and as deep as that again, which small grids of small tiles want, whose programs have a multiprocessor each. */
static void
propose_stages(Search *s, Setting is)
{
  for (i64 k = is.value - 1; k <= is.value + 2 && k <= STAGES_MAX; k++)
    if (k >= 2 && k != is.value)
      propose(s, s->warps, (Setting){is.name, k, NULL});
  if (is.value > 2 && 2 * is.value <= STAGES_MAX)
    propose(s, s->warps, (Setting){is.name, 2 * is.value, NULL});
}

static void
propose_unroll(Search *s, Setting is)
{
  const i64 to[] = {2 * is.value, is.value / 2, 4 * is.value};
  for (u32 i = 0; i < COUNT(to); i++)
    if (to[i] && to[i] <= UNROLL_MAX)
      propose(s, s->warps, (Setting){is.name, to[i], NULL});
}

/* The extent and the warps times these, as powers of two. */
static void
propose_extent(Search *s, Setting is, int extent, int warps)
{
  Setting to = {is.name, extent < 0 ? is.value >> -extent : is.value << extent};
  if (to.value)
    propose(s, warps < 0 ? s->warps >> -warps : s->warps << warps, to);
}

static void
propose_warps(Search *s, int by)
{
  propose(s, s->warps >> by, (Setting){0});
  propose(s, s->warps << by, (Setting){0});
}

/* ---- choices ---- */

static bool
is_staged(Func *f)
{
  for (const Op *op = f->body->first; op; op = op->next)
    if (loop_is_staged(op))
      return true;
  return false;
}

/* A choice that the source leaves to the compiler, as the compiler does not make it, if it can be made: what becomes of the kernel then is
 * another form (has: of scheduled IR). */
static void
propose_choice(Search *s, const char *name, Func *as_it_is, bool (*has)(const Func *f))
{
  Setting to = {name, 0, has(as_it_is) ? "false" : "true"}, set[2] = {{"warps", s->warps}, to};
  Func *f = lowered(s, set, 2, TILEC_EMIT_SCHED);
  if (f && has(f) != has(as_it_is))
    propose(s, s->warps, to);
}

static bool
has_teams(const Func *f)
{
  return func_teams(f) != NULL;
}

/* Whether a team copies, and programs stay: of kernels that make tiles in loops with stages, on targets that share out registers. Where
 * the kernel says so itself, so it is. */
static void
propose_choices(Search *s, Func *f)
{
  const Setting now = {"warps", s->warps};
  Func *made = is_staged(f) && !func_teams(f) ? lowered(s, &now, 1, TILEC_EMIT_SCHED) : NULL;
  if (!made || !target_has(s->c->target, F_SETMAXNREG))
    return;
  if (f->roles == CHOICE_AUTO)
    propose_choice(s, "roles", made, has_teams);
  if (!f->persistent && !f->leaves)
    propose_choice(s, "persistent", made, func_walks);
}

/* ---- the kernel ---- */

/* Its const parameters of integers, from its description. */
static u32
list_settings(Search *s, const char *described, Setting *out)
{
  u32 n = 0;
  for (const char *line = described; *line; line += strcspn(line, "\n"), line += *line != 0) {
    char name[64], type[16];
    long long value;
    int end = 0;
    if (sscanf(line, "const %63s %15s %lld%n", name, type, &value, &end) == 3 && line[end] == '\n' && n < PARAMS_MAX && value > 0 &&
        strcmp(name, "warps") != 0)
      out[n++] = (Setting){arena_strndup(s->c->scratch, name, strlen(name)), value};
  }
  return n;
}

typedef enum Role { ROLE_NONE, ROLE_STAGES, ROLE_UNROLL, ROLE_EXTENT } Role;

/* A block's extent is said with the axis of the grid. */
static Role
role_of(Search *s, Func *as_it_is, const char *described, Setting is)
{
  Pair p;
  Setting more = {is.name, is.value + 1}, twice = {is.name, is.value * 2};
  Func *f = is.value < UNROLL_MAX ? lowered(s, &more, 1, TILEC_EMIT_TILE) : NULL;
  if (f && in_step(s, as_it_is, f, is.value, &p) && !p.ranges && p.stages != p.unrolls && (p.unrolls || is.value >= 2))
    return p.unrolls ? ROLE_UNROLL : is.value <= STAGES_MAX ? ROLE_STAGES : ROLE_NONE;
  bool asks = strstr(described, "\nnull ");   /* whether a pointer is None: there is another kernel for each answer */
  f = !asks && is.value < EXTENT_MAX && is_pow2((u32)is.value) ? lowered(s, &twice, 1, TILEC_EMIT_TILE) : NULL;
  if (!f || !in_step(s, as_it_is, f, is.value, &p) || !is_block_extent(&p, as_it_is))
    return ROLE_NONE;
  buf_printf(s->out, "block %s %d\n", is.name, p.axis);
  return ROLE_EXTENT;
}

/* What is near first: there is room for few. */
static void
propose_all(Search *s, Func *f, const Setting *settings, const Role *roles, u32 n)
{
  static const int moves[][2] = {{1, 0}, {-1, 0}, {1, 1}, {-1, -1}, {2, 0}, {2, 1}};
  propose(s, s->warps, (Setting){0});
  propose_warps(s, 1);
  for (u32 i = 0; i < n; i++)
    if (roles[i] == ROLE_STAGES)
      propose_stages(s, settings[i]);
    else if (roles[i] == ROLE_UNROLL)
      propose_unroll(s, settings[i]);
  propose_choices(s, f);
  for (u32 k = 0; k < COUNT(moves); k++) {
    for (u32 i = 0; i < n; i++)
      if (roles[i] == ROLE_EXTENT)
        propose_extent(s, settings[i], moves[k][0], moves[k][1]);
    if (k == 1)
      propose_warps(s, 2);
  }
  propose_warps(s, 3);
}

void
search_list(Ctx *c, const char *name, const char *text, size_t len, const TilecOptions *o, const char *described, Buf *out)
{
  Search s = {.c = c, .name = name, .text = text, .len = len, .o = o, .out = out};
  Setting settings[PARAMS_MAX];
  Role roles[PARAMS_MAX];
  const char *kernel = described + strlen("kernel ");
  s.kernel = arena_strndup(c->scratch, kernel, strcspn(kernel, " \n"));
  Func *f = lowered(&s, NULL, 0, TILEC_EMIT_TILE);
  u32 n = f ? list_settings(&s, described, settings) : 0;
  if (!f)
    return;
  s.warps = f->warps;
  for (u32 i = 0; i < n; i++)
    roles[i] = role_of(&s, f, described, settings[i]);
  propose_all(&s, f, settings, roles, n);
}
