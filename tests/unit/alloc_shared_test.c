/* alloc_shared_test.c - offsets in shared memory, of random kernels: buffers and rows of them, made and freed in any order and at any
 * depth, conversions between. While it is written, a kernel's live buffers are known without positions or ranges; afterwards no two
 * buffers that were live together overlap, each lies at the lowest place that is free for all of its life, and scratch lies behind the
 * buffers that are live while its op runs. In every third kernel warps part: what their regions make is live together, however short. */
#include "../../passes/internal.h"
#include "check.h"
#include "scratch.h"

enum { KERNELS = 400, MAX_BUFFERS = 48, MAX_SCRATCH = 16, MAX_DEPTH = 3, REGIONS = 3 };

typedef struct Buffer { Value *v; u32 bytes; bool live; } Buffer;
typedef struct Kernel {
  Ctx *c;
  Func *f;
  u32 seed, n, nscratch;
  Value *cond, *x;                           /* an i1, a tile */
  const Layout *layout[2];
  Buffer buffer[MAX_BUFFERS];
  bool together[MAX_BUFFERS][MAX_BUFFERS];   /* [later][earlier]: live at one time */
  Op *scratch[MAX_SCRATCH];
  bool beside[MAX_SCRATCH][MAX_BUFFERS];     /* live while the op runs */
  u32 region[MAX_SCRATCH];                   /* 0: none; regions from 1 on run at the same time */
  bool may_part;
} Kernel;

static u32
rnd(Kernel *k, u32 n)
{
  k->seed = k->seed * 1664525u + 1013904223u;
  return (k->seed >> 8) % n;
}

/* ---- writing a kernel ---- */

static void
add_buffer(Kernel *k, Builder *b)
{
  static const u32 extents[] = {1, 16, 48, 64, 100, 256, 512, 1024};
  static const DType dtypes[] = {DT_I8, DT_F16, DT_F32, DT_F64};
  u32 shape[2] = {1u << rnd(k, 3), extents[rnd(k, COUNT(extents))]}, row = rnd(k, 3) ? 0 : 1 + rnd(k, 3), pad = rnd(k, 4) ? 0 : 8;
  const Type *t = type_shared(k->c, dtypes[rnd(k, COUNT(dtypes))], row, 2, shape, NULL, NULL, pad ? next_pow2(shape[1]) : 0, pad);
  u32 elements = shape[0] * next_pow2(shape[1]), bytes = (elements + shape[0] * pad) * dtype_bytes(t->dt);
  Buffer *own = &k->buffer[k->n];
  *own = (Buffer){ir_shared_alloc(b, t), (bytes + 127) / 128 * 128 * (row ? row : 1), true};
  for (u32 i = 0; i < k->n; i++)
    k->together[k->n][i] = k->buffer[i].live;
  k->n++;
}

/* Frees one of the buffers from `first` on, which this block made. */
static void
free_one(Kernel *k, Builder *b, u32 first)
{
  u32 i = first + rnd(k, k->n - first);
  if (!k->buffer[i].live || k->buffer[i].v->def->block != b->block)
    return;
  op_create(b, OP_SHARED_FREE, 1, &k->buffer[i].v, 0, NULL, 0);
  k->buffer[i].live = false;
}

static void
add_scratch(Kernel *k, Builder *b)
{
  Value *v = ir_convert_layout(b, k->x, k->layout[1]);
  op_set_str(v->def, AT_KIND, "shared");
  for (u32 i = 0; i < k->n; i++)
    k->beside[k->nscratch][i] = k->buffer[i].live;
  k->scratch[k->nscratch++] = v->def;
}

static void write_block(Kernel *k, Block *block, u32 depth);

/* Warps that part: the buffers of a region are live together with those of the others, and beside their scratch. */
static void
write_teams(Kernel *k, Builder *b)
{
  u32 buffers[REGIONS + 1] = {k->n}, scratch = k->nscratch;
  Op *teams = ir_warp_specialize(b, REGIONS, (i64[REGIONS]){1, 1, 2});
  k->may_part = false;
  for (u32 r = 0; r < REGIONS; r++) {
    u32 before = k->nscratch;
    write_block(k, teams->regions[r], MAX_DEPTH - 1);
    buffers[r + 1] = k->n;
    for (u32 s = before; s < k->nscratch; s++)
      k->region[s] = r + 1;
  }
  for (u32 r = 1; r < REGIONS; r++)
    for (u32 i = buffers[r]; i < buffers[r + 1]; i++)
      for (u32 e = buffers[0]; e < buffers[r]; e++)
        k->together[i][e] = true;
  for (u32 s = scratch; s < k->nscratch; s++) {
    u32 r = k->region[s];
    bool alone = k->region[scratch] == r && k->region[k->nscratch - 1] == r;   /* where no other has scratch, it may lie in what has ended */
    for (u32 i = buffers[0]; i < k->n; i++)
      k->beside[s][i] |= !alone || i < buffers[r - 1] || i >= buffers[r];
  }
}

