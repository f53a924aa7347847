"""`parse` reads an expression in any form and returns its syntax tree."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.cql2.ast import Boolean, Condition
from fencepost.cql2.condition_builder import compile_condition
from fencepost.cql2.expression_limits import check_text, too_deep_message
from fencepost.cql2.json_reader import decode_json, read_json
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError
from fencepost.cql2.text_reader import read_text
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import Space


def parse(
    expression: str | Mapping[str, object] | bool | Condition, space: Space = Space.PLANAR
) -> Condition:
    """Return the syntax tree of an expression.

    Parameters
    ----------
    expression : str, mapping, bool or Condition
        CQL2 text; CQL2 JSON as text, which begins with a brace; or CQL2 JSON as mappings and
        lists. ``docs/language.md`` lists what is supported, and the limits. A tree is returned
        unchanged.
    space : Space
        What coordinates mean. In lon/lat a BBOX may cross the antimeridian; it is cut into two
        boxes there.

    Returns
    -------
    Condition
        Names are resolved, AND in AND and OR in OR are flat, lists have no repeated items, and
        geometries are valid.

    Raises
    ------
    LanguageError
        If the expression cannot be read, has no meaning or is too large. No other error is
        raised, and no expression ends the process.
    """
    try:
        if isinstance(expression, str):
            check_text(expression)
            return _parse_string(expression, space)
        if isinstance(expression, bool):
            return Boolean(expression)
        if isinstance(expression, Mapping):
            return _parse_json(expression, space)
        if isinstance(expression, Condition):
            return expression
    except RecursionError:  # the caller has used up most of the stack
        raise LanguageError(too_deep_message()) from None
    raise LanguageError(
        f"an expression is CQL2 text or CQL2 JSON, not a {type(expression).__name__}; "
        f"saw {short_repr(expression)}; give a str or a dict"
    )


def _parse_string(text: str, space: Space) -> Condition:
    if text.lstrip().startswith("{"):
        return _parse_json(decode_json(text), space)
    node, tokens = read_text(text)
    try:
        return _compiled(node, space)
    except SemanticError as error:
        start, end = tokens.start(error.node.first), tokens.end(error.node.last)
        raise error.error_in_text(text, start, end) from None


def _parse_json(value: object, space: Space) -> Condition:
    try:
        return _compiled(read_json(value), space)
    except SemanticError as error:
        raise error.error_in_json() from None


def _compiled(node: ParseNode, space: Space) -> Condition:
    return compile_condition(split_antimeridian_boxes(node) if space is Space.WGS84 else node)


_WEST, _EAST = -180, 180


def split_antimeridian_boxes(node: ParseNode) -> ParseNode:
    """Replace each BBOX that crosses the antimeridian by the two boxes beside it."""
    if node.kind is NodeKind.CALL and node.value == "bbox":
        return _cut(node)
    if not node.args:
        return node
    return node._replace(args=tuple(map(split_antimeridian_boxes, node.args)))


def _cut(node: ParseNode) -> ParseNode:
    """Return a box that crosses the antimeridian as two; any other node is returned unchanged.

    `compile_bbox` reads or rejects the other boxes.
    """
    numbers = [arg.value for arg in node.args if arg.kind is NodeKind.NUMBER]
    if len(numbers) < len(node.args) or len(numbers) not in (4, 6):
        return node
    xmin, ymin, xmax, ymax = numbers if len(numbers) == 4 else (*numbers[:2], *numbers[3:5])
    if not (_WEST <= xmax < xmin <= _EAST and ymin < ymax):
        return node
    rings = [
        [[[x0, ymin], [x1, ymin], [x1, ymax], [x0, ymax], [x0, ymin]]]
        for x0, x1 in ((xmin, _EAST), (_WEST, xmax))
        if x0 < x1
    ]
    if not rings:
        return node
    value = {"type": "MultiPolygon", "coordinates": rings}
    return node._replace(kind=NodeKind.GEOMETRY, value=value, args=())
