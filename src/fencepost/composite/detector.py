"""`Detector`: composites in, events past, detections out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from fencepost.composite import keeping
from fencepost.composite.arrivals import (
    LONGEST,
    MOST_TIME,
    Names,
    check_location,
    id_of,
    is_too_wide,
    location_of,
    nanoseconds,
    time_of,
)
from fencepost.composite.casting import Cast, cast_of
from fencepost.composite.conditions import MemberCondition
from fencepost.composite.detection import Detection, Points
from fencepost.composite.joining import EVERYWHERE, Join, Put, in_degrees, reach
from fencepost.composite.live import Floats, Key, LiveMembers
from fencepost.composite.locations import Location, holds
from fencepost.composite.model import Composite
from fencepost.composite.tables import arrivals
from fencepost.errors import FencepostError, ModelError
from fencepost.language.ast import Condition
from fencepost.match.matcher import DeadLetters, Matcher
from fencepost.model.event import attributes
from fencepost.model.geometry_plain import point_of
from fencepost.model.raw_shapes import shown
from fencepost.model.space import Space, space_of

_COUNTED = ("events", "late", "detections", "expired", "crowded_out", "cut_short", "too_wide")
_MOST_CASTS = 10_000  # kept, of what events play together
LATE = "too late: {:,.3f} s behind the newest event, and the lateness is {:,.3f} s"


class _Pool(NamedTuple):
    """Who plays one part.

    Attributes
    ----------
    number : int
    atom : str or None
        The subscription that its events match; None for the detections of a composite.
    tests : tuple of MemberCondition
        What is asked of them and constants.
    users : list of (Join, int)
        In which parts of which joins.
    space : Space
    """

    number: int
    atom: str | None
    tests: tuple[MemberCondition, ...]
    users: list[tuple[Join, int]]
    space: Space

    def takes(self, x: Floats, y: Floats) -> bool:
        """Whether a hull with these corners is where it should be."""
        if not self.tests:
            return True
        here = Location([np.column_stack((x, y))])
        for test in self.tests:
            left = here if isinstance(test.left, str) else test.left
            right = here if isinstance(test.right, str) else test.right
            if not holds(test.asked, left, right, self.space):
                return False
        return True

    @property
    def horizon(self) -> int:
        """For how long members are kept, in nanoseconds; -1 where never."""
        return max((join.within for join, _ in self.users if len(join.pools) > 1), default=-1)


class Detector:
    """Finds the events that answer composites together.

    Parameters
    ----------
    composites : iterable of Composite
    lateness_s : float
        How far behind the newest event that was seen another may be, in seconds of their own
        times. What is later is not joined.
    time, geometry, id : str
        The attributes of events that hold their time, their location and their name. An event
        without an id is called by its number, from 0.
    most_members : int, optional
        How many events, each counted once for every part it can play, are kept at most. Beyond
        that, those that would go next go first. No limit if left out.
    space : {"planar", "wgs84"}
        What coordinates mean. Distances are in their unit, or in metres on the ellipsoid.
    most_found : int, optional
        How many detections of a composite one event completes at most, so that one of many
        members that fit everywhere does not stop the others. No limit if left out.

    Notes
    -----
    An event is joined with what came before it, so each detection is reported once, when its last
    event arrives, whatever the order of their times. `docs/events.md` has the rules.

    A detector may be used from many threads; one event is joined at a time.

    Examples
    --------
    >>> d = Detector([Composite(
    ...     "pick-up",
    ...     members={"taxi": "kind = 'taxi'", "rider": "kind = 'rider'"},
    ...     where=["DIST(taxi, rider) < 500"],
    ...     within_s=600,
    ... )])
    >>> noon = {"time": "2024-05-01T12:00:00Z"}
    >>> d.push({"id": "t7", "kind": "taxi", "geometry": "POINT (0 0)", **noon})
    []
    >>> [found] = d.push({"id": "r1", "kind": "rider", "geometry": "POINT (30 40)", **noon})
    >>> found.members
    {'taxi': 't7', 'rider': 'r1'}
    """

    def __init__(
        self,
        composites: Iterable[Composite] = (),
        lateness_s: float = 0.0,
        *,
        time: str = "time",
        geometry: str = "geometry",
        id: str = "id",
        most_members: int | None = None,
        space: str = "planar",
        most_found: int | None = None,
    ) -> None:
        for name, most in (("most_members", most_members), ("most_found", most_found)):
            if most is not None and not _is_count(most):
                raise ModelError(f"{name} is a whole number above 0; saw {shown(most)}")
        self._space = space_of(space)
        self._most_found = most_found
        self._lateness = nanoseconds(lateness_s, "lateness_s")
        self._lateness_s = float(lateness_s)
        self._names = Names(time, geometry, id)
        self._most = most_members
        self._lock = RLock()
        self._matcher = Matcher(space)
        self._live = LiveMembers()
        self._joins: dict[str, list[Join]] = {}
        self._atoms: dict[Condition, str] = {}
        self._atom_numbers = count()
        self._pools: dict[tuple[str, tuple[MemberCondition, ...]], _Pool] = {}
        self._by_atom: dict[str, list[_Pool]] = {}
        self._by_number: dict[int, _Pool] = {}
        self._casts: dict[tuple[int, ...], Cast | None] = {}
        self._x, self._y = np.empty(1), np.empty(1)  # of an event at a time, where it is a point
        self._newest = -MOST_TIME
        self._next = 0
        self._counts = dict.fromkeys(_COUNTED, 0)
        for composite in composites:
            self.add(composite)

    # Composites

    def add(self, composite: Composite) -> None:
        """Look for another composite, in the events that come from now on.

        Raises
        ------
        ModelError
            Where there is one with its id.
        """
        if not isinstance(composite, Composite):
            raise ModelError(f"a detector looks for composites; saw {shown(composite)}")
        with self._lock:
            if composite.id in self._joins:
                raise ModelError(f"there is a composite {composite.id!r:.60}; remove it first")
            self._add(composite, self._next)

    def _add(self, composite: Composite, since: int) -> None:
        joins: list[Join] = []
        self._joins[composite.id] = joins
        self._casts.clear()
        within = nanoseconds(composite.within_s, "within_s")
        self._plan(composite, within, since, None, joins)

    def _plan(
        self,
        composite: Composite,
        within: int,
        since: int,
        parent: tuple[Join, int] | None,
        joins: list[Join],
    ) -> None:
        join = Join.of(composite, within, since, parent, self._space, self._most_found)
        joins.append(join)
        for part, (name, member) in enumerate(composite.members.items()):
            constants = join.of_constants(name)
            width = max(
                (
                    2 * reach(one.asked)
                    for one in composite.where
                    if name in one.names and len(one.names) == 2
                ),
                default=0.0,
            )
            if isinstance(member, Composite):
                pool = self._new_pool(None, constants, width)
            else:
                pool = self._atom_pool(member, constants, width)
            join.pools.append(pool.number)
            pool.users.append((join, part))
            if isinstance(member, Composite):
                inner = min(nanoseconds(member.within_s, "within_s"), within)
                self._plan(member, inner, since, (join, part), joins)

    def _atom_pool(
        self, member: Condition, constants: tuple[MemberCondition, ...], width: float
    ) -> _Pool:
        atom = self._atoms.get(member)
        if atom is None:
            atom = self._atoms[member] = str(next(self._atom_numbers))
            self._matcher.subscribe(atom, member)
            self._by_atom[atom] = []
        # The name of the member does not matter, only what is asked of it.
        asked = tuple(_anonymous(one) for one in constants)
        pool = self._pools.get((atom, asked))
        if pool is None:
            pool = self._pools[atom, asked] = self._new_pool(atom, constants, width)
            self._by_atom[atom].append(pool)
        return pool

    def _new_pool(
        self, atom: str | None, constants: tuple[MemberCondition, ...], width: float
    ) -> _Pool:
        number = self._live.new_pool(0.0 if width == EVERYWHERE else in_degrees(self._space, width))
        pool = _Pool(number, atom, constants, [], self._space)
        self._by_number[number] = pool
        return pool

    def remove(self, id: str) -> bool:
        """Stop looking for a composite; whether there was one.

        What is kept for it alone goes when its time is over.
        """
        with self._lock:
            joins = self._joins.pop(id, None)
            if joins is None:
                return False
            self._casts.clear()
            for join in joins:
                for number in join.pools:
                    pool = self._by_number[number]
                    pool.users[:] = [user for user in pool.users if user[0] is not join]
            for key, pool in [*self._pools.items()]:
                if not pool.users:
                    del self._pools[key]
                    self._by_atom[key[0]].remove(pool)
            for member, atom in [*self._atoms.items()]:
                if not self._by_atom[atom]:
                    del self._atoms[member], self._by_atom[atom]
                    self._matcher.unsubscribe(atom)
            return True

    def composites(self) -> list[Composite]:
        """What is looked for, in the order in which it came."""
        return [joins[0].composite for joins in self._joins.values()]

    def __len__(self) -> int:
        return len(self._joins)

    # Events

    def push(self, event: object, dead_letters: DeadLetters | None = None) -> list[Detection]:
        """The detections that an event makes complete.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
        dead_letters : list, optional
            Collects (0, reason) if the event is too late or cannot be used. Without it, one that
            cannot be used is an error, and one that is too late is counted only.

        Raises
        ------
        ModelError
            Where it has no time or, if it plays a part, no location.
        """
        with self._lock:
            try:
                given = attributes(event)
                at = time_of(given.get(self._names.time), self._names.time)
                key = id_of(given.get(self._names.id), self._next)
                if self._is_late(at):
                    self._count_late(at, 0, dead_letters)
                    return []
                pools = [p for a in self._matcher.match(given) for p in self._by_atom[a]]
                x, y = self._x, self._y
                if pools:
                    x, y = self._corners(given.get(self._names.geometry))
            except FencepostError as error:
                if dead_letters is None:
                    raise
                dead_letters.append((0, str(error)))
                return []
            return self._arrived(at, key, pools, x, y)

    def _corners(self, place: object) -> tuple[Floats, Floats]:
        """Those of the hull of a location; a point's are there until the next."""
        point = point_of(place)
        far, high = self._space.limits
        if point is not None and abs(point[0]) <= far and abs(point[1]) <= high:
            # Adding 0.0 makes a 0.0 of -0.0, as readers do.
            self._x[0], self._y[0] = point[0] + 0.0, point[1] + 0.0
            return self._x, self._y
        hull = location_of(place, self._names.geometry)
        check_location(self._space, hull.x, hull.y)
        return hull.x, hull.y

    def push_batch(self, table: object, dead_letters: DeadLetters | None = None) -> list[Detection]:
        """The detections that the events of a table make complete, in the order of its rows.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        dead_letters : list, optional
            Collects (row, reason) of events that are too late or cannot be used. Without it, one
            that cannot be used refuses the whole table.
        """
        with self._lock:
            events, bad = arrivals(table, self._matcher, self._names, self._space)
            if bad and dead_letters is None:
                first = "; ".join(f"row {row}: {why}" for row, why in sorted(bad)[:10])
                raise ModelError(f"{len(bad)} events cannot be used, so none was: {first}")
            found: list[Detection] = []
            for event in events:
                if self._is_late(event.at):
                    self._count_late(event.at, event.row, bad)
                    continue
                pools = [pool for atom in event.atoms for pool in self._by_atom[atom]]
                key = self._next if event.key is None else event.key
                found += self._arrived(event.at, key, pools, event.x, event.y)
            if dead_letters is not None:
                dead_letters.extend(sorted(bad))
            return found

    # Parts that were matched elsewhere

    def atoms(self) -> dict[Condition, str]:
        """The expressions on single events, and what `push_part` calls them."""
        return {**self._atoms}

    def push_part(
        self, at: int, key: Key, atoms: Iterable[str], x: Floats, y: Floats
    ) -> list[Detection]:
        """The same as `push`, of an event that is known to match these expressions.

        x, y : the corners of its hull, as `fencepost.kernels.hulls` gives them.
        """
        with self._lock:
            pools = [pool for atom in atoms for pool in self._by_atom[atom]]
            return self._arrived(at, key, pools, x, y)

    def advance(self, newest: int) -> None:
        """Know that an event of this time was seen elsewhere."""
        with self._lock:
            self._newest = max(self._newest, newest)
            self._evict()

    def last_expiry(self) -> int | None:
        """After which newest time nothing is kept any more; None where nothing is."""
        with self._lock:
            return self._live.last_expiry()

    def _is_late(self, at: int) -> bool:
        return at < self._newest - self._lateness

    def _count_late(self, at: int, row: int, dead_letters: DeadLetters | None) -> None:
        self._counts["events"] += 1
        self._counts["late"] += 1
        self._next += 1
        if dead_letters is not None:
            behind = (self._newest - at) / 1e9
            dead_letters.append((row, LATE.format(behind, self._lateness_s)))

    def _arrived(
        self, at: int, key: Key, pools: Sequence[_Pool], x: Floats, y: Floats
    ) -> list[Detection]:
        """Join an event that is not too late with what is live, and keep it."""
        self._counts["events"] += 1
        number, self._next = self._next, self._next + 1
        is_newer = at > self._newest
        if is_newer:
            self._newest = at
        pools = [pool for pool in pools if not pool.tests or pool.takes(x, y)]
        if not pools:
            if is_newer or self._most is not None:  # otherwise nothing goes
                self._evict()
            return []
        played = tuple(pool.number for pool in pools)
        if played not in self._casts:
            self._casts[played] = self._cast(pools)
        cast = self._casts[played]
        if cast is not None:
            return self._paired(cast, at, key, number, (x, y))
        self._evict()
        live = self._live
        item = live.put(x, y, at, at, key, (number,))
        found: list[Detection] = []
        waiting: list[tuple[int, Sequence[_Pool]]] = [(item, pools)]
        for item, own in waiting:  # which grows by the composites within others
            for pool in own:
                for join, part in pool.users:
                    put, whole = join.found(live, part, item)
                    self._counts["cut_short"] += not whole
                    if not len(put.items):
                        continue
                    if join.parent is None:
                        found += self._detected(join, put)
                    else:
                        outer, place = join.parent
                        inner = self._by_number[outer.pools[place]]
                        waiting += self._detected_within(join, inner, put)
        for item, own in waiting:
            self._keep(item, own)
        if self._most is not None:
            self._evict()
        self._counts["detections"] += len(found)
        return found

    def _cast(self, pools: Sequence[_Pool]) -> Cast | None:
        if len(self._casts) >= _MOST_CASTS:
            self._casts.clear()
        horizons = [(pool.number, pool.horizon) for pool in pools]
        kept = [(number, self._lateness + span) for number, span in horizons if span >= 0]
        return cast_of((user for pool in pools for user in pool.users), kept, self._space)

    def _paired(
        self, cast: Cast, at: int, key: Key, number: int, corners: tuple[Floats, Floats]
    ) -> list[Detection]:
        """The same as `_arrived`, of an event that can complete pairs only."""
        counts = self._counts
        most = LONGEST if self._most is None else self._most
        rows, expired, crowded = self._live.arrive(
            cast, corners, at, number, key, self._newest, most
        )
        counts["expired"] += expired
        counts["crowded_out"] += crowded
        found: list[Detection] = []
        if rows:
            found, cut_short = cast.detections(self._live, rows, key, corners, self._most_found)
            counts["cut_short"] += cut_short
            counts["detections"] += len(found)
        if self._most is not None:
            self._evict()
        return found

    def _evict(self) -> None:
        most = LONGEST if self._most is None else self._most
        expired, crowded = self._live.evict(self._newest, most)
        self._counts["expired"] += expired
        self._counts["crowded_out"] += crowded

    def _keep(self, item: int, pools: Sequence[_Pool]) -> None:
        live = self._live
        earliest = int(live.arrays.items[item]["earliest"])
        kept = False
        for pool in pools:
            horizon = pool.horizon
            expiry = min(earliest + self._lateness + horizon, LONGEST)
            if horizon >= 0 and expiry >= self._newest:
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
        self, join: Join, pool: _Pool, put: Put
    ) -> Iterable[tuple[int, Sequence[_Pool]]]:
        """Detections of a composite within another, as items that play a part there."""
        live = self._live
        together = live.hulls_together(put.items)
        for k, (row, earliest, latest) in enumerate(_rows(put)):
            x, y = (one[together.start[k] : together.start[k + 1]] for one in together[:2])
            if self._space is Space.WGS84 and is_too_wide(x):
                self._counts["too_wide"] += 1
            elif pool.takes(x, y):
                events = tuple(chain.from_iterable(live.events[item] for item in row))
                members = self._members(join, row)
                yield live.put(x, y, earliest, latest, members, events), (pool,)

    def _members(self, join: Join, row: list[int]) -> dict[str, Key]:
        keys = self._live.keys
        return {name: keys[item] for name, item in zip(join.composite.members, row, strict=True)}

    def stats(self) -> dict[str, Any]:
        """Numbers about events and what is kept of them.

        `live`: events and composites within others that are kept, counted once for each part they
        can play; `expired`: those that no event could be joined with any more; `crowded_out`: those
        that went before because of `most_members`; `cut_short`: events that would have completed
        more than `most_found` detections; `too_wide`: detections of composites within others that
        play no part, as they reach half round the Earth.
        """
        with self._lock:
            return {
                "composites": len(self),
                **self._counts,
                "live": len(self._live),
                "bytes": self._live.nbytes,
            }

    @property
    def live(self) -> int:
        """How many are kept, counted once for each part they can play."""
        return len(self._live)

    # Keeping

    def to_bytes(self) -> bytes:
        """Everything that this detector knows."""
        with self._lock:
            facts = {
                "composites": [
                    {"composite": joins[0].composite.to_json(), "since": joins[0].since}
                    for joins in self._joins.values()
                ],
                "lateness_s": self._lateness_s,
                "names": [*self._names],
                "most_members": self._most,
                "most_found": self._most_found,
                "space": self._space.value,
                "newest": self._newest,
                "next": self._next,
                "counts": self._counts,
                # Pools are numbered anew when composites are added in order.
                "pools": {str(old): new for new, old in enumerate(self._pools_in_order())},
            }
            return keeping.to_bytes(self._live, facts)

    def _pools_in_order(self) -> list[int]:
        used = (number for joins in self._joins.values() for join in joins for number in join.pools)
        return [*dict.fromkeys(used)]

    @classmethod
    def from_bytes(cls, state: bytes, **changed: Any) -> Detector:
        """A detector that goes on where the one that gave these bytes was.

        Parameters
        ----------
        changed
            `lateness_s`, `most_members` or `most_found`, where they are others from now on.

        Raises
        ------
        StoreError
            Where they are not such.
        """
        facts, items = keeping.of_bytes(state)
        time, geometry, id = facts["names"]
        kept = {name: facts[name] for name in ("lateness_s", "most_members", "most_found")}
        space = facts["space"]
        found = cls(time=time, geometry=geometry, id=id, space=space, **{**kept, **changed})
        for entry in facts["composites"]:
            found._add(Composite.from_json(entry["composite"]), entry["since"])
        found._newest, found._next = facts["newest"], facts["next"]
        found._counts.update(facts["counts"])
        pools = dict(zip(facts["pools"], found._pools_in_order(), strict=True))
        for item in items:
            found._restore(item, pools)
        return found

    def _restore(self, item: keeping.LiveItem, pools: Mapping[str, int]) -> None:
        kept = [(str(n), at) for n, at in zip(item.pools, item.expiries, strict=True)]
        kept = [(n, at) for n, at in kept if n in pools]
        if kept:
            number = self._live.put(
                np.array(item.x), np.array(item.y), item.earliest, item.latest, item.key,
                tuple(item.events),
            )  # fmt: skip
            for old, expiry in kept:
                self._live.file(number, pools[old], expiry)

    def save(self, path: str | Path) -> None:
        """Write everything that this detector knows to a file."""
        keeping.write(Path(path), self.to_bytes())

    @classmethod
    def open(cls, path: str | Path) -> Detector:
        """The detector that `save` wrote, which goes on where it was."""
        return cls.from_bytes(keeping.read(Path(path)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _rows(put: Put) -> Iterable[tuple[list[int], int, int]]:
    return zip(put.items.tolist(), put.earliest.tolist(), put.latest.tolist(), strict=True)


def _anonymous(condition: MemberCondition) -> MemberCondition:
    """The same condition of a member without a name and a constant."""
    sides = ["" if isinstance(one, str) else one for one in (condition.left, condition.right)]
    return MemberCondition(condition.asked, *sides)
