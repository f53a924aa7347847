"""`render`: every command and option of `fencepost` as Markdown, from the application itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from fencepost.cli import entry_point

_FROM_A_CHECKOUT = "bench"  # docs/benchmarks.md describes its many commands
_MARKUP = re.compile(r"\[/?bold\]")
_PARAGRAPHS = re.compile(r"\n{2,}")


def render() -> str:
    """Return the sections of all commands."""
    application = typer.main.get_command(entry_point.app)
    return "\n".join(_command(application, "fencepost", 1))


def _command(command: Any, path: str, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    if level > 1:
        yield f"{'#' * level} `{path}`\n"
        if not hasattr(command, "list_commands"):
            usage = command.get_usage(context).removeprefix("Usage: ")
            yield f"```\n{' '.join(usage.split())}\n```\n"
        yield from _help(command.help or "")
    if path.endswith(f" {_FROM_A_CHECKOUT}"):
        return
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if not below.hidden:
                yield from _command(below, f"{path} {name}", level + 1)
        return
    rows = [parameter.get_help_record(context) for parameter in command.params]
    if rows := [row for row in rows if row is not None]:
        yield "| option | meaning |\n|---|---|"
        for names, meaning in rows:
            yield f"| `{_cell(names)}` | {_cell(_prose(meaning))} |"
        yield ""


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help; examples are a block."""
    for paragraph in _PARAGRAPHS.split(text.strip()):
        title, _, rest = _MARKUP.sub("", paragraph).partition("\n")
        if title == "Examples":
            lines = [line.removeprefix("  ") for line in rest.splitlines()]
            yield "```\n" + "\n".join(lines) + "\n```\n"
        elif paragraph.startswith("[bold]"):
            yield f"{title}: {_prose(' '.join(rest.split()))}.\n"
        else:
            yield _prose(" ".join(paragraph.split())) + "\n"


def _prose(text: str) -> str:
    return _MARKUP.sub("", text).replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
