"""Processes of their own, with kernels and a cache of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import fencepost

KERNELS = """
import numpy as np
from numba import types
from fencepost.kernels import kernel
from fencepost.kernels.runtime.compilation import outlined


@outlined(returns=types.int64)
@kernel
def total(values):
    return values.sum()


@outlined(returns=types.float64)
@kernel
def never_right(values):
    return values  # an array


@kernel
def twice(values):
    return 2 * total(values)


@kernel
def choose(values, wrong):
    if wrong:
        return never_right(values)
    return np.float64(twice(values))


@kernel
def pair(values):
    return values, len(values)
"""

REPORT = """
import numpy as np
import own_kernels as own
from fencepost.kernels.runtime.compile_session import compiled_kernels
from fencepost.kernels.runtime.code_cache import loaded_files
print(own.choose(np.arange(4), False))
names = [name.rpartition(".")[2] for name in compiled_kernels()]
print("compiled:", *sorted(names))
print("loaded:", len(loaded_files()))
"""
"""Prints what a kernel answers, which kernels were compiled, and how many files were loaded."""

ALL = ["12.0", "compiled: choose total twice", "loaded: 0"]
"""What `REPORT` prints if nothing is cached."""

NONE = ["12.0", "compiled:", "loaded: 2"]
"""What `REPORT` prints if all is cached: the code of `twice` is in that of `choose`."""


def environment(folder: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that has its modules and its caches in a folder."""
    (folder / "own_kernels.py").write_text(KERNELS)
    sources = [str(folder), str(Path(fencepost.__file__).parents[1])]
    own = {
        "PYTHONPATH": os.pathsep.join(sources),
        "FENCEPOST_CACHE_DIR": str(folder / "cache"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    kept = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    return {**kept, **own, **(variables or {})}


def run(
    folder: Path,
    program: str,
    variables: Mapping[str, str] | None = None,
    *,
    obey_modes: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own until it ends.

    obey_modes : root, too, writes only where the modes of files let it.
    """
    as_root = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []
    return subprocess.run(
        [*(as_root if obey_modes else []), sys.executable, "-c", program],
        env=environment(folder, variables),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def lines_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines that a process printed. Fail with its errors if it failed."""
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def code_files(folder: Path) -> list[Path]:
    """Return the files of machine code below a folder."""
    return sorted(folder.rglob("*.kernel"))
