"""`build`: lays out keyword postings from rows; `direct_rows_of` returns the rows for a merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.index import posting_layout
from fencepost.kernels.index.posting_arrays import (
    DENSITY_BITS,
    GROUP,
    LIST,
    NOTHING,
    PADDING,
    PIECES,
    SIGNATURES,
    PostingArrays,
)
from fencepost.kernels.match.word_string_keys import KEY_NUMBERS
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.text import vocabulary

StepReporter: TypeAlias = Callable[[str], None]
Box: TypeAlias = tuple[float, float, float, float]
EVERYWHERE: Box = (-np.inf, -np.inf, np.inf, np.inf)
_SAMPLE_SIZE = 2**16  # boxes that determine a map of coordinates
_MAX_COUNTERS = 2**24


class PostingGroup(NamedTuple):
    """The properties that posted filters share; see `GROUP` of `kernels.index.posting_arrays`."""

    list_column: int  # the column of the words; -1 without words; or SIGNATURES
    geometry_column: int  # the column that must meet the box; -1 without boxes
    accepts: int  # kinds of attributes that are searched: ITEMS, TEXT or both
    direct: bool  # whether owners are subscriptions, and hits match; else owners are filters
    decides: int = NOTHING  # for SIGNATURES: what decides a hit
    string_column: int = -1  # the column that must have the string of the row
    number_column: int = -1  # the column whose number must be within the bounds of the row


class PostingRows(NamedTuple):
    """Filters to be posted, one per row."""

    groups: tuple[PostingGroup, ...]
    group: NDArray[np.int64]  # of each row: a position in `groups`
    owner: NDArray[np.int64]
    boxes: NDArray[np.float64]  # (n, 4)
    token_start: NDArray[np.int64]
    tokens: NDArray[np.int64]  # distinct within a row
    strings: NDArray[np.int64] = np.empty(0, np.int64)  # of each row, or -1; empty if all are -1
    bounds: NDArray[np.float64] = np.empty((0, 2))  # (n, 2), NaN without bounds; empty if all are


def rows_from(postings: Sequence[tuple[PostingGroup, int, Box, Sequence[int]]]) -> PostingRows:
    """Make rows of tuples (group, owner, box, tokens)."""
    groups = tuple(dict.fromkeys(group for group, *_ in postings))
    number = {group: k for k, group in enumerate(groups)}
    sizes = [0, *(len(tokens) for *_, tokens in postings)]
    return PostingRows(
        groups,
        np.array([number[group] for group, *_ in postings], np.int64),
        np.array([owner for _, owner, *_ in postings], np.int64),
        np.array([box for _, _, box, _ in postings], np.float64).reshape(-1, 4),
        np.cumsum(sizes, dtype=np.int64),
        np.array([token for *_, tokens in postings for token in tokens], np.int64),
    )


def concatenate(parts: list[PostingRows]) -> PostingRows:
    """Concatenate rows."""
    parts = [part for part in parts if len(part.group)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    groups = tuple(dict.fromkeys(group for part in parts for group in part.groups))
    numbers = [np.array([groups.index(group) for group in part.groups]) for part in parts]
    base = np.cumsum([0, *(len(part.tokens) for part in parts)])
    return PostingRows(
        groups,
        np.concatenate([n[part.group] for n, part in zip(numbers, parts, strict=True)]),
        np.concatenate([part.owner for part in parts]),
        np.concatenate([part.boxes for part in parts]),
        np.concatenate(
            [[0], *(part.token_start[1:] + b for b, part in zip(base, parts, strict=False))]
        ),
        np.concatenate([part.tokens for part in parts]),
        _concatenate_optional([part.strings for part in parts], parts, -1),
        _concatenate_optional([part.bounds for part in parts], parts, np.nan),
    )


def _concatenate_optional(
    values: list[NDArray[Any]], parts: list[PostingRows], fill: float
) -> NDArray[Any]:
    """Concatenate the values of rows; empty values are filled, unless all are empty."""
    if not any(map(len, values)):
        return values[0]
    return np.concatenate(
        [
            array if len(array) else np.full((len(part.group), *array.shape[1:]), fill, array.dtype)
            for array, part in zip(values, parts, strict=True)
        ]
    )


def ignore_step(step: str) -> None:
    """Ignore a step: the default of `report_step`."""


def build(
    rows: PostingRows, word_count: int, report_step: StepReporter = ignore_step
) -> PostingArrays:
    """Lay out the postings of rows, whose tokens are numbers below `word_count`.

    report_step : called with the name of each step.
    """
    report_step("choosing words")
    groups, group_of = _sort_groups(rows)
    knots = np.zeros((len(groups), 3, PIECES + 1))
    for number in range(len(groups)):
        members = np.flatnonzero(group_of == number)
        members = members[:: max(len(members) // _SAMPLE_SIZE, 1)]
        for axis in range(2):
            fit_knots(rows.boxes[members, axis::2], knots[number, axis])
        if len(rows.bounds):
            fit_knots(rows.bounds[members], knots[number, 2])
    images = np.empty((len(group_of), 4), np.uint16)
    posting_layout.write_images(rows.boxes, group_of, knots, images)
    bounds = np.empty((len(rows.bounds), 2), np.uint16)
    posting_layout.write_bound_images(rows.bounds, group_of, knots, bounds)
    posting_word, rest_start, rest = _choose_posting_words(rows, images, word_count)
    string_columns = sorted({group.string_column for group in groups} - {-1})
    string_index = np.array(
        [([-1, *string_columns].index(group.string_column)) - 1 for group in groups], np.int64
    )
    string_words, word_count = _combine_with_strings(
        rows.strings, string_index[group_of], posting_word, word_count
    )
    report_step("sorting lists")
    keys = np.empty(len(group_of), np.uint64)
    lists, list_of, list_words = _make_lists(group_of, posting_word, word_count)
    posting_layout.write_sort_keys(images, list_of, keys)
    order = np.argsort(keys, kind="stable")
    report_step("laying lists out")
    boxes = np.zeros(4 * len(group_of) + PADDING, np.uint16)
    entry_bounds = np.zeros(2 * len(bounds) + PADDING, np.uint16)
    entry_rest_start = np.empty(len(group_of) + 1, np.uint32)
    entry_rest = np.empty(len(rest), np.uint32)
    posting_layout.write_entries(
        images, bounds, order, rest_start, rest, lists, boxes, entry_bounds, entry_rest_start,
        entry_rest,
    )  # fmt: skip
    nodes, lists["node"] = _build_trees(boxes, lists["first"], lists["count"])
    lists, token_lists = _sort_by_word(lists, list_words, word_count)
    report_step("sorting boxes")
    entry_of = np.empty(len(order), np.uint32)
    entry_of[order] = np.arange(len(order))
    records, tokens, entries, spatial_boxes, spatial_nodes, density = _build_spatial_blocks(
        groups, group_of, images, posting_word, entry_of, word_count
    )
    records["strings"] = string_index
    for number in range(len(groups)):
        members = rows.boxes[group_of == number]
        records["x0"][number], records["y0"][number] = members[:, :2].min(0)
        records["x1"][number], records["y1"][number] = members[:, 2:].max(0)
    source_columns = [(group.list_column, group.string_column) for group in groups]
    records["source"] = [source_columns.index(columns) for columns in source_columns]
    return PostingArrays(
        token_lists=token_lists,
        lists=lists,
        groups=records,
        knots=knots,
        boxes=boxes,
        bounds=entry_bounds,
        nodes=nodes,
        rest_start=entry_rest_start,
        rest=entry_rest,
        owner=rows.owner[order].astype(np.uint32),
        exact=rows.boxes[order],
        spatial_tokens=tokens,
        spatial_entries=entries,
        spatial_boxes=spatial_boxes,
        spatial_nodes=spatial_nodes,
        density=density,
        string_columns=np.array(string_columns, np.uint32),
        string_words=string_words,
    )


def _sort_groups(rows: PostingRows) -> tuple[list[PostingGroup], NDArray[np.int64]]:
    """Return the groups that rows have, and for each row its position among them.

    Direct groups come first; then groups are sorted by list column and string column.
    """

    def sort_key(k: int) -> tuple[Any, ...]:
        group = rows.groups[k]
        return not group.direct, group.list_column, group.string_column, group

    numbers = sorted(np.unique(rows.group).tolist(), key=sort_key)
    rank = np.empty(len(rows.groups), np.int64)
    rank[numbers] = np.arange(len(numbers))
    return [rows.groups[k] for k in numbers], rank[rows.group]


def fit_knots(values: NDArray[np.float64], knots: NDArray[np.float64]) -> None:
    """Write knots that divide the finite values into `PIECES` pieces of equal size."""
    values = np.sort(values[np.isfinite(values)])
    if len(values):
        knots[:] = values[np.linspace(0, len(values) - 1, PIECES + 1).astype(np.int64)]


def _choose_posting_words(
    rows: PostingRows, images: NDArray[np.uint16], word_count: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]:
    """Return the posting word of each row, where its other words begin, and the other words."""
    counters = min(1 << max(4 * len(rows.tokens), 1).bit_length(), _MAX_COUNTERS)
    posting_word = np.empty(len(rows.group), np.uint32)
    rest_start = np.empty(len(rows.group) + 1, np.int64)
    rest = np.empty(len(rows.tokens), np.uint32)
    posting_layout.choose_posting_words(
        rows.token_start,
        rows.tokens,
        images,
        word_count,
        np.zeros(word_count, np.int64),
        np.zeros(counters, np.int32),
        rest,
        rest_start,
        posting_word,
    )
    return posting_word, rest_start, rest[: rest_start[-1]]


def _combine_with_strings(
    strings: NDArray[np.int64],
    column: NDArray[np.int64],
    posting_word: NDArray[np.uint32],
    word_count: int,
) -> tuple[vocabulary.Vocabulary, int]:
    """Replace the posting words of rows with a string by numbers for a string and a word.

    The new numbers follow the other words.

    Parameters
    ----------
    column : array
        Index of the string column of each row.
    posting_word : array
        Changed in place.

    Returns
    -------
    pairs : Vocabulary
        The (string column, string, word) that each new number stands for.
    total : int
        Number of words, the new ones included; also the new number for no word.
    """
    with_string = np.flatnonzero(strings >= 0)
    keys = np.column_stack(
        (column[with_string], strings[with_string], posting_word[with_string])
    ).astype(np.uint32)
    start = np.arange(len(keys) + 1) * keys.dtype.itemsize * KEY_NUMBERS
    pairs, ids = vocabulary.build(keys.reshape(-1).view(np.uint8), start)
    total = word_count + len(pairs.start) - 1
    posting_word[posting_word == word_count] = total
    posting_word[with_string] = word_count + ids
    return pairs, total


def _make_lists(
    group_of: NDArray[np.int64], posting_word: NDArray[np.uint32], word_count: int
) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """Make a list for each pair of a group and a posting word, sorted by group.

    Returns the lists, the list of each row, and the word of each list.
    """
    pairs, list_of, counts = np.unique(
        group_of * (word_count + 1) + posting_word, return_inverse=True, return_counts=True
    )
    lists = np.zeros(len(pairs), LIST)
    lists["first"] = np.cumsum(counts) - counts
    lists["count"] = counts
    lists["group"] = pairs // (word_count + 1)
    return lists, list_of, pairs % (word_count + 1)


def _sort_by_word(
    lists: NDArray[np.void], list_words: NDArray[np.int64], word_count: int
) -> tuple[NDArray[np.void], NDArray[np.uint32]]:
    """Return the lists sorted by word, and where the lists of each word begin."""
    order = np.argsort(list_words, kind="stable")
    starts = np.searchsorted(list_words[order], np.arange(word_count + 2))
    return lists[order], starts.astype(np.uint32)


def _build_trees(
    boxes: NDArray[np.uint16], firsts: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Return the nodes of trees over ranges of boxes, and where each tree begins."""
    firsts, counts = firsts.astype(np.int64), counts.astype(np.int64)
    sizes = np.empty(len(counts), np.int64)
    posting_layout.count_tree_boxes(counts, sizes)
    starts = np.cumsum(sizes) - sizes
    nodes = np.zeros(4 * sizes.sum() + PADDING, np.uint16)
    posting_layout.build_trees(boxes, firsts, counts, starts, nodes)
    return nodes, starts


