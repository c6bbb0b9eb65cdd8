/* builtin_derivative.c - the derivative of a function by one of its parameters, in forward mode.
 *
 * The function is lowered here, with the argument behind a mark of its own. Then its ops are walked twice: backwards for what the result
 * needs of what depends on the mark, forwards to give each such value its tangent, how fast it grows with the argument. Ops that move
 * elements or choose between them do the same to tangents; of all others, and of functions with a rule, stdlib/derivatives.tile or the
 * function's own file says what they grow by: derivative_NAME(y, x...), partial derivatives from the result and the arguments, a truth
 * value standing for 1 or 0. A function with a rule is one step, whatever it is made of: its result gets a mark, too. Marks go when the
 * outermost derivative is made. */
#include "sema.h"

enum { ACTIVE = 1, NEEDED = 2 };      /* depends on the argument; and the result's tangent takes this one's */

/* How fast a value grows with the argument: `by`, times `of` unless that is NULL. */
typedef struct Tangent { double by; Value *of; } Tangent;

typedef struct Derive {
  Lower *L;
  Span at;
  const Value *seed;
  u32 lo, n;             /* the values since then, by id */
  u8 *flags;
  Tangent *tangents;
  bool failed;
} Derive;

/* ---- marks ---- */

static Value *
mark(Lower *L, Marked m)
{
  Op *op = op_create(&L->b, OP_BITCAST, 1, &m.of, 1, &m.of->type, 0);
  m.value = op_result(op);
  vec_push(L->a, &L->marked, m);
  return m.value;
}

/* They come with rising ids. */
static const Marked *
marked(const Lower *L, const Value *v)
{
  u32 lo = 0, hi = L->marked.len;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (L->marked.data[mid].value->id < v->id)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < L->marked.len && L->marked.data[lo].value == v ? &L->marked.data[lo] : NULL;
}

/* The declaration derivative_NAME, of the library or in fn's own file or what that imports. */
static Val
rule_named(Lower *L, Unit *from, const char *name)
{
  Unit *u;
  u32 index;
  bool library = !from || from->library;
  name = intern(L->c, arena_printf(L->a, "derivative_%s", name));
  bool found = library ? program_find_library(L->prog, name, &u, &index) : program_find(L->prog, from, name, &u, &index);
  if (!found || u->library != library || u->root->kids[index]->kind != N_FN)
    return val_void((Span){0, 0});
  return (Val){.kind = V_FN, .fn = {u->root->kids[index], u}};
}

Val
derivative_rule(Lower *L, Val fn)
{
  return L->deriving && *fn.fn.decl->name != '(' ? rule_named(L, fn.fn.unit, fn.fn.decl->name) : val_void((Span){0, 0});
}

Val
derivative_mark(Lower *L, Val rule, u32 nargs, const Val *args, Val result)
{
  if (result.kind != V_IR || !type_is_float(result.ir->type))
    return result;
  return val_ir(mark(L, (Marked){.of = result.ir, .rule = rule, .nargs = nargs, .args = args}), result.span);
}

static void
drop_mark(Op *op, void *user)
{
  Lower *L = user;
  const Marked *m = op->nresults == 1 ? marked(L, op_result(op)) : NULL;
  if (!m)
    return;
  L->marked.data[m - L->marked.data].of = op_operand(op, 0);
  value_replace_uses(op_result(op), op_operand(op, 0));
  op_remove(op);
}

/* v without the marks in it. */
static Val
unmarked(Lower *L, Val v)
{
  Values parts = {0};
  val_parts(L, v, &parts);
  for (u32 i = 0; i < parts.len; i++)
    for (const Marked *m; (m = marked(L, parts.data[i]));)
      parts.data[i] = m->of;
  Value *const *next = parts.data;
  return val_with_parts(L, v, &next);
}

/* ---- what goes wrong ---- */

/* The function of the library that the program called and that op comes from; NULL: none. */
static const char *
library_function(Lower *L, Span at)
{
  const char *name = NULL;
  for (; at.site && source_locate(L->c, at.lo).kind == SOURCE_LIBRARY; at = site_get(L->c, at.site).call)
    name = site_get(L->c, at.site).function;
  return name;
}

