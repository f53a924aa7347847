"""Subscriptions and messages of the paper's kinds, with a description of their origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench import data
from bench.papers.spatiotextual import places, token_sets
from bench.papers.spatiotextual.places import Places
from bench.papers.spatiotextual.token_sets import Floats, Ints, TokenBoxes, Tokens, Topics
from fencepost.errors import FencepostError

LONGEST = 5  # tokens of a subscription
ABOUT_ONE = 0.5  # share of the messages that lie in a subscription and have its tokens
TWITTER_WORDS = 1_000_000
USA_WORDS = 300_000
WIDE_WORDS = 100_000
_LOCAL = 0.3


@dataclass(frozen=True, slots=True)
class Sides:
    """A distribution of widths and heights of rectangles, as shares of the square's side."""

    low: float
    high: float
    logarithmic: bool

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return independent widths and heights (n, 2)."""
        if self.logarithmic:
            return np.exp(rng.uniform(np.log(self.low), np.log(self.high), (count, 2)))
        return rng.uniform(self.low, self.high, (count, 2))


SMALL = Sides(0.0001, 0.01, True)
WIDE = Sides(0.005, 0.2, False)
POINT = Sides(0.0, 0.0, False)


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions, and the distributions from which they and their messages are drawn."""

    name: str
    subscriptions: TokenBoxes
    places: Places
    topics: Topics
    sides: Sides
    origin: str

    def __len__(self) -> int:
        return len(self.subscriptions)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of message: the size of its rectangle, and its number of tokens."""

    name: str
    sides: Sides
    min_tokens: int
    max_tokens: int


SHORT, LONG = (6, 20), (100, 1000)
KINDS = (
    Kind("short point", POINT, *SHORT),
    Kind("long point", POINT, *LONG),
    Kind("short range", SMALL, *SHORT),
    Kind("long range", SMALL, *LONG),
)


def twitter(seed: int, count: int) -> Workload:
    """Return a stand-in for the paper's tweets: rectangles in cities, Zipf's law, local words."""
    rng = np.random.default_rng([seed, 11])
    cities = places.Cities(rng)
    topics = token_sets.zipf(rng, TWITTER_WORDS, cities.districts, _LOCAL)
    origin = (
        f"synthetic: {cities.districts} cities, sides of 0.01 to 1 % (log-uniform), "
        f"{TWITTER_WORDS:,} words by Zipf's law, {_LOCAL:.0%} of them by a city's own ranks"
    )
    return _draw_workload(rng, "Twitter stand-in, Zipf", count, cities, topics, SMALL, origin)


def usa(seed: int, count: int, source: str) -> Workload:
    """Return a stand-in for the paper's points of interest: boxes round venues, uniform tokens.

    source : "real", if the data exist, or "synthetic".
    """
    rng = np.random.default_rng([seed, 12])
    venues: Places
    if source == "real":
        if not venues_exist():
            raise FencepostError(
                f"there is no {places.VENUES}.parquet in {data.folder()}: name its folder in "
                "FENCEPOST_DATA, or use --data synthetic"
            )
        venues = places.Venues(places.read_venues())
        description = "round venues in Utah (SimpleGeo via Who's On First, CC0), moved a little"
    else:
        venues = places.Cities(rng)
        description = f"synthetic: in {venues.districts} cities"
    topics = token_sets.uniform(USA_WORDS)
    origin = f"{description}; sides of 0.01 to 1 % (log-uniform), {USA_WORDS:,} words, all alike"
    return _draw_workload(rng, "USA stand-in, uniform", count, venues, topics, SMALL, origin)


def wide(seed: int, count: int) -> Workload:
    """Return rectangles of 0.5 to 20 % of the side anywhere, with 100,000 words."""
    rng = np.random.default_rng([seed, 13])
    topics = token_sets.zipf(rng, WIDE_WORDS, places.Anywhere.districts, 0.0)
    origin = f"synthetic: evenly spread, sides of 0.5 to 20 %, {WIDE_WORDS:,} words by Zipf's law"
    return _draw_workload(rng, "wide rectangles", count, places.Anywhere(), topics, WIDE, origin)


def spread(seed: int, count: int) -> Workload:
    """Return rectangles of the paper's sizes and words, but uniform, so that few overlap."""
    rng = np.random.default_rng([seed, 14])
    topics = token_sets.zipf(rng, TWITTER_WORDS, places.Anywhere.districts, 0.0)
    origin = (
        "synthetic: evenly spread, sides of 0.01 to 1 % (log-uniform), "
        f"{TWITTER_WORDS:,} words by Zipf's law"
    )
    return _draw_workload(rng, "evenly spread", count, places.Anywhere(), topics, SMALL, origin)


def venues_exist() -> bool:
    """Return whether the data of venues exist."""
    return data.exists(places.VENUES)


def _draw_workload(
    rng: np.random.Generator,
    name: str,
    count: int,
    distribution: Places,
    topics: Topics,
    sides: Sides,
    origin: str,
) -> Workload:
    points, districts = distribution.draw(rng, count)
    lengths = rng.integers(1, LONGEST + 1, count)
    sets = token_sets.draw_sets(rng, topics, districts, lengths)
    boxes = _rectangles_around(points, sides.draw(rng, count))
    return Workload(name, TokenBoxes(boxes, *sets), distribution, topics, sides, origin)


def _rectangles_around(points: Floats, sizes: Floats) -> Floats:
    """Return rectangles round points, clipped to the unit square."""
    return np.clip(np.hstack((points - sizes / 2, points + sizes / 2)), 0, 1)


def messages(
    workload: Workload, seed: int, count: int, sides: Sides, min_tokens: int, max_tokens: int
) -> TokenBoxes:
    """Return messages of `min_tokens` to `max_tokens` tokens, drawn like the subscriptions.

    Half of the messages have their centre in the rectangle of a subscription, and its tokens. So
    there are answers, however large the vocabulary is.
    """
    rng = np.random.default_rng([seed, 14, min_tokens, max_tokens, round(sides.high * 1e6)])
    points, districts = workload.places.draw(rng, count)
    lengths = rng.integers(min_tokens, max_tokens + 1, count)
    half = np.flatnonzero(rng.random(count) < ABOUT_ONE)
    subjects = rng.integers(0, len(workload), len(half))
    box = workload.subscriptions.boxes[subjects]
    points[half] = box[:, :2] + rng.random((len(half), 2)) * (box[:, 2:] - box[:, :2])
    first = np.cumsum(lengths) - lengths
    copied_tokens = _copied_tokens(workload.subscriptions, subjects, first[half])
    sets = token_sets.draw_sets(rng, workload.topics, districts, lengths, copied_tokens)
    return TokenBoxes(_rectangles_around(points, sides.draw(rng, count)), *sets)


def of_kind(workload: Workload, seed: int, kind: Kind, count: int) -> TokenBoxes:
    """Return messages of one of the paper's kinds."""
    return messages(workload, seed, count, kind.sides, kind.min_tokens, kind.max_tokens)


def _copied_tokens(subscriptions: TokenBoxes, rows: Ints, places: Ints) -> tuple[Ints, Tokens]:
    """Return the tokens of some rows, and their positions: those of row k begin at places[k]."""
    sizes = np.diff(subscriptions.start)[rows]
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (
        np.repeat(places, sizes) + offsets,
        subscriptions.tokens[np.repeat(subscriptions.start[rows], sizes) + offsets],
    )
