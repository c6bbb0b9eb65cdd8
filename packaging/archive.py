"""archive.py LIBTILEC.so OUT.a OBJCOPY AR LINK...: libtilec as an archive of one object: what the shared library gives away stays global, all else,
LLVM and the C++ library among it, is local, so that a program may have others of them. LINK is the command that links, to which options are
added; its objects and archives are those of the shared library."""
import os, subprocess, sys

library, out, objcopy, ar, *link = sys.argv[1:]
said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
names = [line.split()[-1].split("@@")[0] for line in said.splitlines() if line.split()[1] == "T"]
whole, kept = out + ".o", out + ".names"
with open(kept, "w") as f:
    f.write("\n".join(names) + "\n")
# Groups of sections go: the linker would drop what a program has, too, and with it what local symbols are in.
subprocess.run([*link, "-nostdlib", "-r", "-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,--force-group-allocation", *(f"-Wl,-u,{n}" for n in names),
                "-o", whole], check=True)
subprocess.run([objcopy, f"--keep-global-symbols={kept}", "--strip-unneeded", whole], check=True)
if os.path.exists(out):
    os.remove(out)
subprocess.run([ar, "rcsD", out, whole], check=True)
for path in (whole, kept):
    os.remove(path)
