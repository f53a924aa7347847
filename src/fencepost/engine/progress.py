"""`progress_steps`: a progress bar for calls that may take a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_COUNT = 8  # steps that `Matcher.subscribe_columns` reports


@contextmanager
def progress_steps(title: str, shown: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that is called with the name of each step as the step begins.

    If `shown`, a bar on standard error displays the steps.
    """
    if not shown:
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(title, total=STEP_COUNT)
        started = 0

        def report_step(step: str) -> None:
            nonlocal started
            bar.update(task, completed=started, description=f"{title}: {step}")
            started += 1

        yield report_step
        bar.update(task, completed=STEP_COUNT, description=f"{title}: done")
