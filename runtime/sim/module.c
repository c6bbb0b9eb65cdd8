/* module.c - the outer level of a PTX text: directives, variables and their values, function headers.
 * Bodies and initial values are kept as ranges of tokens, until all names are known; decode.c reads each body once. */
#include "decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GLOBAL_BYTES = 1 << 30, MAX_FILES = 1 << 16, MAX_ALIGN = 1 << 16, MAX_NEST = 16, MAX_FUNCTIONS = 1 << 24,
       MAX_PARAM_BYTES = 1 << 20 };

static void
fail(Reader *r, const char *fmt, ...)
{
  va_list ap;
  char text[256];
  if (r->failed)
    return;
  r->failed = true;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  uint32_t line = r->tok[r->pos].line;
  sim_error_set(r->err, SIM_E_PARSE, "%s", text);
  r->err->ptx_line = line;
}

static void
no_memory(Reader *r)
{
  if (!r->failed)
    sim_error_set(r->err, SIM_E_MEMORY, "out of memory reading PTX");
  r->failed = true;
}

static const Tok *
peek(const Reader *r)
{
  return &r->tok[r->pos];
}

static const Tok *
advance(Reader *r)
{
  const Tok *t = &r->tok[r->pos];
  if (t->kind != TK_END)
    r->pos++;
  return t;
}

static bool
accept(Reader *r, char punct)
{
  if (peek(r)->kind != TK_PUNCT || peek(r)->punct != punct)
    return false;
  r->pos++;
  return true;
}

static bool
accept_word(Reader *r, const char *word)
{
  if (!ptx_tok_is(peek(r), word))
    return false;
  r->pos++;
  return true;
}

static void
expect(Reader *r, char punct)
{
  if (!accept(r, punct))
    fail(r, "expected '%c'", punct);
}

static uint64_t
expect_int(Reader *r)
{
  if (peek(r)->kind != TK_INT) {
    fail(r, "expected a number");
    return 0;
  }
  return advance(r)->v;
}

static void
skip_past(Reader *r, char punct)
{
  while (peek(r)->kind != TK_END)
    if (accept(r, punct))
      return;
    else
      r->pos++;
  fail(r, "expected '%c'", punct);
}

static void
skip_braces(Reader *r)
{
  expect(r, '{');
  for (uint32_t depth = 1; depth && !r->failed;) {
    const Tok *t = advance(r);
    if (t->kind == TK_END)
      fail(r, "a '{' has no '}'");
    else if (t->kind == TK_PUNCT)
      depth += t->punct == '{' ? 1u : t->punct == '}' ? -1u : 0u;
  }
}

/* .file n "name" [, time, size] */
static void
read_file(Reader *r)
{
  SimModule *m = r->mod;
  uint64_t n = expect_int(r);
  const Tok *t = peek(r);
  if (r->failed || t->kind != TK_STRING || n >= MAX_FILES) {
    fail(r, "expected a small number and a name");
    return;
  }
  r->pos++;
  size_t cap = m->nfiles;
  if (!sim_vec_grow(&m->files, &cap, n + 1, sizeof *m->files)) {
    no_memory(r);
    return;
  }
  memset(m->files + m->nfiles, 0, (cap - m->nfiles) * sizeof *m->files);
  m->nfiles = (uint32_t)cap;
  free(m->files[n]);
  m->files[n] = strndup(t->s, t->n);
  while (accept(r, ','))
    expect_int(r);
}

static uint64_t
sized(Reader *r, uint64_t elem)
{
  uint64_t size = elem;
  while (accept(r, '[')) {
    uint64_t n = 0;
    if (!accept(r, ']')) {
      n = expect_int(r);
      expect(r, ']');
    }
    if (n > MAX_GLOBAL_BYTES || size * n > MAX_GLOBAL_BYTES)
      fail(r, "a variable is too large");
    size = r->failed ? 0 : size * n;
  }
  return size;
}

