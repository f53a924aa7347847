"""Matching many events at once: tables in, an Arrow table of pairs out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import FencepostError, ModelError
from fencepost.index.columns import Columns, Storage
from fencepost.kernels import pairs
from fencepost.match.engines import Events, Pairs
from fencepost.match.run import Found
from fencepost.match.snapshot import Snapshot, one_array
from fencepost.match.strings import Strings
from fencepost.model.arrow_text import readable
from fencepost.model.event import Row, attributes
from fencepost.model.geoarrow import with_named_geometries
from fencepost.plan.evaluate import EventValues

if TYPE_CHECKING:
    from fencepost.match.matcher import DeadLetters, Matcher

ROWS = 20_000  # events a block: enough to share the cost of a call, small enough for the cache
_FEWEST_ROWS = 1_000  # that are worth a thread
RESULT = pa.schema(
    [("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))]
)
Block = tuple[NDArray[np.int64], Events]  # rows of the table, and what is in them


def match_table(
    matcher: Matcher,
    shelves: Snapshot,
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
) -> pa.Table:
    """See `Matcher.match_batch`."""
    _check_threads(threads)
    answers = _answers(matcher, shelves, table, threads, dead_letters)
    found = sum(len(rows) for answer in answers for rows, _ in answer.by_shelf)
    if found >= sum(len(shelf) for shelf in shelves):
        return _result_of_many(answers, found, shelves)
    pairs = _pairs_of(answers, shelves)
    return _result(pairs[:, 0], pairs[:, 1], shelves)


def _check_threads(threads: object) -> None:
    if not isinstance(threads, int) or threads < 1:
        raise ModelError(f"threads must be a whole number from 1 on; saw {threads!r:.40}")


def match_pairs(
    matcher: Matcher,
    shelves: Snapshot,
    table: object,
    threads: int = 1,
    dead_letters: DeadLetters | None = None,
) -> Pairs:
    """Pairs of an event's row and a subscription's, counted through all shelves."""
    return _pairs_of(_answers(matcher, shelves, table, threads, dead_letters), shelves)


class _Answer(NamedTuple):
    """What is found for a block."""

    numbers: NDArray[np.int64]  # the rows of the table
    by_shelf: list[Found]


def _answers(
    matcher: Matcher,
    shelves: Snapshot,
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
) -> list[_Answer]:
    def run(block: Block) -> _Answer:
        numbers, events = block
        return _Answer(numbers, list(matcher._engine.by_shelf(shelves, events)))

    blocks = _blocks(table, matcher._columns, threads, dead_letters)
    if threads == 1:
        return [run(block) for block in blocks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, blocks))


def _pairs_of(answers: Sequence[_Answer], shelves: Snapshot) -> Pairs:
    """Pairs by block, then by shelf, then by event."""
    count = sum(len(rows) for answer in answers for rows, _ in answer.by_shelf)
    found = np.empty((count, 2), np.int64)
    at = 0
    for answer in answers:
        base = 0
        for shelf, (rows, stops) in zip(shelves, answer.by_shelf, strict=True):
            at = pairs.list_pairs(rows, stops, answer.numbers, base, found, at)
            base += len(shelf)
    return found


def _blocks(
    table: object, columns: Columns, threads: int, dead_letters: DeadLetters | None
) -> Iterable[Block]:
    """The events in parts, at least one for each thread if there are enough."""
    arrow = as_arrow(table)
    if arrow is not None:
        arrow = with_named_geometries(arrow, columns.geometric())
        rows, arrow, bad = readable(arrow, _read_as_text(columns))
        _set_aside(bad, dead_letters)
        size = _block_size(arrow.num_rows, threads)
        for first in range(0, arrow.num_rows, size):
            # A table without columns is as long as it is told: never ask beyond its end.
            part = arrow.slice(first, min(size, arrow.num_rows - first))
            yield rows[first : first + part.num_rows], part
        return
    events, bad = _events(table, columns)
    _set_aside(bad, dead_letters)
    size = _block_size(len(events), threads)
    for first in range(0, len(events), size):
        chosen = events[first : first + size]
        numbers = np.array([number for number, _ in chosen], np.int64)
        yield numbers, [event for _, event in chosen]


def _block_size(count: int, threads: int) -> int:
    return min(ROWS, max(-(-count // threads), _FEWEST_ROWS))


def _read_as_text(columns: Columns) -> set[str]:
    """The attributes whose text matters; as a geometry it is read, and judged, elsewhere."""
    return columns.attributes(*(s for s in Storage if s != Storage.GEOMETRY))


def _events(table: object, columns: Columns) -> tuple[list[tuple[int, EventValues]], DeadLetters]:
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
            values = EventValues(attributes(event), columns.tokeniser, columns.space)
        except FencepostError as error:
            bad.append((number, str(error)))
        else:
            good.append((number, values))
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


def _result_of_many(answers: Sequence[_Answer], count: int, shelves: Snapshot) -> pa.Table:
    """The same as `_result`, for so many pairs, at least as many as there are subscriptions."""
    ids, rank = shelves.ranked_ids()
    numbers = np.concatenate([np.empty(0, np.int64), *(answer.numbers for answer in answers)])
    parts = list(_parts(answers, rank, shelves))
    sizes = np.zeros(len(numbers), np.int64)
    for first, (_, ends, _) in parts:
        sizes[first : first + len(ends)] += np.diff(ends, prepend=0)
    places = np.cumsum(sizes) - sizes
    ranks = _reused(count, np.uint32)
    for first, (rows, ends, own) in parts:
        pairs.write_ranks(rows, ends, own, places[first:], ranks)
    seen, events = np.zeros(len(ids), np.uint8), _reused(count, np.int64)
    pairs.sort_ranks(ranks, places, numbers, seen, events)
    distinct = np.empty(len(ids), np.uint32)
    used = pairs.number_ranks(ranks, seen, distinct)
    if used < len(ids):
        ids = ids.take(pa.array(distinct[:used]))
    encoded = pa.DictionaryArray.from_arrays(pa.array(ranks.view(np.int32)), ids, safe=False)
    return pa.table([pa.array(events), encoded], schema=RESULT)


def _reused(count: int, kind: type[np.generic]) -> NDArray[Any]:
    """An array in Arrow's memory, which it uses again; the system's is given back and cleared."""
    return np.frombuffer(pa.allocate_buffer(max(count, 1) * np.dtype(kind).itemsize), kind)[:count]


def _parts(
    answers: Sequence[_Answer], rank: NDArray[np.uint32], shelves: Snapshot
) -> Iterator[tuple[int, tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]]]:
    """Rows, stops and ranks of each shelf and block, and how many events were before it."""
    first = 0
    for answer in answers:
        base = 0
        for shelf, (rows, stops) in zip(shelves, answer.by_shelf, strict=True):
            yield first, (rows, stops, rank[base : base + len(shelf)])
            base += len(shelf)
        first += len(answer.numbers)


def _result(events: NDArray[np.int64], rows: NDArray[np.int64], shelves: Snapshot) -> pa.Table:
    """Pairs as a table, by event and id; the dictionary holds the ids that occur."""
    distinct, codes = _numbered(rows.astype(np.uint32))
    ids = names_of(shelves, "id", distinct)
    order = _by_name(events, codes, ids)
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes[order]), ids)
    return pa.table([pa.array(events[order]), encoded], schema=RESULT)


def _numbered(rows: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The rows that occur, and which of them each is."""
    slots = np.full(1 << (2 * len(rows)).bit_length(), pairs.EMPTY, np.uint32)
    distinct, codes = np.empty(len(rows), np.uint32), np.empty(len(rows), np.int32)
    count = pairs.number_rows(rows, slots, distinct, codes)
    return distinct[:count].astype(np.int64), codes


