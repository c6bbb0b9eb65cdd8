/* textfile.h - whole files into memory. */
#ifndef TILEC_TEXTFILE_H
#define TILEC_TEXTFILE_H
#include <stddef.h>
/* A program is at most this long: the compiler and the JIT say so of what is longer. */
enum { TEXTFILE_MOST = (16 << 20) + 1 };
/* The first `most` bytes of a file or pipe ("-": standard input) with a NUL after them, malloc'ed; NULL with errno set. */
char *textfile_read(const char *path, size_t most, size_t *len);
#endif
