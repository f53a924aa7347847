"""Filters as rows of a table: what a segment is built from, and merged from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fencepost.index.columns import Columns
from fencepost.kernels import matching
from fencepost.kernels.like import compile_pattern
from fencepost.kernels.matching import CHECK
from fencepost.language.ast import Array, Compare, Near, String
from fencepost.model.geometry import Shapes
from fencepost.plan import relate
from fencepost.plan.checks import (
    BooleanCheck,
    Check,
    Filter,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    Term,
)
from fencepost.plan.evaluate import literal_key

# Cheapest first: a filter's checks are evaluated in this order.
_ORDER = {
    NullCheck: 0,
    BooleanCheck: 1,
    RangeCheck: 2,
    MemberCheck: 3,
    ListCheck: 4,
    OrderCheck: 5,
    LikeCheck: 6,
    RelateCheck: 7,
    NearCheck: 8,
}
_NEAR = {function: code for code, function in enumerate(Near)}
_ARRAY = {function: code for code, function in enumerate(Array)}


def string_key(text: str) -> bytes:
    """How a string, a pattern or a word stands in a vocabulary."""
    return text.encode("utf-8", "surrogatepass")


def word_key(word: str) -> bytes:
    """How a word of a text stands in a vocabulary: as the string in a list that equals it."""
    return b"s" + word.encode("utf-8", "surrogatepass")


@dataclass(slots=True)
class FilterTable:
    """Filters being collected; strings are kept as bytes, sets as lists of numbers of them."""

    columns: Columns
    checks: list[tuple[object, ...]] = field(default_factory=list)
    filter_check: list[int] = field(default_factory=lambda: [0])
    filter_subscription: list[int] = field(default_factory=list)
    sets: list[list[int]] = field(default_factory=list)
    geometries: list[object] = field(default_factory=list)
    _strings: dict[bytes, int] = field(default_factory=dict)

    def add(self, subscription: int, filters: Sequence[Filter]) -> None:
        """Add the filters of a subscription."""
        for terms in filters:
            for term in sorted(terms, key=lambda t: _ORDER[type(t.check)]):
                self.checks.append(self._row(term))
            self.filter_check.append(len(self.checks))
            self.filter_subscription.append(subscription)

    def _string(self, key: bytes) -> int:
        return self._strings.setdefault(key, len(self._strings))

    def _set(self, keys: Sequence[bytes]) -> int:
        self.sets.append([self._string(key) for key in keys])
        return len(self.sets) - 1

    def _geometry(self, geometry: object) -> int:
        self.geometries.append(geometry)
        return len(self.geometries) - 1

    def _row(self, term: Term) -> tuple[object, ...]:
        check: Check = term.check
        column = self.columns.number(check.column)
        low, high = (0.0, 0.0), (0.0, 0.0)
        item = flags = function = 0
        masks = (0, 0, 0)
        match check:
            case RangeCheck():
                kind = matching.RANGE
                low, high = check.low, check.high
                flags = check.low_closed * matching.LOW_CLOSED
                flags |= check.high_closed * matching.HIGH_CLOSED
            case MemberCheck():
                kind = matching.MEMBER
                item = self._set([string_key(text) for text in check.strings])
            case OrderCheck():
                kind = matching.ORDER
                item = self._string(string_key(check.bound))
                flags = (check.op in (Compare.LT, Compare.LE)) * matching.LESS
                flags |= (check.op in (Compare.LE, Compare.GE)) * matching.OR_EQUAL
            case LikeCheck():
                kind = matching.LIKE
                item = self._string(compile_pattern(check.pattern))
            case BooleanCheck():
                kind = matching.BOOLEAN
                flags = check.allows_false * matching.ALLOWS_FALSE
                flags |= check.allows_true * matching.ALLOWS_TRUE
            case NullCheck():
                kind = matching.NULL
            case RelateCheck():
                kind = matching.RELATE
                item = self._geometry(check.geometry.value)
                function = relate.CODE[check.function]
                masks = tuple(relate.mask(check.function, d) for d in range(3))  # type: ignore[assignment]
            case NearCheck():
                kind = matching.NEAR
                item = self._geometry(check.geometry.value)
                function = _NEAR[check.function]
                low = (check.distance, 0.0)
            case ListCheck():
                kind = matching.LIST
                item = self._set([literal_key(one) for one in check.items.items])
                strings = [one.value for one in check.items.items if isinstance(one, String)]
                words = self.columns.tokeniser.keywords(strings)
                self._set([word_key(word) for word in words])
                function = _ARRAY[check.function]
                flags = (len(strings) == len(check.items.items)) * matching.TOKENS
        flags |= term.negated * matching.NEGATED
        return (*low, *high, column, item, kind, flags, function, *masks)

    def arrays(self) -> TableArrays:
        """The table as arrays."""
        sizes = np.array([0, *map(len, self.sets)], np.int64)
        text, start = encode_keys(list(self._strings))
        return TableArrays(
            np.array(self.checks, CHECK),
            np.array(self.filter_check, np.int64),
            np.array(self.filter_subscription, np.int64),
            np.cumsum(sizes),
            np.array([item for one in self.sets for item in one], np.int64),
            text,
            start,
            Shapes.read_all(self.geometries),
        )


def encode_keys(keys: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Byte strings one after another, and where each begins."""
    start = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=start[1:])
    # A bytearray, because a view of one is writable: kernels need no second signature.
    return np.frombuffer(bytearray().join(keys), np.uint8), start


@dataclass(frozen=True, slots=True)
class TableArrays:
    """A table of filters: checks refer to rows of `shapes`, to sets, or to strings."""

    checks: NDArray[np.void]
    filter_check: NDArray[np.int64]
    filter_subscription: NDArray[np.int64]
    set_start: NDArray[np.int64]
    set_items: NDArray[np.int64]
    text: NDArray[np.uint8]
    string_start: NDArray[np.int64]
    shapes: Shapes
