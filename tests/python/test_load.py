"""tilec.load: kernels from files, texts and cells, where their launches go, arrays by DLPack; what objects say of themselves."""
import ctypes.util
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import types
import typing
import unittest

import numpy as np

from common import AXPY, COPY, FakeTensor, root, tilec
from tilec import dlpack, notebook


class Exchanged:
    """An array of a library that knows nothing but DLPack."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **named):
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class Elsewhere:
    """One on a GPU: a capsule made by hand."""
    given_back = 0

    def __init__(self, address, shape, strides=None, dtype="f32", kind=2):
        self.kind, self.streams = kind, []
        array = types.SimpleNamespace(shape=shape, dtype=dtype, data_ptr=lambda: address, dev=types.SimpleNamespace(is_sim=False, ordinal=0))
        self.given = dlpack._Given(array)
        if strides:
            self.steps = (ctypes.c_int64 * len(strides))(*strides)
            self.given.managed.tensor.strides = self.steps
        self.given.managed.tensor.device_type = kind
        self.back = dlpack._Deleter(self._back)
        self.given.managed.deleter = self.back

    def _back(self, _):
        Elsewhere.given_back += 1

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return dlpack._api.PyCapsule_New(self.given.address, dlpack._FRESH, dlpack._Destructor())

    def __dlpack_device__(self):
        return self.kind, 0


class Load(unittest.TestCase):
    def setUp(self):
        self.axpy = tilec.load(text="// y = a x + y,\n// by blocks\n" + AXPY, name="axpy.tile")
        self.x, self.y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)

    def right(self, times=1):
        np.testing.assert_array_equal(self.y, 1 + 2 * times * self.x)

    def test_ways(self):
        """In order and by name, with a number, a tuple and a function for the grid; const parameters by name."""
        k = self.axpy.axpy
        k[3](2, self.x, self.y, 300)
        k((3,), 2, self.x, y=self.y, n=300)
        k[lambda s: tilec.cdiv(s["n"], s["B"])](a=2, x=self.x, y=self.y, n=300, B=64)
        k.bind(lambda s: (tilec.cdiv(s["n"], s["B"]), 1), 2, self.x, self.y, n=300, B=32)()
        self.axpy["axpy"].on("sim", B=64)(5, 2, self.x, self.y, 300)
        self.right(5)
        self.assertEqual(list(self.axpy), ["axpy"])
        self.assertIn("axpy", dir(self.axpy))

    def test_file(self):
        m = tilec.load(os.path.join(root, "examples", "softmax.tile"), device="sim")
        x, y = np.random.default_rng(0).standard_normal((5, 70)).astype(np.float32), np.zeros((5, 70), np.float32)
        m.softmax[5](x, y, 5, 70, 70)
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), atol=1e-6)

    def test_imports(self):
        """What a file imports is looked for beside it."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "part.tile"), "w") as f:
                f.write("fn twice(x) {\n  return x + x;\n}\n")
            with open(os.path.join(folder, "whole.tile"), "w") as f:
                f.write('import "part.tile";\nkernel k(y: *f32) warps(1) {\n  let i = arange(0, 32);\n  store(y + i, twice(load(y + i)));\n}\n')
            y = np.ones(32, np.float32)
            tilec.load(os.path.join(folder, "whole.tile")).k[1](y)
            self.assertTrue((y == 2).all())

    def test_device(self):
        """Arrays say where a launch goes; without any, what load was told."""
        dev = tilec.Device("sim")
        x, y = dev.array(self.x), dev.array(self.y)
        self.axpy.axpy[3](2, x, y, 300)
        self.y = y.numpy()
        self.right()
        self.assertIs(self.axpy.axpy.on(dev).prog.dev, dev)
        self.assertIs(tilec.device("sim"), tilec.device("sim"))
        self.axpy.axpy[3](2, FakeTensor(self.x), FakeTensor(self.y), 300, device="sim")
        self.right(2)

    def test_type_parameters(self):
        for t in (np.float32, np.int16):
            x, y = np.arange(40).astype(t), np.zeros(40, t)
            tilec.load(text=COPY).copy[2](x, y, 40)
            np.testing.assert_array_equal(x, y)

    def test_wrong(self):
        with self.assertRaisesRegex(AttributeError, "axpy.tile has no kernel axpi; did you mean axpy"):
            self.axpy.axpi
        with self.assertRaisesRegex(KeyError, "no kernel nothing_like; there are axpy"):
            self.axpy["nothing_like"]
        with self.assertRaisesRegex(TypeError, "a path or a text, not both"):
            tilec.Device("sim").program("case.tile", text=AXPY)
        with self.assertRaisesRegex(TypeError, "a path or a text"):
            tilec.load()
        with self.assertRaisesRegex(TypeError, "has no argument z"):
            self.axpy.axpy[3](2, self.x, self.y, 300, z=1)
        with self.assertRaisesRegex(TypeError, "argument x .* expected an array of f32.* got a numpy array of f64"):
            self.axpy.axpy[3](2, self.x.astype(float), self.y, 300)
        with self.assertRaises(FileNotFoundError):
            tilec.load("/nowhere.tile")

    def test_errors_in_the_source(self):
        """An exception with what the compiler says, the place marked: of a text at once, of what depends on parameters at the launch; in full."""
        with self.assertRaises(tilec.CompileError) as caught:
            tilec.load(text="kernel k(x: *f32) {\n  store(x yy);\n}\n", name="bad.tile")
        self.assertIn(" 2 |   store(x yy);\n   |           ^~", str(caught.exception))
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.status), ("bad.tile", 2, 7))
        lines = "".join(f"  store(x, undefined_name_{i});\n" for i in range(12))
        m = tilec.load(text=f"kernel k(x: *f32) {{\n{lines}}}\n", name="many.tile")
        for launch in (lambda: m.k[1](self.x), lambda: m.k.bind(1, self.x)):
            with self.assertRaises(tilec.CompileError) as caught:
                launch()
            self.assertEqual(str(caught.exception).count("^~~"), 12)
        self.assertIsInstance(caught.exception, tilec.Error)

    def test_what_is_said(self):
        """Signatures, documentation and repr, before and behind a compilation."""
        k = self.axpy.axpy
        self.assertIn("y = a x + y,\nby blocks", k.__doc__)
        self.assertEqual(list(inspect.signature(k).parameters), ["grid", "a", "x", "y", "n", "B", "stream", "device"])
        self.assertEqual(inspect.signature(k).parameters["B"].default, 128)
        self.assertEqual(str(k), "axpy(a: f32, x: *f32, y: *f32, n: i32, const B: i32 = 128)")
        self.assertNotIn("compiled", repr(k))
        k[3](2, self.x, self.y, 300, B=64)
        self.assertRegex(repr(k), r"^<tilec.SourceKernel axpy\(.*\) of axpy.tile; compiled for sim B=64: 1 form>$")
        self.assertRegex(repr(k.on("sim", B=64)), r"^<tilec.Kernel axpy\(a: f32, x: \*f32, y: \*f32, n: i32, B = 64\) on sim; 1 form compiled>$")
        call = repr(k.bind(3, 2, self.x, self.y, 304))
        self.assertRegex(call, r"^<tilec.Call axpy on sim, grid \(3, 1, 1\): 128 threads, .*y % 16, n % 16 known; (compiled in .* ms|found in the cache)>$")
        self.assertRegex(repr(tilec.device("sim")), "^<tilec.Device sim: PTX simulator, sm_")
        self.assertEqual(repr(self.axpy), f"<tilec.Source axpy.tile: {k}>")
        self.assertEqual(repr(k.on("sim").prog), "<tilec.Program axpy.tile on sim>")

    def test_pickled(self):
        """A kernel goes to other processes as its source."""
        k = pickle.loads(pickle.dumps(self.axpy.axpy))
        k[3](2, self.x, self.y, 300)
        self.right()

    def test_other_sources(self):
        """PTX has kernels, too; which, the device says."""
        ptx = self.axpy.axpy.bind(3, 2, self.x, self.y, 300).ptx()
        tilec.load(text=ptx, name="axpy.ptx").axpy[3](2, self.x, self.y, 300)
        self.right()
        with self.assertRaises(tilec.Error):
            tilec.load(text=ptx, name="axpy.ptx").other[3](2, self.x, self.y, 300)

    def test_texts(self):
        for text in (b"kernel k() { }", 3):
            with self.assertRaisesRegex(TypeError, "the text is a str, got"):
                tilec.load(text=text)
            with self.assertRaisesRegex(TypeError, "a str; got"):
                tilec.Device("sim").program(text=text)
        with self.assertRaisesRegex(TypeError, "a str; got NoneType"):
            tilec.Device("sim").program()

    def test_tuning(self):
        """With progress: a function, and on standard error."""
        dev = tilec.Device("sim")
        text = AXPY.replace("warps(4)", "warps(4) tune(B = [64, 128])")
        told = []
        m = tilec.load(text=text, name="tuned.tile")
        x, y = dev.array(self.x), dev.array(self.y)
        k = m.axpy.tune(lambda s: tilec.cdiv(s["n"], s["B"]), 2, x, n=300, y=y, restore=("y",), progress=lambda *a: told.append(a), force=True)
        self.assertIn(k.settings()["B"], (64, 128))
        self.assertEqual(len(k.trials), 2)
        self.assertRegex(k.choice, f"^sm_90a? - axpy:(.*,)?{k.config}$")
        self.assertTrue(told and all(isinstance(what, str) and 0 <= done <= total for what, done, total in told), told)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            m.axpy.tune(5, 2, x, y, 300, progress=lambda *a: 1 / 0, force=True)
        with self.assertRaisesRegex(TypeError, "n is missing"):
            m.axpy.tune(5, 2, x, y)

    def test_cells(self):
        """%%tile, over as much of a shell as it touches."""
        shell = types.SimpleNamespace(user_ns={}, magics={})
        shell.register_magic_function = lambda f, magic_kind, magic_name: shell.magics.update({(magic_kind, magic_name): f})
        tilec.load_ipython_extension(shell)
        cell = shell.magics["cell", "tile"]
        cell("", AXPY)
        shell.user_ns["axpy"][3](2, self.x, self.y, 300)
        cell("mine", AXPY)
        shell.user_ns["mine"].axpy[3](2, self.x, self.y, 300)
        self.right(2)
        with self.assertRaises(ValueError):
            notebook.tile(shell, "two words", AXPY)


