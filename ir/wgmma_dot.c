/* wgmma_dot.c - which dots may become products of warpgroups: asked by all who make room for such products, or mark their dots.
 *
 * It is a question about the program as it is before layouts: the dot's types and extents, the team, and whether its loop copies b, or has
 * it from outside; of dots in no loop with stages, whether b would pass through shared memory anyway (stored_dots.c). A dot for which the
 * answer is yes may still be left to mma.sync, where no buffer holds its factor in panels.
 *
 * f32. Tensor cores drop the bits that tf32 has not. Dots that split their factors do so in registers, and b is in none. Dots that round
 * them (precision "tf32", the default) need copies that round: boxes of tensors, on targets that have such copies (F_TMA_TF32), which
 * nobody sees but dots that round. Where b is seen by others, too, and a does not change in the loop, threads round them: a in front of the
 * loop, b on its way to a buffer, once for all warps, each of which would round all of it for mma.sync (stored_dots.c).
 *
 * Sparse dots. Their a is in a buffer as any other, their metadata in registers, which takes no part of K alone.
 *
 * 8-bit floats. Hardware keeps about 13 bits behind the point of the largest number when it adds their products, so what a dot promises of
 * sums (`promote`: of how many products before they are added in f32) says whether warpgroups may make them, and how much of K at once. */
#include "wgmma.h"

enum { COPY_LEAST = 4 };     /* bytes that cp.async copies */
/* An instruction of mma.sync, and how many of them, for a warp, are worth a fence and a wait. Bytes that are stored at once, at least; sums
 * of a thread, at most: wgmma holds them all at a time, and ptxas serialises products for which there are too few registers. */
enum { MMA_ROWS = 16, MMA_COLUMNS = 8, STORED_LEAST = 16, STORED_RUN = 8, STORED_SUMS = 64, DEPTH_MOST = 8 };
enum { PUT_SHARE = 4 };      /* a has so many times the elements of a b that is stored in each iteration */
enum { BESIDE = 4096 };      /* bytes for mbarriers, and exchanges between warps, where threads round b */
/* Sums of a thread, at most, that are made beside as many to which they are added; with more they are made in pieces of so many, of so many
 * columns at least: instructions of fewer wait for shared memory, as each reads all of a. */
enum { PROMOTED_SUMS = 96, PIECE_SUMS = 64, PIECE_COLUMNS = 64 };
/* Columns of a warpgroup, at least, where several share a dot's: with fewer an instruction waits for a in shared memory. */
enum { SHARED_COLUMNS = 32 };

const Op *
wgmma_dot_loop(const Op *dot)
{
  const Op *loop = dot->block->parent;
  return loop_is_staged(loop) ? loop : NULL;
}

Value *
wgmma_dot_source(Value *factor, int *k)
{
  for (; op_is(factor, OP_PERMUTE) || op_is(factor, OP_CONVERT_LAYOUT); factor = op_operand(factor->def, 0))
    if (k && factor->def->code == OP_PERMUTE)
      *k = (int)op_attr(factor->def, AT_PERM)->ints.v[*k];
  return factor;
}

static u32
sums_of_thread(const Op *dot)
{
  return type_padded_numel(op_result(dot)->type) / (32 * block_team(dot->block).warps);
}

/* Bytes side by side in memory that an access of the load may have, and the dimension along which they lie. */
static u32
run_of_load(Ctx *c, const AxisInfo *axes, const Op *load, u32 *d)
{
  const Value *p = OPERAND(load, LOAD, p), *mask = op_mask(load);
  u32 bytes = dtype_bytes(p->type->dt);
  *d = axis_fastest(&axes[p->id], p->type->rank);
  return bytes * axis_vector(&axes[p->id], mask ? &axes[mask->id] : NULL, *d, p->type->shape[*d], bytes, op_access_bytes(load, c->target));
}

/* Can asynchronous copies bring the load's tile to shared memory? (pipeline_loops asks for more.) */
static bool
can_be_copied(Ctx *c, const AxisInfo *axes, const Op *load)
{
  const Value *p = OPERAND(load, LOAD, p), *other = OPERAND(load, LOAD, other);
  u64 bits = 0;
  u32 d;
  if (!type_is_tile(p->type) || (other && !(value_const_bits(other, &bits) && !bits)))
    return false;
  return run_of_load(c, axes, load, &d) >= COPY_LEAST;
}

