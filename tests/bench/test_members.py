"""The figure about live members: at a small size it runs, and is written."""

from __future__ import annotations

from pathlib import Path

from bench.papers.events.figures import members
from bench.progress import Progress
from bench.report import write


def test_members(tmp_path: Path) -> None:
    with Progress("members", quiet=True) as progress:
        found = members.run(members.Sizes((500, 2_000)), seed=1, source=None, progress=progress)
    live = [row["live"] for row in found.values["sizes"]]
    assert live[0] >= 500
    assert live[1] >= 2_000
    for row in found.values["sizes"]:
        assert row["found"] > 0.3, "an event finds partners"
        assert min(row[name] for name in ("search_us", "push_us", "scan_us", "batch_us")) > 0
    assert {path.suffix for path in write(found, tmp_path)} == {".json", ".md", ".png"}
