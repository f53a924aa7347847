"""`FilterTable`: filters as rows of a table, from which a segment is built.

A check is a row of bytes, a `CHECK` of `kernels.match.check_evaluation`. All expressions of one
query template have the same checks on the same columns and differ in literals only; so
`TemplateRows` packs their rows from prepared fields, without an object for each check.
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


class PostingColumns(NamedTuple):
    """The columns of a filter that needs keywords and, at most, contact with a rectangle."""

    keywords: int
    geometry: int  # -1 without a rectangle


class TemplateRows:
    """The rows of checks of a query template.

    Attributes
    ----------
    count : int
        Number of rows.
    shape_rows : list of int
        The rows that compare a geometry.
    are_lists : list of bool
        For each row that compares strings: whether with the items of a list.
    posting_columns : PostingColumns or None
        The columns, if a posting can stand for the whole filter.
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
        self.posting_columns = _posting_columns(terms, [row[4] for row in rows])

    def pack(self, bounds: Sequence[float], first_set: int = 0, first_shape: int = 0) -> bytes:
        """Pack the rows of one expression; its sets and shapes are numbered from these on."""
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


def _posting_columns(terms: Filter, columns: Sequence[int]) -> PostingColumns | None:
    keywords = geometry = -1
    for term, column in zip(terms, columns, strict=True):
        check = term.check
        if (
            isinstance(check, ListCheck)
            and check.function is ArrayFunction.A_CONTAINS
            and keywords < 0
        ):
            keywords = column
        elif (
            isinstance(check, RelateCheck)
            and check.function is SpatialFunction.S_INTERSECTS
            and geometry < 0
        ):
            geometry = column
        else:
            return None
    return PostingColumns(keywords, geometry) if keywords >= 0 else None


def _rectangle_of(outline: Outline) -> tuple[float, float, float, float] | None:
    """Return the box that a polygon is, or None if it is no rectangle along the axes."""
    xy, chains, _ = outline
    if chains not in ((5,), (4,)):
        return None
    x, y = xy[::2], xy[1::2]
    x0, y0, x1, y1 = min(x), min(y), max(x), max(y)
    corners = {(x0, y0), (x0, y1), (x1, y0), (x1, y1)}
    closed = len(x) == 4 or xy[:2] == xy[-2:]
    return (x0, y0, x1, y1) if closed and {*zip(x, y, strict=True)} == corners else None


CompiledExpression: TypeAlias = Sequence[Filter] | BoundTemplate
"""A subscription's condition: filters, one of which must hold, or a bound query template."""


@dataclass(slots=True)
class FilterTable:
    """Filters being collected: checks as packed rows, strings as bytes, sets as string numbers.

    The outlines of bound templates are numbered apart from `geometries`; `arrays` puts them behind.
    With `use_postings`, a filter that needs only keywords and contact with a rectangle becomes a
    posting instead of rows of checks.
    """

    columns: ColumnRegistry
    use_postings: bool = True
    checks: bytearray = field(default_factory=bytearray)
    filter_check: list[int] = field(default_factory=lambda: [0])
    filter_subscription: list[int] = field(default_factory=list)
    set_start: list[int] = field(default_factory=lambda: [0])
    set_items: list[int] = field(default_factory=list)
    geometries: list[object] = field(default_factory=list)
    outlines: list[Outline] = field(default_factory=list)
    outline_checks: list[int] = field(default_factory=list)
    postings: list[tuple[PostingGroup, int, Box, list[int]]] = field(default_factory=list)
    strings: dict[bytes, int] = field(default_factory=dict)

    def add(self, subscription: int, compiled: CompiledExpression) -> None:
        """Add the filters of a subscription."""
        if isinstance(compiled, BoundTemplate):
            self._add_template(subscription, compiled)
            return
        for terms in compiled:
            if self.use_postings and self._add_as_posting(subscription, terms):
                continue
            for term in sorted(terms, key=cost_rank):
                self.checks += ROW.pack(*self.row(term))
            self.filter_check.append(len(self.checks) // ROW.size)
            self.filter_subscription.append(subscription)

    def _add_template(self, subscription: int, bound: BoundTemplate) -> None:
        """Add the filter of a bound template."""
        rows = template_rows(bound.template, self.columns)
        if self.use_postings and rows.posting_columns is not None:
            box = _rectangle_of(bound.shapes[0]) if bound.shapes else EVERYWHERE
            if box is not None:
                self._add_postings(
                    PostingGroup(*rows.posting_columns, 0, True),
                    subscription,
                    box,
                    accepted_keys_of_strings(bound.texts[0], self.columns.tokenizer),
                )
                return
        first = self.filter_check[-1]
        self.checks += rows.pack(bound.bounds, len(self.set_start) - 1, len(self.outlines))
        for keys in set_keys(rows, bound, self.columns.tokenizer):
            self.add_set(keys)
        self.outlines += bound.shapes
        self.outline_checks += [first + k for k in rows.shape_rows]
        self.filter_check.append(first + rows.count)
        self.filter_subscription.append(subscription)

    def _add_as_posting(self, subscription: int, terms: Filter) -> bool:
        """Add a filter as postings, if keywords and one rectangle are all that it needs.

        Return whether it was added.
        """
        list_checks = [t.check for t in terms if isinstance(t.check, ListCheck)]
        if len(list_checks) != 1 or len(terms) > 2 or any(t.negated for t in terms):
            return False
        list_check = list_checks[0]
        box: Box = EVERYWHERE
        geometry_column = -1
        for check in (t.check for t in terms if t.check is not list_check):
            rectangle = _contact_rectangle(check)
            if rectangle is None:
                return False
            box, geometry_column = rectangle, self.columns.register(check.column)
        if list_check.function is not ArrayFunction.A_CONTAINS:
            return False
        group = PostingGroup(self.columns.register(list_check.column), geometry_column, 0, True)
        keys = accepted_keys(list_check, self.columns.tokenizer)
        self._add_postings(group, subscription, box, keys)
        return True

    def _add_postings(
        self, group: PostingGroup, subscription: int, box: Box, keys: AcceptedKeys
    ) -> None:
        """Add a posting for each kind of value in which an attribute may have the keywords."""
        for accepts, accepted in keys:
            words = [self.add_string(key) for key in accepted]
            self.postings.append((group._replace(accepts=accepts), subscription, box, words))

    def add_string(self, key: bytes) -> int:
        """Add a string, if it is new. Return its number."""
        return self.strings.setdefault(key, len(self.strings))

    def add_set(self, keys: Sequence[bytes]) -> int:
        """Add a set of strings. Return its number."""
        strings = self.strings
        self.set_items += [strings.setdefault(key, len(strings)) for key in keys]
        self.set_start.append(len(self.set_items))
        return len(self.set_start) - 2

    def add_geometry(self, geometry: object) -> int:
        """Add a geometry. Return its number."""
        self.geometries.append(geometry)
        return len(self.geometries) - 1

    def row(self, term: Term) -> Row:
        """Return a term as the fields of a `CHECK`, adding its strings, sets and geometry."""
        kind = KIND_BY_TYPE[type(term.check)]
        column = self.columns.register(term.check.column)
        low, high, item, flags, function, masks = kind.encode(term.check, self)
        flags |= term.negated * check_evaluation.NEGATED
        return (*low, *high, column, item, kind.code, flags, function, *masks)  # type: ignore[return-value]

    def arrays(self) -> TableArrays:
        """Return the table as arrays."""
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
            rows_from(self.postings),
        )

    def _shapes(self, checks: NDArray[np.void]) -> Shapes:
        """Read all geometries. Renumber the shapes of outlines, which come last."""
        if not self.outlines:
            return Shapes.read_all(self.geometries)
        outlined = Shapes.lay_out(raw_shapes_of_outlines(self.outlines))
        if outlined.problems:
            raise GeometryError(outlined.problems)
        if not self.geometries:
            return outlined
        checks["item"][self.outline_checks] += len(self.geometries)
        parts = Shapes.read_all(self.geometries), outlined
        return Shapes.gather([(shapes.arrays, np.arange(len(shapes))) for shapes in parts])


