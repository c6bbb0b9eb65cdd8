/* truncation.c - integer quotients that become floats without being asked to.
 *
 * `i / 3` of integers drops the remainder, and what meets a float is converted to one: `0.5 * (i / 3)` reads like a quotient of
 * real numbers and is none. So an integer that came out of a division of the source is converted to a float only where that is
 * written. The division is looked for behind sums, differences and products, choices, shapes, and what ifs and loops carry; a
 * remainder, a shift or a comparison shows that whole numbers are meant. Divisions of the library (cdiv) round as they say, and
 * those that are known to leave no remainder round nothing. */
#include "sema.h"

enum { TRUNCATION_STEPS_MAX = 256, QUOTIENT_WORDS_MAX = 40 };

/* ---- constants ---- */

/* The place of the division that dropped a remainder on the way to what op makes of a and b, written at span. */
Span
const_truncation(Lower *L, Oper op, Span span, Const a, Const b)
{
  Span before = a.truncated.hi ? a.truncated : b.truncated;
  if (op == O_ADD || op == O_SUB || op == O_MUL)
    return before;
  if (op != O_DIV || const_is_float(a))
    return (Span){0, 0};
  bool exact = a.form == CF_TYPED && a.dt == DT_U64 ? (u64)a.i % (u64)b.i == 0 : b.i == -1 || a.i % b.i == 0;
  return exact || L->frame->unit->library ? before : span;
}

/* ---- run-time values ---- */

typedef struct Search {
  Lower *L;
  u32 steps;
  const Value *seen[TRUNCATION_STEPS_MAX];
  bool open;                  /* what an unfinished loop carries was met: more may be known later */
} Search;

static bool search(Search *s, const Value *v, Span *at);

/* The constants that lost a remainder lie in order of their values. */
static bool
search_const(const Search *s, const Value *v, Span *at)
{
  u32 lo = 0, hi = s->L->truncated.len;
  while (lo < hi) {
    u32 mid = (lo + hi) / 2;
    if (s->L->truncated.data[mid].value->id < v->id)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == s->L->truncated.len || s->L->truncated.data[lo].value != v)
    return false;
  *at = s->L->truncated.data[lo].at;
  return true;
}

static bool
search_division(const Search *s, const Op *op, Span *at)
{
  i64 k;
  bool whole = value_const_int(op_operand(op, 1), &k) && k && value_divisor(op_operand(op, 0), 0) % (k < 0 ? 0 - (u64)k : (u64)k) == 0;
  if (whole || source_locate(s->L->c, op->span.lo).kind == SOURCE_LIBRARY)
    return false;
  *at = op->span;
  return true;
}

/* Operands first, first + 1, ... but one from `end` on. */
static bool
search_operands(Search *s, const Op *op, u32 first, u32 end, Span *at)
{
  for (u32 i = first; i < end && i < op->noperands; i++)
    if (op_operand(op, i) && search(s, op_operand(op, i), at))
      return true;
  return false;
}

/* What a region of op hands on as value `index`. */
static bool
search_yield(Search *s, const Op *op, u32 region, u32 index, Span *at)
{
  const Op *end = block_terminator(op->regions[region]);
  if (!end || !op_has(end, T_TERM)) {
    s->open = true;
    return false;
  }
  return index < end->noperands && search(s, op_operand(end, index), at);
}

/* Value number `index` of those that a loop carries. */
static bool
search_carried(Search *s, const Op *loop, u32 index, Span *at)
{
  u32 inits = loop->code == OP_FOR ? 3 : 0;
  return search_operands(s, loop, inits + index, inits + index + 1, at) || search_yield(s, loop, loop->nregions - 1, index, at);
}

static bool
search_argument(Search *s, const Value *v, Span *at)
{
  const Op *op = v->block->parent;
  if (!op || (op->code != OP_FOR && op->code != OP_WHILE) || (op->code == OP_FOR && v->index == 0))
    return false;
  return search_carried(s, op, v->index - (op->code == OP_FOR), at);
}

