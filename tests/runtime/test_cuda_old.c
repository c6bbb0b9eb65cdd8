/* The cuda device over a fake driver of CUDA 11: modules are loaded all the same, and what it lacks is said by name.
 * Run with that libcuda.so.1 first on LD_LIBRARY_PATH. */
#include "check.h"
#include "kernels.h"
#include "tilert.h"

static TilertError err;

int
main(void)
{
  TilertDevice *d;
  TilertModule *m;
  TilertKernel *k;
  TilertLaunch *l;
  const uint32_t grid[3] = {2, 1, 1}, cluster[3] = {2, 1, 1};
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 2}, {.kind = TILERT_ARG_POINTER, .u.pointer = 0x1000},
                             {.kind = TILERT_ARG_POINTER, .u.pointer = 0x2000}, {.kind = TILERT_ARG_INT, .u.i = -7}};
  const uint64_t extents[2] = {64, 64}, strides[1] = {128};
  const uint32_t box[2] = {16, 16}, steps[2] = {1, 1};
  const TilertTensor tensor = {.type = 6, .rank = 2, .address = 0x1000, .extents = extents, .strides = strides, .box = box, .steps = steps};
  _Alignas(64) unsigned char map[128];
  const char *wrong = "//@tilec kernel=k warps=1\nreject me\n";
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK_FAILS(tilert_module_load(d, wrong, strlen(wrong), NULL, 0, &m, &err), TILERT_E_MODULE, "line 3; error : Parsing error");
  CHECK_OK(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, "axpy", &k, &err));
  CHECK_OK(tilert_launch_create(k, grid, args, 4, &l, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_FAILS(tilert_launch_set_cluster(l, cluster, &err), TILERT_E_UNAVAILABLE, "no cuLaunchKernelEx");
  CHECK_FAILS(tilert_launch_set_pdl(l, 1, &err), TILERT_E_UNAVAILABLE, "no cuLaunchKernelEx");
  CHECK_FAILS(tilert_tensor_map(d, &tensor, map, &err), TILERT_E_UNAVAILABLE, "no cuTensorMapEncodeTiled");
  const uint64_t volume[3] = {64, 8, 8}, apart[2] = {128, 1024};
  const uint32_t each[3] = {1, 1, 1};
  const int32_t corner[1] = {0};
  const TilertPixels pixels = {corner, corner, 16, 4};
  const TilertTensor images = {.type = 6, .rank = 3, .address = 0x1000, .extents = volume, .strides = apart, .steps = each};
  CHECK_FAILS(tilert_tensor_map_im2col(d, &images, &pixels, map, &err), TILERT_E_UNAVAILABLE, "no cuTensorMapEncodeIm2col");
  TilertGraph *graph;
  TilertStream *stream;
  TilertPool *pool;
  CHECK_OK(tilert_stream_create(d, &stream, &err));
  CHECK_FAILS(tilert_graph_create(d, &graph, &err), TILERT_E_UNAVAILABLE, "no cuGraphAddKernelNode_v2");
  CHECK_FAILS(tilert_stream_capture_begin(stream, &err), TILERT_E_UNAVAILABLE, "no cuStreamGetCaptureInfo_v2");
  CHECK(!tilert_stream_capturing(stream));
  CHECK_FAILS(tilert_pool_create(d, NULL, &pool, &err), TILERT_E_UNAVAILABLE, "has no memory pools");
  CHECK_FAILS(tilert_launch_set_priority(l, 0, &err), TILERT_E_UNAVAILABLE, "kernel axpy: libcuda.so.1 has no cuLaunchKernelEx");
  tilert_stream_destroy(stream);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  const char *boxes = "//@tilec kernel=k warps=1 params=a:tensor:f16:rank=2:map=16x16\n", *rows = "//@tilec kernel=k warps=1 params=a:tensor:f16:rank=2:base\n";
  const int64_t shape[2] = {64, 64};
  const TilertTensorArg a = {.address = 0x1000, .rank = 2, .extents = shape};
  const TilertArg arg = {.kind = TILERT_ARG_TENSOR, .u.tensor = &a};
  CHECK_OK(tilert_module_load(d, boxes, strlen(boxes), NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK_FAILS(tilert_launch(NULL, k, grid, &arg, 1, &err), TILERT_E_UNAVAILABLE, "kernel k, argument 0 (a): libcuda.so.1 has no cuTensorMapEncodeTiled");
  tilert_module_destroy(m);
  CHECK_OK(tilert_module_load(d, rows, strlen(rows), NULL, 0, &m, &err));   /* what needs no map is launched */
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK_OK(tilert_launch(NULL, k, grid, &arg, 1, &err));
  tilert_module_destroy(m);
  tilert_device_close(d);
  return 0;
}
