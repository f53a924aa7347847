"""Posted filters, by words and by strings, for several events in one go.

Handing arrays over for each event takes as long as looking; and while one event is looked at, what
later ones will read can be on its way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.combined import fetch_combined, find_combined
from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.posts import find
from fencepost.kernels.posts_arrays import COMBINED
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.shapes import Positions

AHEAD = 256  # events that are looked at in one go


class Ahead(NamedTuple):
    """Room for what is found for some events before the rest is looked for."""

    matches: Positions  # subscriptions, of event after event
    candidates: Positions  # filters
    stops: NDArray[np.int64]  # (AHEAD + 1, 2): where those of each event end; the first are 0


@kernel
def find_posted(segment, events_handle, item_id, with_string, combined, begin, room, own, ahead):
    """Find what some events match, and filters that they may match; the event after the last.

    segment, events_handle : handles of SegmentArrays and EventArrays. item_id, with_string : the
    numbers of the events' words, see `posts.find`. combined : of each signature and event, see
    `words_of_events`. begin : the first event. own : PostScratch. ahead : Ahead, filled.
    """
    posts = segment.arrays.posts
    events = events_handle.arrays
    owner = segment.arrays.filter_subscription
    first_word = segment.arrays.vocabulary.start.shape[0] - 1
    with_words = posts.groups.shape[0] > 0 and posts.groups[0]["list_column"] != COMBINED
    found = total = np.int64(0)
    most = posts.owner.shape[0]
    e = begin
    while (
        e < combined.shape[1]
        and e - begin < AHEAD
        and found + most <= ahead.matches.shape[0]
        and total + most <= ahead.candidates.shape[0]
    ):
        if with_words:
            _fetch_lists(posts, events, item_id, with_string, e)
            found, total = find(
                posts, events, item_id, with_string, e, room, own, ahead.matches, found,
                ahead.candidates, total,
            )  # fmt: skip
        fetch_combined(posts, combined, first_word, e)
        found, total = find_combined(
            posts, owner, events, combined, first_word, e, room, own.near, ahead.matches, found,
            ahead.candidates, total,
        )  # fmt: skip
        e += 1
        ahead.stops[e - begin, 0] = found
        ahead.stops[e - begin, 1] = total
    return e


@inlined
def _fetch_lists(posts, events, item_id, with_string, e):
    """Ask for the lists of the next event's words, and for where to find those after it."""
    for c in range(events.list_start.shape[0]):
        if e + 2 < events.list_start.shape[1]:
            for k in range(events.list_start[c, e + 2], events.list_stop[c, e + 2]):
                if item_id[k] >= 0:
                    prefetch(posts.token_lists, item_id[k])
                for s in range(with_string.shape[0]):
                    if with_string[s, k] >= 0:
                        prefetch(posts.token_lists, with_string[s, k])
        if e + 1 < events.list_start.shape[1]:
            for k in range(events.list_start[c, e + 1], events.list_stop[c, e + 1]):
                if item_id[k] >= 0:
                    prefetch(posts.lists, np.int64(posts.token_lists[item_id[k]]))
                for s in range(with_string.shape[0]):
                    if with_string[s, k] >= 0:
                        prefetch(posts.lists, np.int64(posts.token_lists[with_string[s, k]]))
