"""pieces.py BUILD [CASES [SEED]]: tiles that go through scratch memory in pieces, however small they are: conversions between random
layouts, and to and from those of tensor cores; exchanges, reductions and scans along axes that warps share, atomics whose answers others
have copies of. Interpreter and simulator must agree; each kernel says in its `pieces` how many there are. CASES of each kind (12)."""
import os, random, subprocess, sys, tempfile

build, cases, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12, int(sys.argv[3]) if len(sys.argv) > 3 else 1
rng = random.Random(seed)
BYTES = {"i8": 1, "f16": 2, "f32": 4, "i64": 8}


def placed(shape, cols):
    """The text of a layout by its columns, flat indices: {"reg": [...], "lane": [...], "warp": [...]}."""
    def coordinates(v):
        out = []
        for n in reversed(shape):
            out.append(v % n)
            v //= n
        return "(" + ",".join(str(x) for x in reversed(out)) + ")"
    parts = [" ".join([name] + [coordinates(v) for v in cols[name]]) for name in ("reg", "lane", "warp") if cols[name]]
    return f"layout<{'x'.join(str(n) for n in shape)}; {'; '.join(parts)}>"


def padded(n):
    return 1 << (n - 1).bit_length()


def shuffled(bits, warps, mixed, copies=0):
    """Every element, by a random basis (mixed) or bit by bit; lanes and warps that are left over, and `copies` registers, hold copies."""
    basis = [1 << i for i in range(bits)]
    rng.shuffle(basis)
    for _ in range(2 * bits if mixed else 0):
        i, k = rng.randrange(bits), rng.randrange(bits)
        basis[i] ^= basis[k] if i != k else 0
    for _ in range(max(0, 5 + warps - bits) + rng.randrange(2) * 2):
        basis.append(0)
    threads = rng.sample(range(len(basis)), min(len(basis), 5 + warps))
    taken = [basis[i] for i in threads] + [0] * (5 + warps - len(threads))
    regs = [v for i, v in enumerate(basis) if i not in threads and v]
    for _ in range(copies):
        regs.insert(rng.randrange(len(regs) + 1), rng.choice(regs + [0]))
    return {"reg": regs, "lane": taken[:5], "warp": taken[5:]}


class Kernel:
    """Text of a module behind the passes that might change its layouts."""
    def __init__(self, warps):
        self.warps, self.layouts, self.lines, self.buffers, self.n = warps, [], [], [], 0

    def layout(self, text):
        self.layouts.append(text)
        return f"#l{len(self.layouts) - 1}"

    def op(self, text):
        self.n += 1
        self.lines.append(f"  %v{self.n} = {text}")
        return f"%v{self.n}"

    def buffer(self, dtype, n):
        self.buffers.append((dtype, n))
        return f"%p{len(self.buffers) - 1}"

    def pointers(self, dtype, n, l):
        p, i = self.buffer(dtype, n), self.op(f"arange start = 0 end = {n} : i32[{n}, {l}]")
        s = self.op(f"splat {p} : (*{dtype})[{n}, {l}]")
        return self.op(f"addptr {s}, {i} : (*{dtype})[{n}, {l}]")

    def load(self, dtype, n, l):
        return self.op(f"load {self.pointers(dtype, n, l)} : {dtype}[{n}, {l}]")

    def store(self, dtype, n, l, value):
        self.lines.append(f"  store {self.pointers(dtype, n, l)}, {value}")

    def text(self):
        params = ", ".join(f"%p{i}: *{d} {{divisible = 16}}" for i, (d, _) in enumerate(self.buffers))
        head = ["// grid 1"] + [f"// buffer {d} {n}" for d, n in self.buffers] + ['module placed after dce.3']
        head += [f"#l{i} = {l}" for i, l in enumerate(self.layouts)]
        return "\n".join(head + [f"kernel @f({params}) warps = {1 << self.warps} {{"] + self.lines + ["  return", "}", ""])


def conversion():
    bits, warps, dtype = rng.randrange(7, 11), rng.randrange(1, 4), rng.choice(list(BYTES))
    n = (1 << bits) - rng.choice([0, 0, 37])
    k = Kernel(warps)
    a, b = (k.layout(placed([1 << bits], shuffled(bits, warps, mixed, rng.randrange(2)))) for mixed in (rng.randrange(2), rng.randrange(2)))
    x = k.load(dtype, n, a)
    for to in (b, a, b):
        x = k.op(f"convert_layout {x} pieces = {rng.choice([2, 4, 8])} : {dtype}[{n}, {to}]")
    k.store(dtype, n, b, x)
    return k.text()


