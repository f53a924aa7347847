"""Figure 5: what more samples change in the answers of Algorithm 1, and how wrong they are.

The paper compares the predicates matched at density D with those at D + 10,000. That shows whether
the answers still change, not whether they are right; here both are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.papers.regions import checking, faithful, published, workloads
from bench.papers.regions.figures.common import PUBLISHED
from bench.papers.regions.shapes import MESSAGE_TYPES
from bench.progress import Progress
from bench.report import Report, Table
from bench.timing import figure
from fencepost.geometry.prepared_shapes import Shapes

STEP = 10_000
Key = tuple[str, str]  # a layer and a type of message


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    share: float  # of the polygons of each layer
    messages: int
    densities: int  # 0, STEP, 2 STEP, ...


FULL = Sizes(1.0, 100, 5)
QUICK = Sizes(0.05, 10, 3)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Count the predicates that differ, for each layer and type of message."""
    progress.expect(len(workloads.MAP_LAYERS) * (sizes.densities + 1))
    points = [STEP * n for n in range(sizes.densities + 1)]
    gains: dict[Key, list[float]] = {}
    errors: dict[Key, list[float]] = {}
    origins = {}
    wrong = 0
    for layer in workloads.MAP_LAYERS:
        workload = workloads.of_layer(seed, layer, source, sizes.share)
        origins[layer.name] = f"{len(workload):,}: {workload.origin}"
        regions = Shapes.read_all(workload.regions)
        messages = {
            kind: [Shapes.read_one(m) for m in workloads.messages(seed, kind, sizes.messages)]
            for kind in MESSAGE_TYPES
        }
        right = {
            kind: checking.expected_of(workload, regions, own) for kind, own in messages.items()
        }
        exact = faithful.Constraints(workload, regions, None)
        for kind, own in messages.items():
            wrong += checking.differences(exact.match, own, right[kind])
        before: dict[str, list[Any]] = {}
        for count in points:
            progress.step(f"{layer.name}, {count:,} points")
            tree = faithful.Constraints(workload, regions, workloads.density(count))
            for kind, own in messages.items():
                found = [tree.match(message) for message in own]
                pairs = len(workload) * len(own) / 100
                key = layer.name, kind
                if kind in before:
                    gains.setdefault(key, []).append(_apart(found, before[kind]) / pairs)
                if count < points[-1]:
                    errors.setdefault(key, []).append(_apart(found, right[kind]) / pairs)
                before[kind] = found
    return Report(
        "figure-5",
        "Figure 5: Algorithm 1 with more and more samples",
        {
            "seed": seed,
            "source": source,
            "layers": origins,
            "messages_of_each_type": sizes.messages,
            "points": points[:-1],
            "gain_percent": {" ".join(key): own for key, own in gains.items()},
            "error_percent": {" ".join(key): own for key, own in errors.items()},
            "wrong_ids": wrong,
        },
        [
            _table(f"Predicates that differ between D and D + {STEP:,}, in percent", gains, points),
            _table("Predicates that are wrong at D, in percent", errors, points),
        ],
        lambda picture: _draw(picture, points[:-1], gains, errors),
        size=(14.0, 6.0),
        notes=[
            "Points are per universe half-length, besides the vertices. Percent of the pairs of a "
            "message and a predicate.",
            f"The exact CR-tree had {wrong:,} wrong ids in all of them.",
            "The paper gives no numbers for its curves; the star is the value its text explains.",
            *(f"{name}: {origin}." for name, origin in origins.items()),
        ],
    )


def _apart(found: list[Any], other: list[Any]) -> int:
    return sum(len(np.setxor1d(a, b)) for a, b in zip(found, other, strict=True))


def _table(title: str, shares: dict[Key, list[float]], points: list[int]) -> Table:
    rows = [[", ".join(key), *map(figure, own)] for key, own in shares.items()]
    return Table(title, ["layer, messages", *(f"D = {count:,}" for count in points[:-1])], rows)


def _draw(
    picture: Any,
    points: list[int],
    gains: dict[Key, list[float]],
    errors: dict[Key, list[float]],
) -> None:
    axes = picture.subplots(1, 2, sharey=True)
    layers = [layer.name for layer in workloads.MAP_LAYERS]
    colours = dict(zip(layers, ("#c2185b", "#1565c0", "#0b6e4f"), strict=True))
    markers = dict(zip(MESSAGE_TYPES, "os^", strict=True))
    for one, shares in zip(axes, (gains, errors), strict=True):
        for (layer, kind), own in shares.items():
            one.plot(
                points,
                own,
                marker=markers[kind],
                color=colours[layer],
                label=f"{layer}, {kind}",
            )
        one.set_xlabel("D, points per universe half-length")
        one.set_xticks(points, [f"{count:,}" for count in points])
        one.set_yscale("symlog", linthresh=1e-4)
        one.set_ylim(bottom=0)
    said = published.EXAMPLE_GAIN_PERCENT
    axes[0].scatter(list(said), list(said.values()), label="the paper's example", **PUBLISHED)
    axes[0].set_ylabel("% of predicates")
    axes[0].set_title(f"Differ between D and D + {STEP:,}")
    axes[1].set_title("Wrong at D")
    picture.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=10)
