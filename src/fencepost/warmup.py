"""Small real operations that between them call every kernel: its machine code is there later.

Kernels are compiled for the types of what they are given. Only the real operation gives them what
it does later, so nothing here makes up arrays: subscriptions of every kind meet events of every
kind. `tests/test_warmup.py` finds a kernel that is called from outside and not from here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from fencepost.engine.index_registry import INDEXES
from fencepost.engine.matcher import Matcher
from fencepost.engine.relate import relate_pairs
from fencepost.engine.simplify import simplify_many
from fencepost.kernels.runtime.compilation import cache_folder, fewer_collections
from fencepost.papers.regions.adapter import relate_by_samples
from fencepost.papers.spatiotextual.trees import build
from fencepost.saferegion.safe_regions import SafeRegions
from fencepost.tracking.tracker import Tracker

Step = tuple[str, Callable[[], None]]

_SPACES = ("planar", "wgs84")
_NOON = "2024-05-01T12:00:00Z"
_SHAPES = {
    "point": "POINT (1 1)",
    "points": "MULTIPOINT (1 1, 9 9)",
    "line": "LINESTRING (0 0, 3 3)",
    "box": "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))",
    "triangle": "POLYGON ((0 0, 4 0, 0 4, 0 0))",
    "ring": "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1))",
}
_CUT_IN_FOUR = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 2, 2 0, 4 2, 2 4, 0 2))"  # not valid
_PARTS = {"a": "n = 1", "b": "n = 2"}
_MANY = 70  # of one kind: more than a list without a tree holds, or the first room for new ones
_SO_MANY = 2**17 + 1  # ids, of which no Python objects are kept


def steps() -> list[Step]:
    """What this process does, by name: first what needs no kernels of geometry."""
    return [
        ("events of a table", _tables),
        ("composites", _composites),
        ("one subscription after another", _subscriptions),
        ("segments, in memory and mapped", _segments),
        ("subscriptions as columns", _columns),
        ("moving objects and safe regions", _moving),
        ("simplification", _simplify),
    ]


def steps_beside() -> list[Step]:
    """What a process beside this one does meanwhile: geometry, then the published systems."""
    systems = [name for name in INDEXES if name not in ("auto", "reference")]
    return [
        ("relations", _relations),
        ("distances", _distances),
        *((f"the index {name}", lambda name=name: _published(name)) for name in systems),
        ("relations by samples", _sampled),
        ("keywords first, and orders of tokens", _orders),
    ]


def run_beside() -> None:
    """Run every step of the process beside."""
    with fewer_collections():
        for _, step in steps_beside():
            step()


def begin() -> BaseProcess | None:
    """That process, where nothing is compiled yet and a processor is idle."""
    if any(cache_folder().iterdir()) or (os.cpu_count() or 1) < 2:
        return None
    process = get_context("spawn").Process(target=run_beside, daemon=True)
    process.start()
    return process


# ------------------------------------------------------------------------------------ what is asked


def _expressions() -> dict[str, str]:
    """A subscription of each kind, by where it stands in a segment and what decides it."""
    asked = [
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
        "S_DWITHIN(place, POINT(2 1), 1) AND r > 1",  # too close to call, beside (1 1)
    ]
    for relation in ("S_INTERSECTS", "EH_INSIDE", "EH_DISJOINT", "EH_CONTAINS", "S_TOUCHES"):
        asked += [f"{relation}(place, {shape})" for shape in _SHAPES.values()]
    asked += [f"S_INTERSECTS(place, {shape}) AND n > 0" for shape in _SHAPES.values()]
    for function in ("S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_ALLWITHIN", "S_SAMEPLACE"):
        asked += [f"{function}(place, {shape}, 1)" for shape in _SHAPES.values()]
    for k in range(_MANY):
        box = f"BBOX({k % 8}, {k % 8}, {k % 8 + 2}, {k % 8 + 2})"
        asked.append(f"A_CONTAINS(text, ('storm')) AND S_INTERSECTS(place, {box})")
    return {str(k): expression for k, expression in enumerate(asked)}


def _events() -> list[dict[str, Any]]:
    """An event at each shape, with a value of each kind."""
    values = {
        "n": 2, "r": 1.5, "s": "a", "t": "xbc", "kind": "x", "flag": True, "time": _NOON,
        "words": ["storm", "hail"], "text": "Storm, and hail",
    }  # fmt: skip
    return [{**values, "place": shape, "other": shape} for shape in _SHAPES.values()]


def _match(matcher: Matcher) -> None:
    """Match events one at a time and together: many that find much, and one that finds little."""
    events = _events()
    for event in events:
        matcher.match(event)
    matcher.match_batch(events)
    matcher.match_batch(pa.Table.from_pylist(events), sort=True)
    matcher.match_batch([{"n": 1}])


# ------------------------------------------------------------------------------------- operations


def _tables() -> None:
    """Words of texts and lists, names of subscriptions, and pairs of them in order."""
    matcher = Matcher()
    for id in ("a", "b"):
        matcher.subscribe(id, "A_CONTAINS(words, ('storm')) AND A_CONTAINS(text, ('storm'))")
    _match(matcher)


def _subscriptions() -> None:
    """Subscriptions that come and go, in the arrays that grow."""
    for space in _SPACES:
        matcher = Matcher(space)
        for id, expression in _expressions().items():
            matcher.subscribe(id, expression)
        _match(matcher)
        matcher.unsubscribe("0")
        matcher.match_subscribers(_events()[0])


def _segments() -> None:
    """Segments as they are built, and as they are mapped; ranked, and planned by what was seen."""
    rows = [{"id": id, "expression": asked} for id, asked in _expressions().items()]
    for space in _SPACES:
        matcher = Matcher(space)
        matcher.subscribe_many(rows)
        matcher.reindex()
        _match(matcher)
        matcher.rank(_events()[0])
        matcher.match_batch(_events() * _MANY)
        matcher.reindex()
        matcher.subscribe("one beside a segment", "n = 1")
        matcher.match(_events()[0])
        with tempfile.TemporaryDirectory() as folder:
            matcher.save(Path(folder) / "index")
            _match(Matcher.open(Path(folder) / "index"))


def _columns() -> None:
    matcher = Matcher()
    words = {"text": [["storm", "hail"]] * _MANY}
    values: dict[str, list[object]] = {"s": ["a"] * _MANY, "n": [2] * _MANY}
    places = {"place": (np.tile([0.0, 0.0, 2.0, 2.0], (_MANY, 1)), "S_INTERSECTS")}
    matcher.subscribe_columns(
        [str(k) for k in range(_MANY)], regions=places, keywords=words, equals=values
    )
    _match(matcher)
    ids = [f"many {k}" for k in range(_SO_MANY)]
    matcher.subscribe_columns(ids, equals={"n": [2] * _SO_MANY})
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
        # Too close to call: decided once more, exactly.
        Composite("same", _PARTS, ["IN(a, b)", "OVLP(a, b)", "DIST(a, b) <= 0"], 60),
        Composite("around", _PARTS, ["IN(CIRCLE(1, 1, 0.5), b)"], 60),
        Composite("any", _PARTS, [], 3_600),
    ]
    parts = {"pair": pair, "c": "n = 3"}
    nested = [
        Composite("near", parts, ["DIST(pair, c) < 9", "SPL(pair, c) < 9"], 60),
        Composite("in pair", parts, ["IN(c, pair)", "OVLP(c, pair)"], 60),
    ]
    alone = [Composite("alone", {"pair": pair}, [], 60)]  # for which nothing is kept
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
        {"id": id, "expression": f"({asked}) AND n > 1", "subscriber": "me"}
        for id, asked in _expressions().items()
    ]
    for space in _SPACES:
        simplify_many(rows, space=space)


def _relations() -> None:
    shapes = [*_SHAPES.values()]
    for other in shapes:
        relate_pairs(shapes, [other] * len(shapes))
    relate_pairs(np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 1.0, 3.0, 3.0]]))
    table = pa.table({"id": ["a"], "place": [_wkb_point()]})
    matcher = Matcher()
    matcher.subscribe("a", "EH_INSIDE(place, BBOX(0, 0, 4, 4))")
    matcher.match_batch(table)
    matcher.match({"place": _CUT_IN_FOUR})
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


def _published(name: str) -> None:
    matcher = Matcher(index=name)
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
