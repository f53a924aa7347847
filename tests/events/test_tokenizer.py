"""The tokenizer: words of many scripts, and the rule for all of Unicode."""

from __future__ import annotations

import sys
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.events import Tokenizer, keywords, tokenize

# Strings of characters that fold, join, separate and combine.
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("aA1ßİıΣς_'- \u0301\u0345\u200d\udc80")))


def is_word_character(char: str) -> bool:
    return category(char)[0] in "LMN"


def words_one_by_one(text: str) -> list[str]:
    """Return tokens by the rule as documented: split first, then fold."""
    words = [""]
    for char in text:
        if is_word_character(char):
            words[-1] += char
        else:
            words.append("")
    tokens = [word.casefold() for word in words if word]
    return [token for place, token in enumerate(tokens) if token not in tokens[:place]]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\r\n\x1c\x85\u00a0\u3000", []),
        ("?!_-'\"()[]{}<>|~^`+=*&%$#@/\\.,:;", []),
        ("iPad!", ["ipad"]),
        ("red Red RED car red", ["red", "car"]),
        ("snake_case", ["snake", "case"]),
        ("don't", ["don", "t"]),
        ("don’t", ["don", "t"]),
        ("e-mail 3.5", ["e", "mail", "3", "5"]),
        ("4x4", ["4x4"]),
        ("a\0b", ["a", "b"]),
        ("Straße STRASSE", ["strasse"]),
        ("ﬁre", ["fire"]),
        ("ΣΑΣ σας", ["σασ"]),
        ("Москва, МОСКВА", ["москва"]),
        ("İzmir", ["i\u0307zmir"]),
        ("ırmak", ["ırmak"]),
        ("caf\u00e9 cafe\u0301", ["caf\u00e9", "cafe\u0301"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ภาษาไทย", ["ภาษาไทย"]),
        ("東京都 、大阪", ["東京都", "大阪"]),
        ("한국어 가", ["한국어", "가"]),
        ("مَرْحَبًا بك", ["مَرْحَبًا", "بك"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("ᏣᎳᎩ ꮳꮃꭹ", ["ᏣᎳᎩ"]),
        ("١٢٣ ४५", ["١٢٣", "४५"]),
        ("Ⅷ ½ x² ①", ["ⅷ", "½", "x²", "①"]),
        ("\U00010400\U00010428", ["\U00010428\U00010428"]),
        ("storm 🌩 hail", ["storm", "hail"]),
        ("👩\u200d🚀", []),
        ("❤\ufe0f", ["\ufe0f"]),
        ("\u0301a", ["\u0301a"]),
        ("zero\u200cwidth\u200bspace", ["zero", "width", "space"]),
        ("Ⓐ €5 ™", ["5"]),
        ("a\ud800b\udfffc", ["a", "b", "c"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_the_rule_for_every_code_point() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        assert tokenize(f"a{char}b") == words_one_by_one(f"a{char}b"), hex(code)


def test_folding_maps_word_characters_to_word_characters() -> None:
    """Hence a text may be folded before it is split into words."""
    mixed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if {is_word_character(char) for char in chr(code).casefold()}
        != {is_word_character(chr(code))}
    ]
    assert mixed == []


@given(TEXTS)
def test_folding_first_or_last_makes_no_difference(text: str) -> None:
    assert tokenize(text) == words_one_by_one(text)


@given(TEXTS)
def test_tokens_are_distinct_and_tokenize_to_themselves(text: str) -> None:
    tokens = tokenize(text)
    assert len(set(tokens)) == len(tokens)
    assert all(tokens)
    assert all(map(is_word_character, "".join(tokens)))
    assert tokenize(" ".join(tokens)) == tokens


@given(TEXTS)
def test_surrogates_are_separators(text: str) -> None:
    assert tokenize(text.encode("utf-8", "replace").decode()) == tokenize(text)


@given(TEXTS, TEXTS)
def test_two_texts_joined_by_a_space_have_the_tokens_of_both(first: str, second: str) -> None:
    assert set(tokenize(f"{first} {second}")) == {*tokenize(first), *tokenize(second)}


@pytest.mark.parametrize(
    ("items", "tokens"),
    [
        ([], ()),
        (["!", " "], ()),
        (["red car", "RED", "bus"], ("red", "car", "bus")),
        (("b", "a", "b"), ("b", "a")),
        (iter(["x-y"]), ("x", "y")),
    ],
)
def test_keywords(items: list[str], tokens: tuple[str, ...]) -> None:
    assert keywords(items) == tokens


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_a_tokenizer_leaves_stop_words_out(text: str, left_out: list[str]) -> None:
    tokenizer = Tokenizer.without(left_out)
    stop_words = {token for word in left_out for token in words_one_by_one(word)}
    expected = [token for token in words_one_by_one(text) if token not in stop_words]
    assert tokenizer.tokens(text) == expected
    assert tokenizer.keywords([text, *left_out]) == tuple(expected)
    assert Tokenizer.without(tokenizer.stop_words) == tokenizer
