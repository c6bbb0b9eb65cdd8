"""stages.py BUILD: loops whose loads run ahead, of every kind, with no iteration, with one, with as many as they have stages and a few more. Each
kernel goes through check_kernel: the interpreter after every pass and the simulator must say what the interpreter says of the program as
it was read, and none may report a fault - a load behind the end of the data is one, and so is a buffer read that nothing has filled."""
import sys
import made

# Of x (f32, 512 for each iteration), h and g (f16 tiles for dots), t (indices of iterations), b (bytes), n iterations, m a bound of masks.
BODIES = {
    "copied": "total += load(x + k * 512 + i);",
    "masked": "total += load(x + k * 512 + i, mask=k * 512 + i < m, other=0.0);",
    "filled": "total += load(x + k * 512 + i, mask=k * 512 + i < m, other=3.0);",
    "looked up": "total += load(x + load(t + k) * 512 + i);",
    "looked up twice": "total += load(x + load(t + load(t + k)) * 512 + i);",
    "bytes": "total += f32(load(b + k * 512 + i * 3 % 512, mask=i < m));",
    "advanced": "total += load(p); p += 512;",
    "in arms": "var j = k; if k % 2 == 0 { j = k / 2; } total += load(x + j * 512 + i);",
    "one of two": "let row = k % 2 == 0 ? load(t + k) : k; total += load(x + row * 512 + i);",
    "twice": "let v = load(x + k * 512 + i); total += v * load(x + (n - 1 - k) * 512 + i);",
    "sliced dot": "acc = dot(load(h + k * 1024 + tile), load(g + k * 1024 + tile), acc);",
    "sliced dot, masked": "acc = dot(load(h + k * 1024 + tile, mask=k * 1024 + tile < m), load(g + k * 1024 + tile), acc);",
    "sliced dot, filled": "acc = dot(load(h + k * 1024 + tile, mask=k * 1024 + tile < m, other=1.0), load(g + k * 1024 + tile), acc);",
    "ragged dot": "acc = dot(load(h + k * 1280 + wide), load(g + k * 1280 + tall), acc);",
    "stored behind": "acc = dot(load(h + k * 1024 + tile), load(g + k * 1024 + tile), acc); if k % 2 == 1 { store(y + tile, acc); acc = acc * 0.0; }",
    "shared behind": "acc = dot(load(h + k * 1024 + tile), load(g + k * 1024 + tile), acc);"
                     " if k % 2 == 1 { if k > 1 { shared_store(s, acc); acc += shared_load(trans(s)); } }",
}
# n times m iterations of two loops that become one.
FLAT = """for q in range(0, n, flatten=true) {{
    let base = q * m;
    for k in range(0, m, stages=3) {{ {body} }}
    store(y + tile, acc + f32(q));
    total += 1.0;
  }}"""


def kernel(loop, n, m, most):
    return f"""// grid 1
// buffer f32 {512 * most}
// buffer f16 {1280 * most}
// buffer f16 {1280 * most}
// index i32 {most} {most}
// buffer u8 {512 * most}
// buffer f32 1024
// buffer f32 512
// int {n}
// int {m}
// divisible x 16
// divisible h 16
// divisible g 16
// divisible b 16
// tolerance 1e-3
kernel f(x: *f32, h: *f16, g: *f16, t: *i32, b: *u8, y: *f32, z: *f32, n: i32, m: i32) warps(4) {{
  let i = arange(0, 512);
  let (r, c) = (arange(0, 32)[:, None], arange(0, 32)[None, :]);
  let tile = r * 32 + c;
  let wide = r * 40 + arange(0, 40)[None, :];
  let tall = arange(0, 40)[:, None] * 32 + c;
  let s = shared(f32, [32, 32]);
  var total = zeros([512], f32);
  var acc = zeros([32, 32], f32);
  var p = x + i;
  {loop}
  store(z + i, total);
  store(y + tile, acc);
}}
"""


def kernels():
    for stages in (2, 3, 4):
        for name, body in BODIES.items():
            for n in (0, 1, 2, stages, stages + 2):
                loop = f"for k in range(0, n, stages={stages}) {{ {body} }}"
                yield kernel(loop, n, 700 if "dot" not in name else 1500, max(n, 1))
    for n, m in ((0, 2), (2, 0), (1, 1), (3, 1), (1, 3), (2, 3)):
        for body in (BODIES["sliced dot"], BODIES["copied"]):
            yield kernel(FLAT.format(body=body.replace("k *", "(base + k) *")), n, m, max(n * m, 1))


sys.exit(made.check(sys.argv[1], (("tile", text) for text in kernels()), "--passes", "--way=sm_80"))
