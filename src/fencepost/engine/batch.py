"""`match_pairs` matches a table of events, in blocks and on several threads."""

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
from fencepost.errors import GeometryProblem, ModelError
from fencepost.events.table import BadRows, EventTable, UnusableGeometries
from fencepost.kernels.match import result_pairs

if TYPE_CHECKING:
    from fencepost.engine.matcher import DeadLetters, Matcher

MAX_BLOCK_EVENTS = 20_000  # enough to amortise the cost of a call, and small enough for the cache
_MIN_BLOCK_EVENTS = 1_000  # smaller blocks are not worth a thread
RESULT = pa.schema(
    [("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))]
)


class Pairs(NamedTuple):
    """Pairs of an event and a subscription that it matches, in the order of the events.

    Attributes
    ----------
    snapshot : Snapshot
        Snapshot that the events were matched against.
    events : int64 array
        Row of the event of each pair.
    rows : uint32 array
        Row of the subscription of each pair, numbered through all segments of the snapshot.
    stops : int64 array
        Where the pairs of each event of `table` end.
    table : EventTable
        Events that could be read.
    unusable : mapping
        By attribute, and by row in the source, why geometries of these events cannot be used.
    """

    snapshot: Snapshot
    events: NDArray[np.int64]
    rows: NDArray[np.uint32]
    stops: NDArray[np.int64]
    table: EventTable
    unusable: UnusableGeometries

    def __len__(self) -> int:
        return len(self.rows)

    def dictionary_encode(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the distinct rows of subscriptions, and for each pair the index of its row."""
        size = sum(len(segment) for segment in self.snapshot)
        codes = _pooled_array(len(self.rows), np.uint32)
        distinct = np.empty(min(size, len(self.rows)), np.uint32)
        count = result_pairs.number_rows(self.rows, np.zeros(size, np.uint32), distinct, codes)
        return distinct[:count], codes

    def names(self, column: str, rows: NDArray[np.uint32]) -> pa.Array:
        """Return the "id" or the "subscriber" of subscriptions, given their rows."""
        return as_single_array(self.snapshot.column(column).take(pa.array(rows)))


def table_of_pairs(pairs: Pairs, sort: bool) -> pa.Table:
    """Return the table of `Matcher.match_batch`."""
    distinct, codes = pairs.dictionary_encode()
    ids = pairs.names("id", distinct)
    if sort:
        order = pc.sort_indices(ids)
        rank = np.empty(len(ids), np.uint32)
        rank[order.to_numpy()] = np.arange(len(ids), dtype=np.uint32)
        ids, codes = ids.take(order), rank[codes]
        result_pairs.sort_codes(codes, pairs.stops, len(ids))
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes.view(np.int32)), ids, safe=False)
    return pa.table([pa.array(pairs.events), encoded], schema=RESULT)


def match_pairs(
    matcher: Matcher,
    snapshot: Snapshot,
    table: object,
    threads: int = 1,
    dead_letters: DeadLetters | None = None,
) -> Pairs:
    """Match a table of events against a snapshot; see `Matcher.match_batch`."""
    if not isinstance(threads, int) or threads < 1:  # type: ignore[redundant-expr]
        raise ModelError(f"threads must be a whole number from 1 on; saw {threads!r:.40}")
    columns = matcher._columns
    events = EventTable.read(table, columns.space).without_invalid_text(_text_attributes(columns))
    _reject_events(events.bad, dead_letters)

    def match_block(block: EventTable) -> tuple[list[EventMatches], UnusableGeometries]:
        matches = list(matcher._engine.by_segment(snapshot, block))
        return matches, block.unusable_geometries()

    if threads == 1:
        results = [match_block(block) for block in _blocks(events, threads)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            results = list(pool.map(match_block, _blocks(events, threads)))
    unusable: dict[str, dict[int, GeometryProblem]] = {}
    for _, unusable_in_block in results:
        for name, problems in unusable_in_block.items():
            unusable.setdefault(name, {}).update(problems)
    return _pairs_by_event([matches for matches, _ in results], events, snapshot, unusable)


def _blocks(events: EventTable, threads: int) -> Iterator[EventTable]:
    """Yield the events in blocks, at least one for each thread if there are enough events."""
    size = min(MAX_BLOCK_EVENTS, max(-(-len(events) // threads), _MIN_BLOCK_EVENTS))
    for first in range(0, len(events), size):
        yield events.slice(first, min(size, len(events) - first))


def _pairs_by_event(
    matches_of_blocks: list[list[EventMatches]],
    table: EventTable,
    snapshot: Snapshot,
    unusable: UnusableGeometries,
) -> Pairs:
    """Merge the matches of all blocks and segments into pairs in the order of the events."""
    sizes = np.zeros(len(table), np.int64)
    first_event = 0
    for matches in matches_of_blocks:
        for _, segment_stops in matches:
            sizes[first_event : first_event + len(segment_stops)] += np.diff(
                segment_stops, prepend=0
            )
        first_event += len(matches[0][1]) if matches else 0
    stops = np.cumsum(sizes)
    count = int(stops[-1]) if len(stops) else 0
    rows, events = _pooled_array(count, np.uint32), _pooled_array(count, np.int64)
    result_pairs.write_events(table.source_rows, stops, events)
    write_positions = stops - sizes
    first_event = 0
    for matches in matches_of_blocks:
        first_row = 0
        for segment, (segment_rows, segment_stops) in zip(snapshot, matches, strict=True):
            result_pairs.write_rows(
                segment_rows, segment_stops, first_row, write_positions[first_event:], rows
            )
            first_row += len(segment)
        first_event += len(matches[0][1]) if matches else 0
    return Pairs(snapshot, events, rows, stops, table, unusable)


def _pooled_array(count: int, kind: type[np.generic]) -> NDArray[Any]:
    """Return an uninitialised array in memory of Arrow's pool.

    The pool reuses memory. NumPy returns large arrays to the system, which clears them again.
    """
    return np.frombuffer(pa.allocate_buffer(max(count, 1) * np.dtype(kind).itemsize), kind)[:count]


def _text_attributes(columns: ColumnRegistry) -> set[str]:
    """Return the attributes whose text must be valid UTF-8.

    The text of a geometry is checked by the reader of geometries.
    """
    return columns.attributes(*(s for s in Storage if s != Storage.GEOMETRY))


def _reject_events(bad: BadRows, dead_letters: DeadLetters | None) -> None:
    """Append events that cannot be read to the dead letters, or raise if there is no list."""
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
        more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
        raise ModelError(f"{len(bad)} events cannot be read: {shown}{more}")
    if dead_letters is not None:
        dead_letters.extend(bad)
