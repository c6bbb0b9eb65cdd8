"""approx_fit.py DIR [--out=MODEL.json] [--only=FUNCTION,...]: tables and arithmetic of the hardware's approximations, from the sweeps
in DIR (scripts/approx_sweep.py).

The form that is looked for is the quadratic interpolator of Oberman and Siu ("A high-performance area-efficient multifunction
interpolator", ARITH 2005): the upper m bits of a reduced argument pick a segment i, the lower bits are x, and the result is what the
format keeps of

    T = C0[i] + C1[i] x + C2[i] S(x) + bias

with S a squarer that drops low columns of its partial products. S is one of `squarers`. Everything else follows from the results:

1. Each result bounds T from both sides (`Section`). With m and S guessed the bounds are linear in the three coefficients of a segment, and
   a linear program (`chebyshev`) says by how much they must be violated at least. More than nothing in any segment refutes the guess. The
   fewest segments, then the first S, that survive are taken; how many other S did is said.
2. The coarsest power of two of which C2 can be a multiple in every segment is its last place; then C1's; then the largest power of two
   modulo which the constants of all segments can be one number, the bias: C0 are the multiples above it.
3. With whole numbers T is computed exactly for every swept argument and compared.

Whatever is not reproduced is said, for each function, with the guess that came nearest and where it fails; the exit status is then 1.
Coefficients that the results do not pin down are counted: any choice gives the same bits for every swept argument."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import approx_sweep

TINY = 2e-6      # of a unit: what a linear program may be wrong by
FAR = 0.75       # units: more than a squarer's dropped columns come to where a segment curves little
DROPPED = 2.0 ** -12    # of a square, and so of the coefficient: what they come to in 17 rows


# ---- squarers ----

class Squarer:
    """S of numbers of `bits` bits. kind rows: partial product j is x << j where bit j is set; folded: each pair of different bits once, a
    column higher; exact: all columns. Columns below `cut` are dropped, `add` is added, and the last `shift` bits go. centred: x counts from
    the middle of the segment, and of negative ones all bits are inverted."""

    def __init__(self, bits, kind, cut, shift, add=0, centred=False):
        self.bits, self.kind, self.cut, self.shift, self.add, self.centred = bits, kind, cut, shift, add, centred

    def __str__(self):
        text = f"{self.kind} from column {self.cut}" if self.kind != "exact" else "exact"
        return text + (f" + {self.add}" if self.add else "") + f" >> {self.shift}" + (", centred" if self.centred else "")

    def record(self):
        return dict(bits=self.bits, kind=self.kind, cut=self.cut, shift=self.shift, add=self.add, centred=self.centred)

    def columns(self, x):
        """What the array adds up, before add and shift: int64."""
        if self.kind == "exact":
            return x * x
        if self.kind == "rows":
            return sum((x >> j & 1) * ((x << j) >> self.cut << self.cut) for j in range(self.bits))
        total = np.zeros_like(x)
        for j in range(self.bits):
            # Row j of the folded array: bit j itself in column 2 j, its products with the bits above from column 2 j + 2 on.
            row = (((x >> (j + 1)) << (2 * j + 2)) | (np.int64(1) << (2 * j)))
            total += (x >> j & 1) * (row >> self.cut << self.cut)
        return total

    def value(self, x):
        return self.columns(x) + self.add >> self.shift

    def __call__(self, x):
        x = np.asarray(x, np.int64)
        if self.centred:
            x = x - (1 << self.bits - 1)
            x = np.where(x < 0, ~x, x)
        return self.value(x)


def squarers(bits):
    """The candidates, the more usual first. The value keeps 10 to 22 bits."""
    for centred in (False, True):
        width = 2 * (bits - centred)
        yield Squarer(bits, "exact", 0, 0, 0, centred)
        for keep in range(min(22, width), 9, -1):
            cut = width - keep
            for kind in ("rows", "folded", "exact"):
                for more in (0, 1, 2, 3):
                    if kind == "exact" and more:
                        continue
                    for half in (0, 1):
                        add = 1 << cut + more - 1 if half and cut + more else 0
                        if half and (not add or kind != "exact" and not more):
                            continue
                        yield Squarer(bits, kind, 0 if kind == "exact" else cut, cut + more, add, centred)


# ---- bounds ----

class Section:
    """A stretch of arguments of one table. x: int64[k], rising, of n bits; low <= T < high, in units; exact in float64."""

    def __init__(self, name, n, x, low, high):
        self.name, self.n, self.x, self.low, self.high = name, n, x, low, high

    def segments(self, m):
        """(index, the slice of its arguments) of those that have arguments."""
        edges = np.searchsorted(self.x, np.arange((1 << m) + 1, dtype=np.int64) << (self.n - m))
        return [(i, slice(int(a), int(b))) for i, (a, b) in enumerate(zip(edges, edges[1:])) if b > a]


def truncated(y, unit_exponent):
    """Bounds, in units of 2^unit_exponent, of what was cut to 24 significant bits and became y (bits of numbers that are not negative)."""
    v = y.view(np.float32).astype(np.float64)
    ulp = np.ldexp(1.0, np.maximum((y >> 23).astype(np.int64), 1) - 150)
    return np.ldexp(v, -unit_exponent), np.ldexp(v + ulp, -unit_exponent)


def nearest(y, unit_exponent):
    """The same of what was rounded."""
    low, high = truncated(y, unit_exponent)
    half = (high - low) / 2
    return low - half, high - half


# ---- the linear program ----

def chebyshev(columns, low, high, stop=None):
    """The coefficients c of the columns for which low - E <= c . columns <= high + E with the least E; (c, E). The dual simplex method:
    each turn exchanges one of the bounds that hold E up for the one that is violated most. E grows from turn to turn; beyond stop it
    ends."""
    k, n = len(columns), len(low)
    at = np.unique(np.linspace(0, n - 1, k + 1).round().astype(int))
    if len(at) <= k:
        return np.array([(low[0] + high[0]) / 2] + [0.0] * (k - 1)), -1.0
    sign = np.where(np.arange(k + 1) % 2 == 0, 1.0, -1.0)        # 1: a lower bound, -1: an upper one

    def row(i, s):
        return np.array([s * c[i] for c in columns] + [1.0])

    def bound(i, s):
        return low[i] if s > 0 else -high[i]
    g = np.array([row(i, s) for i, s in zip(at, sign)])
    h = np.array([bound(i, s) for i, s in zip(at, sign)])
    unit = np.zeros(k + 1)
    unit[k] = 1
    weights = np.linalg.solve(g.T, unit)
    if (weights < -1e-12).any():
        # The columns do not alternate here: bounds of the other side hold where weights are negative.
        flip = weights < 0
        sign = np.where(flip, -sign, sign)
        g = np.array([row(i, s) for i, s in zip(at, sign)])
        h = np.array([bound(i, s) for i, s in zip(at, sign)])
        weights = np.linalg.solve(g.T, unit)
    c, e = None, None
    for _ in range(200):
        z = np.linalg.solve(g, h)
        c, e = z[:k], z[k]
        if stop is not None and e > stop:
            return c, e
        t = c[0] * columns[0]
        for a, col in zip(c[1:], columns[1:]):
            t = t + a * col
        under, over = low - t, t - high
        i, j = int(under.argmax()), int(over.argmax())
        worst, new, s = (under[i], i, 1.0) if under[i] > over[j] else (over[j], j, -1.0)
        if worst <= e + TINY / 8:
            return c, e
        enter = row(new, s)
        step = np.linalg.solve(g.T, enter)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(step > 1e-13, weights / step, np.inf)
        out = int(ratio.argmin())
        if not np.isfinite(ratio[out]):
            return c, np.inf
        weights = weights - ratio[out] * step
        weights[out] = ratio[out]
        g[out], h[out] = enter, bound(new, s)
    return c, e


# ---- segments and squarer ----

class Guess:
    """The columns of one m and one squarer."""

    def __init__(self, n, m, squarer):
        self.m, self.squarer, self.bits = m, squarer, n - m
        x = np.arange(1 << self.bits, dtype=np.int64)
        self.s_whole = squarer(x)
        # Scaled to 1 for the linear programs.
        self.x_scale, self.s_scale = float(1 << self.bits), float(max(1, self.s_whole.max()))
        self.x, self.s = x / self.x_scale, self.s_whole / self.s_scale

    def low_bits(self, section, part):
        return section.x[part] & ((1 << self.bits) - 1)

    def fit(self, section, part, stop=None, thin=1):
        at = self.low_bits(section, part)[::thin]
        x, s = self.x[at], self.s[at]
        return chebyshev([np.ones_like(x), x, s], section.low[part][::thin], section.high[part][::thin], stop)


def curved(section, m):
    """Segments in order of how much they curve: there a squarer shows."""
    def bend(part):
        y = section.low[part]
        return abs(y[0] - 2 * y[len(y) // 2] + y[-1])
    return sorted(section.segments(m), key=lambda ip: -bend(ip[1]))


def survivors(sections, m, nearest_miss, only=None):
    """The squarers, or of those in `only`, that no segment refutes. nearest_miss: [violation, text], kept least."""
    n, out = sections[0].n, []
    hard = sorted(((section, i, part) for section in sections for i, part in curved(section, m)[:4]),
                  key=lambda t: -abs(t[0].low[t[2]][0] - 2 * t[0].low[t[2]][len(t[0].low[t[2]]) // 2] + t[0].low[t[2]][-1]))
    every = [(section, i, part) for section in sections for i, part in section.segments(m)]
    seen = set()
    # No squarer drops as much as this: where exact squares miss by more the segments are too long.
    guess = Guess(n, m, Squarer(n - m, "exact", 0, 0))
    for section, i, part in hard[:4]:
        c, e = guess.fit(section, part, None, 8)
        if e > FAR + abs(c[2]) * DROPPED:
            if not nearest_miss or e < nearest_miss[0]:
                nearest_miss[:] = [e, f"m = {m}, exact squares: segment {i} of {section.name} by {e:.4f} units at least"]
            return out
    for q in only or squarers(n - m):
        guess = Guess(n, m, q)
        key = guess.s_whole.tobytes() if len(guess.s_whole) < 1 << 12 else hash(guess.s_whole.tobytes())
        if key in seen:
            continue
        seen.add(key)
        worst = -np.inf
        for thin, parts in ((8, hard[:2]), (1, hard[:4]), (1, every)):
            for section, i, part in parts:
                e = guess.fit(section, part, TINY, thin)[1]
                worst = max(worst, e)
                if e > TINY:
                    if not nearest_miss or thin == 1 and e < nearest_miss[0]:
                        nearest_miss[:] = [e, f"m = {m}, {q}: segment {i} of {section.name} by {e:.4f} units at least"]
                    break
            if worst > TINY:
                break
        if worst <= TINY:
            out.append(guess)
    return out


# ---- whole numbers ----

def multiples(value, place):
    """The neighbouring multiples of place, the nearer first."""
    q = value / place
    a, b = np.floor(q), np.floor(q) + 1
    return [int(a), int(b)] if q - a < 0.5 else [int(b), int(a)]


class Segment:
    """One segment of one section with its bounds, and the choices of (C2, C1, constants) that are left."""

    def __init__(self, guess, section, index, part):
        self.guess, self.section, self.index, self.part = guess, section, index, part
        at = guess.low_bits(section, part)
        self.x, self.s = at.astype(np.float64), guess.s_whole[at].astype(np.float64)
        self.low, self.high = section.low[part], section.high[part]
        c, _ = guess.fit(section, part)
        self.c2 = c[2] / guess.s_scale
        self.lines = {}

    def line(self, c2):
        """With C2 given: (C1, E) of the best line."""
        if c2 not in self.lines:
            rest = c2 * self.s
            scale = self.guess.x_scale
            c, e = chebyshev([np.ones_like(self.x), self.x / scale], self.low - rest, self.high - rest)
            self.lines[c2] = c[1] / scale, e
        return self.lines[c2]

    def squares(self, place, most=64):
        """The multiples of place that C2 can be."""
        found = [k for k in multiples(self.c2, place) if self.line(k * place)[1] <= TINY]
        for k, step in ((min(found), -1), (max(found), 1)) if found else ():
            while len(found) < most and self.line((k + step) * place)[1] <= TINY:
                k += step
                found.append(k)
        return sorted(found)

    def constants(self, c2, c1, unit):
        """[least, most] whole numbers of units that the constant can be; least > most: none."""
        t = c2 * self.s + c1 * self.x
        return int(np.ceil((self.low - t) / unit).max()), int((np.ceil((self.high - t) / unit) - 1).min())

    def slopes(self, c2, place, unit, most=64):
        """(C1 as a multiple of place, constants) with C2 given."""
        start, found = multiples(self.line(c2)[0], place), []
        for k in start:
            a, b = self.constants(c2, k * place, unit)
            if a <= b:
                found.append((k, a, b))
        for step in (-1, 1) if found else ():
            k = (min if step < 0 else max)(f[0] for f in found)
            while len(found) < most:
                k += step
                a, b = self.constants(c2, k * place, unit)
                if a > b:
                    break
                found.append((k, a, b))
        return found


def common_bias(choices):
    """The largest a for which every segment has a choice with a constant of the same rest modulo 2^a, and the rests as spans. choices:
    lists of (least, most)."""
    def covers(a):
        size = 1 << a
        left = [(0, size - 1)]
        for options in choices:
            spans = []
            for low, high in options:
                if high - low + 1 >= size:
                    spans = [(0, size - 1)]
                    break
                p, q = low % size, high % size
                spans += [(p, q)] if p <= q else [(0, q), (p, size - 1)]
            left = [(max(p, r), min(q, s)) for p, q in left for r, s in spans if max(p, r) <= min(q, s)]
            left = sorted(set(left))
            if not left:
                return None
        return left
    best = (0, [(0, 0)])
    for a in range(1, 48):
        left = covers(a)
        if not left:
            break
        best = (a, left)
    return best


def whole(guess, sections):
    """The model of a guess that survived, as a dict, or why there is none."""
    segments = [Segment(guess, section, i, part) for section in sections for i, part in section.segments(guess.m)]
    order = sorted(segments, key=lambda s: -abs(s.c2))

    def finest(fits, first, last):
        """The coarsest place 2^-j at which fits holds for all segments."""
        for j in range(first, last):
            if all(fits(s, 2.0**-j) for s in order):
                return 2.0**-j
        return None
    place2 = finest(lambda s, p: s.squares(p, 1), -4, 40)
    if place2 is None:
        return "no last place of C2 fits"
    candidates = {id(s): s.squares(place2) for s in segments}

    def slopes(s, p):
        unit = min(p, place2)
        return any(s.slopes(k * place2, p, unit, 1) for k in candidates[id(s)])
    place1 = finest(slopes, -4, 48)
    if place1 is None:
        return "no last place of C1 fits"
    unit = min(place1, place2)
    choices = {id(s): [(k, *f) for k in candidates[id(s)] for f in s.slopes(k * place2, place1, unit)] for s in segments}
    a, left = common_bias([sorted({(lo, hi) for _, _, lo, hi in choices[id(s)]}) for s in segments])
    bias, size = left[0][0], 1 << a
    tables, open_ = {}, 0
    for s in segments:
        fit = [(k2, k1, c) for k2, k1, lo, hi in choices[id(s)] for c in range(lo + (bias - lo) % size, hi + 1, size)]
        open_ += len(fit) > 1
        # Of several the one in the middle: its neighbours are in doubt least.
        k2, k1, c = sorted(fit)[len(fit) // 2]
        tables.setdefault(s.section.name, {})[s.index] = [(c - bias) // size, k1, k2]
    exponent = lambda p: int(round(np.log2(p)))
    return dict(m=guess.m, n=sections[0].n, squarer=guess.squarer.record(), unit=exponent(unit), c0_shift=a, bias=bias,
                bias_range=[left[0][0], left[-1][1]], c1_shift=exponent(place1 / unit), c2_shift=exponent(place2 / unit), open=open_,
                tables={name: [rows.get(i) for i in range(1 << guess.m)] for name, rows in tables.items()})


def total(model, table, x):
    """T in the model's units, int64, and where the table has the segment."""
    rows = np.array([r or [0, 0, 0] for r in model["tables"][table]], np.int64)
    have = np.array([r is not None for r in model["tables"][table]])
    bits = model["n"] - model["m"]
    i, low = x >> bits, x & ((1 << bits) - 1)
    s = Squarer(**model["squarer"])(np.arange(1 << bits, dtype=np.int64))[low]
    t = (rows[i, 0] << model["c0_shift"]) + (rows[i, 1] * low << model["c1_shift"]) + (rows[i, 2] * s << model["c2_shift"]) + model["bias"]
    return t, have[i]


