"""`fencepost warmup`: kernels compiled in several processes, with what is shown meanwhile."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.kernels import cache_folder

COMMAND = [sys.executable, "-m", "fencepost.cli", "warmup"]


@pytest.fixture
def empty_cache(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds no compiled kernels."""
    folders = {"FENCEPOST_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "user")}
    return {**os.environ, **folders, "TMPDIR": str(tmp_path)}


def test_a_second_warmup_compiles_nothing() -> None:
    subprocess.run(COMMAND, capture_output=True, check=True)
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer.pop("seconds") >= 0
    assert answer == {"compiled": 0, "folder": str(cache_folder())}
    first, *steps = done.stderr.splitlines()
    assert first.startswith("Loading all kernels in ")
    assert sorted(line.partition(" ")[0] for line in steps) == sorted(
        f"{number}/{len(steps)}" for number in range(1, len(steps) + 1)
    )
    assert all(line.endswith(": 0 compiled") for line in steps)


def test_what_the_demonstration_needs() -> None:
    subprocess.run([*COMMAND, "--demo"], capture_output=True, check=True)
    done = subprocess.run([*COMMAND, "--demo"], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("Loading the kernels of the demonstration in ")
    assert done.stdout.startswith("The kernels of the demonstration are ready in ")
    assert ", 0 of them compiled" in done.stdout


def test_a_terminal_shows_a_bar() -> None:
    terminal, program_end = pty.openpty()
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=program_end, text=True)
    os.close(program_end)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # the process has closed its end
        pass
    os.close(terminal)
    printed, _ = process.communicate()
    assert process.returncode == 0
    assert printed.startswith("All kernels are ready in ")
    assert b"Compiling" in shown
    assert b": 0 compiled" not in shown


def test_ctrl_c_ends_it_in_one_line_with_nothing_half_written(
    empty_cache: dict[str, str], tmp_path: Path
) -> None:
    """A terminal sends the signal to the process and to those that it started."""
    process = subprocess.Popen(
        COMMAND,
        env=empty_cache,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Loading all kernels")
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate()
    assert process.returncode == 130
    assert printed == ""
    assert said.splitlines() == ["interrupted"]
    assert not list(tmp_path.rglob("*.tmp"))
