"""tilec from Python: a thin ctypes layer over libtilec (driver/jit.h, runtime/tilert.h).

    dev = tilec.Device("sim")                      # or "cuda", or None for the best there is
    prog = dev.program("examples/vector_add.tile")
    k = prog.kernel("add", BLOCK=1024)
    x = dev.array(numpy_array); y = dev.empty((n,), "f32")
    k((tilec.cdiv(n, 1024),), x, y, n)             # in the kernel's order; None is null, torch tensors work on cuda
    y.numpy()

Status codes become tilec.Error. Nothing here is needed to use tilec from C.
"""
import ctypes as C
import os

import numpy as np

_here = os.path.dirname(os.path.abspath(__file__))
_names = [os.environ.get("TILEC_LIB", ""), os.path.join(_here, "..", "lib", "libtilec.so"),
          os.path.join(_here, "..", "build", "lib", "libtilec.so"), "libtilec.so"]
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


class _Define(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", C.c_char_p)]


class _DeviceInfo(C.Structure):
    _fields_ = [("name", C.c_char * 128), ("spec", C.c_char * 16), ("target", C.c_char * 16), ("capability_major", C.c_uint32),
                ("capability_minor", C.c_uint32), ("multiprocessors", C.c_uint32), ("shared_max", C.c_uint32),
                ("shared_per_multiprocessor", C.c_uint32), ("registers_per_multiprocessor", C.c_uint32),
                ("threads_per_multiprocessor", C.c_uint32), ("clock_khz", C.c_uint32), ("memory_clock_khz", C.c_uint32),
                ("memory_bus_bits", C.c_uint32), ("memory", C.c_uint64), ("l2", C.c_uint64), ("grid_max", C.c_uint32 * 3),
                ("is_sim", C.c_uint32), ("driver", C.c_uint32)]


class _Stats(C.Structure):
    _fields_ = [(n, C.c_uint64) for n in ("launches", "blocks", "warp_instructions", "global_bytes_read", "global_bytes_written",
                                          "global_sectors", "shared_accesses", "shared_bank_conflicts", "barriers", "atomics", "mma")]


class _Info(C.Structure):
    _fields_ = [("compile_ms", C.c_double), ("load_ms", C.c_double), ("registers", C.c_uint32), ("local_bytes", C.c_uint32),
                ("static_shared", C.c_uint32), ("dynamic_shared", C.c_uint32), ("threads", C.c_uint32), ("occupancy", C.c_uint32),
                ("equal_1", C.c_uint64), ("divisible_16", C.c_uint64), ("from_cache", C.c_uint32)]


class _Bench(C.Structure):
    _fields_ = [(n, C.c_double) for n in ("median_ms", "min_ms", "max_ms", "mean_ms", "p20_ms", "p80_ms")] + [("runs", C.c_uint32)]


class _JitOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("target", C.c_char_p), ("no_specialisation", C.c_int), ("no_line_info", C.c_int),
                ("import_path", _p), ("nimport_path", C.c_size_t), ("no_cache", C.c_int), ("cache_dir", C.c_char_p),
                ("cache_limit", C.c_uint64)]


class _Param(C.Structure):
    _fields_ = [("name", C.c_char * 64), ("type", C.c_char * 64), ("value", C.c_char * 128), ("kind", C.c_int32)]


class _Trial(C.Structure):
    _fields_ = [("config", C.c_char_p), ("why", C.c_char_p), ("compile_ms", C.c_double), ("load_ms", C.c_double), ("ms", C.c_double),
                ("registers", C.c_uint32), ("local_bytes", C.c_uint32), ("shared", C.c_uint32)]


_Progress = C.CFUNCTYPE(None, _p, C.c_char_p, C.c_size_t, C.c_size_t)
_GridFn = C.CFUNCTYPE(C.c_int, _p, _p, C.POINTER(C.c_uint32))


