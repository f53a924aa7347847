"""Table 1: the sizes of the indexes, for both data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from bench.papers.spatiotextual import claims, faithful, measuring, ours, published, workloads
from bench.papers.spatiotextual.figures.common import COLOURS
from bench.papers.spatiotextual.methods import Method
from bench.papers.spatiotextual.workloads import KINDS, Workload
from bench.progress import Progress
from bench.report import Report, Table
from bench.timing import figure
from fencepost.papers.spatiotextual.static_trees import Kind

TREES: tuple[Kind, ...] = ("rt", "rt+", "rt++")
SUBSCRIPTIONS = "subscriptions"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scale: int
    verify: int  # messages of each kind


FULL = Sizes(100_000, 5)
QUICK = Sizes(5_000, 3)


@dataclass(frozen=True, slots=True)
class Row:
    """An index: its size, the seconds to build it, and the wrong ids in its answers."""

    data: str
    method: str
    published_bytes: float | None  # for each subscription
    nbytes: int
    build_s: float
    wrong_ids: int


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Build each index and check some of its answers; only one index is in memory at a time."""
    progress.expect(2 * (len(TREES) + 1))
    rows: list[Row] = []
    origins: list[str] = []
    for name in (published.TWITTER, published.USA):
        twitter = name == published.TWITTER
        workload = (
            workloads.twitter(seed, sizes.scale)
            if twitter
            else workloads.usa(seed, sizes.scale, source)
        )
        origins.append(
            f"In place of {name}: {len(workload):,} subscriptions of "
            f"{workload.subscriptions.mean_tokens:.2f} tokens on average; {workload.origin}."
        )
        rows += _measure(name, workload, sizes, seed, progress)
    verdicts = {
        name: claims.judge(
            claims.chain(*(faithful.NAMES[kind] for kind in ("rt+", "rt++", "rt"))),
            {("size", 0): {row.method: float(row.nbytes) for row in rows if row.data == name}},
        )
        for name in (published.TWITTER, published.USA)
    }
    return Report(
        "table-1",
        "Table 1: sizes of the indexes",
        {
            "seed": seed,
            "scale": sizes.scale,
            "origins": origins,
            "rows": [asdict(row) for row in rows],
            "orders": {
                name: [verdict.plain() for verdict in verdicts_of_data]
                for name, verdicts_of_data in verdicts.items()
            },
            "wrong_ids": sum(row.wrong_ids for row in rows),
        },
        [
            _table(rows, sizes.scale),
            *(
                claims.table(f"Order of sizes, {name}", verdicts_of_data)
                for name, verdicts_of_data in verdicts.items()
            ),
        ],
        lambda picture: _draw(picture, rows, sizes.scale),
        notes=[
            *(
                claims.sentence(f"Order of sizes, {name}", verdicts_of_data)
                for name, verdicts_of_data in verdicts.items()
            ),
            *origins,
            "A subscription's own size is 32 bytes of rectangle, 8 of offset and 4 a token. Ours "
            "counts the arrays of the index, without the ids.",
            published.DISAGREE,
        ],
    )


def _measure(
    name: str, workload: Workload, sizes: Sizes, seed: int, progress: Progress
) -> list[Row]:
    builds: list[tuple[str, Callable[[], Method]]] = [
        (kind, partial(faithful.method, workload, kind)) for kind in TREES
    ]
    builds.append((ours.KERNEL, lambda: ours.Ours(workload).methods(ours.KERNEL)[0]))
    published_gb_of_subscriptions = published.SUBSCRIPTIONS_GB[name]
    plain = workload.subscriptions.nbytes
    bytes_each = published.bytes_a_subscription
    rows = [Row(name, SUBSCRIPTIONS, bytes_each(published_gb_of_subscriptions), plain, 0.0, 0)]
    for kind, build in builds:
        progress.step(f"{name}, {kind}")
        method = build()
        wrong = 0
        for message_kind in KINDS:
            messages = workloads.of_kind(workload, seed, message_kind, sizes.verify)
            wrong += sum(measuring.check(workload, [method], messages)[1].values())
        published_gb = published.TREE_GB[name].get(kind)
        rows.append(
            Row(
                name,
                method.name,
                None if published_gb is None else bytes_each(published_gb),
                method.nbytes,
                method.build_s,
                wrong,
            )
        )
    return rows


def _table(rows: list[Row], scale: int) -> Table:
    return Table(
        f"Bytes a subscription ({scale:,} of them; published: 10 million)",
        ["data, index", "published", "measured", "megabytes", "seconds to build", "wrong ids"],
        [
            [
                f"{row.data} stand-in, {row.method}",
                "" if row.published_bytes is None else f"{row.published_bytes:.0f}",
                figure(row.nbytes / scale),
                figure(row.nbytes / 1e6),
                figure(row.build_s) if row.build_s else "",
                f"{row.wrong_ids}",
            ]
            for row in rows
        ],
    )


def _draw(picture: Any, rows: list[Row], scale: int) -> None:
    axes = picture.subplots()
    places = range(len(rows))
    colours = [COLOURS.get(row.method, "#9e9e9e") for row in rows]
    axes.barh(places, [row.nbytes / scale for row in rows], color=colours, label="measured")
    published_rows = [
        (place, row.published_bytes) for place, row in enumerate(rows) if row.published_bytes
    ]
    axes.scatter(
        [value for _, value in published_rows],
        [place for place, _ in published_rows],
        color="black",
        marker="*",
        s=110,
        zorder=5,
        label="published, 10 million",
    )
    axes.set_yticks(places, [f"{row.data}, {row.method}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("bytes a subscription")
    axes.set_title("Sizes of the indexes")
    axes.legend()
