"""runtime/approx.c gives what an H200 gave: approx.txt has digests of its results of every 8193rd argument, of edge values, and of all
arguments of 16 bits (scripts/approx_sweep.py DIR --digests=tests/numbers/approx.txt)."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path.insert(0, os.path.join(root, "scripts"))
import approx_sweep as sweep


def build(folder):
    """approx_model_steps of tests/numbers/approx_model.c, or None without a C compiler."""
    if not (cc := shutil.which("cc")):
        return None
    library = os.path.join(folder, "model.so")
    subprocess.run([cc, "-std=c11", "-O2", "-shared", "-fPIC", "-I" + os.path.join(root, "runtime"), os.path.join(root, "runtime", "approx.c"),
                    os.path.join(here, "approx_model.c"), "-o", library], check=True)
    f = ctypes.CDLL(library).approx_model_steps
    f.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]

    def results(form, first, step, count):
        out = np.empty(count, np.uint32)
        if f(form.encode(), first, step, count, out.ctypes.data):
            sys.exit(f"approx_kept: {form} is not known")
        return out
    return results


def main():
    bad, compared, forms = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        if not (results := build(folder)):
            print("approx_kept: no C compiler")
            return 77
        for line in open(os.path.join(here, "approx.txt")):
            kind, form, *numbers, = line.split()
            first, step, n, want = *map(int, numbers[:3]), [int(d, 16) for d in numbers[3:]]
            y = (np.array([results(form, int(x), 0, 1)[0] for x in sweep.edges()], np.uint32) if kind == "edge" else
                 results(form, first, step, n))
            for k, (piece, digest) in enumerate(zip(np.array_split(y, len(want)), want)):
                if zlib.crc32(piece.astype("<u4").tobytes()) != digest:
                    print(f"approx_kept: {form}: piece {k} of {len(want)} of the {kind} differs")
                    bad += 1
            compared += n
            forms.add((form, kind))
    want = {(f, k) for f in sweep.F32 + sweep.QUOTIENTS for k in ("edge", "sample")} | {(f, "half") for f in sweep.F16}
    for form, kind in want ^ forms:
        print(f"approx_kept: approx.txt has {'no' if (form, kind) in want else 'an unknown'} {kind} of {form}")
    print(f"approx_kept: {compared} results compared")
    return 1 if bad or want != forms else 0


if __name__ == "__main__":
    sys.exit(main())
