"""replay.py OLD_TILEC NEW_TILEC [--targets=...] [FILE...]: PTX of the same sources by two builds of tilec, compared byte for byte.
Sources are examples/, stdlib's tests, bench/ and the kernels of tests/; those that neither build compiles count as equal. The new one checks
the IR behind every pass."""
import argparse, concurrent.futures, difflib, glob, os, subprocess, sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("old")
a.add_argument("new")
a.add_argument("--targets", default="sm_80,sm_89,sm_90a,sm_100a")
a.add_argument("--show", type=int, default=0, help="lines of each difference to print")
a.add_argument("files", nargs="*")
a = a.parse_intermixed_args()
folders = ("examples", "bench", "tests/kernels", "tests/frontend", "tests/codegen", "tests/passes", "tests/diff")
files = a.files or sorted(p for d in folders for e in ("tile", "tir") for p in glob.glob(f"{root}/{d}/**/*.{e}", recursive=True))


def compile_with(tilec, path, target, *options):
    r = subprocess.run([tilec, path, "--target=" + target, *options], capture_output=True)
    return r.stdout if r.returncode == 0 else None


def one(job):
    path, target = job
    return path, target, compile_with(a.old, path, target), compile_with(a.new, path, target, "--verify")


jobs = [(p, t) for p in files for t in a.targets.split(",")]
differ = refused = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for path, target, old, new in pool.map(one, jobs):
        refused += old is None and new is None
        if old == new:
            continue
        differ += 1
        what = "only the old one compiles it" if new is None else "only the new one compiles it" if old is None else "PTX differs"
        print(f"{os.path.relpath(path, root)} {target}: {what}")
        if a.show and old and new:
            lines = difflib.unified_diff(old.decode().splitlines(), new.decode().splitlines(), "old", "new", lineterm="", n=1)
            print("\n".join(list(lines)[: a.show]))
print(f"{len(jobs)} compilations: {differ} differ, {refused} refused by both")
sys.exit(differ != 0)
