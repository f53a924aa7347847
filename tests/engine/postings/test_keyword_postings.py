"""Filters posted under words, against looking at every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fencepost.engine import ColumnRegistry, FilterTable, build
from fencepost.engine.postings import keyword_postings
from fencepost.engine.postings.keyword_postings import EVERYWHERE, PostingGroup, PostingRows
from fencepost.geometry import Shapes
from fencepost.kernels import WIDTH, EventArrays, arrays_of, new_tree_scratch, struct_ref
from fencepost.kernels.geometry.box_contact import rectangle
from fencepost.kernels.index.posting_arrays import PIECES, image
from fencepost.kernels.match.check_evaluation import ITEMS, TEXT
from fencepost.kernels.match.match_scratch import empty_match_scratch, grow, required_sizes
from fencepost.kernels.match.posting_matches import find_posting_matches
from fencepost.kernels.match.posting_search import (
    MAX_SEQUENTIAL_ENTRIES,
    SEQUENTIAL_LIMIT,
    search_boxes,
)

BOTH = ITEMS | TEXT
FORMS = (
    PostingGroup(0, 0, BOTH, True),
    PostingGroup(0, -1, TEXT, True),
    PostingGroup(1, 1, ITEMS, True),
    PostingGroup(-1, 0, 0, True),
    PostingGroup(0, 0, BOTH, False),
    PostingGroup(1, -1, BOTH, False),
)


def random_rows(rng: np.random.Generator, count: int, words: int, side: float) -> PostingRows:
    """Rows of every form; many boxes touch or repeat, some words are in nearly all."""
    form = rng.integers(0, len(FORMS), count)
    corner = rng.integers(0, 12, (count, 2)) * side
    boxes = np.concatenate((corner, corner + rng.integers(1, 5, (count, 2)) * side), axis=1)
    boxes[[FORMS[k].geometry_column < 0 for k in form]] = EVERYWHERE
    tokens = [
        []
        if FORMS[k].list_column < 0
        else np.unique(np.minimum(rng.geometric(0.2, rng.integers(0, 5)) - 1, words - 1)).tolist()
        for k in form
    ]
    return keyword_postings.rows_from(
        [(FORMS[form[k]], k, tuple(boxes[k].tolist()), tokens[k]) for k in range(count)]
    )


def events_of(
    geometries: list[Any], kinds: NDArray[np.uint8], lists: list[list[list[int]]]
) -> tuple[EventArrays, NDArray[np.int64]]:
    """Events with one geometry for both columns, and two lists of words."""
    count = len(geometries)
    flat = [token for column in lists for own in column for token in own]
    stops = np.cumsum([len(own) for column in lists for own in column]).reshape(2, count)
    starts = stops - np.array([[len(own) for own in column] for column in lists])
    shapes = Shapes.read_all(geometries)
    nothing = np.empty((0, count))
    return EventArrays(
        number=nothing,
        number_rest=nothing,
        truth=np.empty((0, count), np.int8),
        missing=np.empty((0, count), np.uint8),
        string_start=np.empty((0, count), np.int64),
        string_stop=np.empty((0, count), np.int64),
        geometry=np.tile(np.arange(count), (2, 1)),
        list_kind=kinds,
        list_start=starts.astype(np.int64),
        list_stop=stops.astype(np.int64),
        item_start=np.zeros(len(flat) + 1, np.int64),
        text=np.empty(0, np.uint8),
        shapes=shapes.arrays,
    ), np.array(flat, np.int64)


def filters_on(
    built: Any,
    events: EventArrays,
    items: NDArray[np.int64],
    *,
    alone: bool = True,
    tight: bool = False,
) -> list[tuple[list[int], list[int]]]:
    """What each event finds: subscriptions, and filters.

    alone : one looks after the other. tight : there is room for one of them only.
    """
    segment, given = (
        struct_ref(
            build(FilterTable(ColumnRegistry()).arrays(), np.empty(0, np.int64))._replace(
                postings=built
            )
        ),
        struct_ref(events),
    )
    held = struct_ref(empty_match_scratch())
    grow(held, required_sizes(segment, given))
    scratch = arrays_of(held)
    own = scratch.postings
    own.limits[SEQUENTIAL_LIMIT] = MAX_SEQUENTIAL_ENTRIES if alone else -1
    if tight:
        least = len(built.owner) + WIDTH
        own = own._replace(hits=own.hits[:least], queue=own.queue[: 8 * least])
    count = events.geometry.shape[1]
    with_string = np.empty((0, len(items) + count), np.int64)
    combined = np.empty((0, count), np.int64)
    found: list[tuple[list[int], list[int]]] = []
    while len(found) < count:
        begin = len(found)
        stop = find_posting_matches(
            segment,
            given,
            items,
            with_string,
            combined,
            begin,
            scratch.trees,
            own,
            scratch.posting_matches,
        )
        assert begin < stop <= count
        assert not own.word_bits.any()
        assert not own.word_filter.any()
        ends = scratch.posting_matches.stops
        for k in range(stop - begin):
            direct = scratch.posting_matches.matches[ends[k, 0] : ends[k + 1, 0]]
            others = scratch.posting_matches.candidates[ends[k, 1] : ends[k + 1, 1]]
            found.append((sorted(direct.tolist()), sorted(others.tolist())))
    return found


def expected(
    rows: PostingRows, geometry: Any, kinds: NDArray[np.uint8], lists: list[list[int]]
) -> tuple[list[int], list[int], list[int]]:
    """The same, row by row, asking Shapely for contact with the boxes; and without asking."""
    direct: list[int] = []
    others: list[int] = []
    anywhere: list[int] = []
    for k in range(len(rows.form)):
        form = rows.forms[rows.form[k]]
        tokens = set(rows.tokens[rows.token_start[k] : rows.token_start[k + 1]].tolist())
        if form.list_column >= 0:
            if not form.accepts & kinds[form.list_column]:
                continue
            if not tokens <= set(lists[form.list_column]):
                continue
        anywhere.append(int(rows.owner[k]))
        box = rows.boxes[k]
        own = geometry if form.direct else shapely.box(*geometry.bounds)
        if np.isfinite(box).all() and not shapely.intersects(own, shapely.box(*box)):
            continue
        (direct if form.direct else others).append(int(rows.owner[k]))
    return direct, others, anywhere


def random_geometry(rng: np.random.Generator, side: float) -> Any:
    x, y = (rng.integers(-1, 14, 2) * side).tolist()
    w, h = (rng.integers(1, 6, 2) * side).tolist()
    return [
        shapely.Point(x, y),
        shapely.box(x, y, x + w, y + h),
        shapely.Polygon([(x, y), (x + w, y), (x, y + h)]),
        shapely.LineString([(x, y), (x + w, y + h)]),
        shapely.MultiPoint([(x, y), (x + w, y + h)]),
        shapely.box(x, y, x + 3 * w, y + 3 * h).difference(
            shapely.box(x + w, y + h, x + 2 * w, y + 2 * h)
        ),
    ][rng.integers(0, 6)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("count", "length", "side"), [(40, 4, 1.0), (700, 6, 0.1), (700, 80, 1e100)]
)
def test_what_is_found_is_what_every_row_says(
    seed: int, count: int, length: int, side: float
) -> None:
    rng = np.random.default_rng([seed, count, length])
    words = 100
    rows = random_rows(rng, count, words, side)
    built = keyword_postings.build(rows, words)
    count = 12
    geometries = [random_geometry(rng, side) for _ in range(count)]
    kinds = rng.integers(0, 3, (2, count)).astype(np.uint8)
    lists = [
        [
            np.unique(rng.integers(0, words if length > 10 else 12, length)).tolist()
            for _ in range(count)
        ]
        for _ in range(2)
    ]
    events, items = events_of(geometries, kinds, lists)
    together = filters_on(built, events, items, alone=False)
    assert filters_on(built, events, items, alone=False, tight=True) == together
    assert filters_on(built, events, items) == together
    assert filters_on(built, events, items, tight=True) == together
    for e, seen in enumerate(together):
        direct, others, at_most = expected(
            rows, geometries[e], kinds[:, e], [column[e] for column in lists]
        )
        assert seen[0] == direct
        # Of filters with more checks, boxes only rule some out.
        assert set(others) <= set(seen[1]) <= set(at_most)
        assert len(set(seen[1])) == len(seen[1])


def test_rows_come_back_from_their_entries() -> None:
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 500, 50, 1.0)
    kept = np.flatnonzero([rows.forms[k].direct for k in rows.form])
    back = keyword_postings.direct_rows_of(keyword_postings.build(rows, 50), 50)

    def as_set(some: PostingRows, which: NDArray[np.int64]) -> set[tuple[Any, ...]]:
        return {
            (
                some.forms[some.form[k]],
                int(some.owner[k]),
                tuple(some.boxes[k]),
                tuple(sorted(some.tokens[some.token_start[k] : some.token_start[k + 1]].tolist())),
            )
            for k in which
        }

    assert len(back.form) == len(kept)
    assert as_set(back, np.arange(len(back.form))) == as_set(rows, kept)


def test_the_entry_of_a_row_names_its_group_and_word() -> None:
    rows = random_rows(np.random.default_rng(6), 200, 50, 1.0)
    built = keyword_postings.build(rows, 50)
    for entry in range(keyword_postings.direct_entry_count(built)):
        group, word = keyword_postings.group_and_word_of(built, entry)
        row = int(built.owner[entry])
        tokens = rows.tokens[rows.token_start[row] : rows.token_start[row + 1]].tolist()
        form = rows.forms[rows.form[row]]
        assert (int(group["list_column"]), int(group["accepts"])) == (
            form.list_column,
            form.accepts,
        )
        assert word in tokens if tokens else word is None


def test_no_rows_at_all() -> None:
    built = keyword_postings.build(keyword_postings.rows_from([]), 0)
    events, items = events_of([shapely.Point(0, 0)], np.full((2, 1), TEXT, np.uint8), [[[]], [[]]])
    assert filters_on(built, events, items) == [([], [])]


@given(
    st.lists(st.floats(allow_nan=False, width=64), min_size=2, max_size=40),
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=20),
)
def test_the_map_of_coordinates_never_decreases(
    drawn_from: list[float], values: list[float]
) -> None:
    knots = np.zeros(PIECES + 1)
    keyword_postings.fit_knots(np.array(drawn_from), knots)
    images = [image(knots[None, None], 0, 0, value) for value in sorted(values)]
    assert images == sorted(images)
    assert all(0 <= one < 2**16 for one in images)


@pytest.mark.parametrize("count", [0, 1, 16, 17, 32, 33, 256, 257, 5000])
def test_search_finds_the_boxes_that_meet(count: int) -> None:
    rng = np.random.default_rng(count)
    corner = rng.integers(0, 300, (count, 2))
    boxes = np.concatenate((corner, corner + rng.integers(0, 30, (count, 2))), axis=1)
    rows = keyword_postings.rows_from(
        [(PostingGroup(-1, 0, 0, True), k, tuple(b), []) for k, b in enumerate(boxes + 0.0)]
    )
    built = keyword_postings.build(rows, 0)
    stack, out = new_tree_scratch(1).stack, np.empty(count, np.uint32)
    if not count:
        assert len(built.lists) == 0
        return
    own = np.empty((count, 4), np.int64)
    for entry in range(count):
        own[entry] = [image(built.knots, 0, k % 2, built.exact[entry, k]) for k in range(4)]
    node = np.int64(built.lists["node"][0])
    for _ in range(30):
        a, b = rng.integers(0, 65_536, 2).tolist()
        c, d = (min(low + int(rng.integers(0, 30_000)), 65_535) for low in (a, b))
        found = search_boxes(
            built.boxes, 0, count, built.nodes, node, a, b, c, d, stack, out, np.int64(count)
        )
        meet = (own[:, 0] <= c) & (own[:, 1] <= d) & (own[:, 2] >= a) & (own[:, 3] >= b)
        assert sorted(out[:found].tolist()) == np.flatnonzero(meet).tolist()
        patience = int(meet.sum()) - 1
        if patience >= 0 and count > 32:
            seen = search_boxes(
                built.boxes, 0, count, built.nodes, node, a, b, c, d, stack, out, np.int64(patience)
            )
            assert seen > patience


def test_a_rectangle_is_laid_out_as_any_other() -> None:
    box = np.array([1.0, 2.0, 4.0, 8.0])
    own, read = rectangle(box), Shapes.read_all([shapely.box(*box)]).arrays
    assert (own.x.min(), own.y.min(), own.x.max(), own.y.max()) == (1, 2, 4, 8)
    for side in ("x0", "y0", "x1", "y1", "chain", "node", "dimension"):
        assert own.shapes[side].tolist() == read.shapes[side].tolist()
    assert len(own.nodes) == len(read.nodes)
