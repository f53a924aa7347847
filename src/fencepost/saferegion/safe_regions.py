"""`SafeRegions`: where the objects of a matcher's events need not send them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import parse_expiry
from fencepost.errors import ModelError
from fencepost.events.event_attributes import attributes
from fencepost.filters.checks import Filter
from fencepost.filters.normal_form import to_filters
from fencepost.geometry.space import Space
from fencepost.saferegion.client_rule import UNUSABLE, SafeRegion, Shape, plain, point_of
from fencepost.saferegion.free_space import RegionMethod, Surroundings, Windows, is_central
from fencepost.saferegion.issued_regions import HandedOut
from fencepost.saferegion.match_zones import Kept, Want
from fencepost.saferegion.nearby_filters import Nearby
from fencepost.saferegion.subscription_places import usual_of
from fencepost.saferegion.zones import Box, Hole

MODES = ("silence", "same")
_MOST_HOLES = 256
_OWN, _OF_COMPOSITE = "s", "c"  # with which the names in the index begin


class Withdrawal(NamedTuple):
    """An object whose region is void, and from which version of the subscriptions on."""

    key: str
    version: int


class SafeRegions:
    """Regions in which an object's events match nothing, round where it is.

    Parameters
    ----------
    matcher : Matcher
        Whose subscriptions count; it is followed as they change.
    method : RegionMethod, optional
        How a region is found; if left out, it is a window less the places of the subscriptions in
        it. `fencepost.papers.events.GreedyRectangles` is the method of a published system.
    mode : {"silence", "same"}
        "silence": regions in which nothing matches. "same": regions in which the same
        subscriptions match as where the object is, for whom only a change matters.
    position : str
        The attribute that says where an object is: a point.
    changing : iterable of str
        Attributes that may be another at every event, such as a time. Conditions on them are taken
        to be true; objects send an event when any other attribute changes that is asked about.
    most_holes : int
        Without a `method`, how many places a region leaves out at most.
    most_objects : int
        How many objects' regions are remembered; the oldest are withdrawn for more.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("me", "S_DWITHIN(geometry, POINT(5 5), 2) AND state = 'empty'")
    >>> s = SafeRegions(m)
    >>> region = s.around({"geometry": "POINT (1 1)", "state": "empty"}, key="taxi 7")
    >>> region.contains(3, 1), region.contains(5, 4)
    (True, False)
    >>> m.subscribe("you", "S_DWITHIN(geometry, POINT(3 1), 1)")
    >>> s.changed()
    [Withdrawal(key='taxi 7', version=1)]
    """

    def __init__(
        self,
        matcher: Matcher,
        method: RegionMethod | None = None,
        *,
        mode: str = "silence",
        position: str = "geometry",
        changing: Iterable[str] = (),
        most_holes: int = _MOST_HOLES,
        most_objects: int = 1_000_000,
    ) -> None:
        if method is not None and not hasattr(method, "around"):
            raise ModelError(
                "method must be a RegionMethod, an object with the method `around`; saw "
                f"{method!r:.40}; leave it out"
            )
        if mode not in MODES:
            raise ModelError(f"mode must be one of {', '.join(MODES)}; saw {mode!r:.40}")
        if min(most_holes, most_objects) < 1:
            raise ModelError(
                "most_holes and most_objects are numbers from 1 on; saw "
                f"{most_holes}, {most_objects}"
            )
        self._matcher = matcher
        self._method = Windows(most_holes) if method is None else method
        self._mode = mode
        self._position = position
        self._changing = frozenset(changing) - {position}
        self._handed_out = HandedOut(most_objects)
        self._void: dict[str, int] = {}
        self._version = 0
        self._numbers = count(1)
        self._composites: dict[str, tuple[Filter, ...]] = {}
        self._names_of_composites: frozenset[str] | None = frozenset()
        self._lock = matcher.view().lock
        self._nearby = Nearby(position, self._changing, matcher, self._filters_of)
        with self._lock:
            self._put_all()
            matcher.view().on_change(self._hear)

    @property
    def version(self) -> int:
        """How often the subscriptions changed."""
        return self._version

    @property
    def nbytes(self) -> int:
        """The size of the index of where subscriptions can match."""
        return self._nearby.nbytes

    def around(self, event: object, key: str | None = None) -> SafeRegion:
        """The region in which the object of an event is safe, perhaps none.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Its position is a point: a GeoJSON Point, WKT, or Shapely's.
        key : str, optional
            Names the object; its region is remembered, and reported by `changed` once void.
        """
        own = attributes(event)
        with self._lock:
            region, fixed = self._region(own)
            if key is not None:
                self._void.pop(key, None)
                if region.safe:
                    for other in self._handed_out.put(key, region, fixed):
                        self._void[other] = self._version + 1
                else:
                    self._handed_out.drop(key)
            return region

    def answer(self, event: object, key: str) -> str:
        """What to send back to an object for an event: its region or that it may keep its own.

        For `SafeClient.accept`. An object that goes through a fence keeps the region that it has.
        """
        own = attributes(event)
        point = point_of(own.get(self._position))
        with self._lock:
            held = self._handed_out.get(key)
            if held is not None and point is not None:
                region = held.region
                # In a fence that it leaves out, what matches is another matter than elsewhere.
                here = region.is_around if self._mode == "silence" else region.contains
                if here(*point) and is_central(region, *point) and region.is_unchanged(own):
                    return region.kept(point)
            return self.around(event, key).to_json()

    def changed(self) -> list[Withdrawal]:
        """The objects whose regions became void since the last call, which are to be told."""
        with self._lock:
            found = [Withdrawal(*one) for one in self._void.items()]
            self._void.clear()
        return found

    def forget(self, key: str) -> bool:
        """Forget an object that is gone, or has been told; whether it had a region."""
        with self._lock:
            self._void.pop(key, None)
            return self._handed_out.drop(key)

    def remembers(self, key: str) -> bool:
        """Whether an object has a region that can be withdrawn."""
        return self._handed_out.get(key) is not None

    def want(self, name: str, members: Iterable[Condition]) -> None:
        """Let every event be sent that one of some conditions could want.

        For members of a composite: what matches one of them must be seen, whether or not the others
        are there. A name given again takes the place of what it stood for.
        """
        space = Space(self._matcher.space)
        found = tuple(one for member in members for one in to_filters(member, space))
        with self._lock:
            self._composites[name] = found
            self._names_of_composites = None
            self._put([_OF_COMPOSITE + name])

    def want_no_more(self, name: str) -> None:
        """Take back what was given to `want`."""
        with self._lock:
            if self._composites.pop(name, None) is not None:
                self._names_of_composites = None
                self._version += 1
                self._nearby.remove(_OF_COMPOSITE + name)

    # Subscriptions

    def _filters_of(self, name: str) -> Sequence[Filter]:
        if name.startswith(_OF_COMPOSITE):
            return self._composites[name[1:]]
        return self._matcher.view().filters(name[1:])

    def _row(self, id: str) -> tuple[str, Sequence[Filter], int]:
        return _OWN + id, self._matcher.view().filters(id), self._matcher.view().expires(id)

    def _put_all(self) -> None:
        """Add all that the matcher has now."""
        found, others = usual_of(self._matcher, self._position, self._changing)
        for usual in found:
            self._nearby.put_usual(_OWN, usual)
        self._nearby.put(self._row(id) for id in others)

    def _hear(self, ids: Sequence[str]) -> None:
        """Follow a change of the matcher, whose lock is held."""
        for id in ids:
            if id not in self._matcher:
                self._version += 1
                self._nearby.remove(_OWN + id)
        self._put([_OWN + id for id in ids if id in self._matcher])

    def _put(self, names: Sequence[str]) -> None:
        if not names:
            return
        self._version += 1
        self._nearby.put(
            self._row(name[1:])
            if name.startswith(_OWN)
            else (name, self._composites[name[1:]], parse_expiry(None))
            for name in names
        )
        for name in names:
            for number, want in enumerate(self._nearby.wants(name)):
                if want is not None:
                    self._withdraw(name, number, want)

    def _withdraw(self, name: str, number: int, want: Want) -> None:
        """Withdraw the regions into which a new filter has come."""
        decided: dict[str, bool] = {}
        for key in list(self._handed_out.meeting(want.boxes())):
            region, fixed, _ = self._handed_out[key]
            # What it asks of an attribute that the object does not watch may become true.
            wanted = bool(want.names - region.attributes.keys())
            if not wanted:
                asked = repr([region.attributes[name] for name in sorted(want.names)])
                if asked not in decided:
                    decided[asked] = self._nearby.is_wanted(name, number, want, fixed)
                wanted = decided[asked]
            if wanted:
                self._handed_out.drop(key)
                self._void[key] = self._version

    # Regions

    def _region(self, own: Mapping[str, object]) -> tuple[SafeRegion, Mapping[str, object]]:
        """The region of an event, and those of its attributes that stay."""
        point = point_of(own.get(self._position))
        fixed = {
            name: value
            for name, value in own.items()
            if name != self._position and name not in self._changing
        }
        asked = self._matcher.requested_attributes() | self._composite_names()
        watched = {name: plain(own.get(name)) for name in asked - self._changing - {self._position}}
        nowhere = SafeRegion(False, position=self._position, at=point, version=self._version)
        if point is None or any(value is UNUSABLE for value in watched.values()):
            return nowhere, fixed
        far, high = Space(self._matcher.space).limits
        if abs(point[0]) > far or abs(point[1]) > high:
            return nowhere, fixed
        shapes = self._method.around(
            *point,
            self._nearby.extent,
            lambda window: self._surroundings(*point, fixed, window),
        )
        if shapes is None:
            return nowhere, fixed
        inside, outside = shapes
        if not all(math.isfinite(one) for shape in (*inside, *outside) for one in shape[1:]):
            return nowhere, fixed
        region = SafeRegion(
            True,
            tuple(dict.fromkeys(inside)),
            tuple(dict.fromkeys(outside)),
            watched,
            self._position,
            point,
            self._version,
            next(self._numbers),
        )
        # Where only a change matters, what it may change to is not known elsewhere.
        useful = self._mode == "silence" or region.contains(*point)
        return (region if useful else nowhere), fixed

    def _composite_names(self) -> frozenset[str]:
        if self._names_of_composites is None:
            self._names_of_composites = frozenset(
                name
                for key in self._composites
                for want in self._nearby.wants(_OF_COMPOSITE + key)
                if want is not None
                for name in want.names
            )
        return self._names_of_composites

    def _surroundings(
        self, x: float, y: float, fixed: Mapping[str, object], window: Box
    ) -> Surroundings | None:
        """What an object must stay out of, and in; None where its events are wanted here."""
        holes: list[Hole] = []
        inside: list[Shape] = []
        for name, _, want in self._nearby.find(fixed, window):
            kept = self._kept(want, x, y, name.startswith(_OWN))
            if kept is None:
                return None
            holes += kept[0]
            inside += kept[1]
        return holes, tuple(inside)

    def _kept(self, want: Want, x: float, y: float, own: bool) -> Kept | None:
        if self._mode == "silence":
            kept = None if want.is_simple else want.kept_from(x, y)
            return kept or want.kept_off()
        kept = want.kept_from(x, y)
        return want.kept_in(x, y) if kept is None and own else kept
