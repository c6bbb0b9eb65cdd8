/* check.h - the whole test framework: CHECK stops at the first thing that does not hold. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* The call gives this status, and the error's message contains text. */
#define CHECK_FAILS(call, wanted, text)                                         \
  do {                                                                          \
    memset(&err, 0, sizeof err);                                                \
    int got_ = (call);                                                          \
    if (got_ != (wanted) || err.status != (wanted) || !strstr(err.message, text)) { \
      fprintf(stderr, "%s:%d: status %d, expected %d; message \"%s\", expected \"%s\"\n", __FILE__, __LINE__, \
              got_, (int)(wanted), err.message, text);                          \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#define CHECK_OK(call)                                                          \
  do {                                                                          \
    int got_ = (call);                                                          \
    if (got_) {                                                                 \
      fprintf(stderr, "%s:%d: status %d: %s\n", __FILE__, __LINE__, got_, err.message); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)
#endif
