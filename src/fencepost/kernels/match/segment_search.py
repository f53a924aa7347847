"""Search of segments: candidates from the access paths, then evaluation of their checks.

Each filter of a segment stands under one access path:

- *words*: it needs words in a list or text (`posting_search`);
- *signature*: it needs several strings, or strings and a box (`signature_keys`);
- *region*: it needs a relation to an area, which the walk decides (`region_walk`);
- *box*: it needs contact with, or nearness to, another geometry; a tree has its box;
- *equality*: it needs one of some strings, a truth value, or that an attribute is missing;
- *interval*: it needs a number in an interval, or a string with a prefix or suffix;
- *scan*: any other filter; every event visits it.

Some filters are decided by their access path: a relation to an area alone, words and contact with a
rectangle, strings and a rectangle or the distance to a point. Each other filter that is found is a
candidate. Its checks are evaluated in order, the cheapest first, up to the first that is not true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index.posting_arrays import PostingArrays, is_outside_group
from fencepost.kernels.index.rtree import RTreeArrays, search
from fencepost.kernels.match.check_evaluation import NO, YES, check_all
from fencepost.kernels.match.check_prefetch import prefetch_ahead, prefetch_checks, prefetch_first
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

# Numbers of scratch: for each item and event whose keys are looked up, and for each nearby item.
_NUMBERS_PER_KEY = NUMBERS_PER_KEY
_NUMBERS_PER_ITEM = 4

# The spaces of equality keys, and the sources of intervals.
STRINGS, TRUTHS, ABSENCES = range(3)
NUMBERS, PREFIXES, SUFFIXES = range(3)
PREFIX_BYTES = 6  # a double holds an integer of this many bytes exactly
_FULL = -1  # returned where `uncertain` is full
_MIN_UNSORTED = 16  # from this many results on, sorting rows saves time in naming them
_SPACE, _COLUMN = np.uint64(62), np.uint64(32)  # the bits where these parts of a key begin


class SegmentArrays(NamedTuple):
    """A segment: subscriptions, their filters and checks, and the access paths to filters.

    Only `deleted_version` and `state` change. A memtable also appends rows to its other arrays.
    """

    checks: NDArray[np.void]  # CHECK
    filter_check: NDArray[np.uint32]  # filter f owns checks filter_check[f]:filter_check[f + 1]
    filter_subscription: NDArray[np.uint32]
    deleted_version: NDArray[np.uint32]  # of each subscription: the version that deletes it
    created_version: NDArray[np.uint32]  # of a memtable: the version that creates it, ascending
    expires: NDArray[np.int64]  # nanoseconds since 1970
    set_start: NDArray[np.uint32]  # set s is set_items[set_start[s]:set_start[s + 1]]
    set_items: NDArray[np.uint32]  # vocabulary ids, ascending
    equality_key: NDArray[np.uint64]  # ascending; key k has the filters
    equality_start: NDArray[np.uint32]  # equality_filter[equality_start[k]:equality_start[k + 1]]
    equality_filter: NDArray[np.uint32]
    tree_column: NDArray[np.uint32]  # of each tree of `trees`: a geometry column
    interval_source: NDArray[np.uint8]  # of each tree of `intervals`: NUMBERS, PREFIXES or SUFFIXES
    interval_column: NDArray[np.uint32]  # of each tree: a number or string column
    scan: NDArray[np.uint32]  # filters that every event visits
    scan_column: NDArray[np.int32]  # the geometry column that must meet the box; -1 without a box
    scan_box: NDArray[np.float64]  # (blocks, 4, WIDTH): the boxes, or NaN
    scan_free: NDArray[np.uint16]  # (blocks,): a bit for each filter without a box
    path: NDArray[np.uint8]  # of each filter: see `engine.selectivity.AccessPath`
    selectivity: NDArray[np.float32]  # of each filter: the expected part of events that find it
    state: NDArray[np.int64]  # deleted rows and other numbers: see `match_scratch`
    region_column: NDArray[np.uint32]  # of each tree of `regions`: a geometry column
    region_direct: NDArray[np.uint8]  # likewise 1: owners are subscriptions; 0: filters
    signatures: SignatureArrays
    postings: PostingArrays
    regions: RegionArrays
    trees: RTreeArrays
    intervals: RTreeArrays  # of boxes without height
    vocabulary: Vocabulary
    shapes: ShapeArrays


class EventArrays(NamedTuple):
    """Events as columns, by storage: arrays of (columns of that storage, events)."""

    number: NDArray[np.float64]  # NaN for no number
    number_rest: NDArray[np.float64]  # the number is the sum of both
    truth: NDArray[np.int8]  # 0, 1, or -1 for unknown
    missing: NDArray[np.uint8]  # 1 if the attribute is missing
    string_start: NDArray[np.int64]  # in `text`; -1 for no string
    string_stop: NDArray[np.int64]
    geometry: NDArray[np.int64]  # a row of `shapes`, or -1
    list_kind: NDArray[np.uint8]  # NO_LIST, ITEMS or TEXT
    list_start: NDArray[np.int64]  # a number of an item; the items of a list are distinct
    list_stop: NDArray[np.int64]
    item_start: NDArray[np.int64]  # item k is text[item_start[k]:item_start[k + 1]]
    text: NDArray[np.uint8]
    shapes: ShapeArrays


@kernel
def match_events(segments, events_ref, scratch_ref, now, version):
    """Match events with the subscriptions of some segments.

    Parameters
    ----------
    segments : list of struct references to SegmentArrays
    events_ref, scratch_ref : struct references
        EventArrays, and the MatchScratch of the calling thread.
    now : int
        Nanoseconds since 1970; subscriptions that expire up to then do not match.
    version : uint32
        Subscriptions that this version or an earlier one deletes do not match, nor do those that a
        later version creates.

    Returns
    -------
    results : uint32
        The rows of the subscriptions that match, each once, by segment and then by event.
    stops : (segments, events) int64
        Where the results of each event end.
    uncertain : (n, 3) uint32
        Segment, event, filter: the filter is true but for distances too close to call.
    """
    stops = np.empty((len(segments), events_ref.arrays.geometry.shape[1]), np.int64)
    result_count, uncertain_count = match_segments(
        segments, events_ref, scratch_ref, now, version, stops
    )
    scratch = scratch_ref.arrays
    return scratch.results[:result_count].copy(), stops, scratch.uncertain[:uncertain_count].copy()


@outlined(returns=types.UniTuple(types.int64, 2))
@kernel
def match_segments(segments, events_ref, scratch_ref, now, version, stops):
    """Match like `match_events`, but leave results and uncertain filters in the scratch.

    `stops` is filled. Returns the number of results, and of uncertain filters.
    """
    result_count = np.int64(0)
    uncertain_count = np.int64(0)
    for s in range(len(segments)):
        sizes = required_sizes(segments[s], events_ref)
        if not is_large_enough(scratch_ref, sizes):
            grow(scratch_ref, sizes)
        keys = _look_up_keys(segments[s], events_ref, scratch_ref, len(segments) > 1)
        result_count, uncertain_count = _match_segment(
            segments[s],
            s,
            events_ref,
            keys,
            scratch_ref,
            now,
            version,
            result_count,
            uncertain_count,
            stops[s],
        )
    counts = scratch_ref.arrays.counts
    counts[EVENTS] += stops.shape[1]
    counts[MATCHES] += result_count
    counts[UNCERTAIN] += uncertain_count
    return result_count, uncertain_count


@outlined(returns=types.UniTuple(types.int64, 2))
@kernel
def _match_segment(
    segment, s, events, keys, scratch_ref, now, version, result_count, uncertain_count, stops
):
    """Append the matches of all events in segment s.

    Returns the new counts of results and of uncertain filters.
    segment, events : struct references, as in all functions called here: passing the arrays of a
    segment takes 700 machine words a call, and longer than most checks.
    """
    e = np.int64(0)
    while True:
        e, result_count, uncertain_count = _match_from(
            segment,
            s,
            events,
            keys,
            scratch_ref,
            now,
            version,
            result_count,
            uncertain_count,
            stops,
            e,
        )
        if e == stops.shape[0]:
            return result_count, uncertain_count
        _grow_results(scratch_ref, max_candidates(segment), result_count, uncertain_count)


class EventKeys(NamedTuple):
    """The words and strings of events as numbers in the vocabularies of a segment."""

    string_id: NDArray[np.int64]  # (columns, events): -1 not in the vocabulary, -2 no string
    item_id: NDArray[np.int64]  # -1 not in the vocabulary
    signature_keys: NDArray[np.int64]  # (signatures, events), see `find_signature_keys`
    word_string_keys: NDArray[np.int64]  # see `find_word_string_keys`


@kernel
def _grow_results(scratch_ref, max_results, result_count, uncertain_count):
    """Enlarge `results` for `max_results` more or, if these fit already, enlarge `uncertain`."""
    old = scratch_ref.owned
    results, uncertain = old.results, old.uncertain
    if results.shape[0] - result_count < max_results:
        results = np.empty(2 * results.shape[0] + max_results, np.uint32)
        results[:result_count] = old.results[:result_count]
    else:
        uncertain = np.empty((2 * uncertain.shape[0] + 16, 3), np.uint32)
        uncertain[:uncertain_count] = old.uncertain[:uncertain_count]
    replace_arrays(
        scratch_ref,
        MatchScratch(
            trees=old.trees,
            postings=old.postings,
            posting_matches=old.posting_matches,
            points=old.points,
            numbers=old.numbers,
            candidates=old.candidates,
            seen=old.seen,
            results=results,
            uncertain=uncertain,
            counts=old.counts,
        ),
    )


@outlined(returns=types.UniTuple(types.int64, 3))
@no_refcount
def _match_from(
    segment, s, events, keys, scratch_ref, now, version, result_count, uncertain_count, stops, first
):
    """Append the matches of event `first` and later events, as long as they fit in the scratch.

    Returns the first event that was not matched, and the counts of results and uncertain filters.
    """
    scratch = scratch_ref.arrays
    results, candidates = scratch.results, scratch.candidates
    state = segment.arrays.state
    unique = state[UNIQUE] > 0
    has_dead_rows = state[DELETED_ROWS] > 0 or state[FIRST_EXPIRY] <= now
    deleted_version, expires = segment.arrays.deleted_version, segment.arrays.expires
    seen = scratch.seen[: (deleted_version.shape[0] + 63) >> 6]
    max_results = max_candidates(segment)
    has_regions = segment.arrays.region_column.shape[0] > 0
    has_postings = segment.arrays.postings.owner.shape[0] > 0
    has_other_paths = _has_other_paths(segment)
    points_begin = points_stop = first  # events whose points were searched for in the regions
    words_begin = words_stop = first  # events whose words were searched for in the postings
    for e in range(first, stops.shape[0]):
        first_result, first_uncertain = result_count, uncertain_count
        if results.shape[0] - result_count < max_results:  # every candidate may match
            return e, first_result, first_uncertain
        candidate_count = np.int64(0)
        if has_regions:
            if e >= points_stop:
                points_begin, points_stop = e, _find_points(segment, events, e, scratch)
            result_count, candidate_count = _take_regions(
                segment,
                events,
                e,
                scratch,
                points_begin,
                points_stop,
                results,
                candidates,
                result_count,
            )
        if has_postings:
            if e >= words_stop:
                words_begin, words_stop = (
                    e,
                    _find_posting_matches(segment, events, keys, e, scratch),
                )
            result_count, candidate_count = _take_posting_matches(
                segment, scratch, e - words_begin, words_stop - words_begin, results,
                candidates, result_count, candidate_count,
            )  # fmt: skip
        if has_dead_rows:
            result_count = _remove_dead_rows(
                deleted_version, expires, now, version, results, first_result, result_count
            )
        if has_other_paths:
            first_candidate = candidate_count
            candidate_count = _append_candidates(
                segment,
                events,
                keys.string_id,
                e,
                version,
                scratch.trees,
                candidates,
                candidate_count,
            )
            prefetch_checks(segment, candidates[first_candidate:candidate_count])
        result_count, uncertain_count = _check_candidates(
            segment, s, events, keys, e, scratch, candidates[:candidate_count], has_dead_rows, now,
            version, results, result_count, uncertain_count,
        )  # fmt: skip
        if uncertain_count < 0:
            return e, first_result, first_uncertain
        if not unique or result_count - first_result >= _MIN_UNSORTED:
            result_count = sort_distinct(results, first_result, result_count, seen)
        scratch.counts[CANDIDATES] += candidate_count
        stops[e] = result_count
    return stops.shape[0], result_count, uncertain_count


# Regions and postings are searched for batches of events. `_find_*` search for a batch and leave
# the hits in the scratch. `_take_*` take the hits of one event: they append the subscriptions that
# match to `results`, and the filters whose checks must be evaluated to `candidates`.


@inlined
def _find_points(segment, events, e, scratch):
    """Search the regions for the points of events from e on. Return the event after the batch."""
    stop = find_points(segment, events, e, scratch.trees.stack, scratch.points)
    if stop > e:
        prefetch_first(segment, scratch.points.hits_by_event[0], scratch.points.stops[0, stop - e])
    return stop


@inlined
def _take_regions(segment, events, e, scratch, begin, end, results, candidates, result_count):
    """Append what event e finds among the regions.

    Returns the new counts of results and candidates.
    begin, end : the batch of `_find_points`; for other events the regions are searched here.
    """
    candidate_count = np.int64(0)
    if e < end:
        k = e - begin
        for j in range(scratch.points.stops[1, k], scratch.points.stops[1, k + 1]):
            results[result_count] = scratch.points.hits_by_event[1, j]
            result_count += 1
        last = scratch.points.stops[0, end - begin]
        for j in range(scratch.points.stops[0, k], scratch.points.stops[0, k + 1]):
            candidates[candidate_count] = scratch.points.hits_by_event[0, j]
            candidate_count += 1
            prefetch_ahead(segment, scratch.points.hits_by_event[0], j, last)
    else:
        result_count = _append_regions(
            segment, events, e, True, scratch.trees, results, result_count
        )
        candidate_count = _append_regions(
            segment, events, e, False, scratch.trees, candidates, candidate_count
        )
        prefetch_checks(segment, candidates[:candidate_count])
    return result_count, candidate_count


@inlined
def _find_posting_matches(segment, events, keys, e, scratch):
    """Search the postings for a batch of events from e on. Return the event after the batch."""
    stop = find_posting_matches(
        segment, events, keys.item_id, keys.word_string_keys, keys.signature_keys, e, scratch.trees,
        scratch.postings, scratch.posting_matches,
    )  # fmt: skip
    prefetch_first(
        segment, scratch.posting_matches.candidates, scratch.posting_matches.stops[stop - e, 1]
    )
    return stop


@inlined
def _take_posting_matches(
    segment, scratch, k, count, results, candidates, result_count, candidate_count
):
    """Append what event k of a batch of `count` events found in the postings.

    Returns the new counts of results and candidates.
    """
    matches, filters, stops = (
        scratch.posting_matches.matches,
        scratch.posting_matches.candidates,
        scratch.posting_matches.stops,
    )
    for j in range(stops[k, 0], stops[k + 1, 0]):
        results[result_count] = matches[j]
        result_count += 1
    last = stops[count, 1]
    for j in range(stops[k, 1], stops[k + 1, 1]):
        candidates[candidate_count] = filters[j]
        candidate_count += 1
        prefetch_ahead(segment, filters, j, last)
    return result_count, candidate_count


@inlined
def _check_candidates(
    segment,
    s,
    events,
    keys,
    e,
    scratch,
    candidates,
    has_dead_rows,
    now,
    version,
    results,
    result_count,
    uncertain_count,
):
    """Append the subscriptions of candidates whose checks are true, and uncertain filters.

    Returns the new counts of results and of uncertain filters; `_FULL` for the latter if they do
    not fit.
    """
    deleted_version, expires = segment.arrays.deleted_version, segment.arrays.expires
    owner = segment.arrays.filter_subscription
    uncertain = scratch.uncertain
    for k in range(candidates.shape[0]):
        f = candidates[k]
        subscription = owner[f]
        if has_dead_rows and _is_dead(deleted_version, expires, subscription, now, version):
            continue
        answer = check_all(segment, events, keys.string_id, keys.item_id, e, f, scratch.trees)
        if answer == NO:
            continue
        if answer == YES:
            results[result_count] = subscription
            result_count += 1
            continue
        if uncertain_count == uncertain.shape[0]:
            uncertain_count = np.int64(_FULL)
            break
        uncertain[uncertain_count, 0] = s
        uncertain[uncertain_count, 1] = e
        uncertain[uncertain_count, 2] = f
        uncertain_count += 1
    return result_count, uncertain_count


@kernel
def _look_up_keys(segment, events, scratch_ref, one_of_many):
    """Look up the words and strings of events in the vocabularies of a segment.

    one_of_many : the segment is one of several. Many events may then be outside all of its boxes;
    their words are not looked up.
    """
    columns, count = events.arrays.string_start.shape
    items = _item_count(events)
    signatures = segment.arrays.signatures.start.shape[0] - 1
    strings = segment.arrays.postings.string_columns.shape[0]
    is_local = one_of_many and _has_only_local_postings(segment)
    sizes = (
        columns * count, items, signatures * count, strings * (items + count),
        columns * count + _NUMBERS_PER_ITEM * items if is_local else 0,
        _NUMBERS_PER_KEY * (items + count) if strings > 0
        else _NUMBERS_PER_KEY * count if signatures > 0 else 0,
    )  # fmt: skip
    numbers = scratch_ref.arrays.numbers
    if numbers.shape[0] < sum(sizes):  # for many events, new and not kept
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
    if is_local:
        start, numbers = numbers[: sizes[0]].reshape(columns, count), numbers[sizes[0] :]
        nearby, numbers = numbers[: _NUMBERS_PER_ITEM * items], numbers[_NUMBERS_PER_ITEM * items :]
        _look_up_nearby_items(
            segment, events, start, nearby.reshape(_NUMBERS_PER_ITEM, items), item_id
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
    return EventKeys(
        string_id=string_id,
        item_id=item_id,
        signature_keys=signature_keys,
        word_string_keys=word_string_keys,
    )


@no_refcount
def _item_count(events):
    """Return the number of items of the events; `item_start` may have room for more."""
    count = np.int64(0)
    for c in range(events.arrays.list_stop.shape[0]):
        for e in range(events.arrays.list_stop.shape[1]):
            count = max(count, events.arrays.list_stop[c, e])
    return count


@no_refcount
def _has_only_local_postings(segment):
    """Return whether all access paths are postings whose groups have boxes."""
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
def _look_up_nearby_items(segment, events, string_start, nearby, item_id):
    """Look up the items of those events that meet the box of a group.

    Parameters
    ----------
    string_start : (columns, events) int64
        Filled: where strings start, or -1 for the events that meet no box.
    nearby : (4, items) int64
        Scratch.
    item_id : (items,) int64
        Written for the items of events that meet a box.
    """
    postings = segment.arrays.postings
    arrays = events.arrays
    count = 0
    for e in range(string_start.shape[1]):
        distant = True
        for g in range(postings.groups.shape[0]):
            distant = distant and is_outside_group(postings, g, arrays, e)
        for c in range(string_start.shape[0]):
            string_start[c, e] = -1 if distant else arrays.string_start[c, e]
        if distant:
            continue
        for c in range(arrays.list_start.shape[0]):
            for k in range(arrays.list_start[c, e], arrays.list_stop[c, e]):
                nearby[0, count] = k
                nearby[1, count] = arrays.item_start[k]
                nearby[2, count] = arrays.item_start[k + 1]
                count += 1
    ids = nearby[3, :count]
    look_up_all(segment.arrays.vocabulary, arrays.text, nearby[1, :count], nearby[2, :count], ids)
    for k in range(count):
        item_id[nearby[0, k]] = ids[k]


@no_refcount
def has_regions_only(segment):
    """Return whether all filters of a segment stand under regions."""
    return segment.arrays.postings.owner.shape[0] == 0 and not _has_other_paths(segment)


@no_refcount
def drop_dead_rows(segment, now, version, results, start, stop):
    """Drop deleted and expired rows from results[start:stop]. Return where the rest ends.

    A row is dead if this version or an earlier one deletes it, or if it expires by `now`.
    """
    state = segment.arrays.state
    if state[DELETED_ROWS] == 0 and state[FIRST_EXPIRY] > now:
        return stop
    return _remove_dead_rows(
        segment.arrays.deleted_version, segment.arrays.expires, now, version, results, start, stop
    )


@no_refcount
def _has_other_paths(segment):
    """Return whether filters stand under other paths than postings and regions."""
    return (
        segment.arrays.tree_column.shape[0]
        + segment.arrays.interval_column.shape[0]
        + segment.arrays.equality_key.shape[0]
        + segment.arrays.scan.shape[0]
        > 0
    )


@outlined(returns=types.int64)
@no_refcount
def _append_regions(segment, events, e, direct, scratch, out, count):
    """Append what event e finds in the direct region trees, or in the others.

    The owners in direct trees are subscriptions, which match; in others they are filters.
    """
    for t in range(segment.arrays.region_column.shape[0]):
        row = events.arrays.geometry[segment.arrays.region_column[t], e]
        if row >= 0 and (segment.arrays.region_direct[t] > 0) == direct:
            count = walk(
                segment.arrays.regions,
                t,
                events.arrays.shapes,
                row,
                segment.arrays.shapes,
                scratch,
                out,
                count,
            )
    return count


@inlined
def _is_dead(deleted_version, expires, subscription, now, version):
    return deleted_version[subscription] <= version or expires[subscription] <= now


@no_refcount
def _remove_dead_rows(deleted_version, expires, now, version, results, start, stop):
    write = start
    for k in range(start, stop):
        results[write] = results[k]
        write += not _is_dead(deleted_version, expires, results[k], now, version)
    return write


@no_refcount
def look_up(segment_ref, text, start, stop, out):
    """Look up words text[start[k]:stop[k]] in a segment's vocabulary.

    Writes their numbers to `out`, -1 for unknown words and -2 where start[k] is negative.
    """
    look_up_all(segment_ref.arrays.vocabulary, text, start, stop, out)


@outlined(returns=types.int64)
@no_refcount
def _append_candidates(segment, events, string_id, e, version, scratch, out, count):
    """Append the filters that event e finds by all paths but postings and regions.

    Returns the new number of candidates.
    """
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
    """Append the scanned filters whose boxes, if any, event e meets."""
    geometry, shapes = events.arrays.geometry, events.arrays.shapes.shapes
    owner, created_version = segment.arrays.filter_subscription, segment.arrays.created_version
    is_memtable = created_version.shape[0] > 0
    for block in range(segment.arrays.scan_free.shape[0]):
        first = WIDTH * block
        if is_memtable and created_version[owner[segment.arrays.scan[first]]] > version:
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
            if is_memtable and created_version[owner[f]] > version:
                break
            out[count] = f
            count += 1
    return count


@inlined
def equality_key(space, column, value):
    """Return the key of the equality postings of a column's value."""
    return np.uint64(space) << _SPACE | np.uint64(column) << _COLUMN | np.uint64(value)


@no_refcount
def _append_equality_postings(segment, key, out, count):
    """Append the filters posted under a key."""
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
    """Return a number that orders strings by their first `PREFIX_BYTES` bytes.

    source : PREFIXES, or SUFFIXES for the last bytes, read backwards.
    """
    number = np.int64(0)
    for k in range(PREFIX_BYTES):
        byte = np.int64(0)
        if start + k < stop:
            byte = np.int64(text[stop - 1 - k] if source == SUFFIXES else text[start + k])
        number = number << 8 | byte
    return np.float64(number)
