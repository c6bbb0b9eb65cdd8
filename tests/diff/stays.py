"""stays.py BUILD [--seeds A..B] [--print]: random products of matrices by persistent programs. Tiles, steps, depths, warps, types and what becomes of the
sums are random, as is whether a team copies, whether tiles leave as boxes, how many there are, how the grid lies and whether that says how long loops
are. Each kernel goes through check_kernel: the interpreter after every pass, with two programs for all tiles and teams in several orders, and the simulator, of which copies
land as late as they may, must say what the interpreter says of the program as it was read."""
import argparse, random, sys

import made


class Kernel:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.warps = r.choice((4, 8, 8))
        self.bm = r.choice((64, 128)) if self.warps == 4 else r.choice((128, 128, 256))
        self.bn = r.choice((32, 64, 64, 128)) if self.bm == 256 or self.warps == 4 else r.choice((64, 128, 256))
        self.bk = r.choice((16, 32, 64, 64))
        self.stages = r.randint(2, 4)
        self.steps = r.choice((0, 1, 1, 2, 3, 5))
        self.down, self.across = r.choice(((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)))
        self.m = self.bm * self.down - r.choice((0, 0, 8, 17, self.bm // 2))
        self.n = self.bn * self.across - 8 * r.choice((0, 0, 1, 3))
        self.dtype = r.choice(("f16", "bf16"))
        self.out = r.choice((self.dtype, self.dtype, "f32"))
        self.stays = r.choice(("true", "true", "1", "2", "false"))
        self.roles = r.choice(("auto", "auto", "true", "false"))
        self.turns = r.choice(("auto", "auto", "true", "false"))
        self.stores = r.choice(("auto", "auto", "true", "false"))
        self.turned = r.random() < 0.15              # the result lies column by column
        self.planar = r.random() < 0.4               # a grid of two dimensions
        self.after = r.choice(("", "", "relu", "bias", "half", "returns"))
        self.triangle = r.random() < 0.3             # loops are as long as program_id(0) says: programs are dealt out in pairs
        if self.triangle:
            self.down, self.across = r.choice(((2, 3), (3, 2), (3, 3), (5, 1), (1, 4), (4, 2)))
            self.m, self.n = self.bm * self.down - self.m % 8, self.bn * self.across - 8 * r.choice((0, 1))
        # What is added to the sums, as large as these: of the result's type, as a team of its own brings it, or of another.
        self.residual = r.choice((self.out, self.out, self.out, "f32")) if r.random() < 0.4 else ""
        if self.residual and r.random() < 0.7:
            self.turned, self.stays, self.roles, self.turns, self.stores = False, r.choice(("true", "true", "1")), "true", "true", "true"
            self.after = self.after.replace("returns", "relu")
        self.inner = r.random() < 0.3                # half of the sum, not of the product

    def text(self):
        m, n, k, bm, bn, bk = self.m, self.n, self.steps * self.bk, self.bm, self.bn, self.bk
        grid = f"{self.down} {self.across}" if self.planar else f"{self.down * self.across}"
        at = "program_id(0)", "program_id(1)"
        if not self.planar:
            at = f"program_id(0) % {self.down}", f"program_id(0) / {self.down}"
        kk, ldc = max(k, bk), (m + 7) // 8 * 8 if self.turned else n
        c = f"c + n[None, :] * {ldc} + m[:, None]" if self.turned else f"c + m[:, None] * {ldc} + n[None, :]"
        rows = f"M - M % 8" if self.turned and self.stores != "false" else "M"
        sums = {"relu": "max(acc, 0.0)", "bias": "acc + load(bias + n, mask=n < N)[None, :]", "half": "acc * 0.5"}.get(self.after, "acc")
        if self.residual:
            added = f"f32(load(r + m[:, None] * {n} + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :]))"
            sums = f"({sums} + {added}) * 0.5" if self.inner else f"{sums} + {added}"
        company = f"// buffer {self.residual} {self.bm * self.down * n + 256}\n// divisible r 16\n" if self.residual else ""
        param = f", r: *{self.residual}" if self.residual else ""
        steps = f"min(K / {bk}, program_id(0) + 1)" if self.triangle else f"K / {bk}"
        leave = "if program_id(0) == 1 { return; }\n  " if self.after == "returns" else ""
        return f"""// grid {grid}
// buffer {self.dtype} {self.bm * self.down * kk}
// buffer {self.dtype} {kk * n}
// buffer {self.out} {(n if self.turned else self.bm * self.down) * ldc + 256}
// buffer f32 {self.bn * self.across}
{company}// int {m}
// int {n if not self.turned else n}
// int {k}
// divisible a 16
// divisible b 16
// divisible c 16
// boxes found
// tolerance 1e-2
kernel f(a: *{self.dtype}, b: *{self.dtype}, c: *{self.out}, bias: *f32{param}, M: i32, N: i32, K: i32) warps({self.warps}) persistent({self.stays}) roles({self.roles}) pingpong({self.turns}) stores({self.stores}) {{
  {leave}let m = {at[0]} * {bm} + arange(0, {bm});
  let n = {at[1]} * {bn} + arange(0, {bn});
  let k = arange(0, {bk});
  var acc = zeros([{bm}, {bn}], f32);
  for step in range(0, {steps}, stages={self.stages}) {{
    let x = load(a + m[:, None] * {kk} + (step * {bk} + k)[None, :], mask=(m < M)[:, None]);
    let y = load(b + (step * {bk} + k)[:, None] * {n} + n[None, :], mask=(n < N)[None, :]);
    acc = dot(x, y, acc);
  }}
  store({c}, {self.out}({sums}), mask=(m < {rows})[:, None] & (n < N)[None, :]);
}}
"""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--seeds", default="0..18")
    p.add_argument("--print", action="store_true", dest="show")
    a = p.parse_args()
    lo, hi = (int(x) for x in a.seeds.split(".."))
    texts = [Kernel(seed).text() for seed in range(lo, hi)]
    if a.show:
        print("\n".join(texts))
        return 0
    return made.check(a.build, (("tile", t) for t in texts), "--passes", "--way=sm_90a:1", "--way=sm_80:1")


sys.exit(main())
