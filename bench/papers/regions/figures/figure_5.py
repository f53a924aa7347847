"""Figure 5: how the answers of Algorithm 1 change with more samples, and how wrong they are.

The paper compares the predicates that match at density D and at D + 10,000. This shows whether the
answers still change, not whether they are right; the figure here shows both.
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
        expected = {
            kind: checking.expected_of(workload, regions, kind_messages)
            for kind, kind_messages in messages.items()
        }
        exact = faithful.Constraints(workload, regions, None)
        for kind, kind_messages in messages.items():
            wrong += checking.differences(exact.match, kind_messages, expected[kind])
        previous: dict[str, list[Any]] = {}
        for count in points:
            progress.step(f"{layer.name}, {count:,} points")
            tree = faithful.Constraints(workload, regions, workloads.density(count))
            for kind, kind_messages in messages.items():
                matches = [tree.match(message) for message in kind_messages]
                pairs = len(workload) * len(kind_messages) / 100
                key = layer.name, kind
                if kind in previous:
                    gains.setdefault(key, []).append(
                        _count_differing(matches, previous[kind]) / pairs
                    )
                if count < points[-1]:
                    errors.setdefault(key, []).append(
                        _count_differing(matches, expected[kind]) / pairs
                    )
                previous[kind] = matches
    return Report(
        "figure-5",
        "Figure 5: Algorithm 1 with more and more samples",
        {
            "seed": seed,
            "source": source,
            "layers": origins,
            "messages_of_each_type": sizes.messages,
            "points": points[:-1],
            "gain_percent": {" ".join(key): kind_messages for key, kind_messages in gains.items()},
            "error_percent": {
                " ".join(key): kind_messages for key, kind_messages in errors.items()
            },
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


def _count_differing(first: list[Any], second: list[Any]) -> int:
    return sum(len(np.setxor1d(a, b)) for a, b in zip(first, second, strict=True))


def _table(title: str, shares: dict[Key, list[float]], points: list[int]) -> Table:
    rows = [[", ".join(key), *map(figure, values)] for key, values in shares.items()]
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
    for panel, shares in zip(axes, (gains, errors), strict=True):
        for (layer, kind), values in shares.items():
            panel.plot(
                points,
                values,
                marker=markers[kind],
                color=colours[layer],
                label=f"{layer}, {kind}",
            )
        panel.set_xlabel("D, points per universe half-length")
        panel.set_xticks(points, [f"{count:,}" for count in points])
        panel.set_yscale("symlog", linthresh=1e-4)
        panel.set_ylim(bottom=0)
    published_gains = published.EXAMPLE_GAIN_PERCENT
    axes[0].scatter(
        list(published_gains),
        list(published_gains.values()),
        label="the paper's example",
        **PUBLISHED,
    )
    axes[0].set_ylabel("% of predicates")
    axes[0].set_title(f"Differ between D and D + {STEP:,}")
    axes[1].set_title("Wrong at D")
    picture.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=10)
