"""`fencepost bench`: parses arguments; each command imports its benchmark when it runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fencepost.cli.file_commands import AsJson

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

FIGURES_HELP = typer.Option(help="What to measure; may be given several times. Default: all.")
Seed = Annotated[int, typer.Option(help="Seed of the random data.")]
Quick = Annotated[bool, typer.Option("--quick", help="Measure small sizes, in a minute.")]
Out = Annotated[
    Path, typer.Option(help="Folder of the results; created if missing.", file_okay=False)
]


class RegionsFigure(StrEnum):
    """A figure of `fencepost bench regions`."""

    FIGURE_4A = "4a"
    FIGURE_4B = "4b"
    FIGURE_5 = "5"
    TABLE_3 = "table3"
    GROWTH = "growth"
    LARGE = "large"


class SpatiotextualFigure(StrEnum):
    """A figure of `fencepost bench spatiotextual`."""

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
    """A figure of `fencepost bench events`."""

    TAXI = "taxi"
    SHOP = "shop"
    BUSES = "buses"
    MEMBERS = "members"


class PeersFigure(StrEnum):
    """A figure of `fencepost bench peers`."""

    FENCES = "fences"
    TAXI = "taxi"
    MIXED = "mixed"
    GROWTH = "growth"
    CHURN = "churn"


class SparkFigure(StrEnum):
    """A figure of `fencepost bench spark`."""

    MILLION = "million"
    SKEW = "skew"
    PARTITIONED = "partitioned"
    PEER = "peer"


class Workload(StrEnum):
    """A workload of `fencepost bench turns`."""

    FENCES = "fences"
    MANY_FENCES = "many-fences"
    TAXI = "taxi"
    WORDS = "words"
    TEXTS = "texts"
    RANKING = "ranking"
    RELATE = "relate"


class MapData(StrEnum):
    """The source of maps, venues and positions."""

    REAL = "real"
    SYNTHETIC = "synthetic"


@app.command("relate")
def relate(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of geometries to relate.")] = 20_000,
    seed: Seed = 0,
    verify: Annotated[
        int,
        typer.Option(min=0, help="Also compare this many pairs with the exact, slow reference."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Time the exact relation of two geometries, by kind of geometry.

    The data is generated from the seed. Compiling is not timed.

    [bold]Examples[/bold]
      fencepost bench relate
      fencepost bench relate --pairs 5000 --verify 500 --json
    """
    from bench.micro import relate

    result = relate.run(pairs=pairs, seed=seed, verify=verify)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        Console().print(relate.render(result))


