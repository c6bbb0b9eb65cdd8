/* reader.c - the outer level of a PTX text: directives, variables, function headers.
 * Bodies and initial values are kept as ranges of tokens, until all names are known. */
#include "decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GLOBAL_BYTES = 1 << 30, MAX_FILES = 1 << 16, MAX_ALIGN = 1 << 16, MAX_FUNCTIONS = 1 << 24, MAX_PARAM_BYTES = 1 << 20 };

void
reader_fail(Reader *r, const char *fmt, ...)
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

void
reader_no_memory(Reader *r)
{
  if (!r->failed)
    sim_error_set(r->err, SIM_E_MEMORY, "out of memory reading PTX");
  r->failed = true;
}

const Tok *
reader_peek(const Reader *r)
{
  return &r->tok[r->pos];
}

const Tok *
reader_next(Reader *r)
{
  const Tok *t = &r->tok[r->pos];
  if (t->kind != TK_END)
    r->pos++;
  return t;
}

bool
reader_accept(Reader *r, char punct)
{
  if (reader_peek(r)->kind != TK_PUNCT || reader_peek(r)->punct != punct)
    return false;
  r->pos++;
  return true;
}

bool
reader_accept_word(Reader *r, const char *word)
{
  if (!ptx_tok_is(reader_peek(r), word))
    return false;
  r->pos++;
  return true;
}

void
reader_expect(Reader *r, char punct)
{
  if (!reader_accept(r, punct))
    reader_fail(r, "expected '%c'", punct);
}

uint64_t
reader_number(Reader *r)
{
  if (reader_peek(r)->kind != TK_INT) {
    reader_fail(r, "expected a number");
    return 0;
  }
  return reader_next(r)->v;
}

static void
skip_past(Reader *r, char punct)
{
  while (reader_peek(r)->kind != TK_END)
    if (reader_accept(r, punct))
      return;
    else
      r->pos++;
  reader_fail(r, "expected '%c'", punct);
}

static void
skip_braces(Reader *r)
{
  reader_expect(r, '{');
  for (uint32_t depth = 1; depth && !r->failed;) {
    const Tok *t = reader_next(r);
    if (t->kind == TK_END)
      reader_fail(r, "a '{' has no '}'");
    else if (t->kind == TK_PUNCT)
      depth += t->punct == '{' ? 1u : t->punct == '}' ? -1u : 0u;
  }
}

/* .file n "name" [, time, size] */
static void
read_file(Reader *r)
{
  SimModule *m = r->mod;
  uint64_t n = reader_number(r);
  const Tok *t = reader_peek(r);
  if (r->failed || t->kind != TK_STRING || n >= MAX_FILES) {
    reader_fail(r, "expected a small number and a name");
    return;
  }
  r->pos++;
  size_t cap = m->nfiles;
  if (!sim_vec_grow(&m->files, &cap, n + 1, sizeof *m->files)) {
    reader_no_memory(r);
    return;
  }
  memset(m->files + m->nfiles, 0, (cap - m->nfiles) * sizeof *m->files);
  m->nfiles = (uint32_t)cap;
  free(m->files[n]);
  m->files[n] = strndup(t->s, t->n);
  while (reader_accept(r, ','))
    reader_number(r);
}

static uint64_t
sized(Reader *r, uint64_t elem)
{
  uint64_t size = elem;
  while (reader_accept(r, '[')) {
    uint64_t n = 0;
    if (!reader_accept(r, ']')) {
      n = reader_number(r);
      reader_expect(r, ']');
    }
    if (n > MAX_GLOBAL_BYTES || size * n > MAX_GLOBAL_BYTES)
      reader_fail(r, "a variable is too large");
    size = r->failed ? 0 : size * n;
  }
  return size;
}

static uint32_t
read_align(Reader *r)
{
  uint64_t n = reader_number(r);
  if (n == 0 || n > MAX_ALIGN || (n & (n - 1)))
    reader_fail(r, "an alignment is a small power of two");
  return r->failed ? 1 : (uint32_t)n;
}

