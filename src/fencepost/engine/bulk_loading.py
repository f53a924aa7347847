"""Subscriptions given as columns: straight to a table of filters, without parsing."""

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
    joined,
    read_lists,
    read_values,
    refuse_bad_bytes,
    refuse_surrogate,
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
from fencepost.errors import GeometryError, ModelError
from fencepost.filters import spatial_relations
from fencepost.filters.checks import Column, ColumnKind, Measure
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.check_evaluation import CHECK, ITEMS, TEXT

_PLAIN_WORD = re.compile(r"[0-9a-z]+")  # a keyword that is its own token
_KNOWN = {function.name: function for function in SpatialFunction}


class ColumnSubscriptions:
    """What `Matcher.subscribe_columns` was given, checked and turned into checks."""

    def __init__(
        self,
        columns: ColumnRegistry,
        ids: Sequence[str],
        subscribers: Sequence[str] | None,
        regions: Mapping[str, tuple[object, object]] | None,
        within: Mapping[str, tuple[object, object]] | None,
        keywords: Mapping[str, Sequence[Sequence[str]]] | None,
        equals: Mapping[str, Sequence[object]] | None,
        report_step: StepReporter,
    ) -> None:
        self._columns = columns
        self._tell = report_step
        report_step("reading names")
        self._names = _names(ids, subscribers)
        self._count = self._names.num_rows
        self._checks: list[NDArray[np.void]] = []
        self._owners: list[NDArray[np.int64]] = []
        self._shapes: list[Shapes] = []
        self._sets: list[RaggedRows] = []
        self._strings: dict[bytes, int] = {}
        self._posts: list[PostingRows] = []
        asked = [
            (attribute, *_pair(f"regions[{attribute!r}]", pair, "relations"))
            for attribute, pair in _items("regions", regions)
        ]
        words = _items("keywords", keywords)
        report_step("reading conditions")
        # Words and contact with a box, and nothing else, need no checks.
        if len(words) == 1 and not within and not equals and _are_contacts(asked):
            self._add_posts(words[0][0], words[0][1], asked)
            return
        for attribute, geometries, relations in asked:
            self._add_regions(attribute, geometries, relations)
        for attribute, pair in _items("within", within):
            self._add_within(attribute, *_pair(f"within[{attribute!r}]", pair, "distances"))
        for attribute, given in _items("equals", equals):
            self._add_equals(attribute, given)
        for attribute, lists in words:
            self._add_keywords(attribute, lists)

    @property
    def ids(self) -> pa.Array:
        """The ids, row by row."""
        return self._names.column("id").chunk(0)

    def segment(self, sample: EventSample) -> Segment:
        """The subscriptions as a segment, for events like those of a sample, with its names."""
        self._tell("numbering words")
        expires = np.full(self._count, NEVER_EXPIRES, np.int64)
        return Segment(build(self.table(), expires, self._tell, sample), self._names)

    def table(self) -> TableArrays:
        """The filters, row by row."""
        checks = np.concatenate([np.empty(0, CHECK), *self._checks])
        owners = np.concatenate([np.empty(0, np.int64), *self._owners])
        order = np.lexsort((checks["kind"], owners))
        # What is posted is no filter besides.
        filters = np.arange(0 if self._posts else self._count)
        ends = np.searchsorted(owners[order], np.arange(len(filters) + 1))
        text, start = encode_keys(list(self._strings))
        sets = joined(self._sets)
        return TableArrays(
            checks[order],
            ends.astype(np.int64),
            filters,
            sets.start,
            sets.items,
            text,
            start,
            Shapes.gather([(s.arrays, np.arange(len(s))) for s in self._shapes]),
            keyword_postings.concatenate(self._posts)
            if self._posts
            else keyword_postings.rows_from([]),
        )

    def _rows(self, what: str, given: Any) -> None:
        if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
            raise ModelError(f"{what} must be a list or an array; saw {given!r:.60}")
        if len(given) != self._count:
            raise ModelError(
                f"{what} must have one item for each of the {self._count:,} ids; saw {len(given):,}"
            )

    def _new(self, kind: int, column: Column, owners: NDArray[np.int64]) -> NDArray[np.void]:
        checks = np.zeros(len(owners), CHECK)
        checks["kind"] = kind
        checks["column"] = self._columns.register(column)
        self._checks.append(checks)
        self._owners.append(owners)
        return checks

    def _add_shapes(self, what: str, geometries: object) -> NDArray[np.int64]:
        shapes = Shapes.read_all(geometries)
        self._rows(what, shapes)
        outside = shapes.problems_outside(self._columns.space)
        if outside:
            raise GeometryError(outside)
        base = sum(map(len, self._shapes))
        self._shapes.append(shapes)
        return np.arange(len(shapes)) + base

    def _add_regions(self, attribute: str, geometries: object, functions: object) -> None:
        rows = self._add_shapes(f"regions[{attribute!r}]", geometries)
        checks = self._new(
            check_evaluation.RELATE,
            Column(ColumnKind.GEOMETRY, Property(attribute)),
            np.arange(self._count),
        )
        checks["item"] = rows
        everywhere = isinstance(functions, str)
        if not everywhere:
            self._rows(f"the relations of regions[{attribute!r}]", functions)
        named = [functions] if everywhere else list(functions)  # type: ignore[call-overload]
        for name in _distinct(named):
            function = _KNOWN.get(str(name).upper())
            if function is None:
                raise _no_relation(name)
            mine = slice(None) if everywhere else np.array([n == name for n in named])
            checks["function"][mine] = spatial_relations.FUNCTION_CODES[function]
            for dimension, field in enumerate(("points_mask", "lines_mask", "areas_mask")):
                checks[field][mine] = spatial_relations.relation_mask(function, dimension)

    def _add_within(self, attribute: str, geometries: object, distances: object) -> None:
        rows = self._add_shapes(f"within[{attribute!r}]", geometries)
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
        checks = self._new(
            check_evaluation.NEAR,
            Column(ColumnKind.GEOMETRY, Property(attribute)),
            np.arange(self._count),
        )
        checks["item"] = rows
        checks["low"] = reach
        checks["function"] = near_function_code(Measure.NEAREST, self._columns.space)

    def _add_equals(self, attribute: str, given: Sequence[object]) -> None:
        what = f"equals[{attribute!r}]"
        self._rows(what, given)
        found = read_values(what, given)
        own = Property(attribute)
        if len(found.string_rows):
            checks = self._new(
                check_evaluation.MEMBER, Column(ColumnKind.STRING, own), found.string_rows
            )
            known = [self._string(string_key(text)) for text in found.strings]
            items = np.array(known, np.int64)[found.string_codes]
            checks["item"] = self._add_sets(RaggedRows(np.arange(len(items) + 1), items))
        if len(found.boolean_rows):
            checks = self._new(
                check_evaluation.BOOLEAN, Column(ColumnKind.BOOLEAN, own), found.boolean_rows
            )
            checks["flags"] = np.where(
                found.booleans, check_evaluation.ALLOWS_TRUE, check_evaluation.ALLOWS_FALSE
            )
        if len(found.number_rows):
            checks = self._new(
                check_evaluation.RANGE, Column(ColumnKind.NUMBER, own), found.number_rows
            )
            checks["low"] = checks["high"] = found.numbers[:, 0]
            checks["low_rest"] = checks["high_rest"] = found.numbers[:, 1]
            checks["flags"] = check_evaluation.LOW_CLOSED | check_evaluation.HIGH_CLOSED

    def _add_keywords(self, attribute: str, lists: Any) -> None:
        items, words = self._read_keywords(attribute, lists)
        owners = np.flatnonzero(np.diff(items.start))
        checks = self._new(
            check_evaluation.LIST, Column(ColumnKind.LIST, Property(attribute)), owners
        )
        # Of each row the set of what a list must have, and after it that of a text.
        both = joined([items.take(owners), words.take(owners)])
        in_turn = np.arange(2 * len(owners)).reshape(2, -1).T.ravel()
        checks["item"] = self._add_sets(both.take(in_turn))[::2]
        checks["function"] = check_evaluation.CONTAINS
        checks["flags"] = check_evaluation.TOKENS

    def _add_sets(self, rows: RaggedRows) -> NDArray[np.int64]:
        """Keep sets of strings; their numbers."""
        base = sum(len(own.start) - 1 for own in self._sets)
        self._sets.append(rows)
        return np.arange(base, base + len(rows.start) - 1)

    def _read_keywords(self, attribute: str, lists: Any) -> tuple[RaggedRows, RaggedRows]:
        """Of each row the strings that a list must have, and those that a text must have."""
        what = f"keywords[{attribute!r}]"
        self._rows(what, lists)
        numbers, given = read_lists(what, lists)
        own = [self._string(string_key("s" + keyword)) for keyword in given]
        tokenizer = self._columns.tokenizer
        plain = not tokenizer.stop_words
        split = [
            [number]
            if plain and _PLAIN_WORD.fullmatch(keyword)
            else [self._string(word_key(word)) for word in tokenizer.keywords((keyword,))]
            for number, keyword in zip(own, given, strict=True)
        ]
        start = np.cumsum([0, *map(len, split)], dtype=np.int64)
        words = RaggedRows(start, np.fromiter(chain.from_iterable(split), np.int64, start[-1]))
        items = RaggedRows(numbers.start, np.array(own, np.int64)[numbers.items])
        return items, numbers.map(words, len(self._strings))

    def _add_posts(
        self, attribute: str, lists: Any, asked: list[tuple[str, object, object]]
    ) -> None:
        """Post the rows under their words, each with its box."""
        items, words = self._read_keywords(attribute, lists)
        column = self._columns.register(Column(ColumnKind.LIST, Property(attribute)))
        geometry_column = -1
        boxes = np.broadcast_to(np.array(EVERYWHERE), (self._count, 4))
        for where, given, _ in asked:
            boxes = _checked_boxes(given, self._columns.space)
            self._rows(f"regions[{where!r}]", boxes)
            geometry_column = self._columns.register(Column(ColumnKind.GEOMETRY, Property(where)))
        without = np.flatnonzero(np.diff(items.start) == 0)
        same = _same_rows(items, words, len(self._strings))
        same[without] = False
        differ = np.setdiff1d(np.flatnonzero(~same), without)
        for accepts, rows, source in (
            (ITEMS | TEXT, np.flatnonzero(same), items),
            (ITEMS, differ, items),
            (TEXT, differ, words),
            (0, without, items),
        ):
            if not len(rows):
                continue
            chosen = source.take(rows) if len(rows) < self._count else source
            form = PostingGroup(column if accepts else -1, geometry_column, accepts, True)
            self._posts.append(
                PostingRows(
                    (form,),
                    np.zeros(len(rows), np.int64),
                    rows,
                    boxes[rows] if len(rows) < self._count else np.ascontiguousarray(boxes),
                    chosen.start,
                    chosen.items,
                )
            )

    def _string(self, key: bytes) -> int:
        return self._strings.setdefault(key, len(self._strings))


