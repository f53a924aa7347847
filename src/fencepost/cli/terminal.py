"""Output that the commands share: lines, JSON, warnings and progress bars.

`SubscriptionSource` holds the arguments of `fencepost explain` that name a subscription.
"""

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
    description: str, total: int | None, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error if that is a terminal; yield its update function."""
    console = Console(stderr=True)
    if hidden or not console.is_terminal:
        yield lambda done: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)


def print_line(text: str, err: bool = False) -> None:
    """Write a line; characters that UTF-8 cannot encode become escapes."""
    stream = (sys.stderr if err else sys.stdout).buffer
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


def print_json(**values: Any) -> None:
    """Write JSON to standard output."""
    print_line(json.dumps(values, indent=2))


def print_warning(text: str) -> None:
    """Write a yellow line to standard error."""
    Console(stderr=True).print(Text(text, style="yellow"), soft_wrap=True)


def format_bytes(size: float) -> str:
    """Return a number of bytes with a unit, such as `1 kB`."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the items of nested mappings, with joined names."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", value


@dataclass(frozen=True, slots=True)
class SubscriptionSource:
    """Where a subscription comes from: an id in an index or in a file, or an expression."""

    id: str | None
    index: Path | None
    subscriptions: str | None
    expression: str | None
    stop_words: Path | None
    space: Space
