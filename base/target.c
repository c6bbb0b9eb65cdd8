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
