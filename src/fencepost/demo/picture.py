"""The picture of the demonstration: who asks where, and which events reached somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
