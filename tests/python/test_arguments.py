"""What launches from Python take and what they refuse, with the words of the refusal. On the simulator."""
import sys
import types
import unittest

import numpy as np

from common import AXPY, COPY, FakeTensor, FakeTorch, kernel, tilec

dev = tilec.Device("sim")
f32 = np.float32


class Refused(unittest.TestCase):
    """Each: the exception, and all that its message must hold."""

    def refused(self, kind, words, run, *args, **named):
        with self.assertRaises(kind) as c:
            run(*args, **named)
        for word in words:
            self.assertIn(word, str(c.exception))

    def setUp(self):
        self.k = kernel(dev, AXPY)
        self.x, self.y = np.ones(300, f32), np.zeros(300, f32)
        self.bad = lambda kind, words, *args, **named: self.refused(kind, ("axpy", *words), self.k, 3, *args, **named)

    def test_element_types(self):
        x, y = self.x, self.y
        self.bad(TypeError, ("argument y (*f32)", "array of f32", "numpy array of f64"), 2, x, y.astype(np.float64), 300)
        self.bad(TypeError, ("argument x", "numpy array of i32"), 2, x.astype(np.int32), y, 300)
        self.bad(TypeError, ("argument x", "an array of f16"), 2, dev.array(x.astype(np.float16)), y, 300)
        self.bad(TypeError, ("argument x", "an array of u32"), 2, dev.empty(300, "u32"), y, 300)
        self.bad(TypeError, ("argument x", "numpy array of"), 2, x.astype(">f4"), y, 300)
        self.bad(TypeError, ("argument x", "numpy array of"), 2, x.astype(complex), y, 300)
        self.bad(TypeError, ("argument x", "list"), 2, [1.0, 2.0], y, 300)
        self.bad(TypeError, ("argument x", "Pointer(address)"), 2, 4096, y, 300)
        self.bad(TypeError, ("argument x", "torch tensor of bf16"), 2, FakeTensor(np.zeros(300, np.uint16), "bfloat16"), y, 300)

    def test_scalars(self):
        x, y = self.x, self.y
        self.bad(TypeError, ("argument n (i32)", "whole number", "float 300.0"), 2, x, y, 300.0)
        self.bad(TypeError, ("argument n", "float"), 2, x, y, np.float32(300))
        self.bad(TypeError, ("argument n", "None"), 2, x, y, None)
        self.bad(TypeError, ("argument n", "x.item()"), 2, x, y, np.array(300))
        self.bad(TypeError, ("argument a (f32)", "a number", "str"), "2", x, y, 300)
        self.bad(TypeError, ("argument a", "bool"), True, x, y, 300)
        self.bad(ValueError, ("argument n", "from -2147483648 to 2147483647", str(1 << 31)), 2, x, y, 1 << 31)
        self.bad(ValueError, ("argument a", "f32 can hold", "1e+39"), 1e39, x, y, 300)

    def test_in_front(self):
        """What is no grid is an argument; where there are too many, it is said what a grid is."""
        k, x, y = kernel(dev, AXPY), self.x, self.y
        for run in (k, k.bind):
            self.refused(TypeError, ("argument x (*f32)", "list"), run, 2.0, [1.0], y, 300)
            self.refused(TypeError, ("takes 4 arguments (a, x, y, n); n is missing",), run, 2.0, x, y)
            self.refused(TypeError, ("takes 4 arguments (a, x, y, n)", "a grid", "got float 2.0"), run, 2.0, x, y, 300, 5)
            self.refused(TypeError, ("takes 4 arguments (a, x, y, n)", "a grid", "got float 2.0"), run, 2.0, x, y, 300, n=300)
        self.refused(TypeError, ("a grid", "str 'a'"), k["a"], 2.0, x, y, 300)

    def test_ranges_of_types(self):
        for t, least, most in (("i8", -128, 127), ("u8", 0, 255), ("i16", -32768, 32767), ("u16", 0, 65535), ("u32", 0, (1 << 32) - 1), ("i64", -(1 << 63), (1 << 63) - 1),
                               ("u64", 0, (1 << 64) - 1), ("i1", 0, 1)):
            k = kernel(dev, f"kernel f(v: {t}, out: *{t}) warps(1) {{ store(out, v); }}")
            for v in (least, most):
                out = dev.empty(1, t)
                k(1, v, out)
                self.assertEqual(int(out.numpy()[0]), v, t)
            for v in (least - 1, most + 1):
                self.refused(ValueError, (f"argument v ({t})", str(v)), k, 1, v, dev.empty(1, t))
        k = kernel(dev, "kernel f(v: i1, w: i32, out: *i32) warps(1) { store(out, (v ? 10 : 20) + w); }")
        out = dev.empty(1, "i32")
        k(1, np.bool_(True), True, out)
        self.assertEqual(out.numpy()[0], 11)

    def test_floats_round(self):
        for t, most, less in (("f16", 65519.99, 65520.0), ("bf16", 3.39e38, 3.4e38), ("f8e4m3", 464, 464.1), ("f8e5m2", 61439.9, 61440)):
            k = kernel(dev, f"kernel f(v: {t}, out: *f32) warps(1) {{ store(out, f32(v)); }}")
            out = dev.empty(1, "f32")
            k(1, most, out)
            self.assertTrue(np.isfinite(out.numpy()[0]))
            k(1, float("-inf"), out)
            np.testing.assert_array_equal(out.numpy()[0], np.nan if t == "f8e4m3" else -np.inf)
            k(1, 3, out)
            self.assertEqual(out.numpy()[0], 3)
            self.refused(ValueError, ("argument v", t), k, 1, less, out)

    def test_counts_and_names(self):
        x, y = self.x, self.y
        self.bad(TypeError, ("takes 4 arguments (a, x, y, n)", "n is missing"), 2, x, y)
        self.bad(TypeError, ("takes 4 arguments", "got 5"), 2, x, y, 300, 1)
        self.bad(TypeError, ("no argument m", "a, x, y, n"), 2, x, y, m=300)
        self.bad(TypeError, ("argument y is given twice",), 2, x, y, y=y, n=300)

    def test_grids(self):
        for grid, kind in (((1, 2, 3, 4), TypeError), ((), TypeError), (1.5, TypeError), (-1, ValueError), (1 << 32, ValueError), ("3", TypeError)):
            self.refused(kind, ("grid",), self.k, grid, 2, self.x, self.y, 300)
            self.refused(kind, ("grid",), self.k.bind, grid, 2, self.x, self.y, 300)

    def test_strides(self):
        wide = np.ones((300, 2), f32)
        self.bad(ValueError, ("argument x", "contiguous", "strides (2,)"), 2, wide[:, 0], self.y, 300)
        self.bad(ValueError, ("argument x", "strides of"), 2, np.zeros(300, [("a", "i1"), ("b", "f4")])["b"], self.y, 300)
        k = kernel(dev, """kernel rows(x: *f32, y: *f32, m: i32, n: i32, s: i32) warps(1) {
          let i = program_id(0);
          let j = arange(0, 32);
          store(y + i * n + j, load(x + i * s + j, mask=j < n), mask=j < n);
        }""")
        x, y = np.arange(60, dtype=f32).reshape(4, 15), np.zeros((4, 7), f32)
        k(4, x[:, 3:10], y, 4, 7, 15)                     # told its stride
        np.testing.assert_array_equal(y, x[:, 3:10])
        self.refused(ValueError, ("argument x", "strides (15, 1)"), k, 4, x[:, 3:10], y, 4, 7, 14)
        self.refused(ValueError, ("argument x", "strides (1, 15)"), k, 4, x.T, y, 4, 7, 14)

    def test_device(self):
        other = tilec.Device("sim")
        self.bad(ValueError, ("argument x", "another device"), 2, other.array(self.x), self.y, 300)
        self.bad(ValueError, ("argument x", "on the host", "cuda:0"), 2, FakeTensor(self.x, ordinal=0), self.y, 300)
        self.refused(tilec.Error, ("axpy", "argument 1 (x)"), self.k, 3, 2, tilec.Pointer(4096), self.y, 300)

    def test_writes(self):
        a = dev.empty((2, 4), "f32")
        self.refused(ValueError, ("shape (2, 4)", "shape (4,)"), a.write, np.zeros(4, f32))
        self.refused(ValueError, ("shape (2, 4)", "shape (8,)"), a.write, np.zeros(8, f32))
        self.refused(TypeError, ("f32", "f64"), a.write, np.zeros((2, 4)))
        self.refused(TypeError, ("bf16", "f32", "to_bits"), dev.array, np.zeros(4, f32), "bf16")
        self.refused(TypeError, ("f8e4m3", "f32", "to_bits"), dev.empty(4, "f8e4m3").write, np.zeros(4, f32))
        self.refused(TypeError, ("i8", "i64", "astype"), dev.array, np.arange(4), "i8")
        self.refused(TypeError, ("i8", "cannot hold"), dev.array, [1, 300], "i8")
        self.refused(TypeError, ("i32", "cannot hold"), dev.array, [1.5], "i32")
        self.refused(TypeError, ("f17",), dev.empty, 4, "f17")
        self.refused(ValueError, ("negative",), dev.empty, (-1, 4), "f32")
        self.refused(TypeError, ("complex",), dev.array, np.zeros(3, complex))
        a.write([[1, 2, 3, 4], [5, 6, 7, 8]])
        np.testing.assert_array_equal(a.numpy(), np.arange(1, 9, dtype=f32).reshape(2, 4))
        np.testing.assert_array_equal(tilec.from_bits(dev.array([1.0, -2.5], "bf16").numpy(), "bf16"), [1, -2.5])
        self.assertEqual(dev.array(dev.array([1, 2], "u8")).numpy().tolist(), [1, 2])
        self.assertEqual(dev.array(7).numpy().shape, ())

    def test_types_that_arrays_set(self):
        k = kernel(dev, COPY)
        for t in ("f32", "i64", "f16", "u8", "i1"):
            x = dev.array(np.arange(40).astype(tilec.DTYPES[t]), t)
            y = dev.empty(40, t)
            k(2, x, y, 40)
            np.testing.assert_array_equal(x.numpy(), y.numpy())
        self.assertIs(k._typed([x, y, 40]), k._typed([x, y, 40]))
        self.refused(TypeError, ("argument y (*T)", "T is because of x", "f64"), k, 2, dev.empty(40, "f32"), dev.empty(40, "f64"), 40)
        self.refused(TypeError, ("argument y (*f32)",), kernel(dev, COPY, T="f32"), 2, dev.empty(40, "f32"), dev.empty(40, "f64"), 40)
        call = k.bind(2, y=y, x=x, n=40)
        call()
        self.assertIn("copy", call.ptx())

    def test_autograd(self):
        torch = sys.modules["torch"] = FakeTorch()
        try:
            leaf = FakeTensor(self.x, requires_grad=True)
            self.bad(ValueError, ("argument x", "requires grad", "no_grad"), 2, leaf, self.y, 300)
            torch.grad = False
            self.k(3, 2, leaf, self.y, 300)
            np.testing.assert_array_equal(self.y, 2)
        finally:
            del sys.modules["torch"]

    def test_tuning(self):
        k = dev.program(text="kernel f(x: *T, n: i32, type T, const B = 32) warps(1) tune(B = [32, 64]) { let i = program_id(0) * B + arange(0, B);"
                             " store(x + i, load(x + i, mask=i < n) + T(1), mask=i < n); }", name="case.tile")
        x = dev.array(np.zeros(100, f32))
        grid = lambda s: tilec.cdiv(100, s["B"])
        best = k.tune("f", grid, x, 100, restore=("x",), force=True)
        self.assertEqual(best.settings()["T"], "f32")
        np.testing.assert_array_equal(x.numpy(), 0)
        best(grid, x, 100)
        np.testing.assert_array_equal(x.numpy(), 1)
        self.refused(ValueError, ("argument x", "of the device"), k.tune, "f", grid, np.zeros(100, f32), 100)
        self.refused(ValueError, ("no argument y", "x, n"), k.tune, "f", grid, x, 100, restore=("y",))
        self.refused(TypeError, ("argument n", "to be restored"), k.tune, "f", grid, x, 100, restore=(1,))

    def test_search(self):
        """A kernel that lists nothing: blocks vary where the grid is a function that follows."""
        k = dev.program(text="kernel f(x: *f32, y: *f32, const B = 64) warps(1) { let i = program_id(0) * B + arange(0, B); store(y + i, load(x + i)); }",
                        name="case.tile")
        x, y = dev.array(np.arange(256, dtype=f32)), dev.array(np.zeros(256, f32))
        self.assertEqual([r["config"] for r in k.tune("f", 4, x, y, force=True).trials], [""])
        for grid, follows in ((lambda s: 256 // s["B"], True), (4, False)):
            best = k.tune("f", grid, x, y, search=True, force=True)
            fits = {r["config"] for r in best.trials if not r["why"]}
            self.assertEqual(("warps=1 B=32" in fits, "warps=1 B=128" in fits, "warps=2" in fits), (follows, follows, True))
            y.fill_bytes(0)
            best(grid, x, y)
            np.testing.assert_array_equal(y.numpy(), x.numpy())
        best = k.tune("f", lambda s: 256 // s["B"], x, y, search=True, force=True, B=16)
        self.assertIn("warps=1 B=32", {r["config"] for r in best.trials})

    def test_restored(self):
        """Every launch of many finds what it would find alone."""
        k = dev.program(text='kernel f(x: *f32, t: *i32) warps(1) tune(warps=[1, 2]) { assert(atomic_add(t, 1) == 0, "came twice"); atomic_add(x, 1.0); }', name="case.tile")
        x, t = dev.array(np.full(1, 5, f32)), dev.array(np.zeros(1, np.int32))
        best = k.tune("f", 1, x, t, restore=("t", 0), force=True)
        self.assertEqual([r["why"] for r in best.trials], [None, None])
        call = best.bind(1, x, t)
        self.assertGreater(call.bench(1, 1, restore=("x", "t"))["runs"], 0)
        np.testing.assert_array_equal([x.numpy()[0], t.numpy()[0]], [5, 0])
        call()
        np.testing.assert_array_equal([x.numpy()[0], t.numpy()[0]], [6, 1])
        with self.assertRaisesRegex(tilec.Error, "came twice"):
            call.bench(1, 1)
        with self.assertRaisesRegex(ValueError, "no argument 2 to restore; there are x, t"):
            call.bench(1, 1, restore=(2,))


class Tuples(unittest.TestCase):
    """Parameters shape.0, shape.1 are one argument. How they are taken apart, whatever the kernel."""

    def setUp(self):
        names = ("x", "shape.0", "shape.1", "m.base", "m.rows", "n", "deep.0.0", "deep.0.1", "deep.1")
        self.k = tilec.Kernel.__new__(tilec.Kernel)
        self.k.name, self.k.args = "k", [types.SimpleNamespace(name=n) for n in names]
        self.k._groups = tilec.grouped(self.k.args)

    def test_taken_apart(self):
        want = [0, 1, 2, 3, 4, 5, 6, 7, 8]
        self.assertEqual(self.k._flat((0, (1, 2), (3, 4), 5, ((6, 7), 8)), {}), want)
        self.assertEqual(self.k._flat((0, [1, 2]), dict(m={"rows": 4, "base": 3}, n=5, deep=[[6, 7], 8])), want)

    def test_refused(self):
        for args, words in (((0, 1, (3, 4), 5, (6, 7, 8)), ("argument shape", "a tuple of 2", "int 1")), ((0, (1,), (3, 4), 5, (6, 7, 8)), ("one of 1",)),
                            ((0, (1, 2), {"rows": 3}, 5, (6, 7, 8)), ("argument m", "dict or tuple", "base, rows")), ((0, (1, 2), (3, 4), 5), ("deep is missing",)),
                            ((0, 1, 2, 3, 4, 5, 6, 7, 8), ("takes 5 arguments (x, shape, m, n, deep)",))):
            with self.assertRaises(TypeError) as c:
                self.k._flat(args, {})
            for w in words:
                self.assertIn(w, str(c.exception))


class Host(unittest.TestCase):
    """Memory of the host, lent to the simulator."""

    def test_in_place_and_overlapping(self):
        k = kernel(dev, AXPY)
        for launch in (lambda *a: k(3, *a), lambda *a: k.bind(3, *a)(), lambda *a: k.bind(3, *a).repeat(1)):
            x = np.arange(300, dtype=f32)
            launch(1.0, x, x, 300)                        # the same array twice
            np.testing.assert_array_equal(x, 2 * np.arange(300))
            both = np.arange(400, dtype=f32)
            launch(1.0, both[:300], both[200:], 200)      # views of one array that overlap; what is touched does not
            np.testing.assert_array_equal(both, np.append(np.arange(200), np.arange(200) + np.arange(200, 400)))

    def test_read_only_and_bounds(self):
        k = kernel(dev, AXPY)
        x, y = np.ones(300, f32), np.zeros(300, f32)
        x.flags.writeable = False
        k(3, 2, x, y, 300)
        np.testing.assert_array_equal(y, 2)
        y.flags.writeable = False
        for launch in (lambda *a: k(3, *a), lambda *a: k[3](*a), lambda *a: k.bind(3, *a)(), lambda *a: k.bind(3, *a).repeat(1)):
            with self.assertRaisesRegex(ValueError, r"kernel axpy, argument y \(\*f32\): .* the kernel does, got one that is read-only"):
                launch(2, x, y, 300)
            np.testing.assert_array_equal(y, 2)           # as it was
        both = np.zeros(300, f32)
        seen = both[:]
        seen.flags.writeable = False
        k(3, 2, seen, both, 300)                          # of what is the same memory one may be written to
        k(0, 2, x, y, 300)                                # nothing is written
        with self.assertRaises(tilec.Error) as c:         # the lent memory ends where the array does
            k(3, 2, np.ones(299, f32), np.zeros(300, f32), 300)
        self.assertEqual((c.exception.line > 0, c.exception.file), (True, "case.tile"))

    def test_bound_sees_later_contents(self):
        x, y = np.ones(300, f32), np.zeros(300, f32)
        call = kernel(dev, AXPY).bind(3, 2, x, y, 300)
        call()
        x[:] = 5
        call()
        np.testing.assert_array_equal(y, 12)

    def test_tensors_and_nothing(self):
        k, y = kernel(dev, AXPY), np.zeros(300, f32)
        k[3](2, FakeTensor(np.ones(300, f32)), FakeTensor(y), 300)
        np.testing.assert_array_equal(y, 2)
        k(0, 2, None, None, 0)                            # null pointers of no programs, arrays of no elements
        k(3, 2, np.zeros(0, f32), np.zeros((4, 0), f32), 0)
        for x, out, name in ((None, y, r"1 \(x\)"), (y, None, r"2 \(y\)"), (tilec.Pointer(0), y, r"1 \(x\)")):
            with self.assertRaisesRegex(tilec.Error, f"kernel axpy, argument {name}: it is null, and the kernel needs it"):
                k(3, 2, x, out, 300)
            with self.assertRaisesRegex(tilec.Error, f"argument {name}: it is null"):
                k.bind(3, 2, x, out, 300)
        text = "kernel f(x: *f32, y: *f32) warps(1) { var v = 1.0; if x != None { v = load(x); } store(y, v); }"
        for known in (dict(), dict(specialise=False)):
            maybe = dev.program(text=text, **known).kernel()
            for x, want in ((None, 1), (np.full(1, 5, f32), 5), (None, 1)):
                maybe(1, x, y)
                self.assertEqual(y[0], want)
        text = """kernel f(x: *f32, y: *f32, z: *f32) warps(4) {
          let i = arange(0, 128); store(y + i, load(x + i) + 1.0); store(z + i, load(x + (127 - i))); }"""
        for known in (dict(), dict(specialise=False)):    # a barrier in between where x is one of the others
            moves = dev.program(text=text, **known).kernel()
            for same in ((0, 1, 2), (0, 0, 2), (0, 1, 0), (0, 0, 0)):
                all = [dev.array(np.arange(128, dtype=f32)) for _ in range(3)]
                moves(1, *(all[i] for i in same))
                np.testing.assert_array_equal(all[same[2]].numpy(), np.arange(127, -1, -1) + (same[1] == 0))
        signed = FakeTensor(np.arange(5, dtype=np.int32), "int32")
        out = dev.empty(1, "u32")
        kernel(dev, "kernel f(x: *u32, y: *u32) warps(1) { store(y, load(x + 3)); }")(1, signed, out)
        self.assertEqual(out.numpy()[0], 3)

    def test_bits(self):
        k = kernel(dev, "kernel f(x: *bf16, y: *f32) warps(1) { let i = arange(0, 32); store(y + i, f32(load(x + i))); }")
        values = np.linspace(-3, 3, 32, dtype=f32)
        y = np.zeros(32, f32)
        k(1, tilec.to_bits(values, "bf16"), y)
        np.testing.assert_array_equal(y, tilec.from_bits(tilec.to_bits(values, "bf16"), "bf16"))
        with self.assertRaises(TypeError):
            k(1, values.astype(np.float16), y)

    def test_grid_of_settings(self):
        x, y = np.ones(300, f32), np.zeros(300, f32)
        kernel(dev, AXPY, B=256)(lambda s: tilec.cdiv(300, s["B"]), a=1, x=x, y=y, n=300)
        np.testing.assert_array_equal(y, 1)

    def test_own_grid(self):
        """Without a grid, or with None, it is what the kernel says; what is said first is the grid only if it is one too many."""
        text = AXPY.replace("warps(4)", "warps(4) grid(cdiv(n, B))")
        k = kernel(dev, text)
        x, y = dev.array(np.ones(300, f32)), dev.array(np.zeros(300, f32))
        for i, launch in enumerate((lambda: k(1, x, y, 300), lambda: k(None, 1, x, y, 300), lambda: k(a=1, x=x, y=y, n=300),
                                    lambda: k(1, x, y=y, n=300), lambda: k[3](1, x, y, 300), lambda: k.bind(1, x, y, 300)())):
            launch()
            np.testing.assert_array_equal(y.numpy(), i + 1)
        self.assertEqual((k.bind(1, x, y, 300).grid, k.bind(2, 1, x, y, 300).grid, k.bind(1, x, y, 300).says_grid), ((3, 1, 1), (2, 1, 1), True))
        self.assertFalse(kernel(dev, AXPY).bind(3, 1, x, y, 300).says_grid)
        first = kernel(dev, "kernel f(x: *f32, n: i32) warps(1) grid(n) { store(x + program_id(0), 7.0); }")
        first(x, 5)
        np.testing.assert_array_equal(x.numpy()[:6], [7, 7, 7, 7, 7, 1])
        with self.assertRaisesRegex(TypeError, "n is missing"):
            first(5, x)
        with self.assertRaisesRegex(tilec.Error, "no grid is given, and it has no grid clause"):
            kernel(dev, AXPY)(1, x, y, 300)
        with self.assertRaisesRegex(tilec.Error, "its grid has -2 programs along axis 0"):
            k(1, x, y, -300)
        shape = kernel(dev, "kernel f(t: tensor<f32, 2>) warps(1) grid(extent(t, 1), extent(t, 0)) { tensor_store(t, [program_id(1), program_id(0)], "
                            "full([1, 4], 1.0, f32)); }")
        self.assertEqual(shape.bind(dev.empty((6, 20), "f32")).grid, (20, 6, 1))
        for there in (1, 3):
            device = tilec.Device(f"sim:{there}")
            all = kernel(device, "kernel f(x: *f32, n: i32) warps(1) grid(min(n, 2 * multiprocessors()), multiprocessors() - 1) { store(x, 1.0); }")
            out = device.empty(1, "f32")
            self.assertEqual([all.bind(None, out, n).grid for n in (0, 4, 1000)], [(min(n, 2 * there), there - 1, 1) for n in (0, 4, 1000)])

    def test_own_grid_of_tuning(self):
        text = AXPY.replace("warps(4)", "warps(4) grid(cdiv(n, B)) tune(B=[32, 64])")
        x, y = dev.array(np.ones(300, f32)), dev.array(np.zeros(300, f32))
        k = dev.program(text=text, name="case.tile").tune("axpy", None, 1, x, y, 300, restore=("y",))
        k(1, x, y, 300)
        np.testing.assert_array_equal(y.numpy(), 1)
        self.assertEqual(k.bind(1, x, y, 300).grid[0], tilec.cdiv(300, k.settings()["B"]))


if __name__ == "__main__":
    unittest.main()
