/* lower_map.c - functions applied to every element of tiles.
 *
 * A map's region is lowered once for each distinct register, where the map stands: loops and ifs in it branch thread by thread. Where that
 * makes too much code, over all maps of the kernel with the same region, the region becomes a function, which they call: of a few elements
 * at a time, as a call takes a dozen instructions around it, and elements side by side hide each other's latency. Functions are
 * lowered when the kernel is done. They are internal, without effects, and never inlined again.
 *
 * What a tile has beyond its extents may be anything, so a loop over it might not end: maps with loops leave it out, and go element by
 * element.
 */
#include "gen.h"

#define B g->b
enum {
  INLINED_MOST = 4096,                 /* ops: a region's, times the registers that it is applied to */
  FUNCTION_MOST = 2048,                /* ops of a function of several elements */
  SIZES = 4                            /* functions are of 1, 2, 4 or 8 elements */
};

/* Maps of one region. */
typedef struct Shape {
  Buf key;
  const Op *first;
  u64 hash, work;                      /* ops, if all were inlined */
  u32 ops;
  bool loops;
  Val fn[SIZES];                       /* what they call, of 1 << i elements; NULL: not yet called */
} Shape;
typedef struct Maps { VEC(Shape) shapes; u32 *shape_of; } Maps;   /* shape_of: by the map's first result's id */

/* ---- which maps are alike ---- */

static void
count_op(Op *op, void *user)
{
  ++*(u32 *)user;
}

static void
find_loop(Op *op, void *user)
{
  *(bool *)user |= op_is_loop(op);
}

static u32
distinct_registers(const Dist *h)
{
  u32 n = 0;
  for (u32 r = 0; r < h->regs; r++)
    n += h->rep[r] == r;
  return n;
}

static u32
shape_find(Gen *g, const Shape *like)
{
  Maps *m = g->maps;
  for (u32 i = 0; i < m->shapes.len; i++) {
    const Shape *s = &m->shapes.data[i];
    if (s->hash == like->hash && s->key.len == like->key.len && !memcmp(s->key.data, like->key.data, like->key.len))
      return i;
  }
  vec_push(g->arena, &m->shapes, *like);
  return m->shapes.len - 1;
}

typedef struct Survey { Gen *g; u32 *numbers; } Survey;

static void
note_map(Op *op, void *user)
{
  Survey *s = user;
  Gen *g = s->g;
  if (op->code != OP_MAP)
    return;
  Shape x = {.key = {.arena = g->arena}, .first = op};
  region_key(&x.key, op->regions[0], s->numbers);
  x.hash = key_hash(&x.key);
  block_walk(op->regions[0], count_op, &x.ops);
  block_walk(op->regions[0], find_loop, &x.loops);
  u32 at = shape_find(g, &x);
  g->maps->shape_of[op_result(op)->id] = at;
  g->maps->shapes.data[at].work += (u64)x.ops * distinct_registers(dist_get(g, op_result(op)->type->layout));
}

static Shape *
shape_of(Gen *g, const Op *op)
{
  if (!g->maps) {
    Survey s = {g, NEW_ARRAY(g->arena, u32, g->func->nvalues)};
    g->maps = NEW(g->arena, Maps);
    g->maps->shape_of = NEW_ARRAY(g->arena, u32, g->func->nvalues);
    func_walk(g->func, note_map, &s);
  }
  return &g->maps->shapes.data[g->maps->shape_of[op_result(op)->id]];
}

/* ---- the function that they share ---- */

/* The innermost call site that all ops of the region came through; 0: there is none. */
typedef struct Common { Ctx *c; u32 site, depth; bool any; } Common;

static u32
site_depth(Ctx *c, u32 site)
{
  u32 n = 0;
  for (; site; site = site_get(c, site).call.site)
    n++;
  return n;
}

static void
meet_site(Op *op, void *user)
{
  Common *x = user;
  u32 site = op->span.site, depth;
  if (op_has(op, T_TERM) || op->code == OP_CONST || (x->any && site == x->site))
    return;
  depth = site_depth(x->c, site);
  if (!x->any)
    *x = (Common){x->c, site, depth, true};
  for (; depth > x->depth; depth--)
    site = site_get(x->c, site).call.site;
  for (; x->depth > depth; x->depth--)
    x->site = site_get(x->c, x->site).call.site;
  for (; site != x->site; x->depth--) {
    site = site_get(x->c, site).call.site;
    x->site = site_get(x->c, x->site).call.site;
  }
}

