/* fault.c - what is wrong with an access to memory, in words.
 *
 * Memory is named as the kernel's source does: by argument and index, `x[1000] of 1000 f32`. Which argument: the one that the
 * address was computed from, where that is known (origin.c); else the one that begins last before the address in the allocation that
 * it is in or nearest to. Names and types of elements are those of the manifest; without one it is `parameter 0`, and elements are as
 * large as the access. */
#include "dtype.h"
#include "tensor.h"
#include "tilert.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR_AWAY (1ull << 36)        /* bytes from the memory of any argument: nobody's index */

/* ---- arguments ---- */

typedef struct Argument { char name[80], type[16]; uint64_t address, size; const Alloc *alloc; } Argument;

static const Alloc *
alloc_of(const Launch *l, uint64_t addr)
{
  const Alloc *a = sim_alloc_below(l->allocs, l->nallocs, addr);
  return a && addr <= a->end ? a : NULL;
}

/* The manifest of the kernel, to be freed: what the launch was given, or the PTX's own. NULL: none that fits. */
static TilertManifest *
manifest_of(const Launch *l)
{
  const SimModule *m = l->module;
  const Unit *u = l->kernel->unit;
  TilertError ignored;
  size_t n = 0;
  if (!l->manifest && (tilert_manifest_parse(m->text, m->len, NULL, 0, &n, &ignored) || !n))
    return NULL;
  TilertManifest *all = calloc(l->manifest ? 1 : n, sizeof *all);
  if (!all)
    return NULL;
  if (l->manifest)
    *all = *l->manifest;
  else if (tilert_manifest_parse(m->text, m->len, all, n, &n, &ignored))
    n = 0;
  for (size_t i = 0; !l->manifest && i < n; i++)
    if (strlen(all[i].kernel) == u->name.n && memcmp(all[i].kernel, u->name.s, u->name.n) == 0) {
      memmove(all, &all[i], sizeof *all);
      n = 1;
    }
  if (all->nparams == u->type.nparam && strlen(all->kernel) == u->name.n && memcmp(all->kernel, u->name.s, u->name.n) == 0)
    return all;
  free(all);
  return NULL;
}

static bool
is_map(const TilertParam *p)
{
  return p->kind == TILERT_PARAM_TENSORMAP || (p->kind == TILERT_PARAM_TENSOR && p->part == TILERT_TENSOR_MAP);
}

/* The address that parameter i holds: 8 bytes that may be one, or a map. */
static bool
held_address(const Launch *l, const TilertParam *p, uint32_t i, uint64_t *out)
{
  const Formal *f = &l->kernel->unit->type.param[i];
  const uint8_t *at = l->params + f->offset;
  Map map;
  if (p && is_map(p)) {
    memcpy(&map, at, sizeof map);
    *out = map.base;
    return map.magic == MAP_MAGIC;
  }
  bool known = p && p->kind != TILERT_PARAM_RAW, base = known && p->kind == TILERT_PARAM_TENSOR && p->part == TILERT_TENSOR_BASE;
  if (f->size != 8 || (known && p->kind != TILERT_PARAM_POINTER && !base))
    return false;
  memcpy(out, at, 8);
  return true;
}

/* Parameter i, if it is an address; alloc NULL: of no memory of the device. size: of an element where the type is not known. */
static bool
any_argument(const Launch *l, const TilertManifest *m, uint32_t i, uint32_t size, Argument *out)
{
  const TilertParam *p = m ? &m->params[i] : NULL;
  bool raw = !p || p->kind == TILERT_PARAM_RAW;
  if (!held_address(l, p, i, &out->address))
    return false;
  out->alloc = alloc_of(l, out->address);
  Dtype t = raw ? DTYPE_NONE : rt_dtype_find(p->dtype);
  out->size = t ? dtype_size(t) : size;
  if (!raw)
    snprintf(out->name, sizeof out->name, "%s", p->name);
  else
    snprintf(out->name, sizeof out->name, "parameter %u", i);
  if (t)
    snprintf(out->type, sizeof out->type, "%s", p->dtype);
  else
    snprintf(out->type, sizeof out->type, "%u-byte elements", size);
  return true;
}