@app.command("regions")
def regions(
    figure: Annotated[list[RegionsFigure] | None, FIGURES_HELP] = None,
    quick: Quick = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Maps of figure 5 and table 3; by default real, if available."),
    ] = None,
    out: Out = Path("bench/results/regions"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on regions, beside Shapely and our engine.

    Figures 4a, 4b and 5 and table 3 are those of Konstantinidis, Carzaniga and
    Wolf; `growth` and `large` are not in the paper. Each figure is written as
    JSON, Markdown and PNG. FENCEPOST_DATA names the folder of real maps.

    [bold]Examples[/bold]
      fencepost bench regions --quick --out /tmp/regions
      fencepost bench regions --figure table3 --figure large --json
    """
    options = {"quick": quick, "seed": seed, "source": _source(data)}
    _run_figures("papers.regions", figure or RegionsFigure, out, as_json, **options)


@app.command("start")
def start(
    wheel: Annotated[Path, typer.Option(help="The wheel of Fencepost, from `make wheel`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the checkout.")] = False,
    out: Out = Path("bench/results/start"),
    as_json: AsJson = False,
) -> None:
    """Time the first answer of a new process, beside SedonaDB and DuckDB.

    Makes two fresh environments with pip: one with the wheel, one with the
    peers. The checkout is measured as well: it compiles its kernels.

    [bold]Examples[/bold]
      fencepost bench start --wheel dist/fencepost-*.whl
      fencepost bench start --wheel dist/fencepost-*.whl --quick --json
    """
    from bench import report
    from bench.start import run as start_run

    result = start_run.run(wheel, quick)
    report.write(result, out)
    if as_json:
        typer.echo(json.dumps(report.plain(result), indent=2))
    else:
        console = Console()
        console.print(report.render(result, console))
        typer.echo(f"Written to {out}", err=True)


@app.command("turns")
def turns(
    base: Annotated[str, typer.Option(help="Revision to compare with: a commit or a tag.")],
    workload: Annotated[list[Workload] | None, FIGURES_HELP] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each side.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Compare this checkout with an earlier revision, by turns.

    Both run the same workloads, in separate processes. Their results are
    compared, and the best round of each counts. A revision whose kernels are
    not compiled yet compiles them first, which takes minutes and is not timed.

    [bold]Examples[/bold]
      fencepost bench turns --base HEAD~5
      fencepost bench turns --base main --workload fences --rounds 5
    """
    from bench.turns import run as turns_run

    names = [chosen.value for chosen in workload or Workload]
    rows = turns_run.run(base, names, rounds)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        Console().print(turns_run.render(rows, base))


@app.command("spatiotextual")
def spatiotextual(
    figure: Annotated[list[SpatiotextualFigure] | None, FIGURES_HELP] = None,
    scale: Annotated[
        int | None,
        typer.Option(
            min=1_000,
            max=10_000_000,
            help="Subscriptions; by default 100,000, and a million in `million`.",
        ),
    ] = None,
    quick: Quick = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Venues of table 1 and figure 9; by default real, if available."),
    ] = None,
    out: Out = Path("bench/results/spatiotextual"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on words and rectangles, beside our engine.

    Table 1 and figures 6 to 10 are those of Li, Wang, Wang and Feng; `contest`,
    `million`, `spread` and `text` are not in the paper. Each figure is written as
    JSON, Markdown and PNG. FENCEPOST_DATA names the folder of real venues.

    [bold]Examples[/bold]
      fencepost bench spatiotextual --quick --out /tmp/spatiotextual
      fencepost bench spatiotextual --figure contest --scale 10000000 --json
    """
    options = {"quick": quick, "seed": seed, "scale": scale, "source": _source(data)}
    _run_figures("papers.spatiotextual", figure or SpatiotextualFigure, out, as_json, **options)


@app.command("events")
def events(
    figure: Annotated[list[EventsFigure] | None, FIGURES_HELP] = None,
    scale: Annotated[
        int | None,
        typer.Option(min=100, max=1_000_000, help="Subscriptions; by default 10,000."),
    ] = None,
    quick: Quick = False,
    data: Annotated[
        MapData | None,
        typer.Option(help="Positions of buses; by default real, if available."),
    ] = None,
    out: Out = Path("bench/results/events"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of the paper on events in space, beside our engine.

    `taxi` (empty taxis near users, figure 5) and `shop` (customers near shops,
    figure 6) are those of Hu, Jin, Chen, Zhang and Zhuo: time and memory of the
    standard version, the optimised version and our engine, at ten sizes up to the
    scale. Two figures are not in the paper: `buses` counts the events that buses
    among a thousand fences need not send, and `members` times an event while up to
    a million other events wait for partners. Each figure is written as JSON,
    Markdown and PNG. FENCEPOST_DATA names the folder of real positions.

    [bold]Examples[/bold]
      fencepost bench events --quick --out /tmp/events
      fencepost bench events --figure taxi --scale 10000 --json
    """
    options = {"quick": quick, "seed": seed, "scale": scale, "source": _source(data)}
    _run_figures("papers.events", figure or EventsFigure, out, as_json, **options)


@app.command("peers")
def peers(
    figure: Annotated[list[PeersFigure] | None, FIGURES_HELP] = None,
    quick: Quick = False,
    out: Out = Path("bench/results/peers"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Match beside Shapely, geoindex-rs, SciPy's KD-trees and PostGIS.

    Points in polygons (`fences`), positions near subscribers (`taxi`), regions
    with attributes and keywords (`mixed`), time from one to ten million
    subscriptions (`growth`), and single matches while subscriptions change
    (`churn`). Each is written as JSON, Markdown and PNG.
    A peer that is not installed is left out, and the report says what to install.

    [bold]Examples[/bold]
      fencepost bench peers --quick --out /tmp/peers
      fencepost bench peers --figure fences --figure taxi --json
    """
    _run_figures("peers", figure or PeersFigure, out, as_json, quick=quick, seed=seed)


@app.command("spark")
def spark(
    figure: Annotated[list[SparkFigure] | None, FIGURES_HELP] = None,
    scale: Annotated[
        int,
        typer.Option(
            min=1_000,
            max=10_000_000,
            help="Events; and subscriptions, ten times as many in `partitioned`.",
        ),
    ] = 1_000_000,
    out: Out = Path("bench/results/spark"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Match on Spark, beside the embedded engine and a broadcast STRtree.

    Parquet to Parquet on this machine: one core and two beside the embedded
    engine (`million`), a skewed city beside a uniform one (`skew`), the memory
    of each worker if an index is matched by parts (`partitioned`), and a
    typical solution with Shapely (`peer`). Each is written as JSON, Markdown
    and PNG.

    [bold]Examples[/bold]
      fencepost bench spark --scale 10000 --out /tmp/spark
      fencepost bench spark --figure partitioned --json
    """
    _run_figures("spark", figure or SparkFigure, out, as_json, scale=scale, seed=seed)


@app.command("server")
def server(
    scale: Annotated[int, typer.Option(min=100, max=10_000_000, help="Subscriptions.")] = 100_000,
    quick: Quick = False,
    out: Out = Path("bench/results/server"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Load a server: events a second, and the time from publishing to delivery.

    A hundred subscribers are connected through WebSockets on this machine.
    Events are published in batches, at several rates and as fast as the server
    acknowledges them. Written as JSON, Markdown and PNG.

    [bold]Examples[/bold]
      fencepost bench server --quick --scale 1000 --out /tmp/server
      fencepost bench server --json
    """
    _run_figures("server", ["load"], out, as_json, scale=scale, quick=quick, seed=seed)


def _run_figures(
    package: str, figures: Iterable[str], out: Path, as_json: bool, **options: Any
) -> None:
    """Measure figures of a package of benchmarks, write their reports and print them."""
    from bench import report
    from bench.progress import Progress

    benchmark = import_module(f"bench.{package}.run")
    group = package.rpartition(".")[2].capitalize()
    results = []
    for name in map(str, figures):
        with Progress(f"{group}, {name}") as bar:
            result = benchmark.run(name, progress=bar, **options)
        report.write(result, out)
        results.append(report.plain(result))
        if not as_json:
            console = Console()
            console.print(report.render(result, console))
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        typer.echo(f"Written to {out}", err=True)


def _source(data: MapData | None) -> str | None:
    return None if data is None else data.value
