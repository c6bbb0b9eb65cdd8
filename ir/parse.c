/* parse.c - reads .tir text. Print's inverse: print.c writes it, this reads it back to the same bytes.
 *
 *   module  = "module" phase ["after" (pass ["." n] | "passes")] { alias | site | kernel }     alias  = "#"x "=" layout text (layout_parse)
 *   site    = "@"n "=" "function" loc                      a call that was inlined
 *   kernel  = "kernel" "@"name "(" params ")" ["warps" "=" n] ["shared" "=" n] ["cluster" "=" ints] ["grid" "=" string]
 *             ["persistent" "=" n | "off"] ["roles" "=" choice] ["pingpong" "=" choice] ["stores" "=" choice]
 *             ["min_blocks" "=" n] ["max_registers" "=" n] [loc]
 *             "{" {op} "}"
 *   op      = [values "="] name [operands] {attr "=" value} [":" types] [loc] [regions]
 *   regions = "{" [header] {op} "}" {[word] "{" [header] {op} "}"}      header = "^" "(" params ")" ":"
 *   loc     = "@" "file" ":" line ":" column ["in" "@"n]
 *
 * A statement ends where a token stands first on its line, except behind a comma. Which operands, attributes and
 * regions an op has comes from the tables; whether they make sense is the verifier's business.
 * Errors: one a statement at most. The rest of the line, with the regions that it opens, is skipped, and the values
 * that it would have defined are poisoned: their users are dropped without further words.
 */
#include "ir.h"
#include "lex.h"

enum { NESTING_MAX = 200, OPERANDS_MAX = 4096 };

typedef struct Symbol { const char *name; Value *value; bool poisoned; } Symbol;
typedef struct Symbols { Symbol *slots; u32 cap, len; } Symbols;
typedef struct Alias { const char *name; const Layout *layout; } Alias;   /* NULL: poisoned */

typedef struct Parser {
  Ctx *ctx;
  Lexer lexer;
  Token tok;
  u32 prev_end;              /* end of the token before tok */
  char prev_punct;
  Module *module;
  Func *func;
  Symbols symbols;
  VEC(Alias) aliases;
  VEC(u32) sites;            /* by number in the text, from 1 */
  u32 depth;
  bool failed;
} Parser;

/* A statement while it is read. */
typedef struct Statement {
  u32 start;
  VEC(Token) results;
  VEC(Value *) operands;
  VEC(Attr) attrs;
  VEC(const Type *) types;
  Token constant;            /* the value of a `const`, decoded when its type is known */
  Token name;
  OpCode code;
  Span loc;
  bool has_constant, has_loc, has_region, poisoned;
} Statement;

/* ---- tokens and errors ---- */

static void
advance(Parser *p)
{
  p->prev_end = p->tok.at.hi;
  p->prev_punct = p->tok.punct;
  p->tok = lex_next(&p->lexer);
}

static const char *
token_str(Parser *p, Token t)
{
  u32 len;
  const char *s = lex_text(&p->lexer, t, &len);
  return intern_n(p->ctx, s, len);
}

static bool PRINTF_LIKE(3, 4)
fail_at(Parser *p, Span at, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  diag(p->ctx, at, E_TIR_SYNTAX, arena_vprintf(p->ctx->scratch, fmt, ap));
  va_end(ap);
  p->failed = true;
  return false;
}

static bool
fail_expected(Parser *p, const char *what)
{
  if (p->tok.kind == TOK_END)
    return fail_at(p, p->tok.at, "expected %s, found the end of the text", what);
  u32 len;
  const char *s = lex_text(&p->lexer, p->tok, &len);
  if (p->tok.kind == TOK_BAD && s[0] == '"')
    return fail_at(p, p->tok.at, "expected %s, found a string without end", what);
  const char *where = p->tok.first ? " on a new line" : "";
  return fail_at(p, p->tok.at, "expected %s, found '%.*s'%s", what, (int)(len < 40 ? len : 40), s, where);
}

static bool
fail_name(Parser *p, Token t, const char *what, const char *suggestion)
{
  Diag *d = diag(p->ctx, t.at, E_TIR_NAME, what, token_str(p, t));
  if (suggestion)
    diag_hint(p->ctx, d, "did you mean '%s'?", suggestion);
  p->failed = true;
  return false;
}

static bool
at_punct(const Parser *p, char ch)
{
  return p->tok.kind == TOK_PUNCT && p->tok.punct == ch;
}

/* The character, on the same line. */
static bool
at_more(const Parser *p, char ch)
{
  return !p->tok.first && at_punct(p, ch);
}

static bool
take_punct(Parser *p, char ch)
{
  if (!at_punct(p, ch))
    return false;
  advance(p);
  return true;
}

static bool
expect(Parser *p, char ch)
{
  char what[] = {'\'', ch, '\'', 0};
  return take_punct(p, ch) || fail_expected(p, what);
}

