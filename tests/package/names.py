"""names.py BUILD: whatever kernels and their arguments are called, what `tilec --emit=c` writes of them compiles, in C and in C++, with more warnings
than most ask for, several in one program; or it says which name it cannot have. What is written for the tests' kernels compiles in the same ways."""
import os, shutil, subprocess, sys, tempfile

BUILD = os.path.abspath(sys.argv[1])
AHEAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../runtime/ahead.tile")
WARNINGS = "-Wall -Wextra -Werror -pedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual".split()
CLANG = "-22" if shutil.which("clang-22") else ""
C = [(c, f"-std={s}", "-Wstrict-prototypes", "-Wmissing-prototypes") for c in ("gcc", "clang" + CLANG) if shutil.which(c) for s in ("gnu17", "c99", "c11")]
CXX = [(c, f"-std={s}", *old) for c in ("g++", "clang++" + CLANG) if shutil.which(c)
       for s, *old in (("gnu++20", "-Wold-style-cast"), ("c++98",), ("c++17", "-Wold-style-cast"))]
# By the name of the source that is written.
GOOD = {
    "axpy": "kernel axpy(x: *f32) grid(1) { store(x, 2.0); }",                                  # the namespace is no function
    "std": "kernel axpy(x: *f32) grid(1) { store(x, 2.0); }",
    "int": "kernel axpy(x: *f32) grid(1) { store(x, 2.0); }",
    "2d": "kernel axpy(x: *f32) grid(1) { store(x, 2.0); }",
    "a-b c.d": "kernel axpy(x: *f32) grid(1) { store(x, 2.0); }",
    "statics": "kernel conv(x: *f32, conv_kernel: *f32, conv_args: i32, conv_forms: i32) grid(1) { store(x, load(conv_kernel) + f32(conv_args + conv_forms)); }\n"
               "kernel conv_kernel(x: *f32) grid(1) { store(x, 2.0); }\nkernel conv_args(x: *f32) grid(1) { store(x, 2.0); }",
    "twice": "kernel axpy(x: *f32, shape: (i32, i64), shape_0: *f32, do: *f32, do_: *f32, do__: *f32, err: i32) grid(1) {\n"
             "  store(x, f32(shape[0]) + f32(shape[1]) + f32(err)); store(shape_0, 1.0); store(do, 1.0); store(do_, 1.0); store(do__, 1.0);\n}",
    "types": "kernel axpy(x: *f32, size_t: *f32, int64_t: i64, uint8_t: *i8, NULL: i32, linux: i32, INT32_MAX: i32, TilertError: *f32, std: i32, tilert: i32, CUstream_st: i32,\n"
             "  stream: i32, grid_: i32, device: i32, tile_args: i32, tile_f16: *f16, tile_status: i32, class: i32, this: i32, int: f32) grid(1) {\n"
             "  store(x, f32(int64_t) + f32(NULL + linux + INT32_MAX + std + tilert + CUstream_st + stream + grid_ + device + tile_args + tile_status + class + this) + int);\n"
             "  store(size_t, 1.0); store(uint8_t, i8(1)); store(TilertError, 1.0); store(tile_f16, f16(1.0));\n}",
    "tensors": "kernel axpy(f32_2: tensor<f32, 2>, tile_arg_0: i32, tile_tensor_f32_2: *f32) grid(1) {\n"
               "  tensor_store(f32_2, [0, 0], full([16, 16], f32(tile_arg_0))); store(tile_tensor_f32_2, 1.0);\n}",
    "own": "kernel load(x: *f32, load: *f32) grid(1) { store(x, 1.0); store(load, 1.0); }\nkernel unload(x: *f32, unload: *f32) grid(1) { store(x, 1.0); store(unload, 1.0); }",
}
PLAIN = "kernel {}(x: *f32) grid(1) {{ store(x, 2.0); }}"
BAD = [(n, "a word of C or C++") for n in ("int", "new", "class", "restrict", "static_assert", "errno")] + \
      [(n, "a name of the headers") for n in ("uint32_t", "tilert_launch", "TilertStream", "TILERT_E_ARGUMENT", "tilert", "std", "tile_f16", "tile_of_k_forms", "INT8_C")] + \
      [("memcpy", "a function of the C library")]


def run(*command, cwd):
    r = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return r.returncode, r.stdout


def must(*command, cwd):
    status, said = run(*command, cwd=cwd)
    if status:
        sys.exit(f"FAILED {' '.join(command)}\n{said[:3000]}")
    return said


