"""scripts/approx_sweep.py on the simulator: its files hold what the device computes, its proofs count, --check finds
what a model has wrong.

approx.py --build BUILD"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(sys.argv[sys.argv.index("--build") + 1])
script = os.path.join(root, "scripts", "approx_sweep.py")
env = {**os.environ, "TILEC_LIB": os.path.join(build, "lib", "libtilec.so")}
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import approx_kept

spec = importlib.util.spec_from_file_location("approx_sweep", script)
sweep = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sweep)

# Right for cos and rcp, but for one result of rcp; wrong for every nan of tanh; knows no lg2.
MODEL = """
import ctypes
import numpy as np
f = ctypes.CDLL(%r).approx_model
f.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]
def model(form, bits):
    out = np.empty(len(bits), np.uint32)
    if form.startswith("lg2") or f(form.encode(), int(bits[0]), len(bits), out.ctypes.data):
        return None
    if form == "tanh.approx.f16":
        return np.where(out == 0x7fff, np.uint32(0x7ffe), out)
    return out ^ (bits == 0x40001234).astype(np.uint32) if form == "rcp.approx.f32" else out
"""


def run(folder, *args):
    p = subprocess.run([sys.executable, script, folder, "--device=sim", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
    return p.returncode, p.stdout


def expect(good, what):
    if not good:
        sys.exit(f"approx: {what}")


def packing():
    """Runs, ramps, noise, wraps, and lengths that are no multiple of a block."""
    rng = np.random.default_rng(1)
    for y in (np.zeros(5, np.uint32), np.arange(10000, dtype=np.uint32), rng.integers(0, 1 << 32, 4097, np.uint32),
              np.array([0xFFFFFFFF], np.uint32), (np.arange(70000) * 13 // 8).astype(np.uint32),
              np.cumsum(rng.integers(0, 256, 9000)).astype(np.uint32), rng.integers(0, 2, 8192, np.uint32) << np.uint32(31)):
        expect((sweep.unpack(sweep.pack(y)) == y).all(), f"{len(y)} numbers from {y[0]} on come back changed")


def swept(folder, results):
    rc, out = run(folder)
    expect(rc == 0, out)
    kinds, binades = {}, {}
    for kind, form, x, y in sweep.read(folder):
        kinds.setdefault(form, set()).add(kind)
        expect(len(x) == len(y), f"{form} {kind}: {len(x)} inputs, {len(y)} results")
        if kind == "binade":
            binades.setdefault(form, []).append(int(x[0]) >> 23)
        want = (np.array([results(form, int(v), 0, 1)[0] for v in x], np.uint32) if kind == "edge" else
                results(form, int(x[0]), int(x[1]) - int(x[0]), len(x)))
        expect((want == y).all(), f"{form} {kind}: {np.count_nonzero(want != y)} of {len(x)} are not those of runtime/approx.c")
    expect(kinds == {**{f: {"edge", "sample"} | ({"binade"} if f in dict(sweep.DOMAINS) else set()) for f in sweep.F32 + sweep.QUOTIENTS},
                     **{f: {"half"} for f in sweep.F16}}, f"kinds: {kinds}")
    for form, wanted in sweep.DOMAINS:
        expect(set(wanted) <= set(binades[form]), f"{form}: binades {binades[form]}")
    # Some of what holds of the hardware, and something that does not.
    expect("rcp.approx.ftz.f32     scaled from one binade                      0 differ" in out, out)
    expect("ex2.approx.ftz.f32     of 2^-23 truncated, ones' complement          0 differ" in out, out)
    expect("tanh.approx.bf16       the f32 form, rz                            0 differ" in out, out)
    expect("sqrt.approx.ftz.f32    rcp of rsqrt                               0 differ" not in out, "a false proof holds")


def checked(folder):
    model = os.path.join(folder, "model.py")
    with open(model, "w") as f:
        f.write(MODEL % os.path.join(folder, "model.so"))
    rc, out = run(folder, f"--check={model}", "--step=16384", "--only=rcp.approx.f32,cos.approx.f32,tanh.approx.f16,lg2.approx.f32")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    found = re.search("    0x40001234: 0x([0-9a-f]{8}), the model 0x([0-9a-f]{8})", out)
    expect(rc == 1 and found and int(found[1], 16) ^ int(found[2], 16) == 1, out)
    expect(lines["rcp.approx.f32"].split()[1:5] == ["262144", "compared", "1", "differ"], out)
    expect(lines["cos.approx.f32"].split()[3:5] == ["0", "differ"], out)
    expect(lines["tanh.approx.f16"].split()[3:5] == ["2046", "differ"], out)
    expect("not in the model" in lines["lg2.approx.f32"], out)


packing()
with tempfile.TemporaryDirectory() as folder:
    if not (results := approx_kept.build(folder)):
        print("approx: no C compiler")
        sys.exit(77)
    swept(folder, results)
    checked(folder)
print("approx: passed")
