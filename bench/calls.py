"""How many instructions a bound call takes on the host, over a driver that does nothing (tests/runtime/fakecuda.c): counted, not timed, so that
a busy machine says the same. Needs valgrind and a build with its tests.

    scripts/python bench/calls.py [--build build] [--profile WHAT]

One line for each way to launch; --profile prints the functions that one of them spends its instructions in.
"""
import argparse
import operator
import os
import re
import subprocess
import sys
import tempfile
import types

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS = 10000


def ways():
    """What is counted: {name: function without arguments}."""
    sys.path.insert(0, os.path.join(root, "tests", "python"))
    import numpy as np
    from common import AXPY, FakeTensor, FakeTorch, kernel, tilec
    torch = sys.modules["torch"] = FakeTorch()
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=operator.index)     # a function of C that makes an integer, as torch's is
    dev = tilec.Device("cuda")
    k, x, y, s = kernel(dev, AXPY), dev.empty(300, "f32"), dev.empty(300, "f32"), dev.stream()
    t = FakeTensor(np.zeros(300, np.float32), ordinal=0)
    arrays, tensors = k.bind(3, 2, x, y, 300), k.bind(3, 2, t, y, 300)
    return {"nothing": lambda: None, "arrays": arrays, "arrays, stream given": lambda: arrays(s), "tensors": tensors, "not bound": lambda: k(3, 2, x, y, 300)}


def repeat(what, n):
    f = ways()[what]
    for _ in range(10):
        f()
    for _ in range(n):
        f()


def count(what, n, env, folder):
    """Instructions of a process that makes n calls, and where callgrind wrote them."""
    out = os.path.join(folder, "out")
    run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, __file__, "--repeat", what, str(n)], env=env,
                         capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        sys.exit(run.stderr)
    return int(found[1]), out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.path.join(root, "build"))
    p.add_argument("--profile", metavar="WHAT")
    p.add_argument("--repeat", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.repeat:
        repeat(a.repeat[0], int(a.repeat[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ("lib/libtilec.so", "lib/_tilec.abi3.so", "tests/runtime/fake/libcuda.so.1"):     # valgrind fails at LLVM's debug info
            subprocess.run(["strip", "-g", "-o", os.path.join(folder, os.path.basename(name)), os.path.join(a.build, name)], check=True)
        os.symlink("libtilec.so", os.path.join(folder, os.readlink(os.path.join(a.build, "lib/libtilec.so"))))
        for extension in ("1", "0"):
            env = {**os.environ, "TILEC_EXTENSION": extension, "TILEC_CACHE": "0", "PYTHONHASHSEED": "0", "TILEC_LIB": f"{folder}/libtilec.so",
                   "LD_LIBRARY_PATH": folder}
            for what in [a.profile] if a.profile else ("nothing", "arrays", "arrays, stream given", "tensors", "not bound"):
                none, many = (count(what, n, env, folder) for n in (0, CALLS))
                print(f"{'extension' if extension == '1' else 'ctypes':10}{what:24}{(many[0] - none[0]) / CALLS:8.1f} instructions a call", flush=True)
                if a.profile:
                    print(subprocess.run(["callgrind_annotate", many[1]], capture_output=True, text=True).stdout[:6000])


if __name__ == "__main__":
    main()