/* The same, if it points into memory. */
static bool
argument(const Launch *l, const TilertManifest *m, uint32_t i, uint32_t size, Argument *out)
{
  return any_argument(l, m, i, size, out) && out->alloc;
}

/* A variable of the module, as if it were an argument. */
static bool
module_variable(const Launch *l, size_t i, uint32_t size, Argument *out)
{
  const GlobalVar *v = &l->module->global[i];
  out->address = v->base;
  out->alloc = alloc_of(l, v->base);
  out->size = size;
  snprintf(out->name, sizeof out->name, "%.*s", (int)v->name.n, v->name.s);
  snprintf(out->type, sizeof out->type, "%u-byte elements", size);
  return out->alloc != NULL;
}

static uint64_t
distance(const Alloc *a, uint64_t addr)
{
  return addr < a->base ? a->base - addr : addr >= a->end ? addr - a->end : 0;
}

/* Whether x is a better name for an address than y is. */
static bool
nearer(const Argument *x, const Argument *y, uint64_t addr)
{
  uint64_t dx = distance(x->alloc, addr), dy = distance(y->alloc, addr);
  if (dx != dy)
    return dx < dy;
  bool before = x->address <= addr, other = y->address <= addr;
  return before != other ? before : before ? x->address > y->address : x->address < y->address;
}

/* The argument or variable nearest to an address; false where there is none. */
static bool
nearest_argument(const Launch *l, const TilertManifest *m, uint64_t addr, uint32_t size, Argument *out)
{
  bool found = false;
  for (uint32_t i = 0; i < l->kernel->unit->type.nparam; i++) {
    Argument one;
    if (!argument(l, m, i, size, &one) || (found && !nearer(&one, out, addr)))
      continue;
    *out = one;
    found = true;
  }
  for (size_t i = 0; i < l->module->nglobal; i++) {
    Argument one;
    if (!module_variable(l, i, size, &one) || (found && !nearer(&one, out, addr)))
      continue;
    *out = one;
    found = true;
  }
  return found;
}

static bool
find_argument(const Launch *l, uint32_t var, uint64_t addr, uint32_t size, Argument *out)
{
  TilertManifest *m = manifest_of(l);
  uint32_t kind = var >> VAR_BITS;
  bool known = var && ((kind == VAR_PARAM && argument(l, m, VAR_INDEX(var), size, out)) ||
                       (kind == VAR_GLOBAL && module_variable(l, VAR_INDEX(var), size, out)));
  bool found = known || nearest_argument(l, m, addr, size, out);
  free(m);
  return found && distance(out->alloc, addr) < FAR_AWAY;
}

/* The argument that an access is by, if it points nowhere and is not null. */
static bool
find_astray(const Launch *l, uint32_t var, uint32_t size, Argument *out)
{
  TilertManifest *m = manifest_of(l);
  bool astray = var >> VAR_BITS == VAR_PARAM && any_argument(l, m, VAR_INDEX(var), size, out) && !out->alloc && out->address >= 4096;
  free(m);
  return astray;
}

static int64_t
floor_div(int64_t a, int64_t b)
{
  return a / b - (a % b < 0);
}

/* "x[5]", "x[4..7]": n bytes at addr. *first, *last: the elements. */
static void
index_text(const Argument *a, uint64_t addr, uint32_t n, Text *t, int64_t *first, int64_t *last)
{
  int64_t size = (int64_t)a->size, off = (int64_t)(addr - a->address);
  *first = floor_div(off, size);
  *last = floor_div(off + (int64_t)n - 1, size);
  if (*first == *last)
    text_add(t, "%s[%lld]", a->name, (long long)*first);
  else
    text_add(t, "%s[%lld..%lld]", a->name, (long long)*first, (long long)*last);
}

