"""The command `warmup`, which compiles all kernels in as many processes as there are processors."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fencepost.cli.file_commands import AsJson


def warmup(
    native: Annotated[
        bool, typer.Option("--native", help="Compile for this very processor.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Compile only what `fencepost demo` needs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compile all kernels now and keep the machine code for later runs.

    Without a warm-up, each kernel compiles when it is first called. A wheel
    from PyPI has the machine code of common processors, and then there is
    nothing to compile; --native compiles for this very processor instead,
    whose code is preferred from then on.

    The code is kept in FENCEPOST_CACHE_DIR if that is set, or else in the
    user's cache folder.

    [bold]Examples[/bold]
      fencepost warmup
      fencepost warmup --native
      FENCEPOST_CACHE_DIR=/var/cache/fencepost fencepost warmup --json
    """
    started = time.perf_counter()
    processes = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    kernels = "the kernels of the demonstration" if demo else "all kernels"
    minutes = "a minute and a half" if demo else "two minutes"
    word = "process" if processes == 1 else "processes"
    typer.echo(
        f"Loading {kernels} in {processes} {word}, and compiling those that are missing:"
        f" up to {minutes} of processor time",
        err=True,
    )
    with _progress() as show:
        compiled = _run_steps(processes, native, demo, show)
    seconds = time.perf_counter() - started
    from fencepost.kernels.runtime.code_folders import cache_folder

    if as_json:
        result = {"compiled": compiled, "seconds": round(seconds, 3), "folder": str(cache_folder())}
        typer.echo(json.dumps(result))
    else:
        kept = f"; kept in {cache_folder()}" if compiled else ""
        text = f"{kernels} are ready in {seconds:.1f} s, {compiled} of them compiled{kept}"
        typer.echo(text[0].upper() + text[1:])


def _run_steps(
    processes: int, native: bool, demo: bool, show: Callable[[int, int, str, int], None]
) -> int:
    """Run the steps, show each when it is done, and return how many kernels were compiled."""
    executor = ProcessPoolExecutor(processes, get_context("spawn"), _prepare_process, (native,))
    with executor, _stopping(executor):
        names = executor.submit(_names, demo).result()
        running: dict[Future[int], str] = {
            executor.submit(_run_step, number, demo): name for number, name in enumerate(names)
        }
        total = 0
        for done, future in enumerate(as_completed(running), start=1):
            compiled = future.result()
            show(done, len(names), running[future], compiled)
            total += compiled
        return total


@contextmanager
def _stopping(executor: ProcessPoolExecutor) -> Iterator[None]:
    """End the processes if the body is interrupted or fails: each finishes or drops its file."""
    try:
        yield
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in list((executor._processes or {}).values()):
            process.terminate()
        raise


def _prepare_process(native: bool) -> None:
    from fencepost.kernels.runtime import compile_session, processors

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    signal.signal(signal.SIGTERM, _exit)
    compile_session.announce_nothing()
    if native:
        processors.use_native_code_only()


def _exit(_: int, __: FrameType | None) -> None:
    raise SystemExit(1)


def _names(demo: bool) -> list[str]:
    from fencepost import warmup as operations

    return [name for name, _ in operations.steps(demo)]


def _run_step(number: int, demo: bool) -> int:
    from fencepost import warmup as operations

    return operations.run_step(number, demo)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str, int], None]]:
    """Show a progress bar, or a line for each step if there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:

        def print_step(done: int, total: int, name: str, compiled: int) -> None:
            typer.echo(f"{done}/{total} {name}: {compiled} compiled", err=True)

        yield print_step
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Compiling", total=None, step="")

        def update(done: int, total: int, name: str, compiled: int) -> None:
            bar.update(task, completed=done, total=total, step=name)

        yield update
