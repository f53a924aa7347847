"""`match_subscribers`: few matches and many, with few subscribers and many, against `match`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from fencepost.engine import Matcher, segment
from tests.seeds import seeds

ROWS = 700
# The subscriber of each row, from a source of random numbers and the row's id; None: the id.
OWNERS: dict[str, Any] = {
    "the ids": lambda rng, id: None,
    "one": lambda rng, id: "only",
    "few": lambda rng, id: f"Käufer {rng.randrange(7)}",
    "as many as rows": lambda rng, id: f"owner of {id[::-1]}",
    "many, and some ids": lambda rng, id: rng.choice([None, "s1", f"owner {rng.randrange(400)}"]),
}


def expected(matcher: Matcher, event: dict[str, Any]) -> list[str]:
    return sorted({matcher.view().subscriber(id) for id in matcher.match(event)})


@pytest.mark.parametrize("max_listed", [2**17, ROWS // 2])
@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("seed", seeds(2, quick=1))
def test_subscribers_are_those_of_the_matches(
    owners: str, max_listed: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_MAX_LISTED", max_listed)
    rng = random.Random(seed)
    rows = []
    for id in rng.sample([f"s{k}" for k in range(2 * ROWS)], ROWS):
        row: dict[str, Any] = {"id": id, "expression": f"n >= {rng.randrange(ROWS)}"}
        owner = OWNERS[owners](rng, id)
        rows.append(row if owner is None else {**row, "subscriber": owner})
    matcher = Matcher()
    matcher.subscribe_many(rows[: ROWS // 2])
    matcher.reindex()
    for row in rows[ROWS // 2 :]:
        matcher.subscribe(row["id"], row["expression"], subscriber=row.get("subscriber"))
    counts = set()
    for stage in ("segments and memtable", "one segment", "opened", "with deleted rows"):
        if stage == "one segment":
            matcher.reindex()
        elif stage == "opened":
            matcher.save(tmp_path / "index")
            matcher = Matcher.open(tmp_path / "index")
        elif stage == "with deleted rows":
            for row in rng.sample(rows, ROWS // 3):
                matcher.unsubscribe(row["id"])
        for number in (-1, 0, 3, 60, 200, ROWS):
            found = matcher.match_subscribers({"n": number})
            assert found == expected(matcher, {"n": number})
            counts.add(len(found))
    assert 0 in counts
    assert max(counts) > (50 if owners not in ("one", "few") else 0)


def test_subscribers_of_columns() -> None:
    matcher = Matcher()
    ids = [f"s{k}" for k in range(200)]
    matcher.subscribe_columns(ids, equals={"n": [k % 2 for k in range(200)]})
    assert matcher.match_subscribers({"n": 0}) == sorted(ids[::2])
    owners = [f"owner {k % 3}" for k in range(200)]
    other_ids = [f"t{k}" for k in range(200)]
    matcher.subscribe_columns(other_ids, equals={"n": [0] * 200}, subscribers=owners)
    assert matcher.match_subscribers({"n": 0}) == sorted({*ids[::2], *owners})
    assert matcher.match_subscribers({"n": 1}) == sorted(ids[1::2])
    assert matcher.match_subscribers({"n": 2}) == []
