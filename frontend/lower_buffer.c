/* lower_buffer.c - how long shared buffers live, and what can be said of a whole kernel's asynchronous copies.
 *
 * A buffer lives from shared() to free(), or to the end of the scope that made it: `{ }`, a function's body (unless the
 * result holds it), one turn of an unrolled loop. The IR has the same rule for its blocks, so the scopes that are IR blocks
 * (bodies of loops, arms of ifs, the kernel) need no shared_free of their own. */
#include "sema.h"

/* The shared_alloc that v views; NULL for a block argument. */
Value *
buffer_root(Value *v)
{
  while (v->def && v->def->code != OP_SHARED_ALLOC)
    v = op_operand(v->def, 0);
  return v->def ? v : NULL;
}

static const Freed *
freed_at(const Lower *L, const Value *root)
{
  for (u32 i = 0; i < L->freed.len; i++)
    if (L->freed.data[i].buffer == root)
      return &L->freed.data[i];
  return NULL;
}

/* The region of op `parent` that b is in; NULL if it is in none. */
static const Block *
sibling(const Block *b, const Op *parent)
{
  while (b->parent && b->parent != parent)
    b = b->parent->block;
  return b->parent == parent ? b : NULL;
}

/* Blocks a and b are (in) different arms of one `if`: what happens in one does not precede the other. */
static bool
other_arm(const Block *a, const Block *b)
{
  for (; a->parent; a = a->parent->block) {
    const Block *s = sibling(b, a->parent);
    if (s)
      return s != a && a->parent->code == OP_IF;
  }
  return false;
}

/* False after reporting that v's buffer was freed before. */
bool
buffer_alive(Lower *L, Span at, Value *v)
{
  const Value *root = buffer_root(v);
  const Freed *f = root ? freed_at(L, root) : NULL;
  if (!f || other_arm(f->block, L->b.block))
    return true;
  Diag *d = ERR(L, at, E_FREED);
  diag_note(L->c, d, f->at, "it ends here");
  diag_note(L->c, d, root->def->span, "the buffer is made here");
  return false;
}

static void
note_freed(Lower *L, Value *root, Span at)
{
  vec_push(L->a, &L->freed, ((Freed){root, L->b.block, at}));
  L->b.span = at;
  if (root->def->block == L->b.block)
    op_create(&L->b, OP_SHARED_FREE, 1, &root, 0, NULL, 0);
}

static bool
in_loop_within(const Block *b, const Block *outer)
{
  for (; b != outer && b->parent; b = b->parent->block)
    if (b->parent->code == OP_FOR || b->parent->code == OP_WHILE)
      return true;
  return false;
}

/* free(v) */
bool
buffer_free(Lower *L, Span at, Value *v)
{
  const char *why = v->def && v->def->code == OP_SHARED_ALLOC ? NULL : "it is a view; free what shared() gave";
  if (!why && in_loop_within(L->b.block, v->def->block))
    why = "it was made outside this loop, whose next turn would free it again";
  if (!why) {
    note_freed(L, v, at);
    return true;
  }
  Diag *d = ERR(L, at, E_FREE, type_str(L->c, v->type), why);
  if (v->def)
    diag_note(L->c, d, v->def->span, "made here");
  return false;
}

/* A scope begins. */
u32
buffers_open(const Lower *L)
{
  return L->allocs.len;
}

static bool
holds(Lower *L, const Val *v, const Value *root)
{
  if (v->kind == V_BUFFER)
    return buffer_root(v->ir) == root;
  if (val_is_many(*v) && lower_spend(L, v->span, v->list.n))
    for (u32 i = 0; i < v->list.n; i++)
      if (holds(L, &v->list.v[i], root))
        return true;
  return false;
}

/* The scope opened at `mark` ends: free what it made in this block and what its result (or NULL) does not hold. */
void
buffers_close(Lower *L, u32 mark, const Val *result)
{
  u32 kept = mark;
  for (u32 i = mark; i < L->allocs.len; i++) {
    Value *root = L->allocs.data[i];
    if (result && holds(L, result, root))
      L->allocs.data[kept++] = root;
    else if (root->def->block == L->b.block && !freed_at(L, root))
      note_freed(L, root, L->b.span);
  }
  L->allocs.len = kept;
}

/* ---- views ---- */

