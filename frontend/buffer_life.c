/* buffer_life.c - how long shared buffers live, and what can be said of a whole kernel's asynchronous copies.
 *
 * A buffer lives from shared() to free(), or to the end of the scope that made it: `{ }`, a function's body (unless the
 * result holds it), one iteration of an unrolled loop. The IR has the same rule for its blocks, so the scopes that are IR blocks
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
  Team here = block_team(L->b.block), made = v->def ? block_team(v->def->block) : here;
  if (!why && (here.op != made.op || here.part != made.part))
    why = "it was made outside this team, and other teams may use it";
  if (!why && in_loop_within(L->b.block, v->def->block))
    why = "it was made outside this loop, whose next iteration would free it again";
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

const char *
view_error(Lower *L, const Type *t, const i64 *start, const u32 *shape)
{
  for (u32 d = 0; d < t->rank; d++) {
    if (start[d] < 0 || start[d] + (i64)shape[d] > (i64)t->shape[d])
      return arena_printf(L->a, "it has elements 0 to %u along dimension %u, not %lld to %lld", t->shape[d] - 1, d,
                          (long long)start[d], (long long)start[d] + shape[d] - 1);
    if (shape[d] != t->shape[d] && (!is_pow2(shape[d]) || start[d] % (i64)shape[d]))
      return "the extents of a part are powers of two, and it starts at a multiple of them";
  }
  return NULL;
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
