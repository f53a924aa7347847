"""`EventValues`: the attributes of one event, each geometry of which is read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fencepost.errors import GeometryError, ModelError
from fencepost.events import value_types
from fencepost.events.tokenizer import EVERY_WORD, Tokenizer
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space


class EventValues:
    """An event's attributes, with what is costly to read from them kept.

    Parameters
    ----------
    shapes : callable, optional
        From the name of an attribute to its geometry, where it was read already.
    """

    __slots__ = ("_read", "_shapes", "attributes", "space", "tokenizer")

    def __init__(
        self,
        attributes: Mapping[str, object],
        tokenizer: Tokenizer = EVERY_WORD,
        space: Space = Space.PLANAR,
        shapes: Callable[[str], Shapes | None] | None = None,
    ) -> None:
        self.attributes = attributes
        self.tokenizer = tokenizer
        self.space = space
        self._read = shapes
        self._shapes: dict[str, Shapes | None] | None = None

    def get(self, name: str) -> object:
        """An attribute, or None where it is missing."""
        return none_if_missing(self.attributes.get(name))

    def shapes(self, name: str) -> Shapes | None:
        """An attribute as a geometry, or None."""
        if self._shapes is None:
            self._shapes = {}
        if name not in self._shapes:
            if self._read is not None:
                self._shapes[name] = self._read(name)
            else:
                self._shapes[name] = read_shape(self.get(name), self.space)
        return self._shapes[name]


def none_if_missing(value: object) -> object:
    """A value of an event, or None where it counts as missing."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    return None if value_types.is_missing(value) else value


def read_shape(value: object, space: Space = Space.PLANAR) -> Shapes | None:
    """One geometry laid out, or None where the value is no usable one."""
    if value is None or isinstance(value, (int, float)):
        return None
    try:
        shape = Shapes.read_one(value)
    except (GeometryError, ModelError):
        return None
    return None if len(shape.rows_outside(space)) else shape