def emit(folder, text, output, *options):
    with open(os.path.join(folder, "k.tile"), "w") as f:
        f.write(text)
    return run(f"{BUILD}/bin/tilec", "--emit=c", "k.tile", "-o", output, "--target=sm_80", *options, cwd=folder)


def compiles(folder, name, c=C[:1], cxx=CXX[:1]):
    """The source in C; the header in C++, behind tilert.hpp where that is known."""
    headers = f"-I{BUILD}/headers"
    for how in c:
        must(*how, *WARNINGS, "-fsyntax-only", f"{name}.c", headers, cwd=folder)
    for how in cxx:
        with open(os.path.join(folder, "x.cpp"), "w") as f:
            f.write(("#include <tilec/tilert.hpp>\n" if "98" not in how[1] else "") + f'#include "{name}.h"\nint main() {{ return 0; }}\n')
        must(*how, *WARNINGS, "-fsyntax-only", "x.cpp", headers, cwd=folder)


with tempfile.TemporaryDirectory() as folder:
    for name, text in GOOD.items():
        status, said = emit(folder, text, f"{name}.c")
        if status:
            sys.exit(f"FAILED {name}: {said}")
        compiles(folder, name)
        if name in ("statics", "types", "own"):
            status, said = emit(folder, text, "alone.c", "--standalone", "--prefix=q_")
            if status:
                sys.exit(f"FAILED {name}: {said}")
            for how in C if name == "types" else C[:1]:
                must(*how, *WARNINGS, "-Wfloat-equal", "-fsyntax-only", "alone.c", cwd=folder)
    for name, why in BAD:
        status, said = emit(folder, PLAIN.format(name), "bad.c")
        if status != 1 or f"'{name}' is {why}: --prefix=NAME_ puts a prefix in front" not in said or os.path.exists(f"{folder}/bad.c"):
            sys.exit(f"FAILED {name}: status {status}, {said}")
    for prefix in ("2", "a b_", "a-", "é"):
        status, said = emit(folder, PLAIN.format("k"), "bad.c", f"--prefix={prefix}")
        if status != 1 or f"'{prefix}k' is no name in C" not in said or os.path.exists(f"{folder}/bad.c"):
            sys.exit(f"FAILED --prefix={prefix}: status {status}, {said}")
    status, said = emit(folder, "\n".join(PLAIN.format(name) for name, _ in BAD), "better.c", "--prefix=my_")
    if status:
        sys.exit(f"FAILED with a prefix: {said}")
    compiles(folder, "better")
    for own in ("bad_load", "bad_unload"):
        status, said = emit(folder, PLAIN.format(own), "bad.c")
        if status != 1 or f"two functions would be called '{own}'" not in said:
            sys.exit(f"FAILED {own}: status {status}, {said}")
    # Sources of one name from two folders, in one program, in C and in C++, on the simulator.
    for side, value in (("left", 1), ("right", 2)):
        os.mkdir(f"{folder}/{side}")
        emit(f"{folder}/{side}", f"kernel set(x: *f32) grid(1) {{ store(x, {value}.0); }}", "kernels.c", f"--prefix={side}_")
        must("cc", "-c", "kernels.c", "-o", f"../{side}.o", f"-I{BUILD}/headers", cwd=f"{folder}/{side}")
    with open(f"{folder}/both.cpp", "w") as f:
        f.write("""#include <cstdio>
#include <tilec/tilert.hpp>
#include "left/kernels.h"
#include "right/kernels.h"
int main()
{
  tilert::Device device("sim");
  tilert::Stream stream(device);
  tilert::Buffer<float> x(device, 1);
  left_kernels::load(device);
  left_kernels::left_set(stream, x);
  const float left = x.read()[0];
  right_kernels::right_set(stream, x);
  std::printf("%g %g\\n", double(left), double(x.read()[0]));
  left_kernels_unload();
  right_kernels::unload();
}
""")
    must("c++", "-std=c++17", "both.cpp", "left.o", "right.o", "-o", "both", f"-I{BUILD}/headers", f"-L{BUILD}/lib", "-ltilert", f"-Wl,-rpath,{BUILD}/lib", cwd=folder)
    if (said := must("./both", cwd=folder)) != "1 2\n":
        sys.exit(f"FAILED both: {said}")
    with open(AHEAD) as f:
        text = f.read()
    if emit(folder, text, "ahead.c", "--config=scale:BLOCK=128", "--config=scale:BLOCK=64,warps=2")[0]:
        sys.exit("FAILED ahead.tile")
    compiles(folder, "ahead", C, CXX)
    print(f"{len(GOOD) + len(BAD)} names; sources pass {', '.join(' '.join(h[:2]) for h in C + CXX)}")
