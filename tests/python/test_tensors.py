"""Tensor arguments: arrays of every kind with their extents and strides, views, what is refused, and programmatic dependent launch; over the
fake driver what reaches the launch. The kernels are those of tests/runtime/tensors.ptx. With TILEC_DEVICE=cuda the same on a GPU."""
import os
import struct
import sys
import unittest

import numpy as np

from common import FakeTensor, FakeTorch, root, tilec

SPEC = os.environ.get("TILEC_DEVICE", "sim")
dev = tilec.Device(SPEC)
program = dev.program(os.path.join(root, "tests", "runtime", "tensors.ptx"))
f16, f32 = np.float16, np.float32


def numbers(shape, dtype=f16):
    return np.random.default_rng(1).integers(-100, 100, size=shape).astype(dtype)


def padded(a, pitch, offset=0):
    """A view of an Array of the device that holds a with rows so far apart, from an offset on; and that Array."""
    m, n = a.shape
    host = np.full(offset + m * pitch, -1).astype(a.dtype)
    np.lib.stride_tricks.as_strided(host[offset:], a.shape, (pitch * a.itemsize, a.itemsize))[:] = a
    held = dev.array(host)
    return tilec.View(held, (m, n), (pitch, 1), offset), held


class Launched(unittest.TestCase):
    def refused(self, kind, words, run, *args, **named):
        with self.assertRaises(kind) as c:
            run(*args, **named)
        for word in words:
            self.assertIn(word, str(c.exception))

    def ways(self, k):
        return (k, lambda g, *a, **n: k[g](*a, **n), lambda g, *a, **n: k.bind(g, *a, **n)(), lambda g, *a, **n: k(g, *a, pdl=True, **n),
                lambda g, *a, **n: k.bind(g, *a, pdl=True, **n)())


