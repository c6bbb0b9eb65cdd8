"""Streams, events and graphs from Python: on the simulator, and over the fake driver (tests/runtime/fakecuda.c), which has to come first on
LD_LIBRARY_PATH."""
import gc
import unittest

import numpy as np

from common import AXPY, kernel, tilec
from fake import fake

N = 200


class OnSim(unittest.TestCase):
    def setUp(self):
        self.dev = tilec.Device("sim")
        self.k = kernel(self.dev, AXPY)
        self.s, self.t = self.dev.stream(), self.dev.stream(priority=0)
        self.x = self.dev.array(np.arange(N, dtype=np.float32))
        self.y = self.dev.array(np.ones(N, np.float32))

    def axpy(self, a, x, y):
        return self.k.bind(2, a, x, y, N)

    def test_streams(self):
        seen = []
        event = self.s.record()
        self.t.wait(event)
        self.t.call(lambda: seen.append(1))
        self.assertEqual(seen, [1])
        self.assertTrue(self.t.query() and event.query())
        last = self.dev.event()
        last.record(self.s)
        self.assertGreaterEqual(event.ms_to(last), 0)
        with self.assertRaisesRegex(tilec.Error, "an event knows no time"):
            event.ms_to(self.s.record(self.dev.event(timed=False)))
        with self.assertRaisesRegex(tilec.Error, "priority 5: PTX simulator has 0"):
            self.dev.stream(priority=5)

    def test_capture(self):
        seen = []
        with self.s.capture() as g:
            self.assertTrue(self.s.capturing)
            self.y.fill_bytes(0, self.s)
            self.t.wait(self.s.record())
            self.k(2, 3.0, self.x, self.y, N, stream=self.t)
            self.t.call(lambda: seen.append(1))
            self.s.wait(self.t.record())
            self.axpy(1.0, self.x, self.y)(self.s)
        self.assertEqual(len(g), 4)
        self.assertEqual([g.node(i) for i in range(4)],
                         [("fill", None, []), ("launch", "axpy", [0]), ("call", None, [1]), ("launch", "axpy", [0, 2])])
        self.assertEqual(self.y.numpy()[2], 1)             # nothing has been done
        g(self.s)
        np.testing.assert_array_equal(self.y.numpy(), 4 * np.arange(N))
        g.update(3, self.axpy(-2.0, self.x, self.y))
        g()
        np.testing.assert_array_equal(self.y.numpy(), np.arange(N))
        self.assertEqual(seen, [1, 1])

    def test_by_hand(self):
        a, out, seen = np.arange(N, dtype=np.float32), np.zeros(N, np.float32), []
        g = self.dev.graph()
        write, clear = g.copy(self.x, a), g.fill_bytes(self.y, 0)
        n = g.launch(self.axpy(2.0, self.x, self.y), after=g.join([write, clear]))
        read = g.copy(out, self.y, after=n)
        g.call(lambda: seen.append(out[3]), after=[read])
        for scale in 1, 10:
            a[:] = scale * np.arange(N)
            g(self.s)
        self.assertEqual(seen, [6, 60])
        self.assertEqual(g.node(n), ("launch", "axpy", [2]))
        g.launch(self.axpy(1.0, self.x, self.x), after=n)  # it is made again
        g()
        self.assertEqual(self.x.numpy()[1], 20)

    def test_refused(self):
        g = self.dev.graph()
        host = np.zeros(N, np.float32)
        with self.assertRaisesRegex(TypeError, "bound calls"):
            g.launch(self.k)
        with self.assertRaisesRegex(TypeError, "arrays of the device"):
            g.launch(self.axpy(1.0, host, self.y))
        with self.assertRaisesRegex(ValueError, "dst has 800 bytes, src 4"):
            g.copy(self.x, np.zeros(1, np.float32))
        with self.assertRaisesRegex(TypeError, "dst is an Array or a contiguous numpy array"):
            g.copy(np.zeros((4, 4))[:, 1], self.x)
        with self.assertRaisesRegex(tilec.Error, r"after\[0\] is node 7; the graph has 0"):
            g.join(7)
        with self.assertRaisesRegex(tilec.Error, "no node 0"):
            g.update(0, self.axpy(1.0, self.x, self.y))
        with self.assertRaisesRegex(tilec.Error, "the stream is being captured"), self.s.capture():
            self.s.synchronize()
        self.assertFalse(self.s.capturing)
        with self.assertRaisesRegex(TypeError, "x is in the host's memory"), self.s.capture():
            self.k(2, 1.0, host, self.y, N, stream=self.s)
        with self.assertRaisesRegex(tilec.Error, "the capture has another stream"), self.s.capture():
            self.t.wait(self.s.record())
            self.k(2, 1.0, self.x, self.y, N, stream=self.t)

    def test_gone(self):
        """An array that Python has collected is missed by its graph."""
        g, y = self.dev.graph(), self.dev.array(np.ones(N, np.float32))
        with self.s.capture() as g:
            self.k(2, 1.0, self.x, y, N, stream=self.s)
        g()
        del y
        gc.collect()
        with self.assertRaisesRegex(tilec.Error, r"node 0: kernel axpy, argument 2 \(y\): its buffer has been destroyed"):
            g()

    def test_pinned(self):
        h = self.dev.pinned((2, N // 2), "f32")
        h.host[:] = 5
        self.axpy(1.0, self.x, h)()
        np.testing.assert_array_equal(h.host.reshape(-1), 5 + np.arange(N))
        copy, view = self.dev.empty(N, "f32"), h.host
        copy.copy_from(h, self.s)
        del h
        gc.collect()
        self.assertEqual(view[1, -1], 4 + N)               # the array keeps its memory
        np.testing.assert_array_equal(copy.numpy(), 5 + np.arange(N))
        with self.assertRaisesRegex(ValueError, "an Array of 800 bytes is needed"):
            copy.copy_from(self.dev.empty(1, "f32"))

    def test_ordered(self):
        pool = self.dev.pool(limit=1 << 20)
        z = self.dev.empty(N, "f32", self.s, pool)
        self.assertEqual(pool.info()["used"], 4 * N)
        z.fill_bytes(0, self.s)
        self.k(2, 1.0, self.x, z, N, stream=self.s)
        np.testing.assert_array_equal(z.numpy(), np.arange(N))
        z.free(self.s)
        self.assertEqual(pool.info(), {"used": 0, "used_most": 4 * N, "reserved": 0, "reserved_most": 4 * N})
        with self.assertRaisesRegex(tilec.Error, "argument 2 .y.: the buffer is NULL"):
            self.k(2, 1.0, self.x, z, N)
        own = self.dev.empty(4, "f32", self.s)              # of the device's own pool
        own.fill_bytes(0, self.s)
        with self.assertRaisesRegex(tilec.Error, "the pool may have 1048576"):
            self.dev.empty(1 << 20, "f32", self.s, pool)
        with self.assertRaisesRegex(TypeError, "a stream of this device"):
            self.dev.empty(4, "f32", tilec.Device("sim").stream())
        with self.assertRaisesRegex(tilec.Error, "was not created in a stream"):
            self.x.free(self.s)
        pool.trim()
        self.assertIn("used 0, used_most 800", repr(pool))

    def test_parts(self):
        a = self.dev.array(np.arange(12, dtype=np.int32).reshape(4, 3))
        part = a.part(1, 3)
        a.free()
        self.assertEqual(part.numpy().tolist(), [[3, 4, 5], [6, 7, 8]])      # the memory is there as long as a part of it
        with self.assertRaisesRegex(ValueError, "rows 1 to 5 of an array of shape"):
            part.part(1, 5)

    def test_attributes(self):
        call = self.axpy(1.0, self.x, self.y).priority(0).cluster(1).window(self.x, 0.5).window(None)
        call(self.s)
        self.assertEqual(self.y.numpy()[5], 6)
        with self.assertRaisesRegex(tilec.Error, "cluster"):
            call.cluster(64)
        with self.assertRaisesRegex(tilec.Error, "priority"):
            call.priority(9)
        with self.assertRaisesRegex(ValueError, "not as 'none'"):
            call.window(self.x, hit="none")

    def test_peers(self):
        self.assertTrue(self.dev.can_reach(self.dev))
        self.dev.reach(self.dev)
        other = tilec.Device("sim")
        self.assertFalse(self.dev.can_reach(other))
        with self.assertRaisesRegex(tilec.Error, "sim"):
            self.dev.reach(other)
        with self.assertRaises(tilec.Error):
            tilec.Device(context=0)

    def test_range(self):
        with self.dev.range("step"), self.dev.range("inner"):
            self.axpy(1.0, self.x, self.y)()
        self.assertEqual(self.y.numpy()[3], 4)

    def test_windows(self):
        self.s.window(self.x, ratio=0.5)
        self.s.window(None)
        with self.assertRaisesRegex(tilec.Error, "ratio is 2"):
            self.s.window(self.x, ratio=2)
        self.dev.keep_persisting(0)
        self.dev.reset_persisting()


class OverDriver(unittest.TestCase):
    """Streams are the driver's, and so are captures; the wrapped ones of others are theirs."""

    def setUp(self):
        self.dev = tilec.Device("cuda")

    def test_own_stream(self):
        k, x = kernel(self.dev, AXPY), self.dev.empty(300, "f32")
        s = self.dev.stream(priority=-2)
        other = self.dev.stream(of=s)
        self.assertEqual(other.native, s.native)
        k(3, 1.0, x, self.dev.empty(300, "f32"), 300, stream=s)
        self.assertEqual(fake.launch.stream, s.native)
        with s.capture() as g:
            k(3, 1.0, x, x, 300, stream=s)
        self.assertEqual(g.node(0), ("launch", "axpy", []))
        g.update(0, k.bind(2, 2.0, x, x, 300))

    def test_outlived(self):
        """What the device may still call, or copy to, is there until it does no more."""
        def waits(name, made):
            count = lambda: sum(c.count for c in fake.calls[:fake.ncalls] if c.name == name)
            before = count()
            del made[:]
            return count() - before
        x, seen = self.dev.empty(4, "f32"), []
        s = self.dev.stream()
        s.call(lambda: seen.append(1))
        self.assertEqual(waits(b"cuStreamSynchronize", [s]), 0)        # s is still here
        made = [s]
        del s
        self.assertEqual(waits(b"cuStreamSynchronize", made), 1)
        self.assertEqual(waits(b"cuStreamSynchronize", [self.dev.stream()]), 0)
        for add, expected in ((lambda g: g.call(lambda: None), 1), (lambda g: g.copy(np.zeros(4, np.float32), x), 1), (lambda g: g.fill_bytes(x, 1), 0)):
            for launched in (False, True):
                g = self.dev.graph()
                add(g)
                if launched:
                    g()
                made = [g]
                del g
                self.assertEqual(waits(b"cuCtxSynchronize", made), expected if launched else 0)
        self.assertEqual(seen, [1])

    def test_priorities(self):
        self.assertEqual((self.dev.info.priority_least, self.dev.info.priority_greatest), (0, -5))
        self.assertEqual((self.dev.info.l2_persisting_max, self.dev.info.l2_window_max, self.dev.info.pools), (1 << 20, 4096, 1))
        with self.assertRaisesRegex(tilec.Error, "priority 1"):
            self.dev.stream(priority=1)


if __name__ == "__main__":
    unittest.main()
