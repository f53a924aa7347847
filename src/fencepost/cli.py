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
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from typer.core import TyperGroup

from fencepost.client import commands as client
from fencepost.errors import FencepostError
from fencepost.files import commands
from fencepost.files.commands import AsJson
from fencepost.files.spark_commands import app as spark
from fencepost.server import commands as serving


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
bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Time parts of Fencepost on made-up data (needs a source checkout).",
)
_MATCHING, _SERVING = "Matching", "Serving"
_MACHINE = "Trying, preparing, timing"
for command in (commands.index, commands.match, commands.explain, commands.stats):
    app.command(rich_help_panel=_MATCHING)(command)
app.add_typer(spark, name="spark", rich_help_panel=_MATCHING)
app.command(rich_help_panel=_SERVING)(serving.serve)
app.add_typer(serving.keys, name="keys", rich_help_panel=_SERVING)
app.command(rich_help_panel=_SERVING)(client.publish)
app.command(rich_help_panel=_SERVING)(client.subscribe)
app.command(rich_help_panel=_SERVING)(client.tail)
app.command("export", rich_help_panel=_SERVING)(client.export_backup)
app.command("import", rich_help_panel=_SERVING)(client.import_backup)
app.add_typer(bench, name="bench", rich_help_panel=_MACHINE)

Seed = Annotated[int, typer.Option(help="Seed of the random data: the same seed, the same data.")]


class RegionsFigure(StrEnum):
    """What `fencepost bench regions` measures."""

    FIGURE_4A = "4a"
    FIGURE_4B = "4b"
    FIGURE_5 = "5"
    TABLE_3 = "table3"
    GROWTH = "growth"
    LARGE = "large"


class SpatiotextualFigure(StrEnum):
    """What `fencepost bench spatiotextual` measures."""

    TABLE_1 = "table1"
    FIGURE_6 = "6"
    FIGURE_7 = "7"
    FIGURE_8 = "8"
    FIGURE_9 = "9"
    FIGURE_10 = "10"
    CONTEST = "contest"
    MILLION = "million"
    SPREAD = "spread"
    TEXT = "text"


class EventsFigure(StrEnum):
    """What `fencepost bench events` measures."""

    TAXI = "taxi"
    SHOP = "shop"
    BUSES = "buses"
    MEMBERS = "members"


class PeersFigure(StrEnum):
    """What `fencepost bench peers` measures."""

    FENCES = "fences"
    TAXI = "taxi"
    MIXED = "mixed"
    GROWTH = "growth"
    CHURN = "churn"


class SparkFigure(StrEnum):
    """What `fencepost bench spark` measures."""

    MILLION = "million"
    SKEW = "skew"
    PARTITIONED = "partitioned"
    PEER = "peer"


class MapData(StrEnum):
    """Where regions of maps and venues come from."""

    REAL = "real"
    SYNTHETIC = "synthetic"


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
    from fencepost.kernels import warmup as kernels
    from fencepost.kernels.compiling import cache_folder, fewer_collections
    from fencepost.papers import warmup as papers

    beside = papers.begin()
    todo = [*kernels.steps(), *papers.steps()]
    if beside is not None:  # what is compiled there is found by the steps after this, or they fail
        todo.insert(len(kernels.steps()), ("the rest, begun beside", beside.join))
    with fewer_collections():
        _run_steps("Compiling", todo)
    seconds = time.perf_counter() - started
    if as_json:
        result = {"kernels": len(todo), "seconds": round(seconds, 3), "cache": str(cache_folder())}
        typer.echo(json.dumps(result))
    else:
        typer.echo(f"{len(todo)} kernels ready in {seconds:.1f} s; kept in {cache_folder()}")


