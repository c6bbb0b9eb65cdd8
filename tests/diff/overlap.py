"""overlap.py BUILD: loops whose products follow from one another, in kernels that a team of copies is parted from: those that overlap with their
next iteration, and those that may not. With no iteration, with one, with as many as a ring has slots and a few more, once, in a loop, and
two loops on one ring, at the end of all numbers. Interpreter (as read, after each pass) and simulator must agree, none may report a fault, the loops that can must
overlap, and ptxas must neither serialise a product nor spill."""
import os, subprocess, sys
import made

# Weights of scores are such that all sums are exact, in whatever order.
SCORES = "let s = dot(q, trans(tensor_load(a, (k, 0), [128, 64]))); let w = f16(where(s > 3.0, 1.0, where(s > -2.0, 0.25, 0.0)));"
VALUES = "tensor_load(b, (k, 0), [128, 64])"
# name: whether it overlaps, body. q: f16[128, 64]; boxes of a, b and d; acc: f32[128, 64]; m, l: f32[128]; k: the first row.
BODIES = {
    "chain": (True, f"{SCORES} acc = dot(w, {VALUES}, acc);"),
    "weights": (True, f"""let s = dot(q, trans(tensor_load(a, (k, 0), [128, 64]))); let top = max(m, max(s, axis=1)); let w = fast_exp2(s - top[:, None]);
      let shrink = fast_exp2(m - top); l = l * shrink + sum(w, axis=1); acc = dot(f16(w), {VALUES}, acc * shrink[:, None]); m = top;"""),
    "weights, the largest late": (True, f"""let s = dot(q, trans(tensor_load(a, (k, 0), [128, 64]))); let most = max(s, axis=1); let top = where(most > m + 2.0, most, m);
      let w = fast_exp2(s - top[:, None]); acc = dot(f16(w), {VALUES}, acc * fast_exp2(m - top)[:, None]); m = top;"""),
    "masked": (True, f"{SCORES} acc = dot(where(k + arange(0, 128)[None, :] < limit, w, f16(0.5)), {VALUES}, acc * -1.0);"),
    "values first": (True, f"let v = {VALUES}; {SCORES} acc = dot(w, v, acc);"),
    "counter in stage 1": (True, f"{SCORES} acc = dot(w, {VALUES}, acc + f32(k));"),
    "two first": (True, f"{SCORES} let t = dot(r, trans(tensor_load(d, (k, 0), [16, 64])));"
                        f" acc = dot(where(max(t, axis=1)[:, None] > 5.0, w, f16(0.0)), {VALUES}, acc * -1.0);"),
    "two last": (True, f"{SCORES} acc = dot(w, {VALUES}, acc * -1.0); sum2 = dot(f16(s > 1.0), tensor_load(d, (k, 0), [128, 64]), sum2);"),
    "three in a row": (True, f"""{SCORES} let t = dot(w, {VALUES}); acc = dot(f16(t > 0.0), trans(tensor_load(d, (k, 0), [64, 64])), acc);"""),
    "a loop within": (True, f"{SCORES} var x2 = w; for j in range(0, k % 3) {{ x2 = x2 * f16(0.5); }} acc = dot(x2, {VALUES}, acc); m = max(m, max(s, axis=1)); l += m;"),
    "the same tile": (True, f"""let x2 = tensor_load(a, (k, 0), [128, 64]); let s = dot(q, trans(x2)); let w = f16(s > 1.0); acc = dot(w, x2, acc * -1.0);
      sum2 = dot(w, tensor_load(d, (k, 0), [128, 64]), sum2);"""),
    "stores": (False, f"{SCORES} store(z + 16384 + k % 512 + arange(0, 128), max(s, axis=1)); acc = dot(w, {VALUES}, acc);"),
    "back to the first": (False, f"""let s = dot(f16(acc > 1.0), trans(tensor_load(a, (k, 0), [128, 64]))); acc = dot(f16(s > 2.0), {VALUES}, acc * -1.0);"""),
}
ONE = "for k in range(0, n * 128, 128, stages=4) {{ {body} }}"
TWO = "for k in range(0, n / 2 * 128, 128, stages=4) {{ {body} }} for k in range(n / 2 * 128, n * 128, 128, stages=4) {{ {body} }}"
AGAIN = "for j in range(0, 3) {{ " + TWO.replace("n / 2", "j % (n + 1)") + " acc = acc * 0.5; }}"
LAST = "for last in range(2147483600, 2147483600 + n, 128, stages=4) {{ let k = last - 2147483600; {body} }}"    # nothing is behind its end
# The first loop begins behind its end, where that and a step are no number.
NONE = "for last in range(2147483600, n, 128, stages=4) {{ let k = last - 2147483600; {body} }} " + ONE
HALF = "if n % 2 == 1 {{ " + ONE + " }}"


