/* locs.c - debug locations: which place of the source an instruction comes from. */
#include "gen.h"

void
locs_open(Gen *g)
{
  LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                    LLVMValueAsMetadata(gen_u32(g, LLVMDebugMetadataVersion())));
  g->di = LLVMCreateDIBuilder(g->mod);
}

/* ---- debug locations ---- */
static GenFile *
file_of(Gen *g, const char *name)
{
  for (u32 i = 0; i < g->files.len; i++)
    if (!strcmp(g->files.data[i].name, name))
      return &g->files.data[i];
  const char *slash = strrchr(name, '/');
  const char *base = slash ? slash + 1 : name;
  size_t dir = slash ? (size_t)(slash - name) : 0;
  GenFile f = {name, LLVMDIBuilderCreateFile(g->di, base, strlen(base), name, dir), NULL};
  if (g->files.len == 0)   /* emission kind 3 is DebugDirectivesOnly: .loc without .debug_info */
    LLVMDIBuilderCreateCompileUnit(g->di, LLVMDWARFSourceLanguageC, f.file, "tilec", 5, 1, "", 0, 0, "", 0,
                                   (LLVMDWARFEmissionKind)3, 0, 0, 0, "", 0, "", 0);
  vec_push(g->arena, &g->files, f);
  return &g->files.data[g->files.len - 1];
}

void
locs_func(Gen *g, const Func *f)
{
  g->scope = NULL;
  if (!g->di)
    return;
  SourceLoc at = source_locate(g->c, f->span.lo);
  GenFile *file = file_of(g, at.file ? at.file : "unknown");
  for (u32 i = 0; i < g->files.len; i++)
    g->files.data[i].scope = NULL;
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(g->di, file->file, NULL, 0, 0);
  g->scope = LLVMDIBuilderCreateFunction(g->di, file->file, f->name, strlen(f->name), f->name, strlen(f->name),
                                         file->file, at.line, type, 0, 1, at.line, 0, 1);
  file->scope = g->scope;
  LLVMSetSubprogram(g->fn, g->scope);
}

void
locs_at(Gen *g, Span at)
{
  if (!g->scope)
    return;
  SourceLoc loc = source_locate(g->c, at.lo);
  if (!loc.file) {
    LLVMSetCurrentDebugLocation2(g->b, LLVMDIBuilderCreateDebugLocation(g->lc, 0, 0, g->scope, NULL));
    return;
  }
  GenFile *file = file_of(g, loc.file);
  if (!file->scope)
    file->scope = LLVMDIBuilderCreateLexicalBlockFile(g->di, g->scope, file->file, 0);
  LLVMSetCurrentDebugLocation2(g->b, LLVMDIBuilderCreateDebugLocation(g->lc, loc.line, loc.col, file->scope, NULL));
}