static Sym *
module_symbol(Reader *r, const Tok *name, SymKind kind)
{
  if (name->kind != TK_IDENT) {
    reader_fail(r, "expected a name");
    return NULL;
  }
  Sym *s = names_add(&r->names, name->s, name->n, kind);
  if (!s)
    reader_no_memory(r);
  return s;
}

/* ---- variables ---- */

typedef struct VarWords { uint32_t align, lanes; Type type; } VarWords;

/* [.align n] [.v4] .type */
static VarWords
variable_words(Reader *r)
{
  VarWords w = {0, 1, T_NONE};
  while (!r->failed && reader_peek(r)->kind == TK_IDENT && reader_peek(r)->s[0] == '.') {
    if (reader_accept_word(r, ".align"))
      w.align = read_align(r);
    else if (reader_accept_word(r, ".v2"))
      w.lanes = 2;
    else if (reader_accept_word(r, ".v4"))
      w.lanes = 4;
    else if (reader_accept_word(r, ".attribute") || reader_accept_word(r, ".ptr")) {
      if (reader_accept(r, '('))
        skip_past(r, ')');
    } else if ((w.type = ptx_type_named(reader_peek(r))) != T_NONE && ptx_type_bytes[w.type])
      r->pos++;
    else
      reader_fail(r, "unknown word '%.*s' in a variable", (int)reader_peek(r)->n, reader_peek(r)->s);
  }
  return w;
}

static void
add_shared(Reader *r, Sym *s, bool dynamic)
{
  SimModule *m = r->mod;
  if (!sim_vec_grow(&m->shared, &m->shared_cap, m->nshared + 1, sizeof *m->shared)) {
    reader_no_memory(r);
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
    reader_no_memory(r);
    return;
  }
  r->global_bytes += s->size;
  if (r->global_bytes > MAX_GLOBAL_BYTES)
    reader_fail(r, "the module's variables take more than %d MB", MAX_GLOBAL_BYTES >> 20);
  r->value[m->nglobal] = (InitialValue){(size_t)(s - r->names.sym), value, type};
  m->global[m->nglobal++] = (GlobalVar){{s->s, s->n}, 0, s->size};
  s->var = (uint32_t)VAR_GLOBAL << VAR_BITS | (uint32_t)m->nglobal;
}

/* after .global, .const or .shared: [.align n] [.v4] .type name[n] [= value] ; */
static void
read_variable(Reader *r, Space space, bool external)
{
  VarWords w = variable_words(r);
  const Tok *name = reader_next(r);
  uint64_t size = w.type ? sized(r, (uint64_t)ptx_type_bytes[w.type] * w.lanes) : 0;
  if (!w.type || r->failed) {
    reader_fail(r, "a variable needs a type and a name");
    return;
  }
  Sym *s = module_symbol(r, name, SYM_VAR);
  if (!s)
    return;
  s->space = (uint8_t)space;
  s->align = w.align ? w.align : ptx_type_bytes[w.type] * w.lanes;
  s->size = (uint32_t)size;
  if (external && space != SP_SHARED)
    reader_fail(r, "variable '%.*s' is defined elsewhere", (int)s->n, s->s);
  size_t value = reader_accept(r, '=') ? r->pos : 0;
  if (space != SP_SHARED)
    add_global(r, s, w.type, value);
  else if (value)
    reader_fail(r, "a shared variable has no initial value");
  else
    add_shared(r, s, external);
  if (value)
    skip_past(r, ';');
  else
    reader_expect(r, ';');
}

/* ---- functions ---- */