class DLPack(unittest.TestCase):
    def setUp(self):
        self.k = tilec.load(text=AXPY).axpy
        self.x, self.y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)

    def test_host(self):
        self.k[3](2, Exchanged(self.x), Exchanged(self.y), 300)
        np.testing.assert_array_equal(self.y, 1 + 2 * self.x)
        with self.assertRaisesRegex(TypeError, "got a DLPack array of f64"):
            self.k[3](2, Exchanged(self.x.astype(float)), self.y, 300)
        with self.assertRaisesRegex(ValueError, "contiguous"):
            self.k[3](2, Exchanged(np.arange(600, dtype=np.float32)[::2]), self.y, 300)

    def test_types(self):
        copy = tilec.load(text=COPY).copy
        for t in (np.float16, np.float64, np.int8, np.uint8, np.uint32, np.int64):
            x, y = np.arange(40).astype(t), np.zeros(40, t)
            copy[2](Exchanged(x), Exchanged(y), 40)
            np.testing.assert_array_equal(x, y)

    def test_borrowed(self):
        """What is read out of a capsule, and that it is given back once."""
        before, x = Elsewhere.given_back, Elsewhere(4096, (3, 5), (8, 1))
        b = dlpack.Borrowed(x, 1)
        self.assertEqual((b.dtype, b.shape, b.stride(), b.data_ptr(), b.get_device(), b.is_contiguous(), b.device, b.element_size()),
                         ("f32", (3, 5), (8, 1), 4096, 0, False, "cuda:0", 4))
        self.assertEqual(x.streams, [1])
        self.assertEqual(Elsewhere.given_back, before)
        del b
        self.assertEqual(Elsewhere.given_back, before + 1)
        self.assertTrue(dlpack.Borrowed(Elsewhere(4096, (3, 5), (5, 1))).is_contiguous())
        self.assertEqual(dlpack.Borrowed(Elsewhere(4096, (2,), dtype="bf16")).dtype, "bf16")

    def test_places(self):
        """A GPU's array is not taken by the simulator, nor memory of another kind by anything."""
        with self.assertRaisesRegex(ValueError, "expected a tensor on the host, got one on cuda:0"):
            self.k[3](2, Elsewhere(4096, (300,)), self.y, 300, device="sim")
        with self.assertRaisesRegex(ValueError, "DLPack's device 7"):
            self.k[3](2, Elsewhere(4096, (300,), kind=7), self.y, 300, device="sim")
        with self.assertRaises(BufferError):
            np.from_dlpack(tilec.Device("sim").empty(4, "f32"))