/* What of device memory n bytes at addr are: "x[5] of 10 f32", or the address. */
static void
global_text(const Launch *l, uint32_t var, uint64_t addr, uint32_t n, uint32_t size, Text *t)
{
  Argument a;
  int64_t first, last;
  if (!find_argument(l, var, addr, size, &a)) {
    text_add(t, "%u bytes at global address 0x%llx", n, (unsigned long long)addr);
    return;
  }
  index_text(&a, addr, n, t, &first, &last);
  text_add(t, " of %llu %s", (unsigned long long)((a.alloc->end - a.address) / a.size), a.type);
}

/* ---- what and where ---- */

const Address *
insn_address(const Insn *in)
{
  WarpFn *fn = in->kind == K_WARP || in->kind == K_CONV || in->kind == K_WAIT ? in->fn.warp : NULL;
  if (fn == mem_load || fn == mem_store || fn == atom_exec)
    return &in->mem.at;
  if (fn == async_copy)
    return &in->copy.at;
  if (fn == mbar_exec || fn == mbar_wait)
    return &in->mbar.at;
  if (fn == async_store)
    return &in->store.at;
  if (fn == tensormap_replace || fn == tensormap_copy)
    return &in->tensor_map.at;
  return fn == ldmatrix_exec || fn == stmatrix_exec ? &in->matrix.at : NULL;
}

/* The variable that an access to a space lies in. The source of an asynchronous copy is not the address that the instruction has. */
static uint32_t
var_of(const Insn *in, Space sp)
{
  const Address *at = insn_address(in);
  uint32_t var = at ? at->var : 0, kind = var >> VAR_BITS;
  bool fits = sp == SP_SHARED ? kind == VAR_SHARED : sp == SP_LOCAL ? kind == VAR_LOCAL : kind == VAR_PARAM || kind == VAR_GLOBAL;
  return fits ? var : 0;
}

static uint32_t
element_size(const Insn *in, uint32_t n)
{
  WarpFn *fn = in->kind == K_WARP ? in->fn.warp : NULL;
  if (fn == async_copy)
    return in->copy.size;
  if (fn == bulk_exec)
    return 4;
  return fn == mem_load || fn == mem_store || fn == atom_exec ? in->mem.size : n;
}

static const char *
space_name(Space sp)
{
  return sp == SP_SHARED ? "shared" : sp == SP_LOCAL ? "local" : sp == SP_PARAM ? "param" : "global";
}

/* "shared+0x10", and whose it is if it is another block's. */
static void
window_text(const Block *b, Space sp, uint64_t addr, Text *t)
{
  uint64_t tag = sp == SP_SHARED && b->cluster->n > 1 ? addr >> RANK_SHIFT : 0;
  char program[48];
  text_add(t, "%s+0x%llx", space_name(sp), (unsigned long long)(tag ? addr & ((1u << RANK_SHIFT) - 1) : addr));
  if (tag && tag <= b->cluster->n)
    text_add(t, " of program %s", sim_program_text(b->launch, b->cluster->block[tag - 1]->index, program, sizeof program));
  else if (tag)
    text_add(t, " of block %u of a cluster of %u", (uint32_t)(tag - 1), b->cluster->n);
}

/* "4 bytes at shared+0x10 (tile+0x0)", or elements of an argument. */
static void
place_text(const Block *b, const Insn *in, Space sp, uint64_t addr, uint32_t n, Text *t)
{
  uint32_t var = var_of(in, sp);
  if (sp == SP_GLOBAL || sp == SP_CONST) {
    global_text(b->launch, var, addr, n, element_size(in, n), t);
    return;
  }
  text_add(t, "%u bytes at ", n);
  window_text(b, sp, addr, t);
  if (sp != SP_SHARED || !var || addr >> RANK_SHIFT)
    return;
  const SharedVar *v = &b->kernel->module->shared[VAR_INDEX(var)];
  uint64_t from = b->kernel->shared_at[VAR_INDEX(var)] - 1;
  if (addr >= from && !v->dynamic)
    text_add(t, " (%.*s+0x%llx)", (int)(v->name.n > 60 ? 60 : v->name.n), v->name.s, (unsigned long long)(addr - from));
}

