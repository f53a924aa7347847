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

from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index.posting_arrays import PostingArrays, is_outside_group
from fencepost.kernels.index.rtree import RTreeArrays, search
from fencepost.kernels.match.check_evaluation import NO, YES, check_all
from fencepost.kernels.match.check_prefetch import fetch_checks, fetch_first, fetch_later
from fencepost.kernels.match.match_scratch import (
    CANDIDATES,
    DELETED_ROWS,
    EVENTS,
    FIRST_EXPIRY,
    MATCHES,
    UNCERTAIN,
    UNIQUE,
    MatchScratch,
    grow,
    is_large_enough,
    max_candidates,
    required_sizes,
)
from fencepost.kernels.match.posting_matches import find_posting_matches
from fencepost.kernels.match.region_points import find_points
from fencepost.kernels.match.region_walk import RegionArrays, walk
from fencepost.kernels.match.result_pairs import sort_distinct
from fencepost.kernels.match.signature_keys import SignatureArrays, find_signature_keys
from fencepost.kernels.match.word_string_keys import NUMBERS_PER_KEY, find_word_string_keys
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH, block_meeting, lowest
from fencepost.kernels.runtime.struct_references import replace_arrays
from fencepost.kernels.text.vocabulary import Vocabulary, look_up_all

_NUMBERS_PER_KEY = (
    NUMBERS_PER_KEY  # numbers of scratch for what is looked up of an item or event, with others
)
_NUMBERS_PER_ITEM = 4  # and for an item alone

# What the postings are of, and the intervals.
STRINGS, TRUTHS, ABSENCES = range(3)
NUMBERS, PREFIXES, SUFFIXES = range(3)
PREFIX_BYTES = 6  # so many bytes of a string are a whole number that a double holds
_FULL = -1
_MIN_UNSORTED = 16  # results in the order of rows are named, and sorted by name, in less time
_SPACE, _COLUMN = np.uint64(62), np.uint64(32)


class SegmentArrays(NamedTuple):
    """Subscriptions, ready to be matched."""

    checks: NDArray[np.void]  # CHECK
    filter_check: NDArray[np.uint32]  # filter f owns checks filter_check[f]:filter_check[f + 1]
    filter_subscription: NDArray[np.uint32]
    deleted_version: NDArray[np.uint32]  # one a subscription: from which version on it is removed
    created_version: NDArray[
        np.uint32
    ]  # from which on it is there, ascending; of none if of all versions
    expires: NDArray[np.int64]  # nanoseconds since 1970
    set_start: NDArray[np.uint32]  # set s is set_items[set_start[s]:set_start[s + 1]]
    set_items: NDArray[np.uint32]  # vocabulary ids, ascending
    equality_key: NDArray[np.uint64]  # ascending, see `equality_key`
    equality_start: NDArray[np.uint32]
    equality_filter: NDArray[np.uint32]
    tree_column: NDArray[np.uint32]  # the geometry column of each tree
    interval_source: NDArray[np.uint8]  # of each tree of intervals: NUMBERS, PREFIXES or SUFFIXES
    interval_column: NDArray[np.uint32]
    scan: NDArray[np.uint32]  # filters under no other path
    scan_column: NDArray[np.int32]  # the geometry column that must meet a box, or -1
    scan_box: NDArray[np.float64]  # (blocks, 4, WIDTH): the boxes, NaN where none is asked for
    scan_free: NDArray[np.uint16]  # of each block, bits: those that ask for none
    path: NDArray[np.uint8]  # of each filter
    selectivity: NDArray[
        np.float32
    ]  # of each filter: of the events, how many are expected to find it
    state: NDArray[np.int64]  # how many were removed, and others: see `rooms`
    region_column: NDArray[np.uint32]  # the geometry column of each tree of regions
    region_direct: NDArray[np.uint8]  # 1: its owners are subscriptions that match; 0: filters
    signatures: SignatureArrays
    postings: PostingArrays
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
def match_events(segments, events_ref, scratch_ref, now, version):
    """Match events with the subscriptions of some segments.

    segments : list of handles of SegmentArrays. events_ref : of EventArrays.
    scratch_ref : of the calling thread's MatchScratch. now : subscriptions that expire by then are gone.
    version : uint32; and those that are removed by this one.

    Returns
    -------
    results : uint32, for each segment the subscriptions of event after event, each once.
    stops : (segments, events) int64, where those of each event end.
    uncertain : (n, 3) uint32 of (segment, event, filter): true but for distances too close to call.
    """
    stops = np.empty((len(segments), events_ref.arrays.geometry.shape[1]), np.int64)
    found, unsure = match_segments(segments, events_ref, scratch_ref, now, version, stops)
    scratch = scratch_ref.arrays
    return scratch.results[:found].copy(), stops, scratch.uncertain[:unsure].copy()


