"""Launches over the fake driver (tests/runtime/fakecuda.c): in which stream, with what, at what cost in calls; the same by the
extension and by ctypes. Run with the fake libcuda.so.1 first on LD_LIBRARY_PATH, once with TILEC_EXTENSION=0."""
import gc
import os
import sys
import tempfile
import types
import unittest

import numpy as np

from common import AXPY, FakeTensor, FakeTorch, kernel, tilec
from fake import fake, given, keep


class Launches(unittest.TestCase):
    def setUp(self):
        sys.modules["torch"] = self.torch = FakeTorch()
        self.dev = tilec.Device("cuda")
        self.k = kernel(self.dev, AXPY)
        self.x, self.y = self.dev.empty(300, "f32"), self.dev.empty(300, "f32")

    def tearDown(self):
        del sys.modules["torch"]
        fake.launch_result = 0

    def test_extension(self):
        """The extension is there unless it is asked not to be: a build without Python's headers is told apart by CMake."""
        wanted = os.environ.get("TILEC_EXTENSION") != "0"
        self.assertEqual(tilec._ext is not None, wanted)
        self.assertIs(tilec.Call.__mro__[1], tilec._ext.Launcher if wanted else tilec._CtypesLauncher)
        self.assertEqual(tilec.launches_by, "extension" if wanted else "ctypes (TILEC_EXTENSION=0)")

    @unittest.skipIf(os.environ.get("TILEC_INSTALLED"), "in the wheel the extension lies beside the package")
    def test_extension_not_found(self):
        """Why launches go through ctypes is said."""
        name, wanted = tilec.lib._name, os.environ.pop("TILEC_EXTENSION", None)
        with tempfile.TemporaryDirectory() as folder:
            try:
                tilec.lib._name = os.path.join(folder, "libtilec.so")
                self.assertRegex(tilec._extension()[1], rf"^ctypes \(no _tilec.abi3.so in {folder} or /.*tools/tilec\)$")
                with open(os.path.join(folder, "_tilec.abi3.so"), "w") as f:
                    f.write("not a library")
                self.assertRegex(tilec._extension()[1], r"^ctypes \(.*_tilec.abi3.so: ")
            finally:
                tilec.lib._name = name
                if wanted is not None:
                    os.environ["TILEC_EXTENSION"] = wanted

    def test_bound(self):
        call = self.k.bind((3, 2), 2, self.x, self.y, 300)
        before = fake.launch.count
        keep(4, 8, 8, 4)
        self.assertIsNone(call())
        self.assertEqual((fake.launch.count - before, list(fake.launch.grid), fake.launch.stream), (1, [3, 2, 1], None))
        self.assertEqual(given(1, 8), self.x.data_ptr().to_bytes(8, "little"))
        self.assertEqual(given(3, 4), (300).to_bytes(4, "little"))
        total = fake.total
        for _ in range(10):
            call()
        self.assertEqual(fake.total - total, 10)          # one driver call each
        for bad in ((1, 2), ("stream",)):
            with self.assertRaises(TypeError):
                call(*bad)
        with self.assertRaises(TypeError):
            call(steam=3)

    def test_streams(self):
        call, s = self.k.bind(3, 2, self.x, self.y, 300), self.dev.stream()
        self.assertTrue(s.native)
        for stream, want in ((s, s.native), (0x5550, 0x5550), (type("T", (), {"cuda_stream": 0x7770})(), 0x7770), (None, None), (0, None)):
            call(stream)
            self.assertEqual(fake.launch.stream, want)
            self.k(3, 2, self.x, self.y, 300, stream=stream)
            self.assertEqual(fake.launch.stream, want)
        s.synchronize()

    def test_given_again(self):
        """The stream that an object stands for is not mixed up with that of another; an object that is none changes nothing."""
        call, (a, b) = self.k.bind(3, 2, self.x, self.y, 300), (self.dev.stream(), self.dev.stream())
        for stream, want in ((a, a.native), (a, a.native), (b, b.native), (0x5550, 0x5550), (0x5550, 0x5550), (a, a.native), (0, None), (a, a.native), (None, None), (b, b.native)):
            call(stream)
            self.assertEqual(fake.launch.stream, want)
        with self.assertRaises(TypeError):
            call("stream")
        call(b)
        self.assertEqual(fake.launch.stream, b.native)
        call(a)
        del a, stream                                     # the call may hold the stream that it was given last
        gc.collect()
        call()
        self.assertEqual(fake.launch.stream, None)
        held = sys.getrefcount(b)
        for _ in range(5):
            call(b)
        self.assertEqual(sys.getrefcount(b), held + (tilec._ext is not None))
        del call
        gc.collect()
        self.assertEqual(sys.getrefcount(b), held)

    def test_torch_stream(self):
        """Tensors take the stream that torch is using when the launch is made."""
        a = np.zeros(300, np.float32)
        t = FakeTensor(a, ordinal=0)
        call = self.k.bind(3, 2, t, self.y, 300)
        plain = self.k.bind(3, 2, self.x, self.y, 300)
        for current in (0, 0x1110, 0x2220, 0x1110, 0):
            self.torch.stream = current
            call()
            self.assertEqual(fake.launch.stream, current or None)
            self.k(3, 2, t, self.y, 300)
            self.assertEqual(fake.launch.stream, current or None)
            call(None)                                    # as if nothing were given
            self.assertEqual(fake.launch.stream, current or None)
            call(0)
            self.assertEqual(fake.launch.stream, None)
            self.k(3, 2, t, self.y, 300, stream=0x9990)
            self.assertEqual(fake.launch.stream, 0x9990)
            plain()
            self.assertEqual(fake.launch.stream, None)

    def test_torch_stream_in_c(self):
        """torch's own way to say which stream it is using: a function of C with one argument. Here the function counts the zeros in a list."""
        zeros = []
        self.torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=zeros.count)
        call = self.k.bind(3, 2, FakeTensor(np.zeros(300, np.float32), ordinal=0), self.y, 300)
        for current in (0, 0x1110, 0x2220, 0x1110, 0):
            zeros[:] = [0] * current
            call()
            self.assertEqual(fake.launch.stream, current or None)
            call(0x3330)
            self.assertEqual(fake.launch.stream, 0x3330)
        before = fake.launch.count
        for function, error in (("".join, TypeError), ([].remove, ValueError), ({}.__getitem__, KeyError), (lambda ordinal: "stream", TypeError)):
            self.torch._C._cuda_getCurrentRawStream = function
            call = self.k.bind(3, 2, FakeTensor(np.zeros(300, np.float32), ordinal=0), self.y, 300)
            with self.assertRaises(error):
                call()
        self.assertEqual(fake.launch.count, before)

    def test_repeat(self):
        call = self.k.bind((3, 2), 2, FakeTensor(np.zeros(300, np.float32), ordinal=0), self.y, 300)
        self.torch.stream = 0x4440
        for n in (1, 0, 7):
            before = fake.launch.count
            self.assertIsNone(call.repeat(n))
            self.assertEqual((fake.launch.count - before, fake.launch.stream, list(fake.launch.grid)), (n, 0x4440, [3, 2, 1]))
        with self.assertRaises(TypeError):
            call.repeat("often")
        before, fake.launch_result = fake.launch.count, 1
        with self.assertRaises(tilec.Error):
            call.repeat(5)
        self.assertEqual(fake.launch.count - before, 1)   # the first that fails is the last

    def test_refusals(self):
        for v, words in ((np.zeros(300, np.float32), ("argument x", "dev.array")), (FakeTensor(np.zeros(300, np.float32)), ("argument x", "cuda:0", "cpu")),
                         (FakeTensor(np.zeros(300, np.float32), ordinal=1), ("argument x", "cuda:0", "cuda:1"))):
            with self.assertRaises((TypeError, ValueError)) as c:
                self.k(3, 2, v, self.y, 300)
            for w in words:
                self.assertIn(w, str(c.exception))

    def test_errors(self):
        call = self.k.bind(3, 2, self.x, self.y, 300)
        fake.launch_result = 700
        for run in (call, lambda: call(0x10), lambda: self.k(3, 2, self.x, self.y, 300)):
            with self.assertRaises(tilec.Error) as c:
                run()
            self.assertIn("as the test asked", str(c.exception))
        fake.launch_result = 0
        self.dev.__del__()                                # a lost context stays lost: this device is done with
        self.dev._h = None

    def test_lifetimes(self):
        """A call keeps its arguments, program and device; afterwards all is given back."""
        gc.collect()
        before = fake.allocations, fake.modules
        dev = tilec.Device("cuda")
        call = kernel(dev, AXPY).bind(3, 2, dev.empty(300, "f32"), dev.empty(300, "f32"), 300)
        del dev
        gc.collect()
        self.assertEqual(fake.allocations, before[0] + 2)
        call()
        call.kept = call                                  # a cycle
        del call
        gc.collect()
        self.assertEqual((fake.allocations, fake.modules), before)

    def test_no_references_are_lost(self):
        call, many = self.k.bind(3, 2, self.x, self.y, 300), 2000
        counts = lambda: (sys.getrefcount(None), sys.getrefcount(call), sys.getrefcount(type(call)))
        a = counts()
        for _ in range(many):
            call()
            call(None)
            call(0x40)
        b = counts()
        self.assertTrue(all(abs(x - y) < many / 2 for x, y in zip(a, b)), (a, b))


if __name__ == "__main__":
    unittest.main()
