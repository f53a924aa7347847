"""`ForwardingTable`: Siena Fast Forwarding, which forwards a message to the interfaces it matches.

Konstantinidis, Carzaniga, Wolf, section 2.2, after Carzaniga and Wolf, SIGCOMM 2003. One global
index holds the distinct constraints of all predicates. Each attribute of a message is looked up in
it once, and satisfied constraints are counted for each filter. The first filter whose constraints
are all satisfied forwards the message to its interface; the search then skips the other filters of
that interface.

==============  ==================================================================================
the paper       here
==============  ==================================================================================
message         an event, `EventValues`
constraint      a `Term`: a check of a column, or its negation
filter          a conjunction of constraints: `filters.checks.Filter`
predicate       a disjunction of filters: a subscription
interface       a subscriber: the name of the owner of any number of subscriptions
type, operator  a `Family` of constraints, with the index for them
==============  ==================================================================================

Differences from the paper: an attribute is a `Column`, so a calculation on an attribute is an
attribute too. Constraints that Siena does not have (distances, lists, relations to lines and
points) are in an index that evaluates each of them; `families` can replace it. `match` finds all
subscriptions, while `match_interfaces` finds the interfaces, as in the paper.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fencepost.errors import IndexingError
from fencepost.events.event_values import EventValues
from fencepost.events.value_types import UNBOUNDED_END, UNBOUNDED_START
from fencepost.filters.checks import (
    BooleanCheck,
    Check,
    Column,
    Filter,
    LikeCheck,
    MemberCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    Term,
)
from fencepost.papers.regions.constraint_counting import INTERFACE, SUBSCRIPTION, FilterCounts
from fencepost.papers.regions.constraint_indexes import (
    BooleanIndex,
    ConstraintIndex,
    EvaluatingIndex,
    Family,
    NumberIndex,
    RegionIndex,
    StringIndex,
    is_area,
)
from fencepost.papers.regions.crtree import CRTree, Split
from fencepost.papers.table_engine import read_column

_NUMBERS = Family("numbers", NumberIndex, read_column)
_STRINGS = Family("strings", StringIndex, read_column)
_BOOLEANS = Family("booleans", BooleanIndex, read_column)
_EVALUATED = Family("evaluated", EvaluatingIndex, lambda _, event: event)
_BASIC: dict[type[Check], Family] = {
    RangeCheck: _NUMBERS,
    MemberCheck: _STRINGS,
    OrderCheck: _STRINGS,
    LikeCheck: _STRINGS,
    BooleanCheck: _BOOLEANS,
    NullCheck: _BOOLEANS,
}


@dataclass(slots=True)
class _Attribute:
    """The constraints of one type on one column."""

    column: Column
    family: Family
    index: ConstraintIndex


@dataclass(slots=True)
class _Constraint:
    """A distinct constraint: its number, the key of its attribute, and its reference count."""

    number: int
    key: tuple[Column, str]
    uses: int


class _OwnerNumbers:
    """Numbers names of owners, reference-counted, for use in `FilterCounts`."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._uses: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._names: list[Any] = []  # by number

    def acquire(self, name: Hashable) -> int:
        if name not in self._numbers:
            if not self._free:
                self._free.append(len(self._names))
                self._names.append(None)
            number = self._numbers[name] = self._free.pop()
            self._names[number] = name
        self._uses[name] = self._uses.get(name, 0) + 1
        return self._numbers[name]

    def release(self, name: Hashable) -> None:
        self._uses[name] -= 1
        if not self._uses[name]:
            del self._uses[name]
            number = self._numbers.pop(name)
            self._names[number] = None
            self._free.append(number)

    def names(self, numbers: Iterable[int]) -> set[Any]:
        return set(map(self._names.__getitem__, numbers))

    def __len__(self) -> int:
        return len(self._numbers)


