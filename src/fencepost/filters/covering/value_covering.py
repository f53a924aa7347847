"""`pair_covers` and `pair_conflicts` compare the sets of values that two checks allow.

Both checks are of one column: of strings, booleans, distances, lists, or relations to points and
lines. They are compared one pair at a time. Ranges and relations to areas come by the thousand and
are compared in bulk (`term_covering.py`, `area_covering.py`).

A check of a list whose items are all strings accepts a text as well, as the set of its words. Two
such checks are compared twice: as checks of lists, and as checks of texts.

A check of strings allows the members of a set, the strings on one side of a bound, or the strings
that match a pattern. Whether one of these sets includes another follows from testing the members,
from comparing the bounds, or from matching a pattern against the other. A result is True only if it
is certain.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from fencepost.cql2.ast import ArrayFunction, ComparisonOp, SpatialFunction, String
from fencepost.filters.checks import (
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
from fencepost.filters.evaluation import literal_key, matches_pattern
from fencepost.filters.spatial_relations import ALL_RELATIONS, relation_mask
from fencepost.kernels.geometry.shape_arrays import AREAS
from fencepost.kernels.text.like import ANY_CHARACTER, ANY_RUN, compile_pattern


class SetFacts(NamedTuple):
    """Certain facts about two sets a and b of values of a column."""

    a_in_b: bool
    b_in_a: bool
    apart: bool  # no value is in both
    complete: bool  # every value is in a or in b

    def converse(self) -> SetFacts:
        """Return the facts about b and a."""
        return SetFacts(self.b_in_a, self.a_in_b, self.apart, self.complete)


class Ray(NamedTuple):
    """The strings on one side of a cut: just before a bound (0) or just after it (1)."""

    below: bool
    cut: tuple[str, int]


class LikePattern(NamedTuple):
    """The strings that match a pattern; its symbols are characters, `ANY_RUN`, `ANY_CHARACTER`."""

    pattern: str
    symbols: tuple[str | int, ...]

    @property
    def start(self) -> str:
        """The characters before the first wildcard, with which all these strings begin."""
        return "".join(self.symbols[: _literal_length(self.symbols)])  # type: ignore[arg-type]


Members: TypeAlias = frozenset[str]
Strings: TypeAlias = Members | Ray | LikePattern
StringCheck: TypeAlias = MemberCheck | OrderCheck | LikeCheck

_CUTS = {
    ComparisonOp.LT: (True, 0),
    ComparisonOp.LE: (True, 1),
    ComparisonOp.GT: (False, 1),
    ComparisonOp.GE: (False, 0),
}


def strings_of(check: StringCheck) -> Strings:
    """Return the strings that a check allows."""
    if isinstance(check, MemberCheck):
        return frozenset(check.strings)
    if isinstance(check, OrderCheck):
        below, side = _CUTS[check.op]
        if below and not check.bound:
            return frozenset([""][:side])  # nothing is before the empty string
        return Ray(below, (check.bound, side))
    symbols = _symbols(check.pattern)
    if _literal_length(symbols) == len(symbols):
        return frozenset(["".join(symbols)])  # type: ignore[arg-type]
    return LikePattern(check.pattern, symbols)


def is_everything(strings: Strings) -> bool:
    """Return whether a set has all strings."""
    return strings == Ray(False, ("", 0)) or (
        isinstance(strings, LikePattern) and strings.symbols == (ANY_RUN,)
    )


def compare_strings(first: StringCheck, second: StringCheck) -> SetFacts:
    """Return the facts about the sets of strings that two checks allow."""
    a, b = strings_of(first), strings_of(second)
    a_is_all, b_is_all = is_everything(a), is_everything(b)
    if a_is_all or b_is_all:
        nothing = frozenset[str]() in (a, b)
        return SetFacts(b_is_all, a_is_all, nothing, True)
    if isinstance(a, frozenset):
        if isinstance(b, frozenset):
            return SetFacts(a <= b, b <= a, not a & b, False)
        inside = [_holds(b, member) for member in a]
        return SetFacts(all(inside), False, not any(inside), False)
    if isinstance(b, frozenset):
        return compare_strings(second, first).converse()
    if isinstance(a, LikePattern):
        return _compare_patterns(a, b) if isinstance(b, LikePattern) else _compare_to_ray(a, b)
    if isinstance(b, LikePattern):
        return compare_strings(second, first).converse()
    return _compare_rays(a, b)


def _holds(strings: Ray | LikePattern, text: str) -> bool:
    if isinstance(strings, LikePattern):
        return matches_pattern(strings.pattern, text)
    return strings.below == ((text, 0) < strings.cut)


def _compare_rays(a: Ray, b: Ray) -> SetFacts:
    if a.below == b.below:
        short, long = (a, b) if a.below else (b, a)
        return SetFacts(short.cut <= long.cut, long.cut <= short.cut, False, False)
    low, high = (a, b) if a.below else (b, a)
    return SetFacts(False, False, low.cut <= high.cut, low.cut >= high.cut)


def _compare_to_ray(pattern: LikePattern, ray: Ray) -> SetFacts:
    """Compare a pattern with a ray, as the interval of strings that begin with its prefix."""
    bound, side = ray.cut
    before = pattern.start < bound and not bound.startswith(pattern.start)
    after = pattern.start > bound or (pattern.start == bound and side == 0)
    return (
        SetFacts(before, False, after, False)
        if ray.below
        else SetFacts(after, False, before, False)
    )


def _compare_patterns(a: LikePattern, b: LikePattern) -> SetFacts:
    disjoint = _are_disjoint(a.symbols, b.symbols) or _are_disjoint(
        a.symbols[::-1], b.symbols[::-1]
    )
    return SetFacts(
        _includes(b.symbols, a.symbols), _includes(a.symbols, b.symbols), disjoint, False
    )


def _includes(pattern: Sequence[str | int], other: Sequence[str | int]) -> bool:
    """Return whether a pattern matches another pattern, read as a text.

    If so, every string that matches the other matches the pattern.
    """
    positions = {0}
    for symbol in pattern:
        if not positions:
            return False
        if symbol == ANY_RUN:
            positions = set(range(min(positions), len(other) + 1))
        else:
            positions = {
                position + 1
                for position in positions
                if position < len(other)
                and (
                    other[position] != ANY_RUN
                    if symbol == ANY_CHARACTER
                    else other[position] == symbol
                )
            }
    return len(other) in positions


def _are_disjoint(a: Sequence[str | int], b: Sequence[str | int]) -> bool:
    """Return whether two patterns, compared from the start, certainly match no common string."""
    for symbol_a, symbol_b in zip(a, b, strict=False):
        if ANY_RUN in (symbol_a, symbol_b):
            return False
        if ANY_CHARACTER not in (symbol_a, symbol_b) and symbol_a != symbol_b:
            return True
    longer = a if len(a) > len(b) else b
    return any(symbol != ANY_RUN for symbol in longer[min(len(a), len(b)) :])


def _literal_length(symbols: Sequence[str | int]) -> int:
    """Return the number of characters before the first wildcard."""
    return next((k for k, symbol in enumerate(symbols) if isinstance(symbol, int)), len(symbols))


@lru_cache(4096)
def _symbols(pattern: str) -> tuple[str | int, ...]:
    """Return the characters of a pattern, with its wildcards as numbers."""
    symbols: list[str | int] = []
    plain = bytearray()
    for byte in (*compile_pattern(pattern), None):
        if byte in (ANY_RUN, ANY_CHARACTER, None):
            symbols += plain.decode("utf-8", "surrogatepass")
            plain.clear()
            if byte is not None:
                symbols.append(byte)
        else:
            plain.append(byte)
    return tuple(symbols)


_NO_FACTS = SetFacts(False, False, False, False)
_EQUAL = SetFacts(True, True, False, False)
_STRINGS = (MemberCheck, OrderCheck, LikeCheck)
# Functions that accept the same relations whatever the dimensions of the geometries.
_ANY_DIMENSION = {f for f in SpatialFunction if f.name.startswith("EH_")} | {
    SpatialFunction.S_INTERSECTS,
    SpatialFunction.S_DISJOINT,
}


def pair_covers(first: Term, second: Term) -> bool:
    """Return whether the second term of a column certainly implies the first."""
    a, b = first.check, second.check
    if (
        isinstance(a, ListCheck)
        and isinstance(b, ListCheck)
        and _takes_text(b)
        and not _takes_text(a)
    ):
        return False  # the first term is unknown for a text
    return all(_covers(facts, first.negated, second.negated) for facts in _facts(a, b))


def pair_conflicts(first: Term, second: Term) -> bool:
    """Return whether two terms of a column certainly cannot both be true."""
    return all(
        _conflicts(facts, first.negated, second.negated)
        for facts in _facts(first.check, second.check)
    )


def _covers(facts: SetFacts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.a_in_b if not_b else facts.apart
    return facts.complete if not_b else facts.b_in_a


def _conflicts(facts: SetFacts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.complete if not_b else facts.b_in_a
    return facts.a_in_b if not_b else facts.apart


def _facts(a: Check, b: Check) -> list[SetFacts]:
    """Return the facts about two checks of one column.

    Two checks of lists have facts about lists, and about texts if both accept texts.
    """
    match a, b:
        case ListCheck(), ListCheck():
            return _compare_lists(a, b)
        case BooleanCheck(), BooleanCheck():
            return [_compare_masks(_bits(a), _bits(b), 0b11)]
        case NearCheck(), NearCheck() if (a.function, a.geometry) == (b.function, b.geometry):
            never = a.strict and 0.0 in (a.distance, b.distance)  # nothing is less than 0
            return [SetFacts(a.distance <= b.distance, b.distance <= a.distance, never, False)]
        case RelateCheck(), RelateCheck() if a.geometry == b.geometry:
            if {a.function, b.function} <= _ANY_DIMENSION:
                return [
                    _compare_masks(
                        relation_mask(a.function, AREAS),
                        relation_mask(b.function, AREAS),
                        ALL_RELATIONS,
                    )
                ]
    if isinstance(a, _STRINGS) and isinstance(b, _STRINGS):
        return [compare_strings(a, b)]
    return [_EQUAL if a == b else _NO_FACTS]


def _compare_masks(a: int, b: int, every: int) -> SetFacts:
    return SetFacts(not a & ~b, not b & ~a, not a & b, a | b == every)


def _bits(check: BooleanCheck) -> int:
    return check.allows_false | check.allows_true << 1


# ------------------------------------------------------------------------------------------ lists


class _ListCondition(NamedTuple):
    """A condition on a set: a function and the items of the literal list."""

    function: ArrayFunction
    items: frozenset[Hashable]

    @property
    def is_trivial(self) -> bool:
        """Whether every set satisfies the condition."""
        return not self.items and self.function in (
            ArrayFunction.A_CONTAINS,
            ArrayFunction.A_OVERLAPS,
        )


def _takes_text(check: ListCheck) -> bool:
    """Return whether a check accepts a text."""
    return all(isinstance(item, String) for item in check.items.items)


def item_keys(check: ListCheck) -> frozenset[bytes]:
    """Return the keys by which the items of a literal list are compared with an event's items."""
    return frozenset(literal_key(item) for item in check.items.items)


