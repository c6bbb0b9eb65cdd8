"""teams.py BUILD: producers and consumers as teams of warps, with rings of buffers between them. One team copies rows of memory into the
ring, the others take them out, each all of them or its share: of any sizes, with 1 to 4 slots, copies in flight or not, no row, one, as
many as there are slots, more. Each kernel goes through check_kernel: the interpreter after every pass and with teams that take turns in
several orders, and the simulator, must say what the interpreter says of the program as it was read, and none may report a fault."""
import sys
import made


class Text:
    """Lines of IR with names of their own."""

    def __init__(self):
        self.lines, self.n = [], 0

    def put(self, text):
        self.lines.append("    " + text)

    def new(self, text):
        self.n += 1
        self.put(f"%v{self.n} = {text}")
        return f"%v{self.n}"

    def const(self, value, t="i32"):
        return self.new(f"const value = {value} : {t}")

    def two(self, op, a, b, t="i32", more=""):
        return self.new(f"{op} {a}, {b}{more} : {t}")

    def row(self, base, index, n, t="f32"):
        """Pointers to row `index` of n elements."""
        at = self.two("mul", index, self.const(n))
        tile = self.two("add", self.new(f"arange start = 0 end = {n} : i32[{n}]"), self.new(f"splat {at} : i32[{n}]"), f"i32[{n}]")
        return self.new(f"addptr {self.new(f'splat {base} : (*{t})[{n}]')}, {tile} : (*{t})[{n}]")

    def slot(self, i, slots):
        """Slot and parity of turn i."""
        s = self.const(slots)
        return self.two("rem", i, s), self.two("and", self.two("div", i, s), "%one")

    def loop(self, body, step="%one", start="%zero"):
        i = f"%i{self.n}"
        self.put(f"for {start}, %n, {step} {{")
        self.put(f"^({i}: i32):")
        body(i)
        self.put("yield")
        self.put("}")


def kernel(warps, slots, rows, n=256, registers=None, shares=False, ahead=0, twice=False):
    """warps: the producer's, then the consumers'. shares: each consumer takes every so manieth row, else all take all. ahead: copies
    that the producer leaves in flight. twice: consumers read again behind a meeting of their own."""
    consumers = len(warps) - 1
    t = Text()
    full = f"shared<{slots} x mbar[1]>"

    def bar(row, slot):
        return t.new(f"shared_index {row}, {slot} : shared<mbar[1]>")

    def data(slot):
        return t.new(f"shared_index %data, {slot} : shared<f32[{n}]>")

    def announce(i):
        t.put(f"mbarrier_arrive {bar('%full', t.slot(i, slots)[0])}")

    def produce(i):
        slot, parity = t.slot(i, slots)
        t.put(f"mbarrier_wait {bar('%empty', slot)}, {t.two('xor', parity, '%one')}")
        t.put(f"async_copy {data(slot)}, {t.row('%x', i, n)}")
        t.put("async_commit")
        t.put(f"async_wait pending = {ahead}")
        if not ahead:
            announce(i)
            return
        t.put(f"if {t.two('cmp', i, t.const(ahead), 'i1', chr(32) + 'pred = ' + chr(34) + 'ge' + chr(34))} {{")
        announce(t.two("sub", i, t.const(ahead)))
        t.put("yield\n    } else {\n    yield\n    }")

    def finish():
        if ahead:
            t.put("async_wait pending = 0")
            start = t.two("max", "%zero", t.two("sub", "%n", t.const(ahead)))
            t.loop(announce, start=start)

    def consume(c):
        def body(i):
            slot, parity = t.slot(i, slots)
            t.put(f"mbarrier_wait {bar('%full', slot)}, {parity}")
            v = t.new(f"shared_load {data(slot)} : f32[{n}]")
            if twice:
                total = f"%t{t.n}"
                t.put(f"{total} = reduce {v} axis = 0 : f32 {{\n    ^({total}a: f32, {total}b: f32):\n"
                      f"    {total}c = max {total}a, {total}b : f32\n    yield {total}c\n    }}")
                v = t.two("add", v, t.new(f"splat {total} : f32[{n}]"), f"f32[{n}]")
            t.put(f"mbarrier_arrive {bar('%empty', slot)}")
            w = t.two("mul", v, t.const(f"{c + 2}.0", f"f32[{n}]"), f"f32[{n}]")
            t.put(f"store {t.row('%y', i if shares else t.two('add', t.two('mul', i, t.const(consumers)), t.const(c)), n)}, {w}")
        return body

    t.put(f"%zero = const value = 0 : i32")
    t.put(f"%one = const value = 1 : i32")
    t.put(f"%full = shared_alloc : {full}")
    t.put(f"%empty = shared_alloc : {full}")
    t.put(f"%data = shared_alloc : shared<{slots} x f32[{n}]>")
    for s in range(slots):
        at = t.const(s)
        t.put(f"mbarrier_init {bar('%full', at)} count = 1")
        t.put(f"mbarrier_init {bar('%empty', at)} count = {1 if shares else consumers}")
    t.put(f"warp_specialize warps = {list(warps)}" + (f" registers = {list(registers)}" if registers else "") + " {")
    t.loop(produce)
    finish()
    for c in range(consumers):
        t.put("yield\n    } {")
        if shares:      # rows c, c + consumers, ...: the slots are a multiple of the consumers, so that each has its own
            t.loop(consume(c), step=t.const(consumers), start=t.const(c))
        else:
            t.loop(consume(c))
    t.put("yield\n    }")
    t.put("return")
    return (f"// grid 1 1 1\n// buffer f32 {max(1, rows) * n}\n// buffer f32 {max(1, rows) * n * (1 if shares else consumers)}\n// int {rows}\n"
            f"module tile\nkernel @k(%x: *f32 {{divisible = 16}}, %y: *f32 {{divisible = 16}}, %n: i32) warps = {sum(warps)} {{\n"
            + "\n".join(t.lines) + "\n}\n")


def kernels():
    for slots in (1, 2, 3, 4):
        for rows in (0, 1, slots, slots + 1, 3 * slots + 2):
            yield kernel((1, 4), slots, rows)
    for warps in ((1, 1), (4, 1), (2, 8), (4, 4, 4), (1, 2, 4), (16, 8, 8)):
        yield kernel(warps, 2, 5)
        yield kernel(warps, 3, 7, n=100)
        yield kernel(warps, 4, 9, ahead=2, twice=True)
    yield kernel((4, 8), 3, 8, registers=(40, 232), ahead=1)
    yield kernel((4, 4, 4), 4, 11, registers=(24, 240, 240), shares=True, twice=True)
    yield kernel((1, 4, 4), 2, 6, shares=True)
    yield kernel((1,) + (2,) * 14, 2, 3, n=64, twice=True)
    yield kernel((1, 4, 4), 4, 7, shares=True, ahead=3)


if __name__ == "__main__":
    sys.exit(made.check(sys.argv[1], (("tir", text) for text in kernels()), "--passes", "--way=sm_80:1", "--way=sm_90a:1", "--way=sm_90a:0"))
