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

from fencepost.demo.city import SIDE_M, CitySubscription

_WARNING, _TAXI, _POST, _QUIET, _INK = "#d1495b", "#e8a33d", "#2e86ab", "#c9ced6", "#2b2d42"


Pairs = Sequence[tuple[str, str]]
"""Ids of an event and of a subscription that it matches."""


def draw(
    path: Path, subscriptions: list[CitySubscription], events: list[dict[str, Any]], pairs: Pairs
) -> None:
    """Draw the city to a PNG file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import PolyCollection

    figure, axes = plt.subplots(figsize=(10, 10.6))
    matched_events = {event for event, _ in pairs}
    matched_ids = {subscription for _, subscription in pairs}

    def outlines(drawn: list[CitySubscription], **style: Any) -> None:
        rings = [np.asarray(s.area.exterior.coords) for s in drawn]
        axes.add_collection(PolyCollection(rings, **style))

    readers = [s for s in subscriptions if s.kind == "reader"]
    riders = [s for s in subscriptions if s.kind == "rider"]
    outlines(readers, facecolors="none", edgecolors="#9aa5b1", linewidths=0.8)
    outlines(riders, facecolors="#e8a33d18", edgecolors="#e8a33d66", linewidths=0.6)
    storms = [e for e in events if e["kind"] == "warning"]
    for storm in storms:
        hit = storm["id"] in matched_events
        axes.fill(
            *np.asarray(storm["geometry"].exterior.coords).T,
            facecolor="#d1495b22" if hit else "none",
            edgecolor=_WARNING if hit else _QUIET,
            linewidth=0.9,
        )
    for hit in (False, True):
        warehouses = [
            s for s in subscriptions if s.kind == "warehouse" and (s.id in matched_ids) == hit
        ]
        colour = _WARNING if hit else _INK
        outlines(warehouses, facecolors=colour, edgecolors="white", linewidths=0.4)
    for kind, colour, marker in (("taxi", _TAXI, "o"), ("post", _POST, "^")):
        for hit in (False, True):
            points = [
                e["geometry"]
                for e in events
                if e["kind"] == kind and (e["id"] in matched_events) == hit
            ]
            axes.scatter(
                [p.x for p in points],
                [p.y for p in points],
                s=18 if hit else 4,
                c=colour if hit else _QUIET,
                marker=marker,
                linewidths=0.3 if hit else 0,
                edgecolors="white",
                zorder=4 if hit else 1,
                label=f"{kind} that matched ({len(points)})" if hit else None,
            )
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    handles += [
        Patch(facecolor="#d1495b22", edgecolor=_WARNING, label="storm warning that matched"),
        Patch(facecolor=_WARNING, label="warehouse with a match"),
        Patch(facecolor=_INK, label="warehouse without a match"),
        Patch(facecolor="#e8a33d18", edgecolor="#e8a33d", label="area of a taxi rider"),
        Line2D([], [], color="#9aa5b1", label="districts of readers"),
    ]
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=3,
        frameon=False,
        fontsize=10,
    )
    axes.set(
        xlim=(-60, SIDE_M + 60),
        ylim=(-60, SIDE_M + 60),
        aspect="equal",
        title=_title(subscriptions, events, pairs),
    )
    axes.set_axis_off()
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


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
    """Return the data of the script; subscriptions refer to distinct areas by number."""
    area_numbers: dict[bytes, int] = {}
    areas: list[Any] = []
    subscription_rows = []
    for s in subscriptions:
        key = s.area.wkb
        if key not in area_numbers:
            area_numbers[key] = len(areas)
            areas.append(_circle(s.area) if s.kind == "rider" else _ring(s.area))
        subscription_rows.append([s.id, s.kind, area_numbers[key], s.expression, s.subscriber])
    event_rows = [[e["id"], e["kind"], _location(e["geometry"]), _describe(e)] for e in events]
    event_row = {e["id"]: number for number, e in enumerate(events)}
    subscription_row = {s.id: number for number, s in enumerate(subscriptions)}
    return {
        "side": SIDE_M,
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


def _location(geometry: BaseGeometry) -> list[Any]:
    if geometry.geom_type == "Point":
        return [round(geometry.x, 1), round(geometry.y, 1)]
    return _ring(geometry)


def _ring(polygon: BaseGeometry) -> list[Any]:
    return [[round(x, 1), round(y, 1)] for x, y in polygon.exterior.coords[:-1]]


def _circle(polygon: BaseGeometry) -> list[float]:
    x0, y0, x1, y1 = polygon.bounds
    return [round((x0 + x1) / 2, 1), round((y0 + y1) / 2, 1), round((x1 - x0) / 2, 1)]


def _rows(events: Sequence[dict[str, Any]], pairs: Pairs) -> list[str]:
    """Return the summary as rows of an HTML table."""
    return [
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{number:,}</td>" for number in numbers)
        + "</tr>"
        for name, *numbers in summary(events, pairs)
    ]
