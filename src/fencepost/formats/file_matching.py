"""Subscriptions of a file into a matcher, and the events of a file past it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine import match_pairs, scores_of_pairs
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.formats.dead_letters import DeadLetter, Letters, shortened
from fencepost.formats.event_files import Batch, EventFile
from fencepost.formats.feature_writer import json_text
from fencepost.formats.match_files import Matches, Nowhere, Sink
from fencepost.formats.subscription_files import Row, SubscriptionFile

Progress = Callable[[int], None]
_FIRST_ROWS = 100
_MOST_ROWS = 10_000
_PAIRS = 1_000_000  # matches to hold at once
_NONE = pa.array([], pa.string())


@dataclass(slots=True)
class Count:
    """What a run did."""

    events: int = 0
    matches: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Which matches of an event are kept: at most `top_k`, none with a lower score."""

    top_k: int | None = None
    min_score: float | None = None

    def kept(self, events: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of matches that are kept; they are sorted by event, then best first."""
        place = np.arange(len(events)) - np.searchsorted(events, events)
        kept = np.ones(len(events), bool)
        if self.top_k is not None:
            kept &= place < self.top_k
        if self.min_score is not None:
            kept &= scores >= self.min_score
        return np.flatnonzero(kept)


def subscribe_file(
    matcher: Matcher, file: SubscriptionFile, letters: Letters, progress: Progress
) -> int:
    """Add the subscriptions of a file; how many there are. Bad rows become dead letters."""
    added = 0
    for rows, done in file:
        fresh = _without_known(matcher, file.name, rows, letters)
        bad: DeadLetters = []
        added += matcher.subscribe_many([row.values for row in fresh], bad)
        for number, reason in bad:
            letters(_letter(file.name, fresh[number], reason))
        progress(done)
    return added


def _without_known(matcher: Matcher, name: str, rows: list[Row], letters: Letters) -> list[Row]:
    fresh = []
    for row in rows:
        id = row.values["id"]
        if isinstance(id, str) and id in matcher:
            reason = f"the id {id!r:.60} is in the file before; give each id once"
            letters(_letter(name, row, reason))
        else:
            fresh.append(row)
    return fresh


def _letter(name: str, row: Row, reason: str) -> DeadLetter:
    return DeadLetter(name, row.row, reason, row.raw, row.line)


def match_file(
    matcher: Matcher,
    file: EventFile,
    sink: Sink,
    letters: Letters,
    threads: int,
    progress: Progress,
    limits: Limits | None = None,
) -> Count:
    """Match the events of a file and hand the matches on, in the order of the events.

    Those of an event come by id or, with limits, best first, with their scores. Reading stays in
    this thread. Parts of a batch are matched in `threads` others, or here where that is one; a part
    is small enough that its matches fit in memory.
    """
    started = time.perf_counter()
    run = _Run(matcher, file.name, sink, letters, limits)
    if threads == 1:
        for batch in file:
            for part in run.parts(batch):
                run.finish(part, run.match(part))
            progress(batch.done)
    else:
        _match_in_threads(run, file, threads, progress)
    sink.close()
    run.count.seconds = time.perf_counter() - started
    return run.count


class _Found(NamedTuple):
    """What became of a part: its matches, its bad rows, and how many matches were held for it."""

    matches: Matches
    bad: DeadLetters
    held: int


def _match_in_threads(run: _Run, file: EventFile, threads: int, progress: Progress) -> None:
    under_way: deque[tuple[Batch, Future[_Found]]] = deque()

    def finish_one() -> None:
        part, future = under_way.popleft()
        run.finish(part, future.result())

    pool = ThreadPoolExecutor(threads)
    try:
        for batch in file:
            for part in run.parts(batch):
                under_way.append((part, pool.submit(run.match, part)))
                if len(under_way) > 2 * threads:
                    finish_one()
            while batch.pause and under_way:  # somebody is waiting at the other end of the pipe
                finish_one()
            progress(batch.done)
        while under_way:
            finish_one()
    finally:
        pool.shutdown(cancel_futures=True)


class _Run:
    """Matching parts of batches, and what becomes of them."""

    def __init__(
        self, matcher: Matcher, name: str, sink: Sink, letters: Letters, limits: Limits | None
    ) -> None:
        self._matcher, self._name, self._sink, self._letters = matcher, name, sink, letters
        self._limits = limits
        self._snapshot = matcher.view().snapshot()
        self._rows = _FIRST_ROWS
        self.count = Count()

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """A batch in parts that grow or shrink with the number of matches before."""
        start = 0
        while start < len(batch):
            stop = min(start + self._rows, len(batch))
            yield batch.part(start, stop)
            start = stop

    def match(self, part: Batch) -> _Found:
        """The matches of a part, in their order, and its bad rows."""
        bad: DeadLetters = []
        found = match_pairs(self._matcher, self._snapshot, part.events, 1, bad)
        if self._limits is None and isinstance(self._sink, Nowhere):
            return _Found(Matches(found.events, _NONE, _NONE), bad, len(found))
        used, codes = found.dictionary_encode()
        ids = found.names("id", used)
        rank = pc.rank(ids, tiebreaker="first").to_numpy()
        scores = None
        if self._limits is None:
            rows = np.lexsort((rank[codes], found.events))
        else:
            given = scores_of_pairs(self._matcher, self._snapshot, found)
            rows = np.lexsort((rank[codes], -given, found.events))
            rows = rows[self._limits.kept(found.events[rows], given[rows])]
            scores = given[rows]
        chosen = pa.array(codes[rows])
        subscribers = found.names("subscriber", used)
        matches = Matches(found.events[rows], ids.take(chosen), subscribers.take(chosen), scores)
        return _Found(matches, bad, len(found))

    def finish(self, part: Batch, found: _Found) -> None:
        """Hand on what was found, and learn from how much it was."""
        for row, reason in found.bad:
            line = None if part.lines is None else int(part.lines[row])
            raw = shortened(json_text(part.event(row)))
            self._letters(DeadLetter(self._name, int(part.rows[row]), reason, raw, line))
        if len(found.matches.events):
            self._sink.write(part, found.matches)
        self.count.events += len(part) - len(found.bad)
        self.count.matches += len(found.matches.events)
        each = max(found.held / len(part), 1e-9)
        self._rows = int(np.clip(_PAIRS / each, 1, _MOST_ROWS))
