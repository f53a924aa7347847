"""Subscriptions of a region, a kind, a range of prices and keywords; and events about them."""

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
POINTS_OF_A_REGION = (5, 12)
COVER = 1_000.0  # regions that a point is in, on average
KINDS = 10
PRICES = 1_000
WORDS = 3_000
WORDS_ASKED = (1, 2)
WORDS_SAID = 15  # of an event, besides those of the subscription that it is about
_CHUNK = 50_000  # subscriptions whose texts are in memory at once


@dataclass(frozen=True, slots=True)
class Questions:
    """Subscriptions as columns.

    words, word_start : numbers of words, those of row k from `word_start[k]` on.
    """

    regions: Geometries
    kinds: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    words: NDArray[np.int64]
    word_start: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.regions)

    def word_lists(self, begin: int = 0, end: int | None = None) -> list[list[str]]:
        """The words of some rows."""
        starts = self.word_start[begin : None if end is None else end + 1].tolist()
        texts = [f"w{word}" for word in self.words[starts[0] : starts[-1]].tolist()]
        return [texts[a - starts[0] : b - starts[0]] for a, b in pairwise(starts)]

    def expressions(self, begin: int, end: int) -> Iterator[str]:
        """Some rows in CQL2."""
        regions = shapely.to_wkt(self.regions[begin:end], rounding_precision=1)
        columns = (self.kinds, self.low, self.high)
        values = zip(*(column[begin:end].tolist() for column in columns), strict=True)
        for region, (kind, low, high), words in zip(
            regions, values, self.word_lists(begin, end), strict=True
        ):
            asked = ", ".join(f"'{word}'" for word in words)
            yield (
                f"S_INTERSECTS(geometry, {region}) AND kind = 'k{kind}' AND price BETWEEN {low} "
                f"AND {high} AND A_CONTAINS(words, ({asked}))"
            )

    def subscribe(self, matcher: Matcher) -> None:
        """Leave them all with a matcher."""
        for begin in range(0, len(self), _CHUNK):
            end = min(begin + _CHUNK, len(self))
            ids = [str(row) for row in range(begin, end)]
            matcher.subscribe_many(
                pa.table({"id": ids, "expression": list(self.expressions(begin, end))})
            )
            matcher.view().snapshot()  # compiles these, so that they are not kept as objects


@dataclass(frozen=True, slots=True)
class Happenings:
    """Events as columns."""

    points: NDArray[np.float64]
    kinds: list[str]
    prices: list[int]
    words: list[list[str]]

    @property
    def values(self) -> dict[str, list[Any]]:
        """All but the places."""
        return {"kind": self.kinds, "price": self.prices, "words": self.words}


def questions(rng: np.random.Generator, count: int) -> Questions:
    """Draw subscriptions; the fewer they are the larger, so that as many are about a point."""
    middles = rng.random((count, 2)) * SIDE_M
    cover = min(COVER, count / 20)
    raw = stars(rng, middles, spread(rng, count, cover) * SIDE_M**2, POINTS_OF_A_REGION)
    # As their texts have them, so that all methods get the same numbers.
    regions = shapely.from_wkt(shapely.to_wkt(raw, rounding_precision=1))
    low = rng.integers(0, PRICES * 4 // 5, count)
    sizes = rng.integers(WORDS_ASKED[0], WORDS_ASKED[1] + 1, count)
    start = np.concatenate(([0], np.cumsum(sizes)))
    return Questions(
        regions,
        rng.integers(0, KINDS, count),
        low,
        low + rng.integers(PRICES // 10, PRICES * 3 // 10, count),
        _words(rng, int(start[-1])),
        start,
    )


def happenings(rng: np.random.Generator, asked: Questions, count: int) -> Happenings:
    """Draw events, each of which answers one subscription at least."""
    rows = rng.integers(0, len(asked), count)
    box = shapely.bounds(asked.regions[rows])
    inside = shapely.get_coordinates(shapely.point_on_surface(asked.regions[rows]))
    near = inside + rng.normal(0, 0.1, (count, 2)) * (box[:, 2:] - box[:, :2])
    held = shapely.contains_xy(asked.regions[rows], near)
    prices = asked.low[rows] + rng.integers(0, 1 << 30, count) % (
        asked.high[rows] - asked.low[rows] + 1
    )
    extra = _words(rng, count * WORDS_SAID).reshape(count, -1).tolist()
    own = asked.words, asked.word_start
    words = [
        [f"w{word}" for word in sorted({*own[0][own[1][row] : own[1][row + 1]].tolist(), *more})]
        for row, more in zip(rows.tolist(), extra, strict=True)
    ]
    return Happenings(
        np.where(held[:, None], near, inside),
        [f"k{kind}" for kind in asked.kinds[rows].tolist()],
        prices.tolist(),
        words,
    )


def _words(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Numbers of words by Zipf's law."""
    return (WORDS ** rng.random(count)).astype(np.int64)
