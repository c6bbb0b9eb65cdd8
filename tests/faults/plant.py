"""Planted faults: wrong programs that interpreter and simulator must both report, at their lines. plant.py BUILD [--filter TEXT] [--verbose]

PLANTS edits programs that are right: the scheduled IR that the compiler makes of an example, or the example's own text. Each
edit must match. The program as it was must run silently and agree everywhere; the edited one must be reported by the
reference interpreter (on the module) and by the simulator (on its PTX), with the kind of fault and the line expected.
The .tile files beside this script are wrong by hand: `// fault: INTERPRETER; SIMULATOR` marks the line.
Lines are named by their text in the .tile file, so the examples may change."""
import argparse, os, re, subprocess, sys, tempfile
from collections import namedtuple

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))

# ---- programs that are right: comments for check_kernel, in the order of the parameters ----
PROGRAMS = {
    "matmul": ("matmul.tile", "matmul", """
        define BM 64, define BN 64, define BK 32, define STAGES 3, equal sak 1, equal sbn 1, equal scn 1, divisible sam 8,
        divisible sbk 8, divisible scm 8, divisible K 8, divisible M 64, divisible N 64, divisible a 16, divisible b 16, divisible c 16,
        buffer f16 7680, buffer f16 7680, buffer f16 4096, int 64, int 64, int 120, int 120, int 1, int 64, int 1, int 64, int 1"""),
    "attention": ("attention.tile", "attention", """
        define BM 64, define BN 32, define STAGES 2, define D 32, divisible q 16, divisible k 16, divisible v 16, divisible o 16,
        buffer f16 3584, buffer f16 3584, buffer f16 3584, buffer f16 3584, int 1, int 112, float 0.125, tolerance 0.02"""),
    "products": ("attention.tile", "attention", """
        define BM 64, define BN 32, define STAGES 2, define D 32, divisible q 16, divisible k 16, divisible v 16, divisible o 16,
        buffer f16 3584, buffer f16 3584, buffer f16 3584, buffer f16 3584, int 1, int 112, float 0.125, tolerance 0.02"""),
    "turns": ("matmul_shared.tile", "matmul_shared", """
        define BM 64, define BN 64, define BK 32, buffer f16 7680, buffer f16 7680, buffer f32 4096, int 64, int 64, int 120"""),
    "by hand": ("matmul_shared.tile", "matmul_pipelined", """
        define BM 64, define BN 64, define BK 32, define STAGES 3,
        buffer f16 7680, buffer f16 7680, buffer f32 4096, int 64, int 64, int 120"""),
    "add": ("add_async.tile", "add_pipelined", """
        define BM 16, define BN 32, define BUFFERS 3, divisible a 16, divisible b 16, divisible c 16, divisible cols 4,
        divisible stride 4, grid 2, buffer f32 3000, buffer f32 3000, buffer f32 3000, int 20, int 148, int 148"""),
    "straight": ("../tests/diff/order/straight.tile", "straight", "buffer i32 128, buffer i32 128, buffer i32 128, buffer i32 128, buffer i32 128"),
    "loops": ("../tests/diff/order/loops.tile", "loops", "buffer i32 2048, buffer i32 128, buffer i32 1024, buffer i32 256, int 9"),
    "sweeps": ("../tests/diff/order/pipelined.tile", "pipelined", "divisible x 16, divisible y 16, buffer f32 4096, buffer f32 4096, int 8"),
}

# What the scheduled IR is made for, and run on sm_90a: products of warpgroups are in what is made for that.
SCHEDULED = {"products": "sm_90a"}

# ---- edits ----
Cut = namedtuple("Cut", "pattern at", defaults=(0,))          # drop the at-th line that matches
Put = namedtuple("Put", "pattern text at", defaults=(0,))     # replace the at-th match; at -1: all
Plant = namedtuple("Plant", "name program level edits interp sim line")
UNFENCED = "no asynchronous fence between"
PENDING, NEVER, UNSEEN = "still writing", "nothing has written", "read of shared memory that other threads wrote with no barrier"
# What the simulator meets first depends on how its warps take turns.
RACE = "race|async"
IN_USE = "write to shared memory that other threads read with no barrier"
STORED, LOADED, TWICE = (f"{what} global memory that other threads {did}" for what, did in
                         (("read of", "wrote"), ("write to", "read"), ("write to", "wrote")))
