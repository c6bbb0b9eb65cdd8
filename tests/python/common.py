"""What the tests of tools/tilec share: the module, a simulator, and a stand-in for torch."""
import os
import sys
import types

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if not os.environ.get("TILEC_INSTALLED"):                 # the wheel, where that is what is tested
    sys.path.insert(0, os.path.join(root, "tools"))
import tilec

AXPY = """kernel axpy(a: f32, x: *f32, y: *f32, n: i32, const B = 128) warps(4) {
  let i = program_id(0) * B + arange(0, B);
  store(y + i, a * load(x + i, mask=i < n) + load(y + i, mask=i < n), mask=i < n);
}
"""
COPY = """kernel copy(x: *T, y: *T, n: i32, type T) warps(1) {
  let i = program_id(0) * 32 + arange(0, 32);
  store(y + i, load(x + i, mask=i < n), mask=i < n);
}
"""


def kernel(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


class FakeTensor:
    """As much of a torch tensor as tilec looks at, over a numpy array."""

    def __init__(self, a, dtype=None, ordinal=-1, requires_grad=False):
        self.a, self.dtype, self.ordinal, self.requires_grad = a, types.SimpleNamespace(), ordinal, requires_grad
        self.dtype = _Dtype(dtype or a.dtype.name)
        self.shape, self.device = a.shape, "cpu" if ordinal < 0 else f"cuda:{ordinal}"

    def data_ptr(self):
        return self.a.__array_interface__["data"][0]

    def stride(self):
        return tuple(s // self.a.itemsize for s in self.a.strides)

    def is_contiguous(self):
        return self.a.flags.c_contiguous

    def get_device(self):
        return self.ordinal

    def element_size(self):
        return self.a.itemsize


class _Dtype:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return "torch." + self.name

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


class FakeTorch(types.ModuleType):
    """torch's questions that tilec asks: whether autograd records, which stream is current."""

    def __init__(self):
        super().__init__("torch")
        self.grad, self.stream = True, 0
        self.cuda = types.SimpleNamespace(current_stream=lambda ordinal: types.SimpleNamespace(cuda_stream=self.stream))

    def is_grad_enabled(self):
        return self.grad
