"""Hypothesis profiles, and the order of tests.

The profile `ci`, the default, always draws the same examples, so that the gate does not depend on
chance. HYPOTHESIS_PROFILE=explore draws many new examples. There is no deadline, because a first
call may compile a kernel.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow]

settings.register_profile(
    "ci",
    max_examples=60,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "explore", max_examples=2000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that processes finish at about the same time.

    Tests that must share a process come first, then other slow tests.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("xdist_group") is None,
            item.get_closest_marker("slow") is None,
        )
    )
