"""clients.py BUILD SOURCE [PREFIX]: install into a scratch folder, move that, and build programs against it in every way that docs/embed.md
shows, each of which then runs on the simulator. What is not on this machine (meson, gdb) is left out, with a word. PREFIX: a tree that is
there already, of a package."""
import glob, os, re, shlex, shutil, subprocess, sys, tempfile

BUILD, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])
GIVEN = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
FILES = """bin/tilec bin/tilerun include/tilec/aot.h include/tilec/status.h include/tilec/tilert.hpp include/tilec/args.h include/tilec/jit.h include/tilec/manifest.h include/tilec/tilec.h include/tilec/tilert.h include/tilec/version.h
           share/doc/tilec/LICENSE share/doc/tilec/NOTICE share/doc/tilec/README.md share/doc/tilec/docs/language.md
           share/doc/tilec/examples/softmax.tile share/doc/tilec/examples/embed/embed.c share/doc/tilec/examples/embed/spans.cpp share/man/man1/tilec.1 share/man/man1/tilerun.1
           share/bash-completion/completions/tilec share/zsh/site-functions/_tilec share/fish/vendor_completions.d/tilec.fish""".split()
VERSION = r"""
#include <stdio.h>
#include <string.h>
#include <tilec/jit.h>
int main(void)
{
  printf("%s %d %s %s\n", TILEC_VERSION, TILEC_VERSION_NUMBER, tilec_version(), tilert_version());
  return strcmp(TILEC_VERSION, tilec_version()) || strcmp(TILEC_VERSION, tilert_version());
}
"""
SIM = r"""
#include <stdio.h>
#include <tilec/tilert.h>
int main(void)
{
  TilertError err;
  TilertDevice *dev;
  if (tilert_device_open("sim", NULL, &dev, &err)) {
    puts(err.message);
    return 1;
  }
  puts(tilert_device_info(dev)->name);
  tilert_device_close(dev);
  return 0;
}
"""
# Kernels of a file that imports another, in every kind of target, with and without keywords, linked before and behind.
KERNELS = {
    "thrice.tile": "fn by(x) { return x * 3.0; }\n",
    "scale.tile": """import "thrice.tile";
kernel scale(x: *f32, n: i32, const BLOCK = 64) grid(cdiv(n, BLOCK)) {
  let i = program_id(0) * BLOCK + arange(0, BLOCK);
  store(x + i, by(load(x + i, mask=i < n)), mask=i < n);
}
""",
    "scale.c": r"""
#include <stdio.h>
#include "scale_kernels.h"
int main(void)
{
  TilertError err;
  TilertDevice *dev;
  TilertStream *stream;
  TilertBuffer *x;
  float v[100] = {0, 1};
  if (tilert_device_open("sim", NULL, &dev, &err) || tilert_stream_create(dev, &stream, &err) || tilert_buffer_create(dev, sizeof v, &x, &err) ||
      tilert_buffer_write(x, 0, v, sizeof v, NULL, &err) || scale(stream, (float *)(uintptr_t)tilert_buffer_address(x), 100, &err) ||
      tilert_buffer_read(x, 0, v, sizeof v, NULL, &err))
    return puts(err.message), 1;
  printf("1 is %g\n", (double)v[1]);
  return 0;
}
""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.20)
project(kernels C)
find_package(tilec REQUIRED)
add_executable(plain scale.c)
target_link_libraries(plain m)
tilec_add_kernels(plain scale.tile TARGETS sm_80)
add_executable(later scale.c)
tilec_add_kernels(later scale.tile TARGETS sm_80)
target_link_libraries(later PRIVATE tilec::simulator_static)
foreach(kind STATIC SHARED OBJECT)
  add_library(in_${kind} ${kind})
  tilec_add_kernels(in_${kind} scale.tile TARGETS sm_80)
  add_executable(of_${kind} scale.c)
  target_link_libraries(of_${kind} PRIVATE in_${kind})
endforeach()
""",
}
SIMULATOR, LARGEST = "libtilesim.so.0.1", 300_000     # the file, and bytes of libtilert
failed = []


def run(*command, cwd=None, fails=False, **env):
    """The output of a command, which has to succeed (or, `fails`, not to)."""
    r = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if (r.returncode != 0) != fails:
        raise RuntimeError(f"{' '.join(command)}: exit status {r.returncode}\n{r.stdout}")
    return r.stdout


