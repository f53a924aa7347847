"""`Vocabulary`: distinct byte strings, numbered, with a hash table in three flat arrays.

Words are numbered in the order in which they first appear. The bytes of all words lie end to end;
`slots` is an open-addressing table of word numbers, at most half full, so a search soon meets an
empty slot::

    slots    [ . 2 . . 0 . 1 . ]      EMPTY or the number of a word; a power of two of them
    start    [ 0 4 9 ]                word w is bytes[start[w]:start[w + 1]]
    bytes    [ h a i l s t o r m ]

The upper half of a word's hash names the slot where its search begins. A slot holds the number of a
word and the lower half of its hash, so a search passes most other words without reading their
bytes. The word itself is always compared byte for byte: equal hashes cost time, never a wrong
answer. The hash is arithmetic on unsigned 64-bit integers alone, so a table built on one machine
can be memory-mapped on another.

In a large table each of the three arrays costs a cache miss. `look_up_all` therefore processes
batches of words, one array after the other, and prefetches for all words of a batch.

`fill_slots` and `row_in_slots` are a smaller table that finds rows by name, over strings that
already lie end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Ints
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.prefetch import prefetch

UNKNOWN = -1
NO_WORD = -2
EMPTY = 2**64 - 1

_MIN_SLOTS = 8
_BATCH = 64  # words that are looked up together
_NO_SLOT = np.uint64(EMPTY)
_LOWER_HALF = np.uint64(2**32 - 1)
# The odd constants of SplitMix64 (Steele, Lea & Flood 2014, figure 15). All operands are
# unsigned: of an unsigned and a signed 64-bit integer Numba makes a float.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_OTHER_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFT_27 = np.uint64(27)
_SHIFT_31 = np.uint64(31)
_SHIFT_32 = np.uint64(32)
_BYTE_SHIFTS = tuple(np.uint64(8 * k) for k in range(8))
_1, _2, _3, _4, _5, _6, _7, _EIGHT = (np.uint64(k) for k in range(1, 9))


class Vocabulary(NamedTuple):
    """Distinct byte strings, numbered."""

    slots: NDArray[np.uint64]  # lower half of the hash << 32 | number of the word
    start: Ints  # of each word, and the end of the last
    bytes: Bytes


def encode(strings: Sequence[str]) -> tuple[Bytes, Ints]:
    """Return strings in UTF-8, end to end, and where each starts; lone surrogates are kept."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=start[1:])
    # A bytearray, because its views are writable: kernels need no second signature.
    return np.frombuffer(bytearray().join(encoded), np.uint8), start


@kernel
def build(text, start):
    """Build the vocabulary of the strings text[start[k]:start[k + 1]], which may repeat.

    Returns it, and the number of each string: (n,) uint32. text : uint8. start : (n + 1,) int64. At
    most 2**32 - 1 strings may be distinct.
    """
    count = start.shape[0] - 1
    ids = np.empty(count, np.uint32)
    hashes = np.empty(count, np.uint64)  # of each word
    first_seen = np.empty(count, np.int64)  # of each word: the first string that is equal to it
    slots = np.full(_MIN_SLOTS, _NO_SLOT, np.uint64)
    keys = np.empty(_BATCH, np.uint64)
    words = 0
    size = 0
    for k in range(count):
        if k % _BATCH == 0:
            for j in range(min(_BATCH, count - k)):
                keys[j] = hash_bytes(text, start[k + j], start[k + j + 1])
                prefetch(slots, _first_slot(slots, keys[j]))
        low, high = start[k], start[k + 1]
        key = keys[k % _BATCH]
        at = _first_slot(slots, key)
        while slots[at] != _NO_SLOT:
            if _has_hash(slots[at], key):
                seen = first_seen[_word_in(slots[at])]
                if same_bytes(text, low, high, text, start[seen], start[seen + 1]):
                    break
            at = _next_slot(slots, at)
        if slots[at] == _NO_SLOT:
            slots[at] = _slot_of(key, words)
            hashes[words] = key
            first_seen[words] = k
            words += 1
            size += high - low
        ids[k] = _word_in(slots[at])
        if 2 * words > slots.shape[0]:
            slots = _double_slots(slots, hashes[:words])
    word_start = np.empty(words + 1, np.int64)
    word_bytes = np.empty(size, np.uint8)
    write = 0
    for word in range(words):
        word_start[word] = write
        for k in range(start[first_seen[word]], start[first_seen[word] + 1]):
            word_bytes[write] = text[k]
            write += 1
    word_start[words] = write
    return Vocabulary(slots=slots, start=word_start, bytes=word_bytes), ids


