"""Boxes of longitude and latitude that go across the antimeridian, as the two that they are."""

from __future__ import annotations

from fencepost.language.parts import Kind, Part

_WEST, _EAST = -180, 180


def with_boxes_cut(part: Part) -> Part:
    """A part in which each BBOX whose west is east of its east is cut in two there."""
    if part.kind is Kind.CALL and part.value == "bbox":
        return _cut(part)
    if not part.args:
        return part
    return part._replace(args=tuple(map(with_boxes_cut, part.args)))


def _cut(part: Part) -> Part:
    """The box as two; as it is, to be read or refused like any other, where it is no such box."""
    numbers = [arg.value for arg in part.args if arg.kind is Kind.NUMBER]
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
    return part._replace(kind=Kind.GEOMETRY, value=value, args=())