def expect(text, *parts):
    for part in parts:
        if part not in text:
            raise RuntimeError(f"expected {part!r} in:\n{text}")


def right(program, *more, **env):
    expect(run(program, "sim", **env), "right", *more)


# Programs whose kernels were compiled when they were built, and what they say beside "right".
AHEAD = {"ahead": "compiled ahead", "graph": "3 launches, 4 times", "spans": "by spans"}


def ahead(folder, *names):
    for name in names or AHEAD:
        right(f"{folder}/{name}", AHEAD[name])
        if "libtilec" in run("ldd", f"{folder}/{name}"):
            raise RuntimeError(f"{name} needs the compiler")


class Place:
    """A scratch folder with the installed tree, moved from where it was put, and copies of the examples."""

    def __init__(self, folder):
        self.folder, self.prefix = folder, GIVEN or os.path.join(folder, "moved tree")
        if not GIVEN:
            self.install()
        pc, = glob.glob(f"{self.prefix}/**/tilec.pc", recursive=True)
        self.pkgconfig, self.lib = os.path.dirname(pc), os.path.dirname(os.path.dirname(pc))
        self.examples = f"{self.prefix}/share/doc/tilec/examples/embed"

    def install(self):
        run("cmake", "--install", BUILD, "--prefix", os.path.join(self.folder, "first"))
        os.rename(os.path.join(self.folder, "first"), self.prefix)

    def copy(self, name):
        """The examples, in a folder of their own."""
        to = os.path.join(self.folder, name)
        shutil.copytree(self.examples, to)
        return to


