/* jit_form.c - kernels compiled on first use, once per pattern of arguments.
 *
 * The pattern of a launch is bit sets over its arguments: which integers equal 1, which integers and addresses are divisible
 * by 16, which integers by 8, 4 or 2 (rows of so many elements of 16 and 32 bits lie on whole vectors, or on halves and quarters of them),
 * which pointers are null of those that the kernel asks about. Each pattern seen has one Form: a compiled, loaded kernel. Forms
 * hang in the buckets of a fixed table; they are only ever added, in front, with a release store, and live until the program
 * goes. So a launch finds its form by loading the bucket and walking the chain, without a lock; only a miss takes
 * the kernel's lock, looks again, and compiles under it, so that one thread compiles while others wait for it.
 *
 * Compiled code may rely on two pointers being different addresses; its manifest says so. A launch that gives them the same one
 * takes another form, whose pattern also says which are the same, and which is compiled with that as a fact.
 *
 * Compiled code may take tiles as boxes of tensors, which not all addresses, extents and strides can be (tilert_kernel_fits). A launch with
 * others takes a form that is compiled without such boxes, as far as the program leaves that open.
 *
 * Compiled forms are kept on disk (cache.h). The key is made of all that the result depends on: the build of the compiler,
 * every source text that was read to describe the kernel, its name, defines, the pattern, the target, options, and the
 * device with its driver's version. A form that was compiled from other texts than the kernel was described from (a file
 * changed in between) is used but not kept, and neither is what was PTX from the start. An entry is PTX, on a GPU as well: the driver keeps
 * what it made of that in a cache of its own. The only cubin that it hands out is its linker's (cuLinkComplete), of relocatable code,
 * which ptxas gives up to twice the registers and which ran up to a fifth slower.
 */
#include "jit_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TilertBuffer *
jit_buffer_of(const TilertArg *a)
{
  const TilertTensorArg *t = a->kind == TILERT_ARG_TENSOR ? a->u.tensor : NULL;
  return a->kind == TILERT_ARG_BUFFER ? a->u.buffer : t ? t->buffer : NULL;
}

uint64_t
jit_address_of(const TilertArg *a)
{
  const TilertTensorArg *t = a->kind == TILERT_ARG_TENSOR ? a->u.tensor : NULL;
  const uint64_t of_buffer = tilert_buffer_address(jit_buffer_of(a));
  return t ? of_buffer + t->address : a->kind == TILERT_ARG_POINTER ? a->u.pointer : of_buffer;
}

static int
has_address(uint32_t kind)
{
  return kind == TILERT_ARG_POINTER || kind == TILERT_ARG_BUFFER || kind == TILERT_ARG_TENSOR;
}

Pattern
jit_pattern_of(const TilejitKernel *k, const TilertArg *args, size_t n)
{
  const uint64_t pointers = k->pointers | k->nullable;
  Pattern p = {0};
  for (size_t i = 0; i < n; i++) {
    const TilertArg *a = &args[i];
    const uint64_t bit = UINT64_C(1) << i;
    if (a->kind == TILERT_ARG_INT && k->integers & bit) {
      const int twos = __builtin_ctzll((uint64_t)a->u.i | UINT64_C(1) << DIVISORS);
      p.equal_1 |= a->u.i == 1 ? bit & k->ones : 0;
      if (twos)
        p.divisible[twos - 1] |= bit;
    } else if (pointers & bit && has_address(a->kind)) {
      const uint64_t address = a->kind == TILERT_ARG_POINTER ? a->u.pointer : jit_address_of(a);
      if (address % (1 << DIVISORS) == 0)
        p.divisible[DIVISORS - 1] |= bit & k->pointers;
      p.null |= address ? 0 : bit & k->nullable;
    }
  }
  return p;
}

static size_t
pattern_bucket(const Pattern *p)
{
  static const uint64_t odd[DIVISORS] = {UINT64_C(0x9fb21c651e98df25), UINT64_C(0xc4ceb9fe1a85ec53), UINT64_C(0xff51afd7ed558ccd),
                                         UINT64_C(0xc2b2ae3d27d4eb4f)};
  uint64_t h = (p->equal_1 * UINT64_C(0x9e3779b97f4a7c15)) ^ p->null;
  for (int k = 0; k < DIVISORS; k++)
    h ^= p->divisible[k] * odd[k];
  h ^= p->boxless ? UINT64_C(0xd6e8feb86659fd93) : 0;
  return (size_t)(h >> 58) % BUCKETS;
}

