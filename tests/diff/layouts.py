"""layouts.py BUILD [--kernels N]: what crosses threads, where an extent ends exactly at a warp's or a lane's first element, and under
layouts that no kernel asks for by itself. Each kernel goes through check_kernel: the simulator must say what the interpreter says, and
report no fault.

Layouts are drawn: bits of registers, lanes and warps in any order along any axis, sums of them, and copies of elements in registers,
lanes and warps. In kernels of one dimension they take the place of those that the compiler chose, in its text after the placing passes;
in others the kernel asks for them. Folds are by functions whose identity nobody knows, and scans by some that do not commute, so an
element too many, too few or in the wrong place changes the result."""
import argparse, os, random, re, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [os.path.join(root, d) for d in ("examples", "tools", "tests/kernels", "tests/fuzz")]
import made
from gen_layouts import asked_for, drawn_columns, written
from ragged import flat

PRELUDE = """fn first(a, b) { return a; }
fn last(a, b) { return b; }
fn more(a, b) { return a + b + 5; }
fn best(a, i, b, j) { let take = b > a || (b == a && j > i); return (take ? b : a, take ? j : i); }
fn then(a0, b0, a1, b1) { return (a0 * a1, b0 * a1 + b1); }
"""
# Of a tile v of small i32 and an axis; the second word is the result: elementwise as v, along (v without the axis), or its own extents.
# Every element of `v - 20` is below 0, which padding often holds, and there are many equal ones.
ALONG, SAME = "along", "same"
EXPRESSIONS = [
    ("max_at(v - 20, AXIS)[1]", ALONG), ("max_at(v - 20, AXIS)[0]", ALONG), ("min_at(v + 20, AXIS)[1]", ALONG),
    ("argmax(v - 20, axis=AXIS)", ALONG),
    ("reduce(v, AXIS, more)", ALONG), ("reduce((v - 20, index_along(v, AXIS) + 0 * v), AXIS, best)[1]", ALONG),
    ("reduce(v - 20, AXIS, maximum)", ALONG), ("sum(v, axis=AXIS)", ALONG), ("i32(sum(f32(v + 3) * f32(v + 5), axis=AXIS))", ALONG),
    # Operations with an identity, which is what padding is taken for: of every kind of type, on values beyond which it lies.
    ("i32(max(u32(v + 30), axis=AXIS))", ALONG), ("i32(min(u32(v) | 0x80000000, axis=AXIS) >> 1)", ALONG),
    ("min(v - 20, axis=AXIS)", ALONG),
    ("reduce(v | 64, AXIS, fold_and)", ALONG), ("reduce(v, AXIS, fold_or)", ALONG), ("reduce(v * 2 + 1, AXIS, scan_mul)", ALONG),
    ("i32(max(f32(v - 20), axis=AXIS))", ALONG), ("i32(reduce(f32(v - 20), AXIS, maximum))", ALONG),
    ("i32(reduce(f32(v + 20), AXIS, minimum))", ALONG), ("bitcast(sum(where(v > 100, 1.0, -0.0), axis=AXIS), i32)", ALONG),
    ("scan(v | 64, AXIS, fold_and, reverse=true)", SAME), ("i32(scan(i64(v - 20), AXIS, maximum, reverse=true))", SAME),
    ("scan((v, v + 1), AXIS, then)[1]", SAME), ("scan((v, v + 1), AXIS, then, reverse=true)[1]", SAME),
    ("scan((v, v + 1), AXIS, then, exclusive=true)[1]", SAME), ("scan((v, v + 1), AXIS, then, reverse=true, exclusive=true)[1]", SAME),
    ("scan(v, AXIS, last, exclusive=true)", SAME), ("scan(v, AXIS, first)", SAME), ("scan(v, AXIS, last, reverse=true)", SAME),
    ("cumsum(v, axis=AXIS)", SAME), ("flip(v, axis=AXIS)", SAME), ("sort(v - 20, axis=AXIS)", SAME), ("argsort(v, axis=AXIS)", SAME),
    ("gather(v, (v & 63) % EXTENT, AXIS)", SAME), ("butterfly(v, AXIS, 1)", SAME), ("v * 3", SAME), ("old", SAME), ("counted", (17,)),
    ("turned", SAME), ("picked", SAME),
]
FOLD = re.compile(r"m(ax|in)|arg|reduce|scan|sum|sort")
SLOW = ("sort", "argsort")


def numel(shape):
    n = 1
    for e in shape:
        n *= e
    return n


