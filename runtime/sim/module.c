/* module.c - the outer level of a PTX text: directives, variables and their values, function headers.
 * Bodies are kept as ranges of tokens; decode.c reads one range per kernel (and again at every call). */
#include "decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GLOBAL_BYTES = 1 << 30, MAX_FILES = 1 << 16, MAX_ALIGN = 1 << 16 };

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
  sim_error_set(r->err, SIM_E_PARSE, "PTX line %u: %s", line, text);
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

static Type
type_of(const Tok *t)
{
  for (int i = 1; t->kind == TK_IDENT && i < T_COUNT; i++)
    if (t->n == strlen(ptx_type_text[i]) + 1 && memcmp(t->s + 1, ptx_type_text[i], t->n - 1) == 0)
      return (Type)i;
  return T_NONE;
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
  if (n >= m->nfiles) {
    char **grown = realloc(m->files, (n + 1) * sizeof *grown);
    if (!grown) {
      no_memory(r);
      return;
    }
    memset(grown + m->nfiles, 0, (n + 1 - m->nfiles) * sizeof *grown);
    m->files = grown;
    m->nfiles = (uint32_t)n + 1;
  }
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
  if (!sim_vec_grow(&r->sym, &r->sym_cap, r->nsym + 1, sizeof *r->sym)) {
    no_memory(r);
    return NULL;
  }
  Sym *s = &r->sym[r->nsym++];
  *s = (Sym){.s = name->s, .n = name->n, .hash = ptx_hash(name->s, name->n), .kind = (uint8_t)kind};
  return s;
}

static Sym *
find_symbol(Reader *r, const Tok *name)
{
  for (size_t i = r->nsym; i-- > 0;)
    if (r->sym[i].n == name->n && memcmp(r->sym[i].s, name->s, name->n) == 0)
      return &r->sym[i];
  return NULL;
}

static uint64_t
value_of(Reader *r, Type t)
{
  bool minus = accept(r, '-');
  const Tok *k = advance(r);
  if (k->kind == TK_INT)
    return minus ? 0 - k->v : k->v;
  if (k->kind == TK_FLOAT && k->fbits)
    return k->v;
  if (k->kind == TK_FLOAT) {
    double v;
    memcpy(&v, &k->v, 8);
    float f = (float)(minus ? -v : v);
    uint32_t u;
    memcpy(&u, &f, 4);
    v = minus ? -v : v;
    uint64_t u64;
    memcpy(&u64, &v, 8);
    return t == T_F64 ? u64 : u;
  }
  if (ptx_tok_is(k, "generic")) {
    expect(r, '(');
    k = advance(r);
    expect(r, ')');
  }
  const Sym *s = k->kind == TK_IDENT ? find_symbol(r, k) : NULL;
  if (!s || s->kind != SYM_VAR || s->space == SP_SHARED)
    fail(r, "an initial value is not a constant");
  uint64_t v = r->failed ? 0 : s->addr;
  if (accept(r, '+'))
    v += expect_int(r);
  return v;
}

static void
read_values(Reader *r, Type t, uint8_t *at, uint64_t size, uint64_t *used)
{
  if (accept(r, '{')) {
    while (!r->failed && !accept(r, '}')) {
      read_values(r, t, at, size, used);
      if (!accept(r, ',') && !(peek(r)->kind == TK_PUNCT && peek(r)->punct == '}'))
        fail(r, "expected ',' or '}'");
    }
    return;
  }
  uint64_t v = value_of(r, t);
  if (*used + ptx_type_bytes[t] > size)
    fail(r, "too many initial values");
  if (r->failed)
    return;
  memcpy(at + *used, &v, ptx_type_bytes[t] < 8 ? ptx_type_bytes[t] : 8);
  *used += ptx_type_bytes[t];
}

static void
place_global(Reader *r, Sym *s)
{
  SimModule *m = r->mod;
  void *p, **grown = realloc(m->globals, (m->nglobals + 1) * sizeof *grown);
  if (!grown) {
    no_memory(r);
    return;
  }
  m->globals = grown;
  if (sim_machine_alloc(m->machine, s->size, &p, r->err)) {
    r->failed = true;
    return;
  }
  m->globals[m->nglobals++] = p;
  memset(p, 0, s->size);
  s->addr = (uint64_t)(uintptr_t)p;
}

