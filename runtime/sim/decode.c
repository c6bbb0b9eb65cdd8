/* decode.c - the body of a function: scopes, declarations, labels, line numbers and calls.
 *
 * A device function is decoded again at every call, into the caller's instructions, with its own scope of
 * names; its parameters are the caller's .param variables, which are thread-local memory. So there is no
 * call stack at run time and control flow is one graph per kernel. Recursion is refused.
 *
 * A label is seen in the braces it stands in and in those inside them, also before it is defined: uses are
 * kept as fixups, matched against the labels of a scope when it closes, and handed outward if unmatched. */
#include "decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 1 << 22, MAX_RANGE = 1 << 20, MAX_LOCAL = 1 << 24, MAX_SCOPES = 64 };

void
decode_fail(Decoder *d, const char *fmt, ...)
{
  va_list ap;
  char text[256];
  if (d->failed)
    return;
  d->failed = true;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  uint32_t line = d->here.ptx_line ? d->here.ptx_line : d->r->tok[d->pos].line;
  sim_error_set(d->r->err, SIM_E_PARSE, "PTX line %u: %s", line, text);
  d->r->err->ptx_line = line;
}

const Tok *
decode_peek(Decoder *d)
{
  return &d->r->tok[d->pos];
}

bool
decode_accept(Decoder *d, char punct)
{
  const Tok *t = decode_peek(d);
  if (t->kind != TK_PUNCT || t->punct != punct)
    return false;
  d->pos++;
  return true;
}

void
decode_expect(Decoder *d, char punct)
{
  if (!decode_accept(d, punct))
    decode_fail(d, "expected '%c'", punct);
}

uint32_t
ptx_hash(const char *s, uint32_t n)
{
  uint32_t h = 2166136261u;
  for (uint32_t i = 0; i < n; i++)
    h = (h ^ (uint8_t)s[i]) * 16777619u;
  return h;
}

static Sym *
search(Sym *list, size_t from, size_t to, const char *s, uint32_t n)
{
  uint32_t h = ptx_hash(s, n);
  for (size_t i = to; i-- > from;)
    if (list[i].hash == h && list[i].n == n && memcmp(list[i].s, s, n) == 0)
      return &list[i];
  return NULL;
}

Sym *
decode_lookup(Decoder *d, const char *s, uint32_t n)
{
  Sym *found = search(d->sym, d->sym_base, d->nsym, s, n);
  return found ? found : search(d->r->sym, 0, d->r->nsym, s, n);
}

Sym *
decode_declare(Decoder *d, const Tok *name, SymKind kind)
{
  if (name->kind != TK_IDENT) {
    decode_fail(d, "expected a name");
    return NULL;
  }
  if (!sim_vec_grow(&d->sym, &d->sym_cap, d->nsym + 1, sizeof *d->sym)) {
    decode_fail(d, "out of memory");
    return NULL;
  }
  Sym *s = &d->sym[d->nsym++];
  *s = (Sym){.s = name->s, .n = name->n, .hash = ptx_hash(name->s, name->n), .kind = (uint8_t)kind};
  return s;
}

/* ---- declarations ---- */

static Type
type_word(const Tok *t)
{
  for (int i = 1; t->kind == TK_IDENT && i < T_COUNT; i++)
    if (t->n == strlen(ptx_type_text[i]) + 1 && memcmp(t->s + 1, ptx_type_text[i], t->n - 1) == 0)
      return (Type)i;
  return T_NONE;
}

static uint64_t
number(Decoder *d)
{
  const Tok *t = decode_peek(d);
  if (t->kind != TK_INT) {
    decode_fail(d, "expected a number");
    return 0;
  }
  d->pos++;
  return t->v;
}

static void
declare_register(Decoder *d, Type t)
{
  const Tok *name = decode_peek(d);
  d->pos++;
  bool range = decode_accept(d, '<');
  Sym *s = decode_declare(d, name, range ? SYM_RANGE : SYM_REG);
  if (!s)
    return;
  s->type = (uint8_t)t;
  if (!range)
    return;
  uint64_t n = number(d);
  decode_expect(d, '>');
  if (n > MAX_RANGE)
    decode_fail(d, "too many registers");
  s->slots = d->failed ? NULL : calloc(n + 1, sizeof *s->slots);
  if (!s->slots)
    decode_fail(d, "out of memory");
  s->count = d->failed ? 0 : (uint32_t)n;
}

