"""`fencepost demo` as a newcomer runs it: nothing compiles, and a server gives the same matches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from tests.waiting import WAIT_S

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

FENCEPOST = [sys.executable, "-m", "fencepost.cli"]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a run wrote to its folder, to the folder of kernels, and to the terminal."""

    folder: Path
    output: str
    kernels_before: set[str]
    kernels_after: set[str]


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    folder, cache = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("cache")
    environment = {
        **os.environ,
        "COLUMNS": "200",
        "FENCEPOST_CACHE_DIR": str(cache),
        "XDG_CACHE_HOME": str(cache / "user"),
    }

    def run(*args: str) -> str:
        done = subprocess.run(
            [*FENCEPOST, *args], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kernels() -> set[str]:
        return {str(path.relative_to(cache)) for path in cache.rglob("*.kernel")}

    run("warmup", "--demo")
    before = kernels()
    output = run("demo", "--out", str(folder / "city"))
    return Demonstration(folder / "city", output, before, kernels())


def test_nothing_compiles_after_the_warmup_for_it(demonstration: Demonstration) -> None:
    assert demonstration.kernels_before
    assert demonstration.kernels_after == demonstration.kernels_before


def test_the_commands_that_it_names_work(demonstration: Demonstration) -> None:
    lines = [line.strip() for line in demonstration.output.splitlines()]
    named = [
        line.split()[1:]
        for line in lines
        if line.startswith(("fencepost match", "fencepost explain"))
    ]
    assert [words[0] for words in named] == ["match", "explain"]
    for words in named:
        done = subprocess.run([*FENCEPOST, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """Run `fencepost serve` on a free port; the address is that which it prints."""
    command = [*FENCEPOST, "serve", "--open", "--port", "0", "--data", str(data)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "400"}
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert " at http://" in line, line
            yield line.partition(" at ")[2].split()[0]
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_S)


def test_a_server_sends_every_subscriber_the_same_matches(
    demonstration: Demonstration, tmp_path: Path
) -> None:
    matches = pq.read_table(demonstration.folder / "matches.parquet").to_pylist()
    file = demonstration.folder / "subscriptions.ndjson"
    subscribers = {
        row["id"]: row["subscriber"] for row in map(json.loads, file.read_text().splitlines())
    }
    expected: dict[str, set[tuple[str, str]]] = {name: set() for name in subscribers.values()}
    for match in matches:
        expected[subscribers[match["subscription"]]].add((match["event"], match["subscription"]))
    assert sum(map(len, expected.values())) == len(matches) > 1_000

    with serving(tmp_path / "data") as url, httpx.Client(base_url=url, timeout=WAIT_S) as http:
        for command in (
            ("subscribe", "--file", str(file)),
            ("publish", str(demonstration.folder / "events.ndjson")),
        ):
            done = subprocess.run(
                [*FENCEPOST, *command, "--server", url, "--json"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["dead_letters"] == 0
        sent = {name: received(http, name) for name in expected}
    assert {name: set(pairs) for name, pairs in sent.items()} == expected
    assert sum(map(len, sent.values())) == len(matches)  # each match once


def received(http: httpx.Client, subscriber: str) -> list[tuple[str, str]]:
    """Return the ids of events and subscriptions in the messages of a subscriber."""
    parameters = {"since": 0, "limit": 1000}
    messages = http.get(f"/v1/subscribers/{subscriber}/messages", params=parameters).json()
    assert len(messages) < 1000
    return [
        (message["data"]["event"]["id"], subscription)
        for message in messages
        for subscription in message["data"]["subscriptions"]
    ]
