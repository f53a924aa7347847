"""The figures of each micro-batch of a stream that matches, through a listener of Spark."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from fencepost.spark.matches.observed_metrics import EVENTS, MATCHES, PAYLOADS

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = logging.getLogger("fencepost.spark")


@dataclass(frozen=True, slots=True)
class Progress:
    """One micro-batch of a stream and one index; `str` says it in a line.

    Attributes
    ----------
    query : str
        The name of the query, or its id.
    index : str
        The folder.
    batch : int
    events : int
        That `match` was given.
    matches : int
        Pairs of an event and a subscription.
    dead_letters : int
        Payloads that `events_of` could not read, and with `match(..., dead_letters=True)` events
        that could not be read.
    version : int, optional
        Of the index that they were matched with; None where there were no events, or
        `Matcher.save` wrote the index, which counts no versions.
    lag_s : float
        From the time of the newest event, where the stream has such times
        (`withWatermark`), and from the beginning of the batch otherwise, until its matches were
        written. The first has the clocks of two machines in it.
    waiting : int, optional
        Messages that the source has beyond this batch, where it tells: MQTT and Kafka do, files
        do not.
    """

    query: str
    index: str
    batch: int
    events: int
    matches: int
    dead_letters: int
    version: int | None
    lag_s: float
    waiting: int | None

    def __str__(self) -> str:
        told = [
            f"{self.events:,} events",
            f"{self.matches:,} matches",
            f"{self.dead_letters:,} dead letters",
            "no version" if self.version is None else f"version {self.version}",
            f"{self.lag_s:.1f} s behind",
        ]
        if self.waiting is not None:
            told.append(f"{self.waiting:,} waiting")
        return f"batch {self.batch}: {', '.join(told)}"


class ProgressListener(StreamingQueryListener):
    """Reports every micro-batch of every query that matches: `spark.streams.addListener(...)`.

    Parameters
    ----------
    report : callable, optional
        Is given a `Progress` for each micro-batch and index; Spark calls it from a thread of
        its own, a moment after the batch. Without one they are logged as "fencepost.spark".
    """

    def __init__(self, report: Callable[[Progress], object] | None = None) -> None:
        self._report = report or (lambda progress: _LOG.info("%s", progress))
        self._ended: set[str] = set()
        self._told = threading.Condition()

    def wait(self, query: StreamingQuery, timeout_s: float = 60.0) -> bool:
        """Wait until all of a query that has ended was reported; whether it was in that time."""
        run = str(query.runId)
        with self._told:
            return self._told.wait_for(lambda: run in self._ended, timeout_s)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report a micro-batch."""
        for progress in progress_of(event.progress):
            self._report(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """All has been reported."""
        with self._told:
            self._ended.add(str(event.runId))
            self._told.notify_all()


def progress_of(told: StreamingQueryProgress) -> list[Progress]:
    """What Spark tells of a micro-batch, as of `query.recentProgress`: an entry for each index."""
    if "addBatch" not in told.durationMs:  # now and then it tells that there was nothing to do
        return []
    metrics = told.observedMetrics
    letters = sum(row["dead_letters"] for row in _named(metrics, PAYLOADS).values())
    matches = _named(metrics, MATCHES)
    lag_s, waiting = _lag_s(told), _waiting(told)
    found = [
        Progress(
            told.name or str(told.id),
            own.partition(":")[2],
            told.batchId,
            row["events"],
            matches[own]["matches"],
            matches[own]["dead_letters"] + letters,
            row["version"],
            lag_s,
            waiting,
        )
        for own, row in _named(metrics, EVENTS).items()
    ]
    return sorted(found, key=lambda progress: progress.index)


def _named(metrics: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Those of a kind, by the rest of their names."""
    start = f"{kind}:"
    return {n.removeprefix(start): row for n, row in metrics.items() if n.startswith(start)}


def _lag_s(told: StreamingQueryProgress) -> float:
    took_s = told.durationMs.get("triggerExecution", told.batchDuration) / 1000.0
    newest = told.eventTime.get("max")
    if newest is None:
        return took_s
    return (_time(told.timestamp) - _time(newest)).total_seconds() + took_s


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _waiting(told: StreamingQueryProgress) -> int | None:
    """How many messages lie between where a batch ended and what there is, over all sources."""
    ends = [(_offset(source.endOffset), _offset(source.latestOffset)) for source in told.sources]
    if not all(isinstance(end, dict) and isinstance(latest, dict) for end, latest in ends):
        return None
    return sum(max(_total(latest) - _total(end), 0) for end, latest in ends)


def _offset(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _total(offset: Any) -> int:
    """The sum of positions: of the one, or of those of all partitions."""
    if isinstance(offset, dict):
        return sum(_total(value) for value in offset.values())
    return offset if isinstance(offset, int) else 0