static void
declare_registers(Decoder *d)
{
  Type t = type_word(decode_peek(d));
  if (t == T_NONE || ptx_type_bytes[t] > 8) {
    decode_fail(d, "a register of this type is outside this machine");
    return;
  }
  d->pos++;
  do
    declare_register(d, t);
  while (!d->failed && decode_accept(d, ','));
  decode_expect(d, ';');
}

static uint32_t
align_up(uint32_t v, uint32_t align)
{
  return (v + align - 1) & ~(align - 1);
}

static uint64_t
array_size(Decoder *d, uint64_t elem)
{
  while (decode_accept(d, '[')) {
    uint64_t n = number(d);
    decode_expect(d, ']');
    if (n > MAX_LOCAL || elem * n > MAX_LOCAL)
      decode_fail(d, "a variable is too large");
    elem = d->failed ? 0 : elem * n;
  }
  return elem;
}

static void
place_local(Decoder *d, Sym *s)
{
  d->local_top = align_up(d->local_top, s->align);
  s->addr = d->local_top;
  s->space = SP_LOCAL;
  d->local_top += s->size;
  if (d->local_top > MAX_LOCAL)
    decode_fail(d, "too much local memory");
  else if (d->local_top > d->k->local_bytes)
    d->k->local_bytes = align_up(d->local_top, 16);
}

static void
place_shared(Decoder *d, Sym *s)
{
  Kernel *k = d->k;
  k->static_shared = align_up(k->static_shared, s->align);
  s->addr = k->static_shared;
  s->space = SP_SHARED;
  if (k->static_shared + (uint64_t)s->size > MAX_LOCAL)
    decode_fail(d, "too much shared memory");
  else
    k->static_shared += s->size;
}

/* after .local, .shared or .param inside a body */
static void
declare_variable(Decoder *d, Space space)
{
  uint32_t align = 0;
  Type t = T_NONE;
  while (!d->failed && decode_peek(d)->kind == TK_IDENT && decode_peek(d)->s[0] == '.') {
    const Tok *word = decode_peek(d);
    d->pos++;
    if (ptx_tok_is(word, ".align"))
      align = (uint32_t)number(d);
    else if ((t = type_word(word)) == T_NONE || !ptx_type_bytes[t])
      decode_fail(d, "unknown word '%.*s' in a variable", (int)word->n, word->s);
  }
  if (!t || (align & (align - 1)) || align > 1 << 16) {
    decode_fail(d, "a variable needs a type and a power-of-two alignment");
    return;
  }
  do {
    Sym *s = decode_declare(d, decode_peek(d), SYM_VAR);
    if (!s)
      return;
    size_t index = (size_t)(s - d->sym);
    d->pos++;
    uint64_t size = array_size(d, ptx_type_bytes[t]);
    s = &d->sym[index];
    s->align = align ? align : ptx_type_bytes[t];
    s->size = (uint32_t)size;
    if (space == SP_SHARED)
      place_shared(d, s);
    else
      place_local(d, s);
  } while (!d->failed && decode_accept(d, ','));
  decode_expect(d, ';');
}

/* .loc file line column [, function_name L, inlined_at file line column] */
static void
read_loc(Decoder *d)
{
  uint64_t file = number(d), line = number(d), column = number(d);
  if (line) {
    d->here.file = (uint16_t)file;
    d->here.line = (uint32_t)line;
    d->here.column = (uint16_t)column;
  }
  while (!d->failed && decode_accept(d, ',')) {
    const Tok *word = decode_peek(d);
    d->pos++;
    if (ptx_tok_is(word, "function_name")) {
      d->pos++;
      if (decode_accept(d, '+'))
        number(d);
    } else if (ptx_tok_is(word, "inlined_at")) {
      number(d), number(d), number(d);
    } else
      decode_fail(d, "malformed .loc");
  }
}

