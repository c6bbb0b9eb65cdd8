/* aot_write.c - the C source and the header of kernels that were compiled ahead. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "aot.h"
#include "pack.h"

enum { NAME = AOT_NAME, PER_LINE = 32 };

typedef struct Writer {
  const AotFile *file;
  FILE *to;
  char module[NAME], space[NAME], header[4096];    /* "kernels", its namespace, the path of kernels.h */
  unsigned ncodes;
  bool failed;
} Writer;

static void __attribute__((format(printf, 2, 3)))
out(Writer *w, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  w->failed |= vfprintf(w->to, format, ap) < 0;
  va_end(ap);
}

/* ---- types and names ---- */

/* What C calls a dtype in memory, and as an argument by itself; "": a number that becomes one of them. */
static const struct { const char *dtype, *memory, *scalar; } types[] = {
  {"i1", "uint8_t", "uint8_t"},      {"i8", "int8_t", "int8_t"},        {"i16", "int16_t", "int16_t"}, {"i32", "int32_t", "int32_t"},
  {"i64", "int64_t", "int64_t"},     {"u8", "uint8_t", "uint8_t"},      {"u16", "uint16_t", "uint16_t"}, {"u32", "uint32_t", "uint32_t"},
  {"u64", "uint64_t", "uint64_t"},   {"f8e4m3", "tile_f8e4m3", "float"}, {"f8e5m2", "tile_f8e5m2", "float"}, {"f16", "tile_f16", "float"},
  {"bf16", "tile_bf16", "float"},    {"f32", "float", "float"},         {"f64", "double", "double"},
};

static size_t
type_index(const char *dtype)
{
  size_t i = 0;
  while (i + 1 < sizeof types / sizeof *types && strcmp(types[i].dtype, dtype) != 0)
    i++;
  return i;
}

static bool
is_real(const char *dtype)
{
  return *dtype == 'f' || *dtype == 'b';
}

static const char *
arg_name(const AotFunction *fn, uint32_t a)
{
  return fn->names[a];
}

static const TilertParam *
arg_param(const AotFunction *fn, uint32_t a)
{
  return &fn->m->params[fn->first[a]];
}

static bool
arg_reads(const AotFunction *fn, uint32_t a)
{
  return fn->reads >> a & 1;
}

/* tile_tensor_f16_2, tile_const_tensor_f16_2 */
static void
tensor_name(const AotFunction *fn, uint32_t a, char name[NAME])
{
  const TilertParam *p = arg_param(fn, a);
  snprintf(name, NAME, "tile_%stensor_%s_%" PRIu32, arg_reads(fn, a) ? "const_" : "", p->dtype, p->rank);
}

/* The declaration of an argument. */
static void
put_arg(Writer *w, const AotFunction *fn, uint32_t a)
{
  char type[NAME];
  const TilertParam *p = arg_param(fn, a);
  const char *name = arg_name(fn, a);
  if (p->kind == TILERT_PARAM_TENSOR) {
    tensor_name(fn, a, type);
    out(w, "%s %s", type, name);
  } else if (p->kind == TILERT_PARAM_POINTER) {
    out(w, "%s%s *%s", arg_reads(fn, a) ? "const " : "", types[type_index(p->dtype)].memory, name);
  } else {
    out(w, "%s %s", types[type_index(p->dtype)].scalar, name);
  }
}

static bool
needs_grid(const AotFunction *fn)
{
  return !fn->m->grid[0];
}

static void
put_signature(Writer *w, const AotFunction *fn, const char *stream)
{
  out(w, "%s(%sstream", fn->name, stream);
  if (needs_grid(fn))
    out(w, ", const uint32_t grid[3]");
  for (uint32_t a = 0; a < fn->nargs; a++) {
    out(w, ", ");
    put_arg(w, fn, a);
  }
  out(w, ", TilertError *err)");
}

/* ---- the same for C++ ---- */

static void
put_span(Writer *w, const AotFunction *fn, uint32_t a)
{
  const TilertParam *p = arg_param(fn, a);
  if (p->kind == TILERT_PARAM_POINTER)
    out(w, "tilert::Span<%s%s> %s", arg_reads(fn, a) ? "const " : "", types[type_index(p->dtype)].memory, arg_name(fn, a));
  else
    put_arg(w, fn, a);
}

