"""Provides the router of an index: it finds the parts that an event may match.

Each filter has a *routing key*, which an event must satisfy to match the filter: the smallest
region that the filter requires, else a word, else a string. A filter that requires none of these
has the key `NOTHING`: any event may match it. A segment has the routing keys of all its filters.

The router is a small index. Its subscriptions are the parts, and the filters of a subscription are
the routing keys of its part. So routing reads and compares events exactly as matching does.
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
from fencepost.engine.storage.file_checksums import checksum_of
from fencepost.engine.storage.manifest import SegmentEntry
from fencepost.engine.storage.segment_files import write_segment
from fencepost.engine.subscriptions import Subscription, parse_expiry
from fencepost.filters.checks import Check, Filter, ListCheck, MemberCheck, RelateCheck, Term
from fencepost.spark.indexes.index_folders import Folder, folder_of

Ints = NDArray[np.int64]

PREFIX = "router-"
_ROUTING_KEYS = "needs.arrow"
_MAX_BOXES = 256  # of each column of a segment

_ROUTING_KEY_SCHEMA = pa.schema(
    [
        ("kind", pa.uint8()),
        ("column", pa.int64()),
        *((name, pa.float64()) for name in ("x0", "y0", "x1", "y1")),
        ("key", pa.string()),
    ]
)


def routing_keys(required: Requirements) -> tuple[NDArray[np.uint8], Ints]:
    """Return the routing key of each filter.

    Parameters
    ----------
    required : Requirements
        The requirements of subscriptions.

    Returns
    -------
    kind : array
        The kind of each filter's key.
    requirement : array
        The row of the key in `required`; 0 if the kind is `NOTHING`.
    """
    kind = np.full(len(required.subscription), NOTHING, np.uint8)
    requirement = np.zeros(len(kind), np.int64)
    # Later assignments win: words over strings, places over words, and the smallest place of all.
    for key_kind in (STRING, WORD, PLACE):
        rows = np.flatnonzero(required.kind == key_kind)
        if key_kind == PLACE:
            extent = (required.boxes[rows, 2:] - required.boxes[rows, :2]).sum(axis=1)
            rows = rows[np.argsort(-extent, kind="stable")]
        kind[required.filter[rows]], requirement[required.filter[rows]] = key_kind, rows
    return kind, requirement


def segment_routing_keys(required: Requirements) -> pa.Table:
    """Return the routing keys of a segment, of which an event must satisfy one to match.

    Near boxes are merged, so the keys may accept more events than the filters do.
    """
    kinds, requirement = routing_keys(required)
    if (kinds == NOTHING).any():
        return _key_table([_key_row(NOTHING)])
    rows = []
    placed = requirement[kinds == PLACE]
    for column in np.unique(required.column[placed]).tolist():
        boxes = required.boxes[placed[required.column[placed] == column]]
        rows += [_key_row(PLACE, column, box) for box in _merge_boxes(boxes).tolist()]
    with_text = requirement[kinds != PLACE]
    positions, keys = required.keys(with_text)
    row_of_key = with_text[positions]
    columns_and_keys = np.column_stack(
        (required.kind[row_of_key], required.column[row_of_key], keys)
    )
    for kind, column, key in np.unique(columns_and_keys, axis=0).tolist():
        text = required.text_of(kind, key)
        if text is None:  # a key that is not UTF-8, or a number in a list
            return _key_table([_key_row(NOTHING)])
        rows.append(_key_row(kind, column, key=text))
    return _key_table(rows)


def _key_row(
    kind: int, column: int = 0, box: tuple[float, ...] = (0.0,) * 4, key: str = ""
) -> tuple[object, ...]:
    return kind, column, *box, key


def _key_table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in _ROUTING_KEY_SCHEMA]
    return pa.table([list(column) for column in columns], schema=_ROUTING_KEY_SCHEMA)


def _merge_boxes(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge neighbouring boxes into at most `_MAX_BOXES` that cover them with a little margin."""
    groups = [boxes]
    while len(groups) < min(_MAX_BOXES, len(boxes)):
        groups = [half for group in groups for half in _halves(group)]
    merged = np.array([(*group[:, :2].min(axis=0), *group[:, 2:].max(axis=0)) for group in groups])
    # A margin, so that no box has an area of 0.
    return np.column_stack(
        (np.nextafter(merged[:, :2], -np.inf), np.nextafter(merged[:, 2:], np.inf))
    )


def _halves(boxes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Divide boxes at the median of their centres, across the longer side."""
    if len(boxes) < 2:
        return [boxes]
    middle = boxes[:, :2] / 4 + boxes[:, 2:] / 4  # half the centres: differences cannot overflow
    axis = int(np.argmax(np.ptp(middle, axis=0)))
    order = np.argpartition(middle[:, axis], len(boxes) // 2)
    return [boxes[order[: len(boxes) // 2]], boxes[order[len(boxes) // 2 :]]]


def routing_filters(keys: pa.Table, columns: ColumnRegistry) -> tuple[Filter, ...]:
    """Return the router's filters: an event with a routing key satisfies at least one of them."""
    filters: list[Filter] = []
    for row in keys.to_pylist():
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
        filters.append((Term(check, False),))
    return tuple(filters)


def write_part(path: str, segment: SegmentReader, prefix: str, version: int = 0) -> SegmentEntry:
    """Write a segment and its routing keys to an index.

    Parameters
    ----------
    path : str
        The path or address of the index.
    segment : SegmentReader
        The segment to write.
    prefix : str
        The prefix of the name of the segment's folder.
    version : int
        The version at which the rows of the segment are read.

    Returns
    -------
    SegmentEntry
        The segment's entry in the manifest.
    """
    with folder_of(path).staging_folder() as out:
        entry = write_segment(out, segment, version, prefix)
        return write_routing_keys(out, entry, segment)


def write_routing_keys(path: Path, entry: SegmentEntry, segment: SegmentReader) -> SegmentEntry:
    """Write the routing keys of a segment into its folder in `path`. Return the changed entry."""
    folder = path / entry.folder
    folder.mkdir(exist_ok=True)
    table = segment_routing_keys(requirements_of_segment(segment))
    with (
        atomic_write(folder / _ROUTING_KEYS, durable=True) as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    checksums = {**entry.checksums, _ROUTING_KEYS: checksum_of(folder / _ROUTING_KEYS)}
    return replace(entry, memory_bytes=segment.nbytes, checksums=checksums)


def write_router(
    folder: Folder, entries: Sequence[SegmentEntry], columns: ColumnRegistry, version: int
) -> str:
    """Write a router for segments.

    Parameters
    ----------
    folder : Folder
        The folder of the index.
    entries : sequence of SegmentEntry
        The segments, the parts of the index.
    columns : ColumnRegistry
        The columns of the index.
    version : int
        The version of the index that the router belongs to.

    Returns
    -------
    str
        The name of the router's folder.
    """
    router = Matcher(columns.space, stop_words=columns.tokenizer.stop_words)
    files = [f"{entry.folder}/{_ROUTING_KEYS}" for entry in entries]
    parts = []
    with folder.local_files(files) as path:
        for number, file in enumerate(files):
            with pa.memory_map(str(path / file)) as source:
                keys = pa.ipc.open_file(source).read_all()
            name = str(number)
            parts.append(
                Subscription(name, None, name, parse_expiry(None), routing_filters(keys, columns))
            )
    router.add(parts, replace=False)
    with folder.staging_folder() as path:
        router_path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{version}-", dir=path))
        router_path.chmod(0o755)
        router.save(router_path)
    return router_path.name
