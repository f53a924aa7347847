"""Arrow columns with text that is not UTF-8: rows are refused, or become dead letters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fencepost.engine import INDEXES, DeadLetters, Matcher
from fencepost.errors import ModelError

LATIN = "Zürich storm".encode("latin-1")  # no UTF-8
REASON = "is not UTF-8: byte 1 of a text is 0xfc"


def text(*rows: bytes | None) -> pa.Array:
    return pa.array(rows, pa.binary()).view(pa.string())


def lists(*rows: list[bytes]) -> pa.Array:
    whole = pa.array(rows, pa.list_(pa.binary()))
    return pa.ListArray.from_arrays(whole.offsets, whole.values.view(pa.string()))


def encoded(*rows: bytes) -> pa.Array:
    """Return a dictionary array; its dictionary has an invalid entry that no row uses."""
    entries = text(b"\xff\xff", *rows)
    return pa.DictionaryArray.from_arrays(pa.array(range(1, len(rows) + 1)), entries)


EVENTS: dict[str, pa.Array] = {
    "texts": text(b"storm", LATIN, None, b"a storm"),
    "large texts": text(b"storm", LATIN, None, b"a storm").cast(pa.large_string()),
    "views": text(b"storm", LATIN, None, b"a storm").cast(pa.string_view()),
    "lists": lists([b"storm"], [b"storm", LATIN], [], [b"storm"]),
    "encoded": encoded(b"storm", LATIN, b"", b"a storm"),
    "chunks": pa.chunked_array([text(b"storm"), text(LATIN, None), text(b"a storm")]),
}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("form", EVENTS)
def test_events_are_refused_or_become_dead_letters(index: Any, form: str) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("storm", "A_CONTAINS(t, ('storm'))")
    matcher.subscribe("calm", "NOT A_OVERLAPS(t, ('storm'))")
    table = pa.table({"t": EVENTS[form], "n": [0, 1, 2, 3]})
    with pytest.raises(ModelError, match=rf"1 events cannot be read: row 1: .*'t' {REASON}"):
        matcher.match_batch(table, sort=True)
    bad: DeadLetters = []
    matches = matcher.match_batch(table, dead_letters=bad, sort=True).to_pylist()
    assert [row for row, _ in bad] == [1]
    assert REASON in bad[0][1]
    good = pa.concat_tables([table.slice(0, 1), table.slice(2)])
    expected = [
        {**pair, "event": [0, 2, 3][pair["event"]]}
        for pair in matcher.match_batch(good, sort=True).to_pylist()
    ]
    assert matches == expected
    assert {pair["event"] for pair in matches} >= {0, 3}
    assert matcher.match_batch(table.slice(2)).num_rows == len(matches) - 1


def test_all_bad_rows_are_named_with_any_number_of_threads() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("storm", "A_CONTAINS(t, ('storm'))")
    rows = [b"storm"] * 25_000
    for row in (7, 12_000, 24_999):
        rows[row] = LATIN
    table = pa.table({"t": text(*rows)})
    with pytest.raises(ModelError, match=r"row 7: .*row 12000: .*row 24999: "):
        matcher.match_batch(table, sort=True)
    for threads in (1, 2):
        bad: DeadLetters = []
        matches = matcher.match_batch(table, threads, bad, sort=True)
        assert [row for row, _ in bad] == [7, 12_000, 24_999]
        expected = [row for row in range(25_000) if rows[row] != LATIN]
        assert matches["event"].to_pylist() == expected


@pytest.mark.parametrize(
    "condition",
    [
        "t = 'storm'",
        "t LIKE 's%'",
        "t IS NOT NULL",
        "t > DATE('2020-01-01')",
        "CASEI(t) = 'storm'",
        "t = other",
    ],
)
def test_every_kind_of_comparison_refuses_bad_text(condition: str) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("s", condition)
    table = pa.table({"t": text(b"storm", LATIN), "other": ["storm", "storm"]})
    with pytest.raises(ModelError, match=f"row 1: .*{REASON}"):
        matcher.match_batch(table, sort=True)
    bad: DeadLetters = []
    matcher.match_batch(table, dead_letters=bad, sort=True)
    assert [row for row, _ in bad] == [1]


def test_text_that_no_subscription_reads_is_ignored() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("n", "n > 1")
    bad: DeadLetters = []
    matches = matcher.match_batch(
        pa.table({"t": text(b"a", LATIN), "n": [5, 5]}), dead_letters=bad, sort=True
    )
    assert (matches.num_rows, bad) == (2, [])


def test_a_geometry_with_bad_text_is_unknown() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("here", "S_INTERSECTS(g, BBOX(0, 0, 1, 1))")
    bad: DeadLetters = []
    table = pa.table({"g": text(b"POINT (1 1)", b"POINT (\xff 1)")})
    matches = matcher.match_batch(table, dead_letters=bad, sort=True)
    assert (matches["event"].to_pylist(), bad) == ([0], [])


COLUMNS: dict[str, dict[str, Any]] = {
    "ids": {"ids": text(b"a", LATIN)},
    "subscribers": {"subscribers": text(b"a", LATIN)},
    "keywords": {"keywords": {"t": lists([b"a"], [b"b", LATIN])}},
    "keywords besides": {"keywords": {"t": lists([], [LATIN])}, "equals": {"n": [1, 2]}},
    "keywords, encoded": {
        "keywords": {"t": pa.ListArray.from_arrays([0, 1, 2], encoded(b"a", LATIN))}
    },
    "equals": {"equals": {"t": text(b"a", LATIN)}},
    "equals in chunks": {"equals": {"t": pa.chunked_array([text(b"a"), text(LATIN)])}},
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_subscriptions_are_refused(name: str) -> None:
    matcher = Matcher(space="planar")
    with pytest.raises(ModelError, match=rf"^row 1 of .*{name[:3]}.* {REASON}"):
        matcher.subscribe_columns(**{"ids": ["x", "y"], **COLUMNS[name]})
    assert len(matcher) == 0


def test_unused_dictionary_entries_may_be_bad() -> None:
    matcher = Matcher(space="planar")
    words = pa.ListArray.from_arrays([0, 1, 2], encoded(b"storm", b"hail"))
    matcher.subscribe_columns(["a", "b"], keywords={"t": words})
    assert matcher.match({"t": "storm"}) == ["a"]
    assert matcher.match({"t": "hail"}) == ["b"]


def test_tables_of_subscriptions() -> None:
    table = pa.table({"id": ["a", "b", "c"], "expression": text(b"n > 1", LATIN, b"n > 2")})
    matcher = Matcher(space="planar")
    for subscriptions in (table, table.to_batches()[0]):
        with pytest.raises(ModelError, match=f"row 1: the column 'expression' {REASON}"):
            matcher.subscribe_many(subscriptions)
    bad: DeadLetters = []
    assert matcher.subscribe_many(table, bad) == 2
    assert [row for row, _ in bad] == [1]
    assert matcher.match({"n": 5}) == ["a", "c"]
    bad.clear()
    table = pa.table({"id": text(b"d", b"\xff", b""), "expression": ["n > 1"] * 3})
    assert matcher.subscribe_many(table, bad) == 1
    assert [row for row, _ in bad] == [1, 2]


@pytest.mark.parametrize("index", INDEXES)
def test_unread_columns_may_hold_anything(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("large", "n > 1")
    unreadable = pa.array([10**18] * 3).view(pa.timestamp("s"))  # far beyond Python's years
    table = pa.table({"t": text(LATIN, b"", None), "when": unreadable, "n": [1, 2, 3]})
    assert matcher.match_batch(table)["event"].to_pylist() == [1, 2]
    matcher.subscribe("text", "t = ''")
    with pytest.raises(ModelError, match=f"'t' {REASON}"):
        matcher.match_batch(table, sort=True)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("form", ["texts", "large texts", "views", "encoded"])
def test_wkt_with_bad_bytes_is_no_geometry(index: Any, form: str) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("in", "S_INTERSECTS(g, BBOX(0, 0, 2, 2))")
    matcher.subscribe("sum", "n + m > 3")  # reads the values of events one by one
    rows = (b"POINT (1 1)", b"POINT (1 \xff)", b"POINT (5 5)")
    column = {
        "texts": text(*rows),
        "large texts": text(*rows).cast(pa.large_string()),
        "views": text(*rows).cast(pa.string_view()),
        "encoded": encoded(*rows),
    }[form]
    table = pa.table({"g": column, "n": [1, 2, 3], "m": [1, 2, 3]})
    matches = matcher.match_batch(table, sort=True).to_pydict()
    assert list(zip(matches["event"], matches["subscription"], strict=True)) == [
        (0, "in"),
        (1, "sum"),
        (2, "sum"),
    ]
