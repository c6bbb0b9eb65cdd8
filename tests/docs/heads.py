"""heads.py FOLDER SHARE/OF: every `tilerun` line in the comments of a folder's .tile files runs on the simulator as it stands, but for those of other
shares, and leaves the grid to the kernel, which says it."""
import glob, os, re, subprocess, sys

folder, (share, of) = sys.argv[1], map(int, sys.argv[2].split("/"))
commands = []
for path in sorted(glob.glob(f"{folder}/*.tile")):
    text = re.sub(r"\\\n//", "", open(path).read())          # a line goes on behind a backslash
    commands += [(os.path.basename(path), line.split(" # ")[0]) for line in re.findall(r"^// +(tilerun .*)", text, re.M)]
bad = [f"{name}: the grid is the kernel's: {line}" for name, line in commands if "--grid" in line]
for name, line in commands[share::of]:
    run = subprocess.run(["bash", "-c", line + " --device=sim"], cwd=folder, capture_output=True, text=True)
    if run.returncode:
        bad.append(f"{name}: {line}\n{run.stderr.strip()}")
if not commands[share::of]:
    bad.append(f"{folder}: nothing to run")
print("\n".join(bad))
sys.exit(1 if bad else 0)
