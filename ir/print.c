/* print.c - a module as .tir text. parse.c reads it back; printing what was read gives the same bytes.
 *
 * Everything is generic: `results = op operands attributes : result types`, driven by the op and attribute tables.
 * Values are numbered in the order in which they appear in the text, layouts named in the order of first use.
 */
#include "ir.h"

typedef struct Printer {
  Buf *out;
  Arena *scratch;
  bool locs;
  Ctx *ctx;
  u32 *number;               /* by value id: number + 1; NULL: ids are the numbers */
  u32 next;
  VEC(const Layout *) layouts;
  VEC(u32) alias;            /* by layout id: index in layouts + 1 */
  VEC(u32) site;             /* by call site: its number in the text; 0: not in it */
} Printer;

/* ---- layouts by first use ---- */

static void
layout_note(Printer *p, const Layout *l)
{
  if (!l)
    return;
  while (p->alias.len <= l->id)
    vec_push(p->scratch, &p->alias, 0);
  if (p->alias.data[l->id])
    return;
  vec_push(p->scratch, &p->layouts, l);
  p->alias.data[l->id] = p->layouts.len;
}

static void
layouts_of_values(Printer *p, Value *const *vs, u32 n)
{
  for (u32 i = 0; i < n; i++)
    layout_note(p, vs[i]->type->layout);
}

/* The call sites of a place: used, as yet without a number. */
static void
site_note(Printer *p, u32 site)
{
  for (; p->locs && site; site = site_get(p->ctx, site).call.site) {
    while (p->site.len <= site)
      vec_push(p->scratch, &p->site, 0);
    if (p->site.data[site])
      return;
    p->site.data[site] = 1;
  }
}

/* What the block's text has names for. */
static void
aliases_of_block(Printer *p, const Block *b)
{
  layouts_of_values(p, b->args, b->nargs);
  for (const Op *op = b->first; op; op = op->next) {
    site_note(p, op->span.site);
    for (u32 i = 0; i < op->nattrs; i++)
      if (attr_info[op->attrs[i].id].kind == AK_LAYOUT)
        layout_note(p, op->attrs[i].layout);
      else if (attr_info[op->attrs[i].id].kind == AK_TYPE)
        layout_note(p, op->attrs[i].type->layout);
    layouts_of_values(p, op->results, op->nresults);
    for (u32 r = 0; r < op->nregions; r++)
      aliases_of_block(p, op->regions[r]);
  }
}

static int
layout_alias(const Printer *p, const Layout *l)
{
  return l && l->id < p->alias.len ? (int)p->alias.data[l->id] - 1 : -1;
}

/* ---- values ---- */

static bool
hint_char(char ch)
{
  return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || ch == '.';
}

static void
print_value(Printer *p, const Value *v)
{
  if (!v)
    buf_putc(p->out, '_');
  else if (!p->number)
    buf_printf(p->out, "%%%u", v->id);
  else if (p->number[v->id])
    buf_printf(p->out, "%%%u", p->number[v->id] - 1);
  else
    buf_printf(p->out, "%%undefined%u", v->id);
  if (!v || !v->name || !v->name[0])
    return;
  buf_putc(p->out, '_');
  for (const char *s = v->name; *s; s++)
    buf_putc(p->out, hint_char(*s) ? *s : '_');
}

static void
print_definition(Printer *p, const Value *v)
{
  if (p->number)
    p->number[v->id] = ++p->next;
  print_value(p, v);
}

static void
print_type(Printer *p, const Type *t)
{
  type_print(p->out, t, layout_alias(p, t->layout));
}

static void
print_typed_list(Printer *p, Value *const *vs, u32 n)
{
  for (u32 i = 0; i < n; i++) {
    buf_puts(p->out, i ? ", " : "");
    print_definition(p, vs[i]);
    buf_puts(p->out, ": ");
    print_type(p, vs[i]->type);
  }
}

/* ---- attributes ---- */

static void
print_string(Buf *out, const char *s)
{
  buf_putc(out, '"');
  for (; *s; s++)
    if (*s == '"' || *s == '\\')
      buf_printf(out, "\\%c", *s);
    else if (*s == '\n' || *s == '\t')
      buf_puts(out, *s == '\n' ? "\\n" : "\\t");
    else if ((u8)*s < 32 || *s == 127)
      buf_printf(out, "\\x%02x", *s);
    else
      buf_putc(out, *s);
  buf_putc(out, '"');
}

static void
print_ints(Buf *out, const i64 *v, u32 n)
{
  buf_putc(out, '[');
  for (u32 i = 0; i < n; i++)
    buf_printf(out, "%s%lld", i ? ", " : "", (long long)v[i]);
  buf_putc(out, ']');
}

