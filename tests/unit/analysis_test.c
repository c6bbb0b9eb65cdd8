/* analysis_test.c - what analyse_axes claims, against what the interpreter computes for thousands of random index
 * programs, and against what well-known kernels need. */
#include "../../ir/interp.h"
#include <stdio.h>
#include <stdlib.h>

static int failures;
#define CHECK(cond) do { if (!(cond) && ++failures < 40) fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #cond); } while (0)

/* ---- claims against values ---- */
typedef struct Watch {
  Func *func;
  const AxisInfo *info;
  u64 **last;            /* by value id: the elements of its latest value */
  bool small;            /* nothing overflows: a wrong sign is a wrong claim */
  bool tainted;          /* an assumption was broken; what follows proves nothing */
  u64 claims;            /* claims checked that say something */
  char *text;
} Watch;

static void
complain(Watch *w, const Value *v, u32 dim, u32 i, const char *what)
{
  const AxisInfo *f = &w->info[v->id];
  if (++failures > 5)
    return;
  fprintf(stderr, "false %s along %u at element %u of value %u (%s): C %u D %u K %u, steps %u of %u\n", what, dim, i, v->id,
          v->def ? op_info(v->def->code)->name : "argument", f->contiguity[dim], f->divisibility[dim], f->constancy[dim],
          f->steps[dim], f->stride[dim]);
  if (v->def) {
    Buf b = {w->func->module->ctx->perm, NULL, 0, 0};
    ir_print(&b, w->func->module, false);
    fprintf(stderr, "%s\n", buf_str(&b));
  }
}

static void
check_dim(Watch *w, const Value *v, const u64 *bits, u32 dim, u32 extent, u32 stride)
{
  const AxisInfo *f = &w->info[v->id];
  const Type *t = v->type;
  u64 unit = type_is_ptr(t) ? dtype_bytes(t->dt) : 1;
  u32 n = type_numel(t);
  for (u32 i = 0; i < n; i++) {
    u32 at = i / stride % extent;
    u64 x = bits[i];
    if (at % f->contiguity[dim] == 0) {
      if ((u64)scalar_int(type_arith(t), x) % f->divisibility[dim])
        complain(w, v, dim, i, "divisibility");
    } else if (x != scalar_wrap(type_arith(t), bits[i - stride] + unit)) {
      complain(w, v, dim, i, "contiguity");
    }
    if (at % f->constancy[dim] && x != bits[i - stride])
      complain(w, v, dim, i, "constancy");
    for (u32 g = 2; g <= f->steps[dim]; g *= 2)
      if (at % g && x / (g * f->stride[dim]) != bits[i - stride] / (g * f->stride[dim]))
        complain(w, v, dim, i, "level");
  }
  w->claims += (f->contiguity[dim] > 1) + (f->divisibility[dim] > 1) + (f->constancy[dim] > 1) + (f->stride[dim] > 1);
}

static bool
breaks_assumption(Watch *w, const Value *v, const u64 *bits)
{
  const Op *def = v->def;
  if (def && def->code == OP_REM && dtype_is_signed(v->type->dt))
    for (u32 i = 0; i < type_numel(v->type); i++)
      if (scalar_int(v->type->dt, w->last[op_operand(def, 0)->id][i]) < 0)
        return true;
  for (u32 i = 0; w->info[v->id].nonneg && i < type_numel(v->type); i++)
    if (bits[i] >> (dtype_bits(v->type->dt) - 1)) {
      if (w->small)
        complain(w, v, 0, i, "sign");
      return true;
    }
  return false;
}

static void
observe(void *user, const Value *v, const u64 *bits, u32 n)
{
  Watch *w = user;
  const AxisInfo *f = &w->info[v->id];
  const Type *t = v->type;
  w->last[v->id] = realloc(w->last[v->id], n * sizeof *bits);
  memcpy(w->last[v->id], bits, n * sizeof *bits);
  w->tainted |= breaks_assumption(w, v, bits);
  if (w->tainted)
    return;
  for (u32 i = 0; f->is_const && i < n; i++)
    if (bits[i] != scalar_wrap(t->dt, (u64)f->value))
      complain(w, v, 0, i, "constant");
  u32 stride = 1;
  for (int d = (type_is_tile(t) ? t->rank : 1) - 1; d >= 0; d--) {
    u32 extent = type_is_tile(t) ? t->shape[d] : 1;
    check_dim(w, v, bits, (u32)d, extent, stride);
    stride *= extent;
  }
}

