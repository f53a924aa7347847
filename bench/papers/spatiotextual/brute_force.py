"""Brute force: compares each message with all subscriptions, by NumPy and without an index."""

from __future__ import annotations

import numpy as np

from bench.papers.spatiotextual.token_sets import Ints, TokenBoxes


def answers(subscriptions: TokenBoxes, messages: TokenBoxes, vocabulary: int) -> list[Ints]:
    """Return the rows of the subscriptions that each message matches, ascending."""
    return [_answer(subscriptions, messages, row, vocabulary) for row in range(len(messages))]


def _answer(subscriptions: TokenBoxes, messages: TokenBoxes, row: int, vocabulary: int) -> Ints:
    x0, y0, x1, y1 = messages.boxes[row]
    box = subscriptions.boxes.T
    near = np.flatnonzero((box[0] <= x1) & (box[2] >= x0) & (box[1] <= y1) & (box[3] >= y0))
    missing = np.ones(vocabulary, bool)
    missing[messages.tokens[messages.start[row] : messages.start[row + 1]]] = False
    sizes = subscriptions.start[near + 1] - subscriptions.start[near]
    ends = np.cumsum(sizes)
    places = np.arange(sizes.sum()) + np.repeat(subscriptions.start[near] - (ends - sizes), sizes)
    missing_before = np.concatenate(([0], np.cumsum(missing[subscriptions.tokens[places]])))
    matches: Ints = near[missing_before[ends] == missing_before[ends - sizes]]
    return matches
