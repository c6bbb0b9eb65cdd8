/* tables_test.c - tables that must agree with each other or with themselves: the operands of ops.def and what is said to be done
 * through them, elementwise ops and the interpreter, passes and their order, element types of the compiler and of the runtime,
 * tensor-core instructions, their fragments and the simulator. */
#include "dtype.h"
#include "../../passes/internal.h"
#include "check.h"
#include "tilert.h"

/* ---- ops ---- */

static u32
words_in(const char *s)
{
  u32 n = *s != 0;
  for (; *s; s++)
    n += *s == ' ';
  return n;
}

/* Counts follow from the operands' text; what may be absent comes last, any number last of all. */
static void
check_operands(const OpInfo *o)
{
  u32 least = 0, n = words_in(o->operands);
  bool many = false, may = false;
  for (const char *s = o->operands; *s; s += strspn(s, " ")) {
    size_t len = strcspn(s, " ");
    CHECK(len && !many, "%s: %s", o->name, o->operands);
    many |= s[len - 1] == '*';
    CHECK(!may || s[len - 1] == '?', "%s: %s", o->name, o->operands);
    may |= s[len - 1] == '?';
    least += !many && !may;
    s += len;
  }
  CHECK(o->min_operands == least && o->max_operands == (many ? MANY : n), "%s: %s", o->name, o->operands);
}

/* Rows alike name their operands alike (ir.h): those of one operand or two, through a pointer, on a buffer, or on a tensor. */
static void
check_names(const OpInfo *o)
{
  bool elementwise = o->rule == RULE_SAME || o->rule == RULE_CMP;
  CHECK(!elementwise || o->min_operands != 1 || !strcmp(o->operands, "x"), "%s: %s", o->name, o->operands);
  CHECK(!elementwise || o->min_operands != 2 || !strcmp(o->operands, "a b"), "%s: %s", o->name, o->operands);
  bool two = !strcmp(o->name, "wgmma");      /* reads two buffers */
  CHECK(!o->effect[0] || two || o->operands[0] == 'b' || o->operands[0] == 'p' || o->operands[0] == 't', "%s: %s", o->name, o->operands);
}

/* Memory traits follow from the operands' effects; a view is its first operand, and does nothing else. */
static void
check_effects(const OpInfo *o)
{
  u32 all = 0, n = words_in(o->operands);
  for (u32 i = 0; i < OPERANDS_NAMED; i++) {
    u32 fx = o->effect[i];
    CHECK(i < n || !fx, "%s", o->name);
    CHECK(!(fx & FX_ASYNC) || fx & (FX_READ | FX_WRITE), "%s", o->name);
    CHECK(!(fx & FX_VIEW) || (fx == FX_VIEW && !i && o->nresults == 1 && o->traits & T_PURE), "%s", o->name);
    CHECK(!(fx & (FX_READ | FX_WRITE | FX_FREE)) || !(o->traits & T_PURE), "%s", o->name);
    all |= fx;
  }
  CHECK(!(o->traits & T_READS) == !(all & FX_READ) && !(o->traits & T_WRITES) == !(all & FX_WRITE), "%s", o->name);
  CHECK(!(o->traits & T_SYNC) || o->traits & T_SIDE, "%s", o->name);
  CHECK(!(o->traits & T_EXCHANGE) || (!strcmp(o->operands, "x") && strstr(o->attrs, "axis")), "%s", o->name);
}

static void
test_ops(void)
{
  OpCode code;
  for (int i = 0; i < OP_COUNT; i++) {
    const OpInfo *o = op_info((OpCode)i);
    CHECK(op_find(o->name, &code) && code == (OpCode)i, "%s", o->name);
    check_operands(o);
    check_names(o);
    check_effects(o);
  }
  CHECK(!strcmp(op_info(OP_LOAD)->operands, "p mask? other?") && !strcmp(op_info(OP_CONST)->operands, ""), "texts");
  CHECK(!strcmp(op_info(OP_FOR)->operands, "lo hi step inits*"), "texts");
  CHECK(SLOT(LOAD, p) == 0 && SLOT(LOAD, other) == 2 && SLOT(FOR, inits) == 3 && SLOT(ATOMIC_CAS, mask) == 3, "slots");
}

