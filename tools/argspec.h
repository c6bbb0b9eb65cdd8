/* argspec.h - arrays described in a word, as on tilerun's command line:
 *   @FILE.npy  DTYPE@FILE.npy  zeros:DTYPE:SHAPE  ones:DTYPE:SHAPE  empty:DTYPE:SHAPE  full:DTYPE:VALUE:SHAPE
 *   arange:DTYPE:N  rand:DTYPE:SHAPE  uniform:DTYPE:LO:HI:SHAPE  randint:DTYPE:LO:HI:SHAPE      SHAPE is 4x8x2
 *
 * Random numbers: element i of the argument NAME is z = splitmix64(seed + fnv1a64(NAME) + i) where
 *   splitmix64(x): x += 0x9e3779b97f4a7c15; x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
 *                  x = (x ^ x >> 27) * 0x94d049bb133111eb; x ^ x >> 31
 * rand is (z >> 40) / 2^24, uniform LO + (HI - LO) * rand, randint LO + z mod (HI - LO); all modulo 2^64, then
 * rounded to the type. They do not depend on the machine or on the other arguments.
 */
#ifndef TILEC_ARGSPEC_H
#define TILEC_ARGSPEC_H
#include "npy.h"

/* Whether the word names an array and not a number. */
int argspec_is_array(const char *word);
/* The extents of a SHAPE, ARRAY_DIMS at most: how many; -1: it is none. */
int argspec_shape(const char *text, size_t *shape);
/* 0, or -1 and a sentence in message. name: of the argument. *empty (may be NULL): the contents do not matter. */
int argspec_create(const char *name, const char *word, uint64_t seed, Array *out, int *empty, char *message,
                   size_t size);
#endif
