"""A slow, plain replay of positions: the oracle of a tracker's tests.

It compares every object with every fence at each position. The reference evaluator decides matches,
and Shapely decides paths and distances. It shares no code with `fencepost.tracking`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import parse
from fencepost.reference import matches

SECOND = 1_000_000_000
Report: TypeAlias = tuple[str, str, str, int, int, int, str]


@dataclass(frozen=True)
class Fence:
    """A place on the lattice, with a further condition on `n`."""

    function: str
    place: BaseGeometry
    distance: float = 0.0
    min_n: int = 0

    @property
    def expression(self) -> str:
        extra = f", {self.distance}" if self.function in ("S_DWITHIN", "S_BEYOND") else ""
        return f"{self.function}(geometry, {self.place.wkt}{extra}) AND n >= {self.min_n}"

    def holds(self, event: dict[str, Any]) -> bool:
        return bool(matches(_parsed(self.expression), event))

    def nearly_holds(self, event: dict[str, Any], by: float) -> bool:
        """Return whether a point at most `by` away would match."""
        point = shapely.from_wkt(event["geometry"])
        if event["n"] < self.min_n:
            return False
        if self.function == "S_DISJOINT":
            return not self.place.intersects(point) or self.place.boundary.distance(point) <= by
        if self.function == "S_BEYOND":
            return bool(self.place.distance(point) >= self.distance - by)
        return bool(self.place.distance(point) <= self.distance + by)

    def passed(self, start: BaseGeometry, event: dict[str, Any]) -> bool:
        end = shapely.from_wkt(event["geometry"])
        if event["n"] < self.min_n or start == end:
            return False
        path = shapely.LineString((start, end))
        if self.function == "S_INTERSECTS":
            return bool(self.place.intersects(path))
        if self.function == "S_WITHIN":  # true for the interior of an area
            return bool(path.relate(self.place)[0] != "F")
        if self.function == "S_DISJOINT":
            return bool(not self.place.covers(path))
        if self.function == "S_BEYOND":  # the farthest point of a path is an end
            return any(self.place.distance(point) > self.distance for point in (start, end))
        return bool(self.place.distance(path) <= self.distance)


_parsed = cache(parse)


@dataclass
class Pair:
    """The state of an object and a fence."""

    is_in: bool = False
    is_reported: bool = False
    since: int = 0
    changed: int | None = None
    has_dwelt: bool = False
    left: int | None = None


@dataclass
class Replay:
    """The settings of a `Tracker`, and the state of the replay."""

    on: frozenset[str]
    debounce: int = 0
    dwell: int = 0
    hysteresis: float = 0.0
    lateness: int = 0
    gap: int | None = None
    forget: int | None = None
    fences: dict[str, Fence] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, dict[str, Any]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], Pair] = field(default_factory=dict)
    clock: int | None = None
    late: int = 0

    def push(self, event: dict[str, Any]) -> list[Report]:
        key, time = event["vehicle"], event["ns"]
        self._forget()
        last = self.last.get(key)
        same = any(other["vehicle"] == key and other["ns"] == time for other in self.waiting)
        if same or (last is not None and time <= last["ns"]):
            self.late += 1
            return []
        self.waiting.append(event)
        self.clock = time if self.clock is None else max(self.clock, time)
        return self._release()

    def tick(self, time: int) -> list[Report]:
        self.clock = time if self.clock is None else max(self.clock, time)
        reports = self._release()
        self._forget()
        now = self.clock - self.lateness
        for key, last in self.last.items():
            for id in self._ids():
                if now > last["ns"]:
                    reports += self._wait(key, id, now)
        return sorted(reports)

    def refresh(self) -> list[Report]:
        self._forget()
        reports: list[Report] = []
        for key, last in self.last.items():
            when = max(last["ns"], self.clock - self.lateness)  # type: ignore[operator]
            for id in self._ids():
                pair = self._pair(key, id)
                now = self._in(key, id, last)
                if now != pair.is_in:
                    reports += self._change(key, id, now, when, "rule")
        return sorted(reports)

    def _forget(self) -> None:
        if self.forget is None or self.clock is None:
            return
        for key in list(self.last):
            if self.clock - self.lateness - self.last[key]["ns"] > self.forget:
                del self.last[key]
                self.pairs = {at: pair for at, pair in self.pairs.items() if at[0] != key}

    def _release(self) -> list[Report]:
        reports: list[Report] = []
        assert self.clock is not None
        due = [event for event in self.waiting if event["ns"] <= self.clock - self.lateness]
        for event in sorted(due, key=lambda event: event["ns"]):
            self.waiting.remove(event)
            self._forget()
            reports += self._position(event)
        return sorted(reports)

    def _position(self, event: dict[str, Any]) -> list[Report]:
        key, time = event["vehicle"], event["ns"]
        last = self.last.get(key)
        reports: list[Report] = []
        for id in self._ids():
            pair = self._pair(key, id)
            now = self._in(key, id, event)
            before = last is not None and self._in(key, id, last)
            if last is not None and not pair.is_in and not now and not before:
                reports += self._cross(key, id, last, event)
            by_rule = last is not None and now != pair.is_in and now == before
            cause = "rule" if by_rule else "movement"
            reports += self._change(key, id, now, time, cause)
            reports += self._wait(key, id, time)
            if "inside" in self.on and pair.is_reported:
                reports.append(("inside", key, id, time, pair.since, time, "movement"))
            if "outside" in self.on and pair.left is not None and id in self.fences:
                reports.append(("outside", key, id, time, pair.left, time, "movement"))
            if id not in self.fences:
                pair.left = None
        self.last[key] = event
        return reports

    def _ids(self) -> list[str]:
        return sorted({*self.fences, *(id for _, id in self.pairs)})

    def _pair(self, key: str, id: str) -> Pair:
        return self.pairs.setdefault((key, id), Pair())

    def _in(self, key: str, id: str, event: dict[str, Any]) -> bool:
        fence = self.fences.get(id)
        if fence is None:
            return False
        is_held = self.hysteresis > 0 and self._pair(key, id).is_in
        return fence.holds(event) or (is_held and fence.nearly_holds(event, self.hysteresis))

    def _cross(
        self, key: str, id: str, last: dict[str, Any], event: dict[str, Any]
    ) -> list[Report]:
        is_short = self.gap is None or event["ns"] - last["ns"] <= self.gap
        if "cross" not in self.on or not is_short or id not in self.fences:
            return []
        if not self.fences[id].passed(shapely.from_wkt(last["geometry"]), event):
            return []
        return [("cross", key, id, event["ns"], last["ns"], event["ns"], "movement")]

    def _change(self, key: str, id: str, now: bool, time: int, cause: str) -> list[Report]:
        pair = self._pair(key, id)
        pair.is_in = now
        if now == pair.is_reported:
            pair.changed = None
            return []
        if pair.changed is None:
            pair.changed = time
        if cause == "rule" or time - pair.changed >= self.debounce:
            return self._report(key, id, time, cause)
        return []

    def _wait(self, key: str, id: str, time: int) -> list[Report]:
        pair = self._pair(key, id)
        reports: list[Report] = []
        if pair.changed is not None and time - pair.changed >= self.debounce:
            reports += self._report(key, id, time, "movement")
        due = pair.is_reported and pair.changed is None and not pair.has_dwelt
        if "dwell" in self.on and due and time - pair.since >= self.dwell:
            pair.has_dwelt = True
            reports.append(("dwell", key, id, time, pair.since, time, "movement"))
        return reports

    def _report(self, key: str, id: str, time: int, cause: str) -> list[Report]:
        pair = self._pair(key, id)
        began = pair.changed
        assert began is not None
        pair.changed, pair.is_reported = None, not pair.is_reported
        if pair.is_reported:
            pair.since, pair.has_dwelt, pair.left = began, False, None
        else:
            pair.left = began
        kind = "enter" if pair.is_reported else "exit"
        return [(kind, key, id, began, pair.since, time, cause)] if kind in self.on else []