/* NULL if a factor, whose dimension k is K, is loaded as it is by an iteration of the loop, perhaps transposed, or made outside. */
static const char *
kept_error(Ctx *c, const AxisInfo *axes, Value *factor, int k, const Op *loop)
{
  const Value *v = wgmma_dot_source(factor, &k);
  bool any_side = dtype_bits(v->type->dt) == 16;
  if (!v->def)
    return "the loop carries it";
  if (!op_inside(v->def, loop))
    return NULL;
  if (v->def->block != loop->regions[0] || (v->def->code != OP_LOAD && v->def->code != OP_TENSOR_LOAD))
    return "the loop computes it";
  if (v->def->code == OP_LOAD && !can_be_copied(c, axes, v->def))
    return "no asynchronous copy brings it";
  u32 fast = v->def->code == OP_LOAD ? axis_fastest(&axes[OPERAND(v->def, LOAD, p)->id], v->type->rank) : v->type->rank - 1u;
  if (any_side || fast == (u32)k)
    return NULL;
  return arena_printf(c->scratch, "elements of %s lie along K, and those in memory do not", dtype_info[v->type->dt].name);
}

/* NULL if the loop computes b, and it is small beside a, which the loop copies: it is stored, then, once for all warps, each of which
 * would have to get all of it for mma.sync. */
static const char *
put_error(Ctx *c, const AxisInfo *axes, const Op *dot, const Op *loop)
{
  Value *a = dot_a(dot), *b = dot_b(dot);
  const Op *def = wgmma_dot_source(a, NULL)->def, *made = wgmma_dot_source(b, NULL)->def;
  if (!made || made->block != loop->regions[0] || made->code == OP_LOAD || made->code == OP_TENSOR_LOAD || dtype_bits(b->type->dt) != 16)
    return "it is not computed by the iteration, as elements of 16 bits";
  if (!def || !op_inside(def, loop) || kept_error(c, axes, a, 1, loop))
    return "a, to be read where it was copied, is not either";
  return type_numel(b->type) * PUT_SHARE > type_numel(a->type) ? "it is no smaller than a" : NULL;
}

/* ---- outside of loops with stages ---- */

/* NULL if v, whose dimension k is K, is loaded, or a dot's sum, or made of such element by element, and perhaps transposed: a factor of
 * `bits` bits that is so passes through shared memory on its way to the dot anyway. What is loaded in narrow pieces would be stored so. */
static const char *
passes_error(Ctx *c, const AxisInfo *axes, const Value *v, u32 bits, u32 k, u32 depth)
{
  const Op *op = v->def;
  u32 fast;
  if (op && op->code == OP_PERMUTE)
    return passes_error(c, axes, op_operand(op, 0), bits, (u32)op_attr(op, AT_PERM)->ints.v[k], depth);
  if (op && op->code == OP_DOT)
    return bits == 16 || k == 1 ? NULL : "it is a sum that lies across K";
  if (op && op->code == OP_TENSOR_LOAD)
    return bits == 16 || k + 1 == op_result(op)->type->rank ? NULL : "in memory it lies across K";
  if (op && op->code == OP_LOAD) {
    if (run_of_load(c, axes, op, &fast) < STORED_RUN)
      return "it is loaded in narrow pieces";
    return fast == k || bits == 16 ? NULL : "in memory it lies across K";
  }
  if (op && op_has(op, T_ELEM) && op_has(op, T_PURE) && depth < DEPTH_MOST)
    for (u32 i = 0; i < op->noperands; i++)
      if (type_is_tile(op_operand(op, i)->type) && !passes_error(c, axes, op_operand(op, i), bits, k, depth + 1))
        return NULL;
  return "it is neither loaded nor a sum, nor made of such";
}

/* Instructions of mma.sync that a warp would take for the dot. */
static u32
mma_count(const Op *dot)
{
  const Type *a = dot_a(dot)->type, *acc = op_result(dot)->type;
  return acc->shape[0] / block_team(dot->block).warps * acc->shape[1] / (MMA_ROWS * MMA_COLUMNS) * (a->shape[1] / (wgmma_depth(a->dt)));
}

static const char *
stored_error(Ctx *c, const AxisInfo *axes, const Op *dot)
{
  if (mma_count(dot) < STORED_LEAST)
    return "it is too small to be worth a fence and a wait";
  if (sums_of_thread(dot) > STORED_SUMS)
    return "its sums and the factors that are on their way take too many registers";
  for (const Block *b = dot->block; b->parent; b = b->parent->block)
    if (loop_is_staged(b->parent) && b->parent != wgmma_dot_loop(dot))
      return "a loop with stages stands around it";
  return passes_error(c, axes, dot_b(dot), type_elem_bits(dot_b(dot)->type), 0, 0);
}

