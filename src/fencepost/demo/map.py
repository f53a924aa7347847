"""The outputs of the demonstration: counts, a picture, and a map that loads no other file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from shapely.geometry.base import BaseGeometry

from fencepost.demo.city import CORNER, METRES_PER_DEGREE, SIDE_M, CitySubscription

_WARNING, _TAXI, _POST, _QUIET, _INK = "#d1495b", "#e8a33d", "#2e86ab", "#c9ced6", "#2b2d42"
_LAND, _BORDER = "#fbfbfc", "#9aa5b1"
_MARGIN_M = 550  # outlines of storms and of riders' areas reach so far beyond the city

Pairs = Sequence[tuple[str, str]]
"""Ids of an event and of a subscription that it matches."""


def draw(
    path: Path, subscriptions: list[CitySubscription], events: list[dict[str, Any]], pairs: Pairs
) -> None:
    """Draw the city to a PNG file, with degrees at the border and a scale in metres."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 10.8))
    _draw_frame(axes)
    axes.set_title(_title(subscriptions, events, pairs), fontsize=14, pad=12)
    matched_events = {event for event, _ in pairs}
    matched_subscriptions = {subscription for _, subscription in pairs}
    handles = _draw_points(axes, events, matched_events)
    handles += _draw_areas(axes, subscriptions, events, matched_events, matched_subscriptions)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.045),
        ncols=3,
        frameon=False,
        fontsize=10,
        columnspacing=2,
    )
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


