"""lit: a test is one file with its own RUN line; see docs/add.md."""
import os, shutil
import lit.formats

config.name = "tilec"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".tile", ".tir", ".test", ".md"]
config.excludes = ["README.md", "Inputs", "pages"]
config.test_source_root = os.path.join(config.source_root, "tests")
here = config.test_source_root
bin_dir = config.tilec_bin
config.environment["PATH"] = bin_dir + os.pathsep + os.environ.get("PATH", "")
config.environment["TILEC_CACHE"] = "0"   # tests compile
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%examples", os.path.join(config.source_root, "examples")))
config.substitutions.append(("%root", config.source_root))
# %python: the Python that the build was configured with (scripts/python).
config.substitutions.append(("%python", config.python))
# %errors FILE [tilec options]: every `// error: text` mark must be reported on its line, and nothing else.
config.substitutions.append(("%errors", f"{config.python} {here}/errors.py {bin_dir}/tilec"))
# %roundtrip FILE: print(parse(x)) == x.
config.substitutions.append(("%roundtrip", f"{config.python} {here}/roundtrip.py {bin_dir}/tilec"))
# %ptxas TARGET [SPILLS]: assemble standard input, when ptxas is there; warnings C75xx and C76xx fail, and spilled stores of more bytes.
config.substitutions.append(("%ptxas", f"{config.python} {here}/ptxas.py"))
# %sass TARGET A.ptx B.ptx: the same machine code of both, when ptxas is there.
config.substitutions.append(("%sass", f"{config.python} {here}/sass.py"))
# %exit N COMMAND: the command must exit with status N.
config.substitutions.append(("%exit", f"{config.python} {here}/exit.py"))
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
