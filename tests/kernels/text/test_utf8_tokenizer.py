"""Words and items made by kernels, against the tokenizer and sets in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import category

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.events import tokenize
from fencepost.kernels import struct_ref
from fencepost.kernels.text.utf8_tokenizer import (
    Characters,
    TokenizerRules,
    all_characters,
    ascii_characters,
    deduplicate_lists,
    empty_vocabulary,
    tokenize_texts,
)
from fencepost.kernels.text.vocabulary import build, encode

ROOT = Path(__file__).resolve().parents[3]
# Characters that fold (to one, two or three), join, separate and combine.
SIGNS = "aAbB1ßẞİıΣςΐﬃŉǰᾷ_'- \u0301\u0345\u200d\udc80\ud83d\U00010400\U0001f600\0"
ANY = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from(SIGNS)))


def rules(
    characters: Callable[[], Characters] = all_characters, stop_words: list[str] | None = None
) -> object:
    left_out = empty_vocabulary() if stop_words is None else build(*encode(stop_words))[0]
    return struct_ref(TokenizerRules(characters(), left_out))


def lists_in(
    text: np.ndarray, item_start: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> list[list[str]]:
    """The items of each list, without their prefix."""
    keys = [text[low:high].tobytes() for low, high in pairwise(item_start.tolist())]
    assert item_start[0] == 0
    assert item_start[-1] == len(text)
    assert all(key[:1] == b"s" for key in keys)
    words = [key[1:].decode("utf-8", "surrogatepass") for key in keys]
    return [words[low:high] for low, high in zip(start.tolist(), stop.tolist(), strict=True)]


def words_in(texts: Sequence[str | None], by: object) -> list[list[str]]:
    text, ends = encode([one or "" for one in texts])
    start = np.where([one is None for one in texts], -1, ends[:-1]).astype(np.int64)
    list_start, list_stop = np.empty((2, len(texts)), np.int64)
    items, item_start = tokenize_texts(text, start, ends[1:], by, list_start, list_stop)
    return lists_in(items, item_start, list_start, list_stop)


@given(st.lists(st.one_of(ANY, st.none()), max_size=6))
@example([])
@example(["", None, "a", "a", "A a aA", " a", "a "])
@example(["ΐ" * 9, "ΐ ΐ" * 5, "ﬃ ffi FFI ﬀi", "ß ss ẞ"])
@example(["a\ud800b\udfffc", "\ud800", "x\ud83d\ude00y"])
def test_words_of_any_texts(texts: list[str | None]) -> None:
    expected = [[] if one is None else tokenize(one) for one in texts]
    assert words_in(texts, rules()) == expected


def test_every_code_point() -> None:
    chars = [chr(code) for code in range(sys.maxunicode + 1)]
    text, ends = encode([f"a{char}B" for char in chars])
    start, stop = np.empty((2, len(chars)), np.int64)
    items, _ = tokenize_texts(text, ends[:-1], ends[1:], rules(), start, stop)
    in_words = [category(char)[0] in "LMN" for char in chars]
    assert (stop - start).tolist() == [2 - flag for flag in in_words]
    expected = [
        f"sa{char.casefold()}b" if flag else "sasb"
        for char, flag in zip(chars, in_words, strict=True)
    ]
    assert items.tobytes() == "".join(expected).encode()


def test_folding_makes_no_text_longer_than_there_is_room_for() -> None:
    chars = map(chr, range(0x80, sys.maxunicode + 1))
    sizes = {
        char: (len(char.encode("utf-8", "surrogatepass")), len(char.casefold().encode()))
        for char in chars
        if char.casefold() != char
    }
    assert max(folded / given for given, folded in sizes.values()) == 3
    assert all(char.casefold().isascii() for char in map(chr, range(0x80)))


@given(st.lists(st.text(st.characters(max_codepoint=0x7F)), max_size=6))
def test_ascii_needs_no_tables(texts: list[str]) -> None:
    assert words_in(texts, rules(ascii_characters)) == [tokenize(one) for one in texts]


@pytest.mark.parametrize("count", [100, 100_000])
def test_a_long_text(count: int) -> None:
    rng = np.random.default_rng(count)
    numbers = rng.integers(0, count, 2 * count).tolist()
    texts = ["one Two", " ".join(f"w{number:x}" for number in numbers), "two one two"]
    assert words_in(texts, rules()) == [tokenize(one) for one in texts]


@given(st.lists(ANY, max_size=4), st.lists(ANY, max_size=4))
@example(["The cat and THE dog"], ["the", "and"])
def test_stop_words_are_left_out(texts: list[str], left_out: list[str]) -> None:
    stop_words = {word for one in left_out for word in tokenize(one)}
    by = rules(stop_words=["s" + word for word in sorted(stop_words)])
    expected = [[word for word in tokenize(one) if word not in stop_words] for one in texts]
    assert words_in(texts, by) == expected


@given(st.lists(st.lists(st.one_of(ANY, st.none(), st.sampled_from(["a", "b", "A"])), max_size=8)))
@example([[], ["a", None, "a", "b"], [None], ["b", "a"]])
def test_deduplicate_lists(lists: list[list[str | None]]) -> None:
    flat = [item for one in lists for item in one]
    text, ends = encode([item or "" for item in flat])
    start = np.where([item is None for item in flat], -1, ends[:-1]).astype(np.int64)
    bounds = np.cumsum([0, *map(len, lists)])
    list_start, list_stop = np.empty((2, len(lists)), np.int64)
    items, item_start = deduplicate_lists(
        text, start, ends[1:], bounds[:-1], bounds[1:], list_start, list_stop
    )
    expected = [list(dict.fromkeys(item for item in one if item is not None)) for one in lists]
    assert lists_in(items, item_start, list_start, list_stop) == expected


def words_in_bytes(given_bytes: bytes, by: object) -> list[str]:
    text = np.frombuffer(bytearray(given_bytes), np.uint8)
    start, stop = np.zeros(1, np.int64), np.full(1, len(text))
    list_start, list_stop = np.empty((2, 1), np.int64)
    items, item_start = tokenize_texts(text, start, stop, by, list_start, list_stop)
    return lists_in(items, item_start, list_start, list_stop)[0]


@given(st.lists(st.sampled_from([b"a", b"P", b"\xce", b"\xe1\xbe", b"\xb7", b"\xff", b" "])))
@example([b"\xceP"])  # but for the sixth bit of P, U+0390, which folds to six bytes
def test_bytes_that_are_no_utf_8_separate(parts: list[bytes]) -> None:
    words = words_in_bytes(b"".join(parts) + b" end", rules())
    assert words[-1] == "end"
    assert all(tokenize(word) == [word] for word in words)


UNCOMPILED = """
import numba
import numpy as np
from tests.kernels.text.test_utf8_tokenizer import rules, words_in, words_in_bytes
from fencepost.events import tokenize

assert numba.config.DISABLE_JIT
with np.errstate(over="ignore"):  # unsigned numbers are meant to wrap
    texts = ["", "Hail, hail! STORM", "stra\\u00dfe STRASSE \\u0390 \\ud800x", "a b a"]
    assert words_in(texts, rules()) == [tokenize(one) for one in texts]
    # NumPy would say if there were no room.
    assert words_in_bytes(b"\\xceP\\xceP\\xe1P\\xce", rules()) == ["p"]
"""


def test_uncompiled() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
