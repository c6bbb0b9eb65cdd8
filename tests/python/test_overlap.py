"""Launches that may start before the one in front has ended, on the simulator: what lacks an order is a race, with the lines of both."""
import os
import re
import tempfile
import unittest

import numpy as np

from common import tilec

dev = tilec.Device("sim")
N = 256
SOURCE = """
kernel waits(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  wait_for_previous();
  let_next_start();
  store(y + i, load(x + i) + 1.0);                        // waits
}
kernel weighs(x: *f32, w: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  let b = load(w + i);                                    // weights
  wait_for_previous();
  store(y + i, load(x + i) * b);
  let_next_start();
}
kernel eager(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  let_next_start();
  wait_for_previous();
  store(y + i, load(x + i) + 1.0);                        // eager
}
kernel reads_early(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  let a = load(x + i);                                    // early read
  wait_for_previous();
  store(y + i, a);
}
kernel writes_early(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  store(y + i, 0.0);                                      // early write
  wait_for_previous();
  store(y + i, load(x + i));
}
kernel never(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  let_next_start();
  store(y + i, load(x + i) * 2.0);                        // never
}
kernel increments(x: *f32, y: *f32) {
  let i = program_id(0) * 64 + arange(0, 64);
  store(x + i, load(x + i) + 1.0);                        // increment
  wait_for_previous();
  store(y + i, load(x + i));
}
kernel counts(n: *i32, y: *f32) {
  atomic_add(n, 1);
  wait_for_previous();
  let_next_start();
  store(y + (program_id(0) * 64 + arange(0, 64)), 1.0);
}
kernel copies(x: *f32, y: *f32) warps(5) {
  let full = mbarrier(1);
  let s = shared(f32, 64);
  let i = program_id(0) * 64 + arange(0, 64);
  specialize {
    warps(1) {
      wait_for_previous();
      async_copy(s, x + (program_id(0) * 64 + arange(0, 64)));
      async_commit();
      async_wait_all();
      mbarrier_arrive(full);
    }
    warps(4) {
      mbarrier_wait(full, 0);
      store(y + (program_id(0) * 64 + arange(0, 64)), shared_load(s));
    }
  }
}
kernel fills(a: *f16 multiple_of(16), K: i32 multiple_of(64)) {
  let_next_start();
  let at = program_id(0) * 1024 + arange(0, 1024);
  store(a + at, f16(at % K));
}
kernel multiplies(a: *f16 multiple_of(16), b: *f16 multiple_of(16), c: *f16 multiple_of(16), N: i32 multiple_of(64), K: i32 multiple_of(64),
                  const BN = 256, const TURNS = false) persistent(TURNS) pingpong(TURNS) stores(true) warps(8) {
  wait_for_previous();
  let (m, n) = (program_id(0) * 128 + arange(0, 128), program_id(1) * BN + arange(0, BN));
  var acc = zeros([128, BN], f32);
  for at in range(0, K, 64, stages=4) {
    let k = at + arange(0, 64);
    acc = dot(load(a + (m[:, None] * K + k[None, :])), load(b + (k[:, None] * N + n[None, :])), acc);
  }
  store(c + (m[:, None] * N + n[None, :]), f16(acc));
}
"""
SOURCE = SOURCE.replace("  let i = program_id(0) * 64 + arange(0, 64);\n  specialize", "  specialize")
PTX = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry one_waits(.param .u64 x, .param .u64 y) .reqntid 64, 1, 1 {
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %a<4>;
  ld.param.u64 %a0, [x];
  ld.param.u64 %a1, [y];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r1, %r1, 64, %r0;
  mul.wide.u32 %a2, %r1, 4;
  add.u64 %a0, %a0, %a2;
  add.u64 %a1, %a1, %a2;
  setp.ge.u32 %p, %r0, 32;
  @%p bra MEET;
  griddepcontrol.wait;
MEET:
  BARRIER
  ld.global.u32 %r2, [%a0];
  st.global.u32 [%a1], %r2;
  ret;
}
"""


def program(text, suffix):
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False) as f:
        f.write(text)
    try:
        return dev.program(f.name)
    finally:
        os.unlink(f.name)


tile = program(SOURCE, ".tile")
LINES = SOURCE.split("\n")


def line(word):
    return next(i for i, text in enumerate(LINES, 1) if text.endswith("// " + word))


class Chains(unittest.TestCase):
    def setUp(self):
        self.x = [dev.array(np.arange(N, dtype=np.float32))] + [dev.empty(N, "f32") for _ in range(4)]
        self.w = dev.array(np.full(N, 3, np.float32))

    def bound(self, name, i, o, pdl=True):
        return tile.kernel(name).bind(N // 64, i, *([self.w] if name == "weighs" else []), o, pdl=pdl)

    def chain(self, *names, pdl=True):
        for i, name in enumerate(names):
            self.bound(name, self.x[i], self.x[i + 1], pdl)()
        return self.x[len(names)].numpy()

    def races(self, words, at, other, run):
        with self.assertRaises(tilec.Error) as c:
            run()
        self.assertRegex(str(c.exception), "race: .*" + words)
        self.assertEqual(c.exception.line, line(at))
        self.assertRegex(str(c.exception), rf"and [^\n]*:{line(other)}(\n|$)")

    MAY_RUN = "that launch may still run, as no wait_for_previous .griddepcontrol.wait. comes before"

    def test_ordered(self):
        x = np.arange(N, dtype=np.float32)
        np.testing.assert_array_equal(self.chain("waits", "weighs", "waits", "weighs"), ((x + 1) * 3 + 1) * 3)
        np.testing.assert_array_equal(self.chain("waits", "eager", "eager", "weighs"), (x + 3) * 3)

    def test_early_reads(self):
        self.races("reads x.* of 256 f32, which kernel waits, launched before, wrote at .*" + self.MAY_RUN, "early read", "waits",
                   lambda: self.chain("waits", "reads_early"))

    def test_early_writes(self):
        """Of what the launch in front writes, or only reads."""
        first, second = self.bound("waits", self.x[0], self.x[1]), self.bound("writes_early", self.w, self.x[1])
        self.races("writes y.* wrote at", "early write", "waits", lambda: (first(), second()))
        second = self.bound("writes_early", self.w, self.x[0])
        self.races("writes y.* read at", "early write", "waits", lambda: (first(), second()))
        second = self.bound("increments", self.x[0], self.x[2])           # its own read in between hides nothing
        self.races("writes x.* read at", "increment", "waits", lambda: (first(), second()))

    def test_no_wait(self):
        self.races("reads x.*" + self.MAY_RUN, "never", "waits", lambda: self.chain("waits", "never"))
        np.testing.assert_array_equal(self.chain("waits", "never", pdl="auto"), 2 * (np.arange(N) + 1))   # which knows that it does not wait
        np.testing.assert_array_equal(self.chain("waits", "reads_early", pdl=False), np.arange(N) + 1)

    def test_launches_before(self):
        """A wait is for the launch in front, and for others as far as that one waited."""
        first, between, last = self.bound("waits", self.x[0], self.x[1]), self.bound("never", self.w, self.x[2]), self.bound("weighs", self.x[1], self.x[3])
        with self.assertRaisesRegex(tilec.Error, "reads x.*kernel waits, .*a launch in between did not wait for it, and has let this one start"):
            first(), between(), last()
        between = self.bound("eager", self.w, self.x[2])
        first(), between(), last()
        early = self.bound("writes_early", self.w, self.x[1])             # the first may run: the second lets the third start before it waits
        self.races("writes y.*kernel waits, ", "early write", "waits", lambda: (first(), between(), early()))
        between = self.bound("waits", self.w, self.x[2])
        first(), between(), early()                                       # here the second starts it when the first has ended

    def test_host(self):
        """What the host waits for has ended; a launch in another stream is none in front."""
        first, early = self.bound("waits", self.x[0], self.x[1]), self.bound("reads_early", self.x[1], self.x[2])
        for between in (dev.synchronize, lambda: self.x[0].numpy(), lambda: self.w.write(np.ones(N, np.float32))):
            first(), between(), early()
        s = dev.stream()
        first(), early(s)

    def test_strong(self):
        """Atomic operations race with none of their like; barriers and mbarriers hand on the wait."""
        n = dev.array(np.zeros(1, np.int32))
        calls = [tile.kernel("counts").bind(4, n, y, pdl=True) for y in self.x[1:3]]
        for c in calls:
            c()
        self.assertEqual(n.numpy()[0], 8)
        self.bound("waits", self.x[0], self.x[1])()
        self.bound("copies", self.x[1], self.x[2])()
        np.testing.assert_array_equal(self.x[2].numpy(), np.arange(N) + 1)

    def test_teams(self):
        """All teams that the compiler makes wait: what one copies the launch in front wrote."""
        M, N, K = 256, 256, 128
        a, b, c = dev.empty((M, K), "f16"), dev.array(np.eye(K, N, dtype=np.float16)), dev.empty((M, N), "f16")
        want = np.zeros((M, N), np.float16)
        want[:, :K] = np.tile(np.arange(K), (M, 1))
        for form in (dict(), dict(BN=128, TURNS=True, warps=4)):
            k = tile.kernel("multiplies", **form)
            tile.kernel("fills").bind(M * K // 1024, a, K, pdl=True)()
            k.bind((M // 128, N // form.get("BN", 256)), a, b, c, N, K, pdl=True)()
            np.testing.assert_array_equal(c.numpy(), want)

    def test_threads(self):
        for barrier, right in (("bar.sync 0;", True), ("", False)):
            k = program(PTX.replace("BARRIER", barrier), ".ptx").kernel("one_waits")
            first, second = self.bound("waits", self.x[0], self.x[1]), k.bind(4, self.x[1], self.x[2], pdl=True)
            first()
            if right:
                second()
            else:
                with self.assertRaisesRegex(tilec.Error, r"race: thread \(32,0,0\)"):
                    second()


if __name__ == "__main__":
    unittest.main()
