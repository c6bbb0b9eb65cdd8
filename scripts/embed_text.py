"""Write a text file into a C file as an array of characters: embed_text.py OUT.c NAME FILE."""
import sys

out, name, path = sys.argv[1:]
data = open(path, "rb").read() + b"\0"
with open(out, "w") as f:
    f.write(f"extern const char {name}[];\nconst char {name}[] = {{\n")
    for at in range(0, len(data), 24):
        f.write("  " + ",".join(str(b - 256 if b > 127 else b) for b in data[at:at + 24]) + ",\n")
    f.write("};\n")
