"""layers.py ROOT: codegen/ is in layers. A file calls what the layers below export and nothing beside or above it, and what it exports
begins with its prefix. Prints one line per breach."""
import glob, os, re, sys

root = sys.argv[1]
# Lowest first; files of one layer do not know each other. Each with the prefixes of the names that it exports.
layers = [
    {"llvm_locks.c": "gen"},
    {"llvm.c": "gen"},
    {"depth_first.c": "order", "locs.c": "locs", "inlined.c": "inlined", "ptx.c": "ptx", "values.c": "gen", "shuffle.c": "shuffle", "params.c": "params"},
    {"team.c": "team", "words.c": "words", "long_blocks.c": "ease", "loops.c": "loop", "divide.c": "divide"},
    {"dist.c": "dist"},
    {"address.c": "addr", "phis.c": "phis", "bits.c": "bits", "late.c": "late"},
    {"cast_small.c": "small"},
    {"buffer.c": "buffer", "cast.c": "cast"},
    {"pieces.c": "pieces", "dot_parts.c": "dot", "fold.c": "fold", "meta.c": "meta"},
    {"leader.c": "leader"},
    {"lower_elem.c": "lower elem"},
    {f"lower_{n}.c": "lower" for n in "asm atomic cluster convert debug gather launch map mem mma packed reduce scan shape shared team tma wgmma".split()},
    {"lower.c": "lower"},
    {"emit.c": "codegen"},
]
level = {f: i for i, layer in enumerate(layers) for f in layer}
prefix = {f: p.split() for layer in layers for f, p in layer.items()}
blank = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
sources = {os.path.basename(p): open(p).read() for p in glob.glob(f"{root}/codegen/*.c")}
texts = {f: blank.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text) for f, text in sources.items()}
# A function begins at the beginning of a line, its name behind its type or on the next line.
function = re.compile(r"^([A-Za-z_][\w *]*)(?:\n|[ *])(\w+)\([^;{}]*\)\s*\{", re.M)
bad, home = [], {}
for f, text in sorted(texts.items()):
    if f not in level:
        bad.append(f"codegen/{f}: in no layer of tests/style/layers.py")
        continue
    for m in function.finditer(text):
        if "static" in m.group(1).split():
            continue
        home[m.group(2)] = f
        if m.group(2).split("_")[0] not in prefix[f]:
            number = text.count("\n", 0, m.start(2)) + 1
            bad.append(f"codegen/{f}:{number}: {m.group(2)} does not begin with {' or '.join(p + '_' for p in prefix[f])}")
bad += [f"tests/style/layers.py: there is no codegen/{f}" for f in level if f not in texts]
for header in ("gen.h", "bits.h", "fold.h"):
    text = blank.sub(" ", open(f"{root}/codegen/{header}").read())
    for m in re.finditer(r"^(?!typedef)[A-Za-z_][\w *]*?\b(\w+)\([^;{}]*\);", text, re.M):
        if m.group(1) not in home:
            bad.append(f"codegen/{header}: {m.group(1)} is defined in no file that this script reads")
for f, text in sorted(texts.items()):
    uses = [(m.start(), m.group(), home.get(m.group())) for m in re.finditer(r"\b\w+\b", text)]
    uses += [(m.start(), m.group(1) + ".h", m.group(1) + ".c") for m in re.finditer(r'^#include "(bits|fold)\.h"', sources[f], re.M)]
    for at, name, other in uses:
        if other and other != f and f in level and level[f] <= level[other]:
            bad.append(f"codegen/{f}:{text.count(chr(10), 0, at) + 1}: {name} is of {other}, which is not below")
print("\n".join(bad))
sys.exit(1 if bad else 0)