class Tensors(Launched):
    def test_what_kernels_take(self):
        k = program.kernel("boxes")
        self.assertEqual([(a.name, a.type) for a in k.args], [("a", "tensor<f16, 2>"), ("b", "tensor<f16, 2>"), ("raw", "*f16")])
        self.assertEqual([a.type for a in program.kernel("row").args], ["tensor<i32, 1>", "tensor<i32, 1>", "i32"])

    def test_boxes(self):
        """By maps: swizzled or not, beyond the edges zeros are read and nothing is written; rows with something in between."""
        a, m, n = numbers((13, 72)), 13, 72
        whole = np.zeros((16, 128), f16)
        whole[:m, :n] = a
        boxes = whole.reshape(2, 8, 2, 64).transpose(0, 2, 1, 3).reshape(4, 8, 8, 8)   # box, row, piece of 16 bytes, element
        mixed = np.empty_like(boxes)
        for row in range(8):
            for piece in range(8):
                mixed[:, row, piece ^ row] = boxes[:, row, piece]
        for name, want in (("plain", boxes), ("boxes", mixed)):
            k = program.kernel(name)
            for launch in self.ways(k):
                for pitch in (72, 80):
                    b, held = padded(np.zeros((m, n), f16), pitch, 8)
                    raw = dev.empty(want.shape, "f16")
                    launch((2, 2), padded(a, 88, 16)[0], b, raw)
                    np.testing.assert_array_equal(raw.numpy(), want)
                    got = np.full(8 + m * pitch, -1, f16)
                    np.lib.stride_tricks.as_strided(got[8:], (m, n), (2 * pitch, 2))[:] = a
                    np.testing.assert_array_equal(held.numpy(), got)

    def test_rank_1(self):
        """The last 16 bytes of a row are stored as a whole: of 150 elements two more."""
        a = np.arange(152, dtype=np.int32)
        k = program.kernel("row")
        for n, stored in ((152, 152), (150, 152), (149, 152), (148, 148)):
            for launch in self.ways(k):
                y = dev.array(np.full(160, -1, np.int32))
                launch(3, tilec.View(dev.array(a), (n - 4,), offset=4), tilec.View(y, (n,)), n)
                np.testing.assert_array_equal(y.numpy(), np.concatenate([a[4:n], np.zeros(stored - n + 4, np.int32), np.full(160 - stored, -1, np.int32)]))

    def test_rows(self):
        """Address, extents and strides: any pitch goes."""
        a = numbers((5, 37), f32)
        k = program.kernel("rows")
        for launch in self.ways(k):
            y = dev.empty((5, 37), "f32")
            launch(5, padded(a, 41, 3)[0], y)
            np.testing.assert_array_equal(y.numpy(), a)
            launch(5, dev.array(2 * a), y)
            np.testing.assert_array_equal(y.numpy(), 2 * a)
            launch(5, y=y, a=dev.array(3 * a))
            np.testing.assert_array_equal(y.numpy(), 3 * a)
        held = dev.array(a)
        k(5, tilec.View(tilec.Pointer(held.data_ptr() + 37 * 4, keep=held), (4, 37)), y)
        np.testing.assert_array_equal(y.numpy()[:4], a[1:])
        call = k.bind(5, held, y)
        held.write(a + 1)
        call()
        call.repeat(2)
        np.testing.assert_array_equal(y.numpy(), a + 1)
        self.assertGreater(call.bench(1, 1)["runs"], 0)
        k(0, tilec.View(tilec.Pointer(0), (0, 37)), y)
        k(5, dev.empty((0, 37), "f32"), y)
        np.testing.assert_array_equal(y.numpy(), a + 1)

    def test_types(self):
        """`tensor<T, 2>` with T not set takes it from the array; two tensors must agree."""
        k = dev.program(os.path.join(root, "examples", "transpose_tma.tile")).kernel(T="f32")
        a, b = dev.array(numbers((40, 36), f32)), dev.empty((36, 40), "f32")
        k((1, 1), a, b)
        np.testing.assert_array_equal(b.numpy(), a.numpy().T)
        k = dev.program(os.path.join(root, "tests", "cli", "Inputs", "tensor.tile")).kernel("rows")
        for t in ("f32", "i64", "f16", "u8"):
            a, y = numbers((9, 100), tilec.DTYPES[t]), dev.empty((9, 100), t)
            k(9, padded(a, 104)[0], y)
            np.testing.assert_array_equal(y.numpy(), a)
        self.refused(TypeError, ("argument y", "an array of u8", "T is because of a"), k, 9, padded(a, 104)[0], dev.empty((9, 100), "f32"))
        self.refused(TypeError, ("is missing",), k, 9, a)
        p = dev.program(os.path.join(root, "tests", "cli", "Inputs", "tensor.tile"))
        out, held = padded(np.full((9, 100), 7, np.uint8), 104)
        best = p.tune("rows", 9, padded(a, 104)[0], y, restore=("y",))
        best(9, padded(a, 104)[0], y)
        self.assertEqual(len(best.trials), 2)
        before = held.numpy()
        best.bind(9, out, y).bench(1, 1, restore=("a",))       # the Array under the view
        np.testing.assert_array_equal(held.numpy(), before)
        at = tilec.View(tilec.Pointer(y), (9, 100))
        self.refused(TypeError, ("argument a", "to be restored", "Pointer"), p.tune, "rows", 9, at, y, restore=("a",))

    def test_pdl(self):
        """A chain of launches, each of which reads what the one before writes."""
        k, a = program.kernel("rows"), numbers((8, 32), f32)
        x = [dev.array(a)] + [dev.empty((8, 32), "f32") for _ in range(9)]
        calls = [k.bind(8, x[i], x[i + 1], pdl=True) for i in range(9)]
        for c in calls:
            c()
        np.testing.assert_array_equal(x[-1].numpy(), a)

    def test_refused(self):
        k, rows, x = program.kernel("boxes"), program.kernel("rows"), dev.empty((8, 64), "f16")
        bad = lambda kind, words, a: self.refused(kind, ("kernel boxes, argument", "a", *words), k, 1, a, dev.empty((8, 64), "f16"), dev.empty(512, "f16"))
        bad(TypeError, ("(tensor<f16, 2>)", "an array of f16 or a View", "an array of f32"), dev.empty((8, 64), "f32"))
        bad(TypeError, ("a view of f32",), tilec.View(dev.empty((8, 64), "f32"), (8, 64)))
        bad(TypeError, ("None",), None)
        bad(TypeError, ("View(pointer, shape)",), tilec.Pointer(x))
        bad(TypeError, ("int 7",), 7)
        bad(ValueError, ("expected 2 dimensions", "shape (512,)"), dev.empty(512, "f16"))
        bad(tilec.Error, ("(a): stride 0 is 60 elements, 120 bytes; copies of boxes need a multiple of 16 bytes",), dev.empty((8, 60), "f16"))
        bad(tilec.Error, ("is not a multiple of 16 bytes",), tilec.View(x, (7, 64), offset=4))
        bad(tilec.Error, ("stride 1, the last, is 2 elements; it has to be 1",), tilec.View(x, (8, 32), (64, 2)))
        bad(tilec.Error, ("it begins 0 bytes into a buffer of 1024, and takes 1152",), tilec.View(x, (9, 64)))
        bad(tilec.Error, ("it has no element",), dev.empty((0, 64), "f16"))
        self.refused(TypeError, ("argument raw (*f16)", "a view of f16"), k, 1, x, dev.empty((8, 64), "f16"), tilec.View(x, (8, 64)))
        self.refused(TypeError, ("a view is of an Array or a Pointer, not of a numpy array",), tilec.View, np.zeros(4, f32), (4,))
        self.refused(ValueError, ("2 extents and 1 strides",), tilec.View, x, (8, 64), (64,))
        self.refused(tilec.Error, ("extent 0 is -1",), rows, 1, tilec.View(tilec.Pointer(0), (-1, 4), (4, 1)), dev.empty(4, "f32"))


