"""large.py TILEC: texts with tens of thousands of names, parameters, declarations and statements are read, and errors in them found."""
import subprocess, sys

tilec, bad = sys.argv[1], []


def check(name, text, wanted, status):
    run = subprocess.run([tilec, "-", "--emit=tile", "--passes="], input=text, capture_output=True, text=True)
    if run.returncode != status or wanted not in run.stdout + run.stderr:
        bad.append(f"{name}: status {run.returncode}, no '{wanted}' in:\n{(run.stdout + run.stderr)[:400]}")


N = 20000
lines = lambda form: "".join("  " + form.format(i=i) + "\n" for i in range(N))
kernel = lambda body: "kernel k(x: *f32, n: i32) {\n" + body + "}\n"
check("stores", "kernel k(x: *f32) { for i in static_range(65536) { store(x + i, i); } }\n", "const value = 65535", 0)
check("parameters", "kernel k(" + ", ".join(f"p{i}: *f32" for i in range(32000)) + ") { store(p31999, 1.0); }\n", "store %31999_p31999", 0)
check("unknown names", kernel(lines("store(x, unk{i});")), "too many errors", 1)
check("undeclared names", kernel(lines("und{i} = {i};")), "'und0' cannot be assigned", 1)
check("locals", kernel(lines("let v{i} = load(x + {i});") + lines("store(x + {i}, v{i});")), "store", 0)
check("constants", "".join(f"const C{i} = {i};\n" for i in range(N)) + kernel(lines("store(x + {i}, C{i});")), "const value = 19999.0", 0)
check("functions", "".join(f"fn g{i}(y) {{ return y; }}\n" for i in range(N)) + kernel("  store(x, g19999(2.5));\n"), "const value = 2.5", 0)
check("twice", "".join(f"fn g{i % (N - 1)}(y) {{ return y; }}\n" for i in range(N)) + kernel(""), "'g0' is declared twice", 1)
check("variables", kernel(lines("var v{i} = 0;") + "  if n > 3 { return; }\n" + lines("v{i} += 1;") + "  store(x, v7);\n"), "store", 0)
print("\n".join(bad))
sys.exit(bool(bad))
