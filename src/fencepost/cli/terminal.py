"""What commands share: one subscription as it is named, lines, progress bars, complaints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from fencepost.geometry.space import Space


@contextmanager
def progress(
    doing: str, total: int | None, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error if it is a terminal; nothing otherwise."""
    console = Console(stderr=True)
    if hidden or not console.is_terminal:
        yield lambda done: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)


def print_line(text: str, err: bool = False) -> None:
    """Write a line; what cannot be written as UTF-8 becomes an escape."""
    stream = (sys.stderr if err else sys.stdout).buffer
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


def print_json(**values: Any) -> None:
    """Write JSON to standard output."""
    print_line(json.dumps(values, indent=2))


def complain(text: str) -> None:
    """Write a yellow line to standard error."""
    Console(stderr=True).print(Text(text, style="yellow"), soft_wrap=True)


def bytes_text(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    """The items of nested mappings, their names joined."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}: ")
        else:
            yield f"{before}{name}", value


@dataclass(frozen=True, slots=True)
class Source:
    """What was given: an id, and an index or a file that has it; or an expression."""

    id: str | None
    index: Path | None
    subscriptions: str | None
    expression: str | None
    stop_words: Path | None
    space: Space
