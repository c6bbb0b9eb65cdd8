"""maths_reference.py TILEC [NAME...]: tests/kernels/maths_f64.txt, arguments of functions in f64 with their exact results: a sample of
maths_points.py, and those of a larger sample at which the functions are worst. Results are computed by mpmath in 400 bits and more, and
rounded; what the rounding took away is kept in ulp. Needs mpmath, and gcc with libquadmath to find the worst; tests need neither."""
import os, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "tests", "kernels"), os.path.dirname(os.path.abspath(__file__))]
import mpmath as mp
import numpy as np
import maths_points, maths_quad
import maths_table as table

mp.mp.prec = 400
path = os.path.join(root, "tests", "kernels", "maths_f64.txt")
half, one, inf, nan = mp.mpf(1) / 2, mp.mpf(1), mp.inf, mp.nan


def newton(y, f, slope):
    """A zero of f from y, a good guess."""
    for _ in range(100):
        step = f(y) / slope(y)
        y -= step
        if abs(step) <= abs(y) * mp.mpf(2) ** -330:
            break
    return y


def erfcinv(q):
    if q > 1:
        return -erfcinv(2 - q) if q < 2 else -inf
    if q == 0:
        return inf
    if q == 1:
        return mp.mpf(0)
    if q > mp.mpf("0.01"):
        return newton(mp.erfinv(mp.mpf(float(1 - q))), lambda y: mp.erfc(y) - q, lambda y: -2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
    t = mp.log(q)
    y = mp.sqrt(-t - mp.log(-t * mp.pi) / 2)
    return newton(y, lambda y: mp.log(mp.erfc(y)) - t, lambda y: -2 / mp.sqrt(mp.pi) * mp.exp(-y * y) / mp.erfc(y))


def erfinv(x):
    if abs(x) > half:
        return mp.sign(x) * erfcinv(1 - abs(x))
    return newton(x * mp.sqrt(mp.pi) / 2, lambda y: mp.erf(y) - x, lambda y: 2 / mp.sqrt(mp.pi) * mp.exp(-y * y))


def in_half_turns(f):
    return lambda x: f(mp.pi * (x - 2 * mp.nint(x / 2)))


def erfcx(x):
    if x < 10**8:
        return mp.exp(x * x) * mp.erfc(x)
    return 1 / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x) + 3 / (4 * x**4) - 15 / (8 * x**6) + 105 / (16 * x**8))


def bessel_large(n, second):
    """Of large x, where mpmath's own series take long: Hankel's."""
    def f(x):
        if x < 1000:
            return (mp.bessely if second else mp.besselj)(n, x)
        with mp.workprec(1600):
            p, q, t = mp.mpf(0), mp.mpf(0), mp.mpf(1)
            for k in range(60):
                if k % 2 == 0:
                    p += t if k % 4 == 0 else -t
                else:
                    q += t if k % 4 == 1 else -t
                t *= mp.mpf(4 * n * n - (2 * k + 1) ** 2) / (8 * x * (k + 1))
            c, s = mp.cos(x - (2 * n + 1) * mp.pi / 4), mp.sin(x - (2 * n + 1) * mp.pi / 4)
            return mp.sqrt(2 / (mp.pi * x)) * (p * s + q * c if second else p * c - q * s)
    return f


def modified(n, less):
    def f(x):
        if abs(x) > 800 and not less:
            return inf if x > 0 or n == 0 else -inf
        if abs(x) < 1000:
            return mp.besseli(n, x) * (mp.exp(-abs(x)) if less else 1)
        a, s, t = abs(x), mp.mpf(0), mp.mpf(1)
        for k in range(60):
            s += t
            t *= -mp.mpf(4 * n * n - (2 * k + 1) ** 2) / (8 * a * (k + 1))
        return (1 if x > 0 or n == 0 else -1) * s / mp.sqrt(2 * mp.pi * a)
    return f


def sigmoid(u):
    return 1 / (1 + mp.exp(-u)) if u > -10**5 else mp.mpf(0)


def power(x, y):
    """Of numbers for which C's special cases say nothing."""
    size = mp.exp(min(max(y * mp.log(abs(x)), -10**4), 10**4))
    return -size if x < 0 and int(y) % 2 else size


def lgamma(x):
    if abs(x) < 10**5:
        return mp.log(abs(mp.gamma(x)))
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(x * mp.sin(mp.pi * (x - mp.nint(x))))) - mp.loggamma(-x)


def limited(f, lo, hi, below, above):
    return lambda x: below if x < lo else above if x > hi else f(x)


def second(f):
    return lambda x: f(x) if x > 0 else nan if x < 0 else -inf


