"""Random control flow: functions of integers with loops of all kinds, break, continue and return anywhere, as text in the
tile language and, statement by statement, in Python. make(seed) gives (kernel text, the same function in Python)."""
import random

VARS = ["a", "b", "c"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def condition(self, names):
        r = self.random
        if r.random() < 0.6:
            return f"({r.choice(names)} {r.choice(['<', '>', '==', '!='])} {r.choice(names + [str(r.randint(0, 9))])})"
        return f"({r.choice(names)} % {r.randint(2, 4)} == {r.randint(0, 1)})"

    def block(self, depth, in_loop, names, most=3):
        tile, python = [], []
        for _ in range(self.random.randint(1, most)):
            t, p = self.statement(depth, in_loop, names)
            tile += t
            python += p
        return ["  " + x for x in tile], ["  " + x for x in python]

    def statement(self, depth, in_loop, names):
        r, kind = self.random, self.random.random()
        if depth <= 0 or kind < 0.3:
            v = r.choice(VARS)
            text = f"{v} = ({v} {r.choice('+-^')} ({r.choice(names)} + {r.randint(1, 9)})) & 1023"
            return [text + ";"], [text]
        if kind < 0.46 and in_loop:
            word = r.choice(["break", "continue"])
            return [word + ";"], [word]
        if kind < 0.52:
            v = r.choice(names)
            return [f"return {v};"], [f"return {v}"]
        if kind < 0.75:
            return self.branch(depth, in_loop, names)
        self.loops += 1
        return self.counted(depth, names, f"i{self.loops}") if kind < 0.9 else self.repeated(depth, names, f"i{self.loops}")

    def branch(self, depth, in_loop, names):
        c = self.condition(names)
        t, p = self.block(depth - 1, in_loop, names)
        tile, python = [f"if {c} {{"] + t, [f"if {c}:"] + p
        if self.random.random() < 0.4:
            t, p = self.block(depth - 1, in_loop, names)
            tile, python = tile + ["} else {"] + t, python + ["else:"] + p
        return tile + ["}"], python

    def counted(self, depth, names, i):
        r = self.random
        step, hi, word = r.randint(1, 3), str(r.randint(0, 6)), "range"
        if r.random() < 0.35:
            word = "static_range"
        else:
            names, hi = names + [i], r.choice([hi, "(n % 7)", "(a % 5)"])
        t, p = self.block(depth - 1, True, names)
        return [f"for {i} in {word}(0, {hi}, {step}) {{"] + t + ["}"], [f"for {i} in range(0, {hi}, {step}):"] + p

    def repeated(self, depth, names, i):
        c = self.condition(names) if self.random.random() < 0.7 else None
        t, p = self.block(depth - 1, True, names)
        head = [f"var {i} = 0;", f"while {i} < 6 && {c} {{" if c else "while true {", f"  {i} += 1;", f"  if {i} > 5 {{ break; }}"]
        return head + t + ["}"], [f"{i} = 0", f"while {i} < 6 and {c}:" if c else "while True:", f"  {i} += 1", f"  if {i} > 5: break"] + p


def make(seed):
    tile, python = Maker(seed).block(4, False, VARS + ["n"], 6)
    result = "return (a * 31 + b) * 31 + c"
    text = "\n".join(["fn f(n) {", "  var a = 1;", "  var b = 2;", "  var c = n;", *tile, f"  {result};", "}",
                      "kernel k(out: *i32) warps(1) { let n = program_id(0); store(out + n, f(n)); }"])
    scope = {}
    exec("\n".join(["def f(n):", "  a, b, c = 1, 2, n", *python, "  " + result]), scope)
    return text, scope["f"]
