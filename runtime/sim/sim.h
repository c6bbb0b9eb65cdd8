/* sim.h - a functional PTX machine on the CPU, and a checker.
 *
 * A SimMachine is a device: global memory plus options. A SimModule is a PTX text decoded once.
 * sim_launch runs every block of a grid to completion, spread over the host's cores.
 * Device addresses are host addresses of memory that sim_alloc handed out; every access is checked
 * against those allocations, so a stray pointer stops the launch and never the process.
 * No function prints, exits or aborts. All return 0 on success, else -1 with *err filled.
 */
#ifndef TILERT_SIM_H
#define TILERT_SIM_H
#include "manifest.h"
#include <stddef.h>
#include <stdint.h>

typedef struct SimMachine SimMachine;
typedef struct SimModule SimModule;

typedef enum SimErrorKind {
  SIM_OK = 0,
  SIM_E_PARSE,        /* malformed PTX, or PTX outside what the machine knows: ptx_line says where */
  SIM_E_ARGUMENT,     /* bad launch: no such kernel, bad grid or block, too much shared memory */
  SIM_E_BOUNDS,       /* access outside every live allocation (global), the window (shared, local, param) */
  SIM_E_ALIGN,        /* address not a multiple of the access size */
  SIM_E_UNINIT,       /* read of shared memory that no thread of the block has written, or of global memory that nobody has */
  SIM_E_RACE,         /* two threads access a byte, one writes, and nothing orders them */
  SIM_E_BARRIER,      /* barrier reached by part of a warp or with other threads exited where that is illegal; misuse of an mbarrier */
  SIM_E_DEADLOCK,     /* every live warp waits and none can proceed; or all blocks wait for each other */
  SIM_E_ASYNC,        /* read of an async copy's destination before its wait, overwrite of a buffer in use */
  SIM_E_TRAP,         /* trap, failed device assertion, illegal instruction use (convergence, shfl of inactive lane) */
  SIM_E_LIMIT,        /* instruction budget exceeded (SimOptions.max_instructions); calls nested too deeply */
  SIM_E_CANCELLED,    /* sim_cancel, or watch asked for it */
  SIM_E_MEMORY        /* the host is out of memory */
} SimErrorKind;

typedef struct SimError {
  SimErrorKind kind;
  char message[768];          /* one sentence: what happened, with address, size, thread */
  char trace[2048];           /* lines that go with it, each begun by a newline: the line of the source, where it was called from */
  char kernel[128];
  char file[256];             /* from .file/.loc: the .tile file and line; empty, 0 if unknown */
  uint32_t line, column;
  uint32_t ptx_line;          /* line in the PTX text, 1-based, 0 if unknown */
  uint32_t block[3], thread[3];
  uint64_t address;
} SimError;

/* How far a launch is. */
typedef struct SimProgress { uint64_t done_blocks, total_blocks, warp_instructions; } SimProgress;

typedef struct SimOptions {
  int threads;                /* host threads to run blocks on; 0: one per core */
  int check_races;            /* 1 by default: races and reads of what nobody wrote, in shared and global memory */
  uint64_t max_instructions;  /* per block; 0: no limit */
  uint32_t shared_max;        /* bytes of shared memory a block may have; 0: 232448 (sm_90) */
  int early_copies;           /* what ends at an mbarrier or with a bulk group lands when it is issued; 0: when it is waited for */
  uint32_t multiprocessors;   /* of the device: that many times the blocks that fit one run in turn; 0: 132, as an H200 has */
  /* After each block, and at least every tenth of a second or so; serialised. Not zero: the launch is to stop. May be NULL. */
  int (*watch)(void *user, const SimProgress *p);
  void *watch_user;
  void (*print)(void *user, const char *text, size_t n); /* what kernels print; NULL: nowhere; serialised */
  void *print_user;
  /* The text of a source file that .file names, and its length, as long as a fault is being described; NULL: it is read from disk. */
  const char *(*source)(void *user, const char *file, size_t *n);
  void *source_user;
} SimOptions;

/* What one launch did; all counts are over the whole grid. */
typedef struct SimStats {
  uint64_t blocks, warp_instructions, global_bytes_read, global_bytes_written;
  uint64_t global_sectors;         /* 32-byte sectors touched, per warp instruction, summed */
  uint64_t shared_accesses;        /* shared warp accesses (ld, st, ldmatrix phases) */
  uint64_t shared_bank_conflicts;  /* extra wavefronts beyond the least possible for each access's width */
  uint64_t barriers, atomics, mma;
} SimStats;

void sim_options_default(SimOptions *o);
int sim_create(const SimOptions *o, SimMachine **out, SimError *err);   /* o may be NULL */
void sim_destroy(SimMachine *m);                                        /* frees all allocations */
int sim_alloc(SimMachine *m, size_t bytes, void **ptr, SimError *err);  /* 256-byte aligned, guarded; contents poisoned */
int sim_free(SimMachine *m, void *ptr, SimError *err);
/* Memory of the host that the caller has, as an allocation, until it is forgotten: no other may lie in it. */
int sim_adopt(SimMachine *m, void *ptr, size_t bytes, SimError *err);
void sim_forget(SimMachine *m, void *ptr);
/* Whether a kernel may read these bytes: memory counts as written, by the host, unless it is marked so that it does not. Nothing
 * happens where they are in no allocation. */
