"""The front door: an expression in, its tree out.

In lon/lat a BBOX across the antimeridian is cut there, into the two boxes that it is.
"""

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
    """The tree of an expression.

    Parameters
    ----------
    expression : str, mapping, bool or Condition
        CQL2 text; CQL2 JSON as text, which begins with a brace; or CQL2 JSON as mappings and
        lists. What is supported, and how large it may be, is in ``docs/language.md``. A tree
        comes back as it is.
    space : Space
        What coordinates mean: on WGS84 a BBOX may go across the antimeridian.

    Returns
    -------
    Condition
        In normal form: names resolved, AND within AND and OR within OR flat, repeated items of
        lists dropped, geometries valid.

    Raises
    ------
    LanguageError
        Where the expression cannot be read, has no meaning or is too large. Nothing else is
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
    part, tokens = read_text(text)
    try:
        return _compiled(part, space)
    except SemanticError as refused:
        start, end = tokens.start(refused.part.first), tokens.end(refused.part.last)
        raise refused.error_in_text(text, start, end) from None


def _parse_json(value: object, space: Space) -> Condition:
    try:
        return _compiled(read_json(value), space)
    except SemanticError as refused:
        raise refused.error_in_json() from None


def _compiled(part: ParseNode, space: Space) -> Condition:
    return compile_condition(split_antimeridian_boxes(part) if space is Space.WGS84 else part)


_WEST, _EAST = -180, 180


def split_antimeridian_boxes(part: ParseNode) -> ParseNode:
    """A part in which each BBOX whose west is east of its east is cut in two there."""
    if part.kind is NodeKind.CALL and part.value == "bbox":
        return _cut(part)
    if not part.args:
        return part
    return part._replace(args=tuple(map(split_antimeridian_boxes, part.args)))


def _cut(part: ParseNode) -> ParseNode:
    """The box as two; as it is, to be read or refused like any other, where it is no such box."""
    numbers = [arg.value for arg in part.args if arg.kind is NodeKind.NUMBER]
    if len(numbers) < len(part.args) or len(numbers) not in (4, 6):
        return part
    xmin, ymin, xmax, ymax = numbers if len(numbers) == 4 else (*numbers[:2], *numbers[3:5])
    if not (_WEST <= xmax < xmin <= _EAST and ymin < ymax):
        return part
    rings = [
        [[[x0, ymin], [x1, ymin], [x1, ymax], [x0, ymax], [x0, ymin]]]
        for x0, x1 in ((xmin, _EAST), (_WEST, xmax))
        if x0 < x1
    ]
    if not rings:
        return part
    value = {"type": "MultiPolygon", "coordinates": rings}
    return part._replace(kind=NodeKind.GEOMETRY, value=value, args=())
