"""minimax.py [NAME...]: the polynomials of stdlib/math.tile. Each is fitted to a function over a range for the least relative
error, in 60 digits (Lawson's iteration on Chebyshev points), with its coefficients rounded to f32 from the lowest on, the rest
fitted again. Prints the coefficients, lowest first, and the greatest relative error of the result that they leave."""
import sys
import mpmath as mp
import numpy as np

mp.mp.dps = 60
ln2 = mp.log(2)


def phi_scaled(z):
    """erfc(z) exp(z^2)"""
    return mp.erfc(z) * mp.exp(z * z)


# name: (function of the polynomial's variable, low, high, degree, what the polynomial's error is relative to). The variable is
# what stdlib/math.tile calls s or f; the whole function there is in the comment.
FITS = {
    # exp r = 1 + r + r^2 p(r)
    "exp": (lambda r: (mp.expm1(r) - r) / r**2 if r else mp.mpf(1) / 2, -ln2 / 2, ln2 / 2, 4, lambda r: mp.exp(r) / r**2 if r else mp.mpf(10)**9),
    # expm1 r = r + r^2 p(r)
    "expm1": (lambda r: (mp.expm1(r) - r) / r**2 if r else mp.mpf(1) / 2, -ln2 / 2, ln2 / 2, 5, lambda r: mp.expm1(r) / r**2 if r else mp.mpf(10)**9),
    # 2^f = 1 + f p(f)
    "exp2": (lambda f: mp.expm1(f * ln2) / f if f else ln2, -0.5, 0.5, 5, lambda f: mp.power(2, f) / f if f else mp.mpf(10)**9),
    # log(1 + f) = f + f^2 p(f)
    "log": (lambda f: (mp.log1p(f) - f) / f**2 if f else -mp.mpf(1) / 2, -mp.mpf(1) / 3 - mp.mpf(1) / 10**6, mp.mpf(1) / 3 + mp.mpf(1) / 10**6, 8,
            lambda f: mp.log1p(f) / f**2 if f else mp.mpf(10)**9),
    # sin r = r + r^3 p(r^2), cos r = 1 - r^2 / 2 + r^4 p(r^2), tan r = r + r^3 p(r^2)
    "sin": (lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 6, 0, (mp.pi / 4 * 1.001)**2, 2, lambda s: mp.sin(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "cos": (lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2 if s else mp.mpf(1) / 24, 0, (mp.pi / 4 * 1.001)**2, 2, lambda s: mp.cos(mp.sqrt(s)) / s**2 if s else mp.mpf(10)**9),
    "tan": (lambda s: (mp.tan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 3, 0, (mp.pi / 4 * 1.001)**2, 6, lambda s: mp.tan(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # sinh x = x + x^3 p(x^2) to 1, tanh x = x + x^3 p(x^2) to 0.6
    "sinh": (lambda s: (mp.sinh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 6, 0, 1.001, 3, lambda s: mp.sinh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "tanh": (lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 3, 0, 0.361, 4, lambda s: mp.tanh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # asin x = x + x^3 p(x^2) to 1/2, atan x = x + x^3 p(x^2) to 1
    "asin": (lambda s: (mp.asin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 6, 0, 0.2501, 5, lambda s: mp.asin(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "atan": (lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 3, 0, 1.0001, 8, lambda s: mp.atan(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # erf x = x + x p(x^2) to 1
    "erf": (lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1 if s else 2 / mp.sqrt(mp.pi) - 1, 0, 1.001, 6, lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) if s else 2 / mp.sqrt(mp.pi)),
    # erfc z = exp(-z^2) (1 + 2 z)^-1 ... : q = (z - 4) / (z + 4), (1 + 2 z) exp(z^2) erfc z = p(q)
    "erfc": (lambda q: (1 + 2 * (4 + 4 * q) / (1 - q)) * phi_scaled((4 + 4 * q) / (1 - q)), -0.79, mp.mpf(6.1) / mp.mpf(14.1), 10,
             lambda q: (1 + 2 * (4 + 4 * q) / (1 - q)) * phi_scaled((4 + 4 * q) / (1 - q))),
    # log2 of (1 + f)/(1 - f) = 2 atanh f = f + f^3 p(f^2), for pow: |f| to 0.1716
    "atanh": (lambda s: (mp.atanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 3, 0, 0.0296, 3, lambda s: mp.atanh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
}


SPLIT = ["erfc"]        # whose lowest coefficient is used in two parts


def lawson(values, weights, xs, degree, fixed, rounds=40):
    """Coefficients fixed[0..] given, the others for the least greatest |error| * weight."""
    n = len(xs)
    w = np.array([mp.mpf(1)] * n)
    k = len(fixed)
    best, best_error = None, None
    for _ in range(rounds):
        rest = degree + 1 - k
        if rest == 0:
            best = []
            break
        # weighted normal equations in high precision
        A = mp.matrix(rest, rest)
        b = mp.matrix(rest, 1)
        rows = [[x**(k + j) for j in range(rest)] for x in xs]
        rhs = [v - sum(c * x**i for i, c in enumerate(fixed)) for v, x in zip(values, xs)]
        for r, v, wt, wl in zip(rows, rhs, weights, w):
            q = wl * wt * wt
            for i in range(rest):
                b[i] += q * r[i] * v
                for j in range(i, rest):
                    A[i, j] += q * r[i] * r[j]
        for i in range(rest):
            for j in range(i):
                A[i, j] = A[j, i]
        c = mp.lu_solve(A, b)
        c = [c[i] for i in range(rest)]
        err = [abs(v - sum(cj * r[j] for j, cj in enumerate(c))) * wt for r, v, wt in zip(rows, rhs, weights)]
        worst = max(err)
        if best is None or worst < best_error:
            best, best_error = c, worst
        w = np.array([wl * (e / worst + mp.mpf(10)**-6) for wl, e in zip(w, err)])
        w = w / max(w)
    return best


def fit(name, points=90):
    f, lo, hi, degree, scale = FITS[name]
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * points)) for i in range(points)]
    values = [f(x) for x in xs]
    weights = [1 / abs(scale(x)) for x in xs]
    fixed = []
    for i in range(degree + 1):
        c = lawson(values, weights, xs, degree, fixed, 40 if i == 0 else 25)
        kept = mp.mpf(float(np.float32(float(c[0]))))
        fixed.append(c[0] if name in SPLIT and i == 0 else kept)
    worst = max(abs(v - sum(c * x**i for i, c in enumerate(fixed))) * w for v, x, w in zip(values, xs, weights))
    return fixed, worst


for name in sys.argv[1:] or FITS:
    c, worst = fit(name)
    if name in SPLIT:
        hi = float(np.float32(float(c[0])))
        print(f"{name:6} lowest: {hi!r} + {float(c[0] - mp.mpf(hi))!r}")
    print(f"{name:6} 2^{float(mp.log(worst, 2)):.1f}", ", ".join(repr(float(x)) for x in c), flush=True)
