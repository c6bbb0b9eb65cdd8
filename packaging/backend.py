"""The wheel: hooks of PEP 517, which pip and build call, and what CMake's target `wheel` runs,

    backend.py BUILD/wheel/tilec BUILD/lib/_tilec.abi3.so FOLDER

which packs the Python sources, the library, the extension and the tools into FOLDER/tilec-VERSION-cp39-abi3-manylinux_2_N_MACHINE.whl.
What auditwheel would look at is looked at here: libraries that are needed, versions of the C library's symbols, where libraries are looked
for, that the extension asks for nothing outside of the stable ABI, and the size."""
import base64, glob, hashlib, os, platform, re, shutil, subprocess, sys, tarfile, zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LARGEST = 15_000_000
# Of the C library; all else has to be inside.
NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
STABLE = re.compile(r"Py(Arg|Buildvalue|Bytes|Callable|CFunction|CMethod|Dict|Err|Eval|Exc|Float|GILState|Import|List|Long|Mem|Method|Module|Number|Object|"
                    r"Sequence|Slice|Tuple|Type|Unicode|Bool|Capsule)_\w+|Py_(BuildValue|DecRef|IncRef|IsInitialized|Is\w+)|_Py_(NoneStruct|Dealloc|TrueStruct|FalseStruct)|_PyObject_New|"
                    r"PyEval_\w+|_Py_NotImplementedStruct|PyVectorcall_\w+")


def version():
    text = open(os.path.join(ROOT, "runtime", "version.h")).read()
    return ".".join(re.search(rf"define TILEC_VERSION_{w} (\d+)", text)[1] for w in ("MAJOR", "MINOR", "PATCH"))


def project():
    import tomllib
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as f:
        return tomllib.load(f)["project"]


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def audit(path):
    """(version of the C library that it needs, what is wrong with it)."""
    wrong, name = [], os.path.basename(path)
    dynamic = said("readelf", "-dW", path)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    ours = {n for n in needed if n.startswith("libtilec.so.")}
    if more := needed - NEEDED - ours:
        wrong.append(f"{name} needs {', '.join(sorted(more))}")
    for where in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
        if where != "$ORIGIN/..":
            wrong.append(f"{name} looks for libraries in {where}")
    if ours and "$ORIGIN/.." not in dynamic:
        wrong.append(f"{name} would not find {', '.join(ours)}")
    if name.startswith("_tilec"):
        asked = re.findall(r" UND (_?Py\w+)", said("readelf", "--dyn-syms", "-W", path))
        wrong += [f"{name} asks for {s}, which is not of the stable ABI" for s in asked if not STABLE.fullmatch(s)]
    versions = re.findall(r"GLIBC_2\.(\d+)", said("readelf", "-VW", path))
    relr = 36 if "(RELR)" in dynamic else 0
    return max(map(int, versions + [relr]), default=17), wrong


def metadata(p):
    lines = ["Metadata-Version: 2.4", f"Name: {p['name']}", f"Version: {version()}", f"Summary: {p['description']}", f"License-Expression: {p['license']}",
             "License-File: LICENSE", "License-File: NOTICE", f"Keywords: {','.join(p['keywords'])}", f"Requires-Python: {p['requires-python']}"]
    lines += [f"Classifier: {c}" for c in p["classifiers"]] + [f"Requires-Dist: {d}" for d in p["dependencies"]]
    return "\n".join(lines + ["Description-Content-Type: text/markdown", "", open(os.path.join(ROOT, p["readme"])).read()])


class Wheel:
    """A zip file whose last entry lists all others with their digests. Files have one date: the same contents are the same bytes."""

    def __init__(self, path):
        self.zip, self.rows = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9), []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}")

    def file(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.add(name, f.read(), mode)

    def close(self, record):
        self.add(record, ("\n".join(self.rows + [f"{record},,"]) + "\n").encode())
        self.zip.close()


def pack(package, extension, folder):
    """Write the wheel and return its name."""
    binaries = [os.path.realpath(glob.glob(f"{package}/libtilec.so.*")[0]), extension, *sorted(glob.glob(f"{package}/bin/*"))]
    found = [audit(b) for b in binaries]
    wrong = [w for _, ws in found for w in ws]
    p, tag = project(), f"cp39-abi3-manylinux_2_{max(n for n, _ in found)}_{platform.machine()}"
    name, info = f"tilec-{version()}-{tag}.whl", f"tilec-{version()}.dist-info"
    w = Wheel(os.path.join(folder, name))
    for source in sorted(glob.glob(os.path.join(ROOT, "tools", "tilec", "*.py"))):
        w.file(f"tilec/{os.path.basename(source)}", source)
    w.add("tilec/py.typed", b"")
    w.file(f"tilec/{os.path.basename(binaries[0])}", binaries[0], 0o755)
    w.file("tilec/_tilec.abi3.so", extension, 0o755)
    for tool in binaries[2:]:
        w.file(f"tilec/bin/{os.path.basename(tool)}", tool, 0o755)
    w.add(f"{info}/METADATA", metadata(p).encode())
    w.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tilec {version()}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    w.add(f"{info}/entry_points.txt", ("[console_scripts]\n" + "".join(f"{n} = {at}\n" for n, at in p["scripts"].items())).encode())
    for licence in ("LICENSE", "packaging/NOTICE"):
        w.file(f"{info}/licenses/{os.path.basename(licence)}", os.path.join(ROOT, licence))
    w.close(f"{info}/RECORD")
    size = os.path.getsize(os.path.join(folder, name))
    if size > LARGEST:
        wrong.append(f"{name} has {size} bytes, more than {LARGEST}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{name}: {size} bytes")
    return name


# ---- what pip and build call ----

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """TILEC_BUILD names a build folder; otherwise build-wheel."""
    build = os.environ.get("TILEC_BUILD") or os.path.join(ROOT, "build-wheel")
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", build, "--target", "wheel"], check=True)
    made = max(glob.glob(os.path.join(build, "wheel", f"tilec-{version()}-*.whl")), key=os.path.getmtime)
    shutil.copy(made, wheel_directory)
    return os.path.basename(made)


def build_sdist(sdist_directory, config_settings=None):
    name = f"tilec-{version()}"
    with tarfile.open(os.path.join(sdist_directory, f"{name}.tar.gz"), "w:gz") as tar:
        for path in said("git", "-C", ROOT, "ls-files").splitlines():
            tar.add(os.path.join(ROOT, path), f"{name}/{path}")
    return f"{name}.tar.gz"


if __name__ == "__main__":
    pack(*sys.argv[1:])
