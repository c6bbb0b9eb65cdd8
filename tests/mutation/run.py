"""run.py [OPTION...] [WHICH...]: make one small mistake at a time, and see whether the suite notices. See docs/fuzzing.md; table.py has the
form of the table. WHICH: an ID, a pattern of IDs (`I*`), the beginning of a path (`passes/`); all rows without it.

What is changed is a copy of the tree (build-mutation/tree), with its own build. For each row that has no result as it reads at present:
change, build, run entries of the suite until one fails, those near the file first, restore. An entry that fails must have passed on the
unchanged copy: it is asked once for each state of the tree. A process that takes too long or too much memory is ended, and its entry has
failed. results.tsv is written after each row: a run can be stopped, and goes on where it was."""
import argparse, fcntl, fnmatch, glob, hashlib, json, os, re, resource, shutil, signal, subprocess, sys, time
import table

root = table.root
# Entries that look at the text of the sources, at the table, or at which figures were taken of the present PTX: they fail without a mistake.
LEFT_OUT = r"lit\.(style|docs)|mutation\.table"
# What is near a file, by the first pattern that fits: folders of lit tests, cases of the entry `kernels` (--filter of its script), and
# expressions for names of entries.
NEAR = [
    (r"passes/canon_\w+\.c|passes/fold\.c", ["tests/passes/canon", r"diff\.identities", r"lit\.passes", r"diff\.passes"]),
    (r"passes/place_reshape\.c", ["tests/passes/assign_layout", r"diff\.(ragged|passes)", "kernels:cut_reshaped"]),
    (r"passes/place_\w+\.c", ["tests/passes/assign_layout", r"diff\.(ragged|passes)", r"lit\.passes"]),
    (r"passes/version_edges\.c", [r"tests/passes/version_edges", r"diff\.edges", r"lit\.(diag|passes)", r"diff\.passes"]),
    (r"passes/(flatten_loops|pipeline_\w+|prefetch_slices|loop_slice|licm)\.c", [r"tests/passes/\1", r"diff\.stages",
                                                                                 r"lit\.(diag|passes)", r"diff\.passes"]),
    (r"passes/(walk_grid|deal)\.c", ["tests/passes/walk_grid", r"diff\.stays", "kernels:attention("]),
    (r"passes/(overlap_products|loop_stages|pingpong|roles|ring|carried|held|kept_boxes|company)\.c", ["tests/passes/pipeline_loops", r"(diff|faults)\.overlap",
                                                                         r"diff\.(products|stages|persistent)",
                                                                        r"lit\.(diag|passes)"]),
    (r"passes/(\w+_atomics)\.c", [r"tests/passes/\1", r"diff\.atomics", r"lit\.diag", r"diff\.passes"]),
    (r"passes/(boxes|(plain|lower|find)_tensors)\.c", [*(f"tests/passes/{p}_tensors" for p in ("plain", "lower", "find")),
                                                       r"diff\.(tensors|boxes|tma|products)", r"lit\.(passes|diag)"]),
    (r"passes/(\w+)\.c", [r"tests/passes/\1", r"unit\.(tables|alloc_shared)_test", r"lit\.passes", r"diff\.passes", r"faults.*"]),
    (r"codegen/(lower_)?wgmma\.c|ir/\w*wgmma\.c|layout/layout_panels\.c", [r"lit\.(codegen|ir)", r"faults\.wgmma", r"diff\.(wgmma|products)"]),
    (r"codegen/(lower_tma|params)\.c|ir/\w*tma\.c", [r"lit\.(codegen|ir|diag)", r"faults\.tma", r"diff\.(tma|tensors)", r"runtime/.*"]),
    (r"codegen/(team|lower_team|dist)\.c", [r"lit\.codegen", r"diff\.(teams|tma|codegen)", r"faults\.(teams|tma)"]),
    (r"ir/rehearse\w*\.c", [r"tests/diag", r"diff\.(team|clusters).*"]),
    (r"ir/(interp_teams|team|team_order)\.c", [r"faults\.(teams|tma|clusters)", r"diff\.clusters", r"lit\.(ir|diag)", r"diff\.team.*"]),
    (r"layout/layout_cut\.c", [r"unit\.(cut|layout)_test", r"diff\.cut"]),
    (r"codegen/(buffer|lower_gather|lower_shared)\.c", [r"diff\.(cut|layouts)", r"lit\.codegen", r"diff\.(codegen|ragged)"]),
    (r"layout/", [r"unit\.layout_test", r"diff\.layouts", r"lit\.(passes|codegen)", r"diff\.codegen"]),
    (r"ir/wgmma_dot\.c", ["tests/passes/pipeline_loops", r"lit\.(diag|passes)", r"diff\.products"]),
    (r"ir/(affine|unobserved|launch_value)\.c", ["tests/passes/find_tensors", r"diff\.boxes", r"lit\.(ir|diag)"]),
    (r"ir/analysis", [r"unit\.analysis_test", r"lit\.passes"]),
    (r"ir/interp|base/fp", [r"unit\.(interp|fp)_test", "faults", r"diff\.codegen", r"numbers\..*"]),
    (r"ir/access", ["tests/passes/load_on_demand", r"lit\.(ir|codegen)"]),
    (r"ir/|base/", [r"unit\.(ir|diag|tables)_test", r"lit\.(ir|diag|codegen)"]),
    (r"frontend/tune", [r"unit\.tune_test", r"lit\.cli"]),
    (r"frontend/", [r"diff\.constants", r"lit\.(frontend|diag)"]),
    (r"codegen/(cast|bits|lower_elem|lower_packed)", [r"lit\.codegen", r"diff\.codegen", r"numbers\..*"]),
    (r"codegen/", [r"diff\.layouts", r"lit\.codegen", r"diff\.(codegen|ragged)"]),
    (r"runtime/sim/", ["sim", "facts", r"corpus\.ptx", "runtime/test_sim", r"faults.*"]),
    (r"runtime/approx", [r"numbers\..*"]),
    (r"runtime/launch_tensor", ["runtime/test_tensor", "kernels:im2col|copy_boxes|matmul_tma", "runtime/.*"]),
    (r"runtime/", ["runtime/.*"]),
    (r"driver/search", ["tests/cli"]),
    (r"driver/", ["runtime/test_(null|cache|jit)", r"unit\.tune_test", r"lit\.cli"]),
    (r"stdlib/random", ["kernels:random|dropout", r"lit\.frontend"]),
    (r"stdlib/derivatives", ["kernels:derivative"]),
    (r"stdlib/look_back", ["kernels:look_back|prefix_sum|recurrence|select"]),
    (r"stdlib/sparse", ["kernels:sparse"]),
    (r"stdlib/quant", ["kernels:quantise|scaled|powers_of_two", r"lit\.frontend"]),
    (r"stdlib/nn", ["kernels:nn_|norm|softmax|cross_entropy", r"lit\.frontend"]),
    (r"stdlib/(scan|sort)", ["kernels:scan|fold|best|sort|truths|order", r"diff\.layouts", r"lit\.frontend"]),
    (r"stdlib/schedule", ["kernels:order|shares|stream_k|grouped|persistent", r"lit\.frontend"]),
    (r"stdlib/block", ["kernels:array_blocks", r"lit\.frontend"]),
    (r"stdlib/window", [r"diff\.t(ensors|ma)", "kernels:im2col"]),
    (r"stdlib/prelude", ["kernels:rounded_up|shape|elementwise", r"lit\.frontend"]),
    (r"stdlib/", [r"lit\.frontend", "maths", "kernels"]),
    (r"examples/llama/", [r"llama\.(readers_test|tokenizer_test|tiny)", r"corpus\.weights"]),
    (r"tools/\w+\.py", [r"python\..*"]),
    (r"tools/", ["runtime/test_tools", r"lit\.cli", r"corpus\.args", r"python\..*"]),
]
# What a step runs, by its name; a program of the build that is itself the step needs no row. Others need all that there is.
PROGRAMS = [(r"llama\.tiny", ["bin/llama"]), (r"tests/.*|lit\..*", ["bin/tilec", "bin/tilerun"]),
            (r"diff\..*|faults.*|random", ["bin/tilec", "tests/check_kernel"]),
            (r"kernels.*", ["lib/libtilec.so", "bin/tilerun"])]
