"""Arrays of other libraries by DLPack: what has __dlpack__ is looked into here, and made to look like a tensor; Arrays are given away as such."""
from __future__ import annotations

import ctypes as C
from typing import Any, Optional, Tuple

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
# (code, bits) of DLDataType
_TYPES = {"i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64),
          "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16), "i1": (6, 8), "f8e4m3": (10, 8), "f8e5m2": (12, 8)}
_NAMES = {v: k for k, v in _TYPES.items()}


class _Tensor(C.Structure):
    """DLTensor"""
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("byte_offset", C.c_uint64)]


class _Managed(C.Structure):
    """DLManagedTensor"""


_Deleter = C.CFUNCTYPE(None, C.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", C.c_void_p), ("deleter", _Deleter)]
_Destructor = C.CFUNCTYPE(None, C.c_void_p)
_api = C.pythonapi
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
_api.PyCapsule_SetName.restype, _api.PyCapsule_SetName.argtypes = C.c_int, [C.py_object, C.c_char_p]
_api.PyCapsule_New.restype, _api.PyCapsule_New.argtypes = C.py_object, [C.c_void_p, C.c_char_p, _Destructor]
_FRESH, _USED = b"dltensor", b"used_dltensor"              # a capsule keeps the pointer to its name


class Borrowed:
    """Memory of another library's array, as long as this object lives. It answers what torch's tensors answer."""

    requires_grad = False

    def __init__(self, of: Any, stream: Optional[int] = None) -> None:
        kind, ordinal = (int(n) for n in of.__dlpack_device__())
        capsule = of.__dlpack__() if kind == _CPU or stream is None else of.__dlpack__(stream=stream)
        managed = C.cast(_api.PyCapsule_GetPointer(capsule, _FRESH), C.POINTER(_Managed))
        _api.PyCapsule_SetName(capsule, _USED)
        self._managed, t = managed, managed.contents.tensor
        self.dtype = _NAMES.get((t.code, t.bits)) if t.lanes == 1 else None
        self.shape: Tuple[int, ...] = tuple(t.shape[i] for i in range(t.ndim))
        dense, steps = 1, []
        for n in reversed(self.shape):
            steps.insert(0, dense)
            dense *= n
        self._strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else tuple(steps)
        self._contiguous = 0 in self.shape or all(n == 1 or s == d for n, s, d in zip(self.shape, self._strides, steps))
        self._address, self._bits = (t.data or 0) + t.byte_offset, t.bits
        self._ordinal = -1 if kind == _CPU else ordinal
        self.device = "the host" if kind == _CPU else f"cuda:{ordinal}" if kind in (_CUDA, _CUDA_HOST, _CUDA_MANAGED) else f"DLPack's device {kind}"
        self.is_cuda = kind in (_CUDA, _CUDA_HOST, _CUDA_MANAGED)
        if kind != _CPU and not self.is_cuda:
            self._ordinal = -2

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed and managed.contents.deleter:
            managed.contents.deleter(managed)

    def data_ptr(self) -> int:
        """The address on the device."""
        return self._address

    def stride(self) -> Tuple[int, ...]:
        """In elements, of each dimension."""
        return self._strides

    def is_contiguous(self) -> bool:
        """Whether nothing lies between its elements."""
        return self._contiguous

    def get_device(self) -> int:
        """The number of the GPU."""
        return self._ordinal

    def element_size(self) -> int:
        """In bytes."""
        return self._bits // 8


_given = {}                                                # what was given away and not given back, by its address


class _Given:
    """A DLManagedTensor of ours, with what it points to."""

    def __init__(self, array: Any) -> None:
        shape = (C.c_int64 * max(len(array.shape), 1))(*array.shape)
        code, bits = _TYPES[array.dtype]
        self.keep, self.managed = (array, shape), _Managed()
        self.managed.tensor = _Tensor(array.data_ptr(), _CUDA, array.dev.ordinal, len(array.shape), code, bits, 1, shape, None, 0)
        self.managed.deleter = _delete
        self.address = C.addressof(self.managed)


@_Deleter
def _delete(managed: Any) -> None:
    _given.pop(C.addressof(managed.contents), None)


@_Destructor
def _unused(capsule: int) -> None:
    """A capsule that nobody has taken the tensor out of."""
    get = C.PYFUNCTYPE(C.c_void_p, C.c_void_p, C.c_char_p)(("PyCapsule_GetPointer", _api))
    valid = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p)(("PyCapsule_IsValid", _api))
    if valid(capsule, _FRESH):
        _given.pop(get(capsule, _FRESH), None)


def give(array: Any) -> Any:
    """A capsule with the memory of an Array."""
    if array.dev.is_sim:
        raise BufferError("memory of the simulator is no memory of the host: numpy() copies it")
    given = _Given(array)
    _given[given.address] = given
    return _api.PyCapsule_New(given.address, _FRESH, _unused)
