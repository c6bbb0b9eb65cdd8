"""Measuring that the drivers on a GPU share (gpu.py, unseen.py): a search on each side, rounds in turns, rows as data, sections in processes.

A driver imports this first: its command line is read here, and its docstring is the help. It says what its sections are by Driver, whose
main() does the rest. A section is a function without arguments: case_begins(), then contest(), alone() or record(), then check().

What a run writes, what its options are and where its processes run is said by gpu.py, for all drivers.
"""
import argparse
import contextlib
import functools
import itertools
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

os.environ.setdefault("TILEC_CACHE", "0")
import torch
import triton
from triton.testing import do_bench

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
sys.path[:0] = [os.path.join(root, "tools"), here]
import data
import power
import tilec

script = sys.modules["__main__"].__file__
a = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("--budget", type=float, default=0)
a.add_argument("--rehearse", action="store_true")
a.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="processes that compile ahead; 0: none")
a.add_argument("--limit", type=float, default=400, help="seconds for a section")
a.add_argument("--as-kept", action="store_true", help="configurations are those that kept runs chose for a case, of either side; else they are searched for")
a.add_argument("--cases", help="a regular expression: of sections that take a minute a case (flex, flex_backward) the cases that it finds")
a.add_argument("--share", help=argparse.SUPPRESS)       # I/N: compile every Nth candidate from the Ith on, and measure nothing
a.add_argument("--out")
a.add_argument("what", nargs="*", help="parts or sections; all")
a = a.parse_args()
stem = os.path.splitext(os.path.basename(script))[0]
a.out = a.out or os.path.join(os.environ.get("OUT", "."), "-".join(["run", *[stem] * (stem != "gpu"), *a.what]) + ".jsonl")
REHEARSE = a.rehearse
PASSED_ON = ["--rehearse"] * REHEARSE + ["--as-kept"] * a.as_kept + (["--cases", a.cases] if a.cases else [])      # to the processes of a run
SHARE = [int(x) for x in a.share.split("/")] if a.share else None
turn = itertools.count()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
D = "cpu" if REHEARSE else "cuda"
begun = time.perf_counter()
failures, left_out, case_now = [], [], ""
out = dev = cache = progress = None     # dev: the device, once sections run


class OutOfTime(Exception):
    pass


def full(large, small):
    """A size: of the benchmark, or of the rehearsal."""
    return small if REHEARSE else large


def sync():
    if not REHEARSE:
        torch.cuda.synchronize()


def empty_cache():
    if not REHEARSE:
        torch.cuda.empty_cache()


# ---- measuring ----

class Nothing:
    """A launch that is not made, of a process that only compiles."""
    info = lambda self: {"registers": 0, "local_bytes": 0}
    __call__ = lambda self: None


def times(fn, warmup=15, rep=60):
    """(20th percentile, median, 80th percentile) in ms."""
    if SHARE:
        return 0, 0, 0
    if REHEARSE:
        t = time.perf_counter()
        fn()
        return ((time.perf_counter() - t) * 1e3,) * 3
    mid, low, high = do_bench(fn, warmup=warmup, rep=rep, quantiles=[0.5, 0.2, 0.8])
    return low, mid, high


def med(fn, warmup=15, rep=60):
    return times(fn, warmup, rep)[1]


def compiled(label, make):
    """A candidate of timed() in a process that only compiles: launched if it is in our share."""
    if next(turn) % SHARE[1] == SHARE[0]:
        try:
            make()()
        except Exception:                                    # the one who measures says so
            pass
    return 0, label, Nothing()


def at(what):
    """What is being done, for whoever stops us."""
    if progress is not None:
        os.pwrite(progress, what[:200].ljust(200).encode(), 0)


@functools.cache
def kept_rows():
    """Rows of kept runs on GPUs, oldest first."""
    return [row for run in data.kept() if "cpu" not in run.head["device"] for row in run.rows]


