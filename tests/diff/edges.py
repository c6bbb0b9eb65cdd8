"""edges.py BUILD: kernels of two versions (passes/version_edges.c) through check_kernel, with masks that begin and end exactly at, in front
of and behind tiles, and with indices that wrap. Each kernel must have two versions, or the case says nothing."""
import os, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
import made

B, GRID = 64, 3
TOP = {"i32": 2 ** 31, "u32": 2 ** 32, "i64": 2 ** 63}


def kernel(mask, a, b, dtype="i32", index="at"):
    """a, b: the scalars that masks speak of. Elements that the mask leaves out keep what is there, and give 5."""
    return f"""// grid {GRID} 2
// buffer i32 {4 * GRID * B}
// buffer i32 {4 * GRID * B}
// int {a}
// int {b}
// divisible x 16
// divisible y 16
kernel f(x: *i32, y: *i32, a: {dtype}, b: {dtype}) warps(1) {{
  let pid = {dtype}(program_id(0));
  let i = arange(0, {B});
  let at = (program_id(0) * 2 + program_id(1)) * {B} + i;
  let j = pid * {B} + {dtype}(i);
  let mask = {mask};
  store(y + at, load(x + at, mask=mask, other=5) + where(mask, i, 0) * 3, mask=mask);
  store(x + at, load(y + at, mask=mask, other=7) + 1);
}}
"""


def cases():
    ends = (-1, 0, 1, B - 1, B, B + 1, 2 * B - 1, 2 * B, 2 * B + 3, GRID * B - 1, GRID * B, GRID * B + 1)
    for end in ends:
        yield kernel("j < b", 0, end)
        yield kernel("b > j", 0, end, "i64")
        yield kernel("a <= j", end, 0)
        yield kernel("j >= a", end, 0, "i64")
        yield kernel("j <= b && j > a", end - 40, end)
        yield kernel("i < i32(min(b - pid * 64, 64))", 0, end, "i64")
        yield kernel("j * 2 + a < b + i32(i)", 3, end)
    for dtype, top in TOP.items():
        low = 0 if dtype == "u32" else -top
        last = top - 1
        for back in (0, 1, B - 1, B, B + 1, 2 * B):
            a = last - back
            near = low if dtype == "u32" else 0
            yield kernel("a + j < b", a, near + 20, dtype)         # wraps, and is low behind
            yield kernel("a + j >= b", a, near + 20, dtype)
            yield kernel("b <= a + pid + j", a, last - 9, dtype)
            yield kernel("a + j > b - j", a, near + B, dtype)


def versions(build, text):
    r = subprocess.run([os.path.join(build, "bin", "tilec"), "/dev/stdin", "--assume=x%16", "--assume=y%16", "--dump-after=version_edges",
                        "--emit=placed", "-o", os.devnull], input=text, capture_output=True, text=True)
    return "edge = 1" in r.stderr


kernels = list(cases())
whole = [k for k in kernels if not versions(os.path.abspath(sys.argv[1]), k)]
for k in whole:
    print("one version only:", k, sep="\n")
sys.exit(made.check(sys.argv[1], (("tile", k) for k in kernels), "--passes", "--way=sm_90a") or bool(whole))
