"""Cases (examples/cases.py, tests/kernels/cases.py) run in processes of their own: one that crashes, hangs, eats the host's memory or
loses its GPU context fails by name, and the others go on.

A pool keeps workers, which run one case after the other and say what came out, as JSON lines. The parent watches them: beyond the
budget of host memory or the limit of time a worker is killed, the case has failed, and another worker takes its place, as it does when a
worker dies or reports that its device is lost. Every case that was planned has exactly one result.

    python harness.py --worker KIND DEVICE        is a worker; KIND: examples, all, or a file with a list CASES
"""
import importlib.util
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
import zlib

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
BUDGET = 8 << 30             # bytes of host memory a case may take
LIMIT = 600                  # seconds
FAULT = 5                    # TILERT_E_FAULT: on a GPU the context is lost


def label(case, size):
    return f"{case.name}({', '.join(f'{k}={v}' for k, v in size.items())})"


def load(kind):
    """The cases: of the examples alone, all, or a file's."""
    sys.path[:0] = [p for p in (os.path.join(root, "tools"), here) if p not in sys.path]
    import cases
    if kind == "examples":
        return cases.CASES
    path = os.path.join(root, "tests", "kernels", "cases.py") if kind == "all" else os.path.abspath(kind)
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("more_cases", path)
    more = importlib.util.module_from_spec(spec)
    sys.modules["more_cases"] = more
    spec.loader.exec_module(more)
    return (cases.CASES if kind == "all" else []) + more.CASES


def plan(cases, sim):
    """All runs for a kind of device: (index of the case, size, seed). A run has the same numbers whatever other cases there are."""
    runs = [(i, size) for i, case in enumerate(cases) for size in (case.sim if sim else case.gpu)]
    return [(i, size, zlib.crc32(label(cases[i], size).encode())) for i, size in runs]


# ---- a device that computes nothing ----

class NoDevice:
    """Takes every launch and runs none: what is left of a case is its host memory. Outputs are zeros."""
    is_sim, sms, name, spec = False, 132, "references alone", "none"

    def __init__(self):
        import tilec
        self.real = tilec.Device("sim")                   # kernels are described, never compiled

    def array(self, a, dtype=None):
        import numpy as np
        import tilec
        a = np.asarray(a)
        return _NoArray(a.shape, dtype or tilec._numpy_dtype(a))

    def empty(self, shape, dtype):
        return _NoArray(shape, dtype)

    def stats(self, reset=False):
        return {}

    def program(self, *args, **named):
        return _NoProgram(self.real.program(*args, **named))


class _NoProgram:
    def __init__(self, real):
        self.real = real

    def kernel(self, *args, **named):
        return _NoKernel(self.real.kernel(*args, **named))


class _NoKernel:
    def __init__(self, real):
        self.settings = real.settings

    def __call__(self, *args, **named):
        pass

    def bind(self, *args, **named):
        return _NoCall()


class _NoCall:
    says_grid = False

    def __call__(self, *args):
        pass

    def info(self):
        return {"compile_ms": 0.0}


class _NoArray:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    def numpy(self):
        import numpy as np
        import tilec
        return np.zeros(self.shape, tilec.DTYPES[self.dtype])

    def data_ptr(self):
        return 0

    def write(self, a):
        pass

    def fill_bytes(self, byte):
        pass


# ---- workers ----

def worst(got, want):
    """Where an array is farthest from what it should be, in words."""
    import numpy as np
    if got.shape != want.shape:
        return f", of shape {got.shape}, not {want.shape}"
    if not got.size:
        return ""
    with np.errstate(all="ignore"):
        off = np.abs(np.nan_to_num(got.astype(np.float64) - want.astype(np.float64), nan=np.inf)) * (got != want)
    at = np.unravel_index(int(np.argmax(off)), got.shape)
    return f", most at [{', '.join(map(str, at))}]: {got[at]}, not {want[at]}"


def run_one(cases, dev, case, size, seed, want):
    """What a case gives, as a dict: why it failed ("" if it did not), seconds; with want = "demo" how fast it is."""
    import numpy as np
    import cases as examples
    begun, out = time.perf_counter(), {}
    if want == "compile":
        import compiled
        return {"why": compiled.run_one(dev, cases[case], size, seed), "seconds": time.perf_counter() - begun}
    try:
        if dev.is_sim:
            dev.stats(reset=True)
        t = time.perf_counter()
        r = cases[case].run(dev, np.random.default_rng(seed), **size)
        out["run_s"] = time.perf_counter() - t
        errors = [(n, examples.error(g, w, tol), tol) for n, g, w, tol in r.checks]
        out["why"] = "; ".join(f"{n}: error {e:.3g} (limit {tol:g}){worst(g, w)}" for (n, g, w, _), (_, e, tol) in zip(r.checks, errors) if not e <= tol)
        if want == "demo":
            info = r.call.info()
            out.update(bytes=r.bytes, flops=r.flops, dtype=r.dtype, worst=max(e for _, e, _ in errors), compile_ms=info["compile_ms"])
            for a, what in r.found.values():
                a.write(np.broadcast_to(np.asarray(what, a.numpy().dtype), a.shape))
            out["ms"] = r.call.bench(*(0, 0) if dev.is_sim else (), restore=r.found)["median_ms"]   # there, only to see that it may be launched again
    except Exception as e:
        out["why"] = f"{type(e).__name__}: {e}" + (f" at {e.file}:{e.line}" if getattr(e, "line", 0) else "")
        out["lost"] = not dev.is_sim and getattr(e, "status", 0) == FAULT
    out["seconds"] = time.perf_counter() - begun
    return out


