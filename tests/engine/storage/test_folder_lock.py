"""One writer at a time in a folder."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from fencepost.engine import Matcher
from fencepost.engine.storage.folder_lock import LOCK, folder_lock
from fencepost.errors import IndexingError


def test_a_save_is_refused_while_another_writer_works(tmp_path: Path) -> None:
    matcher = Matcher(space="planar")
    matcher.save(tmp_path)
    before = (tmp_path / "manifest.json").read_bytes()
    with folder_lock(tmp_path):
        for overwrite in (False, True):
            with pytest.raises(IndexingError, match=r"another process is writing an .*try again"):
                matcher.save(tmp_path, overwrite=overwrite)
    assert (tmp_path / "manifest.json").read_bytes() == before
    matcher.save(tmp_path)


def test_a_first_save_is_refused_while_another_writer_works(tmp_path: Path) -> None:
    with folder_lock(tmp_path):
        (tmp_path / "segment-1-x").mkdir()
        with pytest.raises(IndexingError, match="another process is writing"):
            Matcher(space="planar").save(tmp_path)


def test_a_lock_file_left_behind_excludes_nobody(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_bytes(b"")
    Matcher(space="planar").save(tmp_path)
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), folder_lock(tmp_path):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    with folder_lock(tmp_path):
        pass


def test_a_file_that_its_owner_removes_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is removed after it was opened and before it is locked."""
    flock, calls = fcntl.flock, []

    def late_flock(file: object, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()
        flock(file, operation)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", late_flock)
    with folder_lock(tmp_path):
        assert len(calls) == 2
        assert (tmp_path / LOCK).exists()


def test_threads_are_never_inside_together(tmp_path: Path) -> None:
    inside = most = 0
    done: list[int] = []
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        while len(done) < 200:
            try:
                with folder_lock(tmp_path):
                    with guard:
                        inside += 1
                        most = max(most, inside)
                    with guard:
                        inside -= 1
                    done.append(1)
            except IndexingError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