@outlined
@kernel
def match_segments(segments, events_ref, scratch_ref, now, version, stops):
    """The same, left in the scratch's `results` and `uncertain`; how many there are of both."""
    found = np.int64(0)
    unsure = np.int64(0)
    for s in range(len(segments)):
        needed = required_sizes(segments[s], events_ref)
        if not is_large_enough(scratch_ref, needed):
            grow(scratch_ref, needed)
        words = _look_up_words(segments[s], events_ref, scratch_ref, len(segments) > 1)
        found, unsure = _match_segment(
            segments[s], s, events_ref, words, scratch_ref, now, version, found, unsure, stops[s]
        )
    counts = scratch_ref.arrays.counts
    counts[EVENTS] += stops.shape[1]
    counts[MATCHES] += found
    counts[UNCERTAIN] += unsure
    return found, unsure


@outlined
@kernel
def _match_segment(segment, s, events, words, scratch_ref, now, version, found, unsure, stops):
    """Append what the events find in segment s; how many results and uncertain ones there are.

    segment, events : handles, as in what is called here: as arguments of a call the arrays of a
    segment are 700 machine words, which takes longer than most checks.
    """
    e = np.int64(0)
    while True:
        e, found, unsure = _match_from(
            segment, s, events, words, scratch_ref, now, version, found, unsure, stops, e
        )
        if e == stops.shape[0]:
            return found, unsure
        _grow_results(scratch_ref, max_candidates(segment), found, unsure)


class EventWords(NamedTuple):
    """What a segment's vocabularies know of events."""

    string_id: NDArray[np.int64]  # (columns, events): -1 unknown, -2 no string
    item_id: NDArray[np.int64]
    signature_keys: NDArray[np.int64]  # (signatures, events), see `find_signature_keys`
    word_string_keys: NDArray[np.int64]  # see `find_word_string_keys`


@kernel
def _grow_results(scratch_ref, most, found, unsure):
    """Let there be scratch for so many results more, or if there is, for uncertain ones."""
    own = scratch_ref.owned
    results, uncertain = own.results, own.uncertain
    if results.shape[0] - found < most:
        results = np.empty(2 * results.shape[0] + most, np.uint32)
        results[:found] = own.results[:found]
    else:
        uncertain = np.empty((2 * uncertain.shape[0] + 16, 3), np.uint32)
        uncertain[:unsure] = own.uncertain[:unsure]
    replace_arrays(
        scratch_ref,
        MatchScratch(
            trees=own.trees,
            postings=own.postings,
            posting_matches=own.posting_matches,
            points=own.points,
            numbers=own.numbers,
            candidates=own.candidates,
            seen=own.seen,
            results=results,
            uncertain=uncertain,
            counts=own.counts,
        ),
    )


