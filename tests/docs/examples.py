"""examples.py TILEC FILE.md: every ```tile block compiles to PTX, every ```tile error block fails with an error in itself."""
import re, subprocess, sys, tempfile

tilec, path = sys.argv[1:3]
text = open(path).read()
bad, count = 0, 0
for m in re.finditer(r"^```tile( error)?\n(.*?)^```$", text, re.M | re.S):
    line = text.count("\n", 0, m.start()) + 2
    count += 1
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as f:
        f.write(m.group(2))
        f.flush()
        run = subprocess.run([tilec, f.name, "--verify", "-o", "/dev/null"], capture_output=True, text=True)
    if run.returncode != (1 if m.group(1) else 0):
        bad += 1
        print(f"{path}:{line}: exit status {run.returncode}\n{run.stderr}")
print(f"{count} examples, {bad} wrong")
sys.exit(1 if bad or not count else 0)
