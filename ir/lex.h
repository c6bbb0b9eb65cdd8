/* lex.h - the tokens of .tir text; private to parse.c. */
#ifndef TILEC_IR_LEX_H
#define TILEC_IR_LEX_H
#include "base.h"

typedef enum TokenKind {
  TOK_END, TOK_NAME, TOK_VALUE, TOK_ALIAS, TOK_NUMBER, TOK_STRING, TOK_PUNCT, TOK_BAD
} TokenKind;                 /* VALUE: %x, ALIAS: #x */
typedef struct Token {
  TokenKind kind;
  Span at;
  char punct;                /* PUNCT: which character */
  bool first;                /* first token of its line: ends the statement before it */
} Token;
typedef struct Lexer { const char *text; u32 base, len, pos; } Lexer;

/* The next token; after the text only TOK_END. */
Token lex_next(Lexer *l);
/* The token's text, in place. */
const char *lex_text(const Lexer *l, Token t, u32 *len);
/* Decodes a STRING token into `a`; NULL for an unknown escape or a NUL. */
const char *lex_string(Arena *a, const Lexer *l, Token t);
/* Decodes an integer NUMBER, decimal or hexadecimal: magnitude and sign; false if malformed or above 64 bits. */
bool lex_integer(const Lexer *l, Token t, u64 *magnitude, bool *negative);
#endif
