"""Time over the number of small regions, for fixed messages. (Not in the paper.)

The messages stay fixed while the regions become more and smaller, so that more of them lie under a
message and along its boundary. The time of a good engine depends only on the number of regions that
the boundary crosses and on the number of ids that it returns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.regions import ours, workloads
from bench.papers.regions.contest import SHAPELY
from bench.papers.regions.peers import PEERS
from bench.papers.regions.shapes import MESSAGE_TYPES
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import alternate, figure, ratio
from fencepost.engine.relate import relations
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import Relation
from fencepost.testing import Geometries

MODES = {"all eight relations": False, "without disjoint": True}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    constraints: tuple[int, ...]
    max_for_shapely: int
    rounds: int
    budget_s: float


FULL = Sizes((10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000), 1_000_000, 9, 10.0)
QUICK = Sizes((1_000, 4_000, 16_000), 16_000, 3, 1.0)


@dataclass(frozen=True, slots=True)
class Point:
    """The time of one message, and its relations to the constraints."""

    mode: str
    message: str
    constraints: int
    under: int  # regions that are not disjoint from the message
    crossed: int  # regions under the message that it does not contain
    answer: int
    kernel_ms: float
    shapely_ms: dict[str, float]  # by method; empty if there are too many constraints
    wrong_ids: int


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of maps does not matter here."""
    progress.expect(len(MODES) * len(sizes.constraints))
    messages = {kind: workloads.messages(seed, kind, 1) for kind in MESSAGE_TYPES}
    points: list[Point] = []
    for mode, without_disjoint in MODES.items():
        for count in sizes.constraints:
            progress.step(f"{count:,} constraints, {mode}")
            workload = workloads.small(seed, count, without_disjoint=without_disjoint)
            points += _measure(mode, workload, messages, sizes)
    return Report(
        "growth",
        "Growth: more and smaller regions under fixed messages",
        {
            "seed": seed,
            "points": [asdict(point) for point in points],
            "exponents": _exponents(points),
            "wrong_ids": sum(point.wrong_ids for point in points),
        },
        [_table(points), _exponent_table(points)],
        lambda picture: _draw(picture, points),
        size=(13.0, 6.5),
        notes=[
            "Small synthetic regions; one message of each type.",
            "Crossed: regions that are neither apart from the message nor strictly inside it.",
        ],
    )


def _measure(
    mode: str, workload: workloads.Workload, messages: dict[str, Geometries], sizes: Sizes
) -> list[Point]:
    engine = ours.of_workload(workload)
    regions = Shapes.read_all(workload.regions)
    beside_shapely = len(workload) <= sizes.max_for_shapely
    peers = [peer(workload) for peer in PEERS] if beside_shapely else []
    points = []
    for kind, (message,) in messages.items():
        codes = relations(Shapes.read_one(message), regions)
        answer = np.flatnonzero(codes == workload.relations)
        under = codes != Relation.DISJOINT.code
        block = engine.encode_events(message)
        ways: dict[str, Any] = {ours.KERNEL: lambda block=block: engine.match_block(block)}
        wrong = len(np.setxor1d(engine.match_block(block), answer))
        for peer in peers:
            ways[peer.name] = lambda peer=peer, message=message: peer.match(message)
        times = alternate(ways, items=1, rounds=sizes.rounds, budget_s=sizes.budget_s)
        points.append(
            Point(
                mode,
                kind,
                len(workload),
                int(under.sum()),
                int((under & (codes != Relation.CONTAINS.code)).sum()),
                len(answer),
                times[ours.KERNEL].min_ms,
                {peer.name: times[peer.name].min_ms for peer in peers},
                wrong,
            )
        )
    return points


def _of(points: list[Point], mode: str, message: str) -> list[Point]:
    return [point for point in points if (point.mode, point.message) == (mode, message)]


def _exponents(points: list[Point]) -> dict[str, dict[str, float]]:
    """Return the slopes of log time over the log of constraints, and of crossed + answer."""
    slopes = {}
    for mode in MODES:
        for kind in MESSAGE_TYPES:
            group = _of(points, mode, kind)
            times = np.log([point.kernel_ms for point in group])
            work = np.log([max(1, point.crossed + point.answer) for point in group])
            counts = np.log([point.constraints for point in group])
            slopes[f"{mode}, {kind}"] = {
                "constraints": _slope(counts, times),
                "crossed_and_answer": _slope(work, times),
            }
    return slopes


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Of the straight line nearest to the points; 0 where x is always the same."""
    away = x - x.mean()
    spread = float(away @ away)
    return float(away @ y) / spread if spread else 0.0


def _table(points: list[Point]) -> Table:
    rows = [
        [
            f"{p.mode}, {p.message}",
            f"{p.constraints:,}",
            f"{p.under:,}",
            f"{p.crossed:,}",
            f"{p.answer:,}",
            figure(p.kernel_ms),
            *(figure(p.shapely_ms[name]) if p.shapely_ms else "" for name in SHAPELY),
            ratio(min(p.shapely_ms.values()), p.kernel_ms) if p.shapely_ms else "",
            f"{p.wrong_ids}",
        ]
        for p in points
    ]
    return Table(
        "Milliseconds a message, best round",
        [
            "relations, message",
            "constraints",
            "under the message",
            "crossed",
            "answer",
            ours.KERNEL,
            *SHAPELY,
            "best Shapely / kernel",
            "wrong ids",
        ],
        rows,
    )


def _exponent_table(points: list[Point]) -> Table:
    rows = [
        [name, f"{slopes['constraints']:.2f}", f"{slopes['crossed_and_answer']:.2f}"]
        for name, slopes in _exponents(points).items()
    ]
    return Table(
        "Slope of the time of our kernel in a log-log plot",
        ["relations, message", "over constraints", "over crossed + answer"],
        rows,
    )


def _draw(picture: Any, points: list[Point]) -> None:
    left, right = picture.subplots(1, 2, sharey=True)
    colours = dict(zip(MESSAGE_TYPES, ("#0b6e4f", "#1565c0", "#c2185b"), strict=True))
    for mode, line in zip(MODES, ("-", "--"), strict=True):
        for kind in MESSAGE_TYPES:
            group = _of(points, mode, kind)
            times = [point.kernel_ms for point in group]
            style = {"color": colours[kind], "label": f"{kind}, {mode}", "marker": "o"}
            left.plot([point.constraints for point in group], times, line, **style)
            right.plot([point.crossed + point.answer for point in group], times, line, **style)
    ends = np.array([min(p.constraints for p in points), max(p.constraints for p in points)])
    low = min(point.kernel_ms for point in points)
    left.plot(ends, low * np.sqrt(ends / ends[0]), ":", color="grey", label="square root")
    left.plot(ends, low * ends / ends[0], "-.", color="grey", label="proportional")
    work = np.array([p.crossed + p.answer for p in points])
    span = np.array([max(1, work.min()), work.max()])
    right.plot(span, low * span / span[0], "-.", color="grey", label="proportional")
    for axes in (left, right):
        log_axis(axes.xaxis)
    log_axis(left.yaxis)
    left.set_xlabel("constraints")
    left.set_ylabel("milliseconds a message (kernel)")
    left.set_title("Over the number of constraints")
    right.set_xlabel("regions crossed by the boundary + ids in the answer")
    right.set_title("Over the work that cannot be avoided")
    picture.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=10
    )
