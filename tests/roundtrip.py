"""roundtrip.py TILEC FILE.tir: printing what was parsed, twice, gives the same bytes; and FILE itself, less comments."""
import subprocess, sys, tempfile, os

tilec, path = sys.argv[1], sys.argv[2]
def emit(p):
    return subprocess.run([tilec, p, "--emit=tile", "--passes="], check=True, capture_output=True, text=True).stdout
once = emit(path)
with tempfile.TemporaryDirectory() as d:
    again = os.path.join(d, "again.tir")
    open(again, "w").write(once)
    twice = emit(again)
if once != twice:
    sys.exit("print(parse(print(x))) differs from print(x)")
strip = lambda s: [l.rstrip() for l in s.splitlines() if l.strip() and not l.lstrip().startswith("//")]
if strip(open(path).read()) != strip(once):
    sys.exit(f"printed text differs from {path}:\n{once}")
