"""Planted faults of tensor copies, which interpreter and simulator must both stop. tma.py BUILD [--verbose]

As in teams.py, of kernels that copy boxes. The first copies through a ring: one team starts the copies and announces their bytes, the other
reads what has landed, and stores twice of it by another copy."""
import sys
from planted import DEADLOCK, RACE, check, cut, move, put

TARGETS = ("sm_90a:1",)
ring = """// grid 1 1 1
// tensor f32 40 64
// tensor f32 40 64
module tile
kernel @k(%x: tensor<f32, 2>, %y: tensor<f32, 2>) warps = 5 {
  %zero = const value = 0 : i32
  %one = const value = 1 : i32
  %two = const value = 2 : i32
  %steps = const value = 5 : i32
  %rows = const value = 8 : i32
  %full = shared_alloc : shared<2 x mbar[1]>
  %empty = shared_alloc : shared<2 x mbar[1]>
  %full0 = shared_index %full, %zero : shared<mbar[1]>
  mbarrier_init %full0 count = 1
  %full1 = shared_index %full, %one : shared<mbar[1]>
  mbarrier_init %full1 count = 1
  %empty0 = shared_index %empty, %zero : shared<mbar[1]>
  mbarrier_init %empty0 count = 1
  %empty1 = shared_index %empty, %one : shared<mbar[1]>
  mbarrier_init %empty1 count = 1
  %data = shared_alloc : shared<2 x f32[8, 64]>
  %out = shared_alloc : shared<f32[8, 64]>
  warp_specialize warps = [1, 4] {
    for %zero, %steps, %one {
    ^(%i: i32):
      %slot = rem %i, %two : i32
      %turn = div %i, %two : i32
      %parity = and %turn, %one : i32
      %left = sub %one, %parity : i32
      %row = mul %i, %rows : i32
      %f = shared_index %full, %slot : shared<mbar[1]>
      %e = shared_index %empty, %slot : shared<mbar[1]>
      %d = shared_index %data, %slot : shared<f32[8, 64]>
      mbarrier_wait %e, %left
      mbarrier_arrive %f bytes = 2048
      tma_load %d, %x, %f, %row, %zero
      yield
    }
    yield
  } {
    for %zero, %steps, %one {
    ^(%j: i32):
      %slot2 = rem %j, %two : i32
      %turn2 = div %j, %two : i32
      %parity2 = and %turn2, %one : i32
      %row2 = mul %j, %rows : i32
      %f2 = shared_index %full, %slot2 : shared<mbar[1]>
      %e2 = shared_index %empty, %slot2 : shared<mbar[1]>
      %d2 = shared_index %data, %slot2 : shared<f32[8, 64]>
      mbarrier_wait %f2, %parity2
      %v = shared_load %d2 : f32[8, 64]
      mbarrier_arrive %e2
      %w = add %v, %v : f32[8, 64]
      shared_store %out, %w
      tma_store %out, %y, %row2, %zero
      tma_commit
      tma_wait pending = 0
      yield
    }
    yield
  }
  return
}
"""
# The teams hand over in both directions: what threads have written is read by a copy of the other team.
handed = """// grid 1 1 1
// tensor f32 8 64
module tile
kernel @k(%y: tensor<f32, 2>) warps = 5 {
  %zero = const value = 0 : i32
  %done = shared_alloc : shared<mbar[1]>
  mbarrier_init %done count = 1
  %s = shared_alloc : shared<f32[8, 64]>
  warp_specialize warps = [4, 1] {
    %v = const value = 3.0 : f32[8, 64]
    shared_store %s, %v
    mbarrier_arrive %done
    yield
  } {
    mbarrier_wait %done, %zero
    tma_store %s, %y, %zero, %zero
    tma_commit
    tma_wait pending = 0
    yield
  }
  return
}
"""
pixels = """// grid 1 1 1
// tensor f32 2 6 6 16
// tensor f32 16 16
module tile
kernel @k(%x: tensor<f32, 4>, %y: tensor<f32, 2>) warps = 4 {
  %zero = const value = 0 : i32
  %tap = const value = 2 : i32
  %m = shared_alloc : shared<mbar[1]>
  mbarrier_init %m count = 1
  %s = shared_alloc : shared<f32[16, 16]>
  mbarrier_arrive %m bytes = 1024
  tma_load %s, %x, %m, %zero, %zero, %zero, %zero, %tap, %zero lower = [-1, -1] upper = [-1, -1]
  mbarrier_wait %m, %zero
  tma_store %s, %y, %zero, %zero
  tma_commit
  tma_wait pending = 0
  return
}
"""
made = """// grid 1 1 1
// buffer f32 512
// tensor f32 8 64
// workspace u8 128
// int 8
module tile
kernel @k(%p: *f32 {divisible = 16}, %y: tensor<f32, 2>, %maps: *u8 {divisible = 128}, %n: i32) warps = 4 {
  %zero = const value = 0 : i32
  %row = const value = 64 : i32
  %stride = const value = 64 : i64
  %x = tensor_at %p, %n, %row, %stride, %maps : tensor<f32, 2>
  %m = shared_alloc : shared<mbar[1]>
  mbarrier_init %m count = 1
  %s = shared_alloc : shared<f32[8, 64]>
  mbarrier_arrive %m bytes = 2048
  tma_load %s, %x, %m, %zero, %zero
  mbarrier_wait %m, %zero
  tma_store %s, %y, %zero, %zero
  tma_commit
  tma_wait pending = 0
  return
}
"""
PLANTS = [
    ("a tensor that is empty", made, made.replace("int 8", "int 0"), "extent 0 is 0: it has at least 1", "trap", "tensor_at|tma_load"),
    ("offset of pixels in front of them", pixels, pixels.replace("value = 2 ", "value = -1 "), "offset of pixels of -1 along dimension 1: 0 to 255", "trap", "tma_load"),
    ("offset of too many pixels", pixels, pixels.replace("value = 2 ", "value = 256 "), "offset of pixels of 256 along dimension 1: 0 to 255", "trap", "tma_load"),
    ("pixels never waited for", pixels, cut(pixels, "mbarrier_wait"), "has not waited", RACE, "tma_store|tma_load"),
    ("bytes of more pixels", pixels, pixels.replace("bytes = 1024", "bytes = 1088"), "64 bytes have not come", "deadlock", "mbarrier_wait"),
    ("load from the middle of 16 bytes", ring, ring.replace("%f, %row, %zero", "%f, %row, %two"),
     "begins at 2 in its rows of f32, which is byte 8|innermost coordinate is 2, at byte 8", "align", "tma_load"),
    ("store from the middle of 16 bytes", ring, ring.replace("%y, %row2, %zero", "%y, %row2, %one"),
     "begins at 1 in its rows of f32, which is byte 4|innermost coordinate is 1, at byte 4", "align", "tma_store"),
    ("prefetch from the middle of 16 bytes", ring, ring.replace("      tma_load", "      tma_prefetch %d, %x, %row, %one\n      tma_load"),
     "begins at 1 in its rows of f32, which is byte 4|innermost coordinate is 1, at byte 4", "align", "tma_prefetch"),
    ("missing bytes", ring, ring.replace(" bytes = 2048", ""),
     "still writing|nothing has written|phases behind|has not waited|more than announced", RACE + "|deadlock|barrier",
     "shared_load|tma_load|mbarrier_wait|mbarrier_arrive"),
    ("bytes of a box too many", ring, ring.replace("bytes = 2048", "bytes = 4096"), DEADLOCK + ".*2048 bytes have not come", "deadlock",
     "mbarrier_wait"),
    ("bytes of a half of a box", ring, ring.replace("bytes = 2048", "bytes = 1024"),
     DEADLOCK + ".*1024 bytes more than announced have come", "deadlock|barrier|async", "mbarrier_wait|tma_load"),
    ("no box", ring, cut(ring, "tma_load"), DEADLOCK + ".*2048 bytes have not come", "deadlock", "mbarrier_wait"),
    ("two boxes in one phase", ring, put(ring, r"( +tma_load .*\n)", r"\1\1"), "has not waited|still writing", RACE, "tma_load"),
    ("wrong starting parity", ring, ring.replace("mbarrier_wait %e, %left", "mbarrier_wait %e, %parity"), "deadlock: no team can go on",
     "deadlock", "mbarrier_wait"),
    ("slot freed before it is read", ring, move(ring, "mbarrier_arrive %e2", "shared_load"), "another team|still writing", RACE,
     "tma_load|shared_load"),
    ("missing wait for a full slot", ring, cut(ring, "mbarrier_wait %f2"), "nothing has written|still writing|has not waited", RACE,
     "shared_load|tma_load"),
    ("missing wait for an empty slot", ring, cut(ring, "mbarrier_wait %e,"), "another team|still writing|has not waited", RACE + "|barrier",
     "tma_load|shared_load|mbarrier_arrive"),
    ("slot of another step", ring, ring.replace("%d2 = shared_index %data, %slot2", "%d2 = shared_index %data, %zero"),
     "another team|nothing has|still writing|has not waited", RACE, "shared_load|tma_load"),
    ("another mbarrier", ring, ring.replace("tma_load %d, %x, %f,", "tma_load %d, %x, %full0,"),
     "deadlock|nothing has written|still writing|has not waited|phases behind", RACE + "|deadlock|barrier",
     "mbarrier_wait|tma_load|shared_load"),
    ("missing wait for a store", ring, cut(ring, "tma_wait"), "still reading|no tma_wait covers it", RACE, "shared_store|tma_store"),
    ("wait for all stores but one", ring, ring.replace("tma_wait pending = 0", "tma_wait pending = 1"),
     "still reading|no tma_wait covers it", RACE, "shared_store|tma_store"),
    ("store without a group", ring, cut(ring, "tma_commit"), "still reading|no tma_wait covers it", RACE, "shared_store|tma_store"),
    ("store in front of the data", ring, move(ring, "tma_store", "shared_store"), "nothing has written|still reading", RACE,
     "tma_store|shared_store"),
]
NO_FENCE = "shared memory that threads wrote, with no asynchronous fence between"
SCHEDULED = [
    ("missing fence of a store", ring, lambda text: cut(text, "^ {4,}fence", -1), NO_FENCE, RACE, "tma_store"),
    ("missing fence of what was read", ring, lambda text: cut(text, "^ {4,}fence"), "threads have read, with no asynchronous fence", RACE, "tma_load"),
    ("missing barrier of a store", ring, lambda text: cut(text, r"^      barrier", -2), "with no barrier between|fence between", RACE,
     "tma_store"),
    ("fence behind the barrier", ring, lambda text: behind(text), NO_FENCE + "|no barrier", RACE, "tma_store"),
    ("missing fence of mbarriers", ring, lambda text: cut(text, "^  fence"), NO_FENCE, "barrier", "tma_load"),
    ("missing fence in front of an arrival", handed, lambda text: cut(text, "^ {4,}fence"), NO_FENCE, RACE, "tma_store"),
]


def behind(text):
    """The last fence in the region and the barrier that follows it the other way round."""
    lines = text.split("\n")
    at = max(i for i, line in enumerate(lines) if line.startswith("    ") and line.strip().startswith("fence"))
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(check(PLANTS, SCHEDULED, TARGETS))
