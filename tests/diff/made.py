"""What scripts that make kernels share: their texts through check_kernel, with the text of each kernel that something is found in."""
import os, subprocess, tempfile


def check(build, kernels, *options):
    """kernels: (extension, text) of each. Prints findings and how many kernels there were; check_kernel's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, (extension, text) in enumerate(kernels):
            files.append(os.path.join(folder, f"{i}.{extension}"))
            with open(files[-1], "w") as f:
                f.write(text)
        tool = os.path.join(os.path.abspath(build), "tests", "check_kernel")
        r = subprocess.run([tool, *options, *files], capture_output=True, text=True)
        for line in r.stdout.splitlines():
            name = line.split(":")[0]
            print(line, open(name).read() if os.path.exists(name) else "", sep="\n")
    print(r.stderr, end="")
    print(f"{len(files)} kernels")
    return r.returncode
