"""tables.py TILEC [--check]: write docs/tables.md from the compiler's own tables, or check that it is up to date."""
import os, subprocess, sys

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "tables.md")
text = "# Tables\n\nPrinted by `tilec --print-...`; written by scripts/tables.py.\n"
for name, title in (("passes", "Passes"), ("ops", "Ops"), ("targets", "Targets"), ("dtypes", "Types"), ("diags", "Diagnostics")):
    text += f"\n## {title}\n\n" + subprocess.run([sys.argv[1], f"--print-{name}"], check=True, capture_output=True, text=True).stdout
if "--check" in sys.argv:
    if open(path).read() != text:
        sys.exit("docs/tables.md is out of date: run scripts/python scripts/tables.py build/bin/tilec")
else:
    open(path, "w").write(text)
