#include "argspec.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 5 };

typedef struct Spec {
  char text[256];
  char *field[FIELDS];
  int n;                       /* more than FIELDS: too many */
  double low, high;            /* the numbers between type and shape */
  int64_t whole_low, whole_high;
  uint64_t seed;
  char *message;
  size_t size;
} Spec;

typedef uint64_t (*Element)(const Spec *s, Dtype t, size_t i);

static uint64_t
encode(Dtype t, double v)
{
  uint64_t bits = 0;
  if (rt_dtype_info(t)->kind == KIND_FLOAT)
    return dtype_encode_float(t, v);
  dtype_encode_int(t, (int64_t)v, &bits);
  return bits;
}

static uint64_t
random_bits(const Spec *s, size_t i)
{
  uint64_t x = s->seed + i + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static double
random_unit(const Spec *s, size_t i)
{
  return (double)(random_bits(s, i) >> 40) / 16777216.0;
}

static uint64_t
element_zero(const Spec *s, Dtype t, size_t i)
{
  return 0;
}

static uint64_t
element_one(const Spec *s, Dtype t, size_t i)
{
  return encode(t, 1);
}

static uint64_t
element_full(const Spec *s, Dtype t, size_t i)
{
  uint64_t bits;
  if (rt_dtype_info(t)->kind == KIND_FLOAT)
    return dtype_encode_float(t, s->low);
  dtype_encode_int(t, s->whole_low, &bits);
  return bits;
}

static uint64_t
element_index(const Spec *s, Dtype t, size_t i)
{
  return encode(t, (double)i);
}

static uint64_t
element_rand(const Spec *s, Dtype t, size_t i)
{
  return encode(t, random_unit(s, i));
}

static uint64_t
element_uniform(const Spec *s, Dtype t, size_t i)
{
  return encode(t, s->low + (s->high - s->low) * random_unit(s, i));
}

static uint64_t
element_randint(const Spec *s, Dtype t, size_t i)
{
  uint64_t range = (uint64_t)s->whole_high - (uint64_t)s->whole_low, bits = 0;
  int64_t v = (int64_t)((uint64_t)s->whole_low + random_bits(s, i) % (range ? range : 1));
  dtype_encode_int(t, v, &bits);
  return bits;
}

static const struct Generator { const char *name; int fields; Element element; } generators[] = {
  {"zeros", 3, element_zero}, {"ones", 3, element_one}, {"empty", 3, element_zero}, {"full", 4, element_full},
  {"arange", 3, element_index}, {"rand", 3, element_rand}, {"uniform", 5, element_uniform},
  {"randint", 5, element_randint},
};

static const struct Generator *
generator_find(const char *word)
{
  size_t n = strcspn(word, ":");
  for (size_t i = 0; word[n] && i < sizeof generators / sizeof *generators; i++)
    if (strlen(generators[i].name) == n && !memcmp(generators[i].name, word, n))
      return &generators[i];
  return NULL;
}

int
argspec_is_array(const char *word)
{
  return strchr(word, '@') || generator_find(word);
}

static int
fail(const Spec *s, const char *what, const char *word)
{
  snprintf(s->message, s->size, "%s: %s", what, word);
  return -1;
}

static void
split(Spec *s)
{
  char *at = s->text;
  for (; at && s->n < FIELDS; s->n++) {
    s->field[s->n] = at;
    at = strchr(at, ':');
    if (at)
      *at++ = 0;
  }
  s->n += at != NULL;
}

/* A whole number: its value must be one of the type's. */
static int
parse_whole(Spec *s, Dtype t, const char *text, int64_t *out, int past_end)
{
  uint64_t bits;
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (end == text || *end || errno)
    return fail(s, "bad whole number", text);
  return dtype_encode_int(t, *out - (past_end && *out > INT64_MIN), &bits) ? 0 : fail(s, "it does not fit the type", text);
}

/* The numbers between type and shape. Those of randint are whole, and so is the value of an array of integers. */
static int
parse_numbers(Spec *s, Dtype t, const struct Generator *g)
{
  int whole = g->element == element_randint || (g->element == element_full && rt_dtype_info(t)->kind != KIND_FLOAT);
  for (int i = 2; i < s->n - 1; i++) {
    char *end;
    *(i == 2 ? &s->low : &s->high) = strtod(s->field[i], &end);
    if (end == s->field[i] || *end)
      return fail(s, "bad number", s->field[i]);
    if (whole && parse_whole(s, t, s->field[i], i == 2 ? &s->whole_low : &s->whole_high, i == 3))
      return -1;
  }
  if (g->element == element_randint && s->whole_low >= s->whole_high)
    return fail(s, "there is no number from LO up to HI", s->field[2]);
  if (g->element == element_uniform && !(s->low <= s->high && isfinite(s->high - s->low)))
    return fail(s, "LO and HI are no interval", s->field[2]);
  if (g->element == element_uniform && rt_dtype_info(t)->kind != KIND_FLOAT)
    return fail(s, "for integers there is randint", s->field[1]);
  return 0;
}

int
argspec_shape(const char *text, size_t *shape)
{
  const char *at = text;
  int n = 0;
  for (;; at++) {
    char *end;
    if (*at < '0' || *at > '9' || n == ARRAY_DIMS)
      return -1;
    errno = 0;
    shape[n++] = strtoull(at, &end, 10);
    if (errno)
      return -1;
    at = end;
    if (!*at)
      return n;
    if (*at != 'x')
      return -1;
  }
}

static uint64_t
name_hash(const char *name)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return h;
}

