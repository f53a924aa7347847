"""`Detector`: finds composites in a sequence of events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from fencepost.composite import detector_state
from fencepost.composite.detection import Detection
from fencepost.composite.event_clock import Clock
from fencepost.composite.event_matching import MatchedEvent, match_events
from fencepost.composite.event_parsing import (
    AttributeNames,
    check_location,
    parse_id,
    parse_time_ns,
    read_hull,
)
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
from fencepost.geometry.space import DEFAULT_SPACE, SpaceName, parse_space


class Detector:
    """Finds the events that match composites together.

    Parameters
    ----------
    composites : iterable of Composite
    lateness_s : float
        How far an event's time may be behind the newest time seen. Later events are not joined.
    time, geometry, id : str
        The attributes of events that hold their time, location and id. An event without an id is
        identified by its number, from 0.
    max_members : int, optional
        The maximum number of live members; an event counts once for each part it can take. Beyond
        it, the members that expire next are dropped. No limit if left out.
    space : {"wgs84", "planar"}
        The space of the coordinates. With "wgs84", the default, they are longitude and latitude,
        and distances are metres on the ellipsoid; with "planar", distances are in their unit.
    max_detections : int, optional
        The maximum number of detections of a composite that one event completes, so that a
        composite of many unrelated members cannot block the others. No limit if left out.

    Notes
    -----
    An event is joined with the events that arrived before it. So each detection is reported once,
    when its last event arrives, whatever the order of the times. `docs/events.md` has the rules.

    A detector is thread-safe; it joins one event at a time.

    Examples
    --------
    >>> d = Detector([Composite(
    ...     "pick-up",
    ...     members={"taxi": "kind = 'taxi'", "rider": "kind = 'rider'"},
    ...     where=["DIST(taxi, rider) < 500"],
    ...     within_s=600,
    ... )])
    >>> noon = {"time": "2024-05-01T12:00:00Z"}
    >>> d.push({"id": "t7", "kind": "taxi", "geometry": "POINT (13.40 52.52)", **noon})
    []
    >>> rider = {"id": "r1", "kind": "rider", "geometry": "POINT (13.405 52.521)"}
    >>> [detection] = d.push({**rider, **noon})
    >>> detection.members
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
        max_members: int | None = None,
        space: SpaceName = DEFAULT_SPACE,
        max_detections: int | None = None,
    ) -> None:
        for name, limit in (("max_members", max_members), ("max_detections", max_detections)):
            if limit is not None and not _is_count(limit):
                raise ModelError(f"{name} must be a whole number above 0; saw {short_repr(limit)}")
        self._space = parse_space(space)
        self._names = AttributeNames(time, geometry, id)
        self._limits = max_members, max_detections
        self._lock = RLock()
        self._clock = Clock(lateness_s)
        self._live = LiveMembers()
        self._registry = Registry(self._live, self._space, max_detections)
        self._joiner = Joiner(self._live, self._registry, self._clock, self._space, *self._limits)
        self._x, self._y = np.empty(1), np.empty(1)  # the corner of an event that is a point
        for composite in composites:
            self.add(composite)

    # Composites

    def add(self, composite: Composite) -> None:
        """Add a composite; it matches events that arrive from now on.

        Raises
        ------
        ModelError
            If the detector has a composite with the same id.
        """
        if not isinstance(composite, Composite):
            raise ModelError(f"a detector takes composites; saw {short_repr(composite)}")
        with self._lock:
            self._registry.add(composite, self._clock.next_number)
            self._joiner.forget_plans()

    def remove(self, id: str) -> bool:
        """Remove a composite. Return whether it existed.

        Events that are kept for it alone are dropped when they expire.
        """
        with self._lock:
            self._joiner.forget_plans()
            return self._registry.remove(id)

    def composites(self) -> list[Composite]:
        """Return the composites in the order in which they were added."""
        return [composite for composite, _ in self._registry.composites()]

    def __len__(self) -> int:
        return len(self._registry)

    # Events

    def push(self, event: object, dead_letters: DeadLetters | None = None) -> list[Detection]:
        """Process an event. Return the detections that it completes.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
        dead_letters : list, optional
            Collects (0, reason) if the event is too late or unusable. Without it, an unusable event
            raises an error, and a late event is only counted.

        Raises
        ------
        ModelError
            If the event has no time or, if it matches a member, no location.
        """
        with self._lock:
            try:
                values = attributes(event)
                time_ns = parse_time_ns(values.get(self._names.time), self._names.time)
                key = parse_id(values.get(self._names.id), self._clock.next_number)
                if self._clock.is_late(time_ns):
                    reason = self._clock.reject(time_ns)
                    if dead_letters is not None:
                        dead_letters.append((0, reason))
                    return []
                pools = self._registry.match(values)
                x, y = self._x, self._y
                if pools:
                    x, y = self._corners(values.get(self._names.geometry))
            except FencepostError as error:
                if dead_letters is None:
                    raise
                dead_letters.append((0, str(error)))
                return []
            return self._joiner.join_event(time_ns, key, pools, x, y)

    def _corners(self, location: object) -> tuple[Floats, Floats]:
        """Return the corners of a location's hull.

        Those of a point are valid until the next call.
        """
        point = parse_point(location)
        max_x, max_y = self._space.limits
        if point is not None and abs(point[0]) <= max_x and abs(point[1]) <= max_y:
            # Adding 0.0 turns -0.0 into 0.0, as the readers of geometries do.
            self._x[0], self._y[0] = point[0] + 0.0, point[1] + 0.0
            return self._x, self._y
        hull = read_hull(location, self._names.geometry)
        check_location(self._space, hull.x, hull.y)
        return hull.x, hull.y

    def push_batch(self, table: object, dead_letters: DeadLetters | None = None) -> list[Detection]:
        """Process the events of a table in row order. Return the detections that they complete.

        An event of an Arrow table takes half the time of `push`, a mapping two thirds.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        dead_letters : list, optional
            Collects (row, reason) of events that are too late or unusable. Without it, an unusable
            event raises an error before any event is processed.
        """
        with self._lock:
            events, bad = match_events(table, self._registry.matcher, self._names, self._space)
            return self.push_matched_events(events, bad, dead_letters)

    def push_matched_events(
        self,
        events: Iterable[MatchedEvent],
        bad: DeadLetters,
        dead_letters: DeadLetters | None = None,
    ) -> list[Detection]:
        """Process events that were read and matched with `atoms`, as `push_batch` does.

        bad : the row and the reason of each unusable event. No composite was added or removed since
        the events were matched.
        """
        if bad and dead_letters is None:
            first = "; ".join(f"row {row}: {reason}" for row, reason in sorted(bad)[:10])
            raise ModelError(f"{len(bad)} events cannot be used, so none was processed: {first}")
        with self._lock:
            letters = [*bad]
            clock, pools_of = self._clock, self._registry.pools_of
            join_event = self._joiner.join_event
            detections: list[Detection] = []
            for row, time_ns, key, atoms, x, y in events:
                if clock.is_late(time_ns):
                    letters.append((row, clock.reject(time_ns)))
                    continue
                event_key = clock.next_number if key is None else key
                detections += join_event(time_ns, event_key, pools_of(atoms), x, y, evicts=False)
            self._joiner.evict()
            if dead_letters is not None:
                dead_letters.extend(sorted(letters))
            return detections

    # Events that were matched elsewhere

    def atoms(self) -> dict[Condition, str]:
        """Return the expressions on single events, each with its name for `push_matched`."""
        return self._registry.atoms()

    def push_matched(
        self, time_ns: int, key: Key, atoms: Iterable[str], x: Floats, y: Floats
    ) -> list[Detection]:
        """Process an event that is known to match these atoms, as `push` does.

        The event is not too late. x, y : the corners of its hull, as
        `fencepost.kernels.geometry.convex_hulls` orders them.
        """
        with self._lock:
            return self._joiner.join_event(time_ns, key, self._registry.pools_of(atoms), x, y)

    def advance(self, newest_ns: int) -> None:
        """Advance the clock to the time of an event that was processed elsewhere."""
        with self._lock:
            self._clock.advance(newest_ns)
            self._joiner.evict()

    def last_expiry(self) -> int | None:
        """Return the time after which no member is kept; None if none is kept now."""
        with self._lock:
            return self._live.last_expiry()

    def stats(self) -> dict[str, Any]:
        """Return the numbers of events, detections and live members.

        `live`: events and detections of nested composites that are kept, counted once for each part
        they can take. `expired`: live members dropped because no event can be joined with them any
        more. `crowded_out`: live members dropped early because of `max_members`. `cut_short`:
        events that would have completed more than `max_detections` detections. `too_wide`:
        detections of nested composites that were dropped because they span over 180 degrees of
        longitude.
        """
        with self._lock:
            return {
                "composites": len(self),
                **self._counts(),
                "live": len(self._live),
                "bytes": self._live.nbytes,
            }

    def _counts(self) -> dict[str, int]:
        return {
            "events": self._clock.next_number,
            "late": self._clock.late_count,
            **self._joiner.counts,
        }

    @property
    def live(self) -> int:
        """The number of live members, counted once for each part they can take."""
        return len(self._live)

    # State

    def to_bytes(self) -> bytes:
        """Return the whole state of the detector."""
        with self._lock:
            facts = {
                "composites": [
                    {"composite": composite.to_json(), "since": since}
                    for composite, since in self._registry.composites()
                ],
                "lateness_s": self._clock.lateness_s,
                "names": [*self._names],
                "max_members": self._limits[0],
                "max_detections": self._limits[1],
                "space": self._space.value,
                "newest": self._clock.newest_ns,
                "next": self._clock.next_number,
                "counts": self._counts(),
                # A restored detector numbers its pools in this order.
                "pools": {str(old): new for new, old in enumerate(self._registry.pool_numbers())},
            }
            return detector_state.to_bytes(self._live, facts)

    @classmethod
    def from_bytes(cls, state: bytes, **changed: Any) -> Detector:
        """Return a detector that continues from the state that `to_bytes` returned.

        Parameters
        ----------
        changed
            New values of `lateness_s`, `max_members` or `max_detections`.

        Raises
        ------
        StoreError
            If the bytes are not such a state.
        """
        facts, items = detector_state.from_bytes(state)
        time, geometry, id = facts["names"]
        settings = {name: facts[name] for name in ("lateness_s", "max_members", "max_detections")}
        space = facts["space"]
        detector = cls(time=time, geometry=geometry, id=id, space=space, **{**settings, **changed})
        for entry in facts["composites"]:
            detector._registry.add(Composite.from_json(entry["composite"]), entry["since"])
        clock, counts = detector._clock, detector._joiner.counts
        clock.newest_ns, clock.next_number, clock.late_count = (
            facts["newest"],
            facts["next"],
            facts["counts"]["late"],
        )
        counts.update((name, facts["counts"][name]) for name in counts)
        numbers = detector._registry.pool_numbers()
        detector_state.restore(
            detector._live, items, dict(zip(facts["pools"], numbers, strict=True))
        )
        return detector

    def __repr__(self) -> str:
        return f"<Detector: {len(self):,} composites, {self.live:,} live members>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    def save(self, path: str | Path) -> None:
        """Write the whole state of the detector to a file."""
        detector_state.write(Path(path), self.to_bytes())

    @classmethod
    def open(cls, path: str | Path) -> Detector:
        """Return a detector that continues from the state that `save` wrote."""
        return cls.from_bytes(detector_state.read(Path(path)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
