"""Geometries of subscriptions that lie where the matcher's space has no coordinates."""

from __future__ import annotations

from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.model.geometry import Shapes
from fencepost.model.space import Space


def refuse_outside(condition: ast.Condition, space: Space) -> None:
    """Raise LanguageError where a condition names such a geometry."""
    most_x, most_y = space.limits
    for node in ast.walk(condition, ast.Items):
        if not isinstance(node, ast.Geometry):
            continue
        x0, y0, x1, y1 = node.value.bounds
        if max(-x0, x1) > most_x or max(-y0, y1) > most_y:
            [problem] = Shapes.read_one(node.value).problems_outside(space)
            raise LanguageError(f"a geometry of the expression has {problem}")
