"""LIKE and the order of strings, against definitions written with Python's strings."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fencepost.kernels.text.like import compare, compile_pattern
from fencepost.kernels.text.like import like as like_kernel


def expected(pattern: str, text: str) -> bool:
    """What LIKE means: a recursion over the characters of both."""

    @cache
    def fits(p: int, t: int) -> bool:
        if p == len(pattern):
            return t == len(text)
        if pattern[p] == "%":
            return fits(p + 1, t) or (t < len(text) and fits(p, t + 1))
        if t == len(text):
            return False
        if pattern[p] == "_":
            return fits(p + 1, t + 1)
        if pattern[p] == "\\" and p + 1 < len(pattern):
            p += 1
        return pattern[p] == text[t] and fits(p + 1, t + 1)

    return fits(0, 0)


def embedded(string: bytes) -> tuple[NDArray[np.uint8], int, int]:
    """The string among bytes that must not be looked at."""
    array = np.frombuffer(bytearray(b"\xff\xfe" + string + b"\x80\xffa"), np.uint8)
    return array, 2, 2 + len(string)


def encoded(string: str) -> tuple[NDArray[np.uint8], int, int]:
    return embedded(string.encode("utf-8", "surrogatepass"))


def like(pattern: str, text: str) -> bool:
    return bool(like_kernel(*embedded(compile_pattern(pattern)), *encoded(text)))


# One to four bytes long, of like beginnings and ends, and each half of a surrogate pair.
CHARACTERS = "ab\x00é\u0329€😀😁\ud83d\ude00"
texts = st.text(CHARACTERS, max_size=12)
patterns = st.text(CHARACTERS + "%%%___\\\\", max_size=10)
few_texts = st.text("ab%_\\", max_size=16)
few_patterns = st.text("ab%%%_\\", max_size=10)
any_text = st.text(st.characters(exclude_categories=()), max_size=8)


@given(st.one_of(st.tuples(patterns, texts), st.tuples(few_patterns, few_texts)))
@example(("", ""))
@example(("%", ""))
@example(("_", ""))
@example(("%%_%", "a"))
@example(("\\", "\\"))
@example(("a\\", "a\\"))
@example(("\\\\", "\\"))
@example(("\\%", "%"))
@example(("\\_", "a"))
@example(("\\é", "é"))
@example(("%\\%", "aa%"))
@example(("_", "😀"))
@example(("__", "\ud83d\ude00"))
@example(("_", "\ud83d\ude00"))
@example(("%é", "aéé"))
@example(("%_é", "😀é"))
@example(("%ab%ab", "abaab"))
def test_as_defined(case: tuple[str, str]) -> None:
    assert like(*case) == expected(*case)


@given(texts, st.lists(st.sampled_from(["keep", "one", "run", "drop", "escape"]), max_size=14))
def test_patterns_made_from_the_text(text: str, changes: list[str]) -> None:
    """Such patterns fit, or nearly."""
    pattern = ""
    for number, character in enumerate(text):
        change = changes[number] if number < len(changes) else "keep"
        pattern += {"keep": character, "one": "_", "run": "%", "drop": "", "escape": "\\"}[change]
        if change == "escape":
            pattern += character
    assert like(pattern, text) == expected(pattern, text)
    if "drop" not in changes[: len(text)]:
        assert like(pattern, text)


@given(any_text, any_text)
def test_any_two_strings(pattern: str, text: str) -> None:
    assert like(pattern, text) == expected(pattern, text)
    plain = "".join("\\" + character for character in text)
    assert like(plain, text)
    assert like("%" + plain + "%", text)
    assert like("_" * len(text), text)
    assert not like("_" * len(text) + "_", text)


def test_patterns_that_mean_the_same_become_the_same() -> None:
    alike = ["%_%_a", "__%a", "_%_%%a", "_%_\\a"]
    assert {compile_pattern(pattern) for pattern in alike} == {b"\xfe\xfe\xffa"}
    assert compile_pattern("\\%\\_\\\\\\") == b"%_\\\\"


@pytest.mark.parametrize("pattern", ["%a" * 40 + "%b", "%a_" * 30 + "b%", "%" * 300 + "b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not like(pattern, "a" * 20_000)
    assert like(pattern, "a" * 20_000 + "b") == (pattern[-1] == "b" or pattern[-2:] == "b%")


@given(st.one_of(st.tuples(any_text, any_text), st.tuples(texts, texts)))
@example(("", "\x00"))
@example(("\ud7ff", "\ud800"))
@example(("\udfff", "\ue000"))
@example(("\uffff", "\U00010000"))
def test_order_is_that_of_code_points(case: tuple[str, str]) -> None:
    a, b = case
    assert compare(*encoded(a), *encoded(b)) == (a > b) - (a < b)
    assert compare(*encoded(b), *encoded(a)) == (b > a) - (b < a)
    assert compare(*encoded(a), *encoded(a)) == 0
