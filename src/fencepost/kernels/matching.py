"""Events against a segment of subscriptions: candidates from the access paths, then their checks.

A segment's filters each stand under one access path: a word (the filter needs it in a list or
text), several strings at once and a box (`combined`), a region (it needs a relation to an area,
which the walk decides), a box in a tree (it needs contact with, or nearness to, some other
geometry), a value in the postings (it needs one of some strings, a truth, or that an attribute is
missing), an interval (it needs a number in it, or a string that begins or ends so), or none
(`scan`). Where a filter asks for nothing but a relation to an area, or for words and contact with a
rectangle, or for strings and a rectangle or the distance to a point, what is found are matches
already. The other candidates' checks are evaluated in order, cheapest first; the first one that is
not true ends it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.combined import CombinedArrays, words_of_events
from fencepost.kernels.compiling import inlined, kernel, separate, uncounted
from fencepost.kernels.distance import all_within, same_place, within
from fencepost.kernels.geodesic_shapes import all_within_wgs84, same_place_wgs84, within_wgs84
from fencepost.kernels.handles import put
from fencepost.kernels.like import compare, like
from fencepost.kernels.locate import is_place, point_in_area
from fencepost.kernels.matrices import DISJOINT, relation_of_matrix
from fencepost.kernels.posted import find_posted
from fencepost.kernels.posts_arrays import PostArrays
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.region_points import find_points
from fencepost.kernels.region_walk import RegionArrays, walk
from fencepost.kernels.relate import matrix_of
from fencepost.kernels.relate_areas import area_relation
from fencepost.kernels.rooms import (
    CANDIDATES,
    EVENTS,
    FIRST_EXPIRY,
    MATCHES,
    ONCE,
    REMOVED,
    UNSURE,
    Room,
    grow,
    has_room,
    most_candidates,
    needs,
)
from fencepost.kernels.rtree import RTreeArrays, search
from fencepost.kernels.shapes import AREAS, POINTS, ShapeArrays
from fencepost.kernels.spatial import FIRST_EH, spatial_holds
from fencepost.kernels.trees import boxes_apart
from fencepost.kernels.vocabulary import Vocabulary, look_up_all
from fencepost.kernels.with_strings import words_with_strings

RANGE, MEMBER, ORDER, LIKE, BOOLEAN, NULL, RELATE, NEAR, LIST = range(9)

# Bits of `flags`, besides what a kind keeps in the others.
NEGATED = 1
FOUND = 128  # the filter is found by this check, which need not be asked again
LOW_CLOSED, HIGH_CLOSED = 2, 4  # RANGE
ALLOWS_FALSE, ALLOWS_TRUE = 2, 4  # BOOLEAN
LESS, OR_EQUAL = 2, 4  # ORDER: less or greater; with equality
ALL_OF_IT = 4  # NEAR: of the farthest points, in place of the nearest
TOKENS = 2  # LIST: the literal list holds strings only, so text can be compared with its words

CHECK = np.dtype(
    [
        ("low", "f8"),  # RANGE: the bounds, as pairs; NEAR: `low` is the distance
        ("low_rest", "f8"),
        ("high", "f8"),
        ("high_rest", "f8"),
        ("column", "u4"),  # among the event's columns of its storage
        ("item", "u4"),  # a row of the shapes, sets or vocabulary
        ("kind", "u1"),
        ("flags", "u1"),
        ("function", "u1"),  # RELATE, NEAR, LIST: which
        ("points_mask", "u1"),  # RELATE with an area: relations that satisfy it, by the dimension
        ("lines_mask", "u1"),  # of the event's geometry
        ("areas_mask", "u1"),
    ],
    align=True,
)

# Functions of NEAR, in the order of `fencepost.language.ast.Near`.
DWITHIN, BEYOND, SAMEPLACE = range(3)
ON_WGS84 = 3  # added to these: coordinates are lon/lat, and distances metres
# Functions of LIST, in the order of `fencepost.language.ast.Array`.
CONTAINS, CONTAINED_BY, EQUAL, OVERLAPS = range(4)

NO, YES, UNKNOWN, CLOSE = 0, 1, 2, 3

_FETCHED = 64  # filters whose checks are asked for before they are read
_STEPS = 5  # in which all is asked for that a check may need
_STRIDE = 4  # filters between two steps
_LINE, _LINES = 8, 2  # numbers in a line of the cache; lines of coordinates that are asked for
_FEW = 24  # results that are sorted by insertion
_DENSE = 8  # with at least one result for so many words of bits, bits sort faster
# Which bit a power of two is, by its remainder: no two have the same.
_BIT = np.zeros(67, np.uint32)
_BIT[[pow(2, bit, 67) for bit in range(64)]] = np.arange(64)
NO_LIST, ITEMS, TEXT = 0, 1, 2

# What the postings are of, and the intervals.
STRINGS, TRUTHS, ABSENCES = range(3)
NUMBERS, BEGINNINGS, ENDS = range(3)
PLACE_BYTES = 6  # so many bytes of a string are a whole number that a double holds
_SPACE, _COLUMN = np.uint64(62), np.uint64(32)


class SegmentArrays(NamedTuple):
    """Subscriptions, ready to be matched."""

    checks: NDArray[np.void]  # CHECK
    filter_check: NDArray[np.uint32]  # filter f owns checks filter_check[f]:filter_check[f + 1]
    filter_subscription: NDArray[np.uint32]
    gone: NDArray[np.uint32]  # one a subscription: from which version on it is removed
    born: NDArray[np.uint32]  # from which on it is there, ascending; of none if of all versions
    expires: NDArray[np.int64]  # nanoseconds since 1970
    set_start: NDArray[np.uint32]  # set s is set_items[set_start[s]:set_start[s + 1]]
    set_items: NDArray[np.uint32]  # vocabulary ids, ascending
    post_key: NDArray[np.uint64]  # ascending, see `post_key`
    post_start: NDArray[np.uint32]
    post_filter: NDArray[np.uint32]
    tree_column: NDArray[np.uint32]  # the geometry column of each tree
    interval_source: NDArray[np.uint8]  # of each tree of intervals: NUMBERS, BEGINNINGS or ENDS
    interval_column: NDArray[np.uint32]
    scan: NDArray[np.uint32]  # filters under no other path
    scan_column: NDArray[np.int32]  # the geometry column that must meet a box, or -1
    scan_box: NDArray[np.float64]  # (scan, 4)
    path: NDArray[np.uint8]  # of each filter
    share: NDArray[np.float32]  # of each filter: of the events, how many are expected to find it
    state: NDArray[np.int64]  # how many were removed, and others: see `rooms`
    region_column: NDArray[np.uint32]  # the geometry column of each tree of regions
    region_direct: NDArray[np.uint8]  # 1: its owners are subscriptions that match; 0: filters
    combined: CombinedArrays
    posts: PostArrays
    regions: RegionArrays
    trees: RTreeArrays
    intervals: RTreeArrays  # of boxes without height
    vocabulary: Vocabulary
    shapes: ShapeArrays


class EventArrays(NamedTuple):
    """Events as columns of the kinds that checks compare; one row a column, one item an event."""

    number: NDArray[np.float64]  # NaN where there is none
    number_rest: NDArray[np.float64]
    truth: NDArray[np.int8]  # 0, 1, or -1 for unknown
    missing: NDArray[np.uint8]
    string_start: NDArray[np.int64]  # in `text`; -1 where there is none
    string_stop: NDArray[np.int64]
    geometry: NDArray[np.int64]  # a row of `shapes`, or -1
    list_kind: NDArray[np.uint8]
    list_start: NDArray[np.int64]  # among the items
    list_stop: NDArray[np.int64]
    item_start: NDArray[
        np.int64
    ]  # item k is text[item_start[k]:item_start[k + 1]]; distinct a list
    text: NDArray[np.uint8]
    shapes: ShapeArrays


@kernel
def match_events(segments, events_handle, room_handle, now, version):
    """Match events with the subscriptions of some segments.

    segments : list of handles of SegmentArrays. events_handle : of EventArrays.
    room_handle : of the calling thread's Room. now : subscriptions that expire by then are gone.
    version : uint32; and those that are removed by this one.

    Returns
    -------
    results : uint32, for each segment the subscriptions of event after event, each once.
    stops : (segments, events) int64, where those of each event end.
    uncertain : (n, 3) uint32 of (segment, event, filter): true but for distances too close to call.
    """
    stops = np.empty((len(segments), events_handle.arrays.geometry.shape[1]), np.int64)
    found, unsure = find_all(segments, events_handle, room_handle, now, version, stops)
    room = room_handle.arrays
    return room.results[:found].copy(), stops, room.uncertain[:unsure].copy()


@separate
@kernel
def find_all(segments, events_handle, room_handle, now, version, stops):
    """The same, left in the room's `results` and `uncertain`; how many there are of both."""
    found = np.int64(0)
    unsure = np.int64(0)
    for s in range(len(segments)):
        needed = needs(segments[s], events_handle)
        if not has_room(room_handle, needed):
            grow(room_handle, needed)
        found, unsure = _match_segment(
            segments[s], s, events_handle, room_handle, now, version, found, unsure, stops[s]
        )
    counts = room_handle.arrays.counts
    counts[EVENTS] += stops.shape[1]
    counts[MATCHES] += found
    counts[UNSURE] += unsure
    return found, unsure


