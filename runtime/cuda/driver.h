/* driver.h - private: the little of the CUDA driver API that is used, declared here so that no toolkit is needed. */
#ifndef TILERT_CUDA_DRIVER_H
#define TILERT_CUDA_DRIVER_H
#include "../device.h"

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

typedef struct CUmemPool_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct CUwindow { void *base; size_t bytes; float ratio; int hit, miss; } CUwindow;
/* A launch, stream or node with attributes: of those that exist, a window, the cluster's size, programmatic dependent launch (flag) and the
 * priority are used. */
typedef union CUlaunchAttributeValue {
  char all[64];
  CUwindow window;
  struct { unsigned x, y, z; } cluster;
  int flag, priority;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute { int id, reserved; CUlaunchAttributeValue value; } CUlaunchAttribute;
typedef struct CUlaunchConfig {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned nattributes;
} CUlaunchConfig;

/* Of places: CU_MEMORY_*; host or device is where it lies, the other is not read. */
typedef struct CUplace2D {
  size_t x, y;
  int type;
  void *host;
  CUdeviceptr device;
  void *array;
  size_t pitch;
} CUplace2D;
typedef struct CUmemcpy2D { CUplace2D src, dst; size_t width, height; } CUmemcpy2D;
typedef struct CUplace3D {
  size_t x, y, z, lod;
  int type;
  void *host;
  CUdeviceptr device;
  void *array, *reserved;
  size_t pitch, height;
} CUplace3D;
typedef struct CUmemcpy3D { CUplace3D src, dst; size_t width, height, depth; } CUmemcpy3D;
typedef struct CUmemsetParams { CUdeviceptr dst; size_t pitch; unsigned value, element; size_t width, height; } CUmemsetParams;
typedef struct CUhostParams { void (*f)(void *); void *user; } CUhostParams;
typedef struct CUkernelParams {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kernel;
  CUcontext context;
} CUkernelParams;
typedef struct CUgraphEdge { unsigned char from_port, to_port, type, reserved[5]; } CUgraphEdge;
typedef struct CUmemPoolProps {
  int type, handles;
  struct { int type, id; } location;
  void *security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,   /* the first and the last of what captures fail with */
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_INVALID_HANDLE = 400,
  /* JIT options */
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_OPTIMIZATION_LEVEL = 7,            /* 0 to 4, as ptxas has them; 4 if nothing is said */
  CU_JIT_GENERATE_LINE_INFO = 13,
  /* function attributes */
  CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_SHARED_SIZE_BYTES = 1,
  CU_FUNC_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_NUM_REGS = 4,
  CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_REQUIRED_CLUSTER_WIDTH = 11,      /* and height, depth: as compiled, 0 where that says nothing */
  CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  /* launch attributes */
  CU_LAUNCH_ACCESS_POLICY_WINDOW = 1,
  CU_LAUNCH_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CU_LAUNCH_PRIORITY = 8,
  /* places, pools, pinned memory, pointers, limits */
  CU_MEMORY_HOST = 1,
  CU_MEMORY_DEVICE = 2,
  CU_POOL_RELEASE_THRESHOLD = 4,
  CU_POOL_RESERVED_CURRENT = 5,
  CU_POOL_RESERVED_HIGH = 6,
  CU_POOL_USED_CURRENT = 7,
  CU_POOL_USED_HIGH = 8,
  CU_POOL_PINNED = 1,
  CU_POOL_ON_DEVICE = 1,
  CU_HOST_PORTABLE = 1,
  CU_HOST_DEVICEMAP = 2,
  CU_HOST_WRITECOMBINED = 4,
  CU_POINTER_CONTEXT = 1,
  CU_POINTER_DEVICE_ORDINAL = 9,
  CU_LIMIT_PERSISTING_L2 = 6,
  CU_EVENT_DISABLE_TIMING = 2,
  /* graphs */
  CU_CAPTURE_RELAXED = 2,
  CU_CAPTURE_ACTIVE = 1,
  CU_PORT_PROGRAMMATIC = 1,
  CU_DEPENDENCY_PROGRAMMATIC = 1,
  /* device attributes */
  CU_DEVICE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_MAX_GRID_DIM_Y = 6,
  CU_DEVICE_MAX_GRID_DIM_Z = 7,
  CU_DEVICE_CLOCK_RATE = 13,
  CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_L2_CACHE_SIZE = 38,
  CU_DEVICE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_MAX_PERSISTING_L2 = 108,
  CU_DEVICE_MAX_ACCESS_POLICY_WINDOW = 109,
  CU_DEVICE_MEMORY_POOLS = 115,
  CU_STREAM_NON_BLOCKING = 1,
};

typedef struct CudaDriver {
#define CU(member, symbol, params) CUresult (*member) params;
#define CU_MAY CU
#include "cuda.def"
#undef CU_MAY
#undef CU
} CudaDriver;

/* Open libcuda.so.1 and fill the table; the library stays loaded for the life of the process. cuInit is done. */
int cuda_driver_open(CudaDriver *cu, TilertError *err);
/* TILERT_OK, or the status and message for a result of the named call. */
int cuda_check(const CudaDriver *cu, CUresult r, const char *call, TilertError *err);
#endif
