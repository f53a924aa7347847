"""What runs on the workers when subscriptions are simplified: batches in, batches out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.match.simplify_many import ReadSubscription, covered_ids, read_subscriptions
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.plan.covering.predicates import boxes_of
from fencepost.spark.splitting import Cuts

Batches = Iterable[pa.RecordBatch]
Out = Iterator[pa.RecordBatch]
Floats = NDArray[np.float64]

REACH = tuple(f"fencepost_reach_{name}" for name in ("x0", "y0", "x1", "y1"))
PLACE = tuple(f"fencepost_place_{name}" for name in ("x0", "y0", "x1", "y1"))
TASK = "fencepost_task"
UNTIL = "fencepost_until"
COUNTS = ("filters_before", "filters_after", "constraints_before", "constraints_after")
READ = (
    "id string, subscriber string, expression string, never_matches boolean, "
    + ", ".join(f"{name} int" for name in COUNTS)
    + f", dropped array<string>, reason string, {UNTIL} long, "
    + ", ".join(f"{name} double" for name in (*REACH, *PLACE))
)
COVERED = "id string, covered_by string"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What expressions mean: those of a matcher."""

    space: Space
    tokeniser: Tokeniser


@dataclass(frozen=True, slots=True)
class Read:
    """Rows to rows of `READ`: simplified each by itself, or with a reason why they cannot be."""

    names: Sequence[str]
    meaning: Meaning

    def __call__(self, batches: Batches) -> Out:
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            yield self._told(table)

    def _told(self, table: pa.Table) -> pa.RecordBatch:
        bad: list[tuple[int, str]] = []
        read = read_subscriptions(table, bad, self.meaning.space, self.meaning.tokeniser)
        reasons: list[str | None] = [None] * table.num_rows
        for row, reason in bad:
            reasons[row] = reason
        by_row = {own.row: own for own in read}
        reach, place = np.full((2, table.num_rows, 4), np.nan)
        reach[list(by_row)], place[list(by_row)] = boxes_of([own.filters for own in read])
        subscribers = _told_or_given(by_row, table, "subscriber", lambda own: own.subscriber)
        columns: dict[str, Any] = {
            "id": table.column("id").cast(pa.string()).combine_chunks(),
            "subscriber": subscribers,
            "expression": _told_or_given(
                by_row, table, "expression", lambda own: own.simplification.expression
            ),
        }
        told = [
            by_row[row].simplification if row in by_row else None for row in range(table.num_rows)
        ]
        columns["never_matches"] = pa.array([one and one.never_matches for one in told], pa.bool_())
        for name in COUNTS:
            columns[name] = pa.array([one and getattr(one, name) for one in told], pa.int32())
        lines = [one and [part.line() for part in one.dropped] for one in told]
        columns["dropped"] = pa.array(lines, pa.list_(pa.string()))
        columns["reason"] = pa.array(reasons, pa.string())
        until = [by_row[row].until if row in by_row else None for row in range(table.num_rows)]
        columns[UNTIL] = pa.array(until, pa.int64())
        for names, boxes in ((REACH, reach), (PLACE, place)):
            columns |= {name: pa.array(side) for name, side in zip(names, boxes.T, strict=True)}
        return pa.RecordBatch.from_pydict(columns)


def _told_or_given(
    by_row: Mapping[int, ReadSubscription],
    table: pa.Table,
    name: str,
    told: Callable[[ReadSubscription], str],
) -> pa.Array:
    """What is told of rows that were read; of the others what was given, if it is a text."""
    if name not in table.column_names:
        given: list[str | None] = [None] * table.num_rows
    else:
        given = _texts(table.column(name))
    return pa.array(
        [told(by_row[row]) if row in by_row else text for row, text in enumerate(given)],
        pa.string(),
    )


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    try:
        return [text if isinstance(text, str) else None for text in column.to_pylist()]
    except UnicodeDecodeError:
        if len(column) == 1:
            return [None]
        return [_texts(column.slice(row, 1))[0] for row in range(len(column))]


def placed(table: pa.Table) -> tuple[NDArray[np.bool_], Floats]:
    """Whether subscriptions cover by a place alone, and where they lie: (n, 3), by chance too."""
    reach, place = (
        np.column_stack([table.column(name).to_numpy() for name in names])
        for names in (REACH, PLACE)
    )
    has_place = np.isfinite(reach).all(axis=1)
    somewhere = np.isfinite(place).all(axis=1)
    place = np.where(somewhere[:, None], place, 0.0)
    middle = place[:, :2] / 2 + place[:, 2:] / 2
    chance = [zlib.crc32(id.encode()) / 2**32 for id in table.column("id").to_pylist()]
    return has_place, np.column_stack((middle, chance))


@dataclass(frozen=True, slots=True)
class Assign:
    """Adds to rows the task in which they are compared.

    Attributes
    ----------
    small : int
        Tasks that subscribers share, from 0 on.
    large : mapping of (subscriber, whether placed) to (its first task, cuts)
        Of subscribers with more than a task should hold.
    """

    small: int
    large: Mapping[tuple[str, bool], tuple[int, Cuts]]

    def __call__(self, batches: Batches) -> Out:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            subscribers = table.column("subscriber").to_pylist()
            task = np.array(
                [zlib.crc32(own.encode()) % self.small for own in subscribers], np.int32
            )
            if self.large:
                self._assign_large(table, subscribers, task)
            added = table.append_column(TASK, pa.array(task))
            yield from added.to_batches(max_chunksize=None)

    def _assign_large(self, table: pa.Table, subscribers: list[str], task: Any) -> None:
        has_place, points = placed(table)
        rows: dict[tuple[str, bool], list[int]] = {}
        for row, key in enumerate(zip(subscribers, has_place.tolist(), strict=True)):
            if key in self.large:
                rows.setdefault(key, []).append(row)
        for key, own in rows.items():
            first, cuts = self.large[key]
            task[own] = first + cuts.part_of(points[own])


@dataclass(frozen=True, slots=True)
class Cover:
    """All rows of a task to the covered ones, each with what covers it: rows of `COVERED`."""

    meaning: Meaning

    def __call__(self, batches: Batches) -> Out:
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given).select(["id", "subscriber", "expression", UNTIL])
        several = table.group_by("subscriber").aggregate([("id", "count")])
        several = several.filter(pc.field("id_count") > 1).column("subscriber")
        table = table.filter(pc.is_in(table.column("subscriber"), several))
        until = dict(zip(*(table.column(n).to_pylist() for n in ("id", UNTIL)), strict=True))
        bad: list[tuple[int, str]] = []
        rows = table.drop_columns([UNTIL])
        read = read_subscriptions(rows, bad, self.meaning.space, self.meaning.tokeniser)
        assert not bad, bad  # they were read before
        found = covered_ids([replace(own, until=until[own.id]) for own in read])
        yield pa.RecordBatch.from_pydict(
            {
                "id": pa.array(list(found), pa.string()),
                "covered_by": pa.array(list(found.values()), pa.string()),
            }
        )
