/* jit_source.c - what a program is made of, by the ending of its name: .tile text, .tir text, or .ptx text that is loaded as it is. */
#include "jit_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
ends_in(const char *name, const char *ending)
{
  size_t n = strlen(name), m = strlen(ending);
  return n >= m && !strcmp(name + n - m, ending);
}

SourceForm
jit_source_form(const char *name)
{
  return ends_in(name, ".ptx") ? FORM_PTX : ends_in(name, ".tir") ? FORM_TIR : FORM_TILE;
}

/* The lines of tilec_describe for one manifest, at most size bytes with the NUL; their length. */
static size_t
describe_kernel(const TilertManifest *m, char *out, size_t size)
{
  static const char *const kinds[] = {"pointer", "scalar", "scalar"};
  size_t n = (size_t)snprintf(out, size, "kernel %s warps=%u\n", m->kernel, m->warps);
  for (uint32_t i = 0; i < m->nparams; i++) {
    const TilertParam *p = &m->params[i];
    const char *type = p->kind == TILERT_PARAM_TENSORMAP ? "tensormap" : p->dtype;
    n += (size_t)snprintf(out ? out + n : NULL, out ? size - n : 0, "param %s %s %s\n", p->name, kinds[p->kind], type);
  }
  return n;
}

static size_t
describe_kernels(const TilertManifest *all, size_t n, const char *kernel, char *out, size_t size)
{
  size_t at = 0;
  for (size_t i = 0; i < n; i++)
    if (!kernel || !strcmp(all[i].kernel, kernel))
      at += describe_kernel(&all[i], out ? out + at : NULL, out ? size - at : 0);
  return at;
}

int
jit_describe_ptx(const TilejitProgram *p, const char *kernel, char **out, TilertError *err)
{
  size_t n = 0;
  *out = NULL;
  int status = tilert_manifest_parse(p->text, p->len, NULL, 0, &n, err);
  if (!status && !n)
    status = jit_fail(err, TILERT_E_MODULE, "the PTX has no //@tilec line, which says what its kernels take");
  if (status)
    return status;
  TilertManifest *all = malloc(n * sizeof *all);
  if (!all)
    return jit_no_memory(err);
  status = tilert_manifest_parse(p->text, p->len, all, n, &n, err);
  size_t size = status ? 0 : describe_kernels(all, n, kernel, NULL, 0) + 1;
  if (size == 1)
    status = jit_fail_named(err, "the PTX has no kernel", kernel);
  else if (!status && !(*out = malloc(size)))
    status = jit_no_memory(err);
  if (*out)
    describe_kernels(all, n, kernel, *out, size);
  free(all);
  return status;
}