/* The call that the map stands for, through which its region came; 0: the region is of no one call. */
static u32
region_site(Gen *g, const Op *op)
{
  Common x = {.c = g->c};
  block_walk(op->regions[0], meet_site, &x);
  while (x.site && site_get(g->c, x.site).call.site != op->span.site)
    x.site = site_get(g->c, x.site).call.site;
  return x.site;
}

/* Its name in PTX: that of the function in the program, and a number. No name of the language has a $. */
static const char *
shared_name(Gen *g, const char *function)
{
  Buf b = {.arena = g->arena};
  for (; *function; function++)
    if ((u32)((*function | 32) - 'a') < 26 || (u32)(*function - '0') < 10 || *function == '_')
      buf_putc(&b, *function);
  return arena_printf(g->arena, "%s$%u", b.len ? buf_str(&b) : "map", g->shared_functions++);
}

/* n elements of a type travel as an array: PTX moves four words of it at a time. Truth values are words. */
static Ty
elements_type(Gen *g, const Type *t, u32 n)
{
  Ty elem = type_is_bool(t) ? g->i32 : gen_type(g, t);
  return n == 1 ? elem : LLVMArrayType2(elem, n);
}

static Ty
result_type(Gen *g, const Op *op, u32 n)
{
  Ty *types = NEW_ARRAY(g->arena, Ty, op->nresults);
  for (u32 i = 0; i < op->nresults; i++)
    types[i] = elements_type(g, op->results[i]->type, n);
  return op->nresults == 1 ? types[0] : LLVMStructTypeInContext(g->lc, types, op->nresults, 0);
}

static Ty
function_type(Gen *g, const Op *op, u32 n)
{
  Ty *types = NEW_ARRAY(g->arena, Ty, op->noperands);
  for (u32 i = 0; i < op->noperands; i++)
    types[i] = elements_type(g, op_operand(op, i)->type, n);
  return LLVMFunctionType(result_type(g, op, n), types, op->noperands, 0);
}

/* parts[0], parts[stride], ... as n elements of one type, and back. */
static Val
join_elements(Gen *g, const Type *t, u32 n, const Val *parts, u32 stride)
{
  Val all = LLVMGetPoison(elements_type(g, t, n));
  for (u32 k = 0; k < n; k++) {
    Val x = parts[k * stride];
    x = type_is_bool(t) ? LLVMBuildZExt(B, x, g->i32, "") : x;
    all = n == 1 ? x : LLVMBuildInsertValue(B, all, x, k, "");
  }
  return all;
}

static void
split_elements(Gen *g, const Type *t, Val all, u32 n, Val *parts, u32 stride)
{
  for (u32 k = 0; k < n; k++) {
    Val x = n == 1 ? all : LLVMBuildExtractValue(B, all, k, "");
    parts[k * stride] = type_is_bool(t) ? LLVMBuildICmp(B, LLVMIntNE, x, gen_u32(g, 0), "") : x;
  }
}

static const char *
function_called(Gen *g, const Op *op)
{
  u32 site = region_site(g, op);
  return site ? site_get(g->c, site).function : "map";
}

static Val
declare(Gen *g, const Shape *s, u32 n)
{
  Val fn = LLVMAddFunction(g->mod, shared_name(g, function_called(g, s->first)), function_type(g, s->first, n));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  gen_func_attr(g, fn, "noinline");
  gen_func_attr(g, fn, "nounwind");
  gen_func_attr(g, fn, "memory");
  if (!s->loops)
    gen_func_attr(g, fn, "willreturn");
  return fn;
}

/* The region on one element; results to out. */
static void
apply_region(Gen *g, const Op *op, const Val *args, Val *out)
{
  const Block *region = op->regions[0];
  for (u32 i = 0; i < op->noperands; i++)
    gen_new(g, region->args[i])[0] = args[i];
  g->walk(g, region);
  for (u32 i = 0; i < op->nresults; i++)
    out[i] = gen_regs(g, op_operand(block_terminator(region), i))[0];
}

static void
define(Gen *g, const Shape *s, u32 n)
{
  const Op *op = s->first;
  Val *args = NEW_ARRAY(g->arena, Val, op->noperands * n), *out = NEW_ARRAY(g->arena, Val, op->nresults * n);
  locs_shared(g, function_called(g, op), op->regions[0]->first->span, region_site(g, op));
  gen_at(g, gen_block(g, "entry"));
  locs_at(g, op->regions[0]->first->span);
  for (u32 i = 0; i < op->noperands; i++)
    split_elements(g, op_operand(op, i)->type, LLVMGetParam(g->fn, i), n, args + i, op->noperands);
  for (u32 k = 0; k < n; k++)
    apply_region(g, op, args + k * op->noperands, out + k * op->nresults);
  Val all = LLVMGetPoison(result_type(g, op, n));
  for (u32 i = 0; i < op->nresults; i++) {
    Val elements = join_elements(g, op->results[i]->type, n, out + i, op->nresults);
    all = op->nresults == 1 ? elements : LLVMBuildInsertValue(B, all, elements, i, "");
  }
  LLVMBuildRet(B, all);
}

