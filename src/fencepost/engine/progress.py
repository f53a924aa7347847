"""A progress bar for calls that may take a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEPS = 8  # of `Matcher.subscribe_columns`, each told by its name as it begins


@contextmanager
def progress_steps(doing: str, shown: bool) -> Iterator[Callable[[str], None]]:
    """What to tell each step to; a bar on standard error shows them if it is wanted."""
    if not shown:
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(doing, total=STEPS)
        begun = 0

        def report_step(step: str) -> None:
            nonlocal begun
            bar.update(task, completed=begun, description=f"{doing}: {step}")
            begun += 1

        yield report_step
        bar.update(task, completed=STEPS, description=f"{doing}: done")
