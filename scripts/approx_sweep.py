"""approx_sweep.py OUTDIR [--device=cuda|sim] [--step=N] [--seconds=S] [--check=MODEL] [--only=NAME,...]
approx_sweep.py DIR --digests=FILE

What the hardware's approximations (PTX ISA, "Floating Point Instructions", the .approx forms) give, bit for bit, for scripts/approx_fit.py.

Without --check it writes to OUTDIR approx.0.bin, approx.1.bin, ... (at most 4 of at most 14 MiB) and approx.txt, a table that is printed
too. The .bin files hold sweeps, read by `read`: every mantissa of the binades in DOMAINS; a thin sample of all binades of both signs;
all 2^16 values of the 16-bit forms; edge values. Proofs need no data: `PROOFS` says what a result should be, given results in
another binade or another instruction, and the device counts for each sign and exponent how many of the 2^32 inputs differ.

Quotients are those of a scrambled argument by the argument.

--check=MODEL compares a model with the device over all 2^32 inputs of each form: MODEL.so exports
    int approx_model(const char *form, uint32_t first, uint32_t count, uint32_t *out);     0: it knows the form
which gives the results of count inputs from first on (for 16-bit forms of one half in 32 bits); MODEL.py has model(form, bits), from
uint32 to uint32, or to None. The device sends a digest of each 2^16 inputs; only where digests differ are results compared, nans by
their bits.

--digests writes to FILE, in text, a digest of each piece of the samples, edge values and 16-bit forms of a sweep that lies in DIR:
tests/numbers/approx_kept.py compares the tables with it.

--step=N takes every N-th mantissa only (1; on the simulator 8192). After --seconds (540) nothing new is started, and the end says what
was left. Needs numpy and libtilec, of TILEC_LIB or .gpu/lib or build/lib."""
import concurrent.futures
import ctypes
import importlib.util
import json
import os
import struct
import sys
import time
import zlib

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