def _words(check: ListCheck) -> frozenset[str]:
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    return frozenset(check.tokenizer.keywords(strings))


def _compare_lists(a: ListCheck, b: ListCheck) -> list[SetFacts]:
    facts = [
        _compare_sets(
            _ListCondition(a.function, item_keys(a)), _ListCondition(b.function, item_keys(b))
        )
    ]
    if _takes_text(a) and _takes_text(b):
        words = _ListCondition(a.function, _words(a)), _ListCondition(b.function, _words(b))
        facts.append(_compare_sets(*words))
    return facts


def _compare_sets(a: _ListCondition, b: _ListCondition) -> SetFacts:
    return SetFacts(
        _implies(a, b),
        _implies(b, a),
        _excludes(a, b) or _excludes(b, a),
        a.is_trivial or b.is_trivial,
    )


def _implies(a: _ListCondition, b: _ListCondition) -> bool:
    """Return whether every set that satisfies `a` satisfies `b`."""
    if b.is_trivial or a == b:
        return True
    has_all = a.function in (ArrayFunction.A_CONTAINS, ArrayFunction.A_EQUALS)
    match b.function:
        case ArrayFunction.A_CONTAINS:
            return has_all and b.items <= a.items
        case ArrayFunction.A_CONTAINEDBY:
            return (
                a.function in (ArrayFunction.A_CONTAINEDBY, ArrayFunction.A_EQUALS)
                and a.items <= b.items
            )
        case ArrayFunction.A_OVERLAPS:
            if a.function is ArrayFunction.A_OVERLAPS:
                return bool(a.items) and a.items <= b.items
            return has_all and bool(a.items & b.items)
    return False


def _excludes(a: _ListCondition, b: _ListCondition) -> bool:
    """Return whether no set satisfies both; True is certain only if `b` bounds the set."""
    if b.function is ArrayFunction.A_EQUALS:
        return not _is_satisfied_by(a, b.items)
    if b.function is ArrayFunction.A_CONTAINEDBY:
        if a.function is ArrayFunction.A_CONTAINS:
            return not a.items <= b.items
        return a.function is ArrayFunction.A_OVERLAPS and bool(a.items) and not a.items & b.items
    return False


def _is_satisfied_by(condition: _ListCondition, items: frozenset[Hashable]) -> bool:
    match condition.function:
        case ArrayFunction.A_CONTAINS:
            return items >= condition.items
        case ArrayFunction.A_CONTAINEDBY:
            return items <= condition.items
        case ArrayFunction.A_EQUALS:
            return items == condition.items
    return not condition.items or bool(items & condition.items)
