"""scripts/approx_fit.py against an emulated unit whose tables, squarers, biases and handling of arguments it does not know, and
runtime/approx.c with the unit's tables.

approx_fit.py: tables of 17-bit arguments, in seconds; with --full whole sweeps of rcp, rsqrt, ex2, lg2, sin, cos and tanh, through files, in
minutes."""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "scripts"))
import approx_def
import approx_fit as fitter
import approx_sweep as sweep


def expect(good, what):
    if not good:
        sys.exit(f"approx_fit: {what}")


def squared(x, bits, kind, cut, shift):
    """A squarer, product by product of two bits. folded: a pair of different bits is one product, a column higher."""
    total = np.zeros_like(x)
    for i in range(bits):
        for j in range(bits):
            column, there = i + j, True
            if kind == "folded" and i != j:
                column, there = i + j + 1, i < j
            if there and column >= cut:
                total += (x >> i & x >> j & 1) << column
    return total >> shift


class Unit:
    """A table of a function on [0, 1): whole coefficients C0 2^a + C1 x + C2 S(x) 2^c + bias, in units of 2^-places."""

    def __init__(self, f, n, m, squarer, places, a, c, bias):
        self.n, self.bits, self.a, self.c, self.bias, self.squarer = n, n - m, a, c, bias, squarer
        x = np.arange(1 << self.bits, dtype=np.int64)
        self.s = squared(x, self.bits, *squarer)
        nodes = (1 - np.cos(np.pi * (np.arange(129) + 0.5) / 129)) / 2
        at = np.unique((nodes * (1 << self.bits)).astype(int))
        self.rows = np.array([self._row(f, i, at, places) for i in range(1 << m)])

    def _row(self, f, i, at, places):
        y = np.ldexp(f(np.ldexp(((i << self.bits) + at).astype(float), -self.n)), places)
        basis = np.stack([np.ones(len(at)), at, self.s[at] << self.c], 1).astype(float)
        c2 = round(np.linalg.lstsq(basis, y, rcond=None)[0][2])
        y = y - c2 * basis[:, 2]
        c1 = round(np.linalg.lstsq(basis[:, :2], y, rcond=None)[0][1])
        y = y - c1 * at
        return max(0, round(((y.max() + y.min()) / 2 - self.bias) / (1 << self.a))), c1, c2

    def total(self, x):
        i, low = x >> self.bits, x & (1 << self.bits) - 1
        return (self.rows[i, 0] << self.a) + self.rows[i, 1] * low + (self.rows[i, 2] * self.s[low] << self.c) + self.bias


def same(model, unit, table, what):
    """The model is the unit's: every sum has the same bits where they show, C1 and C2 are the unit's."""
    rows = np.array(model["tables"][table])
    expect((rows[:, 2] << model["c2_shift"] == unit.rows[:, 2] << unit.c).all(), f"{what}: other C2")
    expect((rows[:, 1] << model["c1_shift"] == unit.rows[:, 1]).all(), f"{what}: other C1")
    expect(model["c0_shift"] >= unit.a, f"{what}: C0 of 2^{model['c0_shift']}, not of 2^{unit.a}")


def programs():
    """The least violation is that of every choice of bounds: of a line by all triples."""
    rng = np.random.default_rng(3)
    x = np.arange(12.0)
    for _ in range(20):
        low = rng.normal(size=12)
        high = low + rng.uniform(0, 0.5, 12)
        _, e = fitter.chebyshev([np.ones(12), x], low, high)
        between = lambda v, i, j, k: np.interp(x[j], [x[i], x[k]], [v[i], v[k]])
        best = max(between(low, i, j, k) - high[j] if up else low[j] - between(high, i, j, k)
                   for i in range(12) for j in range(i + 1, 12) for k in range(j + 1, 12) for up in (0, 1)) / 2
        expect(abs(e - best) < 1e-5, f"a line misses by {e}, not by {best}")


