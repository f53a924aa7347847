"""The commands `spark match` and `spark submit`: files matched on Spark, here or on a cluster."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fencepost.cli.terminal import format_bytes, print_json, print_line
from fencepost.errors import FencepostError
from fencepost.extras import requires_extra
from fencepost.geometry.space import DEFAULT_SPACE, Space
from fencepost.spark.spark_session import submitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fencepost.spark.indexes.index_build import Mode
    from fencepost.spark.matches.match_frames import How as HowToMatch

EXIT_SET_ASIDE = 3

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Match files of any size on Spark, here or on a cluster.",
)


class MatchMode(StrEnum):
    """How tasks use the index."""

    AUTO = "auto"
    WHOLE = "whole"
    PARTITIONED = "partitioned"


SubscriptionTable = Annotated[
    str | None,
    typer.Option(
        help="Table of subscriptions to index: Parquet, CSV, JSON lines or GeoJSON with id, "
        "expression, subscriber, expires."
    ),
]
IndexFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the index; built there from --subscriptions, or else existing already."
    ),
]
KeptColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of the events, or property of Features, to keep in the matches; repeat the "
        "option for several. All columns if left out."
    ),
]
How = Annotated[
    MatchMode,
    typer.Option(
        help="whole: each task maps the whole index; partitioned: events are sent to the parts of "
        "the index; auto: by the size of the index."
    ),
]


@app.command()
@requires_extra("fencepost spark match", "spark")
def match(
    events: Annotated[
        str, typer.Option(help="Table of events: Parquet, GeoJSON, JSON lines or CSV.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write the matches to, as Parquet.")
    ],
    subscriptions: SubscriptionTable = None,
    index: IndexFolder = None,
    column: KeptColumns = None,
    how: How = MatchMode.AUTO,
    parts: Annotated[
        int | None, typer.Option(min=1, help="Number of parts of a new index.")
    ] = None,
    space: Annotated[Space, typer.Option(help="Coordinate space of a new index.")] = DEFAULT_SPACE,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace existing matches and an existing index.")
    ] = False,
    cores: Annotated[
        int,
        typer.Option(
            min=1, help="Cores of this machine to use; ignored with `submit`, where Spark decides."
        ),
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Match a table of events with a table of subscriptions, on Spark.

    A column of events that subscriptions use as a geometry holds WKB, WKT or
    GeoJSON. GeoJSON Features mean the same as with `fencepost match`.
    Rows that cannot be used are set aside in a folder `dead-letters`: that of
    the index for subscriptions, that of the matches for events.

    [bold]Examples[/bold]
      fencepost spark match --subscriptions s.parquet --events e.parquet --out matches/
      fencepost spark match --index city.index --events e.parquet --out matches/ --column id

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside
    """
    if subscriptions is None and (index is None or not index.exists()):
        raise typer.BadParameter("give --subscriptions, or an --index that exists")
    if out.exists() and not replace:
        raise FencepostError(f"{out} exists already; give --replace to replace it")
    from fencepost import spark as fps

    if index is None and submitted():
        raise FencepostError("give --index, a folder that all nodes of the cluster share")
    with ExitStack() as stack:
        console = Console(stderr=True)
        status = stack.enter_context(console.status("Starting Spark"))
        spark = _session(stack, cores)
        index_path = index or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "index"
        summary: dict[str, Any] = {}
        if subscriptions is not None:
            status.update("Building the index")
            mode: Mode = "replace" if replace and index_path.exists() else "create"
            built = fps.build_index(
                spark,
                fps.read_events(spark, subscriptions),
                index_path,
                mode=mode,
                space=space,
                parts=parts,
            )
            summary["index"] = {name: getattr(built, name) for name in built.__slots__}
        plan = fps.plan(index_path, how.value)
        status.update(f"Matching ({plan.how})")
        summary["match"] = _match_and_write(
            spark,
            fps.read_events(spark, events),
            index_path,
            out,
            column,
            how.value,
        )
        summary["match"]["how"] = str(plan)
    set_aside = summary["match"]["dead_letters"] + summary.get("index", {}).get("dead_letters", 0)
    if as_json:
        print_json(**summary)
    else:
        _print_summary(summary, out)
    raise typer.Exit(EXIT_SET_ASIDE if set_aside else 0)