def _build_spatial_blocks(
    groups: list[PostingGroup],
    group_of: NDArray[np.int64],
    images: NDArray[np.uint16],
    posting_word: NDArray[np.uint32],
    entry_of: NDArray[np.uint32],
    word_count: int,
) -> tuple[NDArray[Any], ...]:
    """Store the entries of each group once more, in blocks for the spatial search.

    Returns the `GROUP` records and the arrays `spatial_tokens`, `spatial_entries`, `spatial_boxes`,
    `spatial_nodes` and `density` of `PostingArrays`.
    """
    records = np.zeros(len(groups), GROUP)
    members = [
        np.flatnonzero(group_of == number)
        if 0 <= group.list_column < SIGNATURES
        else np.empty(0, np.int64)
        for number, group in enumerate(groups)
    ]
    blocks = np.array([len(rows) + WIDTH - 1 for rows in members], np.int64) // WIDTH
    firsts = np.cumsum(blocks) - blocks
    tokens = np.empty(WIDTH * blocks.sum(), np.uint32)
    entries = np.empty(WIDTH * blocks.sum(), np.uint32)
    boxes = np.zeros(4 * blocks.sum() + PADDING, np.uint16)
    density = np.zeros((len(groups), 4**DENSITY_BITS), np.float32)
    for number, rows in enumerate(members):
        keys = np.empty(len(rows), np.uint64)
        posting_layout.write_spatial_sort_keys(images, rows, keys)
        order = rows[np.argsort(keys, kind="stable")]
        width, height = posting_layout.write_spatial_blocks(
            images, order, posting_word, entry_of, word_count, firsts[number], tokens, entries,
            boxes, density[number],
        )  # fmt: skip
        records["width"][number] = width / max(blocks[number], 1)
        records["height"][number] = height / max(blocks[number], 1)
    nodes, starts = _build_trees(boxes, firsts, blocks)
    for name in (
        "list_column", "geometry_column", "accepts", "direct", "decides", "number_column",
    ):  # fmt: skip
        records[name] = [getattr(group, name) for group in groups]
    records["block"], records["blocks"], records["node"] = firsts, blocks, starts
    return records, tokens, entries, boxes, nodes, density


