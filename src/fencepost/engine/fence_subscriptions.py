"""`Fence`: how a geometry becomes a subscription; and the subscriptions of many geometries.

All fences of one call have the same condition but for the geometry. So the condition is compiled
once, and its checks are repeated for each geometry, without an object for any row. Three kinds of
conditions are compiled row by row instead: those with several filters, those that no event can
fulfil, and those with a check that `condition_of` cannot turn back into a condition, since a
subscription added as columns has no stored expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.cql2 import ast
from fencepost.cql2.keywords import NEAR_FUNCTIONS, SPATIAL_FUNCTIONS, suggest_function
from fencepost.cql2.parser import parse
from fencepost.engine.bulk_columns import check_no_surrogate
from fencepost.engine.columns.check_kinds import can_decode
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.decompiler import geometry_of
from fencepost.engine.filter_table import ROW, FilterTable, TableArrays, encode_keys
from fencepost.engine.postings.keyword_postings import rows_from
from fencepost.engine.subscriptions import Subscription, compile_condition
from fencepost.errors import LanguageError, ModelError
from fencepost.filters.checks import Filter, NearCheck, RelateCheck, Term
from fencepost.filters.normal_form import to_filters
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import Space
from fencepost.kernels.match.check_evaluation import (
    CHECK,
    ITEM_OF,
    SET_ITEM,
    SHAPE_ITEM,
    TWO_SETS_ITEM,
)

RelationName: TypeAlias = Literal[
    "S_INTERSECTS", "S_DISJOINT", "S_EQUALS", "S_TOUCHES", "S_WITHIN", "S_CONTAINS", "S_OVERLAPS",
    "S_CROSSES", "EH_DISJOINT", "EH_MEET", "EH_OVERLAP", "EH_EQUALS", "EH_INSIDE", "EH_CONTAINS",
    "EH_COVERS", "EH_COVEREDBY", "S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_SAMEPLACE", "S_ALLWITHIN",
]  # fmt: skip

_RELATIONS = (*SPATIAL_FUNCTIONS, *NEAR_FUNCTIONS)
_ANY_POINT = {"type": "Point", "coordinates": [0, 0]}
_Related: TypeAlias = ast.SpatialCondition | ast.NearCondition

Ints: TypeAlias = NDArray[np.int64]


class FenceRows(NamedTuple):
    """Geometries that become subscriptions, with their ids.

    Attributes
    ----------
    rows : int64 array
        The row of each in its source.
    ids : pyarrow.Array of string
    subscribers : pyarrow.Array of string, optional
        Left out if each equals the id.
    expires : int64 array
        In nanoseconds since 1970.
    shapes : Shapes
        There may be more than those that become subscriptions.
    shape_rows : int64 array
        The row of `shapes` of each.
    """

    rows: Ints
    ids: pa.Array
    subscribers: pa.Array | None
    expires: Ints
    shapes: Shapes
    shape_rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, kept: Ints) -> FenceRows:
        """Return some of them."""
        numbers = pa.array(kept)
        subscribers = None if self.subscribers is None else self.subscribers.take(numbers)
        return FenceRows(
            self.rows[kept],
            self.ids.take(numbers),
            subscribers,
            self.expires[kept],
            self.shapes,
            self.shape_rows[kept],
        )

    def names(self) -> pa.Table:
        """Return the columns `id` and, if they differ, `subscriber`."""
        columns = {"id": self.ids}
        if self.subscribers is not None:
            columns["subscriber"] = self.subscribers
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class Fence:
    """How geometries become subscriptions; `make_fence` checks the parts.

    Attributes
    ----------
    relation : SpatialCondition or NearCondition
        The relation of the event's geometry to some point, in whose place a geometry comes.
    where : Condition, optional
        A further condition on events.
    """

    relation: _Related
    where: ast.Condition | None

    def table(self, columns: ColumnRegistry, fences: FenceRows) -> TableArrays | None:
        """Return the filters of all fences; None if they must be compiled row by row."""
        filters = self._filters_of_where(columns.space)
        if len(filters) != 1:
            return None
        [relation] = self._filters_of_relation()
        terms = (*relation, *filters[0])
        if not all(can_decode(term.check) for term in terms):
            return None
        prototype = FilterTable(columns, use_postings=False)
        packed = b"".join(ROW.pack(*prototype.row(term)) for term in terms)
        checks = np.frombuffer(packed, CHECK)
        return _repeat(prototype, checks, fences)

    def subscriptions(self, fences: FenceRows, space: Space) -> list[Subscription]:
        """Return the fences as subscriptions with a stored condition each."""
        [(near_or_related,)] = self._filters_of_relation()
        filters = self._filters_of_where(space)
        ids = fences.ids.to_pylist()
        subscribers = ids if fences.subscribers is None else fences.subscribers.to_pylist()
        arrays = fences.shapes.arrays
        subscriptions = []
        for id, subscriber, expires, row in zip(
            ids, subscribers, fences.expires.tolist(), fences.shape_rows.tolist(), strict=True
        ):
            geometry = ast.Geometry(geometry_of(arrays, row))
            check = near_or_related.check
            assert isinstance(check, RelateCheck | NearCheck)
            term = Term(replace(check, geometry=geometry), near_or_related.negated)
            compiled = tuple((term, *further) for further in filters)
            condition = self._condition(geometry)
            subscriptions.append(Subscription(id, condition, subscriber, expires, compiled))
        return subscriptions

    def _condition(self, geometry: ast.Geometry) -> ast.Condition:
        related = replace(self.relation, right=geometry)
        if self.where is None:
            return related
        more = self.where.parts if isinstance(self.where, ast.And) else (self.where,)
        return ast.And((related, *more))

    def _filters_of_relation(self) -> list[Filter]:
        return to_filters(self.relation)

    def _filters_of_where(self, space: Space) -> list[Filter]:
        return [()] if self.where is None else list(compile_condition(self.where, space))


def make_fence(
    relation: str,
    *,
    space: Space,
    distance: float | None = None,
    attribute: Any = "geometry",
    where: str | Mapping[str, object] | ast.Condition | None = None,
) -> Fence:
    """Return how geometries become subscriptions.

    Parameters
    ----------
    relation : str
        A function of the language that relates two geometries, in any case.
    space : Space
    distance : float, optional
        The bound of S_DWITHIN and the other functions of nearness.
    attribute : str
        The attribute of events that holds their geometry.
    where : str, mapping or Condition, optional
        A further condition on events.

    Raises
    ------
    ModelError
        If there is no such relation, if a distance is missing, superfluous or negative, or if
        `where` is no expression.
    """
    name = str(relation).lower()
    if name not in _RELATIONS:
        advice = suggest_function(str(relation), _RELATIONS)
        raise ModelError(f"there is no relation {short_repr(relation)} of geometries; {advice}")
    if not isinstance(attribute, str) or not attribute:
        raise ModelError(f"attribute must be the name of an attribute; saw {short_repr(attribute)}")
    check_no_surrogate("attribute", 0, attribute)
    arguments: list[Any] = [{"property": attribute}, _ANY_POINT]
    if name in NEAR_FUNCTIONS:
        arguments.append(_distance(name, distance, space))
    elif distance is not None:
        raise ModelError(
            f"{name.upper()} compares no distance; leave out the distance, or give the relation "
            "S_DWITHIN"
        )
    related = parse({"op": name, "args": arguments}, space)
    assert isinstance(related, _Related)
    try:
        condition = None if where is None else parse(where, space)
        if condition is not None:
            compile_condition(condition, space)
    except LanguageError as error:
        raise ModelError(f"where cannot be read: {error}") from error
    return Fence(related, condition)


def _distance(name: str, distance: Any, space: Space) -> float:
    if distance is None:
        unit = "metres" if space is Space.WGS84 else "the unit of the coordinates"
        raise ModelError(f"{name.upper()} compares a distance; give a distance, in {unit}")
    try:
        bound = float(distance)
    except (TypeError, ValueError, OverflowError):
        bound = np.nan
    if isinstance(distance, bool | str) or not (isfinite(bound) and bound >= 0):
        raise ModelError(f"the distance is {short_repr(distance)}; give a number of 0 or more")
    return bound


def _repeat(prototype: FilterTable, checks: NDArray[np.void], fences: FenceRows) -> TableArrays:
    """Repeat the checks of one filter for each fence; the first compares the fence's geometry.

    Each repetition has its own sets and geometries, as filters of different subscriptions have.
    """
    count, width = len(fences), len(checks)
    number = np.repeat(np.arange(count), width)
    repeated = np.tile(checks, count)
    kinds_of_items = ITEM_OF[repeated["kind"]]
    has_set = (kinds_of_items == SET_ITEM) | (kinds_of_items == TWO_SETS_ITEM)
    set_sizes = np.diff(prototype.set_start)
    repeated["item"][has_set] += (number[has_set] * len(set_sizes)).astype(np.uint32)
    has_shape = kinds_of_items == SHAPE_ITEM
    # The fences' own geometries come first, and then those of `where`, fence by fence.
    others = Shapes.read_all(prototype.geometries[1:])
    items = repeated["item"][has_shape].astype(np.int64)
    own = number[has_shape]
    repeated["item"][has_shape] = np.where(
        items == 0, own, count + own * len(others) + items - 1
    ).astype(np.uint32)
    text, string_start = encode_keys(list(prototype.strings))
    set_start = np.zeros(count * len(set_sizes) + 1, np.int64)
    np.cumsum(np.tile(set_sizes, count), out=set_start[1:])
    return TableArrays(
        repeated,
        np.arange(count + 1) * width,
        np.arange(count),
        set_start,
        np.tile(np.array(prototype.set_items, np.int64), count),
        text,
        string_start,
        Shapes.gather(
            [
                (fences.shapes.arrays, fences.shape_rows),
                (others.arrays, np.tile(np.arange(len(others)), count)),
            ]
        ),
        rows_from([]),
    )
