/* jit_form.c - kernels compiled on first use, once per pattern of arguments.
 *
 * The pattern of a launch is two bit sets over its arguments: which integers equal 1, and which integers and
 * addresses are divisible by 16. Each pattern seen has one Form: a compiled, loaded kernel. Forms hang in the
 * buckets of a fixed table; they are only ever added, in front, with a release store, and live until the program
 * goes. So a launch finds its form by loading the bucket and walking the chain, without a lock; only a miss takes
 * the kernel's lock, looks again, and compiles under it, so that one thread compiles while others wait for it.
 *
 * Compiled forms are kept on disk (cache.h). The key is made of all that the result depends on: the build of the compiler,
 * every source text that was read to describe the kernel, its name, defines, the pattern, the target, options, and the
 * device with its driver's version. A form that was compiled from other texts than the kernel was described from (a file
 * changed in between) is used but not kept. On a GPU the entry holds the driver's cubin beside the PTX, so that a warm
 * start compiles nothing at all.
 */
#include "jit_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Pattern
jit_pattern_of(const TilejitKernel *k, const TilertArg *args, size_t n)
{
  Pattern p = {0, 0};
  if (!k->program->specialise)
    return p;
  for (size_t i = 0; i < n; i++) {
    uint64_t bit = UINT64_C(1) << i, value = args[i].u.pointer;
    if (args[i].kind == TILERT_ARG_INT && k->integers & bit) {
      p.equal_1 |= value == 1 ? bit : 0;
    } else if (args[i].kind == TILERT_ARG_BUFFER && k->pointers & bit && args[i].u.buffer) {
      value = tilert_buffer_address(args[i].u.buffer);
    } else if (args[i].kind != TILERT_ARG_POINTER || !(k->pointers & bit)) {
      continue;
    }
    p.divisible_16 |= value % 16 == 0 ? bit : 0;
  }
  return p;
}

static size_t
pattern_bucket(Pattern p)
{
  uint64_t h = (p.equal_1 * UINT64_C(0x9e3779b97f4a7c15)) ^ (p.divisible_16 * UINT64_C(0xc2b2ae3d27d4eb4f));
  return (size_t)(h >> 58) % BUCKETS;
}

static Form *
form_find(TilejitKernel *k, Pattern p, size_t bucket)
{
  Form *f = atomic_load_explicit(&k->forms[bucket], memory_order_acquire);
  while (f && (f->equal_1 != p.equal_1 || f->divisible_16 != p.divisible_16))
    f = f->next;
  return f;
}

static size_t
list_facts(const TilejitKernel *k, Pattern p, TilecFact *facts)
{
  size_t n = 0;
  for (size_t i = 0; i < k->nargs; i++) {
    if (p.equal_1 >> i & 1)
      facts[n++] = (TilecFact){k->args[i]->name, TILEC_FACT_EQUAL, 1, NULL};
    if (p.divisible_16 >> i & 1)
      facts[n++] = (TilecFact){k->args[i]->name, TILEC_FACT_DIVISIBLE, 16, NULL};
  }
  return n;
}

/* ---- compiled forms on disk ---- */

/* An entry: lengths, then the texts with their NULs, then the cubin (none on sim). */
typedef struct Entry { uint64_t ptx, diagnostics, cubin; } Entry;

int
jit_key_start(const TilejitKernel *k, const char *what, CacheHash **out)
{
  const TilejitProgram *p = k->program;
  const TilertDeviceInfo *dev = tilert_device_info(p->device);
  const uint32_t device[] = {dev->is_sim, dev->driver, dev->capability_major, dev->capability_minor, (uint32_t)p->line_info};
  CacheHash *h = *out = k->sources[0] | k->sources[1] ? cache_hash_new() : NULL;
  if (!h)
    return 0;
  int build = cache_hash_build(h);
  cache_hash_text(h, what);
  cache_hash_add(h, k->sources, sizeof k->sources);
  cache_hash_text(h, k->name);
  cache_hash_text(h, p->target);
  cache_hash_add(h, device, sizeof device);
  for (size_t i = 0; i < k->ndefines; i++) {
    cache_hash_text(h, k->defines[i].name);
    cache_hash_text(h, k->defines[i].value);
  }
  return build;
}

