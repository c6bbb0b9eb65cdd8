"""cut.py BUILD [--kernels N]: kernels whose buffers have no memory for their padding, however small they are. Every way to reach one:
stores, loads as they lie and turned, parts, rows of them, asynchronous copies with and without masks, fragments of dots, elements by index.
Layouts are the compiler's, those a program asks for, and any there are. The buffer is the last thing in memory, so that what reaches behind
it is out of bounds to the simulator, which must say what the interpreter says and report no fault.

The text after the placing passes gets the cuts: one more than the highest offset of an element, counted element by element."""
import argparse, itertools, os, random, re, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [os.path.join(root, d) for d in ("examples", "tools", "tests/kernels", "tests/fuzz")]
import made

BYTES = {"i8": 1, "f16": 2, "f32": 4, "i64": 8}


def bits(n):
    return (n - 1).bit_length()


def numel(shape):
    n = 1
    for e in shape:
        n *= e
    return n


def flat(shape, x):
    return f"{x} + arange(0, {shape[0]})[:, None] * {shape[1]} + arange(0, {shape[1]})[None, :]"


def drawn_layout(r, shape, dtype):
    """What a program may ask for; a linear one is any order of the coordinates' bits, sums of them among it."""
    kind = r.randrange(4)
    if kind == 0:
        return ""
    if kind == 1:
        order = r.choice([[1, 0], [0, 1]])
        row = 1 << bits(shape[order[0]])
        vec = min(16 // BYTES[dtype], row)
        return f", layout=swizzled(vec={vec}, max_phase={min(r.choice([1, 2, 4, 8]), row // vec)}, order={order})"
    if kind == 2:
        every = 1 << r.randrange(bits(shape[0]) + bits(shape[1]) + 1)
        return f", layout=padded({every}, {min(every, r.choice([1, 2, 4, 16]))}, order={r.choice([[1, 0], [0, 1]])})"
    basis = [[1 << i, 0] for i in range(bits(shape[0]))] + [[0, 1 << i] for i in range(bits(shape[1]))]
    r.shuffle(basis)
    for _ in range(r.choice([0, 0, 3, 8])):
        i, k = r.randrange(len(basis)), r.randrange(len(basis))
        if i != k:
            basis[i] = [a ^ b for a, b in zip(basis[i], basis[k])]
    return f", layout=linear(offset={basis})" if basis else ""


# Of a buffer s[ROWS, COLS] of tiles x; each writes y0, y1, .. : text and their extents.
def through(r, dtype, R, C, layout):
    return f"""let s = shared({dtype}, [{R}, {C}]{layout});
  shared_store(s, load({flat((R, C), 'x')}));
  store({flat((R, C), 'y0')}, shared_load(s));
  store({flat((C, R), 'y1')}, shared_load(trans(s)));""", [(R, C), (C, R)]


def in_row(r, dtype, R, C, layout):
    return f"""let s = shared({dtype}, [{R}, {C}], count=3{layout});
  for k in range(n) {{
    shared_store(s[k % 3], load({flat((R, C), 'x')}) + {dtype}(k));
    if k >= 2 {{ store({flat((R, C), 'y0')}, shared_load(s[(k + 1) % 3]) + shared_load(s[(k + 2) % 3])); }}
  }}""", [(R, C)]


def copied(r, dtype, R, C, layout):
    mask = r.choice(["", f", mask=arange(0, {R})[:, None] < n"])
    return f"""let s = shared({dtype}, [{R}, {C}], count=2{layout});
  async_copy(s[0], {flat((R, C), 'x')}{mask});
  async_commit();
  async_copy(s[1], {flat((R, C), 'x')});
  async_commit();
  async_wait(1);
  store({flat((C, R), 'y0')}, shared_load(trans(s[0])));
  async_wait_all();
  store({flat((R, C), 'y1')}, shared_load(s[1]));""", [(C, R), (R, C)]


def in_parts(r, dtype, R, C, layout):
    pr, pc = 1 << r.randrange(bits(R + 1)), 1 << r.randrange(bits(C + 1))
    row, col = r.randrange(R // pr) * pr, r.randrange(C // pc) * pc
    return f"""let s = shared({dtype}, [{R}, {C}]{layout});
  shared_store(s, load({flat((R, C), 'x')}));
  store({flat((pr, C), 'y0')}, shared_load(view(s, [{row}, 0], [{pr}, {C}])));
  shared_store(view(s, [{row}, {col}], [{pr}, {pc}]), load({flat((pr, pc), 'x')}) * 2);
  store({flat((pc, R), 'y1')}, shared_load(trans(view(s, [0, {col}], [{R}, {pc}]))));""", [(pr, C), (pc, R)]


def halves(r, dtype, R, C, layout):
    """Its first or last rows are read while copies into the others are under way."""
    part = r.choice([p for p in (1, 2, 4, 8) if R % p == 0 and R // p > 1])
    first, second = r.sample([0, R - part], 2)
    rows = lambda at: f"view(s, [{at}, 0], [{part}, {C}])"
    return f"""let s = shared({dtype}, [{R}, {C}]{layout});
  async_copy({rows(first)}, {flat((part, C), 'x')});
  async_commit();
  async_copy({rows(second)}, {flat((part, C), 'x')} + {C});
  async_commit();
  async_wait(1);
  store({flat((part, C), 'y0')}, shared_load({rows(first)}));
  async_wait_all();
  store({flat((C, part), 'y1')}, shared_load(trans({rows(second)})));""", [(part, C), (C, part)]


def by_index(r, dtype, R, C, layout):
    axis = r.randrange(2)
    shape = (r.randrange(1, 40), C) if axis == 0 else (R, r.randrange(1, 40))
    return f"""let s = shared({dtype}, [{R}, {C}]{layout});
  shared_store(s, load({flat((R, C), 'x')}));
  let i = load({flat(shape, 'x')} % {R * C});
  let at = abs(i32(i)) % {(R, C)[axis]};
  store({flat(shape, 'y0')}, gather(s, at, {axis}));""".replace(f" % {R * C});", ");"), [shape]


def multiplied(r, dtype, R, C, layout):
    return f"""let s = shared(f16, [{R}, {C}]{layout});
  shared_store(s, f16(load({flat((R, C), 'x')})));
  let a = shared_load(s);
  store({flat((R, R), 'y0')}, {dtype}(dot(a, shared_load(trans(s)))));
  store({flat((C, C), 'y1')}, {dtype}(dot(shared_load(trans(s)), a)));""", [(R, R), (C, C)]


def counted(r, dtype, R, C, layout):
    return f"""let s = shared(i32, [{R * C}]);
  shared_store(s, 0);
  shared_add(s, abs(i32(load({flat((R, C), 'x')})) * 7) % {R * C}, i32(load({flat((R, C), 'x')})));
  store(y0 + arange(0, {R * C}), {dtype}(shared_load(s)));""", [(R * C, 1)]


KINDS = [through, through, in_row, copied, halves, in_parts, by_index, multiplied, counted]
COPIES = (copied, halves)


def source(r, kind):
    R, C = r.choice([1, 3, 5, 12, 17, 24, 33, 40]), r.choice([3, 5, 9, 20, 33, 48, 72, 80])
    dtype = r.choice(list(BYTES))
    if kind in COPIES:
        dtype, R, C = r.choice(["f16", "f32"]), r.choice([2, 3, 4, 8, 12, 24] if kind is halves else [1, 5, 12, 33]), r.choice([24, 40, 48, 72, 80])
    if kind is multiplied:
        dtype = "f32"
    layout = drawn_layout(r, (R, C), "f16" if kind is multiplied else dtype)
    if kind in COPIES and "swizzled" not in layout:
        layout = ""      # others may tear what is copied together
    body, results = kind(r, dtype, R, C, layout.replace("[0, 1]", "[1, 0]") if kind in COPIES else layout)
    ys = "".join(f", y{i}: *{dtype}" for i in range(len(results)))
    sizes = [max(R * C, 40 * max(R, C))] + [numel(s) for s in results]
    heads = ["// grid 1"] + [f"// buffer {dtype} {n}" for n in sizes] + [f"// int {r.randrange(0, 7)}"]
    return "\n".join(heads) + f"\nkernel k(x: *{dtype} multiple_of(16){ys}, n: i32) warps({r.choice([1, 2, 4, 8])}) {{\n  {body}\n}}\n"


# ---- cuts ----

LAYOUT = re.compile(r"^#(\d+) = shared<([0-9x]+); off ?(.*)>$", re.M)
BUFFER = re.compile(r"shared<((?:\d+ x )?\w+\[([0-9, ]+), #(\d+)\](?: of \[([0-9, ]+)\])?(?: pad \d+ \+ \d+)?)>")


def reach(columns, shape):
    """One more than the highest offset whose element is within the extents."""
    most, at = 0, [0] * len(shape)
    for step in range(1, 1 << len(columns)):      # a Gray code: one bit of the offset changes at a time
        bit = (step & -step).bit_length() - 1
        at = [a ^ c for a, c in zip(at, columns[bit])]
        if all(a < e for a, e in zip(at, shape)):
            most = max(most, step ^ step >> 1)
    return most + 1


def with_cuts(text):
    layouts = {m[1]: [tuple(int(x) for x in c.split(",")) for c in re.findall(r"\(([0-9,]+)\)", m[3])] for m in LAYOUT.finditer(text)}
    known = {}

    def cut(m):
        shape = tuple(int(x) for x in (m[4] or m[2]).split(","))
        key = (m[3], shape)
        if key not in known:
            known[key] = reach(layouts[m[3]], shape)
        return f"shared<{m[1]} cut {known[key]}>"
    return BUFFER.sub(cut, text)


def kernels(n, tilec, folder):
    path = os.path.join(folder, "placing.tile")
    for seed in range(n):
        r = random.Random(seed)
        text = source(r, KINDS[seed % len(KINDS)])
        with open(path, "w") as f:
            f.write(text)
        run = subprocess.run([tilec, path, "--emit=placed", "--target=sm_90a"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{text}\n{run.stderr}")
        placed = with_cuts(run.stdout)
        if " cut " not in placed:
            sys.exit(f"nothing is cut in\n{placed}")
        yield "tir", "".join(re.findall(r"^// .*\n", text, re.M)) + placed


a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("build")
a.add_argument("--kernels", type=int, default=135)
a = a.parse_args()
with tempfile.TemporaryDirectory() as folder:
    tilec = os.path.join(os.path.abspath(a.build), "bin", "tilec")
    sys.exit(made.check(a.build, kernels(a.kernels, tilec, folder), "--way=sm_90a:1", "--way=sm_80:0"))
