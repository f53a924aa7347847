"""A synthetic town: subscriptions of many subscribers, and events that match some of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

KINDS = 10
MATCHES_PER_EVENT = 3.0  # on average
_ROWS = 5_000


def subscriptions(count: int, subscribers: int, seed: int) -> Iterator[str]:
    """Yield subscriptions to a box and a kind, as lines of JSON, some thousand at a time."""
    rng = np.random.default_rng(seed)
    side = np.sqrt(MATCHES_PER_EVENT * KINDS / count)
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
    """Return the beginnings of Features, which `features_sent_at` completes."""
    rng = np.random.default_rng([seed, 1])
    points = rng.random((count, 2)).round(6).tolist()
    kinds = rng.integers(0, KINDS, count).tolist()
    speeds = rng.random(count).round(3).tolist()
    return [
        '{"type":"Feature","geometry":{"type":"Point","coordinates":'
        f'[{x},{y}]}},"properties":{{"kind":"k{kind}","speed":{speed},"sent":'
        for (x, y), kind, speed in zip(points, kinds, speeds, strict=True)
    ]


def features_sent_at(beginnings: list[str], sent_ns: int) -> bytes:
    """Return Features with the time at which they are sent, one a line."""
    end = f"{sent_ns}}}}}\n"
    return "".join(beginning + end for beginning in beginnings).encode()
