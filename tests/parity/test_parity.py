"""Random expressions match the same events with any index, on Spark, and in the reference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import shapely

from fencepost import spark as fps
from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.errors import LanguageError
from fencepost.reference import evaluate
from tests.engine.strategies import DAYS, LATTICE, LITERALS, TEXT_EXPRESSIONS, UNUSABLE, WORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = (
    "row long, n double, m long, s string, r string, b boolean, g binary, h string, t timestamp, "
    "u string, l array<string>, k array<long>, i struct<interval: array<string>>"
)


def expressions(count: int) -> list[str]:
    """Return expressions drawn by the strategies, always the same, and some spatial ones."""
    from hypothesis import HealthCheck, Phase, given, settings

    texts: list[str] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(TEXT_EXPRESSIONS)
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    rng = random.Random(7)
    names = ["S_INTERSECTS", "S_WITHIN", "EH_MEET", "EH_OVERLAP", "S_TOUCHES", "EH_DISJOINT"]
    texts += [
        f"{rng.choice(names)}({rng.choice('gh')}, {rng.choice(LITERALS)})" for _ in range(count)
    ]
    return [text for text in dict.fromkeys(texts) if _is_supported(text)]


def _is_supported(text: str) -> bool:
    try:
        parse(text)
    except LanguageError:
        return False
    return True


def events(count: int) -> list[dict[str, Any]]:
    import datetime as dt

    rng = random.Random(11)

    def maybe(value: Any) -> Any:
        return value if rng.random() < 0.85 else None

    return [
        {
            "row": row,
            "n": maybe(rng.choice([0.0, 1.0, 2.5, 0.1, float("nan"), float("inf")])),
            "m": maybe(rng.choice([0, 1, 2, -7, 2**53 + 1])),
            "s": maybe(rng.choice(WORDS)),
            "r": maybe(rng.choice(WORDS)),
            "b": maybe(rng.random() < 0.5),
            "g": maybe(bytearray(shapely.to_wkb(rng.choice(LATTICE)))),
            "h": maybe(rng.choice([*(str(g.wkt) for g in LATTICE[::3]), *UNUSABLE])),
            "t": maybe(dt.datetime(2020, 1, rng.randint(1, 6), tzinfo=dt.UTC)),
            "u": maybe(rng.choice([*DAYS, "nope"])),
            "l": maybe(rng.choices(WORDS, k=rng.randrange(3))),
            "k": maybe(rng.choices([0, 1, 2, 3], k=rng.randrange(3))),
            "i": maybe({"interval": sorted(rng.choices(DAYS, k=2))}),
        }
        for row in range(count)
    ]


def test_embedded_spark_and_reference_agree(spark: SparkSession, tmp_path: Path) -> None:
    texts, rows = expressions(150), events(60)
    conditions = {f"s{number}": parse(text) for number, text in enumerate(texts)}
    matcher = Matcher(space="planar")
    for id, text in zip(conditions, texts, strict=True):
        matcher.subscribe(id, text)
    matcher.save(tmp_path / "index")

    expected = sorted(
        (row["row"], id)
        for row in rows
        for id, condition in conditions.items()
        if evaluate(condition, row) is True
    )
    table = matcher.match_batch(rows, sort=True)
    embedded = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)
    matched = fps.match(frame, tmp_path / "index", columns=["row"]).collect()
    assert sorted(embedded) == expected
    assert sorted((row["row"], row["subscription"]) for row in matched) == expected
    arrow = matcher.match_batch(frame.toArrow(), sort=True)
    assert (
        sorted(zip(arrow["event"].to_pylist(), arrow["subscription"].to_pylist(), strict=True))
        == expected
    )
    for index in ("sff", "cr-tree", "rt", "rt+", "rt++"):
        table = Matcher.open(tmp_path / "index", index=index).match_batch(
            frame.toArrow(), sort=True
        )
        pairs = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
        assert sorted(pairs) == expected, index
    assert len(expected) > 1_000
