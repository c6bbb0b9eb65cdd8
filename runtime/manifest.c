/* manifest.c - read and write the `//@tilec` lines that PTX text carries (manifest.h has their form).
 *
 * Fields may come in any order; kernel and warps must be there. Unknown fields are passed over, so that a newer compiler's PTX still loads.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "dtype.h"

enum { BOX_MOST = 256, ROW_STEP = 16, PIXELS_MOST = 1024, STEP_MOST = 8, AXES = 3 };

typedef struct Text { const char *at, *end; } Text;

typedef struct Parse {
  TilertManifest *m;
  unsigned line;
  TilertError *err;
} Parse;

static int
text_is(Text t, const char *word)
{
  size_t n = strlen(word);
  return (size_t)(t.end - t.at) == n && !memcmp(t.at, word, n);
}

/* The part of *t before the first `stop`, which is passed over; all of *t if there is none. */
static Text
text_until(Text *t, char stop)
{
  Text part = {t->at, t->at};
  while (part.end < t->end && *part.end != stop)
    part.end++;
  t->at = part.end < t->end ? part.end + 1 : part.end;
  return part;
}

static int
text_copy(Text t, char *out, size_t size)
{
  size_t n = (size_t)(t.end - t.at);
  if (n == 0 || n >= size || memchr(t.at, 0, n))
    return -1;
  memcpy(out, t.at, n);
  out[n] = 0;
  return 0;
}

static int
text_number(Text t, uint32_t *out)
{
  uint64_t v = 0;
  if (t.at == t.end || t.end - t.at > 10)
    return -1;
  for (; t.at < t.end; t.at++) {
    if (*t.at < '0' || *t.at > '9')
      return -1;
    v = v * 10 + (uint64_t)(*t.at - '0');
  }
  *out = (uint32_t)v;
  return v > UINT32_MAX ? -1 : 0;
}

static int
bad(Parse *p, const char *what, Text t)
{
  return rt_error_set(p->err, TILERT_E_MODULE, "manifest in line %u of the PTX: %s: \"%.*s\"", p->line, what,
                   (int)(t.end - t.at > 80 ? 80 : t.end - t.at), t.at);
}

/* The words of lines. */
static const char *const kind_word[] = {
  [TILERT_PARAM_POINTER] = "ptr", [TILERT_PARAM_SCALAR] = "scalar", [TILERT_PARAM_TENSORMAP] = "tensormap",
  [TILERT_PARAM_TENSOR] = "tensor", [TILERT_PARAM_VIEW] = "view", [TILERT_PARAM_GRID] = "grid",
};
static const char *const part_word[] = {
  [TILERT_TENSOR_MAP] = "map", [TILERT_TENSOR_BASE] = "base", [TILERT_TENSOR_EXTENT] = "extent", [TILERT_TENSOR_STRIDE] = "stride",
};
enum { KINDS = sizeof kind_word / sizeof *kind_word, PARTS = sizeof part_word / sizeof *part_word };

/* ---- what fits ---- */

static uint32_t
tensor_size(TilertTensorPart part)
{
  static const uint32_t bytes[PARTS] = {
    [TILERT_TENSOR_MAP] = 128, [TILERT_TENSOR_BASE] = 8, [TILERT_TENSOR_EXTENT] = 4, [TILERT_TENSOR_STRIDE] = 8,
  };
  return (uint32_t)part < PARTS ? bytes[part] : 0;
}

uint32_t
tilert_param_size(const TilertParam *p)
{
  if (!p)
    return 0;
  switch (p->kind) {
  case TILERT_PARAM_POINTER: return 8;
  case TILERT_PARAM_TENSORMAP: return 128;
  case TILERT_PARAM_RAW: return p->size <= PARAM_BYTES_MAX ? p->size : 0;
  case TILERT_PARAM_TENSOR: case TILERT_PARAM_VIEW: return tensor_size(p->part);
  case TILERT_PARAM_GRID: return 4;
  case TILERT_PARAM_SCALAR: return dtype_size(rt_dtype_find(p->dtype));
  }
  return 0;
}