static int
patterns_equal(const Pattern *a, const Pattern *b)
{
  return a->equal_1 == b->equal_1 && !memcmp(a->divisible, b->divisible, sizeof a->divisible) && a->null == b->null &&
         a->boxless == b->boxless && !a->same == !b->same && (!a->same || !memcmp(a->same, b->same, TILERT_MAX_PARAMS));
}

static Form *
form_find(TilejitKernel *k, const Pattern *p, size_t bucket)
{
  Form *f = atomic_load_explicit(&k->forms[bucket], memory_order_acquire);
  while (f && !patterns_equal(&f->pattern, p))
    f = f->next;
  return f;
}

/* FACTS_MAX bounds them: of an argument are known its value or divisibility, whether it is null, and of which other it is the same. */
enum { FACTS_MAX = 4 * TILERT_MAX_PARAMS };

static size_t
list_facts(const TilejitKernel *k, const Pattern *p, TilecFact *facts)
{
  size_t n = 0;
  for (size_t i = 0; i < k->nargs; i++) {
    const char *name = k->args[i]->name;
    if (p->equal_1 >> i & 1)
      facts[n++] = (TilecFact){name, TILEC_FACT_EQUAL, 1, NULL};
    for (int d = 0; d < DIVISORS; d++)
      if (p->divisible[d] >> i & 1)
        facts[n++] = (TilecFact){name, TILEC_FACT_DIVISIBLE, 2 << d, NULL};
    if (k->nullable >> i & 1)
      facts[n++] = (TilecFact){name, TILEC_FACT_NULL, p->null >> i & 1, NULL};
    if (p->same && p->same[i] != i)
      facts[n++] = (TilecFact){name, TILEC_FACT_SAME, 0, k->args[p->same[i]]->name};
  }
  return n;
}

/* ---- compiled forms on disk ---- */

/* An entry: lengths, then the texts with their NULs. */
typedef struct Entry { uint64_t ptx, diagnostics; } Entry;

int
jit_key_start(const TilejitKernel *k, const char *what, CacheHash **out)
{
  const TilejitProgram *p = k->program;
  const TilertDeviceInfo *dev = tilert_device_info(p->device);
  const uint32_t device[] = {dev->is_sim, dev->driver, dev->capability_major, dev->capability_minor, (uint32_t)p->line_info,
                             (uint32_t)p->tensors};
  CacheHash *h = *out = k->sources[0] | k->sources[1] ? cache_hash_new() : NULL;
  if (!h)
    return 0;
  int build = cache_hash_build(h);
  cache_hash_text(h, what);
  cache_hash_add(h, k->sources, sizeof k->sources);
  cache_hash_text(h, k->name);
  cache_hash_text(h, p->target);
  cache_hash_add(h, device, sizeof device);
  cache_hash_add(h, &p->nimport_path, sizeof p->nimport_path);   /* which file an import names, where several would do */
  for (size_t i = 0; i < p->nimport_path; i++)
    cache_hash_text(h, p->import_path[i]);
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
  const uint64_t *divisible = f->pattern.divisible;
  const uint64_t pattern[] = {f->pattern.equal_1, divisible[0], divisible[1], divisible[2], divisible[3], (uint64_t)f->pattern.boxless};
  CacheHash *h = NULL;
  int build = k->program->cache && jit_key_start(k, "form 5", &h);
  if (!h)
    return 0;
  cache_hash_add(h, pattern, sizeof pattern);
  if (f->pattern.null)                               /* pieces of other lengths than any of the rest */
    cache_hash_add(h, &f->pattern.null, sizeof f->pattern.null);
  if (f->pattern.same)
    cache_hash_add(h, f->same, sizeof f->same);
  *key = cache_hash_end(h);
  return build;
}

static int
load_ptx(TilejitKernel *k, Form *f, TilertError *err)
{
  TilertManifest *all;
  size_t n, len = strlen(f->ptx);
  int own;
  double start = jit_now_ms();
  int status = jit_ptx_manifests(f->ptx, len, &all, &n, &own, err);
  if (!status)
    status = tilert_module_load(k->program->device, f->ptx, len, all, n, &f->module, err);
  f->load_ms = jit_now_ms() - start;
  free(all);
  return status;
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
  if (!e.ptx || e.ptx > len || e.diagnostics != len - e.ptx || !e.diagnostics || ptx[e.ptx - 1] || ptx[len - 1])
    return 0;
  f->ptx = jit_copy_text(ptx, e.ptx - 1);
  if (!f->ptx || load_ptx(k, f, &err))
    return 0;
  jit_keep_diagnostics(k->program, ptx + e.ptx);
  return 1;
}

