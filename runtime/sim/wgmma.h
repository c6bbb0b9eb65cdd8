/* wgmma.h - sums of products of a warpgroup. */
#ifndef TILERT_SIM_WGMMA_H
#define TILERT_SIM_WGMMA_H
#include "internal.h"

enum { WG_ROWS = 16, WG_N = 256, WG_K = 64 };

/* Of one product: its depth and columns, and the exponents of its factors. wild: some are no numbers, or products may be too large. */
typedef struct Exponents {
  uint32_t k, n;
  int bits;                            /* that are kept below the largest exponent */
  bool wild;
  int16_t a[WG_ROWS][WG_K], b[WG_K][WG_N];
} Exponents;

/* Of a product whose A has so many columns; e has k and n. */
void wgmma_exponents(Type t, uint32_t depth, const float a[][WG_K], const float b[][WG_N], Exponents *e);
/* c += the products of row i, which is a, and b. */
void wgmma_add_row(const Exponents *e, uint32_t i, const float *a, const float b[][WG_N], float *c);
#endif
