/* parser.c - around the generated parser: constructors for its actions, literals, running. */
#include "parser.h"
#include "tl_grammar.h"
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

int tl_scan_lex(TL_STYPE *value, TL_LTYPE *at, void *scanner);
int tl_scan_lex_init_extra(Parser *p, void **scanner);
int tl_scan_lex_destroy(void *scanner);
struct yy_buffer_state *tl_scan__scan_buffer(char *text, size_t size, void *scanner);

typedef struct TileParser { Parser p; void *scanner; } TileParser;

/* ---- constructors ---- */

static Node *
checked(Parser *p, Node *n)
{
  if (n->depth <= AST_DEPTH_MAX)
    return n;
  if (!p->too_deep)
    diag(p->c, n->at, E_TOO_DEEP, "this");
  p->too_deep = true;
  return ast_node(p->a, N_ERROR, n->span, 0, NULL);
}

static Node *
node_from(Parser *p, NodeKind kind, Span span, u32 n, va_list ap)
{
  Node *kids[4] = {0};
  for (u32 i = 0; i < n; i++)
    kids[i] = va_arg(ap, Node *);
  return checked(p, ast_node(p->a, kind, span, n, kids));
}

/* n children, each Node * or NULL. */
Node *
parser_node(Parser *p, NodeKind kind, Span span, u32 n, ...)
{
  va_list ap;
  va_start(ap, n);
  Node *node = node_from(p, kind, span, n, ap);
  va_end(ap);
  return node;
}

/* The same, with the name (and its place) of a NAME or STR node. */
Node *
parser_named(Parser *p, NodeKind kind, Span span, Node *name, u32 n, ...)
{
  va_list ap;
  va_start(ap, n);
  Node *node = node_from(p, kind, span, n, ap);
  va_end(ap);
  node->name = name->name;
  node->at = name->span;
  return node;
}

/* An operator at `at`; b is NULL for one operand. */
Node *
parser_oper(Parser *p, NodeKind kind, Span span, Span at, Oper op, Node *a, Node *b)
{
  Node *node = ast_node(p->a, kind, span, b ? 2 : 1, (Node *[]){a, b});
  node->at = at;
  node->op = op;
  return checked(p, node);
}

/* list with one child more, its span grown. */
Node *
parser_add(Parser *p, Node *list, Node *more)
{
  if (more->depth >= AST_DEPTH_MAX) {
    Node *deep = ast_node(p->a, N_ERROR, more->span, 0, NULL);
    deep->depth = AST_DEPTH_MAX + 1;
    more = checked(p, deep);
  }
  ast_append(p->a, list, more);
  if (list->span.lo == list->span.hi)
    list->span.lo = more->span.lo;
  if (more->span.hi > list->span.hi)
    list->span.hi = more->span.hi;
  return list;
}

/* A node of `first` (unless NULL) and the list's children. */
Node *
parser_join(Parser *p, NodeKind kind, Span span, Node *name, Node *first, const Node *list)
{
  Node *n = ast_node(p->a, kind, span, 0, NULL);
  if (name) {
    n->name = name->name;
    n->at = name->span;
  }
  if (first)
    ast_append(p->a, n, first);
  for (u32 i = 0; i < list->nkids; i++)
    ast_append(p->a, n, list->kids[i]);
  return checked(p, n);
}

/* The names of an anonymous function's parameters, as a list of parameters; NULL after reporting. */
static Node *
lambda_params(Parser *p, const Node *names, Buf *text)
{
  Node *params = parser_node(p, N_PARAMS, names->span, 0);
  u32 n = names->kind == N_TUPLE ? names->nkids : 1;
  for (u32 i = 0; i < n; i++) {
    Node *name = names->kind == N_TUPLE ? names->kids[i] : (Node *)names;
    if (name->kind != N_NAME) {
      if (name->kind != N_ERROR)
        diag_hint(p->c, diag(p->c, name->span, E_SYNTAX, "the parameters of an anonymous function are names"), "%s",
                  "write (a, b) -> a + b; a function with types or defaults is declared: fn name(a: f32, b = 1) { ... }");
      return NULL;
    }
    buf_printf(text, "%s%s", i ? ", " : "", name->name);
    parser_add(p, params, parser_named(p, N_PARAM, name->span, name, 3, NULL, NULL, NULL));
  }
  return params;
}