def text(shape, warps, axis, expressions, layout=None):
    """A kernel with a buffer for each expression; v is held in `layout`."""
    held = lambda x: f"convert_layout({x}, {layout})" if layout else x
    said = " ".join(e for e, _ in expressions)
    params, sizes = ["x: *i32", "q: *i32"], [numel(shape)] * 2
    lines = [f"let v = {held(f'load({flat(shape)})')};"]
    if "turned" in said:      # through a buffer, written in one layout and read in another
        lines += [f"let s = shared(i32, {list(shape)});", "shared_store(s, v);", f"let turned = {held('shared_load(s) + 0')};"]
    if "picked" in said:      # from a buffer with padding
        lines += [f"let s2 = shared(i32, {list(shape)}, layout=padded(4, 4));", "shared_store(s2, v);",
                  f"let picked = gather(s2, {held(f'(v & 63) % {shape[axis]}')}, {axis});"]
    if "counted" in said:
        lines += ["let counted = histogram(v + 8, 17);"]
    if "old" in said:
        lines += [f"let old = atomic_add({flat(shape, 'q')}, v);", f"atomic_max({flat(shape, 'q')}, v * 2);"]
    for i, (e, result) in enumerate(expressions):
        to = shape if result == SAME else shape[:axis] + shape[axis + 1:] if result == ALONG else result
        e = e.replace("AXIS", str(axis)).replace("EXTENT", str(shape[axis]))
        params.append(f"y{i}: *i32")
        sizes.append(numel(to))
        lines.append(f"store({flat(to, f'y{i}') if to else f'y{i}'}, {e});")
    heads = ["// grid 1"] + [f"// buffer i32 {n}" for n in sizes]
    return "\n".join(heads) + f"\n{PRELUDE}kernel k({', '.join(params)}) warps({warps}) {{\n  " + "\n  ".join(lines) + "\n}\n"


def usable(e, shape, axis):
    fast = not e.startswith(SLOW) or shape[axis] <= 128
    return fast and ("butterfly" not in e or shape[axis] % 2 == 0) and (e != "counted" or len(shape) == 1)


def ends():
    """Extents at which a warp, a lane or a register begins exactly behind the last element, and their neighbours."""
    for warps, n in ((2, 32), (2, 33), (4, 32), (4, 96), (4, 95), (4, 97), (4, 64), (8, 160), (8, 224), (8, 255), (4, 129), (2, 96),
                     (4, 384), (1, 31), (4, 3), (8, 1024), (16, 2048)):
        yield (n,), warps, 0
    for warps, shape, axis in ((4, (24, 4), 0), (4, (3, 64), 1), (8, (48, 2), 0), (4, (6, 16), 0), (4, (2, 96), 1), (8, (12, 5), 0)):
        yield shape, warps, axis


def placed(r, tilec, source, folder, sums):
    """The kernel's text after the placing passes, each of its layouts exchanged for another."""
    path = os.path.join(folder, "placing.tile")
    with open(path, "w") as f:
        f.write(source)
    run = subprocess.run([tilec, path, "--emit=placed", "--target=sm_90a"], capture_output=True, text=True, check=True)
    warps = int(re.search(r"warps = (\d+)", run.stdout)[1])
    other = lambda m: f"{m[1]}<{m[2]}; {written(drawn_columns(r, (int(m[2]),), warps, sums))}>"
    return "".join(re.findall(r"^// .*\n", source, re.M)) + re.sub(r"^(#\d+ = layout)<(\d+); .*>$", other, run.stdout, flags=re.M)


SHAPES = [(64,), (96,), (128,), (256,), (100,), (8, 32), (16, 16), (5, 48), (64, 4), (2, 96), (24, 12), (4, 4, 16), (3, 8, 10)]


def drawn(seed, tilec, folder):
    """(extension, text) of a kernel."""
    r = random.Random(seed)
    shape, warps = r.choice(SHAPES), r.choice([1, 2, 4, 4, 8])
    axis = r.randrange(len(shape))
    sums = r.random() < 0.3
    mine = [e for e in EXPRESSIONS if usable(e[0], shape, axis) and not (sums and FOLD.search(e[0]))]
    mine = r.sample(mine, min(5, len(mine)))
    if len(shape) > 1:
        return "tile", text(shape, warps, axis, mine, asked_for(drawn_columns(r, shape, warps, sums)))
    return "tir", placed(r, tilec, text(shape, warps, axis, mine), folder, sums)


def kernels(n, tilec, folder):
    for shape, warps, axis in ends():
        mine = [e for e in EXPRESSIONS if usable(e[0], shape, axis)]
        for third in (mine[0::3], mine[1::3], mine[2::3]):
            yield "tile", text(shape, warps, axis, third)
    for seed in range(n):
        yield drawn(seed, tilec, folder)


a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("build")
a.add_argument("--kernels", type=int, default=150)
a = a.parse_args()
with tempfile.TemporaryDirectory() as folder:
    sys.exit(made.check(a.build, kernels(a.kernels, os.path.join(os.path.abspath(a.build), "bin", "tilec"), folder), "--way=sm_90a"))
