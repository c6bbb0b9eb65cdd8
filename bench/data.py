"""Figures as data: what a benchmark run writes, how runs are compared, and what became of the code that they measured.

A run is a file of JSON lines, bench/runs/DATE-DEVICE-COMMIT.jsonl once it is kept:

- the first, {"run": ...}: date (UTC), commit (null: not recorded) and whether the tree was dirty, device, driver, versions, command, note;
- a line for each row: section, case, unit, better ("more" or "less"), sides, peers, work, kernels, extra.
  sides: {name: {value, low, high, config}}, in the row's unit; low and high are the 20th and 80th percentile of the measurement, or null
  where they were not recorded. peers: which of the sides are not ours, the one to be compared with first.
  kernels: what our side ran: file, kernel, defines, target, facts (as tilec's --assume takes them), and the SHA-256 of its PTX
  without line information;
- the last, {"end": ...}: seconds of each section, what was left out and why, what failed. A run without it was cut short.

A row is as true as the PTX it measured: `stale` compiles its kernels again with the compiler at hand and compares the digests. Other PTX may be the same
machine code (registers numbered otherwise, a load of a parameter earlier): bench/same.jsonl has pairs of digests for which ptxas gave the same bytes,
written by `scripts/bench same`."""
import concurrent.futures
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import tempfile
import time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = os.path.join(root, "bench", "runs")
SAME = os.path.join(root, "bench", "same.jsonl")


# ---- writing ----

def commit():
    """(commit, dirty) of what runs: of the binaries that scripts/stage put into .gpu, if they are used, else of this tree; (None, None)
    where nothing says."""
    staged = os.path.join(root, ".gpu", "commit")
    if os.path.join(root, ".gpu") in os.environ.get("TILEC_LIB", "") and os.path.exists(staged):
        with open(staged) as f:
            words = f.read().split()
        return words[0], len(words) > 1

    def git(*args):
        return subprocess.run(["git", "-C", root, *args], capture_output=True, text=True)
    try:
        head = git("rev-parse", "HEAD")
        if not head.returncode:
            return head.stdout.strip(), bool(git("status", "--porcelain", "--untracked-files=no").stdout.strip())
    except OSError:
        pass
    return None, None


def side(value, low=None, high=None, config=""):
    return {"value": value, "low": low, "high": high, "config": str(config)}


def of_times(times, work=None, scale=1.0, config=""):
    """A side from a sorted or unsorted list of times in ms (or of (median, low, high)): work / ms * scale, or ms * scale without work."""
    low, mid, high = times if isinstance(times, tuple) else quantiles(times)
    if work:
        return side(work / mid * scale, work / high * scale, work / low * scale, config)
    return side(mid * scale, low * scale, high * scale, config)