def small():
    units = [("1 / (1 + x)", lambda x: 1 / (1 + x), 5, ("rows", 10, 11), 30, 9, 0, 0x1B3, 20),
             ("2^x", lambda x: 2**x, 4, ("folded", 12, 13), 30, 8, 1, 0x0E1, 20),
             ("log2(1 + x)", lambda x: np.log2(1 + x), 5, ("exact", 0, 10), 29, 6, 0, 0x29, 20)]
    for what, f, m, squarer, places, a, c, bias, shown in units:
        unit = Unit(f, 17, m, squarer, places, a, c, bias)
        x = np.arange(1 << 17, dtype=np.int64)
        y = unit.total(x) >> places - shown
        section = fitter.Section("t", 17, x, y.astype(float), y + 1.0)
        model, text = fitter.fit([section], least=3)
        expect(model, f"{what}: {text}")
        expect(model["m"] == m, f"{what}: {text}")
        same(model, unit, "t", what)
        got = fitter.total(model, "t", x)[0] >> -model["unit"]
        expect((got == y).all(), f"{what}: {np.count_nonzero(got != y)} sums differ")
    # One result that is off by more than a unit: no model may claim to explain it.
    y = y.copy()
    y[70001] += 3
    model, text = fitter.fit([fitter.Section("t", 17, x, y.astype(float), y + 1.0)], least=4, most=6)
    expect(model is None and "nothing of this form fits" in text, f"a wrong result is explained: {text}")


# ---- whole sweeps ----

def cut(t, place):
    """The f32 bits of whole numbers of 2^place, cut to 24 significant bits."""
    v = t.astype(float)
    e = np.frexp(v)[1]
    v = np.where(e > 24, np.ldexp(np.floor(np.ldexp(v, 24 - e)), e - 24), v)
    return np.ldexp(v, place).astype(np.float32).view(np.uint32)


def emulated():
    """Tables of an emulated unit: {name: Unit}; (form, binade, its results of arguments x) come from `results`."""
    rows = "rows", 18, 19
    sin = Unit(lambda x: np.sin(x * np.pi / 2), 23, 6, rows, 37, 11, 0, 0)
    return {"rcp": Unit(lambda x: 1 / (1 + x), 23, 7, ("rows", 16, 17), 39, 13, 0, 0x47E7),
            "rsqrt 127": Unit(lambda x: 1 / np.sqrt(1 + x), 23, 6, ("folded", 18, 19), 39, 13, 1, 0x3FFF),
            "rsqrt 128": Unit(lambda x: 1 / np.sqrt((1 + x) * 2), 23, 6, ("folded", 18, 19), 39, 13, 1, 0x3FFF),
            "ex2": Unit(lambda x: 2**x, 23, 6, rows, 38, 13, 0, 0x77E2),
            "lg2": Unit(lambda x: np.log2(1 + x), 23, 6, rows, 38, 12, 1, 0x3345),
            "sin": sin, "cos": sin,
            **{f"tanh {b}": Unit(lambda x, b=b: np.tanh(np.ldexp(1 + x, b - 127)), 17 + p, p, rows, 39, 15, 1, 0) for b, p in PARTS.items()}}


PARTS = {119: 0, 120: 0, 121: 0, 122: 1, 123: 1, 124: 2, 125: 2, 126: 2, 127: 3, 128: 4, 129: 3}     # tanh: rows of a binade, as powers of two