static void
put_wrapper(Writer *w, const AotFunction *fn)
{
  out(w, "inline void %s(const tilert::Stream &stream", fn->name);
  if (needs_grid(fn))
    out(w, ", const tilert::Grid &grid");
  for (uint32_t a = 0; a < fn->nargs; a++) {
    out(w, ", ");
    put_span(w, fn, a);
  }
  out(w, ")\n{\n  tilert::check([&](TilertError *err) { return ::%s(stream.get()%s", fn->name, needs_grid(fn) ? ", grid.data()" : "");
  for (uint32_t a = 0; a < fn->nargs; a++)
    out(w, ", %s%s", arg_name(fn, a), arg_param(fn, a)->kind == TILERT_PARAM_POINTER ? ".data()" : "");
  out(w, ", err); });\n}\n");
}

/* Behind tilert.hpp the functions are there with spans, and throw. */
static void
put_wrappers(Writer *w)
{
  out(w, "#if defined(__cplusplus) && defined(TILERT_HPP)\nnamespace %s {\n", w->space);
  for (size_t i = 0; i < w->file->n; i++)
    put_wrapper(w, &w->file->functions[i]);
  out(w, "inline void load(const tilert::Device &device)\n{\n"
      "  tilert::check([&](TilertError *err) { return ::%s_load(device.get(), err); });\n}\n", w->module);
  out(w, "inline void unload() { ::%s_unload(); }\n}\n#endif\n", w->module);
}

/* ---- the header ---- */

static void
put_small_floats(Writer *w)
{
  static const struct { const char *name, *bits; } small[] = {
    {"f16", "uint16_t"}, {"bf16", "uint16_t"}, {"f8e4m3", "uint8_t"}, {"f8e5m2", "uint8_t"},
  };
  out(w, "#ifndef TILE_SMALL_FLOATS\n#define TILE_SMALL_FLOATS\n/* Numbers that C has no type for, by their bits. */\n");
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    out(w, "typedef struct tile_%s { %s bits; } tile_%s;\n", small[i].name, small[i].bits, small[i].name);
  out(w, "#endif\n\n");
}

static void
put_tensor_type(Writer *w, const AotFunction *fn, uint32_t a)
{
  const TilertParam *p = arg_param(fn, a);
  char name[NAME], guard[NAME];
  if (p->kind != TILERT_PARAM_TENSOR)
    return;
  tensor_name(fn, a, name);
  for (size_t i = 0; i <= strlen(name); i++)
    guard[i] = (char)toupper((unsigned char)name[i]);
  out(w, "#ifndef %s\n#define %s\n", guard, guard);
  out(w, "typedef struct %s { %s%s *data; int64_t extents[%" PRIu32 "], strides[%" PRIu32 "]; } %s;\n#endif\n", name,
      arg_reads(fn, a) ? "const " : "", types[type_index(p->dtype)].memory, p->rank, p->rank, name);
}

static void
put_tensor_types(Writer *w)
{
  bool any = false;
  for (size_t i = 0; i < w->file->n; i++)
    for (uint32_t a = 0; a < w->file->functions[i].nargs; a++)
      any |= arg_param(&w->file->functions[i], a)->kind == TILERT_PARAM_TENSOR;
  if (any)
    out(w, "/* Tensors: where element 0 is, extents, and strides in elements; all strides 0: the last dimension fastest, with nothing\n"
        " * in between. _const_: the kernel only reads it. */\n");
  for (size_t i = 0; i < w->file->n; i++)
    for (uint32_t a = 0; a < w->file->functions[i].nargs; a++)
      put_tensor_type(w, &w->file->functions[i], a);
  if (any)
    out(w, "\n");
}

/* Without what would end the comment. */
static void
put_comment(Writer *w, const AotFunction *fn)
{
  const uint32_t warps = fn->m->warps;
  out(w, "/* Kernel %s%s%s: %" PRIu32 " warp%s%s.", fn->kernel, *fn->config ? ", " : "", fn->config, warps, warps == 1 ? "" : "s",
      needs_grid(fn) ? "; it says no grid" : "");
  for (uint32_t a = 0; a < fn->nargs; a++)
    if (fn->nullable >> a & 1)
      out(w, " %s may be NULL.", arg_param(fn, a)->name);
  out(w, " */\n");
}

static const char *
stream_type(const Writer *w)
{
  return w->file->o->standalone ? "struct CUstream_st *" : "TilertStream *";
}

static void
put_targets(Writer *w)
{
  const AotFunction *fn = &w->file->functions[0];
  for (size_t i = 0; i < fn->nforms; i++)
    if (!i || strcmp(fn->forms[i].target, fn->forms[i - 1].target) != 0)
      out(w, "%s%s", i ? ", " : "", fn->forms[i].target);
}