def differ(model, section):
    """How many swept arguments of a section T is out of bounds for."""
    t, have = total(model, section.name, section.x)
    low, high = (np.ceil(np.ldexp(v, -model["unit"])).astype(np.int64) for v in (section.low, section.high))
    return int(np.count_nonzero(~have | (t < low) | (t >= high)))


def fit(sections, least=4, most=9, say=lambda line: None, only=None):
    """The model of sections that share segments' size and squarer (one of `only`), or None; and a line on what was found."""
    miss = []
    for m in range(least, most + 1):
        if sections[0].n - m < 6:
            break
        found = survivors(sections, m, miss, only)
        say(f"    m = {m}: {len(found)} squarers are not refuted")
        for guess in found:
            model = whole(guess, sections)
            if isinstance(model, str):
                say(f"    {guess.squarer}: {model}")
                continue
            wrong = sum(differ(model, s) for s in sections)
            if wrong:
                say(f"    {guess.squarer}: {wrong} differ with whole numbers")
                continue
            model["other_squarers"] = [str(g.squarer) for g in found if g is not guess]
            return model, describe(model)
    return None, "nothing of this form fits; nearest: " + (miss[1] if miss else "none tried")


def widths(model):
    rows = np.array([r for t in model["tables"].values() for r in t if r is not None], np.int64)
    span = lambda v: max(int(v.max()).bit_length(), int(-v.min() - 1).bit_length() if v.min() < 0 else 0) + int(v.min() < 0 < v.max())
    return [span(rows[:, k]) for k in range(3)]


