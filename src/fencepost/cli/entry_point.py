"""The `fencepost` command: argument parsing only.

Exit codes: 0 done; 1 Fencepost refused something, said in one line on standard error; 2 the
command line itself is wrong; 3 done, but rows were set aside that nobody asked to keep; 4 (of
`explain`) the event does not match; 130 interrupted with Ctrl-C; 141 whoever read the output went
away. Results go to standard output, progress and errors to standard error. Anything heavy is
imported inside the command that needs it, so that `fencepost --help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_group

from fencepost.cli import client_commands as client
from fencepost.cli import file_commands
from fencepost.cli import server_commands as serving
from fencepost.cli.file_commands import AsJson
from fencepost.cli.spark_commands import app as spark
from fencepost.errors import FencepostError


class _Commands(TyperGroup):
    """Commands whose `FencepostError` becomes one red line and exit code 1, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is still noticed
            return result
        except BrokenPipeError as error:
            _drop_output()
            raise typer.Exit(141) from error
        except (FencepostError, OSError) as error:
            line = Text(f"error: {error}", style="bold red")
            Console(stderr=True).print(line, soft_wrap=True)
            raise typer.Exit(1) from error


_CHECKOUT = Path(__file__).resolve().parents[3]


class _Benchmarks(TyperGroup):
    """The commands of `bench/commands.py`, which comes with a source checkout only."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _benchmarks(_CHECKOUT).list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _benchmarks(_CHECKOUT).get_command(ctx, cmd_name)


@cache
def _benchmarks(checkout: Path) -> TyperGroup:
    """The commands that the folder `bench` of a checkout has."""
    if not (checkout / "bench").is_dir() or not (checkout / "pyproject.toml").is_file():
        raise FencepostError(
            f"benchmarks come with a source checkout, and there is none around {checkout}; "
            "get the source of Fencepost and run `make bench` there"
        )
    # On the path, not loaded by hand, so that processes a benchmark starts find it as well.
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return get_group(import_module("bench.commands").app)


def _drop_output() -> None:
    """Send what is still to be written to nowhere, so that Python can end without complaint."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_MATCHING, _SERVING = "Matching", "Serving"
_MACHINE = "Trying, preparing, timing"
for command in (
    file_commands.index,
    file_commands.match,
    file_commands.explain,
    file_commands.stats,
):
    app.command(rich_help_panel=_MATCHING)(command)
app.add_typer(spark, name="spark", rich_help_panel=_MATCHING)
app.command(rich_help_panel=_SERVING)(serving.serve)
app.add_typer(serving.keys, name="keys", rich_help_panel=_SERVING)
app.command(rich_help_panel=_SERVING)(client.publish)
app.command(rich_help_panel=_SERVING)(client.subscribe)
app.command(rich_help_panel=_SERVING)(client.tail)
app.command("export", rich_help_panel=_SERVING)(client.export_backup)
app.command("import", rich_help_panel=_SERVING)(client.import_backup)
app.add_typer(
    typer.Typer(cls=_Benchmarks, no_args_is_help=True, rich_markup_mode="rich"),
    name="bench",
    help="Time parts of Fencepost on made-up data (needs a source checkout).",
    rich_help_panel=_MACHINE,
)

Seed = Annotated[int, typer.Option(help="Seed of the random data: the same seed, the same data.")]


def main() -> None:
    """Run the command line; the entry point of the `fencepost` script."""
    app(prog_name="fencepost")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fencepost {version('fencepost')}")
        raise typer.Exit


@app.callback()
def fencepost(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Match a stream of events against standing questions about places.

    Subscriptions are questions in CQL2, the OGC's filter language. They are
    compiled once, and then every event finds those that it answers.

    [bold]Examples[/bold]
      fencepost index subscriptions.csv --out my.index
      fencepost match events.ndjson --index my.index --out matches.csv
      fencepost match events.ndjson --index my.index --top-k 10
      fencepost explain events.ndjson storm-7 --row 0 --index my.index
      fencepost stats my.index

      fencepost serve --open      serve this machine, with a map to watch
      fencepost keys add --scope admin
                                  make a key, for a server that others reach
      fencepost subscribe taxis "kind = 'taxi'" --subscriber me
      fencepost tail me           show messages as they come
      fencepost publish events.ndjson
      fencepost export a.backup   back a server up; `fencepost import` restores

      fencepost demo              run the demonstration, written to demo-out/
      fencepost warmup            compile once, so that first calls are fast
      fencepost bench relate      time the relation of two geometries
      fencepost bench regions     repeat the experiments of the paper on regions
      fencepost bench spatiotextual
                                  the same for words and rectangles
      fencepost bench events      the same for events in space
      fencepost bench peers       beside Shapely, KD-trees and PostGIS
      fencepost bench spark       on Spark, beside one core and an STRtree
      fencepost bench server      events a second and delays of a server

    [bold]Exit codes[/bold]
      0 done, 1 refused (one line says why), 2 wrong usage, 3 done but some
      rows were set aside, 4 explained and it does not match, 130 interrupted
    """


@app.command(rich_help_panel=_MACHINE)
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder to write to; made if missing.", file_okay=False)
    ] = Path("demo-out"),
    seed: Seed = 0,
) -> None:
    """Run the demonstration and write what it shows to a folder.

    The same seed writes the same files.

    [bold]Examples[/bold]
      fencepost demo
      fencepost demo --out /tmp/demo --seed 7
    """
    from fencepost import demo as demonstration

    demonstration.run(out, seed)


@app.command(rich_help_panel=_MACHINE)
def warmup(as_json: AsJson = False) -> None:
    """Compile every kernel now and keep the machine code for later runs.

    Without it, each kernel compiles when it is first called. A second
    warm-up takes a moment, since it finds the machine code. It is kept below
    the user's cache folder, or below FENCEPOST_CACHE_DIR where that is set.

    [bold]Examples[/bold]
      fencepost warmup
      FENCEPOST_CACHE_DIR=/var/cache/fencepost fencepost warmup --json
    """
    started = time.perf_counter()
    from fencepost import warmup as operations
    from fencepost.kernels.runtime.compilation import cache_folder, fewer_collections

    background = operations.start_in_background()
    todo = operations.steps()
    if background is not None:  # later steps load its machine code; if it failed, they fail, too
        todo.append(("steps of the background process", background.join))
    todo += operations.background_steps()
    with fewer_collections():
        _run_steps("Compiling", todo)
    seconds = time.perf_counter() - started
    if as_json:
        result = {"kernels": len(todo), "seconds": round(seconds, 3), "cache": str(cache_folder())}
        typer.echo(json.dumps(result))
    else:
        typer.echo(f"{len(todo)} kernels ready in {seconds:.1f} s; kept in {cache_folder()}")


def _run_steps(doing: str, todo: Sequence[tuple[str, Callable[[], None]]]) -> None:
    """Run named steps with a progress bar, or with a line each where nobody is watching."""
    console = Console(stderr=True)
    if not console.is_terminal:
        for number, (name, step) in enumerate(todo, start=1):
            typer.echo(f"{doing} {number}/{len(todo)}: {name}", err=True)
            step()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(doing, total=len(todo), step="")
        for name, step in todo:
            progress.update(task, step=name)
            step()
            progress.advance(task)