/* What each op does to memory: said once more here, so that a word changed by mistake in ops.def is seen. */
static void
test_memory(void)
{
  static const struct { OpCode op; u32 slot, fx; } known[] = {
    {OP_LOAD, SLOT(LOAD, p), FX_READ},
    {OP_STORE, SLOT(STORE, p), FX_WRITE},
    {OP_ATOMIC_RMW, SLOT(ATOMIC_RMW, p), FX_READ | FX_WRITE},
    {OP_ATOMIC_CAS, SLOT(ATOMIC_CAS, p), FX_READ | FX_WRITE},
    {OP_SHARED_FREE, SLOT(SHARED_FREE, b), FX_FREE},
    {OP_SHARED_INDEX, SLOT(SHARED_INDEX, b), FX_VIEW},
    {OP_SHARED_SLICE, SLOT(SHARED_SLICE, b), FX_VIEW},
    {OP_SHARED_PERMUTE, SLOT(SHARED_PERMUTE, b), FX_VIEW},
    {OP_SHARED_RESHAPE, SLOT(SHARED_RESHAPE, b), FX_VIEW},
    {OP_SHARED_CAST, SLOT(SHARED_CAST, b), FX_VIEW},
    {OP_SHARED_REMOTE, SLOT(SHARED_REMOTE, b), FX_VIEW},
    {OP_SHARED_LOAD, SLOT(SHARED_LOAD, b), FX_READ},
    {OP_SHARED_STORE, SLOT(SHARED_STORE, b), FX_WRITE},
    {OP_SHARED_GATHER, SLOT(SHARED_GATHER, b), FX_READ},
    {OP_SHARED_ADD, SLOT(SHARED_ADD, b), FX_READ | FX_WRITE},
    {OP_SHARED_SCATTER, SLOT(SHARED_SCATTER, b), FX_WRITE},
    {OP_SHARED_COUNT, SLOT(SHARED_COUNT, b), FX_READ | FX_WRITE},
    {OP_ASYNC_COPY, SLOT(ASYNC_COPY, b), FX_WRITE | FX_ASYNC},
    {OP_ASYNC_COPY, SLOT(ASYNC_COPY, p), FX_READ | FX_ASYNC},
    {OP_WGMMA, SLOT(WGMMA, a), FX_READ | FX_ASYNC | FX_PROXY},
    {OP_WGMMA, SLOT(WGMMA, b), FX_READ | FX_ASYNC | FX_PROXY},
    {OP_MBARRIER_INIT, SLOT(MBARRIER_INIT, b), FX_WRITE},
    {OP_MBARRIER_ARRIVE, SLOT(MBARRIER_ARRIVE, b), FX_ORDER},
    {OP_MBARRIER_WAIT, SLOT(MBARRIER_WAIT, b), FX_ORDER},
    {OP_TENSOR_BASE, SLOT(TENSOR_BASE, t), FX_ABOUT},
    {OP_TENSOR_EXTENT, SLOT(TENSOR_EXTENT, t), FX_ABOUT},
    {OP_TENSOR_STRIDE, SLOT(TENSOR_STRIDE, t), FX_ABOUT},
    {OP_TENSOR_LOAD, SLOT(TENSOR_LOAD, t), FX_READ},
    {OP_TENSOR_STORE, SLOT(TENSOR_STORE, t), FX_WRITE},
    {OP_TMA_LOAD, SLOT(TMA_LOAD, b), FX_WRITE | FX_ASYNC | FX_PROXY},
    {OP_TMA_LOAD, SLOT(TMA_LOAD, t), FX_READ | FX_ASYNC},
    {OP_TMA_LOAD, SLOT(TMA_LOAD, m), FX_ORDER},
    {OP_TMA_STORE, SLOT(TMA_STORE, b), FX_READ | FX_ASYNC | FX_PROXY},
    {OP_TMA_STORE, SLOT(TMA_STORE, t), FX_WRITE | FX_ASYNC},
    {OP_TMA_PREFETCH, SLOT(TMA_PREFETCH, b), FX_ABOUT},
    {OP_TMA_PREFETCH, SLOT(TMA_PREFETCH, t), FX_ABOUT},
  };
  u32 found = 0;
  for (int i = 0; i < OP_COUNT; i++)
    for (u32 k = 0; k < OPERANDS_NAMED; k++)
      found += op_info((OpCode)i)->effect[k] != 0;
  CHECK(found == COUNT(known), "%u effects", found);
  for (u32 i = 0; i < COUNT(known); i++)
    CHECK(op_info(known[i].op)->effect[known[i].slot] == known[i].fx, "%s", op_info(known[i].op)->name);
}

