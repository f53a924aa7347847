"""Tokenization of UTF-8 texts and lists of strings into items.

Texts become the words of `fencepost.events.tokenizer`. The output has the layout of the items of
`EventArrays`: the distinct items of list after list, each a prefix and the bytes of a word, end to
end::

    text          [ s h a i l s s t o r m s o n ]
    item_start    [ 0         5           11    14 ]    one more than there are items
    list_start    [ 0     2 ]                           list k has the items
    list_stop     [ 2     3 ]                           list_start[k]:list_stop[k]

A text is read once, byte by byte. Each word is written, case folded, after the last item. At its
end, a hash table of the items of this list tells whether the word is new; if not, the next word
overwrites it. Items are numbered on from list to list and a slot holds the number of an item, so
slots of earlier lists count as empty, and the table is never cleared.

A table of 256 bytes serves ASCII. Other characters are looked up in two steps, by blocks of 128,
most of which are equal::

    block     [ 3 3 0 1 1 1 ... ]        for code points 128 k to 128 k + 127, the number of a block
    fate      [ 128 of block 0 | 128 of block 1 | ... ]    SEPARATES, STAYS, or FOLDS + a folding
    folding   f is fold_bytes[fold_start[f]:fold_start[f + 1]]
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Ints
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.kernels.text.vocabulary import (
    Vocabulary,
    build,
    hash_bytes,
    look_up_hashed,
    same_bytes,
)

PREFIX = ord("s")  # the first byte of an item that is a string or a word
SEPARATES, STAYS, FOLDS = 0, 1, 2  # the fates of characters

_BLOCK = 128
_BLOCK_BITS = 7
_CODE_POINTS = 0x110000
_ENCODABLE = 0x200000  # what four bytes can encode, also in invalid UTF-8
_MAX_GROWTH = 3  # of bytes by case folding, by Unicode's stability policy: U+0390 grows from 2 to 6
_MIN_SLOTS = 16
_SHIFT_32 = np.uint64(32)
_ONE, _TWO, _THREE, _FOUR = (np.uint64(k) for k in range(1, 5))

# For each byte its lower case, 0 if it separates words, or _NOT_ASCII.
_NOT_ASCII = 255
_ASCII = np.zeros(256, np.uint8)
for _char in range(128):
    if chr(_char).isalnum():
        _ASCII[_char] = ord(chr(_char).lower())
_ASCII[128:] = _NOT_ASCII


class Characters(NamedTuple):
    """The fate of each character of a text."""

    block: NDArray[np.uint16]
    fate: NDArray[np.uint16]
    fold_start: Ints
    fold_bytes: Bytes


class TokenizerRules(NamedTuple):
    """The rules by which texts are tokenized."""

    characters: Characters
    stop_words: Vocabulary  # items that are left out


def empty_vocabulary() -> Vocabulary:
    """Return a vocabulary without words."""
    words: Vocabulary = build(np.empty(0, np.uint8), np.zeros(1, np.int64))[0]
    return words


@cache
def ascii_characters() -> Characters:
    """Return the fates of characters for ASCII texts; all other characters separate words."""
    return Characters(
        np.zeros(_ENCODABLE // _BLOCK, np.uint16),
        np.full(_BLOCK, SEPARATES, np.uint16),
        np.zeros(1, np.int64),
        np.empty(0, np.uint8),
    )


@cache
def all_characters() -> Characters:
    """Return the fates of all characters by the Unicode tables of the running Python."""
    points = np.arange(_CODE_POINTS, dtype="<u4").tobytes()
    text = points.decode("utf-32-le", "surrogatepass")
    numbers: dict[bytes, int] = {bytes(2 * _BLOCK): 0}  # of blocks; in block 0 all separate
    blocks = np.zeros(_ENCODABLE // _BLOCK, np.uint16)
    foldings: list[bytes] = []
    for number in range(_CODE_POINTS // _BLOCK):
        part = text[number * _BLOCK : (number + 1) * _BLOCK]
        # Letters, marks and numbers are printable, and `repr` escapes unprintable characters.
        if number == 0 or not repr(part).isascii():
            fates = _fates(part, foldings).tobytes()
            blocks[number] = numbers.setdefault(fates, len(numbers))
    return Characters(
        blocks,
        np.frombuffer(bytearray().join(numbers), np.uint16),
        np.cumsum([0, *map(len, foldings)]),
        np.frombuffer(bytearray().join(foldings), np.uint8),
    )


def _fates(chars: str, foldings: list[bytes]) -> NDArray[np.uint16]:
    """Return the fates of some characters; append new foldings."""
    if chars.isalpha():
        fates = np.full(len(chars), STAYS, np.uint16)
    else:
        fates = np.array([category(char)[0] in "LMN" for char in chars], np.uint16)
    if chars.casefold() != chars:
        for position, char in enumerate(chars):
            if fates[position] == STAYS and char.casefold() != char:
                fates[position] = FOLDS + len(foldings)
                foldings.append(char.casefold().encode())
    return fates


@kernel
def tokenize_texts(text, start, stop, rules_ref, list_start, list_stop):
    """Return the distinct words of each text as items: their bytes, and the start of each.

    Parameters
    ----------
    text : uint8
        Text k is text[start[k]:stop[k]], in UTF-8.
    start, stop : (n,) int64
        A negative start is a missing text, which has no words.
    rules_ref : struct reference to TokenizerRules
    list_start, list_stop : (n,) int64
        Filled: the items of each text.
    """
    characters = rules_ref.arrays.characters
    stop_words = rules_ref.arrays.stop_words
    out, item_start, slots = _allocate_for_texts(text, start, stop)
    items = 0
    write = 0
    for t in range(start.shape[0]):
        list_start[t] = items
        slot_count = _slot_count(_max_words(start[t], stop[t]))
        k = start[t] if start[t] >= 0 else stop[t]
        while k < stop[t]:
            k, end = _write_word(text, k, stop[t], characters, out, write + 1)
            if end == write + 1:
                continue
            out[write] = PREFIX
            key = hash_bytes(out, write, end)
            if stop_words.start.shape[0] > 1:
                if look_up_hashed(stop_words, key, out, write, end) >= 0:
                    continue
            if _is_new(out, end, key, item_start, list_start[t], items, slots, slot_count):
                items += 1
                write = end
                item_start[items] = write
        list_stop[t] = items
    return out[:write], item_start[: items + 1]


@kernel
def deduplicate_lists(text, start, stop, list_low, list_high, list_start, list_stop):
    """Return the distinct strings of each list as items: their bytes, and the start of each.

    Parameters
    ----------
    text, start, stop
        String k is text[start[k]:stop[k]]; with a negative start it is missing.
    list_low, list_high : (n,) int64
        List t has the strings list_low[t]:list_high[t].
    list_start, list_stop : (n,) int64
        Filled: the items of each list.
    """
    out, item_start, slots = _allocate_for_lists(start, stop, list_low, list_high)
    items = 0
    write = 0
    for t in range(list_low.shape[0]):
        list_start[t] = items
        slot_count = _slot_count(2 * (list_high[t] - list_low[t]))
        for k in range(list_low[t], list_high[t]):
            if start[k] < 0:
                continue
            out[write] = PREFIX
            end = write + 1
            for j in range(start[k], stop[k]):
                out[end] = text[j]
                end += 1
            key = hash_bytes(out, write, end)
            if _is_new(out, end, key, item_start, list_start[t], items, slots, slot_count):
                items += 1
                write = end
                item_start[items] = write
        list_stop[t] = items
    return out[:write], item_start[: items + 1]


@kernel
def _allocate_for_texts(text, start, stop):
    """Allocate arrays for all items that texts can have, and a hash table for the longest text."""
    size = 0
    words = 0
    max_items = 0
    for t in range(start.shape[0]):
        if start[t] < 0:
            continue
        beyond_ascii = 0
        for k in range(start[t], stop[t]):
            beyond_ascii += text[k] >> 7
        max_words = _max_words(start[t], stop[t])
        size += stop[t] - start[t] + (_MAX_GROWTH - 1) * beyond_ascii + max_words
        words += max_words
        max_items = max(max_items, max_words)
    return _allocate(size, words, max_items)


@kernel
def _allocate_for_lists(start, stop, list_low, list_high):
    """Allocate arrays for the items of lists, and a hash table for the longest list."""
    size = 0
    items = 0
    max_items = 0
    for t in range(list_low.shape[0]):
        for k in range(list_low[t], list_high[t]):
            if start[k] >= 0:
                size += 1 + stop[k] - start[k]
        items += list_high[t] - list_low[t]
        max_items = max(max_items, 2 * (list_high[t] - list_low[t]))
    return _allocate(size, items, max_items)


@inlined
def _allocate(size, items, max_items):
    starts = np.empty(items + 1, np.int64)
    starts[0] = 0
    return np.empty(size, np.uint8), starts, np.full(_slot_count(max_items), -1, np.int64)


@inlined
def _max_words(start, stop):
    """Return the most words that a text of this length has."""
    return (stop - start + 1) // 2


@inlined
def _slot_count(max_items):
    """Return a power of two above `max_items`, so that every search meets an empty slot."""
    count = _MIN_SLOTS
    while count <= max_items:
        count *= 2
    return count


@kernel
def _write_word(text, start, stop, characters, out, out_start):
    """Write the word at text[start] to `out`.

    Returns where reading continues, after the separator, and where the word ends. The word is empty
    if text[start] is a separator.
    """
    # An unsigned index saves the check for negative numbers, a third of the time.
    k = np.uint64(start)
    end = np.uint64(stop)
    write = np.uint64(out_start)
    while k < end:
        byte = _ASCII[text[k]]
        if byte == SEPARATES:
            return np.int64(k + _ONE), np.int64(write)
        if byte != _NOT_ASCII:
            out[write] = byte
            write += _ONE
            k += _ONE
            continue
        code, following = _code_point(text, k, end)
        fate = _fate(characters, code)
        if fate == SEPARATES:
            return np.int64(following), np.int64(write)
        if fate == STAYS:
            while k < following:
                out[write] = text[k]
                write += _ONE
                k += _ONE
        else:
            first, last = (
                characters.fold_start[fate - FOLDS],
                characters.fold_start[fate - FOLDS + 1],
            )
            for j in range(first, last):
                out[write] = characters.fold_bytes[j]
                write += _ONE
            k = following
    return np.int64(k), np.int64(write)


@inlined
def _code_point(text, k, stop):
    """Return the code point at text[k], or 0 for invalid UTF-8, and where the next begins.

    So each code point has at least as many bytes as its encoding needs, and the output fits.
    """
    lead = np.uint32(text[k])
    length = _TWO if lead < 0xE0 else _THREE if lead < 0xF0 else _FOUR
    if k + length > stop:
        return np.uint32(0), stop
    code = lead & (np.uint32(0x7F) >> np.uint32(length))
    following = k + length
    k += _ONE
    while k < following:
        if text[k] & 0xC0 != 0x80:
            return np.uint32(0), k
        code = np.uint32(code << 6 | text[k] & 0x3F)
        k += _ONE
    return code, following


@inlined
def _fate(characters, code):
    """Return the fate of a code point."""
    block = np.uint32(characters.block[code >> _BLOCK_BITS])
    return characters.fate[np.uint32(block << _BLOCK_BITS | code & (_BLOCK - 1))]


@inlined
def _is_new(out, end, key, item_start, first, items, slots, slot_count):
    """Return whether the item that ends at `end` differs from the items from `first` on.

    A new item gets a slot.
    """
    last_slot = np.uint64(slot_count - 1)
    at = key >> _SHIFT_32 & last_slot
    while slots[at] >= first:
        seen = slots[at]
        if same_bytes(out, item_start[items], end, out, item_start[seen], item_start[seen + 1]):
            return False
        at = at + _ONE & last_slot
    slots[at] = items
    return True
