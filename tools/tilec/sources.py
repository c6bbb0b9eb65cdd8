"""Kernels straight from a file or a text: load. The device follows from the arguments, const and type parameters are keyword arguments."""
from __future__ import annotations

import ctypes as C
import inspect
import os
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from . import (_ARRAY, _DLPACK, _INT, _FLOAT, _BOOL, _NUMPY, _TENSOR, _VIEW, Call, CompileError, Device, Kernel, Program, _Dispatcher, _kind, _p, _value, grouped, is_fake, lib, traced)

Grid = Union[int, Tuple[int, ...], List[int], Callable[[Dict[str, Any]], Any]]


class _Result(C.Structure):
    """TilecResult, as far as it is looked at."""
    _fields_ = [("status", C.c_int), ("output", C.c_char_p), ("output_len", C.c_size_t), ("diagnostics", C.c_char_p)]


lib.tilec_describe.restype, lib.tilec_describe.argtypes = C.POINTER(_Result), [C.c_char_p, C.c_char_p, C.c_size_t, _p]
lib.tilec_result_free.restype, lib.tilec_result_free.argtypes = None, [_p]
lib.tilec_suggest.restype, lib.tilec_suggest.argtypes = C.c_char_p, [C.c_char_p, C.POINTER(C.c_char_p), C.c_size_t]

_devices: Dict[Optional[str], Device] = {}
_opening = threading.Lock()


def device(spec: Optional[str] = None) -> Device:
    """The device called so ("cuda", "cuda:1", "sim"; None: the GPU if there is one, else the simulator), opened once."""
    with _opening:
        if spec not in _devices:
            dev = Device(spec)
            _devices[spec] = _devices.setdefault(dev.spec, dev)
        return _devices[spec]


class Parameter:
    """A parameter of a kernel: name, type ("*f32", "i32", "tensor<f16, 2>", or of a const or type parameter what it may be set to), kind ("argument",
    "const", "type") and, of the last two, the default's text or None."""

    def __init__(self, name: str, type: str, kind: str, default: Optional[str] = None) -> None:
        self.name, self.type, self.kind, self.default = name, type, kind, default

    def __repr__(self) -> str:
        word = "" if self.kind == "argument" else self.kind + " "
        return f"{word}{self.name}{'' if self.kind == 'type' else ': ' + self.type}{'' if self.default is None else ' = ' + self.default}"


def _described(name: str, text: str) -> Dict[str, List[Parameter]]:
    """{kernel: its parameters}, or CompileError."""
    data = text.encode()
    r = lib.tilec_describe(name.encode(), data, len(data), None)
    if not r:
        raise MemoryError("tilec_describe")
    try:
        if r.contents.status:
            raise CompileError.of(r.contents.diagnostics.decode(errors="replace"))
        lines = r.contents.output.decode().splitlines()
    finally:
        lib.tilec_result_free(r)
    kernels: Dict[str, List[Parameter]] = {}
    for line in lines:
        word, name, *rest = line.split(" ", 3)
        if word == "kernel":
            params = kernels[name] = []
        elif word == "param":
            params.append(Parameter(name, ("*" if rest[0] == "pointer" else "") + rest[1], "argument"))
        elif word in ("const", "type"):
            value = rest[-1]
            params.append(Parameter(name, rest[0] if word == "const" else "type", word, None if value == "-" else value))
    return kernels


def _comments(text: str, kernel: str) -> str:
    """The comment in front of a kernel."""
    m = re.search(rf"((?:^[ \t]*//.*\n)+)[ \t]*(?:@\w+.*\n)*kernel\s+{re.escape(kernel)}\b", text, re.M)
    return "\n".join(line.strip().lstrip("/").strip() for line in m[1].splitlines()) if m else ""


