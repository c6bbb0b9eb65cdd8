"""Benchmark runs as data (bench/data.py, bench/runs.py): written, read, compared, and told whether they are still true."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

from common import root, tilec

sys.path.insert(0, os.path.join(root, "bench"))
import data
import roofs
import runs

TILEC = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(tilec.lib._name))), "bin", "tilec")


def row_of(ms, peer=None, spread=0.001, section="s", case="c", kernels=(), better="more"):
    three = lambda m: (m * (1 - spread), m, m * (1 + spread))
    sides = {"triton": data.of_times(three(peer), 1e9, 1e-9)} if peer else {}
    sides["tilec"] = data.of_times(three(ms), 1e9, 1e-9)
    return dict(section=section, case=case, unit="TB/s", sides=sides, peers=["triton"] if peer else [], kernels=kernels, better=better)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.count = folder.name, 0

    def run_of(self, *rows, device="GPU", end=True):
        self.count += 1
        w = data.Writer(os.path.join(self.folder, f"{self.count}.jsonl"), device=device, driver="1", versions={}, command=[])
        for r in rows:
            w.row(**r)
        if end:
            w.end({r["section"]: 1.0 for r in rows}, [], [])
        w.file.close()
        return data.Run(w.file.name)

    def test_written_and_read(self):
        run = self.run_of(row_of(2.0, 3.0))
        self.assertEqual(run.rows[0]["sides"]["tilec"]["value"], 0.5)
        self.assertAlmostEqual(data.figure(run.rows[0], "tilec")[0], 1.5)
        self.assertRegex(run.name(), r"^\d{4}-\d\d-\d\dT\d{6}-gpu-")
        self.assertEqual(run.tail["seconds"], {"s": 1.0})
        self.assertIsNone(self.run_of(row_of(1.0), end=False).tail)
        with open(os.path.join(self.folder, "bad.jsonl"), "w") as f:
            f.write('{"run": {"date": "2026-01-01", "device": "x", "commit": null, "dirty": null}}\n{"section": "s"}\n')
        with self.assertRaises(ValueError):
            data.Run(f.name)

    def test_kernels_that_came_to_say_their_grids(self):
        """A parameter that only the grid clause reads makes no other code; one that the kernel reads does."""
        body = "{ let i = program_id(0) * n + arange(0, 64); store(y + i, load(x + i) + a); }"
        ptx = {}
        for name, args, clause in (("before", "x: *f32, y: *f32, n: i32, a: f32", ""), ("after", "x: *f32, rows: i32, y: *f32, n: i32, a: f32", "grid(rows)"),
                                   ("reads", "x: *f32, y: *f32, n: i32, a: f32", "grid(n)")):
            path = os.path.join(self.folder, f"{name}.tile")
            with open(path, "w") as f:
                f.write(f"kernel k({args}) {clause} {body}\n")
            r = subprocess.run([TILEC, path, "--no-line-info"], capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stderr)
            ptx[name] = r.stdout
        self.assertNotEqual(data.digest(ptx["before"]), data.digest(ptx["after"]))
        self.assertEqual(re.sub(r" grid=\S+", "", data.without_told(ptx["after"]).split("\n", 1)[0]), ptx["before"].split("\n", 1)[0])
        loads = lambda text: sorted(re.findall(r"ld.param.*(\[.*\])", text))
        self.assertEqual(loads(data.without_told(ptx["after"])), loads(ptx["before"]))
        self.assertEqual(data.without_told(ptx["reads"]), ptx["reads"])

    def test_the_same_machine_code(self):
        """What is known to be the same code is true still, over several steps; what is not is old."""
        path = os.path.join(self.folder, "k.tile")
        with open(path, "w") as f:
            f.write("kernel k(x: *f32) { store(x + arange(0, 32), 1.0); }\n")
        k = {"file": path, "kernel": "k", "defines": {}, "target": "sm_90a", "facts": []}
        now = next(iter(data.Compiler(TILEC).digests(k)))
        same = os.path.join(self.folder, "same.jsonl")
        with open(same, "w") as f:
            f.write(f'{{"was": "older", "is": "old"}}\n{{"was": "old", "is": "{now}"}}\n{{"was": "other", "is": "else"}}\n')
        compiler = data.Compiler(TILEC, same=same)
        stale = lambda ptx: compiler.stale({"extra": {}, "kernels": [{**k, "ptx": ptx}]})
        self.assertEqual([stale(p) for p in (now, "old", "older", "other")], ["", "", "", "changed"])

    def test_made_side_by_side(self):
        a, b = self.run_of(row_of(2.0, section="a")), self.run_of(row_of(3.0, section="b"))
        whole = os.path.join(self.folder, "whole.jsonl")
        run = data.join([a.path, b.path], whole, ["a", "b"])
        self.assertEqual([r["section"] for r in run.rows], ["a", "b"])
        self.assertEqual(run.tail, {"seconds": {"a": 1.0, "b": 1.0}, "left_out": [], "failures": []})
        self.assertEqual((run.head["device"], run.head["side_by_side"]), ("GPU", 2))
        self.assertFalse(os.path.exists(a.path) or os.path.exists(b.path))
        # What did not end is a failure of the whole, and so is what is not there and what is not of one machine.
        a, b, c = self.run_of(row_of(2.0, section="a"), end=False), os.path.join(self.folder, "none"), self.run_of(row_of(1.0, section="c"), device="another")
        failures = data.join([a.path, b, c.path], whole, []).tail["failures"]
        self.assertEqual(["none" in f or "cut short behind 1 rows" in f or "another" in f for f in failures], [True] * 3)
        with self.assertRaises(ValueError):
            data.join([b], whole, [])

    def test_times_less_is_better(self):
        run = self.run_of(dict(section="h", case="c", unit="ms", better="less", peers=["triton"], sides={"triton": data.of_times([8, 9, 10]), "tilec": data.of_times([2, 3, 4])}))
        self.assertEqual(data.figure(run.rows[0], "tilec")[0], 3.0)

    def compared(self, new, *old):
        return data.compare(new, [*old, new])

    def test_what_fell(self):
        old = self.run_of(row_of(2.0, 2.0, case="slower"), row_of(2.0, 2.0, case="same"), row_of(2.0, case="alone"), row_of(2.0, 2.0, case="gone"), row_of(2.0, 2.0, section="other"))
        # A chip on which both are 10% slower is no loss; 5% to the peer is; 1.5% is within twice the floor.
        new = self.run_of(row_of(2.31, 2.2, case="slower"), row_of(2.23, 2.2, case="same"), row_of(2.2, case="alone"))
        worse, count = self.compared(new, old)
        self.assertEqual(count, 3)
        self.assertEqual([re.split(r"[: ]", w)[1] for w in worse], ["slower", "alone", "gone"])
        self.assertIn("not measured", worse[-1])
        self.assertEqual(self.compared(new, self.run_of(row_of(1.0, 2.0), device="another GPU")), ([], 0))

    def test_as_kept(self):
        def row(case, config, peers="", section="s"):
            return {"section": section, "case": case, "sides": {"triton": data.side(1.0, config=peers), "tilec": data.side(1.0, config=config)}}
        rows = [row("f32 8 x 8", (1, 2)), row("f32 8 x 16", (2, 2), 4), row("f32 8 x 8", (4, 2)), row("f32 8 x 8", (8, 8), section="other")]
        labels = [(1, 2), (2, 2), (4, 2), (8, 8)]
        self.assertEqual(data.chosen(rows, "s f32 8 x 8", labels), [(4, 2)])                    # the newest
        self.assertEqual(data.chosen(rows, "s f32 8 x 16", [2, 4, 8]), [4])                     # a peer's
        self.assertEqual(data.chosen(rows, "s f32", labels), [(2, 2), (4, 2)])                  # all such cases
        self.assertEqual(data.chosen(rows, "s bf16", labels), labels)                           # none
        self.assertEqual(data.chosen(rows, "s f32 8 x 8", [1, 2]), [1, 2])                      # not among them any more

    def test_noise(self):
        steady, shaky = self.run_of(row_of(2.0, 2.0)), self.run_of(row_of(2.12, 2.0, spread=0.05))
        self.assertEqual(self.compared(shaky, steady)[0], [])                        # its own spread
        self.assertEqual(self.compared(self.run_of(row_of(2.12, 2.0)), self.run_of(row_of(2.0, 2.0, spread=0.05)))[0], [])   # the best one's
        code = [{"ptx": "1"}]
        repeats = [self.run_of(row_of(t, 2.0, kernels=code)) for t in (2.0, 2.16)]   # the same PTX, 8% apart
        self.assertEqual(self.compared(self.run_of(row_of(2.12, 2.0)), *repeats)[0], [])
        self.assertEqual(len(self.compared(self.run_of(row_of(2.12, 2.0)), repeats[0])[0]), 1)

    def test_stale(self):
        dev, file = tilec.Device("sim"), os.path.join("examples", "vector_add.tile")
        call = dev.program(os.path.join(root, file), line_info=False).kernel("add", BLOCK=512, warps=2).bind(4, *(dev.empty(2048, "f32") for _ in range(3)), 2048)
        kernel = data.kernel_of(call, file, "add", dict(BLOCK=512, warps=2), dev.info.target.decode())
        self.assertIn("x%16", kernel["facts"])
        compiler = data.Compiler(TILEC)
        stale = lambda *kernels, **extra: compiler.stale({"kernels": list(kernels), "extra": extra})
        self.assertEqual(stale(kernel), "")
        self.assertEqual(stale(kernel, {**kernel, "defines": {"BLOCK": "1024", "warps": "2"}}), "changed")
        self.assertEqual(stale({**kernel, "facts": []}), "changed")
        self.assertEqual(stale({**kernel, "file": "examples/gone.tile"}), "changed")
        self.assertEqual(stale({**kernel, "kernel": "gone"}), "changed")
        self.assertEqual((stale(), stale(of="host")), ("unknown", ""))

    def test_tables(self):
        dev, file = tilec.Device("sim"), os.path.join("examples", "vector_add.tile")
        call = dev.program(os.path.join(root, file), line_info=False).kernel("add").bind(2, *(dev.empty(2048, "f32") for _ in range(3)), 2048)
        true = data.kernel_of(call, file, "add", {}, dev.info.target.decode())
        old = self.run_of(row_of(2.0, 2.0, section="vector_add", case="one"), row_of(2.0, 2.0, section="vector_add", case="two", kernels=[true]))
        new = self.run_of(row_of(1.0, 2.0, section="vector_add", case="one", kernels=[{**true, "ptx": "other"}]))
        page = "before\n<!-- table rows of GPU -->\nby hand\n<!-- end of table -->\nafter\n<!-- table rows of none -->\n<!-- end of table -->\n"
        text = runs.fill(page, [old, new], data.Compiler(TILEC))
        self.assertNotIn("by hand", text)
        lines = {l.split(" | ")[1]: l for l in text.splitlines() if l.startswith("| vector_add")}
        self.assertIn("| 2.000 |", lines["one"])
        self.assertTrue(lines["one"].endswith(", old |"))
        self.assertFalse(lines["two"].endswith(", old |"))
        self.assertIn("(not measured)", text)
        self.assertEqual(runs.fill(text, [old, new], data.Compiler(TILEC)), text)
        with self.assertRaises(ValueError):
            runs.fill("<!-- table nonsense of GPU -->\n<!-- end of table -->", [], data.Compiler(TILEC))

    def test_kept_runs(self):
        """Every kept file reads, and every section of it is in some table of its device that is shown, or said to be gone."""
        with open(os.path.join(root, "bench", "RESULTS.md")) as f:
            shown = {device: {s for name, d in places if d == device for s in runs.TABLES.get(name, ())}
                     for places in [re.findall(r"<!-- table (\w+) of ([^>]+?) -->", f.read())] for _, device in places}
        for run in data.kept():
            self.assertEqual({r["section"] for r in run.rows} - shown.get(run.head["device"], set()) - runs.GONE, set(), run.path)
            self.assertTrue(run.tail, run.path)

    def test_unseen_has_both_sides(self):
        """Every kernel of the contest has a peer of its name, and a case; each file of kernels is one that the compiler takes."""
        folder = os.path.join(root, "bench", "unseen")

        def text(*path):
            with open(os.path.join(*path)) as f:
                return f.read()
        files = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".tile")]
        kernels = {k for f in files for k in re.findall(r"^kernel (\w+)", text(f), re.M)}
        self.assertEqual(kernels - set(re.findall(r"^def (\w+)", text(folder, "peers.py"), re.M)), set())
        self.assertEqual(kernels - set(re.findall(r'"(\w+)"', text(root, "bench", "unseen.py"))), set())
        for f in files:
            r = subprocess.run([TILEC, "--describe", f], capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stderr)

    def test_roofs(self):
        h200 = dict(name="NVIDIA H200", memory_clock_khz=3201000, memory_bus_bits=6144)
        self.assertAlmostEqual(roofs.bandwidth(h200) * 1e-12, 4.917, 3)
        self.assertAlmostEqual(roofs.share(h200, 1e-3, flops=9.89e11 / 2), 0.5)
        self.assertAlmostEqual(roofs.share(h200, 1e-3, bytes=4.917e9, flops=1), 1.0, 3)
        self.assertEqual(roofs.products("NVIDIA H100 PCIe", "f16"), 756e12)
        self.assertEqual(roofs.products("NVIDIA H100 80GB HBM3", "f8e5m2"), 1979e12)
        self.assertIsNone(roofs.share(dict(name="unknown"), 1.0, flops=1))
        self.assertIsNone(roofs.share(dict(name="unknown"), 1.0, bytes=1))


@unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("triton"), "torch or Triton is not installed")
class Rehearsal(unittest.TestCase):
    """bench/gpu.py and bench/unseen.py from end to end, small and on the simulator."""

    def gpu(self, *args, driver="gpu.py"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.jsonl")
            r = subprocess.run([sys.executable, os.path.join(root, "bench", driver), "--rehearse", "--out", path, *args], capture_output=True, text=True)
            return r, *[data.Run(os.path.join(folder, name)) for name in sorted(os.listdir(folder), reverse=True)]

    def test_part(self):
        r, run, host = self.gpu("vector_add", "softmax", "launch")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        compiler = data.Compiler(TILEC)
        self.assertEqual({compiler.stale(row) for row in run.rows}, {""})
        self.assertEqual((set(run.tail["seconds"]), set(host.tail["seconds"])), ({"vector_add", "softmax"}, {"launch"}))

    def test_products(self):
        """Sides in turns; of a product in company the product alone is a peer, and the kernel that is recorded is the one in company."""
        r, run = self.gpu("products", "memcpy")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        compiler = data.Compiler(TILEC)
        self.assertEqual({compiler.stale(row) for row in run.rows}, {""})
        peers = {row["section"]: row["peers"] for row in run.rows}
        self.assertEqual({s: p[0] for s, p in peers.items()}, {"products": "cublas", "products_f8": "cublas", "products_in_company": "bare", "memcpy": "torch"})
        self.assertEqual({s for part in runs.TABLES.values() for s in part} & set(peers), set(peers))
        last = [row for row in run.rows if row["section"] == "products_in_company"][-1]
        self.assertEqual({last["kernels"][0]["defines"][k] for k in ("BIAS", "GELU", "RESIDUAL")}, {"true"})
        self.assertEqual(last["kernels"][0]["file"], "bench/products.tile")

    def test_share(self):
        """A process that only compiles comes to the end of every section."""
        parts = "rows", "norms", "backward", "losses", "order", "arrays", "dots", "products"
        r = subprocess.run([sys.executable, os.path.join(root, "bench", "gpu.py"), "--rehearse", "--share", "0/1", *parts], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def test_unseen(self):
        r, run = self.gpu("swiglu", "topk_long", driver="unseen.py")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertEqual(r.stdout.count("holds 2 rows"), 2)             # one process does both, and the whole
        self.assertEqual([row["case"] for row in run.rows], ["swiglu, bf16 3 x 1111", "topk_long, f32 8 of 2 x 1000"])
        self.assertEqual({row["section"] for row in run.rows}, {"unseen"})
        self.assertEqual([[k["file"] for k in row["kernels"]] for row in run.rows], [["bench/unseen/fused.tile"], ["bench/unseen/folds.tile"] * 2])
        compiler = data.Compiler(TILEC)
        self.assertEqual({compiler.stale(row) for row in run.rows}, {""})
        for row in run.rows:
            self.assertGreater(row["extra"]["ptx_ms"], 0)

    def test_unseen_share(self):
        r = subprocess.run([sys.executable, os.path.join(root, "bench", "unseen.py"), "--rehearse", "--share", "0/1", "swiglu", "bag", "bmm"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def test_limit(self):
        r, *runs = self.gpu("--limit", "0.01", "vector_add", "softmax")
        self.assertEqual((r.returncode, runs), (1, []))
        self.assertIn("FAILED softmax was stopped after 0.01 s", r.stdout)

    def test_budget(self):
        r, run = self.gpu("--budget", "0.001", "vector_add", "softmax")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(run.tail["left_out"], ["vector_add from f32 2^10 on", "softmax from f32 100 on"])
        self.assertIn("FAILED left out: softmax", r.stdout)


if __name__ == "__main__":
    unittest.main()
