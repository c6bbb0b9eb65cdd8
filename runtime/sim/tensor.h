/* tensor.h - what a tensor map says: 128 bytes of a form of our own, with a magic number in front. */
#ifndef TILERT_SIM_TENSOR_H
#define TILERT_SIM_TENSOR_H
#include "internal.h"

enum { BOX_MOST = 256, SWIZZLES = 4 };
#define MAP_MAGIC 0x70616d2d656c6974ull

typedef struct Map {
  uint64_t magic, base, stride[MAX_RANK - 1];
  uint32_t extent[MAX_RANK];           /* - 1 */
  uint16_t box[MAX_RANK];
  uint8_t step[MAX_RANK], rank, type, swizzle, nan;
  int16_t lower[MAX_RANK - 2], upper[MAX_RANK - 2];
  uint16_t pixels;                     /* 0: tiled */
  uint8_t changed;                     /* by a kernel: to be checked when it is used */
} Map;
_Static_assert(sizeof(Map) <= SIM_TENSOR_MAP_BYTES, "a map fits its 128 bytes");

/* By the driver's numbers. round: the bits that tf32 has not are rounded away. */
typedef struct MapType { uint8_t type, bytes; bool round; } MapType;
extern const MapType map_types[];
extern const uint8_t map_swizzle_span[SWIZZLES];

/* The map that a lane names, as copies see it; false with the fault. */
bool map_read(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, Map *m);
/* What is wrong with a map at an address: false. */
bool map_fault(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, const char *what);
#endif
