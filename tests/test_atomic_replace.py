"""Files that are replaced atomically."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fencepost.atomic_replace import atomic_write, replace_file


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.json"
    replace_file(path, b"old", durable=durable)
    with atomic_write(path, durable=durable) as file:
        file.write(b"ne")
        file.write(b"w")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    replace_file(path, b"old", durable=False)

    def broken() -> None:
        with atomic_write(path, durable=True) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "a", b"", durable=True)


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"", durable=False)
        replace_file(tmp_path / "b", b"", durable=False, mode=0o600)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o640, 0o600]
