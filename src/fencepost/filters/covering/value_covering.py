"""How the values that two checks of one column allow lie to each other.

For strings, booleans, distances, lists, and relations to points and lines, one pair at a time.
Ranges and relations to areas come by the thousand, and are compared in bulk (`terms.py`,
`areas.py`).

A check of a list also takes a text, as the set of its words, if its own items are all strings. So
there are two worlds in which such checks are compared, and a check may know only one of them.

A check of strings allows some members, all on one side of a bound, or all of a form. Whether one
of these holds another follows from trying the members, from the bounds, or from laying one form
over the other. What is not certain is False.
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
    """What is certain about two sets a and b of the values that a column can have."""

    a_in_b: bool
    b_in_a: bool
    apart: bool  # no value is in both
    complete: bool  # every value is in one of them

    def turned(self) -> SetFacts:
        """The same about b and a."""
        return SetFacts(self.b_in_a, self.a_in_b, self.apart, self.complete)


class Ray(NamedTuple):
    """The strings on one side of a cut: just before a bound (0) or just after it (1)."""

    below: bool
    cut: tuple[str, int]


class LikePattern(NamedTuple):
    """The strings that fit a pattern: characters, `ANY_RUN` and `ANY_CHARACTER`."""

    pattern: str
    symbols: tuple[str | int, ...]

    @property
    def start(self) -> str:
        """What all of them begin with."""
        return "".join(self.symbols[: _plain_length(self.symbols)])  # type: ignore[arg-type]


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
    """The strings that a check allows."""
    if isinstance(check, MemberCheck):
        return frozenset(check.strings)
    if isinstance(check, OrderCheck):
        below, side = _CUTS[check.op]
        if below and not check.bound:
            return frozenset([""][:side])  # nothing is before the empty string
        return Ray(below, (check.bound, side))
    symbols = _symbols(check.pattern)
    if _plain_length(symbols) == len(symbols):
        return frozenset(["".join(symbols)])  # type: ignore[arg-type]
    return LikePattern(check.pattern, symbols)


def is_everything(strings: Strings) -> bool:
    """Whether all strings are in a set."""
    return strings == Ray(False, ("", 0)) or (
        isinstance(strings, LikePattern) and strings.symbols == (ANY_RUN,)
    )


def compare_strings(first: StringCheck, second: StringCheck) -> SetFacts:
    """What is certain about the strings that two checks allow."""
    a, b = strings_of(first), strings_of(second)
    every_a, every_b = is_everything(a), is_everything(b)
    if every_a or every_b:
        nothing = frozenset[str]() in (a, b)
        return SetFacts(every_b, every_a, nothing, True)
    if isinstance(a, frozenset):
        if isinstance(b, frozenset):
            return SetFacts(a <= b, b <= a, not a & b, False)
        inside = [_holds(b, member) for member in a]
        return SetFacts(all(inside), False, not any(inside), False)
    if isinstance(b, frozenset):
        return compare_strings(second, first).turned()
    if isinstance(a, LikePattern):
        return _compare_forms(a, b) if isinstance(b, LikePattern) else _compare_to_ray(a, b)
    if isinstance(b, LikePattern):
        return compare_strings(second, first).turned()
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


def _compare_to_ray(form: LikePattern, ray: Ray) -> SetFacts:
    """A form lies in the stretch of strings that begin as it does."""
    bound, side = ray.cut
    before = form.start < bound and not bound.startswith(form.start)
    after = form.start > bound or (form.start == bound and side == 0)
    return (
        SetFacts(before, False, after, False)
        if ray.below
        else SetFacts(after, False, before, False)
    )


def _compare_forms(a: LikePattern, b: LikePattern) -> SetFacts:
    clash = _clash(a.symbols, b.symbols) or _clash(a.symbols[::-1], b.symbols[::-1])
    return SetFacts(_fits(b.symbols, a.symbols), _fits(a.symbols, b.symbols), clash, False)


def _fits(form: Sequence[str | int], other: Sequence[str | int]) -> bool:
    """Whether a form takes another in as if it were a text, and with it all that fits it."""
    places = {0}
    for symbol in form:
        if not places:
            return False
        if symbol == ANY_RUN:
            places = set(range(min(places), len(other) + 1))
        else:
            places = {
                place + 1
                for place in places
                if place < len(other)
                and (other[place] != ANY_RUN if symbol == ANY_CHARACTER else other[place] == symbol)
            }
    return len(other) in places


def _clash(a: Sequence[str | int], b: Sequence[str | int]) -> bool:
    """Whether two forms differ in a character that both fix, counted from the start."""
    for one, other in zip(a, b, strict=False):
        if ANY_RUN in (one, other):
            return False
        if ANY_CHARACTER not in (one, other) and one != other:
            return True
    longer = a if len(a) > len(b) else b
    return any(symbol != ANY_RUN for symbol in longer[min(len(a), len(b)) :])


def _plain_length(symbols: Sequence[str | int]) -> int:
    """How many characters come before the first that stands for others."""
    return next((k for k, symbol in enumerate(symbols) if isinstance(symbol, int)), len(symbols))


@lru_cache(4096)
def _symbols(pattern: str) -> tuple[str | int, ...]:
    """The characters of a pattern, with its wildcards as numbers."""
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


_NOTHING = SetFacts(False, False, False, False)
_SAME = SetFacts(True, True, False, False)
_STRINGS = (MemberCheck, OrderCheck, LikeCheck)
# What these ask does not depend on dimensions: a set of relations to any geometry.
_ANY_DIMENSION = {one for one in SpatialFunction if one.name.startswith("EH_")} | {
    SpatialFunction.S_INTERSECTS,
    SpatialFunction.S_DISJOINT,
}


def pair_covers(first: Term, second: Term) -> bool:
    """Whether the second term of a column certainly implies the first."""
    a, b = first.check, second.check
    if isinstance(a, ListCheck) and isinstance(b, ListCheck) and _of_words(b) and not _of_words(a):
        return False  # of a text, the first is unknown
    return all(_covers(one, first.negated, second.negated) for one in _facts(a, b))


def pair_conflicts(first: Term, second: Term) -> bool:
    """Whether two terms of a column certainly cannot both be true."""
    facts = _facts(first.check, second.check)
    return all(_conflicts(one, first.negated, second.negated) for one in facts)


def _covers(facts: SetFacts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.a_in_b if not_b else facts.apart
    return facts.complete if not_b else facts.b_in_a


def _conflicts(facts: SetFacts, not_a: bool, not_b: bool) -> bool:
    if not_a:
        return facts.complete if not_b else facts.b_in_a
    return facts.a_in_b if not_b else facts.apart


def _facts(a: Check, b: Check) -> list[SetFacts]:
    """What is certain about two checks of one column, in each world that both know."""
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
    return [_SAME if a == b else _NOTHING]


def _compare_masks(a: int, b: int, every: int) -> SetFacts:
    return SetFacts(not a & ~b, not b & ~a, not a & b, a | b == every)


def _bits(check: BooleanCheck) -> int:
    return check.allows_false | check.allows_true << 1


# ------------------------------------------------------------------------------------------ lists


class _Listed(NamedTuple):
    """A condition on a set: its function, and the items of the literal."""

    function: ArrayFunction
    items: frozenset[Hashable]

    @property
    def is_none(self) -> bool:
        """Whether this asks nothing of a set."""
        return not self.items and self.function in (
            ArrayFunction.A_CONTAINS,
            ArrayFunction.A_OVERLAPS,
        )


def _of_words(check: ListCheck) -> bool:
    """Whether a check takes a text."""
    return all(isinstance(item, String) for item in check.items.items)


def item_keys(check: ListCheck) -> frozenset[bytes]:
    """The items of a literal list, as they are compared with those of an event's list."""
    return frozenset(literal_key(item) for item in check.items.items)


