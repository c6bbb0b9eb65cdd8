/* compare.h - do two arrays agree? */
#ifndef TILEC_COMPARE_H
#define TILEC_COMPARE_H
#include "npy.h"

/* 1 if each got is within atol + rtol * |want| of want, and not-a-numbers and infinities match; negative
 * tolerances mean the type's own. message gets the largest errors and the first element that differs. */
int compare_arrays(const Array *got, const Array *want, double rtol, double atol, char *message, size_t size);
#endif