def results(units, x):
    """(form, binade, what the emulated unit gives for mantissas x, among them 0). ex2 rounds its argument to even and negates by ones'
    complement, as lg2 does its sum; 1 has an exact reciprocal and root."""
    for b, name in ((127, "rcp"), (127, "rsqrt 127"), (128, "rsqrt 128")):
        y = cut(units[name].total(x) >> 15, -24)
        yield f"{name.split()[0]}.approx.ftz.f32", b, np.where((x == 0) & (b == 127), np.uint32(0x3F800000), y)
    for b in (127, 126, 383, 382, 125, 381, 110, 366):
        shift = 127 - (b & 255)
        q = (x | 0x800000) + ((1 << shift - 1) - 1 + ((x | 0x800000) >> shift & 1) if shift else 0) >> shift
        v = (-q - (q & 0x7FFFFF != 0) if b >= 256 else q)
        table = cut(units["ex2"].total(v & 0x7FFFFF) >> 15, -22).astype(np.int64)
        yield "ex2.approx.ftz.f32", b, (table + ((v >> 23) - 1 << 23)).astype(np.uint32)
    for b, p in PARTS.items():
        yield "tanh.approx.f32", b, cut(units[f"tanh {b}"].total(x >> 6 - p), -39)
    yield "tanh.approx.f32", 118, (x | 118 << 23).astype(np.uint32)
    yield "tanh.approx.f32", 130, np.full(len(x), 0x3F800000, np.uint32)
    t = np.maximum(units["lg2"].total(x) >> 2, 0)
    yield "lg2.approx.ftz.f32", 127, cut(np.where(x == 0, 0, t), -36)
    yield "lg2.approx.ftz.f32", 126, cut((1 << 36) - 1 - t, -36) | np.uint32(1 << 31)
    for form, quarter in (("sin", 0), ("cos", 1)):
        for b in range(120, 129):
            significand = (x | 0x800000) * 0xA2F983
            least = 127 - b + 23 + 26 - 25                # of the product, below the place 2^-25 of a turn
            top = np.where(significand >> 47, 24, 23)     # the product has 24 bits from here on; what is below is cut
            t = significand >> top << top
            q = (t + (1 << least - 1) - 1 + (t >> least & 1) >> least) + (quarter << 23)
            back = np.where(q >> 23 & 1, ~q, q) & 0x7FFFFF
            y = cut(np.maximum(units["sin"].total(back), 0), -37)
            yield f"{form}.approx.ftz.f32", b, y | (q >> 24 & 1).astype(np.uint32) << np.uint32(31)


def models(units):
    """The units as approx_fit.py writes them."""
    out = {}
    for name, u in units.items():
        name, _, table = name.partition(" ")
        kind, low, shift = u.squarer
        m = out.setdefault(name, dict(
            m=23 - u.bits, n=23, squarer=dict(bits=u.bits, kind=kind, cut=low, shift=shift, add=0, centred=False), c0_shift=u.a, c1_shift=0,
            c2_shift=u.c, bias=u.bias, tables={}))
        m["tables"][table or ("quadrant" if name in ("sin", "cos") else "127")] = u.rows.tolist()
    one = {"apart": {"127": 0x3F800000}, "unit": -15, "unit_exponent": -24, "grid": -24}
    out["rcp"].update(one)
    out["rsqrt"].update(one)
    out["ex2"].update(unit=-15, unit_exponent=-22, grid=-22, argument=dict(how="even", complement="ones"))
    out["lg2"].update(unit=-14, unit_exponent=-24, rounded=False, grid=-36, below=dict(complement="ones", place=2))
    rows = [row for b in PARTS for row in out["tanh"]["tables"][str(b)]]
    out["tanh"].update(m=0, n=17, unit=0, unit_exponent=-39, binade=min(PARTS), parts=list(PARTS.values()), tables={"binades": rows})
    for name in ("sin", "cos"):
        out[name].update(unit=-13, unit_exponent=-24, rounded=False, grid=-37, places=25, how="even", back="ones")
    return out


