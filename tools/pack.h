/* pack.h - bytes in fewer bytes, as tilert_aot_unpack takes them. */
#ifndef TILEC_PACK_H
#define TILEC_PACK_H
#include <stddef.h>
/* malloc'ed; NULL: out of memory. */
unsigned char *pack_bytes(const unsigned char *data, size_t n, size_t *packed);
#endif
