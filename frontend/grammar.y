/* grammar.y - the grammar: every action is one constructor call; meaning is found in lower_*.c. Types are expressions.
 * Recovery: at `;` and `}` inside bodies, at the block behind the head of a kernel, loop or if, at the next declaration outside. */
%define api.pure full
%define api.prefix {tl_}
%define api.token.prefix {TL_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Parser *p}

%code requires {
#include "parser.h"
}
%code provides {
int tl_lex(TL_STYPE *value, TL_LTYPE *at, Parser *p);
}
%code {
#define YYINITDEPTH 4000          /* fixed and on the stack: too deep a text ends in tl_error, nothing to free */
#define YYMAXDEPTH 4000
#define YYLLOC_DEFAULT(cur, rhs, n) \
  ((cur) = (n) ? (Span){YYRHSLOC(rhs, 1).lo, YYRHSLOC(rhs, n).hi} : (Span){YYRHSLOC(rhs, 0).hi, YYRHSLOC(rhs, 0).hi})
static void tl_error(Span *at, Parser *p, const char *message);
/* yyloc is what bison calls @$ in the code around the actions. */
#define ADD(list, x) parser_add(p, list, x)
#define NODE0(kind) parser_node(p, kind, yyloc, 0)
#define NODE1(kind, x) parser_node(p, kind, yyloc, 1, x)
#define NODE2(kind, x, y) parser_node(p, kind, yyloc, 2, x, y)
#define NODE3(kind, x, y, z) parser_node(p, kind, yyloc, 3, x, y, z)
#define NAMED(kind, name, ...) parser_named(p, kind, yyloc, name, __VA_ARGS__)
#define JOIN(kind, x, list) parser_join(p, kind, yyloc, NULL, x, list)
#define BIN(op, a, at, b) parser_oper(p, N_BINARY, yyloc, at, op, a, b)
#define PRE(op, at, a) parser_oper(p, N_UNARY, yyloc, at, op, a, NULL)
#define SET(op, a, at, b) parser_oper(p, N_ASSIGN, yyloc, at, op, a, b)
}

%union { Node *node; }

%token KERNEL "kernel" FN "fn" CONST "const" TYPE "type" IMPORT "import" STRUCT "struct" LET "let" VAR "var" IF "if" ELSE "else"
%token FOR "for" IN "in" WHILE "while" RETURN "return" BREAK "break" CONTINUE "continue" NONE "None"
%token SPECIALIZE "specialize"
%token ADD_TO "+=" SUB_TO "-=" MUL_TO "*=" DIV_TO "/=" REM_TO "%=" AND_TO "&=" OR_TO "|=" XOR_TO "^=" SHL_TO "<<=" SHR_TO ">>="
%token ARROW "->" LAND "&&" LOR "||" EQ "==" NE "!=" LE "<=" GE ">=" SHL "<<" SHR ">>" DOT "."
%token <node> NAME "a name" TENSOR "tensor" NUMBER "a number" STRING "a string" TRUE "true" FALSE "false"
%token YYEOF 0 "the end of the file"

%type <node> file decl fields field_list field params param_list param ptype facts attrs attr result block stmts stmt else args arg_list arg
%type <node> expr primary type types type_list items item_list item list names bound default value_opt simple teams team

%right "->"
%right '?'
%left "||"
%left "&&"
%left '|'
%left '^'
%left '&'
%left "==" "!="
%left '<' "<=" '>' ">="
%left "<<" ">>"
%left '+' '-'
%left '*' '/' '%'
%precedence UNARY

%%

start: file { p->root = $1; };
file:
  %empty                       { $$ = NODE0(N_FILE); }
| file decl                    { $$ = ADD($1, $2); }
| file error decl              { $$ = ADD($1, $3); }
| file error YYEOF             { $$ = $1; YYABORT; }
;

decl:
  "kernel" NAME '(' params ')' attrs block     { $$ = NAMED(N_KERNEL, $2, 3, $4, $6, $7); }
