/* parser.h - text to syntax tree: what the scanner, the grammar and parser.c share. Private to the frontend. */
#ifndef TILEC_PARSER_H
#define TILEC_PARSER_H
#include "ast.h"

typedef struct Parser {
  Ctx *c;
  Arena *a;
  u32 base;               /* offset of the text in the source space */
  u32 pos;                /* scanner: offset of the end of the current token */
  u32 comment;            /* scanner: where the open comment began */
  Span last[4];           /* the last tokens, the latest first */
  Span first;             /* the first token of the statement */
  Node *root;
  bool too_deep;          /* reported once */
  u32 skipped;            /* end of what was complained about, if what follows on its line makes no sense either */
  bool torn;              /* a string without an end took the rest of its line: what is missing now was in it */
} Parser;

/* The tree of the file at source offset base; NULL after reporting errors. Nodes live in a. */
Node *parse_file(Ctx *c, Arena *a, u32 base);
/* The same for len bytes from the offset base. */
Node *parse_range(Ctx *c, Arena *a, u32 base, size_t len);

/* For the grammar's actions. */
Node *parser_node(Parser *p, NodeKind kind, Span span, u32 n, ...);     /* n children, each Node * or NULL */
Node *parser_named(Parser *p, NodeKind kind, Span span, Node *name, u32 n, ...);
Node *parser_oper(Parser *p, NodeKind kind, Span span, Span at, Oper op, Node *a, Node *b);
Node *parser_add(Parser *p, Node *list, Node *more);
/* params -> body, where body is an expression or a block: an anonymous function. */
Node *parser_lambda(Parser *p, Span span, Span arrow, Node *params, Node *body);
/* A node of `first` (unless NULL) and the list's children. */
Node *parser_join(Parser *p, NodeKind kind, Span span, Node *name, Node *first, const Node *list);
/* got "": nothing known; expected: the names of the tokens that could stand here. */
void parser_syntax_error(Parser *p, Span at, const char *got, u32 n, const char *const *expected);
/* For the scanner. */
Node *parser_int(Parser *p, Span at, const char *s, u32 len, int base);
Node *parser_float(Parser *p, Span at, const char *s);
Node *parser_name(Parser *p, Span at, const char *s, u32 len);
Node *parser_string(Parser *p, Span at, const char *s, u32 len);
void parser_bad_char(Parser *p, Span at, const char *s);
#endif
