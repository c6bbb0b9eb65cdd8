/* locs.c - debug locations: which place of the source an instruction comes from, and through which inlined calls.
 *
 * In LLVM a place has a scope, the function it stands in, and `inlinedAt`, the place of the call if that function was inlined.
 * inlined.c writes them into the PTX. */
#include "gen.h"

typedef struct File { const char *name; LLVMMetadataRef file, scope; } File;   /* scope: of the kernel's places in it; NULL: none yet */
typedef struct Function { const char *name, *file; LLVMMetadataRef scope; } Function;   /* one that was inlined */
struct Locs {
  LLVMMetadataRef kernel;              /* the scope of the kernel that is being built */
  VEC(File) files;
  VEC(Function) functions;
  VEC(LLVMMetadataRef) calls;          /* by site: the place of its call, in this kernel; NULL: not asked for yet */
  u32 base;                            /* the site that became the function which is being built; 0: it is a kernel */
};

void
locs_open(Gen *g)
{
  LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                    LLVMValueAsMetadata(gen_u32(g, LLVMDebugMetadataVersion())));
  g->di = LLVMCreateDIBuilder(g->mod);
  g->locs = NEW(g->arena, Locs);
}

static File *
file_of(Gen *g, const char *name)
{
  Locs *l = g->locs;
  for (u32 i = 0; i < l->files.len; i++)
    if (!strcmp(l->files.data[i].name, name))
      return &l->files.data[i];
  char *path = arena_printf(g->arena, "%s", name);
  for (char *quote = path; (quote = strchr(quote, '"'));)
    *quote = '\'';                 /* ptxas knows no quote within quotes */
  const char *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  size_t dir = slash ? (size_t)(slash - path) : 0;
  File f = {name, LLVMDIBuilderCreateFile(g->di, base, strlen(base), path, dir), NULL};
  if (l->files.len == 0)   /* emission kind 3 is DebugDirectivesOnly: .loc without .debug_info */
    LLVMDIBuilderCreateCompileUnit(g->di, LLVMDWARFSourceLanguageC, f.file, "tilec", 5, 1, "", 0, 0, "", 0,
                                   (LLVMDWARFEmissionKind)3, 0, 0, 0, "", 0, "", 0);
  vec_push(g->arena, &l->files, f);
  return &l->files.data[l->files.len - 1];
}

static LLVMMetadataRef
subprogram(Gen *g, const char *name, LLVMMetadataRef file, u32 line)
{
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(g->di, file, NULL, 0, 0);
  return LLVMDIBuilderCreateFunction(g->di, file, name, strlen(name), name, strlen(name), file, line, type, 0, 1, line, 0, 1);
}

void
locs_func(Gen *g, const Func *f)
{
  locs_shared(g, f->name, f->span, 0);
}

void
locs_shared(Gen *g, const char *name, Span span, u32 site)
{
  Locs *l = g->locs;
  if (!l)
    return;
  SourceLoc at = source_locate(g->c, span.lo);
  File *file = file_of(g, at.file ? at.file : "unknown");
  for (u32 i = 0; i < l->files.len; i++)
    l->files.data[i].scope = NULL;
  l->calls.len = 0;
  l->base = site;
  l->kernel = file->scope = subprogram(g, name, file->file, at.line);
  LLVMSetSubprogram(g->fn, l->kernel);
}

/* The site through which a place was inlined into the function that is being built; 0: none. */
static u32
site_within(const Locs *l, Span at)
{
  return at.site == l->base ? 0 : at.site;
}

static LLVMMetadataRef
scope_of(Gen *g, const char *function, const char *file)
{
  Locs *l = g->locs;
  File *f = file_of(g, file);
  if (!function && !f->scope)
    f->scope = LLVMDIBuilderCreateLexicalBlockFile(g->di, l->kernel, f->file, 0);
  if (!function)
    return f->scope;
  for (u32 i = 0; i < l->functions.len; i++)
    if (l->functions.data[i].name == function && !strcmp(l->functions.data[i].file, file))
      return l->functions.data[i].scope;
  Function new = {function, file, subprogram(g, function, f->file, 0)};
  vec_push(g->arena, &l->functions, new);
  return new.scope;
}

/* A place of which those of the calls it was inlined through are there. */
static LLVMMetadataRef
place(Gen *g, Span at)
{
  Locs *l = g->locs;
  SourceLoc loc = source_locate(g->c, at.lo);
  if (!loc.file)
    return LLVMDIBuilderCreateDebugLocation(g->lc, 0, 0, l->kernel, NULL);
  u32 site = site_within(l, at);
  LLVMMetadataRef scope = scope_of(g, site ? site_get(g->c, site).function : NULL, loc.file);
  return LLVMDIBuilderCreateDebugLocation(g->lc, loc.line, loc.col, scope, site ? l->calls.data[site] : NULL);
}

/* The places of a site's call and of the calls around it, outermost first. */
static void
place_calls(Gen *g, u32 site)
{
  Locs *l = g->locs;
  VEC(u32) inner = {0};
  while (l->calls.len <= site)
    vec_push(g->arena, &l->calls, NULL);
  for (; site && !l->calls.data[site]; site = site_within(l, site_get(g->c, site).call))
    vec_push(g->arena, &inner, site);
  while (inner.len) {
    u32 s = inner.data[--inner.len];
    l->calls.data[s] = place(g, site_get(g->c, s).call);
  }
}

void
locs_at(Gen *g, Span at)
{
  if (!g->locs)
    return;
  place_calls(g, site_within(g->locs, at));
  LLVMSetCurrentDebugLocation2(g->b, place(g, at));
}
