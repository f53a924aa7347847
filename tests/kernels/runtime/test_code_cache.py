"""Machine code on disk: who may have written it, what makes it stale, and what if it is damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fencepost
from tests.kernels.runtime.own_process import (
    ALL,
    NONE,
    REPORT,
    code_files,
    environment,
    lines_of,
    run,
)

NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")

HASHES = """
from pathlib import Path
from fencepost.kernels.runtime import source_hashes
folder = Path(source_hashes.__file__).parents[1] / "geometry"
for name in ("orientation", "planar_distance", "wkb_decoder"):
    print(source_hashes.source_hash(folder / f"{name}.py"))
"""
FIELDS = """
import numpy as np
from typing import NamedTuple

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
RESULTS = """
import numpy as np
import own_kernels as own
values, size = own.pair(np.array([(7, 1.5)], np.dtype([("n", "u4"), ("x", "f8")], align=True)))
print(values.dtype.isalignedstruct, values["x"], size)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be edited."""
    source = Path(fencepost.__file__).parent
    shutil.copytree(source, tmp_path / "fencepost", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


class TestKey:
    def test_an_edit_makes_stale_what_imports_the_file_and_nothing_else(
        self, package: Path
    ) -> None:
        before = lines_of(run(package, HASHES))
        edited = package / "fencepost" / "kernels" / "geometry" / "orientation.py"
        edited.write_text(edited.read_text() + "\n# edited\n")
        orientation, distance, wkb = lines_of(run(package, HASHES))
        assert orientation != before[0]
        assert distance != before[1]  # imports orientation
        assert wkb == before[2]

    def test_the_order_of_fields_is_part_of_it(self, tmp_path: Path) -> None:
        """Numba names the class and the types of its fields only, which are alike here."""
        (tmp_path / "reading.py").write_text(READING)
        assert lines_of(run(tmp_path, FIELDS.format(first="a", second="b"))) == ["1.0"]
        assert lines_of(run(tmp_path, FIELDS.format(first="b", second="a"))) == ["1.0"]

    def test_another_version_of_numba_is_kept_apart(self, tmp_path: Path) -> None:
        other = "import numba; numba.__version__ = '0.61.2'\n"
        assert lines_of(run(tmp_path, REPORT)) == ALL
        assert lines_of(run(tmp_path, other + REPORT)) == ALL
        assert lines_of(run(tmp_path, REPORT)) == NONE


class TestFolders:
    def test_results_of_structured_types_survive(self, tmp_path: Path) -> None:
        before, after = (lines_of(run(tmp_path, RESULTS)) for _ in range(2))
        assert before == after == ["True [1.5] 1"]

    def test_code_in_the_package_comes_first(self, package: Path) -> None:
        lines_of(run(package, REPORT))
        shipped = package / "fencepost" / "machine_code"
        shutil.copytree(package / "cache", shipped)
        for file in code_files(package / "cache"):
            file.write_bytes(b"not read")
        done = run(package, REPORT)
        assert lines_of(done) == NONE
        assert done.stderr == ""

    def test_code_in_the_package_for_other_versions_is_named(self, package: Path) -> None:
        (package / "fencepost" / "machine_code" / "python3.99-numba0.1").mkdir(parents=True)
        done = run(package, REPORT)
        assert lines_of(done) == ALL
        assert "has compiled kernels for python3.99-numba0.1; this is python3." in done.stderr

    def test_a_cache_that_cannot_be_written_is_read(self, tmp_path: Path) -> None:
        assert lines_of(run(tmp_path, REPORT)) == ALL
        _make_read_only(tmp_path / "cache")
        done = run(tmp_path, REPORT, obey_modes=True)
        assert lines_of(done) == NONE
        assert done.stderr == ""

    def test_what_a_read_only_cache_lacks_is_kept_elsewhere(self, tmp_path: Path) -> None:
        lines_of(run(tmp_path, REPORT))
        [file] = (path for path in code_files(tmp_path) if ".total." in path.name)
        file.unlink()
        _make_read_only(tmp_path / "cache")
        reports = [lines_of(run(tmp_path, REPORT, obey_modes=True)) for _ in range(2)]
        assert reports == [["12.0", "compiled: total", "loaded: 1"], NONE]
        assert len(code_files(tmp_path / ".cache")) == 1

    def test_no_folder_at_all_is_a_warning(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch()
        nowhere = {name: str(file) for name in ("FENCEPOST_CACHE_DIR", "HOME")}
        program = f"import tempfile; tempfile.tempdir = {str(file)!r}\n{REPORT}"
        done = run(tmp_path, program, nowhere)
        assert lines_of(done) == ALL
        assert "Set FENCEPOST_CACHE_DIR to a folder of yours" in done.stderr

    @as_root
    def test_the_folder_of_another_user_is_not_read(self, tmp_path: Path) -> None:
        lines_of(run(tmp_path, REPORT))
        for path in [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]:
            shutil.chown(path, NOBODY)
        done = run(tmp_path, REPORT)
        assert lines_of(done) == ALL
        assert "it must belong to you or to root" in done.stderr
        assert code_files(tmp_path / ".cache")  # kept in the user's folder instead

    @pytest.mark.parametrize("part", ["cache", "cache/*"])
    def test_a_folder_that_others_can_write_to_is_not_read(self, tmp_path: Path, part: str) -> None:
        lines_of(run(tmp_path, REPORT))
        [folder] = tmp_path.glob(part)
        folder.chmod(0o775)
        done = run(tmp_path, REPORT)
        assert lines_of(done) == ALL
        assert f'run "chmod go-w {folder}"' in done.stderr
        folder.chmod(0o755)
        assert lines_of(run(tmp_path, REPORT)) == NONE


class TestFiles:
    def test_a_damaged_file_is_compiled_again_and_named(self, tmp_path: Path) -> None:
        lines_of(run(tmp_path, REPORT))
        [file] = (path for path in code_files(tmp_path) if ".total." in path.name)
        whole = file.read_bytes()
        middle = len(whole) // 2
        flipped = bytes([whole[middle] ^ 1])
        for damaged in (b"", whole[:-1], whole[:middle] + flipped + whole[middle + 1 :]):
            file.write_bytes(damaged)
            done = run(tmp_path, REPORT)
            assert lines_of(done) == ["12.0", "compiled: total", "loaded: 1"]
            assert f"{file} is compiled again" in done.stderr
            assert file.read_bytes() != damaged

    def test_an_interruption_leaves_nothing_half_written(self, tmp_path: Path) -> None:
        """The process is interrupted when it says that it compiles; what was finished is kept."""
        program = """
import fencepost as fp
matcher = fp.Matcher()
matcher.subscribe("a", "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 0 4, 0 0)))")
matcher.match({"geometry": "POINT (1 1)"})
"""
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment(tmp_path),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert "Compiling kernels" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait() == -signal.SIGINT
        assert len(said.splitlines()) < 40
        assert said.splitlines()[-1].startswith("KeyboardInterrupt: while kernels were compiled")
        assert not list(tmp_path.rglob("*.tmp"))
        assert lines_of(run(tmp_path, REPORT)) == ALL


def _make_read_only(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o555)
