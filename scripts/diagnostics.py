"""diagnostics.py TILEC [--check]: write docs/diagnostics.md from the compiler's table and tests/diag/pages, or check both.

A page is tests/diag/pages/ID.tile or .tir: comment lines that explain, then a small wrong program. `// fix: text` lines stand below
the line that they replace; an empty one removes it. `// options: ...` lines add options. Checked: every diagnostic has a page; the
program gets this diagnostic and no other; the corrected one gets none.
"""
import glob, json, os, re, shutil, subprocess, sys, tempfile

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
tilec, checking = shutil.which(sys.argv[1]) or sys.argv[1], "--check" in sys.argv
bad = []

HEAD = """# Diagnostics

Written by scripts/diagnostics.py from base/diags.def, runtime/status.def and tests/diag/pages. `tilec --explain E0211` prints one
entry.

A message has a place, an id, the lines it is about and notes. Words beside `---` marks tell where the two sides of a conflict came
from: where a value got its extents, where a variable got its type, what set a constant. `in f<f16, 781>, called here` names the calls
through which the place was reached, with the compile-time arguments in `<>` and those of untyped parameters in `()`.

Errors are E, warnings W, remarks R, notes that the source asked for N; remarks are given only with `--remarks`. Independent errors of a file are reported together, by
place, at most 20. Colours are used on a terminal.

`--diagnostics=json` prints one object a line instead, for editors:

```
{"code":"E0211","severity":"error","message":"...","file":"k.tile","start":{"line":9,"col":13,"byte":140},"end":{...},
 "notes":[{"kind":"label","message":"this is f32[64]","file":"k.tile","start":{...},"end":{...}}]}
```

`severity` is error, warning, remark or note; `kind` is label (words beside a place), note, hint (what to write instead) or call
(innermost first). Lines and columns count from 1, columns and `byte` count bytes; `file`, `start` and `end` are null where there is
no place.
"""


def rows():
    text = open(f"{root}/base/diags.def").read()
    found = re.findall(r'^DIAG\((\w+),\s*"(\w+)",\s*(\w+),\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)', text, re.M)
    return sorted((code, name, severity, doc.replace('\\"', '"')) for name, code, severity, fmt, doc in found)


def statuses():
    return re.findall(r'^STATUS\(\w+,\s*"(\w+)",\s*"((?:[^"\\]|\\.)*)"\)', open(f"{root}/runtime/status.def").read(), re.M)


def read_page(path):
    """Explanation, options, the wrong program and the corrected one as lists of lines."""
    words, options, wrong, right, last = [], [], [], [], None
    lines = open(path).read().splitlines()
    while lines and lines[0].startswith("//") and not lines[0].startswith("// fix:"):
        line = lines.pop(0)
        if line.startswith("// options:"):
            options += line[11:].split()
        else:
            words.append(line[2:].strip())
    for line in lines:
        m = re.match(r"(\s*)// fix:\s?(.*)", line)
        if not m:
            wrong.append(line)
            right.append(line)
            last = len(right) - 1
            continue
        if last is not None:
            right.pop(last)
            last = None
        if m.group(2):
            right.append(m.group(1) + m.group(2))
    return words, options, wrong, right


def compile_lines(lines, kind, options):
    """What the compiler says, as objects and as text. The program stands in a file k.tile or k.tir of its own."""
    with tempfile.TemporaryDirectory() as folder:
        open(f"{folder}/k.{kind}", "w").write("\n".join(lines) + "\n")
        base = [os.path.abspath(tilec), f"k.{kind}", "-o", os.devnull, *options]
        said = subprocess.run(base + ["--diagnostics=json"], cwd=folder, capture_output=True, text=True).stderr.splitlines()
        text = subprocess.run(base, cwd=folder, capture_output=True, text=True).stderr
    return [json.loads(s) for s in said], text.rstrip("\n")


def entry(code, name, severity, doc):
    pages = glob.glob(f"{root}/tests/diag/pages/{name}.ti*")
    out = [f"## {code}", "", f"*{severity.lower()}*: {doc}.", ""]
    if len(pages) != 1:
        bad.append(f"{name} ({code}) has {len(pages)} pages in tests/diag/pages, not 1")
        return out
    words, options, wrong, right = read_page(pages[0])
    out += words + [""]
    if not wrong:
        return out
    kind = pages[0].rsplit(".", 1)[1]
    said, text = compile_lines(wrong, kind, options)
    codes = {d["code"] for d in said}
    if code not in codes or (severity != "REMARK" and codes != {code}):
        bad.append(f"{pages[0]}: gives {sorted(codes)}, not {code}\n{text}")
    after, text_after = compile_lines(right, kind, options)
    if any(d["severity"] not in ("remark", "note") or d["code"] == code for d in after):
        bad.append(f"{pages[0]}: the corrected program is wrong:\n{text_after}")
    fence = "```tile error" if kind == "tile" and severity == "ERROR" else "```"
    out += [fence, *wrong, "```", "", "```", *text.splitlines(), "```", "", "Corrected:", "", "```" + ("tile" if kind == "tile" else ""), *right,
            "```", ""]
    return out


text = HEAD
for row in rows():
    text += "\n" + "\n".join(entry(*row)).rstrip("\n") + "\n"
text += "\n## Runtime\n\nThe status of a failed call of tilert.h or jit.h; the message names the cause.\n"
for name, doc in statuses():
    text += f"\n## {name}\n\n{doc}\n"
known = {name for _, name, _, _ in rows()}
bad += [f"{p}: no such diagnostic" for p in glob.glob(f"{root}/tests/diag/pages/*.ti*") if os.path.basename(p).split(".")[0] not in known]
tests = {os.path.basename(p) for p in glob.glob(f"{root}/tests/diag/*.ti*")}
path = f"{root}/docs/diagnostics.md"
if checking and open(path).read() != text:
    bad.append("docs/diagnostics.md is out of date: run scripts/python scripts/diagnostics.py build/bin/tilec")
if not checking:
    open(path, "w").write(text)
print("\n".join(bad))
sys.exit(bool(bad))
