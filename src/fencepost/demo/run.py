"""`run`: the demonstration, which builds an index on Spark and matches a stream with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from shapely.geometry import mapping

from fencepost import spark as fps
from fencepost.demo import city
from fencepost.demo.map import COLUMNS, draw, summary, write_map
from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError
from fencepost.extras import requires_extra

FILES = 6  # a micro-batch each
PARTS = 4  # parts of the index
_OUTPUT_FOLDERS = ("index", "stream", "matches", "checkpoint")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("severity", pa.int64()),
        ("state", pa.string()),
        ("text", pa.string()),
        ("geometry", pa.binary()),
    ]
)


@requires_extra("the demonstration", "spark", "plot")
def run(out: Path, seed: int) -> None:
    """Write subscriptions, events, an index, matches, a picture and a map of a city to a folder."""
    console = Console()
    rng = np.random.default_rng(seed)
    subscriptions, events = city.make_subscriptions(rng), city.make_events(rng)
    _prepare_folder(out)
    matcher = Matcher()
    matcher.subscribe_many(
        [
            {"id": s.id, "expression": s.expression, "subscriber": s.subscriber}
            for s in subscriptions
        ]
    )
    _write_inputs(out, subscriptions, events)
    console.print(f"{len(subscriptions):,} subscriptions; {len(events):,} events to match")
    pairs = _match_on_spark(console, out)
    table = pa.table({"event": [e for e, _ in pairs], "subscription": [s for _, s in pairs]})
    pq.write_table(table, out / "matches.parquet")
    _print_summary(console, events, pairs)
    embedded = _match_embedded(matcher, events)
    if embedded != sorted(pairs):
        raise FencepostError(
            "Spark and the embedded matcher give different matches: please report this bug"
        )
    console.print(f"A matcher in this process gives the same {len(embedded):,} matches.")
    draw(out / "city.png", subscriptions, events, pairs)
    write_map(out / "city.html", subscriptions, events, pairs)
    _print_what_to_try(console, out, events, pairs)


def _print_what_to_try(
    console: Console, out: Path, events: list[dict[str, Any]], pairs: list[tuple[str, str]]
) -> None:
    """Print commands for the files of the demonstration, and write the event that one explains."""
    event, subscription = next((p for p in pairs if p[1].startswith("warehouse")), pairs[0])
    shown = json.dumps(_feature(next(e for e in events if e["id"] == event)))
    (out / "event.json").write_text(shown)
    rider = next(s for _, s in pairs if s.startswith("rider"))
    picture, page = out / "city.png", out / "city.html"
    lines = f"""
See [bold]{picture}[/bold], or open [bold]{page}[/bold] in a browser. Then try:
  fencepost match {out / "events.ndjson"} --index {out / "index"} --count
  fencepost explain {out / "event.json"} {subscription} --index {out / "index"}
The same city on a server, with a map at http://127.0.0.1:8080 (pip install 'fencepost\\[server]'):
  fencepost serve --open
  fencepost subscribe --file {out / "subscriptions.ndjson"}  # in another terminal
  fencepost publish {out / "events.ndjson"}
  fencepost tail {rider}"""
    console.print(lines, soft_wrap=True, highlight=False)


def _prepare_folder(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in _OUTPUT_FOLDERS:
        shutil.rmtree(out / name, ignore_errors=True)


def _feature(event: dict[str, Any]) -> dict[str, Any]:
    properties = {k: v for k, v in event.items() if k not in ("id", "geometry") and v is not None}
    return {
        "type": "Feature",
        "id": event["id"],
        "geometry": mapping(event["geometry"]),
        "properties": properties,
    }


def _write_inputs(
    out: Path, subscriptions: list[city.CitySubscription], events: list[dict[str, Any]]
) -> None:
    with (out / "subscriptions.ndjson").open("w") as file:
        for s in subscriptions:
            row = {"id": s.id, "subscriber": s.subscriber, "expression": s.expression}
            file.write(json.dumps(row) + "\n")
    with (out / "events.ndjson").open("w") as file:
        file.writelines(json.dumps(_feature(event)) + "\n" for event in events)
    (out / "stream").mkdir()
    for number in range(FILES):
        part = events[number * len(events) // FILES : (number + 1) * len(events) // FILES]
        rows = [{**event, "geometry": event["geometry"].wkb} for event in part]
        pq.write_table(
            pa.Table.from_pylist(rows, schema=_SCHEMA), out / "stream" / f"part-{number}.parquet"
        )


def _match_on_spark(console: Console, out: Path) -> list[tuple[str, str]]:
    """Build the index on local Spark and match the stream, file by file. Return the matches."""
    with console.status("Starting Spark (a few seconds)"):
        spark = fps.session(name="fencepost-demo")
    try:
        with console.status("Building the index"):
            subscriptions = spark.read.json(str(out / "subscriptions.ndjson"))
            built = fps.build_index(spark, subscriptions, out / "index", parts=PARTS)
        console.print(
            f"Index built by a Spark job: {built.subscriptions:,} subscriptions in "
            f"{built.parts} parts, {built.bytes / 1e3:,.0f} kB"
        )
        events = (
            spark.readStream.schema(
                "id string, kind string, severity bigint, state string, text string, "
                "geometry binary"
            )
            .option("maxFilesPerTrigger", 1)
            .parquet(str(out / "stream"))
        )
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("Matching the stream", total=FILES)

            def report(progress_report: fps.Progress) -> None:
                progress.console.print(f"  {progress_report}")
                progress.advance(task)

            listener = fps.ProgressListener(report)
            spark.streams.addListener(listener)
            query = fps.write_matches(
                fps.match(events, out / "index", columns=["id"]),
                out / "matches",
                out / "checkpoint",
                available_now=True,
            )
            query.awaitTermination()
            listener.wait(query)
        rows = spark.read.parquet(str(out / "matches")).collect()
        return sorted((row["id"], row["subscription"]) for row in rows)
    finally:
        spark.stop()


def _match_embedded(matcher: Matcher, events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    rows = matcher.match_batch(events).to_pylist()
    return sorted((events[row["event"]]["id"], row["subscription"]) for row in rows)


def _print_summary(
    console: Console, events: list[dict[str, Any]], pairs: list[tuple[str, str]]
) -> None:
    table = Table(title="Matches on Spark")
    table.add_column("kind")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for kind, *numbers in summary(events, pairs):
        table.add_row(kind, *(f"{number:,}" for number in numbers))
    console.print(table)