X, Y, DOT = "let x = load(ap", "let y = load(bp", "acc = dot(x"
# Fragments are loaded as their dot needs them: the simulator sees the access there.
KT, V = ("let kt = load(kp", "var s = dot(q"), ("let v = load(vp", "dot(f16(p), v")

PLANTS = [
    # The pipelined loop of matmul, three buffers.
    Plant("missing wait", "matmul", "sched", [Cut("^    async_wait pending = 1")], PENDING, "async", X),
    Plant("wait off by one", "matmul", "sched", [Put("^    async_wait pending = 1", "    async_wait pending = 2")], PENDING, "async", X),
    Plant("first wait off by one", "matmul", "sched", [Put("^  async_wait pending = 1", "  async_wait pending = 2")], PENDING, "async", X),
    Plant("missing barrier", "matmul", "sched", [Cut("^    barrier")], UNSEEN, RACE, X),
    Plant("missing first barrier", "matmul", "sched", [Cut("^  barrier")], UNSEEN, RACE, X),
    Plant("barrier before the wait", "matmul", "sched", [Put(r"^(    async_wait.*)\n(    barrier.*)", r"\2\n\1")], UNSEEN, RACE, X),
    Plant("missing commit", "matmul", "sched", [Cut("^    async_commit")], PENDING, "async", X),
    Plant("missing first commit", "matmul", "sched", [Cut("^  async_commit")], PENDING, "async", X),
    Plant("copy into the buffer in use", "matmul", "sched", [Put(r"(      %\d+ = shared_index %\d+_[xy], )%\d+_put", r"\1%GET", -1)], IN_USE, RACE, (X, Y)),
    Plant("read of another slot", "matmul", "sched", [Put(r"^(    %\d+ = shared_index %\d+_y, )%\d+_get", r"\1%PUT")], NEVER, "uninit", Y),
    Plant("slot that does not advance", "matmul", "sched", [Put(r"^(    %\d+ = select %\d+, )%\d+(, %\d+_get)", r"\1%GET\2")], IN_USE, RACE, (X, Y)),
    Plant("copy without its mask", "matmul", "sched", [Put(r"^(      async_copy %\d+, %\d+_ap), %\d+", r"\1")], "outside every buffer", "bounds", X),
    Plant("layout of a slice", "matmul", "sched", [Put(r"^(    %\d+ = shared_slice %\d+ offsets = \[0, 16\] : shared<f16\[64, 16, )#\d+", r"\1#OTHER")],
          "compile", "compile", X),
    Plant("other swizzle when read", "matmul", "sched",
          [Put(r"^(    )(%\d+)( = shared_index %\d+_x, %\d+_get : shared<f16\[64, 32, )#\d+(\]>)(.*)$",
               r"\1%cast0\3#SAME\4\5\n\1\2 = shared_cast %cast0 : shared<f16[64, 32, #OTHER]>\5"),
           Put(r"^(    %\d+ = shared_slice %\d+ offsets = \[0, 16\] : shared<f16\[64, 16, )#SAME", r"\1#OTHER")], "differs", "differs", None),
    # Attention: two loops that use the same shared memory one after the other, then scratch for the result.
    Plant("missing wait", "attention", "sched", [Cut("^    async_wait pending = 0")], PENDING, "async", KT),
    Plant("wait off by one", "attention", "sched", [Put("^    async_wait pending = 0", "    async_wait pending = 1")], PENDING, "async", KT),
    Plant("missing barrier", "attention", "sched", [Cut("^    barrier")], UNSEEN, RACE, KT),
    Plant("missing barrier between the loops", "attention", "sched", [Cut("^(    |  )barrier", 1)], IN_USE, RACE, KT),
    Plant("scratch without a barrier", "attention", "sched", [Cut("^  barrier", -1)], IN_USE, RACE, ("store(o + head",) + KT + V),
    Plant("missing commit", "attention", "sched", [Cut("^    async_commit")], PENDING, "async", KT),
    Plant("copy of v without its mask", "attention", "sched", [Put(r"^( +async_copy %\d+, %\d+), %\d+", r"\1", -1)], "outside every buffer", "bounds", KT),
    # The explicit level: the same in the .tile text.
    Plant("missing wait", "add", "tile", [Cut(r"async_wait\(BUFFERS - 2\)")], PENDING, "async", "let sum ="),
    Plant("wait off by one", "add", "tile", [Put(r"async_wait\(BUFFERS - 2\)", "async_wait(BUFFERS - 1)")], PENDING, "async", "let sum ="),
    Plant("missing commit", "add", "tile", [Cut(r"^    async_commit", -1)], PENDING, "async", "let sum ="),
    Plant("buffer reused one turn early", "add", "tile", [Put(r"s\.next % count\(s\.to\)", "(s.next + count(s.to) - 1) % count(s.to)")], PENDING, "async", "let sum ="),
    Plant("read of the next slot", "add", "tile", [Put(r"x\.to\[i % BUFFERS\]", "x.to[(i + 1) % BUFFERS]")], PENDING, "async", "let sum ="),
    Plant("slot past the row", "add", "tile", [Put(r"y\.to\[i % BUFFERS\]", "y.to[i]")], "index 3 of 3", "bounds", "let sum ="),
    # The same with products of warpgroups.
    Plant("missing fence", "products", "sched", [Cut("^    fence")], UNFENCED, "async", KT),
    Plant("missing barrier", "products", "sched", [Cut("^    barrier")], UNSEEN, RACE, KT),
    Plant("missing wait", "products", "sched", [Cut("^    async_wait pending = 0")], PENDING, "async", KT),
    Plant("barrier before the fence", "products", "sched", [Put(r"^(    fence.*)\n(    barrier.*)", r"\2\n\1")], UNFENCED, "async", KT),
    Plant("scores used under way", "products", "sched", [Put(r"^(    %\d+\w*) = wgmma_wait (%\d+\w*) pending = 0", r"\1 = wgmma_wait \2 pending = 1")], "may be under way", "async", KT + ("let most = max(",)),
    Plant("copy without its mask", "add", "tile", [Put(r", mask=inside\);\n  var", ");\n  var")], "outside every buffer", "bounds", "async_copy(s.to"),
    Plant("missing barrier after the wait", "turns", "sched", [Cut("^    barrier")], UNSEEN, RACE, "acc = dot(shared_load(sa), "),
    Plant("missing barrier before the copies", "turns", "sched", [Cut("^    barrier", -1)], IN_USE, RACE, ("async_copy(sa, x.p", "acc = dot(shared_load(sa), ")),
    Plant("missing barrier", "by hand", "sched", [Cut("^    barrier")], UNSEEN, RACE, ("acc = dot(shared_load(sa[slot])", "async_copy(p.s")),
    Plant("wait off by one", "by hand", "tile", [Put(r"async_wait\(STAGES - 2\)", "async_wait(STAGES - 1)")], PENDING, "async", "acc = dot(shared_load(sa[slot])"),
    Plant("missing commit", "by hand", "tile", [Cut(r"^  async_commit\(\);")], "compile", "compile", "async_wait(STAGES - 2)"),
    Plant("slot one ahead", "by hand", "tile", [Put(r"var slot = 0;", "var slot = 1;")], PENDING, "async", "acc = dot(shared_load(sa[slot])"),
    Plant("row of one buffer less", "by hand", "tile", [Put(r"following\(p\.slot, count\(p\.sa\)\)", "following(p.slot, count(p.sa) - 1)")],
          PENDING, "async", "acc = dot(shared_load(sa[slot])"),
    Plant("copy without its mask", "by hand", "tile", [Put(r", mask=p\.x\.inside & left\[None, :\]", "")], "outside every buffer", "bounds", "async_copy(p.sa["),
    # Global memory: what the simulator's threads do then comes to something else.
    Plant("missing barrier behind a store", "straight", "sched", [Cut("^  barrier", 0)], STORED, RACE, ("store(x + i, i * 3)", "store(y + i, load(x + (127 - i)))")),
    Plant("missing barrier in front of a store", "straight", "sched", [Cut("^  barrier", 1)], LOADED, RACE, ("let v = load(a +", "store(a + i, v)")),
    Plant("missing barrier between stores", "straight", "sched", [Cut("^  barrier", 2)], TWICE, RACE, ("store(b + i, i)", "store(b + (127 - i), -i)")),
    Plant("missing barrier before a store of all", "straight", "sched", [Cut("^  barrier", 5)], LOADED, RACE, "store(s + (127 - i)"),
    Plant("missing barrier of an iteration", "loops", "sched", [Cut("^    barrier", 0)], STORED, RACE, "for k in range(n) { store(x + "),
    Plant("missing barrier before an iteration's store", "loops", "sched", [Cut("^    barrier", 2)], LOADED, RACE, "for k in range(n) { store(y + "),
    Plant("missing barrier of the inner loop", "loops", "sched", [Cut("^      barrier", 0)], STORED, RACE, "for k in range(2) { store(u + "),
    Plant("missing barrier behind a pipelined loop", "sweeps", "sched", [Cut("^  barrier", 0)], STORED, RACE, ("for k in range(n, stages=3) { store(x + (k * 512 + (511 - i)), load(x", "store(x + i, load(x + ((n - 1)")),
]