class ForwardingTable:
    """The predicates of interfaces, and the index of their constraints.

    Parameters
    ----------
    region_index : "cr-tree" or "list"
        The index for constraints on regions. A list evaluates each constraint for each message.
    relation : "exact" or "sampled"
        "sampled" relates simple polygons by Algorithm 1.
    density : float
        The number of samples for each unit of length, for Algorithm 1.
    split : "quadratic" or "rstar"
        How the CR-tree splits a full node.
    packed : bool
        Bulk load the first constraints of the CR-tree instead of inserting each of them.
    families : mapping, optional
        Custom indexes, by the type of check for which they hold the constraints.
    """

    def __init__(
        self,
        region_index: Literal["cr-tree", "list"] = "cr-tree",
        relation: Literal["exact", "sampled"] = "exact",
        density: float = 0.0,
        *,
        split: Split = "quadratic",
        packed: bool = False,
        families: Mapping[type[Check], Family] | None = None,
    ) -> None:
        if region_index not in ("cr-tree", "list"):
            raise IndexingError(f"region_index must be 'cr-tree' or 'list'; saw {region_index!r}")
        if relation not in ("exact", "sampled"):
            raise IndexingError(f"relation must be 'exact' or 'sampled'; saw {relation!r}")
        has_tree = region_index == "cr-tree"
        tree_density = density if relation == "sampled" else None
        CRTree(density=tree_density, split=split)  # validates the arguments before the first add
        self._regions = Family(
            "regions",
            lambda: RegionIndex(
                CRTree(density=tree_density, split=split, indexed=has_tree), packed
            ),
            read_column,
        )
        self._families = dict(families or {})
        self.attributes: dict[tuple[Column, str], _Attribute] = {}
        self._constraints: dict[Term, _Constraint] = {}
        self._terms: dict[int, Term] = {}
        self._free: list[int] = []
        self._counts = FilterCounts()
        self._filters: dict[Hashable, list[int]] = {}  # the filters of each subscription
        self._interface: dict[Hashable, str] = {}
        self._subscriptions = _OwnerNumbers()
        self._interfaces = _OwnerNumbers()

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._filters

    @property
    def constraint_count(self) -> int:
        """The number of distinct constraints."""
        return len(self._constraints)

    def stats(self) -> Mapping[str, int]:
        """Return the number of distinct constraints."""
        return {"constraints": self.constraint_count}

    def add(self, subscription: Hashable, interface: str, filters: Sequence[Filter]) -> None:
        """Add a subscription, a disjunction of filters, to an interface.

        Raises
        ------
        IndexingError
            If the subscription exists already.
        """
        if subscription in self._filters:
            raise IndexingError(f"subscription {subscription} exists already; remove it first")
        subscription_number = self._subscriptions.acquire(subscription)
        interface_number = self._interfaces.acquire(interface)
        self._interface[subscription] = interface
        filter_numbers = self._filters[subscription] = []
        for terms in filters:
            constraints = [self._acquire(term) for term in dict.fromkeys(_split_ranges(terms))]
            filter_numbers.append(
                self._counts.add(constraints, subscription_number, interface_number)
            )

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription, and the constraints that no other subscription has.

        Raises
        ------
        IndexingError
            If the subscription does not exist.
        """
        if subscription not in self._filters:
            raise IndexingError(f"there is no subscription {subscription}")
        for number in self._filters.pop(subscription):
            for constraint in self._counts.remove(number):
                self._release(constraint)
        self._subscriptions.release(subscription)
        self._interfaces.release(self._interface.pop(subscription))

    def match(self, event: EventValues) -> set[Any]:
        """Return the subscriptions with a filter that holds."""
        return self._subscriptions.names(self._matching_owners(event, SUBSCRIPTION))

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Return the interfaces with a filter that holds."""
        return self._interfaces.names(self._matching_owners(event, INTERFACE))

    def _matching_owners(self, event: EventValues, kind: int) -> list[int]:
        owner_count = len(self._interfaces if kind == INTERFACE else self._subscriptions)
        matched = self._counts.start(kind)
        for attribute in self.attributes.values():
            if matched == owner_count:
                break
            value = attribute.family.read(attribute.column, event)
            if value is not None:
                matched = self._counts.count(attribute.index.match(value), kind, matched)
        return self._counts.owners(matched)

    def _family(self, term: Term) -> Family:
        check = term.check
        if type(check) in self._families:
            return self._families[type(check)]
        if isinstance(check, RangeCheck) and term.negated and _bound_count(check) == 2:
            return _EVALUATED
        if isinstance(check, RelateCheck) and is_area(check.geometry):
            return self._regions
        return _BASIC.get(type(check), _EVALUATED)

    def _acquire(self, term: Term) -> int:
        """Return the number of a constraint; add it if it is new."""
        constraint = self._constraints.get(term)
        if constraint is None:
            family = self._family(term)
            key = (term.check.column, family.name)
            if key not in self.attributes:
                self.attributes[key] = _Attribute(term.check.column, family, family.make())
            number = self._free.pop() if self._free else len(self._constraints)
            self.attributes[key].index.add(number, term)
            constraint = self._constraints[term] = _Constraint(number, key, 0)
            self._terms[number] = term
        constraint.uses += 1
        return constraint.number

    def _release(self, number: int) -> None:
        term = self._terms[number]
        constraint = self._constraints[term]
        constraint.uses -= 1
        if constraint.uses:
            return
        index = self.attributes[constraint.key].index
        index.remove(number)
        if not len(index):
            del self.attributes[constraint.key]
        del self._constraints[term], self._terms[number]
        self._free.append(number)


def _bound_count(check: RangeCheck) -> int:
    """Return the number of bounds of a range; an equality counts as one bound."""
    if check.low == check.high and check.low_closed and check.high_closed:
        return 1
    open_start = check.low == UNBOUNDED_START and check.low_closed
    open_end = check.high == UNBOUNDED_END and check.high_closed
    return 2 - open_start - open_end


def _split_ranges(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield the terms with each range of two bounds as two constraints, as Siena has them."""
    for term in terms:
        check = term.check
        if isinstance(check, RangeCheck) and not term.negated and _bound_count(check) == 2:
            yield Term(replace(check, high=UNBOUNDED_END, high_closed=True), False)
            yield Term(replace(check, low=UNBOUNDED_START, low_closed=True), False)
        else:
            yield term
