"""The front door: an expression in, its tree out."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.errors import LanguageError
from fencepost.language.ast import Boolean, Condition
from fencepost.language.conditions import compile_condition
from fencepost.language.limits import check_text, too_deep
from fencepost.language.parts import Refused
from fencepost.language.read_json import decode_json, read_json
from fencepost.language.read_text import read_text
from fencepost.model.raw_shapes import shown


def parse(expression: str | Mapping[str, object] | bool) -> Condition:
    """The tree of an expression.

    Parameters
    ----------
    expression : str, mapping or bool
        CQL2 text; CQL2 JSON as text, which begins with a brace; or CQL2 JSON as mappings and
        lists. What is supported, and how large it may be, is in ``docs/language.md``.

    Returns
    -------
    Condition
        In normal form: names resolved, AND within AND and OR within OR flat, repeated items of
        lists dropped, geometries valid.

    Raises
    ------
    LanguageError
        Where the expression cannot be read, has no meaning or is too large. Nothing else is
        raised, and no expression ends the process.
    """
    try:
        if isinstance(expression, str):
            check_text(expression)
            return _parse_string(expression)
        if isinstance(expression, bool):
            return Boolean(expression)
        if isinstance(expression, Mapping):
            return _parse_json(expression)
    except RecursionError:  # the caller has used up most of the stack
        raise LanguageError(too_deep()) from None
    raise LanguageError(
        f"an expression is CQL2 text or CQL2 JSON, not a {type(expression).__name__}; "
        f"saw {shown(expression)}; give a str or a dict"
    )


def _parse_string(text: str) -> Condition:
    if text.lstrip().startswith("{"):
        return _parse_json(decode_json(text))
    part, tokens = read_text(text)
    try:
        return compile_condition(part)
    except Refused as refused:
        start, end = tokens.start(refused.part.first), tokens.end(refused.part.last)
        raise refused.error_in_text(text, start, end) from None


def _parse_json(value: object) -> Condition:
    try:
        return compile_condition(read_json(value))
    except Refused as refused:
        raise refused.error_in_json() from None
