"""`run`, which figures 6 to 9 share: methods over the number of tokens of a message.

There is one panel for each kind of message: short or long, point or range.
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

    orders : the paper's claims, by the title of their table in the report.
    compared : methods whose ratio to our kernel is shown.
    published, published_title : published values by setting, and the title of their column.
    stars : published milliseconds, drawn if there are as many subscriptions as in the paper.
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
    """Return the number of settings."""
    return 2 * (len(sizes.short) + len(sizes.long))


def run(compared: Comparison, sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure all settings, and check all answers."""
    workload, outcomes = compared.workload, measure(compared, sizes, seed, progress)
    measured = {setting: times_by_method(outcome.times) for setting, outcome in outcomes.items()}
    verdicts = {name: claims.judge(order, measured) for name, order in compared.orders.items()}
    return Report(
        compared.name,
        compared.title,
        {
            "seed": seed,
            "scale": len(workload),
            "origin": workload.origin,
            "indexes": plain_indexes(compared.methods),
            "settings": {
                f"{k}, {t} tokens": outcome.plain() for (k, t), outcome in outcomes.items()
            },
            "orders": {
                name: [verdict.plain() for verdict in judged] for name, judged in verdicts.items()
            },
            "wrong_ids": bad_ids(outcomes.values()),
        },
        [
            _table(compared, outcomes),
            *(claims.table(name, judged) for name, judged in verdicts.items()),
            *compared.tables,
            index_table(compared.methods, workload),
            check_table(outcomes.values()),
        ],
        lambda picture: _draw(picture, compared, outcomes),
        size=(12.0, 9.0),
        notes=[
            *(claims.sentence(name, judged) for name, judged in verdicts.items()),
            *compared.notes,
            *scale_note(workload),
        ],
    )


def measure(
    compared: Comparison, sizes: Sizes, seed: int, progress: Progress
) -> dict[Setting, Outcome]:
    """Return the outcome of each setting."""
    outcomes = {}
    for kind in KINDS:
        is_long = (kind.min_tokens, kind.max_tokens) == LONG
        count = sizes.long_messages if is_long else sizes.messages
        for tokens in sizes.long if is_long else sizes.short:
            progress.step(f"{kind.name} messages of {tokens:,} tokens")
            messages = workloads.messages(
                compared.workload, seed, count, kind.sides, tokens, tokens
            )
            outcomes[kind.name, tokens] = measuring.measure(
                compared.workload, compared.methods, messages, sizes.effort
            )
    return outcomes


def _table(compared: Comparison, outcomes: Mapping[Setting, Outcome]) -> Table:
    rows = []
    for (kind, tokens), outcome in outcomes.items():
        kernel = outcome.times[ours.KERNEL].min_ms
        rows.append(
            [
                f"{kind}, {tokens:,} tokens",
                f"{outcome.answers:,.1f}",
                *([compared.published.get((kind, tokens), "")] if compared.published else []),
                *(best(outcome.times[method.name]) for method in compared.methods),
                *(ratio(outcome.times[name].min_ms, kernel) for name in compared.compared),
            ]
        )
    return Table(
        "Microseconds a message: best round (median)",
        [
            "messages",
            "answers",
            *([compared.published_title] if compared.published else []),
            *(method.name for method in compared.methods),
            *(f"{name} / kernel" for name in compared.compared),
        ],
        rows,
    )


def _draw(picture: Any, compared: Comparison, outcomes: Mapping[Setting, Outcome]) -> None:
    panels = picture.subplots(2, 2).ravel()
    for letter, kind, axes in zip("abcd", KINDS, panels, strict=True):
        times_by_tokens = {
            tokens: outcome.times
            for (name, tokens), outcome in outcomes.items()
            if name == kind.name
        }
        lines(axes, list(times_by_tokens), list(times_by_tokens.values()))
        if len(compared.workload) == SUBSCRIPTIONS:
            _stars(axes, kind.name, compared.stars)
        log_axis(axes.yaxis)
        axes.set_xlabel("tokens of a message")
        axes.set_ylabel("microseconds a message")
        axes.set_title(f"({letter}) {kind.name}")
    picture.suptitle(compared.title)
    picture.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=10
    )


def _stars(axes: Any, kind: str, stars: Mapping[Setting, Mapping[str, float]]) -> None:
    """Draw the published times for a kind of message, in the colours of the methods."""
    for (name, tokens), published_ms in stars.items():
        if name == kind:
            for method, ms in published_ms.items():
                axes.scatter(tokens, ms * 1e3, color=COLOURS[method], marker="*", s=160, zorder=5)
