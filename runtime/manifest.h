/* manifest.h - what a compiled kernel tells whoever launches it. Plain structs, no allocation.
 *
 * The compiler writes one manifest line per kernel as a comment at the top of the PTX:
 *   //@tilec kernel=NAME warps=W shared=BYTES target=sm_90a params=NAME:KIND:DTYPE[:ALIGN][:nonnull|:null],... apart=I:J,...
 * so PTX text is self-describing; tilert_manifest_parse reads it back.
 */
#ifndef TILERT_MANIFEST_H
#define TILERT_MANIFEST_H
#include <stddef.h>
#include <stdint.h>

enum { TILERT_MAX_PARAMS = 64, TILERT_NAME_MAX = 128 };

typedef enum TilertParamKind {
  TILERT_PARAM_POINTER = 0,    /* 8 bytes; dtype is the pointee's, "" if the PTX does not say */
  TILERT_PARAM_SCALAR = 1,     /* dtype's bytes; i1 is one byte */
  TILERT_PARAM_TENSORMAP = 2,  /* 128 bytes by value, aligned to 64 */
  TILERT_PARAM_RAW = 3         /* of PTX that says no more than size and alignment: any argument that fits; launch_raw.c */
} TilertParamKind;

/* What the code relies on about a pointer: nothing, that it is not null, that it is. */
typedef enum TilertNull { TILERT_NULL_ANY, TILERT_NULL_NEVER, TILERT_NULL_ALWAYS } TilertNull;

typedef struct TilertParam {
  char name[64];
  TilertParamKind kind;
  char dtype[8];               /* "f32", "i32", "f8e4m3", ... (ir/dtypes.def) */
  uint32_t size;               /* bytes */
  uint32_t divisible;          /* the code relies on value % divisible == 0 (address for pointers); 1 if nothing. Raw: its alignment */
  TilertNull null;             /* pointers */
} TilertParam;

typedef struct TilertManifest {
  char kernel[TILERT_NAME_MAX];
  char target[16];             /* "sm_90a" */
  uint32_t warps;              /* block is (32*warps, 1, 1), unless the kernel asks for another below */
  uint32_t shared;             /* dynamic shared memory, bytes */
  uint32_t nparams;
  TilertParam params[TILERT_MAX_PARAMS];
  /* The code relies on pointers i < j to be different addresses: bit j of apart[i]. napart: how many such pairs there are. */
  uint32_t napart;
  uint64_t apart[TILERT_MAX_PARAMS];
  uint32_t block[3];           /* the shape that PTX of another compiler asks for (.reqntid); zeros: none */
} TilertManifest;
#endif
