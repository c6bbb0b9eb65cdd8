"""Random kernels, the parts that do: variables, control flow, stores, structs and tuples that loops carry, shared buffers, rings of
copies, atomics, products that loops sum."""
from gen_tree import ACC_LSB, ACC_MOST, E, F8, FLOATS, INTS, MAX_ELEMENTS, S, Float, Var

SUM = Float(ACC_LSB, ACC_MOST)
LAYOUTS = ["swizzled()", "swizzled(vec=2, max_phase=4)", "swizzled(vec=1, per_phase=2, max_phase=4)", "padded(8, 4)"]


class Flow:
    def statement(self, depth):
        ways = [self.let, self.let, self.let, self.var, self.assign, self.assign, self.store]
        if depth > 0:
            ways += [self.loop, self.loop, self.branch, self.leave, self.shared, self.atomic, self.old_values, self.pair, self.unrolled, self.counts,
                     self.narrow_store, self.asserted]
            if self.trips <= 4:
                ways += [self.loop_while, self.ring, self.walk, self.walk, self.chain, self.nest, self.reread, self.reread]
        return self.r.choice(ways)(depth) or self.let(depth)

    def block(self, depth, count):
        mark, out = len(self.vars), []
        for _ in range(count):
            out += self.statement(depth)
        if self.r.random() < 0.7:          # what nobody sees is dropped: let something out
            new = self.vars[mark:]
            v = self.r.choice(new) if new else None
            out += (self.store_of(v.read()) if v else self.assign(depth)) or []
        del self.vars[mark:]
        return out

    # ---- values ----
    def let(self, depth):
        dt, shape = self.dtype(), self.shape() if self.r.random() < 0.85 else ()
        e = self.expr(dt, shape, self.r.choice([1, 2, 3, 4]))
        v = Var(self.name("v"), dt, shape, e.known)
        self.vars.append(v)
        return [S(f"let {v.name} = {{0}};", [e])]

    def start(self, dt, shape):
        """What a variable begins with, and what will be known of it: f32 may be added up."""
        e = self.small(dt, shape, self.r.choice([0, 1, 2]))
        return e, SUM if dt == "f32" else Float(-3, 4.0) if dt in FLOATS else None

    def var(self, depth):
        dt, shape = self.r.choice([d for d in self.dtypes if d != "i1"]), self.shape() if self.r.random() < 0.85 else ()
        e, known = self.start(dt, shape)
        v = Var(self.name("a"), dt, shape, known, mutable=True)
        v.used = 4.0
        self.vars.append(v)
        return [S(f"var {v.name} = {{0}};", [e])]

    def assign(self, depth):
        r, mine = self.r, [v for v in self.vars if v.mutable]
        if not mine:
            return None
        v = r.choice(mine)
        e = self.expr(v.dt, v.shape, r.choice([1, 2, 3]))
        if v.dt == "f32":
            e = e if e.known.fits("f32") and e.known.lsb >= ACC_LSB else self.tame(e)
            if r.random() < 0.7:
                e = e if v.used + e.known.most * self.trips <= ACC_MOST else self.tame(e)
                if v.used + e.known.most * self.trips > ACC_MOST:
                    return None
                v.used += e.known.most * self.trips
                return [S(f"{v.name} {r.choice(['+=', '-='])} {{0}};", [e])]
            if v.used + e.known.most > ACC_MOST:
                return None
            v.used += e.known.most
        elif v.dt in FLOATS:
            e = self.tame(e, 4, -3)
        elif r.random() < 0.5:
            return [S(f"{v.name} {r.choice(['+=', '-=', '*=', '^=', '|=', '&='])} {{0}};", [e])]
        if r.random() < 0.3:
            return [S(f"{v.name} = where({{0}}, {{1}}, {v.name});", [self.expr("i1", v.shape, 1), e])]
        return [S(f"{v.name} = {{0}};", [e])]

    def asserted(self, depth):
        """What holds: at run time, or while compiling, or is promised."""
        r, dt, shape = self.r, self.r.choice([d for d in self.dtypes if d in INTS]), self.shape() if self.r.random() < 0.8 else ()
        d, exact = self.dim(), [p for p in self.k.params[:3] if p.value % 4 == 0]
        always = [S(f"assert(({{0}} | 1) != {dt}(0), \"odd numbers are not 0\");", [self.expr(dt, shape, 2)]),
                  S("assert(min({0}, {1}) <= max({0}, {1}), \"in order\");", [self.expr(dt, shape, 1), self.expr(dt, shape, 1)]),
                  S(f"static_assert(extent(zeros([{d}], {dt}), 0) == {d} && bits({dt}) == {INTS[dt]}, \"known\");"),
                  S(f"static_assert(cdiv({d} * 3, 3) == {d}, \"whole\");"), S("assume(num_programs(0) > 0);")]
        return [r.choice(always + [S(f"assume({p.name} % 4 == 0);") for p in exact])]

    # ---- stores ----
    def store(self, depth):
        if self.vars and self.r.random() < 0.8:
            return self.store_of(self.r.choice(self.vars).read())
        return self.store_of(self.expr(self.dtype(), self.shape(), 2))

    def store_of(self, e):
        r, shape, mask = self.r, e.shape, ""
        to = self.output(e.dt, shape, self.shuffled(len(shape)) if r.random() < 0.2 else None)
        if to and shape and r.random() < 0.3:
            d = r.randrange(len(shape))
            mask = f", mask=arange(0, {shape[d]}){self.index(d, len(shape))} < {r.choice(['n', 'm', '7'])}"
        return to and [S(f"store({to[1]}, {{0}}{mask});", [e])]

    def narrow_store(self, depth):
        t, shape = self.r.choice(F8), self.shape()
        e, to = self.narrow(t, shape, 2), self.output(t, shape)
        if not to or self.r.random() < 0.7:
            return to and [S(f"store({to[1]}, {{0}});", [e])]
        s = self.name("s")
        return [S(f"let {s} = shared({t}, {self.list_of(shape)});"), S(f"shared_store({s}, {{0}});", [e]), S(f"store({to[1]}, shared_load({s}));")]

    def elsewhere(self, shape):
        """An index over shape that gives each element a place of its own, and how many there are."""
        at, size = self.positions(shape, self.shuffled(len(shape)))
        return self.r.choice([at, at, f"{size} - 1 - ({at})", f"({at} + {self.r.choice(['1', '5', '32'])}) % ({size})"]), size

    def reread(self, depth):
        """What this program has stored, loaded as others of its elements: by other threads, mostly. Not where loads run ahead of stores."""
        r, dt, shape = self.r, self.r.choice([d for d in self.dtypes if d != "i1"]), self.shape()
        at, size = self.elsewhere(shape)
        p = None if self.staged else self.buffer(dt, f"GRID * ({size})", fresh=True)
        if not p:
            return None
        e, place, v = self.expr(dt, shape, 2), f"{p.name} + program_id(0) * ({size})", self.name("v")
        out, known = [S(f"store({place} + ({at}), {{0}});", [e])], e.known
        if r.random() < 0.3:
            more = self.expr(dt, shape, 1)
            out.append(S(f"store({place} + ({self.elsewhere(shape)[0]}), {{0}}, mask={{1}});", [more, self.expr("i1", shape, 1)]))
            known = self.met(dt, known, more.known)
        for _ in range(r.choice([0, 0, 1, 2])):
            out.append(S(f"store({place} + ({self.elsewhere(shape)[0]}), load({place} + ({self.elsewhere(shape)[0]})));"))
        self.vars.append(Var(v, dt, shape, known))
        return out + [S(f"let {v} = load({place} + ({self.elsewhere(shape)[0]}));")]

    # ---- control flow ----
    def inside(self, loops, depth, count, staged=False):
        """A block in loops, [(variable, text of the end, turns)]."""
        self.loops += [(var, top) for var, top, _ in loops]
        turns = 1
        for _, _, n in loops:
            turns *= max(n, 1)
        self.trips *= turns
        self.staged += staged
        body = self.block(depth, count)
        self.staged -= staged
        self.trips //= turns
        del self.loops[len(self.loops) - len(loops):]
        return body

    def loop(self, depth):
        r, var = self.r, self.name("k")
        lo, hi, top = r.choice([("0", "t", "t"), ("0", "t", "t"), ("0", "3", "3"), ("0", "4", "4"), ("0", "1", "1"), ("2", "t", "t"), ("4", "2", "4")])
        turns = max(self.value(hi) - int(lo), 0)
        if self.trips * max(turns, 1) > 40:
            return None
        how = r.choice(["", "", "", ", stages=2", ", stages=3", ", stages=4", ", stages=3", ", unroll=2", ", unroll=4"])
        hoist = r.choice([""] * 5 + [", hoist=false"])
        body = self.inside([(var, top, turns)], depth - 1, r.choice([1, 2, 3, 4]), staged=bool(how))
        if r.random() < 0.4:
            self.insert_jump(body, ["continue"] if how else ["break", "continue"])
        return [S(f"for {var} in range({lo}, {hi}{how}{hoist})", [], [body])]

    def nest(self, depth):
        """Two loops that become one, and what stands between them."""
        r, outer, inner = self.r, self.name("k"), self.name("k")
        turns, stages = r.choice(["2", "3", "t"]), r.choice(["", ", stages=2", ", stages=3"])
        top = r.choice(["3", "t", "4"])
        if self.trips * max(self.value(turns), 1) * max(self.value(top), 1) > 40:
            return None
        mark = len(self.vars)
        between = lambda: self.inside([(outer, turns, self.value(turns))], 0, r.choice([1, 2]), staged=True)
        before = between() if r.random() < 0.6 else []
        body = self.inside([(outer, turns, self.value(turns)), (inner, top, self.value(top))], 0, r.choice([1, 2, 3]), staged=True)
        behind = between() if r.random() < 0.8 else []
        del self.vars[mark:]
        return [S(f"for {outer} in range(0, {turns}, flatten=true)", [], [before + [S(f"for {inner} in range(0, {top}{stages})", [], [body])] + behind])]

    def unrolled(self, depth):
        """A loop whose index is known when compiling, except to what is generated here."""
        if self.trips * 3 > 40:
            return None
        k = self.name("k")
        body = self.inside([(k, "3", 3)], depth - 1, self.r.choice([1, 2]))
        if self.r.random() < 0.4:
            self.insert_jump(body, ["break", "continue"])
        return [S(f"for {k} in static_range(3)", [], [body])]

    def insert_jump(self, body, words):
        """Out of the loop, to its next turn, or out of the kernel; not past the wait for a copy."""
        if any("async_" in line for s in body for line in s.lines(0)):
            return
        words = words + ["return"] if "break" in words and not self.staged and not self.whiles else words
        body.insert(self.r.randrange(len(body) + 1), S("if {0}", [self.expr("i1", (), 2)], [[S(self.r.choice(words) + ";")]]))

    def loop_while(self, depth):
        c = self.name("c")
        self.trips *= 3
        self.whiles += 1
        cond = self.expr("i1", (), 1)
        body = self.block(depth - 1, self.r.choice([1, 2, 3]))
        self.whiles -= 1
        self.trips //= 3
        if self.r.random() < 0.4:
            self.insert_jump(body, ["break"])
        more = self.r.choice([True, False])
        return [S(f"var {c} = 0;"), S(f"while {c} < 3 && {{0}}" if more else f"while {c} < 3", [cond] if more else [], [body + [S(f"{c} += 1;")]])]

    def branch(self, depth):
        c, a = self.expr("i1", (), 2), self.block(depth - 1, self.r.choice([1, 2]))
        return [S("if {0}", [c], [a] if self.r.random() < 0.5 else [a, self.block(depth - 1, self.r.choice([1, 2]))])]

    def leave(self, depth):
        """Some programs are done early."""
        if self.loops or self.whiles or depth < 2 or self.r.random() < 0.7:
            return None
        return [S("if {0}", [self.expr("i1", (), 1)], [[S("return;")]])]

    # ---- structs and tuples ----
    def pair(self, depth):
        """Two values that a loop carries together and exchanges, or changes each for itself."""
        r, s, k = self.r, self.name("s"), self.name("k")
        one, two = ((r.choice([d for d in self.dtypes if d in INTS]), self.shape() if r.random() < 0.8 else ()) for _ in range(2))
        two = one if r.random() < 0.6 else two
        a, b, e, f = self.expr(*one, 1), self.expr(*two, 1), self.expr(*one, 1), self.expr(*two, 1)
        make, x, y = r.choice([("Two({0}, {1})", ".a", ".b"), ("({0}, {1})", "[0]", "[1]"), ("nested({0}, {1})", ".pair.a", ".pair.b")])
        x, y, op = s + x, s + y, r.choice("+-^*")
        wrap = {"T": f"{s} = Two({{0}}, {{1}});", "(": f"{s} = ({{0}}, {{1}});", "n": f"{s} = Nest(Two({{0}}, {{1}}), {s}.turns + 1);"}[make[0]]
        again = lambda p, q, *kids: S(wrap.format(p, q), list(kids))
        body = [again(y, f"{x} {op} {{0}}", e) if one == two else again(f"{x} {op} {{0}}", f"{y} ^ {{1}}", e, f)]
        if make[0] == "T" and one == two and r.random() < 0.5:
            body.append(r.choice([S(f"{s} = turned({s});"), S(f"{x} += {y};")]))
        if make[0] == "n" and r.random() < 0.5:
            body.append(S(f"{s}.turns *= 3;"))
        if r.random() < 0.3:
            body.insert(r.randrange(len(body) + 1), S(f"if {k} == {r.choice(['1', '2', 'n'])}", [], [[S(r.choice(["break;", "continue;"]))]]))
            turns = "range(0, 4)"
        else:
            turns = r.choice(["range(0, t)", "range(0, 4)", "range(0, t, stages=2)", "static_range(3)", "range(0, t, unroll=2)"])
        self.vars += [Var(x, *one, None), Var(y, *two, None)] + [Var(f"{s}.turns", "i32", (), None)] * (make[0] == "n")
        return [S(f"var {s} = {make};", [a, b]), S(f"for {k} in {turns}", [], [body])]

    # ---- shared memory ----
    def shared(self, depth):
        """Into a buffer, perhaps one of a row, perhaps a part of it once more, and back, seen otherwise."""
        r, s = self.r, self.name("s")
        dt, shape = r.choice([d for d in self.dtypes if d != "i1"]), self.shape()
        layout = ""
        if len(shape) == 2 and self.power(shape) and self.value(shape[-1]) >= 8 and r.random() < 0.5:
            layout = ", layout=" + r.choice(LAYOUTS)
        e, row = self.expr(dt, shape, 2), r.random() < 0.25
        known, at = e.known, f"{s}[{r.choice(['0', '1', 'n % 2', 'program_id(0) & 1'])}]" if row else s
        out = [S(f"let {s} = shared({dt}, {self.list_of(shape)}{layout}{', count=2' if row else ''});")]
        out += [S(f"shared_store({s}[{i}], {{0}});", [self.met_with(e, i, dt, shape)]) for i in range(2)] if row else [S(f"shared_store({s}, {{0}});", [e])]
        if row and dt in FLOATS:
            known = self.join(known, out[-1].kids[0].known)
        half = self.half(shape)
        if half and r.random() < 0.4:
            more = self.expr(dt, half[0], 1)
            out.append(S(f"shared_store(view({at}, {half[1]}, {self.list_of(half[0])}), {{0}});", [more]))
            known = self.met(dt, known, more.known)
        got, view = self.seen(shape, at)
        v = Var(self.name("v"), dt, got, known)
        self.vars.append(v)
        return out + [S(f"let {v.name} = shared_load({view});")] + ([S(f"free({s});")] if r.random() < 0.3 else [])

    def met_with(self, e, i, dt, shape):
        return e if i == 0 else self.expr(dt, shape, 1)

    def half(self, shape):
        """A half of a buffer, and where it begins."""
        d = self.r.randrange(len(shape))
        n = self.value(shape[d])
        if not self.power(shape) or n < 2:
            return None
        start = [self.r.choice(["0", str(n // 2)]) if i == d else "0" for i in range(len(shape))]
        return self.with_extent(shape, d, n // 2), "[" + ", ".join(start) + "]"

    def seen(self, shape, text):
        """A buffer seen otherwise, in up to three steps: (extents, text)."""
        for _ in range(self.r.choice([0, 1, 1, 2, 3])):
            half, pick = self.half(shape), self.r.random()
            if pick < 0.4 and half:
                shape, text = half[0], f"view({text}, {half[1]}, {self.list_of(half[0])})"
            elif pick < 0.8 and len(shape) > 1:
                order = self.shuffled(len(shape))
                shape, text = tuple(shape[o] for o in order), f"permute({text}, {order})"
        return shape, text

    def counts(self, depth):
        """Additions to a buffer by index: integers, so that their order does not matter."""
        r, s, shape = self.r, self.name("s"), self.shape()
        dt, (n, inside) = r.choice(["i32", "u32"]), r.choice([("8", "{0} & 7"), ("32", "{0} & 31"), ("100", "({0} & 1023) % 100")])
        kids, mask = [self.expr("i32", shape, 1), self.expr(dt, shape, 1)], ""
        if r.random() < 0.4:
            mask = ", mask={2}"
            kids.append(self.expr("i1", shape, 1))
        v = Var(self.name("v"), dt, (n,), None)
        self.vars.append(v)
        return [S(f"let {s} = shared({dt}, [{n}]);"), S(f"shared_store({s}, zeros([{n}], {dt}));"), S(f"shared_add({s}, {inside}, {{1}}{mask});", kids),
                S(f"let {v.name} = shared_load({s});")]

    def ring(self, depth):
        """A row of buffers, and copies that run ahead of their use."""
        r, dt, shape = self.r, self.r.choice(["f32", "i32"] + [d for d in ("f16", "bf16") if d in self.dtypes]), self.shape(self.r.choice([1, 2]))
        at, size = self.positions(shape)
        rows, hi, promise = r.choice([2, 3, 4]), r.choice(["t", "3", "1", "5"]), 16 if dt in ("f16", "bf16") else 0
        p = self.buffer(dt, f"max({hi}, 1) * ({size})", fresh=True) if not promise or self.value(shape[-1]) % 8 == 0 else None
        if not p:
            return None
        p.promise, p.needed = promise or p.promise, promise > 0
        s, k, acc, wide = self.name("s"), self.name("k"), self.name("a"), "f32" if dt in FLOATS else dt
        copy = lambda slot, j: S(f"async_copy({s}[{slot}], {p.name} + ({j}) * ({size}) + ({at}), mask=broadcast_to({j} < {hi}, {self.list_of(shape)}));")
        out = [S(f"let {s} = shared({dt}, {self.list_of(shape)}, count={rows});"), S(f"var {acc} = zeros({self.list_of(shape)}, {wide});")]
        for j in range(rows - 1):
            out += [copy(j, str(j)), S("async_commit();")]
        ahead = f"({k} + {rows - 1})"
        body = [S(f"async_wait({rows - 2});"), copy(f"{ahead} % {rows}", ahead), S("async_commit();"), S(f"{acc} += {wide}(shared_load({s}[{k} % {rows}]));")]
        self.vars.append(Var(acc, wide, shape, SUM if wide == "f32" else None))
        return out + [S(f"for {k} in range(0, {hi})", [], [body]), S("async_wait(0);")]

    # ---- products in loops ----
    def walk(self, depth):
        """Pointers that the loop advances, a product that it sums: what pipelining is for."""
        r, t = self.r, self.r.choice([d for d in self.dtypes if d in FLOATS] + ["i8", "f16"] + list(F8)[:1])
        m, n, k = self.dim(), self.dim(), self.dim()
        if not self.fits((m, k), (k, n), (m, n)) or self.trips * 6 * self.value(k) * 32 * 32 > 2 ** 22:
            return None
        a_at, a_size = self.positions((m, k), r.choice([[0, 1], [0, 1], [1, 0]]))
        b_at, b_size = self.positions((k, n), r.choice([[0, 1], [0, 1], [1, 0]]))
        hi = r.choice(["t", "3", "5"])
        x, y = self.buffer(t, f"max({hi}, 1) * ({a_size})", fresh=True), self.buffer(t, f"max({hi}, 1) * ({b_size})", fresh=True)
        if not x or not y:
            return None
        p, q, acc, j, wide = self.name("p"), self.name("p"), self.name("a"), self.name("k"), {"i8": "i32", "f64": "f64"}.get(t, "f32")
        mask = r.choice(["", f", mask=(arange(0, {k}) < n - {j})"])
        am, bm = (mask[:-1] + ")[None, :]", mask[:-1] + ")[:, None]") if mask else ("", "")
        how = r.choice(["", f", promote={r.choice([0, 1, 32, 48, 128])}"]) if t in F8 else ""
        add = r.choice([f"{acc} = dot(load({p}{am}), load({q}{bm}), {acc}{how});", f"{acc} += dot(load({p}{am}), load({q}{bm}){how});"])
        self.vars.append(Var(acc, wide, (m, n), SUM if wide != "i32" else None))
        return [S(f"var {p} = {x.name} + ({a_at});"), S(f"var {q} = {y.name} + ({b_at});"), S(f"var {acc} = zeros([{m}, {n}], {wide});"),
                S(f"for {j} in range(0, {hi}, stages={r.choice([1, 2, 3, 4])})", [], [[S(add), S(f"{p} += {a_size};"), S(f"{q} += {b_size};")]])]

    def chain(self, depth):
        """Two products a turn, the second of the first one's result, beside an operand that stays."""
        r, t = self.r, self.r.choice([d for d in self.dtypes if d in ("f16", "bf16")] or ["f16"])
        m, n, d = self.dim(), self.dim(), self.dim()
        if max(self.numel(s) for s in ((m, d), (n, d), (m, n))) > MAX_ELEMENTS or self.trips * self.numel((m, n, d)) > 2 ** 19:
            return None
        hi = r.choice(["t", "3", "4"])
        (q_at, q_size), (k_at, k_size), (v_at, v_size) = (self.positions(s) for s in ((m, d), (n, d), (n, d)))
        q = self.buffer(t, q_size, fresh=True)
        k, v = (self.buffer(t, f"max({hi}, 1) * ({size})", fresh=True) for size in (k_size, v_size))
        if not q or not k or not v:
            return None
        acc, low, j, one, two, three = self.name("a"), self.name("a"), self.name("k"), self.name("v"), self.name("v"), self.name("v")
        mask = r.choice(["", f", mask=(arange(0, {n}) < n - {j} * {n})[:, None]"])
        body = [S(f"let {two} = dot({one}, trans(load({k.name} + {j} * ({k_size}) + ({k_at}){mask})));"),
                S(r.choice([f"{low} = min({low}, min({two}, axis=1));", f"{low} = min({low}, 50.0);"])),
                S(f"let {three} = {t}(min(max(rint({two}), -4.0), 4.0));"),
                S(f"{acc} = dot({three}, load({v.name} + {j} * ({v_size}) + ({v_at}){mask}), {acc});")]
        self.vars += [Var(acc, "f32", (m, d), SUM), Var(low, "f32", (m,), SUM)]
        return [S(f"let {one} = load({q.name} + ({q_at}));"), S(f"var {acc} = zeros([{m}, {d}], f32);"), S(f"var {low} = full([{m}], 100.0, f32);"),
                S(f"for {j} in range(0, {hi}, stages={r.choice([2, 3, 4])})", [], [body])]

    # ---- atomics ----
    def atomic(self, depth):
        """Many on a few places: the order does not matter, and the old value is not looked at."""
        r, dt, shape = self.r, self.r.choice(["i32", "u32", "i64", "u64", "f32"]), self.shape()
        if dt == "f32" and self.trips * self.k.grid * self.numel(shape) * 4 > 2 ** 20:
            return None
        e, p = self.expr(dt, shape, 1), self.buffer(dt, "8", fresh=True)
        if not p:
            return None
        fn, mask = "add" if dt == "f32" else r.choice(["add", "max", "min", "xor", "or", "and"]), ", mask={2}" if r.random() < 0.4 else ""
        kids = [self.tame(e) if dt == "f32" else e, self.expr("i32", shape, 1)] + ([self.expr("i1", shape, 1)] if mask else [])
        return [S(f"atomic_{fn}({p.name} + ({{1}} & 7), {{0}}{mask});", kids)]

    def old_values(self, depth):
        """Each on an element of its own: the old value is known, too."""
        r, shape = self.r, self.shape() if self.r.random() < 0.9 else ()
        dt = r.choice(["i32", "u32", "i64", "u64", "f32"] + [d for d in ("f16", "bf16", "f64") if d in self.dtypes])
        fn = r.choice(["add", "max", "min", "xchg", "cas"] + ["and", "or", "xor"] * (dt in INTS))
        to = self.output(dt, shape)
        if not to:
            return None
        kids = [self.small(dt, shape, 1)] + ([self.small(dt, shape, 1)] if fn == "cas" else [])
        args = ", ".join(f"{{{i}}}" for i in range(len(kids)))
        if r.random() < 0.6:
            args += f", mask={{{len(kids)}}}"
            kids.append(self.expr("i1", shape, 1))
        args += r.choice(["", ', sem="relaxed"', ', sem="acq_rel"', ', sem="release", scope="sys"', ', sem="acquire", scope="cta"'])
        v = Var(self.name("v"), dt, shape, Float(-3, 8.0) if dt in FLOATS else None)
        self.vars.append(v)
        return [S(f"let {v.name} = atomic_{fn}({to[1]}, {args});", kids)]