class Wrong(Exception):
    pass


def edit(text, e):
    if isinstance(e, Cut):
        lines = text.split("\n")
        hits = [i for i, line in enumerate(lines) if re.search(e.pattern, line)]
        if not hits:
            raise Wrong(f"nothing matches {e.pattern}")
        at = hits[e.at]
        return "\n".join(lines[:at] + [""] + lines[at + 1:])       # an empty line: the others keep their numbers
    hits = list(re.finditer(e.pattern, text, re.M))
    if not hits:
        raise Wrong(f"nothing matches {e.pattern}")
    for m in reversed(hits if e.at < 0 else [hits[e.at]]):
        text = text[:m.start()] + m.expand(e.text) + text[m.end():]
    return text


def names(text):
    """What stands for %GET, %PUT, #SAME and #OTHER in an edit: values of the main loop, and layouts of buffers."""
    put, get = re.search(r"(%\d+_put): i32", text), re.search(r"(%\d+_get): i32", text)
    x = re.search(r"shared_alloc .*shared<\d+ x f16\[\d+, \d+, (#\d+)\]>", text)
    table = {"%GET": get and get.group(1), "%PUT": put and put.group(1), "#SAME": x and x.group(1)}
    return {k: v for k, v in table.items() if v}


def plant(text, p):
    table = names(text)
    for e in p.edits:
        text = edit(text, e._replace(**{"text": fill(e.text, table), "pattern": fill(e.pattern, table)}) if isinstance(e, Put) else e)
    if "#OTHER" in text:                                            # the same rows without the exchange
        extents = re.search(re.escape(table["#SAME"]) + r" = shared<(\d+)x(\d+)", text)
        rows, cols = int(extents.group(1)), int(extents.group(2))
        offsets = [f"(0,{1 << b})" for b in range(cols.bit_length() - 1)] + [f"({1 << b},0)" for b in range(rows.bit_length() - 1)]
        text = re.sub(r"^(module sched[^\n]*\n(?:#.*\n)*)", rf"\1#99 = shared<{rows}x{cols}; off {' '.join(offsets)}>\n", text, count=1, flags=re.M).replace("#OTHER", "#99")
    return text


