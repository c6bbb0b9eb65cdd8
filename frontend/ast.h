/* ast.h - the syntax tree: text without meaning. One node type; which children a node has is in ast.def. */
#ifndef TILEC_AST_H
#define TILEC_AST_H
#include "base.h"

typedef enum NodeKind {
#define NODE(id, name, kids) N_##id,
#include "ast.def"
#undef NODE
  N_COUNT
} NodeKind;

typedef enum OperClass { OC_NONE, OC_ARITH, OC_BITS, OC_SHIFT, OC_CMP, OC_LOGIC, OC_UNARY } OperClass;
typedef enum Oper {
#define OPER(id, text, cls, ir) O_##id,
#include "ast.def"
#undef OPER
  O_COUNT
} Oper;
typedef struct OperInfo { const char *text; OperClass cls; const char *ir; } OperInfo;
extern const OperInfo oper_info[O_COUNT];

/* Of an interned name. */
static inline u32
name_hash(const char *name)
{
  return ((u32)((uintptr_t)name >> 3) * 0x9e3779b1u) >> 7;
}

/* Deepest nesting of the tree: everything that walks it may recurse. */
enum { AST_DEPTH_MAX = 500 };

typedef struct Node Node;
struct Node {
  NodeKind kind;
  Oper op;
  u32 depth;              /* 1 + the deepest child */
  bool paren;             /* written in parentheses */
  Span span;              /* all of it */
  Span at;                /* the name or the operator; else span */
  const char *name;       /* interned; NULL if none */
  i64 ival;
  bool huge;              /* INT: ival holds the bits of a u64 above the largest i64 */
  double fval;
  u32 nkids;
  Node **kids;            /* absent ones are NULL */
  const char **assigned;  /* filled on demand by ast_assigned */
  u32 nassigned;
  bool has_assigned;
};
typedef VEC(Node *) NodeList;

static inline Node *
kid(const Node *n, u32 i)
{
  return i < n->nkids ? n->kids[i] : NULL;
}

/* A node of `kind` with n children (NULL: absent). */
Node *ast_node(Arena *a, NodeKind kind, Span span, u32 n, Node *const *kids);
/* Append `more` to n's children. */
void ast_append(Arena *a, Node *n, Node *more);
void ast_print(Buf *out, const Node *n);
/* Names assigned in n (a block or any statement) that n does not itself declare: the variables a loop carries. */
u32 ast_assigned(Arena *a, Node *n, const char *const **names);
/* What x.a.b is a part of: x. */
const Node *ast_root(const Node *n);
/* A return statement is somewhere in n. */
bool ast_may_return(const Node *n);
/* Every way through n ends in a return statement. */
bool ast_must_return(const Node *n);
/* Of statements in the body of a loop: some, every way through n leaves the turn by break, continue or return; some way
 * leaves the loop by break. */
bool ast_may_exit(const Node *n);
bool ast_must_exit(const Node *n);
bool ast_may_break(const Node *n);
#endif
