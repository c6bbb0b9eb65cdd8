/* target.h - rows of targets.def. Code asks for a feature or reads a number, never compares names. */
#ifndef TILEC_TARGET_H
#define TILEC_TARGET_H
#include "base.h"

typedef enum Feature {
#define FEATURE(id, name, doc) F_##id,
#include "targets.def"
#undef FEATURE
  FEATURE_COUNT
} Feature;

struct Target {
  const char *name, *cpu;
  u32 ptx;               /* PTX ISA version x 10 */
  u32 shared_max;        /* bytes of shared memory a block may ask for */
  u32 shared_total;      /* bytes per SM */
  u32 regs_total;        /* 32-bit registers per SM */
  u32 regs_thread;       /* of which a thread may have so many */
  u32 threads_max;       /* per block */
  u64 features;
};
const Target *target_find(const char *name);         /* NULL if unknown */
/* The target of `text`, a name and perhaps +FEATURE, several times: with these, whether or not its chip has them. NULL if unknown. */
const Target *target_with(Arena *a, const char *text);
const Target *target_nearest(const char *name);      /* what an unknown name of a device may mean */
enum { REGISTERS_STEP = 8 };                         /* a thread's registers are given out by so many */
/* Registers that each of so many threads of a multiprocessor can have. */
static inline u32 target_registers(const Target *t, u32 threads) { return t->regs_total / threads / REGISTERS_STEP * REGISTERS_STEP; }
const Target *target_at(u32 i);                      /* NULL past the end */
static inline bool target_has(const Target *t, Feature f) { return t->features >> f & 1; }
const char *feature_name(Feature f);
const char *feature_doc(Feature f);
#endif