static int
generate(Spec *s, const struct Generator *g, const char *word, Array *out)
{
  size_t shape[ARRAY_DIMS];
  split(s);
  if (s->n != g->fields)
    return fail(s, "wrong number of fields", word);
  Dtype t = rt_dtype_find(s->field[1]);
  if (t == DTYPE_NONE)
    return fail(s, "unknown type", s->field[1]);
  int ndim = argspec_shape(s->field[s->n - 1], shape);
  if (ndim < 0)
    return fail(s, "bad shape, expected one like 4x8", s->field[s->n - 1]);
  if (parse_numbers(s, t, g) || array_create(out, t, ndim, shape, s->message, s->size))
    return -1;
  uint64_t last;
  if (g->element == element_index && rt_dtype_info(t)->kind != KIND_FLOAT && out->count &&
      !dtype_encode_int(t, (int64_t)out->count - 1, &last)) {
    array_destroy(out);
    return fail(s, "it counts beyond its type", word);
  }
  for (size_t i = 0; g->element != element_zero && i < out->count; i++)
    array_set_bits(out, i, g->element(s, t, i));
  return 0;
}

static int
read_named(Spec *s, const char *word, Array *out)
{
  char prefix[16] = "";
  const char *path = strchr(word, '@') + 1;
  Dtype as = DTYPE_NONE;
  if (path - word > 1) {
    snprintf(prefix, sizeof prefix, "%.*s", (int)(path - word - 1), word);
    as = rt_dtype_find(prefix);
    if (as == DTYPE_NONE)
      return fail(s, "unknown type before @", word);
  }
  return npy_read(path, as, out, s->message, s->size);
}

int
argspec_create(const char *name, const char *word, uint64_t seed, Array *out, int *empty, char *message, size_t size)
{
  Spec s = {.seed = seed + name_hash(name), .message = message, .size = size};
  const struct Generator *g = generator_find(word);
  memset(out, 0, sizeof *out);
  if (empty)
    *empty = !strncmp(word, "empty:", 6);
  if (!g)
    return strchr(word, '@') ? read_named(&s, word, out) : fail(&s, "not an array", word);
  if (strlen(word) >= sizeof s.text)
    return fail(&s, "too long", word);
  strcpy(s.text, word);
  return generate(&s, g, word, out);
}
