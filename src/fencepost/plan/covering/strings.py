"""How the strings that two checks allow lie to each other.

A check of strings allows some members, all on one side of a bound, or all of a form. Whether one
of these holds another follows from trying the members, from the bounds, or from laying one form
over the other. What is not certain is False.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from fencepost.kernels.like import ANY_RUN, ONE, compile_pattern
from fencepost.language.ast import Compare
from fencepost.plan.checks import LikeCheck, MemberCheck, OrderCheck
from fencepost.plan.evaluate import like


class Facts(NamedTuple):
    """What is certain about two sets a and b of the values that a column can have."""

    a_in_b: bool
    b_in_a: bool
    apart: bool  # no value is in both
    complete: bool  # every value is in one of them

    def turned(self) -> Facts:
        """The same about b and a."""
        return Facts(self.b_in_a, self.a_in_b, self.apart, self.complete)


class Ray(NamedTuple):
    """The strings on one side of a cut: just before a bound (0) or just after it (1)."""

    below: bool
    cut: tuple[str, int]


class Form(NamedTuple):
    """The strings that fit a pattern: characters, `ANY_RUN` and `ONE`."""

    pattern: str
    symbols: tuple[str | int, ...]

    @property
    def start(self) -> str:
        """What all of them begin with."""
        return "".join(self.symbols[: _plain_length(self.symbols)])  # type: ignore[arg-type]


Members: TypeAlias = frozenset[str]
Strings: TypeAlias = Members | Ray | Form
StringCheck: TypeAlias = MemberCheck | OrderCheck | LikeCheck

_CUTS = {
    Compare.LT: (True, 0),
    Compare.LE: (True, 1),
    Compare.GT: (False, 1),
    Compare.GE: (False, 0),
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
    return Form(check.pattern, symbols)


def is_everything(strings: Strings) -> bool:
    """Whether all strings are in a set."""
    return strings == Ray(False, ("", 0)) or (
        isinstance(strings, Form) and strings.symbols == (ANY_RUN,)
    )


def compare_strings(first: StringCheck, second: StringCheck) -> Facts:
    """What is certain about the strings that two checks allow."""
    a, b = strings_of(first), strings_of(second)
    every_a, every_b = is_everything(a), is_everything(b)
    if every_a or every_b:
        nothing = frozenset[str]() in (a, b)
        return Facts(every_b, every_a, nothing, True)
    if isinstance(a, frozenset):
        if isinstance(b, frozenset):
            return Facts(a <= b, b <= a, not a & b, False)
        inside = [_holds(b, member) for member in a]
        return Facts(all(inside), False, not any(inside), False)
    if isinstance(b, frozenset):
        return compare_strings(second, first).turned()
    if isinstance(a, Form):
        return _compare_forms(a, b) if isinstance(b, Form) else _compare_to_ray(a, b)
    if isinstance(b, Form):
        return compare_strings(second, first).turned()
    return _compare_rays(a, b)


def _holds(strings: Ray | Form, text: str) -> bool:
    if isinstance(strings, Form):
        return like(strings.pattern, text)
    return strings.below == ((text, 0) < strings.cut)


def _compare_rays(a: Ray, b: Ray) -> Facts:
    if a.below == b.below:
        short, long = (a, b) if a.below else (b, a)
        return Facts(short.cut <= long.cut, long.cut <= short.cut, False, False)
    low, high = (a, b) if a.below else (b, a)
    return Facts(False, False, low.cut <= high.cut, low.cut >= high.cut)


def _compare_to_ray(form: Form, ray: Ray) -> Facts:
    """A form lies in the stretch of strings that begin as it does."""
    bound, side = ray.cut
    before = form.start < bound and not bound.startswith(form.start)
    after = form.start > bound or (form.start == bound and side == 0)
    return Facts(before, False, after, False) if ray.below else Facts(after, False, before, False)


def _compare_forms(a: Form, b: Form) -> Facts:
    clash = _clash(a.symbols, b.symbols) or _clash(a.symbols[::-1], b.symbols[::-1])
    return Facts(_fits(b.symbols, a.symbols), _fits(a.symbols, b.symbols), clash, False)


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
                and (other[place] != ANY_RUN if symbol == ONE else other[place] == symbol)
            }
    return len(other) in places


def _clash(a: Sequence[str | int], b: Sequence[str | int]) -> bool:
    """Whether two forms differ in a character that both fix, counted from the start."""
    for one, other in zip(a, b, strict=False):
        if ANY_RUN in (one, other):
            return False
        if ONE not in (one, other) and one != other:
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
        if byte in (ANY_RUN, ONE, None):
            symbols += plain.decode("utf-8", "surrogatepass")
            plain.clear()
            if byte is not None:
                symbols.append(byte)
        else:
            plain.append(byte)
    return tuple(symbols)
