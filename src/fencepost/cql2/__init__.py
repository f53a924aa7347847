"""CQL2: `parse` reads text and JSON into a syntax tree; `render_text` and `render_json` write it.

    text  --text_reader-->  parse tree  --condition_builder, literals-->  ast  --writer-->  text
    JSON  --json_reader-->                                                                  JSON

- `ast`: the syntax tree: its conditions, its values, and how to walk it
- `parser`: `parse`, the entry point
- `lexer`: CQL2 text to tokens, and the cursor over tokens that readers of text share
- `text_reader`: CQL2 text to a parse tree, by precedence climbing
- `wkt_coordinates`: the coordinates of a geometry in well-known text
- `json_reader`: CQL2 JSON to a parse tree
- `parse_tree`: the parse tree: an expression as it is written, before names and types are checked
- `condition_builder`: the parse tree to the conditions of the syntax tree
- `literals`: the parse tree to the values of the syntax tree
- `geometry_literals`: geometries and boxes to valid Shapely geometries
- `keywords`: keywords, functions and geometry types
- `expression_limits`: how large an expression may be
- `writer`: the syntax tree to CQL2 text and CQL2 JSON
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.cql2 import ast
    from fencepost.cql2.expression_limits import (
        MAX_DEPTH,
        MAX_DIGITS,
        MAX_JSON_DEPTH,
        MAX_LENGTH,
        MAX_NODES,
    )
    from fencepost.cql2.parser import parse
    from fencepost.cql2.writer import render_json, render_text

__all__ = [
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_JSON_DEPTH",
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
            "expression_limits": [
                "MAX_DEPTH",
                "MAX_DIGITS",
                "MAX_JSON_DEPTH",
                "MAX_LENGTH",
                "MAX_NODES",
            ],
            "parser": ["parse"],
            "writer": ["render_json", "render_text"],
            "ast": None,
        },
    )
