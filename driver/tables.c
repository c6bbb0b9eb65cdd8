/* tables.c - prints ops.def, passes.def, targets.def, diags.def and dtypes.def as Markdown; docs/ holds these texts. */
#include "tables.h"
#include "packed.h"
#include "passes.h"
#include "tilec.h"

static const char *
number_text(u8 n)
{
  static const char *const few[] = {"0", "1", "2"};
  return n < COUNT(few) ? few[n] : "any";
}

static void
print_ops(Buf *b)
{
  buf_puts(b, "| op | operands | results | attributes | regions | what it is |\n|---|---|---|---|---|---|\n");
  for (int i = 0; i < OP_COUNT; i++) {
    const OpInfo *o = op_info((OpCode)i);
    buf_printf(b, "| `%s` | %s | %s | %s | %s | %s |\n", o->name, o->operands, number_text(o->nresults), o->attrs, number_text(o->regions),
               o->doc);
  }
}

static void
print_targets(Buf *b)
{
  const Target *t;
  buf_puts(b, "| target | PTX | shared per block | shared per SM | threads per block | features |\n|---|---|---|---|---|---|\n");
  for (u32 i = 0; (t = target_at(i)); i++) {
    buf_printf(b, "| `%s` | %u.%u | %u | %u | %u |", t->name, t->ptx / 10, t->ptx % 10, t->shared_max, t->shared_total,
               t->threads_max);
    for (int f = 0; f < FEATURE_COUNT; f++)
      if (target_has(t, (Feature)f)) buf_printf(b, " %s", feature_name((Feature)f));
    buf_puts(b, " |\n");
  }
}

static void
print_diags(Buf *b)
{
  static const struct { const char *code, *severity, *doc; } rows[] = {
#define DIAG(id, code, severity, fmt, doc) {code, #severity, doc},
#include "diags.def"
#undef DIAG
  };
  buf_puts(b, "| id | severity | meaning |\n|---|---|---|\n");
  for (size_t i = 0; i < COUNT(rows); i++) {
    buf_printf(b, "| `%s` | ", rows[i].code);
    for (const char *p = rows[i].severity; *p; p++) buf_putc(b, (char)(*p | 32));
    buf_printf(b, " | %s |\n", rows[i].doc);
  }
}

static void
print_packed(Buf *b, const PackedFormat *f)
{
  buf_printf(b, "| `%s` | %u | packed only: ", f->name, f->bits);
  if (packed_is_float(f))
    buf_printf(b, "float of %u exponent and %u mantissa bits, largest %g |\n", f->exp, f->man,
               packed_decode(f, (1u << (f->bits - 1)) - 1));
  else
    buf_printf(b, "%s integer |\n", f->cls == DC_I ? "signed" : "unsigned");
}

static void
print_dtypes(Buf *b)
{
  buf_puts(b, "| type | bits | what it is |\n|---|---|---|\n");
  for (int i = 0; i < DT_COUNT; i++)
    buf_printf(b, "| `%s` | %u | %s |\n", dtype_info[i].name, dtype_info[i].bits, dtype_info[i].doc);
  for (int i = DT_COUNT; i < DT_ALL; i++)
    buf_printf(b, "| `%s` | %u | in the IR: %s |\n", dtype_info[i].name, dtype_info[i].bits, dtype_info[i].doc);
  DType d;
  for (u32 i = 0; packed_at(i); i++)
    if (!dtype_find(packed_at(i)->name, &d))
      print_packed(b, packed_at(i));
}

const char *
tilec_suggest(const char *word, const char *const *words, size_t n)
{
  return word && words ? diag_suggest(word, words, n) : NULL;
}

bool
table_print(Buf *out, const char *what)
{
  static const struct { const char *name; void (*print)(Buf *); } tables[] = {
    {"passes", passes_print}, {"ops", print_ops}, {"targets", print_targets}, {"diags", print_diags}, {"dtypes", print_dtypes},
  };
  for (size_t i = 0; i < COUNT(tables); i++)
    if (!strcmp(tables[i].name, what)) {
      tables[i].print(out);
      return true;
    }
  return false;
}
