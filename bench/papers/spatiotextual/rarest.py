"""A baseline that one would write by hand: inverted lists by rarest token, compiled.

    token -> its subscriptions: box (4 doubles), the other tokens, row

Each subscription is in the list of its rarest token. A message marks its tokens in a bitset, and
scans the lists of its tokens: it compares the box, then the other tokens, rarest first, with the
bitset. There is no spatial index, and no pruning within a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.compiling import compiled
from bench.papers.spatiotextual.methods import WARM_UP, Matches, Method, timed
from bench.papers.spatiotextual.token_sets import Floats, Ints, TokenBoxes, Tokens
from bench.papers.spatiotextual.workloads import Workload

NAME = "rarest-token list"


class Lists(NamedTuple):
    """All lists, concatenated; entries first[t]:first[t + 1] are the list of token t."""

    first: Ints
    boxes: Floats
    rest_start: Ints
    rest: Tokens
    rows: Tokens


def method(workload: Workload) -> Method:
    """Build the lists of a workload."""
    subscriptions, vocabulary = workload.subscriptions, workload.topics.vocabulary
    build(subscriptions.first(WARM_UP), vocabulary)
    lists, seconds = timed(lambda: build(subscriptions, vocabulary))
    marks = np.zeros(vocabulary // 64 + 1, np.uint64)
    return Method(
        NAME,
        seconds,
        sum(array.nbytes for array in lists),
        lambda m: lambda: _match(lists, m.boxes, m.start, m.tokens, marks),
    )


def build(subscriptions: TokenBoxes, vocabulary: int) -> Lists:
    """Return the lists of subscriptions; each subscription must have a token."""
    if (subscriptions.start[1:] == subscriptions.start[:-1]).any():
        raise ValueError("a subscription without tokens has no rarest one")
    frequency = np.bincount(subscriptions.tokens, minlength=vocabulary)
    return Lists(
        *_fill_lists(subscriptions.boxes, subscriptions.start, subscriptions.tokens, frequency)
    )


@compiled
def _fill_lists(boxes: Floats, start: Ints, tokens: Tokens, frequency: Ints) -> Any:
    """Return the arrays of `Lists`, in two passes: count, then fill."""
    count = len(boxes)
    first = np.zeros(len(frequency) + 1, np.int64)
    rarest = np.empty(count, np.int64)
    for row in range(count):
        rarest_place = start[row]
        for place in range(start[row] + 1, start[row + 1]):
            if frequency[tokens[place]] < frequency[tokens[rarest_place]]:
                rarest_place = place
        rarest[row] = rarest_place
        first[tokens[rarest_place] + 1] += 1
    first = np.cumsum(first)
    free = first[:-1].copy()
    rows = np.empty(count, np.uint32)
    for row in range(count):
        token = tokens[rarest[row]]
        rows[free[token]] = row
        free[token] += 1
    list_boxes = np.empty((count, 4), np.float64)
    rest_start = np.zeros(count + 1, np.int64)
    rest = np.empty(len(tokens) - count, np.uint32)
    used = 0
    for entry in range(count):
        row = rows[entry]
        list_boxes[entry] = boxes[row]
        low = used
        for place in range(start[row], start[row + 1]):
            if place != rarest[row]:
                token = tokens[place]
                at = used
                while at > low and frequency[rest[at - 1]] > frequency[token]:
                    rest[at] = rest[at - 1]
                    at -= 1
                rest[at] = token
                used += 1
        rest_start[entry + 1] = used
    return first, list_boxes, rest_start, rest, rows


@compiled
def _match(
    lists: Lists, boxes: Floats, start: Ints, tokens: Tokens, marks: NDArray[np.uint64]
) -> Matches:
    """Return the rows that each message matches; `marks` is all 0 before and after."""
    matches = np.empty(1024, np.uint32)
    stops = np.empty(len(boxes), np.int64)
    count = 0
    one = np.uint64(1)
    for message in range(len(boxes)):
        x0, y0, x1, y1 = (
            boxes[message, 0],
            boxes[message, 1],
            boxes[message, 2],
            boxes[message, 3],
        )
        message_tokens = tokens[start[message] : start[message + 1]]
        for token in message_tokens:
            marks[token >> 6] |= one << np.uint64(token & 63)
        before = count
        for token in message_tokens:
            for entry in range(lists.first[token], lists.first[token + 1]):
                if (
                    lists.boxes[entry, 0] <= x1
                    and lists.boxes[entry, 2] >= x0
                    and lists.boxes[entry, 1] <= y1
                    and lists.boxes[entry, 3] >= y0
                ):
                    has_all = True
                    for place in range(lists.rest_start[entry], lists.rest_start[entry + 1]):
                        token_number = lists.rest[place]
                        if (marks[token_number >> 6] >> np.uint64(token_number & 63)) & one == 0:
                            has_all = False
                            break
                    if has_all:
                        if count == len(matches):
                            larger = np.empty(2 * count, np.uint32)
                            larger[:count] = matches
                            matches = larger
                        matches[count] = lists.rows[entry]
                        count += 1
        matches[before:count].sort()
        stops[message] = count
        for token in message_tokens:
            marks[token >> 6] = 0
    return matches[:count].copy(), stops
