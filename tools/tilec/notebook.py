"""Cells of a notebook that are kernels: %load_ext tilec, then

    %%tile rows
    kernel softmax(...) { ... }

makes `rows` a Source; without a name each of the cell's kernels is put into the notebook under its own."""
from __future__ import annotations

import itertools
from typing import Any

from .sources import Source

_cells = itertools.count(1)


def tile(shell: Any, line: str, cell: str) -> Source:
    """What %%tile does."""
    name = line.strip()
    if name and not name.isidentifier():
        raise ValueError(f"%%tile takes a name or nothing, not {name!r}")
    source = Source(f"{name or 'cell'}.{next(_cells)}.tile", cell)
    for n in source if not name else ():
        shell.user_ns[n] = source[n]
    if name:
        shell.user_ns[name] = source
    return source


def register(shell: Any) -> None:
    """Add the magic to a shell of IPython."""
    shell.register_magic_function(lambda line, cell: tile(shell, line, cell), magic_kind="cell", magic_name="tile")
