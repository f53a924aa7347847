"""Expressions: CQL2 text or JSON in, one tree out, and back to text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.language import ast
    from fencepost.language.limits import MAX_DEPTH, MAX_DIGITS, MAX_LENGTH, MAX_PARTS
    from fencepost.language.parser import parse
    from fencepost.language.render import render_json, render_text

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
            "limits": ["MAX_DEPTH", "MAX_DIGITS", "MAX_LENGTH", "MAX_PARTS"],
            "parser": ["parse"],
            "render": ["render_json", "render_text"],
            "ast": None,
        },
    )
