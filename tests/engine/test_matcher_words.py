"""Subscriptions with words, added as columns and as text, against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost import Matcher
from fencepost.errors import GeometryError, ModelError

WORDS = ("ipad", "repair", "pizza", "Café", "Straße", "new york", "!!!", "東京", "жара", "a-b", "7")
TEXTS = (
    "iPad! repair, PIZZA",
    "CAFÉ in der STRASSE 7",
    "new pizza in York",
    "東京 жара",
    "",
    "...",
    "a b ipad " * 40,
)


def random_keywords(rng: np.random.Generator) -> list[str]:
    return [WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(0, 4))]


def random_event(rng: np.random.Generator) -> dict[str, Any]:
    x, y = rng.integers(0, 12, 2).tolist()
    place: Any = [
        shapely.Point(x, y),
        shapely.box(x, y, x + 2, y + 3),
        shapely.Polygon([(x, y), (x + 3, y), (x, y + 3)]),
        shapely.LineString([(x, y), (x + 3, y + 1)]),
        None,
    ][rng.integers(0, 5)]
    words: Any = [
        TEXTS[rng.integers(0, len(TEXTS))],
        rng.choice(WORDS, rng.integers(0, 9)).tolist(),
        None,
        5,
    ][rng.choice(4, p=(0.5, 0.4, 0.05, 0.05))]
    return {"place": place, "words": words, "n": int(rng.integers(0, 4))}


def boxes_of(rng: np.random.Generator, count: int) -> Any:
    corner = rng.integers(0, 10, (count, 2))
    return np.concatenate((corner, corner + rng.integers(1, 5, (count, 2))), axis=1).astype(float)


@pytest.mark.parametrize("index", ["auto", "reference"])
@pytest.mark.parametrize("seed", range(4))
def test_columns_match_as_their_expressions(seed: int, index: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    count = 60
    ids = [f"s{k}" for k in range(count)]
    boxes, lists = boxes_of(rng, count), [random_keywords(rng) for _ in range(count)]
    by_columns, one_by_one = (
        Matcher(index=index, space="planar"),
        Matcher(index="reference", space="planar"),
    )
    regions = {"place": (boxes, "S_INTERSECTS")} if seed % 2 else None
    by_columns.subscribe_columns(ids, regions=regions, keywords={"words": pa.array(lists)})
    for k, id in enumerate(ids):
        place = f"S_INTERSECTS(place, BBOX({', '.join(map(str, boxes[k]))}))" if regions else "TRUE"
        words = ", ".join(f"'{word}'" for word in lists[k])
        text = f"A_CONTAINS(words, ({words}))" if lists[k] else "TRUE"
        one_by_one.subscribe(id, f"{place} AND {text}")
    events = [random_event(rng) for _ in range(40)]
    by_columns.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    resubscribed = Matcher(space="planar")
    for id in ids:
        resubscribed.subscribe(id, by_columns.expression(id))
    for event in events:
        expected = one_by_one.match(event)
        assert by_columns.match(event) == expected
        assert opened.match(event) == expected
        assert resubscribed.match(event) == expected


@pytest.mark.parametrize("seed", range(4))
def test_words_with_other_conditions_are_added_and_removed(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    auto, reference = Matcher(space="planar"), Matcher(index="reference", space="planar")
    polygon = "POLYGON((0 0, 9 0, 0 9, 0 0))"
    forms = (
        "A_CONTAINS(words, ({w}))",
        "A_CONTAINS(words, ({w})) AND S_INTERSECTS(place, BBOX({b}))",
        f"A_CONTAINS(words, ({{w}})) AND S_WITHIN(place, {polygon}) AND n > 1",
        "A_OVERLAPS(words, ({w})) AND n < 2",
        "A_EQUALS(words, ({w}))",
        "NOT A_CONTAINS(words, ({w})) AND S_INTERSECTS(place, BBOX({b}))",
        "A_CONTAINS(words, ({w})) AND (n = 1 OR S_DISJOINT(place, BBOX({b})))",
        "A_CONTAINS(words, ({w})) OR "
        "A_CONTAINS(words, ('pizza')) AND S_DWITHIN(place, POINT(5 5), 2)",
        "A_CONTAINS(words, ({w})) AND A_CONTAINS(words, ('ipad'))",
        "A_CONTAINS(words, ({w}, 7))",
    )
    for step in range(120):
        words = ", ".join(f"'{word}'" for word in random_keywords(rng) or ["ipad"])
        box = ", ".join(map(str, boxes_of(rng, 1)[0]))
        text = forms[rng.integers(0, len(forms))].format(w=words, b=box)
        for matcher in (auto, reference):
            matcher.subscribe(f"s{step % 70}", text, replace=True)
            if step % 9 == 0:
                matcher.unsubscribe(f"s{step % 23}")
        if step % 4 == 0:
            event = random_event(rng)
            assert auto.match(event) == reference.match(event)
    assert auto.ids() == reference.ids()


def test_very_many_words_are_searched_by_box_first() -> None:
    count = 3000
    rng = np.random.default_rng(3)
    corner = rng.random((count, 2))
    boxes = np.concatenate((corner, corner + 0.01), axis=1)
    words = [[f"w{k % 500}"] for k in range(count)]
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        [str(k) for k in range(count)],
        regions={"place": (boxes, "S_INTERSECTS")},
        keywords={"words": words},
    )
    for _ in range(20):
        x, y = rng.random(2).tolist()
        event = {"place": shapely.Point(x, y), "words": [f"w{k}" for k in range(400)]}
        inside = (boxes[:, 0] <= x) & (boxes[:, 2] >= x) & (boxes[:, 1] <= y) & (boxes[:, 3] >= y)
        expected = [str(k) for k in np.flatnonzero(inside) if k % 500 < 400]
        assert matcher.match(event) == sorted(expected)


@pytest.mark.parametrize(
    "lists",
    [
        [["a", "b"], None, [], ["b", "a", "b"]],
        pa.array([["a", "b"], None, [], ["b", "a", "b"]]),
        pa.array([["a", "b"], None, [], ["b", "a", "b"]], pa.large_list(pa.large_string())),
        pa.chunked_array([[["a", "b"], None], [[], ["b", "a", "b"]]]),
        pa.array([["x"], ["a", "b"], None, [], ["b", "a", "b"]]).slice(1),
        pa.ListArray.from_arrays(
            pa.array([0, 2, 2, 2, 5], pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 1], pa.int8()), ["a", "b", "b"]),
        ),
        [{"a", "b"}, None, (), np.array(["b", "a", "b"])],
    ],
    ids=["python", "arrow", "large", "chunked", "sliced", "dictionary", "other sequences"],
)
def test_forms_of_keyword_lists(lists: Any) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(["0", "1", "2", "3"], keywords={"words": lists})
    assert matcher.match({"words": "A, b"}) == ["0", "1", "2", "3"]
    assert matcher.match({"words": ["a"]}) == ["1", "2"]
    assert matcher.match({}) == ["1", "2"]
    assert matcher.expression("3") == "A_CONTAINS(words, ('a', 'b'))"


@pytest.mark.parametrize(
    ("lists", "problem"),
    [
        (["ab", ["c"]], "row 0 is 'ab'"),
        ([["a"], [b"b"]], r"row 1 is \[b'b'\]"),
        ([["a"], ["b", None]], r"row 1 is \['b', None\]"),
        (pa.array([["a"], ["b", None]]), r"row 1 is \['b', None\]"),
        (pa.array([[1], [2]]), r"row 0 is \[1\]"),
        ([["a"], ["\ud800"]], "lone surrogate in row 1"),
        ([["a"]], "one item for each of the 2 ids"),
    ],
)
def test_bad_keyword_lists_are_refused(lists: Any, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        Matcher(space="planar").subscribe_columns(["0", "1"], keywords={"words": lists})


@pytest.mark.parametrize(
    ("boxes", "problem"),
    [
        ([[0, 0, 1, 1], [2, 0, 1, 1]], "xmin is not less than xmax"),
        ([[0, 0, 1, 1], [0, 0, np.inf, 1]], "give finite bounds"),
    ],
)
def test_bad_boxes_are_refused(boxes: Any, problem: str) -> None:
    with pytest.raises(GeometryError, match=problem):
        Matcher(space="planar").subscribe_columns(
            ["0", "1"],
            regions={"place": (np.array(boxes, float), "S_INTERSECTS")},
            keywords={"words": [["a"], ["b"]]},
        )


def test_an_id_in_use_is_refused_in_segments_and_in_the_memtable() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(["a", "b"], keywords={"words": [["x"], ["y"]]})
    matcher.subscribe("c", "A_CONTAINS(words, ('z'))")
    with pytest.raises(ModelError, match="'c' already"):
        matcher.subscribe_columns(["d", "c"], keywords={"words": [["x"], ["y"]]})
    assert matcher.unsubscribe("b")
    matcher.subscribe_columns(["b"], keywords={"words": [["y"]]})
    assert matcher.ids() == ["a", "b", "c"]


def test_progress_is_shown_if_requested(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (False, True):
        matcher = Matcher(space="planar")
        matcher.subscribe_columns(["a"], keywords={"words": [["x"]]}, progress=progress)
        out, err = capsys.readouterr()
        assert out == ""
        assert ("Subscribing: done" in err) == progress
