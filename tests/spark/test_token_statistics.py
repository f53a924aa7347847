"""`fencepost.spark.token_statistics`: as many rows have a token as one counts by hand."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

from fencepost import spark as fps
from fencepost.errors import ModelError
from fencepost.model import Tokeniser, keywords, tokenise
from fencepost.spark.token_counts import _Count, tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

WORDS = ["Cat", "cat!", "dog", "straße", "STRASSE", "key_2", "", "naïve", "the", "ключ", "…"]


def some_rows(seed: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        words = [rng.choice([*WORDS, None]) for _ in range(rng.randrange(5))]
        x, y = rng.uniform(-30, 30), rng.uniform(-30, 30)
        rows.append(
            {
                "t": rng.choice([" ".join(w or "" for w in words)] * 9 + [None]),
                "l": rng.choice([words] * 9 + [None]),
                "g": rng.choice([bytearray(shapely.box(x, y, x + 4, y + 9).wkb)] * 9 + [None]),
                "w": rng.choice([f"POINT ({x} {y})", "POINT EMPTY", "junk"]),
            }
        )
    return rows


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    data = [(row["t"], row["l"], row["g"], row["w"]) for row in rows]
    made = spark.createDataFrame(data, "t string, l array<string>, g binary, w string")
    return made.repartition(3)


def found(result: DataFrame) -> dict[Any, int]:
    rows = [tuple(row) for row in result.collect()]
    counts = {row[0] if len(row) == 2 else row[:-1]: row[-1] for row in rows}
    assert len(counts) == len(rows)
    return counts


def test_tokens_are_counted_once_a_row(spark: SparkSession) -> None:
    rows = some_rows(1, 150)
    given = frame(spark, rows)
    texts = Counter(token for row in rows for token in tokenise(row["t"] or ""))
    assert found(fps.token_statistics(given, "t")) == texts
    lists = Counter(t for row in rows for t in keywords(w for w in row["l"] or () if w))
    assert found(fps.token_statistics(given, "l", stop_words=["The"])) == {
        token: count for token, count in lists.items() if token != "the"
    }


def test_tokens_are_counted_by_cell(spark: SparkSession) -> None:
    rows = some_rows(2, 150)
    given = frame(spark, rows)
    right: Counter[Any] = Counter()
    for row in rows:
        middle = None
        if row["g"] is not None:
            x0, y0, x1, y1 = shapely.from_wkb(bytes(row["g"])).bounds
            middle = math.floor((x0 + x1) / 2 / 7), math.floor((y0 + y1) / 2 / 7)
        for token in tokenise(row["t"] or ""):
            right[(*(middle or (None, None)), token)] += 1
    assert found(fps.token_statistics(given, "t", place="g", cell=7)) == right
    assert len(right) > 100
    wkt = found(fps.token_statistics(given, "t", place="w", cell=1e9))
    assert {cell[:2] for cell in wkt} == {(None, None), *((x, y) for x in (-1, 0) for y in (-1, 0))}


def test_keywords_of_expressions_are_counted(spark: SparkSession) -> None:
    texts = [
        "A_CONTAINS(text, ('iPad Repair')) AND S_INTERSECTS(g, BBOX(0, 0, 2, 2))",
        "A_CONTAINS(text, ('ipad')) AND n > 3 OR A_CONTAINS(text, ('IPAD', 'cheap'))",
        "A_CONTAINS(title, ('piano')) AND S_WITHIN(g, BBOX(10, 10, 12, 14))",
        "NOT A_CONTAINS(text, ('dog'))",
        "A_OVERLAPS(text, ('cat', 'bird'))",
        "text = 'ipad'",
        "not CQL2",
        None,
    ]
    given = spark.createDataFrame([(text,) for text in texts], "expression string")
    assert found(fps.token_statistics(given, "expression", attribute="text")) == {
        "ipad": 2,
        "repair": 1,
        "cheap": 1,
    }
    assert found(fps.token_statistics(given, "expression", attribute="title", cell=5)) == {
        (2, 2, "piano"): 1
    }
    by_cell = found(fps.token_statistics(given, "expression", attribute="text", cell=5))
    assert by_cell == {
        (0, 0, "ipad"): 1,
        (0, 0, "repair"): 1,
        (None, None, "ipad"): 1,
        (None, None, "cheap"): 1,
    }


def test_what_is_refused(spark: SparkSession) -> None:
    given = frame(spark, some_rows(3, 2))
    with pytest.raises(ModelError, match="no column 'x'"):
        fps.token_statistics(given, "x")
    with pytest.raises(ModelError, match="no column 'x'"):
        fps.token_statistics(given, "t", place="x", cell=1)
    for asked in ({"place": "g"}, {"cell": 2.0}):
        with pytest.raises(ModelError, match="need both"):
            fps.token_statistics(given, "t", **asked)
    for cell in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ModelError, match="greater than 0"):
            fps.token_statistics(given, "t", place="g", cell=cell)
    with pytest.raises(ModelError, match="lists of strings"):
        tokens_of(pa.array([1, 2]), Tokeniser())


def test_rows_that_are_not_text_have_no_tokens() -> None:
    texts = pa.array([b"cat", b"\xff dog", None, b"cat dog"], pa.binary())
    bad = pa.Array.from_buffers(pa.string(), 4, texts.buffers())
    batch = pa.RecordBatch.from_arrays([bad], ["c0"])
    (counted,) = _Count(None, False, None, Tokeniser())([batch])
    assert dict(zip(*counted.to_pydict().values(), strict=True)) == {"cat": 2, "dog": 1}
    assert list(_Count(None, False, None, Tokeniser())([batch.slice(2, 1)])) == []
