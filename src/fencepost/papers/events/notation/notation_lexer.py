"""`tokens_of`: splits a text in the notation into tokens.

Strings are in double quotes: straight quotes, where a quote within is written twice, or the curly
quotes of a printed page. Names may contain dots and hyphens: ``PointA.x``, ``v-range``.
"""

from __future__ import annotations

import re

from fencepost.composite.member_conditions import NAME
from fencepost.cql2.lexer import UNSIGNED_NUMBER, Tokens, lex_with, meaningless_character
from fencepost.cql2.parse_tree import error_at, excerpt
from fencepost.errors import LanguageError

_SIGNS = r"<>|<=|>=|!=|[=<>+\-(),;:@]"
_STRING = r'"(?:[^"]++|"")*+"|[“”][^“”]*+[“”]|(?s:["“”].*+)'
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9:.]++(?:[Zz]|[+-][0-9:]++)?)?(?![\w.\-])"

_TOKEN = re.compile(f"({UNSIGNED_NUMBER}|{NAME}|{_SIGNS}|{_STRING})")
_TOKEN_OR_TIME = re.compile(f"({_TIME}|{UNSIGNED_NUMBER}|{NAME}|{_SIGNS}|{_STRING})")
_PLAIN_TIME = re.compile(_TIME)

_ADVICE = {
    "'": "strings are written in double quotes",
    "；": "write ; instead",
    "，": "write , instead",
    "：": "write : instead",
    "（": "write ( instead",
    "）": "write ) instead",
    "[": "lists are written in round brackets",
    "{": "the JSON of a composite goes to Composite.from_json",
    "&": "predicates are joined with ;",
}


def tokens_of(text: str, with_times: bool = False) -> Tokens:
    """Return the tokens of a text; `with_times`, an ISO 8601 time is one token.

    Raises
    ------
    LanguageError
        At a character that cannot begin a token, or at a string that is not closed.
    """
    tokens = lex_with(_TOKEN_OR_TIME if with_times else _TOKEN, text, _unexpected)
    if len(tokens.texts) > 1 and _is_open(tokens.texts[-2]):
        start = tokens.start(len(tokens.texts) - 2)
        raise error_at(
            text,
            start,
            f"this string is not closed; saw {excerpt(text[start:])}; "
            'end it with ", and write "" for a quote within it',
        )
    return tokens


def string_of(token: str) -> str:
    """Return the content of a string token."""
    return token[1:-1].replace('""', '"') if token[0] == '"' else token[1:-1]


def is_string(token: str) -> bool:
    """Return whether a token is a string."""
    return token[:1] in {'"', "“", "”"}


def is_time(token: str) -> bool:
    """Return whether a token has the form of a date, with or without a time of day."""
    return _PLAIN_TIME.fullmatch(token) is not None


def _is_open(token: str) -> bool:
    if token[0] == '"':
        return token.count('"') % 2 == 1
    return is_string(token) and (len(token) == 1 or token[-1] not in "“”")


def _unexpected(text: str, position: int) -> LanguageError:
    return meaningless_character(
        text, position, _ADVICE.get(text[position], "put text in double quotes")
    )
