/* cubin.h - PTX to a cubin through the toolkit's ptxas, found on the PATH ($TILEC_PTXAS overrides). */
#ifndef TILEC_CUBIN_H
#define TILEC_CUBIN_H
#include <stddef.h>
/* The cubin, malloc'ed, or NULL with a message (what ptxas said, or that it is not there). */
char *cubin_assemble(const char *ptx, size_t len, const char *target, size_t *out_len, char *message, size_t message_size);
#endif
