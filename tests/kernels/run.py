"""Kernels on a device, with checked numbers: run.py [--device=sim|cuda] [--bin DIR] [--filter TEXT|TEXT] [--shard I/N] [--seconds S]
[--verbose]

Runs examples/cases.py and tests/kernels/cases.py with the sizes meant for the device. The device is --device, else
$TILEC_DEVICE, else sim. Prints one line per failure and a summary; a device that is not there is a failure, not a skip."""
import argparse, os, sys, time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("--device", default=os.environ.get("TILEC_DEVICE", "sim"))
a.add_argument("--bin", default=os.path.join(root, "build", "bin"))
a.add_argument("--filter", default="", help="only cases with this in their label; alternatives stand between |")
a.add_argument("--shard", default="0/1", help="only every Nth case, from the Ith on")
a.add_argument("--seconds", type=float, default=0, help="stop after as long")
a.add_argument("--verbose", action="store_true")
a = a.parse_args()
os.environ.setdefault("TILEC_CACHE", "0")   # a test compiles
os.environ.setdefault("TILEC_LIB", os.path.join(os.path.dirname(os.path.abspath(a.bin)), "lib", "libtilec.so"))
sys.path[:0] = [os.path.join(root, "tools"), os.path.join(root, "examples")]
import importlib.util
import numpy as np
import tilec


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    m = importlib.util.module_from_spec(spec)
    sys.modules[name] = m
    spec.loader.exec_module(m)
    return m


examples = module("cases", os.path.join(root, "examples", "cases.py"))
more = module("kernel_cases", os.path.join(here, "cases.py"))
dev = tilec.Device(a.device)
ran, failed, seen, left = 0, 0, 0, 0
start = time.perf_counter()
shard, shards = (int(x) for x in a.shard.split("/"))
for case in examples.CASES + more.CASES:
    for i, size in enumerate(case.sim if dev.is_sim else case.gpu):
        label = f"{case.name}({', '.join(f'{k}={v}' for k, v in size.items())})"
        if not any(text in label for text in a.filter.split("|")):
            continue
        seen += 1
        if seen % shards != shard:
            continue
        if a.seconds and time.perf_counter() - start > a.seconds:
            left += 1
            continue
        ran += 1
        t = time.perf_counter()
        try:
            if dev.is_sim:
                dev.stats(reset=True)
            r = case.run(dev, np.random.default_rng(seen), **size)
            why = "; ".join(f"{n}: error {examples.error(g, w, tol):.3g} (limit {tol:g})" for n, g, w, tol in r.checks if not examples.error(g, w, tol) <= tol)
        except Exception as e:
            why = f"{type(e).__name__}: {e}" + (f" at {e.file}:{e.line}" if getattr(e, "line", 0) else "")
        failed += bool(why)
        if why:
            print(f"FAILED {label}: {why}", flush=True)
        elif a.verbose:
            print(f"ok     {label} {time.perf_counter() - t:.2f} s", flush=True)
print(f"{a.device}: {ran - failed} passed, {failed} failed" + (f", {left} not run" if left else ""))
sys.exit(1 if failed or not ran else 0)
