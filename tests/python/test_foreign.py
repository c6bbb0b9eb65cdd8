"""PTX of other compilers: parameters by its own words, blocks of any shape, dynamic shared memory; on the simulator, and over the fake
driver what reaches the launch. What nvcc and Triton made is in tests/sim/foreign and tests/cli/Inputs."""
import ctypes as C
import os
import sys
import unittest

import numpy as np

from common import AXPY, FakeTensor, FakeTorch, kernel, root, tilec
from fake import fake, given, keep

# A parameter of each kind, all but the first written to where the first points: the structure in front, then eight bytes for each.
SIZES = {"wide": 8, "word": 4, "half": 2, "real16": 2, "byte": 1, "signed": 2, "single": 4, "double": 8, "unsigned": 8}
EACH = """.version 8.0
.target sm_80
.address_size 64
.entry each(.param .u64 .ptr .global .align 8 out, .param .align 8 .b8 structure[24], .param .b64 wide, .param .b32 word, .param .b16 half,
            .param .f16 real16, .param .u8 byte, .param .s16 signed, .param .f32 single, .param .f64 double, .param .u64 unsigned)
{ .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h<9>;
  ld.param.u64 %d0, [out];
""" + "".join(f"ld.param.b64 %d1, [structure+{8 * i}]; st.global.b64 [%d0+{8 * i}], %d1;\n" for i in range(3)) + "".join(
    f"ld.param.b{8 * n} %{r}1, [{name}]; st.global.b{8 * n} [%d0+{24 + 8 * i}], %{r}1;\n"
    for i, (name, n) in enumerate(SIZES.items()) for r in ["d" if n == 8 else "r" if n == 4 else "h"]) + """ret; }
.entry asked() .reqntid 8, 4, 2 { ret; }
.entry open() { ret; }
"""
GIVEN = {"structure": b"abcdefgh" * 3, "wide": -2, "word": 1.5, "half": np.float16(-3.5), "real16": 0.25, "byte": 255, "signed": -32768, "single": 1 / 3,
         "double": 1 / 3, "unsigned": (1 << 64) - 1}
WANT = {"structure": b"abcdefgh" * 3, "wide": np.int64(-2), "word": np.float32(1.5), "half": np.float16(-3.5), "real16": np.float16(0.25),
        "byte": np.uint8(255), "signed": np.int16(-32768), "single": np.float32(1 / 3), "double": np.float64(1 / 3), "unsigned": np.uint64((1 << 64) - 1)}


def ptx(dev, name):
    return dev.program(os.path.join(root, "tests", name))


def each(dev, name="each"):
    return dev.program(text=EACH, name="each.ptx").kernel(name)


class Refusals(unittest.TestCase):
    def refused(self, kind, words, f, *args, **named):
        with self.assertRaises(kind) as c:
            f(*args, **named)
        self.assertIsInstance(words, tuple)
        for w in words:
            self.assertIn(w, str(c.exception))


