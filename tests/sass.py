"""sass.py TARGET A.ptx B.ptx: ptxas makes the same machine code of both, whatever their debug information (where ptxas is installed)."""
import os, shutil, struct, subprocess, sys, tempfile


def sections(path):
    """Contents by name of an ELF64 file's sections."""
    data = open(path, "rb").read()
    at, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]   # name, type, flags, address, offset, bytes
    name = lambda h: data[heads[names][4] + h[0]:].split(b"\0", 1)[0].decode()
    return {name(h): data[h[4]:h[4] + h[5]] for h in heads if h[1] != 8}


def machine_code(target, ptx):
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "cubin")
        subprocess.run(["ptxas", "-arch=" + target, "-lineinfo", ptx, "-o", cubin], check=True)
        return {name: code for name, code in sections(cubin).items() if name.startswith(".text")}


if shutil.which("ptxas"):
    a, b = (machine_code(sys.argv[1], p) for p in sys.argv[2:4])
    if not a or a != b:
        sys.exit(f"the code of {sys.argv[2]} ({sum(map(len, a.values()))} bytes) and {sys.argv[3]} ({sum(map(len, b.values()))}) differs")
