"""Small operations that between them call every kernel, so that its machine code is cached.

Kernels are compiled for the types of their arguments. Only real operations pass the types of later
calls, so this module makes no arrays of its own: it matches subscriptions of every kind with events
of every kind. `tests/test_warmup.py` finds kernels that Python calls and the warm-up does not.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from fencepost.demo import city
from fencepost.engine.index_registry import INDEXES, IndexName
from fencepost.engine.matcher import Matcher
from fencepost.engine.relate import relate_pairs
from fencepost.engine.simplify import simplify_many
from fencepost.errors import FencepostWarning
from fencepost.geometry.space import Space
from fencepost.kernels.runtime.compile_session import compiled_kernels
from fencepost.papers.regions.adapter import relate_by_samples
from fencepost.papers.spatiotextual.trees import build
from fencepost.saferegion.safe_regions import SafeRegions
from fencepost.tracking.tracker import Tracker

Step = tuple[str, Callable[[], None]]

_SPACES = tuple(Space)
_NOON = "2024-05-01T12:00:00Z"
_SHAPES = {
    "point": "POINT (1 1)",
    "points": "MULTIPOINT (1 1, 9 9)",
    "line": "LINESTRING (0 0, 3 3)",
    "box": "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))",
    "triangle": "POLYGON ((0 0, 4 0, 0 4, 0 0))",
    "ring": "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1))",
    "mixed": "GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (1 1, 7 1), "
    "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0)))",
}
_INVALID_AREA = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 2, 2 0, 4 2, 2 4, 0 2))"
_PARTS = {"a": "n = 1", "b": "n = 2"}
_MANY = 70  # subscriptions of one kind: more than a list without a tree, or a new memtable, holds
_MANY_IDS = 2**17 + 1  # so many ids are not kept as Python objects


def steps(demo: bool = False) -> list[Step]:
    """Return the named steps, those that take longest to compile first.

    They can run in several processes at once, as a process waits for kernels that another compiles.
    With `demo`, the steps call only what the demonstration calls.
    """
    if demo:
        return [("its city", _city_at_once), ("its city, one by one", _city_one_by_one)]
    systems = [name for name in INDEXES if name not in ("auto", "reference")]
    return [
        ("segments, built and memory-mapped", _segments),
        ("relations", _relations),
        ("distances", _distances),
        ("composites", _composites),
        ("subscriptions in the memtable", _subscriptions),
        *((f"the index {name}", lambda name=name: _published(name)) for name in systems),
        ("trackers and safe regions", _moving),
        ("tables of events", _tables),
        ("subscriptions from columns", _columns),
        ("regions alone", _regions_alone),
        ("simplification", _simplify),
        ("sampled relations", _sampled),
        ("keyword-first trees and token orders", _orders),
    ]


def run_step(number: int, demo: bool = False) -> int:
    """Run a step by its number in `steps`. Return how many kernels were compiled for it."""
    _, step = steps(demo)[number]
    before = len(compiled_kernels())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FencepostWarning)  # some of its input is unusable
        step()
    return len(compiled_kernels()) - before


# -------------------------------------------------------------------- subscriptions and events


def _expressions() -> dict[str, str]:
    """Return a subscription for each kind of check and each access path of a segment."""
    expressions = [
        "n BETWEEN 1 AND 3 AND r <> 2",
        "s LIKE 'a%' AND t LIKE '%b_'",
        "s = 'a' AND n > 2",
        "s IN ('a', 'b') AND kind IN ('x', 'y')",
        "s < 'b'",
        "flag = TRUE",
        "gone IS NULL",
        "A_CONTAINS(words, ('storm', 'hail'))",
        "A_OVERLAPS(words, ('storm', 'hail'))",
        "A_CONTAINS(text, ('storm')) AND s IN ('a', 'b')",
        "A_CONTAINS(text, ('hail')) AND S_INTERSECTS(place, BBOX(0, 0, 5, 5)) AND n > 0",
        "s = 'a' AND kind = 'x' AND S_INTERSECTS(place, BBOX(0, 0, 4, 4))",
        "s = 'a' AND kind = 'x' AND S_DWITHIN(place, POINT(1 1), 1)",
        "S_TOUCHES(place, other) OR n = 1",
        "S_DWITHIN(place, POINT(2 1), 1) AND r > 1",  # undecided by bounds for (1 1)
    ]
    for relation in ("S_INTERSECTS", "EH_INSIDE", "EH_DISJOINT", "EH_CONTAINS", "S_TOUCHES"):
        expressions += [f"{relation}(place, {shape})" for shape in _SHAPES.values()]
    expressions += [f"S_INTERSECTS(place, {shape}) AND n > 0" for shape in _SHAPES.values()]
    for function in ("S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_ALLWITHIN", "S_SAMEPLACE"):
        expressions += [f"{function}(place, {shape}, 1)" for shape in _SHAPES.values()]
    for k in range(_MANY):
        box = f"BBOX({k % 8}, {k % 8}, {k % 8 + 2}, {k % 8 + 2})"
        expressions.append(f"A_CONTAINS(text, ('storm')) AND S_INTERSECTS(place, {box})")
    return {str(k): expression for k, expression in enumerate(expressions)}


def _events() -> list[dict[str, Any]]:
    """Return an event at each shape, with a value of each type."""
    values = {
        "n": 2, "r": 1.5, "s": "a", "t": "xbc", "kind": "x", "flag": True, "time": _NOON,
        "words": ["storm", "hail"], "text": "Storm, and hail",
    }  # fmt: skip
    return [{**values, "place": shape, "other": shape} for shape in _SHAPES.values()]


def _match(matcher: Matcher) -> None:
    """Match events one at a time and in batches, with many results and with few."""
    events = _events()
    for event in events:
        matcher.match(event)
    matcher.match_batch(events)
    matcher.match_batch(pa.Table.from_pylist(events), sort=True)
    matcher.match_batch([{"n": 1}])


# ------------------------------------------------------------------------------------- operations


def _tables() -> None:
    """Match words in texts and lists, and sort pairs of events and subscriptions."""
    matcher = Matcher(space="planar")
    for id in ("a", "b"):
        matcher.subscribe(id, "A_CONTAINS(words, ('storm')) AND A_CONTAINS(text, ('storm'))")
    _match(matcher)


def _subscriptions() -> None:
    """Add and remove subscriptions in a memtable."""
    for space in _SPACES:
        matcher = Matcher(space)
        for id, expression in _expressions().items():
            matcher.subscribe(id, expression)
        _match(matcher)
        matcher.unsubscribe("0")
        matcher.match_subscribers(_events()[0])


def _segments() -> None:
    """Match with segments, built and memory-mapped; rank; reindex after events were sampled."""
    rows = [{"id": id, "expression": expression} for id, expression in _expressions().items()]
    for space in _SPACES:
        matcher = Matcher(space)
        matcher.subscribe_many(rows)
        matcher.reindex()
        _match(matcher)
        matcher.rank(_events()[0])
        matcher.match_batch(_events() * _MANY)
        matcher.reindex()
        matcher.subscribe("memtable beside a segment", "n = 1")
        matcher.match(_events()[0])
        with tempfile.TemporaryDirectory() as folder:
            matcher.save(Path(folder) / "index")
            _match(Matcher.open(Path(folder) / "index"))


def _regions_alone() -> None:
    """Match one event where all subscriptions are regions."""
    matcher = Matcher(space="planar")
    region = f"S_INTERSECTS(place, {_SHAPES['triangle']})"
    matcher.subscribe_many([{"id": str(k), "expression": region} for k in range(_MANY)])
    matcher.match({"place": _SHAPES["point"]})


def _city() -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return the subscriptions and the events of the demonstration, with geometries as WKB."""
    random = np.random.default_rng(0)
    rows = [{"id": s.id, "expression": s.expression} for s in city.make_subscriptions(random)]
    return rows, [{**e, "geometry": e["geometry"].wkb} for e in city.make_events(random)]


