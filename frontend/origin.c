/* origin.c - where things in a message came from: through which calls a place was reached, where a value got its extents,
 * and what set the constants that its expression names. */
#include "sema.h"
#include "fp.h"

enum { NAME_WORDS_MAX = 90, ORIGIN_STEPS_MAX = 64, RESHAPES_MAX = 6, CONSTANTS_MAX = 4, CONSTANTS_DEPTH_MAX = 3 };

/* ---- calls ---- */

static bool
is_define(Lower *L, Span at)
{
  return source_locate(L->c, at.lo).kind == SOURCE_DEFINE;
}

/* Is it in no text of the program's own: in the library, a define, or nowhere? */
static bool
in_library(Lower *L, Span at)
{
  SourceLoc l = source_locate(L->c, at.lo);
  return !l.file || l.kind != SOURCE_PROGRAM;
}

static bool
inside(Span in, Span out)
{
  return in.lo >= out.lo && in.hi <= out.hi;
}

static const char *
setting_str(Lower *L, Val v)
{
  switch (v.kind) {
  case V_CONST: return const_str(L, v.k);
  case V_TYPE: return type_str(L->c, v.type);
  case V_LAYOUT: return v.layout->text;
  case V_FN: return v.fn.decl->name;
  case V_BUILTIN: return v.builtin->name;
  case V_STR: return arena_printf(L->a, "\"%s\"", v.str);
  default: return val_str(L, v);
  }
}

/* One list of an instance's name: compile-time parameters in <>, untyped ones in (). */
static void
put_params(Lower *L, const Frame *f, bool settings, Buf *b)
{
  const Node *params = kid(f->decl, 0);
  const char *before = settings ? "<" : "(";
  for (u32 i = 0; i < params->nkids; i++) {
    const Node *param = params->kids[i];
    Val v = f->bound[i];
    if ((param->kind != N_PARAM) != settings || v.kind == V_VOID || v.kind == V_POISON || (!settings && kid(param, 0)))
      continue;
    buf_puts(b, before);
    if (!settings)
      buf_printf(b, "%s: ", param->name);
    buf_puts(b, setting_str(L, v));
    before = ", ";
  }
  if (*before == ',')
    buf_puts(b, settings ? ">" : ")");
}

/* "softmax<f16, 781>": a function with what it was instantiated for. */
static const char *
instance_name(Lower *L, const Frame *f)
{
  Buf b = {.arena = L->a};
  buf_puts(&b, f->decl->name);
  if (f->bound && f->decl->kind == N_FN && *f->decl->name != '(') {
    put_params(L, f, true, &b);
    put_params(L, f, false, &b);
  }
  if (b.len <= NAME_WORDS_MAX)
    return buf_str(&b);
  u32 n = NAME_WORDS_MAX;
  while (n && ((u8)b.data[n] & 0xc0) == 0x80)
    n--;
  return arena_printf(L->a, "%.*s...", (int)n, b.data);
}

/* The innermost call that is not written in the library; NULL if that is where the place is, or there is none. */
static const Frame *
user_call(Lower *L, Span at)
{
  if (!in_library(L, at))
    return NULL;
  for (const Frame *f = L->frame; f && f->up; f = f->up)
    if (f->call.hi && f->decl && !in_library(L, f->call))
      return f;
  return NULL;
}

/* The place, or that of the call through which the library was reached. */
Span
user_place(Lower *L, Span at)
{
  const Frame *f = user_call(L, at);
  return f ? f->call : at;
}

/* Say through which calls the place of an error was reached. What is wrong in the library is wrong in the call of it. */
Diag *
lower_trace(Lower *L, Diag *d)
{
  const Frame *user = user_call(L, diag_place(d)), *first = user ? user->up : L->frame;
  if (user)
    diag_move(L->c, d, user->call, arena_printf(L->a, "here, in %s", instance_name(L, user)));
  for (const Frame *f = first; f && f->up; f = f->up)
    if (f->call.hi && f->decl && !inside(diag_place(d), f->call))
      diag_call(L->c, d, f->call, "in %s, called here", instance_name(L, f));
  return d;
}