def direct_rows_of(postings: PostingArrays, word_count: int) -> PostingRows:
    """Return the rows that the direct entries were laid out from, in the order of entries."""
    count = direct_entry_count(postings)
    groups = tuple(
        PostingGroup(
            int(g["list_column"]),
            int(g["geometry_column"]),
            int(g["accepts"]),
            bool(g["direct"]),
            int(g["decides"]),
        )
        for g in postings.groups
    )
    by_entry = np.argsort(postings.lists["first"], kind="stable")
    lists = postings.lists[by_entry]
    starts = postings.token_lists.astype(np.int64)
    list_words = np.repeat(np.arange(word_count + 1), starts[1:] - starts[:-1])[by_entry]
    sizes = lists["count"].astype(np.int64)
    group = np.repeat(lists["group"].astype(np.int64), sizes)[:count]
    word = np.repeat(list_words, sizes)[:count]
    rest_start = postings.rest_start[: count + 1].astype(np.int64)
    has_word = word < word_count
    token_start = np.zeros(count + 1, np.int64)
    np.cumsum(np.diff(rest_start) + has_word, out=token_start[1:])
    tokens = np.empty(token_start[-1], np.int64)
    first = np.zeros(len(tokens), bool)
    first[token_start[:-1][has_word]] = True
    tokens[first] = word[has_word]
    tokens[~first] = postings.rest[: rest_start[-1]]
    return PostingRows(
        groups,
        group,
        postings.owner[:count].astype(np.int64),
        postings.exact[:count],
        token_start,
        tokens,
    )


