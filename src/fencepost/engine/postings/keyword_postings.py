"""Filters posted under words: laid out from rows, and rows again where segments are merged."""

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
_SAMPLE = 2**16  # boxes from which a map is drawn
_MOST_COUNTERS = 2**24


class PostingGroup(NamedTuple):
    """What posted filters have in common."""

    list_column: int  # whose words they need; -1: they need none; or SIGNATURES
    geometry_column: int  # whose box they need; -1: they need none
    accepts: int  # of which kinds the attribute may be: `checking.ITEMS`, TEXT or both
    direct: bool  # they ask for nothing else, and what they own are subscriptions
    decides: int = NOTHING  # of SIGNATURES: what decides a filter
    string_column: int = -1  # which must have the string of the row
    number_column: int = -1  # which must have a number between the bounds of the row


class PostingRows(NamedTuple):
    """Filters to be posted, one a row."""

    forms: tuple[PostingGroup, ...]
    form: NDArray[np.int64]  # of each row
    owner: NDArray[np.int64]
    boxes: NDArray[np.float64]  # (n, 4)
    token_start: NDArray[np.int64]
    tokens: NDArray[np.int64]  # those of a row differ
    strings: NDArray[np.int64] = np.empty(0, np.int64)  # of each row, or -1; of none if all are
    bounds: NDArray[np.float64] = np.empty((0, 2))  # (n, 2), NaN for any; of none if all are


def rows_from(given: Sequence[tuple[PostingGroup, int, Box, Sequence[int]]]) -> PostingRows:
    """Filters given one by one: form, owner, box, tokens."""
    forms = tuple(dict.fromkeys(form for form, *_ in given))
    number = {form: k for k, form in enumerate(forms)}
    sizes = [0, *(len(tokens) for *_, tokens in given)]
    return PostingRows(
        forms,
        np.array([number[form] for form, *_ in given], np.int64),
        np.array([owner for _, owner, *_ in given], np.int64),
        np.array([box for _, _, box, _ in given], np.float64).reshape(-1, 4),
        np.cumsum(sizes, dtype=np.int64),
        np.array([token for *_, tokens in given for token in tokens], np.int64),
    )