typedef struct Words { char thread[48], program[48], what[256]; } Words;

static void
describe(const Block *b, const Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, Words *out)
{
  Text t = {out->what, 0, sizeof out->what};
  sim_thread_text(b, w->index * LANES + lane, out->thread, sizeof out->thread);
  sim_program_text(b->launch, b->index, out->program, sizeof out->program);
  place_text(b, in, sp, addr, n, &t);
}

/* ---- bounds and alignment ---- */

int
fault_misaligned(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  Words x;
  describe(b, w, in, lane, sp, addr, n, &x);
  return sim_fault(b, w, in, (int)lane, SIM_E_ALIGN, addr, "thread %s %s %s: the address, 0x%llx, is not a multiple of %u", x.thread,
                   write ? "writes" : "reads", x.what, (unsigned long long)addr, n);
}

int
fault_window(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, uint64_t size, bool write)
{
  char thread[48], where[120];
  window_text(b, sp, addr, &(Text){where, 0, sizeof where});
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %u bytes at %s, outside the %llu bytes of %s memory",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread), write ? "writes" : "reads", n, where,
                   (unsigned long long)size, space_name(sp));
}

int
fault_remote(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write, const char *why)
{
  char thread[48], where[120];
  window_text(b, SP_SHARED, addr, &(Text){where, 0, sizeof where});
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %u bytes at %s: %s",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread), write ? "writes" : "reads", n, where, why);
}

int
fault_variable(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, const VarRange *v, bool write)
{
  char thread[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %u bytes at %.*s%s%lld, outside the %llu bytes of this variable",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread), write ? "writes" : "reads", n,
                   (int)(v->name.n > 100 ? 100 : v->name.n), v->name.s, addr >= v->from ? "+" : "", (long long)(addr - v->from),
                   (unsigned long long)(v->to - v->from));
}

/* Global memory outside every allocation. */
int
fault_outside(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write)
{
  Argument a;
  char thread[48], buf[160];
  Text t = {buf, 0, sizeof buf};
  int64_t first, last;
  const char *does = write ? "writes" : "reads";
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  if (find_astray(b->launch, var_of(in, SP_GLOBAL), element_size(in, n), &a)) {
    index_text(&a, addr, n, &t, &first, &last);
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr,
                     "thread %s %s %s, and %s, 0x%llx, is the address of no memory: was it destroyed?", thread, does, buf, a.name,
                     (unsigned long long)a.address);
  }
  if (!find_argument(b->launch, var_of(in, SP_GLOBAL), addr, element_size(in, n), &a))
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %u bytes at global address 0x%llx, outside every allocation%s",
                     thread, does, n, (unsigned long long)addr, addr < 4096 ? ": a null pointer?" : "");
  uint64_t count = (a.alloc->end - a.address) / a.size;
  index_text(&a, addr, n, &t, &first, &last);
  if (first < 0)
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %s, before the first of its %llu %s", thread, does, buf,
                     (unsigned long long)count, a.type);
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr, "thread %s %s %s of %llu %s: mask missing?", thread, does, buf,
                   (unsigned long long)count, a.type);
}

int
fault_local(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n)
{
  Words x;
  describe(b, w, in, lane, SP_LOCAL, addr, n, &x);
  return sim_fault(b, w, in, (int)lane, SIM_E_UNINIT, addr, "thread %s reads %s, its own memory that it has not written", x.thread, x.what);
}

int
fault_hollow(Block *b, Warp *w, const Insn *in, uint32_t lane)
{
  char thread[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_UNINIT, 0, "thread %s stores what it read from its own memory, where it had written nothing",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread));
}

