"""The condition of a subscription, put together from its checks: for those added as columns.

`replace_geometry` is the condition of one that moves, with another geometry.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast
from fencepost.engine.columns.check_kinds import KINDS
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.postings.keyword_postings import group_and_word_of
from fencepost.engine.segment import SegmentReader
from fencepost.errors import ModelError
from fencepost.filters.checks import Filter, ListCheck, RelateCheck, Term
from fencepost.filters.filter_conditions import condition_of_filter
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.shapely_objects import build_shapely
from fencepost.kernels.geometry.shape_arrays import AREAS, ShapeArrays
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.segment_search import SegmentArrays


def condition_of(segment: SegmentReader, row: int, columns: ColumnRegistry) -> ast.Condition:
    """A conjunction of what `subscribe_columns` can say."""
    entries, _ = segment.posting_entries_of(np.array([row]))
    if len(entries):
        return condition_of_filter(_posted(segment.arrays, entries, columns))
    arrays = segment.arrays
    number = int(np.searchsorted(arrays.filter_subscription, np.uint32(row)))
    low, high = int(arrays.filter_check[number]), int(arrays.filter_check[number + 1])
    stored = _Stored(arrays)
    return condition_of_filter(
        tuple(_term(check, columns, stored) for check in arrays.checks[low:high])
    )


def _posted(arrays: SegmentArrays, entries: NDArray[np.int64], columns: ColumnRegistry) -> Filter:
    """What an entry of the posts asks for: of two, that for lists has the words as given."""
    for entry in entries.tolist():
        group, word = group_and_word_of(arrays.postings, entry)
        if group["list_column"] < 0 or group["accepts"] & check_evaluation.ITEMS:
            break
    terms = []
    if group["geometry_column"] >= 0:
        column = columns.of(Storage.GEOMETRY)[group["geometry_column"]]
        place = ast.Geometry(shapely.box(*arrays.postings.exact[entry]))
        terms.append(Term(RelateCheck(column, ast.SpatialFunction.S_INTERSECTS, place), False))
    if group["list_column"] >= 0:
        column = columns.of(Storage.LIST)[group["list_column"]]
        low, high = arrays.postings.rest_start[entry], arrays.postings.rest_start[entry + 1]
        rest = arrays.postings.rest[low:high].tolist()
        stored = _Stored(arrays)
        keys = sorted(map(stored.string_at, [word, *rest] if word is not None else []))
        words = tuple(ast.String(key[1:].decode()) for key in keys)
        terms.append(
            Term(ListCheck(column, ast.ArrayFunction.A_CONTAINS, ast.ListLiteral(words)), False)
        )
    return tuple(terms)


def _term(check: Any, columns: ColumnRegistry, stored: _Stored) -> Term:
    kind = KINDS[check["kind"]]
    assert kind.decode is not None
    column = columns.of(kind.storage)[check["column"]]
    return Term(kind.decode(check, column, stored), bool(check["flags"] & check_evaluation.NEGATED))


class _Stored:
    """What checks of a segment refer to."""

    def __init__(self, arrays: SegmentArrays) -> None:
        self._arrays = arrays

    def string_at(self, number: int) -> bytes:
        """A string of the vocabulary."""
        start = self._arrays.vocabulary.start
        return bytes(self._arrays.vocabulary.bytes[start[number] : start[number + 1]])

    def set_at(self, number: int) -> list[bytes]:
        """The strings of a set."""
        start = self._arrays.set_start
        items = self._arrays.set_items[start[number] : start[number + 1]]
        return [self.string_at(item) for item in items.tolist()]

    def geometry_at(self, number: int) -> BaseGeometry:
        """A geometry."""
        return geometry_of(self._arrays.shapes, number)


def geometry_of(g: ShapeArrays, row: int) -> BaseGeometry:
    """A shape as a Shapely geometry."""
    first, stop = int(g.shapes["chain"][row]), int(g.shapes["chain"][row + 1])
    low, high = int(g.chains["start"][first]), int(g.chains["start"][stop])
    xy = np.column_stack((g.x[low:high], g.y[low:high]))
    chains = np.split(xy, g.chains["start"][first + 1 : stop] - low)
    parts = g.chains["part"][first:stop]
    dimension = int(g.shapes["dimension"][row])
    several = (len(xy) > 1, len(chains) > 1, parts[-1] > parts[0])
    found = build_shapely(dimension, chains, parts, bool(several[dimension]))
    if dimension < AREAS:
        return found
    with np.errstate(all="ignore"):  # GEOS multiplies coordinates, however far they are
        return shapely.normalize(found)


_Spatial: TypeAlias = ast.NearCondition | ast.SpatialCondition


def replace_geometry(condition: ast.Condition, attribute: str, geometry: object) -> ast.Condition:
    """The condition with a geometry in place of that with which an attribute is compared.

    Where distances of the attribute are asked for, their geometry moves, and others stay.
    """
    place = ast.Geometry(geometry_of(Shapes.read_one(geometry).arrays, 0))
    for kind in (ast.NearCondition, ast.SpatialCondition):
        found = ast.replace_atoms(
            condition, partial(_replaced, kind, ast.Property(attribute), place)
        )
        if found is not condition:
            return found
    raise ModelError(
        f"nothing is asked of the place of {attribute!r:.60}, so there is nothing to move; name an "
        "attribute that the subscription compares with a geometry"
    )


def _replaced(
    kind: type[_Spatial], own: ast.Property, place: ast.Geometry, atom: ast.Condition
) -> ast.Condition:
    if isinstance(atom, kind):
        if atom.left == own and isinstance(atom.right, ast.Geometry):
            return replace(atom, right=place)
        if atom.right == own and isinstance(atom.left, ast.Geometry):
            return replace(atom, left=place)
    return atom
