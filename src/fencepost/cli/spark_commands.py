"""The command `fencepost spark`: a user's files through the jobs of `fencepost.spark`.

`submission` is the command line of `spark-submit` for such a job.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fencepost.cli.terminal import bytes_text, print_json, print_line
from fencepost.errors import FencepostError
from fencepost.geometry.space import Space
from fencepost.spark.spark_session import submitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SET_ASIDE = 3

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Match files of any size on Spark, here or on a cluster.",
)


class How(StrEnum):
    """How events meet the index."""

    AUTO = "auto"
    WHOLE = "whole"
    PARTITIONED = "partitioned"


@app.command()
def match(
    events: Annotated[str, typer.Option(help="Parquet, CSV or JSON lines: a row is an event.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the matches, Parquet.")],
    subscriptions: Annotated[
        str | None,
        typer.Option(help="Parquet, CSV or JSON lines: id, expression, subscriber, expires."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Folder of the index: built from the subscriptions, or there already."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Column of the events to keep; may be given several times. All if none."),
    ] = None,
    how: Annotated[How, typer.Option(help="Map the whole index, or send events to parts.")] = (
        How.AUTO
    ),
    parts: Annotated[int | None, typer.Option(min=1, help="Parts of the index.")] = None,
    space: Annotated[Space, typer.Option(help="What coordinates mean.")] = Space.PLANAR,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite what is there.")] = False,
    cores: Annotated[
        int, typer.Option(min=1, help="Cores of this machine to use; with submit, those of Spark.")
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Match a table of events with a table of subscriptions, on Spark.

    A column of events that subscriptions use as a geometry holds WKB or WKT. Rows
    that cannot be used are set aside: of the subscriptions in `dead-letters` of
    the index, of the events in `dead-letters` of the matches.

    [bold]Examples[/bold]
      fencepost spark match --subscriptions s.parquet --events e.parquet --out matches/
      fencepost spark match --index city.index --events e.parquet --out matches/ --column id

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside
    """
    if subscriptions is None and (index is None or not index.exists()):
        raise typer.BadParameter("give --subscriptions, or an --index that is there")
    if out.exists() and not replace:
        raise FencepostError(f"{out} is there already; give --replace to overwrite it")
    from fencepost import spark as fps

    if index is None and submitted():
        raise FencepostError("give --index, a folder that all nodes of the cluster share")
    with ExitStack() as stack:
        console = Console(stderr=True)
        status = stack.enter_context(console.status("Starting Spark"))
        spark = _session(stack, cores)
        where = index or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "index"
        told: dict[str, Any] = {}
        if subscriptions is not None:
            status.update("Building the index")
            mode = "replace" if replace and where.exists() else "create"
            built = fps.build_index(
                spark,
                _read(spark, subscriptions),
                where,
                mode=mode,
                space=space.value,
                parts=parts,
            )
            told["index"] = {name: getattr(built, name) for name in built.__slots__}
        chosen = fps.plan(where, how.value)
        status.update(f"Matching ({chosen.how})")
        told["match"] = _write(spark, _read(spark, events), where, out, column, how.value)
        told["match"]["how"] = str(chosen)
    set_aside = told["match"]["dead_letters"] + told.get("index", {}).get("dead_letters", 0)
    if as_json:
        print_json(**told)
    else:
        _print(told, out)
    raise typer.Exit(SET_ASIDE if set_aside else 0)


