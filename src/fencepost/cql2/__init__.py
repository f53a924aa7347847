"""Expressions: CQL2 text or JSON in, one tree out, and back to text or JSON.

- `ast`: The tree of an expression: frozen values without behaviour, and how to walk them
- `condition_builder`: From parts to the conditions of the tree
- `expression_limits`: How large an expression may be
- `geometry_literals`: Geometry literals: well-known text, GeoJSON and boxes into Shapely
  geometries that are valid
- `json_reader`: CQL2 JSON into parts, from its text or from mappings that are decoded already
- `keywords`: The names of the language: keywords, functions and types of geometry, in small
  letters
- `lexer`: CQL2 text into tokens, and a place among them with what every reader of text does there
- `literals`: From parts to the values of the tree: literals read and checked, types known where
  they are
- `parse_tree`: What the two readers hand to the compiler: an expression as it was written,
  unjudged
- `parser`: The front door: an expression in, its tree out
- `text_reader`: CQL2 text into parts, by precedence climbing
- `wkt_coordinates`: The coordinates of a geometry in well-known text, as the lists of GeoJSON
- `writer`: From the tree back to CQL2 text and CQL2 JSON
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.cql2 import ast
    from fencepost.cql2.expression_limits import MAX_DEPTH, MAX_DIGITS, MAX_LENGTH, MAX_NODES
    from fencepost.cql2.parser import parse
    from fencepost.cql2.writer import render_json, render_text

__all__ = [
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_LENGTH",
    "MAX_NODES",
    "ast",
    "parse",
    "render_json",
    "render_text",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "expression_limits": ["MAX_DEPTH", "MAX_DIGITS", "MAX_LENGTH", "MAX_NODES"],
            "parser": ["parse"],
            "writer": ["render_json", "render_text"],
            "ast": None,
        },
    )
