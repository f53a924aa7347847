"""Indexes for `Matcher` by Siena Fast Forwarding, and Algorithm 1 for two polygons."""

from __future__ import annotations

import sys

from fencepost.engine.index_registry import MatcherIndex
from fencepost.errors import ModelError
from fencepost.events.value_types import plain_number
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import Relation
from fencepost.papers.regions.algorithm1 import relations_sampled
from fencepost.papers.regions.sff import ForwardingTable
from fencepost.papers.table_engine import table_index


def sff() -> MatcherIndex:
    """Return Siena Fast Forwarding as an index for `Matcher`, with regions in a list."""
    return table_index("sff", lambda _: ForwardingTable("list"))


def cr_tree(density: float | None = None) -> MatcherIndex:
    """Return Siena Fast Forwarding as an index for `Matcher`, with regions in the CR-tree.

    Parameters
    ----------
    density : float, optional
        Relate simple polygons by Algorithm 1, which is approximate, with this number of samples
        for each unit of length. If left out, relations are exact.

    Raises
    ------
    ModelError
        If the density is not a number above 0.
    """
    if density is None:
        return table_index("cr-tree", lambda _: ForwardingTable("cr-tree"))
    valid_density = parse_density(density)
    return table_index("cr-tree", lambda _: ForwardingTable("cr-tree", "sampled", valid_density))


def relate_by_samples(a: object, b: object, density: float) -> Relation:
    """Return the relation of polygon `a` to polygon `b` by Algorithm 1, which is approximate.

    A gap narrower than half the distance between two samples counts as contact.

    Parameters
    ----------
    a, b : Shapely geometry, WKT, WKB or GeoJSON mapping
        Polygons without holes. `relations_sampled` relates many polygons in one call.
    density : float
        The number of samples for each unit of length, besides the vertices.

    Raises
    ------
    GeometryError
        If a geometry is empty or invalid; the error has the reason and the position.
    ModelError
        If the density is not a number above 0, or a geometry is not a polygon of one ring.

    Examples
    --------
    >>> square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
    >>> near = "POLYGON ((4.01 0, 8 0, 8 5, 2 5, 2 4.01, 4.01 4.01, 4.01 0))"
    >>> relate_by_samples(square, near, density=10).value
    'meets'
    """
    first, second = Shapes.read_one(a), Shapes.read_one(b)
    return Relation.from_code(int(relations_sampled(first, second, parse_density(density))[0]))


def parse_density(density: object) -> float:
    """Return a density of samples; raise ModelError if it is not a number above 0."""
    number = plain_number(density)
    if number is None or not 0 < number <= sys.float_info.max:
        raise ModelError(
            "density must be a number above 0, the samples for each unit of length (10,000 over "
            f"a map's extent is 10000 / (width + height)); saw {density!r:.40}"
        )
    return float(number)