/* False if nothing may be kept. */
static int
form_key(const TilejitKernel *k, const Form *f, CacheKey *key)
{
  const uint64_t pattern[] = {f->equal_1, f->divisible_16};
  CacheHash *h = NULL;
  int build = k->program->cache && jit_key_start(k, "form 1", &h);
  if (!h)
    return 0;
  cache_hash_add(h, pattern, sizeof pattern);
  *key = cache_hash_end(h);
  return build;
}

static int
load_cubin(TilejitKernel *k, Form *f, const void *cubin, size_t len, TilertError *err)
{
  TilertManifest m;
  size_t n = 0;
  int status = tilert_manifest_parse(f->ptx, strlen(f->ptx), &m, 1, &n, err);
  return status ? status : tilert_module_load(k->program->device, cubin, len, &m, 1, &f->module, err);
}

/* Take the form from the bytes of an entry; false if they are not those of one, or do not load. */
static int
entry_take(TilejitKernel *k, Form *f, const char *bytes, size_t len)
{
  Entry e;
  TilertError err;
  if (len < sizeof e)
    return 0;
  memcpy(&e, bytes, sizeof e);
  const char *ptx = bytes + sizeof e;
  len -= sizeof e;
  if (!e.ptx || e.ptx > len || !e.diagnostics || e.diagnostics > len - e.ptx || e.cubin != len - e.ptx - e.diagnostics ||
      ptx[e.ptx - 1] || ptx[e.ptx + e.diagnostics - 1])
    return 0;
  double start = jit_now_ms();
  f->ptx = jit_copy_text(ptx, e.ptx - 1);
  int status = !f->ptx ? TILERT_E_MEMORY
             : e.cubin ? load_cubin(k, f, ptx + e.ptx + e.diagnostics, e.cubin, &err)
                       : tilert_module_load(k->program->device, f->ptx, e.ptx - 1, NULL, 0, &f->module, &err);
  f->load_ms = jit_now_ms() - start;
  if (!status)
    jit_keep_diagnostics(k->program, ptx + e.ptx);
  return !status;
}

static int
form_recall(TilejitKernel *k, Form *f, CacheKey key)
{
  size_t len = 0;
  double start = jit_now_ms();
  char *bytes = cache_get(k->program->cache, key, &len);
  f->compile_ms = jit_now_ms() - start;
  f->from_cache = bytes && entry_take(k, f, bytes, len);
  free(bytes);
  if (!f->from_cache) {
    free(f->ptx);
    f->ptx = NULL;
  }
  return f->from_cache;
}

static void
form_keep(TilejitKernel *k, const Form *f, CacheKey key, const char *diagnostics, const void *cubin, size_t cubin_len)
{
  Entry e = {strlen(f->ptx) + 1, strlen(diagnostics) + 1, cubin_len};
  size_t len = sizeof e + e.ptx + e.diagnostics + e.cubin;
  char *bytes = malloc(len), *at = bytes;
  if (!bytes)
    return;
  memcpy(at, &e, sizeof e);
  memcpy(at += sizeof e, f->ptx, e.ptx);
  memcpy(at += e.ptx, diagnostics, e.diagnostics);
  if (cubin_len)
    memcpy(at + e.diagnostics, cubin, cubin_len);
  cache_put(k->program->cache, key, bytes, len);
  free(bytes);
}

/* ---- making a form ---- */

static int
form_compile(TilejitKernel *k, Form *f, TilecResult **out, TilertError *err)
{
  TilejitProgram *p = k->program;
  TilecFact facts[2 * TILERT_MAX_PARAMS];
  TilecOptions o = jit_compile_options(p);
  o.kernel = k->name;
  o.defines = k->defines;
  o.ndefines = k->ndefines;
  o.facts = facts;
  o.nfacts = list_facts(k, (Pattern){f->equal_1, f->divisible_16}, facts);
  double start = jit_now_ms();
  TilecResult *r = *out = tilec_compile(p->name, p->text, p->len, &o);
  f->compile_ms = jit_now_ms() - start;
  int status = jit_check_result(p, r, err);
  if (!status && !(f->ptx = jit_copy_text(r->output, r->output_len)))
    status = jit_no_memory(err);
  return status;
}

