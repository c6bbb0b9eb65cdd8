/* chains.h - numbers by hash: a table over an array that its owner keeps, whose elements were added in the order of their numbers. */
#ifndef TILERT_SIM_CHAINS_H
#define TILERT_SIM_CHAINS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ChainLink { uint32_t hash, next; } ChainLink;     /* next in its bucket: number + 1 */
typedef struct Chains { uint32_t *bucket; size_t nbuckets; ChainLink *link; size_t n, cap; } Chains;

/* The newest number of this hash, + 1; 0: there is none. */
uint32_t chains_first(const Chains *c, uint32_t hash);
/* The next older number of the same hash, + 1; i as chains_first or chains_next gave it. */
uint32_t chains_next(const Chains *c, uint32_t i);
/* The next number, c->n, has this hash; false when out of memory, with nothing added. */
bool chains_add(Chains *c, uint32_t hash);
/* Forget all but the first n. */
void chains_cut(Chains *c, size_t n);
void chains_free(Chains *c);
#endif
