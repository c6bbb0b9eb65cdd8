/* inlined.c - places in inlined functions, in PTX.
 *
 * PTX says where an inlined function was called (PTX ISA, "Debugging Directives: .loc", from version 7.2 on):
 *
 *     .loc 2 6 9, function_name $L__info_string0, inlined_at 1 22 7
 *
 * the instructions that follow come from line 6 of file 2, from a function whose name is at that label in the section .debug_str,
 * called at line 22 of file 1. The place of the call must have been named by a .loc before; if it is inlined itself, that .loc
 * says in turn where. ptxas makes line tables with chains of this, which profilers and debuggers show; code is the same with it.
 *
 * LLVM's back end prints the innermost place only. So in front of it the places of inlined instructions are replaced by numbers, which
 * it prints as lines beyond any real one, and behind it these .loc are replaced by what they stand for.
 */
#include "gen.h"
#include <stdlib.h>

enum {
  FIRST = 1 << 30,                     /* the line that stands for place 0 */
  KERNEL = FIRST                       /* any place that is not inlined */
};

/* A place in an inlined function, or of a call of one. */
typedef struct Place {
  const char *file;
  u32 line, col;
  const char *function;                /* that the place is in; NULL: the kernel */
  u32 outer;                           /* place of the function's call + 1; 0: of the kernel */
  u32 number;                          /* of the file in the PTX */
  u32 first;                           /* the first of the places with this file, line and column */
} Place;

typedef struct Slot { u64 a, b; u32 value; } Slot;   /* value 0: free */
typedef struct Map { Slot *slots; u32 n, used; } Map;
typedef struct Scope { const char *file, *function; } Scope;
struct Inlined {
  VEC(Place) places;
  VEC(Scope) scopes;
  Map by_metadata;                     /* place + 1 of a DILocation, scope + 1 of a scope */
};

/* ---- a map from pairs of numbers to numbers from 1 on ---- */

static u32 *
map_slot(Map *m, u64 a, u64 b)
{
  u64 h = (a * 0x9e3779b97f4a7c15ull ^ b) * 0x9e3779b97f4a7c15ull;
  for (u32 i = (u32)(h >> 32);; i++) {
    Slot *s = &m->slots[i & (m->n - 1)];
    if (s->value && (s->a != a || s->b != b))
      continue;
    s->a = a;
    s->b = b;
    return &s->value;
  }
}

/* 0: none. */
static u32
map_get(Map *m, u64 a, u64 b)
{
  return m->n ? *map_slot(m, a, b) : 0;
}

static void
map_put(Arena *arena, Map *m, u64 a, u64 b, u32 value)
{
  if (4 * m->used >= 3 * m->n) {
    Map old = *m;
    *m = (Map){.n = old.n ? 2 * old.n : 64};
    m->slots = NEW_ARRAY(arena, Slot, m->n);
    for (u32 i = 0; i < old.n; i++)
      if (old.slots[i].value)
        map_put(arena, m, old.slots[i].a, old.slots[i].b, old.slots[i].value);
  }
  u32 *slot = map_slot(m, a, b);
  m->used += !*slot;
  *slot = value;
}

/* ---- in front of LLVM's back end ---- */

static const char *
file_name(Gen *g, LLVMMetadataRef scope)
{
  unsigned n, d;
  LLVMMetadataRef file = LLVMDIScopeGetFile(scope);
  if (!file)
    return "";
  const char *name = LLVMDIFileGetFilename(file, &n), *folder = LLVMDIFileGetDirectory(file, &d);
  return d && name[0] != '/' ? arena_printf(g->arena, "%.*s/%.*s", (int)d, folder, (int)n, name)
                             : arena_printf(g->arena, "%.*s", (int)n, name);
}

/* LLVM-C has no question for a subprogram's name; its text begins with it. */
static const char *
function_name(Gen *g, LLVMMetadataRef scope)
{
  char *text = LLVMPrintValueToString(LLVMMetadataAsValue(g->lc, scope));
  if (!text)
    ctx_no_memory(g->c);
  const char *name = strstr(text, "name: \"");
  name = name ? name + strlen("name: \"") : "";
  const char *copy = arena_printf(g->arena, "%.*s", (int)strcspn(name, "\""), name);
  LLVMDisposeMessage(text);
  return copy;
}

