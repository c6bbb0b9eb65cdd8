"""Launches that are not bound, over the fake driver: the short way in C (tools/_dispatch.c) launches what the long way in Python does, goes wherever
it can, and leaves to the long way what it does not know. Run with the fake libcuda.so.1 first on LD_LIBRARY_PATH."""
import ctypes as C
import gc
import random
import sys
import types
import unittest

import numpy as np

from common import AXPY, COPY, FakeTensor, FakeTorch, kernel, tilec
from fake import fake, given, keep

try:
    import torch
except ImportError:
    torch = None

NUMBERS = """kernel numbers(x: *f32, a: f16, b: f64, c: i8, d: u32, e: i64, f: i32) warps(1) {
  store(x, f32(a) + f32(b) + f32(c) + f32(d) + f32(e) + f32(f));
}
"""
SIZES = (8, 2, 8, 1, 4, 8, 4)


class Ways:
    """Counts the launches that go the long way."""

    def __init__(self, thing):
        self.thing, self.long, launch = thing, 0, thing._launch

        def counting(*args, **named):
            self.long += 1
            return launch(*args, **named)
        thing._launch = counting

    def __enter__(self):
        self.long = 0
        return self

    def __exit__(self, *_):
        pass


class Type(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", C.c_int32 * 2), ("ndim", C.c_int32), ("dtype", Type), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


LOOK = C.PYFUNCTYPE(C.c_int, C.py_object, C.POINTER(Tensor))
STREAM = C.PYFUNCTYPE(C.c_int, C.c_int32, C.c_int32, C.POINTER(C.c_void_p))


class Api(C.Structure):
    """DLPackExchangeAPI."""


Api._fields_ = [("version", C.c_uint32 * 2), ("older", C.POINTER(Api)), ("others", C.c_void_p * 3), ("look", LOOK), ("stream", STREAM)]


class Exchanged(FakeTensor):
    """A tensor of a class that has the table: .offset is of its bytes, .odd_strides are those that it says."""
    asked, current, offset, odd_strides, refuses = 0, 0, 0, None, False

    def data_ptr(self):
        Exchanged.asked += 1
        return super().data_ptr() if self.a.size else 0


@LOOK
def look(v, out):
    if v.refuses:
        return -1
    t, a = out.contents, v.a
    v.shape_, v.strides_ = (C.c_int64 * a.ndim)(*a.shape), (C.c_int64 * a.ndim)(*(v.odd_strides or v.stride()))
    t.data, t.ndim, t.byte_offset = FakeTensor.data_ptr(v) if a.size else None, a.ndim, v.offset
    t.device[:], t.dtype = (2, v.ordinal), Type({"f": 2, "i": 0}[a.dtype.kind], 8 * a.itemsize, 1)
    t.shape, t.strides = v.shape_, v.strides_
    return 0


@STREAM
def stream(kind, ordinal, out):
    if Exchanged.current < 0 or (kind, ordinal) != (2, 0):
        return -1
    out[0] = Exchanged.current
    return 0


KEPT = []                                                      # what capsules point to


def exchange_api(major=1, older=None, look=look):
    return Api((major, 3), C.pointer(older) if older else None, (C.c_void_p * 3)(), look or LOOK(), stream)


def capsule(api):
    KEPT.append(api)
    new = C.pythonapi.PyCapsule_New
    new.restype, new.argtypes = C.py_object, (C.c_void_p, C.c_char_p, C.c_void_p)
    return new(C.addressof(api), b"dlpack_exchange_api", None)


class Dispatch(unittest.TestCase):
    def setUp(self):
        sys.modules["torch"] = self.torch = FakeTorch()
        self.dev = tilec.Device("cuda")
        self.k = kernel(self.dev, AXPY)
        self.x, self.y = self.dev.empty(300, "f32"), self.dev.empty(300, "f32")
        self.ways = Ways(self.k)
        keep(4, 8, 8, 4)

    def tearDown(self):
        del sys.modules["torch"]

    def launched(self, sizes):
        return list(fake.launch.grid), fake.launch.stream, [given(i, n) for i, n in enumerate(sizes)]

    def same(self, k, ways, sizes, grid, *args):
        """Both ways launch the same, the short one by itself."""
        keep(*sizes)
        before = fake.launch.count
        tilec.Kernel._launch(k, grid, *args)
        want, ways.long = self.launched(sizes), 0
        for launch in (lambda: k(grid, *args), lambda: k[grid](*args)):
            self.assertIsNone(launch())
            self.assertEqual(self.launched(sizes), want)
        self.assertEqual((fake.launch.count - before, ways.long), (3, 0), (grid, args))

    def test_arrays(self):
        for grid in (3, (3,), (3, 2), (1, 2, 3), 0, (1 << 31) - 1):
            for a, n in ((2, 300), (2.5, 304), (-0.0, 1), (float("inf"), 0), (float("nan"), -5), (3e38, 2**31 - 1)):
                if grid:
                    self.same(self.k, self.ways, (4, 8, 8, 4), grid, a, self.x, self.y, n)

    def test_no_elements(self):
        """A tensor without elements has no address, which is no null pointer to complain of; by the short way and by the long one."""
        class Empty(FakeTensor):
            def data_ptr(self):
                return 0
        one, none = FakeTensor(np.ones(300, np.float32), ordinal=0), Empty(np.ones(0, np.float32), ordinal=0)
        self.k[3](2, one, one, 300)
        for tensor, n in ((one, 300), (none, 0)):
            self.same(self.k, self.ways, (4, 8, 8, 4), 3, 2, Empty(tensor.a, ordinal=0) if n == 0 else tensor, self.y, n)
        before = fake.launch.count
        for x in (None, tilec.Pointer(0)):
            with self.assertRaisesRegex(tilec.Error, r"argument 1 \(x\): it is null, and the kernel needs it"):
                self.k[3](2, x, self.y, 300)
        self.assertEqual(fake.launch.count, before)

    def test_own_grid(self):
        """Without a grid it is what the kernel says."""
        k = kernel(self.dev, AXPY.replace("warps(4)", "warps(4) grid(cdiv(n, B))"))
        with Ways(k) as w:
            for launch in (lambda: k(2, self.x, self.y, 300), lambda: k[None](2, self.x, self.y, 300), lambda: k(None, 2, self.x, self.y, 300)):
                launch()
                self.assertEqual((w.long, list(fake.launch.grid)), (0, [3, 1, 1]))
            k(5, 2, self.x, self.y, 300)
            self.assertEqual((w.long, list(fake.launch.grid)), (0, [5, 1, 1]))
        for launch in (lambda: self.k(2, self.x, self.y, 300), lambda: self.k[None](2, self.x, self.y, 300)):
            with self.assertRaisesRegex(tilec.Error, "no grid is given, and it has no grid clause"):
                launch()

    def test_numbers(self):
        """Numbers of every type, at the ends of what it holds and at random."""
        k = kernel(self.dev, NUMBERS)
        ways, r = Ways(k), random.Random(0)
        for a, b, c, d, e, f in ((65504, 1e300, -128, 0, -2**63, -2**31), (-65519.0, float("inf"), 127, 2**32 - 1, 2**63 - 1, 2**31 - 1)):
            self.same(k, ways, SIZES, 1, self.x, a, b, c, d, e, f)
        for _ in range(50):
            self.same(k, ways, SIZES, r.randrange(1, 1 << 20), self.x, r.choice([r.uniform(-6e4, 6e4), r.randrange(-60000, 60000)]), r.uniform(-1, 1),
                      r.randrange(-128, 128), r.randrange(1 << 32), r.randrange(-1 << 63, 1 << 63), r.randrange(-1 << 31, 1 << 31))

    def test_out_of_range(self):
        """What does not fit is refused in the long way's words."""
        k, good = kernel(self.dev, NUMBERS), [self.x, 1.0, 1.0, 1, 1, 1, 1]
        before = fake.launch.count
        for at, v in ((1, 65520), (1, -1e30), (3, 128), (3, -129), (4, -1), (4, 2**32), (5, 2**63), (6, 2**31), (6, -2**31 - 1), (6, 1.0), (1, "1"), (0, 5)):
            with self.assertRaisesRegex((TypeError, ValueError), f"argument {'xabcdef'[at]} "):
                k(1, *good[:at], v, *good[at + 1:])
        self.assertEqual(fake.launch.count, before)

    def test_long_way(self):
        """Arguments by name, grids that are functions or lists, other kinds of numbers, None, Pointers: right, by the long way."""
        k, x, y = self.k, self.x, self.y
        for launch in (lambda: k[3](2, x, y, n=300), lambda: k[lambda s: 3](2, x, y, 300), lambda: k([3], 2, x, y, 300), lambda: k[np.int32(3)](2, x, y, 300),
                       lambda: k[3](np.float32(2), x, y, 300), lambda: k[3](2, x, y, np.int64(300)), lambda: k[3](2, tilec.Pointer(x), y, 300),
                       lambda: k[3](2, x, y, True), lambda: k[3](2, x, y, 300, stream=0), lambda: k[3](a=2, x=x, y=y, n=300)):
            before = fake.launch.count
            with self.ways as w:
                launch()
            self.assertEqual((w.long, fake.launch.count - before), (1, 1))

    def test_wrong(self):
        other, f64 = tilec.Device("cuda"), self.dev.empty(300, "f64")
        for error, words, args in ((TypeError, "argument x .* got an array of f64", (2, f64, self.y, 300)), (TypeError, "takes 4 arguments", (2, self.x, self.y)),
                                   (TypeError, "takes 4 arguments", (2, self.x, self.y, 300, 5)), (TypeError, "argument n ", (2, self.x, self.y, None))):
            with self.assertRaisesRegex(error, words):
                self.k[3](*args)
        for grid in (-1, 1 << 32, (1, 2, 3, 4), (1, -1)):
            with self.assertRaises((TypeError, ValueError)):
                self.k[grid](2, self.x, self.y, 300)
        with self.assertRaisesRegex(ValueError, "another device"):
            simulated = kernel(tilec.Device("sim"), AXPY)
            simulated(3, 2, self.x, self.y, 300)
        del other

    def test_tensors(self):
        """Tensors go the short way once the long way has seen such: in torch's stream, and only while they are right."""
        zeros, t = [], lambda **more: FakeTensor(np.zeros(300, np.float32), ordinal=0, **more)
        self.torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=zeros.count)
        x, y = t(), t()
        y.dtype = x.dtype                                  # as torch's types: one object each
        with self.ways as w:
            self.k[3](2, x, y, 300)
            self.assertEqual(w.long, 1)
            for current in (0, 0x1110, 0x2220, 0x1110, 0):
                zeros[:] = [0] * current
                self.k[3](2, x, y, 300)
                self.assertEqual(self.launched((4, 8, 8, 4))[1], current or None)
            self.assertEqual(w.long, 1)
            self.assertEqual(given(1, 8), x.data_ptr().to_bytes(8, "little"))
        for broken, words in ((t(requires_grad=True), "requires grad"), (FakeTensor(np.zeros((300, 2), np.float32)[:, 0], ordinal=0), "contiguous"),
                              (FakeTensor(np.zeros(300, np.float32), ordinal=1), "cuda:1"), (FakeTensor(np.zeros(300, np.float64), ordinal=0), "f64")):
            if broken.dtype.name == "float32":
                broken.dtype = x.dtype
            with self.assertRaisesRegex((TypeError, ValueError), words):
                self.k[3](2, broken, y, 300)
        self.torch._C._cuda_getCurrentRawStream = "".join
        k = kernel(self.dev, AXPY)
        with self.assertRaises(TypeError):
            k[3](2, x, y, 300)

    def test_recorded(self):
        """A tensor that requires grad goes while autograd does not record, and by the short way."""
        x = FakeTensor(np.zeros(300, np.float32), ordinal=0, requires_grad=True)
        with self.assertRaisesRegex(ValueError, "requires grad"):
            self.k[3](2, x, self.y, 300)
        self.torch.grad = False
        with self.ways as w:
            for _ in range(3):
                self.k[3](2, x, self.y, 300)
            self.assertEqual(w.long, 1)
        self.torch.grad = True
        with self.assertRaisesRegex(ValueError, "requires grad"):
            self.k[3](2, x, self.y, 300)

    def test_exchanged(self):
        """Tensors whose class has the table of DLPack are asked by it alone, but for requires_grad."""
        t = lambda *shape, dtype=np.float32, **more: Exchanged(np.zeros(shape, dtype), ordinal=0, **more)
        for api in (exchange_api(), exchange_api(major=2, older=exchange_api())):
            Exchanged.__dlpack_c_exchange_api__ = capsule(api)
            k, x, y = kernel(self.dev, AXPY), t(300), t(2, 1, 150)
            y.odd_strides = (150, 7777, 1)                     # of a dimension with one index no stride matters
            with Ways(k) as w:
                k[3](2, x, y, 300)
                self.assertEqual(w.long, 1)
                w.long = Exchanged.asked = 0
                for current in (0, 0x3330, 0x4440, 0x3330, 0):
                    Exchanged.current = current
                    for offset in (0, 64):
                        x.offset = offset
                        k[3](2, x, y, 300)
                        self.assertEqual((fake.launch.stream, given(1, 8)), (current or None, (x.data_ptr() + offset).to_bytes(8, "little")))
                self.assertEqual((w.long, Exchanged.asked), (0, 10))       # by this test alone
                k[3](2, t(0), y, 0)
                self.assertEqual((w.long, given(1, 8)), (0, bytes(8)))
                wrong = t(300)
                wrong.ordinal, wrong.device = 1, "cuda:1"
                for broken, words in ((t(300, requires_grad=True), "requires grad"), (Exchanged(np.zeros((300, 2), np.float32)[:, 0], ordinal=0), "contiguous"),
                                      (wrong, "cuda:1"), (t(300, dtype=np.float64), "f64"), (t(300, dtype=np.int32), "i32")):
                    with self.assertRaisesRegex((TypeError, ValueError), words):
                        k[3](2, broken, y, 300)
                w.long, x.refuses = 0, True                    # no error: the long way is gone
                k[3](2, x, y, 300)
                self.assertEqual(w.long, 1)
                x.refuses, Exchanged.current = False, -1
                with self.assertRaisesRegex(RuntimeError, "no current stream"):
                    k[3](2, x, y, 300)
                Exchanged.current = 0

    @unittest.skipUnless(torch, "no torch")
    def test_torch(self):
        """Tensors of torch's own, by its table, which says of the host's what it says of a GPU's; without one all go the long way."""
        sys.modules["torch"], table = torch, hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
        add, x = "kernel add(x: *f32, y: *f32, n: i32) warps(1) { let i = arange(0, 32); store(y + i, load(x + i, mask=i < n), mask=i < n); }", torch.zeros(64)
        needs, meta = torch.zeros(64, requires_grad=True), torch.zeros(64, device="meta")
        right = x, x[32:], x.view(4, 1, 16), torch.empty_strided((1, 64), (7, 1)), x[:0]
        wrong = needs, x[::2], x.view(8, 8).t(), x[:1].expand(64), x.double(), x.int(), x.bfloat16(), x.cfloat().conj(), torch.nn.Parameter(x, False), meta
        k, long = kernel(self.dev, add), []
        keep(8, 8, 4)
        k._learn(0, x, (0).__eq__, torch.is_grad_enabled)
        k._launch = lambda *all: long.append(all)
        for v in right if table else ():
            k[1](v, self.y, 32)
            self.assertEqual(given(0, 8), v.data_ptr().to_bytes(8, "little"))
        with torch.no_grad():
            k[1](needs if table else self.x, self.y, 32)
        self.assertEqual(long, [])
        for v in wrong:
            k[1](v, self.y, 32)
        mapped = getattr(torch, "vmap", None)                # from 2.0 on
        if mapped:
            mapped(lambda v: (k[1](v, self.y, 32), v)[1])(torch.zeros(2, 64))
        self.assertEqual(len(long), len(wrong) + bool(mapped))

    def test_not_exchanged(self):
        """What is no table that is known here is left alone."""
        for api in (exchange_api(major=2), exchange_api(look=None), 5, None):
            Exchanged.__dlpack_c_exchange_api__ = capsule(api) if isinstance(api, Api) else api
            k, x = kernel(self.dev, AXPY), Exchanged(np.zeros(300, np.float32), ordinal=0)
            for _ in range(2):
                k[3](2, x, self.y, 300)
            asked = Exchanged.asked
            with Ways(k) as w:
                k[3](2, x, self.y, 300)
            self.assertEqual((w.long, Exchanged.asked), (0, asked + 1))

    def test_errors(self):
        fake.launch_result = 1
        try:
            for way in (self.k, self.k[3]):
                with self.assertRaises(tilec.Error):
                    way(*((3,) if way is self.k else ()), 2, self.x, self.y, 300)
        finally:
            fake.launch_result = 0

    def test_type_parameters(self):
        """A kernel whose types follow from the arrays is another one for each."""
        k = kernel(self.dev, COPY)
        keep(8, 8, 4)
        for t in ("f32", "i16", "f32"):
            x = self.dev.empty(64, t)
            k[2](x, x, 64)
            self.assertEqual(given(0, 8), x.data_ptr().to_bytes(8, "little"))

    def test_loaded(self):
        """A kernel of tilec.load goes the way of the one that it launched last, while the arguments are such; and back."""
        s = tilec.load(text=AXPY).axpy
        s[3](2, self.x, self.y, 300)
        with Ways(s) as w:
            for _ in range(3):
                s[3](2, self.x, self.y, 300)
            self.assertEqual(w.long, 0)
            host = np.ones(300, np.float32)
            s[3](2, host, host.copy(), 300)
            self.assertEqual(w.long, 1)
            s[3](2, self.x, self.y, 300, B=64)
            self.assertEqual((w.long, list(fake.launch.grid)), (2, [3, 1, 1]))
            s[3](2, self.x, self.y, 300)
            w.long = 0
            s[4](2, self.x, self.y, 300)
            self.assertEqual((w.long, list(fake.launch.grid)), (0, [4, 1, 1]))

    def test_no_references_are_lost(self):
        tuple_, bound = (3, 1), self.k[3]
        counts = lambda: (sys.getrefcount(None), sys.getrefcount(self.k), sys.getrefcount(self.x), sys.getrefcount(tuple_), sys.getrefcount(self.dev))
        self.k(tuple_, 2, self.x, self.y, 300)
        before, many = counts(), 2000
        for _ in range(many):
            bound(2, self.x, self.y, 300)
            self.k[tuple_](2, self.x, self.y, 300)
            self.k(tuple_, 2, self.x, self.y, 300)
            try:
                self.k[tuple_](2, self.x, self.y, "300")
            except TypeError:
                pass
        self.assertTrue(all(abs(a - b) < many // 10 for a, b in zip(counts(), before)), (counts(), before))

    def test_lifetimes(self):
        """A dispatcher keeps its device no longer than it lives itself."""
        gc.collect()
        before = fake.allocations, fake.modules
        dev = tilec.Device("cuda")
        s = tilec.load(text=AXPY, device=dev)
        x = dev.empty(300, "f32")
        for _ in range(2):
            s.axpy[3](2, x, x, 300)
        self.assertEqual(fake.allocations, before[0] + 1)
        del dev, s, x
        gc.collect()
        self.assertEqual((fake.allocations, fake.modules), before)


if __name__ == "__main__":
    if not tilec._ext:
        print("skipped: no extension module")
        sys.exit(77)
    unittest.main()