/* As a cubin where one is to be kept and the device makes one, else as PTX, whose errors the device explains best. */
static int
form_load(TilejitKernel *k, Form *f, int keep, void **cubin, size_t *cubin_len, TilertError *err)
{
  TilertDevice *dev = k->program->device;
  double start = jit_now_ms();
  int status = keep ? tilert_assemble(dev, f->ptx, strlen(f->ptx), cubin, cubin_len, err) : TILERT_E_UNAVAILABLE;
  status = status ? tilert_module_load(dev, f->ptx, strlen(f->ptx), NULL, 0, &f->module, err)
                  : load_cubin(k, f, *cubin, *cubin_len, err);
  f->load_ms = jit_now_ms() - start;
  return status;
}

static int
form_make(TilejitKernel *k, Form *f, TilertError *err)
{
  CacheKey key;
  TilecResult *r = NULL;
  void *cubin = NULL;
  size_t cubin_len = 0;
  int keep = form_key(k, f, &key);
  if (keep && form_recall(k, f, key))
    return tilert_module_kernel(f->module, k->name, &f->kernel, err);
  int status = form_compile(k, f, &r, err);
  keep = keep && !status && !memcmp(r->sources, k->sources, sizeof k->sources);
  if (!status)
    status = form_load(k, f, keep, &cubin, &cubin_len, err);
  if (!status)
    status = tilert_module_kernel(f->module, k->name, &f->kernel, err);
  if (!status && keep)
    form_keep(k, f, key, r->diagnostics, cubin, cubin_len);
  free(cubin);
  if (r)
    tilec_result_free(r);
  return status;
}

void
jit_form_destroy(Form *f)
{
  if (!f)
    return;
  tilert_module_destroy(f->module);
  free(f->ptx);
  free(f);
}

static int
form_add(TilejitKernel *k, Pattern p, size_t bucket, Form **out, TilertError *err)
{
  Form *f = calloc(1, sizeof *f);
  if (!f)
    return jit_no_memory(err);
  f->equal_1 = p.equal_1;
  f->divisible_16 = p.divisible_16;
  int status = form_make(k, f, err);
  if (status) {
    jit_form_destroy(f);
    return status;
  }
  f->next = atomic_load_explicit(&k->forms[bucket], memory_order_relaxed);
  atomic_store_explicit(&k->forms[bucket], f, memory_order_release);
  atomic_fetch_add(&k->nforms, 1);
  *out = f;
  return TILERT_OK;
}

static int
form_miss(TilejitKernel *k, Pattern p, size_t bucket, Form **out, TilertError *err)
{
  int status = TILERT_OK;
  pthread_mutex_lock(&k->lock);
  *out = form_find(k, p, bucket);
  if (!*out)
    status = form_add(k, p, bucket, out, err);
  pthread_mutex_unlock(&k->lock);
  return status;
}

static int
wrong_count(const TilejitKernel *k, size_t n, TilertError *err)
{
  char text[sizeof err->message];
  int at = snprintf(text, sizeof text, "kernel %s takes %zu arguments (", k->name, k->nargs);
  for (size_t i = 0; i < k->nargs && at < (int)sizeof text - 80; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "", k->args[i]->name);
  snprintf(text + at, sizeof text - (size_t)at, "); %zu are given", n);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

int
jit_form_for(TilejitKernel *k, const TilertArg *args, size_t nargs, Form **out, TilertError *err)
{
  if (nargs != k->nargs)
    return wrong_count(k, nargs, err);
  Pattern p = jit_pattern_of(k, args, nargs);
  size_t bucket = pattern_bucket(p);
  *out = form_find(k, p, bucket);
  return *out ? TILERT_OK : form_miss(k, p, bucket, out, err);
}