@separate
@kernel
def _match_segment(segment, s, events, room_handle, now, version, found, unsure, stops):
    """Append what the events find in segment s; how many results and uncertain ones there are.

    segment, events : handles, as in what is called here: as arguments of a call the arrays of a
    segment are 700 machine words, which takes longer than most checks.
    """
    words = _words_of(segment, events, room_handle)
    e = np.int64(0)
    while True:
        e, found, unsure = _find_from(
            segment, s, events, words, room_handle, now, version, found, unsure, stops, e
        )
        if e == stops.shape[0]:
            return found, unsure
        _give_room(room_handle, most_candidates(segment), found, unsure)


class EventWords(NamedTuple):
    """What a segment's vocabularies know of events."""

    string_id: NDArray[np.int64]  # (columns, events): -1 unknown, -2 no string
    item_id: NDArray[np.int64]
    combined: NDArray[np.int64]  # (signatures, events), see `words_of_events`
    with_string: NDArray[np.int64]  # see `words_with_strings`


@kernel
def _give_room(room_handle, most, found, unsure):
    """Let there be room for so many results more, or if there is, for uncertain ones."""
    own = room_handle.owned
    results, uncertain = own.results, own.uncertain
    if results.shape[0] - found < most:
        results = np.empty(2 * results.shape[0] + most, np.uint32)
        results[:found] = own.results[:found]
    else:
        uncertain = np.empty((2 * uncertain.shape[0] + 16, 3), np.uint32)
        uncertain[:unsure] = own.uncertain[:unsure]
    put(
        room_handle,
        Room(
            own.pairs, own.posts, own.ahead, own.points, own.numbers, own.candidates, own.seen,
            results, uncertain, own.counts,
        ),
    )  # fmt: skip


