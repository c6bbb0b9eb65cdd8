"""memory.py BUILD: tilec and tilerun in less and less memory (RLIMIT_AS). Each run is right, or it says what is lacking and leaves no output
behind, or what was there before; what runs in little memory put into the cache is right as well. Allocations that fail one by one, LLVM's
among them, are those of tests/runtime/test_memory.c."""
import os, resource, subprocess, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TILEC, TILERUN = (os.path.join(os.path.abspath(sys.argv[1]), "bin", p) for p in ("tilec", "tilerun"))
KERNEL = os.path.join(root, "examples", "softmax.tile")
STEPS, LACKING = 12, ("memory", "cannot map", "cannot start")
failed = 0


def run(command, limit=None, **env):
    """Exit status, what it printed, what it said."""
    def few():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    r = subprocess.run(command, capture_output=True, text=True, cwd=root, env={**os.environ, **env}, preexec_fn=few if limit else None, timeout=300)
    return r.returncode, r.stdout, r.stderr


def check(what, limit, ok, said):
    global failed
    if not ok:
        failed += 1
        print(f"FAILED {what} in {limit >> 10} KiB: {said.strip()[-300:]}")


def least(command, **env):
    """(too little, enough): memory that the loader wants, and memory in which the command succeeds, to 64 KiB."""
    def search(good, low, high):
        while high - low > 1 << 16:
            middle = (low + high) // 2
            low, high = (low, middle) if good(middle) else (middle, high)
        return high
    starts = search(lambda m: run([command[0], "--help"], m)[0] == 0, 1 << 20, 4 << 30)
    return starts, search(lambda m: run(command, m, **env)[0] == 0, starts, 4 << 30)


def series(what, command, out, **env):
    """The command in less memory than it takes: its file is right, or as before. A cache that it fills is found right by the run behind it."""
    status, _, said = run(command, **{**env, "TILEC_CACHE": "0"})
    assert status == 0, said
    want, lacking = open(out, "rb").read(), 0
    starts, enough = least(command, **{**env, "TILEC_CACHE": "0"})
    for n in range(STEPS + 1):
        limit = starts + (enough - starts) * n // STEPS
        with open(out, "wb") as f:
            f.write(b"before")
        status, _, said = run(command, limit, **env)
        left = open(out, "rb").read() if os.path.exists(out) else b"before"
        wrong = left != want if status == 0 else left != b"before" or not any(w in said for w in LACKING) or what == "tilec" and status != 3
        check(what, limit, not wrong, f"status {status}: {said}")
        lacking += status != 0
        status, _, said = run(command, **env)
        check(what + ", behind a run", limit, status == 0 and open(out, "rb").read() == want, f"status {status}: {said}")
    check(what + ", in too little", starts, lacking > 0, "every run succeeded")
    print(f"{what}: {STEPS + 1} limits from {starts >> 10} to {enough >> 10} KiB, {lacking} of them too little")


with tempfile.TemporaryDirectory() as folder:
    cache, copy = os.path.join(folder, "cache"), os.path.join(folder, "y.npy")
    series("tilec", [TILEC, KERNEL, "--target=sm_90a", "-o", os.path.join(folder, "x.ptx")], os.path.join(folder, "x.ptx"), TILEC_CACHE="0")
    launch = [TILERUN, KERNEL, "softmax", "--device=sim", "--threads=1", "x=rand:f32:4x100", "y=empty:f32:4x100", "rows=4", "n=100", "stride=100",
              "--save", "y=" + copy]
    series("tilerun", launch, copy, TILEC_CACHE=cache)
sys.exit(failed > 0)
