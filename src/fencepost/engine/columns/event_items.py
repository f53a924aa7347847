"""`ItemLists`: the lists of events, and the words of their texts, encoded as items.

Arrow columns of texts and of lists of strings are encoded without a Python object for each row.
`lists_from_values` encodes all other values.
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
    """A list, or none, for each event, and all items; the fields are as in `EventArrays`."""

    kind: Bytes
    start: Ints
    stop: Ints
    text: Bytes
    item_start: Ints


class StringSpans(NamedTuple):
    """Strings in UTF-8: text[start[k]:stop[k]]. The start of a missing string is negative."""

    text: Bytes
    start: Ints
    stop: Ints


def lists_from_arrow(array: pa.Array, tokenizer: Tokenizer) -> ItemLists | None:
    """Return the words of texts, or the items of lists of strings; None for any other type."""
    dtype = array.type
    if is_text(dtype):
        texts = string_spans_of(array)
        kinds = np.where(texts.start >= 0, np.uint8(TEXT), np.uint8(NO_LIST))
        rules = _tokenizer_rules(tokenizer, bool(texts.text.max(initial=0) < 0x80))
        return _word_lists(texts, kinds, rules)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        ends = array.offsets.to_numpy().astype(np.int64)
    elif pa.types.is_fixed_size_list(dtype):
        ends = (np.arange(len(array) + 1) + array.offset) * dtype.list_size
    else:
        return None
    if not _is_text_or_dictionary(dtype.value_type):
        return None
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    items = string_spans_of(array.values.slice(ends[0], ends[-1] - ends[0]))
    low = ends[:-1] - ends[0]
    high = np.where(is_valid, ends[1:] - ends[0], low)
    return _item_lists(items, low, high, np.where(is_valid, ITEMS, NO_LIST))


def is_text(dtype: pa.DataType) -> bool:
    """Return whether a type is a string type."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(dtype) for test in tests)


def _is_text_or_dictionary(dtype: pa.DataType) -> bool:
    return is_text(dtype.value_type if pa.types.is_dictionary(dtype) else dtype)


def string_spans_of(array: pa.Array) -> StringSpans:
    """Return the strings of a column."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        start = np.where(array.is_valid().to_numpy(zero_copy_only=False), 0, -1)
        return StringSpans(np.empty(0, np.uint8), start, np.zeros(len(array), np.int64))
    dtype = np.int32 if pa.types.is_string(array.type) else np.int64
    ends: NDArray[Any] = np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1]
    # A copy is writable. Arrow's memory is read-only, and would need a second kernel signature.
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].copy()
    ends = ends - np.int64(ends[0])
    start = ends[:-1]
    if array.null_count:
        start = np.where(array.is_valid().to_numpy(zero_copy_only=False), start, -1)
    return StringSpans(text, start, ends[1:])


def _word_lists(texts: StringSpans, kind: Bytes, rules: Any) -> ItemLists:
    """Return the distinct words of each text."""
    start, stop = np.empty_like(texts.start), np.empty_like(texts.stop)
    return ItemLists(kind, start, stop, *tokenize_texts(*texts, rules, start, stop))


def _item_lists(items: StringSpans, low: Ints, high: Ints, kind: NDArray[Any]) -> ItemLists:
    """Return the distinct items of each list items[low[k]:high[k]]."""
    start, stop = np.empty_like(low), np.empty_like(low)
    text, item_start = deduplicate_lists(*items, low, high, start, stop)
    return ItemLists(kind.astype(np.uint8), start, stop, text, item_start)


@lru_cache(maxsize=64)
def _tokenizer_rules(tokenizer: Tokenizer, is_ascii: bool) -> Any:
    """Return a struct reference of the rules; ASCII text needs a small table only."""
    stop_words, _ = build(*encode([f"s{word}" for word in sorted(tokenizer.stop_words)]))
    return struct_ref(
        TokenizerRules(ascii_characters() if is_ascii else all_characters(), stop_words)
    )


def lists_from_values(values: Sequence[object], tokenizer: Tokenizer) -> ItemLists:
    """Return the words of texts and the items of lists, from Python values of any types."""
    texts = [string_key(value) if isinstance(value, str) else None for value in values]
    if None not in texts:
        return _word_lists_from_bytes(texts, tokenizer)
    lists = _lists_from_keys(
        [None if isinstance(value, str) else _item_keys(value) for value in values]
    )
    if texts.count(None) == len(texts):
        return lists
    return _combine(_word_lists_from_bytes(texts, tokenizer), lists)


def _word_lists_from_bytes(texts: Sequence[bytes | None], tokenizer: Tokenizer) -> ItemLists:
    present = [text or b"" for text in texts]
    # The view of a bytearray is writable. A read-only array would need a second signature.
    concatenated = bytearray().join(present)
    ends = _offsets(present)
    start = ends[:-1].copy()
    kind = np.full(len(texts), TEXT, np.uint8)
    for event, text in enumerate(texts):
        if text is None:
            start[event] = -1
            kind[event] = NO_LIST
    strings = StringSpans(np.frombuffer(concatenated, np.uint8), start, ends[1:])
    return _word_lists(strings, kind, _tokenizer_rules(tokenizer, concatenated.isascii()))


def _offsets(parts: Sequence[Sized]) -> Ints:
    """Return where each part begins when all are concatenated, and where the last one ends."""
    return np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)


def _lists_from_keys(lists: Sequence[list[str] | None]) -> ItemLists:
    """Return lists whose distinct items are passed as keys."""
    kind = np.array([NO_LIST if keys is None else ITEMS for keys in lists], np.uint8)
    present = [keys or [] for keys in lists]
    ends = _offsets(present)
    return ItemLists(kind, ends[:-1], ends[1:], *_encode_keys(list(chain.from_iterable(present))))


def _encode_keys(keys: list[str]) -> tuple[Bytes, Ints]:
    concatenated = "".join(keys)
    if concatenated.isascii():
        return np.frombuffer(bytearray(concatenated, "ascii"), np.uint8), _offsets(keys)
    return encode(keys)


def _combine(words: ItemLists, lists: ItemLists) -> ItemLists:
    """Take the words of the events that have a text, and the lists of all other events."""
    count = len(words.item_start) - 1
    has_text = words.kind == TEXT
    return ItemLists(
        np.where(has_text, words.kind, lists.kind),
        np.where(has_text, words.start, lists.start + count),
        np.where(has_text, words.stop, lists.stop + count),
        np.concatenate((words.text, lists.text)),
        np.concatenate((words.item_start, lists.item_start[1:] + len(words.text))),
    )


def _item_keys(value: object) -> list[str] | None:
    """Return the keys of the distinct items of a list, or None if the value is no list."""
    if isinstance(value, (list, tuple)) and {*map(type, value)} <= {str}:
        return [f"s{item}" for item in dict.fromkeys(value)]
    items = value_types.list_of(value)
    if items is None:
        return None
    # An item of an unsupported type equals nothing, so its key is one that no subscription has.
    keys = [value_types.item_key(item) or b"x%d" % k for k, item in enumerate(items)]
    return [key.decode("utf-8", "surrogatepass") for key in dict.fromkeys(keys)]