def timed(candidates, side="", case=None):
    """candidates: (label, zero-argument function) pairs -> [(ms, label, launch)], fastest first; a configuration that fails is left out."""
    candidates = list(candidates)
    if a.as_kept and side != "cublas":               # what a library lists may come in another order
        chosen = data.chosen(kept_rows(), case or case_now, [label for label, _ in candidates])
        candidates = [c for c in candidates if c[0] in chosen]
    if SHARE:
        return [compiled(label, make) for label, make in candidates]
    found = []
    for label, make in candidates[:3 if REHEARSE else None]:
        try:
            at(f"{case_now}: {side} {label}")
            fn = make()
            fn()
            sync()
            found.append((med(fn, 8, 30), label, fn))
        except Exception as ex:
            if os.environ.get("V"):
                print("  left out", label, repr(ex)[:300])
            if REHEARSE and not isinstance(ex, tilec.Error):
                raise
    return sorted(found, key=lambda t: t[0])


def best(candidates):
    """(ms, label) of the fastest."""
    return next((t[:2] for t in timed(candidates)), (math.inf, None))


def best_parts(parts, whole):
    """The label of the fastest configuration of some launches that follow one another: a tuple, of one for each. parts: a dict of label: make for
    each launch, which are measured by themselves. whole: of such a tuple, what makes all; configurations that were kept are those of wholes."""
    if a.as_kept:
        return best((c, whole(c)) for c in itertools.product(*parts))[1]
    return tuple(best(part.items())[1] for part in parts)


def best_hot(candidates, peer, finalists=6):
    """As best, but the fastest few are measured again in turns with the peer: kernels that keep the chip at its power limit are not
    ranked as on a cool one."""
    cold = timed(candidates)[:finalists]
    hot = {label: [] for _, label, _ in cold}
    for _ in range(1 if REHEARSE else 3):
        for _, label, fn in cold:
            med(peer, 8, 40)
            hot[label].append(med(fn, 8, 40))
    return min((statistics.median(t), label) for label, t in hot.items())


def finals(sides, case, most=4, near=1.05, rounds=4):
    """The fastest configuration of each side (a dict of label: make; None where there is none) for a case (section, a space,
    the row's). One look at each is not enough to tell those apart that are near the fastest, so they are measured again, in turns with the other
    sides'."""
    entered = [[c for c in cold[:most] if c[0] <= near * cold[0][0]] for cold in (timed(side.items(), name, case) for name, side in sides.items())]
    again = [[[t] for t, _, _ in side] for side in entered]
    for _ in range(0 if REHEARSE or SHARE else rounds):
        for k in range(most):
            for side, found in zip(entered, again):
                if k < len(side) > 1:
                    found[k].append(med(side[k][2], 8, 30))
    chosen = (side[min(range(len(side)), key=lambda k: statistics.median(found[k]))][1] if side else None for side, found in zip(entered, again))
    return dict(zip(sides, chosen))


def settle(*makes, rounds=9):
    """The winners once more, in turns, so that none has the warmer chip: (20th percentile, median, 80th percentile) of the rounds, each."""
    if SHARE:
        return [(0, 0, 0)] * len(makes)
    fns = [make() for make in makes]
    found = [[] for _ in fns]
    for _ in range(1 if REHEARSE else rounds):
        for fn, t in zip(fns, found):
            t.append(med(fn, 8, 40))
    return [data.quantiles(t) for t in found]


def graph_of(run, times=1):
    """run as a CUDA graph, captured once, or so many runs one behind the other."""
    if REHEARSE or SHARE:
        return run
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(times):
            run()
    return graph.replay


# Seconds of a measurement of power, before it, and of launches that go in one piece: asking the meter takes milliseconds, in which the device must
# have enough to do.
DWELL, WARMING, AT_ONCE = 0.5, 0.2, 4e-2
MANY = 2000                                 # launches of one graph
meter = None                                # None: not asked for yet; False: there is none


