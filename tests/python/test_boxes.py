"""Loads that are boxes of tensors, found: a launch makes the maps, and one whose arguments copies of boxes do not take has another form.
Every result is compared with numpy's."""
import os
import unittest

import numpy as np

from common import root, tilec

COPIES = "cp.async.bulk.tensor"


class Boxes(unittest.TestCase):
    def setUp(self):
        self.dev = tilec.Device("sim")

    def kernel(self, tensors):
        return self.dev.program(os.path.join(root, "examples", "matmul.tile"), tensors=tensors).kernel("matmul", BM=64, BN=64, warps=4)

    def multiply(self, k, M, N, K, lda=None, offset=0):
        """Rows of a are lda elements apart and begin `offset` elements into its array. How many maps the kernel takes."""
        lda = K if lda is None else lda
        rng = np.random.default_rng(1)
        host = rng.integers(-3, 4, M * lda + offset + 8).astype(np.float16)
        a = np.lib.stride_tricks.as_strided(host[offset:], (M, K), (2 * lda, 2)).astype(np.float32)
        b = rng.integers(-3, 4, (K, N)).astype(np.float16)
        c = self.dev.array(np.full((M, N), 7, np.float16))
        A = self.dev.array(host)
        at = tilec.Pointer(A.data_ptr() + 2 * offset, keep=A) if offset else A
        call = k.bind((-(-M // 64) * -(-N // 64), 1, 1), at, self.dev.array(b) if K else self.dev.empty(8, "f16"), c, M, N, K, lda, 1, N, 1, N, 1)
        call()
        np.testing.assert_array_equal(c.numpy(), (a @ b.astype(np.float32)).astype(np.float16))
        maps = call.ptx().splitlines()[0].count(":view:")
        self.assertEqual(maps > 0, COPIES in call.ptx())
        return maps

    def test_found(self):
        k = self.kernel("found")
        self.assertEqual(self.multiply(k, 100, 72, 80), 2)
        self.assertEqual(self.multiply(k, 64, 64, 64, lda=96), 2)
        self.assertEqual(self.multiply(k, 200, 136, 8), 2)

    def test_other_forms(self):
        """Where the address, a stride or an extent is none that a map takes."""
        k = self.kernel("found")
        self.assertEqual(self.multiply(k, 100, 72, 80, lda=81), 1)     # rows of a that are no multiples of 16 bytes
        self.assertEqual(self.multiply(k, 100, 72, 80, offset=3), 1)   # an address that is none
        self.assertEqual(self.multiply(k, 100, 70, 80), 1)             # rows of b
        self.assertEqual(self.multiply(k, 100, 72, 0, lda=80), 0)      # no K: there is no map of that
        self.assertEqual(self.multiply(k, 100, 72, 80), 2)

    def test_not_found(self):
        self.assertEqual(self.multiply(self.kernel("stated"), 100, 72, 80), 0)
        self.assertEqual(self.multiply(self.kernel("none"), 100, 72, 80), 0)
        with self.assertRaisesRegex(ValueError, "tensors is one of found, stated, none, not 'all'"):
            self.kernel("all")

    def test_stated(self):
        """tensor_load and tensor_store of tensors that copies of boxes do not take: element by element."""
        text = """kernel twice(a: tensor<f16, 2>, b: tensor<f16, 2>) warps(4) {
          let at = (program_id(0) * 32, program_id(1) * 64);
          tensor_store(b, at, tensor_load(a, at, [32, 64]) * 2.0);
        }"""
        k = self.dev.program(text=text, name="twice.tile").kernel("twice")
        for rows, columns, by_boxes in ((50, 72, True), (50, 70, False), (0, 72, False)):
            a = self.dev.array((np.arange(rows * columns) % 999).reshape(rows, columns).astype(np.float16))
            b = self.dev.array(np.zeros((rows, columns), np.float16))
            call = k.bind((2, 2, 1), a, b)
            call()
            np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)
            self.assertEqual(COPIES in call.ptx(), by_boxes)

    def test_blocks(self):
        """load_block of tensors, whose strides nobody promises."""
        text = """kernel sums(a: tensor<f16, 2>, s: *f32, const B = 64) warps(4) {
          let j = arange(0, B);
          var x = zeros([32, B], f32);
          for k in range(0, extent(a, 1), B, stages=2) { x += load_block(tensor_blocks(a, [32, B]), (program_id(0) * 32, k)); }
          store(s + program_id(0) * B + j, sum(x, axis=0));
        }"""
        k = self.dev.program(text=text, name="sums.tile").kernel("sums")
        host = (np.arange(40 * 152) % 7).astype(np.float16)
        a = self.dev.array(host)
        for stride, offset, by_boxes in ((152, 0, True), (144, 8, True), (150, 0, False), (152, 4, False)):
            s = self.dev.array(np.zeros((2, 64), np.float32))
            call = k.bind((2, 1, 1), tilec.View(a, (38, 130), (stride, 1), offset), s)
            call()
            x = np.zeros((64, 192), np.float32)
            x[:38, :130] = np.lib.stride_tricks.as_strided(host[offset:], (38, 130), (2 * stride, 2))
            np.testing.assert_array_equal(s.numpy(), x.reshape(2, 32, 3, 64).sum(axis=(1, 2)))
            self.assertEqual(COPIES in call.ptx(), by_boxes)


if __name__ == "__main__":
    unittest.main()
