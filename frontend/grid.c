/* grid.c - the clause `grid(...)`: how many programs a launch has along each axis, as an expression that it computes (runtime/grid.h).
 *
 * The clause is lowered like any other expression, of the kernel's arguments and of one more for the device's multiprocessors, into a
 * function that is thrown away; what its values are made of becomes the expression's terms. */
#include "grid.h"
#include "sema.h"

enum { AXES = 3, LOOKS_MAX = 4 * GRID_TERMS };

typedef struct Terms { Buf out; const char *wrong; u32 left; const Value *multiprocessors; } Terms;

static void put_value(Terms *t, const Value *v);

static void
put(Terms *t, const char *word)
{
  if (t->out.len && t->out.data[t->out.len - 1] != ';')
    buf_putc(&t->out, ',');
  buf_puts(&t->out, word);
}

static void
put_two(Terms *t, const Value *a, const Value *b, GridOp op)
{
  put_value(t, a);
  put_value(t, b);
  put(t, grid_op_text(op));
}

static bool
is_op(const Value *v, OpCode code)
{
  return v->def && v->def->code == code;
}

static bool
is_int(const Value *v, i64 n)
{
  i64 k;
  return value_const_int(v, &k) && k == n;
}

/* Surely equal: constants and conversions may be there twice. */
static bool
equal(const Value *a, const Value *b)
{
  i64 n, m;
  if (a == b || (value_const_int(a, &n) && value_const_int(b, &m) && n == m))
    return true;
  return is_op(a, OP_CAST) && is_op(b, OP_CAST) && a->type == b->type && equal(op_operand(a->def, 0), op_operand(b->def, 0));
}

/* What this division leaves, compared with 0 so. */
static bool
compares_rest(const Value *v, const char *pred, const Op *quotient)
{
  if (!is_op(v, OP_CMP) || strcmp(op_str(v->def, AT_PRED, ""), pred) != 0 || !is_int(op_operand(v->def, 1), 0))
    return false;
  const Value *rest = op_operand(v->def, 0);
  return is_op(rest, OP_REM) && equal(op_operand(rest->def, 0), op_operand(quotient, 0)) &&
         equal(op_operand(rest->def, 1), op_operand(quotient, 1));
}

/* (b > 0 ? a % b > 0 : a % b < 0), of which a known b leaves one. */
static bool
rounds_up(const Value *v, const Op *quotient)
{
  i64 b;
  if (value_const_int(op_operand(quotient, 1), &b))
    return compares_rest(v, b > 0 ? "gt" : "lt", quotient);
  if (!is_op(v, OP_SELECT))
    return false;
  const Value *sign = op_operand(v->def, 0);
  return is_op(sign, OP_CMP) && !strcmp(op_str(sign->def, AT_PRED, ""), "gt") && equal(op_operand(sign->def, 0), op_operand(quotient, 1)) &&
         is_int(op_operand(sign->def, 1), 0) && compares_rest(op_operand(v->def, 1), "gt", quotient) &&
         compares_rest(op_operand(v->def, 2), "lt", quotient);
}

/* rounds_up(a / b) ? a / b + 1 : a / b, which is what the library's cdiv becomes. */
static bool
put_cdiv(Terms *t, const Op *select)
{
  const Value *up = op_operand(select, 1), *q = op_operand(select, 2);
  if (!is_op(q, OP_DIV) || !is_op(up, OP_ADD) || op_operand(up->def, 0) != q || !is_int(op_operand(up->def, 1), 1) ||
      !rounds_up(op_operand(select, 0), q->def))
    return false;
  put_two(t, op_operand(q->def, 0), op_operand(q->def, 1), GRID_CDIV);
  return true;
}

static void
put_select(Terms *t, const Op *op)
{
  if (put_cdiv(t, op))
    return;
  for (u32 i = 0; i < 3; i++)
    put_value(t, op_operand(op, i));
  put(t, grid_op_text(GRID_SELECT));
}

static void
put_cmp(Terms *t, const Op *op)
{
  static const struct { const char *pred; GridOp op; bool turned; } preds[] = {
    {"eq", GRID_EQ, false}, {"ne", GRID_NE, false}, {"lt", GRID_LT, false}, {"le", GRID_LE, false}, {"gt", GRID_LT, true},
    {"ge", GRID_LE, true},
  };
  for (u32 i = 0; i < COUNT(preds); i++)
    if (!strcmp(op_str(op, AT_PRED, ""), preds[i].pred))
      put_two(t, op_operand(op, preds[i].turned), op_operand(op, !preds[i].turned), preds[i].op);
}

