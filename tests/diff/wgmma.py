"""wgmma.py BUILD: products of warpgroups of every element type: a from shared memory or from registers, both operands along K or across it
where hardware has that, in panels of every width, one and two warpgroups, from 8 to 512 columns, several products under way. Interpreter
(as read, after each pass) and simulator must agree, none may report a fault, and ptxas must not serialise a product."""
import os, subprocess, sys
import made

# Of a and b, the sum; what an instruction takes of K.
KINDS = [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32"), ("f8e4m3", "f8e4m3", "f32"),
         ("f8e4m3", "f8e5m2", "f32"), ("f8e5m2", "f8e4m3", "f16"), ("f8e5m2", "f8e5m2", "f32"), ("i8", "i8", "i32"), ("i8", "u8", "i32"),
         ("u8", "i8", "i32"), ("u8", "u8", "i32")]
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}


def operand(name, dtype, rows, k, along_k, width, source):
    """A buffer of rows x k (b: k x rows, seen from the other side) and what fills it; width None: the compiler chooses."""
    shape = (rows, k) if along_k else (k, rows)
    layout = "" if width is None else f", layout=panels({width})"
    lines = [f"let {name}s = shared({dtype}, [{shape[0]}, {shape[1]}]{layout});",
             f"shared_store({name}s, load({source} + arange(0, {shape[0]})[:, None] * {shape[1]} + arange(0, {shape[1]})[None, :]));"]
    natural = along_k == (name == "a")
    return lines + [f"let {name} = {name + 's' if natural else f'trans({name}s)'};"]


def kernel(kind, m=64, n=64, k=64, warps=4, widths=(None, None), along=(True, True), registers=False, products=1, start=True):
    da, db, ds = kind
    body = []
    if registers:
        body.append(f"let a = load(x + arange(0, {m})[:, None] * {k} + arange(0, {k})[None, :]);")
    else:
        body += operand("a", da, m, k, along[0], widths[0], "x")
    body += operand("b", db, n, k, along[1], widths[1], "y")
    body += [f"let at = arange(0, {m})[:, None] * {n} + arange(0, {n})[None, :];",
             f"var acc = pending({'load(z + at)' if start else f'zeros([{m}, {n}], {ds})'});"]
    if products > 1:
        body += [f"for i in range(0, {products}) {{ acc = wgmma(a, b, acc); wgmma_wait(pending=1); }}", "store(z + at, wgmma_wait(acc));"]
    else:
        body += ["let other = wgmma(a, b);", "let both = wgmma_wait((wgmma(a, b, acc), other));", "store(z + at, both[0]);",
                 f"store(z + {m * n} + at, both[1]);"]
    head = ["// grid 1", f"// buffer {da} {m * k}", f"// buffer {db} {n * k}", f"// buffer {ds} {2 * m * n}",
            f"// tolerance {'1e-2' if ds == 'f16' else '2e-3' if da.startswith('f8') else '1e-5'}"]      # of 8-bit floats 13 bits are added
    params = f"x: *{da} multiple_of(16), y: *{db} multiple_of(16), z: *{ds} multiple_of(16)"
    return "\n".join(head + [f"kernel f({params}) warps({warps}) {{"] + ["  " + line for line in body] + ["}", ""])


def kernels():
    for kind in KINDS:
        step = 32 // BYTES[kind[0]]
        if kind[2] == "f16":                 # rounded at each instruction: one an op
            yield kernel(kind, k=step)
            yield kernel(kind, m=128, n=8, k=step, warps=8, products=3)
            yield kernel(kind, n=256, k=step, registers=True, products=3)
            yield kernel(kind, n=40, k=step, widths=(32, 0))
            continue
        yield kernel(kind, k=2 * step)
        yield kernel(kind, m=128, n=8, k=step, warps=8)
        yield kernel(kind, n=256, k=step, registers=True, products=3)
        yield kernel(kind, m=128, n=24, k=4 * step, warps=8, registers=True)
        for width in (128, 64, 32, 0):
            yield kernel(kind, n=40, k=4 * step, widths=(width, width), products=2)
    for kind in (KINDS[0], KINDS[2]):
        for width in (128, 64, 32, 0):
            for along in ((False, True), (True, False), (False, False)):
                yield kernel(kind, m=128, n=64, k=64, warps=4 if width % 128 else 8, widths=(width, 128 if width == 64 else width), along=along)
    f16, i8 = KINDS[0], KINDS[8]
    yield kernel(f16, m=192, n=96, k=48, start=False, products=2)                   # extents that are padded
    yield kernel(f16, m=192, n=96, k=48, along=(False, False), products=1, start=True)
    yield kernel(f16, m=64, n=320, k=16, along=(True, False), products=2)  # several instructions along N
    yield kernel(i8, m=64, n=328, k=64, products=2)
    yield kernel(f16, m=256, n=32, k=32, warps=8, along=(False, False), products=3)
    yield kernel(f16, m=256, n=16, k=64, warps=16)


def assembled(text):
    """What ptxas has against the kernel."""
    tilec = os.path.join(sys.argv[1], "bin", "tilec")
    ptx = subprocess.run([tilec, "-", "--emit=ptx", "--target=sm_90a"], input=text, capture_output=True, text=True)
    if ptx.returncode:
        return ptx.stderr
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ptxas.py")
    r = subprocess.run([sys.executable, check, "sm_90a"], input=ptx.stdout, capture_output=True, text=True)
    return r.stderr if r.returncode else None


texts = list(kernels())
bad = made.check(sys.argv[1], [("tile", text) for text in texts], "--way=sm_90a:1")
for text in texts[:: 1 if len(sys.argv) > 2 else 4]:
    why = assembled(text)
    if why:
        print(text, why, sep="\n")
        bad = 1
sys.exit(bad)
