"""The application `fencepost`: its commands, its help and its exit codes.

Exit codes: 0 done; 1 refused, with the reason in one line on standard error; 2 wrong usage; 3 done,
but rows were set aside and not kept in a file; 4 (of `explain`) the event does not match; 130
interrupted with Ctrl-C; 141 the reader of the output closed the pipe. Results go to standard
output, progress and errors to standard error. Modules that need the compiler, PyArrow or Shapely
are imported by the commands that use them, so that `fencepost --help` is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_group

from fencepost import __version__
from fencepost.cli import client_commands as client
from fencepost.cli import file_commands
from fencepost.cli import server_commands as serving
from fencepost.cli.spark_commands import app as spark
from fencepost.cli.terminal import print_warning
from fencepost.cli.warmup_command import warmup
from fencepost.errors import FencepostError, FencepostWarning
from fencepost.extras import requires_extra


class _Commands(TyperGroup):
    """Commands that end with one line and an exit code if they are refused or interrupted."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe still sets the exit code
            return result
        except BrokenPipeError as error:
            _drop_output()
            raise typer.Exit(141) from error
        except KeyboardInterrupt as error:
            typer.echo(f"interrupted {error}".rstrip(), err=True)
            raise typer.Exit(130) from error
        except (FencepostError, OSError) as error:
            line = Text(f"error: {error}", style="bold red")
            Console(stderr=True).print(line, soft_wrap=True)
            raise typer.Exit(1) from error


_CHECKOUT = Path(__file__).resolve().parents[3]


class _Benchmarks(TyperGroup):
    """The commands of `bench/commands.py`, which only source checkouts have."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _benchmarks(_CHECKOUT).list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _benchmarks(_CHECKOUT).get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        _benchmarks(_CHECKOUT)  # without a checkout, no extra helps
        with requires_extra("fencepost bench", "bench"):
            return super().invoke(ctx)


@cache
def _benchmarks(checkout: Path) -> TyperGroup:
    """Load the benchmark commands of a checkout."""
    if not (checkout / "bench").is_dir() or not (checkout / "pyproject.toml").is_file():
        raise FencepostError(
            f"benchmarks come with a source checkout, and there is none around {checkout}; "
            "get the source of Fencepost and run `make bench` there"
        )
    # On the path, so that the processes that a benchmark starts find it as well.
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return get_group(import_module("bench.commands").app)


def _drop_output() -> None:
    """Redirect standard output to the null device, so that the last flush does not fail."""
    with suppress(OSError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_MATCHING, _SERVING = "Matching", "Serving"
_TOOLS = "Tools"
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
    help="Run benchmarks on generated data (needs a source checkout).",
    rich_help_panel=_TOOLS,
)

Seed = Annotated[
    int, typer.Option(help="Seed of the random data; the same seed makes the same data.")
]


def main() -> None:
    """Run the command line; the entry point of the `fencepost` script."""
    show_other = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, FencepostWarning):
            print_warning(f"warning: {message}")
        else:
            show_other(message, category, *place, **more)

    warnings.showwarning = show
    app(prog_name="fencepost")


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"fencepost {__version__}")
        raise typer.Exit


@app.callback()
def fencepost(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Location-aware publish/subscribe: match events with subscriptions.

    A subscription is a condition on places, words, numbers and times, in
    CQL2, the filter language of the OGC. Subscriptions are compiled once into
    an index, in which each event finds the subscriptions that it matches.

    [bold]Examples[/bold]
      fencepost index subscriptions.csv --out my.index
      fencepost match events.ndjson --index my.index --out matches.csv
      fencepost match events.ndjson --index my.index --top-k 10
      fencepost explain events.ndjson storm-7 --row 0 --index my.index
      fencepost stats my.index

      fencepost serve --open      run a server for this machine, without keys
      fencepost keys add --scope admin
                                  make an API key, for a server on a network
      fencepost subscribe taxis "kind = 'taxi'" --subscriber me
      fencepost tail me           show messages as they arrive
      fencepost publish events.ndjson
      fencepost export a.backup   back a server up; `fencepost import` restores

      fencepost demo              run the demonstration, written to demo-out/
      fencepost warmup            compile now, so that first calls are fast
      fencepost bench relate      time the relation of two geometries
      fencepost bench regions     repeat the experiments of the paper on regions
      fencepost bench spatiotextual
                                  those of the paper on words and rectangles
      fencepost bench events      those of the paper on spatial events
      fencepost bench peers       compare with Shapely, KD-trees and PostGIS
      fencepost bench spark       compare Spark with one core and an STRtree
      fencepost bench server      time throughput and latency of a server

    [bold]Exit codes[/bold]
      0 done, 1 refused (one line says why), 2 wrong usage, 3 done but some
      rows were set aside, 4 (explain) the event does not match, 130
      interrupted, 141 the reader of the output closed the pipe
    """


@app.command(rich_help_panel=_TOOLS)
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder to write to; made if missing.", file_okay=False)
    ] = Path("demo-out"),
    seed: Seed = 0,
) -> None:
    """Run the demonstration: a generated city, matched on local Spark.

    Writes subscriptions, events, the index, the matches, a picture and a map
    to a folder. The same seed makes the same city and the same matches.

    [bold]Examples[/bold]
      fencepost demo
      fencepost demo --out city --seed 7
    """
    from fencepost import demo as demonstration

    demonstration.run(out, seed)


app.command(rich_help_panel=_TOOLS)(warmup)
