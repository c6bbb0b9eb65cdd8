/* target.c - the rows of targets.def. */
#include "target.h"

#define F(id) (1ull << F_##id)
static const Target targets[] = {
#define TARGET(id, cpu, ptx, shared_max, shared_total, regs, regs_thread, threads, features) \
  {#id, cpu, ptx, shared_max, shared_total, regs, regs_thread, threads, features},
#include "targets.def"
#undef TARGET
};
#undef F

static const struct { const char *name, *doc; } features[FEATURE_COUNT] = {
#define FEATURE(id, name, doc) {name, doc},
#include "targets.def"
#undef FEATURE
};

/* The target of that name, NULL if there is none. */
const Target *
target_find(const char *name)
{
  for (size_t i = 0; i < COUNT(targets); i++)
    if (!strcmp(targets[i].name, name))
      return &targets[i];
  return NULL;
}

const Target *
target_with(Arena *a, const char *text)
{
  size_t n = strcspn(text, "+");
  const Target *base = target_find(arena_printf(a, "%.*s", (int)n, text));
  if (!base || !text[n])
    return base;
  Target *t = NEW(a, Target);
  *t = *base;
  for (const char *at = text + n; *at; at += n) {
    u32 f = 0;
    n = strcspn(++at, "+");
    while (f < FEATURE_COUNT && (strlen(features[f].name) != n || memcmp(features[f].name, at, n)))
      f++;
    if (f == FEATURE_COUNT)
      return NULL;
    t->features |= 1ull << f;
  }
  return t;
}

/* The first number in s; 0 if there is none. */
static u32
capability(const char *s)
{
  u32 n = 0;
  for (s += strcspn(s, "0123456789"); *s >= '0' && *s <= '9' && n < 100000; s++)
    n = n * 10 + (u32)(*s - '0');
  return n;
}

/* A letter behind the number: code for this device alone. */
static bool
is_specific(const char *name)
{
  size_t n = strlen(name);
  return n && (name[n - 1] < '0' || name[n - 1] > '9');
}

/* What runs on the device that an unknown name means: the target of its number or, if that stands alone, the last one below it whose
 * code runs on later devices. NULL if there is none. */
const Target *
target_nearest(const char *name)
{
  const Target *below = NULL;
  u32 wanted = capability(name);
  for (size_t i = 0; i < COUNT(targets); i++) {
    u32 n = capability(targets[i].name);
    if (n == wanted)
      return &targets[i];
    if (n < wanted && !is_specific(name) && !is_specific(targets[i].name))
      below = &targets[i];
  }
  return below;
}

/* Row i, NULL past the end. */
const Target *
target_at(u32 i)
{
  return i < COUNT(targets) ? &targets[i] : NULL;
}

/* The spelling of a feature. */
const char *
feature_name(Feature f)
{
  return features[f].name;
}

/* What a feature is. */
const char *
feature_doc(Feature f)
{
  return features[f].doc;
}
