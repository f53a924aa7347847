"""docs/server.md is complete, and its JavaScript runs; `tests/docs` runs its other examples."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from starlette.routing import Route, WebSocketRoute

import fencepost as fp
from fencepost.cli import entry_point
from fencepost.server import CHANNELS, OPERATIONS, Limits, Settings, create_app
from tests.client.test_restart import JAVASCRIPT, NO_NODE, NODE
from tests.server.serving import Running
from tests.waiting import WAIT_S

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"
SERVING = ("serve", "keys", "publish", "subscribe", "tail", "export", "import")


def blocks(language: str) -> list[str]:
    texts = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert texts
    return texts


@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}"
)
def test_every_operation_is_documented(operation: Any) -> None:
    heading = re.escape(f"{operation.method} {operation.path}")
    assert re.search(rf"(`|^){heading}(`| |\?)", PAGE, re.MULTILINE)


def test_every_other_route_and_channel_is_documented(server: Running) -> None:
    operations = {operation.path for operation in OPERATIONS}
    routes = {
        route.path.replace(":path", "")
        for route in create_app(server.service).routes
        if isinstance(route, Route | WebSocketRoute)
    }
    addresses = {channel.address for channel in CHANNELS if (channel.address or "").startswith("/")}
    missing = [
        path for path in (routes | addresses) - operations if path and f"{path}`" not in PAGE
    ]
    assert missing == []


@pytest.mark.parametrize("name", SERVING)
def test_every_option_of_a_command_is_documented(name: str) -> None:
    command: Any = typer.main.get_command(entry_point.app).commands[name]  # type: ignore[attr-defined]
    commands = [*getattr(command, "commands", {"": command}).values()]
    options = {
        flag
        for command in commands
        for parameter in command.params
        for flag in [*parameter.opts, *parameter.secondary_opts]
        if flag.startswith("--") and flag != "--help"
    }
    assert options
    assert [flag for flag in sorted(options) if not re.search(rf"{flag}\b", PAGE)] == []


def test_every_setting_limit_and_metric_is_documented(server: Running) -> None:
    names = [field.name for kind in (Settings, Limits) for field in fields(kind)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
    server.http.put("/v1/subscriptions/a", json={"expression": "n = 1"})
    server.http.post("/v1/events", json={"n": 1})
    metrics = re.findall(r"^# TYPE (\w+)", server.http.get("/metrics").text, re.MULTILINE)
    assert len(metrics) > 5
    assert [name for name in metrics if f"`{name}`" not in PAGE] == []


def test_every_method_of_the_clients_is_documented() -> None:
    methods = {name for name in dir(fp.Client) if not name.startswith("_")} - {"close"}
    assert [name for name in sorted(methods) if not re.search(rf"`(client\.)?{name}\b", PAGE)] == []


def check_output(output: str, block: str) -> None:
    """Check that calls print the texts in the comments behind them."""
    expected = re.findall(r"console\.log\(.*\);?\s+// (.*)$", block, re.MULTILINE)
    assert expected
    lines = iter(output.splitlines())
    assert all(any(line == text for line in lines) for text in expected), output


@pytest.mark.skipif(NODE is None, reason=NO_NODE)
def test_javascript_examples_run(server: Running, tmp_path: Path) -> None:
    for block in blocks("js"):
        code = block.replace("./client.js", str(JAVASCRIPT)).replace(ADDRESS, server.url)
        ran = subprocess.run(
            [str(NODE), "--input-type=module", "--eval", code],
            capture_output=True, text=True, timeout=WAIT_S, check=True, cwd=tmp_path,
        )  # fmt: skip
        check_output(ran.stdout, block)
