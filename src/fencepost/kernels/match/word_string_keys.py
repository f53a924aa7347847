"""Keys of a word and a string: one posting word that stands for both.

A filter that needs words and a string of another column is posted, where that pays, under the key
of a word and the string, which few events have. Keys are numbered after the words of the vocabulary
and the signature keys; a table of their own, `PostingArrays.string_words`, has them by string
column, string and word. A filter that needs the string and no word has the key of the string and
the number after the last word.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.runtime.compilation import inlined, no_refcount
from fencepost.kernels.text.vocabulary import look_up_all

KEY_NUMBERS = 3  # the string column, the string, the word
_KEY_BYTES = 4 * KEY_NUMBERS
NUMBERS_PER_KEY = 6  # of scratch: a position, an end, an id, and 12 bytes of key, rounded up


@no_refcount
def find_word_string_keys(postings, events, string_id, item_id, out, buffer):
    """Look up the keys of the words of events with the strings of the same events.

    Parameters
    ----------
    postings : PostingArrays
    events : EventArrays
    string_id : (columns, events) int64
        The events' strings as numbers of the vocabulary, negative where unknown.
    item_id : (items,) int64
        Likewise the items.
    out : (string columns, items + events) int64
        Filled: out[s, k] is the key of item k and the string of its event in string column s, and
        out[s, items + e] the key of event e's string without a word; -1 for no key.
    buffer : int64
        Scratch, NUMBERS_PER_KEY for each item and event.
    """
    items, event_count = item_id.shape[0], string_id.shape[1]
    no_word = postings.token_lists.shape[0] - 2 - (postings.string_words.start.shape[0] - 1)
    max_keys = items + event_count
    positions, ends, ids = (
        buffer[:max_keys],
        buffer[max_keys : 2 * max_keys + 1],
        buffer[2 * max_keys + 1 : 3 * max_keys + 1],
    )
    keys = buffer[3 * max_keys + 1 :].view(np.uint32)
    ends[0] = 0
    for s in range(out.shape[0]):
        column = postings.string_columns[s]
        out[s] = -1
        key_count = 0
        for e in range(event_count):
            string = string_id[column, e]
            if string < 0:
                continue
            for c in range(events.list_start.shape[0]):
                for k in range(events.list_start[c, e], events.list_stop[c, e]):
                    if item_id[k] >= 0:
                        positions[key_count] = k
                        key_count = _write_key(keys, ends, key_count, s, string, item_id[k])
            positions[key_count] = items + e
            key_count = _write_key(keys, ends, key_count, s, string, no_word)
        text = keys.view(np.uint8)
        look_up_all(
            postings.string_words, text, ends[:key_count], ends[1 : key_count + 1], ids[:key_count]
        )
        for k in range(key_count):
            out[s, positions[k]] = ids[k] + no_word if ids[k] >= 0 else -1


@inlined
def _write_key(keys, ends, k, column, string, word):
    """Write key k. Return k + 1."""
    keys[KEY_NUMBERS * k] = column
    keys[KEY_NUMBERS * k + 1] = string
    keys[KEY_NUMBERS * k + 2] = word
    ends[k + 1] = _KEY_BYTES * (k + 1)
    return k + 1
