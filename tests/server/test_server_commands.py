"""`fencepost publish | subscribe | tail` against a real server."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner, Result

from fencepost.cli import entry_point
from fencepost.cli.client_commands import format_message
from fencepost.client import Message
from tests.server.serving import Running, running
from tests.signals import heed_interrupts
from tests.waiting import WAIT_S


def fencepost(server: Running, *args: str, stdin: str | None = None) -> Result:
    """Run a command."""
    environment = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    runner = CliRunner(env={**environment, "FENCEPOST_SERVER": server.url})
    return runner.invoke(entry_point.app, args, input=stdin)


def test_subscribe_publish_tail(server: Running, tmp_path: Path) -> None:
    made = fencepost(
        server, "subscribe", "taxis", "kind = 'taxi'", "--subscriber", "me", "--payload", '{"a": 1}'
    )
    assert (made.exit_code, made.stdout) == (0, "taxis: messages go to me\n")
    events = tmp_path / "events.ndjson"
    events.write_text('{"kind": "taxi", "n": 1}\n{"kind": "bus"}\n{"kind": "taxi", "n": 2}\n')
    done = fencepost(server, "publish", str(events))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("3 events published, 2 messages, 0 dead letters")
    tailed = fencepost(server, "tail", "me", "--count", "1")
    assert tailed.exit_code == 0
    assert "match  taxis  payloads=" in tailed.stdout
    assert tailed.stdout.endswith("kind=taxi  n=1\n")
    rest = fencepost(server, "tail", "me", "-n", "1", "--json")
    assert json.loads(rest.stdout)["data"]["event"] == {"kind": "taxi", "n": 2}
    again = fencepost(server, "tail", "me", "-n", "2", "--since", "0", "--no-ack", "--json")
    assert len(again.stdout.splitlines()) == 2
    assert server.http.get("/v1/subscribers/me").json()["depth"] == 0


def test_unacknowledged_messages_are_shown_again(server: Running) -> None:
    fencepost(server, "subscribe", "me", "n > 0")
    fencepost(server, "publish", "-", stdin='{"n": 1}\n')
    for _ in range(2):
        assert "n=1" in fencepost(server, "tail", "me", "-n", "1", "--no-ack").stdout
    assert server.http.get("/v1/subscribers/me").json()["depth"] == 1


def _parquet(path: Path, events: Sequence[dict[str, Any]]) -> None:
    rows = [
        {"geometry": shapely.to_wkb(shapely.Point(*event["at"])), "kind": event["kind"]}
        for event in events
    ]
    table = pa.Table.from_pylist(rows)
    geo = {
        "version": "1.0.0",
        "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}},
    }
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)


def _geojson(path: Path, events: Sequence[dict[str, Any]]) -> None:
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": event["at"]},
            "properties": {"kind": event["kind"]},
        }
        for event in events
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


@pytest.mark.parametrize(
    ("name", "write"), [("events.parquet", _parquet), ("events.geojson", _geojson)]
)
def test_files_of_other_formats(server: Running, tmp_path: Path, name: str, write: Any) -> None:
    fencepost(server, "subscribe", "me", "S_INTERSECTS(geometry, BBOX(0, 0, 2, 2)) AND kind = 'a'")
    write(tmp_path / name, [{"at": [1, 1], "kind": "a"}, {"at": [5, 5], "kind": "a"}])
    done = fencepost(server, "publish", str(tmp_path / name), "--json")
    assert done.exit_code == 0, done.output
    assert {**json.loads(done.stdout), "seconds": 0, "events_per_second": 0} == {
        "events": 2,
        "messages": 1,
        "dead_letters": 0,
        "seconds": 0,
        "events_per_second": 0,
        "server": server.url,
    }
    tailed = fencepost(server, "tail", "me", "-n", "1")
    assert "POINT(1" in tailed.stdout


BAD = '{"n": 1}\n[1]\n\n{"geometry": {"type": "Point"}}\n{"n": 2}\n'


def test_bad_rows_are_listed_or_saved(server: Running, tmp_path: Path) -> None:
    shown = fencepost(server, "publish", "-", stdin=BAD)
    assert shown.exit_code == 3
    assert "2 events published" in shown.stdout
    assert "standard input, line 2: it is an array" in shown.stderr
    assert "standard input, line 4: its geometry cannot be used" in shown.stderr
    kept = tmp_path / "bad.ndjson"
    done = fencepost(server, "publish", "-", "--dead-letters", str(kept), stdin=BAD)
    assert done.exit_code == 0
    letters = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(letter["row"], letter["line"]) for letter in letters] == [(1, 2), (2, 4)]
    strict = fencepost(server, "publish", "-", "--strict", stdin=BAD)
    assert strict.exit_code == 1


def test_a_file_of_subscriptions(server: Running, tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text(
        "id,expression,subscriber,expires\na,n > 1,me,\nb,n >,,\nc,n = 3,you,2100-01-01T00:00:00Z\n"
    )
    done = fencepost(server, "subscribe", "--file", str(file))
    assert done.exit_code == 3
    assert done.stdout == "2 subscriptions made, 0 replaced, 1 set aside\n"
    assert "line 3" in done.stderr
    kept = fencepost(
        server, "subscribe", "-f", str(file), "--json", "--dead-letters", str(tmp_path / "bad")
    )
    assert json.loads(kept.stdout) == {"created": 0, "replaced": 2, "dead_letters": 1}
    listed = server.http.get("/v1/subscriptions").json()["subscriptions"]
    assert [(subscription["id"], subscription["subscriber"]) for subscription in listed] == [
        ("a", "me"),
        ("c", "you"),
    ]


def test_removing(server: Running) -> None:
    json_text = '{"op": "=", "args": [{"property": "n"}, 1]}'
    made = fencepost(server, "subscribe", "a", json_text, "--json")
    assert json.loads(made.stdout)["expression"] == json.loads(json_text)
    assert fencepost(server, "subscribe", "a", "--remove").stdout == "removed a\n"
    gone = fencepost(server, "subscribe", "a", "--remove", "--json")
    assert json.loads(gone.stdout) == {"id": "a", "removed": False}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["subscribe"], 2, "give ID and EXPRESSION"),
        (["subscribe", "a"], 2, "give EXPRESSION or"),
        (["subscribe", "a", "n = 1", "--file", "x.csv"], 2, "--file names all"),
        (["subscribe", "a", "n = 1", "--payload", "{"], 2, "is no JSON"),
        (["subscribe", "a", "n ="], 1, "expression ends"),
        (["tail", "nobody"], 1, "there is no subscriber 'nobody'"),
        (["publish", "nothing.ndjson"], 1, "nothing.ndjson"),
        (["publish", "-", "--server", "nonsense"], 1, "has the form http://"),
        (
            ["tail", "me", "--server", "http://127.0.0.1:9", "--retry-timeout", "0"],
            1,
            "cannot be reached",
        ),
    ],
)
def test_error_messages(server: Running, args: list[str], code: int, message: str) -> None:
    result = fencepost(server, *args, stdin="")
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_key(tmp_path: Path) -> None:
    with running(tmp_path / "data", open_access=False) as server:
        refused = fencepost(server, "subscribe", "a", "n = 1")
        assert refused.exit_code == 1
        assert "this request needs a key" in refused.stderr
        key = server.key("subscribe")
        assert fencepost(server, "subscribe", "a", "n = 1", "--key", key).exit_code == 0


def test_printed_lines_have_no_control_characters() -> None:
    data = {"subscriptions": ["a\x1b[31m"], "position": 1, "event": {"text": "x\ny\x07"}}
    line = format_message(Message(7, "7", "", "fencepost.match", "2026-01-01T10:20:30.5Z", data))
    assert line.isprintable()
    assert line.startswith("2026-01-01T10:20:30Z         7  match  a [31m")


class TailProcess:
    """`fencepost tail me` in a child process."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "fencepost.cli", "tail", "me", "--json"]
        self.process = subprocess.Popen(
            [*command, "--server", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
            preexec_fn=heed_interrupts,  # noqa: PLW1509 (it only sets a signal handler)
        )

    def lines(self, count: int) -> list[int]:
        """Return the numbers of the next events."""
        out = self.process.stdout
        assert isinstance(out, io.TextIOBase)
        return [json.loads(out.readline())["data"]["event"]["n"] for _ in range(count)]

    def stop(self) -> str:
        """Send Ctrl-C. Return the text of standard error."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=WAIT_S)
        return errors


def test_tail_reconnects_until_interrupted(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        fencepost(server, "subscribe", "me", "n >= 0")
        port = int(server.url.rpartition(":")[2])
        tail = TailProcess(server.url)
        fencepost(server, "publish", "-", stdin="".join(f'{{"n": {n}}}\n' for n in range(50)))
        assert tail.lines(50) == [*range(50)]
    with running(tmp_path, port) as server:
        fencepost(server, "publish", "-", stdin="".join(f'{{"n": {n}}}\n' for n in range(50, 90)))
        assert tail.lines(40) == [*range(50, 90)]
        errors = tail.stop()
        assert tail.process.returncode == 130
    assert "trying again in" in errors
    assert "is reached again" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", ["publish", "subscribe", "tail", "export", "import"])
def test_help_has_examples(command: str) -> None:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(entry_point.app, [command, "--help"])
    assert result.exit_code == 0
    assert f"fencepost {command}" in result.stdout
    assert "Examples" in result.stdout
