"""abi.py BUILD [--write]: what programs that are built against the headers rely on: the symbols of the libraries with their versions, the
prototypes, sizes, offsets and types of members, values of enumerations. Compared with packaging/abi.txt, which --write writes. What only adds
keeps the version; anything else takes a new one (runtime/version.h says which). A symbol that is not declared, or that is declared and
not there, is an error in either case."""
import difflib, os, re, subprocess, sys, tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
KEPT = os.path.join(ROOT, "packaging", "abi.txt")
HEADERS = ("runtime/version.h", "runtime/manifest.h", "runtime/status.h", "runtime/tilert.h", "runtime/aot.h", "driver/tilec.h", "driver/jit.h")


def plain(path):
    """A header without comments, preprocessor lines and line breaks."""
    text = re.sub(r"/\*.*?\*/", " ", open(os.path.join(ROOT, path)).read(), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"^\s*#.*(?:\\\n.*)*$|//.*$", "", text, flags=re.M))


def split(text, at):
    """Parts of a text between commas or semicolons that are in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "({[") - (c in ")}]")
        if c == at and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def members(body):
    """(name, declaration) of each: a type of the same size is another one all the same."""
    for declaration in split(body, ";"):
        first, *others = split(declaration, ",")
        base = re.match(r"(?:const )?\w+(?= )", first)
        for part in [first] + [f"{base[0]} {other}" for other in others]:
            found = re.search(r"\(\*(\w+)\)\(", part) or re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part)
            yield found[1], part


def layouts(text):
    """C that prints sizes, offsets and values."""
    for m in re.finditer(r"typedef struct (\w+) \{(.*?)\} \1;", text):
        yield f'  printf("struct {m[1]} %zu\\n", sizeof({m[1]}));'
        for name, declaration in members(m[2]):
            yield f'  printf("  %zu+%zu {declaration}\\n", offsetof({m[1]}, {name}), sizeof((({m[1]} *)0)->{name}));'
    for m in re.finditer(r"(?:typedef )?enum (\w* ?)\{(.*?)\}", text):
        yield f'  puts("enum {m[1].strip() or "of constants"}");'
        for part in split(m[2], ","):
            name = part.split("=")[0].strip()
            yield f'  printf("  {name} %d\\n", (int){name});'


def prototypes(text):
    return {re.search(r"(\w+)\(", m[1])[1]: re.sub(r"\s+", " ", m[1]).strip() for m in re.finditer(r"TILE(?:C|RT)_API ([^;{]*\([^;]*\));", text)}


def names(text):
    """What else is a type: of functions that are called back, of other names."""
    return sorted(m[1] for m in re.finditer(r"typedef ((?!(?:struct|union|enum) \w* ?\{)[^;{}]*);", text))


def symbols(library):
    said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    found = [line.split()[-1].split("@@") for line in said.splitlines() if line.split()[1] != "A"]
    return {name: version[0] if version else "without a version" for name, *version in found}


def dump(build):
    """The text, and what is wrong."""
    out, wrong, text = [], [], " ".join(map(plain, HEADERS))
    declared = prototypes(text)
    # Of the simulator libtilert alone wants anything.
    for library, wanted in (("tilert", {n for n in declared if n.startswith("tilert_")}), ("tilesim", {"tilesim_calls"}), ("tilec", set(declared))):
        found = symbols(os.path.join(build, "lib", f"lib{library}.so"))
        out += [f"library {library}"] + [f"  {n} {v}" for n, v in sorted(found.items())]
        wrong += [f"lib{library} gives away {n}, which no header declares" for n in sorted(set(found) - wanted)]
        wrong += [f"lib{library} has no {n}, which a header declares" for n in sorted(wanted - set(found))]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "layouts.c")
        includes = "".join(f'#include "{os.path.abspath(os.path.join(ROOT, h))}"\n' for h in HEADERS)
        lines = "\n".join(layouts(text))
        open(source, "w").write(f"#include <stddef.h>\n#include <stdio.h>\n{includes}\nint main(void)\n{{\n{lines}\n  return 0;\n}}\n")
        subprocess.run(["cc", "-w", f"-I{ROOT}/runtime", f"-I{ROOT}/driver", source, "-o", source[:-2]], check=True)
        out += subprocess.run([source[:-2]], capture_output=True, text=True, check=True).stdout.splitlines()
    out += ["types"] + [f"  {n}" for n in names(text)] + ["calls"] + [f"  {declared[n]}" for n in sorted(declared)]
    return "\n".join(out) + "\n", wrong


def main():
    text, wrong = dump(sys.argv[1])
    print("\n".join(wrong), end="\n" if wrong else "")
    if "--write" in sys.argv:
        open(KEPT, "w").write(text)
        sys.exit(bool(wrong))
    kept = open(KEPT).read() if os.path.exists(KEPT) else ""
    changes = [d for d in difflib.unified_diff(kept.splitlines(), text.splitlines(), "packaging/abi.txt", "this build", n=2, lineterm="")]
    if changes:
        gone = any(d.startswith("-") and not d.startswith("---") for d in changes)
        print("\n".join(changes))
        print("what programs rely on has changed: that takes a new version" if gone else "there is more than before; scripts/abi.py BUILD --write keeps it")
    sys.exit(1 if wrong or changes else 0)


if __name__ == "__main__":
    main()
