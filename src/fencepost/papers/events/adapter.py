"""The two versions of OPS4ST as the table of a `Matcher`: each filter is an entry.

An entry has what they know: predicates, which are ranges of numbers and equality of strings, and
one operator with a convex region. `@` has two filters, one for the boundary, which become one entry
again. A region that is not convex stands as its hull, and what implies contact as `OVLP`: both are
verified where they hold. So are all other terms, equal ones once an event; geometries of events
that are not their own hulls; and distances that doubles leave open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2.ast import Geometry, Property, SpatialFunction
from fencepost.engine.index_registry import MatcherIndex
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.filters.checks import (
    Column,
    ColumnKind,
    Filter,
    Measure,
    MemberCheck,
    NearCheck,
    RangeCheck,
    RelateCheck,
    Term,
)
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls
from fencepost.kernels.geometry.shape_arrays import LINES, POINTS
from fencepost.papers.events.multilevel import MultiLevelIndex
from fencepost.papers.events.notation.location_conditions import boundary
from fencepost.papers.events.ops4st_arrays import (
    FARTHER,
    HULL,
    IN,
    NEARER,
    NUMBER,
    OTHER,
    OVERLAP,
    SAME_PLACE,
    STRING,
    Asked,
    Events,
    Floats,
    Predicate,
    Region,
    laid_out,
)
from fencepost.papers.events.standard import StandardIndex
from fencepost.papers.table_engine import Verified, table_index

_APART = (SpatialFunction.S_DISJOINT, SpatialFunction.EH_DISJOINT)


def ops4st() -> MatcherIndex:
    """The multi-level index of OPS4ST as the index of a `Matcher`."""
    return table_index("ops4st", lambda _: EventsTable("ops4st"))


def ops4st_standard() -> MatcherIndex:
    """OPS4ST without an index, each subscription tried on each event, for a `Matcher`."""
    return table_index("ops4st-standard", lambda _: EventsTable("ops4st-standard"))


class EventsTable:
    """Subscriptions as one of the two versions of OPS4ST keeps them.

    Parameters
    ----------
    version : "ops4st" or "ops4st-standard"
        By operator, atomic subscription and R-tree; or each on its own, tried one by one.
    """

    def __init__(self, version: Literal["ops4st", "ops4st-standard"]) -> None:
        self.index: MultiLevelIndex | StandardIndex = (
            MultiLevelIndex() if version == "ops4st" else StandardIndex()
        )
        self._slots = _Slots()
        self._entries: dict[int, _Entry] = {}
        self._free: list[int] = []
        self._numbers: dict[Hashable, list[int]] = {}  # of each subscription's entries
        self._subscribers: dict[Hashable, str] = {}

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._numbers

    def add(self, subscription: Hashable, subscriber: str, filters: Sequence[Filter]) -> None:
        """Add a subscription that is not there: a disjunction of filters."""
        self._subscribers[subscription] = subscriber
        own = self._numbers[subscription] = []
        for terms, places in _entries_of(filters):
            number = self._free.pop() if self._free else len(self._entries)
            asked, rest, places = _compiled(terms, places, self._slots)
            alternatives = tuple(Verified((place,)) for place in places)
            circle = _circle(places)
            self._entries[number] = _Entry(subscription, rest, Verified(rest), alternatives, circle)
            self.index.add(number, asked)
            own.append(number)

    def remove(self, subscription: Hashable) -> None:
        """Take out a subscription that is there."""
        del self._subscribers[subscription]
        for number in self._numbers.pop(subscription):
            del self._entries[number]
            self.index.remove(number)
            self._free.append(number)

    def match(self, event: EventValues) -> set[Any]:
        """Every subscription of which a filter holds."""
        found: set[Hashable] = set()
        holding: dict[Filter, bool] = {}
        answers = self.index.match_many(self.laid_out([event]))
        for number, sure in zip(answers.numbers.tolist(), answers.sure.tolist(), strict=True):
            entry = self._entries[number]
            if entry.subscription in found:
                continue
            if entry.rest:
                if entry.rest not in holding:
                    holding[entry.rest] = entry.verify(event)
                if not holding[entry.rest]:
                    continue
            if sure and entry.circle is not None:
                sure = _is_point(event, entry.circle)
            if sure or any(place(event) for place in entry.places):
                found.add(entry.subscription)
        return found

    def laid_out(self, events: Sequence[EventValues]) -> Events:
        """Events as `index` takes them, until other attributes are asked about."""
        return self._slots.laid_out(events)

    def subscription(self, number: int) -> Any:
        """Whose entry a number of `index` is."""
        return self._entries[number].subscription

    def match_interfaces(self, event: EventValues) -> set[str]:
        """The subscribers of those."""
        return {self._subscribers[subscription] for subscription in self.match(event)}

    def stats(self) -> Mapping[str, int]:
        """Entries, their bytes and, of the multi-level index, what is on its levels."""
        found = {"entries": len(self.index), "index_bytes": self.index.nbytes}
        if isinstance(self.index, MultiLevelIndex):
            found |= {
                "atomic_subscriptions": self.index.atomic_count,
                "trees": self.index.tree_count,
                "regions": self.index.region_count,
            }
        return found


class _Entry(NamedTuple):
    """A filter, and what of it is verified."""

    subscription: Hashable
    rest: Filter  # whatever the versions do not know
    verify: Verified  # the same
    places: tuple[Verified, ...]  # the operator, where it is not sure: one of these
    circle: str | None  # the attribute that must be all in it: sure of points only


# -------------------------------------------------------------------------------- subscriptions


def _entries_of(filters: Sequence[Filter]) -> Iterator[tuple[Filter, tuple[Term, ...]]]:
    """The filters as (terms, the operator `@` where two of them are one: its two terms)."""
    left = dict.fromkeys(map(frozenset, filters))
    for terms in filters:
        if frozenset(terms) not in left:
            continue
        del left[frozenset(terms)]
        for term in terms:
            other = _on_boundary(term)
            if other is None:
                continue
            partner = frozenset(terms) - {term} | {other}
            if partner in left:
                del left[partner]
                yield tuple(one for one in terms if one != term), (term, other)
                break
        else:
            yield terms, ()


def _on_boundary(term: Term) -> Term | None:
    """What `@` asks for beside a term: the same of its region's boundary."""
    check = term.check
    if (
        not isinstance(check, RelateCheck)
        or check.function is not SpatialFunction.S_WITHIN
        or term.negated
    ):
        return None
    shape = check.geometry.value
    if shape.geom_type not in ("Polygon", "LineString") or not _corners(shape)[1]:
        return None
    edge = boundary(shape)
    return (
        None
        if edge is None
        else Term(RelateCheck(check.column, check.function, Geometry(edge)), False)
    )


