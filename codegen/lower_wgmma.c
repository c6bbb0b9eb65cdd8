/* lower_wgmma.c - products of warpgroups (PTX ISA, "wgmma"): matrix descriptors, instructions, waits.
 *
 * An accumulator under way is machine words, two 16-bit elements in one: to take them apart would be instructions on registers that
 * hardware still writes. The order of registers is that of layout_mma with all warps along M: of each 64 rows a warpgroup, then columns;
 * where warpgroups share columns, that of layout_warpgroups.
 *
 * One op is a fence, its instructions and the commit of their group: one piece of inline assembly, since LLVM's time for pieces grows
 * with their operands, of which the accumulators are most. That and the wait have the accumulators as operands that start out in the
 * results' registers, so that nothing that reads or writes these moves across. All words of A are read in front of the fence, as
 * operands of the whole. So are they by the wait: no other value takes their registers before it, such as the next iteration's of a
 * carried A. An accumulator of zeros is none: the first instructions along K do not add to it.
 *
 * Words of metadata are read and kept like those of A, behind these.
 *
 * Descriptors. A buffer's panels give the two strides and the swizzle; the hardware exclusive-ors address bits after it has added
 * up strides, so what an instruction begins with is added to the buffer's own descriptor as if nothing were swizzled. For that buffers
 * begin where their swizzle does (buffer_align), and the base offset is 0. */
#include "gen.h"
#include "wgmma.h"

#define B g->b
enum { LEADING_BIT = 16, STRIDE_BIT = 32, MODE_BIT = 62, UNIT_LOG2 = 4, ADDRESS_BITS = 0x3fff, ROWS_OF_CORE = 8, CORE_BYTES = 128,
       LEFT_WORDS = 4, META_DEPTH = 64, META_PER_WORD = 2 };

/* ---- accumulators ---- */

static Words
words_of(Gen *g, const Type *t)
{
  return words_for(g, t->dt, false, dtype_bits(t->dt) < 32 ? 32 / dtype_bits(t->dt) : 1);
}

static void
to_words(Gen *g, const Type *t, const Val *regs, Val *words)
{
  Words w = words_of(g, t);
  for (u32 i = 0; i < layout_regs(t->layout) / w.per; i++)
    words_pack(g, &w, regs + i * w.per, &words[i]);
}

void
lower_PENDING(Gen *g, const Op *op)
{
  const Value *x = OPERAND(op, PENDING, x);
  to_words(g, x->type, gen_regs(g, x), gen_new(g, op_result(op)));
}

/* A row of ptx.def that has these words as operands, in place or (kept false) written anew, and reads others. */
static void
in_place(Gen *g, PtxId id, const char *text, Val *words, u32 n, bool kept, const Val *others, u32 nothers)
{
  Ty *types = NEW_ARRAY(g->arena, Ty, n + 1);
  Val *ins = NEW_ARRAY(g->arena, Val, n + nothers + 1);
  for (u32 i = 0; i < nothers; i++)
    ins[i] = others[i];
  for (u32 i = 0; i < n; i++) {
    types[i] = LLVMTypeOf(words[i]);
    ins[nothers + i] = words[i];
  }
  u32 ntied = kept ? n : 0;
  PtxArgs a = {.subst = {text}, .nout = n, .nin = nothers + ntied, .ntied = ntied, .early = !kept, .outs = types, .ins = ins};
  ptx_emit(g, id, &a, words);
}

/* ---- operands ---- */

/* A matrix in shared memory: the descriptor of the view's first element, or of the one where this warpgroup begins. */
typedef struct Matrix {
  WgmmaSide side;
  u32 bytes, mn, k;                /* of an element; where the view begins */
  Val desc;
} Matrix;

