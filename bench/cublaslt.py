"""Products by cublasLt as its heuristics list them: torch takes the first one alone, which is not always the fastest.

The library is the one that torch has loaded; what it is called with are opaque handles of its own making, numbers from its headers, and the one
structure by which heuristics come back."""
import ctypes
import re

import torch

WORKSPACE = 64 << 20
F32, F16, BF16, F8E4M3 = 0, 2, 14, 28                       # cudaDataType_t
TYPES = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16, torch.float8_e4m3fn: F8E4M3}
COMPUTE_F32 = 68                                            # cublasComputeType_t
TRANSPOSED_A, TRANSPOSED_B, FAST_ACCUMULATION = 3, 4, 25    # cublasLtMatmulDescAttributes_t: i32, i32, i8
MOST_WORKSPACE = 1                                          # cublasLtMatmulPreferenceAttributes_t: u64


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("status", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


class Unavailable(Exception):
    pass


def library():
    """The one that is loaded, as torch has it among its own."""
    with open("/proc/self/maps") as f:
        found = re.findall(r"\S*/libcublasLt\.so\S*", f.read())
    if not found:
        raise Unavailable("no libcublasLt is loaded")
    return ctypes.CDLL(found[0])


class Lt:
    """A handle of the library with space to work in; products are made on torch's current stream."""

    def __init__(self):
        self.lib = library()
        self.lib.cublasLtGetVersion.restype = ctypes.c_size_t
        self.version = self.lib.cublasLtGetVersion()
        self.space = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)     # the device is in use from here on
        self.handle = self.made("cublasLtCreate")

    def call(self, name, *args):
        if status := getattr(self.lib, name)(*args):
            raise Unavailable(f"{name}: status {status}")

    def made(self, name, *args):
        """What a function makes and stores behind its first argument."""
        thing = ctypes.c_void_p()
        self.call(name, ctypes.byref(thing), *args)
        return thing

    def set(self, name, thing, which, value):
        self.call(name, thing, which, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def layout(self, x):
        """Of a matrix whose rows or columns lie one behind the other; whether its rows do. The library counts by columns."""
        rows = x.stride(1) == 1
        major, minor = x.shape if rows else x.shape[::-1]
        step = ctypes.c_int64(x.stride(0 if rows else 1))
        return self.made("cublasLtMatrixLayoutCreate", TYPES[x.dtype], ctypes.c_uint64(minor), ctypes.c_uint64(major), step), rows

    def products(self, a, b, c, fast=False, most=6):
        """c = a b: a call for each heuristic, best first, as the library has it. c's rows lie one behind the other: what is made is c^T = b^T a^T.
        fast: 8-bit floats are summed as the tensor cores do it."""
        what = self.made("cublasLtMatmulDescCreate", COMPUTE_F32, F32)
        (first, by_rows), (second, rows_too), (out, _) = self.layout(b), self.layout(a), self.layout(c)
        self.set("cublasLtMatmulDescSetAttribute", what, TRANSPOSED_A, ctypes.c_int32(not by_rows))
        self.set("cublasLtMatmulDescSetAttribute", what, TRANSPOSED_B, ctypes.c_int32(not rows_too))
        if fast:
            self.set("cublasLtMatmulDescSetAttribute", what, FAST_ACCUMULATION, ctypes.c_int8(1))
        wish = self.made("cublasLtMatmulPreferenceCreate")
        self.set("cublasLtMatmulPreferenceSetAttribute", wish, MOST_WORKSPACE, ctypes.c_uint64(WORKSPACE))
        found, count = (Heuristic * most)(), ctypes.c_int()
        self.call("cublasLtMatmulAlgoGetHeuristic", self.handle, what, first, second, out, out, wish, most, found, ctypes.byref(count))
        one, zero, pointer = ctypes.c_float(1), ctypes.c_float(0), lambda x: ctypes.c_void_p(x.data_ptr())

        def bound(h):
            args = (self.handle, what, ctypes.byref(one), pointer(b), first, pointer(a), second, ctypes.byref(zero), pointer(c), out, pointer(c), out,
                    ctypes.byref(h.algorithm), pointer(self.space), ctypes.c_size_t(WORKSPACE))
            run = self.lib.cublasLtMatmul

            def launch():
                if status := run(*args, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)):
                    raise Unavailable(f"cublasLtMatmul: status {status}")
            launch.holds = a, b, c, one, zero, found            # as long as it may be called
            return launch
        return [bound(h) for h in found[:count.value] if not h.status]
