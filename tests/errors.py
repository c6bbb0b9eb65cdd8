"""errors.py TILEC FILE [options]: each `// error: text` (or warning:, remark:, note:) mark in FILE must be reported on its own
line with that text, and no error may be reported without a mark. Lines without marks must be silent."""
import json, re, subprocess, sys

tilec, path, options = sys.argv[1], sys.argv[2], sys.argv[3:]
marks = []
for number, line in enumerate(open(path, encoding="utf-8", errors="replace"), 1):
    for kind, text in re.findall(r"//\s*(error|warning|remark|note):\s*(.*?)\s*(?=//\s*(?:error|warning|remark|note):|$)", line):
        marks.append((number, kind, text))
run = subprocess.run([tilec, path, "--diagnostics-format=json", "-o", "/dev/null", *options], capture_output=True, text=True)
got = [json.loads(l) for l in run.stderr.splitlines() if l.startswith("{")]
for d in got:
    d["start"] = d["start"] or {"line": 0}    # of no place, as what says that there are too many
other = [l for l in run.stderr.splitlines() if not l.startswith("{")]
bad = [f"unexpected output: {l}" for l in other]
for number, kind, text in marks:
    hit = next((d for d in got if d["severity"] == kind and d["start"]["line"] == number and text in d["message"]), None)
    if hit:
        got.remove(hit)
    else:
        bad.append(f"{path}:{number}: expected {kind}: {text}")
bad += [f"{path}:{d['start']['line']}: unmarked {d['severity']}: {d['message']}" for d in got if d["severity"] == "error"]
wanted = 1 if any(kind == "error" for _, kind, _ in marks) else 0
if run.returncode != wanted:
    bad.append(f"exit status {run.returncode}, expected {wanted}")
if not marks:
    bad.append(f"{path}: no marks")
print("\n".join(bad))
sys.exit(1 if bad else 0)
