"""Conditions and regions written in the notation."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.composite.conditions import Asked, Place, Region, is_name
from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.language.ast import Condition, Value
from fencepost.model.raw_shapes import shown
from fencepost.papers.events.notation.places import placed


def render_condition(condition: Condition, geometry: str = "geometry") -> str:
    """A condition on one event: operators with regions, then the predicates in brackets.

    What is about the place comes first, in the order of the condition, and all the rest behind it.

    Raises
    ------
    LanguageError
        Where the notation cannot say it.
    """
    parts = condition.parts if isinstance(condition, ast.And) else (condition,)
    operators: list[str] = []
    predicates: list[str] = []
    for part in parts:
        found = placed(part, ast.Property(geometry))
        if found is not None:
            asked, region = found
            operators.append(render_operator(asked, render_region(region), of_region=True))
        elif part != ast.Boolean(True):
            predicates.append(_predicate(part))
    return "".join(operators) + "(" + ";".join(predicates) + ")"


def render_operator(asked: Asked, argument: str, of_region: bool) -> str:
    """An operator, given what stands in its brackets first."""
    match asked.place:
        case Place.IN:
            return f"@({argument})" if of_region else f"IN({argument})"
        case Place.OVLP:
            return f"OVLP({argument})"
        case Place.SPL:
            return f"SPL({argument};{asked.distance!r})"
    assert asked.compare is not None
    tolerance = f";{asked.tolerance!r}" if asked.compare is ast.Compare.EQ else ""
    return f"DIST({argument};{asked.compare.value};{asked.distance!r}{tolerance})"


def render_region(region: Region) -> str:
    """A region: points, or a circle.

    Raises
    ------
    LanguageError
        Where it is no point, line of two points or convex polygon.
    """
    place = region.geometry.value
    if region.radius:
        return f"Circle({place.x!r},{place.y!r},{region.radius!r})"
    own = ast.Property("geometry")
    known = placed(ast.SpatialCondition(ast.Spatial.S_INTERSECTS, own, region.geometry), own)
    if known is None:
        raise LanguageError(
            f"OPS4ST has points, circles and convex polygons only; saw {shown(place)}; "
            "keep it in CQL2, or in the JSON of the composite"
        )
    points = place.exterior.coords[:-1] if place.geom_type == "Polygon" else place.coords
    return ",".join(f"({float(x)!r},{float(y)!r})" for x, y, *_ in points)


def _predicate(part: Condition) -> str:
    match part:
        case ast.Comparison(op, ast.Property(name), value):
            kind, written = _literals([value], part)
            return f"{kind}:{_name(name)}{op.value}{written[0]}"
        case ast.IsNull(ast.Property(name)):
            return f"STRING:{_name(name)} IS NULL"
        case ast.Not(ast.IsNull(ast.Property(name))):
            return f"STRING:{_name(name)} IS NOT NULL"
        case ast.Not(inner):
            kind, name, rest = _worded(inner, part)
            return f"{kind}:{_name(name)} NOT {rest}"
    kind, name, rest = _worded(part, part)
    return f"{kind}:{_name(name)} {rest}"


def _worded(part: Condition, whole: Condition) -> tuple[str, str, str]:
    """The type, the attribute and the rest of a condition whose operator is a word."""
    match part:
        case ast.Between(ast.Property(name), low, high):
            kind, (first, second) = _literals([low, high], whole)
            return kind, name, f"BETWEEN {first} AND {second}"
        case ast.In(ast.Property(name), items) if items:
            kind, written = _literals(items, whole)
            return kind, name, f"IN ({', '.join(written)})"
        case ast.Like(ast.Property(name), ast.String() as pattern):
            kind, written = _literals([pattern], whole)
            return kind, name, f"LIKE {written[0]}"
    raise _unsayable(whole)


def _literals(values: Iterable[Value], whole: Condition) -> tuple[str, list[str]]:
    """The type of some literals, and each as it is written."""
    kinds, written = set(), []
    for value in values:
        if isinstance(value, ast.Number):
            kinds.add("ARITH")
            written.append(repr(value.value))
        elif isinstance(value, ast.String):
            kinds.add("STRING")
            written.append(_quoted(value.value))
        else:
            raise _unsayable(whole)
    if len(kinds) != 1:
        raise _unsayable(whole)
    return kinds.pop(), written


def _name(name: str) -> str:
    return name if is_name(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _unsayable(part: Condition) -> LanguageError:
    return LanguageError(
        f"OPS4ST cannot say this condition; saw {shown(part)}; it has conjunctions of predicates "
        "on strings and numbers, and of places: keep the expression in CQL2"
    )
