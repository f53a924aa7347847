"""Siena Fast Forwarding: which interfaces, or subscriptions, a message is forwarded to.

Konstantinidis, Carzaniga, Wolf, section 2.2 (Carzaniga and Wolf, SIGCOMM 2003, is where it comes
from): one global index of the distinct constraints of all predicates. Each attribute of a message
is looked up in it once, satisfied constraints are counted for each filter, and the first filter
that is complete forwards the message to its interface, whose other filters are then passed over.

==============  ==================================================================================
the paper       here
==============  ==================================================================================
message         an event, `EventValues`
constraint      a `Term`: (column, what is asked of it), true or, negated, false
filter          a conjunction of constraints: `filters.checks.Filter`
predicate       a disjunction of filters: a subscription
interface       whom a predicate belongs to: a name, of any number of subscriptions
type, operator  a `Family` of constraints: which index they go to, and what that is asked
==============  ==================================================================================

Where we differ: an attribute is a column of ours, so a calculation or a fold of an attribute is an
attribute too. Constraints that Siena does not know (distances, lists, relations to lines and
points) are evaluated one by one, in an index like any other; another can be plugged in for them
by `families`. `match` finds every subscription, `match_interfaces` does what the paper does.
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
    """A distinct constraint, its number, where it is kept, and in how many filters it occurs."""

    number: int
    key: tuple[Column, str]
    uses: int


class _Owners:
    """Names, and the numbers that stand for them in the counts."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._uses: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._names: list[Any] = []  # by number; a list, as it is read for every match

    def take(self, name: Hashable) -> int:
        if name not in self._numbers:
            if not self._free:
                self._free.append(len(self._names))
                self._names.append(None)
            number = self._numbers[name] = self._free.pop()
            self._names[number] = name
        self._uses[name] = self._uses.get(name, 0) + 1
        return self._numbers[name]

    def give_back(self, name: Hashable) -> None:
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
    """Predicates of interfaces, and the index of their constraints.

    Parameters
    ----------
    region_index : "cr-tree" or "list"
        How constraints on regions are kept; a list evaluates each of them for each message.
    relation : "exact" or "sampled"
        How two regions are related; sampled is Algorithm 1, between simple polygons.
    density : float
        Of Algorithm 1: samples for each unit of length.
    split : "quadratic" or "rstar"
        Of the CR-tree.
    packed : bool
        Pack the CR-tree's first constraints together, rather than insert them one by one.
    families : mapping, optional
        Indexes of your own, by the type of check whose constraints they keep.
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
            raise IndexingError(f"no region index is called {region_index!r}: 'cr-tree' or 'list'")
        if relation not in ("exact", "sampled"):
            raise IndexingError(f"no relation is called {relation!r}: 'exact' or 'sampled'")
        indexed = region_index == "cr-tree"
        chosen = density if relation == "sampled" else None
        CRTree(density=chosen, split=split)  # refuses what cannot be, before anything is added
        self._regions = Family(
            "regions",
            lambda: RegionIndex(CRTree(density=chosen, split=split, indexed=indexed), packed),
            read_column,
        )
        self._families = dict(families or {})
        self.attributes: dict[tuple[Column, str], _Attribute] = {}
        self._constraints: dict[Term, _Constraint] = {}
        self._terms: dict[int, Term] = {}
        self._free: list[int] = []
        self._counts = FilterCounts()
        self._filters: dict[Hashable, list[int]] = {}  # of each subscription
        self._interface: dict[Hashable, str] = {}
        self._subscriptions = _Owners()
        self._interfaces = _Owners()

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._filters

    @property
    def constraint_count(self) -> int:
        """The number of distinct constraints."""
        return len(self._constraints)

    def stats(self) -> Mapping[str, int]:
        """How many distinct constraints there are."""
        return {"constraints": self.constraint_count}

    def add(self, subscription: Hashable, interface: str, filters: Sequence[Filter]) -> None:
        """Add a subscription, a disjunction of filters, to an interface.

        Raises
        ------
        IndexingError
            If there is a subscription of that name.
        """
        if subscription in self._filters:
            raise IndexingError(f"there is a subscription {subscription} already")
        owner = self._subscriptions.take(subscription)
        gate = self._interfaces.take(interface)
        self._interface[subscription] = interface
        own = self._filters[subscription] = []
        for one in filters:
            constraints = [self._take(term) for term in dict.fromkeys(_one_ended(one))]
            own.append(self._counts.add(constraints, owner, gate))

    def remove(self, subscription: Hashable) -> None:
        """Take a subscription out, and constraints that no other has.

        Raises
        ------
        IndexingError
            If there is none of that name.
        """
        if subscription not in self._filters:
            raise IndexingError(f"there is no subscription {subscription}")
        for number in self._filters.pop(subscription):
            for constraint in self._counts.remove(number):
                self._give_back(constraint)
        self._subscriptions.give_back(subscription)
        self._interfaces.give_back(self._interface.pop(subscription))

    def match(self, event: EventValues) -> set[Any]:
        """Every subscription of which a filter holds, by the name it was added under."""
        return self._subscriptions.names(self._found(event, SUBSCRIPTION))

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Every interface of which a filter holds."""
        return self._interfaces.names(self._found(event, INTERFACE))

    def _found(self, event: EventValues, kind: int) -> list[int]:
        everyone = len(self._interfaces if kind == INTERFACE else self._subscriptions)
        found = self._counts.start(kind)
        for attribute in self.attributes.values():
            if found == everyone:
                break
            value = attribute.family.read(attribute.column, event)
            if value is not None:
                found = self._counts.count(attribute.index.match(value), kind, found)
        return self._counts.owners(found)

    def _family(self, term: Term) -> Family:
        check = term.check
        if type(check) in self._families:
            return self._families[type(check)]
        if isinstance(check, RangeCheck) and term.negated and _ends(check) == 2:
            return _EVALUATED
        if isinstance(check, RelateCheck) and is_area(check.geometry):
            return self._regions
        return _BASIC.get(type(check), _EVALUATED)

    def _take(self, term: Term) -> int:
        """The number of a constraint, new or known."""
        known = self._constraints.get(term)
        if known is None:
            family = self._family(term)
            key = (term.check.column, family.name)
            if key not in self.attributes:
                self.attributes[key] = _Attribute(term.check.column, family, family.make())
            number = self._free.pop() if self._free else len(self._constraints)
            self.attributes[key].index.add(number, term)
            known = self._constraints[term] = _Constraint(number, key, 0)
            self._terms[number] = term
        known.uses += 1
        return known.number

    def _give_back(self, number: int) -> None:
        term = self._terms[number]
        known = self._constraints[term]
        known.uses -= 1
        if known.uses:
            return
        index = self.attributes[known.key].index
        index.remove(number)
        if not len(index):
            del self.attributes[known.key]
        del self._constraints[term], self._terms[number]
        self._free.append(number)


def _ends(check: RangeCheck) -> int:
    """How many ends of a range say something; an equality counts as one."""
    if check.low == check.high and check.low_closed and check.high_closed:
        return 1
    open_start = check.low == UNBOUNDED_START and check.low_closed
    open_end = check.high == UNBOUNDED_END and check.high_closed
    return 2 - open_start - open_end


def _one_ended(terms: Iterable[Term]) -> Iterator[Term]:
    """The terms, each range between two ends as two constraints, as Siena has them."""
    for term in terms:
        check = term.check
        if isinstance(check, RangeCheck) and not term.negated and _ends(check) == 2:
            yield Term(replace(check, high=UNBOUNDED_END, high_closed=True), False)
            yield Term(replace(check, low=UNBOUNDED_START, low_closed=True), False)
        else:
            yield term
