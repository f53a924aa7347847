"""Filters as rows of a table: what a segment is built from, and merged from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError
from fencepost.index.columns import Columns
from fencepost.index.form_rows import ROW, FormRows, Row, rectangle
from fencepost.index.posts import EVERYWHERE, Box, Form, PostRows, rows
from fencepost.kernels import checking, matching
from fencepost.kernels.checking import CHECK
from fencepost.kernels.like import compile_pattern
from fencepost.kernels.shapes import ShapeArrays
from fencepost.language.ast import Array, Compare, Near, Spatial, String
from fencepost.model.geometry import Shapes
from fencepost.model.outlines import Outline, raw_shapes
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
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
    cost,
)
from fencepost.plan.evaluate import literal_key
from fencepost.plan.forms import Filled, TextForm

_NEAR = (Near.S_DWITHIN, Near.S_BEYOND, Near.S_SAMEPLACE)
_NEAR_FLAGS = {Near.S_CLOSER: checking.LESS, Near.S_ALLWITHIN: checking.ALL_OF_IT}
_ARRAY = {function: code for code, function in enumerate(Array)}
ITEMS, TEXT = 1 << checking.ITEMS, 1 << checking.TEXT  # kinds of list attributes, as bits


def near_code(function: Near, space: Space) -> int:
    """What stands for a bound on a distance in a check: which one, and how it is measured.

    S_CLOSER is S_DWITHIN to the kernels, whose doubles are never sure of a distance that equals its
    bound: it has the flag LESS for those who decide such distances exactly. S_ALLWITHIN is found
    like S_DWITHIN, which it implies, and has a flag that kernels read: see `_NEAR_FLAGS`.
    """
    code = _NEAR.index(Near.S_DWITHIN if function in _NEAR_FLAGS else function)
    return code + (checking.ON_WGS84 if space is Space.WGS84 else 0)


def near_of_check(check: np.void) -> tuple[Near, Space]:
    """The bound of a check again, and how it is measured."""
    code = int(check["function"])
    function = _NEAR[code % checking.ON_WGS84]
    for flagged, flag in _NEAR_FLAGS.items():
        if check["flags"] & flag:
            function = flagged
    return function, Space.WGS84 if code >= checking.ON_WGS84 else Space.PLANAR


def string_key(text: str) -> bytes:
    """How a string, a pattern or a word stands in a vocabulary."""
    return text.encode("utf-8", "surrogatepass")


def word_key(word: str) -> bytes:
    """How a word of a text stands in a vocabulary: as the string in a list that equals it."""
    return b"s" + word.encode("utf-8", "surrogatepass")


Asked: TypeAlias = Sequence[Filter] | Filled
"""What a subscription asks: filters of which one must hold, or a text of a form."""


@dataclass(slots=True)
class FilterTable:
    """Filters being collected; strings are kept as bytes, sets as the numbers of these.

    Checks are rows of bytes. The shapes of texts of a form are numbered by themselves, and come
    after the other geometries. With `compact`, a filter that asks for words and a rectangle is no
    row of checks but a post.
    """

    columns: Columns
    compact: bool = True
    checks: bytearray = field(default_factory=bytearray)
    filter_check: list[int] = field(default_factory=lambda: [0])
    filter_subscription: list[int] = field(default_factory=list)
    set_start: list[int] = field(default_factory=lambda: [0])
    set_items: list[int] = field(default_factory=list)
    geometries: list[object] = field(default_factory=list)
    outlines: list[Outline] = field(default_factory=list)
    outline_checks: list[int] = field(default_factory=list)
    posts: list[tuple[Form, int, Box, list[int]]] = field(default_factory=list)
    strings: dict[bytes, int] = field(default_factory=dict)

    def add(self, subscription: int, asked: Asked) -> None:
        """Add what a subscription asks."""
        if isinstance(asked, Filled):
            self._add_filled(subscription, asked)
            return
        for terms in asked:
            if self.compact and self._post(subscription, terms):
                continue
            for term in sorted(terms, key=cost):
                self.checks += ROW.pack(*self._row(term))
            self.filter_check.append(len(self.checks) // ROW.size)
            self.filter_subscription.append(subscription)

    def _add_filled(self, subscription: int, asked: Filled) -> None:
        """Add a text of a form."""
        rows = form_rows(asked.form, self.columns)
        if self.compact and rows.posted is not None:
            box = rectangle(asked.shapes[0]) if asked.shapes else EVERYWHERE
            if box is not None:
                words, place = rows.posted
                self._add_posts(
                    Form(words, place, 0, True),
                    subscription,
                    box,
                    accepted_strings(asked.texts[0], self.columns.tokeniser),
                )
                return
        first = self.filter_check[-1]
        self.checks += rows.packed(asked.bounds, len(self.set_start) - 1, len(self.outlines))
        for keys in keys_of(rows, asked, self.columns.tokeniser):
            self._set(keys)
        self.outlines += asked.shapes
        self.outline_checks += [first + k for k in rows.shape_rows]
        self.filter_check.append(first + rows.count)
        self.filter_subscription.append(subscription)

    def _post(self, subscription: int, terms: Filter) -> bool:
        """Add a filter that asks for words and at most for contact with a rectangle."""
        words = [t.check for t in terms if isinstance(t.check, ListCheck)]
        if len(words) != 1 or len(terms) > 2 or any(t.negated for t in terms):
            return False
        asked = words[0]
        place: Box = EVERYWHERE
        geometry_column = -1
        for check in (t.check for t in terms if t.check is not asked):
            box = _contact(check)
            if box is None:
                return False
            place, geometry_column = box, self.columns.number(check.column)
        if asked.function is not Array.A_CONTAINS:
            return False
        form = Form(self.columns.number(asked.column), geometry_column, 0, True)
        keys = accepted_keys(asked, self.columns.tokeniser)
        self._add_posts(form, subscription, place, keys)
        return True

    def _add_posts(self, form: Form, subscription: int, place: Box, keys: Accepted) -> None:
        """Add a post for each way in which an attribute may have words."""
        for accepts, own in keys:
            words = [self._string(key) for key in own]
            self.posts.append((form._replace(accepts=accepts), subscription, place, words))

    def _string(self, key: bytes) -> int:
        return self.strings.setdefault(key, len(self.strings))

    def _set(self, keys: Sequence[bytes]) -> int:
        strings = self.strings
        self.set_items += [strings.setdefault(key, len(strings)) for key in keys]
        self.set_start.append(len(self.set_items))
        return len(self.set_start) - 2

    def _geometry(self, geometry: object) -> int:
        self.geometries.append(geometry)
        return len(self.geometries) - 1

    def _row(self, term: Term) -> Row:
        check: Check = term.check
        column = self.columns.number(check.column)
        low, high = (0.0, 0.0), (0.0, 0.0)
        item = flags = function = 0
        masks = (0, 0, 0)
        match check:
            case RangeCheck():
                kind = checking.RANGE
                low, high = check.low, check.high
                flags = check.low_closed * checking.LOW_CLOSED
                flags |= check.high_closed * checking.HIGH_CLOSED
            case MemberCheck():
                kind = checking.MEMBER
                item = self._set([string_key(text) for text in check.strings])
            case OrderCheck():
                kind = checking.ORDER
                item = self._string(string_key(check.bound))
                flags = (check.op in (Compare.LT, Compare.LE)) * checking.LESS
                flags |= (check.op in (Compare.LE, Compare.GE)) * checking.OR_EQUAL
            case LikeCheck():
                kind = checking.LIKE
                item = self._string(compile_pattern(check.pattern))
            case BooleanCheck():
                kind = checking.BOOLEAN
                flags = check.allows_false * checking.ALLOWS_FALSE
                flags |= check.allows_true * checking.ALLOWS_TRUE
            case NullCheck():
                kind = checking.NULL
            case RelateCheck():
                kind = checking.RELATE
                item = self._geometry(check.geometry.value)
                function = relate.CODE[check.function]
                masks = tuple(relate.mask(check.function, d) for d in range(3))  # type: ignore[assignment]
            case NearCheck():
                kind = checking.NEAR
                item = self._geometry(check.geometry.value)
                function = near_code(check.function, self.columns.space)
                low = (check.distance, 0.0)
                flags = _NEAR_FLAGS.get(check.function, 0)
            case ListCheck():
                kind = checking.LIST
                item = self._set([literal_key(one) for one in check.items.items])
                strings = [one.value for one in check.items.items if isinstance(one, String)]
                words = self.columns.tokeniser.keywords(strings)
                self._set([word_key(word) for word in words])
                function = _ARRAY[check.function]
                flags = (len(strings) == len(check.items.items)) * checking.TOKENS
        flags |= term.negated * checking.NEGATED
        return (*low, *high, column, item, kind, flags, function, *masks)

    def arrays(self) -> TableArrays:
        """The table as arrays."""
        text, start = encode_keys(list(self.strings))
        checks = np.frombuffer(self.checks, CHECK)
        return TableArrays(
            checks,
            np.array(self.filter_check, np.int64),
            np.array(self.filter_subscription, np.int64),
            np.array(self.set_start, np.int64),
            np.array(self.set_items, np.int64),
            text,
            start,
            self._shapes(checks),
            rows(self.posts),
        )

    def _shapes(self, checks: NDArray[np.void]) -> Shapes:
        """All geometries; the checks of outlines are told their numbers."""
        if not self.outlines:
            return Shapes.read_all(self.geometries)
        outlined = Shapes.lay_out(raw_shapes(self.outlines))
        if outlined.problems:
            raise GeometryError(outlined.problems)
        if not self.geometries:
            return outlined
        checks["item"][self.outline_checks] += len(self.geometries)
        both = Shapes.read_all(self.geometries), outlined
        return Shapes.gather([(one.arrays, np.arange(len(one))) for one in both])


def keys_of(rows: FormRows, asked: Filled, tokeniser: Tokeniser) -> list[list[bytes]]:
    """The sets of a text of a form: of a list one of its items, and then one of words."""
    sets: list[list[bytes]] = []
    for texts, is_list in zip(asked.texts, rows.are_lists, strict=True):
        if is_list:
            items = [word_key(text) for text in texts]
            words = tokeniser.keywords(texts)
            sets += (items, items if words == texts else [word_key(word) for word in words])
        else:
            sets.append([string_key(text) for text in texts])
    return sets


def form_rows(form: TextForm, columns: Columns) -> FormRows:
    """The rows of a form, with the numbers of columns."""
    found: FormRows | None = form.kept.get(columns)
    if found is None:
        table = FilterTable(columns, compact=False)
        found = form.kept[columns] = FormRows(form.terms, [table._row(t) for t in form.terms])
    return found


Accepted: TypeAlias = list[tuple[int, list[bytes]]]
"""Keys that an attribute must have, by the kinds it may be of."""


def accepted_keys(check: ListCheck, tokeniser: Tokeniser) -> Accepted:
    """The keys that an attribute must have for all items of a check."""
    strings = [one.value for one in check.items.items if isinstance(one, String)]
    if len(strings) == len(check.items.items):
        return accepted_strings(strings, tokeniser)
    # A text holds nothing but words.
    return [(ITEMS, list(dict.fromkeys(literal_key(one) for one in check.items.items)))]


def accepted_strings(strings: Sequence[str], tokeniser: Tokeniser) -> Accepted:
    """The keys that an attribute must have for all of these strings."""
    items = [word_key(text) for text in dict.fromkeys(strings)]
    words = [word_key(word) for word in tokeniser.keywords(strings)]
    if set(words) == set(items):
        return [(ITEMS | TEXT, items)]
    return [(ITEMS, items), (TEXT, words)]


def _contact(check: Check) -> Box | None:
    """The rectangle along the axes with which a check asks for contact, if it does."""
    if not isinstance(check, RelateCheck) or check.function is not Spatial.S_INTERSECTS:
        return None
    geometry: Any = check.geometry.value
    if geometry.geom_type != "Polygon" or geometry.interiors or geometry.has_z:
        return None
    points = list(geometry.exterior.coords)
    x0, y0, x1, y1 = geometry.bounds
    corners = {(x0, y0), (x0, y1), (x1, y0), (x1, y1)}
    return (x0, y0, x1, y1) if len(points) == 5 and {*points} == corners else None


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
    posts: PostRows  # filters besides, whose tokens are strings


class NumberedFilters(NamedTuple):
    """Filters as passes of building a segment take them: their strings are numbers of words."""

    checks: NDArray[np.void]
    owner: NDArray[np.int64]  # the filter of each check
    filters: int  # how many
    set_items: NDArray[np.uint32]  # of a set ascending
    set_start: NDArray[np.int64]
    shapes: ShapeArrays


def place_of(first: bytes, then: int = 0) -> float:
    """Where strings that begin so stand, the first of them or, filled with 0xFF, the last."""
    size = matching.PLACE_BYTES
    return float(int.from_bytes(first[:size] + bytes([then] * (size - len(first[:size]))), "big"))
