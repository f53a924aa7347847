"""Running events past subscriptions, as many at a time as there is room for what they find."""

from __future__ import annotations

from typing import Any

import numpy as np

from fencepost.papers.events.layout import Events, Found


def run(kernel: Any, arrays: Any, events: Events, most: int) -> Found:
    """What a kernel finds for all events; `most` is as much as one of them can find."""
    count = len(events.numbers)
    room = max(2 * most, count, 16)
    stops = np.empty(count, np.int64)
    numbers, sure = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
    at = total = 0
    while at < count:
        own, certain = np.empty(room, np.uint32), np.empty(room, np.uint8)
        begun = at
        at, found = kernel(arrays, events, at, own, certain, stops)
        stops[begun:at] += total
        total += found
        numbers.append(own[:found])
        sure.append(certain[:found])
    return Found(np.concatenate(numbers), np.concatenate(sure), stops)
