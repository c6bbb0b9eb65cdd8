/* module.c - files: imports and what their declarations make visible. A file sees its own declarations first, then those
 * of the files it imports (not of the files these import), then the library. Of the library only what is named is parsed,
 * one declaration at a time: a compilation costs what it uses. */
#define _POSIX_C_SOURCE 200809L
#include "parser.h"
#include "sema.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
unit_new(Program *p, const char *path, u32 base, Node *root)
{
  Unit *u = NEW(p->a, Unit);
  u->path = path;
  u->base = base;
  u->root = root;
  u->values = NEW_ARRAY(p->a, Val, root->nkids);
  u->computing = NEW_ARRAY(p->a, bool, root->nkids);
  for (u32 i = 0; i < root->nkids; i++)
    u->values[i] = val_void(root->kids[i] ? root->kids[i]->span : root->span);
  return u;
}

static Unit *
unit_add(Program *p, const char *path, u32 base)
{
  Node *root = parse_file(p->c, p->a, base);
  if (!root)
    return NULL;
  Unit *u = unit_new(p, path, base, root);
  vec_push(p->a, &p->units, u);
  return u;
}

/* n bytes of the file at path; an errno value, -1 if it has another number of them by now. */
static int
read_bytes(const char *path, char *to, size_t n)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = fd < 0 ? errno : 0;
  for (size_t at = 0; !error && at < n;) {
    ssize_t got = read(fd, to + at, n - at);
    error = got > 0 || (got < 0 && errno == EINTR) ? 0 : got < 0 ? errno : -1;
    at += got > 0 ? (size_t)got : 0;
  }
  char more;
  if (!error && read(fd, &more, 1) > 0)
    error = -1;
  if (fd >= 0)
    close(fd);
  return error;
}

/* The file's text, NUL-terminated; NULL with *why set. Only ordinary files are read. The memory comes first: when there is none, no
 * file is open. */
static char *
read_file(Program *p, const char *path, size_t *len, const char **why)
{
  struct stat st;
  *why = "no such file";
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return NULL;
  *why = "it is larger than 16 MiB";
  if (st.st_size > FILE_BYTES_MAX)
    return NULL;
  *len = (size_t)st.st_size;
  char *text = NEW_ARRAY(p->a, char, *len + 1);
  int error = read_bytes(path, text, *len);
  if (error == ENOMEM)
    ctx_no_memory(p->c);
  *why = error < 0 ? "it changes while it is read" : arena_printf(p->a, "%s", strerror(error));
  return error ? NULL : text;
}

static Unit *
unit_known(Program *p, const char *path)
{
  for (u32 i = 0; i < p->units.len; i++)
    if (p->units.data[i]->path == path)
      return p->units.data[i];
  return NULL;
}

/* ---- the library ---- */

static u32
library_count(void)
{
  u32 n = 0;
  while (stdlib_files[n].name)
    n++;
  return n;
}

/* A file of the library, none of its declarations parsed. */
static Unit *
library_unit(Program *p, u32 file)
{
  const StdlibFile *f = &stdlib_files[file];
  if (p->library[file])
    return p->library[file];
  u32 base = source_add(p->c, SOURCE_LIBRARY, arena_printf(p->a, "<%s>", f->name), f->text, f->len);
  Node *root = ast_node(p->a, N_FILE, (Span){base, base}, 0, NULL);
  root->nkids = f->ndecls;
  root->kids = NEW_ARRAY(p->a, Node *, f->ndecls);
  p->library[file] = unit_new(p, intern(p->c, f->name), base, root);
  p->library[file]->library = true;
  return p->library[file];
}

static Unit *
library_import(Program *p, const char *name)
{
  for (u32 i = 0; stdlib_files[i].name; i++)
    if (!strcmp(stdlib_files[i].name, name))
      return library_unit(p, i);
  return NULL;
}

static const StdlibDecl *
library_decl(const char *name)
{
  u32 lo = 0, hi = stdlib_ndecls;
  while (lo < hi) {
    u32 mid = (lo + hi) / 2;
    int order = strcmp(name, stdlib_decls[mid].name);
    if (order == 0)
      return &stdlib_decls[mid];
    if (order < 0)
      hi = mid;
    else
      lo = mid + 1;
  }
  return NULL;
}

/* The declaration in its unit; one that cannot be parsed stays an error node. */
static Node *
library_parse(Program *p, Unit *u, const StdlibDecl *d)
{
  Node **kid = &u->root->kids[d->index];
  if (*kid)
    return *kid;
  Span at = {u->base + d->at, u->base + d->at + d->len};
  Node *root = parse_range(p->c, p->a, at.lo, d->len);
  *kid = root && root->nkids == 1 ? root->kids[0] : ast_node(p->a, N_ERROR, at, 0, NULL);
  u->values[d->index] = val_void((*kid)->span);
  return *kid;
}

/* ---- imports ---- */

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
  if (text && p->units.len < FILES_MAX) {
    u32 base = source_add(p->c, SOURCE_PROGRAM, path, text, len);
    return source_check(p->c, base) ? unit_add(p, path, base) : NULL;
  }
  Unit *library = library_import(p, import->name);
  if (!library)
    import_hint(p, diag(p->c, import->at, E_IMPORT, import->name, text ? "too many files" : why), import->name);
  return library;
}

static bool
is_decl_named(const Node *d, const char *name)
{
  return d->kind != N_IMPORT && d->kind != N_ERROR && d->name == name;
}

/* The place of name in u's index: what stands there, or 0. */
static u32 *
unit_slot(const Unit *u, const char *name)
{
  u32 i = name_hash(name) & (u->cap - 1);
  while (u->index[i] && u->root->kids[u->index[i] - 1]->name != name)
    i = (i + 1) & (u->cap - 1);
  return &u->index[i];
}