/* What no hardware copies in this form; NULL: nothing. */
static const char *
wrong_box(const TilertParam *p, uint32_t bytes)
{
  for (uint32_t i = 0; i < TILERT_MAX_RANK; i++)
    if (i < p->rank ? p->box[i] < 1 || p->box[i] > BOX_MOST : p->box[i] != 0)
      return "bad box of tensor";
  uint32_t row = p->box[p->rank - 1] * bytes, s = p->swizzle;
  if (s && s != 32 && s != 64 && s != 128)
    return "bad swizzle of tensor";
  if (row % ROW_STEP || (s && row > s))
    return "the rows of a box are no multiple of 16 bytes or longer than its swizzle";
  return NULL;
}

/* All corners together have 16 bits. */
static const char *
wrong_window(const TilertParam *p)
{
  if (p->rank < 3 || p->part != TILERT_TENSOR_MAP || p->stored || p->pixels > PIXELS_MOST)
    return "bad pixels of tensor";
  const int32_t most = (1 << (16 / (p->rank - 2) - 1)) - 1;
  for (uint32_t i = 0; i + 1 < p->rank; i++)
    if (p->box[i] != 1)
      return "a box of pixels has channels alone";
  for (uint32_t i = 0; i + 2 < p->rank; i++)
    if (p->lower[i] < -most - 1 || p->lower[i] > most || p->upper[i] < -most - 1 || p->upper[i] > most || p->steps[i] < 1 ||
        p->steps[i] > STEP_MOST)
      return "bad window of tensor";
  return NULL;
}

static int
has_window(const TilertParam *p)
{
  for (uint32_t i = 0; i + 2 < TILERT_MAX_RANK; i++)
    if (p->lower[i] || p->upper[i] || p->steps[i])
      return 1;
  return 0;
}

const char *
manifest_tensor_wrong(const TilertParam *p)
{
  uint32_t bytes = dtype_size(rt_dtype_find(p->dtype));
  if (!bytes)
    return "unknown type of parameter";
  if (p->rank < 1 || p->rank > TILERT_MAX_RANK)
    return "bad rank of tensor";
  if ((uint32_t)p->part >= PARTS)
    return "unknown part of tensor";
  if (p->dim >= p->rank)
    return "bad dimension of tensor";
  if (p->stored && p->part != TILERT_TENSOR_MAP)
    return "only maps store";
  if (p->tf32 && (p->part != TILERT_TENSOR_MAP || p->stored || rt_dtype_find(p->dtype) != DTYPE_F32))
    return "only maps of f32 that load round to tf32";
  const char *wrong = p->pixels ? wrong_window(p) : has_window(p) ? "a window without pixels" : NULL;
  if (wrong)
    return wrong;
  if (p->part == TILERT_TENSOR_MAP)
    return wrong_box(p, bytes);
  return p->swizzle ? "bad swizzle of tensor" : NULL;
}

static int
is_tensor(const TilertParam *p)
{
  return p->kind == TILERT_PARAM_TENSOR;
}

static int
is_view(const TilertParam *p)
{
  return p->kind == TILERT_PARAM_VIEW;
}

/* A scalar integer that an i64 holds. */
static int
is_factor(const TilertParam *p)
{
  const DtypeInfo *t = p->kind == TILERT_PARAM_SCALAR ? rt_dtype_info(rt_dtype_find(p->dtype)) : NULL;
  return t && (t->kind == KIND_SIGNED || t->kind == KIND_UNSIGNED) && strcmp(p->dtype, "u64");
}

static int
product_fits(const TilertManifest *m, const TilertProduct *x)
{
  for (uint32_t i = 0; i < x->n && i < TILERT_MAX_FACTORS; i++)
    if (x->param[i] >= m->nparams || !is_factor(&m->params[x->param[i]]))
      return 0;
  return x->n <= TILERT_MAX_FACTORS;
}

