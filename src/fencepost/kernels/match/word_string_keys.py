"""Words together with a string of another column.

A filter that needs words and a string is posted, where that pays, under a word that stands for
both, which few events have. Such words are numbered behind all others; which string and which word
one stands for is looked up in a table of its own. A filter may need a string and no word: of that,
the word is the number after the last.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.runtime.compilation import inlined, no_refcount
from fencepost.kernels.text.vocabulary import look_up_all

KEY_NUMBERS = 3  # the string column, the string, the word
_KEY_BYTES = 4 * KEY_NUMBERS
NUMBERS_PER_KEY = (
    6  # for a place, an end, what is found, half of the numbers of a key, and the last end
)


@no_refcount
def find_word_string_keys(postings, events, string_id, item_id, found, buffer):
    """found[s, k] = the word for a string of string column s and item, and then event, k; or -1.

    string_id, item_id : the numbers of the events' strings and items, negative where unknown.
    buffer : int64, NUMBERS_PER_KEY for each item and event.
    """
    items, count = item_id.shape[0], string_id.shape[1]
    plain = postings.token_lists.shape[0] - 2 - (postings.string_words.start.shape[0] - 1)
    most = items + count
    place, ends, got = (
        buffer[:most],
        buffer[most : 2 * most + 1],
        buffer[2 * most + 1 : 3 * most + 1],
    )
    keys = buffer[3 * most + 1 :].view(np.uint32)
    ends[0] = 0
    for s in range(found.shape[0]):
        column = postings.string_columns[s]
        found[s] = -1
        asked = 0
        for e in range(count):
            string = string_id[column, e]
            if string < 0:
                continue
            for c in range(events.list_start.shape[0]):
                for k in range(events.list_start[c, e], events.list_stop[c, e]):
                    if item_id[k] >= 0:
                        place[asked] = k
                        asked = _write(keys, ends, asked, s, string, item_id[k])
            place[asked] = items + e
            asked = _write(keys, ends, asked, s, string, plain)
        text = keys.view(np.uint8)
        look_up_all(postings.string_words, text, ends[:asked], ends[1 : asked + 1], got[:asked])
        for k in range(asked):
            found[s, place[k]] = got[k] + plain if got[k] >= 0 else -1


@inlined
def _write(keys, ends, k, column, string, word):
    keys[KEY_NUMBERS * k] = column
    keys[KEY_NUMBERS * k + 1] = string
    keys[KEY_NUMBERS * k + 2] = word
    ends[k + 1] = _KEY_BYTES * (k + 1)
    return k + 1
