"""`EventValues`: the attributes of one event, with each geometry read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fencepost.errors import GeometryError, GeometryProblem, ModelError
from fencepost.events import value_types
from fencepost.events.tokenizer import DEFAULT_TOKENIZER, Tokenizer
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space


class EventValues:
    """The attributes of one event, with its geometries cached.

    Parameters
    ----------
    shapes : callable, optional
        Returns the geometry of an attribute that has been read already. Left out, geometries are
        read from the attributes.
    """

    __slots__ = ("_read", "_shapes", "attributes", "space", "tokenizer")

    def __init__(
        self,
        attributes: Mapping[str, object],
        tokenizer: Tokenizer = DEFAULT_TOKENIZER,
        space: Space = Space.PLANAR,
        shapes: Callable[[str], Shapes | None] | None = None,
    ) -> None:
        self.attributes = attributes
        self.tokenizer = tokenizer
        self.space = space
        self._read = shapes
        self._shapes: dict[str, Shapes | None] | None = None

    def get(self, name: str) -> object:
        """Return an attribute, or None if it is missing."""
        return none_if_missing(self.attributes.get(name))

    def shapes(self, name: str) -> Shapes | None:
        """Return an attribute as a geometry, or None if it is no usable geometry."""
        if self._shapes is None:
            self._shapes = {}
        if name not in self._shapes:
            if self._read is not None:
                self._shapes[name] = self._read(name)
            else:
                self._shapes[name] = read_shape(self.get(name), self.space)
        return self._shapes[name]

    def unusable_geometries(self) -> dict[str, GeometryProblem]:
        """Return by attribute why the geometries that were read so far cannot be used."""
        shapes = self._shapes or {}
        found = {
            name: _read_shape(self.get(name), self.space)
            for name, shape in shapes.items()
            if shape is None
        }
        return {name: why for name, why in found.items() if isinstance(why, GeometryProblem)}


def none_if_missing(value: object) -> object:
    """Return the value of an attribute, or None if it counts as missing."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    return None if value_types.is_missing(value) else value


def read_shape(value: object, space: Space = Space.PLANAR) -> Shapes | None:
    """Read a geometry; return None if the value is no usable geometry of the space."""
    shape = _read_shape(value, space)
    return shape if isinstance(shape, Shapes) else None


def _read_shape(value: object, space: Space) -> Shapes | GeometryProblem | None:
    """Read a geometry, or return why it cannot be used; None if the value is no geometry at all."""
    if value is None or isinstance(value, (int, float)):
        return None
    try:
        shape = Shapes.read_one(value)
    except GeometryError as error:
        return error.problems[0]
    except ModelError as error:
        return GeometryProblem(0, str(error))
    outside = shape.problems_outside(space)
    return outside[0] if outside else shape
