/* approx.h - the hardware's approximations (PTX ISA, the .approx forms of f32) bit for bit, from the tables of approx.def. */
#ifndef APPROX_H
#define APPROX_H
#include <stdbool.h>
#include <stdint.h>

typedef enum ApproxFn {
  APPROX_RCP, APPROX_RSQRT, APPROX_SQRT, APPROX_EX2, APPROX_LG2, APPROX_SIN, APPROX_COS, APPROX_FNS
} ApproxFn;

/* Whether there are tables for a function. */
bool approx_known(ApproxFn f);

/* The bits of f of the f32 with bits x, by the form with .ftz or the one without; approx_known(f). Nans are 0x7fffffff. */
uint32_t approx_f32(ApproxFn f, bool ftz, uint32_t x);
#endif
