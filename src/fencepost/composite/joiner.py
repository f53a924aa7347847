"""`Joiner`: an event that arrives is joined with what is live, and kept for those to come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from fencepost.composite.arrivals import LONGEST, is_too_wide
from fencepost.composite.detection import Detection, Points
from fencepost.composite.event_clock import Clock
from fencepost.composite.join_plan import Join, Put
from fencepost.composite.live_members import Floats, Key, LiveMembers
from fencepost.composite.pair_join_plan import Cast, cast_of
from fencepost.composite.registry import Pool, Registry
from fencepost.geometry.space import Space

_MOST_CASTS = 10_000  # kept, of what events play together


class Joiner:
    """Detections of events, one event after the other.

    Where all that an event can complete is pairs, one compiled call takes it in (`casting`);
    otherwise it is joined part by part (`joining`).

    Parameters
    ----------
    live : LiveMembers
    registry : Registry
    clock : Clock
    space : Space
    most_members, most_found : int, optional
        As of a `Detector`.

    Attributes
    ----------
    counts : dict of str to int
        What became of events and members.
    """

    def __init__(
        self,
        live: LiveMembers,
        registry: Registry,
        clock: Clock,
        space: Space,
        most_members: int | None,
        most_found: int | None,
    ) -> None:
        self.counts = dict.fromkeys(
            ("detections", "expired", "crowded_out", "cut_short", "too_wide"), 0
        )
        self._live = live
        self._registry = registry
        self._clock = clock
        self._space = space
        self._is_bounded = most_members is not None
        self._most = LONGEST if most_members is None else most_members
        self._most_found = most_found
        self._casts: dict[tuple[int, ...], Cast | None] = {}

    def plan_anew(self) -> None:
        """Forget what events play together, as other composites are looked for."""
        self._casts.clear()

    def arrive(
        self,
        at: int,
        key: Key,
        pools: Sequence[Pool],
        x: Floats,
        y: Floats,
        *,
        evicts: bool = True,
    ) -> list[Detection]:
        """What an event completes that is not too late and may be in these pools; it is kept.

        evicts : whether nothing that expired is left afterwards; otherwise `evict` must follow.
        """
        number, is_newer = self._clock.count(), self._clock.see(at)
        pools = [pool for pool in pools if not pool.tests or pool.takes(x, y)]
        if not pools:
            if self._is_bounded or (is_newer and evicts):  # otherwise nothing goes
                self.evict()
            return []
        played = tuple([pool.number for pool in pools])
        if played not in self._casts:
            self._casts[played] = self._cast(pools)
        cast = self._casts[played]
        if cast is None:
            found = self._joined(at, key, pools, number, x, y)
        else:
            found = self._paired(cast, at, key, number, (x, y))
        if self._is_bounded:
            self.evict()
        self.counts["detections"] += len(found)
        return found

    def evict(self) -> None:
        """Take out what expired, and what is too much."""
        expired, crowded = self._live.evict(self._clock.newest, self._most)
        self.counts["expired"] += expired
        self.counts["crowded_out"] += crowded

    # Pairs

    def _cast(self, pools: Sequence[Pool]) -> Cast | None:
        if len(self._casts) >= _MOST_CASTS:
            self._casts.clear()
        horizons = [(pool.number, pool.horizon) for pool in pools]
        kept = [(number, self._clock.kept_for(span)) for number, span in horizons if span >= 0]
        return cast_of((user for pool in pools for user in pool.users), kept, self._space)

    def _paired(
        self, cast: Cast, at: int, key: Key, number: int, corners: tuple[Floats, Floats]
    ) -> list[Detection]:
        rows, expired, crowded = self._live.arrive(
            cast, corners, at, number, key, self._clock.newest, self._most
        )
        self.counts["expired"] += expired
        self.counts["crowded_out"] += crowded
        if not rows:
            return []
        found, cut_short = cast.detections(self._live, rows, key, corners, self._most_found)
        self.counts["cut_short"] += cut_short
        return found

    # Part by part

    def _joined(
        self, at: int, key: Key, pools: Sequence[Pool], number: int, x: Floats, y: Floats
    ) -> list[Detection]:
        self.evict()
        live = self._live
        item = live.put(x, y, at, at, key, (number,))
        found: list[Detection] = []
        waiting: list[tuple[int, Sequence[Pool]]] = [(item, pools)]
        for item, own in waiting:  # which grows by the composites within others
            for pool in own:
                for join, part in pool.users:
                    put, whole = join.found(live, part, item)
                    self.counts["cut_short"] += not whole
                    if not len(put.items):
                        continue
                    if join.parent is None:
                        found += self._detected(join, put)
                    else:
                        outer, place = join.parent
                        inner = self._registry.pool(outer.pools[place])
                        waiting += self._detected_within(join, inner, put)
        for item, own in waiting:
            self._keep(item, own)
        return found

    def _keep(self, item: int, pools: Sequence[Pool]) -> None:
        live = self._live
        earliest = int(live.arrays.items[item]["earliest"])
        kept = False
        for pool in pools:
            horizon = pool.horizon
            expiry = min(earliest + self._clock.kept_for(horizon), LONGEST)
            if horizon >= 0 and expiry >= self._clock.newest:
                live.file(item, pool.number, expiry)
                kept = True
        if not kept:
            live.drop(item)

    def _detected(self, join: Join, put: Put) -> Iterable[Detection]:
        live, composite = self._live, join.composite
        points: dict[int, Points] = {}  # by item: the new one is in all of them
        for row, earliest, latest in _rows(put):
            for item in row:
                if item not in points:
                    points[item] = live.points(item)
            yield Detection(
                composite.id,
                composite.subscriber,
                self._members(join, row),
                earliest,
                latest,
                tuple(chain.from_iterable(points[item] for item in row)),
                self._space,
            )

    def _detected_within(
        self, join: Join, pool: Pool, put: Put
    ) -> Iterable[tuple[int, Sequence[Pool]]]:
        """Detections of a composite within another, as items that play a part there."""
        live = self._live
        together = live.hulls_together(put.items)
        for k, (row, earliest, latest) in enumerate(_rows(put)):
            x, y = (one[together.start[k] : together.start[k + 1]] for one in together[:2])
            if self._space is Space.WGS84 and is_too_wide(x):
                self.counts["too_wide"] += 1
            elif pool.takes(x, y):
                events = tuple(chain.from_iterable(live.events[item] for item in row))
                members = self._members(join, row)
                yield live.put(x, y, earliest, latest, members, events), (pool,)

    def _members(self, join: Join, row: list[int]) -> dict[str, Key]:
        keys = self._live.keys
        return {name: keys[item] for name, item in zip(join.composite.members, row, strict=True)}


def _rows(put: Put) -> Iterable[tuple[list[int], int, int]]:
    return zip(put.items.tolist(), put.earliest.tolist(), put.latest.tolist(), strict=True)
