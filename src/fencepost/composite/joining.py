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

from fencepost.composite.conditions import MemberCondition
from fencepost.composite.live import Items, LiveMembers
from fencepost.composite.model import Composite
from fencepost.composite.relating import related
from fencepost.kernels.members import Asked as AskedOfPool
from fencepost.language.ast import Compare
from fencepost.language.ops4st.tree import Asked, Place

EVERYWHERE = float("inf")


def reach(asked: Asked) -> float:
    """How far apart two members can be at most; infinite where there is no such bound."""
    if asked.place in (Place.IN, Place.OVLP):
        return 0.0
    assert asked.distance is not None
    if asked.compare in (Compare.GT, Compare.GE):
        return EVERYWHERE
    return float(np.nextafter(asked.distance + asked.tolerance, np.inf))


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
    """

    composite: Composite
    within: int
    since: int
    parent: tuple[Join, int] | None
    pools: list[int]
    steps: list[tuple[Step, ...]]
    has_parts_within: bool

    @classmethod
    def of(
        cls, composite: Composite, within: int, since: int, parent: tuple[Join, int] | None
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
        return cls(composite, within, since, parent, [], steps, nested)

    def of_constants(self, name: str) -> tuple[MemberCondition, ...]:
        """The conditions of a part and a constant."""
        return tuple(one for one in self.composite.where if one.names == (name,))

    def found(self, live: LiveMembers, last: int, item: int) -> Put:
        """Everything that a new item, in the part `last`, makes complete with what is live."""
        own = live.arrays.items[item]
        put = Put(
            np.full((1, len(self.pools)), item, np.int64),
            own["earliest"][None],
            own["latest"][None],
        )
        bound = [last]
        for step in self.steps[last]:
            if not len(put.items):
                break
            put = self._extended(live, put, step, bound)
            bound.append(step.part)
        return put

    def _extended(self, live: LiveMembers, put: Put, step: Step, bound: list[int]) -> Put:
        everywhere = step.reach == EVERYWHERE
        asked = AskedOfPool(
            self.pools[step.part],
            everywhere,
            0.0 if everywhere else step.reach,
            self.within,
            self.since,
        )
        anchors = np.ascontiguousarray(put.items[:, step.anchor])
        rows, new = live.find(asked, anchors, put.earliest, put.latest)
        if not len(rows):
            return Put(put.items[:0], put.earliest[:0], put.latest[:0])
        if len(bound) > 1 or self.has_parts_within:
            apart = self._apart(live, put.items[rows][:, bound], new)
            rows, new = rows[apart], new[apart]
        for test, left, right in step.tests:
            if not len(rows):
                break
            pair = [new if part == step.part else put.items[rows, part] for part in (left, right)]
            kept = related(live, test, *pair)
            rows, new = rows[kept], new[kept]
        items = put.items[rows]
        items[:, step.part] = new
        times = live.arrays.items[new]
        return Put(
            items,
            np.minimum(put.earliest[rows], times["earliest"]),
            np.maximum(put.latest[rows], times["latest"]),
        )

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
