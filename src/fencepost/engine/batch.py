"""Matching many events at once: tables in, an Arrow table of pairs out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.kernel_runner import EventMatches
from fencepost.engine.snapshot import Snapshot, as_single_array
from fencepost.errors import ModelError
from fencepost.events.table import BadRows, EventTable
from fencepost.kernels.match import result_pairs

if TYPE_CHECKING:
    from fencepost.engine.matcher import DeadLetters, Matcher

ROWS = 20_000  # events a block: enough to share the cost of a call, small enough for the cache
_FEWEST_ROWS = 1_000  # that are worth a thread
RESULT = pa.schema(
    [("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))]
)


class Pairs(NamedTuple):
    """Pairs of an event and a subscription that it answers, in the order of the events.

    Attributes
    ----------
    snapshot : Snapshot
        In which they were found.
    events : int64 array
        The row of each one's event.
    rows : uint32 array
        The row of each one's subscription, counted through the segments of a snapshot.
    stops : int64 array
        Where the pairs of each event of `table` end.
    table : EventTable
        The events that could be read.
    """

    snapshot: Snapshot
    events: NDArray[np.int64]
    rows: NDArray[np.uint32]
    stops: NDArray[np.int64]
    table: EventTable

    def __len__(self) -> int:
        return len(self.rows)

    def numbered(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The subscriptions that occur, by row, and of each pair which of them it is."""
        size = sum(len(shelf) for shelf in self.snapshot)
        codes = _reused(len(self.rows), np.uint32)
        distinct = np.empty(min(size, len(self.rows)), np.uint32)
        count = result_pairs.number_rows(self.rows, np.zeros(size, np.uint32), distinct, codes)
        return distinct[:count], codes

    def names(self, column: str, rows: NDArray[np.uint32]) -> pa.Array:
        """The "id" or the "subscriber" of subscriptions, by row."""
        return as_single_array(self.snapshot.column(column).take(pa.array(rows)))


def match_table(
    matcher: Matcher,
    snapshot: Snapshot,
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
    sort: bool,
) -> pa.Table:
    """See `Matcher.match_batch`."""
    found = match_pairs(matcher, snapshot, table, threads, dead_letters)
    distinct, codes = found.numbered()
    ids = found.names("id", distinct)
    if sort:
        order = pc.sort_indices(ids)
        rank = np.empty(len(ids), np.uint32)
        rank[order.to_numpy()] = np.arange(len(ids), dtype=np.uint32)
        ids, codes = ids.take(order), rank[codes]
        result_pairs.sort_codes(codes, found.stops, len(ids))
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes.view(np.int32)), ids, safe=False)
    return pa.table([pa.array(found.events), encoded], schema=RESULT)


def match_pairs(
    matcher: Matcher,
    snapshot: Snapshot,
    table: object,
    threads: int = 1,
    dead_letters: DeadLetters | None = None,
) -> Pairs:
    """The pairs of a table of events and the subscriptions of a snapshot."""
    if not isinstance(threads, int) or threads < 1:  # type: ignore[redundant-expr]
        raise ModelError(f"threads must be a whole number from 1 on; saw {threads!r:.40}")
    columns = matcher._columns
    events = EventTable.read(table, columns.space).without_invalid_text(_read_as_text(columns))
    _set_aside(events.bad, dead_letters)

    def run(block: EventTable) -> list[EventMatches]:
        return list(matcher._engine.by_segment(snapshot, block))

    if threads == 1:
        answers = [run(block) for block in _blocks(events, threads)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            answers = list(pool.map(run, _blocks(events, threads)))
    return _in_order(answers, events, snapshot)


def _blocks(events: EventTable, threads: int) -> Iterator[EventTable]:
    """The events in parts, at least one for each thread if there are enough."""
    size = min(ROWS, max(-(-len(events) // threads), _FEWEST_ROWS))
    for first in range(0, len(events), size):
        yield events.slice(first, min(size, len(events) - first))


def _in_order(answers: list[list[EventMatches]], table: EventTable, snapshot: Snapshot) -> Pairs:
    """What was found in each segment for each block, by event."""
    sizes = np.zeros(len(table), np.int64)
    first = 0
    for answer in answers:
        for _, stops in answer:
            sizes[first : first + len(stops)] += np.diff(stops, prepend=0)
        first += len(answer[0][1]) if answer else 0
    stops = np.cumsum(sizes)
    count = int(stops[-1]) if len(stops) else 0
    rows, events = _reused(count, np.uint32), _reused(count, np.int64)
    result_pairs.write_events(table.source_rows, stops, events)
    places = stops - sizes
    first = 0
    for answer in answers:
        base = 0
        for shelf, (own, ends) in zip(snapshot, answer, strict=True):
            result_pairs.write_rows(own, ends, base, places[first:], rows)
            base += len(shelf)
        first += len(answer[0][1]) if answer else 0
    return Pairs(snapshot, events, rows, stops, table)


def _reused(count: int, kind: type[np.generic]) -> NDArray[Any]:
    """An array in Arrow's memory, which it uses again; the system's is given back and cleared."""
    return np.frombuffer(pa.allocate_buffer(max(count, 1) * np.dtype(kind).itemsize), kind)[:count]


def _read_as_text(columns: ColumnRegistry) -> set[str]:
    """The attributes whose text matters; as a geometry it is read, and judged, elsewhere."""
    return columns.attributes(*(s for s in Storage if s != Storage.GEOMETRY))


def _set_aside(bad: BadRows, dead_letters: DeadLetters | None) -> None:
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
        more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
        raise ModelError(f"{len(bad)} events cannot be read: {shown}{more}")
    if dead_letters is not None:
        dead_letters.extend(bad)
