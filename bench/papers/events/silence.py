"""`sent`: the events that objects with safe regions send to the server."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.events.scenarios import Scenario
from fencepost.engine.matcher import Matcher
from fencepost.papers.events import GreedyRectangles
from fencepost.saferegion.safe_regions import SafeRegions


def sent(matcher: Matcher, scenario: Scenario, events: list[dict[str, Any]]) -> NDArray[np.bool_]:
    """Return which events are sent; after each sent event the object gets its next region."""
    x0, y0 = scenario.points.min(axis=0).tolist()
    x1, y1 = scenario.points.max(axis=0).tolist()
    safe_regions = SafeRegions(matcher, GreedyRectangles((x0, y0, x1, y1)))
    regions: dict[str, Any] = {}
    is_sent = np.zeros(len(events), bool)
    for row, (key, event) in enumerate(zip(scenario.objects, events, strict=True)):
        if key not in regions or not regions[key].is_silent(event):
            is_sent[row] = True
            regions[key] = safe_regions.around(event, key=key)
    return is_sent
