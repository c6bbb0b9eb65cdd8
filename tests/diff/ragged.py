"""ragged.py BUILD: the functions of tests/kernels/ragged.py and the dots of tests/kernels/dots.py through check_kernel: the
interpreter, on the kernel as it was read and after every pass, must say what the simulator says. (That the simulator is right is
what those tests compare with numpy.)"""
import os, sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [os.path.join(root, "examples"), os.path.join(root, "tools"), os.path.join(root, "tests", "kernels")]
import dots
import made
import ragged
import numpy as np


def moved(shape, expr, to, out="f32"):
    return f"""// grid 1
// buffer f32 {np.prod(shape)}
// buffer f32 {np.prod(shape)}
// buffer {out} {np.prod(to)}
kernel f(xs: *f32, zs: *f32, ys: *{out}) warps(2) {{
  let x = load({ragged.flat(shape, "xs")});
  let z = load({ragged.flat(shape, "zs")});
  store({ragged.flat(to, "ys")}, {expr});
}}
"""


def product(m, n, k, dtype, batches=0, precision="tf32"):
    """Small random numbers: exact in every way, but for f32 in as many bits as a dot keeps of them."""
    lead, acc = ((batches,) if batches else ()), dots.accumulator(dtype)
    a, b, c = (*lead, m, k), (*lead, k, n), (*lead, m, n)
    more = f', precision="{precision}"' if dtype == "f32" else ""
    return f"""// grid 1
// buffer {dtype} {np.prod(a)}
// buffer {dtype} {np.prod(b)}
// buffer {acc} {np.prod(c)}
// tolerance 1e-6
kernel f(a: *{dtype}, b: *{dtype}, c: *{acc}) warps(2) {{
  store({ragged.flat(c, "c")}, dot(load({ragged.flat(a, "a")}), load({ragged.flat(b, "b")}){more}));
}}
"""


def cases():
    for shape, to in ragged.RESHAPES:
        yield moved(shape, f"reshape(x, {list(to)})", to)
    for shape in ragged.SHAPES:
        for name, (expr, want) in ragged.EXPRESSIONS.items():
            x = np.zeros(shape, np.float32)
            yield moved(shape, expr, np.shape(want(x, x)), "i32" if name.startswith("arg") else "f32")
    for dtype in dots.ALL:
        for m, n, k in ((1, 1, 1), (3, 7, 20), (17, 9, 31), (40, 5, 4), (16, 16, 44)):
            yield product(m, n, k, dtype)
        yield product(5, 20, 9, dtype, batches=3)
    for precision in dots.BOUNDS:
        yield product(20, 20, 20, "f32", precision=precision)


sys.exit(made.check(sys.argv[1], (("tile", text) for text in cases()), "--passes", "--way=sm_90a"))