static Scope
scope_of(Gen *g, LLVMMetadataRef scope)
{
  Inlined *x = g->inlined;
  u32 known = map_get(&x->by_metadata, (uintptr_t)scope, 0);
  if (known)
    return x->scopes.data[known - 1];
  vec_push(g->arena, &x->scopes, ((Scope){file_name(g, scope), function_name(g, scope)}));
  map_put(g->arena, &x->by_metadata, (uintptr_t)scope, 0, x->scopes.len);
  return x->scopes.data[x->scopes.len - 1];
}

/* The place of a DILocation whose outer place, if it has one, is known. */
static u32
place_new(Gen *g, LLVMMetadataRef at, u32 outer)
{
  Scope s = scope_of(g, LLVMDILocationGetScope(at));
  Place p = {.file = s.file, .line = LLVMDILocationGetLine(at), .col = LLVMDILocationGetColumn(at), .outer = outer};
  if (outer)
    p.function = s.function;
  vec_push(g->arena, &g->inlined->places, p);
  return g->inlined->places.len;
}

/* Place + 1 of a DILocation and those of the calls around it, outermost first. */
static u32
place_of(Gen *g, LLVMMetadataRef at)
{
  Map *known = &g->inlined->by_metadata;
  VEC(LLVMMetadataRef) inner = {0};
  u32 outer = 0;
  for (; at && !(outer = map_get(known, (uintptr_t)at, 0)); at = LLVMDILocationGetInlinedAt(at))
    vec_push(g->arena, &inner, at);
  while (inner.len) {
    at = inner.data[--inner.len];
    outer = place_new(g, at, outer);
    map_put(g->arena, known, (uintptr_t)at, 0, outer);
  }
  return outer;
}

static void
encode(Gen *g, Val instruction, LLVMMetadataRef kernel)
{
  LLVMMetadataRef at = LLVMInstructionGetDebugLoc(instruction);
  if (!at || !LLVMDILocationGetInlinedAt(at) || !LLVMDILocationGetLine(at))
    return;
  u32 place = place_of(g, at) - 1;
  LLVMInstructionSetDebugLoc(instruction, LLVMDIBuilderCreateDebugLocation(g->lc, FIRST + place, 0, kernel, NULL));
}

void
inlined_encode(Gen *g)
{
  g->inlined = NEW(g->arena, Inlined);
  for (Val f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f)) {
    LLVMMetadataRef kernel = LLVMGetSubprogram(f);
    if (!kernel)
      continue;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (Val i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        encode(g, i, kernel);
  }
}

/* ---- behind it ---- */

typedef struct Writer {
  Gen *g;
  Buf *out;
  VEC(const char *) files;             /* number i + 1, as it stands between quotes */
  u32 printed;                         /* of them LLVM prints this many itself */
  Map by_place;                        /* place + 1: the first with a file number, line and column */
  u32 *latest;                         /* by first place: what the last .loc there was: place + 1 or KERNEL; 0: there was none */
  VEC(const char *) names;             /* strings of .debug_str */
} Writer;