@kernel
def add_words(vocabulary, words, text, start, ids):
    """Append strings to a vocabulary of `words` words. Return the new number of words.

    The vocabulary must have capacity, with at most half of its slots in use afterwards. A word is
    written before its slot; a concurrent reader of the slot relies on it because it compares bytes.
    ids : (n,) int64, filled with the number of each string.
    """
    for k in range(start.shape[0] - 1):
        key = hash_bytes(text, start[k], start[k + 1])
        ids[k] = look_up_hashed(vocabulary, key, text, start[k], start[k + 1])
        if ids[k] >= 0:
            continue
        ids[k] = words
        first = vocabulary.start[words]
        for j in range(start[k + 1] - start[k]):
            vocabulary.bytes[first + j] = text[start[k] + j]
        vocabulary.start[words + 1] = first + start[k + 1] - start[k]
        at = _first_slot(vocabulary.slots, key)
        while vocabulary.slots[at] != _NO_SLOT:
            at = _next_slot(vocabulary.slots, at)
        vocabulary.slots[at] = _slot_of(key, words)
        words += 1
    return words


@kernel
def enlarge_slots(vocabulary, words, more):
    """Return slots for `words` words of a vocabulary and `more` others."""
    hashes = np.empty(words, np.uint64)
    for k in range(words):
        hashes[k] = hash_bytes(vocabulary.bytes, vocabulary.start[k], vocabulary.start[k + 1])
    slots = vocabulary.slots
    while slots.shape[0] < 4 * (words + more):
        slots = _double_slots(slots, hashes)
    return slots


@kernel
def _double_slots(slots, hashes):
    """Return a table of twice the size for the words that have these hashes."""
    slots = np.full(2 * slots.shape[0], _NO_SLOT, np.uint64)
    for word in range(hashes.shape[0]):
        at = _first_slot(slots, hashes[word])
        while slots[at] != _NO_SLOT:
            at = _next_slot(slots, at)
        slots[at] = _slot_of(hashes[word], word)
    return slots


@outlined(returns=types.none)
@no_refcount
def look_up_all(vocabulary, text, start, stop, out):
    """Write to `out` the number of each word text[start[k]:stop[k]], or `UNKNOWN`.

    `NO_WORD` where start[k] is negative. start, stop, out : (n,) int64.
    """
    slots = vocabulary.slots
    for first in range(0, out.shape[0], _BATCH):
        last = min(first + _BATCH, out.shape[0])
        for k in range(first, last):
            if start[k] >= 0:
                out[k] = np.int64(hash_bytes(text, start[k], stop[k]))
                prefetch(slots, _first_slot(slots, np.uint64(out[k])))
        for k in range(first, last):
            out[k] = _first_candidate(slots, np.uint64(out[k])) if start[k] >= 0 else NO_WORD
            prefetch(vocabulary.start, out[k])
        for k in range(first, last):
            if out[k] >= 0:
                prefetch(vocabulary.bytes, vocabulary.start[out[k]])
        for k in range(first, last):
            if out[k] >= 0 and not _is_equal(vocabulary, out[k], text, start[k], stop[k]):
                key = hash_bytes(text, start[k], stop[k])
                out[k] = look_up_hashed(vocabulary, key, text, start[k], stop[k])


@inlined
def _first_candidate(slots, key):
    """Return the first word whose slot has the lower half of this hash, or `UNKNOWN`."""
    at = _first_slot(slots, key)
    while slots[at] != _NO_SLOT and not _has_hash(slots[at], key):
        at = _next_slot(slots, at)
    return np.int64(UNKNOWN) if slots[at] == _NO_SLOT else np.int64(_word_in(slots[at]))


@no_refcount
def look_up_hashed(vocabulary, key, text, low, high):
    """Return the number of the word text[low:high], whose hash is `key`, or `UNKNOWN`."""
    slots = vocabulary.slots
    at = _first_slot(slots, key)
    while slots[at] != _NO_SLOT:
        if _has_hash(slots[at], key):
            word = np.int64(_word_in(slots[at]))
            if _is_equal(vocabulary, word, text, low, high):
                return word
        at = _next_slot(slots, at)
    return np.int64(UNKNOWN)


@inlined
def _is_equal(vocabulary, word, text, low, high):
    return same_bytes(
        text, low, high, vocabulary.bytes, vocabulary.start[word], vocabulary.start[word + 1]
    )


