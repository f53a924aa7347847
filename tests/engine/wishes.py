"""Subscriptions of which one sees by hand which covers which."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Wish:
    """What has an interval, a kind and a box, each of which may be left out."""

    low: int | None
    kind: str | None
    box: tuple[int, int, int, int] | None

    def text(self) -> str:
        parts = [] if self.low is None else [f"n >= {self.low}"]
        parts += [] if self.kind is None else [f"k = '{self.kind}'"]
        parts += [] if self.box is None else [f"S_WITHIN(g, BBOX{self.box})"]
        return " AND ".join(parts) or "TRUE"

    def covers(self, other: Wish) -> bool:
        """By hand: whatever is left out allows everything."""
        if self.low is not None and (other.low is None or other.low < self.low):
            return False
        if self.kind is not None and other.kind != self.kind:
            return False
        if self.box is None:
            return True
        return other.box is not None and (
            self.box[0] <= other.box[0]
            and self.box[1] <= other.box[1]
            and self.box[2] >= other.box[2]
            and self.box[3] >= other.box[3]
        )


def some_wish(rng: random.Random) -> Wish:
    x, y = rng.randrange(0, 12), rng.randrange(0, 12)
    box = (x, y, x + rng.randint(1, 4), y + rng.randint(1, 4))
    return Wish(
        rng.choice([None, *range(6)]),
        rng.choice([None, "a", "b"]),
        box if rng.random() < 0.8 else None,
    )
