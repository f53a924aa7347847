"""The cache of machine code: an edit of a source file makes stale entries unreachable."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fencepost

HASHES = """
from pathlib import Path
from fencepost.kernels.runtime import compilation
folder = Path(compilation.__file__).parents[1] / "geometry"
for name in ("orientation", "planar_distance", "wkb_decoder"):
    print(compilation.source_hash(folder / f"{name}.py"))
"""
FIELDS = """
import numpy as np
from typing import NamedTuple
from fencepost.kernels.runtime.compilation import kernel

class Pair(NamedTuple):
    {first}: np.ndarray
    {second}: np.ndarray

from reading import first_of_a
print(first_of_a(Pair(**{{"a": np.full(1, 1.0), "b": np.full(1, 2.0)}})))
"""
READING = """
from fencepost.kernels.runtime.compilation import kernel

@kernel
def first_of_a(pair):
    return pair.a[0]
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be edited."""
    source = Path(fencepost.__file__).parent
    shutil.copytree(source, tmp_path / "fencepost", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(folder: Path, program: str) -> list[str]:
    environment = {"PYTHONPATH": str(folder), "FENCEPOST_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_an_edit_makes_stale_what_imports_the_file_and_nothing_else(package: Path) -> None:
    before = run(package, HASHES)
    edited = package / "fencepost" / "kernels" / "geometry" / "orientation.py"
    edited.write_text(edited.read_text() + "\n# edited\n")
    orientation, distance, wkb = run(package, HASHES)
    assert orientation != before[0]
    assert distance != before[1]  # imports orientation
    assert wkb == before[2]


def test_an_order_of_fields_is_part_of_the_key(package: Path) -> None:
    """Numba's key names the class and the types of its fields, which are alike here."""
    (package / "reading.py").write_text(READING)
    assert run(package, FIELDS.format(first="a", second="b")) == ["1.0"]
    assert run(package, FIELDS.format(first="b", second="a")) == ["1.0"]
