"""Kernels that do not count who uses arrays: they read those they are given, and make none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_KERNELS = """
import numpy as np
from fencepost.kernels import kernel
from fencepost.kernels.runtime.compilation import no_refcount


@kernel
def pair(n):
    return n, np.empty(n)


@no_refcount
def reads(values):
    part = values[1:]
    return part.sum()


@no_refcount
def makes(n):
    return np.empty(n).shape[0]


@no_refcount
def gets(n):
    return pair(n)[1].shape[0]


if __name__ == "__main__":
    import own_no_refcount as own  # by its name, as it is kept

    print(own.reads(np.arange(4.0)))
    for refused in (own.makes, own.gets):
        try:
            print("not refused:", refused(3))
        except Exception as error:
            print(refused.__name__, "gets arrays from" in str(error), "empty" in str(error))
"""


def test_what_would_leave_arrays_that_nobody_frees_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "own_no_refcount.py"
    script.write_text(_KERNELS)
    environment = {**os.environ, "FENCEPOST_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["6.0", "makes False True", "gets True False"]
