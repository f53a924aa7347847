"""Kernels of `papers.regions` run as plain Python, which checks the bounds of arrays."""

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
from fencepost.cql2 import parse
from fencepost.engine import relations
from fencepost.geometry import Shapes
from fencepost.papers.regions import relations_sampled
from fencepost.papers.regions.crtree import CRTree
from fencepost.papers.regions.sff import ForwardingTable
from fencepost.events import EventValues
from fencepost.filters import normal_form
from fencepost.testing import mixed_pairs
from tests.papers.regions.figures import FIGURE_1, FIGURE_3

assert numba.config.DISABLE_JIT
compared = 0
first, second = (Shapes.read_all(side) for side in mixed_pairs(np.random.default_rng(1), 30, 8))
for density in (0.0, 2.0, 30.0):
    quick = relations_sampled(first, second, density)
    assert (quick == relations_sampled(first, second, density, as_printed=True)).all()
    compared += len(quick)

rng = random.Random(2)
for split, packed in (("quadratic", False), ("rstar", False), ("quadratic", True)):
    tree = CRTree(fanout=4, min_entries=2, split=split)
    masks = np.array([rng.randrange(256) for _ in range(len(first))])
    numbers = tree.add_many(first, masks, packed=packed).tolist()
    for removed in rng.sample(numbers, 12):
        tree.remove(removed)
        masks[removed] = 0
    for row in range(6):
        expected = (masks >> relations(second.row(row), first)) & 1
        assert set(tree.search(second, row).tolist()) == set(np.flatnonzero(expected).tolist())
        compared += len(expected)

event = EventValues(FIGURE_1)
for options in (("list",), ("cr-tree",), ("cr-tree", "sampled", 5.0)):
    table = ForwardingTable(*options)
    for number, (interface, text) in FIGURE_3.items():
        table.add(number, interface, normal_form.to_filters(parse(text)))
    assert table.match(event) == {22}
    assert table.match_interfaces(event) == {"I2"}
    compared += 2
print(compared)
"""


def test_uncompiled_kernels_agree_with_exact_relations() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "636\n"
