"""Geometries of subscriptions that lie where the matcher's space has no coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.model.geometry import Shapes
from fencepost.model.space import Space


def refuse_outside(condition: ast.Condition, space: Space) -> None:
    """Raise LanguageError where a condition names such a geometry."""
    most_x, most_y = space.limits
    for geometry in _geometries(condition):
        x0, y0, x1, y1 = geometry.value.bounds
        if max(-x0, x1) > most_x or max(-y0, y1) > most_y:
            [problem] = Shapes.read_one(geometry.value).problems_outside(space)
            raise LanguageError(f"a geometry of the expression has {problem}")


def _geometries(node: object) -> Iterator[ast.Geometry]:
    if isinstance(node, ast.Geometry):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _geometries(part)
    elif not isinstance(node, ast.Items):
        for name in getattr(node, "__slots__", ()):
            yield from _geometries(getattr(node, name))