@separate
@uncounted
def _find_from(segment, s, events, words, room_handle, now, version, found, unsure, stops, first):
    """Append what the events from `first` on find, as long as there is room.

    Returns the first event that there is none for, and how many results and uncertain ones those
    before it have.
    """
    room = room_handle.arrays
    state = segment.arrays.state
    once = state[ONCE] > 0
    some_gone = state[REMOVED] > 0 or state[FIRST_EXPIRY] <= now
    gone = segment.arrays.gone
    expires = segment.arrays.expires
    owner = segment.arrays.filter_subscription
    seen = room.seen[: (gone.shape[0] + 63) >> 6]
    string_id, item_id = words.string_id, words.item_id
    results = room.results
    uncertain = room.uncertain
    candidates = room.candidates
    most = most_candidates(segment)
    posted = segment.arrays.posts.owner.shape[0] > 0
    begin = ahead = first  # what is posted has been looked for from the first of them to the second
    matches, filters, ends = room.ahead.matches, room.ahead.candidates, room.ahead.stops
    with_others = _has_others(segment)
    with_regions = segment.arrays.region_column.shape[0] > 0
    points_begin = points_end = first  # points have been looked for, as above
    for e in range(first, stops.shape[0]):
        start, sure = found, unsure
        if results.shape[0] - found < most:  # every filter may match
            return e, start, sure
        total = np.int64(0)
        if with_regions:
            if e >= points_end:
                points_begin = e
                points_end = find_points(segment, events, e, room.pairs.stack, room.points)
                if points_end > e:
                    _fetch_first(
                        segment, room.points.found[0], room.points.stops[0, points_end - e]
                    )
            if e < points_end:
                k = e - points_begin
                for j in range(room.points.stops[1, k], room.points.stops[1, k + 1]):
                    results[found] = room.points.found[1, j]
                    found += 1
                last = room.points.stops[0, points_end - points_begin]
                for j in range(room.points.stops[0, k], room.points.stops[0, k + 1]):
                    candidates[total] = room.points.found[0, j]
                    total += 1
                    _fetch_later(segment, room.points.found[0], j, last)
            else:
                found = _walked(segment, events, e, True, room.pairs, results, found)
                total = _walked(segment, events, e, False, room.pairs, candidates, total)
                _fetch_checks(segment, candidates[:total])
        if posted:
            if e == ahead:
                begin = e
                ahead = find_posted(
                    segment, events, item_id, words.with_string, words.combined, e, room.pairs,
                    room.posts, room.ahead,
                )  # fmt: skip
                _fetch_first(segment, filters, ends[ahead - begin, 1])
            for k in range(ends[e - begin, 0], ends[e - begin + 1, 0]):
                results[found] = matches[k]
                found += 1
            for k in range(ends[e - begin, 1], ends[e - begin + 1, 1]):
                candidates[total] = filters[k]
                total += 1
                _fetch_later(segment, filters, k, ends[ahead - begin, 1])
        if some_gone:
            found = _drop_gone(gone, expires, now, version, results, start, found)
        if with_others:
            fetched = total
            total = _candidates(
                segment, events, string_id, e, version, room.pairs, candidates, total
            )
            _fetch_checks(segment, candidates[fetched:total])
        for k in range(total):
            f = candidates[k]
            subscription = owner[f]
            if some_gone and _is_gone(gone, expires, subscription, now, version):
                continue
            answer = _check_all(segment, events, string_id, item_id, e, f, room.pairs)
            if answer == NO:
                continue
            if answer == YES:
                results[found] = subscription
                found += 1
                continue
            if unsure == uncertain.shape[0]:
                return e, start, sure
            uncertain[unsure, 0] = s
            uncertain[unsure, 1] = e
            uncertain[unsure, 2] = f
            unsure += 1
        if not once:
            found = _sort_distinct(results, start, found, seen)
        room.counts[CANDIDATES] += total
        stops[e] = found
    return stops.shape[0], found, unsure


