"""Named cases of moving objects and their notifications: the table of docs/tracking.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import fencepost as fp

Report: TypeAlias = tuple[str, str, float]  # kind, subscription, second of the report
Step: TypeAlias = Callable[[fp.Matcher, fp.Tracker], list[fp.Notification]]

SECOND = 1_000_000_000
DEPOT = "S_INTERSECTS(geometry, BBOX(0, 0, 10, 10))"
ALL = ("enter", "exit", "cross", "dwell", "inside", "outside")


def at(second: float, x: float, y: float, **attributes: object) -> dict[str, object]:
    """Return a position of the vehicle at a second after 1970."""
    stamp = f"1970-01-01T{int(second) // 3600:02}:{int(second) // 60 % 60:02}:{second % 60:012.9f}Z"
    return {"vehicle": "v", "time": stamp, "geometry": f"POINT ({x} {y})", **attributes}


def edit(expression: str) -> Step:
    def do(matcher: fp.Matcher, tracker: fp.Tracker) -> list[fp.Notification]:
        matcher.subscribe("depot", expression, subscriber="owner", replace=True)
        return []

    return do


def add(id: str, expression: str) -> Step:
    def do(matcher: fp.Matcher, tracker: fp.Tracker) -> list[fp.Notification]:
        matcher.subscribe(id, expression)
        return []

    return do


def remove(matcher: fp.Matcher, tracker: fp.Tracker) -> list[fp.Notification]:
    matcher.unsubscribe("depot")
    return []


def refresh(matcher: fp.Matcher, tracker: fp.Tracker) -> list[fp.Notification]:
    return tracker.refresh()


def tick(second: float) -> Step:
    return lambda _, tracker: tracker.tick(int(second * SECOND))


@dataclass(frozen=True)
class Case:
    name: str
    steps: list[dict[str, object] | Step]
    expected: list[Report]
    on: tuple[Any, ...] = ("enter", "exit")
    expression: str = DEPOT
    options: dict[str, Any] = field(default_factory=dict)
    causes: str = ""  # the first letter of each cause; "" if all are movements


CASES = [
    Case(
        "in and out",
        [at(0, -5, 5), at(10, 5, 5), at(20, 5, 6), at(30, 15, 5)],
        [("enter", "depot", 10), ("exit", "depot", 30)],
    ),
    Case("first seen inside", [at(0, 5, 5)], [("enter", "depot", 0)]),
    Case(
        "jitter on the border, reported as it is",
        [at(0, 9, 5), at(1, 11, 5), at(2, 9, 5), at(3, 11, 5)],
        [("enter", "depot", 0), ("exit", "depot", 1), ("enter", "depot", 2), ("exit", "depot", 3)],
    ),
    Case(
        "jitter on the border, debounced",
        [
            at(0, 9, 5),
            at(5, 9, 5),
            at(6, 11, 5),
            at(7, 9, 5),
            at(8, 11, 5),
            at(9, 11, 5),
            at(13, 11, 5),
        ],
        [("enter", "depot", 5), ("exit", "depot", 13)],
        options={"debounce_s": 5},
    ),
    Case(
        "jitter on the border, with hysteresis",
        [
            at(0, 9, 5),
            at(1, 11, 5),
            at(2, 9, 5),
            at(3, 11.9, 5),
            at(4, 12.1, 5),
            at(5, 11, 5),
            at(6, 10, 5),
        ],
        [("enter", "depot", 0), ("exit", "depot", 4), ("enter", "depot", 6)],
        options={"hysteresis": 2},
    ),
    Case(
        "hysteresis does not keep an object in that fails another condition",
        [at(0, 9, 5, free=True), at(1, 9, 5, free=False)],
        [("enter", "depot", 0), ("exit", "depot", 1)],
        expression=f"{DEPOT} AND free",
        options={"hysteresis": 2},
    ),
    Case(
        "hysteresis at the corner is a distance, not a box",
        [at(0, 9, 9), at(1, 11.4, 11.4), at(2, 11.5, 11.5)],
        [("enter", "depot", 0), ("exit", "depot", 2)],
        options={"hysteresis": 2},
    ),
    Case(
        "dwell, reported at a position",
        [at(0, 5, 5), at(59, 5, 5), at(61, 5, 5), at(300, 5, 5)],
        [("dwell", "depot", 61)],
        on=("dwell",),
        options={"dwell_s": 60},
    ),
    Case(
        "dwell, reported at a tick",
        [at(0, 5, 5), tick(59), tick(60), tick(90)],
        [("dwell", "depot", 60)],
        on=("dwell",),
        options={"dwell_s": 60},
    ),
    Case(
        "dwell again after a new enter",
        [at(0, 5, 5), at(60, 5, 5), at(70, 20, 5), at(80, 5, 5), at(150, 5, 5)],
        [("dwell", "depot", 60), ("dwell", "depot", 150)],
        on=("dwell",),
        options={"dwell_s": 60},
    ),
    Case(
        "left before it was a dwell",
        [at(0, 5, 5), at(50, 20, 5), at(70, 5, 5), at(120, 5, 5)],
        [],
        on=("dwell",),
        options={"dwell_s": 60},
    ),
    Case(
        "dwell over jitter that is debounced",
        [at(0, 5, 5), at(40, 5, 5), at(59, 11, 5), at(61, 11, 5), at(62, 5, 5)],
        [("enter", "depot", 40), ("dwell", "depot", 62)],
        on=("enter", "exit", "dwell"),
        options={"dwell_s": 60, "debounce_s": 30},
    ),
    Case(
        "exit reported at a tick: no dwell",
        [at(0, 5, 5), at(10, 5, 5), at(11, 20, 5), tick(25)],
        [("enter", "depot", 10), ("exit", "depot", 25)],
        on=("enter", "exit", "dwell"),
        options={"dwell_s": 12, "debounce_s": 10},
    ),
    Case(
        "gap in positions: a stay goes on",
        [at(0, 5, 5), at(7200, 5, 5), at(7210, 20, 5)],
        [("enter", "depot", 0), ("exit", "depot", 7210)],
    ),
    Case(
        "gap in positions: the path is unknown",
        [at(0, -5, 5), at(7200, 15, 5)],
        [],
        on=("enter", "exit", "cross"),
        options={"gap_s": 600},
    ),
    Case(
        "teleport through a fence",
        [at(0, -5, 5), at(10, 15, 5)],
        [("cross", "depot", 10)],
        on=("enter", "exit", "cross"),
    ),
    Case("past a corner", [at(0, -1, 12), at(10, 12, 12)], [], on=("cross",)),
    Case(
        "touching a corner, with S_INTERSECTS",
        [at(0, 9, 11), at(10, 11, 9)],
        [("cross", "depot", 10)],
        on=("cross",),
    ),
    Case(
        "touching a corner, with S_WITHIN",
        [at(0, 9, 11), at(10, 11, 9)],
        [],
        on=("cross",),
        expression="S_WITHIN(geometry, BBOX(0, 0, 10, 10))",
    ),
    Case(
        "along an edge, with EH_INSIDE",
        [at(0, -5, 10), at(10, 15, 10)],
        [],
        on=("cross",),
        expression="EH_INSIDE(geometry, BBOX(0, 0, 10, 10))",
    ),
    Case(
        "past a point, within a distance",
        [at(0, -5, 3), at(10, 5, 3)],
        [("cross", "depot", 10)],
        on=("cross",),
        expression="S_DWITHIN(geometry, POINT(0 0), 3)",
    ),
    Case(
        "past a point, closer than a distance",
        [at(0, -5, 3), at(10, 5, 3)],
        [],
        on=("cross",),
        expression="S_CLOSER(geometry, POINT(0 0), 3)",
    ),
    Case(
        "through a fence, but another condition fails",
        [at(0, -5, 5, free=True), at(10, 15, 5, free=False)],
        [],
        on=("cross",),
        expression=f"{DEPOT} AND free",
    ),
    Case(
        "into a fence is no crossing",
        [at(0, -5, 5), at(10, 5, 5)],
        [("enter", "depot", 10)],
        on=("enter", "cross"),
    ),
    Case(
        "through a gap where a negation matches",
        [at(0, 2, 5), at(10, 8, 5)],
        [("cross", "depot", 10)],
        on=("cross",),
        expression="NOT S_INTERSECTS(geometry, MULTIPOLYGON(((0 0, 4 0, 4 9, 0 9, 0 0)), "
        "((6 0, 9 0, 9 9, 6 9, 6 0))))",
    ),
    Case("a late position, without lateness_s", [at(0, -5, 5), at(20, 15, 5), at(10, 5, 5)], []),
    Case(
        "a late position, within lateness_s",
        [at(0, -5, 5), at(20, 15, 5), at(10, 5, 5), tick(60)],
        [("enter", "depot", 10), ("exit", "depot", 20)],
        options={"lateness_s": 30},
    ),
    Case(
        "a late position, beyond lateness_s",
        [at(0, -5, 5), at(50, 15, 5), at(100, 15, 5), at(10, 5, 5), tick(200)],
        [],
        options={"lateness_s": 40},
    ),
    Case(
        "the same position twice",
        [at(0, 5, 5), at(0, 5, 5)],
        [("inside", "depot", 0)],
        on=("inside",),
    ),
    Case(
        "a fence added under a parked object",
        [at(0, 20, 5), add("new", "S_INTERSECTS(geometry, BBOX(19, 0, 30, 10))"), refresh, refresh],
        [("enter", "new", 0)],
        causes="r",
    ),
    Case(
        "a fence edited under a parked object",
        [at(0, 5, 5), edit("S_INTERSECTS(geometry, BBOX(6, 0, 10, 10))"), refresh, refresh],
        [("enter", "depot", 0), ("exit", "depot", 0)],
        causes="mr",
    ),
    Case(
        "a fence edited so that the object stays in",
        [at(0, 5, 5), edit("S_INTERSECTS(geometry, BBOX(4, 0, 10, 10))"), refresh, at(5, 5, 5)],
        [("enter", "depot", 0)],
    ),
    Case(
        "a fence removed under a parked object",
        [at(0, 5, 5), remove, refresh, refresh],
        [("enter", "depot", 0), ("exit", "depot", 0)],
        causes="mr",
    ),
    Case(
        "a fence removed, noticed at the next position",
        [at(0, 5, 5), remove, at(9, 5, 5)],
        [("enter", "depot", 0), ("exit", "depot", 9)],
        causes="mr",
    ),
    Case(
        "a change of rules is reported at once",
        [at(0, 5, 5), at(60, 5, 5), remove, at(61, 5, 5)],
        [("enter", "depot", 60), ("exit", "depot", 61)],
        causes="mr",
        options={"debounce_s": 60},
    ),
    Case(
        "a fence added between two positions is entered by rule, or by movement",
        [
            at(0, 5, 5),
            add("here", "S_INTERSECTS(geometry, BBOX(4, 4, 6, 6))"),
            add("there", "S_INTERSECTS(geometry, BBOX(7, 4, 9, 6))"),
            at(9, 5, 6),
            at(10, 8, 5),
        ],
        [("enter", "depot", 0), ("enter", "here", 9), ("exit", "here", 10), ("enter", "there", 10)],
        causes="mrmm",
    ),
    Case(
        "inside and outside, every position",
        [at(0, 20, 5), at(10, 5, 5), at(20, 6, 5), at(30, 20, 5), at(40, 30, 5), at(50, 5, 5)],
        [
            ("inside", "depot", 10),
            ("inside", "depot", 20),
            ("outside", "depot", 30),
            ("outside", "depot", 40),
            ("inside", "depot", 50),
        ],
        on=("inside", "outside"),
    ),
    Case(
        "everything at once",
        [at(0, 5, 5), at(60, 5, 5), at(70, 20, 5)],
        [
            ("enter", "depot", 0),
            ("inside", "depot", 0),
            ("dwell", "depot", 60),
            ("inside", "depot", 60),
            ("exit", "depot", 70),
            ("outside", "depot", 70),
        ],
        on=ALL,
        options={"dwell_s": 60},
    ),
    Case(
        "forgotten when silent, though known before",
        [at(0, 5, 5), tick(1), at(100, 5, 5), at(301, 5, 5)],
        [("enter", "depot", 0), ("enter", "depot", 301)],
        options={"forget_after_s": 200},
    ),
    Case(
        "forgotten when silent",
        [at(0, 5, 5), at(100, 5, 5), at(301, 5, 5)],
        [("enter", "depot", 0), ("enter", "depot", 301)],
        options={"forget_after_s": 200},
    ),
]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "as tables"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, together: bool) -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("depot", case.expression, subscriber="owner")
    tracker = fp.Tracker(matcher, key="vehicle", on=case.on, **case.options)
    notifications: list[fp.Notification] = []
    for are_positions, steps in groupby(case.steps, lambda step: isinstance(step, dict)):
        if are_positions and together:
            notifications += tracker.push_batch(pa.Table.from_pylist(list(steps)))
            continue
        for step in steps:
            notifications += (
                tracker.push(step) if isinstance(step, dict) else step(matcher, tracker)
            )
    assert [(n.kind, n.subscription, n.reported / SECOND) for n in notifications] == case.expected
    assert "".join(n.cause[0] for n in notifications) == (case.causes or "m" * len(notifications))
    assert all(n.key == "v" for n in notifications)
    assert all(n.since <= n.time <= n.reported for n in notifications)
    owners = [n.subscriber for n in notifications if n.subscription == "depot"]
    assert owners == ["owner"] * len(owners)
