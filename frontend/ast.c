/* ast.c - making, printing and asking the syntax tree. The printer is driven by ast.def. */
#include "ast.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const node_names[N_COUNT] = {
#define NODE(id, name, kids) name,
#include "ast.def"
#undef NODE
};
static const char *const node_kids[N_COUNT] = {
#define NODE(id, name, kids) kids,
#include "ast.def"
#undef NODE
};
const OperInfo oper_info[O_COUNT] = {
#define OPER(id, text, cls, ir) {text, OC_##cls, ir},
#include "ast.def"
#undef OPER
};

static void
count_depth(Node *n, const Node *child)
{
  if (child && child->depth >= n->depth)
    n->depth = child->depth + 1;
}

/* A node of `kind` with n children (NULL: absent). */
Node *
ast_node(Arena *a, NodeKind kind, Span span, u32 n, Node *const *kids)
{
  Node *node = NEW(a, Node);
  node->kind = kind;
  node->span = node->at = span;
  node->depth = 1;
  node->nkids = n;
  node->kids = n ? NEW_ARRAY(a, Node *, n) : NULL;
  for (u32 i = 0; i < n; i++) {
    node->kids[i] = kids[i];
    count_depth(node, kids[i]);
  }
  return node;
}

/* One child more; the array grows by doubling. */
void
ast_append(Arena *a, Node *n, Node *more)
{
  if (!n->nkids || is_pow2(n->nkids)) {
    Node **old = n->kids;
    n->kids = NEW_ARRAY(a, Node *, n->nkids ? 2 * n->nkids : 1);
    if (n->nkids)
      memcpy(n->kids, old, n->nkids * sizeof(Node *));
  }
  n->kids[n->nkids++] = more;
  count_depth(n, more);
}

/* ---- printing ---- */

/* Name and flags of the i-th child by the node's row: `xs*` repeats for all that follow. */
static const char *
kid_label(const char *kids, u32 i, char *buf, size_t size)
{
  for (;; kids++) {
    size_t len = strcspn(kids, " ");
    bool many = len && kids[len - 1] == '*';
    if (many || !*kids)
      return "";
    if (i-- == 0) {
      snprintf(buf, size, "%.*s", (int)(kids[len - 1] == '?' ? len - 1 : len), kids);
      return buf;
    }
    kids += len;
    if (!*kids)
      return "";
  }
}

static void
print_string(Buf *out, const char *s)
{
  buf_putc(out, '"');
  for (; *s; s++)
    if (*s == '"' || *s == '\\')
      buf_printf(out, "\\%c", *s);
    else if ((u8)*s < 32)
      buf_printf(out, "\\x%02x", (u8)*s);
    else
      buf_putc(out, *s);
  buf_putc(out, '"');
}

static void
print_payload(Buf *out, const Node *n)
{
  if (n->kind == N_INT)
    buf_printf(out, " %lld", (long long)n->ival);
  else if (n->kind == N_BOOL)
    buf_puts(out, n->ival ? " true" : " false");
  else if (n->kind == N_FLOAT)
    buf_printf(out, " %.17g", n->fval);
  else if (n->op != O_NONE)
    buf_printf(out, " %s", oper_info[n->op].text);
  if (n->kind == N_STR || n->kind == N_IMPORT) {
    buf_putc(out, ' ');
    print_string(out, n->name ? n->name : "");
  } else if (n->name) {
    buf_printf(out, " %s", n->name);
  }
}

static void
print_node(Buf *out, const Node *n, const char *label, int indent)
{
  for (int i = 0; i < indent; i++)
    buf_puts(out, "  ");
  if (*label)
    buf_printf(out, "%s: ", label);
  buf_puts(out, node_names[n->kind]);
  print_payload(out, n);
  buf_putc(out, '\n');
  for (u32 i = 0; i < n->nkids; i++) {
    char buf[32];
    if (n->kids[i])
      print_node(out, n->kids[i], kid_label(node_kids[n->kind], i, buf, sizeof buf), indent + 1);
  }
}

/* One node a line, children indented under their names. */
void
ast_print(Buf *out, const Node *n)
{
  print_node(out, n, "", 0);
}

/* ---- what loops carry ---- */

typedef VEC(const char *) Names;

static bool
names_have(const Names *v, const char *name)
{
  for (u32 i = 0; i < v->len; i++)
    if (v->data[i] == name)
      return true;
  return false;
}

