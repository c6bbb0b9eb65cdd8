"""A device that compiles what is launched, and runs nothing: run.py --compile.

Arguments have addresses and nearly no memory. Large arrays of the host are one number each (Same), and what numpy computes of them is, too, so a
case costs little more than its kernels."""
import os
import re
import subprocess
import tempfile

import numpy as np

import harness
import tilec

SMALL = 1 << 14                 # elements: arrays of no more hold random numbers
PLACES, PLACE = 1024, 512       # arguments have addresses so many bytes apart
plain = np.asarray


def kept_by(make):
    """A function of numpy's that takes arrays as they are, and makes others."""
    return lambda a, dtype=None, *more, **named: (a if dtype is None else a.astype(dtype)) if isinstance(a, Same) else make(a, dtype, *more, **named)


class Same(np.ndarray):
    """An array all of whose elements are taken to be the first."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, where=True, axis=0, keepdims=False, **named):
        of = [plain(x) for x in inputs]
        if out is not None and isinstance(out[0], Same):
            return out[0]
        if out is None:
            if ufunc is np.matmul:
                return same(0, matmul_shape(*(p.shape for p in of)), np.result_type(*of))
            if method == "__call__" and ufunc.signature is None:
                with np.errstate(all="ignore"):
                    results = ufunc(*(p if p.ndim == 0 else first(p).reshape(1) for p in of), **named)
                shape = np.broadcast_shapes(*(p.shape for p in of))
                return tuple(same(first(r), shape) for r in results) if isinstance(results, tuple) else same(first(results), shape)
            if method == "reduce":
                axes = range(of[0].ndim) if axis is None else {a % of[0].ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
                shape = [1 if i in axes else n for i, n in enumerate(of[0].shape) if keepdims or i not in axes]
                return same(ufunc.reduce(first(of[0]).reshape(1), **{k: v for k, v in named.items() if k == "dtype"}), shape)
        if out is not None:
            named["out"] = tuple(plain(x) for x in out)
        if method != "__call__":
            named["axis"] = axis
        return getattr(ufunc, method)(*of, **named)

    def __array_function__(self, function, types, args, named):
        if function is np.copyto:
            return None
        with np.errstate(all="ignore"):
            result = super().__array_function__(function, types, args, named)
        return same(first(result), result.shape) if isinstance(result, np.ndarray) else result

    def astype(self, dtype, *_, **__):
        with np.errstate(all="ignore"):
            return same(first(self), self.shape, dtype)

    def copy(self, *_, **__):
        return self

    def sort(self, *_, **__):
        pass

    def argsort(self, *_, **__):
        return same(0, self.shape, np.int64)

    def view(self, *given):
        size = np.dtype(given[0]).itemsize if given and not (isinstance(given[0], type) and issubclass(given[0], np.ndarray)) else self.itemsize
        if size == self.itemsize:
            return super().view(*given)
        return same(0, (*self.shape[:-1], self.shape[-1] * self.itemsize // size), given[0])

    def __setitem__(self, *_):
        pass


def first(a):
    a = plain(a)
    return a[(0,) * a.ndim] if a.size else a.dtype.type(0)


def same(value, shape, dtype=None):
    return np.broadcast_to(plain(value).astype(dtype or plain(value).dtype), shape).view(Same)


def matmul_shape(a, b):
    a, b, drop = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b, (len(a) == 1, len(b) == 1)
    if a[-1] != b[-2]:
        raise ValueError(f"matmul: {a} and {b}")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *(() if drop[0] else a[-2:-1]), *(() if drop[1] else b[-1:]))


class Numbers:
    """A random generator that gives large arrays of one number."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        make = getattr(self.real, name)

        def numbers(*args, **named):
            at = {"standard_normal": 0, "random": 0, "integers": 2, "uniform": 2, "exponential": 1}.get(name)
            shape = named.get("size", args[at] if at is not None and at < len(args) else ())
            count = int(np.prod(shape, dtype=np.int64)) if shape is not None else 0
            if at is None or count <= SMALL:
                return make(*args, **named)
            args, named = [*args], {k: v for k, v in named.items() if k != "size"}
            if at < len(args):
                args[at] = 1
            else:
                named["size"] = 1
            return same(make(*args, **named)[0], shape)
        return numbers


class NotAssembled(Exception):
    pass


