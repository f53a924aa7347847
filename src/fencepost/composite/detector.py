"""`Detector`: composites in, events past, detections out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from fencepost.composite import detector_state
from fencepost.composite.arrivals import (
    Names,
    check_location,
    id_of,
    location_of,
    time_of,
)
from fencepost.composite.detection import Detection
from fencepost.composite.event_clock import Clock
from fencepost.composite.event_tables import Arrival, arrivals
from fencepost.composite.joiner import Joiner
from fencepost.composite.live_members import Floats, Key, LiveMembers
from fencepost.composite.model import Composite
from fencepost.composite.registry import Registry
from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import DeadLetters
from fencepost.errors import FencepostError, ModelError
from fencepost.events.event_attributes import attributes
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.readers.single_geometry import parse_point
from fencepost.geometry.space import parse_space


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
                raise ModelError(f"{name} is a whole number above 0; saw {short_repr(most)}")
        self._space = parse_space(space)
        self._names = Names(time, geometry, id)
        self._most = most_members, most_found
        self._lock = RLock()
        self._clock = Clock(lateness_s)
        self._live = LiveMembers()
        self._registry = Registry(self._live, self._space, most_found)
        self._joiner = Joiner(self._live, self._registry, self._clock, self._space, *self._most)
        self._x, self._y = np.empty(1), np.empty(1)  # of an event at a time, where it is a point
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
            raise ModelError(f"a detector looks for composites; saw {short_repr(composite)}")
        with self._lock:
            self._registry.add(composite, self._clock.next)
            self._joiner.plan_anew()

    def remove(self, id: str) -> bool:
        """Stop looking for a composite; whether there was one.

        What is kept for it alone goes when its time is over.
        """
        with self._lock:
            self._joiner.plan_anew()
            return self._registry.remove(id)

    def composites(self) -> list[Composite]:
        """What is looked for, in the order in which it came."""
        return [composite for composite, _ in self._registry.composites()]

    def __len__(self) -> int:
        return len(self._registry)

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
                key = id_of(given.get(self._names.id), self._clock.next)
                if self._clock.is_late(at):
                    reason = self._clock.pass_over(at)
                    if dead_letters is not None:
                        dead_letters.append((0, reason))
                    return []
                pools = self._registry.played(given)
                x, y = self._x, self._y
                if pools:
                    x, y = self._corners(given.get(self._names.geometry))
            except FencepostError as error:
                if dead_letters is None:
                    raise
                dead_letters.append((0, str(error)))
                return []
            return self._joiner.arrive(at, key, pools, x, y)

    def _corners(self, place: object) -> tuple[Floats, Floats]:
        """Those of the hull of a location; a point's are there until the next."""
        point = parse_point(place)
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

        An event of an Arrow table takes half the time that `push` takes, a mapping two thirds.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        dead_letters : list, optional
            Collects (row, reason) of events that are too late or cannot be used. Without it, one
            that cannot be used refuses the whole table.
        """
        with self._lock:
            events, bad = arrivals(table, self._registry.matcher, self._names, self._space)
            return self.push_arrivals(events, bad, dead_letters)

    def push_arrivals(
        self, events: Iterable[Arrival], bad: DeadLetters, dead_letters: DeadLetters | None = None
    ) -> list[Detection]:
        """The same for events that were read and matched already; bad : those that cannot be used.

        They were matched with what `atoms` gives, and nothing was added or removed since.
        """
        if bad and dead_letters is None:
            first = "; ".join(f"row {row}: {why}" for row, why in sorted(bad)[:10])
            raise ModelError(f"{len(bad)} events cannot be used, so none was: {first}")
        with self._lock:
            letters = [*bad]
            clock, pools_of, arrive = self._clock, self._registry.pools, self._joiner.arrive
            found: list[Detection] = []
            for row, at, key, atoms, x, y in events:
                if clock.is_late(at):
                    letters.append((row, clock.pass_over(at)))
                    continue
                name = clock.next if key is None else key
                found += arrive(at, name, pools_of(atoms), x, y, evicts=False)
            self._joiner.evict()
            if dead_letters is not None:
                dead_letters.extend(sorted(letters))
            return found

    # Parts that were matched elsewhere

    def atoms(self) -> dict[Condition, str]:
        """The expressions on single events, and what `push_part` calls them."""
        return self._registry.atoms()

    def push_part(
        self, at: int, key: Key, atoms: Iterable[str], x: Floats, y: Floats
    ) -> list[Detection]:
        """The same as `push`, of an event that is known to match these expressions.

        x, y : the corners of its hull, as `fencepost.kernels.geometry.convex_hulls` gives them.
        """
        with self._lock:
            return self._joiner.arrive(at, key, self._registry.pools(atoms), x, y)

    def advance(self, newest: int) -> None:
        """Know that an event of this time was seen elsewhere."""
        with self._lock:
            self._clock.see(newest)
            self._joiner.evict()

    def last_expiry(self) -> int | None:
        """After which newest time nothing is kept any more; None where nothing is."""
        with self._lock:
            return self._live.last_expiry()

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
                **self._counts(),
                "live": len(self._live),
                "bytes": self._live.nbytes,
            }

    def _counts(self) -> dict[str, int]:
        return {"events": self._clock.next, "late": self._clock.late, **self._joiner.counts}

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
                    {"composite": composite.to_json(), "since": since}
                    for composite, since in self._registry.composites()
                ],
                "lateness_s": self._clock.lateness_s,
                "names": [*self._names],
                "most_members": self._most[0],
                "most_found": self._most[1],
                "space": self._space.value,
                "newest": self._clock.newest,
                "next": self._clock.next,
                "counts": self._counts(),
                # Pools are numbered anew when composites are added in order.
                "pools": {str(old): new for new, old in enumerate(self._registry.pool_numbers())},
            }
            return detector_state.to_bytes(self._live, facts)

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
        facts, items = detector_state.of_bytes(state)
        time, geometry, id = facts["names"]
        kept = {name: facts[name] for name in ("lateness_s", "most_members", "most_found")}
        space = facts["space"]
        found = cls(time=time, geometry=geometry, id=id, space=space, **{**kept, **changed})
        for entry in facts["composites"]:
            found._registry.add(Composite.from_json(entry["composite"]), entry["since"])
        clock, counts = found._clock, found._joiner.counts
        clock.newest, clock.next, clock.late = (
            facts["newest"],
            facts["next"],
            facts["counts"]["late"],
        )
        counts.update((name, facts["counts"][name]) for name in counts)
        numbers = found._registry.pool_numbers()
        detector_state.put_back(found._live, items, dict(zip(facts["pools"], numbers, strict=True)))
        return found

    def save(self, path: str | Path) -> None:
        """Write everything that this detector knows to a file."""
        detector_state.write(Path(path), self.to_bytes())

    @classmethod
    def open(cls, path: str | Path) -> Detector:
        """The detector that `save` wrote, which goes on where it was."""
        return cls.from_bytes(detector_state.read(Path(path)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
