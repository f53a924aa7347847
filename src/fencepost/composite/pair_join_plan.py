"""`PairJoinPlan`: the roles of an event, as arrays for one call of `kernels.detect.join_partners`.

A plan exists if an event can complete only pairs of events. Composites with more members, and
nested ones, are joined part by part (`join_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fencepost.composite.detection import Detection, Points
from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.join_plan import EVERYWHERE, Join
from fencepost.composite.live_members import Floats, Key, LiveMembers
from fencepost.composite.member_conditions import Operator, Predicate
from fencepost.composite.member_relations import distance_bounds
from fencepost.geometry.space import Space
from fencepost.kernels.detect import join_partners
from fencepost.kernels.detect.join_partners import PLAN, TEST, PairJoinArrays
from fencepost.kernels.runtime.struct_references import struct_ref


class PairRole(NamedTuple):
    """A role of an event: a part of a pair. It is one plan of `PairJoinArrays`."""

    join: Join
    is_first: bool
    names: tuple[str, ...]
    tests: tuple[tuple[Predicate, int, int], ...]

    def holds(self, live: LiveMembers, item: int, location: Location) -> bool:
        """Return whether all tests hold for an event's location and an item, exactly."""
        other = Location([live.corners(item)])
        locations = (location, other) if self.is_first else (other, location)
        return all(
            holds(predicate, locations[left], locations[right], self.join.space)
            for predicate, left, right in self.tests
        )


class PairJoinPlan(NamedTuple):
    """The roles of an event, also as arrays for a kernel."""

    roles: tuple[PairRole, ...]
    struct_ref: Any
    pools: int  # the number of pools that the event is put into
    space: Space

    def detections(
        self,
        live: LiveMembers,
        rows: list[list[int]],
        key: Key,
        corners: tuple[Floats, Floats],
        max_detections: int | None,
    ) -> tuple[list[Detection], int]:
        """Return the detections of the pairs that `LiveMembers.add_and_join` found.

        At most `max_detections` of each role are returned. Also returns the number of roles with
        more.
        """
        x, y = corners
        event_points: Points = tuple(zip(x.tolist(), y.tolist(), strict=True))
        location: Location | None = None
        counts = [0] * len(self.roles)
        detections: list[Detection] = []
        for number, item, earliest, latest, answer in rows:
            join, is_first, (first, second), _ = role = self.roles[number]
            if answer == join_partners.UNSURE:
                location = location or Location([np.column_stack((x, y))])
                if not role.holds(live, item, location):
                    continue
            counts[number] += 1
            if max_detections is not None and counts[number] > max_detections:
                continue
            if is_first:
                members = {first: key, second: live.keys[item]}
                points = event_points + live.points(item)
            else:
                members = {first: live.keys[item], second: key}
                points = live.points(item) + event_points
            id, subscriber = join.composite.id, join.composite.subscriber
            detections.append(
                Detection(id, subscriber, members, earliest, latest, points, self.space)
            )
        if max_detections is None:
            return detections, 0
        return detections, sum(count > max_detections for count in counts)


def plan_pair_join(
    roles_in_joins: Iterable[tuple[Join, int]], retained: Sequence[tuple[int, int]], space: Space
) -> PairJoinPlan | None:
    """Return the plan for parts of joins; None if a join is not a pair of events.

    retained : the pools into which the event is put, and for how long in nanoseconds.
    """
    roles: list[PairRole] = []
    plans: list[tuple[float, ...]] = []
    tests: list[tuple[float, ...]] = []
    for join, part in roles_in_joins:
        if join.parent is not None or join.has_nested_parts or len(join.pools) != 2:
            return None
        [step] = join.steps[part]
        everywhere = step.reach == EVERYWHERE
        plans.append(
            (
                *(join.pools[step.part], join.window_ns, join.since),
                0.0 if everywhere else step.reach,
                *(len(tests), len(tests) + len(step.tests), everywhere),
                space is Space.WGS84 and 0.0 < step.reach < EVERYWHERE,
            )
        )
        tests += [(*_test(predicate, space), left == part) for predicate, left, _ in step.tests]
        names = tuple(join.composite.members)
        roles.append(PairRole(join, part == 0, names, step.tests))
    arrays = PairJoinArrays(
        plans=np.array(plans, PLAN),
        tests=np.array(tests, TEST),
        pools=np.array([pool for pool, _ in retained], np.int64),
        spans=np.array([span_ns for _, span_ns in retained], np.int64),
    )
    return PairJoinPlan(tuple(roles), struct_ref(arrays), len(retained), space)


def _test(predicate: Predicate, space: Space) -> tuple[float, float, int]:
    if predicate.operator in (Operator.IN, Operator.OVLP):
        is_in = predicate.operator is Operator.IN
        return 0.0, 0.0, join_partners.INSIDE if is_in else join_partners.CONTACT
    kind = join_partners.CENTROIDS if predicate.operator is Operator.SPL else join_partners.DISTANCE
    return *distance_bounds(predicate), join_partners.METRES if space is Space.WGS84 else kind
