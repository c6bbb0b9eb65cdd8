"""Planted faults of clusters, which interpreter and simulator must both stop, at their lines. clusters.py BUILD [--verbose]

As in teams.py, of kernels in the language: programs that read each other's buffers behind a barrier, hand them over by mbarriers, and get
boxes that others copied. What the compiler puts itself is left out of the scheduled IR."""
import sys
from planted import RACE, check, cut, put

TARGETS = ("sm_90a:1",)
read = """// grid 4
// buffer f32 512
// buffer f32 512
kernel k(x: *f32, y: *f32) warps(4) cluster(2) {
  let i = program_id(0) * 128 + arange(0, 128);
  let other = 1 - cluster_rank();
  let s = shared(f32, [128]);
  shared_store(s, load(x + i));
  cluster_barrier();
  let v = shared_load(remote(s, other));
  cluster_barrier();
  shared_store(s, v + 1.0);
  cluster_barrier();
  store(y + i, shared_load(remote(s, other)) + v);
}
"""
handed = """// grid 4
// buffer f32 512
// buffer f32 512
kernel k(x: *f32, y: *f32) warps(4) cluster(2) {
  let i = program_id(0) * 128 + arange(0, 128);
  let other = 1 - cluster_rank();
  let s = shared(f32, [128]);
  let full = mbarrier(1);
  let empty = mbarrier(1);
  var v = load(x + i);
  for n in range(0, 3) {
    mbarrier_wait(empty, (n + 1) % 2);
    shared_store(remote(s, other), v);
    mbarrier_arrive(remote(full, other));
    mbarrier_wait(full, n % 2);
    v = shared_load(s) + 1.0;
    mbarrier_arrive(remote(empty, other));
  }
  store(y + i, v);
}
"""
boxes = """// grid 4
// tensor f16 64 64
// buffer f16 8192
kernel k(t: tensor<f16, 2>, y: *f16) warps(4) cluster(2) {
  let i = arange(0, 16)[:, None] * 64 + arange(0, 64)[None, :];
  let s = shared(f16, [16, 64]);
  let full = mbarrier(1);
  let empty = mbarrier(2);
  for n in range(0, 2) {
    mbarrier_wait(empty, (n + 1) % 2);
    mbarrier_arrive(full, bytes=bytes(s));
    if cluster_rank() == n % 2 {
      tma_load(s, t, full, (16 * n, 0), multicast=0);
    }
    mbarrier_wait(full, n % 2);
    store(y + (program_id(0) * 2 + n) * 1024 + i, shared_load(s));
    mbarrier_arrive(remote(empty, 0));
    mbarrier_arrive(remote(empty, 1));
  }
}
"""
to_other = """// grid 4
// tensor f16 64 64
// buffer f16 4096
kernel k(t: tensor<f16, 2>, y: *f16) warps(4) cluster(2) {
  let i = arange(0, 16)[:, None] * 64 + arange(0, 64)[None, :];
  let s = shared(f16, [16, 64]);
  let full = mbarrier(1);
  for n in range(0, 2) {
    mbarrier_arrive(full, bytes=bytes(s));
    cluster_barrier();
    if cluster_rank() == 0 {
      tma_load(s, t, full, (16 * n, 0), multicast=0);
    }
    mbarrier_wait(full, n % 2);
    if cluster_rank() == 1 {
      store(y + (program_id(0) / 2 * 2 + n) * 1024 + i, shared_load(s));
    }
  }
}
"""
told = """// grid 4
// tensor f16 64 64
// buffer f16 4096
kernel k(t: tensor<f16, 2>, y: *f16) warps(5) cluster(2) {
  let s = shared(f16, [16, 64]);
  let full = mbarrier(1);
  let read = mbarrier(1);
  let empty = mbarrier(1);
  specialize {
    warps(4) {
      for n in range(0, 2) {
        let i = arange(0, 16)[:, None] * 64 + arange(0, 64)[None, :];
        mbarrier_arrive(full, bytes=bytes(s));
        if cluster_rank() == 0 {
          mbarrier_wait(empty, (n + 1) % 2);
          tma_load(s, t, full, (16 * n, 0), multicast=0);
        }
        mbarrier_wait(full, n % 2);
        if cluster_rank() == 1 {
          store(y + (program_id(0) / 2 * 2 + n) * 1024 + i, shared_load(s));
          mbarrier_arrive(read);
        }
      }
    }
    warps(1) {
      if cluster_rank() == 1 {
        for n in range(0, 2) {
          mbarrier_wait(read, n % 2);
          mbarrier_arrive(remote(empty, 0));
        }
      }
    }
  }
}
"""
memory = """// grid 2
// buffer i32 256
// buffer i32 256
kernel k(x: *i32, y: *i32) warps(4) cluster(2) {
  let i = arange(0, 128);
  store(x + program_id(0) * 128 + i, program_id(0) + i);
  cluster_barrier();
  store(y + program_id(0) * 128 + i, load(x + (1 - program_id(0)) * 128 + i));
}
"""
# Which of two programs the simulator finds at it depends on whose turn it is.
CLASH = RACE + "|barrier"
UNORDERED = "that another program of the cluster (wrote|read) with no barrier of the cluster, or mbarrier, between"
NEVER = "nothing has written"
STUCK = r"deadlock: no team can go on: program \(\d+, 0, 0\) .*; program \(\d+, 0, 0\) "

