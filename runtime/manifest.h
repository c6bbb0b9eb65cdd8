/* manifest.h - what a compiled kernel tells whoever launches it. Plain structs, no allocation.
 *
 * The compiler writes one manifest line per kernel as a comment at the top of the PTX:
 *   //@tilec kernel=NAME warps=W shared=BYTES [cluster=2x1x1] [grid=$2,64,cdiv;4] [waits=1] [persistent=N]
 *            target=sm_90a params=PARAM,.. [apart=I:J,..] [needs=I,..]
 * where a PARAM is NAME:KIND:DTYPE[:ALIGN][:nonnull|:null], and needs= names pointers that the kernel reads or writes through without
 * asking whether they are null,
 * so PTX text is self-describing; tilert_manifest_text writes that line, tilert_manifest_parse reads it back.
 *
 * A tensor is one argument for whoever launches and one or more parameters of the kernel, its parts: those that the code needs,
 * consecutive and of one name, each
 *   NAME:tensor:DTYPE:rank=R:map=128x64[:swizzle=128][:stored][:tf32]   the map that copies of such boxes take; stored: to the tensor;
 *                                                        tf32: f32 is rounded to that on the way in
 *       [:pixels=128:lower=-1x-1:upper=-1x-1:steps=2x2]        of channels of so many pixels, seen through a window (im2col)
 *   NAME:tensor:DTYPE:rank=R:base[:ALIGN]                the address
 *   NAME:tensor:DTYPE:rank=R:extent=D[:ALIGN]            the extent of dimension D, from 0
 *   NAME:tensor:DTYPE:rank=R:stride=D[:ALIGN]            elements from one index of dimension D to the next
 *
 * Behind all arguments stand the views, which whoever launches does not give: maps that the launch makes of what is given, each
 *   NAME:view:DTYPE:rank=R:map=128x64[:swizzle=128]:of=I:extents=$3x64:strides=64*$4
 * of what pointer parameter I, called NAME, leads to. Extents, and strides but the last, in elements, are products of numbers and of
 * integer parameters: $3 is parameter 3. An integer that the code relies on not to be negative is NAME:scalar:i32[:ALIGN]:nonneg.
 *
 * Of a persistent kernel a launch starts as many programs as the device has room for, at most N a multiprocessor and no more than the grid
 * has, along the first axis. It tells them the grid that was asked for by its three last parameters, grid:grid:i32:axis=0 to axis=2.
 */
#ifndef TILERT_MANIFEST_H
#define TILERT_MANIFEST_H
#include <stddef.h>
#include <stdint.h>
#include "version.h"
#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TILERT_API
#else
#define TILERT_API __attribute__((visibility("default")))
#endif

enum { TILERT_MAX_PARAMS = 64, TILERT_NAME_MAX = 128, TILERT_MAX_RANK = 5, TILERT_GRID_MAX = 256 };

typedef enum TilertParamKind {
  TILERT_PARAM_POINTER = 0,    /* 8 bytes; dtype is the pointee's, "" if the PTX does not say */
  TILERT_PARAM_SCALAR = 1,     /* dtype's bytes; i1 is one byte */
  TILERT_PARAM_TENSORMAP = 2,  /* 128 bytes by value, aligned to 64 */
  TILERT_PARAM_RAW = 3,        /* of PTX that says no more than size and alignment: any argument that fits; launch_raw.c */
  TILERT_PARAM_TENSOR = 4,     /* a part of a tensor; dtype is the elements' */
  TILERT_PARAM_VIEW = 5,       /* a map of what a pointer leads to, no argument; part, rank, box and swizzle are as of a tensor's map */
  TILERT_PARAM_GRID = 6        /* 4 bytes, no argument: programs of the grid that was asked for, along axis dim; of persistent kernels */
} TilertParamKind;

typedef enum TilertTensorPart {
  TILERT_TENSOR_MAP,           /* 128 bytes by value, aligned to 64: zeros outside, no interleave, every element of a box */
  TILERT_TENSOR_BASE,          /* 8 bytes: the address of element 0 */
  TILERT_TENSOR_EXTENT,        /* 4 bytes: i32, elements */
  TILERT_TENSOR_STRIDE         /* 8 bytes: i64, elements */
} TilertTensorPart;

/* What the code relies on about a pointer: nothing; that it is not null; that it is; nothing, but it is read or written through. */
typedef enum TilertNull { TILERT_NULL_ANY, TILERT_NULL_NEVER, TILERT_NULL_ALWAYS, TILERT_NULL_NEEDED } TilertNull;

