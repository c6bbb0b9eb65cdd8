"""Two devices in one process: copies between them, streams that wait for events of the other, memory that kernels of the other reach, and what is
refused. Two simulators; with TILEC_DEVICES="cuda:0 cuda:1" two GPUs, on which kernels do reach it where the driver lets them."""
import os
import unittest

import numpy as np

from common import AXPY, kernel, tilec

SPECS = os.environ.get("TILEC_DEVICES", "sim sim:2").split()
N = 100_000
GRID = tilec.cdiv(N, 128)


class Peers(unittest.TestCase):
    def setUp(self):
        self.a, self.b = (tilec.Device(s) for s in SPECS)
        self.x = np.arange(N, dtype=np.float32)

    def test_copies(self):
        """There and back, in a stream of either; the second copy waits for the first by an event of the other device."""
        here, there, back = self.a.array(self.x), self.b.empty(N, "f32"), self.a.empty(N, "f32")
        there.copy_from(here)
        self.assertTrue((there.numpy() == self.x).all())
        s, t = self.a.stream(), self.b.stream()
        for k in range(1, 6):
            kernel(self.a, AXPY)[GRID](1.0, here, here, N, stream=s)          # twice as much
            there.copy_from(here, s)
            t.wait(s.record())
            kernel(self.b, AXPY)[GRID](1.0, there, there, N, stream=t)
            back.copy_from(there, t)
            s.wait(t.record())
            s.synchronize()
            self.assertTrue((back.numpy() == self.x * 2 ** (k + 1)).all(), k)

    def test_parts(self):
        here, there = self.a.array(self.x.reshape(-1, 100)), self.b.array(np.zeros((N // 100, 100), np.float32))
        there.part(10, 20).copy_from(here.part(500, 510))
        want = np.zeros((N // 100, 100), np.float32)
        want[10:20] = self.x.reshape(-1, 100)[500:510]
        self.assertTrue((there.numpy() == want).all())

    def test_reach(self):
        """A kernel of one device on memory of the other: refused before reach, and where there is no way."""
        x, y = self.b.array(self.x), self.a.array(np.ones(N, np.float32))
        run = lambda dev, *args: kernel(dev, AXPY)[GRID](2.0, *args, N)
        with self.assertRaises((tilec.Error, ValueError, TypeError)) as refused:
            run(self.a, x, y)
        self.assertRegex(str(refused.exception), "x")
        if not self.a.can_reach(self.b):
            with self.assertRaises(tilec.Error):
                self.a.reach(self.b)
            return
        self.a.reach(self.b)
        run(self.a, x, y)
        self.a.synchronize()
        self.assertTrue((y.numpy() == 2 * self.x + 1).all())
        out = self.b.array(np.zeros(N, np.float32))
        run(self.a, y, out)                                                               # and writes there
        self.a.synchronize()
        self.assertTrue((out.numpy() == 4 * self.x + 2).all())
        with self.assertRaises((tilec.Error, ValueError, TypeError)):                     # the other way has not been asked for
            run(self.b, y, out)
        self.b.reach(self.a)
        run(self.b, y, x)
        self.b.synchronize()
        self.assertTrue((x.numpy() == 2 * (2 * self.x + 1) + self.x).all())

    def test_streams_of_the_other(self):
        y = self.a.array(np.ones(N, np.float32))
        with self.assertRaises((tilec.Error, ValueError, TypeError)):
            kernel(self.a, AXPY)[GRID](1.0, y, y, N, stream=self.b.stream())
        self.assertTrue((y.numpy() == 1).all())


class OneContext(unittest.TestCase):
    """Two devices of one context, over the fake driver or on a GPU: what reach makes possible where nothing else is needed for it."""

    def setUp(self):
        self.a = tilec.Device(SPECS[0] if SPECS[0].startswith("cuda") else "cuda")
        self.a.synchronize()                             # the thread has its context from here on
        self.b = tilec.Device(context=0)

    def launches(self):
        x, y = self.b.empty(N, "f32"), self.a.empty(N, "f32")
        k = kernel(self.a, AXPY)
        return lambda: k[GRID](2.0, x, y, N), lambda: k[GRID](a=2.0, x=x, y=y, n=N), lambda: k.bind(GRID, 2.0, x, y, N)()

    def test_reach(self):
        for way in self.launches():
            with self.assertRaisesRegex(ValueError, "argument x .*of another device"):
                way()
        self.assertTrue(self.a.can_reach(self.b))
        self.a.reach(self.b)
        for way in self.launches():
            way()
        self.a.synchronize()


if __name__ == "__main__":
    unittest.main()
