"""Geometries: relations, coordinate spaces, and validated geometries in flat arrays.

No geometry with bad coordinates or rings passes beyond this package.

- `readers/`: readers of WKB, WKT, GeoJSON, Arrow columns and Shapely geometries into flat arrays
- `prepared_shapes`: `Shapes`, geometries that are cleaned, validated and laid out for the kernels
- `relation`: `Relation`, the eight exclusive relations of two geometries, and DE-9IM matrices
- `space`: `Space`, a plane, or longitude and latitude on the WGS84 ellipsoid
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.geometry.prepared_shapes import Shapes
    from fencepost.geometry.relation import RELATIONS, Relation, matrix_text
    from fencepost.geometry.space import Space, SpaceName, parse_space

__all__ = [
    "RELATIONS",
    "Relation",
    "Shapes",
    "Space",
    "SpaceName",
    "matrix_text",
    "parse_space",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "prepared_shapes": ["Shapes"],
            "relation": ["RELATIONS", "Relation", "matrix_text"],
            "space": ["Space", "SpaceName", "parse_space"],
        },
    )
