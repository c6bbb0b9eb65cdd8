"""rules.py ROOT: what a script can keep of the house rules. Prints one line per breach."""
import glob, os, re, sys

root = sys.argv[1]
bad = []
sources = [p for d in ("base", "layout", "ir", "frontend", "passes", "codegen", "driver", "runtime", "tools")
           for e in ("c", "h", "def", "l", "y") for p in glob.glob(f"{root}/{d}/**/*.{e}", recursive=True)]
# Which folders' headers a folder may include.
ir = {"ir", "layout", "base"}
allowed = {"base": {"base"}, "layout": {"layout", "base"}, "ir": ir | {"approx.h", "grid.h"}, "frontend": {"frontend", "grid.h"} | ir,
           "passes": {"passes"} | ir,
           "codegen": {"codegen", "manifest.h"} | ir, "driver": {"driver", "frontend", "passes", "codegen", "tilert.h", "manifest.h", "options.h", "version.h"} | ir,
           "runtime": {"runtime"},
           "tools": {"tools", "tilec.h", "jit.h", "tilert.h", "manifest.h", "dtype.h", "spills.h", "clauses.h"}}
# The simulator, a library of its own, takes little of the runtime, which knows it by one header. approx.c is the simulator's.
simulator = {os.path.basename(p) for p in glob.glob(f"{root}/runtime/sim/*")}
across = {True: {"manifest.h", "dtype.h", "approx.h", "tilert.h", "version.h"}, False: {"sim.h"}}
homes = {}
for p in sources:
    homes.setdefault(os.path.basename(p), set()).add(os.path.relpath(p, root).split("/")[0])
for p in sources:
    rel = os.path.relpath(p, root)
    folder = rel.split("/")[0]
    for number, line in enumerate(open(p), 1):
        where = f"{rel}:{number}"
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if m:
            name = os.path.basename(m.group(1))
            if name in homes and not homes[name] & allowed[folder] and name not in allowed[folder]:
                bad.append(f"{where}: {folder} may not include {name} of {', '.join(homes[name])}")
            inside = rel.startswith("runtime/sim/") or rel == "runtime/approx.c"
            if folder == "runtime" and (name in simulator) != inside and name not in across[inside]:
                bad.append(f"{where}: {'the simulator' if inside else 'the runtime'} may not include {name}")
        if re.search(r"#\s*include\s*<llvm", line) and folder != "codegen":
            bad.append(f"{where}: LLVM outside codegen")
        if re.search(r"\bsm_\d+", line) and not rel.endswith("targets.def") and folder in ("base", "layout", "ir", "frontend", "passes", "codegen") \
           and not re.search(r"/\*|//|\*\s", line):
            bad.append(f"{where}: a target named outside targets.def")
        if len(line.rstrip("\n")) > 140 and not rel.endswith(".def"):
            bad.append(f"{where}: line of {len(line)} characters")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            bad.append(f"{where}: {line.strip()[:60]}")
        # A writable object with static storage: no libraries of ours hold state.
        if folder != "tools" and re.match(r"^(static\s+)?(?!const|extern|typedef|return|_Thread_local)[A-Za-z_][\w ]*[ *]\w+(\[[^]]*\])?\s*(=[^=].*)?;\s*$", line) \
           and "const" not in line and "(" not in line.split("=")[0] and not line.startswith((" ", "\t", "struct", "enum", "union")) and p.endswith(".c"):
            bad.append(f"{where}: writable global: {line.strip()[:80]}")
# One Python runs everything: tests say %python, scripts say scripts/python.
for p in (p for d in ("scripts", ".ci", "tests/**", "bench") for p in glob.glob(f"{root}/{d}/*", recursive=True)):
    rel = os.path.relpath(p, root)
    if os.path.isfile(p) and rel not in ("scripts/python", "scripts/setup", "tests/style/rules.py") and not rel.startswith(("tests/fuzz/corpus/", "tests/stub/")):
        for number, line in enumerate(open(p, errors="replace"), 1):
            if re.search(r"\bpython3\b|RUN:(.*[ |;&])?python ", line):
                bad.append(f"{rel}:{number}: a Python of the PATH: {line.strip()[:80]}")
# Calls between the files of a folder go one way, but for those that walk a tree together.
walks = {"frontend": {"builtin_derivative.c", "builtin_map.c", "builtin_reduce.c", "lower_call.c", "lower_choose.c", "lower_expr.c", "lower_if.c", "lower_index.c", "lower_loop.c",
                      "lower_names.c", "lower_operator.c", "lower_stmt.c", "lower_struct.c", "lower_team.c"}}