@unittest.skipUnless(dev.is_sim, "host memory is lent to the simulator alone")
class HostMemory(Launched):
    def test_numpy(self):
        """With any strides, and overlapping."""
        a, k = numbers((13, 88)), program.kernel("plain")
        for launch in self.ways(k):
            b, raw = np.full((13, 80), -1, f16), dev.empty((4, 8, 64), "f16")
            launch((2, 2), a[:, 8:80], b[:, :72], raw)
            np.testing.assert_array_equal(b[:, :72], a[:, 8:80])
            self.assertTrue((b[:, 72:] == -1).all())
        both = numbers((26, 72))
        launch((2, 2), both[:13], both[13:], raw)
        np.testing.assert_array_equal(both[:13], both[13:])
        self.refused(TypeError, ("expected an array of f16 or a View", "numpy array of f32"), k, 1, a.astype(f32), b, raw)
        self.refused(tilec.Error, ("argument 0 (a): stride 1, the last, is 2 elements",), k, 1, a[:, ::2], b[:, :44], raw)
        self.refused(tilec.Error, ("stride 0 is -88 elements; it has to be positive",), k, 1, a[::-1], b, raw)

    def test_torch(self):
        sys.modules["torch"] = torch = FakeTorch()
        try:
            a, k = numbers((5, 40), f32), program.kernel("rows")
            y = np.zeros((5, 32), f32)
            for launch in self.ways(k):
                y[:] = 0
                launch(5, FakeTensor(a[:, 4:36]), FakeTensor(y))
                np.testing.assert_array_equal(y, a[:, 4:36])
            self.refused(ValueError, ("without requires_grad",), k, 5, FakeTensor(a, requires_grad=True), FakeTensor(y))
            torch.grad = False
            k(5, FakeTensor(a[:, :32], requires_grad=True), FakeTensor(y))
            np.testing.assert_array_equal(y, a[:, :32])
            self.refused(TypeError, ("torch tensor of bf16",), k, 5, FakeTensor(np.zeros((5, 32), np.uint16), "bfloat16"), FakeTensor(y))
        finally:
            del sys.modules["torch"]


@unittest.skipUnless(SPEC == "sim" and "fake" in os.environ.get("LD_LIBRARY_PATH", ""), "needs the driver that only records")
class Recorded(unittest.TestCase):
    def test_launches(self):
        from fake import fake, given, keep
        fake.capability = 90
        cuda = tilec.Device("cuda")
        p = cuda.program(os.path.join(root, "tests", "runtime", "tensors.ptx"))
        x, y = cuda.empty((9, 64), "f32"), cuda.empty((9, 64), "f32")
        call = p.kernel("rows").bind(9, tilec.View(x, (3, 20), (60, 1), 4), y)
        before = fake.total
        keep(8, 4, 4, 8)
        call()
        self.assertEqual(fake.total, before + 1)
        self.assertEqual(struct.unpack("<Q", given(0, 8))[0], x.data_ptr() + 16)
        self.assertEqual([struct.unpack("<i", given(i, 4))[0] for i in (1, 2)], [3, 20])
        self.assertEqual(struct.unpack("<q", given(3, 8))[0], 60)
        self.assertEqual((fake.launch.pdl, fake.launch.grid[0]), (0, 9))
        a, b = cuda.empty((9, 64), "f16"), cuda.empty((9, 64), "f16")
        call = p.kernel("boxes").bind((1, 2), a, b, cuda.empty(1024, "f16"), pdl=True)
        keep(32)
        call()
        self.assertEqual((fake.launch.pdl, fake.launch.grid[1]), (1, 2))
        # As fakecuda.c writes a map: type, rank, address, extents from the innermost, ...
        self.assertEqual(struct.unpack("<4Q", given(0, 32)), (6, 2, a.data_ptr(), 9))
        fake.capability = 80
        old = tilec.Device("cuda")
        fake.capability = 90
        k = old.program(os.path.join(root, "tests", "runtime", "tensors.ptx")).kernel("rows")
        with self.assertRaisesRegex(tilec.Error, "kernel rows: Fake GPU has no programmatic dependent launch"):
            k.bind(1, old.empty((9, 64), "f32"), old.empty((9, 64), "f32"), pdl=True)
        t = FakeTensor(np.zeros((8, 64), np.float16), ordinal=0)
        sys.modules["torch"] = FakeTorch()
        try:
            p.kernel("boxes")(1, t, b, cuda.empty(1024, "f16"))
        finally:
            del sys.modules["torch"]
        self.assertEqual(struct.unpack("<4Q", given(0, 32)), (6, 2, t.data_ptr(), 8))


if __name__ == "__main__":
    unittest.main()
