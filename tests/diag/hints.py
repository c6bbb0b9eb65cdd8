"""hints.py TILEC ROOT: every line of hints.txt gives its advice, and every row of frontend/hints.def has a line."""
import json, os, re, subprocess, sys

tilec, root = sys.argv[1:]
rows = {}
for m in re.finditer(r'^HINT\((\w+),\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)', open(f"{root}/frontend/hints.def").read(), re.M):
    where, text, advice = (g.replace('\\"', '"').replace("\\\\", "\\") for g in m.groups())
    rows[where + " " + text] = advice
HEAD = "kernel k(p: *f32, q: *i32, n: i32, const B = 64) {\nlet i = arange(0, B); let x = load(p + i);\n"
bad, seen = [], set()
for number, line in enumerate(open(f"{root}/tests/diag/hints.txt"), 1):
    if line.startswith("#"):
        continue
    name, code = line.rstrip("\n").split(" | ", 1)
    seen.add(name)
    advice = name[2:] if name.startswith("= ") else rows.get(name)
    if advice is None:
        bad.append(f"hints.txt:{number}: no row {name}")
        continue
    text = code[5:] if code.startswith("top: ") else HEAD + code + "\n}\n"
    run = subprocess.run([tilec, "-", "--diagnostics=json", "-o", os.devnull], input=text, capture_output=True, text=True)
    said = []
    for d in map(json.loads, run.stderr.splitlines()):
        said += [d["message"]] + [n["message"] for n in d["notes"] if n["kind"] == "hint"]
    wanted = [f"did you mean '{advice}'?", f"write {advice}, not"] if name.startswith("IS ") else [advice]
    if not any(w in s for w in wanted for s in said):
        bad.append(f"hints.txt:{number}: {name}: expected: {advice}\n  got: " + "\n       ".join(said))
bad += [f"hints.def: no case for {name}" for name in rows if name not in seen]
print("\n".join(bad))
sys.exit(bool(bad))
