"""Whoever is killed while saving leaves an index that can be opened: the last one, or this one."""

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

SAVE_FOR_EVER = """
import sys
from fencepost.engine import Matcher
matcher = Matcher()
for step in range(10**6):
    matcher.subscribe(f"s{step}", f"n = {step}")
    if step % 5 == 4:
        matcher.compact()
    matcher.save(sys.argv[1])
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
            pass  # so far into the next one
        saving.send_signal(signal.SIGKILL)
        saved += len(saving.stdout.read().split())
        saving.wait()
        opened = Matcher.open(folder)
        assert len(opened) - 1 in (saved, saved + 1)
        assert opened.match({"n": len(opened) - 1}) == [f"s{len(opened) - 1}"]
        opened.subscribe("more", "n = -1")
        opened.save(folder)  # over what was left lying there
        assert Matcher.open(folder).match({"n": -1}) == ["more"]
        left = {part.name for part in folder.iterdir()}
        assert len(left) == 1 + len(opened.view().snapshot())


class Crash(BaseException):
    """The machine stops here; nothing is tidied up."""


@pytest.mark.parametrize("full", [False, True], ids=["before the disk has it", "torn"])
def test_stopped_at_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Every call that makes something last fails in turn, and files may be cut short by it."""
    folder = tmp_path / "index"
    matcher = Matcher()
    matcher.subscribe("old", "n = 1")
    matcher.save(folder)
    matcher.subscribe("new", "n = 1")
    fsync, replace = os.fsync, os.replace
    calls = 0
    stop_at = 10**9

    def counted(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            if full and stat.S_ISREG(os.fstat(handle).st_mode):
                os.truncate(handle, os.fstat(handle).st_size // 2)
            raise Crash
        fsync(handle)

    def moved(source: str, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise Crash
        replace(source, target)

    monkeypatch.setattr(os, "fsync", counted)
    monkeypatch.setattr(os, "replace", moved)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    matcher.save(tmp_path / "count")
    total = calls
    assert total >= 7  # three files, their folder, the manifest, its name, and the folder of all
    for stop_at in range(1, total + 1):
        calls = 0
        with pytest.raises(Crash):
            matcher.save(folder)
        found = Matcher.open(folder).match({"n": 1})
        # After the manifest has its name only the folder is left to be synced.
        assert found == (["new", "old"] if stop_at == total else ["old"])
        if stop_at == total:
            break
