"""Geometries: what they are, and how they are read and laid out. Bad coordinates stop here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.geometry.prepared_shapes import Shapes
    from fencepost.geometry.relation import RELATIONS, Relation, matrix_text
    from fencepost.geometry.space import Space, space_of

__all__ = [
    "RELATIONS",
    "Relation",
    "Shapes",
    "Space",
    "matrix_text",
    "space_of",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "prepared_shapes": ["Shapes"],
            "relation": ["RELATIONS", "Relation", "matrix_text"],
            "space": ["Space", "space_of"],
        },
    )
