"""`Tokenizer`: the words of a text that keywords are compared with.

The rule, in full:

1. A *word character* is a code point whose general category begins with L, M or N: a letter, a
   mark or a number of any script, by the Unicode tables of the running Python (`unicodedata`).
   Every other code point is a separator: spaces, punctuation, the underscore, apostrophes,
   symbols, controls, joiners, and lone surrogates.
2. A *word* is a maximal run of word characters.
3. Its *token* is the word after `str.casefold`.

Deliberately absent: normalisation (so "é" as one code point and as "e" with a combining accent are
two tokens), stemming, segmentation of scripts written without spaces, and stop words other than
those of a `Tokenizer`. A mark that follows no letter is a word by itself, such as the variation
selector after some emoji.

Casefolding maps word characters to word characters and separators to separators (a test covers all
of Unicode), so a text may be folded before or after it is split. Lone surrogates and "?" are both
separators, so encoding a text as UTF-8 with ``errors="replace"`` does not change its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import category

from fencepost.errors import ModelError

__all__ = ["DEFAULT_TOKENIZER", "Tokenizer", "keywords", "tokenize"]

_ASCII_WORDS = re.compile(r"[0-9a-z]+")


def tokenize(text: str) -> list[str]:
    """Return the distinct tokens of a text, in order of first appearance.

    Parameters
    ----------
    text : str
        Any text; lone surrogates are allowed.

    Returns
    -------
    list of str
        Tokens, none empty; an empty list if the text has no word.

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
    """Return the distinct tokens of many texts, in order of first appearance.

    Parameters
    ----------
    items : iterable of str
        The keywords as written. A keyword of several words yields a token for each, a keyword
        without words yields none.

    Returns
    -------
    tuple of str
        Tokens, none empty.
    """
    return tuple(dict.fromkeys(token for item in items for token in tokenize(item)))


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """The tokenizer of a matcher: the rule of this module, without stop words.

    Attributes
    ----------
    stop_words : frozenset of str
        Tokens to leave out.
    """

    stop_words: frozenset[str] = frozenset()

    @classmethod
    def without(cls, words: Iterable[str]) -> Tokenizer:
        """Return a tokenizer that leaves out the tokens of some words.

        Raises
        ------
        ModelError
            If `words` is a string, or not an iterable of strings.
        """
        is_list = hasattr(words, "__iter__") and not isinstance(words, str)
        texts = list(words) if is_list else None
        if texts is None or not all(isinstance(word, str) for word in texts):
            raise ModelError(f"stop words must be a list of strings; saw {words!r:.60}")
        return cls(frozenset(keywords(texts)))

    def tokens(self, text: str) -> list[str]:
        """Return the distinct tokens of a text that are no stop words, in order."""
        return [token for token in tokenize(text) if token not in self.stop_words]

    def keywords(self, items: Iterable[str]) -> tuple[str, ...]:
        """Return the distinct tokens of many texts that are no stop words, in order."""
        tokens = keywords(items)
        if not self.stop_words:
            return tokens
        return tuple(token for token in tokens if token not in self.stop_words)


DEFAULT_TOKENIZER = Tokenizer()