def dwell(run, ms):
    """(seconds a launch, joules a launch, MHz) of launches of about `ms` one behind the other for DWELL seconds; None where the device does not
    say. They go as graphs of several, so that short ones wait for nobody; the meter moves in steps, so it is read when it has."""
    global meter
    if REHEARSE or SHARE:
        return None
    if meter is None:
        try:
            meter = power.Meter()
        except (OSError, AttributeError) as e:
            meter = False
            print(f"note: no joules and clocks: {e}", flush=True)
    if not meter:
        return None
    each = min(max(1, round(AT_ONCE * 1e3 / ms)), MANY)
    replay, launches, clocks, under_way, read = graph_of(run, each), 0, [], [], []
    begin = last = time.perf_counter()
    joules = meter.joules()
    while len(read) < 2:
        replay()
        launches += each
        under_way.append(torch.cuda.Event())
        under_way[-1].record()
        if len(under_way) > 2:
            under_way.pop(0).synchronize()
        now, then = time.perf_counter(), joules
        joules = meter.joules()
        if now - last > 0.02:
            clocks, last = clocks + [meter.mhz()], now
        if joules != then and now - begin > WARMING + len(read) * DWELL:
            read.append((now, launches, joules))
            clocks = clocks if len(read) == 2 else []
        if now - begin > 4 * (WARMING + DWELL):
            print("note: the meter of joules does not move", flush=True)
            meter = False
            sync()
            return None
    sync()
    (t0, n0, j0), (t1, n1, j1) = read
    return (t1 - t0) / (n1 - n0), (j1 - j0) / (n1 - n0), statistics.mean(clocks or [meter.mhz()])


def powers(runs, operations):
    """What rows say of power: of each launch ({name: (launch, ms)}) TFLOP/s one behind the other, joules for a TFLOP, and the clock it ran at."""
    found, work = {}, operations * 1e-12
    for name, of in runs.items():
        try:
            found[name] = dwell(*of)
        except RuntimeError as e:                            # what no graph can be made of
            print(f"note: no joules and clocks of {name}: {e}", flush=True)
    return {f"{name} {what}": value for name, of in found.items() if of
            for what, value in (("sustained", round(work / of[0], 1)), ("J/TFLOP", round(of[1] / work, 4)), ("MHz", round(of[2])))}


def relative(got, ref, piece=1 << 24):
    """The norm of got - ref over that of ref, in pieces: of large results no copy in f64 is made."""
    wrong = whole = 0.0
    for g, r in zip(got.reshape(-1).split(piece), ref.reshape(-1).split(piece)):
        g, r = g.double(), r.double()
        wrong, whole = wrong + (g - r).square().sum().item(), whole + r.square().sum().item()
    return math.sqrt(wrong / whole) if whole else math.sqrt(wrong) if wrong == wrong else math.nan


def check(name, got, ref, tol):
    """The relative error is below tol, or no more than what got's type cannot hold: f16 has few digits for numbers below 2^-14."""
    if SHARE:
        return
    if got.shape != ref.shape:
        raise ValueError(f"{name}: {tuple(got.shape)} beside {tuple(ref.shape)}")
    err, tol = relative(got, ref), max(tol, 1.1 * relative(ref.to(got.dtype), ref))
    if not err < tol:
        failures.append(f"{name}: relative error {err:.3g} (limit {tol:g})")


# ---- our kernels, and what ran of them ----

programs, bound = {}, []


def path_of(file):
    return os.path.join("bench" if os.path.exists(os.path.join(here, file)) else "examples", file)


class Kernel:
    """A kernel of one of our files; what is bound of it is written down for the row."""

    def __init__(self, file, name, target, defines):
        self.what = (path_of(file), name, defines, target or dev.info.target.decode())
        if (file, target) not in programs:
            programs[file, target] = dev.program(os.path.join(root, path_of(file)), target=target, line_info=False, cache_dir=cache)
        self.kernel = programs[file, target].kernel(name, **defines)

    def bind(self, grid, *args, **more):
        call = self.kernel.bind(grid, *args, **more)
        bound.append((call, self.what, grid, args))
        return call


def kernel(file, name, target=None, **defines):
    return Kernel(file, name, target, defines)