/* Enter u's declarations in its index; of those of one name the first counts. */
static void
index_unit(Program *p, Unit *u)
{
  u->cap = next_pow2(2 * u->root->nkids + 2);
  u->index = NEW_ARRAY(p->a, u32, u->cap);
  for (u32 i = 0; i < u->root->nkids; i++) {
    const Node *d = u->root->kids[i];
    if (!d->name || !is_decl_named(d, d->name))
      continue;
    u32 *slot = unit_slot(u, d->name);
    if (*slot)
      diag_note(p->c, diag(p->c, d->at, E_REDEFINED, d->name), u->root->kids[*slot - 1]->at, "it was declared here");
    else
      *slot = i + 1;
  }
}

static void
load_imports(Program *p)
{
  for (u32 i = 0; i < p->units.len; i++) {
    Unit *u = p->units.data[i];
    index_unit(p, u);
    for (u32 k = 0; k < u->root->nkids; k++) {
      Node *d = u->root->kids[k];
      Unit *other = d->kind == N_IMPORT ? unit_import(p, u, d) : NULL;
      if (other && other != u)
        vec_push(p->a, &u->imports, other);
    }
  }
}

static bool
has_kernel(const Program *p, const char *name)
{
  for (u32 i = 0; i < p->kernels.len; i++)
    if (p->kernels.data[i].node->name == name)
      return true;
  return false;
}

static void
add_kernels(Program *p, Unit *u)
{
  for (u32 i = 0; !u->library && i < u->root->nkids; i++)
    if (u->root->kids[i]->kind == N_KERNEL && !has_kernel(p, u->root->kids[i]->name))
      vec_push(p->a, &p->kernels, ((KernelDecl){u, u->root->kids[i]}));
}

/* The kernels to be compiled. A file without any has those of the files it imports, to which defines may then give what is declared here:
 * so functions of one file get into kernels of another. Of kernels of one name the first import's counts, as for all names. */
static void
find_kernels(Program *p)
{
  add_kernels(p, p->main);
  u32 nimports = p->kernels.len ? 0 : p->main->imports.len;
  for (u32 i = 0; i < nimports; i++)
    add_kernels(p, p->main->imports.data[i]);
}

/* Parse the file at base and what it imports. NULL after errors. */
Program *
program_load(Ctx *c, u32 base, const FrontendOptions *o)
{
  u32 before = diag_errors(c);
  Program *p = NEW(c->scratch, Program);
  *p = (Program){.c = c, .a = c->scratch, .o = o, .library = NEW_ARRAY(c->scratch, Unit *, library_count())};
  p->main = unit_add(p, path_clean(p, source_locate(c, base).file), base);
  if (p->main) {
    load_imports(p);
    find_kernels(p);
  }
  return diag_errors(c) == before ? p : NULL;
}

/* The -D of that name, or NULL: the last one counts. */
const FrontendDefine *
program_define(const Program *p, const char *name)
{
  for (u32 i = p->o->ndefines; i-- > 0;)
    if (!strcmp(p->o->defines[i].name, name))
      return &p->o->defines[i];
  return NULL;
}

/* d as a declaration. A value that begins with no quote is text if `word`. */
static char *
define_text(Program *p, const FrontendDefine *d, bool word)
{
  Buf b = {.arena = p->a};
  const char *s = d->value + strspn(d->value, " \t");
  if (!word || *s == '"')
    return arena_printf(p->a, "const %s = %s;", d->name, d->value);
  buf_printf(&b, "const %s = \"", d->name);
  for (s = d->value; *s; s++)
    buf_printf(&b, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  buf_puts(&b, "\";");
  return b.data;
}

/* The expression of `-D name=value`, read as a file of its own; word: a string needs no quotes. NULL after errors. */
Node *
program_parse_define(Program *p, const FrontendDefine *d, bool word)
{
  char *text = define_text(p, d, word);
  for (char *s = text; s < text + strlen("const ") + strlen(d->name); s++)
    *s = *s == '.' ? '_' : *s;                 /* a part of an argument */
  u32 base = source_add(p->c, SOURCE_DEFINE, arena_printf(p->a, "<-D %s>", d->name), text, strlen(text));
  Node *root = parse_file(p->c, p->a, base);
  if (!root)
    return NULL;
  if (root->nkids == 1 && root->kids[0]->kind == N_CONST)
    return kid(root->kids[0], 1);
  diag(p->c, root->span, E_MISUSE, arena_printf(p->a, "the value of -D %s must be one expression", d->name));
  return NULL;
}

/* A declaration of the library, of this unit of it unless NULL. */
static bool
find_in_library(Program *p, const Unit *only, const char *name, Unit **unit, u32 *index)
{
  const StdlibDecl *d = library_decl(name);
  if (!d || (only && p->library[d->file] != only))
    return false;
  *unit = library_unit(p, d->file);
  *index = d->index;
  return is_decl_named(library_parse(p, *unit, d), name);
}

static bool
find_in(Program *p, Unit *u, const char *name, Unit **unit, u32 *index)
{
  if (u->library)
    return find_in_library(p, u, name, unit, index);
  u32 place = *unit_slot(u, name);
  *unit = u;
  *index = place - 1;
  return place != 0;
}

/* A declaration visible from u. */
bool
program_find(Program *p, Unit *u, const char *name, Unit **unit, u32 *index)
{
  if (find_in(p, u, name, unit, index))
    return true;
  for (u32 i = 0; i < u->imports.len; i++)
    if (find_in(p, u->imports.data[i], name, unit, index))
      return true;
  return find_in_library(p, NULL, name, unit, index);
}

bool
program_find_library(Program *p, const char *name, Unit **unit, u32 *index)
{
  return find_in_library(p, NULL, name, unit, index);
}