/* ---- factors that copies round ---- */

Op *
wgmma_dot_copy(const Value *factor)
{
  factor = wgmma_dot_source((Value *)factor, NULL);
  return op_is(factor, OP_TENSOR_LOAD) ? factor->def : NULL;
}

/* Nobody sees v but dots that round it. */
static bool
only_rounded(const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *op = u->user;
    bool rounds = op->code == OP_DOT && OPERAND(op, DOT, acc) != v && !strcmp(op_str(op, AT_PREC, "tf32"), "tf32");
    bool moves = op->code == OP_PERMUTE || op->code == OP_CONVERT_LAYOUT;
    if (moves ? !only_rounded(op_result(op)) : !rounds)
      return false;
  }
  return true;
}

bool
wgmma_dot_rounded(Ctx *c, const Op *dot)
{
  const Op *loop = wgmma_dot_loop(dot);
  if (dot->code != OP_DOT || !target_has(c->target, F_TMA_TF32) || !loop || strcmp(op_str(dot, AT_PREC, "tf32"), "tf32"))
    return false;
  for (u32 i = 0; i < SLOT(DOT, acc); i++) {
    const Op *load = wgmma_dot_copy(op_operand(dot, i));
    if (!load || load->block != loop->regions[0] || op_result(load)->type->dt != DT_F32 || !only_rounded(op_result(load)))
      return false;
  }
  return true;
}

/* ---- factors that threads round ---- */

/* Bytes of all that the loop loads, as many of each as it has stages, and of b once more. */
static u64
bytes_beside(const Op *loop, const Type *b)
{
  u64 bytes = (u64)type_numel(b) * type_elem_bytes(b);
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    if (op->code == OP_TENSOR_LOAD || (op->code == OP_LOAD && type_is_tile(op_result(op)->type)))
      bytes += (u64)op_int(loop, AT_STAGES, 1) * type_numel(op_result(op)->type) * type_elem_bytes(op_result(op)->type);
  return bytes;
}

const char *
wgmma_dot_by_threads(Ctx *c, const AxisInfo *axes, const Op *dot)
{
  const Op *loop = wgmma_dot_loop(dot);
  const Value *a = dot_a(dot), *b = dot_b(dot);
  if (!target_has(c->target, F_WGMMA) || !target_has(c->target, F_CVT_TF32) || a->type->dt != DT_F32 || b->type->dt != DT_F32 || !loop ||
      strcmp(op_str(dot, AT_PREC, "tf32"), "tf32") || b->type->rank != 2)
    return "it is none of f32 that is rounded, in a loop with stages";
  if (value_within(a, loop))
    return "each iteration has another a, which every thread had to round";
  if (bytes_beside(loop, b->type) + BESIDE > c->target->shared_max)
    return "shared memory has no room for b, rounded, beside the copies of the loop";
  const Type *buffer = type_shared(c, b->type->dt, 0, b->type->rank, b->type->shape, NULL, NULL, 0, 0);
  const char *why = wgmma_error(c, block_team(dot->block), a->type, NULL, buffer);
  why = why ? why : wgmma_sum_error(c, a->type, buffer, op_result(dot)->type);
  return why ? why : stored_error(c, axes, dot);
}

/* ---- sums of 8-bit floats ---- */

u32
wgmma_promotes(const Op *dot)
{
  const Type *a = dot_a(dot)->type;
  return dtype_is_float(a->dt) && dtype_bits(a->dt) == 8 ? (u32)op_int(dot, AT_PROMOTE, 0) : 0;
}

/* Sums of products are added to others, in f32. */
static bool
adds_sums(const Op *dot)
{
  u32 most = wgmma_promotes(dot);
  u64 bits;
  return most && (dot_a(dot)->type->shape[1] > most || !value_const_bits(dot_acc(dot), &bits) || bits);
}

static u32
piece_along(const Op *dot, int axis)
{
  u32 warps = block_team(dot->block).warps, sums = sums_of_thread(dot), all = op_result(dot)->type->shape[axis], n = all & (0 - all);
  u32 least = axis ? PIECE_COLUMNS : WGMMA_ROWS * (warps / WGMMA_GROUP);
  if (!adds_sums(dot) || sums <= PROMOTED_SUMS)
    return all;
  if (wgmma_grid(block_team(dot->block), op_result(dot)->type->shape[0]).columns > 1)
    return 0;                      /* a piece would be one warpgroup's */
  while (n && sums * n / all > PIECE_SUMS)
    n /= 2;
  return n < least || sums + sums * n / all > 2 * PROMOTED_SUMS ? 0 : n;
}

