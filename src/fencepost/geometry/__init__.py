"""Geometries: what they are, and how they are read and laid out. Bad coordinates stop here.

- `readers/`: Readers of geometries: each form of input into the same flat arrays
- `prepared_shapes`: Geometries ready for the kernels: read, cleaned, checked and laid out in flat
  arrays, once
- `relation`: The eight exclusive relations between two places, and how DE-9IM decides among them
- `space`: What coordinates mean: points of a plane, or longitude and latitude on the WGS84
  ellipsoid
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.geometry.prepared_shapes import Shapes
    from fencepost.geometry.relation import RELATIONS, Relation, matrix_text
    from fencepost.geometry.space import Space, parse_space

__all__ = [
    "RELATIONS",
    "Relation",
    "Shapes",
    "Space",
    "matrix_text",
    "parse_space",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "prepared_shapes": ["Shapes"],
            "relation": ["RELATIONS", "Relation", "matrix_text"],
            "space": ["Space", "parse_space"],
        },
    )
