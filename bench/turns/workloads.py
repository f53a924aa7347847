"""Runs workloads in a separate process; uses public names only, so that it runs on any revision.

Prints a JSON object: for each label of a workload, the microseconds an item (best round), and a
hash of its answers, in an order that does not depend on the revision.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import fencepost as fp
from fencepost.testing import mixed_pairs

ROUNDS = 7
_TOTAL_S = 0.2  # of all rounds, at least
_SINGLE_EVENTS = 1_000

Work = tuple[int, Callable[[], Any], Callable[[Any], Sequence[str]]]
"""The number of items, the timed function, and a function that returns its answers as texts."""


def stars(rng: np.random.Generator, count: int, cover: float) -> list[shapely.Polygon]:
    """Return star-shaped polygons in the unit square; a point is in about `cover` of them."""
    middles, corners = rng.random((count, 2)), rng.integers(10, 60, count)
    radius = np.sqrt(cover / count / 2)
    polygons = []
    for middle, n in zip(middles, corners.tolist(), strict=True):
        angles = (np.arange(n) + rng.random(n) * 0.8) * (2 * np.pi / n)
        reach = radius * (0.5 + rng.random(n) / 2)
        around = np.column_stack((np.cos(angles), np.sin(angles)))
        polygons.append(shapely.Polygon(middle + reach[:, None] * around))
    return polygons


def fences(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on points in polygons."""
    rng = np.random.default_rng(count)
    matcher = fp.Matcher(space="planar")
    polygons = stars(rng, count, 2.0)
    matcher.subscribe_columns(_ids(count), regions={"geometry": (polygons, "S_INTERSECTS")})
    points = rng.random((50_000, 2))
    yield from _matching_work(f"{count:,} fences", matcher, points, {})


