"""Signature keys: one posting word that stands for strings in several columns.

A filter that needs strings in some columns is posted (`posting_arrays`) under the key of these
strings, with the box that the event's geometry must meet. The *signature* of the filter is the list
of these columns. An event has at most one key for each signature of a segment, and searches only
the lists of these keys::

    start, columns   [ 0 2 3 ]  [ 0 3 | 1 ]     signature s is columns[start[s]:start[s + 1]]
    words            a vocabulary of keys: the signature and the numbers of the strings, as bytes;
                     key k is word `first + k` of the postings, after the words of the vocabulary

Where a filter has no other conditions but contact with a rectangle, or a distance to a point, a hit
decides it. Only a distance too close to call is left to its check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Positions
from fencepost.kernels.runtime.compilation import no_refcount
from fencepost.kernels.text.vocabulary import Vocabulary, look_up_all

MAX_COLUMNS = 3  # in a signature
KEY_NUMBERS = 1 + MAX_COLUMNS  # in a key: the signature, and a string for each column, or 0
_KEY_BYTES = 4 * KEY_NUMBERS
_ALL = 2**62
_SOON = 4  # events


class SignatureArrays(NamedTuple):
    """The signatures of a segment, and their keys."""

    start: Positions
    columns: Positions
    words: Vocabulary


@no_refcount
def find_signature_keys(signatures, string_id, out, buffer):
    """Look up the keys of events for each signature.

    Parameters
    ----------
    signatures : SignatureArrays
    string_id : (columns, events) int64
        The events' strings as numbers of the vocabulary, negative where unknown.
    out : (signatures, events) int64
        Filled with the keys, negative where no filter has that key.
    buffer : int64
        Scratch, (KEY_NUMBERS / 2 + 2) for each event.
    """
    events = string_id.shape[1]
    start, stop = buffer[:events], buffer[events : 2 * events]
    keys = buffer[2 * events :].view(np.uint32)
    for s in range(out.shape[0]):
        first, last = np.int64(signatures.start[s]), np.int64(signatures.start[s + 1])
        for e in range(events):
            start[e] = _KEY_BYTES * e
            stop[e] = _KEY_BYTES * (e + 1)
            keys[KEY_NUMBERS * e] = s
            for k in range(MAX_COLUMNS):
                string = np.int64(0)
                if first + k < last:
                    string = string_id[signatures.columns[first + k], e]
                    if string < 0:
                        start[e] = -1
                keys[KEY_NUMBERS * e + 1 + k] = string
        look_up_all(signatures.words, keys.view(np.uint8), start, stop, out[s])