static bool
at_word(Parser *p, const char *word)
{
  return p->tok.kind == TOK_NAME && token_str(p, p->tok) == intern(p->ctx, word);
}

static bool
expect_word(Parser *p, const char *word)
{
  if (!at_word(p, word))
    return fail_expected(p, arena_printf(p->ctx->scratch, "'%s'", word));
  advance(p);
  return true;
}

/* From behind an opening brace to behind its closing one. */
static void
skip_region(Parser *p)
{
  for (u32 depth = 1; depth && p->tok.kind != TOK_END; advance(p))
    depth += at_punct(p, '{') ? 1u : at_punct(p, '}') ? -1u : 0;
}

/* To the next line; a brace that ends this line opens regions, which are skipped as well. */
static void
skip_line(Parser *p)
{
  while (!p->tok.first)
    advance(p);
  while (p->prev_punct == '{' && p->tok.kind != TOK_END) {
    skip_region(p);
    while (!p->tok.first)
      advance(p);
  }
}

/* ---- numbers ---- */

static bool
parse_u32(Parser *p, u32 least, u32 most, u32 *out)
{
  u64 v;
  bool negative;
  if (p->tok.kind != TOK_NUMBER)
    return fail_expected(p, "an integer");
  if (!lex_integer(&p->lexer, p->tok, &v, &negative) || negative || v < least || v > most)
    return fail_at(p, p->tok.at, "expected an integer between %u and %u", least, most);
  *out = (u32)v;
  advance(p);
  return true;
}

static bool
parse_u64(Parser *p, u64 *out)
{
  bool negative;
  if (p->tok.kind != TOK_NUMBER)
    return fail_expected(p, "an integer");
  if (!lex_integer(&p->lexer, p->tok, out, &negative) || negative)
    return fail_at(p, p->tok.at, "expected an integer that is not negative");
  advance(p);
  return true;
}

static bool
parse_i64(Parser *p, i64 *out)
{
  u64 v;
  bool negative;
  if (p->tok.kind != TOK_NUMBER)
    return fail_expected(p, "an integer");
  if (!lex_integer(&p->lexer, p->tok, &v, &negative) || v > (u64)INT64_MAX + negative)
    return fail_at(p, p->tok.at, "'%s' is not an integer of 64 bits", token_str(p, p->tok));
  *out = (i64)(negative ? 0 - v : v);
  advance(p);
  return true;
}

/* ---- symbols ---- */

static Symbol *
symbol_slot(const Symbols *t, const char *name)
{
  u32 i = (u32)((uintptr_t)name * 0x9e3779b97f4a7c15ull >> 32) & (t->cap - 1);
  while (t->slots[i].name && t->slots[i].name != name)
    i = (i + 1) & (t->cap - 1);
  return &t->slots[i];
}

static Symbol *
symbol_find(Parser *p, const char *name)
{
  Symbol *s = p->symbols.cap ? symbol_slot(&p->symbols, name) : NULL;
  return s && s->name ? s : NULL;
}

static void
symbols_grow(Parser *p)
{
  Symbols old = p->symbols;
  p->symbols.cap = old.cap ? old.cap * 2 : 64;
  p->symbols.slots = NEW_ARRAY(p->ctx->scratch, Symbol, p->symbols.cap);
  for (u32 i = 0; i < old.cap; i++)
    if (old.slots[i].name)
      *symbol_slot(&p->symbols, old.slots[i].name) = old.slots[i];
}

/* The part of %4_acc that is worth keeping: acc; NULL if there is none. */
static const char *
name_hint(const char *name)
{
  const char *s = ++name;
  while (*s >= '0' && *s <= '9')
    s++;
  if (s == name)
    return name;
  return *s == '_' && s[1] ? s + 1 : *s && *s != '_' ? name : NULL;
}

/* Enters a value under its token; NULL poisons the name. */
static bool
define(Parser *p, Token t, Value *v)
{
  if (p->symbols.len * 4 >= p->symbols.cap * 3)
    symbols_grow(p);
  Symbol *s = symbol_slot(&p->symbols, token_str(p, t));
  if (s->name && !v)
    return true;
  if (s->name && !s->poisoned)
    return fail_at(p, t.at, "'%s' is defined twice", s->name);
  p->symbols.len += !s->name;
  *s = (Symbol){token_str(p, t), v, !v};
  const char *hint = name_hint(s->name);
  if (v && hint)
    v->name = intern(p->ctx, hint);
  return true;
}

static const char *
suggest_value(Parser *p, const char *name)
{
  VEC(const char *) names = {0};
  for (u32 i = 0; i < p->symbols.cap; i++)
    if (p->symbols.slots[i].name && !p->symbols.slots[i].poisoned && names.len < 1000)
      vec_push(p->ctx->scratch, &names, p->symbols.slots[i].name);
  return names.len ? diag_suggest(name, names.data, names.len) : NULL;
}

/* ---- types ---- */