@kernel
def _words_of(segment, events, room_handle):
    """What a segment's vocabularies know of some events."""
    columns, count = events.arrays.string_start.shape
    items = events.arrays.item_start.shape[0] - 1
    signatures = segment.arrays.combined.start.shape[0] - 1
    strings = segment.arrays.posts.string_columns.shape[0]
    sizes = (columns * count, items, signatures * count, strings * (items + count))
    numbers = room_handle.arrays.numbers
    if numbers.shape[0] < sum(sizes):  # of many events, which are not kept
        numbers = np.empty(sum(sizes), np.int64)
    string_id, numbers = numbers[: sizes[0]].reshape(columns, count), numbers[sizes[0] :]
    item_id, numbers = numbers[: sizes[1]], numbers[sizes[1] :]
    combined, numbers = numbers[: sizes[2]].reshape(signatures, count), numbers[sizes[2] :]
    with_string = numbers[: sizes[3]].reshape(strings, items + count)
    vocabulary = segment.arrays.vocabulary
    text = events.arrays.text
    start, stop = events.arrays.string_start, events.arrays.string_stop
    look_up_all(vocabulary, text, start.reshape(-1), stop.reshape(-1), string_id.reshape(-1))
    item_start = events.arrays.item_start
    look_up_all(vocabulary, text, item_start[:-1], item_start[1:], item_id)
    if signatures > 0:
        words_of_events(segment.arrays.combined, string_id, combined)
    if strings > 0:
        words_with_strings(segment.arrays.posts, events.arrays, string_id, item_id, with_string)
    return EventWords(string_id, item_id, combined, with_string)


