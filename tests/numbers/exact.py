"""The number formats and operations of the language, written down a second time: on whole numbers and fractions, rounded once.

A value is a bit pattern. Nothing here is shared with ir/fp.c, the simulator or the code generator."""
import math
import struct
from fractions import Fraction

FLOATS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7), "f8e4m3": (4, 3), "f8e5m2": (5, 2)}
INTS = {f"{s}{w}": (w, s == "i") for s in "iu" for w in (8, 16, 32, 64)} | {"i1": (1, False)}
ROUNDS = ("rn", "rz", "rm", "rp")


def width(t):
    return INTS[t][0] if t in INTS else 1 + sum(FLOATS[t])


def parts(t):
    """(sign bit, infinity or None, canonical nan, largest finite), as bits."""
    e, m = FLOATS[t]
    top = ((1 << e) - 1) << m
    if t == "f8e4m3":
        return 0x80, None, 0x7F, 0x7E
    return 1 << (e + m), top, top | 1 << (m - 1), top - 1


def decode(t, bits):
    """A float; exact."""
    e, m = FLOATS[t]
    sign, inf, _, most = parts(t)
    mag = bits & (sign - 1)
    if mag > most:
        return math.nan if mag != inf else (-math.inf if bits & sign else math.inf)
    field, frac = mag >> m, mag & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    v = math.ldexp(frac + ((1 << m) if field else 0), max(field, 1) - bias - m)
    return -v if bits & sign else v


def is_nan(t, bits):
    return t in FLOATS and math.isnan(decode(t, bits))


def rounded(q, how, negative):
    """The whole number that the magnitude q (a Fraction) becomes."""
    n = q.numerator // q.denominator
    rest = q - n
    if how == "rn":
        return n + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2 == 1))
    away = how == ("rm" if negative else "rp")
    return n + (away and rest != 0)


def encode(t, v, how="rn", sat=False, negative=None):
    """v, a float or a Fraction or an int, rounded once; negative: the sign of a zero."""
    e, m = FLOATS[t]
    sign, inf, nan, most = parts(t)
    sat = sat or width(t) == 8
    if isinstance(v, float):
        if math.isnan(v):
            return nan
        negative = math.copysign(1, v) < 0
        if math.isinf(v):
            return (most if sat else inf) | (sign if negative else 0)
    v = Fraction(v)
    negative = v < 0 if v else bool(negative)
    flag = sign if negative else 0
    if not v:
        return flag
    v = abs(v)
    x = v.numerator.bit_length() - v.denominator.bit_length()
    x -= v < Fraction(2) ** x
    least = 2 - (1 << (e - 1))
    last = max(x, least) - m
    n = rounded(v / Fraction(2) ** last, how, negative)
    bits = n + ((max(x, least) - least) << m)       # the leading bit of n adds the remaining 1, a carry goes to the exponent
    if bits > most:
        to_inf = how == "rn" or how == ("rm" if negative else "rp")
        bits = most if sat or not to_inf else inf
    return flag | bits


def integer(t, bits):
    w, signed = INTS[t]
    bits &= (1 << w) - 1
    return bits - (1 << w) if signed and bits >> (w - 1) else bits


def wrap(t, v):
    return v & ((1 << INTS[t][0]) - 1)


def clamp(t, v):
    w, signed = INTS[t]
    lo, hi = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if signed else (0, (1 << w) - 1)
    return min(max(v, lo), hi)


def cast(a, b, bits, how=None, sat=False):
    if a in FLOATS:
        v = decode(a, bits)
        if b == "i1":
            return int(not v == 0)
        if b in FLOATS:
            return bits if a == b and not sat else encode(b, v, how or "rn", sat)
        if math.isnan(v):
            return 0
        if math.isinf(v):
            return wrap(b, clamp(b, (1 << 70) if v > 0 else -(1 << 70)))
        n = rounded(abs(Fraction(v)), how or "rz", v < 0)
        return wrap(b, clamp(b, -n if v < 0 else n))
    v = integer(a, bits)
    if b == "i1":
        return int(v != 0)
    if b in FLOATS:
        return encode(b, v, how or "rn", sat)
    return wrap(b, clamp(b, v) if sat else v)


