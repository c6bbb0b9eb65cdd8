"""examples.py TILEC FILE.md: every ```tile block compiles to PTX, every ```tile error block fails with an error in itself.

A ```dump OPTION... block shows what `tilec OPTION...` prints (PTX, dumps, remarks) of the ```tile block before it: each of its lines stands
there, in this order, with any number of lines between. Names of values and of layouts are the page's own, `...` is any part of a line."""
import re, subprocess, sys, tempfile


def plain(line):
    """A line without what the page may call otherwise, blanks or where a value came from."""
    line = re.sub(r"%\w+", "%", line)
    line = re.sub(r"#\w+", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def pattern(line):
    return re.compile(".*".join(re.escape(part.strip()) for part in plain(line).split("...")) + "$")


def missing(shown, printed):
    """The first line of `shown` that does not come in `printed` behind those before it, or None."""
    rest = iter([plain(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        if plain(line) and not any(pattern(line).match(other) for other in rest):
            return line
    return None


def run(tilec, source, options):
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as f:
        f.write(source)
        f.flush()
        return subprocess.run([tilec, f.name, *options], capture_output=True, text=True)


def check(tilec, kind, body, source):
    """What is wrong with a block, or None."""
    if kind.startswith("dump"):
        out = run(tilec, source, kind.split()[1:])
        line = missing(body, out.stdout + out.stderr)
        return f"not printed, or not behind the lines above: {line}" if out.returncode or line is not None else None
    out = run(tilec, body, ["--verify", "-o", "/dev/null"])
    return f"exit status {out.returncode}\n{out.stderr}" if out.returncode != (1 if kind == "tile error" else 0) else None


def main(tilec, path):
    text = open(path).read()
    bad = count = 0
    source = ""
    for m in re.finditer(r"^```(tile error|tile|dump [^\n]*)\n(.*?)^```$", text, re.M | re.S):
        count += 1
        wrong = check(tilec, m.group(1), m.group(2), source)
        source = m.group(2) if m.group(1) == "tile" else source
        if wrong:
            bad += 1
            print(f"{path}:{text.count(chr(10), 0, m.start()) + 2}: {wrong}")
    print(f"{count} examples, {bad} wrong")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