@uncounted
def _has_others(segment):
    """Whether filters stand elsewhere than in the posts, and among the regions."""
    return (
        segment.arrays.tree_column.shape[0]
        + segment.arrays.interval_column.shape[0]
        + segment.arrays.post_key.shape[0]
        + segment.arrays.scan.shape[0]
        > 0
    )


@separate
@uncounted
def _walked(segment, events, e, direct, room, out, found):
    """Append what event e finds among the regions: the subscriptions that ask for nothing else
    but a relation that it has, or the filters that ask for more.
    """
    for t in range(segment.arrays.region_column.shape[0]):
        row = events.arrays.geometry[segment.arrays.region_column[t], e]
        if row >= 0 and (segment.arrays.region_direct[t] > 0) == direct:
            found = walk(
                segment.arrays.regions,
                t,
                events.arrays.shapes,
                row,
                segment.arrays.shapes,
                room,
                out,
                found,
            )
    return found


@inlined
def _is_gone(gone, expires, subscription, now, version):
    return gone[subscription] <= version or expires[subscription] <= now


@uncounted
def _drop_gone(gone, expires, now, version, results, start, stop):
    write = start
    for k in range(start, stop):
        results[write] = results[k]
        write += not _is_gone(gone, expires, results[k], now, version)
    return write


@uncounted
def look_up(segment_handle, text, start, stop, out):
    """out[k] = the number of the word text[start[k]:stop[k]]; -1 unknown, -2 if start[k] < 0."""
    look_up_all(segment_handle.arrays.vocabulary, text, start, stop, out)


@kernel
def _sort_distinct(results, start, stop, seen):
    """Sort the subscriptions of one event and drop repetitions; where they end."""
    if stop - start < 2:
        return stop
    if _DENSE * (stop - start) >= seen.shape[0]:
        return _sort_by_bits(results, start, stop, seen)
    if stop - start <= _FEW:
        return _sort_few(results, start, stop)
    part = np.sort(results[start:stop])
    write = start
    for k in range(part.shape[0]):
        if k == 0 or part[k] != part[k - 1]:
            results[write] = part[k]
            write += 1
    return write


@inlined
def _sort_few(results, start, stop):
    """The same by insertion."""
    write = start
    for k in range(start, stop):
        own = results[k]
        at = write
        while at > start and results[at - 1] > own:
            at -= 1
        if at > start and results[at - 1] == own:
            continue
        for j in range(write, at, -1):
            results[j] = results[j - 1]
        results[at] = own
        write += 1
    return write


@uncounted
def _sort_by_bits(results, start, stop, seen):
    """The same by way of a bit for each subscription; leaves all bits 0."""
    one = np.uint64(1)
    for k in range(start, stop):
        seen[results[k] >> 6] |= one << np.uint64(results[k] & 63)
    write = start
    for w in range(seen.shape[0]):
        word = seen[w]
        if word == 0:
            continue
        seen[w] = 0
        while word:
            rest = word & (word - one)
            results[write] = 64 * w + _BIT[(word ^ rest) % np.uint64(67)]
            write += 1
            word = rest
    return write


