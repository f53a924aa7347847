"""`Joiner`: joins each arriving event with the live members, and keeps it for later events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from fencepost.composite.detection import Detection, Points
from fencepost.composite.event_clock import Clock
from fencepost.composite.event_parsing import MAX_DURATION_NS, is_too_wide
from fencepost.composite.join_plan import Join, PartialMatches
from fencepost.composite.live_members import Floats, Key, LiveMembers
from fencepost.composite.pair_join_plan import PairJoinPlan, plan_pair_join
from fencepost.composite.registry import Pool, Registry
from fencepost.geometry.space import Space

_MAX_PLANS = 10_000  # pair-join plans kept, one for each combination of pools


class Joiner:
    """Finds the detections that events complete, one event after the other.

    If all composites of an event's pools are pairs, one compiled call joins it (`pair_join_plan`);
    otherwise it is joined part by part (`join_plan`).

    Parameters
    ----------
    live : LiveMembers
    registry : Registry
    clock : Clock
    space : Space
    max_members, max_detections : int, optional
        See `Detector`.

    Attributes
    ----------
    counts : dict of str to int
        See `Detector.stats`.
    """

    def __init__(
        self,
        live: LiveMembers,
        registry: Registry,
        clock: Clock,
        space: Space,
        max_members: int | None,
        max_detections: int | None,
    ) -> None:
        self.counts = dict.fromkeys(
            ("detections", "expired", "crowded_out", "cut_short", "too_wide"), 0
        )
        self._live = live
        self._registry = registry
        self._clock = clock
        self._space = space
        self._is_bounded = max_members is not None
        self._max_members = MAX_DURATION_NS if max_members is None else max_members
        self._max_detections = max_detections
        self._plans: dict[tuple[int, ...], PairJoinPlan | None] = {}

    def forget_plans(self) -> None:
        """Drop the pair-join plans, because the composites have changed."""
        self._plans.clear()

    def join_event(
        self,
        time_ns: int,
        key: Key,
        pools: Sequence[Pool],
        x: Floats,
        y: Floats,
        *,
        evicts: bool = True,
    ) -> list[Detection]:
        """Return the detections that an event completes, and keep the event.

        The event is not too late, and it matches the atoms of the pools. If `evicts` is false,
        expired members may be left, and the caller must call `evict`.
        """
        number, is_newest = self._clock.take_number(), self._clock.advance(time_ns)
        pools = [pool for pool in pools if not pool.tests or pool.accepts(x, y)]
        if not pools:
            if self._is_bounded or (is_newest and evicts):  # otherwise nothing has expired
                self.evict()
            return []
        pool_numbers = tuple([pool.number for pool in pools])
        if pool_numbers not in self._plans:
            self._plans[pool_numbers] = self._plan(pools)
        plan = self._plans[pool_numbers]
        if plan is None:
            detections = self._join_by_parts(time_ns, key, pools, number, x, y)
        else:
            detections = self._join_pairs(plan, time_ns, key, number, (x, y))
        if self._is_bounded:
            self.evict()
        self.counts["detections"] += len(detections)
        return detections

    def evict(self) -> None:
        """Remove expired members, and members beyond the maximum."""
        expired, excess = self._live.evict(self._clock.newest_ns, self._max_members)
        self.counts["expired"] += expired
        self.counts["crowded_out"] += excess

    # Joins of pairs

    def _plan(self, pools: Sequence[Pool]) -> PairJoinPlan | None:
        if len(self._plans) >= _MAX_PLANS:
            self._plans.clear()
        windows = [(pool.number, pool.max_window_ns) for pool in pools]
        retained = [
            (number, self._clock.retention_ns(window_ns))
            for number, window_ns in windows
            if window_ns >= 0
        ]
        return plan_pair_join(
            (role for pool in pools for role in pool.roles), retained, self._space
        )

    def _join_pairs(
        self,
        plan: PairJoinPlan,
        time_ns: int,
        key: Key,
        number: int,
        corners: tuple[Floats, Floats],
    ) -> list[Detection]:
        rows, expired, excess = self._live.add_and_join(
            plan, corners, time_ns, number, key, self._clock.newest_ns, self._max_members
        )
        self.counts["expired"] += expired
        self.counts["crowded_out"] += excess
        if not rows:
            return []
        detections, cut_short = plan.detections(
            self._live, rows, key, corners, self._max_detections
        )
        self.counts["cut_short"] += cut_short
        return detections

    # Joins part by part

    def _join_by_parts(
        self, time_ns: int, key: Key, pools: Sequence[Pool], number: int, x: Floats, y: Floats
    ) -> list[Detection]:
        self.evict()
        live = self._live
        item = live.add_item(x, y, time_ns, time_ns, key, (number,))
        detections: list[Detection] = []
        items: list[tuple[int, Sequence[Pool]]] = [(item, pools)]
        for item, item_pools in items:  # grows by the detections of nested composites
            for pool in item_pools:
                for join, part in pool.roles:
                    matches, is_complete = join.find_matches(live, part, item)
                    self.counts["cut_short"] += not is_complete
                    if not len(matches.items):
                        continue
                    if join.parent is None:
                        detections += self._detections(join, matches)
                    else:
                        outer, outer_part = join.parent
                        inner = self._registry.pool(outer.pools[outer_part])
                        items += self._nested_items(join, inner, matches)
        for item, item_pools in items:
            self._keep(item, item_pools)
        return detections

    def _keep(self, item: int, pools: Sequence[Pool]) -> None:
        live = self._live
        earliest = int(live.arrays.items[item]["earliest"])
        is_in_pool = False
        for pool in pools:
            window_ns = pool.max_window_ns
            expiry = min(earliest + self._clock.retention_ns(window_ns), MAX_DURATION_NS)
            if window_ns >= 0 and expiry >= self._clock.newest_ns:
                live.add_to_pool(item, pool.number, expiry)
                is_in_pool = True
        if not is_in_pool:
            live.remove_item(item)

    def _detections(self, join: Join, matches: PartialMatches) -> Iterable[Detection]:
        live, composite = self._live, join.composite
        points: dict[int, Points] = {}  # by item; the new item is in every row
        for row, earliest, latest in _rows(matches):
            for item in row:
                if item not in points:
                    points[item] = live.points(item)
            yield Detection(
                composite.id,
                composite.subscriber,
                self._keys_by_member(join, row),
                earliest,
                latest,
                tuple(chain.from_iterable(points[item] for item in row)),
                self._space,
            )

    def _nested_items(
        self, join: Join, pool: Pool, matches: PartialMatches
    ) -> Iterable[tuple[int, Sequence[Pool]]]:
        """Yield the detections of a nested composite as items of the parent's pool."""
        live = self._live
        hulls = live.hulls_of_rows(matches.items)
        for k, (row, earliest, latest) in enumerate(_rows(matches)):
            x, y = (coordinates[hulls.start[k] : hulls.start[k + 1]] for coordinates in hulls[:2])
            if self._space is Space.WGS84 and is_too_wide(x):
                self.counts["too_wide"] += 1
            elif pool.accepts(x, y):
                events = tuple(chain.from_iterable(live.events[item] for item in row))
                members = self._keys_by_member(join, row)
                yield live.add_item(x, y, earliest, latest, members, events), (pool,)

    def _keys_by_member(self, join: Join, row: list[int]) -> dict[str, Key]:
        keys = self._live.keys
        return {name: keys[item] for name, item in zip(join.composite.members, row, strict=True)}


def _rows(matches: PartialMatches) -> Iterable[tuple[list[int], int, int]]:
    return zip(
        matches.items.tolist(), matches.earliest.tolist(), matches.latest.tolist(), strict=True
    )
