"""Run every example on a device, check the results, print a table. demo.py [--device=cuda|sim] [NAME...]"""
import argparse, os, sys, time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "tools"), os.path.join(root, "examples")]
import numpy as np
import cases
import tilec

a = argparse.ArgumentParser(description=__doc__)
a.add_argument("--device", help="cuda or sim; the GPU if there is one, else the simulator")
a.add_argument("names", nargs="*")
a = a.parse_args()
dev = tilec.Device(a.device)
print(f"tilec {tilec.lib.tilec_version().decode()} on {dev.name}")
print(f"{'example':20} {'size':34} {'compile':>9} {'run':>10} {'rate':>14}  result")
bad = 0
for case in cases.CASES:
    if a.names and case.name not in a.names:
        continue
    size = (case.sim if dev.is_sim else case.gpu)[0]
    try:
        t = time.perf_counter()
        r = case.run(dev, np.random.default_rng(1), **size)
        seconds = time.perf_counter() - t
        if not dev.is_sim:
            seconds = r.call.bench()["median_ms"] * 1e-3
        info = r.call.info()
        ok = cases.passed(r.checks)
        worst = max(cases.error(g, w, t) for _, g, w, t in r.checks)
        rate = f"{r.flops / seconds * 1e-12:8.1f} TFLOP/s" if r.flops else f"{r.bytes / seconds * 1e-9:9.1f} GB/s"
        print(f"{case.name:20} {' '.join(f'{k}={v}' for k, v in size.items()):34} {info['compile_ms']:6.1f} ms {seconds * 1e3:7.2f} ms "
              f"{'' if dev.is_sim else rate:>14}  {'ok' if ok else 'WRONG'} (error {worst:.1e})")
    except tilec.Error as e:
        ok = False
        print(f"{case.name:20} {' '.join(f'{k}={v}' for k, v in size.items()):34} FAILED: {e}")
    bad += not ok
sys.exit(1 if bad else 0)
