/* gpu.h - the device, and memory on it that goes when it is closed. */
#ifndef LLAMA_GPU_H
#define LLAMA_GPU_H
#include "common.h"
#include <tilec/tilert.h>

typedef struct GpuBuffer GpuBuffer;
typedef struct Gpu {
  TilertDevice *device;
  TilertStream *stream;
  Memory memory;
  GpuBuffer *buffers;
  bool wide;                    /* kernels in many programs, which keep a GPU busy; else in few instructions, for the simulator */
  bool warpgroups;              /* it has products of warpgroups, */
  bool pairs;                   /* and those of warpgroups.tile and layers.tile, which are for capability 9.0 */
  int32_t multiprocessors;
  TilertBuffer *widened;        /* room for a matrix in f16, on the way to a product of many tokens */
} Gpu;

/* spec: "cuda", "sim", or NULL for what there is. wide: on the simulator, too. */
int gpu_open(Gpu *g, const char *spec, bool wide, Fail *fail);
void gpu_close(Gpu *g);
/* NULL with a sentence. what: for that sentence. */
TilertBuffer *gpu_take(Gpu *g, size_t bytes, const char *what, Fail *fail);
TilertBuffer *gpu_put(Gpu *g, const void *from, size_t bytes, const char *what, Fail *fail);
/* Where it is on the device. */
void *gpu_at(const TilertBuffer *b);
/* The runtime's words as ours: 0 for 0, else -1. */
int gpu_status(int status, const TilertError *err, Fail *fail);
#endif
