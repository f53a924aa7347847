"""Writes the files of a synthetic city: fences with a kind and words, and events at points.

By default a point lies in 50 fences on average: in a city of 1,000 square kilometres, a million
fences have 5 hectares each. A city is uniform or skewed. In a skewed city, most fences and events
lie in a few hot spots. Fences are smaller there, so that a point lies in equally many fences
everywhere, and both cities have about the same number of matches.
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

FENCE_VERTICES = (5, 15)  # fewest and most
MEAN_COVER = 50.0  # fences that a point lies in, on average
KINDS = 20
WORDS = 2_000
MAX_REQUIRED_WORDS = 2  # of a subscription
EVENT_WORDS = (3, 10)  # fewest and most
TARGETED_FRACTION = 0.5  # of events, made to match a subscription
HOT_SPOTS = 6
_COLD_FRACTION = 0.1  # of a skewed city, outside its hot spots
_HOTTEST_RADIUS = 0.01  # standard deviation of the hottest spot, in sides of the city
_CHUNK_ROWS = 100_000  # rows whose geometries are in memory at once
_ROW_GROUP_ROWS = 20_000  # Spark reads row groups in parallel, so a file needs several

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CityFiles:
    """The Parquet files of a city."""

    subscriptions: Path  # columns: id, area, kind, words
    events: Path  # columns: id, geometry, kind, text


@dataclass(frozen=True, slots=True)
class _Fences:
    centres: Floats
    areas: Floats
    kinds: Ints
    words: Ints  # (n, MAX_REQUIRED_WORDS); -1 for none


def write(
    folder: Path,
    subscriptions: int,
    events: int,
    *,
    skewed: bool,
    seed: int,
    cover: float = MEAN_COVER,
) -> CityFiles:
    """Write a city and return its files.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    subscriptions, events : int
        Their numbers.
    skewed : bool
        Whether fences and events lie in hot spots.
    seed : int
        The seed of the random numbers.
    cover : float
        The fences of any kind that a point lies in, on average.
    """
    rng = np.random.default_rng([seed, subscriptions, events, skewed])
    spots = _Spots(rng) if skewed else None
    fences = _fences(rng, subscriptions, spots, cover)
    files = CityFiles(folder / "subscriptions.parquet", folder / "events.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    _write(files.subscriptions, _subscription_tables(rng, fences))
    _write(files.events, _event_tables(rng, fences, events, spots))
    return files


class _Spots:
    """The hot spots of a skewed city: normal distributions of points."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._centres = rng.uniform(0.1, 0.9, (HOT_SPOTS, 2))
        rank = np.arange(1, HOT_SPOTS + 1)
        self._fractions = (1 - _COLD_FRACTION) / rank / (1 / rank).sum()
        self._radii = _HOTTEST_RADIUS * np.sqrt(rank)

    def points(self, rng: np.random.Generator, count: int) -> Floats:
        spot = rng.choice(HOT_SPOTS + 1, count, p=[*self._fractions, _COLD_FRACTION])
        hot = np.minimum(spot, HOT_SPOTS - 1)
        near = self._centres[hot] + self._radii[hot, None] * rng.standard_normal((count, 2))
        return np.where((spot < HOT_SPOTS)[:, None], near, rng.random((count, 2)))

    def density(self, points: Floats) -> Floats:
        """Return the density at points, relative to a uniform city."""
        density = np.full(len(points), _COLD_FRACTION)
        for centre, fraction, radius in zip(
            self._centres, self._fractions, self._radii, strict=True
        ):
            exponent = ((points - centre) ** 2).sum(axis=1) / (2 * radius**2)
            density += fraction * np.exp(-exponent) / (2 * np.pi * radius**2)
        return density


def _points(rng: np.random.Generator, count: int, spots: _Spots | None) -> Floats:
    return rng.random((count, 2)) if spots is None else spots.points(rng, count)


def _fences(rng: np.random.Generator, count: int, spots: _Spots | None, cover: float) -> _Fences:
    centres = _points(rng, count, spots)
    areas = spread(rng, count, cover)
    if spots is not None:
        areas /= spots.density(centres)
    required = rng.integers(0, MAX_REQUIRED_WORDS + 1, count)
    words = _words(rng, (count, MAX_REQUIRED_WORDS))
    words[np.arange(MAX_REQUIRED_WORDS)[None] >= required[:, None]] = -1
    return _Fences(centres, areas, rng.integers(0, KINDS, count), words)


def _words(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Ints:
    """Return random numbers of words by Zipf's law: the logarithm of the rank is uniform."""
    words: Ints = np.floor(np.exp(rng.random(shape) * np.log(WORDS))).astype(np.int64) - 1
    return words


def _subscription_tables(rng: np.random.Generator, fences: _Fences) -> Iterator[pa.Table]:
    for first, stop in _chunks(len(fences.kinds)):
        polygons = stars(rng, fences.centres[first:stop], fences.areas[first:stop], FENCE_VERTICES)
        required = fences.words[first:stop]
        yield pa.table(
            {
                "id": pc.cast(pa.array(np.arange(first, stop)), pa.string()),
                "area": pa.array(shapely.to_wkb(polygons), pa.binary()),
                "kind": _prefixed("k", fences.kinds[first:stop]),
                "words": _word_lists(required[required >= 0], (required >= 0).sum(axis=1)),
            }
        )


def _event_tables(
    rng: np.random.Generator, fences: _Fences, count: int, spots: _Spots | None
) -> Iterator[pa.Table]:
    for first, stop in _chunks(count):
        rows = stop - first
        targeted = rng.random(rows) < TARGETED_FRACTION
        fence = rng.integers(0, len(fences.kinds), rows)
        # A point this close to a fence's centre lies inside the fence.
        offset = rng.uniform(-0.1, 0.1, (rows, 2)) * np.sqrt(fences.areas[fence])[:, None]
        points = np.where(
            targeted[:, None], fences.centres[fence] + offset, _points(rng, rows, spots)
        )
        kinds = np.where(targeted, fences.kinds[fence], rng.integers(0, KINDS, rows))
        word_count = rng.integers(EVENT_WORDS[0], EVENT_WORDS[1] + 1, rows)
        words = np.full((rows, EVENT_WORDS[1] + MAX_REQUIRED_WORDS), -1)
        words[:, : EVENT_WORDS[1]] = _words(rng, (rows, EVENT_WORDS[1]))
        words[:, : EVENT_WORDS[1]][np.arange(EVENT_WORDS[1])[None] >= word_count[:, None]] = -1
        words[:, EVENT_WORDS[1] :] = np.where(targeted[:, None], fences.words[fence], -1)
        is_word = words >= 0
        yield pa.table(
            {
                "id": pa.array(np.arange(first, stop)),
                "geometry": pa.array(shapely.to_wkb(shapely.points(points)), pa.binary()),
                "kind": _prefixed("k", kinds),
                "text": pc.binary_join(_word_lists(words[is_word], is_word.sum(axis=1)), " "),
            }
        )


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, _CHUNK_ROWS):
        yield first, min(first + _CHUNK_ROWS, count)


def _prefixed(prefix: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def _word_lists(words: Ints, sizes: Ints) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _prefixed("w", words))


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    writer = None
    for table in tables:
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
    if writer is not None:
        writer.close()