/* The byte of an element, as if nothing were swizzled. */
static u32
byte_of(const Matrix *m, u32 mn, u32 k)
{
  const PanelForm *f = &m->side.form;
  u32 along = (m->side.k_major ? k : mn) * m->bytes, across = m->side.k_major ? mn : k;
  return along / f->width * f->panel_bytes + across * f->width + along % f->width;
}

/* Strides and mode: along the panels' rows (K-major without a swizzle, or across K) the next panel, else the next 8 rows. */
static u64
descriptor_bits(const Matrix *m)
{
  static const u8 modes[] = {[0] = 0, [1] = 3, [2] = 2, [4] = 1};
  const PanelForm *f = &m->side.form;
  u32 rows = ROWS_OF_CORE * f->width, leading = f->panel_bytes, stride = rows;
  if (!f->swizzle && !m->side.k_major) {
    leading = CORE_BYTES;
    stride = f->panel_bytes;
  } else if (f->swizzle && m->side.k_major) {
    leading = 1 << UNIT_LOG2;      /* not used */
  }
  return (u64)modes[f->swizzle / 32] << MODE_BIT | (u64)(stride >> UNIT_LOG2) << STRIDE_BIT | (u64)(leading >> UNIT_LOG2) << LEADING_BIT;
}

/* In bytes, where the warpgroup begins that is `number` of n, `each` elements apart along the other dimension. A panel is further from the
 * next than it is wide: where several warpgroups begin in each of several panels, the bits of the number count by themselves. */
static Val
begins(Gen *g, const Matrix *m, Val number, u32 n, u32 each)
{
  Val at = NULL;
  if (byte_of(m, each * (n / 2), 0) == byte_of(m, each, 0) * (n / 2))
    return LLVMBuildMul(B, number, gen_u32(g, byte_of(m, each, 0)), "");
  for (u32 bit = 1; bit < n; bit *= 2) {
    Val one = LLVMBuildMul(B, LLVMBuildAnd(B, LLVMBuildLShr(B, number, gen_u32(g, log2_u32(bit)), ""), gen_u32(g, 1), ""),
                           gen_u32(g, byte_of(m, each * bit, 0)), "");
    at = at ? LLVMBuildAdd(B, at, one, "") : one;
  }
  return at;
}

/* number: the warpgroup's along the other dimension, of n that begin `each` elements apart; NULL: all begin at the first. */
static Matrix
matrix_of(Gen *g, const Value *v, int k, Val number, u32 n, u32 each)
{
  Matrix m = {.bytes = dtype_bytes(v->type->dt)};
  Buffer buf = buffer_of(g, v);
  u32 at[MAX_RANK];
  if (wgmma_side(g->c, v->type, k, &m.side))
    ctx_panic(g->c, "wgmma: an operand that is not in panels");
  layout_coords(buf.smem, layout_offset_eval(buf.smem, buf.off), at);
  m.k = at[k];
  m.mn = at[1 - k];
  Val p = LLVMBuildPtrToInt(B, addr_shared(g, buf.base, buf.at), g->i32, "");
  if (number)
    p = LLVMBuildAdd(B, p, begins(g, &m, number, n, each), "");
  p = LLVMBuildAnd(B, LLVMBuildLShr(B, p, gen_u32(g, UNIT_LOG2), ""), gen_u32(g, ADDRESS_BITS), "");
  m.desc = LLVMBuildOr(B, LLVMBuildZExt(B, p, g->i64, ""), LLVMConstInt(g->i64, descriptor_bits(&m), 0), "");
  return m;
}

/* The descriptor for an instruction that begins with this element of the view. */
static Val
descriptor(Gen *g, const Matrix *m, u32 mn, u32 k)
{
  u32 bytes = byte_of(m, m->mn + mn, m->k + k);
  return LLVMBuildAdd(B, m->desc, LLVMConstInt(g->i64, bytes >> UNIT_LOG2, 0), "");
}

/* ---- instructions ---- */