class Simulated(Refusals):
    def setUp(self):
        self.dev = tilec.Device("sim")

    def launches(self, k):
        """The ways to launch: each takes (grid, arguments, block and shared by name)."""
        return (k, lambda g, *a, **n: k[g](*a, **n), lambda g, *a, **n: k.bind(g, *a, **n)())

    def test_kernels(self):
        """Of C++: arrays of every kind for pointers, a structure, scalars of all sizes, blocks of two dimensions."""
        p = ptx(self.dev, "cli/Inputs/foreign.ptx")
        axpy, put, reverse = p.kernel("_Z4axpyfPKfPfi"), p.kernel("_Z3putPd6Affinedhsx"), p.kernel("_Z7reversePi")
        self.assertEqual([a.type for a in axpy.args], [".f32", ".u64", ".u64", ".u32"])
        x = np.arange(50, dtype=np.float32)
        for launch in self.launches(axpy):
            y, host, tensor = self.dev.array(x), x.copy(), x.copy()
            for out in (y, host, FakeTensor(tensor), tilec.Pointer(y)):
                launch(2, 2, x, out, 50, block=32)
            np.testing.assert_array_equal(y.numpy(), 5 * x)
            np.testing.assert_array_equal(host, 3 * x)
            np.testing.assert_array_equal(tensor, 3 * x)
        fields = [("scale", "f4"), ("offset", "f4"), ("step", "i4")]
        affine = np.array((2, 0.25, 1000), dtype=fields)
        record = type("Affine", (C.Structure,), {"_fields_": [("scale", C.c_float), ("offset", C.c_float), ("step", C.c_int)]})(2, 0.25, 1000)
        for structure in (affine, affine[()], affine.tobytes(), bytearray(affine.tobytes()), record):
            for launch in self.launches(put):
                out = np.zeros(32)
                launch(1, out, structure, 0.5, 200, -3, 1 << 33, block=(4, 8))
                np.testing.assert_array_equal(out, 2 * np.arange(32) + 0.25 + 1000 + 0.5 + 200 - 3 + 2.0**33)
        for launch in self.launches(reverse):
            a = self.dev.array(np.arange(48, dtype=np.int32))
            launch(1, p0=a, block=[48], shared=4 * 48)
            np.testing.assert_array_equal(a.numpy(), np.arange(48)[::-1])

    def test_compilers(self):
        """Of nvcc and of Triton, whose kernels ask for their block."""
        out = np.zeros(64, np.int32)
        scan = ptx(self.dev, "sim/foreign/scan.sm_80.ptx").kernel("scan_steps")
        scan(1, np.ones(64, np.int32), out, 64, block=64, shared=512)
        np.testing.assert_array_equal(out, np.arange(1, 65))
        k = ptx(self.dev, "sim/foreign/triton_softmax.sm_80w4.ptx").kernel()
        self.assertEqual((k.name, k.block, scan.block), ("softmax", (128, 1, 1), None))
        x, y = np.random.default_rng(1).normal(size=(2, 100)).astype(np.float32), np.zeros((2, 100), np.float32)
        k[2](x, y, 100, None, None, shared=64)
        np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
        k.bind(lambda settings: 2 + len(settings), x, y, 100, None, None, shared=64, block=(128, 1))()

    def test_parameters(self):
        """Of every word of PTX, and bytes for each."""
        k = each(self.dev)
        as_bytes = {n: bytes(v) if n == "structure" else v.tobytes() for n, v in WANT.items()}
        for values in (GIVEN, as_bytes):
            out = np.zeros(24 + 8 * len(SIZES), np.uint8)
            k(1, out, **values, block=1)
            self.assertEqual(out[:24].tobytes(), WANT["structure"])
            for i, (name, size) in enumerate(SIZES.items()):
                self.assertEqual(out[24 + 8 * i:][:size].tobytes(), WANT[name].tobytes(), name)
        a = self.dev.empty(3, "i16")
        for v, want in ((a, a.data_ptr()), (tilec.Pointer(40), 40), (None, 0), (2.5, np.float64(2.5).view(np.uint64)), (True, 1)):
            k(1, out, **{**GIVEN, "wide": v}, block=1)
            self.assertEqual(out[24:32].view(np.uint64)[0], want)
        k(1, out, **{**GIVEN, "word": -1, "half": 65535, "real16": 3, "single": np.int8(3)}, block=1)
        self.assertEqual([out[at:][:4].tobytes() for at in (32, 40, 48, 72)], [b"\xff" * 4, b"\xff\xff\0\0", np.float16(3).tobytes() + b"\0\0", np.float32(3).tobytes()])

    def test_refused_arguments(self):
        k, out = each(self.dev), np.zeros(200, np.uint8)
        for name, kind, value, words in (
                ("out", TypeError, 16, ("kernel each, argument out (*)", "an array, a Pointer or None", "int 16", "Pointer(address)")),
                ("out", TypeError, 2.5, ("an array, a Pointer or None", "float 2.5")),
                ("out", TypeError, b"12345678", ("an array, a Pointer or None",)),
                ("structure", TypeError, 7, ("argument structure (.b8[24])", "expected 24 bytes, got int 7")),
                ("structure", TypeError, None, ("expected 24 bytes, got None",)),
                ("structure", TypeError, self.dev.empty(24, "u8"), ("expected 24 bytes, got an array of u8",)),
                ("structure", TypeError, np.array([out], object), ("expected 24 bytes",)),
                ("structure", ValueError, b"1234", ("expected 24 bytes, got 4",)),
                ("structure", ValueError, np.zeros(4, np.float64), ("expected 24 bytes, got 32",)),
                ("wide", TypeError, "x", ("argument wide (.b64)", "an array, a Pointer, None or a number, got str 'x'")),
                ("unsigned", TypeError, 1.0, ("an array, a Pointer, None or a whole number, got float 1.0",)),
                ("unsigned", ValueError, 1 << 64, ("from -9223372036854775808 to 18446744073709551615, got 18446744073709551616",)),
                ("unsigned", ValueError, bytes(7), ("expected 8 bytes, got 7",)),
                ("word", TypeError, out, ("argument word (.b32)", "expected a number, got a numpy array of u8")),
                ("word", TypeError, None, ("expected a number, got None",)),
                ("word", ValueError, 1 << 32, ("from -2147483648 to 4294967295",)),
                ("word", ValueError, 1e300, ("a number that f32 can hold",)),
                ("half", TypeError, 0.5, ("argument half (.b16)", "a whole number or one of numpy.float16, got float 0.5")),
                ("half", TypeError, np.float32(0.5), ("numpy.float16",)),
                ("real16", ValueError, 70000, ("a number that f16 can hold",)),
                ("byte", ValueError, 256, ("argument byte (.u8)", "from -128 to 255")),
                ("signed", ValueError, -32769, ("argument signed (.s16)", "from -32768 to 65535")),
                ("single", TypeError, True, ("argument single (.f32)", "expected a number, got bool True")),
                ("single", TypeError, self.dev.empty(1, "f32"), ("expected a number, got an array of f32",)),
                ("single", ValueError, -4e38, ("a number that f32 can hold",))):
            self.refused(kind, words, k, 1, **{"out": out, **GIVEN, name: value}, block=1)
        self.refused(TypeError, ("kernel each takes 11 arguments (out, structure, wide", "unsigned is missing"), k, 1, out, *list(GIVEN.values())[:-1], block=1)
        self.refused(TypeError, ("takes 11 arguments", "got 12"), k, 1, out, *GIVEN.values(), 5, block=1)
        self.refused(TypeError, ("has no argument other",), k, 1, out, *GIVEN.values(), block=1, other=3)
        self.refused(ValueError, ("a contiguous array",), k, 1, out[::2], *GIVEN.values(), block=1)
        self.refused(ValueError, ("device (sim)", "another device (cuda:0)"), k, 1, tilec.Device("cuda").empty(200, "u8"), *GIVEN.values(), block=1)

    def test_refused_shapes(self):
        k, asked = each(self.dev, "open"), each(self.dev, "asked")
        asked(1)
        asked(1, block=(8, 4, 2))
        for bad in ({}, {"block": None}):
            self.refused(TypeError, ("kernel open", "block=(x, y, z) is needed"), k, 1, **bad)
        for block in ("32", 1.5, (1, 2, 3, 4), (), (None,)):
            self.refused(TypeError, ("a block is a whole number or up to three",), k, 1, block=block)
        for block in (-1, 1 << 32):
            self.refused(ValueError, ("a block's numbers are from 0 to 2^32 - 1",), k, 1, block=block)
        for block, words in ((0, "a block of 0 x 1 x 1 threads"), ((32, 64), "a block of 32 x 64 x 1 threads"), ((1, 1, 65), "and 64 along z")):
            self.refused(tilec.Error, (words,), k, 1, block=block)
        self.refused(tilec.Error, ("needs blocks of 8 x 4 x 2 threads, not 64 x 1 x 1",), asked, 1, block=64)
        self.refused(TypeError, ("shared is a number of bytes, got float 4.0",), k, 1, block=1, shared=4.0)
        self.refused(ValueError, ("shared is a number of bytes from 0",), k, 1, block=1, shared=-1)
        self.refused(tilec.Error, ("300000 bytes of shared memory",), k, 1, block=1, shared=300000)
        self.refused(tilec.Error, ("outside the 0 bytes of shared memory",), ptx(self.dev, "cli/Inputs/foreign.ptx").kernel("_Z7reversePi"), 1,
                     np.zeros(32, np.int32), block=32)
        self.refused(tilec.Error, ("no kernel 'nobody'; it has each, asked, open",), each, self.dev, "nobody")
        self.refused(tilec.Error, ("name the one you want",), each, self.dev, None)
        self.refused(tilec.Error, ("B",), self.dev.program(text=EACH, name="each.ptx").kernel, "open", B=32)
        self.refused(TypeError, ("no configurations to tune",), self.dev.program(text=EACH, name="each.ptx").tune, "open", 1)

    def test_own_kernels(self):
        """tilec's kernels have blocks of their own, whether compiled here or loaded, and may have a parameter called block."""
        k = kernel(self.dev, "kernel f(block: i32, x: *i32) warps(1) { store(x, block); }")
        out = np.zeros(1, np.int32)
        k(1, block=7, x=out)
        self.assertEqual(out[0], 7)
        axpy = kernel(self.dev, AXPY)
        x = np.ones(10, np.float32)
        self.refused(TypeError, ("has no argument block",), axpy, 1, 2, x, x, 10, block=128)
        loaded = self.dev.program(text=axpy.bind(1, 2, x, x, 10).ptx(), name="axpy.ptx").kernel()
        self.assertNotIsInstance(loaded, tilec.ShapedKernel)
        self.refused(TypeError, ("argument x", "an array of f32"), loaded, 1, 2, np.ones(10), x, 10)

    def test_info(self):
        call = each(self.dev, "open").bind(1, block=(5, 6), shared=100)
        info = call.info()
        self.assertEqual((info["threads"], info["dynamic_shared"], info["occupancy"]), (30, 100, None))
        self.assertGreater(call.bench(0, 0)["runs"], 0)
        self.assertIn(".entry each", call.ptx())


