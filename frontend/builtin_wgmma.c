/* builtin_wgmma.c - products of warpgroups: accumulators under way, products, waits. */
#include "sema.h"
#include "wgmma.h"

static Val
wgmma_mismatch(Lower *L, Call *c, const char *why)
{
  Diag *d = ERR(L, c->span, E_WGMMA, c->name, why);
  note_values(L, d, c->nargs < 2 ? c->nargs : 2, c->args);
  return val_poison(c->span);
}

Val
builtin_pending(Lower *L, Call *c)
{
  Value *x = call_tile(L, c, 0);
  if (!x)
    return val_poison(c->span);
  if (type_is_ptr(x->type) || x->type->pending)
    return wgmma_mismatch(L, c, x->type->pending ? "it is an accumulator under way already" : "an accumulator holds numbers");
  L->b.span = c->span;
  return val_ir(ir_pending(&L->b, x), c->span);
}

/* Argument 2 as an accumulator of a x b; left out: zeros. NULL after reporting. */
static Value *
call_sum(Lower *L, Call *c, const Value *a, const Value *b)
{
  u32 shape[] = {a->type->shape[0], b->type->shape[1]};
  const Type *t = type_tile(L->c, type_scalar(L->c, wgmma_sum(a->type->dt)), 2, shape, NULL);
  Value *acc = c->given[2] ? call_tile(L, c, 2) : NULL;
  L->b.span = c->span;
  if (!c->given[2])
    acc = val_const_value(L, const_int(0), t);
  const char *why = acc ? wgmma_sum_error(L->c, a->type, b->type, acc->type) : NULL;
  if (why) {
    wgmma_mismatch(L, c, why);
    return NULL;
  }
  return acc && !acc->type->pending ? ir_pending(&L->b, acc) : acc;
}

/* Why a buffer whose layout the program states is no operand; NULL: it may be one. */
static const char *
stated_error(Lower *L, const Value *v, int k)
{
  WgmmaSide side;
  return type_is_shared(v->type) && v->type->layout ? wgmma_side(L->c, v->type, k, &side) : NULL;
}

Val
builtin_wgmma(Lower *L, Call *c)
{
  bool buffer = c->args[0].kind == V_BUFFER;
  Value *a = buffer ? call_buffer(L, c, 0, false) : call_tile(L, c, 0), *b = a ? call_buffer(L, c, 1, false) : NULL;
  Value *meta = b && c->given[3] ? call_tile(L, c, 3) : NULL;
  if (!b || (c->given[3] && !meta))
    return val_poison(c->span);
  const char *why = wgmma_error(L->c, block_team(L->b.block), a->type, meta ? meta->type : NULL, b->type);
  why = why ? why : stated_error(L, a, 1);
  why = why ? why : stated_error(L, b, 0);
  if (why)
    return wgmma_mismatch(L, c, why);
  Value *acc = call_sum(L, c, a, b);
  if (!acc)
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(ir_wgmma(&L->b, a, meta, b, acc), c->span);
}

/* An accumulator, or a tuple of some. */
static bool
accumulators(Lower *L, Call *c, Values *out)
{
  Val v = c->args[0];
  bool many = v.kind == V_TUPLE || v.kind == V_LIST;
  u32 n = !c->given[0] ? 0 : many ? v.list.n : 1;
  for (u32 i = 0; i < n; i++) {
    Val x = many ? v.list.v[i] : v;
    if (!val_is_tile(x) || !x.ir->type->pending) {
      if (x.kind != V_POISON)
        ERR(L, x.span, E_ARGUMENT, c->name, "an accumulator under way", val_str(L, x));
      return false;
    }
    vec_push(L->a, out, x.ir);
  }
  return true;
}

Val
builtin_wgmma_wait(Lower *L, Call *c)
{
  i64 pending = 0;
  Values xs = {0};
  if (!accumulators(L, c, &xs) || (c->given[1] && !call_int(L, c, 1, "the products that may be under way", &pending)))
    return val_poison(c->span);
  if (pending < 0 || pending > PENDING_MOST)
    return call_error(L, c, c->args[1].span, "from 0 to 64 products may be under way");
  L->b.span = c->span;
  Op *op = ir_wgmma_wait(&L->b, xs.len, xs.data, (u32)pending);
  if (!c->given[0])
    return val_void(c->span);
  if (c->args[0].kind != V_TUPLE && c->args[0].kind != V_LIST)
    return val_ir(op_result(op), c->span);
  Val v = val_list(L, V_TUPLE, xs.len, c->span);
  for (u32 i = 0; i < xs.len; i++)
    v.list.v[i] = val_ir(op->results[i], c->span);
  return v;
}

/* ---- what is seen of a whole kernel ---- */

static void
check_use(Op *op, void *user)
{
  Lower *L = user;
  for (u32 i = 0; i < op->noperands; i++) {
    const char *why = pending_error(op, i);
    if (!why)
      continue;
    const Op *def = op_operand(op, i)->def;
    Diag *d = ERR(L, op->span, E_WGMMA, "wgmma", why);
    if (def && def->code == OP_WGMMA)
      diag_note(L->c, d, def->span, "the product starts here");
    return;
  }
  const Op *spoiler = op->code == OP_WGMMA ? wgmma_spoiler(op) : NULL;
  if (!spoiler)
    return;
  Diag *d = ERR(L, spoiler->span, E_WGMMA, "wgmma", "a product that is under way still reads this buffer: wgmma_wait stands in front");
  diag_note(L->c, d, op->span, "the product starts here");
}

void
wgmmas_check(Lower *L, Func *f)
{
  func_walk(f, check_use, L);
}
