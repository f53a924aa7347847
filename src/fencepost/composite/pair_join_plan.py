"""What an event plays, laid out for one compiled call (`fencepost.kernels.detect.join_partners`).

That is possible where all it can complete is pairs of events. Composites of more members, and those
within others, are put together part by part (`joining`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fencepost.composite.detection import Detection, Points
from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.join_plan import EVERYWHERE, Join
from fencepost.composite.live_members import Floats, Key, LiveMembers
from fencepost.composite.member_conditions import Asked, Place
from fencepost.composite.member_relations import bounds_of
from fencepost.geometry.space import Space
from fencepost.kernels.detect import join_partners
from fencepost.kernels.detect.join_partners import PLAN, TEST, PairJoinArrays
from fencepost.kernels.runtime.struct_references import struct_ref


class Playing(NamedTuple):
    """A part of a pair, as one plan of a cast."""

    join: Join
    is_first: bool
    names: tuple[str, ...]
    tests: tuple[tuple[Asked, int, int], ...]

    def holds(self, live: LiveMembers, item: int, own: Location) -> bool:
        """Whether an event and an item are related as asked, exactly."""
        other = Location([live.corners(item)])
        both = (own, other) if self.is_first else (other, own)
        return all(
            holds(asked, both[left], both[right], self.join.space)
            for asked, left, right in self.tests
        )


class Cast(NamedTuple):
    """What an event plays: its plans, and the same as a kernel takes it."""

    playing: tuple[Playing, ...]
    struct_ref: Any
    pools: int  # how many it is kept in at most
    space: Space

    def detections(
        self,
        live: LiveMembers,
        rows: list[list[int]],
        key: Key,
        corners: tuple[Floats, Floats],
        most: int | None,
    ) -> tuple[list[Detection], int]:
        """The detections that rows of `LiveMembers.arrive` are, up to so many of each plan.

        And how many plans had more.
        """
        x, y = corners
        own: Points = tuple(zip(x.tolist(), y.tolist(), strict=True))
        here: Location | None = None
        counts = [0] * len(self.playing)
        found: list[Detection] = []
        for plan, item, earliest, latest, answer in rows:
            join, is_first, (one, other), _ = playing = self.playing[plan]
            if answer == join_partners.UNSURE:
                here = here or Location([np.column_stack((x, y))])
                if not playing.holds(live, item, here):
                    continue
            counts[plan] += 1
            if most is not None and counts[plan] > most:
                continue
            if is_first:
                members, points = {one: key, other: live.keys[item]}, own + live.points(item)
            else:
                members, points = {one: live.keys[item], other: key}, live.points(item) + own
            id, subscriber = join.composite.id, join.composite.subscriber
            found.append(Detection(id, subscriber, members, earliest, latest, points, self.space))
        return found, 0 if most is None else sum(count > most for count in counts)


def cast_of(
    users: Iterable[tuple[Join, int]], kept: Sequence[tuple[int, int]], space: Space
) -> Cast | None:
    """The cast of parts in joins; None where one of these is no pair.

    kept : the pools in which such events are kept, and for how long.
    """
    playing: list[Playing] = []
    plans: list[tuple[float, ...]] = []
    tests: list[tuple[float, ...]] = []
    for join, part in users:
        if join.parent is not None or join.has_parts_within or len(join.pools) != 2:
            return None
        [step] = join.steps[part]
        everywhere = step.reach == EVERYWHERE
        plans.append(
            (
                *(join.pools[step.part], join.within, join.since),
                0.0 if everywhere else step.reach,
                *(len(tests), len(tests) + len(step.tests), everywhere),
                space is Space.WGS84 and 0.0 < step.reach < EVERYWHERE,
            )
        )
        tests += [(*_test(asked, space), left == part) for asked, left, _ in step.tests]
        names = tuple(join.composite.members)
        playing.append(Playing(join, part == 0, names, step.tests))
    arrays = PairJoinArrays(
        plans=np.array(plans, PLAN),
        tests=np.array(tests, TEST),
        pools=np.array([pool for pool, _ in kept], np.int64),
        spans=np.array([span for _, span in kept], np.int64),
    )
    return Cast(tuple(playing), struct_ref(arrays), len(kept), space)


def _test(asked: Asked, space: Space) -> tuple[float, float, int]:
    if asked.place in (Place.IN, Place.OVLP):
        return 0.0, 0.0, join_partners.INSIDE if asked.place is Place.IN else join_partners.CONTACT
    kind = join_partners.CENTROIDS if asked.place is Place.SPL else join_partners.DISTANCE
    return *bounds_of(asked), join_partners.METRES if space is Space.WGS84 else kind
