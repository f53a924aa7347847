"""A subscription that moves: its condition with another geometry."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

from fencepost.errors import ModelError
from fencepost.language import ast
from fencepost.match.decompile import geometry_of
from fencepost.model.geometry import Shapes

_Spatial: TypeAlias = ast.NearCondition | ast.SpatialCondition


def moved(condition: ast.Condition, attribute: str, geometry: object) -> ast.Condition:
    """The condition with a geometry in place of that with which an attribute is compared.

    Where distances of the attribute are asked for, their geometry moves, and others stay.
    """
    place = ast.Geometry(geometry_of(Shapes.read_one(geometry).arrays, 0))
    for kind in (ast.NearCondition, ast.SpatialCondition):
        found = ast.replaced(condition, partial(_replaced, kind, ast.Property(attribute), place))
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