static bool
param_word(Reader *r, FuncParam *p, Type *t)
{
  if (reader_accept_word(r, ".align"))
    p->align = read_align(r);
  else if (reader_accept_word(r, ".ptr"))
    p->pointer = true;
  else if ( reader_accept_word(r, ".global") || reader_accept_word(r, ".const") ||
           reader_accept_word(r, ".shared") || reader_accept_word(r, ".local") || reader_accept_word(r, ".param") ||
           reader_accept_word(r, ".generic") || reader_accept_word(r, ".noalias"))
    return true;
  else if (reader_accept_word(r, ".reg"))
    p->is_reg = true;
  else if ((*t = ptx_type_named(reader_peek(r))) != T_NONE)
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
  while (!r->failed && reader_peek(r)->kind == TK_IDENT && reader_peek(r)->s[0] == '.') {
    Type seen = T_NONE;
    uint32_t own = p->align;
    if (!param_word(r, p, &seen)) {
      reader_fail(r, "unknown word '%.*s' in a parameter", (int)reader_peek(r)->n, reader_peek(r)->s);
      return;
    }
    if (t)
      p->align = own;
    t = seen ? seen : t;
  }
  const Tok *name = reader_next(r);
  if (name->kind != TK_IDENT || !t || (!ptx_type_bytes[t] && !p->is_reg)) {
    reader_fail(r, "a parameter needs a type and a name");
    return;
  }
  p->name = (Name){name->s, name->n};
  p->type = (uint8_t)t;
  p->array = reader_peek(r)->kind == TK_PUNCT && reader_peek(r)->punct == '[';
  p->size = (uint32_t)sized(r, ptx_type_bytes[t]);
  p->align = p->align ? p->align : ptx_type_bytes[t];
  if (p->size > 1 << 16)
    reader_fail(r, "a parameter is too large");
}

static void
read_params(Reader *r, FuncParam **list, size_t *n, size_t *cap)
{
  uint64_t bytes = 0;
  if (!reader_accept(r, '(') || reader_accept(r, ')'))
    return;
  do {
    if (!sim_vec_grow(list, cap, *n + 1, sizeof **list)) {
      reader_no_memory(r);
      return;
    }
    read_param(r, &(*list)[(*n)++]);
    bytes += (*list)[*n - 1].size + (uint64_t)(*list)[*n - 1].align;
    if (bytes > MAX_PARAM_BYTES)
      reader_fail(r, "the parameters are too large");
  } while (!r->failed && reader_accept(r, ','));
  reader_expect(r, ')');
}

/* most: of each, and what they are sizes of */
static void
read_dims(Reader *r, uint32_t dims[3], uint32_t most, const char *of)
{
  dims[0] = dims[1] = dims[2] = 1;
  for (int i = 0; i < 3; i++) {
    uint64_t v = reader_number(r);
    if (v == 0 || v > most)
      reader_fail(r, "a %s size is 1 to %u", of, most);
    dims[i] = (uint32_t)v;
    if (!reader_accept(r, ','))
      return;
  }
}