def _words(check: ListCheck) -> frozenset[str]:
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    return frozenset(check.tokenizer.keywords(strings))


def _compare_lists(a: ListCheck, b: ListCheck) -> list[SetFacts]:
    found = [_compare_sets(_Listed(a.function, item_keys(a)), _Listed(b.function, item_keys(b)))]
    if _of_words(a) and _of_words(b):
        words = _Listed(a.function, _words(a)), _Listed(b.function, _words(b))
        found.append(_compare_sets(*words))
    return found


def _compare_sets(a: _Listed, b: _Listed) -> SetFacts:
    return SetFacts(
        _implies(a, b), _implies(b, a), _excludes(a, b) or _excludes(b, a), a.is_none or b.is_none
    )


def _implies(a: _Listed, b: _Listed) -> bool:
    """Whether every set that satisfies `a` satisfies `b`."""
    if b.is_none or a == b:
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


def _excludes(a: _Listed, b: _Listed) -> bool:
    """Whether no set can satisfy both; b is the one that bounds the set, if one does."""
    if b.function is ArrayFunction.A_EQUALS:
        return not _list_holds(a, b.items)
    if b.function is ArrayFunction.A_CONTAINEDBY:
        if a.function is ArrayFunction.A_CONTAINS:
            return not a.items <= b.items
        return a.function is ArrayFunction.A_OVERLAPS and bool(a.items) and not a.items & b.items
    return False


def _list_holds(listed: _Listed, items: frozenset[Hashable]) -> bool:
    match listed.function:
        case ArrayFunction.A_CONTAINS:
            return items >= listed.items
        case ArrayFunction.A_CONTAINEDBY:
            return items <= listed.items
        case ArrayFunction.A_EQUALS:
            return items == listed.items
    return not listed.items or bool(items & listed.items)
