"""What people and tools see of the package: every public name has a docstring, and every parameter and result of its functions a type that
resolves."""
import importlib
import inspect
import pkgutil
import types
import typing
import unittest

from common import tilec

PLAIN = {"self", "cls"}


def modules():
    yield tilec
    for m in pkgutil.iter_modules(tilec.__path__, "tilec."):
        if not m.name.rpartition(".")[2].startswith("_"):
            yield importlib.import_module(m.name)


def functions():
    """(name, what it is) of all public functions, classes, methods and properties."""
    for module in modules():
        for name, v in vars(module).items():
            if name.startswith("_") or getattr(v, "__module__", "") != module.__name__:
                continue
            if isinstance(v, types.FunctionType):
                yield f"{module.__name__}.{name}", v
            elif inspect.isclass(v):
                yield f"{module.__name__}.{name}", v
                for n, member in vars(v).items():
                    f = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                    if isinstance(f, types.FunctionType) and (not n.startswith("_") or n == "__init__"):
                        yield f"{module.__name__}.{name}.{n}", f


class Hints(unittest.TestCase):
    maxDiff = None

    def test_docstrings(self):
        bare = [name for name, f in functions() if not name.endswith("__init__") and not inspect.getdoc(f)]
        self.assertEqual(bare, [])
        self.assertTrue(all(inspect.getdoc(m) for m in modules()))

    def test_types(self):
        untyped, found = [], 0
        for name, f in functions():
            if inspect.isclass(f):
                continue
            found += 1
            signature, hints = inspect.signature(f), typing.get_type_hints(f)
            missing = [p for p in signature.parameters if p not in hints and p not in PLAIN]
            if missing or "return" not in hints:
                untyped.append(f"{name}: {', '.join(missing + ['the result'] * ('return' not in hints))}")
        self.assertEqual(untyped, [])
        self.assertGreater(found, 80)


if __name__ == "__main__":
    unittest.main()
