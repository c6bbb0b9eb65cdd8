#include "expr.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

typedef struct Expr {
  const char *at, *end;
  ExprLookup lookup;
  void *user;
  char *message;
  size_t size;
  int failed, depth;
} Expr;

static int64_t parse_sum(Expr *e);

static int64_t
fail(Expr *e, const char *what)
{
  int left = (int)(e->end - e->at > 40 ? 40 : e->end - e->at);
  if (!e->failed)
    snprintf(e->message, e->size, "%s at \"%.*s\"", what, left, e->at);
  e->failed = 1;
  return 0;
}

static int
peek(Expr *e)
{
  while (e->at < e->end && isspace((unsigned char)*e->at))
    e->at++;
  return e->at < e->end ? (unsigned char)*e->at : 0;
}

static int
accept(Expr *e, int c)
{
  if (peek(e) != c)
    return 0;
  e->at++;
  return 1;
}

static int64_t
apply(Expr *e, char op, int64_t a, int64_t b)
{
  int64_t r = 0;
  if (e->failed)
    return 0;
  if ((op == '/' || op == '%') && (b == 0 || (a == INT64_MIN && b == -1)))
    return fail(e, b ? "overflow" : "division by zero");
  switch (op) {
  case '+': return __builtin_add_overflow(a, b, &r) ? fail(e, "overflow") : r;
  case '-': return __builtin_sub_overflow(a, b, &r) ? fail(e, "overflow") : r;
  case '*': return __builtin_mul_overflow(a, b, &r) ? fail(e, "overflow") : r;
  case '/': return a / b;
  default: return a % b;
  }
}

static int64_t
parse_number(Expr *e)
{
  int64_t v = 0;
  for (; e->at < e->end && isdigit((unsigned char)*e->at); e->at++)
    v = apply(e, '+', apply(e, '*', v, 10), *e->at - '0');
  return v;
}

static int64_t
call(Expr *e, const char *name, size_t len, int64_t a, int64_t b)
{
  if (len == 4 && !memcmp(name, "cdiv", 4)) {
    int64_t q = apply(e, '/', a, b);
    return e->failed ? 0 : q + (a % b != 0 && (a < 0) == (b < 0));
  }
  if (len == 3 && !memcmp(name, "min", 3))
    return a < b ? a : b;
  if (len == 3 && !memcmp(name, "max", 3))
    return a > b ? a : b;
  return fail(e, "unknown function; there are cdiv, min and max;");
}

static int64_t
parse_name(Expr *e)
{
  const char *name = e->at;
  int64_t v = 0;
  while (e->at < e->end && (isalnum((unsigned char)*e->at) || *e->at == '_' || *e->at == '.'))   /* a.rows: a part of an argument */
    e->at++;
  size_t len = (size_t)(e->at - name);
  if (accept(e, '(')) {
    int64_t a = parse_sum(e);
    if (!accept(e, ','))
      return fail(e, "expected ,");
    int64_t b = parse_sum(e);
    return accept(e, ')') ? call(e, name, len, a, b) : fail(e, "expected )");
  }
  if (e->lookup && e->lookup(e->user, name, len, &v))
    return v;
  e->at = name;
  return fail(e, "unknown name");
}

static int64_t
parse_group(Expr *e)
{
  int64_t v = parse_sum(e);
  return accept(e, ')') ? v : fail(e, "expected )");
}

static int64_t
parse_atom(Expr *e)
{
  int c = peek(e);
  if (e->failed || ++e->depth > DEPTH_MAX)
    return fail(e, "too deep");
  int64_t v = 0;
  if (isdigit(c))
    v = parse_number(e);
  else if (isalpha(c) || c == '_')
    v = parse_name(e);
  else if (accept(e, '-'))
    v = apply(e, '-', 0, parse_atom(e));
  else if (accept(e, '('))
    v = parse_group(e);
  else
    fail(e, "expected a number or a name");
  e->depth--;
  return v;
}

static int64_t
parse_product(Expr *e)
{
  int64_t v = parse_atom(e);
  for (int c; !e->failed && ((c = peek(e)) == '*' || c == '/' || c == '%');) {
    e->at++;
    v = apply(e, (char)c, v, parse_atom(e));
  }
  return v;
}

static int64_t
parse_sum(Expr *e)
{
  int64_t v = parse_product(e);
  for (int c; !e->failed && ((c = peek(e)) == '+' || c == '-');) {
    e->at++;
    v = apply(e, (char)c, v, parse_product(e));
  }
  return v;
}

int
expr_eval(const char *text, size_t len, ExprLookup lookup, void *user, int64_t *out, char *message, size_t size)
{
  Expr e = {text, text + len, lookup, user, message, size, 0, 0};
  *out = parse_sum(&e);
  if (!e.failed && peek(&e))
    fail(&e, "something is left over");
  return e.failed ? -1 : 0;
}
