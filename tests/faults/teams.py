"""Planted faults of teams: rings between warps that are wrong, which interpreter and simulator must both stop. teams.py BUILD [--verbose]

Each plant edits a kernel of tests/diff/teams.py. As it was it must run silently; edited it must be reported by the reference interpreter
as it is read, and by the simulator on its PTX, on every target here: with the kind of fault, the words and the op at its place that are
expected. The order in which warps take turns decides which of several things the simulator meets first."""
import os, re, sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "diff"))
from teams import kernel
from planted import DEADLOCK, RACE, check, cut, move, put

TARGETS = ("sm_80:1", "sm_90a:1")
READ_BEHIND = "write to shared memory that another team read with no mbarrier between"


one = kernel((1, 4), 2, 7)
two = kernel((4, 4, 4), 3, 8)
folds = kernel((4, 4), 2, 5, twice=True)
handed = """// grid 1 1 1
// buffer f32 64
// buffer f32 64
module tile
kernel @k(%x: *f32, %y: *f32) warps = 4 {
  %zero = const value = 0 : i32
  %done = shared_alloc : shared<mbar[1]>
  mbarrier_init %done count = 1
  warp_specialize warps = [2, 2] {
    %i = arange start = 0 end = 64 : i32[64]
    %v = const value = 2.0 : f32[64]
    %xs = splat %x : (*f32)[64]
    %xp = addptr %xs, %i : (*f32)[64]
    store %xp, %v
    mbarrier_arrive %done
    yield
  } {
    mbarrier_wait %done, %zero
    %j = arange start = 0 end = 64 : i32[64]
    %k = const value = 63 : i32[64]
    %l = sub %k, %j : i32[64]
    %ys = splat %x : (*f32)[64]
    %yp = addptr %ys, %l : (*f32)[64]
    %w = load %yp : f32[64]
    %zs = splat %y : (*f32)[64]
    %zp = addptr %zs, %j : (*f32)[64]
    store %zp, %w
    yield
  }
  return
}
"""

# name, the kernel as it is, edited, interpreter's words, simulator's kind, ops at whose line it may be
PLANTS = [
    ("missing arrive of the producer", one, cut(one, "mbarrier_arrive"), DEADLOCK, "deadlock", "mbarrier_wait"),
    ("missing arrive of the consumer", one, cut(one, "mbarrier_arrive", 1), DEADLOCK, "deadlock", "mbarrier_wait"),
    ("missing arrive of one of two consumers", two, cut(two, "mbarrier_arrive", 2),
     r"region 0 waits at line \d+ for the end of phase 0: 1 of 2 arrivals are missing, the last was at line \d+;", "deadlock", "mbarrier_wait"),
    ("wrong parity of the producer", one, put(one, r"(mbarrier_wait %v\d+), %v\d+", r"\1, %zero"), DEADLOCK, "deadlock", "mbarrier_wait"),
    ("wrong parity of the consumer", one, put(one, r"(mbarrier_wait %v\d+), %v\d+", r"\1, %one", 1), DEADLOCK + "|nothing has written|still writing",
     RACE + "|deadlock", "shared_load|async_copy|mbarrier_wait"),
    ("parity that does not turn", one, put(one, r"(mbarrier_wait %v\d+), %v\d+", r"\1, %zero", 1),
     "nothing has written|still writing|another team|phases behind", RACE + "|barrier|deadlock", "shared_load|async_copy|mbarrier_wait"),
    ("missing empty wait", one, cut(one, "mbarrier_wait"), "another team read with no mbarrier|phases behind", RACE + "|barrier",
     "async_copy|mbarrier_wait|shared_load"),
    ("missing full wait", one, cut(one, "mbarrier_wait", 1), "nothing has written|still writing|another team wrote", RACE, "shared_load|async_copy"),
    ("slot freed before it is read", one, move(move(one, "shared_index %empty", "shared_load", -1), "mbarrier_arrive", "shared_load", -1),
     "another team", RACE, "async_copy|shared_load"),
    ("count of one consumer for two", two, two.replace("count = 2", "count = 1"), "another team|phases behind", RACE + "|barrier|deadlock",
     "async_copy|shared_load|mbarrier_wait|mbarrier_arrive"),
    ("count of two producers for one", one, put(one, "count = 1", "count = 2"), DEADLOCK, "deadlock", "mbarrier_wait"),
    ("missing init", one, cut(one, "mbarrier_init"), "an mbarrier that nothing has initialised", "barrier|uninit", "mbarrier_wait|mbarrier_arrive"),
    ("init twice", one, put(one, r"( +mbarrier_init .*\n)", r"\1\1"), "an mbarrier that was initialised before", "barrier", "mbarrier_init"),
    ("missing wait for copies", one, cut(one, "async_wait"), "still writing|another team wrote", RACE, "shared_load|async_copy"),
    ("copies too many in flight", one, one.replace("async_wait pending = 0", "async_wait pending = 1"), "still writing|another team wrote", RACE,
     "shared_load|async_copy"),
    ("read of another slot", one, put(one, r"(= shared_index %data), %v\d+", r"\1, %zero", 1), "another team|nothing has written|still writing", RACE,
     "shared_load|async_copy"),
    ("global memory without a wait", handed, cut(handed, "mbarrier_wait"), "read of global memory that another team wrote with no mbarrier between",
     "race", "load"),
    ("global memory behind the arrival", handed, move(handed, "mbarrier_arrive", "  store %xp"),
     "read of global memory that another team wrote with no mbarrier between", "race", "load|store"),
]


# The same of the scheduled IR, whose barriers are explicit; the edit is made of that text.
SCHEDULED = [
    ("missing barrier where warps part", folds, lambda text: cut(text, r"^  barrier"), "an? .*mbarrier|with no barrier between", "barrier|race",
     "mbarrier_wait|mbarrier_arrive"),
    ("missing barrier of a team", folds, lambda text: cut(text, r"^      barrier", 1), "other threads (read|wrote) with no barrier between", RACE,
     "async_copy|reduce"),
    ("teams with one scratch memory", kernel((1, 4, 4), 2, 6, twice=True), lambda text: same_scratch(text), "another team (read|wrote) with no mbarrier", RACE,
     "reduce"),
]


def same_scratch(text):
    """All folds at the place of the first."""
    first = re.search(r"scratch = \d+", text).group()
    return re.sub(r"scratch = \d+", first, text)


if __name__ == "__main__":
    sys.exit(check(PLANTS, SCHEDULED, TARGETS))