class _TuneOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("force", C.c_int), ("threads", C.c_int), ("rep_ms", C.c_double), ("restore", C.c_uint64),
                ("progress", _Progress), ("progress_user", _p)]


def _load():
    for name in _names:
        if name and (os.path.exists(name) or name == _names[-1]):
            return C.CDLL(name)
    raise OSError("libtilec.so not found")


lib = _load()
for _f in ("tilert_device_info", "tilejit_call_packed"):
    getattr(lib, _f).restype = _p
lib.tilert_buffer_address.restype = C.c_uint64
lib.tilejit_call_ptx.restype = C.c_char_p
lib.tilec_version.restype = C.c_char_p
for _f in ("tilert_device_close", "tilert_buffer_destroy", "tilejit_program_destroy", "tilejit_call_destroy", "tilert_stream_destroy"):
    getattr(lib, _f).argtypes, getattr(lib, _f).restype = [_p], None
lib.tilert_buffer_address.argtypes = [_p]
for _f in ("tilejit_tuning_count", "tilejit_tuning_chosen", "tilejit_kernel_param_count"):
    getattr(lib, _f).argtypes, getattr(lib, _f).restype = [_p], C.c_size_t
for _f in ("tilejit_tuning_trial", "tilejit_kernel_param"):
    getattr(lib, _f).argtypes, getattr(lib, _f).restype = [_p, C.c_size_t], _p
lib.tilejit_tuning_kernel.argtypes, lib.tilejit_tuning_kernel.restype = [_p], _p
lib.tilejit_tuning_remembered.argtypes, lib.tilejit_tuning_free.argtypes, lib.tilejit_tuning_free.restype = [_p], [_p], None
lib.tilert_device_info.argtypes = lib.tilejit_call_packed.argtypes = lib.tilejit_call_ptx.argtypes = [_p]
lib.tilejit_call_launch.argtypes = [_p, _p, _p]


class Error(Exception):
    """A status and its message; .file, .line, .block, .thread for faults that the simulator found."""

    def __init__(self, e):
        self.status, self.message = e.status, e.message.decode(errors="replace")
        self.file, self.line, self.block, self.thread = e.file.decode(errors="replace"), e.line, tuple(e.block), tuple(e.thread)
        super().__init__(self.message)


def _check(status, e):
    if status:
        raise Error(e)