/* params -> body. Its name, for messages, is how it begins. */
Node *
parser_lambda(Parser *p, Span span, Span arrow, Node *params, Node *body)
{
  Buf text = {.arena = p->a};
  buf_putc(&text, '(');
  Node *list = lambda_params(p, params, &text);
  if (!list)
    return parser_node(p, N_ERROR, span, 0);
  if (body->kind != N_BLOCK) {
    Node *gives = parser_node(p, N_RETURN, body->span, 1, body);
    body = parser_node(p, N_BLOCK, body->span, 1, gives);
  }
  Node *fn = parser_node(p, N_FN, span, 3, list, NULL, body);
  buf_puts(&text, ") -> ...");
  fn->name = intern(p->c, buf_str(&text));
  fn->at = arrow;
  return fn;
}

/* ---- literals ---- */

static int
digit_value(char ch)
{
  return ch >= '0' && ch <= '9' ? ch - '0' : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10 : 99;
}

/* Digits in `base`, underscores between them ignored; too large a number is an error. */
Node *
parser_int(Parser *p, Span at, const char *s, u32 len, int base)
{
  Node *n = parser_node(p, N_INT, at, 0);
  u64 v = 0, b = (u64)base;
  u32 digits = 0;
  bool over = false;
  for (u32 i = 0; i < len; i++) {
    if (s[i] == '_')
      continue;
    u64 d = (u64)digit_value(s[i]);
    over |= v > (UINT64_MAX - d) / b;
    v = v * b + d;
    digits++;
  }
  if (over || !digits)
    diag(p->c, at, E_LITERAL, arena_strndup(p->a, s, len), over ? "it does not fit in 64 bits" : "it has no digits");
  n->ival = over ? 1 : (i64)v;
  n->huge = !over && v > INT64_MAX;
  return n;
}

/* A decimal float; text outside the range of doubles is an error, not infinity. */
Node *
parser_float(Parser *p, Span at, const char *s)
{
  Node *n = parser_node(p, N_FLOAT, at, 0);
  Buf b = {.arena = p->a};
  for (; *s; s++)
    if (*s == '.')
      buf_puts(&b, localeconv()->decimal_point);
    else if (*s != '_')
      buf_putc(&b, *s);
  n->fval = strtod(buf_str(&b), NULL);
  if (n->fval > 1.7976931348623157e308) {
    diag(p->c, at, E_LITERAL, buf_str(&b), "it is beyond the largest f64; write inf for infinity");
    n->fval = 1;
  }
  return n;
}

/* A name, interned. */
Node *
parser_name(Parser *p, Span at, const char *s, u32 len)
{
  Node *n = parser_node(p, N_NAME, at, 0);
  n->name = intern_n(p->c, s, len);
  return n;
}

/* The text between the quotes; \n, \" and \\ are understood. */
Node *
parser_string(Parser *p, Span at, const char *s, u32 len)
{
  Node *n = parser_node(p, N_STR, at, 0);
  Buf b = {.arena = p->a};
  for (u32 i = 0; i < len; i++) {
    bool escape = s[i] == '\\' && i + 1 < len;
    i += escape;
    if (s[i])
      buf_putc(&b, escape && s[i] == 'n' ? '\n' : s[i]);
  }
  n->name = intern(p->c, buf_str(&b));
  return n;
}

/* ---- running ---- */

/* A statement or declaration may begin behind this token. */
static bool
ends_statement(const Parser *p, Span token)
{
  const char *text = token.hi == token.lo + 1 ? source_text(p->c, token.lo) : ";";
  return !token.hi || (token.hi == token.lo + 1 && strchr(";{}", *text));
}

/* One token; keeps the last ones for messages. */
int
tl_lex(TL_STYPE *value, TL_LTYPE *at, Parser *p)
{
  int kind = tl_scan_lex(value, at, ((TileParser *)p)->scanner);
  if (kind == TL_YYEOF)
    *at = (Span){p->pos, p->pos};
  for (u32 i = COUNT(p->last) - 1; i > 0; i--)
    p->last[i] = p->last[i - 1];
  if (ends_statement(p, p->last[1]))
    p->first = *at;
  p->last[0] = *at;
  return kind;
}

/* The tree of the file at source offset base; NULL after reporting errors. Nodes live in a. */
Node *
parse_file(Ctx *c, Arena *a, u32 base)
{
  return parse_range(c, a, base, strlen(source_text(c, base)));
}

Node *
parse_range(Ctx *c, Arena *a, u32 base, size_t len)
{
  u32 before = diag_errors(c);
  const char *text = source_text(c, base);
  char *copy = NEW_ARRAY(a, char, len + 2);
  memcpy(copy, text, len);
  TileParser tp = {.p = {.c = c, .a = a, .base = base, .pos = base}};
  tl_scan_lex_init_extra(&tp.p, &tp.scanner);
  tl_scan__scan_buffer(copy, len + 2, tp.scanner);
  tl_parse(&tp.p);
  tl_scan_lex_destroy(tp.scanner);
  return diag_errors(c) == before ? tp.p.root : NULL;
}