static void
fail(Derive *d, const Op *op, const char *why)
{
  Lower *L = d->L;
  const char *function = library_function(L, op->span);
  if (d->failed)
    return;
  d->failed = true;
  why = function ? arena_printf(L->a, "'%s'", function) : why;
  Span at = site_in_program(L->c, op->span);
  Diag *e = ERR(L, at, E_DERIVATIVE, why);
  if (at.lo != d->at.lo || at.hi != d->at.hi)
    diag_note(L->c, e, d->at, "it is asked for here");
  if (op_has(op, T_PURE))
    diag_hint(L->c, e, "a function derivative_NAME(y, x, ...) beside a function NAME(x, ...) says what that one's derivative is");
}

static const char *
op_words(Derive *d, const Op *op)
{
  return op_is_loop(op) ? "a loop" : arena_printf(d->L->a, "'%s'", op_info(op->code)->name);
}

/* ---- what depends on the argument ---- */

static bool
flagged(const Derive *d, const Value *v, u8 flag)
{
  return v && v->id >= d->lo && v->id - d->lo < d->n && d->flags[v->id - d->lo] & flag;
}

static void
set_flag(Derive *d, const Value *v, u8 flag)
{
  if (v && v->id >= d->lo && v->id - d->lo < d->n)
    d->flags[v->id - d->lo] |= flag;
}

static bool
parts_active(Derive *d, Val v)
{
  Values parts = {0};
  val_parts(d->L, v, &parts);
  for (u32 i = 0; i < parts.len; i++)
    if (flagged(d, parts.data[i], ACTIVE))
      return true;
  return false;
}

static bool
operands_active(const Derive *d, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    if (flagged(d, op_operand(op, i), ACTIVE))
      return true;
  return false;
}

static void
find_active_use(Op *op, void *user)
{
  Derive *d = ((void **)user)[0];
  bool *any = ((void **)user)[1];
  *any |= operands_active(d, op);
}

static void
set_all_active(Op *op, void *user)
{
  Derive *d = user;
  for (u32 i = 0; i < op->nresults; i++)
    set_flag(d, op->results[i], ACTIVE);
  if ((op_global_effects(op) | op_shared_effects(op)) & FX_WRITE)
    fail(d, op, "what is written to memory");
}

static void scan_block(Derive *d, Op *first, const Op *last);

/* A comparison, and what becomes an integer, does not grow; the bits of a float have no tangent, but depend on it. */
static void
scan_op(Derive *d, Op *op)
{
  const Marked *m = op->nresults == 1 ? marked(d->L, op_result(op)) : NULL;
  bool active = false;
  if (m && m->value == d->seed) {
    active = true;
  } else if (m && m->rule.kind == V_FN) {
    for (u32 i = 0; i < m->nargs; i++)
      active |= parts_active(d, m->args[i]);
  } else if (op->code == OP_IF) {
    for (u32 r = 0; r < op->nregions; r++)
      scan_block(d, op->regions[r]->first, region_end(op, r));
    for (u32 k = 0; k < op->nresults; k++)
      if (flagged(d, region_yields(op, 0, k), ACTIVE) || flagged(d, region_yields(op, 1, k), ACTIVE))
        set_flag(d, op->results[k], ACTIVE);
    return;
  } else {
    active = operands_active(d, op);
    for (u32 r = 0; r < op->nregions; r++)
      block_walk(op->regions[r], find_active_use, (void *[]){d, &active});
    active &= op->code != OP_CMP && !(op->code == OP_CAST && !type_is_float(op_result(op)->type));
    if (active)
      for (u32 r = 0; r < op->nregions; r++)
        block_walk(op->regions[r], set_all_active, d);
  }
  if (active)
    set_all_active(op, d);
}

/* From first to last, which stays as it is while ops come behind it; last NULL: there are none. */
static void
scan_block(Derive *d, Op *first, const Op *last)
{
  for (Op *op = first; last && op; op = op == last ? NULL : op->next)
    scan_op(d, op);
}

/* ---- what the result needs ---- */

/* Ops that do to tangents what they do to values: those of operands from `first` on. */
static bool
op_carries(const Op *op, u32 *first)
{
  *first = op->code == OP_SELECT;
  switch (op->code) {
  case OP_BITCAST: return op_result(op)->type == op_operand(op, 0)->type;
  case OP_CAST: return type_is_float(op_operand(op, 0)->type);
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE: case OP_HINT: case OP_SELECT: return true;
  default: return false;
  }
}

