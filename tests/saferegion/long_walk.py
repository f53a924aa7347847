"""A long walk: ``python -m tests.saferegion.long_walk 1000000`` reports the wrongly kept events.

The walks are those of the tests, in all spaces, methods and modes. 100,000 steps take half a
minute.
"""

from __future__ import annotations

import sys
from dataclasses import astuple
from itertools import product

from tests.saferegion.walks import COUNTRIES, Tally, walk

PIECE = 5000


def main(steps: int) -> int:
    """Walk that many steps. Return how many events were wrongly kept back."""
    total = Tally()
    cases = list(product(COUNTRIES, (False, True), ("silence", "silence", "same")))
    for seed in range(-(-steps // PIECE)):
        name, greedy, mode = cases[seed % len(cases)]
        tally = walk(seed, COUNTRIES[name], PIECE, greedy=greedy, mode=mode, changes=0.01)
        total = Tally(*(a + b for a, b in zip(astuple(total), astuple(tally), strict=True)))
        method = "greedy" if greedy else "windows"
        sys.stdout.write(f"{name}, {method}, {mode}, seed {seed}: {tally}\ntotal: {total}\n")
        sys.stdout.flush()
    return total.violations


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])) > 0)