def fragments():
    """Rows to a dot's operand or its result, and back."""
    dtype, which, wide = rng.choice(["i8", "f16", "f32"]), rng.randrange(3), rng.choice([2, 3, 4])
    shape = [32, 64] if which == 1 else [64, 32]
    low = [1 << i for i in range(11)]
    columns = {"reg": low[:wide] + low[wide + 7:], "lane": low[wide:wide + 5], "warp": low[wide + 5:wide + 7]}
    k = Kernel(2)
    line, rows = k.layout(placed([2048], columns)), k.layout(placed(shape, columns))
    other = k.layout(f"operand<{which}; {shape[0]}x{shape[1]}; 2x2; {BYTES[dtype] * 8}>" if which < 2 else "mma<64x32; 2x2>")
    x = k.op(f"reshape {k.load(dtype, 2048, line)} : {dtype}[{shape[0]}, {shape[1]}, {rows}]")
    for l in (other, rows):
        x = k.op(f"convert_layout {x} pieces = {rng.choice([2, 4, 8])} : {dtype}[{shape[0]}, {shape[1]}, {l}]")
    k.store(dtype, 2048, line, k.op(f"reshape {x} : {dtype}[2048, {line}]"))
    return k.text()


def along(kind):
    """A reduction, scan or exchange along an axis of which every bit is anyone's."""
    rows, cols, warps = rng.choice([3, 4, 5]), rng.choice([4, 5]), rng.randrange(1, 4)
    bits, pieces, axis, dtype = rows + cols, rng.choice([2, 4, 8]), rng.randrange(2), rng.choice(["f32", "i64", "i8"])
    k, columns, flat = Kernel(warps), shuffled(bits, warps, kind == "butterfly" and rng.randrange(2)), 1 << bits
    if kind == "butterfly":
        flat -= rng.choice([0, 1 << cols])
    shape = [flat >> cols, 1 << cols]
    pads = [padded(x) for x in shape]
    if kind != "butterfly":      # each bit of the axis to one input: the shape's low and high bits stay apart
        assert all(v & (v - 1) == 0 for name in columns for v in columns[name])
    line, tile = k.layout(placed([1 << bits], columns)), k.layout(placed([1 << rows, 1 << cols], columns))
    x = k.op(f"reshape {k.load(dtype, flat, line)} : {dtype}[{shape[0]}, {shape[1]}, {tile}]")
    if kind == "butterfly":
        y = k.op(f"butterfly {x} axis = 1 mask = {rng.randrange(1, 1 << cols)} pieces = {pieces} : {dtype}[{shape[0]}, {shape[1]}, {tile}]")
        k.store(dtype, flat, line, k.op(f"reshape {y} : {dtype}[{flat}, {line}]"))
        return k.text()
    fold = lambda t: [f"  ^(%a: {t}, %b: {t}):", f"    %c = {rng.choice(['add', 'max'])} %a, %b : {t}", "    yield %c", "  }"]
    if kind == "scan":
        more = rng.choice(["", " reverse = 1", " exclusive = 1"])
        y = k.op(f"scan {x} axis = {axis}{more} pieces = {pieces} : {dtype}[{shape[0]}, {shape[1]}, {tile}] {{")
        k.lines += fold(dtype)
        k.store(dtype, flat, line, k.op(f"reshape {y} : {dtype}[{flat}, {line}]"))
        return k.text()
    left = k.layout(f"slice<{axis}; {placed([1 << rows, 1 << cols], columns)}>")
    y = k.op(f"reduce {x} axis = {axis} pieces = {pieces} : {dtype}[{shape[1 - axis]}, {left}] {{")
    k.lines += fold(dtype)
    k.store(dtype, shape[1 - axis], left, y)
    return k.text()


def answers():
    bits, warps, dtype = rng.randrange(5, 9), rng.randrange(1, 4), rng.choice(["i32", "i64"])
    k, n = Kernel(warps), 1 << bits
    l = k.layout(placed([n], shuffled(bits, warps, rng.randrange(2))))
    x, p = k.load(dtype, n, l), k.pointers(dtype, n, l)
    y = k.op(f'atomic_rmw {p}, {x} rmw = "add" sem = "relaxed" scope = "gpu" pieces = {rng.choice([2, 4])} : {dtype}[{n}, {l}]')
    k.store(dtype, n, l, y)
    return k.text()


KINDS = [conversion, fragments, lambda: along("butterfly"), lambda: along("reduce"), lambda: along("scan"), answers]
with tempfile.TemporaryDirectory() as folder:
    files = []
    for i in range(cases * len(KINDS)):
        files.append(os.path.join(folder, f"{i}.tir"))
        with open(files[-1], "w") as f:
            f.write(KINDS[i % len(KINDS)]())
    r = subprocess.run([os.path.join(build, "tests", "check_kernel"), "--way=sm_90a:1", "--way=sm_80:0", *files], capture_output=True, text=True)
    for line in r.stdout.splitlines()[:5]:
        name = line.split(":")[0]
        print(line, open(name).read() if os.path.exists(name) else "", sep="\n")
    print(r.stderr, end="")
    print(f"{len(files)} kernels")
    sys.exit(r.returncode)
