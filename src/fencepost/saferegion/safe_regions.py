"""`SafeRegions`: regions in which the events of moving objects need not be sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Literal, NamedTuple, NoReturn, TypeAlias, get_args

from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import parse_expiry
from fencepost.errors import ModelError
from fencepost.events.event_attributes import attributes
from fencepost.filters.checks import Filter
from fencepost.filters.normal_form import to_filters
from fencepost.geometry.space import Space
from fencepost.saferegion.client_rule import UNUSABLE, SafeRegion, Shape, json_value, point_of
from fencepost.saferegion.free_space import RegionMethod, SquareWindows, Surroundings, is_central
from fencepost.saferegion.issued_regions import IssuedRegions
from fencepost.saferegion.match_zones import Constraint, MatchZones
from fencepost.saferegion.nearby_filters import NearbyFilters
from fencepost.saferegion.subscription_places import split_simple
from fencepost.saferegion.zones import Box, Hole

Mode: TypeAlias = Literal["silence", "same"]
MODES: tuple[Mode, ...] = get_args(Mode)
_MAX_HOLES = 256
_SUBSCRIPTION, _EXTRA = "s", "c"  # prefixes of names in the index


class Withdrawal(NamedTuple):
    """An object whose region is void, and the version of the subscriptions that voids it."""

    key: str
    version: int


class SafeRegions:
    """Makes regions around objects in which their events match nothing, and withdraws them.

    A region is an inner bound of the points where that holds: it leaves out the outer bounds of all
    filters that can match near the object (`match_zones`). So an object that stays in it misses no
    match.

    Parameters
    ----------
    matcher : Matcher
        Its subscriptions may change at any time.
    method : RegionMethod, optional
        Finds a region; by default a window minus the places of the subscriptions in it.
        `fencepost.papers.events.GreedyRectangles` is the method of a published system.
    mode : {"silence", "same"}
        "silence": regions in which nothing matches. "same": regions in which the same subscriptions
        match as at the object's position, for subscribers that need only changes.
    position : str
        The attribute that holds the position of an object: a point.
    changing : iterable of str
        Attributes that may differ in every event, such as a time. Conditions on them are taken to
        be true. An object sends an event if another attribute changes that a subscription uses.
    max_holes : int
        Without a `method`, the maximum number of holes in a region.
    max_objects : int
        The maximum number of objects whose regions are remembered; beyond it, the oldest regions
        are withdrawn.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("me", "S_DWITHIN(geometry, POINT(13.4 52.5), 500) AND state = 'empty'")
    >>> s = SafeRegions(m)
    >>> region = s.around({"geometry": "POINT (13.5 52.5)", "state": "empty"}, key="taxi 7")
    >>> region.contains(13.48, 52.5), region.contains(13.401, 52.5)
    (True, False)
    >>> m.subscribe("you", "S_DWITHIN(geometry, POINT(13.48 52.5), 500)")
    >>> s.withdrawals()
    [Withdrawal(key='taxi 7', version=1)]
    """

    def __init__(
        self,
        matcher: Matcher,
        method: RegionMethod | None = None,
        *,
        mode: Mode = "silence",
        position: str = "geometry",
        changing: Iterable[str] = (),
        max_holes: int = _MAX_HOLES,
        max_objects: int = 1_000_000,
    ) -> None:
        if method is not None and not hasattr(method, "around"):
            raise ModelError(
                "method must be a RegionMethod, an object with the method `around`; saw "
                f"{method!r:.40}; leave it out"
            )
        if mode not in MODES:
            raise ModelError(f"mode must be one of {', '.join(MODES)}; saw {mode!r:.40}")
        if min(max_holes, max_objects) < 1:
            raise ModelError(
                f"max_holes and max_objects must be at least 1; saw {max_holes}, {max_objects}"
            )
        self._matcher = matcher
        self._method = SquareWindows(max_holes) if method is None else method
        self._mode = mode
        self._position = position
        self._changing = frozenset(changing) - {position}
        self._issued = IssuedRegions(max_objects)
        self._withdrawn: dict[str, int] = {}
        self._version = 0
        self._numbers = count(1)
        self._extra_filters: dict[str, tuple[Filter, ...]] = {}
        self._extra_names: frozenset[str] | None = frozenset()
        self._lock = matcher.view().lock
        self._nearby = NearbyFilters(position, self._changing, matcher, self._filters_of)
        with self._lock:
            self._put_all()
            matcher.view().on_change(self._follow)

    def __repr__(self) -> str:
        return (
            f"<SafeRegions: mode {self._mode!r}, {len(self._issued):,} regions issued, of "
            f"{self._matcher!r}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "SafeRegions cannot be pickled or copied, because it follows its matcher; pickle the "
            "matcher, and make SafeRegions(matcher) of the copy"
        )

    @property
    def version(self) -> int:
        """The number of changes of the subscriptions."""
        return self._version

    @property
    def nbytes(self) -> int:
        """The size of the index of filters in bytes."""
        return self._nearby.nbytes

    def around(self, event: object, key: str | None = None) -> SafeRegion:
        """Return the region in which the object of an event is safe; it may be unsafe everywhere.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Its position is a point: GeoJSON, WKT or Shapely.
        key : str, optional
            Identifies the object. Its region is remembered, and `withdrawals` reports when it is
            void.
        """
        values = attributes(event)
        with self._lock:
            region, fixed = self._region(values)
            if key is not None:
                self._withdrawn.pop(key, None)
                if region.safe:
                    for dropped in self._issued.put(key, region, fixed):
                        self._withdrawn[dropped] = self._version + 1
                else:
                    self._issued.drop(key)
            return region

    def answer(self, event: object, key: str) -> str:
        """Return the answer to an object's event: a new region, or that it keeps its own.

        The answer is for `SafeClient.accept`. An object that passes through a hole keeps its
        region.
        """
        values = attributes(event)
        point = point_of(values.get(self._position))
        with self._lock:
            issued = self._issued.get(key)
            if issued is not None and point is not None:
                region = issued.region
                # In mode "same", an object in a hole matches other subscriptions than elsewhere.
                covers = region.encloses if self._mode == "silence" else region.contains
                if covers(*point) and is_central(region, *point) and region.is_unchanged(values):
                    return region.to_keep_json(point)
            return self.around(event, key).to_json()

    def withdrawals(self) -> list[Withdrawal]:
        """Return the regions that became void since the last call, to notify their objects."""
        with self._lock:
            withdrawals = [Withdrawal(*item) for item in self._withdrawn.items()]
            self._withdrawn.clear()
        return withdrawals

    def forget(self, key: str) -> bool:
        """Forget an object that is gone, or was notified. Return whether it had a region."""
        with self._lock:
            self._withdrawn.pop(key, None)
            return self._issued.drop(key)

    def has_region(self, key: str) -> bool:
        """Return whether an object has a region that can be withdrawn."""
        return self._issued.get(key) is not None

    def add_conditions(self, name: str, conditions: Iterable[Condition]) -> None:
        """Treat conditions as subscriptions: every event that may match one of them is sent.

        This serves the members of composites: an event that matches a member must be sent, whether
        or not the other members have matched. Conditions with the same name are replaced.
        """
        space = Space(self._matcher.space)
        filters = tuple(terms for condition in conditions for terms in to_filters(condition, space))
        with self._lock:
            self._extra_filters[name] = filters
            self._extra_names = None
            self._put([_EXTRA + name])

    def remove_conditions(self, name: str) -> None:
        """Remove the conditions that were added under a name."""
        with self._lock:
            if self._extra_filters.pop(name, None) is not None:
                self._extra_names = None
                self._version += 1
                self._nearby.remove(_EXTRA + name)

    # Subscriptions

    def _filters_of(self, name: str) -> Sequence[Filter]:
        if name.startswith(_EXTRA):
            return self._extra_filters[name[1:]]
        return self._matcher.view().filters(name[1:])

    def _row(self, id: str) -> tuple[str, Sequence[Filter], int]:
        return (
            _SUBSCRIPTION + id,
            self._matcher.view().filters(id),
            self._matcher.view().expires(id),
        )

    def _put_all(self) -> None:
        """Add all subscriptions of the matcher."""
        simple, other_ids = split_simple(self._matcher, self._position, self._changing)
        for columns in simple:
            self._nearby.add_simple(_SUBSCRIPTION, columns)
        self._nearby.add(self._row(id) for id in other_ids)

    def _follow(self, ids: Sequence[str]) -> None:
        """Follow a change of the matcher; the caller holds its lock."""
        for id in ids:
            if id not in self._matcher:
                self._version += 1
                self._nearby.remove(_SUBSCRIPTION + id)
        self._put([_SUBSCRIPTION + id for id in ids if id in self._matcher])

    def _put(self, names: Sequence[str]) -> None:
        if not names:
            return
        self._version += 1
        self._nearby.add(
            self._row(name[1:])
            if name.startswith(_SUBSCRIPTION)
            else (name, self._extra_filters[name[1:]], parse_expiry(None))
            for name in names
        )
        for name in names:
            for number, zones in enumerate(self._nearby.match_zones(name)):
                if zones is not None:
                    self._withdraw(name, number, zones)

    def _withdraw(self, name: str, number: int, zones: MatchZones) -> None:
        """Withdraw the regions in which a new filter may match.

        Every other region stays safe: its box does not meet the boxes of the filter, or a term of
        the filter is false for fixed attributes that the object watches.
        """
        answers: dict[str, bool] = {}
        for key in list(self._issued.intersecting(zones.boxes())):
            region, fixed, _ = self._issued[key]
            # A term on an attribute that the object does not watch may become true unnoticed.
            may_match = bool(zones.fixed_names - region.attributes.keys())
            if not may_match:
                values = repr([region.attributes[name] for name in sorted(zones.fixed_names)])
                if values not in answers:
                    answers[values] = self._nearby.fixed_terms_hold(name, number, zones, fixed)
                may_match = answers[values]
            if may_match:
                self._issued.drop(key)
                self._withdrawn[key] = self._version

    # Regions

    def _region(self, values: Mapping[str, object]) -> tuple[SafeRegion, Mapping[str, object]]:
        """Return the region of an event, and the fixed attributes of the event."""
        point = point_of(values.get(self._position))
        fixed = {
            name: value
            for name, value in values.items()
            if name != self._position and name not in self._changing
        }
        requested = self._matcher.requested_attributes() | self._extra_attributes()
        watched = {
            name: json_value(values.get(name))
            for name in requested - self._changing - {self._position}
        }
        nowhere = SafeRegion(False, position=self._position, at=point, version=self._version)
        if point is None or any(value is UNUSABLE for value in watched.values()):
            return nowhere, fixed
        max_x, max_y = Space(self._matcher.space).limits
        if abs(point[0]) > max_x or abs(point[1]) > max_y:
            return nowhere, fixed
        shapes = self._method.around(
            *point,
            self._nearby.extent,
            lambda window: self._surroundings(*point, fixed, window),
        )
        if shapes is None:
            return nowhere, fixed
        inside, outside = shapes
        if not all(math.isfinite(number) for shape in (*inside, *outside) for number in shape[1:]):
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
        # In mode "same", the region keeps the matches at the point, so it must contain the point.
        useful = self._mode == "silence" or region.contains(*point)
        return (region if useful else nowhere), fixed

    def _extra_attributes(self) -> frozenset[str]:
        if self._extra_names is None:
            self._extra_names = frozenset(
                attribute
                for name in self._extra_filters
                for zones in self._nearby.match_zones(_EXTRA + name)
                if zones is not None
                for attribute in zones.fixed_names
            )
        return self._extra_names

    def _surroundings(
        self, x: float, y: float, fixed: Mapping[str, object], window: Box
    ) -> Surroundings | None:
        """Return the holes and the shapes to stay in for a window; None if the object is not safe.

        Only filters that can match in the window constrain the object.
        """
        holes: list[Hole] = []
        inside: list[Shape] = []
        for name, _, zones in self._nearby.find(fixed, window):
            constraint = self._constraint(zones, x, y, name.startswith(_SUBSCRIPTION))
            if constraint is None:
                return None
            holes += constraint[0]
            inside += constraint[1]
        return holes, tuple(inside)

    def _constraint(
        self, zones: MatchZones, x: float, y: float, is_subscription: bool
    ) -> Constraint | None:
        if self._mode == "silence":
            constraint = None if zones.has_single_zone else zones.unmatched_around(x, y)
            return constraint or zones.unmatched_anywhere()
        constraint = zones.unmatched_around(x, y)
        return zones.matched_around(x, y) if constraint is None and is_subscription else constraint
