/* check.h - CHECK(cond, format, ...) counts what does not hold, says what it was about, and goes on. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H
#include <stdio.h>

static unsigned failures;

#define CHECK(cond, ...) \
  do { \
    if (!(cond)) { \
      failures++; \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      fprintf(stderr, __VA_ARGS__); \
      fputc('\n', stderr); \
    } \
  } while (0)
#endif
