"""The lists of events, and the words of their texts, as items.

Arrow columns of texts and of lists of strings make no Python object for a row; all other values
come through `lists_from_values`.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine.columns.check_kinds import string_key
from fencepost.events import value_types
from fencepost.events.tokenizer import Tokenizer
from fencepost.kernels.match.check_evaluation import ITEMS, NO_LIST, TEXT
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.kernels.text.utf8_tokenizer import (
    TokenizerRules,
    all_characters,
    ascii_characters,
    deduplicate_lists,
    tokenize_texts,
)
from fencepost.kernels.text.vocabulary import build, encode

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class ItemLists(NamedTuple):
    """One list, or none, for each event; and the items of them all, as in `EventArrays`."""

    kind: Bytes
    start: Ints
    stop: Ints
    text: Bytes
    item_start: Ints


class StringSpans(NamedTuple):
    """Strings in UTF-8: text[start[k]:stop[k]], with a negative start where one is missing."""

    text: Bytes
    start: Ints
    stop: Ints


def lists_from_arrow(array: pa.Array, tokenizer: Tokenizer) -> ItemLists | None:
    """The words of texts, or the items of lists of strings; None of a column of something else."""
    kind = array.type
    if is_text(kind):
        texts = string_spans_of(array)
        there = np.where(texts.start >= 0, np.uint8(TEXT), np.uint8(NO_LIST))
        return _words(texts, there, _rules(tokenizer, bool(texts.text.max(initial=0) < 0x80)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = array.offsets.to_numpy().astype(np.int64)
    elif pa.types.is_fixed_size_list(kind):
        ends = (np.arange(len(array) + 1) + array.offset) * kind.list_size
    else:
        return None
    if not _holds_text(kind.value_type):
        return None
    there = array.is_valid().to_numpy(zero_copy_only=False)
    items = string_spans_of(array.values.slice(ends[0], ends[-1] - ends[0]))
    low = ends[:-1] - ends[0]
    high = np.where(there, ends[1:] - ends[0], low)
    return _listed(items, low, high, np.where(there, ITEMS, NO_LIST))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of strings."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def string_spans_of(array: pa.Array) -> StringSpans:
    """The strings of a column."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        none = np.where(array.is_valid().to_numpy(zero_copy_only=False), 0, -1)
        return StringSpans(np.empty(0, np.uint8), none, np.zeros(len(array), np.int64))
    size = np.int32 if pa.types.is_string(array.type) else np.int64
    ends: NDArray[Any] = np.frombuffer(offsets, size)[array.offset : array.offset + len(array) + 1]
    # A copy is writable, as Arrow's memory is not: kernels need no second signature.
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].copy()
    ends = ends - np.int64(ends[0])
    start = ends[:-1]
    if array.null_count:
        start = np.where(array.is_valid().to_numpy(zero_copy_only=False), start, -1)
    return StringSpans(text, start, ends[1:])


def _words(texts: StringSpans, kind: Bytes, rules: Any) -> ItemLists:
    start, stop = np.empty_like(texts.start), np.empty_like(texts.stop)
    return ItemLists(kind, start, stop, *tokenize_texts(*texts, rules, start, stop))


def _listed(items: StringSpans, low: Ints, high: Ints, kind: NDArray[Any]) -> ItemLists:
    start, stop = np.empty_like(low), np.empty_like(low)
    found = deduplicate_lists(*items, low, high, start, stop)
    return ItemLists(kind.astype(np.uint8), start, stop, *found)


@lru_cache(maxsize=64)
def _rules(tokenizer: Tokenizer, is_ascii: bool) -> Any:
    """The rules as kernels take them; those of all characters are made where one needs them."""
    stop_words, _ = build(*encode([f"s{word}" for word in sorted(tokenizer.stop_words)]))
    return struct_ref(
        TokenizerRules(ascii_characters() if is_ascii else all_characters(), stop_words)
    )


def lists_from_values(given: Sequence[object], tokenizer: Tokenizer) -> ItemLists:
    """The words of texts and the items of lists, given as Python values of any types."""
    texts = [string_key(one) if isinstance(one, str) else None for one in given]
    if None not in texts:
        return _words_of_encoded(texts, tokenizer)
    listed = _of_keys([None if isinstance(one, str) else _item_keys(one) for one in given])
    if texts.count(None) == len(texts):
        return listed
    return _both(_words_of_encoded(texts, tokenizer), listed)


def _words_of_encoded(texts: Sequence[bytes | None], tokenizer: Tokenizer) -> ItemLists:
    present = [text or b"" for text in texts]
    # A bytearray, because a view of one is writable: kernels need no second signature.
    joined = bytearray().join(present)
    ends = _ends(present)
    start = ends[:-1].copy()
    kind = np.full(len(texts), TEXT, np.uint8)
    for event, text in enumerate(texts):
        if text is None:
            start[event] = -1
            kind[event] = NO_LIST
    strings = StringSpans(np.frombuffer(joined, np.uint8), start, ends[1:])
    return _words(strings, kind, _rules(tokenizer, joined.isascii()))


def _ends(parts: Sequence[Sized]) -> Ints:
    """Where parts begin that follow each other, and where the last one ends."""
    return np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)


def _of_keys(lists: Sequence[list[str] | None]) -> ItemLists:
    """Lists of which the distinct items are there as keys."""
    kind = np.array([NO_LIST if keys is None else ITEMS for keys in lists], np.uint8)
    present = [keys or [] for keys in lists]
    ends = _ends(present)
    return ItemLists(kind, ends[:-1], ends[1:], *_encoded(list(chain.from_iterable(present))))


def _encoded(keys: list[str]) -> tuple[Bytes, Ints]:
    joined = "".join(keys)
    if joined.isascii():
        return np.frombuffer(bytearray(joined, "ascii"), np.uint8), _ends(keys)
    return encode(keys)


def _both(words: ItemLists, listed: ItemLists) -> ItemLists:
    """The lists of two kinds of events, which have either."""
    count = len(words.item_start) - 1
    of_words = words.kind == TEXT
    return ItemLists(
        np.where(of_words, words.kind, listed.kind),
        np.where(of_words, words.start, listed.start + count),
        np.where(of_words, words.stop, listed.stop + count),
        np.concatenate((words.text, listed.text)),
        np.concatenate((words.item_start, listed.item_start[1:] + len(words.text))),
    )


def _item_keys(value: object) -> list[str] | None:
    """The keys of the distinct items of a list, or None where the value is none."""
    if isinstance(value, (list, tuple)) and {*map(type, value)} <= {str}:
        return [f"s{item}" for item in dict.fromkeys(value)]
    items = value_types.list_of(value)
    if items is None:
        return None
    # An item of no type that we compare equals nothing: a key that no subscription has.
    keys = [value_types.item_key(item) or b"x%d" % k for k, item in enumerate(items)]
    return [key.decode("utf-8", "surrogatepass") for key in dict.fromkeys(keys)]