@inlined
def _first_slot(slots, key):
    return np.uint64((key >> _SHIFT_32) & np.uint64(slots.shape[0] - 1))


@inlined
def _next_slot(slots, at):
    return np.uint64((at + _1) & np.uint64(slots.shape[0] - 1))


@inlined
def _slot_of(key, word):
    return key << _SHIFT_32 | np.uint64(word)


@inlined
def _has_hash(slot, key):
    return slot >> _SHIFT_32 == key & _LOWER_HALF


@inlined
def _word_in(slot):
    return np.uint32(slot & _LOWER_HALF)


@kernel
def hash_bytes(text, low, high):
    """Return a 64-bit hash of the length and bytes of text[low:high].

    The bytes are read as little-endian words of eight; the last word may overlap the one before. A
    shorter string is one word.
    """
    length = np.uint64(high - low)
    key = _SEED ^ length
    k = np.uint64(low)
    if length < _EIGHT:
        last = _few_bytes(text, k, length)
    else:
        end = np.uint64(high) - _EIGHT
        while k < end:
            key = (key ^ _eight_bytes(text, k)) * _FACTOR
            key ^= key >> _SHIFT_31
            k += _EIGHT
        last = _eight_bytes(text, end)
    key = (key ^ last) * _FACTOR
    key = (key ^ (key >> _SHIFT_27)) * _OTHER_FACTOR
    return key ^ (key >> _SHIFT_31)


@inlined
def same_bytes(text, low, high, other_text, other_low, other_high):
    """Return whether two strings are equal."""
    if high - low != other_high - other_low:
        return False
    length = np.uint64(high - low)
    k = np.uint64(low)
    j = np.uint64(other_low)
    if length < _EIGHT:
        return _few_bytes(text, k, length) == _few_bytes(other_text, j, length)
    end = np.uint64(high) - _EIGHT
    while k < end:
        if _eight_bytes(text, k) != _eight_bytes(other_text, j):
            return False
        k += _EIGHT
        j += _EIGHT
    return _eight_bytes(text, end) == _eight_bytes(other_text, np.uint64(other_high) - _EIGHT)


@inlined
def _eight_bytes(text, k):
    """Return eight bytes as an integer, in a form that compiles to one load."""
    return (
        np.uint64(text[k])
        | np.uint64(text[k + _1]) << _BYTE_SHIFTS[1]
        | np.uint64(text[k + _2]) << _BYTE_SHIFTS[2]
        | np.uint64(text[k + _3]) << _BYTE_SHIFTS[3]
        | np.uint64(text[k + _4]) << _BYTE_SHIFTS[4]
        | np.uint64(text[k + _5]) << _BYTE_SHIFTS[5]
        | np.uint64(text[k + _6]) << _BYTE_SHIFTS[6]
        | np.uint64(text[k + _7]) << _BYTE_SHIFTS[7]
    )


@inlined
def _few_bytes(text, k, count):
    """Return fewer than eight bytes as an integer."""
    number = np.uint64(0)
    for i in range(count):
        number = number << _BYTE_SHIFTS[1] | np.uint64(text[k + np.uint64(i)])
    return number


EMPTY_SLOT = 2**32 - 1
_SHIFT = np.uint64(32)


@kernel
def fill_slots(slots, text, start):
    """Enter the rows of distinct strings text[start[k]:start[k + 1]] in `slots`.

    slots : uint32, all `EMPTY_SLOT`; a power of two of them, at least twice the number of strings.
    """
    last = slots.shape[0] - 1
    for row in range(start.shape[0] - 1):
        key = hash_bytes(text, np.int64(start[row]), np.int64(start[row + 1]))
        at = np.int64(key >> _SHIFT) & last
        while slots[at] != EMPTY_SLOT:
            at = (at + 1) & last
        slots[at] = row


@kernel
def row_in_slots(slots, text, start, name):
    """Return the row of the string with the bytes `name`, or -1."""
    last = slots.shape[0] - 1
    at = np.int64(hash_bytes(name, np.int64(0), np.int64(name.shape[0])) >> _SHIFT) & last
    while slots[at] != EMPTY_SLOT:
        row = slots[at]
        if same_bytes(
            name, np.int64(0), np.int64(name.shape[0]),
            text, np.int64(start[row]), np.int64(start[row + 1]),
        ):  # fmt: skip
            return np.int64(row)
        at = (at + 1) & last
    return np.int64(-1)
