"""The command as a process: pipes that close, pipes that stay open, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.signals import heed_interrupts

COMMAND = [sys.executable, "-m", "fencepost.cli"]


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    path = tmp_path / "all.csv"
    path.write_text("id,expression\na,wind > 1\n")
    return path


def test_a_reader_that_closes_the_pipe_is_no_error(tmp_path: Path, subscriptions: Path) -> None:
    events = tmp_path / "events.ndjson"
    events.write_text('{"wind": 2}\n' * 100_000)
    arguments = ["match", str(events), "--subscriptions", str(subscriptions)]
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"event": 0')
        process.stdout.close()
        stderr = process.stderr.read()
        assert process.wait() == 141
    assert stderr == b""


@pytest.mark.parametrize(
    ("header", "line", "options"),
    [
        ("", '{"wind": 2}\n', ["--threads", "1"]),
        ("", '{"wind": 2}\n', ["--threads", "2"]),
        ("wind,lon,lat\n", "2,3,4\n", ["--format", "csv", "--x", "lon", "--y", "lat"]),
    ],
)
def test_lines_of_an_open_pipe_are_matched_at_once(
    subscriptions: Path, header: str, line: str, options: list[str]
) -> None:
    arguments = ["match", "-", "--subscriptions", str(subscriptions), *options]
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(header.encode())
        for number in range(3):
            process.stdin.write(line.encode())
            process.stdin.flush()
            assert process.stdout.readline().startswith(f'{{"event": {number}'.encode())
        process.stdin.close()
        assert process.wait() == 0


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, subscriptions: Path) -> None:
    fifo = tmp_path / "events.ndjson"
    os.mkfifo(fifo)
    letters, out = tmp_path / "bad.ndjson", tmp_path / "matches.csv"
    arguments = ["match", str(fifo), "--subscriptions", str(subscriptions)]
    arguments += ["--out", str(out), "--dead-letters", str(letters)]
    with (
        subprocess.Popen(
            [*COMMAND, *arguments],
            stderr=subprocess.PIPE,
            preexec_fn=heed_interrupts,  # noqa: PLW1509 (there are no threads to deadlock with)
        ) as process,
        fifo.open("wb", buffering=0) as events,
    ):
        events.write(b"nonsense\n")
        while not letters.exists() or not letters.read_bytes():  # until it is under way
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        stderr = process.stderr.read()
        assert process.wait() == 130
    assert b"Traceback" not in stderr
    assert not out.exists()
    assert list(tmp_path.glob(".matches*")) == []
