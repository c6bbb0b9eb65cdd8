/* rehearse.h - private to rehearse*.c: a kernel run when compiling, as far as its teams, mbarriers and buffers go. */
#ifndef TILEC_REHEARSE_H
#define TILEC_REHEARSE_H
#include "interp.h"

/* GUESSED: of arguments and of the grid, for which numbers are put. */
typedef enum Sure { UNKNOWN, GUESSED, SURE } Sure;
/* A scalar's bits; of a buffer the number of its slot, and of the program whose it is. */
typedef struct Known { u64 bits; u32 rank; Sure sure; } Known;

/* A buffer, or one of a row. Of an mbarrier: what it waits for, and what is known to those who arrived (left) and in phases that are over
 * (ended), and how many phases each actor has seen end. Of others: when each has read it, and by which op. */
typedef struct Slot {
  const Op *init;
  u32 count, arrived;
  u64 phase;
  i64 bytes;
  u64 *left, *ended, *seen, *read;
  const Op **reader;
} Slot;

typedef struct Step { const Op *of; const Block *block; const Op *at; u64 i, hi, step; Sure sure; } Step;
/* A product under way that reads a slot. */
typedef struct Reading { Slot *slot; u64 product; const Op *op; } Reading;
/* All warps of a program (part 0), or those of a region. known: of each actor, up to when what it did has happened before. */
typedef struct Actor {
  u32 number, rank, part;
  bool begun, ended;
  VEC(Step) steps;
  u64 *known;
  u64 products, meeting;
  VEC(Reading) reads;
  const Op *waits;
} Actor;

typedef struct Rehearsed {
  const Func *f;
  Arena *arena;
  Rehearsal *out;
  Actor *actors, *actor;     /* actor: whose turn it is */
  u32 nparts, nranks, nslots;
  Known *env, *spare;        /* the actor's program's, by value id; room for assignments */
  Known **envs;
  u32 *first;                /* by value id of a shared_alloc: the number of its first slot */
  Slot *slots;               /* of all programs */
  u64 now, meetings;
  u32 met, guess;            /* met: programs that are at a barrier of the cluster; guess: which numbers are put for arguments */
  bool guessed, lost;        /* a guess decided something; what comes next is not known */
} Rehearsed;

/* WAITS: the op has done nothing. */
typedef enum Went { WENT_ON, WAITS, STOPS } Went;

static inline u32 rehearsed_actors(const Rehearsed *r) { return r->nranks * r->nparts; }
static inline Known rehearsed_value(const Rehearsed *r, const Value *v) { return v ? r->env[v->id] : (Known){0}; }
/* What comes next depends on something unknown. */
static inline Went rehearsal_lost(Rehearsed *r) { r->lost = true; return STOPS; }

/* rehearse_values.c: pure ops on scalars, and views. */
void rehearse_value(Rehearsed *r, const Op *op);
void rehearse_params(Rehearsed *r, u32 rank);
/* rehearse_sync.c */
void rehearse_slots(Rehearsed *r);                    /* room for all buffers */
Went rehearse_sync(Rehearsed *r, const Op *op);       /* mbarriers, copies, products, loads and stores of buffers */
bool rehearse_orders(const Op *op);                   /* whom it makes wait, or lets go on: not to be left out */
void rehearse_put_waits(Rehearsed *r);                /* who waits for what, when nobody can go on */
#endif
