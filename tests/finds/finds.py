"""finds.py BUILD [NAME...]: programs that went wrong once, or were refused, each by its row: what it gives on the simulator, what is
said of it, or what it takes to compile. A file without a row fails, as does a row without its file. README.md says what was wrong."""
import glob, os, re, subprocess, sys, tempfile, time
import numpy as np

build, here = os.path.abspath(sys.argv[1]), os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(9)
environment = dict(os.environ, TILEC_CACHE="0")
failed, seen = [], set()


def wanted(name):
    seen.add(name)
    return len(sys.argv) < 3 or name in sys.argv[2:]


def command(*words):
    return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)


def fail(name, text):
    failed.append(name)
    print(f"{name}: {text}")


def start(name, kernel, grid, arguments, options, folder):
    words = []
    for a, v in arguments.items():
        if isinstance(v, np.ndarray):
            np.save(f"{folder}/{a}.npy", v)
            v = f"@{folder}/{a}.npy" if v.dtype != np.uint8 else f"{options['bytes'][a]}@{folder}/{a}.npy"
        words.append(f"{a}={v}")
    return command(f"{build}/bin/tilerun", f"{here}/{name}.tile", kernel, f"--grid={grid}", "--device=sim",
                   *options.get("options", []), *words)


def gives(name, kernel, arguments, results, grid=1, near=0.0, **options):
    """A launch, and the arrays it leaves."""
    if not wanted(name):
        return
    with tempfile.TemporaryDirectory() as folder:
        options["options"] = [w for a in results for w in ("--save", f"{a}={folder}/{a}.out.npy")] + options.get("options", [])
        p = start(name, kernel, grid, arguments, options, folder)
        if p.returncode:
            return fail(name, f"{kernel}: status {p.returncode}: {(p.stdout + p.stderr)[:400]}")
        for a, want in results.items():
            got, want = np.load(f"{folder}/{a}.out.npy"), np.asarray(want)
            if got.shape != want.shape or not np.allclose(got, want, rtol=near, atol=near, equal_nan=True):
                fail(name, f"{kernel}: {a} is {got.ravel()[:8]}, expected {want.ravel()[:8]}")


def faults(name, kernel, arguments, text, grid=1, **options):
    """A launch that the simulator ends, and what it says."""
    if not wanted(name):
        return
    with tempfile.TemporaryDirectory() as folder:
        p = start(name, kernel, grid, arguments, options, folder)
    if p.returncode != 1 or text not in p.stdout + p.stderr:
        fail(name, f"{kernel}: status {p.returncode}, expected 1 and '{text}': {(p.stdout + p.stderr)[:400]}")


def refused(name, error, text):
    if wanted(name):
        p = command(f"{build}/bin/tilec", f"{here}/{name}.tile", "-o", os.devnull)
        if p.returncode != 1 or f"error[{error}]" not in p.stderr or text not in p.stderr:
            fail(name, f"status {p.returncode}, expected {error} and '{text}': {p.stderr[:400]}")


def compiles(name, targets, most, *options):
    """For each target, to at most so many bytes of PTX: what it takes to compile follows them, and they are the same on every machine."""
    for target in targets if wanted(name) else []:
        begin = time.monotonic()
        p = command(f"{build}/bin/tilec", f"--target={target}", f"{here}/{name}.tile", *options)
        if p.returncode or len(p.stdout) > most:
            fail(name, f"{target}: status {p.returncode}, {len(p.stdout)} bytes (at most {most}): {p.stderr[:400]}")
        print(f"{name} {target}: {len(p.stdout)} bytes, {time.monotonic() - begin:.1f} s")


f4, i4 = np.float32, np.int32
ramp = np.arange(128, dtype=i4)
ints = lambda n: np.zeros(n, i4)
floats = lambda n: np.zeros(n, f4)

# What the manual says, and was otherwise.
gives("global_order", "k", dict(x=ints(128), y=ints(128)), dict(y=3 * ramp[::-1]))
gives("global_order", "viaatomic", dict(x=ints(128), y=ints(128)), dict(y=3 * ramp[::-1]))
gives("global_order", "war", dict(x=ramp, y=ints(128)), dict(x=ramp[::-1]))
gives("global_order", "loop", dict(x=ramp, y=ints(128), n=3), dict(x=ramp[::-1] + 3))
gives("cdiv_overflow", "k", dict(out=np.zeros(2, np.int64), n=2147483647, u=4294967295), dict(out=[2097152, 4194304]))
gives("range_wraps", "signed", dict(out=ints(1), hi=2147483647), dict(out=[2]))
gives("range_wraps", "unsigned", dict(out=ints(1)), dict(out=[3]))
gives("range_wraps", "leaves", dict(out=ints(1), hi=2147483647), dict(out=[2]))
x = rng.normal(size=20).astype(f4)
gives("optional_pointer", "optional_pointer", dict(x=x, bias=x, y=floats(20), n=20), dict(y=x + x))
gives("optional_pointer", "optional_pointer", dict(x=x, bias="null", y=floats(20), n=20), dict(y=x))
refused("silent_max", "E0240", "max(x, 0) could mean axis 0 or the number 0")
refused("note_multiple_of_idiom", "E0242", "they are not multiples of 64")