static bool
parse_dtype(Parser *p, DType *out)
{
  if (p->tok.kind != TOK_NAME)
    return fail_expected(p, "a type");
  if (!dtype_find(token_str(p, p->tok), out)) {
    const char *names[DT_COUNT];
    for (int i = 0; i < DT_COUNT; i++)
      names[i] = dtype_info[i].name;
    return fail_name(p, p->tok, "type", diag_suggest(token_str(p, p->tok), names, DT_COUNT));
  }
  advance(p);
  return true;
}

static bool
parse_layout_name(Parser *p, const Layout **out)
{
  if (p->tok.kind != TOK_ALIAS)
    return fail_expected(p, "a layout's name");
  const char *name = token_str(p, p->tok);
  for (u32 i = 0; i < p->aliases.len; i++)
    if (p->aliases.data[i].name == name) {
      *out = p->aliases.data[i].layout;
      advance(p);
      return true;
    }
  return fail_name(p, p->tok, "layout", NULL);
}

typedef struct Shape { u32 extent[MAX_RANK]; int rank; const Layout *layout; } Shape;

/* Behind '[': extents and perhaps a layout. */
static bool
parse_shape(Parser *p, u32 start, Shape *s)
{
  *s = (Shape){.rank = 0};
  do {
    if (s->rank && p->tok.kind == TOK_ALIAS) {
      if (!parse_layout_name(p, &s->layout))
        return false;
      break;
    }
    if (s->rank == MAX_RANK)
      return fail_at(p, p->tok.at, "a tile has at most %d dimensions", MAX_RANK);
    if (!parse_u32(p, 1, TILE_MAX_NUMEL, &s->extent[s->rank++]))
      return false;
  } while (take_punct(p, ','));
  if (!expect(p, ']'))
    return false;
  const char *wrong = type_shape_error(p->ctx, s->rank, s->extent);
  return !wrong || fail_at(p, (Span){start, p->prev_end}, "%s", wrong);
}

/* What a buffer holds. */
static bool
parse_shared_dtype(Parser *p, DType *out)
{
  if (p->tok.kind != TOK_NAME || !dtype_find_opaque(token_str(p, p->tok), out))
    return parse_dtype(p, out);
  advance(p);
  return true;
}

/* Behind 'shared': <3 x f16[100, 64, #1] of [100, 128] pad 32 + 4 cut 12800>, count, "of", "pad" and "cut" as needed. */
static bool
parse_shared(Parser *p, u32 start, const Type **out)
{
  DType d;
  Shape s, whole;
  u32 count = 0, every = 0, pad = 0, cut = 0;
  if (!expect(p, '<'))
    return false;
  if (p->tok.kind == TOK_NUMBER && !(parse_u32(p, 1, 1024, &count) && expect_word(p, "x")))
    return false;
  if (!parse_shared_dtype(p, &d) || !expect(p, '[') || !parse_shape(p, start, &s))
    return false;
  whole = s;
  if (at_word(p, "of")) {
    advance(p);
    if (!expect(p, '[') || !parse_shape(p, start, &whole))
      return false;
  }
  if (at_word(p, "pad")) {
    advance(p);
    if (!parse_u32(p, 1, TILE_MAX_NUMEL, &every) || !expect(p, '+') || !parse_u32(p, 1, 4096, &pad))
      return false;
  }
  if (at_word(p, "cut")) {
    advance(p);
    if (!parse_u32(p, 1, TILE_MAX_NUMEL, &cut))
      return false;
  }
  if (!expect(p, '>'))
    return false;
  if (whole.rank != s.rank || (every && !is_pow2(every)))
    return fail_at(p, (Span){start, p->prev_end}, "%s", whole.rank != s.rank ? "a view has the rank of its buffer"
                                                                             : "padding stands after a power of two of elements");
  *out = type_shared_cut(p->ctx, type_shared(p->ctx, d, count, s.rank, s.extent, whole.extent, s.layout, every, pad), cut);
  return true;
}

/* Behind 'tensor': <f16, 2>, dtype and rank. */
static bool
parse_tensor(Parser *p, const Type **out)
{
  DType d;
  u32 rank;
  if (!expect(p, '<') || !parse_dtype(p, &d) || !expect(p, ',') || !parse_u32(p, 1, MAX_RANK, &rank) || !expect(p, '>'))
    return false;
  *out = type_tensor(p->ctx, d, (int)rank);
  return true;
}

