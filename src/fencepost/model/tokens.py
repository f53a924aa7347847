"""The tokeniser: the words of a text, by which keywords find it.

The rule, whole:

1. A *word character* is a code point whose general category begins with L, M or N: a letter, a
   mark or a number of any script, by the Unicode tables of the running Python (`unicodedata`).
   Everything else separates, and is dropped: spaces, punctuation, the underscore, apostrophes,
   symbols, controls, joiners, and lone surrogates.
2. A *word* is a run of word characters that is as long as can be.
3. Its *token* is the word after `str.casefold`.

Nothing else happens: no normalisation (so "é" as one code point and as "e" with a combining
accent are two tokens), no stemming, no stop words, no splitting of scripts written without
spaces. A mark that follows no letter is a word of its own, which is how the variation selector
after some emoji becomes one.

Casefolding turns word characters into word characters and others into others (a test goes
through all of Unicode), so it makes no difference whether a text is folded before it is cut or
after. A lone surrogate separates just as "?" does, so encoding a text as UTF-8 with
``errors="replace"`` leaves its tokens as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category

__all__ = ["keywords", "tokenise"]

_ASCII_WORDS = re.compile(r"[0-9a-z]+")


def tokenise(text: str) -> list[str]:
    """
    The distinct tokens of a text, in the order in which they first appear.

    Parameters
    ----------
    text : str
        Any text; lone surrogates are no error.

    Returns
    -------
    list of str
        None of them empty. The list is empty if the text has no word in it.

    Examples
    --------
    >>> tokenise("iPad! An IPAD, straße_2")
    ['ipad', 'an', 'strasse', '2']
    """
    folded = text.casefold()
    if folded.isascii():
        return list(dict.fromkeys(_ASCII_WORDS.findall(folded)))
    spaced = "".join(char if category(char)[0] in "LMN" else " " for char in folded)
    return list(dict.fromkeys(spaced.split()))


def keywords(items: Iterable[str]) -> tuple[str, ...]:
    """
    The distinct tokens of many texts, in the order in which they first appear.

    Parameters
    ----------
    items : iterable of str
        The keywords as written. One of several words stands for all of them, one without any
        word for nothing.

    Returns
    -------
    tuple of str
        None of them empty.
    """
    return tuple(dict.fromkeys(token for item in items for token in tokenise(item)))
