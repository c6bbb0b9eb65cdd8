/* module.c - files: imports and what their declarations make visible. A file sees its own declarations first, then those
 * of the files it imports (not of the files these import), then the library. */
#define _POSIX_C_SOURCE 200809L
#include "parser.h"
#include "sema.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FILES_MAX = 256, FILE_BYTES_MAX = 16 << 20 };

/* ---- paths ---- */

/* "a/./b/../c.tile" -> "a/c.tile", so that every file has one name. */
static const char *
path_clean(Program *p, const char *path)
{
  bool rooted = *path == '/';
  VEC(const char *) parts = {0};
  for (const char *s = path; *s; s += strspn(s, "/")) {
    s += strspn(s, "/");
    size_t n = strcspn(s, "/");
    bool up = n == 2 && !strncmp(s, "..", 2);
    bool can_go_up = parts.len && strcmp(parts.data[parts.len - 1], "..") != 0;
    if (up && can_go_up)
      parts.len--;
    else if (n && !(n == 1 && *s == '.') && !(up && rooted))
      vec_push(p->a, &parts, arena_strndup(p->a, s, n));
    s += n;
  }
  Buf b = {.arena = p->a};
  for (u32 i = 0; i < parts.len; i++)
    buf_printf(&b, "%s%s", i || rooted ? "/" : "", parts.data[i]);
  return intern(p->c, buf_str(&b));
}

static const char *
path_join(Program *p, const char *folder, size_t folder_len, const char *name)
{
  if (*name == '/' || !folder_len)
    return path_clean(p, name);
  return path_clean(p, arena_printf(p->a, "%.*s/%s", (int)folder_len, folder, name));
}

/* ---- units ---- */

static Unit *
unit_add(Program *p, const char *path, u32 base)
{
  Node *root = parse_file(p->c, p->a, base);
  if (!root)
    return NULL;
  Unit *u = NEW(p->a, Unit);
  u->path = path;
  u->base = base;
  u->root = root;
  u->values = NEW_ARRAY(p->a, Val, root->nkids);
  u->computing = NEW_ARRAY(p->a, bool, root->nkids);
  for (u32 i = 0; i < root->nkids; i++)
    u->values[i] = val_void(root->kids[i]->span);
  vec_push(p->a, &p->units, u);
  return u;
}

/* The file's text, NUL-terminated; NULL with *why set. Only ordinary files are read. */
static char *
read_file(Program *p, const char *path, size_t *len, const char **why)
{
  struct stat st;
  *why = "no such file";
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return NULL;
  FILE *f = fopen(path, "rb");
  *why = "it cannot be opened";
  if (!f)
    return NULL;
  *why = st.st_size > FILE_BYTES_MAX ? "it is larger than 16 MiB" : "reading failed";
  char *text = st.st_size > FILE_BYTES_MAX ? NULL : NEW_ARRAY(p->a, char, st.st_size + 1);
  *len = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
  fclose(f);
  return text && (*len == (size_t)st.st_size) ? text : NULL;
}

static Unit *
unit_known(Program *p, const char *path)
{
  for (u32 i = 0; i < p->units.len; i++)
    if (p->units.data[i]->path == path)
      return p->units.data[i];
  return NULL;
}

static const StdlibFile *
stdlib_file(const char *name)
{
  for (const StdlibFile *f = stdlib_files; f->name; f++)
    if (!strcmp(f->name, name))
      return f;
  return NULL;
}

static void
import_hint(Program *p, Diag *d, const char *name)
{
  VEC(const char *) names = {0};
  for (const StdlibFile *f = stdlib_files; f->name; f++)
    vec_push(p->a, &names, f->name);
  const char *close = diag_suggest(name, names.data, names.len);
  if (close)
    diag_hint(p->c, d, "did you mean \"%s\"?", close);
}