/* What is wrong with a view of this kernel; NULL: nothing. */
static const char *
view_wrong(const TilertManifest *m, const TilertParam *p)
{
  if (p->part != TILERT_TENSOR_MAP)
    return "a view is a map";
  if (p->of >= m->nparams || m->params[p->of].kind != TILERT_PARAM_POINTER || strcmp(m->params[p->of].dtype, p->dtype))
    return "a view of what is no pointer to its elements";
  for (uint32_t i = 0; i < p->rank; i++)
    if (!product_fits(m, &p->extents[i]) || (i + 1 < p->rank && !product_fits(m, &p->strides[i])))
      return "a view's extents or strides are of what is no integer";
  return NULL;
}

static int
is_grid(const TilertParam *p)
{
  return p->kind == TILERT_PARAM_GRID;
}

uint32_t
manifest_own(const TilertManifest *m)
{
  uint32_t n = m->nparams;
  while (n && (is_view(&m->params[n - 1]) || is_grid(&m->params[n - 1])))
    n--;
  return n;
}

const char *
manifest_resident_wrong(const TilertManifest *m)
{
  uint32_t n = 0, last = m->nparams;
  for (uint32_t i = 0; i < m->nparams; i++)
    n += is_grid(&m->params[i]);
  if (!n && !m->persistent)
    return NULL;
  if (n != AXES || !m->persistent || m->cluster[0])
    return "a persistent kernel has three parameters for the grid, and no cluster";
  for (uint32_t i = 0; i < AXES; i++)
    if (!is_grid(&m->params[last - AXES + i]) || m->params[last - AXES + i].dim != i)
      return "the extents of the grid are not the last parameters, in order";
  return NULL;
}

/* Do i and the parameter before it belong to one argument? */
static int
goes_on(const TilertManifest *m, uint32_t i)
{
  return i && is_tensor(&m->params[i]) && is_tensor(&m->params[i - 1]) && !strcmp(m->params[i].name, m->params[i - 1].name);
}

uint32_t
tilert_manifest_args(const TilertManifest *m, uint32_t first[TILERT_MAX_PARAMS])
{
  uint32_t n = 0, end = m ? manifest_own(m) : 0;
  for (uint32_t i = 0; i < end; i++)
    if (!goes_on(m, i)) {
      if (first)
        first[n] = i;
      n++;
    }
  return n;
}

const char *
manifest_tensors_wrong(const TilertManifest *m)
{
  for (uint32_t i = 0; i < m->nparams; i++) {
    const TilertParam *p = &m->params[i];
    const char *wrong = !is_view(p) ? NULL : i < manifest_own(m) ? "a view stands before an argument" : view_wrong(m, p);
    if (wrong)
      return wrong;
  }
  for (uint32_t i = 1; i < m->nparams; i++) {
    const TilertParam *p = &m->params[i];
    if (goes_on(m, i) && (p->rank != p[-1].rank || strcmp(p->dtype, p[-1].dtype)))
      return "the parts of a tensor differ in rank or type";
    for (uint32_t j = 0; is_tensor(p) && !goes_on(m, i) && j < i; j++)
      if (!strcmp(p->name, m->params[j].name))
        return "the parts of a tensor are apart";
  }
  return NULL;
}

int
manifest_pairs_fit(const TilertManifest *m)
{
  uint64_t pointers = 0, below = 0;
  for (uint32_t i = 0; i < m->nparams; i++)
    pointers |= (uint64_t)(m->params[i].kind == TILERT_PARAM_POINTER || is_tensor(&m->params[i])) << i;
  for (uint32_t i = 0; i < TILERT_MAX_PARAMS; i++) {
    below |= UINT64_C(1) << i;
    if (m->apart[i] && (!(pointers >> i & 1) || m->apart[i] & (~pointers | below)))
      return 0;
  }
  return 1;
}