/* The helpers of memory.c, on ops of each kind. */
static void
test_questions(Ctx *c)
{
  Func *f = func_new(module_new(c), "k", (Span){0, 0});
  u32 n = 64;
  const Type *word = type_scalar(c, DT_I32), *t = type_tile(c, word, 1, &n, NULL);
  const Type *row = type_shared(c, DT_I32, 3, 1, &n, NULL, NULL, 0, 0);
  Value *p = ir_splat(&(Builder){f, f->body, NULL, f->span}, func_add_param(f, type_ptr(c, DT_I32), "p", 16), t);
  Builder b = builder_at_end(f, f->body);
  Value *mask = ir_const_int(&b, type_i1_like(c, t), 1);
  Value *alloc = ir_shared_alloc(&b, row), *one = ir_shared_index(&b, alloc, ir_const_int(&b, word, 1));
  Value *part = ir_shared_slice(&b, one, (i64[]){32}, (u32[]){32});
  Value *x = ir_load(&b, p, mask, NULL), *y = ir_shared_load(&b, one, t);
  Op *copy = ir_async_copy(&b, one, p, mask), *wait = ir_async_wait(&b, 0), *store = ir_store(&b, p, x, NULL);
  CHECK(op_pointer(x->def) == p && op_pointer(copy) == p && op_pointer(store) == p && !op_pointer(y->def), "pointers");
  CHECK(op_buffer(copy) == one && op_buffer(y->def) == one && !op_buffer(store) && op_buffer(part->def) == one, "buffers");
  CHECK(op_mask(x->def) == mask && op_mask(copy) == mask && !op_mask(store) && !op_mask(y->def), "masks");
  CHECK(op_shared_effects(copy) == (FX_WRITE | FX_ASYNC) && op_shared_effects(y->def) == FX_READ && !op_shared_effects(store), "effects");
  CHECK(op_is_view(part->def) && op_is_view(one->def) && !op_is_view(y->def) && !op_is_view(alloc->def), "views");
  CHECK(op_uses_shared(alloc->def) && op_uses_shared(part->def) && op_uses_shared(wait) && !op_uses_shared(store), "use");
  CHECK(op_lets_reads_pass(x->def) && op_lets_reads_pass(part->def) && !op_lets_reads_pass(store) && !op_lets_reads_pass(wait), "order");
  CHECK(buffer_alloc(part) == alloc->def && buffer_alloc(one) == alloc->def && buffer_alloc(alloc) == alloc->def, "allocs");
}

