"""Planted faults of products of warpgroups, which interpreter and simulator must both stop. wgmma.py BUILD [--verbose]

Each plant edits a program that is right: as it was it must run silently, edited it must be reported by the reference interpreter and by the
simulator on its PTX, with the words and the kind of fault that are expected, at one of the lines named by their text. Those of the
scheduled IR, whose fences and barriers are explicit, edit that text. What the compiler itself refuses is in REFUSED."""
import os, re, subprocess, sys, tempfile
from planted import cut, move, put

TARGET = "sm_90a"
BUSY = "a buffer that a product under way still reads"
RACE = "race|async"

one = """// grid 1
// buffer f16 16384
// buffer f16 16384
// buffer f32 4096
// tolerance 1e-5
kernel k(x: *f16 multiple_of(16), y: *f16 multiple_of(16), z: *f32 multiple_of(16)) warps(4) {
  let i = arange(0, 64);
  let a = shared(f16, [64, 64], count=2);
  let b = shared(f16, [64, 64], count=2);
  var acc = pending(zeros([64, 64], f32));
  for k in range(0, 4) {
    async_copy(a[k % 2], x + i[:, None] * 256 + (k * 64 + i)[None, :]);
    async_copy(b[k % 2], y + (k * 64 + i)[:, None] * 64 + i[None, :]);
    async_wait_all();
    acc = wgmma(a[k % 2], b[k % 2], acc);
    wgmma_wait(pending=1);
  }
  store(z + i[:, None] * 64 + i[None, :], wgmma_wait(acc));
}
"""
roles = """// grid 1
// buffer f16 32768
// buffer f16 16384
// buffer f32 8192
// tolerance 1e-5
kernel k(x: *f16 multiple_of(16), y: *f16 multiple_of(16), z: *f32 multiple_of(16)) {
  let full = mbarrier(1, count=2);
  let empty = mbarrier(1, count=2);
  let a = shared(f16, [128, 32], count=2);
  let b = shared(f16, [32, 64], count=2);
  specialize {
    warps(4) {
      let i = arange(0, 128);
      for k in range(0, 8) {
        mbarrier_wait(empty[k % 2], 1 - k / 2 % 2);
        async_copy(a[k % 2], x + i[:, None] * 256 + (k * 32 + arange(0, 32))[None, :]);
        async_copy(b[k % 2], y + (k * 32 + arange(0, 32))[:, None] * 64 + arange(0, 64)[None, :]);
        async_wait_all();
        mbarrier_arrive(full[k % 2]);
      }
    }
    warps(8) {
      var acc = pending(zeros([128, 64], f32));
      for k in range(0, 8) {
        mbarrier_wait(full[k % 2], k / 2 % 2);
        acc = wgmma(a[k % 2], b[k % 2], acc);
        wgmma_wait(pending=0);
        mbarrier_arrive(empty[k % 2]);
      }
      store(z + arange(0, 128)[:, None] * 64 + arange(0, 64)[None, :], wgmma_wait(acc));
    }
  }
}
"""
both = one.replace("[64, 64], count=2);\n  let b", "[128, 64], count=2);\n  let b").replace("warps(4)", "warps(8)").replace("zeros([64", "zeros([128").replace(
    "x + i[", "x + rows[").replace("z + i[", "z + rows[").replace("  let a", "  let rows = arange(0, 128);\n  let a").replace(
    "buffer f16 16384", "buffer f16 32768", 1).replace("f32 4096", "f32 8192")