def describe(model):
    others = model["other_squarers"]
    return (f"2^{model['m']} segments in {len(model['tables'])} table(s), squarer {Squarer(**model['squarer'])}, "
            f"C0 C1 C2 of {widths(model)} bits with last places of 2^{model['c0_shift']} 2^{model['c1_shift']} 2^{model['c2_shift']} "
            f"of 2^{model['unit']} units, "
            f"bias {model['bias_range'][0]}..{model['bias_range'][1]}"
            + (f"; {model['open']} segments have other coefficients that fit" if model["open"] else "")
            + (f"; {len(others)} other squarers fit" if others else ""))


# ---- what the functions make of their arguments ----

class Sweep:
    """The whole binades of a form in the files of a folder: {form: {number: results}}."""

    def __init__(self, folder, form):
        self.binades = {form: {}}
        for kind, _, x, y in approx_sweep.read(folder, [form]):
            if kind == "binade" and len(y) == 1 << 23:
                self.binades[form][int(x[0]) >> 23] = y

    def of(self, form, *numbers):
        """The results of binades, or KeyError."""
        return [self.binades[form][n] for n in numbers]


MANTISSAS = np.arange(1 << 23, dtype=np.int64)


def grid(y):
    """The exponent of the largest power of two of which all results (bits, some not 0) are multiples."""
    y = y[y & 0x7FFFFFFF != 0]
    m, e = (y & 0x7FFFFF | 0x800000).astype(np.int64), np.maximum((y >> 23 & 255).astype(np.int64), 1)
    low = np.log2((m & -m).astype(np.float64)).astype(np.int64)
    return int((low + e - 150).min())