static uint32_t
read_align(Reader *r)
{
  uint64_t n = expect_int(r);
  if (n == 0 || n > MAX_ALIGN || (n & (n - 1)))
    fail(r, "an alignment is a small power of two");
  return r->failed ? 1 : (uint32_t)n;
}

static Sym *
module_symbol(Reader *r, const Tok *name, SymKind kind)
{
  if (name->kind != TK_IDENT) {
    fail(r, "expected a name");
    return NULL;
  }
  Sym *s = names_add(&r->names, name->s, name->n, kind);
  if (!s)
    no_memory(r);
  return s;
}

/* ---- variables ---- */

typedef struct VarWords { uint32_t align, lanes; Type type; } VarWords;

/* [.align n] [.v4] .type */
static VarWords
variable_words(Reader *r)
{
  VarWords w = {0, 1, T_NONE};
  while (!r->failed && peek(r)->kind == TK_IDENT && peek(r)->s[0] == '.') {
    if (accept_word(r, ".align"))
      w.align = read_align(r);
    else if (accept_word(r, ".v2"))
      w.lanes = 2;
    else if (accept_word(r, ".v4"))
      w.lanes = 4;
    else if (accept_word(r, ".attribute") || accept_word(r, ".ptr")) {
      if (accept(r, '('))
        skip_past(r, ')');
    } else if ((w.type = ptx_type_named(peek(r))) != T_NONE && ptx_type_bytes[w.type])
      r->pos++;
    else
      fail(r, "unknown word '%.*s' in a variable", (int)peek(r)->n, peek(r)->s);
  }
  return w;
}

static void
add_shared(Reader *r, Sym *s, bool dynamic)
{
  SimModule *m = r->mod;
  if (!sim_vec_grow(&m->shared, &m->shared_cap, m->nshared + 1, sizeof *m->shared)) {
    no_memory(r);
    return;
  }
  m->shared[m->nshared++] = (SharedVar){{s->s, s->n}, s->size, s->align, dynamic};
  s->shared = (uint32_t)m->nshared;
  s->var = (uint32_t)VAR_SHARED << VAR_BITS | s->shared;
}

static void
add_global(Reader *r, Sym *s, Type type, size_t value)
{
  SimModule *m = r->mod;
  if (!sim_vec_grow(&m->global, &m->global_cap, m->nglobal + 1, sizeof *m->global) ||
      !sim_vec_grow(&r->value, &r->value_cap, m->nglobal + 1, sizeof *r->value)) {
    no_memory(r);
    return;
  }
  r->global_bytes += s->size;
  if (r->global_bytes > MAX_GLOBAL_BYTES)
    fail(r, "the module's variables take more than %d MB", MAX_GLOBAL_BYTES >> 20);
  r->value[m->nglobal] = (InitialValue){(size_t)(s - r->names.sym), value, type};
  m->global[m->nglobal++] = (GlobalVar){{s->s, s->n}, 0, s->size};
  s->var = (uint32_t)VAR_GLOBAL << VAR_BITS | (uint32_t)m->nglobal;
}

/* after .global, .const or .shared: [.align n] [.v4] .type name[n] [= value] ; */
static void
read_variable(Reader *r, Space space, bool external)
{
  VarWords w = variable_words(r);
  const Tok *name = advance(r);
  uint64_t size = w.type ? sized(r, (uint64_t)ptx_type_bytes[w.type] * w.lanes) : 0;
  if (!w.type || r->failed) {
    fail(r, "a variable needs a type and a name");
    return;
  }
  Sym *s = module_symbol(r, name, SYM_VAR);
  if (!s)
    return;
  s->space = (uint8_t)space;
  s->align = w.align ? w.align : ptx_type_bytes[w.type] * w.lanes;
  s->size = (uint32_t)size;
  if (external && space != SP_SHARED)
    fail(r, "variable '%.*s' is defined elsewhere", (int)s->n, s->s);
  size_t value = accept(r, '=') ? r->pos : 0;
  if (space != SP_SHARED)
    add_global(r, s, w.type, value);
  else if (value)
    fail(r, "a shared variable has no initial value");
  else
    add_shared(r, s, external);
  if (value)
    skip_past(r, ';');
  else
    expect(r, ';');
}