@app.command(context_settings={"allow_interspersed_args": False})
def submit(
    job: Annotated[
        list[str],
        typer.Argument(
            help="A program in a file .py, or a command of `fencepost spark`; then its arguments."
        ),
    ],
    master: Annotated[str, typer.Option(help="The cluster, such as spark://head:7077 or yarn.")],
    archive: Annotated[
        Path | None,
        typer.Option(
            help="Packages and kernels for the nodes, as docs/cluster.md says; without one, they "
            "are installed there."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE, a setting of Spark; may be given several times."),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the command, run nothing.")] = False,
) -> None:
    """Run a program, or a command of this group, on a cluster, by spark-submit.

    The driver runs here, with this Python. Files, indexes and matches must be in
    places that all nodes share.

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
    """A session that ends with the stack, unless there was one before."""
    from pyspark import SparkContext

    from fencepost import spark as fps

    known = SparkContext._active_spark_context is not None
    spark = fps.session(cores, "fencepost match")
    if not known:
        stack.callback(spark.stop)
    return spark


def _read(spark: SparkSession, path: str) -> DataFrame:
    """A table in a file or folder, by the end of its name."""
    if "://" not in path:
        if not Path(path).exists():
            raise FencepostError(f"there is no file or folder {path}")
        path = _literally(path)
    if path.endswith((".csv", ".csv.gz")):
        return spark.read.csv(path, header=True, inferSchema=True)
    if path.endswith((".json", ".ndjson", ".jsonl", ".json.gz", ".ndjson.gz", ".jsonl.gz")):
        return spark.read.json(path)
    return spark.read.parquet(path)


def _literally(path: str) -> str:
    """A path that Spark reads as it is, and not as a pattern."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def _write(
    spark: SparkSession, events: DataFrame, index: Path, out: Path, kept: Any, how: str
) -> dict[str, Any]:
    """Write matches and dead letters; how many there are."""
    from pyspark.sql import functions as F

    from fencepost import spark as fps

    everything = fps.match(events, index, kept or None, how=how, dead_letters=True)
    staged = out.parent / f".{out.name}-staged"
    everything.write.mode("overwrite").parquet(str(staged))
    try:
        rows = spark.read.parquet(_literally(str(staged)))
        bad = rows.where(F.col("reason").isNotNull())
        good = rows.where(F.col("reason").isNull()).drop("reason")
        good.write.mode("overwrite").parquet(str(out))
        counted = {"matches": good.count(), "dead_letters": bad.count()}
        if counted["dead_letters"]:
            letters = bad.drop("subscription", "subscriber")
            letters.write.parquet(str(out / "dead-letters"))
        return counted
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _print(told: dict[str, Any], out: Path) -> None:
    built = told.get("index")
    if built:
        print_line(
            f"{built['subscriptions']:,} subscriptions in {built['parts']:,} parts, "
            f"{bytes_text(built['bytes'])}"
        )
        if built["dead_letters"]:
            print_line(
                f"{built['dead_letters']:,} subscriptions could not be used; they are in "
                f"{built['dead_letters_path']}"
            )
    print_line(f"{told['match']['matches']:,} matches in {out} ({told['match']['how']})")
    if told["match"]["dead_letters"]:
        print_line(
            f"{told['match']['dead_letters']:,} events could not be read; they are in "
            f"{out / 'dead-letters'}"
        )


_NAME = "fencepost"  # under which nodes unpack the archive, in the folder that they run in
# In an archive, packages are at the top and kernels in a folder, see docs/cluster.md.
_SHIPPED = {
    "spark.executorEnv.PYTHONPATH": _NAME,
    "spark.executorEnv.FENCEPOST_CACHE_DIR": f"{_NAME}/kernels",
}


def submission(
    job: Sequence[str], master: str, archive: Path | None, settings: Sequence[str]
) -> list[str]:
    """The command for a program and its arguments, or for a command of `fencepost spark`."""
    given = {"spark.pyspark.driver.python": sys.executable}
    for setting in settings:
        key, found, value = setting.partition("=")
        if not found:
            raise FencepostError(f"{setting!r} is no setting of Spark; give --conf KEY=VALUE")
        given[key] = value
    command = [_spark_submit(), "--master", master]
    if archive is not None:
        if not archive.is_file():
            raise FencepostError(
                f"there is no archive {archive}; docs/cluster.md says how to make one"
            )
        command += ["--archives", f"{archive.absolute()}#{_NAME}"]
        given = {**_SHIPPED, **given}
    for key, value in given.items():
        command += ["--conf", f"{key}={value}"]
    program, *arguments = job
    if program.endswith(".py"):
        return [*command, program, *arguments]
    return [*command, str(Path(__file__).with_name("__main__.py")), "spark", program, *arguments]


def _spark_submit() -> str:
    """That of SPARK_HOME, or the one that comes with PySpark."""
    home = os.environ.get("SPARK_HOME")
    found = find_spec("pyspark")
    if home is None and (found is None or found.origin is None):
        raise FencepostError(
            "Spark needs the package pyspark; install it with: pip install 'fencepost[spark]'"
        )
    where = Path(home) if home else Path(found.origin).parent  # type: ignore[union-attr,arg-type]
    return str(where / "bin" / "spark-submit")
