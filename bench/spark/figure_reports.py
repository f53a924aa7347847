"""Makes the report of a figure: tables of times, goals and checks, and a bar chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.contest import Pairs
from bench.peers.figure_reports import OURS, THEIRS, Goal, goal_table
from bench.report import Report, Table
from bench.spark.expected_pairs import JUDGE, count_differing, pairs_in
from bench.spark.timing import Run
from bench.timing import figure

FIRST_AND_WARM = (
    "Seconds from Parquet to Parquet, without the start of the session. `first` is the first job "
    "that matches: Python workers load code and map the index in it, or unpickle the tree. `warm` "
    "is the best of the jobs after it."
)


def checks(runs: Mapping[str, Run], expected: Pairs) -> dict[str, dict[str, int]]:
    """Return the number of pairs that each run wrote, and how many differ from the expected."""
    counts = {}
    for label, run in runs.items():
        pairs = pairs_in(run.matches)
        counts[label] = {"pairs": len(pairs), "differing": count_differing(pairs, expected)}
    return counts


def report(
    name: str,
    title: str,
    values: Mapping[str, Any],
    runs: Mapping[str, Run],
    checked: Mapping[str, Mapping[str, int]],
    goals: Sequence[Goal],
    *,
    tables: Sequence[Table] = (),
    notes: Sequence[str] = (),
) -> Report:
    """Return the report of runs by label, with the goals and the checks."""
    plain = {label: {**run.plain(), **checked[label]} for label, run in runs.items()}
    return Report(
        name,
        title,
        {
            **values,
            "runs": plain,
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": sum(counts["differing"] for counts in checked.values()),
        },
        [goal_table(goals), *_time_tables(runs), *tables, _check_table(checked)],
        lambda picture: _bars(picture, title, runs),
        size=(10.0, 2.2 + 0.9 * len(runs)),
        notes=[FIRST_AND_WARM, *notes],
    )


def _time_tables(runs: Mapping[str, Run]) -> list[Table]:
    rows = [
        [label, figure(run.build_s), figure(run.first_s), _best_and_spread(run)]
        for label, run in runs.items()
    ]
    columns = ["way", "build", "match, first", "match, warm (mean ± deviation)"]
    tables = [Table("Seconds", columns, rows)]
    for label, run in runs.items():
        if run.stages:
            stage_rows = [[name, figure(stage_s)] for name, stage_s in run.stages.items()]
            tables.append(
                Table(f"Seconds of the last round: {label}", ["stage", "seconds"], stage_rows)
            )
    return tables


def _best_and_spread(run: Run) -> str:
    values = run.plain()
    spread = f" ({figure(values['match_mean_s'])} ± {figure(values['match_std_s'])})"
    return figure(run.best_s) + (spread if values["rounds"] > 1 else "")


def _check_table(checked: Mapping[str, Mapping[str, int]]) -> Table:
    rows = [
        [label, f"{counts['pairs']:,}", f"{counts['differing']:,}"]
        for label, counts in checked.items()
    ]
    title = f"Matches compared with those of: {JUDGE}"
    return Table(title, ["way", "matches", "missing or too many"], rows)


def _bars(picture: Any, title: str, runs: Mapping[str, Run]) -> None:
    axes = picture.subplots()
    series = {
        "build": [run.build_s for run in runs.values()],
        "match, first": [run.first_s for run in runs.values()],
        "match, warm": [run.best_s for run in runs.values()],
    }
    colours = ("#c9ced6", THEIRS, OURS)
    for series_index, ((label, values), colour) in enumerate(
        zip(series.items(), colours, strict=True)
    ):
        positions = [row + (series_index - 1) * 0.26 for row in range(len(runs))]
        bars = axes.barh(positions, values, height=0.24, color=colour, label=label)
        axes.bar_label(bars, [figure(value) for value in values], padding=3, fontsize=10)
    axes.set_yticks(range(len(runs)), list(runs))
    axes.set_xlim(0, 1.15 * max(max(values) for values in series.values()))
    axes.set_xlabel("seconds, Parquet to Parquet")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
    picture.suptitle(title)