static bool
parse_type(Parser *p, const Type **out)
{
  DType d;
  Shape s;
  u32 start = p->tok.at.lo;
  if (at_word(p, "shared")) {
    advance(p);
    return parse_shared(p, start, out);
  }
  if (at_word(p, "tensor")) {
    advance(p);
    return parse_tensor(p, out);
  }
  bool pending = at_word(p, "pending");
  if (pending)
    advance(p);
  bool paren = take_punct(p, '('), ptr = take_punct(p, '*');
  if (paren && !ptr)
    return fail_expected(p, "'*'");
  if (!parse_dtype(p, &d) || (paren && !expect(p, ')')))
    return false;
  const Type *elem = ptr ? type_ptr(p->ctx, d) : type_scalar(p->ctx, d);
  *out = elem;
  if (pending && (ptr || !at_more(p, '[')))
    return fail_at(p, (Span){start, p->prev_end}, "only a tile of numbers is under way");
  if (!at_more(p, '['))
    return true;
  if (ptr && !paren)
    return fail_at(p, p->tok.at, "a tile of pointers is written (*%s)[...]", dtype_info[d].name);
  advance(p);
  if (!parse_shape(p, start, &s))
    return false;
  *out = type_pending(p->ctx, type_tile(p->ctx, elem, s.rank, s.extent, s.layout), pending);
  return true;
}

/* ---- attributes ---- */

static bool
parse_float(Parser *p, double *out)
{
  u32 len;
  u64 bits;
  bool negative;
  const char *s = lex_text(&p->lexer, p->tok, &len);
  bool hex = len > 1 && s[0] == '0' && (s[1] | 32) == 'x';
  if (p->tok.kind != TOK_NUMBER)
    return fail_expected(p, "a number");
  if (hex && lex_integer(&p->lexer, p->tok, &bits, &negative))
    memcpy(out, &bits, sizeof bits);
  else if (hex || !number_parse(s, len, out))
    return fail_at(p, p->tok.at, "'%s' is not a number", token_str(p, p->tok));
  advance(p);
  return true;
}

static bool
parse_string(Parser *p, const char **out)
{
  if (p->tok.kind != TOK_STRING)
    return fail_expected(p, "a string");
  const char *s = lex_string(p->ctx->scratch, &p->lexer, p->tok);
  if (!s)
    return fail_at(p, p->tok.at, "malformed escape in a string");
  *out = intern(p->ctx, s);
  advance(p);
  return true;
}

static bool
parse_ints(Parser *p, Attr *a)
{
  VEC(i64) v = {0};
  i64 x;
  if (!expect(p, '['))
    return false;
  while (!at_punct(p, ']')) {
    if (!parse_i64(p, &x))
      return false;
    vec_push(p->ctx->perm, &v, x);
    if (!take_punct(p, ','))
      break;
  }
  a->ints.v = v.data;
  a->ints.n = v.len;
  return expect(p, ']');
}

static bool
parse_attr_value(Parser *p, Attr *a)
{
  switch ((AttrKind)attr_info[a->id].kind) {
  case AK_INT: return parse_i64(p, &a->i);
  case AK_FLOAT: return parse_float(p, &a->f);
  case AK_STR: return parse_string(p, &a->s);
  case AK_TYPE: return parse_type(p, &a->type);
  case AK_INTS: return parse_ints(p, a);
  case AK_LAYOUT: return parse_layout_name(p, &a->layout);
  }
  return false;
}

static bool
parse_attr_name(Parser *p, AttrId *out)
{
  const char *names[AT_COUNT];
  const char *name = token_str(p, p->tok);
  for (int i = 0; i < AT_COUNT; i++) {
    names[i] = attr_info[i].name;
    if (!strcmp(names[i], name)) {
      *out = (AttrId)i;
      advance(p);
      return true;
    }
  }
  return fail_name(p, p->tok, "attribute", diag_suggest(name, names, AT_COUNT));
}

static bool
parse_attr(Parser *p, Statement *s)
{
  Attr a = {0};
  Span at = p->tok.at;
  if (!parse_attr_name(p, &a.id) || !expect(p, '='))
    return false;
  for (u32 i = 0; i < s->attrs.len; i++)
    if (s->attrs.data[i].id == a.id)
      return fail_at(p, at, "attribute '%s' is given twice", attr_info[a.id].name);
  if (s->code == OP_CONST && a.id == AT_VALUE && !p->tok.first) {
    s->has_constant = true;
    s->constant = p->tok;
    advance(p);
  } else if (!parse_attr_value(p, &a)) {
    return false;
  }
  vec_push(p->ctx->scratch, &s->attrs, a);
  return true;
}

/* ---- constants: the literal's reading depends on the result type ---- */

static bool
fits(u64 magnitude, bool negative, bool hex, u32 bits, bool is_signed)
{
  u64 all = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
  if (hex || !is_signed)
    return magnitude <= all && (!negative || !magnitude);
  return magnitude <= (all >> 1) + negative;
}

static bool
constant_bool(Parser *p, Token t, u64 *bits)
{
  const char *s = token_str(p, t);
  *bits = !strcmp(s, "true");
  return *bits || !strcmp(s, "false") || fail_at(p, t.at, "expected true or false");
}

