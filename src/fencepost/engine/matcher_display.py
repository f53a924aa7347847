"""`matcher_html`: a matcher in a notebook: counts, and a map of some of its subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost import notebook_html
from fencepost.cql2 import ast
from fencepost.engine.executors import condition_of_row
from fencepost.engine.explain.explanation import condition_text, shorten
from fencepost.geometry.space import Space
from fencepost.notebook_html import AREA, PATH, POINT, REACH, Figure

if TYPE_CHECKING:
    from fencepost.engine.matcher import Matcher

_MAX_DRAWN = 300  # subscriptions on a map
_MAX_VERTICES = 120  # of a geometry; others are simplified
_METRES_A_DEGREE = 111_195.0


def matcher_html(matcher: Matcher) -> str:
    """Return a matcher as HTML."""
    stats = matcher.stats()
    facts = {
        "subscriptions": stats["subscriptions"],
        "space": stats["space"],
        "index": matcher.index,
        "segments": stats["segments"],
        "memory": notebook_html.size_text(stats["bytes"]),
        "attributes": ", ".join(sorted(matcher.requested_attributes())[:12]) or "none",
    }
    figures, drawn, chosen = _figures(matcher)
    body = notebook_html.map_svg(figures, matcher.space is Space.WGS84)
    if chosen:
        without = chosen - drawn
        total = stats["subscriptions"]
        what = "all subscriptions" if chosen == total else f"{chosen:,} of {total:,} subscriptions"
        body += notebook_html.legend(figures)
        body += notebook_html.note(
            f"Drawn: {what}" + (f"; without a geometry: {without:,}." if without else ".")
        )
    return notebook_html.card("Matcher", facts, body)


def _figures(matcher: Matcher) -> tuple[list[Figure], int, int]:
    """Return figures of some subscriptions, the largest first; how many these are, and of which."""
    view = matcher.view()
    live = list(view.live_segments())
    counts = [len(rows) for _, rows in live]
    chosen = np.unique(np.linspace(0, max(sum(counts) - 1, 0), _MAX_DRAWN).astype(np.int64))
    sized: list[tuple[float, Figure]] = []
    drawn = first = 0
    for (segment, rows), count in zip(live, counts, strict=True):
        for row in rows[chosen[(chosen >= first) & (chosen < first + count)] - first].tolist():
            condition = condition_of_row(segment, row, view.columns)
            label = f"{segment.id_of(row)}: {shorten(condition_text(condition))}"
            found = list(_figures_of(condition, label, matcher.space is Space.WGS84))
            sized += found
            drawn += bool(found)
        first += count
    sized.sort(key=lambda pair: -pair[0])
    return [figure for _, figure in sized], drawn, min(len(chosen), first)


def _figures_of(
    condition: ast.Condition, label: str, is_geographic: bool
) -> Iterator[tuple[float, Figure]]:
    """Yield the geometries of a condition as figures, each with its size."""
    for node in ast.walk(condition, ast.ListLiteral, ast.Geometry):
        if not isinstance(node, ast.SpatialCondition | ast.NearCondition):
            continue
        reach = node.distance if isinstance(node, ast.NearCondition) else 0.0
        reach = reach / _METRES_A_DEGREE if is_geographic else reach
        for side in (node.left, node.right):
            if isinstance(side, ast.Geometry):
                yield _figure(side.value, label, reach)


def _figure(geometry: BaseGeometry, label: str, reach: float) -> tuple[float, Figure]:
    x0, y0, x1, y1 = geometry.bounds
    if shapely.get_num_coordinates(geometry) > _MAX_VERTICES:
        geometry = shapely.simplify(geometry, max(x1 - x0, y1 - y0) / 500)
    dimension = shapely.get_dimensions(geometry)
    parts: Any = shapely.get_parts(geometry)
    if dimension == 2:
        parts = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    rings = [[(float(x), float(y)) for x, y, *_ in part.coords] for part in parts]
    colour = REACH if reach else (POINT, PATH, AREA)[dimension]
    is_filled = dimension == 2 or (dimension == 0 and reach > 0)
    return max(x1 - x0, y1 - y0) + 2 * reach, Figure(rings, colour, is_filled, label, reach)
