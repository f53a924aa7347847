"""`run`, which figures 5 and 6 share: time and memory over the number of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.papers.events import measuring, published
from bench.papers.events.measuring import Effort, Outcome
from bench.papers.events.methods import ALIKE, BATCH, KERNEL, ONE, OPTIMISED, SILENT, STANDARD
from bench.papers.events.published import Shares
from bench.papers.events.scenarios import Scenario
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import figure

COLOURS = {
    STANDARD: "#7b2d8b",
    OPTIMISED: "#c2185b",
    SILENT: "#e57399",
    KERNEL: "#0b6e4f",
    BATCH: "#6bbf8a",
    KERNEL + ALIKE: "#1565c0",
    BATCH + ALIKE: "#5d99d6",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scale: int
    steps: int  # equal steps up to the scale
    events: int
    effort: Effort


FULL = Sizes(published.SUBSCRIPTIONS, 10, published.EVENTS, Effort(5, 5.0, 1_000, 1_000))
QUICK = Sizes(1_000, 2, 1_000, Effort(2, 0.5, 100, 200))


def run(
    name: str,
    title: str,
    scenario: Callable[[int, int, int], Scenario],
    sizes: Sizes,
    *,
    seed: int,
    progress: Progress,
) -> Report:
    """Measure and check."""
    counts = [sizes.scale * step // sizes.steps for step in range(1, sizes.steps + 1)]
    progress.expect(len(counts))
    outcomes = []
    for count in counts:
        progress.step(f"{count:,} subscriptions, {sizes.events:,} events")
        built_scenario = scenario(seed, count, sizes.events)
        outcomes.append(measuring.measure(built_scenario, sizes.effort))
    largest, published_shares = outcomes[-1], built_scenario.published
    means = {method: _mean_share(outcomes, method) for method in largest.times}
    return Report(
        name,
        title,
        {
            "seed": seed,
            "points": [outcome.plain() for outcome in outcomes],
            "mean_percent_of_standard_time": means,
            "published_percent": published_shares._asdict(),
            "wrong_pairs": sum(sum(outcome.wrong.values()) for outcome in outcomes),
        },
        [
            _time_table(outcomes),
            _share_table(largest, means, published_shares),
            _memory_table(outcomes),
            _check_table(outcomes),
        ],
        lambda picture: _draw(picture, title, outcomes),
        size=(12.0, 6.0),
        notes=_notes(outcomes, published_shares),
    )


def _mean_share(outcomes: Sequence[Outcome], name: str) -> float:
    """Return the mean time of all sizes in percent of the standard version's, as in the paper."""
    method_ms, standard_ms = (
        sum(outcome.times[method].min_ms for outcome in outcomes) for method in (name, STANDARD)
    )
    return 100 * method_ms / standard_ms


def _time_table(outcomes: Sequence[Outcome]) -> Table:
    names = list(outcomes[-1].times)
    return Table(
        "Microseconds an event: best round (median)",
        ["subscriptions", "events that match", "answers an event", *names],
        [
            [
                f"{outcome.subscriptions:,}",
                f"{outcome.matching:.0%}",
                f"{outcome.answers:.2f}",
                *(
                    f"{figure(timing.min_ms * 1e3)} ({figure(timing.median_ms * 1e3)})"
                    for timing in outcome.times.values()
                ),
            ]
            for outcome in outcomes
        ],
    )


def _share_table(largest: Outcome, means: dict[str, float], published_shares: Shares) -> Table:
    return Table(
        f"Percent of the time of '{STANDARD}', which is the faster of its two",
        [
            "method",
            f"{largest.subscriptions:,} subscriptions",
            "mean of all sizes",
            "published for the optimised version",
            "at most that",
        ],
        [
            [
                name,
                f"{largest.share(name):.3g}",
                f"{means[name]:.3g}",
                f"{published_shares.time}",
                "yes" if largest.share(name) <= published_shares.time else "no",
            ]
            for name in largest.times
            if name != STANDARD and not (name.startswith("OPS4ST") and name.endswith(ONE))
        ],
    )


def _memory_table(outcomes: Sequence[Outcome]) -> Table:
    names = list(outcomes[-1].nbytes)
    return Table(
        "Kilobytes of the subscriptions (percent of the standard version's)",
        ["subscriptions", *names],
        [
            [
                f"{outcome.subscriptions:,}",
                *(
                    f"{outcome.nbytes[name] / 1e3:,.0f} ({outcome.memory_share(name):.0f} %)"
                    for name in names
                ),
            ]
            for outcome in outcomes
        ],
    )


def _check_table(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        "Wrong pairs of an event and a subscription, at all sizes",
        ["method", "wrong"],
        [
            [name, f"{sum(outcome.wrong[name] for outcome in outcomes):,}"]
            for name in outcomes[-1].times
        ],
    )


def _notes(outcomes: Sequence[Outcome], published_shares: Shares) -> list[str]:
    largest = outcomes[-1]
    return [
        f"{largest.origin}. The map grows with the number of subscriptions, so that at each size "
        "about half of the events match, as published.",
        "Published: the optimised version, safe regions included, needs "
        f"{published_shares.time} % of the time and {published_shares.memory} % of the memory of "
        "the standard one; the figures have no numbers.",
        "OPS4ST and the kernel of ours have events laid out beforehand; a batch is a table with "
        "points as WKB, and ids come out; one by one, a mapping goes in and a list of ids comes "
        "out. Percentages are of best rounds.",
        "Bytes are those of what an event is compared with; ours has all of a matcher, ids and "
        "expressions included.",
        f"With safe regions {largest.sent:.1%} of the events are sent; the others cost the "
        "server nothing, and what objects compute is not timed.",
    ]


def _draw(picture: Any, title: str, outcomes: Sequence[Outcome]) -> None:
    counts = [outcome.subscriptions for outcome in outcomes]
    time, memory = picture.subplots(1, 2)
    for name, colour in COLOURS.items():
        if name in outcomes[-1].times:
            values = [outcome.times[name].min_ms * 1e3 for outcome in outcomes]
            time.plot(counts, values, marker="o", color=colour, label=name)
        if name in outcomes[-1].nbytes:
            values = [outcome.nbytes[name] / 1e3 for outcome in outcomes]
            memory.plot(counts, values, marker="o", color=colour)
    log_axis(time.yaxis)
    time.set_ylabel("microseconds an event")
    memory.set_ylabel("kilobytes")
    memory.set_ylim(bottom=0)
    for axes, what in ((time, "(a) time"), (memory, "(b) memory")):
        axes.set_xlabel("subscriptions")
        axes.set_title(what)
    picture.suptitle(title)
    picture.legend(loc="outside lower center", ncols=3, fontsize=10)