static bool
constant_bits(Parser *p, Token t, const Type *type, u64 *bits)
{
  u64 v;
  double d;
  u32 len, width = type_elem_bits(type);
  bool negative, is_float = type_is_float(type);
  const char *s = lex_text(&p->lexer, t, &len);
  bool hex = len > 1 && s[0] == '0' && (s[1] | 32) == 'x';
  if (type_is_bool(type))
    return constant_bool(p, t, bits);
  if (t.kind == TOK_NUMBER && is_float && !hex && number_parse(s, len, &d)) {
    *bits = float_to_bits(type->dt, d);
    return true;
  }
  bool is_signed = !type_is_ptr(type) && dtype_is_signed(type->dt);
  if (t.kind != TOK_NUMBER || (is_float && !hex) || !lex_integer(&p->lexer, t, &v, &negative) ||
      !fits(v, negative, hex, width, is_signed))
    return fail_at(p, t.at, "'%s' is not a value of %s", token_str(p, t),
                   type_str(p->ctx, type_elem(p->ctx, type)));
  *bits = (negative ? 0 - v : v) & (width < 64 ? (1ull << width) - 1 : UINT64_MAX);
  return true;
}

static bool
decode_constant(Parser *p, Statement *s)
{
  u64 bits = 0;
  if (!s->has_constant)
    return true;
  if (s->types.len != 1)
    return fail_at(p, s->name.at, "'const' needs a result type to read its value");
  if (!constant_bits(p, s->constant, s->types.data[0], &bits))
    return false;
  for (u32 i = 0; i < s->attrs.len; i++)
    if (s->attrs.data[i].id == AT_VALUE)
      s->attrs.data[i].i = (i64)bits;
  return true;
}

/* ---- statements ---- */

static bool
parse_results(Parser *p, Statement *s)
{
  if (p->tok.kind != TOK_VALUE)
    return true;
  do {
    if (p->tok.kind != TOK_VALUE)
      return fail_expected(p, "a value");
    vec_push(p->ctx->scratch, &s->results, p->tok);
    advance(p);
  } while (take_punct(p, ','));
  return expect(p, '=');
}

static bool
parse_op_name(Parser *p, Statement *s)
{
  if (p->tok.kind != TOK_NAME)
    return fail_expected(p, "an operation");
  s->name = p->tok;
  if (!op_find(token_str(p, p->tok), &s->code)) {
    const char *names[OP_COUNT];
    for (int i = 0; i < OP_COUNT; i++)
      names[i] = op_info((OpCode)i)->name;
    return fail_name(p, p->tok, "operation", diag_suggest(token_str(p, p->tok), names, OP_COUNT));
  }
  advance(p);
  return true;
}

static bool
parse_operand(Parser *p, Statement *s)
{
  Value *v = NULL;
  if (p->tok.kind == TOK_VALUE) {
    Symbol *sym = symbol_find(p, token_str(p, p->tok));
    if (!sym)
      return fail_name(p, p->tok, "value", suggest_value(p, token_str(p, p->tok)));
    v = sym->value;
    s->poisoned |= sym->poisoned;
  } else if (!at_word(p, "_")) {
    return fail_expected(p, "a value or '_'");
  }
  if (s->operands.len == OPERANDS_MAX)
    return fail_at(p, p->tok.at, "more than %d operands", OPERANDS_MAX);
  vec_push(p->ctx->scratch, &s->operands, v);
  advance(p);
  return true;
}

static bool
parse_operands(Parser *p, Statement *s)
{
  if (p->tok.first || (p->tok.kind != TOK_VALUE && !at_word(p, "_")))
    return true;
  do {
    if (!parse_operand(p, s))
      return false;
  } while (take_punct(p, ','));
  return true;
}

static bool
parse_types(Parser *p, Statement *s)
{
  const Type *t;
  if (!at_more(p, ':'))
    return true;
  advance(p);
  do {
    if (!parse_type(p, &t))
      return false;
    vec_push(p->ctx->scratch, &s->types, t);
  } while (take_punct(p, ','));
  return true;
}

/* in @2 */
static bool
parse_site_name(Parser *p, u32 *out)
{
  u32 n;
  advance(p);
  if (!expect(p, '@'))
    return false;
  Span at = p->tok.at;
  if (!parse_u32(p, 1, UINT32_MAX, &n))
    return false;
  if (n > p->sites.len)
    return fail_at(p, at, "there is no site @%u above", n);
  *out = p->sites.data[n - 1];
  return true;
}

static bool
parse_loc(Parser *p, Span *out, bool *has)
{
  const char *file;
  u32 line, col;
  *has = at_more(p, '@');
  if (!*has)
    return true;
  advance(p);
  if (!parse_string(p, &file) || !expect(p, ':') || !parse_u32(p, 0, UINT32_MAX, &line) || !expect(p, ':') ||
      !parse_u32(p, 0, UINT32_MAX, &col))
    return false;
  *out = *file ? source_foreign(p->ctx, file, line, col) : (Span){0};
  return p->tok.first || !at_word(p, "in") || parse_site_name(p, &out->site);
}