def _are_contacts(asked: list[tuple[str, object, object]]) -> bool:
    """Whether no more is asked of places than contact with one box each."""
    return not asked or (
        len(asked) == 1
        and isinstance(asked[0][1], np.ndarray)
        and asked[0][1].ndim == 2
        and asked[0][1].dtype.kind in "fiu"
        and isinstance(asked[0][2], str)
        and asked[0][2].upper() == SpatialFunction.S_INTERSECTS.name
    )


def _checked_boxes(given: Any, space: Space) -> NDArray[np.float64]:
    """Boxes as an (n, 4) array; raises the error of geometries where one is bad."""
    if given.shape[1] == 4 and not np.ma.isMaskedArray(given):
        boxes = given.astype(np.float64)
        if (
            np.isfinite(boxes).all()
            and (boxes[:, 0] < boxes[:, 2]).all()
            and (boxes[:, 1] < boxes[:, 3]).all()
            and (np.abs(boxes) <= space.limits * 2).all()
        ):
            return np.ascontiguousarray(boxes)
    outside = Shapes.read_all(given).problems_outside(space)
    if outside:
        raise GeometryError(outside)
    raise AssertionError("boxes that cannot be used were read as geometries")


def _same_rows(some: RaggedRows, others: RaggedRows, most: int) -> NDArray[np.bool_]:
    """Which rows of distinct numbers hold the same ones."""
    sizes = np.diff(some.start)
    same: NDArray[np.bool_] = sizes == np.diff(others.start)
    if same.all() and np.array_equal(some.items, others.items):
        return same
    rows = np.flatnonzero(same)
    keys = [
        np.sort(np.repeat(rows, sizes[rows]) * most + own.take(rows).items)
        for own in (some, others)
    ]
    same[keys[0][keys[0] != keys[1]] // most] = False
    return same


def _items(what: str, given: Mapping[Any, Any] | None) -> list[tuple[str, Any]]:
    """Attributes and what is given for each."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ModelError(f"{what} must be a mapping of attribute names; saw {given!r:.60}")
    for attribute in given:
        if not isinstance(attribute, str) or not attribute:
            raise ModelError(f"an attribute of {what} must be a name; saw {attribute!r:.60}")
        refuse_surrogate(what, 0, attribute)
    return list(given.items())


def _pair(what: str, given: Any, second: str) -> tuple[object, object]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ModelError(f"{what} must be a pair (geometries, {second}); saw {given!r:.60}")
    return given[0], given[1]


def _distinct(relations: list[Any]) -> Iterable[Any]:
    try:
        return dict.fromkeys(relations)
    except TypeError as error:
        odd = next(name for name in relations if not isinstance(name, Hashable))
        raise _no_relation(odd) from error


def _no_relation(name: object) -> ModelError:
    return ModelError(f"no relation is called {name!r:.40}; give one of {', '.join(_KNOWN)}")


def _names(ids: Sequence[str], subscribers: Sequence[str] | None) -> pa.Table:
    def column(given: Any, what: str) -> pa.Array:
        try:
            if isinstance(given, pa.ChunkedArray):
                given = given.combine_chunks()
            plain = isinstance(given, pa.Array) and given.type == pa.string()
            array = given if plain else pa.array(given, pa.string())
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise ModelError(f"{what} must be strings: {error}") from error
        refuse_bad_bytes(what, array)
        if array.null_count or pc.any(pc.equal(array, "")).as_py():
            raise ModelError(f"{what} must not be null or empty")
        return array

    names = column(ids, "ids")
    given = {"id": names}
    if subscribers is not None:
        given["subscriber"] = column(subscribers, "subscribers")
        if len(given["subscriber"]) != len(names):
            raise ModelError(
                f"there are {len(names):,} ids but {len(given['subscriber']):,} subscribers"
            )
    if pc.count_distinct(names).as_py() < len(names):
        counts = pc.value_counts(names)
        twice = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise ModelError(f"ids must differ; saw {twice!r:.60} more than once")
    return pa.table(given)
