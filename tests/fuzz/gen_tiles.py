"""Random kernels, the parts that see a tile whole: shapes, pieces, folds, scans, order, counts, random numbers, products."""
from gen_tree import E, F8, FLOATS, INTS, MOST, WILD, Float

# Functions of real numbers have the same bits everywhere (docs/maths.md); the largest result for arguments of at most 4.
REAL = {"exp": 64.0, "exp2": 16.0, "expm1": 64.0, "sin": 1.0, "cos": 1.0, "tanh": 1.0, "sinh": 32.0, "atan": 2.0, "cbrt": 2.0, "erf": 1.0,
        "sigmoid": 1.0, "silu": 4.0, "gelu": 4.0, "softplus": 8.0}
SORTED = 1024      # most elements of what is sorted


class Tiles:
    # ---- shapes ----
    def broadcast(self, dt, shape, depth):
        pick, d = self.r.random(), self.r.randrange(len(shape))
        if pick < 0.3:
            a = self.expr(dt, (), depth - 1)
        elif pick < 0.6 or len(shape) == 1:
            a = self.expr(dt, self.with_extent(shape, d, 1), depth - 1)
        else:
            inner = self.expr(dt, shape[:d] + shape[d + 1:], depth - 1)
            at = ", ".join("None" if i == d else ":" for i in range(len(shape)))
            a = E(dt, self.with_extent(shape, d, 1), f"({{0}})[{at}]", [inner], inner.known)
        return E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a], a.known)

    def permute(self, dt, shape, depth):
        if len(shape) < 2:
            return None
        order, rank = self.shuffled(len(shape)), len(shape)
        src = [None] * rank
        for i, o in enumerate(order):
            src[o] = shape[i]
        a = self.expr(dt, tuple(src), depth - 1)
        turned = order == list(range(rank - 2)) + [rank - 1, rank - 2]
        return E(dt, shape, "trans({0})" if turned and self.r.random() < 0.5 else f"permute({{0}}, {order})", [a], a.known)

    def reshape(self, dt, shape, depth):
        """Two dimensions from one, or one from two."""
        r, d = self.r, self.r.randrange(len(shape))
        if len(shape) > 1 and d + 1 < len(shape) and (r.random() < 0.5 or not self.power(shape)):
            src = shape[:d] + (f"{shape[d]} * {shape[d + 1]}",) + shape[d + 2:]
        else:
            n, by = self.value(shape[d]), r.choice([2, 3, 4])
            if len(shape) > 2 or n % by:
                return None
            src = shape[:d] + (str(by), str(n // by)) + shape[d + 1:]
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, f"reshape({{0}}, {self.list_of(shape)})", [a], a.known)

    # ---- pieces: tiles cut, put together, seen in part ----
    def pieces(self, dt, shape, depth):
        d = self.r.randrange(len(shape))
        return self.r.choice([self.part, self.row, self.cat, self.interleave, self.insert, self.join_split, self.butterfly, self.squeeze, self.flip])(
            dt, shape, d, self.value(shape[d]), depth)

    def part(self, dt, shape, d, n, depth):
        """Elements start..start+n of a larger tile."""
        r = self.r
        start, more = r.choice([0, 1, 3, n]), r.choice([0, 1, n])
        src = self.with_extent(shape, d, start + n + more)
        if not self.fits(src):
            return None
        a, rank = self.expr(dt, src, depth - 1), len(shape)
        if r.random() < 0.3:
            at = ", ".join(str(start) if i == d else "0" for i in range(rank))
            return E(dt, shape, f"view({{0}}, [{at}], {self.list_of(shape)})", [a], a.known)
        lo, hi = str(start) if start else r.choice(["", "0"]), str(start + n) if more else r.choice(["", str(start + n)])
        return E(dt, shape, f"({{0}})[{', '.join(f'{lo}:{hi}' if i == d else ':' for i in range(rank))}]", [a], a.known)

    def row(self, dt, shape, d, n, depth):
        """One element along a further dimension, found by a constant or at run time."""
        w = self.wider(shape)
        if not w:
            return None
        src, d = w
        i = self.r.choice(["0", f"{src[d]} - 1", f"n % {src[d]}", f"(program_id(0) + t) % {src[d]}"])
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, f"({{0}})[{', '.join(i if k == d else ':' for k in range(len(src)))}]", [a], a.known)

    def cat(self, dt, shape, d, n, depth):
        if n < 2:
            return None
        k = self.r.choice([n // 2, self.r.randrange(1, n)])
        a, b = self.expr(dt, self.with_extent(shape, d, k), depth - 1), self.expr(dt, self.with_extent(shape, d, n - k), depth - 2)
        return E(dt, shape, f"cat({{0}}, {{1}}, axis={d})", [a, b], self.met(dt, a.known, b.known))

    def interleave(self, dt, shape, d, n, depth):
        last = len(shape) - 1
        if self.value(shape[last]) % 2:
            return None
        half = self.with_extent(shape, last, self.value(shape[last]) // 2)
        a, b = self.expr(dt, half, depth - 1), self.expr(dt, half, depth - 2)
        return E(dt, shape, "interleave({0}, {1})", [a, b], self.met(dt, a.known, b.known))

    def insert(self, dt, shape, d, n, depth):
        k = self.r.randint(1, n)
        at = ", ".join(str(self.r.randint(0, n - k)) if i == d else "0" for i in range(len(shape)))
        a, b = self.expr(dt, shape, depth - 1), self.expr(dt, self.with_extent(shape, d, k), depth - 2)
        return E(dt, shape, f"insert({{0}}, {{1}}, [{at}])", [a, b], self.met(dt, a.known, b.known))

    def join_split(self, dt, shape, d, n, depth):
        a, b = self.expr(dt, shape, depth - 1), self.expr(dt, shape, depth - 2)
        return E(dt, shape, f"split(join({{0}}, {{1}}))[{self.r.randrange(2)}]", [a, b], self.met(dt, a.known, b.known))

    def butterfly(self, dt, shape, d, n, depth):
        if n < 2 or n & (n - 1):
            return None
        a = self.expr(dt, shape, depth - 1)
        return E(dt, shape, f"butterfly({{0}}, {d}, {self.r.choice([1, n // 2, n - 1])})", [a], a.known)

    def squeeze(self, dt, shape, d, n, depth):
        if len(shape) > 2:
            return None
        a = self.expr(dt, shape[:d] + ("1",) + shape[d:], depth - 1)
        return E(dt, shape, f"squeeze({{0}}, {d})", [a], a.known)

    def flip(self, dt, shape, d, n, depth):
        a = self.expr(dt, shape, depth - 1)
        return E(dt, shape, f"flip({{0}}, axis={d})", [a], a.known)

    # ---- along an axis, keeping the shape ----
    def along(self, dt, shape, depth):
        r, d = self.r, self.r.randrange(len(shape))
        n = self.value(shape[d])
        pick = r.choice(["sums", "sums", "scan", "scan", "gather", "gather", "prefix", "sort", "argsort", "topk"])
        if pick == "gather":
            a, i = self.expr(dt, shape, depth - 1), self.expr("i32", shape, depth - 2)
            inside = f"({{1}} & {shape[d]} - 1)" if n & (n - 1) == 0 else f"(({{1}} & 1023) % {shape[d]})"
            return E(dt, shape, f"gather({{0}}, {inside}, {d})", [a, i], a.known)
        if dt == "i1":
            return None
        if pick in ("sort", "argsort", "topk"):
            return self.order(dt, shape, d, n, pick, depth)
        if pick == "prefix":
            a = self.expr(dt, shape, depth - 1)
            back = r.choice(["", ", reverse=true", ", exclusive=true"])
            return E(dt, shape, f"{r.choice(['cummax', 'cummin'])}({{0}}, axis={d}{back})", [a], WILD if dt in FLOATS and "ex" in back else a.known)
        return (self.sums if pick == "sums" else self.scan)(dt, shape, d, n, depth)

    def order(self, dt, shape, d, n, pick, depth):
        r, t = self.r, self.r.choice([x for x in self.dtypes if x != "i1"])
        src = shape if pick != "topk" else self.with_extent(shape, d, n + r.choice([0, 1, 3, n]))
        if self.numel(src) > SORTED:
            return None
        if pick == "sort":
            a = self.expr(dt, src, depth - 1)
            return E(dt, shape, f"sort({{0}}, axis={d}{r.choice(['', ', descending=true'])})", [a], a.known)
        if pick == "argsort":
            return E(dt, shape, f"argsort({{0}}, axis={d}{r.choice(['', ', descending=true'])})", [self.expr(t, src, depth - 2)]) if dt == "i32" else None
        more = f"{shape[d]}, axis={d}{r.choice(['', ', descending=false'])}"
        if dt == "i32" and r.random() < 0.5:
            return E(dt, shape, f"topk({{0}}, {more})[1]", [self.expr(t, src, depth - 1)])
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, r.choice([f"topk({{0}}, {more})[0]", f"topk({{0}}, {more}, indices=false)"]), [a], a.known)

    def sums(self, dt, shape, d, n, depth):
        back = self.r.choice(["", ", reverse=true"]) + self.r.choice(["", "", ", exclusive=true"])
        if dt in INTS:
            fn = self.r.choice(["cumsum", "cumsum", "cumprod"])
            return E(dt, shape, f"{fn}({{0}}, axis={d}{back})", [self.expr(dt, shape, depth - 1)]) if INTS[dt] >= 32 else None
        a = self.exact(dt, shape, depth - 1)
        a = a if dt == "f64" or Float(a.known.lsb, a.known.most * n).fits("f32") else self.tame(a)
        known = Float(a.known.lsb, a.known.most * n)
        known = known if known.fits(dt) else Float(None, known.most) if known.most < MOST[dt] else None
        return known and E(dt, shape, f"cumsum({{0}}, axis={d}{back})", [a], known)

    def scan(self, dt, shape, d, n, depth):
        """By a function of the file: of one tile, of a tile and its indices, of two tiles whose order matters."""
        r, a = self.r, self.finite(dt, shape, depth - 1)
        back = r.choice(["", ", reverse=true"])
        pick = r.random()
        if pick < 0.3 and dt in INTS:
            b = self.expr(dt, shape, depth - 2)
            more = f", exclusive=true, identity=({dt}(1), {dt}(0))" if r.random() < 0.3 else ""
            return E(dt, shape, f"scan(({{0}}, {{1}}), {d}, after{back}{more})[{r.randrange(2)}]", [a, b])
        if pick < 0.6:
            fn = r.choice(["best", "least"])
            return E(dt, shape, f"scan(({{0}}, {self.places(shape, d)}), {d}, {fn}{back})[0]", [a], a.known)
        fn = r.choice(["larger", "smaller"])
        if pick < 0.8:
            return E(dt, shape, f"scan_by({fn}, {{0}}, {d}{r.choice(['', ', BACK=true'])})", [a], a.known)
        return E(dt, shape, f"scan({{0}}, {d}, {fn}{back}{r.choice(['', ', exclusive=true'])})", [a], self.met(dt, a.known, Float(0, 0.0)))

    def places(self, shape, d):
        """The indices along d, as large as the tile."""
        return f"broadcast_to(arange(0, {shape[d]}){self.index(d, len(shape))}, {self.list_of(shape)})"

    # ---- functions of an element ----
    def mapped(self, dt, shape, depth):
        """A function of the file, with loops that end at different times where it is of integers; sometimes of one that is the same for all."""
        r = self.r
        a, b = self.expr(dt, shape, depth - 1), self.expr(dt, shape if r.random() < 0.7 else (), depth - 2)
        if dt in INTS:
            fn = r.choice(["bits_more", "first_above"])
            return E(dt, shape, r.choice([f"map({fn}, {{0}}, {{1}})", f"map((x) -> ({fn}(x, x), x), {{0}} ^ {{1}})[0]"]), [a, b])
        if dt == "i1":
            return None
        fn = r.choice(["larger", "smaller"])
        return E(dt, shape, f"map({fn}, {{0}}, {{1}})", [a, b], self.met(dt, a.known, b.known))

    # ---- folds ----
    def reduce_tile(self, dt, shape, depth):
        w = self.wider(shape)
        return w and self.reduce(dt, shape, *w, depth)

    def reduce_all(self, dt, shape, depth):
        return self.reduce(dt, (), self.shape(1), 0, depth)

    def reduce(self, dt, shape, src, d, depth):
        r, fn = self.r, self.r.choice(["sum", "sum", "max", "arg", "at", "fold", "fold", "xor"])
        if fn in ("arg", "at") and dt == "i32":
            best = r.choice(["argmax({0}, axis=#)", "argmin({0}, axis=#)", "max_at({0}, axis=#)[1]", "min_at({0}, axis=#)[1]"])
            return E(dt, shape, best.replace("#", str(d)), [self.expr(r.choice([x for x in self.dtypes if x != "i1"]), src, depth - 1)])
        if dt == "i1":
            return E(dt, shape, f"{r.choice(['any', 'all'])}({{0}}, axis={d})", [self.expr(dt, src, depth - 1)])
        if fn == "xor" and dt in INTS:
            return E(dt, shape, f"xor_sum({{0}}, axis={d})", [self.expr(dt, src, depth - 1)])
        if fn == "sum":
            return self.sum(dt, shape, src, d, depth)
        if fn == "fold":
            return self.fold(dt, shape, src, d, depth)
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, r.choice(["max({0}, axis=#)", "min({0}, axis=#)", "max_at({0}, axis=#)[0]", "min_at({0}, axis=#)[0]"]).replace("#", str(d)), [a], a.known)

    def sum(self, dt, shape, src, d, depth):
        if dt in INTS:
            return E(dt, shape, f"sum({{0}}, axis={d})", [self.expr(dt, src, depth - 1)]) if INTS[dt] >= 32 else None
        n, a = self.value(src[d]), self.exact(dt, src, depth - 1)
        if not Float(a.known.lsb, a.known.most * n).fits("f32"):
            a = self.tame(a)
        known = Float(a.known.lsb, a.known.most * n)
        return E(dt, shape, f"sum({{0}}, axis={d})", [a], known if known.fits(dt) else Float(None, known.most))

    def fold(self, dt, shape, src, d, depth):
        """By a function of the file, given by name or through another one; over one tile, or two or three at once."""
        r, a = self.r, self.finite(dt, src, depth - 1)
        pick = r.random()
        if pick < 0.4:
            fn = r.choice(["larger", "smaller"])
            return E(dt, shape, r.choice([f"reduce({{0}}, {d}, {fn})", f"fold_by({fn}, {{0}}, {d})"]), [a], a.known)
        pair, fn = f"({{0}}, {self.places(src, d)})", r.choice(["best", "least"])
        if dt == "i32" and pick < 0.6:
            t = r.choice([x for x in self.dtypes if x != "i1"])
            return E(dt, shape, f"fold_by({fn}, {pair}, {d})[1]", [self.finite(t, src, depth - 1)])
        return E(dt, shape, r.choice([f"reduce({pair}, {d}, {fn})[0]", f"fold_by(f={fn}, x={pair}, D={d})[0]"]), [a], a.known)

    # ---- the library ----
    def library(self, dt, shape, depth):
        r, rank = self.r, len(shape)
        if dt == "i32" and rank == 1 and r.random() < 0.3:
            src, mask = self.shape(1), r.choice(["", ", mask={1}"])
            kids = [self.expr("i32", src, depth - 1)] + ([self.expr("i1", src, 1)] if mask else [])
            return E(dt, shape, f"histogram({{0}} {r.choice(['& 15', '% 7', '& 63'])}, {shape[0]}{mask})", kids)
        if dt in ("f64", "f32", "f16", "bf16") and r.random() < 0.5:
            f = r.choice(list(REAL))
            if dt in ("f64", "f32") and r.random() < 0.3:
                return E(dt, shape, f"{f}({{0}})", [self.expr(dt, shape, depth - 1)], WILD)
            return E(dt, shape, f"{f}({{0}})", [self.small(dt, shape, depth - 1)], Float(None, REAL[f]))
        return self.random(dt, shape, depth)

    def random(self, dt, shape, depth):
        """Philox: the bits of the published algorithm."""
        r, seed = self.r, self.r.choice(["n", "7", "i64(m) * 12345678901"])
        at = lambda: self.expr(r.choice(["i32", "i32", "u32", "i64"]), shape, depth - 1)
        if dt in ("u32", "i32"):
            if r.random() < 0.3:
                words = [self.expr("u32", shape, depth - 2) for _ in range(2)]
                one, kids = f"philox({{0}}, {{1}}, {{1}}, {{0}}, u32(m), u32(5))[{r.randrange(4)}]", words
            else:
                one, kids = r.choice([f"randint({seed}, {{0}})", f"randint4x({seed}, {{0}})[{r.randrange(4)}]", f"randint({seed}, {{0}}, rounds=7)"]), [at()]
            return E(dt, shape, f"i32({one})" if dt == "i32" else one, kids)
        if dt == "f32":
            if r.random() < 0.5:
                return E(dt, shape, f"{r.choice(['randn', 'rand'])}({seed}, {{0}})", [at()], Float(None, 8.0))
            return E(dt, shape, f"floor(rand({seed}, {{0}}) * 8.0)", [at()], Float(0, 8.0))
        return None

    # ---- products ----
    def side(self, t, shape, depth):
        """A factor, sometimes turned round."""
        if self.r.random() < 0.35:
            e = self.side(t, shape[:-2] + (shape[-1], shape[-2]), depth - 1)
            return E(t, shape, "trans({0})", [e], e.known)
        return self.narrow(t, shape, depth) if t in F8 else self.small(t, shape, depth)

    def dot(self, dt, shape, depth):
        r, inner = self.r, self.dim()
        batch, (m, n) = shape[:-2], shape[-2:]
        if not self.fits(batch + (m, inner), batch + (inner, n)) or (batch and self.numel(shape) * self.value(inner) > 2 ** 18):
            return None
        types = {"i32": ["i8", "u8"], "f64": ["f64"]}.get(dt) or [x for x in self.dtypes if x in ("f32", "f16", "bf16")] + (list(F8) if dt in ("f32", "f16") else [])
        if not types or dt not in self.dtypes:
            return None
        t = r.choice(types)
        u = r.choice(next((pair for pair in (["i8", "u8"], list(F8)) if t in pair), [t]))
        half = dt == "f16" and (t == "f16" or t in F8) and r.random() < 0.5      # sums in f16, which must hold them exactly
        a, b = self.side(t, batch + (m, inner), depth - 2), self.side(u, batch + (inner, n), depth - 2)
        known = Float(a.known.lsb + b.known.lsb, a.known.most * b.known.most * self.value(inner)) if dt != "i32" else None
        kids, more = [a, b], r.choice(["", ', precision="ieee"', ', precision="tf32x3"', ', precision="tf32_cut"']) if t == "f32" else ""
        if half or (dt != "f16" and r.random() < 0.4):
            acc = self.expr(dt, shape, depth - 2)
            if known:
                acc = acc if acc.known.lsb is not None and acc.known.most <= 64 else self.tame(acc)
                known = Float(min(known.lsb, acc.known.lsb), known.most + acc.known.most)
            kids.append(acc)
            more = ", acc={2}" + more
        if known and not known.fits("f32"):
            return None
        if half and not known.fits("f16"):
            return None
        if dt == "f16" and not half:
            known = known if known.fits("f16") else Float(None, known.most) if known.most < MOST["f16"] else None
            more += ", out=f16"
            if not known:
                return None
        return E(dt, shape, f"dot({{0}}, {{1}}{more})", kids, known)
