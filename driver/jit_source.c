/* jit_source.c - what a program is made of, by the ending of its name: .tile text, .tir text, or .ptx text that is loaded as it is, with
 * the manifests that it carries or, from other compilers, with what its headers say. */
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

/* ---- PTX ---- */

int
jit_ptx_manifests(const char *ptx, size_t len, TilertManifest **all, size_t *n, int *own, TilertError *err)
{
  int status = tilert_manifest_parse(ptx, len, NULL, 0, n, err);
  *all = NULL;
  *own = status || *n;
  if (!*own)
    status = tilert_manifest_derive(ptx, len, NULL, 0, n, err);
  if (!status && !*n)
    status = jit_fail(err, TILERT_E_MODULE, "the PTX holds no kernel");
  if (status)
    return status;
  if (!(*all = malloc(*n * sizeof **all)))
    return jit_no_memory(err);
  status = *own ? tilert_manifest_parse(ptx, len, *all, *n, n, err) : tilert_manifest_derive(ptx, len, *all, *n, n, err);
  if (status) {
    free(*all);
    *all = NULL;
  }
  return status;
}

/* As PTX writes it for what is raw: .u64, .b8[12]. */
static void
type_text(const TilertParam *p, char out[24])
{
  if (p->kind == TILERT_PARAM_TENSOR)
    snprintf(out, 24, "tensor<%s, %u>", p->dtype, p->rank);
  else if (p->kind != TILERT_PARAM_RAW)
    snprintf(out, 24, "%s", p->kind == TILERT_PARAM_TENSORMAP ? "tensormap" : p->dtype);
  else if (p->dtype[0])
    snprintf(out, 24, ".%s", p->dtype);
  else
    snprintf(out, 24, ".b8[%u]", p->size);
}

/* The lines of tilec_describe for one manifest, at most size bytes with the NUL, and for another compiler's kernel the shape that its
 * blocks must have, zeros if they may have any; their length. */
static size_t
describe_kernel(const TilertManifest *m, int own, char *out, size_t size)
{
  static const char *const kinds[] = {"pointer", "scalar", "scalar", "raw", "tensor"};
  uint32_t first[TILERT_MAX_PARAMS], nargs = tilert_manifest_args(m, first);
  size_t n = (size_t)snprintf(out, size, "kernel %s warps=%u\n", m->kernel, m->warps);
  if (!own)
    n += (size_t)snprintf(out ? out + n : NULL, out ? size - n : 0, "shape %u %u %u\n", m->block[0], m->block[1], m->block[2]);
  for (uint32_t i = 0; i < nargs; i++) {
    const TilertParam *p = &m->params[first[i]];
    char type[24];
    type_text(p, type);
    n += (size_t)snprintf(out ? out + n : NULL, out ? size - n : 0, "param %s %s %s\n", p->name, kinds[p->kind], type);
  }
  return n;
}

static size_t
describe_kernels(const TilertManifest *all, size_t n, int own, const char *kernel, char *out, size_t size)
{
  size_t at = 0;
  for (size_t i = 0; i < n; i++)
    if (!kernel || !strcmp(all[i].kernel, kernel))
      at += describe_kernel(&all[i], own, out ? out + at : NULL, out ? size - at : 0);
  return at;
}

/* Compilers of C++ make names that nobody guesses: say which there are. */
static int
no_such_kernel(const TilertManifest *all, size_t n, const char *kernel, TilertError *err)
{
  char text[sizeof err->message];
  int at = snprintf(text, sizeof text, "the PTX has no kernel '%.100s'; it has ", kernel);
  for (size_t i = 0; i < n && at < (int)sizeof text - TILERT_NAME_MAX - 10; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "", all[i].kernel);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

int
jit_describe_ptx(const TilejitProgram *p, const char *kernel, char **out, TilertError *err)
{
  size_t n = 0;
  int own;
  TilertManifest *all;
  *out = NULL;
  int status = jit_ptx_manifests(p->text, p->len, &all, &n, &own, err);
  if (status)
    return status;
  size_t size = describe_kernels(all, n, own, kernel, NULL, 0) + 1;
  if (size == 1)
    status = no_such_kernel(all, n, kernel, err);
  else if (!(*out = malloc(size)))
    status = jit_no_memory(err);
  if (*out)
    describe_kernels(all, n, own, kernel, *out, size);
  free(all);
  return status;
}