/* ---- races ---- */

static Space
space_of(const Access *a)
{
  return a->s->owner ? SP_SHARED : SP_GLOBAL;
}

/* Addresses in the window of shared memory, and of global memory. */
static uint64_t
address_at(const Access *a, uint64_t off)
{
  return a->s->owner ? cluster_address(a->b, a->s->owner, off) : (uint64_t)(uintptr_t)a->s->memory + off;
}

static uint64_t
lane_address(const Access *a, uint32_t lane)
{
  return address_at(a, a->off + (a->same ? 0 : (uint64_t)(lane - a->lane) * a->size));
}

/* What is wrong lies between blocks: the launch is repeated on one worker, to say the same of it whatever the number of threads. */
static void
lies_between_blocks(Launch *l)
{
  __atomic_store_n(&l->again, true, __ATOMIC_RELAXED);
}

/* A race with what an agent that is no warp did. */
static int
fault_agent(const Access *a, uint32_t lane, uint64_t record, const Segment *s, bool wrote)
{
  Block *b = a->b;
  char where[300], there[60] = "", program[48];
  uint32_t pc = (uint32_t)record & PC_MASK;
  Words x;
  describe(b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  if (s->block != b->index)
    snprintf(there, sizeof there, " by program %s", sim_program_text(b->launch, s->block, program, sizeof program));
  sim_fault(b, a->w, a->in, (int)lane, SIM_E_ASYNC, lane_address(a, lane),
            "thread %s %s %s, which an asynchronous operation issued at %s%s %s, and it has not waited for that", x.thread,
            a->write ? "writes" : "reads", x.what, sim_loc_text(b, pc, where, sizeof where), there, wrote ? "writes" : "reads");
  sim_fault_also(b, pc);
  return -1;
}

/* A race with a launch in front of this one. */
static int
fault_previous(const Access *a, uint32_t lane, uint64_t record, bool wrote)
{
  Block *b = a->b;
  const Kernel *k = record_kernel(b->launch, record);
  uint32_t pc = (uint32_t)record & PC_MASK;
  char where[300];
  Words x;
  describe(b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  sim_fault(b, a->w, a->in, (int)lane, SIM_E_RACE, lane_address(a, lane),
            "race: thread %s of program %s %s %s, which kernel %.*s, launched before, %s at %s: %s", x.thread, x.program,
            a->write ? "writes" : "reads", x.what, (int)(k->unit->name.n > 60 ? 60 : k->unit->name.n), k->unit->name.s,
            wrote ? "wrote" : "read", sim_loc_text_in(k, pc, where, sizeof where),
            has_waited(b, a->w) ? "a launch in between did not wait for it, and has let this one start"
                  : "that launch may still run, as no wait_for_previous (griddepcontrol.wait) comes before");
  sim_fault_also_in(b, k, pc);
  return -1;
}

int
fault_race(const Access *a, uint32_t lane, uint64_t off, uint64_t record, bool wrote)
{
  Block *b = a->b;
  const Segment *s = record_segment(b->launch, record);
  if (is_earlier(b->launch, record))
    return fault_previous(a, lane, record, wrote);
  if (s->block != b->index || record & REC_BLOCKS)     /* of blocks that read beside each other the first is named, maybe this one */
    lies_between_blocks(b->launch);
  if (s->agent >= b->nwarps)
    return fault_agent(a, lane, record, s, wrote);
  uint32_t other = (uint32_t)(record >> PC_BITS & (LANES - 1)), pc = (uint32_t)record & PC_MASK;
  bool many = s->block == b->index && s->agent == a->w->index && other == lane;
  char where[300], them[48], there[60] = "", here[60] = "", program[48];
  Words x;
  describe(b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  sim_thread_text(b, s->agent * LANES + other, them, sizeof them);
  if (s->block != b->index) {
    snprintf(here, sizeof here, " of program %s", x.program);
    snprintf(there, sizeof there, " of program %s", sim_program_text(b->launch, s->block, program, sizeof program));
  }
  sim_fault(b, a->w, a->in, (int)lane, SIM_E_RACE, lane_address(a, lane), "race: thread %s%s %s %s, which %s%s%s %s at %s, and %s",
            x.thread, here, a->write ? "writes" : "reads", x.what, many ? "another thread of its warp" : "thread ", many ? "" : them, there,
            wrote ? "wrote" : "read", sim_loc_text(b, pc, where, sizeof where),
            *there ? "nothing orders the two programs" : "there is no barrier between");
  sim_fault_also(b, pc);
  return -1;
}

static const Insn *
insn_at(const Block *b, uint64_t record)
{
  return &b->kernel->code[record & PC_MASK];
}

/* Only mbarrier instructions may touch what a record's has made an mbarrier. */
static int
fault_mbar_bytes(const Access *a, uint32_t lane, uint64_t record)
{
  char where[300];
  Words x;
  describe(a->b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_BARRIER, lane_address(a, lane),
            "thread %s %s %s, where the mbarrier initialised at %s is: only mbarrier instructions may use its bytes", x.thread,
            a->write ? "writes" : "reads", x.what, sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where));
  sim_fault_also(a->b, (uint32_t)record & PC_MASK);
  return -1;
}

int
fault_pending(const Access *a, uint32_t lane, uint64_t off, uint64_t record)
{
  char where[300];
  Words x;
  if (insn_at(a->b, record)->fn.warp == mbar_exec)
    return fault_mbar_bytes(a, lane, record);
  describe(a->b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_ASYNC, lane_address(a, lane),
            "thread %s %s %s, where an asynchronous copy issued at %s has not been waited for", x.thread,
            a->write ? "writes" : "reads", x.what, sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where));
  sim_fault_also(a->b, (uint32_t)record & PC_MASK);
  return -1;
}

int
fault_proxy(const Access *a, uint64_t record, bool written)
{
  char where[300];
  Words x;
  describe(a->b, a->w, a->in, a->lane, space_of(a), lane_address(a, a->lane), a->size, &x);
  sim_fault(a->b, a->w, a->in, (int)a->lane, SIM_E_ASYNC, lane_address(a, a->lane),
            "the asynchronous operation of thread %s %s %s, which was %s at %s, and its %s has executed no fence.proxy.async between",
            x.thread, a->write ? "writes" : "reads", x.what, written ? "written" : "read",
            sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where), written ? "writer" : "reader");
  sim_fault_also(a->b, (uint32_t)record & PC_MASK);
  return -1;
}

