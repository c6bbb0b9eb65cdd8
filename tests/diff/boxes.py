"""boxes.py BUILD: loads of loops with stages that are boxes of tensors, of every kind: rows that are whole, masked, or wrap around; columns by
a counter, a carried pointer or a loop that begins elsewhere; either of them contiguous; batches by one stride or a product; with and without
an end. Each kernel goes through check_kernel: the interpreter after every pass and the simulator must say what the interpreter says of the
program as it was read. And each is compiled once more to see that its load became a box."""
import itertools
import os
import subprocess
import sys
import tempfile

import made

ROWS = {                                              # index, mask, whether the store leaves rows out
    "whole": ("r", "", False),
    "masked": ("r", "r < M", False),
    "wrapped": ("r % M", "", True),
    "chosen": ("where(r < M, r, 0)", "", True),
    "both": ("r % M", "r < M", False),
    "from before": ("(r - BEFORE)", "r - BEFORE >= 0 && M > r - BEFORE", False),
    "a row on": ("(r + AHEAD)", "r + AHEAD < M", False),
}
COLUMNS = {                                           # loop, index, what goes in front of it and behind it, mask
    "counted": ("range(0, cdiv(N, BK), stages=S)", "(k * BK + c)", "", "", "k * BK + c < N"),
    "stepped": ("range(0, N, BK, stages=S)", "(k + c)", "", "", "k + c <= N - 1"),
    "from elsewhere": ("range(16, N, BK, stages=S)", "(k - 16 + c)", "", "", "k - 16 + c < N"),
    "left": ("range(0, cdiv(N, BK), stages=S)", "c", "", "p += BK * CS;", "c < N - k * BK"),
    "carried tile": ("range(3, 3 + N / BK, stages=S)", "", "var q = p + AT;", "q += BK * CS;", ""),
    "without end": ("range(0, N / BK, stages=S)", "(k * BK + c)", "", "", ""),
}
BATCHES = {"none": "", "a stride": " + program_id(1) * sb", "a product": " + i64(program_id(1)) * M * 8"}


def kernel(rows, columns, batch, turned, dtype, stages):
    row, rmask, left_out = ROWS[rows]
    loop, column, before, behind, cmask = COLUMNS[columns]
    for name, along, across in (("BEFORE", "8", "5"), ("AHEAD", "16", "first")):      # a box begins at a multiple of 16 bytes
        row, rmask = row.replace(name, along if turned else across), rmask.replace(name, along if turned else across)
    R, C = (("[None, :]", "[:, None]") if turned else ("[:, None]", "[None, :]"))
    rs, cs = ("1", "ld") if turned else ("ld", "1")
    at = f"({row}){R} * {rs} + {{c}}{C} * {cs}"
    masks = [f"({m}){d}" for m, d in ((rmask, R), (cmask, C)) if m]
    mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
    where = "q" if column == "" else "p + (" + at.format(c=column) + ")"
    before = before.replace("AT", "(" + at.format(c="c") + ")")
    x = f"load({where}{mask})"
    return f"""// grid 3 2
// buffer {dtype} 40000
// buffer f32 12288
// int 83
// int 100
// int {128 if not turned else 136}
// int 1600
// int 1
// divisible x 16
// divisible ld 8
// divisible sb 8
// boxes found
kernel f(x: *{dtype}, y: *f32, M: i32, N: i32, ld: i32, sb: i32, first: i32, const BM = 32, const BK = 32, const S = {stages}) warps(4) {{
  let r = program_id(0) * BM + arange(0, BM);
  let c = arange(0, BK);
  var p = x{BATCHES[batch]};
  {before}
  var acc = zeros([BM, BK], f32);
  for k in {loop} {{
    acc += f32({"trans(" + x + ")" if turned else x});
    {behind.replace("CS", cs)}
  }}
  store(y + (program_id(1) * 3072 + r[:, None] * BK + c[None, :]), acc{", mask=(r < M)[:, None]" if left_out else ""});
}}
"""


def kernels():
    kinds = itertools.cycle(itertools.product(("f16", "f32"), (2, 3), BATCHES))
    for i, (rows, columns) in enumerate(itertools.product(ROWS, COLUMNS)):
        dtype, stages, batch = next(kinds)
        yield kernel(rows, columns, batch, (i + i // len(COLUMNS)) % 2 == 1, dtype, stages)


def is_found(build, text):
    """The compiler makes a map of what x leads to."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.tile")
        with open(path, "w") as f:
            f.write(text)
        tilec = [os.path.join(build, "bin", "tilec"), path, "--tensors=found", "--remarks", "-o", "-"]
        r = subprocess.run(tilec + [f"--assume={a}" for a in ("x%16", "ld%8", "sb%8")], capture_output=True, text=True)
    if ":view:" in r.stdout.split("\n")[0]:
        return True
    print("no box is found:", r.stderr, text, sep="\n")
    return False


build, texts = sys.argv[1], list(kernels())
found = [is_found(build, text) for text in texts]
status = made.check(build, (("tile", text) for text in texts), "--passes", "--way=sm_90a")
sys.exit(status or not all(found))