/* A whole product; left: words of A, or NULL, then those of metadata, from `meta` on. */
typedef struct Job {
  const Op *op;
  DType a, b, sum;
  WgmmaGrid grid;
  u32 columns, per;                /* of a warpgroup; elements of the accumulator in a word */
  Matrix ma, mb;
  Val *left, *acc;
  u32 nleft, nacc, meta;
  bool zero, in_registers, sparse;
} Job;

static const char *
type_name(DType d)
{
  switch (d) {
  case DT_F32: return "tf32";
  case DT_F8E4M3: return "e4m3";
  case DT_F8E5M2: return "e5m2";
  case DT_I8: return "s8";
  case DT_U8: return "u8";
  default: return dtype_info[d].name;
  }
}

/* "{$0, $1, ...}", or "$0" if only one is bare. */
static const char *
registers(Gen *g, u32 first, u32 n, bool bare)
{
  Buf b = {.arena = g->arena};
  buf_puts(&b, bare ? "" : "{");
  for (u32 i = 0; i < n; i++)
    buf_printf(&b, i ? ", $%u" : "$%u", first + i);
  buf_puts(&b, bare ? "" : "}");
  return buf_str(&b);
}

/* What stands behind the descriptors: signs of the factors, and which of them lie across K. */
static const char *
flags(Gen *g, const Job *j)
{
  if (dtype_is_int(j->a))
    return "";
  if (dtype_bits(j->a) != 16)
    return ", 1, 1";
  const char *left = j->in_registers ? "" : j->ma.side.k_major ? ", 0" : ", 1";
  return arena_printf(g->arena, ", 1, 1%s, %d", left, !j->mb.side.k_major);
}

/* The text of a group of products, and what it reads; its operands are all words of the accumulator, then these. */
typedef struct Group { Buf text; VEC(Val) ins; u32 nacc; } Group;

/* Where an operand of the group begins in its list. */
static u32
reads(Gen *g, Group *t, const Val *v, u32 n)
{
  u32 at = t->nacc + t->ins.len;
  for (u32 i = 0; i < n; i++)
    vec_push(g->arena, &t->ins, v[i]);
  return at;
}

static void
line(Gen *g, Group *t, PtxId id, const PtxArgs *a)
{
  buf_printf(&t->text, t->text.len ? "\n\t%s" : "%s", ptx_line(g, id, a));
}

/* Rows of B of an instruction, and how many of them there are along K, padding counted. */
static u32
depth_of(const Job *j)
{
  return wgmma_depth(j->a) << j->sparse;
}

static u32
steps_of(const Job *j)
{
  u32 n = next_pow2(OPERAND(j->op, WGMMA, b)->type->shape[0]) / depth_of(j);
  return n ? n : 1;
}

/* Metadata of an instruction, a word for META_DEPTH of K, and which lanes of each four give it. */
static const char *
metadata(Gen *g, const Job *j, Group *t, u32 block, u32 step)
{
  u32 share = META_DEPTH / depth_of(j), held = (steps_of(j) + share - 1) / share;
  if (!j->sparse)
    return "";
  u32 at = reads(g, t, &j->left[j->meta + block * held + step / share], 1);
  return arena_printf(g->arena, ", $%u, %u", at, step % share);
}

