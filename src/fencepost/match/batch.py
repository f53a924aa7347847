"""Matching many events at once: tables in, an Arrow table of pairs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import FencepostError, ModelError
from fencepost.index.events import block_of_rows, block_of_table
from fencepost.kernels.matching import EventArrays
from fencepost.match.catalogue import Shelf
from fencepost.match.run import events_of
from fencepost.model.event import Row, attributes
from fencepost.plan.evaluate import EventValues

if TYPE_CHECKING:
    from fencepost.match.matcher import DeadLetters, Matcher

ROWS = 10_000  # events a block: enough to share the cost of a call, small enough for the cache
RESULT = pa.schema(
    [("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))]
)
Block = tuple[NDArray[np.int64], Callable[[], EventArrays]]  # rows of the table, and their columns


def match_table(
    matcher: Matcher,
    shelves: tuple[Shelf, ...],
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
) -> pa.Table:
    """See `Matcher.match_batch`."""
    _check_threads(threads)
    if matcher.index == "reference":
        return _by_reference(matcher, table, dead_letters)
    pairs = match_pairs(matcher, shelves, table, threads, dead_letters)
    return _result(pairs[:, 0], pairs[:, 1], shelves)


def _check_threads(threads: object) -> None:
    if not isinstance(threads, int) or threads < 1:
        raise ModelError(f"threads must be a whole number from 1 on; saw {threads!r:.40}")


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
        rows, make = block
        events = make()
        found = [np.empty((0, 2), np.int64)]
        for shelf, base in zip(shelves, bases[:-1], strict=True):
            results, stops = matcher._rows_of(shelf, events)
            found.append(np.column_stack((rows[events_of(stops)], results + base)))
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
            rows = np.arange(first, first + part.num_rows)
            yield rows, lambda part=part: block_of_table(columns, part)  # type: ignore[misc]
        return
    events, bad = _events(table)
    _set_aside(bad, dead_letters)
    for first in range(0, len(events), ROWS):
        chosen = events[first : first + ROWS]
        numbers = np.array([number for number, _ in chosen], np.int64)
        own = [event for _, event in chosen]
        yield numbers, lambda own=own: block_of_rows(columns, own)  # type: ignore[misc]


def _events(table: object) -> tuple[list[tuple[int, EventValues]], DeadLetters]:
    """Events that can be read, with their rows; and why the others cannot."""
    if isinstance(table, dict) and table.get("type") == "FeatureCollection":
        table = table.get("features")
    if _is_frame(table):
        table = [Row(row) for row in table.to_dict("records")]  # type: ignore[attr-defined]
    if not isinstance(table, (list, tuple)):
        raise ModelError(
            f"a {type(table).__name__} is no table of events; give an Arrow table, a DataFrame, a "
            "FeatureCollection or a list of events"
        )
    good: list[tuple[int, EventValues]] = []
    bad: DeadLetters = []
    for number, event in enumerate(table):
        try:
            good.append((number, EventValues(attributes(event))))
        except FencepostError as error:
            bad.append((number, str(error)))
    return good, bad


def as_arrow(table: object) -> pa.Table | None:
    """A table of events as Arrow, or None where it is a sequence of events."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if not _is_frame(table):
        return None
    frame: Any = table
    if len(set(frame.columns)) < len(frame.columns):
        raise ModelError("two columns of the table have one name; rename one of them")
    if hasattr(frame, "to_wkb") and hasattr(frame, "geometry"):  # a GeoDataFrame
        frame = frame.to_wkb()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # columns of mixed types: row by row


def _is_frame(table: object) -> bool:
    return type(table).__name__ in ("DataFrame", "GeoDataFrame") and hasattr(table, "to_dict")


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
    if arrow is not None:
        if len(set(arrow.column_names)) < arrow.num_columns:
            raise ModelError("two columns of the table have one name; rename one of them")
        try:
            table = [Row(row) for row in arrow.to_pylist()]
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise ModelError(f"the table cannot be read: {error}") from error
    events, bad = _events(table)
    _set_aside(bad, dead_letters)
    pairs = [(n, id) for n, event in events for id in matcher.match(Row(event.attributes))]
    ids = pa.array([id for _, id in pairs], pa.string()).dictionary_encode()
    return pa.table([pa.array([n for n, _ in pairs], pa.int64()), ids], schema=RESULT)


def _set_aside(bad: DeadLetters, dead_letters: DeadLetters | None) -> None:
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
        more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
        raise ModelError(f"{len(bad)} events cannot be read: {shown}{more}")
    if dead_letters is not None:
        dead_letters.extend(bad)
