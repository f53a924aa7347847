"""The system on regions as the rest of Fencepost meets it: indexes of a `Matcher`, Algorithm 1."""

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
    """Siena Fast Forwarding as the index of a `Matcher`, with constraints on regions in a list."""
    return table_index("sff", lambda _: ForwardingTable("list"))


def cr_tree(density: float | None = None) -> MatcherIndex:
    """Siena Fast Forwarding as the index of a `Matcher`, with regions in the CR-tree.

    Parameters
    ----------
    density : float, optional
        Relate simple polygons by Algorithm 1, with so many samples for each unit of length:
        approximately. Left out, relations are exact.

    Raises
    ------
    ModelError
        Where the density is no number above 0.
    """
    if density is None:
        return table_index("cr-tree", lambda _: ForwardingTable("cr-tree"))
    chosen = checked_density(density)
    return table_index("cr-tree", lambda _: ForwardingTable("cr-tree", "sampled", chosen))


def relate_by_samples(a: object, b: object, density: float) -> Relation:
    """The relation of polygon `a` to polygon `b` by Algorithm 1: approximately.

    What comes nearer than half the distance of two samples is taken for contact.

    Parameters
    ----------
    a, b : Shapely geometry, WKT, WKB or GeoJSON mapping
        Polygons without holes. `relations_sampled` takes many.
    density : float
        The samples for each unit of length, besides the vertices.

    Raises
    ------
    GeometryError
        Where a geometry is empty or not valid, with the reason and the place.
    ModelError
        Where the density is no number above 0, or a geometry is no polygon of one ring.

    Examples
    --------
    >>> square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
    >>> near = "POLYGON ((4.01 0, 8 0, 8 5, 2 5, 2 4.01, 4.01 4.01, 4.01 0))"
    >>> relate_by_samples(square, near, density=10).value
    'meets'
    """
    first, second = Shapes.read_one(a), Shapes.read_one(b)
    return Relation.from_code(int(relations_sampled(first, second, checked_density(density))[0]))


def checked_density(density: object) -> float:
    """A density of samples that somebody gave, refused where it is none."""
    number = plain_number(density)
    if number is None or not 0 < number <= sys.float_info.max:
        raise ModelError(
            "density must be a number above 0, the samples for each unit of length (10,000 over "
            f"a map's extent is 10000 / (width + height)); saw {density!r:.40}"
        )
    return float(number)