/* Every elementwise row means something to the interpreter: not what interp_num.c gives for an op that it does not know. */
static bool
has_meaning(const OpInfo *o, OpCode op, DType d)
{
  u64 x[] = {0, 1, 2, 5, 0x7f, scalar_wrap(d, ~0ull)}, r;
  if (dtype_is_float(d))
    for (u32 i = 0; i < COUNT(x); i++)
      x[i] = float_to_bits(d, (double)i * (0.75 + 0x1p-20) - 1.5);
  for (u32 i = 0; i < COUNT(x); i++)
    for (u32 k = 0; k < COUNT(x); k++)
      if (o->min_operands == 1 ? scalar_unary(op, d, x[i]) != x[i] : scalar_binary(op, d, x[i], x[k], &r) && r)
        return true;
  return false;
}

static void
test_meanings(void)
{
  for (int i = 0; i < OP_COUNT; i++) {
    const OpInfo *o = op_info((OpCode)i);
    if (o->rule != RULE_SAME || o->min_operands > 2)
      continue;
    CHECK(!(o->traits & T_INT) || has_meaning(o, (OpCode)i, DT_I32), "%s", o->name);
    CHECK(!(o->traits & T_FLT) || has_meaning(o, (OpCode)i, DT_F32), "%s of f32", o->name);
    bool all_pass = i == OP_ROUND_TF32;      /* numbers of f16 have no more bits than tf32 */
    CHECK(!(o->traits & T_FLT) || all_pass || has_meaning(o, (OpCode)i, DT_F16), "%s of f16", o->name);
  }
}

/* ---- passes: each row of passes.def runs, and only those ---- */

static void
test_passes(void)
{
  static const char *const rows[] = {
#define PASS(name, in, out, doc) #name,
#include "passes.def"
#undef PASS
  };
  for (u32 i = 0; i < COUNT(rows); i++) {
    bool runs = false;
    for (u32 k = 0; passes_order[k]; k++)
      runs |= !strcmp(passes_order[k], rows[i]);
    CHECK(runs, "%s", rows[i]);
  }
  for (u32 k = 0; passes_order[k]; k++) {
    bool known = false;
    for (u32 i = 0; i < COUNT(rows); i++)
      known |= !strcmp(passes_order[k], rows[i]);
    CHECK(known, "%s", passes_order[k]);
  }
}

/* ---- element types: ir/dtypes.def is the compiler's, runtime/dtype.def the runtime's, which stands alone ---- */

static bool
same_kind(DClass c, DtypeKind k)
{
  static const DtypeKind kinds[] = {[DC_B] = KIND_BOOL, [DC_I] = KIND_SIGNED, [DC_U] = KIND_UNSIGNED, [DC_F] = KIND_FLOAT};
  return kinds[c] == k;
}

static void
test_dtypes(void)
{
  CHECK(DT_COUNT == DTYPE_COUNT - 1, "%d types in ir/dtypes.def, %d in runtime/dtype.def", DT_COUNT, DTYPE_COUNT - 1);
  for (int d = 0; d < DT_COUNT; d++) {
    const DTypeInfo *i = &dtype_info[d];
    Dtype t = rt_dtype_find(i->name);
    CHECK(t != DTYPE_NONE, "%s is none of the runtime's", i->name);
    if (t == DTYPE_NONE)
      continue;
    const DtypeInfo *r = rt_dtype_info(t);
    CHECK(same_kind((DClass)i->cls, r->kind) && r->expbits == i->exp && r->manbits == i->man, "%s", i->name);
    CHECK(dtype_size(t) == dtype_bytes((DType)d), "%s", i->name);
    u64 one = 0, big = 0;
    if (dtype_is_float((DType)d)) {
      one = dtype_encode_float(t, 1.5);
      big = dtype_encode_float(t, dtype_decode(t, float_to_bits((DType)d, 1e300)));
    }
    CHECK(one == (dtype_is_float((DType)d) ? float_to_bits((DType)d, 1.5) : 0), "%s", i->name);
    CHECK(big == (dtype_is_float((DType)d) ? float_to_bits((DType)d, 1e300) : 0), "%s", i->name);
  }
}

