"""One small call of every kernel that Python calls, so that its machine code is there later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fencepost.kernels import (
    growing,
    members,
    names,
    pairs,
    partners,
    posts_layout,
    rtree,
    vocabulary,
    wkb,
)
from fencepost.kernels.calipers import hull_distance, relate_hull_pairs, within_hull_pairs
from fencepost.kernels.checking import CHECK
from fencepost.kernels.combined import CombinedArrays
from fencepost.kernels.copying import copy_shapes
from fencepost.kernels.distance import (
    all_within,
    centroid,
    distance,
    farthest,
    same_place,
    within_pairs,
)
from fencepost.kernels.geodesic import geodesic
from fencepost.kernels.geodesic_shapes import (
    all_within_wgs84,
    distance_wgs84,
    farthest_wgs84,
    same_place_wgs84,
    within_wgs84_pairs,
)
from fencepost.kernels.handles import arrays_of, followed_by, handle, listed
from fencepost.kernels.hulls import Hulls, hull_centroids, hulls, locate_in_hull
from fencepost.kernels.layout import lay_out
from fencepost.kernels.matching import EventArrays, SegmentArrays, look_up, match_events
from fencepost.kernels.matrices import relations_of_matrices
from fencepost.kernels.one_event import Desk, match_one, match_point
from fencepost.kernels.places import places
from fencepost.kernels.posts_arrays import (
    DENSITY_BITS,
    GROUP,
    LIST,
    PADDING,
    PIECES,
    PostArrays,
)
from fencepost.kernels.rasters import COARSE_WORDS, SIDE, can_be_gridded, rasters
from fencepost.kernels.region_walk import ENTRY, RegionArrays
from fencepost.kernels.relate import matrix_pairs
from fencepost.kernels.relate_areas import relate_areas
from fencepost.kernels.rooms import no_room
from fencepost.kernels.shapes import ShapeArrays
from fencepost.kernels.tokenise import (
    Rules,
    ascii_characters,
    items_of_lists,
    no_words,
    words_of_texts,
)
from fencepost.kernels.trees import scratch
from fencepost.kernels.vectors import WIDTH

Step = tuple[str, Callable[[], None]]


def steps() -> list[Step]:
    """The kernels by name, each with a call that compiles it or loads it from the cache.

    Without those of `geometry`, which a process beside this one compiles at the same time: what
    needs none of them comes first.
    """
    return [
        ("words of texts", _words),
        ("names", _names),
        ("convex hulls", _hulls),
        ("live members of composites", _members),
        ("trees and vocabularies", _structures),
        ("matching", _match),
    ]


def geometry() -> list[Step]:
    """Those of single geometries and pairs of them."""
    return [
        ("geometry layout and validity", _lay_out),
        ("columns of WKB", _read_wkb),
        ("relations of areas", _relate_areas),
        ("relations of points and lines", _matrices),
        ("distances", _distances),
        ("distances on the ellipsoid", _geodesics),
        ("copies of geometries", _copies),
    ]


def _lay_out() -> None:
    _triangle()


def _read_wkb() -> None:
    words, numbers = np.empty(0, np.uint64), np.zeros(1, np.int64)
    wkb.read_wkb(
        np.empty(0, np.uint8), numbers, words, words, numbers, numbers, numbers.copy(),
        np.empty(0, np.int8), np.empty(0, np.uint8), np.empty((0, 2), np.int64),
    )  # fmt: skip


def _triangle() -> ShapeArrays:
    x, y = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    arrays: ShapeArrays = lay_out(
        x,
        y,
        np.array([0, 3]),
        np.array([0]),
        np.array([0, 1]),
        np.array([2], np.int8),
        64,
    )[0]
    return arrays


def _relate_areas() -> None:
    g = _triangle()
    rows = np.zeros(1, np.int64)
    relate_areas(g, g, rows, rows, 0, scratch(1), np.empty(1, np.uint8))


def _matrices() -> None:
    g = _triangle()
    rows = np.zeros(1, np.int64)
    matrices = np.empty(1, np.int64)
    matrix_pairs(g, g, rows, rows, 0, scratch(1), matrices)
    relations_of_matrices(matrices, np.empty(1, np.uint8))


def _distances() -> None:
    g = _triangle()
    rows, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
    within_pairs(g, g, rows, rows, np.ones(1), scratch(1), out)
    same_place(g, 0, g, 0, 1.0)
    distance(g, 0, g, 0, scratch(1))
    all_within(g, 0, g, 0, 1.0)
    farthest(g, 0, g, 0)
    centroid(g, 0)


def _geodesics() -> None:
    g = _triangle()
    rows, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
    within_wgs84_pairs(g, g, rows, rows, np.ones(1), scratch(1), out)
    same_place_wgs84(g, 0, g, 0, 1.0)
    distance_wgs84(g, 0, g, 0, 0.0, 1.0, scratch(1))
    all_within_wgs84(g, 0, g, 0, 1.0, scratch(1))
    farthest_wgs84(g, 0, g, 0, 0.0, 1.0, scratch(1))
    geodesic(0.0, 0.0, 1.0, 1.0)


def _hulls() -> None:
    h = hulls(Hulls(np.zeros(1), np.zeros(1), np.arange(2)))
    locate_in_hull(h, 0, 0.0, 0.0)
    hull_centroids(h, np.empty((1, 3)))
    rows, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
    relate_hull_pairs(h, h, rows, rows, out)
    within_hull_pairs(h, h, rows, rows, np.ones(1), out)
    hull_distance(h, 0, h, 0)


def _members() -> None:
    counts = np.zeros(members.COUNTS, np.int64)
    counts[[members.FREE_ROW, members.FREE_ITEM]] = -1
    pools, x, y = np.zeros(1, members.POOL), np.zeros(4), np.zeros(4)
    pools["node"] = -1
    live = members.MemberArrays(
        np.zeros(4, members.ITEM), np.zeros(4, members.ROW), np.zeros(4, members.NODE), pools,
        np.full(4, -1, np.int32), np.zeros(4, members.EXPIRY), x, y, np.zeros(8, np.int64), counts,
    )  # fmt: skip
    held, rows, out = handle(live), np.zeros(1, np.int64), np.empty(1)
    members.put_item(held, x[:1], y[:1], 0, 0, 0)
    members.file_item(held, 0, 0, 0)
    members.link_again(held)
    members.find(held, members.Asked(0, True, 0.0, 0, 0), rows, rows, rows, rows, rows.copy())
    members.points_of(held, np.zeros((1, 1), np.int64))
    members.relations_of(held, rows, rows, np.empty(1, np.uint8))
    members.distances_of(held, rows, rows, out, out)
    members.centroids_of(held, rows, np.empty((1, 3)))
    members.pack_corners(held, x.copy(), y.copy())
    members.evict(held, 1, 1)
    members.drop_item(held, members.put_item(held, x[:1], y[:1], 0, 0, 0))
    cast = partners.CastArrays(
        np.zeros(1, partners.PLAN), np.zeros(1, partners.TEST), rows, rows.copy()
    )
    found = np.empty((1, partners.FIELDS), np.int64)
    item, _, _, _ = partners.arrive(held, handle(cast), x[:1], y[:1], 0, 0, 1, 1, found)
    partners.play(held, handle(cast), item, 1, found)


def _copies() -> None:
    copy_shapes(_triangle(), np.zeros(1, np.int64), _triangle(), np.zeros(5, np.int64))


def _structures() -> None:
    segment = _segment()
    regions = segment.regions
    can_be_gridded(np.zeros(4))
    places(segment.checks, segment.shapes, np.empty((0, 4)), np.empty(0, np.uint8))
    start = np.zeros(1, np.int64)
    vocabulary.reslotted(segment.vocabulary, 0, 0)
    vocabulary.add(segment.vocabulary, 0, np.empty(0, np.uint8), start, np.empty(0, np.int64))
    rows = np.empty(0, np.int64)
    rasters(segment.shapes, rows, rows, regions.extent, regions.fine, regions.coarse)


def _segment() -> SegmentArrays:
    """A segment of no subscriptions."""
    words = no_words()
    trees = rtree.build(np.empty((0, 4)), np.empty(0, np.int64), np.empty(0, np.uint32), 1)
    positions = np.zeros(1, np.uint32)
    none = np.empty(0, np.uint32)
    regions = RegionArrays(
        trees,
        np.zeros((1, 4)),
        np.empty(0, ENTRY),
        positions,
        none,
        positions,
        none,
        np.zeros(2, np.uint32),
        np.empty(0, ENTRY),
        none,
        np.empty((0, 4)),
        np.empty((0, 3, COARSE_WORDS), np.uint64),
        np.empty((0, 3, SIDE), np.uint64),
    )
    return SegmentArrays(
        np.empty(0, CHECK),
        positions,
        none,
        none,
        none,
        np.empty(0, np.int64),
        positions,
        none,
        np.empty(0, np.uint64),
        positions,
        np.empty(0, np.uint32),
        none,
        np.empty(0, np.uint8),
        none,
        none,
        np.empty(0, np.int32),
        np.empty((0, 4, WIDTH)),
        np.empty(0, np.uint16),
        np.empty(0, np.uint8),
        np.empty(0, np.float32),
        np.array([0, 2**62, 1, 0, 0]),
        none,
        np.empty(0, np.uint8),
        CombinedArrays(positions, none, words),
        _posts(words),
        regions,
        trees,
        trees,
        words,
        _triangle(),
    )


def _posts(words: vocabulary.Vocabulary) -> PostArrays:
    """No posts; what lays them out is compiled by the way."""
    boxes, images = np.empty((0, 4)), np.empty((0, 4), np.uint16)
    rows, tokens = np.empty(0, np.int64), np.empty(0, np.uint32)
    start, knots = np.zeros(1, np.int64), np.empty((0, 3, PIECES + 1))
    padding = np.zeros(PADDING, np.uint16)
    lists = np.empty(0, LIST)
    entry_start = np.zeros(1, np.uint32)
    posts_layout.images(boxes, rows, knots, images)
    posts_layout.bound_images(boxes, rows, knots, images)
    posts_layout.choose_words(
        start, rows, images, 0, rows, np.zeros(1, np.int32), tokens, start, tokens
    )
    posts_layout.sort_keys(images, rows, np.empty(0, np.uint64))
    posts_layout.lay_out_entries(
        images, images, rows, start, tokens, lists, padding, padding, entry_start, tokens
    )
    posts_layout.tree_sizes(rows, rows)
    posts_layout.plant(padding, rows, rows, rows, padding)
    posts_layout.spatial_keys(images, rows, np.empty(0, np.uint64))
    density = np.empty((0, 4**DENSITY_BITS), np.float32)
    posts_layout.spatial_blocks(
        images, rows, tokens, tokens, 0, 0, tokens, tokens, padding, np.empty(0, np.float32)
    )
    posts_layout.distinct(start, rows, rows, start)
    return PostArrays(
        np.zeros(2, np.uint32), lists, np.empty(0, GROUP), knots, padding, padding, padding,
        entry_start, tokens, tokens, boxes, tokens, tokens, padding, padding, density, tokens,
        words,
    )  # fmt: skip


def _words() -> None:
    none, text = np.empty(0, np.int64), np.empty(0, np.uint8)
    words_of_texts(text, none, none, handle(Rules(ascii_characters(), no_words())), none, none)
    items_of_lists(text, none, none, none, none, none, none)


def _names() -> None:
    text, ends = np.frombuffer(b"a", np.uint8), np.frombuffer(bytes(8), np.int32)
    slots, rows = np.full(2, names.EMPTY, np.uint32), np.zeros(1, np.uint32)
    names.fill(slots.copy(), text, ends)
    names.row_of(slots, text, ends, text)
    counts = np.zeros(2, np.int64)
    pairs.write_events(counts, counts, counts)
    pairs.write_rows(rows, counts, 0, counts, rows)
    pairs.number_rows(rows, rows.copy(), rows, rows)
    pairs.sort_codes(rows, counts, 1)


def _match() -> None:
    nothing = np.empty((0, 1), np.int64)
    text = np.empty(0, np.uint8)
    segment = handle(_segment())
    item_start = np.zeros(1, np.int64)
    look_up(segment, text, item_start[:-1], item_start[1:], np.empty(0, np.int64))
    values = (
        np.empty((0, 1)), np.empty((0, 1)), np.empty((0, 1), np.int8), np.empty((0, 1), np.uint8),
        nothing, nothing, nothing, np.empty((0, 1), np.uint8), nothing, nothing, item_start, text,
    )  # fmt: skip
    events = handle(EventArrays(*values, _triangle()))
    arrays_of(events)
    segments = followed_by(listed(segment), segment)
    room = handle(no_room())
    match_events(segments, events, room, 0, np.uint32(0))
    point = (
        np.zeros((1, 2)), np.array([0, 1]), np.array([0]), np.array([0, 1]), np.zeros(1, np.int8),
    )  # fmt: skip
    stops, answer = np.empty((1, 1), np.int64), np.empty(4, np.uint32)
    desk = handle(Desk(segments, room, events, np.zeros(2, np.int64), stops, answer, 1.0, 1.0))
    match_point(desk, 0.0, 0.0, 0, 0)
    match_one(desk, *point, 0, 0)
    shapes, _ = growing.laid_out(*point)
    # No check, filter, set, key or shape: just the starts.
    counts = np.array([0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0])
    given = handle(
        growing.Given(
            np.zeros(growing.SIZES, np.int64), counts, np.empty(0, CHECK),
            np.zeros(5, np.int64), text, np.empty((0, 2)),
        )
    )  # fmt: skip
    growing.append(segment, given, shapes, 0, np.uint32(0))
    growing.append_plain(segment, given, 0, np.uint32(0))
