"""Texts of one form as rows of checks: all but the literals is made once for each matcher.

A row is a `CHECK` of `kernels.matching` as bytes. Which column a check is about, and what it does,
is the same in all texts of a form; so a row is packed from a template, and no object is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from fencepost.kernels.checking import CHECK, ITEM_OF, SET_ITEM, SHAPE_ITEM, TWO_SETS_ITEM
from fencepost.language.ast import Array, Spatial
from fencepost.model.outlines import Outline
from fencepost.plan.checks import Filter, ListCheck, RelateCheck

Row = tuple[float, float, float, float, int, int, int, int, int, int, int, int]
"""A check, in the order of `CHECK`."""

_ROW = "4d2I6B2x"
ROW = Struct(f"={_ROW}")
_FIELDS = 12
_LOW, _HIGH, _ITEM = 0, 2, 5
assert ROW.size == CHECK.itemsize


class Posted(NamedTuple):
    """The columns of a filter that asks for words, and at most for contact with a rectangle."""

    words: int
    place: int  # -1: nowhere in particular


class FormRows:
    """The rows of a form.

    Attributes
    ----------
    count : int
        How many there are.
    shape_rows : list of int
        Those about a geometry.
    are_lists : list of bool
        Of those about strings: whether it is with a list, or the words of a text.
    posted : Posted or None
        Whether it may be a post.
    """

    def __init__(self, terms: Filter, rows: Sequence[Row]) -> None:
        self.count = len(rows)
        self._struct = Struct("=" + _ROW * self.count)
        self._fields: list[Any] = [field for row in rows for field in row]
        items = [ITEM_OF[row[6]] for row in rows]
        self.shape_rows = [k for k, item in enumerate(items) if item == SHAPE_ITEM]
        self._shape_items = [_FIELDS * k + _ITEM for k in self.shape_rows]
        with_sets = [k for k, item in enumerate(items) if item in (SET_ITEM, TWO_SETS_ITEM)]
        self._set_items = [_FIELDS * k + _ITEM for k in with_sets]
        self.are_lists = [items[k] == TWO_SETS_ITEM for k in with_sets]
        self.posted = _posted(terms, [row[4] for row in rows])

    def packed(self, bounds: Sequence[float], first_set: int = 0, first_shape: int = 0) -> bytes:
        """The rows of one text; those before it have so many sets and shapes."""
        fields = self._fields.copy()
        fields[_LOW::_FIELDS] = bounds[::2]
        fields[_HIGH::_FIELDS] = bounds[1::2]
        if first_set:
            for k in self._set_items:
                fields[k] += first_set
        if first_shape:
            for k in self._shape_items:
                fields[k] += first_shape
        return self._struct.pack(*fields)


def _posted(terms: Filter, columns: Sequence[int]) -> Posted | None:
    words = place = -1
    for term, column in zip(terms, columns, strict=True):
        check = term.check
        if isinstance(check, ListCheck) and check.function is Array.A_CONTAINS and words < 0:
            words = column
        elif (
            isinstance(check, RelateCheck) and check.function is Spatial.S_INTERSECTS and place < 0
        ):
            place = column
        else:
            return None
    return Posted(words, place) if words >= 0 else None


def rectangle(outline: Outline) -> tuple[float, float, float, float] | None:
    """The box that a polygon is, if it is one."""
    xy, chains, _ = outline
    if chains not in ((5,), (4,)):
        return None
    x, y = xy[::2], xy[1::2]
    x0, y0, x1, y1 = min(x), min(y), max(x), max(y)
    corners = {(x0, y0), (x0, y1), (x1, y0), (x1, y1)}
    closed = len(x) == 4 or xy[:2] == xy[-2:]
    return (x0, y0, x1, y1) if closed and {*zip(x, y, strict=True)} == corners else None
