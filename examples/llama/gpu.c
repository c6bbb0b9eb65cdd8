#include "gpu.h"
#include "kernels_kernels.h"
#include "layers_kernels.h"
#include "warpgroups_kernels.h"

enum { WIDE_SIM = 4 };          /* multiprocessors of a simulator that is to do as a GPU does */

struct GpuBuffer { GpuBuffer *before; TilertBuffer *buffer; };

int
gpu_status(int status, const TilertError *err, Fail *fail)
{
  return status ? fail_with(fail, "%s", err->message) : 0;
}

int
gpu_open(Gpu *g, const char *spec, bool wide, Fail *fail)
{
  TilertOptions options;
  TilertError err = {0};
  *g = (Gpu){0};
  tilert_options_default(&options);
  options.sim_check_races = 0;            /* a token is a hundred million products: the simulator is to be quick */
  options.sim_multiprocessors = wide ? WIDE_SIM : 0;    /* programs that meet wait for all */
  int status = tilert_device_open(spec, &options, &g->device, &err);
  if (!status)
    status = kernels_kernels_load(g->device, &err);       /* what is captured is not to load anything */
  const TilertDeviceInfo *info = status ? NULL : tilert_device_info(g->device);
  g->pairs = info && info->capability_major == 9 && info->capability_minor == 0;
  if (g->pairs)
    status = warpgroups_kernels_load(g->device, &err) || layers_kernels_load(g->device, &err);
  if (!status)
    status = tilert_stream_create(g->device, &g->stream, &err);
  g->wide = !status && (wide || !tilert_device_info(g->device)->is_sim);
  g->warpgroups = !status && tilert_device_info(g->device)->capability_major >= 9;
  g->multiprocessors = status ? 0 : (int32_t)tilert_device_info(g->device)->multiprocessors;
  return gpu_status(status, &err, fail);
}

void
gpu_close(Gpu *g)
{
  for (GpuBuffer *b = g->buffers; b; b = b->before)
    tilert_buffer_destroy(b->buffer);
  tilert_stream_destroy(g->stream);
  if (g->device) {
    kernels_kernels_unload();
    warpgroups_kernels_unload();
    layers_kernels_unload();
  }
  tilert_device_close(g->device);
  memory_free(&g->memory);
  *g = (Gpu){0};
}

TilertBuffer *
gpu_take(Gpu *g, size_t bytes, const char *what, Fail *fail)
{
  TilertError err = {0};
  GpuBuffer *b = memory_take(&g->memory, 1, sizeof *b, fail);
  if (!b)
    return NULL;
  if (tilert_buffer_create(g->device, bytes, &b->buffer, &err)) {
    fail_with(fail, "%s: %s", what, err.message);
    return NULL;
  }
  b->before = g->buffers;
  g->buffers = b;
  return b->buffer;
}

TilertBuffer *
gpu_put(Gpu *g, const void *from, size_t bytes, const char *what, Fail *fail)
{
  TilertError err = {0};
  TilertBuffer *b = gpu_take(g, bytes, what, fail);
  if (b && tilert_buffer_write(b, 0, from, bytes, NULL, &err)) {
    fail_with(fail, "%s: %s", what, err.message);
    return NULL;
  }
  return b;
}

void *
gpu_at(const TilertBuffer *b)
{
  return b ? (void *)(uintptr_t)tilert_buffer_address(b) : NULL;
}