# What the simulator has to see.
one, many = np.ones(256, f4), np.ones(1024, f4)
faults("race", "k", dict(x=np.arange(256, dtype=f4), y=floats(256), n=256), "race.tile:3: race: thread")
faults("crossrace", "dotp", dict(x=many, y=floats(1), n=1024), "nothing orders the two programs", grid=4)
faults("xprog", "hist", dict(x=np.arange(1024, dtype=i4) % 256, y=ints(256), n=1024), "nothing orders the two programs", grid=4)
faults("uninit", "k", dict(x=one, y="empty:f32:256", n=256), "y[")
faults("nomask", "k", dict(x=np.ones(200, f4), y=floats(256), n=200), "x[200..203] of 200 f32: mask missing?")
a = rng.normal(size=200).astype(f4)
want = a.copy()
for s in range(4):
    edge = np.concatenate([[0], want, [0]]).astype(f4)
    want = (f4(0.25) * edge[:-2] + f4(0.5) * want + f4(0.25) * edge[2:]).astype(f4)
gives("sim_grid_barrier_hangs", "grid_barrier", dict(a=a, b=floats(200), counter=ints(1), n=200, steps=4), dict(a=want), grid=4, near=1e-6,
      options=["--threads=1"])

# What was refused.
x = rng.normal(size=50).astype(f4)
s, want = f4(0), floats(50)
for i in range(49, -1, -1):
    s = want[i] = s * f4(0.5) + x[i]
gives("backward_range", "backward_range", dict(x=x, y=floats(50), n=50), dict(y=want), near=1e-6)
x = rng.normal(size=(3, 40))
e = np.exp(x - x.max(1, keepdims=True))
gives("f64_softmax", "f64_softmax", dict(x=x, y=np.zeros((3, 40)), n=40), dict(y=e / e.sum(1, keepdims=True)), grid=3, near=1e-15)
v = np.array([-0.75, -0.5, 0.25, 0.5] * 8, f4)
inverse = {-0.75: -0.8134198476, -0.5: -0.4769362762, 0.25: 0.2253120550, 0.5: 0.4769362762}     # of erf
gamma = {0.75: -0.0844011210, 0.5: -0.1207822376, 0.25: -0.0982718364}      # lgamma of 1 + x
gives("libdevice_rest", "libdevice_rest", dict(x=v, y=floats(32)),
      dict(y=[inverse[float(t)] + gamma[abs(float(t))] + float(t) for t in v]), near=1e-5)
codes = rng.integers(0, 2, size=(16, 32)).astype(np.uint8)      # e4m3: 0x38 is 1, e5m2: 0x3c is 1
other = rng.integers(0, 2, size=(32, 24)).astype(np.uint8)
gives("mixed_fp8_dot", "mixed_fp8_dot", dict(a=codes * np.uint8(0x38), b=other * np.uint8(0x3c), c=np.zeros((16, 24), f4)),
      dict(c=codes.astype(f4) @ other.astype(f4)), bytes=dict(a="f8e4m3", b="f8e5m2"))
x = np.abs(rng.normal(size=(6, 32))).astype(f4)
x[4] *= -1
gives("pipelined_exit", "pipelined_exit", dict(x=x, y=floats(32), n=6), dict(y=x[:4].sum(0)), near=1e-6)
x = rng.normal(size=32).astype(f4)
gives("text_parameter", "text_parameter", dict(x=x, y=floats(32)), dict(y=x))
gives("text_parameter", "text_parameter", dict(x=x, y=floats(32), ACTIVATION="relu"), dict(y=np.maximum(x, 0)))
x = rng.normal(size=(5, 20)).astype(f4)
gives("tuple_argument", "tuple_argument",
      {"x": x, "y": np.zeros((20, 5), f4), "shape.0": 20, "shape.1": 5, "strides.0": 1, "strides.1": 20}, dict(y=x.T))
x = rng.normal(size=30).astype(f4)
window = np.concatenate([floats(3), x])
gives("window_tuple", "window_tuple", dict(x=x, y=floats(30), n=30),
      dict(y=sum(window[k:k + 30] * f4(k + 1) for k in range(4))), near=1e-5)

# What did not fit, or took long.
a, b = rng.integers(-3, 4, size=(100, 257)).astype(np.float16), rng.integers(-3, 4, size=(257, 3)).astype(np.float16)
gives("dot_k257_padded", "one", dict(a=a, b=b, c=np.zeros((100, 3), f4)), dict(c=a.astype(f4) @ b.astype(f4)))
compiles("dot_k257_padded", ["sm_89", "sm_120a"], 60000)
compiles("convert_wide", ["sm_89", "sm_90a"], 100000)
compiles("gemm_epilogue_wide", ["sm_90a"], 120000)
compiles("argsort_compile", ["sm_90a"], 230000)
compiles("copy_1024x1024_compile", ["sm_90a"], 330000)
compiles("unrolled_maths_compile", ["sm_90a"], 950000)
compiles("sort_16x4096_one_warp", ["sm_90a"], 700000, "-DW=16", "-DR=8", "-DN=2048")

for path in sorted(glob.glob(here + "/*.tile")):
    if os.path.basename(path)[:-5] not in seen:
        fail(os.path.basename(path), "has no row")
page = open(here + "/README.md").read()
listed = set(re.findall(r"(\w+)\.tile(?=[, ])(?=[^|\n]*\|[^|\n]*\|[^|\n]*\|$)", page, re.M))
if listed != seen:
    fail("README.md", f"lists other programs than the rows: {sorted(listed ^ seen)}")
for test in re.findall(r"tests/[\w/]+(?:\.\w+)?", page):
    if not os.path.exists(os.path.join(here, "../..", test)):
        fail("README.md", f"{test} is not there")
print(f"{len(seen)} programs, {len(set(failed))} failed")
sys.exit(bool(failed))