int
manifest_cluster_fits(const TilertManifest *m)
{
  const uint32_t *c = m->cluster;
  return (!c[0] && !c[1] && !c[2]) || (c[0] && c[1] && c[2] && c[0] <= CLUSTER_MOST && c[1] <= CLUSTER_MOST &&
                                       (uint64_t)c[0] * c[1] * c[2] <= CLUSTER_MOST);
}

/* Does the term ask for what a launch gives? */
static int
grid_asks(const TilertManifest *m, const uint32_t *first, uint32_t n, const GridTerm *t)
{
  if (t->op != GRID_ARG && t->op != GRID_EXTENT)
    return 1;
  if (t->value < 0 || t->value >= n)
    return 0;
  const TilertParam *p = &m->params[first[t->value]];
  if (t->op == GRID_EXTENT)
    return is_tensor(p) && t->dim < p->rank;
  return is_factor(p) || (!strcmp(p->dtype, "u64") && p->kind == TILERT_PARAM_SCALAR);
}

const char *
manifest_grid_wrong(const TilertManifest *m, GridExpr *e)
{
  uint32_t first[TILERT_MAX_PARAMS], n = tilert_manifest_args(m, first);
  e->axes = 0;
  const char *wrong = m->grid[0] ? grid_parse(m->grid, e) : NULL;
  for (uint32_t i = 0; !wrong && e->axes && i < e->end[e->axes - 1]; i++)
    if (!grid_asks(m, first, n, &e->term[i]))
      wrong = "a grid of what is no integer or extent of a tensor";
  return wrong;
}

/* ---- reading ---- */

static int
parse_kind(Text t, TilertParamKind *kind)
{
  static const char pointer[] = "ptr";
  if (text_is(t, "pointer"))
    t = (Text){pointer, pointer + sizeof pointer - 1};
  for (uint32_t i = 0; i < KINDS; i++)
    if (kind_word[i] && text_is(t, kind_word[i])) {
      *kind = (TilertParamKind)i;
      return 0;
    }
  return -1;
}

/* 128x64: at most so many numbers. */
static int
parse_extents(Text t, uint32_t *out, uint32_t most)
{
  for (uint32_t i = 0; t.at < t.end; i++)
    if (i == most || text_number(text_until(&t, 'x'), &out[i]))
      return -1;
  return 0;
}

/* A box, of as many dimensions as there are numbers. */
static int
parse_box(Text t, TilertParam *q)
{
  return parse_extents(t, q->box, TILERT_MAX_RANK);
}

static int
text_signed(Text t, int64_t *out)
{
  char digits[24];
  char *end;
  if (text_copy(t, digits, sizeof digits) || digits[strspn(digits, "-0123456789")])
    return -1;
  *out = strtoll(digits, &end, 10);
  return *end ? -1 : 0;
}

/* 64*$3*$4, the number first; 1 where there is none. */
static int
parse_product(Text t, TilertProduct *x)
{
  x->times = 1;
  for (int first = 1; t.at < t.end || first; first = 0) {
    Text factor = text_until(&t, '*');
    if (factor.at < factor.end && *factor.at == '$') {
      factor.at++;
      if (x->n == TILERT_MAX_FACTORS || text_number(factor, &x->param[x->n++]))
        return -1;
    } else if (!first || text_signed(factor, &x->times))
      return -1;
  }
  return 0;
}

static int
parse_products(Text t, TilertProduct *x)
{
  for (uint32_t i = 0; t.at < t.end; i++)
    if (i == TILERT_MAX_RANK || parse_product(text_until(&t, 'x'), &x[i]))
      return -1;
  return 0;
}

/* A fact of a view alone: of=I, extents=, strides=. 1: it is none of these, -1: a wrong one. */
static int
parse_view_fact(Text fact, TilertParam *q)
{
  Text value = fact, key = text_until(&value, '=');
  if (text_is(key, "of"))
    return text_number(value, &q->of);
  if (text_is(key, "extents"))
    return parse_products(value, q->extents);
  return text_is(key, "strides") ? parse_products(value, q->strides) : 1;
}