static int
form_recall(TilejitKernel *k, Form *f, CacheKey key)
{
  size_t len = 0;
  double start = jit_now_ms();
  char *bytes = cache_get(k->program->cache, key, &len);
  f->compile_ms = jit_now_ms() - start;
  f->from_cache = bytes && entry_take(k, f, bytes, len) && !tilert_module_kernel(f->module, k->name, &f->kernel, NULL);
  free(bytes);
  if (!f->from_cache) {
    tilert_module_destroy(f->module);
    free(f->ptx);
    f->module = NULL;
    f->ptx = NULL;
  }
  return f->from_cache;
}

static void
form_keep(TilejitKernel *k, const Form *f, CacheKey key, const char *diagnostics)
{
  Entry e = {strlen(f->ptx) + 1, strlen(diagnostics) + 1};
  size_t len = sizeof e + e.ptx + e.diagnostics;
  char *bytes = malloc(len), *at = bytes;
  if (!bytes)
    return;
  memcpy(at, &e, sizeof e);
  memcpy(at += sizeof e, f->ptx, e.ptx);
  memcpy(at + e.ptx, diagnostics, e.diagnostics);
  cache_put(k->program->cache, key, bytes, len);
  free(bytes);
}

/* ---- making a form ---- */

static int
form_compile(TilejitKernel *k, Form *f, TilecResult **out, TilertError *err)
{
  TilejitProgram *p = k->program;
  if (p->form == FORM_PTX)
    return (f->ptx = jit_copy_text(p->text, p->len)) ? TILERT_OK : jit_no_memory(err);
  TilecFact facts[FACTS_MAX];
  TilecOptions o = jit_compile_options(p);
  o.kernel = k->name;
  o.defines = k->defines;
  o.ndefines = k->ndefines;
  o.facts = facts;
  o.nfacts = list_facts(k, &f->pattern, facts);
  o.tensors = f->pattern.boxless ? TILEC_TENSORS_NONE : p->tensors;
  double start = jit_now_ms();
  TilecResult *r = *out = tilec_compile(p->name, p->text, p->len, &o);
  f->compile_ms = jit_now_ms() - start;
  int status = jit_check_result(p, r, err);
  if (!status && !(f->ptx = jit_copy_text(r->output, r->output_len)))
    status = jit_no_memory(err);
  return status;
}

static int
form_make(TilejitKernel *k, Form *f, TilertError *err)
{
  CacheKey key;
  TilecResult *r = NULL;
  int keep = form_key(k, f, &key);
  if (keep && form_recall(k, f, key))
    return TILERT_OK;
  int status = form_compile(k, f, &r, err);
  keep = keep && !status && !memcmp(r->sources, k->sources, sizeof k->sources);
  if (!status)
    status = load_ptx(k, f, err);
  if (!status)
    status = tilert_module_kernel(f->module, k->name, &f->kernel, err);
  if (!status && keep)
    form_keep(k, f, key, r->diagnostics);
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

static void
add_pair(Form *f, uint32_t param, uint32_t other)
{
  if (f->npairs < FORM_PAIRS) {
    f->pair[f->npairs][0] = f->arg[param];
    f->pair[f->npairs][1] = f->arg[other];
  }
  f->npairs += f->npairs <= FORM_PAIRS;
}

/* Which pairs of arguments the form takes to be different, by the pairs of its parameters. */
static void
note_apart(Form *f, size_t nargs)
{
  const TilertManifest *m = tilert_kernel_manifest(f->kernel);
  uint32_t first[TILERT_MAX_PARAMS], n = tilert_manifest_args(m, first);
  f->apart = m->napart && n == nargs ? m : NULL;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t p = first[i]; p < (i + 1 < n ? first[i + 1] : m->nparams); p++)
      f->arg[p] = (uint8_t)i;
  for (uint32_t p = 0; f->apart && p < m->nparams; p++)
    for (uint64_t left = m->apart[p]; left; left &= left - 1)
      add_pair(f, p, (uint32_t)__builtin_ctzll(left));
}