def fill(text, table):
    for k, v in table.items():
        text = text.replace(k, v)
    return text


class Run:
    def __init__(self, build, folder):
        self.build, self.folder, self.sources = build, folder, {}

    def tool(self, *command):
        r = subprocess.run(command, capture_output=True, text=True, cwd=root)
        return r.returncode, r.stdout + r.stderr

    def check(self, path, *options):
        """Findings of one file: (way, kind, place, text)."""
        rc, out = self.tool(os.path.join(self.build, "tests", "check_kernel"), *options, "--way=sm_90a", path)
        if rc not in (0, 1):
            raise Wrong(f"check_kernel ended with {rc}: {out[-400:]}")
        found = []
        for line in out.split("\n"):
            m = re.match(re.escape(path) + r": ([^:]*(?::\d)?[^:]*): (\w+): (?:([^\s:]+\.tile):(\d+):(?:\d+:)? )?(.*)", line)
            if m:
                found.append((m.group(1), m.group(2), (os.path.basename(m.group(3)), int(m.group(4))) if m.group(3) else None, m.group(5)))
            elif "compile" in [f[1] for f in found[-1:]] and (m := re.match(r".*?([^\s:]+\.tile):(\d+):", line)):
                found[-1] = found[-1][:2] + ((os.path.basename(m.group(1)), int(m.group(2))),) + found[-1][3:]
        return found

    def source(self, program, level):
        """The right program's text with its comments; checked once to be silent, and what it gives kept."""
        if (program, level) in self.sources:
            return self.sources[program, level]
        file, kernel, comments = PROGRAMS[program]
        words = [" ".join(w.split()) for w in comments.split(",")]
        path = os.path.join(root, "examples", file)
        head = "".join(f"// {w}\n" for w in words)
        if level == "sched":
            options = {"define": "-D{1}={2}", "equal": "--assume={1}={2}", "divisible": "--assume={1}%{2}"}
            flags = [options[w.split()[0]].format(*w.split()) for w in words if w.split()[0] in options]
            rc, text = self.tool(os.path.join(self.build, "bin", "tilec"), os.path.relpath(path, root), "--kernel=" + kernel, "--emit=sched", "--locs", "--tensors=stated",
                                 "--target=" + SCHEDULED.get(program, "sm_80"), *flags)
            if rc:
                raise Wrong(text)
            body = "// barriers\n" + head + text
        else:
            text = open(path).read()
            others = [m.start() for m in re.finditer(r"^kernel (\w+)", text, re.M) if m.group(1) != kernel] + [len(text)]
            body = head.replace("\n", " \n") and text + "\n" + head
            body = drop_kernels(body, kernel)
        name = os.path.join(self.folder, f"{program.replace(' ', '_')}.{'tir' if level == 'sched' else 'tile'}")
        want = os.path.join(self.folder, f"{program}.{level}.want")
        os.makedirs(want, exist_ok=True)
        open(name, "w").write(body)
        if found := self.check(name, "--save=" + want):
            raise Wrong(f"the program as it was is not silent: {found[0]}")
        self.sources[program, level] = body, path, want
        return body, path, want


