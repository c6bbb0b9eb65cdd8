"""tilec from Python: libtilec (driver/jit.h, runtime/tilert.h) by ctypes, with the arguments of launches checked.

    softmax = tilec.load("softmax.tile").softmax  # the device is that of the arrays: torch's, numpy's, DLPack's
    softmax[rows](x, y, rows, n, stride, BLOCK=1024)

    dev = tilec.Device("sim")                      # or "cuda", or None for the best there is
    k = dev.program("examples/vector_add.tile").kernel("add", BLOCK=1024)
    x = dev.array(numpy_array); y = dev.empty((n,), "f32")
    k(x, x, y, n)                                  # as many programs as the kernel's grid clause says
    k[tilec.cdiv(n, 1024)](x, x, y, n)             # or k(grid, x, x, y, n), or k(grid, x=x, y=x, out=y, n=n)
    y.numpy()
    call = k.bind(x, x, y, n); call()              # or k.bind(grid, ...): checked once; call() costs what the driver's launch costs

What a parameter takes, and what is refused with TypeError or ValueError, naming the kernel, the argument, what it takes and what is given:

pointers   an Array; a torch tensor on the device (its CPU tensors on sim); on sim also a numpy array; None for a null pointer; a
           Pointer for any other address. The elements must be of the parameter's type: bf16 and 8-bit floats are torch's or ml_dtypes'
           types, or their bits as numpy's uint16 or uint8 (to_bits, from_bits); torch's signed integers pass for unsigned ones. `*T` with
           T not set takes T from the array. An array must be contiguous, unless all its strides are among the launch's integers or the
           kernel's constants, since a kernel that is told no strides cannot step over holes. A tensor that requires grad is refused
           where autograd records, because it cannot see a launch.
tensors    (`tensor<f16, 2>`) an array as a pointer takes it, with its extents and strides: of the parameter's type and rank, and with any
           strides that the kernel can go by; a View, for a part of an Array or for an address. What the kernel needs of address, extents
           and strides (multiples of 16 bytes, where it copies boxes) the library checks: Error, naming the argument
scalars    numbers of Python or numpy that the type can hold: whole ones for integers, any for floats; bools for i1 and integers.
tuples     a tuple for the parameters shape.0, shape.1, ...; for x.rows, x.cols, ... of a struct a tuple or a dict

Streams, events and graphs are those of the library (docs/runtime.md):

    s, t = dev.stream(), dev.stream(priority=-1)
    k(grid, x, y, stream=s); t.wait(s.record()); k(grid, y, z, stream=t)
    with s.capture() as g:                                   # what goes to s (and to what waits for it) becomes nodes of a graph
        k(grid, x, y, stream=s)
    g(s)                                                     # launches it; g.update(node, k.bind(...)) puts another launch in a node's place
    g = dev.graph(); n = g.launch(k.bind(grid, x, y)); g.launch(k.bind(grid, y, z), after=n); g(s)

dev.pinned(shape, dtype) is memory of the host that kernels reach, as a numpy array (.host).

Host memory (numpy arrays, CPU tensors) is lent to the simulator for each launch: copied in before it and back after it; what overlaps in the
host's memory does there. What is read-only stays as it is: if the kernel has written to it, that is a ValueError. On cuda it is refused, as copies at each launch would go unseen: use dev.array.
Launches with torch tensors go to torch's current stream, others to the device's default stream; `stream=` names another: a Stream, a
torch stream or the address of a CUstream. Arguments live at least as long as the call that is bound to them. `pdl=True` is programmatic
dependent launch: the kernel may begin before the one in front of it in the stream has ended, and has to wait for it itself
(wait_for_previous; griddepcontrol.wait) before it touches what that one writes. `pdl="auto"`: only kernels of which the compiler knows that
they wait, and only where the device can do it.

PTX of other compilers (a path or name that ends in .ptx, without //@tilec lines) says of a parameter little more than its size:

    k = dev.program("scan.ptx").kernel("scan_steps")
    k(grid, x, y, 64, block=(64, 1, 1), shared=512)          # or k[grid](..., block=, shared=), or k.bind(grid, ..., block=, shared=)

block is the shape of the blocks, a number or up to three, to be left out only where the PTX asks for one (.reqntid); shared is the
dynamic shared memory of a block in bytes (0). Parameters have the names that the PTX gives them, or p0, p1, ... where the compiler has
dropped them. Their types (Kernel.args) are the PTX's own words:

.u64 .s64 .b64     what a pointer takes, with elements of any type, or a whole number of 64 bits
*                  marked .ptr: what a pointer takes, with elements of any type
.u32 .s16 .b8 ...  a whole number of so many bits, with or without a sign
.f16 .f32 .f64     a number
.b32 .b64          also a number of Python's or numpy's floats, of that size; write 2.0, not 2, for it
.b16               also a number of numpy's float16
.b8[12]            a structure, as what holds 12 bytes: bytes, an array or record of numpy, a structure of ctypes. Tensor maps, too.
                   Bytes of the right size may stand for any parameter but those marked .ptr

Status codes become tilec.Error. A small extension module beside the library (tools/_tilec.c) takes ctypes out of launches; without it
they cost a microsecond more. tilec.launches_by says which it is: "extension", or "ctypes" and why. Nothing here is needed to use tilec
from C.
"""
from __future__ import annotations

import contextlib
import ctypes as C
import glob
import importlib.util
import itertools
import math
import os
import re
import struct
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import dlpack
from .dlpack import Borrowed
from .operators import is_fake, operator, traced

_here = os.path.dirname(os.path.abspath(__file__))
_root = os.path.join(_here, "..", "..")
# The version whose structures are below, as runtime/version.h has it.
_VERSION = 0, 1, 0
# What $TILEC_LIB names, and nothing else; without it the wheel's, that of a tree beside which this lies, the system's.
_names = [os.environ["TILEC_LIB"]] if os.environ.get("TILEC_LIB") else \
         [*sorted(glob.glob(os.path.join(_here, "libtilec.so.*"))), os.path.join(_root, "lib", "libtilec.so"), os.path.join(_root, "build", "lib", "libtilec.so"),
          f"libtilec.so.{_VERSION[0]}.{_VERSION[1]}"]
_p, _pp = C.c_void_p, C.POINTER(C.c_void_p)

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i1": np.bool_,
          "bf16": np.uint16, "f8e4m3": np.uint8, "f8e5m2": np.uint8}  # the last three: raw bits


class _Err(C.Structure):
    _fields_ = [("status", C.c_int32), ("message", C.c_char * 512), ("file", C.c_char * 256), ("line", C.c_uint32),
                ("column", C.c_uint32), ("block", C.c_uint32 * 3), ("thread", C.c_uint32 * 3)]


class _Val(C.Union):
    _fields_ = [("buffer", _p), ("pointer", C.c_uint64), ("i", C.c_int64), ("f", C.c_double), ("bytes", _p)]


class _Arg(C.Structure):
    _fields_ = [("kind", C.c_uint32), ("reserved", C.c_uint32), ("u", _Val)]


class _TensorArg(C.Structure):
    """TilertTensorArg, with the arrays that it points to."""
    _fields_ = [("buffer", _p), ("address", C.c_uint64), ("rank", C.c_uint32), ("reserved", C.c_uint32), ("extents", _p), ("strides", _p),
                ("shape", C.c_int64 * 5), ("steps", C.c_int64 * 5)]

    def __init__(self, buffer, address, shape, strides):
        super().__init__(buffer=buffer, address=address, rank=len(shape), shape=tuple(shape), steps=tuple(strides))
        self.at = C.addressof(self)
        self.extents, self.strides = self.at + _TensorArg.shape.offset, self.at + _TensorArg.steps.offset


class _Define(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", C.c_char_p)]


class _DeviceInfo(C.Structure):
    _fields_ = [("name", C.c_char * 128), ("spec", C.c_char * 16), ("target", C.c_char * 16), ("capability_major", C.c_uint32),
                ("capability_minor", C.c_uint32), ("multiprocessors", C.c_uint32), ("shared_max", C.c_uint32),
                ("shared_per_multiprocessor", C.c_uint32), ("registers_per_multiprocessor", C.c_uint32),
                ("threads_per_multiprocessor", C.c_uint32), ("clock_khz", C.c_uint32), ("memory_clock_khz", C.c_uint32),
                ("memory_bus_bits", C.c_uint32), ("memory", C.c_uint64), ("l2", C.c_uint64), ("grid_max", C.c_uint32 * 3),
                ("is_sim", C.c_uint32), ("driver", C.c_uint32), ("priority_least", C.c_int32), ("priority_greatest", C.c_int32),
                ("l2_persisting_max", C.c_uint64), ("l2_window_max", C.c_uint64), ("pools", C.c_uint32)]


class _Rows(C.Structure):
    _fields_ = [("buffer", _p), ("host", _p), ("offset", C.c_size_t), ("pitch", C.c_size_t)]


class _PoolOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("keep", C.c_uint64), ("limit", C.c_uint64)]


class _PoolInfo(C.Structure):
    _fields_ = [(n, C.c_uint64) for n in ("used", "used_most", "reserved", "reserved_most")]


class _NodeInfo(C.Structure):
    _fields_ = [("kind", C.c_uint32), ("kernel", _p), ("after", C.POINTER(C.c_uint32)), ("nafter", C.c_size_t)]


class _Window(C.Structure):
    _fields_ = [("buffer", _p), ("offset", C.c_size_t), ("bytes", C.c_size_t), ("ratio", C.c_float), ("hit", C.c_uint32), ("miss", C.c_uint32)]


class _Stats(C.Structure):
    _fields_ = [(n, C.c_uint64) for n in ("launches", "blocks", "warp_instructions", "global_bytes_read", "global_bytes_written",
                                          "global_sectors", "shared_accesses", "shared_bank_conflicts", "barriers", "atomics", "mma")]


class _Info(C.Structure):
    _fields_ = [("compile_ms", C.c_double), ("load_ms", C.c_double), ("registers", C.c_uint32), ("local_bytes", C.c_uint32),
                ("static_shared", C.c_uint32), ("dynamic_shared", C.c_uint32), ("threads", C.c_uint32), ("occupancy", C.c_uint32),
                ("equal_1", C.c_uint64), ("divisible_16", C.c_uint64), ("from_cache", C.c_uint32),
                ("divisible_8", C.c_uint64), ("divisible_4", C.c_uint64), ("divisible_2", C.c_uint64)]


class _Bench(C.Structure):
    _fields_ = [(n, C.c_double) for n in ("median_ms", "min_ms", "max_ms", "mean_ms", "p20_ms", "p80_ms")] + [("runs", C.c_uint32)]


class _JitOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("target", C.c_char_p), ("no_specialisation", C.c_int), ("no_line_info", C.c_int),
                ("import_path", _p), ("nimport_path", C.c_size_t), ("no_cache", C.c_int), ("cache_dir", C.c_char_p),
                ("cache_limit", C.c_uint64), ("tensors", C.c_int)]


class _Param_(C.Structure):
    _fields_ = [("name", C.c_char * 64), ("type", C.c_char * 64), ("value", C.c_char * 128), ("kind", C.c_int32)]


class _Trial(C.Structure):
    _fields_ = [("config", C.c_char_p), ("why", C.c_char_p), ("compile_ms", C.c_double), ("load_ms", C.c_double), ("ms", C.c_double),
                ("registers", C.c_uint32), ("local_bytes", C.c_uint32), ("shared", C.c_uint32)]


_Progress = C.CFUNCTYPE(None, _p, C.c_char_p, C.c_size_t, C.c_size_t)
_GridFn = C.CFUNCTYPE(C.c_int, _p, _p, C.POINTER(C.c_uint32))
_RunFn = C.CFUNCTYPE(C.c_int, _p, _p, _p)                  # TilertRun
_HostFn = C.CFUNCTYPE(None, _p)


class _TuneOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("force", C.c_int), ("threads", C.c_int), ("rep_ms", C.c_double), ("restore", C.c_uint64),
                ("progress", _Progress), ("progress_user", _p), ("before", _RunFn), ("before_user", _p), ("search", C.c_int)]


def _load():
    name = next((name for name in _names if os.path.exists(name)), _names[-1])
    try:
        found = C.CDLL(name)
        found.tilec_version.restype = C.c_char_p
        version = found.tilec_version().decode()
    except (OSError, AttributeError) as x:
        raise ImportError(f"no libtilec, which TILEC_LIB can name: tried {', '.join(_names)}; {x}") from None
    has = tuple(map(int, version.split(".")[:3]))
    if has[:2] != _VERSION[:2] or has < _VERSION:          # as names of libraries go
        raise ImportError(f"the package tilec is of version {'.'.join(map(str, _VERSION))}, and {name} of {version}")
    return found


