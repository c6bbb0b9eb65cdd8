/* decode_call.c - calls: of functions of the module, through pointers, and of what the driver brings along. */
#include "decode.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_ACTUALS = 64 };

/* ---- signatures ---- */

static bool
layout(const FuncParam *p, size_t n, Formal **out, uint32_t *at)
{
  *out = calloc(n + 1, sizeof **out);
  for (size_t i = 0; *out && i < n; i++) {
    *at = (*at + p[i].align - 1) & ~(p[i].align - 1);
    (*out)[i] = (Formal){p[i].name, *at, p[i].size, p[i].align, p[i].type};
    *at += p[i].size;
  }
  return *out != NULL;
}

bool
signature_of(const Func *f, Signature *out, uint32_t *bytes)
{
  *out = (Signature){.nparam = (uint32_t)f->nparam, .nret = (uint32_t)f->nret};
  *bytes = 0;
  return layout(f->param, f->nparam, &out->param, bytes) && layout(f->ret, f->nret, &out->ret, bytes);
}

void
signature_free(Signature *s)
{
  free(s->param);
  free(s->ret);
}

/* NAME: .callprototype (results) _ (parameters); */
void
decode_prototype(Decoder *d, const Tok *name)
{
  Func *f = module_prototype(d->r, &d->pos);
  if (!f) {
    d->failed = true;
    return;
  }
  Sym *s = decode_declare(d, name, SYM_PROTOTYPE);
  if (s)
    s->func = f;
}

/* ---- calls ---- */

typedef struct Actuals { Sym sym[MAX_ACTUALS]; uint32_t n; } Actuals;

/* (a, b): variables of the caller; without parentheses an empty list. */
static void
read_actuals(Decoder *d, Actuals *a)
{
  a->n = 0;
  if (!decode_accept(d, '('))
    return;
  while (!d->failed && !decode_accept(d, ')')) {
    const Tok *t = decode_peek(d);
    const Sym *s = t->kind == TK_IDENT ? decode_lookup(d, t->s, t->n) : NULL;
    if (!s || s->kind != SYM_VAR || s->space != SP_LOCAL || a->n == MAX_ACTUALS)
      decode_fail(d, "an argument of a call is a .param variable");
    else
      a->sym[a->n++] = *s;
    d->pos++;
    decode_accept(d, ',');
  }
}

/* Where the actuals lie in the caller's frame; NULL with the decoder failed. */
static uint32_t *
bind(Decoder *d, const FuncParam *p, size_t n, const Actuals *a)
{
  if (n != a->n) {
    decode_fail(d, "a call has %u arguments where the function has %zu", a->n, n);
    return NULL;
  }
  uint32_t *at = calloc(n + 1, sizeof *at);
  if (!at)
    decode_no_memory(d);
  for (size_t i = 0; i < n && at; i++) {
    at[i] = (uint32_t)a->sym[i].addr;
    if (p[i].is_reg || p[i].size > a->sym[i].size)
      decode_fail(d, "argument %zu of a call does not fit the parameter", i);
  }
  return at;
}

static CallSite *
new_site(Decoder *d)
{
  Unit *u = d->u;
  if (d->failed || !sim_vec_grow(&u->calls, &d->call_cap, u->ncalls + 1u, sizeof *u->calls)) {
    decode_no_memory(d);
    return NULL;
  }
  u->calls[u->ncalls] = (CallSite){.unit = UINT32_MAX};
  return &u->calls[u->ncalls++];
}

static void
emit_call(Decoder *d, const Func *f, uint32_t unit, uint32_t pointer, const Actuals *arg, const Actuals *ret)
{
  CallSite *site = new_site(d);
  if (!site)
    return;
  site->unit = unit;
  site->param = bind(d, f->param, f->nparam, arg);
  site->ret = bind(d, f->ret, f->nret, ret);
  uint32_t bytes;
  if (unit == UINT32_MAX && !signature_of(f, &site->type, &bytes))
    decode_no_memory(d);
  Insn *in = insn_emit(d, K_CALL, 1);
  if (!in)
    return;
  in->call = (CallOps){pointer, d->u->ncalls - 1};
}

static void
call_pointer(Decoder *d, const Opnd *o, const Actuals *ret)
{
  Actuals arg = {.n = 0};
  uint32_t slot = opnd_src(d, o, T_U64);
  decode_expect(d, ',');
  if (decode_peek(d)->kind == TK_PUNCT) {
    read_actuals(d, &arg);
    decode_expect(d, ',');
  }
  const Tok *t = decode_peek(d);
  const Sym *s = t->kind == TK_IDENT ? decode_lookup(d, t->s, t->n) : NULL;
  d->pos++;
  decode_expect(d, ';');
  if (!s || s->kind != SYM_PROTOTYPE)
    decode_fail(d, "a call through a pointer needs a .callprototype");
  else
    emit_call(d, s->func, UINT32_MAX, slot, &arg, ret);
  d->u->calls_pointers = true;
}

/* What the driver brings along; the instruction knows where its parameters lie in local memory. */
static void
call_external(Decoder *d, const Func *f, const Actuals *arg, const Actuals *ret)
{
  bool is_assert = f->name.n == 12 && memcmp(f->name.s, "__assertfail", 12) == 0 && arg->n == 5;
  bool is_print = f->name.n == 7 && memcmp(f->name.s, "vprintf", 7) == 0 && arg->n == 2;
  if (!is_assert && !is_print) {
    decode_fail(d, "function '%.*s' is defined elsewhere", (int)f->name.n, f->name.s);
    return;
  }
  Insn *in = is_assert ? insn_emit(d, K_TRAP, 1) : insn_warp(d, K_WARP, sim_print, 1);
  if (!in)
    return;
  in->text = (TextOps){.frame = d->u->frame, .text = (uint32_t)arg->sym[0].addr, .args = (uint32_t)arg->sym[1].addr,
                       .result = ret->n ? (uint32_t)ret->sym[0].addr + 1 : 0, .reason = TRAP_ASSERT};
}

static void
call_named(Decoder *d, const Tok *name, const Actuals *ret)
{
  Actuals arg = {.n = 0};
  const Sym *s = name->kind == TK_IDENT ? decode_lookup(d, name->s, name->n) : NULL;
  if (!s || s->kind != SYM_FUNC || s->func->entry) {
    decode_fail(d, "a call of something that is not a function");
    return;
  }
  const Func *f = s->func;
  if (decode_accept(d, ','))
    read_actuals(d, &arg);
  decode_expect(d, ';');
  if (d->failed)
    return;
  if (f->has_body)
    emit_call(d, f, f->index, 0, &arg, ret);
  else
    call_external(d, f, &arg, ret);
}

void
decode_call(Decoder *d, int arg)
{
  Actuals ret = {.n = 0};
  Opnd o = {.kind = O_NONE};
  opmod_take(d, M_UNI);
  if (decode_peek(d)->kind == TK_PUNCT) {
    read_actuals(d, &ret);
    decode_expect(d, ',');
  }
  const Tok *name = decode_peek(d);
  d->pos++;
  if (name->kind == TK_IDENT && opnd_register(d, name, &o))
    call_pointer(d, &o, &ret);
  else
    call_named(d, name, &ret);
}

void
decode_ret(Decoder *d, int arg)
{
  opmod_take(d, M_UNI);
  decode_operands(d, 0, 0);
  insn_emit(d, K_RET, 0);
}
