"""`relate` and its batch forms: the topological relations of geometries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError, ModelError
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import Relation
from fencepost.kernels.geometry.area_relations import (
    MATRIX_OF_FACTS,
    RELATION_OF_FACTS,
    relate_areas,
)
from fencepost.kernels.geometry.de9im import relations_of_matrices
from fencepost.kernels.geometry.edge_trees import new_tree_scratch
from fencepost.kernels.geometry.relation_matrix import compute_matrices
from fencepost.kernels.geometry.shape_arrays import AREAS

Codes = NDArray[np.uint8]


def relate(a: object, b: object) -> Relation:
    """Return the relation of geometry `a` to geometry `b`: exactly one of eight.

    Parameters
    ----------
    a, b : Shapely geometry, WKT, WKB or GeoJSON mapping
        Points, lines or polygons (with holes), single, multi or in a collection. Z is ignored.

    Returns
    -------
    Relation
        Exact for every finite double; ``relate(b, a)`` is its converse.

    Raises
    ------
    GeometryError
        If a geometry is empty or invalid, with the reason and the location.

    Examples
    --------
    >>> relate("POINT (1 1)", "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
    <Relation.INSIDE: 'inside'>
    """
    first, second = Shapes.read_one(a), Shapes.read_one(b)
    return Relation.from_code(int(relations(first, second)[0]))


def relate_one_to_many(a: object, many: object) -> Codes:
    """Return the relations of one geometry to each of many, as codes.

    Parameters
    ----------
    a : geometry, as in `relate`
    many : list or array of geometries, GeoSeries, GeoArrow array, (n, 4) boxes, or Shapes

    Returns
    -------
    array of uint8
        ``Relation.from_code(code)`` returns the relation of a code.
    """
    return relations(Shapes.read_one(a), _shapes(many))


def relate_pairs(a: object, b: object) -> Codes:
    """Return the relations of ``a[k]`` to ``b[k]``, as codes; see `relate_one_to_many`."""
    first, second = _shapes(a), _shapes(b)
    if len(first) != len(second):
        raise ModelError(
            f"relate_pairs needs equally many geometries on both sides; saw {len(first)} and "
            f"{len(second)}"
        )
    return relations(first, second)


def relations(first: Shapes, second: Shapes) -> Codes:
    """Return the relation codes of shapes, one to many or row by row; all must be usable."""
    facts, matrices, both_areas = _compute(first, second, full=0)
    codes = np.empty(len(second), np.uint8)
    codes[both_areas] = RELATION_OF_FACTS[facts]
    other_codes = np.empty(len(matrices), np.uint8)
    relations_of_matrices(matrices, other_codes)
    codes[~both_areas] = other_codes
    return codes


def matrices(first: Shapes, second: Shapes) -> NDArray[np.int64]:
    """Return packed DE-9IM matrices (`geometry.relation`), one to many or row by row."""
    facts, other_matrices, both_areas = _compute(first, second, full=1)
    packed = np.empty(len(second), np.int64)
    packed[both_areas] = MATRIX_OF_FACTS[facts]
    packed[~both_areas] = other_matrices
    return packed


def _compute(
    first: Shapes, second: Shapes, full: int
) -> tuple[Codes, NDArray[np.int64], NDArray[np.bool_]]:
    """Return the facts of pairs of areas, the matrices of other pairs, and a mask of the former.

    full : 0 omits what the eight relations do not need; 1 computes whole matrices.
    """
    scratch = new_tree_scratch(max(first.max_chains, second.max_chains))
    areas = first.arrays.shapes["dimension"][:-1] == AREAS
    both_areas = areas & (second.arrays.shapes["dimension"][:-1] == AREAS)
    rows = np.arange(len(both_areas))

    def rows_of_first(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        return pairs if len(first) > 1 else rows[:1]

    pairs = rows[both_areas]
    facts = np.empty(len(pairs), np.uint8)
    if len(pairs):
        relate_areas(first.arrays, second.arrays, rows_of_first(pairs), pairs, full, scratch, facts)
    pairs = rows[~both_areas]
    matrices = np.empty(len(pairs), np.int64)
    if len(pairs):
        compute_matrices(
            first.arrays, second.arrays, rows_of_first(pairs), pairs, full, scratch, matrices
        )
    return facts, matrices, both_areas


def _shapes(values: object) -> Shapes:
    """Read geometries. `Shapes` are returned unchanged, so that callers can reuse them."""
    if not isinstance(values, Shapes):
        return Shapes.read_all(values)
    if values.problems:
        raise GeometryError(values.problems)
    return values
