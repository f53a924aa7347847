"""Subscriptions given as columns: straight to a table of filters, without parsing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.columns import Columns
from fencepost.index.segment import NEVER, build
from fencepost.index.table import TableArrays, encode_keys, string_key, word_key
from fencepost.kernels import matching
from fencepost.kernels.matching import CHECK
from fencepost.language.ast import Property, Spatial
from fencepost.match.catalogue import SCHEMA, Shelf
from fencepost.model.geometry import Shapes
from fencepost.plan import relate, values
from fencepost.plan.checks import Column, Kind

_LISTS = (list, tuple, set, frozenset, np.ndarray)
_KNOWN = {function.name: function for function in Spatial}


class ColumnSubscriptions:
    """What `Matcher.subscribe_columns` was given, checked and turned into checks."""

    def __init__(
        self,
        columns: Columns,
        ids: Sequence[str],
        subscribers: Sequence[str] | None,
        regions: Mapping[str, tuple[object, object]] | None,
        within: Mapping[str, tuple[object, object]] | None,
        keywords: Mapping[str, Sequence[Sequence[str]]] | None,
        equals: Mapping[str, Sequence[object]] | None,
    ) -> None:
        self._columns = columns
        self._names = _names(ids, subscribers)
        self._count = self._names.num_rows
        self._checks: list[NDArray[np.void]] = []
        self._owners: list[NDArray[np.int64]] = []
        self._shapes: list[Shapes] = []
        self._sets: list[list[int]] = []
        self._strings: dict[bytes, int] = {}
        for attribute, pair in _items("regions", regions):
            self._add_regions(attribute, *_pair(f"regions[{attribute!r}]", pair, "relations"))
        for attribute, pair in _items("within", within):
            self._add_within(attribute, *_pair(f"within[{attribute!r}]", pair, "distances"))
        for attribute, given in _items("equals", equals):
            self._add_equals(attribute, given)
        for attribute, lists in _items("keywords", keywords):
            self._add_keywords(attribute, lists)

    @property
    def ids(self) -> list[str]:
        """The ids, row by row."""
        found: list[str] = self._names.column("id").to_pylist()
        return found

    def shelf(self) -> Shelf:
        """The subscriptions as a segment with its names."""
        checks = np.concatenate([np.empty(0, CHECK), *self._checks])
        owners = np.concatenate([np.empty(0, np.int64), *self._owners])
        order = np.lexsort((checks["kind"], owners))
        ends = np.searchsorted(owners[order], np.arange(self._count + 1))
        text, start = encode_keys(list(self._strings))
        sizes = np.array([0, *map(len, self._sets)], np.int64)
        table = TableArrays(
            checks[order],
            ends.astype(np.int64),
            np.arange(self._count),
            np.cumsum(sizes),
            np.array([item for one in self._sets for item in one], np.int64),
            text,
            start,
            Shapes.gather([(s.arrays, np.arange(len(s))) for s in self._shapes]),
        )
        expires = np.full(self._count, NEVER, np.int64)
        return Shelf(build(table, expires), self._names)

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
        checks["column"] = self._columns.number(column)
        self._checks.append(checks)
        self._owners.append(owners)
        return checks

    def _add_shapes(self, what: str, geometries: object) -> NDArray[np.int64]:
        shapes = Shapes.read_all(geometries)
        self._rows(what, shapes)
        base = sum(map(len, self._shapes))
        self._shapes.append(shapes)
        return np.arange(len(shapes)) + base

    def _add_regions(self, attribute: str, geometries: object, functions: object) -> None:
        rows = self._add_shapes(f"regions[{attribute!r}]", geometries)
        checks = self._new(
            matching.RELATE, Column(Kind.GEOMETRY, Property(attribute)), np.arange(self._count)
        )
        checks["item"] = rows
        everywhere = isinstance(functions, str)
        if not everywhere:
            self._rows(f"the relations of regions[{attribute!r}]", functions)
        named = [functions] if everywhere else list(functions)  # type: ignore[call-overload]
        for name in dict.fromkeys(named):
            function = _KNOWN.get(str(name).upper())
            if function is None:
                raise ModelError(
                    f"no relation is called {name!r:.40}; give one of {', '.join(_KNOWN)}"
                )
            mine = slice(None) if everywhere else np.array([n == name for n in named])
            checks["function"][mine] = relate.CODE[function]
            for dimension, field in enumerate(("points_mask", "lines_mask", "areas_mask")):
                checks[field][mine] = relate.mask(function, dimension)

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
            matching.NEAR, Column(Kind.GEOMETRY, Property(attribute)), np.arange(self._count)
        )
        checks["item"] = rows
        checks["low"] = reach
        checks["function"] = matching.DWITHIN

    def _add_equals(self, attribute: str, given: Sequence[object]) -> None:
        self._rows(f"equals[{attribute!r}]", given)
        listed = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
        own = Property(attribute)
        strings = [k for k, v in enumerate(listed) if isinstance(v, str)]
        flags = [k for k, v in enumerate(listed) if values.boolean_of(v) is not None]
        numbers = [k for k, v in enumerate(listed) if _is_plain_number(v)]
        if strings:
            checks = self._new(matching.MEMBER, Column(Kind.STRING, own), np.array(strings))
            base = len(self._sets)
            self._sets.extend([self._text(attribute, k, listed[k])] for k in strings)
            checks["item"] = np.arange(base, len(self._sets))
        if flags:
            checks = self._new(matching.BOOLEAN, Column(Kind.BOOLEAN, own), np.array(flags))
            true = np.array([bool(listed[k]) for k in flags])
            checks["flags"] = np.where(true, matching.ALLOWS_TRUE, matching.ALLOWS_FALSE)
        if numbers:
            checks = self._new(matching.RANGE, Column(Kind.NUMBER, own), np.array(numbers))
            pairs = np.array([values.number_of(listed[k]) for k in numbers])
            checks["low"] = checks["high"] = pairs[:, 0]
            checks["low_rest"] = checks["high_rest"] = pairs[:, 1]
            checks["flags"] = matching.LOW_CLOSED | matching.HIGH_CLOSED
        missing = [k for k, v in enumerate(listed) if values.is_missing(v)]
        if len(strings) + len(flags) + len(numbers) + len(missing) < self._count:
            known = {*strings, *flags, *numbers, *missing}
            bad = next(k for k in range(self._count) if k not in known)
            raise ModelError(
                f"equals[{attribute!r}] takes strings, booleans and numbers of up to 106 bits; saw "
                f"{listed[bad]!r:.60} in row {bad}"
            )

    def _add_keywords(self, attribute: str, lists: Sequence[Sequence[str]]) -> None:
        self._rows(f"keywords[{attribute!r}]", lists)
        listed = lists.to_pylist() if hasattr(lists, "to_pylist") else lists
        owners, base = [], len(self._sets)
        for row, items in enumerate(listed):
            if items is None or (isinstance(items, _LISTS) and len(items) == 0):
                continue
            if not isinstance(items, _LISTS) or not all(isinstance(item, str) for item in items):
                raise ModelError(
                    f"keywords[{attribute!r}] takes lists of strings; row {row} is {items!r:.60}"
                )
            owners.append(row)
            for item in items:
                _writable(f"keywords[{attribute!r}]", row, item)
            self._sets.append(
                [self._string(b"s" + string_key(item)) for item in dict.fromkeys(items)]
            )
            words = self._columns.tokeniser.keywords(items)
            self._sets.append([self._string(word_key(word)) for word in words])
        checks = self._new(
            matching.LIST, Column(Kind.LIST, Property(attribute)), np.array(owners, np.int64)
        )
        checks["item"] = np.arange(base, len(self._sets), 2)
        checks["function"] = matching.CONTAINS
        checks["flags"] = matching.TOKENS

    def _text(self, attribute: str, row: int, text: Any) -> int:
        plain = str.__str__(text)
        _writable(f"equals[{attribute!r}]", row, plain)
        return self._string(string_key(plain))

    def _string(self, key: bytes) -> int:
        return self._strings.setdefault(key, len(self._strings))


def _items(what: str, given: Mapping[Any, Any] | None) -> list[tuple[str, Any]]:
    """Attributes and what is given for each."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ModelError(f"{what} must be a mapping of attribute names; saw {given!r:.60}")
    for attribute in given:
        if not isinstance(attribute, str) or not attribute:
            raise ModelError(f"an attribute of {what} must be a name; saw {attribute!r:.60}")
        _writable(what, 0, attribute)
    return list(given.items())


