"""How the members of a composite are joined: in which order, by which conditions.

A new item plays one part; the other parts are added one after the other to what has been put
together so far, each found near a part that is already there, where a condition says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.live_members import Items, LiveMembers
from fencepost.composite.member_conditions import Asked, MemberCondition, Place
from fencepost.composite.member_relations import related
from fencepost.composite.model import Composite
from fencepost.cql2.ast import ComparisonOp
from fencepost.geometry.space import Space
from fencepost.kernels.detect.member_grid import PartnerQuery
from fencepost.kernels.geodesic.geodesics import MIN_CURVATURE_RADIUS_M
from fencepost.kernels.geodesic.geodesics import expand_boxes as boxes_within

EVERYWHERE = float("inf")
_PAIRS = 1 << 20  # looked at together, where there is a most that may be found


def reach(asked: Asked) -> float:
    """How far apart two members can be at most; infinite where there is no such bound."""
    if asked.place in (Place.IN, Place.OVLP):
        return 0.0
    assert asked.distance is not None
    if asked.compare in (ComparisonOp.GT, ComparisonOp.GE):
        return EVERYWHERE
    return float(np.nextafter(asked.distance + asked.tolerance, np.inf))


def in_degrees(space: Space, distance: float) -> float:
    """About how far that is in the unit of coordinates."""
    return (
        float(np.degrees(distance / MIN_CURVATURE_RADIUS_M)) if space is Space.WGS84 else distance
    )


class Step(NamedTuple):
    """One part more.

    Attributes
    ----------
    part : int
        Which.
    anchor : int
        Near which of the parts that are there.
    reach : float
    tests : tuple of (Asked, left, right)
        What is asked of it and a part that is there.
    """

    part: int
    anchor: int
    reach: float
    tests: tuple[tuple[Asked, int, int], ...]


class Put(NamedTuple):
    """Parts put together: a row each, an item a part; and the times that they span."""

    items: NDArray[np.int64]
    earliest: Items
    latest: Items


@dataclass(slots=True)
class Join:
    """A composite, or one within another, as it is joined.

    Attributes
    ----------
    composite : Composite
    within : int
        In nanoseconds; within another, no more than its window.
    since : int
        The number of the first event that counts for it.
    parent : tuple of Join and int, or None
        Which part of which other it is.
    pools : list of int
        By part.
    steps : list of tuple of Step
        By the part that comes last.
    space : Space
    most : int, optional
        How many rows are put together at most.
    """

    composite: Composite
    within: int
    since: int
    parent: tuple[Join, int] | None
    pools: list[int]
    steps: list[tuple[Step, ...]]
    has_parts_within: bool
    space: Space
    most: int | None

    @classmethod
    def of(
        cls,
        composite: Composite,
        within: int,
        since: int,
        parent: tuple[Join, int] | None,
        space: Space = Space.PLANAR,
        most: int | None = None,
    ) -> Join:
        """How a composite is joined; its pools are to be named."""
        names = [*composite.members]
        place = {name: k for k, name in enumerate(names)}
        between = [
            (condition.asked, place[str(condition.left)], place[str(condition.right)])
            for condition in composite.where
            if len(condition.names) == 2
        ]
        steps = [_steps(last, len(names), between) for last in range(len(names))]
        nested = any(isinstance(one, Composite) for one in composite.members.values())
        return cls(composite, within, since, parent, [], steps, nested, space, most)

    def of_constants(self, name: str) -> tuple[MemberCondition, ...]:
        """The conditions of a part and a constant."""
        return tuple(one for one in self.composite.where if one.names == (name,))

    def found(self, live: LiveMembers, last: int, item: int) -> tuple[Put, bool]:
        """What a new item, in the part `last`, makes complete with what is live; whether all."""
        own = live.arrays.items[item]
        put = Put(
            np.full((1, len(self.pools)), item, np.int64),
            own["earliest"][None],
            own["latest"][None],
        )
        bound = [last]
        whole = True
        for step in self.steps[last]:
            if not len(put.items):
                break
            if self.most is None:
                put = self._extended(live, put, step, bound)
            else:
                put, all_of_them = self._extended_at_most(live, put, step, bound, self.most)
                whole = whole and all_of_them
            bound.append(step.part)
        return put, whole

    def _extended_at_most(
        self, live: LiveMembers, put: Put, step: Step, bound: list[int], most: int
    ) -> tuple[Put, bool]:
        """The same as `_extended`, up to so many rows, with bounded room."""
        width = max(1, _PAIRS // max(len(live), 1))
        found: list[Put] = []
        count = 0
        for start in range(0, len(put.items), width):
            part = Put(*(one[start : start + width] for one in put))
            found.append(self._extended(live, part, step, bound))
            count += len(found[-1].items)
            if count > most:
                break
        together = Put(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        return Put(*(one[:most] for one in together)), count <= most

    def _extended(self, live: LiveMembers, put: Put, step: Step, bound: list[int]) -> Put:
        anchors = np.ascontiguousarray(put.items[:, step.anchor])
        if self.space is Space.WGS84 and 0.0 < step.reach < EVERYWHERE:
            rows, new = self._found_in_degrees(live, put, step, anchors)
        else:
            rows, new = self._found_near(live, put, step, anchors, step.reach)
        if not len(rows):
            return Put(put.items[:0], put.earliest[:0], put.latest[:0])
        if len(bound) > 1 or self.has_parts_within:
            apart = self._apart(live, put.items[rows][:, bound], new)
            rows, new = rows[apart], new[apart]
        for test, left, right in step.tests:
            if not len(rows):
                break
            a, b = (new if part == step.part else put.items[rows, part] for part in (left, right))
            kept = related(live, test, a, b, self.space)
            rows, new = rows[kept], new[kept]
        items = put.items[rows]
        items[:, step.part] = new
        times = live.arrays.items[new]
        return Put(
            items,
            np.minimum(put.earliest[rows], times["earliest"]),
            np.maximum(put.latest[rows], times["latest"]),
        )

    def _found_near(
        self, live: LiveMembers, put: Put, step: Step, anchors: Items, reach: float
    ) -> tuple[Items, Items]:
        """Rows, and items whose boxes are within reach of the anchors of these."""
        everywhere = reach == EVERYWHERE
        asked = PartnerQuery(
            self.pools[step.part],
            everywhere,
            0.0 if everywhere else reach,
            self.within,
            self.since,
        )
        return live.find(asked, anchors, put.earliest, put.latest)

    def _found_in_degrees(
        self, live: LiveMembers, put: Put, step: Step, anchors: Items
    ) -> tuple[Items, Items]:
        """The same for metres: by boxes in degrees, or everywhere round a pole or beyond 180."""
        own = live.arrays.items[anchors]
        boxes = np.column_stack([own[name] for name in ("x0", "y0", "x1", "y1")])
        reached = boxes_within(boxes, np.full(len(boxes), step.reach))
        low, high = boxes[:, :2] - reached[:, 0, :2], reached[:, 0, 2:] - boxes[:, 2:]
        degrees = np.maximum(low, high).max(1)
        wide = (reached[:, 1, 0] <= reached[:, 1, 2]) | (np.abs(reached[:, 0, ::2]) >= 180.0).any(1)
        wide |= (np.abs(reached[:, 0, 1::2]) >= 90.0).any(1)
        found: list[tuple[Items, Items]] = []
        for chosen, reach in ((~wide, degrees), (wide, None)):
            if chosen.any():
                some = Put(*(one[chosen] for one in put))
                at = EVERYWHERE if reach is None else float(np.nextafter(reach[chosen].max(), 360))
                rows, new = self._found_near(live, some, step, anchors[chosen], at)
                found.append((np.flatnonzero(chosen)[rows], new))
        rows, new = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, new

    def _apart(self, live: LiveMembers, items: Items, new: Items) -> NDArray[np.bool_]:
        """Where the new item shares no event with those that are there."""
        if not self.has_parts_within:
            found: NDArray[np.bool_] = (items != new[:, None]).all(1)
            return found
        events = live.events
        return np.array(
            [
                {*events[item]}.isdisjoint(chain.from_iterable(events[one] for one in row))
                for row, item in zip(items.tolist(), new.tolist(), strict=True)
            ],
            bool,
        )


def _steps(last: int, count: int, between: list[tuple[Asked, int, int]]) -> tuple[Step, ...]:
    """The order in which parts are added: always the one that is bound most narrowly."""
    there = [last]
    found = []
    while len(there) < count:
        choices = [
            (reach(asked), right if left in there else left, left if left in there else right)
            for asked, left, right in between
            if (left in there) != (right in there)
        ]
        rest = min(part for part in range(count) if part not in there)
        distance, part, anchor = min(choices, default=(EVERYWHERE, rest, last))
        there.append(part)
        tests = tuple(one for one in between if part in one[1:] and {*one[1:]} <= {*there})
        found.append(Step(part, anchor, distance, tests))
    return tuple(found)