def set_keys(rows: TemplateRows, bound: BoundTemplate, tokenizer: Tokenizer) -> list[list[bytes]]:
    """Return the sets of a bound template. A list has two: its items, and their words."""
    sets: list[list[bytes]] = []
    for texts, is_list in zip(bound.texts, rows.are_lists, strict=True):
        if is_list:
            items = [word_key(text) for text in texts]
            words = tokenizer.keywords(texts)
            sets += (items, items if words == texts else [word_key(word) for word in words])
        else:
            sets.append([string_key(text) for text in texts])
    return sets


def template_rows(template: QueryTemplate, columns: ColumnRegistry) -> TemplateRows:
    """Return the rows of a template with the column numbers of a registry, cached by registry."""
    rows: TemplateRows | None = template.caches.get(columns)
    if rows is None:
        table = FilterTable(columns, use_postings=False)
        rows = TemplateRows(template.terms, [table.row(t) for t in template.terms])
        template.caches[columns] = rows
    return rows


AcceptedKeys: TypeAlias = list[tuple[int, list[bytes]]]
"""Pairs (ITEMS, TEXT or both; the keys that an attribute of that kind must have)."""


def accepted_keys(check: ListCheck, tokenizer: Tokenizer) -> AcceptedKeys:
    """Return the keys that an attribute must have to contain all items of a check."""
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    if len(strings) == len(check.items.items):
        return accepted_keys_of_strings(strings, tokenizer)
    # A text holds words only, so it cannot contain an item that is no string.
    return [(ITEMS, list(dict.fromkeys(literal_key(item) for item in check.items.items)))]


def accepted_keys_of_strings(strings: Sequence[str], tokenizer: Tokenizer) -> AcceptedKeys:
    """Return the keys that an attribute must have to contain all of these strings."""
    items = [word_key(text) for text in dict.fromkeys(strings)]
    words = [word_key(word) for word in tokenizer.keywords(strings)]
    if set(words) == set(items):
        return [(ITEMS | TEXT, items)]
    return [(ITEMS, items), (TEXT, words)]


def _contact_rectangle(check: Check) -> Box | None:
    """Return the rectangle along the axes that a check intersects, or None."""
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
    """Return byte strings end to end, and the offset of each."""
    start = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=start[1:])
    # The view of a bytearray is writable. A read-only array would need a second signature.
    return np.frombuffer(bytearray().join(keys), np.uint8), start


@dataclass(frozen=True, slots=True)
class TableArrays:
    """A table of filters as arrays: checks refer to rows of `shapes`, to sets or to strings."""

    checks: NDArray[np.void]
    filter_check: NDArray[np.int64]
    filter_subscription: NDArray[np.int64]
    set_start: NDArray[np.int64]
    set_items: NDArray[np.int64]
    text: NDArray[np.uint8]
    string_start: NDArray[np.int64]
    shapes: Shapes
    postings: PostingRows  # filters without rows of checks; tokens are string numbers


class NumberedFilters(NamedTuple):
    """The filters of a new segment: checks and sets refer to words of a vocabulary."""

    checks: NDArray[np.void]
    owner: NDArray[np.int64]  # the filter of each check
    filter_count: int
    set_items: NDArray[np.uint32]  # ascending within a set
    set_start: NDArray[np.int64]
    shapes: ShapeArrays
