"""The cost of reading messages: lists of words, and texts that are tokenized. (Our engine only.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.papers.spatiotextual import measuring, ours, workloads
from bench.papers.spatiotextual.figures.common import (
    COLOURS,
    bad_ids,
    best,
    check_table,
    plain_indexes,
    scale_note,
)
from bench.papers.spatiotextual.figures.contest import Sizes
from bench.papers.spatiotextual.measuring import Effort, Outcome
from bench.papers.spatiotextual.workloads import KINDS
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import figure, ratio

FULL = Sizes(100_000, 20_000, 2_000, Effort(7, 10.0, 5))
QUICK = Sizes(5_000, 300, 40, Effort(2, 0.5, 3))
MEASURED = KINDS[:2]  # short and long point messages
METHODS = (ours.KERNEL, ours.BATCH, ours.TEXT)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    progress.expect(1 + len(MEASURED))
    progress.step(f"{sizes.scale:,} subscriptions")
    workload = workloads.twitter(seed, sizes.scale)
    methods = ours.Ours(workload).methods(*METHODS)
    outcomes: dict[str, Outcome] = {}
    for kind, count in zip(MEASURED, (sizes.messages, sizes.long_messages), strict=True):
        progress.step(f"{kind.name} messages")
        messages = workloads.of_kind(workload, seed, kind, count)
        outcomes[kind.name] = measuring.measure(workload, methods, messages, sizes.effort)
    return Report(
        "text",
        "Texts and lists of words in an Arrow table",
        {
            "seed": seed,
            "scale": len(workload),
            "origin": workload.origin,
            "indexes": plain_indexes(methods),
            "settings": {label: outcome.plain() for label, outcome in outcomes.items()},
            "wrong_ids": bad_ids(outcomes.values()),
        },
        [_table(outcomes), check_table(outcomes.values())],
        lambda picture: _draw(picture, outcomes),
        size=(9.0, 4.5),
        notes=[
            "Kernel: the messages are laid out beforehand. Batches: `match_batch` of an Arrow "
            "table of points as WKB and words as lists, or as texts with a space between words; "
            "layout, cutting, look-up, matching and ids as Arrow strings.",
            *scale_note(workload),
        ],
    )


def _table(outcomes: Mapping[str, Outcome]) -> Table:
    rows = []
    for label, outcome in outcomes.items():
        kernel, _, texts = (outcome.times[name].min_ms for name in METHODS)
        rows.append(
            [
                label,
                f"{outcome.tokens:,.1f}",
                f"{outcome.answers:,.1f}",
                *(best(outcome.times[name]) for name in METHODS),
                ratio(texts, kernel),
                figure((texts - kernel) * 1e6 / outcome.tokens),
            ]
        )
    return Table(
        "Microseconds a message: best round (median)",
        [
            "messages",
            "tokens",
            "answers",
            *METHODS,
            "texts / kernel",
            "ns a token above the kernel",
        ],
        rows,
    )


def _draw(picture: Any, outcomes: Mapping[str, Outcome]) -> None:
    axes = picture.subplots()
    height = 0.8 / len(METHODS)
    for number, name in enumerate(METHODS):
        axes.barh(
            [place + (number - 1) * height for place in range(len(outcomes))],
            [outcome.times[name].min_ms * 1e3 for outcome in outcomes.values()],
            height,
            color=COLOURS[name],
            label=name,
        )
    log_axis(axes.xaxis)
    axes.set_yticks(range(len(outcomes)), list(outcomes))
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a message")
    axes.set_title("What reading a message costs")
    axes.legend()
