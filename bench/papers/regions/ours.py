"""Fencepost's own engine: a `Matcher`, and what is below it."""

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
    """A matcher whose subscriptions are all in one segment, asked at three levels."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._columns = matcher.view().columns
        self._shelves = matcher.view().snapshot()
        self._runner = KernelRunner()
        self._now = time.time_ns()

    def encode_events(self, message: BaseGeometry) -> Any:
        """A message ready for the kernel."""
        return struct_ref(encode_events(self._columns, EventTable([{ATTRIBUTE: message}])))

    def match_block(self, block: Any) -> NDArray[np.uint32]:
        """The rows of the subscriptions that a message, laid out, answers."""
        return self._runner.match(self._shelves, block, self._now)[0][0]

    def match(self, message: BaseGeometry) -> NDArray[np.uint32]:
        """The same for a Shapely geometry."""
        event = {ATTRIBUTE: message}
        found = self._runner.match_one(self._shelves, self._columns, event, self._now)
        if found is None:
            return self.match_block(self.encode_events(message))
        return np.array(found[1:], np.uint32)

    def match_batch(self, messages: pa.Table) -> pa.Table:
        """All pairs of a message's row and a subscription's id."""
        return self.matcher.match_batch(messages)

    def rows_of_batch(self, messages: pa.Table) -> list[NDArray[np.int64]]:
        """The rows of the subscriptions that each message answers, from `match_batch`."""
        found = self.match_batch(messages)
        rows = found["subscription"].cast(pa.string()).cast(pa.int64()).to_numpy()
        ends = np.searchsorted(found["event"].to_numpy(), np.arange(1, messages.num_rows))
        return [np.sort(own) for own in np.split(rows, ends)]  # they come by id, a text


def of_workload(workload: Workload) -> Ours:
    """One subscription for each constraint; its row is the constraint's number."""
    matcher = Matcher()
    relations = [FUNCTIONS[code].name for code in workload.relations.tolist()]
    ids = list(map(str, range(len(workload))))
    matcher.subscribe_columns(ids, regions={ATTRIBUTE: (workload.regions, relations)})
    return Ours(matcher)


def of_filters(filters: Sequence[Sequence[Filter]]) -> Ours:
    """One subscription for each predicate, of many filters.

    Written out, such an expression can be longer than what the reader takes; the filters go in as
    they would come out of it.
    """
    matcher = Matcher()
    matcher._segments.add(
        [
            Subscription(str(number), None, str(number), NEVER_EXPIRES, tuple(own))
            for number, own in enumerate(filters)
        ],
        replace=False,
    )
    return Ours(matcher)


def table_of(messages: Geometries) -> pa.Table:
    """Messages as a table of events."""
    return pa.table({ATTRIBUTE: pa.array(shapely.to_wkb(messages), pa.binary())})
