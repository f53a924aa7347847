"""What one would write without us: a Shapely STRtree, broadcast, asked in `mapInPandas`.

Two of them. `OneTree` asks one tree of all fences for those that a point intersects, and then looks
at kinds and words. `TreesByKind` has a tree for each kind, asks it for boxes only, and tests points
in polygons by `intersects_xy`, which is faster than the tree's predicate.
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

from bench.spark.city import Files
from bench.spark.timing import Run, seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_TREE = "STRtree, broadcast"
BY_KIND = "STRtree for each kind, boxes, then intersects_xy"
Found = tuple[NDArray[np.int64], NDArray[np.int64]]


class OneTree:
    """One tree of all fences."""

    def __init__(self, ids: Any, polygons: Any, kinds: Any, words: list[frozenset[str]]) -> None:
        self._ids, self._kinds, self._words = ids, kinds, words
        self._tree = shapely.STRtree(polygons)

    def __call__(self, events: pd.DataFrame) -> pd.DataFrame:
        """The matches of some events."""
        points = shapely.from_wkb(events["geometry"].to_numpy())
        event, fence = self._tree.query(points, predicate="intersects")
        alike = self._kinds[fence] == events["kind"].to_numpy()[event]
        return _answers(events, event[alike], fence[alike], self._ids, self._words)


class TreesByKind:
    """A tree for each kind."""

    def __init__(self, ids: Any, polygons: Any, kinds: Any, words: list[frozenset[str]]) -> None:
        self._ids, self._polygons, self._words = ids, polygons, words
        self._rows = {kind: np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
        self._trees = {kind: shapely.STRtree(polygons[own]) for kind, own in self._rows.items()}

    def __call__(self, events: pd.DataFrame) -> pd.DataFrame:
        """The matches of some events."""
        points = shapely.from_wkb(events["geometry"].to_numpy())
        x, y = shapely.get_x(points), shapely.get_y(points)
        found: list[Found] = []
        for kind, rows in events.groupby("kind").indices.items():
            if kind in self._trees:
                event, fence = self._trees[kind].query(points[rows])
                found.append((rows[event], self._rows[kind][fence]))
        event, fence = (np.concatenate(own) for own in zip(*found, strict=True))
        inside = shapely.intersects_xy(self._polygons[fence], x[event], y[event])
        return _answers(events, event[inside], fence[inside], self._ids, self._words)


def _answers(
    events: pd.DataFrame, event: Any, fence: Any, ids: Any, words: list[frozenset[str]]
) -> pd.DataFrame:
    """Of pairs those whose words are all said."""
    said = [set(text.split()) for text in events["text"]]
    kept = [
        k
        for k, (own, row) in enumerate(zip(event.tolist(), fence.tolist(), strict=True))
        if words[row] <= said[own]
    ]
    numbers = events["id"].to_numpy()[event[kept]]
    return pd.DataFrame({"id": numbers, "subscription": ids[fence[kept]]})


def measure(
    spark: SparkSession,
    files: Files,
    folder: Path,
    name: str,
    make: Callable[..., Any],
    rounds: int,
) -> Run:
    """Build, broadcast and match."""
    from pyspark import cloudpickle

    # Workers need not find this file.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    # As ours have after building the index, theirs have workers that run.
    spark.range(1_000, numPartitions=2).mapInPandas(_same, "id long").count()
    shared: list[Any] = []
    build_s = seconds(lambda: shared.append(spark.sparkContext.broadcast(built(files, make))))
    (tree,) = shared

    def matches(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield tree.value(frame)

    def match() -> None:
        events = spark.read.parquet(str(files.events))
        found = events.mapInPandas(matches, "id long, subscription string")
        found.write.mode("overwrite").parquet(str(folder / "matches"))

    match_s = [seconds(match) for _ in range(1 + rounds)]
    tree.destroy()
    return Run(name, build_s, match_s, folder / "matches")


def _same(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from frames


def built(files: Files, make: Callable[..., Any]) -> Any:
    table = pq.read_table(files.subscriptions)
    polygons = shapely.from_wkb(table["area"].to_numpy())
    ids, kinds = (table[name].to_numpy() for name in ("id", "kind"))
    return make(ids, polygons, kinds, [frozenset(own) for own in table["words"].to_pylist()])