static bool
parse_head(Parser *p, Statement *s)
{
  if (!parse_results(p, s) || !parse_op_name(p, s) || !parse_operands(p, s))
    return false;
  while (!p->tok.first && p->tok.kind == TOK_NAME)
    if (!parse_attr(p, s))
      return false;
  if (!parse_types(p, s) || !parse_loc(p, &s->loc, &s->has_loc))
    return false;
  if (!s->has_loc)
    s->loc = (Span){s->start, p->prev_end};
  s->has_region = at_more(p, '{');
  if (s->has_region)
    advance(p);
  if (!p->tok.first)
    return fail_expected(p, s->has_region ? "the end of the line" : "an attribute or the end of the line");
  return decode_constant(p, s);
}

/* What the op table demands of the statement's parts. */
static bool
check_counts(Parser *p, const Statement *s)
{
  const OpInfo *info = op_info(s->code);
  u32 n = s->operands.len;
  if (n < info->min_operands || (info->max_operands != MANY && n > info->max_operands))
    return fail_at(p, s->name.at, "'%s' has operands (%s), here are %u", info->name, info->operands, n);
  if (info->nresults != MANY && s->results.len != info->nresults)
    return fail_at(p, s->name.at, "'%s' gives %u results, here are %u", info->name, info->nresults, s->results.len);
  if (s->types.len != s->results.len)
    return fail_at(p, s->name.at, "%u results need as many types, here are %u", s->results.len, s->types.len);
  if (s->has_region != (info->regions > 0))
    return fail_at(p, s->name.at, info->regions ? "'%s' needs a region" : "'%s' has no region", info->name);
  return true;
}

static Op *
build_op(Builder *b, const Statement *s)
{
  b->span = s->loc;
  Op *op = op_create(b, s->code, s->operands.len, s->operands.data, s->types.len, s->types.data, 0);
  for (u32 i = 0; i < s->attrs.len; i++)
    op_set_attr(op, s->attrs.data[i]);
  return op;
}

static void parse_block(Parser *p, Block *b);

/* Behind '{': divisible = n, same = n, apart = n, pitch = n, null, nonnull, nonneg, as many as there are, and '}'. */
static bool
parse_param_info(Parser *p, ParamInfo *info)
{
  do {
    bool null = at_word(p, "null"), divisible = at_word(p, "divisible"), same = at_word(p, "same");
    bool nonneg = at_word(p, "nonneg");
    if (null || nonneg || at_word(p, "nonnull")) {
      info->null = null ? PARAM_NULL : nonneg ? info->null : PARAM_NONNULL;
      info->nonneg |= nonneg;
      advance(p);
      continue;
    }
    bool pitch = at_word(p, "pitch");
    if (!divisible && !same && !pitch && !at_word(p, "apart"))
      return fail_expected(p, "'divisible', 'same', 'apart', 'pitch', 'null', 'nonnull' or 'nonneg'");
    advance(p);
    if (!expect(p, '=') || !(divisible ? parse_u32(p, 1, 1u << 30, &info->divisible)
                             : pitch ? parse_u32(p, 1, 1u << 30, &info->pitch)
                             : same ? parse_u32(p, 0, 1u << 30, &info->same) : parse_u64(p, &info->apart)))
      return false;
  } while (take_punct(p, ','));
  return expect(p, '}');
}

/* Behind '(': name: type, ... and ')'. Facts are asked for parameters of kernels only. */
static bool
parse_args(Parser *p, Block *b, bool params)
{
  const Type *t;
  if (take_punct(p, ')'))
    return true;
  do {
    Token name = p->tok;
    ParamInfo info = {.divisible = 1, .same = b->nargs};
    if (name.kind != TOK_VALUE)
      return fail_expected(p, "a value");
    advance(p);
    if (!expect(p, ':') || !parse_type(p, &t))
      return false;
    if (params && take_punct(p, '{') && !parse_param_info(p, &info))
      return false;
    Value *v = params ? func_add_param(p->func, t, NULL, 1) : block_add_arg(b, t, NULL);
    if (params)
      p->func->params[v->index] = info;
    if (!define(p, name, v))
      return false;
  } while (take_punct(p, ','));
  return expect(p, ')');
}

/* Behind '{'; reads the closing brace. False after an error in the region's header: the region is skipped. */
static bool
parse_region(Parser *p, Block *b)
{
  bool ok = !take_punct(p, '^') || (expect(p, '(') && parse_args(p, b, false) && expect(p, ':'));
  if (!ok) {
    skip_region(p);
    return false;
  }
  parse_block(p, b);
  return true;
}

/* As many as the op has; of any number as many as follow on the line. */
static bool
parse_regions(Parser *p, Op *op)
{
  u32 want = op_info(op->code)->regions;
  for (u32 r = 0; r == 0 || (want == MANY ? !p->tok.first : r < want); r++) {
    if (r) {
      if (p->tok.kind == TOK_NAME && !p->tok.first)
        advance(p);
      if (!expect(p, '{'))
        return false;
    }
    if (!parse_region(p, op_add_region(op)))
      return false;
  }
  return p->tok.first || fail_expected(p, "the end of the line");
}