/* As many numbers as pixels have dimensions. */
static int
parse_corners(Text t, int32_t *out)
{
  int64_t v = 0;
  for (uint32_t i = 0; t.at < t.end; i++) {
    if (i + 2 == TILERT_MAX_RANK || text_signed(text_until(&t, 'x'), &v) || v < INT16_MIN || v > INT16_MAX)
      return -1;
    out[i] = (int32_t)v;
  }
  return 0;
}

/* Of a map of pixels: pixels=N, lower=, upper=, steps=. 1: it is none of these, -1: a wrong one. */
static int
parse_window_fact(Text key, Text value, TilertParam *q)
{
  if (text_is(key, "pixels"))
    return text_number(value, &q->pixels);
  if (text_is(key, "lower"))
    return parse_corners(value, q->lower);
  if (text_is(key, "upper"))
    return parse_corners(value, q->upper);
  return text_is(key, "steps") ? parse_extents(value, q->steps, TILERT_MAX_RANK - 2) : 1;
}

/* A fact of a tensor's part: rank=R, map=BOX, swizzle=BYTES, stored, base, extent=D, stride=D, or of its window. 1: it is none of these,
 * -1: a wrong one. */
static int
parse_tensor_fact(Text fact, TilertParam *q)
{
  Text value = fact, key = text_until(&value, '=');
  if (text_is(key, "rank"))
    return text_number(value, &q->rank);
  if (text_is(key, "swizzle"))
    return text_number(value, &q->swizzle);
  if (text_is(fact, "stored")) {
    q->stored = 1;
    return 0;
  }
  if (text_is(fact, "tf32")) {
    q->tf32 = 1;
    return 0;
  }
  for (uint32_t i = 0; i < PARTS; i++)
    if (text_is(key, part_word[i])) {
      if ((uint32_t)q->part < PARTS)
        return -1;
      q->part = (TilertTensorPart)i;
      return i == TILERT_TENSOR_BASE ? (key.end == fact.end ? 0 : -1) : i == TILERT_TENSOR_MAP ? parse_box(value, q)
                                                                                               : text_number(value, &q->dim);
    }
  return parse_window_fact(key, value, q);
}

/* axis=D; -1: it is something else. */
static int
parse_axis(Text fact, TilertParam *q)
{
  Text value = fact, key = text_until(&value, '=');
  return text_is(key, "axis") ? text_number(value, &q->dim) : -1;
}

/* Behind the type: ALIGN, nonnull, null. */
static int
parse_facts(Parse *p, Text text, Text rest, TilertParam *q)
{
  while (rest.at < rest.end) {
    Text fact = text_until(&rest, ':');
    int tensor = is_tensor(q) || is_view(q) ? parse_tensor_fact(fact, q) : is_grid(q) ? parse_axis(fact, q) : 1;
    if (tensor == 1 && is_view(q))
      tensor = parse_view_fact(fact, q);
    if (tensor < 0)
      return bad(p, is_grid(q) ? "bad axis of the grid" : "bad part of tensor", text);
    if (!tensor)
      continue;
    if (q->kind == TILERT_PARAM_POINTER && text_is(fact, "nonnull"))
      q->null = TILERT_NULL_NEVER;
    else if (q->kind == TILERT_PARAM_POINTER && text_is(fact, "null"))
      q->null = TILERT_NULL_ALWAYS;
    else if (q->kind == TILERT_PARAM_SCALAR && text_is(fact, "nonneg"))
      q->nonneg = 1;
    else if (text_number(fact, &q->divisible) || q->divisible == 0)
      return bad(p, "bad alignment of parameter", text);
  }
  return TILERT_OK;
}