def _compiled(
    terms: Filter, places: tuple[Term, ...], slots: _Slots
) -> tuple[Asked, Filter, tuple[Term, ...]]:
    """What an index gets, what is left of the terms, and the operator's: one of them holds."""
    rest = list(terms)
    region = Region()
    if places:
        check = places[0].check
        assert isinstance(check, RelateCheck)
        region = Region(IN, slots.place(check.column), _corners(check.geometry.value)[0])
    else:
        ranked = [(rank, k) for k, term in enumerate(terms) if (rank := _rank(term)) is not None]
        if ranked:
            chosen = terms[min(ranked)[1]]
            region = _operator(chosen, slots)
            places = (chosen,)
            rest.remove(chosen)
    predicates = {term: slots.predicate(term) for term in rest}
    known = frozenset(one for one in predicates.values() if one is not None)
    left = tuple(term for term, one in predicates.items() if one is None)
    return Asked(known, region), left, places


def _circle(places: tuple[Term, ...]) -> str | None:
    """The attribute of which an operator asks for more than its nearest point."""
    for term in places:
        check = term.check
        if isinstance(check, NearCheck) and check.measure is Measure.FARTHEST:
            assert isinstance(check.column.source, Property)
            return check.column.source.name
    return None


def _is_point(event: EventValues, attribute: str) -> bool:
    shape = event.shapes(attribute)
    return shape is not None and len(shape.arrays.x) == 1


def _rank(term: Term) -> int | None:
    """Which term is taken as the operator: the least; None of one that cannot be."""
    check = term.check
    if isinstance(check, RelateCheck):
        return 1 if (check.function in _APART) == term.negated else None
    if not isinstance(check, NearCheck):
        return None
    convex = _corners(check.geometry.value)[1]
    if check.measure is Measure.CENTROIDS:
        return 0 if convex and not term.negated else None
    if not term.negated:
        return 0
    if check.measure is Measure.FARTHEST:
        return None
    return 2 if convex and (not check.strict or check.distance > 0) else None


def _operator(term: Term, slots: _Slots) -> Region:
    """The operator of a term that has a rank."""
    check = term.check
    assert isinstance(check, RelateCheck | NearCheck)
    corners, convex = _corners(check.geometry.value)
    slot = slots.place(check.column)
    if isinstance(check, RelateCheck):
        in_point = check.function is SpatialFunction.S_WITHIN and len(corners) == 1
        exact = (
            convex
            and not term.negated
            and (in_point or check.function is SpatialFunction.S_INTERSECTS)
        )
        return Region(IN if in_point else OVERLAP, slot, corners, 0.0, exact)
    if check.measure is Measure.CENTROIDS:
        return Region(SAME_PLACE, slot, corners, check.distance)
    if term.negated:
        return Region(FARTHER, slot, corners, check.distance)
    # What is in contact is not less than 0 apart, which `NEARER` does not tell from at most 0.
    exact = convex and (not check.strict or check.distance > 0)
    exact = exact and (check.measure is not Measure.FARTHEST or len(corners) == 1)
    return Region(NEARER, slot, corners, check.distance, exact)


