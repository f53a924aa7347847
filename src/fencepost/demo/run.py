"""Runs the demonstration: an index built on Spark, a stream through it, a summary, pictures."""

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

FILES = 6  # micro-batches of the stream
PARTS = 4  # of the index
_MADE = ("index", "stream", "matches", "checkpoint")
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


def run(out: Path, seed: int) -> None:
    """Write the city, its questions, the stream, the matches, a picture and a map to a folder."""
    console = Console()
    rng = np.random.default_rng(seed)
    asked, happened = city.questions(rng), city.events(rng)
    _clear(out)
    matcher = Matcher()
    matcher.subscribe_many(
        [{"id": q.id, "expression": q.expression, "subscriber": q.subscriber} for q in asked]
    )
    _write_inputs(out, asked, happened)
    console.print(f"{len(asked):,} standing questions; {len(happened):,} events to come")
    pairs = _on_spark(console, out)
    table = pa.table({"event": [e for e, _ in pairs], "subscription": [s for _, s in pairs]})
    pq.write_table(table, out / "matches.parquet")
    _summary(console, asked, happened, pairs)
    embedded = _embedded(matcher, happened)
    if embedded != sorted(pairs):
        raise FencepostError("Spark and the embedded matcher disagree: please report this")
    console.print(f"The embedded matcher gives the same {len(embedded):,} matches.")
    draw(out / "city.png", asked, happened, pairs)
    write_map(out / "city.html", asked, happened, pairs)
    console.print(
        f"\nLook at [bold]{out / 'city.png'}[/bold], or open [bold]{out / 'city.html'}[/bold] in a "
        "browser. Then try:"
    )
    console.print(f"  fencepost match {out / 'events.ndjson'} --index {out / 'index'} --count")
    event, subscription = next((p for p in pairs if p[1].startswith("warehouse")), pairs[0])
    shown = json.dumps(_as_json(next(e for e in happened if e["id"] == event)))
    (out / "event.json").write_text(shown)
    console.print(
        f"  fencepost explain {out / 'event.json'} {subscription} --index {out / 'index'}"
    )


def _clear(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in _MADE:
        shutil.rmtree(out / name, ignore_errors=True)


def _as_json(event: dict[str, Any]) -> dict[str, Any]:
    properties = {k: v for k, v in event.items() if k not in ("id", "geometry") and v is not None}
    return {
        "type": "Feature",
        "id": event["id"],
        "geometry": mapping(event["geometry"]),
        "properties": properties,
    }


def _write_inputs(out: Path, asked: list[city.Question], happened: list[dict[str, Any]]) -> None:
    with (out / "subscriptions.ndjson").open("w") as file:
        for q in asked:
            row = {"id": q.id, "subscriber": q.subscriber, "expression": q.expression}
            file.write(json.dumps(row) + "\n")
    with (out / "events.ndjson").open("w") as file:
        file.writelines(json.dumps(_as_json(event)) + "\n" for event in happened)
    (out / "stream").mkdir()
    for number in range(FILES):
        part = happened[number * len(happened) // FILES : (number + 1) * len(happened) // FILES]
        rows = [{**event, "geometry": event["geometry"].wkb} for event in part]
        pq.write_table(
            pa.Table.from_pylist(rows, schema=_SCHEMA), out / "stream" / f"part-{number}.parquet"
        )


def _on_spark(console: Console, out: Path) -> list[tuple[str, str]]:
    """Build the index on local Spark, and match the stream, file by file; the pairs found."""
    with console.status("Starting Spark (a few seconds)"):
        spark = fps.session(name="fencepost-demo")
    try:
        with console.status("Building the index"):
            questions = spark.read.json(str(out / "subscriptions.ndjson"))
            built = fps.build_index(spark, questions, out / "index", parts=PARTS)
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

            def report(told: fps.Progress) -> None:
                progress.console.print(f"  {told}")
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
        found = spark.read.parquet(str(out / "matches")).collect()
        return sorted((row["id"], row["subscription"]) for row in found)
    finally:
        spark.stop()


def _embedded(matcher: Matcher, happened: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = matcher.match_batch(happened).to_pylist()
    return sorted((happened[row["event"]]["id"], row["subscription"]) for row in found)


def _summary(
    console: Console,
    asked: list[city.Question],
    happened: list[dict[str, Any]],
    pairs: list[tuple[str, str]],
) -> None:
    table = Table(title=f"{len(happened):,} events past {len(asked):,} questions, on Spark")
    table.add_column("kind")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for kind, *numbers in summary(happened, pairs):
        table.add_row(kind, *(f"{number:,}" for number in numbers))
    console.print(table)