def direct_entry_count(postings: PostingArrays) -> int:
    """Return the number of direct entries, whose hits match. They come first."""
    direct = postings.groups["direct"][postings.lists["group"]] > 0
    return int(postings.lists["count"][direct].sum())


def group_and_word_of(postings: PostingArrays, entry: int) -> tuple[Any, int | None]:
    """Return the `GROUP` record of an entry, and its posting word, if any."""
    lists = postings.lists
    number = int(
        np.flatnonzero((lists["first"] <= entry) & (entry < lists["first"] + lists["count"]))[0]
    )
    word = int(np.searchsorted(postings.token_lists, number, "right")) - 1
    no_word = len(postings.token_lists) - 2
    return postings.groups[lists["group"][number]], None if word == no_word else word


def renumber_owners(rows: PostingRows, new_owner: NDArray[np.int64]) -> PostingRows:
    """Return rows sorted by new owners, without rows whose new owner is -1."""
    owner = new_owner[rows.owner]
    kept = np.flatnonzero(owner >= 0)
    kept = kept[np.argsort(owner[kept], kind="stable")]
    return take(rows, kept)._replace(owner=owner[kept])


def take(rows: PostingRows, selected: NDArray[np.int64]) -> PostingRows:
    """Return selected rows, in that order; a row may be selected more than once."""
    first = rows.token_start[selected]
    sizes = rows.token_start[selected + 1] - first
    start = np.zeros(len(selected) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return PostingRows(
        rows.groups,
        rows.group[selected],
        rows.owner[selected],
        rows.boxes[selected],
        start,
        rows.tokens[ranges(first, sizes)],
        rows.strings[selected] if len(rows.strings) else rows.strings,
        rows.bounds[selected] if len(rows.bounds) else rows.bounds,
    )


def ranges(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranges of sizes[k] integers that begin at first[k], end to end."""
    begin = np.cumsum(sizes) - sizes
    concatenated: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(first - begin, sizes)
    return concatenated
