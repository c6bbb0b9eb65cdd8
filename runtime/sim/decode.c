/* decode.c - the body of a function: scopes, declarations and labels.
 *
 * Every function is decoded once, into a Unit of its own; link.c puts those together that a kernel reaches.
 *
 * A label is seen in the braces it stands in and in those inside them, also before it is defined: uses are
 * kept as fixups, matched against the labels of a scope when it closes, and handed outward if unmatched. */
#include "decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 1 << 22, MAX_REGISTERS = 1 << 22, MAX_LOCAL = 1 << 24, MAX_SCOPES = 64, RESERVED_SHARED = 512 };

static void
stop(Decoder *d, SimErrorKind kind, const char *text)
{
  uint32_t line = d->here.ptx_line ? d->here.ptx_line : d->r->tok[d->pos].line;
  d->failed = true;
  sim_error_set(d->r->err, kind, "%s", text);
  d->r->err->ptx_line = line;
}

void
decode_fail(Decoder *d, const char *fmt, ...)
{
  va_list ap;
  char text[256];
  if (d->failed || d->unknown)
    return;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  stop(d, SIM_E_PARSE, text);
}

void
decode_no_memory(Decoder *d)
{
  if (!d->failed)
    stop(d, SIM_E_MEMORY, "out of memory");
}

