/* textfile.h - whole files into memory. */
#ifndef TILEC_TEXTFILE_H
#define TILEC_TEXTFILE_H
#include <stddef.h>
/* The bytes of a file ("-": standard input) with a NUL after them, malloc'ed; NULL with errno set. */
char *textfile_read(const char *path, size_t *len);
#endif
