"""Composites: patterns of several events that are related in space and close in time.

- `detection`: `Detection`: the events that match a composite together
- `detector`: `Detector`: finds composites in a sequence of events
- `detector_state`: The state of a detector as an Arrow file: live items as rows, the rest as
  metadata
- `event_clock`: `Clock`: the newest event time, the numbers of events, and which are too late
- `event_hulls`: `Location`: the convex hull of an event; `holds`: exact predicates on two of them
- `event_matching`: The events of a table, read and matched for a detector
- `event_parsing`: The time, the id and the location of an event, read from its attributes
- `join_plan`: `Join`: in which order, and by which conditions, members are joined
- `joiner`: `Joiner`: joins each event with the live members, and keeps it for later events
- `live_members`: `LiveMembers`: items that may still be part of a detection, by pool, place and
  time
- `member_conditions`: `MemberCondition`: a condition between members, read from text or JSON
- `member_relations`: Spatial predicates on many pairs of items at a time, exactly
- `model`: `Composite`: several events, related in space and close in time
- `pair_join_plan`: `PairJoinPlan`: the roles of an event, for one call of a kernel
  (`fencepost.kernels.detect.join_partners`)
- `registry`: `Registry`: the composites of a detector, and the pools of candidates for members
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.composite.detector import Detector
    from fencepost.composite.member_conditions import (
        MemberCondition,
        Operator,
        Predicate,
        Region,
        circle,
        read_condition,
    )
    from fencepost.composite.model import Composite

__all__ = [
    "Composite",
    "Detector",
    "MemberCondition",
    "Operator",
    "Predicate",
    "Region",
    "circle",
    "read_condition",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "member_conditions": [
                "Predicate",
                "MemberCondition",
                "Operator",
                "Region",
                "circle",
                "read_condition",
            ],
            "detector": ["Detector"],
            "model": ["Composite"],
        },
    )