static void
skip_to(Decoder *d, char punct)
{
  while (decode_peek(d)->kind != TK_END)
    if (decode_accept(d, punct))
      return;
    else
      d->pos++;
  decode_fail(d, "expected '%c'", punct);
}

static void
read_directive(Decoder *d, const Tok *t)
{
  if (ptx_tok_is(t, ".reg"))
    declare_registers(d);
  else if (ptx_tok_is(t, ".local"))
    declare_variable(d, SP_LOCAL);
  else if (ptx_tok_is(t, ".param"))
    declare_variable(d, SP_PARAM);
  else if (ptx_tok_is(t, ".shared"))
    declare_variable(d, SP_SHARED);
  else if (ptx_tok_is(t, ".loc"))
    read_loc(d);
  else if (ptx_tok_is(t, ".pragma"))
    skip_to(d, ';');
  else
    decode_fail(d, "unknown directive '%.*s'", (int)(t->n > 40 ? 40 : t->n), t->s);
}

/* ---- labels ---- */

void
decode_fixup(Decoder *d, const Tok *label, uint32_t insn, uint32_t brx)
{
  if (!sim_vec_grow(&d->fixup, &d->fixup_cap, d->nfixup + 1, sizeof *d->fixup)) {
    decode_fail(d, "out of memory");
    return;
  }
  d->fixup[d->nfixup++] = (Fixup){label->s, label->n, ptx_hash(label->s, label->n), d->here.ptx_line, insn, brx};
}

static void
define_label(Decoder *d, const char *s, uint32_t n)
{
  if (!sim_vec_grow(&d->label, &d->label_cap, d->nlabel + 1, sizeof *d->label)) {
    decode_fail(d, "out of memory");
    return;
  }
  d->label[d->nlabel++] = (Label){s, n, ptx_hash(s, n), (uint32_t)d->ncode};
}

static bool
resolve(Decoder *d, const Fixup *f, size_t from)
{
  for (size_t i = from; i < d->nlabel; i++) {
    const Label *l = &d->label[i];
    if (l->hash != f->hash || l->n != f->n || memcmp(l->s, f->s, f->n) != 0)
      continue;
    if (f->insn != UINT32_MAX)
      d->code[f->insn].target = l->pc;
    else
      d->brx[f->brx] = l->pc;
    return true;
  }
  return false;
}

static void
close_labels(Decoder *d, size_t label_from, size_t fixup_from)
{
  size_t keep = fixup_from;
  for (size_t i = fixup_from; i < d->nfixup; i++)
    if (!resolve(d, &d->fixup[i], label_from))
      d->fixup[keep++] = d->fixup[i];
  d->nfixup = keep;
  d->nlabel = label_from;
}

/* ---- scopes and bodies ---- */

static void
drop_symbols(Decoder *d, size_t from)
{
  while (d->nsym > from)
    free(d->sym[--d->nsym].slots);
}

static bool
at_label(Decoder *d)
{
  const Tok *t = decode_peek(d);
  return t->kind == TK_IDENT && t[1].kind == TK_PUNCT && t[1].punct == ':';
}

static void
read_targets(Decoder *d, const Tok *name)
{
  d->pos++;
  Sym *s = decode_declare(d, name, SYM_TARGETS);
  if (s)
    s->addr = d->pos;
  skip_to(d, ';');
}

static void
read_label(Decoder *d)
{
  const Tok *t = decode_peek(d);
  d->pos += 2;
  const Tok *after = decode_peek(d);
  if (ptx_tok_is(after, ".branchtargets"))
    read_targets(d, t);
  else if (ptx_tok_is(after, ".callprototype"))
    decode_fail(d, "calls through pointers are outside this machine");
  else
    define_label(d, t->s, t->n);
}

static void
read_guard(Decoder *d)
{
  d->guard = NO_GUARD;
  if (!decode_accept(d, '@'))
    return;
  d->guard_not = decode_accept(d, '!');
  const Tok *t = decode_peek(d);
  Opnd o = {.kind = O_NONE};
  d->pos++;
  if (t->kind != TK_IDENT || !opnd_register(d, t, &o) || o.type != T_PRED)
    decode_fail(d, "a guard is a predicate");
  else
    d->guard = o.slot + 1;
}