@separate
@uncounted
def _candidates(segment, events, string_id, e, version, room, out, count):
    """Append the filters that event e may satisfy, but for those of posts and regions."""
    for t in range(segment.arrays.tree_column.shape[0]):
        row = events.arrays.geometry[segment.arrays.tree_column[t], e]
        if row >= 0:
            box = events.arrays.shapes.shapes[row]
            count += search(
                segment.arrays.trees,
                t,
                box["x0"],
                box["y0"],
                box["x1"],
                box["y1"],
                room.stack,
                out[count:],
            )
    for t in range(segment.arrays.interval_column.shape[0]):
        column = segment.arrays.interval_column[t]
        if segment.arrays.interval_source[t] == NUMBERS:
            value = events.arrays.number[column, e]
            if np.isnan(value):
                continue
        else:
            first = events.arrays.string_start[column, e]
            if first < 0:
                continue
            value = place_of_string(
                events.arrays.text,
                first,
                events.arrays.string_stop[column, e],
                segment.arrays.interval_source[t],
            )
        count += search(
            segment.arrays.intervals, t, value, 0.0, value, 0.0, room.stack, out[count:]
        )
    if segment.arrays.post_key.shape[0] > 0:
        for column in range(string_id.shape[0]):
            if string_id[column, e] >= 0:
                count = _posted(
                    segment, post_key(STRINGS, column, string_id[column, e]), out, count
                )
        for column in range(events.arrays.truth.shape[0]):
            if events.arrays.truth[column, e] >= 0:
                count = _posted(
                    segment, post_key(TRUTHS, column, events.arrays.truth[column, e]), out, count
                )
        for column in range(events.arrays.missing.shape[0]):
            if events.arrays.missing[column, e]:
                count = _posted(segment, post_key(ABSENCES, column, 1), out, count)
    growing = segment.arrays.born.shape[0] > 0
    for k in range(segment.arrays.scan.shape[0]):
        if growing:
            subscription = segment.arrays.filter_subscription[segment.arrays.scan[k]]
            if segment.arrays.born[subscription] > version:
                break
        column = segment.arrays.scan_column[k]
        if column >= 0:
            row = events.arrays.geometry[column, e]
            if row < 0 or (
                events.arrays.shapes.shapes[row]["x0"] > segment.arrays.scan_box[k, 2]
                or events.arrays.shapes.shapes[row]["y0"] > segment.arrays.scan_box[k, 3]
                or events.arrays.shapes.shapes[row]["x1"] < segment.arrays.scan_box[k, 0]
                or events.arrays.shapes.shapes[row]["y1"] < segment.arrays.scan_box[k, 1]
            ):
                continue
        out[count] = segment.arrays.scan[k]
        count += 1
    return count


@inlined
def post_key(space, column, value):
    """What stands for a value of a column among the postings."""
    return np.uint64(space) << _SPACE | np.uint64(column) << _COLUMN | np.uint64(value)


@uncounted
def _posted(segment, key, out, count):
    """Append the filters that a value is posted for."""
    slot = np.searchsorted(segment.arrays.post_key, key)
    if slot < segment.arrays.post_key.shape[0] and segment.arrays.post_key[slot] == key:
        for k in range(segment.arrays.post_start[slot], segment.arrays.post_start[slot + 1]):
            out[count] = segment.arrays.post_filter[k]
            count += 1
    return count


@uncounted
def place_of_string(text, start, stop, source):
    """Where a string stands among all by its first few bytes, or its last ones read backwards."""
    place = np.int64(0)
    for k in range(PLACE_BYTES):
        byte = np.int64(0)
        if start + k < stop:
            byte = np.int64(text[stop - 1 - k] if source == ENDS else text[start + k])
        place = place << 8 | byte
    return np.float64(place)


@uncounted
def _fetch_checks(segment, filters):
    """Ask for what will be read of some filters, each array of all of them before the next."""
    filters = filters[:_FETCHED]
    for step in range(_STEPS):
        for k in range(filters.shape[0]):
            _fetch_step(segment, filters[k], step)


@inlined
def _fetch_later(segment, filters, k, stop):
    """Ask for what will be read of some of the filters after filter k, one step for each."""
    for step in range(_STEPS):
        later = k + _STRIDE * (_STEPS - step)
        if later < stop:
            _fetch_step(segment, filters[later], step)


@uncounted
def _fetch_first(segment, filters, stop):
    """The same for the first ones, which nobody has asked for yet."""
    for step in range(_STEPS):
        for k in range(min(stop, _STRIDE * (_STEPS - step))):
            _fetch_step(segment, filters[k], step)