UNKNOWN = 60        # seconds, as long as an entry was not run yet
BUILD_LIMIT = 1800  # seconds
MEMORY = 8 << 30    # bytes of address space of one process


# ---- processes ----
def end_session(leader):
    """End what a command left running: all processes of its session."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(path).read().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            pass   # ended meanwhile


def limit():
    os.nice(max(0, 15 - os.nice(0)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def execute(command, log, seconds, environment):
    """Exit status, None when it took too long; what it says is in the file `log`."""
    with open(log, "w") as out:
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
                             start_new_session=True, preexec_fn=limit)
        try:
            return p.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_session(p.pid)
            p.wait()


# ---- the copy ----
class Copy:
    """A copy of the tree, its build, the suite's entries with their commands; the seconds that entries take, and which of them the
    unchanged copy passes."""

    def __init__(self, folder):
        self.folder, self.tree = folder, os.path.join(folder, "tree")
        self.build, self.log = os.path.join(self.tree, "build"), os.path.join(folder, "output.txt")
        self.environment = dict(os.environ, CCACHE_BASEDIR=self.tree, CCACHE_NOHASHDIR="1", TILEC_CACHE_DIR=os.path.join(folder, "cache"))
        self.notes = os.path.join(folder, "notes.json")
        self.seconds, self.passed, self.key, self.commands = {}, [], None, {}

    def sync(self):
        """Make it what the tree is, with what is not committed. A file that is the same keeps its time."""
        listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=root, capture_output=True, text=True,
                                check=True).stdout
        names = sorted(n for n in listed.split("\0") if os.path.isfile(os.path.join(root, n)) and not n.startswith("tests/mutation/"))
        digest = hashlib.sha256()
        os.makedirs(os.path.join(self.tree, "tests", "mutation"), exist_ok=True)      # named by what looks at names
        for name in names:
            source, target = os.path.join(root, name), os.path.join(self.tree, name)
            data = open(source, "rb").read()
            digest.update(name.encode() + b"\0" + data)
            if not os.path.exists(target) or open(target, "rb").read() != data:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                open(target, "wb").write(data)
            shutil.copymode(source, target)
        for at, folders, files in os.walk(self.tree):
            folders[:] = [f for f in folders if f != "__pycache__" and os.path.join(at, f) != self.build]
            for path in (os.path.join(at, f) for f in files):
                if os.path.relpath(path, self.tree) not in names:
                    os.remove(path)
        self.key = digest.hexdigest()
        known = json.load(open(self.notes)) if os.path.exists(self.notes) else {}
        self.seconds = known.get("seconds", {})
        self.passed = known["passed"] if known.get("key") == self.key else []

    def note(self):
        json.dump({"key": self.key, "passed": self.passed, "seconds": self.seconds}, open(self.notes, "w"))

    def run(self, command, seconds):
        return execute(command, self.log, seconds, self.environment)

    def said(self):
        return open(self.log, errors="replace").read()

    def configure(self):
        return self.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
                         "-DPython3_EXECUTABLE=" + sys.executable], BUILD_LIMIT) == 0

    def make(self, *targets):
        return self.run(["ninja", "-C", self.build, *targets], BUILD_LIMIT) == 0

    def read_entries(self):
        said = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
        self.commands = {t["name"]: t["command"] for t in json.loads(said)["tests"] if not re.fullmatch(LEFT_OUT, t["name"])}

    def make_for(self, step):
        """Build what a step runs."""
        program = os.path.relpath(self.commands[step][0], self.build) if step in self.commands else ".."
        named = next((programs for pattern, programs in PROGRAMS if re.fullmatch(pattern, step)), [])
        return self.make(*(named if program.startswith("..") else [program]))

    def passes(self, step):
        """Whether an entry, a folder of lit tests, or some kernels, pass in time."""
        if step.startswith("tests/"):
            command = ["lit-22", "-q", "-j2", "--no-progress-bar", f"{self.build}/{step}"]
        elif step.startswith("kernels:"):
            command = [sys.executable, f"{self.tree}/tests/kernels/run.py", "--bin", f"{self.build}/bin", "--filter", step[8:]]
        else:
            command = ["ctest", "--test-dir", self.build, "--output-on-failure", "-R", f"^{re.escape(step)}$"]
        start = time.monotonic()
        status = self.run(command, 60 + 8 * self.seconds.get(step, UNKNOWN))
        if status == 0:
            self.seconds[step] = round(time.monotonic() - start, 1)
        return status == 0


# ---- one mutant ----
def steps_for(copy, row, last, near_only, by):
    """What to run, in order: what killed the row last, what is near, the rest, quick ones first."""
    if by:
        return [by]
    entries = list(copy.commands)
    cost = lambda e: copy.seconds.get(e, UNKNOWN)
    m, near = next(((m, near) for pattern, near in NEAR if (m := re.match(pattern, row.path))), (None, []))
    steps = [last] if last in entries or last.startswith(("tests/", "kernels:")) else []
    for text in near:
        text = m.expand(text) if "\\1" in text else text
        if text.startswith("tests/"):
            steps += [text] if os.path.isdir(os.path.join(copy.tree, text)) else []
        elif text.startswith("kernels:"):
            steps.append(text)
        else:
            steps += sorted((e for e in entries if re.fullmatch(text, e)), key=cost)
    steps += [] if near_only else sorted(entries, key=cost)
    return list(dict.fromkeys(steps))


def mutate(copy, row, last, near_only, by):
    """(result, by): `killed` by an entry, `survived`, `broken` (it does not build), `left` (survived what was asked for)."""
    path = os.path.join(copy.tree, row.path)
    source = open(path).read()
    changed, _ = row.apply(source)
    open(path, "w").write(changed)
    try:
        for step in steps_for(copy, row, last, near_only, by):
            if not copy.make_for(step):
                return "broken", next((l for l in copy.said().split("\n") if "error" in l), "it does not build in time")
            if not copy.passes(step):
                shutil.copyfile(copy.log, os.path.join(copy.folder, row.name + ".log"))
                return "killed", step
        return ("left" if near_only or by else "survived"), ""
    finally:
        open(path, "w").write(source)


def convincing(copy, step):
    """Whether a step passes on the unchanged copy."""
    if step not in copy.passed and copy.make_for(step) and copy.passes(step):
        copy.passed.append(step)
    return step in copy.passed


def commit():
    said = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=root, capture_output=True, text=True, check=True)
    return said.stdout.strip()


def run_rows(copy, rows, mine, a):
    """Run the chosen rows; returns whether all had a result that could be believed."""
    found, start, good = table.results(), time.monotonic(), True
    for row in mine:
        if time.monotonic() - start > a.seconds:
            break
        known, began = found.get(row.name, {}), time.monotonic()
        result, by = mutate(copy, row, known.get("by", ""), a.near, a.by)
        if result == "killed" and not convincing(copy, by):
            result, by = "broken", f"{by} fails on the unchanged tree, too"
        copy.note()
        seconds = round(time.monotonic() - began)
        print(f"{row.name:8} {result} {by} {seconds} s: {' '.join(row.says)}", flush=True)
        good &= result != "broken"
        if result in ("killed", "survived"):
            found[row.name] = dict(zip(table.COLUMNS, (row.name, result, by, str(seconds), commit(), row.text())))
            table.record(found, rows)
    return good


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("which", nargs="*", metavar="WHICH")
    a.add_argument("--check", action="store_true", help="only see whether the table applies to the tree, and the results to the table")
    a.add_argument("--list", action="store_true", help="only print the rows with their results")
    a.add_argument("--again", action="store_true", help="rows that have a result, too; what killed them last is run first")
    a.add_argument("--near", action="store_true", help="only entries near the file, and no ptxas; what survives them has no result yet")
    a.add_argument("--by", metavar="STEP", help="only this: an entry of ctest, a lit test or a folder of them (tests/passes/cse), or some "
                   "kernels (kernels:sort|scan); what survives it has no result yet")
    a.add_argument("--seconds", type=float, default=1e9, metavar="N", help="begin no mutant after N seconds")
    a.add_argument("--copy", default=os.path.join(root, "build-mutation"), metavar="FOLDER", help="where the copy lies")
    return a.parse_args()


def stop(number, frame):
    sys.exit(128 + number)      # through `finally`: nothing is left running, and the copy is whole


def main():
    a = arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    rows, bad = table.check()
    if a.check or bad and not a.list:
        print("\n".join(bad) or f"{len(rows)} rows apply")
        if a.check:
            return bool(bad)
    found = table.results()
    fresh = lambda row: row.name in found and found[row.name]["text"] == row.text()
    wanted = [r for r in rows if not a.which or any(fnmatch.fnmatchcase(r.name, w) or r.path.startswith(w) for w in a.which)]
    if a.list:
        for row in wanted:
            r = found[row.name] if fresh(row) else {"result": "-", "by": ""}
            print(f"{row.name:8} {r['result']:8} {r['by']:20} {row.path}: {' '.join(row.says)}")
        return 0
    copy = Copy(a.copy)
    if a.near:
        folders = [f for f in os.environ["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(f, "ptxas"))]
        copy.environment["PATH"] = os.pathsep.join(folders)
    os.makedirs(copy.tree, exist_ok=True)
    alone = open(os.path.join(copy.folder, "lock"), "w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"another run works in {copy.folder}: name another folder by --copy")
        return 1
    copy.sync()
    if not copy.configure() or not copy.make():
        print(f"the unchanged tree does not build: {copy.log}")
        return 1
    copy.read_entries()
    return not run_rows(copy, rows, [r for r in wanted if not r.wrong() and (a.again or not fresh(r))], a)


if __name__ == "__main__":
    sys.exit(main())