class Compiler(harness.NoDevice):
    """target: what to compile for; ptxas: whether that is to take the PTX."""
    spec, name = "compile", "compiles alone"

    def __init__(self, target, ptxas):
        super().__init__()
        for name in ("asarray", "ascontiguousarray"):     # in this process, which is for that alone
            setattr(np, name, kept_by(getattr(np, name)))
        self.target, self.ptxas, self.programs, self.launched, self.seen = target, ptxas, {}, 0, set()
        self.memory, self.given = self.real.empty(PLACES * PLACE, "u8"), 0

    def held(self, shape, dtype):
        self.given = (self.given + 1) % PLACES
        return _Held(shape, dtype, self.memory.data_ptr() + self.given * PLACE)

    def array(self, a, dtype=None):
        a = np.asanyarray(a)
        return self.held(a.shape, dtype or tilec._numpy_dtype(a))

    def empty(self, shape, dtype):
        return self.held(shape, dtype)

    def program(self, *args, **named):
        key = (args, tuple(named.items()))
        if key not in self.programs:
            if len(self.programs) >= 8:                    # a case's, and those of the next sizes of the same case
                self.programs.clear()
            self.programs[key] = _Program(self, self.real.program(*args, **{"target": self.target, **named}))
        return self.programs[key]

    def compile(self, kernel, args, named):
        types = {t: dtype for i, t in kernel._unset if (dtype := getattr(kernel._flat(args, named)[i], "dtype", None))}
        if types:
            kernel = kernel.prog.kernel(kernel.name, **{**kernel.defines, **types})
        places = {p.name.split(".")[0]: p for p in reversed(kernel.args)}      # of several, as x.rows and x.cols, the first
        given = lambda p, v: tilec.View(tilec.Pointer(v.at), v.shape) if isinstance(v, _Held) and p.type.startswith("tensor<") else addresses(v)
        call = kernel.bind(1, *(given(p, v) for p, v in zip([*places.values()][::-1], args)), **{k: given(places[k], v) for k, v in named.items()})
        self.launched += 1
        if self.ptxas:
            self.assemble(call.ptx())

    def assemble(self, ptx):
        if hash(ptx) in self.seen:
            return
        self.seen.add(hash(ptx))
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
            f.write(ptx)
            f.flush()
            run = subprocess.run([self.ptxas, "-arch=" + re.search(r"^\.target (\w+)", ptx, re.M).group(1), "-o", os.devnull, f.name], capture_output=True, text=True)
        if run.returncode or "C75" in run.stderr or "C76" in run.stderr:
            raise NotAssembled("ptxas: " + run.stderr.strip()[:500])


def addresses(v):
    if isinstance(v, dict):
        return {k: addresses(x) for k, x in v.items()}
    return tilec.Pointer(v.at) if isinstance(v, _Held) else tuple(map(addresses, v)) if isinstance(v, (tuple, list)) else v


class _Program:
    def __init__(self, dev, real):
        self.dev, self.real, self.kernels = dev, real, {}

    def kernel(self, name=None, **defines):
        key = (name, tuple(defines.items()))
        if key not in self.kernels:
            self.kernels[key] = _Kernel(self.dev, self.real.kernel(name, **defines))
        return self.kernels[key]


class _Kernel:
    def __init__(self, dev, real):
        self.dev, self.real, self.settings = dev, real, real.settings

    def __call__(self, grid, *args, stream=None, **named):
        self.dev.compile(self.real, args, named)

    def bind(self, grid=None, *args, pdl=False, **named):
        self(grid, *args, **named)
        return harness._NoCall()


class _Held(harness._NoArray):
    def __init__(self, shape, dtype, at):
        super().__init__(tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),), dtype)
        self.at, self.nbytes = at, int(np.prod(self.shape, dtype=np.int64)) * np.dtype(tilec.DTYPES[dtype]).itemsize

    def numpy(self):
        return same(0, self.shape, tilec.DTYPES[self.dtype])

    def data_ptr(self):
        return self.at


def run_one(dev, case, size, seed):
    """Why a case's kernels do not compile; "" if they do, or should not. What a case makes of numbers that nobody has computed is its own affair, once it
    has launched; one that does not come so far with equal numbers gets random ones."""
    before = dev.launched
    for numbers in (Numbers, lambda real: real):
        try:
            refused = case.run(dev, numbers(np.random.default_rng(seed)), **size).call is None
        except (tilec.Error, NotAssembled) as e:
            return f"{type(e).__name__}: {e}"
        except Exception as e:
            refused = False
            if dev.launched == before:
                why = f"{type(e).__name__}: {e}"
                continue
        return "" if refused or dev.launched > before else "it launches nothing"
    return why