/* ---- initial values ---- */

/* The address of a variable or function: NAME, generic(NAME); + n. */
static uint64_t
address_of(Reader *r)
{
  bool generic = accept_word(r, "generic");
  if (generic)
    expect(r, '(');
  const Tok *t = advance(r);
  if (generic)
    expect(r, ')');
  const Sym *s = t->kind == TK_IDENT ? names_find(&r->names, t->s, t->n) : NULL;
  if (s && s->kind == SYM_FUNC && !s->func->entry) {
    r->mod->taken[s->func->index] = true;
    return FUNCTION_WINDOW + 16ull * s->func->index;
  }
  if (!s || s->kind != SYM_VAR || s->space == SP_SHARED)
    fail(r, "an initial value is not a constant");
  uint64_t v = r->failed ? 0 : s->addr;
  while (accept(r, '+'))
    v += expect_int(r);
  return v;
}

static uint64_t
float_bits(const Tok *k, bool minus, Type t)
{
  if (k->fbits)
    return minus ? k->v ^ 1ull << (k->fbits - 1) : k->v;
  double v;
  memcpy(&v, &k->v, 8);
  v = minus ? -v : v;
  float f = (float)v;
  uint64_t wide;
  uint32_t narrow;
  memcpy(&wide, &v, 8);
  memcpy(&narrow, &f, 4);
  return t == T_F64 ? wide : narrow;
}

/* 0xff00(NAME): those bits of an address, moved to the right end. */
static uint64_t
masked_address(Reader *r, uint64_t mask)
{
  uint64_t v = address_of(r);
  expect(r, ')');
  return mask ? (v & mask) >> __builtin_ctzll(mask) : 0;
}

static uint64_t
value_of(Reader *r, Type t)
{
  bool minus = accept(r, '-');
  const Tok *k = peek(r);
  if (k->kind != TK_INT && k->kind != TK_FLOAT)
    return address_of(r);
  r->pos++;
  if (k->kind == TK_FLOAT)
    return float_bits(k, minus, t);
  if (accept(r, '('))
    return masked_address(r, k->v);
  return minus ? 0 - k->v : k->v;
}

typedef struct Values { Type type; uint8_t *at; uint64_t size, used; } Values;

static void
put_value(Reader *r, Values *v)
{
  uint32_t n = ptx_type_bytes[v->type];
  uint64_t value = value_of(r, v->type);
  if (v->used + n > v->size)
    fail(r, "too many initial values");
  if (r->failed)
    return;
  memcpy(v->at + v->used, &value, n < 8 ? n : 8);
  v->used += n;
}

/* value, or { values, nested or not }: braces group as in C but leave no room. */
static void
read_values(Reader *r, Values *v)
{
  uint32_t depth = 0;
  do {
    if (accept(r, '{')) {
      if (++depth > MAX_NEST)
        fail(r, "initial values are nested too deeply");
      continue;
    }
    if (!depth || peek(r)->kind != TK_PUNCT || peek(r)->punct != '}')
      put_value(r, v);
    while (depth && accept(r, '}'))
      depth--;
    if (depth && !accept(r, ','))
      fail(r, "expected ',' or '}'");
  } while (depth && !r->failed);
}

/* All variables get one block of memory, each with room around it. */
static void
place_globals(Reader *r)
{
  SimModule *m = r->mod;
  size_t n = m->nglobal;
  AllocPart *part = calloc(n + 1, sizeof *part);
  if (!part) {
    no_memory(r);
    return;
  }
  for (size_t i = 0; i < n; i++)
    part[i] = (AllocPart){m->global[i].size, r->names.sym[r->value[i].sym].align, 0};
  if (n && sim_machine_alloc_parts(m->machine, part, n, &m->globals, r->err))
    r->failed = true;
  for (size_t i = 0; i < n && !r->failed; i++) {
    memset((void *)part[i].base, 0, part[i].bytes);
    r->names.sym[r->value[i].sym].addr = m->global[i].base = part[i].base;
  }
  free(part);
}