static void
poison_results(Parser *p, const Statement *s)
{
  for (u32 i = 0; i < s->results.len; i++)
    define(p, s->results.data[i], NULL);
}

/* Goes on behind the statement; ok: it was read to its end. */
static void
drop_statement(Parser *p, const Statement *s, bool ok)
{
  poison_results(p, s);
  p->failed = true;
  if (p->tok.at.lo == s->start)
    advance(p);
  if (s->has_region)
    skip_region(p);
  if (!ok || s->has_region)
    skip_line(p);
}

static void
parse_statement(Parser *p, Builder *b)
{
  Statement s = {.start = p->tok.at.lo};
  bool ok = parse_head(p, &s) && check_counts(p, &s);
  if (ok && s.has_region && p->depth == NESTING_MAX)
    ok = fail_at(p, s.name.at, "regions are nested deeper than %d", NESTING_MAX);
  if (!ok || s.poisoned) {
    drop_statement(p, &s, ok);
    return;
  }
  Op *op = build_op(b, &s);
  for (u32 i = 0; i < s.results.len; i++)
    define(p, s.results.data[i], op->results[i]);
  p->depth++;
  if (s.has_region && !parse_regions(p, op))
    skip_line(p);
  p->depth--;
}

/* Ops up to and with the closing brace. */
static void
parse_block(Parser *p, Block *b)
{
  Builder at = builder_at_end(p->func, b);
  while (!at_punct(p, '}') && p->tok.kind != TOK_END)
    parse_statement(p, &at);
  if (!take_punct(p, '}'))
    fail_expected(p, "'}'");
}

/* ---- kernels and layouts ---- */

/* NAME = n, or nothing. */
static bool
parse_head_number(Parser *p, const char *name, u32 *out)
{
  if (p->tok.first || !at_word(p, name))
    return true;
  advance(p);
  return expect(p, '=') && parse_u32(p, 0, 1u << 30, out);
}

/* NAME = on, NAME = off, or nothing. */
static bool
parse_choice(Parser *p, const char *name, KernelChoice *out)
{
  if (p->tok.first || !at_word(p, name))
    return true;
  advance(p);
  if (!expect(p, '='))
    return false;
  if (!at_word(p, "on") && !at_word(p, "off")) {
    fail_expected(p, "on or off");
    return false;
  }
  *out = at_word(p, "on") ? CHOICE_ON : CHOICE_OFF;
  advance(p);
  return true;
}

/* persistent = 2, persistent = off, or nothing. */
static bool
parse_persistent(Parser *p, Func *f)
{
  if (p->tok.first || !at_word(p, "persistent"))
    return true;
  advance(p);
  if (!expect(p, '='))
    return false;
  f->leaves = at_word(p, "off");
  if (f->leaves)
    advance(p);
  return f->leaves || parse_u32(p, 0, 1u << 30, &f->persistent);
}

/* cluster = [2, 1], or nothing. */
static bool
parse_cluster(Parser *p)
{
  Attr a;
  if (p->tok.first || !at_word(p, "cluster"))
    return true;
  u32 start = p->tok.at.lo;
  advance(p);
  if (!expect(p, '=') || !parse_ints(p, &a))
    return false;
  const char *wrong = cluster_error(p->ctx->scratch, a.ints.n, a.ints.v);
  if (wrong)
    return fail_at(p, (Span){start, p->prev_end}, "%s", wrong);
  for (u32 i = 0; i < a.ints.n; i++)
    p->func->cluster[i] = (u32)a.ints.v[i];
  return true;
}

/* grid = "$2,64,cdiv", or nothing. */
static bool
parse_grid(Parser *p)
{
  if (p->tok.first || !at_word(p, "grid"))
    return true;
  advance(p);
  return expect(p, '=') && parse_string(p, &p->func->grid);
}

static bool
parse_kernel_head(Parser *p)
{
  Func *f = p->func;
  bool has_loc;
  Span loc;
  if (!expect(p, '(') || !parse_args(p, f->body, true))
    return false;
  if (!parse_head_number(p, "warps", &f->warps) || !parse_head_number(p, "shared", &f->shared_bytes) || !parse_cluster(p) ||
      !parse_grid(p) || !parse_persistent(p, f) || !parse_choice(p, "roles", &f->roles) ||
      !parse_choice(p, "pingpong", &f->pingpong) || !parse_choice(p, "stores", &f->box_stores) ||
      !parse_head_number(p, "min_blocks", &f->min_blocks) ||
      !parse_head_number(p, "max_registers", &f->max_registers) ||
      !parse_loc(p, &loc, &has_loc))
    return false;
  if (has_loc)
    f->span = loc;
  return expect(p, '{');
}