static int
parse_param(Parse *p, Text text)
{
  if (p->m->nparams == TILERT_MAX_PARAMS)
    return bad(p, "too many parameters", text);
  TilertParam *q = &p->m->params[p->m->nparams++];
  Text rest = text, name = text_until(&rest, ':'), kind = text_until(&rest, ':'), dtype = text_until(&rest, ':');
  q->divisible = 1;
  q->part = (TilertTensorPart)PARTS;   /* not said yet */
  if (text_copy(name, q->name, sizeof q->name))
    return bad(p, "bad parameter name", text);
  if (parse_kind(kind, &q->kind))
    return bad(p, "unknown kind of parameter", text);
  if (text_copy(dtype, q->dtype, sizeof q->dtype))
    return bad(p, "bad type of parameter", text);
  if (parse_facts(p, text, rest, q))
    return TILERT_E_MODULE;
  const char *wrong = is_tensor(q) || is_view(q) ? manifest_tensor_wrong(q) : NULL;
  if (wrong)
    return bad(p, wrong, text);
  if (!is_tensor(q) && !is_view(q))
    q->part = TILERT_TENSOR_MAP;
  q->size = tilert_param_size(q);
  return q->size ? TILERT_OK : bad(p, "unknown type of parameter", text);
}

/* I:J: two pointers, by their places among the parameters, which may stand behind. */
static int
parse_pair(Parse *p, Text text)
{
  Text rest = text, first = text_until(&rest, ':');
  uint32_t i, j;
  if (text_number(first, &i) || text_number(rest, &j) || i >= j || j >= TILERT_MAX_PARAMS)
    return bad(p, "bad pair of parameters", text);
  p->m->napart += !(p->m->apart[i] >> j & 1);
  p->m->apart[i] |= UINT64_C(1) << j;
  return TILERT_OK;
}

/* I: a pointer of which nothing else is known, by its place among the parameters, which stand in front. */
static int
parse_need(Parse *p, Text text)
{
  uint32_t i;
  TilertParam *q = text_number(text, &i) || i >= p->m->nparams ? NULL : &p->m->params[i];
  if (!q || q->kind != TILERT_PARAM_POINTER || q->null != TILERT_NULL_ANY)
    return bad(p, "bad number of a pointer", text);
  q->null = TILERT_NULL_NEEDED;
  return TILERT_OK;
}

static int
parse_list(Parse *p, Text list, int (*parse)(Parse *p, Text text))
{
  int status = TILERT_OK;
  while (!status && list.at < list.end)
    status = parse(p, text_until(&list, ','));
  return status;
}

/* The terms; what arguments they are of is checked with the whole manifest. */
static int
parse_grid(Parse *p, Text value)
{
  GridExpr e;
  const char *wrong = text_copy(value, p->m->grid, sizeof p->m->grid) ? "bad grid" : grid_parse(p->m->grid, &e);
  return wrong ? bad(p, wrong, value) : TILERT_OK;
}

static int
parse_field(Parse *p, Text field)
{
  Text value = field, key = text_until(&value, '=');
  if (text_is(key, "kernel"))
    return text_copy(value, p->m->kernel, sizeof p->m->kernel) ? bad(p, "bad kernel name", field) : 0;
  if (text_is(key, "target"))
    return text_copy(value, p->m->target, sizeof p->m->target) ? bad(p, "bad target", field) : 0;
  if (text_is(key, "warps"))
    return text_number(value, &p->m->warps) ? bad(p, "bad number of warps", field) : 0;
  if (text_is(key, "shared"))
    return text_number(value, &p->m->shared) ? bad(p, "bad size of shared memory", field) : 0;
  if (text_is(key, "cluster"))
    return parse_extents(value, p->m->cluster, 3) || !manifest_cluster_fits(p->m) ? bad(p, "bad cluster", field) : 0;
  if (text_is(key, "grid"))
    return parse_grid(p, value);
  if (text_is(key, "waits"))
    return text_number(value, &p->m->waits) || p->m->waits > 1 ? bad(p, "bad word on waits", field) : 0;
  if (text_is(key, "persistent"))
    return text_number(value, &p->m->persistent) ? bad(p, "bad number of programs", field) : 0;
  if (text_is(key, "params"))
    return parse_list(p, value, parse_param);
  if (text_is(key, "apart"))
    return parse_list(p, value, parse_pair);
  if (text_is(key, "needs"))
    return parse_list(p, value, parse_need);
  return TILERT_OK;
}

