"""scripts/bench: keep, compare and tabulate benchmark runs. See bench/data.py.

Tables stand between `<!-- table NAME of DEVICE -->` and `<!-- end of table -->` lines of bench/RESULTS.md and README.md; what is written
there by hand is lost. Each row is from the newest kept run on that device that has it; `old` behind the date means that the compiler
makes another PTX of its kernels by now, or that what ran was not recorded."""
import argparse
import concurrent.futures
import json
import math
import os
import re
import shutil
import sys

import data

FILES = ("README.md", os.path.join("bench", "RESULTS.md"))
NAMES = {"copy": "a copy", "triton": "Triton", "cublas": "cuBLAS", "flash2": "FlashAttention-2", "cusparselt": "cuSPARSELt", "cudnn": "cuDNN", "gluon": "Gluon", "bare": "the product alone", "found": "a loop",
         "driver": "the driver alone"}
# name: the sections whose rows it holds
TABLES = {
    "rows": ("vector_add", "softmax", "layer_norm", "rms_norm", "add_rms_norm", "transpose"),
    "long": ("softmax_cluster", "layer_norm_cluster", "rms_norm_cluster", "cross_entropy_cluster"),
    "backward": ("softmax_bwd", "layer_norm_bwd", "rms_norm_bwd"),
    "losses": ("cross_entropy", "cross_entropy_bwd", "cross_entropy_fused", "rotary", "rotary_interleaved", "dropout", "dropout_each"),
    "order": ("sort", "argsort", "top8", "top64", "cumsum", "recurrence", "gather", "histogram"),
    "arrays": ("prefix_sum", "recurrence of an array", "select", "radix_sort"),
    "hadamard": ("hadamard", "hadamard_quantise"),
    "quantise": ("quantise_groups", "quantise_squares", "quantise_grid", "scaled_matmul"),
    "matmul": ("matmul",),
    "products": ("products", "products_f8"),
    "scaled": ("products_scaled",),
    "grid": ("products_grid",),
    "grouped": ("grouped",),
    "company": ("products_in_company",),
    "fused": ("products_fused",),
    "mixed": ("products_mixed", "reorder_w4"),
    "sparse": ("products_sparse",),
    "schedule": ("schedule",),
    "attention": ("attention",),
    "attention_backward": ("attention_backward",),
    "attention_fp8": ("attention_fp8",),
    "ragged": ("attention_varlen",),
    "experts": ("moe",),
    "flex": ("flex", "flex_backward"),
    "chains": ("decode",),
    "decoding": ("decode_attention",),
    "few_tokens": ("small_m",),
    "recurrences": ("mamba2", "linear_attention", "selective_scan"),
    "drawing": ("sampling",),
    "layers": ("conv2d", "conv1d", "conv1d_causal", "rotary_cache"),
    "model": ("llama",),
    "step": ("decode_step",),
    "prompts": ("prompt_step",),
    "copies": ("async_add",),
    "memcpy": ("memcpy",),
    "stages": ("softmax_stages",),
    "host": ("compile", "tune", "warm_start", "first_call", "launch"),
    "runtime": ("graph",),
    "windows": ("windows",),
    "streams": ("streams",),
    "unseen": ("unseen",),
    "processes": ("cpu_process",),
    "compiles": ("cpu_compile",),
    "large": ("cpu_large",),
    "simulator": ("cpu_simulator",),
}
# Rows that are made no more. "of cuLaunchKernel": beside another process, on what core and with what in it there was no telling.
RETIRED = {("launch", "python, bound, of cuLaunchKernel")}
GONE = {"matmul_plain", "flattened"}          # sections that are in no table any more
# README.md: what a line says, section, case.
CHOSEN = [
    ("vector add, 2^27 f32", "vector_add", "f32 2^27"),
    ("softmax, 8192 x 4096 f32", "softmax", "f32 8192 x 4096"),
    ("layer norm, 8192 x 16384 f16", "layer_norm", "f16 8192 x 16384"),
    ("RMS norm, 8192 x 4096 bf16", "rms_norm", "bf16 8192 x 4096"),
    ("sort rows of 1024 f32", "sort", "f32 rows of 1024"),
    ("histogram of 256 bins", "histogram", "even"),
    ("attention forward, f16, d = 128, 4096 tokens", "attention", "d128 s4096 full"),
    ("matmul, f16, 4096^3", "matmul", "f16 nn 4096"),
    ("source to loaded kernel, vector add", "compile", "vector_add"),
    ("the same from the cache on disk, new process", "warm_start", "vector_add"),
    ("the fastest of 30 configurations of a matmul", "tune", "30 configurations of a matmul, f16 4096^3"),
    ("one launch, from Python", "launch", "python"),
]