class Typed(unittest.TestCase):
    def test_hints(self):
        """Everything public has documentation, and hints for all parameters."""
        for name in tilec.__all__:
            thing = getattr(tilec, name)
            if name == "DTYPES":
                continue
            self.assertTrue(thing.__doc__, name)
            methods = {f"{name}.{n}": f for n, f in vars(thing).items() if inspect.isfunction(f) and not n.startswith("_")} if inspect.isclass(thing) else {name: thing}
            if name in ("Call", "ShapedKernel"):               # what they take over
                methods = {n: f for n, f in methods.items() if n.split(".")[1] not in ("bind", "repeat")}
            for n, f in methods.items():
                for p in inspect.signature(f).parameters.values():
                    self.assertTrue(p.name == "self" or p.annotation is not inspect.Parameter.empty, f"{n}: {p.name}")
                self.assertIsNot(inspect.signature(f).return_annotation, inspect.Signature.empty, n)
                typing.get_type_hints(f, {**vars(tilec), **vars(tilec.sources), **vars(tilec.operators)})

    def test_version(self):
        with open(os.path.join(root, "runtime", "version.h")) as f:
            text = f.read()
        wanted = [re.search(rf"TILEC_VERSION_{w} (\d+)", text)[1] for w in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(tilec.version(), ".".join(wanted))
        self.assertEqual(tilec._VERSION, tuple(map(int, wanted)))
        with open(tilec.__file__) as f:
            self.assertIn(f'f"libtilec.so.{{_VERSION[0]}}{".{_VERSION[1]}" if wanted[0] == "0" else ""}"', f.read())

    def test_library(self):
        """The library that TILEC_LIB names, and no other; where there is none, or one of another version, importing says so."""
        def imported(folder, **env):
            keep = {n: v for n, v in os.environ.items() if n != "TILEC_LIB"} | {"PYTHONDONTWRITEBYTECODE": "1"}    # two texts of a second are as old
            r = subprocess.run([sys.executable, "-c", "import tilec"], cwd=folder, env={**keep, "PYTHONPATH": folder, **env}, capture_output=True, text=True)
            self.assertEqual(r.returncode, 1)
            return r.stderr
        with tempfile.TemporaryDirectory() as folder:
            at = shutil.copytree(os.path.dirname(tilec.__file__), os.path.join(folder, "tilec"), ignore=shutil.ignore_patterns("*.so*", "bin", "__pycache__"))
            if not ctypes.util.find_library("tilec"):          # one of the system's
                self.assertRegex(imported(folder), r"ImportError: no libtilec, which TILEC_LIB can name: tried .*libtilec\.so\.\d")
            self.assertIn("tried /nowhere/libtilec.so; /nowhere/libtilec.so: cannot open", imported(folder, TILEC_LIB="/nowhere/libtilec.so"))
            self.assertIn("tilec_version", imported(folder, TILEC_LIB="libm.so.6"))
            with open(f"{at}/__init__.py") as f:
                text = f.read()
            major, minor, patch = tilec._VERSION
            for other in ((major, minor, patch + 1), (major, minor + 1, 0)):
                with open(f"{at}/__init__.py", "w") as f:
                    f.write(text.replace(f"_VERSION = {major}, {minor}, {patch}", f"_VERSION = {', '.join(map(str, other))}"))
                said = imported(folder, TILEC_LIB=tilec.lib._name)
                self.assertIn(f"ImportError: the package tilec is of version {'.'.join(map(str, other))}, and ", said)
                self.assertIn(f"of {tilec.version()}", said)


if __name__ == "__main__":
    unittest.main()
