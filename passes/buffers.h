/* buffers.h - shared layouts for buffers that copies fill and tiles are read from. */
#ifndef TILEC_BUFFERS_H
#define TILEC_BUFFERS_H
#include "internal.h"

/* The lowest registers of l, vec of them, lie in smem side by side, aligned, in every thread. */
bool buffer_copy_fits(Ctx *c, const Layout *l, const Layout *smem, u32 vec);
/* The dimension of t along which l has the longest runs; of several the last. */
int buffer_fastest(const Type *t, const Layout *l);
/* The swizzle that is cheapest to read in layout `want`, of those in which writers of layout l keep vec elements together;
 * t has the extents and the element. NULL if there is none. */
const Layout *buffer_swizzle(Ctx *c, const Type *t, const Layout *l, const Layout *want, u32 vec);
/* The type of a view that is not a cast, of a buffer of type t: its extents and what layout, padding and cut it inherits. */
const Type *buffer_view_type(Ctx *c, const Op *view, const Type *t);
/* Give every buffer of f that has no layout one, by its writers and readers, whose tiles have theirs. */
void buffers_place(Ctx *c, Func *f);
/* Leave out panels that hold padding alone, of buffers that the async proxy reaches. (cut_buffers.c) */
void cut_off_panels(Ctx *c, Func *f);
/* Where f's buffers take more than `most` bytes: leave out padding, of as few buffers as it takes. True: of some. (cut_buffers.c) */
bool cut_buffers(Ctx *c, Func *f, u32 most);
#endif
