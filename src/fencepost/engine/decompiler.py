"""`condition_of` rebuilds the condition of a subscription that was added as columns.

Such a subscription has no stored expression; its segment holds its checks or its postings.
`replace_geometry` returns the condition of a subscription that moves.
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
from fencepost.kernels.geometry.shape_arrays import AREAS, MIXED, ShapeArrays
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.segment_search import SegmentArrays


def condition_of(segment: SegmentReader, row: int, columns: ColumnRegistry) -> ast.Condition:
    """Return the condition of a row: a conjunction of conditions of `subscribe_columns`."""
    entries, _ = segment.posting_entries_of(np.array([row]))
    if len(entries):
        return condition_of_filter(_filter_of_postings(segment.arrays, entries, columns))
    arrays = segment.arrays
    number = int(np.searchsorted(arrays.filter_subscription, np.uint32(row)))
    low, high = int(arrays.filter_check[number]), int(arrays.filter_check[number + 1])
    operands = _CheckOperands(arrays)
    return condition_of_filter(
        tuple(_term(check, columns, operands) for check in arrays.checks[low:high])
    )


def _filter_of_postings(
    arrays: SegmentArrays, entries: NDArray[np.int64], columns: ColumnRegistry
) -> Filter:
    """Return the filter of a subscription, given its entries in the postings.

    A subscription has one entry for lists and texts, or one for each. The words of a text are
    normalised, so the entry for lists is preferred: it has the words as they were given.
    """
    for entry in entries.tolist():
        group, word = group_and_word_of(arrays.postings, entry)
        if group["list_column"] < 0 or group["accepts"] & check_evaluation.ITEMS:
            break
    terms = []
    if group["geometry_column"] >= 0:
        column = columns.of(Storage.GEOMETRY)[group["geometry_column"]]
        box = ast.Geometry(shapely.box(*arrays.postings.exact[entry]))
        terms.append(Term(RelateCheck(column, ast.SpatialFunction.S_INTERSECTS, box), False))
    if group["list_column"] >= 0:
        column = columns.of(Storage.LIST)[group["list_column"]]
        low, high = arrays.postings.rest_start[entry], arrays.postings.rest_start[entry + 1]
        rest = arrays.postings.rest[low:high].tolist()
        operands = _CheckOperands(arrays)
        keys = sorted(map(operands.string_at, [word, *rest] if word is not None else []))
        words = tuple(ast.String(key[1:].decode()) for key in keys)
        terms.append(
            Term(ListCheck(column, ast.ArrayFunction.A_CONTAINS, ast.ListLiteral(words)), False)
        )
    return tuple(terms)


def _term(check: Any, columns: ColumnRegistry, operands: _CheckOperands) -> Term:
    kind = KINDS[check["kind"]]
    assert kind.decode is not None
    column = columns.of(kind.storage)[check["column"]]
    return Term(
        kind.decode(check, column, operands), bool(check["flags"] & check_evaluation.NEGATED)
    )


class _CheckOperands:
    """Strings, sets and geometries to which the checks of a segment refer by number."""

    def __init__(self, arrays: SegmentArrays) -> None:
        self._arrays = arrays

    def string_at(self, number: int) -> bytes:
        """Return a string of the vocabulary."""
        start = self._arrays.vocabulary.start
        return bytes(self._arrays.vocabulary.bytes[start[number] : start[number + 1]])

    def set_at(self, number: int) -> list[bytes]:
        """Return the strings of a set."""
        start = self._arrays.set_start
        items = self._arrays.set_items[start[number] : start[number + 1]]
        return [self.string_at(item) for item in items.tolist()]

    def geometry_at(self, number: int) -> BaseGeometry:
        """Return a geometry."""
        return geometry_of(self._arrays.shapes, number)


def geometry_of(g: ShapeArrays, row: int) -> BaseGeometry:
    """Return a shape as a Shapely geometry."""
    first, stop = int(g.shapes["chain"][row]), int(g.shapes["chain"][row + 1])
    low, high = int(g.chains["start"][first]), int(g.chains["start"][stop])
    xy = np.column_stack((g.x[low:high], g.y[low:high]))
    chains = np.split(xy, g.chains["start"][first + 1 : stop] - low)
    parts = g.chains["part"][first:stop]
    dimension = int(g.shapes["dimension"][row])
    is_multi = (len(xy) > 1, len(chains) > 1, parts[-1] > parts[0], True)
    geometry = build_shapely(dimension, chains, parts, bool(is_multi[dimension]))
    if dimension == MIXED:
        return shapely.GeometryCollection([_normalized(member) for member in geometry.geoms])
    return _normalized(geometry)


def _normalized(geometry: BaseGeometry) -> BaseGeometry:
    """Return a geometry; if it is an area, with its rings and parts in a fixed order."""
    if shapely.get_dimensions(geometry) < AREAS:
        return geometry
    with np.errstate(all="ignore"):  # GEOS multiplies coordinates, and large ones overflow
        return shapely.normalize(geometry)


_Spatial: TypeAlias = ast.NearCondition | ast.SpatialCondition


def replace_geometry(condition: ast.Condition, attribute: str, geometry: object) -> ast.Condition:
    """Replace the geometry that an attribute is compared with; see `Matcher.move`.

    If the condition has distance conditions on the attribute, only their geometries are replaced.
    """
    replacement = ast.Geometry(geometry_of(Shapes.read_one(geometry).arrays, 0))
    for kind in (ast.NearCondition, ast.SpatialCondition):
        replaced = ast.replace_atoms(
            condition, partial(_replace_in_atom, kind, ast.Property(attribute), replacement)
        )
        if replaced is not condition:
            return replaced
    raise ModelError(
        f"the subscription compares {attribute!r:.60} with no geometry, so there is nothing to "
        "move; name an attribute that it compares with a geometry"
    )


def _replace_in_atom(
    kind: type[_Spatial],
    attribute: ast.Property,
    replacement: ast.Geometry,
    atom: ast.Condition,
) -> ast.Condition:
    if isinstance(atom, kind):
        if atom.left == attribute and isinstance(atom.right, ast.Geometry):
            return replace(atom, right=replacement)
        if atom.right == attribute and isinstance(atom.left, ast.Geometry):
            return replace(atom, left=replacement)
    return atom