/* The value of a constant of type t, decoded. */
static void
print_constant(Buf *out, const Type *t, u64 bits)
{
  u32 unused = 64 - type_elem_bits(t);
  if (type_is_ptr(t))
    buf_printf(out, "0x%llx", (unsigned long long)bits);
  else if (type_is_bool(t))
    buf_puts(out, bits & 1 ? "true" : "false");
  else if (type_is_float(t))
    number_print(out, t->dt, bits);
  else if (dtype_is_signed(t->dt))
    buf_printf(out, "%lld", (long long)((i64)(bits << unused) >> unused));
  else
    buf_printf(out, "%llu", (unsigned long long)bits);
}

static void
print_attr(Printer *p, const Op *op, const Attr *a)
{
  buf_printf(p->out, " %s = ", attr_info[a->id].name);
  switch ((AttrKind)attr_info[a->id].kind) {
  case AK_INT:
    if (op->code == OP_CONST && a->id == AT_VALUE && op->nresults == 1)
      print_constant(p->out, op_result(op)->type, (u64)a->i);
    else
      buf_printf(p->out, "%lld", (long long)a->i);
    break;
  case AK_FLOAT: {
    u64 bits;
    memcpy(&bits, &a->f, sizeof bits);
    number_print(p->out, DT_F64, bits);
    break;
  }
  case AK_STR: print_string(p->out, a->s); break;
  case AK_TYPE: print_type(p, a->type); break;
  case AK_INTS: print_ints(p->out, a->ints.v, a->ints.n); break;
  case AK_LAYOUT: buf_printf(p->out, "#%d", layout_alias(p, a->layout)); break;
  }
}

/* ---- ops ---- */

/* Nowhere is written too, or reading it back would put the .tir's own line there. */
static void
print_loc(Printer *p, Span at)
{
  SourceLoc l = source_locate(p->ctx, at.lo);
  if (!p->locs)
    return;
  buf_puts(p->out, " @");
  print_string(p->out, l.file ? l.file : "");
  buf_printf(p->out, ":%u:%u", l.line, l.col);
  if (at.site)
    buf_printf(p->out, " in @%u", p->site.data[at.site]);
}

/* A caller's site has a smaller number than those in it, here as in the table: it is defined first. */
static void
print_sites(Printer *p)
{
  u32 n = 0;
  for (u32 i = 0; i < p->site.len; i++) {
    if (!p->site.data[i])
      continue;
    Site s = site_get(p->ctx, i);
    p->site.data[i] = ++n;
    buf_printf(p->out, "@%u = ", n);
    print_string(p->out, s.function);
    print_loc(p, s.call);
    buf_putc(p->out, '\n');
  }
}

static void
print_operands(Printer *p, const Op *op)
{
  u32 n = op->noperands;
  while (n && !op->operands[n - 1].value)
    n--;
  for (u32 i = 0; i < n; i++) {
    buf_puts(p->out, i ? ", " : " ");
    print_value(p, op->operands[i].value);
  }
}

static void
print_head(Printer *p, const Op *op)
{
  for (u32 i = 0; i < op->nresults; i++) {
    buf_puts(p->out, i ? ", " : "");
    print_definition(p, op->results[i]);
  }
  buf_printf(p->out, "%s%s", op->nresults ? " = " : "", op_info(op->code)->name);
  print_operands(p, op);
  for (u32 i = 0; i < op->nattrs; i++)
    print_attr(p, op, &op->attrs[i]);
  for (u32 i = 0; i < op->nresults; i++) {
    buf_puts(p->out, i ? ", " : " : ");
    print_type(p, op->results[i]->type);
  }
}

static void
indent(Printer *p, u32 depth)
{
  buf_printf(p->out, "%*s", (int)(2 * depth), "");
}

/* What stands between two regions: words for the reader; the parser takes any. */
static const char *
region_separator(OpCode code)
{
  return code == OP_IF ? "} else {\n" : code == OP_WHILE ? "} do {\n" : "} {\n";
}

static void
print_block(Printer *p, const Block *b, u32 depth)
{
  for (const Op *op = b->first; op; op = op->next) {
    indent(p, depth);
    print_head(p, op);
    print_loc(p, op->span);
    buf_puts(p->out, op->nregions ? " {\n" : "\n");
    for (u32 r = 0; r < op->nregions; r++) {
      const Block *inner = op->regions[r];
      if (r) {
        indent(p, depth);
        buf_puts(p->out, region_separator(op->code));
      }
      if (inner->nargs) {
        indent(p, depth);
        buf_puts(p->out, "^(");
        print_typed_list(p, inner->args, inner->nargs);
        buf_puts(p->out, "):\n");
      }
      print_block(p, inner, depth + 1);
    }
    if (op->nregions) {
      indent(p, depth);
      buf_puts(p->out, "}\n");
    }
  }
}

