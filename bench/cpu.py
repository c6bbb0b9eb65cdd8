"""Speed on a machine without a GPU: scripts/python bench/cpu.py [--bin DIR] [--out FILE] [--rounds N]

Processes: whole `tilec` from start to PTX beside llvm_only, which gives LLVM the same kernel as IR text and does nothing
else. Compiles: time inside a warm process. Simulator: what a launch takes on all cores. Medians; results checked. Figures go to a run
file (bench/data.py), $OUT/cpu.jsonl, which `scripts/bench keep` adds to the repository.
"""
import argparse, os, subprocess, sys, tempfile, time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("--bin", default=os.path.join(root, "build", "bin"))
a.add_argument("--out", default=os.path.join(os.environ.get("OUT", "."), "cpu.jsonl"))
a.add_argument("--rounds", type=int, default=40, help="of processes; compiles take a sixth of them")
a = a.parse_args()
os.environ.setdefault("TILEC_CACHE", "0")
os.environ.setdefault("TILEC_LIB", os.path.join(os.path.dirname(os.path.abspath(a.bin)), "lib", "libtilec.so"))
sys.path[:0] = [os.path.join(root, "tools"), os.path.join(root, "examples"), os.path.join(root, "bench")]
import numpy as np
import cases
import data
import tilec

dev = tilec.Device("sim")
out = data.Writer(a.out, device=f"{os.cpu_count()} CPU cores", driver="", versions={"tilec": tilec.lib.tilec_version().decode(), "python": sys.version.split()[0]}, peers=["llvm_only"], command=sys.argv[1:])
failures, seconds = [], {}
few = max(a.rounds // 6, 1)


def record(section, case, unit, times, peers=(), **extra):
    """times: {side: list of ms, or a side}."""
    row = out.row(section, case, unit, {n: t if isinstance(t, dict) else data.of_times(t) for n, t in times.items()}, peers, better="less", of="host", **extra)
    print(f"  {case:46} " + "  ".join(f"{n} {s['value']:.4g}" for n, s in row["sides"].items()) + f" {unit}" + "".join(f"  {k} {v:.4g}" for k, v in extra.items()), flush=True)


def section(title):
    """What follows is a part of its own; how long the one before took."""
    now = time.perf_counter()
    seconds.update({section.name: round(now - section.begun, 1)} if section.name else {})
    section.name, section.begun = title, now
    if title:
        print(title)


section.name, section.begun = None, 0.0
example = lambda name: os.path.join(root, "examples", name)


def process_ms(*commands, rounds=a.rounds):
    """Wall times of each command in ms, in turns."""
    times = [[] for _ in commands]
    for r in range(rounds + 3):
        for i, cmd in enumerate(commands):
            t = time.perf_counter()
            subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL)
            if r >= 3:
                times[i].append((time.perf_counter() - t) * 1e3)
    return times


section("cpu_process")
with tempfile.TemporaryDirectory() as d:
    for name, kernel in (("vector_add", "add"), ("softmax", "softmax"), ("matmul", "matmul")):
        ll = os.path.join(d, name + ".ll")
        command = [os.path.join(a.bin, "tilec"), example(name + ".tile"), f"--kernel={kernel}"]
        subprocess.run(command + ["--emit=llvm", "-O0", "-o", ll], check=True)
        ours, floor = process_ms(command, [os.path.join(a.bin, "llvm_only"), ll, "sm_90a", "+ptx84"])
        record("cpu_process", name, "ms", {"llvm_only": floor, "tilec": ours}, ["llvm_only"])

section("cpu_compile")
for case in cases.CASES:
    if case.name == "softmax_persistent":
        continue
    size = case.sim[min(1, len(case.sim) - 1)]
    ms = [case.run(dev, np.random.default_rng(1), **size).call.info()["compile_ms"] for _ in range(few + 1)]
    record("cpu_compile", case.name, "ms", {"tilec": ms[1:]})
tuned = dict(BM=128, BN=256, BK=64, STAGES=3, warps=8)
x = dev.empty((256, 256), "f16")
bind = lambda: dev.program(example("matmul.tile")).kernel("matmul", **tuned).bind(2, x, x, x, 256, 256, 256, 256, 1, 256, 1, 256, 1)
ms = [bind().info()["compile_ms"] for _ in range(few + 1)]
facts = [f"--assume={x}" for x in ("a%16", "b%16", "c%16", "M%16", "N%16", "K%16", "sam%16", "sak=1", "sbk%16", "sbn=1", "scm%16", "scn=1")]
table = subprocess.run([os.path.join(a.bin, "tilec"), example("matmul.tile"), "--time-passes", "-o", os.devnull, *facts,
                        *(f"-D{k}={v}" for k, v in tuned.items())], check=True, capture_output=True, text=True).stderr