/* The unit for an import: beside the importing file, then along the search path, then in the library. */
static Unit *
unit_import(Program *p, const Unit *from, const Node *import)
{
  const char *slash = strrchr(from->path, '/'), *why = NULL, *path = NULL;
  size_t len = 0;
  if (!*import->name) {
    diag(p->c, import->at, E_IMPORT, import->name, "it names no file");
    return NULL;
  }
  char *text = NULL;
  for (u32 i = 0; !text && i <= p->o->nimport_path; i++) {
    const char *folder = i ? p->o->import_path[i - 1] : from->path;
    path = path_join(p, folder, i ? strlen(folder) : slash ? (size_t)(slash - from->path) : 0, import->name);
    Unit *known = unit_known(p, path);
    if (known)
      return known;
    text = read_file(p, path, &len, &why);
  }
  if (text && p->units.len < FILES_MAX)
    return unit_add(p, path, source_add(p->c, path, text, len));
  Unit *library = stdlib_file(import->name) ? unit_known(p, intern(p->c, import->name)) : NULL;
  if (!library)
    import_hint(p, diag(p->c, import->at, E_IMPORT, import->name, text ? "too many files" : why), import->name);
  return library;
}

static bool
is_decl_named(const Node *d, const char *name)
{
  return d->kind != N_IMPORT && d->kind != N_ERROR && d->name == name;
}

static void
check_duplicates(Program *p, const Unit *u)
{
  for (u32 i = 0; i < u->root->nkids; i++) {
    const Node *d = u->root->kids[i];
    for (u32 k = 0; k < i && d->name && d->kind != N_IMPORT; k++)
      if (is_decl_named(u->root->kids[k], d->name)) {
        diag_note(p->c, diag(p->c, d->at, E_REDEFINED, d->name), u->root->kids[k]->at, "it was declared here");
        break;
      }
  }
}

static void
load_imports(Program *p)
{
  for (u32 i = 0; i < p->units.len; i++) {
    Unit *u = p->units.data[i];
    check_duplicates(p, u);
    for (u32 k = 0; k < u->root->nkids; k++) {
      Node *d = u->root->kids[k];
      Unit *other = d->kind == N_IMPORT ? unit_import(p, u, d) : NULL;
      if (other && other != u)
        vec_push(p->a, &u->imports, other);
    }
  }
}

static void
load_library(Program *p)
{
  for (const StdlibFile *f = stdlib_files; f->name; f++) {
    const char *name = arena_printf(p->a, "<%s>", f->name);
    Unit *u = unit_add(p, intern(p->c, f->name), source_add(p->c, name, f->text, f->len));
    if (u)
      vec_push(p->a, &p->library, u);
  }
}

/* Parse the file at base, what it imports, and the library. NULL after errors. */
Program *
program_load(Ctx *c, u32 base, const FrontendOptions *o)
{
  u32 before = diag_errors(c);
  Program *p = NEW(c->scratch, Program);
  *p = (Program){.c = c, .a = c->scratch, .o = o};
  p->main = unit_add(p, path_clean(p, source_locate(c, base).file), base);
  if (p->main) {
    load_library(p);
    load_imports(p);
  }
  return diag_errors(c) == before ? p : NULL;
}

static const char *
define_text(Program *p, const FrontendDefine *d)
{
  return arena_printf(p->a, "const %s = %s;", d->name, d->value);
}

/* The expression of `-D name=value`, read as a file of its own. NULL after errors. */
Node *
program_parse_define(Program *p, const FrontendDefine *d)
{
  const char *text = define_text(p, d);
  u32 base = source_add(p->c, arena_printf(p->a, "<-D %s>", d->name), text, strlen(text));
  Node *root = parse_file(p->c, p->a, base);
  if (!root)
    return NULL;
  if (root->nkids == 1 && root->kids[0]->kind == N_CONST)
    return kid(root->kids[0], 1);
  diag(p->c, root->span, E_MISUSE, arena_printf(p->a, "the value of -D %s must be one expression", d->name));
  return NULL;
}

static bool
find_in(Unit *u, const char *name, Unit **unit, u32 *index)
{
  for (u32 i = 0; i < u->root->nkids; i++)
    if (is_decl_named(u->root->kids[i], name)) {
      *unit = u;
      *index = i;
      return true;
    }
  return false;
}

/* A declaration visible from u. */
bool
program_find(Program *p, Unit *u, const char *name, Unit **unit, u32 *index)
{
  if (find_in(u, name, unit, index))
    return true;
  for (u32 i = 0; i < u->imports.len; i++)
    if (find_in(u->imports.data[i], name, unit, index))
      return true;
  for (u32 i = 0; i < p->library.len; i++)
    if (find_in(p->library.data[i], name, unit, index))
      return true;
  return false;
}
