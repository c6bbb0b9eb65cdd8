"""Random kernels, run in every way there is. campaign.py BUILD [--seeds A..B] [--seconds N] [--out DIR] [--device cuda|sim] ...

Each seed's kernel (gen_kernel.py) goes through tests/diff/check_kernel: the reference interpreter on it as it was read and after
every pass, and the simulator for several targets, levels and shortened pipelines. All must agree, and none may report a
fault; ptxas, where there is one, must take the PTX of every PTXAS-th seed. A kernel that fails is shrunk (shrink.py), and
lands in the output folder as SEED.tile with a comment that says what failed and how to run it.

--device runs what check_kernel says is right through the JIT on a device instead: `inputs`, `run_device` and `compare` are
of use alone."""
import argparse, os, re, shutil, subprocess, sys, tempfile, time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [here, os.path.join(root, "tools")]
import gen_kernel
import shrink

# One set of ways a seed, in turn: every way is seen often, and a seed costs little.
WAYS = [
    ["sm_90a", "sm_80:0"],
    ["sm_90a:1:canon,cse,licm", "sm_80"],
    ["sm_80:1:fold_convert,dce", "sm_89:0:licm"],
    ["sm_89", "sm_90a:1:pipeline_loops"],
    ["sm_120a", "sm_80"],
    ["sm_100a:0", "sm_90a:1:licm,dce"],
    ["sm_80:0:prefetch_slices,keep_in_shared", "sm_90a:1:cse,dce"],
]
PTXAS = 10
# Rightly refused: constants that overflow before the kernel runs, too little shared memory, tiles that are too large.
REFUSED = ("compile-time", "does not fit in", "E0601", "E0304", "at most 1048576 elements", "at most 5 dimensions")
LIMIT = 60         # seconds for one kernel
FORMATS = {"f32": "<f4", "f64": "<f8", "i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8", "i1": "?",
           "f16": "<f2", "bf16": "<u2", "f8e4m3": "u1", "f8e5m2": "u1"}
LARGEST = {"f32": 0x7f800000, "f64": 0x7ff << 52, "f16": 0x7c00, "bf16": 0x7f80, "f8e4m3": 0x7e, "f8e5m2": 0x7c}    # magnitudes above are nans


class Campaign:
    def __init__(self, build, folder, ptxas):
        self.build, self.folder, self.ptxas = os.path.abspath(build), folder, ptxas
        self.tool = os.path.join(self.build, "tests", "check_kernel")

    def command(self, path, ways, *more):
        return [self.tool, "--passes", *more, *(f"--way={w}" for w in ways), path]

    def check(self, text, ways, *more):
        """What is wrong with a kernel: [(way, kind, message)], none if nothing is."""
        path = os.path.join(self.folder, "kernel.tile")
        with open(path, "w") as f:
            f.write(text)
        try:
            r = subprocess.run(self.command(path, ways, *more), capture_output=True, text=True, timeout=LIMIT, cwd=self.folder)
        except subprocess.TimeoutExpired:
            return [("?", "time", f"more than {LIMIT} s")]
        found = [(m.group(1), m.group(2), m.group(3)) for m in re.finditer(r"^.*?kernel\.tile: (\S+?(?: \S+)*?): (\w+): (.*)$", r.stdout, re.M)]
        if r.returncode not in (0, 1) or (r.returncode and not found):
            text = (r.stdout + r.stderr).strip().split("\n")
            note = next((t for t in text if "runtime error" in t or "ERROR" in t), text[-1])
            found.append(("?", "crash", f"status {r.returncode}: {note[:300]}"))
        return found

    def assemble(self, ways):
        for w in ways:
            name = w if w.count(":") else w + ":1"
            ptx = os.path.join(self.folder, name + ".ptx")
            target = w.split(":")[0]
            r = subprocess.run([self.ptxas, "-arch=" + target, "-o", os.devnull, ptx], capture_output=True, text=True)
            if r.returncode:
                return [(w, "ptxas", r.stderr.strip()[:300])]
        return []

    def seed(self, n):
        """(kernel, ways, findings) of a seed."""
        kernel = gen_kernel.generate(n)
        ways = WAYS[n % len(WAYS)]
        with_ptxas = self.ptxas and n % PTXAS == 0
        found = self.check(kernel.text(), ways, *(["--save=" + self.folder] if with_ptxas else []))
        if found and found[0][1] == "compile" and any(w in found[0][2] for w in REFUSED):
            return kernel, ways, None
        if not found and with_ptxas:
            found = self.assemble(ways)
        return kernel, ways, found

    def shrink(self, kernel, ways, found):
        sign = signature(found[0])
        mine = [w for w in ways if found[0][0].startswith(w)] or ways
        if found[0][1] in ("ptxas", "time"):
            return kernel, mine
        fails = lambda k: any(signature(f) == sign for f in self.check(k.text(), mine))
        return (shrink.shrink(kernel, fails) if fails(kernel) else kernel), mine