def drop_kernels(text, keep):
    """Other kernels become empty lines, so that line numbers stay."""
    def blank(m):
        return m.group(0) if m.group(1) == keep else "\n" * m.group(0).count("\n")
    return re.sub(r"^kernel (\w+)\(.*?^}$", blank, text, flags=re.M | re.S)


def line_of(path, text):
    texts = (text,) if isinstance(text, str) else text
    lines = list(enumerate(open(path), 1))
    for t in texts:
        if not any(t in line for _, line in lines):
            raise Wrong(f"no line of {path} has '{t}'")
    return [i for i, line in lines if any(t in line for t in texts)]


def expect(found, who, want, lines):
    """The first finding of the interpreter (`read`) or of the simulator."""
    mine = [f for f in found if (f[0] == "read") == (who == "interpreter")]
    if not mine:
        raise Wrong(f"the {who} says nothing")
    way, kind, place, text = mine[0]
    said = f"the {who} says: {kind}: {place}: {text}"
    if kind not in want.split("|") and want not in text:
        raise Wrong(f"{said}; expected {want}")
    if lines and kind != "differs" and (not place or place[1] not in lines):
        raise Wrong(f"{said}; expected line {lines}")


def run_plant(run, p):
    body, path, want = run.source(p.program, p.level)
    name = os.path.join(run.folder, f"{p.program} {p.name}.{'tir' if p.level == 'sched' else 'tile'}".replace(" ", "_"))
    open(name, "w").write(plant(body, p))
    found = run.check(name, "--against=" + want)
    lines = p.line and line_of(os.path.join(root, "examples", PROGRAMS[p.program][0]), p.line)
    expect(found, "interpreter", p.interp, lines)
    expect(found, "simulator", p.sim, lines)


def run_by_hand(run, path):
    interp, sim, lines = None, None, []
    for i, line in enumerate(open(path), 1):
        if m := re.search(r"// fault: (.*); (.*)$", line):
            interp, sim, lines = m.group(1), m.group(2), [i]
    if not lines:
        raise Wrong("no line is marked")
    found = run.check(path, "--against=" + run.folder)
    expect(found, "interpreter", interp, lines)
    expect(found, "simulator", sim, lines)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("build")
    a.add_argument("--filter", default="")
    a.add_argument("--verbose", action="store_true")
    a = a.parse_args()
    by_hand = sorted(f for f in os.listdir(here) if f.endswith(".tile"))
    jobs = [(f"{p.program} ({p.level}): {p.name}", run_plant, p) for p in PLANTS] + [(f, run_by_hand, os.path.join(here, f)) for f in by_hand]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        run = Run(os.path.abspath(a.build), folder)
        for label, fn, arg in (j for j in jobs if a.filter in j[0]):
            try:
                fn(run, arg)
                if a.verbose:
                    print(f"ok     {label}")
            except Wrong as e:
                failed += 1
                print(f"FAILED {label}: {e}", flush=True)
    print(f"{len(jobs) - failed} of {len(jobs)} planted faults reported")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