FILL, READ = r"async_copy\(", r"wgmma\("
# name, the program, edited, the interpreter's words, the simulator's kind, lines
PLANTS = [
    ("missing wait for the product before", one, cut(one, r"wgmma_wait\(pending=1\)"), "write to " + BUSY, RACE, FILL),
    ("one product too many under way", one, one.replace("pending=1", "pending=2"), "write to " + BUSY, RACE, FILL),
    ("refilled while it is read", one, one.replace("k % 2", "0"), "write to " + BUSY, RACE, FILL),
    ("result taken while its product is under way", one, one.replace("wgmma_wait(acc)", "wgmma_wait(acc, pending=1)"),
     "the accumulator's product is one of the newest 1", RACE, "store"),
    ("slot handed back before the wait", roles, move(roles, r"mbarrier_arrive\(empty", r"wgmma_wait\(pending=0\)"),
     BUSY + "|another team read", RACE, FILL + "|" + READ),
    ("slot handed back while one is under way", roles, roles.replace("wgmma_wait(pending=0)", "wgmma_wait(pending=1)"),
     BUSY + "|another team read", RACE, FILL + "|" + READ),
    ("missing wait for the copies", one, cut(one, "async_wait_all"), "still writing", RACE + "|uninit", READ),
    ("missing wait for what is full", roles, cut(roles, r"mbarrier_wait\(full"), "still writing|nothing has written|another team wrote", RACE + "|uninit",
     READ + "|" + FILL),
]
UNFENCED = "shared memory that threads wrote, with no asynchronous fence between"
SCHEDULED = [
    ("missing fence", one, lambda t: cut(t, 'fence kind = "async"'), UNFENCED, RACE, READ),
    ("missing fence of a team", roles, lambda t: cut(t, 'fence kind = "async"'), UNFENCED, RACE, READ),
    ("fence behind the barrier", one, lambda t: put(t, r'^( *fence kind = "async".*\n)( *barrier.*\n)', r"\2\1"), UNFENCED, RACE, READ),
    ("fence behind the arrival", roles, lambda t: put(t, r'^( *fence kind = "async".*\n)( *mbarrier_arrive.*\n)', r"\2\1"), UNFENCED, RACE, READ),
    ("missing barrier", one, lambda t: put(t, r'^( *fence kind = "async".*\n)( *barrier.*\n)', r"\1"), "other threads wrote with no barrier", RACE + "|uninit", READ),
    ("missing barrier behind the wait", both, lambda t: cut(t, "^    barrier"), "other threads read with no barrier", RACE, FILL + "|" + READ),
]
# The scheduled text, edited: what the compiler says.
REFUSED = [
    ("buffer where its swizzle does not begin", one, lambda t: put(t, r"shared_alloc offset = \d+", "shared_alloc offset = 128"),
     "an offset that is a multiple of 1024"),
    ("result used before its wait", one, lambda t: put(t, r"(store %\d+, )%\d+", r"\1%ACC").replace("%ACC", re.search(r"(%\d+_acc) = for", t).group(1)),
     "this accumulator is under way"),
    ("buffer freed before the wait", one, lambda t: put(t, r"^( *)wgmma_wait pending = 1", r"\1shared_free %A\n\g<0>").replace(
        "%A\n", re.search(r"(%\d+_a) = shared_alloc", t).group(1) + "\n"), "still under way reads this buffer"),
]


def schedule(build, path, text):
    with open(path, "w") as f:
        f.write(text)
    r = subprocess.run([os.path.join(build, "bin", "tilec"), path, "--emit=sched", f"--target={TARGET}", "--locs"], check=True, capture_output=True, text=True)
    return "// barriers\n" + "".join(line for line in text.splitlines(True) if line.startswith("//")) + r.stdout


def found(build, path, *options):
    tool = os.path.join(os.path.abspath(build), "tests", "check_kernel")
    return subprocess.run([tool, f"--way={TARGET}:1", "--planted", *options, path], capture_output=True, text=True).stdout.splitlines()


def wrong(source, findings, words, kind, lines):
    """What the findings of a planted fault lack; None: nothing."""
    def placed(finding):
        return any(re.search(lines, source[int(n) - 1]) for n in re.findall(r"k\.tile:(\d+)", finding) if int(n) <= len(source))
    read = [f for f in findings if ": read: fault:" in f]
    if not read or not re.search(words, read[0]) or not placed(read[0]):
        return f"the interpreter says {read or 'nothing'}"
    sim = [f for f in findings if f" {TARGET}:1 sim: " in f]
    if not sim or not re.match(rf"({kind}):", sim[0].split(" sim: ")[1]) or not placed(sim[0]):
        return f"the simulator says {sim or 'nothing'}"
    return None


def main():
    build, verbose, bad = sys.argv[1], "--verbose" in sys.argv, 0

    def report(name, why, findings):
        if why or verbose:
            print(f"{'WRONG' if why else 'ok'}: {name}{': ' + why if why else ''}", *(findings if verbose else []), sep="\n  ")
        return why is not None

    with tempfile.TemporaryDirectory() as folder:
        tile, tir = os.path.join(folder, "k.tile"), os.path.join(folder, "k.tir")

        def run(path, text, *options):
            with open(path, "w") as f:
                f.write(text)
            return found(build, path, *options)

        for name, before, text, *expected in PLANTS:
            first = run(tile, before, f"--save={folder}")
            findings = run(tile, text, f"--against={folder}")
            why = f"it is not right to begin with: {first}" if first else wrong(text.split("\n"), findings, *expected)
            bad += report(name, why, findings)
        for name, program, edit, *expected in SCHEDULED:
            text = schedule(build, tile, program)
            first = run(tir, text, f"--save={folder}")
            findings = run(tir, edit(text), f"--against={folder}")
            why = f"it is not right to begin with: {first}" if first else wrong(program.split("\n"), findings, *expected)
            bad += report(name, why, findings)
        for name, program, edit, words in REFUSED:
            with open(tir, "w") as f:
                f.write(edit(schedule(build, tile, program)))
            r = subprocess.run([os.path.join(build, "bin", "tilec"), tir, "--emit=ptx", "--verify", f"--target={TARGET}"], capture_output=True, text=True)
            bad += report(name, None if r.returncode == 1 and words in r.stderr else f"the compiler says {r.stderr or 'nothing'}", [])
    print(f"{len(PLANTS) + len(SCHEDULED) + len(REFUSED)} plants, {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