def quantiles(values):
    """(20th percentile, median, 80th percentile)."""
    v = sorted(values)
    at = lambda q: v[min(len(v) - 1, int(q * len(v)))]
    return at(0.2), (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2, at(0.8)


class Writer:
    """A run being made: every row is on disk as soon as it is known."""

    def __init__(self, path, **head):
        sha, dirty = commit()
        self.file, self.rows = open(path, "w"), []
        self.line({"run": {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": sha, "dirty": dirty, **head}})

    def line(self, thing):
        self.file.write(json.dumps(thing) + "\n")
        self.file.flush()

    def row(self, section, case, unit, sides, peers=(), better="more", work=None, kernels=(), **extra):
        row = {"section": section, "case": case, "unit": unit, "better": better, "sides": sides, "peers": list(peers), "work": work,
               "kernels": list(kernels), "extra": extra}
        self.rows.append(row)
        self.line(row)
        return row

    def end(self, seconds, left_out, failures):
        tail = {"seconds": seconds, "left_out": left_out, "failures": failures}
        self.line({"end": tail})
        self.file.close()
        return tail


def join(parts, path, command, failures=()):
    """One run of several that were made side by side, each of sections of its own; the parts are removed. A part that was cut short, or that
    is not there, is a failure of the whole, beside those that are known. Returns the run."""
    runs, failures = [], list(failures)
    for part in parts:
        try:
            run = Run(part)
        except (OSError, ValueError) as e:
            failures.append(f"nothing of {part}: {e}")
            continue
        runs.append(run)
        if not run.tail:
            failures.append(f"{part} was cut short behind {len(run.rows)} rows")
    if not runs:
        raise ValueError("; ".join(failures))
    commits = {(r.head["commit"], r.head["dirty"], r.head["device"], r.head["driver"]) for r in runs}
    if len(commits) > 1:
        failures.append(f"parts of different commits, devices or drivers: {sorted(map(str, commits))}")
    tails = [r.tail for r in runs if r.tail]
    with open(path, "w") as f:
        head = {**runs[0].head, "date": min(r.head["date"] for r in runs), "command": command, "side_by_side": len(runs)}
        for thing in ({"run": head}, *(row for r in runs for row in r.rows),
                      {"end": {"seconds": {s: t for tail in tails for s, t in tail["seconds"].items()},
                               "left_out": [x for t in tails for x in t["left_out"]], "failures": failures + [x for t in tails for x in t["failures"]]}}):
            f.write(json.dumps(thing) + "\n")
    for run in runs:
        os.remove(run.path)
    return Run(path)


def digest(ptx):
    """Of what runs: the grid is the launch's, whoever says it, and what a launch checks is no code."""
    ptx = re.sub(r"^(//@tilec .*) needs=\S+", r"\1", ptx, flags=re.M)
    return hashlib.sha256(re.sub(r"^(//@tilec .*?) grid=\S+", r"\1", ptx, flags=re.M).encode()).hexdigest()


def manifest(ptx):
    """Its first kernel's line."""
    return re.search(r"^//@tilec .*", ptx, re.M).group()


def without_told(ptx):
    """PTX as it would be without the integers that a launch is told for the grid alone: parameters that no instruction reads. What else there is moves up."""
    head = manifest(ptx)
    params = re.search(r"\bparams=(\S*)", head).group(1).split(",")
    names = list(dict.fromkeys(p.split(":")[0] for p in params))
    asked = {names[int(n)] for n in re.findall(r"\$(\d+)", (re.search(r" grid=(\S+)", head) or [0, ""])[1])}
    body = ptx[ptx.index("{", ptx.index(".entry")):]
    gone = [i for i, p in enumerate(params) if p.split(":")[1] == "scalar" and p.split(":")[0] in asked and not re.search(rf"_param_{i}\b", body)]
    if not gone:
        return ptx
    at = {str(old): str(new) for new, old in enumerate(i for i in range(len(params)) if i not in gone)}
    numbers = lambda m: m.group(1) + re.sub(r"\d+", lambda n: at[n.group()], m.group(2))
    head_left = re.sub(r"\b((?:apart|needs)=)(\S*)", numbers, head.replace(",".join(params), ",".join(p for i, p in enumerate(params) if i not in gone)))
    ptx = ptx.replace(head, head_left)
    declared = ptx.index("(", ptx.index(".entry")), ptx.index(")\n", ptx.index(".entry"))
    lines = ptx[declared[0] + 2:declared[1]].rstrip().split(",\n")
    ptx = ptx[:declared[0] + 2] + ",\n".join(l for i, l in enumerate(lines) if i not in gone) + "\n" + ptx[declared[1]:]
    return re.sub(r"(_param_)(\d+)\b", numbers, ptx)


def kernel_of(call, file, kernel, defines, target):
    """What a row records of a bound launch (tilec.Call) of a kernel of one of our files."""
    info, names, ptx = call.info(), [p.name for p in call.kernel.args], call.ptx()
    asked = dict(re.findall(r"[=,](\w+):ptr:[^,\s]*:(null|nonnull)\b", manifest(ptx)))
    known = lambda bits, what: [n + what for i, n in enumerate(names) if info[bits] >> i & 1]
    defines = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in defines.items()}
    facts = known("equal_1", "=1") + [f for n in (16, 8, 4, 2) for f in known(f"divisible_{n}", f"%{n}")]
    facts += [f"{n}{'=' if asked[n] == 'null' else '!='}None" for n in names if n in asked]
    return {"file": file, "kernel": kernel, "defines": defines, "target": target, "facts": facts, "ptx": digest(ptx)}


# ---- reading ----

class Run:
    def __init__(self, path):
        self.path, self.head, self.rows, self.tail = path, None, [], None
        with open(path) as f:
            lines = f.read().splitlines()
        for number, line in enumerate(lines, 1):
            try:
                thing = json.loads(line)
            except ValueError:
                raise ValueError(f"{path}:{number}: not a line of JSON")
            if "run" in thing:
                self.head = thing["run"]
            elif "end" in thing:
                self.tail = thing["end"]
            else:
                self.rows.append(thing)
        if not self.head:
            raise ValueError(f"{path}: no run")
        for r in self.rows:
            if missing := {"section", "case", "unit", "better", "sides", "peers", "kernels", "extra"} - set(r):
                raise ValueError(f"{path}: a row without {', '.join(sorted(missing))}")

    def name(self):
        """DATE-DEVICE-COMMIT, with the time of day, as a benchmark may come in parts."""
        device = re.sub(r"[^a-z0-9]+", "-", self.head["device"].lower()).strip("-")
        sha = (self.head["commit"] or "unrecorded")[:10] + ("-dirty" if self.head["dirty"] else "")
        return f"{self.head['date'][:19].replace(':', '').rstrip('Z')}-{device}-{sha}"

    def when(self):
        return self.head["date"]

    def source(self):
        """In a table: when, and which commit."""
        sha = self.head["commit"]
        return f"{self.head['date'][:10]}, {sha[:7] + (' and changes' if self.head['dirty'] else '') if sha else 'commit not recorded'}"


def kept(folder=RUNS):
    """All kept runs, oldest first."""
    names = [n for n in os.listdir(folder) if n.endswith(".jsonl")] if os.path.isdir(folder) else []
    return sorted((Run(os.path.join(folder, n)) for n in names), key=lambda r: (r.when(), r.path))


def ours(row):
    return [s for s in row["sides"] if s not in row["peers"]]


def chosen(rows, case, labels):
    """Those of the configurations that a side of the newest row of a case has; all where there is none. case: a section (or how it begins), a space, and
    what the row calls its case; or some of the words of that, for what the newest rows of all such cases have."""
    section, *words = case.split()
    newest = {(r["section"], r["case"]): r for r in rows if r["section"].startswith(section) and set(words) <= set(r["case"].split())}
    exact = [r for (of, name), r in newest.items() if (of, name.split()) == (section, words)]
    configs = {s["config"] for r in exact or newest.values() for s in r["sides"].values()}
    return [l for l in labels if str(l) in configs] or list(labels)


# ---- comparing ----

FLOOR, UNKNOWN = 0.01, 0.03   # the least noise of a figure, and the noise of one whose spread was not recorded


def spread(s):
    """Relative: half of what lies between the 20th and the 80th percentile."""
    return UNKNOWN if s["low"] is None else max(abs(s["high"] - s["low"]) / 2 / abs(s["value"]), 0.0)


def figure(row, name):
    """What of a row's side is compared, and its spread: beside the first peer the ratio to it (above 1: better than it), as absolute
    figures move from machine to machine; without a peer, the figure."""
    s = row["sides"][name]
    sign = 1 if row["better"] == "more" else -1
    peer = next((row["sides"][p] for p in row["peers"] if p in row["sides"] and row["sides"][p]["value"]), None)
    if peer:
        return (s["value"] / peer["value"]) ** sign, math.hypot(spread(s), spread(peer))
    return s["value"] ** sign, spread(s)


def same_code(a, b):
    return bool(a["kernels"]) and a["kernels"] == b["kernels"]


def compare(run, others):
    """Rows of a run beside the best of kept runs on the same device: lines of what fell or is missing, and how many rows were compared.

    A row has fallen if its figure is below the best one by more than twice the noise. Noise is the largest of 1%, the spread of this
    row, the spread of the best row, and half the range of the figures of kept rows that ran the very same PTX."""
    before = {}
    for other in others:
        if other.head["device"] == run.head["device"] and os.path.realpath(other.path) != os.path.realpath(run.path):
            for row in other.rows:
                for name in ours(row):
                    if row["sides"][name]["value"]:
                        before.setdefault((row["section"], row["case"], name, row["unit"]), []).append((figure(row, name), row, other))
    worse, seen, count = [], set(), 0
    for row in run.rows:
        for name in ours(row):
            key = (row["section"], row["case"], name, row["unit"])
            seen.add(key)
            if key not in before:
                continue
            count += 1
            (best, best_noise), best_row, best_run = max(before[key], key=lambda t: t[0][0])
            value, noise = figure(row, name) if row["sides"][name]["value"] else (0.0, 0.0)
            repeats = [f for (f, _), r, _ in before[key] if same_code(r, best_row)]
            noise = max(FLOOR, noise, best_noise, (max(repeats) - min(repeats)) / 2 / best if len(repeats) > 1 else 0.0)
            if value < best * (1 - 2 * noise):
                worse.append(f"{row['section']} {row['case']} {name}: {value:.4g} was {best:.4g} ({value / best:.3f} of it, noise {noise:.3f}) "
                             f"in {os.path.basename(best_run.path)}")
    sections = {r["section"] for r in run.rows} | set((run.tail or {}).get("seconds", {}))
    for section, case, name, unit in sorted(set(before) - seen):
        if section in sections:
            last = before[section, case, name, unit][-1][2]
            worse.append(f"{section} {case} {name}: not measured, but it was in {os.path.basename(last.path)}")
    return worse, count


# ---- is a row still true? ----

def machine_code(ptx, target):
    """What ptxas makes of PTX: the bytes of each section of code, by name; None if it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
        with open(source, "w") as f:
            f.write(ptx)
        if subprocess.run(["ptxas", f"-arch={target}", source, "-o", cubin], capture_output=True).returncode:
            return None
        with open(cubin, "rb") as f:
            elf = f.read()
    (at,), (count, names) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HH", elf, 60)
    sections = [struct.unpack_from("<IIQQQQ", elf, at + 64 * i) for i in range(count)]
    name = lambda s: elf[sections[names][4] + s[0]:elf.index(b"\0", sections[names][4] + s[0])].decode()
    return {name(s): elf[s[4]:s[4] + s[5]] for s in sections if name(s).startswith(".text.")}


def pairs_of_code(row, old, new):
    """Pairs for bench/same.jsonl of a row's kernels: `old` makes the PTX that was measured, `new` another, and ptxas the same code of both."""
    pairs = []
    for k in row["kernels"]:
        now = new.compile(k)
        if not now or k["ptx"] in new.digests_of(now):
            continue
        was = old.compile(k)
        if not was or digest(was) != k["ptx"]:
            continue
        now = without_told(now)
        code = machine_code(was, k["target"])
        if code and code == machine_code(now, k["target"]):
            pairs.append({"was": k["ptx"], "is": digest(now)})
    return pairs


class Compiler:
    """Digests of kernels' PTX by a compiler, of the files of a tree."""

    def __init__(self, tilec, tree=root, same=SAME):
        self.tilec, self.tree, self.known, self.same = tilec, tree, {}, {}
        if os.path.exists(same):
            with open(same) as f:
                for pair in map(json.loads, f):
                    self.same.setdefault(pair["is"], set()).add(pair["was"])

    def command(self, k):
        return [self.tilec, os.path.join(self.tree, k["file"]), "--no-line-info", f"--kernel={k['kernel']}", f"--target={k['target']}",
                *(f"--assume={f}" for f in k["facts"]), *(f"-D{n}={v}" for n, v in k["defines"].items())]

    def compile(self, k):
        """PTX; None if the tree has no such kernel."""
        r = subprocess.run(self.command(k), capture_output=True, text=True) if os.path.exists(os.path.join(self.tree, k["file"])) else None
        return r.stdout if r and not r.returncode else None

    def digests_of(self, ptx):
        """Of PTX, of that without parameters that kernels got when they came to say their grids, and of what is the same machine code."""
        found = {digest(ptx), digest(without_told(ptx))}
        while more := set().union(*(self.same.get(d, set()) for d in found)) - found:
            found |= more
        return found

    def digests(self, k):
        """Those of what the compiler makes of a row's kernel; none if it makes nothing."""
        key = json.dumps({n: v for n, v in k.items() if n != "ptx"}, sort_keys=True)
        if key not in self.known:
            ptx = self.compile(k)
            self.known[key] = self.digests_of(ptx) if ptx else set()
        return self.known[key]

    def prepare(self, rows):
        """All kernels of these rows at once, on all cores."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.digests, [k for r in rows for k in r["kernels"]]))

    def stale(self, row):
        """Why the row may be no longer true: "" if the compiler makes the same PTX of all its kernels; "changed"; "unknown" if the run
        did not record what it ran. Rows of things that are no kernels (host side, the compiler's speed) carry "of": they are as old as
        their run says and never stale."""
        if row["extra"].get("of"):
            return ""
        if not row["kernels"]:
            return "unknown"
        return "" if all(k["ptx"] in self.digests(k) for k in row["kernels"]) else "changed"
