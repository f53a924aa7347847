"""`tools/release_check.py` ends with exit code 1 and a reason if a distribution lacks something."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import fencepost
from tools.release_check import VENDORED_LICENCE, ReleaseCheck, StepFailed

ROOT = Path(__file__).resolve().parents[1]
INFO = f"fencepost-{fencepost.__version__}.dist-info"
METADATA = f"""Metadata-Version: 2.4
Name: fencepost
Version: {fencepost.__version__}
Summary: s
Keywords: k
License-Expression: Apache-2.0
Requires-Python: >=3.11
Classifier: Typing :: Typed

The readme.
"""
IN_WHEEL = {
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/licenses/LICENSE": "",
    f"{INFO}/licenses/THIRD_PARTY.md": "",
    VENDORED_LICENCE: "",
}
IN_SOURCE = ["LICENSE", "THIRD_PARTY.md", "README.md", "CHANGELOG.md", f"src/{VENDORED_LICENCE}"]


def release(folder: Path, in_wheel: dict[str, str], in_source: list[str]) -> ReleaseCheck:
    """Write distributions with the given files; return their check."""
    with zipfile.ZipFile(folder / "fencepost-py3-none-any.whl", "w") as wheel:
        for name, text in in_wheel.items():
            wheel.writestr(name, text)
    with tarfile.open(folder / "fencepost.tar.gz", "w:gz") as source:
        for name in in_source:
            source.addfile(tarfile.TarInfo(f"fencepost/{name}"))
    return ReleaseCheck(folder, folder / "scratch")


def test_complete_distributions(tmp_path: Path) -> None:
    check = release(tmp_path, IN_WHEEL, IN_SOURCE)
    assert check.find_licences() == "4 files in the wheel, 5 in the source"
    assert check.read_metadata() == f"{fencepost.__version__}, 1 classifiers, 0 links"


@pytest.mark.parametrize("missing", [name for name in IN_WHEEL if "METADATA" not in name])
def test_a_licence_is_missing_in_the_wheel(missing: str, tmp_path: Path) -> None:
    files = {name: text for name, text in IN_WHEEL.items() if name != missing}
    with pytest.raises(StepFailed, match=f"the wheel lacks .*{missing.rpartition('/')[2]}"):
        release(tmp_path, files, IN_SOURCE).find_licences()


@pytest.mark.parametrize("missing", IN_SOURCE)
def test_a_file_is_missing_in_the_source(missing: str, tmp_path: Path) -> None:
    files = [name for name in IN_SOURCE if name != missing]
    with pytest.raises(StepFailed, match=f"the source lacks .*{missing}"):
        release(tmp_path, IN_WHEEL, files).find_licences()


def test_a_file_of_the_wheel_is_outside_the_package(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"outside the package: \['tests/test_a.py'\]"):
        release(tmp_path, {**IN_WHEEL, "tests/test_a.py": ""}, IN_SOURCE).find_licences()


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        (f"Version: {fencepost.__version__}\n", "Version: 0.0.1\n", "is of version 0.0.1"),
        ("Classifier: Typing :: Typed\n", "", "no classifier"),
        ("License-Expression: Apache-2.0\n", "", "no License-Expression"),
    ],
)
def test_metadata_is_wrong(old: str, new: str, wrong: str, tmp_path: Path) -> None:
    files = {**IN_WHEEL, f"{INFO}/METADATA": METADATA.replace(old, new)}
    with pytest.raises(StepFailed, match=wrong):
        release(tmp_path, files, IN_SOURCE).read_metadata()


def test_a_command_fails(tmp_path: Path) -> None:
    check = release(tmp_path, IN_WHEEL, IN_SOURCE)
    check.folder.mkdir()
    with pytest.raises(StepFailed, match="exited with 3, not 0:\nwhy"):
        check.run([sys.executable, "-c", "import sys; print('why'); sys.exit(3)"])


def test_no_distributions(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.release_check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith("FAILED: the distributions: ")
    assert "run: make wheel" in done.stderr
