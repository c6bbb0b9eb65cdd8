"""features.py [--check]: write docs/features.md from tests/features/rows.txt, or check that it is up to date; either way each
row's test must exist, and the first name of each spelling must occur in it."""
import os, re, sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
out = os.path.join(root, "docs", "features.md")


def cases():
    """Where each case of tests/kernels and examples stands."""
    found = {}
    for folder in ("tests/kernels", "examples"):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            path = os.path.join(folder, name)
            if name.endswith(".py"):
                for case in re.findall(r'\b(?:both|Case)\("(\w+)"', open(os.path.join(root, path)).read()):
                    found.setdefault(case, path)
    return found


def text_of(path, case):
    """What a test consists of: its file; for an example the kernels, too."""
    text = open(os.path.join(root, path)).read()
    if path.startswith("examples"):
        for name in os.listdir(os.path.join(root, "examples")):
            if name.endswith(".tile") and (case.startswith(name[:-5]) or name[:-5].startswith(case)):
                text += open(os.path.join(root, "examples", name)).read()
    return text


known, rows, bad = cases(), [], []
for number, line in enumerate(open(os.path.join(root, "tests", "features", "rows.txt")), 1):
    if line.startswith("#") or not line.strip():
        continue
    row = [x.strip() for x in line.replace("||", "\0").split("|")]
    if len(row) != 5:
        sys.exit(f"rows.txt:{number}: five columns, not {len(row)}")
    section, use, feature, spelling, test = (x.replace("\0", "||") for x in row)
    case = test[8:] if test.startswith("kernels/") and "." not in test else ""
    path = known.get(case) if case else os.path.join("tests", test)
    if not path or not os.path.exists(os.path.join(root, path)):
        bad.append(f"rows.txt:{number}: no test {test}")
        continue
    text = text_of(path, case)
    for code in re.findall(r"`([^`]*)`", spelling):
        name = re.search(r"[A-Za-z_]\w+", code)
        if name and not re.search(rf"\b{name.group()}\b", text):
            bad.append(f"rows.txt:{number}: {path} has no {name.group()}")
    rows.append((section, use, feature, spelling, path, case))
text = ("# Features\n\nWhat kernel languages of this kind offer, how it is written here, and the test that shows it. Written by "
        "scripts/features.py from\ntests/features/rows.txt. How often a feature is used in published kernels: core, common, rare.\n")
section = None
for s, use, feature, spelling, path, case in rows:
    if s != section:
        section = s
        text += f"\n## {s}\n\n| feature | use | here | test |\n|---|---|---|---|\n"
    where = f"[{case or os.path.basename(path)}](../{path})"
    text += f"| {feature} | {use} | {spelling.replace('|', chr(92) + '|')} | {where} |\n"
if bad:
    sys.exit("\n".join(bad))
if "--check" in sys.argv:
    if open(out).read() != text:
        sys.exit("docs/features.md is out of date: run scripts/python scripts/features.py")
else:
    open(out, "w").write(text)
