"""wheel.py BUILD: make the wheel (which looks at what it needs, and at its size), and run kernels with nothing but what is in it: its files are those
of its RECORD, the library is its own, launches go through its extension, its commands run. scripts/package-test installs it by pip."""
import base64, csv, glob, hashlib, io, os, subprocess, sys, tempfile, zipfile

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = """
import os, sys
import numpy as np
import tilec
here = os.path.dirname(tilec.__file__)
assert here.startswith(sys.argv[1]) and os.path.dirname(tilec.lib._name) == here, (here, tilec.lib._name)
assert tilec.launches_by == "extension", tilec.launches_by
axpy = tilec.load(sys.argv[2]).axpy
x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
axpy(3, x, y, 300)
assert (y == 3 * x + 1).all()
from tilec import _tools
sys.argv = ["tilec", "--version"]
_tools.tilec()
"""


def run(*command, **env):
    keep = {n: v for n, v in os.environ.items() if not n.startswith(("TILEC_LIB", "TILEC_EXTENSION", "LD_LIBRARY_PATH", "PYTHONPATH"))}
    r = subprocess.run(command, env={**keep, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode:
        sys.exit(f"FAILED {' '.join(command)}\n{r.stdout[-2000:]}")
    return r.stdout


def unpack(path, to):
    """Its files, each of which is in RECORD with its digest."""
    with zipfile.ZipFile(path) as z:
        record, = [n for n in z.namelist() if n.endswith(".dist-info/RECORD")]
        rows = {name: digest for name, digest, _ in csv.reader(io.TextIOWrapper(z.open(record)))}
        assert set(rows) == set(z.namelist()), set(rows) ^ set(z.namelist())
        for name, digest in rows.items():
            if name != record:
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(z.read(name)).digest()).rstrip(b"=").decode(), name
            at = z.extract(name, to)
            os.chmod(at, z.getinfo(name).external_attr >> 16 & 0o777)
        return set(rows)


print(run("cmake", "--build", BUILD, "--target", "wheel").strip().splitlines()[-1])
made = max(glob.glob(f"{BUILD}/wheel/tilec-*.whl"), key=os.path.getmtime)
with tempfile.TemporaryDirectory() as folder:
    files = unpack(made, folder)
    for wanted in ("tilec/__init__.py", "tilec/py.typed", "tilec/_tilec.abi3.so", "tilec/bin/tilec", "tilec/bin/tilerun"):
        assert wanted in files, wanted
    assert sum("licenses/" in f for f in files) == 2, files
    said = run(sys.executable, "-c", PROGRAM, folder, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/embed/axpy.tile"),
               PYTHONPATH=folder, TILEC_CACHE="0")
    assert said.startswith("tilec "), said
    print(said.strip())
