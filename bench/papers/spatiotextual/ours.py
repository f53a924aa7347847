"""Our engine: a `Matcher` filled by columns, measured at three levels.

The paper's trees and the list of rarest tokens get tokens as numbers. Our engine gets words: the
look-up of words is timed, even at the level of the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from bench.papers.spatiotextual import token_sets
from bench.papers.spatiotextual.methods import WARM_UP, Matches, Method, timed
from bench.papers.spatiotextual.token_sets import Floats, TokenBoxes
from bench.papers.spatiotextual.workloads import Workload
from fencepost.engine.columns.event_columns import encode_events
from fencepost.engine.kernel_runner import KernelRunner, events_of
from fencepost.engine.matcher import Matcher
from fencepost.events.table import EventTable
from fencepost.kernels.match.segment_search import look_up
from fencepost.kernels.runtime.struct_references import struct_ref

KERNEL = "Fencepost, kernel"
BATCH = "Fencepost, batch of lists"
TEXT = "Fencepost, batch of texts"
PLACE, WORDS = "place", "words"
Answer: TypeAlias = tuple[pa.Table, int]  # the result of `match_batch`, the number of messages


class Ours:
    """A matcher with all subscriptions of a workload."""

    def __init__(self, workload: Workload) -> None:
        self._words = token_sets.spell_words(workload.topics.vocabulary)
        subscriptions = workload.subscriptions
        _new_matcher(*self._columns(subscriptions.first(WARM_UP)))  # compiles
        columns = self._columns(subscriptions)
        self.matcher, self.build_s = timed(lambda: _new_matcher(*columns))
        self.snapshot = self.matcher.view().snapshot()
        self.nbytes = int(self.matcher.stats()["bytes"])
        self._runner = KernelRunner()

    def _columns(self, subscriptions: TokenBoxes) -> tuple[pa.Array, Floats, pa.Array]:
        """Return ids, rectangles and words of subscriptions."""
        ids = pc.cast(pa.array(np.arange(len(subscriptions))), pa.string())
        return ids, subscriptions.boxes, token_sets.word_lists(subscriptions, self._words)

    def methods(self, *names: str) -> list[Method]:
        """Return the matcher at the named levels; at all levels if no name is given."""
        ready = {KERNEL: self._kernel, BATCH: self._batch_of_lists, TEXT: self._batch_of_texts}
        return [
            Method(
                name,
                self.build_s,
                self.nbytes,
                ready[name],
                *(() if name == KERNEL else (rows_of,)),
            )
            for name in names or tuple(ready)
        ]

    def _kernel(self, messages: TokenBoxes) -> Callable[[], Matches]:
        columns = self.matcher.view().columns
        block = struct_ref(
            encode_events(columns, EventTable.read(self.table(messages), columns.space))
        )
        now = time.time_ns()

        def run() -> Matches:
            parts = self._runner.match(self.snapshot, block, now)
            return parts[0] if len(parts) == 1 else self._merge(parts)

        return run

    def look_up(self, messages: TokenBoxes) -> Callable[[], None]:
        """Return a call that looks up words only, which is a part of the kernel."""
        columns = self.matcher.view().columns
        block = encode_events(columns, EventTable.read(self.table(messages), columns.space))
        starts, stops = block.item_start[:-1], block.item_start[1:]
        numbers = np.empty(len(starts), np.int64)

        def run() -> None:
            for segment in self.snapshot:
                look_up(segment.struct_ref, block.text, starts, stops, numbers)

        return run

    def _merge(self, parts: list[Matches]) -> Matches:
        """Return the matches of several segments as one, with rows numbered across segments."""
        sizes = [len(segment) for segment in self.snapshot]
        bases = np.cumsum([0, *sizes[:-1]])
        events = np.concatenate([events_of(stops) for _, stops in parts])
        rows = np.concatenate([rows + base for (rows, _), base in zip(parts, bases, strict=True)])
        order = np.argsort(events, kind="stable")
        stops = np.sum([stops for _, stops in parts], axis=0)
        return rows[order].astype(np.uint32), stops

    def _batch_of_lists(self, messages: TokenBoxes) -> Callable[[], Answer]:
        return self._batch(messages, self.table(messages))

    def _batch_of_texts(self, messages: TokenBoxes) -> Callable[[], Answer]:
        table = self.table(messages)
        texts = pc.binary_join(table[WORDS].combine_chunks(), " ")
        return self._batch(messages, table.set_column(1, WORDS, texts))

    def _batch(self, messages: TokenBoxes, table: pa.Table) -> Callable[[], Answer]:
        return lambda: (self.matcher.match_batch(table), len(messages))

    def table(self, messages: TokenBoxes) -> pa.Table:
        """Return messages as a table of events."""
        lists = token_sets.word_lists(messages, self._words)
        return pa.table({PLACE: _geometries(messages), WORDS: lists})


def _new_matcher(ids: pa.Array, boxes: Floats, words: pa.Array) -> Matcher:
    """Return a matcher with these subscriptions, ready to match."""
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        ids, regions={PLACE: (boxes, "S_INTERSECTS")}, keywords={WORDS: words}
    )
    matcher.view().snapshot()
    return matcher


def rows_of(answer: Answer) -> Matches:
    """Return the rows of an answer of `match_batch`, whose ids are the rows as strings."""
    table, count = answer
    rows = pc.cast(pc.cast(table["subscription"], pa.string()), pa.int64()).to_numpy()
    events = table["event"].to_numpy()
    order = np.lexsort((rows, events))  # `match_batch` sorts them by id, which is a string
    stops = np.searchsorted(events, np.arange(count), side="right")
    return rows[order].astype(np.uint32), stops


def _geometries(messages: TokenBoxes) -> pa.Array:
    """Return points and rectangles as WKB."""
    x0, y0, x1, y1 = messages.boxes.T
    points = (x0 == x1) & (y0 == y1)
    shapes = np.where(points, shapely.points(x0, y0), shapely.box(x0, y0, x1, y1))
    return pa.array(shapely.to_wkb(shapes), pa.binary())