/* As LLVM writes the name of a file. */
static const char *
quoted(Gen *g, const char *s)
{
  static const char special[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
  Buf b = {.arena = g->arena};
  for (; *s; s++) {
    const char *at = strchr(special, *s);
    if (at)
      buf_printf(&b, "\\%c", letters[at - special]);
    else if (*s >= ' ' && *s <= '~')
      buf_putc(&b, *s);
    else
      buf_printf(&b, "\\%03o", (u8)*s);
  }
  return buf_str(&b);
}

/* LLVM's files, from lines `.file 1 "name"`. */
static void
read_files(Writer *w, const char *text)
{
  for (const char *s = text; (s = strstr(s, "\n\t.file\t")); s++) {
    const char *open = strchr(s + 1, '"'), *end = s + 1 + strcspn(s + 1, "\n"), *close = end;
    while (close > s && *close != '"')
      close--;
    if (open && open < close)
      vec_push(w->g->arena, &w->files, arena_strndup(w->g->arena, open + 1, (size_t)(close - open - 1)));
  }
  w->printed = w->files.len;
}

static u32
file_number(Writer *w, const char *name)
{
  const char *q = quoted(w->g, name);
  for (u32 i = 0; i < w->files.len; i++)
    if (!strcmp(w->files.data[i], q))
      return i + 1;
  vec_push(w->g->arena, &w->files, q);
  return w->files.len;
}

static void
number_places(Writer *w)
{
  Inlined *x = w->g->inlined;
  w->latest = NEW_ARRAY(w->g->arena, u32, x->places.len);
  for (u32 i = 0; i < x->places.len; i++) {
    Place *p = &x->places.data[i];
    p->number = i && p->file == p[-1].file ? p[-1].number : file_number(w, p->file);
    u64 at = (u64)p->line << 32 | p->col;
    if (!map_get(&w->by_place, at, p->number))
      map_put(w->g->arena, &w->by_place, at, p->number, i + 1);
    p->first = map_get(&w->by_place, at, p->number) - 1;
  }
}

/* The number of a function's name among the strings. */
static u32
name_number(Writer *w, const char *name)
{
  u32 i = 0;
  while (i < w->names.len && w->names.data[i] != name && strcmp(w->names.data[i], name))
    i++;
  if (i == w->names.len)
    vec_push(w->g->arena, &w->names, name);
  return i;
}

static void
write_loc(Writer *w, u32 at)
{
  const Place *p = &w->g->inlined->places.data[at], *call = p->outer ? &w->g->inlined->places.data[p->outer - 1] : NULL;
  buf_printf(w->out, "\t.loc\t%u %u %u", p->number, p->line, p->col);
  if (call)
    buf_printf(w->out, ", function_name $L__info_string%u, inlined_at %u %u %u", name_number(w, p->function), call->number, call->line,
               call->col);
  buf_putc(w->out, '\n');
  w->latest[p->first] = call ? at + 1 : KERNEL;
}

/* The .loc of a place, behind those of the calls around it that are not what the last .loc there says. */
static void
write_chain(Writer *w, u32 at)
{
  const Place *places = w->g->inlined->places.data;
  VEC(u32) chain = {0};
  vec_push(w->g->arena, &chain, at);
  while (places[at].outer) {
    at = places[at].outer - 1;
    if (w->latest[places[at].first] == (places[at].outer ? at + 1 : KERNEL))
      break;
    vec_push(w->g->arena, &chain, at);
  }
  while (chain.len)
    write_loc(w, chain.data[--chain.len]);
}

/* True if the line is a .loc that stands for a place, which is written. */
static bool
replace_loc(Writer *w, const char *line)
{
  const char prefix[] = "\t.loc\t";
  if (strncmp(line, prefix, strlen(prefix)))
    return false;
  char *end;
  u32 file = (u32)strtoul(line + strlen(prefix), &end, 10), at = (u32)strtoul(end, &end, 10), col = (u32)strtoul(end, &end, 10);
  if (at >= FIRST && at - FIRST < w->g->inlined->places.len) {
    write_chain(w, at - FIRST);
    return true;
  }
  u32 first = map_get(&w->by_place, (u64)at << 32 | col, file);
  if (first)
    w->latest[first - 1] = KERNEL;
  return false;
}

static void
write_strings(Writer *w)
{
  buf_puts(w->out, "\t.section\t.debug_str\n\t{\n");
  for (u32 i = 0; i < w->names.len; i++) {
    buf_printf(w->out, "$L__info_string%u:\n.b8 ", i);
    for (const char *s = w->names.data[i]; *s; s++)
      buf_printf(w->out, "%u,", (u8)*s);
    buf_puts(w->out, "0\n");
  }
  buf_puts(w->out, "\t}\n");
}

void
inlined_write(Gen *g, const char *text, Buf *out)
{
  Writer w = {.g = g, .out = out};
  u32 files = 0;
  if (!g->inlined || !g->inlined->places.len) {
    buf_puts(out, text);
    return;
  }
  read_files(&w, text);
  number_places(&w);
  for (const char *line = text, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    next += *next == '\n';
    if (!strncmp(line, "$L__func_begin", 14))     /* another function: no .loc came before */
      memset(w.latest, 0, sizeof *w.latest * g->inlined->places.len);
    if (!replace_loc(&w, line))
      buf_write(out, line, (size_t)(next - line));
    files += !strncmp(line, "\t.file\t", 7);
    for (; files == w.printed && files < w.files.len; files++, w.printed++)
      buf_printf(out, "\t.file\t%u \"%s\"\n", files + 1, w.files.data[files]);
  }
  write_strings(&w);
}