static void
write_block(Kernel *k, Block *block, u32 depth)
{
  Builder b = builder_at_end(k->f, block);
  u32 first = k->n;
  for (u32 steps = 2 + rnd(k, 10); steps; steps--) {
    u32 what = rnd(k, 10);
    if (what == 9 && !depth && k->may_part)
      write_teams(k, &b);
    else if (what < 4 && k->n < MAX_BUFFERS)
      add_buffer(k, &b);
    else if (what < 7 && k->n > first)
      free_one(k, &b, first);
    else if (what < 8 && k->nscratch < MAX_SCRATCH)
      add_scratch(k, &b);
    else if (what > 7 && depth < MAX_DEPTH) {
      Op *branch = ir_if(&b, k->cond, 0, NULL);
      for (u32 r = 0; r < 2; r++)
        write_block(k, branch->regions[r], depth + 1);
    }
  }
  for (u32 i = first; i < k->n; i++)   /* those of blocks within ended before */
    k->buffer[i].live = false;
  if (depth)
    ir_yield(&b, 0, NULL);
  else
    op_create(&b, OP_RETURN, 0, NULL, 0, NULL, 0);
}

/* ---- looking at it ---- */

static u32
offset_of(const Buffer *b)
{
  return (u32)op_int(b->v->def, AT_OFFSET, 0);
}

static bool
overlap(u32 a, u32 abytes, u32 b, u32 bbytes)
{
  return a < b + bbytes && b < a + abytes;
}

/* Whether buffer i would meet an earlier one that is live together with it, at offset `at`. */
static bool
taken(const Kernel *k, u32 i, u32 at)
{
  for (u32 e = 0; e < i; e++)
    if (k->together[i][e] && overlap(at, k->buffer[i].bytes, offset_of(&k->buffer[e]), k->buffer[e].bytes))
      return true;
  return false;
}

/* The lowest place that is free begins at 0 or where another buffer ends. */
static u32
lowest(const Kernel *k, u32 i)
{
  u32 best = taken(k, i, 0) ? UINT32_MAX : 0;
  for (u32 e = 0; e < i; e++) {
    u32 end = offset_of(&k->buffer[e]) + k->buffer[e].bytes;
    if (end < best && !taken(k, i, end))
      best = end;
  }
  return best;
}

static void
check_buffers(const Kernel *k)
{
  for (u32 i = 0; i < k->n; i++) {
    const Buffer *b = &k->buffer[i];
    u32 at = offset_of(b);
    CHECK(op_attr(b->v->def, AT_OFFSET) && at % 128 == 0 && at + b->bytes <= k->f->shared_bytes, "buffer %u at %u", i, at);
    CHECK(!taken(k, i, at), "buffer %u at %u lies over one that is live", i, at);
    CHECK(at == lowest(k, i), "buffer %u at %u, and %u is free", i, at, lowest(k, i));
  }
}

/* Scratch of two regions. */
static void
check_rings(const Kernel *k)
{
  for (u32 s = 0; s < k->nscratch; s++)
    for (u32 t = 0; t < s; t++) {
      const Op *a = k->scratch[s], *b = k->scratch[t];
      bool apart = k->region[s] && k->region[t] && k->region[s] != k->region[t];
      CHECK(!apart || !overlap((u32)op_int(a, AT_SCRATCH, 0), (u32)op_int(a, AT_SCRATCH_BYTES, 0), (u32)op_int(b, AT_SCRATCH, 0),
                               (u32)op_int(b, AT_SCRATCH_BYTES, 0)), "scratch %u and %u of two teams", s, t);
    }
}

static void
check_scratch(const Kernel *k)
{
  for (u32 s = 0; s < k->nscratch; s++) {
    u32 at = (u32)op_int(k->scratch[s], AT_SCRATCH, 0), bytes = (u32)op_int(k->scratch[s], AT_SCRATCH_BYTES, 0);
    CHECK(bytes == scratch_bytes(k->c, k->scratch[s]) && bytes && at + bytes <= k->f->shared_bytes, "scratch %u", s);
    for (u32 i = 0; i < k->n; i++)
      CHECK(!k->beside[s][i] || at >= offset_of(&k->buffer[i]) + k->buffer[i].bytes, "scratch %u at %u, buffer %u", s, at, i);
  }
}

static void
one_kernel(u32 seed)
{
  static Kernel k;
  u32 n[] = {64, 64};
  k = (Kernel){.c = ctx_new(), .seed = seed, .may_part = seed % 3 == 0};
  k.c->target = target_find("sm_90a");
  Module *m = module_new(k.c);
  m->phase = PHASE_SCHED;
  k.f = func_new(m, "k", (Span){0, 0});
  k.layout[0] = layout_blocked(k.c, 2, n, (u32[]){1, 4}, (u32[]){2, 16}, (u32[]){4, 1}, (int[]){1, 0});
  k.layout[1] = layout_blocked(k.c, 2, n, (u32[]){4, 1}, (u32[]){16, 2}, (u32[]){1, 4}, (int[]){0, 1});
  Value *x = func_add_param(k.f, type_scalar(k.c, DT_F16), "x", 0);
  k.cond = func_add_param(k.f, type_scalar(k.c, DT_I1), "c", 0);
  Builder b = builder_at_end(k.f, k.f->body);
  k.x = ir_splat(&b, x, type_tile(k.c, x->type, 2, n, k.layout[0]));
  write_block(&k, k.f->body, 0);
  pass_alloc_shared(k.c, m);
  if (!diag_errors(k.c)) {   /* else the target has too little memory, and no offset is written */
    check_buffers(&k);
    check_scratch(&k);
    check_rings(&k);
  }
  ctx_free(k.c);
}

int
main(void)
{
  for (u32 seed = 0; seed < KERNELS && failures < 20; seed++)
    one_kernel(seed);
  return failures != 0;
}
