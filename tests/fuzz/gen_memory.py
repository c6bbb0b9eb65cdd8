"""Random kernels, the parts that read: names, extents, buffers and their indices, loads with masks and through indices."""
from gen_tree import E, F8, FLOATS, MAX_ELEMENTS, WILD, Float, Param


class Memory:
    # ---- names, extents ----
    def name(self, stem):
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def value(self, text):
        return eval(text, {}, self.k.names())

    def numel(self, shape):
        n = 1
        for d in shape:
            n *= self.value(d)
        return n

    def fits(self, *shapes):
        return all(self.numel(s) <= MAX_ELEMENTS for s in shapes)

    def power(self, shape):
        return all((v := self.value(d)) & (v - 1) == 0 for d in shape)

    def dim(self):
        return self.r.choice(list(self.k.dims))

    def shape(self, rank=None):
        for _ in range(20):
            rk = self.r.choice([1, 1, 2, 2, 2, 3]) if rank is None else rank
            s = tuple(self.dim() for _ in range(rk))
            if self.fits(s):
                return s
        return (next(iter(self.k.dims)),) if rank in (None, 1) else ("1",) * rank

    def with_extent(self, shape, d, n):
        return shape[:d] + (str(n),) + shape[d + 1:]

    def wider(self, shape):
        """shape with one more dimension, and where."""
        if len(shape) > 2:
            return None
        d = self.r.randrange(len(shape) + 1)
        src = shape[:d] + (self.dim(),) + shape[d:]
        return (src, d) if self.fits(src) else None

    def list_of(self, shape):
        return "[" + ", ".join(shape) + "]"

    # ---- indices ----
    def index(self, i, rank):
        """[None, :, None]: what makes one dimension of rank."""
        return "" if rank == 1 else "[" + ", ".join(":" if d == i else "None" for d in range(rank)) + "]"

    def positions(self, shape, order=None, pitch=None):
        """Row-major (or permuted) index over shape, and its size."""
        order = order or list(range(len(shape)))
        parts, size = [None] * len(shape), "1"
        for d in reversed(order):
            step = "" if size == "1" else f" * ({size})"
            parts[d] = f"arange(0, {shape[d]}){self.index(d, len(shape))}{step}"
            size = shape[d] if size == "1" else f"{size} * {shape[d]}"
            if pitch and d == order[-1]:
                size = f"({size} + {pitch})"
        return " + ".join(parts) if shape else "0", size

    def shuffled(self, rank):
        order = list(range(rank))
        self.r.shuffle(order)
        return order

    def turn(self):
        """Which turn of all loops around, of which program, this is; and how many there are."""
        turn, turns = "program_id(0)", "GRID"
        for var, top in self.loops:
            turn, turns = f"({turn} * {top} + {var})", f"{turns} * max({top}, 1)"
        return turn, turns

    # ---- buffers ----
    def buffer(self, dt, size, below=0, bits=False, fresh=False):
        same = [p for p in self.k.params if p.value is None and (p.dt, p.below, p.bits) == (dt, below, bits) and p.name[0] == "x"]
        if same and not fresh and (len(self.k.params) > 9 or self.r.random() < 0.6):
            p = self.r.choice(same)
        elif len(self.k.params) > 12:
            return None
        else:
            p = Param(self.name("out" if fresh else "x"), dt, below=below, bits=bits, promise=self.r.choice([0, 16, 16]))
            self.k.params.append(p)
        p.sizes.append(size)
        return p

    def output(self, dt, shape, order=None):
        """A buffer in which no two elements, programs or turns meet, and the text of where this tile lies: (buffer, index)."""
        if self.whiles:
            return None
        at, size = self.positions(shape, order)
        turn, turns = self.turn()
        p = self.buffer(dt, f"{turns} * ({size})", fresh=True)
        return p and (p, f"{p.name} + {turn} * ({size}) + ({at})")

    def offsets(self, size):
        """What may be added to an index: texts of the terms, and of how far they reach."""
        r, terms, reach = self.r, [], []
        c = r.choice([0, 0, 1, 16])
        if c:
            terms, reach = [str(c)], [str(c)]
        if r.random() < 0.5:
            terms.append(f"program_id(0) * ({size})")
            reach.append(f"(GRID - 1) * ({size})")
        for var, top in self.loops:
            if r.random() < 0.6:
                step = r.choice(["1", "16", f"({size})"])
                terms.append(f"{var} * {step}")
                reach.append(f"max({top} - 1, 0) * {step}")
        return terms, reach

    # ---- loads ----
    def load(self, dt, shape, depth):
        r = self.r
        bits = dt in FLOATS and r.random() < 0.08
        known = WILD if bits else Float(-3, 4.0) if dt in FLOATS or dt in F8 else None
        if r.random() < 0.15 and shape:
            return self.load_through(dt, shape, depth, known, bits)
        order = self.shuffled(len(shape)) if r.random() < 0.25 else None
        at, size = self.positions(shape, order, r.choice([None, None, None, "3", "8"]) if shape else None)
        terms, reach = self.offsets(size)
        reach = " + ".join([size] + reach)
        if shape and r.random() < 0.35:
            return self.load_masked(dt, shape, at, terms, reach, depth, known, bits)
        p = self.buffer(dt, reach, bits=bits)
        how = r.choice([""] * 8 + [', cache="cg"', ', evict="first"', ', volatile=true', ', cache="ca", evict="last"'])
        return p and E(dt, shape, f"load({' + '.join([p.name] + terms)} + ({at}){how})", known=known)

    def load_masked(self, dt, shape, at, terms, reach, depth, known, bits):
        """Where the mask is off the addresses may be invalid: the buffer ends where the mask does."""
        r, d = self.r, self.r.randrange(len(shape))
        limit = r.choice(["n", "m", "5", "16"])
        mask = f"arange(0, {shape[d]}){self.index(d, len(shape))} < {limit}"
        if len(shape) == 1 and not any(c.isalpha() for t in terms for c in t):
            reach = f"min({limit}, {shape[0]}) + {' + '.join(terms) or '0'}"
        p = self.buffer(dt, reach, bits=bits)
        if not p:
            return None
        other, kids, pick = "", [], r.random()
        if pick < 0.3 and depth > 0 and dt not in F8:
            other, kids = ", other={0}", [self.expr(dt, shape, depth - 2)]
            known = self.met(dt, known, kids[0].known)
        elif pick < 0.6 and dt not in F8:
            lit = self.literal(dt)
            other, known = f", other={lit.text}", self.met(dt, known, lit.known)
        mask = f"broadcast_to({mask}, {self.list_of(shape)})" if r.random() < 0.2 else mask
        return E(dt, shape, f"load({' + '.join([p.name] + terms)} + ({at}), mask={mask}{other})", kids, known)

    def load_through(self, dt, shape, depth, known, bits):
        """Places that are looked up, or computed."""
        p = self.buffer(dt, "64", bits=bits)
        if not p:
            return None
        if self.r.random() < 0.5:
            at, size = self.positions(shape)
            q = self.buffer("i32", size, below=64)
            if q:
                return E(dt, shape, f"load({p.name} + load({q.name} + ({at})))", known=known)
        return E(dt, shape, f"load({p.name} + ({{0}} & 63))", [self.expr("i32", shape, depth - 1)], known)
