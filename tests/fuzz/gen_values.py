"""Random kernels, the parts that compute element by element: literals, operators, casts, packed numbers, promises, functions of the
kernel's file (helpers.tile), instructions. gen_kernel.py says what is known of floats."""
from gen_layouts import asked_for, drawn_columns
from gen_tree import E, F8, FLOATS, INTS, MOST, WILD, Float

# Packed formats: word, format, bits, what is known of its numbers as floats.
PACKED = [("u32", "u4", 4, Float(0, 15.0)), ("u32", "i4", 4, Float(0, 8.0)), ("u8", "u2", 2, Float(0, 3.0)), ("u8", "i4", 4, Float(0, 8.0)),
          ("u32", "u8", 8, Float(0, 255.0)), ("u8", "i3", 3, Float(0, 4.0)), ("u16", "u5", 5, Float(0, 31.0)), ("u8", "f4e2m1", 4, Float(-1, 6.0)),
          ("u8", "f6e2m3", 6, Float(-3, 7.5))]


class Values:
    # ---- what is known of floats ----
    def join(self, a, b):
        if a.lsb is None or b.lsb is None:
            return Float(None, max(a.most, b.most))
        return Float(min(a.lsb, b.lsb), max(a.most, b.most))

    def met(self, dt, a, b):
        return self.join(a, b) if dt in FLOATS else None

    def tame(self, e, most=4, grain=0):
        """Integers (or multiples of 2^grain, where e has them already) of at most `most`; a nan becomes -most."""
        if e.known.lsb is not None and e.known.lsb >= grain and e.known.most <= most:
            return e
        coarse = e.known.lsb is not None and e.known.lsb >= grain
        return E(e.dt, e.shape, f"min(max({'{0}' if coarse else 'rint({0})'}, -{most}.0), {most}.0)", [e], Float(grain if coarse else max(0, grain), float(most)))

    def exact(self, dt, shape, depth):
        e = self.expr(dt, shape, depth)
        return e if e.known.lsb is not None else self.tame(e)

    def small(self, dt, shape, depth):
        """What may enter a sum: integers as they are, floats of few bits."""
        return self.tame(self.exact(dt, shape, depth), 4, -3) if dt in FLOATS else self.expr(dt, shape, depth)

    def finite(self, dt, shape, depth):
        """No nan among them: for functions that do not say what they do with one."""
        e = self.expr(dt, shape, depth)
        return self.tame(e) if dt in FLOATS and e.known.wild() else e

    # ---- leaves ----
    def literal(self, dt):
        r = self.r
        if dt == "i1":
            return E(dt, (), r.choice(["true", "false"]))
        if dt in FLOATS:
            if r.random() < 0.05:
                return E(dt, (), f"{dt}({r.choice(['nan', 'inf', '-inf'])})", known=WILD)
            return E(dt, (), f"{dt}({float(r.choice([0, 1, -1, 2, 0.5, -0.25, 3, 4]))})", known=Float(-2, 4.0))
        return E(dt, (), f"{dt}({r.choice([0, 1, 2, 3, 5, 7, 100, 127] + ([-1, -2, -7, -128] if dt[0] == 'i' else [200, 255]))})")

    def leaf(self, dt, shape):
        r = self.r
        here = [v for v in self.vars if v.dt == dt and v.shape == shape]
        if here and r.random() < 0.7:
            return r.choice(here).read()
        if not shape:
            if dt == "i32" and r.random() < 0.7:
                return E(dt, (), r.choice(["program_id(0)", "n", "m", "t", "num_programs(0)"] + [v for v, _ in self.loops] * 2))
            return (self.load(dt, shape, 0) if r.random() < 0.3 else None) or self.literal(dt)
        if dt == "i32" and r.random() < 0.5:
            return self.indices(shape)
        got = self.load(dt, shape, 0) if r.random() < 0.75 else None
        if got:
            return got
        lit = self.literal(dt)
        return E(dt, shape, f"full({self.list_of(shape)}, {lit.text}, {dt})", known=lit.known)

    def indices(self, shape):
        r, d = self.r, self.r.randrange(len(shape))
        lo = r.choice(["0", "0", "3", "-5"])
        text = f"arange({lo}, {lo} + {shape[d]})"
        if lo == "0" and r.random() < 0.2:
            text = r.choice([f"max_contiguous({text}, 4)", f"max_constancy({text} / 4, 4)", f"multiple_of({text} * 8, 8)"])
        a = E("i32", tuple(s if i == d else "1" for i, s in enumerate(shape)), text + self.index(d, len(shape)))
        return a if len(shape) == 1 else E("i32", shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a])

    def operand(self, dt, shape, depth):
        """One side of an operator: also something that stretches."""
        r, one = self.r, self.exact if dt in FLOATS else self.expr
        if shape and r.random() < 0.15:
            return one(dt, (), depth - 1)
        if len(shape) > 1 and r.random() < 0.25:
            return one(dt, self.with_extent(shape, r.randrange(len(shape)), 1), depth - 1)
        return one(dt, shape, depth - 1)

    # ---- operators ----
    def op(self, dt, shape, depth):
        return (self.float_op if dt in FLOATS else self.bool_op if dt == "i1" else self.int_op)(dt, shape, depth - 1)

    def float_add(self, dt, shape, depth):
        a, b = self.exact(dt, shape, depth), self.operand(dt, shape, depth)
        for _ in range(2):
            known = Float(min(a.known.lsb, b.known.lsb), a.known.most + b.known.most)
            if known.fits(dt):
                return E(dt, shape, f"({{0}} {self.r.choice('+-')} {{1}})", [a, b], known)
            a, b = self.tame(a), self.tame(b)
        return a

    def float_mul(self, dt, shape, depth):
        a, b = self.exact(dt, shape, depth), self.operand(dt, shape, depth)
        for _ in range(2):
            known = Float(a.known.lsb + b.known.lsb, a.known.most * b.known.most)
            if known.fits(dt):
                break
            a, b = self.tame(a), self.tame(b)
        if self.r.random() < 0.4:
            c = self.tame(self.exact(dt, shape, depth - 1), 4, -3)
            more = Float(min(known.lsb, c.known.lsb), known.most + c.known.most)
            if more.fits(dt):
                fused = a.shape == b.shape and self.r.random() < 0.5
                return E(dt, shape, "fma({0}, {1}, {2})" if fused else "({0} * {1} + {2})", [a, b, c], more)
        return E(dt, shape, "({0} * {1})", [a, b], known)

    def float_op(self, dt, shape, depth):
        r, pick = self.r, self.r.random()
        if pick < 0.35:
            return self.float_add(dt, shape, depth)
        if pick < 0.6:
            return self.float_mul(dt, shape, depth)
        if pick < 0.8:
            a, f = self.expr(dt, shape, depth), r.choice(["-", "abs", "floor", "ceil", "rint", "trunc", "round"])
            if f in ("-", "abs"):
                return E(dt, shape, f"({f}{{0}})" if f == "-" else f"{f}({{0}})", [a], a.known)
            known = Float(max(0, a.known.lsb or 0), a.known.most + 1)
            return E(dt, shape, f"{f}({{0}})", [a], known if known.fits(dt) else Float(None, a.known.most))
        if pick < 0.84:
            return E(dt, shape, "copysign({0}, {1})", [a := self.expr(dt, shape, depth), self.finite(dt, shape, depth - 1)], a.known)
        a = self.exact(dt, shape, depth)
        if pick < 0.9:
            return E(dt, shape, "sqrt(abs({0}))", [a], Float(None, max(1.0, a.known.most)))
        b = self.small(dt, shape, depth)
        if pick < 0.94:
            return E(dt, shape, "({0} % max(abs({1}), 1.0))", [a, b], Float(min(a.known.lsb, b.known.lsb), min(a.known.most, max(b.known.most, 1.0))))
        return E(dt, shape, "({0} / max(abs({1}), 1.0))", [a, b], Float(None, a.known.most))

    def int_op(self, dt, shape, depth):
        r, pick = self.r, self.r.random()
        a = self.expr(dt, shape, depth)
        if pick < 0.6:
            b = self.operand(dt, shape, depth)
            return E(dt, shape, f"({{0}} {r.choice(['+', '-', '*', '&', '|', '^', '+', '*'])} {{1}})", [a, b])
        if pick < 0.75:
            if r.random() < 0.3:         # by the width or more, too
                return E(dt, shape, f"({{0}} {r.choice(['<<', '>>'])} ({{1}} & 127))", [a, self.operand(dt, shape, depth)])
            return E(dt, shape, f"({{0}} {r.choice(['<<', '>>'])} {r.choice([1, 2, 3, 7])})", [a])
        if pick < 0.87:
            if r.random() < 0.6:
                by = r.choice(["2", "3", "5", "8", "16", "7"] + (["-3", "-1"] if dt[0] == "i" else []))
                return E(dt, shape, f"({{0}} {r.choice(['/', '%'])} {by})", [a])
            return E(dt, shape, f"({{0}} {r.choice(['/', '%'])} ({{1}} & 7 | 1))", [a, self.operand(dt, shape, depth)])
        if pick < 0.92 and INTS[dt] >= 32:
            return E(dt, shape, "mulhi({0}, {1})", [a, self.expr(dt, shape, depth - 1)])
        return E(dt, shape, r.choice(["(-{0})", "(~{0})", "popc({0})", "clz({0})", "brev({0})", "ctz({0})"] + ["abs({0})"] * (dt[0] == "i")), [a])

    def bool_op(self, dt, shape, depth):
        r, pick = self.r, self.r.random()
        if pick < 0.7:
            t = r.choice([d for d in self.dtypes if d != "i1"])
            if t in FLOATS and r.random() < 0.2:
                return E(dt, shape, f"{r.choice(['isnan', 'isinf', 'isfinite'])}({{0}})", [self.expr(t, shape, depth)])
            a = self.expr(t, shape, depth)
            b = self.operand(t, shape, depth) if t not in FLOATS else self.expr(t, shape, depth - 1)
            return E(dt, shape, f"({{0}} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {{1}})", [a, b])
        if pick < 0.8:
            return E(dt, shape, "(!{0})", [self.expr(dt, shape, depth)])
        return E(dt, shape, f"({{0}} {r.choice(['&', '|', '^', '&&', '||'])} {{1}})", [self.expr(dt, shape, depth), self.expr(dt, shape, depth - 1)])

    def select(self, dt, shape, depth):
        c, a, b = self.expr("i1", shape, depth - 2), self.expr(dt, shape, depth - 1), self.expr(dt, shape, depth - 2)
        return E(dt, shape, self.r.choice(["where({0}, {1}, {2})", "({0} ? {1} : {2})"]), [c, a, b], self.met(dt, a.known, b.known))

    def minmax(self, dt, shape, depth):
        if dt == "i1":
            return None
        r, a, b = self.r, self.expr(dt, shape, depth - 1), self.expr(dt, shape, depth - 2)
        known = self.met(dt, a.known, b.known)
        if dt in FLOATS and r.random() < 0.2:
            return E(dt, shape, f"clamp({{0}}, -4.0, 4.0{r.choice(['', ', propagate_nan=true'])})", [a], WILD if a.known.wild() else self.join(a.known, Float(0, 4.0)))
        return E(dt, shape, f"{r.choice(['max', 'min'] + ['maximum', 'minimum'] * (dt in FLOATS))}({{0}}, {{1}})", [a, b], known)

    # ---- casts, formats ----
    def cast(self, dt, shape, depth):
        r = self.r
        src = r.choice([d for d in self.dtypes if d != dt])
        a = self.expr(src, shape, depth - 1)
        if dt not in FLOATS:             # floats stay in range, a nan gives 0
            return E(dt, shape, f"{dt}({{0}})" if r.random() < 0.9 or dt == "i1" else f"cast({{0}}, {dt}, sat=true)", [a])
        if src in FLOATS:
            if not a.known.fits(dt) and a.known.most > MOST[dt] and not a.known.wild():
                a = self.tame(a)
            return E(dt, shape, f"{dt}({{0}})", [a], a.known if a.known.fits(dt) else Float(None, a.known.most))
        if src == "i1":
            return E(dt, shape, f"{dt}({{0}})", [a], Float(0, 1.0))
        return E(dt, shape, f"{dt}({{0}})", [E(src, shape, r.choice(["({0} & 7)", "({0} % 5)"]), [a])], Float(0, 7.0))

    def rebits(self, dt, shape, depth):
        """The same bits as another type; not of nans, whose bits nobody promises."""
        sizes = {**INTS, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
        src = self.r.choice([d for d in self.dtypes if d != dt and sizes.get(d) == sizes.get(dt, 0)] or [None])
        return src and E(dt, shape, f"bitcast({{0}}, {dt})", [self.finite(src, shape, depth - 1)], WILD if dt in FLOATS else None)

    def rounded(self, dt, shape, depth):
        """Through a narrower type, rounded as asked; 8-bit floats clamp."""
        r, a = self.r, self.exact(dt, shape, depth - 1)
        mode = r.choice(['round="rn"', 'round="rz"', 'round="rm"', 'round="rp"', "sat=true"])
        if dt in ("f32", "f16", "bf16") and a.known.most < 400 and r.random() < 0.5:
            to, grain = r.choice([("f8e4m3", -9), ("f8e5m2", -16)])
            known = Float(grain, 512.0)
            return E(dt, shape, f"{dt}(cast({{0}}, {to}, {mode}))", [a], known if known.fits(dt) else Float(None, 512.0))
        if dt in ("f32", "f64") and a.known.most < MOST["f16"]:
            to = r.choice(["f16", "bf16"] + (["f32"] if dt == "f64" else []))
            return E(dt, shape, f"{dt}(cast({{0}}, {to}, {mode}))", [a], Float(None, a.known.most * 2))
        return None

    def packed(self, dt, shape, depth):
        """Small numbers out of words, and sometimes back into them and out again."""
        r = self.r
        word, form, bits, known = r.choice(PACKED)
        words, left = divmod(self.value(shape[-1]) * bits, INTS[word])
        if left or words > 64 or (dt not in FLOATS and (form[0] == "f" or dt[0] == "u" and form[0] == "i")) or (dt in FLOATS and not known.fits(dt)):
            return None
        a = self.expr(word, self.with_extent(shape, len(shape) - 1, words), depth - 2)
        if r.random() < 0.3:
            a = E(word, a.shape, f"pack(unpack({{0}}, {form}), {form}, {word})", [a])
        return E(dt, shape, r.choice([f"{dt}(unpack({{0}}, {form}))", f"unpack({{0}}, {form}, {dt})"]), [a], known if dt in FLOATS else None)

    # ---- 8-bit floats: loaded, converted, moved about ----
    def narrow(self, t, shape, depth):
        r, known = self.r, Float(-3, 4.0)
        pick = r.choice(["load", "load", "cast", "where", "trans", "flip", "layout"]) if depth > 0 else "load"
        if pick == "load":
            got = self.load(t, shape, 0)
            if got:
                return got
        if pick == "where":
            return E(t, shape, "where({0}, {1}, {2})", [self.expr("i1", shape, 1), self.narrow(t, shape, depth - 1), self.narrow(t, shape, depth - 2)], known)
        if pick == "trans" and len(shape) > 1:
            return E(t, shape, "trans({0})", [self.narrow(t, shape[:-2] + (shape[-1], shape[-2]), depth - 1)], known)
        if pick == "flip":
            return E(t, shape, f"flip({{0}}, axis={r.randrange(len(shape))})", [self.narrow(t, shape, depth - 1)], known)
        if pick == "layout":
            return E(t, shape, f"convert_layout({{0}}, {self.layout(shape)})", [self.narrow(t, shape, depth - 1)], known)
        return E(t, shape, f"{t}({{0}})", [self.small(r.choice(["f32", "f16", "bf16"]), shape, depth - 1)], known)

    def widened(self, dt, shape, depth):
        if dt not in ("f32", "f16", "bf16"):
            return None
        a = self.narrow(self.r.choice(F8), shape, depth - 1)
        return E(dt, shape, f"{dt}({{0}})", [a], a.known)

    # ---- layouts and promises, which change nothing ----
    def blocked(self, rank):
        r, threads, warps = self.r, [1] * rank, [1] * rank
        threads[r.randrange(rank)] *= 4
        threads[r.randrange(rank)] *= 8
        warps[r.randrange(rank)] = self.k.warps
        return f"blocked(size={[r.choice([1, 1, 2, 4]) for _ in range(rank)]}, threads={threads}, warps={warps}, order={self.shuffled(rank)})"

    def layout(self, shape):
        """Any layout that folds take: blocked, or one that is drawn for these extents."""
        if self.r.random() < 0.6:
            return self.blocked(len(shape))
        return asked_for(drawn_columns(self.r, [self.value(e) for e in shape], self.k.warps, False))

    def helped(self, dt, shape, depth):
        a = self.expr(dt, shape, depth - 1)
        if shape and self.r.random() < 0.6:
            return E(dt, shape, f"convert_layout({{0}}, {self.layout(shape)})", [a], a.known)
        if dt in INTS and self.r.random() < 0.3:
            return E(dt, shape, "multiple_of({0} * 4, 4)", [a])
        return a

    # ---- functions ----
    def applied(self, dt, shape, depth):
        """Functions of the file: with functions, types and constants as parameters, with several results, with ways out."""
        r, a = self.r, self.expr(dt, shape, depth - 1)
        pick = r.choice(["twice", "both", "type", "two", "nest", "swap", "either", "powers", "stepped", "sorted_out", "halved"])
        if pick in ("twice", "both"):
            f, g = (r.choice(["kept", "negated"] if dt != "i1" else ["kept"]) for _ in range(2))
            return E(dt, shape, f"twice({f}, {{0}})" if pick == "twice" else f"both({f}, g={g}, x={{0}})", [a], a.known)
        if pick == "type":
            return E(dt, shape, r.choice([f"as_type({{0}}, {dt})", f"as_type({{0}}, T={dt})"]), [a], a.known)
        if pick in ("two", "nest", "swap"):
            b = self.expr(dt, shape, depth - 2)
            text, known = r.choice({"two": [("turned(Two({0}, {1})).a", b), ("turned(turned(Two(b={1}, a={0}))).a", a)],
                                    "nest": [("nested({0}, {1}).pair.b", b), ("turned(nested({0}, {1}).pair).b", a)],
                                    "swap": [("swapped({0}, {1})[0]", b), ("({0}, {1})[0]", a)]}[pick])
            return E(dt, shape, text, [a, b], known.known)
        if pick == "either":
            b = self.expr(dt, shape, depth - 2)
            return E(dt, shape, "either({2}, {0}, {1})", [a, b, self.expr("i1", (), 1)], self.met(dt, a.known, b.known))
        if dt not in INTS:
            return None
        if pick == "powers":
            return E(dt, shape, r.choice(["powers({0})", "powers({0}, 3)", "powers({0}, N=1)"]), [a])
        return E(dt, shape, f"{pick}({{0}}, {{1}} & {r.choice([3, 7, 63])})", [a, self.expr("i32", (), 1)])

    def by_ptx(self, dt, shape, depth):
        """Instructions, on packs of elements."""
        one = {"f16": "half_ptx", "f32": "float_ptx", "i64": "xor64_ptx", "u64": "xor64_ptx"}.get(dt, "xor_ptx")
        if dt in ("bf16", "f64", "i1") or self.r.random() < 0.5:
            return None
        a, b = self.small(dt, shape, depth - 1), self.small(dt, shape, depth - 2)
        if dt == "u32" and self.r.random() < 0.5:
            return E(dt, shape, f"ends_ptx({{0}}, {{1}}, PTX)[{self.r.randrange(2)}]", [a, b])
        known = Float(min(a.known.lsb, b.known.lsb), a.known.most + b.known.most) if dt in FLOATS else None
        return E(dt, shape, f"{one}({{0}}, {{1}}, PTX)", [a, b], known)
