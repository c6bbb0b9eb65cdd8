/* unit.h - a function as it was decoded, and a kernel: the functions that it reaches, put together.
 *
 * Registers. What a warp computes with lies in one byte array, its register file. A register of n bytes is an array of 32
 * lanes (32 n bytes, 64-byte aligned), so an instruction is a loop over 32 neighbours; a predicate is one 32-bit mask.
 * Constants and special registers have places in the file like registers. A unit's offsets count from 0; in a kernel every
 * unit has a stretch of the file of its own, so lanes that are in different functions do not meet, and a lane finds its
 * values again when a function returns. Only a function that calls itself, maybe through others, has to save them. */
#ifndef TILERT_SIM_UNIT_H
#define TILERT_SIM_UNIT_H
#include "insn.h"
#include "sim.h"
#include <stddef.h>

/* Part of the module's text. */
typedef struct Name { const char *s; uint32_t n; } Name;

/* Where in PTX and in the source an instruction comes from. at: the place that this one was inlined at, of Unit.places + 1. */
typedef struct Place { uint32_t line, at; uint16_t file, column; Name function; } Place;
typedef struct Loc { uint32_t ptx_line, place; } Loc;      /* place: of Unit.places + 1, 0: none */

/* shared: of SimModule.shared + 1; value is then an offset from where the kernel has it. */
typedef struct ConstSlot { uint64_t value; uint32_t offset, shared; uint8_t width; } ConstSlot;

typedef enum SpecialId {
  S_TID, S_NTID = 3, S_CTAID = 6, S_NCTAID = 9, S_LANEID = 12, S_WARPID, S_NWARPID, S_SMID, S_NSMID, S_GRIDID,
  S_LT, S_LE, S_EQ, S_GE, S_GT, S_DYNSMEM, S_TOTSMEM, S_ZERO, S_EXPLICIT, S_NCLUSTERID,
  S_CLUSTER_NCTAID = S_NCLUSTERID + 3, S_CLUSTER_NCTARANK = S_CLUSTER_NCTAID + 3,
  S_CLUSTERID, S_CLUSTER_CTAID = S_CLUSTERID + 3, S_CLUSTER_CTARANK = S_CLUSTER_CTAID + 3, S_CLOCK, S_CLOCK64, S_TIMER
} SpecialId;
typedef struct SpecialSlot { uint32_t offset; uint8_t id, width; } SpecialSlot;

/* A variable of .local or .param, in the frame. */
typedef struct Local { Name name; uint32_t offset, size; } Local;

/* A .param of a function: where it lies in the frame (of an entry: in the parameters), and how large it is. */
typedef struct Formal { Name name; uint32_t offset, size, align; uint8_t type; } Formal;
typedef struct Signature { Formal *param, *ret; uint32_t nparam, nret; } Signature;

/* One call: the caller's variables, as offsets in its frame, in the order of the signature. */
typedef struct CallSite {
  uint32_t unit;                       /* of SimModule.units; UINT32_MAX: by pointer */
  uint32_t *param, *ret;
  Signature type;                      /* by pointer: what the prototype says */
} CallSite;

typedef struct Unit {
  Name name;
  uint32_t index;                      /* in SimModule.units */
  bool entry, calls_pointers;
  Insn *code; uint32_t ncode;
  Loc *loc;                            /* beside code */
  uint32_t *rank;                      /* beside code: rank of the block an instruction is in */
  uint32_t *lists; uint32_t nlists;
  uint32_t *brx, *brx_rank; uint32_t nbrx;
  ConstSlot *consts; uint32_t nconsts;
  SpecialSlot *specials; uint32_t nspecials;
  CallSite *calls; uint32_t ncalls;
  Local *locals; uint32_t nlocals;
  Place *places; uint32_t nplaces;
  uint8_t *width; uint32_t nslots;     /* of each register in order, in bytes; 0: a predicate */
  uint32_t reg_bytes;                  /* registers proper: the start of the file */
  uint32_t file_bytes;                 /* registers, then constants and specials */
  uint32_t frame;                      /* slot of the address where a function's local memory begins; 0 in an entry */
  uint32_t frame_bytes;
  Signature type;
  uint32_t param_bytes;
  uint32_t reqntid[3], maxntid[3], reqcluster[3];          /* 0 where absent */
  uint32_t maxnreg, minctas, maxcluster;                   /* too */
  bool explicit_cluster, blocks_are_clusters;              /* the latter: a grid counts clusters */
} Unit;

/* Registers begin behind slot 0, which is none. */
enum { FIRST_SLOT = 64, SLOT_LANES = 32 };

static inline uint32_t
slot_bytes(uint32_t width)
{
  return width < 2 ? 64 : width * SLOT_LANES;
}

/* Where a unit lies in a kernel. */
typedef struct Part { const Unit *unit; uint32_t pc, file, list, brx, call; } Part;

typedef struct Kernel {
  SimModule *module;
  const Unit *unit;                    /* the entry; part[0] */
  Part *part; uint32_t nparts;
  uint32_t *part_of;                   /* by unit: of part + 1; NULL where there is only the entry */
  Insn *code; uint32_t ncode;
  uint32_t *rank, *lists, *brx, *brx_rank;
  ConstSlot *consts; uint32_t nconsts;
  SpecialSlot *specials; uint32_t nspecials;
  const CallSite **calls;
  uint64_t *shared_at;                 /* by shared variable: where it lies, + 1; 0: not in this kernel */
  uint32_t file_bytes, local_bytes;    /* local: of one thread, frames of calls included */
  uint32_t static_shared, shared_align;
  uint32_t *param_size, *param_align;
  bool linked;                         /* the arrays are its own, not the entry's */
  bool observes;                       /* its blocks may wait for one another; worker.c */
  bool agents;                         /* something in it has a clock that is no warp */
  bool products;                       /* registers of it may be in flight; wgmma.c */
} Kernel;

/* cfg.c: leaders, ranks of blocks and edges; false when out of memory. */
bool cfg_rank(Unit *u);
/* link.c: NULL with err. */
Kernel *sim_kernel_link(SimModule *mod, const Unit *entry, SimError *err);
void sim_kernel_free(Kernel *k);
void sim_unit_free(Unit *u);
/* The part that an instruction is in. */
const Part *sim_kernel_part(const Kernel *k, uint32_t pc);
#endif