/* ---- tensor-core instructions: a row of mma.def against the layouts of its fragments, the verifier, and the simulator's own table of
 * shapes (runtime/sim), which is a second opinion on purpose: it is written from the PTX ISA, not from ours. ---- */

/* Registers of 32 bits that a thread gives for a tile in layout l. */
static u32
words_of(const Layout *l, u32 bits)
{
  return layout_regs(l) * bits / 32;
}

static const Layout *
factor_layout(Ctx *c, const Mma *m, u32 which, const u32 *shape)
{
  static const u32 one[] = {1, 1};
  u32 bits = dtype_bits(m->factor[0]);
  return m->sparse ? layout_mma_sparse_operand(c, (int)which, 2, shape, one, bits) : layout_mma_operand(c, (int)which, 2, shape, one, bits);
}

static void
check_fragments(Ctx *c, const Mma *m)
{
  static const u32 one[] = {1, 1};
  u32 a[] = {m->m, m->k >> m->sparse}, b[] = {m->k, m->n}, acc[] = {m->m, m->n}, bits = dtype_bits(m->factor[0]), words[] = {m->m, m->k / 16};
  const Layout *la = factor_layout(c, m, 0, a), *lb = factor_layout(c, m, 1, b);
  const Layout *lc = layout_mma(c, 2, acc, one);
  CHECK(dtype_bits(m->factor[1]) == bits, "%s: factors of different width", m->name);
  CHECK(words_of(la, bits) == m->words[0] && words_of(lb, bits) == m->words[1], "%s: factors", m->name);
  CHECK(words_of(lc, dtype_bits(m->acc)) == m->words[2], "%s: sums", m->name);
  CHECK(!layout_free_bits(la, IN_REG) && !layout_free_bits(la, IN_LANE) && !layout_free_bits(lb, IN_LANE) && !layout_free_bits(lc, IN_LANE),
        "%s: elements are held twice", m->name);
  if (!m->sparse)
    return;
  const Layout *meta = layout_mma_meta(c, 2, words, one, bits);
  CHECK(words_of(meta, 16) == 1 && layout_covers(meta) && layout_free_bits(meta, IN_LANE) == (m->k == 64 ? 0u : 2u), "%s: metadata", m->name);
}

/* The verifier takes a dot on exactly this instruction. */
static void
check_dot(Ctx *c, const Mma *m)
{
  static const u32 one[] = {1, 1};
  u32 a[] = {m->m, m->k >> m->sparse}, b[] = {m->k, m->n}, acc[] = {m->m, m->n}, words[] = {m->m, m->k / 16};
  Module *module = module_new(c);
  module->phase = PHASE_PLACED;
  Func *f = func_new(module, "k", (Span){0, 0});
  f->warps = 1;
  Builder at = builder_at_end(f, f->body);
  const Type *fa = type_scalar(c, m->factor[0]), *fb = type_scalar(c, m->factor[1]), *sum = type_scalar(c, m->acc);
  Value *x = ir_const_bits(&at, type_tile(c, fa, 2, a, factor_layout(c, m, 0, a)), 0);
  Value *y = ir_const_bits(&at, type_tile(c, fb, 2, b, factor_layout(c, m, 1, b)), 0);
  Value *z = ir_const_bits(&at, type_tile(c, sum, 2, acc, layout_mma(c, 2, acc, one)), 0), *d, *w;
  if (m->sparse) {
    w = ir_const_bits(&at, type_tile(c, type_scalar(c, DT_U16), 2, words, layout_mma_meta(c, 2, words, one, dtype_bits(m->factor[0]))), 0);
    d = ir_dot_sparse(&at, x, w, y, z);
  } else {
    d = ir_dot(&at, x, y, z);
  }
  op_set_str(d->def, AT_MMA, m->name);
  op_set_ints(d->def, AT_WARPS, (i64[]){1, 1}, 2);
  op_create(&at, OP_RETURN, 0, NULL, 0, NULL, 0);
  CHECK(ir_verify(module), "%s", m->name);
}

