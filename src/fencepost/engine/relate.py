"""`relate` and its batch forms: geometries in, relations out."""

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
    """The relation of geometry `a` to geometry `b`: exactly one of eight.

    Parameters
    ----------
    a, b : Shapely geometry, WKT, WKB or GeoJSON mapping
        Points, lines, polygons (with holes) or several of one kind. Z is ignored.

    Returns
    -------
    Relation
        Exact for every finite double; ``relate(b, a)`` is its converse.

    Raises
    ------
    GeometryError
        Where a geometry is empty or not valid, with the reason and the place.

    Examples
    --------
    >>> relate("POINT (1 1)", "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))").value
    'inside'
    """
    first, second = Shapes.read_one(a), Shapes.read_one(b)
    return Relation.from_code(int(relations(first, second)[0]))


def relate_one_to_many(a: object, many: object) -> Codes:
    """The relations of one geometry to each of many, as codes.

    Parameters
    ----------
    a : a geometry, as in `relate`
    many : list or array of geometries, GeoSeries, GeoArrow array, (n, 4) boxes, or Shapes

    Returns
    -------
    array of uint8
        ``Relation.from_code(code)`` names each.
    """
    return relations(Shapes.read_one(a), _shapes(many))


def relate_pairs(a: object, b: object) -> Codes:
    """The relations of ``a[k]`` to ``b[k]``, as codes; see `relate_one_to_many`."""
    first, second = _shapes(a), _shapes(b)
    if len(first) != len(second):
        raise ModelError(
            f"relate_pairs needs as many geometries on either side; got {len(first)} and "
            f"{len(second)}"
        )
    return relations(first, second)


def relations(first: Shapes, second: Shapes) -> Codes:
    """Relation codes of shapes that are all usable: one to many, or row by row."""
    facts, matrices, both_areas = _compute(first, second, whole=0)
    codes = np.empty(len(second), np.uint8)
    codes[both_areas] = RELATION_OF_FACTS[facts]
    others = np.empty(len(matrices), np.uint8)
    relations_of_matrices(matrices, others)
    codes[~both_areas] = others
    return codes


def matrices(first: Shapes, second: Shapes) -> NDArray[np.int64]:
    """Packed DE-9IM matrices (`fencepost.geometry.relation`): one to many, or row by row."""
    facts, others, both_areas = _compute(first, second, whole=1)
    packed = np.empty(len(second), np.int64)
    packed[both_areas] = MATRIX_OF_FACTS[facts]
    packed[~both_areas] = others
    return packed


def _compute(
    first: Shapes, second: Shapes, whole: int
) -> tuple[Codes, NDArray[np.int64], NDArray[np.bool_]]:
    """Facts of the pairs of areas, matrices of the other pairs, and which pairs are which."""
    room = new_tree_scratch(max(first.max_chains, second.max_chains))
    areas = first.arrays.shapes["dimension"][:-1] == AREAS
    both_areas = areas & (second.arrays.shapes["dimension"][:-1] == AREAS)
    rows = np.arange(len(both_areas))

    def left(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        return chosen if len(first) > 1 else rows[:1]

    chosen = rows[both_areas]
    facts = np.empty(len(chosen), np.uint8)
    if len(chosen):
        relate_areas(first.arrays, second.arrays, left(chosen), chosen, whole, room, facts)
    chosen = rows[~both_areas]
    matrices = np.empty(len(chosen), np.int64)
    if len(chosen):
        compute_matrices(first.arrays, second.arrays, left(chosen), chosen, whole, room, matrices)
    return facts, matrices, both_areas


def _shapes(values: object) -> Shapes:
    """Shapes given ready-made are taken as they are, so that they can be used many times."""
    if not isinstance(values, Shapes):
        return Shapes.read_all(values)
    if values.problems:
        raise GeometryError(values.problems)
    return values