@lru_cache(maxsize=16)
def _corners(shape: BaseGeometry) -> tuple[tuple[tuple[float, float], ...], bool]:
    """The corners of a geometry's hull, and whether it is just that."""
    points = shapely.get_coordinates(shape)
    hull = _hull(points[:, 0], points[:, 1])
    corners = tuple(zip(hull.x.tolist(), hull.y.tolist(), strict=True))
    match shape.geom_type:
        case "Point":
            return corners, True
        case "LineString":
            return corners, len(points) == 2
        case "Polygon":
            return corners, not shape.interiors and len(corners) == len(points) - 1
    return corners, False


def _hull(x: Floats, y: Floats) -> Hulls:
    points = Hulls(np.ascontiguousarray(x), np.ascontiguousarray(y), np.array([0, len(x)]))
    found: Hulls = build_hulls(points)
    return found


# --------------------------------------------------------------------------------------- events


class _Slots:
    """The attributes that subscriptions ask about, by type, and events as those."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._places: dict[str, int] = {}

    def place(self, column: Column) -> int:
        """The slot of a geometry."""
        assert isinstance(column.source, Property)
        return self._places.setdefault(column.source.name, len(self._places))

    def predicate(self, term: Term) -> Predicate | None:
        """A term as a predicate, if it is a range of numbers or equality of strings."""
        check = term.check
        if not isinstance(check.column.source, Property):
            return None
        name = check.column.source.name
        if isinstance(check, RangeCheck) and check.column.kind is ColumnKind.NUMBER:
            slot = self._numbers.setdefault(name, len(self._numbers))
            return Predicate(
                *(NUMBER, slot, term.negated, check.low, check.high),
                *(check.low_closed, check.high_closed),
            )
        if isinstance(check, MemberCheck) and len(check.strings) == 1:
            slot = self._strings.setdefault(name, len(self._strings))
            return Predicate(STRING, slot, term.negated, text=_bytes(check.strings[0]))
        return None

    def laid_out(self, events: Sequence[EventValues]) -> Events:
        """Events as both versions take them."""
        numbers = np.full((len(events), len(self._numbers), 2), np.nan)
        starts = np.zeros((len(events), len(self._strings)), np.int64)
        sizes = np.full(starts.shape, -1, np.int64)
        text = bytearray(1)  # not empty, so that the array can be written to
        state = np.zeros(len(events) * max(len(self._places), 1), np.uint8)
        places = [_NOWHERE] * len(state)
        for row, event in enumerate(events):
            for name, slot in self._numbers.items():
                number = value_types.number_of(event.get(name))
                if number is not None:
                    numbers[row, slot] = number
            for name, slot in self._strings.items():
                string = value_types.string_of(event.get(name))
                if string is not None:
                    own = _bytes(string)
                    starts[row, slot], sizes[row, slot] = len(text), len(own)
                    text += own
            for name, slot in self._places.items():
                shape = event.shapes(name)
                if shape is not None:
                    at = row * len(self._places) + slot
                    places[at], state[at] = _location(shape)
        return laid_out(
            numbers, np.frombuffer(text, np.uint8), starts, sizes, _joined(places), state
        )


def _bytes(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")


def _location(shape: Shapes) -> tuple[Hulls, int]:
    """The hull of a single shape, and whether it is just that."""
    g = shape.arrays
    kind, chains = int(g.shapes["dimension"][0]), int(g.shapes["chain"][1])
    points = int(g.chains["start"][chains])
    if points == 1:
        return Hulls(g.x[:1], g.y[:1], _ONE), HULL
    hull = _hull(g.x[:points], g.y[:points])
    convex = (
        chains == 1
        and kind != POINTS
        and (points == 2 if kind == LINES else len(hull.x) == points - 1)
    )
    return hull, HULL if convex else OTHER


_ONE = np.array([0, 1])
_NOWHERE = Hulls(np.zeros(1), np.zeros(1), _ONE)


def _joined(places: Sequence[Hulls]) -> Hulls:
    """Single hulls as rows of one."""
    if len(places) == 1:
        return places[0]
    start = np.concatenate(([0], np.cumsum([len(one.x) for one in places])))
    return Hulls(
        np.concatenate([one.x for one in places]), np.concatenate([one.y for one in places]), start
    )