/* How PTX calls an element type in an mma. */
static const char *
mma_type(DType d)
{
  static const char *const names[DT_COUNT] = {
    [DT_F16] = "f16", [DT_BF16] = "bf16", [DT_F32] = "tf32", [DT_I8] = "s8", [DT_U8] = "u8", [DT_F8E4M3] = "e4m3", [DT_F8E5M2] = "e5m2"};
  return names[d];
}

static void
put_registers(Buf *b, char kind, u32 n, const char *end)
{
  for (u32 i = 0; i < n; i++)
    buf_printf(b, "%s%%%c%u", i ? ", " : "{", kind, i);
  buf_printf(b, "}%s", end);
}

/* Does the simulator load a kernel with one such instruction, whose factor a has `more` registers than the row says? */
static bool
loads(Ctx *c, TilertDevice *dev, const Mma *m, u32 more)
{
  Buf b = {.arena = c->scratch};
  const char *fa = mma_type(m->factor[0]), *fb = mma_type(m->factor[1]), *acc = m->acc == DT_F32 ? "f32" : m->acc == DT_F16 ? "f16" : "s32";
  char sums = m->acc == DT_F32 ? 'f' : 'r';
  buf_puts(&b, "//@tilec kernel=k warps=1 shared=0 target=sm_100a params=\n.version 8.6\n.target sm_100a\n.address_size 64\n");
  buf_puts(&b, ".visible .entry k() {\n.reg .b32 %r<16>; .reg .f32 %f<16>;\n");
  buf_printf(&b, "mma%s.sync.aligned.m%un%uk%u.row.col.%s.%s.%s.%s ", m->sparse ? ".sp::ordered_metadata" : "", m->m, m->n, m->k, acc, fa, fb,
             acc);
  put_registers(&b, sums, m->words[2], ", ");
  put_registers(&b, 'r', m->words[0] + more, ", ");
  put_registers(&b, 'r', m->words[1], ", ");
  put_registers(&b, sums, m->words[2], m->sparse ? ", %r15, 0;\nret; }\n" : ";\nret; }\n");
  TilertModule *module = NULL;
  int status = tilert_module_load(dev, buf_str(&b), b.len, NULL, 0, &module, NULL);
  tilert_module_destroy(module);
  return status == TILERT_OK;
}

static void
test_mma(Ctx *c)
{
  TilertDevice *dev = NULL;
  const Mma *m;
  CHECK(tilert_device_open("sim", NULL, &dev, NULL) == TILERT_OK, "no simulator");
  for (u32 i = 0; dev && (m = mma_at(i)) != NULL; i++) {
    const char *shape = arena_printf(c->scratch, "m%un%uk%u", m->m, m->n, m->k);
    CHECK(!strncmp(m->name, shape, strlen(shape)) && m->name[strlen(shape)] == '.', "%s is %s", m->name, shape);
    CHECK(strstr(m->intrinsic, arena_printf(c->scratch, ".%s.", shape)), "%s is not %s", m->intrinsic, shape);
    CHECK(mma_find(m->name, m->acc) == m, "%s: two rows of this name and sum", m->name);
    CHECK(mma_type(m->factor[0]) && mma_type(m->factor[1]), "%s: how does PTX call the factors' types?", m->name);
    check_fragments(c, m);
    check_dot(c, m);
    CHECK(loads(c, dev, m, 0) && !loads(c, dev, m, 1), "%s: the simulator counts other registers", m->name);
  }
  tilert_device_close(dev);
}

int
main(void)
{
  Ctx *c = ctx_new();
  test_ops();
  test_memory();
  test_questions(c);
  test_meanings();
  test_passes();
  test_dtypes();
  test_mma(c);
  ctx_free(c);
  return failures != 0;
}