static void
fill_globals(Reader *r)
{
  for (size_t i = 0; i < r->mod->nglobal && !r->failed; i++) {
    const InitialValue *x = &r->value[i];
    const Sym *s = &r->names.sym[x->sym];
    Values v = {x->type, (uint8_t *)(uintptr_t)s->addr, s->size, 0};
    if (!x->value)
      continue;
    r->pos = x->value;
    read_values(r, &v);
    expect(r, ';');
  }
}

/* ---- functions ---- */

static bool
param_word(Reader *r, FuncParam *p, Type *t)
{
  if (accept_word(r, ".align"))
    p->align = read_align(r);
  else if (accept_word(r, ".ptr"))
    p->pointer = true;
  else if ( accept_word(r, ".global") || accept_word(r, ".const") ||
           accept_word(r, ".shared") || accept_word(r, ".local") || accept_word(r, ".param") ||
           accept_word(r, ".generic") || accept_word(r, ".noalias"))
    return true;
  else if (accept_word(r, ".reg"))
    p->is_reg = true;
  else if ((*t = ptx_type_named(peek(r))) != T_NONE)
    r->pos++;
  else
    return false;
  return true;
}

/* An .align before the type is the parameter's own, one after it (.ptr .align 16) its pointee's. */
static void
read_param(Reader *r, FuncParam *p)
{
  Type t = T_NONE;
  memset(p, 0, sizeof *p);
  while (!r->failed && peek(r)->kind == TK_IDENT && peek(r)->s[0] == '.') {
    Type seen = T_NONE;
    uint32_t own = p->align;
    if (!param_word(r, p, &seen)) {
      fail(r, "unknown word '%.*s' in a parameter", (int)peek(r)->n, peek(r)->s);
      return;
    }
    if (t)
      p->align = own;
    t = seen ? seen : t;
  }
  const Tok *name = advance(r);
  if (name->kind != TK_IDENT || !t || (!ptx_type_bytes[t] && !p->is_reg)) {
    fail(r, "a parameter needs a type and a name");
    return;
  }
  p->name = (Name){name->s, name->n};
  p->type = (uint8_t)t;
  p->array = peek(r)->kind == TK_PUNCT && peek(r)->punct == '[';
  p->size = (uint32_t)sized(r, ptx_type_bytes[t]);
  p->align = p->align ? p->align : ptx_type_bytes[t];
  if (p->size > 1 << 16)
    fail(r, "a parameter is too large");
}

static void
read_params(Reader *r, FuncParam **list, size_t *n, size_t *cap)
{
  uint64_t bytes = 0;
  if (!accept(r, '(') || accept(r, ')'))
    return;
  do {
    if (!sim_vec_grow(list, cap, *n + 1, sizeof **list)) {
      no_memory(r);
      return;
    }
    read_param(r, &(*list)[(*n)++]);
    bytes += (*list)[*n - 1].size + (uint64_t)(*list)[*n - 1].align;
    if (bytes > MAX_PARAM_BYTES)
      fail(r, "the parameters are too large");
  } while (!r->failed && accept(r, ','));
  expect(r, ')');
}

/* most: of each, and what they are sizes of */
static void
read_dims(Reader *r, uint32_t dims[3], uint32_t most, const char *of)
{
  dims[0] = dims[1] = dims[2] = 1;
  for (int i = 0; i < 3; i++) {
    uint64_t v = expect_int(r);
    if (v == 0 || v > most)
      fail(r, "a %s size is 1 to %u", of, most);
    dims[i] = (uint32_t)v;
    if (!accept(r, ','))
      return;
  }
}

