"""`fencepost bench turns`: hashes of answers differ if answers do; the table shows both sides."""

from __future__ import annotations

from typing import Any

import pytest

from bench.turns import workloads
from bench.turns.run import render, run
from fencepost.errors import FencepostError


def answers(count: int) -> dict[str, str]:
    return {name: workloads.measured(work)["answers"] for name, work in workloads.taxi(count)}


def test_equal_work_has_equal_answers_and_other_work_has_other_answers() -> None:
    first = answers(60)
    assert first == answers(60)
    assert not {*first.values()} & {*answers(61).values()}


@pytest.mark.parametrize("same", [True, False])
def test_a_difference_is_shown(same: bool) -> None:
    row: dict[str, Any] = {"workload": "w", "before_us": 2.0, "now_us": 1.0, "same_answers": same}
    cells = [[*column.cells] for column in render([row], "abc").columns]
    assert cells[3] == ["0.50x"]
    assert ("the same" in cells[4]) == same


def test_an_unknown_revision_is_an_error() -> None:
    with pytest.raises(FencepostError, match="no-such-revision"):
        run("no-such-revision", ["taxi"], 1)
