"""Makes the report of a figure: tables of goals, times and checks, and bar charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.peers import optional, ours
from bench.peers.contest import SINGLE, Outcome, outcomes_as_json, wrong_ids
from bench.report import Report, Table, log_axis
from bench.timing import Timing, figure, ratio

OURS, THEIRS = "#0b6e4f", "#e0a100"
_SHADES = {OURS: "#6bbf8a", THEIRS: "#f0cd73"}  # one at a time is dark, in bulk is light


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal and its measurement; `met` is None if it could not be measured."""

    what: str
    target: str
    measured: str
    met: bool | None

    def plain(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)


def times_faster(
    what: str, min_factor: float, our_time: float | None, peer_time: float | None
) -> Goal:
    """Return the goal of being faster than a peer by a factor."""
    target = f"{min_factor:g}x or more"
    if our_time is None or peer_time is None:
        return Goal(what, target, "not measured", None)
    return Goal(what, target, ratio(peer_time, our_time), peer_time >= min_factor * our_time)


def at_most(what: str, limit: float, value: float | None, unit: str) -> Goal:
    """Return the goal of not exceeding a limit."""
    target = f"{figure(limit)} {unit} or less"
    if value is None:
        return Goal(what, target, "not measured", None)
    return Goal(what, target, f"{figure(value)} {unit}", value <= limit)


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
    """Return the report of a contest, by setting; `values` are for JSON."""
    return Report(
        name,
        title,
        {
            **values,
            "absent": dict(absent),
            "settings": outcomes_as_json(outcomes),
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": wrong_ids(outcomes.values()),
        },
        [goal_table(goals), _time_table(outcomes), _check_table(outcomes)],
        lambda picture: _bars(picture, title, outcomes),
        size=size,
        notes=[*(optional.absence(peer, why) for peer, why in absent.items()), *notes],
    )


def goal_table(goals: Sequence[Goal]) -> Table:
    """Return the table of goals and measurements."""
    words = {True: "yes", False: "NO", None: "not measured"}
    rows = [[goal.what, goal.target, goal.measured, words[goal.met]] for goal in goals]
    return Table("Goals", ["goal", "target", "measured", "met"], rows)


def microseconds(timing: Timing) -> str:
    """Return the microseconds of the best round, and mean and deviation of all, as text."""
    spread = f" ({figure(timing.mean_ms * 1e3)} ± {figure(timing.std_ms * 1e3)})"
    return figure(timing.min_ms * 1e3) + (spread if timing.rounds > 1 else "")


def _time_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return a table with a row for each method and two columns for each setting."""
    names = dict.fromkeys(name for outcome in outcomes.values() for name in outcome.times)
    modes = {name: mode for outcome in outcomes.values() for name, mode in outcome.modes.items()}
    rows = []
    for name in names:
        row = [name, modes[name]]
        for outcome in outcomes.values():
            if name in outcome.times:
                row += [microseconds(outcome.times[name]), figure(outcome.build_s[name])]
            else:
                row += ["", ""]
        rows.append(row)
    columns = ["method", "events"]
    for label in outcomes:
        columns += [f"{label}: us an event", "built in, s"]
    return Table("Microseconds an event: best round (mean ± deviation)", columns, rows)


def _check_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return a table of the number of ids in which each method differs from the judge."""
    rows = [
        [
            f"{name}; {label}" if len(outcomes) > 1 else name,
            f"{outcome.events[name]:,}",
            f"{outcome.ids[name]:,}",
            f"{outcome.differing[name]:,}",
        ]
        for label, outcome in outcomes.items()
        for name in outcome.times
    ]
    judge = next(iter(outcomes.values())).judge
    return Table(
        f"Answers compared with those of: {judge}",
        ["method", "events", "ids in its answers", "ids missing or wrong"],
        rows,
    )


def _bars(picture: Any, title: str, outcomes: Mapping[str, Outcome]) -> None:
    """Draw a bar chart of the best rounds for each setting, on logarithmic axes."""
    all_axes = picture.subplots(1, len(outcomes), squeeze=False, sharey=True)[0]
    for axes, (label, outcome) in zip(all_axes, outcomes.items(), strict=True):
        names = list(outcome.times)
        values = [outcome.times[name].min_ms * 1e3 for name in names]
        colours = []
        for name in names:
            dark = OURS if name in (*ours.IN_BULK, *ours.ONE_BY_ONE) else THEIRS
            colours.append(dark if outcome.modes[name] == SINGLE else _SHADES[dark])
        bars = axes.barh(range(len(names)), values, color=colours)
        axes.bar_label(bars, [figure(value) for value in values], padding=3, fontsize=10)
        log_axis(axes.xaxis)
        axes.set_xlim(min(values) / 2, max(values) * 4)
        axes.set_yticks(range(len(names)), [f"{name} ({outcome.modes[name]})" for name in names])
        axes.set_xlabel("microseconds an event")
        if len(outcomes) > 1:
            axes.set_title(label, fontsize=12)
    all_axes[0].invert_yaxis()  # the axes share it
    picture.suptitle(title)
