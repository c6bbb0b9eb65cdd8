"""archive.py BUILD SOURCE: libtilec as an archive: installed, found, and linked into a program in C, and into one in C++ that has exceptions and
templates of its own; nothing but what the headers declare can be seen of it."""
import glob, os, shutil, subprocess, sys, tempfile

BUILD, SOURCE = map(os.path.abspath, sys.argv[1:])
LISTING = """
cmake_minimum_required(VERSION 3.20)
project(x C CXX)
find_package(tilec 0.1 REQUIRED COMPONENTS compiler_static)
foreach(name embed.c own.cpp)
  add_executable(${name}.out ${name})
  target_link_libraries(${name}.out PRIVATE tilec::compiler_static)
endforeach()
"""
OWN = r"""
#include <tilec/tilec.h>
#include <cstring>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
int main()
{
  std::map<std::string, int> found;
  try {
    if (!std::regex_match("b", std::regex("a+")))
      throw std::runtime_error("none");
  } catch (const std::exception &e) {
    found[e.what()] = 1;
  }
  const char *source = "kernel k(x: *f32) { store(x, 1.0); ", *end = "}";
  TilecResult *bad = tilec_compile("k.tile", source, std::strlen(source), NULL);
  TilecResult *good = tilec_compile("k.tile", (std::string(source) + end).c_str(), std::strlen(source) + 1, NULL);
  std::cout << found["none"] << bad->status << good->status << good->diagnostics << std::endl;
  return !(found["none"] == 1 && bad->status == TILEC_FAILED && good->status == TILEC_OK);
}
"""


def run(*command, **more):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if r.returncode:
        sys.exit(f"FAILED {' '.join(command)}\n{r.stdout[-3000:]}")
    return r.stdout


run("cmake", "--build", BUILD, "--target", "tilec_archive")
with tempfile.TemporaryDirectory() as folder:
    prefix, at = f"{folder}/prefix", f"{folder}/program"
    for component in ("runtime", "compiler", "compiler_static"):
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
    os.mkdir(at)
    shutil.copy(f"{SOURCE}/examples/embed/embed.c", at)
    open(f"{at}/own.cpp", "w").write(OWN)
    open(f"{at}/CMakeLists.txt", "w").write(LISTING)
    run("cmake", "-S", at, "-B", f"{at}/out", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", f"{at}/out")
    for program, said in (("embed.c.out", "right"), ("own.cpp.out", "110")):
        out = run(f"{at}/out/{program}", *(["sim"] if program[0] == "e" else []))
        assert said in out, out
        assert "libtile" not in run("ldd", f"{at}/out/{program}")
    archive, = glob.glob(f"{prefix}/**/libtilec.a", recursive=True)
    seen = {line.split()[-1] for line in run("nm", "--defined-only", "-g", archive).splitlines() if len(line.split()) == 3}
    others = sorted(n for n in seen if not n.startswith(("tilec_", "tilejit_", "tilert_")))
    assert seen and not others, others
    print(f"libtilec.a: {os.path.getsize(archive)} bytes, {len(seen)} names")
