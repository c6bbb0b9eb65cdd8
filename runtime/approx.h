/* approx.h - the hardware's approximations (PTX ISA, the .approx forms, and div.full) bit for bit, from the tables of approx.def. */
#ifndef APPROX_H
#define APPROX_H
#include <stdbool.h>
#include <stdint.h>

typedef enum ApproxFn {
  APPROX_RCP, APPROX_RSQRT, APPROX_SQRT, APPROX_EX2, APPROX_LG2, APPROX_SIN, APPROX_COS, APPROX_TANH, APPROX_FNS
} ApproxFn;

/* Whether there are tables for a function. */
bool approx_known(ApproxFn f);

/* The bits of f of the f32 with bits x, by the form with .ftz or the one without; approx_known(f). Nans are 0x7fffffff. */
uint32_t approx_f32(ApproxFn f, bool ftz, uint32_t x);

/* The same of the forms of 16 bits, which ex2 and tanh have; x is an f16 or a bf16 (ex2: with .ftz). Nans are 0x7fff. */
uint16_t approx_16(ApproxFn f, bool bf16, uint16_t x);

/* The bits of x / y by div.full, or by div.approx; approx_known(APPROX_RCP). */
uint32_t approx_div(bool full, bool ftz, uint32_t x, uint32_t y);

/* The bits of x / y by rcp.approx of y's mantissa and a step that takes what is left into account: the language's near_div. */
uint32_t approx_near_div(uint32_t x, uint32_t y);
#endif