def kernel_said(of):
    """What a row says of one that is bound."""
    call, (file, name, defines, target), *_ = of
    return data.kernel_of(call, file, name, defines, target)


def ran(make):
    """A launch of ours, made again, and what the row says of its kernels."""
    bound.clear()
    if SHARE:
        return Nothing(), []
    fn = make()
    return fn, [kernel_said(of) for of in bound]


def kernels_of(calls):
    """What a row says of the kernels of launches that are bound already, each once: before its case begins, which forgets what is bound."""
    found = [kernel_said(of) for of in bound if any(of[0] is c for c in calls)]
    return [k for i, k in enumerate(found) if k not in found[:i]]


# ---- rows ----

def asked_for(case):
    """Whether a section that may be run in parts is to measure this case."""
    return not a.cases or re.search(a.cases, case) is not None


def case_begins(section, case):
    """Called before a case is prepared: it is not, when time is up. Launches of the last one let go of their memory."""
    global case_now
    bound.clear()
    case_now = f"{section} {case}"
    at(case_now)
    if a.budget and time.perf_counter() - begun > a.budget:
        left_out.append(f"{section} from {case} on")
        raise OutOfTime


def record(section, case, unit, sides, peers=(), **more):
    if SHARE:
        return
    row = out.row(section, case, unit, sides, peers, **more)
    shown = " ".join(f"{n}={s['value']:.4g}" for n, s in sides.items())
    ours = data.ours(row)
    ratio = f" ratio={data.figure(row, ours[0])[0]:.4f}" if len(ours) == 1 and any(p in sides for p in peers) else ""
    extra = "".join(f" {k}={v:.4g}" if isinstance(v, float) else f" {k}={v}" for k, v in row["extra"].items() if k != "of")
    print(f"{section:20} {case:26} {unit:8} {shown}{ratio}{extra} [{' | '.join(s['config'] for s in sides.values() if s['config'])}]", flush=True)


SCALE = {"TB/s": 1e-9, "TFLOP/s": 1e-9, "numbers/ns": 1e-6}


def rate(t, work, unit, config=""):
    """A side from (20th percentile, median, 80th percentile) in ms; of a process that only compiles nothing."""
    return None if SHARE else data.of_times(t, work, SCALE[unit], config)


def against(section, case, ours, peers, brief=False):
    """The best of ours and of each peer ({label: make} each), then all in turns: what our kernels were, and {name: (label, launch, times)}, ours
    last. A peer of which nothing runs is not in it, and is a failure. brief: fewer rounds, where there are many peers or cases."""
    chosen = finals({"tilec": ours, **peers}, f"{section} {case}", **dict(most=3, rounds=2) if brief else {})
    failures.extend(f"{section} {case}: no configuration of {name} runs" for name in peers if chosen[name] is None and not SHARE)
    runs = {name: peers[name][chosen[name]]() for name in peers if chosen[name] is not None}
    launch, kernels = ran(ours[chosen["tilec"]])
    took = settle(lambda: launch, *(lambda fn=fn: fn for fn in runs.values()), rounds=6 if brief else 9)
    return kernels, {name: (chosen[name], fn, t) for name, fn, t in zip([*runs, "tilec"], [*runs.values(), launch], [*took[1:], took[0]])}


def contest(section, case, work, ours, theirs, torch_fn=None, unit="TB/s", facts=None, **more):
    """ours, theirs: {label: make}; work in bytes or operations; records rates of torch, Triton and tilec, the last two in turns. facts: called
    with what was chosen of either side (None: nothing), gives more for the row."""
    kernels, found = against(section, case, ours, {"triton": theirs} if not REHEARSE or INTERPRETED else {})
    sides = {name: rate(t, work, unit, label) for name, (label, _, t) in found.items()}
    if torch_fn:
        sides = {**{n: s for n, s in sides.items() if n != "tilec"}, "torch": rate(times(torch_fn), work, unit), "tilec": sides["tilec"]}
    lo, lt = (found[name][0] if name in found else None for name in ("tilec", "triton"))
    record(section, case, unit, sides, [s for s in ("triton", "torch") if s in sides], work=work, kernels=kernels, **more,
           **(facts(lo, lt) if facts and not SHARE else {}))