def _pair(what: str, given: Any, second: str) -> tuple[object, object]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ModelError(f"{what} must be a pair (geometries, {second}); saw {given!r:.60}")
    return given[0], given[1]


def _writable(what: str, row: int, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{what} holds a lone surrogate in row {row}: {text!r:.60}; leave that character out"
        ) from error


def _is_plain_number(value: object) -> bool:
    """Whether a value is a finite number that its pair of doubles holds."""
    number = values.plain_number(value)
    if number is None or (isinstance(number, float) and not np.isfinite(number)):
        return False
    return values.ordinary(number)


def _names(ids: Sequence[str], subscribers: Sequence[str] | None) -> pa.Table:
    def column(given: Any, what: str) -> pa.Array:
        try:
            array = pa.array(given, pa.string())
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise ModelError(f"{what} must be strings: {error}") from error
        if array.null_count or pc.any(pc.equal(array, "")).as_py():
            raise ModelError(f"{what} must not be null or empty")
        return array

    names = column(ids, "ids")
    owners = names if subscribers is None else column(subscribers, "subscribers")
    if len(owners) != len(names):
        raise ModelError(f"there are {len(names):,} ids but {len(owners):,} subscribers")
    if pc.count_distinct(names).as_py() < len(names):
        counts = pc.value_counts(names)
        twice = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise ModelError(f"ids must differ; saw {twice!r:.60} more than once")
    return pa.table([names, owners, pa.nulls(len(names), pa.string())], schema=SCHEMA)