static void
read_function_directives(Reader *r, Func *f)
{
  for (;;) {
    if (accept_word(r, ".reqntid"))
      read_dims(r, f->reqntid, 1024, "block");
    else if (accept_word(r, ".maxntid"))
      read_dims(r, f->maxntid, 1024, "block");
    else if (accept_word(r, ".minnctapersm"))
      f->minctas = (uint32_t)expect_int(r);
    else if (accept_word(r, ".maxnreg"))
      f->maxnreg = (uint32_t)expect_int(r);
    else if (accept_word(r, ".maxclusterrank"))
      f->maxcluster = (uint32_t)expect_int(r);
    else if (accept_word(r, ".maxnctapersm"))
      expect_int(r);
    else if (accept_word(r, ".explicitcluster"))
      f->explicit_cluster = true;
    else if (accept_word(r, ".blocksareclusters"))
      f->blocks_are_clusters = true;
    else if (accept_word(r, ".noreturn"))
      continue;
    else if (accept_word(r, ".abi_preserve") || accept_word(r, ".abi_preserve_control"))
      expect_int(r);
    else if (accept_word(r, ".reqnctapercluster"))
      read_dims(r, f->reqcluster, MAX_CLUSTER, "cluster");
    else if (accept_word(r, ".pragma"))
      skip_past(r, ';');
    else
      return;
    if (r->failed)
      return;
  }
}

static Func *
func_add(Reader *r, Func ***list, size_t *n, size_t *cap)
{
  if (*n >= MAX_FUNCTIONS || !sim_vec_grow(list, cap, *n + 1, sizeof **list)) {
    no_memory(r);
    return NULL;
  }
  Func *f = calloc(1, sizeof *f);
  if (!f) {
    no_memory(r);
    return NULL;
  }
  f->index = (uint32_t)*n;
  (*list)[(*n)++] = f;
  return f;
}

static void
func_free(Func *f)
{
  free(f->param);
  free(f->ret);
  free(f);
}

/* The function of a name, which may have been declared before. */
static Func *
func_named(Reader *r, const Tok *name, bool entry)
{
  const Sym *old = name->kind == TK_IDENT ? names_find(&r->names, name->s, name->n) : NULL;
  if (old && old->kind == SYM_FUNC) {
    if (old->func->has_body || old->func->entry != entry)
      fail(r, "function '%.*s' is there twice", (int)name->n, name->s);
    return r->failed ? NULL : old->func;
  }
  Func *f = func_add(r, &r->func, &r->nfunc, &r->func_cap);
  Sym *s = f ? module_symbol(r, name, SYM_FUNC) : NULL;
  if (!s)
    return NULL;
  s->func = f;
  f->entry = entry;
  f->name = (Name){name->s, name->n};
  return f;
}

typedef struct ParamList { FuncParam *p; size_t n, cap; } ParamList;

static void
take_list(FuncParam **to, size_t *n, ParamList *list)
{
  free(*to);
  *to = list->p;
  *n = list->n;
}

static void
read_function(Reader *r, bool entry)
{
  ParamList ret = {0}, param = {0};
  accept_word(r, ".noreturn");
  if (accept_word(r, ".attribute"))
    skip_past(r, ')');
  if (!entry)
    read_params(r, &ret.p, &ret.n, &ret.cap);
  const Tok *name = advance(r);
  read_params(r, &param.p, &param.n, &param.cap);
  Func *f = r->failed ? NULL : func_named(r, name, entry);
  if (!f) {
    free(ret.p);
    free(param.p);
    return;
  }
  take_list(&f->ret, &f->nret, &ret);
  take_list(&f->param, &f->nparam, &param);
  read_function_directives(r, f);
  if (r->failed || accept(r, ';'))
    return;
  size_t open = r->pos;
  skip_braces(r);
  f->has_body = !r->failed;
  f->body = open + 1;
  f->body_end = r->pos - 1;
}