@outlined
@no_refcount
def _match_from(segment, s, events, words, scratch_ref, now, version, found, unsure, stops, first):
    """Append what the events from `first` on find, as long as there is scratch.

    Returns the first event that there is none for, and how many results and uncertain ones those
    before it have.
    """
    scratch = scratch_ref.arrays
    results, candidates = scratch.results, scratch.candidates
    state = segment.arrays.state
    once = state[UNIQUE] > 0
    has_dead_rows = state[DELETED_ROWS] > 0 or state[FIRST_EXPIRY] <= now
    deleted_version, expires = segment.arrays.deleted_version, segment.arrays.expires
    seen = scratch.seen[: (deleted_version.shape[0] + 63) >> 6]
    most = max_candidates(segment)
    with_regions = segment.arrays.region_column.shape[0] > 0
    with_posts = segment.arrays.postings.owner.shape[0] > 0
    with_others = _has_other_paths(segment)
    points_from = points_to = first  # points of these events have been looked for in the regions,
    posts_from = posts_to = first  # and the words of these in the posts
    for e in range(first, stops.shape[0]):
        start, sure = found, unsure
        if results.shape[0] - found < most:  # every filter may match
            return e, start, sure
        total = np.int64(0)
        if with_regions:
            if e >= points_to:
                points_from, points_to = e, _find_points(segment, events, e, scratch)
            found, total = _take_regions(
                segment, events, e, scratch, points_from, points_to, results, candidates, found
            )
        if with_posts:
            if e >= posts_to:
                posts_from, posts_to = e, _find_posting_matches(segment, events, words, e, scratch)
            found, total = _take_posting_matches(
                segment, scratch, e - posts_from, posts_to - posts_from, results, candidates, found,
                total,
            )  # fmt: skip
        if has_dead_rows:
            found = _drop_dead_rows(deleted_version, expires, now, version, results, start, found)
        if with_others:
            fetched = total
            total = _append_candidates(
                segment, events, words.string_id, e, version, scratch.trees, candidates, total
            )
            fetch_checks(segment, candidates[fetched:total])
        found, unsure = _check_candidates(
            segment, s, events, words, e, scratch, candidates[:total], has_dead_rows, now, version,
            results, found, unsure,
        )  # fmt: skip
        if unsure < 0:
            return e, start, sure
        if not once or found - start >= _MIN_UNSORTED:
            found = sort_distinct(results, start, found, seen)
        scratch.counts[CANDIDATES] += total
        stops[e] = found
    return stops.shape[0], found, unsure


# What finds something ahead of its turn leaves it in the scratch; what takes it appends to `results`
# the subscriptions that match, and to `candidates` the filters that are still to be checked.


@inlined
def _find_points(segment, events, e, scratch):
    """Look for points of events from e on in the regions; up to which event that was done."""
    stop = find_points(segment, events, e, scratch.trees.stack, scratch.points)
    if stop > e:
        fetch_first(segment, scratch.points.found[0], scratch.points.stops[0, stop - e])
    return stop


@inlined
def _take_regions(segment, events, e, scratch, begin, end, results, candidates, found):
    """Append what event e finds among the regions: points begin:end were looked for already."""
    total = np.int64(0)
    if e < end:
        k = e - begin
        for j in range(scratch.points.stops[1, k], scratch.points.stops[1, k + 1]):
            results[found] = scratch.points.found[1, j]
            found += 1
        last = scratch.points.stops[0, end - begin]
        for j in range(scratch.points.stops[0, k], scratch.points.stops[0, k + 1]):
            candidates[total] = scratch.points.found[0, j]
            total += 1
            fetch_later(segment, scratch.points.found[0], j, last)
    else:
        found = _append_regions(segment, events, e, True, scratch.trees, results, found)
        total = _append_regions(segment, events, e, False, scratch.trees, candidates, total)
        fetch_checks(segment, candidates[:total])
    return found, total


@inlined
def _find_posting_matches(segment, events, words, e, scratch):
    """Look for what is posted under words of events from e on; up to which event that was done."""
    stop = find_posting_matches(
        segment, events, words.item_id, words.word_string_keys, words.signature_keys, e, scratch.trees,
        scratch.postings, scratch.posting_matches,
    )  # fmt: skip
    fetch_first(
        segment, scratch.posting_matches.candidates, scratch.posting_matches.stops[stop - e, 1]
    )
    return stop