static void
put_head(Writer *w, const char *what)
{
  const char *slash = strrchr(w->file->o->name, '/');
  out(w, "/* Made by tilec %s from %s: %s, compiled ahead for ", tilec_version(), slash ? slash + 1 : w->file->o->name, what);
  put_targets(w);
  out(w, ". */\n");
}

static void
put_header(Writer *w)
{
  put_head(w, "kernels");
  out(w, "#ifndef TILE_KERNELS_%s_H\n#define TILE_KERNELS_%s_H\n", w->module, w->module);
  if (w->file->o->standalone)
    out(w, "#include <stddef.h>\n%s", aot_status);
  else
    out(w, "#include <tilec/aot.h>\n");
  out(w, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  if (w->file->o->standalone)
    out(w, "struct CUstream_st;                       /* a CUstream, or a cudaStream_t */\n");
  put_small_floats(w);
  put_tensor_types(w);
  out(w, "/* Each launches its kernel in the stream: 0, or a TilertStatus, and a sentence in *err, which may be NULL. Arguments are\n"
      " * checked; code is loaded by the first call for a device. Any thread may call. */\n\n");
  for (size_t i = 0; i < w->file->n; i++) {
    put_comment(w, &w->file->functions[i]);
    out(w, "int ");
    put_signature(w, &w->file->functions[i], stream_type(w));
    out(w, ";\n\n");
  }
  out(w, "/* Load now what these calls would. */\nint %s_load(%s, TilertError *err);\n", w->module,
      w->file->o->standalone ? "struct CUstream_st *stream" : "TilertDevice *device");
  out(w, "/* Give up what was loaded; no call may be under way. */\nvoid %s_unload(void);\n", w->module);
  out(w, "#ifdef __cplusplus\n}\n#endif\n");
  if (!w->file->o->standalone)
    put_wrappers(w);
  out(w, "#endif\n");
}

/* ---- the source ---- */

/* tile_code_N; its number. */
static unsigned
put_code(Writer *w, const void *data, size_t n, size_t *packed)
{
  unsigned char *bytes = pack_bytes(data, n, packed);
  if (!bytes) {
    w->failed = true;
    return 0;
  }
  out(w, "static const unsigned char tile_code_%u[] = {", w->ncodes);
  for (size_t i = 0; i < *packed; i++)
    out(w, "%s%u,", i % PER_LINE ? "" : "\n", bytes[i]);
  out(w, "\n};\n");
  free(bytes);
  return w->ncodes++;
}

typedef struct Coded { unsigned ptx, cubin; size_t ptx_packed, cubin_packed; } Coded;

static uint32_t
arg_index(const AotFunction *fn, const char *name)
{
  uint32_t a = 0;
  while (a < fn->nargs && strcmp(arg_param(fn, a)->name, name) != 0)
    a++;
  return a;
}

static void
put_facts(Writer *w, const AotFunction *fn, size_t form)
{
  static const char *const kinds[] = {
    [TILEC_FACT_EQUAL] = "EQUAL", [TILEC_FACT_DIVISIBLE] = "DIVISIBLE", [TILEC_FACT_NULL] = "NULL", [TILEC_FACT_SAME] = "SAME",
  };
  const AotForm *f = &fn->forms[form];
  if (!f->nfacts)
    return;
  out(w, "static const TilertAotFact tile_of_%s_facts_%zu[] = {", fn->name, form);
  for (size_t i = 0; i < f->nfacts; i++) {
    const TilecFact *x = &f->facts[i];
    int64_t value = x->kind == TILEC_FACT_SAME ? (int64_t)arg_index(fn, x->other) : x->value;
    out(w, "%s{TILERT_AOT_%s, %" PRIu32 ", 0, INT64_C(%" PRId64 ")}", i ? ", " : "", kinds[x->kind], arg_index(fn, x->name), value);
  }
  out(w, "};\n");
}

static void
put_form(Writer *w, const AotFunction *fn, size_t i, const Coded *c)
{
  const AotForm *f = &fn->forms[i];
  out(w, "  {\"%s\", \"%.*s\",\n   {tile_code_%u, %zu, %zu}, ", f->target, (int)strcspn(f->r->output, "\n"), f->cubin ? f->r->output : "",
      c->ptx, c->ptx_packed, f->r->output_len);
  if (f->cubin)
    out(w, "{tile_code_%u, %zu, %zu}, ", c->cubin, c->cubin_packed, f->cubin_len);
  else
    out(w, "{NULL, 0, 0}, ");
  if (f->nfacts)
    out(w, "tile_of_%s_facts_%zu, %zu, 0},\n", fn->name, i, f->nfacts);
  else
    out(w, "NULL, 0, 0},\n");
}

static void
put_forms(Writer *w, const AotFunction *fn)
{
  Coded *c = calloc(fn->nforms, sizeof *c);
  if (!c) {
    w->failed = true;
    return;
  }
  for (size_t i = 0; i < fn->nforms; i++) {
    c[i].ptx = put_code(w, fn->forms[i].r->output, fn->forms[i].r->output_len, &c[i].ptx_packed);
    if (fn->forms[i].cubin)
      c[i].cubin = put_code(w, fn->forms[i].cubin, fn->forms[i].cubin_len, &c[i].cubin_packed);
    put_facts(w, fn, i);
  }
  out(w, "static const TilertAotForm tile_of_%s_forms[] = {\n", fn->name);
  for (size_t i = 0; i < fn->nforms; i++)
    put_form(w, fn, i, &c[i]);
  out(w, "};\n");
  free(c);
}

static void
put_kernel(Writer *w, const AotFunction *fn)
{
  put_forms(w, fn);
  out(w, "static const char *const tile_of_%s_args[] = {", fn->name);
  for (uint32_t a = 0; a < fn->nargs; a++)
    out(w, "\"%s\", ", arg_param(fn, a)->name);
  out(w, "NULL};\nstatic void *tile_of_%s_state;\n", fn->name);
  out(w, "static const TilertAotKernel tile_of_%s_kernel =\n  {%d, %" PRIu32 ", %zu, 0, \"%s\", ", fn->name, 1, fn->nargs, fn->nforms,
      fn->name);
  out(w, "tile_of_%s_args, 0, tile_of_%s_forms, &tile_of_%s_state};\n\n", fn->name, fn->name, fn->name);
}

/* The tensor that a launch takes, in a variable of its own. */
static void
put_tensor(Writer *w, const AotFunction *fn, uint32_t a)
{
  const char *name = arg_name(fn, a);
  const TilertParam *p = arg_param(fn, a);
  if (p->kind != TILERT_PARAM_TENSOR)
    return;
  out(w, "  const TilertTensorArg tile_arg_%" PRIu32 " = {NULL, (uint64_t)(uintptr_t)%s.data, %" PRIu32 ", 0, %s.extents,\n    ", a,
      name, p->rank, name);
  for (uint32_t d = 0; d < p->rank; d++)
    out(w, "%s%s.strides[%" PRIu32 "]", d ? " || " : "", name, d);
  out(w, " ? %s.strides : NULL};\n", name);
}

static void
put_value(Writer *w, const AotFunction *fn, uint32_t a)
{
  const char *name = arg_name(fn, a);
  const TilertParam *p = arg_param(fn, a);
  out(w, "  tile_args[%" PRIu32 "].reserved = 0;\n", a);
  if (p->kind == TILERT_PARAM_TENSOR)
    out(w, "  tile_args[%" PRIu32 "].kind = TILERT_ARG_TENSOR;\n  tile_args[%" PRIu32 "].u.tensor = &tile_arg_%" PRIu32 ";\n", a, a, a);
  else if (p->kind == TILERT_PARAM_POINTER)
    out(w, "  tile_args[%" PRIu32 "].kind = TILERT_ARG_POINTER;\n  tile_args[%" PRIu32 "].u.pointer = (uint64_t)(uintptr_t)%s;\n", a, a,
        name);
  else if (is_real(p->dtype))
    out(w, "  tile_args[%" PRIu32 "].kind = TILERT_ARG_FLOAT;\n  tile_args[%" PRIu32 "].u.f = (double)%s;\n", a, a, name);
  else
    out(w, "  tile_args[%" PRIu32 "].kind = TILERT_ARG_INT;\n  tile_args[%" PRIu32 "].u.i = (int64_t)%s;\n", a, a, name);
}

static void
put_function(Writer *w, const AotFunction *fn)
{
  out(w, "int\n");
  put_signature(w, fn, stream_type(w));
  out(w, "\n{\n  TilertArg tile_args[%" PRIu32 "];\n", fn->nargs ? fn->nargs : 1);
  for (uint32_t a = 0; a < fn->nargs; a++)
    put_tensor(w, fn, a);
  for (uint32_t a = 0; a < fn->nargs; a++)
    put_value(w, fn, a);
  if (needs_grid(fn))
    out(w, "  if (!grid)\n    return tilert_aot_no_grid(&tile_of_%s_kernel, err);\n", fn->name);
  if (w->file->o->standalone)
    out(w, "  TilertStream tile_stream;\n  int tile_status = standalone_stream(stream, \"%s\", &tile_stream, err);\n  return tile_status ? "
        "tile_status : ", fn->name);
  else
    out(w, "  return ");
  out(w, "tilert_aot_launch(&tile_of_%s_kernel, %s, %s, tile_args, err);\n}\n\n", fn->name,
      w->file->o->standalone ? "&tile_stream" : "stream", needs_grid(fn) ? "grid" : "NULL");
}

/* In front of the runtime's text its names must not be those of our functions. */
static void
put_standalone(Writer *w)
{
  out(w, "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n");
  for (size_t i = 0; i < w->file->n; i++)
    out(w, "#define %s tile_other_%s\n", w->file->functions[i].name, w->file->functions[i].name);
  static const char *const quiet[] = {"unused-parameter", "missing-field-initializers", "shadow", "pedantic", "conversion",
                                      "sign-conversion", "cast-qual", "float-equal"};
  out(w, "#if defined(__GNUC__)\n#pragma GCC diagnostic push\n");
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
    out(w, "#pragma GCC diagnostic ignored \"-W%s\"\n", quiet[i]);
  out(w, "#endif\n");
  out(w, "%s", aot_standalone);
  out(w, "#if defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n");
  for (size_t i = 0; i < w->file->n; i++)
    out(w, "#undef %s\n", w->file->functions[i].name);
}

/* What loads, and what gives up, all of the file. */
static void
put_load(Writer *w)
{
  const bool alone = w->file->o->standalone;
  out(w, "int\n%s_load(%s%s, TilertError *err)\n{\n", w->module, alone ? stream_type(w) : "TilertDevice *", alone ? "stream" : "device");
  if (alone)
    out(w, "  TilertStream s;\n  int status = standalone_stream(stream, \"%s_load\", &s, err);\n", w->module);
  else
    out(w, "  int status = 0;\n");
  for (size_t i = 0; i < w->file->n; i++)
    out(w, "  if (!status)\n    status = tilert_aot_load(&tile_of_%s_kernel, %s, err);\n", w->file->functions[i].name,
        alone ? "s.device" : "device");
  out(w, "  return status;\n}\n\nvoid\n%s_unload(void)\n{\n", w->module);
  for (size_t i = 0; i < w->file->n; i++)
    out(w, "  tilert_aot_unload(&tile_of_%s_kernel);\n", w->file->functions[i].name);
  out(w, "}\n");
}

static void
put_source(Writer *w)
{
  const char *slash = strrchr(w->header, '/');
  put_head(w, "kernels");
  if (w->file->o->standalone)
    put_standalone(w);
  out(w, "#include \"%s\"\n\n", slash ? slash + 1 : w->header);
  for (size_t i = 0; i < w->file->n; i++)
    put_kernel(w, &w->file->functions[i]);
  for (size_t i = 0; i < w->file->n; i++)
    put_function(w, &w->file->functions[i]);
  put_load(w);
}

/* ---- files ---- */

static int
write_file(Writer *w, const char *path, void (*put)(Writer *w))
{
  w->to = fopen(path, "wb");
  if (w->to)
    put(w);
  bool ok = w->to && fclose(w->to) == 0 && !w->failed;
  if (ok)
    return 0;
  fprintf(stderr, "tilec: cannot write %s: %s\n", path, strerror(errno));
  if (w->to)
    unlink(path);                            /* half of it is worse than none */
  return 2;
}

int
aot_write(const AotFile *f)
{
  Writer w = {.file = f};
  const char *path = f->o->output, *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
  size_t stem = dot && dot > base ? (size_t)(dot - base) : strlen(base);
  if (aot_module_names(f, w.module, w.space) || strlen(path) + 3 > sizeof w.header) {
    fprintf(stderr, "tilec: the name is too long: %s\n", path);
    return 2;
  }
  snprintf(w.header, sizeof w.header, "%.*s.h", (int)((size_t)(base - path) + stem), path);
  int status = write_file(&w, w.header, put_header);
  return status ? status : write_file(&w, path, put_source);
}
