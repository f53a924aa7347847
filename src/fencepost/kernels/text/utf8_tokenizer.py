"""Texts and lists of strings to items: the tokenizer of `fencepost.events.tokenizer` on UTF-8.

What comes out lies as the items of `EventArrays` do. The distinct items of one list after another,
each a prefix and the bytes of the word, end to end::

    text          [ s h a i l s s t o r m s o n ]
    item_start    [ 0         5           11    14 ]    one more than there are items
    list_start    [ 0     2 ]                           list k is the items
    list_stop     [ 2     3 ]                           list_start[k]:list_stop[k]

A text is read once, byte by byte. The word at hand is written behind the last item, folded; where
it ends, a hash table of this list's items says whether it is new, and if not, the next word is
written over it. Items are numbered on from list to list and a slot holds the number of an item,
so that slots of earlier lists count as empty and nothing is ever cleared.

ASCII needs one table of 256 bytes. The other characters are found in two steps, by their blocks of
128, of which few differ::

    block     [ 3 3 0 1 1 1 ... ]        of code points 128 k to 128 k + 127, the number of a block
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

PREFIX = ord("s")  # what a string in a list, or a word of a text, begins with as an item
SEPARATES, STAYS, FOLDS = 0, 1, 2

_BLOCK = 128
_BLOCK_BITS = 7
_CODE_POINTS = 0x110000
_ENCODABLE = 0x200000  # what four bytes can say, if they are no UTF-8
_MAX_GROWTH = 3  # of bytes by folding, so Unicode's rule of stability: U+0390, from 2 to 6
_MIN_SLOTS = 16
_SHIFT_32 = np.uint64(32)
_ONE, _TWO, _THREE, _FOUR = (np.uint64(k) for k in range(1, 5))

# Of each byte: its lower case in a word, 0 where it separates, and from 128 on _NOT_ASCII.
_NOT_ASCII = 255
_ASCII = np.zeros(256, np.uint8)
for _char in range(128):
    if chr(_char).isalnum():
        _ASCII[_char] = ord(chr(_char).lower())
_ASCII[128:] = _NOT_ASCII


class Characters(NamedTuple):
    """What becomes of each character of a text."""

    block: NDArray[np.uint16]
    fate: NDArray[np.uint16]
    fold_start: Ints
    fold_bytes: Bytes


class TokenizerRules(NamedTuple):
    """How texts become words."""

    characters: Characters
    stop_words: Vocabulary  # of items that are left out


def empty_vocabulary() -> Vocabulary:
    """A vocabulary without words."""
    words: Vocabulary = build(np.empty(0, np.uint8), np.zeros(1, np.int64))[0]
    return words


@cache
def ascii_characters() -> Characters:
    """All that is needed for texts in ASCII; other characters separate."""
    return Characters(
        np.zeros(_ENCODABLE // _BLOCK, np.uint16),
        np.full(_BLOCK, SEPARATES, np.uint16),
        np.zeros(1, np.int64),
        np.empty(0, np.uint8),
    )


@cache
def all_characters() -> Characters:
    """Every character by the Unicode tables of the running Python."""
    points = np.arange(_CODE_POINTS, dtype="<u4").tobytes()
    text = points.decode("utf-32-le", "surrogatepass")
    numbers: dict[bytes, int] = {bytes(2 * _BLOCK): 0}  # of blocks; in the first all separate
    blocks = np.zeros(_ENCODABLE // _BLOCK, np.uint16)
    foldings: list[bytes] = []
    for number in range(_CODE_POINTS // _BLOCK):
        part = text[number * _BLOCK : (number + 1) * _BLOCK]
        # Letters, marks and numbers can be printed; what cannot be is escaped in ASCII.
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
    """What becomes of some characters; new foldings are appended."""
    if chars.isalpha():
        fates = np.full(len(chars), STAYS, np.uint16)
    else:
        fates = np.array([category(char)[0] in "LMN" for char in chars], np.uint16)
    if chars.casefold() != chars:
        for place, char in enumerate(chars):
            if fates[place] == STAYS and char.casefold() != char:
                fates[place] = FOLDS + len(foldings)
                foldings.append(char.casefold().encode())
    return fates


@kernel
def tokenize_texts(text, start, stop, rules_ref, list_start, list_stop):
    """The distinct words of the texts text[start[k]:stop[k]], as items: their bytes and starts.

    text : uint8, in UTF-8. start, stop : int64; a negative start is no text, and has no words.
    rules_ref : of TokenizerRules. list_start, list_stop : int64, filled, counting from 0.
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
    """The distinct strings of each list, as items: their bytes and starts.

    text, start, stop : the strings text[start[k]:stop[k]]; one with a negative start is missing.
    list_low, list_high : int64; a list is the strings list_low[t]:list_high[t].
    list_start, list_stop : int64, filled, counting from 0.
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
    """Arrays that hold the items of these texts, however many; and a hash table for the longest."""
    size = 0
    words = 0
    most = 0
    for t in range(start.shape[0]):
        if start[t] < 0:
            continue
        beyond_ascii = 0
        for k in range(start[t], stop[t]):
            beyond_ascii += text[k] >> 7
        own = _max_words(start[t], stop[t])
        size += stop[t] - start[t] + (_MAX_GROWTH - 1) * beyond_ascii + own
        words += own
        most = max(most, own)
    return _allocate(size, words, most)


@kernel
def _allocate_for_lists(start, stop, list_low, list_high):
    """The same for these lists."""
    size = 0
    items = 0
    most = 0
    for t in range(list_low.shape[0]):
        for k in range(list_low[t], list_high[t]):
            if start[k] >= 0:
                size += 1 + stop[k] - start[k]
        items += list_high[t] - list_low[t]
        most = max(most, 2 * (list_high[t] - list_low[t]))
    return _allocate(size, items, most)


@inlined
def _allocate(size, items, most):
    starts = np.empty(items + 1, np.int64)
    starts[0] = 0
    return np.empty(size, np.uint8), starts, np.full(_slot_count(most), -1, np.int64)


@inlined
def _max_words(start, stop):
    """How many words a text of so many bytes can have."""
    return (stop - start + 1) // 2


@inlined
def _slot_count(most):
    """A power of two, and more than so many: a search finds an empty slot."""
    count = _MIN_SLOTS
    while count <= most:
        count *= 2
    return count


@kernel
def _write_word(text, start, stop, characters, out, out_start):
    """Write the word that begins at text[start]; where to go on, and where the word ends in `out`.

    What separates it from the next is passed over, and may be all there is.
    """
    # Indexing by an unsigned number needs no check for negative ones: a third of the time.
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
    """The code point at text[k], and where the next begins; a NUL where this is no UTF-8.

    So no character has fewer bytes beyond ASCII than its code point needs, and there is room.
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
    block = np.uint32(characters.block[code >> _BLOCK_BITS])
    return characters.fate[np.uint32(block << _BLOCK_BITS | code & (_BLOCK - 1))]


@inlined
def _is_new(out, end, key, item_start, first, items, slots, slot_count):
    """Whether out[item_start[items]:end] is none of the items from `first` on; it gets a slot."""
    last_slot = np.uint64(slot_count - 1)
    at = key >> _SHIFT_32 & last_slot
    while slots[at] >= first:
        seen = slots[at]
        if same_bytes(out, item_start[items], end, out, item_start[seen], item_start[seen + 1]):
            return False
        at = at + _ONE & last_slot
    slots[at] = items
    return True
