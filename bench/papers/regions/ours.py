"""Our engine: a `Matcher`, and the kernel below it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from bench.papers.regions.predicates import ATTRIBUTE, FUNCTIONS
from bench.papers.regions.workloads import Workload
from fencepost.engine.columns.event_columns import encode_events
from fencepost.engine.event_sampler import EventSampler
from fencepost.engine.kernel_runner import KernelRunner
from fencepost.engine.matcher import Matcher
from fencepost.engine.segment_builder import NEVER_EXPIRES
from fencepost.engine.subscriptions import Subscription
from fencepost.events.table import EventTable
from fencepost.filters.checks import Filter
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.testing import Geometries

KERNEL = "Fencepost, kernel"
WITH_LAYOUT = "Fencepost, with layout"
BATCH = "Fencepost, batch"


class Ours:
    """A matcher with one segment: its kernel, `match` and `match_batch`."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._columns = matcher.view().columns
        self._snapshot = matcher.view().snapshot()
        self._runner = KernelRunner()
        self._now = time.time_ns()
        self._sampler = EventSampler()

    def encode_events(self, message: BaseGeometry) -> Any:
        """Return a message in the form that the kernel matches."""
        return struct_ref(encode_events(self._columns, EventTable([{ATTRIBUTE: message}])))

    def match_block(self, block: Any) -> NDArray[np.uint32]:
        """Return the rows of the subscriptions that an encoded message matches."""
        return self._runner.match(self._snapshot, block, self._now)[0][0]

    def match(self, message: BaseGeometry) -> NDArray[np.uint32]:
        """Return the rows of the subscriptions that a Shapely geometry matches."""
        event = {ATTRIBUTE: message}
        stop_and_rows = self._runner.match_one(
            self._snapshot, self._columns, event, self._now, self._sampler
        )
        if stop_and_rows is None:
            return self.match_block(self.encode_events(message))
        return np.array(stop_and_rows[1:], np.uint32)

    def match_batch(self, messages: pa.Table) -> pa.Table:
        """Return all pairs of a message's row and a subscription's id."""
        return self.matcher.match_batch(messages)

    def rows_of_batch(self, messages: pa.Table) -> list[NDArray[np.int64]]:
        """Return the rows of the subscriptions that each message matches, by `match_batch`."""
        matches = self.match_batch(messages)
        rows = matches["subscription"].cast(pa.string()).cast(pa.int64()).to_numpy()
        ends = np.searchsorted(matches["event"].to_numpy(), np.arange(1, messages.num_rows))
        return [
            np.sort(message_rows) for message_rows in np.split(rows, ends)
        ]  # `match_batch` sorts them by id, which is a string


def of_workload(workload: Workload) -> Ours:
    """Return a matcher with a subscription for each constraint, whose row is its number."""
    matcher = Matcher(space="planar")
    relations = [FUNCTIONS[code].name for code in workload.relations.tolist()]
    ids = list(map(str, range(len(workload))))
    matcher.subscribe_columns(ids, regions={ATTRIBUTE: (workload.regions, relations)})
    return Ours(matcher)


def of_filters(filters: Sequence[Sequence[Filter]]) -> Ours:
    """Return a matcher with a subscription for each predicate.

    As text, such an expression can exceed the limit of the parser, so the filters are added in
    normal form.
    """
    matcher = Matcher(space="planar")
    matcher._segments.add(
        [
            Subscription(str(number), None, str(number), NEVER_EXPIRES, tuple(predicate_filters))
            for number, predicate_filters in enumerate(filters)
        ],
        replace=False,
    )
    return Ours(matcher)


def table_of(messages: Geometries) -> pa.Table:
    """Return messages as a table of events."""
    return pa.table({ATTRIBUTE: pa.array(shapely.to_wkb(messages), pa.binary())})