@inlined
def _fetch_step(segment, f, step):
    """Ask for what is found by reading what was asked for in the step before."""
    filter_check = segment.arrays.filter_check
    if step == 0:
        prefetch(filter_check, np.int64(f))
        prefetch(segment.arrays.filter_subscription, np.int64(f))
        return
    checks = segment.arrays.checks
    shapes = segment.arrays.shapes
    for j in range(filter_check[f], filter_check[f + 1]):
        if step == 1:
            prefetch(checks, np.int64(j))
        elif checks[j]["kind"] == RELATE or checks[j]["kind"] == NEAR:
            item = np.int64(checks[j]["item"])
            if step == 2:
                prefetch(shapes.shapes, item)
                continue
            chain = np.int64(shapes.shapes[item]["chain"])
            if step == 3:
                prefetch(shapes.chains, chain)
                continue
            start = np.int64(shapes.chains[chain]["start"])
            for line in range(_LINES):
                prefetch(shapes.x, start + _LINE * line)
                prefetch(shapes.y, start + _LINE * line)


@separate
@uncounted
def _check_all(segment, events, string_id, item_id, e, f, room):
    """YES, NO, or CLOSE where only distances too close to call are left."""
    checks = segment.arrays.checks
    close = False
    for k in range(segment.arrays.filter_check[f], segment.arrays.filter_check[f + 1]):
        if checks[k]["flags"] & FOUND:
            continue
        kind = checks[k]["kind"]
        if kind == RANGE:
            answer = _range(checks[k], events, e)
        elif kind == MEMBER:
            answer = _member(segment, checks[k], string_id, e)
        elif kind == BOOLEAN:
            answer = _boolean(checks[k], events, e)
        elif kind == NULL:
            answer = YES if events.arrays.missing[checks[k]["column"], e] else NO
        elif kind == LIST:
            answer = _list(segment, checks[k], events, item_id, e)
        elif kind == RELATE:
            answer = _relate(segment, checks[k], events, e, room)
        elif kind == NEAR:
            answer = _near(segment, checks[k], events, e, room)
        else:
            answer = _text(segment, checks[k], events, e)
        if answer == CLOSE:
            close = True
        elif answer == UNKNOWN or (answer == YES) == (checks[k]["flags"] & NEGATED > 0):
            return NO
    return CLOSE if close else YES


@inlined
def _below(a, a_rest, b, b_rest):
    return a < b or (a == b and a_rest < b_rest)


@uncounted
def _range(check, events, e):
    value = events.arrays.number[check["column"], e]
    if np.isnan(value):
        return UNKNOWN
    rest = events.arrays.number_rest[check["column"], e]
    if _below(value, rest, check["low"], check["low_rest"]):
        return NO
    if _below(check["high"], check["high_rest"], value, rest):
        return NO
    if not check["flags"] & LOW_CLOSED and not _below(check["low"], check["low_rest"], value, rest):
        return NO
    if not check["flags"] & HIGH_CLOSED and not _below(
        value, rest, check["high"], check["high_rest"]
    ):
        return NO
    return YES


@uncounted
def _boolean(check, events, e):
    value = events.arrays.truth[check["column"], e]
    if value < 0:
        return UNKNOWN
    allowed = check["flags"] & (ALLOWS_TRUE if value else ALLOWS_FALSE)
    return YES if allowed else NO


@uncounted
def _member(segment, check, string_id, e):
    """string_id is -2 where the event has no string, -1 where no subscription knows it."""
    own = string_id[check["column"], e]
    if own < 0:
        return UNKNOWN if own == -2 else NO
    low = np.int64(segment.arrays.set_start[check["item"]])
    high = np.int64(segment.arrays.set_start[check["item"] + 1])
    return YES if _in_set(segment.arrays.set_items, low, high, own) else NO


@uncounted
def _in_set(items, low, high, item):
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < item:
            low = middle + 1
        elif items[middle] > item:
            high = middle
        else:
            return True
    return False


