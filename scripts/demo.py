"""Run every example on a device, check the results, print a table. demo.py [--device=cuda|sim] [--memory GiB] [--shard I/N] [NAME...]

Each example runs in a process that may die (examples/harness.py): those behind it run all the same. On a GPU the rate stands beside what
the device could do at most (bench/roofs.py), where that is known."""
import argparse, os, sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "bench"), os.path.join(root, "examples")]
import harness
import roofs

a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("--device", help="cuda or sim; the GPU if there is one, else the simulator")
a.add_argument("--memory", type=float, default=8, help="GiB of the host for an example")
a.add_argument("--shard", default="0/1", help="only every Nth example, from the Ith on")
a.add_argument("names", nargs="*")
a = a.parse_args()
cases = harness.load("examples")
if unknown := set(a.names) - {c.name for c in cases}:
    sys.exit(f"no example {', '.join(sorted(unknown))}; there are {', '.join(c.name for c in cases)}")


def in_words(v):
    """A size: 64 times the same as 64 x 4096, long lists by their beginning."""
    if isinstance(v, (tuple, list)):
        if len(v) > 2 and len(set(v)) == 1:
            return f"{len(v)} x {in_words(v[0])}"
        return "(" + ",".join(map(in_words, v[:3])) + (",..." if len(v) > 3 else "") + ")"
    return str(v)


def row(name, size, out, hello):
    words = " ".join(f"{k}={in_words(v)}" for k, v in size.items())
    head = f"{name:24} {words if len(words) <= 44 else words[:41] + '...':44}"
    if "compile_ms" not in out:
        return f"{head} FAILED: {out['why']}"
    seconds = out["run_s"] if hello["sim"] else out["ms"] * 1e-3
    rate = share = ""
    if not hello["sim"]:
        if out["flops"]:
            rate = f"{out['flops'] / seconds * 1e-12:.1f} TFLOP/s"
        elif out["bytes"]:
            rate = f"{out['bytes'] / seconds * 1e-9:.0f} GB/s"
        of = roofs.share(hello, seconds, out["bytes"], out["flops"], out["dtype"])
        share = f"{of * 100:.0f}%" if of else ""
    verdict = "ok" if not out["why"] else f"WRONG ({out['why']})"
    return f"{head} {out['compile_ms']:6.1f} ms {seconds * 1e3:9.3f} ms {rate:>13} {share:>6}  {verdict} (error {out['worst']:.1e})"


pool = harness.Pool("examples", a.device, 1, int(a.memory * 2**30))
shard, shards = (int(x) for x in a.shard.split("/"))
wanted = [i for i, c in enumerate(cases) if not a.names or c.name in a.names][shard::shards]


def tasks():
    """The first size of each, once it is known which kind of device there is."""
    for i in wanted:
        yield {"case": i, "size": (cases[i].sim if pool.hello["sim"] else cases[i].gpu)[0], "seed": 1, "want": "demo"}


def main():
    bad, head = [], False
    for task, out in pool.results(tasks()):
        name, hello = cases[task["case"]].name, pool.hello
        if not head:
            print(f"tilec {hello['version']} on {hello['name']}")
            print(f"{'example':24} {'size':44} {'compile':>9} {'run':>12} {'rate':>13} {'of its roof':>6}  result" if not hello["sim"] else
                  f"{'example':24} {'size':44} {'compile':>9} {'run':>12} {'':>13} {'':>6}  result")
            head = True
        print(row(name, task["size"], out, hello).rstrip(), flush=True)
        if out["why"]:
            bad.append(name)
    print(f"{len(wanted) - len(bad)} passed, {len(bad)} failed" + (f": {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


try:
    sys.exit(main())
except RuntimeError as e:
    sys.exit(f"demo: {e}")