@inlined
def _take_posting_matches(segment, scratch, k, count, results, candidates, found, total):
    """Append what the k-th of `count` events found in the postings."""
    matches, filters, ends = (
        scratch.posting_matches.matches,
        scratch.posting_matches.candidates,
        scratch.posting_matches.stops,
    )
    for j in range(ends[k, 0], ends[k + 1, 0]):
        results[found] = matches[j]
        found += 1
    last = ends[count, 1]
    for j in range(ends[k, 1], ends[k + 1, 1]):
        candidates[total] = filters[j]
        total += 1
        fetch_later(segment, filters, j, last)
    return found, total


@inlined
def _check_candidates(
    segment,
    s,
    events,
    words,
    e,
    scratch,
    candidates,
    has_dead_rows,
    now,
    version,
    results,
    found,
    unsure,
):
    """Append the candidates whose checks are true, and to `uncertain` those too close to call.

    Returns how many there are of both; `_FULL` for the latter where there is none.
    """
    deleted_version, expires = segment.arrays.deleted_version, segment.arrays.expires
    owner = segment.arrays.filter_subscription
    uncertain = scratch.uncertain
    for k in range(candidates.shape[0]):
        f = candidates[k]
        subscription = owner[f]
        if has_dead_rows and _is_dead(deleted_version, expires, subscription, now, version):
            continue
        answer = check_all(segment, events, words.string_id, words.item_id, e, f, scratch.trees)
        if answer == NO:
            continue
        if answer == YES:
            results[found] = subscription
            found += 1
            continue
        if unsure == uncertain.shape[0]:
            unsure = np.int64(_FULL)
            break
        uncertain[unsure, 0] = s
        uncertain[unsure, 1] = e
        uncertain[unsure, 2] = f
        unsure += 1
    return found, unsure


@kernel
def _look_up_words(segment, events, scratch_ref, one_of_many):
    """What a segment's vocabularies know of some events.

    Of many segments, an event finds nothing at all in some.
    """
    columns, count = events.arrays.string_start.shape
    items = _item_count(events)
    signatures = segment.arrays.signatures.start.shape[0] - 1
    strings = segment.arrays.postings.string_columns.shape[0]
    placed = one_of_many and _has_only_local_postings(segment)
    sizes = (
        columns * count, items, signatures * count, strings * (items + count),
        columns * count + _NUMBERS_PER_ITEM * items if placed else 0,
        _NUMBERS_PER_KEY * (items + count) if strings > 0 else _NUMBERS_PER_KEY * count if signatures > 0 else 0,
    )  # fmt: skip
    numbers = scratch_ref.arrays.numbers
    if numbers.shape[0] < sum(sizes):  # of many events, which are not kept
        numbers = np.empty(sum(sizes), np.int64)
    string_id, numbers = numbers[: sizes[0]].reshape(columns, count), numbers[sizes[0] :]
    item_id, numbers = numbers[: sizes[1]], numbers[sizes[1] :]
    signature_keys, numbers = numbers[: sizes[2]].reshape(signatures, count), numbers[sizes[2] :]
    word_string_keys, numbers = (
        numbers[: sizes[3]].reshape(strings, items + count),
        numbers[sizes[3] :],
    )
    vocabulary = segment.arrays.vocabulary
    text = events.arrays.text
    start, stop = events.arrays.string_start, events.arrays.string_stop
    if placed:
        start, numbers = numbers[: sizes[0]].reshape(columns, count), numbers[sizes[0] :]
        near, numbers = numbers[: _NUMBERS_PER_ITEM * items], numbers[_NUMBERS_PER_ITEM * items :]
        _look_up_nearby_items(
            segment, events, start, near.reshape(_NUMBERS_PER_ITEM, items), item_id
        )
    else:
        item_start = events.arrays.item_start
        look_up_all(vocabulary, text, item_start[:items], item_start[1 : items + 1], item_id)
    look_up_all(vocabulary, text, start.reshape(-1), stop.reshape(-1), string_id.reshape(-1))
    if signatures > 0:
        find_signature_keys(segment.arrays.signatures, string_id, signature_keys, numbers)
    if strings > 0:
        find_word_string_keys(
            segment.arrays.postings, events.arrays, string_id, item_id, word_string_keys, numbers
        )
    return EventWords(
        string_id=string_id,
        item_id=item_id,
        signature_keys=signature_keys,
        word_string_keys=word_string_keys,
    )


