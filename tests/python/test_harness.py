"""examples/harness.py: whatever a case does to its process, every planned case has one result, and the right ones fail."""
import os
import subprocess
import sys
import unittest

from common import root

sys.path.insert(0, os.path.join(root, "examples"))
import harness

BAD = os.path.join(root, "tests", "python", "Inputs", "bad_cases.py")
WHY = {"exits": "exit status 3", "is_killed": "SIGKILL", "eats": "killed: more than 0.25 GiB", "hangs": "killed: more than 1 s", "raises": "ValueError: as planned",
       "loses": "Lost: the context", "is_wrong": "x: error 3 (limit 0)"}


class Pools(unittest.TestCase):
    def run_all(self, jobs, device, hanging=False):
        """All cases but the one that hangs, with all the time they want; or that one, with little."""
        cases = harness.load(BAD)
        plan = [(i, s, seed) for i, s, seed in harness.plan(cases, False) if (s["how"] == "hangs") == hanging]
        pool = harness.Pool(BAD, device, jobs, budget=1 << 28, limit=1 if hanging else 300)
        got = list(pool.results({"case": i, "size": s, "seed": seed, "want": "check"} for i, s, seed in plan))
        self.assertEqual(sorted(t["seed"] for t, _ in got), sorted(seed for _, _, seed in plan))
        for task, out in got:
            name = cases[task["case"]].name
            if task["size"]["how"] == "is fine" or name not in WHY:
                self.assertEqual(out["why"], "", name)
            else:
                self.assertIn(WHY[name], out["why"])
        return pool

    def test_one_worker(self):
        self.assertFalse(self.run_all(1, "none").hello["sim"])

    def test_three_workers(self):
        self.assertTrue(self.run_all(3, "sim").hello["sim"])

    def test_time(self):
        self.run_all(2, "none", hanging=True)

    def test_no_device(self):
        with self.assertRaises(RuntimeError) as c:
            list(harness.Pool(BAD, "cuda:77").results([{"case": 0, "size": {"how": "is fine"}, "seed": 1, "want": "check"}]))
        self.assertIn("cuda", str(c.exception).lower())

    def test_summary(self):
        """run.py counts what was planned: a filter that matches nothing is a failure, a case that passes is not."""
        run = lambda *args: subprocess.run([sys.executable, os.path.join(root, "tests", "kernels", "run.py"), "--device=sim", *args], capture_output=True, text=True)
        good = run("--filter", "vector_add(n=1)")
        self.assertEqual((good.returncode, good.stdout), (0, "sim: 1 planned\nsim: 1 passed, 0 failed\n"))
        self.assertEqual(run("--filter", "no such case").returncode, 1)
        lean = run("--filter", "matmul(m=256", "--memory", "0.001")
        self.assertIn("killed: more than 0.001", lean.stdout)
        self.assertIn("sim: 0 passed, 1 failed", lean.stdout)
        self.assertEqual(lean.returncode, 1)


class Demo(unittest.TestCase):
    def test_demo(self):
        run = lambda *args: subprocess.run([sys.executable, os.path.join(root, "scripts", "demo.py"), "--device=sim", *args], capture_output=True, text=True)
        out = run("vector_add", "reduce_sum")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("2 passed, 0 failed", out.stdout)
        out = run("--memory=0.001", "matmul", "vector_add")
        self.assertEqual(out.returncode, 1)
        self.assertIn("failed: ", out.stdout)
        self.assertEqual(run("nothing").returncode, 1)


if __name__ == "__main__":
    unittest.main()