def bounded(name, x, y, unit_exponent, rounded=False, place=None):
    """A section of results y of arguments x: cut to 24 bits, or to 2^place, which all are multiples of, where that is coarser, or rounded
    so."""
    low, high = (nearest if rounded else truncated)(y, unit_exponent)
    step = np.ldexp(1.0, (grid(y) if place is None else place) - unit_exponent)
    middle = np.ldexp(y.view(np.float32).astype(np.float64), -unit_exponent)
    coarse = high - low < step
    low = np.where(coarse, middle - (step / 2 if rounded else 0), low)
    high = np.where(coarse, low + step, high)
    return Section(name, 23, x, low, high)


def without_first(section):
    """Without the argument 0, which units treat apart; and that one alone."""
    first = Section(section.name, section.n, section.x[:1], section.low[:1], section.high[:1])
    return Section(section.name, section.n, section.x[1:], section.low[1:], section.high[1:]), first


def plain(sweep, form, binades, unit_exponent, say):
    """Functions that are one table: rcp, rsqrt, sqrt and ex2 of one binade or two."""
    whole_, first = zip(*(without_first(bounded(str(b), MANTISSAS, y, unit_exponent)) for b, y in zip(binades, sweep.of(form, *binades))))
    model, text = fit(list(whole_), say=say)
    if model:
        model["apart"] = {f.name: int(sweep.binades[form][int(f.name)][0]) for f in first if differ(model, f)}
        text += f"; apart: {model['apart']}" if model["apart"] else ""
        model.update(unit_exponent=unit_exponent, rounded=False, grid=min(grid(y) for y in sweep.of(form, *binades)))
    return model, [text], 0 if model else sum(len(s.x) for s in whole_)