/* Its rule, and the op whose operands that takes: of numbers computed in several ways it is that of the exact one, if this has one. */
static Val
op_rule(Derive *d, const Op *op, const Op **of)
{
  const Op *exact = op->code == OP_TIERS ? OPERAND(op, TIERS, exact)->def : NULL;
  *of = exact && !marked(d->L, op_result(exact)) ? exact : op;
  if (op->nresults != 1 || op->nregions || !type_is_float(op_result(op)->type) || !op_has(*of, T_ELEM))
    return val_void(op->span);
  return rule_named(d->L, NULL, op_info((*of)->code)->name);
}

static void need_block(Derive *d, Op *first, Op *last);

static void
need_if(Derive *d, Op *op)
{
  for (u32 r = 0; r < op->nregions; r++) {
    for (u32 k = 0; k < op->nresults; k++)
      if (flagged(d, op->results[k], NEEDED))
        set_flag(d, region_yields(op, r, k), NEEDED);
    need_block(d, op->regions[r]->first, region_end(op, r)->prev);
  }
}

static void
need_op(Derive *d, Op *op)
{
  bool needed = false;
  for (u32 k = 0; k < op->nresults; k++)
    needed |= flagged(d, op->results[k], NEEDED) && flagged(d, op->results[k], ACTIVE);
  if (!needed || op_result(op) == d->seed || d->failed)
    return;
  const Marked *m = op->nresults == 1 ? marked(d->L, op_result(op)) : NULL;
  const Op *of = op;
  u32 first = 0;
  if (m && m->rule.kind == V_FN) {
    Values parts = {0};
    for (u32 i = 0; i < m->nargs; i++)
      val_parts(d->L, m->args[i], &parts);
    for (u32 i = 0; i < parts.len; i++)
      set_flag(d, parts.data[i], NEEDED);
  } else if (op->code == OP_IF) {
    need_if(d, op);
  } else if (op_carries(op, &first) || op_rule(d, op, &of).kind == V_FN) {
    for (u32 i = first; i < of->noperands; i++)
      set_flag(d, op_operand(of, i), NEEDED);
  } else if (op->code == OP_TIERS) {
    set_flag(d, OPERAND(op, TIERS, exact), NEEDED);
  } else {
    fail(d, op, op_words(d, op));
  }
}

static void
need_block(Derive *d, Op *first, Op *last)
{
  for (Op *op = last; op; op = op == first ? NULL : op->prev)
    need_op(d, op);
}

/* ---- tangents ---- */

static Val
number(double f, Span at)
{
  return val_const((Const){.form = CF_FLOAT, .f = f}, at);
}

static Tangent
tangent_of(const Derive *d, const Value *v)
{
  return flagged(d, v, ACTIVE) ? d->tangents[v->id - d->lo] : (Tangent){0, NULL};
}

static bool
is_zero(Tangent t)
{
  return t.by == 0 && !t.of;
}

static Val
failed(Derive *d)
{
  d->failed = true;
  return val_poison(d->at);
}

/* The numbers are multiplied here, in f64, and what is 1 in the type of the value is not multiplied by. */
static Val
tangent_val(Derive *d, Tangent t)
{
  Lower *L = d->L;
  Const k;
  if (!t.of)
    return number(t.by, d->at);
  const_cast((Const){.form = CF_FLOAT, .f = t.by}, t.of->type->dt, ROUND_NEAREST, false, &k);
  if (k.f == 1)
    return val_ir(t.of, d->at);
  if (k.f == -1)
    return val_ir(ir_unary(&L->b, OP_NEG, t.of), d->at);
  return lower_binary(L, O_MUL, d->at, d->at, number(t.by, d->at), val_ir(t.of, d->at));
}

/* v as a value of that type; NULL after reporting. */
static Value *
typed(Derive *d, Val v, const Type *type)
{
  Val r = val_is_data(v) ? val_cast(d->L, d->at, v, type->dt, NULL, false) : failed(d);
  Value *x = r.kind == V_POISON ? NULL : val_value(d->L, r);
  d->failed |= !x;
  return x ? value_broadcast(d->L, x, type) : NULL;
}

