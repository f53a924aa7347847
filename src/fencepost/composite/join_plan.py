"""`Join`: how the members of a composite are joined, in which order and by which conditions.

A new item takes one part, that is, it plays one member. The steps of the join then bind the other
parts one by one. If a condition limits the distance to a part that is bound already, the step tries
only items near it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.live_members import Items, LiveMembers
from fencepost.composite.member_conditions import MemberCondition, Operator, Predicate
from fencepost.composite.member_relations import are_related
from fencepost.composite.model import Composite
from fencepost.cql2.ast import ComparisonOp
from fencepost.geometry.space import Space
from fencepost.kernels.detect.member_grid import PartnerQuery
from fencepost.kernels.geodesic.geodesics import MIN_CURVATURE_RADIUS_M, expand_boxes

EVERYWHERE = float("inf")
_MAX_PAIRS_AT_ONCE = 1 << 20  # limits the memory of a join with a maximum number of rows


def reach(predicate: Predicate) -> float:
    """Return the maximum distance of two members; infinite if a predicate does not bound it."""
    if predicate.operator in (Operator.IN, Operator.OVLP):
        return 0.0
    assert predicate.distance is not None
    if predicate.compare in (ComparisonOp.GT, ComparisonOp.GE):
        return EVERYWHERE
    return float(np.nextafter(predicate.distance + predicate.tolerance, np.inf))


def coordinate_distance(space: Space, distance: float) -> float:
    """Return about how long a distance is in the unit of the coordinates."""
    return (
        float(np.degrees(distance / MIN_CURVATURE_RADIUS_M)) if space is Space.WGS84 else distance
    )


class Step(NamedTuple):
    """A step of a join: it adds one part.

    Attributes
    ----------
    part : int
        The part to add.
    anchor : int
        The bound part near which its items are searched.
    reach : float
        The maximum distance from the anchor.
    tests : tuple of (Predicate, left, right)
        The predicates between the part and bound parts.
    """

    part: int
    anchor: int
    reach: float
    tests: tuple[tuple[Predicate, int, int], ...]


class PartialMatches(NamedTuple):
    """Partial matches: a row each, with an item for each part, and the time span of the items."""

    items: NDArray[np.int64]
    earliest: Items
    latest: Items


@dataclass(slots=True)
class Join:
    """The join of a composite, or of a nested composite.

    Attributes
    ----------
    composite : Composite
    window_ns : int
        The window; that of a nested composite is at most that of its parent.
    since : int
        The number of the first event that counts.
    parent : tuple of Join and int, or None
        The join of the composite that contains a nested one, and the part there.
    pools : list of int
        The number of the pool of each part.
    steps : list of tuple of Step
        The steps by the part that a new item takes.
    has_nested_parts : bool
    space : Space
    max_rows : int, optional
        The maximum number of matches, complete or partial, for one new item.
    """

    composite: Composite
    window_ns: int
    since: int
    parent: tuple[Join, int] | None
    pools: list[int]
    steps: list[tuple[Step, ...]]
    has_nested_parts: bool
    space: Space
    max_rows: int | None

    @classmethod
    def of(
        cls,
        composite: Composite,
        window_ns: int,
        since: int,
        parent: tuple[Join, int] | None,
        space: Space = Space.PLANAR,
        max_rows: int | None = None,
    ) -> Join:
        """Return the join of a composite; the caller adds its pools."""
        names = [*composite.members]
        number = {name: k for k, name in enumerate(names)}
        pair_tests = [
            (condition.predicate, number[str(condition.left)], number[str(condition.right)])
            for condition in composite.where
            if len(condition.names) == 2
        ]
        steps = [_steps(last, len(names), pair_tests) for last in range(len(names))]
        has_nested = any(isinstance(member, Composite) for member in composite.members.values())
        return cls(composite, window_ns, since, parent, [], steps, has_nested, space, max_rows)

    def constant_conditions(self, name: str) -> tuple[MemberCondition, ...]:
        """Return the conditions between a member and constants."""
        return tuple(condition for condition in self.composite.where if condition.names == (name,))

    def find_matches(self, live: LiveMembers, last: int, item: int) -> tuple[PartialMatches, bool]:
        """Return the matches that a new item in the part `last` completes with live items.

        Also returns whether they are complete; they are not if there are more than `max_rows`.
        """
        record = live.arrays.items[item]
        matches = PartialMatches(
            np.full((1, len(self.pools)), item, np.int64),
            record["earliest"][None],
            record["latest"][None],
        )
        bound_parts = [last]
        is_complete = True
        for step in self.steps[last]:
            if not len(matches.items):
                break
            if self.max_rows is None:
                matches = self._extend(live, matches, step, bound_parts)
            else:
                matches, is_complete_step = self._extend_up_to(
                    live, matches, step, bound_parts, self.max_rows
                )
                is_complete = is_complete and is_complete_step
            bound_parts.append(step.part)
        return matches, is_complete

    def _extend_up_to(
        self,
        live: LiveMembers,
        matches: PartialMatches,
        step: Step,
        bound_parts: list[int],
        max_rows: int,
    ) -> tuple[PartialMatches, bool]:
        """Extend matches as `_extend` does, to at most `max_rows` rows and in bounded memory.

        Also returns whether they are complete; they are not if there are more than `max_rows`.
        """
        rows_at_once = max(1, _MAX_PAIRS_AT_ONCE // max(len(live), 1))
        chunks: list[PartialMatches] = []
        count = 0
        for start in range(0, len(matches.items), rows_at_once):
            chunk = PartialMatches(*(array[start : start + rows_at_once] for array in matches))
            chunks.append(self._extend(live, chunk, step, bound_parts))
            count += len(chunks[-1].items)
            if count > max_rows:
                break
        extended = PartialMatches(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))
        return PartialMatches(*(array[:max_rows] for array in extended)), count <= max_rows

    def _extend(
        self, live: LiveMembers, matches: PartialMatches, step: Step, bound_parts: list[int]
    ) -> PartialMatches:
        """Return the partial matches with the part of a step added."""
        anchors = np.ascontiguousarray(matches.items[:, step.anchor])
        if self.space is Space.WGS84 and 0.0 < step.reach < EVERYWHERE:
            rows, new = self._find_within_metres(live, matches, step, anchors)
        else:
            rows, new = self._find_within(live, matches, step, anchors, step.reach)
        if not len(rows):
            return PartialMatches(matches.items[:0], matches.earliest[:0], matches.latest[:0])
        if len(bound_parts) > 1 or self.has_nested_parts:
            disjoint = self._shares_no_event(live, matches.items[rows][:, bound_parts], new)
            rows, new = rows[disjoint], new[disjoint]
        for test, left, right in step.tests:
            if not len(rows):
                break
            a, b = (
                new if part == step.part else matches.items[rows, part] for part in (left, right)
            )
            passed = are_related(live, test, a, b, self.space)
            rows, new = rows[passed], new[passed]
        items = matches.items[rows]
        items[:, step.part] = new
        times = live.arrays.items[new]
        return PartialMatches(
            items,
            np.minimum(matches.earliest[rows], times["earliest"]),
            np.maximum(matches.latest[rows], times["latest"]),
        )

    def _find_within(
        self, live: LiveMembers, matches: PartialMatches, step: Step, anchors: Items, reach: float
    ) -> tuple[Items, Items]:
        """Return pairs of a row and an item whose box is within reach of the row's anchor."""
        everywhere = reach == EVERYWHERE
        query = PartnerQuery(
            self.pools[step.part],
            everywhere,
            0.0 if everywhere else reach,
            self.window_ns,
            self.since,
        )
        return live.find(query, anchors, matches.earliest, matches.latest)

    def _find_within_metres(
        self, live: LiveMembers, matches: PartialMatches, step: Step, anchors: Items
    ) -> tuple[Items, Items]:
        """Find pairs as `_find_within` does, for a reach in metres, which is converted to degrees.

        If the reach includes a pole or crosses the antimeridian, the box of an item is not
        compared.
        """
        records = live.arrays.items[anchors]
        boxes = np.column_stack([records[name] for name in ("x0", "y0", "x1", "y1")])
        expanded = expand_boxes(boxes, np.full(len(boxes), step.reach))
        below, above = boxes[:, :2] - expanded[:, 0, :2], expanded[:, 0, 2:] - boxes[:, 2:]
        degrees = np.maximum(below, above).max(1)
        wide = (expanded[:, 1, 0] <= expanded[:, 1, 2]) | (
            np.abs(expanded[:, 0, ::2]) >= 180.0
        ).any(1)
        wide |= (np.abs(expanded[:, 0, 1::2]) >= 90.0).any(1)
        pairs: list[tuple[Items, Items]] = []
        for chosen, reach in ((~wide, degrees), (wide, None)):
            if chosen.any():
                chosen_matches = PartialMatches(*(array[chosen] for array in matches))
                widest = (
                    EVERYWHERE if reach is None else float(np.nextafter(reach[chosen].max(), 360))
                )
                rows, new = self._find_within(live, chosen_matches, step, anchors[chosen], widest)
                pairs.append((np.flatnonzero(chosen)[rows], new))
        rows, new = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return rows, new

    def _shares_no_event(self, live: LiveMembers, items: Items, new: Items) -> NDArray[np.bool_]:
        """Return a mask of the rows whose items share no event with the new item."""
        if not self.has_nested_parts:
            disjoint: NDArray[np.bool_] = (items != new[:, None]).all(1)
            return disjoint
        events = live.events
        return np.array(
            [
                {*events[item]}.isdisjoint(chain.from_iterable(events[other] for other in row))
                for row, item in zip(items.tolist(), new.tolist(), strict=True)
            ],
            bool,
        )


def _steps(last: int, count: int, pair_tests: list[tuple[Predicate, int, int]]) -> tuple[Step, ...]:
    """Return the steps that add all parts but the last.

    The next part is always the one with the smallest reach from a bound part.
    """
    bound_parts = [last]
    steps = []
    while len(bound_parts) < count:
        choices = [
            (
                reach(predicate),
                right if left in bound_parts else left,
                left if left in bound_parts else right,
            )
            for predicate, left, right in pair_tests
            if (left in bound_parts) != (right in bound_parts)
        ]
        next_part = min(part for part in range(count) if part not in bound_parts)
        distance, part, anchor = min(choices, default=(EVERYWHERE, next_part, last))
        bound_parts.append(part)
        tests = tuple(
            test for test in pair_tests if part in test[1:] and {*test[1:]} <= {*bound_parts}
        )
        steps.append(Step(part, anchor, distance, tests))
    return tuple(steps)