def fixed(mantissa, exponent, places, how):
    """mantissa 2^exponent (int64, >= 0) as a whole number of 2^-places: cut, to nearest with ties up or to even, or up."""
    shift = exponent + places
    if np.isscalar(shift) and shift >= 0:
        return mantissa << shift
    right = np.minimum(np.maximum(-shift, 0), 40)
    left = np.maximum(shift, 0)
    v = (mantissa << left) >> right
    rest = (mantissa << left) - (v << right)
    half = np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 1)
    if how == "nearest":
        return v + ((right > 0) & (rest >= half))
    if how == "even":
        return v + ((right > 0) & ((rest > half) | ((rest == half) & (v & 1 == 1))))
    if how == "up":
        return v + (rest > 0)
    return v


def ex2_arguments(sweep, say):
    """How ex2 makes its argument a fixed-point number: {how, complement}, the number of results that no way explains, lines."""
    form, table = "ex2.approx.ftz.f32", sweep.of("ex2.approx.ftz.f32", 127)[0].astype(np.int64)
    best = None
    for how in ("cut", "nearest", "even", "up", "down"):
        for ones in (False, True):
            wrong, where = 0, {}
            for b, y in sweep.binades[form].items():
                negative, e = b >= 256, (b & 255) - 127
                way = ("up" if negative else "cut") if how == "down" else how
                q = fixed(MANTISSAS | 0x800000, e - 23, 23, way)
                v = (~q if ones else -q) if negative else q
                if ones and negative:
                    v = np.where(q & 0x7FFFFF, v, -q)
                want = table[v & 0x7FFFFF] + ((v >> 23) - 1 << 23)
                bad = int(np.count_nonzero(want != y))
                if bad:
                    where[b] = bad
                wrong += bad
                if best is not None and wrong >= best[1]:
                    break
            if best is None or wrong < best[1]:
                best = dict(how=how, complement="ones" if ones else "twos"), wrong, where
            if not wrong:
                break
    facts, wrong, where = best
    lines = [f"the argument is a multiple of 2^-23, {facts['how']}, negative ones by {facts['complement']}' complement"
             + (f": {wrong} results are not explained, in binades {where}" if wrong else "")]
    return facts, wrong, lines


