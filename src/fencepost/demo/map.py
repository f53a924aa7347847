"""The map of the demonstration: one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from shapely.geometry.base import BaseGeometry

from fencepost.demo.city import SIDE, Question
from fencepost.demo.summary import summary

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
