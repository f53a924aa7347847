"""What is right: Shapely over all events, fence by fence, and words looked up in a sorted list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from bench.peers.contest import Pairs, pairs_of
from bench.spark.city import Files

JUDGE = "Shapely, fence by fence"
_ROWS = 100_000


def right_pairs(files: Files) -> Pairs:
    """Every pair of an event and a subscription that it answers, by the numbers of their ids."""
    events = pq.read_table(files.events)
    tree = shapely.STRtree(shapely.from_wkb(events["geometry"].to_numpy()))
    kinds = events["kind"].to_numpy()
    said = _Said(events["text"])
    found = []
    for batch in pq.ParquetFile(files.subscriptions).iter_batches(_ROWS):
        polygons = shapely.from_wkb(batch["area"].to_numpy(zero_copy_only=False))
        fence, event = tree.query(polygons, predicate="intersects")
        alike = batch["kind"].to_numpy(zero_copy_only=False)[fence] == kinds[event]
        fence, event = fence[alike], event[alike]
        answered = said.all_of(batch["words"], fence, event)
        ids = pc.cast(batch["id"], pa.int64()).to_numpy()
        found.append(pairs_of(event[answered], ids[fence[answered]]))
    return np.sort(np.concatenate(found))


class _Said:
    """Which words events have: event and word as one number each, ascending."""

    def __init__(self, texts: pa.ChunkedArray) -> None:
        words = pc.split_pattern(texts, " ").combine_chunks()
        encoded = words.flatten().dictionary_encode()
        self._words = encoded.dictionary
        events = pc.list_parent_indices(words).to_numpy()
        self._pairs = np.unique(self._numbers(events, encoded.indices.to_numpy()))

    def _numbers(self, events: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        return events * (len(self._words) + 1) + words

    def all_of(
        self, lists: pa.Array, row: NDArray[np.int64], event: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether event[k] has all words of the list row[k]."""
        known = pc.index_in(lists.flatten(), self._words).fill_null(len(self._words)).to_numpy()
        offsets = lists.offsets.to_numpy() - lists.offsets[0].as_py()
        sizes = np.diff(offsets)[row]
        pair = np.repeat(np.arange(len(row)), sizes)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        asked = self._numbers(event[pair], known[offsets[row][pair] + place].astype(np.int64))
        at = np.searchsorted(self._pairs, asked)
        missing = self._pairs[np.minimum(at, len(self._pairs) - 1)] != asked
        return np.asarray(np.bincount(pair[missing], minlength=len(row)) == 0)


def pairs_in(folder: Path) -> Pairs:
    """The pairs in Parquet files that a job wrote."""
    table = pq.read_table(folder, columns=["id", "subscription"])
    rows = pc.cast(pc.cast(table["subscription"], pa.string()), pa.int64())
    return pairs_of(table["id"].to_numpy(), rows.to_numpy())


def differing(found: Pairs, right: Pairs) -> int:
    """How many pairs are missing, too many, or there twice."""
    distinct = np.unique(found)
    twice = len(found) - len(distinct)
    return twice + len(np.setxor1d(distinct, right, assume_unique=True))