class Source:
    """A source text with its kernels: source.softmax, source["softmax"], or what iterating gives by name."""

    def __init__(self, name: str, text: str, device: Union[None, str, Device] = None, **options: Any) -> None:
        self.name, self.text, self._device, self._options = name, text, device, options
        self._programs: Dict[Device, Program] = {}
        self._described = None if name.endswith((".ptx", ".tir")) else _described(name, text)
        self._kernels: Dict[str, SourceKernel] = {n: SourceKernel(self, n) for n in self._described or ()}
        for n, k in self._kernels.items():                 # found without a detour, but where the name is one of ours
            if not hasattr(type(self), n):
                self.__dict__.setdefault(n, k)

    def __getitem__(self, name: str) -> "SourceKernel":
        if name not in self._kernels:
            if self._described is not None:
                known = (C.c_char_p * max(len(self._kernels), 1))(*[n.encode() for n in self._kernels])
                near = lib.tilec_suggest(name.encode(), known, len(self._kernels))
                hint = f"; did you mean {near.decode()}?" if near else f"; there are {', '.join(self._kernels) or 'none'}"
                raise KeyError(f"{self.name} has no kernel {name}{hint}")
            self._kernels[name] = SourceKernel(self, name)     # the device says whether it is there
        return self._kernels[name]

    def __getattr__(self, name: str) -> "SourceKernel":
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as x:
            raise AttributeError(x.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._kernels]

    def __reduce__(self):
        dev = self._device
        return _source_again, (self.name, self.text, dev.spec if isinstance(dev, Device) else dev, self._options)

    def __repr__(self) -> str:
        return f"<tilec.Source {self.name}: {', '.join(map(str, self._kernels.values())) or 'no kernels'}>"

    def program(self, dev: Union[None, str, Device] = None) -> Program:
        """The program on a device, where its diagnostics are."""
        dev = self._device if dev is None else dev
        dev = dev if isinstance(dev, Device) else device(dev)
        if dev not in self._programs:
            self._programs[dev] = dev.program(text=self.text, name=self.name, **self._options)
        return self._programs[dev]


class SourceKernel(_Dispatcher):
    """A kernel of a Source. kernel[grid](...) launches it: arguments in order or by name, const and type parameters by name.

    The device is that of the arrays that are given: torch tensors and what DLPack exchanges on their GPU, tilec's Arrays on theirs, numpy arrays
    and tensors of the host on the simulator. device= names another; stream= and pdl= are as in the package's own words. A grid is a number, up to
    three, or a function of a dict that holds the const and type parameters and the numbers that are given; without one, kernel(...), it is what the
    kernel's grid clause says."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name, self.__name__ = source, name, name
        params = None if source._described is None else source._described[name]
        self.parameters: Tuple[Parameter, ...] = tuple(params or ())
        self._settable = frozenset(p.name for p in self.parameters if p.kind != "argument")
        self._bound: Dict[Any, Kernel] = {}
        self.__doc__ = "\n\n".join(t for t in (str(self), _comments(source.text, name), SourceKernel.__doc__) if t)

    @property
    def __signature__(self) -> inspect.Signature:
        keyword, arguments = inspect.Parameter.KEYWORD_ONLY, [p for p in self.parameters if p.kind == "argument"]
        out = [inspect.Parameter("grid", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        out += [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n, _ in grouped(arguments)]
        out += [inspect.Parameter(p.name, keyword, default=inspect.Parameter.empty if p.default is None else _value(p.default)) for p in self.parameters if p.kind != "argument"]
        return inspect.Signature(out + [inspect.Parameter(n, keyword, default=None) for n in ("stream", "device")])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.parameters))})" if self.parameters else self.name

    def __repr__(self) -> str:
        compiled = [f"{k.prog.dev.spec}{''.join(f' {n}={v}' for n, v in k.defines.items())}: {k.forms} form{'s' if k.forms != 1 else ''}"
                    for k in dict.fromkeys(self._bound.values())]
        return f"<tilec.SourceKernel {self} of {self.source.name}{'; compiled for ' if compiled else ''}{', '.join(compiled)}>"

    def __reduce__(self):
        return _again, (self.source, self.name)

    def on(self, dev: Union[None, str, Device] = None, **defines: Any) -> Kernel:
        """The kernel on a device with these const and type parameters set."""
        program = self.source.program(dev)
        key = (program.dev, *sorted(defines.items()))
        k = self._bound.get(key)
        if k is None:
            k = self._bound[key] = program.kernel(self.name, **defines)
        return k

    def _sorted(self, args: Tuple[Any, ...], named: Dict[str, Any], dev: Union[None, str, Device]) -> Tuple[Kernel, Dict[str, Any]]:
        """The kernel on the device that the arguments are on, and what of the keyword arguments is not for the compiler."""
        defines = {n: named[n] for n in named if n in self._settable} if named and self._settable else {}
        if defines:
            named = {n: v for n, v in named.items() if n not in defines}
        if dev is None and self.source._device is None:
            dev = next((d for v in (*args, *named.values()) if (d := _device_of(v)) is not None), None)
        return self.on(dev, **defines), named

    def _grid(self, grid: Optional[Grid], kernel: Kernel, args: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
        if not callable(grid):
            return grid
        given = {**dict(zip((n for n, _ in kernel._groups), args)), **named}
        numbers = {n: v for n, v in given.items() if _kind(v) in (_INT, _FLOAT, _BOOL)}
        return grid({**kernel.settings(), **numbers})

    def _launch(self, grid: Optional[Grid] = None, *args: Any, stream: Any = None, pdl: bool = False, device: Union[None, str, Device] = None, **named: Any) -> None:
        k, rest = self._sorted((grid, *args), named, device)
        grid, args = k._given(grid, args, rest)
        k(self._grid(grid, k, args, rest), *args, stream=stream, pdl=pdl, **rest)
        if device is None and not named and not traced(args):
            self._follow(k._typed(k._flat(args, {})))      # the next launch like this one goes the short way

    def bind(self, grid: Optional[Grid] = None, *args: Any, pdl: bool = False, device: Union[None, str, Device] = None, **named: Any) -> Call:
        """A launch that is checked and prepared once: call() costs what the driver's launch costs."""
        k, named = self._sorted((grid, *args), named, device)
        grid, args = k._given(grid, args, named)
        return k.bind(self._grid(grid, k, args, named), *args, pdl=pdl, **named)

    def tune(self, grid: Optional[Grid], *args: Any, device: Union[None, str, Device] = None, **options: Any) -> Kernel:
        """The fastest of the configurations that the kernel lists (search=True: of what is near to what it says), as a Kernel. options: const and
        type parameters, arguments by name, and what Program.tune takes: restore, progress, search, force, stream."""
        arguments = [n for n, _ in grouped([p for p in self.parameters if p.kind == "argument"])]
        given = {**dict(zip(arguments, args)), **{n: options.pop(n) for n in arguments if n in options}}
        if len(args) > len(arguments) or (missing := [n for n in arguments if n not in given]):
            raise TypeError(f"kernel {self.name} takes {', '.join(arguments)}" + ("" if len(args) > len(arguments) else f"; {', '.join(missing)} is missing"))
        values = [given[n] for n in arguments]
        if device is None and self.source._device is None:
            device = next((d for v in values if (d := _device_of(v)) is not None), None)
        numbers = {n: v for n, v in given.items() if _kind(v) in (_INT, _FLOAT, _BOOL)}
        grids = (lambda settings: grid({**settings, **numbers})) if callable(grid) else grid
        return self.source.program(device).tune(self.name, grids, *values, **options)


