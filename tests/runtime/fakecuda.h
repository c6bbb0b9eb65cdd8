/* fakecuda.h - what the fake driver saw. Look it up by name in "libcuda.so.1". */
#ifndef FAKECUDA_H
#define FAKECUDA_H

typedef struct FakeCall { const char *name; int count; } FakeCall;
typedef struct FakeLaunch { unsigned grid[3], block[3], shared; void *stream; void **params; int count; unsigned cluster[3]; int pdl, extended; } FakeLaunch;

/* The context that is not the primary one; a stream that says it is of that; memory that is. */
enum { FAKE_FOREIGN_STREAM = 0x5000, FAKE_FOREIGN_MEMORY = 0x6000, FAKE_NO_MEMORY = 0x7000, FAKE_OTHER_DEVICE = 0x8000 };

typedef struct FakeCuda {
  FakeCall calls[128];
  int ncalls, total, clock;
  int allocations, streams, events, modules, retained, dynamic_shared;
  int cubins, driver_version;             /* cubins: loaded */
  int capability, init_result, launch_result;   /* the test sets these */
  FakeLaunch launch;
  int sync_result, alloc_result;                /* of waiting, of allocating */
  int multiprocessors;                          /* 0: 1016 */
  int required_cluster, large_clusters;         /* along each dimension, as compiled; the attribute as it was set */
  char name[64];                                /* "": Fake GPU */
  int map_needs_context;                        /* the encoder of tensor maps does */
  int graphs, execs, pools, host_blocks, pinned; /* there are */
  int peer, capture_result, graph_result;       /* whether peers are possible; what ending a capture, and launching a graph, give */
  int log_on;
  char log[4096];                               /* what the newer calls were given: streams, events, nodes by number */
  int two_contexts, mixed;                      /* the other context is as good as the primary one; how often what is one's was used in the other */
  void *launched_in;                            /* the context of the last launch */
  int nsizes, size[32];                         /* the test sets these: bytes of so many parameters; */
  unsigned char value[32][64];                  /* a launch leaves them here, as nothing else of it outlives the call */
  int local, level;                             /* the test sets it: bytes of local memory, 0: 33; of optimisation, the last load was given, 0: nothing */
} FakeCuda;
#endif
