"""resume.py TILEC [--passes=all|some] [--targets=...] [FILE...]: a compilation goes on from the text of any of its stages to the same PTX.
Each source is compiled with a dump after every pass; each dump, with the places in it, is compiled in turn, and so is the LLVM IR. The
text of a stage is its own.
FILE: examples/ by default; `some`: from the frontend's text, from after two passes and from LLVM's passes only."""
import argparse, concurrent.futures, glob, os, re, subprocess, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("tilec")
a.add_argument("--passes", choices=("all", "some"), default="all")
a.add_argument("--targets", default="sm_80,sm_90a")
a.add_argument("files", nargs="*")
a = a.parse_intermixed_args()
some = ("assign_layout", "alloc_shared")
files = a.files or sorted(glob.glob(f"{root}/examples/*.tile"))


def tilec(path, target, *options):
    return subprocess.run([a.tilec, path, "--target=" + target, *options], capture_output=True, text=True)


def sections(dumps):
    """Each dump by the pass that it comes after."""
    return dict(re.findall(r"^// after (\S+)\n(.*?)(?=^// after |\Z)", dumps, re.M | re.S))


def resumed(folder, name, text, target, *options):
    path = os.path.join(folder, name)
    open(path, "w").write(text)
    return tilec(path, target, *options)


def one(job):
    path, target = job
    bad = []
    run = tilec(path, target, "--locs", "--dump-after=all")
    if run.returncode:
        return 0, [] if "error[E" in run.stderr else [f"{path} {target}: {run.stderr}"]
    dumps = sections(run.stderr)
    if a.passes == "some":
        dumps = {k: v for k, v in dumps.items() if k in some}
    with tempfile.TemporaryDirectory() as folder:
        dumps["the frontend"] = tilec(path, target, "--locs", "--emit=tile").stdout
        texts = [(name, "a.tir", text) for name, text in dumps.items()]
        texts.append(("LLVM's passes", "a.ll", tilec(path, target, "--emit=llvm").stdout))
        for name, file, text in texts:
            again = resumed(folder, file, text, target)
            if again.returncode:
                bad.append(f"{path} {target} after {name}: {again.stderr.strip()[:300]}")
            elif again.stdout != run.stdout:
                bad.append(f"{path} {target} after {name}: other PTX")
        for stage in ("placed", "sched") if a.passes == "all" else ("placed",):
            text = tilec(path, target, "--locs", "--emit=" + stage).stdout
            if resumed(folder, "b.tir", text, target, "--locs", "--emit=" + stage).stdout != text:
                bad.append(f"{path} {target}: another text of stage {stage} from its own")
    return len(texts), bad


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(one, [(p, t) for p in files for t in a.targets.split(",")]))
for _, bad in results:
    for line in bad:
        print(line)
n = sum(count for count, _ in results)
print(f"{n} texts resumed, {sum(len(bad) for _, bad in results)} wrongly")
sys.exit(n == 0 or any(bad for _, bad in results))
