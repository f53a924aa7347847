"""`fencepost.spark.simplify` returns what `simplify_many` returns, however rows are divided."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fencepost as fp
from fencepost import spark as fps
from fencepost.errors import ModelError
from fencepost.events import tokenize
from tests.engine.coverable_subscriptions import CoverableSubscription, random_subscription

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id string, expression string, subscriber string, expires timestamp"


def rows_by_id(frame: DataFrame) -> dict[str, Any]:
    rows = frame.collect()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_results_equal_simplify_many(spark: SparkSession) -> None:
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
    found = rows_by_id(fps.simplify(spark.createDataFrame(rows, SCHEMA), space="planar"))
    names = ("id", "expression", "subscriber", "expires")
    right = fp.simplify_many([dict(zip(names, row, strict=True)) for row in rows], space="planar")
    assert {result.id: result.covered_by for result in right} == {
        **dict.fromkeys("aceg"),
        "b": "a",
        "d": "c",
        "f": None,
    }
    for result in right:
        row = found[result.id]
        simple = result.simplification
        assert (row["subscriber"], row["covered_by"]) == (result.subscriber, result.covered_by)
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
def test_invalid_rows_have_a_reason(spark: SparkSession) -> None:
    rows = [
        ("a", "n >", "s", None),
        ("b", "n > 1", "s", None),
        ("b", "n > 2", "s", None),
        (None, "n > 2", "s", None),
        ("c", None, "s", None),
        ("d", "n > 0", "s", None),
        ("e", "n > 4", "s", None),
    ]
    found = fps.simplify(spark.createDataFrame(rows, SCHEMA), space="planar").collect()
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


def test_invalid_arguments(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", "n > 1")], "id string, expression string")
    with pytest.raises(ModelError, match="stop words must be"):
        fps.simplify(frame, stop_words=[1], space="planar")  # type: ignore[list-item]
    with pytest.raises(ModelError, match="space"):
        fps.simplify(frame, space="round")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="no column 'expression'"):
        fps.simplify(frame.drop("expression"), space="planar")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ModelError, match="a stream"):
        fps.simplify(stream, space="planar")
    (only,) = fps.simplify(frame, space="planar").collect()
    assert (only["subscriber"], only["covered_by"]) == ("a", None)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_results_do_not_depend_on_batches_and_tasks(spark: SparkSession, batch: int) -> None:
    """Also if a subscriber has several batches, and a batch ends within a subscriber."""
    rng = random.Random(4)
    subscriptions: dict[str, CoverableSubscription] = {}
    owner: dict[str, str] = {}
    rows = []
    for k in range(120):
        id, subscriber = f"w{k:03}", "many" if k % 4 else f"few-{k % 12}"
        subscriptions[id] = subscription = random_subscription(rng)
        while subscription == CoverableSubscription(None, None, None):  # it would cover all others
            subscriptions[id] = subscription = random_subscription(rng)
        owner[id] = subscriber
        rows.append((id, subscription.text(), subscriber, None))
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, str(batch))
    try:
        frame = spark.createDataFrame(rows, SCHEMA).repartition(3)
        found = {
            id: row["covered_by"]
            for id, row in rows_by_id(fps.simplify(frame, space="planar")).items()
        }
    finally:
        spark.conf.set(name, str(before))
    for id, by in found.items():
        if by is not None:
            assert found[by] is None
            assert owner[by] == owner[id]
            assert subscriptions[by].covers(subscriptions[id])
    stays = [id for id, by in found.items() if by is None]
    for first, second in combinations(stays, 2):
        if owner[first] == owner[second]:
            assert not subscriptions[first].covers(subscriptions[second])
            assert not subscriptions[second].covers(subscriptions[first])
    assert 20 < len(stays) < 110


def test_integer_ids(spark: SparkSession) -> None:
    rows = [(1, "n > 2", 7), (2, "n > 1", 7), (3, "n > 2", None), (3, "n > 3", 7), (None, "n", 7)]
    found = fps.simplify(
        spark.createDataFrame(rows, "id long, expression string, subscriber int"), space="planar"
    )
    usable = [row for row in found.collect() if row["reason"] is None]
    assert {row["id"]: (row["subscriber"], row["covered_by"]) for row in usable} == {
        "1": ("7", "2"),
        "2": ("7", None),
    }


def test_recipe_for_counting_words(spark: SparkSession) -> None:
    """Runs the block of `docs/spark.md`, and compares its counts with counts in Python."""
    texts = ["Cat, cat dog!", "straße_2", "STRASSE the", "", None, "…", "the ключ naïve Ключ"]
    places = [(0.03, 0.04), (-0.05, 0.07), (0.099, 0.0), *[(0.0, 0.0)] * 3, (0.01, 0.01)]
    rows = [(text, x, y) for text, (x, y) in zip(texts, places, strict=True)]
    page = Path(__file__).parents[2].joinpath("docs", "spark.md").read_text(encoding="utf-8")
    section = page.partition("## Counting words")[2]
    block = section.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {
        "messages": spark.createDataFrame(rows, "text string, x double, y double")
    }
    own_messages = [line for line in block.splitlines() if not line.startswith("messages = ")]
    exec("\n".join(own_messages), names)
    counts = {row["token"]: row["df"] for row in names["df"].collect()}
    assert counts == Counter(token for text in texts for token in tokenize(text or ""))
    assert (counts["cat"], counts["strasse"], counts["the"]) == (1, 2, 2)
    by_cell = {
        (row["cx"], row["cy"], row["token"]): row["df"] for row in names["by_cell"].collect()
    }
    assert by_cell[-1, 0, "strasse"] == by_cell[0, 0, "strasse"] == 1
    assert by_cell[0, 0, "the"] == 2