# ---- operations; None: not said here ----
def float_binary(op, t, x, y):
    a, b = decode(t, x), decode(t, y)
    finite = math.isfinite(a) and math.isfinite(b)
    if op in ("+", "-"):
        b = b if op == "+" else -b
        if not finite or (a == 0 and b == 0):
            return encode(t, a + b)
        return encode(t, Fraction(a) + Fraction(b))
    if op == "*":
        return encode(t, Fraction(a) * Fraction(b), negative=math.copysign(1, a) * math.copysign(1, b) < 0) if finite else encode(t, a * b)
    if op == "/":
        negative = math.copysign(1, a) * math.copysign(1, b) < 0
        if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
            return parts(t)[2]
        if b == 0 or math.isinf(a):
            return encode(t, -math.inf if negative else math.inf)
        return encode(t, Fraction(0) if math.isinf(b) else Fraction(a) / Fraction(b), negative=negative)
    if op == "%":
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
            return parts(t)[2]
        return encode(t, math.fmod(a, b))
    if op in ("min", "max", "minimum", "maximum"):
        if math.isnan(a) or math.isnan(b):
            return parts(t)[2] if len(op) > 3 or (math.isnan(a) and math.isnan(b)) else encode(t, b if math.isnan(a) else a)
        key = lambda v: (v, math.copysign(1, v))
        return encode(t, (min if op.startswith("min") else max)(a, b, key=key))
    if op == "copysign":
        sign = parts(t)[0]
        return (x & (sign - 1)) | (y & sign)
    return None


def float_fma(t, x, y, z):
    a, b, c = decode(t, x), decode(t, y), decode(t, z)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        product = math.nan if (math.isinf(a) and b == 0) or (a == 0 and math.isinf(b)) else a * b if not math.isfinite(a) or not math.isfinite(b) else math.copysign(1, a) * math.copysign(1, b)
        return encode(t, product + c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    minus = math.copysign(1, a) * math.copysign(1, b) < 0
    return encode(t, exact, negative=minus and math.copysign(1, c) < 0 if a == 0 or b == 0 or not exact else None)


def float_unary(op, t, x):
    v, sign = decode(t, x), parts(t)[0]
    if op == "-":
        return x ^ sign
    if op == "abs":
        return x & ~sign
    if math.isnan(v):
        return parts(t)[2]
    if op == "sqrt":
        if v < 0:
            return parts(t)[2]
        if v == 0 or math.isinf(v):
            return x
        q = Fraction(v)
        shift = 2 * (FLOATS[t][1] + 40) - (q.numerator.bit_length() - q.denominator.bit_length())
        shift += shift % 2
        n = math.isqrt(int(q * 2**shift) if shift >= 0 else int(q / 2**-shift))
        exact = Fraction(n) ** 2 == q * Fraction(2) ** shift
        return encode(t, (Fraction(2 * n + (not exact), 2)) / Fraction(2) ** (shift // 2))
    if op not in ("floor", "ceil", "trunc", "rint", "round"):
        return None
    if math.isinf(v):
        return x
    q = abs(Fraction(v))
    whole = {"floor": lambda: rounded(q, "rm", v < 0), "ceil": lambda: rounded(q, "rp", v < 0), "trunc": lambda: rounded(q, "rz", v < 0),
             "rint": lambda: rounded(q, "rn", v < 0), "round": lambda: int(q + Fraction(1, 2))}
    negative = bool(x & sign)
    n = whole[op]()
    return encode(t, -n if negative else n, negative=negative)


def shift(op, t, x, count):
    w, signed = INTS[t]
    if not 0 <= count < w:
        return wrap(t, -1) if op == ">>" and signed and integer(t, x) < 0 else 0
    return wrap(t, integer(t, x) << count if op == "<<" else integer(t, x) >> count)


def int_binary(op, t, x, y):
    w, signed = INTS[t]
    a, b = integer(t, x), integer(t, y)
    divide = lambda: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    u = lambda v: v & ((1 << w) - 1)
    table = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: divide(), "%": lambda: a - b * divide(),
             "min": lambda: min(a, b), "max": lambda: max(a, b), "minimum": lambda: min(a, b), "maximum": lambda: max(a, b),
             "&": lambda: a & b, "|": lambda: a | b, "^": lambda: a ^ b,
             "<<": lambda: shift(op, t, x, u(b)), ">>": lambda: shift(op, t, x, u(b)),
             "mulhi": lambda: a * b >> w, "umulhi": lambda: u(a) * u(b) >> w}
    return wrap(t, table[op]())


def int_unary(op, t, x):
    w, _ = INTS[t]
    a, u = integer(t, x), x & ((1 << w) - 1)
    low = (u & -u).bit_length()
    return wrap(t, {"-": -a, "~": ~a, "abs": abs(a), "popc": bin(u).count("1"), "clz": w - u.bit_length(), "ffs": low,
                    "ctz": low - 1 if low else w, "brev": int(format(u, f"0{w}b")[::-1], 2)}[op])


def compare(op, t, x, y):
    value = decode if t in FLOATS else integer
    a, b = value(t, x), value(t, y)
    return int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def f32(v):
    return struct.unpack("f", struct.pack("f", v))[0]
