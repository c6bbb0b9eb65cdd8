#include "device.h"
#include "dtype.h"
#include "spills.h"
#include <stdlib.h>
#include <string.h>

static int
is_cubin(const void *image, size_t len)
{
  return len >= 4 && !memcmp(image, "\177ELF", 4);
}

/* The driver reads PTX up to a NUL, which the caller's text may lack. */
static char *
with_nul(const void *text, size_t len)
{
  char *s = malloc(len + 1);
  if (s) {
    memcpy(s, text, len);
    s[len] = 0;
  }
  return s;
}

static uint32_t
param_align(const TilertParam *p)
{
  const int tensor = p->kind == TILERT_PARAM_TENSOR || p->kind == TILERT_PARAM_VIEW;
  if (p->kind == TILERT_PARAM_TENSORMAP || (tensor && p->part == TILERT_TENSOR_MAP))
    return 64;
  return p->kind == TILERT_PARAM_RAW ? p->divisible : p->size;
}

static int
kernel_check(const TilertManifest *m, const TilertDeviceInfo *info, GridExpr *e, TilertError *err)
{
  if (m->nparams > TILERT_MAX_PARAMS || m->warps == 0 || m->warps > 32 || !memchr(m->kernel, 0, sizeof m->kernel) ||
      !memchr(m->grid, 0, sizeof m->grid))
    return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %.127s is malformed", m->kernel);
  for (uint32_t i = 0; i < m->nparams; i++)
    if (!memchr(m->params[i].name, 0, sizeof m->params[i].name) || !memchr(m->params[i].dtype, 0, sizeof m->params[i].dtype))
      return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s: parameter %u is malformed", m->kernel, i);
  for (uint32_t i = 0; i < m->nparams; i++) {
    const int tensor = m->params[i].kind == TILERT_PARAM_TENSOR || m->params[i].kind == TILERT_PARAM_VIEW;
    const char *wrong = tensor ? manifest_tensor_wrong(&m->params[i]) : NULL;
    if (wrong)
      return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s, parameter %s: %s", m->kernel, m->params[i].name, wrong);
  }
  const char *wrong = manifest_tensors_wrong(m);
  if (!wrong)
    wrong = manifest_grid_wrong(m, e);
  if (wrong)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s: %s", m->kernel, wrong);
  if (m->napart && !manifest_pairs_fit(m))
    return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s: a pair of what are no pointers", m->kernel);
  wrong = manifest_resident_wrong(m);
  if (wrong)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s: %s", m->kernel, wrong);
  if (!manifest_cluster_fits(m))
    return rt_error_set(err, TILERT_E_ARGUMENT, "the manifest of kernel %s: a cluster of %u x %u x %u blocks", m->kernel, m->cluster[0],
                        m->cluster[1], m->cluster[2]);
  if (m->shared > info->shared_max)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s needs %u bytes of shared memory; %s has %u per block",
                     m->kernel, m->shared, info->name, info->shared_max);
  return TILERT_OK;
}

static int
kernel_layout(TilertKernel *k, TilertError *err)
{
  uint32_t at = 0;
  k->nargs = tilert_manifest_args(&k->manifest, k->first);
  k->first[k->nargs] = manifest_own(&k->manifest);
  for (uint32_t i = 0; i < k->manifest.nparams; i++) {
    const TilertParam *p = &k->manifest.params[i];
    Dtype t = p->kind == TILERT_PARAM_SCALAR ? rt_dtype_find(p->dtype) : DTYPE_NONE;
    if (p->size != tilert_param_size(p) || p->size == 0 || p->divisible == 0)
      return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s, parameter %s: malformed manifest", k->manifest.kernel,
                       p->name);
    uint32_t align = param_align(p);
    at = (at + align - 1) / align * align;
    k->offset[i] = at;
    k->dtype[i] = (uint8_t)t;
    at += p->size;
  }
  if (at <= PARAM_BYTES_MAX)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s: its parameters take %u bytes, %d is the most",
                   k->manifest.kernel, at, PARAM_BYTES_MAX);
}

/* What runs at a time, if nothing else does: programs beyond that would begin when others end. */
static int
count_resident(TilertKernel *k, TilertError *err)
{
  uint32_t each = 0, most = k->manifest.persistent;
  int status = k->device->ops->kernel_occupancy(k, &each, err);
  each = each < most ? each : most;
  k->resident = (each ? each : 1) * k->device->info.multiprocessors;
  return status;
}

static int
load_kernels(TilertModule *m, const TilertManifest *manifests, TilertError *err)
{
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < m->nkernels; i++) {
    TilertKernel *k = &m->kernels[i];
    k->module = m;
    k->device = m->device;
    k->manifest = manifests[i];
    status = kernel_check(&k->manifest, &m->device->info, &k->grid, err);
    if (!status)
      status = kernel_layout(k, err);
    if (!status)
      status = m->device->ops->kernel_load(k, err);
    if (!status && k->manifest.persistent)
      status = count_resident(k, err);
    if (!status)
      launch_plan(k);
  }
  return status;
}

