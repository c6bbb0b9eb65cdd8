"""derivative(): every rule of stdlib/derivatives.tile against differences of the function itself in f64, and what functions are made of against
what is known of them. Same form as examples/cases.py."""
import os
import re
from cases import Case, Run, poisoned, launch
import numpy as np

RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "stdlib", "derivatives.tile")
LEFT, RIGHT, AWAY, POSITIVE, UNIT, ALL = (-3, -0.4), (0.4, 3), (1.2, 4), (0.1, 6), (-0.9, 0.9), (-3, 3)
# Of each function: where its arguments come from, and the expression, if that is no call of it; a further argument that is no float is in there.
# Kinks are between these ranges. Those with the same derivative to few digits have tolerances: the hardware's approximations.
FUNCTIONS = {
    "add": ([ALL, ALL], "a + b"), "sub": ([ALL, ALL], "a - b"), "mul": ([ALL, ALL], "a * b"), "div": ([ALL, RIGHT], "a / b"), "neg": ([ALL], "-a"),
    "rem": ([(4.1, 4.9), (1.6, 1.9)], "a % b"), "remainder": ([(4.0, 4.2), (1.7, 1.9)],), "fma": ([ALL, ALL, ALL],), "abs": ([LEFT],),
    "copysign": ([LEFT, RIGHT],), "ldexp": ([ALL], "ldexp(a, 3)"),
    "max": ([LEFT, RIGHT],), "min": ([LEFT, RIGHT],), "maximum": ([RIGHT, LEFT],), "minimum": ([RIGHT, LEFT],), "relu": ([LEFT],),
    **{f: ([(1.6, 1.9)],) for f in ("floor", "ceil", "rint", "trunc", "round")},
    "sqrt": ([POSITIVE],), "sqrt_rn": ([POSITIVE],), "rsqrt": ([POSITIVE],), "cbrt": ([LEFT],), "rcbrt": ([RIGHT],), "pow": ([POSITIVE, ALL],), "hypot": ([LEFT, ALL],),
    **{f: ([ALL],) for f in ("exp", "exp2", "exp10", "expm1", "sin", "cos", "sinpi", "cospi", "atan", "sinh", "cosh", "tanh", "asinh", "sigmoid", "silu", "softplus",
                             "gelu", "gelu_tanh", "erf", "erfc", "erfcx", "normcdf", "bessel_j0", "bessel_j1", "bessel_i0", "bessel_i1")},
    **{f: ([POSITIVE],) for f in ("log", "log2", "log10", "log1p", "lgamma", "bessel_y0", "bessel_y1")}, "tgamma": ([RIGHT],),
    **{f: ([UNIT],) for f in ("tan", "asin", "acos", "atanh", "erfinv")}, **{f: ([(0.1, 0.9)],) for f in ("normcdfinv", "erfcinv")},
    "acosh": ([AWAY],), "atan2": ([ALL, LEFT],), "bessel_i0e": ([LEFT],), "bessel_i1e": ([RIGHT],),
}
# Of f32 alone: what they approximate.
FAST = {"fast_exp2": ("exp2", 1e-5), "fast_log2": ("log2", 1e-5), "fast_sqrt": ("sqrt", 1e-5), "fast_sin": ("sin", 1e-5), "fast_cos": ("cos", 1e-5), "fast_tan": ("tan", 1e-5),
        "fast_tanh": ("tanh", 3e-3), "fast_div": ("div", 1e-5), "full_div": ("div", 1e-5), "near_div": ("div", 1e-5), "fast_sigmoid": ("sigmoid", 1e-5),
        "fast_silu": ("silu", 1e-5), "fast_pow": ("pow", 1e-4), "fast_exp": ("exp", 1e-5), "fast_log": ("log", 1e-5), "fast_gelu": ("gelu_tanh", 5e-3)}
OTHERS = {"fast_rcp": ("1.0 / a", RIGHT), "round_tf32": None}      # round_tf32 is no function of the language: an op of passes
NAMES = "abc"

TEXT = """
kernel k(a: *T, b: *T, c: *T, y: *T, d: *T, type T = f64, const N = 64) {
  let i = program_id(0) * N + arange(0, N);
  let n = num_programs(0) * N;
  let (va, vb, vc) = (load(a + i), load(b + i), load(c + i));
  store(y + i, (%s)(%s));
%s}
"""