def device_of(spec):
    """A device by its name, one that computes nothing (none), or one that only compiles (compile:TARGET[:PTXAS])."""
    import tilec
    kind, *rest = (spec or "").split(":")
    if kind == "compile":
        import compiled
        return compiled.Compiler(rest[0], rest[1] if rest[1:] else None)
    return NoDevice() if kind == "none" else tilec.Device(spec or None)


def worker(kind, device):
    out = os.fdopen(os.dup(1), "w", buffering=1)           # what a case prints goes to standard error
    os.dup2(2, 1)
    cases = load(kind)
    import tilec
    try:
        dev = device_of(device)
    except tilec.Error as e:
        print(json.dumps({"error": str(e)}), file=out)
        return
    hello = {"name": dev.name, "sim": dev.is_sim, "version": tilec.lib.tilec_version().decode()}
    if isinstance(dev, tilec.Device):
        info = dev.info
        hello.update(memory_clock_khz=info.memory_clock_khz, memory_bus_bits=info.memory_bus_bits)
    print(json.dumps(hello), file=out)
    for line in sys.stdin:
        task = json.loads(line)
        size = {k: _tuples(v) for k, v in task["size"].items()}
        result = run_one(cases, dev, task["case"], size, task["seed"], task["want"])
        try:
            print(json.dumps(result), file=out)
        except BrokenPipeError:                            # nobody wants to know any more
            os._exit(1)
        if result.get("lost"):
            os._exit(0)


def _tuples(v):
    return tuple(map(_tuples, v)) if isinstance(v, list) else v


class _Worker:
    def __init__(self, kind, device, threads):
        command = [sys.executable, os.path.abspath(__file__), "--worker", kind, device or ""]
        share = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}       # of numpy's products
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**share, **os.environ})
        self.task, self.ready, self.buffer, self.begun, self.base, self.peak = None, False, b"", 0.0, 0, 0

    def resident(self):
        try:
            with open(f"/proc/{self.process.pid}/statm") as f:
                return int(f.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def give(self, task):
        self.task, self.begun = task, time.perf_counter()
        self.base = self.peak = self.resident()
        try:
            self.process.stdin.write((json.dumps(task) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass                                           # its end is seen below

    def read(self):
        """The lines that have come; None at the end."""
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            return None
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return lines

    def result(self, out):
        """The task, which is done with, and what came of it."""
        task, self.task = self.task, None
        return task, {"peak": max(self.peak - self.base, 0), "seconds": time.perf_counter() - self.begun, **out}

    def stop(self, kill=False):
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Pool:
    """Runs tasks: dicts with case, size, seed, want. results(tasks) yields (task, result) as they come, one for each task; a task is taken
    from tasks when a worker is ready for it, and .hello is then what a worker said of its device."""

    def __init__(self, kind, device, jobs=1, budget=BUDGET, limit=LIMIT):
        self.kind, self.device, self.jobs, self.budget, self.limit, self.hello = kind, device, jobs, budget, limit, None

    def results(self, tasks):
        self.tasks, self.more, self.workers, self.selector = iter(tasks), True, [], selectors.DefaultSelector()
        try:
            while self.more or any(w.task for w in self.workers):
                while self.more and len(self.workers) < self.jobs:
                    self.start()
                for key, _ in self.selector.select(0.02):
                    yield from self.heard(key.data)
                for w in [w for w in self.workers if w.task]:
                    yield from self.watched(w)
        finally:
            for w in list(self.workers):
                self.end(w, kill=w.task is not None)

    def start(self):
        w = _Worker(self.kind, self.device, max(len(os.sched_getaffinity(0)) // self.jobs, 1))
        self.workers.append(w)
        self.selector.register(w.process.stdout, selectors.EVENT_READ, w)

    def end(self, w, kill=False):
        self.selector.unregister(w.process.stdout)
        self.workers.remove(w)
        return w.stop(kill)

    def feed(self, w):
        task = next(self.tasks, None)
        self.more = task is not None
        if task:
            w.give(task)

    def heard(self, w):
        """What a worker has written, or its end."""
        lines = w.read()
        if lines is None:
            status = self.end(w)
            how = f"the process died: signal {signal.Signals(-status).name}" if status < 0 else f"the process died: exit status {status}"
            if w.task:
                yield w.result({"why": how})
            elif not w.ready:
                yield from self.give_up(how)
            return
        for said in map(json.loads, lines):
            if "error" in said:
                self.end(w)
                yield from self.give_up(said["error"])
                return
            if not w.ready:
                self.hello, w.ready = said, True
            else:
                yield w.result(said)
                if said.get("lost"):
                    self.end(w)
                    return
            if self.more:
                self.feed(w)

    def give_up(self, why):
        """No worker can be started: an exception if there never was one, else what is left has failed."""
        if not self.hello:
            raise RuntimeError(why)
        self.more = False
        for task in self.tasks:
            yield task, {"why": f"not run: {why}", "peak": 0, "seconds": 0.0}

    def watched(self, w):
        """A worker with a task: what it takes of memory and time."""
        w.peak = max(w.peak, w.resident())
        fat, late = w.peak - w.base > self.budget, time.perf_counter() - w.begun > self.limit
        if fat or late:
            self.end(w, kill=True)
            limit = f"{self.budget / 2**30:.3g} GiB of host memory" if fat else f"{self.limit:g} s"
            yield w.result({"why": f"killed: more than {limit}"})


if __name__ == "__main__":
    worker(*sys.argv[2:])
