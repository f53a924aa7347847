"""What the figures share: tables of times, of what was asked and of checks; bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.peers import optional, ours
from bench.peers.contest import SINGLE, Outcome, plain_outcomes, wrong_ids
from bench.report import Report, Table, log_axis
from bench.timing import Timing, figure, ratio

OURS, THEIRS = "#0b6e4f", "#e0a100"
_SHADES = {OURS: "#6bbf8a", THEIRS: "#f0cd73"}  # one at a time is dark, in bulk is light


@dataclass(frozen=True, slots=True)
class Goal:
    """What was asked for, and what came out; `met` is None where it could not be measured."""

    what: str
    asked: str
    measured: str
    met: bool | None

    def plain(self) -> dict[str, Any]:
        """The values, for JSON."""
        return asdict(self)


def times_faster(what: str, least: float, own: float | None, other: float | None) -> Goal:
    """A goal of so many times faster than the others, by microseconds an event."""
    asked = f"{least:g}x or more"
    if own is None or other is None:
        return Goal(what, asked, "not measured", None)
    return Goal(what, asked, ratio(other, own), other >= least * own)


def at_most(what: str, most: float, value: float | None, unit: str) -> Goal:
    """A goal of at most so much."""
    asked = f"{figure(most)} {unit} or less"
    if value is None:
        return Goal(what, asked, "not measured", None)
    return Goal(what, asked, f"{figure(value)} {unit}", value <= most)


def report(
    name: str,
    title: str,
    values: Mapping[str, Any],
    outcomes: Mapping[str, Outcome],
    goals: Sequence[Goal],
    absent: Mapping[str, str],
    *,
    size: tuple[float, float],
    notes: Sequence[str],
) -> Report:
    """A contest, setting by setting, of those who took part; `values` are for JSON."""
    return Report(
        name,
        title,
        {
            **values,
            "absent": dict(absent),
            "settings": plain_outcomes(outcomes),
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": wrong_ids(outcomes.values()),
        },
        [goal_table(goals), _time_table(outcomes), _check_table(outcomes)],
        lambda picture: _bars(picture, title, outcomes),
        size=size,
        notes=[*(optional.absence(peer, why) for peer, why in absent.items()), *notes],
    )


def goal_table(goals: Sequence[Goal]) -> Table:
    """What was asked for."""
    words = {True: "yes", False: "NO", None: "not measured"}
    rows = [[goal.what, goal.asked, goal.measured, words[goal.met]] for goal in goals]
    return Table("What was asked for (best rounds)", ["goal", "asked", "measured", "met"], rows)


def microseconds(timing: Timing) -> str:
    """Best round, and mean and deviation of all."""
    spread = f" ({figure(timing.mean_ms * 1e3)} ± {figure(timing.std_ms * 1e3)})"
    return figure(timing.min_ms * 1e3) + (spread if timing.rounds > 1 else "")


def _time_table(outcomes: Mapping[str, Outcome]) -> Table:
    """A row for each method, two columns for each setting."""
    names = dict.fromkeys(name for own in outcomes.values() for name in own.times)
    modes = {name: mode for own in outcomes.values() for name, mode in own.modes.items()}
    rows = []
    for name in names:
        row = [name, modes[name]]
        for own in outcomes.values():
            there = name in own.times
            row += [microseconds(own.times[name]), figure(own.build_s[name])] if there else ["", ""]
        rows.append(row)
    columns = ["method", "events"]
    for label in outcomes:
        columns += [f"{label}: us an event", "built in, s"]
    return Table("Microseconds an event: best round (mean ± deviation)", columns, rows)


def _check_table(outcomes: Mapping[str, Outcome]) -> Table:
    """In how many ids each method differs from the judge."""
    rows = [
        [
            f"{name}; {label}" if len(outcomes) > 1 else name,
            f"{own.events[name]:,}",
            f"{own.ids[name]:,}",
            f"{own.differing[name]:,}",
        ]
        for label, own in outcomes.items()
        for name in own.times
    ]
    judge = next(iter(outcomes.values())).judge
    return Table(
        f"Answers compared with those of: {judge}",
        ["method", "events", "ids in its answers", "ids missing or too many"],
        rows,
    )


def _bars(picture: Any, title: str, outcomes: Mapping[str, Outcome]) -> None:
    """Bars for each setting, best rounds, on a logarithmic axis."""
    every = picture.subplots(1, len(outcomes), squeeze=False, sharey=True)[0]
    for axes, (label, own) in zip(every, outcomes.items(), strict=True):
        names = list(own.times)
        values = [own.times[name].min_ms * 1e3 for name in names]
        colours = []
        for name in names:
            dark = OURS if name in (*ours.IN_BULK, *ours.ONE_BY_ONE) else THEIRS
            colours.append(dark if own.modes[name] == SINGLE else _SHADES[dark])
        shown = axes.barh(range(len(names)), values, color=colours)
        axes.bar_label(shown, [figure(value) for value in values], padding=3, fontsize=10)
        log_axis(axes.xaxis)
        axes.set_xlim(min(values) / 2, max(values) * 4)
        axes.set_yticks(range(len(names)), [f"{name} ({own.modes[name]})" for name in names])
        axes.set_xlabel("microseconds an event")
        if len(outcomes) > 1:
            axes.set_title(label, fontsize=12)
    every[0].invert_yaxis()  # of all, since they share it
    picture.suptitle(title)
