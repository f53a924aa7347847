"""`Progress`: shows the steps of a benchmark, as a bar on a terminal, otherwise as lines."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class Progress:
    """The steps of a task, shown on standard error; a context manager."""

    def __init__(self, task: str, *, quiet: bool = False) -> None:
        self._task = task
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._bar: RichProgress | None = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._quiet:
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[step]}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._bar.add_task(self._task, total=None, step="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, steps: int) -> None:
        """Set the number of steps."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], total=steps)

    def step(self, name: str) -> None:
        """Begin a step, which ends the previous one."""
        if self._bar is not None:
            task = self._bar.tasks[0]
            done = task.completed + (1 if task.fields["step"] else 0)
            self._bar.update(task.id, completed=done, step=name)
        elif not self._quiet:
            self._console.print(f"{self._task}: {name}", highlight=False, soft_wrap=True)