@no_refcount
def _item_count(events):
    """How many items the lists of the events have; there may be scratch for more."""
    count = np.int64(0)
    for c in range(events.arrays.list_stop.shape[0]):
        for e in range(events.arrays.list_stop.shape[1]):
            count = max(count, events.arrays.list_stop[c, e])
    return count


@no_refcount
def _has_only_local_postings(segment):
    """Whether events can find nothing but what is posted, near them."""
    groups = segment.arrays.postings.groups
    for g in range(groups.shape[0]):
        if groups[g]["geometry_column"] < 0:
            return False
    return (
        groups.shape[0] > 0
        and segment.arrays.region_column.shape[0] == 0
        and not _has_other_paths(segment)
    )


@no_refcount
def _look_up_nearby_items(segment, events, string_start, near, item_id):
    """Write the numbers of the items of events that may find anything here, and only of those.

    string_start : where strings start; below 0 those of the other events. near : scratch.
    """
    postings = segment.arrays.postings
    given = events.arrays
    count = 0
    for e in range(string_start.shape[1]):
        distant = True
        for g in range(postings.groups.shape[0]):
            distant = distant and is_outside_group(postings, g, given, e)
        for c in range(string_start.shape[0]):
            string_start[c, e] = -1 if distant else given.string_start[c, e]
        if distant:
            continue
        for c in range(given.list_start.shape[0]):
            for k in range(given.list_start[c, e], given.list_stop[c, e]):
                near[0, count] = k
                near[1, count] = given.item_start[k]
                near[2, count] = given.item_start[k + 1]
                count += 1
    found = near[3, :count]
    look_up_all(segment.arrays.vocabulary, given.text, near[1, :count], near[2, :count], found)
    for k in range(count):
        item_id[near[0, k]] = found[k]


@no_refcount
def has_regions_only(segment):
    """Whether events find nothing in a segment but by their relations to regions."""
    return segment.arrays.postings.owner.shape[0] == 0 and not _has_other_paths(segment)


@no_refcount
def drop_dead_rows(segment, now, version, results, start, stop):
    """Drop what is removed by a version or expires by `now`; where what stays ends."""
    state = segment.arrays.state
    if state[DELETED_ROWS] == 0 and state[FIRST_EXPIRY] > now:
        return stop
    return _drop_dead_rows(
        segment.arrays.deleted_version, segment.arrays.expires, now, version, results, start, stop
    )


@no_refcount
def _has_other_paths(segment):
    """Whether filters stand elsewhere than in the postings, and among the regions."""
    return (
        segment.arrays.tree_column.shape[0]
        + segment.arrays.interval_column.shape[0]
        + segment.arrays.equality_key.shape[0]
        + segment.arrays.scan.shape[0]
        > 0
    )


@outlined
@no_refcount
def _append_regions(segment, events, e, direct, scratch, out, found):
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
                scratch,
                out,
                found,
            )
    return found


@inlined
def _is_dead(deleted_version, expires, subscription, now, version):
    return deleted_version[subscription] <= version or expires[subscription] <= now


@no_refcount
def _drop_dead_rows(deleted_version, expires, now, version, results, start, stop):
    write = start
    for k in range(start, stop):
        results[write] = results[k]
        write += not _is_dead(deleted_version, expires, results[k], now, version)
    return write