/* What is not as for any parameter: {divisible = 16, nonnull}, {nonneg}. */
static void
print_param_info(Printer *p, const ParamInfo *x, u32 index)
{
  Buf *b = p->out;
  const char *before = " {";
  if (x->divisible != 1) {
    buf_printf(b, "%sdivisible = %u", before, x->divisible);
    before = ", ";
  }
  if (x->same != index) {
    buf_printf(b, "%ssame = %u", before, x->same);
    before = ", ";
  }
  if (x->apart) {
    buf_printf(b, "%sapart = %llu", before, (unsigned long long)x->apart);
    before = ", ";
  }
  if (x->null != PARAM_ANY) {
    buf_printf(b, "%s%s", before, x->null == PARAM_NULL ? "null" : "nonnull");
    before = ", ";
  }
  if (x->nonneg) {
    buf_printf(b, "%snonneg", before);
    before = ", ";
  }
  if (x->pitch) {
    buf_printf(b, "%spitch = %u", before, x->pitch);
    before = ", ";
  }
  if (*before == ',')
    buf_putc(b, '}');
}

static void
print_params(Printer *p, const Func *f)
{
  for (u32 i = 0; i < f->body->nargs; i++) {
    buf_puts(p->out, i ? ", " : "");
    print_typed_list(p, &f->body->args[i], 1);
    print_param_info(p, &f->params[i], i);
  }
}

/* As far as an axis has more than one. */
static void
print_cluster(Printer *p, const Func *f)
{
  i64 dims[3];
  u32 n = 0;
  for (u32 i = 0; i < 3; i++) {
    dims[i] = f->cluster[i];
    n = dims[i] > 1 ? i + 1 : n;
  }
  if (!n)
    return;
  buf_puts(p->out, " cluster = ");
  print_ints(p->out, dims, n);
}

static void
print_choice(Printer *p, const char *name, KernelChoice c)
{
  if (c != CHOICE_AUTO)
    buf_printf(p->out, " %s = %s", name, c == CHOICE_ON ? "on" : "off");
}

static void
print_func(Printer *p, const Func *f)
{
  p->number = NEW_ARRAY(p->scratch, u32, f->nvalues + 1);
  p->next = 0;
  buf_printf(p->out, "kernel @%s(", f->name);
  print_params(p, f);
  buf_printf(p->out, ") warps = %u shared = %u", f->warps, f->shared_bytes);
  print_cluster(p, f);
  if (f->grid) {
    buf_puts(p->out, " grid = ");
    print_string(p->out, f->grid);
  }
  if (f->persistent)
    buf_printf(p->out, " persistent = %u", f->persistent);
  else if (f->leaves)
    buf_printf(p->out, " persistent = off");
  print_choice(p, "roles", f->roles);
  print_choice(p, "pingpong", f->pingpong);
  print_choice(p, "stores", f->box_stores);
  if (f->min_blocks)
    buf_printf(p->out, " min_blocks = %u", f->min_blocks);
  if (f->max_registers)
    buf_printf(p->out, " max_registers = %u", f->max_registers);
  print_loc(p, f->span);
  buf_puts(p->out, " {\n");
  print_block(p, f->body, 1);
  buf_puts(p->out, "}\n");
}

/* The whole module; locs adds source places. */
void
ir_print(Buf *out, const Module *m, bool locs)
{
  static const char *const phases[] = {"tile", "placed", "sched"};
  Printer p = {.out = out, .scratch = m->ctx->scratch, .locs = locs, .ctx = m->ctx};
  for (u32 i = 0; i < m->funcs.len; i++)
    aliases_of_block(&p, m->funcs.data[i]->body);
  buf_printf(out, "module %s%s", phases[m->phase], m->after ? " after " : "");
  if (m->after && m->by_hand)
    print_string(out, m->after);
  else
    buf_puts(out, m->after ? m->after : "");
  buf_putc(out, '\n');
  for (u32 i = 0; i < p.layouts.len; i++) {
    buf_printf(out, "#%u = ", i);
    layout_print(out, p.layouts.data[i]);
    buf_putc(out, '\n');
  }
  print_sites(&p);
  for (u32 i = 0; i < m->funcs.len; i++) {
    buf_putc(out, '\n');
    print_func(&p, m->funcs.data[i]);
  }
}

/* The op's line without regions and layouts, values by id: for messages. */
void
ir_print_op(Buf *out, const Op *op)
{
  Ctx *c = op->block->func->module->ctx;
  Printer p = {.out = out, .scratch = c->scratch, .ctx = c};
  print_head(&p, op);
}
