/* expr.h - small integer expressions: + - * / % ( ), cdiv(a, b), min(a, b), max(a, b), numbers and names. */
#ifndef TILEC_EXPR_H
#define TILEC_EXPR_H
#include <stddef.h>
#include <stdint.h>

/* 1 and *value if the name is known, else 0. The name is not NUL-terminated. */
typedef int (*ExprLookup)(void *user, const char *name, size_t len, int64_t *value);

/* Evaluate text[0..len). Division rounds towards zero. 0 on success; else -1 and a sentence in message.
 * lookup may be NULL: no names. */
int expr_eval(const char *text, size_t len, ExprLookup lookup, void *user, int64_t *out, char *message, size_t size);
#endif