/* What the form relies on as to pointers being different certainly holds. */
static int
certainly_apart(const Form *f, const TilertArg *args)
{
  int apart = f->npairs <= FORM_PAIRS;
  for (uint32_t i = 0; apart && i < f->npairs; i++)
    apart = jit_address_of(&args[f->pair[i][0]]) != jit_address_of(&args[f->pair[i][1]]);
  return apart;
}

static int
form_add(TilejitKernel *k, const Pattern *p, size_t bucket, Form **out, TilertError *err)
{
  Form *f = calloc(1, sizeof *f);
  if (!f)
    return jit_no_memory(err);
  f->pattern = *p;
  if (p->same) {
    memcpy(f->same, p->same, sizeof f->same);
    f->pattern.same = f->same;
  }
  int status = form_make(k, f, err);
  if (status) {
    jit_form_destroy(f);
    return status;
  }
  note_apart(f, k->nargs);
  f->next = atomic_load_explicit(&k->forms[bucket], memory_order_relaxed);
  atomic_store_explicit(&k->forms[bucket], f, memory_order_release);
  atomic_fetch_add(&k->nforms, 1);
  *out = f;
  return TILERT_OK;
}

static int
form_miss(TilejitKernel *k, const Pattern *p, size_t bucket, Form **out, TilertError *err)
{
  int status = TILERT_OK;
  pthread_mutex_lock(&k->lock);
  *out = form_find(k, p, bucket);
  if (!*out)
    status = form_add(k, p, bucket, out, err);
  pthread_mutex_unlock(&k->lock);
  return status;
}

int
jit_wrong_count(const TilejitKernel *k, size_t n, TilertError *err)
{
  char text[sizeof err->message];
  int at = snprintf(text, sizeof text, "kernel %s takes %zu arguments (", k->name, k->nargs);
  for (size_t i = 0; i < k->nargs && at < (int)sizeof text - 80; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "", k->args[i]->name);
  snprintf(text + at, sizeof text - (size_t)at, "); %zu are given", n);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

static int
form_get(TilejitKernel *k, const Pattern *p, Form **out, TilertError *err)
{
  size_t bucket = pattern_bucket(p);
  *out = form_find(k, p, bucket);
  return *out ? TILERT_OK : form_miss(k, p, bucket, out, err);
}

/* Add the pairs that the form takes to be different and that are one address; 0 if there is none that is not known already. */
static int
add_same(const Form *f, const TilertArg *args, uint8_t same[TILERT_MAX_PARAMS])
{
  int added = 0;
  for (uint32_t p = 0; p < f->apart->nparams; p++) {
    const uint32_t i = f->arg[p];
    uint64_t address = f->apart->apart[p] ? jit_address_of(&args[i]) : 0;
    for (uint64_t left = address ? f->apart->apart[p] : 0; left; left &= left - 1) {
      uint32_t j = f->arg[__builtin_ctzll(left)];
      if (jit_address_of(&args[j]) != address || same[i] == same[j])
        continue;
      uint8_t first = same[i] < same[j] ? same[i] : same[j], second = same[i] ^ same[j] ^ first;
      for (size_t k = 0; k < TILERT_MAX_PARAMS; k++)
        same[k] = same[k] == second ? first : same[k];
      added = 1;
    }
  }
  return added;
}

/* The form relies on pointers being different: one for those that are not. It may rely on others in turn. If it still takes for
 * different what it was told to be one, it is the launch that refuses it. */
static int
form_apart(TilejitKernel *k, Pattern p, const TilertArg *args, Form **f, TilertError *err)
{
  uint8_t same[TILERT_MAX_PARAMS];
  int status = TILERT_OK;
  for (size_t i = 0; i < TILERT_MAX_PARAMS; i++)
    same[i] = (uint8_t)i;
  p.same = same;
  while (!status && (*f)->apart && add_same(*f, args, same))
    status = form_get(k, &p, f, err);
  return status;
}

int
jit_form_for(TilejitKernel *k, const TilertArg *args, size_t nargs, Form **out, TilertError *err)
{
  if (nargs != k->nargs)
    return jit_wrong_count(k, nargs, err);
  Pattern p = jit_pattern_of(k, args, nargs);
  int status = form_get(k, &p, out, err);
  if (!status && !tilert_kernel_fits((*out)->kernel, args, nargs)) {
    p.boxless = 1;
    status = form_get(k, &p, out, err);
  }
  return status || certainly_apart(*out, args) ? status : form_apart(k, p, args, out, err);
}
