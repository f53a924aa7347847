"""Kernels that are compiled once, and called by those that call them without a copy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[[], list[str]]

_KERNELS = """
import numpy as np
from fencepost.kernels import kernel
from fencepost.kernels.runtime.compilation import outlined


@outlined
@kernel
def inner(values, factor):
    return values.sum() * factor


@outlined
@kernel
def middle(values, factor):
    return inner(values, factor) + 1


@kernel
def between(values):
    return middle(values, 2)


@kernel
def outer(values):
    return between(values), inner(values, 0.5)


if __name__ == "__main__":
    import own_kernels  # by its name, as it is kept

    print(*own_kernels.outer(np.arange(4)))
    print(*(sum(k.stats.cache_misses.values()) for k in (
        own_kernels.outer, own_kernels.between, own_kernels.middle, own_kernels.inner)))
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call the outermost in a new process: its answer, and how often each kernel was compiled."""
    (tmp_path / "own_kernels.py").write_text(_KERNELS)
    environment = {**os.environ, "FENCEPOST_CACHE_DIR": str(tmp_path / "cache")}

    def call() -> list[str]:
        command = [sys.executable, str(tmp_path / "own_kernels.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return call


def test_found_again_by_another_process_and_compiled_where_it_is_gone(
    run: Run, tmp_path: Path
) -> None:
    assert run() == ["13 3.0", "1 1 1 2"]
    # The outermost calls two of them by name, which are loaded with it; it holds the other.
    assert run() == ["13 3.0", "0 0 0 0"]
    gone = list((tmp_path / "cache").rglob("own_kernels.inner.*.nbc"))
    assert len(gone) == 2
    for file in gone:
        file.unlink()
    assert run() == ["13 3.0", "0 0 0 2"]


def test_a_caller_holds_no_copy(run: Run, tmp_path: Path) -> None:
    run()
    (caller,) = (tmp_path / "cache").rglob("own_kernels.outer.*.nbc")
    machine_code = caller.read_bytes()
    assert b"own_kernels7between" in machine_code
    assert b"own_kernels6middle" not in machine_code
    assert b"own_kernels5inner" not in machine_code
