"""Inline PTX. Same form as examples/cases.py."""
from cases import Case, Run, poisoned, launch
import numpy as np
import tilec

TEXT = r"""
kernel k(x: *u32, y: *f32, b: *u8, l: *i64, picked: *u32, low: *u32, high: *u32, half: *f16, bytes: *u8, sums: *i64, lanes: *u32, const N = 128) warps(W) {
  let i = program_id(0) * N + arange(0, N);
  let v = load(x + i);
  store(picked + i, ptx("lop3.b32 $0, $1, $2, $3, 0xca;", "=r,r,r,r", (v, u32(0xff00ff00), u32(i)), u32));
  let (lo, hi) = ptx("{ .reg .b32 t;\n  add.u32 t, $2, 1;\n  mul.lo.u32 $0, t, t;\n  mul.hi.u32 $1, t, t; }", "=r,=r,r", v, (u32, u32));
  store(low + i, lo);
  store(high + i, hi);
  store(half + i, ptx("cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f", load(y + i), f16, pack=2));
  store(bytes + i, ptx("lop3.b32 $0, $1, $2, 0, 0xc0;", "=r,r,r", (load(b + i), u8(15)), u8, pack=4));
  store(sums + i, ptx("add.s64 $0, $1, $2;", "=l,l,l", (load(l + i), i64(5)), i64));
  let lane = ptx("mov.u32 $0, %laneid;", "=r", types=u32, pure=false);
  let base = ptx("add.u32 $0, $1, 1;", "=r,r", u32(program_id(0)), u32);       // on a scalar
  ptx("prefetch.global.L2 [$0];", "l", bitcast(x + i, i64), pure=false);
  store(lanes + program_id(0), base + min(lane, 0));
}
"""


def inline_ptx(dev, rng, n, W=4, N=128):
    x, y = rng.integers(0, 1 << 32, n, dtype=np.uint32), rng.standard_normal(n, np.float32)
    b, l = rng.integers(0, 256, n, dtype=np.uint8), rng.integers(-1 << 40, 1 << 40, n)
    out = {k: poisoned(dev, n, t) for k, t in dict(picked="u32", low="u32", high="u32", half="f16", bytes="u8", sums="i64").items()}
    lanes = poisoned(dev, n // N, "u32")
    kern = dev.program(text=TEXT.replace("warps(W)", f"warps({W})"), name="case.tile").kernel("k", N=N)
    call = launch(kern, n // N, dev.array(x), dev.array(y), dev.array(b), dev.array(l), *out.values(), lanes)
    i, square = np.arange(n, dtype=np.uint32), (x.astype(np.uint64) + 1 & 0xFFFFFFFF) ** 2
    want = dict(picked=x & 0xFF00FF00 | ~x & i, low=square.astype(np.uint32), high=(square >> np.uint64(32)).astype(np.uint32), half=y.astype(np.float16), bytes=b & 15, sums=l + 5)
    return Run(call, [(k, a.numpy(), want[k], 0) for k, a in out.items()] + [("lanes", lanes.numpy(), np.arange(n // N, dtype=np.uint32) + 1, 0)])


def inline_error(dev, rng, text, word):
    """What the device's assembler does not accept is reported with the line of the program."""
    source = f'kernel k(x: *u32) {{\n  let v = load(x + arange(0, 32));\n  store(x + arange(0, 32),\n        ptx("{text}", "=r,r", v, u32));\n}}\n'
    try:
        dev.program(text=source, name="case.tile").kernel("k")(1, dev.array(np.zeros(32, np.uint32)))
        said = "nothing"
    except tilec.Error as e:
        said = f"{e.file}:{e.line}: {e}"
    ok = said.startswith("case.tile:4: ") and word in said
    return Run(None, [(said if not ok else "line", np.array([ok]), np.array([True]), 0)])


CASES = [
    Case("inline_ptx", inline_ptx, [dict(n=256), dict(n=512, W=1, N=64), dict(n=256, W=8, N=32)], [dict(n=1 << 16), dict(n=512, W=1, N=64), dict(n=256, W=8, N=32)]),
    Case("inline_error", inline_error, [dict(text="nonsense.u32 $0, $1;", word="nonsense"), dict(text="add.u32 $0, $1", word="")],
         [dict(text="nonsense.u32 $0, $1;", word="nonsense"), dict(text="add.u32 $0, $1", word="")]),
]