def taxi(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on a distance and two strings."""
    rng = np.random.default_rng(count)
    matcher = fp.Matcher(space="planar")
    kinds = [f"k{n}" for n in rng.integers(0, 5, count).tolist()]
    states = [f"s{n}" for n in rng.integers(0, 4, count).tolist()]
    matcher.subscribe_columns(
        _ids(count),
        within={"geometry": (shapely.points(rng.random((count, 2))).tolist(), [0.02] * count)},
        equals={"kind": kinds, "state": states},
    )
    points = rng.random((50_000, 2))
    values = {
        "kind": [f"k{n}" for n in rng.integers(0, 5, len(points)).tolist()],
        "state": [f"s{n}" for n in rng.integers(0, 4, len(points)).tolist()],
    }
    yield from _matching_work(f"{count:,} distances and strings", matcher, points, values)


def words(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on keywords and a rectangle."""
    rng = np.random.default_rng(count)
    matcher = fp.Matcher(space="planar")
    vocabulary = rng.zipf(1.2, (count, 3)) % 20_000
    corners = rng.random((count, 2))
    boxes = np.hstack((corners, corners + rng.random((count, 2)) / 20 + 1e-3))
    matcher.subscribe_columns(
        _ids(count),
        regions={"geometry": (boxes, "S_INTERSECTS")},
        keywords={"text": [sorted({f"w{n}" for n in row}) for row in vocabulary.tolist()]},
    )
    points = rng.random((20_000, 2))
    drawn = rng.zipf(1.2, (len(points), 12)) % 20_000
    values = {"text": [" ".join(f"w{n}" for n in row) for row in drawn.tolist()]}
    yield from _matching_work(f"{count:,} keywords and boxes", matcher, points, values)


def texts(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on texts of various expressions."""
    rng = np.random.default_rng(count)
    forms = (
        "S_INTERSECTS(geometry, BBOX({x}, {y}, {u}, {v})) AND speed > {n}",
        "S_DWITHIN(geometry, POINT({x} {y}), 0.05) AND kind IN ('k1', 'k{k}')",
        "A_OVERLAPS(tags, ('t{k}', 't7')) OR (kind LIKE 'k{k}%' AND NOT speed BETWEEN 2 AND {n})",
        "speed IS NULL AND S_DISJOINT(geometry, BBOX({x}, {y}, {u}, {v}))",
    )
    rows = []
    for number in range(count):
        x, y = rng.random(2).round(4).tolist()
        values = {"x": x, "y": y, "u": round(x + 0.1, 4), "v": round(y + 0.1, 4)}
        values |= {"k": number % 9, "n": number % 50}
        rows.append({"id": str(number), "expression": forms[number % 4].format(**values)})
    points = rng.random((2_000, 2))
    columns: dict[str, list[Any]] = {
        "speed": [None if n == 0 else float(n) for n in rng.integers(0, 60, len(points)).tolist()],
        "kind": [f"k{n}" for n in rng.integers(0, 9, len(points)).tolist()],
        "tags": [[f"t{n}" for n in row] for row in rng.integers(0, 12, (len(points), 2)).tolist()],
    }

    def load() -> fp.Matcher:
        loaded = fp.Matcher(space="planar")
        loaded.subscribe_many(rows)
        return loaded

    yield f"{count:,} expressions read", (count, load, lambda loaded: loaded.ids())
    matcher = load()
    yield from _matching_work(f"{count:,} expressions", matcher, points, columns)


def ranking(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on events with about a thousand matches each, best first, in either space."""
    forms = (
        "A_CONTAINS(text, ('w{a}')) AND S_INTERSECTS(geometry, BBOX({x}, {y}, {u}, {v}))",
        "A_OVERLAPS(text, ('w{a}', 'w{b}')) AND S_DWITHIN(geometry, POINT({x} {y}), {r})",
        "S_INTERSECTS(geometry, POLYGON(({x} {y}, {u} {y}, {u} {v}, {x} {v}, {x} {y})))",
        "S_DWITHIN(geometry, POINT({x} {y}), {r}) AND speed > 1",
        "A_CONTAINS(text, ('w{a}', 'w{b}'))",
    )
    spaces: tuple[tuple[Any, float], ...] = (("planar", 1), ("wgs84", 111_000))
    for space, length in spaces:  # of a unit of the coordinates
        rng = np.random.default_rng(count)
        rows = []
        for number in range(count):
            x, y, side = (rng.random(3) * (1, 1, 0.6) + (0, 0, 0.01)).round(4).tolist()
            values = {"x": x, "y": y, "u": round(x + side, 4), "v": round(y + side, 4)}
            values |= {"r": side * length / 2, "a": number % 40, "b": number * 7 % 41}
            form = forms[number % len(forms)]
            rows.append({"id": str(number), "expression": form.format(**values)})
        matcher = fp.Matcher(space)
        matcher.subscribe_many(rows)
        matcher.compact()
        events = [
            {
                "geometry": {"type": "Point", "coordinates": point},
                "text": " ".join(f"w{n}" for n in rng.integers(0, 45, 12).tolist()),
                "speed": 2.0,
            }
            for point in rng.random((50, 2)).tolist()
        ]
        yield f"{count:,} expressions, {space}: ranked", _ranking_work(matcher, events, None)
        yield f"{count:,} expressions, {space}: ten best", _ranking_work(matcher, events, 10)


def _ranking_work(matcher: fp.Matcher, events: list[dict[str, Any]], top_k: int | None) -> Work:
    return (
        len(events),
        lambda: [matcher.rank(event, top_k) for event in events],
        lambda rankings: [str(ranking) for ranking in rankings],
    )


def relate(count: int) -> Iterator[tuple[str, Work]]:
    """Yield work on relations of pairs of geometries."""
    for size in (10, 50, 500):
        left, right = mixed_pairs(np.random.default_rng(size), count * 10 // size, size)
        relate_all = partial(fp.relate_pairs, left, right)
        label = f"relations of polygons of {size} points"
        yield label, (len(left), relate_all, lambda codes: [*map(str, codes)])


WORKLOADS = {
    "fences": lambda: fences(10_000),
    "many-fences": lambda: fences(200_000),
    "taxi": lambda: taxi(10_000),
    "words": lambda: words(200_000),
    "texts": lambda: texts(20_000),
    "ranking": lambda: ranking(20_000),
    "relate": lambda: relate(20_000),
}


def _ids(count: int) -> list[str]:
    return [*map(str, range(count))]


def _matching_work(
    name: str, matcher: fp.Matcher, points: np.ndarray[Any, Any], values: dict[str, list[Any]]
) -> Iterator[tuple[str, Work]]:
    wkb = pa.array(shapely.to_wkb(shapely.points(points)).tolist(), pa.binary())
    table = pa.table({"geometry": wkb, **values})
    yield f"{name}: in bulk", (len(points), lambda: matcher.match_batch(table), _pairs)
    events: list[dict[str, Any]] = []
    for number, (x, y) in enumerate(points[:_SINGLE_EVENTS].tolist()):
        attributes = {key: column[number] for key, column in values.items()}
        events.append({"geometry": {"type": "Point", "coordinates": [x, y]}, **attributes})
    yield (
        f"{name}: one at a time",
        (len(events), lambda: [matcher.match(event) for event in events], _lists),
    )
    yield (
        f"{name}: subscribers",
        (len(events), lambda: [matcher.match_subscribers(event) for event in events], _lists),
    )


def _pairs(matches: pa.Table) -> list[str]:
    events = matches["event"].to_pylist()
    ids = matches["subscription"].to_pylist()
    return sorted(f"{event} {id}" for event, id in zip(events, ids, strict=True))


def _lists(ids_by_event: list[list[str]]) -> list[str]:
    return [" ".join(ids) for ids in ids_by_event]


def measured(work: Work) -> dict[str, Any]:
    """Return the microseconds an item of the best round, and the hash of the answers."""
    items, act, answers = work
    digest = hashlib.sha256("\n".join(answers(act())).encode()).hexdigest()[:16]
    best = float("inf")
    for _ in range(ROUNDS):
        spent, runs = 0.0, 0
        while spent < _TOTAL_S / ROUNDS or not runs:
            begin = time.perf_counter()
            act()
            took = time.perf_counter() - begin
            spent += took
            runs += 1
            best = min(best, took)
    return {"us": best / items * 1e6, "answers": digest}


def main() -> None:
    """Run the workloads that the command line names."""
    results = {}
    for name in sys.argv[1:]:
        for label, work in WORKLOADS[name]():
            results[label] = measured(work)
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
