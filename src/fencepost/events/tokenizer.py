"""The tokenizer: the words of a text, by which keywords find it.

The rule, whole:

1. A *word character* is a code point whose general category begins with L, M or N: a letter, a
   mark or a number of any script, by the Unicode tables of the running Python (`unicodedata`).
   Everything else separates, and is dropped: spaces, punctuation, the underscore, apostrophes,
   symbols, controls, joiners, and lone surrogates.
2. A *word* is a run of word characters that is as long as can be.
3. Its *token* is the word after `str.casefold`.

Nothing else happens: no normalisation (so "é" as one code point and as "e" with a combining
accent are two tokens), no stemming, no splitting of scripts written without spaces; and no stop
words but those that a `Tokenizer` is given. A mark that follows no letter is a word of its own,
which is how the variation selector after some emoji becomes one.

Casefolding turns word characters into word characters and others into others (a test goes
through all of Unicode), so it makes no difference whether a text is folded before it is cut or
after. A lone surrogate separates just as "?" does, so encoding a text as UTF-8 with
``errors="replace"`` leaves its tokens as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import category

from fencepost.errors import ModelError

__all__ = ["EVERY_WORD", "Tokenizer", "keywords", "tokenize"]

_ASCII_WORDS = re.compile(r"[0-9a-z]+")


def tokenize(text: str) -> list[str]:
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
    >>> tokenize("iPad! An IPAD, straße_2")
    ['ipad', 'an', 'strasse', '2']
    """
    if text.isascii() and text.isalnum():
        return [text.lower()]
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
    return tuple(dict.fromkeys(token for item in items for token in tokenize(item)))


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """The tokenizer of a matcher: the rule, and which tokens it leaves out.

    Attributes
    ----------
    stop_words : frozenset of str
        Tokens.
    """

    stop_words: frozenset[str] = frozenset()

    @classmethod
    def without(cls, words: Iterable[str]) -> Tokenizer:
        """
        A tokenizer that leaves out the tokens of some words.

        Raises
        ------
        ModelError
            Where these are not strings, or are one string.
        """
        is_list = hasattr(words, "__iter__") and not isinstance(words, str)
        listed = list(words) if is_list else None
        if listed is None or not all(isinstance(word, str) for word in listed):
            raise ModelError(f"stop words must be a list of strings; saw {words!r:.60}")
        return cls(frozenset(keywords(listed)))

    def tokens(self, text: str) -> list[str]:
        """The distinct tokens of a text that are not left out, in order."""
        return [token for token in tokenize(text) if token not in self.stop_words]

    def keywords(self, items: Iterable[str]) -> tuple[str, ...]:
        """The distinct tokens of many texts that are not left out, in order."""
        found = keywords(items)
        if not self.stop_words:
            return found
        return tuple(token for token in found if token not in self.stop_words)


EVERY_WORD = Tokenizer()
