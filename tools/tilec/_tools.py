"""The commands tilec and tilerun of the wheel: programs beside the library."""
import os
import sys


def _run(name: str) -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(path, [name, *sys.argv[1:]])


def tilec() -> None:
    """Compile tile kernels to PTX: tilec --help."""
    _run("tilec")


def tilerun() -> None:
    """Run a tile kernel on files or generated arrays: tilerun --help."""
    _run("tilerun")