Func *
module_prototype(Reader *r, size_t *pos)
{
  Func *f = func_add(r, &r->prototype, &r->nprototype, &r->prototype_cap);
  if (!f)
    return NULL;
  r->pos = *pos;
  accept_word(r, ".callprototype");
  read_params(r, &f->ret, &f->nret, &f->ret_cap);
  advance(r);
  read_params(r, &f->param, &f->nparam, &f->param_cap);
  read_function_directives(r, f);
  expect(r, ';');
  *pos = r->pos;
  return r->failed ? NULL : f;
}

/* ---- .debug_str ---- */

static void
add_bytes(Reader *r, size_t *cap)
{
  SimModule *m = r->mod;
  do {
    uint64_t v = expect_int(r);
    if (!sim_vec_grow(&m->strings, cap, m->nstrings + 1, 1))
      no_memory(r);
    if (r->failed)
      return;
    m->strings[m->nstrings++] = (char)v;
  } while (accept(r, ','));
}

/* { LABEL: .b8 1, 2, 3 ... }: names of functions, for .loc. Other sections are passed over. */
static void
read_section(Reader *r)
{
  size_t cap = r->mod->nstrings;
  if (!ptx_tok_is(advance(r), ".debug_str") || r->mod->strings) {
    skip_braces(r);
    return;
  }
  expect(r, '{');
  while (!r->failed && !accept(r, '}')) {
    const Tok *t = advance(r);
    if (ptx_tok_is(t, ".b8")) {
      add_bytes(r, &cap);
      continue;
    }
    expect(r, ':');
    if (t->kind != TK_IDENT) {
      fail(r, "expected a label");
      return;
    }
    Sym *s = names_add(&r->strings, t->s, t->n, SYM_LABEL);
    if (s)
      s->addr = r->mod->nstrings;
    else
      no_memory(r);
  }
}

/* ---- the outer level ---- */

static void
read_header(Reader *r, const Tok *t)
{
  if (ptx_tok_is(t, ".version")) {
    if (advance(r)->kind != TK_FLOAT)
      fail(r, "expected a version");
  } else if (ptx_tok_is(t, ".target")) {
    do
      if (advance(r)->kind != TK_IDENT)
        fail(r, "expected a target");
    while (!r->failed && accept(r, ','));
  } else if (expect_int(r) != 64)
    fail(r, "addresses must have 64 bits");
}

static void
read_top(Reader *r)
{
  bool external = false;
  while (accept_word(r, ".visible") || accept_word(r, ".weak") || accept_word(r, ".common") ||
         (ptx_tok_is(peek(r), ".extern") && (external = true) && accept_word(r, ".extern")))
    ;
  const Tok *t = advance(r);
  if (ptx_tok_is(t, ".version") || ptx_tok_is(t, ".target") || ptx_tok_is(t, ".address_size"))
    read_header(r, t);
  else if (ptx_tok_is(t, ".entry") || ptx_tok_is(t, ".func"))
    read_function(r, ptx_tok_is(t, ".entry"));
  else if (ptx_tok_is(t, ".global"))
    read_variable(r, SP_GLOBAL, external);
  else if (ptx_tok_is(t, ".const"))
    read_variable(r, SP_CONST, external);
  else if (ptx_tok_is(t, ".shared"))
    read_variable(r, SP_SHARED, external);
  else if (ptx_tok_is(t, ".file"))
    read_file(r);
  else if (ptx_tok_is(t, ".section"))
    read_section(r);
  else if (ptx_tok_is(t, ".pragma") || ptx_tok_is(t, ".alias"))
    skip_past(r, ';');
  else if (t->kind != TK_PUNCT || t->punct != ';')
    fail(r, "unknown directive '%.*s'", (int)(t->n > 40 ? 40 : t->n), t->s);
}

/* ---- bodies ---- */

static void
decoder_free(Decoder *d)
{
  names_free(&d->names);
  names_free(&d->labels);
  chains_free(&d->place_chains);
  chains_free(&d->const_chains);
  free(d->fixup);
  free(d->flow);
}

/* Constants move behind the registers. */
static uint32_t
settle(uint32_t off, uint32_t reg_bytes)
{
  return off & 1u << 31 ? (off & ~(1u << 31)) + reg_bytes : off;
}

