/* manifest.c - read the `//@tilec` lines that PTX text carries:
 *   //@tilec kernel=NAME warps=W shared=BYTES target=sm_90a params=NAME:KIND:DTYPE[:ALIGN][:nonnull|:null],... apart=I:J,...
 * Fields may come in any order; kernel and warps must be there. KIND is ptr, scalar or tensormap (or the long
 * word). Unknown fields are passed over, so that a newer compiler's PTX still loads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "dtype.h"

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
  if (n == 0 || n >= size)
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

static int
parse_kind(Text t, TilertParamKind *kind)
{
  static const struct { const char *word; TilertParamKind kind; } words[] = {
    {"ptr", TILERT_PARAM_POINTER}, {"pointer", TILERT_PARAM_POINTER}, {"scalar", TILERT_PARAM_SCALAR},
    {"tensormap", TILERT_PARAM_TENSORMAP},
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (text_is(t, words[i].word)) {
      *kind = words[i].kind;
      return 0;
    }
  return -1;
}

static uint32_t
param_size(const TilertParam *p)
{
  switch (p->kind) {
  case TILERT_PARAM_POINTER: return 8;
  case TILERT_PARAM_TENSORMAP: return 128;
  case TILERT_PARAM_SCALAR: case TILERT_PARAM_RAW: break;
  }
  return dtype_size(rt_dtype_find(p->dtype));
}

/* Behind the type: ALIGN, nonnull, null. */
static int
parse_facts(Parse *p, Text text, Text rest, TilertParam *q)
{
  while (rest.at < rest.end) {
    Text fact = text_until(&rest, ':');
    if (q->kind == TILERT_PARAM_POINTER && text_is(fact, "nonnull"))
      q->null = TILERT_NULL_NEVER;
    else if (q->kind == TILERT_PARAM_POINTER && text_is(fact, "null"))
      q->null = TILERT_NULL_ALWAYS;
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
  if (text_copy(name, q->name, sizeof q->name))
    return bad(p, "bad parameter name", text);
  if (parse_kind(kind, &q->kind))
    return bad(p, "unknown kind of parameter", text);
  if (text_copy(dtype, q->dtype, sizeof q->dtype))
    return bad(p, "bad type of parameter", text);
  if (parse_facts(p, text, rest, q))
    return TILERT_E_MODULE;
  q->size = param_size(q);
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

static int
parse_list(Parse *p, Text list, int (*parse)(Parse *p, Text text))
{
  int status = TILERT_OK;
  while (!status && list.at < list.end)
    status = parse(p, text_until(&list, ','));
  return status;
}

int
manifest_pairs_fit(const TilertManifest *m)
{
  uint64_t pointers = 0, below = 0;
  for (uint32_t i = 0; i < m->nparams; i++)
    pointers |= (uint64_t)(m->params[i].kind == TILERT_PARAM_POINTER) << i;
  for (uint32_t i = 0; i < TILERT_MAX_PARAMS; i++) {
    below |= UINT64_C(1) << i;
    if (m->apart[i] && (!(pointers >> i & 1) || m->apart[i] & (~pointers | below)))
      return 0;
  }
  return 1;
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
  if (text_is(key, "params"))
    return parse_list(p, value, parse_param);
  if (text_is(key, "apart"))
    return parse_list(p, value, parse_pair);
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