static int
parse_line(Parse *p, Text line)
{
  Text all = line;
  int status = TILERT_OK;
  memset(p->m, 0, sizeof *p->m);
  while (!status && line.at < line.end) {
    Text field = text_until(&line, ' ');
    if (field.at < field.end)
      status = parse_field(p, field);
  }
  if (!status && !p->m->kernel[0])
    status = bad(p, "no kernel=", all);
  if (!status && (p->m->warps == 0 || p->m->warps > 32))
    status = bad(p, "warps must be 1 to 32", all);
  if (!status && p->m->napart && !manifest_pairs_fit(p->m))
    status = bad(p, "a pair of what are no pointers", all);
  GridExpr e;
  const char *wrong = status ? NULL : manifest_tensors_wrong(p->m);
  if (!status && !wrong)
    wrong = manifest_grid_wrong(p->m, &e);
  if (!status && !wrong)
    wrong = manifest_resident_wrong(p->m);
  if (wrong)
    status = bad(p, wrong, all);
  return status;
}

int
tilert_manifest_parse(const char *text, size_t len, TilertManifest *out, size_t max, size_t *n, TilertError *err)
{
  NEED(text || !len);
  NEED(out || !max);
  NEED(n);
  static const char mark[] = "//@tilec ";
  enum { MARK = sizeof mark - 1 };
  Text rest = {text, text + len};
  int status = TILERT_OK;
  *n = 0;
  TilertManifest *spare = malloc(sizeof *spare);
  if (!spare)
    return error_no_memory(err);
  for (unsigned number = 1; !status && rest.at < rest.end; number++) {
    Text line = text_until(&rest, '\n');
    if (line.end - line.at < MARK || memcmp(line.at, mark, MARK))
      continue;
    Parse p = {*n < max ? &out[*n] : spare, number, err};
    line.end -= line.end[-1] == '\r';
    status = parse_line(&p, (Text){line.at + MARK, line.end});
    ++*n;
  }
  free(spare);
  return status;
}

/* ---- writing ---- */

/* What has been written, which may be more than there is room for. */
typedef struct Out { char *to; size_t n, length; } Out;

static void __attribute__((format(printf, 2, 3)))
put(Out *o, const char *format, ...)
{
  size_t left = o->length < o->n ? o->n - o->length : 0;
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(left ? o->to + o->length : NULL, left, format, ap);
  va_end(ap);
  o->length += n > 0 ? (size_t)n : 0;
}

static void
put_corners(Out *o, const char *word, const int32_t *x, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    put(o, i ? "x" : ":%s=", word);
    put(o, "%" PRId32, x[i]);
  }
}

static void
put_window(Out *o, const TilertParam *p)
{
  put(o, ":pixels=%" PRIu32, p->pixels);
  put_corners(o, "lower", p->lower, p->rank - 2);
  put_corners(o, "upper", p->upper, p->rank - 2);
  for (uint32_t i = 0; i + 2 < p->rank; i++)
    put(o, "%s%" PRIu32, i ? "x" : ":steps=", p->steps[i]);
}

static void
put_part(Out *o, const TilertParam *p)
{
  put(o, ":rank=%" PRIu32 ":%s", p->rank, part_word[p->part]);
  for (uint32_t i = 0; p->part == TILERT_TENSOR_MAP && i < p->rank; i++)
    put(o, "%c%" PRIu32, i ? 'x' : '=', p->box[i]);
  if (p->part == TILERT_TENSOR_MAP && p->swizzle)
    put(o, ":swizzle=%" PRIu32, p->swizzle);
  if (p->part == TILERT_TENSOR_MAP && p->stored)
    put(o, ":stored");
  if (p->part == TILERT_TENSOR_MAP && p->tf32)
    put(o, ":tf32");
  if (p->pixels)
    put_window(o, p);
  if (p->part == TILERT_TENSOR_EXTENT || p->part == TILERT_TENSOR_STRIDE)
    put(o, "=%" PRIu32, p->dim);
}

