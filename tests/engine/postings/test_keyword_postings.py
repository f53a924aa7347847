"""Keyword postings, compared with an evaluation of every row."""

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
GROUPS = (
    PostingGroup(0, 0, BOTH, True),
    PostingGroup(0, -1, TEXT, True),
    PostingGroup(1, 1, ITEMS, True),
    PostingGroup(-1, 0, 0, True),
    PostingGroup(0, 0, BOTH, False),
    PostingGroup(1, -1, BOTH, False),
)


def random_rows(rng: np.random.Generator, count: int, words: int, side: float) -> PostingRows:
    """Rows of every group; many boxes touch or repeat, and some words are in nearly all rows."""
    group = rng.integers(0, len(GROUPS), count)
    corner = rng.integers(0, 12, (count, 2)) * side
    boxes = np.concatenate((corner, corner + rng.integers(1, 5, (count, 2)) * side), axis=1)
    boxes[[GROUPS[k].geometry_column < 0 for k in group]] = EVERYWHERE
    tokens = [
        []
        if GROUPS[k].list_column < 0
        else np.unique(np.minimum(rng.geometric(0.2, rng.integers(0, 5)) - 1, words - 1)).tolist()
        for k in group
    ]
    return keyword_postings.rows_from(
        [(GROUPS[group[k]], k, tuple(boxes[k].tolist()), tokens[k]) for k in range(count)]
    )


def events_of(
    geometries: list[Any], kinds: NDArray[np.uint8], lists: list[list[list[int]]]
) -> tuple[EventArrays, NDArray[np.int64]]:
    """Return events with one geometry for both columns, and two lists of words."""
    count = len(geometries)
    flat = [token for column in lists for words in column for token in words]
    stops = np.cumsum([len(words) for column in lists for words in column]).reshape(2, count)
    starts = stops - np.array([[len(words) for words in column] for column in lists])
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


def find_owners(
    postings: Any,
    events: EventArrays,
    items: NDArray[np.int64],
    *,
    sequential: bool = True,
    tight: bool = False,
) -> list[tuple[list[int], list[int]]]:
    """Return for each event the subscriptions and the filters that the kernel finds.

    sequential : whether events are searched one at a time, not in batches. tight : the buffers have
        room for the results of one event only.
    """
    segment, events_ref = (
        struct_ref(
            build(FilterTable(ColumnRegistry()).arrays(), np.empty(0, np.int64))._replace(
                postings=postings
            )
        ),
        struct_ref(events),
    )
    scratch_ref = struct_ref(empty_match_scratch())
    grow(scratch_ref, required_sizes(segment, events_ref))
    scratch = arrays_of(scratch_ref)
    posting_scratch = scratch.postings
    posting_scratch.limits[SEQUENTIAL_LIMIT] = MAX_SEQUENTIAL_ENTRIES if sequential else -1
    if tight:
        size = len(postings.owner) + WIDTH
        posting_scratch = posting_scratch._replace(
            hits=posting_scratch.hits[:size], queue=posting_scratch.queue[: 8 * size]
        )
    count = events.geometry.shape[1]
    word_string_keys = np.empty((0, len(items) + count), np.int64)
    signature_keys = np.empty((0, count), np.int64)
    owners: list[tuple[list[int], list[int]]] = []
    while len(owners) < count:
        begin = len(owners)
        stop = find_posting_matches(
            segment,
            events_ref,
            items,
            word_string_keys,
            signature_keys,
            begin,
            scratch.trees,
            posting_scratch,
            scratch.posting_matches,
        )
        assert begin < stop <= count
        assert not posting_scratch.word_bits.any()
        assert not posting_scratch.word_filter.any()
        ends = scratch.posting_matches.stops
        for k in range(stop - begin):
            direct = scratch.posting_matches.matches[ends[k, 0] : ends[k + 1, 0]]
            filters = scratch.posting_matches.candidates[ends[k, 1] : ends[k + 1, 1]]
            owners.append((sorted(direct.tolist()), sorted(filters.tolist())))
    return owners


