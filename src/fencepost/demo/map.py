"""What the demonstration shows: counts, a picture, and a map, one HTML file that loads nothing."""

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

from fencepost.demo.city import SIDE, Question
from fencepost.errors import FencepostError

_WARNING, _TAXI, _POST, _QUIET, _INK = "#d1495b", "#e8a33d", "#2e86ab", "#c9ced6", "#2b2d42"


def draw(
    path: Path, asked: list[Question], happened: list[dict[str, Any]], pairs: list[tuple[str, str]]
) -> None:
    """Draw the city to a PNG file."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise FencepostError(
            "the picture needs matplotlib; install it with: pip install 'fencepost[plot]'"
        ) from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import PolyCollection

    figure, axes = plt.subplots(figsize=(10, 10.6))
    reached = {event for event, _ in pairs}
    answered = {subscription for _, subscription in pairs}

    def outlines(questions: list[Question], **style: Any) -> None:
        rings = [np.asarray(q.place.exterior.coords) for q in questions]
        axes.add_collection(PolyCollection(rings, **style))

    readers = [q for q in asked if q.kind == "reader"]
    riders = [q for q in asked if q.kind == "rider"]
    outlines(readers, facecolors="none", edgecolors="#9aa5b1", linewidths=0.8)
    outlines(riders, facecolors="#e8a33d18", edgecolors="#e8a33d66", linewidths=0.6)
    storms = [e for e in happened if e["kind"] == "warning"]
    for storm in storms:
        hit = storm["id"] in reached
        axes.fill(
            *np.asarray(storm["geometry"].exterior.coords).T,
            facecolor="#d1495b22" if hit else "none",
            edgecolor=_WARNING if hit else _QUIET,
            linewidth=0.9,
        )
    for hit in (False, True):
        warehouses = [q for q in asked if q.kind == "warehouse" and (q.id in answered) == hit]
        colour = _WARNING if hit else _INK
        outlines(warehouses, facecolors=colour, edgecolors="white", linewidths=0.4)
    for kind, colour, marker in (("taxi", _TAXI, "o"), ("post", _POST, "^")):
        for hit in (False, True):
            points = [
                e["geometry"] for e in happened if e["kind"] == kind and (e["id"] in reached) == hit
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
                label=f"{kind} that reached somebody ({len(points)})" if hit else None,
            )
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    handles += [
        Patch(facecolor="#d1495b22", edgecolor=_WARNING, label="warning that reached a warehouse"),
        Patch(facecolor=_WARNING, label="warehouse that was warned"),
        Patch(facecolor=_INK, label="warehouse that was not"),
        Patch(facecolor="#e8a33d18", edgecolor="#e8a33d", label="where a rider wants a taxi"),
        Line2D([], [], color="#9aa5b1", label="districts that readers follow"),
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
        xlim=(-60, SIDE + 60),
        ylim=(-60, SIDE + 60),
        aspect="equal",
        title=f"{len(happened):,} events past {len(asked):,} standing questions: "
        f"{len(pairs):,} matches",
    )
    axes.set_axis_off()
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


COLUMNS = ("events", "matched", "matches")


def summary(
    happened: Sequence[dict[str, Any]], pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, int, int, int]]:
    """For each kind of event and for all: events, those that matched, and matches."""
    kinds = {event["id"]: event["kind"] for event in happened}
    events = Counter(kinds.values())
    matched = Counter(kinds[event] for event in {event for event, _ in pairs})
    matches = Counter(kinds[event] for event, _ in pairs)
    rows = [(kind, events[kind], matched[kind], matches[kind]) for kind in sorted(events)]
    return [*rows, ("all", len(happened), sum(matched.values()), len(pairs))]


Pairs = Sequence[tuple[str, str]]


def write_map(
    path: Path, asked: Sequence[Question], happened: Sequence[dict[str, Any]], pairs: Pairs
) -> None:
    """Write the map: what is asked where, what happened where, and what matched what."""
    template = Template(resources.files(__package__).joinpath("map.html").read_text("utf-8"))
    title = (
        f"{len(happened):,} events past {len(asked):,} standing questions: {len(pairs):,} matches"
    )
    data = json.dumps(_data(asked, happened, pairs), ensure_ascii=False, separators=(",", ":"))
    text = template.substitute(
        title=escape(title),
        rows="\n".join(_rows(happened, pairs)),
        data=data.replace("<", "\\u003c"),  # a text may say </script>
    )
    path.write_text(text, encoding="utf-8")


def _data(
    asked: Sequence[Question], happened: Sequence[dict[str, Any]], pairs: Pairs
) -> dict[str, Any]:
    """What the script reads: places once each, and rows that name them by number."""
    places: dict[bytes, int] = {}
    drawn: list[Any] = []
    questions = []
    for q in asked:
        key = q.place.wkb
        if key not in places:
            places[key] = len(drawn)
            drawn.append(_circle(q.place) if q.kind == "rider" else _ring(q.place))
        questions.append([q.id, q.kind, places[key], q.expression, q.subscriber])
    events = [[e["id"], e["kind"], _place(e["geometry"]), _told(e)] for e in happened]
    event_row = {e["id"]: row for row, e in enumerate(happened)}
    question_row = {q.id: row for row, q in enumerate(asked)}
    return {
        "side": SIDE,
        "places": drawn,
        "questions": questions,
        "events": events,
        "pairs": [[event_row[event], question_row[question]] for event, question in pairs],
    }


def _told(event: dict[str, Any]) -> str:
    """What a person reads about an event."""
    if event["kind"] == "warning":
        return f"a storm of severity {event['severity']}"
    if event["kind"] == "taxi":
        return f"a taxi, {event['state']}"
    return str(event["text"])


def _place(geometry: BaseGeometry) -> list[Any]:
    if geometry.geom_type == "Point":
        return [round(geometry.x, 1), round(geometry.y, 1)]
    return _ring(geometry)


def _ring(polygon: BaseGeometry) -> list[Any]:
    return [[round(x, 1), round(y, 1)] for x, y in polygon.exterior.coords[:-1]]


def _circle(polygon: BaseGeometry) -> list[float]:
    x0, y0, x1, y1 = polygon.bounds
    return [round((x0 + x1) / 2, 1), round((y0 + y1) / 2, 1), round((x1 - x0) / 2, 1)]


def _rows(happened: Sequence[dict[str, Any]], pairs: Pairs) -> list[str]:
    """The summary as rows of a table."""
    return [
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{number:,}</td>" for number in numbers)
        + "</tr>"
        for name, *numbers in summary(happened, pairs)
    ]