static void
settle_all(Unit *u)
{
  uint32_t base = u->reg_bytes;
  for (uint32_t i = 0; i < u->ncode; i++) {
    Insn *in = &u->code[i];
    for (uint32_t j = 0; j < in->nslot; j++)
      in->slot[j] = settle(in->slot[j], base);
    if (in->guard)
      in->guard = settle(in->guard - 1, base) + 1;
  }
  for (uint32_t i = 0; i < u->nlists; i++)
    u->lists[i] = settle(u->lists[i], base);
  for (uint32_t i = 0; i < u->nconsts; i++)
    u->consts[i].offset = settle(u->consts[i].offset, base);
  for (uint32_t i = 0; i < u->nspecials; i++)
    u->specials[i].offset = settle(u->specials[i].offset, base);
}

static void
decode_function(Reader *r, const Func *f)
{
  Unit *u = calloc(1, sizeof *u);
  if (!u) {
    no_memory(r);
    return;
  }
  Decoder d = {.r = r, .u = u};
  r->mod->units[f->index] = u;
  u->name = f->name;
  u->index = f->index;
  u->entry = f->entry;
  u->reg_bytes = FIRST_SLOT;
  u->maxnreg = f->maxnreg;
  u->minctas = f->minctas;
  u->maxcluster = f->maxcluster;
  u->explicit_cluster = f->explicit_cluster;
  u->blocks_are_clusters = f->blocks_are_clusters;
  memcpy(u->reqcluster, f->reqcluster, sizeof u->reqcluster);
  memcpy(u->reqntid, f->reqntid, sizeof u->reqntid);
  memcpy(u->maxntid, f->maxntid, sizeof u->maxntid);
  decode_body(&d, f);
  u->file_bytes = u->reg_bytes + d.const_bytes;
  decoder_free(&d);
  r->failed |= d.failed;
  if (r->failed || r->nunknown)
    return;
  settle_all(u);
  if (!cfg_rank(u))
    no_memory(r);
}

/* "the machine does not have: a.b (line 3), c.d (line 5, 2 times)": all at once. */
static void
report_unknown(Reader *r)
{
  char text[400];
  size_t used = 0;
  for (uint32_t i = 0; i < r->nunknown && used < sizeof text; i++) {
    const Unknown *u = &r->unknown[i];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s '%.*s' (line %u", i ? "," : "", (int)(u->text.n > 60 ? 60 : u->text.n),
                             u->text.s, u->line);
    if (used < sizeof text)
      used += (size_t)snprintf(text + used, sizeof text - used, u->count > 1 ? ", %u times)" : ")", u->count);
  }
  if (r->more_unknown && used < sizeof text)
    snprintf(text + used, sizeof text - used, " and %u more", r->more_unknown);
  sim_error_set(r->err, SIM_E_PARSE, "the machine does not know%s", text);
  r->err->ptx_line = r->unknown[0].line;
  r->failed = true;
}

static void
decode_all(Reader *r)
{
  SimModule *m = r->mod;
  m->units = calloc(r->nfunc + 1, sizeof *m->units);
  if (!m->units) {
    no_memory(r);
    return;
  }
  m->nunits = (uint32_t)r->nfunc;
  for (size_t i = 0; i < r->nfunc && !r->failed; i++)
    if (r->func[i]->has_body)
      decode_function(r, r->func[i]);
  if (r->nunknown && !r->failed)
    report_unknown(r);
}

static void
reader_free(Reader *r)
{
  for (size_t i = 0; i < r->nfunc; i++)
    func_free(r->func[i]);
  for (size_t i = 0; i < r->nprototype; i++)
    func_free(r->prototype[i]);
  free(r->func);
  free(r->prototype);
  free(r->value);
  names_free(&r->names);
  names_free(&r->strings);
  free(r->tok);
  free(r->note);
}

