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

/* A launch with attributes; of those that exist, the cluster's size and programmatic dependent launch (flag) are used. */
typedef struct CUlaunchAttribute {
  int id, reserved;
  union { char all[64]; struct { unsigned x, y, z; } cluster; int flag; } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned nattributes;
} CUlaunchConfig;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_INVALID_HANDLE = 400,
  /* JIT options */
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
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
  CU_LAUNCH_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
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
