"""Our engine beside a compiled list and the paper's trees, and what memory allows.

This figure is not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.papers.spatiotextual import faithful, latency, measuring, ours, rarest, workloads
from bench.papers.spatiotextual.figures.common import (
    COLOURS,
    bad_ids,
    best,
    check_table,
    index_table,
    plain_indexes,
    scale_note,
)
from bench.papers.spatiotextual.measuring import Effort, Outcome
from bench.papers.spatiotextual.methods import Method
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import POINT, SHORT, Sides, Workload
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure, ratio
from fencepost.papers.spatiotextual.static_trees import Kind

KINDS_OF_TREE: tuple[Kind, ...] = ("rt", "rt+", "rt++")
TREE = faithful.NAMES["rt++"]
TREES = tuple(faithful.NAMES[kind] for kind in KINDS_OF_TREE)
METHODS = (ours.KERNEL, ours.BATCH, rarest.NAME, *TREES)
SHORT_POINT = "short point"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scale: int
    messages: int
    long_messages: int
    effort: Effort


FULL = Sizes(100_000, 100_000, 2_000, Effort(7, 10.0, 8))
QUICK = Sizes(5_000, 500, 50, Effort(2, 0.5, 4))


@dataclass(frozen=True, slots=True)
class Setting:
    """Messages of a contest."""

    sides: Sides
    min_tokens: int
    max_tokens: int
    long: bool = False


SETTINGS = {
    SHORT_POINT: Setting(POINT, *SHORT),
    "point of 1,000 tokens": Setting(POINT, 1000, 1000, long=True),
    "short range of 1 %": Setting(Sides(0.01, 0.01, False), *SHORT),
    "short range of 10 %": Setting(Sides(0.1, 0.1, False), *SHORT),
}


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    workload = workloads.twitter(seed, sizes.scale)
    name, title = (
        "contest",
        f"{sizes.scale:,} subscriptions: ours beside a list and the paper's trees",
    )
    return measure_contest(name, title, workload, SETTINGS, sizes, seed, progress)


def measure_contest(
    name: str,
    title: str,
    workload: Workload,
    settings: Mapping[str, Setting],
    sizes: Sizes,
    seed: int,
    progress: Progress,
) -> Report:
    """Build all methods on a workload, measure and check them, and compute bounds of memory."""
    progress.expect(3 + len(TREES) + len(settings))
    engine, methods = _build(workload, progress)
    outcomes: dict[str, Outcome] = {}
    look_ups: dict[str, Timing] = {}
    for label, setting in settings.items():
        progress.step(label)
        count = sizes.long_messages if setting.long else sizes.messages
        messages = workloads.messages(
            workload, seed, count, setting.sides, setting.min_tokens, setting.max_tokens
        )
        outcomes[label] = measuring.measure(workload, methods, messages, sizes.effort)
        messages = messages.first(outcomes[label].messages[ours.KERNEL])
        look_ups[label] = _look_up(engine, messages, sizes.effort)
    progress.step("what memory allows")
    memory = latency.measure(methods[0].nbytes, seed)
    short = outcomes[SHORT_POINT]
    return Report(
        name,
        title,
        {
            "seed": seed,
            "scale": len(workload),
            "origin": workload.origin,
            "indexes": plain_indexes(methods),
            "settings": {label: setting.plain() for label, setting in outcomes.items()},
            "look_ups": {label: setting.plain() for label, setting in look_ups.items()},
            "memory": {
                **memory.plain(),
                "reads_of_a_short_message": latency.reads(short.tokens, short.answers),
                "least_us": memory.min_us(short.tokens, short.answers),
                "in_steps_us": memory.in_steps_us(short.tokens, short.answers),
                "waiting_us": memory.waiting_us(short.tokens, short.answers),
            },
            "wrong_ids": bad_ids(outcomes.values()),
        },
        [
            _table(outcomes, look_ups),
            _memory_table(memory, short),
            index_table(methods, workload),
            check_table(outcomes.values()),
        ],
        lambda picture: _draw(picture, title, outcomes),
        size=(10.0, 6.0),
        notes=[
            "A short message of t tokens and a answers needs at least (2 t + 2 a) reads: for each "
            "token the head of its list and the first line of that, for each answer its other "
            "tokens and its row. A read is timed in an array as large as our index. All at once: "
            "(2 t + 2 a) gathers, which also supposes that messages overlap. In steps: 3 chases "
            "more, since a message knows its lists only when it has their heads, and its answers "
            "when it has the lists. Each waits: (2 t + 2 a) chases. What stays in the caches "
            "makes all of them smaller.",
            "Ours looks up words, the others are given numbers of tokens; what that takes of the "
            "kernel's time has a column of its own. Ratios are of best rounds, to all of it.",
            *scale_note(workload),
        ],
    )


def _build(workload: Workload, progress: Progress) -> tuple[ours.Ours, list[Method]]:
    progress.step(f"ours, {len(workload):,} subscriptions")
    engine = ours.Ours(workload)
    methods = engine.methods(ours.KERNEL, ours.BATCH)
    progress.step(rarest.NAME)
    methods.append(rarest.method(workload))
    for kind in KINDS_OF_TREE:
        progress.step(faithful.NAMES[kind])
        methods.append(faithful.method(workload, kind))
    return engine, methods


def _look_up(engine: ours.Ours, messages: TokenBoxes, effort: Effort) -> Timing:
    ways = {"look-up": engine.look_up(messages)}
    times = alternate(ways, items=len(messages), rounds=effort.rounds, budget_s=effort.budget_s)
    return times["look-up"]


def _table(outcomes: Mapping[str, Outcome], look_ups: Mapping[str, Timing]) -> Table:
    rows = []
    for label, outcome in outcomes.items():
        kernel = outcome.times[ours.KERNEL].min_ms
        rows.append(
            [
                label,
                f"{outcome.tokens:,.1f}",
                f"{outcome.answers:,.1f}",
                figure(look_ups[label].min_ms * 1e3),
                *(best(outcome.times[name]) for name in METHODS),
                ratio(outcome.times[rarest.NAME].min_ms, kernel),
                ratio(outcome.times[TREE].min_ms, kernel),
                ratio(min(outcome.times[name].min_ms for name in TREES), kernel),
            ]
        )
    return Table(
        "Microseconds a message: best round (median)",
        [
            "messages",
            "tokens",
            "answers",
            "look-up alone",
            *METHODS,
            f"{rarest.NAME} / kernel",
            f"{TREE} / kernel",
            "best tree / kernel",
        ],
        rows,
    )


def _memory_table(memory: latency.Memory, short: Outcome) -> Table:
    kernel_us = short.times[ours.KERNEL].min_ms * 1e3
    need = latency.reads(short.tokens, short.answers)
    rows = []
    for what, each, bound in (
        ("all at once (gather)", memory.gather_ns, memory.min_us(short.tokens, short.answers)),
        (
            f"in {latency.STEPS} steps",
            memory.gather_ns,
            memory.in_steps_us(short.tokens, short.answers),
        ),
        ("each waits (chase)", memory.chase_ns, memory.waiting_us(short.tokens, short.answers)),
    ):
        rows.append(
            [
                what,
                figure(each),
                f"2 x {short.tokens:.1f} + 2 x {short.answers:.1f} = {need:.1f}",
                figure(bound),
                figure(kernel_us),
                f"{kernel_us / bound:.2f}x",
            ]
        )
    return Table(
        f"What memory allows for a short point message, in {memory.nbytes / 1e6:,.0f} MB",
        [
            "reads",
            "ns each",
            "reads a message",
            "bound, us",
            f"{ours.KERNEL}, us",
            "kernel / bound",
        ],
        rows,
    )


def _draw(picture: Any, title: str, outcomes: Mapping[str, Outcome]) -> None:
    axes = picture.subplots()
    labels: Sequence[str] = list(outcomes)
    for name in METHODS:
        axes.scatter(
            [outcome.times[name].min_ms * 1e3 for outcome in outcomes.values()],
            range(len(labels)),
            color=COLOURS[name],
            marker="D" if name == ours.KERNEL else "o",
            s=60,
            label=name,
        )
    log_axis(axes.xaxis)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel("microseconds a message")
    axes.set_title(title)
    picture.legend(loc="outside lower center", ncols=3, fontsize=10)