/* after .global, .const or .shared: [.align n] [.v4] .type name[n] [= value] ; */
static void
read_variable(Reader *r, Space space, bool external)
{
  uint32_t align = 0, lanes = 1;
  Type t = T_NONE;
  while (!r->failed && peek(r)->kind == TK_IDENT && peek(r)->s[0] == '.') {
    if (accept_word(r, ".align"))
      align = read_align(r);
    else if (accept_word(r, ".v2"))
      lanes = 2;
    else if (accept_word(r, ".v4"))
      lanes = 4;
    else if (accept_word(r, ".attribute") || accept_word(r, ".ptr")) {
      if (accept(r, '('))
        skip_past(r, ')');
    } else if ((t = type_of(peek(r))) != T_NONE && ptx_type_bytes[t])
      r->pos++;
    else
      fail(r, "unknown word '%.*s' in a variable", (int)peek(r)->n, peek(r)->s);
  }
  const Tok *name = peek(r);
  Sym *s = t ? module_symbol(r, name, SYM_VAR) : NULL;
  if (!s) {
    fail(r, "a variable needs a type and a name");
    return;
  }
  r->pos++;
  s->space = (uint8_t)space;
  s->align = align ? align : ptx_type_bytes[t] * lanes;
  s->size = (uint32_t)sized(r, (uint64_t)ptx_type_bytes[t] * lanes);
  s->dynamic = space == SP_SHARED && external;
  if (external && space != SP_SHARED)
    fail(r, "variable '%.*s' is defined elsewhere", (int)s->n, s->s);
  if (r->failed)
    return;
  size_t index = (size_t)(s - r->sym);
  if (space != SP_SHARED)
    place_global(r, s);
  if (!r->failed && accept(r, '=')) {
    uint64_t used = 0;
    if (space == SP_SHARED)
      fail(r, "a shared variable has no initial value");
    else
      read_values(r, t, (uint8_t *)(uintptr_t)r->sym[index].addr, r->sym[index].size, &used);
  }
  expect(r, ';');
}

static bool
param_word(Reader *r, FuncParam *p, Type *t)
{
  if (accept_word(r, ".align"))
    p->align = read_align(r);
  else if (accept_word(r, ".ptr") || accept_word(r, ".global") || accept_word(r, ".const") ||
           accept_word(r, ".shared") || accept_word(r, ".local") || accept_word(r, ".param") ||
           accept_word(r, ".generic") || accept_word(r, ".noalias"))
    return true;
  else if (accept_word(r, ".reg"))
    p->is_reg = true;
  else if ((*t = type_of(peek(r))) != T_NONE)
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
  p->s = name->s;
  p->n = name->n;
  p->type = (uint8_t)t;
  p->size = (uint32_t)sized(r, ptx_type_bytes[t]);
  p->align = p->align ? p->align : ptx_type_bytes[t];
  if (p->size > 1 << 16)
    fail(r, "a parameter is too large");
}

static void
read_params(Reader *r, FuncParam **list, size_t *n, size_t *cap)
{
  if (!accept(r, '(') || accept(r, ')'))
    return;
  do {
    if (!sim_vec_grow(list, cap, *n + 1, sizeof **list)) {
      no_memory(r);
      return;
    }
    read_param(r, &(*list)[(*n)++]);
  } while (!r->failed && accept(r, ','));
  expect(r, ')');
}

static void
read_dims(Reader *r, uint32_t dims[3])
{
  dims[0] = dims[1] = dims[2] = 1;
  for (int i = 0; i < 3; i++) {
    uint64_t v = expect_int(r);
    if (v == 0 || v > 1024)
      fail(r, "a block size is 1 to 1024");
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
      read_dims(r, f->reqntid);
    else if (accept_word(r, ".maxntid"))
      read_dims(r, f->maxntid);
    else if (accept_word(r, ".minnctapersm") || accept_word(r, ".maxnreg") || accept_word(r, ".maxnctapersm") ||
             accept_word(r, ".maxclusterrank"))
      expect_int(r);
    else if (accept_word(r, ".noreturn") || accept_word(r, ".explicitcluster") || accept_word(r, ".blocksareclusters"))
      continue;
    else if (accept_word(r, ".abi_preserve") || accept_word(r, ".abi_preserve_control"))
      expect_int(r);
    else if (accept_word(r, ".reqnctapercluster")) {
      uint32_t dims[3];
      read_dims(r, dims);
      if (!r->failed && dims[0] * dims[1] * dims[2] != 1)
        fail(r, "clusters of more than one block are outside this machine");
    } else if (accept_word(r, ".pragma"))
      skip_past(r, ';');
    else
      return;
    if (r->failed)
      return;
  }
}