def kernel(body, loops, n, rows):
    return f"""// grid 1
// buffer f16 16384
// tensor f16 {rows} 64
// tensor f16 {rows} 64
// tensor f16 {rows} 64
// buffer f32 32768
// int {n}
// int {max(0, n * 128 - 70)}
// tolerance 1e-4
kernel f(x: *f16 multiple_of(16), a: tensor<f16, 2>, b: tensor<f16, 2>, d: tensor<f16, 2>, z: *f32 multiple_of(16), n: i32, limit: i32) warps(8) {{
  let at = arange(0, 128)[:, None] * 64 + arange(0, 64)[None, :];
  let q = load(x + at);
  let r = load(x + 8192 + at);
  var acc = load(z + at);
  var sum2 = load(z + 8192 + at);
  var m = zeros([128], f32);
  var l = zeros([128], f32);
  {loops.format(body=body)}
  store(z + at, acc);
  store(z + 8192 + at, sum2);
  store(z + 20480 + arange(0, 128), m);
  store(z + 20608 + arange(0, 128), l);
}}
"""


def kernels():
    for i, (name, (overlaps, body)) in enumerate(BODIES.items()):
        for n in (0, 1, 2, 6) if i < 2 else (5,):
            yield name, overlaps, kernel(body, ONE, n, max(128, n * 128 - 40))
        if i < 2:
            for n in (1, 5):
                yield name, overlaps, kernel(body, TWO, n, max(128, n * 128))
            yield name, overlaps, kernel(body, HALF, 3, 384)
            yield name, overlaps, kernel(body, LAST, 1, 128)
            yield name, overlaps, kernel(body, NONE, 3, 384)
        yield name, overlaps, kernel(body, AGAIN, 2, 300)


def compiled(text):
    """What is wrong with the code, and the remarks."""
    tilec = os.path.join(sys.argv[1], "bin", "tilec")
    ptx = subprocess.run([tilec, "-", "--target=sm_90a", "--remarks"], input=text, capture_output=True, text=True)
    if ptx.returncode:
        return ptx.stderr, ""
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ptxas.py")
    r = subprocess.run([sys.executable, check, "sm_90a"], input=ptx.stdout, capture_output=True, text=True)
    return r.stderr if r.returncode else None, ptx.stderr


def main():
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    made_of = [k for k in kernels() if wanted in k[0]]
    again = [("tile", text) for _, _, text in made_of if "for j in range(0, 3)" in text]
    bad = made.check(sys.argv[1], [("tile", text) for _, _, text in made_of], "--way=sm_90a:1")
    bad |= made.check(sys.argv[1], again[1::2], "--passes", "--no-sim", "--way=sm_90a:1")
    bad |= made.check(sys.argv[1], again[::2], "--early", "--way=sm_90a:1")
    seen = set()
    for name, overlaps, text in made_of:
        if name in seen:
            continue
        seen.add(name)
        why, remarks = compiled(text)
        if not why and (("R0718" in remarks) != overlaps or ("R0719" in remarks) == overlaps):
            why = f"{name}: should {'overlap' if overlaps else 'not overlap'}:\n{remarks}"
        if why:
            print(text, why, sep="\n")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
