"""Kernels of `papers.spatiotextual` run as plain Python, which checks the bounds of arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

UNCOMPILED = """
import random
import numba
import numpy as np
from fencepost.papers.spatiotextual.token_order import ORDERS
from fencepost.papers.spatiotextual.trees import KINDS, build
from tests.papers.spatiotextual.plainly import by_message, flat, matching, some_posts

assert numba.config.DISABLE_JIT
rng = random.Random(5)
subscriptions = some_posts(rng, 70, 9, 4, 8)
messages = some_posts(rng, 12, 10, 7, 8)
compared = 0
for kind in KINDS:
    for order in ORDERS if kind == "rt+" else ("locality",):
        index = build(kind, *flat(subscriptions), order=order, min_entries=2, max_entries=4)
        kept = dict(enumerate(subscriptions))
        for row in range(9):
            index.remove(row)
            index.add(100 + row, kept[row].box, np.array(sorted(kept[row].tokens)))
            kept[100 + row] = kept.pop(row)
        matches = by_message(index.match_many(*flat(messages)))
        assert matches == [matching(kept, message) for message in messages], (kind, order)
        compared += sum(map(len, matches))
print(compared)
"""


def test_uncompiled_kernels_agree_with_brute_force() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500
