/* params.c - what a kernel's parameters are in PTX. One of the program is one there, but a tensor is several: those that the code needs, of
 * its address, its extents and strides, and for each form of box that it copies a map (PTX ISA, "Tensor-map"). Behind all of them stand
 * maps of what pointers lead to, then the extents of the grid, where fewer programs run than that has. */
#include "gen.h"
#include <stdlib.h>

typedef struct Needs { Arena *a; KernelParams *p; } Needs;

static bool
same_part(const KernelParam *a, const KernelParam *b)
{
  return a->arg == b->arg && a->view == b->view && a->part == b->part && a->axis == b->axis && a->tf32 == b->tf32 &&
         a->form.swizzle == b->form.swizzle && a->form.pixels == b->form.pixels && tma_same_window(&a->form.window, &b->form.window) &&
         !memcmp(a->form.box, b->form.box, sizeof a->form.box);
}

static void
need(Needs *n, KernelParam p)
{
  for (u32 i = 0; i < n->p->len; i++)
    if (same_part(&n->p->data[i], &p)) {
      n->p->data[i].stored |= p.stored;
      return;
    }
  vec_push(n->a, n->p, p);
}

KernelParam
params_asked(const Op *op)
{
  const Value *t = op_tensor(op), *b = op_buffer(op);
  bool made = tensor_is_made(t);          /* then it has no parameter */
  KernelParam p = {.arg = made ? 0 : t->def ? tensor_pointer(t)->index : t->index, .view = t->def, .axis = (u32)op_int(op, AT_AXIS, 0)};
  TmaWindow window;
  switch (op->code) {
  case OP_TENSOR_BASE: p.part = PARAM_BASE; break;
  case OP_TENSOR_EXTENT: p.part = PARAM_EXTENT; break;
  case OP_TENSOR_STRIDE: p.part = PARAM_STRIDE; break;
  default:
    p.part = PARAM_MAP;
    p.stored = op->code == OP_TMA_STORE;
    p.tf32 = op_attr(op, AT_TF32) != NULL;
    window = tma_window(op);
    tma_form_error(op->block->func->module->ctx, b->type, t->type->rank, &window, &p.form);
  }
  return p;
}

static void
find_needs(Op *op, void *user)
{
  Needs *n = user;
  if (op_tensor(op) && !tensor_is_made(op_tensor(op)))
    need(n, params_asked(op));
}

/* Parts stand in the order of the program's parameters, maps first; a tensor that nobody asks about is its address. Maps of what pointers
 * lead to are last. */
static int
by_place(const void *x, const void *y)
{
  const KernelParam *a = x, *b = y;
  u32 ka[] = {a->view != NULL, a->arg, a->part, a->axis, a->found}, kb[] = {b->view != NULL, b->arg, b->part, b->axis, b->found};
  for (u32 i = 0; i < COUNT(ka); i++)
    if (ka[i] != kb[i])
      return ka[i] < kb[i] ? -1 : 1;
  return 0;
}

KernelParams
params_of(const Func *f, Arena *a)
{
  KernelParams p = {0};
  Needs n = {a, &p};
  bool *asked = NEW_ARRAY(a, bool, f->body->nargs + 1);
  block_walk(f->body, find_needs, &n);
  for (u32 i = 0; i < p.len; i++) {
    p.data[i].found = i;
    asked[p.data[i].arg] |= !p.data[i].view;
  }
  for (u32 i = 0; i < f->body->nargs; i++)
    if (!asked[i])
      vec_push(a, &p, ((KernelParam){.arg = i, .part = type_is_tensor(f->body->args[i]->type) ? PARAM_BASE : PARAM_WHOLE}));
  if (p.len)
    qsort(p.data, p.len, sizeof *p.data, by_place);
  for (u32 axis = 0; axis < 3 && func_walks(f); axis++)
    vec_push(a, &p, ((KernelParam){.arg = NO_ARG, .part = PARAM_GRID, .axis = axis}));
  return p;
}

const Type *
params_arg(const Func *f, const KernelParam *p)
{
  return p->arg == NO_ARG ? NULL : f->body->args[p->arg]->type;
}

u32
params_index(const KernelParams *p, const KernelParam *which)
{
  for (u32 i = 0; i < p->len; i++)
    if (same_part(&p->data[i], which))
      return i;
  return 0;
}