@no_refcount
def look_up(segment_ref, text, start, stop, out):
    """out[k] = the number of the word text[start[k]:stop[k]]; -1 unknown, -2 if start[k] < 0."""
    look_up_all(segment_ref.arrays.vocabulary, text, start, stop, out)


@outlined
@no_refcount
def _append_candidates(segment, events, string_id, e, version, scratch, out, count):
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
                scratch.stack,
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
            value = prefix_number(
                events.arrays.text,
                first,
                events.arrays.string_stop[column, e],
                segment.arrays.interval_source[t],
            )
        count += search(
            segment.arrays.intervals, t, value, 0.0, value, 0.0, scratch.stack, out[count:]
        )
    if segment.arrays.equality_key.shape[0] > 0:
        for column in range(string_id.shape[0]):
            if string_id[column, e] >= 0:
                count = _append_equality_postings(
                    segment, equality_key(STRINGS, column, string_id[column, e]), out, count
                )
        for column in range(events.arrays.truth.shape[0]):
            if events.arrays.truth[column, e] >= 0:
                count = _append_equality_postings(
                    segment,
                    equality_key(TRUTHS, column, events.arrays.truth[column, e]),
                    out,
                    count,
                )
        for column in range(events.arrays.missing.shape[0]):
            if events.arrays.missing[column, e]:
                count = _append_equality_postings(
                    segment, equality_key(ABSENCES, column, 1), out, count
                )
    return _append_scanned(segment, events, e, version, out, count)


@no_refcount
def _append_scanned(segment, events, e, version, out, count):
    """Append the filters under no other path, but for those whose boxes event e does not meet."""
    geometry, shapes = events.arrays.geometry, events.arrays.shapes.shapes
    owner, created_version = segment.arrays.filter_subscription, segment.arrays.created_version
    growing = created_version.shape[0] > 0
    for block in range(segment.arrays.scan_free.shape[0]):
        first = WIDTH * block
        if growing and created_version[owner[segment.arrays.scan[first]]] > version:
            break
        bits = int(segment.arrays.scan_free[block])
        for column in range(geometry.shape[0]):
            row = geometry[column, e]
            if row < 0:
                continue
            met = block_meeting(
                segment.arrays.scan_box, block, shapes[row]["x0"], shapes[row]["y0"],
                shapes[row]["x1"], shapes[row]["y1"],
            )  # fmt: skip
            while met:
                k = lowest(met)
                met &= met - 1
                if segment.arrays.scan_column[first + k] == column:
                    bits |= 1 << k
        while bits:
            f = segment.arrays.scan[first + lowest(bits)]
            bits &= bits - 1
            if growing and created_version[owner[f]] > version:
                break
            out[count] = f
            count += 1
    return count


@inlined
def equality_key(space, column, value):
    """What stands for a value of a column among the postings."""
    return np.uint64(space) << _SPACE | np.uint64(column) << _COLUMN | np.uint64(value)


@no_refcount
def _append_equality_postings(segment, key, out, count):
    """Append the filters that a value is posted for."""
    slot = np.searchsorted(segment.arrays.equality_key, key)
    if slot < segment.arrays.equality_key.shape[0] and segment.arrays.equality_key[slot] == key:
        for k in range(
            segment.arrays.equality_start[slot], segment.arrays.equality_start[slot + 1]
        ):
            out[count] = segment.arrays.equality_filter[k]
            count += 1
    return count


@no_refcount
def prefix_number(text, start, stop, source):
    """Where a string stands among all by its first few bytes, or its last ones read backwards."""
    place = np.int64(0)
    for k in range(PREFIX_BYTES):
        byte = np.int64(0)
        if start + k < stop:
            byte = np.int64(text[stop - 1 - k] if source == SUFFIXES else text[start + k])
        place = place << 8 | byte
    return np.float64(place)
