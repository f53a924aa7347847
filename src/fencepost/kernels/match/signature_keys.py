"""Strings, and the place beside them, as one posting.

A filter that needs strings in some columns stands in the posts (`posts_arrays`) under one word for
all of these strings, with the box in which the event must be. Which columns that are is its
*signature*: an event has at most one word for each signature of a segment, and looks into the lists
of these words only::

    start, columns   [ 0 2 3 ]  [ 0 3 | 1 ]     signature s is columns[start[s]:start[s + 1]]
    words            signature and the strings' numbers, as bytes; word k is word `first + k` of
                     the postings, after those of the vocabulary

Where a filter asks for nothing else but contact with a rectangle, or a distance to a point, finding
it decides it: only a distance too close to call is left to its check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Positions
from fencepost.kernels.runtime.compilation import no_refcount
from fencepost.kernels.text.vocabulary import Vocabulary, look_up_all

MAX_COLUMNS = 3  # of a signature
KEY_NUMBERS = 1 + MAX_COLUMNS  # of a word: the signature, and a string for each column, or 0
_KEY_BYTES = 4 * KEY_NUMBERS
_ALL = 2**62
_SOON = 4  # events


class SignatureArrays(NamedTuple):
    """Words that stand for several strings."""

    start: Positions
    columns: Positions
    words: Vocabulary


@no_refcount
def find_signature_keys(combined, string_id, found, buffer):
    """found[s, e] = the word of signature s and event e; negative where nobody asks for it.

    string_id : (columns, events), the numbers of the events' strings, negative where unknown.
    buffer : int64, (KEY_NUMBERS / 2 + 2) for each event.
    """
    events = string_id.shape[1]
    start, stop = buffer[:events], buffer[events : 2 * events]
    keys = buffer[2 * events :].view(np.uint32)
    for s in range(found.shape[0]):
        first, last = np.int64(combined.start[s]), np.int64(combined.start[s + 1])
        for e in range(events):
            start[e] = _KEY_BYTES * e
            stop[e] = _KEY_BYTES * (e + 1)
            keys[KEY_NUMBERS * e] = s
            for k in range(MAX_COLUMNS):
                string = np.int64(0)
                if first + k < last:
                    string = string_id[combined.columns[first + k], e]
                    if string < 0:
                        start[e] = -1
                keys[KEY_NUMBERS * e + 1 + k] = string
        look_up_all(combined.words, keys.view(np.uint8), start, stop, found[s])