static Value *
tangent_value(Derive *d, Tangent t, const Type *type)
{
  return typed(d, tangent_val(d, t), type);
}

static Tangent
tangent_by(Derive *d, double by, Val v)
{
  if (v.kind == V_CONST)
    return (Tangent){by * const_double(v.k), NULL};
  d->failed |= v.kind != V_IR;
  return v.kind == V_IR ? (Tangent){by, v.ir} : (Tangent){0, NULL};
}

static Tangent
where_else_0(Derive *d, Val c, Tangent t)
{
  Call call = {.span = d->at, .name = "where", .args = {c, tangent_val(d, t), number(0, d->at)}, .given = {true, true, true}, .nargs = 3};
  return tangent_by(d, 1, builtin_where(d->L, &call));
}

/* The number that a partial derivative is known to be: a truth value is 1 or 0. */
static bool
known_partial(Val p, double *f)
{
  u64 bits;
  if (p.kind == V_CONST)
    *f = const_is_bool(p.k) ? p.k.i != 0 : const_double(p.k);
  else if (type_is_float(p.ir->type) && value_const_bits(p.ir, &bits))
    *f = float_decode(p.ir->type->dt, bits);
  else
    return false;
  return true;
}

static Tangent
product(Derive *d, Val p, Tangent t)
{
  double f;
  if (known_partial(p, &f))
    return f == 0 ? (Tangent){0, NULL} : (Tangent){f * t.by, t.of};
  if (val_num(p) == DT_I1)
    return where_else_0(d, p, t);
  return t.of ? tangent_by(d, t.by, lower_binary(d->L, O_MUL, d->at, d->at, p, val_ir(t.of, d->at))) : tangent_by(d, t.by, p);
}

static Tangent
total(Derive *d, Tangent a, Tangent b)
{
  if (is_zero(a) || is_zero(b))
    return is_zero(a) ? b : a;
  Val y = tangent_val(d, b), x = tangent_val(d, a);
  return tangent_by(d, 1, lower_binary(d->L, O_ADD, d->at, d->at, x, y));
}

/* What a rule says: partial derivative i, which there may not be. */
static Val
partial(Val rule, u32 i)
{
  return val_is_list(rule) ? i < rule.list.n ? rule.list.v[i] : val_void(rule.span) : i ? val_void(rule.span) : rule;
}

/* The tangent of y, from the rule for what made it of these. */
static Tangent
by_rule(Derive *d, const Op *op, Value *y, Val rule, u32 n, const Val *from)
{
  Lower *L = d->L;
  Val *args = NEW_ARRAY(L->a, Val, n + 1);
  Tangent sum = {0, NULL};
  args[0] = val_ir(y, d->at);
  for (u32 i = 0; i < n; i++)
    args[i + 1] = from[i];
  Val says = lower_call_fn(L, d->at, rule, n + 1, args);
  d->failed |= says.kind == V_POISON;
  for (u32 i = 0; i < n && !d->failed; i++) {
    Tangent t = from[i].kind == V_IR ? tangent_of(d, from[i].ir) : (Tangent){0, NULL};
    Val p = partial(says, i);
    if (is_zero(t) && (from[i].kind == V_IR || !parts_active(d, from[i])))
      continue;
    if (!val_is_data(p) || val_is_ptr(p) || from[i].kind != V_IR)
      fail(d, op, arena_printf(L->a, "by argument %u '%s'", i, rule.fn.decl->name + strlen("derivative_")));
    else
      sum = total(d, sum, product(d, p, t));
  }
  if (sum.of && !d->failed)
    sum.of = typed(d, val_ir(sum.of, d->at), y->type);
  return sum;
}

/* What op does to its operand, or which of two it chooses, done to tangents. */
static Tangent
carried(Derive *d, Op *op)
{
  Builder *b = &d->L->b;
  Value *y = op_result(op);
  Tangent t = tangent_of(d, op_operand(op, op->code == OP_SELECT));
  if (op->code == OP_SELECT) {
    Tangent other = tangent_of(d, OPERAND(op, SELECT, b));
    if (t.of == other.of && t.by == other.by)
      return t;
    Value *x = tangent_value(d, t, y->type), *z = tangent_value(d, other, y->type);
    return d->failed ? t : (Tangent){1, ir_select(b, OPERAND(op, SELECT, c), x, z)};
  }
  if (!t.of || op->code == OP_BITCAST || op->code == OP_HINT)
    return t;
  if (op->code == OP_CAST)
    return tangent_by(d, t.by, val_cast(d->L, d->at, val_ir(t.of, d->at), y->type->dt, NULL, false));
  return (Tangent){t.by, op_result(op_like(b, op, 1, &t.of, &y->type))};
}