/* ---- constants ---- */

/* The frame in whose text the place stands. */
static Frame *
frame_at(Lower *L, Span at)
{
  for (Frame *f = L->frame; f; f = f->up)
    if (f->decl && inside(at, f->decl->span))
      return f;
  return NULL;
}

typedef struct Constants { Diag *d; u32 said, depth; } Constants;

static void scan_names(Lower *L, Constants *k, Span at);

static void
say_constant(Lower *L, Constants *k, const char *name, Val v, Span declared)
{
  Frame *f = frame_at(L, declared);
  const char *value = const_str(L, v.k);
  if (is_define(L, v.span)) {
    diag_note(L->c, k->d, (Span){0, 0}, "%s = %s is set by -D", name, value);
  } else if (f && f->decl->kind == N_KERNEL && inside(declared, kid(f->decl, 0)->span)) {
    diag_note(L->c, k->d, v.span, "%s = %s is the default here", name, value);
  } else if (f && inside(declared, kid(f->decl, 0)->span)) {
    diag_note(L->c, k->d, declared, "%s = %s in this call", name, value);
  } else {
    diag_note(L->c, k->d, declared, "%s = %s is set here", name, value);
    scan_names(L, k, v.span);
  }
}

static void
one_name(Lower *L, Constants *k, Frame *f, const char *name)
{
  Unit *u;
  u32 index;
  Frame *saved = L->frame;
  L->frame = f;
  const Binding *b = scope_find(L, name);
  L->frame = saved;
  if (b) {
    if (b->val.kind == V_CONST && !b->var)
      say_constant(L, k, name, b->val, b->span);
    k->said += b->val.kind == V_CONST;
  } else if (program_find(L->prog, f->unit, name, &u, &index) && u->root->kids[index]->kind == N_CONST &&
             u->values[index].kind == V_CONST) {
    diag_note(L->c, k->d, u->root->kids[index]->at, "%s = %s is set here", name, const_str(L, u->values[index].k));
    k->said++;
  }
}