def cdiv(a, b):
    return -(-a // b)


def _bytes(s):
    return None if s is None else s.encode()


class Device:
    def __init__(self, spec=None):
        self._h, e = _p(), _Err()
        _check(lib.tilert_device_open(_bytes(spec), None, C.byref(self._h), C.byref(e)), e)
        self.info = C.cast(lib.tilert_device_info(self._h), C.POINTER(_DeviceInfo)).contents
        self.is_sim, self.name, self.sms = bool(self.info.is_sim), self.info.name.decode(), self.info.multiprocessors

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilert_device_close(self._h)

    def synchronize(self):
        e = _Err()
        _check(lib.tilert_device_synchronize(self._h, C.byref(e)), e)

    def stats(self, reset=False):
        """What the simulator counted since the last reset, as a dict."""
        s, e = _Stats(), _Err()
        _check(lib.tilert_device_stats(self._h, C.byref(s), C.byref(e)), e)
        if reset:
            lib.tilert_device_stats_reset(self._h, None)
        return {n: getattr(s, n) for n, _ in _Stats._fields_}

    def empty(self, shape, dtype):
        return Array(self, shape, dtype)

    def array(self, a, dtype=None):
        a = np.ascontiguousarray(a)
        names = {np.dtype(v): k for k, v in reversed(list(DTYPES.items()))}
        out = Array(self, a.shape, dtype or names[a.dtype])
        out.write(a)
        return out

    def program(self, path=None, text=None, name="<string>", target=None, specialise=True, line_info=True, cache_dir=None):
        return Program(self, path, text, name, target, specialise, line_info, cache_dir)


class Array:
    """Device memory with a shape and a dtype (a key of DTYPES)."""

    def __init__(self, dev, shape, dtype):
        self.dev, self.shape, self.dtype = dev, tuple(np.atleast_1d(shape)), dtype
        self.nbytes = int(np.prod(self.shape)) * np.dtype(DTYPES[dtype]).itemsize
        self._h, e = _p(), _Err()
        _check(lib.tilert_buffer_create(dev._h, C.c_size_t(max(self.nbytes, 1)), C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilert_buffer_destroy(self._h)

    def data_ptr(self):
        return lib.tilert_buffer_address(self._h)

    def write(self, a):
        e = _Err()
        a = np.ascontiguousarray(a, DTYPES[self.dtype])
        _check(lib.tilert_buffer_write(self._h, C.c_size_t(0), a.ctypes.data_as(_p), C.c_size_t(a.nbytes), None, C.byref(e)), e)

    def fill_bytes(self, byte):
        e = _Err()
        _check(lib.tilert_buffer_fill(self._h, C.c_size_t(0), C.c_size_t(self.nbytes), C.c_uint32(byte), C.c_uint32(1), None, C.byref(e)), e)

    def numpy(self):
        a, e = np.empty(self.shape, DTYPES[self.dtype]), _Err()
        _check(lib.tilert_buffer_read(self._h, C.c_size_t(0), a.ctypes.data_as(_p), C.c_size_t(a.nbytes), None, C.byref(e)), e)
        return a


def _arg(v):
    a = _Arg()
    if isinstance(v, Array):
        a.kind, a.u.buffer = 0, v._h
    elif v is None or hasattr(v, "data_ptr"):
        a.kind, a.u.pointer = 1, v.data_ptr() if v is not None else 0
    elif isinstance(v, (bool, int, np.integer)):
        a.kind, a.u.i = 2, int(v)
    else:
        a.kind, a.u.f = 3, float(v)
    return a


class Program:
    def __init__(self, dev, path, text, name, target, specialise, line_info, cache_dir=None):
        self.dev, self._h, e = dev, _p(), _Err()
        o = _JitOptions(C.sizeof(_JitOptions), _bytes(target), int(not specialise), int(not line_info), None, 0, 0, _bytes(cache_dir), 0)
        if path is not None:
            _check(lib.tilejit_program_open(dev._h, _bytes(path), C.byref(o), C.byref(self._h), C.byref(e)), e)
        else:
            data = text.encode()
            _check(lib.tilejit_program_create(dev._h, _bytes(name), data, C.c_size_t(len(data)), C.byref(o), C.byref(self._h), C.byref(e)), e)

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilejit_program_destroy(self._h)

    def diagnostics(self):
        b = C.create_string_buffer(1 << 16)
        lib.tilejit_program_diagnostics(self._h, b, C.c_size_t(len(b)))
        return b.value.decode(errors="replace")

    def kernel(self, name=None, **defines):
        return Kernel(self, name, defines)

    def tune(self, name, grid, *args, force=False, restore=(), rep_ms=0.0, threads=0, **defines):
        """The fastest of the kernel's tune(...) configurations, as a Kernel with .config and .trials (dicts). grid: a grid, or a
        function from the kernel's const and type parameters (a dict) to one. restore: positions of arguments to be left as they are."""
        errors = []

        def grid_of(_, k, out):
            try:
                g = _grid(grid(Kernel(self, None, {}, handle=k).settings()) if callable(grid) else grid)
                out[0], out[1], out[2] = g
                return 0
            except Exception as x:   # an exception cannot cross the C code: raised again below
                errors.append(x)
                return 1
        o = _TuneOptions(C.sizeof(_TuneOptions), int(force), threads, rep_ms, sum(1 << i for i in restore), _Progress(), None)
        a, t, e = (_Arg * max(len(args), 1))(*map(_arg, args)), _p(), _Err()
        status = lib.tilejit_tune(self._h, _bytes(name), _defines(defines), C.c_size_t(len(defines)), None, _GridFn(grid_of), None, a,
                                  C.c_size_t(len(args)), C.byref(o), C.byref(t), C.byref(e))
        if errors:
            lib.tilejit_tuning_free(t)
            raise errors[0]
        _check(status, e)
        trials = [C.cast(lib.tilejit_tuning_trial(t, C.c_size_t(i)), C.POINTER(_Trial)).contents for i in range(lib.tilejit_tuning_count(t))]
        k = Kernel(self, None, {}, handle=lib.tilejit_tuning_kernel(t))
        k.trials = [{n: (v.decode() if isinstance(v := getattr(x, n), bytes) else v) for n, _ in _Trial._fields_} for x in trials]
        k.config = k.trials[lib.tilejit_tuning_chosen(t)]["config"]
        k.remembered = bool(lib.tilejit_tuning_remembered(t))
        lib.tilejit_tuning_free(t)
        return k


def _defines(defines):
    text = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in defines.items()}
    return (_Define * max(len(defines), 1))(*[_Define(k.encode(), v.encode()) for k, v in text.items()])


def _value(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


class Kernel:
    def __init__(self, prog, name, defines, handle=None):
        self.prog, self._h, e = prog, _p(handle), _Err()
        if handle:
            return
        d = _defines(defines)
        _check(lib.tilejit_kernel(prog._h, _bytes(name), d, C.c_size_t(len(defines)), C.byref(self._h), C.byref(e)), e)

    def settings(self):
        """The const and type parameters and what they are set to."""
        n = lib.tilejit_kernel_param_count(self._h)
        params = [C.cast(lib.tilejit_kernel_param(self._h, C.c_size_t(i)), C.POINTER(_Param)).contents for i in range(n)]
        return {p.name.decode(): _value(p.value.decode()) for p in params if p.kind != 0}

    def __call__(self, grid, *args, stream=None):
        e, g, a = _Err(), _grid(grid), (_Arg * max(len(args), 1))(*map(_arg, args))
        _check(lib.tilejit_launch(self._h, stream, g, a, C.c_size_t(len(args)), C.byref(e)), e)

    def bind(self, grid, *args):
        return Call(self, grid, args)


def _grid(grid):
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return (C.c_uint32 * 3)(*(grid + (1, 1))[:3])


class Call:
    """A kernel bound to a grid and arguments: call() launches it at the cost of one foreign call."""

    def __init__(self, kernel, grid, args):
        self.kernel, self.args, self._h, e = kernel, args, _p(), _Err()
        a = (_Arg * max(len(args), 1))(*map(_arg, args))
        _check(lib.tilejit_call_create(kernel._h, _grid(grid), None, a, C.c_size_t(len(args)), C.byref(self._h), C.byref(e)), e)
        self._err, self._launch = _Err(), lib.tilejit_call_launch
        self._errp, self._hv = C.addressof(self._err), self._h.value

    def __del__(self):
        if getattr(self, "_h", None):
            lib.tilejit_call_destroy(self._h)

    def __call__(self, stream=None):
        if self._launch(self._hv, stream, self._errp):
            raise Error(self._err)

    def info(self):
        i, e = _Info(), _Err()
        _check(lib.tilejit_call_info(self._h, C.byref(i), C.byref(e)), e)
        return {n: getattr(i, n) for n, _ in _Info._fields_}

    def ptx(self):
        return lib.tilejit_call_ptx(self._h).decode()

    def bench(self, warmup_ms=25, rep_ms=100):
        """Median and spread in ms; on cuda the L2 is flushed before every run."""
        b, e = _Bench(), _Err()
        _check(lib.tilert_bench_launch(_p(lib.tilejit_call_packed(self._h)), None, C.c_double(warmup_ms), C.c_double(rep_ms), C.byref(b), C.byref(e)), e)
        return {n: getattr(b, n) for n, _ in _Bench._fields_}
