"""Provides `ProgressListener`, which reports figures of each micro-batch of a matching stream."""

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
    """The figures of one micro-batch and one index; `str` gives them in one line.

    Attributes
    ----------
    query : str
        The name of the query, or its id.
    index : str
        The path or address of the index.
    batch : int
        The number of the micro-batch.
    events : int
        The events that `match` was given.
    matches : int
        The pairs of an event and a subscription.
    dead_letters : int
        The payloads that `events_of` could not read and, with `match(..., dead_letters=True)`, the
        events that could not be read.
    version : int, optional
        The version of the index that the events were matched with. None if there were no events, or
        if the index has no versions because `Matcher.save` wrote it.
    lag_s : float
        Seconds until the matches were written: from the time of the newest event if the stream has
        event times (`withWatermark`), otherwise from the beginning of the batch. The former
        compares the clocks of two machines.
    waiting : int, optional
        The messages that the source holds beyond this batch. MQTT and Kafka report it, files do
        not.
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
        figures = [
            f"{self.events:,} events",
            f"{self.matches:,} matches",
            f"{self.dead_letters:,} dead letters",
            "no version" if self.version is None else f"version {self.version}",
            f"{self.lag_s:.1f} s behind",
        ]
        if self.waiting is not None:
            figures.append(f"{self.waiting:,} waiting")
        return f"batch {self.batch}: {', '.join(figures)}"


class ProgressListener(StreamingQueryListener):
    """Reports every micro-batch of every query that matches: `spark.streams.addListener(...)`.

    Parameters
    ----------
    report : callable, optional
        Is called with a `Progress` for each micro-batch and index, on a thread of Spark, shortly
        after the batch. By default the figures are logged to "fencepost.spark".
    """

    def __init__(self, report: Callable[[Progress], object] | None = None) -> None:
        self._report = report or (lambda progress: _LOG.info("%s", progress))
        self._ended: set[str] = set()
        self._run_ended = threading.Condition()

    def wait(self, query: StreamingQuery, timeout_s: float = 60.0) -> bool:
        """Wait until every micro-batch of an ended query was reported; False after the timeout."""
        run = str(query.runId)
        with self._run_ended:
            return self._run_ended.wait_for(lambda: run in self._ended, timeout_s)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: a query that starts has no figures."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report a micro-batch."""
        for progress in progress_of(event.progress):
            self._report(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Wake `wait`: Spark reports the end of a query after its last micro-batch."""
        with self._run_ended:
            self._ended.add(str(event.runId))
            self._run_ended.notify_all()


def progress_of(progress: StreamingQueryProgress) -> list[Progress]:
    """Return the figures of a micro-batch, one entry for each index.

    Parameters
    ----------
    progress : StreamingQueryProgress
        An entry of `query.recentProgress`, or what a listener of Spark receives.

    Returns
    -------
    list of Progress
        Empty if the query was idle.
    """
    if "addBatch" not in progress.durationMs:  # Spark also reports idle triggers, without a batch
        return []
    metrics = progress.observedMetrics
    dead_payloads = sum(row["dead_letters"] for row in _metrics_of_kind(metrics, PAYLOADS).values())
    matches = _metrics_of_kind(metrics, MATCHES)
    lag_s, waiting = _lag_s(progress), _waiting(progress)
    figures = [
        Progress(
            progress.name or str(progress.id),
            suffix.partition(":")[2],
            progress.batchId,
            row["events"],
            matches[suffix]["matches"],
            matches[suffix]["dead_letters"] + dead_payloads,
            row["version"],
            lag_s,
            waiting,
        )
        for suffix, row in _metrics_of_kind(metrics, EVENTS).items()
    ]
    return sorted(figures, key=lambda progress: progress.index)


def _metrics_of_kind(metrics: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the metrics of a kind, by the rest of their names."""
    start = f"{kind}:"
    return {n.removeprefix(start): row for n, row in metrics.items() if n.startswith(start)}


def _lag_s(progress: StreamingQueryProgress) -> float:
    duration_s = progress.durationMs.get("triggerExecution", progress.batchDuration) / 1000.0
    newest = progress.eventTime.get("max")
    if newest is None:
        return duration_s
    return (_time(progress.timestamp) - _time(newest)).total_seconds() + duration_s


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _waiting(progress: StreamingQueryProgress) -> int | None:
    """Return the messages between the end of the batch and the latest offsets of all sources."""
    ends = [
        (_offset(source.endOffset), _offset(source.latestOffset)) for source in progress.sources
    ]
    if not all(isinstance(end, dict) and isinstance(latest, dict) for end, latest in ends):
        return None
    return sum(max(_total(latest) - _total(end), 0) for end, latest in ends)


def _offset(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _total(offset: Any) -> int:
    """Return the sum of the positions of all topics and partitions in an offset."""
    if isinstance(offset, dict):
        return sum(_total(value) for value in offset.values())
    return offset if isinstance(offset, int) else 0
