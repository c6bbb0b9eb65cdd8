/* blame.h - private: which kernels may have lost a device. All functions may be called from any thread. */
#ifndef TILERT_CUDA_BLAME_H
#define TILERT_CUDA_BLAME_H
#include <pthread.h>
#include "../device.h"

enum { BLAME_LAUNCHES = 32 };                    /* the last ones are known; a power of two */

/* A launch: number is 0 where there is none, or none that may still fail. One of a graph has no grid, and its label says so. */
typedef struct BlameLaunch {
  atomic_uint_fast64_t number;
  _Atomic(const char *) label;
  _Atomic(void *) stream;
  atomic_uint grid[3];
} BlameLaunch;

typedef struct BlameName { struct BlameName *next; char name[TILERT_NAME_MAX]; } BlameName;

typedef struct Blame {
  atomic_uint_fast64_t launches;                 /* so far */
  BlameLaunch last[BLAME_LAUNCHES];              /* launch n at n % BLAME_LAUNCHES */
  atomic_int lost;
  pthread_mutex_t lock;                          /* of what follows */
  BlameName *names;                              /* of kernels, also of those that are gone */
  char cause[400];
} Blame;

void blame_init(Blame *b);
void blame_destroy(Blame *b);
/* The copy of a kernel's name that lives as long as the device. */
int blame_name(Blame *b, const char *name, const char **label, TilertError *err);

/* A launch is about to be made; its number. It costs a few nanoseconds. */
static inline uint64_t
blame_note(Blame *b, const char *label, void *stream, const uint32_t grid[3])
{
  uint64_t number = atomic_fetch_add_explicit(&b->launches, 1, memory_order_relaxed) + 1;
  BlameLaunch *l = &b->last[number % BLAME_LAUNCHES];
  atomic_store_explicit(&l->label, label, memory_order_relaxed);
  atomic_store_explicit(&l->stream, stream, memory_order_relaxed);
  for (int i = 0; i < 3; i++)
    atomic_store_explicit(&l->grid[i], grid[i], memory_order_relaxed);
  atomic_store_explicit(&l->number, number, memory_order_release);
  return number;
}

void blame_withdraw(Blame *b, uint64_t number);  /* it was not made */
uint64_t blame_now(Blame *b);                    /* the number of the last launch */
/* The launches up to that number have ended well: all of them, or those in the stream. */
void blame_pass(Blame *b, uint64_t number, int all, const void *stream);
/* The driver has reported a fault: whose it may be is settled the first time. */
void blame_fault(Blame *b);
int blame_is_lost(Blame *b);
/* Of a lost device every error says what lost it, and its status is a fault's. Returns the status. */
int blame_explain(Blame *b, int status, TilertError *err);
#endif
