"""`seeds`: a few seeds for `make test`, and more for `make test-all`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, quick: int) -> list[Any]:
    """Return the numbers below `count`; all from `quick` on are marked slow."""
    slow = pytest.mark.slow
    return [seed if seed < quick else pytest.param(seed, marks=slow) for seed in range(count)]