lib = _load()
# What does not return a status (an int), and what takes handles alone: the rest is called with ctypes' own types.
for _result, _functions in ((_p, "tilert_device_info tilejit_call_packed tilejit_tuning_trial tilejit_kernel_param tilejit_tuning_kernel "
                                 "tilert_stream_native tilert_buffer_host tilert_kernel_manifest"),
                            (C.c_uint64, "tilert_buffer_address"), (C.c_char_p, "tilejit_call_ptx tilec_version tilejit_kernel_name"),
                            (C.c_size_t, "tilejit_tuning_count tilejit_tuning_chosen tilejit_kernel_param_count tilejit_kernel_forms "
                                        "tilert_graph_count"),
                            (None, "tilert_device_close tilert_buffer_destroy tilejit_program_destroy tilejit_call_destroy "
                                   "tilert_stream_destroy tilejit_tuning_free tilert_event_destroy tilert_graph_destroy "
                                   "tilert_graph_exec_destroy tilert_range_pop tilert_pool_destroy")):
    for _f in _functions.split():
        getattr(lib, _f).restype = _result
        if _f != "tilec_version":
            getattr(lib, _f).argtypes = [_p, C.c_size_t] if _f in ("tilejit_tuning_trial", "tilejit_kernel_param") else [_p]
lib.tilejit_tuning_remembered.argtypes = lib.tilert_stream_capturing.argtypes = lib.tilejit_tuning_choice.argtypes = [_p]
lib.tilejit_tuning_choice.restype = C.c_char_p
lib.tilert_range_push.restype, lib.tilert_range_push.argtypes = None, [_p, C.c_char_p]
lib.tilejit_call_launch.argtypes = [_p, _p, _p]


class Error(Exception):
    """A status and its message; .file, .line, .block, .thread for faults that the simulator found."""

    status: int
    message: str

    def __init__(self, e: Any) -> None:
        self.status, self.message = e.status, e.message.decode(errors="replace")
        self.file, self.line, self.block, self.thread = e.file.decode(errors="replace"), e.line, tuple(e.block), tuple(e.thread)
        super().__init__(self.message)


class CompileError(Error):
    """The source has errors. The message is what tilec prints: each with its line and the place marked in it."""

    @classmethod
    def of(cls, text: str, e: Any = None) -> CompileError:
        """Of what the compiler said; e: the library's own error."""
        e = e or _Err(status=7)
        at = re.match(r"(.*?):(\d+):\d+: error", text)
        x = cls(e)
        x.message, x.args = text.rstrip("\n"), (text.rstrip("\n"),)
        if at:
            x.file, x.line = at[1], int(at[2])
        return x


def _error(e, prog=None):
    """The exception of a status; of errors in a source all that the compiler said."""
    if e.status != 7:
        return Error(e)
    text, said = e.message.decode(errors="replace"), prog.diagnostics() if prog and prog._h else ""
    return CompileError.of(said if len(said) > len(text) and said.startswith(text[:200]) else text, e)


def _failing(prog):
    """What raises the error at an address, for launches of a program: the launchers' way out. prog: a weak reference."""
    def fail(address):
        raise _error(_Err.from_address(address), prog())
    return fail


def _check(status, e, prog=None):
    if status:
        raise _error(e, prog)


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up: how many blocks of b cover a."""
    return -(-a // b)


def _bytes(s, what="a name"):
    if s is not None and not isinstance(s, str):
        raise TypeError(f"{what} is a str, got {_kind_of(s)}")
    return None if s is None else s.encode()


def _expect(kind, v, what):
    """What has to be one of this package's objects."""
    if not isinstance(v, kind):
        raise TypeError(f"{what}: expected {'an' if kind.__name__[0] in 'AE' else 'a'} {kind.__name__}, got {_kind_of(v)}")
    return v


def _whole(v, what):
    """A number that counts something."""
    if _kind(v) != _INT:
        raise TypeError(f"{what}: expected a whole number, got {_kind_of(v)}")
    if not 0 <= v < 1 << 63:
        raise ValueError(f"{what}: expected a number from 0 to 2^63 - 1, got {v}")
    return int(v)


# ---- element types ----

# What numpy and torch call them, and ml_dtypes.
_NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "bool": "i1", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3",
          "float8_e5m2": "f8e5m2",
          **{f"{word}{n}": f"{word[0]}{n}" for word in ("int", "uint") for n in (8, 16, 32, 64)}}
# Exponent bits, mantissa bits, whether all ones in the exponent are numbers, too.
_FLOATS = {"f16": (5, 10, False), "bf16": (8, 7, False), "f32": (8, 23, False), "f64": (11, 52, False), "f8e4m3": (4, 3, True),
           "f8e5m2": (5, 2, False)}
_BITS = ("bf16", "f8e4m3", "f8e5m2")                       # numpy holds these as bits


def _largest(dtype):
    """The largest number, and the least that rounds to no number."""
    exp, man, finite = _FLOATS[dtype]
    place = 2.0 ** ((1 << (exp - 1)) - 1 + finite - man)     # the last place's worth
    most = place * ((2 << man) - 1 - finite)
    return most, math.nextafter(most + place / 2, math.inf) if finite else most + place / 2     # halfway is a tie: to even


def from_bits(bits: Any, dtype: str) -> np.ndarray:
    """The numbers that bits of bf16, f8e4m3 or f8e5m2 mean (uint16 or uint8, any shape): float32, exactly."""
    exp, man, finite = _FLOATS[dtype]
    bits = np.asarray(bits)
    if bits.dtype != DTYPES[dtype]:
        raise TypeError(f"bits of {dtype} are {np.dtype(DTYPES[dtype]).name}, not {bits.dtype.name}")
    if dtype == "bf16":
        return (np.atleast_1d(bits).astype(np.uint32) << 16).view(np.float32).reshape(bits.shape)
    b = np.arange(256)
    e, m, bias = b >> man & ((1 << exp) - 1), b & ((1 << man) - 1), (1 << (exp - 1)) - 1
    v = np.where(e == 0, np.ldexp(m, 1 - bias - man), np.ldexp(m + (1 << man), e - bias - man))
    if finite:
        v = np.where((b & 0x7F) == 0x7F, np.nan, v)
    else:
        v = np.where(e == (1 << exp) - 1, np.where(m == 0, np.inf, np.nan), v)
    return np.where(b & 0x80, -v, v).astype(np.float32)[bits]