@bench.command("relate")
def bench_relate(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of geometries to relate.")] = 20_000,
    seed: Seed = 0,
    verify: Annotated[
        int,
        typer.Option(min=0, help="Also compare this many pairs with the exact, slow reference."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Time the exact relation of two geometries, by kind of geometry.

    The data is made up from the seed. Compiling is not part of the times.

    [bold]Examples[/bold]
      fencepost bench relate
      fencepost bench relate --pairs 5000 --verify 500 --json
    """
    from fencepost import benchmarks

    benchmark = benchmarks.load("micro.relate")
    result = benchmark.run(pairs=pairs, seed=seed, verify=verify)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        Console().print(benchmark.render(result))


@bench.command("regions")
def bench_regions(
    figure: Annotated[
        list[RegionsFigure] | None,
        typer.Option(help="What to measure; may be given several times. All if left out."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, in a minute.")] = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Maps to use in figure 5 and table 3; real if there are any."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/regions"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on regions, beside Shapely and ours.

    Figures 4a, 4b and 5 and table 3 of Konstantinidis, Carzaniga and Wolf;
    `growth` and `large` are our own. Each is written as JSON, Markdown, PNG
    and SVG. Real maps are looked for in the folder that FENCEPOST_DATA names.

    [bold]Examples[/bold]
      fencepost bench regions --quick --out /tmp/regions
      fencepost bench regions --figure table3 --figure large --json
    """
    names = [one.value for one in figure or RegionsFigure]
    asked = {"quick": quick, "seed": seed, "source": _source(data)}
    _bench_figures("papers.regions", names, out, as_json, **asked)


@bench.command("spatiotextual")
def bench_spatiotextual(
    figure: Annotated[
        list[SpatiotextualFigure] | None,
        typer.Option(help="What to measure; may be given several times. All if left out."),
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option(
            min=1_000,
            max=10_000_000,
            help="Subscriptions; 100,000 if left out, a million in `million`.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, in a minute.")] = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Venues to use in table 1 and figure 9; real if there are any."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/spatiotextual"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on words and rectangles, beside ours.

    Table 1 and figures 6 to 10 of Li, Wang, Wang and Feng; `contest`,
    `million`, `spread` and `text` are our own. Each is written as JSON, Markdown, PNG
    and SVG. Real venues are looked for in the folder that FENCEPOST_DATA names.

    [bold]Examples[/bold]
      fencepost bench spatiotextual --quick --out /tmp/spatiotextual
      fencepost bench spatiotextual --figure contest --scale 10000000 --json
    """
    names = [one.value for one in figure or SpatiotextualFigure]
    asked = {"quick": quick, "seed": seed, "scale": scale, "source": _source(data)}
    _bench_figures("papers.spatiotextual", names, out, as_json, **asked)


@bench.command("events")
def bench_events(
    figure: Annotated[
        list[EventsFigure] | None,
        typer.Option(help="What to measure; may be given several times. All if left out."),
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option(min=100, max=1_000_000, help="Subscriptions; 10,000 if left out."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, in a minute.")] = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Positions of buses to use; real if there are any."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/events"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on events in space, beside ours.

    Empty taxis near users (`taxi`, figure 5) and customers near shops (`shop`,
    figure 6) of Hu, Jin, Chen, Zhang and Zhuo: time and memory of their standard
    and their optimised version and of ours, at ten sizes up to the scale.
    `buses`, our own, is what buses among a thousand fences need not send, and
    `members` what an event costs while a million others wait for partners. Each
    is written as JSON, Markdown, PNG and SVG. Real positions are looked for in
    the folder that FENCEPOST_DATA names.

    [bold]Examples[/bold]
      fencepost bench events --quick --out /tmp/events
      fencepost bench events --figure taxi --scale 10000 --json
    """
    names = [one.value for one in figure or EventsFigure]
    asked = {"quick": quick, "seed": seed, "scale": scale, "source": _source(data)}
    _bench_figures("papers.events", names, out, as_json, **asked)


@bench.command("peers")
def bench_peers(
    figure: Annotated[
        list[PeersFigure] | None,
        typer.Option(help="What to measure; may be given several times. All if left out."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, in a minute.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/peers"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Match beside Shapely, geoindex-rs, SciPy's KD-trees and PostGIS.

    Points in polygons (`fences`), positions near subscribers (`taxi`), regions
    with attributes and keywords (`mixed`), time from one to ten million
    subscriptions (`growth`), and single matches while subscriptions change
    (`churn`). Each is written as JSON, Markdown, PNG and SVG.
    A peer that is not installed is left out, and the report says what to install.

    [bold]Examples[/bold]
      fencepost bench peers --quick --out /tmp/peers
      fencepost bench peers --figure fences --figure taxi --json
    """
    names = [one.value for one in figure or PeersFigure]
    _bench_figures("peers", names, out, as_json, quick=quick, seed=seed)


@bench.command("spark")
def bench_spark(
    figure: Annotated[
        list[SparkFigure] | None,
        typer.Option(help="What to measure; may be given several times. All if left out."),
    ] = None,
    scale: Annotated[
        int,
        typer.Option(
            min=1_000,
            max=10_000_000,
            help="Events; as many subscriptions, and ten times as many in `partitioned`.",
        ),
    ] = 1_000_000,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/spark"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Match on Spark, beside the embedded engine and a broadcast STRtree.

    Parquet to Parquet on this machine: one core and two beside the embedded
    engine (`million`), a skewed city beside a uniform one (`skew`), the memory
    of each worker where an index is matched by parts (`partitioned`), and what
    one would write with Shapely (`peer`). Each is written as JSON, Markdown, PNG
    and SVG.

    [bold]Examples[/bold]
      fencepost bench spark --scale 10000 --out /tmp/spark
      fencepost bench spark --figure partitioned --json
    """
    names = [one.value for one in figure or SparkFigure]
    _bench_figures("spark", names, out, as_json, scale=scale, seed=seed)


def _source(data: MapData | None) -> str | None:
    return None if data is None else data.value


@bench.command("server")
def bench_server(
    scale: Annotated[int, typer.Option(min=100, max=10_000_000, help="Subscriptions.")] = 100_000,
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, in a minute.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", file_okay=False)
    ] = Path("bench/results/server"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Load a server: events a second, and the time from publishing to delivery.

    A hundred subscribers are connected through WebSockets on this machine;
    events are published in batches, at several rates and as fast as they are
    answered. Written as JSON, Markdown, PNG and SVG.

    [bold]Examples[/bold]
      fencepost bench server --quick --scale 1000 --out /tmp/server
      fencepost bench server --json
    """
    _bench_figures("server", ["load"], out, as_json, scale=scale, quick=quick, seed=seed)


def _bench_figures(folder: str, figures: list[str], out: Path, as_json: bool, **asked: Any) -> None:
    """Measure figures of a folder of benchmarks, write and show them."""
    from fencepost import benchmarks

    benchmark = benchmarks.load(f"{folder}.run")
    report, progress = benchmarks.load("report"), benchmarks.load("progress")
    group = folder.rpartition(".")[2].capitalize()
    found = []
    for name in figures:
        with progress.Progress(f"{group}, {name}") as bar:
            result = benchmark.run(name, progress=bar, **asked)
        report.write(result, out)
        found.append(report.plain(result))
        if not as_json:
            console = Console()
            console.print(report.render(result, console))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        typer.echo(f"Written to {out}", err=True)


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


if __name__ == "__main__":
    main()
