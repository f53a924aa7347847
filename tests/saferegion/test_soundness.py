"""Silence is safe: events that clients keep back match nothing, while subscriptions change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.strategies import examples
from tests.saferegion.walks import COUNTRIES, walk

STEPS = 400
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("name", COUNTRIES)
@examples(6)
@given(seed=SEEDS)
def test_what_is_kept_back_matches_nothing(greedy: bool, name: str, seed: int) -> None:
    assert walk(seed, COUNTRIES[name], STEPS, greedy=greedy).violations == 0


@pytest.mark.parametrize("greedy", [False, True])
@examples(6)
@given(seed=SEEDS, name=st.sampled_from(sorted(COUNTRIES)))
def test_what_is_kept_back_changes_nothing(greedy: bool, seed: int, name: str) -> None:
    assert walk(seed, COUNTRIES[name], STEPS, greedy=greedy, mode="same").violations == 0


@examples(3)
@given(seed=SEEDS)
def test_against_expressions_evaluated_one_by_one(seed: int) -> None:
    country = COUNTRIES["plane"]
    assert walk(seed, country, 100, truth="reference", subscriptions=6).violations == 0


def test_walks_keep_something_back_and_meet_changes() -> None:
    tally = walk(7, COUNTRIES["plane"], 4000, changes=0.01)
    assert tally.violations == 0
    assert 0 < tally.sent < tally.steps
    assert tally.withdrawn > 0
