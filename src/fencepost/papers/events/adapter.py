"""Both versions of OPS4ST as indexes of a `Matcher`.

Each filter becomes an entry of the index: predicates, which are ranges of numbers and equality of
strings, and at most one operator with a convex region. The two filters into which `@` is
translated, one for the boundary of its region, become one entry again. A region that is not convex
is replaced by its hull, and a relation that implies contact by `OVLP`.

A match is verified where the index cannot decide it: for such replacements, for all other terms
(equal terms once for each event), for event geometries that differ from their hulls, and for
distances within rounding error of their bound.
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
    Events,
    Floats,
    LocationSubscription,
    Predicate,
    Region,
    make_events,
)
from fencepost.papers.events.standard import StandardIndex
from fencepost.papers.table_engine import TermVerifier, table_index

_DISJOINT_FUNCTIONS = (SpatialFunction.S_DISJOINT, SpatialFunction.EH_DISJOINT)


def ops4st() -> MatcherIndex:
    """Return the optimised version, with its multi-level index, as an index for `Matcher`."""
    return table_index("ops4st", lambda _: EventsTable("ops4st"))


def ops4st_standard() -> MatcherIndex:
    """Return the standard version, which evaluates each subscription, as an index for `Matcher`."""
    return table_index("ops4st-standard", lambda _: EventsTable("ops4st-standard"))


class EventsTable:
    """The subscriptions of a matcher, in one of the two versions of OPS4ST.

    Parameters
    ----------
    version : "ops4st" or "ops4st-standard"
        The optimised version, or the standard version.
    """

    def __init__(self, version: Literal["ops4st", "ops4st-standard"]) -> None:
        self.index: MultiLevelIndex | StandardIndex = (
            MultiLevelIndex() if version == "ops4st" else StandardIndex()
        )
        self._slots = _SlotRegistry()
        self._entries: dict[int, _Entry] = {}
        self._free: list[int] = []
        self._numbers: dict[Hashable, list[int]] = {}  # the entries of each subscription
        self._subscribers: dict[Hashable, str] = {}

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._numbers

    def add(self, subscription: Hashable, subscriber: str, filters: Sequence[Filter]) -> None:
        """Add a subscription, a disjunction of filters; the table must not contain it."""
        self._subscribers[subscription] = subscriber
        numbers = self._numbers[subscription] = []
        for terms, boundary_pair in _entries_of(filters):
            number = self._free.pop() if self._free else len(self._entries)
            compiled, other_terms, operator_terms = _compile(terms, boundary_pair, self._slots)
            self._entries[number] = _Entry(
                subscription,
                other_terms,
                TermVerifier(other_terms),
                tuple(TermVerifier((term,)) for term in operator_terms),
                _circle_attribute(operator_terms),
            )
            self.index.add(number, compiled)
            numbers.append(number)

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription; the table must contain it."""
        del self._subscribers[subscription]
        for number in self._numbers.pop(subscription):
            del self._entries[number]
            self.index.remove(number)
            self._free.append(number)

    def match(self, event: EventValues) -> set[Any]:
        """Return the subscriptions with a filter that holds."""
        matches: set[Hashable] = set()
        verified: dict[Filter, bool] = {}
        candidates = self.index.match_many(self.encode_events([event]))
        for number, sure in zip(candidates.numbers.tolist(), candidates.sure.tolist(), strict=True):
            entry = self._entries[number]
            if entry.subscription in matches:
                continue
            if entry.other_terms:
                if entry.other_terms not in verified:
                    verified[entry.other_terms] = entry.other_terms_hold(event)
                if not verified[entry.other_terms]:
                    continue
            if sure and entry.circle is not None:
                sure = _is_point(event, entry.circle)
            if sure or any(holds(event) for holds in entry.operator_holds):
                matches.add(entry.subscription)
        return matches

    def encode_events(self, events: Sequence[EventValues]) -> Events:
        """Return events in the form that `index` matches.

        They are valid until a subscription with a new attribute is added.
        """
        return self._slots.encode_events(events)

    def subscription(self, number: int) -> Any:
        """Return the subscription of an entry of `index`."""
        return self._entries[number].subscription

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Return the subscribers of the matching subscriptions."""
        return {self._subscribers[subscription] for subscription in self.match(event)}

    def stats(self) -> Mapping[str, int]:
        """Return the number of entries, their size, and the counts of the multi-level index."""
        counts = {"entries": len(self.index), "index_bytes": self.index.nbytes}
        if isinstance(self.index, MultiLevelIndex):
            counts |= {
                "atomic_subscriptions": self.index.atomic_count,
                "trees": self.index.tree_count,
                "regions": self.index.region_count,
            }
        return counts


class _Entry(NamedTuple):
    """A filter, with verifiers for the parts that the index does not decide."""

    subscription: Hashable
    other_terms: Filter  # terms that are not in the index
    other_terms_hold: TermVerifier
    operator_holds: tuple[TermVerifier, ...]  # any of them must hold if a match is not sure
    # The attribute that must lie in a circle as a whole; the index is sure of points only.
    circle: str | None


# -------------------------------------------------------------------------------- subscriptions


def _entries_of(filters: Sequence[Filter]) -> Iterator[tuple[Filter, tuple[Term, ...]]]:
    """Yield filters with the two terms of their operator `@`, or with () if they have none.

    The two filters of an operator `@` are yielded as one, without these terms.
    """
    remaining = dict.fromkeys(map(frozenset, filters))
    for terms in filters:
        if frozenset(terms) not in remaining:
            continue
        del remaining[frozenset(terms)]
        for term in terms:
            boundary_term = _boundary_term(term)
            if boundary_term is None:
                continue
            partner = frozenset(terms) - {term} | {boundary_term}
            if partner in remaining:
                del remaining[partner]
                yield tuple(kept for kept in terms if kept != term), (term, boundary_term)
                break
        else:
            yield terms, ()


def _boundary_term(term: Term) -> Term | None:
    """Return the other term of an operator `@`: S_WITHIN the boundary of the term's region."""
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