static int
distrusted(const TilertModule *m, const char *text)
{
  for (size_t i = 0; i < m->nkernels; i++)
    if (spills_distrusted(m->kernels[i].local, text))
      return 1;
  return 0;
}

static int
load_text(TilertModule *m, const char *text, size_t len, int careful, const TilertManifest *manifests, TilertError *err)
{
  int status = m->device->ops->module_load(m->device, text, len, careful, &m->native, err);
  if (status == TILERT_E_MODULE)
    rt_error_locate(err, text);
  return status ? status : load_kernels(m, manifests, err);
}

static int
load_image(TilertModule *m, const void *image, size_t len, const TilertManifest *manifests, TilertError *err)
{
  const DeviceOps *ops = m->device->ops;
  if (is_cubin(image, len)) {
    int status = ops->module_load(m->device, image, len, 0, &m->native, err);
    return status ? status : load_kernels(m, manifests, err);
  }
  char *text = with_nul(image, len);
  if (!text)
    return error_no_memory(err);
  int status = load_text(m, text, len, 0, manifests, err);
  if (!status && distrusted(m, text)) {
    ops->module_unload(m->device, m->native);
    m->native = NULL;
    status = load_text(m, text, len, 1, manifests, err);
  }
  free(text);
  return status;
}

static int
module_new(TilertDevice *dev, const void *image, size_t len, const TilertManifest *manifests, size_t n,
           TilertModule **out, TilertError *err)
{
  if (n > (SIZE_MAX - sizeof(TilertModule)) / sizeof(TilertKernel))
    return rt_error_set(err, TILERT_E_ARGUMENT, "a module of %zu kernels", n);
  TilertModule *m = calloc(1, sizeof *m + n * sizeof(TilertKernel));
  if (!m)
    return error_no_memory(err);
  m->device = device_retain(dev);
  atomic_init(&m->refs, 1);
  m->nkernels = n;
  int status = load_image(m, image, len, manifests, err);
  if (status)
    tilert_module_destroy(m);
  else
    *out = m;
  return status;
}

static int
load_described(TilertDevice *dev, const char *text, size_t len, TilertModule **out, TilertError *err)
{
  size_t n = 0;
  int status = tilert_manifest_parse(text, len, NULL, 0, &n, err);
  if (status)
    return status;
  if (n == 0)
    return rt_error_set(err, TILERT_E_MODULE, "the PTX has no //@tilec line and no manifest was given");
  TilertManifest *all = malloc(n * sizeof *all);
  if (!all)
    return error_no_memory(err);
  status = tilert_manifest_parse(text, len, all, n, &n, err);
  if (!status)
    status = module_new(dev, text, len, all, n, out, err);
  free(all);
  return status;
}

int
tilert_module_load(TilertDevice *dev, const void *image, size_t len, const TilertManifest *manifests, size_t nmanifests,
                   TilertModule **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  NEED(image);
  NEED(manifests || !nmanifests);
  if (nmanifests)
    return module_new(dev, image, len, manifests, nmanifests, out, err);
  if (is_cubin(image, len))
    return rt_error_set(err, TILERT_E_ARGUMENT, "a cubin needs manifests: it does not carry its own");
  return load_described(dev, image, len, out, err);
}

TilertModule *
module_retain(TilertModule *m)
{
  atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  return m;
}

void
tilert_module_destroy(TilertModule *m)
{
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
    return;
  if (m->native)
    m->device->ops->module_unload(m->device, m->native);
  device_release(m->device);
  free(m);
}

size_t
tilert_module_kernel_count(const TilertModule *m)
{
  return m ? m->nkernels : 0;
}

int
tilert_module_kernel(TilertModule *m, const char *name, TilertKernel **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(m);
  if (!name && m->nkernels != 1)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the module holds %zu kernels: name the one you want", m->nkernels);
  for (size_t i = 0; i < m->nkernels; i++)
    if (!name || !strcmp(m->kernels[i].manifest.kernel, name)) {
      *out = &m->kernels[i];
      return TILERT_OK;
    }
  return rt_error_set(err, TILERT_E_ARGUMENT, "the module has no kernel \"%.100s\"; its first is \"%s\"", name,
                   m->kernels[0].manifest.kernel);
}

TilertKernel *
tilert_module_kernel_at(TilertModule *m, size_t index)
{
  return m && index < m->nkernels ? &m->kernels[index] : NULL;
}

const TilertManifest *
tilert_kernel_manifest(const TilertKernel *k)
{
  return k ? &k->manifest : NULL;
}

int
tilert_kernel_info(TilertKernel *k, TilertKernelInfo *out, TilertError *err)
{
  NEED(k);
  NEED(out);
  *out = (TilertKernelInfo){.dynamic_shared = k->manifest.shared, .threads = 32 * k->manifest.warps};
  return k->device->ops->kernel_info(k, out, err);
}

int
tilert_kernel_occupancy(TilertKernel *k, uint32_t *blocks, TilertError *err)
{
  NEED(k);
  NEED(blocks);
  *blocks = 0;
  return k->device->ops->kernel_occupancy(k, blocks, err);
}