static void
read_function_directives(Reader *r, Func *f)
{
  for (;;) {
    if (reader_accept_word(r, ".reqntid"))
      read_dims(r, f->reqntid, 1024, "block");
    else if (reader_accept_word(r, ".maxntid"))
      read_dims(r, f->maxntid, 1024, "block");
    else if (reader_accept_word(r, ".minnctapersm"))
      f->minctas = (uint32_t)reader_number(r);
    else if (reader_accept_word(r, ".maxnreg"))
      f->maxnreg = (uint32_t)reader_number(r);
    else if (reader_accept_word(r, ".maxclusterrank"))
      f->maxcluster = (uint32_t)reader_number(r);
    else if (reader_accept_word(r, ".maxnctapersm"))
      reader_number(r);
    else if (reader_accept_word(r, ".explicitcluster"))
      f->explicit_cluster = true;
    else if (reader_accept_word(r, ".blocksareclusters"))
      f->blocks_are_clusters = true;
    else if (reader_accept_word(r, ".noreturn"))
      continue;
    else if (reader_accept_word(r, ".abi_preserve") || reader_accept_word(r, ".abi_preserve_control"))
      reader_number(r);
    else if (reader_accept_word(r, ".reqnctapercluster"))
      read_dims(r, f->reqcluster, MAX_CLUSTER, "cluster");
    else if (reader_accept_word(r, ".pragma"))
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
    reader_no_memory(r);
    return NULL;
  }
  Func *f = calloc(1, sizeof *f);
  if (!f) {
    reader_no_memory(r);
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
      reader_fail(r, "function '%.*s' is there twice", (int)name->n, name->s);
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
  reader_accept_word(r, ".noreturn");
  if (reader_accept_word(r, ".attribute"))
    skip_past(r, ')');
  if (!entry)
    read_params(r, &ret.p, &ret.n, &ret.cap);
  const Tok *name = reader_next(r);
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
  if (r->failed || reader_accept(r, ';'))
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
  reader_accept_word(r, ".callprototype");
  read_params(r, &f->ret, &f->nret, &f->ret_cap);
  reader_next(r);
  read_params(r, &f->param, &f->nparam, &f->param_cap);
  read_function_directives(r, f);
  reader_expect(r, ';');
  *pos = r->pos;
  return r->failed ? NULL : f;
}

/* ---- .debug_str ---- */

static void
add_bytes(Reader *r, size_t *cap)
{
  SimModule *m = r->mod;
  do {
    uint64_t v = reader_number(r);
    if (!sim_vec_grow(&m->strings, cap, m->nstrings + 1, 1))
      reader_no_memory(r);
    if (r->failed)
      return;
    m->strings[m->nstrings++] = (char)v;
  } while (reader_accept(r, ','));
}

/* { LABEL: .b8 1, 2, 3 ... }: names of functions, for .loc. Other sections are passed over. */
static void
read_section(Reader *r)
{
  size_t cap = r->mod->nstrings;
  if (!ptx_tok_is(reader_next(r), ".debug_str") || r->mod->strings) {
    skip_braces(r);
    return;
  }
  reader_expect(r, '{');
  while (!r->failed && !reader_accept(r, '}')) {
    const Tok *t = reader_next(r);
    if (ptx_tok_is(t, ".b8")) {
      add_bytes(r, &cap);
      continue;
    }
    reader_expect(r, ':');
    if (t->kind != TK_IDENT) {
      reader_fail(r, "expected a label");
      return;
    }
    Sym *s = names_add(&r->strings, t->s, t->n, SYM_LABEL);
    if (s)
      s->addr = r->mod->nstrings;
    else
      reader_no_memory(r);
  }
}

/* ---- the outer level ---- */

static void
read_header(Reader *r, const Tok *t)
{
  if (ptx_tok_is(t, ".version")) {
    if (reader_next(r)->kind != TK_FLOAT)
      reader_fail(r, "expected a version");
  } else if (ptx_tok_is(t, ".target")) {
    do
      if (reader_next(r)->kind != TK_IDENT)
        reader_fail(r, "expected a target");
    while (!r->failed && reader_accept(r, ','));
  } else if (reader_number(r) != 64)
    reader_fail(r, "addresses must have 64 bits");
}

static void
read_top(Reader *r)
{
  bool external = false;
  while (reader_accept_word(r, ".visible") || reader_accept_word(r, ".weak") || reader_accept_word(r, ".common") ||
         (ptx_tok_is(reader_peek(r), ".extern") && (external = true) && reader_accept_word(r, ".extern")))
    ;
  const Tok *t = reader_next(r);
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
    reader_fail(r, "unknown directive '%.*s'", (int)(t->n > 40 ? 40 : t->n), t->s);
}

/* ---- all of it ---- */

void
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

void
reader_read(Reader *r, const char *text, size_t len)
{
  Tokens t = {0};
  if (ptx_scan(text, len, &t, r->err)) {
    r->failed = true;
    return;
  }
  r->tok = t.tok;
  r->ntok = t.n;
  r->note = t.note;
  r->nnotes = t.nnotes;
  if (!ptx_tok_is(reader_peek(r), ".version"))
    reader_fail(r, "PTX starts with .version");
  while (!r->failed && reader_peek(r)->kind != TK_END)
    read_top(r);
}