MP = dict(exp=limited(mp.exp, -10**4, 10**4, mp.mpf(0), inf), exp2=limited(lambda x: mp.power(2, x), -10**4, 10**4, mp.mpf(0), inf),
          exp10=limited(lambda x: mp.power(10, x), -10**4, 10**4, mp.mpf(0), inf), expm1=limited(mp.expm1, -10**4, 10**4, -one, inf),
          log=mp.log, log2=lambda x: mp.log(x, 2), log10=mp.log10, log1p=mp.log1p, sin=mp.sin, cos=mp.cos, tan=mp.tan, asin=mp.asin,
          acos=mp.acos, atan=mp.atan,
          sinh=limited(mp.sinh, -10**4, 10**4, -inf, inf), cosh=limited(mp.cosh, -10**4, 10**4, inf, inf),
          tanh=limited(mp.tanh, -10**3, 10**3, -one, one),
          asinh=mp.asinh, acosh=mp.acosh, atanh=mp.atanh, erf=limited(mp.erf, -100, 100, -one, one),
          erfc=limited(mp.erfc, -100, 1000, mp.mpf(2), mp.mpf(0)),
          cbrt=lambda x: mp.sign(x) * mp.cbrt(abs(x)), sqrt=mp.sqrt, rsqrt=lambda x: 1 / mp.sqrt(x), sigmoid=sigmoid,
          silu=lambda x: x * sigmoid(x),
          gelu=lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2 if x > -1000 else mp.mpf(0),
          gelu_tanh=lambda x: x * sigmoid(2 * mp.sqrt(2 / mp.pi) * x * (1 + mp.mpf(44715) / 10**6 * x * x)),
          softplus=lambda x: x + mp.log1p(mp.exp(-x)) if x > 0 else mp.log1p(mp.exp(max(x, -10**4))), pow=power, atan2=mp.atan2,
          hypot=mp.hypot,
          erfinv=erfinv, erfcinv=erfcinv, erfcx=lambda x: inf if x < -100 else erfcx(x),
          normcdf=limited(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, -1000, 1000, mp.mpf(0), one),
          normcdfinv=lambda p: -mp.sqrt(2) * erfcinv(2 * p), lgamma=lgamma, tgamma=limited(mp.gamma, -1000, 1000, mp.mpf(0), inf),
          digamma=lambda x: mp.digamma(x) if x > 0 else mp.digamma(1 - x) - mp.pi / mp.tan(mp.pi * (x - mp.nint(x))),
          sinpi=in_half_turns(mp.sin), cospi=in_half_turns(mp.cos), rcbrt=lambda x: mp.sign(x) / mp.cbrt(abs(x)),
          bessel_j0=lambda x: bessel_large(0, False)(abs(x)), bessel_j1=lambda x: mp.sign(x) * bessel_large(1, False)(abs(x)),
          bessel_y0=second(bessel_large(0, True)), bessel_y1=second(bessel_large(1, True)),
          bessel_i0=modified(0, False), bessel_i0e=modified(0, True), bessel_i1=modified(1, False), bessel_i1e=modified(1, True))


def nearest(w):
    """The double nearest to w > 0, infinity from half an ulp above the largest on, and how much is left in its ulp."""
    if w == inf:
        return np.inf, 0.0
    m, e = mp.frexp(w)                                       # w = m 2^e, m from 1/2 to 1
    e = max(int(e), -1021) - 53                              # the exponent of an ulp
    n = int(mp.nint(w * mp.mpf(2) ** -e))
    if n * mp.mpf(2) ** e >= mp.mpf(2) ** 1024:
        return np.inf, 0.0
    return float(n * mp.mpf(2) ** e), float(w * mp.mpf(2) ** -e - n)


def exact(fn, x, z, y):
    """A row: nearest result and rest. Where arguments or results are special, y, which the quadruple reference has said to be right."""
    real = [mp.mpf(float(v)) for v in ((x, z) if fn in table.PAIRS else (x,))]
    if not all(np.isfinite(v) for v in ((x, z) if fn in table.PAIRS else (x,))) or np.isnan(y) or y == 0 or np.isinf(y) or 0 in real:
        return y, 0.0
    w = MP[fn](*real)
    if abs(mp.im(w)) > 0 or mp.isnan(w):
        raise ValueError(f"{fn}({x}, {z}) is {w}, computed {y}")
    value, rest = nearest(abs(mp.re(w)))
    return (-value, -rest) if mp.re(w) < 0 else (value, rest)


def chosen(fn, compute, reference):
    """Arguments and results: a sample with every edge, and the worst of more."""
    few, many = maths_points.points(fn, 90), maths_points.points(fn, 60000)
    _, err = maths_quad.errors(compute, reference, *many, table.least(fn, many[0]))
    worst = np.argsort(-err, kind="stable")[:40]
    x, z = np.concatenate([few[0], many[0][worst]]), np.concatenate([few[1], many[1][worst]])
    y, err = maths_quad.errors(compute, reference, x, z, table.least(fn, x))
    if not (err < 50).all():
        raise ValueError(f"{fn}({x[np.argmax(err)]!r}) is {err.max()} ulp off")
    return x, z, y


if __name__ == "__main__":
    names = sys.argv[2:] or [r[0] for r in table.ONE + table.TWO]
    old = {t.split("\n", 1)[0]: t for t in open(path).read().split("\n= ")[1:]} if os.path.exists(path) else {}
    old = {k: v.rstrip("\n") for k, v in old.items()}
    with tempfile.TemporaryDirectory() as folder:
        refs = maths_quad.references(folder)
        for fn in names:
            x, z, y = chosen(fn, maths_quad.native(sys.argv[1], fn, folder), getattr(refs, "ref_" + fn))
            lines = [fn]
            for a, b, c in zip(x, z, y):
                value, rest = exact(fn, a, b, c)
                arguments = (a, b) if fn in table.PAIRS else (a,)
                lines.append(" ".join("%016x" % np.float64(v).view(np.uint64) for v in (*arguments, value)) + " %.4f" % (rest + 0.0))
            old[fn] = "\n".join(lines)
            print(fn, len(lines) - 1, flush=True)
    with open(path, "w") as f:
        f.write("# Functions in f64: the bits of the arguments, those of the nearest result, and what the exact one lies beyond it, in ulp.\n"
                "# Written by scripts/maths_reference.py.\n")
        for fn in sorted(old):
            f.write(f"= {old[fn]}\n")
