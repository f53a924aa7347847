"""`run`: measures workloads with two revisions by turns, and compares their results."""

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

from bench.turns.workloads import WORKLOADS
from fencepost.errors import FencepostError

_CHECKOUT = Path(__file__).parents[2]
_WORKLOADS_SCRIPT = Path(__file__).with_name("workloads.py")

Result = dict[str, dict[str, Any]]  # by label: "us", and "answers", a hash


@contextmanager
def _checked_out(revision: str) -> Iterator[Path]:
    """Yield a temporary folder with the sources of a revision."""
    with tempfile.TemporaryDirectory(prefix="fencepost-turns-") as folder:
        archive = Path(folder) / "files.tar"
        command = ["git", "-C", str(_CHECKOUT), "archive", "-o", str(archive), revision, "src"]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode:
            raise FencepostError(
                f"git has no files of {revision!r:.60}: {completed.stderr.strip()}; give a "
                "revision that this clone holds"
            )
        subprocess.run(["tar", "-xf", str(archive), "-C", folder], check=True)
        yield Path(folder)


def _run_workload(folder: Path, name: str) -> Result:
    """Run a workload with the sources in a folder, in a new process."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, str(_WORKLOADS_SCRIPT), name]
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise FencepostError(f"the workload {name} failed:\n{completed.stderr[-2_000:]}")
    result: Result = json.loads(completed.stdout)
    return result


def run(base: str, names: Sequence[str] = (), rounds: int = 3) -> list[dict[str, Any]]:
    """Measure both revisions, and return a row for each label with the best round of each."""
    rows: list[dict[str, Any]] = []
    with _checked_out(base) as before:
        for name in names or WORKLOADS:
            sides: dict[str, list[Result]] = {"before": [], "now": []}
            for turn in range(rounds):
                order = [("before", before), ("now", _CHECKOUT)]
                for side, folder in order if turn % 2 == 0 else reversed(order):
                    sides[side].append(_run_workload(folder, name))
            for label in sides["now"][0]:
                old, new = (
                    min(result[label]["us"] for result in sides[side]) for side in ("before", "now")
                )
                answers = {
                    result[label]["answers"] for results in sides.values() for result in results
                }
                row = {
                    "workload": label,
                    "before_us": old,
                    "now_us": new,
                    "same_answers": len(answers) < 2,
                }
                rows.append(row)
    return rows


def render(rows: Sequence[dict[str, Any]], base: str) -> Table:
    """Return the rows as a table."""
    table = Table("workload", f"{base:.12}, us", "now, us", "ratio", "answers")
    for row in rows:
        ratio = row["now_us"] / row["before_us"]
        table.add_row(
            row["workload"],
            f"{row['before_us']:,.2f}",
            f"{row['now_us']:,.2f}",
            f"{ratio:.2f}x",
            "the same" if row["same_answers"] else "[red]DIFFER[/red]",
        )
    return table