def ex2(sweep, say):
    model, lines, left = plain(sweep, "ex2.approx.ftz.f32", [127], -22, say)
    facts, wrong, more = ex2_arguments(sweep, say)
    if model:
        model["argument"] = facts
    return model, lines + more, left + wrong


def below_one(model, y):
    """How the unit negates lg2 of [1/2, 1), T - 1 of the table of [1, 2): {complement, place}, how many results differ."""
    t, have = total(model, "127", MANTISSAS)
    one = np.int64(1) << -(model["unit"] + model["unit_exponent"])
    best = None
    for place in range(0, 20):
        for ones in (True, False):
            size = ((one - (t >> place << place)) >> place) - ones
            v = size.astype(np.float64)
            e = np.frexp(v)[1]
            cut = np.floor(np.ldexp(v, 24 - e))
            cut = np.where(e > 24, np.ldexp(cut, e - 24), v)
            got = np.ldexp(cut, place + model["unit"] + model["unit_exponent"]).astype(np.float32).view(np.uint32) | np.uint32(0x80000000)
            wrong = int(np.count_nonzero((got != y)[1:] | ~have[1:]))
            if best is None or wrong < best[1]:
                best = dict(complement="ones" if ones else "twos", place=place), wrong
        if best[1] == 0:
            break
    return best


def lg2(sweep, say):
    y, under = sweep.of("lg2.approx.ftz.f32", 127, 126)
    for rounded in (False, True):
        section, _ = without_first(bounded("127", MANTISSAS, y, -24, rounded))
        model, text = fit([section], say=say)
        if model:
            break
    text = f"multiples of 2^{grid(y)}, {'rounded' if rounded else 'cut'}: " + text
    if not model:
        return None, [text], len(y)
    model.update(unit_exponent=-24, rounded=rounded, grid=grid(y))
    facts, wrong = below_one(model, under)
    model["below"] = facts
    return model, [text, f"below 1: T - 1 negated by {facts['complement']}' complement at 2^{facts['place']} units"
                   + (f", {wrong} results are not explained" if wrong else "")], wrong


TURN = 0xA2F983      # the significand of 1 / (2 pi) as f32, times 2^-26


def turns(binade):
    """(significand, exponent) of x times 1 / (2 pi), cut to 24 bits, for the mantissas of a binade of positive numbers."""
    product = (MANTISSAS | 0x800000) * TURN
    wide = product >> 47 > 0
    return np.where(wide, product >> 24, product >> 23), np.where(wide, binade - 150 - 26 + 24, binade - 150 - 26 + 23)


def depends(q, y):
    """Whether y is a function of q, which rises."""
    return not ((q[1:] == q[:-1]) & (y[1:] != y[:-1])).any()


def turn_places(sweep, form):
    """(places, how): the fewest binary places of the angle in turns that its sine or cosine still is a function of, or None."""
    binades = [b for b in (126, 125, 124, 122, 120) if b in sweep.binades[form]]
    for places in range(23, 34):
        for how in ("cut", "nearest", "even"):
            for b in binades:
                m, e = turns(b)
                if not depends(fixed(m, e, places, how), sweep.binades[form][b]):
                    break
            else:
                return places, how
    return None


