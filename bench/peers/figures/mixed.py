"""A region, two attributes and keywords in each subscription: Fencepost beside PostGIS."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.peers import mixed_workload, optional, ours, postgis, trees_by_kind
from bench.peers.contest import Effort, Method, measure
from bench.peers.figure_reports import report, times_faster
from bench.progress import Progress
from bench.report import Report
from bench.timing import figure


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure."""

    subscriptions: int
    events: int
    effort: Effort


FULL = Sizes(1_000_000, 20_000, Effort(5, 20.0))
QUICK = Sizes(20_000, 2_000, Effort(3, 2.0))


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure all methods, and compare their answers."""
    progress.expect(4)
    rng = np.random.default_rng([seed, 31])
    subscriptions = mixed_workload.draw_subscriptions(rng, sizes.subscriptions)
    events = mixed_workload.draw_events(rng, subscriptions, sizes.events)
    versions = optional.versions("shapely", "psycopg")
    with ExitStack() as servers:

        def of_postgis() -> list[Method]:
            connection = servers.enter_context(postgis.server())
            versions.update(postgis.versions(connection))
            return postgis.methods(connection, subscriptions, events)

        methods, absent = optional.gather(
            {
                "Fencepost": partial(
                    ours.methods, subscriptions.subscribe, events.points, events.values
                ),
                "PostGIS": of_postgis,
                "Shapely": partial(trees_by_kind.methods, subscriptions, events),
            },
            progress,
        )
        progress.step(f"matching {sizes.events:,} events")
        outcome = measure(methods, sizes.events, sizes.effort, trees_by_kind.NAME)
    goals = [
        times_faster(
            "one at a time, beside a prepared statement of PostGIS",
            20,
            outcome.best_us(*ours.ONE_BY_ONE),
            outcome.best_us(postgis.STATEMENT),
        ),
        times_faster(
            "in bulk, beside the faster way with PostGIS",
            20,
            outcome.best_us(*ours.IN_BULK),
            outcome.best_us(postgis.STATEMENT, postgis.JOIN),
        ),
    ]
    label = f"{sizes.subscriptions:,} subscriptions"
    title = f"{label} of a region, a kind, a range of prices and keywords"
    return report(
        "mixed",
        title,
        {
            "seed": seed,
            "subscriptions": sizes.subscriptions,
            "versions": versions,
        },
        {label: outcome},
        goals,
        absent,
        size=(11.0, 4.5),
        notes=[
            f"An event has {figure(outcome.answers)} matches. A point is in "
            f"{min(mixed_workload.COVER, sizes.subscriptions / 20):,.0f} regions, there are "
            f"{mixed_workload.KINDS} kinds; a range has a fifth of all prices.",
            "PostGIS has a partition for each kind, with a GiST index of regions and prices and in "
            "its order, and holds all in memory; statements are prepared for each partition, and "
            "sent one at a time through a socket. The events of the join are in a table of the "
            "server beforehand.",
            "Building Fencepost includes parsing CQL2 texts; the other methods get columns.",
        ],
    )
