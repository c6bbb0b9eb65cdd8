"""The inputs of the fuzz targets. corpus.py BUILD [TARGET...] [--seconds N] [--keep] [--tilec PROGRAM]

BUILD is made by clang with TILEC_FUZZ; targets are tile, tir, passes, ptx, args and weights (fuzz_NAME.c; passes and tir share their inputs).
Each runs N seconds, as many at a time as there are cores, from the kept corpus (tests/fuzz/corpus), from seeds - the sources in
tests/ and examples/, the IR of the examples at each stage, their PTX - and from what it found before (BUILD/corpus), with a
dictionary made from the compiler's tables.

--keep: afterwards what reaches code that seeds and kept files do not, and no more, joins the kept corpus, under names beginning with
x-. Files with other names are kept whatever they reach: each was a fault once, or is there to be read."""
import argparse, base64, functools, glob, hashlib, os, re, shutil, subprocess, sys, tempfile, zlib
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path.insert(0, here)
import gen_kernel

RANDOM = 60              # random kernels among the seeds
KEPT = {"tile": "tile", "tir": "tir", "passes": "tir", "ptx": "ptx", "args": "args", "weights": "weights"}
LONGEST = {"tile": 16384, "tir": 65536, "passes": 16384, "ptx": 65536, "args": 4096, "weights": 4096}
KEEP_LONGEST = 2048      # of what joins the kept corpus
SHOWN = 30               # lines of a fault's words; the input itself is shown whole
OPTIONS = ["-rss_limit_mb=4096", "-timeout=25", "-print_final_stats=1"]


def sources(suffix):
    found = [p for d in ("tests", "examples", "stdlib") for p in glob.glob(f"{root}/{d}/**/*{suffix}", recursive=True)]
    return sorted(p for p in found if "/fuzz/corpus/" not in p)


def emit(tilec, path, stage):
    r = subprocess.run([tilec, os.path.basename(path), "--emit=" + stage], capture_output=True, cwd=os.path.dirname(path))
    return None if r.returncode else r.stdout