def circle(sweep, form, say):
    """sin and cos: one quadrant's table."""
    found = turn_places(sweep, form)
    if not found:
        return None, ["not a function of a fixed-point number of turns of up to 33 places"], len(MANTISSAS)
    places, how = found
    lines = [f"a function of the angle in multiples of 2^-{places} turns, {how}"]
    n, size = places - 2, 1 << places - 2
    arguments, results = [], []
    for b in (b for b in sweep.binades[form] if b <= 127):
        m, e = turns(b)
        q, at = np.unique(fixed(m, e, places, how), return_index=True)
        inside = q < size
        arguments.append(q[inside])
        results.append(sweep.binades[form][b][at[inside]])
    x, at = np.unique(np.concatenate(arguments), return_index=True)
    y = np.concatenate(results)[at]
    if form.startswith("cos"):
        # The same table from its other end.
        x, y = (size - 1 - x)[::-1], y[::-1]
    place = min(grid(y) for y in sweep.binades[form].values())
    for rounded in (False, True):
        section = bounded("quadrant", x, np.ascontiguousarray(y), -24, rounded, place)
        section.n = n
        model, text = fit([without_first(section)[0]], say=say)
        if model:
            break
    lines.append(f"multiples of 2^{place}, {'rounded' if rounded else 'cut'}: " + text)
    if not model:
        return None, lines, len(x)
    model.update(unit_exponent=-24, rounded=rounded, grid=place, places=places, how=how)
    left, more = quadrants(sweep, form, model)
    return model, lines + more, left


def kept(model, t):
    """The f32 bits of sums T that are not negative, of models with a grid: cut or rounded to the grid, then to 24 bits."""
    scale = model["unit"] + model["unit_exponent"]
    v = np.ldexp(t.astype(np.float64), scale - model["grid"])
    v = np.floor(v + 0.5 * model["rounded"])
    e = np.frexp(v)[1]
    cut = np.floor(np.ldexp(v, 24 - e) + 0.5 * model["rounded"])
    v = np.where(e > 24, np.ldexp(cut, e - 24), v)
    return np.ldexp(v, model["grid"]).astype(np.float32).view(np.uint32)


def quadrants(sweep, form, model):
    """Which way the other quadrants read the table: the results that differ, and a line."""
    size, best = 1 << model["n"], None
    for ones in (True, False):
        wrong, count = {}, 0
        for b, y in sweep.binades[form].items():
            m, e = turns(b)
            q = fixed(m, e, model["places"], model["how"]) + (size if form.startswith("cos") else 0)
            quadrant, x = q >> model["n"] & 3, q & size - 1
            back = np.where(quadrant & 1, size - 1 - x if ones else size - x, x)
            t, have = total(model, "quadrant", np.minimum(back, size - 1))
            got = kept(model, np.maximum(t, 0)) | (quadrant >> 1).astype(np.uint32) << np.uint32(31)
            bad = int(np.count_nonzero((got != y) | ~have | (back == size)))
            count += bad
            if bad:
                wrong[b] = bad
        if best is None or count < best[0]:
            best = count, ones, wrong
    count, ones, wrong = best
    model["back"] = "ones" if ones else "twos"
    return count, [f"falling quadrants read the table by {model['back']}' complement"
                   + (f": {count} results are not explained, in binades {wrong}" if count else "")]


def joined(models):
    """Models of neighbouring binades, {binade: model}, with one squarer and as many bits below the segments, as one table: rows of all
    binades one after the other, in one unit. None if they are not so."""
    first, last = min(models), max(models)
    if sorted(models) != list(range(first, last + 1)) or len({(m["n"] - m["m"], str(m["squarer"])) for m in models.values()}) != 1:
        return None
    own = {b: m["unit"] + m["unit_exponent"] for b, m in models.items()}
    place, rows = min(own.values()), []
    for b in range(first, last + 1):
        m = models[b]
        for c0, c1, c2 in m["tables"][str(b)]:
            rows.append([(c0 << m["c0_shift"]) + m["bias"] << own[b] - place, c1 << m["c1_shift"] + own[b] - place,
                         c2 << m["c2_shift"] + own[b] - place])
    shifts = [min(v & -v for v in column if v).bit_length() - 1 for column in zip(*rows)]
    return dict(m=0, n=models[first]["n"] - models[first]["m"], squarer=models[first]["squarer"], unit=0, unit_exponent=place, bias=0,
                c0_shift=shifts[0], c1_shift=shifts[1], c2_shift=shifts[2], binade=first,
                parts=[models[b]["m"] for b in range(first, last + 1)],
                tables={"binades": [[v >> k for v, k in zip(row, shifts)] for row in rows]})


