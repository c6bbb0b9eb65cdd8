/* grid.c - expressions of grids: their text, and their values (grid.h). */
#include "grid.h"
#include <stdlib.h>
#include <string.h>

static const char *const op_text[GRID_OPS] = {
  [GRID_MULTIPROCESSORS] = "sm",
  [GRID_ADD] = "+", [GRID_SUB] = "-", [GRID_MUL] = "*", [GRID_DIV] = "/", [GRID_REM] = "%", [GRID_CDIV] = "cdiv", [GRID_MIN] = "min",
  [GRID_MAX] = "max", [GRID_LT] = "<", [GRID_LE] = "<=", [GRID_EQ] = "==", [GRID_NE] = "!=", [GRID_AND] = "&", [GRID_OR] = "|",
  [GRID_XOR] = "^", [GRID_SHL] = "<<", [GRID_SHR] = ">>", [GRID_SELECT] = "?",
};

const char *
grid_op_text(GridOp op)
{
  return (uint32_t)op < GRID_OPS ? op_text[op] : NULL;
}

/* ---- reading ---- */

static int
is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* A small number, which ends where *at is then. */
static int
small_number(const char **at, uint32_t *out)
{
  const char *from = *at;
  for (*out = 0; is_digit(**at) && *at - from < 4; ++*at)
    *out = *out * 10 + (uint32_t)(**at - '0');
  return *at > from ? 0 : -1;
}

/* $2, $0.1 */
static int
parse_arg(const char *s, size_t n, GridTerm *t)
{
  const char *at = s + 1;
  uint32_t arg, dim = 0;
  if (small_number(&at, &arg))
    return -1;
  t->op = GRID_ARG;
  if (*at == '.') {
    at++;
    t->op = GRID_EXTENT;
    if (small_number(&at, &dim) || dim > UINT8_MAX)
      return -1;
  }
  t->value = arg;
  t->dim = (uint8_t)dim;
  return at == s + n ? 0 : -1;
}

static int
parse_digits(const char *s, size_t n, GridTerm *t)
{
  char *end, digits[24];
  if (n >= sizeof digits)
    return -1;
  memcpy(digits, s, n);
  digits[n] = 0;
  t->op = GRID_NUMBER;
  t->value = strtoll(digits, &end, 10);
  return *end ? -1 : 0;
}

static int
parse_term(const char *s, size_t n, GridTerm *t)
{
  if (n && *s == '$')
    return parse_arg(s, n, t);
  if (n && (is_digit(*s) || (*s == '-' && n > 1)))
    return parse_digits(s, n, t);
  for (uint32_t i = 0; i < GRID_OPS; i++)
    if (op_text[i] && strlen(op_text[i]) == n && !memcmp(op_text[i], s, n)) {
      *t = (GridTerm){.op = (uint8_t)i};
      return 0;
    }
  return -1;
}

/* How many values a term takes. */
static uint32_t
takes(const GridTerm *t)
{
  return t->op <= GRID_MULTIPROCESSORS ? 0 : t->op == GRID_SELECT ? 3 : 2;
}

/* The terms of one axis, which end at ';' or with the text. */
static const char *
parse_axis(const char **at, GridExpr *e, uint32_t *n)
{
  uint32_t deep = 0;
  for (;; ++*at) {
    size_t len = strcspn(*at, ",;");
    GridTerm *t = &e->term[*n];
    if (*n == GRID_TERMS)
      return "an expression of more than 96 terms";
    *t = (GridTerm){0};
    if (parse_term(*at, len, t))
      return "an unknown term";
    if (deep < takes(t))
      return "an operator without operands";
    deep += 1 - takes(t);
    ++*n;
    if (deep > GRID_DEEP)
      return "an expression that is too deep";
    *at += len;
    if (**at != ',')
      return deep == 1 ? NULL : "an expression of several values";
  }
}

const char *
grid_parse(const char *text, GridExpr *out)
{
  uint32_t n = 0;
  const char *wrong = NULL;
  out->axes = 0;
  while (!wrong) {
    wrong = parse_axis(&text, out, &n);
    out->end[out->axes++] = n;
    if (wrong || *text != ';')
      break;
    text++;
    if (out->axes == 3)
      wrong = "more than three axes";
  }
  return wrong;
}

/* ---- values ---- */

static const char overflow[] = "it does not fit 64 bits", zero[] = "it divides by zero";
static const char shift[] = "it shifts by less than 0 or more than 62";

static int64_t
quotient_up(int64_t a, int64_t b)
{
  if (a >= 0 && b > 0 && !(b & (b - 1)))               /* blocks are powers of two */
    return (a >> __builtin_ctzll((uint64_t)b)) + ((a & (b - 1)) != 0);
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

/* What is wrong with a's and b's operator; NULL: nothing. */
static const char *
apply_exact(GridOp op, int64_t a, int64_t b, int64_t *r)
{
  switch (op) {
  case GRID_ADD: return __builtin_add_overflow(a, b, r) ? overflow : NULL;
  case GRID_SUB: return __builtin_sub_overflow(a, b, r) ? overflow : NULL;
  case GRID_MUL: return __builtin_mul_overflow(a, b, r) ? overflow : NULL;
  case GRID_SHL: return b < 0 || b > 62 ? shift : __builtin_mul_overflow(a, INT64_C(1) << b, r) ? overflow : NULL;
  case GRID_SHR: *r = b < 0 || b > 62 ? 0 : a >> b; return b < 0 || b > 62 ? shift : NULL;
  default: break;
  }
  if (b == 0 || (b == -1 && a == INT64_MIN))
    return b ? overflow : zero;
  *r = op == GRID_DIV ? a / b : op == GRID_REM ? a % b : quotient_up(a, b);
  return NULL;
}

static const char *
apply(GridOp op, int64_t a, int64_t b, int64_t *r)
{
  switch (op) {
  case GRID_MIN: *r = a < b ? a : b; return NULL;
  case GRID_MAX: *r = a > b ? a : b; return NULL;
  case GRID_LT: *r = a < b; return NULL;
  case GRID_LE: *r = a <= b; return NULL;
  case GRID_EQ: *r = a == b; return NULL;
  case GRID_NE: *r = a != b; return NULL;
  case GRID_AND: *r = a & b; return NULL;
  case GRID_OR: *r = a | b; return NULL;
  case GRID_XOR: *r = a ^ b; return NULL;
  default: return apply_exact(op, a, b, r);
  }
}

const char *
grid_eval(const GridExpr *e, GridValue *value, const void *user, int64_t out[3], uint32_t *axis)
{
  uint32_t at = 0;
  out[0] = out[1] = out[2] = 1;
  for (*axis = 0; *axis < e->axes; ++*axis) {
    int64_t stack[GRID_DEEP + 1], *top = stack;    /* the next free one */
    for (; at < e->end[*axis]; at++) {
      const GridTerm *t = &e->term[at];
      const char *wrong = NULL;
      top -= takes(t);
      if (t->op <= GRID_MULTIPROCESSORS)
        *top = t->op == GRID_NUMBER ? t->value : value(user, t);
      else if (t->op == GRID_SELECT)
        *top = top[0] ? top[1] : top[2];
      else
        wrong = apply((GridOp)t->op, top[0], top[1], top);
      if (wrong)
        return wrong;
      top++;
    }
    out[*axis] = stack[0];
  }
  return NULL;
}