int
fault_overtaken(const Access *a, uint64_t record)
{
  char where[300];
  Words x;
  describe(a->b, a->w, a->in, a->lane, space_of(a), lane_address(a, a->lane), a->size, &x);
  sim_fault(a->b, a->w, a->in, (int)a->lane, SIM_E_RACE, lane_address(a, a->lane),
            "race: the asynchronous copy of thread %s from %s had not been waited for when that was written at %s", x.thread, x.what,
            sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where));
  sim_fault_also(a->b, (uint32_t)record & PC_MASK);
  return -1;
}

int
fault_unwritten(const Access *a, uint32_t lane, uint64_t off)
{
  Words x;
  if (!a->s->owner)
    lies_between_blocks(a->b->launch);
  describe(a->b, a->w, a->in, lane, space_of(a), lane_address(a, lane), a->size, &x);
  if (a->s->owner)
    return sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_UNINIT, lane_address(a, lane),
                     "thread %s reads %s, which no thread of the block has written", x.thread, x.what);
  return sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_UNINIT, lane_address(a, lane),
                   "thread %s reads %s, which nobody has written", x.thread, x.what);
}

int
fault_index(Block *b, Warp *w, const Insn *in, uint32_t lane, int64_t index)
{
  char thread[48];
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, 0, "thread %s has index %lld of %llu: outside 0 to %llu", thread, (long long)index,
                   (unsigned long long)in->index.extent, (unsigned long long)in->index.extent - (in->index.extent != 0));
}

