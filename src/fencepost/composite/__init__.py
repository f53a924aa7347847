"""Patterns of several events that are related in space and near in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.composite.detector import Detector
    from fencepost.composite.member_conditions import (
        Asked,
        MemberCondition,
        Place,
        Region,
        circle,
        read_condition,
    )
    from fencepost.composite.model import Composite

__all__ = [
    "Asked",
    "Composite",
    "Detector",
    "MemberCondition",
    "Place",
    "Region",
    "circle",
    "read_condition",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "member_conditions": [
                "Asked",
                "MemberCondition",
                "Place",
                "Region",
                "circle",
                "read_condition",
            ],
            "detector": ["Detector"],
            "model": ["Composite"],
        },
    )