void
lower_shared_functions(Gen *g)
{
  for (u32 i = 0; g->maps && i < g->maps->shapes.len; i++)
    for (u32 size = 0; size < SIZES; size++)
      if ((g->fn = g->maps->shapes.data[i].fn[size]))
        define(g, &g->maps->shapes.data[i], 1u << size);
}

/* ---- the map ---- */

static void
apply_call(Gen *g, const Op *op, Shape *s, u32 n, const Val *args, Val *out)
{
  Val *fn = &s->fn[log2_u32(n)], *joined = NEW_ARRAY(g->arena, Val, op->noperands);
  if (!*fn)
    *fn = declare(g, s, n);
  for (u32 i = 0; i < op->noperands; i++)
    joined[i] = join_elements(g, op_operand(op, i)->type, n, args + i, op->noperands);
  Val all = LLVMBuildCall2(B, function_type(g, op, n), *fn, joined, op->noperands, "");
  for (u32 i = 0; i < op->nresults; i++) {
    Val elements = op->nresults == 1 ? all : LLVMBuildExtractValue(B, all, i, "");
    split_elements(g, op->results[i]->type, elements, n, out + i, op->nresults);
  }
}

/* The results where an element was left out are 0. */
static void
join(Gen *g, u32 n, Val *out, LLVMBasicBlockRef before, LLVMBasicBlockRef after)
{
  LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(B), before};
  gen_end_if(g, after);
  for (u32 i = 0; i < n; i++) {
    Val in[2] = {out[i], LLVMConstNull(LLVMTypeOf(out[i]))}, phi = LLVMBuildPhi(B, LLVMTypeOf(out[i]), "");
    LLVMAddIncoming(phi, in, from, 2);
    out[i] = phi;
  }
}

/* Elements at a time, of so many that a thread has. */
static u32
elements_together(const Shape *s, u32 n)
{
  u32 most = 1;
  while (s->work > INLINED_MOST && !s->loops && 2 * most <= n && 2 * most * s->ops <= FUNCTION_MOST && 2 * most < 1u << SIZES)
    most *= 2;
  return most;
}

/* n elements, one after the other in args and out. inside: where that is done; NULL: everywhere. */
static void
apply(Gen *g, const Op *op, Shape *s, u32 n, Val inside, Val *args, Val *out)
{
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B), after = gen_if(g, inside);
  if (s->work > INLINED_MOST)
    apply_call(g, op, s, n, args, out);
  else
    apply_region(g, op, args, out);
  locs_at(g, op->span);
  if (inside)
    join(g, op->nresults * n, out, before, after);
}

static void
apply_to(Gen *g, const Op *op, Shape *s, u32 n, const u32 *regs, Val inside)
{
  Val *args = NEW_ARRAY(g->arena, Val, op->noperands * n), *out = NEW_ARRAY(g->arena, Val, op->nresults * n);
  for (u32 i = 0; i < op->noperands * n; i++)
    args[i] = gen_regs(g, op_operand(op, i % op->noperands))[regs[i / op->noperands]];
  apply(g, op, s, n, inside, args, out);
  for (u32 i = 0; i < op->nresults * n; i++)
    gen_regs(g, op->results[i % op->nresults])[regs[i / op->nresults]] = out[i];
}

void
lower_MAP(Gen *g, const Op *op)
{
  const Type *t = op_result(op)->type;
  Dist *h = dist_get(g, t->layout);
  Shape *s = shape_of(g, op);
  u32 *regs = NEW_ARRAY(g->arena, u32, h->regs), n = 0;
  for (u32 i = 0; i < op->nresults; i++)
    gen_new(g, op->results[i]);
  for (u32 r = 0; r < h->regs; r++)
    if (h->rep[r] == r)
      regs[n++] = r;
  u32 together = elements_together(s, n);
  for (u32 i = 0; i < n; i += together)
    apply_to(g, op, s, together, regs + i, s->loops ? dist_inside(g, h, t, regs[i]) : NULL);
  for (u32 i = 0; i < op->nresults; i++)
    dist_share(g, op->results[i]);
}
