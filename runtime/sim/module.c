/* module.c - a PTX text as a module: its variables get memory and values, and decode.c reads each body once. */
#include "decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NEST = 16 };

/* ---- initial values ---- */

/* The address of a variable or function: NAME, generic(NAME); + n. */
static uint64_t
address_of(Reader *r)
{
  bool generic = reader_accept_word(r, "generic");
  if (generic)
    reader_expect(r, '(');
  const Tok *t = reader_next(r);
  if (generic)
    reader_expect(r, ')');
  const Sym *s = t->kind == TK_IDENT ? names_find(&r->names, t->s, t->n) : NULL;
  if (s && s->kind == SYM_FUNC && !s->func->entry) {
    r->mod->taken[s->func->index] = true;
    return FUNCTION_WINDOW + 16ull * s->func->index;
  }
  if (!s || s->kind != SYM_VAR || s->space == SP_SHARED)
    reader_fail(r, "an initial value is not a constant");
  uint64_t v = r->failed ? 0 : s->addr;
  while (reader_accept(r, '+'))
    v += reader_number(r);
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
  reader_expect(r, ')');
  return mask ? (v & mask) >> __builtin_ctzll(mask) : 0;
}

static uint64_t
value_of(Reader *r, Type t)
{
  bool minus = reader_accept(r, '-');
  const Tok *k = reader_peek(r);
  if (k->kind != TK_INT && k->kind != TK_FLOAT)
    return address_of(r);
  r->pos++;
  if (k->kind == TK_FLOAT)
    return float_bits(k, minus, t);
  if (reader_accept(r, '('))
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
    reader_fail(r, "too many initial values");
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
    if (reader_accept(r, '{')) {
      if (++depth > MAX_NEST)
        reader_fail(r, "initial values are nested too deeply");
      continue;
    }
    if (!depth || reader_peek(r)->kind != TK_PUNCT || reader_peek(r)->punct != '}')
      put_value(r, v);
    while (depth && reader_accept(r, '}'))
      depth--;
    if (depth && !reader_accept(r, ','))
      reader_fail(r, "expected ',' or '}'");
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
    reader_no_memory(r);
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
    reader_expect(r, ';');
  }
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
    reader_no_memory(r);
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
    reader_no_memory(r);
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
    reader_no_memory(r);
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
decode_module(Reader *r)
{
  r->mod->taken = calloc(r->nfunc + 1, sizeof *r->mod->taken);
  if (!r->mod->taken)
    reader_no_memory(r);
  if (!r->failed)
    place_globals(r);
  if (!r->failed)
    fill_globals(r);
  if (!r->failed)
    decode_all(r);
}

int
ptx_module_read(SimModule *mod, SimError *err)
{
  Reader r = {.mod = mod, .err = err};
  reader_read(&r, mod->text, mod->len);
  if (!r.failed)
    decode_module(&r);
  int rc = r.failed ? -1 : 0;
  reader_free(&r);
  return rc;
}