static int
reader_scan(Reader *r, const char *text, size_t len)
{
  Tokens t = {0};
  if (ptx_scan(text, len, &t, r->err))
    return -1;
  r->tok = t.tok;
  r->ntok = t.n;
  r->note = t.note;
  r->nnotes = t.nnotes;
  return 0;
}

static void
read_all(Reader *r)
{
  if (!ptx_tok_is(peek(r), ".version"))
    fail(r, "PTX starts with .version");
  while (!r->failed && peek(r)->kind != TK_END)
    read_top(r);
  r->mod->taken = calloc(r->nfunc + 1, sizeof *r->mod->taken);
  if (!r->mod->taken)
    no_memory(r);
  if (!r->failed)
    place_globals(r);
  if (!r->failed)
    fill_globals(r);
  if (!r->failed)
    decode_all(r);
}

/* ---- headers alone ---- */

/* KERNEL_param_N, which compilers make where a name was, is pN. */
static void
name_param(const Func *f, const FuncParam *p, size_t i, SimParam *out)
{
  static const char mid[] = "_param_";
  size_t n = f->name.n, at = n + sizeof mid - 1;
  bool made = p->name.n > at && !memcmp(p->name.s, f->name.s, n) && !memcmp(p->name.s + n, mid, sizeof mid - 1);
  if (made || p->name.n >= sizeof out->name)
    snprintf(out->name, sizeof out->name, "p%zu", i);
  else
    snprintf(out->name, sizeof out->name, "%.*s", (int)p->name.n, p->name.s);
}

static void
describe_param(const FuncParam *p, SimParam *out)
{
  *out = (SimParam){.size = p->size, .align = p->align, .pointer = p->pointer && p->size == 8,
                    .tensormap = p->size == 128 && p->align == 64};
  snprintf(out->type, sizeof out->type, "%s", p->array ? "" : ptx_type_text[p->type]);
}

static void
describe_entry(Reader *r, const Func *f, void (*each)(void *user, const SimEntry *e), void *user)
{
  SimParam *p = calloc(f->nparam + 1, sizeof *p);
  SimEntry e = {.nparams = (uint32_t)f->nparam, .params = p, .long_name = f->name.n >= sizeof e.name};
  if (!p) {
    no_memory(r);
    return;
  }
  for (size_t i = 0; i < f->nparam; i++) {
    describe_param(&f->param[i], &p[i]);
    name_param(f, &f->param[i], i, &p[i]);
  }
  snprintf(e.name, sizeof e.name, "%.*s", (int)(e.long_name ? sizeof e.name - 1 : f->name.n), f->name.s);
  memcpy(e.reqntid, f->reqntid, sizeof e.reqntid);
  memcpy(e.maxntid, f->maxntid, sizeof e.maxntid);
  each(user, &e);
  free(p);
}

int
sim_entries(const char *ptx, size_t len, void (*each)(void *user, const SimEntry *e), void *user, SimError *err)
{
  SimModule none = {0};
  Reader r = {.mod = &none, .err = err};
  memset(err, 0, sizeof *err);
  if (reader_scan(&r, ptx, len))
    return -1;
  if (!ptx_tok_is(peek(&r), ".version"))
    fail(&r, "PTX starts with .version");
  while (!r.failed && peek(&r)->kind != TK_END)
    read_top(&r);
  for (size_t i = 0; i < r.nfunc && !r.failed; i++)
    if (r.func[i]->entry && r.func[i]->has_body)
      describe_entry(&r, r.func[i], each, user);
  int rc = r.failed ? -1 : 0;
  for (uint32_t i = 0; i < none.nfiles; i++)
    free(none.files[i]);
  free(none.files);
  free(none.shared);
  free(none.global);
  free(none.strings);
  reader_free(&r);
  return rc;
}

int
ptx_module_read(SimModule *mod, SimError *err)
{
  Reader r = {.mod = mod, .err = err};
  if (reader_scan(&r, mod->text, mod->len))
    return -1;
  read_all(&r);
  int rc = r.failed ? -1 : 0;
  reader_free(&r);
  return rc;
}