def _compile(
    terms: Filter, operator_terms: tuple[Term, ...], slots: _SlotRegistry
) -> tuple[LocationSubscription, Filter, tuple[Term, ...]]:
    """Return the entry for the index, the terms it lacks, and the alternatives of its operator."""
    other_terms = list(terms)
    region = Region()
    if operator_terms:
        check = operator_terms[0].check
        assert isinstance(check, RelateCheck)
        region = Region(IN, slots.geometry(check.column), _corners(check.geometry.value)[0])
    else:
        ranked = [(rank, k) for k, term in enumerate(terms) if (rank := _rank(term)) is not None]
        if ranked:
            chosen = terms[min(ranked)[1]]
            region = _operator(chosen, slots)
            operator_terms = (chosen,)
            other_terms.remove(chosen)
    predicates = {term: slots.predicate(term) for term in other_terms}
    known_predicates = frozenset(
        predicate for predicate in predicates.values() if predicate is not None
    )
    unknown_terms = tuple(term for term, predicate in predicates.items() if predicate is None)
    return LocationSubscription(known_predicates, region), unknown_terms, operator_terms


def _circle_attribute(operator_terms: tuple[Term, ...]) -> str | None:
    """Return the attribute that must lie in a circle as a whole, if there is one."""
    for term in operator_terms:
        check = term.check
        if isinstance(check, NearCheck) and check.measure is Measure.FARTHEST:
            assert isinstance(check.column.source, Property)
            return check.column.source.name
    return None


def _is_point(event: EventValues, attribute: str) -> bool:
    shape = event.shapes(attribute)
    return shape is not None and len(shape.arrays.x) == 1


def _rank(term: Term) -> int | None:
    """Return how well a term serves as the operator, 0 for the best; None if it cannot."""
    check = term.check
    if isinstance(check, RelateCheck):
        return 1 if (check.function in _DISJOINT_FUNCTIONS) == term.negated else None
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


def _operator(term: Term, slots: _SlotRegistry) -> Region:
    """Return the operator of a term that has a rank."""
    check = term.check
    assert isinstance(check, RelateCheck | NearCheck)
    corners, convex = _corners(check.geometry.value)
    slot = slots.geometry(check.column)
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
    # NEARER means <=, which differs from < for distance 0: contact is not less than 0 apart.
    exact = convex and (not check.strict or check.distance > 0)
    exact = exact and (check.measure is not Measure.FARTHEST or len(corners) == 1)
    return Region(NEARER, slot, corners, check.distance, exact)


@lru_cache(maxsize=16)
def _corners(shape: BaseGeometry) -> tuple[tuple[tuple[float, float], ...], bool]:
    """Return the corners of a geometry's hull, and whether the geometry equals its hull."""
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
    hull: Hulls = build_hulls(points)
    return hull


# --------------------------------------------------------------------------------------- events


class _SlotRegistry:
    """Gives slots to the attributes of subscriptions, and encodes the attributes of events."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._geometries: dict[str, int] = {}

    def geometry(self, column: Column) -> int:
        """Return the slot of a geometry."""
        assert isinstance(column.source, Property)
        return self._geometries.setdefault(column.source.name, len(self._geometries))

    def predicate(self, term: Term) -> Predicate | None:
        """Return the predicate of a term that is a range of numbers or equality of strings."""
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

    def encode_events(self, events: Sequence[EventValues]) -> Events:
        """Return events in the form that both versions match."""
        numbers = np.full((len(events), len(self._numbers), 2), np.nan)
        starts = np.zeros((len(events), len(self._strings)), np.int64)
        sizes = np.full(starts.shape, -1, np.int64)
        text = bytearray(1)  # not empty, so that the array can be written to
        state = np.zeros(len(events) * max(len(self._geometries), 1), np.uint8)
        hulls = [_NOWHERE] * len(state)
        for row, event in enumerate(events):
            for name, slot in self._numbers.items():
                number = value_types.number_of(event.get(name))
                if number is not None:
                    numbers[row, slot] = number
            for name, slot in self._strings.items():
                string = value_types.string_of(event.get(name))
                if string is not None:
                    encoded = _bytes(string)
                    starts[row, slot], sizes[row, slot] = len(text), len(encoded)
                    text += encoded
            for name, slot in self._geometries.items():
                shape = event.shapes(name)
                if shape is not None:
                    at = row * len(self._geometries) + slot
                    hulls[at], state[at] = _hull_and_state(shape)
        return make_events(
            numbers, np.frombuffer(text, np.uint8), starts, sizes, _concatenate(hulls), state
        )


def _bytes(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")


def _hull_and_state(shape: Shapes) -> tuple[Hulls, int]:
    """Return the hull of a single shape, and HULL or OTHER."""
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


def _concatenate(hulls: Sequence[Hulls]) -> Hulls:
    """Return single hulls as the rows of one `Hulls`."""
    if len(hulls) == 1:
        return hulls[0]
    start = np.concatenate(([0], np.cumsum([len(hull.x) for hull in hulls])))
    return Hulls(
        np.concatenate([hull.x for hull in hulls]),
        np.concatenate([hull.y for hull in hulls]),
        start,
    )