/* One instruction: rows block m of each warpgroup, n columns from `column` on, the step along K. */
static void
multiply(Gen *g, const Job *j, Group *t, u32 block, u32 column, u32 n, u32 step)
{
  u32 padded = next_pow2(j->columns), k = step * depth_of(j);
  u32 words = n / 2 / j->per, acc = (block * padded + column) / 2 / j->per, nleft = j->in_registers ? LEFT_WORDS : 1;
  Val left = j->in_registers ? NULL : descriptor(g, &j->ma, WGMMA_ROWS * j->grid.rows * block, k >> j->sparse);
  Val right = descriptor(g, &j->mb, column, k), adds = LLVMConstInt(g->i1, !(j->zero && !step), 0);
  u32 a = reads(g, t, j->in_registers ? j->left + (block * steps_of(j) + step) * LEFT_WORDS : &left, nleft);
  u32 b = reads(g, t, &right, 1);
  const char *meta = metadata(g, j, t, block, step);
  u32 p = reads(g, t, &adds, 1);
  const char *sum = dtype_is_int(j->sum) ? "s32" : dtype_info[j->sum].name;
  const char *shape = arena_printf(g->arena, "m64n%uk%u.%s.%s.%s", n, depth_of(j), sum, type_name(j->a), type_name(j->b));
  line(g, t, PTX_WGMMA, &(PtxArgs){.subst = {j->sparse ? ".sp" : "", shape, registers(g, acc, words, false),
                                             registers(g, a, nleft, !j->in_registers), registers(g, b, 1, true), meta,
                                             registers(g, p, 1, true), flags(g, j)}});
}

static void
multiply_all(Gen *g, const Job *j, Group *group)
{
  const Type *t = op_result(j->op)->type;
  u32 depth = depth_of(j), all = OPERAND(j->op, WGMMA, b)->type->shape[0];
  for (u32 block = 0; block < t->shape[0] / (WGMMA_ROWS * j->grid.rows); block++)
    for (u32 column = 0, n; column < j->columns; column += n) {
      n = wgmma_columns(j->a, j->columns - column);
      for (u32 step = 0; step * depth < all; step++)
        multiply(g, j, group, block, column, n, step);
    }
}

/* A fence, so that what is written before it, the accumulators and A, is there; the products; their group's commit. All of A is read by the
 * whole: it stays in its registers, as an earlier product may still read it. */
static void
emit_group(Gen *g, Job *j)
{
  Group t = {.text = {.arena = g->arena}, .nacc = j->nacc};
  reads(g, &t, j->left, j->nleft);
  line(g, &t, PTX_WGMMA_FENCE, &(PtxArgs){0});
  multiply_all(g, j, &t);
  line(g, &t, PTX_WGMMA_COMMIT, &(PtxArgs){0});
  in_place(g, PTX_WGMMA_GROUP, buf_str(&t.text), j->acc, j->nacc, !j->zero, t.ins.data, t.ins.len);
}

static bool
is_zero(const Value *acc)
{
  u64 bits;
  return op_is(acc, OP_PENDING) && value_const_bits(OPERAND(acc->def, PENDING, x), &bits) && !bits;
}

/* Words of A and of metadata that a product reads until it is waited for. */
static u32
left_words(Gen *g, const Op *op, u32 *meta)
{
  const Value *a = OPERAND(op, WGMMA, a), *m = OPERAND(op, WGMMA, meta);
  u32 n = type_is_tile(a->type) ? gen_nregs(a->type) / words_of(g, a->type).per : 0;
  if (meta)
    *meta = n;
  return n + (m ? gen_nregs(m->type) / META_PER_WORD : 0);
}

static void
take_left(Gen *g, Job *j)
{
  const Value *a = OPERAND(j->op, WGMMA, a), *m = OPERAND(j->op, WGMMA, meta);
  j->nleft = left_words(g, j->op, &j->meta);
  j->left = NEW_ARRAY(g->arena, Val, j->nleft + 1);
  if (j->in_registers)
    to_words(g, a->type, gen_regs(g, a), j->left);
  for (u32 i = 0; i < j->meta; i++)
    j->left[i] = gen_bitcast(g, j->left[i], g->i32);
  if (m)
    memcpy(j->left + j->meta, meta_words(g, m), (j->nleft - j->meta) * sizeof *j->left);
  g->left[op_result(j->op)->id] = j->left;
}

/* The warpgroup's number along M, and along N, the slower one (layout_warpgroups); NULL: there is one. */
static Val
along_rows(Gen *g, const Job *j)
{
  if (j->grid.rows == 1)
    return NULL;
  return j->grid.columns == 1 ? team_warpgroup(g) : LLVMBuildAnd(B, team_warpgroup(g), gen_u32(g, j->grid.rows - 1), "");
}

