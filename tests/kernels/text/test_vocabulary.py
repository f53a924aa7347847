"""Vocabularies against dictionaries."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.kernels.text.vocabulary import (
    EMPTY,
    NO_WORD,
    UNKNOWN,
    Vocabulary,
    build,
    encode,
    hash_bytes,
    look_up_all,
    look_up_hashed,
)

ROOT = Path(__file__).resolve().parents[3]
WORD = 2**64 - 1
SEED, FACTOR, OTHER_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def expected_hash(text: bytes) -> int:
    """The hash, written with Python's integers."""
    key = SEED ^ len(text)
    last = text[-8:][:: 1 if len(text) < 8 else -1]
    for k in range(0, len(text) - 8, 8):
        key = ((key ^ int.from_bytes(text[k : k + 8], "little")) * FACTOR) & WORD
        key ^= key >> 31
    key = ((key ^ int.from_bytes(last, "big")) * FACTOR) & WORD
    key = ((key ^ (key >> 27)) * OTHER_FACTOR) & WORD
    return key ^ (key >> 31)


def words_of(vocabulary: Vocabulary) -> list[str]:
    text, start = vocabulary.bytes.tobytes(), vocabulary.start.tolist()
    return [text[low:high].decode("utf-8", "surrogatepass") for low, high in pairwise(start)]


def numbers_of(vocabulary: Vocabulary, strings: list[str]) -> list[int]:
    text, start = encode(strings)
    out = np.empty(len(strings), np.int64)
    look_up_all(vocabulary, text, start[:-1], start[1:], out)
    return out.tolist()


def check(strings: list[str], absent: list[str]) -> None:
    number: dict[str, int] = {}
    for string in strings:
        number.setdefault(string, len(number))
    vocabulary, ids = build(*encode(strings))
    assert ids.dtype == np.uint32
    assert ids.tolist() == [number[string] for string in strings]
    assert words_of(vocabulary) == list(number)
    slots = vocabulary.slots.tolist()
    assert len(slots) >= 2 * len(number)
    assert len(slots).bit_count() == 1
    taken = sorted((slot & 0xFFFFFFFF, slot >> 32) for slot in slots if slot != EMPTY)
    marks = [expected_hash(one.encode("utf-8", "surrogatepass")) & 0xFFFFFFFF for one in number]
    assert taken == list(enumerate(marks))
    asked = [*number, *absent]
    assert numbers_of(vocabulary, asked) == [number.get(string, UNKNOWN) for string in asked]


any_text = st.text(st.characters(exclude_categories=()), max_size=20)
alike = st.text("ab\x00", max_size=19)


@given(
    st.lists(st.one_of(any_text, alike), max_size=60),
    st.lists(st.one_of(any_text, alike), max_size=10),
)
@example([], ["", "a"])
@example([""], ["\x00"])
@example(["", "", "a", ""], ["b"])
@example(["\ud83d", "\ude00", "\ud83d\ude00", "\U0001f600"], ["\U0001f601", "\ud83e"])
@example(["a" * k for k in range(40)], ["b" * k for k in range(1, 40)])
def test_as_a_dictionary(strings: list[str], absent: list[str]) -> None:
    check(strings, absent)


@pytest.mark.parametrize("count", [4, 5, 1000, 100_000])
def test_many_words(count: int) -> None:
    rng = np.random.default_rng(count)
    numbers = rng.integers(0, count, 2 * count).tolist()
    check([f"word {number:x}" for number in numbers], [f"word {k}!" for k in range(100)])


def test_words_of_equal_hashes_are_told_apart() -> None:
    """The second eight bytes undo what the first eight did to the hash."""
    words = []
    for number in range(600):
        first = number * 0x0101010101010101 & WORD
        key = ((SEED ^ 16 ^ first) * FACTOR) & WORD
        second = key ^ (key >> 31) ^ 12345
        words.append(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    assert len({expected_hash(word) for word in words}) == 1
    assert len({*words}) == 600
    text = np.frombuffer(bytearray(b"".join(words)), np.uint8)
    start = np.arange(0, 16 * 601, 16)
    vocabulary, ids = build(text, start[:501])
    assert ids.tolist() == list(range(500))
    out = np.empty(600, np.int64)
    look_up_all(vocabulary, text, start[:-1], start[1:], out)
    assert out.tolist() == [*range(500), *[UNKNOWN] * 100]


@given(st.binary(max_size=40), st.integers(0, 9))
def test_the_hash_is_the_same_everywhere(text: bytes, shift: int) -> None:
    array = np.frombuffer(bytearray(b"x" * shift + text + b"y"), np.uint8)
    assert int(hash_bytes(array, shift, shift + len(text))) == expected_hash(text)


def test_hashes_of_like_words_spread() -> None:
    hashes = np.array([expected_hash(b"%d" % k) for k in range(20_000)], np.uint64)
    assert len({*hashes.tolist()}) == 20_000
    for bit in range(64):
        share = float((hashes >> np.uint64(bit) & np.uint64(1)).mean())
        assert 0.47 < share < 0.53


def test_any_slice_can_be_looked_up() -> None:
    vocabulary, _ = build(*encode(["hail", "storm", "il", ""]))
    text, _ = encode(["hailstorm"])
    slices = {(0, 4): 0, (4, 9): 1, (2, 4): 2, (3, 3): 3, (9, 9): 3, (5, 9): UNKNOWN}
    slices[-1, 4] = NO_WORD
    found = np.empty(len(slices), np.int64)
    low, high = np.array([*slices]).T.copy()
    look_up_all(vocabulary, text, low, high, found)
    assert found.tolist() == [*slices.values()]
    for (a, b), number in slices.items():
        if a >= 0:
            key = np.uint64(hash_bytes(text, a, b))
            assert look_up_hashed(vocabulary, key, text, a, b) == number


UNCOMPILED = """
import numba
import numpy as np
from tests.kernels.text.test_vocabulary import check

assert numba.config.DISABLE_JIT
with np.errstate(over="ignore"):  # unsigned numbers are meant to wrap
    strings = ["", "a", "hailstorm", "a", "\\u00e9" * 9, "hailstorms"]
    check(strings + ["%d" % k for k in range(40)], ["b"])
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
