"""A made-up town: subscriptions of many subscribers, and events that some of them want."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

KINDS = 10
WANTED_BY = 3.0  # subscriptions that an event answers, on average
_ROWS = 5_000


def subscriptions(count: int, subscribers: int, seed: int) -> Iterator[str]:
    """Subscriptions as lines of JSON, some thousand at a time: a box and a kind each."""
    rng = np.random.default_rng(seed)
    side = np.sqrt(WANTED_BY * KINDS / count)
    low = rng.random((count, 2)) * (1 - side)
    kinds = rng.integers(0, KINDS, count)
    for first in range(0, count, _ROWS):
        rows = range(first, min(first + _ROWS, count))
        yield "\n".join(
            json.dumps(
                {
                    "id": f"s{row}",
                    "subscriber": f"r{row % subscribers}",
                    "expression": f"S_INTERSECTS(geometry, BBOX({low[row, 0]:.6f}, "
                    f"{low[row, 1]:.6f}, {low[row, 0] + side:.6f}, {low[row, 1] + side:.6f})) "
                    f"AND kind = 'k{kinds[row]}'",
                }
            )
            for row in rows
        )


def events(count: int, seed: int) -> list[str]:
    """Features without their end, to which `closed` adds when they were sent."""
    rng = np.random.default_rng([seed, 1])
    places = rng.random((count, 2)).round(6).tolist()
    kinds = rng.integers(0, KINDS, count).tolist()
    speeds = rng.random(count).round(3).tolist()
    return [
        '{"type":"Feature","geometry":{"type":"Point","coordinates":'
        f'[{x},{y}]}},"properties":{{"kind":"k{kind}","speed":{speed},"sent":'
        for (x, y), kind, speed in zip(places, kinds, speeds, strict=True)
    ]


def closed(batch: list[str], sent_ns: int) -> bytes:
    """Events of one moment as lines."""
    end = f"{sent_ns}}}}}\n"
    return "".join(one + end for one in batch).encode()