static Val
along_columns(Gen *g, const Job *j)
{
  return j->grid.columns == 1 ? NULL : LLVMBuildLShr(B, team_warpgroup(g), gen_u32(g, log2_u32(j->grid.rows)), "");
}

void
lower_WGMMA(Gen *g, const Op *op)
{
  const Value *a = OPERAND(op, WGMMA, a), *b = OPERAND(op, WGMMA, b), *acc = OPERAND(op, WGMMA, acc);
  if (!target_has(g->target, F_WGMMA)) {
    gen_unsupported(g, op, "a product of warpgroups (wgmma)");
    gen_poison(g, op_result(op));
    return;
  }
  Job j = {.op = op, .a = a->type->dt, .b = b->type->dt, .sum = acc->type->dt, .zero = is_zero(acc), .nacc = gen_nregs(acc->type)};
  j.grid = wgmma_grid(block_team(op->block), acc->type->shape[0]);
  j.columns = acc->type->shape[1] / j.grid.columns;
  j.per = dtype_bits(j.sum) == 16 ? 2 : 1;
  j.acc = gen_new(g, op_result(op));
  memcpy(j.acc, gen_regs(g, acc), j.nacc * sizeof *j.acc);
  j.in_registers = type_is_tile(a->type);
  j.sparse = OPERAND(op, WGMMA, meta) != NULL;
  if (j.in_registers || j.sparse)
    take_left(g, &j);
  if (!j.in_registers)
    j.ma = matrix_of(g, a, 1, along_rows(g, &j), j.grid.rows, WGMMA_ROWS);
  j.mb = matrix_of(g, b, 0, along_columns(g, &j), j.grid.columns, j.columns);
  bool turns = op_attr(op, AT_TURNS) && team_takes_turns(g);
  if (turns)
    team_take_turn(g);
  emit_group(g, &j);
  if (turns)
    team_pass_turn(g);
}

/* ---- waits ---- */

typedef VEC(Val) Lefts;

/* Words that products of this accumulator read: nothing else may come to lie in their registers until it is waited for. */
static void
add_lefts(Gen *g, Lefts *out, const Value *acc)
{
  for (const Op *op = acc->def; op && op->code == OP_WGMMA; op = OPERAND(op, WGMMA, acc)->def) {
    const Val *left = g->left[op_result(op)->id];
    for (u32 i = 0; left && i < left_words(g, op, NULL); i++)
      vec_push(g->arena, out, left[i]);
  }
}

void
lower_WGMMA_WAIT(Gen *g, const Op *op)
{
  u32 n = 0, at = 0;
  for (u32 i = 0; i < op->noperands; i++)
    n += gen_nregs(op_operand(op, i)->type);
  Val *words = NEW_ARRAY(g->arena, Val, n + 1);
  for (u32 i = 0; i < op->noperands; i++) {
    u32 own = gen_nregs(op_operand(op, i)->type);
    memcpy(words + at, gen_regs(g, op_operand(op, i)), own * sizeof *words);
    at += own;
  }
  Lefts read = {0};
  for (u32 i = 0; i < op->noperands; i++)
    add_lefts(g, &read, op_operand(op, i));
  in_place(g, PTX_WGMMA_WAIT, arena_printf(g->arena, "%lld", (long long)op_int(op, AT_PENDING, 0)), words, n, true, read.data, read.len);
  for (u32 i = at = 0; i < op->noperands; i++) {
    const Value *r = op->results[i];
    Words w = words_of(g, r->type);
    Val *regs = gen_new(g, r);
    for (u32 k = 0; k < gen_nregs(op_operand(op, i)->type); k++)
      words_unpack(g, &w, &words[at++], regs + k * w.per);
  }
}