for folder, walk in walks.items():
    files = sorted(os.path.basename(p) for p in glob.glob(f"{root}/{folder}/*.c"))
    text = {f: re.sub(r"/\*.*?\*/|\"(\\.|[^\"\\])*\"", "", open(f"{root}/{folder}/{f}").read(), flags=re.S) for f in files}
    defined = {m.group(1): f for f in files for m in re.finditer(r"^(?!static)\w[\w *]*\n(\w+)\([^;{]*\)\n\{", text[f], re.M)}
    calls = {f: {defined[w] for w in re.findall(r"\b(\w+)\b", text[f]) if w in defined} - {f} for f in files}
    reach = {f: set(calls[f]) for f in files}
    for _ in files:
        reach = {f: r.union(*(reach[g] for g in r)) for f, r in reach.items()}
    for f in sorted(set(files) - walk):
        if f in reach[f]:
            bad.append(f"{folder}/{f}: calls in a circle, through {', '.join(sorted(g for g in calls[f] if f in reach[g]))}")
# C does not say which argument of a call comes first: where two of them make ops or instructions, PTX would depend on the compiler that compiled tilec.
def calls_in(text):
    """(where, [arguments]) of each call; text has no strings and no comments."""
    open_, found = [], []
    for m in re.finditer(r"[A-Za-z_]\w*\s*\(|[()\[\]{},]", text):
        if m.group()[-1] in "([{":
            open_.append((len(m.group()) > 1, m.start(), [m.end()]))
        elif m.group() == "," and open_:
            open_[-1][2].append(m.end())
        elif open_:
            call, start, marks = open_.pop()
            if call:
                found.append((start, [text[a:b] for a, b in zip(marks, marks[1:] + [m.start()])]))
    return found


constants = {"gen_u32", "lanes_const", "int_const"}
for folder, value, maker in (("ir", r"Value \*", "Builder"), ("passes", r"Value \*", r"Builder|Canon"), ("frontend", r"Value \*", r"Builder|Lower"), ("codegen", "Val", "Gen")):
    files = {p: re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', lambda m: re.sub(r"[^\n]", " ", m.group()), open(p).read(), flags=re.S)
             for p in sorted(glob.glob(f"{root}/{folder}/*.c"))}
    makers = {m.group(1) for q in (sorted(glob.glob(f"{root}/ir/*.c")) if folder != "codegen" else []) + list(files)
              for m in re.finditer(rf"^(?:static )?{value}\n(\w+)\((?:const )?(?:{maker}) \*", open(q).read(), re.M)} - constants
    makes = re.compile(r"\b(?:" + "|".join(sorted(makers)) + (r"|LLVMBuild\w+" if folder == "codegen" else "") + r")\(")
    for p, text in files.items():
        for start, args in calls_in(text):
            if sum(bool(makes.search(x)) for x in args) > 1:
                number = text.count("\n", 0, start) + 1
                bad.append(f"{os.path.relpath(p, root)}:{number}: two arguments make something, in either order: {text.splitlines()[number - 1].strip()[:80]}")
index = open(f"{root}/examples/README.md").read()
for p in glob.glob(f"{root}/examples/*.tile"):
    if f"({os.path.basename(p)})" not in index:
        bad.append(f"examples/README.md: nothing leads to {os.path.basename(p)}")
# Kernels of examples say how many programs they are for.
for p in glob.glob(f"{root}/examples/**/*.tile", recursive=True):
    text = re.sub(r"//.*", "", open(p).read())
    for m in re.finditer(r"^kernel (\w+)\((.*?)^(?=\S)", text + "\nend", re.M | re.S):
        if not re.search(r"\bgrid\(", m.group(2).split("{")[0]):
            bad.append(f"{os.path.relpath(p, root)}: kernel {m.group(1)} has no grid clause")
tests = "\n".join(open(p, errors="replace").read() for p in glob.glob(f"{root}/tests/**/*.*", recursive=True) if p.endswith((".tile", ".tir", ".test", ".c", ".py")))
names = {os.path.basename(p) for p in glob.glob(f"{root}/tests/diag/*")}
for m in re.finditer(r'^DIAG\((\w+),\s*"(\w+)",\s*(\w+)', open(f"{root}/base/diags.def").read(), re.M):
    if m.group(1) in ("E_INTERNAL",):
        continue
    if not any(n.startswith(m.group(1) + ".") or n.startswith(m.group(1) + "_") for n in names) and m.group(1) not in tests and m.group(2) not in tests:
        bad.append(f"base/diags.def: {m.group(1)} has no test under tests/diag")
print("\n".join(bad))
sys.exit(1 if bad else 0)
