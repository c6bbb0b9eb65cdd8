"""amalgamate.py OUT.c: the text that `tilec --emit=c --standalone` puts in front of its tables: what of the runtime packs, checks and
launches, with runtime/standalone/standalone.c under it, as one C text in which everything is static. Written as an array of C.

A name that two files use for different things is prefixed by the file's."""
import os, re, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runtime")
FILES = """error.c dtype.c grid.c manifest.c module.c launch_plan.c launch.c launch_tensor.c tensor_map.c ptx_line.c cuda/driver.c unpack.c aot.c
           standalone/standalone.c""".split()
attribute = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*")
blank = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
seen, system = set(), []


def bare(text):
    """Without comments."""
    return blank.sub(lambda m: " " if m.group().startswith("/*") else m.group(), text)


def private(text):
    """A header's functions are the file's own: a definition behind such a declaration is, too."""
    text = text.replace('#define TILERT_API __attribute__((visibility("default")))', "#define TILERT_API static __attribute__((unused))")
    return re.sub(r"^(?!static|typedef|extern|struct|enum|union|#|\s|TILERT_API|}|//)(?=[\w \*]+\([^;{}]*\)[^;{}]*;)", "TILERT_API ", text, flags=re.M)


def flat(path, header):
    """A file with the files it includes in place, each once; tables (.def) as often as they are asked for."""
    text = bare(open(path).read())
    if header:
        text = private(text)

    def include(m):
        name = os.path.normpath(os.path.join(os.path.dirname(path), m.group(1)))
        name = name if os.path.exists(name) else os.path.join(ROOT, m.group(1))
        if name.endswith(".def"):
            return bare(open(name).read())
        key = os.path.realpath(name)
        if key in seen:
            return ""
        seen.add(key)
        return flat(name, True)

    def angle(m):
        if m.group(0) not in system:
            system.append(m.group(0))
        return ""
    return re.sub(r'^#include "([^"]+)"$', include, re.sub(r"^#include <[^>]+>$", angle, text, flags=re.M), flags=re.M)


def statics(text):
    """The names that a file keeps to itself: functions, objects, types, constants and macros."""
    text = attribute.sub("", text)
    names = set(re.findall(r"^static[^;{}()=]*?\b(\w+)\s*\(", text, re.M))
    names |= set(re.findall(r"^static[^;{}()]*?\b(\w+)(?:\[[^\]]*\])*\s*=", text, re.M)) | set(re.findall(r"^} (\w+);", text, re.M))
    names |= set(re.findall(r"^typedef struct (\w+) \{", text, re.M))
    for body in re.findall(r"^enum \{([^}]*)\}", text, re.M):
        names |= set(re.findall(r"\b([A-Z]\w*)\b", re.sub(r"=[^,]*", "", body)))
    return names | set(re.findall(r"^#define (\w+)", text, re.M))


own = {f: statics(bare(open(os.path.join(ROOT, f)).read())) for f in FILES}
macros = {f: set(re.findall(r"^#define (\w+)", open(os.path.join(ROOT, f)).read(), re.M)) for f in FILES}
out = []
for f in FILES:
    mark = re.sub(r"\W", "_", os.path.splitext(os.path.basename(f))[0])
    twice = sorted(n for n in own[f] - macros[f] if any(n in own[g] for g in FILES if g != f))
    out.append("\n".join(f"#define {n} {mark}_{n}" for n in twice))
    out.append(flat(os.path.join(ROOT, f), False))
    out.append("\n".join(f"#undef {n}" for n in twice + sorted(macros[f])))
text = "\n".join(out)
# Declarations of what is not here go.
there = set(re.findall(r"^(\w+)\([^;{}]*\)\s*\{", text, re.M))
text = re.sub(r"^TILERT_API [^;{}()]*?\b(\w+)\([^;{}]*;", lambda m: m.group() if m.group(1) in there else "", text, flags=re.M)
text = re.sub(r"[ \t]+$", "", text, flags=re.M)
text = re.sub(r"\n{2,}", "\n", text)
whole = "\n".join(system) + "\n" + text + "\n"


def array(name, data):
    lines = "\n".join(",".join(map(str, data[i:i + 32])) + "," for i in range(0, len(data), 32))
    return f"const char {name}[] = {{\n{lines}\n0}};\n"


with open(sys.argv[1], "w") as o:
    o.write("/* Made by scripts/amalgamate.py. */\n#include \"aot.h\"\n")
    o.write(array("aot_standalone", whole.encode()) + array("aot_status", open(os.path.join(ROOT, "status.h"), "rb").read()))