def number(v):
    """Four digits, as they are said."""
    return f"{v:.0f}" if abs(v) >= 1000 else f"{v:.4g}"


class Rows:
    """The newest row of each section and case of a device, and the run it is from."""

    def __init__(self, runs, device, compiler):
        self.rows, self.compiler = {}, compiler
        for run in runs:
            if run.head["device"] == device:
                self.rows.update({(r["section"], r["case"]): (r, run) for r in run.rows if (r["section"], r["case"]) not in RETIRED})
        compiler.prepare([row for row, _ in self.rows.values()])

    def of(self, sections):
        return [self.rows[key] for s in sections for key in self.rows if key[0] == s]

    def measured(self, row, run):
        return run.source() + (", old" if self.compiler.stale(row) else "")


def markdown(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(l) + " |" for l in lines])


def table(rows, name):
    found = rows.of(TABLES[name])
    peers = list(dict.fromkeys(p for r, _ in found for p in r["peers"]))
    sides = list(dict.fromkeys(s for r, _ in found for s in data.ours(r)))
    ratio = len(sides) == 1 and bool(peers)
    choice = len(sides) == 1 and any(r["sides"].get(sides[0], {}).get("config") for r, _ in found)
    notes = list(dict.fromkeys(k for r, _ in found for k in r["extra"] if k != "of"))
    head = ["what", "case", *(NAMES.get(p, p) for p in peers), *sides, *["to the first peer"] * ratio, *(k.replace("_", " ") for k in notes),
            *["choice"] * choice, "measured"]
    lines = []
    for row, run in found:
        cell = lambda s: number(row["sides"][s]["value"]) if s in row["sides"] else ""
        line = [f"{row['section']} ({row['unit']})", row["case"], *map(cell, peers), *map(cell, sides)]
        if ratio:
            both = sides[0] in row["sides"] and any(p in row["sides"] for p in row["peers"])
            line.append(f"{data.figure(row, sides[0])[0]:.3f}" if both else "")
        line += [number(row["extra"][k]) if isinstance(row["extra"].get(k), (int, float)) else str(row["extra"].get(k, "")) for k in notes]
        if choice:
            line.append(row["sides"].get(sides[0], {}).get("config", ""))
        lines.append(line + [rows.measured(row, run)])
    return markdown(head, lines) if lines else "(not measured)"


def chosen(rows):
    lines = []
    for words, *key in CHOSEN:
        if tuple(key) in rows.rows:
            row, run = rows.rows[tuple(key)]
            figures = {s: number(v["value"]) for s, v in row["sides"].items()}
            peers = ", ".join(f"{NAMES.get(s, s)} {figures[s]}" for s in row["peers"] if s in figures)
            lines.append([words, peers and f"{peers} {row['unit']}", f"{figures[data.ours(row)[0]]} {row['unit']}", rows.measured(row, run)])
    return markdown(["", "peer", "tilec", "measured"], lines)


def spread(rows):
    """Of the kernels that nobody tuned: how they compare with Triton's, together and those apart whose rate of the product alone is known."""
    found = [(data.figure(row, "tilec")[0], row, run) for key, (row, run) in rows.rows.items()
             if key[0] == "unseen" and row["peers"][:1] == ["triton"] and "tilec" in row["sides"]]
    lines = []
    for words, wanted in (("all", lambda r: True), ("products in company, beside wgmma", lambda r: "of_bare" in r["extra"]),
                          ("all others", lambda r: "of_bare" not in r["extra"])):
        if some := [f for f in found if wanted(f[1])]:
            least, row, run = min(some, key=lambda f: f[0])
            mean = math.exp(sum(math.log(f) for f, *_ in some) / len(some))
            lines.append([words, str(len(some)), f"{mean:.3f}", f"{least:.3f}", row["case"].split(",")[0], rows.measured(row, run)])
    return markdown(["kernels", "how many", "tilec to Triton, geometric mean", "least", "which", "measured"], lines)