static Func *
func_new(Reader *r)
{
  if (!sim_vec_grow(&r->func, &r->func_cap, r->nfunc + 1, sizeof *r->func)) {
    no_memory(r);
    return NULL;
  }
  Func *f = calloc(1, sizeof *f);
  if (f)
    r->func[r->nfunc++] = f;
  else
    no_memory(r);
  return f;
}

static void
read_function(Reader *r, bool entry)
{
  Func *f = func_new(r);
  if (!f)
    return;
  f->entry = entry;
  accept_word(r, ".noreturn");
  if (accept_word(r, ".attribute"))
    skip_past(r, ')');
  if (!entry)
    read_params(r, &f->ret, &f->nret, &f->ret_cap);
  const Tok *name = peek(r);
  f->line = name->line;
  Sym *old = name->kind == TK_IDENT ? find_symbol(r, name) : NULL;
  Sym *s = old && old->kind == SYM_FUNC && !old->func->has_body ? old : module_symbol(r, name, SYM_FUNC);
  if (!s)
    return;
  r->pos++;
  f->s = name->s;
  f->n = name->n;
  size_t index = (size_t)(s - r->sym);
  read_params(r, &f->param, &f->nparam, &f->param_cap);
  if (!r->failed)
    read_function_directives(r, f);
  if (r->failed)
    return;
  r->sym[index].func = f;
  if (accept(r, ';'))
    return;
  size_t open = r->pos;
  skip_braces(r);
  f->has_body = !r->failed;
  f->body = open + 1;
  f->body_end = r->pos - 1;
}

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
  else if (ptx_tok_is(t, ".section")) {
    advance(r);
    skip_braces(r);
  } else if (ptx_tok_is(t, ".pragma") || ptx_tok_is(t, ".alias"))
    skip_past(r, ';');
  else if (t->kind != TK_PUNCT || t->punct != ';')
    fail(r, "unknown directive '%.*s'", (int)(t->n > 40 ? 40 : t->n), t->s);
}

static Kernel *
kernel_new(const Func *f)
{
  Kernel *k = calloc(1, sizeof *k);
  if (!k)
    return NULL;
  k->name = strndup(f->s, f->n);
  k->nparams = (uint32_t)f->nparam;
  k->params = calloc(f->nparam + 1, sizeof *k->params);
  k->param_size = calloc(f->nparam + 1, sizeof *k->param_size);
  k->param_align = calloc(f->nparam + 1, sizeof *k->param_align);
  if (!k->name || !k->params || !k->param_size || !k->param_align) {
    ptx_kernel_free(k);
    return NULL;
  }
  uint32_t at = 0;
  for (size_t i = 0; i < f->nparam; i++) {
    const FuncParam *p = &f->param[i];
    at = (at + p->align - 1) & ~(p->align - 1);
    k->params[i] = (Param){p->size, p->align, at};
    k->param_size[i] = p->size;
    k->param_align[i] = p->align;
    at += p->size;
  }
  k->param_bytes = at;
  memcpy(k->reqntid, f->reqntid, sizeof k->reqntid);
  memcpy(k->maxntid, f->maxntid, sizeof k->maxntid);
  return k;
}

/* Instructions to a finished kernel: constants move behind the registers. */
static uint32_t
settle(uint32_t off, uint32_t reg_bytes)
{
  return off & 1u << 31 ? (off & ~(1u << 31)) + reg_bytes : off;
}