static void tangents_block(Derive *d, Op *first, const Op *last);

/* The arms give the tangents beside the values. */
static void
tangents_if(Derive *d, Op *op)
{
  Builder saved = d->L->b;
  u32 n = op->nresults;
  for (u32 r = 0; r < op->nregions; r++) {
    Op *end = region_end(op, r);
    d->L->b = builder_before(end);
    d->L->b.span = d->at;
    tangents_block(d, op->regions[r]->first, end->prev);
    for (u32 k = 0; k < n && !d->failed; k++)
      if (flagged(d, op->results[k], NEEDED) && flagged(d, op->results[k], ACTIVE))
        op_add_operand(end, tangent_value(d, tangent_of(d, region_yields(op, r, k)), op->results[k]->type));
  }
  d->L->b = saved;
  for (u32 k = 0; k < n && !d->failed; k++)
    if (flagged(d, op->results[k], NEEDED) && flagged(d, op->results[k], ACTIVE))
      d->tangents[op->results[k]->id - d->lo] = (Tangent){1, op_add_result(op, op->results[k]->type)};
}

static void
tangents_op(Derive *d, Op *op)
{
  Value *y = op->nresults == 1 ? op_result(op) : NULL;
  if (op->code == OP_IF) {
    tangents_if(d, op);
    return;
  }
  if (d->failed || !y || !flagged(d, y, ACTIVE) || !flagged(d, y, NEEDED))
    return;
  Tangent *t = &d->tangents[y->id - d->lo];
  const Marked *m = marked(d->L, y);
  const Op *of;
  u32 first;
  d->L->b.span = d->at;
  if (y == d->seed) {
    *t = (Tangent){1, NULL};
  } else if (m && m->rule.kind == V_FN) {
    *t = by_rule(d, op, y, m->rule, m->nargs, m->args);
  } else if (op_carries(op, &first)) {
    *t = carried(d, op);
  } else {
    Val rule = op_rule(d, op, &of), from[3];
    for (u32 i = 0; i < of->noperands && i < COUNT(from); i++)
      from[i] = val_ir(op_operand(of, i), d->at);
    *t = rule.kind == V_FN ? by_rule(d, op, y, rule, of->noperands, from) : tangent_of(d, OPERAND(op, TIERS, exact));
  }
}

static void
tangents_block(Derive *d, Op *first, const Op *last)
{
  for (Op *op = first; last && op; op = op == last ? NULL : op->next)
    tangents_op(d, op);
}

/* ---- the call ---- */

/* The derivatives of what is in v, in the same form. */
static Val
result_of(Derive *d, Val v)
{
  Lower *L = d->L;
  if (v.kind == V_CONST && const_is_float(v.k))
    return number(0, d->at);
  if (v.kind == V_IR && type_is_float(v.ir->type)) {
    Value *t = tangent_value(d, tangent_of(d, v.ir), v.ir->type);
    return t ? val_ir(t, d->at) : val_poison(d->at);
  }
  if (val_is_many(v)) {
    Val r = val_copied(L, v);
    for (u32 i = 0; i < v.list.n; i++)
      r.list.v[i] = result_of(d, v.list.v[i]);
    return r;
  }
  d->failed = true;
  if (v.kind != V_POISON)
    ERR(L, d->at, E_DERIVATIVE, arena_printf(L->a, "the function gives %s, which", val_str(L, v)));
  return val_poison(d->at);
}

