"""sizes.py TILEC [--all] [FILE...]: how much code the kernels of the examples are on sm_90a, which is what compiling them takes. Bounds of counts
rather than of time, so that nothing here depends on the machine. Two for each kernel: instructions in its PTX, and registers that its inline
assembly names, one piece at a time: LLVM's time for those grows faster than their number, and a sum of 128 registers in many pieces was most of what
compiling products of warpgroups took. One line for a kernel beyond a bound, with --all for every kernel; exit status 1 if there are any."""
import argparse, concurrent.futures, glob, os, re, subprocess, sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
a = argparse.ArgumentParser(description=__doc__)
a.add_argument("tilec")
a.add_argument("--all", action="store_true")
a.add_argument("files", nargs="*")
a = a.parse_intermixed_args()
# 4000 instructions are 70 to 100 ms to PTX and 400 ms in ptxas, on two cores at 2.7 GHz.
INSTRUCTIONS, REGISTERS = 4000, 2000
# Configurations other than the defaults that are larger: what tuning tries of attention, and what the tests take on a GPU.
MORE = [("attention.tile", ["D=128", "BN=128", "warps=8", f"CAUSAL={causal}"]) for causal in ("false", "true")] + [
    ("attention_wgmma.tile", ["D=128", "CAUSAL=false"]), ("matmul.tile", ["BM=128", "BN=256", "BK=64", "STAGES=3", "warps=8"]),
    ("matmul_warpgroups.tile", ["ROWS=128", "BN=192", "--kernel=matmul_pingpong"])]
KERNEL = re.compile(r"^\.visible \.entry (\w+)\(")


def sizes(ptx):
    """{kernel: [instructions, registers in inline assembly]}; functions that a kernel calls count as its own."""
    found, here, piece = {}, [0, 0], None
    for line in ptx.splitlines():
        if kernel := KERNEL.match(line):
            here = found[kernel[1]] = [0, 0]
        elif "// begin inline asm" in line:
            piece = set()
        elif "// end inline asm" in line:
            here[1] += len(piece)
            piece = None
        elif line.startswith("\t") and line.endswith(";"):
            here[0] += 1
        if piece is not None:
            piece.update(re.findall(r"%\w+", line))
    return found


def compiled(job):
    path, defines = job
    r = subprocess.run([a.tilec, path, "--target=sm_90a", *(d if d[0] == "-" else f"-D{d}" for d in defines)], capture_output=True, text=True)
    return path, defines, sizes(r.stdout) if not r.returncode else {}, r.stderr if r.returncode else ""


files = a.files or sorted(glob.glob(f"{root}/examples/*.tile"))
# A file without a kernel is a library of the others.
jobs = [(p, []) for p in files if re.search(r"^kernel ", open(p).read(), re.M)]
jobs += [(os.path.join(root, "examples", p), defines) for p, defines in MORE if not a.files]
count, bad = 0, 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for path, defines, kernels, wrong in pool.map(compiled, jobs):
        name = " ".join([os.path.relpath(path, root), *defines])
        if wrong:
            print(f"{name}: {wrong}")
            bad += 1
        for kernel, (instructions, registers) in kernels.items():
            much = instructions > INSTRUCTIONS or registers > REGISTERS
            count += 1
            bad += much
            if a.all or much:
                print(f"{name} {kernel}: {instructions} instructions, {registers} registers in assembly{', too much' if much else ''}")
print(f"{count} kernels, {bad} that are too large or do not compile")
sys.exit(1 if bad else 0)
