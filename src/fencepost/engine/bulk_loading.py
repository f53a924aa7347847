"""`ColumnSubscriptions`: makes a table of filters from columns, without parsing expressions."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.cql2.ast import Property, SpatialFunction
from fencepost.engine.bulk_columns import (
    RaggedRows,
    check_no_surrogate,
    check_utf8,
    concatenate,
    read_lists,
    read_values,
)
from fencepost.engine.columns.check_kinds import near_function_code, string_key, word_key
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.event_sampler import EventSample
from fencepost.engine.filter_table import TableArrays, encode_keys
from fencepost.engine.postings import keyword_postings
from fencepost.engine.postings.keyword_postings import (
    EVERYWHERE,
    PostingGroup,
    PostingRows,
    StepReporter,
)
from fencepost.engine.segment import Segment
from fencepost.engine.segment_builder import NEVER_EXPIRES, build
from fencepost.engine.subscriptions import validate_id
from fencepost.errors import GeometryError, ModelError
from fencepost.filters import spatial_relations
from fencepost.filters.checks import Column, ColumnKind, Measure
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.check_evaluation import CHECK, ITEMS, TEXT

_PLAIN_WORD = re.compile(r"[0-9a-z]+")  # a keyword that is its own token
_FUNCTION_BY_NAME = {function.name: function for function in SpatialFunction}


class ColumnSubscriptions:
    """The filters of subscriptions, from the validated arguments of `Matcher.subscribe_columns`.

    report_step : called with the name of each step.
    """

    def __init__(
        self,
        columns: ColumnRegistry,
        ids: Sequence[str | int] | pa.Array,
        subscribers: Sequence[str | int] | pa.Array | None,
        regions: Mapping[str, tuple[object, object]] | None,
        within: Mapping[str, tuple[object, object]] | None,
        keywords: Mapping[str, Sequence[Sequence[str]]] | None,
        equals: Mapping[str, Sequence[object]] | None,
        report_step: StepReporter,
    ) -> None:
        self._columns = columns
        self._report_step = report_step
        report_step("reading names")
        self._names = _read_names(ids, subscribers)
        self._count = self._names.num_rows
        self._checks: list[NDArray[np.void]] = []
        self._owners: list[NDArray[np.int64]] = []
        self._shapes: list[Shapes] = []
        self._sets: list[RaggedRows] = []
        self._strings: dict[bytes, int] = {}
        self._postings: list[PostingRows] = []
        region_columns = [
            (attribute, *_pair(f"regions[{attribute!r}]", pair, "relations"))
            for attribute, pair in _attribute_items("regions", regions)
        ]
        keyword_columns = _attribute_items("keywords", keywords)
        report_step("reading conditions")
        # A posting stands for a filter of keywords and contact with a box, which needs no checks.
        if (
            len(keyword_columns) == 1
            and not within
            and not equals
            and _are_box_contacts(region_columns)
        ):
            self._add_postings(*keyword_columns[0], region_columns)
            return
        for attribute, geometries, relations in region_columns:
            self._add_regions(attribute, geometries, relations)
        for attribute, pair in _attribute_items("within", within):
            self._add_within(attribute, *_pair(f"within[{attribute!r}]", pair, "distances"))
        for attribute, values in _attribute_items("equals", equals):
            self._add_equals(attribute, values)
        for attribute, lists in keyword_columns:
            self._add_keywords(attribute, lists)

    @property
    def ids(self) -> pa.Array:
        """The id of each row."""
        return self._names.column("id").chunk(0)

    def segment(self, sample: EventSample) -> Segment:
        """Build a segment of the subscriptions, planned for events like those of a sample."""
        self._report_step("numbering words")
        expires = np.full(self._count, NEVER_EXPIRES, np.int64)
        return Segment(build(self.table(), expires, self._report_step, sample), self._names)

    def table(self) -> TableArrays:
        """Return the filters of all rows."""
        checks = np.concatenate([np.empty(0, CHECK), *self._checks])
        owners = np.concatenate([np.empty(0, np.int64), *self._owners])
        order = np.lexsort((checks["kind"], owners))
        # Postings stand for filters, which then have no rows of checks.
        filters = np.arange(0 if self._postings else self._count)
        ends = np.searchsorted(owners[order], np.arange(len(filters) + 1))
        text, start = encode_keys(list(self._strings))
        sets = concatenate(self._sets)
        return TableArrays(
            checks[order],
            ends.astype(np.int64),
            filters,
            sets.start,
            sets.items,
            text,
            start,
            Shapes.gather([(s.arrays, np.arange(len(s))) for s in self._shapes]),
            keyword_postings.concatenate(self._postings)
            if self._postings
            else keyword_postings.rows_from([]),
        )

    def _check_length(self, what: str, values: Any) -> None:
        """Raise ModelError if a column has not one item for each id."""
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise ModelError(f"{what} must be a list or an array; saw {values!r:.60}")
        if len(values) != self._count:
            count = len(values)
            raise ModelError(
                f"{what} must have one item for each of the {self._count:,} ids; saw {count:,}"
            )

    def _new_checks(self, kind: int, column: Column, owners: NDArray[np.int64]) -> NDArray[np.void]:
        """Add checks of a kind, and return them to be filled."""
        checks = np.zeros(len(owners), CHECK)
        checks["kind"] = kind
        checks["column"] = self._columns.register(column)
        self._checks.append(checks)
        self._owners.append(owners)
        return checks

    def _add_shapes(self, what: str, geometries: object) -> NDArray[np.int64]:
        """Add geometries. Return their numbers."""
        shapes = Shapes.read_all(geometries)
        self._check_length(what, shapes)
        outside = shapes.problems_outside(self._columns.space)
        if outside:
            raise GeometryError(outside)
        base = sum(map(len, self._shapes))
        self._shapes.append(shapes)
        return np.arange(len(shapes)) + base

    def _add_regions(self, attribute: str, geometries: object, functions: object) -> None:
        shape_rows = self._add_shapes(f"regions[{attribute!r}]", geometries)
        checks = self._new_checks(
            check_evaluation.RELATE,
            Column(ColumnKind.GEOMETRY, Property(attribute)),
            np.arange(self._count),
        )
        checks["item"] = shape_rows
        has_one_function = isinstance(functions, str)
        if not has_one_function:
            self._check_length(f"the relations of regions[{attribute!r}]", functions)
        names = [functions] if has_one_function else list(functions)  # type: ignore[call-overload]
        for name in _distinct_names(names):
            function = _FUNCTION_BY_NAME.get(str(name).upper())
            if function is None:
                raise _unknown_relation_error(name)
            rows = slice(None) if has_one_function else np.array([n == name for n in names])
            checks["function"][rows] = spatial_relations.FUNCTION_CODES[function]
            for dimension, field in enumerate(("points_mask", "lines_mask", "areas_mask")):
                checks[field][rows] = spatial_relations.relation_mask(function, dimension)

    def _add_within(self, attribute: str, geometries: object, distances: object) -> None:
        shape_rows = self._add_shapes(f"within[{attribute!r}]", geometries)
        try:
            reach = np.broadcast_to(np.asarray(distances, np.float64), (self._count,))
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"the distances of within[{attribute!r}] must be one number, or one a row: {error}"
            ) from error
        if not (np.isfinite(reach) & (reach >= 0)).all():
            bad = int(np.flatnonzero(~(np.isfinite(reach) & (reach >= 0)))[0])
            raise ModelError(
                f"the distances of within[{attribute!r}] must be finite and not negative; "
                f"saw {reach[bad]} in row {bad}"
            )
        checks = self._new_checks(
            check_evaluation.NEAR,
            Column(ColumnKind.GEOMETRY, Property(attribute)),
            np.arange(self._count),
        )
        checks["item"] = shape_rows
        checks["low"] = reach
        checks["function"] = near_function_code(Measure.NEAREST, self._columns.space)

    def _add_equals(self, attribute: str, column: Sequence[object]) -> None:
        what = f"equals[{attribute!r}]"
        self._check_length(what, column)
        values = read_values(what, column)
        source = Property(attribute)
        if len(values.string_rows):
            checks = self._new_checks(
                check_evaluation.MEMBER, Column(ColumnKind.STRING, source), values.string_rows
            )
            numbers = [self._add_string(string_key(text)) for text in values.strings]
            items = np.array(numbers, np.int64)[values.string_codes]
            checks["item"] = self._add_sets(RaggedRows(np.arange(len(items) + 1), items))
        if len(values.boolean_rows):
            checks = self._new_checks(
                check_evaluation.BOOLEAN, Column(ColumnKind.BOOLEAN, source), values.boolean_rows
            )
            checks["flags"] = np.where(
                values.booleans, check_evaluation.ALLOWS_TRUE, check_evaluation.ALLOWS_FALSE
            )
        if len(values.number_rows):
            checks = self._new_checks(
                check_evaluation.RANGE, Column(ColumnKind.NUMBER, source), values.number_rows
            )
            checks["low"] = checks["high"] = values.numbers[:, 0]
            checks["low_rest"] = checks["high_rest"] = values.numbers[:, 1]
            checks["flags"] = check_evaluation.LOW_CLOSED | check_evaluation.HIGH_CLOSED

    def _add_keywords(self, attribute: str, lists: Any) -> None:
        items, words = self._read_keywords(attribute, lists)
        owners = np.flatnonzero(np.diff(items.start))
        checks = self._new_checks(
            check_evaluation.LIST, Column(ColumnKind.LIST, Property(attribute)), owners
        )
        # A check has two sets, one after the other: the items of a list, and the words of a text.
        both = concatenate([items.take(owners), words.take(owners)])
        interleaved = np.arange(2 * len(owners)).reshape(2, -1).T.ravel()
        checks["item"] = self._add_sets(both.take(interleaved))[::2]
        checks["function"] = check_evaluation.CONTAINS
        checks["flags"] = check_evaluation.TOKENS

    def _add_sets(self, sets: RaggedRows) -> NDArray[np.int64]:
        """Add sets of strings. Return their numbers."""
        base = sum(len(added.start) - 1 for added in self._sets)
        self._sets.append(sets)
        return np.arange(base, base + len(sets.start) - 1)

    def _read_keywords(self, attribute: str, lists: Any) -> tuple[RaggedRows, RaggedRows]:
        """Return for each row the items that a list needs, and the words that a text needs."""
        what = f"keywords[{attribute!r}]"
        self._check_length(what, lists)
        keyword_rows, keywords = read_lists(what, lists)
        item_of_keyword = [self._add_string(string_key("s" + keyword)) for keyword in keywords]
        tokenizer = self._columns.tokenizer
        has_no_stop_words = not tokenizer.stop_words
        words_of_keyword = [
            [item]
            if has_no_stop_words and _PLAIN_WORD.fullmatch(keyword)
            else [self._add_string(word_key(word)) for word in tokenizer.keywords((keyword,))]
            for item, keyword in zip(item_of_keyword, keywords, strict=True)
        ]
        start = np.cumsum([0, *map(len, words_of_keyword)], dtype=np.int64)
        words = RaggedRows(
            start, np.fromiter(chain.from_iterable(words_of_keyword), np.int64, start[-1])
        )
        items = RaggedRows(
            keyword_rows.start, np.array(item_of_keyword, np.int64)[keyword_rows.items]
        )
        return items, keyword_rows.map(words, len(self._strings))

    def _add_postings(
        self, attribute: str, lists: Any, region_columns: list[tuple[str, object, object]]
    ) -> None:
        """Post each row under its keywords, with its box."""
        items, words = self._read_keywords(attribute, lists)
        column = self._columns.register(Column(ColumnKind.LIST, Property(attribute)))
        geometry_column = -1
        boxes = np.broadcast_to(np.array(EVERYWHERE), (self._count, 4))
        for geometry_attribute, geometries, _ in region_columns:
            boxes = _read_boxes(geometries, self._columns.space)
            self._check_length(f"regions[{geometry_attribute!r}]", boxes)
            geometry_column = self._columns.register(
                Column(ColumnKind.GEOMETRY, Property(geometry_attribute))
            )
        without_keywords = np.flatnonzero(np.diff(items.start) == 0)
        same = _are_rows_equal(items, words, len(self._strings))
        same[without_keywords] = False
        differ = np.setdiff1d(np.flatnonzero(~same), without_keywords)
        for accepts, rows, tokens in (
            (ITEMS | TEXT, np.flatnonzero(same), items),
            (ITEMS, differ, items),
            (TEXT, differ, words),
            (0, without_keywords, items),
        ):
            if not len(rows):
                continue
            row_tokens = tokens.take(rows) if len(rows) < self._count else tokens
            group = PostingGroup(column if accepts else -1, geometry_column, accepts, True)
            self._postings.append(
                PostingRows(
                    (group,),
                    np.zeros(len(rows), np.int64),
                    rows,
                    boxes[rows] if len(rows) < self._count else np.ascontiguousarray(boxes),
                    row_tokens.start,
                    row_tokens.items,
                )
            )

    def _add_string(self, key: bytes) -> int:
        """Add a string, if it is new. Return its number."""
        return self._strings.setdefault(key, len(self._strings))


def _are_box_contacts(region_columns: list[tuple[str, object, object]]) -> bool:
    """Return whether each row needs at most contact with one box."""
    return not region_columns or (
        len(region_columns) == 1
        and isinstance(region_columns[0][1], np.ndarray)
        and region_columns[0][1].ndim == 2
        and region_columns[0][1].dtype.kind in "fiu"
        and isinstance(region_columns[0][2], str)
        and region_columns[0][2].upper() == SpatialFunction.S_INTERSECTS.name
    )


def _read_boxes(geometries: Any, space: Space) -> NDArray[np.float64]:
    """Return boxes as an (n, 4) array. Raise GeometryError if a box is invalid."""
    if geometries.shape[1] == 4 and not np.ma.isMaskedArray(geometries):
        boxes = geometries.astype(np.float64)
        if (
            np.isfinite(boxes).all()
            and (boxes[:, 0] < boxes[:, 2]).all()
            and (boxes[:, 1] < boxes[:, 3]).all()
            and (np.abs(boxes) <= space.limits * 2).all()
        ):
            return np.ascontiguousarray(boxes)
    outside = Shapes.read_all(geometries).problems_outside(space)
    if outside:
        raise GeometryError(outside)
    raise AssertionError("invalid boxes were read as valid geometries")


def _are_rows_equal(left: RaggedRows, right: RaggedRows, limit: int) -> NDArray[np.bool_]:
    """Return for each row whether both hold the same set of numbers.

    The numbers of a row are distinct, and all numbers are below `limit`.
    """
    sizes = np.diff(left.start)
    same: NDArray[np.bool_] = sizes == np.diff(right.start)
    if same.all() and np.array_equal(left.items, right.items):
        return same
    rows = np.flatnonzero(same)
    keys = [
        np.sort(np.repeat(rows, sizes[rows]) * limit + side.take(rows).items)
        for side in (left, right)
    ]
    same[keys[0][keys[0] != keys[1]] // limit] = False
    return same


def _attribute_items(what: str, columns: Mapping[Any, Any] | None) -> list[tuple[str, Any]]:
    """Return the items of a mapping of attribute names. Raise ModelError for any other value."""
    if columns is None:
        return []
    if not isinstance(columns, Mapping):
        raise ModelError(f"{what} must be a mapping of attribute names; saw {columns!r:.60}")
    for attribute in columns:
        if not isinstance(attribute, str) or not attribute:
            raise ModelError(f"an attribute of {what} must be a name; saw {attribute!r:.60}")
        check_no_surrogate(what, 0, attribute)
    return list(columns.items())


def _pair(what: str, value: Any, second: str) -> tuple[object, object]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ModelError(f"{what} must be a pair (geometries, {second}); saw {value!r:.60}")
    return value[0], value[1]


def _distinct_names(names: list[Any]) -> Iterable[Any]:
    try:
        return dict.fromkeys(names)
    except TypeError as error:
        unhashable = next(name for name in names if not isinstance(name, Hashable))
        raise _unknown_relation_error(unhashable) from error


def _unknown_relation_error(name: object) -> ModelError:
    known = ", ".join(_FUNCTION_BY_NAME)
    return ModelError(f"no relation is called {name!r:.40}; give one of {known}")


def _as_texts(values: Any, what: str) -> pa.Array:
    """Return ids as an Arrow array of strings; integers become their decimal text."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        values = pa.array(values)
    if isinstance(values, pa.Array):
        if values.type == pa.string():
            return values
        if pa.types.is_integer(values.type):
            return values.cast(pa.string())
        if pa.types.is_floating(values.type) or pa.types.is_boolean(values.type):
            values = values.to_pylist()
    try:
        return pa.array(values, pa.string())
    except pa.ArrowException:
        names = [None if value is None else validate_id(value, what) for value in values]
        return pa.array(names, pa.string())


def _read_names(
    ids: Sequence[str | int] | pa.Array, subscribers: Sequence[str | int] | pa.Array | None
) -> pa.Table:
    """Return the ids and subscribers as a table. Raise ModelError if an id is repeated."""

    def read_strings(values: Any, what: str) -> pa.Array:
        try:
            array = _as_texts(values, what)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise ModelError(f"{what}s must be strings or integers: {error}") from error
        check_utf8(f"{what}s", array)
        if array.null_count or pc.any(pc.equal(array, "")).as_py():
            raise ModelError(f"{what}s must not be null or empty")
        return array

    id_column = read_strings(ids, "id")
    columns = {"id": id_column}
    if subscribers is not None:
        columns["subscriber"] = read_strings(subscribers, "subscriber")
        if len(columns["subscriber"]) != len(id_column):
            raise ModelError(
                f"there are {len(id_column):,} ids but {len(columns['subscriber']):,} subscribers"
            )
    if pc.count_distinct(id_column).as_py() < len(id_column):
        counts = pc.value_counts(id_column)
        repeated = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise ModelError(f"ids must differ; saw {repeated!r:.60} more than once")
    return pa.table(columns)
