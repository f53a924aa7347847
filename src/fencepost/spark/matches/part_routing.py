"""Which parts of an index an event may find anything in.

A filter *needs* the smallest place that it requires an event to be in, else words, else strings,
else nothing: then every event may match it. What a segment needs is what any of its filters does.

The router is an index itself, a small one: its subscriptions are the parts, and each asks for what
some subscription of the part needs. So an event is read and compared there as it is anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely
from msgspec.structs import replace
from numpy.typing import NDArray

from fencepost.atomic_replace import atomic_write
from fencepost.cql2.ast import ArrayFunction, Geometry, ListLiteral, SpatialFunction, String
from fencepost.engine import ColumnRegistry, SegmentReader
from fencepost.engine.matcher import Matcher
from fencepost.engine.requirements import (
    NOTHING,
    PLACE,
    STRING,
    WORD,
    Requirements,
    column_of,
    requirements_of_segment,
)
from fencepost.engine.storage.manifest import SegmentEntry
from fencepost.engine.storage.segment_files import write_segment
from fencepost.engine.subscriptions import Subscription, parse_expiry
from fencepost.filters.checks import Check, Filter, ListCheck, MemberCheck, RelateCheck, Term
from fencepost.spark.indexes.index_folders import Folder, folder_of

Ints = NDArray[np.int64]

PREFIX = "router-"
_ROUTING_KEYS = "needs.arrow"
_MAX_BOXES = 256  # of a segment

SCHEMA = pa.schema(
    [
        ("kind", pa.uint8()),
        ("column", pa.int64()),
        *((name, pa.float64()) for name in ("x0", "y0", "x1", "y1")),
        ("key", pa.string()),
    ]
)


def routing_keys(required: Requirements) -> tuple[NDArray[np.uint8], Ints]:
    """What each filter needs: the kind, and which requirement it is unless it is `NOTHING`."""
    kind = np.full(len(required.subscription), NOTHING, np.uint8)
    found = np.zeros(len(kind), np.int64)
    # Later ones overrule earlier ones: strings, words, places; among places the smallest is last.
    for need in (STRING, WORD, PLACE):
        own = np.flatnonzero(required.kind == need)
        if need == PLACE:
            extent = (required.boxes[own, 2:] - required.boxes[own, :2]).sum(axis=1)
            own = own[np.argsort(-extent, kind="stable")]
        kind[required.filter[own]], found[required.filter[own]] = need, own
    return kind, found


def segment_routing_keys(required: Requirements) -> pa.Table:
    """What an event must have one of to match anything in a segment; boxes are put together."""
    kinds, found = routing_keys(required)
    if (kinds == NOTHING).any():
        return _table([_row(NOTHING)])
    rows = []
    placed = found[kinds == PLACE]
    for column in np.unique(required.column[placed]).tolist():
        own = required.boxes[placed[required.column[placed] == column]]
        rows += [_row(PLACE, column, box) for box in _together(own).tolist()]
    worded = found[kinds != PLACE]
    place, keys = required.keys(worded)
    at = worded[place]
    given = np.column_stack((required.kind[at], required.column[at], keys))
    for kind, column, key in np.unique(given, axis=0).tolist():
        text = required.text_of(kind, key)
        if text is None:
            return _table([_row(NOTHING)])
        rows.append(_row(kind, column, key=text))
    return _table(rows)


def _row(
    kind: int, column: int = 0, box: tuple[float, ...] = (0.0,) * 4, key: str = ""
) -> tuple[object, ...]:
    return kind, column, *box, key


def _table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    return pa.table([list(column) for column in columns], schema=SCHEMA)


def _together(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most `_MAX_BOXES` boxes that cover these, and a little more; neighbours are together."""
    runs = [boxes]
    while len(runs) < min(_MAX_BOXES, len(boxes)):
        runs = [half for run in runs for half in _halves(run)]
    found = np.array([(*run[:, :2].min(axis=0), *run[:, 2:].max(axis=0)) for run in runs])
    # So none is without area.
    return np.column_stack(
        (np.nextafter(found[:, :2], -np.inf), np.nextafter(found[:, 2:], np.inf))
    )


def _halves(boxes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    if len(boxes) < 2:
        return [boxes]
    middle = boxes[:, :2] / 4 + boxes[:, 2:] / 4  # of which no difference is infinite
    axis = int(np.argmax(np.ptp(middle, axis=0)))
    order = np.argpartition(middle[:, axis], len(boxes) // 2)
    return [boxes[order[: len(boxes) // 2]], boxes[order[len(boxes) // 2 :]]]


def routing_filters(needed: pa.Table, columns: ColumnRegistry) -> tuple[Filter, ...]:
    """Conditions that an event satisfies if it has one of the needs, and perhaps if not."""
    found: list[Filter] = []
    for row in needed.to_pylist():
        kind = row["kind"]
        if kind == NOTHING:
            return ((),)
        column = column_of(columns, kind, row["column"])
        check: Check
        if kind == PLACE:
            box = shapely.box(row["x0"], row["y0"], row["x1"], row["y1"])
            check = RelateCheck(column, SpatialFunction.S_INTERSECTS, Geometry(box))
        elif kind == WORD:
            items = ListLiteral((String(row["key"]),))
            check = ListCheck(column, ArrayFunction.A_CONTAINS, items, columns.tokenizer)
        else:
            check = MemberCheck(column, (row["key"],))
        found.append((Term(check, False),))
    return tuple(found)


def write_part(path: str, segment: SegmentReader, prefix: str, version: int = 0) -> SegmentEntry:
    """Write a segment to an index, and beside it what its subscriptions need; its entry."""
    with folder_of(path).writing() as out:
        entry = write_segment(out, segment, version, prefix)
        write_routing_keys(out / entry.folder, segment)
    return replace(entry, memory_bytes=segment.nbytes)


def write_routing_keys(folder: Path, segment: SegmentReader) -> None:
    """Write beside a segment what its subscriptions need."""
    folder.mkdir(exist_ok=True)
    table = segment_routing_keys(requirements_of_segment(segment))
    with (
        atomic_write(folder / _ROUTING_KEYS, durable=True) as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def write(
    folder: Folder, entries: Sequence[SegmentEntry], columns: ColumnRegistry, version: int
) -> str:
    """Write a router for segments; the name of its folder."""
    router = Matcher(columns.space, stop_words=columns.tokenizer.stop_words)
    files = [f"{entry.folder}/{_ROUTING_KEYS}" for entry in entries]
    parts = []
    with folder.held(files) as path:
        for number, file in enumerate(files):
            with pa.memory_map(str(path / file)) as source:
                needed = pa.ipc.open_file(source).read_all()
            name = str(number)
            parts.append(
                Subscription(name, None, name, parse_expiry(None), routing_filters(needed, columns))
            )
    router.add(parts, replace=False)
    with folder.writing() as path:
        own = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{version}-", dir=path))
        own.chmod(0o755)
        router.save(own)
    return own.name
