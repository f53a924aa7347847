"""`fencepost.spark.simplify`: the answers of `simplify_many`, however the rows are divided."""

from __future__ import annotations

import datetime as dt
import random
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

import fencepost as fp
from fencepost import spark as fps
from fencepost.errors import ModelError
from fencepost.spark.simplifying import Chunk, rounds_of
from tests.match.wishes import Wish, some_wish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id string, expression string, subscriber string, expires timestamp"
NEVER = (float("inf"), float("inf"), float("-inf"), float("-inf"))
EVERYWHERE = (float("-inf"), float("-inf"), float("inf"), float("inf"))


def told(frame: DataFrame) -> dict[str, Any]:
    rows = frame.collect()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_what_is_told_is_what_simplify_many_tells(spark: SparkSession) -> None:
    noon = dt.datetime(2040, 1, 1, 12, tzinfo=dt.UTC)
    rows = [
        ("a", "n > 5 AND n > 3", "s", None),
        ("b", "n > 7 OR n > 9", "s", None),
        ("c", "n > 1", "s", noon),
        ("d", "n > 2", "s", noon),
        ("e", "n > 9", None, None),
        ("f", "n > 2 AND n < 1", "s", None),
        ("g", '{"op": ">", "args": [{"property": "n"}, 8]}', "t", None),
    ]
    found = told(fps.simplify(spark.createDataFrame(rows, SCHEMA)))
    names = ("id", "expression", "subscriber", "expires")
    right = fp.simplify_many([dict(zip(names, row, strict=True)) for row in rows])
    assert {own.id: own.covered_by for own in right} == {
        **dict.fromkeys("aceg"),
        "b": "a",
        "d": "c",
        "f": None,
    }
    for own in right:
        row = found[own.id]
        simple = own.simplification
        assert (row["subscriber"], row["covered_by"]) == (own.subscriber, own.covered_by)
        assert (row["expression"], row["never_matches"]) == (
            simple.expression,
            simple.never_matches,
        )
        assert (row["filters_before"], row["filters_after"]) == (
            simple.filters_before,
            simple.filters_after,
        )
        assert (row["constraints_before"], row["constraints_after"]) == (
            simple.constraints_before,
            simple.constraints_after,
        )
        assert row["dropped"] == [part.line() for part in simple.dropped]
        assert row["reason"] is None


@pytest.mark.slow
def test_rows_that_cannot_be_used_have_a_reason(spark: SparkSession) -> None:
    rows = [
        ("a", "n >", "s", None),
        ("b", "n > 1", "s", None),
        ("b", "n > 2", "s", None),
        (None, "n > 2", "s", None),
        ("c", None, "s", None),
        ("d", "n > 0", "s", None),
        ("e", "n > 4", "s", None),
    ]
    found = fps.simplify(spark.createDataFrame(rows, SCHEMA)).collect()
    assert len(found) == len(rows)
    reasons = {(row["id"], row["expression"]): row["reason"] for row in found}
    assert "is in the table 2 times" in reasons["b", "n > 1"]
    assert "is in the table 2 times" in reasons["b", "n > 2"]
    assert reasons["a", "n >"]
    assert "must be a string" in reasons[None, "n > 2"]
    assert "must be CQL2" in reasons["c", None]
    assert reasons["d", "n > 0"] is None
    covered = {row["id"]: row["covered_by"] for row in found if row["reason"] is None}
    assert covered == {"d": None, "e": "d"}


def test_what_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", "n > 1")], "id string, expression string")
    with pytest.raises(ModelError, match="most must be"):
        fps.simplify(frame, most=0)
    with pytest.raises(ModelError, match="no column 'expression'"):
        fps.simplify(frame.drop("expression"))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ModelError, match="a stream"):
        fps.simplify(stream)
    (only,) = fps.simplify(frame).collect()
    assert (only["subscriber"], only["covered_by"]) == ("a", None)


@pytest.mark.slow
@pytest.mark.parametrize("most", [25, 1000])
def test_large_subscribers_are_divided(spark: SparkSession, most: int) -> None:
    rng = random.Random(4)
    wishes: dict[str, Wish] = {}
    owner: dict[str, str] = {}
    rows = []
    for k in range(120):
        id, subscriber = f"w{k:03}", "many" if k % 4 else f"few-{k % 12}"
        wishes[id] = wish = some_wish(rng)
        while wish == Wish(None, None, None):  # it would cover all others
            wishes[id] = wish = some_wish(rng)
        owner[id] = subscriber
        rows.append((id, wish.text(), subscriber, None))
    found = {
        id: row["covered_by"]
        for id, row in told(fps.simplify(spark.createDataFrame(rows, SCHEMA), most=most)).items()
    }
    for id, by in found.items():
        if by is not None:
            assert found[by] is None
            assert owner[by] == owner[id]
            assert wishes[by].covers(wishes[id])
    stays = [id for id, by in found.items() if by is None]
    for one, other in combinations(stays, 2):
        if owner[one] == owner[other]:
            assert not wishes[one].covers(wishes[other])
            assert not wishes[other].covers(wishes[one])
    assert 20 < len(stays) < 110


@pytest.mark.slow
def test_alike_in_all_chunks_one_stays(spark: SparkSession) -> None:
    rows = [(f"{k:02}", "n > 5 AND k = 'a'", "s", None) for k in range(12)]
    found = told(fps.simplify(spark.createDataFrame(rows, SCHEMA), most=4))
    stays = {id for id, row in found.items() if row["covered_by"] is None}
    assert len(stays) == 1
    assert {row["covered_by"] for row in found.values()} == {None, *stays}


# --------------------------------------------------------------------------------------- rounds


def test_every_pair_comes_in_one_round() -> None:
    chunks = [Chunk(k, "s", EVERYWHERE, NEVER) for k in range(7)]
    chunks += [Chunk(k, "t", EVERYWHERE, NEVER) for k in range(7, 12)]
    rounds = rounds_of(chunks)
    for pairs in rounds:
        tasks = [task for pair in pairs for task in pair]
        assert len(set(tasks)) == len(tasks)
    every = sorted(pair for pairs in rounds for pair in pairs)
    assert every == [*combinations(range(7), 2), *combinations(range(7, 12), 2)]


def test_chunks_apart_are_not_compared() -> None:
    left, right, top = (0, 0, 1, 1), (2, 0, 3, 1), (0.5, 0.5, 2.5, 3)
    near = [Chunk(0, "s", left, left), Chunk(1, "s", right, right)]
    assert rounds_of(near) == []
    assert rounds_of([*near, Chunk(2, "s", top, top)]) == [[(0, 2)], [(1, 2)]]
    # It reaches nowhere that the others are, but is where one of them reaches.
    assert rounds_of([near[0], Chunk(1, "s", right, left)]) == [[(0, 1)]]
    assert rounds_of([near[0], Chunk(1, "s", EVERYWHERE, NEVER)]) == [[(0, 1)]]
    assert rounds_of([near[0], Chunk(1, "s", right, NEVER)]) == []
