"""Seeds of which a few are for `make test`, and the rest for all tests."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, quick: int) -> list[Any]:
    """The numbers below `count`, of which all from `quick` on are slow."""
    slow = pytest.mark.slow
    return [seed if seed < quick else pytest.param(seed, marks=slow) for seed in range(count)]