def _city_at_once() -> None:
    rows, events = _city()
    matcher = Matcher()
    matcher.subscribe_many(rows[1:])
    # Beside the segment of the others: an index that Spark built has several segments, too.
    matcher.subscribe(rows[0]["id"], rows[0]["expression"])
    matcher.match_batch(pa.Table.from_pylist(events))


def _city_one_by_one() -> None:
    rows, events = _city()
    matcher = Matcher()
    for row in rows[:: len(rows) // _MANY]:
        matcher.subscribe(row["id"], row["expression"])
    matcher.match_batch(pa.Table.from_pylist(events))


def _columns() -> None:
    matcher = Matcher(space="planar")
    words = {"text": [["storm", "hail"]] * _MANY}
    values: dict[str, list[object]] = {"s": ["a"] * _MANY, "n": [2] * _MANY}
    places = {"place": (np.tile([0.0, 0.0, 2.0, 2.0], (_MANY, 1)), "S_INTERSECTS")}
    matcher.subscribe_columns(
        [str(k) for k in range(_MANY)], regions=places, keywords=words, equals=values
    )
    _match(matcher)
    ids = [f"many {k}" for k in range(_MANY_IDS)]
    matcher.subscribe_columns(ids, equals={"n": [2] * _MANY_IDS})
    matcher.unsubscribe(ids[0])
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(Path(folder) / "index")
        Matcher.open(Path(folder) / "index").unsubscribe(ids[1])


def _composites() -> None:
    pair = Composite("pair", _PARTS, ["DIST(a, b) < 2"], 60)
    pairs = [
        pair,
        Composite("in", _PARTS, ["IN(a, b)", "IN(a, POLYGON ((0 0, 4 0, 4 4, 0 0)))"], 60),
        Composite("overlap", _PARTS, ["OVLP(a, b)"], 60),
        Composite("centres", _PARTS, ["SPL(a, b) < 5"], 60),
        # The bounds leave these undecided, so they are decided exactly.
        Composite("same", _PARTS, ["IN(a, b)", "OVLP(a, b)", "DIST(a, b) <= 0"], 60),
        Composite("around", _PARTS, ["IN(CIRCLE(1, 1, 0.5), b)"], 60),
        Composite("any", _PARTS, [], 3_600),
    ]
    parts = {"pair": pair, "c": "n = 3"}
    nested = [
        Composite("near", parts, ["DIST(pair, c) < 9", "SPL(pair, c) < 9"], 60),
        Composite("in pair", parts, ["IN(c, pair)", "OVLP(c, pair)"], 60),
    ]
    alone = [Composite("alone", {"pair": pair}, [], 60)]  # keeps no events
    for space in _SPACES:
        for composites in (pairs, nested, alone):
            detector = Detector(composites, geometry="place", space=space, max_members=500)
            for k in range(3 * _MANY):
                at = f"2024-05-01T12:{k // 6:02}:{k % 6 * 10:02}Z"
                shape = [*_SHAPES.values()][k // 2 % len(_SHAPES)]
                detector.push({"id": str(k), "n": k % 3 + 1, "time": at, "place": shape})
            Detector.from_bytes(detector.to_bytes())


def _moving() -> None:
    for space in _SPACES:
        matcher = Matcher(space)
        matcher.subscribe("depot", "S_INTERSECTS(place, BBOX(0, 0, 4, 4))")
        matcher.subscribe("near", "S_DWITHIN(place, POINT(5 5), 2)")
        tracker = Tracker(
            matcher, key="s", on=["enter", "exit", "cross"], hysteresis=0.5, position="place"
        )
        regions = SafeRegions(matcher, position="place")
        for minute, place in enumerate(("POINT (1 1)", "POINT (9 9)", "POINT (-9 -9)")):
            event = {"s": "taxi", "time": f"2024-05-01T12:0{minute}:00Z", "place": place}
            tracker.push(event)
            regions.around(event, key="taxi")
        matcher.move("near", "place", "POINT (1 1)")


def _simplify() -> None:
    rows = [
        {"id": id, "expression": f"({expression}) AND n > 1", "subscriber": "me"}
        for id, expression in _expressions().items()
    ]
    for space in _SPACES:
        simplify_many(rows, space=space)


def _relations() -> None:
    shapes = [*_SHAPES.values()]
    for shape in shapes:
        relate_pairs(shapes, [shape] * len(shapes))
    relate_pairs(np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 1.0, 3.0, 3.0]]))
    table = pa.table({"id": ["a"], "place": [_wkb_point()]})
    matcher = Matcher(space="planar")
    matcher.subscribe("a", "EH_INSIDE(place, BBOX(0, 0, 4, 4))")
    matcher.match_batch(table)
    matcher.match({"place": _INVALID_AREA})
    matcher.explain(_events()[0], "a")