static void read_scope(Decoder *d, uint32_t depth);

static void
read_item(Decoder *d, uint32_t depth)
{
  const Tok *t = decode_peek(d);
  d->here.ptx_line = t->line;
  if (d->ncode > MAX_CODE)
    decode_fail(d, "the kernel is too large");
  else if (t->kind == TK_END)
    decode_fail(d, "the text ends inside a function");
  else if (decode_accept(d, '{'))
    read_scope(d, depth + 1);
  else if (decode_accept(d, ';'))
    return;
  else if (at_label(d))
    read_label(d);
  else if (t->kind == TK_IDENT && t->s[0] == '.') {
    d->pos++;
    read_directive(d, t);
  } else {
    read_guard(d);
    if (!d->failed)
      decode_statement(d);
  }
}

static void
read_scope(Decoder *d, uint32_t depth)
{
  size_t sym = d->nsym, label = d->nlabel, fixup = d->nfixup;
  uint32_t local = d->local_top;
  if (depth > MAX_SCOPES)
    decode_fail(d, "scopes are nested too deeply");
  while (!d->failed && !decode_accept(d, '}'))
    read_item(d, depth);
  if (d->failed)
    return;
  close_labels(d, label, fixup);
  drop_symbols(d, sym);
  d->local_top = local;
}

/* Everything up to the brace that closes a function; its end is the label "". */
static void
read_body(Decoder *d, const Func *f)
{
  size_t label = d->nlabel, fixup = d->nfixup;
  for (d->pos = f->body; !d->failed && d->pos < f->body_end;)
    read_item(d, 0);
  if (d->failed)
    return;
  define_label(d, "", 0);
  close_labels(d, label, fixup);
  if (d->nfixup > fixup) {
    d->here.ptx_line = d->fixup[fixup].line;
    decode_fail(d, "no label '%.*s'", (int)d->fixup[fixup].n, d->fixup[fixup].s);
  }
}

static void
declare_formals(Decoder *d, const FuncParam *p, size_t n, Space space)
{
  for (size_t i = 0; i < n && !d->failed; i++) {
    Tok name = {.kind = TK_IDENT, .s = p[i].s, .n = p[i].n};
    Sym *s = decode_declare(d, &name, p[i].is_reg ? SYM_REG : SYM_VAR);
    if (!s)
      return;
    s->type = p[i].type;
    s->align = p[i].align;
    s->size = p[i].size;
    if (p[i].is_reg)
      continue;
    if (space == SP_PARAM)
      s->addr = d->k->params[i].offset;
    else
      place_local(d, s);
    s->space = (uint8_t)space;
  }
}

void
decode_body(Decoder *d, const Func *f)
{
  d->stack[d->depth++] = f;
  declare_formals(d, f->param, f->nparam, f->entry ? SP_PARAM : SP_LOCAL);
  declare_formals(d, f->ret, f->nret, SP_LOCAL);
  if (!d->failed)
    read_body(d, f);
  if (d->failed)
    return;
  d->guard = NO_GUARD;
  insn_emit(d, K_EXIT);
}

/* ---- calls ---- */

/* (a, b) as symbols of the caller; without parentheses an empty list. */
static size_t
read_actuals(Decoder *d, Sym *out, size_t max)
{
  size_t n = 0;
  if (!decode_accept(d, '('))
    return 0;
  while (!d->failed && !decode_accept(d, ')')) {
    const Tok *t = decode_peek(d);
    Sym *s = t->kind == TK_IDENT ? decode_lookup(d, t->s, t->n) : NULL;
    if (!s || s->kind != SYM_VAR || s->space != SP_LOCAL || n == max)
      decode_fail(d, "an argument of a call is a .param variable");
    else
      out[n++] = *s;
    d->pos++;
    decode_accept(d, ',');
  }
  return n;
}

