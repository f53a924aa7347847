"""Subscriptions that are written and read back give the same answers."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest

from fencepost.engine import Matcher
from fencepost.formats import read_subscriptions
from fencepost.formats.subscription_writer import write_subscriptions
from tests.seeds import seeds

NAMES = ["plain", "Zürich \u2028 '\"\\", "two\nlines", "😀", "0"]


def expression(rng: random.Random) -> str | dict[str, object]:
    x, y = round(rng.uniform(0, 8), rng.randrange(17)), rng.randrange(8)
    forms: list[str | dict[str, object]] = [
        f"n > {x!r}",
        f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 2}, {y + 2})) AND NOT n = {y}",
        {"op": "<", "args": [{"property": "n"}, x]},
        "s IN ('a', 'Zürich ''\u2028') OR t IS NULL",
        "A_CONTAINS(l, ('a', 'b')) OR s LIKE 'a%'",
    ]
    return rng.choice(forms)


def event(rng: random.Random) -> dict[str, object]:
    return {
        "n": rng.choice([rng.randrange(8), rng.uniform(0, 8)]),
        "g": f"POINT ({rng.uniform(0, 9)} {rng.uniform(0, 9)})",
        "s": rng.choice(["a", "b", "ab", "Zürich '\u2028"]),
        "l": rng.sample(["a", "b", "c"], 2),
        "t": rng.choice([None, "x"]),
        "k": rng.choice(["rain", "hail"]),
    }


@pytest.mark.parametrize("seed", seeds(10, 3))
def test_written_and_read_back(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    matcher = Matcher(clock=lambda: 10**18, space="planar")
    for k in range(60):
        expires = rng.choice([None, None, "2001-01-01", "2100-01-01T01:02:03.123456789+01:00"])
        subscriber = rng.choice([None, *NAMES])
        id = f"{rng.choice(NAMES)}{k}"
        matcher.subscribe(id, expression(rng), subscriber=subscriber, expires=expires)
    matcher.subscribe_columns(
        [f"column {k}" for k in range(10)],
        regions={"g": ([f"POINT ({k} {k})" for k in range(10)], "S_DISJOINT")},
        equals={"k": ["rain", None] * 5},
    )
    for id in rng.sample(matcher.ids(), 8):
        matcher.unsubscribe(id)
    matcher.save(tmp_path)
    opened = Matcher.open(tmp_path, clock=lambda: 10**18)
    written = io.BytesIO()
    write_subscriptions(opened, written)
    file = tmp_path / "written.ndjson"
    file.write_bytes(written.getvalue())
    again = Matcher(clock=lambda: 10**18, space="planar")
    again.subscribe_many([row.values for rows, _ in read_subscriptions(file) for row in rows])
    assert again.ids() == matcher.ids()
    view, expected = again.view(), matcher.view()
    for id in matcher.ids():
        assert view.subscriber(id) == expected.subscriber(id)
        assert view.expires(id) == expected.expires(id)
        assert view.expression(id) == expected.expression(id)
    for _ in range(50):
        one = event(rng)
        assert again.match(one) == matcher.match(one)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert {tuple(line) for line in lines} == {("id", "subscriber", "expression", "expires")}