u32
wgmma_piece(const Op *dot, bool rows, int *axis)
{
  u32 n = rows ? piece_along(dot, 0) : 0;
  *axis = n ? 0 : 1;
  return n ? n : piece_along(dot, 1);
}

static const char *
sums_error(Ctx *c, const AxisInfo *axes, const Op *dot, const Op *loop)
{
  const Type *a = dot_a(dot)->type;
  u32 most = wgmma_promotes(dot);
  if (a->dt == DT_F32 && strcmp(op_str(dot, AT_PREC, "tf32"), "tf32_cut") && !wgmma_dot_rounded(c, dot))
    return "they cut f32 to tf32, which is for precision=\"tf32_cut\"";
  if (most && most < wgmma_depth(a->dt))
    return arena_printf(c->scratch, "they add %u products at a time in fewer bits than f32 has, and promote=%u asks for f32",
                        wgmma_depth(a->dt), most);
  int axis;
  if (!wgmma_piece(dot, false, &axis))
    return arena_printf(c->scratch, "a thread has %u sums, and no room for others that are to be added to them", sums_of_thread(dot));
  if (!most || a->shape[1] <= most)
    return NULL;
  if (dot_meta(dot))
    return arena_printf(c->scratch, "they take %u products at a time, and metadata is not taken apart", most);
  Value *left = dot_a(dot);
  const char *why = loop ? kept_error(c, axes, left, 1, loop) : passes_error(c, axes, left, type_elem_bits(a), 1, 0);
  return why ? arena_printf(c->scratch, "a, of which they take %u of K at a time, is in no buffer: %s", most, why) : NULL;
}

/* ---- layouts ---- */

const Layout *
dot_sum_layout(Ctx *c, const Op *dot)
{
  const Type *t = op_result(dot)->type;
  u32 warps[MAX_RANK];
  op_u32s(dot, AT_WARPS, warps);
  return op_int(dot, AT_GROUPED, 0) ? layout_warpgroups(c, t->shape, warps[0], warps[1]) : layout_mma(c, t->rank, t->shape, warps);
}

const Layout *
dot_operand_layout(Ctx *c, const Op *dot, u32 i, const u32 *shape)
{
  int rank = op_operand(dot, i)->type->rank, which = i != 0;
  u32 warps[MAX_RANK], bits = type_elem_bits(dot_a(dot)->type);
  op_u32s(dot, AT_WARPS, warps);
  if (op_int(dot, AT_GROUPED, 0))
    return layout_warpgroups_operand(c, which, shape, warps[0], warps[1], bits);
  if (dot->code == OP_DOT)
    return layout_mma_operand(c, which, rank, shape, warps, bits);
  return i == SLOT(DOT_SPARSE, meta) ? layout_mma_meta(c, rank, shape, warps, bits)
                                     : layout_mma_sparse_operand(c, which, rank, shape, warps, bits);
}

/* ---- the question ---- */

const char *
wgmma_dot_error(Ctx *c, const AxisInfo *axes, const Op *dot)
{
  const Type *a = dot_a(dot)->type, *b = dot_b(dot)->type, *meta = dot_meta(dot) ? dot_meta(dot)->type : NULL;
  const Op *loop = wgmma_dot_loop(dot);
  if (!target_has(c->target, F_WGMMA))
    return "the target has none";
  if (meta && !loop)
    return "sparse ones are made in loops with stages";
  if (b->rank != 2)
    return "both factors have two dimensions";
  const Type *buffer = type_shared(c, b->dt, 0, b->rank, b->shape, NULL, NULL, 0, 0);
  const char *why = wgmma_error(c, block_team(dot->block), a, meta, buffer);
  why = why ? why : wgmma_sum_error(c, a, buffer, op_result(dot)->type);
  why = why ? why : sums_error(c, axes, dot, loop);
  if (why)
    return why;
  WgmmaGrid grid = wgmma_grid(block_team(dot->block), a->shape[0]);
  if (grid.columns > 1 && b->shape[1] < SHARED_COLUMNS * grid.columns)
    return arena_printf(c->scratch, "%u warpgroups would share %u columns", grid.columns, b->shape[1]);
  why = loop ? kept_error(c, axes, dot_b(dot), 0, loop) : stored_error(c, axes, dot);
  why = why && loop && !put_error(c, axes, dot, loop) ? NULL : why;
  return why ? arena_printf(c->scratch, "b is in no buffer: %s", why) : NULL;
}