def _by_name(
    events: NDArray[np.int64], codes: NDArray[np.int32], ids: pa.Array
) -> NDArray[np.int64]:
    """The order of pairs by event, then by id."""
    names = Strings(pa.chunked_array([ids]))
    high, low = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    pairs.beginnings(np.arange(len(ids), dtype=np.uint32), *names.buffers(), high, low)
    order = np.argsort(events, kind="stable")
    codes = codes[order]
    stops = np.flatnonzero(np.diff(events[order], append=-1)) + 1
    within = np.empty(len(order), np.int64)
    if pairs.sort_within(stops, high[codes], low[codes], within):
        return order[within]
    rank = np.empty(len(ids), np.int64)  # some begin with the same 16 bytes
    rank[pc.sort_indices(ids).to_numpy()] = np.arange(len(ids))
    return order[np.lexsort((rank[codes], events[order]))]


def names_of(shelves: Snapshot, column: str, rows: NDArray[np.int64]) -> pa.Array:
    """A column of the names of subscriptions, whose rows count through all shelves."""
    return one_array(shelves.column(column).take(pa.array(rows)))


def _set_aside(bad: DeadLetters, dead_letters: DeadLetters | None) -> None:
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
        more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
        raise ModelError(f"{len(bad)} events cannot be read: {shown}{more}")
    if dead_letters is not None:
        dead_letters.extend(bad)
