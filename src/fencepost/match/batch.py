"""Matching many events at once: tables in, an Arrow table of pairs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import FencepostError, ModelError
from fencepost.index.events import block_of_rows, block_of_table
from fencepost.kernels.matching import EventArrays
from fencepost.match.catalogue import Shelf
from fencepost.model.event import attributes
from fencepost.plan.evaluate import EventValues

if TYPE_CHECKING:
    from fencepost.match.matcher import DeadLetters, Matcher

ROWS = 10_000  # events a block: enough to share the cost of a call, small enough for the cache
RESULT = pa.schema(
    [("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))]
)
Block = tuple[int, Callable[[], EventArrays]]


def match_table(
    matcher: Matcher,
    shelves: tuple[Shelf, ...],
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
) -> pa.Table:
    """See `Matcher.match_batch`."""
    if threads < 1:
        raise ModelError(f"threads must be at least 1; saw {threads}")
    if matcher.index == "reference":
        return _by_reference(matcher, table, dead_letters)
    pairs = match_pairs(matcher, shelves, table, threads, dead_letters)
    return _result(pairs[:, 0], pairs[:, 1], shelves)


def match_pairs(
    matcher: Matcher,
    shelves: tuple[Shelf, ...],
    table: object,
    threads: int = 1,
    dead_letters: DeadLetters | None = None,
) -> NDArray[np.int64]:
    """Pairs of an event's row and a subscription's, counted through all shelves."""
    bases = np.cumsum([0, *(len(shelf.segment) for shelf in shelves)])

    def run(block: Block) -> NDArray[np.int64]:
        first, make = block
        events = make()
        found = [np.empty((0, 2), np.int64)]
        for shelf, base in zip(shelves, bases[:-1], strict=True):
            pairs = matcher._rows_of(shelf, events).astype(np.int64)
            found.append(pairs + np.array([first, base]))
        return np.concatenate(found)

    blocks = _blocks(matcher, table, dead_letters)
    if threads == 1:
        parts = [run(block) for block in blocks]
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(run, blocks))
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def _blocks(matcher: Matcher, table: object, dead_letters: DeadLetters | None) -> Iterable[Block]:
    columns = matcher._columns
    arrow = as_arrow(table)
    if arrow is not None:
        for first in range(0, arrow.num_rows, ROWS):
            part = arrow.slice(first, ROWS)
            yield first, lambda part=part: block_of_table(columns, part)  # type: ignore[misc]
        return
    rows, bad = _events(table)
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
        raise ModelError(f"{len(bad)} events cannot be read: {shown}")
    if dead_letters is not None:
        dead_letters.extend(bad)
    for first in range(0, len(rows), ROWS):
        part_ = rows[first : first + ROWS]
        yield first, lambda part_=part_: block_of_rows(columns, part_)  # type: ignore[misc]


def _events(table: object) -> tuple[list[EventValues], DeadLetters]:
    """Events one by one; a bad one keeps its row, without attributes."""
    if isinstance(table, dict) and table.get("type") == "FeatureCollection":
        table = table.get("features")
    if not isinstance(table, (list, tuple)):
        raise ModelError(
            f"a {type(table).__name__} is no table of events; give an Arrow table, a DataFrame, a "
            "FeatureCollection or a list of events"
        )
    rows, bad = [], []
    for number, event in enumerate(table):
        try:
            rows.append(EventValues(attributes(event)))
        except FencepostError as error:
            bad.append((number, str(error)))
            rows.append(EventValues({}))
    return rows, bad


def as_arrow(table: object) -> pa.Table | None:
    """A table of events as Arrow, or None where it is a sequence of events."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "to_wkb") and hasattr(table, "geometry"):  # a GeoDataFrame
        table = table.to_wkb()
    if type(table).__name__ == "DataFrame" and type(table).__module__.startswith("pandas"):
        return pa.Table.from_pandas(table, preserve_index=False)
    return None


def _result(
    events: NDArray[np.int64], rows: NDArray[np.int64], shelves: tuple[Shelf, ...]
) -> pa.Table:
    """Pairs as a table, by event and id; the dictionary holds the ids that occur."""
    used, code = np.unique(rows, return_inverse=True)
    ids = names_of(shelves, "id", used)
    order = pc.sort_indices(ids).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    code = rank[code]
    by_event = np.lexsort((code, events))
    encoded = pa.DictionaryArray.from_arrays(
        pa.array(code[by_event].astype(np.int32)), ids.take(pa.array(order))
    )
    return pa.table([pa.array(events[by_event]), encoded], schema=RESULT)


def names_of(shelves: tuple[Shelf, ...], column: str, rows: NDArray[np.int64]) -> pa.Array:
    """A column of the names of subscriptions, whose rows count through all shelves."""
    chunks = [chunk for shelf in shelves for chunk in shelf.names.column(column).chunks]
    taken = pa.chunked_array(chunks, pa.string()).take(pa.array(rows))
    return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], pa.string())


def _by_reference(matcher: Matcher, table: object, dead_letters: DeadLetters | None) -> pa.Table:
    arrow = as_arrow(table)
    events = arrow.to_pylist() if arrow is not None else table
    if isinstance(events, dict) and events.get("type") == "FeatureCollection":
        events = events["features"]
    pairs: list[tuple[int, str]] = []
    for number, event in enumerate(events):  # type: ignore[arg-type]
        try:
            pairs.extend((number, id) for id in matcher.match(event))
        except ModelError as error:
            if dead_letters is None:
                raise
            dead_letters.append((number, str(error)))
    ids = pa.array([id for _, id in pairs], pa.string()).dictionary_encode()
    return pa.table([pa.array([n for n, _ in pairs], pa.int64()), ids], schema=RESULT)
