"""What plants of faults in kernels with teams share: edits of their text, and runs in which interpreter and simulator must find them."""
import os, re, subprocess, sys, tempfile

RACE = "race|async|uninit"
DEADLOCK = r"deadlock: no team can go on: region 0 .*; region 1 waits at line \d+ for the end of phase"


def cut(text, pattern, at=0):
    """Without the at-th line that matches."""
    lines = text.split("\n")
    hits = [i for i, line in enumerate(lines) if re.search(pattern, line)]
    return "\n".join(lines[:hits[at]] + [""] + lines[hits[at] + 1:])


def put(text, pattern, by, at=0):
    hits = list(re.finditer(pattern, text, re.M))
    return text[:hits[at].start()] + hits[at].expand(by) + text[hits[at].end():]


def move(text, pattern, before, at=0):
    """The at-th line that matches, in front of the one that matches `before`."""
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if re.search(pattern, line)][at]
    line, to = lines.pop(at), next(i for i, line in enumerate(lines) if re.search(before, line))
    return "\n".join(lines[:to] + [line] + lines[to:])


def schedule(build, path, text):
    """text behind the last pass, with the comments that say how it is run."""
    with open(path, "w") as f:
        f.write(text)
    r = subprocess.run([os.path.join(build, "bin", "tilec"), path, "--emit=sched", "--target=sm_90a"], check=True, capture_output=True, text=True)
    return "// barriers\n" + "".join(line for line in text.splitlines(True) if line.startswith("//")) + r.stdout


def found(build, path, targets, *options):
    tool = os.path.join(os.path.abspath(build), "tests", "check_kernel")
    ways = [f"--way={w}" for w in targets]
    return subprocess.run([tool, *ways, "--planted", *options, path], capture_output=True, text=True).stdout.splitlines()


def at_line(path, line, ops):
    """Is the line of the file that a finding names one of these ops?"""
    numbers = re.findall(re.escape(path) + r":(\d+)", line[len(path):])
    lines = open(path).read().split("\n")
    return any(re.search(rf"\b({ops})\b", lines[int(n) - 1]) for n in numbers)


def wrong(path, findings, targets, words, kind, ops):
    """What the findings of a planted fault lack; None: nothing."""
    read = [f for f in findings if f.startswith(f"{path}: read: fault:")]
    if not read or not re.search(words, read[0]) or not at_line(path, read[0], ops):
        return f"the interpreter says {read or 'nothing'}"
    for target in targets:
        sim = [f for f in findings if f.startswith(f"{path}: {target} sim:")]
        if not sim or not re.match(rf"({kind}):", sim[0].split(" sim: ")[1]) or not at_line(path, sim[0], ops):
            return f"the simulator says on {target} {sim or 'nothing'}"
    return None


def check(plants, scheduled, targets, source="tir"):
    """Runs all, as the command line says; the status to exit with. source: what the kernels are, tir or tile. Scheduled ones are tir."""
    build, verbose, bad = sys.argv[1], "--verbose" in sys.argv, 0
    with tempfile.TemporaryDirectory() as folder:

        def run(path, text, *options):
            with open(path, "w") as f:
                f.write(text)
            return found(build, path, targets, *options)

        paths = [os.path.join(folder, f"k.{kind}") for kind in (source, "tir")]
        sched = [(name, schedule(build, paths[0], text), edit, *rest) for name, text, edit, *rest in scheduled]
        all_of_them = [(paths[0], *p) for p in plants] + [(paths[1], name, text, edit(text), *rest) for name, text, edit, *rest in sched]
        for path, name, before, text, words, kind, ops in all_of_them:
            before = run(path, before, f"--save={folder}")
            findings = run(path, text, f"--against={folder}")
            why = f"it is not right to begin with: {before}" if before else wrong(path, findings, targets, words, kind, ops)
            bad += why is not None
            if why or verbose:
                print(f"{'WRONG' if why else 'ok'}: {name}{': ' + why if why else ''}", *(findings if verbose else []), sep="\n  ")
    print(f"{len(plants) + len(scheduled)} plants, {bad} wrong")
    return bad != 0