void sim_mark(SimMachine *m, const void *ptr, size_t bytes, int written);
/* 0 if [ptr, ptr+bytes) lies in one live allocation. */
int sim_check_range(SimMachine *m, const void *ptr, size_t bytes, SimError *err);

/* Decode PTX (NUL-terminated or len bytes). The text need not outlive the call. */
int sim_load(SimMachine *m, const char *ptx, size_t len, SimModule **out, SimError *err);
void sim_unload(SimModule *mod);

/* What the header of an .entry says. name: the PTX's, or p and the parameter's place for one that a compiler made or that is too long;
 * type: "f32", "" for arrays; pointer: marked .ptr; tensormap: 128 bytes aligned to 64. */
typedef struct SimParam { char name[64], type[8]; uint32_t size, align; int pointer, tensormap; } SimParam;
typedef struct SimEntry {
  char name[128];
  int long_name;                             /* cut off */
  uint32_t nparams; const SimParam *params;
  uint32_t reqntid[3], maxntid[3];           /* 0 where absent */
} SimEntry;
/* Call `each` for every kernel of a PTX text, of which only the headers are read. */
int sim_entries(const char *ptx, size_t len, void (*each)(void *user, const SimEntry *e), void *user, SimError *err);

typedef struct SimKernelInfo {
  int nparams;
  const uint32_t *param_size, *param_align;  /* bytes */
  uint32_t static_shared;                    /* bytes of static .shared */
  uint32_t local_bytes;                      /* of one thread: its stack of frames */
  uint32_t reqntid[3], maxntid[3];           /* 0 where absent */
} SimKernelInfo;
int sim_kernel(SimModule *mod, const char *name, SimKernelInfo *out, SimError *err);

/* Blocks of a shape that one multiprocessor holds at a time. */
uint32_t sim_occupancy(const SimKernelInfo *k, uint32_t threads, uint32_t dynamic_shared);
/* Stop the launch that runs, if one does. From any thread, and from a signal handler. */
void sim_cancel(SimMachine *m);

/* What a tensor map is made of (CUDA driver API, cuTensorMapEncodeTiled, whose numbers type, interleave, swizzle, promotion and fill are):
 * extents, a box and steps in elements, innermost first; strides in bytes, of all dimensions but the innermost. */
typedef struct SimTensor {
  int type, interleave, swizzle, promotion, fill;
  uint32_t rank;                             /* 1 to 5 */
  uint64_t address;
  const uint64_t *extent, *stride;
  const uint32_t *box, *step;
} SimTensor;
enum { SIM_TENSOR_MAP_BYTES = 128 };
/* The pixels of a map in im2col mode (cuTensorMapEncodeIm2col), for ranks 3 to 5: so many channels of so many pixels, whose coordinates go
 * from the lower corner to the extent + the upper one, by dimension but the innermost and the outermost. The tensor's box counts for
 * nothing. */
typedef struct SimPixels { const int32_t *lower, *upper; uint32_t channels, pixels; } SimPixels;
int sim_tensor_map_im2col(const SimTensor *t, const SimPixels *p, void *out, SimError *err);
/* Encode a map, of the simulator's own form, which kernels take as a parameter of 128 bytes or read from global memory. */
int sim_tensor_map(const SimTensor *t, void *out, SimError *err);

typedef struct SimLaunch {
  const char *kernel;
  uint32_t grid[3], block[3], dynamic_shared;
  const void *const *params;                 /* params[i] points to param_size[i] bytes */
  const TilertManifest *manifest;            /* names for faults; NULL: the PTX's own //@tilec line, if it has one */
  uint32_t cluster[3];                       /* blocks of a cluster; 0: what the kernel says, else one */
  const void *stream;                        /* launches of one stream are in order; any number for it */
  int dependent;                             /* it may start before the one in front of it in its stream has ended */
  int large_clusters;                        /* of more than 8 blocks, up to 16, which not all devices have, are wanted */
} SimLaunch;
/* The host has waited for all launches, or has touched what they touch: the next one overlaps with none. */
void sim_settled(SimMachine *m);
/* stats may be NULL. Synchronous; one launch at a time. */
int sim_run(SimModule *mod, const SimLaunch *launch, SimStats *stats, SimError *err);
/* The same without names. */
int sim_launch(SimModule *mod, const char *kernel, const uint32_t grid[3], const uint32_t block[3],
               uint32_t dynamic_shared, const void *const *params, SimStats *stats, SimError *err);

/* What libtilert asks of the simulator, which is a library of its own, libtilesim, and of which nothing else can be seen. Both have to be
 * of one version: nothing here is for others. */
typedef struct SimCalls {
  int version;                               /* TILEC_VERSION_NUMBER */
  uint32_t size;                             /* of this struct */
#define SIM(name) __typeof__(sim_##name) *name;
#include "calls.def"
#undef SIM
} SimCalls;
__attribute__((visibility("default"))) const SimCalls *tilesim_calls(void);
#endif