| "fn" NAME '(' params ')' result block        { $$ = NAMED(N_FN, $2, 3, $4, $6, $7); }
| "struct" NAME '{' fields '}'                 { $$ = NAMED(N_STRUCT, $2, 1, $4); }
| "const" NAME ptype '=' expr ';'              { $$ = NAMED(N_CONST, $2, 2, $3, $5); }
| "import" STRING ';'                          { $$ = NAMED(N_IMPORT, $2, 0, NULL); }
| "kernel" error block                         { $$ = NODE0(N_ERROR); yyerrok; }
| "fn" error block                             { $$ = NODE0(N_ERROR); yyerrok; }
;
fields: %empty { $$ = NODE0(N_PARAMS); } | field_list | field_list ',' { $$ = $1; };
field_list: field { $$ = NODE1(N_PARAMS, $1); } | field_list ',' field { $$ = ADD($1, $3); };
field: NAME ptype default      { $$ = NAMED(N_PARAM, $1, 2, $2, $3); };
result: %empty { $$ = NULL; } | "->" type { $$ = $2; };
ptype: %empty { $$ = NULL; } | ':' type { $$ = $2; };

params: %empty { $$ = NODE0(N_PARAMS); } | param_list | param_list ',' { $$ = $1; };
param_list:
  param                        { $$ = NODE1(N_PARAMS, $1); }
| param_list ',' param         { $$ = ADD($1, $3); }
;
param:
  NAME ptype facts default     { $$ = NAMED(N_PARAM, $1, 3, $2, $4, $3); }
| "type" NAME default          { $$ = NAMED(N_TPARAM, $2, 1, $3); }
| "const" NAME ptype default   { $$ = NAMED(N_CPARAM, $2, 2, $3, $4); }
;
default: %empty { $$ = NULL; } | '=' expr { $$ = $2; };
facts: %empty { $$ = NULL; } | attr attrs { $$ = ADD($2, $1); };
attrs: %empty { $$ = NODE0(N_ATTRS); } | attrs attr { $$ = ADD($1, $2); };
attr: NAME '(' args ')'        { $$ = parser_join(p, N_ATTR, @$, $1, NULL, $3); };

block:
  '{' stmts '}'                { $$ = $2; $$->span = @$; }
| '{' stmts error '}'          { $$ = $2; $$->span = @$; }
;
stmts: %empty { $$ = NODE0(N_BLOCK); } | stmts stmt { $$ = $2 ? ADD($1, $2) : $1; };
stmt:
  simple ';'                   { $$ = $1; }
| ';'                          { $$ = NULL; }
| block
| "if" expr block else         { $$ = NODE3(N_IF, $2, $3, $4); }
| "for" NAME "in" expr block   { $$ = NAMED(N_FOR, $2, 2, $4, $5); }
| "while" expr block           { $$ = NODE2(N_WHILE, $2, $3); }
| "specialize" '{' teams '}'   { $$ = $3; $$->span = @$; }
| "if" error block else        { $$ = NODE0(N_ERROR); yyerrok; }
| "if" error ';'               { $$ = NODE0(N_ERROR); yyerrok; }
| "for" error block            { $$ = NODE0(N_ERROR); yyerrok; }
| "for" error ';'              { $$ = NODE0(N_ERROR); yyerrok; }
| "while" error block          { $$ = NODE0(N_ERROR); yyerrok; }
| "while" error ';'            { $$ = NODE0(N_ERROR); yyerrok; }
| error ';'                    { $$ = NODE0(N_ERROR); }
;
teams: team { $$ = NODE1(N_SPECIALIZE, $1); } | teams team { $$ = ADD($1, $2); };
team: attr attrs block         { $$ = NODE2(N_TEAM, ADD($2, $1), $3); };
simple:
  "let" NAME ptype '=' expr    { $$ = NAMED(N_LET, $2, 2, $3, $5); }
