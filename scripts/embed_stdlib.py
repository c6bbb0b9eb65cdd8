"""Write the library's .tile files and an index of their declarations into one C file: embed_stdlib.py OUT.c FILE.tile...

What stands at the beginning of a line in these files is a declaration, the end of one, or a comment.
"""
import os, re, sys

out, files = sys.argv[1], sorted(sys.argv[2:])
texts = [open(path, "rb").read() for path in files]
found, counts = {}, []
for file, (path, text) in enumerate(zip(files, texts)):
    starts = [(m.start(), m[1].decode()) for m in re.finditer(rb"^(?:fn|const|struct) +(\w+)", text, re.M)]
    if odd := re.search(rb"^(?!(?:fn|const|struct) +\w|//|\}|[ \n]).+", text, re.M):
        sys.exit(f"{path}:{text.count(10, 0, odd.start()) + 1}: neither a declaration nor its end nor a comment")
    for index, (at, name) in enumerate(starts):
        if name in found:
            sys.exit(f"{path}: {name} is declared in {files[found[name][0]]} too")
        end = starts[index + 1][0] if index + 1 < len(starts) else len(text)
        found[name] = (file, index, at, end - at)
    counts.append(len(starts))

with open(out, "w") as f:
    f.write('#include "frontend.h"\n\n')
    for i, text in enumerate(texts):
        data = text + b"\0"
        f.write(f"static const char file_{i}[] = {{\n")
        for at in range(0, len(data), 24):
            f.write("  " + ",".join(str(b - 256 if b > 127 else b) for b in data[at:at + 24]) + ",\n")
        f.write("};\n")
    f.write("\nconst StdlibFile stdlib_files[] = {\n")
    for i, path in enumerate(files):
        f.write(f'  {{"{os.path.basename(path)}", file_{i}, sizeof file_{i} - 1, {counts[i]}}},\n')
    f.write("  {NULL, NULL, 0, 0},\n};\n\nconst StdlibDecl stdlib_decls[] = {\n")
    for name in sorted(found):
        f.write('  {"%s", %d, %d, %d, %d},\n' % (name, *found[name]))
    f.write(f"}};\nconst u32 stdlib_ndecls = {len(found)};\n")
