"""The work of `fencepost bench turns`: answers are told apart, and both sides are shown."""

from __future__ import annotations

from typing import Any

import pytest

from bench.turns import work
from bench.turns.run import render, run
from fencepost.errors import FencepostError


def answers(count: int) -> dict[str, str]:
    return {name: work.measured(one)["answers"] for name, one in work.taxi(count)}


def test_the_same_work_has_the_same_answers_and_other_work_others() -> None:
    first = answers(60)
    assert first == answers(60)
    assert not {*first.values()} & {*answers(61).values()}


@pytest.mark.parametrize("alike", [True, False])
def test_a_difference_is_shown(alike: bool) -> None:
    row: dict[str, Any] = {"workload": "w", "before_us": 2.0, "now_us": 1.0, "alike": alike}
    cells = [[*column.cells] for column in render([row], "abc").columns]
    assert cells[3] == ["0.50x"]
    assert ("the same" in cells[4]) == alike


def test_a_revision_that_is_not_there() -> None:
    with pytest.raises(FencepostError, match="no-such-revision"):
        run("no-such-revision", ["taxi"], 1)