def fill(text, runs, compiler):
    """A page with its tables as the kept runs have them."""
    known = {}

    def replace(m):
        name, device = m.group(1), m.group(2)
        rows = known.setdefault(device, None) or Rows(runs, device, compiler)
        known[device] = rows
        summaries = {"chosen": chosen, "spread": spread}
        if name not in summaries and name not in TABLES:
            raise ValueError(f"no table {name}; there are {', '.join([*summaries, *TABLES])}")
        return f"<!-- table {name} of {device} -->\n{summaries[name](rows) if name in summaries else table(rows, name)}\n<!-- end of table -->"
    return re.sub(r"<!-- table (\w+) of ([^>]+?) -->\n.*?<!-- end of table -->", replace, text, flags=re.S)


def tables(tilec, check):
    runs, compiler, bad = data.kept(), data.Compiler(tilec), []
    for name in FILES:
        path = os.path.join(data.root, name)
        with open(path) as f:
            text = f.read()
        new = fill(text, runs, compiler)
        if new == text:
            continue
        if check:
            there = set(text.splitlines())
            first = next((l for l in new.splitlines() if l not in there), "(a line less)")
            bad.append(f"{name} is not what scripts/bench tables writes; for one: {first[:160]}")
        else:
            with open(path, "w") as f:
                f.write(new)
            print(f"wrote {name}")
    return "\n".join(bad)


def keep(path):
    run = data.Run(path)
    if not run.tail:
        print(f"note: {path} was cut short: it has no end")
    os.makedirs(data.RUNS, exist_ok=True)
    to = os.path.join(data.RUNS, run.name() + ".jsonl")
    if os.path.exists(to):
        sys.exit(f"{to} is kept already")
    shutil.copy(path, to)
    print(f"kept {os.path.relpath(to, data.root)}: {len(run.rows)} rows")


def same(old, tilec):
    """Of all rows the newest: how many pairs of PTX were found to be the same machine code, and written."""
    new, newest = data.Compiler(tilec), {}
    for run in data.kept():
        newest.update({(run.head["device"], r["section"], r["case"]): r for r in run.rows if not r["extra"].get("of")})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = {(p["was"], p["is"]) for found in pool.map(lambda r: data.pairs_of_code(r, old, new), newest.values()) for p in found}
    with open(data.SAME, "a") as f:
        f.writelines(json.dumps({"was": was, "is": now}) + "\n" for was, now in sorted(pairs))
    return len(pairs)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--tilec", default=os.path.join(data.root, "build", "bin", "tilec"))
    sub = a.add_subparsers(dest="what", required=True)
    sub.add_parser("keep").add_argument("file")
    sub.add_parser("compare").add_argument("file", nargs="?")
    sub.add_parser("tables").add_argument("--check", action="store_true")
    sub.add_parser("list")
    s = sub.add_parser("same", help="write to bench/same.jsonl which PTX became other PTX of the same machine code, by ptxas")
    s.add_argument("was", help="a tilec whose PTX is that of kept rows")
    s.add_argument("tree", help="the tree it was built from")
    a = a.parse_args()
    a.tilec = shutil.which(a.tilec) or a.tilec
    if a.what == "keep":
        keep(a.file)
    elif a.what == "tables":
        if not os.path.exists(a.tilec):
            sys.exit(f"{a.tilec} is not there: tables compile each row's kernels to see whether it is still true (scripts/build)")
        if bad := tables(a.tilec, a.check):
            sys.exit(bad)
    elif a.what == "same":
        print(f"{same(data.Compiler(os.path.abspath(a.was), a.tree), a.tilec)} more that are the same machine code: {os.path.relpath(data.SAME, data.root)}")
    elif a.what == "list":
        for run in data.kept():
            note = f", {run.head['note']}" if run.head.get("note") else ""
            print(f"{os.path.basename(run.path)}: {run.head['device']}, {len(run.rows)} rows{note}")
    else:
        runs = data.kept()
        if not a.file and not runs:
            sys.exit("no kept runs")
        run = data.Run(a.file) if a.file else runs[-1]
        worse, count = data.compare(run, runs)
        print("\n".join(worse + [f"{run.path}: {count} rows compared, {len(worse)} worse or missing"]))
        sys.exit(bool(worse))


if __name__ == "__main__":
    main()
