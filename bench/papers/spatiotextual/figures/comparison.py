"""Methods beside one another for the four kinds of messages, over their number of tokens.

Figures 6 to 9 of the paper have this form: short and long, point and range messages, one panel
each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.papers.spatiotextual import claims, measuring, ours, workloads
from bench.papers.spatiotextual.claims import Claim, Setting
from bench.papers.spatiotextual.figures.common import (
    COLOURS,
    bad_ids,
    best,
    check_table,
    index_table,
    lines,
    plain_indexes,
    scale_note,
    times_by_method,
)
from bench.papers.spatiotextual.measuring import Effort, Outcome
from bench.papers.spatiotextual.methods import Method
from bench.papers.spatiotextual.published import SUBSCRIPTIONS
from bench.papers.spatiotextual.workloads import KINDS, LONG, Workload
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import ratio


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scale: int
    short: tuple[int, ...]  # tokens of a message
    long: tuple[int, ...]
    messages: int
    long_messages: int
    effort: Effort


FULL = Sizes(100_000, (6, 13, 20), (100, 500, 1000), 10_000, 2_000, Effort(5, 5.0, 8))
QUICK = Sizes(5_000, (6, 20), (100, 1000), 500, 50, Effort(2, 0.5, 4))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a figure compares.

    orders : what the paper says of it, by what the report calls it.
    compared : methods whose ratio to our kernel is shown.
    published : what the paper prints for a setting, and how that column is called.
    stars : the same as milliseconds of methods, drawn where there are as many subscriptions.
    """

    name: str
    title: str
    workload: Workload
    methods: Sequence[Method]
    orders: Mapping[str, Sequence[Claim]]
    compared: Sequence[str]
    published: Mapping[Setting, str] = field(default_factory=dict)
    published_title: str = "published"
    stars: Mapping[Setting, Mapping[str, float]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()


def steps(sizes: Sizes) -> int:
    """How many settings there will be."""
    return 2 * (len(sizes.short) + len(sizes.long))


def run(given: Comparison, sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure every setting, and check all answers."""
    workload, outcomes = given.workload, measure(given, sizes, seed, progress)
    measured = {setting: times_by_method(own.times) for setting, own in outcomes.items()}
    verdicts = {name: claims.judge(own, measured) for name, own in given.orders.items()}
    return Report(
        given.name,
        given.title,
        {
            "seed": seed,
            "scale": len(workload),
            "origin": workload.origin,
            "indexes": plain_indexes(given.methods),
            "settings": {f"{k}, {t} tokens": own.plain() for (k, t), own in outcomes.items()},
            "orders": {name: [one.plain() for one in own] for name, own in verdicts.items()},
            "wrong_ids": bad_ids(outcomes.values()),
        },
        [
            _table(given, outcomes),
            *(claims.table(name, own) for name, own in verdicts.items()),
            *given.tables,
            index_table(given.methods, workload),
            check_table(outcomes.values()),
        ],
        lambda picture: _draw(picture, given, outcomes),
        size=(12.0, 9.0),
        notes=[
            *(claims.sentence(name, own) for name, own in verdicts.items()),
            *given.notes,
            *scale_note(workload),
        ],
    )


def measure(
    given: Comparison, sizes: Sizes, seed: int, progress: Progress
) -> dict[Setting, Outcome]:
    """The outcome of each setting."""
    outcomes = {}
    for kind in KINDS:
        is_long = (kind.least, kind.most) == LONG
        count = sizes.long_messages if is_long else sizes.messages
        for tokens in sizes.long if is_long else sizes.short:
            progress.step(f"{kind.name} messages of {tokens:,} tokens")
            made = workloads.messages(given.workload, seed, count, kind.sides, tokens, tokens)
            outcomes[kind.name, tokens] = measuring.measure(
                given.workload, given.methods, made, sizes.effort
            )
    return outcomes


def _table(given: Comparison, outcomes: Mapping[Setting, Outcome]) -> Table:
    rows = []
    for (kind, tokens), own in outcomes.items():
        kernel = own.times[ours.KERNEL].min_ms
        rows.append(
            [
                f"{kind}, {tokens:,} tokens",
                f"{own.answers:,.1f}",
                *([given.published.get((kind, tokens), "")] if given.published else []),
                *(best(own.times[method.name]) for method in given.methods),
                *(ratio(own.times[name].min_ms, kernel) for name in given.compared),
            ]
        )
    return Table(
        "Microseconds a message: best round (median)",
        [
            "messages",
            "answers",
            *([given.published_title] if given.published else []),
            *(method.name for method in given.methods),
            *(f"{name} / kernel" for name in given.compared),
        ],
        rows,
    )


def _draw(picture: Any, given: Comparison, outcomes: Mapping[Setting, Outcome]) -> None:
    panels = picture.subplots(2, 2).ravel()
    for letter, kind, axes in zip("abcd", KINDS, panels, strict=True):
        own = {tokens: one.times for (name, tokens), one in outcomes.items() if name == kind.name}
        lines(axes, list(own), list(own.values()))
        if len(given.workload) == SUBSCRIPTIONS:
            _stars(axes, kind.name, given.stars)
        log_axis(axes.yaxis)
        axes.set_xlabel("tokens of a message")
        axes.set_ylabel("microseconds a message")
        axes.set_title(f"({letter}) {kind.name}")
    picture.suptitle(given.title)
    picture.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=10
    )


def _stars(axes: Any, kind: str, stars: Mapping[Setting, Mapping[str, float]]) -> None:
    """Published times of a kind of messages, in the colours of their methods."""
    for (name, tokens), said in stars.items():
        if name == kind:
            for method, ms in said.items():
                axes.scatter(tokens, ms * 1e3, color=COLOURS[method], marker="*", s=160, zorder=5)
