"""`subscribe_file` and `match_file`: subscriptions and events of files, in one matcher."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.engine import AttributeWatch, MatchLimits, match_pairs, rank_pairs
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, shorten
from fencepost.formats.event_files import Batch, EventFile
from fencepost.formats.feature_writer import json_text
from fencepost.formats.match_files import Matches, NullSink, Sink
from fencepost.formats.subscription_files import SubscriptionFile, SubscriptionRow

Progress = Callable[[int], None]
_INITIAL_ROWS = 100
_MAX_ROWS = 10_000
_MAX_PAIRS = 1_000_000  # matches that a part should have at most
_NO_STRINGS = pa.array([], pa.string())


@dataclass(slots=True)
class MatchTotals:
    """How many events and matches a run had, how long it took, and what was suspicious.

    Attributes
    ----------
    attributes_not_found : list of str
        Attributes that subscriptions name, and that no event had.
    warning : str
        What to tell the user about them; empty if there are none.
    """

    events: int = 0
    matches: int = 0
    seconds: float = 0.0
    attributes_not_found: list[str] = field(default_factory=list)
    warning: str = ""

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else 0.0


def subscribe_file(
    matcher: Matcher, file: SubscriptionFile, on_dead_letter: DeadLetterHandler, progress: Progress
) -> int:
    """Add the subscriptions of a file and return their number; bad rows become dead letters."""
    added = 0
    for rows, done in file:
        fresh = _drop_known_ids(matcher, file.name, rows, on_dead_letter)
        bad: DeadLetters = []
        added += matcher.subscribe_many([row.values for row in fresh], bad)
        for number, reason in bad:
            on_dead_letter(_dead_letter(file.name, fresh[number], reason))
        progress(done)
    return added


def repeated_id_message(id: str | int) -> str:
    """Return the reason of a row whose id an earlier row has."""
    return f"the id {str(id)!r:.60} occurs earlier in the file; give each id once"


def _drop_known_ids(
    matcher: Matcher, name: str, rows: list[SubscriptionRow], on_dead_letter: DeadLetterHandler
) -> list[SubscriptionRow]:
    fresh = []
    for row in rows:
        id = row.values["id"]
        if isinstance(id, str | int) and id in matcher:
            on_dead_letter(_dead_letter(name, row, repeated_id_message(id)))
        else:
            fresh.append(row)
    return fresh


def _dead_letter(name: str, row: SubscriptionRow, reason: str) -> DeadLetter:
    return DeadLetter(name, row.row, reason, row.raw, row.line)


def match_file(
    matcher: Matcher,
    file: EventFile,
    sink: Sink,
    on_dead_letter: DeadLetterHandler,
    threads: int,
    progress: Progress,
    limits: MatchLimits | None = None,
) -> MatchTotals:
    """Match the events of a file and write the matches to a sink, in the order of the events.

    The matches of an event are ordered by id or, with limits, best first, with scores. This thread
    reads and writes. Parts of a batch are matched in `threads` other threads, or in this one if
    `threads` is 1. The size of parts adapts so that the matches of a part fit in memory.
    """
    started = time.perf_counter()
    run = _MatchRun(matcher, file.name, sink, on_dead_letter, limits)
    if threads == 1:
        for batch in file:
            for part in run.parts(batch):
                run.finish(part, run.match(part))
            progress(batch.done)
    else:
        _match_in_threads(run, file, threads, progress)
    sink.close()
    if run.totals.events:
        run.totals.attributes_not_found = sorted(run.watch.pending)
        run.totals.warning = run.watch.message(f"no event of {file.name}", file.names)
    run.totals.seconds = time.perf_counter() - started
    return run.totals


class _PartResult(NamedTuple):
    """The matches of a part, its bad rows, and the number of matches before limits."""

    matches: Matches
    bad: DeadLetters
    unlimited_count: int


def _match_in_threads(run: _MatchRun, file: EventFile, threads: int, progress: Progress) -> None:
    pending: deque[tuple[Batch, Future[_PartResult]]] = deque()

    def finish_one() -> None:
        part, future = pending.popleft()
        run.finish(part, future.result())

    pool = ThreadPoolExecutor(threads)
    try:
        for batch in file:
            for part in run.parts(batch):
                pending.append((part, pool.submit(run.match, part)))
                if len(pending) > 2 * threads:
                    finish_one()
            while batch.pause and pending:  # the sender may be waiting for the matches
                finish_one()
            progress(batch.done)
        while pending:
            finish_one()
    finally:
        pool.shutdown(cancel_futures=True)


class _MatchRun:
    """Matches parts of batches, and writes matches and dead letters."""

    def __init__(
        self,
        matcher: Matcher,
        name: str,
        sink: Sink,
        on_dead_letter: DeadLetterHandler,
        limits: MatchLimits | None,
    ) -> None:
        self._matcher, self._name, self._sink = matcher, name, sink
        self._on_dead_letter, self._limits = on_dead_letter, limits
        self._snapshot = matcher.view().snapshot()
        self._rows = _INITIAL_ROWS
        self.totals = MatchTotals()
        self.watch = AttributeWatch(matcher.view().columns)

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """Split a batch into parts, sized by the number of matches of earlier parts."""
        start = 0
        while start < len(batch):
            stop = min(start + self._rows, len(batch))
            yield batch.part(start, stop)
            start = stop

    def match(self, part: Batch) -> _PartResult:
        """Return the matches of a part, in order, and its bad rows."""
        bad: DeadLetters = []
        pairs = match_pairs(self._matcher, self._snapshot, part.events, 1, bad)
        if self.watch.pending:
            self.watch.see(pairs.table)
        if self._limits is None and isinstance(self._sink, NullSink):
            return _PartResult(Matches(pairs.events, _NO_STRINGS, _NO_STRINGS), bad, len(pairs))
        subscription_rows, codes = pairs.dictionary_encode()
        ids = pairs.names("id", subscription_rows)
        scores = None
        if self._limits is None:
            rank = pc.rank(ids, tiebreaker="first").to_numpy()
            rows = np.lexsort((rank[codes], pairs.events))
        else:
            rows, scores = rank_pairs(self._matcher, pairs, ids, codes, self._limits)
        chosen = pa.array(codes[rows])
        subscribers = pairs.names("subscriber", subscription_rows)
        matches = Matches(pairs.events[rows], ids.take(chosen), subscribers.take(chosen), scores)
        return _PartResult(matches, bad, len(pairs))

    def finish(self, part: Batch, result: _PartResult) -> None:
        """Write the matches and dead letters of a part, and adapt the size of parts."""
        for row, reason in result.bad:
            line = None if part.lines is None else int(part.lines[row])
            raw = shorten(json_text(part.event(row)))
            self._on_dead_letter(DeadLetter(self._name, int(part.rows[row]), reason, raw, line))
        if len(result.matches.events):
            self._sink.write(part, result.matches)
        self.totals.events += len(part) - len(result.bad)
        self.totals.matches += len(result.matches.events)
        matches_per_event = max(result.unlimited_count / len(part), 1e-9)
        self._rows = int(np.clip(_MAX_PAIRS / matches_per_event, 1, _MAX_ROWS))