static void
parse_kernel(Parser *p)
{
  u32 start = p->tok.at.lo;
  advance(p);
  if (!expect(p, '@') || p->tok.kind != TOK_NAME) {
    if (p->prev_punct == '@')
      fail_expected(p, "the kernel's name");
    skip_line(p);
    return;
  }
  p->func = func_new(p->module, token_str(p, p->tok), (Span){start, p->tok.at.hi});
  p->symbols = (Symbols){0};
  p->depth = 0;
  advance(p);
  if (parse_kernel_head(p))
    parse_block(p, p->func->body);
  else
    skip_line(p);
}

/* The text behind '=' belongs to layout_parse; the tokens go on behind what it read. */
static void
parse_alias(Parser *p)
{
  const char *name = token_str(p, p->tok), *error = NULL;
  u32 at = p->tok.at.lo;
  size_t used = 0, wrong = 0;
  advance(p);
  if (!at_punct(p, '=')) {
    fail_expected(p, "'='");
    skip_line(p);
    return;
  }
  for (u32 i = 0; i < p->aliases.len; i++)
    if (p->aliases.data[i].name == name)
      fail_at(p, (Span){at, at + (u32)strlen(name)}, "'%s' is defined twice", name);
  Lexer *l = &p->lexer;
  while (l->pos < l->len && (l->text[l->pos] == ' ' || l->text[l->pos] == '\t'))
    l->pos++;
  const Layout *layout = layout_parse(p->ctx, l->text + l->pos, l->len - l->pos, &used, &error, &wrong);
  Alias a = {name, layout};
  vec_push(p->ctx->scratch, &p->aliases, a);
  if (layout) {
    l->pos += (u32)used;
  } else {
    u32 where = l->base + l->pos + (u32)wrong;
    fail_at(p, (Span){where, where + 1}, "%s", error);
  }
  advance(p);
  if (!p->tok.first && layout)
    fail_expected(p, "the end of the line");
  while (!p->tok.first)
    advance(p);
}

/* @1 = "function" @"file":line:column: numbers count from 1. */
static bool
parse_site(Parser *p)
{
  const char *function;
  Span call = {0};
  u32 n;
  bool has_loc = false;
  advance(p);
  if (!parse_u32(p, p->sites.len + 1, p->sites.len + 1, &n) || !expect(p, '=') || !parse_string(p, &function) ||
      !parse_loc(p, &call, &has_loc))
    return false;
  if (!has_loc)
    return fail_expected(p, "the place of the call");
  vec_push(p->ctx->scratch, &p->sites, site_add(p->ctx, call, function));
  return p->tok.first || fail_expected(p, "the end of the line");
}

/* after dce.2: passes/run.c knows what follows. */
static bool
parse_after(Parser *p)
{
  Module *m = p->module;
  u32 start, n;
  if (p->tok.first || !at_word(p, "after"))
    return true;
  advance(p);
  start = p->tok.at.lo;
  m->by_hand = p->tok.kind == TOK_STRING;
  if (m->by_hand) {
    if (!parse_string(p, &m->after))
      return false;
  } else {
    if (p->tok.first || p->tok.kind != TOK_NAME)
      return fail_expected(p, "a pass, or a list of passes as a string");
    m->after = token_str(p, p->tok);
    advance(p);
    if (at_more(p, '.')) {
      advance(p);
      if (!parse_u32(p, 1, 1000, &n))
        return false;
      m->after = intern(p->ctx, arena_printf(p->ctx->scratch, "%s.%u", m->after, n));
    }
  }
  m->after_span = (Span){start, p->prev_end};
  return true;
}

static bool
parse_phase(Parser *p)
{
  static const char *const phases[] = {"tile", "placed", "sched"};
  if (!expect_word(p, "module"))
    return false;
  for (u32 i = 0; i < COUNT(phases); i++)
    if (at_word(p, phases[i])) {
      p->module->phase = (Phase)i;
      advance(p);
      return parse_after(p);
    }
  return fail_expected(p, "'tile', 'placed' or 'sched'");
}

static void
parse_item(Parser *p)
{
  if (p->tok.kind == TOK_ALIAS) {
    parse_alias(p);
  } else if (at_punct(p, '@')) {
    if (!parse_site(p))
      skip_line(p);
  } else if (at_word(p, "kernel")) {
    parse_kernel(p);
  } else {
    fail_expected(p, "a kernel, a layout or a call site");
    skip_line(p);
    while (p->tok.kind != TOK_END && p->tok.kind != TOK_ALIAS && !at_word(p, "kernel"))
      advance(p);
  }
}

/* Reads .tir text; NULL after reporting what is wrong with it. */
Module *
ir_parse(Ctx *c, u32 base)
{
  Parser p = {.ctx = c, .lexer = {source_text(c, base), base, source_length(c, base), 0}};
  p.module = module_new(c);
  p.tok = lex_next(&p.lexer);
  if (!parse_phase(&p))
    return NULL;
  if (!p.tok.first)
    fail_expected(&p, "the end of the line");
  while (p.tok.kind != TOK_END)
    parse_item(&p);
  return p.failed ? NULL : p.module;
}
