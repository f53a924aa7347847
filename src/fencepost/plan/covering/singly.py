"""How the values that two checks of one column allow lie to each other.

For strings, booleans, distances, lists, and relations to points and lines, one pair at a time.
Ranges and relations to areas come by the thousand, and are compared in bulk (`ranges.py`,
`areas.py`).

A check of a list also takes a text, as the set of its words, if its own items are all strings. So
there are two worlds in which such checks are compared, and a check may know only one of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from fencepost.kernels.shapes import AREAS
from fencepost.language.ast import Array, Spatial, String
from fencepost.plan.checks import (
    BooleanCheck,
    Check,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    OrderCheck,
    RelateCheck,
    Term,
)
from fencepost.plan.covering.strings import Facts, compare_strings
from fencepost.plan.evaluate import literal_key
from fencepost.plan.relate import EVERY, mask

_NOTHING = Facts(False, False, False, False)
_SAME = Facts(True, True, False, False)
_STRINGS = (MemberCheck, OrderCheck, LikeCheck)
# What these ask does not depend on dimensions: a set of relations to any geometry.
_ANY_DIMENSION = {one for one in Spatial if one.name.startswith("EH_")} | {
    Spatial.S_INTERSECTS,
    Spatial.S_DISJOINT,
}


def covers_singly(first: Term, second: Term) -> bool:
    """Whether the second term of a column certainly implies the first."""
    a, b = first.check, second.check
    if isinstance(a, ListCheck) and isinstance(b, ListCheck) and _of_words(b) and not _of_words(a):
        return False  # of a text, the first is unknown
    return all(_covers(one, first.negated, second.negated) for one in _facts(a, b))


def conflicts_singly(first: Term, second: Term) -> bool:
    """Whether two terms of a column certainly cannot both be true."""
    facts = _facts(first.check, second.check)
    return all(_conflicts(one, first.negated, second.negated) for one in facts)


def _covers(facts: Facts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.a_in_b if not_b else facts.apart
    return facts.complete if not_b else facts.b_in_a


def _conflicts(facts: Facts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.complete if not_b else facts.b_in_a
    return facts.a_in_b if not_b else facts.apart


def _facts(a: Check, b: Check) -> list[Facts]:
    """What is certain about two checks of one column, in each world that both know."""
    match a, b:
        case ListCheck(), ListCheck():
            return _compare_lists(a, b)
        case BooleanCheck(), BooleanCheck():
            return [_compare_masks(_bits(a), _bits(b), 0b11)]
        case NearCheck(), NearCheck() if (a.function, a.geometry) == (b.function, b.geometry):
            never = a.strict and 0.0 in (a.distance, b.distance)  # nothing is less than 0
            return [Facts(a.distance <= b.distance, b.distance <= a.distance, never, False)]
        case RelateCheck(), RelateCheck() if a.geometry == b.geometry:
            if {a.function, b.function} <= _ANY_DIMENSION:
                return [_compare_masks(mask(a.function, AREAS), mask(b.function, AREAS), EVERY)]
    if isinstance(a, _STRINGS) and isinstance(b, _STRINGS):
        return [compare_strings(a, b)]
    return [_SAME if a == b else _NOTHING]


def _compare_masks(a: int, b: int, every: int) -> Facts:
    return Facts(not a & ~b, not b & ~a, not a & b, a | b == every)


def _bits(check: BooleanCheck) -> int:
    return check.allows_false | check.allows_true << 1


# ------------------------------------------------------------------------------------------ lists


class _Listed(NamedTuple):
    """A condition on a set: its function, and the items of the literal."""

    function: Array
    items: frozenset[Hashable]

    @property
    def is_none(self) -> bool:
        """Whether this asks nothing of a set."""
        return not self.items and self.function in (Array.A_CONTAINS, Array.A_OVERLAPS)


def _of_words(check: ListCheck) -> bool:
    """Whether a check takes a text."""
    return all(isinstance(item, String) for item in check.items.items)


def item_keys(check: ListCheck) -> frozenset[bytes]:
    """The items of a literal list, as they are compared with those of an event's list."""
    return frozenset(literal_key(item) for item in check.items.items)


def _words(check: ListCheck) -> frozenset[str]:
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    return frozenset(check.tokeniser.keywords(strings))


def _compare_lists(a: ListCheck, b: ListCheck) -> list[Facts]:
    found = [_compare_sets(_Listed(a.function, item_keys(a)), _Listed(b.function, item_keys(b)))]
    if _of_words(a) and _of_words(b):
        words = _Listed(a.function, _words(a)), _Listed(b.function, _words(b))
        found.append(_compare_sets(*words))
    return found


def _compare_sets(a: _Listed, b: _Listed) -> Facts:
    return Facts(
        _implies(a, b), _implies(b, a), _excludes(a, b) or _excludes(b, a), a.is_none or b.is_none
    )


def _implies(a: _Listed, b: _Listed) -> bool:
    """Whether every set that satisfies `a` satisfies `b`."""
    if b.is_none or a == b:
        return True
    has_all = a.function in (Array.A_CONTAINS, Array.A_EQUALS)
    match b.function:
        case Array.A_CONTAINS:
            return has_all and b.items <= a.items
        case Array.A_CONTAINEDBY:
            return a.function in (Array.A_CONTAINEDBY, Array.A_EQUALS) and a.items <= b.items
        case Array.A_OVERLAPS:
            if a.function is Array.A_OVERLAPS:
                return bool(a.items) and a.items <= b.items
            return has_all and bool(a.items & b.items)
    return False


def _excludes(a: _Listed, b: _Listed) -> bool:
    """Whether no set can satisfy both; b is the one that bounds the set, if one does."""
    if b.function is Array.A_EQUALS:
        return not _holds(a, b.items)
    if b.function is Array.A_CONTAINEDBY:
        if a.function is Array.A_CONTAINS:
            return not a.items <= b.items
        return a.function is Array.A_OVERLAPS and bool(a.items) and not a.items & b.items
    return False


def _holds(listed: _Listed, items: frozenset[Hashable]) -> bool:
    match listed.function:
        case Array.A_CONTAINS:
            return items >= listed.items
        case Array.A_CONTAINEDBY:
            return items <= listed.items
        case Array.A_EQUALS:
            return items == listed.items
    return not listed.items or bool(items & listed.items)
