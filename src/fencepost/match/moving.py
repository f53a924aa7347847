"""A subscription that moves: its condition with another geometry."""

from __future__ import annotations

from dataclasses import replace
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
        found = _replaced(condition, kind, attribute, place)
        if found is not condition:
            return found
    raise ModelError(
        f"nothing is asked of the place of {attribute!r:.60}, so there is nothing to move; name an "
        "attribute that the subscription compares with a geometry"
    )


def _replaced(
    condition: ast.Condition, kind: type[_Spatial], attribute: str, place: ast.Geometry
) -> ast.Condition:
    match condition:
        case ast.And(parts) | ast.Or(parts):
            changed = tuple(_replaced(part, kind, attribute, place) for part in parts)
            same = all(a is b for a, b in zip(changed, parts, strict=True))
            return condition if same else replace(condition, parts=changed)
        case ast.Not(part):
            inner = _replaced(part, kind, attribute, place)
            return condition if inner is part else ast.Not(inner)
        case ast.NearCondition(_, left, right) | ast.SpatialCondition(_, left, right):
            if isinstance(condition, kind):
                own = ast.Property(attribute)
                if left == own and isinstance(right, ast.Geometry):
                    return replace(condition, right=place)
                if right == own and isinstance(left, ast.Geometry):
                    return replace(condition, left=place)
    return condition
