/* unicode.h - code points of UTF-8, and of which kind they are. */
#ifndef LLAMA_UNICODE_H
#define LLAMA_UNICODE_H
#include "common.h"

typedef enum CharKind { CHAR_LETTER, CHAR_NUMBER, CHAR_SPACE, CHAR_OTHER, CHAR_END } CharKind;
typedef struct Char { uint32_t code; CharKind kind; uint8_t bytes; } Char;

/* What stands at `at`; CHAR_END of no bytes at the end. A byte that is no UTF-8 is one of another kind. */
Char char_at(const char *at, const char *end);
#endif