F32 = [f"{f}.approx{ftz}.f32" for f in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos") for ftz in (".ftz", "")] + ["tanh.approx.f32"]
# Of what SCRAMBLED makes of the argument, by the argument.
QUOTIENTS = ["div.full.f32", "div.full.ftz.f32", "div.approx.f32", "div.approx.ftz.f32"]
SCRAMBLED = 0x9E3779B1
F16 = ["ex2.approx.f16", "ex2.approx.f16x2", "ex2.approx.ftz.bf16", "ex2.approx.ftz.bf16x2",
       "tanh.approx.f16", "tanh.approx.f16x2", "tanh.approx.bf16", "tanh.approx.bf16x2"]

# The form, the binades (biased exponents, 256 more for negative numbers) of which every mantissa is wanted. Those which a fit needs most
# come first: what does not fit into the files any more is left out, and said to be.
DOMAINS = [("rcp.approx.ftz.f32", [127]), ("rsqrt.approx.ftz.f32", [127, 128]), ("sqrt.approx.ftz.f32", [127, 128]),
           ("lg2.approx.ftz.f32", [127, 126, 128, 125]), ("ex2.approx.ftz.f32", [127, 126, 383, 382]),
           ("sin.approx.ftz.f32", [127, 128, 126, 129, 125, 124]), ("cos.approx.ftz.f32", [127, 128, 126, 129, 125, 124]),
           ("tanh.approx.f32", list(range(131, 117, -1))),
           ("ex2.approx.ftz.f32", [*range(125, 101, -1), *range(381, 357, -1), 128, 384]),
           ("sin.approx.ftz.f32", [*range(123, 113, -1), 130, 131]), ("cos.approx.ftz.f32", [*range(123, 111, -1), 130, 131]),
           ("tanh.approx.f32", list(range(117, 106, -1)))]

FILES, FILE_BYTES, BLOCK = 4, 14 << 20, 4096
PIECES = 32      # of a sample that have a digest each


# ---- the files ----

def pack(y):
    """uint32[n] -> bytes: first differences, block by block in as few bits as they need, compressed."""
    d = np.diff(y.astype(np.int64), prepend=np.int64(0)).astype(np.int64)
    first, d[0] = int(y[0]), 0
    d = np.concatenate([d, np.zeros(-len(d) % BLOCK, np.int64)]).reshape(-1, BLOCK)
    least = d.min(axis=1)
    spread = (d.max(axis=1) - least).astype(np.uint64)
    width = np.ceil(np.log2(spread.astype(np.float64) + 1)).astype(np.uint8)
    width[width > 8] = 64
    out = [struct.pack("<II", first, len(y)), least.astype("<i8").tobytes(), width.tobytes()]
    for w in np.unique(width):
        rows = d[width == w] - least[width == w, None]
        if w == 64:
            # Byte planes: what is rare and large lies in few of them.
            out.append(rows.astype("<u8").view(np.uint8).reshape(-1, 8).T.tobytes())
        elif w:
            bits = (rows.astype(np.uint8)[:, :, None] >> np.arange(w, dtype=np.uint8)) & 1 if w > 1 else rows.astype(np.uint8)
            out.append(np.packbits(bits.reshape(-1), bitorder="little").tobytes())
    return zlib.compress(b"".join(out), 6)


def unpack(data):
    """What pack was given."""
    data = zlib.decompress(data)
    first, n = struct.unpack_from("<II", data)
    blocks, at = -(-n // BLOCK), 8
    least = np.frombuffer(data, "<i8", blocks, at)
    width = np.frombuffer(data, np.uint8, blocks, at + 8 * blocks)
    at += 9 * blocks
    d = np.repeat(least[:, None], BLOCK, axis=1)
    for w in np.unique(width):
        rows = np.flatnonzero(width == w)
        if w == 64:
            size = len(rows) * BLOCK * 8
            planes = np.frombuffer(data, np.uint8, size, at).reshape(8, -1)
            d[rows] += np.ascontiguousarray(planes.T).reshape(-1).view("<u8").astype(np.int64).reshape(-1, BLOCK)
            at += size
        elif w:
            size = len(rows) * BLOCK * int(w) // 8
            bits = np.unpackbits(np.frombuffer(data, np.uint8, size, at), bitorder="little").reshape(len(rows), BLOCK, int(w))
            d[rows] += (bits.astype(np.int64) << np.arange(int(w))).sum(axis=2)
            at += size
    return ((first + np.cumsum(d.reshape(-1))[:n]) & 0xFFFFFFFF).astype(np.uint32)


class Files:
    """approx.N.bin in a folder: records of a JSON line and bytes."""

    def __init__(self, folder, step):
        self.folder, self.step, self.at, self.used, self.left_out = folder, step, 0, 0, []
        os.makedirs(folder, exist_ok=True)
        for i in range(FILES):
            if os.path.exists(path := self._path(i)):
                os.remove(path)

    def _path(self, i):
        return os.path.join(self.folder, f"approx.{i}.bin")

    def add(self, kind, form, first, step, count, data):
        head = json.dumps(dict(kind=kind, form=form, first=int(first), step=int(step), count=int(count), bytes=len(data))).encode() + b"\n"
        size = len(head) + len(data)
        if self.used + size > FILE_BYTES:
            if self.at + 1 == FILES:
                self.left_out.append(f"{form} {kind} from {first:#010x}")
                return
            self.at, self.used = self.at + 1, 0
        with open(self._path(self.at), "ab") as f:
            f.write(head + data)
        self.used += size


def read(folder, forms=None):
    """The sweeps of a folder, of the forms given or all: (kind, form, inputs uint32[n], results uint32[n]). Kinds are binade, sample, half
    and edge."""
    for name in sorted(n for n in os.listdir(folder) if n.startswith("approx.") and n.endswith(".bin")):
        with open(os.path.join(folder, name), "rb") as f:
            while line := f.readline():
                head = json.loads(line)
                data = f.read(head["bytes"])
                if forms and head["form"] not in forms:
                    continue
                y = unpack(data)
                if head["kind"] == "edge":
                    yield "edge", head["form"], edges(), y
                else:
                    x = head["first"] + np.arange(head["count"], dtype=np.uint64) * np.uint64(head["step"])
                    yield head["kind"], head["form"], x.astype(np.uint32), y


def edges():
    """Zeros, subnormal numbers, infinities, nans with payloads, and both ends of every binade."""
    special = [0, 1, 2, 0x7FFFFF, 0x400000, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF]
    ends = [e << 23 | m for e in range(255) for m in (0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFD, 0x7FFFFE, 0x7FFFFF)]
    whole = np.arange(161).astype(np.float32).view(np.uint32)
    half = np.unique(np.concatenate([np.array(special + ends, np.uint32), whole, whole + np.uint32(1), whole[1:] - np.uint32(1)]))
    return np.concatenate([half, half | np.uint32(0x80000000)])


# ---- kernels ----

KERNELS = """
fn op(x) { return ptx("%(text)s", "=%(reg)s,%(reg)s", x, %(type)s); }
kernel sweep(y: *%(type)s, first: u32, step: u32, n: i32, const N = 1024) warps(4) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, op(%(type)s(first + u32(i) * step)), mask=i < n);
}
kernel each(x: *%(type)s, y: *%(type)s, n: i32, const N = 1024) warps(4) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, op(load(x + i, mask=i < n)), mask=i < n);
}
kernel digest(out: *u64, factors: *u64, first: u32, const SIZE = 65536, const N = 1024) warps(4) {
  var h = zeros(N, u64);
  for k in range(0, SIZE, N) {
    let i = k + arange(0, N);
    h += u64(op(%(type)s(first + u32(program_id(0)) * SIZE + u32(i)))) * load(factors + i);
  }
  store(out + program_id(0), sum(h));
}
"""

# counts[512]: how many inputs of each sign and exponent differ; examples[512, 3]: one of them, its result, what was predicted.
PROVE = """
kernel prove(counts: *i32, examples: *u32, step: u32, const N = 1024) warps(4) {
  let first = u32(program_id(0)) * N * step;
  let x = first + u32(arange(0, N)) * step;
  let got = op(x);
  let want = predict(x);
  let bad = got != want;
  let many = sum(i32(bad));
  if many > 0 {
    let bin = i32(first >> 23);
    let at = min(where(bad, x, u32(0xffffffff)), axis=0);
    if atomic_add(counts + bin, many) == 0 {
      store(examples + bin * 3, at);
      store(examples + bin * 3 + 1, sum(where(x == at, got, u32(0))));
      store(examples + bin * 3 + 2, sum(where(x == at, want, u32(0))));
    }
  }
}
fn field(x) { return i32((x >> 23) & 0xff); }
fn fraction(x) { return x & 0x7fffff; }
fn sign(x) { return x & 0x80000000; }
const INF = 0x7f800000;
const NAN = 0x7fffffff;
// The bits y with their exponent greater by k, flushed to 0, beyond the largest infinite.
fn scaled(y, k) {
  let e = field(y) + k;
  let z = fraction(y) | (u32(e) << 23);
  return where(e <= 0, u32(0), where(e >= 255, u32(INF), z));
}
"""

SCALED = dict(
    rcp="""fn predict(x) {
  let (e, s) = (field(x), sign(x));
  let y = s | scaled(op(fraction(x) | 0x3f800000), 127 - e);
  return where(e == 0, s | INF, where(e == 255, where(fraction(x) == 0, s, u32(NAN)), y));
}""",
    rsqrt="""fn predict(x) {
  let (e, s) = (field(x), sign(x));
  let odd = (e - 127) & 1;
  let y = scaled(op(fraction(x) | (u32(127 + odd) << 23)), -((e - 127 - odd) / 2));
  let large = where(fraction(x) == 0 && s == 0, u32(0), u32(NAN));
  return where(e == 0, s | INF, where(e == 255, large, where(s != 0, u32(NAN), y)));
}""",
    sqrt="""fn predict(x) {
  let (e, s) = (field(x), sign(x));
  let odd = (e - 127) & 1;
  let y = scaled(op(fraction(x) | (u32(127 + odd) << 23)), (e - 127 - odd) / 2);
  let large = where(fraction(x) == 0 && s == 0, u32(INF), u32(NAN));
  return where(e == 0, s, where(e == 255, large, where(s != 0, u32(NAN), y)));
}""",
    # From 1 up the whole part is added to lg2 of [1, 2), below 1 to that of [1/2, 1); the sum is exact in f64.
    lg2="""fn predict(x) {
  let (e, s) = (field(x), sign(x));
  let under = i32(e < 127);
  let y = f64(bitcast(op(fraction(x) | (u32(127 - under) << 23)), f32)) + f64(e - 127 + under);
  let r = bitcast(f32(y, round="%(round)s"), u32);
  let large = where(fraction(x) == 0 && s == 0, u32(INF), u32(NAN));
  return where(e == 0, u32(0xff800000), where(e == 255, large, where(s != 0, u32(NAN), r)));
}""",
    # x as a whole number of 2^-23, rounded as said; its fraction f by ex2(1 + f), its whole part in the exponent.
    ex2="""fn predict(x) {
  let (e, s) = (field(x), sign(x));
  let m = where(e == 0, i64(0), i64(fraction(x) | 0x800000) << 8);
  let whole = where(e >= 127, m << i64(min(e - 127, 8)), m >> i64(clamp_(127 - e)));
  let v = whole | i64(e < 127 && (whole << i64(clamp_(127 - e))) != m);     // the last bit says whether any below was 1
  let q = %(rounded)s;
  let w = where(s != 0, %(negated)s, q);
  let y = scaled(op(u32(w & 0x7fffff) | 0x3f800000), i32(w >> 23) - 1);
  let far = where(s != 0, u32(0), u32(INF));
  return where(e == 255 && fraction(x) != 0, u32(NAN), where(e >= 134, far, y));
}
fn clamp_(k) { return max(0, min(k, 60)); }""")
ROUNDED = {"truncated": "v >> 8", "to nearest": "(v + 0x80) >> 8", "to even": "(v + 0x7f + ((v >> 8) & 1)) >> 8",
           "down": "where(s != 0, (v + 0xff) >> 8, v >> 8)"}
NEGATED = {"": "-q", ", ones' complement": "where((q & 0x7fffff) != 0, ~q, -q)"}


def sequence(text):
    """A prediction made of other instructions: of $1 to $0."""
    return 'fn predict(x) { return ptx("{ .reg .pred p, q; .reg .f32 t, s; .reg .b32 b; %s }", "=r,r", x, u32); }' % text


def small(form, before, after):
    """How ptxas makes the form without .ftz: below the least normal number the argument is scaled, and the result back."""
    f = form.replace(".f32", ".ftz.f32")
    return sequence(f"abs.f32 t, $1; setp.lt.f32 p, t, 0f00800000; mov.b32 t, $1; @p mul.f32 t, t, {before}; {f} t, t; {after} "
                    "mov.b32 $0, t;")


def proofs():
    """(form, what it should be, the tile text of predict)."""
    for f in ("rcp", "rsqrt", "sqrt"):
        yield f"{f}.approx.ftz.f32", "scaled from one binade" + ("" if f == "rcp" else " or two"), SCALED[f]
    for rounding in ("rz", "rn"):
        yield "lg2.approx.ftz.f32", f"the whole part added, {rounding}", SCALED["lg2"] % {"round": rounding}
    for how, r in ROUNDED.items():
        for neg, n in NEGATED.items():
            yield "ex2.approx.ftz.f32", f"of 2^-23 {how}{neg}", SCALED["ex2"] % {"rounded": r, "negated": n}
    for f in ("sin.approx.ftz", "tanh.approx"):
        yield f"{f}.f32", "odd", sequence(
            f"xor.b32 b, $1, 0x80000000; {f}.f32 t, b; setp.nan.f32 p, t, t; mov.b32 b, t; @!p xor.b32 b, b, 0x80000000; mov.b32 $0, b;")
    yield "cos.approx.ftz.f32", "even", sequence("xor.b32 b, $1, 0x80000000; cos.approx.ftz.f32 t, b; mov.b32 $0, t;")
    yield "tanh.approx.f32", "its argument", "fn predict(x) { return x; }"
    yield "tanh.approx.f32", "1 or -1", "fn predict(x) { return sign(x) | 0x3f800000; }"
    yield "sqrt.approx.ftz.f32", "rcp of rsqrt", sequence("rsqrt.approx.ftz.f32 t, $1; rcp.approx.ftz.f32 t, t; mov.b32 $0, t;")
    yield "sqrt.approx.ftz.f32", "x rsqrt x", sequence("rsqrt.approx.ftz.f32 t, $1; mov.b32 s, $1; mul.ftz.f32 t, t, s; mov.b32 $0, t;")
    for f in ("sin", "cos"):
        yield f"{f}.approx.f32", "the ftz form", sequence(f"{f}.approx.ftz.f32 t, $1; mov.b32 $0, t;")
    yield "rsqrt.approx.f32", "the ftz form and scales", small("rsqrt.approx.f32", "0f4B800000", "@p mul.f32 t, t, 0f45800000;")
    yield "sqrt.approx.f32", "the ftz form and scales", small("sqrt.approx.f32", "0f4B800000", "@p mul.f32 t, t, 0f39800000;")
    yield "lg2.approx.f32", "the ftz form and scales", small("lg2.approx.f32", "0f4B800000", "@p add.f32 t, t, 0fC1C00000;")
    yield "ex2.approx.f32", "the ftz form and scales", sequence(
        "mov.b32 t, $1; setp.lt.f32 p, t, 0fC2FC0000; @p mul.f32 t, t, 0f3F000000; ex2.approx.ftz.f32 t, t; @p mul.f32 t, t, t; "
        "mov.b32 $0, t;")
    yield "rcp.approx.f32", "the ftz form and scales", sequence(
        "abs.f32 t, $1; setp.lt.f32 p, t, 0f00800000; setp.gt.f32 q, t, 0f7E800000; mov.f32 s, 0f3F800000; @p mov.f32 s, 0f4B800000; "
        "@q mov.f32 s, 0f3E800000; mov.b32 t, $1; mul.f32 t, t, s; rcp.approx.ftz.f32 t, t; mul.f32 t, t, s; mov.b32 $0, t;")


def half_proofs():
    """(16-bit form, what it should be, the instructions that make it of $1 to $0)."""
    for f in ("ex2", "tanh"):
        wide = f"{f}.approx{'.ftz' if f == 'ex2' else ''}.f32"
        for t, form in (("f16", f"{f}.approx.f16"), ("bf16", f"{f}.approx{'.ftz' if f == 'ex2' else ''}.bf16")):
            up = "cvt.f32.f16 t, $1;" if t == "f16" else "mov.b32 t, {0, $1};"
            for how in ("rn", "rz"):
                yield form, f"the f32 form, {how}", f"{{ .reg .f32 t; {up} {wide} t, t; cvt.{how}.{t}.f32 $0, t; }}"


class Runner:
    def __init__(self, device, step, seconds):
        import tilec
        self.tilec, self.dev, self.begun, self.seconds, self.lines = tilec, tilec.Device(device), time.time(), seconds, []
        self.step = step or (8192 if self.dev.is_sim else 1)
        self.left, self._factors, self._programs = [], None, {}

    def say(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def late(self, what):
        """Whether there is no time to begin this; remembers it."""
        if time.time() - self.begun < self.seconds:
            return False
        self.left.append(what)
        return True

    def program(self, form, more="", instead=""):
        """instead: instructions to run for the form."""
        key = form, more, instead
        if key not in self._programs:
            wide = form.endswith((".f32", "x2"))
            if form in QUOTIENTS:
                instead = f"{{ .reg .b32 a; mul.lo.u32 a, $1, {SCRAMBLED:#x}; {form} $0, a, $1; }}"
            text = KERNELS % dict(text=instead or form + " $0, $1;", reg="r" if wide else "h", type="u32" if wide else "u16")
            self._programs[key] = self.dev.program(text=text + more, name=form + ".tile")
        return self._programs[key]

    def results(self, form, first, step, n, instead=""):
        """uint32[n]: of first, first + step, ..."""
        wide = form.endswith((".f32", "x2"))
        y = self.dev.empty((n,), "u32" if wide else "u16")
        self.program(form, instead=instead).kernel("sweep")(self.tilec.cdiv(n, 1024), y, first, step, n)
        return y.numpy().astype(np.uint32)

    def each(self, form, bits):
        y = self.dev.empty(bits.shape, "u32")
        self.program(form).kernel("each")(self.tilec.cdiv(len(bits), 1024), self.dev.array(bits), y, len(bits))
        return y.numpy()

    def digests(self, form, first, blocks):
        if self._factors is None:
            self._factors = self.dev.array(factors())
        out = self.dev.empty((blocks,), "u64")
        self.program(form).kernel("digest")(blocks, out, self._factors, first)
        return out

    def prove(self, form, what, predict):
        counts, examples = self.dev.array(np.zeros(512, np.int32)), self.dev.array(np.zeros((512, 3), np.uint32))
        k = self.program(form, PROVE + predict).kernel("prove")
        k((1 << 32) // self.step // 1024, counts, examples, self.step)
        return counts.numpy(), examples.numpy()


def halves(form, y):
    """The results of a 16-bit form of one input in both halves: both must be the same."""
    if form.endswith("x2"):
        assert ((y >> 16) == (y & 0xFFFF)).all(), f"{form}: the halves differ"
    return y & 0xFFFF


def half_results(r, form):
    return halves(form, r.results(form, 0, 0x10001 if form.endswith("x2") else 1, 65536))


def ranges(counts):
    """Which signs and exponents: '-127..-1:12 +3:5'; of biased exponents less 127."""
    out, at = [], np.flatnonzero(counts)
    for run in np.split(at, np.flatnonzero(np.diff(at) != 1) + 1) if len(at) else []:
        for part in (run[run < 256], run[run >= 256]):
            if len(part):
                s, a, b = "+-"[int(part[0] >= 256)], int(part[0] & 255) - 127, int(part[-1] & 255) - 127
                out.append(f"{s}2^{a}" + (f"..{b}" if b != a else "") + f": {int(counts[part].sum())}")
    return ", ".join(out[:8]) + (", ..." if len(out) > 8 else "")


def sweep(r, folder):
    files, wanted = Files(folder, r.step), lambda f: not only or f in only
    r.say(f"{r.dev.name}: step {r.step}")
    per = (1 << 23) // r.step
    workers = min(16, os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        coming = []
        for form in F32 + QUOTIENTS:
            if wanted(form) and not r.late(form + " edges and sample"):
                y = r.each(form, edges())
                coming.append(("edge", form, 0, 0, len(y), pool.submit(pack, y)))
                thin = max(8192, r.step) + 1
                n = min((1 << 32) // thin, 1 << 31)
                coming.append(("sample", form, 0, thin, n, pool.submit(pack, r.results(form, 0, thin, n))))
        for form in F16:
            if wanted(form) and not r.late(form):
                coming.append(("half", form, 0, 1, 65536, pool.submit(pack, half_results(r, form))))
        for form, binades in DOMAINS:
            for b in binades:
                if not wanted(form) or r.late(f"{form} binade {b}"):
                    continue
                while sum(not c[-1].done() for c in coming) > 2 * workers:
                    time.sleep(0.005)
                coming.append(("binade", form, b << 23, r.step, per, pool.submit(pack, r.results(form, b << 23, r.step, per))))
        sizes = {}
        for kind, form, first, step, n, data in coming:
            files.add(kind, form, first, step, n, data.result())
            s = sizes.setdefault(form, [0, 0])
            s[0], s[1] = s[0] + n, s[1] + len(data.result())
    r.say(f"{'form':24} {'results':>12} {'bytes':>10}")
    for form, (n, size) in sizes.items():
        r.say(f"{form:24} {n:12} {size:10}")
    for what in files.left_out:
        r.say(f"left out, the files are full: {what}")
    r.say(f"swept in {time.time() - r.begun:.1f} s")
    for form, what, predict in proofs():
        if wanted(form) and not r.late(f"{form}: {what}"):
            counts, examples = r.prove(form, what, predict)
            r.say(f"{form:22} {what:34} {int(counts.sum(dtype=np.int64)):10} differ  {ranges(counts)}")
            for b in np.flatnonzero(counts)[:: max(1, np.count_nonzero(counts) // 4)][:4]:
                r.say("    {:#010x}: {:#010x}, not {:#010x}".format(*map(int, examples[b])))
    for form, what, instead in half_proofs():
        if wanted(form) and not r.late(f"{form}: {what}"):
            got, want = half_results(r, form), r.results(form, 0, 1, 65536, instead)
            bad = np.flatnonzero(got != want)
            r.say(f"{form:22} {what:34} {len(bad):10} differ")
            for b in bad[:: max(1, len(bad) // 4)][:4]:
                r.say(f"    {b:#06x}: {got[b]:#06x}, not {want[b]:#06x}")


def digests(folder):
    """[(kind, form, first, step, count, digests of PIECES pieces)] of what was swept thinly."""
    out = []
    for kind, form, x, y in read(folder):
        if kind != "binade":
            step = int(x[1]) - int(x[0]) if kind != "edge" else 0
            out.append((kind, form, int(x[0]), step, len(x), [zlib.crc32(p.astype("<u4").tobytes()) for p in np.array_split(y, PIECES)]))
    return out


# ---- models ----

def factors():
    """uint64[65536], odd: a digest is the sum of results times these."""
    i = np.arange(65536, dtype=np.uint64)
    return (i * np.uint64(0x9E3779B97F4A7C15) ^ (i << np.uint64(29))) | np.uint64(1)


class Model:
    """MODEL.so or MODEL.py, as results of a form from an input on."""

    def __init__(self, path):
        if path.endswith(".so"):
            f = ctypes.CDLL(os.path.abspath(path)).approx_model
            f.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]

            def results(form, first, n):
                out = np.empty(n, np.uint32)
                return out if f(form.encode(), first, n, out.ctypes.data) == 0 else None
        else:
            spec = importlib.util.spec_from_file_location("approx_given_model", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)

            def results(form, first, n):
                y = module.model(form, (first + np.arange(n, dtype=np.uint64)).astype(np.uint32))
                return None if y is None else np.asarray(y, np.uint32)
        self.results = results


def check_form(r, model, form, pool):
    """(how many results were compared, how many differ, the first of them). A form that differs nearly everywhere is given up early."""
    mult, size, chunk = factors(), 65536, max(1, 1024 // r.step)
    total, examples, done, part, blocks = 0, [], 0, min(8, chunk), 0

    def digest(first):
        y = model.results(form, first, part * size).astype(np.uint64).reshape(part, size)
        y *= mult
        return y.sum(axis=1, dtype=np.uint64)
    for at in range(0, 65536, chunk * r.step):
        if blocks > 4096:
            r.say(f"{form}: more than {blocks} of {done // size} blocks differ; given up at {at << 16:#010x}")
            break
        if time.time() - r.begun > r.seconds:
            r.left.append(f"{form} from {at << 16:#010x} on")
            break
        there = r.digests(form, at << 16, chunk)
        here = np.concatenate(list(pool.map(digest, [(at + b) << 16 for b in range(0, chunk, part)])))
        done += chunk * size
        for b in np.flatnonzero(here != there.numpy()):
            first = (at + int(b)) << 16
            want, got = r.results(form, first, 1, size), model.results(form, first, size)
            bad = np.flatnonzero(want != got)
            total, blocks = total + len(bad), blocks + 1
            if len(examples) < 8:
                examples += [(first + int(i), int(want[i]), int(got[i])) for i in bad[:2]]
    return done, total, examples


def check(r, path):
    model, bad = Model(path), 0
    r.say(f"{r.dev.name}: {path}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for form in F32 + QUOTIENTS + F16:
            begun = time.time()
            if (only and form not in only) or r.late(form):
                continue
            if model.results(form, 0, 1) is None:
                r.say(f"{form:24} not in the model")
                continue
            if form in F16:
                want, got = half_results(r, form), model.results(form, 0, 65536)
                at = np.flatnonzero(want != got)
                done, count, examples = 65536, len(at), [(int(i), int(want[i]), int(got[i])) for i in at[:8]]
            else:
                done, count, examples = check_form(r, model, form, pool)
            bad += count
            r.say(f"{form:24} {done:11} compared {count:11} differ  {time.time() - begun:6.1f} s")
            for x, want, got in examples:
                r.say(f"    {x:#010x}: {want:#010x}, the model {got:#010x}")
    return bad


def main():
    global only
    given = {a.split("=", 1)[0]: a.partition("=")[2] for a in sys.argv[1:] if a.startswith("--")}
    rest = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(rest) != 1 or set(given) - {"--device", "--step", "--seconds", "--check", "--only", "--digests"}:
        sys.exit(__doc__)
    if "--digests" in given:
        with open(given["--digests"], "w") as f:
            f.writelines(f"{kind} {form} {first} {step} {n} {' '.join('%08x' % d for d in sums)}\n" for kind, form, first, step, n, sums in digests(rest[0]))
        return 0
    only = [n for n in given.get("--only", "").split(",") if n]
    if unknown := set(only) - set(F32 + QUOTIENTS + F16):
        sys.exit(f"no form {', '.join(sorted(unknown))}; there are {', '.join(F32 + QUOTIENTS + F16)}")
    staged = os.path.join(root, ".gpu", "lib", "libtilec.so")
    os.environ.setdefault("TILEC_LIB", staged if os.path.exists(staged) else os.path.join(root, "build", "lib", "libtilec.so"))
    sys.path.insert(0, os.path.join(root, "tools"))
    r, bad = Runner(given.get("--device"), int(given.get("--step") or 0), float(given.get("--seconds") or 540)), 0
    os.makedirs(rest[0], exist_ok=True)
    if "--check" in given:
        bad = check(r, given["--check"])
    else:
        sweep(r, rest[0])
    for what in r.left:
        r.say(f"left, no time: {what}")
    r.say(f"{time.time() - r.begun:.1f} s")
    with open(os.path.join(rest[0], "check.txt" if "--check" in given else "approx.txt"), "w") as f:
        f.write("\n".join(r.lines) + "\n")
    return 1 if bad or r.left else 0


only = []
if __name__ == "__main__":
    sys.exit(main())
