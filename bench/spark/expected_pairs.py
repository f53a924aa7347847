"""Provides `find_expected_pairs`: the true matches, by Shapely and a sorted list of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from bench.peers.contest import Pairs, pairs_of
from bench.spark.city import CityFiles

JUDGE = "Shapely, fence by fence"
_ROWS = 100_000


def find_expected_pairs(files: CityFiles) -> Pairs:
    """Return the pairs of events and subscriptions that match, as numbers of their ids."""
    events = pq.read_table(files.events)
    tree = shapely.STRtree(shapely.from_wkb(events["geometry"].to_numpy()))
    kinds = events["kind"].to_numpy()
    event_words = _EventWords(events["text"])
    pairs = []
    for batch in pq.ParquetFile(files.subscriptions).iter_batches(_ROWS):
        polygons = shapely.from_wkb(batch["area"].to_numpy(zero_copy_only=False))
        fence, event = tree.query(polygons, predicate="intersects")
        same_kind = batch["kind"].to_numpy(zero_copy_only=False)[fence] == kinds[event]
        fence, event = fence[same_kind], event[same_kind]
        has_words = event_words.contains_all(batch["words"], fence, event)
        ids = pc.cast(batch["id"], pa.int64()).to_numpy()
        pairs.append(pairs_of(event[has_words], ids[fence[has_words]]))
    return np.sort(np.concatenate(pairs))


class _EventWords:
    """The words of events: a sorted array with a number for each pair of event and word."""

    def __init__(self, texts: pa.ChunkedArray) -> None:
        words = pc.split_pattern(texts, " ").combine_chunks()
        encoded = words.flatten().dictionary_encode()
        self._words = encoded.dictionary
        events = pc.list_parent_indices(words).to_numpy()
        self._pairs = np.unique(self._numbers(events, encoded.indices.to_numpy()))

    def _numbers(self, events: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        return events * (len(self._words) + 1) + words

    def contains_all(
        self, lists: pa.Array, row: NDArray[np.int64], event: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return for each k whether event[k] has all words of the list row[k]."""
        known = pc.index_in(lists.flatten(), self._words).fill_null(len(self._words)).to_numpy()
        offsets = lists.offsets.to_numpy() - lists.offsets[0].as_py()
        sizes = np.diff(offsets)[row]
        pair = np.repeat(np.arange(len(row)), sizes)
        position = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        required = self._numbers(event[pair], known[offsets[row][pair] + position].astype(np.int64))
        found_at = np.searchsorted(self._pairs, required)
        missing = self._pairs[np.minimum(found_at, len(self._pairs) - 1)] != required
        return np.asarray(np.bincount(pair[missing], minlength=len(row)) == 0)


def pairs_in(folder: Path) -> Pairs:
    """Return the pairs in the Parquet files that a job wrote."""
    table = pq.read_table(folder, columns=["id", "subscription"])
    rows = pc.cast(pc.cast(table["subscription"], pa.string()), pa.int64())
    return pairs_of(table["id"].to_numpy(), rows.to_numpy())


def count_differing(pairs: Pairs, expected: Pairs) -> int:
    """Return the number of missing, superfluous and duplicate pairs."""
    distinct = np.unique(pairs)
    duplicates = len(pairs) - len(distinct)
    return duplicates + len(np.setxor1d(distinct, expected, assume_unique=True))
