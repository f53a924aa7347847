"""A long walk: ``python -m tests.saferegion.long_walk 1000000`` says how many steps were wrong.

The same walks as in the tests, shared out over spaces, methods and modes; half a minute for each
hundred thousand steps.
"""

from __future__ import annotations

import sys
from dataclasses import astuple
from itertools import product

from tests.saferegion.walks import COUNTRIES, Tally, walk

PIECE = 5000


def main(steps: int) -> int:
    """Walk that many steps; how many events were wrongly kept back."""
    total = Tally()
    cases = list(product(COUNTRIES, (False, True), ("silence", "silence", "same")))
    for seed in range(-(-steps // PIECE)):
        name, greedy, mode = cases[seed % len(cases)]
        own = walk(seed, COUNTRIES[name], PIECE, greedy=greedy, mode=mode, changes=0.01)
        total = Tally(*(a + b for a, b in zip(astuple(total), astuple(own), strict=True)))
        method = "greedy" if greedy else "ours"
        sys.stdout.write(f"{name}, {method}, {mode}, seed {seed}: {own}\nin all: {total}\n")
        sys.stdout.flush()
    return total.violations


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])) > 0)