void
decode_unknown(Decoder *d)
{
  Reader *r = d->r;
  const Tok *t = d->op_tok;
  if (d->failed || d->unknown)
    return;
  d->unknown = true;
  for (uint32_t i = 0; i < r->nunknown; i++)
    if (r->unknown[i].text.n == t->n && memcmp(r->unknown[i].text.s, t->s, t->n) == 0) {
      r->unknown[i].count++;
      return;
    }
  if (r->nunknown < MAX_UNKNOWN)
    r->unknown[r->nunknown++] = (Unknown){{t->s, t->n}, t->line, 1};
  else
    r->more_unknown++;
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

Sym *
decode_lookup(Decoder *d, const char *s, uint32_t n)
{
  Sym *found = names_find(&d->names, s, n);
  return found ? found : names_find(&d->r->names, s, n);
}

Sym *
decode_declare(Decoder *d, const Tok *name, SymKind kind)
{
  if (name->kind != TK_IDENT) {
    decode_fail(d, "expected a name");
    return NULL;
  }
  Sym *s = names_add(&d->names, name->s, name->n, kind);
  if (!s)
    decode_no_memory(d);
  return s;
}

/* ---- declarations ---- */

uint64_t
decode_number(Decoder *d)
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
declare_range(Decoder *d, Sym *s)
{
  uint64_t n = decode_number(d);
  decode_expect(d, '>');
  if (n > MAX_REGISTERS || d->registers + n > MAX_REGISTERS)
    decode_fail(d, "too many registers");
  s->slots = d->failed ? NULL : calloc(n + 1, sizeof *s->slots);
  if (!s->slots)
    decode_no_memory(d);
  s->count = d->failed ? 0 : (uint32_t)n;
  d->registers += s->count;
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
  if (range)
    declare_range(d, s);
}

static void
declare_registers(Decoder *d)
{
  Type t = ptx_type_named(decode_peek(d));
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

static uint64_t
array_size(Decoder *d, uint64_t elem)
{
  while (decode_accept(d, '[')) {
    uint64_t n = decode_number(d);
    decode_expect(d, ']');
    if (n > MAX_LOCAL || elem * n > MAX_LOCAL)
      decode_fail(d, "a variable is too large");
    elem = d->failed ? 0 : elem * n;
  }
  return elem;
}

static uint32_t
var_of(uint32_t kind, uint32_t index)
{
  return kind << VAR_BITS | (index + 1);
}

static uint32_t
new_local(Decoder *d, Local v)
{
  Unit *u = d->u;
  if (!sim_vec_grow(&u->locals, &d->var_cap, u->nlocals + 1u, sizeof *u->locals)) {
    decode_no_memory(d);
    return 0;
  }
  u->locals[u->nlocals] = v;
  return var_of(VAR_LOCAL, u->nlocals++);
}

static void
place_local(Decoder *d, Sym *s)
{
  d->frame_top = align_up(d->frame_top, s->align);
  s->addr = d->frame_top;
  s->space = SP_LOCAL;
  d->frame_top += s->size;
  if (d->frame_top > MAX_LOCAL)
    decode_fail(d, "too much local memory");
  else if (d->frame_top > d->u->frame_bytes)
    d->u->frame_bytes = align_up(d->frame_top, 16);
  s->var = new_local(d, (Local){{s->s, s->n}, (uint32_t)s->addr, s->size});
}

static void
place_shared(Decoder *d, Sym *s)
{
  SimModule *m = d->r->mod;
  s->space = SP_SHARED;
  if (!sim_vec_grow(&m->shared, &m->shared_cap, m->nshared + 1, sizeof *m->shared)) {
    decode_no_memory(d);
    return;
  }
  m->shared[m->nshared++] = (SharedVar){{s->s, s->n}, s->size, s->align, false};
  s->shared = (uint32_t)m->nshared;
  s->var = var_of(VAR_SHARED, s->shared - 1);
}

Sym *
decode_reserved(Decoder *d, const Tok *t)
{
  Sym *s = names_add(&d->r->names, t->s, t->n, SYM_VAR);
  if (!s) {
    decode_no_memory(d);
    return NULL;
  }
  s->align = 16;
  s->size = RESERVED_SHARED;
  place_shared(d, s);
  return s;
}

static void
place_variable(Decoder *d, Sym *s, Space space)
{
  if (space == SP_SHARED)
    place_shared(d, s);
  else
    place_local(d, s);
}

/* after .local, .shared or .param inside a body */
static void
declare_variable(Decoder *d, Space space)
{
  uint64_t align = 0;
  Type t = T_NONE;
  while (!d->failed && decode_peek(d)->kind == TK_IDENT && decode_peek(d)->s[0] == '.') {
    const Tok *word = decode_peek(d);
    d->pos++;
    if (ptx_tok_is(word, ".align"))
      align = decode_number(d);
    else if ((t = ptx_type_named(word)) == T_NONE || !ptx_type_bytes[t])
      decode_fail(d, "unknown word '%.*s' in a variable", (int)word->n, word->s);
  }
  if (!t || (align & (align - 1)) || align > 1 << 16) {
    decode_fail(d, "a variable needs a type and a power-of-two alignment");
    return;
  }
  do {
    const Tok *name = decode_peek(d);
    d->pos++;
    uint64_t size = array_size(d, ptx_type_bytes[t]);
    Sym *s = decode_declare(d, name, SYM_VAR);
    if (!s)
      return;
    s->align = align ? (uint32_t)align : ptx_type_bytes[t];
    s->size = (uint32_t)size;
    place_variable(d, s, space);
  } while (!d->failed && decode_accept(d, ','));
  decode_expect(d, ';');
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
    decode_loc(d);
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
    decode_no_memory(d);
    return;
  }
  d->fixup[d->nfixup++] = (Fixup){label->s, label->n, d->here.ptx_line, insn, brx};
}

static void
define_label(Decoder *d, const Tok *t, size_t scope)
{
  Sym *old = names_find(&d->labels, t->s, t->n);
  if (old && (size_t)(old - d->labels.sym) >= scope) {
    decode_fail(d, "label '%.*s' is there twice", (int)t->n, t->s);
    return;
  }
  Sym *s = names_add(&d->labels, t->s, t->n, SYM_LABEL);
  if (s)
    s->addr = d->u->ncode;
  else
    decode_no_memory(d);
}

static bool
resolve(Decoder *d, const Fixup *f, size_t from)
{
  const Sym *s = names_find(&d->labels, f->s, f->n);
  if (!s || (size_t)(s - d->labels.sym) < from)
    return false;
  if (f->insn != UINT32_MAX)
    d->u->code[f->insn].bra.target = (uint32_t)s->addr;
  else
    d->u->brx[f->brx] = (uint32_t)s->addr;
  return true;
}

static void
close_labels(Decoder *d, size_t label_from, size_t fixup_from)
{
  size_t keep = fixup_from;
  for (size_t i = fixup_from; i < d->nfixup; i++)
    if (!resolve(d, &d->fixup[i], label_from))
      d->fixup[keep++] = d->fixup[i];
  d->nfixup = keep;
  names_cut(&d->labels, label_from);
}

/* ---- scopes and bodies ---- */

typedef struct ScopeMark { size_t names, labels, fixups; uint32_t frame; } ScopeMark;

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
read_label(Decoder *d, size_t scope)
{
  const Tok *t = decode_peek(d);
  d->pos += 2;
  const Tok *after = decode_peek(d);
  if (ptx_tok_is(after, ".branchtargets"))
    read_targets(d, t);
  else if (ptx_tok_is(after, ".callprototype"))
    decode_prototype(d, t);
  else if (ptx_tok_is(after, ".calltargets"))
    skip_to(d, ';');
  else
    define_label(d, t, scope);
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

/* One item of a scope that began with `mark` labels. */
static void
read_item(Decoder *d, size_t mark)
{
  const Tok *t = decode_peek(d);
  d->here.ptx_line = t->line;
  if (d->u->ncode > MAX_CODE)
    decode_fail(d, "the function is too large");
  else if (t->kind == TK_END)
    decode_fail(d, "the text ends inside a function");
  else if (decode_accept(d, ';'))
    return;
  else if (at_label(d))
    read_label(d, mark);
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
close_scope(Decoder *d, const ScopeMark *m)
{
  close_labels(d, m->labels, m->fixups);
  names_cut(&d->names, m->names);
  d->frame_top = m->frame;
}

/* Everything up to the brace that closes a function. */
static void
read_body(Decoder *d, const Func *f)
{
  ScopeMark scope[MAX_SCOPES] = {{0}};
  uint32_t depth = 0;
  d->note = note_first(d->r, f->body);
  for (d->pos = f->body; !d->failed && d->pos < f->body_end;) {
    decode_notes(d);
    if (decode_accept(d, '{')) {
      if (++depth == MAX_SCOPES) {
        decode_fail(d, "scopes are nested too deeply");
        return;
      }
      scope[depth] = (ScopeMark){d->names.n, d->labels.n, d->nfixup, d->frame_top};
    } else if (depth && decode_accept(d, '}'))
      close_scope(d, &scope[depth--]);
    else
      read_item(d, scope[depth].labels);
  }
  if (d->failed)
    return;
  close_labels(d, 0, 0);
  if (d->nfixup) {
    d->here.ptx_line = d->fixup[0].line;
    decode_fail(d, "no label '%.*s'", (int)d->fixup[0].n, d->fixup[0].s);
  }
}

/* The formals of a function are variables: of an entry in the parameters, of others at the start of the frame. */
static void
declare_formals(Decoder *d, const Func *f, const FuncParam *p, const Formal *at, size_t n)
{
  for (size_t i = 0; i < n && !d->failed; i++) {
    Tok name = {.kind = TK_IDENT, .s = p[i].name.s, .n = p[i].name.n};
    Sym *s = decode_declare(d, &name, SYM_VAR);
    if (!s)
      return;
    s->type = p[i].type;
    s->align = p[i].align;
    s->size = p[i].size;
    s->addr = at[i].offset;
    s->space = f->entry ? SP_PARAM : SP_LOCAL;
    if (p[i].is_reg)
      decode_fail(d, "parameters in registers are outside this machine");
    else
      s->var = f->entry ? var_of(VAR_PARAM, (uint32_t)i) : new_local(d, (Local){{s->s, s->n}, at[i].offset, s->size});
  }
}

void
decode_body(Decoder *d, const Func *f)
{
  Unit *u = d->u;
  uint32_t bytes = 0;
  if (!signature_of(f, &u->type, &bytes)) {
    decode_no_memory(d);
    return;
  }
  if (f->entry)
    u->param_bytes = bytes;
  else {
    u->frame = slot_new(d, 8);
    u->frame_bytes = d->frame_top = align_up(bytes ? bytes : 1, 16);
  }
  declare_formals(d, f, f->param, u->type.param, f->nparam);
  declare_formals(d, f, f->ret, u->type.ret, f->nret);
  if (!d->failed)
    read_body(d, f);
  if (d->failed)
    return;
  d->guard = NO_GUARD;
  insn_emit(d, K_RET, 0);
  flow_solve(d);
  hollow_find(d);
}
