"""ptxas.py TARGET [SPILLS]: assemble the PTX on standard input; more than SPILLS bytes of spilled stores (0) fail. Silent success where
ptxas is absent."""
import shutil, subprocess, sys, tempfile, os, re

ptx = sys.stdin.read()
if not ptx.strip():
    sys.exit("no PTX on standard input")
if not shutil.which("ptxas"):
    sys.exit(0)
with tempfile.TemporaryDirectory() as d:
    src = os.path.join(d, "k.ptx")
    open(src, "w").write(ptx)
    run = subprocess.run(["ptxas", "-v", f"-arch={sys.argv[1]}", src, "-o", os.path.join(d, "k.cubin")], capture_output=True, text=True)
log = run.stdout + run.stderr
if run.returncode or re.search(r"\bC7[56]\d\d\b", log):
    sys.exit("ptxas: " + log)
if any(int(n) > int((sys.argv + ["0"])[2]) for n in re.findall(r"(\d+) bytes spill stores", log)):
    sys.exit("spills: " + log)
print(log)