def expected(
    rows: PostingRows, geometry: Any, kinds: NDArray[np.uint8], lists: list[list[int]]
) -> tuple[list[int], list[int], list[int]]:
    """Evaluate row by row, with Shapely: the matches, the filters, and the rows without boxes."""
    direct: list[int] = []
    filters: list[int] = []
    without_boxes: list[int] = []
    for k in range(len(rows.group)):
        group = rows.groups[rows.group[k]]
        tokens = set(rows.tokens[rows.token_start[k] : rows.token_start[k + 1]].tolist())
        if group.list_column >= 0:
            if not group.accepts & kinds[group.list_column]:
                continue
            if not tokens <= set(lists[group.list_column]):
                continue
        without_boxes.append(int(rows.owner[k]))
        box = rows.boxes[k]
        shape = geometry if group.direct else shapely.box(*geometry.bounds)
        if np.isfinite(box).all() and not shapely.intersects(shape, shapely.box(*box)):
            continue
        (direct if group.direct else filters).append(int(rows.owner[k]))
    return direct, filters, without_boxes


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
def test_search_finds_the_rows_that_match(seed: int, count: int, length: int, side: float) -> None:
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
    found = find_owners(built, events, items, sequential=False)
    assert find_owners(built, events, items, sequential=False, tight=True) == found
    assert find_owners(built, events, items) == found
    assert find_owners(built, events, items, tight=True) == found
    for e, (matches, candidates) in enumerate(found):
        direct, filters, without_boxes = expected(
            rows, geometries[e], kinds[:, e], [column[e] for column in lists]
        )
        assert matches == direct
        # For filters with more checks, boxes only rule some rows out.
        assert set(filters) <= set(candidates) <= set(without_boxes)
        assert len(set(candidates)) == len(candidates)


def test_direct_rows_are_restored_from_their_entries() -> None:
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 500, 50, 1.0)
    kept = np.flatnonzero([rows.groups[k].direct for k in rows.group])
    back = keyword_postings.direct_rows_of(keyword_postings.build(rows, 50), 50)

    def as_set(rows: PostingRows, selected: NDArray[np.int64]) -> set[tuple[Any, ...]]:
        return {
            (
                rows.groups[rows.group[k]],
                int(rows.owner[k]),
                tuple(rows.boxes[k]),
                tuple(sorted(rows.tokens[rows.token_start[k] : rows.token_start[k + 1]].tolist())),
            )
            for k in selected
        }

    assert len(back.group) == len(kept)
    assert as_set(back, np.arange(len(back.group))) == as_set(rows, kept)


def test_the_entry_of_a_row_names_its_group_and_word() -> None:
    rows = random_rows(np.random.default_rng(6), 200, 50, 1.0)
    built = keyword_postings.build(rows, 50)
    for entry in range(keyword_postings.direct_entry_count(built)):
        group, word = keyword_postings.group_and_word_of(built, entry)
        row = int(built.owner[entry])
        tokens = rows.tokens[rows.token_start[row] : rows.token_start[row + 1]].tolist()
        expected_group = rows.groups[rows.group[row]]
        assert int(group["list_column"]) == expected_group.list_column
        assert int(group["accepts"]) == expected_group.accepts
        assert word in tokens if tokens else word is None


def test_no_rows() -> None:
    built = keyword_postings.build(keyword_postings.rows_from([]), 0)
    events, items = events_of([shapely.Point(0, 0)], np.full((2, 1), TEXT, np.uint8), [[[]], [[]]])
    assert find_owners(built, events, items) == [([], [])]


@given(
    st.lists(st.floats(allow_nan=False, width=64), min_size=2, max_size=40),
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=20),
)
def test_the_map_of_coordinates_never_decreases(sample: list[float], values: list[float]) -> None:
    knots = np.zeros(PIECES + 1)
    keyword_postings.fit_knots(np.array(sample), knots)
    images = [image(knots[None, None], 0, 0, value) for value in sorted(values)]
    assert images == sorted(images)
    assert all(0 <= number < 2**16 for number in images)


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
    images = np.empty((count, 4), np.int64)
    for entry in range(count):
        images[entry] = [image(built.knots, 0, k % 2, built.exact[entry, k]) for k in range(4)]
    node = np.int64(built.lists["node"][0])
    for _ in range(30):
        a, b = rng.integers(0, 65_536, 2).tolist()
        c, d = (min(low + int(rng.integers(0, 30_000)), 65_535) for low in (a, b))
        box_count = search_boxes(
            built.boxes, 0, count, built.nodes, node, a, b, c, d, stack, out, np.int64(count)
        )
        meet = (images[:, 0] <= c) & (images[:, 1] <= d) & (images[:, 2] >= a) & (images[:, 3] >= b)
        assert sorted(out[:box_count].tolist()) == np.flatnonzero(meet).tolist()
        limit = int(meet.sum()) - 1
        if limit >= 0 and count > 32:
            stopped_count = search_boxes(
                built.boxes, 0, count, built.nodes, node, a, b, c, d, stack, out, np.int64(limit)
            )
            assert stopped_count > limit


def test_a_rectangle_is_laid_out_like_any_geometry() -> None:
    box = np.array([1.0, 2.0, 4.0, 8.0])
    laid_out, read = rectangle(box), Shapes.read_all([shapely.box(*box)]).arrays
    assert (laid_out.x.min(), laid_out.y.min(), laid_out.x.max(), laid_out.y.max()) == (1, 2, 4, 8)
    for side in ("x0", "y0", "x1", "y1", "chain", "node", "dimension"):
        assert laid_out.shapes[side].tolist() == read.shapes[side].tolist()
    assert len(laid_out.nodes) == len(read.nodes)