def alone(section, case, make, label, work, unit, torch_fn=None, better="more"):
    """A row of ours beside torch alone, or beside nothing. work None: ms."""
    fn, kernels = ran(make)
    t = times(fn)
    of = lambda t, config="": rate(t, work, unit, config) if work else data.of_times(t, config=config)
    sides = {"torch": of(times(torch_fn))} if torch_fn else {}
    sides["tilec"] = of(t, label)
    record(section, case, unit, sides, ["torch"] if torch_fn else [], work=work, kernels=kernels, better=better)


# ---- sections ----

def gpus():
    """What to call the GPUs that we may use."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    return [str(k) for k in range(max(1, torch.cuda.device_count()))]


def only(gpu):
    """An environment with one GPU."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}


def failed(path, rows, tail):
    """The last lines; whether anything did not go well."""
    lines = tail["failures"] + [f"left out: {x}" for x in tail["left_out"]]
    print(f"{sum(tail['seconds'].values()):.0f} s in all; {path} holds {len(rows)} rows")
    for line in lines:
        print("FAILED", line)
    return bool(lines)


class Driver:
    """What a driver measures. parts: {name: names of sections}; sections: {name: function}, more may be in it; groups: {name: sections of rows},
    which the summary compares with Triton, cuBLAS and Gluon; host: sections of host time, which need caches of their own; unprepared: what is not compiled ahead;
    batch: how many sections a process does, where they are so short that starting one takes longer."""

    def __init__(self, parts, sections, groups, host=(), unprepared=(), batch=1):
        self.parts, self.functions, self.groups, self.host, self.unprepared, self.batch = parts, sections, groups, host, unprepared, batch
        self.sections = [s for part in parts.values() for s in part]

    def summary(self, rows):
        for group, sections in self.groups.items():
            for peer, name in (("triton", "Triton"), ("cublas", "cuBLAS"), ("gluon", "Gluon")):
                found = [(data.figure({**r, "peers": [peer]}, "tilec")[0], r) for r in rows
                         if r["section"] in sections and "tilec" in r["sides"] and peer in r["sides"] and peer in r["peers"]]
                if found:
                    least, row = min(found, key=lambda t: t[0])
                    mean = math.exp(sum(math.log(f) for f, _ in found) / len(found))
                    print(f"{group} against {name}: geometric mean of {len(found)} {mean:.4f}, least {least:.4f} ({row['section']} {row['case']})")

    def main(self):
        parts = {} if a.out.endswith(".part") else self.parts        # what a process of a run is given are sections: some parts have the name of one
        wanted = list(dict.fromkeys(s for w in a.what or parts for s in parts.get(w, [w])))
        if unknown := [s for s in wanted if s not in self.sections]:
            sys.exit(f"no section {', '.join(unknown)}; parts: {', '.join(self.parts)}; sections: {', '.join(self.sections)}")
        host = [s for s in wanted if s in self.host]
        if 0 < len(host) < len(wanted):
            options = PASSED_ON + ["--jobs", str(a.jobs), "--budget", str(a.budget)]
            groups = (a.out, [s for s in wanted if s not in host]), (a.out.removesuffix(".jsonl") + "-host.jsonl", host)
            sys.exit(max([subprocess.run([sys.executable, script, *options, "--out", file, *names]).returncode for file, names in groups], key=abs))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("TILEC_BENCH_CACHE", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"):
                os.environ.setdefault(name, os.path.join(folder, name))
            if host:
                os.environ["CUDA_CACHE_DISABLE"] = "1"
            names = gpus()
            if len(wanted) > 1 and not (host or SHARE or a.out.endswith(".part")):
                sys.exit(self.on_all(wanted, names))
            self.run(wanted)

    def prepare(self, wanted):
        """Let processes compile what the sections will ask for; what one of them cannot do is compiled when it is measured. Each prepares the data of
        all cases, which the few kernels of --as-kept are not worth."""
        wanted = [s for s in wanted if s not in self.unprepared]
        if REHEARSE or a.as_kept or not a.jobs or not wanted:
            return
        begin = time.perf_counter()
        on = gpus()
        jobs = [subprocess.Popen([sys.executable, script, "--share", f"{k}/{a.jobs}", *wanted], env=only(on[k % len(on)]), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for k in range(a.jobs)]
        ended = [j.wait() for j in jobs]
        print(f"compiled ahead by {a.jobs} processes ({sum(r != 0 for r in ended)} ended early): {time.perf_counter() - begin:.1f} s", flush=True)

    def on_all(self, wanted, names):
        """Sections on several GPUs, one process at a time on each; what failed of them is in their files."""
        took = {s: t for r in data.kept() for s, t in (r.tail or {}).get("seconds", {}).items()}
        longest = sorted(wanted, key=lambda s: -took.get(s, math.inf))
        batches = [longest[k:k + self.batch] for k in range(0, len(longest), self.batch)]
        waiting, part = list(batches), lambda batch: f"{a.out.removesuffix('.jsonl')}.{batch[0]}.part"
        self.prepare(wanted)

        def work(gpu):
            while waiting:
                now = waiting.pop(0)
                budget = max(1e-3, a.budget - (time.perf_counter() - begun)) if a.budget else 0
                try:
                    subprocess.run([sys.executable, script, *PASSED_ON, "--jobs", "0", "--budget", str(budget), "--out", part(now), *now],
                                   env=only(gpu), timeout=a.limit)
                except subprocess.TimeoutExpired:              # the part has no end, which join says, too
                    words = ""
                    with contextlib.suppress(OSError), open(part(now) + ".now") as f:
                        words = f.read().strip()
                    stopped.append(f"{', '.join(now)} was stopped after {a.limit:g} s: {words or 'it had not begun'}")
        stopped, threads = [], [threading.Thread(target=work, args=(gpu,)) for gpu in names]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for batch in batches:
            with contextlib.suppress(OSError):
                os.remove(part(batch) + ".now")
        try:
            run = data.join(map(part, sorted(batches, key=lambda batch: wanted.index(batch[0]))), a.out, sys.argv[1:], stopped)
        except ValueError as e:
            print("\n".join(f"FAILED {why}" for why in [*stopped, e]))
            return True
        self.summary(run.rows)
        return failed(run.path, run.rows, run.tail)

    def run(self, wanted):
        global dev, out, cache, progress
        cache = os.environ["TILEC_BENCH_CACHE"]
        if not SHARE:
            self.prepare(wanted)
        dev = tilec.Device("sim" if REHEARSE else "cuda")
        if SHARE:
            for name in wanted:
                try:
                    self.functions[name]()
                except Exception:
                    traceback.print_exc()
            return
        versions = {"tilec": tilec.lib.tilec_version().decode(), "torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]}
        driver = str(dev.info.driver)
        if not REHEARSE:
            smi = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
            driver = smi.stdout.split("\n")[0].strip() or driver
        progress = os.open(a.out + ".now", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if a.out.endswith(".part") else None
        out = data.Writer(a.out, device=dev.name, driver=driver, versions=versions, peers=["torch", "triton"], command=sys.argv[1:])
        print(dev.name, *(f"{n} {v}" for n, v in versions.items()))
        seconds = {}
        for name in wanted:
            t = time.perf_counter()
            try:
                self.functions[name]()
            except OutOfTime:
                pass
            except Exception:
                traceback.print_exc()
                failures.append(f"section {name} stopped: {traceback.format_exc().strip().splitlines()[-1]}")
            seconds[name] = round(time.perf_counter() - t, 1)
            print(f"{name}: {seconds[name]} s", flush=True)
            bound.clear(), programs.clear()
            empty_cache()
        self.summary(out.rows)
        sys.exit(failed(a.out, out.rows, out.end(seconds, left_out, failures)))