static void
bind(Decoder *d, const FuncParam *p, size_t n, const Sym *actual, size_t nactual)
{
  if (n != nactual) {
    decode_fail(d, "a call has %zu arguments where the function has %zu", nactual, n);
    return;
  }
  for (size_t i = 0; i < n && !d->failed; i++) {
    Tok name = {.kind = TK_IDENT, .s = p[i].s, .n = p[i].n};
    Sym *s = decode_declare(d, &name, SYM_VAR);
    if (!s)
      return;
    s->space = SP_LOCAL;
    s->addr = actual[i].addr;
    s->size = actual[i].size;
    s->align = actual[i].align;
    if (p[i].is_reg || p[i].size > actual[i].size)
      decode_fail(d, "argument %zu of a call does not fit the parameter", i);
  }
}

static void
inline_call(Decoder *d, const Func *f, const Sym *ret, size_t nret, const Sym *arg, size_t narg)
{
  size_t resume = d->pos, sym = d->nsym, base = d->sym_base;
  uint32_t local = d->local_top;
  Loc here = d->here;
  for (uint32_t i = 0; i < d->depth; i++)
    if (d->stack[i] == f)
      decode_fail(d, "recursion is outside this machine");
  if (d->depth == 32)
    decode_fail(d, "calls are nested too deeply");
  if (d->failed)
    return;
  d->stack[d->depth++] = f;
  d->sym_base = d->nsym;
  bind(d, f->param, f->nparam, arg, narg);
  bind(d, f->ret, f->nret, ret, nret);
  if (!d->failed)
    read_body(d, f);
  if (d->failed)
    return;
  d->depth--;
  drop_symbols(d, sym);
  d->sym_base = base;
  d->local_top = local;
  d->pos = resume;
  d->here = here;
}

/* What the driver brings along; the instruction names its parameters in local memory. */
static void
call_external(Decoder *d, const Func *f, const Sym *arg, size_t narg)
{
  bool is_assert = f->n == 12 && memcmp(f->s, "__assertfail", 12) == 0 && narg == 5;
  bool is_print = f->n == 7 && memcmp(f->s, "vprintf", 7) == 0 && narg == 2;
  if (!is_assert && !is_print) {
    decode_fail(d, "function '%.*s' is defined elsewhere", (int)f->n, f->s);
    return;
  }
  Insn *in = insn_emit(d, is_assert ? K_TRAP : K_WARP);
  if (!in)
    return;
  in->sub = 2;
  in->a = (uint32_t)arg[0].addr;
  in->b = (uint32_t)arg[1].addr;
  if (is_print)
    in->fn.warp = sim_print;
}

/* A guarded call branches around the inlined body. */
static void
call_function(Decoder *d, const Func *f, const Sym *ret, size_t nret, const Sym *arg, size_t narg)
{
  uint32_t skip = UINT32_MAX;
  if (d->guard) {
    Insn *in = insn_emit(d, K_BRA);
    if (!in)
      return;
    in->guard_not = !in->guard_not;
    skip = (uint32_t)(in - d->code);
    d->guard = NO_GUARD;
  }
  if (f->has_body)
    inline_call(d, f, ret, nret, arg, narg);
  else
    call_external(d, f, arg, narg);
  if (skip != UINT32_MAX && !d->failed)
    d->code[skip].target = (uint32_t)d->ncode;
}

void
decode_call(Decoder *d, int arg)
{
  Sym actual[64], result[4];
  size_t nret = 0, nargs = 0;
  opmod_take(d, M_UNI);
  if (decode_peek(d)->kind == TK_PUNCT) {
    nret = read_actuals(d, result, 4);
    decode_expect(d, ',');
  }
  const Tok *name = decode_peek(d);
  Sym *s = name->kind == TK_IDENT ? decode_lookup(d, name->s, name->n) : NULL;
  if (!s || s->kind != SYM_FUNC) {
    decode_fail(d, "a call of something that is not a function");
    return;
  }
  const Func *f = s->func;
  d->pos++;
  if (decode_accept(d, ','))
    nargs = read_actuals(d, actual, 64);
  decode_expect(d, ';');
  if (!d->failed)
    call_function(d, f, result, nret, actual, nargs);
}
