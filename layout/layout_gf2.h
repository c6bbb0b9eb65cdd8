/* layout_gf2.h - vectors and subspaces over GF(2), private to layout*.c.
 *
 * A vector is a u32, its sum is exclusive-or. A Basis keeps independent vectors in echelon form, one per
 * leading bit; beside each stands `made`, a value that is added whenever vectors are added. What `made`
 * means is the caller's: the inputs that were combined (a solver), the value of a linear function (an
 * evaluator), or another vector (an intersection). A Vecs is a list of at most 48 vectors, in an order that
 * matters to its user.
 */
#ifndef TILEC_LAYOUT_GF2_H
#define TILEC_LAYOUT_GF2_H
#include "layout.h"

typedef struct Basis {
  u32 pivots;      /* bit p: vec[p] is there and p is its highest bit */
  u32 vec[32];
  u64 made[32];
} Basis;

typedef struct Vecs {
  u32 n;
  u32 v[48];
} Vecs;

/* Remainder of v modulo the span, one for each coset. *made (may be NULL) collects what was subtracted. */
u32 basis_reduce(const Basis *b, u32 v, u64 *made);
/* Add v unless it is in the span; then *rest (may be NULL) gets the `made` of a sum that is 0. */
bool basis_add(Basis *b, u32 v, u64 made, u64 *rest);
bool basis_has(const Basis *b, u32 v);
void basis_add_all(Basis *b, const Vecs *vs);
u32 basis_rank(const Basis *b);

void vecs_push(Vecs *vs, u32 v);
void vecs_append(Vecs *to, const Vecs *from);
/* Take from `from`, in order, what is independent of `seen` (which grows), until `to` holds `limit`. */
void vecs_extend(Vecs *to, Basis *seen, const Vecs *from, u32 limit);
/* A basis of span(a) intersected with span(b). */
Vecs vecs_intersect(const Vecs *a, const Vecs *b);
/* Unit vectors of n bits. */
Vecs vecs_units(u32 n);

/* Exclusive-or of the columns selected by the bits of x. */
static inline u32
cols_apply(const u32 *cols, u32 n, u64 x)
{
  u32 out = 0;
  for (u32 i = 0; i < n; i++)
    if (x >> i & 1) out ^= cols[i];
  return out;
}

static inline u32
popcount_u32(u32 x)
{
  u32 n = 0;
  for (; x; x &= x - 1) n++;
  return n;
}

/* Sum of out_bits: the width of a flat index. */
u32 layout_out_bits(const Layout *l);
/* The columns of one input as a list. */
Vecs layout_in_vecs(const Layout *l, LayoutIn in);
/* A solver for the inputs `first` to `last`: made is the input index, `first`'s bits lowest, without copies. */
Basis layout_solver(const Layout *l, LayoutIn first, LayoutIn last);
/* A map without inputs over the padded extents of shape. */
Layout layout_blank(Ctx *c, int rank, const u32 *shape);
/* Append a column to input `in`. */
void layout_push(Layout *l, LayoutIn in, u32 col);
/* Drop register columns that depend on earlier ones. */
void layout_drop_register_copies(Layout *l);
static inline bool layout_is_shared(const Layout *l) { return l->in_bits[IN_LANE] == 0; }
#endif