def program(dev, expression, n, T):
    params, args = ", ".join(NAMES[:n]), ", ".join("v" + c for c in NAMES[:n])
    f = f"({params}) -> {expression}"
    stores = "".join(f"  store(d + ({k} * n + i), derivative({f}, {k}, {args}));\n" for k in range(n))
    return dev.program(text=TEXT.replace("(%s)(%s)", f"f({args})") % stores + f"fn f({params}) {{ return {expression}; }}\n", name="case.tile").kernel("k", T=T)


def evaluate(dev, expression, xs, T):
    """The function, and its derivatives by each argument, at places that are as many as a multiple of 64."""
    n, kind = xs.shape[1], np.float64 if T == "f64" else np.float32
    given = [dev.array(x.astype(kind)) for x in (list(xs) * 3)[:3]]
    y, d = poisoned(dev, n, T), poisoned(dev, len(xs) * n, T)
    call = launch(program(dev, expression, len(xs), T), n // 64, *given, y, d)
    return call, y.numpy().astype(np.float64), d.numpy().reshape(len(xs), n).astype(np.float64)


def close(what, got, want, tolerance):
    """Element by element, beside the size of numbers about 1."""
    worst = np.max(abs(got - want) / (abs(want) + 0.1))
    return (f"{what}: {worst:.2e}", np.array([worst <= tolerance]), np.array([True]), 0)


def rules(dev, rng, fn):
    places, H = 64, 2.0**-12
    base = FAST[fn][0] if fn in FAST else fn
    ranges, expression = (FUNCTIONS[base] + (f"{base}({', '.join(NAMES[:len(FUNCTIONS[base][0])])})",))[:2] if fn not in OTHERS else ([OTHERS[fn][1]], OTHERS[fn][0])
    x = np.stack([rng.uniform(lo, hi, places) for lo, hi in ranges]).astype(np.float32).astype(np.float64)
    steps = [0.0] + [k * H for k in (-2, -1, 1, 2)] * len(ranges)
    xs = np.concatenate([x + np.eye(len(ranges))[:, (k - 1) // 4][:, None] * h if k else x for k, h in enumerate(steps)], axis=1)
    call, y, d = evaluate(dev, expression, xs, "f64")
    y = y.reshape(len(steps), places)
    want = np.stack([(y[1 + 4 * k] - 8 * y[2 + 4 * k] + 8 * y[3 + 4 * k] - y[4 + 4 * k]) / (12 * H) for k in range(len(ranges))])
    exact = d[:, :places]
    call, _, narrow = evaluate(dev, expression if fn == base and fn not in OTHERS else f"{fn}({', '.join(NAMES[:len(ranges)])})", x, "f32")
    return Run(call, [close(f"{fn} f64", exact, want, 1e-6), close(f"{fn} f32", narrow, exact, FAST[fn][1] if fn in FAST else 1e-5)])


# At kinks and where a function of real numbers ends: the side that the rule takes.
KINKS = [("max(a, b)", (1.5, 1.5), (0, 1)), ("min(a, b)", (1.5, 1.5), (0, 1)), ("maximum(a, b)", (-2, -2), (0, 1)), ("abs(a)", (0,), (0,)),
         ("hypot(a, b)", (0, 0), (0, 0)), ("pow(a, b)", (0, 2.5), (0, 0)), ("copysign(a, b)", (-1, -2), (1, 0))]


def kinks(dev, rng, T):
    found = []
    for expression, x, want in KINKS:
        call, _, d = evaluate(dev, expression, np.array(x, np.float64)[:, None].repeat(64, 1), T)
        found.append((expression, d, np.array(want, np.float64)[:, None].repeat(64, 1), 0))
    return Run(call, found)


def all_rules(dev, rng):
    """Each rule is among those that are tested."""
    named = set(re.findall(r"^fn derivative_(\w+)", open(RULES).read(), re.M))
    missing = sorted(named - set(FUNCTIONS) - set(FAST) - set(OTHERS))
    return Run(None, [(" ".join(missing) or "all", np.array([len(missing)]), np.array([0]), 0)])


FORMS = """
struct Pair { a, b }
fn loop(x) { var s = x; for k in static_range(3) { s = s * x + f32(k); } return s; }                 // x^4 + x + 2
fn choose(x, n) { if n > 3 { return exp(x) * x; } else { if n > 2 { return x * x; } } return 2.0 * x + f32(n); }
fn held(x) { return x; }
fn derivative_held(y, x) { return 0.0; }
fn cube(x) { return x * x * x; }
fn derivative_cube(y, x) { return 7.0; }                                                            // what the rule says counts
fn weigh(s, table, i) { return s * load(table + i % 8) + load(table); }
fn half(x) { return f32(f16(x) * 2.0); }
fn slope(x) { return derivative((v) -> sin(v) * v, "v", x); }
fn two(x, w) { return Pair(x * w, (x + w, x)); }
fn through(x, n) { return x > 1.0 && n > 0 ? log(x) : x / 2.0; }

kernel forms(x: *f32, out: *f32, table: *f32, n: i32) {
  let i = arange(0, 64);
  let v = load(x + i);
  store(out + i, derivative(loop, 0, v));
  store(out + (64 + i), derivative(choose, 0, v, n));
  store(out + (128 + i), derivative((u) -> u * held(u), 0, v));
  store(out + (192 + i), derivative(cube, 0, v));
  store(out + (256 + i), derivative(weigh, "s", v, table, i));
  store(out + (320 + i), derivative(half, 0, v));
  store(out + (384 + i), derivative(slope, 0, v));
  let p = derivative(two, "w", v, 3.0);
  store(out + (448 + i), p.a + 10.0 * p.b[0] + 100.0 * p.b[1]);
  let (y, d) = value_and_derivative((u) -> clamp(u, -1.0, 1.0) * 3.0, 0, v);
  store(out + (512 + i), y + 100.0 * d);
  store(out + (576 + i), derivative((u, w) -> u[:, None] * w[None, :] + u[:, None], 1, v, full([2], 0.5))[:, 0] );
  store(out + (640 + i), derivative((u) -> where(u > 0.0, sqrt(u), 0.0), 0, v));
  store(out + (704 + i), derivative(exp, 0, f16(v)));
  store(out + (768 + i), derivative((u) -> 4.0, 0, v));
  store(out + (832 + i), map((e) -> derivative(through, 0, e, 1), v));
  store(out + (896 + i), v * derivative((u) -> tanh(u), 0, 0.5));
  store(out + (960 + i), derivative((u, w) -> u * w, 0, v, v));                    // by the first alone
  store(out + (1024 + i), derivative((u) -> 3.0 * tanh(u * (1.0 / 3.0)), 0, v));
}
"""


def forms(dev, rng, n):
    x, table = rng.uniform(-2.5, 2.5, 64).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    out = poisoned(dev, 17 * 64, "f32")
    call = launch(dev.program(text=FORMS, name="case.tile").kernel("forms"), 1, dev.array(x), out, dev.array(table), n)
    v = x.astype(np.float64)
    inside, above = abs(v) < 1, v > 0
    root = np.where(above, 0.5 / np.sqrt(abs(v)), 0)
    want = [4 * v**3 + 1, np.exp(v) * (v + 1) if n > 3 else 2 * v if n > 2 else 0 * v + 2, v, 0 * v + 7, table[np.arange(64) % 8], 0 * v + 2,
            2 * np.cos(v) - v * np.sin(v), v + 10, np.clip(v, -1, 1) * 3 + 300 * inside, v, root, np.exp(v), 0 * v, np.where(v > 1, 1 / v, 0.5), v * (1 - np.tanh(0.5)**2), v,
            1 - np.tanh(v / 3)**2]
    got = out.numpy().reshape(17, 64)
    return Run(call, [close(f"form {k}", got[k], w, 2e-3 if k == 11 else 1e-5) for k, w in enumerate(want)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [both("derivative_rules", rules, [dict(fn=f) for f in [*FUNCTIONS, *FAST, "fast_rcp"]]), both("derivative_tested", all_rules, [{}]),
         both("derivative_kinks", kinks, [dict(T=t) for t in ("f32", "f64")]),
         both("derivative_forms", forms, [dict(n=n) for n in (1, 3, 5)])]
