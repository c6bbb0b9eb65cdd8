/* common.h - what every file here takes: errors as values, memory that goes at once, text that is not terminated.
 *
 * A function that can fail returns 0, or -1 with a sentence in *fail. Memory is taken of a Memory and goes with it; nothing is freed alone. */
#ifndef LLAMA_COMMON_H
#define LLAMA_COMMON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAIL_TEXT = 320 };
typedef struct Fail { char message[FAIL_TEXT]; } Fail;
/* Writes the sentence and returns -1: `return fail_with(fail, ...)`. */
int fail_with(Fail *fail, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct MemoryBlock MemoryBlock;
typedef struct Memory { MemoryBlock *last; } Memory;
/* n objects of size bytes, zeroed; NULL with a sentence if there is no room for them. */
void *memory_take(Memory *a, size_t n, size_t size, Fail *fail);
/* at, count objects of size bytes, with room for `more` others: where it is, or a copy of at least twice its room; NULL with a sentence. */
void *memory_grow(Memory *a, void *at, size_t count, size_t more, size_t *room, size_t size, Fail *fail);
void memory_free(Memory *a);

/* One without characters may have no address. */
typedef struct Text { const char *at; size_t len; } Text;
bool texts_same(Text a, Text b);
bool text_is(Text t, const char *s);
/* At most this much of a name goes into a message: `"%.*s", TEXT_ARGS(name)`. */
enum { NAME_SHOWN = 64 };
#define TEXT_ARGS(t) (int)((t).len < NAME_SHOWN ? (t).len : NAME_SHOWN), (t).at

/* A file in memory, read-only. */
typedef struct Mapping { const uint8_t *bytes; size_t size; } Mapping;
int mapping_open(Mapping *m, const char *path, Fail *fail);
void mapping_close(Mapping *m);
#endif
