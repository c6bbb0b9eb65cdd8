/* sparse.c - see sparse.h. */
#include "sparse.h"

bool
sparse_column(u32 word, u32 i, u32 *column)
{
  u32 group = i / SPARSE_KEPT, bits = word >> SPARSE_GROUP * group & 15, place[SPARSE_KEPT];
  if (!bits)
    bits = SPARSE_FIRST_TWO & 15;
  place[0] = bits & 3;
  place[1] = bits >> 2;
  *column = SPARSE_GROUP * group + place[i % SPARSE_KEPT];
  return place[0] < place[1];
}

const char *
sparse_error(Ctx *c, const Type *a, const Type *meta, const Type *b)
{
  if (a->ptr || meta->ptr || b->ptr)
    return "pointers are loaded first";
  if (a->rank < 2 || meta->rank != a->rank || b->rank != a->rank)
    return "all need two dimensions, or as many more for batches";
  u32 last = a->rank - 1u, k = b->shape[last - 1];
  if (meta->dt != DT_U16)
    return "metadata is u16";
  if (k % SPARSE_WORD || k == 0)
    return arena_printf(c->scratch, "the rows of b (%u) must be a multiple of %d", k, SPARSE_WORD);
  if (a->shape[last] * 2 != k)
    return arena_printf(c->scratch, "a needs half as many columns (%u) as b has rows (%u)", a->shape[last], k);
  if (meta->shape[last] * SPARSE_WORD != k)
    return arena_printf(c->scratch, "metadata needs a column for every %d rows of b (%u), and has %u", SPARSE_WORD, k,
                        meta->shape[last]);
  for (u32 d = 0; d < last; d++)
    if (a->shape[d] != meta->shape[d] || (d + 1 < last && a->shape[d] != b->shape[d]))
      return d + 1 == last ? "a and its metadata need as many rows"
                           : arena_printf(c->scratch, "dimension %u is a batch: all need as many", d);
  if (!dot_factors_fit(a->dt, b->dt) || (a->dt != DT_F16 && a->dt != DT_BF16 && dtype_bits(a->dt) != 8))
    return "the element types must be f16, bf16, or of 8 bits each";
  return NULL;
}
