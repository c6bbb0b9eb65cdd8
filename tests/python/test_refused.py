"""What the package's objects take beside launches, and what they refuse, with the words of the refusal. On the simulator."""
import gc
import pathlib
import pickle
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy as np

from common import AXPY, kernel, tilec

f32 = np.float32


class Refused(unittest.TestCase):
    def setUp(self):
        self.dev, self.other = tilec.Device("sim"), tilec.Device("sim")
        self.x = self.dev.array(np.ones(8, f32))
        self.host = np.ones(8, f32)

    def refused(self, kind, words, run, *args, **named):
        with self.assertRaises(kind) as c:
            run(*args, **named)
        for word in words:
            self.assertIn(word, str(c.exception))

    def test_objects(self):
        """What is to be one of the package's objects is, or it is said what was expected, and what is given."""
        dev, s, g, h = self.dev, self.dev.stream(), self.dev.graph(), self.host
        for run, expected, what in ((s.wait, "an Event", "wait"), (s.record, "an Event", "record"), (dev.event().ms_to, "an Event", "ms_to"), (s.window, "an Array", "window"),
                                    (kernel(dev, AXPY).bind(1, 1.0, self.x, self.x, 8).window, "an Array", "window"),
                                    (lambda v: g.fill_bytes(v, 0), "an Array", "fill_bytes"), (dev.reach, "a Device", "reach"), (dev.can_reach, "a Device", "can_reach"),
                                    (self.x.free, "a Stream", "free"), (lambda v: dev.empty(1, "f32", s, v), "a Pool", "empty"), (s.call, "a function", "call"),
                                    (g.call, "a function", "call")):
            self.refused(TypeError, (f"{what}: expected {expected}, got str 'x'",), run, "x")
            self.refused(TypeError, (f"{what}: expected {expected}, got a numpy array of f32",), run, h)
        for run in (s.wait, dev.event().ms_to, dev.reach, s.call, g.call):
            self.refused(TypeError, ("got None",), run, None)
        for run in (tilec.Device, lambda v: dev.range(v).__enter__(), lambda v: dev.program(text="", name=v)):
            self.refused(TypeError, ("a str, got int 3",), run, 3)

    def test_numbers(self):
        dev, g = self.dev, self.dev.graph()
        for run, what in ((lambda v: dev.pool(limit=v), "limit"), (lambda v: dev.pool(v), "keep"), (dev.keep_persisting, "keep_persisting"), (dev.pool().trim, "trim")):
            self.refused(ValueError, (f"{what}: expected a number from 0", "got -1"), run, -1)
            self.refused(ValueError, (what, str(1 << 64)), run, 1 << 64)
            self.refused(TypeError, (f"{what}: expected a whole number, got float 1.5",), run, 1.5)
        self.refused(TypeError, ("priority: expected a whole number",), dev.stream, priority="high")
        self.refused(TypeError, ("the address of a context",), tilec.Device, context="x")
        self.refused(TypeError, ("after: expected numbers of nodes, got str 'a'",), g.join, after="ab")
        self.refused(TypeError, ("after: expected numbers of nodes, got int -1",), g.join, after=-1)
        self.refused(tilec.Error, ("after[0] is node 5",), g.join, after=np.int64(5))

    def test_shapes(self):
        for make in (self.dev.empty, self.dev.pinned):
            self.refused(TypeError, ("whole numbers, got float 1.5",), make, 1.5, "f32")
            self.refused(TypeError, ("whole numbers, got float 2.0",), make, (1, 2.0), "f32")
            self.refused(ValueError, ("negative",), make, -1, "f32")
            for shape in (1 << 62, (1 << 33, 1 << 31), (1 << 40, 1 << 40)):      # 64 bits hold their bytes as 0
                self.refused(ValueError, ("more than there are addresses",), make, shape, "f32")
            self.refused(tilec.Error, ("out of memory for 4611686018427387904 bytes",), make, 1 << 60, "f32")
            self.assertEqual(make((np.int64(2), 3), "f32").shape, (2, 3))

    def test_devices(self):
        """Two simulators have nothing to do with each other."""
        k, x, theirs = kernel(self.dev, AXPY), self.x, self.other.stream()
        call = k.bind(1, 1.0, x, x, 8)
        for run in (lambda: k(1, 1.0, x, x, 8, stream=theirs), lambda: call(theirs), lambda: self.dev.graph()(theirs), lambda: x.fill_bytes(0, theirs),
                    lambda: self.dev.stream(of=theirs), lambda: self.dev.event().record(theirs)):
            self.refused(ValueError, ("expected a stream of the device (sim), got one of another device (sim, opened another time)",), run)
        self.refused(ValueError, ("argument x (*f32)", "(sim, opened another time)"), k, 1, 1.0, self.other.empty(8, "f32"), x, 8)

    def test_freed(self):
        h = self.dev.pinned(8, "f32")
        h.host[:] = 3
        seen = h.host[2:]
        self.refused(BufferError, ("a numpy array of the memory of Array(sim, (8,), f32) (host) is still there",), h.free)
        self.assertEqual(seen[0], 3)
        del seen
        gc.collect()
        h.free()
        self.refused(ValueError, ("has been freed",), lambda: h.host)
        self.x.free()
        for run in (self.x.numpy, lambda: self.x.write(self.host), lambda: self.x.fill_bytes(1), lambda: self.x.part(0, 4)):
            self.refused(tilec.Error, ("is NULL",), run)

    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a b.tile")
            path.write_text(AXPY)
            for k in (self.dev.program(path, cache_dir=pathlib.Path(folder, "cache")).kernel("axpy"), tilec.load(path).axpy):
                y = np.zeros(8, f32)
                k[1](2.0, self.host, y, 8)
                np.testing.assert_array_equal(y, 2)

    def test_operators(self):
        """What makes none, and a torch that is too old."""
        old = types.SimpleNamespace(__version__="1.13.1", library=types.SimpleNamespace(), Tensor=type(None))
        with unittest.mock.patch.dict(sys.modules, torch=old):
            self.refused(ImportError, ("operator mine::f: torch 1.13.1 has no torch.library.custom_op, which comes with 2.4",), tilec.operator, "mine::f", lambda x: x)
            self.refused(ImportError, ("operator mine::f",), tilec.operator("mine::f"), lambda x: x)
            for name in ("f", "a::b::c", "a::", "::b", "a b::c", ""):
                self.refused(ValueError, ("'namespace::name'", repr(name)), tilec.operator, name, lambda x: x)
            self.refused(TypeError, ("a name and a function", "got 'mine::f' and 3"), tilec.operator, "mine::f", 3)
            self.refused(TypeError, ("a name and a function", "got 3 and"), tilec.operator, 3, lambda x: x)

    def test_pickled(self):
        for device in ("sim", self.dev, None):
            source = tilec.load(text=AXPY, name="a.tile", device=device)
            y = np.zeros(8, f32)
            for k in (pickle.loads(pickle.dumps(source)).axpy, pickle.loads(pickle.dumps(source.axpy))):
                k[1](1.0, self.host, y, 8)
            source.axpy[1](1.0, self.host, y, 8)
            np.testing.assert_array_equal(y, 3)
            again = pickle.loads(pickle.dumps(source.axpy))
            self.assertEqual((again.source._device, again.source.name), (None if device is None else "sim", "a.tile"))


if __name__ == "__main__":
    unittest.main()
