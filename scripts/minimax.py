"""minimax.py [--check] [NAME...]: the polynomials of stdlib/math.tile, math64.tile, special.tile and tiers.tile, and quotients of them.
Each is fitted to a function over a range for the least relative error, in 60 digits or more (Lawson's iteration on Chebyshev points),
with its coefficients rounded to f32 or f64 from the lowest on, the rest fitted again. Prints the coefficients, lowest first, and the
greatest relative error of the result that they leave. --check: does the library have them, and does tiers.tile have no other constants but those of PARTS?
Needs mpmath."""
import functools
import os
import re
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
    "exp": (lambda r: (mp.expm1(r) - r) / r**2 if r else mp.mpf(1) / 2, -ln2 / 2, ln2 / 2, 4,
            lambda r: mp.exp(r) / r**2 if r else mp.mpf(10)**9),
    # expm1 r = r + r^2 p(r)
    "expm1": (lambda r: (mp.expm1(r) - r) / r**2 if r else mp.mpf(1) / 2, -ln2 / 2, ln2 / 2, 5,
              lambda r: mp.expm1(r) / r**2 if r else mp.mpf(10)**9),
    # 2^f = 1 + f p(f)
    "exp2": (lambda f: mp.expm1(f * ln2) / f if f else ln2, -0.5, 0.5, 5, lambda f: mp.power(2, f) / f if f else mp.mpf(10)**9),
    # log(1 + f) = f + f^2 p(f)
    "log": (lambda f: (mp.log1p(f) - f) / f**2 if f else -mp.mpf(1) / 2, -mp.mpf(1) / 3 - mp.mpf(1) / 10**6,
            mp.mpf(1) / 3 + mp.mpf(1) / 10**6, 8,
            lambda f: mp.log1p(f) / f**2 if f else mp.mpf(10)**9),
    # sin r = r + r^3 p(r^2), cos r = 1 - r^2 / 2 + r^4 p(r^2), tan r = r + r^3 p(r^2)
    "sin": (lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 6, 0, (mp.pi / 4 * 1.001)**2, 2,
            lambda s: mp.sin(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "cos": (lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2 if s else mp.mpf(1) / 24, 0, (mp.pi / 4 * 1.001)**2, 2,
            lambda s: mp.cos(mp.sqrt(s)) / s**2 if s else mp.mpf(10)**9),
    "tan": (lambda s: (mp.tan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 3, 0, (mp.pi / 4 * 1.001)**2, 6,
            lambda s: mp.tan(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # sinh x = x + x^3 p(x^2) to 1, tanh x = x + x^3 p(x^2) to 0.6
    "sinh": (lambda s: (mp.sinh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 6, 0, 1.001, 3,
             lambda s: mp.sinh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "tanh": (lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 3, 0, 0.361, 4,
             lambda s: mp.tanh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # asinh x = x + x^3 p(x^2) to 0.53, atanh x = x + x^3 p(x^2) to 1/2
    "asinh": (lambda s: (mp.asinh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 6, 0, 0.281, 4,
              lambda s: mp.asinh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "artanh": (lambda s: (mp.atanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 3, 0, 0.2501, 5,
               lambda s: mp.atanh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # asin x = x + x^3 p(x^2) to 0.55, atan x = x + x^3 p(x^2) to 1
    "asin": (lambda s: (mp.asin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 6, 0, 0.3026, 5,
             lambda s: mp.asin(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    "atan": (lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else -mp.mpf(1) / 3, 0, 1.0001, 8,
             lambda s: mp.atan(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
    # erf x = x + x p(x^2) to 1
    "erf": (lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1 if s else 2 / mp.sqrt(mp.pi) - 1, 0, 1.001, 6,
            lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) if s else 2 / mp.sqrt(mp.pi)),
    # erfc z = exp(-z^2) p(q) / (1 + 2 z), q = (z - 2) / (z + 2), z from 0.49 to 10.6
    "erfc": (lambda q: (1 + 2 * (2 + 2 * q) / (1 - q)) * phi_scaled((2 + 2 * q) / (1 - q)), -0.61, 0.69, 10,
             lambda q: (1 + 2 * (2 + 2 * q) / (1 - q)) * phi_scaled((2 + 2 * q) / (1 - q))),
    # log2 of (1 + f)/(1 - f) = 2 atanh f = f + f^3 p(f^2), for pow: |f| to 0.1716
    "atanh": (lambda s: (mp.atanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s else mp.mpf(1) / 3, 0, 0.0296, 3,
              lambda s: mp.atanh(mp.sqrt(s)) / mp.sqrt(s) / s if s else mp.mpf(10)**9),
}
# tiers.tile: what of the above is good enough there, with ranges of its own.
area = lambda f: (lambda z: f(mp.sqrt(z)) / mp.sqrt(z))
odd_rest = lambda f, first, at_0: (lambda z: (area(f)(z) - first) / z if z else at_0)
odd_size = lambda f: (lambda z: area(f)(z) / z if z else mp.mpf(10)**9)
both = lambda x: 2 * mp.atanh(x)
expm1_slope = lambda x: (mp.expm1(x) / x - 1) / x if x else mp.mpf(1) / 2
expm1_size = lambda x: mp.expm1(x) / x**2 if x else mp.mpf(10)**9
log1p_slope = lambda e: (mp.log1p(e) / e if e else mp.mpf(1)) * (1 + mp.mpf(2)**-25)
log10_slope = lambda f: (mp.log1p(f) / f if f else 1) / mp.log(10)
FITS |= {
    # tanh x = x + x^3 p(x^2) to 0.35
    "tanh_close": (odd_rest(mp.tanh, 1, -mp.mpf(1) / 3), 0, 0.1226, 2, odd_size(mp.tanh)),
    # expm1 x = x (1 + x p(x)) to 1/2, and to 1/8
    "expm1_close": (expm1_slope, -0.5, 0.5, 4, expm1_size),
    "expm1_rough": (expm1_slope, -0.1251, 0.1251, 2, expm1_size),
    # log((1 + s) / (1 - s)) = 2 s + s^3 p(s^2) for |s| to 1/3
    "log_ratio": (odd_rest(both, 2, mp.mpf(2) / 3), 0, mp.mpf(1) / 9 * 1.001, 3, odd_size(both)),
    # log(1 + e) (1 + 2^-25) = e p(e) for e to 1: with the first coefficient 1, not a little less, and errors of the power more even
    "softplus_close": (log1p_slope, 0, 1, 8, log1p_slope),
    "softplus_rough": (odd_rest(both, 2, mp.mpf(2) / 3), 0, mp.mpf(1) / 9 * 1.001, 2, odd_size(both)),
    # log(1 + f) = f + f^2 p(f) for results of size 1/4, log10(1 + f) = f p(f) for such of size 1/8
    "log_close": (FITS["log"][0], mp.expm1(-mp.mpf("0.2501")), mp.expm1(mp.mpf("0.2501")), 5, FITS["log"][4]),
    "log10_close": (log10_slope, mp.power(10, -mp.mpf("0.12501")) - 1, mp.power(10, mp.mpf("0.12501")) - 1, 7, log10_slope),
    # log(1 + f) = f + f^2 p(f) for |f| to 1/32
    "log_rough": (FITS["log"][0], -mp.mpf(1) / 32, mp.mpf(1) / 32, 1, FITS["log"][4]),
    # sin r = r + r^3 p(r^2) to pi / 2
    "sin_close": (odd_rest(mp.sin, 1, -mp.mpf(1) / 6), 0, (mp.pi / 2 * 1.0001)**2, 3, odd_size(mp.sin)),
    # erf x = x + x p(x^2) to 0.9, 1 - 2^p(x) from there to 4
    "erf_close": (FITS["erf"][0], 0, 0.811, 5, FITS["erf"][4]),
    "erf_far": (lambda a: mp.log(mp.erfc(a), 2), 0.9, 4, 5, lambda a: mp.erf(a) / (ln2 * mp.erfc(a))),
    "sin_rough": (odd_rest(mp.sin, 1, -mp.mpf(1) / 6), 0, (mp.pi / 2 * 1.0001)**2, 2, odd_size(mp.sin)),
}
# name: (function of x, x from 0 to, degrees of P and Q, power): P(x^power) / Q(x^power) with P(0) the function's value and Q(0) = 1.
# gelu: half the error function's complement times e^(x^2 / 2). gelu_close computes the power with 2 log 2 rounded to f32: what that is
# wrong by, a known power of e^(x^2), is in the fit.
half_tail = lambda x: phi_scaled(x / mp.sqrt(2)) / 2
half_erfc = lambda a: mp.erfc(a / mp.sqrt(2)) / 2
# T(a) = 2^(-1 + a p(a)), T as in gelu_close: what p's error does to T, and how much of it is allowed, which is less near 0, where arguments of a type
# lie closer; the wide one to bf16's least numbers, the narrow one to f16's, of which those below 2^-14 have fewer digits.
tail_power = lambda a: (mp.log(half_erfc(a), 2) + 1) / a if a else -mp.sqrt(2 / mp.pi) / ln2
tail_size = lambda allowed: (lambda a: allowed(a) / (ln2 * a) if a else mp.mpf(10)**9)
FITS |= {
    "gelu_rough": (tail_power, 0, mp.mpf("13.3"), 8, tail_size(lambda a: max(1, a / 4) * (1 + a))),
    "gelu_narrow": (tail_power, 0, mp.mpf("5.9"), 7,
                    tail_size(lambda a: max(mp.mpf(1), mp.mpf(2)**-14 / (a * half_erfc(a))) * (a + mp.mpf("0.1")))),
}
f32 = lambda v: mp.mpf(float(np.float32(float(v))))
wrong_by = (f32(2 * ln2) / (2 * ln2) - 1) / 2
RATIOS = {
    "gelu_close": (lambda x: half_tail(x) * mp.exp(-wrong_by * x * x), 13, 4, 5, 1),
    "tanh_rough": (lambda x: mp.tanh(x) / x if x else mp.mpf(1), 9, 3, 3, 2),
    "erf_rough": (lambda x: mp.erf(x) / x if x else 2 / mp.sqrt(mp.pi), 3.2, 3, 3, 2),
}


def below(v):
    """The greatest f32 that is not above v > 0."""
    f = np.float32(float(v))
    return mp.mpf(float(f if mp.mpf(float(f)) <= v else np.nextafter(f, np.float32(0))))


# The constants of tiers.tile that are no coefficients: the first but one is a little less than log2 e. Limits of up to four digits may be
# there beside them.
pi_1 = below(mp.pi)
pi_2 = below(mp.pi - pi_1)
linear = 2 * mp.sqrt(2 / mp.pi) / ln2
cubic = linear * mp.mpf("0.044715")
linear_1 = mp.nint(linear * 2**18) / 2**18
cubic_1 = f32(cubic) - 3 * mp.mpf(2)**-27
PARTS = [12582912, 1 - mp.mpf(2)**-24, 1 + mp.mpf(2)**-23, below(below(1 / ln2) - mp.mpf(2)**-40), f32(ln2), f32(ln2) - ln2, 1 / ln2, 2 / ln2, ln2, ln2 / mp.log(10),
         1 / mp.log(10), below(1 / (2 * ln2)), 1 / (2 * ln2), 2 * ln2, linear, cubic, 1 / mp.pi, pi_1, pi_2, mp.pi - pi_1 - pi_2,
         linear_1, linear - linear_1, cubic_1, cubic - cubic_1]


def solved(A, b):
    """The solution of normal equations of which the upper half is there."""
    for i in range(A.rows):
        for j in range(i):
            A[i, j] = A[j, i]
    return list(mp.lu_solve(A, b))


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
        c = solved(A, b)
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
        fixed.append(kept)
    worst = max(abs(v - sum(c * x**i for i, c in enumerate(fixed))) * w for v, x, w in zip(values, xs, weights))
    return fixed, worst


# ---- quotients ----
def ratio_at(given, free, t, x):
    """P(t) / Q(t), the coefficients given and then those fitted."""
    p, q = (mp.polyval((list(g) + list(c))[::-1], t) for g, c in zip(given, free))
    return p / q


def lawson_ratio(values, xs, degrees, given, rounds):
    """The free coefficients of P and Q for the least greatest relative error: of P - f Q, divided by the last Q."""
    share, under, best, best_error = [mp.mpf(1)] * len(xs), [mp.mpf(1)] * len(xs), None, None
    free = [d + 1 - len(g) for d, g in zip(degrees, given)]
    n = sum(free)
    for _ in range(rounds):
        A, b = mp.matrix(n, n), mp.matrix(n, 1)
        for x, v, w, u in zip(xs, values, share, under):
            row = [x**(len(given[0]) + i) for i in range(free[0])] + [-v * x**(len(given[1]) + i) for i in range(free[1])]
            right = v * mp.polyval(given[1][::-1], x) - mp.polyval(given[0][::-1], x)
            q = w / (v * u)**2
            for i in range(n):
                b[i] += q * row[i] * right
                for j in range(i, n):
                    A[i, j] += q * row[i] * row[j]
        c = solved(A, b)
        c = [c[:free[0]], c[free[0]:]]
        errors = [abs(ratio_at(given, c, x, x) / v - 1) for x, v in zip(xs, values)]
        worst = max(errors)
        if best is None or worst < best_error:
            best, best_error = c, worst
        under = [mp.polyval((list(given[1]) + c[1])[::-1], x) for x in xs]
        share = [w * (e / worst + mp.mpf(10)**-4) for w, e in zip(share, errors)]
        share = [w / max(share) for w in share]
    return best


def fit_ratio(name):
    f, hi, m, n, power = RATIOS[name]
    at = lambda hi, points: [mp.mpf(hi) / 2 * (1 + mp.cos(mp.pi * (2 * i + 1) / (2 * points))) for i in range(points)]
    xs = at(hi, 48) + at(hi / 4, 16)
    values, ts = [f(x) for x in xs], [x**power for x in xs]
    given = [[f32(f(mp.mpf(0)))], [mp.mpf(1)]]
    while len(given[0]) <= m or len(given[1]) <= n:
        k = 1 if len(given[1]) <= n and (len(given[1]) <= len(given[0]) or len(given[0]) > m) else 0
        c = lawson_ratio(values, ts, (m, n), given, 40 if len(given[0]) == 1 else 20)
        given[k].append(f32(c[k][0]))
    worst = max(abs(ratio_at(given, ([], []), x**power, x) / f(x) - 1) for x in at(hi, 301))
    return given[0] + given[1], worst


# ---- f64, and stdlib/special.tile ----

big = mp.mpf(10) ** 9
num = mp.mpf


class Fit:
    """f over lo to hi in one degree; its error counts beside `scale`. `first` coefficients are given, and need not be numbers of `bits`."""

    def __init__(self, f, lo, hi, degree, scale, bits=53, rounds=1, first=(), points=None):
        self.f, self.lo, self.hi, self.degree, self.scale = f, lo, hi, degree, scale
        self.bits, self.rounds, self.first, self.points = bits, rounds, first, points or 2 * degree + 12


def odd(f, first):
    """(f(x) / x - first) / x^2 as a function of s = x^2, and what its error is relative to. `at_0` is its value there."""
    return lambda at_0: ((lambda s: (f(mp.sqrt(s)) / mp.sqrt(s) - first) / s if s else at_0),
                         (lambda s: f(mp.sqrt(s)) / mp.sqrt(s) / s if s else big))


def erfc_scaled(q):
    z = (4 + 4 * q) / (1 - q)
    return (1 + 2 * z) * phi_scaled(z)


@functools.lru_cache(None)
def erf_tail(w):
    """y with q (2 - q) = e^-w and erfc y = q."""
    e = mp.exp(-w)
    goal = mp.log(e / (1 + mp.sqrt(1 - e)))
    y = mp.sqrt(max(w - mp.log(w) / 2 - num("0.5"), num("0.01")))
    for _ in range(60):
        step = (mp.log(mp.erfc(y)) - goal) * -mp.erfc(y) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y -= step
        if abs(step) < num(10) ** -45:
            break
    return y


def erfinv_ratio(w):
    return erf_tail(w) / mp.sqrt(-mp.expm1(-w)) if w else mp.sqrt(mp.pi) / 2


def erfinv_far(v):
    """erfinv / s of v = 1 / s, s = sqrt(w)."""
    return erf_tail(1 / v**2) * v


def gamma_rest(t):
    return (mp.loggamma(2 + t) - t * (1 - mp.euler)) / t**2 if t else (mp.zeta(2) - 1) / 2


def stirling(w):
    x = 1 / mp.sqrt(w) if w else None
    return x * (mp.loggamma(x) - (x - num(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) if w else num(1) / 12


def digamma_series(w):
    x = 1 / mp.sqrt(w) if w else None
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / w if w else num(1) / 12


with mp.workdps(100):
    digamma_zero = mp.findroot(mp.digamma, num("1.4616"))
    zeros = [[mp.besseljzero(n, k) ** 2 for k in (1, 2)] for n in (0, 1)]


def digamma_slope(t):
    """(digamma(x + 1) - digamma(x0 + 1)) / (x - x0) of x = 3/2 + t and the zero x0."""
    x = num("1.5") + t
    return (mp.digamma(x + 1) - mp.digamma(digamma_zero + 1)) / (x - digamma_zero)


def hankel(n):
    """Of w = 1 / x^2 the modulus, times sqrt(x), and (the phase - x + (2 n + 1) pi / 4) x."""
    @functools.lru_cache(None)
    def turned(w):
        x = 1 / mp.sqrt(w)
        return x, mp.hankel1(n, x) * mp.expj(-(x - (2 * n + 1) * mp.pi / 4))

    def modulus(w):
        x, h = turned(w)
        return abs(h) * mp.sqrt(x)

    def phase(w):
        x, h = turned(w)
        return mp.arg(h) * x
    return modulus, phase


def without_zeros(n):
    """J0, or J1(x) / x, of z = x^2 less 18, divided by its first two zeros."""
    def f(t):
        z = t + 18
        x = mp.sqrt(z)
        return mp.besselj(n, x) / (x if n else 1) / ((z - zeros[n][0]) * (z - zeros[n][1]))
    return f


def second_kind(n):
    """Y0 - 2 / pi log(x) J0, or Y1 - 2 / pi (log(x) J1 - 1 / x), divided by x, of z = x^2 less 18."""
    def f(t):
        x = mp.sqrt(t + 18)
        return (mp.bessely(n, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(n, x) - n / x)) / (x if n else 1)
    return f


def modified_near(n):
    return lambda z: mp.besseli(n, mp.sqrt(z)) / (mp.sqrt(z) if n else 1) if z else (num(1) / 2 if n else num(1))


def modified_far(n):
    return lambda u: mp.besseli(n, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u)


one = lambda x: num(1)
quarter, twice, once = (mp.pi / 4 * 1.0001) ** 2, mp.sqrt(2 / mp.pi), 1 / mp.sqrt(2 * mp.pi)
sixth, all_of = num(1) / 36 * num("1.0001"), (num(-18), 36 * num("1.0001") - 18)
eighth = num(1) / 64 * num("1.0001")
near_0 = lambda n: Fit(lambda z: mp.besselj(n, mp.sqrt(z)) / (mp.sqrt(z) if n else 1), 0, num("1.0001"), 7,
                       one if n == 0 else lambda z: num(1) / 2,
                       first=(1, num("-0.25")) if n == 0 else (num("0.5"), num("-0.0625")), points=48)
series = lambda fx, lo, hi, degree, rounds=3: Fit(fx[0], lo, hi, degree, fx[1], rounds=rounds, points=4 * degree + 20)
# name: the fit. The whole function, where it is not plain, is in the comment; names end in what they are for: _64, or _32 in special.tile.
WIDE = {
    # exp r = 1 + r + r^2 p(r), 2 atanh s = 2 s + 2/3 s^3 + s^5 p(s^2)
    "exp_64": series(((lambda r: (mp.expm1(r) - r) / r**2 if r else num(1) / 2), (lambda r: mp.exp(r) / r**2 if r else big)),
                     -ln2 / 2 * 1.0001, ln2 / 2 * 1.0001, 9),
    "log_64": series(((lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z**2 if z else num(2) / 5),
                      (lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z**2 / 10 if z else big)), 0, num("0.02945"), 7),
    "sin_64": series(odd(mp.sin, 1)(-num(1) / 6), 0, quarter, 5),
    "cos_64": series(((lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2 if s else num(1) / 24),
                      (lambda s: mp.cos(mp.sqrt(s)) / s**2 if s else big)), 0, quarter, 5),
    "asin_64": series(odd(mp.asin, 1)(num(1) / 6), 0, num("0.2501"), 12),
    "atan_64": series(odd(mp.atan, 1)(-num(1) / 3), 0, num("1.00001"), 19),
    "sinh_64": series(odd(mp.sinh, 1)(num(1) / 6), 0, num("1.001"), 6),
    "tanh_64": series(odd(mp.tanh, 1)(-num(1) / 3), 0, num("0.0626"), 6),
    "erf_64": series(((lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1 if s else 2 / mp.sqrt(mp.pi) - 1),
                      (lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) if s else 2 / mp.sqrt(mp.pi))), 0, num("1.001"), 11),
    # erfc z = exp(-z^2) p(q) / (1 + 2 z), q = (z - 4) / (z + 4), z from 0.498 to 27.5; the first coefficient is two numbers
    "erfc_64": Fit(erfc_scaled, (num(".498") - 4) / (num(".498") + 4), (num("27.5") - 4) / (num("27.5") + 4), 21, erfc_scaled, rounds=3,
                   first=(erfc_scaled(num(0)),), points=104),
    # erfinv x = x p(w - 5/2), or s p(1 / s - 0.27) (f64's first guess 1 / s - 0.25) of s = sqrt(w), w = -log(1 - x^2)
    "erfinv_32": Fit(lambda t: erfinv_ratio(t + num("2.5")), -num("2.5"), num("2.5") * num("1.001"), 9,
                     lambda t: erfinv_ratio(t + num("2.5")), bits=24,
                     first=(erfinv_ratio(num("2.5")),), points=30),
    "erfinv_far_32": Fit(lambda t: erfinv_far(t + num("0.27")), 1 / num("10.3") - num("0.27"),
                         1 / (mp.sqrt(5) * num(".999")) - num("0.27"), 9, lambda t: erfinv_far(t + num("0.27")), bits=24),
    "erfinv_guess": Fit(lambda t: erfinv_far(t + num("0.25")), 1 / num("27.5") - num("0.25"),
                        1 / (mp.sqrt(5) * num(".999")) - num("0.25"), 9, lambda t: erfinv_far(t + num("0.25")), bits=24),
    "gamma_64": series((gamma_rest, lambda t: mp.loggamma(2 + t) / t**2 if t else big), num("-.5001"), num(".5001"), 16, 2),
    "stirling_64": series((stirling, lambda w: 100 * num(1) / 12), 0, eighth, 5, 2),
    "digamma_64": series((digamma_series, lambda w: 2 / w if w else big), 0, eighth, 5, 2),
    "digamma_slope_64": series((digamma_slope, lambda t: digamma_slope(t) + 1 / ((num("1.5") + t) * digamma_zero)), num("-.5001"),
                               num(".5001"), 16, 2),
    "j0_small_64": near_0(0), "j1_small_64": near_0(1),
}
for n in (0, 1):
    modulus, phase = hankel(n)
    WIDE |= {
        f"modulus_{n}_64": Fit(modulus, 0, sixth, 16, lambda w: twice, first=(twice,), points=42),
        f"phase_{n}_64": Fit(phase, 0, sixth, 15, one, points=40),
        f"j{n}_64": Fit(without_zeros(n), *all_of, 12, without_zeros(n), points=34),
        f"y{n}_64": Fit(second_kind(n), *all_of, 13, one if n == 0 else lambda t: num("0.2"), points=36),
        f"i{n}_64": Fit(modified_near(n), 0, num("64.01"), 15, modified_near(n), points=40),
        f"i{n}_far_64": Fit(modified_far(n), 0, num(".12501"), 22, lambda u: modified_far(n)(u), first=(once,), points=54),
        f"i{n}_32": Fit(modified_near(n), 0, num("64.01"), 10 - n, modified_near(n), bits=24, points=30 - 2 * n),
        f"i{n}_far_32": Fit(modified_far(n), 0, num(".12501"), 5, modified_far(n), bits=24, first=(once,), points=20),
    }


def fit_wide(fit):
    """Coefficients and greatest error, by weighted least squares on Chebyshev points; of several rounds all but the last weight points by
    their errors."""
    lo, hi = num(fit.lo), num(fit.hi)
    at = lambda n: [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    xs = at(fit.points)
    values, weights = [fit.f(x) for x in xs], [1 / abs(fit.scale(x)) for x in xs]
    fixed, share = [num(c) for c in fit.first], [num(1)] * len(xs)
    while len(fixed) <= fit.degree:
        k, rest = len(fixed), fit.degree + 1 - len(fixed)
        for _ in range(fit.rounds if k == len(fit.first) else 1):
            powers = [x**k for x in xs]
            squares = [s * w * w for s, w in zip(share, weights)]
            moments = [mp.fsum(q * p * p * x**j for q, p, x in zip(squares, powers, xs)) for j in range(2 * rest - 1)]
            left = [v - mp.polyval(fixed[::-1], x) if fixed else v for v, x in zip(values, xs)]
            A = mp.matrix(rest, rest)
            b = mp.matrix(rest, 1)
            for i in range(rest):
                b[i] = mp.fsum(q * p * x**i * r for q, p, x, r in zip(squares, powers, xs, left))
                for j in range(rest):
                    A[i, j] = moments[i + j]
            c = mp.lu_solve(A, b)
            if fit.rounds > 1 and k == len(fit.first):
                q = [c[i] for i in range(rest)][::-1]
                errors = [abs(mp.polyval(q, x) * p - r) * w for x, p, r, w in zip(xs, powers, left, weights)]
                share = [s * (e / max(errors) + num(10) ** -3) for s, e in zip(share, errors)]
        fixed.append(num(float(c[0]) if fit.bits == 53 else float(np.float32(float(c[0])))))
    worst = max(abs(fit.f(x) - mp.polyval(fixed[::-1], x)) / abs(fit.scale(x)) for x in at(3 * fit.points))
    return fixed, worst


def source(file):
    return open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stdlib", file)).read()


def unexplained(text, coefficients):
    """Constants of a file's code, of more than four digits, that are neither these nor PARTS, as f32."""
    known = {float(np.float32(float(abs(c)))) for c in [*coefficients, *PARTS]}
    code = "\n".join(line.split("//")[0] for line in text.splitlines())
    return [n for n in re.findall(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?", code)
            if len(re.sub(r"e.*|\.|^[0.]*", "", n).strip("0")) > 4 and float(np.float32(float(n))) not in known]


library = "".join(source(file) for file in ("math.tile", "math64.tile", "special.tile", "tiers.tile"))
known = set(library.replace("(", " ").replace(")", " ").replace(",", " ").replace(";", " ").replace("-", " ").split())
bad, names, found = 0, [a for a in sys.argv[1:] if not a.startswith("--")], []
for name in names or [*FITS, *RATIOS, *WIDE]:
    if name in RATIOS and name not in FITS:
        c, worst = fit_ratio(name)
    elif name in FITS:
        c, worst = fit(name)
    else:
        with mp.workdps(100):
            c, worst = fit_wide(WIDE[name])
    found += c
    print(f"{name:6} 2^{float(mp.log(worst, 2)):.1f}", ", ".join(repr(float(x)) for x in c), flush=True)
    if "--check" in sys.argv:
        given = len(WIDE[name].first) if name in WIDE else 0           # which may be two numbers there
        shown = [repr(abs(float(x))).replace("e-", "e ").split() for x in c[given:]]
        missing = [x for x, text in zip(c[given:], shown) if not set(text) <= known and repr(abs(float(x))) not in library]
        bad |= len(missing) > 0
        if missing:
            print("    not in the library:", ", ".join(repr(float(x)) for x in missing))
if "--check" in sys.argv and not names:
    missing = unexplained(source("tiers.tile"), found)
    bad |= len(missing) > 0
    if missing:
        print("tiers.tile: of unknown origin:", ", ".join(missing))
sys.exit(bad)
