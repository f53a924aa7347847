"""Runs the workloads of two revisions by turns and compares what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.turns.work import WORKLOADS
from fencepost.errors import FencepostError

_HERE = Path(__file__).parents[2]
_WORK = Path(__file__).with_name("work.py")

Result = dict[str, dict[str, Any]]


@contextmanager
def _checked_out(revision: str) -> Iterator[Path]:
    """A folder with the files of a revision, as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="fencepost-turns-") as folder:
        archive = Path(folder) / "files.tar"
        command = ["git", "-C", str(_HERE), "archive", "-o", str(archive), revision, "src"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FencepostError(
                f"git has no files of {revision!r:.60}: {done.stderr.strip()}; give a revision "
                "that this clone holds"
            )
        subprocess.run(["tar", "-xf", str(archive), "-C", folder], check=True)
        yield Path(folder)


def _work(folder: Path, name: str) -> Result:
    """What the code in a folder makes of a workload."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, str(_WORK), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FencepostError(f"the workload {name} failed:\n{done.stderr[-2_000:]}")
    found: Result = json.loads(done.stdout)
    return found


def run(base: str, names: Sequence[str] = (), rounds: int = 3) -> list[dict[str, Any]]:
    """Measure both; a row for each workload, with the best of all rounds of each side."""
    rows: list[dict[str, Any]] = []
    with _checked_out(base) as before:
        for name in names or WORKLOADS:
            sides: dict[str, list[Result]] = {"before": [], "now": []}
            for turn in range(rounds):
                order = [("before", before), ("now", _HERE)]
                for side, folder in order if turn % 2 == 0 else reversed(order):
                    sides[side].append(_work(folder, name))
            for label in sides["now"][0]:
                old, new = (min(one[label]["us"] for one in sides[s]) for s in ("before", "now"))
                answers = {one[label]["answers"] for own in sides.values() for one in own}
                row = {
                    "workload": label,
                    "before_us": old,
                    "now_us": new,
                    "alike": len(answers) < 2,
                }
                rows.append(row)
    return rows


def render(rows: Sequence[dict[str, Any]], base: str) -> Table:
    """The rows as a table."""
    table = Table("workload", f"{base:.12}, us", "now, us", "now takes", "answers")
    for row in rows:
        share = row["now_us"] / row["before_us"]
        table.add_row(
            row["workload"],
            f"{row['before_us']:,.2f}",
            f"{row['now_us']:,.2f}",
            f"{share:.2f}x",
            "the same" if row["alike"] else "[red]DIFFER[/red]",
        )
    return table
