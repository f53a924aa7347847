"""A process killed while it saves leaves an index that opens: the old one or the new one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.engine import Matcher
from fencepost.errors import IndexingError

SAVE_FOR_EVER = """
import sys
from fencepost.engine import Matcher
matcher = Matcher()
for step in range(10**6):
    matcher.subscribe(f"s{step}", f"n = {step}")
    if step % 5 == 4:
        matcher.compact()
    matcher.save(sys.argv[1], overwrite=True)
    print(step, flush=True)
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    rng = random.Random(5)
    folder = tmp_path / "index"
    for _ in range(3):
        saving = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert saving.stdout is not None
        saved = -1
        for _ in range(rng.randrange(1, 12)):
            saved = int(saving.stdout.readline())
        for _ in range(rng.randrange(200_000)):
            pass  # some way into the next save
        saving.send_signal(signal.SIGKILL)
        saved += len(saving.stdout.read().split())
        saving.wait()
        opened = Matcher.open(folder)
        assert len(opened) - 1 in (saved, saved + 1)
        assert opened.match({"n": len(opened) - 1}) == [f"s{len(opened) - 1}"]
        opened.subscribe("more", "n = -1")
        opened.save(folder)  # over the files of the unfinished save
        assert Matcher.open(folder).match({"n": -1}) == ["more"]
        names = {part.name for part in folder.iterdir()}
        assert len(names) == 1 + len(opened.view().snapshot())


class Crash(BaseException):
    """Stands for a machine that stops: no cleanup runs."""


@pytest.mark.parametrize("is_torn", [False, True], ids=["not synced", "torn"])
def test_stopped_at_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_torn: bool
) -> None:
    """Each call that makes a write durable fails in turn, and may leave half of the file."""
    folder = tmp_path / "index"
    matcher = Matcher(space="planar")
    matcher.subscribe("old", "n = 1")
    matcher.save(folder)
    matcher.subscribe("new", "n = 1")
    fsync, replace = os.fsync, os.replace
    calls = 0
    stop_at = 10**9

    def fsync_or_crash(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            if is_torn and stat.S_ISREG(os.fstat(handle).st_mode):
                os.truncate(handle, os.fstat(handle).st_size // 2)
            raise Crash
        fsync(handle)

    def replace_or_crash(source: str, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise Crash
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync_or_crash)
    monkeypatch.setattr(os, "replace", replace_or_crash)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    matcher.save(tmp_path / "count")
    total = calls
    assert (
        total >= 7
    )  # three files and their folder; the manifest, its replacement, and the index folder
    for stop_at in range(1, total + 1):
        calls = 0
        with pytest.raises(Crash):
            matcher.save(folder)
        ids = Matcher.open(folder).match({"n": 1})
        # Once the manifest is replaced, only the folder remains to be synced.
        assert ids == (["new", "old"] if stop_at == total else ["old"])
        if stop_at == total:
            break


def test_a_folder_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new manifest is in place when the sync of the folder fails, so its files stay."""
    folder = tmp_path / "index"
    matcher = Matcher(space="planar")
    matcher.subscribe("old", "n = 1")
    matcher.save(folder)
    matcher.subscribe("new", "n = 1")
    fsync = os.fsync

    def fsync_or_fail(handle: int) -> None:
        if os.path.samestat(os.fstat(handle), folder.stat()):
            raise OSError(5, "Input/output error")
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync_or_fail)
        with pytest.raises(IndexingError, match="Input/output error"):
            matcher.save(folder)
    assert Matcher.open(folder).match({"n": 1}) == ["new", "old"]


def test_the_next_save_removes_an_unfinished_manifest(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.subscribe("old", "n = 1")
    matcher.save(tmp_path)
    (tmp_path / ".manifest.json.0123456789abcdef").write_text("{")  # as a killed process leaves it
    matcher.save(tmp_path)
    assert [name for name in os.listdir(tmp_path) if "manifest" in name] == ["manifest.json"]