/* ---- random programs ---- */
typedef struct Gen {
  u64 seed;
  Ctx *ctx;
  Builder b;
  Value *pool[512];
  u32 len;
  bool wild;
} Gen;

static u32
roll(Gen *g, u32 n)
{
  g->seed ^= g->seed << 13, g->seed ^= g->seed >> 7, g->seed ^= g->seed << 17;
  return (u32)(g->seed >> 20) % n;
}

static Value *
keep(Gen *g, Value *v)
{
  if (g->len < COUNT(g->pool))
    g->pool[g->len++] = v;
  return v;
}

static Value *
any(Gen *g)
{
  return g->pool[roll(g, 3) ? g->len - 1 - roll(g, g->len < 12 ? g->len : 12) : roll(g, g->len)];
}

static Value *
any_int(Gen *g)
{
  for (;;) {
    Value *v = any(g);
    if (type_is_int(v->type))
      return v;
  }
}

static i64
number(Gen *g)
{
  static const i64 common[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31, 32, 48, 64, 255, -1, -4, -16, -32, -7, -64, 6, 128};
  if (g->wild && !roll(g, 4))
    return (i64)1 << roll(g, 32);
  return common[roll(g, COUNT(common))];
}

static Value *
number_of(Gen *g, const Type *t)
{
  return ir_const_int(&g->b, t, (i64)scalar_int(t->dt, scalar_wrap(t->dt, (u64)number(g))));
}

/* A value of type t: one from the pool, a splat, or a constant. */
static Value *
partner(Gen *g, const Type *t)
{
  for (int tries = 0; tries < 12; tries++) {
    Value *v = any(g);
    if (v->type == t)
      return v;
    if (type_is_tile(t) && v->type == type_elem(g->ctx, t) && roll(g, 2))
      return keep(g, ir_splat(&g->b, v, t));
  }
  return number_of(g, t);
}

static const u32 EXTENTS[] = {16, 8, 32, 12, 7, 24, 1, 13, 4};

static void
gen_binary(Gen *g)
{
  static const OpCode ops[] = {OP_ADD, OP_ADD, OP_SUB, OP_MUL, OP_MUL, OP_DIV, OP_DIV, OP_REM, OP_REM, OP_AND, OP_OR, OP_XOR, OP_SHL,
                               OP_SHR, OP_MIN, OP_MAX, OP_UMULHI};
  OpCode op = ops[roll(g, COUNT(ops))];
  Value *x = any_int(g), *y = roll(g, 3) ? partner(g, x->type) : number_of(g, x->type);
  if (op == OP_MUL && !g->wild)
    y = number_of(g, x->type);
  if (op == OP_SHL && !g->wild)
    y = ir_const_int(&g->b, x->type, roll(g, 4));
  if (roll(g, 2) && op != OP_SUB && op != OP_DIV && op != OP_REM && op != OP_SHL && op != OP_SHR)
    keep(g, ir_binary(&g->b, op, y, x));
  else
    keep(g, ir_binary(&g->b, op, x, y));
}

static void
gen_shape(Gen *g)
{
  Value *x = any(g);
  const Type *t = x->type;
  u32 n = type_numel(t), shape[2];
  if (!type_is_tile(t))
    return;
  if (t->rank == 2 && (t->shape[0] == 1 || t->shape[1] == 1) && roll(g, 2)) {
    for (int d = 0; d < 2; d++)
      shape[d] = t->shape[d] == 1 ? EXTENTS[roll(g, COUNT(EXTENTS))] : t->shape[d];
    keep(g, ir_broadcast(&g->b, x, shape));
  } else if (t->rank == 2 && roll(g, 2)) {
    keep(g, ir_permute(&g->b, x, (const int[]){1, 0}));
  } else if (t->rank == 1 && roll(g, 2)) {
    keep(g, ir_expand_dims(&g->b, x, (int)roll(g, 2)));
  } else {
    u32 cut = 1u << roll(g, 4);
    shape[0] = n % cut ? 1 : cut, shape[1] = n / shape[0];
    keep(g, roll(g, 3) ? ir_reshape(&g->b, x, 2, shape) : ir_reshape(&g->b, x, 1, &n));
  }
}