def _source_again(name: str, text: str, dev: Optional[str], options: Dict[str, Any]) -> Source:
    return Source(name, text, dev, **options)


def _again(source: Source, kernel: str) -> SourceKernel:
    return source[kernel]


def _device_of(v: Any) -> Union[None, str, Device]:
    """Where an argument's memory is; None of what has none."""
    k = _kind(v)
    if k == _ARRAY:
        return v.dev
    if k == _VIEW:
        return _device_of(v.of)
    if k == _NUMPY:
        return "sim"
    if k == _TENSOR:
        n = -1 if is_fake(v) else v.get_device()
        return "sim" if n < 0 else f"cuda:{n}"
    if k == _DLPACK:
        kind, n = v.__dlpack_device__()
        return {1: "sim", 2: f"cuda:{n}", 3: f"cuda:{n}", 13: f"cuda:{n}"}.get(int(kind))
    return None


def load(path: Union[None, str, "os.PathLike[str]"] = None, *, text: Optional[str] = None, name: Optional[str] = None,
         device: Union[None, str, Device] = None, **options: Any) -> Source:
    """The kernels of a .tile file, or of a text:

        softmax = tilec.load("softmax.tile").softmax
        softmax[rows](x, y, rows, n, stride, BLOCK=1024)

    name is what messages call a text. device: where all launches go, instead of where their arguments are. options are those of
    Device.program. A text that does not follow the grammar raises CompileError, with the place marked; so does the first launch of a kernel of
    whose body something is wrong."""
    if (path is None) == (text is None):
        raise TypeError("load takes a path or a text")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"load: the text is a str, got {type(text).__name__}")
    if path is not None:
        path = os.fspath(path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
    return Source(name or path or "<string>", text, device, **options)