static Val
bad_row(Lower *L, Span at, const char *why)
{
  ERR(L, at, E_ROW, why);
  return val_poison(at);
}

static Value *
row_index(Lower *L, const Node *n, const Type *t)
{
  Val i = lower_expr(L, n);
  int num = val_is_data(i) && !val_is_ptr(i) && !val_is_tile(i) ? val_num(i) : -1;
  if (!val_need_data(L, i, "an index"))
    return NULL;
  if (num < 0 || num == DT_I1 || (num != NUM_INT && (num >= NUM_INT || !dtype_is_int((DType)num)))) {
    ERR(L, n->span, E_INDEX, arena_printf(L->a, "buffers are counted by integers, this is %s", val_str(L, i)));
    return NULL;
  }
  if (i.kind == V_CONST && (i.k.i < 0 || i.k.i >= (i64)t->count)) {
    ERR(L, n->span, E_INDEX, arena_printf(L->a, "buffer %lld of a row of %u", (long long)i.k.i, t->count));
    return NULL;
  }
  return val_as(L, i, DT_I32, NULL);
}

static bool
all_ranges(const Node *n)
{
  for (u32 i = 1; i < n->nkids; i++)
    if (kid(n, i)->kind != N_ALL)
      return false;
  return true;
}

/* s[a:b, :]: a view of a part. */
static Val
buffer_part(Lower *L, const Node *n, Value *s)
{
  i64 start[MAX_RANK];
  u32 shape[MAX_RANK];
  for (u32 d = 0; d < s->type->rank; d++)
    if (!index_range(L, kid(n, d + 1), s->type->shape[d], &start[d], &shape[d]))
      return val_poison(n->span);
  const char *why = part_error(L, s->type, start, shape);
  if (why) {
    ERR(L, n->span, E_VIEW, type_str(L->c, s->type), why);
    return val_poison(n->span);
  }
  L->b.span = n->span;
  return val_buffer(ir_shared_slice(&L->b, s, start, shape), n->span);
}

/* s[i]: buffer i of a row; s[a:b, :]: a part of a buffer. */
Val
lower_index_buffer(Lower *L, const Node *n, Val x)
{
  const Type *t = x.ir->type;
  if (!buffer_alive(L, n->span, x.ir))
    return val_poison(n->span);
  if (!t->count && n->nkids == t->rank + 1u && all_ranges(n))
    return buffer_part(L, n, x.ir);
  if (!t->count)
    return bad_row(L, n->span, arena_printf(L->a, "%s is one buffer, not a row of them; a part of it is view(s, start, extents)",
                                            type_str(L->c, t)));
  if (n->nkids != 2 || kid(n, 1)->kind == N_ALL || kid(n, 1)->kind == N_NONE)
    return bad_row(L, n->span, "a row of buffers takes one index");
  Value *i = row_index(L, kid(n, 1), t);
  if (!i)
    return val_poison(n->span);
  L->b.span = n->span;
  return val_buffer(ir_shared_index(&L->b, x.ir, i), n->span);
}

/* ---- a whole kernel ---- */

typedef struct Async { Lower *L; u32 commits; bool found; } Async;

static void
find_commit(Op *op, void *user)
{
  ((Async *)user)->found |= op->code == OP_ASYNC_COMMIT;
}

/* A commit earlier in the text, or anywhere in a loop around. */
static bool
commit_reaches(Async *a, const Op *wait)
{
  Async in = {0};
  for (const Block *b = wait->block; b->parent && !in.found; b = b->parent->block)
    if (b->parent->code == OP_FOR || b->parent->code == OP_WHILE)
      for (u32 i = 0; i < b->parent->nregions; i++)
        block_walk(b->parent->regions[i], find_commit, &in);
  return a->commits || in.found;
}

static void
check_async(Op *op, void *user)
{
  Async *a = user;
  a->commits += op->code == OP_ASYNC_COMMIT;
  if (op->code == OP_ASYNC_WAIT && !commit_reaches(a, op))
    diag(a->L->c, op->span, E_WAIT, "no async_commit comes before it");
}

/* What can only be seen at the end of a kernel: waits that nothing was committed for. */
void
buffers_check(Lower *L, Func *f)
{
  Async a = {.L = L};
  func_walk(f, check_async, &a);
}
