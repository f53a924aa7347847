"""A made-up city in files: fences with a kind and words, and posts that may lie in them.

A point is in 50 fences unless said otherwise: a million of them have 5 hectares each in a city of
1,000 square kilometres. A city is even, or it is skewed: most of it lies in a few hot spots, where
fences are smaller, so that a point is in as many of them wherever it lies, and both cities have
about as many matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from bench.peers.polygons import spread, stars

POINTS_OF_A_FENCE = (5, 15)
COVER = 50.0
KINDS = 20
WORDS = 2_000
WORDS_ASKED = 2  # at most
WORDS_SAID = (3, 10)
ABOUT = 0.5  # share of events that are about a subscription
HOT_SPOTS = 6
_COLD = 0.1  # share of a skewed city that lies outside its hot spots
_REACH = 0.01  # of the hottest spot, in sides of the city
_CHUNK = 100_000  # rows whose geometries are in memory at once
_ROW_GROUP = 20_000  # Spark reads row groups side by side, so there must be several

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Files:
    """Where a city is: subscriptions (id, area, kind, words), events (id, geometry, kind, text)."""

    subscriptions: Path
    events: Path


@dataclass(frozen=True, slots=True)
class _Fences:
    middles: Floats
    areas: Floats
    kinds: Ints
    words: Ints  # (n, WORDS_ASKED), -1 where there is none


def write(
    folder: Path, subscriptions: int, events: int, *, skewed: bool, seed: int, cover: float = COVER
) -> Files:
    """Make a city in which a point is in so many fences, on average, of any kind."""
    rng = np.random.default_rng([seed, subscriptions, events, skewed])
    spots = _Spots(rng) if skewed else None
    fences = _fences(rng, subscriptions, spots, cover)
    files = Files(folder / "subscriptions.parquet", folder / "events.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    _write(files.subscriptions, _subscription_tables(rng, fences))
    _write(files.events, _event_tables(rng, fences, events, spots))
    return files


class _Spots:
    """Where a skewed city is dense."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._middles = rng.uniform(0.1, 0.9, (HOT_SPOTS, 2))
        rank = np.arange(1, HOT_SPOTS + 1)
        self._share = (1 - _COLD) / rank / (1 / rank).sum()
        self._reach = _REACH * np.sqrt(rank)

    def places(self, rng: np.random.Generator, count: int) -> Floats:
        spot = rng.choice(HOT_SPOTS + 1, count, p=[*self._share, _COLD])
        hot = np.minimum(spot, HOT_SPOTS - 1)
        near = self._middles[hot] + self._reach[hot, None] * rng.standard_normal((count, 2))
        return np.where((spot < HOT_SPOTS)[:, None], near, rng.random((count, 2)))

    def density(self, places: Floats) -> Floats:
        """How many times as dense the city is there as an even one."""
        found = np.full(len(places), _COLD)
        for middle, share, reach in zip(self._middles, self._share, self._reach, strict=True):
            away = ((places - middle) ** 2).sum(axis=1) / (2 * reach**2)
            found += share * np.exp(-away) / (2 * np.pi * reach**2)
        return found


def _places(rng: np.random.Generator, count: int, spots: _Spots | None) -> Floats:
    return rng.random((count, 2)) if spots is None else spots.places(rng, count)


def _fences(rng: np.random.Generator, count: int, spots: _Spots | None, cover: float) -> _Fences:
    middles = _places(rng, count, spots)
    areas = spread(rng, count, cover)
    if spots is not None:
        areas /= spots.density(middles)
    asked = rng.integers(0, WORDS_ASKED + 1, count)
    words = _words(rng, (count, WORDS_ASKED))
    words[np.arange(WORDS_ASKED)[None] >= asked[:, None]] = -1
    return _Fences(middles, areas, rng.integers(0, KINDS, count), words)


def _words(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Ints:
    """Numbers of words by Zipf's law: the logarithms of their ranks are even."""
    found: Ints = np.floor(np.exp(rng.random(shape) * np.log(WORDS))).astype(np.int64) - 1
    return found


def _subscription_tables(rng: np.random.Generator, fences: _Fences) -> Iterator[pa.Table]:
    for first, stop in _chunks(len(fences.kinds)):
        polygons = stars(
            rng, fences.middles[first:stop], fences.areas[first:stop], POINTS_OF_A_FENCE
        )
        asked = fences.words[first:stop]
        yield pa.table(
            {
                "id": pc.cast(pa.array(np.arange(first, stop)), pa.string()),
                "area": pa.array(shapely.to_wkb(polygons), pa.binary()),
                "kind": _names("k", fences.kinds[first:stop]),
                "words": _lists(asked[asked >= 0], (asked >= 0).sum(axis=1)),
            }
        )


def _event_tables(
    rng: np.random.Generator, fences: _Fences, count: int, spots: _Spots | None
) -> Iterator[pa.Table]:
    for first, stop in _chunks(count):
        rows = stop - first
        about = rng.random(rows) < ABOUT
        fence = rng.integers(0, len(fences.kinds), rows)
        # Within a fifth of its reach from a fence's middle one is in it.
        away = rng.uniform(-0.1, 0.1, (rows, 2)) * np.sqrt(fences.areas[fence])[:, None]
        points = np.where(about[:, None], fences.middles[fence] + away, _places(rng, rows, spots))
        kinds = np.where(about, fences.kinds[fence], rng.integers(0, KINDS, rows))
        said = rng.integers(WORDS_SAID[0], WORDS_SAID[1] + 1, rows)
        words = np.full((rows, WORDS_SAID[1] + WORDS_ASKED), -1)
        words[:, : WORDS_SAID[1]] = _words(rng, (rows, WORDS_SAID[1]))
        words[:, : WORDS_SAID[1]][np.arange(WORDS_SAID[1])[None] >= said[:, None]] = -1
        words[:, WORDS_SAID[1] :] = np.where(about[:, None], fences.words[fence], -1)
        there = words >= 0
        yield pa.table(
            {
                "id": pa.array(np.arange(first, stop)),
                "geometry": pa.array(shapely.to_wkb(shapely.points(points)), pa.binary()),
                "kind": _names("k", kinds),
                "text": pc.binary_join(_lists(words[there], there.sum(axis=1)), " "),
            }
        )


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, _CHUNK):
        yield first, min(first + _CHUNK, count)


def _names(prefix: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def _lists(words: Ints, sizes: Ints) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _names("w", words))


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    writer = None
    for table in tables:
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=_ROW_GROUP)
    if writer is not None:
        writer.close()