def signature(finding):
    """What must stay the same while a kernel shrinks: the step, the kind, and the message without its numbers."""
    way, kind, text = finding
    step = way.split(" ", 1)[-1]
    words = re.sub(r"[^ ]*\.tile:[0-9:]*|0x[0-9a-f]+|[0-9]+|'[^']*'", "#", text)
    return (step, kind, "" if kind == "differs" else words[:60])


# ---- a device ----
def inputs(campaign, kernel):
    """[(dtype or None for a scalar, bytes or value before, bytes after)], the parameters; check_kernel says what is right."""
    if found := campaign.check(kernel.text(), ["sm_90a:0"], "--no-sim", "--save=" + campaign.folder):
        raise RuntimeError(f"{found[0]}")
    read = lambda what, i: open(os.path.join(campaign.folder, f"{what}.{i}"), "rb").read()
    return [(None, p.value, None) if p.value is not None else (p.dt, read("in", i), read("want", i)) for i, p in enumerate(kernel.params)]


def run_device(dev, kernel, params):
    """The bytes of each buffer after a launch; None for scalars."""
    import numpy as np
    arrays = [v if dt is None else dev.array(np.frombuffer(v, np.dtype(FORMATS[dt])).copy(), dt) for dt, v, _ in params]
    dev.program(text=kernel.text(ptx=True), name="kernel.tile").kernel("k")(kernel.grid, *arrays)
    return [None if dt is None else a.numpy().tobytes() for a, (dt, _, _) in zip(arrays, params)]


def without_nans(dt, data):
    """The bits of numbers, nans all alike: which nan comes out is nowhere promised."""
    import numpy as np
    if dt not in LARGEST:
        return data
    bits = np.frombuffer(data, f"<u{np.dtype(FORMATS[dt]).itemsize}").copy()
    sign = bits.dtype.type(1 << 8 * bits.itemsize - 1)
    bits[bits & ~sign > LARGEST[dt]] = ~sign
    return bits.tobytes()


def compare(kernel, params, got):
    for p, (dt, _, want), g in zip(kernel.params, params, got):
        if dt and without_nans(dt, g) != without_nans(dt, want):
            return [("device", "differs", f"parameter {p.name}")]
    return []


def seed_on_device(campaign, dev, n):
    kernel = gen_kernel.generate(n)
    try:
        params = inputs(campaign, kernel)
        return kernel, [], compare(kernel, params, run_device(dev, kernel, params))
    except Exception as e:
        if any(w in str(e) for w in REFUSED):
            return kernel, [], None
        return kernel, [], [("device", "fault", f"{type(e).__name__}: {e}")]


# ---- the run ----
def keep(out, n, kernel, ways, found, small):
    os.makedirs(out, exist_ok=True)
    head = f"// {' '.join(found[0])}\n// check_kernel --passes {' '.join('--way=' + w for w in ways)} {n}.tile\n"
    with open(os.path.join(out, f"{n}.tile"), "w") as f:
        f.write(head + small.text())
    with open(os.path.join(out, f"{n}.whole.tile"), "w") as f:
        f.write(head + kernel.text())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("--seeds", default="0..60", help="A..B, B left out")
    a.add_argument("--seconds", type=float, default=0, help="stop after as long")
    a.add_argument("--out", default="fuzz-findings")
    a.add_argument("--device", help="compare this device instead")
    a.add_argument("--no-shrink", action="store_true")
    a.add_argument("--stop", type=int, default=20, help="findings after which to stop")
    a = a.parse_args()
    first, last = map(int, a.seeds.split(".."))
    start, failed, ran, refused, dev = time.time(), 0, 0, 0, None
    if a.device:
        import tilec
        dev = tilec.Device(a.device)
    with tempfile.TemporaryDirectory() as folder:
        c = Campaign(a.build, folder, shutil.which("ptxas"))
        for n in range(first, last):
            if failed >= a.stop or a.seconds and time.time() - start > a.seconds:
                break
            kernel, ways, found = seed_on_device(c, dev, n) if dev else c.seed(n)
            ran += 1
            refused += found is None
            if not found:
                continue
            failed += 1
            small = kernel
            if not a.no_shrink and not dev:
                small, ways = c.shrink(kernel, ways, found)
            keep(a.out, n, kernel, ways, found, small)
            print(f"seed {n}: {': '.join(found[0])[:300]}", flush=True)
    print(f"{ran} kernels in {time.time() - start:.0f} s, {refused} refused, {failed} failed" + (f"; see {a.out}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