def _wkb_point() -> bytes:
    return b"\x01\x01\x00\x00\x00" + np.ones(2).tobytes()


def _distances() -> None:
    for space in _SPACES:
        matcher = Matcher(space)
        for function in ("S_DWITHIN", "S_ALLWITHIN", "S_SAMEPLACE"):
            for name, shape in _SHAPES.items():
                matcher.subscribe(f"{function}{name}", f"{function}(place, {shape}, 1)")
        for event in _events():
            for id in matcher.ids():
                matcher.explain(event, id)
            matcher.match(event)


def _published(name: IndexName) -> None:
    matcher = Matcher(index=name, space="planar")
    for id, expression in _expressions().items():
        matcher.subscribe(id, expression)
    for event in _events():
        matcher.match(event)
    for id in _expressions():
        matcher.unsubscribe(id)
    matcher.match(_events()[0])


def _sampled() -> None:
    relate_by_samples(_SHAPES["box"], _SHAPES["triangle"], 1.0)


def _orders() -> None:
    start, tokens = np.arange(2), np.zeros(1, np.uint32)
    boxes = np.zeros((1, 4))
    build("keyword-first", boxes, start, tokens).match_many(boxes, start, tokens)
    for order in ("random", "df"):
        build("rt+", boxes, start, tokens, order=order)
    build("rt", boxes, start, tokens).candidate_nodes(boxes, tokens)
