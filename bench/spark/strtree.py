"""Measures what one would write without Fencepost: a broadcast Shapely STRtree in `mapInPandas`.

There are two versions. `OneTree` queries one tree of all fences for those that intersect a point,
and then compares kinds and words. `TreesByKind` has a tree for each kind, queries it for bounding
boxes only, and tests the points with `intersects_xy`, which is faster than the tree's predicate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from bench.spark.city import CityFiles
from bench.spark.timing import Run, seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_TREE = "STRtree, broadcast"
BY_KIND = "STRtree for each kind, boxes, then intersects_xy"
EventFencePairs = tuple[NDArray[np.int64], NDArray[np.int64]]


class OneTree:
    """One tree of all fences."""

    def __init__(self, ids: Any, polygons: Any, kinds: Any, words: list[frozenset[str]]) -> None:
        self._ids, self._kinds, self._words = ids, kinds, words
        self._tree = shapely.STRtree(polygons)

    def __call__(self, events: pd.DataFrame) -> pd.DataFrame:
        """Return the matches of events."""
        points = shapely.from_wkb(events["geometry"].to_numpy())
        event, fence = self._tree.query(points, predicate="intersects")
        same_kind = self._kinds[fence] == events["kind"].to_numpy()[event]
        return _matches_with_words(
            events, event[same_kind], fence[same_kind], self._ids, self._words
        )


class TreesByKind:
    """A tree for each kind."""

    def __init__(self, ids: Any, polygons: Any, kinds: Any, words: list[frozenset[str]]) -> None:
        self._ids, self._polygons, self._words = ids, polygons, words
        self._rows = {kind: np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
        self._trees = {kind: shapely.STRtree(polygons[rows]) for kind, rows in self._rows.items()}

    def __call__(self, events: pd.DataFrame) -> pd.DataFrame:
        """Return the matches of events."""
        points = shapely.from_wkb(events["geometry"].to_numpy())
        x, y = shapely.get_x(points), shapely.get_y(points)
        candidates: list[EventFencePairs] = []
        for kind, rows in events.groupby("kind").indices.items():
            if kind in self._trees:
                event, fence = self._trees[kind].query(points[rows])
                candidates.append((rows[event], self._rows[kind][fence]))
        event, fence = (np.concatenate(column) for column in zip(*candidates, strict=True))
        inside = shapely.intersects_xy(self._polygons[fence], x[event], y[event])
        return _matches_with_words(events, event[inside], fence[inside], self._ids, self._words)


def _matches_with_words(
    events: pd.DataFrame, event: Any, fence: Any, ids: Any, words: list[frozenset[str]]
) -> pd.DataFrame:
    """Return the pairs whose event has all words of the fence."""
    event_words = [set(text.split()) for text in events["text"]]
    with_words = [
        k
        for k, (event_row, fence_row) in enumerate(zip(event.tolist(), fence.tolist(), strict=True))
        if words[fence_row] <= event_words[event_row]
    ]
    ids_of_events = events["id"].to_numpy()[event[with_words]]
    return pd.DataFrame({"id": ids_of_events, "subscription": ids[fence[with_words]]})


def measure(
    spark: SparkSession,
    files: CityFiles,
    folder: Path,
    name: str,
    make: Callable[..., Any],
    rounds: int,
) -> Run:
    """Build, broadcast and match, and return the times."""
    from pyspark import cloudpickle

    # Pickled by value, so that workers need not import this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    # Starts the Python workers, which building the index does for Fencepost.
    spark.range(1_000, numPartitions=2).mapInPandas(_identity, "id long").count()
    shared: list[Any] = []
    build_s = seconds(lambda: shared.append(spark.sparkContext.broadcast(build(files, make))))
    (tree,) = shared

    def matches(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield tree.value(frame)

    def match() -> None:
        events = spark.read.parquet(str(files.events))
        result = events.mapInPandas(matches, "id long, subscription string")
        result.write.mode("overwrite").parquet(str(folder / "matches"))

    match_s = [seconds(match) for _ in range(1 + rounds)]
    tree.destroy()
    return Run(name, build_s, match_s, folder / "matches")


def _identity(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from frames


def build(files: CityFiles, make: Callable[..., Any]) -> Any:
    """Read the fences and make the trees."""
    table = pq.read_table(files.subscriptions)
    polygons = shapely.from_wkb(table["area"].to_numpy())
    ids, kinds = (table[name].to_numpy() for name in ("id", "kind"))
    return make(ids, polygons, kinds, [frozenset(words) for words in table["words"].to_pylist()])
