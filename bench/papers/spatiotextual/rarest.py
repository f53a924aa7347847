"""The list that one would write by hand: each subscription under its rarest token, compiled.

    token -> its subscriptions, one after the other: box (4 doubles), the other tokens, row

A message marks its tokens in a bitset, then goes through the list of each: box first, then the
other tokens, rarest first, against the bitset. No spatial index, no pruning within a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.compiling import compiled
from bench.papers.spatiotextual.methods import WARM_UP, Found, Method, timed
from bench.papers.spatiotextual.token_sets import Floats, Ints, TokenBoxes, Tokens
from bench.papers.spatiotextual.workloads import Workload

NAME = "rarest-token list"


class Lists(NamedTuple):
    """The lists, one after the other; `first[t]` to `first[t + 1]` is that of token t."""

    first: Ints
    boxes: Floats
    rest_start: Ints
    rest: Tokens
    rows: Tokens


def method(workload: Workload) -> Method:
    """The list, built."""
    given, vocabulary = workload.subscriptions, workload.topics.vocabulary
    build(given.first(WARM_UP), vocabulary)
    lists, seconds = timed(lambda: build(given, vocabulary))
    marks = np.zeros(vocabulary // 64 + 1, np.uint64)
    return Method(
        NAME,
        seconds,
        sum(array.nbytes for array in lists),
        lambda m: lambda: _match(lists, m.boxes, m.start, m.tokens, marks),
    )


def build(given: TokenBoxes, vocabulary: int) -> Lists:
    """The lists of subscriptions that all have a token."""
    if (given.start[1:] == given.start[:-1]).any():
        raise ValueError("a subscription without tokens has no rarest one")
    frequency = np.bincount(given.tokens, minlength=vocabulary)
    return Lists(*_filed(given.boxes, given.start, given.tokens, frequency))


@compiled
def _filed(boxes: Floats, start: Ints, tokens: Tokens, frequency: Ints) -> Any:
    """The subscriptions by their rarest token, in two passes: count, then place."""
    count = len(boxes)
    first = np.zeros(len(frequency) + 1, np.int64)
    rarest = np.empty(count, np.int64)
    for row in range(count):
        best = start[row]
        for place in range(start[row] + 1, start[row + 1]):
            if frequency[tokens[place]] < frequency[tokens[best]]:
                best = place
        rarest[row] = best
        first[tokens[best] + 1] += 1
    first = np.cumsum(first)
    free = first[:-1].copy()
    rows = np.empty(count, np.uint32)
    for row in range(count):
        token = tokens[rarest[row]]
        rows[free[token]] = row
        free[token] += 1
    own = np.empty((count, 4), np.float64)
    rest_start = np.zeros(count + 1, np.int64)
    rest = np.empty(len(tokens) - count, np.uint32)
    used = 0
    for entry in range(count):
        row = rows[entry]
        own[entry] = boxes[row]
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
    return first, own, rest_start, rest, rows


@compiled
def _match(
    lists: Lists, boxes: Floats, start: Ints, tokens: Tokens, marks: NDArray[np.uint64]
) -> Found:
    """The rows that each message matches; `marks` is all zero before and after."""
    found = np.empty(1024, np.uint32)
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
        own = tokens[start[message] : start[message + 1]]
        for token in own:
            marks[token >> 6] |= one << np.uint64(token & 63)
        before = count
        for token in own:
            for entry in range(lists.first[token], lists.first[token + 1]):
                if (
                    lists.boxes[entry, 0] <= x1
                    and lists.boxes[entry, 2] >= x0
                    and lists.boxes[entry, 1] <= y1
                    and lists.boxes[entry, 3] >= y0
                ):
                    there = True
                    for place in range(lists.rest_start[entry], lists.rest_start[entry + 1]):
                        other = lists.rest[place]
                        if (marks[other >> 6] >> np.uint64(other & 63)) & one == 0:
                            there = False
                            break
                    if there:
                        if count == len(found):
                            more = np.empty(2 * count, np.uint32)
                            more[:count] = found
                            found = more
                        found[count] = lists.rows[entry]
                        count += 1
        found[before:count].sort()
        stops[message] = count
        for token in own:
            marks[token >> 6] = 0
    return found[:count].copy(), stops