def _draw_frame(axes: Any) -> None:
    """Set the part of the earth that is shown, and mark degrees and a kilometre."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    far_corner = CORNER + SIDE_M / METRES_PER_DEGREE
    margin = _MARGIN_M / METRES_PER_DEGREE
    (west, south), (east, north) = CORNER - margin, far_corner + margin
    per_lon, per_lat = METRES_PER_DEGREE
    axes.set(xlim=(west, east), ylim=(south, north), aspect=per_lat / per_lon, facecolor=_LAND)
    for axis, hemisphere in ((axes.xaxis, "E"), (axes.yaxis, "N")):
        axis.set_major_locator(MultipleLocator(0.02))
        axis.set_major_formatter(FuncFormatter(lambda x, _, name=hemisphere: f"{x:.2f}° {name}"))
    axes.tick_params(length=3, color=_BORDER, labelsize=9, labelcolor="#596273")
    axes.spines[:].set_color(_BORDER)
    x, y = CORNER + (SIDE_M - 1_000, -0.65 * _MARGIN_M) / METRES_PER_DEGREE
    ends = np.array([x, x + 1_000 / per_lon])
    axes.plot(ends, [y, y], color=_INK, linewidth=2.5, solid_capstyle="butt")
    axes.annotate(
        "1 km", (ends[0], y), (-5, 0), textcoords="offset points", ha="right", va="center"
    )


def _draw_points(axes: Any, events: list[dict[str, Any]], matched: set[str]) -> list[Any]:
    """Draw taxis and posts, those that matched larger and in colour. Return legend entries."""
    from matplotlib.lines import Line2D

    handles = []
    for kind, colour, marker in (("taxi", _TAXI, "o"), ("post", _POST, "^")):
        for hit in (False, True):
            drawn = [e for e in events if e["kind"] == kind and (e["id"] in matched) == hit]
            points = axes.scatter(
                [e["geometry"].x for e in drawn],
                [e["geometry"].y for e in drawn],
                s=20 if hit else 4,
                c=colour if hit else _QUIET,
                marker=marker,
                linewidths=0.4 if hit else 0,
                edgecolors="white",
                zorder=4 if hit else 1,
                label=f"{kind} that matched ({len(drawn):,})",
            )
            handles += [points] * hit
    other = "taxi or post without a match"
    return [*handles, Line2D([], [], color=_QUIET, marker="o", ls="", ms=3, label=other)]


def _draw_areas(
    axes: Any,
    subscriptions: list[CitySubscription],
    events: list[dict[str, Any]],
    matched_events: set[str],
    matched_subscriptions: set[str],
) -> list[Any]:
    """Draw storms and the areas of subscriptions. Return legend entries."""
    from matplotlib.collections import EllipseCollection, PolyCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def outline(geometries: list[BaseGeometry], **style: Any) -> None:
        rings = [np.asarray(geometry.exterior.coords) for geometry in geometries]
        axes.add_collection(PolyCollection(rings, **style))

    handles = []
    for hit, colour in ((True, _WARNING), (False, _BORDER)):
        storms = [e for e in events if e["kind"] == "warning"]
        areas = [e["geometry"] for e in storms if (e["id"] in matched_events) == hit]
        fill = _WARNING + "22" if hit else "none"
        name = f"storm warning {_with_match(hit)} ({len(areas)})"
        style: Any = "-" if hit else "--"
        outline(areas, facecolors=fill, edgecolors=colour, linewidths=0.9, linestyles=style)
        handles.append(Patch(facecolor=fill, edgecolor=colour, linestyle=style, label=name))
    readers = [s.geometry for s in subscriptions if s.kind == "reader"]
    outline(readers, facecolors="none", edgecolors=_BORDER, linewidths=1)
    riders = [s for s in subscriptions if s.kind == "rider"]
    fill, edge = _TAXI + "1c", _TAXI + "80"
    widths, heights = np.outer(1 / METRES_PER_DEGREE, [2 * s.reach_m for s in riders])
    circles = EllipseCollection(
        widths,
        heights,
        np.zeros(len(riders)),
        units="xy",
        offsets=[(s.geometry.x, s.geometry.y) for s in riders],
        offset_transform=axes.transData,
        facecolors=fill,
        edgecolors=edge,
        linewidths=0.7,
    )
    axes.add_collection(circles)
    name = f"area of a taxi rider ({len(riders)})"
    handles.append(Patch(facecolor=fill, edgecolor=edge, label=name))
    for hit, colour in ((True, _WARNING), (False, _INK)):
        warehouses = [s for s in subscriptions if s.kind == "warehouse"]
        areas = [s.geometry for s in warehouses if (s.id in matched_subscriptions) == hit]
        outline(areas, facecolors=colour, edgecolors="white", linewidths=0.5, zorder=3)
        handles.append(
            Patch(facecolor=colour, label=f"warehouse {_with_match(hit)} ({len(areas)})")
        )
    district = Line2D([], [], color=_BORDER, label="district of readers of posts")
    return [*handles, district]


def _with_match(hit: bool) -> str:
    return "that matched" if hit else "without a match"


COLUMNS = ("events", "matched", "matches")


def summary(events: Sequence[dict[str, Any]], pairs: Pairs) -> list[tuple[str, int, int, int]]:
    """Count events, matched events and matches, for each kind of event and for all."""
    kinds = {event["id"]: event["kind"] for event in events}
    totals = Counter(kinds.values())
    matched = Counter(kinds[event] for event in {event for event, _ in pairs})
    matches = Counter(kinds[event] for event, _ in pairs)
    rows = [(kind, totals[kind], matched[kind], matches[kind]) for kind in sorted(totals)]
    return [*rows, ("all", len(events), sum(matched.values()), len(pairs))]


def write_map(
    path: Path,
    subscriptions: Sequence[CitySubscription],
    events: Sequence[dict[str, Any]],
    pairs: Pairs,
) -> None:
    """Write the map of subscriptions, events and matches."""
    template = Template(resources.files(__package__).joinpath("map.html").read_text("utf-8"))
    data = json.dumps(
        _data(subscriptions, events, pairs), ensure_ascii=False, separators=(",", ":")
    )
    text = template.substitute(
        title=escape(_title(subscriptions, events, pairs)),
        rows="\n".join(_rows(events, pairs)),
        data=data.replace("<", "\\u003c"),  # a text may contain </script>
    )
    path.write_text(text, encoding="utf-8")


def _title(
    subscriptions: Sequence[CitySubscription], events: Sequence[dict[str, Any]], pairs: Pairs
) -> str:
    return f"{len(events):,} events, {len(subscriptions):,} subscriptions, {len(pairs):,} matches"


def _data(
    subscriptions: Sequence[CitySubscription], events: Sequence[dict[str, Any]], pairs: Pairs
) -> dict[str, Any]:
    """Return the data of the script, in degrees; subscriptions name their areas by number."""
    area_numbers: dict[str, int] = {}
    areas: list[Any] = []
    subscription_rows = []
    for s in subscriptions:
        area = _coordinates(s.geometry) + [s.reach_m] * (s.reach_m > 0)
        number = area_numbers.setdefault(str(area), len(areas))
        if number == len(areas):
            areas.append(area)
        subscription_rows.append([s.id, s.kind, number, s.expression, s.subscriber])
    event_rows = [[e["id"], e["kind"], _coordinates(e["geometry"]), _describe(e)] for e in events]
    event_row = {e["id"]: number for number, e in enumerate(events)}
    subscription_row = {s.id: number for number, s in enumerate(subscriptions)}
    return {
        "side_m": SIDE_M,
        "corner": CORNER.tolist(),
        "metres_per_degree": METRES_PER_DEGREE.tolist(),
        "areas": areas,
        "subscriptions": subscription_rows,
        "events": event_rows,
        "pairs": [
            [event_row[event], subscription_row[subscription]] for event, subscription in pairs
        ],
    }


def _describe(event: dict[str, Any]) -> str:
    """Return the description of an event for the map."""
    if event["kind"] == "warning":
        return f"a storm of severity {event['severity']}"
    if event["kind"] == "taxi":
        return f"a taxi, {event['state']}"
    return str(event["text"])


def _coordinates(geometry: BaseGeometry) -> list[Any]:
    """Return the longitude and latitude of a point, or those of each vertex of a polygon."""
    if geometry.geom_type == "Point":
        return [geometry.x, geometry.y]
    return [[x, y] for x, y in geometry.exterior.coords[:-1]]


def _rows(events: Sequence[dict[str, Any]], pairs: Pairs) -> list[str]:
    """Return the summary as rows of an HTML table."""
    return [
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{number:,}</td>" for number in numbers)
        + "</tr>"
        for name, *numbers in summary(events, pairs)
    ]