static bool
search_op(Search *s, const Value *v, Span *at)
{
  const Op *op = v->def;
  switch (op->code) {
  case OP_DIV: return search_division(s, op, at) || search_operands(s, op, 0, 1, at);
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM:
    return search_operands(s, op, 0, 2, at);
  case OP_SELECT: return search_operands(s, op, 1, 3, at);
  case OP_NEG: case OP_ABS: case OP_CAST: case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE:
  case OP_BITCAST: case OP_HINT: case OP_CONVERT_LAYOUT: case OP_BUTTERFLY:
    return search_operands(s, op, 0, 1, at);
  case OP_REDUCE: case OP_SCAN: return search_operands(s, op, v->index, v->index + 1, at);
  case OP_IF: return search_yield(s, op, 0, v->index, at) || search_yield(s, op, 1, v->index, at);
  case OP_FOR: case OP_WHILE: return search_carried(s, op, v->index, at);
  case OP_CONST: return search_const(s, v, at);
  default: return false;
  }
}

static bool
search(Search *s, const Value *v, Span *at)
{
  if (!type_is_int(v->type) || s->steps == TRUNCATION_STEPS_MAX)
    return false;
  for (u32 i = 0; i < s->steps; i++)
    if (s->seen[i] == v)
      return false;
  s->seen[s->steps++] = v;
  return v->def ? search_op(s, v, at) : search_argument(s, v, at);
}

/* ---- reporting ---- */

/* Where the `/` of a quotient stands that is written in one line; NULL: not so. */
static const char *
quotient_sign(const char *s, u32 n)
{
  const char *sign = NULL;
  i32 depth = 0;
  if (n > QUOTIENT_WORDS_MAX || memchr(s, '\n', n))
    return NULL;
  for (u32 i = 0; i < n; i++) {
    depth += (s[i] == '(' || s[i] == '[') - (s[i] == ')' || s[i] == ']');
    if (s[i] == '/' && depth == 0)
      sign = s + i;
  }
  return sign && sign > s && sign[1] != '=' && sign[1] != '/' ? sign : NULL;
}

static void
report(Lower *L, Diag *d, Span division, DType to)
{
  const char *name = dtype_info[to].name, *s = source_text(L->c, division.lo);
  u32 n = division.hi - division.lo;
  const char *sign = s ? quotient_sign(s, n) : NULL;
  const char *left = sign ? arena_printf(L->a, *s == '(' ? "%.*s" : "(%.*s)", (int)(sign - s - (sign[-1] == ' ')), s) : "(a)";
  const char *all = sign ? arena_printf(L->a, "%.*s", (int)n, s) : "a / b";
  const char *right = sign ? arena_printf(L->a, "%.*s", (int)(s + n - sign - 1), sign + 1) : " b";
  if (diag_place(d).lo != division.lo)
    diag_note(L->c, d, division, "this drops the remainder");
  diag_hint(L->c, d, "write %s%s /%s for the quotient, or %s(%s) if the whole number is meant", name, left, right, name, all);
}

static bool
refuse(Lower *L, Span at, Span division, DType to)
{
  Diag *d = ERR(L, at, E_TRUNCATED, dtype_info[to].name);
  report(L, d, division, to);
  return false;
}

/* v, converted at its place to a float type without being asked to, did not lose a remainder; else reports. */
bool
const_keeps_remainder(Lower *L, Val v, DType to)
{
  return !v.k.truncated.hi || const_is_float(v.k) || refuse(L, v.span, v.k.truncated, to);
}

/* The same for the run-time value that `cast` converts. What a loop carries is known when it ends: then it is asked again. */
bool
value_keeps_remainder(Lower *L, Span at, Value *cast)
{
  Search s = {.L = L};
  Span division;
  if (!cast->def || cast->def->code != OP_CAST || !type_is_float(cast->type) || !type_is_int(op_operand(cast->def, 0)->type))
    return true;
  if (search(&s, op_operand(cast->def, 0), &division))
    return refuse(L, at, division, cast->type->dt);
  if (s.open)
    vec_push(L->a, &L->widened, ((Widened){cast, user_place(L, at)}));
  return true;
}

/* A loop has been closed: what was converted since there were `mark` conversions to look at again. */
void
truncation_recheck(Lower *L, u32 mark)
{
  u32 n = L->widened.len;
  L->widened.len = mark;
  for (u32 i = mark; i < n; i++) {
    Widened w = L->widened.data[i];
    if (w.cast->def->block)
      value_keeps_remainder(L, w.at, w.cast);
  }
}