def to_bits(x: Any, dtype: str, saturate: bool = False) -> np.ndarray:
    """Numbers rounded to bf16, f8e4m3 or f8e5m2, to nearest, ties to even: their bits (uint16 or uint8). What is too large becomes
    infinity, or nan in f8e4m3, which has none; with saturate, the largest finite number, infinities too."""
    exp, man, finite = _FLOATS[dtype]
    x = np.asarray(x)
    if x.dtype.kind not in "fiu":
        raise TypeError(f"to_bits takes numbers, not {x.dtype.name}")
    if dtype == "bf16" and x.dtype in (np.float32, np.float16):
        u = np.ascontiguousarray(x, np.float32).view(np.uint32).reshape(x.shape)
        bits = ((u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
        nan = np.isnan(x)
        bits = np.where(nan, (u >> np.uint32(16) & np.uint32(0x8000) | np.uint32(0x7FC0)).astype(np.uint16), bits) if nan.any() else bits
        return np.where((bits & 0x7FFF) == 0x7F80, (bits & 0x8000 | 0x7F7F).astype(np.uint16), bits) if saturate else bits
    wide, most, bias = x.astype(np.float64), _largest(dtype)[0], (1 << (exp - 1)) - 1
    a = np.abs(np.nan_to_num(wide, nan=0.0, posinf=4 * most, neginf=-4 * most)).clip(max=4 * most)
    e = np.maximum(np.frexp(a)[1] - 1, 1 - bias)            # the exponent of the last place's binade
    units = np.rint(np.ldexp(a, man - e)).astype(np.int64)
    bits = np.where(a == 0, 0, units + ((e + bias - 1).astype(np.int64) << man))
    ones, top = ((1 << exp) - 1) << man, ((1 << exp) - 1 << man) - 1 if not finite else (1 << (exp + man)) - 2
    nan = ones | (1 << man) - 1 if finite else ones | 1 << (man - 1)
    bits = np.where(bits > top, top if saturate else top + 1, bits)
    bits = np.where(np.isnan(wide), nan, bits) | np.signbit(wide).astype(np.int64) << (exp + man)
    return bits.astype(DTYPES[dtype])


def _stored(a, dtype, what):
    """a as elements of dtype in numpy's memory, or TypeError: a typed array must have the type; numbers of Python need only fit."""
    a = np.asarray(a) if isinstance(a, np.generic) else a
    typed, given = hasattr(a, "dtype"), _dtype_of(a)
    a = np.asarray(a.numpy() if isinstance(a, Array) else a)
    if typed:
        if given != dtype and not (dtype in _BITS and a.dtype == DTYPES[dtype]):
            hint = f"; round it with to_bits(x, \"{dtype}\")" if dtype in _BITS and a.dtype.kind == "f" else "; convert it with astype"
            raise TypeError(f"{what} is of {dtype}, got one of {given or a.dtype.name}{hint}")
        return np.ascontiguousarray(a).view(DTYPES[dtype]).reshape(a.shape)
    if dtype in _BITS:
        return to_bits(a, dtype)
    out = a.astype(DTYPES[dtype])
    if a.dtype.kind not in "biuf" or (np.dtype(DTYPES[dtype]).kind in "biu" and not (out == a).all()):
        raise TypeError(f"{what} is of {dtype}, which cannot hold what is given")
    return out


def _numpy_dtype(a):
    """A key of DTYPES, or None."""
    return _NAMES.get(a.dtype.name) if a.dtype.isnative else None


# ---- devices and memory ----

class Device:
    """A GPU ("cuda", "cuda:1") or the simulator ("sim"); None: the GPU if there is one. context: that of a CUcontext of the caller's, which stays
    theirs, by its address."""

    def __init__(self, spec: Optional[str] = None, *, context: Optional[int] = None) -> None:
        self._h, e = _p(), _Err()
        if context is None:
            status = lib.tilert_device_open(_bytes(spec, "a device's name"), None, C.byref(self._h), C.byref(e))
        else:
            status = lib.tilert_device_wrap(_p(_whole(context, "the address of a context")), C.byref(self._h), C.byref(e))
        _check(status, e)
        self.info = C.cast(lib.tilert_device_info(self._h), C.POINTER(_DeviceInfo)).contents
        self.is_sim, self.name, self.sms = bool(self.info.is_sim), self.info.name.decode(), self.info.multiprocessors
        self.spec = self.info.spec.decode()                # "sim", "cuda:0"
        self.ordinal = -1 if self.is_sim else int(self.spec.partition(":")[2] or 0)   # as torch counts; -1: the host's memory
        self._reached = {}                                 # devices whose memory kernels reach (reach), by their handles
        self._streams = {}                                 # native stream: TilertStream

    def __del__(self):
        while getattr(self, "_streams", None):
            lib.tilert_stream_destroy(self._streams.popitem()[1])
        if getattr(self, "_h", None):
            lib.tilert_device_close(self._h)

    def __repr__(self) -> str:
        return f"<tilec.Device {self.spec}: {self.name}, {self.info.target.decode() or 'no target'}, {self.sms} multiprocessors>"

    def synchronize(self) -> None:
        """Wait for all that was put into the device's streams."""
        e = _Err()
        _check(lib.tilert_device_synchronize(self._h, C.byref(e)), e)

    def stats(self, reset: bool = False) -> Dict[str, int]:
        """What the simulator counted since the last reset, as a dict."""
        s, e = _Stats(), _Err()
        _check(lib.tilert_device_stats(self._h, C.byref(s), C.byref(e)), e)
        if reset:
            lib.tilert_device_stats_reset(self._h, None)
        return {n: getattr(s, n) for n, _ in _Stats._fields_}

    def _launches(self, function, *args, error=None):
        """Call what launches on the simulator so that Ctrl-C, or whatever else a handler of a signal raises, stops the launch: handlers run
        in the main thread between its instructions, so the launch is given to another one. What the launch then says is the cause of what is
        raised; error: the _Err where a function puts that whose result is a status."""
        if not self.is_sim or threading.current_thread() is not threading.main_thread():
            return function(*args)
        result, failure, done = [], [], threading.Event()

        def work():
            try:
                result.append(function(*args))
            except BaseException as x:   # raised again below
                failure.append(x)
            done.set()
        threading.Thread(target=work, daemon=True).start()
        try:
            done.wait()
        except BaseException as stopping:
            while not done.is_set():
                try:
                    while not done.is_set():   # again and again: the kernel may still be compiling
                        lib.tilert_device_cancel(self._h)
                        done.wait(0.05)
                except BaseException:   # one more signal: the first is being obeyed
                    pass
            if failure:
                stopping.__cause__ = failure[0]
            elif error and result[0]:
                stopping.__cause__ = _error(error)
            raise
        if failure:
            raise failure[0]
        return result[0]

    def empty(self, shape: Union[int, Sequence[int]], dtype: str, stream: Optional[Stream] = None, pool: Optional[Pool] = None) -> Array:
        """Memory of the device, with anything in it. With a stream of this device it is in that one's order: there for what comes into the
        stream from here on, and given back, without a wait, when the stream comes to where the Array is gone; from a pool, or the device's."""
        return Array(self, shape, dtype) if stream is None else _OrderedArray(self, shape, dtype, stream, pool)

    def pool(self, keep: int = 0, limit: int = 0) -> Pool:
        """Memory for empty(..., stream, pool): so many unused bytes stay in it, and it may have so many (0: what the device has)."""
        return Pool(self, keep, limit)

    def can_reach(self, other: Device) -> bool:
        """Whether kernels of this device can reach memory of the other one."""
        can, e = C.c_int(), _Err()
        _expect(Device, other, "can_reach")
        _check(lib.tilert_peer_possible(self._h, other._h, C.byref(can), C.byref(e)), e)
        return bool(can.value)

    def reach(self, other: Device) -> None:
        """From now on launches here take Arrays, and torch's tensors, of the other device. Copies between devices need no such call."""
        e = _Err()
        _expect(Device, other, "reach")
        _check(lib.tilert_peer_enable(self._h, other._h, C.byref(e)), e)
        self._reached[other._h.value] = other

    def array(self, a: Any, dtype: Optional[str] = None) -> Array:
        """A copy on the device: of a numpy array, whose elements must be of dtype if that is given (bits for bf16 and 8-bit floats),
        or of numbers of Python, which are converted."""
        if dtype is None:
            a = a if isinstance(a, Array) else np.asarray(a)
            dtype = _dtype_of(a)
            if not dtype:
                raise TypeError(f"no element type for an array of {a.dtype}: {', '.join(DTYPES)}")
        a = _stored(a, dtype, "the array")
        out = Array(self, a.shape, dtype)
        out.write(a)
        return out

    def pinned(self, shape: Union[int, Sequence[int]], dtype: str) -> Array:
        """Memory of the host that kernels reach: an Array whose .host is a numpy array of the same memory."""
        return _HostArray(self, shape, dtype)

    def stream(self, priority: int = 0, of: Any = None) -> Stream:
        """A stream; lower priorities come first (info.priority_greatest to info.priority_least). of: the stream of another library, or
        the address of a CUstream, which stays theirs."""
        return Stream(self, priority, of)

    def event(self, timed: bool = True) -> Event:
        """An event. Untimed ones are for waiting only."""
        return Event(self, timed)

    def graph(self) -> Graph:
        """An empty graph, to be built by hand; Stream.capture makes one of what is put into a stream."""
        return Graph(self)

    @contextlib.contextmanager
    def range(self, name: str) -> Iterator[None]:
        """What is done in it, under a name that profilers show (NVTX)."""
        lib.tilert_range_push(self._h, _bytes(name, "a range's name"))
        try:
            yield
        finally:
            lib.tilert_range_pop(self._h)

    def keep_persisting(self, nbytes: int) -> None:
        """Keep so much of the L2 cache (at most info.l2_persisting_max) for what windows of streams say persists."""
        e = _Err()
        _check(lib.tilert_device_set_persisting(self._h, C.c_size_t(_whole(nbytes, "keep_persisting")), C.byref(e)), e)

    def reset_persisting(self) -> None:
        """What persists in the L2 cache becomes ordinary."""
        e = _Err()
        _check(lib.tilert_device_reset_persisting(self._h, C.byref(e)), e)

    def program(self, path: Union[None, str, "os.PathLike[str]"] = None, text: Optional[str] = None, name: str = "<string>", target: Optional[str] = None,
                specialise: bool = True, line_info: bool = True, cache_dir: Optional[str] = None, tensors: str = "found") -> Program:
        """The source in a file, or a text, on this device. tensors: which tiles are copied as boxes of tensors, where the target can: "found", those of tensor_load and tensor_store and, in
        loops with stages, of loads through pointers; "stated", the former alone; or "none"."""
        return Program(self, path, text, name, target, specialise, line_info, cache_dir, tensors)

    def _stream_of(self, stream, torch_too=False):
        """The TilertStream to launch in, as an integer; 0: the default one. torch_too: without a stream, the one torch is using."""
        if isinstance(stream, Stream) and stream.dev is self:
            return stream._h.value                         # and no other of the same native one: it may be captured
        self._own(stream)
        native = _torch_current()(self.ordinal) if stream is None and torch_too else _native_stream(stream)
        if not native:
            return 0
        if native not in self._streams:
            s, e = _p(), _Err()
            _check(lib.tilert_stream_wrap(self._h, _p(native), C.byref(s), C.byref(e)), e)
            self._streams[native] = s.value
        return self._streams[native]

    def _own(self, stream):
        """Of another device a stream may be the same one's context's, which the driver knows; the simulator's are nothing to others."""
        if isinstance(stream, Stream) and (self.is_sim or stream.dev.is_sim) and stream.dev._h.value != self._h.value:
            raise ValueError(f"expected a stream of the device ({self.spec}), got one of another device ({self._call(stream.dev)})")

    def _call(self, other):
        return f"{other.spec}, opened another time" if other.spec == self.spec else other.spec


class Stream:
    """A stream on a device, of its own or another library's; .native is its CUstream. On sim every launch is complete when it returns."""

    def __init__(self, dev: Device, priority: int = 0, of: Any = None) -> None:
        self.dev, self._h, self._calls, e = dev, _p(), [], _Err()
        if of is None:
            if _kind(priority) != _INT or abs(priority) >> 31:
                raise TypeError(f"priority: expected a whole number, got {_kind_of(priority)}")
            _check(lib.tilert_stream_create_priority(dev._h, C.c_int(priority), C.byref(self._h), C.byref(e)), e)
        else:
            dev._own(of)
            _check(lib.tilert_stream_wrap(dev._h, _p(_native_stream(of)), C.byref(self._h), C.byref(e)), e)
        self.native = lib.tilert_stream_native(self._h) or 0

    def __del__(self):
        if getattr(self, "_h", None):
            _outlive(self._calls, lib.tilert_stream_synchronize, self._h)
            lib.tilert_stream_destroy(self._h)

    def __repr__(self) -> str:
        return f"<tilec.Stream of {self.dev.spec} at {self.native:#x}>"

    def synchronize(self) -> None:
        """Wait for all that was put into the stream."""
        e = _Err()
        _check(lib.tilert_stream_synchronize(self._h, C.byref(e)), e)
        self._calls.clear()

    def query(self) -> bool:
        """Whether all that was put into it is complete."""
        e, done = _Err(), C.c_int()
        _check(lib.tilert_stream_query(self._h, C.byref(done), C.byref(e)), e)
        return bool(done.value)

    def record(self, event: Optional[Event] = None) -> Event:
        """The event, or a new one, recorded here."""
        event = Event(self.dev) if event is None else _expect(Event, event, "record")
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """What comes from here on begins when what the event was recorded behind is complete. The host does not wait."""
        e = _Err()
        _expect(Event, event, "wait")
        _check(lib.tilert_stream_wait(self._h, event._h, C.byref(e)), e)

    def call(self, function: Callable[[], Any]) -> None:
        """Call function() when the stream comes there, from a thread of the driver's. It launches nothing and waits for nothing."""
        e, f = _Err(), _HostFn(_called(function))
        _check(lib.tilert_stream_host(self._h, f, None, C.byref(e)), e)
        self._calls.append(f)

    def window(self, of: Optional[Array], ratio: float = 1.0, hit: str = "persisting", miss: str = "streaming") -> None:
        """How the L2 cache treats what launches access of an Array from here on; of None: as ever. ratio of the accesses are what hit
        says ("normal", "streaming", "persisting"), the others what miss says."""
        e = _Err()
        _check(lib.tilert_stream_set_window(self._h, _window(of, ratio, hit, miss), C.byref(e)), e)

    @property
    def capturing(self) -> bool:
        """Whether what is put into it becomes nodes of a graph."""
        return bool(lib.tilert_stream_capturing(self._h))

    def capture(self) -> _Capture:
        """`with stream.capture() as graph:` what is put into the stream is not done, but makes the graph."""
        return _Capture(self)


_for_ever: List[Any] = []


def _outlive(kept, wait, handle):
    """What work on the device still uses, functions and memory of Python's, is there until that has been waited for; or for ever, where nothing can
    be waited for (a lost device, a stream that is captured)."""
    if kept and wait(handle, None):
        _for_ever.append(kept)


def _called(function):
    if not callable(function):
        raise TypeError(f"call: expected a function, got {_kind_of(function)}")

    def f(_):
        function()
    return f


def _window(of, ratio, hit, miss):
    """A TilertWindow of an Array, or of none."""
    kinds = "normal", "streaming", "persisting"
    if bad := [k for k in (hit, miss) if k not in kinds]:
        raise ValueError(f"a window treats accesses as {', '.join(kinds)}, not as {bad[0]!r}")
    return None if of is None else C.byref(_Window(_expect(Array, of, "window")._handle, 0, of.nbytes, ratio, kinds.index(hit), kinds.index(miss)))


class Event:
    """A place in a stream. Untimed ones are for waiting only, and cost less."""

    def __init__(self, dev: Device, timed: bool = True) -> None:
        self.dev, self._h, e = dev, _p(), _Err()
        create = lib.tilert_event_create if timed else lib.tilert_event_create_untimed
        _check(create(dev._h, C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilert_event_destroy(self._h)

    def record(self, stream: Any = None) -> None:
        """Behind all that was put into the stream so far."""
        e = _Err()
        _check(lib.tilert_event_record(self._h, _p(self.dev._stream_of(stream) or None), C.byref(e)), e)

    def synchronize(self) -> None:
        """Wait until what it was recorded behind is complete."""
        e = _Err()
        _check(lib.tilert_event_synchronize(self._h, C.byref(e)), e)

    def query(self) -> bool:
        """Whether what it was recorded behind is complete."""
        e, done = _Err(), C.c_int()
        _check(lib.tilert_event_query(self._h, C.byref(done), C.byref(e)), e)
        return bool(done.value)

    def ms_to(self, other: Event) -> float:
        """Waits for both; milliseconds from this one to the other."""
        e, ms = _Err(), C.c_float()
        _expect(Event, other, "ms_to")
        _check(lib.tilert_event_elapsed(self._h, other._h, C.byref(ms), C.byref(e)), e)
        return ms.value


class Graph:
    """Work that is launched as one: graph() or graph(stream). Nodes have numbers from 0; `after` says which a new one comes after. What
    arrays it works on it does not keep: one that is gone is an Error that names it."""
    KINDS = "launch", "copy", "fill", "call", "join"

    def __init__(self, dev: Device, handle: Any = None) -> None:
        self.dev, self._h, self._x, self._keep, self._runs, e = dev, handle or _p(), _p(), [], False, _Err()
        if not handle:
            _check(lib.tilert_graph_create(dev._h, C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_runs", False):
            _outlive(self._keep, lib.tilert_device_synchronize, self.dev._h)
        if getattr(self, "_x", None):
            lib.tilert_graph_exec_destroy(self._x)
        if getattr(self, "_h", None):
            lib.tilert_graph_destroy(self._h)

    def __len__(self):
        return lib.tilert_graph_count(self._h)

    def node(self, number: int) -> Tuple[str, Optional[str], List[int]]:
        """(kind, name of the kernel or None, numbers of those that it comes after)"""
        i, e = _NodeInfo(), _Err()
        _check(lib.tilert_graph_node(self._h, C.c_uint32(number), C.byref(i), C.byref(e)), e)
        name = C.cast(lib.tilert_kernel_manifest(i.kernel), C.c_char_p).value.decode() if i.kernel else None
        return self.KINDS[i.kind], name, list(i.after[:i.nafter])

    def _add(self, function, *args, after=()):
        after = [after] if _kind(after) == _INT else list(after)
        if wrong := [n for n in after if _kind(n) != _INT or not 0 <= n < 1 << 32]:
            raise TypeError(f"after: expected numbers of nodes, got {_kind_of(wrong[0])}")
        places, node, e = (C.c_uint32 * max(len(after), 1))(*after), C.c_uint32(), _Err()
        _check(function(self._h, *args, places, C.c_size_t(len(after)), C.byref(node), C.byref(e)), e)
        if self._x:                                        # it is made again, with the new node
            lib.tilert_graph_exec_destroy(self._x)
            self._x = _p()
        return node.value

    def launch(self, call: Call, after: Union[int, Sequence[int]] = ()) -> int:
        """The launch of a bound call, whose arguments are on the device."""
        return self._add(lib.tilert_graph_add_launch, _bound(call), after=after)

    def copy(self, dst: Any, src: Any, after: Union[int, Sequence[int]] = ()) -> int:
        """All of one Array to another of the same size; either may be a numpy array, which is read or written when the graph runs."""
        sides = [self._side(a, name) for a, name in ((dst, "dst"), (src, "src"))]
        if sides[0][1] != sides[1][1]:
            raise ValueError(f"copy: dst has {sides[0][1]} bytes, src {sides[1][1]}")
        return self._add(lib.tilert_graph_add_copy, *(C.byref(r) for r, _ in sides), C.c_size_t(sides[0][1]), C.c_size_t(1), after=after)

    def _side(self, a, name):
        if isinstance(a, Array):
            return _Rows(buffer=a._handle, pitch=a.nbytes), a.nbytes
        if not isinstance(a, np.ndarray) or not a.flags.c_contiguous:
            raise TypeError(f"copy: {name} is an Array or a contiguous numpy array, got {_kind_of(a)}")
        self._keep.append(a)
        return _Rows(host=a.ctypes.data, pitch=a.nbytes), a.nbytes

    def fill_bytes(self, a: Array, byte: int, after: Union[int, Sequence[int]] = ()) -> int:
        """Every byte of an Array becomes this one."""
        _expect(Array, a, "fill_bytes")
        return self._add(lib.tilert_graph_add_fill, a._h, C.c_size_t(0), C.c_size_t(a.nbytes), C.c_uint32(byte), C.c_uint32(1), after=after)

    def call(self, function: Callable[[], Any], after: Union[int, Sequence[int]] = ()) -> int:
        """Call function() of Python, from a thread of the driver's. It launches nothing and waits for nothing."""
        f = _HostFn(_called(function))
        self._keep.append(f)
        return self._add(lib.tilert_graph_add_host, f, None, after=after)

    def join(self, after: Union[int, Sequence[int]] = ()) -> int:
        """Nothing, but it comes after others, and others after it."""
        return self._add(lib.tilert_graph_add_empty, after=after)

    def _ready(self):
        e = _Err()
        if not self._x:
            _check(lib.tilert_graph_instantiate(self._h, C.byref(self._x), C.byref(e)), e)
        return self._x

    def update(self, node: int, call: Call) -> None:
        """Another bound call in the place of a launch, from the next launch of the graph on. A graph that gets new nodes forgets that."""
        e = _Err()
        _check(lib.tilert_graph_set_launch(self._ready(), C.c_uint32(node), _bound(call), C.byref(e)), e)

    def __call__(self, stream=None):
        e = _Err()
        s = _p(self.dev._stream_of(stream) or None)
        self._ready()
        self._runs = True
        _check(self.dev._launches(lib.tilert_graph_launch, self._x, s, C.byref(e), error=e), e)


class _Capture:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self) -> Graph:
        e = _Err()
        _check(lib.tilert_stream_capture_begin(self.stream._h, C.byref(e)), e)
        self.first = len(self.stream._calls)
        self.graph = Graph.__new__(Graph)                  # it has no handle until the end
        self.graph._h = self.graph._x = None
        return self.graph

    def __exit__(self, kind, *_):
        h, e = _p(), _Err()
        status = lib.tilert_stream_capture_end(self.stream._h, C.byref(h), C.byref(e))
        if kind is None:
            _check(status, e)
        if status:
            return
        self.graph.__init__(self.stream.dev, h)
        self.graph._keep += self.stream._calls[self.first:]


def _bound(call):
    """The launch of a Call, for graphs."""
    if not isinstance(call, Call):
        raise TypeError(f"a graph takes bound calls (kernel.bind(...)), got {_kind_of(call)}")
    if call._loan:
        raise TypeError(f"kernel {call.kernel.name}: a graph takes arrays of the device; an argument is in the host's memory")
    return _p(lib.tilejit_call_packed(call._h))


def _native_stream(stream):
    """The address of the CUstream that a Stream, a torch stream or an integer stands for."""
    if stream is None or isinstance(stream, int):
        return stream or 0
    for name in ("native", "cuda_stream"):
        if isinstance(native := getattr(stream, name, None), int):
            return native
    raise TypeError(f"expected a stream (a Stream, a torch stream, the address of a CUstream), got {_kind_of(stream)}")


def _torch_current():
    """The function that gives the native stream that torch is using on a device, by its number."""
    torch = sys.modules["torch"]
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    return raw or (lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)


class Array:
    """Device memory with a shape and a dtype (a key of DTYPES)."""

    def __init__(self, dev: Device, shape: Union[int, Sequence[int]], dtype: str) -> None:
        if dtype not in DTYPES:
            raise TypeError(f"no element type {dtype!r}: {', '.join(DTYPES)}")
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if wrong := [n for n in shape if _kind(n) != _INT]:
            raise TypeError(f"a shape is one or more whole numbers, got {_kind_of(wrong[0])}")
        self.dev, self.shape, self.dtype = dev, tuple(map(int, shape)), sys.intern(dtype)
        if min(self.shape, default=0) < 0:
            raise ValueError(f"a shape with a negative extent: {self.shape}")
        self.nbytes = math.prod(self.shape) * np.dtype(DTYPES[dtype]).itemsize
        if self.nbytes >> 63:
            raise ValueError(f"an array of shape {self.shape} and {dtype} has {self.nbytes} bytes, more than there are addresses")
        self._h, e = _p(), _Err()
        _check(self._create(C.c_size_t(max(self.nbytes, 1)), C.byref(e)), e)
        self._handle, self._address, self._tensor = self._h.value, lib.tilert_buffer_address(self._h), None   # a _TensorArg, when it has been one

    def _create(self, size, e):
        return lib.tilert_buffer_create(self.dev._h, size, C.byref(self._h), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilert_buffer_destroy(self._h)

    def __repr__(self):
        return f"Array({self.dev.spec}, {self.shape}, {self.dtype})"

    def data_ptr(self) -> int:
        """The address on the device."""
        return self._address

    def write(self, a: Any) -> None:
        """Replace the contents by those of an array of the same shape and type (see Device.array)."""
        a = _stored(a, self.dtype, "this array")
        if a.shape != self.shape:
            raise ValueError(f"write: an array of shape {self.shape} cannot take one of shape {a.shape}")
        self._copy(lib.tilert_buffer_write, a.ctypes.data, 0, a.nbytes)

    def __dlpack__(self, *, stream: Optional[int] = None, **_: Any) -> Any:
        """The memory for another library, of a GPU's Array. What was put into the device's default stream before is done then."""
        capsule = dlpack.give(self)
        self.dev.synchronize()
        return capsule

    def __dlpack_device__(self) -> Tuple[int, int]:
        if self.dev.is_sim:
            raise BufferError("memory of the simulator is no memory of the host: numpy() copies it")
        return 2, self.dev.ordinal

    def fill_bytes(self, byte: int, stream: Any = None) -> None:
        """In the order of a stream; without one it is done when the call returns."""
        e, s = _Err(), _p(self.dev._stream_of(stream) or None)
        size, pattern = C.c_size_t(self.nbytes), C.c_uint32(byte)
        _check(lib.tilert_buffer_fill(self._h, C.c_size_t(0), size, pattern, C.c_uint32(1), s, C.byref(e)), e)

    def copy_from(self, other: Array, stream: Any = None) -> None:
        """The contents of another Array of the same size, also one of another GPU, in the order of a stream of either."""
        if not isinstance(other, Array) or other.nbytes != self.nbytes:
            raise ValueError(f"copy_from: an Array of {self.nbytes} bytes is needed, got {other!r:.80}")
        of = other.dev if isinstance(stream, Stream) and stream.dev is other.dev else self.dev
        e, s = _Err(), _p(of._stream_of(stream) or None)
        _check(lib.tilert_buffer_copy(self._h, C.c_size_t(0), other._h, C.c_size_t(0), C.c_size_t(self.nbytes), s, C.byref(e)), e)

    def numpy(self) -> np.ndarray:
        """A copy of the contents; bits for bf16 and 8-bit floats (from_bits makes numbers of them)."""
        a = np.empty(self.shape, DTYPES[self.dtype])
        self._copy(lib.tilert_buffer_read, a.ctypes.data, 0, a.nbytes)
        return a

    def part(self, first: int, last: int) -> Array:
        """Rows first to last - 1 (of dimension 0) as an Array of the same memory, which stays until both are gone."""
        if not self.shape or not 0 <= first <= last <= self.shape[0]:
            raise ValueError(f"part: rows {first} to {last} of an array of shape {self.shape}")
        return _Part(self, first, last)

    def free(self, stream: Optional[Stream] = None) -> None:
        """Give the memory back now; of one that is in a stream's order (Device.empty) when this stream comes there."""
        if stream is not None:
            e = _Err()
            _check(lib.tilert_buffer_destroy_in(self._h, _expect(Stream, stream, "free")._h, C.byref(e)), e)
        else:
            lib.tilert_buffer_destroy(self._h)
        self._h, self._handle, self._address, self._tensor = _p(), 0, 0, None

    def _copy(self, function, host, offset, size):
        """Write or read some bytes; host: an address."""
        e = _Err()
        _check(function(self._h, C.c_size_t(offset), _p(host), C.c_size_t(size), None, C.byref(e)), e)


class _HostArray(Array):
    """Memory of the host that the device reaches (Device.pinned)."""

    def _create(self, size, e):
        return lib.tilert_buffer_create_host(self.dev._h, size, C.c_uint32(0), C.byref(self._h), e)

    _seen: Any = None                                      # the memory that numpy's arrays of it keep, while there are any

    @property
    def host(self) -> np.ndarray:
        if not self._h:
            raise ValueError(f"host: {self!r} has been freed")
        memory = self._seen and self._seen()
        if memory is None:
            memory = (C.c_char * max(self.nbytes, 1)).from_address(lib.tilert_buffer_host(self._h))
            memory.keep = self                             # as long as a numpy array of it is there
            self._seen = weakref.ref(memory)
        return np.frombuffer(memory, DTYPES[self.dtype], self.nbytes // np.dtype(DTYPES[self.dtype]).itemsize).reshape(self.shape)


    def free(self, stream: Optional[Stream] = None) -> None:
        if self._seen and self._seen() is not None:
            raise BufferError(f"free: a numpy array of the memory of {self!r} (host) is still there")
        super().free(stream)


class _Part(Array):
    """Rows of another Array (Array.part)."""

    def __init__(self, of, first, last):
        self._of, row = of, of.nbytes // max(of.shape[0], 1)
        self._offset = first * row
        super().__init__(of.dev, (last - first, *of.shape[1:]), of.dtype)

    def _create(self, size, e):
        return lib.tilert_buffer_part(self._of._h, C.c_size_t(self._offset), C.c_size_t(self.nbytes), C.byref(self._h), e)


class _OrderedArray(Array):
    """Memory in the order of a stream (Device.empty)."""

    def __init__(self, dev, shape, dtype, stream, pool):
        if not isinstance(stream, Stream) or stream.dev is not dev:
            raise TypeError(f"empty: a stream of this device is needed, got {_kind_of(stream)}")
        self.stream, self.pool = stream, None if pool is None else _expect(Pool, pool, "empty")
        super().__init__(dev, shape, dtype)

    def _create(self, size, e):
        return lib.tilert_buffer_create_in(self.stream._h, self.pool._h if self.pool else None, size, C.byref(self._h), e)


class Pool:
    """Memory that Arrays in the order of a stream come from, and go back to (Device.pool)."""

    def __init__(self, dev: Device, keep: int = 0, limit: int = 0) -> None:
        self.dev, self._h, e = dev, _p(), _Err()
        o = _PoolOptions(C.sizeof(_PoolOptions), _whole(keep, "keep"), _whole(limit, "limit"))
        _check(lib.tilert_pool_create(dev._h, C.byref(o), C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilert_pool_destroy(self._h)

    def __repr__(self) -> str:
        return f"<tilec.Pool on {self.dev.spec}: {', '.join(f'{n} {v}' for n, v in self.info().items())}>"

    def info(self) -> Dict[str, int]:
        """Bytes: used, used_most, reserved, reserved_most."""
        i, e = _PoolInfo(), _Err()
        _check(lib.tilert_pool_info(self._h, C.byref(i), C.byref(e)), e)
        return {n: getattr(i, n) for n, _ in _PoolInfo._fields_}

    def trim(self, keep: int = 0) -> None:
        """Give back unused memory, but for so many bytes."""
        e = _Err()
        _check(lib.tilert_pool_trim(self._h, C.c_uint64(_whole(keep, "trim")), C.byref(e)), e)


class View:
    """A tensor for a tensor parameter: a part of an Array, or what lies at a Pointer, whose elements are then taken to be of the parameter's
    type. shape, strides and offset are in elements; without strides the last dimension is the fastest, with nothing in between."""

    def __init__(self, of: Union[Array, Pointer], shape: Sequence[int], strides: Optional[Sequence[int]] = None, offset: int = 0) -> None:
        if not isinstance(of, (Array, Pointer)):
            raise TypeError(f"a view is of an Array or a Pointer, not of {_kind_of(of)}")
        self.of, self.shape, self.offset = of, tuple(map(int, shape)), int(offset)
        self.dtype = of.dtype if isinstance(of, Array) else None
        self.strides = _dense(self.shape) if strides is None else tuple(map(int, strides))
        if len(self.strides) != len(self.shape):
            raise ValueError(f"a view with {len(self.shape)} extents and {len(self.strides)} strides")

    def __repr__(self):
        return f"View({self.of!r}, {self.shape}, {self.strides}, {self.offset})"


def _dense(shape):
    """The strides of a tensor whose elements lie one behind the other."""
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


class Pointer:
    """An address for a pointer parameter, with nothing checked but that it lies on the device. keep: what it points into."""

    def __init__(self, address: Any, keep: Any = None) -> None:
        self.address = int(address.data_ptr() if hasattr(address, "data_ptr") else address)
        self.keep = keep if keep is not None else address


# ---- arguments ----

_ARRAY, _TENSOR, _NUMPY, _POINTER, _NONE, _INT, _FLOAT, _BOOL, _TUPLE, _VIEW, _DLPACK, _OTHER = range(12)
_kinds = {}                                                # by type


def _learn(t):
    """Which kind of argument values of a type are."""
    if issubclass(t, Array):
        return _ARRAY
    if issubclass(t, Pointer):
        return _POINTER
    if issubclass(t, View):
        return _VIEW
    if issubclass(t, np.ndarray):
        return _NUMPY
    if t is type(None):
        return _NONE
    if issubclass(t, (bool, np.bool_)):
        return _BOOL
    if issubclass(t, (int, np.integer)):
        return _INT
    if issubclass(t, (float, np.floating)):
        return _FLOAT
    if issubclass(t, (tuple, list)):
        return _TUPLE
    if all(hasattr(t, n) for n in ("data_ptr", "stride", "is_contiguous", "get_device")):
        return _TENSOR
    return _DLPACK if hasattr(t, "__dlpack__") and hasattr(t, "__dlpack_device__") else _OTHER


def _kind(v):
    t = type(v)
    k = _kinds.get(t)
    if k is None:
        k = _kinds[t] = _learn(t)
    return k


_dtypes = {}                                               # torch's types


def _tensor_dtype(v):
    """A key of DTYPES, or None."""
    d = v.dtype
    if type(v) is Borrowed:
        return d
    name = _dtypes.get(d)
    if name is None:
        name = _dtypes[d] = _NAMES.get(str(d).rpartition(".")[2])
    return name


def _dtype_of(v):
    """The element type of an array of any kind; None of anything else."""
    k = _kind(v)
    if k == _DLPACK:
        return Borrowed(v).dtype
    return v.dtype if k in (_ARRAY, _VIEW) else _tensor_dtype(v) if k == _TENSOR else _numpy_dtype(v) if k == _NUMPY else None


def _kind_of(v):
    """A value in words."""
    k = _kind(v)
    if k == _ARRAY:
        return f"an array of {v.dtype}"
    if k == _VIEW:
        return f"a view of {v.dtype or 'a Pointer'}"
    if k in (_TENSOR, _NUMPY):
        what = "numpy array" if k == _NUMPY else "DLPack array" if type(v) is Borrowed else "torch tensor"
        return f"a {what} of {_dtype_of(v) or v.dtype}"
    if k == _DLPACK:
        return f"a {type(v).__name__} of {_dtype_of(v)}"
    return "None" if v is None else f"{type(v).__name__} {v!r:.60}"


class _Host:
    """Memory of the host that a launch uses: the bytes from `first` to `last`."""

    def __init__(self, address, shape, strides, itemsize, writable, keep):
        self.param = None                                  # the argument that it is
        reach = [(n - 1) * s * itemsize for n, s in zip(shape, strides)] if 0 not in shape else []
        self.address = address
        self.first = address + sum(min(r, 0) for r in reach)
        self.last = address + sum(max(r, 0) for r in reach) + itemsize if 0 not in shape else self.first
        self.writable, self.keep, self.tensor = writable, keep, None     # tensor: the _TensorArg that is to have the address


class _Param:
    """One argument of a kernel: what it takes, and how that is packed (TilertArg: kind, 0, value)."""

    def __init__(self, kernel, p):
        self.kernel, self.name, self.type = kernel, p.name.decode(), p.type.decode()
        self.pointer = self.type.startswith("*")
        self.dtype = self.type.lstrip("*")
        self.real = self.dtype in _FLOATS
        # i1, i32, u64: the range of a scalar
        bits = int(self.dtype[1:]) if self.dtype[:1] in ("i", "u") and self.dtype[1:].isdigit() else 0
        self.least, self.most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.dtype[:1] == "i" and bits > 1 else (0, (1 << bits) - 1)
        self.takes = {self.dtype}                          # element types of a pointer's arrays
        self.tensors = self.takes | ({"i" + self.dtype[1:]} if bits > 8 and self.dtype[0] == "u" else set())
        if not self.pointer and not self.real and not bits:
            self.least, self.most = None, None             # a type this module does not know: the library decides
        self.form = "IIQ" if self.pointer else "IId" if self.real else "IIq"
        self.pack = self._pack_pointer() if self.pointer else self._pack_int() if bits else lambda v, launch: self.scalar(v)

    def _pack_pointer(self):
        """What is common goes first and quickly; the rest, and what is wrong, through address."""
        dev, dtype, address = self.kernel.prog.dev, self.dtype, self.address
        return lambda v, launch: (0, 0, v._handle) if type(v) is Array and v.dtype == dtype and v.dev is dev else address(v, launch)

    def _pack_int(self):
        least, most, scalar = self.least, min(self.most, (1 << 63) - 1), self.scalar
        return lambda v, launch: (2, 0, v) if type(v) is int and least <= v <= most else scalar(v)

    def holds(self, k, v):
        """Whether an array's elements are of the type that the kernel takes."""
        if k == _ARRAY:
            return v.dtype in self.takes
        if k == _TENSOR:
            return _tensor_dtype(v) in self.tensors
        return _numpy_dtype(v) in self.takes or self.dtype in _BITS and v.dtype == DTYPES[self.dtype]

    def error(self, kind, expected, got):
        return kind(f"kernel {self.kernel.name}, argument {self.name} ({self.type}): expected {expected}, got {got}")

    def wrong(self, v):
        k = _kind(v)
        if self.pointer:
            hint = "; an address is given as Pointer(address)" if k == _INT else ""
            return self.error(TypeError, f"an array of {self.dtype}, a Pointer or None", _kind_of(v) + hint)
        hint = "; pass x.item()" if k in (_ARRAY, _TENSOR, _NUMPY) else ""
        return self.error(TypeError, "a number" if self.real else "True or False" if self.dtype == "i1" else "a whole number", _kind_of(v) + hint)

    def held(self, v, dtype):
        """A number as a float, or ValueError if the type has no number near it."""
        f = float(v)
        if dtype != "f64" and f - f == 0 and abs(f) >= _largest(dtype)[1]:
            raise self.error(ValueError, f"a number that {dtype} can hold (at most {_largest(dtype)[0]:.6g})", repr(v))
        return f

    def scalar(self, v):
        k = _kind(v)
        if self.real:
            if k != _INT and k != _FLOAT:
                raise self.wrong(v)
            return 3, 0, self.held(v, self.dtype)
        if k != _INT and k != _BOOL:
            if k == _FLOAT and self.least is None:
                return 3, 0, float(v)
            raise self.wrong(v)
        i = int(v)
        if self.least is not None and not self.least <= i <= self.most:
            raise self.error(ValueError, f"a number from {self.least} to {self.most}", i)
        return 2, 0, i - (1 << 64) if i > 0x7FFFFFFFFFFFFFFF else i

    def address(self, v, launch):
        """A pointer packed; host memory joins launch.host and gets its address later."""
        k = _kind(v)
        dev = self.kernel.prog.dev
        if k == _DLPACK:
            v, k = launch.borrow(v), _TENSOR
        if k in (_ARRAY, _TENSOR, _NUMPY) and not self.holds(k, v):
            raise self.wrong(v)
        if k == _TENSOR:
            if is_fake(v):
                raise _Traced
            if v.get_device() != dev.ordinal and v.get_device() not in [d.ordinal for d in dev._reached.values()]:
                raise self.error(ValueError, f"a tensor on {'the host' if dev.is_sim else dev.spec}", f"one on {v.device}")
            if not v.is_contiguous():
                self.strided(v, v.shape, v.stride(), launch)
            if v.requires_grad and sys.modules["torch"].is_grad_enabled():
                raise self.error(ValueError, "a tensor without requires_grad, since autograd cannot see a launch (detach it, or launch under "
                                 "torch.no_grad() or in an autograd.Function)", "one that requires grad")
            if dev.is_sim:
                launch.lend(self, _Host(v.data_ptr(), tuple(v.shape), v.stride(), v.element_size(), True, v))
                return 1, 0, 0
            launch.torch = launch.torch or type(v) is not Borrowed
            return 1, int(not v.data_ptr()), v.data_ptr()  # null: it has no elements, and that is what reserved says
        if k == _ARRAY:
            if v.dev is not dev and v.dev._h.value != dev._h.value and v.dev._h.value not in dev._reached:
                raise self.error(ValueError, f"an array of the kernel's device ({dev.spec})", f"one of another device ({dev._call(v.dev)})")
            return 0, 0, v._handle
        if k == _NONE:
            return 1, 0, 0
        if k == _POINTER:
            return 1, 0, v.address
        if k != _NUMPY:
            raise self.wrong(v)
        if not dev.is_sim:
            raise self.error(TypeError, "memory of the device", f"{_kind_of(v)}, which would be copied at each launch: use dev.array(x)")
        steps = tuple(s // v.itemsize for s in v.strides)
        if any(s % v.itemsize for s in v.strides):
            raise self.error(ValueError, "an array whose strides are whole elements", f"strides of {v.strides} bytes")
        if not v.flags.c_contiguous:
            self.strided(v, v.shape, steps, launch)
        launch.lend(self, _Host(v.__array_interface__["data"][0], v.shape, steps, v.itemsize, v.flags.writeable, v))
        return 1, 0, 0

    def strided(self, v, shape, strides, launch):
        """A kernel can go through memory with holes only if it is told the strides: they must be among its whole numbers."""
        known = launch.integers()
        if not all(s == 1 or s in known for n, s in zip(shape, strides) if n > 1):
            got = f"shape {tuple(shape)} with strides {tuple(strides)}"
            raise self.error(ValueError, "a contiguous array, or its strides among the launch's arguments", got)


class _TensorParam(_Param):
    """A tensor: an array of any kind with its extents and strides, packed as the address of a _TensorArg."""

    def __init__(self, kernel, p):
        super().__init__(kernel, p)
        self.dtype, rank = re.fullmatch(r"tensor<(\w+), (\d)>", self.type).groups()
        self.rank, self.pointer, self.real, self.form = int(rank), True, False, "IIQ"
        self.pack = self._pack_tensor()
        self.takes = {self.dtype}
        self.tensors = self.takes | ({"i" + self.dtype[1:]} if self.dtype in ("u16", "u32", "u64") else set())

    def _pack_tensor(self):
        """An Array is the same tensor in every launch."""
        dev, dtype, rank, packed = self.kernel.prog.dev, self.dtype, self.rank, self.packed

        def pack(v, launch):
            if type(v) is not Array or v.dtype != dtype or v.dev is not dev or len(v.shape) != rank:
                return packed(v, launch)
            if v._tensor is None:
                v._tensor = _TensorArg(v._handle, 0, v.shape, _dense(v.shape))
            return 5, 0, v._tensor.at
        return pack

    def wrong(self, v):
        hint = "; it needs extents: View(pointer, shape)" if _kind(v) == _POINTER else ""
        return self.error(TypeError, f"an array of {self.dtype} or a View", _kind_of(v) + hint)

    def strided(self, v, shape, strides, launch):
        """The kernel knows the strides."""

    def packed(self, v, launch):
        k = _kind(v)
        if k == _DLPACK:
            v, k = launch.borrow(v), _TENSOR
        if k not in (_ARRAY, _TENSOR, _NUMPY, _VIEW) or (k == _VIEW and v.dtype not in (None, self.dtype)):
            raise self.wrong(v)
        at, _, where = self.address(v.of if k == _VIEW else v, launch)
        shape = tuple(v.shape)
        if len(shape) != self.rank:
            raise self.error(ValueError, f"{self.rank} dimensions", f"shape {shape}")
        if k == _NUMPY:
            strides = tuple(s // v.itemsize for s in v.strides)
        else:
            strides = v.stride() if k == _TENSOR else v.strides if k == _VIEW else _dense(shape)
        offset = v.offset * np.dtype(DTYPES[self.dtype]).itemsize if k == _VIEW else 0
        t = _TensorArg(where, offset, shape, strides) if at == 0 else _TensorArg(None, where + offset, shape, strides)
        if launch.host and self.name in launch.host:
            launch.host[self.name].tensor = t
        launch.kept.append(t)
        return 5, 0, t.at


def _bytes_of(v):
    """The bytes of what has a form in memory (bytes, numpy's values, ctypes' structures); None of anything else."""
    if isinstance(v, (np.generic, np.ndarray)):
        return None if v.dtype.hasobject else v.tobytes()
    try:
        return memoryview(v).tobytes()
    except TypeError:
        return None


class _RawParam(_Param):
    """A parameter of another compiler's PTX: anything goes that fits its size. Its value is packed as 64 bits, whatever its kind."""

    def __init__(self, kernel, p):
        self.kernel, self.name, self.type = kernel, p.name.decode(), p.type.decode()
        word, _, count = self.type.strip(".]").partition("[")
        self.pointer, self.dtype, self.form, self.pack = self.type == "*", word, "IIQ", self.packed
        bits = [int(n) for n in re.findall(r"\d+", word)]         # f16x2
        self.size = int(count) if count else 8 if self.pointer else 128 if word == "tensormap" else math.prod(bits) // 8
        self.structure = bool(count) or self.size > 8
        self.real = not self.structure and word in _FLOATS
        self.address_too = not self.structure and not self.real and self.size == 8
        self.floats = word if self.real else {"b32": "f32", "b64": "f64"}.get(word)     # as what numbers with a point are passed

    def holds(self, k, v):
        return True

    def wrong(self, v):
        number = "a number" if self.floats else "a whole number or one of numpy.float16" if self.dtype == "b16" else "a whole number"
        addresses = "an array, a Pointer or None" if self.pointer else f"an array, a Pointer, None or {number}"
        expected = f"{self.size} bytes" if self.structure else addresses if self.address_too else number
        hint = "; an address is given as Pointer(address)" if self.pointer and _kind(v) == _INT else ""
        return self.error(TypeError, expected, _kind_of(v) + hint)

    def packed(self, v, launch):
        k = _kind(v)
        if self.address_too and k in (_ARRAY, _TENSOR, _NUMPY, _DLPACK, _POINTER, _NONE):
            return self.address(v, launch)
        if self.pointer:
            raise self.wrong(v)
        if not self.structure and k in (_INT, _BOOL, _FLOAT):
            return self.number(v, k)
        data = _bytes_of(v) if self.structure or k == _OTHER else None     # of arrays for scalars the caller means something else
        if data is None:
            raise self.wrong(v)
        if len(data) != self.size:
            raise self.error(ValueError, f"{self.size} bytes", f"{len(data)}")
        launch.kept.append(C.create_string_buffer(data, len(data)))
        return 4, 0, C.addressof(launch.kept[-1])

    def number(self, v, k):
        if self.dtype == "b16" and isinstance(v, np.float16):
            return 2, 0, int(v.view(np.uint16))
        if self.real and k == _BOOL or k == _FLOAT and not self.floats:
            raise self.wrong(v)
        if self.real or k == _FLOAT:
            return 3, 0, struct.unpack("<Q", struct.pack("<d", self.held(v, self.floats)))[0]
        i, bits = int(v), 8 * self.size
        if not -(1 << (bits - 1)) <= i < 1 << bits:
            raise self.error(ValueError, f"a number from {-(1 << (bits - 1))} to {(1 << bits) - 1}", i)
        return 2, 0, i & (1 << 64) - 1


class _Traced(TypeError):
    """A tensor without memory: torch is tracing."""


class _Launch:
    """The arguments of one launch, checked and packed: .values are those of TilertArgs."""

    __slots__ = ("kernel", "host", "torch", "args", "values", "kept")

    def __init__(self, kernel, args, named):
        self.kernel, self.host, self.torch, self.kept = kernel, None, False, []     # kept: what values point to
        self.args = args = args if kernel._plain and not named and len(args) == len(kernel.args) else kernel._flat(args, named)
        self.values = values = []
        for pack, v in zip(kernel._packers, args):
            values += pack(v, self)

    def borrow(self, v):
        """An array of another library, ready for what the default stream does."""
        b = Borrowed(v, 1)
        self.kept.append(b)
        return b

    def lend(self, param, host):
        self.host = self.host or {}
        host.param = param
        self.host[param.name] = host

    def integers(self):
        """All whole numbers that the kernel gets to know."""
        given = {int(v) for p, v in zip(self.kernel.args, self.args) if not p.pointer and not p.real and _kind(v) == _INT}
        return given | {v for v in self.kernel.settings().values() if isinstance(v, int)}

    def packed(self):
        return self.kernel._struct.pack(*self.values)


class _Loan:
    """Host memory of a launch and its copy on the simulator. What overlaps in the host's memory is one piece there."""

    def __init__(self, launch):
        pieces = []
        for h in sorted(launch.host.values(), key=lambda h: h.first):
            if pieces and h.first < pieces[-1][1]:
                pieces[-1][1] = max(pieces[-1][1], h.last)
            else:
                pieces.append([h.first, h.last, []])
            pieces[-1][2].append(h)
        self.pieces = [(Array(launch.kernel.prog.dev, last - first, "u8"), first, users) for first, last, users in pieces]
        at = {p.name: 3 * i + 2 for i, p in enumerate(launch.kernel.args)}
        moved = {id(h): a.data_ptr() + h.address - first for a, first, users in self.pieces for h in users}
        for name, h in launch.host.items():
            if h.tensor:
                h.tensor.address = moved[id(h)]
            else:
                launch.values[at[name]] = moved[id(h)]

    def bring(self):
        for a, first, _ in self.pieces:
            a._copy(lib.tilert_buffer_write, first, 0, a.nbytes)

    def back(self):
        wrong = None
        for a, first, users in self.pieces:
            for h in users:
                if h.writable:
                    a._copy(lib.tilert_buffer_read, h.first, h.first - first, h.last - h.first)
                elif not any(w.writable and w.first < h.last and h.first < w.last for w in users):
                    now = C.create_string_buffer(h.last - h.first)
                    a._copy(lib.tilert_buffer_read, C.addressof(now), h.first - first, h.last - h.first)
                    if now.raw != C.string_at(h.first, h.last - h.first):
                        wrong = wrong or h
        if wrong:
            raise wrong.param.error(ValueError, "an array that can be written to, since the kernel does", "one that is read-only")


class _Restored:
    """Arguments whose contents must be the same before every launch of many. before: a TilertRun, or NULL where there are none."""

    def __init__(self, kernel, args, names):
        self.errors, self.arrays, self.tensors, places = [], [], [], {p.name: i for i, p in enumerate(kernel.args)}
        for n in names:
            if not (0 <= n < len(args) if isinstance(n, int) else n in places):
                raise ValueError(f"kernel {kernel.name}: no argument {n} to restore; there are {', '.join(places)}")
            i = n if isinstance(n, int) else places[n]
            v = args[i].of if _kind(args[i]) == _VIEW else args[i]
            k = _kind(v)
            if k == _ARRAY:
                self.arrays.append((v, Array(v.dev, v.shape, v.dtype)))
            elif k == _TENSOR and v.is_cuda:
                self.tensors.append((v, v.clone()))
            else:
                raise kernel.args[i].error(TypeError, "an array or a tensor of the device, to be restored", _kind_of(v))
        self.before = _RunFn(self._before) if names else _RunFn()
        for v, saved in self.arrays:
            self._copy(saved, v, None)

    def _copy(self, to, of, stream):
        e = _Err()
        _check(lib.tilert_buffer_copy(to._h, C.c_size_t(0), of._h, C.c_size_t(0), C.c_size_t(of.nbytes), _p(stream or None), C.byref(e)), e)

    def finish(self, stream):
        for v, saved in self.arrays:
            self._copy(v, saved, stream)
        if self.tensors:                                   # torch knows nothing of the stream that the launches are in
            torch = sys.modules["torch"]
            torch.cuda.synchronize()
            for v, saved in self.tensors:
                v.detach().copy_(saved)
            torch.cuda.synchronize()

    def _before(self, _, stream, err):
        try:
            self.finish(stream)
            return 0
        except BaseException as x:   # it cannot cross the C code: raised again behind it
            self.errors.append(x)
            return 1


class _Bar:
    """How far tuning is, on standard error: a line that is written over on a terminal, otherwise one at the end of each step."""

    def __init__(self):
        self.over, self.shown = sys.stderr.isatty(), ""

    def __call__(self, what, done, total):
        line = f"tuning: {what} {done}/{total}"
        if self.over:
            filled = 24 * done // max(total, 1)
            line = f"[{'#' * filled}{'.' * (24 - filled)}] {line}"
            print(f"\r{line:{len(self.shown)}}", end="", file=sys.stderr, flush=True)
            self.shown = line
        elif done == total:
            print(line, file=sys.stderr)

    def end(self):
        if self.shown:
            print(f"\r{'':{len(self.shown)}}\r", end="", file=sys.stderr, flush=True)


# ---- launches ----

class _CtypesLauncher:
    """What the extension's Launcher is, by ctypes."""

    def __new__(cls, launch, call, fail, stream_of, current, ordinal):
        self = object.__new__(cls)
        self._launch, self._call, self._stream_of, self._current, self._ordinal = lib.tilejit_call_launch, call, stream_of, current, ordinal
        self._failed = fail
        return self

    def __call__(self, *stream):
        if len(stream) > 1:
            raise TypeError("a bound launch takes a stream or nothing")
        given = stream[0] if stream else None
        if given is None and self._current:
            given = self._current(self._ordinal)
        s, e = self._stream_of(given), _Err()
        if self._launch(self._call, s or None, C.addressof(e)):
            self._failed(C.addressof(e))

    def repeat(self, times):
        for _ in range(times):
            _CtypesLauncher.__call__(self)


def _ctypes_run(launch, kernel, stream, x, y, z, packed, count, fail):
    e = _Err()
    if lib.tilejit_launch(_p(kernel), _p(stream or None), _grid_words(x, y, z), packed, C.c_size_t(count), C.byref(e)):
        fail(C.addressof(e))


class _PythonDispatcher:
    """What the extension's Dispatcher is, without its short way."""

    def __call__(self, *args, **named):
        return self._launch(*args, **named)

    def __getitem__(self, grid):
        return lambda *args, **named: self._launch(grid, *args, **named)

    def _prepare(self, *_):
        pass

    _learn = _follow = _prepare


def _extension():
    """The module _tilec from beside the library, if it is there and was built for the same structures, and what launches go through."""
    if os.environ.get("TILEC_EXTENSION") == "0":
        return None, "ctypes (TILEC_EXTENSION=0)"
    folders, why = (os.path.dirname(os.path.realpath(lib._name)), _here), []
    for path in [p for f in folders if os.path.exists(p := os.path.join(f, "_tilec.abi3.so"))]:
        spec = importlib.util.spec_from_file_location("_tilec", path)
        try:
            m = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(m)
        except ImportError as x:
            why.append(str(x))
            continue
        if m.sizes() == (C.sizeof(_Err), C.sizeof(_Arg)) and hasattr(m, "Dispatcher"):
            return m, "extension"
        why.append(f"{path} is of another version")
    return None, f"ctypes ({'; '.join(why) or 'no _tilec.abi3.so in ' + ' or '.join(folders)})"


_ext, launches_by = _extension()
_Launcher, _run, _Dispatcher = (_ext.Launcher, _ext.run, _ext.Dispatcher) if _ext else (_CtypesLauncher, _ctypes_run, _PythonDispatcher)
_launch_address, _call_address = (C.cast(getattr(lib, n), _p).value for n in ("tilejit_launch", "tilejit_call_launch"))


# ---- programs and kernels ----

_TENSORS = ("found", "stated", "none")   # TilecTensors


class Program:
    """A source on a device: Device.program makes them."""

    def __init__(self, dev: Device, path: Union[None, str, "os.PathLike[str]"], text: Optional[str], name: str, target: Optional[str], specialise: bool, line_info: bool,
                 cache_dir: Optional[str] = None, tensors: str = "found") -> None:
        if tensors not in _TENSORS:
            raise ValueError(f"tensors is one of {', '.join(_TENSORS)}, not {tensors!r}")
        if path is not None and text is not None:
            raise TypeError("a source is a path or a text, not both; a text's name is name=")
        self._fail = _failing(weakref.ref(self))
        self.dev, self.name, self._h, e = dev, name if path is None else os.fspath(path), _p(), _Err()
        o = _JitOptions(C.sizeof(_JitOptions), _bytes(target), int(not specialise), int(not line_info), None, 0, 0, _bytes(cache_dir and os.fspath(cache_dir)), 0,
                        _TENSORS.index(tensors))
        if path is not None:
            _check(lib.tilejit_program_open(dev._h, _bytes(self.name), C.byref(o), C.byref(self._h), C.byref(e)), e)
        else:
            if not isinstance(text, str):
                raise TypeError(f"a source is a path or a text, a str; got {type(text).__name__}")
            data = text.encode()
            size = C.c_size_t(len(data))
            _check(lib.tilejit_program_create(dev._h, _bytes(name), data, size, C.byref(o), C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilejit_program_destroy(self._h)

    def __repr__(self) -> str:
        return f"<tilec.Program {self.name} on {self.dev.spec}>"

    def diagnostics(self) -> str:
        """What the last compilation that had anything to say said: errors, warnings, with the places marked."""
        b = C.create_string_buffer(1 << 16)
        lib.tilejit_program_diagnostics(self._h, b, C.c_size_t(len(b)))
        return b.value.decode(errors="replace")

    def kernel(self, name: Optional[str] = None, **defines: Any) -> Kernel:
        """The kernel called so (None: the only one), with const and type parameters set."""
        h, e, d = _p(), _Err(), _defines(defines)
        _check(lib.tilejit_kernel(self._h, _bytes(name), d, C.c_size_t(len(defines)), C.byref(h), C.byref(e)), e, self)
        return (ShapedKernel if lib.tilejit_kernel_shape(h, None) else Kernel)(self, defines, h.value)

    def tune(self, name: Optional[str], grid: Any, *args: Any, force: bool = False, restore: Sequence[Union[int, str]] = (), rep_ms: float = 0.0,
             threads: int = 0, stream: Any = None, search: bool = False, progress: Union[bool, Callable[[str, int, int], Any]] = False,
             **defines: Any) -> Kernel:
        """The fastest of the kernel's tune(...) configurations, as a Kernel with .config, .choice and .trials (dicts). grid: a grid, a
        function from the kernel's const and type parameters (a dict) to one, or None: what the kernel's grid clause says. restore: positions or
        names of arguments that every launch
        finds as they are now, and that are so again in the end: results that are added to, counters, flags. Host memory is refused, as
        the launches write many times. search: measure of a kernel without tune(...) what is near to its defines and defaults: warps, stages,
        and extents of blocks if the grid is a function that follows them. progress: True shows how far it is, on standard error; a function is
        called with what is being done, how much of it is, and how much there is."""
        errors = []
        show = _Bar() if progress is True else progress or None

        def report(_, what, done, total):
            try:
                show(what.decode(), done, total)
            except BaseException as x:   # raised again below
                errors.append(x)

        def grid_of(_, k, out):
            try:
                out[0], out[1], out[2] = _grid(Kernel(self, {}, k), grid)
                return 0
            except Exception as x:   # an exception cannot cross the C code: raised again below
                errors.append(x)
                return 1
        start = self.kernel(name, **defines)
        if isinstance(start, ShapedKernel):
            raise TypeError(f"kernel {start.name}: PTX of another compiler has no configurations to tune")
        start = start._typed(start._flat(args, {}))
        defines = {**defines, **start._types}
        launch = _Launch(start, args, {})
        if launch.host:
            raise ValueError(f"kernel {start.name}, argument {next(iter(launch.host))}: tuning takes memory of the device, not of the host")
        kept = _Restored(start, launch.args, restore)
        o = _TuneOptions(C.sizeof(_TuneOptions), int(force), threads, rep_ms, 0, _Progress(report) if show else _Progress(), None, kept.before, None,
                         int(search))
        t, e = _p(), _Err()
        s = self.dev._stream_of(stream, launch.torch)
        of_grid, count = _GridFn(grid_of), C.c_size_t(len(start.args))
        status = self.dev._launches(lib.tilejit_tune, self._h, _bytes(start.name), _defines(defines), C.c_size_t(len(defines)), _p(s or None),
                                    of_grid if grid is not None else _GridFn(), None, launch.packed(), count, C.byref(o), C.byref(t), C.byref(e), error=e)
        errors += kept.errors
        if isinstance(show, _Bar):
            show.end()
        if errors:
            lib.tilejit_tuning_free(t)
            raise errors[0]
        kept.finish(s)
        _check(status, e, self)
        trials = [C.cast(lib.tilejit_tuning_trial(t, i), C.POINTER(_Trial)).contents for i in range(lib.tilejit_tuning_count(t))]
        k = Kernel(self, {}, lib.tilejit_tuning_kernel(t))
        k.trials = [{n: (v.decode() if isinstance(v := getattr(x, n), bytes) else v) for n, _ in _Trial._fields_} for x in trials]
        k.config = k.trials[lib.tilejit_tuning_chosen(t)]["config"]
        k.remembered = bool(lib.tilejit_tuning_remembered(t))
        choice = lib.tilejit_tuning_choice(t)
        k.choice = choice.decode() if choice else None
        lib.tilejit_tuning_free(t)
        return k


def _defines(defines):
    text = {k: str(v).lower() if isinstance(v, (bool, np.bool_)) else str(v) for k, v in defines.items()}
    return (_Define * max(len(defines), 1))(*[_Define(k.encode(), v.encode()) for k, v in text.items()])


def _value(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


class Kernel(_Dispatcher):
    """A kernel with its const and type parameters fixed. k[grid](...) and k(grid, ...) launch it, bind prepares a launch. A grid is a
    number or up to three, or a function from settings() to one; without it, or with None, it is what the kernel's grid clause says."""

    _param = _Param                                        # what its arguments are

    def __init__(self, prog: Program, defines: Dict[str, Any], handle: int) -> None:
        self.prog, self.defines, self._h, self._handle, self._fail = prog, defines, _p(handle), handle, prog._fail
        self.name = lib.tilejit_kernel_name(self._h).decode()
        n = lib.tilejit_kernel_param_count(self._h)
        params = [C.cast(lib.tilejit_kernel_param(self._h, C.c_size_t(i)), C.POINTER(_Param_)).contents for i in range(n)]
        self._settings = {p.name.decode(): _value(p.value.decode()) for p in params if p.kind != 0}
        self.args = [(_TensorParam if p.type.startswith(b"tensor<") else self._param)(self, p) for p in params if p.kind == 0]
        unset = {p.name.decode() for p in params if p.kind == 2 and not p.value}
        self._unset = [(i, p.dtype) for i, p in enumerate(self.args) if p.pointer and p.dtype in unset]
        self._types, self._by_types, self._packers = {}, {}, [p.pack for p in self.args]
        # Parameters shape.0, shape.1 are one argument, a tuple.
        self._groups = grouped(self.args)
        self._plain = all("." not in p.name for p in self.args)
        self._struct = struct.Struct("<" + "".join(p.form for p in self.args))
        if self._plain and not self._unset and not prog.dev.is_sim and all(type(p) is _Param and (p.pointer or p.real or p.most) for p in self.args):
            limit = {p: math.inf if p.dtype == "f64" else _largest(p.dtype)[1] for p in self.args if p.real and not p.pointer}
            rows = tuple((0 if p.pointer else 2 if p.real else 1, p.least or 0, min(p.most or 0, (1 << 63) - 1), limit.get(p, 0.0), sys.intern(p.dtype))
                         for p in self.args)
            self._prepare(_launch_address, handle, Array, prog.dev, prog.dev.ordinal, prog.dev._stream_of, rows)

    @property
    def forms(self) -> int:
        """How many forms are compiled by now: one for each pattern of arguments."""
        return lib.tilejit_kernel_forms(self._h)

    def __repr__(self) -> str:
        given = [f"{p.name}: {p.type}" for p in self.args] + [f"{n} = {v}" for n, v in self._settings.items() if v != ""]
        forms = self.forms
        return f"<tilec.Kernel {self.name}({', '.join(given)}) on {self.prog.dev.spec}; {forms} form{'s' if forms != 1 else ''} compiled>"

    def settings(self) -> Dict[str, Any]:
        """The const and type parameters and what they are set to."""
        return dict(self._settings)

    def _flat(self, args, named):
        """The arguments in order, with tuples taken apart."""
        names = [name for name, _ in self._groups]
        given = dict(zip(names, args))
        if len(args) > len(names):
            raise TypeError(f"kernel {self.name} takes {len(names)} arguments ({', '.join(names)}), got {len(args)}")
        for name in named:
            if name not in names:
                raise TypeError(f"kernel {self.name} has no argument {name}; there are {', '.join(names)}")
            if name in given:
                raise TypeError(f"kernel {self.name}, argument {name} is given twice")
        given.update(named)
        if missing := [n for n in names if n not in given]:
            left = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            raise TypeError(f"kernel {self.name} takes {len(names)} arguments ({', '.join(names)}); {left}")
        out, at = [], 0
        for name, count in self._groups:
            parts = [p.name[len(name) + 1:] for p in self.args[at:at + count]]
            out += self._parts(name, parts, given[name]) if parts[0] else [given[name]]
            at += count
        return out

    def _parts(self, name, parts, v):
        """The values of shape.0, shape.1 or x.rows, x.cols from a tuple or a dict."""
        named = dict(_named_leaves(v)) if isinstance(v, dict) else {}
        if set(named) == set(parts):
            return [named[p] for p in parts]
        values = list(_leaves(v)) if _kind(v) == _TUPLE else []
        if len(values) != len(parts):
            what = "a tuple" if parts[0].isdigit() else "a dict or tuple"
            got = f"one of {len(values)}" if _kind(v) == _TUPLE else _kind_of(v)
            raise TypeError(f"kernel {self.name}, argument {name}: expected {what} of {len(parts)} ({', '.join(parts)}), got {got}")
        return values

    def _typed(self, args):
        """This kernel, or the one whose unset type parameters are what the arrays say."""
        if not self._unset:
            return self
        types, first = {}, {}
        for i, t in self._unset:
            dtype = _dtype_of(args[i])
            if dtype is None:
                continue
            p = self.args[i]
            if types.setdefault(t, dtype) != dtype:
                raise p.error(TypeError, f"an array of {types[t]}, which {t} is because of {first[t]}", _kind_of(args[i]))
            first.setdefault(t, p.name)
        key = tuple(sorted(types.items()))
        if not key:
            return self
        k = self._by_types.get(key)
        if k is None:
            k = self._by_types[key] = self.prog.kernel(self.name, **{**self.defines, **types})
            k._types = types
        return k

    def _given(self, grid, args, named):
        """The grid, or None, and the arguments: where what is said first is one of these, no grid is given."""
        if not _may_be_grid(grid) and len(args) + len(named) < len(self._groups):
            return None, (grid, *args)
        if 1 + len(args) + len(named) != len(self._groups):
            return grid, args
        at, said = 0, (grid, *args)
        for (_, count), v in zip(self._groups, said):
            if self.args[at].pointer and (_kind(v) in (_INT, _TUPLE) or isinstance(v, (float, list)) or callable(v)):
                return grid, args                        # no pointer: one argument is missing
            at += count
        return None, said

    def _launch(self, grid: Any = None, *args: Any, stream: Any = None, pdl: bool = False, **named: Any) -> None:
        """Launch with whatever arguments, or say what is wrong with them."""
        if len(args) + len(named) < len(self._groups):
            grid, args = self._given(grid, args, named)
        if pdl:
            return self.bind(grid, *args, pdl=True, **named)(stream)
        if self._unset and (k := self._typed(self._flat(args, named))) is not self:
            return k._launch(grid, *args, stream=stream, **named)
        try:
            launch = _Launch(self, args, named)
        except (TypeError, ValueError):
            if traced((*args, *named.values())):           # with sizes that are no numbers, perhaps
                return
            if not _may_be_grid(grid):
                _grid(self, grid)
            raise
        loan = _Loan(launch) if launch.host else None
        if loan and isinstance(stream, Stream) and stream.capturing:
            raise TypeError(f"kernel {self.name}: the stream is being captured; {', '.join(launch.host)} is in the host's memory")
        if loan:
            loan.bring()
        x, y, z = (grid, 1, 1) if type(grid) is int and 0 <= grid < 1 << 32 else _grid(self, grid)
        s = self.prog.dev._stream_of(stream, launch.torch) if stream is not None or launch.torch else 0
        if self.prog.dev.is_sim:
            self.prog.dev._launches(_run, _launch_address, self._handle, s, x, y, z, launch.packed(), len(self.args), self._fail)
        else:
            _run(_launch_address, self._handle, s, x, y, z, launch.packed(), len(self.args), self._fail)
        if loan:
            loan.back()
        if launch.torch:
            self._teach(launch.args)

    def _teach(self, args):
        """Tell the short way what tensors were right."""
        current, grad = _torch_current(), sys.modules["torch"].is_grad_enabled
        for i, (p, v) in enumerate(zip(self.args, args)):
            if p.pointer and _kind(v) == _TENSOR and type(v) is not Borrowed:
                self._learn(i, v, current, grad)

    def bind(self, grid: Any = None, *args: Any, pdl: bool = False, **named: Any) -> Call:
        """A Call: this launch, checked and prepared, as often as wanted. In host memory it costs copies each time."""
        grid, args = self._given(grid, args, named)
        try:
            k = self._typed(self._flat(args, named))
            launch = _Launch(k, args, named)
        except (TypeError, ValueError):
            if traced((*args, *named.values())):
                return _NoCall()
            if not _may_be_grid(grid):
                _grid(self, grid)
            raise
        return k._bind(grid, launch, None, pdl)

    def _bind(self, grid, launch, shape, pdl):
        return (_HostCall if launch.host else _SimCall if self.prog.dev.is_sim else Call)(self, grid, launch, shape, pdl)


class ShapedKernel(Kernel):
    """A kernel of another compiler's PTX: the shape of the blocks and their dynamic shared memory belong to the launch. .block is the shape
    that the PTX asks for, or None."""
    _param = _RawParam

    def __init__(self, prog: Program, defines: Dict[str, Any], handle: int) -> None:
        super().__init__(prog, defines, handle)
        asked = (C.c_uint32 * 3)()
        lib.tilejit_kernel_shape(self._h, asked)
        self.block = tuple(asked) if asked[0] else None

    def _launch(self, grid: Any = None, *args: Any, block: Any = None, shared: int = 0, stream: Any = None, pdl: bool = False, **named: Any) -> None:
        self.bind(grid, *args, block=block, shared=shared, pdl=pdl, **named)(stream)

    def bind(self, grid: Any = None, *args: Any, block: Any = None, shared: int = 0, pdl: bool = False, **named: Any) -> Call:
        """Check and prepare a launch with blocks of this shape and so many bytes of dynamic shared memory (see Kernel.bind)."""
        block = self.block if block is None else _extents(block, "block")
        if block is None:
            raise TypeError(f"kernel {self.name}: block=(x, y, z) is needed, as the PTX does not say how many threads a block has")
        if _kind(shared) != _INT:
            raise TypeError(f"kernel {self.name}: shared is a number of bytes, got {_kind_of(shared)}")
        if not 0 <= shared < 1 << 32:
            raise ValueError(f"kernel {self.name}: shared is a number of bytes from 0 to 2^32 - 1, got {shared}")
        return self._bind(grid, _Launch(self, args, named), (block, int(shared)), pdl)


def grouped(params: Sequence[Any]) -> List[Tuple[str, int]]:
    """(name, how many parameters) of each argument."""
    return [(name, len(list(g))) for name, g in itertools.groupby(p.name.split(".")[0] for p in params)]


def _leaves(v):
    for x in v:
        if _kind(x) == _TUPLE:
            yield from _leaves(x)
        else:
            yield x


def _named_leaves(v, prefix=""):
    """(name, value) of what a dict holds, dicts and tuples in it taken apart: strides.0, strides.1."""
    for name, x in v.items() if isinstance(v, dict) else enumerate(v):
        if isinstance(x, dict) or _kind(x) == _TUPLE:
            yield from _named_leaves(x, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", x


def _extents(given, what):
    """Three numbers from one to three."""
    n = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(n) <= 3 or not all(_kind(x) == _INT for x in n):
        raise TypeError(f"a {what} is a whole number or up to three, got {n!r:.80}")
    if any(not 0 <= x < 1 << 32 for x in n):
        raise ValueError(f"a {what}'s numbers are from 0 to 2^32 - 1, got {n!r:.80}")
    return (tuple(int(x) for x in n) + (1, 1))[:3]


def _may_be_grid(grid):
    """Whether a value is at all like one."""
    return grid is None or _kind(grid) in (_INT, _TUPLE) or isinstance(grid, list) or callable(grid)


def _grid(kernel, grid):
    """Three numbers, or Nones: what the kernel's grid clause says."""
    if not _may_be_grid(grid):
        names = [name for name, _ in kernel._groups]
        raise TypeError(f"kernel {kernel.name} takes {len(names)} arguments ({', '.join(names)}), and in front of them, or in brackets, a grid, which is a "
                        f"whole number or up to three, got {_kind_of(grid)}")
    if callable(grid):
        grid = grid(kernel.settings())
    return (None, None, None) if grid is None else _extents(grid, "grid")


def _grid_words(x, y, z):
    return None if x is None else (C.c_uint32 * 3)(x, y, z)


class Call(_Launcher):
    """A kernel bound to a grid and arguments: call() launches it, at the cost of the driver's launch; call(stream) in a stream;
    call.repeat(n) so many times in a loop of C, which tells what of a launch's time is Python's."""

    def __new__(cls, kernel, grid, launch, shape=None, pdl=False):
        h, e, loan = _p(), _Err(), _Loan(launch) if launch.host else None
        words, count = _grid_words(*_grid(kernel, grid)), C.c_size_t(len(kernel.args))
        status = lib.tilejit_call_create(kernel._h, words, None, launch.packed(), count, C.byref(h), C.byref(e))
        _check(status, e, kernel.prog)
        packed, launched = _p(lib.tilejit_call_packed(h)), (C.c_uint32 * 3)()
        lib.tilert_launch_grid(packed, launched, None)
        status = lib.tilert_launch_set_shape(packed, (C.c_uint32 * 3)(*shape[0]), C.c_uint32(shape[1]), C.byref(e)) if shape else 0
        if not status and pdl:
            status = lib.tilert_launch_set_pdl(packed, 2 if pdl == "auto" else 1, C.byref(e))
        if status:
            lib.tilejit_call_destroy(h)
            _check(status, e)
        dev = kernel.prog.dev
        self = super().__new__(cls, _call_address, h.value, kernel._fail, dev._stream_of, _torch_current() if launch.torch else None, dev.ordinal)
        self._h, self.kernel, self.grid, self.args, self._loan, self._shape = h, kernel, tuple(launched), launch.args, loan, shape
        return self

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilejit_call_destroy(self._h)

    def __repr__(self) -> str:
        i, n = self.info(), self.grid
        known = [f"{a.name} {'= 1' if i['equal_1'] >> at & 1 else f'% {by}'}" for at, a in enumerate(self.kernel.args)
                 for by in (1, 16, 8, 4, 2) if (i["equal_1"] if by == 1 else i[f"divisible_{by}"]) >> at & 1]
        shared, origin = i["static_shared"] + i["dynamic_shared"], "found in the cache" if i["from_cache"] else f"compiled in {i['compile_ms']:.3g} ms"
        return (f"<tilec.Call {self.kernel.name} on {self.kernel.prog.dev.spec}, grid {n}: {i['threads']} threads, {i['registers']} registers, "
                f"{i['local_bytes']} bytes of local and {shared} of shared memory; {', '.join(known) or 'nothing'} known; {origin}>")

    def info(self) -> Dict[str, Any]:
        """What was compiled: times, registers, memory, what is known of the arguments (bit i: of argument i)."""
        i, e = _Info(), _Err()
        _check(lib.tilejit_call_info(self._h, C.byref(i), C.byref(e)), e)
        info = {n: getattr(i, n) for n, _ in _Info._fields_}
        if self._shape:                                    # of the launch, not of the kernel; nobody has counted how many such blocks fit
            info.update(threads=math.prod(self._shape[0]), dynamic_shared=self._shape[1], occupancy=None)
        return info

    def priority(self, priority: int) -> Call:
        """In front of other launches or behind them, whatever its stream's priority is; the call itself."""
        return self._attribute(lib.tilert_launch_set_priority, C.c_int(priority))

    def cluster(self, x: int, y: int = 1, z: int = 1) -> Call:
        """Blocks in clusters of this shape, of a kernel that does not say that itself; the call itself."""
        return self._attribute(lib.tilert_launch_set_cluster, (C.c_uint32 * 3)(x, y, z))

    def window(self, of: Optional[Array], ratio: float = 1.0, hit: str = "persisting", miss: str = "streaming") -> Call:
        """How the L2 cache treats what this launch accesses of an Array (see Stream.window); the call itself."""
        return self._attribute(lib.tilert_launch_set_window, _window(of, ratio, hit, miss))

    def _attribute(self, function, value):
        e = _Err()
        _check(function(_p(lib.tilejit_call_packed(self._h)), value, C.byref(e)), e)
        return self

    def ptx(self) -> str:
        """The PTX that runs."""
        return lib.tilejit_call_ptx(self._h).decode()

    @property
    def says_grid(self) -> bool:
        """Whether the kernel has a grid clause."""
        lines = self.ptx().split("\n")
        return any(" grid=" in line for line in lines if line.startswith(f"//@tilec kernel={self.kernel.name} "))

    def bench(self, warmup_ms: float = 25, rep_ms: float = 100, restore: Sequence[Union[int, str]] = ()) -> Dict[str, float]:
        """Median and spread in ms; on cuda the L2 is flushed before every run. restore: as for Program.tune; what it takes is not measured."""
        b, e, dev = _Bench(), _Err(), self.kernel.prog.dev
        kept, packed = _Restored(self.kernel, self.args, restore), _p(lib.tilejit_call_packed(self._h))
        run = _RunFn(lambda _, stream, err: lib.tilert_launch_packed(packed, _p(stream), _p(err)))
        times = C.c_double(warmup_ms), C.c_double(rep_ms), C.byref(b), C.byref(e)
        if restore:
            status = dev._launches(lib.tilert_bench, dev._h, None, kept.before, run, None, *times, error=e)
        else:
            status = dev._launches(lib.tilert_bench_launch, packed, None, *times, error=e)
        if kept.errors:
            raise kept.errors[0]
        _check(status, e)
        kept.finish(None)
        return {n: getattr(b, n) for n, _ in _Bench._fields_}


class _NoCall:
    """What a launch is bound to while torch traces."""

    def __call__(self, stream=None):
        pass

    def repeat(self, times):
        pass


class _SimCall(Call):
    """A call on the simulator, which Ctrl-C stops."""

    def __call__(self, *stream):
        return self.kernel.prog.dev._launches(super().__call__, *stream)

    def repeat(self, times):
        return self.kernel.prog.dev._launches(super().repeat, times)


class _HostCall(_SimCall):
    """A call with arguments in the host's memory: copied at each launch. Its bench and ptx are those of the launch alone."""

    def __call__(self, *stream):
        self._loan.bring()
        super().__call__(*stream)
        self._loan.back()

    def repeat(self, times):
        self._loan.bring()
        super().repeat(times)
        self._loan.back()


def version() -> str:
    """That of the library."""
    return lib.tilec_version().decode()


from .sources import Source, SourceKernel, device, load            # noqa: E402  it needs what is above

__all__ = ["Array", "Call", "CompileError", "Device", "DTYPES", "Error", "Event", "Graph", "Kernel", "Pointer", "Pool", "Program", "ShapedKernel", "Source", "SourceKernel", "Stream",
           "View", "cdiv", "device", "from_bits", "load", "operator", "to_bits", "version"]


def load_ipython_extension(shell: Any) -> None:
    """%load_ext tilec: cells that begin with %%tile are sources."""
    from . import notebook
    notebook.register(shell)