| "let" '(' names ')' '=' expr { $$ = JOIN(N_LETS, $6, $3); }
| "var" NAME ptype '=' expr    { $$ = NAMED(N_VAR, $2, 2, $3, $5); }
| "var" '(' names ')' '=' expr { $$ = JOIN(N_VARS, $6, $3); }
| "return" value_opt           { $$ = NODE1(N_RETURN, $2); }
| "break"                      { $$ = NODE0(N_BREAK); }
| "continue"                   { $$ = NODE0(N_CONTINUE); }
| expr                         { $$ = NODE1(N_EVAL, $1); }
| expr '=' expr                { $$ = SET(O_NONE, $1, @2, $3); }
| expr "+=" expr               { $$ = SET(O_ADD, $1, @2, $3); }
| expr "-=" expr               { $$ = SET(O_SUB, $1, @2, $3); }
| expr "*=" expr               { $$ = SET(O_MUL, $1, @2, $3); }
| expr "/=" expr               { $$ = SET(O_DIV, $1, @2, $3); }
| expr "%=" expr               { $$ = SET(O_REM, $1, @2, $3); }
| expr "&=" expr               { $$ = SET(O_AND, $1, @2, $3); }
| expr "|=" expr               { $$ = SET(O_OR, $1, @2, $3); }
| expr "^=" expr               { $$ = SET(O_XOR, $1, @2, $3); }
| expr "<<=" expr              { $$ = SET(O_SHL, $1, @2, $3); }
| expr ">>=" expr              { $$ = SET(O_SHR, $1, @2, $3); }
;
value_opt: %empty { $$ = NULL; } | expr;
names: bound { $$ = NODE1(N_LIST, $1); } | names ',' bound { $$ = ADD($1, $3); };
bound: NAME | '(' names ')' { $$ = $2; };
else:
  %empty                       { $$ = NULL; }
| "else" block                 { $$ = $2; }
| "else" "if" expr block else  { $$ = NODE3(N_IF, $3, $4, $5); }
;

type:
  NAME
| NAME '[' items ']'           { $$ = JOIN(N_INDEX, $1, $3); }
| '*' type %prec UNARY         { $$ = NODE1(N_PTR, $2); }
| '(' type ')' '[' items ']'   { $$ = JOIN(N_INDEX, $2, $5); }
| '(' type ')'                 { $$ = $2; }
| '(' type ',' types ')'       { $$ = JOIN(N_TUPLE, $2, $4); }
| TENSOR '<' type ',' primary '>' { $$ = NAMED(N_GENERIC, $1, 2, $3, $5); }
;
types: %empty { $$ = NODE0(N_LIST); } | type_list | type_list ',' { $$ = $1; };
type_list: type { $$ = NODE1(N_LIST, $1); } | type_list ',' type { $$ = ADD($1, $3); };

expr:
  primary
