"""torch itself, where it can be imported: CPU tensors on the simulator; with a GPU, its tensors, streams and graphs."""
import os
import sys
import unittest

import numpy as np

try:
    import torch
except Exception:                                         # a torch that does not fit this Python fails in many ways
    torch = None
from common import AXPY, COPY, kernel, root, tilec


def check_tensors(test, dev, where):
    """Tensors with any rows, by maps: of every type that two bytes have, and refused where the hardware has no map."""
    p = dev.program(os.path.join(root, "examples", "transpose_tma.tile"))
    for t, name in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        k = p.kernel(T=name)
        whole = torch.randn(104, 88, device=where).to(t)
        x, out = whole[:, 8:80], torch.zeros(72, 112, dtype=t, device=where)
        k((2, 2), x, out[:, :104])
        k.bind((2, 2), x, out[:, :104], pdl=True)()
        test.assertTrue(torch.equal(out[:, :104], x.t()) and not out[:, 104:].any())
        for wrong, words in ((whole[:, ::2], "the last, is 2 elements"), (whole.t(), "the last, is 88 elements")):
            with test.assertRaisesRegex(tilec.Error, words):
                k((2, 2), wrong, out)
        with test.assertRaisesRegex(tilec.Error, "extent 1, the last, is 100 elements"):
            k((2, 2), x[:100], out[:, :100])
    with test.assertRaises(TypeError):
        k((2, 2), torch.zeros(64, 64, device=where), out)
    with test.assertRaises(ValueError):
        k((2, 2), torch.zeros(64, dtype=t, device=where), out)


@unittest.skipUnless(torch, "torch is not installed")
class OnSimulator(unittest.TestCase):
    def setUp(self):
        self.dev = tilec.Device("sim")

    def test_types(self):
        k = kernel(self.dev, COPY)
        for t in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
            x = (torch.rand(50) * 100).to(t)
            y = torch.zeros_like(x)
            k(2, x, y, 50)
            self.assertTrue(torch.equal(x, y), t)
        with self.assertRaises(TypeError):
            k(2, torch.zeros(50), torch.zeros(50, dtype=torch.float64), 50)

    def test_gradients(self):
        k, w, y = kernel(self.dev, AXPY), torch.ones(300, requires_grad=True), torch.zeros(300)
        with self.assertRaises(ValueError):
            k(3, 2, w, y, 300)
        with torch.no_grad():
            k(3, 2, w, y, 300)
        k(3, 2, w.detach(), y, 300)
        self.assertTrue((y == 4).all())

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = torch.zeros_like(x)
                k(3, 2, x, out, 300)
                return out

            @staticmethod
            def backward(ctx, g):
                out = torch.zeros_like(g)
                k(3, 2, g.contiguous(), out, 300)
                return out
        Double.apply(w).sum().backward()
        self.assertTrue((w.grad == 2).all())

    def test_strides(self):
        k, x = kernel(self.dev, AXPY), torch.ones(300, 2)
        with self.assertRaises(ValueError):
            k(3, 0.5, x[:, 0], torch.zeros(300), 300)
        with self.assertRaises(TypeError):
            k(3, torch.tensor(2.0), x[:, 0].contiguous(), torch.zeros(300), 300)


    def test_tensors(self):
        check_tensors(self, self.dev, "cpu")


@unittest.skipUnless(torch and torch.cuda.is_available(), "no GPU")
class OnGpu(unittest.TestCase):
    def test_tensors(self):
        dev = tilec.Device("cuda")
        check_tensors(self, dev, "cuda")
        x, out = torch.randn(64, 64, device="cuda").half(), torch.zeros(64, 64, device="cuda").half()
        k = dev.program(os.path.join(root, "examples", "transpose_tma.tile")).kernel()
        with self.assertRaisesRegex(tilec.Error, "is not a multiple of 16 bytes"):
            k(1, x.flatten()[1:57].view(7, 8), out)
        call, graph = k.bind(1, x, out), torch.cuda.CUDAGraph()
        call()
        with torch.cuda.graph(graph):
            call()                                         # the map is a parameter of the launch, and so of the graph
        x.copy_(torch.randn(64, 64, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, x.t()))

    def test_streams(self):
        dev = tilec.Device("cuda")
        k, x, y = kernel(dev, AXPY), torch.ones(300, device="cuda"), torch.zeros(300, device="cuda")
        call, s = k.bind(3, 1, x, y, 300), torch.cuda.Stream()
        with torch.cuda.stream(s):
            call()
            k(3, 1, x, y, 300)
        s.synchronize()
        self.assertEqual(y.sum().item(), 600)
        with self.assertRaises(ValueError):
            k(3, 1, x.cpu(), y, 300)
        with self.assertRaises(TypeError):
            k(3, 1, np.ones(300, np.float32), y, 300)

    def test_restored(self):
        """Tensors, too, are found by every launch of many as they are now."""
        k = tilec.Device("cuda").program(text='kernel f(x: *f32, t: *i32) warps(1) tune(warps=[1, 2]) { assert(atomic_add(t, 1) == 0, "came twice"); atomic_add(x, 1.0); }')
        x, t = torch.full((1,), 5.0, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
        best = k.tune("f", 1, x, t, restore=("x", "t"), force=True)
        self.assertEqual([r["why"] for r in best.trials], [None, None])
        call = best.bind(1, x, t)
        self.assertGreater(call.bench(1, 1, restore=("x", "t"))["runs"], 0)
        self.assertEqual([x.item(), t.item()], [5, 0])

    def test_graph(self):
        dev = tilec.Device("cuda")
        x, y = torch.ones(300, device="cuda"), torch.zeros(300, device="cuda")
        call = kernel(dev, AXPY).bind(3, 1, x, y, 300)
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(y.sum().item(), 1200)


if __name__ == "__main__":
    if not torch:
        print("torch is not installed")
        sys.exit(77)
    unittest.main()