def tanh(sweep, say):
    """Small arguments are their own results, large ones give 1. In between each binade has segments of its own, of one size in bits, and
    a squarer that all share: that of the binade that curves most."""
    left, same, ones, sections = 0, [], [], {}
    for b, y in sorted(sweep.binades["tanh.approx.f32"].items()):
        if (y == (b << 23 | MANTISSAS)).all():
            same.append(b)
        elif (y == 0x3F800000).all():
            ones.append(b)
        else:
            used = next(k for k in range(23, -1, -1) if (y.reshape(-1, 1 << k) == y.reshape(-1, 1 << k)[:, :1]).all())
            short, n = np.ascontiguousarray(y[:: 1 << used]), 23 - used
            unit = max(int(short.max() >> 23) - 150, grid(short))
            sections[b] = bounded(str(b), MANTISSAS[: 1 << n], short, unit)
            sections[b].n, sections[b].unit = n, unit
    models, lines, only = {}, [], None
    for b in sorted(sections, key=lambda b: abs(b - 126)):
        s = sections[b]
        model, text = fit([s], least=max(0, s.n - 19), most=min(7, s.n - 6), say=lambda line: None, only=only)
        lines.append(f"2^{b - 127}: the upper {s.n} bits of the mantissa count: {text}")
        if model:
            models[b] = dict(model, unit_exponent=s.unit)
            only = only or [Squarer(**model["squarer"])]
        else:
            left += 1 << 23
    if same and ones:
        lines.append(f"its argument in the binades {min(same) - 127} to {max(same) - 127} that were swept, 1 from {min(ones) - 127} on")
    whole_ = joined(models) if models and not left and max(same, default=0) + 1 == min(models) and max(models) + 1 == min(ones, default=0) else None
    if whole_:
        lines.append(f"as one table: C0 C1 C2 of {widths(whole_)} bits with last places of 2^{whole_['c0_shift']} 2^{whole_['c1_shift']} "
                     f"2^{whole_['c2_shift']} of 2^{whole_['unit_exponent']}, rows of binades: {whole_['parts']} bits")
        wrong = sum(differ({**whole_, "m": s.n - whole_["n"], "n": s.n, "unit": whole_["unit_exponent"] - s.unit,
                             "tables": {s.name: whole_["tables"]["binades"][sum(1 << p for p in whole_["parts"][: b - whole_["binade"]]):]}}, s)
                    for b, s in sections.items())
        left += wrong
    return whole_, lines, left


# What finds the model of a form's sweep: (model or None, lines, how many swept results are not explained).
FUNCTIONS = {"rcp": lambda s, say: plain(s, "rcp.approx.ftz.f32", [127], -24, say),
             "rsqrt": lambda s, say: plain(s, "rsqrt.approx.ftz.f32", [127, 128], -24, say),
             "sqrt": lambda s, say: plain(s, "sqrt.approx.ftz.f32", [127, 128], -23, say), "ex2": ex2, "lg2": lg2,
             "sin": lambda s, say: circle(s, "sin.approx.ftz.f32", say), "cos": lambda s, say: circle(s, "cos.approx.ftz.f32", say),
             "tanh": tanh}


def main():
    given = {a.split("=", 1)[0]: a.partition("=")[2] for a in sys.argv[1:] if a.startswith("--")}
    rest = [a for a in sys.argv[1:] if not a.startswith("--")]
    names = [n for n in given.get("--only", "").split(",") if n] or list(FUNCTIONS)
    if len(rest) != 1 or set(given) - {"--out", "--only"} or set(names) - set(FUNCTIONS):
        sys.exit(__doc__)
    models, left = {}, 0
    say = lambda line: print(line, flush=True)
    for name in names:
        say(name)
        sweep = Sweep(rest[0], f"{name}.approx{'' if name == 'tanh' else '.ftz'}.f32")
        try:
            models[name], lines, unexplained = FUNCTIONS[name](sweep, say)
        except KeyError as missing:
            models[name], lines, unexplained = None, [f"not in the files: {missing}"], 1
        for line in lines:
            say("  " + line)
        say(f"  {unexplained} swept results are not explained" if unexplained else "  every swept result is explained")
        left += unexplained
    with open(given.get("--out") or os.path.join(rest[0], "approx.json"), "w") as f:
        json.dump({k: v for k, v in models.items() if v}, f)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
