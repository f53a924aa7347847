"""Kernels of `papers.events` run as plain Python, which checks the bounds of arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

UNCOMPILED = """
import random
import numba
import fencepost as fp
from fencepost.papers.events import parse_ops4st
from fencepost.reference import evaluate

assert numba.config.DISABLE_JIT
rng = random.Random(7)
regions = ["(2,2)", "(0,3),(4,3)", "(0,0),(4,0),(0,4)", "(1,1),(5,1),(5,4),(1,4)"]
places = ["POINT (2 2)", "POINT (0 0)", "POINT (9 9)", "LINESTRING (-1 1, 6 1)"]
places += ["POLYGON ((1 1, 3 1, 3 3, 1 1))", "MULTIPOINT ((0 0), (4 4))"]
operators = ["@({})", "OVLP({})", "SPL({};2)", "DIST({};<;1)", "DIST({};>;2)"]
subscriptions = [
    parse_ops4st(
        rng.choice(operators).format(rng.choice(regions))
        + rng.choice(['(STRING:s="a")', '(STRING:s="b";ARITH:n>1)', "(ARITH:n=2)", "()"])
    )
    for _ in range(300)
]
match_count = 0
for index in ("ops4st", "ops4st-standard"):
    matcher = fp.Matcher(index=index)
    for number, subscription in enumerate(subscriptions):
        matcher.subscribe(str(number), subscription)
    for number in range(0, 90, 3):
        matcher.unsubscribe(str(number))
    remaining = [k for k in range(300) if str(k) in matcher]
    for place in places:
        event = {"s": rng.choice("ab"), "n": rng.choice([1, 2]), "geometry": place}
        matches = matcher.match(event)
        expected = [str(k) for k in remaining if evaluate(subscriptions[k], event) is True]
        assert matches == sorted(expected), index
        match_count += len(matches)
    if index == "ops4st":
        assert matcher._engine._table.index._packed[1] > 64
print(match_count)
"""


def test_uncompiled_kernels_agree_with_the_oracle() -> None:
    run = subprocess.run(
        [sys.executable, "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 100
