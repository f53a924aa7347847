"""`CoverableSubscription`: random subscriptions for which plain Python decides covering."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class CoverableSubscription:
    """A lower bound of `n`, a value of `k` and a box around `g`; None for no condition."""

    low: int | None
    kind: str | None
    box: tuple[int, int, int, int] | None

    def text(self) -> str:
        parts = [] if self.low is None else [f"n >= {self.low}"]
        parts += [] if self.kind is None else [f"k = '{self.kind}'"]
        parts += [] if self.box is None else [f"S_WITHIN(g, BBOX{self.box})"]
        return " AND ".join(parts) or "TRUE"

    def covers(self, other: CoverableSubscription) -> bool:
        """Return whether each condition of this subscription follows from the other."""
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


def random_subscription(rng: random.Random) -> CoverableSubscription:
    x, y = rng.randrange(0, 12), rng.randrange(0, 12)
    box = (x, y, x + rng.randint(1, 4), y + rng.randint(1, 4))
    return CoverableSubscription(
        rng.choice([None, *range(6)]),
        rng.choice([None, "a", "b"]),
        box if rng.random() < 0.8 else None,
    )