static bool
is_letter(char ch)
{
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* The names in the text at a place. */
static void
scan_names(Lower *L, Constants *k, Span at)
{
  Frame *f = frame_at(L, at);
  const char *s = f ? source_text(L->c, at.lo) : NULL, *end = s ? s + (at.hi - at.lo) : NULL;
  if (!s || k->depth >= CONSTANTS_DEPTH_MAX)
    return;
  k->depth++;
  while (s < end && k->said < CONSTANTS_MAX) {
    const char *from = s;
    if (*s == '"')
      break;
    while (s < end && (is_letter(*s) || (s > from && *s >= '0' && *s <= '9')))
      s++;
    if (s > from)
      one_name(L, k, f, intern_n(L->c, from, (size_t)(s - from)));
    else
      s++;
  }
  k->depth--;
}

/* What set the constants that the expression at a place names. */
void
note_constants(Lower *L, Diag *d, Span at)
{
  Constants k = {.d = d};
  if (at.hi)
    scan_names(L, &k, at);
}

/* ---- extents ---- */

static bool
fills(const Value *v)
{
  return op_is(v, OP_SPLAT) || op_is(v, OP_BROADCAST);
}

/* The initial value of what a loop carries, for the value inside or behind it; NULL if v is none. */
static Value *
carried_from(const Value *v)
{
  const Op *loop = v->def ? v->def : v->block->parent;
  if (!loop || (loop->code != OP_FOR && loop->code != OP_WHILE))
    return NULL;
  u32 skip = loop->code == OP_FOR && !v->def ? 1 : 0;     /* the index */
  return v->index < skip ? NULL : op_operand(loop, v->index - skip + (loop->code == OP_FOR ? 3 : 0));
}

/* The operand through which v has its extents, NULL if it was given them. */
static Value *
shaped_by(const Value *v)
{
  Op *op = v->def;
  Value *init = carried_from(v);
  if (init && type_is_tile(init->type) && type_same_shape(init->type, v->type))
    return init;
  for (u32 i = 0; op && !op->nregions && !op_is_dot(op) && i < op->noperands; i++) {
    Value *x = op_operand(op, i);
    if (x && type_is_tile(x->type) && type_same_shape(x->type, v->type) && !fills(x))
      return x;
  }
  return NULL;
}

/* The op that gave v its extents. */
static const Value *
extents_origin(const Value *v)
{
  for (u32 i = 0; i < ORIGIN_STEPS_MAX; i++) {
    const Value *x = shaped_by(v);
    if (!x)
      break;
    v = x;
  }
  return v;
}

static bool
same_line(Lower *L, Span a, Span b)
{
  SourceLoc x = source_locate(L->c, a.lo), y = source_locate(L->c, b.lo);
  return x.file == y.file && x.line == y.line;
}

/* The same for a value whose own expression shapes it anew, from something made elsewhere: that. */
static const Value *
made_elsewhere(Val v)
{
  const Value *o = extents_origin(v.ir);
  for (u32 step = 0; step < RESHAPES_MAX && o->def && inside(o->def->span, v.span); step++) {
    const Value *x = o->def->noperands ? op_operand(o->def, 0) : NULL;
    if (!x || !type_is_tile(x->type) || op_is_dot(o->def) || op_is(x, OP_SPLAT))
      break;
    o = extents_origin(x);
  }
  return o;
}

static bool
can_be_noted(Val v)
{
  return v.kind != V_POISON && v.kind != V_VOID && v.span.hi;
}

static void
note_kind(Lower *L, Diag *d, Val v)
{
  if (diag_place(d).lo != v.span.lo || diag_place(d).hi != v.span.hi)
    diag_note(L->c, d, v.span, "this is %s", val_str(L, v));
}

static void
note_declared(Lower *L, Diag *d, Val v)
{
  if (v.from.hi && v.kind != V_CONST && !inside(v.span, v.from) && !is_define(L, v.from) && !in_library(L, v.from))
    diag_note(L->c, d, v.from, "declared here");
}

/* What v is and where it is declared: for a conflict of kinds. */
void
note_source(Lower *L, Diag *d, Val v)
{
  if (!can_be_noted(v))
    return;
  note_kind(L, d, v);
  note_declared(L, d, v);
  note_constants(L, d, v.span);
}

/* v, a name, is None where a value is needed. */
void
hint_none(Lower *L, Diag *d, Val v)
{
  note_declared(L, d, v);
  diag_hint(L->c, d, "what is left out is None: it is used where `!= None` was asked");
}

/* What v is, where its extents were made or it is declared, and of which constants: for a conflict of extents. */
void
note_value(Lower *L, Diag *d, Val v)
{
  if (!can_be_noted(v))
    return;
  note_kind(L, d, v);
  const Value *o = val_is_tile(v) ? made_elsewhere(v) : NULL;
  Span made = o && o->def && !in_library(L, o->def->span) ? o->def->span : (Span){0, 0};
  if (made.hi && !inside(made, v.span) && !inside(v.span, made))
    diag_note(L->c, d, made, "%s is made here", type_str(L->c, o->type));
  if (!made.hi || !same_line(L, made, v.from))
    note_declared(L, d, v);
  note_constants(L, d, made.hi ? made : v.span);
}

/* Each of them. */
void
note_values(Lower *L, Diag *d, u32 n, const Val *v)
{
  for (u32 i = 0; i < n; i++)
    note_value(L, d, v[i]);
}

/* Report that v should be known at compile time. */
Diag *
not_constant(Lower *L, Val v, const char *what)
{
  Diag *d = ERR(L, v.span, E_NOT_CONST, what);
  note_source(L, d, v);
  if (v.kind == V_IR && !v.ir->def && !v.ir->block->parent && !type_is_ptr(v.ir->type) && v.ir->name)
    diag_hint(L->c, d, "the launch gives '%s'; a parameter known at compile time is written `const %s`", v.ir->name, v.ir->name);
  return d;
}
