"""Expressions: CQL2 text or JSON in, one tree out, and back to text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.cql2 import ast
    from fencepost.cql2.expression_limits import MAX_DEPTH, MAX_DIGITS, MAX_LENGTH, MAX_PARTS
    from fencepost.cql2.parser import parse
    from fencepost.cql2.writer import render_json, render_text

__all__ = [
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_LENGTH",
    "MAX_PARTS",
    "ast",
    "parse",
    "render_json",
    "render_text",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "expression_limits": ["MAX_DEPTH", "MAX_DIGITS", "MAX_LENGTH", "MAX_PARTS"],
            "parser": ["parse"],
            "writer": ["render_json", "render_text"],
            "ast": None,
        },
    )