static void
put_products(Out *o, const char *word, const TilertProduct *x, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    put(o, i ? "x" : ":%s=", word);
    if (x[i].times != 1 || !x[i].n)
      put(o, "%" PRId64 "%s", x[i].times, x[i].n ? "*" : "");
    for (uint32_t k = 0; k < x[i].n && k < TILERT_MAX_FACTORS; k++)
      put(o, "%s$%" PRIu32, k ? "*" : "", x[i].param[k]);
  }
}

static void
put_view(Out *o, const TilertParam *p)
{
  put(o, ":of=%" PRIu32, p->of);
  put_products(o, "extents", p->extents, p->rank);
  put_products(o, "strides", p->strides, p->rank - 1);
}

static void
put_param(Out *o, const TilertParam *p)
{
  put(o, "%s:%s:%s", p->name, kind_word[p->kind], p->dtype);
  if (is_tensor(p) || is_view(p))
    put_part(o, p);
  if (is_view(p))
    put_view(o, p);
  if (is_grid(p))
    put(o, ":axis=%" PRIu32, p->dim);
  if (p->divisible > 1)
    put(o, ":%" PRIu32, p->divisible);
  if (p->null == TILERT_NULL_ALWAYS || p->null == TILERT_NULL_NEVER)
    put(o, p->null == TILERT_NULL_ALWAYS ? ":null" : ":nonnull");
  if (p->nonneg)
    put(o, ":nonneg");
}

static void
put_pairs(Out *o, const TilertManifest *m)
{
  const char *between = " apart=";
  for (uint32_t i = 0; m->napart && i < m->nparams; i++)
    for (uint64_t left = m->apart[i]; left; left &= left - 1, between = ",")
      put(o, "%s%" PRIu32 ":%d", between, i, __builtin_ctzll(left));
}

static void
put_needs(Out *o, const TilertManifest *m)
{
  const char *between = " needs=";
  for (uint32_t i = 0; i < m->nparams; i++)
    if (m->params[i].null == TILERT_NULL_NEEDED) {
      put(o, "%s%" PRIu32, between, i);
      between = ",";
    }
}

static int
has_words(const TilertParam *p)
{
  return (uint32_t)p->kind < KINDS && kind_word[p->kind] && (uint32_t)p->part < PARTS;
}

size_t
tilert_manifest_text(const TilertManifest *m, char *out, size_t n)
{
  Out o = {out, out ? n : 0, 0};
  if (o.n)
    *out = 0;
  for (uint32_t i = 0; m && i < m->nparams; i++)
    if (!has_words(&m->params[i]))
      return 0;
  if (!m)
    return 0;
  put(&o, "//@tilec kernel=%s warps=%" PRIu32 " shared=%" PRIu32, m->kernel, m->warps, m->shared);
  if (m->cluster[0])
    put(&o, " cluster=%" PRIu32 "x%" PRIu32 "x%" PRIu32, m->cluster[0], m->cluster[1], m->cluster[2]);
  if (m->grid[0])
    put(&o, " grid=%s", m->grid);
  put(&o, "%s", m->waits ? " waits=1" : "");
  if (m->persistent)
    put(&o, " persistent=%" PRIu32, m->persistent);
  put(&o, "%s%s params=", m->target[0] ? " target=" : "", m->target);
  for (uint32_t i = 0; i < m->nparams; i++) {
    put(&o, "%s", i ? "," : "");
    put_param(&o, &m->params[i]);
  }
  put_pairs(&o, m);
  put_needs(&o, m);
  put(&o, "\n");
  return o.length;
}