/* ---- programs that do not end ---- */

/* The branch back of the innermost loop around an instruction; NULL: it is in none. */
static const Insn *
loop_around(const Kernel *k, uint32_t pc)
{
  const Part *p = sim_kernel_part(k, pc);
  const Insn *best = NULL;
  uint32_t least = UINT32_MAX;
  for (uint32_t i = pc; i < p->pc + p->unit->ncode; i++) {
    const Insn *in = &k->code[i];
    if (in->kind != K_BRA || in->bra.target > pc || i - in->bra.target >= least)
      continue;
    least = i - in->bra.target;
    best = in;
  }
  return best;
}

/* A warp that runs, or, where all wait at barriers, the first that does that. */
static Warp *
running_warp(Block *b)
{
  Warp *first = NULL;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    if (b->warp[i].state == W_RUN && b->warp[i].nsplit)
      return &b->warp[i];
    if (b->warp[i].state != W_DONE && !first)
      first = &b->warp[i];
  }
  return first ? first : &b->warp[0];
}

static uint32_t
warp_pc(const Block *b, const Warp *w)
{
  if (w->state == W_BARRIER)
    return (uint32_t)(w->wait - b->kernel->code);
  return w->nsplit ? w->split[0].pc : 0;
}

/* "program (3,0,0) is still in the loop at x.tile:12 after 100 warp instructions" */
static const Insn *
still_text(Block *b, Text *t)
{
  const Kernel *k = b->kernel;
  const Warp *w = running_warp(b);
  uint32_t pc = warp_pc(b, w);
  const Insn *loop = loop_around(k, pc), *at = loop ? loop : &k->code[pc];
  char where[200], program[48];
  text_add(t, "program %s is still %s %s after %llu warp instructions", sim_program_text(b->launch, b->index, program, sizeof program),
           loop ? "in the loop at" : "at", sim_loc_text(b, (uint32_t)(at - k->code), where, sizeof where), (unsigned long long)b->executed);
  return at;
}

/* What a warp that cannot go on waits for, or does again and again. */
static void
wait_text(const Block *b, const Warp *w, Text *t)
{
  char at[200];
  if (w->state == W_BARRIER) {
    text_add(t, "at barrier %u (%s)", w->wait_id, sim_loc_text(b, warp_pc(b, w), at, sizeof at));
    return;
  }
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state != SPLIT_CONV && b->kernel->code[w->split[i].pc].kind == K_WAIT) {
      const Insn *in = &b->kernel->code[w->split[i].pc];
      if (in->fn.warp == wgmma_wait)
        wgmma_wait_text(b, w, in, t);
      else if (in->fn.warp == cluster_wait)
        cluster_wait_text(b, &w->split[i], t);
      else if (in->fn.warp == setmaxnreg_exec)
        registers_wait_text(b, w, in, t);
      else
        mbar_wait_text(b, w, &w->split[i], t);
      return;
    }
  text_add(t, "in a loop at %s", sim_loc_text(b, warp_pc(b, w), at, sizeof at));
}

/* What the warps of a block wait for, one behind the other, with the block's name where it is given; the first of them, or NULL. */
static Warp *
waits_text(Block *b, const char *program, Text *t)
{
  char what[320], before[320] = "";
  Warp *first = NULL;
  uint32_t same = 0;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    Warp *w = &b->warp[i];
    Text one = {what, 0, sizeof what};
    if (w->state == W_DONE)
      continue;
    wait_text(b, w, &one);
    bool again = first && strcmp(what, before) == 0;
    if (first && !again)
      text_add(t, same ? " and %u more like it," : ",", same);
    if (!again)
      text_add(t, " warp %u%s%s %s", i, program ? " of program " : "", program ? program : "", what);
    same = again ? same + 1 : 0;
    first = first ? first : w;
    memcpy(before, what, sizeof before);
  }
  if (same)
    text_add(t, " and %u more like it", same);
  return first;
}

