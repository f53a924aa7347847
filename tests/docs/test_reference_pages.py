"""The generated reference is complete, and its links lead to headings of the same page."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer

from fencepost.cli import entry_point
from fencepost.server import CHANNELS, OPERATIONS
from tools.site import command_line, http

COMMANDS = command_line.render()
HTTP = http.render()


def options_of(command: Any) -> set[str]:
    """Return the options of a command and of those below it."""
    below = getattr(command, "commands", {}).values()
    own = {
        flag
        for parameter in command.params
        for flag in [*parameter.opts, *parameter.secondary_opts]
        if flag.startswith("--") and flag != "--help"
    }
    return own.union(*(options_of(one) for one in below))


def test_every_command_and_option() -> None:
    application: Any = typer.main.get_command(entry_point.app)
    assert len(application.commands) > 10
    for name, command in application.commands.items():
        assert f"## `fencepost {name}`" in COMMANDS
        if name != "bench":  # whose page is docs/benchmarks.md
            assert [flag for flag in options_of(command) if flag not in COMMANDS] == []


def test_no_markup_of_the_terminal() -> None:
    assert "[bold]" not in COMMANDS
    assert "[/bold]" not in COMMANDS


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_every_operation(operation: Any) -> None:
    section = HTTP.split(f"### `{operation.method} {operation.path}`\n")[1].split("\n### ")[0]
    assert operation.summary in section
    assert f"`{operation.scope}`" in section if operation.scope else "Needs no key" in section


def test_every_channel() -> None:
    missing = [channel.name for channel in CHANNELS if channel.description not in HTTP]
    assert missing == []


def test_links_lead_to_schemas() -> None:
    links = set(re.findall(r"\]\(#([\w-]+)\)", HTTP))
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", HTTP, re.MULTILINE)}
    assert len(links) > 10
    assert links <= headings