@uncounted
def _text(segment, check, events, e):
    start = events.arrays.string_start[check["column"], e]
    if start < 0:
        return UNKNOWN
    stop = events.arrays.string_stop[check["column"], e]
    words = segment.arrays.vocabulary
    low = np.int64(words.start[check["item"]])
    high = np.int64(words.start[check["item"] + 1])
    if check["kind"] == LIKE:
        return YES if like(words.bytes, low, high, events.arrays.text, start, stop) else NO
    order = compare(events.arrays.text, start, stop, words.bytes, low, high)
    if order == 0:
        return YES if check["flags"] & OR_EQUAL else NO
    return YES if (order < 0) == (check["flags"] & LESS > 0) else NO


@uncounted
def _list(segment, check, events, item_id, e):
    """The event's items are distinct; those that no subscription knows have the id -1."""
    kind = events.arrays.list_kind[check["column"], e]
    if kind == NO_LIST or (kind == TEXT and not check["flags"] & TOKENS):
        return UNKNOWN
    # A list check owns two sets: the items as they are, and after it their words.
    own_set = check["item"] + (1 if kind == TEXT else 0)
    low = np.int64(segment.arrays.set_start[own_set])
    high = np.int64(segment.arrays.set_start[own_set + 1])
    start = events.arrays.list_start[check["column"], e]
    stop = events.arrays.list_stop[check["column"], e]
    function = check["function"]
    if low == high and (function == CONTAINS or function == OVERLAPS):
        return YES
    common = 0
    for k in range(start, stop):
        if item_id[k] >= 0 and _in_set(segment.arrays.set_items, low, high, item_id[k]):
            common += 1
    if function == CONTAINS:
        return YES if common == high - low else NO
    if function == CONTAINED_BY:
        return YES if common == stop - start else NO
    if function == EQUAL:
        return YES if common == stop - start and common == high - low else NO
    return YES if common > 0 else NO


@uncounted
def _relate(segment, check, events, e, room):
    a = events.arrays.geometry[check["column"], e]
    if a < 0:
        return UNKNOWN
    g = events.arrays.shapes
    h = segment.arrays.shapes
    b = np.int64(check["item"])
    a_dimension = g.shapes[a]["dimension"]
    b_dimension = h.shapes[b]["dimension"]
    if b_dimension == AREAS:
        if boxes_apart(g.shapes, a, h.shapes, b):
            code = DISJOINT
        elif a_dimension == AREAS:
            code = area_relation(g, a, h, b, room)
        elif a_dimension == POINTS and is_place(g.shapes, a):
            code = point_in_area(h, b, g.shapes[a]["x0"], g.shapes[a]["y0"], room.stack)
        else:
            code = relation_of_matrix(matrix_of(g, a, h, b, 0, room))
        mask = check["areas_mask"]
        if a_dimension == POINTS:
            mask = check["points_mask"]
        elif a_dimension != AREAS:
            mask = check["lines_mask"]
        return YES if (mask >> code) & 1 else NO
    m = matrix_of(g, a, h, b, 0 if check["function"] >= FIRST_EH else 1, room)
    if spatial_holds(check["function"], check["areas_mask"], m, a_dimension, b_dimension):
        return YES
    return NO


@uncounted
def _near(segment, check, events, e, room):
    a = events.arrays.geometry[check["column"], e]
    if a < 0:
        return UNKNOWN
    b = np.int64(check["item"])
    function = check["function"]
    if function == SAMEPLACE:
        answer = same_place(events.arrays.shapes, a, segment.arrays.shapes, b, check["low"])
    elif check["flags"] & ALL_OF_IT:
        if function < ON_WGS84:
            answer = all_within(events.arrays.shapes, a, segment.arrays.shapes, b, check["low"])
        else:
            answer = all_within_wgs84(
                events.arrays.shapes, a, segment.arrays.shapes, b, check["low"], room
            )
    elif function < ON_WGS84:
        answer = within(events.arrays.shapes, a, segment.arrays.shapes, b, check["low"], room)
    elif function == ON_WGS84 + SAMEPLACE:
        answer = same_place_wgs84(events.arrays.shapes, a, segment.arrays.shapes, b, check["low"])
    else:
        answer = within_wgs84(events.arrays.shapes, a, segment.arrays.shapes, b, check["low"], room)
    if answer == 2:
        return CLOSE
    return YES if (answer == 1) != (function % ON_WGS84 == BEYOND) else NO