/* Of a cluster the message has what goes in, and the lines behind it each block. */
static int
cluster_deadlock(Cluster *c)
{
  char list[640] = "", program[48], lines[1600] = "";
  Text t = {list, 0, sizeof list}, all = {lines, 0, sizeof lines};
  Block *b = NULL;
  Warp *first = NULL;
  for (uint32_t i = 0; i < c->n; i++) {
    sim_program_text(c->block[i]->launch, c->block[i]->index, program, sizeof program);
    if (!c->block[i]->nlive)
      continue;
    text_add(&t, b ? ";" : "");
    Warp *w = waits_text(c->block[i], program, &t);
    text_add(&all, "\n  program %s:", program);
    waits_text(c->block[i], NULL, &all);
    first = b ? first : w;
    b = b ? b : c->block[i];
  }
  c->failed = b->rank;
  sim_fault(b, first, &b->kernel->code[warp_pc(b, first)], __builtin_ctz(first->live), SIM_E_DEADLOCK, 0,
            "deadlock: no warp of the cluster can go on:%s", list);
  SimError *e = &b->worker->err;
  text_add(&(Text){e->trace, strlen(e->trace), sizeof e->trace}, "%s", lines);
  return -1;
}

int
fault_deadlock(Cluster *c)
{
  char list[640] = "";
  Text t = {list, 0, sizeof list};
  Block *b = c->block[0];
  if (c->n > 1)
    return cluster_deadlock(c);
  Warp *first = waits_text(b, NULL, &t);
  return sim_fault(b, first, &b->kernel->code[warp_pc(b, first)], __builtin_ctz(first->live), SIM_E_DEADLOCK, 0,
                   "deadlock: no warp can go on:%s", list);
}

int
fault_stopped(const Going *g)
{
  char list[600] = "";
  Text t = {list, 0, sizeof list};
  const Insn *first = NULL;
  for (uint32_t i = 0; i < g->n && i < 3; i++) {
    text_add(&t, i ? ", " : "");
    const Insn *at = still_text(g->block[i], &t);
    first = first ? first : at;
  }
  if (g->n > 3)
    text_add(&t, ", and %u more are not done", g->n - 3);
  return sim_fault(g->block[0], running_warp(g->block[0]), first, -1, SIM_E_CANCELLED, 0, "stopped: %s", list);
}

int
fault_budget(Block *b, Warp *w, const Insn *in)
{
  char text[300] = "";
  Text t = {text, 0, sizeof text};
  const Insn *at = still_text(b, &t);
  return sim_fault(b, w, at, -1, SIM_E_LIMIT, 0, "stopped: %s, which is the limit", text);
}

int
fault_all_wait(const Going *g)
{
  Block *b = g->block[0];
  const Launch *l = b->launch;
  char list[500] = "", at[200], program[48];
  Text t = {list, 0, sizeof list};
  for (uint32_t i = 0; i < g->n && i < TOLD_BLOCKS; i++)
    text_add(&t, "%s program %s at %s", i ? "," : "", sim_program_text(l, g->block[i]->index, program, sizeof program),
             sim_loc_text(g->block[i], warp_pc(g->block[i], running_warp(g->block[i])), at, sizeof at));
  if (g->n > TOLD_BLOCKS)
    text_add(&t, " and %u more", g->n - TOLD_BLOCKS);
  if (l->next_block < l->nblocks)
    text_add(&t, "; %llu programs can start only when others end, as %u are resident at a time",
             (unsigned long long)(l->nblocks - l->next_block), g->n);
  Warp *w = running_warp(b);
  return sim_fault(b, w, &b->kernel->code[warp_pc(b, w)], w->nsplit ? __builtin_ctz(w->split[0].mask) : -1, SIM_E_DEADLOCK, 0,
                   "deadlock between programs: all wait for others:%s", list);
}