/* The function's parameter that is named, or has that number; false after reporting. */
static bool
parameter(Lower *L, Call *c, u32 nargs, u32 *out)
{
  Val f = c->args[0], by = c->args[1];
  i64 n = -1;
  if (by.kind == V_STR && f.kind == V_FN) {
    const Node *params = kid(f.fn.decl, 0);
    for (n = 0; n < params->nkids && strcmp(params->kids[n]->name, by.str) != 0;)
      n++;
    if (n == params->nkids) {
      Diag *d = ERR(L, by.span, E_ARGUMENTS, c->name, arena_printf(L->a, "the function has no parameter '%s'", by.str));
      diag_note(L->c, d, f.fn.decl->at, "it is declared here");
      return false;
    }
  } else if (!call_int(L, c, 1, "the parameter", &n)) {
    return false;
  }
  *out = (u32)n;
  if (n >= 0 && n < nargs && val_is_data(c->args[2 + n]) && !val_is_ptr(c->args[2 + n])) {
    int num = val_num(c->args[2 + n]);
    if (num == NUM_FLOAT || (num < NUM_INT && dtype_is_float((DType)num)))
      return true;
  }
  if (n >= 0 && n < nargs)
    ERR(L, c->args[2 + n].span, E_ARGUMENT, c->name, "a float to derive by", val_str(L, c->args[2 + n]));
  else
    call_error(L, c, by.span, arena_printf(L->a, "there is no argument %lld: it is given %u, counted from 0", (long long)n, nargs));
  return false;
}

/* From first to last the function gave v. */
static Val
derived(Derive *d, Op *first, Op *last, Val v)
{
  Lower *L = d->L;
  Values parts = {0};
  d->n = L->b.func->nvalues - d->lo;
  d->flags = NEW_ARRAY(L->a, u8, d->n);
  d->tangents = NEW_ARRAY(L->a, Tangent, d->n);
  val_parts(L, v, &parts);
  scan_block(d, first, last);
  for (u32 i = 0; i < parts.len; i++)
    set_flag(d, parts.data[i], NEEDED);
  need_block(d, first, last);
  tangents_block(d, first, last);
  L->b.span = d->at;
  Val r = d->failed ? val_poison(d->at) : result_of(d, v);
  return d->failed ? val_poison(d->at) : r;
}

/* The marks from first on go. */
static void
drop_marks(Lower *L, Op *first)
{
  for (Op *op = first, *next; op && op != L->b.before; op = next) {
    next = op->next;
    for (u32 i = 0; i < op->nregions; i++)
      block_walk(op->regions[i], drop_mark, L);
    drop_mark(op, L);
  }
}

/* *value: what the function gives. */
static Val
derive(Lower *L, Call *c, Val *value)
{
  u32 nargs = BUILTIN_ARGS_MAX - 2, by, marks = L->marked.len;
  while (nargs && !c->given[1 + nargs])
    nargs--;
  if (c->args[0].kind != V_FN && c->args[0].kind != V_BUILTIN) {
    ERR(L, c->args[0].span, E_ARGUMENT, c->name, "a function", val_str(L, c->args[0]));
    return val_poison(c->span);
  }
  for (u32 i = 0; i < nargs; i++)
    if (!c->given[2 + i])
      return call_error(L, c, c->span, "its arguments have no names: they are the function's, in order");
  if (!parameter(L, c, nargs, &by))
    return val_poison(c->span);
  Val args[BUILTIN_ARGS_MAX];
  for (u32 i = 0; i < nargs; i++)
    args[i] = c->args[2 + i];
  Derive d = {.L = L, .at = c->span, .lo = L->b.func->nvalues};
  Value *x = val_value(L, args[by]);
  L->b.span = c->span;
  Value *seed = mark(L, (Marked){.of = x});
  d.seed = seed;
  args[by] = val_ir(seed, args[by].span);
  L->deriving++;
  *value = lower_call_fn(L, c->span, c->args[0], nargs, args);
  Op *last = L->b.before ? L->b.before->prev : L->b.block->last;
  Val r = value->kind == V_POISON ? *value : derived(&d, seed->def, last, *value);
  if (--L->deriving)
    return r;
  drop_marks(L, seed->def);
  *value = unmarked(L, *value);
  r = unmarked(L, r);
  L->marked.len = marks;
  return r;
}

Val
builtin_derivative(Lower *L, Call *c)
{
  Val value;
  return derive(L, c, &value);
}

Val
builtin_value_and_derivative(Lower *L, Call *c)
{
  Val both = val_list(L, V_TUPLE, 2, c->span);
  both.list.v[1] = derive(L, c, &both.list.v[0]);
  return both.list.v[1].kind == V_POISON ? both.list.v[1] : both;
}