PLANTS = [
    ("read before it is written", read, cut(read, "cluster_barrier"), NEVER + "|" + UNORDERED, CLASH, r"shared_\w+"),
    ("written while it is read", read, cut(read, "cluster_barrier", 1), UNORDERED, CLASH, r"shared_\w+"),
    ("second read without order", read, cut(read, "cluster_barrier", 2), UNORDERED, CLASH, r"shared_\w+"),
    ("a barrier of one program instead of the cluster's", read, put(read, "cluster_barrier", "barrier"), NEVER + "|" + UNORDERED, CLASH,
     r"shared_\w+"),
    ("rank outside of the cluster", read, put(read, r"1 - cluster_rank\(\)", "1 + cluster_rank()"), "index 2 of 2|program 2 of a cluster of 2",
     "bounds", "remote"),
    ("a program that does not come to a barrier", read, put(read, r"cluster_barrier\(\);", "if cluster_rank() == 0 { cluster_barrier(); }", 2),
     UNORDERED + "|" + STUCK, CLASH + "|deadlock", r"shared_\w+|cluster_barrier"),
    ("missing wait for a buffer of another program", handed, cut(handed, r"mbarrier_wait\(empty"), UNORDERED + "|phases behind", CLASH,
     r"shared_\w+|mbarrier_\w+"),
    ("missing wait for what another program wrote", handed, cut(handed, r"mbarrier_wait\(full"), NEVER + "|" + UNORDERED, CLASH,
     r"shared_\w+|mbarrier_\w+"),
    ("arrival at one's own mbarrier", handed, put(handed, r"remote\(full, other\)", "full"), UNORDERED + "|" + NEVER, CLASH,
     r"shared_\w+|mbarrier_\w+"),
    ("missing arrival", handed, put(handed, r"(mbarrier_arrive\(remote\(full, other\)\);)", r"if cluster_rank() == 0 { \1 }"), STUCK, "deadlock",
     "mbarrier_wait"),
    ("arrival in front of the store", handed, put(handed, r"(    shared_store.*\n)(    mbarrier_arrive.*\n)", r"\2\1"), UNORDERED + "|" + NEVER,
     CLASH, r"shared_\w+|mbarrier_\w+"),
    ("arrival of a program that the other has not waited for", handed, put(handed, r"range\(0, 3\)", "range(0, 2 + cluster_rank())"),
     STUCK, "deadlock|barrier", r"mbarrier_\w+"),
    ("box without its bytes in one program", boxes, put(boxes, "    mbarrier_arrive\\(full, bytes=bytes\\(s\\)\\);",
     "    if cluster_rank() == 0 { mbarrier_arrive(full, bytes=bytes(s)); } else { mbarrier_arrive(full); }"),
     "nothing has written|still writing|has not waited|more than announced|phases behind|ends while", CLASH + "|deadlock",
     r"shared_load|tma_load|mbarrier_\w+"),
    ("bytes of a box that comes to one program only", boxes, put(boxes, ", multicast=0", ""), STUCK + ".*2048 bytes have not come",
     "deadlock", "mbarrier_wait"),
    ("box for a buffer that another program still reads", boxes, put(boxes, r"    mbarrier_arrive\(remote\(empty, 0\)\);\n(.*)1\)\);",
     "    mbarrier_arrive(empty);\n    mbarrier_arrive(empty);"), UNORDERED + "|still writing|has not waited", CLASH,
     r"shared_load|tma_load|mbarrier_\w+"),
    ("two boxes for all", boxes, put(boxes, r"cluster_rank\(\) == n % 2", "n >= 0"), "still writing|has not waited|more than announced", CLASH,
     r"tma_load|mbarrier_\w+"),
    ("global memory of another program", memory, cut(memory, "cluster_barrier"), UNORDERED, CLASH, "store|load"),
]
NOT_FENCED = "shared memory that threads have read, with no asynchronous fence between"
GONE = "which may have ended by then: no barrier of the cluster comes behind|which has ended"
SCHEDULED = [
    ("missing last barrier", read, lambda text: cut(text, "cluster_barrier", -1), GONE, "barrier|bounds", "shared_load"),
    ("missing last barrier of arrivals", handed, lambda text: cut(text, "cluster_barrier", -1), GONE, "barrier|bounds",
     "mbarrier_arrive|shared_store"),
    ("missing first barrier of arrivals", handed, lambda text: cut(text, "cluster_barrier"),
     "may not have begun by then: no barrier of the cluster comes before", "barrier", "mbarrier_arrive|shared_store"),
    ("missing fence of mbarriers for the cluster", handed, lambda text: cut(text, 'fence kind = "mbarrier"'),
     "an mbarrier of another program, of which this one does not know", "barrier", "mbarrier_arrive"),
    ("missing fence of mbarriers for boxes", boxes, lambda text: cut(text, 'fence kind = "mbarrier"'),
     "an mbarrier of another program, of which this one does not know", "barrier", "tma_load"),
    ("missing fence of what was read in front of the cluster's barrier", to_other,
     lambda text: cut(text, '^    fence kind = "async"'), NOT_FENCED, RACE, "tma_load"),
    ("missing fence of what was read in front of an arrival", boxes, lambda text: cut(text, '^    fence kind = "async"'), NOT_FENCED, RACE,
     "tma_load"),
    ("missing fence of what was read and another team tells of", told, lambda text: cut(text, '^ {8,}fence kind = "async"'), NOT_FENCED,
     RACE, "tma_load"),
    ("relaxed barrier between accesses", read, lambda text: put(text, "cluster_barrier$", "cluster_barrier relaxed = 1"), UNORDERED, CLASH,
     r"shared_\w+"),
]
sys.exit(check(PLANTS, SCHEDULED, TARGETS, "tile"))