static void
settle_all(Kernel *k)
{
  uint32_t base = k->reg_bytes;
  for (uint32_t i = 0; i < k->ncode; i++) {
    Insn *in = &k->code[i];
    in->d = settle(in->d, base);
    in->a = settle(in->a, base);
    in->b = settle(in->b, base);
    in->c = settle(in->c, base);
    if (in->guard)
      in->guard = settle(in->guard - 1, base) + 1;
  }
  for (uint32_t i = 0; i < k->next; i++)
    k->ext[i] = settle(k->ext[i], base);
  for (uint32_t i = 0; i < k->nconsts; i++)
    k->consts[i].offset = settle(k->consts[i].offset, base);
  for (uint32_t i = 0; i < k->nspecials; i++)
    k->specials[i].offset = settle(k->specials[i].offset, base);
}

static void
place_dynamic_shared(Kernel *k)
{
  uint32_t align = k->shared_align ? k->shared_align : 1;
  uint32_t start = (k->static_shared + align - 1) & ~(align - 1);
  for (uint32_t i = 0; i < k->nconsts; i++)
    if (k->consts[i].dynamic)
      k->consts[i].value += start;
}

static void
decoder_free(Decoder *d)
{
  for (size_t i = 0; i < d->nsym; i++)
    free(d->sym[i].slots);
  free(d->sym);
  free(d->label);
  free(d->fixup);
  free(d->shared_at);
  free(d->const_next);
}

static void
decode_kernel(Reader *r, const Func *f)
{
  Decoder d = {.r = r, .k = kernel_new(f)};
  Kernel **grown = realloc(r->mod->kernels, (r->mod->nkernels + 1) * sizeof *grown);
  if (grown)
    r->mod->kernels = grown;
  if (!grown || !d.k) {
    ptx_kernel_free(d.k);
    no_memory(r);
    return;
  }
  r->mod->kernels[r->mod->nkernels++] = d.k;
  Kernel *k = d.k;
  k->reg_bytes = 64;
  decode_body(&d, f);
  k->code = d.code;
  k->ncode = (uint32_t)d.ncode;
  k->loc = d.loc;
  k->ext = d.ext;
  k->next = (uint32_t)d.next;
  k->brx = d.brx;
  k->nbrx = (uint32_t)d.nbrx;
  k->consts = d.consts;
  k->nconsts = (uint32_t)d.nconsts;
  k->specials = d.specials;
  k->nspecials = (uint32_t)d.nspecials;
  k->file_bytes = k->reg_bytes + d.const_bytes;
  decoder_free(&d);
  if (d.failed) {
    r->failed = true;
    return;
  }
  settle_all(k);
  place_dynamic_shared(k);
  if (!cfg_rank(k))
    no_memory(r);
}

/* A function that no kernel calls is read too, as a kernel that is thrown away, to find its errors. */
static void
decode_all(Reader *r)
{
  for (size_t i = 0; i < r->nfunc && !r->failed; i++) {
    if (!r->func[i]->has_body)
      continue;
    decode_kernel(r, r->func[i]);
    if (!r->func[i]->entry && r->mod->nkernels)
      ptx_kernel_free(r->mod->kernels[--r->mod->nkernels]);
  }
}

static void
reader_free(Reader *r)
{
  for (size_t i = 0; i < r->nfunc; i++) {
    free(r->func[i]->param);
    free(r->func[i]->ret);
    free(r->func[i]);
  }
  free(r->func);
  free(r->sym);
  free(r->tok);
}

int
ptx_module_read(SimModule *mod, const char *ptx, size_t len, SimError *err)
{
  Reader r = {.mod = mod, .err = err};
  if (ptx_scan(ptx, len, &r.tok, &r.ntok, err))
    return -1;
  if (!ptx_tok_is(peek(&r), ".version"))
    fail(&r, "PTX starts with .version");
  while (!r.failed && peek(&r)->kind != TK_END)
    read_top(&r);
  if (!r.failed)
    decode_all(&r);
  int rc = r.failed ? -1 : 0;
  reader_free(&r);
  return rc;
}

void
ptx_kernel_free(Kernel *k)
{
  if (!k)
    return;
  free(k->name);
  free(k->code);
  free(k->loc);
  free(k->rank);
  free(k->ext);
  free(k->brx);
  free(k->brx_rank);
  free(k->consts);
  free(k->specials);
  free(k->params);
  free(k->param_size);
  free(k->param_align);
  free(k);
}