| '-' expr %prec UNARY         { $$ = PRE(O_NEG, @1, $2); }
| '~' expr %prec UNARY         { $$ = PRE(O_INV, @1, $2); }
| '!' expr %prec UNARY         { $$ = PRE(O_NOT, @1, $2); }
| '*' expr %prec UNARY         { $$ = NODE1(N_PTR, $2); }
| expr '+' expr                { $$ = BIN(O_ADD, $1, @2, $3); }
| expr '-' expr                { $$ = BIN(O_SUB, $1, @2, $3); }
| expr '*' expr                { $$ = BIN(O_MUL, $1, @2, $3); }
| expr '/' expr                { $$ = BIN(O_DIV, $1, @2, $3); }
| expr '%' expr                { $$ = BIN(O_REM, $1, @2, $3); }
| expr '&' expr                { $$ = BIN(O_AND, $1, @2, $3); }
| expr '|' expr                { $$ = BIN(O_OR, $1, @2, $3); }
| expr '^' expr                { $$ = BIN(O_XOR, $1, @2, $3); }
| expr "<<" expr               { $$ = BIN(O_SHL, $1, @2, $3); }
| expr ">>" expr               { $$ = BIN(O_SHR, $1, @2, $3); }
| expr "==" expr               { $$ = BIN(O_EQ, $1, @2, $3); }
| expr "!=" expr               { $$ = BIN(O_NE, $1, @2, $3); }
| expr '<' expr                { $$ = BIN(O_LT, $1, @2, $3); }
| expr "<=" expr               { $$ = BIN(O_LE, $1, @2, $3); }
| expr '>' expr                { $$ = BIN(O_GT, $1, @2, $3); }
| expr ">=" expr               { $$ = BIN(O_GE, $1, @2, $3); }
| expr "&&" expr               { $$ = BIN(O_LAND, $1, @2, $3); }
| expr "||" expr               { $$ = BIN(O_LOR, $1, @2, $3); }
| expr '?' expr ':' expr %prec '?'  { $$ = NODE3(N_COND, $1, $3, $5); }
| expr "->" expr               { $$ = parser_lambda(p, yyloc, @2, $1, $3); }
| expr "->" block              { $$ = parser_lambda(p, yyloc, @2, $1, $3); }
;
primary:
  NAME | TENSOR | NUMBER | STRING | TRUE | FALSE
| "None"                       { $$ = NODE0(N_NONE); }
| primary '(' args ')'         { $$ = JOIN(N_CALL, $1, $3); }
| primary '[' items ']'        { $$ = JOIN(N_INDEX, $1, $3); }
| primary "." NAME             { $$ = NAMED(N_FIELD, $3, 1, $1); }
| '(' expr ')'                 { $$ = $2; $$->paren = true; }
| '(' ')'                      { $$ = NODE0(N_TUPLE); }
| '(' expr ',' ')'             { $$ = NODE1(N_TUPLE, $2); }
| '(' expr ',' list ')'        { $$ = JOIN(N_TUPLE, $2, $4); }
| '(' expr ',' list ',' ')'    { $$ = JOIN(N_TUPLE, $2, $4); }
| '(' error ')'                { $$ = NODE0(N_ERROR); }
| '[' list ']'                 { $$ = $2; $$->span = @$; }
| '[' list ',' ']'             { $$ = $2; $$->span = @$; }
| '[' ']'                      { $$ = NODE0(N_LIST); }
;
list: expr { $$ = NODE1(N_LIST, $1); } | list ',' expr { $$ = ADD($1, $3); };
args: %empty { $$ = NODE0(N_LIST); } | arg_list | arg_list ',' { $$ = $1; };
arg_list: arg { $$ = NODE1(N_LIST, $1); } | arg_list ',' arg { $$ = ADD($1, $3); };
arg: expr | NAME '=' expr { $$ = NAMED(N_ARG, $1, 1, $3); };
items: item_list;
item_list: item { $$ = NODE1(N_LIST, $1); } | item_list ',' item { $$ = ADD($1, $3); };
item:
  expr
| value_opt ':' value_opt      { $$ = NODE2(N_ALL, $1, $3); }
;

%%

/* Only "memory exhausted" comes here: the text nests deeper than the parser's stack. */
static void
tl_error(Span *at, Parser *p, const char *message)
{
  (void)message;
  diag(p->c, *at, E_TOO_DEEP, "this text");
}

static int
yyreport_syntax_error(const yypcontext_t *ctx, Parser *p)
{
  enum { MOST = 64 };
  yysymbol_kind_t want[MOST];
  const char *names[MOST];
  int n = yypcontext_expected_tokens(ctx, want, MOST);
  for (int i = 0; i < n; i++)
    names[i] = yysymbol_name(want[i]);
  yysymbol_kind_t got = yypcontext_token(ctx);
  parser_syntax_error(p, *yypcontext_location(ctx), got == YYSYMBOL_YYEMPTY ? "" : yysymbol_name(got),
                      n > 0 ? (u32)n : 0, names);
  return 0;
}