def stages(tilec, names, suffix):
    """(name, text) of the examples and of some random kernels at the stages."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as threads:
        for n in range(RANDOM):
            with open(os.path.join(folder, f"random{n}.tile"), "w") as f:
                f.write(gen_kernel.generate(n).text(ptx=n % 2))
        jobs = [(p, s) for p in sorted(glob.glob(f"{root}/examples/*.tile") + glob.glob(folder + "/*")) for s in names]
        texts = threads.map(lambda job: emit(tilec, *job), jobs)
        return [(f"{os.path.basename(p)}.{s}{suffix}", text) for (p, s), text in zip(jobs, texts) if text is not None]


@functools.cache
def seed_texts(kind, tilec):
    """(name, text) of the seeds of this kind of input."""
    texts = [(os.path.relpath(p, root).replace("/", "_"), open(p, "rb").read()) for p in sources("." + kind)]
    if kind == "tir":
        texts += stages(tilec, ["tile", "placed", "sched"], ".tir")
    if kind == "ptx":
        texts += stages(tilec, ["ptx"], ".ptx")
    return texts


def seeds(target, tilec, folder):
    os.makedirs(folder, exist_ok=True)
    for name, text in seed_texts(KEPT[target], tilec):
        if len(text) <= LONGEST[target]:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(text)


def words(target):
    read = lambda p: open(os.path.join(root, p)).read()
    rows = lambda p, macro: re.findall(rf'^{macro}\(\w+, *"([^"]+)"', read(p), re.M)
    dtypes = rows("ir/dtypes.def", "DTYPE")
    if target == "ptx":
        return dtypes + re.findall(r'"([a-z][\w.]*)"', read("runtime/sim/ptx.def")) + [".reg", ".pred", ".b32", ".visible", ".entry", "//@tilec "]
    if target == "args":
        return ["\x93NUMPY\x01\x00", "'descr'", "'fortran_order'", "'shape'", "False", "<f4", "|u1", "cdiv(", "min(", "max("]
    if target == "weights":
        return (["GGUF\x03\x00\x00\x00", "general.alignment", "tokenizer.ggml.scores", "tokenizer.ggml.model", "llama", "<0x41>", "byte_fallback", "split.count", "<|im_start|>system\\n", "<|im_end|>", "[INST]", "bos_token", "__metadata__", "dtype", "shape", "data_offsets", "\\u", "w"]
                + re.findall(r'"(\w+)"', read("examples/llama/formats.def")))
    ops = rows("ir/ops.def", "OP")
    if target == "tile":
        builtins = re.findall(r"^BUILTIN\((\w+)", read("frontend/builtins.def"), re.M)
        keywords = re.findall(r'^"([^"]+)" +return TL_', read("frontend/lexer.l"), re.M)
        library = re.findall(r"^fn (\w+)", "\n".join(map(open_text, glob.glob(f"{root}/stdlib/*.tile"))), re.M)
        return keywords + builtins + ops + library + dtypes + re.findall(r'"(\w+)[?"]', read("frontend/builtins.def"))
    kinds = re.findall(r'"([a-z_]+)"', read("layout/layout_text.c")) if os.path.exists(os.path.join(root, "layout/layout_text.c")) else []
    return ops + [a + "=" for a in rows("ir/attrs.def", "ATTR")] + dtypes + kinds + ["yield", "kernel @", "->", "loc(", "#0 = "]


def open_text(path):
    return open(path).read()


def dictionary(target, path):
    with open(path, "w") as f:
        for w in sorted(set(words(target))):
            f.write('"' + "".join(c if c.isalnum() or c in "_ .=" else f"\\x{ord(c):02x}" for c in w) + '"\n')


def count(folder):
    return len(os.listdir(folder))


class Corpus:
    def __init__(self, build, tilec, target):
        self.target = target
        self.program = os.path.join(build, "tests", "fuzz_" + target)
        home = os.path.join(build, "corpus")
        self.seeds, self.found, self.faults = (os.path.join(home, d, target) for d in ("seeds", "found", "faults"))
        self.kept = os.path.join(here, "corpus", KEPT[target])
        self.words = os.path.join(home, target + ".dict")
        for d in (self.found, self.faults, self.kept):
            os.makedirs(d, exist_ok=True)
        seeds(target, tilec, self.seeds)
        dictionary(target, self.words)

    def run(self, *args):
        r = subprocess.run([self.program, *OPTIONS, f"-artifact_prefix={self.faults}/", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return r.returncode, r.stdout.decode(errors="replace")

    def grow(self, seconds, seed):
        """How many inputs were tried; the words of a fault, or None."""
        status, log = self.run(f"-dict={self.words}", f"-max_len={LONGEST[self.target]}", f"-max_total_time={seconds}", f"-seed={seed}",
                               self.found, self.kept, self.seeds)
        tried = re.search(r"number_of_executed_units: *(\d+)", log)
        return int(tried.group(1)) if tried else 0, self.words_of(log) if status else None

    def words_of(self, log):
        """What a run that failed says: the fault's own words, the sanitizer's, and the input, as the machine may be gone when they are read."""
        said = re.search(r"^fault: (.*?)^end of the fault$", log, re.M | re.S)
        lines = said.group(1).split("\n")[:SHOWN] if said else []
        lines += [s for s in log.split("\n") if re.search(r"ERROR|SUMMARY|runtime error|^ +#\d", s)][:SHOWN]
        for path in re.findall(r"Test unit written to (\S+)", log):
            packed = base64.b64encode(zlib.compress(open(path, "rb").read(), 9)).decode()
            lines.append(f"{path}: scripts/corpus --unpack {packed}")
        return lines or log.split("\n")[-SHOWN:]

    def keep(self):
        """What seeds and named files do not reach, as few and short files as will do."""
        with tempfile.TemporaryDirectory() as known:
            named = [p for p in glob.glob(self.kept + "/*") if not os.path.basename(p).startswith("x-")]
            for p in glob.glob(self.seeds + "/*") + named:
                shutil.copy(p, known)
            before = set(os.listdir(known))
            self.run("-set_cover_merge=1", "-use_counters=0", f"-max_len={KEEP_LONGEST}", known, self.kept, self.found)
            new = {open(os.path.join(known, n), "rb").read() for n in set(os.listdir(known)) - before}
        if self.target != "passes":        # its inputs only join
            for p in glob.glob(self.kept + "/x-*"):
                os.remove(p)
        for text in new:
            with open(os.path.join(self.kept, "x-" + hashlib.sha1(text).hexdigest()[:12]), "wb") as f:
                f.write(text)
        return len(new)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("targets", nargs="*", default=list(KEPT))
    a.add_argument("--seconds", type=int, default=60, help="for each target; 0: run none")
    a.add_argument("--seed", type=int, default=1, help="of what is tried, which else depends on the machine's speed only; 0: another one each time")
    a.add_argument("--keep", action="store_true")
    a.add_argument("--unpack", metavar="TEXT", help="write the input that a failure showed to stdout, and run nothing")
    a.add_argument("--tilec", default=os.path.join(root, "build", "bin", "tilec"))
    a = a.parse_args()
    if a.unpack:
        sys.stdout.buffer.write(zlib.decompress(base64.b64decode(a.unpack)))
        return 0
    corpora = [Corpus(os.path.abspath(a.build), os.path.abspath(a.tilec), target) for target in a.targets]
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        runs = [(c, threads.submit(c.grow, a.seconds, a.seed)) for c in corpora if a.seconds]
        for c, run in runs:
            tried, said = run.result()
            if said:
                failed = True
                print(f"fuzz_{c.target} failed; the input is in {c.faults}\n  " + "\n  ".join(said), flush=True)
            else:
                print(f"fuzz_{c.target}: {tried} inputs, no fault", flush=True)
    for c in corpora if a.keep else []:
        c.keep()
        print(f"fuzz_{c.target}: {count(c.kept)} inputs kept", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
