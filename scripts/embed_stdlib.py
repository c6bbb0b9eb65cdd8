"""Write the stdlib's .tile files into one C file: embed_stdlib.py OUT.c FILE.tile..."""
import os, sys

out, files = sys.argv[1], sorted(sys.argv[2:])
with open(out, "w") as f:
    f.write('#include "frontend.h"\n\n')
    for i, path in enumerate(files):
        data = open(path, "rb").read() + b"\0"
        f.write(f"static const char file_{i}[] = {{\n")
        for at in range(0, len(data), 24):
            f.write("  " + ",".join(str(b - 256 if b > 127 else b) for b in data[at:at + 24]) + ",\n")
        f.write("};\n")
    f.write("\nconst StdlibFile stdlib_files[] = {\n")
    for i, path in enumerate(files):
        f.write(f'  {{"{os.path.basename(path)}", file_{i}, sizeof file_{i} - 1}},\n')
    f.write("  {NULL, NULL, 0},\n};\n")
