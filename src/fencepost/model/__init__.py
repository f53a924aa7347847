"""Frozen values: relations and geometries. Bad coordinates stop here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.model.event import attributes
    from fencepost.model.geometry import Shapes
    from fencepost.model.relation import RELATIONS, Relation, matrix_text
    from fencepost.model.space import Space, space_of
    from fencepost.model.times import format_instant
    from fencepost.model.tokens import Tokeniser, keywords, tokenise

__all__ = [
    "RELATIONS",
    "Relation",
    "Shapes",
    "Space",
    "Tokeniser",
    "attributes",
    "format_instant",
    "keywords",
    "matrix_text",
    "space_of",
    "tokenise",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "event": ["attributes"],
            "geometry": ["Shapes"],
            "relation": ["RELATIONS", "Relation", "matrix_text"],
            "space": ["Space", "space_of"],
            "times": ["format_instant"],
            "tokens": ["Tokeniser", "keywords", "tokenise"],
        },
    )