/* What the kernel does with what a pointer leads to: writes there, perhaps; writes nothing; does not look at the pointer at all. */
typedef enum TilertReads { TILERT_READS_NOT_ONLY, TILERT_READS_ONLY, TILERT_READS_NOTHING } TilertReads;

/* times * the product of n parameters, which are scalar integers in front of the one that has it. */
enum { TILERT_MAX_FACTORS = 3 };
typedef struct TilertProduct { int64_t times; uint32_t n, param[TILERT_MAX_FACTORS]; } TilertProduct;

typedef struct TilertParam {
  char name[64];
  TilertParamKind kind;
  char dtype[8];               /* "f32", "i32", "f8e4m3", ... (ir/dtypes.def) */
  uint32_t size;               /* bytes */
  uint32_t divisible;          /* the code relies on value % divisible == 0 (address for pointers); 1 if nothing. Raw: its alignment */
  TilertNull null;             /* pointers */
  /* Of tensors; zeros otherwise. */
  TilertTensorPart part;
  uint32_t rank;               /* dimensions, 1 to TILERT_MAX_RANK */
  uint32_t dim;                /* of an extent, a stride, or an axis of the grid */
  uint32_t box[TILERT_MAX_RANK]; /* of a map: elements, 1 to 256, in the order of the tensor's dimensions; the last is contiguous */
  uint32_t swizzle;            /* of a map: 0, 32, 64 or 128, bytes */
  uint32_t stored;             /* of a map: 1: boxes are stored by it, not only loaded */
  uint32_t tf32;               /* of a map of f32: 1: it rounds to tf32 what it loads */
  uint32_t pixels;             /* of a map: 0, or 1 to 1024: it is one of im2col mode, for so many pixels, and box is 1 but for channels */
  int32_t lower[TILERT_MAX_RANK - 2], upper[TILERT_MAX_RANK - 2];   /* of pixels: corners, along the dimensions between first and last */
  uint32_t steps[TILERT_MAX_RANK - 2];                              /* and from one to the next, 1 to 8 */
  /* Of views; zeros otherwise. */
  uint32_t of;                 /* the pointer's place among the parameters */
  TilertProduct extents[TILERT_MAX_RANK], strides[TILERT_MAX_RANK];   /* elements; of the last dimension the stride is 1, and not here */
  uint32_t nonneg;             /* scalars: 1: the code relies on value >= 0 */
  uint32_t reads;              /* pointers and tensors: TilertReads. The compiler says it; a line does not */
} TilertParam;

typedef struct TilertManifest {
  char kernel[TILERT_NAME_MAX];
  char target[16];             /* "sm_90a" */
  uint32_t warps;              /* block is (32*warps, 1, 1), unless the kernel asks for another below */
  uint32_t shared;             /* dynamic shared memory, bytes */
  uint32_t nparams;
  TilertParam params[TILERT_MAX_PARAMS];
  /* The code relies on pointers i < j to be different addresses: bit j of apart[i]. napart: how many such pairs there are. Any
   * part of a tensor stands for its address. */
  uint32_t napart;
  uint64_t apart[TILERT_MAX_PARAMS];
  uint32_t block[3];           /* the shape that PTX of another compiler asks for (.reqntid); zeros: none */
  uint32_t cluster[3];         /* blocks of a cluster that the kernel was compiled for: a grid is a multiple; zeros: it says nothing */
  uint32_t waits;              /* 1: it waits for the launch in front of it (griddepcontrol.wait) before it needs that */
  char grid[TILERT_GRID_MAX];  /* how many programs a launch has, an expression of its arguments (runtime/grid.h); "": the launch says it */
  uint32_t persistent;         /* programs a multiprocessor of which a launch starts at most; 0: it starts those of the grid */
} TilertManifest;

/* The `//@tilec` line of a manifest, with the end of the line. Writes at most n bytes, the NUL included (NULL: none), and returns the
 * length of the whole line without it; 0, and "", if it has a raw parameter, of which a line says nothing. */
TILERT_API size_t tilert_manifest_text(const TilertManifest *m, char *out, size_t n);
/* Bytes that a parameter's kind and type take; 0 if these are not known. */
TILERT_API uint32_t tilert_param_size(const TilertParam *p);
/* How many arguments a launch gives: the parameters, with the parts of a tensor together. first, which may be NULL, gets the place of each
 * argument's first parameter among params. */
TILERT_API uint32_t tilert_manifest_args(const TilertManifest *m, uint32_t first[TILERT_MAX_PARAMS]);
#ifdef __cplusplus
}
#endif
#endif