def in_c():
    """runtime/approx.c with tables of the emulated unit gives the same bits."""
    if not (cc := shutil.which("cc")):
        print("approx_fit: no C compiler, runtime/approx.c is not tried")
        return
    units, x = emulated(), np.append(np.arange(0, 1 << 23, 4093), [1, 2, 3, (1 << 23) - 2, (1 << 23) - 1]).astype(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        tables, library = os.path.join(folder, "test.def"), os.path.join(folder, "model.so")
        with open(tables, "w") as f:
            f.write(approx_def.text(models(units)))
        subprocess.run([cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f'-DAPPROX_DEF="{tables}"',
                        "-I" + os.path.join(root, "runtime"), os.path.join(root, "runtime", "approx.c"),
                        os.path.join(root, "tests", "numbers", "approx_model.c"), "-o", library], check=True)
        model = sweep.Model(library)
        for form, b, want in results(units, x):
            got = np.array([model.results(form, b << 23 | int(m), 1)[0] for m in x])
            bad = np.flatnonzero(got != want)
            expect(len(bad) == 0, f"{form} binade {b}: {len(bad)} of {len(x)} differ in C, " + (
                f"{x[bad[0]]:#x} gives {got[bad[0]]:#x}, not {want[bad[0]]:#x}" if len(bad) else ""))
        edge = {"rcp.approx.f32": [(0, 0x7F800000), (0x80000000, 0xFF800000), (0x7F800000, 0), (0xFF800001, 0x7FFFFFFF),
                                   (0x3F800000, 0x3F800000), (0x00400000, 0x7F000000), (0x7F000000, 0x00400000)],
                "rcp.approx.ftz.f32": [(0x00400000, 0x7F800000), (0x7F000000, 0)],
                "rsqrt.approx.f32": [(0x00200000, 0x5F800000), (0xBF800000, 0x7FFFFFFF)],
                "ex2.approx.f32": [(0xFF800000, 0), (0x7F800000, 0x7F800000), (0xC3800000, 0)],
                "lg2.approx.ftz.f32": [(0, 0xFF800000), (0x00400000, 0xFF800000), (0x3F800000, 0), (0x80000001, 0xFF800000)],
                "sin.approx.f32": [(0x7F800000, 0x7FFFFFFF)],
                "tanh.approx.f32": [(0x80000001, 0x80000001), (0xFF800000, 0xBF800000), (0x7FC00000, 0x7FFFFFFF), (0xC1000000, 0xBF800000)],
                "tanh.approx.f16": [(0x8001, 0x8001), (0xFC00, 0xBC00), (0x7C01, 0x7FFF)],
                "ex2.approx.f16": [(0x5000, 0x7C00), (0x7C00, 0x7C00), (0xFC00, 0), (0xCF00, 0), (0xFC01, 0x7FFF)],
                "ex2.approx.ftz.bf16": [(0x4380, 0x7F80), (0xC380, 0), (0x7F81, 0x7FFF)]}
        for form, pairs in edge.items():
            for a, want in pairs:
                got = int(model.results(form, a, 1)[0])
                expect(got == want, f"{form} of {a:#010x} is {got:#010x}, not {want:#010x}")
        for form in ("sqrt.approx.f32", "rsqrt.approx.f16"):
            expect(model.results(form, 0, 1) is None, f"{form} has no tables and is known")


def full():
    import json
    with tempfile.TemporaryDirectory() as folder:
        units, files, x = emulated(), sweep.Files(folder, 1), np.arange(1 << 23, dtype=np.int64)
        for form, b, y in results(units, x):
            files.add("binade", form, b << 23, 1, len(x), sweep.pack(y))
        names = sorted({n.split()[0] for n in units})
        p = subprocess.run([sys.executable, os.path.join(root, "scripts", "approx_fit.py"), folder, "--only=" + ",".join(names)])
        expect(p.returncode == 0, "something is not explained")
        models = json.load(open(os.path.join(folder, "approx.json")))
        for name, unit in units.items():
            function, _, table = name.partition(" ")
            same(models[function], unit, table or {"rcp": "127", "ex2": "127", "lg2": "127"}.get(name, "quadrant"), name)


programs()
small()
in_c()
if "--full" in sys.argv:
    full()
print("approx_fit: passed")
