/* aot_names.c - what the functions and arguments of kernels compiled ahead are called in C and C++. Whatever a kernel's source calls them,
 * what is written compiles: an argument's name gets a '_' behind it where it is none in C, or one that the file or its headers need; what
 * is linked by name, a function, stays as it is, or is refused. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "aot.h"

/* Words that are no names in C or C++, or macros of the headers that are included, or of compilers. */
static const char *const words[] = {
  "NULL", "alignas", "alignof", "and", "and_eq", "asm", "assert", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
  "class", "co_await", "co_return", "co_yield", "compl", "complex", "concept", "const", "const_cast", "consteval", "constexpr",
  "constinit", "continue", "decltype", "default", "defined", "delete", "do", "double", "dynamic_cast", "else", "enum", "errno",
  "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "imaginary", "inline", "int", "linux", "long",
  "mutable", "namespace", "new", "noexcept", "noreturn", "not", "not_eq", "nullptr", "offsetof", "operator", "or", "or_eq", "private",
  "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
  "static_assert", "static_cast", "stderr", "stdin", "stdout", "struct", "switch", "template", "this", "thread_local", "throw",
  "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union", "unix", "unsigned", "using", "virtual", "void",
  "volatile", "while", "xor", "xor_eq",
};

/* Functions of the C library, as far as a kernel may be called like one. */
static const char *const library[] = {
  "abort", "abs", "accept", "acos", "asin", "atan", "bind", "calloc", "ceil", "clock", "close", "connect", "cos", "cosh", "div",
  "dup", "erf", "erfc", "exit", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "fork", "free", "frexp",
  "gamma", "getc", "gets", "hypot", "index", "kill", "ldexp", "lgamma", "link", "log", "log10", "log1p", "log2", "logb", "main",
  "malloc", "memchr", "memcmp", "memcpy", "memmove", "memset", "modf", "open", "pause", "pipe", "poll", "pow", "printf", "puts",
  "qsort", "rand", "random", "read", "realloc", "remainder", "remove", "rename", "rindex", "rint", "round", "scalb", "scalbn",
  "select", "send", "signal", "sin", "sinh", "sleep", "sqrt", "stat", "strcat", "strchr", "strcmp", "strcpy", "strlen", "strncmp",
  "sync", "system", "tan", "tanh", "tgamma", "time", "times", "trunc", "truncate", "umask", "wait", "write", "y0", "y1", "yn", "j0",
  "j1", "jn",
};

static bool
is_among(const char *name, const char *const *list, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!strcmp(name, list[i]))
      return true;
  return false;
}

static bool
ends(const char *name, const char *with)
{
  const size_t n = strlen(name), m = strlen(with);
  return n >= m && !strcmp(name + n - m, with);
}

static bool
begins(const char *name, const char *with)
{
  return !strncmp(name, with, strlen(with));
}

static bool
is_word(const char *name)
{
  return is_among(name, words, sizeof words / sizeof *words);
}

/* Types of <stdint.h> and <stddef.h>. */
static bool
is_type(const char *name)
{
  static const char *const others[] = {"size_t", "ssize_t", "ptrdiff_t", "wchar_t", "max_align_t", "nullptr_t"};
  static const char *const kinds[] = {"int", "int_least", "int_fast"}, *const sizes[] = {"8_t", "16_t", "32_t", "64_t", "ptr_t", "max_t"};
  const char *s = name + (*name == 'u');
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (begins(s, kinds[i]) && is_among(s + strlen(kinds[i]), sizes, sizeof sizes / sizeof *sizes))
      return true;
  return is_among(name, others, sizeof others / sizeof *others);
}

/* Their macros, and what the headers and the file itself call something. */
static bool
is_of_headers(const char *name)
{
  const bool limit = ends(name, "_MAX") || ends(name, "_MIN") || ends(name, "_C") || ends(name, "_WIDTH");
  const bool number = begins(name, "INT") || begins(name, "UINT") || begins(name, "SIZE_") || begins(name, "PTRDIFF_") ||
                      begins(name, "WCHAR_");
  return is_type(name) || (limit && number) || begins(name, "tilert_") || begins(name, "tilec_") || begins(name, "TILE") ||
         begins(name, "Tilert") || begins(name, "CUstream") || begins(name, "__");
}

/* Types that the file defines, and what else it has that is not a function's local variable. */
static bool
is_of_file(const char *name)
{
  static const char *const types[] = {"tile_f16", "tile_bf16", "tile_f8e4m3", "tile_f8e5m2"};
  return is_among(name, types, sizeof types / sizeof *types) || begins(name, "tile_tensor_") || begins(name, "tile_const_tensor_") ||
         begins(name, "tile_of_") || begins(name, "tile_code_") || begins(name, "tile_other_");
}

static bool
is_space(const char *name)
{
  return !strcmp(name, "std") || !strcmp(name, "tilert");
}

const char *
aot_function_reason(const char *name)
{
  for (const char *s = name; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_')
      return "no name in C";
  if (isdigit((unsigned char)*name))
    return "no name in C";
  if (is_among(name, library, sizeof library / sizeof *library))
    return "a function of the C library";
  if (is_word(name))
    return "a word of C or C++";
  return is_of_headers(name) || is_of_file(name) || is_space(name) ? "a name of the headers" : NULL;
}

/* Letters, digits and '_', as no number begins. */
static void
identifier(const char *text, char out[AOT_NAME])
{
  size_t n = 0;
  if (isdigit((unsigned char)*text))
    out[n++] = '_';
  for (; *text && n + 1 < AOT_NAME; text++)
    out[n++] = isalnum((unsigned char)*text) ? *text : '_';
  out[n] = 0;
}

/* shape.0 is shape_0, do is do_. */
void
aot_arg_name(const AotFunction *fn, uint32_t a, char name[AOT_NAME])
{
  static const char *const own[] = {"stream", "grid", "err", "device"};
  const size_t room = 2 + fn->nargs;         /* as many '_' as there may be */
  char text[AOT_NAME];
  snprintf(text, sizeof text, "%.*s", (int)(AOT_NAME - room), fn->m->params[fn->first[a]].name);
  identifier(text, name);
  if (is_word(name) || is_of_headers(name) || begins(name, "tile_") || is_among(name, own, sizeof own / sizeof *own))
    strcat(name, "_");
  for (uint32_t i = 0; i < a; i++)
    if (!strcmp(name, fn->names[i])) {
      strcat(name, "_");
      i = UINT32_MAX;                        /* again from the first */
    }
}

int
aot_module_names(const AotFile *f, char module[AOT_NAME], char space[AOT_NAME])
{
  const char *path = f->o->output, *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
  const int stem = (int)(dot && dot > base ? (size_t)(dot - base) : strlen(base));
  char text[AOT_NAME];
  if (snprintf(text, sizeof text, "%s%.*s", f->o->prefix ? f->o->prefix : "", stem, base) > AOT_NAME - 32)
    return -1;
  identifier(text, module);
  snprintf(space, AOT_NAME, "%s", module);
  bool taken = is_word(space) || is_space(space);
  for (size_t i = 0; i < f->n; i++)
    taken |= !strcmp(space, f->functions[i].name);
  if (taken)
    strcat(space, "_kernels");
  for (size_t i = 0; taken && i < f->n; i++)
    if (!strcmp(space, f->functions[i].name)) {
      strcat(space, "_");
      i = SIZE_MAX;
    }
  return strlen(space) < AOT_NAME - 8 ? 0 : -1;
}