def concatenate(parts: list[PostingRows]) -> PostingRows:
    """The rows of several, in order."""
    parts = [part for part in parts if len(part.form)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    forms = tuple(dict.fromkeys(form for part in parts for form in part.forms))
    numbers = [np.array([forms.index(form) for form in part.forms]) for part in parts]
    base = np.cumsum([0, *(len(part.tokens) for part in parts)])
    return PostingRows(
        forms,
        np.concatenate([n[part.form] for n, part in zip(numbers, parts, strict=True)]),
        np.concatenate([part.owner for part in parts]),
        np.concatenate([part.boxes for part in parts]),
        np.concatenate(
            [[0], *(part.token_start[1:] + b for b, part in zip(base, parts, strict=False))]
        ),
        np.concatenate([part.tokens for part in parts]),
        _joined([part.strings for part in parts], parts, -1),
        _joined([part.bounds for part in parts], parts, np.nan),
    )


def _joined(values: list[NDArray[Any]], parts: list[PostingRows], none: float) -> NDArray[Any]:
    """The values of all rows, of which some parts have none; of none where all are such."""
    if not any(map(len, values)):
        return values[0]
    return np.concatenate(
        [
            own if len(own) else np.full((len(part.form), *own.shape[1:]), none, own.dtype)
            for own, part in zip(values, parts, strict=True)
        ]
    )


def ignore_step(step: str) -> None:
    """For who need not hear of steps."""


def build(rows: PostingRows, words: int, report_step: StepReporter = ignore_step) -> PostingArrays:
    """The rows laid out; their tokens are numbers of `words` words. `tell` hears of the steps."""
    report_step("choosing words")
    forms, group = _groups(rows)
    knots = np.zeros((len(forms), 3, PIECES + 1))
    for number in range(len(forms)):
        own = np.flatnonzero(group == number)
        own = own[:: max(len(own) // _SAMPLE, 1)]
        for axis in range(2):
            fit_knots(rows.boxes[own, axis::2], knots[number, axis])
        if len(rows.bounds):
            fit_knots(rows.bounds[own], knots[number, 2])
    images = np.empty((len(group), 4), np.uint16)
    posting_layout.write_images(rows.boxes, group, knots, images)
    bounds = np.empty((len(rows.bounds), 2), np.uint16)
    posting_layout.write_bound_images(rows.bounds, group, knots, bounds)
    chosen, rest_start, rest = _choose(rows, images, words)
    columns = sorted({form.string_column for form in forms} - {-1})
    of_group = np.array(
        [([-1, *columns].index(form.string_column)) - 1 for form in forms], np.int64
    )
    string_words, words = _with_strings(rows.strings, of_group[group], chosen, words)
    report_step("sorting lists")
    keys = np.empty(len(group), np.uint64)
    lists, list_of, list_words = _lists(group, chosen, words)
    posting_layout.write_sort_keys(images, list_of, keys)
    order = np.argsort(keys, kind="stable")
    report_step("laying lists out")
    boxes = np.zeros(4 * len(group) + PADDING, np.uint16)
    entry_bounds = np.zeros(2 * len(bounds) + PADDING, np.uint16)
    entry_rest_start = np.empty(len(group) + 1, np.uint32)
    entry_rest = np.empty(len(rest), np.uint32)
    posting_layout.write_entries(
        images, bounds, order, rest_start, rest, lists, boxes, entry_bounds, entry_rest_start,
        entry_rest,
    )  # fmt: skip
    nodes, lists["node"] = _plant(boxes, lists["first"], lists["count"])
    lists, token_lists = _by_word(lists, list_words, words)
    report_step("sorting places")
    entry_of = np.empty(len(order), np.uint32)
    entry_of[order] = np.arange(len(order))
    groups, tokens, entries, spatial_boxes, spatial_nodes, density = _spatial(
        forms, group, images, chosen, entry_of, words
    )
    groups["strings"] = of_group
    for number in range(len(forms)):
        own = rows.boxes[group == number]
        groups["x0"][number], groups["y0"][number] = own[:, :2].min(0)
        groups["x1"][number], groups["y1"][number] = own[:, 2:].max(0)
    columns_of = [(form.list_column, form.string_column) for form in forms]
    groups["source"] = [columns_of.index(own) for own in columns_of]
    return PostingArrays(
        token_lists=token_lists,
        lists=lists,
        groups=groups,
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
        string_columns=np.array(columns, np.uint32),
        string_words=string_words,
    )


def _groups(rows: PostingRows) -> tuple[list[PostingGroup], NDArray[np.int64]]:
    """The forms that rows have, direct first, then by list and string; the number of each row's."""

    def place(k: int) -> tuple[Any, ...]:
        form = rows.forms[k]
        return not form.direct, form.list_column, form.string_column, form

    numbers = sorted(np.unique(rows.form).tolist(), key=place)
    rank = np.empty(len(rows.forms), np.int64)
    rank[numbers] = np.arange(len(numbers))
    return [rows.forms[k] for k in numbers], rank[rows.form]


def fit_knots(values: NDArray[np.float64], knots: NDArray[np.float64]) -> None:
    """Divide some numbers into pieces that hold equally many."""
    values = np.sort(values[np.isfinite(values)])
    if len(values):
        knots[:] = values[np.linspace(0, len(values) - 1, PIECES + 1).astype(np.int64)]


def _choose(
    rows: PostingRows, images: NDArray[np.uint16], words: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]:
    """The word under which each row is posted; where its others begin; the others."""
    counters = min(1 << max(4 * len(rows.tokens), 1).bit_length(), _MOST_COUNTERS)
    chosen = np.empty(len(rows.form), np.uint32)
    rest_start = np.empty(len(rows.form) + 1, np.int64)
    rest = np.empty(len(rows.tokens), np.uint32)
    posting_layout.choose_posting_words(
        rows.token_start,
        rows.tokens,
        images,
        words,
        np.zeros(words, np.int64),
        np.zeros(counters, np.int32),
        rest,
        rest_start,
        chosen,
    )
    return chosen, rest_start, rest[: rest_start[-1]]


def _with_strings(
    strings: NDArray[np.int64],
    column: NDArray[np.int64],
    chosen: NDArray[np.uint32],
    words: int,
) -> tuple[vocabulary.Vocabulary, int]:
    """Number words that stand for a string and a word behind the others, in the rows with one.

    column : of each row, the number of its string column. Returns what each stands for, and how
    many words there are then, which is the new number for none.
    """
    own = np.flatnonzero(strings >= 0)
    keys = np.column_stack((column[own], strings[own], chosen[own])).astype(np.uint32)
    start = np.arange(len(keys) + 1) * keys.dtype.itemsize * KEY_NUMBERS
    pairs, ids = vocabulary.build(keys.reshape(-1).view(np.uint8), start)
    total = words + len(pairs.start) - 1
    chosen[chosen == words] = total
    chosen[own] = words + ids
    return pairs, total


def _lists(
    group: NDArray[np.int64], chosen: NDArray[np.uint32], words: int
) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """A list for each group and word that occur together, by group; each row's; their words."""
    pairs, list_of, counts = np.unique(
        group * (words + 1) + chosen, return_inverse=True, return_counts=True
    )
    lists = np.zeros(len(pairs), LIST)
    lists["first"] = np.cumsum(counts) - counts
    lists["count"] = counts
    lists["group"] = pairs // (words + 1)
    return lists, list_of, pairs % (words + 1)


def _by_word(
    lists: NDArray[np.void], list_words: NDArray[np.int64], words: int
) -> tuple[NDArray[np.void], NDArray[np.uint32]]:
    """The lists sorted by word, and where those of each word begin."""
    order = np.argsort(list_words, kind="stable")
    starts = np.searchsorted(list_words[order], np.arange(words + 2))
    return lists[order], starts.astype(np.uint32)


def _plant(
    boxes: NDArray[np.uint16], firsts: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Trees over ranges of boxes, and where each begins."""
    firsts, counts = firsts.astype(np.int64), counts.astype(np.int64)
    sizes = np.empty(len(counts), np.int64)
    posting_layout.count_tree_boxes(counts, sizes)
    starts = np.cumsum(sizes) - sizes
    nodes = np.zeros(4 * sizes.sum() + PADDING, np.uint16)
    posting_layout.build_trees(boxes, firsts, counts, starts, nodes)
    return nodes, starts


def _spatial(
    forms: list[PostingGroup],
    group: NDArray[np.int64],
    images: NDArray[np.uint16],
    chosen: NDArray[np.uint32],
    entry_of: NDArray[np.uint32],
    words: int,
) -> tuple[NDArray[Any], ...]:
    """The groups, and the words and entries of each along the curve, with trees over blocks."""
    groups = np.zeros(len(forms), GROUP)
    members = [
        np.flatnonzero(group == number)
        if 0 <= form.list_column < SIGNATURES
        else np.empty(0, np.int64)
        for number, form in enumerate(forms)
    ]
    blocks = np.array([len(rows) + WIDTH - 1 for rows in members], np.int64) // WIDTH
    firsts = np.cumsum(blocks) - blocks
    tokens = np.empty(WIDTH * blocks.sum(), np.uint32)
    entries = np.empty(WIDTH * blocks.sum(), np.uint32)
    boxes = np.zeros(4 * blocks.sum() + PADDING, np.uint16)
    density = np.zeros((len(forms), 4**DENSITY_BITS), np.float32)
    for number, rows in enumerate(members):
        keys = np.empty(len(rows), np.uint64)
        posting_layout.write_spatial_sort_keys(images, rows, keys)
        order = rows[np.argsort(keys, kind="stable")]
        wide, high = posting_layout.write_spatial_blocks(
            images, order, chosen, entry_of, words, firsts[number], tokens, entries, boxes,
            density[number],
        )  # fmt: skip
        groups["width"][number] = wide / max(blocks[number], 1)
        groups["height"][number] = high / max(blocks[number], 1)
    nodes, starts = _plant(boxes, firsts, blocks)
    for name in (
        "list_column", "geometry_column", "accepts", "direct", "decides", "number_column",
    ):  # fmt: skip
        groups[name] = [getattr(form, name) for form in forms]
    groups["block"], groups["blocks"], groups["node"] = firsts, blocks, starts
    return groups, tokens, entries, boxes, nodes, density


def direct_rows_of(postings: PostingArrays, words: int) -> PostingRows:
    """What the direct entries were laid out from, entry by entry; there are so many words."""
    count = direct_entry_count(postings)
    forms = tuple(
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
    list_words = np.repeat(np.arange(words + 1), starts[1:] - starts[:-1])
    own = list_words[by_entry]
    sizes = lists["count"].astype(np.int64)
    form = np.repeat(lists["group"].astype(np.int64), sizes)[:count]
    word = np.repeat(own, sizes)[:count]
    rest_start = postings.rest_start[: count + 1].astype(np.int64)
    has_word = word < words
    token_start = np.zeros(count + 1, np.int64)
    np.cumsum(np.diff(rest_start) + has_word, out=token_start[1:])
    tokens = np.empty(token_start[-1], np.int64)
    first = np.zeros(len(tokens), bool)
    first[token_start[:-1][has_word]] = True
    tokens[first] = word[has_word]
    tokens[~first] = postings.rest[: rest_start[-1]]
    return PostingRows(
        forms,
        form,
        postings.owner[:count].astype(np.int64),
        postings.exact[:count],
        token_start,
        tokens,
    )


def direct_entry_count(postings: PostingArrays) -> int:
    """How many entries match without further ado; they come first."""
    direct = postings.groups["direct"][postings.lists["group"]] > 0
    return int(postings.lists["count"][direct].sum())


def group_and_word_of(postings: PostingArrays, entry: int) -> tuple[Any, int | None]:
    """The group of an entry, and the word that it is posted under, if any."""
    lists = postings.lists
    number = int(
        np.flatnonzero((lists["first"] <= entry) & (entry < lists["first"] + lists["count"]))[0]
    )
    word = int(np.searchsorted(postings.token_lists, number, "right")) - 1
    return postings.groups[lists["group"][number]], None if word == len(
        postings.token_lists
    ) - 2 else word


def renumber_owners(rows: PostingRows, owner: NDArray[np.int64]) -> PostingRows:
    """The rows whose owners get another number, by that; -1 is none."""
    own = owner[rows.owner]
    kept = np.flatnonzero(own >= 0)
    kept = kept[np.argsort(own[kept], kind="stable")]
    return take(rows, kept)._replace(owner=own[kept])


def take(rows: PostingRows, chosen: NDArray[np.int64]) -> PostingRows:
    """Some rows, in the order given; a row may be given more than once."""
    first = rows.token_start[chosen]
    sizes = rows.token_start[chosen + 1] - first
    start = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return PostingRows(
        rows.forms,
        rows.form[chosen],
        rows.owner[chosen],
        rows.boxes[chosen],
        start,
        rows.tokens[ranges(first, sizes)],
        rows.strings[chosen] if len(rows.strings) else rows.strings,
        rows.bounds[chosen] if len(rows.bounds) else rows.bounds,
    )


def ranges(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[k], first[k] + 1, ... sizes[k] of them, for each k in turn."""
    begin = np.cumsum(sizes) - sizes
    found: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(first - begin, sizes)
    return found
