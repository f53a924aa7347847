"""Draws subscriptions of a region, a kind, a price range and keywords, and matching events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from bench.peers.polygons import spread, stars
from fencepost import Matcher
from fencepost.testing import Geometries

SIDE_M = 100_000.0
REGION_POINTS = (5, 12)  # minimum and maximum
COVER = 1_000.0  # regions that a point is in, on average
KINDS = 10
PRICES = 1_000
WORDS = 3_000
REQUIRED_WORDS = (1, 2)  # of a subscription: minimum and maximum
EXTRA_WORDS = 15  # of an event, beside the words of the subscription that it matches
_CHUNK_ROWS = 50_000  # subscriptions whose texts are in memory at once


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Subscriptions as columns; row k has words[word_start[k]:word_start[k + 1]]."""

    regions: Geometries
    kinds: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    words: NDArray[np.int64]
    word_start: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.regions)

    def word_lists(self, begin: int = 0, end: int | None = None) -> list[list[str]]:
        """Return the words of the rows from `begin` to `end`."""
        starts = self.word_start[begin : None if end is None else end + 1].tolist()
        texts = [f"w{word}" for word in self.words[starts[0] : starts[-1]].tolist()]
        return [texts[a - starts[0] : b - starts[0]] for a, b in pairwise(starts)]

    def expressions(self, begin: int, end: int) -> Iterator[str]:
        """Yield the rows from `begin` to `end` as CQL2."""
        regions = shapely.to_wkt(self.regions[begin:end], rounding_precision=1)
        columns = (self.kinds, self.low, self.high)
        values = zip(*(column[begin:end].tolist() for column in columns), strict=True)
        for region, (kind, low, high), words in zip(
            regions, values, self.word_lists(begin, end), strict=True
        ):
            keywords = ", ".join(f"'{word}'" for word in words)
            yield (
                f"S_INTERSECTS(geometry, {region}) AND kind = 'k{kind}' AND price BETWEEN {low} "
                f"AND {high} AND A_CONTAINS(words, ({keywords}))"
            )

    def subscribe(self, matcher: Matcher) -> None:
        """Add all subscriptions to a matcher."""
        for begin in range(0, len(self), _CHUNK_ROWS):
            end = min(begin + _CHUNK_ROWS, len(self))
            ids = [str(row) for row in range(begin, end)]
            matcher.subscribe_many(
                pa.table({"id": ids, "expression": list(self.expressions(begin, end))})
            )
            matcher.view().snapshot()  # compiles these rows, which frees their objects


@dataclass(frozen=True, slots=True)
class Events:
    """Events as columns."""

    points: NDArray[np.float64]
    kinds: list[str]
    prices: list[int]
    words: list[list[str]]

    @property
    def values(self) -> dict[str, list[Any]]:
        """The attributes other than the geometry, by name."""
        return {"kind": self.kinds, "price": self.prices, "words": self.words}


def draw_subscriptions(rng: np.random.Generator, count: int) -> Subscriptions:
    """Draw subscriptions; fewer of them have larger regions, so a point is in equally many."""
    middles = rng.random((count, 2)) * SIDE_M
    cover = min(COVER, count / 20)
    raw = stars(rng, middles, spread(rng, count, cover) * SIDE_M**2, REGION_POINTS)
    # Rounded like the texts, so that all methods get the same numbers.
    regions = shapely.from_wkt(shapely.to_wkt(raw, rounding_precision=1))
    low = rng.integers(0, PRICES * 4 // 5, count)
    sizes = rng.integers(REQUIRED_WORDS[0], REQUIRED_WORDS[1] + 1, count)
    start = np.concatenate(([0], np.cumsum(sizes)))
    return Subscriptions(
        regions,
        rng.integers(0, KINDS, count),
        low,
        low + rng.integers(PRICES // 10, PRICES * 3 // 10, count),
        _words(rng, int(start[-1])),
        start,
    )


def draw_events(rng: np.random.Generator, subscriptions: Subscriptions, count: int) -> Events:
    """Draw events, each of which matches at least one subscription."""
    rows = rng.integers(0, len(subscriptions), count)
    regions = subscriptions.regions[rows]
    box = shapely.bounds(regions)
    inside = shapely.get_coordinates(shapely.point_on_surface(regions))
    near = inside + rng.normal(0, 0.1, (count, 2)) * (box[:, 2:] - box[:, :2])
    is_inside = shapely.contains_xy(regions, near)
    low, high = subscriptions.low[rows], subscriptions.high[rows]
    prices = low + rng.integers(0, 1 << 30, count) % (high - low + 1)
    extra = _words(rng, count * EXTRA_WORDS).reshape(count, -1).tolist()
    start = subscriptions.word_start
    words = []
    for row, extra_words in zip(rows.tolist(), extra, strict=True):
        required = subscriptions.words[start[row] : start[row + 1]].tolist()
        words.append([f"w{word}" for word in sorted({*required, *extra_words})])
    return Events(
        np.where(is_inside[:, None], near, inside),
        [f"k{kind}" for kind in subscriptions.kinds[rows].tolist()],
        prices.tolist(),
        words,
    )


def _words(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Return random numbers of words by Zipf's law."""
    return (WORDS ** rng.random(count)).astype(np.int64)