static void
gen_cast(Gen *g)
{
  static const DType to[] = {DT_I64, DT_I64, DT_U32, DT_I32, DT_I8, DT_I16, DT_U64, DT_U8, DT_I1, DT_F32};
  Value *x = any(g);
  if (!type_is_ptr(x->type) && (g->wild || !type_is_float(x->type)))
    keep(g, ir_cast(&g->b, x, to[roll(g, COUNT(to))]));
}

static void
gen_select(Gen *g)
{
  static const char *const preds[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  Value *x = any_int(g), *y = partner(g, x->type);
  Value *c = keep(g, ir_cmp(&g->b, preds[roll(g, 6)], x, y));
  if (roll(g, 2))
    keep(g, ir_select(&g->b, c, any_int(g)->type == x->type ? x : y, partner(g, x->type)));
}

static void
gen_pointer(Gen *g)
{
  Value *off = any_int(g), *p = NULL;
  for (u32 i = 0; i < g->len; i++)
    if (type_is_ptr(g->pool[i]->type) && (type_same_shape(g->pool[i]->type, off->type) || !type_is_tile(g->pool[i]->type)) &&
        (!p || roll(g, 2)))
      p = g->pool[i];
  if (g->wild || !p)
    return;
  if (!type_same_shape(p->type, off->type))
    p = keep(g, ir_splat(&g->b, p, type_with_elem(g->ctx, off->type, p->type)));
  keep(g, ir_addptr(&g->b, p, off));
}

static void gen_ops(Gen *g, u32 n, u32 depth);

static Value *
same_type(Gen *g, const Type *t, u32 from)
{
  for (int i = 0; i < 20; i++) {
    Value *v = g->pool[from + roll(g, g->len - from)];
    if (v->type == t)
      return v;
  }
  return NULL;
}

static void
gen_for(Gen *g, u32 depth)
{
  const Type *t = type_scalar(g->ctx, DT_I32);
  i64 step = 1 + roll(g, 3) * 7, lo = (i64)roll(g, 3) * 16;
  Value *inits[2] = {any(g), any_int(g)};
  Value *bounds[3] = {ir_const_int(&g->b, t, lo), ir_const_int(&g->b, t, lo + step * roll(g, 4)), ir_const_int(&g->b, t, step)};
  if (roll(g, 2))
    bounds[0] = number_of(g, t), bounds[1] = ir_binary(&g->b, OP_ADD, bounds[0], bounds[1]);
  Op *loop = ir_for(&g->b, bounds[0], bounds[1], bounds[2], 2, inits);
  Builder outer = g->b;
  u32 mark = g->len;
  Block *body = loop->regions[0];
  g->b = builder_at_end(outer.func, body);
  for (u32 i = 0; i < body->nargs; i++)
    keep(g, body->args[i]);
  gen_ops(g, 5, depth + 1);
  Value *out[2];
  for (u32 i = 0; i < 2; i++) {
    out[i] = same_type(g, inits[i]->type, mark);
    if (!out[i])
      out[i] = body->args[1 + i];
  }
  ir_yield(&g->b, 2, out);
  g->b = outer;
  g->len = mark;
  for (u32 i = 0; i < 2; i++)
    keep(g, loop->results[i]);
}

static void
gen_if(Gen *g, u32 depth)
{
  Value *x = any_int(g), *c = NULL;
  const Type *t = x->type;
  for (u32 i = 0; i < g->len; i++)
    if (g->pool[i]->type == type_scalar(g->ctx, DT_I1))
      c = g->pool[i];
  if (!c)
    return;
  Op *branch = ir_if(&g->b, c, 1, &t);
  Builder outer = g->b;
  u32 mark = g->len;
  for (u32 r = 0; r < 2; r++) {
    g->b = builder_at_end(outer.func, branch->regions[r]);
    gen_ops(g, 3, depth + 1);
    Value *out = same_type(g, t, 0);
    ir_yield(&g->b, 1, out ? &out : &x);
    g->len = mark;
  }
  g->b = outer;
  keep(g, branch->results[0]);
}

static void
gen_ops(Gen *g, u32 n, u32 depth)
{
  for (u32 i = 0; i < n; i++) {
    u32 kind = roll(g, 20), start = roll(g, 3) ? 0 : (u32)number(g) & 63;
    if (kind < 8)
      gen_binary(g);
    else if (kind < 11)
      gen_shape(g);
    else if (kind < 13)
      gen_select(g);
    else if (kind < 14)
      gen_cast(g);
    else if (kind < 16)
      gen_pointer(g);
    else if (kind < 17)
      keep(g, ir_arange(&g->b, start, start + EXTENTS[roll(g, COUNT(EXTENTS))]));
    else if (kind < 18 && depth < 3)
      gen_for(g, depth);
    else if (kind < 19 && depth < 3)
      gen_if(g, depth);
    else
      keep(g, number_of(g, any_int(g)->type));
  }
}

/* The promise of a hint is made true by construction: x * d, or a run laid over multiples of its length. */
static void
gen_hints(Gen *g)
{
  Value *x = any_int(g);
  if (dtype_bits(x->type->dt) < 32)
    return;
  Value *d = ir_const_int(&g->b, x->type, 16), *y = ir_binary(&g->b, OP_MUL, x, d);
  Builder at = builder_at_end(g->b.func, g->b.block);
  Op *h = op_create(&at, OP_HINT, 1, &y, 1, &y->type, 0);
  op_set_int(h, AT_DIVISIBLE, 48 >> roll(g, 2) & ~31u ? 16 : 8);
  keep(g, op_result(h));
}

static const char CHAR_NAMES[4][2] = {"n", "m", "p", "q"};

static Gen
gen_program(u64 seed, bool wild, u32 divisible)
{
  Gen g = {.seed = seed * 0x9e3779b97f4a7c15ull | 1, .wild = wild, .ctx = ctx_new()};
  Module *m = module_new(g.ctx);
  Func *f = func_new(m, "k", (Span){0, 0});
  const Type *types[4] = {type_scalar(g.ctx, DT_I32), type_scalar(g.ctx, DT_U32), type_ptr(g.ctx, DT_F32), type_ptr(g.ctx, DT_I8)};
  for (u32 i = 0; i < 4; i++)
    keep(&g, func_add_param(f, types[i], CHAR_NAMES[i], divisible));
  g.b = builder_at_end(f, f->body);
  keep(&g, ir_program_id(&g.b, 0));
  keep(&g, ir_arange(&g.b, 0, EXTENTS[roll(&g, COUNT(EXTENTS))]));
  keep(&g, ir_arange(&g.b, 16, 16 + EXTENTS[roll(&g, COUNT(EXTENTS))]));
  gen_ops(&g, 12, 0);
  gen_hints(&g);
  gen_ops(&g, 12, 0);
  op_create(&g.b, OP_RETURN, 0, NULL, 0, NULL, 0);
  return g;
}

/* Returns the claims checked; *tainted counts the programs that broke an assumption on the way. */
static u64
check_program(u64 seed, bool wild, u32 *tainted)
{
  u32 divisible = 1u << seed % 6, programs[3] = {3, 1, 1};
  Gen g = gen_program(seed, wild, divisible);
  Func *f = g.b.func;
  Watch w = {.func = f, .info = analyse_axes(f), .last = calloc(f->nvalues, sizeof *w.last)};
  InterpOptions opt = {.observe = observe, .user = &w, .max_steps = 1u << 20};
  u64 scale = wild ? (u64)roll(&g, 1u << 30) : 3;
  const u64 params[4] = {divisible * scale, divisible * 5, (u64)divisible * 4096, (u64)divisible * 100000};
  InterpError err;
  interp_run_with(f, programs, params, NULL, 0, &opt, &err);
  for (u32 i = 0; i < f->nvalues; i++)
    free(w.last[i]);
  free(w.last);
  ctx_free(g.ctx);
  *tainted += w.tainted;
  return w.claims;
}

/* ---- known kernels ---- */
static Func *
parse_kernel(Ctx *c, const char *text)
{
  Module *m = ir_parse(c, source_add(c, SOURCE_PROGRAM, "test.tir", text, strlen(text)));
  if (!m) {
    Buf b = {c->perm, NULL, 0, 0};
    diag_render(c, &b, false, false);
    fprintf(stderr, "%s", buf_str(&b));
    exit(1);
  }
  return m->funcs.data[0];
}

/* The vector width along the last dimension of the nth load or store of f. */
static u32
vector_of(Func *f, u32 nth)
{
  const AxisInfo *info = analyse_axes(f);
  for (Op *op = f->body->first; op; op = op->next) {
    if ((op->code != OP_LOAD && op->code != OP_STORE) || nth--)
      continue;
    Value *p = op_operand(op, 0), *mask = op_operand(op, op->code == OP_LOAD ? 1 : 2);
    u32 last = p->type->rank - 1u;
    return axis_vector(&info[p->id], mask ? &info[mask->id] : NULL, last, p->type->shape[last], dtype_bytes(p->type->dt), 0);
  }
  return 0;
}

static u32
vector_in(const char *params, const char *body, u32 nth)
{
  char text[4096];
  Ctx *c = ctx_new();
  snprintf(text, sizeof text, "module tile\nkernel @k(%s) warps = 4 shared = 0 {\n%s  return\n}\n", params, body);
  u32 v = vector_of(parse_kernel(c, text), nth);
  ctx_free(c);
  return v;
}

static u32
add_vector(const char *params, u32 extent, const char *scale)
{
  char body[2048];
  snprintf(body, sizeof body,
           "  %%pid = program_id axis = 0 : i32\n  %%b = const value = %s : i32\n  %%o = mul %%pid, %%b : i32\n"
           "  %%r = arange start = 0 end = %u : i32[%u]\n  %%os = splat %%o : i32[%u]\n  %%i = add %%os, %%r : i32[%u]\n"
           "  %%ns = splat %%n : i32[%u]\n  %%m = cmp %%i, %%ns pred = \"lt\" : i1[%u]\n"
           "  %%xs = splat %%x : (*f32)[%u]\n  %%xp = addptr %%xs, %%i : (*f32)[%u]\n  %%v = load %%xp, %%m : f32[%u]\n",
           scale, extent, extent, extent, extent, extent, extent, extent, extent, extent);
  return vector_in(params, body, 0);
}

static void
test_add(void)
{
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32 {divisible = 16}", 1024, "1024") == 4);
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32 {divisible = 2}", 1024, "1024") == 2);
  CHECK(add_vector("%x: *f32 {divisible = 8}, %n: i32 {divisible = 16}", 1024, "1024") == 2);
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32", 1024, "1024") == 1);
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32 {divisible = 16}", 780, "780") == 4);
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32 {divisible = 16}", 781, "781") == 1);
  CHECK(add_vector("%x: *f32 {divisible = 16}, %n: i32 {divisible = 16}", 1024, "1023") == 1);
}

/* The width of an access to *i32 where `index` of %i, which counts from pid * 1024, is compared with %n. */
static u32
masked_vector(const char *index, const char *pred, u32 divisible)
{
  char body[2048], params[128];
  snprintf(params, sizeof params, "%%x: *i32 {divisible = 16}, %%n: i32 {divisible = %u}", divisible);
  snprintf(body, sizeof body,
           "  %%pid = program_id axis = 0 : i32\n  %%b = const value = 1024 : i32\n  %%o = mul %%pid, %%b : i32\n"
           "  %%r = arange start = 0 end = 1024 : i32[1024]\n  %%os = splat %%o : i32[1024]\n  %%i = add %%os, %%r : i32[1024]\n"
           "  %%eight = const value = 8 : i32[1024]\n  %%three = const value = 3 : i32[1024]\n%s"
           "  %%ns = splat %%n : i32[1024]\n  %%m = cmp %%j, %%ns pred = \"%s\" : i1[1024]\n"
           "  %%xs = splat %%x : (*i32)[1024]\n  %%xp = addptr %%xs, %%i : (*i32)[1024]\n  %%v = load %%xp, %%m : i32[1024]\n", index, pred);
  return vector_in(params, body, 0);
}

static void
test_levels(void)
{
  static const char times_8[] = "  %j = mul %i, %eight : i32[1024]\n", times_3[] = "  %j = mul %i, %three : i32[1024]\n";
  CHECK(masked_vector(times_8, "lt", 32) == 4);
  CHECK(masked_vector(times_8, "ge", 64) == 4);
  CHECK(masked_vector(times_8, "lt", 16) == 2);
  CHECK(masked_vector(times_8, "lt", 8) == 1);
  CHECK(masked_vector(times_8, "le", 64) == 1);
  CHECK(masked_vector(times_3, "lt", 64) == 1);
  CHECK(masked_vector("  %j = shl %i, %three : i32[1024]\n", "lt", 32) == 4);
  CHECK(masked_vector("  %h = mul %eight, %i : i32[1024]\n  %e = add %h, %three : i32[1024]\n  %j = max %e, %three : i32[1024]\n",
                      "lt", 32) == 4);
  CHECK(masked_vector("  %h = mul %i, %eight : i32[1024]\n  %j = add %h, %eight : i32[1024]\n", "lt", 32) == 1);
}

static void
test_matmul(void)
{
  /* B[k, n % N] of a grouped matmul, advanced along K inside a loop; and a transposed view that must not vectorise. */
  static const char body[] =
    "  %pid = program_id axis = 0 : i32\n  %bn = const value = 64 : i32\n  %o = mul %pid, %bn : i32\n"
    "  %r = arange start = 0 end = 64 : i32[64]\n  %os = splat %o : i32[64]\n  %i = add %os, %r : i32[64]\n"
    "  %Ns = splat %N : i32[64]\n  %w = rem %i, %Ns : i32[64]\n"
    "  %k = arange start = 0 end = 32 : i32[32]\n  %ke = expand_dims %k axis = 1 : i32[32, 1]\n"
    "  %Nk = splat %N : i32[32, 1]\n  %row = mul %ke, %Nk : i32[32, 1]\n"
    "  %we = expand_dims %w axis = 0 : i32[1, 64]\n"
    "  %rb = broadcast %row : i32[32, 64]\n  %wb = broadcast %we : i32[32, 64]\n  %off = add %rb, %wb : i32[32, 64]\n"
    "  %ps = splat %p : (*f16)[32, 64]\n  %q0 = addptr %ps, %off : (*f16)[32, 64]\n"
    "  %z = const value = 0 : i32\n  %e = const value = 320 : i32\n  %s = const value = 32 : i32\n"
    "  %adv = mul %N, %s : i32\n  %advs = splat %adv : i32[32, 64]\n"
    "  %qn = for %z, %e, %s, %q0 : (*f16)[32, 64] {\n  ^(%it: i32, %q: (*f16)[32, 64]):\n"
    "    %v = load %q : f16[32, 64]\n    %q2 = addptr %q, %advs : (*f16)[32, 64]\n    yield %q2\n  }\n"
    "  %last = load %qn : f16[32, 64]\n"
    "  %t = permute %qn perm = [1, 0] : (*f16)[64, 32]\n  %lt = load %t : f16[64, 32]\n";
  CHECK(vector_in("%p: *f16 {divisible = 16}, %N: i32 {divisible = 16}", body, 0) == 8);
  CHECK(vector_in("%p: *f16 {divisible = 16}, %N: i32 {divisible = 4}", body, 0) == 4);
  CHECK(vector_in("%p: *f16 {divisible = 16}, %N: i32", body, 0) == 1);
  CHECK(vector_in("%p: *f16 {divisible = 16}, %N: i32 {divisible = 16}", body, 1) == 1);
}

/* Checks every claim about a kernel (%n: i32, %p: *f32) for many n. */
static void
check_text(const char *body)
{
  char text[4096];
  Ctx *c = ctx_new();
  snprintf(text, sizeof text, "module tile\nkernel @k(%%n: i32, %%p: *f32 {divisible = 64}) warps = 4 shared = 0 {\n%s  return\n}\n", body);
  Func *f = parse_kernel(c, text);
  Watch w = {.func = f, .info = analyse_axes(f), .small = true, .last = calloc(f->nvalues, sizeof *w.last)};
  for (i32 n = -300; n <= 300; n++) {
    InterpOptions opt = {.observe = observe, .user = &w};
    InterpError err;
    interp_run_with(f, (const u32[]){1, 1, 1}, (const u64[]){(u32)n, 4096}, NULL, 0, &opt, &err);
    w.tainted = false;
  }
  for (u32 i = 0; i < f->nvalues; i++)
    free(w.last[i]);
  free(w.last);
  ctx_free(c);
}

static void
test_corners(void)
{
  check_text("  %r = arange start = 0 end = 64 : i32[64]\n  %ns = splat %n : i32[64]\n  %x = add %ns, %r : i32[64]\n"
             "  %a = cast %x : i8[64]\n  %b = cast %x : u8[64]\n  %c = cast %x : u32[64]\n  %ps = splat %p : (*f32)[64]\n"
             "  %qa = addptr %ps, %a : (*f32)[64]\n  %qb = addptr %ps, %b : (*f32)[64]\n  %qc = addptr %ps, %c : (*f32)[64]\n"
             "  %ia = cast %a : i32[64]\n  %ic = cast %c : i64[64]\n");
  check_text("  %r = arange start = 0 end = 1024 : i32[1024]\n  %a = cast %r : i8[1024]\n  %b = cast %a : i64[1024]\n"
             "  %u = cast %r : u8[1024]\n  %v = cast %u : i16[1024]\n"
             "  %s = arange start = -64 end = 64 : i32[128]\n  %t = cast %s : u32[128]\n  %w = cast %t : i64[128]\n");
  check_text("  %r = arange start = 16 end = 28 : i32[12]\n  %e = expand_dims %r axis = 0 : i32[1, 12]\n"
             "  %b = broadcast %e : i32[3, 12]\n  %f = reshape %b : i32[36]\n  %g = reshape %b : i32[9, 4]\n"
             "  %h = reshape %f : i32[2, 18]\n  %i = reshape %b : i32[2, 3, 6]\n  %eight = const value = 8 : i32[3, 12]\n"
             "  %q = div %b, %eight : i32[3, 12]\n  %qf = reshape %q : i32[36]\n  %qg = reshape %q : i32[9, 4]\n");
  check_text("  %r = arange start = 0 end = 16 : i32[16]\n  %four = const value = 4 : i32\n  %m4 = mul %n, %four : i32\n"
             "  %ms = splat %m4 : i32[16]\n  %x = add %ms, %r : i32[16]\n  %z = const value = 0 : i32[16]\n"
             "  %m = min %x, %z : i32[16]\n  %pos = max %x, %z : i32[16]\n  %f = const value = 4 : i32[16]\n"
             "  %d1 = div %x, %f : i32[16]\n  %d2 = div %m, %f : i32[16]\n  %d3 = div %pos, %f : i32[16]\n"
             "  %lo = min %ms, %r : i32[16]\n  %d4 = div %lo, %f : i32[16]\n  %abs = abs %x : i32[16]\n"
             "  %d5 = div %abs, %f : i32[16]\n  %sh = shr %x, %f : i32[16]\n  %c = cmp %x, %f pred = \"lt\" : i1[16]\n"
             "  %k0 = const value = 0 : i32[16]\n  %low = min %ms, %f : i32[16]\n  %y = add %low, %r : i32[16]\n"
             "  %d6 = div %y, %f : i32[16]\n  %hi = max %x, %ms : i32[16]\n");
}

static void
test_hint(void)
{
  static const char body[] =
    "  %r = arange start = 0 end = 64 : i32[64]\n  %is = splat %i : (*i32)[64]\n  %ip = addptr %is, %r : (*i32)[64]\n"
    "  %idx = load %ip : i32[64]\n  %h = hint %idx divisible = 8 contiguous = 8 : i32[64]\n"
    "  %ps = splat %p : (*f32)[64]\n  %q = addptr %ps, %h : (*f32)[64]\n  %v = load %q : f32[64]\n"
    "  %q2 = addptr %ps, %idx : (*f32)[64]\n  %v2 = load %q2 : f32[64]\n";
  CHECK(vector_in("%i: *i32 {divisible = 16}, %p: *f32 {divisible = 16}", body, 0) == 4);
  CHECK(vector_in("%i: *i32 {divisible = 16}, %p: *f32 {divisible = 16}", body, 1) == 4);
  CHECK(vector_in("%i: *i32 {divisible = 16}, %p: *f32 {divisible = 16}", body, 2) == 1);
}

int
main(void)
{
  u64 claims = 0;
  u32 tainted = 0;
  test_add();
  test_levels();
  test_matmul();
  test_hint();
  test_corners();
  for (u64 seed = 1; seed <= 3000 && failures < 6; seed++)
    claims += check_program(seed, seed % 3 == 0, &tainted);
  CHECK(claims > 100000 && tainted < 1000);
  if (getenv("VERBOSE"))
    fprintf(stderr, "%llu claims, %u of 3000 programs broke an assumption\n", (unsigned long long)claims, tainted);
  return failures != 0;
}
