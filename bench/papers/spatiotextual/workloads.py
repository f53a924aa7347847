"""Subscriptions and messages of the paper's kinds, and what is said of their origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench import data
from bench.papers.spatiotextual import places, token_sets
from bench.papers.spatiotextual.places import Places
from bench.papers.spatiotextual.token_sets import Floats, Ints, TokenBoxes, Tokens, Topics
from fencepost.errors import FencepostError

LONGEST = 5  # tokens of a subscription
ABOUT_ONE = 0.5  # of the messages: they lie in a subscription and have its tokens
TWITTER_WORDS = 1_000_000
USA_WORDS = 300_000
WIDE_WORDS = 100_000
_LOCAL = 0.3


@dataclass(frozen=True, slots=True)
class Sides:
    """Widths and heights of rectangles, as shares of the square's side, drawn independently."""

    low: float
    high: float
    logarithmic: bool

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Widths and heights (n, 2)."""
        if self.logarithmic:
            return np.exp(rng.uniform(np.log(self.low), np.log(self.high), (count, 2)))
        return rng.uniform(self.low, self.high, (count, 2))


SMALL = Sides(0.0001, 0.01, True)
WIDE = Sides(0.005, 0.2, False)
POINT = Sides(0.0, 0.0, False)


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions, and the distributions that they and their messages are drawn from."""

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
    """A kind of message: how large its rectangle is, and how many tokens it has."""

    name: str
    sides: Sides
    least: int
    most: int


SHORT, LONG = (6, 20), (100, 1000)
KINDS = (
    Kind("short point", POINT, *SHORT),
    Kind("long point", POINT, *LONG),
    Kind("short range", SMALL, *SHORT),
    Kind("long range", SMALL, *LONG),
)


def twitter(seed: int, count: int) -> Workload:
    """In place of the paper's tweets: rectangles in cities, Zipf's law, local words."""
    rng = np.random.default_rng([seed, 11])
    cities = places.Cities(rng)
    topics = token_sets.zipf(rng, TWITTER_WORDS, cities.districts, _LOCAL)
    origin = (
        f"synthetic: {cities.districts} cities, sides of 0.01 to 1 % (log-uniform), "
        f"{TWITTER_WORDS:,} words by Zipf's law, {_LOCAL:.0%} of them by a city's own ranks"
    )
    return _drawn(rng, "Twitter stand-in, Zipf", count, cities, topics, SMALL, origin)


def usa(seed: int, count: int, source: str) -> Workload:
    """In place of the paper's points of interest: rectangles round venues, uniform tokens.

    source : "real", which must be there, or "synthetic".
    """
    rng = np.random.default_rng([seed, 12])
    chosen: Places
    if source == "real":
        if not venues_are_there():
            raise FencepostError(
                f"there is no {places.VENUES}.parquet in {data.folder()}: name its folder in "
                "FENCEPOST_DATA, or use --data synthetic"
            )
        chosen = places.Venues(places.read_venues())
        where = "round venues in Utah (SimpleGeo via Who's On First, CC0), moved a little"
    else:
        chosen = places.Cities(rng)
        where = f"synthetic: in {chosen.districts} cities"
    topics = token_sets.uniform(USA_WORDS)
    origin = f"{where}; sides of 0.01 to 1 % (log-uniform), {USA_WORDS:,} words, all alike"
    return _drawn(rng, "USA stand-in, uniform", count, chosen, topics, SMALL, origin)


def wide(seed: int, count: int) -> Workload:
    """Rectangles of 0.5 to 20 % of the side anywhere, and a vocabulary of 100,000 words."""
    rng = np.random.default_rng([seed, 13])
    topics = token_sets.zipf(rng, WIDE_WORDS, places.Anywhere.districts, 0.0)
    origin = f"synthetic: evenly spread, sides of 0.5 to 20 %, {WIDE_WORDS:,} words by Zipf's law"
    return _drawn(rng, "wide rectangles", count, places.Anywhere(), topics, WIDE, origin)


def spread(seed: int, count: int) -> Workload:
    """The paper's sizes and words, but anywhere: hardly two subscriptions for one place."""
    rng = np.random.default_rng([seed, 14])
    topics = token_sets.zipf(rng, TWITTER_WORDS, places.Anywhere.districts, 0.0)
    origin = (
        "synthetic: evenly spread, sides of 0.01 to 1 % (log-uniform), "
        f"{TWITTER_WORDS:,} words by Zipf's law"
    )
    return _drawn(rng, "evenly spread", count, places.Anywhere(), topics, SMALL, origin)


def venues_are_there() -> bool:
    """Whether the venues can be read."""
    return data.is_there(places.VENUES)


def _drawn(
    rng: np.random.Generator,
    name: str,
    count: int,
    where: Places,
    topics: Topics,
    sides: Sides,
    origin: str,
) -> Workload:
    points, districts = where.draw(rng, count)
    lengths = rng.integers(1, LONGEST + 1, count)
    sets = token_sets.draw_sets(rng, topics, districts, lengths)
    boxes = _around(points, sides.draw(rng, count))
    return Workload(name, TokenBoxes(boxes, *sets), where, topics, sides, origin)


def _around(points: Floats, sizes: Floats) -> Floats:
    """Rectangles round points, as far as they lie in the unit square."""
    return np.clip(np.hstack((points - sizes / 2, points + sizes / 2)), 0, 1)


def messages(
    workload: Workload, seed: int, count: int, sides: Sides, least: int, most: int
) -> TokenBoxes:
    """Messages of `least` to `most` tokens, drawn like the subscriptions.

    Half of them are about a subscription: their middle lies in its rectangle, and its tokens are
    among theirs. So there are answers, however many words there are.
    """
    rng = np.random.default_rng([seed, 14, least, most, round(sides.high * 1e6)])
    points, districts = workload.places.draw(rng, count)
    lengths = rng.integers(least, most + 1, count)
    about = np.flatnonzero(rng.random(count) < ABOUT_ONE)
    subjects = rng.integers(0, len(workload), len(about))
    box = workload.subscriptions.boxes[subjects]
    points[about] = box[:, :2] + rng.random((len(about), 2)) * (box[:, 2:] - box[:, :2])
    first = np.cumsum(lengths) - lengths
    given = _copied(workload.subscriptions, subjects, first[about])
    sets = token_sets.draw_sets(rng, workload.topics, districts, lengths, given)
    return TokenBoxes(_around(points, sides.draw(rng, count)), *sets)


def of_kind(workload: Workload, seed: int, kind: Kind, count: int) -> TokenBoxes:
    """Messages of one of the paper's kinds."""
    return messages(workload, seed, count, kind.sides, kind.least, kind.most)


def _copied(given: TokenBoxes, rows: Ints, places: Ints) -> tuple[Ints, Tokens]:
    """The tokens of some rows, and where they go: one after the other from `places` on."""
    sizes = np.diff(given.start)[rows]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (
        np.repeat(places, sizes) + within,
        given.tokens[np.repeat(given.start[rows], sizes) + within],
    )