@app.command(context_settings={"allow_interspersed_args": False})
def submit(
    job: Annotated[
        list[str],
        typer.Argument(
            help="Program in a .py file, or command of `fencepost spark`, with its arguments."
        ),
    ],
    master: Annotated[
        str, typer.Option(help="Master of the cluster, such as spark://head:7077 or yarn.")
    ],
    archive: Annotated[
        Path | None,
        typer.Option(
            help="Archive of packages and kernels for the nodes (docs/cluster.md says how to make "
            "it); left out, the nodes must have them installed."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(help="Setting of Spark, as KEY=VALUE; repeat the option for several."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the spark-submit command without running it.")
    ] = False,
) -> None:
    """Run a program, or a command of `fencepost spark`, on a cluster by spark-submit.

    The driver runs on this machine, with this Python. Files, indexes and matches
    must be in folders that all nodes share.

    [bold]Examples[/bold]
      fencepost spark submit --master spark://head:7077 --archive env.tar.gz job.py
      fencepost spark submit --master spark://head:7077 --conf spark.executor.memory=2g \\
        match --index /shared/index --events /shared/e.parquet --out /shared/matches
    """
    command = submission(job, master, archive, conf or [])
    if show:
        typer.echo(shlex.join(command))
        return
    raise typer.Exit(subprocess.run(command, check=False).returncode)


def _session(stack: ExitStack, cores: int) -> SparkSession:
    """Return a Spark session; the stack stops it, unless it existed before."""
    from pyspark import SparkContext

    from fencepost import spark as fps

    had_context = SparkContext._active_spark_context is not None
    spark = fps.session(cores, "fencepost match")
    if not had_context:
        stack.callback(spark.stop)
    return spark


def _match_and_write(
    spark: SparkSession, events: DataFrame, index: Path, out: Path, columns: Any, how: HowToMatch
) -> dict[str, Any]:
    """Match events, write matches and dead letters, and return their counts."""
    from pyspark.sql import functions as F

    from fencepost import spark as fps
    from fencepost.spark.sources.event_frames import escape_globs

    matches_and_letters = fps.match(events, index, columns or None, how=how, dead_letters=True)
    staged = out.parent / f".{out.name}-staged"
    matches_and_letters.write.mode("overwrite").parquet(str(staged))
    try:
        rows = spark.read.parquet(escape_globs(str(staged)))
        bad = rows.where(F.col("reason").isNotNull())
        good = rows.where(F.col("reason").isNull()).drop("reason")
        good.write.mode("overwrite").parquet(str(out))
        counts = {"matches": good.count(), "dead_letters": bad.count()}
        if counts["dead_letters"]:
            letters = bad.drop("subscription", "subscriber")
            letters.write.parquet(str(out / "dead-letters"))
        return counts
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    built = summary.get("index")
    if built:
        print_line(
            f"{built['subscriptions']:,} subscriptions in {built['parts']:,} parts, "
            f"{format_bytes(built['bytes'])}"
        )
        if built["dead_letters"]:
            print_line(
                f"{built['dead_letters']:,} subscriptions could not be used; they are in "
                f"{built['dead_letters_path']}"
            )
    print_line(f"{summary['match']['matches']:,} matches in {out} ({summary['match']['how']})")
    if summary["match"]["dead_letters"]:
        print_line(
            f"{summary['match']['dead_letters']:,} events could not be read; they are in "
            f"{out / 'dead-letters'}"
        )


_ARCHIVE_NAME = "fencepost"  # nodes unpack the archive into this folder of the working folder
# In an archive, packages are at the top and kernels in a folder, see docs/cluster.md.
_ARCHIVE_SETTINGS = {
    "spark.executorEnv.PYTHONPATH": _ARCHIVE_NAME,
    "spark.executorEnv.FENCEPOST_CACHE_DIR": f"{_ARCHIVE_NAME}/kernels",
}


def submission(
    job: Sequence[str], master: str, archive: Path | None, settings: Sequence[str]
) -> list[str]:
    """Return the spark-submit command of a program or of a command of `fencepost spark`."""
    options = {"spark.pyspark.driver.python": sys.executable}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator:
            raise FencepostError(f"{setting!r} is no setting of Spark; give --conf KEY=VALUE")
        options[key] = value
    command = [_spark_submit(), "--master", master]
    if archive is not None:
        if not archive.is_file():
            raise FencepostError(
                f"there is no archive {archive}; docs/cluster.md says how to make one"
            )
        command += ["--archives", f"{archive.absolute()}#{_ARCHIVE_NAME}"]
        options = {**_ARCHIVE_SETTINGS, **options}
    for key, value in options.items():
        command += ["--conf", f"{key}={value}"]
    program, *arguments = job
    if program.endswith(".py"):
        return [*command, program, *arguments]
    return [*command, str(Path(__file__).with_name("__main__.py")), "spark", program, *arguments]


def _spark_submit() -> str:
    """Return the path of spark-submit in SPARK_HOME or, without it, in PySpark."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        with requires_extra("fencepost spark submit", "spark"):
            import pyspark
        home = str(Path(pyspark.__file__).parent)
    return str(Path(home) / "bin" / "spark-submit")
