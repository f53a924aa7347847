"""Filters as rows of a table: what a segment is built from, and merged from.

A row is a `CHECK` of `kernels.match.segment_search` as bytes. Which column a check is about, and
what it does, is the same in all texts of a form; so `TemplateRows` packs a row from a template, and no
object is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import ArrayFunction, SpatialFunction, String
from fencepost.engine.columns.check_kinds import KIND_BY_TYPE, string_key, word_key
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.postings.keyword_postings import (
    EVERYWHERE,
    Box,
    PostingGroup,
    PostingRows,
    rows_from,
)
from fencepost.errors import GeometryError
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters.checks import Check, Filter, ListCheck, RelateCheck, Term, cost_rank
from fencepost.filters.evaluation import literal_key
from fencepost.filters.query_templates import BoundTemplate, QueryTemplate
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.single_geometry import Outline, raw_shapes_of_outlines
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.check_evaluation import (
    CHECK,
    ITEM_OF,
    ITEMS,
    SET_ITEM,
    SHAPE_ITEM,
    TEXT,
    TWO_SETS_ITEM,
)

Row = tuple[float, float, float, float, int, int, int, int, int, int, int, int]
"""A check, in the order of `CHECK`."""

_ROW = "4d2I6B2x"
ROW = Struct(f"={_ROW}")
_FIELDS = 12
_LOW, _HIGH, _ITEM = 0, 2, 5
assert ROW.size == CHECK.itemsize


class Posted(NamedTuple):
    """The columns of a filter that asks for words, and at most for contact with a rectangle."""

    words: int
    place: int  # -1: nowhere in particular


class TemplateRows:
    """The rows of a form.

    Attributes
    ----------
    count : int
        How many there are.
    shape_rows : list of int
        Those about a geometry.
    are_lists : list of bool
        Of those about strings: whether it is with a list, or the words of a text.
    posted : Posted or None
        Whether it may be a post.
    """

    def __init__(self, terms: Filter, rows: Sequence[Row]) -> None:
        self.count = len(rows)
        self._struct = Struct("=" + _ROW * self.count)
        self._fields: list[Any] = [field for row in rows for field in row]
        items = [ITEM_OF[row[6]] for row in rows]
        self.shape_rows = [k for k, item in enumerate(items) if item == SHAPE_ITEM]
        self._shape_items = [_FIELDS * k + _ITEM for k in self.shape_rows]
        with_sets = [k for k, item in enumerate(items) if item in (SET_ITEM, TWO_SETS_ITEM)]
        self._set_items = [_FIELDS * k + _ITEM for k in with_sets]
        self.are_lists = [items[k] == TWO_SETS_ITEM for k in with_sets]
        self.posted = _posted(terms, [row[4] for row in rows])

    def packed(self, bounds: Sequence[float], first_set: int = 0, first_shape: int = 0) -> bytes:
        """The rows of one text; those before it have so many sets and shapes."""
        fields = self._fields.copy()
        fields[_LOW::_FIELDS] = bounds[::2]
        fields[_HIGH::_FIELDS] = bounds[1::2]
        if first_set:
            for k in self._set_items:
                fields[k] += first_set
        if first_shape:
            for k in self._shape_items:
                fields[k] += first_shape
        return self._struct.pack(*fields)


def _posted(terms: Filter, columns: Sequence[int]) -> Posted | None:
    words = place = -1
    for term, column in zip(terms, columns, strict=True):
        check = term.check
        if (
            isinstance(check, ListCheck)
            and check.function is ArrayFunction.A_CONTAINS
            and words < 0
        ):
            words = column
        elif (
            isinstance(check, RelateCheck)
            and check.function is SpatialFunction.S_INTERSECTS
            and place < 0
        ):
            place = column
        else:
            return None
    return Posted(words, place) if words >= 0 else None


def rectangle(outline: Outline) -> tuple[float, float, float, float] | None:
    """The box that a polygon is, if it is one."""
    xy, chains, _ = outline
    if chains not in ((5,), (4,)):
        return None
    x, y = xy[::2], xy[1::2]
    x0, y0, x1, y1 = min(x), min(y), max(x), max(y)
    corners = {(x0, y0), (x0, y1), (x1, y0), (x1, y1)}
    closed = len(x) == 4 or xy[:2] == xy[-2:]
    return (x0, y0, x1, y1) if closed and {*zip(x, y, strict=True)} == corners else None


CompiledExpression: TypeAlias = Sequence[Filter] | BoundTemplate
"""What a subscription asks: filters of which one must hold, or a text of a form."""


@dataclass(slots=True)
class FilterTable:
    """Filters being collected; strings are kept as bytes, sets as the numbers of these.

    Checks are rows of bytes. The shapes of texts of a form are numbered by themselves, and come
    after the other geometries. With `compact`, a filter that asks for words and a rectangle is no
    row of checks but a post.
    """

    columns: ColumnRegistry
    compact: bool = True
    checks: bytearray = field(default_factory=bytearray)
    filter_check: list[int] = field(default_factory=lambda: [0])
    filter_subscription: list[int] = field(default_factory=list)
    set_start: list[int] = field(default_factory=lambda: [0])
    set_items: list[int] = field(default_factory=list)
    geometries: list[object] = field(default_factory=list)
    outlines: list[Outline] = field(default_factory=list)
    outline_checks: list[int] = field(default_factory=list)
    posts: list[tuple[PostingGroup, int, Box, list[int]]] = field(default_factory=list)
    strings: dict[bytes, int] = field(default_factory=dict)

    def add(self, subscription: int, compiled: CompiledExpression) -> None:
        """Add what a subscription asks."""
        if isinstance(compiled, BoundTemplate):
            self._add_filled(subscription, compiled)
            return
        for terms in compiled:
            if self.compact and self._post(subscription, terms):
                continue
            for term in sorted(terms, key=cost_rank):
                self.checks += ROW.pack(*self.row(term))
            self.filter_check.append(len(self.checks) // ROW.size)
            self.filter_subscription.append(subscription)

    def _add_filled(self, subscription: int, compiled: BoundTemplate) -> None:
        """Add a text of a form."""
        rows = template_rows(compiled.template, self.columns)
        if self.compact and rows.posted is not None:
            box = rectangle(compiled.shapes[0]) if compiled.shapes else EVERYWHERE
            if box is not None:
                words, place = rows.posted
                self._add_posts(
                    PostingGroup(words, place, 0, True),
                    subscription,
                    box,
                    accepted_keys_of_strings(compiled.texts[0], self.columns.tokenizer),
                )
                return
        first = self.filter_check[-1]
        self.checks += rows.packed(compiled.bounds, len(self.set_start) - 1, len(self.outlines))
        for keys in set_keys(rows, compiled, self.columns.tokenizer):
            self.add_set(keys)
        self.outlines += compiled.shapes
        self.outline_checks += [first + k for k in rows.shape_rows]
        self.filter_check.append(first + rows.count)
        self.filter_subscription.append(subscription)

    def _post(self, subscription: int, terms: Filter) -> bool:
        """Add a filter that asks for words and at most for contact with a rectangle."""
        words = [t.check for t in terms if isinstance(t.check, ListCheck)]
        if len(words) != 1 or len(terms) > 2 or any(t.negated for t in terms):
            return False
        compiled = words[0]
        place: Box = EVERYWHERE
        geometry_column = -1
        for check in (t.check for t in terms if t.check is not compiled):
            box = _contact(check)
            if box is None:
                return False
            place, geometry_column = box, self.columns.register(check.column)
        if compiled.function is not ArrayFunction.A_CONTAINS:
            return False
        form = PostingGroup(self.columns.register(compiled.column), geometry_column, 0, True)
        keys = accepted_keys(compiled, self.columns.tokenizer)
        self._add_posts(form, subscription, place, keys)
        return True

    def _add_posts(
        self, form: PostingGroup, subscription: int, place: Box, keys: AcceptedKeys
    ) -> None:
        """Add a post for each way in which an attribute may have words."""
        for accepts, own in keys:
            words = [self.add_string(key) for key in own]
            self.posts.append((form._replace(accepts=accepts), subscription, place, words))

    def add_string(self, key: bytes) -> int:
        """The number of a string."""
        return self.strings.setdefault(key, len(self.strings))

    def add_set(self, keys: Sequence[bytes]) -> int:
        """The number of a set of strings."""
        strings = self.strings
        self.set_items += [strings.setdefault(key, len(strings)) for key in keys]
        self.set_start.append(len(self.set_items))
        return len(self.set_start) - 2

    def add_geometry(self, geometry: object) -> int:
        """The number of a geometry."""
        self.geometries.append(geometry)
        return len(self.geometries) - 1

    def row(self, term: Term) -> Row:
        """A term as a row of `CHECK`."""
        kind = KIND_BY_TYPE[type(term.check)]
        column = self.columns.register(term.check.column)
        low, high, item, flags, function, masks = kind.encode(term.check, self)
        flags |= term.negated * check_evaluation.NEGATED
        return (*low, *high, column, item, kind.code, flags, function, *masks)  # type: ignore[return-value]

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
            rows_from(self.posts),
        )

    def _shapes(self, checks: NDArray[np.void]) -> Shapes:
        """All geometries; the checks of outlines are told their numbers."""
        if not self.outlines:
            return Shapes.read_all(self.geometries)
        outlined = Shapes.lay_out(raw_shapes_of_outlines(self.outlines))
        if outlined.problems:
            raise GeometryError(outlined.problems)
        if not self.geometries:
            return outlined
        checks["item"][self.outline_checks] += len(self.geometries)
        both = Shapes.read_all(self.geometries), outlined
        return Shapes.gather([(one.arrays, np.arange(len(one))) for one in both])


def set_keys(
    rows: TemplateRows, compiled: BoundTemplate, tokenizer: Tokenizer
) -> list[list[bytes]]:
    """The sets of a text of a form: of a list one of its items, and then one of words."""
    sets: list[list[bytes]] = []
    for texts, is_list in zip(compiled.texts, rows.are_lists, strict=True):
        if is_list:
            items = [word_key(text) for text in texts]
            words = tokenizer.keywords(texts)
            sets += (items, items if words == texts else [word_key(word) for word in words])
        else:
            sets.append([string_key(text) for text in texts])
    return sets


def template_rows(form: QueryTemplate, columns: ColumnRegistry) -> TemplateRows:
    """The rows of a form, with the numbers of columns."""
    found: TemplateRows | None = form.caches.get(columns)
    if found is None:
        table = FilterTable(columns, compact=False)
        found = form.caches[columns] = TemplateRows(form.terms, [table.row(t) for t in form.terms])
    return found


AcceptedKeys: TypeAlias = list[tuple[int, list[bytes]]]
"""Keys that an attribute must have, by the kinds it may be of."""


def accepted_keys(check: ListCheck, tokenizer: Tokenizer) -> AcceptedKeys:
    """The keys that an attribute must have for all items of a check."""
    strings = [one.value for one in check.items.items if isinstance(one, String)]
    if len(strings) == len(check.items.items):
        return accepted_keys_of_strings(strings, tokenizer)
    # A text holds nothing but words.
    return [(ITEMS, list(dict.fromkeys(literal_key(one) for one in check.items.items)))]


def accepted_keys_of_strings(strings: Sequence[str], tokenizer: Tokenizer) -> AcceptedKeys:
    """The keys that an attribute must have for all of these strings."""
    items = [word_key(text) for text in dict.fromkeys(strings)]
    words = [word_key(word) for word in tokenizer.keywords(strings)]
    if set(words) == set(items):
        return [(ITEMS | TEXT, items)]
    return [(ITEMS, items), (TEXT, words)]


def _contact(check: Check) -> Box | None:
    """The rectangle along the axes with which a check asks for contact, if it does."""
    if not isinstance(check, RelateCheck) or check.function is not SpatialFunction.S_INTERSECTS:
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
    posts: PostingRows  # filters besides, whose tokens are strings


class NumberedFilters(NamedTuple):
    """Filters as passes of building a segment take them: their strings are numbers of words."""

    checks: NDArray[np.void]
    owner: NDArray[np.int64]  # the filter of each check
    filters: int  # how many
    set_items: NDArray[np.uint32]  # of a set ascending
    set_start: NDArray[np.int64]
    shapes: ShapeArrays