class Driver(Refusals):
    """What reaches the driver."""

    def setUp(self):
        sys.modules["torch"] = self.torch = FakeTorch()
        self.dev = tilec.Device("cuda")

    def tearDown(self):
        del sys.modules["torch"]

    def test_launch(self):
        k, x = each(self.dev), self.dev.empty(4, "f64")
        keep(8, 24, *SIZES.values())
        self.torch.stream = 0x1110
        tensor = FakeTensor(np.zeros(9, np.complex64), ordinal=0)          # of elements that tilec has no type for
        for out, address, stream in ((x, x.data_ptr(), None), (tensor, tensor.data_ptr(), 0x1110), (tilec.Pointer(64), 64, None), (None, 0, None)):
            for launch in (k, lambda *a, **n: k.bind(*a, **n)()):
                launch((2, 3), out, **GIVEN, block=(4, 5, 6), shared=60000)
                self.assertEqual((list(fake.launch.grid), list(fake.launch.block), fake.launch.shared, fake.launch.stream), ([2, 3, 1], [4, 5, 6], 60000, stream))
                self.assertEqual(given(0, 8), np.uint64(address).tobytes())
                self.assertEqual(given(1, 24), WANT["structure"])
                for i, (name, size) in enumerate(SIZES.items()):
                    self.assertEqual(given(2 + i, size), WANT[name].tobytes(), name)
        self.assertEqual(fake.dynamic_shared, 60000)
        k((2, 3), x, **GIVEN, block=1, stream=0x7770)
        self.assertEqual((list(fake.launch.block), fake.launch.shared, fake.launch.stream), ([1, 1, 1], 0, 0x7770))

    def test_bound(self):
        """A bound call costs one call of the driver."""
        call = each(self.dev, "asked").bind(3)
        total = fake.total
        for _ in range(10):
            call()
        self.assertEqual((fake.total - total, list(fake.launch.block)), (10, [8, 4, 2]))

    def test_refused(self):
        k = each(self.dev)
        self.refused(TypeError, ("argument out", "memory of the device", "dev.array(x)"), k, 1, np.zeros(9), *GIVEN.values(), block=1)
        self.refused(TypeError, ("argument wide", "memory of the device"), k, 1, **{"out": None, **GIVEN, "wide": np.zeros(9)}, block=1)
        self.refused(ValueError, ("argument out", "cuda:0", "cpu"), k, 1, FakeTensor(np.zeros(9)), *GIVEN.values(), block=1)
        self.refused(tilec.Error, ("a block of 2048 x 1 x 1 threads",), k, 1, None, *GIVEN.values(), block=2048)


if __name__ == "__main__":
    unittest.main()