rows = [(float(l.split()[0]), l.split()[2]) for l in table.splitlines() if len(l.split()) == 3 and l.split()[1] == "ms"]
record("cpu_compile", "matmul, tuned: " + " ".join(f"{k}={v}" for k, v in tuned.items()), "ms", {"tilec": ms[1:]}, passes_of_ours=sum(t for t, _ in rows), slowest_of_them=max(rows)[0])


def nest(kind, depth):
    """Loops or ifs in one another, each with work of its own."""
    head = {"loops": "for i{k} in range(n) {{ a = a * 2.0 + b; b = b - f32(i{k});", "loops with sums": "for i{k} in range(n) {{ a = a * 0.5 + sum(a); b += a;",
            "ifs": "if n > {k} {{ a = a * 2.0 + {k}.0;"}[kind]
    ends = "} else { a -= 1.0; }\n" if kind == "ifs" else "a += 1.0; }\n"
    return ("kernel f(x: *f32, y: *f32, n: i32) { let i = arange(0, 128); var a = load(x + i); var b = a;\n" +
            "\n".join(head.format(k=k) for k in range(depth)) + "\n" + ends * depth + "store(y + i, a + b); }")


BLOCK = """kernel f(x: *T, y: *T, n: i32, type T = f32, const R = 4, const C = 65536) {
  let i = arange(0, R)[:, None] * C + arange(0, C)[None, :];
  let v = load(x + i, mask=(arange(0, C) < n)[None, :], other=-inf);
  BODY
}"""
SOFT, NORM = "store(y + i, softmax(f32(v) * 2.0, axis=1));", "let m = sum(f32(v), axis=1, keep_dims=true) / C; let d = f32(v) - m; store(y + i, d * rsqrt(sum(d * d, axis=1, keep_dims=true) / C));"
LONG = ("kernel f(x: *f32, y: *f32, n: i32) { let i = arange(0, 1024); var a = load(x + i);\n" +
        "\n".join(f"a = a * {k}.5 + f32(n);" for k in range(2000)) + "\nstore(y + i, a); }")
large = [(f"4 x 65536 a program, {what}, {t}, {w} warps", BLOCK.replace("BODY", body), [f"-DT={t}", f"-Dwarps={w}"])
         for what, body in (("softmax", SOFT), ("norm", NORM)) for t in ("f32", "f16") for w in (4, 8, 32)]
large += [(f"40 {kind} in one another", nest(kind, 40), []) for kind in ("loops", "loops with sums", "ifs")] + [("2000 statements", LONG, [])]
section("cpu_large")
with tempfile.TemporaryDirectory() as d:
    for name, text, options in large:
        with open(os.path.join(d, "f.tile"), "w") as f:
            f.write(text)
        command, ms = [os.path.join(a.bin, "tilec"), f.name, "-o", os.devnull, *options], []
        for _ in range(max(few // 2, 1)):
            t = time.perf_counter()
            subprocess.run(command, check=True)
            ms.append((time.perf_counter() - t) * 1e3)
        # a process of its own between: a child begins with the size of what it was forked from
        size = subprocess.run(["/usr/bin/time", "-f", "%M", *command], capture_output=True, text=True).stderr if os.path.exists("/usr/bin/time") else ""
        record("cpu_large", name, "ms", {"tilec": ms}, **({"MB": int(size.split()[-1]) / 1024} if size else {}))

section("cpu_simulator")
for name, run, size in (("vector_add 98432", cases.vector_add, dict(n=98432)), ("softmax 1823 x 781", cases.softmax, dict(rows=1823, n=781)),
                        ("layer_norm 8192 x 1024", cases.layer_norm, dict(rows=8192, n=1024)), ("matmul f16 512^3", cases.matmul, dict(m=512, n=512, k=512)),
                        ("transpose 1280 x 1280", cases.transpose, dict(m=1280, n=1280))):
    r, ms = run(dev, np.random.default_rng(1), **size), []
    for _ in range(few):
        dev.stats(reset=True)
        t = time.perf_counter()
        r.call()
        ms.append((time.perf_counter() - t) * 1e3)
    s = dev.stats()
    record("cpu_simulator", name, "ms", {"tilec": ms}, million_instructions_a_second=s["warp_instructions"] / data.quantiles(ms)[1] * 1e-3, bank_conflicts=s["shared_bank_conflicts"])
    if not cases.passed(r.checks):
        failures.append(f"simulator {name}: wrong")
section(None)
out.end(seconds, [], failures)
print("\n".join(f"FAILED {f}" for f in failures) + f"\n{a.out} holds {len(out.rows)} rows")
sys.exit(1 if failures else 0)