static void
names_add(Arena *a, Names *v, const char *name)
{
  if (name && !names_have(v, name))
    vec_push(a, v, name);
}

/* Whether name is among the kids of a list of names from `first` on. */
static bool
among_names(const Node *list, u32 first, const char *name)
{
  for (u32 i = first; i < list->nkids; i++)
    if (list->kids[i]->kind == N_LIST ? among_names(list->kids[i], 0, name) : list->kids[i]->name == name)
      return true;
  return false;
}

static bool
declares(const Node *stmt, const char *name)
{
  if ((stmt->kind == N_LETS || stmt->kind == N_VARS) && among_names(stmt, 1, name))
    return true;
  return (stmt->kind == N_LET || stmt->kind == N_VAR) && stmt->name == name;
}

static bool
declared_before(const Node *block, u32 end, const char *name)
{
  for (u32 i = 0; i < end; i++)
    if (declares(block->kids[i], name))
      return true;
  return false;
}

static void
assigned_in_kids(Arena *a, Node *n, Names *out)
{
  for (u32 i = 0; i < n->nkids; i++) {
    const char *const *names;
    u32 count = n->kids[i] ? ast_assigned(a, n->kids[i], &names) : 0;
    for (u32 k = 0; k < count; k++) {
      bool own = (n->kind == N_BLOCK && declared_before(n, i, names[k])) || (n->kind == N_FOR && names[k] == n->name);
      if (!own)
        names_add(a, out, names[k]);
    }
  }
}

static bool
is_statement(const Node *n)
{
  return n->kind >= N_BLOCK && n->kind <= N_EVAL;
}

/* What x.a.b is a part of: x. */
const Node *
ast_root(const Node *n)
{
  while (n->kind == N_FIELD)
    n = kid(n, 0);
  return n;
}

/* What an assignment to target changes. */
static void
target_names(Arena *a, Names *out, const Node *target)
{
  if (target->kind != N_TUPLE)
    names_add(a, out, ast_root(target)->name);
  for (u32 i = 0; target->kind == N_TUPLE && i < target->nkids; i++)
    target_names(a, out, target->kids[i]);
}

/* The answer is kept in the node. */
u32
ast_assigned(Arena *a, Node *n, const char *const **names)
{
  if (!n->has_assigned && is_statement(n)) {
    Names v = {0};
    if (n->kind == N_ASSIGN)
      target_names(a, &v, n->kids[0]);
    else
      assigned_in_kids(a, n, &v);
    n->assigned = v.data;
    n->nassigned = v.len;
    n->has_assigned = true;
  }
  *names = n->assigned;
  return n->nassigned;
}

/* ---- returns and other ways out ---- */

static bool
is_loop(const Node *n)
{
  return n->kind == N_FOR || n->kind == N_WHILE;
}

/* A statement of these kinds (bits) is somewhere in n. */
static bool
has_any(const Node *n, u64 kinds)
{
  const u64 of_loop = 1ull << N_BREAK | 1ull << N_CONTINUE;
  if (kinds >> n->kind & 1)
    return true;
  if (!is_statement(n))
    return false;
  if (is_loop(n))
    kinds &= ~of_loop;
  for (u32 i = 0; kinds && i < n->nkids; i++)
    if (n->kids[i] && has_any(n->kids[i], kinds))
      return true;
  return false;
}

/* Every way through n ends in a statement of these kinds. */
static bool
ends_in(const Node *n, u64 kinds)
{
  if (kinds >> n->kind & 1)
    return true;
  if (n->kind == N_IF)
    return kid(n, 2) && ends_in(kid(n, 1), kinds) && ends_in(kid(n, 2), kinds);
  if (n->kind == N_BLOCK)
    for (u32 i = 0; i < n->nkids; i++)
      if (ends_in(n->kids[i], kinds))
        return true;
  return false;
}

bool
ast_may_return(const Node *n)
{
  return has_any(n, 1ull << N_RETURN);
}

bool
ast_must_return(const Node *n)
{
  return ends_in(n, 1ull << N_RETURN);
}

bool
ast_may_break(const Node *n)
{
  return has_any(n, 1ull << N_BREAK);
}

bool
ast_may_exit(const Node *n)
{
  return has_any(n, 1ull << N_RETURN | 1ull << N_BREAK | 1ull << N_CONTINUE);
}

bool
ast_must_exit(const Node *n)
{
  return ends_in(n, 1ull << N_RETURN | 1ull << N_BREAK | 1ull << N_CONTINUE);
}
