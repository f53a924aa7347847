"""Patterns of several events that are related in space and near in time.

- `arrivals`: What a detector needs of an event: its time, its location and its id
- `detection`: `Detection`: the events that a composite was looking for
- `detector`: `Detector`: composites in, events past, detections out
- `detector_state`: The state of a detector as one Arrow file: what is live as rows, the rest in
  its metadata
- `event_clock`: `Clock`: how far events have come by their own times, and which of them are too
  late
- `event_hulls`: Where events happened, as convex hulls; whether what is asked of two of them
  holds, exactly
- `event_tables`: The events of a table, as a detector needs them
- `join_plan`: How the members of a composite are joined: in which order, by which conditions
- `joiner`: `Joiner`: an event that arrives is joined with what is live, and kept for those to
  come
- `live_members`: `LiveMembers`: what may still be part of a detection, and how it is found
- `member_conditions`: Conditions between the members of a composite: values, and their text and
  JSON
- `member_relations`: Which pairs of items are related as a condition asks: exactly, many pairs at
  a time
- `model`: `Composite`: several events, how they are related in space, and how near they are in
  time
- `pair_join_plan`: What an event plays, laid out for one compiled call
  (`fencepost.kernels.detect.join_partners`)
- `registry`: `Registry`: the composites of a detector, and which parts of them an event plays
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

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
    __getattr__ = lazy_getattr(
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
