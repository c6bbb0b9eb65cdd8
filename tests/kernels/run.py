"""Kernels on a device, with checked numbers: run.py [--device=sim|cuda] [--bin DIR] [--filter TEXT|TEXT] [--shard I/N] [--jobs N]
[--seconds S] [--verbose] [--references] [--compile [TARGET] [--ptxas]]

Runs examples/cases.py and tests/kernels/cases.py with the sizes meant for the device, each case in a process that may die
(examples/harness.py). The device is --device, else $TILEC_DEVICE, else sim. Prints one line per failure and a summary; a device that is
not there is a failure, not a skip, and so is a case without a result.

--compile [TARGET] compiles the kernels of each case at the GPU's sizes (for sm_90a) and runs nothing: there is no memory for arguments, and
arrays of the host hold one number (compiled.py). With --ptxas that takes the PTX, too. It needs no GPU: scripts/stage does it,
and ctest for every twelfth case.

--references runs what the host does of the cases at the GPU's sizes, and no kernel: it needs no GPU, and prints how much memory each
takes. All of them take long (most of an hour on two cores); --filter or --shard picks some."""
import argparse, os, shutil, sys, time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("--device", default=os.environ.get("TILEC_DEVICE", "sim"))
a.add_argument("--bin", default=os.path.join(root, "build", "bin"))
a.add_argument("--filter", default="", help="only cases with this in their label; alternatives stand between |")
a.add_argument("--shard", default="0/1", help="only every Nth case, from the Ith on")
a.add_argument("--jobs", type=int, default=1, help="processes")
a.add_argument("--seconds", type=float, default=0, help="begin no case after as long")
a.add_argument("--limit", type=float, help="seconds for a case; 600, or an hour for references")
a.add_argument("--memory", type=float, default=8, help="GiB of the host for a case")
a.add_argument("--references", action="store_true")
a.add_argument("--compile", nargs="?", const="sm_90a", metavar="TARGET")
a.add_argument("--ptxas", action="store_true", help="with --compile: assemble the PTX")
a.add_argument("--verbose", action="store_true")
a = a.parse_args()
os.environ.setdefault("TILEC_CACHE", "0")   # a test compiles
os.environ.setdefault("TILEC_LIB", os.path.join(os.path.dirname(os.path.abspath(a.bin)), "lib", "libtilec.so"))
sys.path.insert(0, os.path.join(root, "examples"))
import harness

cases = harness.load("all")
shard, shards = (int(x) for x in a.shard.split("/"))
ptxas = shutil.which("ptxas") if a.ptxas else ""
if ptxas is None:
    sys.exit("run.py: there is no ptxas on the PATH")
device = "none" if a.references else ":".join(filter(None, ("compile", a.compile, ptxas))) if a.compile else a.device
wanted = lambda run: any(text in harness.label(cases[run[0]], run[1]) for text in a.filter.split("|"))
planned = [run for run in harness.plan(cases, device == "sim") if wanted(run)]
planned = [run for n, run in enumerate(planned, 1) if n % shards == shard % shards]
ran, failed, start, largest = 0, 0, time.perf_counter(), 0
pool = harness.Pool("all", device, a.jobs, int(a.memory * 2**30), a.limit or (3600 if a.references else harness.LIMIT))
late = lambda: a.seconds and time.perf_counter() - start > a.seconds


def tasks():
    for case, size, seed in planned:
        if late():
            return
        yield {"case": case, "size": size, "seed": seed, "want": "compile" if a.compile else "check"}


def results():
    try:
        yield from pool.results(tasks())
    except RuntimeError as e:              # no device
        print(f"FAILED {e}")


for task, out in results():
    name, why = harness.label(cases[task["case"]], task["size"]), out["why"]
    ran += 1
    largest = max(largest, out["peak"])
    if a.references:                       # outputs are zeros: only how it ended counts
        why = why if why.startswith(("killed", "the process died", "MemoryError")) else ""
        print(f"{out['peak'] / 2**30:7.2f} GiB {out['seconds']:7.1f} s  {name}", flush=True)
    failed += bool(why)
    if why:
        print(f"FAILED {name}: {why}", flush=True)
    elif a.verbose and not a.references:
        print(f"ok     {name} {out['seconds']:.2f} s", flush=True)
left = len(planned) - ran
if left and not late():
    print(f"FAILED {left} of {len(planned)} cases have no result")
    failed += left
if a.references:
    print(f"at most {largest / 2**30:.2f} GiB")
print(f"{device}: {len(planned)} planned")
print(f"{device}: {ran - min(failed, ran)} passed, {failed} failed" + (f", {left} not run" if left and late() else ""))
sys.exit(1 if failed or not ran else 0)
