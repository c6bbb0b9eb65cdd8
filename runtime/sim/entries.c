/* entries.c - the kernels of a PTX text, by their headers alone. */
#include "decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KERNEL_param_N, which compilers make where a name was, is pN. */
static void
name_param(const Func *f, const FuncParam *p, size_t i, SimParam *out)
{
  static const char mid[] = "_param_";
  size_t n = f->name.n, at = n + sizeof mid - 1;
  bool made = p->name.n > at && !memcmp(p->name.s, f->name.s, n) && !memcmp(p->name.s + n, mid, sizeof mid - 1);
  if (made || p->name.n >= sizeof out->name)
    snprintf(out->name, sizeof out->name, "p%zu", i);
  else
    snprintf(out->name, sizeof out->name, "%.*s", (int)p->name.n, p->name.s);
}

static void
describe_param(const FuncParam *p, SimParam *out)
{
  *out = (SimParam){.size = p->size, .align = p->align, .pointer = p->pointer && p->size == 8,
                    .tensormap = p->size == 128 && p->align == 64};
  snprintf(out->type, sizeof out->type, "%s", p->array ? "" : ptx_type_text[p->type]);
}

static void
describe_entry(Reader *r, const Func *f, void (*each)(void *user, const SimEntry *e), void *user)
{
  SimParam *p = calloc(f->nparam + 1, sizeof *p);
  SimEntry e = {.nparams = (uint32_t)f->nparam, .params = p, .long_name = f->name.n >= sizeof e.name};
  if (!p) {
    reader_no_memory(r);
    return;
  }
  for (size_t i = 0; i < f->nparam; i++) {
    describe_param(&f->param[i], &p[i]);
    name_param(f, &f->param[i], i, &p[i]);
  }
  snprintf(e.name, sizeof e.name, "%.*s", (int)(e.long_name ? sizeof e.name - 1 : f->name.n), f->name.s);
  memcpy(e.reqntid, f->reqntid, sizeof e.reqntid);
  memcpy(e.maxntid, f->maxntid, sizeof e.maxntid);
  each(user, &e);
  free(p);
}

int
sim_entries(const char *ptx, size_t len, void (*each)(void *user, const SimEntry *e), void *user, SimError *err)
{
  SimModule none = {0};
  Reader r = {.mod = &none, .err = err};
  memset(err, 0, sizeof *err);
  reader_read(&r, ptx, len);
  for (size_t i = 0; i < r.nfunc && !r.failed; i++)
    if (r.func[i]->entry && r.func[i]->has_body)
      describe_entry(&r, r.func[i], each, user);
  int rc = r.failed ? -1 : 0;
  for (uint32_t i = 0; i < none.nfiles; i++)
    free(none.files[i]);
  free(none.files);
  free(none.shared);
  free(none.global);
  free(none.strings);
  reader_free(&r);
  return rc;
}
