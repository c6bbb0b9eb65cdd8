"""spills.py TILEC [--targets=sm_80,sm_90a] [--all] [FILE...]: what the default configuration of every example's kernels spills, as ptxas
assembles it: bytes that a thread stores. One line for a kernel that spills more than its target allows (LIMIT), with --all for every kernel,
and for one whose products of warpgroups ptxas puts in a row (its warnings C75..); exit status 1 if there are any. 77 where there is no ptxas."""
import argparse, concurrent.futures, glob, os, re, shutil, subprocess, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("tilec")
a.add_argument("--targets", default="sm_80,sm_90a")
a.add_argument("--all", action="store_true")
a.add_argument("files", nargs="*")
a = a.parse_intermixed_args()
# Bytes. The examples are laid out for sm_90; a few words of a thread that has all its registers are no harm. On sm_90a there is one such word,
# of conv2d where nothing is known of its arguments.
LIMIT = {"sm_80": 64, "sm_90a": 4}
HOPPER = re.compile(r"\btensor<|\b(wgmma|cluster)\(")      # what earlier targets do not have
# What is asked for where a target has no room for the defaults; the file says so to its readers.
SMALLER = {("mla_decode.tile", "sm_80"): ["-DBN=32"]}
KERNEL = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", re.S)


def assembled(job):
    """(file, target, [(kernel, bytes, registers)], what went wrong)."""
    path, target = job
    ptx = subprocess.run([a.tilec, path, "--target=" + target, "--emit=ptx", *SMALLER.get((os.path.basename(path), target), [])], capture_output=True, text=True)
    if ptx.returncode:
        return path, target, [], ptx.stderr
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "k.ptx")
        with open(source, "w") as f:
            f.write(ptx.stdout)
        r = subprocess.run(["ptxas", "-v", "-arch=" + target, source, "-o", os.path.join(folder, "k.cubin")], capture_output=True, text=True)
    log = r.stdout + r.stderr
    kernels = [(k, int(n), int(regs)) for k, n, regs in KERNEL.findall(log)]
    complete = not r.returncode and len(kernels) == ptx.stdout.count(".entry ") and not re.search(r"\bC75\d\d\b", log)
    return path, target, kernels, "" if complete else log


if not shutil.which("ptxas"):
    print("no ptxas")
    sys.exit(77)
# A file without a kernel is a library of the others.
files = a.files or [p for p in sorted(glob.glob(f"{root}/examples/*.tile")) if re.search(r"^kernel ", open(p).read(), re.M)]
takes = lambda path, target: target != "sm_80" or not HOPPER.search(open(path).read())
count, bad = 0, 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for path, target, kernels, wrong in pool.map(assembled, [(p, t) for p in files for t in a.targets.split(",") if takes(p, t)]):
        name = os.path.relpath(path, root)
        if wrong:
            print(f"{name} {target}: {wrong}")
        bad += bool(wrong)
        for kernel, spilled, registers in kernels:
            count += 1
            much = spilled > LIMIT.get(target, 0)
            bad += much
            if a.all or much:
                print(f"{name} {kernel} {target}: {spilled} bytes spilled, {registers} registers{', too much' if much else ''}")
print(f"{count} kernels, {bad} that spill too much or do not assemble")
sys.exit(1 if bad else 0)