def links(page):
    """The files that a page leads to."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", open(page, encoding="utf-8").read(), flags=re.M | re.S)
    return [path for path in re.findall(r"\]\(([^()#\s]+)(?:#[^()\s]*)?\)", text) if "://" not in path]


def complete(p):
    """Everything is there, and says nothing of where it was built or installed."""
    for name in FILES:
        if not os.path.exists(os.path.join(p.prefix, name)):
            raise RuntimeError(f"{name} is not installed")
    for path in glob.glob(f"{p.lib}/cmake/tilec/*") + glob.glob(f"{p.pkgconfig}/*"):
        for place in (BUILD, SOURCE, p.folder):
            if place in open(path).read():
                raise RuntimeError(f"{path} names {place}")
    dead = [f"{page}: {path}" for page in glob.glob(f"{p.prefix}/share/doc/tilec/**/*.md", recursive=True) for path in links(page)
            if not os.path.exists(os.path.join(os.path.dirname(page), path))]
    if dead:
        raise RuntimeError("links to what is not installed:\n" + "\n".join(dead))
    if (size := os.path.getsize(f"{p.lib}/libtilert.so")) > LARGEST:
        raise RuntimeError(f"libtilert has {size} bytes, more than {LARGEST}")
    expect(run(f"{p.prefix}/bin/tilec", "--version"), "tilec ")
    expect(run("readelf", "-d", f"{p.prefix}/bin/tilerun"), "$ORIGIN/")


def cmake(p):
    """find_package: linked with the compiler, with the runtime, and with the runtime inside."""
    at = p.copy("cmake")
    run("cmake", "-S", at, "-B", f"{at}/out", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={p.prefix}")
    run("cmake", "--build", f"{at}/out")
    for name in ("embed", "windows", "overlap"):
        right(f"{at}/out/{name}")
    right(f"{at}/out/ahead_runtime", "compiled ahead")
    right(f"{at}/out/ahead_runtime_static", "compiled ahead", LD_LIBRARY_PATH=p.lib)
    right(f"{at}/out/ahead_simulator_static", "compiled ahead")
    if p.prefix != "/usr":                                # where the loader finds it
        expect(run(f"{at}/out/ahead_runtime_static", "sim", fails=True), f"no simulator: {SIMULATOR}")
    ahead(f"{at}/out", "graph", "spans")
    for kind in ("runtime_static", "simulator_static"):
        if "libtile" in run("ldd", f"{at}/out/ahead_{kind}"):
            raise RuntimeError(f"ahead_{kind} looks for what is inside")


def kernels(p):
    """tilec_add_kernels, for libraries and programs, by every kind of build; what an imported file says is looked at again when it changes."""
    for generator in ("Ninja", "Unix Makefiles", "Ninja Multi-Config"):
        at = f"{p.folder}/the kernels of {generator}"
        os.mkdir(at)
        for name, text in KERNELS.items():
            open(f"{at}/{name}", "w").write(text)
        run("cmake", "-S", at, "-B", f"{at}/out", "-G", generator, f"-DCMAKE_PREFIX_PATH={p.prefix}")
        run("cmake", "--build", f"{at}/out")
        programs = [f for n in ("plain", "later", "of_*") for f in glob.glob(f"{at}/out/**/{n}", recursive=True) if os.access(f, os.X_OK) and os.path.isfile(f)]
        if len(programs) != 5:
            raise RuntimeError(f"{generator}: {programs}")
        for program in programs:
            expect(run(program), "1 is 3\n")
        if "libtile" in run("ldd", [x for x in programs if x.endswith("later")][0]):
            raise RuntimeError("later is linked with the shared runtime as well")
        os.utime(f"{at}/scale.tile", (1, 1))
        with open(f"{at}/thrice.tile", "w") as f:
            f.write(KERNELS["thrice.tile"].replace("3.0", "5.0"))
        future = max(os.stat(f).st_mtime for f in glob.glob(f"{at}/out/**", recursive=True)) + 2       # for make, whose clock may be coarse
        os.utime(f"{at}/thrice.tile", (future, future))
        run("cmake", "--build", f"{at}/out")
        for program in programs:
            expect(run(program), "1 is 5\n")


def components(p):
    """The runtime alone is enough for what needs no more, and says what is missing for what does; an older version is refused."""
    at, prefix = p.copy("components"), f"{p.folder}/runtime"
    install = lambda name: run("cmake", "--install", BUILD, "--prefix", prefix, "--component", name)
    install("runtime")
    listing = "cmake_minimum_required(VERSION 3.20)\nproject(x C)\nfind_package(tilec {} COMPONENTS {})\nadd_library(x SHARED x.c)\n" \
              "target_link_libraries(x tilec::runtime)\n"
    open(f"{at}/x.c", "w").write("#include <tilec/tilert.h>\nint devices(void);\nint devices(void) { return tilert_cuda_count(); }\n")
    for version, names, said in (("0.1", "runtime", ""), ("0.1", "runtime compiler", "compiler"), ("0.2 REQUIRED", "runtime", "version"),
                                 ("7.0 REQUIRED", "runtime", "version")):
        open(f"{at}/CMakeLists.txt", "w").write(listing.format(version if not said or "REQUIRED" in version else version + " REQUIRED", names))
        shutil.rmtree(f"{at}/out", ignore_errors=True)
        expect(run("cmake", "-S", at, "-B", f"{at}/out", f"-DCMAKE_PREFIX_PATH={prefix}", fails=bool(said)), said)
        if not said:
            run("cmake", "--build", f"{at}/out")
    # The compiler is not there: another's is taken, as in a cross build.
    shutil.rmtree(f"{at}/out")
    configure = ("cmake", "-S", at, "-B", f"{at}/out", f"-DCMAKE_PREFIX_PATH={prefix}")
    open(f"{at}/CMakeLists.txt", "w").write(listing.format("0.1", "runtime") + "tilec_add_kernels(x axpy.tile TARGETS sm_80)\n")
    if not shutil.which("tilec"):
        expect(run(*configure, fails=True), "there is no compiler that runs here", "TILEC_EXECUTABLE")
    run(*configure, f"-DTILEC_EXECUTABLE={p.prefix}/bin/tilec")
    run("cmake", "--build", f"{at}/out")
    open(f"{at}/sim.c", "w").write(SIM)
    pc, = glob.glob(f"{prefix}/**/tilert.pc", recursive=True)
    lib = os.path.dirname(os.path.dirname(pc))
    run("cc", "sim.c", "-o", "sim", f"-I{prefix}/include", f"-L{lib}", "-ltilert", f"-Wl,-rpath,{lib}", cwd=at)
    expect(run(f"{at}/sim", fails=True), f"no simulator: {SIMULATOR}", lib)
    install("simulator")
    expect(run(f"{at}/sim"), "PTX simulator")


def make(p):
    at = p.copy("make")
    run("make", "-s", cwd=at, PKG_CONFIG_PATH=p.pkgconfig)
    right(f"{at}/embed")
    ahead(at)
    run("make", "-s", "clean", cwd=at, PKG_CONFIG_PATH=p.pkgconfig)
    # All of it inside one file, which the linker warns of, as the C library cannot open others from there.
    run(f"{p.prefix}/bin/tilec", "--emit=c", "axpy.tile", "--target=sm_80,sm_90a", "-o", "axpy_kernels.c", cwd=at)
    flags = run("pkg-config", "--static", "--cflags", "--libs", "tilesim", PKG_CONFIG_PATH=p.pkgconfig)
    run("cc", "-static", "ahead.c", "axpy_kernels.c", "-o", "ahead", *shlex.split(flags), cwd=at)
    right(f"{at}/ahead", "compiled ahead")


def meson(p):
    at = p.copy("meson")
    run("meson", "setup", f"{at}/out", at, f"-Dpkg_config_path={p.pkgconfig}")
    run("ninja", "-C", f"{at}/out")
    right(f"{at}/out/embed")
    ahead(f"{at}/out")


def line(p):
    """One line of a compiler: C and C++, shared and as an archive, and the versions of headers and library."""
    at, include = p.copy("line"), f"-I{p.prefix}/include"
    run("cc", "embed.c", "-o", "embed", include, f"-L{p.lib}", "-ltilec", f"-Wl,-rpath,{p.lib}", cwd=at)
    right(f"{at}/embed")
    run(f"{p.prefix}/bin/tilec", "--emit=c", "axpy.tile", "--target=sm_80,sm_90a", "-o", "axpy_kernels.c", cwd=at)
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "ahead.c", "axpy_kernels.c", "-o", "ahead", include, "-Wl,-u,tilesim_calls",
        f"{p.lib}/libtilesim.a", f"{p.lib}/libtilert.a", "-lm", "-ldl", "-lpthread", cwd=at)
    right(f"{at}/ahead", "compiled ahead")
    open(f"{at}/version.c", "w").write(VERSION)
    for compiler, std in (("cc", "c99"), ("cc", "c11"), ("c++", "c++98"), ("c++", "c++17")):
        run(compiler, *(("-x", "c++") if compiler == "c++" else ()), f"-std={std}", "-Wall", "-Wextra", "-Werror", "version.c", "-o", "version", include,
            f"-L{p.lib}", "-ltilec", f"-Wl,-rpath,{p.lib}", cwd=at)
        run("./version", cwd=at)


def debugger(p):
    """A stripped library still has names for gdb."""
    said = run("gdb", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break tilejit_launch_named", "-ex", "run sim", "-ex", "backtrace",
               f"{p.folder}/line/embed")
    expect(said, "#0 ", "tilejit_launch_named", "#1 ", "main")


def uninstall(p):
    """What was installed goes, and what was not stays."""
    first = os.path.join(p.folder, "first")
    run("cmake", "--install", BUILD, "--prefix", first)
    shutil.copy(os.path.join(BUILD, "install_manifest.txt"), p.folder)
    open(f"{first}/bin/other", "w").close()
    expect(run("cmake", "-D", f"BUILD={p.folder}", "-P", f"{SOURCE}/packaging/uninstall.cmake"), "removed ")
    left = [os.path.relpath(os.path.join(d, f), first) for d, folders, files in os.walk(first) for f in files + folders]
    if sorted(left) != ["bin", "bin/other"]:
        raise RuntimeError(f"uninstalling leaves {left}")


WAYS = [(complete, ""), (cmake, ""), (kernels, ""), (make, "pkg-config"), (meson, "meson"), (line, ""), (debugger, "gdb")]
if not GIVEN:
    WAYS += [(components, ""), (uninstall, "")]
with tempfile.TemporaryDirectory() as folder:
    place = Place(folder)
    for way, needed in WAYS:
        if needed and not shutil.which(needed):
            print(f"{way.__name__}: left out, as there is no {needed}")
            continue
        try:
            way(place)
            print(f"{way.__name__}: right")
        except (RuntimeError, OSError) as x:
            failed.append(way.__name__)
            print(f"FAILED {way.__name__}: {x}")
sys.exit(1 if failed else 0)
