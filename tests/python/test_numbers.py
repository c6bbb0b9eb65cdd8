"""to_bits and from_bits against tests/numbers/exact.py: every pattern, every midpoint between neighbours and what lies beside it."""
import os
import sys
import unittest

import numpy as np

from common import root, tilec

sys.path.insert(0, os.path.join(root, "tests", "numbers"))
import exact

FORMATS = ("bf16", "f8e4m3", "f8e5m2")


def patterns(t):
    return np.arange(1 << exact.width(t)).astype(tilec.DTYPES[t])


class Bits(unittest.TestCase):
    def test_every_pattern(self):
        for t in FORMATS:
            bits = patterns(t)
            values = tilec.from_bits(bits, t)
            want = np.array([exact.decode(t, int(b)) for b in bits], np.float32)
            np.testing.assert_array_equal(values, want)
            np.testing.assert_array_equal(np.signbit(values[values == 0]), [False, True])
            numbers = ~np.isnan(values)
            for wide in (np.float32, np.float64):
                np.testing.assert_array_equal(tilec.to_bits(values[numbers].astype(wide), t), bits[numbers])
            self.assertTrue(np.isnan(tilec.from_bits(tilec.to_bits(values, t), t)[~numbers]).all())

    def test_midpoints(self):
        for t in FORMATS:
            most = exact.parts(t)[3]
            v = tilec.from_bits(np.arange(most + 1).astype(tilec.DTYPES[t]), t).astype(np.float64)
            mid = (v[:-1] + v[1:]) / 2
            even = np.arange(most) + np.arange(most) % 2
            for x, want in ((mid, even), (np.nextafter(mid, 0), np.arange(most)), (np.nextafter(mid, np.inf), np.arange(1, most + 1))):
                np.testing.assert_array_equal(tilec.to_bits(x, t), want)
                np.testing.assert_array_equal(tilec.to_bits(-x, t), want | 1 << exact.width(t) - 1)

    def test_random_f32(self):
        """All 32 bits of a float32 at random; bf16 has a path of its own for these."""
        x = np.random.default_rng(1).integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
        x = x[~np.isnan(x)]
        for t in FORMATS:
            np.testing.assert_array_equal(tilec.to_bits(x, t, saturate=True), [exact.encode(t, float(v), sat=True) for v in x])

    def test_too_large(self):
        top = {t: float(tilec.from_bits(np.array(exact.parts(t)[3], tilec.DTYPES[t]), t)) for t in FORMATS}
        for t, less in (("bf16", 2.0**127 * (2 - 2.0**-8)), ("f8e4m3", np.nextafter(464.0, 500)), ("f8e5m2", 61440.0)):
            big = np.array([less, -less, np.inf, -np.inf, np.float64(1e300)])
            got = tilec.from_bits(tilec.to_bits(big, t), t)
            np.testing.assert_array_equal(got, [np.nan] * 5 if t == "f8e4m3" else [np.inf, -np.inf, np.inf, -np.inf, np.inf])
            got = tilec.from_bits(tilec.to_bits(big, t, saturate=True), t)
            np.testing.assert_array_equal(got, np.array([1, -1, 1, -1, 1]) * np.float32(top[t]))
            self.assertEqual(tilec.from_bits(tilec.to_bits(np.nextafter(less, 0), t), t), np.float32(top[t]))

    def test_shapes_and_refusals(self):
        self.assertEqual(tilec.to_bits(1.0, "bf16"), 0x3F80)
        self.assertEqual(tilec.to_bits(np.ones((2, 0, 3), np.float32), "bf16").shape, (2, 0, 3))
        self.assertEqual(tilec.to_bits(np.ones((4, 6), np.float32)[:, ::2], "f8e5m2").shape, (4, 3))
        with self.assertRaises(TypeError):
            tilec.to_bits(np.array(["1"]), "bf16")
        with self.assertRaises(TypeError):
            tilec.from_bits(np.zeros(3, np.uint8), "bf16")

    def test_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes")
        dev = tilec.Device("sim")
        x = np.random.default_rng(2).standard_normal(1000).astype(np.float32) * 100
        for t, kind in (("bf16", ml_dtypes.bfloat16), ("f8e4m3", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2)):
            np.testing.assert_array_equal(tilec.to_bits(x, t), x.astype(kind).view(tilec.DTYPES[t]))
            a = dev.array(x.astype(kind))
            self.assertEqual(a.dtype, t)
            np.testing.assert_array_equal(tilec.from_bits(a.numpy(), t), x.astype(kind).astype(np.float32))
            k = dev.program(text=f"kernel f(x: *{t}, y: *f32) warps(1) {{ let i = arange(0, 32); store(y + i, f32(load(x + i))); }}").kernel()
            y = np.zeros(32, np.float32)
            k(1, x[:32].astype(kind), y)
            np.testing.assert_array_equal(y, x[:32].astype(kind).astype(np.float32))


if __name__ == "__main__":
    unittest.main()
