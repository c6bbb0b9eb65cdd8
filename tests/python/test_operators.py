"""Operators of torch that launch kernels (tilec.operator), traced, compiled, exported, differentiated: on CPU tensors and the simulator, or with
TILEC_DEVICE=cuda on a GPU."""
import os
import sys
import unittest

import numpy as np

try:
    import torch
except Exception:                                         # a torch that does not fit this Python fails in many ways
    torch = None
from common import root, tilec

if torch is None or not hasattr(torch.library, "infer_schema"):
    print("skipped: no torch with torch.library.custom_op")
    sys.exit(77)

if os.environ.get("TILEC_DEVICE") == "cuda":
    torch.set_default_device("cuda")
rows = tilec.load(os.path.join(root, "examples", "softmax.tile"))


@tilec.operator("tilec_test::softmax")
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Rows of x."""
    y = torch.empty_like(x)
    rows.softmax[x.shape[0]](x, y, x.shape[0], x.shape[1], x.stride(0), BLOCK=128)
    return y


@tilec.operator("tilec_test::softmax_backward")
def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dx = torch.empty_like(y)
    rows.softmax_backward.bind(y.shape[0], dy, y, dx, y.shape[0], y.shape[1], y.stride(0), BLOCK=128)()
    return dx


@softmax.gradient
def softmax_gradient(saved, dy):
    return softmax_backward(dy.contiguous(), saved.output) if saved.needed[0] else None


@tilec.operator("tilec_test::add_", mutates=("y",))
def add_(y: torch.Tensor, x: torch.Tensor, n: int) -> None:
    tilec.load(text="kernel add(y: *f32, x: *f32, n: i32) warps(1) {\n"
                    "  let i = arange(0, 64);\n  store(y + i, load(y + i, mask=i < n) + load(x + i, mask=i < n), mask=i < n);\n}\n").add[1](y, x, n)


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(6, 100)

    def test_values(self):
        self.assertTrue(torch.allclose(softmax(self.x), torch.softmax(self.x, 1), atol=1e-6))
        self.assertIn("Rows of x.", softmax.__doc__)
        self.assertIn("tilec_test::softmax", repr(softmax))

    def test_checks(self):
        """torch's own examination: the schema, what autograd is told, fakes against what really comes out."""
        torch.library.opcheck(softmax.op, (self.x.requires_grad_(),), test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
        torch.library.opcheck(add_.op, (torch.zeros(40), torch.ones(40), 40), test_utils=("test_schema", "test_faketensor"))

    def test_mutates(self):
        y = torch.zeros(40)
        add_(y, torch.ones(40), 30)
        self.assertEqual(y.tolist(), [1.0] * 30 + [0.0] * 10)

    def test_gradient(self):
        a, b = self.x.clone().requires_grad_(), self.x.clone().requires_grad_()
        weight = torch.randn(6, 100)
        (softmax(a) * weight).sum().backward()
        (torch.softmax(b, 1) * weight).sum().backward()
        self.assertTrue(torch.allclose(a.grad, b.grad, atol=1e-6))

    def test_export(self):
        """Exported with a size that is no number yet, the operator is one node; the program runs at another size."""
        class Model(torch.nn.Module):
            def forward(self, x):
                return softmax(x * 2) + 1
        program = torch.export.export(Model(), (self.x,), dynamic_shapes={"x": {0: torch.export.Dim("rows", min=2, max=64)}})
        self.assertIn("tilec_test.softmax", str(program.graph))
        more = torch.randn(11, 100)
        self.assertTrue(torch.allclose(program.module()(more), torch.softmax(more * 2, 1) + 1, atol=1e-6))

    def test_compile(self):
        """One graph without a break, forwards and back."""
        @torch.compile(backend="aot_eager", fullgraph=True)
        def f(x):
            return (softmax(x) * x).sum()
        a, b = self.x.clone().requires_grad_(), self.x.clone().requires_grad_()
        got, want = f(a), (torch.softmax(b, 1) * b).sum()
        got.backward()
        want.backward()
        self.assertTrue(torch.allclose(got, want, atol=1e-5) and torch.allclose(a.grad, b.grad, atol=1e-6))

    def test_wrong(self):
        """What is wrong with an argument is said when it runs, and not swallowed."""
        with self.assertRaisesRegex(TypeError, "argument x"):
            softmax(self.x.double())
        with self.assertRaisesRegex(ValueError, "requires grad"):
            rows.softmax[6](self.x.clone().requires_grad_(), self.x, 6, 100, 100)


if __name__ == "__main__":
    unittest.main()
