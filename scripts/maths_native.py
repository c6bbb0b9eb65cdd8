"""Functions of the library as code for this machine's processor: what tilec makes for the GPU with what is the GPU's own exchanged,
compiled by clang. All that the functions are made of is rounded alike everywhere, so these give the bits that a GPU gives."""
import os, re, subprocess

KERNEL = "kernel one(x: *T, y: *T, type T = f32) warps(1) maths(exact) { let i = program_id(0); store(y + i, FN(load(x + i))); }"
KERNEL_2 = "kernel two(x: *T, z: *T, y: *T, type T = f32) warps(1) maths(exact) { let i = program_id(0); store(y + i, FN(load(x + i), load(z + i))); }"


def portable(text):
    """LLVM IR for the GPU as IR for any processor: the program's number is the last argument, its one thread is thread 0."""
    text = re.sub(r"^target .*\n", "", text, flags=re.M)
    text = re.sub(r",? !dbg !\d+", "", text)
    text = re.sub(r"^!.*\n", "", text, flags=re.M)
    text = re.sub(r"^attributes .*\n", "", text, flags=re.M)
    text = re.sub(r" #\d+", "", text)
    text = text.replace("addrspace(1)", "")
    text = re.sub(r"ptx_kernel void @(\w+)\((.*)\) \{", r"void @\1(\2, i32 %cta) {", text)
    text = re.sub(r"(%\S+) = call .*@llvm.nvvm.read.ptx.sreg.ctaid.x\(\)", r"\1 = add i32 %cta, 0", text)
    text = re.sub(r"(%\S+) = call .*@llvm.nvvm.read.ptx.sreg.tid.x\(\)", r"\1 = and i32 %cta, 0", text)
    # Conversions that round otherwise than to zero: by a whole number.
    for mode, whole in (("rn", "rint"), ("rm", "floor"), ("rp", "ceil")):
        text = re.sub(rf"( *)(%\S+) = (.*@llvm\.nvvm\.[df]2i?l?l?)\.{mode}\((float|double) (%\S+)\)",
                      lambda m: f"{m[1]}%w{m[2][1:]} = call {m[4]} @llvm.{whole}.{'f32' if m[4] == 'float' else 'f64'}({m[4]} {m[5]})\n"
                                f"{m[1]}{m[2]} = {m[3]}.rz({m[4]} %w{m[2][1:]})", text)
    for gpu, any_ in (("f2i", "i32.f32"), ("f2ll", "i64.f32"), ("d2i", "i32.f64"), ("d2ll", "i64.f64")):
        text = text.replace(f"@llvm.nvvm.{gpu}.rz", f"@llvm.fptosi.sat.{any_}")
    text = re.sub(r'call void asm sideeffect "@\$2 st.global.b(?:32|64) .*?\(ptr\s+(%\S+), ((?:float|double) %\S+), i1 \S+\)',
                  r"store \2, ptr \1", text)
    text = re.sub(r"^declare .*@llvm.nvvm.*\n", "", text, flags=re.M)
    if "nvvm" in text:
        raise ValueError("not made of portable operations: " + re.search(r"@llvm.nvvm\S*", text).group(0))
    return text


def compile_function(tilec, fn, folder, pair=False, dtype="f32", change=lambda text: text):
    """The path of the LLVM IR of `one(x, y, i)`, y[i] = fn(x[i]), or of `two(x, z, y, i)`, y[i] = fn(x[i], z[i]). change: what is made of
    the GPU's text first."""
    tile, ir = (os.path.join(folder, fn + e) for e in (".tile", ".ll"))
    open(tile, "w").write((KERNEL_2 if pair else KERNEL).replace("FN", fn))
    text = subprocess.run([tilec, tile, "--emit=llvm", "-D", f"T={dtype}"], check=True, capture_output=True, text=True).stdout
    open(ir, "w").write(portable(change(text)))
    return ir


def link(sources, so):
    subprocess.run(["clang-22", "-O3", "-march=x86-64-v3", "-ffp-contract=off", "-fno-builtin", "-flto", "-fuse-ld=lld", "-shared", "-fPIC",
                    "-Wno-override-module", *sources, "-o", so, "-lm"], check=True)