static void
put_op(Terms *t, Arena *a, const Op *op)
{
  static const struct { OpCode code; GridOp op; } same[] = {
    {OP_ADD, GRID_ADD}, {OP_SUB, GRID_SUB}, {OP_MUL, GRID_MUL}, {OP_DIV, GRID_DIV}, {OP_REM, GRID_REM}, {OP_MIN, GRID_MIN},
    {OP_MAX, GRID_MAX}, {OP_AND, GRID_AND}, {OP_OR, GRID_OR}, {OP_XOR, GRID_XOR}, {OP_SHL, GRID_SHL}, {OP_SHR, GRID_SHR},
  };
  for (u32 i = 0; i < COUNT(same); i++)
    if (op->code == same[i].code) {
      put_two(t, op_operand(op, 0), op_operand(op, 1), same[i].op);
      return;
    }
  switch (op->code) {
  case OP_CMP: put_cmp(t, op); break;
  case OP_SELECT: put_select(t, op); break;
  case OP_CAST: case OP_HINT: case OP_BOUNDED: put_value(t, op_operand(op, 0)); break;
  case OP_NEG:
    put(t, "0");
    put_value(t, op_operand(op, 0));
    put(t, grid_op_text(GRID_SUB));
    break;
  case OP_TENSOR_EXTENT: put(t, arena_printf(a, "$%u.%u", op_tensor(op)->index, (u32)op_int(op, AT_AXIS, 0))); break;
  default: t->wrong = arena_printf(a, "a launch knows integer arguments, constants and extents of tensors, and computes with integers; "
                                   "this takes '%s'", op_info(op->code)->name);
  }
}

static void
put_value(Terms *t, const Value *v)
{
  Arena *a = t->out.arena;
  i64 k;
  if (t->wrong)
    return;
  if (!t->left)
    t->wrong = "a launch computes this at each call: it is too long for that";
  else if (type_is_tile(v->type) || !(type_is_int(v->type) || v->type->dt == DT_I1))
    t->wrong = "a launch computes with integers";
  else if (t->left--, value_const_int(v, &k))
    put(t, arena_printf(a, "%lld", (long long)k));
  else if (v->def)
    put_op(t, a, v->def);
  else if (v == t->multiprocessors)
    put(t, grid_op_text(GRID_MULTIPROCESSORS));
  else
    put(t, arena_printf(a, "$%u", v->index));
}

/* The extent along an axis; false after reporting. */
static bool
put_axis(Lower *L, Terms *t, const Node *n, u32 axis)
{
  static const i64 most[AXES] = {INT32_MAX, 65535, 65535};
  i64 k;
  Val v = n->kind == N_ARG ? val_void(n->span) : lower_expr(L, (Node *)n);
  if (v.kind == V_POISON)
    return false;
  Value *x = val_is_data(v) ? val_value(L, v) : NULL;
  if (!x || type_is_tile(x->type) || !type_is_int(x->type)) {
    const char *is = n->kind == N_ARG ? "a named argument" : val_str(L, v);
    ERR(L, n->span, E_GRID, arena_printf(L->a, "the extent along axis %u is an integer, this is %s", axis, is));
    return false;
  }
  if (value_const_int(x, &k) && (k < 0 || k > most[axis]))
    t->wrong = arena_printf(L->a, "along axis %u it has 0 to %lld programs, not %lld", axis, (long long)most[axis], (long long)k);
  put_value(t, x);
  if (t->wrong)
    ERR(L, n->span, E_GRID, t->wrong);
  return !t->wrong;
}

static const char *
lower_axes(Lower *L, const Node *clause)
{
  Terms t = {.out = {.arena = L->a}, .left = LOOKS_MAX, .multiprocessors = L->multiprocessors};
  GridExpr e;
  for (u32 i = 0; i < clause->nkids; i++) {
    if (i)
      buf_putc(&t.out, ';');
    if (!put_axis(L, &t, clause->kids[i], i))
      return NULL;
  }
  const char *text = buf_str(&t.out);
  if (t.out.len < TILERT_GRID_MAX && !grid_parse(text, &e))
    return intern(L->c, text);
  ERR(L, clause->span, E_GRID, "a launch computes this at each call: it is too long for that");
  return NULL;
}

/* The options without arguments' values: a launch that gives its grid itself may have arguments of which the clause makes none. */
static FrontendOptions
without_values(const Program *p)
{
  FrontendOptions o = *p->o;
  FrontendFact *kept = NEW_ARRAY(p->a, FrontendFact, o.nfacts + 1);
  o.nfacts = 0;
  for (u32 i = 0; i < p->o->nfacts; i++)
    if (p->o->facts[i].kind != FACT_EQUAL)
      kept[o.nfacts++] = p->o->facts[i];
  o.facts = kept;
  return o;
}

/* What the clause says becomes f->grid. f has its arguments and its number of warps. */
void
lower_grid(Lower *L, const Node *kernel, Func *f)
{
  const Node *clause = clause_find(kernel, "grid");
  if (!clause)
    return;
  if (clause->nkids < 1 || clause->nkids > AXES) {
    ERR(L, clause->span, E_GRID, "it has one to three extents, along its axes");
    return;
  }
  Builder real = L->b;
  Program *program = L->prog, with = *program;
  FrontendOptions o = without_values(program);
  Scope scope;
  Func *g = func_new(module_new(L->c), kernel->name, kernel->at);
  g->warps = f->warps;
  memcpy(g->cluster, f->cluster, sizeof g->cluster);
  L->b = builder_at_end(g, g->body);
  with.o = &o;
  L->prog = &with;
  scope_push(L, &scope);
  arguments_bind(L, kernel, g, false);
  L->multiprocessors = func_add_param(g, type_scalar(L->c, DT_I32), intern(L->c, "multiprocessors"), 1);
  f->grid = lower_axes(L, clause);
  L->multiprocessors = NULL;
  scope_pop(L);
  L->b = real;
  L->prog = program;
  f->warps_told |= g->warps_told;
}
